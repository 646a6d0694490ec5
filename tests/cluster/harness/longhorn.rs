//! Longhorn in the small: its CRDs and the objects of a healthy three-node installation, without any storage behind them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::client::Client;
use super::net::NODES;
use super::{node_name, now, objects, wait};

/// Where Longhorn lives.
pub const NAMESPACE: &str = "longhorn-system";
const GROUP: &str = "/apis/longhorn.io/v1beta2/namespaces/longhorn-system";
/// When all was built and became healthy.
const LONG_AGO: &str = "2026-01-01T00:00:00Z";
const SIZE: &str = "10737418240";

/// Plural and kind of each CRD.
const KINDS: [(&str, &str); 12] = [
    ("volumes", "Volume"),
    ("replicas", "Replica"),
    ("engines", "Engine"),
    ("nodes", "Node"),
    ("settings", "Setting"),
    ("instancemanagers", "InstanceManager"),
    ("sharemanagers", "ShareManager"),
    ("volumeattachments", "VolumeAttachment"),
    ("backups", "Backup"),
    ("systembackups", "SystemBackup"),
    ("systemrestores", "SystemRestore"),
    ("backingimages", "BackingImage"),
];

const SETTINGS: [(&str, &str); 10] = [
    ("node-drain-policy", "block-if-contains-last-replica"),
    ("replica-replenishment-wait-interval", "600"),
    ("auto-salvage", "true"),
    ("disable-scheduling-on-cordoned-node", "true"),
    ("offline-replica-rebuilding", "false"),
    ("concurrent-replica-rebuild-per-node-limit", "5"),
    ("detach-manually-attached-volumes-when-cordoned", "false"),
    ("replica-soft-anti-affinity", "false"),
    ("default-replica-count", "3"),
    ("current-longhorn-version", "v1.9.2"),
];

/// The volumes, with the node each is attached to (0 = detached).
pub const VOLUMES: [(&str, usize); 3] = [("pvc-home", 1), ("pvc-media", 2), ("pvc-archive", 0)];

/// What is wrong with a volume, if anything; the number is the node (from 1) of the replica in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volume {
    /// Attached with three good replicas, or (the archive) detached with three.
    Healthy,
    /// Degraded, one replica is being built at 42 %.
    Rebuilding(usize),
    /// Degraded, one replica has failed and nothing is rebuilt before the replenishment interval is over.
    Waiting(usize),
    /// Healthy with the one replica that it wants, on this node.
    SingleReplica(usize),
    /// All replicas have failed.
    Faulted,
}

/// The volumes' states and the settings, as they should be; written to the API on each change.
#[derive(Clone, Default)]
pub struct Longhorn {
    wanted: Arc<Mutex<Wanted>>,
}

#[derive(Default)]
struct Wanted {
    volumes: BTreeMap<String, (Volume, String)>,
    settings: BTreeMap<String, String>,
}

