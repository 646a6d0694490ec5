//! The two requests of one cell.

use std::time::Duration;

use maint_core::matrix::classify::Answer;

use crate::client::get;
use crate::runtime::Clock;

/// Limit of a probe, in seconds. A direct dial of the API server ends after 30 s only, a hanging kubelet never.
const PROBE_SECONDS: u64 = 12;
/// How much of an answer is read, in bytes.
const BODY_BYTES: usize = 4 * 1024;
/// A path that no kubelet serves: its raw 404 proves the fresh connection and leaves no log line anywhere.
const UNSERVED_PATH: &str = "maint-probe";

/// Asks for a new connection to the kubelet. Only the header `Connection: Upgrade` is looked at; RFC 9110 wants both.
/// The upgrade path of `nodes/proxy` drops a query, so there is none.
pub(super) async fn fresh_dial(client: &kube::Client, clock: &Clock, node: &str) -> Answer {
    let upgrade = [("connection", "Upgrade"), ("upgrade", UNSERVED_PATH)];
    ask(client, clock, node, UNSERVED_PATH, &upgrade).await
}

/// Asks for the kubelet's own health; an old connection may carry it.
pub(super) async fn healthz(client: &kube::Client, clock: &Clock, node: &str) -> Answer {
    ask(client, clock, node, "healthz", &[]).await
}

async fn ask(
    client: &kube::Client,
    clock: &Clock,
    node: &str,
    path: &str,
    headers: &[(&'static str, &'static str)],
) -> Answer {
    if !is_node_name(node) {
        return Answer::NotSent { detail: format!("`{}` is no name of a node", node.escape_debug()) };
    }
    let path = format!("/api/v1/nodes/{node}/proxy/{path}");
    get(client, clock, &path, headers, Duration::from_secs(PROBE_SECONDS), BODY_BYTES).await.into_answer()
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
