//! The cluster itself: what the doubles and the real controllers make of each other, against measured behaviour.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::{Case, case};
use crate::harness::binaries::KUBERNETES;
use crate::harness::client::Patch;
use crate::harness::control_plane::{Stop, listed_servers};
use crate::harness::etcd_voter::Voter;
use crate::harness::longhorn::{NAMESPACE, VOLUMES, Volume};
use crate::harness::net::NODES;
use crate::harness::objects::{self, condition, is_true};
use crate::harness::{Cluster, node_name, wait};

pub fn cases() -> Vec<Case> {
    vec![
        case("plane::servers", servers),
        case("plane::nodes", nodes),
        case("plane::dns", dns),
        case("plane::autoscaler", autoscaler),
        case("plane::etcd_voters", etcd_voters),
        case("plane::longhorn", longhorn),
        case("plane::missing_kinds", missing_kinds),
        case("plane::budget_blocks_eviction", budget),
        case("plane::audit_log", audit_log),
        case("plane::stopped_server_leaves_the_list", stopped_server),
        case("plane::frozen_server", frozen_server),
        case("plane::program_in_the_hub", program_in_hub),
    ]
}

async fn servers(cluster: Arc<Cluster>) -> Result<()> {
    for i in 1..=NODES {
        let client = cluster.client(i).await?;
        let version = client.get("/version").await?;
        ensure!(version["gitVersion"] == KUBERNETES, "server {i}: {version}");
        let listed = listed_servers(&client).await?;
        ensure!(listed.len() == NODES, "server {i} lists {listed:?}");
        // Each has an identity of its own, which it would not have on a shared hostname.
        let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?labelSelector=apiserver.kubernetes.io%2Fidentity%3Dkube-apiserver";
        wait::until(wait::SHORT, "three identity leases", || async {
            Ok((client.list(leases).await?.len() == NODES).then_some(()))
        })
        .await?;
    }
    Ok(())
}

async fn nodes(cluster: Arc<Cluster>) -> Result<()> {
    let mut boots = BTreeSet::new();
    for (i, node) in (1..=NODES).zip(cluster.nodes().await?) {
        ensure!(node["metadata"]["name"] == node_name(i) && is_true(&node, "Ready"), "{node}");
        let labels = &node["metadata"]["labels"];
        for (label, value) in [
            ("node-role.kubernetes.io/control-plane", "true"),
            ("node-role.kubernetes.io/etcd", "true"),
            ("node.kubernetes.io/instance-type", "k3s"),
        ] {
            ensure!(labels[label] == value, "{label} of {}: {}", node_name(i), labels[label]);
        }
        ensure!(node["spec"]["podCIDR"] == format!("10.42.{i}.0/24"), "podCIDR {}", node["spec"]["podCIDR"]);
        boots.insert(node["status"]["nodeInfo"]["bootID"].to_string());
    }
    ensure!(boots.len() == NODES, "boot IDs {boots:?}");
    Ok(())
}

async fn dns(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(2).await?;
    let nodes: BTreeSet<_> = objects::ready_dns_nodes(&client).await?.into_iter().collect();
    ensure!(nodes.len() == 2, "ready DNS endpoints on {nodes:?}");
    // A pod that is on its way out is not ready any more but still serving, and a new one comes.
    let pods = client.list("/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Dkube-dns").await?;
    let pod = pods[0]["metadata"]["name"].as_str().context("no DNS pod")?;
    let path = format!("/api/v1/namespaces/kube-system/pods/{pod}");
    client.merge(&path, &json!({ "metadata": { "annotations": { "test/terminate": "4" } } })).await?;
    client.delete(&path, None).await?;
    wait::until(wait::SHORT, "the endpoint to be terminating and serving", || async {
        let slices = client.list(objects::DNS_SLICES).await?;
        let endpoints = slices[0]["endpoints"].as_array().context("no endpoints")?;
        let leaving = endpoints.iter().find(|endpoint| endpoint["targetRef"]["name"] == pod);
        let conditions = leaving.map(|endpoint| endpoint["conditions"].clone()).unwrap_or_default();
        if conditions == json!({ "ready": false, "serving": true, "terminating": true }) {
            Ok(Some(()))
        } else {
            bail!("{conditions}")
        }
    })
    .await?;
    wait::until(wait::CONTROLLERS, "two ready endpoints without that pod", || async {
        let gone = client.find(&path).await?.is_none();
        Ok((gone && objects::ready_dns_nodes(&client).await?.len() == 2).then_some(()))
    })
    .await
}

