//! What is told, and that a repeated step tells nothing new.

use super::*;
use crate::api::record::{MaintenanceSpec, NodeRecord};

fn at(seconds: i64) -> Timestamp {
    "2026-11-30T02:00:00Z".parse::<Timestamp>().expect("a time") + jiff::SignedDuration::from_secs(seconds)
}

fn record() -> Maintenance {
    let spec = MaintenanceSpec {
        node_name: "worker2".into(),
        scope: "reboot".into(),
        action: "pod".into(),
        requested_by: "anna".into(),
        ..MaintenanceSpec::default()
    };
    let mut record = Maintenance::new("worker2-1", spec);
    record.metadata.uid = Some("u-1".into());
    record
}

fn status(phase: &str, seconds: i64) -> MaintenanceStatus {
    MaintenanceStatus {
        phase: phase.into(),
        step_started_at: Some(stamp(at(seconds))),
        message: "a sentence".into(),
        ..MaintenanceStatus::default()
    }
}

fn finding(gate: &str, status: &str, reason: &str) -> FindingRecord {
    FindingRecord {
        gate: gate.into(),
        status: status.into(),
        reason: reason.into(),
        message: "it is so".into(),
        since: Some(stamp(at(-5))),
        ..FindingRecord::default()
    }
}

/// `Maintenance MaintenanceStarted Normal`, ...
fn lines(notes: &[EventNote]) -> Vec<String> {
    let kind = |note: &EventNote| if note.warning { "Warning" } else { "Normal" };
    notes.iter().map(|note| format!("{} {} {} {}", note.regarding.kind, note.reason, kind(note), note.count)).collect()
}

#[test]
fn a_phase_that_begins_is_told_of_the_run_and_of_the_node_and_once() {
    let rows = [
        ("Pending", "MaintenanceWished Normal"),
        ("Cordoning", "MaintenanceStarted Normal"),
        ("Draining", "NodeDraining Normal"),
        ("Acting", "NodeReadyForAction Normal"),
        ("Returning", "MaintenanceCommitted Normal"),
        ("Verifying", "NodeVerifying Normal"),
        ("Uncordoning", "NodeProven Normal"),
        ("Settling", "ClusterSettling Normal"),
        ("BackingOut", "MaintenanceBackingOut Warning"),
        ("Held", "MaintenanceHeld Warning"),
        ("Succeeded", "MaintenanceFinished Normal"),
        ("Failed", "MaintenanceBackedOut Warning"),
        ("Cancelled", "MaintenanceBackedOut Normal"),
    ];
    assert_eq!(rows.len(), Phase::ALL.len());
    for (phase, wanted) in rows {
        let new = status(phase, 7);
        let before = status("Other", 0);
        let told = changes(&record(), Some(&before), &new);
        assert_eq!(lines(&told), [format!("Maintenance {wanted} 1"), format!("Node {wanted} 1")], "{phase}");
        assert_eq!(told, changes(&record(), None, &new), "{phase}: repeated, by whomever, it is the same");
        assert_eq!(changes(&record(), Some(&new), &new), [], "{phase}: nothing changed");
        let later = changes(&record(), None, &status(phase, 8));
        assert_ne!(told[0].name, later[0].name, "{phase}: entered again it is another one");
        assert_ne!(told[0].name, told[1].name);
        assert_eq!(told[0].at, at(7));
    }
}

#[test]
fn who_is_named_is_found_by_kubectl() {
    let mut new = status("Cordoning", 7);
    let told = changes(&record(), None, &new);
    let who = |subject: &Subject| format!("{} {} {}", subject.kind, subject.name, subject.uid);
    assert_eq!(who(&told[0].regarding), "Maintenance worker2-1 u-1");
    assert_eq!(who(&told[1].regarding), "Node worker2 worker2", "without a uid the name, as the kubelet does");
    assert_eq!(
        (told[0].related.as_ref(), told[1].related.as_ref()),
        (Some(&told[1].regarding), Some(&told[0].regarding))
    );
    assert_eq!(told[1].namespace(), "default");
    new.node = Some(NodeRecord { uid: "n-2".into(), ..NodeRecord::default() });
    assert_eq!(who(&changes(&record(), None, &new)[1].regarding), "Node worker2 n-2");
}

