//! kured's own acts that fail, and kured that is not there.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::super::kured_partner::{ASKED, AUTO, Partners, acquired, lock_of};
use super::super::run::{RUN, cordon_changes};
use super::{NODE, SHORT, begin, installed, wishing};
use crate::harness::control_plane::Stop;
use crate::harness::kured::NAMESPACE;
use crate::harness::maint::{Maint, REPLICAS, story};
use crate::harness::service::Way;
use crate::harness::{Cluster, wait};

/// A pod that no budget lets go comes to the cordoned node between go and lock: kured gives its drain up.
pub async fn drain_fails(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.any_client().await?;
    cluster.namespace("case-partner").await?;
    let budget = json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "stays" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "stays" } } } });
    client.create("/apis/policy/v1/namespaces/case-partner/poddisruptionbudgets", &budget).await?;
    let mut partners = installed(&cluster, &[("--drain-timeout=12s", "--drain-timeout=5s")]).await?;
    let name = begin(&mut partners, Way::KeepsGo).await?;
    partners.wait_kept(NODE, &name).await?;
    // The leader shall not see the pod before kured does.
    let (leader, _) = partners.maint.leader().await?.context("nobody leads")?;
    partners.maint.freeze(&leader, true);
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "stays", "labels": { "app": "stays" } },
        "spec": { "nodeName": NODE, "containers": [{ "name": "main", "image": "test" }] } });
    let pods = "/api/v1/namespaces/case-partner/pods";
    client.create(pods, &pod).await?;
    wait::until(wait::SHORT, "the pod", || async {
        Ok((client.get(&format!("{pods}/stays")).await?["status"]["phase"] == "Running").then_some(()))
    })
    .await?;
    partners.service.set(NODE, Way::Open)?;
    partners.wait_locks(NODE, &name, 1).await?;
    partners.maint.freeze(&leader, false);
    let record = partners.wait_end(&name, "Failed", "KuredDrainFailed").await?;
    ensure!(story(&record).contains("kured's drain failed"), "{}", story(&record));
    let refused = partners.log()?.evictions().into_iter().filter(|entry| entry.code == 429).count();
    ensure!(refused > 0, "the budget refused nothing");
    partners.ensure_safe(&[]).await
}

/// kured's reboot command fails, and once more with its second grant: everything is put back.
pub async fn reboot_fails(cluster: Arc<Cluster>) -> Result<()> {
    let mut partners = installed(&cluster, &[]).await?;
    partners.kureds.break_reboot(NODE)?;
    let name = begin(&mut partners, Way::Open).await?;
    partners.wait_locks(NODE, &name, 2).await?;
    let record = partners.wait_end(&name, "Failed", "KuredDrainFailed").await?;
    let told = story(&record);
    ensure!(told.contains("one more grant") && told.contains("for the second time"), "{told}");
    let log = partners.log()?;
    ensure!(acquired(&log, NODE).len() == 2, "{} locks: {told}", acquired(&log, NODE).len());
    partners.ensure_safe(&[]).await
}

/// Its reboot command comes to nothing, and kured is killed while it waits for its end: the next process gives the lock
/// up without a reboot, the node stays cordoned, and a second grant brings the reboot.
pub async fn killed_with_the_lock(cluster: Arc<Cluster>) -> Result<()> {
    let mut partners = installed(&cluster, &[]).await?;
    partners.kureds.lose_reboot(NODE)?;
    let name = begin(&mut partners, Way::Open).await?;
    partners.wait_locks(NODE, &name, 1).await?;
    partners.wait_logged(NODE, "Waiting for reboot", 1).await?;
    partners.kureds.mend_reboot(NODE)?;
    partners.kureds.kill(NODE)?;
    let record = partners.wait_end(&name, "Succeeded", "Proven").await?;
    ensure!(story(&record).contains("one more grant"), "{}", story(&record));
    let log = partners.log()?;
    ensure!(acquired(&log, NODE).len() == 2, "{} locks: {}", acquired(&log, NODE).len(), story(&record));
    ensure!(cordon_changes(&log, NODE) == (1, 1), "{:?}", cordon_changes(&log, NODE));
    partners.ensure_safe(&[NODE]).await
}

