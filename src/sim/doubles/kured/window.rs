//! kured's window, with its mistake: the day is that of now, also after midnight (`pkg/timewindow`).

use jiff::Timestamp;
use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;

/// When a reboot may be decided on.
#[derive(Debug, Clone)]
pub struct Window {
    days: [bool; 7],
    start: Time,
    end: Time,
    zone: TimeZone,
}

impl Default for Window {
    /// Always: all days, 0:00 to 23:59:59, UTC.
    fn default() -> Self {
        Self { days: [true; 7], start: Time::midnight(), end: Time::constant(23, 59, 59, 0), zone: TimeZone::UTC }
    }
}

/// A window's flag that is no such thing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// A word that is no weekday.
    #[error("Invalid weekday: {0}")]
    Day(String),
    /// A time in none of the forms.
    #[error("Invalid time format: {0}")]
    Time(String),
    /// A zone that is not known.
    #[error("unknown time zone {0}")]
    Zone(String),
}

const DAYS: [[&str; 3]; 7] = [
    ["sun", "su", "sunday"],
    ["mon", "mo", "monday"],
    ["tue", "tu", "tuesday"],
    ["wed", "we", "wednesday"],
    ["thu", "th", "thursday"],
    ["fri", "fr", "friday"],
    ["sat", "sa", "saturday"],
];

impl Window {
    /// From the values of the four flags. No days at all are never.
    ///
    /// # Errors
    /// What kured itself refuses to start with.
    pub fn parse(days: &[String], start: &str, end: &str, zone: &str) -> Result<Self, WindowError> {
        let mut open = [false; 7];
        for word in days.iter().filter(|word| !word.is_empty()) {
            let small = word.to_ascii_lowercase();
            let found = DAYS.iter().position(|names| names.contains(&small.as_str()));
            let index = found.or_else(|| small.parse().ok().filter(|index| *index < 7));
            open[index.ok_or_else(|| WindowError::Day(word.clone()))?] = true;
        }
        let zone_error = |_| WindowError::Zone(zone.to_owned());
        let known = if zone == "UTC" { TimeZone::UTC } else { TimeZone::get(zone).map_err(zone_error)? };
        Ok(Self { days: open, start: time(start)?, end: time(end)?, zone: known })
    }

    /// Whether now is inside, both ends included. Today's weekday is asked before the wrap over midnight is looked
    /// at: from 22:00 to 04:00 on `fri` is Friday 00:00 to 04:00 and 22:00 to 24:00, and not Saturday morning.
    #[must_use]
    pub fn contains(&self, now: Timestamp) -> bool {
        let local = now.to_zoned(self.zone.clone());
        if !self.days[usize::from(index(local.weekday()))] {
            return false;
        }
        let at = |date: Date, time: Time| date.to_datetime(time).to_zoned(self.zone.clone());
        let (Ok(start), Ok(end)) = (at(local.date(), self.start), at(local.date(), self.end)) else { return false };
        // kured ends its last second a nanosecond before the next one begins.
        let day = jiff::SignedDuration::from_hours(24);
        let nearly = jiff::SignedDuration::new(0, 999_999_999);
        let (mut start, mut end) = (start.timestamp(), end.timestamp() + nearly);
        if self.start > self.end {
            if now < end {
                start -= day;
            } else {
                end += day;
            }
        }
        start <= now && now <= end
    }
}

const fn index(day: Weekday) -> u8 {
    day.to_sunday_zero_offset().unsigned_abs()
}

/// The forms that kured takes: `15:04`, `15:04:05`, `03:04pm`, `15`, `03pm`, `3pm`.
fn time(text: &str) -> Result<Time, WindowError> {
    let wrong = || WindowError::Time(text.to_owned());
    let (digits, half) = match (text.strip_suffix("pm"), text.strip_suffix("am")) {
        (Some(rest), _) => (rest, Some(12)),
        (_, Some(rest)) => (rest, Some(0)),
        _ => (text, None),
    };
    let parts: Vec<i8> =
        digits.split(':').map(|part| part.parse().map_err(|_| wrong())).collect::<Result<_, WindowError>>()?;
    let (hour, minute, second) = match (parts.as_slice(), half) {
        ([hour], _) => (*hour, 0, 0),
        ([hour, minute], _) => (*hour, *minute, 0),
        ([hour, minute, second], None) => (*hour, *minute, *second),
        _ => return Err(wrong()),
    };
    let hour = match half {
        Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
        Some(_) => return Err(wrong()),
        None => hour,
    };
    Time::new(hour, minute, second, 0).map_err(|_| wrong())
}
