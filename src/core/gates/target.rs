//! Gate `target`: the node itself: Ready, not cordoned by someone else, still ours at hand-over.
//!
//! A cordon is ours if the owner annotation is there *and* `managedFields` name our field manager for
//! `spec.unschedulable`: an annotation alone can be left over from a run whose cordon somebody lifted and set anew,
//! and everybody who judged cordons by one mark got it wrong in one direction (kured#63, k8s-driver-manager#212).
//! After the return only the boot ID proves a reboot: a short one never leaves Ready.

use super::reading::{deletion_taint, document, node_exists, required};
use super::{Draft, GateInput, GateSpec, RunContext, nodes};
use crate::api::names::{ANNOTATION_OWNER, FIELD_MANAGER};
use crate::api::{Evidence, Finding, GateId, Moment, Owner, Policy, Reason, SourceId, Status, Trigger};
use crate::facts::{Lease, Node};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::Target,
    moments: &[Moment::Start, Moment::Cordoned, Moment::Handover, Moment::Verify],
    reads: &[SourceId::Nodes, SourceId::Leases],
    reasons: &[
        Reason::TargetNotFound,
        Reason::TargetNotReady,
        Reason::TargetCordonedByOther,
        Reason::CordonRemoved,
        Reason::NodeDidNotReboot,
    ],
    default_policy: Policy::Require,
    doc: "the node itself: Ready, not cordoned by someone else, still ours at hand-over",
    check,
};

/// Names of existing nodes shown where the wanted one does not exist.
const SHOWN_NODES: usize = 10;

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::Target, input);
    let name = input.target;
    let Some(all) = required(&mut draft, SourceId::Nodes, &input.facts.nodes) else {
        return draft.finish("");
    };
    let Some(node) = all.iter().find(|node| node.metadata.name == name) else {
        // A node that is there and cannot be understood is an unknown of the draft already.
        if !node_exists(input, name) {
            not_found(&mut draft, name, &all);
        }
        return draft.finish("");
    };
    match input.moment {
        Moment::Start => {
            ready(&mut draft, node);
            cordon_at_start(input, &mut draft, node);
            draft.finish(format!("node {name} is Ready, and nobody else has cordoned it"))
        }
        Moment::Cordoned | Moment::Handover => {
            cordon_is_ours(input, &mut draft, node);
            draft.finish(format!("node {name} is still cordoned for this run"))
        }
        Moment::Verify | Moment::Settle => {
            ready(&mut draft, node);
            let leases = required(&mut draft, SourceId::Leases, &input.facts.leases);
            if let Some(leases) = leases {
                lease(input, &mut draft, &leases);
            }
            let boot = if input.scope.reboots { ", with a new boot ID" } else { "" };
            rebooted(input, &mut draft, node);
            draft.finish(format!("node {name} is Ready and its kubelet reports{boot}"))
        }
    }
}

fn not_found(draft: &mut Draft<'_>, name: &str, all: &[&Node]) {
    let mut known: Vec<&str> = all.iter().map(|node| node.metadata.name.as_str()).collect();
    known.sort_unstable();
    let more = known.len().saturating_sub(SHOWN_NODES);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    known.truncate(SHOWN_NODES);
    draft.block(
        Reason::TargetNotFound,
        format!("there is no node {name}; there are: {}{more}", known.join(", ")),
        Evidence::new(format!("Node {name}"), "metadata.name", "not found", "an existing node"),
    );
}

fn ready(draft: &mut Draft<'_>, node: &Node) {
    if let Some((message, since, evidence)) = nodes::not_ready(node) {
        let since_text = since.map_or_else(String::new, |since| format!(", since {since}"));
        draft.add(Status::Block, Reason::TargetNotReady, format!("{message}{since_text}"), since, vec![evidence]);
    }
}

/// Reads the owner annotation; an unreadable one is an unknown, since it may be ours.
fn owner(draft: &mut Draft<'_>, node: &Node) -> Option<Owner> {
    let text = node.metadata.annotations.get(ANNOTATION_OWNER)?;
    document(draft, &format!("Node {}", node.metadata.name), &owner_field(), text)
}

fn owner_field() -> String {
    format!("metadata.annotations[{ANNOTATION_OWNER}]")
}

fn set_by_us(node: &Node) -> bool {
    node.unschedulable && node.unschedulable_manager.as_deref() == Some(FIELD_MANAGER)
}

fn manager(node: &Node) -> String {
    node.unschedulable_manager.as_ref().map_or_else(|| "nobody that managedFields name".to_owned(), Clone::clone)
}

