//! Ticks that say "look again", by tokio-cron-scheduler: the only file that knows it.
//!
//! It reads the real clock twice a second, turns a zone into the offset of the day on which a job was made, loses the
//! ticks of a time in which it did not run, and lets jobs overlap. None of that matters here: the schedule is in UTC,
//! a tick only wakes, and whoever is woken judges the instant anew by [`maint_core::windows`]. Without any tick the
//! controller looks as often by itself. Ticks that come while one is waiting are one tick.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};

/// Every half minute, in UTC: second, minute, hour, day, month, weekday.
const EVERY_30_SECONDS: &str = "0,30 * * * * *";
/// Messages that the scheduler's parts may have on their way to each other. One job needs few.
const CHANNEL_SIZE: usize = 16;

/// Ticks could not be started.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the scheduler of ticks did not start: {0}")]
pub struct TickError(#[from] JobSchedulerError);

impl TickError {
    /// Label of metrics and Events.
    #[must_use]
    pub const fn category(&self) -> &'static str {
        "ticks"
    }
}

/// A running scheduler. It ticks until it is stopped, or the runtime ends.
pub struct Ticks(JobScheduler);

impl Ticks {
    /// Starts ticks that wake, in production only: they follow the real clock and never a simulated one.
    ///
    /// # Errors
    /// If the scheduler does not start. Nothing depends on it: whoever called goes on without.
    pub async fn start(wake: Arc<Notify>) -> Result<Self, TickError> {
        Self::by(EVERY_30_SECONDS, wake).await
    }

    async fn by(schedule: &str, wake: Arc<Notify>) -> Result<Self, TickError> {
        let scheduler = JobScheduler::new_with_channel_size(CHANNEL_SIZE).await?;
        scheduler.add(Job::new(schedule, move |_, _| wake.notify_one())?).await?;
        scheduler.start().await?;
        Ok(Self(scheduler))
    }

    /// Ends the ticks within a second. A job that is just at work goes on; it only wakes.
    pub async fn stop(mut self) {
        if let Err(error) = self.0.shutdown().await {
            tracing::debug!(%error, "the scheduler of ticks did not stop");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::runtime::Clock;

    #[tokio::test]
    async fn a_tick_wakes_and_several_are_one() {
        let (clock, wake) = (Clock::real(), Arc::new(Notify::new()));
        let ticks = Ticks::by("* * * * * *", Arc::clone(&wake)).await.expect("it starts");
        for tick in ["a first", "a second"] {
            clock.timeout(Duration::from_secs(20), wake.notified()).await.expect(tick);
        }
        ticks.stop().await;
    }

    #[tokio::test]
    async fn the_schedule_is_one_that_is_understood() {
        let ticks = Ticks::start(Arc::new(Notify::new())).await.expect("it starts");
        ticks.stop().await;
        let odd = Ticks::by("every night", Arc::new(Notify::new())).await.map(drop);
        assert_eq!(odd.map_err(|error| error.category()), Err("ticks"));
    }
}
