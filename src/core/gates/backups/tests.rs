//! The table of gate `backups`. Rows named `B..` are bugs that people met.

use serde_json::{Value, json};

use super::super::RunContext;
use super::super::testing::longhorn::longhorn_attachment;
use super::super::testing::{Case, World, ago, now, survivors};
use super::GATE;
use crate::api::{Finding, Moment, Reason, SourceId, Status, Strategy};
use crate::facts::{FailureKind, Listed, Observation};

fn object(api: &str, kind: &str, namespace: &str, name: &str, spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": api, "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": ago(600)}, "spec": spec, "status": status,
    })
}

fn velero(kind: &str, phase: &str) -> Value {
    let status = json!({"phase": phase, "startTimestamp": ago(300)});
    object("velero.io/v1", kind, "velero", &format!("nightly-{}", phase.to_lowercase()), &json!({}), &status)
}

fn longhorn(kind: &str, state: &str, volume: &str) -> Value {
    let status = json!({"state": state, "volumeName": volume, "progress": 17});
    object("longhorn.io/v1beta2", kind, "longhorn-system", &format!("b-{}", state.to_lowercase()), &json!({}), &status)
}

fn cnpg(phase: &str) -> Value {
    let (spec, status) = (json!({"cluster": {"name": "pg"}}), json!({"phase": phase, "startedAt": ago(60)}));
    object("postgresql.cnpg.io/v1", "Backup", "db", "pg-nightly", &spec, &status)
}

/// A cluster of PostgreSQL with an instance on each of these nodes.
fn postgres(world: &mut World, nodes: &[&str]) {
    let (spec, status) = (json!({"instances": nodes.len()}), json!({"readyInstances": nodes.len()}));
    *world.of(SourceId::CnpgClusters) = vec![object("postgresql.cnpg.io/v1", "Cluster", "db", "pg", &spec, &status)];
    let instance = |(node, number): (&&str, usize)| {
        let mut pod = pod("db", &format!("pg-{number}"), node);
        pod["metadata"]["labels"] = json!({"cnpg.io/cluster": "pg"});
        pod
    };
    *world.of(SourceId::CnpgPods) = nodes.iter().zip(1..).map(instance).collect();
}

fn pod(namespace: &str, name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{name}"), "labels": {}},
        "spec": {"nodeName": node}, "status": {"phase": "Running", "conditions": []},
    })
}

fn mover(world: &mut World, label: &str, value: &str, node: &str) {
    let mut pod = pod("home", "mover", node);
    pod["metadata"]["labels"][label] = json!(value);
    world.of(SourceId::TargetPods).push(pod);
}

fn engine<'w>(world: &'w mut World, volume: &str) -> &'w mut Value {
    &mut world.named(SourceId::LonghornEngines, &format!("{volume}-e-0"))["status"]
}

fn only_on(world: &mut World, volume: &str, node: &str) {
    world
        .of(SourceId::LonghornReplicas)
        .retain(|one| one["spec"]["volumeName"] != volume || one["spec"]["nodeID"] == node);
}

fn at(case: &mut Case, moment: Moment) {
    case.moment = moment;
    case.run = Some(RunContext::default());
}
fn start(_: &mut Case) {}
fn handover(case: &mut Case) {
    at(case, Moment::Handover);
}
fn cordoned_only(case: &mut Case) {
    at(case, Moment::Handover);
    case.strategy = Strategy::CordonOnly;
}

type Row = (&'static str, fn(&mut World), fn(&mut Case), Status, Reason, &'static str);
const PASS: Status = Status::Pass;
const BLOCK: Status = Status::Block;
const FINE: &str = "no backup or restore runs on what worker2 holds";

