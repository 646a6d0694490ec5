//! Plays the metrics server: a CRD in its place, and objects for the DNS pods that are kept fresh.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::client::Client;
use super::now;

const PODS: &str = "/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Dkube-dns";
/// Where the objects are.
pub const PODS_PATH: &str = "/apis/metrics.k8s.io/v1beta1/namespaces/kube-system/pods";

/// The CRD that answers where an aggregated API would.
pub fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "pods.metrics.k8s.io", "annotations": { "api-approved.kubernetes.io": "unapproved, test stand-in" } },
        "spec": {
            "group": "metrics.k8s.io", "scope": "Namespaced",
            "names": { "plural": "pods", "singular": "pod", "kind": "PodMetrics", "listKind": "PodMetricsList" },
            "versions": [{ "name": "v1beta1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
        },
    })
}

/// The writer and its switch.
#[derive(Clone, Default)]
pub struct Metrics {
    off: Arc<AtomicBool>,
}

impl Metrics {
    /// Off: the objects go away, as when the metrics server has nothing to say.
    pub fn set(&self, on: bool) {
        self.off.store(!on, Ordering::Relaxed);
    }

    /// Writes every 2 s for as long as the cluster lives.
    pub async fn run(self, clients: Vec<Client>) {
        loop {
            for client in &clients {
                if self.round(client).await.is_ok() {
                    break;
                }
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    }

    async fn round(&self, client: &Client) -> Result<()> {
        let pods = if self.off.load(Ordering::Relaxed) { Vec::new() } else { client.list(PODS).await? };
        let names: Vec<_> = pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str()).collect();
        for old in client.list(PODS_PATH).await? {
            let name = old["metadata"]["name"].as_str().unwrap_or("");
            if !names.contains(&name) {
                client.delete(&format!("{PODS_PATH}/{name}"), None).await?;
            }
        }
        for pod in &pods {
            let name = pod["metadata"]["name"].as_str().unwrap_or("");
            // The autoscaler drops a sample that is not older than readiness plus this window, so it is short.
            let mut object = json!({
                "apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics",
                "metadata": { "name": name, "namespace": "kube-system", "labels": pod["metadata"]["labels"] },
                "timestamp": now(), "window": "1s",
                "containers": [{ "name": "coredns", "usage": { "cpu": "50m", "memory": "20Mi" } }],
            });
            let path = format!("{PODS_PATH}/{name}");
            if client.find(&path).await?.is_none() {
                client.create(PODS_PATH, &object).await?;
            } else {
                object["metadata"] = json!({});
                client.merge(&path, &object).await?;
            }
        }
        Ok(())
    }
}
