//! Small clusters to start from.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::ACTION_NAMESPACE;
use crate::random::Random;
use crate::store::Store;
use crate::store::http::Inner;
use crate::store::kinds::Kind;

/// A node as k3s has it; `server` nodes are control plane and etcd members.
#[must_use]
pub fn node(name: &str, address: &str, server: bool, boot_id: &str, now: Timestamp) -> Value {
    let mut labels = json!({"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"});
    if server && let Some(labels) = labels.as_object_mut() {
        labels.insert("node-role.kubernetes.io/control-plane".to_owned(), json!("true"));
        labels.insert("node-role.kubernetes.io/etcd".to_owned(), json!("true"));
    }
    let since = crate::store::object::seconds(now);
    let condition = |kind: &str, status: &str, reason: &str| json!({"type": kind, "status": status, "reason": reason, "lastHeartbeatTime": since, "lastTransitionTime": since});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels, "annotations": {}},
        "spec": {}, "status": {
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"},
            "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"},
            "nodeInfo": {"bootID": boot_id, "kernelVersion": "6.12.0", "kubeletVersion": "v1.34.4"},
            "conditions": [condition("Ready", "True", "KubeletReady"),
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID")]}})
}

fn kind(name: &str, resource: &str) -> Kind {
    Kind {
        group: "maint.dev".to_owned(),
        version: "v1alpha1".to_owned(),
        kind: name.to_owned(),
        resource: resource.to_owned(),
        namespaced: false,
        status: true,
        generation: true,
        custom: true,
    }
}

/// Serves maint's own kinds.
pub fn register(store: &mut Store) {
    store.register(kind("Maintenance", "maintenances"));
    store.register(kind("MaintenanceReport", "maintenancereports"));
}

/// Serves Longhorn's kinds and makes its namespace.
pub fn register_longhorn(store: &mut Store, now: Timestamp) {
    for (name, resource) in [
        ("Volume", "volumes"),
        ("Replica", "replicas"),
        ("Engine", "engines"),
        ("Node", "nodes"),
        ("Setting", "settings"),
        ("InstanceManager", "instancemanagers"),
        ("VolumeAttachment", "volumeattachments"),
        ("Backup", "backups"),
        ("SystemBackup", "systembackups"),
        ("SystemRestore", "systemrestores"),
    ] {
        let mut kind = kind(name, resource);
        "longhorn.io".clone_into(&mut kind.group);
        "v1beta2".clone_into(&mut kind.version);
        kind.namespaced = true;
        store.register(kind);
    }
    store.seed(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LONGHORN_NAMESPACE}}), now);
}

/// Longhorn's namespace.
pub const LONGHORN_NAMESPACE: &str = "longhorn-system";

/// A node of Longhorn with one disk, its running instance manager with these engines, and the budget of that.
#[must_use]
pub fn longhorn_node(name: &str, engines: &[&str], now: Timestamp) -> Vec<Value> {
    let since = crate::store::object::seconds(now);
    let good =
        |kind: &str| json!({"type": kind, "status": "True", "reason": "", "message": "", "lastTransitionTime": since});
    let manager = format!("instance-manager-{name}");
    let engines: serde_json::Map<String, Value> =
        engines.iter().map(|engine| ((*engine).to_owned(), json!({"status": {"state": "running"}}))).collect();
    vec![
        json!({"apiVersion": "longhorn.io/v1beta2", "kind": "Node",
            "metadata": {"name": name, "namespace": LONGHORN_NAMESPACE},
            "spec": {"name": name, "allowScheduling": true, "evictionRequested": false, "disks": {"default": {
                "path": "/var/lib/longhorn/", "allowScheduling": true, "evictionRequested": false}}},
            "status": {"autoEvicting": false, "conditions": [good("Ready"), good("Schedulable")], "diskStatus": {"default": {
                "diskUUID": format!("disk-{name}"), "conditions": [good("Ready"), good("Schedulable")]}}}}),
        json!({"apiVersion": "longhorn.io/v1beta2", "kind": "InstanceManager",
            "metadata": {"name": manager, "namespace": LONGHORN_NAMESPACE},
            "spec": {"nodeID": name, "type": "aio", "dataEngine": "v1"},
            "status": {"currentState": "running", "instanceEngines": engines, "instanceReplicas": {}}}),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": manager, "namespace": LONGHORN_NAMESPACE},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {
                "longhorn.io/component": "instance-manager", "longhorn.io/node": name}}}}),
    ]
}

/// Longhorn's own attachment of a volume, as its CSI driver asks for it.
#[must_use]
pub fn longhorn_attachment(volume: &str, node: &str) -> Value {
    json!({"apiVersion": "longhorn.io/v1beta2", "kind": "VolumeAttachment",
        "metadata": {"name": volume, "namespace": LONGHORN_NAMESPACE},
        "spec": {"volume": volume, "attachmentTickets": {"csi": {"id": "csi", "type": "csi-attacher", "nodeID": node}}},
        "status": {}})
}

