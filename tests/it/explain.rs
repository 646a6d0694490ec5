//! `maint explain`.

use maint_core::api::Reason;
use maint_core::gates::GATES;

use crate::support::maint;

#[test]
fn without_a_name_every_gate_and_reason_is_listed() {
    let run = maint(&["explain"]);
    assert_eq!(run.code, 0, "{run}");
    for gate in GATES {
        assert!(run.stdout.contains(&format!("\n{} (", gate.id)), "{}: {run}", gate.id);
    }
    for reason in Reason::ALL {
        assert!(run.stdout.contains(&format!("    {reason}\n")), "{reason}: {run}");
    }
}

#[test]
fn every_gate_and_every_reason_can_be_explained() {
    for gate in GATES {
        let run = maint(&["explain", gate.id.as_str()]);
        assert_eq!(run.code, 0, "{run}");
        for part in [gate.doc, gate.default_policy.as_str(), gate.moments[0].as_str()] {
            assert!(run.stdout.contains(part), "{part}: {run}");
        }
    }
    for reason in [Reason::LonghornVolumeRebuilding, Reason::ObservationFailed] {
        let run = maint(&["explain", reason.as_str()]);
        assert_eq!(run.code, 0, "{run}");
        assert!(run.stdout.contains(reason.as_str()) && run.stdout.contains("Given by: "), "{run}");
    }
}

#[test]
fn upper_and_lower_case_do_not_matter_and_a_slip_gets_the_nearest() {
    assert_eq!(maint(&["explain", "halted"]).code, 0);
    let rows = [("longhorn-volume", "longhorn-volumes"), ("LonghornVolumeRebuild", "LonghornVolumeRebuilding")];
    for (slip, nearest) in rows {
        let run = maint(&["explain", slip]);
        assert_eq!(run.code, 2, "{run}");
        let wanted = format!("error: unknown gate or reason `{slip}`, did you mean `{nearest}`?\n");
        assert!(run.stderr.starts_with(&wanted), "{run}");
    }
}

#[test]
fn json() {
    let run = maint(&["explain", "longhorn-volumes", "-o", "json"]);
    let document: serde_json::Value = serde_json::from_str(&run.stdout).expect("one document");
    assert_eq!(document["apiVersion"], "maint.dev/v1");
    assert_eq!(document["gate"]["id"], "longhorn-volumes");
}
