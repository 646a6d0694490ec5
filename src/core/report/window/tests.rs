//! Windows with all that can come of them.

use super::super::testing::{at, record};
use super::*;
use crate::api::record::{TimelineEntry, WindowRecord};

fn span() -> WindowSpan {
    WindowSpan {
        opening: "nightly-2026-11-30".into(),
        starts_at: "2026-11-30T01:00:00Z".into(),
        ends_at: "2026-11-30T05:00:00Z".into(),
    }
}

/// A run that began at a time of the night and is, or ended, in this phase since 01:20.
fn began(node: &str, time: &str, phase: &str, outcome: &str) -> Maintenance {
    let mut record = record(phase, |status| {
        outcome.clone_into(&mut status.outcome);
        "boot a -> b, matrix 9/9 -> 9/9".clone_into(&mut status.message);
        status.timeline = vec![
            TimelineEntry { at: "2026-11-30T00:50:00Z".into(), phase: "Pending".into(), message: "asked".into() },
            TimelineEntry { at: format!("2026-11-30T{time}Z"), phase: "Cordoning".into(), message: "go".into() },
        ];
    });
    record.metadata.name = Some(format!("{node}-1"));
    node.clone_into(&mut record.spec.node_name);
    record
}

fn in_window(mut record: Maintenance) -> Maintenance {
    let status = record.status.get_or_insert_default();
    status.window = Some(WindowRecord { opening: span().opening, ends_at: span().ends_at });
    record
}

fn finding(gate: &str, reason: &str, message: &str) -> FindingRecord {
    FindingRecord {
        gate: gate.into(),
        status: "block".into(),
        reason: reason.into(),
        message: message.into(),
        evidence: vec![],
        since: None,
    }
}

fn wish(node: &str, findings: Vec<FindingRecord>) -> Maintenance {
    let mut record = record("Pending", |status| {
        status.blocked_since = (!findings.is_empty()).then(|| "2026-11-30T02:00:00Z".to_owned());
        status.findings = findings;
    });
    record.metadata.name = Some(format!("{node}-1"));
    "unattended".clone_into(&mut record.spec.trigger);
    node.clone_into(&mut record.spec.node_name);
    record
}

fn rebuilding() -> FindingRecord {
    finding("longhorn-volumes", "LonghornRebuilding", "volume pvc-1 is rebuilding")
}

fn observed() -> FindingRecord {
    finding("control", "ObserveMode", "mode is observe")
}

fn closed() -> FindingRecord {
    finding("window", "OutsideWindow", "closed")
}

struct Row {
    name: &'static str,
    mode: &'static str,
    records: Vec<Maintenance>,
    verdict: WindowVerdict,
    message: &'static str,
    lines: &'static [&'static str],
}