const HEALTHY: &[Row] = &[
    ("Longhorn without a backup", |_| {}, start, PASS, Reason::Passed, FINE),
    (
        "all that is over",
        |w| {
            for phase in ["Completed", "PartiallyFailed", "Failed", "FailedValidation", "Deleting"] {
                w.of(SourceId::VeleroBackups).push(velero("Backup", phase));
                w.of(SourceId::VeleroRestores).push(velero("Restore", phase));
            }
            for state in ["Completed", "Error", "Deleting"] {
                w.of(SourceId::LonghornBackups).push(longhorn("Backup", state, "pvc-b"));
                w.of(SourceId::LonghornSystemRestores).push(longhorn("SystemRestore", state, ""));
            }
            for state in ["Ready", "Error"] {
                w.of(SourceId::LonghornSystemBackups).push(longhorn("SystemBackup", state, ""));
            }
            postgres(w, &["worker2"]);
            for (phase, name) in [("completed", "one"), ("failed", "two"), ("walArchivingFailing", "three")] {
                let mut backup = cnpg(phase);
                backup["metadata"]["name"] = json!(name);
                w.of(SourceId::CnpgBackups).push(backup);
            }
        },
        start,
        PASS,
        Reason::Passed,
        FINE,
    ),
    (
        "a backup of a volume that is not here",
        |w| {
            only_on(w, "pvc-a", "worker3");
            w.of(SourceId::LonghornBackups).push(longhorn("Backup", "InProgress", "pvc-a"));
        },
        start,
        PASS,
        Reason::Passed,
        FINE,
    ),
    (
        "a backup of a volume that is gone",
        |w| w.of(SourceId::LonghornBackups).push(longhorn("Backup", "", "pvc-gone")),
        start,
        PASS,
        Reason::Passed,
        FINE,
    ),
    (
        "a backup of a cluster that is elsewhere",
        |w| {
            postgres(w, &["worker1", "worker3"]);
            w.of(SourceId::CnpgBackups).push(cnpg("running"));
        },
        start,
        PASS,
        Reason::Passed,
        FINE,
    ),
    (
        "a backup of a cluster that is gone",
        |w| {
            postgres(w, &[]);
            w.of(SourceId::CnpgClusters).clear();
            w.of(SourceId::CnpgBackups).push(cnpg("pending"));
        },
        start,
        PASS,
        Reason::Passed,
        FINE,
    ),
    ("a mover on another node", |w| mover(w, "k8upjob", "true", "worker1"), start, PASS, Reason::Passed, FINE),
    (
        "a mover that is done",
        |w| {
            mover(w, "velero.io/data-upload", "x", "worker2");
            w.named(SourceId::TargetPods, "mover")["status"]["phase"] = json!("Succeeded");
        },
        start,
        PASS,
        Reason::Passed,
        FINE,
    ),
    (
        "created by somebody else",
        |w| mover(w, "app.kubernetes.io/created-by", "a-person", "worker2"),
        start,
        PASS,
        Reason::Passed,
        FINE,
    ),
    (
        "an engine that has made its backup",
        |w| {
            engine(w, "pvc-b")["backupStatus"] = json!({"b-1": {"state": "complete"}, "b-2": {"state": "error"}});
            engine(w, "pvc-b")["purgeStatus"] = json!({"tcp://worker2:10000": {"isPurging": false}});
        },
        start,
        PASS,
        Reason::Passed,
        FINE,
    ),
    (
        "work on another node",
        |w| w.of(SourceId::LonghornAttachments).push(longhorn_attachment("pvc-c", "snapshot-controller", "worker3")),
        start,
        PASS,
        Reason::Passed,
        FINE,
    ),
    (
        "handover: what Velero does elsewhere",
        |w| {
            w.of(SourceId::VeleroBackups).push(velero("Backup", "InProgress"));
            w.of(SourceId::LonghornSystemBackups).push(longhorn("SystemBackup", "Uploading", ""));
            // A drain leaves a stopped replica on the target.
            w.of(SourceId::LonghornBackups).push(longhorn("Backup", "InProgress", "pvc-a"));
        },
        handover,
        PASS,
        Reason::Passed,
        FINE,
    ),
];

