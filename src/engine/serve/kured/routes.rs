//! Prometheus' query API as far as kured uses it: one query, by POST with a form, or by GET.
//!
//! Measured: kured sends a POST and, where that is answered 405, the same as a GET; whatever is not one of three bodies
//! is noise in its log. So no question is answered 404 or 405, and trouble is said in words.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use maint_core::kured::answer::{Answer, Reply};

use super::{Fetch, PATH, QuestionPort, Questions};

/// Largest form that is read, in bytes; kured's has 36.
const BODY_LIMIT: usize = 4096;
/// How long a form may take to arrive. With the budget of an answer it stays within a second.
const BODY_TIME: Duration = Duration::from_millis(150);
/// The one query.
const QUERY: &str = "ALERTS";

/// Address of the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

/// The routes under `/kured/`.
pub fn routes<P: QuestionPort, F: Fetch>(questions: Arc<Questions<P, F>>) -> Router {
    Router::new().route(PATH, any(ask::<P, F>)).with_state(questions)
}

async fn ask<P: QuestionPort, F: Fetch>(
    State(questions): State<Arc<Questions<P, F>>>,
    Path(node): Path<String>,
    RawQuery(query): RawQuery,
    peer: Option<Extension<Peer>>,
    body: Body,
) -> Response {
    let clock = &questions.env.clock;
    let trouble = |why: &str| response(&Answer::trouble(why).reply(true, clock.now()));
    let form = match clock.timeout(BODY_TIME, to_bytes(body, BODY_LIMIT)).await {
        Ok(Ok(form)) => form,
        Ok(Err(_)) => return trouble("the question is longer than 4 KiB or was cut off"),
        Err(_) => return trouble("the question did not arrive in time"),
    };
    let form = String::from_utf8_lossy(&form);
    if !asks_for_alerts([query.as_deref().unwrap_or_default(), &form]) {
        return trouble("only the query ALERTS is answered here");
    }
    response(&questions.answer(&node, peer.map(|peer| peer.0.0.ip())).await)
}

/// Exactly one `query`, in the URL or in the form, and the one that is answered.
fn asks_for_alerts(parts: [&str; 2]) -> bool {
    let pairs = parts.iter().flat_map(|part| part.split('&'));
    let mut queries = pairs.filter_map(|pair| pair.strip_prefix("query="));
    queries.next() == Some(QUERY) && queries.next().is_none()
}

fn response(reply: &Reply) -> Response {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
    let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, json, reply.body.clone()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_query_is_answered_wherever_it_stands() {
        let rows = [
            ("as kured sends it", ["", "query=ALERTS&time=1796026226.5580864"], true),
            ("as a GET", ["query=ALERTS&time=1796026226.558", ""], true),
            ("another", ["", "query=up"], false),
            ("more than it", ["", "query=ALERTS%7Ba%3D1%7D"], false),
            ("two", ["query=ALERTS", "query=up"], false),
            ("none", ["time=1", ""], false),
            ("nothing", ["", ""], false),
        ];
        for (row, parts, wanted) in rows {
            assert_eq!(asks_for_alerts(parts), wanted, "{row}");
        }
    }
}
