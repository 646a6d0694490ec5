//! The table of gate `databases`.

use serde_json::{Value, json};

use super::super::RunContext;
use super::super::testing::{Case, World, survivors};
use super::GATE;
use crate::api::{Moment, Reason, SourceId, Status, Strategy};
use crate::facts::{FailureKind, Observation};

/// A whole cluster with its primary `<name>-1`.
fn cluster(name: &str, instances: i64) -> Value {
    json!({
        "apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster",
        "metadata": {"name": name, "namespace": "db", "annotations": {}},
        "spec": {"instances": instances, "enablePDB": true},
        "status": {
            "readyInstances": instances, "phase": "Cluster in healthy state",
            "currentPrimary": format!("{name}-1"), "targetPrimary": format!("{name}-1"),
            "conditions": [{"type": "Ready", "status": "True", "reason": "ClusterIsReady"}],
        },
    })
}

/// A Ready instance.
fn instance(of: &str, number: usize, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("{of}-{number}"), "namespace": "db", "uid": format!("uid-{of}-{number}"),
            "labels": {"cnpg.io/cluster": of, "cnpg.io/instanceName": format!("{of}-{number}"), "cnpg.io/podRole": "instance"},
        },
        "spec": {"nodeName": node},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

/// Cluster `pg` with an instance on each of these nodes, the first of which holds the primary.
fn spread(nodes: &[&str]) -> World {
    let mut world = World::healthy();
    *world.of(SourceId::CnpgClusters) = vec![cluster("pg", i64::try_from(nodes.len()).expect("few"))];
    *world.of(SourceId::CnpgPods) = nodes.iter().zip(1..).map(|(node, number)| instance("pg", number, node)).collect();
    world
}

/// Three instances, the primary on the target.
fn three() -> World {
    spread(&["worker2", "worker1", "worker3"])
}

fn pg(world: &mut World) -> &mut Value {
    world.named(SourceId::CnpgClusters, "pg")
}

fn pod<'a>(world: &'a mut World, name: &str) -> &'a mut Value {
    world.named(SourceId::CnpgPods, name)
}

fn not_ready(world: &mut World, name: &str) {
    pod(world, name)["status"]["conditions"][0]["status"] = json!("False");
}

fn cordon(world: &mut World, node: &str) {
    world.named(SourceId::Nodes, node)["spec"]["unschedulable"] = json!(true);
}

/// The primary has gone to `pg-2`, the instance of the target is being ended.
fn drained(world: &mut World) {
    pg(world)["status"]["currentPrimary"] = json!("pg-2");
    pg(world)["status"]["targetPrimary"] = json!("pg-2");
    pg(world)["status"]["readyInstances"] = json!(2);
    pg(world)["status"]["conditions"][0]["status"] = json!("False");
    world.of(SourceId::CnpgPods).remove(0);
}

fn start(_: &mut Case) {}
fn same(_: &mut World) {}
fn cordon_only(case: &mut Case) {
    case.strategy = Strategy::CordonOnly;
}
fn at(case: &mut Case, moment: Moment) {
    case.moment = moment;
    case.run = Some(RunContext::default());
}
fn handover(case: &mut Case) {
    at(case, Moment::Handover);
}
fn settle(case: &mut Case) {
    at(case, Moment::Settle);
}

type Row = (&'static str, fn() -> World, fn(&mut World), fn(&mut Case), Status, Reason, &'static str);

