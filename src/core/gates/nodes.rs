//! Readings of nodes that several gates share.

use jiff::Timestamp;

use super::GateInput;
use crate::api::Evidence;
use crate::facts::{Lease, Node, TriState};

/// Why a node is not ready, with its evidence; none for a ready one. Only `Ready` being `True` is ready: a node
/// without the condition, or with `Unknown`, is not.
pub(crate) fn not_ready(node: &Node) -> Option<(String, Option<Timestamp>, Evidence)> {
    let name = &node.metadata.name;
    let (value, since) = match node.condition("Ready") {
        Some(ready) if ready.status == TriState::True => return None,
        Some(ready) => (format!("{} ({})", ready.status.as_str(), ready.reason), ready.last_transition),
        None => ("missing".to_owned(), None),
    };
    let evidence = Evidence::new(format!("Node {name}"), "status.conditions[Ready]", &value, "True");
    Some((format!("node {name} is not Ready: {value}"), since, evidence))
}

/// Whether the kubelet's Lease was renewed within the limit; a node without one counts as not renewed.
pub(super) fn lease_is_fresh(input: &GateInput<'_>, leases: &[&Lease], node: &str) -> bool {
    lease_age_seconds(input, leases, node).is_some_and(|age| age <= input.settings.limits.node_lease_max_age_seconds)
}

/// Seconds since the kubelet's Lease was renewed.
pub(super) fn lease_age_seconds(input: &GateInput<'_>, leases: &[&Lease], node: &str) -> Option<i64> {
    leases
        .iter()
        .find(|lease| lease.metadata.namespace == Lease::NODE_NAMESPACE && lease.metadata.name == node)
        .and_then(|lease| lease.renew_time)
        .map(|renewed| input.now.duration_since(renewed).as_secs())
}

/// All nodes but the target and those to be ignored; control-plane nodes are never ignored.
pub(crate) fn others<'a>(input: &GateInput<'_>, nodes: &[&'a Node]) -> Vec<&'a Node> {
    nodes
        .iter()
        .copied()
        .filter(|node| node.metadata.name != input.target)
        .filter(|node| node.is_control_plane() || !input.settings.limits.ignore_nodes.contains(&node.metadata.name))
        .collect()
}