async fn autoscaler(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(1).await?;
    let scaling = async |status: &str, reason: &str, text: &str| {
        wait::until(wait::CONTROLLERS, format!("ScalingActive={status} {reason}"), || async {
            let object = client.get(objects::COREDNS_HPA).await?;
            let now = condition(&object, "ScalingActive").unwrap_or(&Value::Null);
            let right = now["status"] == status
                && now["reason"] == reason
                && now["message"].as_str().is_some_and(|m| m.contains(text));
            if right { Ok(Some(())) } else { bail!("{now}") }
        })
        .await
    };
    scaling("True", "ValidMetricFound", "was able to successfully calculate a replica count").await?;
    cluster.metrics.set(false);
    scaling("False", "FailedGetResourceMetric", "no metrics returned from resource metrics API").await?;
    cluster.metrics.set(true);
    scaling("True", "ValidMetricFound", "").await
}

async fn etcd_voters(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(1).await?;
    let path = "/api/v1/nodes/worker2";
    let beat = async || {
        Ok::<_, anyhow::Error>(condition(&client.get(path).await?, "EtcdIsVoter").cloned().unwrap_or_default())
    };
    let first = beat().await?;
    ensure!(first["status"] == "True" && first["reason"] == "MemberNotLearner", "{first}");
    wait::until(wait::SHORT, "a newer heartbeat", || async {
        Ok((beat().await?["lastHeartbeatTime"] != first["lastHeartbeatTime"]).then_some(()))
    })
    .await?;
    cluster.voters.set(2, Voter::Learner);
    wait::until(wait::SHORT, "EtcdIsVoter=False", || async { Ok((beat().await?["status"] == "False").then_some(())) })
        .await?;
    cluster.voters.set(2, Voter::Member);
    wait::until(wait::SHORT, "EtcdIsVoter=True", || async { Ok((beat().await?["status"] == "True").then_some(())) })
        .await
}

async fn longhorn(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(3).await?;
    let list =
        async |plural: &str| client.list(&format!("/apis/longhorn.io/v1beta2/namespaces/{NAMESPACE}/{plural}")).await;
    ensure!(list("nodes").await?.iter().filter(|node| is_true(node, "Ready")).count() == NODES, "Longhorn nodes");
    ensure!(
        list("instancemanagers").await?.iter().all(|manager| manager["status"]["currentState"] == "running"),
        "instance managers"
    );
    ensure!(list("replicas").await?.len() == NODES * VOLUMES.len(), "replicas");
    let settings = list("settings").await?;
    let policy = settings
        .iter()
        .find(|setting| setting["metadata"]["name"] == "node-drain-policy")
        .context("no drain policy")?;
    ensure!(policy["value"] == "block-if-contains-last-replica", "{policy}");
    let robustness = async |name: &str| {
        let volumes = list("volumes").await?;
        let volume = volumes.into_iter().find(|volume| volume["metadata"]["name"] == name).context("no such volume")?;
        Ok::<_, anyhow::Error>(
            format!("{} {}", volume["status"]["state"], volume["status"]["robustness"]).replace('"', ""),
        )
    };
    ensure!(robustness("pvc-media").await? == "attached healthy", "{}", robustness("pvc-media").await?);
    ensure!(robustness("pvc-archive").await? == "detached unknown", "{}", robustness("pvc-archive").await?);
    cluster.set_volume("pvc-media", Volume::Rebuilding(3)).await?;
    ensure!(robustness("pvc-media").await? == "attached degraded", "rebuilding: {}", robustness("pvc-media").await?);
    let engines = list("engines").await?;
    let engine = engines.iter().find(|engine| engine["spec"]["volumeName"] == "pvc-media").context("no engine")?;
    ensure!(engine["status"]["replicaModeMap"]["pvc-media-r-3"] == "WO", "{engine}");
    cluster.set_volume("pvc-media", Volume::Waiting(2)).await?;
    let replicas = list("replicas").await?;
    let failed: Vec<_> = replicas.iter().filter(|replica| replica["spec"]["failedAt"] != "").collect();
    ensure!(failed.len() == 1 && failed[0]["spec"]["nodeID"] == "worker2", "{failed:?}");
    cluster.set_volume("pvc-media", Volume::SingleReplica(1)).await?;
    ensure!(list("replicas").await?.len() == NODES * 2 + 1, "replicas of a single-replica volume");
    cluster.set_volume("pvc-media", Volume::Healthy).await?;
    ensure!(robustness("pvc-media").await? == "attached healthy", "again: {}", robustness("pvc-media").await?);
    Ok(())
}

