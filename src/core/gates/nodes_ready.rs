//! Gate `nodes-ready`: other nodes Ready with a fresh Lease, no pressure, network up.
//!
//! Counted like rule 2 counts: where `max_unavailable` is above 1, fewer failing workers than that are a warning;
//! control-plane nodes are judged strictly whatever the limit. A worker of which something is unknown counts as
//! failing, which is the worst it can be.
//!
//! At `verify` the others only warn: the target is back and is not kept cordoned for them; the plan freezes the queue
//! and pages. At `settle` all nodes are asked, the target too, and what failed at the start already only warns.
//!
//! A kubelet always reports `MemoryPressure`, `DiskPressure` and `PIDPressure` (kubelet's nodestatus setters), so a
//! missing one is unknown. `NetworkUnavailable` is set by a cloud provider or a network plug-in, or by nobody.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::reading::{required, was_failing};
use super::{Draft, GateInput, GateSpec, nodes};
use crate::api::{Evidence, Finding, GateId, Moment, Policy, Reason, SourceId, Status};
use crate::facts::{Lease, Node, TriState};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::NodesReady,
    moments: &[Moment::Start, Moment::Cordoned, Moment::Handover, Moment::Verify, Moment::Settle],
    reads: &[SourceId::Nodes, SourceId::Leases],
    reasons: &[Reason::NodeNotReady, Reason::NodeLeaseStale, Reason::NodeUnderPressure, Reason::NodeNetworkUnavailable],
    default_policy: Policy::Require,
    doc: "other nodes Ready with a fresh Lease, no pressure, network up",
    check,
};

const PRESSURES: [&str; 3] = ["MemoryPressure", "DiskPressure", "PIDPressure"];

/// One thing that is wrong with one node.
struct Problem {
    status: Status,
    reason: Reason,
    message: String,
    since: Option<Timestamp>,
    evidence: Evidence,
}

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::NodesReady, input);
    let all = required(&mut draft, SourceId::Nodes, &input.facts.nodes);
    // Without the leases the draft is unknown, and the conditions are judged all the same.
    let leases = required(&mut draft, SourceId::Leases, &input.facts.leases);
    let Some(all) = all else { return draft.finish("") };
    // Looked up once a node: a list of thousands is not walked thousands of times.
    let leases: Option<BTreeMap<&str, &Lease>> = leases.map(|leases| {
        let of_nodes = leases.into_iter().filter(|lease| lease.metadata.namespace == Lease::NODE_NAMESPACE);
        of_nodes.map(|lease| (lease.metadata.name.as_str(), lease)).collect()
    });

    let mut judged = nodes::others(input, &all);
    if input.moment == Moment::Settle {
        judged.extend(all.iter().copied().filter(|node| node.metadata.name == input.target));
    }
    let count = judged.len();
    let failing: Vec<(&Node, Vec<Problem>)> = judged
        .into_iter()
        .map(|node| (node, problems(input, node, leases.as_ref())))
        .filter(|(_, problems)| !problems.is_empty())
        .collect();
    let strict = |node: &Node| node.is_control_plane() || node.metadata.name == input.target;
    let workers = failing.iter().filter(|(node, _)| !strict(node)).count();
    let tolerated = u32::try_from(workers).unwrap_or(u32::MAX) < input.settings.limits.max_unavailable;
    for (node, problems) in failing {
        for problem in problems {
            add(input, &mut draft, problem, tolerated && !strict(node));
        }
    }
    let which = if input.moment == Moment::Settle { "all" } else { "all other" };
    draft.finish(format!("{which} {count} nodes are Ready, with fresh leases, no pressure and their network"))
}

fn add(input: &GateInput<'_>, draft: &mut Draft<'_>, problem: Problem, tolerated: bool) {
    let Problem { mut status, reason, mut message, since, evidence } = problem;
    let limit = input.settings.limits.max_unavailable;
    if input.moment == Moment::Verify {
        status = Status::Warn;
        message = format!("{message}; it does not keep {} cordoned, and no other node starts", input.target);
    } else if tolerated {
        status = Status::Warn;
        message = format!("{message}; fewer than {limit} workers may fail (max_unavailable)");
    } else if input.moment == Moment::Settle && was_failing(input, GateId::NodesReady, &evidence) {
        status = Status::Warn;
        message = format!("{message}; it was so before the run");
    }
    draft.add(status, reason, message, since, vec![evidence]);
}

