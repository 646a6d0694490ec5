//! The pods that run kured: where they are is known from their DaemonSets alone, so these are read before.

use std::collections::BTreeSet;

use maint_core::facts::{DaemonSet, Item, KuredPod, Listed, Observation, Source as _};
use maint_core::kured::pod_selectors;

use super::list::{self, Selected};
use crate::ports::Reader;
use crate::runtime::Clock;

/// Lists them with the selectors of the DaemonSets that run kured.
pub(super) async fn read(reader: &impl Reader, clock: &Clock, daemon_sets: &Listed<DaemonSet>) -> Listed<KuredPod> {
    let selected: Vec<Selected> = match pod_selectors(daemon_sets) {
        Ok(selectors) => selectors.iter().map(|one| (one.namespace.clone(), one.text())).collect(),
        Err((kind, detail)) => return Observation::Failed { kind, detail, at: clock.now() },
    };
    let mut listed = list::read_selected(reader, clock, &KuredPod::SPEC, &selected).await;
    if let Observation::Known { value, .. } = &mut listed {
        // Two selectors may find the same pod.
        let mut seen = BTreeSet::new();
        value.retain(|item: &Item<KuredPod>| match item {
            Item::Good(pod) => seen.insert((pod.metadata.namespace.clone(), pod.metadata.name.clone())),
            Item::Malformed(_) => true,
        });
    }
    listed
}
