//! What is no gate: named nodes, DaemonSets, clocks, boots.

use super::{Answer, Asked};
use crate::api::names::ANNOTATION_PROVEN;
use crate::api::{Evidence, Policy, Proven, Reason, SourceId, Status};
use crate::facts::{DaemonSet, Lease, Node};
use crate::gates::reading::{document, required};
use crate::gates::{Draft, GateInput, clocks as compared, nodes as nodes_of};

/// Names that a sentence spells out.
const SHOWN: usize = 5;
/// Age in seconds of the controller manager's Lease from which what it counts proves nothing: it renews every two.
const CONTROLLER_SECONDS: i64 = 40;

/// `a, b, c, d, e and 2 more`
pub(super) fn some_of(names: &[&str]) -> String {
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The nodes that are judged: those that were asked for, all control-plane nodes, none that the settings leave out.
pub(super) fn judged<'a>(draft: &mut Draft<'a>, input: &'a GateInput<'a>) -> Option<Vec<&'a Node>> {
    let all = required(draft, SourceId::Nodes, &input.facts.nodes)?;
    Some(nodes_of::others(input, &all))
}

/// The nodes that were named are there, and there is a node at all.
pub(super) fn nodes<'a>(draft: &mut Draft<'a>, asked: &Asked<'a>, input: &'a GateInput<'a>) -> Answer {
    let Some(all) = required(draft, SourceId::Nodes, &asked.facts.nodes) else { return String::new().into() };
    let names: Vec<&str> = all.iter().map(|node| node.metadata.name.as_str()).collect();
    for name in asked.nodes.iter().filter(|name| !names.contains(&name.as_str())) {
        let message = format!("there is no node {name}; there are: {}", some_of(&names));
        let evidence = Evidence::new(format!("Node {name}"), "metadata.name", "not found", "an existing node");
        draft.block(Reason::TargetNotFound, message, evidence);
    }
    if names.is_empty() {
        let evidence = Evidence::new("nodes", "count", "0", "at least one");
        draft.unknown(Reason::ObservationFailed, "the API lists no node at all, so nothing is proven", evidence);
    }
    let judged = nodes_of::others(input, &all);
    let judged: Vec<&str> = judged.iter().map(|node| node.metadata.name.as_str()).collect();
    match (judged.len(), names.len()) {
        (some, all) if some == all => format!("{all} nodes: {}", some_of(&judged)),
        (some, all) => format!("{some} of {all} nodes are judged: {}", some_of(&judged)),
    }
    .into()
}

/// Every pod that a DaemonSet wants is there and Ready. What its controller counted proves something only while the
/// controller manager lives. The policy of gate `workloads` says what it is worth.
pub(super) fn daemon_sets<'a>(draft: &mut Draft<'a>, asked: &Asked<'a>, input: &'a GateInput<'a>) -> Answer {
    let Some(all) = required(draft, SourceId::DaemonSets, &asked.facts.daemon_sets) else {
        return String::new().into();
    };
    controllers(draft, asked);
    let policy = crate::gates::spec_of(crate::api::GateId::Workloads).map(|gate| gate.policy(input.settings));
    let worth = if policy == Some(Policy::Require) { Status::Block } else { Status::Warn };
    for one in &all {
        daemon_set(draft, one, worth);
    }
    let pods: i64 = all.iter().map(|one| one.ready).sum();
    format!("all {} DaemonSets have a Ready pod on each of their nodes ({pods} pods)", all.len()).into()
}

