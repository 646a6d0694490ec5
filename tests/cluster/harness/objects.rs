//! The objects of a small k3s cluster: node labels, CoreDNS with its Service and autoscaler, namespaces.

use anyhow::Result;
use serde_json::{Value, json};

use super::client::Client;
use super::net::NODES;
use super::{metrics, node_name, wait};

/// A pod in here makes its node reboot (see `kubelet/pods.rs`).
pub const ACTIONS_NAMESPACE: &str = "maint-actions";
/// Namespaces with this label are emptied and deleted between cases.
pub const CASE_LABEL: &str = "test/case";

pub const COREDNS: &str = "/apis/apps/v1/namespaces/kube-system/deployments/coredns";
pub const COREDNS_HPA: &str = "/apis/autoscaling/v2/namespaces/kube-system/horizontalpodautoscalers/coredns";
pub const DNS_SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dkube-dns";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Labels that a kubelet may not give itself, and a pod network as k3s hands it out.
pub async fn label_nodes(client: &Client) -> Result<()> {
    for i in 1..=NODES {
        let path = format!("/api/v1/nodes/{}", node_name(i));
        let labels = json!({
            "node-role.kubernetes.io/control-plane": "true", "node-role.kubernetes.io/etcd": "true",
            "node.kubernetes.io/instance-type": "k3s",
        });
        let range = format!("10.42.{i}.0/24");
        let body = json!({ "metadata": { "labels": labels }, "spec": { "podCIDR": range, "podCIDRs": [range] } });
        wait::until(wait::SHORT, format!("node {} to be labelled", node_name(i)), || async {
            client.strategic(&path, &body).await.map(Some)
        })
        .await?;
    }
    Ok(())
}

/// CoreDNS as a small cluster has it, and everything it needs.
pub async fn create(client: &Client) -> Result<()> {
    create_crd(client, &metrics::crd()).await?;
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": ACTIONS_NAMESPACE } });
    client.ensure("/api/v1/namespaces", &namespace).await?;
    // Pods wait for it, and its controller is only just starting.
    let account = "/api/v1/namespaces/kube-system/serviceaccounts/default";
    wait::until(wait::CONTROLLERS, "service account kube-system/default", || async { client.find(account).await })
        .await?;
    client.ensure("/apis/apps/v1/namespaces/kube-system/deployments", &coredns()).await?;
    client.ensure("/api/v1/namespaces/kube-system/services", &dns_service()).await?;
    client.ensure("/apis/autoscaling/v2/namespaces/kube-system/horizontalpodautoscalers", &autoscaler()).await
}

/// Creates a CRD and waits until its resource can be listed.
pub async fn create_crd(client: &Client, crd: &Value) -> Result<()> {
    client.ensure(CRDS, crd).await?;
    let spec = &crd["spec"];
    let text = |value: &Value| value.as_str().unwrap_or("").to_string();
    let path = format!(
        "/apis/{}/{}/{}",
        text(&spec["group"]),
        text(&spec["versions"][0]["name"]),
        text(&spec["names"]["plural"])
    );
    // 404, then 429 while its storage starts, then 200.
    wait::until(wait::CONTROLLERS, format!("{path} to be served"), || async { client.get(&path).await.map(Some) })
        .await?;
    Ok(())
}

fn coredns() -> Value {
    let labels = json!({ "k8s-app": "kube-dns" });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "coredns", "namespace": "kube-system", "labels": labels },
        "spec": {
            "replicas": 2, "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "topologySpreadConstraints": [{ "maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": { "matchLabels": labels } }],
                    "containers": [{ "name": "coredns", "image": "coredns:test",
                        "resources": { "requests": { "cpu": "100m", "memory": "70Mi" } } }],
                },
            },
        },
    })
}

/// A merge patch that undoes what cases do to CoreDNS' Deployment; it changes nothing where nothing was done.
pub fn coredns_as_it_was() -> Value {
    let constraints = coredns()["spec"]["template"]["spec"]["topologySpreadConstraints"].take();
    let pod = json!({ "topologySpreadConstraints": constraints, "nodeSelector": null });
    json!({ "spec": { "replicas": 2, "template": { "spec": pod } } })
}

fn dns_service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "kube-dns", "namespace": "kube-system", "labels": { "k8s-app": "kube-dns" } },
        "spec": {
            "clusterIP": "10.96.0.10", "selector": { "k8s-app": "kube-dns" },
            "ports": [
                { "name": "dns", "port": 53, "protocol": "UDP" }, { "name": "dns-tcp", "port": 53, "protocol": "TCP" },
                { "name": "metrics", "port": 9153, "protocol": "TCP" },
            ],
        },
    })
}

fn autoscaler() -> Value {
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": { "name": "coredns", "namespace": "kube-system" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "coredns" }, "minReplicas": 2, "maxReplicas": 5,
            "metrics": [{ "type": "Resource", "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 70 } } }],
        },
    })
}

/// The nodes of the DNS endpoints that are ready and stay.
pub async fn ready_dns_nodes(client: &Client) -> Result<Vec<String>> {
    let slices = client.list(DNS_SLICES).await?;
    // A slice without endpoints says null, not [].
    let endpoints = slices.iter().flat_map(|slice| slice["endpoints"].as_array().cloned().unwrap_or_default());
    let good = endpoints
        .filter(|endpoint| endpoint["conditions"]["ready"] != false && endpoint["conditions"]["terminating"] != true);
    let mut nodes: Vec<_> = good.filter_map(|endpoint| Some(endpoint["nodeName"].as_str()?.to_string())).collect();
    nodes.sort();
    Ok(nodes)
}

/// A condition of an object, by type.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// Whether a condition is True.
pub fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == "True")
}

/// The keys of a node's taints with their effects, as `key:Effect`.
pub fn taints(node: &Value) -> Vec<String> {
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    taints
        .iter()
        .map(|taint| format!("{}:{}", taint["key"].as_str().unwrap_or(""), taint["effect"].as_str().unwrap_or("")))
        .collect()
}
