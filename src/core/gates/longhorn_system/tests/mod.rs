//! The tables of gate `longhorn-system`: each row bends a whole Longhorn on three nodes in one place. Rows named `B..`
//! are bugs that people met.

mod rows;

use serde_json::{Value, json};

use super::super::RunContext;
use super::super::testing::longhorn::{instance_manager, longhorn_attachment, longhorn_node};
use super::super::testing::{Case, World, ago, longhorn_replica, longhorn_setting, now, sentence, survivors};
use super::GATE;
use crate::api::{Finding, Moment, Reason, SourceId, Status, Strategy};
use crate::facts::{FailureKind, Listed, Observation};

/// Name, what is bent in the cluster and in the question, and the answer.
type Row = (&'static str, fn(&mut World), fn(&mut Case), Status, Reason, &'static str);

const DRAINABLE: &str = "all 3 Longhorn nodes are Ready, with what a drain of worker2 needs of them";
const WHOLE: &str = "all 3 Longhorn nodes are Ready, with their instance managers and disks";

fn same(_: &mut World) {}
fn start(_: &mut Case) {}
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
fn verify(case: &mut Case) {
    at(case, Moment::Verify);
}
fn settle(case: &mut Case) {
    at(case, Moment::Settle);
}

fn member<'w>(world: &'w mut World, name: &str) -> &'w mut Value {
    world.named(SourceId::LonghornNodes, name)
}
/// Sets a condition of a node of Longhorn.
fn says(world: &mut World, node: &str, kind: &str, status: &str, reason: &str) {
    set(&mut member(world, node)["status"]["conditions"], kind, status, reason);
}
/// Sets a condition of its disk.
fn disk_says(world: &mut World, node: &str, kind: &str, status: &str, reason: &str) {
    set(&mut member(world, node)["status"]["diskStatus"]["default"]["conditions"], kind, status, reason);
}
fn set(conditions: &mut Value, kind: &str, status: &str, reason: &str) {
    let list = conditions.as_array_mut().expect("a list");
    let one = list.iter_mut().find(|one| one["type"] == kind).expect(kind);
    one["status"] = json!(status);
    one["reason"] = json!(reason);
}
fn disk<'w>(world: &'w mut World, node: &str) -> &'w mut Value {
    &mut member(world, node)["spec"]["disks"]["default"]
}
fn manager<'w>(world: &'w mut World, node: &str) -> &'w mut Value {
    world.named(SourceId::LonghornInstanceManagers, &format!("instance-manager-{node}"))
}
fn volume<'w>(world: &'w mut World, name: &str) -> &'w mut Value {
    world.named(SourceId::LonghornVolumes, name)
}
fn replica<'w>(world: &'w mut World, volume: &str, node: &str) -> &'w mut Value {
    world.named(SourceId::LonghornReplicas, &format!("{volume}-r-{node}"))
}
fn setting(world: &mut World, name: &str, value: &str) {
    let settings = world.of(SourceId::LonghornSettings);
    settings.retain(|one| one["metadata"]["name"] != name);
    settings.push(longhorn_setting(name, value));
}
fn without_budget(world: &mut World, node: &str) {
    let name = format!("instance-manager-{node}");
    world.of(SourceId::PodDisruptionBudgets).retain(|one| one["metadata"]["name"] != name.as_str());
}
fn without_manager(world: &mut World, node: &str) {
    world.of(SourceId::LonghornInstanceManagers).retain(|one| one["spec"]["nodeID"] != node);
}
fn without_replicas(world: &mut World, node: &str) {
    world.of(SourceId::LonghornReplicas).retain(|one| one["spec"]["nodeID"] != node);
}
/// A shared volume that is served from `pvc-b`'s node, the target.
fn share(world: &mut World, state: &str) {
    volume(world, "pvc-b")["spec"]["accessMode"] = json!("rwx");
    volume(world, "pvc-b")["status"]["shareState"] = json!(state);
}

fn ask(row: &Row) -> Finding {
    case(row).ask(&GATE)
}

