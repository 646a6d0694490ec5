//! The table of gate `upgrades`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::RunContext;
use super::super::testing::{Case, World, ago, now, survivors};
use super::GATE;
use crate::api::{Moment, Reason, SourceId, Status};
use crate::facts::{FailureKind, Listed, Observation, upgrade};

/// A plan that has brought every node to its version.
fn plan(name: &str) -> Value {
    json!({
        "apiVersion": "upgrade.cattle.io/v1", "kind": "Plan",
        "metadata": {"name": name, "namespace": "system-upgrade", "generation": 4},
        "spec": {"concurrency": 1, "cordon": true, "version": "v1.34.4+k3s1"},
        "status": {
            "latestVersion": "v1.34.4-k3s1", "latestHash": "5f0c",
            "conditions": [
                {"type": "Validated", "status": "True", "reason": "PlanIsValid"},
                {"type": "LatestResolved", "status": "True", "reason": "Version"},
                {"type": "Complete", "status": "True", "reason": "Complete", "lastTransitionTime": ago(86_400)},
            ],
        },
    })
}

/// A Job that ended well.
fn job(namespace: &str, name: &str, labels: Value) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"backoffLimit": 1000, "suspend": false},
        "status": {
            "startTime": ago(600), "succeeded": 1, "ready": 0,
            "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": ago(500)}],
        },
    })
}

fn helm_job() -> Value {
    job("kube-system", "helm-install-traefik", json!({"helmcharts.helm.cattle.io/chart": "traefik"}))
}

fn upgrade_job() -> Value {
    let labels = json!({
        "upgrade.cattle.io/controller": "system-upgrade-controller", "upgrade.cattle.io/plan": "server",
        "upgrade.cattle.io/node": "worker3", "upgrade.cattle.io/version": "v1.34.4-k3s1",
        "plan.upgrade.cattle.io/server": "5f0c",
    });
    job("system-upgrade", "apply-server-on-worker3-with-5f0c", labels)
}

/// Both controllers, at rest.
fn at_rest() -> World {
    let mut world = World::healthy();
    *world.of(SourceId::UpgradePlans) = vec![plan("server"), plan("agent")];
    *world.of(SourceId::Jobs) = vec![helm_job(), upgrade_job()];
    world
}

fn server(world: &mut World) -> &mut Value {
    world.named(SourceId::UpgradePlans, "server")
}

fn complete(world: &mut World, status: &str, reason: &str, message: &str) {
    server(world)["status"]["conditions"][2] = json!({
        "type": "Complete", "status": status, "reason": reason, "message": message, "lastTransitionTime": ago(300),
    });
}

fn applying(world: &mut World, nodes: &[&str]) {
    server(world)["status"]["applying"] = json!(nodes);
    complete(world, "False", "SyncJob", "");
}

fn run(world: &mut World, job: &str) {
    world.named(SourceId::Jobs, job)["status"] = json!({"startTime": ago(600), "active": 1, "ready": 1});
}

fn start(_: &mut Case) {}
fn handover(case: &mut Case) {
    case.moment = Moment::Handover;
    case.run = Some(RunContext::default());
}

type Row = (&'static str, fn(&mut World), fn(&mut Case), Status, Reason, &'static str);

