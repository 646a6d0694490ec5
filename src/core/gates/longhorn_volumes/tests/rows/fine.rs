//! What passes, and what cannot be understood.

use super::*;

pub(super) const FINE_ROWS: &[Row] = &[
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
            let mut old = longhorn_replica("pvc-a", "old");
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
            let mut old = longhorn_replica("pvc-a", "worker3");
            old["metadata"]["name"] = json!("pvc-a-r-old");
            old["spec"]["failedAt"] = json!(ago(9_000));
            w.docs.replicas.push(old);
        },
        PASS,
        PASSED,
        FINE,
    ),
];

pub(super) const READING: &[Row] = &[
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
