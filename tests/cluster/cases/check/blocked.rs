//! Exit 3: one thing is broken, and maint names it.

use std::future::Future;
use std::pin::Pin;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::super::{Case, case};
use super::{Wanted, check, row_done};
use crate::harness::control_plane::Stop;
use crate::harness::etcd_voter::Voter;
use crate::harness::longhorn::Volume;
use crate::harness::net::NODES;
use crate::harness::objects::{self, condition};
use crate::harness::proxy::Tunnel;
use crate::harness::{Cluster, node_name, wait};

type Broken = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// One thing that breaks, and exactly what stops then. All ask for worker2.
struct Row {
    name: &'static str,
    spoil: fn(Arc<Cluster>) -> Broken,
    wanted: &'static [Wanted],
}

/// Gate, reason, object, field, value.
const fn says(
    gate: &'static str,
    reason: &'static str,
    object: &'static str,
    field: &'static str,
    value: &'static str,
) -> Wanted {
    Wanted { gate, reason, object, field, value }
}

const DNS: &str = "Service kube-system/kube-dns";
const AUTOSCALER: &str = "HorizontalPodAutoscaler kube-system/coredns";
const SCALING: &str = "status.conditions[ScalingActive]";
const READY: &str = "status.conditions[Ready]";
const HOME: &str = "Volume longhorn-system/pvc-home";
const THROUGH_3: &str = "kubelet through API server worker3";
const NO_TUNNEL: &str = "broken: no tunnel from this API server to the node, or its kubelet is down (HTTP 500...";

const HOLD: &str = r#"maint.dev/hold={"by":"anna","since":"2026-01-01T00:00:00Z","reason":"a disk is on its way"}"#;

