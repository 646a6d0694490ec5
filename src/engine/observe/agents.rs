//! Pods of DaemonSets that only those tell of (kured's, network agents'): the DaemonSets are read before.

use std::collections::BTreeSet;

use maint_core::facts::{FailureKind, Item, Listed, Metadata, Observation, PodSelector, Source, SourceSpec};

use super::list::{self, Selected};
use crate::ports::Reader;
use crate::runtime::Clock;

/// Lists them with the selectors of their DaemonSets.
pub(super) async fn read<S: Source>(
    reader: &impl Reader,
    clock: &Clock,
    spec: &SourceSpec,
    selectors: Result<Vec<PodSelector>, (FailureKind, String)>,
    metadata: fn(&S) -> &Metadata,
) -> Listed<S> {
    let selected: Vec<Selected> = match selectors {
        Ok(selectors) => selectors.iter().map(|one| (one.namespace.clone(), one.text())).collect(),
        Err((kind, detail)) => return Observation::Failed { kind, detail, at: clock.now() },
    };
    let mut listed = list::read_selected(reader, clock, spec, &selected).await;
    if let Observation::Known { value, .. } = &mut listed {
        // Two selectors may find the same pod.
        let mut seen = BTreeSet::new();
        value.retain(|item: &Item<S>| match item {
            Item::Good(pod) => seen.insert((metadata(pod).namespace.clone(), metadata(pod).name.clone())),
            Item::Malformed(_) => true,
        });
    }
    listed
}
