//! The rows.

use super::*;
use crate::config::SingleReplica;
use crate::facts::{FailureKind, Observation};

/// All of them.
pub(in super::super) fn all() -> Vec<Row> {
    [FINE_ROWS, DEGRADED, WORK, LAST_COPY, DETACHED, HANDOVER, SETTLE, READING].concat()
}

const PASS: Status = Status::Pass;
const WARN: Status = Status::Warn;
const UNKNOWN: Status = Status::Unknown;
const BLOCK: Status = Status::Block;
const PASSED: Reason = Reason::Passed;

fn remove(map: &mut Value, key: &str) {
    map.as_object_mut().expect("an object").remove(key);
}

const FINE_ROWS: &[Row] = &[
    ("B50: all healthy, a detached one with three whole copies", |_| {}, PASS, PASSED, FINE),
    ("B26: replicas = nodes = 3 and all clean", |w| w.scope("power-off"), PASS, PASSED, FINE),
    (
        "no volumes",
        |w| (w.docs.volumes.clear(), w.docs.replicas.clear(), w.docs.engines.clear()).0,
        PASS,
        PASSED,
        "Longhorn has no volumes",
    ),
    (
        "a volume in deletion is skipped",
        |w| {
            w.fail("pvc-a", "worker3", 60);
            World::find(&mut w.docs.volumes, "pvc-a")["metadata"]["deletionTimestamp"] = json!(ago(5));
        },
        PASS,
        PASSED,
        FINE,
    ),
    (
        "a replica in deletion is no copy, and no fault where three others are whole",
        |w| {
            let mut old = super::super::super::testing::longhorn_replica("pvc-a", "old");
            old["metadata"]["deletionTimestamp"] = json!(ago(5));
            w.docs.replicas.push(old);
        },
        PASS,
        PASSED,
        FINE,
    ),
    (
        "Standby: robustness is ignored",
        |w| {
            w.spec("pvc-a")["Standby"] = json!(true);
            w.status("pvc-a")["robustness"] = json!("unknown");
            w.status("pvc-a")["restoreRequired"] = json!(true);
            w.status("pvc-a")["conditions"][1]["status"] = json!("True");
        },
        PASS,
        PASSED,
        FINE,
    ),
    (
        "soft anti-affinity: two copies on one node, one on the target",
        |w| {
            w.replica("pvc-a", "worker3")["nodeID"] = json!("worker1");
        },
        PASS,
        PASSED,
        FINE,
    ),
    (
        "B25: never attached, its replicas never used",
        |w| {
            for node in NODES {
                w.replica("pvc-c", node)["healthyAt"] = json!("");
            }
        },
        PASS,
        PASSED,
        FINE,
    ),
    (
        "a failed leftover beside three whole copies",
        |w| {
            let mut old = super::super::super::testing::longhorn_replica("pvc-a", "worker3");
            old["metadata"]["name"] = json!("pvc-a-r-old");
            old["spec"]["failedAt"] = json!(ago(9_000));
            w.docs.replicas.push(old);
        },
        PASS,
        PASSED,
        FINE,
    ),
];

