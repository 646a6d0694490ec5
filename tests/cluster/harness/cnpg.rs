//! A database of CloudNativePG: two instances, the budget that keeps the primary, and the operator, which moves the
//! primary when its node is cordoned and with it lets the budget go. The pods are as the operator makes them as far as a
//! drain reads them; nothing is stored.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::client::Client;
use super::objects::{self, CASE_LABEL};
use super::{Cluster, wait};

/// The operator in the audit log.
pub const OPERATOR: &str = "cnpg-double";
/// The label that says which instance is which.
const ROLE: &str = "cnpg.io/instanceRole";

/// A database and its operator.
pub struct Database {
    client: Client,
    namespace: String,
    primary_node: String,
}

impl Database {
    /// `db-1`, the primary, on the first node, `db-2` on the second, and budget `db-primary`. Waits until it allows nothing.
    pub async fn create(cluster: &Cluster, namespace: &str, nodes: [&str; 2]) -> Result<Self> {
        let client = cluster.admin(1, OPERATOR).await?;
        let database = Self { client, namespace: namespace.to_string(), primary_node: nodes[0].to_string() };
        objects::create_crd(&database.client, &crd()).await?;
        let owner = json!({ "apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "metadata": { "name": "db" },
            "spec": { "instances": 2 }, "status": status("db-1", 2) });
        let owner = database.client.create(&database.clusters(), &owner).await?;
        for (index, (node, role)) in nodes.into_iter().zip(["primary", "replica"]).enumerate() {
            let name = format!("db-{}", index + 1);
            database.client.create(&database.pods(), &instance(&name, node, role, &owner)).await?;
        }
        let labels = json!({ "cnpg.io/cluster": "db", ROLE: "primary" });
        let budget = json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": { "name": "db-primary", "labels": { "cnpg.io/cluster": "db" } },
            "spec": { "minAvailable": 1, "selector": { "matchLabels": labels } } });
        let budgets = format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets");
        database.client.create(&budgets, &budget).await?;
        wait::until(wait::CONTROLLERS, "the budget to keep the primary", || async {
            let status = database.client.get(&format!("{budgets}/db-primary")).await?["status"].clone();
            Ok((status["currentHealthy"] == 1 && status["disruptionsAllowed"] == 0).then_some(()))
        })
        .await?;
        Ok(database)
    }

    fn pods(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }

    fn clusters(&self) -> String {
        format!("/apis/postgresql.cnpg.io/v1/namespaces/{}/clusters", self.namespace)
    }

    /// The operator: once the primary's node is cordoned, and when it may, it makes the replica the primary.
    pub fn operator(&self, may: oneshot::Receiver<()>) -> JoinHandle<Result<()>> {
        let (client, pods, clusters) = (self.client.clone(), self.pods(), self.clusters());
        let node = format!("/api/v1/nodes/{}", self.primary_node);
        tokio::spawn(async move {
            wait::until(wait::CONTROLLERS, "the cordon of the primary's node", || async {
                Ok((client.get(&node).await?["spec"]["unschedulable"] == true).then_some(()))
            })
            .await?;
            may.await.context("the operator was never let go on")?;
            for (name, role) in [("db-1", "replica"), ("db-2", "primary")] {
                let labels = json!({ "metadata": { "labels": { ROLE: role } } });
                client.merge(&format!("{pods}/{name}"), &labels).await?;
            }
            // The old primary starts anew as a replica.
            client.merge(&format!("{clusters}/db"), &json!({ "status": status("db-2", 1) })).await?;
            Ok(())
        })
    }
}

/// The status of a cluster of two instances, so many of which are ready.
fn status(primary: &str, ready: u8) -> Value {
    let whole = ready == 2;
    json!({
        "instances": 2, "readyInstances": ready, "currentPrimary": primary, "targetPrimary": primary,
        "phase": if whole { "Cluster in healthy state" } else { "Waiting for the instances to become active" },
        "conditions": [{ "type": "Ready", "status": if whole { "True" } else { "False" }, "reason": "Played",
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }],
    })
}

fn instance(name: &str, node: &str, role: &str, owner: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "labels": { "cnpg.io/cluster": "db", "cnpg.io/instanceName": name, ROLE: role },
            "ownerReferences": [{ "apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "name": "db",
                "uid": owner["metadata"]["uid"], "controller": true }],
        },
        "spec": { "nodeName": node, "containers": [{ "name": "postgres", "image": "test" }] },
    })
}

/// The kind that owns the pods; the next reset deletes it.
fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "clusters.postgresql.cnpg.io", "labels": { CASE_LABEL: "true" } },
        "spec": {
            "group": "postgresql.cnpg.io", "scope": "Namespaced",
            "names": { "plural": "clusters", "singular": "cluster", "kind": "Cluster", "listKind": "ClusterList" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
        },
    })
}
