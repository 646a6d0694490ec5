//! What breaks between maint and kured, on one installation of both, one thing after the other. Whatever it is: nobody
//! reboots without a grant, no two nodes are away at a time, and in the end no lock is held and nothing is cordoned.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use http_body_util::BodyExt as _;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

use super::kured_partner::{ASKED, AUTO, NODES, Partners, acquired, forget_wish, lock_of, named, row_done};
use super::run::{RUN, cordon_changes, workload};
use super::{Case, case};
use crate::harness::Cluster;
use crate::harness::control_plane::Stop;
use crate::harness::longhorn::Volume;
use crate::harness::maint::{ADDRESSES, Maint, RECORDS, REPLICAS, story};
use crate::harness::service::Way;
use crate::harness::wait::{self, Limit};

pub fn cases() -> Vec<Case> {
    vec![
        Case { limit: Limit::seconds("case", 600), ..case("kured::whatever_breaks_between_them", faults) },
        Case {
            limit: Limit::seconds("case", 360),
            ..case("kured::two_at_a_time_for_kured_is_one_for_maint", two_slots)
        },
    ]
}

/// Of most rows; the replicas begin with the API servers of the other two.
const NODE: &str = "worker2";
/// Three of kured's periods and more, and short enough to wait for.
const SHORT_HANDOVER: [(&str, u64); 1] = [("handover_timeout_seconds", 30)];

async fn faults(cluster: Arc<Cluster>) -> Result<()> {
    workload(&cluster, 2).await?;
    let maint = Maint::install_with(&cluster, &SHORT_HANDOVER, AUTO).await?;
    let mut partners = Partners::install(&cluster, maint, &[]).await?;
    named("nobody answers", nobody_answers(&mut partners).await)?;
    row_done();
    named("locks of others", locks_of_others(&mut partners).await)?;
    named("leaders killed", leaders_killed(&mut partners).await)?;
    row_done();
    partners.clear().await?;
    named("go withdrawn, lock wiped", withdrawn_and_wiped(&mut partners).await)?;
    row_done();
    partners.clear().await?;
    named("no reboot, no drain", no_reboot_and_no_drain(&mut partners).await)?;
    row_done();
    partners.clear().await?;
    named("kured gone", kured_gone(&mut partners).await)?;
    row_done();
    Ok(())
}

/// No replica, a Service that answers 500, and one that takes questions and answers nothing: nobody acts.
async fn nobody_answers(partners: &mut Partners) -> Result<()> {
    partners.service.set(NODES[0], Way::Hangs)?;
    partners.service.set(NODE, Way::Fails(500))?;
    for node in NODES {
        partners.kureds.require(node, true)?;
    }
    partners.kureds.start()?;
    partners.wait_logged(NODE, "Reboot blocked: prometheus query error: server_error: server error: 500", 2).await?;
    partners.wait_logged(NODES[2], "Reboot blocked: prometheus query error", 2).await?;
    partners.wait_logged(NODES[0], "kured-reboot-in-progress", 1).await?;
    ensure!(!partners.kureds.log(NODES[0])?.contains("Reboot blocked"), "it was answered");
    for node in [NODES[0], NODES[2]] {
        partners.kureds.require(node, false)?;
    }
    // It closes at last, and kured goes on.
    partners.service.set(NODES[0], Way::Open)?;
    partners.wait_logged(NODES[0], "Reboot blocked: prometheus query error", 1).await?;
    ensure!(partners.log()?.evictions().is_empty(), "something was evicted");
    // kured leaves them on a node that no longer wants anything.
    for node in [NODES[0], NODES[2]] {
        forget_wish(&partners.cluster, node).await?;
    }
    partners.ensure_safe(&[]).await
}

