//! What differs at handover and at settle.

use super::*;

pub(super) const HANDOVER: &[Row] = &[
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
            let mut new = longhorn_replica("pvc-a", "");
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

pub(super) const SETTLE: &[Row] = &[
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