const SICK: &[Row] = &[
    (
        "Velero backs up",
        |w| w.of(SourceId::VeleroBackups).push(velero("Backup", "InProgress")),
        start,
        BLOCK,
        Reason::BackupRunning,
        "Velero's backup velero/nightly-inprogress is at work (InProgress, since 2026-11-30T00:55:00Z)",
    ),
    (
        "Velero is asked to",
        |w| {
            let mut backup = velero("Backup", "New");
            backup.as_object_mut().expect("an object").remove("status");
            w.of(SourceId::VeleroBackups).push(backup);
        },
        start,
        BLOCK,
        Reason::BackupRunning,
        "Velero's backup velero/nightly-new is at work (new, since 2026-11-30T00:50:00Z)",
    ),
    (
        "a phase of a younger Velero",
        |w| w.of(SourceId::VeleroBackups).push(velero("Backup", "ReadyToStart")),
        start,
        BLOCK,
        Reason::BackupRunning,
        "is at work (ReadyToStart",
    ),
    (
        "Velero waits for its plugins",
        |w| w.of(SourceId::VeleroBackups).push(velero("Backup", "WaitingForPluginOperations")),
        start,
        BLOCK,
        Reason::BackupRunning,
        "is at work (WaitingForPluginOperations",
    ),
    (
        "Velero restores",
        |w| w.of(SourceId::VeleroRestores).push(velero("Restore", "Finalizing")),
        start,
        BLOCK,
        Reason::RestoreRunning,
        "Velero's restore velero/nightly-finalizing is at work (Finalizing",
    ),
    (
        "B41: a backup of a volume that is attached here",
        |w| w.of(SourceId::LonghornBackups).push(longhorn("Backup", "InProgress", "pvc-b")),
        start,
        BLOCK,
        Reason::BackupRunning,
        "Longhorn's backup longhorn-system/b-inprogress of volume pvc-b is at work (InProgress, since 2026-11-30T00:50:00Z)",
    ),
    (
        "B41: a backup of a volume with a replica here",
        |w| w.of(SourceId::LonghornBackups).push(longhorn("Backup", "Pending", "pvc-a")),
        start,
        BLOCK,
        Reason::BackupRunning,
        "of volume pvc-a is at work (Pending",
    ),
    (
        "a backup that does not say of what",
        |w| w.of(SourceId::LonghornBackups).push(longhorn("Backup", "", "")),
        start,
        BLOCK,
        Reason::BackupRunning,
        "Longhorn's backup longhorn-system/b- is at work (new",
    ),
    (
        "a backup whose volume only its label tells",
        |w| {
            let mut backup = longhorn("Backup", "", "");
            backup["metadata"]["labels"] = json!({"backup-volume": "pvc-b"});
            w.of(SourceId::LonghornBackups).push(backup);
        },
        start,
        BLOCK,
        Reason::BackupRunning,
        "of volume pvc-b is at work (new",
    ),
    (
        "B41: what the engine says",
        |w| engine(w, "pvc-b")["backupStatus"] = json!({"b-1": {"state": "in_progress", "progress": 17}}),
        start,
        BLOCK,
        Reason::BackupRunning,
        "Longhorn's engine of volume pvc-b makes backup b-1",
    ),
    (
        "B41: a recurring job on the target",
        |w| mover(w, "recurring-job.longhorn.io", "nightly", "worker2"),
        start,
        BLOCK,
        Reason::BackupPodOnTarget,
        "pod home/mover on worker2 moves data for a recurring job of Longhorn",
    ),
    (
        "snapshots are merged",
        |w| engine(w, "pvc-b")["purgeStatus"] = json!({"tcp://worker2:10000": {"isPurging": true, "progress": 4}}),
        start,
        BLOCK,
        Reason::LonghornWorkOnTarget,
        "Longhorn merges snapshots of volume pvc-b at tcp://worker2:10000",
    ),
    (
        "B41: a detached volume is backed up from here",
        |w| w.of(SourceId::LonghornAttachments).push(longhorn_attachment("pvc-c", "backup-controller", "worker2")),
        start,
        BLOCK,
        Reason::LonghornWorkOnTarget,
        "Longhorn backs up volume pvc-c on worker2",
    ),
    (
        "a system backup",
        |w| w.of(SourceId::LonghornSystemBackups).push(longhorn("SystemBackup", "Generating", "")),
        start,
        BLOCK,
        Reason::BackupRunning,
        "Longhorn's systembackup longhorn-system/b-generating is at work (Generating",
    ),
    (
        "a system restore",
        |w| w.of(SourceId::LonghornSystemRestores).push(longhorn("SystemRestore", "Restoring", "")),
        start,
        BLOCK,
        Reason::RestoreRunning,
        "Longhorn's systemrestore longhorn-system/b-restoring is at work (Restoring",
    ),
    (
        "a cluster with an instance here is backed up",
        |w| {
            postgres(w, &["worker1", "worker2"]);
            w.of(SourceId::CnpgBackups).push(cnpg("running"));
        },
        start,
        BLOCK,
        Reason::BackupRunning,
        "CloudNativePG's backup db/pg-nightly of PostgreSQL cluster db/pg is at work (running, since 2026-11-30T00:59:00Z)",
    ),
    (
        "VolSync",
        |w| mover(w, "app.kubernetes.io/created-by", "volsync", "worker2"),
        start,
        BLOCK,
        Reason::BackupPodOnTarget,
        "pod home/mover on worker2 moves data for VolSync",
    ),
    (
        "k8up",
        |w| mover(w, "k8up.io/type", "backup", "worker2"),
        start,
        BLOCK,
        Reason::BackupPodOnTarget,
        "pod home/mover on worker2 moves data for k8up",
    ),
    (
        "handover: the volume is still attached here",
        |w| w.of(SourceId::LonghornBackups).push(longhorn("Backup", "InProgress", "pvc-b")),
        handover,
        BLOCK,
        Reason::BackupRunning,
        "of volume pvc-b is at work",
    ),
    (
        "handover, cordon-only: a mover",
        |w| mover(w, "velero.io/pod-volume-restore", "x", "worker2"),
        cordoned_only,
        BLOCK,
        Reason::BackupPodOnTarget,
        "pod home/mover on worker2 moves data for Velero",
    ),
    (
        "handover, cordon-only: a database",
        |w| {
            postgres(w, &["worker2"]);
            w.of(SourceId::CnpgBackups).push(cnpg("finalizing"));
        },
        cordoned_only,
        BLOCK,
        Reason::BackupRunning,
        "of PostgreSQL cluster db/pg is at work (finalizing",
    ),
];

