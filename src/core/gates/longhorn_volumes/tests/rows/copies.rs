//! Where the last copy is, and detached volumes.

use super::*;
use crate::config::SingleReplica;

pub(super) const LAST_COPY: &[Row] = &[
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

pub(super) const DETACHED: &[Row] = &[
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