const DEGRADED: &[Row] = &[
    (
        "B23 (1): waiting for replenishment",
        |w| w.fail("pvc-a", "worker3", 180),
        BLOCK,
        Reason::LonghornVolumeDegraded,
        "volume pvc-a (media/pvc-a) is degraded (2 of 3 copies healthy): it waits for r-worker3 on worker3 to come \
         back, replenishment until 2026-11-30T01:07:01Z",
    ),
    (
        "B23 (1): replenishment due to the second",
        |w| w.fail("pvc-a", "worker3", 601),
        BLOCK,
        Reason::LonghornVolumeDegraded,
        "volume pvc-a (media/pvc-a) is degraded (2 of 3 copies healthy): it waits for r-worker3 on worker3 to come \
         back, replenishment was due at 2026-11-30T01:00:00Z",
    ),
    (
        "B23 (1): an interval per data engine",
        |w| {
            w.set("replica-replenishment-wait-interval", r#"{"v1":"60","v2":"1"}"#);
            w.fail("pvc-a", "worker3", 30);
        },
        BLOCK,
        Reason::LonghornVolumeDegraded,
        "volume pvc-a (media/pvc-a) is degraded (2 of 3 copies healthy): it waits for r-worker3 on worker3 to come \
         back, replenishment until 2026-11-30T01:00:31Z",
    ),
    (
        "an interval that cannot be read does not hide the block",
        |w| {
            w.set("replica-replenishment-wait-interval", "soon");
            w.fail("pvc-a", "worker3", 30);
        },
        BLOCK,
        Reason::LonghornVolumeDegraded,
        "volume pvc-a (media/pvc-a) is degraded (2 of 3 copies healthy): it waits for r-worker3 on worker3 to come \
         back, until when cannot be told (setting replica-replenishment-wait-interval is `soon`, which is no whole \
         number)",
    ),
    (
        "B23 (2): rebuilding",
        |w| w.rebuild("pvc-a", "worker3", 42),
        BLOCK,
        Reason::LonghornVolumeRebuilding,
        "volume pvc-a (media/pvc-a) is rebuilding replica r-worker3 at 42 %",
    ),
    (
        "13 volumes degraded: one speaks, the others are counted",
        |w| {
            for number in 10..23 {
                let name = format!("pvc-{number}");
                w.docs.attach(&name, "worker1", &NODES);
                w.fail(&name, "worker3", 700);
            }
        },
        BLOCK,
        Reason::LonghornVolumeDegraded,
        "volume pvc-10 (media/pvc-10) is degraded (2 of 3 copies healthy): it waits for r-worker3 on worker3 to come \
         back, replenishment was due at 2026-11-30T00:58:21Z; and 12 more",
    ),
    (
        "B22: another node down, the last readable copy on the target",
        |w| {
            w.node_not_ready("worker1");
            w.fail("pvc-b", "worker1", 60);
            w.replica("pvc-b", "worker3")["failedAt"] = json!(ago(60));
        },
        BLOCK,
        Reason::LonghornLastReplicaOnTarget,
        "volume pvc-b (media/pvc-b) is attached to worker2, and its only healthy copy is r-worker2 on worker2; and 3 \
         more",
    ),
    (
        "a replica's node that is not Ready does not count, although Longhorn still says healthy",
        |w| w.node_not_ready("worker3"),
        BLOCK,
        Reason::LonghornVolumeDegraded,
        "volume pvc-a (media/pvc-a) has 2 of 3 healthy copies, not healthy: r-worker3 on worker3; and 2 more",
    ),
    (
        "B26: one volume degraded",
        |w| w.fail("pvc-b", "worker1", 7_200),
        BLOCK,
        Reason::LonghornVolumeDegraded,
        "volume pvc-b (media/pvc-b) is degraded (2 of 3 copies healthy): it waits for r-worker1 on worker1 to come \
         back, replenishment was due at 2026-11-29T23:10:01Z",
    ),
    (
        "B38: a failed replica that is never used again",
        |w| w.fail("pvc-a", "worker2", 86_400),
        BLOCK,
        Reason::LonghornVolumeDegraded,
        "volume pvc-a (media/pvc-a) is degraded (2 of 3 copies healthy): it waits for r-worker2 on worker2 to come \
         back, replenishment was due at 2026-11-29T01:10:01Z",
    ),
    (
        "B39: cannot be placed, reason shown",
        |w| {
            w.fail("pvc-a", "worker3", 7_200);
            w.replica("pvc-a", "worker3")["diskID"] = json!("");
            w.status("pvc-a")["conditions"][0] = json!({
                "type": "scheduled", "status": "False", "reason": "ReplicaSchedulingFailure",
                "message": "insufficient storage",
            });
        },
        BLOCK,
        Reason::LonghornVolumeDegraded,
        "volume pvc-a (media/pvc-a) is degraded (2 of 3 copies healthy): a replica cannot be placed \
         (ReplicaSchedulingFailure: insufficient storage)",
    ),
    (
        "rebuilding disabled",
        |w| {
            w.set("concurrent-replica-rebuild-per-node-limit", "0");
            w.fail("pvc-a", "worker3", 7_200);
            w.replica("pvc-a", "worker3")["diskID"] = json!("");
        },
        BLOCK,
        Reason::LonghornVolumeDegraded,
        "volume pvc-a (media/pvc-a) is degraded (2 of 3 copies healthy): rebuilding is disabled \
         (concurrent-replica-rebuild-per-node-limit = 0), so it never heals by itself",
    ),
    (
        "B43: data engine v2, degraded",
        |w| {
            w.spec("pvc-b")["dataEngine"] = json!("v2");
            w.fail("pvc-b", "worker3", 60);
        },
        BLOCK,
        Reason::LonghornVolumeDegraded,
        "volume pvc-b (media/pvc-b) is degraded (2 of 3 copies healthy): it waits for r-worker3 on worker3 to come \
         back; and 1 more",
    ),
    (
        "B43: data engine v2 on the target, healthy",
        |w| w.spec("pvc-b")["dataEngine"] = json!("v2"),
        WARN,
        Reason::LonghornDataEngineV2OnTarget,
        "volume pvc-b (media/pvc-b) uses data engine v2 and is on worker2: rebuilds after reboots have failed there",
    ),
    (
        "faulted while attached",
        |w| w.status("pvc-a")["robustness"] = json!("faulted"),
        BLOCK,
        Reason::LonghornVolumeFaulted,
        "volume pvc-a (media/pvc-a) is faulted: it has no usable copy",
    ),
    (
        "unknown while attached",
        |w| w.status("pvc-a")["robustness"] = json!("unknown"),
        BLOCK,
        Reason::LonghornVolumeRobustnessUnknown,
        "volume pvc-a (media/pvc-a) is attached, and its robustness is unknown",
    ),
    (
        "a replica in mode ERR",
        |w| w.engine("pvc-a")["replicaModeMap"]["pvc-a-r-worker3"] = json!("ERR"),
        BLOCK,
        Reason::LonghornVolumeDegraded,
        "volume pvc-a (media/pvc-a) has 2 of 3 healthy copies, not healthy: r-worker3 on worker3",
    ),
    (
        "B30: attached, a replica on a node that Kubernetes does not know",
        |w| w.replica("pvc-a", "worker3")["nodeID"] = json!("gone1"),
        BLOCK,
        Reason::LonghornVolumeDegraded,
        "volume pvc-a (media/pvc-a) has a replica on a node that Kubernetes does not know: r-worker3 on gone1",
    ),
];

const WORK: &[Row] = &[
    (
        "a replica that the engine knows by address and not by mode",
        |w| remove(&mut w.engine("pvc-a")["replicaModeMap"], "pvc-a-r-worker3"),
        BLOCK,
        Reason::LonghornVolumeRebuilding,
        "volume pvc-a (media/pvc-a) is rebuilding replica r-worker3",
    ),
    (
        "mode WO although robustness lags",
        |w| w.engine("pvc-a")["replicaModeMap"]["pvc-a-r-worker3"] = json!("WO"),
        BLOCK,
        Reason::LonghornVolumeRebuilding,
        "volume pvc-a (media/pvc-a) is rebuilding replica r-worker3",
    ),
    (
        "isRebuilding alone",
        |w| w.engine("pvc-a")["rebuildStatus"] = json!({"tcp://worker3:10000": {"isRebuilding": true, "progress": 99}}),
        BLOCK,
        Reason::LonghornVolumeRebuilding,
        "volume pvc-a (media/pvc-a) is rebuilding replica r-worker3 at 99 %",
    ),
    (
        "a finished rebuild stays in the status",
        |w| {
            w.engine("pvc-a")["rebuildStatus"] =
                json!({"tcp://worker3:10000": {"isRebuilding": false, "progress": 100, "state": "complete"}});
        },
        PASS,
        PASSED,
        FINE,
    ),
    (
        "a rebuild at work while rebuilding is disabled says so",
        |w| {
            w.set("concurrent-replica-rebuild-per-node-limit", "0");
            w.rebuild("pvc-a", "worker3", 7);
        },
        BLOCK,
        Reason::LonghornVolumeRebuilding,
        "volume pvc-a (media/pvc-a) is rebuilding replica r-worker3 at 7 %; rebuilding is disabled \
         (concurrent-replica-rebuild-per-node-limit = 0), so it never heals by itself",
    ),
    (
        "a mode that is not known",
        |w| w.engine("pvc-a")["replicaModeMap"]["pvc-a-r-x"] = json!("RO"),
        UNKNOWN,
        Reason::ObservationMalformed,
        "volume pvc-a (media/pvc-a) has replica r-x in mode `RO`, which this version does not know",
    ),
    (
        "B49: a replica is to be moved away",
        |w| w.replica("pvc-a", "worker3")["evictionRequested"] = json!(true),
        BLOCK,
        Reason::LonghornVolumeRebuilding,
        "volume pvc-a (media/pvc-a) has a replica that is to be moved away: r-worker3 on worker3",
    ),
    (
        "B49: the same in status, as before 1.6",
        |w| {
            let replica = World::find(&mut w.docs.replicas, "pvc-a-r-worker3");
            remove(&mut replica["spec"], "evictionRequested");
            replica["status"]["evictionRequested"] = json!(true);
        },
        BLOCK,
        Reason::LonghornVolumeRebuilding,
        "volume pvc-a (media/pvc-a) has a replica that is to be moved away: r-worker3 on worker3",
    ),
    (
        "a replica that is placed and not filled yet",
        |w| {
            let mut new = super::super::super::testing::longhorn_replica("pvc-a", "worker3");
            new["metadata"]["name"] = json!("pvc-a-r-new");
            new["spec"]["healthyAt"] = json!("");
            w.docs.replicas.push(new);
        },
        BLOCK,
        Reason::LonghornVolumeRebuilding,
        "volume pvc-a (media/pvc-a) has a replica that is yet to be filled: r-new on worker3",
    ),
    (
        "B42: the engine expands",
        |w| w.engine("pvc-a")["isExpanding"] = json!(true),
        BLOCK,
        Reason::LonghornVolumeExpanding,
        "volume pvc-a (media/pvc-a) is being expanded",
    ),
    (
        "B42: a detached volume that is to grow",
        |w| w.status("pvc-c")["expansionRequired"] = json!(true),
        BLOCK,
        Reason::LonghornVolumeExpanding,
        "volume pvc-c (media/pvc-c) is being expanded",
    ),
    (
        "B42: wanted and real size differ",
        |w| w.spec("pvc-a")["size"] = json!("3221225472"),
        BLOCK,
        Reason::LonghornVolumeExpanding,
        "volume pvc-a (media/pvc-a) is being expanded: its engine has 2147483648 of 3221225472 bytes",
    ),
    (
        "the engine does not tell its size",
        |w| remove(w.engine("pvc-a"), "currentSize"),
        UNKNOWN,
        Reason::ObservationMalformed,
        "volume pvc-a (media/pvc-a) has an engine that does not tell its size",
    ),
    (
        "the engine does not say whether it expands",
        |w| remove(w.engine("pvc-a"), "isExpanding"),
        UNKNOWN,
        Reason::ObservationMalformed,
        "volume pvc-a (media/pvc-a) has an engine that does not say whether it expands",
    ),
    (
        "the engine is not running",
        |w| w.engine("pvc-a")["currentState"] = json!("error"),
        BLOCK,
        Reason::LonghornVolumeRobustnessUnknown,
        "volume pvc-a (media/pvc-a) is attached, but its engine is error",
    ),
    (
        "attached without an engine",
        |w| w.docs.engines.retain(|engine| engine["spec"]["volumeName"] != "pvc-a"),
        UNKNOWN,
        Reason::LonghornVolumeRobustnessUnknown,
        "volume pvc-a (media/pvc-a) is attached and has no engine: what its copies do cannot be told",
    ),
    (
        "attached with an engine in deletion",
        |w| World::find(&mut w.docs.engines, "pvc-a-e-0")["metadata"]["deletionTimestamp"] = json!(ago(3)),
        UNKNOWN,
        Reason::LonghornVolumeRobustnessUnknown,
        "volume pvc-a (media/pvc-a) is attached and has no engine: what its copies do cannot be told",
    ),
    (
        "two engines",
        |w| {
            let mut second = super::super::super::testing::longhorn_engine("pvc-a", &NODES);
            second["metadata"]["name"] = json!("pvc-a-e-1");
            w.docs.engines.push(second);
        },
        BLOCK,
        Reason::LonghornVolumeMigrating,
        "volume pvc-a (media/pvc-a) has 2 engines: it is being migrated or switched over",
    ),
    (
        "migrating",
        |w| w.spec("pvc-a")["migrationNodeID"] = json!("worker3"),
        BLOCK,
        Reason::LonghornVolumeMigrating,
        "volume pvc-a (media/pvc-a) is migrating to node worker3",
    ),
    (
        "switching over",
        |w| w.status("pvc-a")["switchoverState"] = json!("suspending"),
        BLOCK,
        Reason::LonghornVolumeMigrating,
        "volume pvc-a (media/pvc-a) is switching its engine over (suspending)",
    ),
    (
        "restoring, by condition in the old spelling",
        |w| {
            w.status("pvc-a")["restoreRequired"] = json!(true);
            w.status("pvc-a")["conditions"][1] =
                json!({"type": "restore", "status": "True", "reason": "RestoreInProgress", "message": ""});
        },
        BLOCK,
        Reason::LonghornVolumeRestoring,
        "volume pvc-a (media/pvc-a) is being restored from a backup (RestoreInProgress)",
    ),
    (
        "a detached volume that is yet to be restored",
        |w| w.status("pvc-c")["restoreRequired"] = json!(true),
        BLOCK,
        Reason::LonghornVolumeRestoring,
        "volume pvc-c (media/pvc-c) waits to be restored from a backup",
    ),
    (
        "Standby: restoring right now",
        |w| {
            w.spec("pvc-a")["Standby"] = json!(true);
            w.engine("pvc-a")["restoreStatus"] = json!({"tcp://worker1:10000": {"isRestoring": true}});
        },
        BLOCK,
        Reason::LonghornVolumeRestoring,
        "volume pvc-a (media/pvc-a) is being restored from a backup",
    ),
    (
        "attaching, since its attachment was made",
        |w| {
            w.status("pvc-a")["state"] = json!("attaching");
            w.attachments[0]["metadata"]["creationTimestamp"] = json!(ago(300));
            w.attachments[0]["status"]["attached"] = json!(false);
        },
        BLOCK,
        Reason::LonghornVolumeInTransition,
        "volume pvc-a (media/pvc-a) is attaching for 300 s",
    ),
    (
        "B33: attaching for too long",
        |w| {
            w.status("pvc-a")["state"] = json!("attaching");
            w.spec("pvc-a")["accessMode"] = json!("rwx");
            w.attachments[0]["metadata"]["creationTimestamp"] = json!(ago(301));
            w.attachments[0]["status"]["attached"] = json!(false);
        },
        BLOCK,
        Reason::LonghornVolumeInTransition,
        "volume pvc-a (media/pvc-a) is attaching for 301 s, longer than 300 s: stuck",
    ),
    (
        "B46: detaching, since its attachment was to go",
        |w| {
            w.status("pvc-a")["state"] = json!("detaching");
            w.attachments[0]["metadata"]["deletionTimestamp"] = json!(ago(400));
        },
        BLOCK,
        Reason::LonghornVolumeInTransition,
        "volume pvc-a (media/pvc-a) is detaching for 400 s, longer than 300 s: stuck",
    ),
    (
        "creating",
        |w| w.status("pvc-c")["state"] = json!("creating"),
        BLOCK,
        Reason::LonghornVolumeInTransition,
        "volume pvc-c (media/pvc-c) is creating for 864000 s, longer than 300 s: stuck",
    ),
    (
        "detaching, and nothing tells since when",
        |w| w.status("pvc-b")["state"] = json!("detaching"),
        BLOCK,
        Reason::LonghornVolumeInTransition,
        "volume pvc-b (media/pvc-b) is detaching",
    ),
];

const LAST_COPY: &[Row] = &[
    (
        "B37, R4: one replica on the target, attached elsewhere, healthy",
        |w| w.docs.attach("pvc-d", "worker1", &["worker2"]),
        BLOCK,
        Reason::LonghornLastReplicaOnTarget,
        "volume pvc-d (media/pvc-d) is attached to worker1, and its only healthy copy is r-worker2 on worker2",
    ),
    (
        "one replica, not on the target",
        |w| w.docs.attach("pvc-d", "worker1", &["worker3"]),
        PASS,
        PASSED,
        "all 4 Longhorn volumes are whole (3 attached)",
    ),
    (
        "one replica on the target, service-restart: the same",
        |w| {
            w.scope("service-restart");
            w.docs.attach("pvc-d", "worker2", &["worker2"]);
        },
        BLOCK,
        Reason::LonghornLastReplicaOnTarget,
        "volume pvc-d (media/pvc-d) is attached to worker2, and its only healthy copy is r-worker2 on worker2",
    ),
    (
        "soft anti-affinity: both copies on the target",
        |w| {
            w.docs.attach("pvc-d", "worker1", &["worker2", "worker3"]);
            w.replica("pvc-d", "worker3")["nodeID"] = json!("worker2");
        },
        BLOCK,
        Reason::LonghornLastReplicaOnTarget,
        "volume pvc-d (media/pvc-d) is attached to worker1, and its only healthy copy is r-worker2 on worker2",
    ),
    (
        "B26: the other copy is on a cordoned node",
        |w| {
            w.cordon("worker3");
            w.docs.attach("pvc-d", "worker1", &["worker2", "worker3"]);
        },
        BLOCK,
        Reason::LonghornLastReplicaOnTarget,
        "volume pvc-d (media/pvc-d) would hold the drain of worker2: its other healthy copies are on cordoned nodes \
         (r-worker3 on worker3), and node-drain-policy is block-if-contains-last-replica",
    ),
    (
        "B26: the same where the policy lets it pass",
        |w| {
            w.cordon("worker3");
            w.set("node-drain-policy", "always-allow");
            w.docs.attach("pvc-d", "worker1", &["worker2", "worker3"]);
        },
        PASS,
        PASSED,
        "all 4 Longhorn volumes are whole (3 attached)",
    ),
    (
        "B26: the same without a drain",
        |w| {
            w.cordon("worker3");
            w.scope("service-restart");
            w.docs.attach("pvc-d", "worker1", &["worker2", "worker3"]);
        },
        PASS,
        PASSED,
        "all 4 Longhorn volumes are whole (3 attached)",
    ),
    (
        "the last copy matters although the engine is not known",
        |w| {
            w.docs.attach("pvc-d", "worker1", &["worker2"]);
            w.docs.engines.retain(|engine| engine["spec"]["volumeName"] != "pvc-d");
        },
        BLOCK,
        Reason::LonghornLastReplicaOnTarget,
        "volume pvc-d (media/pvc-d) is attached to worker1, and its only healthy copy is r-worker2 on worker2; and 1 \
         more",
    ),
];

const DETACHED: &[Row] = &[
    (
        "B27: one replica on the target, default policy",
        |w| w.docs.detach("scratch", &["worker2"]),
        BLOCK,
        Reason::LonghornDetachedReplicaOnTarget,
        "volume scratch (media/scratch) would hold the drain of worker2: its only healthy copy is on worker2, and \
         node-drain-policy is block-if-contains-last-replica",
    ),
    (
        "B27: allow-if-replica-is-stopped",
        |w| {
            w.set("node-drain-policy", "allow-if-replica-is-stopped");
            w.docs.detach("scratch", &["worker2"]);
        },
        WARN,
        Reason::LonghornDetachedReplicaOnTarget,
        "volume scratch (media/scratch) is detached, and its only healthy copy goes with the node: r-worker2 on \
         worker2",
    ),
    (
        "B27: no drain, no refusal",
        |w| {
            w.scope("service-restart");
            w.docs.detach("scratch", &["worker2"]);
        },
        WARN,
        Reason::LonghornDetachedReplicaOnTarget,
        "volume scratch (media/scratch) is detached, and its only healthy copy goes with the node: r-worker2 on \
         worker2",
    ),
    (
        "single_replica = allow",
        |w| {
            w.case.settings.longhorn.single_replica = SingleReplica::Allow;
            w.set("node-drain-policy", "always-allow");
            w.docs.detach("scratch", &["worker2"]);
        },
        PASS,
        PASSED,
        "all 4 Longhorn volumes are whole (2 attached)",
    ),
    (
        "single_replica = block",
        |w| {
            w.case.settings.longhorn.single_replica = SingleReplica::Block;
            w.set("node-drain-policy", "always-allow");
            w.docs.detach("scratch", &["worker2"]);
        },
        BLOCK,
        Reason::LonghornDetachedReplicaOnTarget,
        "volume scratch (media/scratch) is detached, and its only healthy copy goes with the node: r-worker2 on \
         worker2",
    ),
    (
        "power-off: the data does not come back soon",
        |w| {
            w.scope("power-off");
            w.set("node-drain-policy", "always-allow");
            w.docs.detach("scratch", &["worker2"]);
        },
        BLOCK,
        Reason::LonghornDetachedReplicaOnTarget,
        "volume scratch (media/scratch) is detached, and its only healthy copy goes with the node: r-worker2 on \
         worker2",
    ),
    (
        "a drain policy that is not known, where it matters",
        |w| {
            w.set("node-drain-policy", "block-on-tuesdays");
            w.docs.detach("scratch", &["worker2"]);
        },
        UNKNOWN,
        Reason::LonghornDetachedReplicaOnTarget,
        "volume scratch (media/scratch) may hold the drain of worker2: its only healthy copy is on worker2; setting \
         node-drain-policy is `block-on-tuesdays`, which is no known policy",
    ),
    (
        "a drain policy that is not known, where it does not matter",
        |w| w.set("node-drain-policy", "block-on-tuesdays"),
        PASS,
        PASSED,
        FINE,
    ),
    (
        "a drain policy that cannot be decoded, where it matters",
        |w| {
            World::find(&mut w.docs.settings, "node-drain-policy")["value"] = json!(null);
            w.docs.detach("scratch", &["worker2"]);
        },
        UNKNOWN,
        Reason::LonghornDetachedReplicaOnTarget,
        "volume scratch (media/scratch) may hold the drain of worker2: its only healthy copy is on worker2; Setting \
         longhorn-system/node-drain-policy: value is null",
    ),
    (
        "no such setting: the default holds",
        |w| {
            w.docs.settings.remove(0);
            w.docs.detach("scratch", &["worker2"]);
        },
        BLOCK,
        Reason::LonghornDetachedReplicaOnTarget,
        "volume scratch (media/scratch) would hold the drain of worker2: its only healthy copy is on worker2, and \
         node-drain-policy is block-if-contains-last-replica",
    ),
    (
        "B30: a replica on a node that Kubernetes does not know",
        |w| w.replica("pvc-c", "worker3")["nodeID"] = json!("gone1"),
        BLOCK,
        Reason::LonghornDetachedIncomplete,
        "volume pvc-c (media/pvc-c) has a replica on a node that Kubernetes does not know: r-worker3 on gone1; and 1 \
         more",
    ),
    (
        "incomplete",
        |w| w.fail("pvc-c", "worker3", 900),
        WARN,
        Reason::LonghornDetachedIncomplete,
        "volume pvc-c (media/pvc-c) is detached with 2 of 3 healthy copies: it cannot rebuild until attached",
    ),
    (
        "incomplete, and all that is left is on the target",
        |w| {
            w.fail("pvc-c", "worker1", 900);
            w.fail("pvc-c", "worker3", 900);
        },
        BLOCK,
        Reason::LonghornDetachedIncomplete,
        "volume pvc-c (media/pvc-c) is detached with 1 of 3 healthy copies, all on worker2: it cannot rebuild until \
         attached",
    ),
    (
        "detached and faulted",
        |w| {
            w.status("pvc-c")["robustness"] = json!("faulted");
            for node in NODES {
                w.fail("pvc-c", node, 900);
            }
        },
        BLOCK,
        Reason::LonghornVolumeFaulted,
        "volume pvc-c (media/pvc-c) is faulted: it has no usable copy",
    ),
    (
        "detached without a healthy copy",
        |w| {
            for node in NODES {
                w.fail("pvc-c", node, 900);
            }
        },
        BLOCK,
        Reason::LonghornVolumeFaulted,
        "volume pvc-c (media/pvc-c) is detached and has no healthy copy on a Ready node (not healthy: r-worker1 on \
         worker1, r-worker2 on worker2, r-worker3 on worker3)",
    ),
    (
        "detached without any replica",
        |w| w.docs.replicas.retain(|replica| replica["spec"]["volumeName"] != "pvc-c"),
        BLOCK,
        Reason::LonghornVolumeFaulted,
        "volume pvc-c (media/pvc-c) is detached and has no healthy copy on a Ready node (it has no replica at all)",
    ),
    (
        "never used, but once it was",
        |w| {
            for node in NODES {
                w.replica("pvc-c", node)["healthyAt"] = json!("");
                w.replica("pvc-c", node)["lastHealthyAt"] = json!(ago(9_000));
            }
        },
        BLOCK,
        Reason::LonghornVolumeFaulted,
        "volume pvc-c (media/pvc-c) is detached and has no healthy copy on a Ready node (not healthy: r-worker1 on \
         worker1, r-worker2 on worker2, r-worker3 on worker3)",
    ),
    (
        "the other copy of a detached volume is on a cordoned node",
        |w| {
            w.cordon("worker3");
            w.docs.detach("pvc-d", &["worker2", "worker3"]);
        },
        BLOCK,
        Reason::LonghornDetachedReplicaOnTarget,
        "volume pvc-d (media/pvc-d) would hold the drain of worker2: its other healthy copies are on cordoned nodes \
         (r-worker3 on worker3), and node-drain-policy is block-if-contains-last-replica",
    ),
];

const HANDOVER: &[Row] = &[
    (
        "after a drain: the target's copies have failed, the others are whole",
        |w| {
            w.at(Moment::Handover);
            w.fail("pvc-a", "worker2", 30);
            w.fail("pvc-b", "worker2", 30);
        },
        PASS,
        PASSED,
        FINE,
    ),
    (
        "with a replacement that has no place",
        |w| {
            w.at(Moment::Handover);
            w.fail("pvc-a", "worker2", 700);
            let mut new = super::super::super::testing::longhorn_replica("pvc-a", "");
            new["spec"]["healthyAt"] = json!("");
            w.docs.replicas.push(new);
        },
        PASS,
        PASSED,
        FINE,
    ),
    (
        "a copy elsewhere has failed too",
        |w| {
            w.at(Moment::Handover);
            w.fail("pvc-a", "worker2", 30);
            w.fail("pvc-a", "worker3", 30);
        },
        BLOCK,
        Reason::LonghornVolumeDegraded,
        "volume pvc-a (media/pvc-a) has 1 of 2 healthy copies outside worker2, not healthy: r-worker3 on worker3",
    ),
    (
        "degraded, and not by the target",
        |w| {
            w.at(Moment::Handover);
            w.fail("pvc-a", "worker3", 700);
        },
        BLOCK,
        Reason::LonghornVolumeDegraded,
        "volume pvc-a (media/pvc-a) is degraded (2 of 3 copies healthy): it waits for r-worker3 on worker3 to come \
         back, replenishment was due at 2026-11-30T00:58:21Z",
    ),
    (
        "the target's stopped copy was the only one",
        |w| {
            w.at(Moment::Handover);
            w.docs.attach("pvc-d", "worker1", &["worker2"]);
            w.fail("pvc-d", "worker2", 30);
        },
        BLOCK,
        Reason::LonghornLastReplicaOnTarget,
        "volume pvc-d (media/pvc-d) is attached to worker1, and its only healthy copy is r-worker2 on worker2; and 1 \
         more",
    ),
    (
        "a rebuild elsewhere",
        |w| {
            w.at(Moment::Handover);
            w.rebuild("pvc-a", "worker3", 5);
        },
        BLOCK,
        Reason::LonghornVolumeRebuilding,
        "volume pvc-a (media/pvc-a) is rebuilding replica r-worker3 at 5 %",
    ),
    (
        "a rebuild on the target is given up anyway",
        |w| {
            w.at(Moment::Handover);
            w.rebuild("pvc-a", "worker2", 5);
        },
        PASS,
        PASSED,
        FINE,
    ),
    (
        "B33: stuck in attaching after the drain",
        |w| {
            w.at(Moment::Handover);
            w.status("pvc-b")["state"] = json!("attaching");
        },
        BLOCK,
        Reason::LonghornVolumeInTransition,
        "volume pvc-b (media/pvc-b) is attaching",
    ),
    (
        "B27: a drain that went through is not foretold any more",
        |w| {
            w.at(Moment::Handover);
            w.docs.detach("scratch", &["worker2"]);
        },
        WARN,
        Reason::LonghornDetachedReplicaOnTarget,
        "volume scratch (media/scratch) is detached, and its only healthy copy goes with the node: r-worker2 on \
         worker2",
    ),
    (
        "cordon-only: copies on the target run on",
        |w| {
            w.scope("service-restart");
            w.at(Moment::Handover);
            w.cordon("worker2");
        },
        PASS,
        PASSED,
        FINE,
    ),
];

const SETTLE: &[Row] = &[
    ("whole again", |w| w.at(Moment::Settle), PASS, PASSED, FINE),
    (
        "the target's copy is still failed",
        |w| {
            w.at(Moment::Settle);
            w.fail("pvc-a", "worker2", 900);
        },
        BLOCK,
        Reason::LonghornVolumeDegraded,
        "volume pvc-a (media/pvc-a) is degraded (2 of 3 copies healthy): it waits for r-worker2 on worker2 to come \
         back, replenishment was due at 2026-11-30T00:55:01Z",
    ),
    (
        "the target's copy is being rebuilt",
        |w| {
            w.at(Moment::Settle);
            w.rebuild("pvc-a", "worker2", 80);
        },
        BLOCK,
        Reason::LonghornVolumeRebuilding,
        "volume pvc-a (media/pvc-a) is rebuilding replica r-worker2 at 80 %",
    ),
    (
        "B38: others faulted after the return",
        |w| {
            w.at(Moment::Settle);
            w.status("pvc-b")["robustness"] = json!("faulted");
        },
        BLOCK,
        Reason::LonghornVolumeFaulted,
        "volume pvc-b (media/pvc-b) is faulted: it has no usable copy",
    ),
    (
        "where the last copy is does not matter any more",
        |w| {
            w.at(Moment::Settle);
            w.docs.attach("pvc-d", "worker1", &["worker2"]);
            w.docs.detach("scratch", &["worker2"]);
        },
        PASS,
        PASSED,
        "all 5 Longhorn volumes are whole (3 attached)",
    ),
];

const READING: &[Row] = &[
    (
        "a word for the state that is not known",
        |w| w.status("pvc-a")["state"] = json!("hibernating"),
        UNKNOWN,
        Reason::ObservationMalformed,
        "volume pvc-a (media/pvc-a) has status.state `hibernating`, which this version does not know",
    ),
    (
        "a word for robustness that is not known",
        |w| w.status("pvc-a")["robustness"] = json!("splendid"),
        UNKNOWN,
        Reason::ObservationMalformed,
        "volume pvc-a (media/pvc-a) has status.robustness `splendid`, which this version does not know",
    ),
    (
        "no state yet",
        |w| w.status("pvc-a")["state"] = json!(""),
        UNKNOWN,
        Reason::ObservationMalformed,
        "volume pvc-a (media/pvc-a) has status.state ``, which this version does not know",
    ),
    (
        "erasure-coded",
        |w| w.spec("pvc-a")["dataLayout"] = json!({"type": "sharded"}),
        UNKNOWN,
        Reason::LonghornVolumeRobustnessUnknown,
        "volume pvc-a (media/pvc-a) is erasure-coded (sharded), which this version cannot judge",
    ),
    (
        "no replicas wanted",
        |w| w.spec("pvc-a")["numberOfReplicas"] = json!(0),
        UNKNOWN,
        Reason::ObservationMalformed,
        "Volume longhorn-system/pvc-a: spec.numberOfReplicas is 0, wanted at least 1",
    ),
    (
        "a replica that cannot be decoded is no missing copy",
        |w| w.replica("pvc-a", "worker3")["failedAt"] = json!(null),
        UNKNOWN,
        Reason::ObservationMalformed,
        "Replica longhorn-system/pvc-a-r-worker3: spec.failedAt is null",
    ),
    (
        "a node that cannot be decoded is no lost copy",
        |w| w.nodes[2]["status"]["nodeInfo"] = json!(null),
        UNKNOWN,
        Reason::ObservationMalformed,
        "Node worker3: status.nodeInfo is null",
    ),
    (
        "a setting that nobody asks may be odd",
        |w| w.docs.settings.push(json!({"metadata": {"name": "priority-class", "namespace": "longhorn-system"}})),
        PASS,
        PASSED,
        FINE,
    ),
    (
        "no settings at all: the wrong namespace?",
        |w| w.docs = LonghornDocuments::default(),
        UNKNOWN,
        Reason::ObservationFailed,
        "Longhorn's kinds exist, but namespace longhorn-system holds no setting of it: set [longhorn] namespace to \
         where it runs, or remove the leftover CRDs",
    ),
];

#[test]
fn sources_that_do_not_answer() {
    type Change = fn(&mut Case);
    const ROWS: &[(&str, Change, Status, Reason)] = &[
        (
            "not installed",
            |c| {
                c.facts.longhorn_volumes = absent(c);
                c.facts.longhorn_replicas = absent(c);
                c.facts.longhorn_engines = absent(c);
                c.facts.longhorn_settings = absent(c);
            },
            Status::NotApplicable,
            Reason::NotInstalled,
        ),
        ("not asked", |c| c.facts.longhorn_volumes = Observation::NotAsked, Status::NotApplicable, Reason::NotAsked),
        ("replicas without volumes", |c| c.facts.longhorn_volumes = absent(c), UNKNOWN, Reason::ObservationFailed),
        ("volumes forbidden", |c| c.facts.longhorn_volumes = failed(c), UNKNOWN, Reason::ObservationFailed),
        ("replicas absent", |c| c.facts.longhorn_replicas = absent(c), UNKNOWN, Reason::ObservationFailed),
        ("engines absent", |c| c.facts.longhorn_engines = absent(c), UNKNOWN, Reason::ObservationFailed),
        ("settings absent", |c| c.facts.longhorn_settings = absent(c), UNKNOWN, Reason::ObservationFailed),
        (
            "replicas not asked",
            |c| c.facts.longhorn_replicas = Observation::NotAsked,
            UNKNOWN,
            Reason::ObservationFailed,
        ),
        ("engines forbidden", |c| c.facts.longhorn_engines = failed(c), UNKNOWN, Reason::ObservationFailed),
        ("settings forbidden", |c| c.facts.longhorn_settings = failed(c), UNKNOWN, Reason::ObservationFailed),
        ("nodes forbidden", |c| c.facts.nodes = failed(c), UNKNOWN, Reason::ObservationFailed),
        ("attachments only add a time", |c| c.facts.volume_attachments = failed(c), PASS, PASSED),
        ("too old", |c| c.now += jiff::SignedDuration::from_secs(31), UNKNOWN, Reason::ObservationStale),
    ];
    for (name, change, status, reason) in ROWS {
        let mut case = World::new().case();
        change(&mut case);
        let finding = case.ask(&GATE);
        assert_eq!((finding.status, finding.reason), (*status, *reason), "{name}: {}", finding.message);
    }
}

#[test]
fn blocks_win_over_what_could_not_be_read() {
    const ROWS: &[(&str, fn(&mut Case), fn(&mut World), Reason)] = &[
        ("replicas", |c| c.facts.longhorn_replicas = failed(c), |w| w.fail("pvc-a", "worker3", 9), DEGRADED_REASON),
        ("nodes", |c| c.facts.nodes = failed(c), |w| w.fail("pvc-a", "worker3", 9), DEGRADED_REASON),
        ("settings", |c| c.facts.longhorn_settings = failed(c), |w| w.fail("pvc-a", "worker3", 9), DEGRADED_REASON),
        (
            "engines, and the last copy on the target",
            |c| c.facts.longhorn_engines = failed(c),
            |w| w.docs.attach("pvc-d", "worker1", &["worker2"]),
            Reason::LonghornLastReplicaOnTarget,
        ),
    ];
    for (name, change, bend, reason) in ROWS {
        let mut case = World::bent(*bend).case();
        change(&mut case);
        let finding = case.ask(&GATE);
        assert_eq!((finding.status, finding.reason), (BLOCK, *reason), "{name}: {}", finding.message);
    }
}

const DEGRADED_REASON: Reason = Reason::LonghornVolumeDegraded;

fn absent<T>(case: &Case) -> Observation<T> {
    Observation::Absent { at: case.now }
}

fn failed<T>(case: &Case) -> Observation<T> {
    Observation::Failed { kind: FailureKind::Forbidden, detail: "no".into(), at: case.now }
}
