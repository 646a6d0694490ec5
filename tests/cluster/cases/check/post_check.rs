//! `maint post-check`, and `maint matrix` over several sweeps: what only the real API servers and tunnels show.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::super::{Case, case};
use super::{Run, maint};
use crate::harness::audit::Entry;
use crate::harness::control_plane::Stop;
use crate::harness::net::NODES;
use crate::harness::proxy::Tunnel;
use crate::harness::{Cluster, wait};

pub fn cases() -> Vec<Case> {
    vec![
        case("post_check::whole", whole),
        case("post_check::cut_tunnel", cut_tunnel),
        case("post_check::api_server_killed", api_server_killed),
        case("post_check::heals_while_it_waits", heals),
    ]
}

async fn ask(cluster: &Cluster, arguments: &[&str]) -> Result<Run> {
    maint(cluster, &cluster.kubeconfig_path(), arguments).await
}

fn line<'a>(report: &'a Value, id: &str) -> Result<&'a Value> {
    let lines = report["lines"].as_array().context("no lines")?;
    lines.iter().find(|line| line["id"] == id).with_context(|| format!("no line {id}: {report}"))
}

/// Green, by every rendering, and nothing is written.
async fn whole(cluster: Arc<Cluster>) -> Result<()> {
    let mark = cluster.audit_mark();
    let run = ask(&cluster, &["post-check", "--settle", "3s", "--timeout", "50s"]).await?;
    ensure!(run.exit == 0 && run.stdout.starts_with("CLEAR "), "{run:?}");
    ensure!(run.stderr.contains("all is whole, and must stay so for 3 s"), "it says what it waits for: {}", run.stderr);
    let run = ask(&cluster, &["post-check", "--timeout", "0s", "-o", "json"]).await?;
    let report: Value = serde_json::from_str(&run.stdout)?;
    ensure!(run.exit == 0 && report["verdict"] == "clear" && run.stderr.is_empty(), "{run:?}");
    let paths = line(&report, "kubelet-reachability")?["message"].as_str().unwrap_or_default().to_owned();
    ensure!(paths.contains("all 9 paths from 3 API servers to the kubelets are whole"), "{paths}");
    let boots = line(&report, "boots")?["evidence"].as_array().map_or(0, Vec::len);
    ensure!(boots == NODES, "{boots} boots: {report}");
    let log = cluster.audit_since(&mark)?.by("maint/");
    ensure!(!log.0.is_empty() && log.writes().is_empty(), "{} requests, writes: {:?}", log.0.len(), log.writes());
    Ok(())
}

/// Each way to cut one pair, live connections dropped or kept, names exactly that pair.
async fn cut_tunnel(cluster: Arc<Cluster>) -> Result<()> {
    for (number, node, way) in [(1, "worker2", Tunnel::Cut), (3, "worker1", Tunnel::CutKeepingLive)] {
        cluster.cut(number, node, way)?;
        let told = named(&cluster, number, node).await;
        cluster.mend(number, node)?;
        told?;
    }
    let run = ask(&cluster, &["matrix", "--sweeps", "3", "--every", "1s"]).await?;
    ensure!(run.exit == 0 && run.stdout.contains(", 3 sweeps, fresh connections, "), "healed: {run:?}");
    Ok(())
}

async fn named(cluster: &Cluster, number: usize, node: &str) -> Result<()> {
    let sentence = format!("API server worker{number} has no session to {node}'s agent");
    let run = ask(cluster, &["post-check", "--timeout", "0s"]).await?;
    ensure!(run.exit == 3, "{run:?}");
    ensure!(run.stdout.starts_with("BLOCKED by kubelet-reachability (KubeletUnreachable)"), "{}", run.stdout);
    ensure!(run.stdout.contains(&sentence) && run.stdout.contains("every other pair works"), "{}", run.stdout);
    ensure!(run.stdout.contains("maint will not do it"), "{}", run.stdout);
    let run = ask(cluster, &["matrix", "--sweeps", "2", "--every", "1s", "-o", "json"]).await?;
    let report: Value = serde_json::from_str(&run.stdout)?;
    let pair = &report["suspects"][0]["pairs"];
    let wanted = serde_json::json!([{ "server": format!("worker{number}"), "node": node }]);
    ensure!(run.exit == 3 && report["shape"] == "pair" && *pair == wanted, "exit {}: {report}", run.exit);
    // Of another node, neither its row nor its column has the pair.
    let other =
        (1..=NODES).map(|i| format!("worker{i}")).find(|name| *name != format!("worker{number}") && name != node);
    let run = ask(cluster, &["matrix", "--node", &other.context("a third node")?]).await?;
    ensure!(run.exit == 0 && run.stdout.starts_with("WHOLE 5 of 5"), "{run:?}");
    Ok(())
}

/// A dead API server never makes the matrix green, and is named for itself.
async fn api_server_killed(cluster: Arc<Cluster>) -> Result<()> {
    cluster.stop_apiserver(3, Stop::Kill).await?;
    let run = ask(&cluster, &["post-check", "--timeout", "0s"]).await;
    cluster.start_apiserver(3)?;
    cluster.wait_servers().await?;
    let run = run?;
    ensure!(run.exit == 3 && run.stdout.contains("API server worker3"), "{run:?}");
    ensure!(run.stdout.contains("APIServerNotReady") && run.stdout.contains("APIServerUnreachable"), "{run:?}");
    Ok(())
}

/// It waits, says for what, and ends green when the pair is mended.
async fn heals(cluster: Arc<Cluster>) -> Result<()> {
    cluster.cut(2, "worker3", Tunnel::Cut)?;
    let mark = cluster.audit_mark();
    let mending = async {
        // Mended as soon as maint has seen it.
        let seen = wait::until(wait::SHORT, "maint's dial of the cut pair", || async {
            let log = cluster.audit_since(&mark)?.by("maint/");
            let dialled = |entry: &Entry| {
                let of_pair = entry.server == 2 && entry.resource == "nodes/proxy" && entry.name == "worker3";
                of_pair && entry.stage == "ResponseComplete" && entry.code == 500
            };
            Ok(log.0.iter().any(dialled).then_some(()))
        });
        seen.await.and(cluster.mend(2, "worker3"))
    };
    let arguments = ["post-check", "--settle", "2s", "--timeout", "50s"];
    let (run, mended) = tokio::join!(ask(&cluster, &arguments), mending);
    mended?;
    let run = run?;
    ensure!(run.exit == 0 && run.stdout.starts_with("CLEAR "), "{run:?}");
    ensure!(run.stderr.contains("API server worker2 has no session to worker3's agent"), "{}", run.stderr);
    Ok(())
}
