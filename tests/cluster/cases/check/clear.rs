//! Exit 0: healthy, and what may be missing.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use maint_core::api::Policy;
use maint_core::config::Settings;
use maint_core::gates::GATES;
use maint_engine::client::AccessOptions;
use maint_engine::observe::LiveObserver;
use maint_engine::ports::{Observe as _, Wanted};
use maint_engine::runtime::Clock;
use serde_json::Value;

use super::super::{Case, case};
use super::{Answer, check, maint, row_done};
use crate::harness::longhorn::NAMESPACE;
use crate::harness::net::NODES;
use crate::harness::{Cluster, longhorn, objects};

/// Sweeps that the figure is the median of.
const SWEEPS: usize = 15;

pub fn cases() -> Vec<Case> {
    vec![
        case("check::healthy", healthy),
        case("check::without_autoscaler", without_autoscaler),
        case("check::without_longhorn", without_longhorn),
        case("check::matrix_is_always_whole", matrix),
    ]
}

/// Clear, and nothing warns but that nobody has found the nodes good so far.
fn expect_clear(answer: &Answer, warned: &[(&str, &str)]) -> Result<()> {
    answer.expect(0, "block", "unknown", &[])?;
    let warnings: Vec<_> = answer
        .findings()
        .iter()
        .filter(|finding| finding["status"] == "warn")
        .map(|finding| (finding["id"].as_str().unwrap_or(""), finding["reason"].as_str().unwrap_or("")))
        .collect();
    // A configuration without windows: nothing would start by itself.
    let wanted = [&[("control", "PostCheckMissing"), ("window", "NoWindowConfigured")], warned].concat();
    ensure!(warnings == wanted, "warnings {warnings:?}, wanted {wanted:?}");
    row_done();
    Ok(())
}

async fn healthy(cluster: Arc<Cluster>) -> Result<()> {
    let mark = cluster.audit_mark();
    let answer = check(&cluster, &cluster.kubeconfig_path(), &["worker2"]).await?;
    expect_clear(&answer, &[])?;
    let gates: Vec<_> = answer.findings().iter().filter_map(|finding| finding["id"].as_str()).collect();
    let asked = GATES.iter().filter(|gate| gate.default_policy != Policy::Off);
    let all: Vec<_> = asked.map(|gate| gate.id.as_str()).collect();
    ensure!(gates == all, "gates {gates:?}");
    for gate in all {
        ensure!(answer.text.contains(&format!(" {gate} ")), "people are not told of {gate}:\n{}", answer.text);
    }
    for (gate, part) in [
        ("coredns-hpa", "HorizontalPodAutoscaler kube-system/coredns scales"),
        ("longhorn-volumes", "all 3 Longhorn volumes are whole (2 attached)"),
        ("longhorn-system", "all 3 Longhorn nodes are Ready, with what a drain of worker2 needs of them"),
        (
            "control-plane",
            "API servers worker1, worker2, worker3 judged; 2 of 3 etcd voters are healthy without worker2",
        ),
        ("kubelet-reachability", "all 9 paths from 3 API servers to the kubelets are whole"),
    ] {
        let message = answer.finding(gate)?["message"].as_str().unwrap_or("");
        ensure!(message.contains(part) && answer.text.contains(part), "{gate} says {message}");
    }
    // All nodes at once, and whatever is asked, nothing is changed.
    let answer = check(&cluster, &cluster.kubeconfig_path(), &[]).await?;
    let nodes = answer.report["nodes"].as_array().map_or(0, Vec::len);
    ensure!(answer.exit == 0 && nodes == NODES, "all nodes: exit {}, {nodes} nodes:\n{}", answer.exit, answer.text);
    let log = cluster.audit_since(&mark)?.by("maint/");
    ensure!(!log.0.is_empty() && log.writes().is_empty(), "{} requests, writes: {:?}", log.0.len(), log.writes());
    Ok(())
}

async fn without_autoscaler(cluster: Arc<Cluster>) -> Result<()> {
    cluster.client(1).await?.delete(objects::COREDNS_HPA, None).await?;
    let answer = check(&cluster, &cluster.kubeconfig_path(), &["worker2"]).await?;
    expect_clear(&answer, &[("coredns-hpa", "CoreDNSFloorMissing")])
}

async fn without_longhorn(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(1).await?;
    longhorn::remove(&client).await?;
    let judged = judge_without_longhorn(&cluster).await;
    // Also after a failure: nothing else works without the kinds.
    cluster.longhorn.create(&client).await?;
    judged
}

async fn judge_without_longhorn(cluster: &Cluster) -> Result<()> {
    let answer = check(cluster, &cluster.kubeconfig_path(), &["worker2"]).await?;
    expect_clear(&answer, &[])?;
    for gate in ["longhorn-volumes", "longhorn-system"] {
        let finding = answer.finding(gate)?;
        let absent = finding["status"] == "not-applicable" && finding["reason"] == "NotInstalled";
        ensure!(absent, "in {NAMESPACE}: {finding}");
    }
    Ok(())
}

/// Hundreds of probes of a healthy cluster, each one green; and how long a sweep takes.
async fn matrix(cluster: Arc<Cluster>) -> Result<()> {
    for _ in 0..5 {
        let run = maint(&cluster, &cluster.kubeconfig_path(), &["matrix", "-o", "json"]).await?;
        let report: Value = serde_json::from_str(&run.stdout)?;
        ensure!(run.exit == 0 && report["counts"]["green"] == 9, "exit {}: {}", run.exit, run.stdout);
    }
    let options = AccessOptions { kubeconfig: Some(cluster.kubeconfig_path()), ..AccessOptions::default() };
    let observer = LiveObserver::connect(&options, Arc::new(Settings::default()), Clock::real()).await?;
    let wanted = Wanted {
        sources: Wanted::PROBE_SOURCES.iter().copied().chain([maint_core::api::SourceId::Matrix]).collect(),
        target: None,
        every_pair: false,
    };
    let mut taken = Vec::new();
    for sweep in 0..SWEEPS {
        let start = std::time::Instant::now();
        let facts = observer.observe(&wanted).await;
        taken.push(start.elapsed().as_secs_f64() * 1_000.0);
        let matrix = facts.matrix.known().context("no matrix")?;
        let odd: Vec<_> = matrix.cells.iter().filter(|cell| cell.verdict.as_str() != "green").collect();
        ensure!(matrix.cells.len() == NODES * NODES && odd.is_empty(), "sweep {sweep}: {odd:?}");
    }
    taken.sort_by(f64::total_cmp);
    println!("\nfigure matrix.3x3.ms {:.0} ms", taken[SWEEPS / 2]);
    Ok(())
}