/// What tells "not installed" from "could not be read".
async fn missing_kinds(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(1).await?;
    let get = |path| client.call(http::Method::GET, path, &[], None);
    let absent = get("/apis/postgresql.cnpg.io/v1/clusters").await?;
    ensure!(
        absent.status == 404
            && absent.content_type().starts_with("text/plain")
            && absent.body.trim() == "404 page not found",
        "{absent:?}"
    );
    let empty = get("/apis/longhorn.io/v1beta2/namespaces/nowhere/volumes").await?;
    ensure!(empty.status == 200 && empty.json()?["items"] == json!([]), "{empty:?}");
    // Without rights a missing kind looks just like an existing one.
    let nobody = crate::harness::client::Client::new(&cluster.kubeconfig_of("nobody"), "case").await?;
    let refused = nobody.call(http::Method::GET, "/apis/postgresql.cnpg.io/v1/clusters", &[], None).await?;
    ensure!(refused.status == 403, "{refused:?}");
    let steps = json!([{ "op": "test", "path": "/spec/unschedulable", "value": true }]);
    let lost = client.try_patch(Patch::Json, "/api/v1/nodes/worker1", &steps).await?;
    ensure!(lost.status == 422 && lost.json()?["reason"] == "Invalid", "{lost:?}");
    Ok(())
}

async fn budget(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(1).await?;
    cluster.namespace("case-budget").await?;
    cluster.deployment("case-budget", "web", 2, &json!({})).await?;
    let budgets = "/apis/policy/v1/namespaces/case-budget/poddisruptionbudgets";
    let spec = json!({ "minAvailable": 2, "selector": { "matchLabels": { "app": "web" } } });
    client.create(budgets, &json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "web" }, "spec": spec })).await?;
    wait::until(wait::CONTROLLERS, "the budget to count its pods", || async {
        Ok((client.get(&format!("{budgets}/web")).await?["status"]["currentHealthy"] == 2).then_some(()))
    })
    .await?;
    let pods = client.list("/api/v1/namespaces/case-budget/pods").await?;
    let pod = pods[0]["metadata"]["name"].as_str().context("no pod")?;
    let refused = client.evict("case-budget", pod).await?;
    let body = refused.json()?;
    ensure!(refused.status == 429 && body["details"]["causes"][0]["reason"] == "DisruptionBudget", "{refused:?}");
    ensure!(body["details"]["retryAfterSeconds"].is_null(), "{body}");
    client.merge(&format!("{budgets}/web"), &json!({ "spec": { "minAvailable": 1 } })).await?;
    wait::until(wait::CONTROLLERS, "the eviction to be allowed", || async {
        let answer = client.evict("case-budget", pod).await?;
        if answer.status == 201 { Ok(Some(())) } else { bail!("{}", answer.message()) }
    })
    .await?;
    wait::until(wait::SHORT, "the pod to go", || async {
        Ok(client.find(&format!("/api/v1/namespaces/case-budget/pods/{pod}")).await?.is_none().then_some(()))
    })
    .await
}

