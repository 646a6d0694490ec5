//! The two requests of one cell, and the questions of the matrix to one API server.

use std::time::Duration;

use maint_core::matrix::classify::Answer;

use crate::client::{Exchange, FailureClass, get};
use crate::observe::{READYZ_LIMIT, readyz};
use crate::ports::{Asked, Probes, Question};
use crate::runtime::Clock;

/// Limit of a probe. A direct dial of the API server ends after 30 s only, a hanging kubelet never.
const PROBE_LIMIT: Duration = Duration::from_secs(12);
/// How much of an answer is read, in bytes.
const BODY_BYTES: usize = 4 * 1024;
/// A path that no kubelet serves: its raw 404 proves the fresh connection and leaves no log line anywhere.
const UNSERVED_PATH: &str = "maint-probe";

impl Question<'_> {
    /// How long its answer may take.
    #[must_use]
    pub const fn limit(&self) -> Duration {
        match self {
            Self::Readyz => READYZ_LIMIT,
            Self::FreshDial(_) | Self::Healthz(_) => PROBE_LIMIT,
        }
    }
}

impl From<Exchange> for Asked {
    fn from(exchange: Exchange) -> Self {
        let wrong_name = matches!(&exchange, Exchange::Failed(failure) if failure.class == FailureClass::TlsName);
        Self { answer: exchange.into_answer(), wrong_name }
    }
}

impl Probes for kube::Client {
    async fn ask(&self, clock: &Clock, question: Question<'_>) -> Asked {
        match question {
            Question::Readyz => readyz(self, clock).await,
            Question::FreshDial(node) => fresh_dial(self, clock, node).await,
            Question::Healthz(node) => healthz(self, clock, node).await,
        }
    }
}

/// Asks for a new connection to the kubelet. Only the header `Connection: Upgrade` is looked at; RFC 9110 wants both.
/// The upgrade path of `nodes/proxy` drops a query, so there is none.
async fn fresh_dial(client: &kube::Client, clock: &Clock, node: &str) -> Asked {
    let upgrade = [("connection", "Upgrade"), ("upgrade", UNSERVED_PATH)];
    ask(client, clock, node, UNSERVED_PATH, &upgrade).await
}

/// Asks for the kubelet's own health; an old connection may carry it.
async fn healthz(client: &kube::Client, clock: &Clock, node: &str) -> Asked {
    ask(client, clock, node, "healthz", &[]).await
}

async fn ask(
    client: &kube::Client,
    clock: &Clock,
    node: &str,
    path: &str,
    headers: &[(&'static str, &'static str)],
) -> Asked {
    if !is_node_name(node) {
        let detail = format!("`{}` is no name of a node", node.escape_debug());
        return Asked { answer: Answer::NotSent { detail }, wrong_name: false };
    }
    let path = format!("/api/v1/nodes/{node}/proxy/{path}");
    get(client, clock, &path, headers, PROBE_LIMIT, BODY_BYTES).await.into()
}

/// Names of Nodes are DNS subdomains (RFC 1123): nothing else may get into a path.
fn is_node_name(name: &str) -> bool {
    let letters = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte));
    letters && !name.is_empty() && name.len() <= 253 && !name.contains("..") && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_nodes_get_into_a_path() {
        for name in ["a", "worker-1", "node1.example.com"] {
            assert!(is_node_name(name), "{name}");
        }
        for name in ["", ".", "..", "a/../b", "a%2f", "a b", "a?x", "A", "é", &"x".repeat(254)] {
            assert!(!is_node_name(name), "{name}");
        }
    }
}
