//! Table of gate `exclusive`.

use serde_json::{Value, json};

use super::GATE;
use crate::api::{Moment, Reason, Status};
use crate::facts::{FailureKind, Observation};
use crate::gates::mutation;
use crate::gates::testing::{Case, NODES, ago, good, known, node, now};

fn case() -> Case {
    let mut case = Case::default();
    case.facts.daemon_sets = good(&[kured(None)]);
    case.facts.maintenances = good(&[]);
    case
}

fn kured(lock: Option<&str>) -> Value {
    let mut document = json!({
        "metadata": {"name": "kured", "namespace": "kube-system", "annotations": {}},
        "spec": {"template": {"spec": {"containers": [{"image": "ghcr.io/kubereboot/kured:1.23.0"}]}}},
        "status": {"desiredNumberScheduled": 3, "numberReady": 3},
    });
    if let Some(lock) = lock {
        document["metadata"]["annotations"]["weave.works/kured-node-lock"] = json!(lock);
    }
    document
}

fn worker(name: &str) -> Value {
    let mut document = node(name);
    document["metadata"]["labels"] = json!({"kubernetes.io/hostname": name});
    document
}

fn cordoned(mut document: Value) -> Value {
    document["spec"]["unschedulable"] = json!(true);
    document
}

fn not_ready(mut document: Value) -> Value {
    document["status"]["conditions"][0]["status"] = json!("Unknown");
    document["status"]["conditions"][0]["reason"] = json!("NodeStatusUnknown");
    document
}

fn run(node: &str, phase: &str) -> Value {
    json!({"metadata": {"name": format!("{node}-1"), "uid": "u-1"}, "spec": {"nodeName": node}, "status": {"phase": phase}})
}

type Row = (&'static str, fn(&mut Case), Status, Reason, &'static str);

fn check(rows: &[Row]) {
    for (row, bend, status, reason, message) in rows {
        let mut case = case();
        bend(&mut case);
        let finding = case.ask(&GATE);
        assert_eq!((finding.status, finding.reason), (*status, *reason), "{row}: {finding:?}");
        assert!(finding.message.contains(message), "{row}: {}", finding.message);
    }
}

