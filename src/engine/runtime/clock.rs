//! The wall clock and the monotonic clock.
//!
//! Deadlines in records are wall time; how long something may take is monotonic time, and both follow tokio's time
//! when that is paused. The monotonic clock may stand still while the machine is suspended: nothing that must expire
//! during a suspend rests on it alone.

#![expect(clippy::disallowed_methods, reason = "the one place that reads clocks and sleeps")]

use std::future::Future;
use std::ops::Add;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// A source of time.
#[derive(Debug, Clone)]
pub struct Clock(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Real,
    Simulated { start: Timestamp, origin: tokio::time::Instant, skew: SignedDuration },
}

/// A point of monotonic time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(tokio::time::Instant);

/// Something took longer than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no answer within {} s", limit.as_secs_f64())]
pub struct TimedOut {
    /// The limit that was reached.
    pub limit: Duration,
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub const fn real() -> Self {
        Self(Kind::Real)
    }

    /// A wall clock that shows `start` now and then follows tokio's time, which tests pause.
    #[must_use]
    pub fn simulated(start: Timestamp) -> Self {
        Self(Kind::Simulated { start, origin: tokio::time::Instant::now(), skew: SignedDuration::ZERO })
    }

    /// The same clock with a wall time that is off by `skew`, as another machine's clock may be. The machine's own
    /// clock cannot be bent: there it changes nothing.
    #[must_use]
    pub fn skewed(&self, by: SignedDuration) -> Self {
        match &self.0 {
            Kind::Real => self.clone(),
            Kind::Simulated { start, origin, skew } => {
                Self(Kind::Simulated { start: *start, origin: *origin, skew: skew.saturating_add(by) })
            }
        }
    }

    /// The wall time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Kind::Real => Timestamp::now(),
            Kind::Simulated { start, origin, skew } => {
                let elapsed = SignedDuration::try_from(origin.elapsed()).unwrap_or(SignedDuration::MAX);
                start.saturating_add(elapsed.saturating_add(*skew)).unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// The monotonic time.
    #[must_use]
    pub fn instant(&self) -> Instant {
        Instant(tokio::time::Instant::now())
    }

    /// Waits so long.
    pub async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    /// Waits until then; a past instant returns at once.
    pub async fn sleep_until(&self, instant: Instant) {
        tokio::time::sleep_until(instant.0).await;
    }

    /// Waits for a future, but no longer than `limit`; then the future is dropped.
    ///
    /// # Errors
    /// If the limit is reached first.
    pub async fn timeout<F: Future>(&self, limit: Duration, future: F) -> Result<F::Output, TimedOut> {
        tokio::time::timeout(limit, future).await.map_err(|_| TimedOut { limit })
    }
}

impl Instant {
    /// How long ago `earlier` was; zero if it is later than this.
    #[must_use]
    pub fn duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        // An instant beyond what the platform can express is as good as thirty years from now.
        let far = Duration::from_secs(30 * 365 * 86_400);
        Self(self.0.checked_add(duration).unwrap_or_else(|| self.0 + far))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Timestamp {
        "2026-03-01T02:00:00Z".parse().expect("a time")
    }

    #[tokio::test(start_paused = true)]
    async fn the_simulated_wall_clock_follows_paused_time() {
        let clock = Clock::simulated(start());
        let begun = clock.instant();
        clock.sleep(Duration::from_secs(3 * 3_600)).await;
        assert_eq!(clock.now().to_string(), "2026-03-01T05:00:00Z");
        assert_eq!(clock.instant().duration_since(begun), Duration::from_secs(3 * 3_600));
        assert_eq!(begun.duration_since(clock.instant()), Duration::ZERO, "never negative");
        let late = clock.skewed(SignedDuration::from_secs(-30));
        assert_eq!(late.now().to_string(), "2026-03-01T04:59:30Z");
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_says_its_limit() {
        let clock = Clock::simulated(start());
        let error = clock.timeout(Duration::from_millis(1_500), std::future::pending::<()>()).await.expect_err("late");
        assert_eq!(error.to_string(), "no answer within 1.5 s");
        assert_eq!(clock.timeout(Duration::from_secs(1), async { 7 }).await, Ok(7));
        clock.sleep_until(clock.instant() + Duration::from_secs(5)).await;
        assert_eq!(clock.now().to_string(), "2026-03-01T02:00:06.5Z");
    }
}
