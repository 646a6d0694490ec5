//! kured's double on the real control plane: three processes, one node hears go, and only that one reboots.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use maint_sim::doubles::kured::answer::Answer;
use maint_sim::doubles::kured::calls::USER_AGENT;
use maint_sim::doubles::kured::objects::Form;

use super::{Case, case};
use crate::harness::Cluster;
use crate::harness::answerer::{Answerer, Asked};
use crate::harness::audit::Entry;
use crate::harness::kured::{self, Kureds};
use crate::harness::wait::{self, Limit};

pub fn cases() -> Vec<Case> {
    vec![case("kured::one_node_hears_go_and_reboots_alone", one_node_reboots)]
}

/// Start-up phase, first tick, question.
const ASKED: Limit = Limit::seconds("kured-asked", 40);
/// Drain, reboot, return and start-up phase.
const COURSE: Limit = Limit::seconds("kured-course", 120);

const NODES: [&str; 3] = ["worker1", "worker2", "worker3"];

fn body(answer: &Answer) -> &str {
    match answer {
        Answer::Http { body, .. } => body,
        _ => "",
    }
}

async fn one_node_reboots(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(1).await?;
    let answerer = Answerer::start().await?;
    let no = Answer::no("maint: not now");
    // worker1 is asked again by GET, worker3 is sent elsewhere; both are blocked.
    answerer.set("worker1", 405, body(&no));
    answerer.set("worker2", 200, body(&no));
    answerer.redirect("worker3", "elsewhere");
    answerer.set("elsewhere", 422, r#"{"status":"error","errorType":"execution","error":"maint says no"}"#);
    let url = format!("--prometheus-url={}", answerer.url());
    let flags = ["--period=2s", "--time-factor=0.05", "--drain-timeout=60s", "--annotate-nodes", &url];
    let mut kureds = Kureds::install(&cluster, Form::Manifest, &flags, 6).await?;
    kureds.wait_pods(&client).await?;
    let boots = boot_ids(&cluster)?;
    let mark = cluster.audit_mark();
    for node in NODES {
        kureds.require(node, true)?;
    }
    kureds.start()?;
    for (node, text) in [
        ("worker1", "Reboot blocked: 1 active alerts: [maint: not now]"),
        ("worker2", "Reboot blocked: 1 active alerts: [maint: not now]"),
        ("worker3", "Reboot blocked: prometheus query error: execution: maint says no"),
    ] {
        wait::until(ASKED, format!("three blocked ticks of {node}"), || async {
            let log = kureds.log(node)?;
            Ok((log.matches(text).count() >= 3).then_some(()))
        })
        .await?;
    }
    questions(&answerer.asked("worker2"))?;
    let by_get = answerer.asked("worker1");
    ensure!(by_get[1].method == "GET" && by_get[1].uri.contains("/api/v1/query?query=ALERTS&time="), "{by_get:?}");
    ensure!(answerer.asked("elsewhere")[0].method == "POST", "a 307 keeps the method");
    ensure!(kured::lock(&client).await?.is_none(), "a blocked node takes no lock");

    let start = Instant::now();
    answerer.set("worker2", 200, body(&Answer::go()));
    wait::until(wait::SHORT, "the lock", || async {
        Ok(kured::lock(&client).await?.filter(|lock| lock["nodeID"] == "worker2"))
    })
    .await?;
    answerer.set("worker2", 200, body(&no));
    let booted = wait::until(COURSE, "another boot ID of worker2", || async {
        let id = cluster.boot_id("worker2")?;
        Ok((id != boots[1]).then_some(id))
    })
    .await?;
    let any = cluster.client(1).await?;
    wait::until(COURSE, "the release of the lock", || async { Ok(kured::lock(&any).await?.is_none().then_some(())) })
        .await?;
    println!("\nfigure kured.cluster_reboot {:.1} s", start.elapsed().as_secs_f64());
    ensure!(kureds.lives("worker2")? == 2, "{} processes on worker2", kureds.lives("worker2")?);
    metric(&kureds, "worker2", 0, 2).await?;
    metric(&kureds, "worker1", 1, 1).await?;

    // A killed process is started again after 5 s.
    let pid = kureds.pid("worker3")?;
    kureds.kill("worker3")?;
    wait::until(wait::SHORT, "the next process of worker3", || async {
        Ok((kureds.lives("worker3")? == 2 && kureds.pid("worker3")? != pid).then_some(()))
    })
    .await?;
    drop(kureds);
    let after = boot_ids(&cluster)?;
    ensure!(after == [boots[0].clone(), booted, boots[2].clone()], "{boots:?} became {after:?}");
    audited(&cluster, &mark)
}

fn boot_ids(cluster: &Cluster) -> Result<[String; 3]> {
    Ok([cluster.boot_id(NODES[0])?, cluster.boot_id(NODES[1])?, cluster.boot_id(NODES[2])?])
}

/// The question has five headers and a form, and all ticks use one connection.
fn questions(asked: &[Asked]) -> Result<()> {
    let first = asked.first().context("no question")?;
    let names: Vec<&str> = first.headers.iter().map(|(name, _)| name.as_str()).collect();
    ensure!(names == ["host", "user-agent", "content-length", "content-type", "accept-encoding"], "{names:?}");
    let value = |name: &str| first.headers.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value);
    ensure!(value("user-agent") == "Go-http-client/1.1", "{first:?}");
    ensure!(value("content-type") == "application/x-www-form-urlencoded", "{first:?}");
    ensure!(first.method == "POST" && first.uri == "/kured/worker2/api/v1/query", "{first:?}");
    let time = first.body.strip_prefix("query=ALERTS&time=").context("another form")?;
    let seconds: f64 = time.parse()?;
    let now = jiff::Timestamp::now().as_second();
    ensure!((seconds - f64::from(u32::try_from(now)?)).abs() < 300.0, "{time}");
    ensure!(asked.iter().all(|one| one.from == first.from), "more than one connection");
    ensure!(first.from.ip().to_string() == "10.77.0.2", "asked from {}", first.from);
    Ok(())
}

