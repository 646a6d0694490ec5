//! A detached volume: always "unknown" to Longhorn; only its replicas tell the truth.

use super::super::longhorn_settings::DrainPolicy;
use super::attached::refused_drain;
use super::view::{Copy, Problem, View, places};
use super::volume::on_gone_nodes;
use crate::api::{Moment, Reason, Status, Strategy};
use crate::config::SingleReplica;

pub(super) fn judge(view: &View<'_, '_>, problems: &mut Vec<Problem>) {
    let volume = view.volume;
    let robustness = view.evidence("status.robustness", &volume.robustness, "unknown (detached)");
    if volume.robustness == "faulted" {
        let what = "is faulted: it has no usable copy";
        problems.push(view.block(Reason::LonghornVolumeFaulted, what, robustness));
    }
    let (Some(copies), Some(nodes)) = (view.copies(), view.cluster.nodes.as_ref()) else { return };
    problems.extend(on_gone_nodes(view, nodes, &copies, Reason::LonghornDetachedIncomplete));
    // On detach Longhorn marks what was still rebuilding as failed, so that neither time set means never used.
    let never_used = volume.last_degraded_at.is_none()
        && copies.iter().all(|copy| copy.is_unused() && !copy.replica.was_used)
        && !copies.is_empty();
    if never_used || volume.robustness == "faulted" {
        return;
    }
    let healthy: Vec<&Copy<'_>> = copies.iter().filter(|copy| copy.healthy).collect();
    if healthy.is_empty() {
        let bad = places(view, copies.iter());
        let bad = if bad.is_empty() { "it has no replica at all".to_owned() } else { format!("not healthy: {bad}") };
        let what = format!("is detached and has no healthy copy on a Ready node ({bad})");
        let evidence = view.evidence("healthy copies", "0", &volume.number_of_replicas.to_string());
        problems.push(view.block(Reason::LonghornVolumeFaulted, &what, evidence));
        return;
    }
    let complete = usize::try_from(volume.number_of_replicas).is_ok_and(|wanted| healthy.len() >= wanted);
    let others: Vec<&Copy<'_>> = healthy.iter().copied().filter(|copy| !copy.on_target).collect();
    let leaves = view.moment() != Moment::Settle;
    if !complete {
        problems.push(incomplete(view, &healthy, leaves && others.is_empty()));
    } else if leaves && others.is_empty() {
        problems.extend(only_on_target(view, &healthy));
    }
    let refused = view.moment() == Moment::Start
        && view.cluster.input.strategy == Strategy::Drain
        && healthy.iter().any(|copy| copy.on_target)
        && !others.is_empty()
        && !others.iter().any(|copy| nodes.is_schedulable(&copy.replica.node));
    if refused {
        problems.extend(held_drain(view, &others));
    }
}

/// e) It cannot rebuild while it is detached. A warning, unless the only copy would go with the target.
fn incomplete(view: &View<'_, '_>, healthy: &[&Copy<'_>], only_here: bool) -> Problem {
    let wanted = view.volume.number_of_replicas;
    let count = healthy.len();
    let (status, more) =
        if only_here { (Status::Block, format!(", all on {}", view.target())) } else { (Status::Warn, String::new()) };
    let what = format!("is detached with {count} of {wanted} healthy copies{more}: it cannot rebuild until attached");
    let evidence = view.evidence("healthy copies", count.to_string(), &wanted.to_string());
    view.problem(status, Reason::LonghornDetachedIncomplete, &what, vec![evidence])
}

/// d) The data comes back with the node, so that this is a policy; but Longhorn may refuse the drain over it
/// (ionfury/homelab#1648: eight minutes of retries, for ever).
fn only_on_target(view: &View<'_, '_>, healthy: &[&Copy<'_>]) -> Option<Problem> {
    let input = view.cluster.input;
    if view.moment() == Moment::Start && input.strategy == Strategy::Drain {
        let refused = held_drain(view, &[]);
        if refused.is_some() {
            return refused;
        }
    }
    // A power-off may last: what it takes offline is not simply back with the node.
    let status = match input.settings.longhorn.single_replica {
        SingleReplica::Allow => return None,
        SingleReplica::Warn if input.scope.name != "power-off" => Status::Warn,
        SingleReplica::Warn | SingleReplica::Block => Status::Block,
    };
    let what =
        format!("is detached, and its only healthy copy goes with the node: {}", places(view, healthy.iter().copied()));
    let evidence = view.evidence(format!("healthy copies outside {}", view.target()), "0", ">= 1");
    Some(view.problem(status, Reason::LonghornDetachedReplicaOnTarget, &what, vec![evidence]))
}

fn held_drain(view: &View<'_, '_>, others: &[&Copy<'_>]) -> Option<Problem> {
    let reason = Reason::LonghornDetachedReplicaOnTarget;
    refused_drain(view, reason, others, |policy| policy == DrainPolicy::BlockIfLast)
}