#[test]
fn the_count_of_unavailable_others() {
    use {Reason::TooManyUnavailable, Status::Block};
    let rows: [Row; 19] = [
        ("healthy", |_| {}, Status::Pass, Reason::Passed, "0 other nodes are unavailable, fewer than 1"),
        (
            "the target itself does not count",
            |c| {
                c.facts.nodes = good(&[node("worker1"), cordoned(not_ready(node("worker2"))), node("worker3")]);
                c.facts.maintenances = good(&[run("worker2", "Draining")]);
            },
            Status::Pass,
            Reason::Passed,
            "0 other nodes",
        ),
        (
            "B18: another one is not Ready",
            |c| c.facts.nodes = good(&[node("worker1"), node("worker2"), not_ready(node("worker3"))]),
            Block,
            TooManyUnavailable,
            "1 other node is unavailable, allowed are fewer than 1 (max_unavailable): worker3 is NotReady",
        ),
        (
            "B19, B75: another one is cordoned by anyone, the lock is free",
            |c| c.facts.nodes = good(&[cordoned(node("worker1")), node("worker2"), node("worker3")]),
            Block,
            TooManyUnavailable,
            "worker1 is cordoned",
        ),
        (
            "who cordoned it is named",
            |c| {
                let mut other = cordoned(node("worker1"));
                other["metadata"]["managedFields"] = json!([{
                    "manager": "kubectl-cordon", "fieldsV1": {"f:spec": {"f:unschedulable": {}}},
                }]);
                c.facts.nodes = good(&[other, node("worker2"), node("worker3")]);
            },
            Block,
            TooManyUnavailable,
            "worker1 is cordoned by kubectl-cordon",
        ),
        (
            "cordoned by the taint only",
            |c| {
                let mut other = node("worker1");
                other["spec"]["taints"] = json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]);
                c.facts.nodes = good(&[other, node("worker2"), node("worker3")]);
            },
            Block,
            TooManyUnavailable,
            "worker1 is cordoned",
        ),
        (
            "about to be deleted by the cluster autoscaler",
            |c| {
                let mut other = node("worker1");
                other["spec"]["taints"] = json!([{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]);
                c.facts.nodes = good(&[other, node("worker2"), node("worker3")]);
            },
            Block,
            TooManyUnavailable,
            "worker1 is about to be deleted",
        ),
        (
            "other taints are none of ours",
            |c| {
                let mut other = node("worker1");
                other["spec"]["taints"] =
                    json!([{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]);
                c.facts.nodes = good(&[other, node("worker2"), node("worker3")]);
            },
            Status::Pass,
            Reason::Passed,
            "0 other nodes",
        ),
        (
            "in flight",
            |c| c.facts.maintenances = good(&[run("worker3", "Settling")]),
            Block,
            TooManyUnavailable,
            "worker3 is in flight (Maintenance worker3-1, Settling)",
        ),
        (
            "held is in flight",
            |c| c.facts.maintenances = good(&[run("worker3", "Held")]),
            Block,
            TooManyUnavailable,
            "(Maintenance worker3-1, Held)",
        ),
        (
            "a phase of a later version is in flight",
            |c| c.facts.maintenances = good(&[run("worker3", "Blessing")]),
            Block,
            TooManyUnavailable,
            "(Maintenance worker3-1, Blessing)",
        ),
        (
            "pending and ended ones are not",
            |c| {
                c.facts.maintenances = good(&[
                    json!({"metadata": {"name": "a"}, "spec": {"nodeName": "worker1"}}),
                    run("worker3", "Pending"),
                    run("worker3", "Succeeded"),
                    run("worker3", "Failed"),
                    run("worker1", "Cancelled"),
                ]);
            },
            Status::Pass,
            Reason::Passed,
            "0 other nodes",
        ),
        (
            "in flight on a node that is gone, ignored or not",
            |c| {
                c.settings.limits.ignore_nodes = vec!["gone".into()];
                c.facts.maintenances = good(&[run("gone", "Returning")]);
            },
            Block,
            TooManyUnavailable,
            "gone is in flight",
        ),
        (
            "one node counts once",
            |c| {
                c.settings.limits.max_unavailable = 2;
                c.facts.nodes = good(&[worker("worker1"), worker("worker2"), cordoned(not_ready(worker("worker3")))]);
                c.facts.maintenances = good(&[run("worker3", "Draining")]);
            },
            Status::Pass,
            Reason::Passed,
            "1 other node is unavailable, fewer than 2",
        ),
        (
            "two of two",
            |c| {
                c.settings.limits.max_unavailable = 2;
                c.facts.nodes = good(&[cordoned(worker("worker1")), worker("worker2"), not_ready(worker("worker3"))]);
            },
            Block,
            TooManyUnavailable,
            "2 other nodes are unavailable, allowed are fewer than 2 (max_unavailable): worker1 is cordoned; worker3 is NotReady",
        ),
        (
            "an ignored worker does not count, however it is away",
            |c| {
                c.settings.limits.ignore_nodes = vec!["worker3".into()];
                c.facts.nodes = good(&[node("worker1"), node("worker2"), cordoned(not_ready(worker("worker3")))]);
                c.facts.maintenances = good(&[run("worker3", "Held")]);
            },
            Status::Pass,
            Reason::Passed,
            "0 other nodes",
        ),
        (
            "an ignored control-plane node counts",
            |c| {
                c.settings.limits.ignore_nodes = vec!["worker3".into()];
                c.facts.nodes = good(&[node("worker1"), node("worker2"), cordoned(node("worker3"))]);
            },
            Block,
            TooManyUnavailable,
            "worker3 is cordoned",
        ),
        (
            "B15: a second server, whatever the limit",
            |c| {
                c.settings.limits.max_unavailable = 5;
                c.facts.nodes = good(&[node("worker1"), node("worker2"), not_ready(node("worker3"))]);
            },
            Block,
            TooManyUnavailable,
            "worker2 is a control-plane node, and so must no other one be unavailable: worker3 is NotReady",
        ),
        (
            "a limit of nothing",
            |c| c.settings.limits.max_unavailable = 0,
            Block,
            TooManyUnavailable,
            "0 other nodes are unavailable, allowed are fewer than 0 (max_unavailable)",
        ),
    ];
    check(&rows);
}