async fn metric(kureds: &Kureds, node: &str, value: u8, address: u8) -> Result<()> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let wanted = format!("kured_reboot_required{{node=\"{node}\"}} {value}");
    wait::until(wait::SHORT, format!("`{wanted}` of process {}", kureds.pid(node)?), || async {
        let mut stream = tokio::net::TcpStream::connect(format!("10.77.0.{address}:8080")).await?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await?;
        let mut text = String::new();
        tokio::time::timeout(Duration::from_secs(5), stream.read_to_string(&mut text)).await??;
        Ok(text.lines().any(|line| line == wanted).then_some(()))
    })
    .await
}

/// What the API servers saw of kured.
fn audited(cluster: &Cluster, mark: &str) -> Result<()> {
    let log = cluster.audit_since(mark)?.by(kured::USER);
    // A server that has only just started refuses whom it does not know yet; what was refused went through later.
    let worked = |refused: &Entry| {
        log.0.iter().any(|entry| {
            (&entry.verb, &entry.uri) == (&refused.verb, &refused.uri)
                && entry.server == refused.server
                && entry.time > refused.time
                && (200..300).contains(&entry.code)
        })
    };
    let refused: Vec<_> = log.0.iter().filter(|entry| entry.code == 403 && !worked(entry)).collect();
    ensure!(refused.is_empty(), "more than its rights: {refused:?}");
    ensure!(log.0.iter().all(|entry| entry.user_agent == USER_AGENT), "another user agent");
    for node in NODES {
        let (cordons, uncordons) = (log.cordons(node).len(), log.uncordons(node).len());
        let wanted = usize::from(node == "worker2");
        ensure!((cordons, uncordons) == (wanted, wanted), "{node}: {cordons} cordons, {uncordons} uncordons");
        let annotated = log.writes().iter().filter(|entry| entry.name == node && entry.resource == "nodes").count();
        let wanted = if node == "worker2" { 4 } else { 1 };
        ensure!(annotated == wanted, "{node}: {annotated} writes");
    }
    let locks: Vec<_> = log
        .writes()
        .into_iter()
        .filter(|entry| entry.resource == "daemonsets")
        .map(|entry| (entry.verb.clone(), entry.request["metadata"]["annotations"][kured::LOCK].clone()))
        .collect();
    ensure!(locks.len() == 2 && locks.iter().all(|(verb, _)| verb == "update"), "{locks:?}");
    ensure!(locks[0].1.as_str().is_some_and(|lock| lock.contains(r#""nodeID":"worker2""#)), "{locks:?}");
    ensure!(locks[1].1.is_null(), "{locks:?}");
    let evicted = log.evictions().iter().filter(|entry| (200..300).contains(&entry.code)).count();
    let lists = log.0.iter().filter(|entry| entry.verb == "list").map(|entry| entry.uri.clone()).collect::<Vec<_>>();
    ensure!(lists.len() == 1 && lists[0].contains("spec.nodeName%3Dworker2"), "{lists:?}");
    println!("figure kured.cluster_requests {} requests, {evicted} evictions", log.0.len());
    Ok(())
}