const HEALTHY: &[Row] = &[
    (
        "all complete, Jobs ended",
        |_| {},
        start,
        Status::Pass,
        Reason::Passed,
        "none of 2 upgrade plans is at work, no chart is being installed",
    ),
    ("the same at handover", |_| {}, handover, Status::Pass, Reason::Passed, "none of 2"),
    (
        "k3s without the upgrade controller",
        |w| {
            w.0.remove(&SourceId::UpgradePlans);
            *w.of(SourceId::Jobs) = vec![helm_job()];
        },
        start,
        Status::Pass,
        Reason::Passed,
        "no upgrade plan is at work, no chart",
    ),
    (
        "neither",
        |w| {
            w.0.remove(&SourceId::UpgradePlans);
            w.of(SourceId::Jobs).clear();
        },
        start,
        Status::NotApplicable,
        Reason::NotInstalled,
        "neither system-upgrade-controller nor helm-controller",
    ),
    (
        "no plan at all",
        |w| w.of(SourceId::UpgradePlans).clear(),
        start,
        Status::Pass,
        Reason::Passed,
        "no upgrade plan",
    ),
    (
        "somebody else's Job runs",
        |w| {
            let mut other = job("ci", "nightly-28401", json!({"app": "nightly"}));
            other["status"] = json!({"active": 3});
            w.of(SourceId::Jobs).push(other);
        },
        start,
        Status::Pass,
        Reason::Passed,
        "none of 2",
    ),
    (
        "a chart that failed for good",
        |w| {
            w.named(SourceId::Jobs, "helm-install-traefik")["status"] =
                json!({"failed": 1, "conditions": [{"type": "Failed", "status": "True"}]});
        },
        start,
        Status::Pass,
        Reason::Passed,
        "none of 2",
    ),
    (
        "a suspended Job of a chart",
        |w| {
            let job = w.named(SourceId::Jobs, "helm-install-traefik");
            job["spec"]["suspend"] = json!(true);
            job["status"] = json!({"conditions": [{"type": "Suspended", "status": "True"}]});
        },
        start,
        Status::Pass,
        Reason::Passed,
        "none of 2",
    ),
    (
        "a plan that is switched off (concurrency 0)",
        |w| {
            complete(w, "False", "", "");
            drop(server(w)["spec"].as_object_mut().expect("an object").remove("concurrency"));
        },
        start,
        Status::Pass,
        Reason::Passed,
        "none of 2",
    ),
    (
        "a release before condition Complete",
        |w| drop(server(w)["status"]["conditions"].as_array_mut().expect("a list").pop()),
        start,
        Status::Pass,
        Reason::Passed,
        "none of 2",
    ),
    (
        "a plan whose list of nodes is written as null",
        |w| server(w)["status"]["applying"] = Value::Null,
        start,
        Status::Pass,
        Reason::Passed,
        "none of 2",
    ),
    (
        "a plan that waits for its own window",
        |w| complete(w, "False", "Waiting", "spec.window is outside of current time"),
        start,
        Status::Warn,
        Reason::UpgradePending,
        "upgrade plan system-upgrade/server is not complete and may cordon nodes at any time (spec.window is outside",
    ),
];

const SICK: &[Row] = &[
    (
        "B81: a plan is at work on another node",
        |w| applying(w, &["worker3"]),
        start,
        Status::Block,
        Reason::UpgradeApplying,
        "upgrade plan system-upgrade/server is at work on worker3 (SyncJob)",
    ),
    (
        "B81: a plan is at work on the target",
        |w| applying(w, &["worker2"]),
        handover,
        Status::Block,
        Reason::UpgradeApplying,
        "is at work on worker2",
    ),
    (
        "a plan at work and its Job are told once",
        |w| {
            applying(w, &["worker1", "worker3"]);
            run(w, "apply-server-on-worker3-with-5f0c");
        },
        start,
        Status::Block,
        Reason::UpgradeApplying,
        "is at work on worker1, worker3 (SyncJob)",
    ),
    (
        "a Job failed, and the plan waits for somebody",
        |w| {
            applying(w, &["worker3"]);
            complete(
                w,
                "False",
                "JobFailed",
                "Job system-upgrade/apply-server failed on Node worker3: DeadlineExceeded",
            );
        },
        start,
        Status::Block,
        Reason::UpgradeApplying,
        "is at work on worker3 (Job system-upgrade/apply-server failed on Node worker3: DeadlineExceeded)",
    ),
    (
        "the Job of a plan that says nothing of it",
        |w| run(w, "apply-server-on-worker3-with-5f0c"),
        start,
        Status::Block,
        Reason::UpgradeApplying,
        "Job system-upgrade/apply-server-on-worker3-with-5f0c of upgrade plan server is at work on worker3",
    ),
    (
        "the Job of a plan that is gone",
        |w| {
            w.of(SourceId::UpgradePlans).remove(0);
            run(w, "apply-server-on-worker3-with-5f0c");
        },
        start,
        Status::Block,
        Reason::UpgradeApplying,
        "of upgrade plan server is at work on worker3",
    ),
    (
        "a plan of the same name in another namespace says nothing of the Job",
        |w| {
            applying(w, &["worker3"]);
            server(w)["metadata"]["namespace"] = json!("other");
            server(w)["status"]["applying"] = json!([]);
            run(w, "apply-server-on-worker3-with-5f0c");
        },
        start,
        Status::Block,
        Reason::UpgradeApplying,
        "Job system-upgrade/apply-server-on-worker3-with-5f0c",
    ),
    (
        "a chart is being installed",
        |w| run(w, "helm-install-traefik"),
        start,
        Status::Block,
        Reason::HelmJobRunning,
        "Job kube-system/helm-install-traefik is at work on chart traefik",
    ),
    (
        "a chart is being deleted, by the name of its Job alone",
        |w| {
            let mut helm = job("kube-system", "helm-delete-old", json!({}));
            helm["status"] = json!({"active": 1});
            w.of(SourceId::Jobs).push(helm);
        },
        handover,
        Status::Block,
        Reason::HelmJobRunning,
        "Job kube-system/helm-delete-old is at work on chart old",
    ),
    (
        "a chart's Job between two tries",
        |w| w.named(SourceId::Jobs, "helm-install-traefik")["status"] = json!({"failed": 12}),
        start,
        Status::Block,
        Reason::HelmJobRunning,
        "is at work on chart traefik",
    ),
];