fn case(row: &Row) -> Case {
    let mut world = World::healthy().with_longhorn();
    (row.1)(&mut world);
    let mut case = world.case();
    (row.2)(&mut case);
    case
}

#[test]
fn the_table() {
    for row in rows::all() {
        let (name, _, _, status, reason, message) = row;
        let finding = ask(&row);
        assert_eq!((finding.status, finding.reason), (status, reason), "{name}: {finding:?}");
        assert_eq!(sentence(&finding), message, "{name}");
    }
}

#[test]
fn every_reason_of_the_gate_has_a_row() {
    for reason in GATE.reasons {
        assert!(rows::all().iter().any(|row| row.4 == *reason), "{reason}");
    }
}

/// What may go without a stop: how what was done ends, and why that is right.
const ALLOWED: &[(&str, &str)] = &[
    ("status.autoEvicting deleted", "Longhorn before 1.6 does not know the field"),
    ("status.autoEvicting nulled", "Longhorn before 1.6 does not know the field"),
    ("spec.attachmentTickets deleted", "the map is nullable, and without it nobody wants the volume"),
    ("spec.attachmentTickets nulled", "the map is nullable, and without it nobody wants the volume"),
    ("spec.attachmentTickets.longhorn-api-1 deleted", "the person has let go of the volume"),
    ("status.instanceEngines deleted", "the map is nullable, and without the entry no engine is listed"),
    ("status.instanceEngines nulled", "the map is nullable, and without the entry no engine is listed"),
    ("status.instanceEngines.pvc-c-e-0 deleted", "without the entry the engine is not listed"),
    ("status.instanceEngines.pvc-z-e-0 deleted", "without the entry the engine is not listed"),
    ("status.instanceEngines.pvc-a-e-0 deleted", "without the entry the engine is not listed"),
    ("spec.attachmentTickets.csi-attacher-1 deleted", "without a ticket nobody wants the volume"),
    ("status.instanceReplicas deleted", "the map is nullable, and without it no replica is listed"),
    ("status.instanceReplicas nulled", "the map is nullable, and without it no replica is listed"),
    ("status.instanceReplicas.some-r-worker3 deleted", "without the entry the replica is not listed"),
    ("spec.disks deleted", "the map is nullable, and without the disk nothing is asked of it"),
    ("spec.disks nulled", "the map is nullable, and without the disk nothing is asked of it"),
    ("spec.disks.default deleted", "without the disk nothing is asked of it"),
    ("metadata.deletionTimestamp deleted", "it is not being deleted"),
    ("metadata.deletionTimestamp nulled", "it is not being deleted"),
];