#[test]
fn each_gate_that_holds_a_run_up_is_told_under_its_own_reason_and_again_after_a_while() {
    let rows: &[(&str, i64, i64, usize)] = &[
        // Phase, seconds since it is blocked, count, Events.
        ("Pending", 0, 1, 4),
        ("Pending", 599, 1, 4),
        ("Pending", 600, 2, 4),
        ("Draining", 6_000, 11, 4),
        ("Acting", 5, 1, 4),
        ("Verifying", 600, 0, 0),
        ("Held", 600, 0, 0),
        ("Failed", 600, 0, 0),
    ];
    for (phase, seconds, count, number) in rows {
        let mut status = status(phase, 0);
        status.blocked_since = Some(stamp(at(0)));
        status.findings = vec![
            finding("coredns-hpa", "block", "HPAScalingInactive"),
            finding("attachments", "unknown", "ObservationFailed"),
            finding("control", "warn", "PostCheckMissing"),
        ];
        let mut record = record();
        record.status = Some(status.clone());
        let told = standing(&record, &status, at(*seconds));
        assert_eq!(told.len(), *number, "{phase} {seconds}: {told:#?}");
        let wanted = format!("Maintenance HPAScalingInactive Warning {count}");
        assert!(*number == 0 || lines(&told)[0] == wanted, "{phase} {seconds}: {told:#?}");
        let again = standing(&record, &status, at(*seconds + 1));
        let names = |told: &[EventNote]| told.iter().map(|note| note.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&told), names(&again), "{phase}: one series");
        status.blocked_since = None;
        assert_eq!(standing(&record, &status, at(*seconds)), [], "{phase}: it goes on");
    }
}

#[test]
fn a_halt_is_told_when_it_begins_and_when_it_ends() {
    let halted_before = |phase: &str| MaintenanceStatus { halted_since: Some(stamp(at(3))), ..status(phase, 0) };
    let halted_after =
        |phase: &str| MaintenanceStatus { findings: vec![finding("control", "block", "Halted")], ..status(phase, 0) };
    let begins = ["Maintenance MaintenanceHalted Warning 1", "Node MaintenanceHalted Warning 1"];
    let ends = ["Maintenance MaintenanceUnhalted Normal 1", "Node MaintenanceUnhalted Normal 1"];
    let none: [&str; 0] = [];
    let rows: Vec<(&str, MaintenanceStatus, MaintenanceStatus, Vec<&str>)> = vec![
        ("before commit", status("Draining", 0), halted_before("Draining"), begins.to_vec()),
        ("and goes on", halted_before("Draining"), status("Draining", 0), ends.to_vec()),
        ("held", status("Held", 0), halted_after("Held"), begins.to_vec()),
        ("and goes on", halted_after("Held"), status("Held", 0), ends.to_vec()),
        ("it is still so", halted_after("Held"), halted_after("Held"), none.to_vec()),
        ("a wish: its gate says it", status("Pending", 0), halted_after("Pending"), none.to_vec()),
    ];
    for (name, old, new, wanted) in rows {
        assert_eq!(lines(&changes(&record(), Some(&old), &new)), wanted, "{name}");
    }
}

#[test]
fn what_is_told_fits() {
    let mut new = status("Held", 7);
    new.message = "\u{e4}".repeat(2_000);
    let mut record = record();
    record.metadata.name = Some("n".repeat(253));
    for note in changes(&record, None, &new) {
        assert!(note.note.len() <= MAX_NOTE && note.note.ends_with("..."), "{}", note.note.len());
        assert!(note.name.len() <= 253, "{}", note.name.len());
    }
    let reasons =
        EventReason::ALL.iter().map(|reason| reason.as_str()).chain(Reason::ALL.iter().map(|one| one.as_str()));
    for reason in reasons {
        assert!(reason.len() <= 128 && reason.chars().all(char::is_alphanumeric), "{reason}");
    }
    let twice = EventReason::ALL.iter().find(|one| Reason::ALL.iter().any(|reason| reason.as_str() == one.as_str()));
    assert_eq!(twice, None, "an Event's reason means one thing");
}

#[test]
fn an_unreadable_key_is_told_where_the_config_map_is() {
    let problem = Unreadable { key: "since", problem: "expected value".into(), text: "x".into(), replaced: false };
    let note = unreadable(&problem, "maint", "cm-1", at(0));
    assert_eq!((note.namespace(), note.regarding.uid.as_str(), note.warning), ("maint", "cm-1", true));
    assert_eq!(note.note, "ConfigMap maint-state: data.since cannot be read: expected value; it stays as it is");
    let other = Unreadable { text: "y".into(), ..problem };
    assert_ne!(note.name, unreadable(&other, "maint", "cm-1", at(0)).name, "another text is another problem");
}
