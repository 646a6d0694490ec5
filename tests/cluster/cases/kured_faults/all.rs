//! All nodes wish while things break: whatever is freed or forgotten by it, nobody else may use it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::super::kured_partner::{NODES, Partners, acquired, is_over};
use super::super::run::RUN;
use super::installed;
use crate::harness::maint::{RECORDS, REPLICAS, story};
use crate::harness::service::Way;
use crate::harness::{Cluster, wait};

/// Answers are 2 s late. With the first node the leader is killed between go and lock, with the second one both replicas
/// are away for a while, with the third one kured's lock is wiped while it drains.
pub async fn wish(cluster: Arc<Cluster>) -> Result<()> {
    let mut partners = installed(&cluster, &[]).await?;
    for node in NODES {
        partners.service.set(node, Way::Late(Duration::from_secs(2)))?;
        partners.kureds.require(node, true)?;
    }
    partners.kureds.start()?;
    partners.start_maint().await?;
    for node in NODES {
        partners.wait_wish(node).await?;
    }
    let mut seen = Vec::new();
    for round in 0..NODES.len() {
        let (node, name) = next(&partners, &seen).await?;
        match round {
            0 => between_go_and_lock(&mut partners, &node).await?,
            1 => nobody_for_a_while(&mut partners, &node).await?,
            _ => {
                partners.wait_locks(&node, &name, 1).await?;
                partners.write_lock(None).await?;
            }
        }
        partners.wait_end(&name, "Succeeded", "Proven").await?;
        seen.push(name);
    }
    for node in NODES {
        partners.ensure_once(node)?;
    }
    partners.ensure_safe(&NODES).await
}

/// The node and the record of the next run.
async fn next(partners: &Partners, seen: &[String]) -> Result<(String, String)> {
    wait::until(RUN, "the next node", || async {
        let records = partners.cluster.any_client().await?.list(RECORDS).await?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let at_work = |record: &&Value| {
            let known = seen.contains(&text(&record["metadata"]["name"]));
            !known
                && !is_over(record)
                && record["status"]["phase"] != "Pending"
                && record["status"]["phase"].is_string()
        };
        let stories: Vec<String> = records.iter().map(story).collect();
        let record = records.iter().find(at_work).with_context(|| format!("{stories:#?}"))?;
        Ok(Some((text(&record["spec"]["nodeName"]), text(&record["metadata"]["name"]))))
    })
    .await
}

async fn between_go_and_lock(partners: &mut Partners, node: &str) -> Result<()> {
    wait::until(RUN, "a go that is on its way", || async {
        Ok(partners.service.told().iter().any(|told| told.node == node && told.is_go()).then_some(()))
    })
    .await?;
    ensure!(acquired(&partners.log()?, node).is_empty(), "{node} has the lock already");
    partners.leader_dies().await.map(drop)
}

async fn nobody_for_a_while(partners: &mut Partners, node: &str) -> Result<()> {
    let (leader, _) = partners.maint.leader().await?.context("nobody leads")?;
    for replica in REPLICAS.iter().filter(|replica| **replica != leader) {
        partners.maint.kill(replica);
    }
    partners.maint.kill_leader().await?;
    let before = partners.kureds.log(node)?.matches("prometheus query error").count();
    partners.wait_logged(node, "prometheus query error", before + 2).await?;
    partners.start_maint().await
}
