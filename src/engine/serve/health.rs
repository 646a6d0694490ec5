//! `/healthz`, `/readyz` and `/status`: is this replica alive, and who leads. None of them depends on leading.

use std::sync::{Mutex, OnceLock, PoisonError};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::lead::Leadership;

/// What health checks are answered from.
#[derive(Default)]
pub struct Health {
    seen: Mutex<Seen>,
    asked: OnceLock<Shown>,
}

/// Something that `/status` shows as it is at that moment.
pub type Shown = Box<dyn Fn() -> Value + Send + Sync>;

#[derive(Debug, Default, Clone)]
struct Seen {
    /// Who leads, in words; none before anything is known.
    leadership: Option<String>,
}

impl Health {
    /// Who leads, as this replica knows it.
    pub fn set_leadership(&self, leadership: &Leadership) {
        let word = match leadership {
            Leadership::Unknown => None,
            Leadership::Following { holder } => {
                Some(holder.as_ref().map_or_else(|| "nobody leads".to_owned(), |holder| format!("{holder} leads")))
            }
            Leadership::Leading(guard) => Some(format!("this replica leads (term {})", guard.term())),
            Leadership::Lost(lost) => Some(format!("this replica led: {lost}")),
            Leadership::Resigned => Some("resigned".to_owned()),
        };
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).leadership = word;
    }

    /// Shows in `/status` what kured was answered; only the first call counts.
    pub fn show_asked(&self, asked: Shown) {
        let _ = self.asked.set(asked);
    }

    fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// `/healthz`, `/readyz` and `/status`.
pub fn health_routes(health: Arc<Health>) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/status", get(status))
        .with_state(health)
}

/// Ready once the Lease could be read: then the API answers, and this replica can take over.
async fn ready(State(health): State<Arc<Health>>) -> (StatusCode, &'static str) {
    match health.seen().leadership {
        Some(_) => (StatusCode::OK, "ok\n"),
        None => (StatusCode::SERVICE_UNAVAILABLE, "the Lease could not be read yet\n"),
    }
}

async fn status(State(health): State<Arc<Health>>) -> Json<Value> {
    Json(json!({
        "apiVersion": maint_core::api::names::OUTPUT_API_VERSION,
        "kind": "ReplicaStatus",
        "leadership": health.seen().leadership,
        "asked": health.asked.get().map(|asked| asked()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_ready_once_the_lease_was_read_whoever_leads() {
        let health = Arc::new(Health::default());
        assert_eq!(ready(State(Arc::clone(&health))).await.0, StatusCode::SERVICE_UNAVAILABLE);
        health.set_leadership(&Leadership::Following { holder: Some("maint-0_x".into()) });
        assert_eq!(ready(State(Arc::clone(&health))).await.0, StatusCode::OK);
        assert_eq!(status(State(health)).await.0["leadership"], "maint-0_x leads");
    }
}
