//! Time, randomness and tasks: everything that would make two nights with the same seed differ enters through [`Env`].
//!
//! Production uses [`Env::production`]. The simulator uses [`Env::simulated`] under tokio's paused time: one seed and
//! one start instant give the same night byte for byte.

mod clock;
mod rng;
mod tasks;

pub use clock::{Clock, Instant, TimedOut};
pub use rng::Rng;
pub use tasks::{Pause, TaskOwner, Tasks};

/// What a part of the engine gets instead of global clocks, spawns and randomness.
#[derive(Debug, Clone)]
pub struct Env {
    /// Wall clock, monotonic clock, sleeps.
    pub clock: Clock,
    /// Jitter and names.
    pub rng: Rng,
    /// Spawns.
    pub tasks: Tasks,
}

impl Env {
    /// The real clock and a seed from the operating system. The owner keeps the tasks alive: dropping it ends them.
    #[must_use]
    pub fn production() -> (Self, TaskOwner) {
        Self::of(Clock::real(), Rng::from_os())
    }

    /// A simulated clock that starts at `start` and follows tokio's (paused) time, and one seed.
    #[must_use]
    pub fn simulated(start: jiff::Timestamp, seed: u64) -> (Self, TaskOwner) {
        Self::of(Clock::simulated(start), Rng::seeded(seed))
    }

    fn of(clock: Clock, rng: Rng) -> (Self, TaskOwner) {
        let owner = TaskOwner::new();
        (Self { clock, rng, tasks: owner.tasks() }, owner)
    }
}