fn lock(case: &mut Case, text: &str) {
    case.facts.daemon_sets = good(&[kured(Some(text))]);
}

#[test]
fn kureds_lock() {
    use {Reason::KuredLockHeld, Status::Block};
    fn beside(c: &mut Case, text: &str) {
        c.settings.limits.max_unavailable = 2;
        c.facts.nodes = good(&["worker1", "worker2", "worker3"].map(worker));
        c.facts.maintenances = good(&[run("worker3", "Returning")]);
        lock(c, text);
    }
    const OURS: &str = r#"{"nodeID":"maint:worker3","maint":{"maintenance":"u-1"}}"#;
    let rows: [Row; 18] = [
        (
            "our own hold",
            |c| {
                c.run = Some(crate::gates::RunContext { maintenance_uid: "u-1".into(), ..Default::default() });
                lock(c, OURS);
            },
            Status::Pass,
            Reason::Passed,
            "nobody else",
        ),
        (
            "a hold of another record, gone",
            |c| lock(c, OURS),
            Block,
            Reason::KuredLockHeldByMaint,
            "a run of ours that is gone holds kured's lock",
        ),
        (
            "single: a hold of a run beside this one",
            |c| beside(c, OURS),
            Block,
            Reason::KuredLockHeldByMaint,
            "the run worker3-1 of node worker3 (Returning) holds",
        ),
        (
            "multi: a hold of a run beside this one",
            |c| beside(c, &format!(r#"{{"maxOwners":2,"locks":[{OURS}]}}"#)),
            Status::Pass,
            Reason::Passed,
            "1 other node",
        ),
        (
            "multi: a slot of a run of ours beside this one",
            |c| beside(c, r#"{"maxOwners":2,"locks":[{"nodeID":"worker3"}]}"#),
            Status::Pass,
            Reason::Passed,
            "1 other node is unavailable, fewer than 2",
        ),
        (
            "single: it has no second slot",
            |c| beside(c, r#"{"nodeID":"worker3"}"#),
            Block,
            KuredLockHeld,
            "node worker3 holds kured's lock",
        ),
        (
            "held by another node",
            |c| lock(c, &format!(r#"{{"nodeID":"worker1","created":"{}","TTL":0}}"#, ago(600))),
            Block,
            KuredLockHeld,
            "node worker1 holds kured's lock on DaemonSet kube-system/kured, since 2026-11-30T00:50:00Z",
        ),
        (
            "B19, I12: expired, and the node is still there",
            |c| lock(c, &format!(r#"{{"nodeID":"worker1","created":"{}","TTL":1000000000}}"#, ago(600))),
            Block,
            KuredLockHeld,
            "(expired by its TTL, which proves nothing about the node)",
        ),
        ("held by the target", |c| lock(c, r#"{"nodeID":"worker2"}"#), Status::Pass, Reason::Passed, "nobody else"),
        (
            "kured#478: held by a node that is gone",
            |c| lock(c, &format!(r#"{{"nodeID":"old","created":"{}","TTL":0}}"#, ago(600))),
            Status::Warn,
            KuredLockHeld,
            "kured's lock on DaemonSet kube-system/kured names old, since 2026-11-30T00:50:00Z, and there is no such node",
        ),
        (
            "held by a node whose object cannot be read: it exists",
            |c| {
                let mut odd = node("worker1");
                odd["status"]["nodeInfo"]["bootID"] = Value::Null;
                c.facts.nodes = known(&[odd, node("worker2"), node("worker3")]);
                lock(c, r#"{"nodeID":"worker1"}"#);
            },
            Block,
            KuredLockHeld,
            "node worker1 holds kured's lock",
        ),
        (
            "held by hand",
            |c| lock(c, r#"{"nodeID":"manual"}"#),
            Block,
            KuredLockHeld,
            "a person holds kured's lock on DaemonSet kube-system/kured by hand (nodeID `manual`), no time given",
        ),
        ("released, multi", |c| lock(c, r#"{"maxOwners":2,"locks":[]}"#), Status::Pass, Reason::Passed, "nobody else"),
        (
            "multi: the target and another one",
            |c| lock(c, r#"{"maxOwners":2,"locks":[{"nodeID":"worker2"},{"nodeID":"worker3"}]}"#),
            Block,
            KuredLockHeld,
            "node worker3 holds kured's lock",
        ),
        (
            "multi: the target twice",
            |c| lock(c, r#"{"maxOwners":2,"locks":[{"nodeID":"worker2"},{"nodeID":"worker2"}]}"#),
            Status::Pass,
            Reason::Passed,
            "nobody else",
        ),
        (
            "S12: garbage",
            |c| lock(c, "held by anna"),
            Status::Unknown,
            Reason::KuredLockUnreadable,
            "kured's lock on DaemonSet kube-system/kured is no JSON",
        ),
        (
            "the lock of a second kured",
            |c| {
                let mut second = kured(Some(r#"{"nodeID":"worker3"}"#));
                second["metadata"]["name"] = json!("kured-gpu");
                c.facts.daemon_sets = good(&[kured(None), second]);
            },
            Block,
            KuredLockHeld,
            "node worker3 holds kured's lock on DaemonSet kube-system/kured-gpu",
        ),
        (
            "the annotation alone is a wish",
            |c| {
                let mut other = node("worker1");
                other["metadata"]["annotations"] = json!({"weave.works/kured-reboot-in-progress": ago(60)});
                c.facts.nodes = good(&[other, node("worker2"), node("worker3")]);
            },
            Status::Pass,
            Reason::Passed,
            "nobody else",
        ),
    ];
    check(&rows);
}

#[test]
fn what_could_not_be_read() {
    use {Reason::ObservationFailed, Status::Unknown};
    let rows: [Row; 11] = [
        (
            "records not asked, in a look at a dump",
            |c| c.facts.maintenances = Observation::NotAsked,
            Status::Pass,
            Reason::Passed,
            "0 other nodes",
        ),
        (
            "records not asked in a run",
            |c| {
                c.moment = Moment::Handover;
                c.facts.maintenances = Observation::NotAsked;
            },
            Unknown,
            Reason::NotAsked,
            "nothing asked for maintenances",
        ),
        (
            "nodes failed",
            |c| c.facts.nodes = Observation::Failed { kind: FailureKind::Timeout, detail: "5 s".into(), at: now() },
            Unknown,
            ObservationFailed,
            "nodes could not be read (timeout): 5 s",
        ),
        (
            "nodes not asked",
            |c| c.facts.nodes = Observation::NotAsked,
            Unknown,
            Reason::NotAsked,
            "nothing asked for nodes",
        ),
        (
            "DaemonSets failed: the lock is not known",
            |c| {
                c.facts.daemon_sets =
                    Observation::Failed { kind: FailureKind::Forbidden, detail: "403".into(), at: now() }
            },
            Unknown,
            ObservationFailed,
            "daemon-sets could not be read (forbidden): 403",
        ),
        (
            "DaemonSets absent: built in, so the answer is wrong",
            |c| c.facts.daemon_sets = Observation::Absent { at: now() },
            Unknown,
            ObservationFailed,
            "the API says that daemon-sets do not exist, although the kind is built in",
        ),
        (
            "no CRD, no runs",
            |c| c.facts.maintenances = Observation::Absent { at: now() },
            Status::Pass,
            Reason::Passed,
            "0",
        ),
        (
            "records failed",
            |c| {
                c.facts.maintenances =
                    Observation::Failed { kind: FailureKind::Server, detail: "500".into(), at: now() }
            },
            Unknown,
            ObservationFailed,
            "maintenances could not be read (server): 500",
        ),
        (
            "a block wins over an unknown",
            |c| {
                c.facts.daemon_sets = Observation::NotAsked;
                c.facts.nodes = good(&[node("worker1"), node("worker2"), cordoned(node("worker3"))]);
            },
            Status::Block,
            Reason::TooManyUnavailable,
            "worker3 is cordoned; and 1 more",
        ),
        (
            "an odd node",
            |c| {
                let mut odd = node("worker3");
                odd["spec"]["unschedulable"] = json!("false");
                c.facts.nodes = known(&[node("worker1"), node("worker2"), odd]);
            },
            Unknown,
            Reason::ObservationMalformed,
            "Node worker3: spec.unschedulable is text, wanted true or false",
        ),
        (
            "stale",
            |c| c.now = now() + jiff::SignedDuration::from_secs(31),
            Unknown,
            Reason::ObservationStale,
            "what is known of nodes is 31 s old, allowed are 30 s",
        ),
    ];
    check(&rows);
}

#[test]
fn no_missing_or_odd_field_makes_a_block_fine() {
    let with_other = |other: &Value| {
        let mut case = case();
        case.facts.nodes = known(&[node("worker1"), node("worker2"), other.clone()]);
        case.ask(&GATE)
    };
    // A field that is not there or null means false to Kubernetes, and an object that lacks all of spec's members is
    // one without a cordon.
    mutation::check(
        &cordoned(node("worker3")),
        &["/spec/unschedulable deleted", "/spec/unschedulable nulled"],
        with_other,
    );
    mutation::check(&not_ready(node("worker3")), &[], with_other);
    // A node without the role's label is no control-plane node, and the limit alone decides.
    let second_server = |other: &Value| {
        let mut case = case();
        case.settings.limits.max_unavailable = 2;
        case.facts.nodes = known(&[node("worker1"), node("worker2"), other.clone()]);
        case.ask(&GATE)
    };
    mutation::check(
        &not_ready(node("worker3")),
        &[
            "/metadata/labels deleted",
            "/metadata/labels nulled",
            "/metadata/labels/node-role.kubernetes.io~1control-plane deleted",
        ],
        second_server,
    );

    let with_run = |run: &Value| {
        let mut case = case();
        case.facts.maintenances = known(std::slice::from_ref(run));
        case.ask(&GATE)
    };
    // Creating a record drops its status: without one, or without a phase, it is Pending.
    mutation::check(
        &run("worker3", "Draining"),
        &["/status deleted", "/status nulled", "/status/phase deleted", "/status/phase nulled"],
        with_run,
    );

    let with_lock = |lock: &Value| {
        let mut case = case();
        case.facts.daemon_sets = known(&[kured(Some(&lock.to_string()))]);
        case.ask(&GATE)
    };
    let entry = json!({"nodeID": "worker3", "metadata": {"unschedulable": false}, "created": ago(9), "TTL": 0});
    mutation::check(&entry, &[], with_lock);
    // An entry that is taken out of the list is a lock that was given back.
    mutation::check(&json!({"maxOwners": 2, "locks": [entry]}), &["/locks/0 deleted"], with_lock);

    let with_kured = |kured: &Value| {
        let mut case = case();
        case.facts.daemon_sets = known(std::slice::from_ref(kured));
        case.ask(&GATE)
    };
    // No annotation, no lock: kured gives a single lock back by deleting it.
    mutation::check(
        &kured(Some(r#"{"nodeID":"worker3"}"#)),
        &[
            "/metadata/annotations deleted",
            "/metadata/annotations nulled",
            "/metadata/annotations/weave.works~1kured-node-lock deleted",
        ],
        with_kured,
    );
}

#[test]
fn the_evidence_is_one_line_a_node() {
    let mut case = case();
    case.settings.limits.max_unavailable = 2;
    case.facts.nodes =
        good(&NODES.map(|name| if name == "worker2" { node(name) } else { cordoned(not_ready(node(name))) }));
    let finding = case.ask(&GATE);
    let shown: Vec<_> = finding.evidence.iter().map(|one| (one.object.as_str(), one.value.as_str())).collect();
    assert_eq!(shown, [("Node worker1", "NotReady, cordoned"), ("Node worker3", "NotReady, cordoned")]);
    assert_eq!(finding.since.map(|since| since.to_string()).as_deref(), Some(ago(86_400).as_str()));
}
