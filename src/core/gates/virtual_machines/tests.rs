//! The table of gate `virtual-machines`.

use serde_json::{Value, json};

use super::super::RunContext;
use super::super::testing::{Case, NODES, World, ago, now, survivors};
use super::GATE;
use crate::api::{Finding, Moment, Reason, SourceId, Status, Strategy};
use crate::facts::{FailureKind, Listed, Observation};

fn object(kind: &str, name: &str, spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1", "kind": kind,
        "metadata": {"name": name, "namespace": "vms", "creationTimestamp": ago(600)}, "spec": spec, "status": status,
    })
}

/// A running machine that can be migrated.
fn machine(name: &str, node: &str) -> Value {
    object(
        "VirtualMachineInstance",
        name,
        &json!({"evictionStrategy": "LiveMigrate"}),
        &json!({
            "phase": "Running", "nodeName": node,
            "conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "LiveMigratable", "status": "True", "lastProbeTime": null},
            ],
        }),
    )
}

/// KubeVirt on every node, with machine `web` on the target and `db` elsewhere.
fn kubevirt() -> World {
    let mut world = World::healthy();
    for node in NODES {
        world.named(SourceId::Nodes, node)["metadata"]["labels"]["kubevirt.io/schedulable"] = json!("true");
    }
    *world.of(SourceId::VirtualMachineInstances) = vec![machine("web", "worker2"), machine("db", "worker1")];
    *world.of(SourceId::VirtualMachineMigrations) = vec![migration("old", "web", "Succeeded")];
    *world.of(SourceId::KubeVirts) = vec![object("KubeVirt", "kubevirt", &json!({"configuration": {}}), &json!({}))];
    world
}

fn migration(name: &str, of: &str, phase: &str) -> Value {
    object("VirtualMachineInstanceMigration", name, &json!({"vmiName": of}), &json!({"phase": phase}))
}

fn web(world: &mut World) -> &mut Value {
    world.named(SourceId::VirtualMachineInstances, "web")
}
fn strategy(world: &mut World, strategy: &str) {
    web(world)["spec"]["evictionStrategy"] = json!(strategy);
}
fn cannot_migrate(world: &mut World) {
    web(world)["status"]["conditions"][1] =
        json!({"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable"});
}
fn default_strategy(world: &mut World, strategy: &str) {
    web(world)["spec"] = json!({});
    world.named(SourceId::KubeVirts, "kubevirt")["spec"]["configuration"]["evictionStrategy"] = json!(strategy);
}
fn moving(world: &mut World, to: &str) {
    web(world)["status"]["migrationState"] =
        json!({"startTimestamp": ago(30), "sourceNode": "worker2", "targetNode": to});
}
fn label(world: &mut World, node: &str, value: &str) {
    world.named(SourceId::Nodes, node)["metadata"]["labels"]["kubevirt.io/schedulable"] = json!(value);
}

fn start(_: &mut Case) {}
fn handover(case: &mut Case) {
    case.moment = Moment::Handover;
    case.run = Some(RunContext::default());
}

type Row = (&'static str, fn(&mut World), fn(&mut Case), Status, Reason, &'static str);
const PASS: Status = Status::Pass;
const WARN: Status = Status::Warn;
const BLOCK: Status = Status::Block;
const MOVES: &str = "all 1 virtual machines on worker2 can move";

const HEALTHY: &[Row] = &[
    ("it can move", |_| {}, start, PASS, Reason::Passed, MOVES),
    (
        "it was moved before",
        |w| {
            moving(w, "worker2");
            web(w)["status"]["migrationState"]["endTimestamp"] = json!(ago(10));
            web(w)["status"]["migrationState"]["completed"] = json!(true);
        },
        start,
        PASS,
        Reason::Passed,
        MOVES,
    ),
    (
        "a migration failed before",
        |w| {
            moving(w, "worker3");
            web(w)["status"]["migrationState"]["failed"] = json!(true);
            w.of(SourceId::VirtualMachineMigrations).push(migration("tried", "web", "Failed"));
        },
        start,
        PASS,
        Reason::Passed,
        MOVES,
    ),
    (
        "another machine is being moved elsewhere",
        |w| {
            w.of(SourceId::VirtualMachineMigrations).push(migration("other", "db", "Running"));
        },
        start,
        PASS,
        Reason::Passed,
        MOVES,
    ),
    ("LiveMigrateIfPossible, and it is", |w| strategy(w, "LiveMigrateIfPossible"), start, PASS, Reason::Passed, MOVES),
    ("the cluster says LiveMigrate", |w| default_strategy(w, "LiveMigrate"), start, PASS, Reason::Passed, MOVES),
    ("one node is enough to take it", |w| label(w, "worker1", "false"), start, PASS, Reason::Passed, MOVES),
    (
        "none on the target",
        |w| web(w)["status"]["nodeName"] = json!("worker3"),
        start,
        PASS,
        Reason::Passed,
        "no virtual machine is on worker2",
    ),
    (
        "it waits for a node",
        |w| {
            web(w)["status"] = json!({"phase": "Scheduling"});
        },
        start,
        PASS,
        Reason::Passed,
        "no virtual machine is on worker2",
    ),
    (
        "it has ended",
        |w| web(w)["status"]["phase"] = json!("Succeeded"),
        start,
        PASS,
        Reason::Passed,
        "no virtual machine is on worker2",
    ),
    (
        "no machine at all",
        |w| w.of(SourceId::VirtualMachineInstances).clear(),
        start,
        PASS,
        Reason::Passed,
        "no virtual machine is on worker2",
    ),
    (
        "handover: drained",
        |w| web(w)["status"]["nodeName"] = json!("worker3"),
        handover,
        PASS,
        Reason::Passed,
        "no virtual machine is on worker2",
    ),
    (
        "cordon-only",
        cannot_migrate,
        |c| c.strategy = Strategy::CordonOnly,
        Status::NotApplicable,
        Reason::Passed,
        "cordon-only evicts no pod, so every virtual machine stays",
    ),
];

