//! Table of gate `control`.

use serde_json::{Value, json};

use super::GATE;
use crate::api::{Moment, Reason, Status, Trigger};
use crate::config::Mode;
use crate::facts::{FailureKind, Observation};
use crate::gates::RunContext;
use crate::gates::mutation;
use crate::gates::testing::{Case, ago, good, known, node, now};

/// A node that was proven good after its present boot.
fn proven(name: &str) -> Value {
    with(node(name), "maint.dev/proven", &json!({"bootID": format!("boot-{name}"), "at": ago(3_600)}).to_string())
}

fn with(mut document: Value, annotation: &str, text: &str) -> Value {
    let metadata = document["metadata"].as_object_mut().expect("an object");
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    annotations[annotation] = json!(text);
    document
}

fn case(moment: Moment) -> Case {
    let mut case = Case { moment, ..Case::default() };
    target(&mut case, proven("worker2"));
    case.facts.config_maps = good(&[]);
    case.facts.maintenances = good(&[]);
    case.facts.maintenance_reports = good(&[]);
    case
}

/// Puts this in the place of `worker2`.
fn target(case: &mut Case, document: Value) {
    case.facts.nodes = known(&[proven("worker1"), document, proven("worker3")]);
}

fn config_map(namespace: &str, name: &str, data: &Value) -> Value {
    json!({"metadata": {"name": name, "namespace": namespace}, "data": data})
}

fn halt(text: &str) -> Value {
    config_map("maint", "maint-control", &json!({"halt": text}))
}

fn halt_document() -> Value {
    json!({"by": "anna", "reason": "new switch", "since": ago(7_200), "until": null})
}

fn hold(case: &mut Case, text: &str) {
    target(case, with(proven("worker2"), "maint.dev/hold", text));
}

fn report(name: &str, kind: &str, seconds: i64, verdict: Option<&str>) -> Value {
    let status = verdict.map_or_else(|| json!({}), |verdict| json!({"verdict": verdict}));
    json!({"metadata": {"name": name, "creationTimestamp": ago(seconds)}, "spec": {"kind": kind}, "status": status})
}

type Row = (&'static str, fn(&mut Case), Status, Reason, &'static str);

fn check(moments: &[Moment], rows: &[Row]) {
    for moment in moments {
        for (row, bend, status, reason, message) in rows {
            let mut case = case(*moment);
            bend(&mut case);
            let finding = case.ask(&GATE);
            assert_eq!((finding.status, finding.reason), (*status, *reason), "{row} at {moment}: {finding:?}");
            assert!(finding.message.contains(message), "{row} at {moment}: {}", finding.message);
        }
    }
}

