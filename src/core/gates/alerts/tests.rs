//! The table of gate `alerts`.

use serde_json::{Value, json};

use super::super::RunContext;
use super::super::testing::{Case, World, ago, now, survivors};
use super::GATE;
use crate::api::{Moment, Policy, Reason, SourceId, Status};
use crate::facts::{FailureKind, Observation};

fn alert(name: &str, severity: &str, more: Value) -> Value {
    let mut labels = json!({"alertname": name, "severity": severity});
    for (key, value) in more.as_object().expect("labels") {
        labels[key] = value.clone();
    }
    json!({"labels": labels, "startsAt": ago(600), "status": {"state": "active"}})
}

/// An Alertmanager with the two alerts that always fire.
fn quiet() -> World {
    let mut world = World::healthy();
    *world.of(SourceId::Alerts) =
        vec![alert("Watchdog", "none", json!({})), alert("InfoInhibitor", "none", json!({"namespace": "db"}))];
    world
}

fn fires(world: &mut World, name: &str, severity: &str, more: Value) {
    world.of(SourceId::Alerts).push(alert(name, severity, more));
}

fn start(case: &mut Case) {
    case.settings.alerts.alertmanager = "http://alertmanager:9093".to_owned();
}
fn handover(case: &mut Case) {
    start(case);
    case.moment = Moment::Handover;
    case.run = Some(RunContext::default());
}
fn critical_only(case: &mut Case) {
    start(case);
    case.settings.alerts.severities = vec!["critical".to_owned()];
}
fn ignored(case: &mut Case) {
    start(case);
    case.settings.alerts.ignore = vec!["CPUThrottlingHigh".to_owned()];
}

type Row = (&'static str, fn(&mut World), fn(&mut Case), Status, Reason, &'static str);

const HEALTHY: &[Row] = &[
    (
        "B79: only Watchdog and InfoInhibitor",
        |_| {},
        start,
        Status::Pass,
        Reason::Passed,
        "none of 2 alerts that fire by Alertmanager is in the way",
    ),
    ("none at all", |w| w.of(SourceId::Alerts).clear(), handover, Status::Pass, Reason::Passed, "none of 0"),
    ("nothing is configured", |_| {}, |_| {}, Status::NotApplicable, Reason::NotInstalled, "neither an Alertmanager"),
    (
        "kured wants its reboot",
        |w| fires(w, "RebootRequired", "warning", json!({"node": "worker2"})),
        start,
        Status::Pass,
        Reason::Passed,
        "none of 3",
    ),
    (
        "the target is cordoned",
        |w| fires(w, "KubeNodeUnschedulable", "warning", json!({"node": "worker2"})),
        handover,
        Status::Pass,
        Reason::Passed,
        "none of 3",
    ),
    (
        "maint's own",
        |w| {
            fires(w, "maintRunHeld", "critical", json!({}));
            fires(w, "TargetDown", "critical", json!({"app": "maint"}));
        },
        start,
        Status::Pass,
        Reason::Passed,
        "none of 4",
    ),
    (
        "passed over by the settings",
        |w| fires(w, "CPUThrottlingHigh", "info", json!({})),
        ignored,
        Status::Pass,
        Reason::Passed,
        "none of 3",
    ),
    (
        "of another severity than wanted",
        |w| fires(w, "CPUThrottlingHigh", "info", json!({})),
        critical_only,
        Status::Pass,
        Reason::Passed,
        "none of 3",
    ),
];

const SICK: &[Row] = &[
    (
        "an alert fires",
        |w| fires(w, "KubePodCrashLooping", "warning", json!({"namespace": "db", "pod": "web-1"})),
        start,
        Status::Block,
        Reason::AlertFiring,
        "alert KubePodCrashLooping, warning fires (namespace db, pod web-1)",
    ),
    (
        "another node is cordoned",
        |w| fires(w, "KubeNodeUnschedulable", "warning", json!({"node": "worker3"})),
        handover,
        Status::Block,
        Reason::AlertFiring,
        "alert KubeNodeUnschedulable, warning fires (node worker3)",
    ),
    (
        "of the wanted severity",
        |w| fires(w, "EtcdNoLeader", "critical", json!({})),
        critical_only,
        Status::Block,
        Reason::AlertFiring,
        "alert EtcdNoLeader, critical fires",
    ),
];

fn case_of(row: &Row) -> Case {
    let mut world = quiet();
    (row.1)(&mut world);
    let mut case = world.case();
    (row.2)(&mut case);
    case
}

#[test]
fn alerts_count_unless_they_are_to_be_passed_over() {
    for row in HEALTHY.iter().chain(SICK) {
        let (name, .., status, reason, message) = row;
        let finding = case_of(row).ask(&GATE);
        assert_eq!((finding.status, finding.reason), (*status, *reason), "{name}: {finding:?}");
        assert!(finding.message.contains(message), "{name}: {}", finding.message);
    }
    assert_eq!(case_of(&SICK[0]).ask(&GATE).since.map(|since| now().duration_since(since).as_secs()), Some(600));
}

#[test]
fn no_gap_makes_an_alert_fine() {
    let mut fine = Vec::new();
    for row in SICK {
        let mut world = quiet();
        (row.1)(&mut world);
        fine.extend(survivors(&GATE, &world, row.2).into_iter().map(|left| format!("{}: {left}", row.0)));
    }
    assert!(fine.is_empty(), "{}", fine.join("\n"));
}

#[test]
fn what_was_so_at_the_start_only_warns_afterwards() {
    for moment in [Moment::Verify, Moment::Settle] {
        let then = case_of(&SICK[0]).ask(&GATE);
        let mut case = case_of(&SICK[0]);
        case.moment = moment;
        case.run = Some(RunContext { baseline: vec![then], ..RunContext::default() });
        assert_eq!(case.ask(&GATE).status, Status::Warn, "{moment}");
        case.run = Some(RunContext::default());
        assert_eq!(case.ask(&GATE).status, Status::Block, "{moment}");
    }
}

#[test]
fn who_does_not_answer_is_unknown_and_counts_by_the_policy() {
    for kind in FailureKind::ALL {
        let mut case = quiet().case();
        start(&mut case);
        case.facts.alerts = Observation::Failed { kind: *kind, detail: "no answer".to_owned(), at: now() };
        assert_eq!(case.ask(&GATE).status, Status::Unknown, "{kind}");
        assert!(GATE.ask(&case.input()).is_none(), "off by default");
        for (policy, status) in [(Policy::Require, Status::Unknown), (Policy::Warn, Status::Warn)] {
            case.settings.gates.insert(GATE.id, policy);
            assert_eq!(GATE.ask(&case.input()).map(|finding| finding.status), Some(status), "B79: {policy}");
        }
    }
    let mut case = quiet().case();
    start(&mut case);
    case.facts.alerts = Observation::NotAsked;
    assert_eq!(case.ask(&GATE).status, Status::NotApplicable, "a dump");
    handover(&mut case);
    assert_eq!(case.ask(&GATE).status, Status::Unknown, "a run asks");
}