/// Values of the lock that are not this run's: maint says which, and starts nothing. Meanwhile kured's API server goes,
/// and a stranger asks for a healthy node.
async fn locks_of_others(partners: &mut Partners) -> Result<()> {
    let rows = [
        ("foreign holder", lock_of("worker3"), 3, "KuredLockHeld"),
        ("garbage", "{not a lock".to_string(), 4, "KuredLockUnreadable"),
        ("a list under concurrency 1", json!({ "maxOwners": 2, "locks": [] }).to_string(), 3, "KuredLockFormat"),
        ("ghost", lock_of("worker9"), 3, "worker9"),
    ];
    partners.write_lock(Some(&rows[0].1)).await?;
    partners.service.set(NODE, Way::Open)?;
    partners.start_maint().await?;
    let name = partners.wait_wish(NODE).await?;
    for (row, lock, code, said) in &rows {
        partners.write_lock(Some(lock)).await?;
        let told = named(row, partners.maint.verb(1, &["check", NODE], *code).await)?;
        ensure!(told.contains(said), "{row}: {told}");
        row_done();
    }
    partners.wait_logged(NODE, "worker9", 1).await?;
    stranger(partners).await?;
    row_done();
    api_server_gone(partners).await?;
    row_done();
    let record = partners.maint.record(&name).await?;
    ensure!(record["status"]["phase"] == "Pending", "{}", story(&record));
    ensure!(partners.log()?.cordons(NODE).is_empty(), "cordoned");
    partners.maint.verb(1, &["lock", "release", "--holder", "worker9", "--yes"], 0).await?;
    Ok(())
}

/// Somebody asks for a node that wants nothing: he hears no, and nothing comes of it.
async fn stranger(partners: &Partners) -> Result<()> {
    for replica in ADDRESSES {
        let stream = tokio::net::TcpStream::connect(replica).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let question = http::Request::post("/kured/worker3/api/v1/query").header("host", "maint");
        let answer = sender.send_request(question.body("query=ALERTS&time=1".to_string())?).await?;
        let body = answer.into_body().collect().await?.to_bytes();
        let body = String::from_utf8_lossy(&body);
        ensure!(body.contains("nothing is planned for it yet"), "{body}");
    }
    // What is written because of a question is written within moments.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let records = partners.cluster.any_client().await?.list(RECORDS).await?;
    let of: Vec<&Value> = records.iter().map(|record| &record["spec"]["nodeName"]).collect();
    ensure!(of == [NODE], "there are records of {of:?}");
    Ok(())
}

/// kured ends at its next look, and comes back when its API server does.
async fn api_server_gone(partners: &Partners) -> Result<()> {
    let lives = partners.kureds.lives(NODE)?;
    partners.cluster.stop_apiserver(2, Stop::Term).await?;
    wait::until(ASKED, "another kured", || async { Ok((partners.kureds.lives(NODE)? > lives).then_some(())) }).await?;
    ensure!(partners.kureds.log(NODE)?.contains("connection refused"), "{}", partners.kureds.log(NODE)?);
    partners.cluster.start_apiserver(2)?;
    partners.cluster.wait_servers().await
}

/// Every answer is 2 s late, and the leader is killed in every phase; in Acting between the go and kured's lock.
async fn leaders_killed(partners: &mut Partners) -> Result<()> {
    let start = Instant::now();
    partners.service.set(NODE, Way::Late(Duration::from_secs(2)))?;
    let name = partners.wait_wish(NODE).await?;
    let mut killed = Vec::new();
    for phase in ["Cordoning", "Draining", "Acting", "Returning", "Verifying", "Uncordoning", "Settling"] {
        partners.maint.wait_phase(&name, phase, RUN).await?;
        if phase == "Acting" {
            wait::until(ASKED, "a go on its way", || async {
                Ok(partners.service.told().iter().any(|told| told.node == NODE && told.is_go()).then_some(()))
            })
            .await?;
            ensure!(acquired(&partners.log()?, NODE).is_empty(), "it has the lock already");
        }
        let (leader, term) = partners.maint.kill_leader().await?;
        let record = partners.maint.record(&name).await?;
        killed.push(format!("{} in term {term}", record["status"]["phase"]));
        partners.maint.start(&leader, if leader == REPLICAS[0] { 1 } else { 3 })?;
    }
    partners.wait_end(&name, "Succeeded", "Proven").await?;
    println!("\nfigure kured.cluster_run_with_7_kills {:.1} s", start.elapsed().as_secs_f64());
    let log = partners.log()?;
    ensure!(cordon_changes(&log, NODE) == (1, 1), "{:?} {killed:?}", cordon_changes(&log, NODE));
    ensure!(acquired(&log, NODE).len() == 1, "{} locks {killed:?}", acquired(&log, NODE).len());
    partners.ensure_safe(&[NODE]).await
}

