//! Nodes, disks and instance managers.

use super::*;

pub(super) const MEMBERS: &[Row] = &[
    (
        "B45: another node is not Ready to Longhorn",
        |w| says(w, "worker3", "Ready", "False", "ManagerPodDown"),
        start,
        BLOCK,
        Reason::LonghornNodeNotReady,
        "Longhorn says that node worker3 is not Ready: False (ManagerPodDown)",
    ),
    (
        "the target is not Ready to Longhorn: its budget would never go",
        |w| says(w, "worker2", "Ready", "False", "ManagerPodMissing"),
        start,
        BLOCK,
        Reason::LonghornNodeNotReady,
        "Longhorn says that node worker2 is not Ready: False (ManagerPodMissing)",
    ),
    (
        "a node without the condition",
        |w| member(w, "worker1")["status"]["conditions"] = json!([]),
        start,
        BLOCK,
        Reason::LonghornNodeNotReady,
        "Longhorn says that node worker1 is not Ready: missing",
    ),
    (
        "B30: a node that Kubernetes does not know any more",
        |w| {
            let mut old = longhorn_node("old1");
            set(&mut old["status"]["conditions"], "Ready", "False", "KubernetesNodeGone");
            w.of(SourceId::LonghornNodes).push(old);
        },
        start,
        BLOCK,
        Reason::LonghornNodeNotReady,
        "Longhorn has a node old1 that Kubernetes does not know: False (KubernetesNodeGone); if it never comes back, delete it there",
    ),
    (
        "a node that holds replicas is no node of Longhorn",
        |w| w.of(SourceId::LonghornNodes).retain(|one| one["metadata"]["name"] != "worker3"),
        start,
        BLOCK,
        Reason::LonghornNodeNotReady,
        "Longhorn has instance-manager-worker3 on worker3, and no node of that name",
    ),
    (
        "another node's disk is not Ready",
        |w| disk_says(w, "worker3", "Ready", "False", "NoDiskInfo"),
        start,
        BLOCK,
        Reason::LonghornDiskNotReady,
        "Longhorn's disk default of worker3 is not Ready: False (NoDiskInfo)",
    ),
    (
        "the target's disk is not Ready: a reboot may cure it",
        |w| disk_says(w, "worker2", "Ready", "False", "NoDiskInfo"),
        start,
        WARN,
        Reason::LonghornDiskNotReady,
        "Longhorn's disk default of worker2 is not Ready: False (NoDiskInfo)",
    ),
    (
        "no report on a disk",
        |w| member(w, "worker3")["status"]["diskStatus"] = json!({}),
        start,
        UNKNOWN,
        Reason::LonghornDiskNotReady,
        "Longhorn has not reported on disk default of worker3",
    ),
    (
        "B31: a full disk",
        |w| disk_says(w, "worker3", "Schedulable", "False", "DiskPressure"),
        start,
        WARN,
        Reason::LonghornNotSchedulable,
        "Longhorn's disk default of worker3 takes no new replica: Schedulable is False (DiskPressure)",
    ),
    (
        "B49: a node is being emptied",
        |w| member(w, "worker3")["spec"]["evictionRequested"] = json!(true),
        start,
        BLOCK,
        Reason::LonghornEvicting,
        "Longhorn is moving replicas away from worker3: 3 left there",
    ),
    (
        "B49: a disk is being emptied",
        |w| disk(w, "worker3")["evictionRequested"] = json!(true),
        start,
        BLOCK,
        Reason::LonghornEvicting,
        "Longhorn is moving replicas away from disk default of worker3: 3 left there",
    ),
    (
        "B49: a policy empties a node by itself",
        |w| member(w, "worker3")["status"]["autoEvicting"] = json!(true),
        start,
        BLOCK,
        Reason::LonghornEvicting,
        "Longhorn is moving replicas away from worker3: 3 left there",
    ),
];

pub(super) const MANAGERS: &[Row] = &[
    (
        "another node's instance manager is in error",
        |w| manager(w, "worker3")["status"]["currentState"] = json!("error"),
        start,
        BLOCK,
        Reason::LonghornInstanceManagerNotRunning,
        "instance manager instance-manager-worker3 on worker3 is error",
    ),
    (
        "it is starting",
        |w| manager(w, "worker3")["status"]["currentState"] = json!("starting"),
        start,
        BLOCK,
        Reason::LonghornInstanceManagerNotRunning,
        "instance manager instance-manager-worker3 on worker3 is starting",
    ),
    (
        "a stopped one that holds instances, beside one that runs",
        |w| {
            let mut old = instance_manager("worker3", &[]);
            old["metadata"]["name"] = json!("instance-manager-old");
            old["status"]["currentState"] = json!("stopped");
            w.of(SourceId::LonghornInstanceManagers).push(old);
        },
        start,
        BLOCK,
        Reason::LonghornInstanceManagerNotRunning,
        "instance manager instance-manager-old on worker3 is stopped",
    ),
    (
        "none on another node",
        |w| without_manager(w, "worker3"),
        start,
        BLOCK,
        Reason::LonghornInstanceManagerNotRunning,
        "no instance manager runs on worker3: no volume can use its replicas",
    ),
    (
        "one that is being deleted, and no other",
        |w| manager(w, "worker3")["metadata"]["deletionTimestamp"] = json!(ago(60)),
        start,
        BLOCK,
        Reason::LonghornInstanceManagerNotRunning,
        "no instance manager runs on worker3: no volume can use its replicas",
    ),
    (
        "of a node that is gone",
        |w| w.of(SourceId::LonghornInstanceManagers).push(instance_manager("old1", &[])),
        start,
        BLOCK,
        Reason::LonghornInstanceManagerOrphaned,
        "instance manager instance-manager-old1 is of node old1, which Kubernetes does not know",
    ),
    (
        "it lists an engine of a detached volume",
        |w| *manager(w, "worker2") = instance_manager("worker2", &["pvc-b-e-0", "pvc-c-e-0"]),
        start,
        BLOCK,
        Reason::LonghornInstanceManagerOrphaned,
        "instance manager instance-manager-worker2 on worker2 still lists engine pvc-c-e-0, whose volume is detached: its \
         budget would hold the drain for ever",
    ),
    (
        "it lists an engine of a volume that is attached elsewhere",
        |w| *manager(w, "worker2") = instance_manager("worker2", &["pvc-a-e-0"]),
        start,
        BLOCK,
        Reason::LonghornInstanceManagerOrphaned,
        "instance manager instance-manager-worker2 on worker2 still lists engine pvc-a-e-0, whose volume is attached to \
         worker1: its budget would hold the drain for ever",
    ),
    (
        "it lists an engine that does not exist",
        |w| *manager(w, "worker2") = instance_manager("worker2", &["pvc-z-e-0"]),
        start,
        BLOCK,
        Reason::LonghornInstanceManagerOrphaned,
        "instance manager instance-manager-worker2 on worker2 still lists engine pvc-z-e-0, which does not exist: its \
         budget would hold the drain for ever",
    ),
    (
        "the same without a drain",
        |w| *manager(w, "worker2") = instance_manager("worker2", &["pvc-z-e-0"]),
        cordon_only,
        PASS,
        PASSED,
        WHOLE,
    ),
];