#[test]
fn every_window_ends_with_a_verdict_that_names_who_and_why() {
    let rows = [
        Row {
            name: "a quiet night is told as well",
            mode: "auto",
            records: vec![],
            verdict: WindowVerdict::Quiet,
            message: "nightly-2026-11-30: nobody asked for anything",
            lines: &[],
        },
        Row {
            name: "all done",
            mode: "auto",
            records: vec![began("worker2", "01:10:00", "Succeeded", "Proven")],
            verdict: WindowVerdict::Done,
            message: "nightly-2026-11-30: 1 node maintained and proven (worker2)",
            lines: &["- worker2 Succeeded Proven in 00:10:00: boot a -> b, matrix 9/9 -> 9/9"],
        },
        Row {
            name: "held first, then who waits",
            mode: "auto",
            records: vec![
                began("worker1", "01:05:00", "Succeeded", "Proven"),
                began("worker2", "01:15:00", "Held", "KubeletUnreachable"),
                wish("worker3", vec![closed(), rebuilding()]),
            ],
            verdict: WindowVerdict::Attention,
            message: "nightly-2026-11-30: 1 node held (worker2); 1 node maintained and proven (worker1); 1 node waiting (worker3)",
            lines: &[
                "- worker2 Held KubeletUnreachable in 04:45:00: boot a -> b, matrix 9/9 -> 9/9 (maint show worker2-1)",
                "- worker1 Succeeded Proven in 00:15:00: boot a -> b, matrix 9/9 -> 9/9",
                "- worker3 waits, for 04:00:00: LonghornRebuilding: volume pvc-1 is rebuilding",
            ],
        },
        Row {
            name: "held since an earlier window",
            mode: "auto",
            records: vec![began("worker2", "00:10:00", "Held", "NodeNotBack")],
            verdict: WindowVerdict::Attention,
            message: "nightly-2026-11-30: 1 node held (worker2)",
            lines: &["- worker2 Held NodeNotBack in 05:50:00: boot a -> b, matrix 9/9 -> 9/9 (maint show worker2-1)"],
        },
        Row {
            name: "of an earlier window and over",
            mode: "auto",
            records: vec![began("worker2", "00:10:00", "Failed", "DrainDeadline")],
            verdict: WindowVerdict::Quiet,
            message: "nightly-2026-11-30: nobody asked for anything",
            lines: &[],
        },
        Row {
            name: "one went wrong, and what else waits is known by nothing but the closed window",
            mode: "auto",
            records: vec![
                in_window(began("worker2", "01:15:00", "Failed", "DrainDeadline")),
                wish("worker3", vec![closed()]),
            ],
            verdict: WindowVerdict::Attention,
            message: "nightly-2026-11-30: 1 node not maintained (worker2); 1 node waiting (worker3)",
            lines: &[
                "- worker2 Failed DrainDeadline in 00:05:00: boot a -> b, matrix 9/9 -> 9/9 (maint show worker2-1)",
                "- worker3 waits, for 04:00:00: WindowStopped: worker2-1 on worker2 is or was Failed (DrainDeadline): nobody else started in this window",
            ],
        },
        Row {
            name: "nothing went wrong in it",
            mode: "auto",
            records: vec![
                in_window(began("worker2", "01:15:00", "Succeeded", "Proven")),
                wish("worker3", vec![closed()]),
            ],
            verdict: WindowVerdict::Waiting,
            message: "nightly-2026-11-30: 1 node maintained and proven (worker2); 1 node waiting (worker3)",
            lines: &[
                "- worker2 Succeeded Proven in 00:05:00: boot a -> b, matrix 9/9 -> 9/9",
                "- worker3 waits, for 04:00:00: OutsideWindow: closed",
            ],
        },
        Row {
            name: "only the turn did not come",
            mode: "auto",
            records: vec![wish("worker3", vec![])],
            verdict: WindowVerdict::Waiting,
            message: "nightly-2026-11-30: 1 node waiting (worker3)",
            lines: &["- worker3 waits: was never judged"],
        },
        Row {
            name: "observe: what would have been done",
            mode: "observe",
            records: vec![wish("worker1", vec![observed()]), wish("worker3", vec![observed(), rebuilding()])],
            verdict: WindowVerdict::Observed,
            message: "nightly-2026-11-30: mode observe keeps kured waiting since 2026-11-30T01:00:00Z: would have begun with worker1; 1 node waiting (worker3)",
            lines: &[
                "- worker1 waits, for 04:00:00: ObserveMode: mode is observe",
                "- worker3 waits, for 04:00:00: LonghornRebuilding: volume pvc-1 is rebuilding",
            ],
        },
        Row {
            name: "observe, quiet",
            mode: "observe",
            records: vec![],
            verdict: WindowVerdict::Observed,
            message: "nightly-2026-11-30: mode observe, nothing is touched: nobody asked for anything",
            lines: &[],
        },
    ];
    for row in rows {
        let span = span();
        let input = WindowInput { span: &span, mode: row.mode, records: &row.records, term: 3, now: at("06:00:00") };
        assert!(is_ripe(&input), "{}", row.name);
        let mut report = MaintenanceReport::default();
        report.metadata.uid = Some("u-9".into());
        let status = window_report(&input, &report);
        assert_eq!(
            (status.verdict.as_str(), status.message.as_str()),
            (row.verdict.as_str(), row.message),
            "{}",
            row.name
        );
        let entry = &status.outbox[0];
        let lines: Vec<&str> = entry.text.lines().skip(1).collect();
        assert_eq!(lines, row.lines, "{}", row.name);
        assert_eq!(entry.id, "u-9/0/report");
        assert_eq!(entry.severity == "warning", row.verdict == WindowVerdict::Attention, "{}", row.name);
    }
}

#[test]
fn a_report_waits_for_what_is_at_work_and_not_for_what_is_held() {
    let rows = [
        ("Settling", "01:10:00", false),
        ("BackingOut", "01:10:00", false),
        ("Held", "01:10:00", true),
        ("Succeeded", "01:10:00", true),
        ("Settling", "00:10:00", true),
        ("Pending", "01:10:00", true),
    ];
    for (phase, time, ripe) in rows {
        let records = [began("worker2", time, phase, "")];
        let span = span();
        let input = WindowInput { span: &span, mode: "auto", records: &records, term: 3, now: at("06:00:00") };
        assert_eq!(is_ripe(&input), ripe, "{phase} since {time}");
    }
}

#[test]
fn a_report_of_thousands_stays_small() {
    let records: Vec<Maintenance> =
        (0..3000).map(|number| wish(&format!("node-{number:04}"), vec![rebuilding()])).collect();
    let span = span();
    let input = WindowInput { span: &span, mode: "auto", records: &records, term: 3, now: at("06:00:00") };
    let status = window_report(&input, &MaintenanceReport::default());
    assert_eq!((status.backlog, status.skipped.len()), (3000, MAX_LISTED));
    assert!(status.outbox[0].text.ends_with("- and 2992 more: maint report window-nightly-2026-11-30"));
    let size = serde_json::to_string(&status).expect("JSON").len();
    assert!(size < 64 * 1024, "{size} bytes");
}
