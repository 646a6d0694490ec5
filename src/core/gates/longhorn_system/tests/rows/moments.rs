//! What differs at handover, verify and settle.

use super::*;

pub(super) const MOMENTS: &[Row] = &[
    (
        "handover: the target's own node and instance manager do not matter",
        |w| {
            says(w, "worker2", "Ready", "False", "KubernetesNodeNotReady");
            manager(w, "worker2")["status"]["currentState"] = json!("error");
            member(w, "worker2")["status"]["autoEvicting"] = json!(true);
        },
        handover,
        PASS,
        PASSED,
        "Longhorn is whole without worker2",
    ),
    (
        "handover: another node",
        |w| says(w, "worker1", "Ready", "Unknown", ""),
        handover,
        BLOCK,
        Reason::LonghornNodeNotReady,
        "Longhorn says that node worker1 is not Ready: Unknown",
    ),
    (
        "handover: another instance manager",
        |w| manager(w, "worker1")["status"]["currentState"] = json!("unknown"),
        handover,
        BLOCK,
        Reason::LonghornInstanceManagerNotRunning,
        "instance manager instance-manager-worker1 on worker1 is unknown",
    ),
    (
        "handover: the drain is over",
        |w| w.of(SourceId::PodDisruptionBudgets).clear(),
        handover,
        PASS,
        PASSED,
        "Longhorn is whole without worker2",
    ),
    (
        "verify: no instance manager runs on a cordoned node",
        |w| {
            without_manager(w, "worker2");
            says(w, "worker2", "Schedulable", "False", "KubernetesNodeCordoned");
        },
        verify,
        PASS,
        PASSED,
        "Longhorn says that worker2 is Ready",
    ),
    (
        "verify: the node is not back",
        |w| says(w, "worker2", "Ready", "False", "ManagerPodDown"),
        verify,
        BLOCK,
        Reason::LonghornNodeNotReady,
        "Longhorn says that node worker2 is not Ready: False (ManagerPodDown)",
    ),
    (
        "verify: others do not keep it cordoned",
        |w| says(w, "worker1", "Ready", "False", "ManagerPodDown"),
        verify,
        PASS,
        PASSED,
        "Longhorn says that worker2 is Ready",
    ),
    ("settle: whole again", same, settle, PASS, PASSED, WHOLE),
    (
        "settle: the target's instance manager does not start",
        |w| without_manager(w, "worker2"),
        settle,
        BLOCK,
        Reason::LonghornInstanceManagerNotRunning,
        "no instance manager runs on worker2: no volume can use its replicas",
    ),
    (
        "settle: it is starting",
        |w| manager(w, "worker2")["status"]["currentState"] = json!("starting"),
        settle,
        BLOCK,
        Reason::LonghornInstanceManagerNotRunning,
        "instance manager instance-manager-worker2 on worker2 is starting",
    ),
    (
        "settle: Longhorn has not seen the uncordon",
        |w| says(w, "worker2", "Schedulable", "False", "KubernetesNodeCordoned"),
        settle,
        BLOCK,
        Reason::LonghornNotSchedulable,
        "Longhorn places no replica on worker2 yet: Schedulable is False (KubernetesNodeCordoned)",
    ),
    (
        "settle: the target's disk did not come back",
        |w| disk_says(w, "worker2", "Ready", "False", "NoDiskInfo"),
        settle,
        BLOCK,
        Reason::LonghornDiskNotReady,
        "Longhorn's disk default of worker2 is not Ready: False (NoDiskInfo)",
    ),
    (
        "settle: the target's disk takes no replica",
        |w| disk_says(w, "worker2", "Schedulable", "False", "DiskPressure"),
        settle,
        BLOCK,
        Reason::LonghornNotSchedulable,
        "Longhorn's disk default of worker2 takes no new replica: Schedulable is False (DiskPressure)",
    ),
    (
        "B45: settle, another node",
        |w| says(w, "worker1", "Ready", "False", "ManagerPodDown"),
        settle,
        BLOCK,
        Reason::LonghornNodeNotReady,
        "Longhorn says that node worker1 is not Ready: False (ManagerPodDown)",
    ),
];