/// A gate fails while a go is on its way: maint takes the lock, and kured comes too late. After that kured gets another
/// go, and somebody wipes its lock while it drains.
async fn withdrawn_and_wiped(partners: &mut Partners) -> Result<()> {
    partners.service.set(NODE, Way::KeepsGo)?;
    partners.kureds.require(NODE, true)?;
    let name = partners.wait_wish(NODE).await?;
    let late = partners.kureds.log(NODE)?.matches("Lock already held").count();
    wait::until(RUN, "a go that is kept back", || async { Ok((partners.service.kept(NODE)? == 1).then_some(())) })
        .await?;
    partners.cluster.set_volume("pvc-home", Volume::Rebuilding(1)).await?;
    wait::until(RUN, "maint to take the lock", || async {
        let lock = partners.lock_text().await?.unwrap_or_default();
        ensure!(lock.contains(&format!("maint:{NODE}")), "{lock} {}", story(&partners.maint.record(&name).await?));
        Ok(Some(()))
    })
    .await?;
    partners.service.set(NODE, Way::Open)?;
    partners.wait_logged(NODE, "Lock already held", late + 1).await?;
    ensure!(acquired(&partners.log()?, NODE).is_empty() && partners.booted()?.is_empty(), "it went all the same");
    partners.cluster.set_volume("pvc-home", Volume::Healthy).await?;
    wait::until(RUN, "kured's own lock", || async {
        let lock = partners.lock_text().await?.unwrap_or_default();
        ensure!(
            lock.contains(&format!("\"nodeID\":\"{NODE}\"")),
            "{lock} {}",
            story(&partners.maint.record(&name).await?)
        );
        Ok(Some(()))
    })
    .await?;
    partners.write_lock(None).await?;
    partners.wait_end(&name, "Succeeded", "Proven").await?;
    partners.ensure_safe(&[NODE]).await
}

/// kured's reboot command fails, which costs its first go; then its drain does, since a pod came to the cordoned node.
async fn no_reboot_and_no_drain(partners: &mut Partners) -> Result<()> {
    let client = partners.cluster.any_client().await?;
    partners.cluster.namespace("case-partner").await?;
    let budget = json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "stays" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "stays" } } } });
    client.create("/apis/policy/v1/namespaces/case-partner/poddisruptionbudgets", &budget).await?;
    partners.kureds.break_reboot(NODE)?;
    partners.kureds.require(NODE, true)?;
    let name = partners.wait_wish(NODE).await?;
    wait::until(RUN, "the first lock", || async { Ok((acquired(&partners.log()?, NODE).len() == 1).then_some(())) })
        .await?;
    partners.service.set(NODE, Way::KeepsGo)?;
    wait::until(RUN, "a second go that is kept back", || async {
        ensure!(partners.service.kept(NODE)? == 1, "{}", story(&partners.maint.record(&name).await?));
        Ok(Some(()))
    })
    .await?;
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
    wait::until(wait::SHORT, "the second lock", || async {
        Ok((acquired(&partners.log()?, NODE).len() == 2).then_some(()))
    })
    .await?;
    partners.maint.freeze(&leader, false);
    let record = partners.wait_end(&name, "Failed", "KuredDrainFailed").await?;
    ensure!(story(&record).contains("one more grant"), "{}", story(&record));
    let refused = partners.log()?.evictions().into_iter().filter(|entry| entry.code == 429).count();
    ensure!(refused > 0, "the budget refused nothing");
    partners.ensure_safe(&[]).await?;
    client.delete(&format!("{pods}/stays"), Some(&json!({ "gracePeriodSeconds": 0 }))).await?;
    Ok(())
}

