//! Gate `workloads`: no pod of the target is lost, none is left, and its DaemonSets come back.
//!
//! # Checks
//! - Start, strategy drain: a running pod that nothing would bring back blocks, unless a rule or its annotation
//!   `maint.dev/evict: "true"` lets it go; so does one that is to be skipped while kured, which skips nothing, drains.
//!   What is told and stops nothing: pods that may run here only, pods that may take longer to end than the drain may.
//! - Handover, strategy drain: only pods of DaemonSets, static, finished and skipped ones are left.
//! - Verify: each DaemonSet that had a Ready pod here at the start has one again.
//!
//! # Why
//! An evicted pod without a controller is gone for good (kubectl drain asks for `--force`, and kured always forces). A
//! network or storage agent that does not come back makes a node that is Ready and useless
//! (terraform-hcloud-kube-hetzner#270).
//!
//! # Source of truth
//! The target's pods, their owners, `apps/v1` DaemonSets; what the record kept of the start.
//!
//! # Blocks which scopes
//! All at verify, those whose strategy is drain before.
//!
//! # When unknown
//! The target's pods could not be read, or one of them could not be understood.
//!
//! # Runbook
//! `runbooks/PodWithoutController.md`, `PodSkippedWithKured.md`, `PodsRemaining.md`, `DaemonSetPodNotReady.md`,
//! `PodPinnedToNode.md`, `GraceTooLong.md`

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::drain;
use super::listing::built_in;
use super::{Draft, GateInput, GateSpec};
use crate::api::{Evidence, Finding, GateId, Moment, Policy, Reason, SourceId, Strategy};
use crate::drain::{DrainPlan, Warning, WarningKind};
use crate::facts::{Item, Listed, Pod};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::Workloads,
    moments: &[Moment::Start, Moment::Handover, Moment::Verify],
    reads: drain::READS,
    reasons: &[
        Reason::PodWithoutController,
        Reason::PodSkippedWithKured,
        Reason::PodPinnedToNode,
        Reason::GraceTooLong,
        Reason::PodsRemaining,
        Reason::DaemonSetPodNotReady,
    ],
    default_policy: Policy::Require,
    doc: "no pod of the node is lost, and its DaemonSets come back",
    check,
};

/// DaemonSets kept of the start.
pub const MAX_DAEMON_SETS: usize = 100;

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::Workloads, input);
    match (input.moment, input.strategy) {
        (Moment::Verify, _) => return returned(draft, input),
        (_, Strategy::CordonOnly) => {
            return draft.not_applicable(Reason::Passed, "cordon-only evicts no pod, so none is lost");
        }
        _ => {}
    }
    let Some(view) = drain::view(&mut draft, input) else { return draft.finish("") };
    if input.moment == Moment::Handover {
        for entry in view.going() {
            let name = entry.pod.metadata.full_name();
            let evidence = Evidence::new(format!("Pod {name}"), "spec.nodeName", input.target, "another node, or gone");
            draft.block(Reason::PodsRemaining, format!("pod {name} is still on {}", input.target), evidence);
        }
        return draft.finish(format!("only pods that stay are left on {}", input.target));
    }
    let plan = DrainPlan::of(&view, input.settings.run.drain_timeout_seconds);
    for pod in &plan.never {
        if matches!(pod.reason, Reason::PodWithoutController | Reason::PodSkippedWithKured) {
            let name = format!("{}/{}", pod.namespace, pod.name);
            let (field, wanted) = match pod.reason {
                Reason::PodWithoutController => ("metadata.ownerReferences", "a controller that is there"),
                _ => ("what becomes of it", "evicted"),
            };
            let value = if pod.reason == Reason::PodWithoutController { "none" } else { "skipped" };
            let evidence = Evidence::new(format!("Pod {name}"), field, value, wanted);
            draft.block(pod.reason, format!("pod {name} {}; {}", pod.why, pod.remedy), evidence);
        }
    }
    for warning in &plan.warnings {
        warn(&mut draft, input, warning);
    }
    draft.finish(format!("no pod of {} would be lost", input.target))
}

/// What is told of the plan's warnings: not what every night has.
fn warn(draft: &mut Draft<'_>, input: &GateInput<'_>, warning: &Warning) {
    let (reason, field, value, wanted) = match warning.kind {
        WarningKind::Pinned => (Reason::PodPinnedToNode, "nodes that it may run on", input.target, "another one, too"),
        WarningKind::LongGrace => {
            (Reason::GraceTooLong, "terminationGracePeriodSeconds", "longer than the drain may take", "shorter")
        }
        WarningKind::SingleReplica
        | WarningKind::AllReplicasHere
        | WarningKind::EmptyDir
        | WarningKind::Finalizers
        | WarningKind::ToleratesCordon
        | WarningKind::WaitsForCompletion
        | WarningKind::PrimaryMoves
        | WarningKind::KubeletSilent
        | WarningKind::DaemonSetStays => return,
    };
    draft.warn(
        reason,
        format!("{} {}", warning.object, warning.message),
        Evidence::new(&warning.object, field, value, wanted),
    );
}

/// The DaemonSets that had a Ready pod on the node have one again.
fn returned<'a>(mut draft: Draft<'a>, input: &'a GateInput<'a>) -> Finding {
    let Some(pods) = built_in(&mut draft, SourceId::TargetPods, &input.facts.target_pods) else {
        return draft.finish("");
    };
    let Some(daemon_sets) = built_in(&mut draft, SourceId::DaemonSets, &input.facts.daemon_sets) else {
        return draft.finish("");
    };
    let wanted = input.run.map(|run| run.daemon_sets.as_slice()).unwrap_or_default();
    let ready = ready_daemon_sets(pods.items.iter().copied(), input.target);
    for name in wanted {
        let deleted = daemon_sets.complete && !daemon_sets.items.iter().any(|one| one.metadata.full_name() == *name);
        // Who deleted it since wants no pod of it; a malformed pod may be the one, and is an unknown already.
        if deleted || ready.contains(name) || !pods.complete {
            continue;
        }
        let message = format!("DaemonSet {name} had a Ready pod on {} at the start and has none now", input.target);
        let evidence = Evidence::new(format!("DaemonSet {name}"), "Ready pods on the node", "0", "1");
        draft.block(Reason::DaemonSetPodNotReady, message, evidence);
    }
    let count = wanted.len();
    draft.finish(match count {
        0 => format!("no DaemonSet had a Ready pod on {} at the start", input.target),
        1 => "the DaemonSet that had a Ready pod here at the start has one again".to_owned(),
        _ => format!("all {count} DaemonSets that had a Ready pod here at the start have one again"),
    })
}

/// `namespace/name` of the DaemonSets with a Ready pod on the node, in order, for the record.
#[must_use]
pub fn daemon_sets_of(pods: &Listed<Pod>, node: &str) -> Vec<String> {
    let good = pods.known().into_iter().flatten().filter_map(|item| match item {
        Item::Good(pod) => Some(pod),
        Item::Malformed(_) => None,
    });
    ready_daemon_sets(good, node).into_iter().take(MAX_DAEMON_SETS).collect()
}

fn ready_daemon_sets<'a>(pods: impl Iterator<Item = &'a Pod>, node: &str) -> BTreeSet<String> {
    let here = pods.filter(|pod| pod.node_name.as_deref() == Some(node) && pod.is_of("DaemonSet") && pod.is_ready());
    let name = |pod: &Pod| pod.controller.as_ref().map(|owner| format!("{}/{}", pod.metadata.namespace, owner.name));
    here.filter_map(name).collect()
}
