//! The cluster itself: servers, DNS, autoscaler.

use std::sync::Arc;

use anyhow::{Result, ensure};

use super::{Case, case};
use crate::harness::Cluster;
use crate::harness::binaries::KUBERNETES;
use crate::harness::net::NODES;

pub fn cases() -> Vec<Case> {
    vec![case("plane::servers", servers)]
}

async fn servers(cluster: Arc<Cluster>) -> Result<()> {
    for i in 1..=NODES {
        let version = cluster.client(i).await?.get("/version").await?;
        ensure!(version["gitVersion"] == KUBERNETES, "server {i}: {version}");
    }
    Ok(())
}
