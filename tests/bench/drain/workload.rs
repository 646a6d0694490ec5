//! The pods of a cell, all on one node: real ReplicaSets and budgets under the real controllers.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::cell::{Cell, Lane};
use crate::harness::client::Client;
use crate::harness::net::NODES;
use crate::harness::wait::{self, Limit};
use crate::harness::{Cluster, node_name, objects};

/// The controller-manager makes some 20 pods a second, its own client's limit.
const PLACED: Limit = Limit::seconds("pods-placed", 180);
/// The label that has the lane's name.
pub const LANE: &str = "lane";
/// Longer than any pod needs.
const GRACE_SECONDS: u32 = 60;

/// The ReplicaSets of a cell on their node.
pub struct Workload {
    pub cell: Cell,
    /// The node that is drained.
    pub node: String,
    client: Client,
}

impl Workload {
    /// Puts the pods of a cell on the node without DNS pods, so that nothing but them must go.
    pub async fn create(cluster: &Cluster, cell: Cell) -> Result<Self> {
        // Server 3: neither side talks to it, nor does the drained node's kubelet.
        let client = cluster.client(3).await?;
        let dns = objects::ready_dns_nodes(&client).await?;
        let node = (1..=NODES).map(node_name).find(|node| !dns.contains(node)).context("DNS pods on each node")?;
        cluster.namespace(&cell.namespace()).await?;
        let workload = Self { cell, node, client };
        workload.only_target_schedulable(true).await?;
        workload.create_agent().await?;
        for lane in cell.lanes() {
            workload.create_lane(&lane).await?;
        }
        Ok(workload)
    }

    /// Puts all pods back on the node, fresh and Ready, with the node and the others schedulable.
    pub async fn place(&self) -> Result<()> {
        self.only_target_schedulable(true).await?;
        if !self.all_on_target(&self.pods().await?) {
            let at_once = json!({ "gracePeriodSeconds": 0 });
            self.client.delete(&format!("{}?labelSelector={LANE}", self.pods_path()), Some(&at_once)).await?;
        }
        wait::until(PLACED, format!("{} ready pods on {}", self.cell.pods, self.node), || async {
            let pods = self.pods().await?;
            ensure!(self.all_on_target(&pods), "{} pods, not all Ready on {}", pods.len(), self.node);
            Ok(Some(()))
        })
        .await?;
        wait::until(wait::CONTROLLERS, "each budget to allow one disruption", || async {
            let budgets = self.client.list(&self.budgets_path()).await?;
            let counted = |budget: &Value| {
                let status = &budget["status"];
                status["disruptionsAllowed"] == 1 && status["observedGeneration"] == budget["metadata"]["generation"]
            };
            Ok(budgets.iter().all(counted).then_some(()))
        })
        .await?;
        self.only_target_schedulable(false).await
    }

    /// Takes the drain's cordon away, where the one who drained leaves it.
    pub async fn uncordon(&self) -> Result<()> {
        self.set_schedulable(&self.node, true).await
    }

    /// The pods of the lanes that there are.
    pub async fn pods(&self) -> Result<Vec<Value>> {
        self.client.list(&format!("{}?labelSelector={LANE}", self.pods_path())).await
    }

    pub fn pods_path(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.cell.namespace())
    }

    pub fn budgets_path(&self) -> String {
        format!("/apis/policy/v1/namespaces/{}/poddisruptionbudgets", self.cell.namespace())
    }

    /// Whether exactly the cell's pods are there, on the node, Ready and not ending.
    fn all_on_target(&self, pods: &[Value]) -> bool {
        let good = |pod: &&Value| {
            pod["spec"]["nodeName"] == self.node.as_str()
                && objects::is_true(pod, "Ready")
                && pod["metadata"]["deletionTimestamp"].is_null()
        };
        pods.len() == self.cell.pods && pods.iter().filter(good).count() == self.cell.pods
    }

    /// Cordons the other nodes, or takes those cordons away, and waits until the scheduler's view has followed.
    async fn only_target_schedulable(&self, only: bool) -> Result<()> {
        for node in (1..=NODES).map(node_name) {
            self.set_schedulable(&node, !only || node == self.node).await?;
        }
        Ok(())
    }

    async fn set_schedulable(&self, node: &str, schedulable: bool) -> Result<()> {
        let path = format!("/api/v1/nodes/{node}");
        let value = if schedulable { Value::Null } else { Value::Bool(true) };
        self.client.merge(&path, &json!({ "spec": { "unschedulable": value } })).await?;
        // The taint is the node controller's, and replacements wait for it.
        wait::until(wait::CONTROLLERS, format!("the taint of {node} to follow"), || async {
            let taints = objects::taints(&self.client.get(&path).await?);
            let tainted = taints.iter().any(|taint| taint.starts_with("node.kubernetes.io/unschedulable"));
            Ok((tainted != schedulable).then_some(()))
        })
        .await
    }

    /// kubectl looks a DaemonSet up for each of its pods, and neither side evicts it.
    async fn create_agent(&self) -> Result<()> {
        let labels = json!({ "app": "agent" });
        let agent = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "agent" },
            "spec": { "selector": { "matchLabels": labels }, "template": {
                "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "main", "image": "test" }] } } },
        });
        let path = format!("/apis/apps/v1/namespaces/{}/daemonsets", self.cell.namespace());
        self.client.create(&path, &agent).await.map(drop)
    }

    async fn create_lane(&self, lane: &Lane) -> Result<()> {
        let (namespace, labels) = (self.cell.namespace(), json!({ LANE: lane.name }));
        let set = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": lane.name },
            "spec": { "replicas": lane.replicas, "selector": { "matchLabels": labels }, "template": {
                "metadata": { "labels": labels, "annotations": { "test/terminate": self.cell.seconds } },
                "spec": { "terminationGracePeriodSeconds": GRACE_SECONDS,
                    "containers": [{ "name": "main", "image": "test" }] } } },
        });
        self.client.create(&format!("/apis/apps/v1/namespaces/{namespace}/replicasets"), &set).await?;
        if lane.budget {
            let budget = json!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": lane.name },
                "spec": { "maxUnavailable": 1, "selector": { "matchLabels": labels } },
            });
            self.client.create(&self.budgets_path(), &budget).await?;
        }
        Ok(())
    }
}
