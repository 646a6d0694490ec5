//! Openings: the single times at which a window is open.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::config::{Weekday, Window, Zone};

/// Days before an instant on which a window may have opened that is open then: its longest length, and two for what
/// zones differ and clocks change.
const DAYS_BACK: i64 = 9;
/// Weeks looked through for one more opening. In most a window opens; where its hour does not exist it may not.
const SPARE_WEEKS: i64 = 3;

/// One opening of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// Name of the window.
    pub window: String,
    /// The day, in the window's zone, on which it opens and to which all of it belongs.
    pub day: Date,
    /// When it opens.
    pub starts_at: Timestamp,
    /// When it closes: it is not open any more at that instant.
    pub ends_at: Timestamp,
    /// The window's zone.
    pub zone: Zone,
}

impl Opening {
    /// The name of this opening, the same whenever it is asked: window and day, as in `nightly-2026-11-30`.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}-{}", self.window, self.day)
    }

    /// Whether it is open at an instant.
    #[must_use]
    pub fn contains(&self, at: Timestamp) -> bool {
        self.starts_at <= at && at < self.ends_at
    }
}

/// The next openings after an instant, the earliest first; those that start together in the order of the
/// configuration. Fewer than `count` only where there is no window, or time itself ends.
#[must_use]
pub fn next_openings(windows: &[Window], now: Timestamp, count: u8) -> Vec<Opening> {
    let horizon = days_after(now, 7 * (i64::from(count) + SPARE_WEEKS));
    let mut found = openings(windows, now, horizon);
    found.retain(|opening| opening.starts_at > now);
    found.truncate(usize::from(count));
    found
}

/// The openings that ended after `from` and at or before `to`, the earliest end first.
#[must_use]
pub fn ended(windows: &[Window], from: Timestamp, to: Timestamp) -> Vec<Opening> {
    let mut found = openings(windows, from, to);
    found.retain(|opening| opening.ends_at <= to);
    found.sort_by(|a, b| (a.ends_at, &a.window).cmp(&(b.ends_at, &b.window)));
    found
}

/// All openings that end after `from` and start at or before `to`, by their start.
pub(super) fn openings(windows: &[Window], from: Timestamp, to: Timestamp) -> Vec<Opening> {
    let mut found: Vec<Opening> = windows.iter().flat_map(|window| of_window(window, from, to)).collect();
    // A stable sort: those that start together stay in the order of the configuration.
    found.sort_by_key(|opening| opening.starts_at);
    found
}

fn of_window(window: &Window, from: Timestamp, to: Timestamp) -> Vec<Opening> {
    let zone = window.zone.rules();
    let last = zone.to_datetime(days_after(to, 1)).date();
    let mut day = zone.to_datetime(days_after(from, -DAYS_BACK)).date();
    let mut found = Vec::new();
    while day <= last {
        if window.days.contains(&Weekday::of(day)) {
            found.extend(on_day(window, day).filter(|opening| opening.ends_at > from && opening.starts_at <= to));
        }
        match day.tomorrow() {
            Ok(next) => day = next,
            Err(_) => break,
        }
    }
    found
}

/// The opening that belongs to a day. None where its end comes no later than its start, which only a change of the
/// clocks can do; and none where the configuration, which was checked, sets no length.
fn on_day(window: &Window, day: Date) -> Option<Opening> {
    let zone = window.zone.rules();
    let starts_at = instant(zone, day, window.start.0)?;
    let ends_at = match (window.duration, window.end) {
        (Some(length), _) => starts_at.checked_add(length.0).ok()?,
        (None, Some(end)) => {
            let on = if end > window.start { day } else { day.tomorrow().ok()? };
            instant(zone, on, end.0)?
        }
        (None, None) => return None,
    };
    let (window, zone) = (window.name.clone(), window.zone.clone());
    (ends_at > starts_at).then_some(Opening { window, day, starts_at, ends_at, zone })
}

fn instant(zone: &TimeZone, day: Date, time: jiff::civil::Time) -> Option<Timestamp> {
    zone.to_ambiguous_zoned(day.to_datetime(time)).compatible().ok().map(|zoned| zoned.timestamp())
}

/// Some days of 24 hours later, or as far as time goes.
pub(super) fn days_after(at: Timestamp, days: i64) -> Timestamp {
    at.saturating_add(SignedDuration::from_hours(days * 24)).unwrap_or(at)
}