#[test]
fn no_gap_makes_a_blocking_cluster_fine() {
    let (mut fine, mut needed) = (Vec::new(), std::collections::BTreeSet::new());
    for row in rows::all().iter().filter(|row| row.3 == Status::Block) {
        let mut world = World::healthy().with_longhorn();
        (row.1)(&mut world);
        for left in survivors(&GATE, &world, row.2) {
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
fn what_was_so_at_the_start_holds_nobody_and_what_is_worse_does() {
    let sick = |moment: Moment, status: &'static str, then: Finding| {
        let mut world = World::healthy().with_longhorn();
        says(&mut world, "worker2", "Ready", status, "ManagerPodDown");
        let mut case = world.case();
        case.moment = moment;
        case.run = Some(RunContext { baseline: vec![then], ..RunContext::default() });
        case.ask(&GATE)
    };
    let mut world = World::healthy().with_longhorn();
    says(&mut world, "worker2", "Ready", "False", "KubernetesNodeNotReady");
    let then = world.case().ask(&GATE);
    for moment in [Moment::Verify, Moment::Settle] {
        let as_then = sick(moment, "False", then.clone());
        assert_eq!(as_then.status, Status::Warn, "{as_then:?}");
        assert!(as_then.message.ends_with("(as at the start)"), "{}", as_then.message);
        assert_eq!(sick(moment, "Unknown", then.clone()).status, Status::Block, "another word");
    }
    // A full disk of the target warns at the start and holds nobody afterwards.
    let mut full = World::healthy().with_longhorn();
    disk_says(&mut full, "worker2", "Schedulable", "False", "DiskPressure");
    let then = full.case().ask(&GATE);
    let mut case = full.case();
    case.moment = Moment::Settle;
    case.run = Some(RunContext { baseline: vec![then], ..RunContext::default() });
    assert_eq!(case.ask(&GATE).status, Status::Warn);
}

#[test]
fn sources_that_do_not_answer() {
    fn absent<T>() -> Listed<T> {
        Observation::Absent { at: now() }
    }
    fn failed<T>() -> Listed<T> {
        Observation::Failed { kind: FailureKind::Forbidden, detail: "no".to_owned(), at: now() }
    }
    const ROWS: &[(&str, fn(&mut Case), Status, Reason)] = &[
        (
            "not installed",
            |c| {
                c.facts.longhorn_nodes = absent();
                c.facts.longhorn_volumes = absent();
            },
            Status::NotApplicable,
            Reason::NotInstalled,
        ),
        ("volumes and no nodes", |c| c.facts.longhorn_nodes = absent(), Status::Unknown, Reason::ObservationFailed),
        ("not asked", |c| c.facts.longhorn_nodes = Observation::NotAsked, Status::NotApplicable, Reason::NotAsked),
        ("nodes", |c| c.facts.longhorn_nodes = failed(), Status::Unknown, Reason::ObservationFailed),
        ("core nodes", |c| c.facts.nodes = failed(), Status::Unknown, Reason::ObservationFailed),
        ("managers", |c| c.facts.longhorn_instance_managers = failed(), Status::Unknown, Reason::ObservationFailed),
        ("no managers", |c| c.facts.longhorn_instance_managers = absent(), Status::Unknown, Reason::ObservationFailed),
        ("attachments", |c| c.facts.longhorn_attachments = failed(), Status::Unknown, Reason::ObservationFailed),
        ("before 1.5 there are none", |c| c.facts.longhorn_attachments = absent(), Status::Pass, Reason::Passed),
        ("replicas", |c| c.facts.longhorn_replicas = failed(), Status::Unknown, Reason::ObservationFailed),
        ("engines", |c| c.facts.longhorn_engines = failed(), Status::Unknown, Reason::ObservationFailed),
        ("volumes", |c| c.facts.longhorn_volumes = failed(), Status::Unknown, Reason::ObservationFailed),
        ("settings", |c| c.facts.longhorn_settings = failed(), Status::Unknown, Reason::ObservationFailed),
        ("budgets", |c| c.facts.pod_disruption_budgets = failed(), Status::Unknown, Reason::ObservationFailed),
        ("old", |c| c.now += jiff::SignedDuration::from_secs(31), Status::Unknown, Reason::ObservationStale),
    ];
    for (name, bend, status, reason) in ROWS {
        let mut case = World::healthy().with_longhorn().case();
        bend(&mut case);
        let finding = case.ask(&GATE);
        assert_eq!((finding.status, finding.reason), (*status, *reason), "{name}: {finding:?}");
    }
}

/// Quadratic look-ups would make this take minutes.
#[test]
fn five_thousand_volumes_are_judged() {
    let mut world = World::healthy().with_longhorn();
    for number in 0..5_000 {
        let name = format!("pvc-{number}");
        let mut more = volume(&mut world, "pvc-a").clone();
        more["metadata"]["name"] = json!(name);
        world.of(SourceId::LonghornVolumes).push(more);
        world
            .of(SourceId::LonghornReplicas)
            .extend(super::super::testing::NODES.map(|node| longhorn_replica(&name, node)));
        world.of(SourceId::LonghornAttachments).push(longhorn_attachment(&name, "csi-attacher", "worker1"));
    }
    assert_eq!(world.case().ask(&GATE).message, DRAINABLE);
}
