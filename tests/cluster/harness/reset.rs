//! Puts the cluster back to healthy between cases, and waits until it is.

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::client::Client;
use super::etcd_voter::Voter;
use super::net::NODES;
use super::objects::{self, CASE_LABEL};
use super::proxy::Tunnel;
use super::{Cluster, admission, node_name, wait};

/// Everything of maint's own that a case may have left in here is deleted.
const MAINT_GROUP: &str = "/apis/maint.dev/v1alpha1";

impl Cluster {
    /// Switches everything on, undoes what cases do to objects, and waits for the result.
    pub async fn reset(&self) -> Result<()> {
        for i in 1..=NODES {
            for node in 1..=NODES {
                self.plane.proxy(i).set(node, Tunnel::Pass);
            }
            self.voters.set(i, Voter::Member);
            self.kubelets[i - 1].set_healthy(true);
            self.plane.freeze_server(i, false);
            self.plane.start_server(i)?;
            self.kubelets[i - 1].up(false);
        }
        self.metrics.set(true);
        self.servers_follow(true);
        self.wait_servers().await?;
        let client = self.client(1).await?;
        self.plane.wait_leaders(&client).await?;
        remove_case_objects(&client).await?;
        objects::create(&client).await?;
        client.merge(objects::COREDNS, &objects::coredns_as_it_was()).await?;
        self.longhorn.reset(&client).await?;
        for i in 1..=NODES {
            clean_node(&client, i).await?;
        }
        self.wait_healthy(&client).await
    }

    async fn wait_healthy(&self, client: &Client) -> Result<()> {
        for i in 1..=NODES {
            self.wait_node_back(&node_name(i), Some(&self.kubelets[i - 1].boot_id())).await?;
        }
        wait::until(wait::CONTROLLERS, "two ready DNS endpoints on two nodes", || async {
            let mut nodes = objects::ready_dns_nodes(client).await?;
            let count = nodes.len();
            nodes.dedup();
            if count == 2 && nodes.len() == 2 { Ok(Some(())) } else { bail!("{count} endpoints on {nodes:?}") }
        })
        .await?;
        wait::until(wait::CONTROLLERS, "the DNS rollout to be over", || async {
            let dns = client.get(objects::COREDNS).await?;
            let status = &dns["status"];
            let seen = status["observedGeneration"] == dns["metadata"]["generation"];
            let all = ["replicas", "updatedReplicas", "availableReplicas"].iter().all(|count| status[*count] == 2);
            if seen && all { Ok(Some(())) } else { bail!("{status}") }
        })
        .await?;
        wait::until(wait::CONTROLLERS, "ScalingActive=True of the autoscaler", || async {
            let autoscaler = client.get(objects::COREDNS_HPA).await?;
            if objects::is_true(&autoscaler, "ScalingActive") {
                return Ok(Some(()));
            }
            bail!("{}", objects::condition(&autoscaler, "ScalingActive").unwrap_or(&Value::Null))
        })
        .await?;
        wait::until(wait::CONTROLLERS, "EtcdIsVoter=True on all nodes", || async {
            let nodes = client.list("/api/v1/nodes").await?;
            Ok(nodes.iter().all(|node| objects::is_true(node, "EtcdIsVoter")).then_some(()))
        })
        .await
    }
}

/// No cordon, no taint but the controller's own, no annotation of maint or of a case.
async fn clean_node(client: &Client, i: usize) -> Result<()> {
    let path = format!("/api/v1/nodes/{}", node_name(i));
    let node = client.get(&path).await?;
    let empty = serde_json::Map::new();
    let names = node["metadata"]["annotations"].as_object().unwrap_or(&empty).keys();
    let ours = names.filter(|name| name.contains("maint.dev/") || name.starts_with("test/") || name.contains("kured"));
    let removed: serde_json::Map<_, _> = ours.map(|name| (name.clone(), Value::Null)).collect();
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let kept: Vec<_> = taints
        .iter()
        .filter(|taint| taint["key"].as_str().is_some_and(|key| key.starts_with("node.kubernetes.io/")))
        .collect();
    if removed.is_empty() && kept.len() == taints.len() && node["spec"]["unschedulable"] != true {
        return Ok(());
    }
    let mut spec = json!({ "unschedulable": null });
    if kept.len() != taints.len() {
        spec["taints"] = json!(kept);
    }
    client.merge(&path, &json!({ "metadata": { "annotations": removed }, "spec": spec })).await.map(drop)
}