const SICK: &[Row] = &[
    (
        "it should move and cannot",
        cannot_migrate,
        start,
        BLOCK,
        Reason::VirtualMachineCannotMove,
        "virtual machine vms/web cannot leave worker2: it may only leave running (evictionStrategy is LiveMigrate), and \
         LiveMigratable is False (DisksNotLiveMigratable)",
    ),
    (
        "nobody says whether it can",
        |w| web(w)["status"]["conditions"] = json!([]),
        start,
        BLOCK,
        Reason::VirtualMachineCannotMove,
        "LiveMigratable is missing",
    ),
    (
        "the cluster says LiveMigrate, and it cannot",
        |w| {
            default_strategy(w, "LiveMigrate");
            cannot_migrate(w);
        },
        start,
        BLOCK,
        Reason::VirtualMachineCannotMove,
        "LiveMigratable is False",
    ),
    (
        "no other node takes machines",
        |w| {
            label(w, "worker1", "false");
            w.named(SourceId::Nodes, "worker3")["spec"]["unschedulable"] = json!(true);
        },
        start,
        BLOCK,
        Reason::VirtualMachineCannotMove,
        "virtual machine vms/web cannot leave worker2: no other Ready, schedulable node takes virtual machines",
    ),
    (
        "it is asked to move",
        |w| w.of(SourceId::VirtualMachineMigrations).push(migration("go", "web", "")),
        start,
        BLOCK,
        Reason::VirtualMachineMigrating,
        "virtual machine vms/web is being moved (new): KubeVirt refuses its eviction meanwhile",
    ),
    (
        "it is being moved",
        |w| moving(w, "worker3"),
        start,
        BLOCK,
        Reason::VirtualMachineMigrating,
        "virtual machine vms/web is being moved (worker3)",
    ),
    (
        "it comes here",
        |w| {
            web(w)["status"]["nodeName"] = json!("worker3");
            moving(w, "worker2");
        },
        start,
        BLOCK,
        Reason::VirtualMachineMigrating,
        "virtual machine vms/web is being moved (worker2)",
    ),
    (
        "it starts",
        |w| web(w)["status"]["phase"] = json!("Scheduled"),
        start,
        BLOCK,
        Reason::VirtualMachineInTransition,
        "virtual machine vms/web is starting on worker2",
    ),
    (
        "it ends",
        |w| web(w)["metadata"]["deletionTimestamp"] = json!(ago(5)),
        start,
        BLOCK,
        Reason::VirtualMachineInTransition,
        "virtual machine vms/web is ending on worker2",
    ),
    (
        "the drain stops it",
        |w| strategy(w, "None"),
        start,
        WARN,
        Reason::VirtualMachineStops,
        "virtual machine vms/web is stopped when worker2 is drained (evictionStrategy is None)",
    ),
    (
        "the drain stops it, by the cluster's default",
        |w| web(w)["spec"] = json!({}),
        start,
        WARN,
        Reason::VirtualMachineStops,
        "virtual machine vms/web is stopped when worker2 is drained (evictionStrategy is None)",
    ),
    (
        "it would move and cannot, which is allowed",
        |w| {
            strategy(w, "LiveMigrateIfPossible");
            cannot_migrate(w);
        },
        start,
        WARN,
        Reason::VirtualMachineStops,
        "is stopped when worker2 is drained (evictionStrategy is LiveMigrateIfPossible)",
    ),
    (
        "something else moves it",
        |w| strategy(w, "External"),
        start,
        WARN,
        Reason::VirtualMachineMovedByOthers,
        "virtual machine vms/web leaves worker2 only when something else moves it (External)",
    ),
    (
        "a strategy of a younger release",
        |w| strategy(w, "Teleport"),
        start,
        Status::Unknown,
        Reason::ObservationMalformed,
        "virtual machine vms/web has evictionStrategy `Teleport`, which this version does not know",
    ),
    (
        "nothing says what counts",
        |w| {
            default_strategy(w, "LiveMigrate");
            w.of(SourceId::KubeVirts).clear();
        },
        start,
        Status::Unknown,
        Reason::ObservationMalformed,
        "there are virtual machines, and 0 KubeVirts that say what an eviction does to them",
    ),
    (
        "handover: it is still here",
        |_| {},
        handover,
        BLOCK,
        Reason::VirtualMachineOnTarget,
        "virtual machine vms/web is still on worker2",
    ),
    (
        "handover: one comes back",
        |w| {
            web(w)["status"]["nodeName"] = json!("worker3");
            moving(w, "worker2");
        },
        handover,
        BLOCK,
        Reason::VirtualMachineMigrating,
        "virtual machine vms/web is being moved to worker2",
    ),
];