const ROWS: &[Row] = &[
    Row {
        name: "check::coredns_at_one_replica",
        spoil: |cluster| Box::pin(one_replica(cluster)),
        wanted: &[
            says("coredns-replicas", "CoreDNSReplicasInsufficient", DNS, "ready endpoints", "1"),
            says("coredns-spread", "CoreDNSReplicasColocated", DNS, "Ready nodes with an endpoint", "1"),
        ],
    },
    Row {
        name: "check::coredns_on_one_node",
        spoil: |cluster| Box::pin(one_node(cluster)),
        wanted: &[says("coredns-spread", "CoreDNSReplicasColocated", DNS, "Ready nodes with an endpoint", "1")],
    },
    Row {
        name: "check::scaling_inactive",
        spoil: |cluster| Box::pin(scaling_inactive(cluster)),
        wanted: &[says("coredns-hpa", "HPAScalingInactive", AUTOSCALER, SCALING, "False (FailedGetResourceMetric)")],
    },
    Row {
        name: "check::volume_rebuilding",
        spoil: |cluster| Box::pin(volume(cluster, "pvc-home", Volume::Rebuilding(3))),
        wanted: &[says("longhorn-volumes", "LonghornVolumeRebuilding", HOME, "rebuild of pvc-home-r-3", "WO")],
    },
    Row {
        name: "check::volume_waits_for_replenishment",
        spoil: |cluster| Box::pin(volume(cluster, "pvc-home", Volume::Waiting(3))),
        wanted: &[says("longhorn-volumes", "LonghornVolumeDegraded", HOME, "status.robustness", "degraded")],
    },
    Row {
        name: "check::last_healthy_copy_on_target",
        spoil: |cluster| Box::pin(volume(cluster, "pvc-media", Volume::SingleReplica(2))),
        wanted: &[says(
            "longhorn-volumes",
            "LonghornLastReplicaOnTarget",
            "Volume longhorn-system/pvc-media",
            "healthy copies outside worker2",
            "0",
        )],
    },
    Row {
        name: "check::volume_faulted",
        spoil: |cluster| Box::pin(volume(cluster, "pvc-home", Volume::Faulted)),
        wanted: &[says("longhorn-volumes", "LonghornVolumeFaulted", HOME, "status.robustness", "faulted")],
    },
    Row {
        name: "check::other_node_not_ready",
        spoil: |cluster| Box::pin(not_ready(cluster)),
        wanted: &[
            says("exclusive", "TooManyUnavailable", "Node worker3", READY, "NotReady"),
            says("nodes-ready", "NodeNotReady", "Node worker3", READY, "Unknown (NodeStatusUnknown)"),
            says("longhorn-volumes", "LonghornVolumeDegraded", HOME, "healthy copies", "2"),
            says("control-plane", "EtcdQuorumAtRisk", "etcd", "healthy voters without the target", "1"),
            says("kubelet-reachability", "KubeletUnreachable", "Node worker3", THROUGH_3, NO_TUNNEL),
        ],
    },
    Row {
        name: "check::other_node_cordoned",
        spoil: |cluster| Box::pin(kubectl(cluster, &["cordon", "worker3"])),
        wanted: &[says("exclusive", "TooManyUnavailable", "Node worker3", "spec.unschedulable", "cordoned by kubectl")],
    },
    Row {
        name: "check::target_cordoned",
        spoil: |cluster| Box::pin(kubectl(cluster, &["cordon", "worker2"])),
        wanted: &[says(
            "target",
            "TargetCordonedByOther",
            "Node worker2",
            "spec.unschedulable",
            "true, set by kubectl",
        )],
    },
    Row {
        name: "check::api_server_killed",
        spoil: |cluster| Box::pin(async move { cluster.stop_apiserver(3, Stop::Kill).await }),
        wanted: &[
            says("control-plane", "APIServerNotReady", "API server worker3", "/readyz", "not reachable: ..."),
            says("kubelet-reachability", "APIServerUnreachable", "Node worker1", THROUGH_3, "server-down: ..."),
        ],
    },
    Row {
        name: "check::api_server_frozen",
        spoil: |cluster| {
            cluster.freeze_apiserver(3);
            Box::pin(async { Ok(()) })
        },
        wanted: &[
            says("control-plane", "APIServerNotReady", "API server worker3", "/readyz", "not reachable: ..."),
            says("kubelet-reachability", "APIServerUnreachable", "Node worker1", THROUGH_3, "server-down: ..."),
        ],
    },
    Row {
        name: "check::etcd_learner",
        spoil: |cluster| Box::pin(learner(cluster)),
        wanted: &[says(
            "control-plane",
            "EtcdMemberNotVoter",
            "Node worker3",
            "status.conditions[EtcdIsVoter]",
            "False (MemberIsLearner)",
        )],
    },
    Row {
        name: "check::tunnel_cut",
        spoil: |cluster| Box::pin(async move { cluster.cut(3, "worker1", Tunnel::Cut) }),
        wanted: &[says("kubelet-reachability", "KubeletUnreachable", "Node worker1", THROUGH_3, NO_TUNNEL)],
    },
    Row {
        name: "check::tunnel_cut_keeping_live_connections",
        spoil: |cluster| Box::pin(cut_keeping_live(cluster)),
        wanted: &[says("kubelet-reachability", "KubeletUnreachable", "Node worker1", THROUGH_3, NO_TUNNEL)],
    },
    Row {
        name: "check::tunnel_hangs",
        spoil: |cluster| Box::pin(async move { cluster.cut(3, "worker1", Tunnel::Hang) }),
        wanted: &[says(
            "kubelet-reachability",
            "KubeletUnreachable",
            "Node worker1",
            THROUGH_3,
            "broken: no answer within 12 s, while the API server itself is ready",
        )],
    },
    Row {
        name: "check::kubelet_unhealthy",
        spoil: |cluster| Box::pin(async move { cluster.set_kubelet_healthy("worker1", false) }),
        wanted: &[says("kubelet-reachability", "KubeletUnhealthy", "Node worker1", THROUGH_3, "unhealthy: ...")],
    },
    Row {
        name: "check::budget_that_never_allows",
        spoil: |cluster| Box::pin(stubborn_budget(cluster)),
        wanted: &[says(
            "disruption-budgets",
            "DisruptionBudgetPermanent",
            "PodDisruptionBudget case-check/shop",
            "status.disruptionsAllowed",
            "0",
        )],
    },
    Row {
        name: "check::pod_that_nothing_brings_back",
        spoil: |cluster| Box::pin(lone_pod(cluster)),
        wanted: &[says(
            "workloads",
            "PodWithoutController",
            "Pod case-check/alone",
            "metadata.ownerReferences",
            "none",
        )],
    },
    Row {
        name: "check::target_on_hold",
        spoil: |cluster| Box::pin(kubectl(cluster, &["annotate", "node", "worker2", HOLD])),
        wanted: &[says(
            "control",
            "NodeOnHold",
            "Node worker2",
            "metadata.annotations[maint.dev/hold]",
            "held by anna",
        )],
    },
];

