//! The answers of the matrix's two reads, cell by cell, against the tables that maint's verdicts rest on.

use std::sync::Arc;

use anyhow::{Result, ensure};
use http::Version;

use super::{Case, case};
use crate::harness::Cluster;
use crate::harness::client::{Answer, Client};
use crate::harness::control_plane::Stop;
use crate::harness::net::NODES;
use crate::harness::node_name;
use crate::harness::proxy::Tunnel;

pub fn cases() -> Vec<Case> {
    vec![
        case("tunnels::whole_matrix", whole_matrix),
        case("tunnels::cut", cut),
        case("tunnels::cut_keeping_live_connections", cut_keeping_live),
        case("tunnels::hang", hang),
        case("tunnels::api_server_killed", server_killed),
        case("tunnels::kubelet_gone", kubelet_gone),
        case("tunnels::unhealthy_kubelet", unhealthy_kubelet),
        case("tunnels::unknown_node", unknown_node),
        case("tunnels::forbidden", forbidden),
        case("tunnels::upgrade_header_lost", upgrade_header_lost),
    ]
}

/// The kubelet answered over a fresh connection: its raw 404, nothing of the API server in it.
fn is_whole(answer: &Answer) -> bool {
    answer.version == Version::HTTP_11
        && answer.status == 404
        && answer.content_type().starts_with("text/plain")
        && !answer.has_audit_id()
}

/// The API server could not dial: its own Status, with the audit ID that all of its answers have.
fn is_broken(answer: &Answer) -> bool {
    answer.status == 500 && answer.has_audit_id() && answer.message().starts_with("error dialing backend: ")
}

async fn expect_whole(client: &Client, node: &str) -> Result<()> {
    let fresh = client.fresh_dial(node).await?;
    ensure!(is_whole(&fresh), "fresh dial to {node}: {fresh:?}");
    ensure!(fresh.body == "404 page not found\n", "body {:?}", fresh.body);
    let plain = client.plain_healthz(node).await?;
    ensure!(plain.status == 200 && plain.body == "ok", "healthz of {node}: {plain:?}");
    Ok(())
}

async fn whole_matrix(cluster: Arc<Cluster>) -> Result<()> {
    for i in 1..=NODES {
        let client = cluster.client(i).await?;
        for node in (1..=NODES).map(node_name) {
            let before = cluster.connects(i, &node)?;
            expect_whole(&client, &node).await?;
            let between = cluster.connects(i, &node)?;
            ensure!(between > before, "server {i} did not dial {node} anew");
            // The plain read uses the connection that is kept.
            client.plain_healthz(&node).await?;
            ensure!(cluster.connects(i, &node)? == between, "the plain read of server {i} dialled {node} anew");
        }
    }
    Ok(())
}

async fn cut(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(1).await?;
    expect_whole(&client, "worker2").await?;
    cluster.cut(1, "worker2", Tunnel::Cut)?;
    let fresh = client.fresh_dial("worker2").await?;
    ensure!(is_broken(&fresh), "fresh dial: {fresh:?}");
    ensure!(fresh.message().contains("502 Bad Gateway"), "{}", fresh.message());
    ensure!(fresh.json()?["reason"].is_null(), "a reason: {fresh:?}");
    let plain = client.plain_healthz("worker2").await?;
    ensure!(plain.status == 503 && plain.json()?["reason"] == "ServiceUnavailable", "healthz: {plain:?}");
    ensure!(plain.message().starts_with("error trying to reach service: "), "{}", plain.message());
    // Only this one cell is broken.
    expect_whole(&client, "worker3").await?;
    expect_whole(&cluster.client(3).await?, "worker2").await?;
    cluster.mend(1, "worker2")?;
    expect_whole(&client, "worker2").await
}

async fn cut_keeping_live(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(2).await?;
    expect_whole(&client, "worker3").await?;
    cluster.cut(2, "worker3", Tunnel::CutKeepingLive)?;
    let plain = client.plain_healthz("worker3").await?;
    ensure!(plain.status == 200 && plain.body == "ok", "the kept connection should lie: {plain:?}");
    let fresh = client.fresh_dial("worker3").await?;
    ensure!(is_broken(&fresh), "fresh dial: {fresh:?}");
    cluster.mend(2, "worker3")?;
    expect_whole(&client, "worker3").await
}