fn daemon_set(draft: &mut Draft<'_>, one: &DaemonSet, worth: Status) {
    let name = format!("{}/{}", one.metadata.namespace, one.metadata.name);
    let object = format!("DaemonSet {name}");
    if one.ready < one.desired {
        let message = format!("DaemonSet {name} has {} of {} pods Ready", one.ready, one.desired);
        let evidence = Evidence::new(object, "status.numberReady", one.ready.to_string(), one.desired.to_string());
        draft.add(worth, Reason::DaemonSetPodNotReady, message, None, vec![evidence]);
    } else if one.metadata.generation.is_some_and(|generation| generation > one.observed_generation) {
        let message =
            format!("what DaemonSet {name} counts is older than its last change: nothing has looked at it yet");
        let wanted = one.metadata.generation.map(|generation| generation.to_string()).unwrap_or_default();
        let evidence = Evidence::new(object, "status.observedGeneration", one.observed_generation.to_string(), wanted);
        draft.unknown(Reason::ObservationStale, message, evidence);
    }
}

/// The controller manager is alive, where it keeps a Lease (kubeadm, k3s and RKE2 do).
fn controllers<'a>(draft: &mut Draft<'a>, asked: &Asked<'a>) {
    let Some(leases) = required(draft, SourceId::Leases, &asked.facts.leases) else { return };
    let is_its =
        |lease: &&&Lease| lease.metadata.namespace == "kube-system" && lease.metadata.name == "kube-controller-manager";
    let Some(lease) = leases.iter().find(is_its) else { return };
    let age = lease.renew_time.map(|renewed| asked.now.duration_since(renewed).as_secs());
    if age.is_some_and(|age| age <= CONTROLLER_SECONDS) {
        return;
    }
    let seen = age.map_or_else(|| "never".to_owned(), |age| format!("{age} s ago"));
    let message = format!(
        "the controller manager renewed its Lease {seen}: what it counts of DaemonSets and others may be older than the power-on"
    );
    let object = "Lease kube-system/kube-controller-manager";
    let evidence = Evidence::new(object, "spec.renewTime", seen, format!("<= {CONTROLLER_SECONDS} s ago"));
    draft.unknown(Reason::ObservationStale, message, evidence);
}

/// Our clock and those of the nodes agree.
pub(super) fn clocks<'a>(draft: &mut Draft<'a>, _: &Asked<'a>, input: &'a GateInput<'a>) -> Answer {
    compared::compare(input, draft);
    "our clock and those of the nodes agree".to_owned().into()
}

/// Which boots a run or a post-check has proven. A boot that nobody has proven yet is no fault: this check is what it
/// lacks.
pub(super) fn boots<'a>(draft: &mut Draft<'a>, _: &Asked<'a>, input: &'a GateInput<'a>) -> Answer {
    let Some(judged) = judged(draft, input) else { return String::new().into() };
    let field = "status.nodeInfo.bootID";
    let (mut proof, mut anew) = (Vec::new(), Vec::new());
    for node in judged {
        let name = &node.metadata.name;
        let object = format!("Node {name}");
        if node.boot_id.is_empty() {
            let evidence = Evidence::new(object, field, "empty", "a boot ID");
            draft.unknown(Reason::ObservationMalformed, format!("node {name} tells no boot ID"), evidence);
            continue;
        }
        let at = format!("metadata.annotations[{ANNOTATION_PROVEN}]");
        let text = node.metadata.annotations.get(ANNOTATION_PROVEN);
        let proven = text.and_then(|text| document::<Proven>(draft, &object, &at, text));
        if proven.as_ref().is_some_and(|proven| proven.boot_id == node.boot_id) {
            proof.push(Evidence::new(object, field, &node.boot_id, "the proven one"));
        } else {
            let before =
                proven.map_or_else(|| "none".to_owned(), |proven| format!("{} at {}", proven.boot_id, proven.at));
            proof.push(Evidence::new(object, field, &node.boot_id, format!("proven before: {before}")));
            anew.push(name.as_str());
        }
    }
    let pass = match anew.as_slice() {
        [] => format!("all {} nodes are on the boot that was found good last", proof.len()),
        names => format!(
            "{} of {} nodes booted since they were last found good: {}",
            names.len(),
            proof.len(),
            some_of(names)
        ),
    };
    Answer { pass, proof }
}
