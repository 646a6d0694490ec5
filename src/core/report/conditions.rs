//! The conditions of a record: kstatus' three and our own, derived from its phase in one place.

use jiff::Timestamp;

use crate::api::record::{ConditionRecord, MaintenanceStatus};
use crate::api::{GateId, Outcome, Phase, Status};
use crate::plan::stamp;

/// Sets every condition that we own; the transition time moves only when the status does.
pub(crate) fn update(status: &mut MaintenanceStatus, now: Timestamp) {
    let phase: Phase = status.phase.parse().unwrap_or(Phase::Held);
    let rows: [(&str, &str); 8] = [
        ("Ready", truth(phase == Phase::Succeeded)),
        ("Reconciling", truth(!phase.is_terminal() && phase != Phase::Held)),
        ("Stalled", truth(matches!(phase, Phase::Held | Phase::Failed | Phase::Cancelled))),
        ("GatesPassed", gates_passed(phase, status)),
        ("Drained", if status.strategy == "drain" { truth(past_drain(phase, status)) } else { "Unknown" }),
        ("Rebooted", if status.reboots { truth(rebooted(status)) } else { "Unknown" }),
        ("KubeletReachable", reachable(phase, status)),
        ("Settled", truth(phase == Phase::Succeeded)),
    ];
    let reason = if status.outcome.is_empty() { status.phase.clone() } else { status.outcome.clone() };
    for (kind, value) in rows {
        let known = status.conditions.iter_mut().find(|condition| condition.kind == kind);
        match known {
            Some(condition) => {
                if condition.status != value {
                    condition.last_transition_time = stamp(now);
                    value.clone_into(&mut condition.status);
                }
                condition.reason.clone_from(&reason);
                condition.message.clone_from(&status.message);
                condition.observed_generation = status.observed_generation;
            }
            None => status.conditions.push(ConditionRecord {
                kind: kind.to_owned(),
                status: value.to_owned(),
                reason: reason.clone(),
                message: status.message.clone(),
                last_transition_time: stamp(now),
                observed_generation: status.observed_generation,
            }),
        }
    }
}

const fn truth(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

fn past_drain(phase: Phase, status: &MaintenanceStatus) -> bool {
    let left = status.drain.as_ref().is_some_and(|drain| drain.left == 0);
    left && !matches!(phase, Phase::Pending | Phase::Cordoning | Phase::Draining | Phase::BackingOut)
}

fn rebooted(status: &MaintenanceStatus) -> bool {
    let node = status.node.as_ref();
    node.is_some_and(|node| !node.boot_id_after.is_empty() && node.boot_id_after != node.boot_id_before)
}

/// Whether the gates let it go on. A run that was put back keeps no word of gates that it may never have asked: False
/// where they are why, else Unknown.
fn gates_passed(phase: Phase, status: &MaintenanceStatus) -> &'static str {
    let before = matches!(phase, Phase::BackingOut | Phase::Failed | Phase::Cancelled) && status.committed_at.is_none();
    let by_gates = [Outcome::HandoverTimeout, Outcome::StartTimeout, Outcome::OtherNodeUnavailable];
    if phase == Phase::Pending || by_gates.iter().any(|outcome| before && outcome.as_str() == status.outcome) {
        "False"
    } else if before {
        "Unknown"
    } else {
        truth(status.blocked_since.is_none())
    }
}

/// Held says what its findings say: a node that is not back was not asked.
fn reachable(phase: Phase, status: &MaintenanceStatus) -> &'static str {
    let broken = status.findings.iter().any(|finding| {
        finding.gate == GateId::KubeletReachability.as_str()
            && (finding.status == Status::Block.as_str() || finding.status == Status::Unknown.as_str())
    });
    match phase {
        Phase::Uncordoning | Phase::Settling | Phase::Succeeded if status.accepted_by.is_empty() && !broken => "True",
        Phase::Held | Phase::Verifying | Phase::Settling | Phase::Succeeded if broken => "False",
        _ => "Unknown",
    }
}