/// While a wish waits, kured ends at its next look and comes back when its API server does. Between go and lock it tries
/// again until that server answers.
pub async fn api_server_stops(cluster: Arc<Cluster>) -> Result<()> {
    let mut partners = installed(&cluster, &[]).await?;
    partners.write_lock(Some(&lock_of("worker3"))).await?;
    let name = begin(&mut partners, Way::KeepsGo).await?;
    let lives = partners.kureds.lives(NODE)?;
    cluster.stop_apiserver(2, Stop::Term).await?;
    wait::until(ASKED, "another kured", || async { Ok((partners.kureds.lives(NODE)? > lives).then_some(())) }).await?;
    ensure!(partners.kureds.log(NODE)?.contains("connection refused"), "{}", partners.kureds.log(NODE)?);
    cluster.start_apiserver(2)?;
    cluster.wait_servers().await?;
    partners.write_lock(None).await?;
    partners.wait_kept(NODE, &name).await?;
    cluster.stop_apiserver(2, Stop::Term).await?;
    let stopped = cluster.audit_mark();
    partners.service.set(NODE, Way::Open)?;
    wait::until(wait::SHORT, "the go to be heard", || async { Ok((partners.service.kept(NODE)? == 0).then_some(())) })
        .await?;
    cluster.start_apiserver(2)?;
    partners.wait_end(&name, "Succeeded", "Proven").await?;
    let (log, told) = (partners.log()?, partners.service.told());
    let (locks, last) = (acquired(&log, NODE), told.iter().rfind(|one| one.node == NODE && one.is_go()));
    let last = last.context("no go")?;
    ensure!(locks.len() == 1 && last.at < stopped && stopped < locks[0].time, "{last:?} {stopped} {locks:?}");
    partners.ensure_once(NODE)?;
    partners.ensure_safe(&[NODE]).await
}

/// `--period 1h` on the pods; for the processes the hour is 5 s long. With a hand-over of 30 s nothing starts; with one of
/// three hours the wait is told.
pub async fn once_an_hour(cluster: Arc<Cluster>) -> Result<()> {
    let maint = Maint::install_with(&cluster, &SHORT, AUTO).await?;
    let hourly = [("--period=3s", "--period=1h")];
    let mut partners = Partners::install_with(&cluster, maint, &hourly, &["--period=5s"]).await?;
    let name = begin(&mut partners, Way::Open).await?;
    partners.wait_logged(NODE, "waits: kured KuredPeriodTooLong", 1).await?;
    let told = partners.maint.verb(1, &["check", NODE], 3).await?;
    ensure!(told.contains("KuredPeriodTooLong") && told.contains("asks every 1h only"), "{told}");
    ensure!(partners.log()?.cordons(NODE).is_empty(), "cordoned");
    for replica in REPLICAS {
        partners.maint.stop(replica);
    }
    partners.maint.set_run("handover_timeout_seconds", 3 * 3600, AUTO)?;
    // From the cordon on it asks nothing, for most of an hour.
    partners.service.set(NODE, Way::Hangs)?;
    partners.start_maint().await?;
    let says = |text: &'static str| {
        move |record: &Value| record["status"]["message"].as_str().is_some_and(|message| message.contains(text))
    };
    let waits = says("waits for kured's question; it looks every 3600 s");
    partners.maint.wait_record(&name, "the wait", RUN, waits).await?;
    partners.service.set(NODE, Way::KeepsGo)?;
    let granted = says("granted: kured acts at its next look, at most 3600 s away");
    partners.maint.wait_record(&name, "the grant", RUN, granted).await?;
    partners.wait_kept(NODE, &name).await?;
    partners.service.set(NODE, Way::Open)?;
    partners.wait_end(&name, "Succeeded", "Proven").await?;
    partners.ensure_safe(&[NODE]).await
}

/// A pod of kured that is not Ready is told. Then its process goes after the cordon, and nobody starts it anew: it asks no
/// more, and everything is put back.
pub async fn gone(cluster: Arc<Cluster>) -> Result<()> {
    let (partners, name) = wishing(&cluster, Way::Open).await?;
    partners.maint.wait_phase(&name, "Draining", RUN).await?;
    partners.kureds.leave_alone(NODE, true)?;
    let record = partners.wait_end(&name, "Failed", "ActionNotStarted").await?;
    ensure!(story(&record).contains("kured did not ask within 30 s"), "{}", story(&record));
    ensure!(cordon_changes(&partners.log()?, NODE) == (1, 1), "{:?}", cordon_changes(&partners.log()?, NODE));
    let client = cluster.any_client().await?;
    let pods = client.list(&format!("/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=name%3Dkured")).await?;
    let pod = pods.iter().find(|pod| pod["spec"]["nodeName"] == NODE).context("no pod of kured")?;
    let pod = pod["metadata"]["name"].as_str().context("a pod without name")?;
    let unready = json!({ "metadata": { "annotations": { "test/ready": "false" } } });
    client.merge(&format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}"), &unready).await?;
    wait::until(wait::SHORT, "KuredPodNotReady", || async {
        let told = partners.maint.verb(1, &["check", NODE], 3).await?;
        ensure!(told.contains("KuredPodNotReady"), "{told}");
        Ok(Some(()))
    })
    .await?;
    partners.ensure_safe(&[]).await
}
