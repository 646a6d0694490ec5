//! Documents of a Longhorn installation, and VolumeAttachments.

use serde_json::{Value, json};

use super::{Case, NODES, ago, good, known};

/// The documents of a Longhorn installation.
#[derive(Default)]
pub(crate) struct LonghornDocuments {
    /// Volumes.
    pub volumes: Vec<Value>,
    /// Replicas.
    pub replicas: Vec<Value>,
    /// Engines.
    pub engines: Vec<Value>,
    /// Settings.
    pub settings: Vec<Value>,
}

/// An attached, healthy volume of 2 GiB with its claim `media/<name>`.
pub(crate) fn longhorn_volume(name: &str, replicas: usize, attached_to: &str) -> Value {
    json!({
        "apiVersion": "longhorn.io/v1beta2", "kind": "Volume",
        "metadata": {"name": name, "namespace": "longhorn-system", "creationTimestamp": ago(864_000)},
        "spec": {
            "numberOfReplicas": replicas, "size": "2147483648", "dataEngine": "v1", "accessMode": "rwo",
            "Standby": false, "nodeID": attached_to, "migrationNodeID": "",
        },
        "status": {
            "state": "attached", "robustness": "healthy", "currentNodeID": attached_to, "lastDegradedAt": "",
            "restoreRequired": false, "expansionRequired": false,
            "kubernetesStatus": {"namespace": "media", "pvcName": name, "pvName": name},
            "conditions": [
                {"type": "Scheduled", "status": "True", "reason": "", "message": ""},
                {"type": "Restore", "status": "False", "reason": "", "message": ""},
            ],
        },
    })
}

/// A healthy replica; its name is `<volume>-r-<node>`.
pub(crate) fn longhorn_replica(volume: &str, node: &str) -> Value {
    json!({
        "apiVersion": "longhorn.io/v1beta2", "kind": "Replica",
        "metadata": {"name": format!("{volume}-r-{node}"), "namespace": "longhorn-system"},
        "spec": {
            "volumeName": volume, "nodeID": node, "diskID": format!("disk-{node}"), "healthyAt": ago(800_000),
            "failedAt": "", "evictionRequested": false,
        },
        "status": {"currentState": "running"},
    })
}

/// A running engine that reads and writes a replica on each of these nodes.
pub(crate) fn longhorn_engine(volume: &str, nodes: &[&str]) -> Value {
    let name = |node: &&str| format!("{volume}-r-{node}");
    let modes: serde_json::Map<_, _> = nodes.iter().map(|node| (name(node), json!("RW"))).collect();
    let addresses: serde_json::Map<_, _> =
        nodes.iter().map(|node| (name(node), json!(format!("{node}:10000")))).collect();
    json!({
        "apiVersion": "longhorn.io/v1beta2", "kind": "Engine",
        "metadata": {"name": format!("{volume}-e-0"), "namespace": "longhorn-system"},
        "spec": {"volumeName": volume},
        "status": {
            "currentState": "running", "currentSize": "2147483648", "isExpanding": false,
            "replicaModeMap": modes, "currentReplicaAddressMap": addresses,
            "rebuildStatus": {}, "restoreStatus": {},
        },
    })
}

/// A setting.
pub(crate) fn longhorn_setting(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "longhorn.io/v1beta2", "kind": "Setting",
        "metadata": {"name": name, "namespace": "longhorn-system"}, "value": value,
    })
}

impl LonghornDocuments {
    /// Two attached healthy volumes (`pvc-a` on worker1, `pvc-b` on worker2) and a detached one (`pvc-c`), each with
    /// a replica on every node, and the settings that gates read at their defaults.
    pub fn healthy() -> Self {
        let mut documents = Self {
            settings: vec![
                longhorn_setting("node-drain-policy", "block-if-contains-last-replica"),
                longhorn_setting("replica-replenishment-wait-interval", "600"),
                longhorn_setting("concurrent-replica-rebuild-per-node-limit", "5"),
            ],
            ..Self::default()
        };
        documents.attach("pvc-a", "worker1", &NODES);
        documents.attach("pvc-b", "worker2", &NODES);
        documents.detach("pvc-c", &NODES);
        documents
    }

    /// Adds an attached healthy volume.
    pub fn attach(&mut self, name: &str, attached_to: &str, nodes: &[&str]) {
        self.volumes.push(longhorn_volume(name, nodes.len(), attached_to));
        self.replicas.extend(nodes.iter().map(|node| longhorn_replica(name, node)));
        self.engines.push(longhorn_engine(name, nodes));
    }

    /// Adds a detached volume whose replicas are all whole.
    pub fn detach(&mut self, name: &str, nodes: &[&str]) {
        let mut volume = longhorn_volume(name, nodes.len(), "");
        volume["status"]["state"] = json!("detached");
        volume["status"]["robustness"] = json!("unknown");
        self.volumes.push(volume);
        let mut engine = longhorn_engine(name, &[]);
        engine["status"]["currentState"] = json!("stopped");
        engine["status"]["currentSize"] = json!("0");
        engine["status"]["replicaModeMap"] = Value::Null;
        engine["status"]["currentReplicaAddressMap"] = Value::Null;
        self.engines.push(engine);
        self.replicas.extend(nodes.iter().map(|node| {
            let mut replica = longhorn_replica(name, node);
            replica["status"]["currentState"] = json!("stopped");
            replica
        }));
    }

    /// Fills the four sources of a case.
    pub fn fill(&self, case: &mut Case) {
        case.facts.longhorn_volumes = known(&self.volumes);
        case.facts.longhorn_replicas = known(&self.replicas);
        case.facts.longhorn_engines = known(&self.engines);
        case.facts.longhorn_settings = known(&self.settings);
    }
}

/// Fills the four Longhorn sources of a healthy cluster.
pub(crate) fn longhorn_healthy(case: &mut Case) {
    let documents = LonghornDocuments::healthy();
    documents.fill(case);
    // A typo in a builder is no malformed item.
    case.facts.longhorn_volumes = good(&documents.volumes);
    case.facts.longhorn_replicas = good(&documents.replicas);
    case.facts.longhorn_engines = good(&documents.engines);
    case.facts.longhorn_settings = good(&documents.settings);
}

/// An attachment of a volume to a node, by Longhorn's driver.
pub(crate) fn volume_attachment(persistent_volume: &str, node: &str) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
        "metadata": {"name": format!("csi-{persistent_volume}-{node}"), "creationTimestamp": ago(86_400)},
        "spec": {
            "attacher": "driver.longhorn.io", "nodeName": node,
            "source": {"persistentVolumeName": persistent_volume},
        },
        "status": {"attached": true},
    })
}
