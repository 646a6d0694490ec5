//! What kured hears, or does not hear.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http_body_util::BodyExt as _;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use serde_json::Value;
use tokio::net::TcpStream;

use super::super::kured_partner::{NODES, acquired, lock_of};
use super::super::run::{RUN, cordon_changes};
use super::{NODE, installed, wishing};
use crate::harness::maint::{ADDRESSES, RECORDS, REPLICAS, story};
use crate::harness::service::Way;
use crate::harness::{Cluster, wait};

/// No replica, a Service that answers 500, and one that takes questions and answers nothing: nobody acts.
pub async fn nobody(cluster: Arc<Cluster>) -> Result<()> {
    let mut partners = installed(&cluster, &[]).await?;
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
    // The connection is closed at last, and kured goes on.
    partners.service.set(NODES[0], Way::Open)?;
    partners.wait_logged(NODES[0], "Reboot blocked: prometheus query error", 1).await?;
    let log = partners.log()?;
    ensure!(log.evictions().is_empty(), "something was evicted");
    ensure!(NODES.iter().all(|node| log.cordons(node).is_empty()), "something was cordoned");
    partners.ensure_safe(&[]).await
}

/// Every answer is 2 s late: kured acts on an old go, in time.
pub async fn slow(cluster: Arc<Cluster>) -> Result<()> {
    let (partners, name) = wishing(&cluster, Way::Late(Duration::from_secs(2))).await?;
    partners.wait_end(&name, "Succeeded", "Proven").await?;
    let log = partners.log()?;
    let locks = acquired(&log, NODE);
    partners.ensure_once(NODE)?;
    let told = partners.service.told();
    let go = told.iter().rfind(|one| one.node == NODE && one.is_go()).context("no go")?;
    let late = locks[0].time.parse::<Timestamp>()?.duration_since(go.at.parse::<Timestamp>()?);
    ensure!(late.as_millis() >= 2_000, "the lock came {late:?} after the go was made");
    partners.ensure_safe(&[NODE]).await
}

/// Both replicas are killed while pods go: kured hears nothing and does nothing, and the run goes on when they are back.
pub async fn both_go(cluster: Arc<Cluster>) -> Result<()> {
    let (mut partners, name) = wishing(&cluster, Way::Open).await?;
    partners.maint.wait_phase(&name, "Draining", RUN).await?;
    let (_, term) = partners.maint.leader().await?.context("nobody leads")?;
    let errors = "Reboot blocked: prometheus query error";
    let before = partners.kureds.log(NODE)?.matches(errors).count();
    partners.maint.kill(REPLICAS[1]);
    partners.maint.kill_leader().await?;
    partners.wait_logged(NODE, errors, before + 2).await?;
    ensure!(acquired(&partners.log()?, NODE).is_empty() && partners.booted()?.is_empty(), "it went all the same");
    partners.start_maint().await?;
    let record = partners.wait_end(&name, "Succeeded", "Proven").await?;
    ensure!(record["status"]["term"].as_i64() > Some(term), "term {} after {term}", record["status"]["term"]);
    partners.ensure_once(NODE)?;
    partners.ensure_safe(&[NODE]).await
}

/// kured's question is answered no more once the node is cordoned: it never gets its go, and everything is put back.
pub async fn hangs(cluster: Arc<Cluster>) -> Result<()> {
    let (partners, name) = wishing(&cluster, Way::Open).await?;
    partners.maint.wait_phase(&name, "Draining", RUN).await?;
    partners.service.set(NODE, Way::Hangs)?;
    let record = partners.wait_end(&name, "Failed", "ActionNotStarted").await?;
    ensure!(story(&record).contains("kured did not ask within 30 s"), "{}", story(&record));
    let log = partners.log()?;
    ensure!(acquired(&log, NODE).is_empty(), "kured took its lock");
    ensure!(cordon_changes(&log, NODE) == (1, 1), "{:?}", cordon_changes(&log, NODE));
    // It is answered again, and hears no.
    let before = partners.kureds.log(NODE)?.matches("active alerts").count();
    partners.service.set(NODE, Way::Open)?;
    partners.wait_logged(NODE, "active alerts", before + 2).await?;
    partners.ensure_safe(&[]).await
}

/// Somebody asks for a node that wants nothing: he hears no, and nothing comes of it.
pub async fn stranger(cluster: Arc<Cluster>) -> Result<()> {
    let mut partners = installed(&cluster, &[]).await?;
    // A lock that is held keeps the wish below from starting.
    partners.write_lock(Some(&lock_of("worker1"))).await?;
    partners.kureds.start()?;
    partners.start_maint().await?;
    for replica in ADDRESSES {
        let body = wait::until(wait::SHORT, format!("an answer of {replica}"), || async {
            ask_for(replica, "worker3").await.map(Some)
        })
        .await?;
        ensure!(body.contains("nothing is planned for it yet"), "{body}");
    }
    // What kured itself asks later becomes a record; by then the stranger's question would have become one too.
    partners.kureds.require(NODE, true)?;
    partners.wait_wish(NODE).await?;
    let records = cluster.any_client().await?.list(RECORDS).await?;
    let of: Vec<&Value> = records.iter().map(|record| &record["spec"]["nodeName"]).collect();
    ensure!(of == [NODE], "there are records of {of:?}");
    let log = partners.log()?;
    ensure!(log.evictions().is_empty(), "evicted: {:?}", log.evictions());
    ensure!(NODES.iter().all(|node| log.cordons(node).is_empty()), "something was cordoned");
    ensure!(partners.booted()?.is_empty(), "booted: {:?}", partners.booted()?);
    Ok(())
}

/// kured's question for a node, by whoever runs this.
async fn ask_for(replica: SocketAddr, node: &str) -> Result<String> {
    let stream = TcpStream::connect(replica).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let question = http::Request::post(format!("/kured/{node}/api/v1/query")).header("host", "maint");
    let answer = sender.send_request(question.body("query=ALERTS&time=1".to_string())?).await?;
    Ok(String::from_utf8_lossy(&answer.into_body().collect().await?.to_bytes()).into_owned())
}