/// A healthy attached volume with a healthy replica on each of `nodes`, and its engine; static, but a test may
/// edit every part of it.
#[must_use]
pub fn volume(name: &str, nodes: &[&str], now: Timestamp) -> Vec<Value> {
    let since = crate::store::object::seconds(now);
    let object = |kind: &str, name: &str, spec: Value, status: Value| {
        json!({"apiVersion": "longhorn.io/v1beta2", "kind": kind,
            "metadata": {"name": name, "namespace": LONGHORN_NAMESPACE}, "spec": spec, "status": status})
    };
    let replica = |node: &&str| format!("{name}-r-{node}");
    let address = |node: &&str| format!("{node}:10000");
    let modes: serde_json::Map<String, Value> = nodes.iter().map(|node| (replica(node), json!("RW"))).collect();
    let addresses: serde_json::Map<String, Value> =
        nodes.iter().map(|node| (replica(node), json!(address(node)))).collect();
    let first = nodes.first().copied().unwrap_or_default();
    let mut found = vec![
        object(
            "Volume",
            name,
            json!({"numberOfReplicas": nodes.len(), "size": "1073741824", "nodeID": first, "accessMode": "rwo",
                "dataEngine": "v1", "migrationNodeID": "", "Standby": false}),
            json!({"state": "attached", "robustness": "healthy", "currentNodeID": first, "lastDegradedAt": "",
                "restoreRequired": false, "expansionRequired": false,
                "kubernetesStatus": {"namespace": "default", "pvcName": name, "pvName": format!("pv-{name}")},
                "conditions": [{"type": "Scheduled", "status": "True", "reason": "", "message": "",
                    "lastTransitionTime": since}]}),
        ),
        object(
            "Engine",
            &format!("{name}-e-0"),
            json!({"volumeName": name, "nodeID": first}),
            json!({"currentState": "running", "currentSize": "1073741824", "replicaModeMap": modes,
                "currentReplicaAddressMap": addresses, "isExpanding": false, "rebuildStatus": {}, "restoreStatus": {}}),
        ),
    ];
    found.extend(nodes.iter().map(|node| {
        let spec =
            json!({"volumeName": name, "nodeID": node, "diskID": format!("disk-{node}"), "healthyAt": since, "failedAt": "", "evictionRequested": false});
        object("Replica", &replica(node), spec, json!({"currentState": "running"}))
    }));
    found
}

/// A working autoscaler of CoreDNS with two replicas at least.
#[must_use]
pub fn autoscaler(now: Timestamp) -> Value {
    let since = crate::store::object::seconds(now);
    let condition = |kind: &str, reason: &str| json!({"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": since});
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "coredns", "namespace": "kube-system"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "coredns"},
            "minReplicas": 2, "maxReplicas": 5},
        "status": {"currentReplicas": 2, "desiredReplicas": 2, "conditions": [
            condition("AbleToScale", "ReadyForNewScale"), condition("ScalingActive", "ValidMetricFound")]}})
}

/// Three servers, CoreDNS twice with its Service and budget, a web application, and one DaemonSet.
pub fn three_servers(inner: &mut Inner, seed: u64, now: Timestamp) {
    let mut random = Random::new(seed);
    register(&mut inner.store);
    let mut objects = Vec::new();
    for namespace in ["maint", ACTION_NAMESPACE] {
        objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}));
    }
    for index in 1..=3 {
        let name = format!("n{index}");
        objects.push(node(&name, &format!("10.0.0.{index}"), true, &random.uuid(), now));
        if let Some(server) = inner.servers.get_mut(index - 1) {
            server.node = Some(name);
        }
    }
    objects.extend(application("kube-system", "coredns", &json!({"k8s-app": "kube-dns"}), 2));
    objects.push(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kube-dns",
        "namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}},
        "spec": {"selector": {"k8s-app": "kube-dns"}, "clusterIP": "10.43.0.10"}}));
    objects.extend(application("default", "web", &json!({"app": "web"}), 3));
    objects.push(json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}},
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "main", "image": "agent"}]}}}}));
    for object in objects {
        inner.store.seed(object, now);
    }
}

/// A Deployment and a budget that lets one pod go.
#[must_use]
pub fn application(namespace: &str, name: &str, labels: &Value, replicas: i64) -> Vec<Value> {
    vec![
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels},
                    "spec": {"terminationGracePeriodSeconds": 30, "containers": [{"name": "main", "image": name}]}}}}),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": namespace},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels}}}),
    ]
}