#[test]
fn a_halt_binds_at_every_moment() {
    use {
        Reason::Halted, Reason::ObservationFailed, Reason::ObservationMalformed, Status::Block, Status::Pass,
        Status::Unknown,
    };
    let rows: [Row; 13] = [
        ("no ConfigMap", |_| {}, Pass, Reason::Passed, "not halted, and node worker2 is not on hold"),
        (
            "a ConfigMap without the key",
            |c| c.facts.config_maps = good(&[config_map("maint", "maint-control", &json!({}))]),
            Pass,
            Reason::Passed,
            "not halted",
        ),
        (
            "halted",
            |c| c.facts.config_maps = good(&[halt(&halt_document().to_string())]),
            Block,
            Halted,
            "anna halted maint at 2026-11-29T23:00:00Z until `maint unhalt`: new switch; ",
        ),
        (
            "halted until later",
            |c| {
                let text = json!({"by": "anna", "reason": "x", "since": ago(7_200), "until": ago(-1)}).to_string();
                c.facts.config_maps = good(&[halt(&text)]);
            },
            Block,
            Halted,
            "until 2026-11-30T01:00:01Z: x",
        ),
        (
            "over since this second",
            |c| {
                let text = json!({"by": "anna", "reason": "x", "since": ago(7_200), "until": ago(0)}).to_string();
                c.facts.config_maps = good(&[halt(&text)]);
            },
            Pass,
            Reason::Passed,
            "not halted",
        ),
        (
            "the ConfigMap of another namespace",
            |c| {
                let data = json!({"halt": halt_document().to_string()});
                c.facts.config_maps = good(&[config_map("other", "maint-control", &data)]);
            },
            Pass,
            Reason::Passed,
            "not halted",
        ),
        (
            "another ConfigMap of ours",
            |c| {
                let data = json!({"halt": halt_document().to_string()});
                c.facts.config_maps = good(&[config_map("maint", "maint-state", &data)]);
            },
            Pass,
            Reason::Passed,
            "not halted",
        ),
        (
            "the configured namespace",
            |c| {
                c.settings.namespace = "night".into();
                let data = json!({"halt": halt_document().to_string()});
                c.facts.config_maps = good(&[config_map("night", "maint-control", &data)]);
            },
            Block,
            Halted,
            "anna halted maint",
        ),
        (
            "typed by hand",
            |c| c.facts.config_maps = good(&[halt("true")]),
            Unknown,
            ObservationMalformed,
            "ConfigMap maint/maint-control: data.halt is no readable halt document: it is no JSON object",
        ),
        (
            "failed",
            |c| {
                c.facts.config_maps =
                    Observation::Failed { kind: FailureKind::Forbidden, detail: "403".into(), at: now() }
            },
            Unknown,
            ObservationFailed,
            "config-maps could not be read (forbidden): 403",
        ),
        (
            "not asked",
            |c| c.facts.config_maps = Observation::NotAsked,
            Unknown,
            Reason::NotAsked,
            "nothing asked for config-maps",
        ),
        (
            "absent: built in",
            |c| c.facts.config_maps = Observation::Absent { at: now() },
            Unknown,
            ObservationFailed,
            "built in",
        ),
        (
            "stale",
            |c| c.now = now() + jiff::SignedDuration::from_secs(31),
            Unknown,
            Reason::ObservationStale,
            "what is known of config-maps is 31 s old",
        ),
    ];
    check(GATE.moments, &rows);
    for (moment, end) in [
        (Moment::Start, "; nothing starts"),
        (Moment::Handover, "; no pod is evicted and no reboot is released"),
        (Moment::Verify, "; the run only observes, and what it would write waits"),
    ] {
        let mut case = case(moment);
        case.facts.config_maps = good(&[halt(&halt_document().to_string())]);
        let finding = case.ask(&GATE);
        assert!(finding.message.ends_with(end), "{moment}: {}", finding.message);
        assert_eq!(finding.since.map(|since| since.to_string()), Some(ago(7_200)));
    }
}

