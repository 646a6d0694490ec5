//! Plays what k3s writes about its embedded etcd: the node condition `EtcdIsVoter` with a fresh heartbeat.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::client::Client;
use super::control_plane::ControlPlane;
use super::kubelet::Kubelet;
use super::net::NODES;
use super::{node_name, now};

/// What the condition of one node says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Voter {
    /// True, `MemberNotLearner`, heartbeat fresh.
    #[default]
    Member,
    /// False, `MemberIsLearner`.
    Learner,
    /// Nothing is written any more: the heartbeat grows old.
    Silent,
}

/// The writer's switches.
#[derive(Clone, Default)]
pub struct Voters {
    states: Arc<Mutex<[Voter; NODES]>>,
}

impl Voters {
    pub fn set(&self, node: usize, state: Voter) {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)[node - 1] = state;
    }

    pub fn state(&self, node: usize) -> Voter {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)[node - 1]
    }

    /// Writes every 3 s for as long as the cluster lives. A node that is down, or whose server is, writes nothing: both
    /// are one process in k3s.
    pub async fn run(self, plane: Arc<ControlPlane>, kubelets: Arc<[Kubelet]>) {
        let mut clients = Vec::new();
        for i in 1..=NODES {
            match plane.client(i).await {
                Ok(client) => clients.push(client.with_agent("etcd-voter-double")),
                Err(error) => return eprintln!("cluster: etcd voters are not played: {error:#}"),
            }
        }
        loop {
            for (i, client) in (1..=NODES).zip(&clients) {
                if kubelets[i - 1].is_up() && plane.server_runs(i) && self.state(i) != Voter::Silent {
                    // A server that is just starting is asked again in 3 s.
                    write(client, i, self.state(i)).await.ok();
                }
            }
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
    }
}

async fn write(client: &Client, node: usize, state: Voter) -> Result<()> {
    let path = format!("/api/v1/nodes/{}", node_name(node));
    let (status, reason, message) = match state {
        Voter::Learner => {
            ("False", "MemberIsLearner", "Node has not been promoted to voting member of the etcd cluster")
        }
        Voter::Member | Voter::Silent => ("True", "MemberNotLearner", "Node is a voting member of the etcd cluster"),
    };
    let current = client.get(&path).await?;
    let conditions = current["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let same = conditions.iter().find(|c| c["type"] == "EtcdIsVoter" && c["status"] == status);
    let now = now();
    let since = same.and_then(|c| c["lastTransitionTime"].as_str()).unwrap_or(&now);
    let condition = json!({ "type": "EtcdIsVoter", "status": status, "reason": reason, "message": message,
        "lastHeartbeatTime": now, "lastTransitionTime": since });
    client.strategic(&format!("{path}/status"), &json!({ "status": { "conditions": [condition] } })).await.map(drop)
}