fn problems(input: &GateInput<'_>, node: &Node, leases: Option<&BTreeMap<&str, &Lease>>) -> Vec<Problem> {
    // A node that is not Ready has its other conditions set to Unknown by the node lifecycle controller: they would
    // only say the same again.
    if let Some((message, since, evidence)) = nodes::not_ready(node) {
        let since_text = since.map_or_else(String::new, |since| format!(", since {since}"));
        let message = format!("{message}{since_text}");
        return vec![Problem { status: Status::Block, reason: Reason::NodeNotReady, message, since, evidence }];
    }
    let name = node.metadata.name.as_str();
    let mut found: Vec<Problem> = leases.and_then(|leases| lease(input, leases.get(name), name)).into_iter().collect();
    found.extend(PRESSURES.into_iter().filter_map(|kind| {
        let wrong = condition(node, kind, Reason::NodeUnderPressure);
        if node.condition(kind).is_none() { Some(missing(node, kind)) } else { wrong }
    }));
    found.extend(condition(node, "NetworkUnavailable", Reason::NodeNetworkUnavailable));
    found
}

fn lease(input: &GateInput<'_>, lease: Option<&&Lease>, name: &str) -> Option<Problem> {
    let limit = input.settings.limits.node_lease_max_age_seconds;
    let renewed = lease.and_then(|lease| lease.renew_time);
    let age = renewed.map(|renewed| input.now.duration_since(renewed).as_secs());
    let (status, seen, message) = match age {
        Some(age) if age.abs() <= limit => return None,
        Some(age) if age < 0 => (
            Status::Unknown,
            format!("{} s in the future", -age),
            format!("the Lease of node {name} is renewed {} s in the future: its clock or ours is wrong", -age),
        ),
        _ => {
            let seen = age.map_or_else(|| "never".to_owned(), |age| format!("{age} s ago"));
            let message = format!("the Lease of node {name} was renewed {seen}, wanted within {limit} s");
            (Status::Block, seen, message)
        }
    };
    let object = format!("Lease {}/{name}", Lease::NODE_NAMESPACE);
    let evidence = Evidence::new(object, "spec.renewTime", seen, format!("<= {limit} s ago"));
    Some(Problem { status, reason: Reason::NodeLeaseStale, message, since: None, evidence })
}

/// A condition that must not be True; Unknown is unknown, and a missing one is nothing here.
fn condition(node: &Node, kind: &str, reason: Reason) -> Option<Problem> {
    let found = node.condition(kind)?;
    let name = &node.metadata.name;
    let (status, message) = match found.status {
        TriState::False => return None,
        TriState::True => (Status::Block, format!("node {name} has {kind} ({})", found.reason)),
        TriState::Unknown => {
            (Status::Unknown, format!("whether node {name} has {kind} is not known ({})", found.reason))
        }
    };
    let since = found.last_transition;
    let since_text = since.map_or_else(String::new, |since| format!(", since {since}"));
    let evidence = Evidence::new(format!("Node {name}"), field(kind), found.status.as_str(), "False");
    Some(Problem { status, reason, message: format!("{message}{since_text}"), since, evidence })
}

fn missing(node: &Node, kind: &str) -> Problem {
    let name = &node.metadata.name;
    Problem {
        status: Status::Unknown,
        reason: Reason::ObservationMalformed,
        message: format!("node {name} has no condition {kind}, which every kubelet reports"),
        since: None,
        evidence: Evidence::new(format!("Node {name}"), field(kind), "missing", "False"),
    }
}

fn field(kind: &str) -> String {
    format!("status.conditions[{kind}]")
}

#[cfg(test)]
mod tests;