pub fn cases() -> Vec<Case> {
    ROWS.iter().map(|row| case(row.name, |cluster| blocked(cluster, row))).collect()
}

async fn blocked(cluster: Arc<Cluster>, row: &'static Row) -> Result<()> {
    (row.spoil)(cluster.clone()).await.context("cannot break it")?;
    let answer = check(&cluster, &cluster.kubeconfig_path(), &["worker2"]).await?;
    answer.expect(3, "block", "unknown", row.wanted)?;
    if cluster.tunnel(3, 1) == Tunnel::CutKeepingLive {
        // Still the lie, after all that was asked.
        expect_plain_ok(&cluster).await?;
    }
    row_done();
    Ok(())
}

async fn volume(cluster: Arc<Cluster>, name: &'static str, state: Volume) -> Result<()> {
    cluster.set_volume(name, state).await
}

/// The real kubectl, as a person uses it.
async fn kubectl(cluster: Arc<Cluster>, arguments: &'static [&'static str]) -> Result<()> {
    let mut command = Command::new(cluster.kubectl());
    command.args(arguments).env("KUBECONFIG", cluster.kubeconfig_path());
    let output = cluster.run_in_hub(command, wait::SHORT).await?;
    ensure!(output.status.success(), "{output:?}");
    Ok(())
}

/// Without the autoscaler, which would bring the second one back.
async fn one_replica(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(1).await?;
    client.delete(objects::COREDNS_HPA, None).await?;
    client.merge(objects::COREDNS, &json!({ "spec": { "replicas": 1 } })).await?;
    wait_for_dns(&cluster, |nodes| nodes.len() == 1).await
}

/// Both pods on worker1, which stays: only the spread is wrong.
async fn one_node(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(1).await?;
    let pod = json!({ "topologySpreadConstraints": null, "nodeSelector": { "kubernetes.io/hostname": "worker1" } });
    client.merge(objects::COREDNS, &json!({ "spec": { "template": { "spec": pod } } })).await?;
    wait_for_dns(&cluster, |nodes| nodes == ["worker1", "worker1"]).await
}

/// Waits for the places of the ready DNS endpoints, and for the end of the rollout that leads there.
async fn wait_for_dns(cluster: &Cluster, wanted: impl Fn(&[String]) -> bool) -> Result<()> {
    let client = cluster.client(1).await?;
    wait::until(wait::CONTROLLERS, "the DNS endpoints to be where they are wanted", || async {
        let nodes = objects::ready_dns_nodes(&client).await?;
        let dns = client.get(objects::COREDNS).await?;
        let status = &dns["status"];
        let seen = status["observedGeneration"] == dns["metadata"]["generation"];
        let over = ["replicas", "updatedReplicas", "availableReplicas"]
            .iter()
            .all(|count| status[*count] == dns["spec"]["replicas"]);
        if seen && over && wanted(&nodes) { Ok(Some(())) } else { bail!("{nodes:?}, {status}") }
    })
    .await
}