#[test]
fn a_hold_binds_its_node_at_every_moment() {
    use {Reason::NodeOnHold, Status::Block};
    let rows: [Row; 6] = [
        (
            "held",
            |c| hold(c, r#"{"by":"anna","reason":"disk swap"}"#),
            Block,
            NodeOnHold,
            "anna holds node worker2 until `maint release worker2`: disk swap",
        ),
        (
            "held until later",
            |c| hold(c, &json!({"by": "anna", "reason": "x", "until": ago(-60)}).to_string()),
            Block,
            NodeOnHold,
            "anna holds node worker2 until 2026-11-30T01:01:00Z: x",
        ),
        (
            "over",
            |c| hold(c, &json!({"by": "anna", "reason": "x", "until": ago(1)}).to_string()),
            Status::Pass,
            Reason::Passed,
            "not on hold",
        ),
        (
            "another node's hold",
            |c| {
                let other = with(proven("worker1"), "maint.dev/hold", r#"{"by":"anna","reason":"x"}"#);
                c.facts.nodes = good(&[other, proven("worker2"), proven("worker3")]);
            },
            Status::Pass,
            Reason::Passed,
            "not on hold",
        ),
        (
            "typed by hand",
            |c| hold(c, "yes"),
            Status::Unknown,
            Reason::ObservationMalformed,
            "Node worker2: metadata.annotations[maint.dev/hold] is no readable hold document",
        ),
        (
            "nodes failed",
            |c| c.facts.nodes = Observation::Failed { kind: FailureKind::Timeout, detail: "5 s".into(), at: now() },
            Status::Unknown,
            Reason::ObservationFailed,
            "nodes could not be read (timeout)",
        ),
    ];
    check(GATE.moments, &rows);
}

#[test]
fn post_checks() {
    use Reason::{PostCheckRed, PostCheckRunning};
    use Status::{Block, Pass, Unknown};
    let rows: [Row; 12] = [
        ("none yet", |_| {}, Pass, Reason::Passed, "no post-check is red or running"),
        (
            "no CRD",
            |c| c.facts.maintenance_reports = Observation::Absent { at: now() },
            Pass,
            Reason::Passed,
            "no post-check",
        ),
        (
            "clear",
            |c| c.facts.maintenance_reports = good(&[report("p", "post-check", 60, Some("clear"))]),
            Pass,
            Reason::Passed,
            "no post-check",
        ),
        (
            "blocked",
            |c| c.facts.maintenance_reports = good(&[report("p", "post-check", 60, Some("blocked"))]),
            Block,
            PostCheckRed,
            "the post-check p of 2026-11-30T00:59:00Z ended blocked: repair what it names, then run `maint post-check`",
        ),
        (
            "unknown is red",
            |c| c.facts.maintenance_reports = good(&[report("p", "post-check", 60, Some("unknown"))]),
            Block,
            PostCheckRed,
            "ended unknown",
        ),
        (
            "a word of another version is red",
            |c| c.facts.maintenance_reports = good(&[report("p", "post-check", 60, Some("Clear"))]),
            Block,
            PostCheckRed,
            "ended Clear",
        ),
        (
            "running",
            |c| c.facts.maintenance_reports = good(&[report("p", "post-check", 60, None)]),
            Block,
            PostCheckRunning,
            "the post-check p has been running since 2026-11-30T00:59:00Z; if nobody runs it any more",
        ),
        (
            "the latest counts, in whatever order",
            |c| {
                c.facts.maintenance_reports = good(&[
                    report("new", "post-check", 60, Some("clear")),
                    report("old", "post-check", 600, Some("blocked")),
                    report("older", "post-check", 6_000, None),
                ]);
            },
            Pass,
            Reason::Passed,
            "no post-check",
        ),
        (
            "of the same second the worse",
            |c| {
                c.facts.maintenance_reports = good(&[
                    report("a", "post-check", 60, Some("clear")),
                    report("b", "post-check", 60, Some("blocked")),
                ]);
            },
            Block,
            PostCheckRed,
            "the post-check b",
        ),
        (
            "reports of windows are none",
            |c| c.facts.maintenance_reports = good(&[report("w", "window", 60, Some("blocked"))]),
            Pass,
            Reason::Passed,
            "no post-check",
        ),
        (
            "failed",
            |c| {
                c.facts.maintenance_reports =
                    Observation::Failed { kind: FailureKind::Server, detail: "500".into(), at: now() };
            },
            Unknown,
            Reason::ObservationFailed,
            "maintenance-reports could not be read (server): 500",
        ),
        (
            "an odd one",
            |c| {
                c.facts.maintenance_reports =
                    known(&[json!({"metadata": {"name": "p"}, "spec": {"kind": "post-check"}})]);
            },
            Unknown,
            Reason::ObservationMalformed,
            "MaintenanceReport p: metadata.creationTimestamp is missing",
        ),
    ];
    check(&[Moment::Start], &rows);

    let mut later = case(Moment::Verify);
    later.facts.maintenance_reports = good(&[report("p", "post-check", 60, Some("blocked"))]);
    assert_eq!(later.ask(&GATE).status, Status::Pass, "asked at start only");
}

#[test]
fn nodes_that_nobody_proved() {
    use {Reason::PostCheckMissing, Status::Warn};
    let rows: [Row; 7] = [
        (
            "another boot",
            |c| {
                target(
                    c,
                    with(node("worker2"), "maint.dev/proven", &json!({"bootID": "old", "at": ago(99)}).to_string()),
                );
            },
            Warn,
            PostCheckMissing,
            "node worker2 booted since it was last found good (2026-11-30T00:58:21Z)",
        ),
        (
            "never proven",
            |c| target(c, node("worker2")),
            Warn,
            PostCheckMissing,
            "Node worker2 was never found good by a run or a post-check",
        ),
        (
            "none was ever proven: one warning",
            |c| c.facts.nodes = good(&["worker1", "worker2", "worker3"].map(node)),
            Warn,
            PostCheckMissing,
            "3 nodes were never found good by a run or a post-check",
        ),
        (
            "in flight",
            |c| {
                target(c, node("worker2"));
                c.facts.maintenances = good(&[json!({
                    "metadata": {"name": "r"}, "spec": {"nodeName": "worker2"}, "status": {"phase": "Verifying"},
                })]);
            },
            Status::Pass,
            Reason::Passed,
            "not halted",
        ),
        (
            "pending is not in flight",
            |c| {
                target(c, node("worker2"));
                c.facts.maintenances = good(&[json!({"metadata": {"name": "r"}, "spec": {"nodeName": "worker2"}})]);
            },
            Warn,
            PostCheckMissing,
            "never found good",
        ),
        (
            "typed by hand",
            |c| target(c, with(node("worker2"), "maint.dev/proven", "boot-worker2")),
            Status::Unknown,
            Reason::ObservationMalformed,
            "Node worker2: metadata.annotations[maint.dev/proven] is no readable proven document",
        ),
        (
            "records failed",
            |c| {
                c.facts.maintenances =
                    Observation::Failed { kind: FailureKind::Server, detail: "500".into(), at: now() }
            },
            Status::Unknown,
            Reason::ObservationFailed,
            "maintenances could not be read (server): 500",
        ),
    ];
    check(&[Moment::Start], &rows);
}

#[test]
fn the_leader_on_the_target() {
    let rows = [(None, Status::Pass), (Some(false), Status::Pass), (Some(true), Status::Block)];
    for (leader_on_target, status) in rows {
        let mut case = case(Moment::Start);
        case.run = Some(RunContext { leader_on_target, ..RunContext::default() });
        let finding = case.ask(&GATE);
        assert_eq!(finding.status, status, "{leader_on_target:?}: {finding:?}");
        if status == Status::Block {
            assert_eq!(finding.reason, Reason::LeaderOnTarget);
            assert_eq!(
                finding.message,
                "the pod of maint's leader runs on node worker2, and no replica on another node is Ready, or none took \
                 the Lease when it was free"
            );
        }
    }
}

#[test]
fn no_missing_or_odd_field_makes_a_block_fine() {
    let with_map = |document: &Value| {
        let mut case = case(Moment::Start);
        case.facts.config_maps = known(std::slice::from_ref(document));
        case.ask(&GATE)
    };
    // No key, no halt: `maint unhalt` deletes it.
    mutation::check(
        &halt(&halt_document().to_string()),
        &["/data deleted", "/data nulled", "/data/halt deleted"],
        with_map,
    );
    mutation::check(&halt_document(), &[], |document| with_map(&halt(&document.to_string())));

    let with_hold = |document: &Value| {
        let mut case = case(Moment::Start);
        hold(&mut case, &document.to_string());
        case.ask(&GATE)
    };
    mutation::check(&json!({"by": "anna", "reason": "x", "until": ago(-60)}), &[], with_hold);

    let with_report = |document: &Value| {
        let mut case = case(Moment::Start);
        case.facts.maintenance_reports = known(std::slice::from_ref(document));
        case.ask(&GATE)
    };
    mutation::check(&report("p", "post-check", 60, Some("blocked")), &[], with_report);
    mutation::check(&report("p", "post-check", 60, None), &[], with_report);
}

#[test]
fn the_mode_binds_unattended_starts() {
    let rows = [
        ("auto", Mode::Auto, Trigger::Unattended, true, Moment::Start, Status::Pass),
        ("observe", Mode::Observe, Trigger::Unattended, true, Moment::Start, Status::Block),
        ("observe, a look", Mode::Observe, Trigger::Unattended, false, Moment::Start, Status::Warn),
        ("observe, by hand", Mode::Observe, Trigger::Manual, true, Moment::Start, Status::Pass),
        ("observe, while it runs", Mode::Observe, Trigger::Unattended, true, Moment::Cordoned, Status::Pass),
        ("observe, at hand-over", Mode::Observe, Trigger::Unattended, true, Moment::Handover, Status::Pass),
    ];
    for (row, mode, trigger, run, moment, status) in rows {
        let mut case = Case { trigger, ..case(moment) };
        case.settings.mode = mode;
        case.run = run.then(RunContext::default);
        let finding = case.ask(&GATE);
        let reason = if status == Status::Pass { Reason::Passed } else { Reason::ObserveMode };
        assert_eq!((finding.status, finding.reason), (status, reason), "{row}: {finding:?}");
    }
}
