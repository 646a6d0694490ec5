//! The verdict on one volume: its state, what is at work on it, and then by whether it is attached.

use super::super::storage::NodeIndex;
use super::view::{Copy, Problem, View, places};
use super::{attached, detached};
use crate::api::{Moment, Reason, Status};
use crate::facts::TriState;
use crate::facts::longhorn::Volume;

/// Adds what is wrong with a volume.
pub(super) fn judge(view: &View<'_, '_>, problems: &mut Vec<Problem>) {
    let volume = view.volume;
    if volume.data_layout == Volume::SHARDED {
        let evidence = view.evidence("spec.dataLayout.type", &volume.data_layout, "replicated");
        let what = "is erasure-coded (sharded), which this version cannot judge";
        problems.push(view.problem(Status::Unknown, Reason::LonghornVolumeRobustnessUnknown, what, vec![evidence]));
        return;
    }
    if !["healthy", "degraded", "faulted", "unknown"].contains(&volume.robustness.as_str()) {
        problems.push(strange_word(view, "status.robustness", &volume.robustness));
    }
    problems.extend(at_work(view));
    match volume.state.as_str() {
        "attached" => attached::judge(view, problems),
        "detached" => detached::judge(view, problems),
        "attaching" | "detaching" | "creating" | "deleting" => problems.push(in_transition(view)),
        other => problems.push(strange_word(view, "status.state", other)),
    }
    if view.moment() == Moment::Start {
        problems.extend(data_engine_v2(view));
    }
}

fn strange_word(view: &View<'_, '_>, field: &str, word: &str) -> Problem {
    let evidence = view.evidence(field, word, "a known word");
    let what = format!("has {field} `{word}`, which this version does not know");
    view.problem(Status::Unknown, Reason::ObservationMalformed, &what, vec![evidence])
}

/// States that end by themselves, or stick. How long it has lasted is told by the attachment that asked for it.
fn in_transition(view: &View<'_, '_>) -> Problem {
    let state = view.volume.state.as_str();
    let since = match state {
        "attaching" => view.attachment().filter(|one| one.attached != Some(true)).and_then(|one| one.created),
        "detaching" => view.attachment().and_then(|one| one.metadata.deletion_timestamp),
        "creating" => view.volume.created,
        _ => None,
    };
    let what = match since.map(|since| view.cluster.input.now.duration_since(since).as_secs()) {
        None => format!("is {state}"),
        Some(seconds) => {
            let limit = view.cluster.input.settings.longhorn.transition_stuck_seconds;
            let stuck = if seconds > limit { format!(", longer than {limit} s: stuck") } else { String::new() };
            format!("is {state} for {seconds} s{stuck}")
        }
    };
    let evidence = view.evidence("status.state", state, "attached or detached");
    Problem { since, ..view.block(Reason::LonghornVolumeInTransition, &what, evidence) }
}

/// Work that the volume itself tells of, attached or not.
fn at_work(view: &View<'_, '_>) -> Vec<Problem> {
    let volume = view.volume;
    let mut found = Vec::new();
    if !volume.migration_node.is_empty() {
        let what = format!("is migrating to node {}", volume.migration_node);
        let evidence = view.evidence("spec.migrationNodeID", &volume.migration_node, "empty");
        found.push(view.block(Reason::LonghornVolumeMigrating, &what, evidence));
    }
    if !volume.switchover_state.is_empty() {
        let what = format!("is switching its engine over ({})", volume.switchover_state);
        let evidence = view.evidence("status.switchoverState", &volume.switchover_state, "empty");
        found.push(view.block(Reason::LonghornVolumeMigrating, &what, evidence));
    }
    if volume.expansion_required {
        let evidence = view.evidence("status.expansionRequired", "true", "false");
        found.push(view.block(Reason::LonghornVolumeExpanding, "is being expanded", evidence));
    }
    // A disaster-recovery volume is always "to be restored"; only its engine tells whether it is at it now.
    if !volume.standby {
        let condition = volume.condition("Restore").filter(|restore| restore.status != TriState::False);
        if let Some(restore) = condition {
            let evidence = view.evidence("status.conditions[Restore]", restore.status.as_str(), "False");
            let what = format!("is being restored from a backup ({})", restore.reason);
            found.push(view.block(Reason::LonghornVolumeRestoring, &what, evidence));
        } else if volume.restore_required {
            let evidence = view.evidence("status.restoreRequired", "true", "false");
            found.push(view.block(Reason::LonghornVolumeRestoring, "waits to be restored from a backup", evidence));
        }
    }
    found
}

/// Data engine v2 does not restart its engine in place, and its reboot bugs reach into 1.12 (longhorn#10970).
fn data_engine_v2(view: &View<'_, '_>) -> Option<Problem> {
    let volume = view.volume;
    let target = view.target();
    let there = volume.current_node == target || view.copies()?.iter().any(|copy| copy.on_target);
    (volume.data_engine == "v2" && there).then(|| {
        let what = format!("uses data engine v2 and is on {target}: rebuilds after reboots have failed there");
        let evidence = view.evidence("spec.dataEngine", "v2", "v1, or not on the target");
        view.problem(Status::Warn, Reason::LonghornDataEngineV2OnTarget, &what, vec![evidence])
    })
}

/// A copy on a node that Kubernetes does not know: it never comes back, and holds drains up (longhorn#10833).
pub(super) fn on_gone_nodes(
    view: &View<'_, '_>,
    nodes: &NodeIndex<'_>,
    copies: &[Copy<'_>],
    reason: Reason,
) -> Option<Problem> {
    let gone: Vec<&Copy<'_>> =
        copies.iter().filter(|copy| !copy.replica.node.is_empty() && nodes.is_gone(&copy.replica.node)).collect();
    let first = gone.first()?;
    let what = format!("has a replica on a node that Kubernetes does not know: {}", places(view, gone.iter().copied()));
    let name = format!("Replica {}", first.replica.metadata.full_name());
    let evidence = vec![
        view.evidence("replicas on gone nodes", gone.len().to_string(), "0"),
        crate::api::Evidence::new(name, "spec.nodeID", &first.replica.node, "a Node that exists"),
    ];
    Some(view.problem(Status::Block, reason, &what, evidence))
}