impl Longhorn {
    /// The CRDs and everything healthy.
    pub async fn create(&self, client: &Client) -> Result<()> {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
        client.ensure("/api/v1/namespaces", &namespace).await?;
        for (plural, kind) in KINDS {
            client.ensure("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd(plural, kind)).await?;
        }
        for (plural, kind) in KINDS {
            objects::create_crd(client, &crd(plural, kind)).await?;
        }
        self.reset(client).await
    }

    /// Puts one volume into a state.
    pub async fn set(&self, client: &Client, volume: &str, state: Volume) -> Result<()> {
        if !VOLUMES.iter().any(|(name, _)| *name == volume) {
            bail!("no volume {volume}; there are {}", VOLUMES.map(|(name, _)| name).join(", "));
        }
        self.lock().volumes.insert(volume.to_string(), (state, now()));
        self.apply(client).await
    }

    /// Changes a setting, such as `node-drain-policy`.
    pub async fn set_setting(&self, client: &Client, name: &str, value: &str) -> Result<()> {
        self.lock().settings.insert(name.to_string(), value.to_string());
        self.apply(client).await
    }

    /// Everything healthy again, settings at their defaults.
    pub async fn reset(&self, client: &Client) -> Result<()> {
        *self.lock() = Wanted::default();
        self.apply(client).await
    }

    fn lock(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn apply(&self, client: &Client) -> Result<()> {
        let mut wanted: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        {
            let state = self.lock();
            for (name, attached) in VOLUMES {
                let (volume, since) =
                    state.volumes.get(name).cloned().unwrap_or((Volume::Healthy, LONG_AGO.to_string()));
                let made = Parts::new(name, attached, volume, &since);
                wanted.entry("volumes").or_default().push(made.volume);
                wanted.entry("engines").or_default().push(made.engine);
                wanted
                    .entry("volumeattachments")
                    .or_default()
                    .push(attachment(name, if volume == Volume::Faulted { 0 } else { attached }));
                wanted.entry("replicas").or_default().extend(made.replicas);
            }
            wanted.insert("settings", settings(&state.settings));
        }
        wanted.insert("nodes", (1..=NODES).map(node).collect());
        let detached: Vec<String> = {
            let state = self.lock();
            let faulted = state.volumes.iter().filter(|(_, (volume, _))| *volume == Volume::Faulted);
            faulted.map(|(name, _)| name.clone()).collect()
        };
        wanted.insert("instancemanagers", (1..=NODES).map(|node| instance_manager(node, &detached)).collect());
        for node in 1..=NODES {
            client
                .ensure(&format!("/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"), &budget(node))
                .await?;
        }
        for (plural, kind) in KINDS {
            sync(client, plural, kind, wanted.remove(plural).unwrap_or_default()).await?;
        }
        Ok(())
    }
}

/// Removes Longhorn as far as the API knows of it; `Longhorn::create` brings it back. Waits until no server serves it any
/// more.
pub async fn remove(client: &Client) -> Result<()> {
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for (plural, _) in KINDS {
        client.delete(&format!("{crds}/{plural}.longhorn.io"), None).await?;
    }
    for (plural, _) in KINDS {
        wait::until(wait::CONTROLLERS, format!("CRD {plural}.longhorn.io to be gone"), || async {
            let crd = client.find(&format!("{crds}/{plural}.longhorn.io")).await?;
            let served = client.find(&format!("{GROUP}/{plural}")).await?;
            Ok((crd.is_none() && served.is_none()).then_some(()))
        })
        .await?;
    }
    Ok(())
}

/// Makes the objects of one kind what they should be; those that are right already are not written.
async fn sync(client: &Client, plural: &str, kind: &str, wanted: Vec<Value>) -> Result<()> {
    let path = format!("{GROUP}/{plural}");
    let mut present: BTreeMap<String, Value> = BTreeMap::new();
    for object in client.list(&path).await? {
        present.insert(object["metadata"]["name"].as_str().unwrap_or("").to_string(), object);
    }
    for mut object in wanted {
        object["apiVersion"] = "longhorn.io/v1beta2".into();
        object["kind"] = kind.into();
        let name = object["metadata"]["name"].as_str().unwrap_or("").to_string();
        let old = present.remove(&name);
        if old
            .as_ref()
            .is_some_and(|old| ["spec", "status", "value"].iter().all(|field| old.get(*field) == object.get(*field)))
        {
            continue;
        }
        let stored = match old {
            None => client.create(&path, &object).await?,
            Some(old) => put(client, &format!("{path}/{name}"), &mut object, &old).await?,
        };
        if object.get("status").is_some() {
            // The first write drops the status, so it goes by its own way.
            put(client, &format!("{path}/{name}/status"), &mut object, &stored).await?;
        }
    }
    for name in present.keys() {
        client.delete(&format!("{path}/{name}"), None).await?;
    }
    Ok(())
}

async fn put(client: &Client, path: &str, object: &mut Value, old: &Value) -> Result<Value> {
    object["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
    let answer = client.call(http::Method::PUT, path, &[("content-type", "application/json")], Some(object)).await?;
    if answer.status.is_success() { answer.json() } else { bail!("PUT {path}: {} {}", answer.status, answer.message()) }
}

fn crd(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.longhorn.io") },
        "spec": {
            "group": "longhorn.io", "scope": "Namespaced",
            "names": { "plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List") },
            "versions": [{ "name": "v1beta2", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
        },
    })
}

/// The lists of all kinds.
pub fn paths() -> impl Iterator<Item = String> {
    KINDS.iter().map(|(plural, _)| format!("{GROUP}/{plural}"))
}

/// A volume with its engine and replicas.
struct Parts {
    volume: Value,
    engine: Value,
    replicas: Vec<Value>,
}

impl Parts {
    fn new(name: &str, attached: usize, state: Volume, since: &str) -> Self {
        let attached = if state == Volume::Faulted { 0 } else { attached };
        let places: Vec<usize> = match state {
            Volume::SingleReplica(node) => vec![node],
            _ => (1..=NODES).collect(),
        };
        Self {
            volume: volume(name, attached, state, since, places.len()),
            engine: engine(name, attached, state, &places),
            replicas: places.iter().map(|node| replica(name, *node, attached, state, since)).collect(),
        }
    }
}

fn volume(name: &str, attached: usize, state: Volume, since: &str, replicas: usize) -> Value {
    let robustness = match state {
        Volume::Faulted => "faulted",
        // Detached + unknown is the normal resting state.
        _ if attached == 0 => "unknown",
        Volume::Rebuilding(_) | Volume::Waiting(_) => "degraded",
        Volume::Healthy | Volume::SingleReplica(_) => "healthy",
    };
    let degraded_at = if robustness == "degraded" { since } else { "" };
    let node = if attached == 0 { String::new() } else { node_name(attached) };
    json!({
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": { "numberOfReplicas": replicas, "nodeID": node, "dataEngine": "v1", "accessMode": "rwo", "dataLocality": "disabled",
            "Standby": false, "size": SIZE, "migrationNodeID": "", "offlineRebuilding": "ignored" },
        "status": {
            "state": if attached == 0 { "detached" } else { "attached" }, "robustness": robustness, "currentNodeID": node,
            "lastDegradedAt": degraded_at, "restoreRequired": false, "restoreInitiated": false, "expansionRequired": false,
            "shareState": "", "cloneStatus": { "state": "" },
            "kubernetesStatus": { "namespace": "default", "pvcName": name.trim_start_matches("pvc-"), "workloadsStatus": null },
            "conditions": [
                { "type": "Scheduled", "status": "True", "reason": "", "message": "", "lastProbeTime": "", "lastTransitionTime": LONG_AGO },
                { "type": "Restore", "status": "False", "reason": "", "message": "", "lastProbeTime": "", "lastTransitionTime": LONG_AGO },
            ],
        },
    })
}

fn engine(name: &str, attached: usize, state: Volume, places: &[usize]) -> Value {
    let (mut modes, mut addresses, mut rebuilds) = (json!({}), json!({}), json!({}));
    for node in places.iter().filter(|_| attached != 0) {
        let replica = replica_name(name, *node);
        match state {
            Volume::Waiting(failed) if failed == *node => continue,
            Volume::Rebuilding(new) if new == *node => {
                modes[&replica] = "WO".into();
                rebuilds[format!("tcp://{}", replica_address(*node))] = json!({ "isRebuilding": true, "progress": 42,
                    "state": "in_progress", "error": "", "fromReplicaAddress": format!("tcp://{}", replica_address(node % NODES + 1)) });
            }
            _ => modes[&replica] = "RW".into(),
        }
        addresses[&replica] = replica_address(*node).into();
    }
    let node = if attached == 0 { String::new() } else { node_name(attached) };
    json!({
        "metadata": { "name": format!("{name}-e-0"), "namespace": NAMESPACE, "labels": { "longhornvolume": name, "longhornnode": node } },
        "spec": { "volumeName": name, "nodeID": node, "active": true, "desireState": if attached == 0 { "stopped" } else { "running" },
            "volumeSize": SIZE, "dataEngine": "v1" },
        "status": {
            "currentState": if attached == 0 { "stopped" } else { "running" }, "currentSize": SIZE, "isExpanding": false,
            "lastExpansionError": "", "instanceManagerName": if attached == 0 { String::new() } else { manager_name(attached) },
            "replicaModeMap": modes, "currentReplicaAddressMap": addresses, "rebuildStatus": rebuilds, "restoreStatus": {},
            "purgeStatus": {}, "backupStatus": {}, "cloneStatus": {}, "conditions": [],
        },
    })
}

fn replica(name: &str, node: usize, attached: usize, state: Volume, since: &str) -> Value {
    let (healthy_at, failed_at) = match state {
        Volume::Waiting(failed) if failed == node => ("", since),
        Volume::Rebuilding(new) if new == node => ("", ""),
        Volume::Faulted => (LONG_AGO, since),
        _ => (LONG_AGO, ""),
    };
    let running = attached != 0 && failed_at.is_empty();
    json!({
        "metadata": { "name": replica_name(name, node), "namespace": NAMESPACE,
            "labels": { "longhornvolume": name, "longhornnode": node_name(node), "longhorndiskuuid": format!("disk-{node}") } },
        "spec": { "volumeName": name, "nodeID": node_name(node), "diskID": format!("disk-{node}"), "engineName": format!("{name}-e-0"),
            "active": true, "desireState": if running { "running" } else { "stopped" }, "healthyAt": healthy_at, "failedAt": failed_at,
            "lastHealthyAt": LONG_AGO, "lastFailedAt": failed_at, "rebuildRetryCount": 0, "evictionRequested": false,
            "hardNodeAffinity": "", "dataEngine": "v1", "volumeSize": SIZE },
        "status": { "currentState": if running { "running" } else { "stopped" },
            "instanceManagerName": if running { manager_name(node) } else { String::new() }, "conditions": [] },
    })
}

fn node(i: usize) -> Value {
    let good = |kind: &str| json!({ "type": kind, "status": "True", "reason": "", "message": "", "lastProbeTime": "", "lastTransitionTime": LONG_AGO });
    let kinds =
        ["Ready", "Schedulable", "MountPropagation", "RequiredPackages", "NFSClientInstalled", "KernelModulesLoaded"];
    let (conditions, disk_conditions) = (kinds.map(good), ["Ready", "Schedulable"].map(good));
    let replicas: BTreeMap<_, _> =
        VOLUMES.iter().map(|(name, _)| (replica_name(name, i), 10_737_418_240_u64)).collect();
    let disk = json!({ "path": "/var/lib/longhorn/", "allowScheduling": true, "evictionRequested": false, "storageReserved": 0, "tags": [] });
    json!({
        "metadata": { "name": node_name(i), "namespace": NAMESPACE },
        "spec": { "name": node_name(i), "allowScheduling": true, "evictionRequested": false, "disks": { "disk-1": disk }, "tags": [] },
        "status": { "conditions": conditions, "autoEvicting": false, "diskStatus": { "disk-1": {
            "diskUUID": format!("disk-{i}"), "diskPath": "/var/lib/longhorn/", "conditions": disk_conditions, "scheduledReplica": replicas,
            "storageAvailable": 150_000_000_000_u64, "storageMaximum": 200_000_000_000_u64, "storageScheduled": 32_212_254_720_u64 } } },
    })
}

fn instance_manager(i: usize, detached: &[String]) -> Value {
    let running = json!({ "status": { "state": "running" } });
    let volumes = || VOLUMES.iter().filter(|(name, _)| !detached.iter().any(|gone| gone == name));
    let engines: BTreeMap<_, _> = volumes()
        .filter(|(_, attached)| *attached == i)
        .map(|(name, _)| (format!("{name}-e-0"), running.clone()))
        .collect();
    let replicas: BTreeMap<_, _> = volumes()
        .filter(|(_, attached)| *attached != 0)
        .map(|(name, _)| (replica_name(name, i), running.clone()))
        .collect();
    json!({
        "metadata": { "name": manager_name(i), "namespace": NAMESPACE, "labels": { "longhorn.io/component": "instance-manager",
            "longhorn.io/node": node_name(i), "longhorn.io/instance-manager-type": "aio", "longhorn.io/data-engine": "v1" } },
        "spec": { "nodeID": node_name(i), "type": "aio", "dataEngine": "v1", "image": "longhorn-instance-manager:test" },
        "status": { "currentState": "running", "ownerID": node_name(i), "ip": format!("10.42.{i}.9"), "instanceEngines": engines, "instanceReplicas": replicas,
            "conditions": [] },
    })
}

/// What Longhorn protects an instance manager by. No pod of it runs here, so that it holds nothing.
fn budget(i: usize) -> Value {
    let labels = json!({ "longhorn.io/component": "instance-manager", "longhorn.io/node": node_name(i) });
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": manager_name(i), "namespace": NAMESPACE },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": labels } },
    })
}

