//! The last whole look of a drain, for as long as evictions may still rest on it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use maint_core::api::record::Maintenance;
use maint_core::drain::Awaits;
use maint_core::facts::Facts;
use maint_core::plan::Step;

use crate::runtime::{Clock, Instant};

/// How long who goes next may be chosen anew on it. What is chosen last still has two seconds to be sent.
const SERVES: Duration = Duration::from_secs(8);
/// When the world is looked at as a whole again at the latest: the gates of `cordoned` are asked at least so often.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(10);

/// A whole look whose gates agreed to evictions.
pub(super) struct Fresh {
    /// What was seen, and over it what was read anew since.
    pub(super) facts: Facts,
    /// When the gates were asked.
    pub(super) at: Instant,
    /// When they are asked again at the latest.
    pub(super) look_at: Timestamp,
    /// What the drain waits for.
    pub(super) awaits: Awaits,
    /// What people had said by then.
    generation: Option<i64>,
}

impl Fresh {
    /// Of a look and the step that was decided on it just now; none where its gates did not agree.
    pub(super) fn of(facts: Facts, record: &Maintenance, step: &Step, clock: &Clock) -> Option<Self> {
        let awaits = step.awaits.clone()?;
        let look_at = clock.now().saturating_add(LOOK_AGAIN).unwrap_or(Timestamp::MAX);
        Some(Self { facts, at: clock.instant(), look_at, awaits, generation: record.metadata.generation })
    }

    /// Whether it is young enough, and nobody has said anything since.
    pub(super) fn serves(&self, record: &Maintenance, now: Instant) -> bool {
        now.duration_since(self.at) < SERVES && self.knows(record)
    }

    /// Whether nobody has said anything since: a wish to cancel, or to delete the record, is a new generation.
    pub(super) fn knows(&self, record: &Maintenance) -> bool {
        self.generation == record.metadata.generation
    }
}