/// Budgets first, controllers before their pods, so that nothing comes back.
async fn empty_namespace(client: &Client, name: &str, at_once: &Value) -> Result<()> {
    let pods = format!("/api/v1/namespaces/{name}/pods");
    for pod in client.list(&pods).await? {
        let held = |finalizer: &Value| finalizer.as_str().is_some_and(|finalizer| finalizer.starts_with("test/"));
        if pod["metadata"]["finalizers"].as_array().into_iter().flatten().any(held) {
            let path = format!("{pods}/{}", pod["metadata"]["name"].as_str().unwrap_or(""));
            client.merge(&path, &json!({ "metadata": { "finalizers": null } })).await?;
        }
    }
    for resource in [
        format!("/apis/policy/v1/namespaces/{name}/poddisruptionbudgets"),
        format!("/apis/apps/v1/namespaces/{name}/deployments"),
        format!("/apis/apps/v1/namespaces/{name}/daemonsets"),
        format!("/apis/apps/v1/namespaces/{name}/statefulsets"),
        format!("/apis/batch/v1/namespaces/{name}/jobs"),
        format!("/apis/apps/v1/namespaces/{name}/replicasets"),
        pods,
    ] {
        client.delete(&resource, Some(at_once)).await?;
    }
    Ok(())
}

/// What the manifests of `deploy/` made, but for CRDs and namespaces.
async fn remove_installation(client: &Client, at_once: &Value) -> Result<()> {
    empty_namespace(client, "maint", at_once).await?;
    client.delete("/apis/apps/v1/namespaces/kube-system/daemonsets/kured", Some(at_once)).await?;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let mut kinds: Vec<String> = ["clusterrolebindings", "clusterroles"].map(|kind| format!("{rbac}/{kind}")).to_vec();
    for namespace in ["maint", "maint-actions", "kube-system", "default"] {
        kinds.extend(["rolebindings", "roles"].map(|kind| format!("{rbac}/namespaces/{namespace}/{kind}")));
    }
    for kind in kinds {
        client.delete(&format!("{kind}?labelSelector=app.kubernetes.io%2Fpart-of%3Dmaint"), None).await?;
    }
    Ok(())
}

async fn remove_case_objects(client: &Client) -> Result<()> {
    let at_once = json!({ "gracePeriodSeconds": 0, "propagationPolicy": "Background" });
    let of_cases = format!("labelSelector={}", CASE_LABEL.replace('/', "%2F"));
    // First what could refuse the rest.
    client.delete(&format!("{}?{of_cases}", admission::WEBHOOKS), None).await?;
    for namespace in client.list(&format!("/api/v1/namespaces?{of_cases}")).await? {
        let name = namespace["metadata"]["name"].as_str().unwrap_or("");
        empty_namespace(client, name, &at_once).await?;
        if namespace["metadata"]["deletionTimestamp"].is_null() {
            client.delete(&format!("/api/v1/namespaces/{name}"), None).await?;
        }
    }
    for kind in [
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/maint/rolebindings",
        "/api/v1/namespaces/default/serviceaccounts",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ] {
        client.delete(&format!("{kind}?{of_cases}"), None).await?;
    }
    remove_installation(client, &at_once).await?;
    client.delete(&format!("/api/v1/namespaces/{}/pods", objects::ACTIONS_NAMESPACE), Some(&at_once)).await?;
    // A DNS pod that a case has made unready is replaced.
    for pod in client.list("/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Dkube-dns").await? {
        if !pod["metadata"]["annotations"]["test/ready"].is_null() {
            let name = pod["metadata"]["name"].as_str().unwrap_or("");
            client.delete(&format!("/api/v1/namespaces/kube-system/pods/{name}"), Some(&at_once)).await?;
        }
    }
    super::kured::remove(client).await?;
    // Its leader is gone by now, and the next one begins at term 0.
    client.delete("/apis/coordination.k8s.io/v1/namespaces/maint/leases/maint", None).await?;
    for name in ["maint-control", "maint-state"] {
        client.delete(&format!("/api/v1/namespaces/maint/configmaps/{name}"), None).await?;
    }
    let Some(group) = client.find(MAINT_GROUP).await? else { return Ok(()) };
    for resource in group["resources"].as_array().into_iter().flatten() {
        let name = resource["name"].as_str().unwrap_or("");
        let can_delete =
            resource["verbs"].as_array().is_some_and(|verbs| verbs.iter().any(|verb| verb == "deletecollection"));
        if can_delete && resource["namespaced"] == false {
            let all = format!("{MAINT_GROUP}/{name}");
            // A server that was just started says 429 when it is first asked for such a kind.
            let objects = wait::until(wait::SERVER_READY, &all, || async { client.list(&all).await.map(Some) }).await?;
            // A record in flight has a finalizer, and nobody is left who would take it off.
            for object in objects {
                if !object["metadata"]["finalizers"].is_null() {
                    let path = format!("{MAINT_GROUP}/{name}/{}", object["metadata"]["name"].as_str().unwrap_or(""));
                    client.merge(&path, &json!({ "metadata": { "finalizers": null } })).await?;
                }
            }
            client.delete(&format!("{MAINT_GROUP}/{name}"), None).await?;
        }
    }
    Ok(())
}
