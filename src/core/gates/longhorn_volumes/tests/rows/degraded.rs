//! Attached volumes that are not whole.

use super::*;

pub(super) const DEGRADED: &[Row] = &[
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