/// Longhorn's own attachment of a volume, as its CSI driver asks for it; a detached one has no ticket.
fn attachment(volume: &str, attached: usize) -> Value {
    let ticket = |node: usize| json!({ "csi": { "id": "csi", "type": "csi-attacher", "nodeID": node_name(node), "generation": 0 } });
    json!({
        "metadata": { "name": volume, "namespace": NAMESPACE },
        "spec": { "volume": volume, "attachmentTickets": if attached == 0 { json!({}) } else { ticket(attached) } },
        "status": { "attachmentTicketStatuses": {} },
    })
}

fn settings(changed: &BTreeMap<String, String>) -> Vec<Value> {
    let mut values: BTreeMap<String, String> =
        SETTINGS.map(|(name, value)| (name.to_string(), value.to_string())).into();
    values.extend(changed.clone());
    let object = |(name, value)| json!({ "metadata": { "name": name, "namespace": NAMESPACE }, "value": value, "status": { "applied": true } });
    values.into_iter().map(object).collect()
}

fn replica_name(volume: &str, node: usize) -> String {
    format!("{volume}-r-{node}")
}

fn replica_address(node: usize) -> String {
    format!("10.42.{node}.9:10000")
}

fn manager_name(i: usize) -> String {
    format!("instance-manager-{i}")
}
