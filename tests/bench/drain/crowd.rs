//! A large cluster around the three nodes: nodes without a machine, and pods on them that nobody runs.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::harness::Cluster;
use crate::harness::client::{Client, Patch};
use crate::harness::net::{NODES, address};
use crate::harness::{now, now_micros};

/// Pods of each node: 25 of them, so that the matrix is swept in full.
const PODS_PER_NODE: usize = 400;
/// Requests at a time.
const PARALLEL: usize = 16;
/// Much shorter than the 16 s after which a node is unknown.
const HEARTBEAT: Duration = Duration::from_secs(4);
/// Their namespace.
const NAMESPACE: &str = "crowd";
/// Keeps all other pods away: nobody would start them.
const TAINT: &str = "test/crowd";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// The nodes are alive until it is dropped.
pub struct Crowd {
    _heartbeat: JoinSet<()>,
}

impl Crowd {
    /// Makes so many pods and the nodes for them. The cluster cannot be reset afterwards: it is taken down.
    pub async fn create(cluster: &Arc<Cluster>, pods: usize) -> Result<Self> {
        let client = cluster.client(3).await?.with_limit(Duration::from_secs(30));
        let nodes: Vec<String> = (0..pods.div_ceil(PODS_PER_NODE)).map(|i| format!("crowd-{i:03}")).collect();
        for (index, name) in nodes.iter().enumerate() {
            client.create("/api/v1/nodes", &node(index, name)).await?;
            client.create(LEASES, &lease(name)).await?;
        }
        let mut heartbeat = JoinSet::new();
        heartbeat.spawn(keep_alive(client.clone(), nodes.clone()));
        cluster.namespace(NAMESPACE).await?;
        let all: Vec<(usize, String)> = (0..pods).map(|i| (i, nodes[i / PODS_PER_NODE].clone())).collect();
        stream::iter(all)
            .map(|(index, node)| {
                let client = client.clone();
                async move { create_pod(&client, index, &node).await }
            })
            .buffer_unordered(PARALLEL)
            .try_for_each(|()| async { Ok(()) })
            .await?;
        let listed = client.list(&format!("/api/v1/namespaces/{NAMESPACE}/pods")).await?.len();
        ensure!(listed == pods, "{listed} pods, wanted {pods}");
        Ok(Self { _heartbeat: heartbeat })
    }
}

/// Its kubelet is that of one of the three: what is asked of it is answered, and its certificate fits the address.
fn node(index: usize, name: &str) -> Value {
    let now = now();
    let room = json!({ "cpu": "64", "memory": "256Gi", "pods": "500", "ephemeral-storage": "200Gi" });
    let conditions: Vec<_> =
        [("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False"), ("Ready", "True")]
            .iter()
            .map(|(kind, status)| {
                json!({ "type": kind, "status": status, "reason": "Played", "message": "nobody is there",
                "lastHeartbeatTime": now, "lastTransitionTime": now })
            })
            .collect();
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" } },
        "spec": { "taints": [{ "key": TAINT, "effect": "NoSchedule" }] },
        "status": {
            "addresses": [{ "type": "InternalIP", "address": address(index % NODES + 1).to_string() }],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
            "capacity": room, "allocatable": room, "conditions": conditions,
            "nodeInfo": {
                "machineID": name, "systemUUID": name, "bootID": format!("boot-{name}"), "kernelVersion": "6.12",
                "osImage": "Debian GNU/Linux 13 (trixie)", "containerRuntimeVersion": "containerd://2.1.5-k3s1.32",
                "kubeletVersion": "v1.34.4+k3s1", "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64",
            },
        },
    })
}

fn lease(name: &str) -> Value {
    json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": name },
        "spec": { "holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now_micros() } })
}

async fn keep_alive(client: Client, nodes: Vec<String>) {
    loop {
        for node in &nodes {
            let renewed = json!({ "spec": { "renewTime": now_micros() } });
            if let Err(error) = client.merge(&format!("{LEASES}/{node}"), &renewed).await {
                eprintln!("crowd: {error:#}");
            }
        }
        tokio::time::sleep(HEARTBEAT).await;
    }
}

/// A pod of some 3 KB, running since it was made.
async fn create_pod(client: &Client, index: usize, node: &str) -> Result<()> {
    let name = format!("crowd-{index:05}");
    let container = |name: &str| {
        let environment: Vec<_> =
            (0..8).map(|i| json!({ "name": format!("SETTING_{i}"), "value": "a value of the usual length" })).collect();
        json!({ "name": name, "image": "registry.example/team/app:1.2.3", "env": environment,
            "resources": { "requests": { "cpu": "10m", "memory": "16Mi" } } })
    };
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": "crowd", "part": format!("{}", index % 100) } },
        "spec": { "nodeName": node, "containers": [container("main"), container("aside")],
            "tolerations": [{ "key": TAINT, "operator": "Exists" }] },
    });
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    client.create(&path, &pod).await.context("a pod of the crowd")?;
    let now = now();
    let conditions: Vec<_> = ["Initialized", "PodScheduled", "ContainersReady", "Ready"]
        .iter()
        .map(|kind| json!({ "type": kind, "status": "True", "lastTransitionTime": now }))
        .collect();
    let containers: Vec<_> = ["main", "aside"]
        .iter()
        .map(|name| {
            json!({ "name": name, "image": "registry.example/team/app:1.2.3", "imageID": "", "ready": true, "started": true,
                "restartCount": 0, "state": { "running": { "startedAt": now } } })
        })
        .collect();
    let ip = format!("10.{}.{}.{}", 128 + index / 65_000, index / 250 % 250, index % 250 + 1);
    let status = json!({ "phase": "Running", "startTime": now, "podIP": ip, "podIPs": [{ "ip": ip }],
        "conditions": conditions, "containerStatuses": containers });
    client.patch(Patch::Strategic, &format!("{path}/{name}/status"), &json!({ "status": status })).await.map(drop)
}