async fn hang(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(3).await?.with_limit(std::time::Duration::from_secs(3));
    expect_whole(&client, "worker1").await?;
    cluster.cut(3, "worker1", Tunnel::Hang)?;
    for answer in [client.fresh_dial("worker1").await, client.plain_healthz("worker1").await] {
        ensure!(answer.is_err(), "an answer through a hanging proxy: {answer:?}");
    }
    // The server itself is fine, and so are its other tunnels.
    ensure!(client.call(http::Method::GET, "/readyz", &[], None).await?.status == 200, "/readyz");
    expect_whole(&client, "worker2").await?;
    cluster.mend(3, "worker1")?;
    expect_whole(&client, "worker1").await
}

async fn server_killed(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(3).await?;
    expect_whole(&client, "worker1").await?;
    cluster.stop_apiserver(3, Stop::Kill).await?;
    ensure!(client.fresh_dial("worker1").await.is_err(), "a killed server answered a fresh dial");
    ensure!(client.plain_healthz("worker1").await.is_err(), "a killed server answered");
    // Listed for some time yet: "three are listed" proves nothing just after a crash.
    let listed = crate::harness::control_plane::listed_servers(&cluster.client(1).await?).await?;
    ensure!(listed.len() == NODES, "listed: {listed:?}");
    expect_whole(&cluster.client(1).await?, "worker3").await?;
    cluster.start_apiserver(3)?;
    cluster.wait_servers().await?;
    expect_whole(&cluster.client(3).await?, "worker1").await
}

async fn kubelet_gone(cluster: Arc<Cluster>) -> Result<()> {
    cluster.servers_follow(false);
    let client = cluster.client(1).await?;
    expect_whole(&client, "worker3").await?;
    cluster.power_off("worker3").await?;
    for i in 1..=NODES {
        let client = cluster.client(i).await?;
        let fresh = client.fresh_dial("worker3").await?;
        // The very answer of a cut tunnel; only that the whole column is broken tells them apart.
        ensure!(is_broken(&fresh), "fresh dial by server {i}: {fresh:?}");
        ensure!(client.plain_healthz("worker3").await?.status == 503, "healthz by server {i}");
    }
    cluster.reconnect("worker3").await?;
    cluster.wait_node_back("worker3", None).await?;
    expect_whole(&client, "worker3").await
}

async fn unhealthy_kubelet(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(1).await?;
    cluster.set_kubelet_healthy("worker2", false)?;
    let plain = client.plain_healthz("worker2").await?;
    ensure!(plain.status == 500 && plain.body.contains("syncloop"), "healthz: {plain:?}");
    let fresh = client.fresh_dial("worker2").await?;
    ensure!(is_whole(&fresh), "the path is whole, whatever the kubelet's health: {fresh:?}");
    cluster.set_kubelet_healthy("worker2", true)?;
    expect_whole(&client, "worker2").await
}

async fn unknown_node(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(2).await?;
    for answer in [client.fresh_dial("worker9").await?, client.plain_healthz("worker9").await?] {
        ensure!(answer.status == 404 && answer.has_audit_id(), "{answer:?}");
        ensure!(
            answer.json()?["reason"] == "NotFound" && answer.message() == r#"nodes "worker9" not found"#,
            "{answer:?}"
        );
    }
    Ok(())
}

async fn forbidden(cluster: Arc<Cluster>) -> Result<()> {
    let client = Client::new(&cluster.kubeconfig_of("nobody"), "case").await?;
    for answer in [client.fresh_dial("worker3").await?, client.plain_healthz("worker3").await?] {
        ensure!(answer.status == 403 && answer.has_audit_id(), "{answer:?}");
        let wanted = r#"nodes "worker3" is forbidden: User "nobody" cannot get resource "nodes/proxy" in API group "" at the cluster scope"#;
        ensure!(answer.json()?["reason"] == "Forbidden" && answer.message() == wanted, "{answer:?}");
    }
    Ok(())
}

/// Without the header the same path gets the kubelet's 404 over a kept connection, but with the API server's audit ID.
async fn upgrade_header_lost(cluster: Arc<Cluster>) -> Result<()> {
    let client = cluster.client(1).await?;
    expect_whole(&client, "worker2").await?;
    let before = cluster.connects(1, "worker2")?;
    let lost = client.call(http::Method::GET, "/api/v1/nodes/worker2/proxy/maint-probe", &[], None).await?;
    ensure!(!is_whole(&lost), "a probe without its header looks like a fresh dial: {lost:?}");
    ensure!(cluster.connects(1, "worker2")? == before, "it dialled anew");
    Ok(())
}
