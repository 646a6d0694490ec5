//! Virtual time: the start of the night plus what tokio's clock has run since, which tests pause.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// The one clock of a simulated cluster.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Timestamp,
    origin: Instant,
}

impl Clock {
    /// A clock that shows `start` now. Needs a tokio runtime; paused time makes it virtual.
    #[must_use]
    pub fn starting_at(start: Timestamp) -> Self {
        Self { start, origin: Instant::now() }
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let run = SignedDuration::try_from(self.origin.elapsed()).unwrap_or(SignedDuration::MAX);
        self.start.checked_add(run).unwrap_or(Timestamp::MAX)
    }

    /// The instant at which the clock will show `at`; a past one is the origin at the earliest.
    #[must_use]
    pub fn instant(&self, at: Timestamp) -> Instant {
        let ahead = std::time::Duration::try_from(at.duration_since(self.start)).unwrap_or_default();
        self.origin + ahead
    }
}

/// Monotonic time: to tell how long something took.
#[must_use]
pub fn monotonic() -> Instant {
    Instant::now()
}

/// Waits in virtual time; the one sleep of the simulated cluster. A test that pauses time does not wait.
#[expect(clippy::disallowed_methods, reason = "the simulated cluster is itself the outside that others wait for")]
pub fn sleep(duration: std::time::Duration) -> tokio::time::Sleep {
    tokio::time::sleep(duration)
}

/// Waits in real time, under paused time too: virtual time stands still meanwhile, since tokio does not move it on as
/// long as a thread of its pool is at work. Connections are served as ever.
pub async fn wait_for_real(duration: std::time::Duration) {
    #[expect(clippy::disallowed_methods, reason = "real time passes only for whoever looks on")]
    let wait = tokio::task::spawn_blocking(move || std::thread::sleep(duration));
    // A pool that is shutting down does not wait.
    let _ended = wait.await;
}
