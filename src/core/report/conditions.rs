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
    let by_gates =
        [Outcome::HandoverTimeout, Outcome::StartTimeout, Outcome::OtherNodeUnavailable, Outcome::WindowClosed];
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::record::{FindingRecord, NodeRecord};

    fn status(phase: &str, outcome: &str) -> MaintenanceStatus {
        MaintenanceStatus {
            phase: phase.into(),
            outcome: outcome.into(),
            reboots: true,
            ..MaintenanceStatus::default()
        }
    }

    fn committed(phase: &str, outcome: &str) -> MaintenanceStatus {
        MaintenanceStatus { committed_at: Some("2026-11-30T01:00:00Z".into()), ..status(phase, outcome) }
    }

    fn back(phase: &str, outcome: &str) -> MaintenanceStatus {
        let node =
            NodeRecord { boot_id_before: "boot-1".into(), boot_id_after: "boot-2".into(), ..NodeRecord::default() };
        MaintenanceStatus { node: Some(node), ..committed(phase, outcome) }
    }

    fn broken(phase: &str, outcome: &str) -> MaintenanceStatus {
        let finding =
            FindingRecord { gate: "kubelet-reachability".into(), status: "block".into(), ..FindingRecord::default() };
        MaintenanceStatus { findings: vec![finding], ..back(phase, outcome) }
    }

    #[test]
    fn conditions_say_no_more_than_is_known() {
        // Ready, Reconciling, Stalled, GatesPassed, Drained, Rebooted, KubeletReachable, Settled
        #[rustfmt::skip]
        let rows: Vec<(&str, MaintenanceStatus, &str)> = vec![
            ("a wish", status("Pending", ""), "F T F F ? F ? F"),
            ("at work", status("Draining", ""), "F T F T ? F ? F"),
            ("could not start", status("Cancelled", "StartTimeout"), "F F T F ? F ? F"),
            ("gates said no", status("Failed", "HandoverTimeout"), "F F T F ? F ? F"),
            ("put back for another cause", status("BackingOut", "CordonRemoved"), "F T F ? ? F ? F"),
            ("away", committed("Returning", ""), "F T F T ? F ? F"),
            ("not back: nobody asked its kubelet", committed("Held", "NodeNotBack"), "F F T T ? F ? F"),
            ("a pair is broken", broken("Held", "KubeletUnreachable"), "F F T T ? T F F"),
            ("uncordoned, not whole", back("Held", "NotSettled"), "F F T T ? T ? F"),
            ("settling", back("Settling", ""), "F T F T ? T T F"),
            ("proven", back("Succeeded", "Proven"), "T F F T ? T T T"),
            ("accepted unproven", MaintenanceStatus { accepted_by: "anna".into(), ..back("Succeeded", "AcceptedUnproven") }, "T F F T ? T ? T"),
        ];
        for (row, mut status, wanted) in rows {
            update(&mut status, Timestamp::UNIX_EPOCH);
            let letter =
                |one: &ConditionRecord| if one.status == "Unknown" { "?" } else { &one.status[..1] }.to_owned();
            let seen: Vec<String> = status.conditions.iter().map(letter).collect();
            assert_eq!(seen.join(" "), wanted, "{row}");
        }
    }

    #[test]
    fn a_transition_has_the_time_of_the_change() {
        let at = |seconds| Timestamp::from_second(seconds).expect("a time");
        let mut status = status("Draining", "");
        update(&mut status, at(10));
        update(&mut status, at(20));
        status.phase = "Held".into();
        update(&mut status, at(30));
        let times: Vec<&str> = status.conditions.iter().map(|one| one.last_transition_time.as_str()).collect();
        assert_eq!(times[0], "1970-01-01T00:00:10Z", "Ready was false all along");
        assert_eq!(times[1], "1970-01-01T00:00:30Z", "Reconciling ended");
    }
}
