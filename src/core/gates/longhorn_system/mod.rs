//! Gate `longhorn-system`: what Longhorn runs on is whole, and it will let the node be drained.
//!
//! # Checks
//! | moment | what it asks |
//! |---|---|
//! | start | every Longhorn node Ready, the target's too; instance managers of the others running, none orphaned; disks of the others Ready; nothing being moved away; shared volumes served; with strategy drain, Longhorn's own verdict on the drain: no volume attached to the target by hand, each replica there with a running, protected other (or a place to be moved to, where `node-drain-policy` moves) |
//! | handover | nodes, instance managers, evictions and shared volumes of the others |
//! | verify | Longhorn's node of the target Ready; its instance manager is not asked, since Longhorn starts none on a cordoned node |
//! | settle | all as at the start but the drain, and of the target also its instance manager, its disks, and that it takes replicas |
//!
//! At verify and settle, what was already so at the start only warns. Whether another copy is healthy, and on a
//! schedulable node, is told by gate `longhorn-volumes`; here only what else Longhorn wants of it.
//!
//! # Why
//! Longhorn lifts the budget of an instance manager only when no engine is left there and every replica has another
//! one that runs and is protected itself; a volume that a person attached never leaves (longhorn#5910, #10833,
//! harvester#6264). A node that Longhorn does not call Ready neither takes replicas back nor ends a drain.
//!
//! # Source of truth
//! `longhorn.io/v1beta2` nodes, instancemanagers, volumeattachments, volumes, replicas, engines and settings in
//! `[longhorn] namespace`; `policy/v1` PodDisruptionBudgets there; core Nodes.
//!
//! # Blocks which scopes
//! All. What only a drain meets is asked with strategy drain only.
//!
//! # When unknown
//! A list that could not be read, an object that was not understood, a drain policy that this version does not know.
//! Longhorn before 1.5 has no volumeattachments: then nothing is said of volumes that a person attached.
//!
//! # Runbook
//! `runbooks/Longhorn*.md`

mod drain;
mod managers;
mod members;
mod shares;
mod system;
#[cfg(test)]
mod tests;

use super::{Draft, GateInput, GateSpec, Read};
use crate::api::{Evidence, Finding, GateId, Moment, Policy, Reason, SourceId, Status, Strategy};
use system::{Problem, System};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::LonghornSystem,
    moments: &[Moment::Start, Moment::Handover, Moment::Verify, Moment::Settle],
    reads: &[
        SourceId::Nodes,
        SourceId::PodDisruptionBudgets,
        SourceId::LonghornVolumes,
        SourceId::LonghornReplicas,
        SourceId::LonghornEngines,
        SourceId::LonghornSettings,
        SourceId::LonghornNodes,
        SourceId::LonghornInstanceManagers,
        SourceId::LonghornAttachments,
    ],
    reasons: REASONS,
    default_policy: Policy::Require,
    doc: "Longhorn's nodes, instance managers and disks whole; it will let the node be drained",
    check,
};

/// In the order in which a person wants to hear of them: among several the first speaks.
const REASONS: &[Reason] = &[
    Reason::LonghornNodeNotReady,
    Reason::LonghornInstanceManagerNotRunning,
    Reason::LonghornInstanceManagerOrphaned,
    Reason::LonghornDiskNotReady,
    Reason::LonghornNotSchedulable,
    Reason::LonghornShareNotRunning,
    Reason::LonghornEvicting,
    Reason::LonghornManuallyAttached,
    Reason::LonghornDrainRefused,
    Reason::LonghornCordonMovesReplicas,
    Reason::LonghornShareOnTarget,
];

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::LonghornSystem, input);
    let members = match draft.read(SourceId::LonghornNodes, &input.facts.longhorn_nodes) {
        Read::Known(members) => members,
        Read::Unreadable => return draft.finish(""),
        Read::NotAsked => return draft.not_applicable(Reason::NotAsked, "this input holds no nodes of Longhorn"),
        Read::Absent if input.facts.longhorn_volumes.known().is_some() => {
            let evidence = Evidence::new("longhorn-nodes", "read", "absent", "as there are volumes: a list");
            draft.unknown(Reason::ObservationFailed, "Longhorn has volumes, but no kind Node", evidence);
            return draft.finish("");
        }
        Read::Absent => {
            return draft.not_applicable(Reason::NotInstalled, "Longhorn is not installed (no nodes.longhorn.io)");
        }
    };
    let count = members.len();
    let mut problems = Vec::new();
    if let Some(system) = System::read(&mut draft, input, members) {
        judge(&system, &mut problems);
    }
    problems.sort_by_key(|problem| REASONS.iter().position(|reason| *reason == problem.reason));
    for problem in problems {
        add(&mut draft, input, problem);
    }
    draft.finish(pass(input, count))
}

fn judge(system: &System<'_>, problems: &mut Vec<Problem>) {
    members::judge(system, problems);
    let moment = system.input.moment;
    if moment == Moment::Verify {
        return;
    }
    managers::judge(system, problems);
    shares::judge(system, problems);
    if moment == Moment::Start {
        drain::judge(system, problems);
    }
}

/// At verify and settle what was so at the start holds nobody.
fn add(draft: &mut Draft<'_>, input: &GateInput<'_>, problem: Problem) {
    let back = matches!(input.moment, Moment::Verify | Moment::Settle);
    let seen = problem.evidence.first();
    let known = back && seen.is_some_and(|first| super::reading::was_failing(input, GateId::LonghornSystem, first));
    let (status, message) = match problem.status {
        Status::Block if known => (Status::Warn, format!("{} (as at the start)", problem.message)),
        status => (status, problem.message),
    };
    draft.add(status, problem.reason, message, problem.since, problem.evidence);
}

fn pass(input: &GateInput<'_>, count: usize) -> String {
    let target = input.target;
    match (input.moment, input.strategy) {
        (Moment::Verify, _) => format!("Longhorn says that {target} is Ready"),
        (Moment::Start, Strategy::Drain) => {
            format!("all {count} Longhorn nodes are Ready, with what a drain of {target} needs of them")
        }
        (Moment::Handover, _) => format!("Longhorn is whole without {target}"),
        _ => format!("all {count} Longhorn nodes are Ready, with their instance managers and disks"),
    }
}
