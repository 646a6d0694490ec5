//! Times in records: RFC 3339 UTC, whole seconds.

use jiff::{SignedDuration, Timestamp};

/// The text of an instant, in whole seconds.
#[must_use]
pub fn stamp(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second()).unwrap_or(at).to_string()
}

/// The instant of a text; none if there is none or it is no time.
#[must_use]
pub fn parse_time(text: Option<&String>) -> Option<Timestamp> {
    text.and_then(|text| text.parse().ok())
}

/// An instant some seconds later; the far future where that cannot be expressed.
pub(super) fn after(at: Timestamp, seconds: i64) -> Timestamp {
    at.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}