/// kured's process goes after the cordon, and nobody starts it anew: it asks no more, and everything is put back.
async fn kured_gone(partners: &mut Partners) -> Result<()> {
    partners.kureds.require(NODE, true)?;
    let name = partners.wait_wish(NODE).await?;
    partners.maint.wait_phase(&name, "Draining", RUN).await?;
    partners.kureds.leave_alone(NODE, true)?;
    let record = partners.wait_end(&name, "Failed", "ActionNotStarted").await?;
    ensure!(story(&record).contains("kured did not ask within 30 s"), "{}", story(&record));
    ensure!(cordon_changes(&partners.log()?, NODE) == (1, 1), "{:?}", cordon_changes(&partners.log()?, NODE));
    partners.ensure_safe(&[]).await
}

/// kured would let two nodes go; maint lets one, and the other one waits for the next window. A single value under
/// `--concurrency 2` stops everybody.
async fn two_slots(cluster: Arc<Cluster>) -> Result<()> {
    let one = AUTO.replace("max_nodes_per_window = 100", "max_nodes_per_window = 1");
    let maint = Maint::install_with(&cluster, &[], &one).await?;
    let mut partners = Partners::install(&cluster, maint, &[("--concurrency=1", "--concurrency=2")]).await?;
    partners.write_lock(Some(&lock_of("worker1"))).await?;
    for node in [NODES[1], NODES[2]] {
        partners.kureds.require(node, true)?;
    }
    partners.kureds.start()?;
    partners.start_maint().await?;
    for node in [NODES[1], NODES[2]] {
        partners.wait_wish(node).await?;
    }
    let told = partners.maint.verb(1, &["check", NODE], 3).await?;
    ensure!(told.contains("KuredLockFormat"), "{told}");
    let foreign: Value = serde_json::from_str(&lock_of("worker1"))?;
    partners.write_lock(Some(&json!({ "maxOwners": 2, "locks": [foreign] }).to_string())).await?;
    let told = partners.maint.verb(1, &["check", NODE], 3).await?;
    ensure!(told.contains("KuredLockHeld"), "{told}");
    ensure!(partners.log()?.cordons(NODE).is_empty(), "cordoned");
    partners.write_lock(Some(&json!({ "maxOwners": 2, "locks": [] }).to_string())).await?;
    let (record, waits) = wait::until(RUN, "one of both to be done, and the other one to wait", || async {
        let records = partners.cluster.any_client().await?.list(RECORDS).await?;
        let stories: Vec<String> = records.iter().map(story).collect();
        let done = records.iter().find(|record| record["status"]["outcome"] == "Proven");
        let waits = records
            .iter()
            .find(|record| record["status"]["message"].as_str().is_some_and(|message| message.contains("WindowFull")));
        let (Some(done), Some(waits)) = (done, waits) else { bail!("{stories:#?}") };
        Ok(Some((done.clone(), waits.clone())))
    })
    .await?;
    let node = |record: &Value| record["spec"]["nodeName"].as_str().unwrap_or_default().to_string();
    ensure!(node(&record) != node(&waits), "{} {}", story(&record), story(&waits));
    row_done();
    let text = partners.lock_text().await?;
    ensure!(text.as_deref().is_some_and(|text| text.contains("\"locks\":[]")), "{text:?}");
    partners.ensure_safe(&[&node(&record)]).await
}
