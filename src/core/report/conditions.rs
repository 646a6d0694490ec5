//! The conditions of a record: kstatus' three and our own, derived from its phase in one place.

use jiff::Timestamp;

use crate::api::Phase;
use crate::api::record::{ConditionRecord, MaintenanceStatus};
use crate::plan::stamp;

/// Sets every condition that we own; the transition time moves only when the status does.
pub(crate) fn update(status: &mut MaintenanceStatus, now: Timestamp) {
    let phase: Phase = status.phase.parse().unwrap_or(Phase::Held);
    let rows: [(&str, &str); 8] = [
        ("Ready", truth(phase == Phase::Succeeded)),
        ("Reconciling", truth(!phase.is_terminal() && phase != Phase::Held)),
        ("Stalled", truth(matches!(phase, Phase::Held | Phase::Failed | Phase::Cancelled))),
        ("GatesPassed", truth(phase != Phase::Pending && status.blocked_since.is_none())),
        ("Drained", if status.strategy == "drain" { truth(past_drain(phase, status)) } else { "Unknown" }),
        ("Rebooted", if status.reboots { truth(status.returned_at.is_some()) } else { "Unknown" }),
        ("KubeletReachable", reachable(phase)),
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

const fn reachable(phase: Phase) -> &'static str {
    match phase {
        Phase::Uncordoning | Phase::Settling | Phase::Succeeded => "True",
        Phase::Held => "False",
        _ => "Unknown",
    }
}
