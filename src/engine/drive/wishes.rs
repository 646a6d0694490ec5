//! Wishes that stand on nodes: the leader makes a pending record of each annotation `maint.dev/reboot-requested`.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use maint_core::api::record::Maintenance;
use maint_core::config::Settings;
use maint_core::plan::{ANNOTATED_SOURCES, Annotated, annotated, annotated_nodes};

use super::records::{KubeRecords, Records};
use crate::execute::WriteError;
use crate::ports::{Observe, Wanted};
use crate::runtime::Clock;

/// Shortest and longest time between two looks at all nodes, in seconds; between them a second a node, so that a large
/// cluster is not read all the time for what a person may wait for.
const LOOK_EVERY: (usize, usize) = (60, 600);

/// Writes a wish down. It needs no lease: the record's name makes it happen once, and nothing starts by it.
pub trait Wishes: Send + Sync {
    /// Creates a pending record. False: one of that name exists.
    ///
    /// # Errors
    /// See [`WriteError`].
    fn wish(&self, record: &Maintenance) -> impl Future<Output = Result<bool, WriteError>> + Send;
}

impl Wishes for KubeRecords {
    async fn wish(&self, record: &Maintenance) -> Result<bool, WriteError> {
        self.requests().wish(record).await
    }
}

/// Looks at the nodes again and again. Ends when dropped.
pub(super) async fn watch_annotations<O: Observe, R: Records + Wishes>(
    observe: &O,
    records: &R,
    settings: &Settings,
    clock: &Clock,
) {
    let mut told = BTreeMap::new();
    loop {
        let nodes = match look(observe, records, settings, clock, &mut told).await {
            Ok(nodes) => nodes,
            Err(error) => {
                tracing::warn!(%error, "did not write an annotated wish down");
                0
            }
        };
        let seconds = u64::try_from(nodes.clamp(LOOK_EVERY.0, LOOK_EVERY.1)).unwrap_or(600);
        clock.sleep(Duration::from_secs(seconds)).await;
    }
}

/// One look; gives the number of nodes.
async fn look<O: Observe, R: Records + Wishes>(
    observe: &O,
    records: &R,
    settings: &Settings,
    clock: &Clock,
    told: &mut BTreeMap<String, String>,
) -> Result<usize, WriteError> {
    let wanted = Wanted { sources: ANNOTATED_SOURCES.iter().copied().collect(), target: None };
    let facts = observe.observe(&wanted).await;
    let nodes = facts.nodes.good().count();
    if annotated_nodes(&facts).is_empty() {
        told.clear();
        return Ok(nodes);
    }
    let all = records.list(true).await?;
    for found in annotated(&facts, &all, settings, clock.now()) {
        match found {
            Annotated::Wish(record) => {
                let (name, node) = (record.metadata.name.clone().unwrap_or_default(), &record.spec.node_name);
                if records.wish(&record).await? {
                    tracing::info!(node, record = name, "Wished, since the node is annotated");
                }
            }
            // Said once, not at every look.
            Annotated::Nobody { node, why } => {
                if told.get(&node) != Some(&why) {
                    tracing::warn!(node, why, "nobody can reboot the annotated node");
                    told.insert(node, why);
                }
            }
        }
    }
    Ok(nodes)
}