fn world(bend: fn(&mut World)) -> World {
    let mut world = kubevirt();
    bend(&mut world);
    world
}

fn ask(row: &Row) -> Finding {
    let mut case = world(row.1).case();
    (row.2)(&mut case);
    case.ask(&GATE)
}

#[test]
fn machines_move_stop_or_are_waited_for() {
    for row in HEALTHY.iter().chain(SICK) {
        let (name, _, _, status, reason, message) = row;
        let finding = ask(row);
        assert_eq!((finding.status, finding.reason), (*status, *reason), "{name}: {finding:?}");
        assert!(finding.message.contains(message), "{name}: {}", finding.message);
    }
    for reason in GATE.reasons {
        assert!(SICK.iter().any(|row| row.4 == *reason), "{reason}");
    }
    let absent = World::healthy().case().ask(&GATE);
    assert_eq!((absent.status, absent.reason), (Status::NotApplicable, Reason::NotInstalled));
}

/// What may go without a stop: how what was done ends, and why that is right.
const ALLOWED: &[(&str, &str)] = &[
    ("spec.evictionStrategy deleted", "unset means the cluster's strategy, and that is None here"),
    ("spec.evictionStrategy nulled", "unset means the cluster's strategy, and that is None here"),
    ("spec.configuration deleted", "unset means None"),
    ("spec.configuration nulled", "unset means None"),
    ("spec.configuration.evictionStrategy deleted", "unset means None"),
    ("spec.configuration.evictionStrategy nulled", "unset means None"),
    ("spec.unschedulable deleted", "the API leaves false out"),
    ("spec.unschedulable nulled", "the API leaves false out"),
    ("web: metadata.deletionTimestamp deleted", "it is not being deleted"),
    ("web: metadata.deletionTimestamp nulled", "it is not being deleted"),
    ("status.migrationState deleted", "it was never moved"),
    ("status.migrationState nulled", "it was never moved"),
    ("status.migrationState.targetNode deleted", "no node of its own is known yet, so that it does not come here"),
    ("status.migrationState.targetNode nulled", "no node of its own is known yet, so that it does not come here"),
];

#[test]
fn no_gap_makes_a_blocking_cluster_fine() {
    let (mut fine, mut needed) = (Vec::new(), std::collections::BTreeSet::new());
    for row in SICK.iter().filter(|row| row.3 == BLOCK) {
        for left in survivors(&GATE, &world(row.1), row.2) {
            match ALLOWED.iter().find(|(end, _)| left.ends_with(end)) {
                Some((end, _)) => drop(needed.insert(*end)),
                None => fine.push(format!("{}: {left}", row.0)),
            }
        }
    }
    assert!(fine.is_empty(), "{}", fine.join("\n"));
    for (end, _) in ALLOWED {
        assert!(needed.contains(end), "{end} is allowed and stops all the same");
    }
}

#[test]
fn what_is_installed_and_cannot_be_read_is_unknown() {
    fn failed<T>(kind: FailureKind) -> Listed<T> {
        Observation::Failed { kind, detail: "storage is (re)initializing".to_owned(), at: now() }
    }
    type Bend = fn(&mut Case, FailureKind);
    const ROWS: &[(&str, Bend)] = &[
        ("machines", |c, kind| c.facts.virtual_machine_instances = failed(kind)),
        ("migrations", |c, kind| c.facts.virtual_machine_migrations = failed(kind)),
        ("kubevirts", |c, kind| c.facts.kubevirts = failed(kind)),
        ("nodes", |c, kind| c.facts.nodes = failed(kind)),
        ("no migrations", |c, _| c.facts.virtual_machine_migrations = Observation::Absent { at: now() }),
        ("no kubevirts", |c, _| c.facts.kubevirts = Observation::Absent { at: now() }),
    ];
    for (name, bend) in ROWS {
        for kind in FailureKind::ALL {
            let mut case = world(|w| default_strategy(w, "LiveMigrate")).case();
            assert_eq!(case.ask(&GATE).status, Status::Pass, "{name}");
            bend(&mut case, *kind);
            assert_eq!(case.ask(&GATE).status, Status::Unknown, "{name} {kind}");
        }
    }
}
