//! Shared volumes, and the verdict on the drain.

use super::*;

pub(super) const SHARES: &[Row] = &[
    (
        "B34: a share manager on the target",
        |w| share(w, "running"),
        start,
        WARN,
        Reason::LonghornShareOnTarget,
        "shared volume pvc-b (media/pvc-b) is served from worker2: its clients on other nodes wait while it moves",
    ),
    (
        "B34: it did not come back",
        |w| share(w, "error"),
        settle,
        BLOCK,
        Reason::LonghornShareNotRunning,
        "shared volume pvc-b (media/pvc-b) is attached, and its share manager is error",
    ),
    (
        "B33: it waits after the drain",
        |w| share(w, "starting"),
        handover,
        BLOCK,
        Reason::LonghornShareNotRunning,
        "shared volume pvc-b (media/pvc-b) is attached, and its share manager is starting",
    ),
    (
        "B34: pods want it and it is stopped",
        |w| share(w, "stopped"),
        settle,
        BLOCK,
        Reason::LonghornShareNotRunning,
        "shared volume pvc-b (media/pvc-b) is attached, and its share manager is stopped",
    ),
];

pub(super) const DRAIN: &[Row] = &[
    (
        "B29: attached by hand",
        |w| w.of(SourceId::LonghornAttachments).push(longhorn_attachment("pvc-c", "longhorn-api", "worker2")),
        start,
        BLOCK,
        Reason::LonghornManuallyAttached,
        "volume pvc-c (media/pvc-c) is attached to worker2 by hand, which no drain ends: detach it there, or set \
         detach-manually-attached-volumes-when-cordoned",
    ),
    (
        "B26: the other copies are not protected",
        |w| {
            without_budget(w, "worker1");
            without_budget(w, "worker3");
        },
        start,
        BLOCK,
        Reason::LonghornDrainRefused,
        "Longhorn would hold the drain of worker2: replica pvc-a-r-worker2 has no pdb on another node (worker1, worker3: no \
         instance manager that runs and has its budget), and node-drain-policy is block-if-contains-last-replica; and 2 more",
    ),
    (
        "B26: the one other copy is not protected",
        |w| {
            w.of(SourceId::LonghornReplicas).retain(|one| one["metadata"]["name"] != "pvc-a-r-worker1");
            without_budget(w, "worker3");
        },
        start,
        BLOCK,
        Reason::LonghornDrainRefused,
        "Longhorn would hold the drain of worker2: replica pvc-a-r-worker2 has no pdb on another node (worker3: no instance \
         manager that runs and has its budget), and node-drain-policy is block-if-contains-last-replica",
    ),
    (
        "B26: the other copies are on cordoned nodes, which gate longhorn-volumes tells",
        |w| {
            w.named(SourceId::Nodes, "worker1")["spec"]["unschedulable"] = json!(true);
            w.named(SourceId::Nodes, "worker3")["spec"]["unschedulable"] = json!(true);
        },
        start,
        PASS,
        PASSED,
        DRAINABLE,
    ),
    (
        "a policy of a younger release",
        |w| setting(w, "node-drain-policy", "ask-a-friend"),
        start,
        UNKNOWN,
        Reason::LonghornDrainRefused,
        "whether Longhorn lets worker2 be drained cannot be told: setting node-drain-policy is `ask-a-friend`, which is no \
         known policy",
    ),
    (
        "block-for-eviction with as many replicas as nodes",
        |w| setting(w, "node-drain-policy", "block-for-eviction"),
        start,
        BLOCK,
        Reason::LonghornDrainRefused,
        "Longhorn would hold the drain of worker2: replica pvc-a-r-worker2 has no other node to move to, and \
         node-drain-policy is block-for-eviction; and 1 more",
    ),
    (
        "block-for-eviction with room elsewhere",
        |w| {
            setting(w, "node-drain-policy", "block-for-eviction");
            w.of(SourceId::LonghornReplicas).retain(|one| one["spec"]["nodeID"] != "worker3");
        },
        start,
        WARN,
        Reason::LonghornCordonMovesReplicas,
        "the cordon of worker2 makes Longhorn move 3 replicas away (node-drain-policy is block-for-eviction)",
    ),
    (
        "block-for-eviction where copies may share a node",
        |w| {
            setting(w, "node-drain-policy", "block-for-eviction");
            setting(w, "replica-soft-anti-affinity", "true");
        },
        start,
        WARN,
        Reason::LonghornCordonMovesReplicas,
        "the cordon of worker2 makes Longhorn move 3 replicas away (node-drain-policy is block-for-eviction)",
    ),
    (
        "even a cordon moves replicas",
        |w| setting(w, "node-drain-policy", "block-for-eviction"),
        cordon_only,
        WARN,
        Reason::LonghornCordonMovesReplicas,
        "the cordon of worker2 makes Longhorn move 3 replicas away (node-drain-policy is block-for-eviction)",
    ),
    (
        "the last replica moves, and has no place",
        |w| {
            setting(w, "node-drain-policy", "block-for-eviction-if-contains-last-replica");
            w.of(SourceId::LonghornReplicas)
                .retain(|one| one["spec"]["volumeName"] != "pvc-a" || one["spec"]["nodeID"] == "worker2");
            disk_says(w, "worker1", "Schedulable", "False", "DiskPressure");
            disk(w, "worker3")["allowScheduling"] = json!(false);
        },
        start,
        BLOCK,
        Reason::LonghornDrainRefused,
        "Longhorn would hold the drain of worker2: replica pvc-a-r-worker2 has no other node to move to, and \
         node-drain-policy is block-for-eviction-if-contains-last-replica; and 2 more",
    ),
];
