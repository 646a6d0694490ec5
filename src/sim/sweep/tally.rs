//! What many nights came to. The order in which they are added does not show.

use std::collections::BTreeMap;

use super::Outcome;
use crate::kinds::{Family, FaultKind};

/// What many nights came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Nights of each family.
    pub nights: BTreeMap<Family, u64>,
    /// How runs ended.
    pub ends: BTreeMap<String, u64>,
    /// How often each kind was hit.
    pub hits: BTreeMap<FaultKind, u64>,
    /// In how many nights each kind was hit.
    pub nights_hit: BTreeMap<FaultKind, u64>,
    /// Steps of all nights.
    pub steps: u64,
    /// Virtual seconds of all nights.
    pub seconds: i64,
    /// The bad nights, by seed.
    pub bad: BTreeMap<u64, Outcome>,
}

impl Tally {
    /// Adds a night.
    pub fn add(&mut self, outcome: Outcome) {
        *self.nights.entry(outcome.drawn.family).or_insert(0) += 1;
        for end in &outcome.ends {
            *self.ends.entry(end.clone()).or_insert(0) += 1;
        }
        for (kind, count) in &outcome.hits {
            *self.hits.entry(*kind).or_insert(0) += count;
            *self.nights_hit.entry(*kind).or_insert(0) += 1;
        }
        self.steps += outcome.steps as u64;
        self.seconds += outcome.seconds;
        if !outcome.wrongs.is_empty() {
            self.bad.insert(outcome.drawn.seed, outcome);
        }
    }

    /// All nights.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.nights.values().sum()
    }

    /// Rules that were broken, over all nights.
    #[must_use]
    pub fn violations(&self) -> usize {
        self.bad.values().map(|outcome| outcome.wrongs.len()).sum()
    }

    /// Kinds that nobody was hit by.
    #[must_use]
    pub fn missed(&self) -> Vec<FaultKind> {
        FaultKind::ALL.iter().copied().filter(|kind| !self.hits.contains_key(kind)).collect()
    }
}