const HEALTHY: &[Row] = &[
    (
        "three instances",
        three,
        same,
        start,
        Status::Pass,
        Reason::Passed,
        "1 PostgreSQL clusters can do without worker2",
    ),
    (
        "a replica on the target",
        || spread(&["worker1", "worker2", "worker3"]),
        same,
        start,
        Status::Pass,
        Reason::Passed,
        "can do without",
    ),
    ("two instances", || spread(&["worker2", "worker1"]), same, start, Status::Pass, Reason::Passed, "can do without"),
    (
        "nothing on the target",
        || spread(&["worker1", "worker3"]),
        same,
        start,
        Status::Pass,
        Reason::Passed,
        "can do without",
    ),
    ("one instance elsewhere", || spread(&["worker1"]), same, start, Status::Pass, Reason::Passed, "can do without"),
    (
        "no cluster at all",
        || spread(&[]),
        |w| w.of(SourceId::CnpgClusters).clear(),
        start,
        Status::Pass,
        Reason::Passed,
        "there are no PostgreSQL clusters",
    ),
    ("not installed", World::healthy, same, start, Status::NotApplicable, Reason::NotInstalled, "not installed"),
    (
        "hibernated, without pods",
        three,
        |w| {
            pg(w)["metadata"]["annotations"]["cnpg.io/hibernation"] = json!("on");
            pg(w)["status"] = json!({"phase": "Cluster in hibernation"});
            w.of(SourceId::CnpgPods).clear();
        },
        start,
        Status::Pass,
        Reason::Passed,
        "can do without",
    ),
    (
        "being deleted",
        three,
        |w| {
            pg(w)["metadata"]["deletionTimestamp"] = json!("2026-11-30T00:59:00Z");
            pg(w)["status"]["readyInstances"] = json!(0);
        },
        start,
        Status::Pass,
        Reason::Passed,
        "can do without",
    ),
    (
        "fencing lifted",
        three,
        |w| pg(w)["metadata"]["annotations"]["cnpg.io/fencedInstances"] = json!("[]"),
        start,
        Status::Pass,
        Reason::Passed,
        "can do without",
    ),
    (
        "a pooler and a finished job on the target",
        || spread(&["worker1", "worker3"]),
        |w| {
            let mut pooler = instance("pg", 8, "worker2");
            pooler["metadata"]["labels"]["cnpg.io/poolerName"] = json!("pooler");
            let mut job = instance("pg", 9, "worker2");
            job["metadata"]["labels"]["cnpg.io/jobRole"] = json!("join");
            w.of(SourceId::CnpgPods).extend([pooler, job]);
        },
        start,
        Status::Pass,
        Reason::Passed,
        "can do without",
    ),
    (
        "two on the target, one elsewhere",
        || spread(&["worker2", "worker2", "worker3"]),
        same,
        start,
        Status::Pass,
        Reason::Passed,
        "can do without",
    ),
    (
        "distributed topology, this one is the primary",
        three,
        |w| pg(w)["spec"]["replica"] = json!({"primary": "pg", "source": "other"}),
        start,
        Status::Pass,
        Reason::Passed,
        "can do without",
    ),
    (
        "drained",
        three,
        drained,
        handover,
        Status::Pass,
        Reason::Passed,
        "no primary of 1 PostgreSQL clusters is on worker2",
    ),
    (
        "a replica stays (bound to the node), cordon-only",
        three,
        same,
        |c| {
            handover(c);
            cordon_only(c);
        },
        Status::Pass,
        Reason::Passed,
        "no primary",
    ),
    (
        "one instance without a budget, at handover",
        || spread(&["worker2"]),
        |w| pg(w)["spec"]["enablePDB"] = json!(false),
        handover,
        Status::Pass,
        Reason::Passed,
        "no primary",
    ),
    ("whole again", three, same, settle, Status::Pass, Reason::Passed, "all 1 PostgreSQL clusters are whole"),
];