/// What is unknown rather than blocked.
const UNKNOWN: &[Row] = &[
    (
        "a plan that its controller has not looked at",
        |w| drop(server(w).as_object_mut().expect("an object").remove("status")),
        start,
        Status::Unknown,
        Reason::ObservationMalformed,
        "Plan system-upgrade/server: status is missing",
    ),
    (
        "a Job that cannot be understood",
        |w| w.named(SourceId::Jobs, "helm-install-traefik")["spec"]["suspend"] = json!("no"),
        handover,
        Status::Unknown,
        Reason::ObservationMalformed,
        "spec.suspend is text",
    ),
];

fn case_of(row: &Row) -> Case {
    let mut world = at_rest();
    (row.1)(&mut world);
    let mut case = world.case();
    (row.2)(&mut case);
    case
}

#[test]
fn plans_and_jobs_are_judged_by_what_is_at_work() {
    for row in HEALTHY.iter().chain(SICK).chain(UNKNOWN) {
        let (name, .., status, reason, message) = row;
        let finding = case_of(row).ask(&GATE);
        assert_eq!((finding.status, finding.reason), (*status, *reason), "{name}: {finding:?}");
        assert!(finding.message.contains(message), "{name}: {}", finding.message);
    }
}

#[test]
fn it_is_told_since_when() {
    let since = |row: &str| {
        let row = SICK.iter().find(|one| one.0 == row).expect("a row");
        case_of(row).ask(&GATE).since.map(|since| now().duration_since(since).as_secs())
    };
    assert_eq!(since("B81: a plan is at work on another node"), Some(300), "of condition Complete");
    assert_eq!(since("a chart is being installed"), Some(600), "of the Job's start");
}

/// What may go without a stop: the end of what was done, and why that is right.
const ALLOWED: &[(&str, &str)] = &[
    ("server: status.applying deleted", "the API leaves the empty list out; the Job of a node at work is read as well"),
    ("server: status.applying nulled", "the same"),
    ("server: status.applying.0 deleted", "then it is at work on no node"),
    ("worker3-with-5f0c: metadata.labels deleted", "a Job without the labels is not the controller's"),
    ("worker3-with-5f0c: metadata.labels nulled", "the same"),
];

#[test]
fn no_gap_makes_an_upgrade_at_work_fine() {
    let (mut fine, mut used) = (Vec::new(), BTreeSet::new());
    for row in SICK {
        let mut world = at_rest();
        (row.1)(&mut world);
        for left in survivors(&GATE, &world, row.2) {
            match ALLOWED.iter().position(|(end, _)| left.ends_with(end)) {
                Some(index) => drop(used.insert(index)),
                None => fine.push(format!("{}: {left}", row.0)),
            }
        }
    }
    assert!(fine.is_empty(), "{}", fine.join("\n"));
    let unused = ALLOWED.iter().enumerate().filter(|(index, _)| !used.contains(index)).map(|(_, (end, _))| *end);
    assert_eq!(unused.collect::<Vec<_>>(), Vec::<&str>::new(), "allowed in vain");
}

#[test]
fn what_was_not_read_is_unknown() {
    fn failed<T>(kind: FailureKind) -> Listed<T> {
        Observation::Failed { kind, detail: "storage is (re)initializing".to_owned(), at: now() }
    }
    for kind in FailureKind::ALL {
        let mut case = at_rest().case();
        case.facts.upgrade_plans = failed(*kind);
        assert_eq!(case.ask(&GATE).status, Status::Unknown, "plans {kind}");
        let mut case = at_rest().case();
        case.facts.jobs = failed(*kind);
        assert_eq!(case.ask(&GATE).status, Status::Unknown, "jobs {kind}");
    }
    // A chart at work is told although nothing is known of plans, and blocks.
    let mut world = at_rest();
    run(&mut world, "helm-install-traefik");
    let mut case = world.case();
    case.facts.upgrade_plans = failed::<upgrade::Plan>(FailureKind::Forbidden);
    assert_eq!(case.ask(&GATE).reason, Reason::HelmJobRunning);
}

#[test]
fn only_a_look_before_any_run_may_not_have_asked() {
    let mut case = at_rest().case();
    case.facts.upgrade_plans = Observation::NotAsked;
    assert_eq!(case.ask(&GATE).status, Status::NotApplicable);
    handover(&mut case);
    assert_eq!((case.ask(&GATE).status, case.ask(&GATE).reason), (Status::Unknown, Reason::NotAsked));
    let mut case = at_rest().case();
    case.facts.jobs = Observation::Absent { at: now() };
    assert_eq!(case.ask(&GATE).status, Status::Unknown, "Jobs are built in");
}