async fn scaling_inactive(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(1).await?;
    cluster.metrics.set(false);
    wait::until(wait::CONTROLLERS, "ScalingActive=False", || async {
        let autoscaler = client.get(objects::COREDNS_HPA).await?;
        Ok(condition(&autoscaler, "ScalingActive").is_some_and(|active| active["status"] == "False").then_some(()))
    })
    .await
}

/// worker3 goes while its API server stays. DNS is moved away first: it would be a second fault.
async fn not_ready(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(1).await?;
    client.merge("/api/v1/nodes/worker3", &json!({ "spec": { "unschedulable": true } })).await?;
    for pod in client.list("/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Dkube-dns").await? {
        if pod["spec"]["nodeName"] == "worker3" {
            let name = pod["metadata"]["name"].as_str().unwrap_or("");
            client.delete(&format!("/api/v1/namespaces/kube-system/pods/{name}"), None).await?;
        }
    }
    wait_for_dns(&cluster, |nodes| nodes == ["worker1", "worker2"]).await?;
    client.merge("/api/v1/nodes/worker3", &json!({ "spec": { "unschedulable": null } })).await?;
    cluster.servers_follow(false);
    cluster.power_off("worker3").await?;
    wait::until(wait::NODE_STATE, "worker3 to be unknown", || async {
        let node = client.get("/api/v1/nodes/worker3").await?;
        Ok(condition(&node, "Ready").is_some_and(|ready| ready["status"] == "Unknown").then_some(()))
    })
    .await
}

/// It wants all pods of its Deployment, some of them on each node.
async fn stubborn_budget(cluster: Arc<Cluster>) -> Result<()> {
    cluster.namespace("case-check").await?;
    cluster.deployment("case-check", "shop", 6, &json!({})).await?;
    let client = cluster.client(1).await?;
    let budget = json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "shop" },
        "spec": { "minAvailable": 6, "selector": { "matchLabels": { "app": "shop" } } } });
    let budgets = "/apis/policy/v1/namespaces/case-check/poddisruptionbudgets";
    client.create(budgets, &budget).await?;
    wait::until(wait::CONTROLLERS, "the budget to count its pods", || async {
        let status = client.get(&format!("{budgets}/shop")).await?["status"].clone();
        Ok((status["currentHealthy"] == 6 && status["disruptionsAllowed"] == 0).then_some(()))
    })
    .await
}

async fn lone_pod(cluster: Arc<Cluster>) -> Result<()> {
    cluster.namespace("case-check").await?;
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "alone" },
        "spec": { "nodeName": "worker2", "containers": [{ "name": "main", "image": "test" }] } });
    cluster.client(1).await?.create("/api/v1/namespaces/case-check/pods", &pod).await.map(drop)
}

async fn learner(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(1).await?;
    cluster.voters.set(3, Voter::Learner);
    wait::until(wait::SHORT, "EtcdIsVoter=False", || async {
        let node = client.get("/api/v1/nodes/worker3").await?;
        Ok(condition(&node, "EtcdIsVoter").is_some_and(|voter| voter["status"] == "False").then_some(()))
    })
    .await
}

/// The connection that API server 3 keeps to worker1 lives on, and every new one fails.
async fn cut_keeping_live(cluster: Arc<Cluster>) -> Result<()> {
    expect_plain_ok(&cluster).await?;
    cluster.cut(3, "worker1", Tunnel::CutKeepingLive)?;
    expect_plain_ok(&cluster).await?;
    // And only this one.
    for node in (2..=NODES).map(node_name) {
        ensure!(cluster.client(3).await?.plain_healthz(&node).await?.status == 200, "{node}");
    }
    Ok(())
}

async fn expect_plain_ok(cluster: &Cluster) -> Result<()> {
    let plain = cluster.client(3).await?.plain_healthz("worker1").await?;
    ensure!(plain.status == 200 && plain.body == "ok", "the kept connection should lie: {plain:?}");
    Ok(())
}
