//! Whether a window is open at an instant, since when, and until when.

use jiff::{SignedDuration, Timestamp};

use super::next_openings;
use super::opening::{Opening, days_after, openings};
use crate::config::Window;

/// How far a stretch is followed, in days: windows that touch for ever, as a daily one of 24 hours, have no end.
const STRETCH_DAYS: i64 = 8;
/// How far back the last opening is looked for, in days: two weekly ones.
const LAST_DAYS: i64 = 16;

/// Whether unattended runs may start, as far as windows say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowState {
    /// A window is open.
    Open(Open),
    /// None is.
    Closed(Closed),
}

/// A window is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// The opening that counts: of those that are open the one that opened first.
    pub opening: Opening,
    /// Since when some window is open without a gap; at most 8 days are looked back.
    pub since: Timestamp,
    /// The hard stop: until when some window is open without a gap; at most 8 days are looked ahead.
    pub ends_at: Timestamp,
    /// The last instant at which a run may start that takes as long as expected. It may be over already.
    pub latest_start: Timestamp,
}

/// No window is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// What closed last, if that is not long ago.
    pub last: Option<Opening>,
    /// What opens next; none without windows.
    pub next: Option<Opening>,
}

/// The state of the windows at an instant. `expected` is how long a run is thought to take.
#[must_use]
pub fn state(windows: &[Window], expected: SignedDuration, now: Timestamp) -> WindowState {
    let ahead = openings(windows, now, days_after(now, STRETCH_DAYS));
    // Sorted by their start, and none of them is over: the first is the one that opened first.
    let Some(opening) = ahead.first().filter(|opening| opening.contains(now)) else {
        let mut past = openings(windows, days_after(now, -LAST_DAYS), now);
        past.sort_by_key(|opening| opening.ends_at);
        return WindowState::Closed(Closed { last: past.pop(), next: next_openings(windows, now, 1).pop() });
    };
    let ends_at =
        ahead.iter().fold(opening.ends_at, |end, next| if next.starts_at <= end { end.max(next.ends_at) } else { end });
    let mut back = openings(windows, days_after(now, -STRETCH_DAYS), now);
    back.sort_by_key(|opening| std::cmp::Reverse(opening.ends_at));
    let since = back.iter().fold(opening.starts_at, |since, earlier| {
        if earlier.ends_at >= since { since.min(earlier.starts_at) } else { since }
    });
    let latest_start = ends_at.saturating_sub(expected).unwrap_or(ends_at);
    WindowState::Open(Open { opening: opening.clone(), since, ends_at, latest_start })
}