async fn audit_log(cluster: Arc<Cluster>) -> Result<()> {
    let mark = cluster.audit_mark();
    let path = "/api/v1/nodes/worker2";
    // At different servers: the log is one all the same.
    cluster.admin(2, "case-cordon/1").await?.merge(path, &json!({ "spec": { "unschedulable": true } })).await?;
    cluster.admin(3, "case-uncordon/1").await?.strategic(path, &json!({ "spec": { "unschedulable": null } })).await?;
    cluster
        .admin(1, "case-label/1")
        .await?
        .merge(path, &json!({ "metadata": { "annotations": { "test/x": "y" } } }))
        .await?;
    let log = cluster.audit_since(&mark)?;
    let cordons = log.cordons("worker2");
    ensure!(cordons.len() == 1 && cordons[0].server == 2 && cordons[0].user == "admin", "{cordons:?}");
    ensure!(cordons[0].user_agent == "case-cordon/1", "{cordons:?}");
    let uncordons = log.uncordons("worker2");
    ensure!(uncordons.len() == 1 && uncordons[0].server == 3 && uncordons[0].time > cordons[0].time, "{uncordons:?}");
    ensure!(log.by("case-label").writes().len() == 1 && log.by("admin").writes().len() == 3, "{log:?}");
    // The doubles write all the time and are not in it.
    ensure!(log.0.iter().all(|entry| !entry.user.starts_with("system:node:") && entry.user != "harness"), "{log:?}");
    Ok(())
}

// Server 3 in both: no controller hangs on it, so that nobody waits for a lease afterwards.
async fn stopped_server(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(1).await?;
    let stopping = cluster.clone();
    let stop = tokio::spawn(async move { stopping.stop_apiserver(3, Stop::Term).await });
    wait::until(wait::SHORT, "server 3 to leave the EndpointSlice", || async {
        let listed = listed_servers(&client).await?;
        Ok((listed.len() == NODES - 1 && !listed.contains(&"10.77.0.3".to_string())).then_some(()))
    })
    .await?;
    stop.await??;
    cluster.start_apiserver(3)?;
    cluster.wait_servers().await
}

/// A frozen server answers nothing, and its node lives on through the others.
async fn frozen_server(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(1).await?;
    cluster.freeze_apiserver(3);
    let frozen = cluster.client(3).await?.with_limit(Duration::from_secs(2));
    ensure!(frozen.get("/readyz").await.is_err(), "a frozen server answered");
    // Nothing shall happen, and a node that is silent is declared dead after 16 s.
    wait::holds(Duration::from_secs(18), || async {
        let node = client.get("/api/v1/nodes/worker3").await?;
        ensure!(is_true(&node, "Ready"), "worker3 was declared dead: {node}");
        Ok(())
    })
    .await?;
    cluster.thaw_apiserver(3);
    cluster.wait_servers().await
}

async fn program_in_hub(cluster: Arc<Cluster>) -> Result<()> {
    let mut command = std::process::Command::new(cluster.kubectl());
    command.args(["get", "nodes", "-o", "name"]).env("KUBECONFIG", cluster.kubeconfig_path());
    let output = cluster.run_in_hub(command, wait::SHORT).await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success() && text == "node/worker1\nnode/worker2\nnode/worker3\n", "{output:?}");
    ensure!(cluster.maint_binary()?.is_file(), "no `maint` program");
    // A service account's token works at every server, with the rights that it has: none.
    let file = cluster.kubeconfig_for("default", "default").await?;
    let mut command = std::process::Command::new(cluster.kubectl());
    command.args(["--context=server-2", "get", "nodes"]).env("KUBECONFIG", file);
    let output = cluster.run_in_hub(command, wait::SHORT).await?;
    ensure!(String::from_utf8_lossy(&output.stderr).contains("system:serviceaccount:default:default"), "{output:?}");
    Ok(())
}