fn world(bend: fn(&mut World)) -> World {
    let mut world = World::healthy().with_longhorn();
    bend(&mut world);
    world
}

fn ask(row: &Row) -> Finding {
    let mut case = world(row.1).case();
    (row.2)(&mut case);
    case.ask(&GATE)
}

#[test]
fn what_is_at_work_on_the_node_is_waited_for() {
    for row in HEALTHY.iter().chain(SICK) {
        let (name, _, _, status, reason, message) = row;
        let finding = ask(row);
        assert_eq!((finding.status, finding.reason), (*status, *reason), "{name}: {finding:?}");
        assert!(finding.message.contains(message), "{name}: {}", finding.message);
    }
    for reason in GATE.reasons {
        assert!(SICK.iter().any(|row| row.4 == *reason), "{reason}");
    }
}

#[test]
fn without_any_of_them_it_does_not_apply() {
    let finding = World::healthy().case().ask(&GATE);
    assert_eq!((finding.status, finding.reason), (Status::NotApplicable, Reason::NotInstalled), "{finding:?}");
    let mut pods_only = World::healthy();
    mover(&mut pods_only, "k8upjob", "true", "worker2");
    assert_eq!(pods_only.case().ask(&GATE).status, Status::Block, "pods tell where no kind does");
}

/// What may go without a stop: how what was done ends, and why that is right.
const ALLOWED: &[(&str, &str)] = &[
    ("status.backupStatus deleted", "the map is nullable, and without the entry no backup is made"),
    ("status.backupStatus nulled", "the map is nullable, and without the entry no backup is made"),
    ("status.backupStatus.b-1 deleted", "without the entry no backup is made"),
    ("status.purgeStatus deleted", "the map is nullable, and without the entry nothing is merged"),
    ("status.purgeStatus nulled", "the map is nullable, and without the entry nothing is merged"),
    ("status.purgeStatus.tcp://worker2:10000 deleted", "without the entry nothing is merged"),
    ("spec.attachmentTickets deleted", "the map is nullable, and without a ticket nobody works"),
    ("spec.attachmentTickets nulled", "the map is nullable, and without a ticket nobody works"),
    ("spec.attachmentTickets.backup-controller-1 deleted", "without a ticket nobody works"),
    ("mover: metadata.labels deleted", "nothing else tells what the pod is for"),
    ("mover: metadata.labels nulled", "nothing else tells what the pod is for"),
    ("mover: metadata.labels.recurring-job.longhorn.io deleted", "nothing else tells what the pod is for"),
    ("mover: metadata.labels.app.kubernetes.io/created-by deleted", "nothing else tells what the pod is for"),
    ("mover: metadata.labels.k8up.io/type deleted", "nothing else tells what the pod is for"),
    ("mover: metadata.labels.velero.io/pod-volume-restore deleted", "nothing else tells what the pod is for"),
];

#[test]
fn no_gap_makes_a_blocking_cluster_fine() {
    let (mut fine, mut needed) = (Vec::new(), std::collections::BTreeSet::new());
    for row in SICK {
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
        ("velero backups", |c, kind| c.facts.velero_backups = failed(kind)),
        ("velero restores", |c, kind| c.facts.velero_restores = failed(kind)),
        ("longhorn backups", |c, kind| c.facts.longhorn_backups = failed(kind)),
        ("system backups", |c, kind| c.facts.longhorn_system_backups = failed(kind)),
        ("system restores", |c, kind| c.facts.longhorn_system_restores = failed(kind)),
        ("volumes", |c, kind| c.facts.longhorn_volumes = failed(kind)),
        ("replicas", |c, kind| c.facts.longhorn_replicas = failed(kind)),
        ("engines", |c, kind| c.facts.longhorn_engines = failed(kind)),
        ("attachments", |c, kind| c.facts.longhorn_attachments = failed(kind)),
        ("cnpg backups", |c, kind| c.facts.cnpg_backups = failed(kind)),
        ("cnpg clusters", |c, kind| c.facts.cnpg_clusters = failed(kind)),
        ("cnpg pods", |c, kind| c.facts.cnpg_pods = failed(kind)),
        ("pods", |c, kind| c.facts.target_pods = failed(kind)),
    ];
    for (name, bend) in ROWS {
        for kind in FailureKind::ALL {
            let mut case = world(|w| {
                postgres(w, &["worker1"]);
                w.of(SourceId::CnpgBackups).push(cnpg("running"));
            })
            .case();
            assert_eq!(case.ask(&GATE).status, Status::Pass, "{name}");
            bend(&mut case, *kind);
            assert_eq!(case.ask(&GATE).status, Status::Unknown, "{name} {kind}");
        }
    }
}
