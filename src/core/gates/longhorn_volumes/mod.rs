//! Gate `longhorn-volumes`: no Longhorn volume degraded, rebuilding or in transition; no last copy on the node.
//!
//! # Checks
//! Per volume that is not being deleted: its state; while attached its robustness, what is at work on it (rebuild,
//! restore, expansion, migration, switch-over) and how many copies are really healthy; where the last healthy copy
//! is. *Healthy* is a copy with `healthyAt`, without `failedAt`, not in deletion, on a Ready node, and in mode RW
//! while the volume is attached.
//!
//! | moment | what it asks |
//! |---|---|
//! | start | everything |
//! | handover | every copy that is not on the target is healthy and nothing is at work there; the target's own copies may be failed, since a drain stops them |
//! | settle | everything but what only matters before a node goes (where the last copy is); what was already so at the start only warns |
//!
//! That a volume must have been healthy for 60 s on two reads (robustness flaps at the end of a rebuild) needs a
//! memory, which a pure check has not: the driver of the run asks twice.
//!
//! # Why
//! `robustness: healthy` does not say that the node may go: a volume with one replica is "healthy", two replicas may
//! share a node, and a detached volume is always "unknown". longhorn#1035, #1940, #4355, #9141.
//!
//! # Source of truth
//! `longhorn.io/v1beta2` volumes, replicas, engines and settings in `[longhorn] namespace`; core Nodes.
//! VolumeAttachments only tell how long a volume has been attaching.
//!
//! # Blocks which scopes
//! All, service-restart too: its cordon alone keeps Longhorn from rebuilding onto the node.
//!
//! # When unknown
//! A list that could not be read, an object that was not understood, a word for state or robustness that this
//! version does not know, an attached volume without its engine, an erasure-coded volume. Settings only where an
//! answer depends on them.
//!
//! # Runbook
//! `runbooks/Longhorn*.md`

mod attached;
mod detached;
#[cfg(test)]
mod tests;
mod view;
mod volume;

use jiff::Timestamp;

use super::longhorn_settings::LonghornSettings;
use super::storage::{List, NodeIndex, known_at_start, required};
use super::{Draft, GateInput, GateSpec, Read};
use crate::api::{Evidence, Finding, GateId, Moment, Policy, Reason, SourceId, Status};
use crate::facts::longhorn::Volume;
use view::{Cluster, Problem, View};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::LonghornVolumes,
    moments: &[Moment::Start, Moment::Handover, Moment::Settle],
    reads: &[
        SourceId::Nodes,
        SourceId::LonghornVolumes,
        SourceId::LonghornReplicas,
        SourceId::LonghornEngines,
        SourceId::LonghornSettings,
        SourceId::VolumeAttachments,
    ],
    reasons: REASONS,
    default_policy: Policy::Require,
    doc: "no Longhorn volume degraded, rebuilding or in transition; no last copy on the node",
    check,
};

/// In the order in which a person wants to hear of them: among several the first speaks.
const REASONS: &[Reason] = &[
    Reason::LonghornVolumeFaulted,
    Reason::LonghornLastReplicaOnTarget,
    Reason::LonghornVolumeDegraded,
    Reason::LonghornVolumeRebuilding,
    Reason::LonghornVolumeRobustnessUnknown,
    Reason::LonghornVolumeInTransition,
    Reason::LonghornVolumeMigrating,
    Reason::LonghornVolumeRestoring,
    Reason::LonghornVolumeExpanding,
    Reason::LonghornDetachedReplicaOnTarget,
    Reason::LonghornDetachedIncomplete,
    Reason::LonghornDataEngineV2OnTarget,
];

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::LonghornVolumes, input);
    let facts = input.facts;
    let volumes = match draft.read(SourceId::LonghornVolumes, &facts.longhorn_volumes) {
        Read::Known(volumes) => volumes,
        Read::Unreadable => return draft.finish(""),
        Read::NotAsked => return draft.not_applicable(Reason::NotAsked, "this input holds no Longhorn volumes"),
        Read::Absent if facts.longhorn_replicas.good().next().is_some() => {
            let evidence = Evidence::new("longhorn-volumes", "read", "absent", "as there are replicas: a list");
            draft.unknown(Reason::ObservationFailed, "there are Longhorn replicas, but no kind Volume", evidence);
            return draft.finish("");
        }
        Read::Absent => {
            return draft.not_applicable(Reason::NotInstalled, "Longhorn is not installed (no volumes.longhorn.io)");
        }
    };
    let mut problems = judge(&mut draft, input, &volumes);
    problems.sort_by_key(|problem| REASONS.iter().position(|reason| *reason == problem.reason));
    for problem in problems {
        let known = problem.evidence.first().is_some_and(|first| known_at_start(input, GateId::LonghornVolumes, first));
        let (status, message) = match problem.status {
            Status::Block if known => (Status::Warn, format!("{} (as at the start)", problem.message)),
            status => (status, problem.message),
        };
        draft.add(status, problem.reason, message, problem.since, problem.evidence);
    }
    draft.finish(pass(&volumes))
}

/// When Longhorn's last wait for a failed replica to come back ends: only then it makes a new one. None where nothing
/// waits, or nobody can tell until when.
pub(crate) fn replenishment_ends<'a>(input: &'a GateInput<'a>) -> Option<Timestamp> {
    // What could not be read is told by the gate itself.
    let mut draft = Draft::new(GateId::LonghornVolumes, input);
    let Read::Known(volumes) = draft.read(SourceId::LonghornVolumes, &input.facts.longhorn_volumes) else {
        return None;
    };
    let cluster = read(&mut draft, input);
    let waiting = volumes.iter().filter(|volume| {
        volume.metadata.deletion_timestamp.is_none() && volume.state == "attached" && volume.robustness == "degraded"
    });
    let ends = waiting.filter_map(|volume| attached::replenishment_end(&View::new(&cluster, volume)));
    ends.filter(|end| *end > input.now).max()
}

/// All that is known of Longhorn.
fn read<'a>(draft: &mut Draft<'a>, input: &'a GateInput<'a>) -> Cluster<'a> {
    let facts = input.facts;
    let because = "Longhorn is installed";
    let settings = LonghornSettings::read(draft, input);
    let nodes = NodeIndex::read(draft, input);
    let replicas = required(draft, SourceId::LonghornReplicas, &facts.longhorn_replicas, because);
    let engines = required(draft, SourceId::LonghornEngines, &facts.longhorn_engines, because);
    Cluster::new(input, nodes, settings, replicas, engines)
}

/// What is wrong with the volumes.
fn judge<'a>(draft: &mut Draft<'a>, input: &'a GateInput<'a>, volumes: &[&'a Volume]) -> Vec<Problem> {
    let cluster = read(draft, input);
    let mut problems = Vec::new();
    for volume in volumes {
        if volume.metadata.deletion_timestamp.is_none() {
            volume::judge(&View::new(&cluster, volume), &mut problems);
        }
    }
    problems
}

fn pass(volumes: &[&Volume]) -> String {
    let attached = volumes.iter().filter(|volume| volume.state == "attached").count();
    match volumes.len() {
        0 => "Longhorn has no volumes".to_owned(),
        all => format!("all {all} Longhorn volumes are whole ({attached} attached)"),
    }
}
