//! The API server in memory and the real one: one list of behaviours, run here on the real one.

use std::sync::Arc;

use anyhow::{Result, ensure};
use maint_sim::conformance::{Capabilities, run_all};

use super::{Case, case};
use crate::harness::{Cluster, node_name};

/// Behaviours that both servers are asked for at least.
const AT_LEAST: usize = 110;

pub fn cases() -> Vec<Case> {
    vec![case("conformance::real_server", real_server)]
}

async fn real_server(cluster: Arc<Cluster>) -> Result<()> {
    cluster.namespace("conformance").await?;
    let capabilities = Capabilities {
        namespace: "conformance".to_owned(),
        node: Some(node_name(3)),
        pods: true,
        namespaces: true,
        definitions: true,
        // A server forgets revisions only when it starts anew, which is no case of its own here.
        forgotten: None,
    };
    let found = run_all(cluster.client(1).await?.kube(), &capabilities).await;
    let failed: Vec<String> = found
        .iter()
        .filter_map(|(name, result)| result.as_ref().err().map(|failure| format!("{name}: {failure:?}")))
        .collect();
    ensure!(failed.is_empty(), "{} of {} behave otherwise:\n{}", failed.len(), found.len(), failed.join("\n"));
    ensure!(found.len() >= AT_LEAST, "only {} behaviours were asked", found.len());
    println!("figure conformance.behaviours {} behaviours", found.len());
    Ok(())
}
