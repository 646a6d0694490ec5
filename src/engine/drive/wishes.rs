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
    let wanted = Wanted { sources: ANNOTATED_SOURCES.iter().copied().collect(), target: None, every_pair: false };
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use maint_core::facts::{Facts, Node, Observation, Source};
    use serde_json::json;

    use super::*;

    /// A cluster with one node, annotated or not, and what was created in it.
    #[derive(Default)]
    struct World {
        annotated: Mutex<bool>,
        records: Mutex<Vec<Maintenance>>,
        observed: Mutex<u32>,
        conflicts: Mutex<u32>,
    }

    impl Observe for World {
        async fn observe(&self, wanted: &Wanted) -> Facts {
            *self.observed.lock().expect("lock") += 1;
            assert_eq!(wanted.sources, ANNOTATED_SOURCES.iter().copied().collect());
            let mut node = json!({"metadata": {"name": "worker2", "annotations": {}}, "spec": {},
                "status": {"nodeInfo": {"bootID": "0f3c9a1b-7"}}});
            if *self.annotated.lock().expect("lock") {
                node["metadata"]["annotations"] = json!({"maint.dev/reboot-requested": "new kernel"});
            }
            let at = "2026-03-01T02:00:00Z".parse().expect("a time");
            Facts {
                nodes: Observation::Known { value: vec![Node::item(&node)], at },
                daemon_sets: Observation::Known { value: vec![], at },
                ..Facts::default()
            }
        }
    }

    impl Records for World {
        async fn get(&self, _: &str) -> Result<Option<Maintenance>, WriteError> {
            Ok(None)
        }

        async fn list(&self, _: bool) -> Result<Vec<Maintenance>, WriteError> {
            // As a standby that made the record meanwhile would leave it.
            Ok(vec![])
        }
    }

    impl Wishes for World {
        async fn wish(&self, record: &Maintenance) -> Result<bool, WriteError> {
            let mut records = self.records.lock().expect("lock");
            if records.iter().any(|known| known.metadata.name == record.metadata.name) {
                *self.conflicts.lock().expect("lock") += 1;
                return Ok(false);
            }
            records.push(record.clone());
            Ok(true)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_annotated_node_gets_one_record_however_often_it_is_looked_at() {
        let (env, _owner) = crate::testing::env();
        for (pod, wanted) in [(true, vec!["worker2-0f3c9a1b-1"]), (false, vec![])] {
            let world = World::default();
            let mut settings = Settings::default();
            settings.action.pod.enabled = pod;
            let run = async {
                // Nothing is wished before somebody does.
                env.clock.sleep(Duration::from_secs(90)).await;
                assert_eq!(*world.observed.lock().expect("lock"), 2);
                *world.annotated.lock().expect("lock") = true;
                env.clock.sleep(Duration::from_secs(180)).await;
            };
            tokio::select! {
                biased;
                () = watch_annotations(&world, &world, &settings, &env.clock) => {}
                () = run => {}
            }
            let records = world.records.lock().expect("lock");
            let names: Vec<&str> = records.iter().filter_map(|record| record.metadata.name.as_deref()).collect();
            assert_eq!(names, wanted);
            assert_eq!(*world.conflicts.lock().expect("lock"), if pod { 2 } else { 0 });
            assert!(records.iter().all(|record| record.spec.action == "pod"));
        }
    }
}
