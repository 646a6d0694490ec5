//! Nodes that go down and come back, and what is left of it in the API.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Case, case};
use crate::harness::objects::{self, condition, is_true, taints};
use crate::harness::{Cluster, wait};

pub fn cases() -> Vec<Case> {
    vec![
        case("reboots::finished_pod", finished_pod),
        case("reboots::short_one_leaves_only_a_boot_id", short_reboot),
        case("reboots::long_absence", long_absence),
        case("reboots::pod_reboots_its_node", action_pod),
    ]
}

async fn finished_pod(cluster: Arc<Cluster>) -> Result<()> {
    cluster.namespace("case-finished").await?;
    let client = cluster.client(1).await?;
    let pods = "/api/v1/namespaces/case-finished/pods";
    client.create(pods, &bare_pod("once", "worker3", json!({ "test/run-seconds": "1" }))).await?;
    wait::until(wait::SHORT, "the pod to have succeeded", || async {
        Ok((client.get(&format!("{pods}/once")).await?["status"]["phase"] == "Succeeded").then_some(()))
    })
    .await
}

/// Down for less than the grace period: never not Ready, no taint, and the boot ID is the only trace.
async fn short_reboot(cluster: Arc<Cluster>) -> Result<()> {
    cluster.servers_follow(false);
    cluster.namespace("case-reboot").await?;
    let client = cluster.client(1).await?;
    let pods = "/api/v1/namespaces/case-reboot/pods";
    client.create(pods, &bare_pod("stays", "worker2", json!({}))).await?;
    wait::until(wait::SHORT, "the pod to run", || async {
        Ok((client.get(&format!("{pods}/stays")).await?["status"]["phase"] == "Running").then_some(()))
    })
    .await?;
    let before = client.get("/api/v1/nodes/worker2").await?;
    let rebooting = cluster.clone();
    let reboot = tokio::spawn(async move { rebooting.reboot("worker2", 6).await });
    let start = Instant::now();
    let after = wait::until(wait::NODE_STATE, "another boot ID", || async {
        let node = client.get("/api/v1/nodes/worker2").await?;
        // An observation that breaks the claim ends the wait with the node that broke it.
        let broken = !is_true(&node, "Ready") || !taints(&node).is_empty();
        Ok((broken || node["status"]["nodeInfo"]["bootID"] != before["status"]["nodeInfo"]["bootID"]).then_some(node))
    })
    .await?;
    reboot.await??;
    ensure!(is_true(&after, "Ready") && taints(&after).is_empty(), "it was seen down: {after}");
    ensure!(start.elapsed() >= Duration::from_secs(6), "back after {:?}", start.elapsed());
    let transition = |node: &Value| condition(node, "Ready").map(|ready| ready["lastTransitionTime"].clone());
    ensure!(transition(&before) == transition(&after), "the transition time moved");
    wait::until(wait::SHORT, "the pod to be restarted", || async {
        let pod = client.get(&format!("{pods}/stays")).await?;
        Ok((pod["status"]["containerStatuses"][0]["restartCount"] == 1 && is_true(&pod, "Ready")).then_some(()))
    })
    .await
}

/// Down for longer, with its API server: Unknown, tainted, its endpoints not ready, and back with the taint for a moment.
async fn long_absence(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(1).await?;
    cluster.power_off("worker3").await?;
    ensure!(cluster.client(3).await?.get("/version").await.is_err(), "its API server still answers");
    let start = Instant::now();
    let node = wait::until(wait::NODE_STATE, "worker3 to be unknown", || async {
        let node = client.get("/api/v1/nodes/worker3").await?;
        Ok((condition(&node, "Ready").is_some_and(|ready| ready["status"] == "Unknown")).then_some(node))
    })
    .await?;
    let seconds = start.elapsed().as_secs_f64();
    ensure!((9.0..40.0).contains(&seconds), "unknown after {seconds} s");
    println!("\nfigure node_unknown_after {seconds:.1} s");
    ensure!(condition(&node, "Ready").is_some_and(|ready| ready["reason"] == "NodeStatusUnknown"), "{node}");
    wait::until(wait::SHORT, "both unreachable taints", || async {
        let taints = taints(&client.get("/api/v1/nodes/worker3").await?);
        Ok(["NoSchedule", "NoExecute"]
            .iter()
            .all(|effect| taints.contains(&format!("node.kubernetes.io/unreachable:{effect}")))
            .then_some(()))
    })
    .await?;
    cluster.power_on("worker3").await?;
    cluster.wait_node_back("worker3", Some(&cluster.boot_id("worker3")?)).await?;
    cluster.wait_servers().await
}

/// The `pod` action: the pod's node goes down under it and comes back with another boot ID, then the pod has succeeded.
async fn action_pod(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(1).await?;
    let before = cluster.boot_id("worker2")?;
    let pods = format!("/api/v1/namespaces/{}/pods", objects::ACTIONS_NAMESPACE);
    let account = format!("/api/v1/namespaces/{}/serviceaccounts/default", objects::ACTIONS_NAMESPACE);
    wait::until(wait::CONTROLLERS, "its service account", || async { client.find(&account).await }).await?;
    client.create(&pods, &bare_pod("reboot", "worker2", json!({ "test/reboot-seconds": "3" }))).await?;
    wait::until(wait::SHORT, "worker2 to go down", || async {
        Ok(client.plain_healthz("worker2").await?.status.is_server_error().then_some(()))
    })
    .await?;
    wait::until(wait::NODE_STATE, "the pod to have succeeded", || async {
        Ok((client.get(&format!("{pods}/reboot")).await?["status"]["phase"] == "Succeeded").then_some(()))
    })
    .await?;
    ensure!(cluster.boot_id("worker2")? != before, "the boot ID is the old one");
    cluster.wait_node_back("worker2", Some(&cluster.boot_id("worker2")?)).await?;
    cluster.wait_servers().await
}

fn bare_pod(name: &str, node: &str, annotations: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "annotations": annotations },
        "spec": { "nodeName": node, "tolerations": [{ "operator": "Exists" }], "containers": [{ "name": "main", "image": "test" }] },
    })
}
