//! Real time beside virtual time: a night that a person can follow, and that is the same night at every speed.
//!
//! Virtual time goes from timer to timer, as in every night, but never ahead of what real time allows. So the pace
//! changes nothing of what happens: only how long somebody waits for it.

use std::cell::Cell;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use maint_engine::runtime::Clock as RealClock;

use crate::clock::{Clock, sleep, wait_for_real};

/// How long real time is waited for at a time.
const TICK: Duration = Duration::from_millis(10);

/// How far virtual time goes at a time: then the pace is looked at again, which may be another one.
const STEP: Duration = Duration::from_secs(1);

/// What virtual time keeps to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Nothing: as fast as the machine can.
    Unbound,
    /// So many virtual seconds a real one.
    Speed(f64),
    /// The machine's clock: what is behind it is caught up with at once.
    Machine,
}

/// Keeps virtual time to its pace.
#[derive(Debug)]
pub struct Pacer {
    clock: Clock,
    real: RealClock,
    pace: Cell<Pace>,
    /// Virtual and real time when the pace was set.
    since: Cell<(Timestamp, Timestamp)>,
}

impl Pacer {
    /// A pacer of this clock.
    #[must_use]
    pub fn new(clock: Clock, pace: Pace) -> Self {
        let real = RealClock::real();
        let since = Cell::new((clock.now(), real.now()));
        Self { clock, real, pace: Cell::new(pace), since }
    }

    /// Another pace from now on.
    pub fn set(&self, pace: Pace) {
        self.since.set((self.clock.now(), self.real.now()));
        self.pace.set(pace);
    }

    /// Whether virtual time has not got yet to where it may be.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        // A second is what records tell apart.
        let second = SignedDuration::from_secs(1);
        allowed(self.pace.get(), self.since.get(), self.real.now())
            .is_some_and(|to| to.duration_since(self.clock.now()) > second)
    }

    /// Keeps to it, for ever.
    pub async fn run(&self) {
        loop {
            let (now, real) = (self.clock.now(), self.real.now());
            let ahead = allowed(self.pace.get(), self.since.get(), real).map(|to| to.duration_since(now));
            match ahead {
                None => sleep(STEP).await,
                Some(ahead) if ahead.is_positive() => sleep(ahead.unsigned_abs().min(STEP)).await,
                Some(_) => wait_for_real(TICK).await,
            }
        }
    }
}

/// How far virtual time may go when real time is at `real`; none is as far as it likes.
fn allowed(pace: Pace, (since, real_since): (Timestamp, Timestamp), real: Timestamp) -> Option<Timestamp> {
    match pace {
        Pace::Unbound => None,
        Pace::Machine => Some(real),
        Pace::Speed(speed) => {
            let passed = real.duration_since(real_since).as_secs_f64() * speed;
            let passed = SignedDuration::try_from_secs_f64(passed).unwrap_or(SignedDuration::ZERO);
            Some(since.checked_add(passed).unwrap_or(Timestamp::MAX))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn virtual_time_goes_as_far_as_the_pace_allows() {
        let since = (at("2026-11-30T02:00:00Z"), at("2026-12-24T18:00:00Z"));
        let rows = [
            ("a minute a second", Pace::Speed(60.0), "2026-12-24T18:00:01.5Z", Some("2026-11-30T02:01:30Z")),
            ("half as fast as life", Pace::Speed(0.5), "2026-12-24T18:00:10Z", Some("2026-11-30T02:00:05Z")),
            ("not at once", Pace::Speed(60.0), "2026-12-24T18:00:00Z", Some("2026-11-30T02:00:00Z")),
            ("a clock that was set back", Pace::Speed(1.0), "2026-12-24T17:59:59Z", Some("2026-11-30T01:59:59Z")),
            ("the machine's clock", Pace::Machine, "2026-12-24T18:00:07Z", Some("2026-12-24T18:00:07Z")),
            ("unbound", Pace::Unbound, "2026-12-24T18:00:07Z", None),
        ];
        for (row, pace, real, wanted) in rows {
            assert_eq!(allowed(pace, since, at(real)), wanted.map(at), "{row}");
        }
    }

    #[test]
    fn a_pace_that_changes_is_kept_at_once() {
        let ahead = crate::demo::runtime().expect("a runtime").block_on(async {
            let clock = Clock::starting_at(RealClock::real().now() - SignedDuration::from_mins(10));
            // Ten hours in the first tick: much more than it has time for.
            let pacer = Pacer::new(clock, Pace::Speed(36_000.0));
            let script = async {
                wait_for_real(Duration::from_secs(1)).await;
                sleep(Duration::from_secs(60)).await;
                pacer.set(Pace::Machine);
                while pacer.is_behind() {
                    sleep(Duration::from_millis(500)).await;
                }
                sleep(Duration::from_secs(3)).await;
            };
            tokio::select! {
                biased;
                () = pacer.run() => {}
                () = script => {}
            }
            clock.now().duration_since(RealClock::real().now())
        });
        assert!(ahead < SignedDuration::from_secs(1), "the machine's clock is kept to: {ahead:?}");
    }

    #[test]
    fn a_minute_a_second_is_waited_for() {
        let runtime = crate::demo::runtime().expect("a runtime");
        let (virtual_seconds, real_seconds) = runtime.block_on(async {
            let clock = Clock::starting_at(at("2026-11-30T02:00:00Z"));
            let pacer = Pacer::new(clock, Pace::Speed(600.0));
            let real = RealClock::real().now();
            tokio::select! {
                biased;
                () = pacer.run() => {}
                () = sleep(Duration::from_secs(120)) => {}
            }
            let run = clock.now().duration_since(at("2026-11-30T02:00:00Z"));
            (run.as_secs(), RealClock::real().now().duration_since(real).as_secs_f64())
        });
        assert_eq!(virtual_seconds, 120);
        assert!(real_seconds > 0.15, "two minutes at 600 a second take 0.2 s, not {real_seconds}");
    }
}
