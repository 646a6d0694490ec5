//! Runs that meet a person's cordon, or a budget that allows nothing.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::run::{NODE, RUN, ensure_only_own_writes, evicted, going, reboots};
use super::{Case, case};
use crate::harness::maint::{Maint, story};
use crate::harness::{Cluster, wait};

pub fn cases() -> Vec<Case> {
    vec![case("run::cordon_of_a_person_stays", their_cordon), case("run::budget_backs_out", budget_backs_out)]
}

async fn node(cluster: &Cluster) -> Result<Value> {
    cluster.any_client().await?.get(&format!("/api/v1/nodes/{NODE}")).await
}

/// Waits until maint has looked at the node again: a change of it wakes the leader, which reads all that its gates ask.
async fn another_look(cluster: &Cluster, maint: &Maint) -> Result<()> {
    let mark = cluster.audit_mark();
    let nudge = json!({ "metadata": { "annotations": { "test/nudge": mark } } });
    cluster.any_client().await?.merge(&format!("/api/v1/nodes/{NODE}"), &nudge).await?;
    wait::until(wait::SHORT, "another look", || async {
        let log = maint.log_since(&mark)?;
        let read = log.0.iter().any(|entry| entry.verb == "list" && entry.resource == "volumes" && entry.code == 200);
        Ok(read.then_some(()))
    })
    .await
}

/// An unattended record waits; a manual one is allowed, and leaves the cordon.
async fn their_cordon(cluster: Arc<Cluster>) -> Result<()> {
    let maint = Maint::up(&cluster, &[], [1, 3]).await?;
    let kubectl = cluster.admin(1, "kubectl").await?;
    let cordon = json!({ "spec": { "unschedulable": true } });
    kubectl.strategic(&format!("/api/v1/nodes/{NODE}?fieldManager=kubectl-cordon"), &cordon).await?;
    let mark = cluster.audit_mark();
    maint.ask("wish-1", NODE, "reboot", "pod", json!({ "trigger": "unattended" })).await?;
    let blocked = |record: &Value| {
        record["status"]["findings"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|finding| finding["reason"] == "TargetCordonedByOther")
    };
    maint.wait_record("wish-1", "the finding", wait::SHORT, blocked).await?;
    another_look(&cluster, &maint).await?;
    let record = maint.record("wish-1").await?;
    ensure!(record["status"]["phase"] == "Pending" && blocked(&record), "{}", story(&record));
    let log = maint.log_since(&mark)?;
    ensure_only_own_writes(&log).context("for a wish that is blocked")?;
    maint.verb(1, &["cancel", "wish-1", "--as", "a case"], 0).await?;
    maint.wait_phase("wish-1", "Cancelled", wait::SHORT).await?;

    maint.ask("manual-1", NODE, "service-restart", "external", json!({})).await?;
    let record = maint.wait_phase("manual-1", "Returning", RUN).await?;
    ensure!(record["status"]["node"]["wasUnschedulable"] == true, "{}", record["status"]["node"]);
    maint.verb(1, &["done", "manual-1", "--as", "a case"], 0).await?;
    let record = maint.wait_phase("manual-1", "Succeeded", RUN).await?;
    let warned = record["status"]["warnings"].as_array().is_some_and(|all| {
        all.iter().any(|warning| warning.as_str().is_some_and(|text| text.contains("that cordon stays")))
    });
    ensure!(warned, "not said that the cordon stays: {}", story(&record));
    let node = node(&cluster).await?;
    ensure!(node["spec"]["unschedulable"] == true, "the person's cordon is gone");
    ensure!(
        node["metadata"]["annotations"]["maint.dev/owner"].is_null(),
        "owner left: {}",
        node["metadata"]["annotations"]
    );
    let log = cluster.audit_since(&mark)?;
    ensure!(log.uncordons(NODE).is_empty() && log.evictions().is_empty(), "{:?}", log.writes());
    Ok(())
}

/// A pod that is not Ready holds the budget: at the drain's deadline all is put back.
async fn budget_backs_out(cluster: Arc<Cluster>) -> Result<()> {
    cluster.namespace("case-run").await?;
    cluster.deployment("case-run", "shop", 6, &json!({})).await?;
    let client = cluster.any_client().await?;
    let budget = json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "shop-budget" },
        "spec": { "minAvailable": 5, "selector": { "matchLabels": { "app": "shop" } } } });
    let budgets = "/apis/policy/v1/namespaces/case-run/poddisruptionbudgets";
    client.create(budgets, &budget).await?;
    let pods = "/api/v1/namespaces/case-run/pods";
    let all = client.list(pods).await?;
    let elsewhere = all.iter().find(|pod| pod["spec"]["nodeName"] != NODE).context("all pods are on one node")?;
    let unready = elsewhere["metadata"]["name"].as_str().context("a pod without name")?;
    client
        .merge(&format!("{pods}/{unready}"), &json!({ "metadata": { "annotations": { "test/ready": "false" } } }))
        .await?;
    wait::until(wait::CONTROLLERS, "the budget to allow nothing", || async {
        let status = client.get(&format!("{budgets}/shop-budget")).await?["status"].clone();
        Ok((status["currentHealthy"] == 5 && status["disruptionsAllowed"] == 0).then_some(()))
    })
    .await?;
    let held = all.iter().filter(|pod| pod["spec"]["nodeName"] == NODE);
    let held: Vec<_> = held.filter_map(|pod| pod["metadata"]["name"].as_str()).collect();
    ensure!(!held.is_empty(), "no pod of the budget is on {NODE}");
    let maint = Maint::up(&cluster, &[("drain_timeout_seconds", 10)], [1, 3]).await?;
    let (going, mark) = (going(&cluster, NODE).await?, cluster.audit_mark());
    let shown = maint.verb(1, &["reboot", NODE, "--action", "pod", "--yes", "--as", "a case"], 5).await?;
    ensure!(shown.contains("shop-budget"), "the budget is not named: {shown}");
    let name = maint.only_record().await?;
    let record = maint.record(&name).await?;
    let (told, status) = (story(&record), &record["status"]);
    ensure!(status["phase"] == "Failed", "{told}");
    ensure!(status["outcome"] == "DrainDeadline", "{told}");
    let message = status["message"].as_str().unwrap_or("");
    ensure!(held.iter().all(|pod| message.contains(pod)), "{held:?} not named: {told}");
    ensure!(message.contains("shop-budget"), "the budget is not named: {told}");
    ensure!(told.contains("BackingOut"), "{told}");
    let node = node(&cluster).await?;
    ensure!(node["spec"]["unschedulable"].is_null(), "still cordoned");
    ensure!(node["metadata"]["annotations"]["maint.dev/owner"].is_null(), "owner left");
    let log = cluster.audit_since(&mark)?;
    evicted(&log, &going)?;
    // The budget is asked before its pods are, so that none is sent that must be refused.
    let shop = log.evictions().into_iter().filter(|entry| entry.namespace == "case-run").collect::<Vec<_>>();
    ensure!(shop.is_empty(), "{shop:?}");
    let changes = (log.cordons(NODE).len(), log.uncordons(NODE).len(), reboots(&log));
    ensure!(changes == (1, 1, 0), "cordons, uncordons, action pods: {changes:?}");
    ensure!(log.deletes("pods").is_empty(), "deleted around the budget: {:?}", log.deletes("pods"));
    maint.wait_told(&name, &["started", "backed-out"]).await
}