const SICK: &[Row] = &[
    (
        "B67: the only replica is on a cordoned node",
        || spread(&["worker2", "worker1"]),
        |w| cordon(w, "worker1"),
        start,
        Status::Block,
        Reason::DatabasePrimaryCannotMove,
        "pg-1, the primary of PostgreSQL cluster db/pg, cannot leave worker2: no other instance is Ready on another Ready, schedulable node",
    ),
    (
        "the only replica is on a node that is not Ready",
        || spread(&["worker2", "worker1"]),
        |w| w.named(SourceId::Nodes, "worker1")["status"]["conditions"][0]["status"] = json!("Unknown"),
        start,
        Status::Block,
        Reason::DatabasePrimaryCannotMove,
        "no other instance",
    ),
    (
        "both on the target",
        || spread(&["worker2", "worker2"]),
        same,
        start,
        Status::Block,
        Reason::DatabasePrimaryCannotMove,
        "no other instance",
    ),
    (
        "B69: the designated primary of a replica cluster",
        three,
        |w| pg(w)["spec"]["replica"] = json!({"enabled": true, "source": "other"}),
        start,
        Status::Block,
        Reason::DatabasePrimaryCannotMove,
        "it is a replica cluster, whose designated primary is not switched over",
    ),
    (
        "B69: a replica cluster of the distributed form",
        three,
        |w| pg(w)["spec"]["replica"] = json!({"primary": "other", "source": "other"}),
        start,
        Status::Block,
        Reason::DatabasePrimaryCannotMove,
        "it is a replica cluster",
    ),
    (
        "B71: one instance with its budget",
        || spread(&["worker2"]),
        same,
        start,
        Status::Block,
        Reason::DatabasePrimaryCannotMove,
        "it has one instance; or accept that it is down: kubectl -n db patch clusters.postgresql.cnpg.io pg --type merge -p '{\"spec\":{\"enablePDB\":false}}'",
    ),
    (
        "B71: one instance without a budget",
        || spread(&["worker2"]),
        |w| pg(w)["spec"]["enablePDB"] = json!(false),
        start,
        Status::Warn,
        Reason::DatabaseGoesDown,
        "PostgreSQL cluster db/pg is down while worker2 is away: it has one instance",
    ),
    (
        "B71: one instance in its maintenance window",
        || spread(&["worker2"]),
        |w| pg(w)["spec"]["nodeMaintenanceWindow"] = json!({"inProgress": true, "reusePVC": true}),
        start,
        Status::Warn,
        Reason::DatabaseGoesDown,
        "it has one instance",
    ),
    (
        "one instance, cordon-only",
        || spread(&["worker2"]),
        same,
        cordon_only,
        Status::Warn,
        Reason::DatabaseGoesDown,
        "one instance",
    ),
    (
        "B73: a replica is being made",
        three,
        |w| {
            pg(w)["status"]["readyInstances"] = json!(2);
            pg(w)["status"]["phase"] = json!("Creating a new replica");
            not_ready(w, "pg-3");
        },
        start,
        Status::Block,
        Reason::DatabaseIncomplete,
        "PostgreSQL cluster db/pg has 2 of 3 instances ready (Creating a new replica)",
    ),
    (
        "nothing ready, which the API leaves out",
        three,
        |w| drop(pg(w)["status"].as_object_mut().expect("an object").remove("readyInstances")),
        start,
        Status::Block,
        Reason::DatabaseIncomplete,
        "has 0 of 3 instances ready",
    ),
    (
        "condition Ready is False",
        three,
        |w| {
            pg(w)["status"]["conditions"][0]["status"] = json!("False");
            pg(w)["status"]["phase"] = json!("Upgrading cluster");
        },
        start,
        Status::Block,
        Reason::DatabaseIncomplete,
        "PostgreSQL cluster db/pg is not Ready: Upgrading cluster (False)",
    ),
    (
        "no condition Ready",
        three,
        |w| pg(w)["status"]["conditions"] = json!([]),
        start,
        Status::Block,
        Reason::DatabaseIncomplete,
        "(missing)",
    ),
    (
        "incomplete without an instance on the target",
        || spread(&["worker1", "worker3"]),
        |w| {
            pg(w)["status"]["readyInstances"] = json!(1);
            not_ready(w, "pg-2");
        },
        start,
        Status::Warn,
        Reason::DatabaseIncomplete,
        "has 1 of 2 instances ready",
    ),
    (
        "switching over",
        three,
        |w| pg(w)["status"]["targetPrimary"] = json!("pg-2"),
        start,
        Status::Block,
        Reason::DatabaseInTransition,
        "PostgreSQL cluster db/pg is switching over from pg-1 to pg-2",
    ),
    (
        "fenced",
        three,
        |w| pg(w)["metadata"]["annotations"]["cnpg.io/fencedInstances"] = json!("[\"pg-2\"]"),
        start,
        Status::Block,
        Reason::DatabaseInTransition,
        "has fenced instances",
    ),
    (
        "going into hibernation",
        three,
        |w| pg(w)["metadata"]["annotations"]["cnpg.io/hibernation"] = json!("on"),
        start,
        Status::Block,
        Reason::DatabaseInTransition,
        "is being hibernated and still has pods",
    ),
    (
        "a Ready primary that says no node may be here",
        || spread(&["worker2"]),
        |w| drop(pod(w, "pg-1")["spec"].as_object_mut().expect("an object").remove("nodeName")),
        start,
        Status::Block,
        Reason::DatabasePrimaryCannotMove,
        "it has one instance",
    ),
    (
        "fewer pods than ready instances",
        three,
        |w| drop(w.of(SourceId::CnpgPods).remove(1)),
        start,
        Status::Unknown,
        Reason::ObservationMalformed,
        "PostgreSQL cluster db/pg says 3 ready instances and has 2 pods",
    ),
    (
        "the primary did not go",
        three,
        same,
        handover,
        Status::Block,
        Reason::DatabasePrimaryOnTarget,
        "pg-1, the primary of PostgreSQL cluster db/pg, is still on worker2",
    ),
    (
        "B70: the drained cluster has its primary only",
        three,
        |w| {
            drained(w);
            pg(w)["status"]["readyInstances"] = json!(1);
            not_ready(w, "pg-3");
        },
        handover,
        Status::Block,
        Reason::DatabaseIncomplete,
        "has 1 of 2 instances ready",
    ),
    (
        "switching over at handover, cordon-only",
        three,
        |w| pg(w)["status"]["targetPrimary"] = json!("pg-2"),
        |c| {
            handover(c);
            cordon_only(c);
        },
        Status::Block,
        Reason::DatabaseInTransition,
        "is switching over",
    ),
    (
        "B70: not whole again",
        three,
        drained,
        settle,
        Status::Block,
        Reason::DatabaseIncomplete,
        "has 2 of 3 instances ready",
    ),
];