fn cordon_at_start(input: &GateInput<'_>, draft: &mut Draft<'_>, node: &Node) {
    let owner = owner(draft, node);
    let name = &node.metadata.name;
    let object = format!("Node {name}");
    let (message, evidence) = if let Some(taint) = deletion_taint(node) {
        let message = format!("node {name} is about to be deleted (taint {taint})");
        (message, Evidence::new(&object, "spec.taints", taint, "not about to be deleted"))
    } else if !node.is_cordoned() {
        return;
    } else if !node.unschedulable {
        let message = format!("node {name} is cordoned by taint {} only", Node::UNSCHEDULABLE_TAINT);
        (message, Evidence::new(&object, "spec.taints", Node::UNSCHEDULABLE_TAINT, "not cordoned"))
    } else {
        let set_by = manager(node);
        let message = match &owner {
            None => format!("node {name} is cordoned, and not by maint (set by {set_by})"),
            Some(_) if !set_by_us(node) => {
                format!(
                    "node {name} is cordoned by someone else: it has our owner annotation, but the cordon was set by {set_by}"
                )
            }
            Some(owner) if input.run.is_some_and(|run| run.maintenance_uid == owner.maintenance) => return,
            Some(owner) => format!("node {name} is cordoned by another run of maint (uid {})", owner.maintenance),
        };
        (message, Evidence::new(&object, "spec.unschedulable", format!("true, set by {set_by}"), "not cordoned"))
    };
    match input.trigger {
        Trigger::Unattended => draft.block(Reason::TargetCordonedByOther, message, evidence),
        Trigger::Manual => {
            let message = format!("{message}; a manual run goes on, and leaves this cordon where it is");
            draft.warn(Reason::TargetCordonedByOther, message, evidence);
        }
    }
}

fn cordon_is_ours(input: &GateInput<'_>, draft: &mut Draft<'_>, node: &Node) {
    let Some(run) = run(input, draft) else { return };
    let owner = owner(draft, node);
    if draft.stops() {
        return;
    }
    let name = &node.metadata.name;
    let object = format!("Node {name}");
    let (message, evidence) = if !node.unschedulable {
        let message = format!("somebody uncordoned node {name} while this run was at work");
        (message, Evidence::new(&object, "spec.unschedulable", "false", "true"))
    } else if owner.as_ref().is_none_or(|owner| owner.maintenance != run.maintenance_uid) {
        let seen = owner.map_or_else(|| "missing".to_owned(), |owner| format!("uid {}", owner.maintenance));
        let message = format!("node {name} is cordoned, but no longer for this run: the owner annotation is {seen}");
        (message, Evidence::new(&object, owner_field(), seen, format!("uid {}", run.maintenance_uid)))
    } else if !run.was_unschedulable && !set_by_us(node) {
        // Someone lifted our cordon and set his own: the annotation stayed. Pods may have come back in between.
        let set_by = manager(node);
        let message = format!("the cordon of node {name} is no longer ours: it was set anew by {set_by}");
        (message, Evidence::new(&object, "managedFields of spec.unschedulable", set_by, FIELD_MANAGER))
    } else {
        return;
    };
    draft.block(Reason::CordonRemoved, message, evidence);
}

fn lease(input: &GateInput<'_>, draft: &mut Draft<'_>, leases: &[&Lease]) {
    let name = input.target;
    let limit = input.settings.limits.node_lease_max_age_seconds;
    let age = nodes::lease_age_seconds(input, leases, name);
    let object = format!("Lease {}/{name}", Lease::NODE_NAMESPACE);
    match age {
        Some(age) if age.abs() <= limit => {}
        Some(age) if age < 0 => draft.unknown(
            Reason::TargetNotReady,
            format!("the Lease of node {name} is renewed {} s in the future: its clock or ours is wrong", -age),
            Evidence::new(object, "spec.renewTime", format!("{age} s ago"), format!("<= {limit} s ago")),
        ),
        _ => {
            let seen = age.map_or_else(|| "never".to_owned(), |age| format!("{age} s ago"));
            draft.block(
                Reason::TargetNotReady,
                format!(
                    "the kubelet of node {name} does not report: its Lease was renewed {seen}, wanted within {limit} s"
                ),
                Evidence::new(object, "spec.renewTime", seen, format!("<= {limit} s ago")),
            );
        }
    }
}

fn rebooted(input: &GateInput<'_>, draft: &mut Draft<'_>, node: &Node) {
    if !input.scope.reboots {
        return;
    }
    let Some(run) = run(input, draft) else { return };
    let name = &node.metadata.name;
    let evidence =
        |value: &str, wanted: &str| Evidence::new(format!("Node {name}"), "status.nodeInfo.bootID", value, wanted);
    let Some(before) = run.boot_id_before.as_deref().filter(|before| !before.is_empty()) else {
        draft.unknown(
            Reason::NodeDidNotReboot,
            format!("whether node {name} rebooted is not known: the boot ID before the act was not recorded"),
            evidence(&node.boot_id, "another one than before the act"),
        );
        return;
    };
    if node.boot_id.is_empty() {
        let message = format!("whether node {name} rebooted is not known: its boot ID is empty");
        draft.unknown(Reason::NodeDidNotReboot, message, evidence("", &format!("another one than {before}")));
    } else if node.boot_id == before {
        let message = format!("node {name} did not reboot: its boot ID is still {before}");
        draft.block(Reason::NodeDidNotReboot, message, evidence(before, &format!("another one than {before}")));
    }
}

/// The run; these moments have no meaning without one.
fn run<'a>(input: &GateInput<'a>, draft: &mut Draft<'_>) -> Option<&'a RunContext> {
    if input.run.is_none() {
        draft.unknown(
            Reason::ObservationFailed,
            format!("moment {} was asked without the run that it belongs to", input.moment),
            Evidence::new("Maintenance", "the run", "none", "the record of this run"),
        );
    }
    input.run
}

#[cfg(test)]
mod tests;
