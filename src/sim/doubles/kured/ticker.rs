//! kured's ticker (`pkg/delaytick`) and the limiter of its client.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Later by a duration; the end of time at the latest.
#[must_use]
pub fn after(at: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// A share of one, in millionths: drawn by the caller, so that chance has one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fraction(u32);

impl Fraction {
    /// Below a million; more is taken modulo.
    #[must_use]
    pub const fn millionths(drawn: u64) -> Self {
        Self((drawn % 1_000_000) as u32)
    }
}

/// Ticks: the first one after half a period to one and a half, then a fixed grid. What falls due while the loop is
/// busy is kept: one tick waits to be handed over and one lies in Go's ticker, all others are lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticker {
    period: Duration,
    next: Timestamp,
    kept: u8,
}

/// How many ticks can wait.
const KEPT: u8 = 2;

impl Ticker {
    /// A ticker that begins now.
    #[must_use]
    pub fn start(now: Timestamp, period: Duration, fraction: Fraction) -> Self {
        let drawn = period.mul_f64(f64::from(fraction.0) / 1e6);
        Self { period: period.max(Duration::from_millis(1)), next: after(now, period / 2 + drawn), kept: 0 }
    }

    /// When the loop gets the tick that it asks for now; that one is spent.
    pub fn take(&mut self, now: Timestamp) -> Timestamp {
        if self.next <= now {
            let late = Duration::try_from(now.duration_since(self.next)).unwrap_or_default();
            let passed = u32::try_from(late.as_nanos() / self.period.as_nanos()).unwrap_or(u32::MAX - 1) + 1;
            self.kept = u8::try_from(passed.min(u32::from(KEPT))).unwrap_or(KEPT).saturating_add(self.kept).min(KEPT);
            self.next = after(self.next, self.period.saturating_mul(passed));
        }
        if self.kept > 0 {
            self.kept -= 1;
            return now;
        }
        let at = self.next;
        self.next = after(at, self.period);
        at
    }
}

/// Which of the client's limiters a request goes through: client-go gives each API group its own unless a rate was
/// set, and kured sets none. That gives the 110 pods in 25 s and the 101 refused evictions in 20 s that were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Nodes and pods.
    Core,
    /// DaemonSets.
    Apps,
    /// Evictions.
    Policy,
    /// Discovery has a limit that is never reached.
    Discovery,
}

/// client-go's defaults: five requests a second, ten at once.
const EVERY: Duration = Duration::from_millis(200);
const BURST: u32 = 10;

/// One limiter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limiter {
    full_at: Option<Timestamp>,
}

impl Limiter {
    /// When a request may leave that is made now.
    pub fn reserve(&mut self, now: Timestamp) -> Timestamp {
        let full_at = self.full_at.unwrap_or(now).max(now);
        let room = EVERY.saturating_mul(BURST - 1);
        let earliest = full_at.checked_sub(SignedDuration::try_from(room).unwrap_or_default()).unwrap_or(now);
        self.full_at = Some(after(full_at, EVERY));
        earliest.max(now)
    }
}