fn case_of(row: &Row) -> Case {
    let mut world = row.1();
    (row.2)(&mut world);
    let mut case = world.case();
    (row.3)(&mut case);
    case
}

#[test]
fn clusters_are_judged_by_what_the_moment_needs() {
    for row in HEALTHY.iter().chain(SICK) {
        let (name, .., status, reason, message) = row;
        let finding = case_of(row).ask(&GATE);
        assert_eq!((finding.status, finding.reason), (*status, *reason), "{name}: {finding:?}");
        assert!(finding.message.contains(message), "{name}: {}", finding.message);
    }
}

/// What may go without a stop: the end of what was done, and why that is right.
const ALLOWED: &[(&str, &str)] = &[
    ("spec.replica deleted", "a cluster without the section follows no other"),
    ("spec.replica nulled", "a cluster without the section follows no other"),
    ("spec.replica.enabled deleted", "unset means what the names of the distributed form say, and here are none"),
    ("spec.replica.enabled nulled", "unset means what the names of the distributed form say, and here are none"),
    ("spec.replica.primary deleted", "unset means that it follows no other"),
    ("spec.replica.primary nulled", "unset means that it follows no other"),
    ("spec.unschedulable deleted", "the API leaves false out"),
    ("spec.unschedulable nulled", "the API leaves false out"),
    ("metadata.annotations deleted", "what was annotated is no more"),
    ("metadata.annotations nulled", "what was annotated is no more"),
    ("cnpg.io/fencedInstances deleted", "fencing is lifted by taking it away"),
    ("cnpg.io/fencedInstances nulled", "fencing is lifted by taking it away"),
    ("cnpg.io/hibernation deleted", "hibernation is ended by taking it away"),
    ("cnpg.io/hibernation nulled", "hibernation is ended by taking it away"),
];

#[test]
fn no_gap_makes_a_blocking_cluster_fine() {
    let mut fine = Vec::new();
    for row in SICK.iter().filter(|row| row.4 == Status::Block) {
        let mut world = row.1();
        (row.2)(&mut world);
        for left in survivors(&GATE, &world, row.3) {
            if !ALLOWED.iter().any(|(end, _)| left.ends_with(end)) {
                fine.push(format!("{}: {left}", row.0));
            }
        }
    }
    assert!(fine.is_empty(), "{}", fine.join("\n"));
}

#[test]
fn what_was_no_better_at_the_start_holds_nobody() {
    let rows = [("as then", 1, Status::Warn), ("better", 2, Status::Warn), ("worse", 0, Status::Block)];
    for moment in [Moment::Handover, Moment::Settle] {
        for (name, ready, status) in rows {
            let sick = |ready: i64| {
                let mut world = spread(&["worker1", "worker3", "worker3"]);
                pg(&mut world)["status"]["readyInstances"] = json!(ready);
                world
            };
            let then = sick(1).case().ask(&GATE);
            assert_eq!(then.status, Status::Warn, "nothing is on the target");
            let mut case = sick(ready).case();
            case.moment = moment;
            case.run = Some(RunContext { baseline: vec![then], ..RunContext::default() });
            let finding = case.ask(&GATE);
            let wanted = if moment == Moment::Handover && ready == 2 { Status::Pass } else { status };
            assert_eq!(finding.status, wanted, "{name} at {moment}: {finding:?}");
        }
    }
}

#[test]
fn what_is_installed_and_cannot_be_read_is_unknown() {
    let failed = |kind| Observation::Failed {
        kind,
        detail: "storage is (re)initializing".to_owned(),
        at: super::super::testing::now(),
    };
    for kind in FailureKind::ALL {
        let mut case = three().case();
        case.facts.cnpg_clusters = failed(*kind);
        assert_eq!(case.ask(&GATE).status, Status::Unknown, "{kind}");
        let mut case = three().case();
        case.facts.cnpg_pods = Observation::Failed { kind: *kind, detail: "no".to_owned(), at: case.now };
        assert_eq!(case.ask(&GATE).status, Status::Unknown, "{kind}");
    }
    let mut case = three().case();
    case.facts.cnpg_pods = Observation::NotAsked;
    assert_eq!(case.ask(&GATE).status, Status::Unknown, "clusters and no pods");
}
