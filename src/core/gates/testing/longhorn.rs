//! Documents of storage, backups and virtual machines for the tables of their gates.

use serde_json::{Value, json};

use super::{LonghornDocuments, NODES, World, ago, known};
use crate::api::SourceId;
use crate::facts::Facts;

/// Puts documents in the place of one list.
pub(super) fn list_anew(facts: &mut Facts, source: SourceId, documents: &[Value]) {
    match source {
        SourceId::LonghornNodes => facts.longhorn_nodes = known(documents),
        SourceId::LonghornInstanceManagers => facts.longhorn_instance_managers = known(documents),
        SourceId::LonghornAttachments => facts.longhorn_attachments = known(documents),
        SourceId::VeleroBackups => facts.velero_backups = known(documents),
        SourceId::VeleroRestores => facts.velero_restores = known(documents),
        SourceId::LonghornBackups => facts.longhorn_backups = known(documents),
        SourceId::LonghornSystemBackups => facts.longhorn_system_backups = known(documents),
        SourceId::LonghornSystemRestores => facts.longhorn_system_restores = known(documents),
        SourceId::CnpgBackups => facts.cnpg_backups = known(documents),
        SourceId::VirtualMachineInstances => facts.virtual_machine_instances = known(documents),
        SourceId::VirtualMachineMigrations => facts.virtual_machine_migrations = known(documents),
        SourceId::KubeVirts => facts.kubevirts = known(documents),
        other => unreachable!("{other} has no documents"),
    }
}

fn longhorn(kind: &str, name: &str, spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": "longhorn.io/v1beta2", "kind": kind,
        "metadata": {"name": name, "namespace": "longhorn-system"}, "spec": spec, "status": status,
    })
}

fn good(kind: &str) -> Value {
    json!({"type": kind, "status": "True", "reason": "", "message": "", "lastProbeTime": "", "lastTransitionTime": ago(86_400)})
}

/// A Ready node of Longhorn with one disk, `disk-<name>`.
pub(crate) fn longhorn_node(name: &str) -> Value {
    longhorn(
        "Node",
        name,
        &json!({
            "name": name, "allowScheduling": true, "evictionRequested": false,
            "disks": {"default": {
                "path": "/var/lib/longhorn/", "allowScheduling": true, "evictionRequested": false, "storageReserved": 0,
            }},
        }),
        &json!({
            "autoEvicting": false, "conditions": [good("Ready"), good("Schedulable"), good("MountPropagation")],
            "diskStatus": {"default": {
                "diskUUID": format!("disk-{name}"), "conditions": [good("Ready"), good("Schedulable")],
            }},
        }),
    )
}

/// The running instance manager of a node with these engines.
pub(crate) fn instance_manager(node: &str, engines: &[&str]) -> Value {
    let running: serde_json::Map<_, _> =
        engines.iter().map(|name| ((*name).to_owned(), json!({"status": {"state": "running"}}))).collect();
    longhorn(
        "InstanceManager",
        &format!("instance-manager-{node}"),
        &json!({"nodeID": node, "type": "aio", "dataEngine": "v1"}),
        &json!({
            "currentState": "running", "instanceEngines": running,
            "instanceReplicas": {format!("some-r-{node}"): {"status": {"state": "running"}}},
        }),
    )
}

/// The budget of a node's instance manager.
pub(crate) fn instance_manager_budget(node: &str) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": format!("instance-manager-{node}"), "namespace": "longhorn-system", "generation": 1},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {
            "longhorn.io/component": "instance-manager", "longhorn.io/node": node,
        }}},
        "status": {
            "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "observedGeneration": 1,
        },
    })
}

/// Longhorn's own attachment of a volume.
pub(crate) fn longhorn_attachment(volume: &str, kind: &str, node: &str) -> Value {
    longhorn(
        "VolumeAttachment",
        volume,
        &json!({"volume": volume, "attachmentTickets": {
            format!("{kind}-1"): {"id": format!("{kind}-1"), "type": kind, "nodeID": node, "generation": 1},
        }}),
        &json!({"attachmentTicketStatuses": {}}),
    )
}

impl World {
    /// Longhorn on every node, whole: see [`LonghornDocuments::healthy`].
    pub(crate) fn with_longhorn(mut self) -> Self {
        self.install_longhorn();
        self
    }

    /// The same; what of Longhorn was there before is replaced.
    pub(crate) fn install_longhorn(&mut self) {
        let LonghornDocuments { volumes, replicas, engines, settings } = LonghornDocuments::healthy();
        *self.of(SourceId::LonghornVolumes) = volumes;
        *self.of(SourceId::LonghornReplicas) = replicas;
        *self.of(SourceId::LonghornEngines) = engines;
        *self.of(SourceId::LonghornSettings) = settings;
        *self.of(SourceId::LonghornNodes) = NODES.map(longhorn_node).to_vec();
        *self.of(SourceId::LonghornInstanceManagers) = vec![
            instance_manager("worker1", &["pvc-a-e-0"]),
            instance_manager("worker2", &["pvc-b-e-0"]),
            instance_manager("worker3", &[]),
        ];
        *self.of(SourceId::LonghornAttachments) = vec![
            longhorn_attachment("pvc-a", "csi-attacher", "worker1"),
            longhorn_attachment("pvc-b", "csi-attacher", "worker2"),
        ];
        let budgets = self.of(SourceId::PodDisruptionBudgets);
        budgets.retain(|budget| budget["metadata"]["namespace"] != "longhorn-system");
        budgets.extend(NODES.map(instance_manager_budget));
    }
}
