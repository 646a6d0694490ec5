//! The node's registration, status and lease.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::super::client::Patch;
use super::super::{now, now_micros};
use super::{Shared, condition};

const LEASE_PERIOD: Duration = Duration::from_secs(3);
/// A node that was declared unknown meanwhile says that it is ready within so many lease renewals.
const STATUS_EVERY: u32 = 3;

/// Registers the node and keeps it alive until the session ends.
pub(super) async fn heartbeat(shared: Arc<Shared>, boot_id: String) {
    let mut round = 0;
    loop {
        let result = if round % STATUS_EVERY == 0 { full(&shared, &boot_id).await } else { renew(&shared).await };
        match result {
            Ok(()) => {
                round += 1;
                tokio::time::sleep(LEASE_PERIOD).await;
            }
            // No API server, or not yet willing: a real kubelet tries again soon, too.
            Err(_) => tokio::time::sleep(Duration::from_millis(300)).await,
        }
    }
}

async fn full(shared: &Shared, boot_id: &str) -> Result<()> {
    let path = format!("/api/v1/nodes/{}", shared.name);
    let mut answer = shared.request(Method::GET, &path, "application/json", None).await?;
    if answer.status == StatusCode::NOT_FOUND {
        let labels = json!({ "kubernetes.io/hostname": shared.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
            "node.kubernetes.io/instance-type": "k3s" });
        let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": shared.name, "labels": labels } });
        answer = shared.request(Method::POST, "/api/v1/nodes", "application/json", Some(&node)).await?;
    }
    if !answer.status.is_success() {
        bail!("node {}: {}", shared.name, answer.message());
    }
    let status = status(shared, boot_id, &answer.json()?);
    let answer = shared.patch(Patch::Strategic, &format!("{path}/status"), &json!({ "status": status })).await?;
    if !answer.status.is_success() {
        bail!("status of {}: {}", shared.name, answer.message());
    }
    renew(shared).await
}

fn status(shared: &Shared, boot_id: &str, node: &Value) -> Value {
    let now = now();
    let old = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let mut conditions = Vec::new();
    for (kind, wanted, reason) in [
        ("MemoryPressure", false, "KubeletHasSufficientMemory"),
        ("DiskPressure", false, "KubeletHasNoDiskPressure"),
        ("PIDPressure", false, "KubeletHasSufficientPID"),
        ("Ready", true, "KubeletReady"),
    ] {
        // The transition time moves only with the status: a short reboot leaves no trace in it.
        let before = old.iter().find(|c| c["type"] == kind && c["status"] == if wanted { "True" } else { "False" });
        let since = before.and_then(|c| c["lastTransitionTime"].as_str()).unwrap_or(&now);
        let mut entry = condition(kind, wanted, since);
        entry["reason"] = reason.into();
        entry["message"] = "kubelet double".into();
        entry["lastHeartbeatTime"] = now.as_str().into();
        conditions.push(entry);
    }
    // Room for the pods of another node, too: what is drained starts again elsewhere.
    let room = json!({ "cpu": "64", "memory": "256Gi", "pods": "500", "ephemeral-storage": "200Gi" });
    json!({
        "addresses": [{ "type": "InternalIP", "address": shared.address() }, { "type": "Hostname", "address": shared.name }],
        "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
        "capacity": room, "allocatable": room,
        "nodeInfo": {
            "machineID": format!("machine-{}", shared.index), "systemUUID": format!("system-{}", shared.index), "bootID": boot_id,
            "kernelVersion": "6.12.48+deb13-amd64", "osImage": "Debian GNU/Linux 13 (trixie)",
            "containerRuntimeVersion": "containerd://2.1.5-k3s1.32", "kubeletVersion": "v1.34.4+k3s1", "kubeProxyVersion": "",
            "operatingSystem": "linux", "architecture": "amd64",
        },
        "conditions": conditions,
    })
}

async fn renew(shared: &Shared) -> Result<()> {
    let spec = json!({ "holderIdentity": shared.name, "leaseDurationSeconds": 40, "renewTime": now_micros() });
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let answer = shared.patch(Patch::Merge, &format!("{leases}/{}", shared.name), &json!({ "spec": spec })).await?;
    if answer.status == StatusCode::NOT_FOUND {
        let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": shared.name }, "spec": spec });
        shared.request(Method::POST, leases, "application/json", Some(&lease)).await?;
    } else if !answer.status.is_success() {
        bail!("lease of {}: {}", shared.name, answer.message());
    }
    Ok(())
}
