//! Lengths and instants as people type them: `10m`, `1h30m`, `2d`; `2026-12-05T08:00:00Z`.

use maint_core::jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};

/// A length of at least a second. Days have 24 hours.
///
/// # Errors
/// In words, for clap.
pub fn length(text: &str) -> Result<SignedDuration, String> {
    let span: Span = text.parse().map_err(|_| "wanted a duration such as 90s, 10m or 1h30m".to_owned())?;
    let length = span
        .to_duration(SpanRelativeTo::days_are_24_hours())
        .map_err(|_| "wanted a duration in days, hours, minutes or seconds".to_owned())?;
    if length < SignedDuration::from_secs(1) { Err("wanted at least 1s".to_owned()) } else { Ok(length) }
}

/// An instant.
///
/// # Errors
/// In words, for clap.
pub fn instant(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "wanted a time with its zone, such as 2026-12-05T01:00:00Z".to_owned())
}

/// The end of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// An instant.
    At(Timestamp),
    /// So long from now.
    For(SignedDuration),
}

impl std::str::FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(at) = text.parse() {
            return Ok(Self::At(at));
        }
        length(text).map(Self::For).map_err(|_| {
            "wanted a time with its zone such as 2026-12-05T08:00:00Z, or a duration such as 8h".to_owned()
        })
    }
}

impl Until {
    /// The instant, in whole seconds.
    ///
    /// # Errors
    /// If it is not in the future.
    pub fn instant(self, now: Timestamp) -> Result<Timestamp, String> {
        let at = match self {
            Self::At(at) => at,
            Self::For(length) => now.checked_add(length).map_err(|_| "--until is too far away".to_owned())?,
        };
        if at <= now {
            return Err(format!("--until {at} is over already: it is {now}"));
        }
        Ok(Timestamp::from_second(at.as_second()).unwrap_or(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths() {
        let rows = [
            ("90s", Some(90)),
            ("10m", Some(600)),
            ("1h30m", Some(5_400)),
            ("2d", Some(172_800)),
            ("PT10M", Some(600)),
            ("1s", Some(1)),
            ("999ms", None),
            ("0s", None),
            ("-5m", None),
            ("1mo", None),
            ("10", None),
            ("soon", None),
            ("", None),
        ];
        for (text, seconds) in rows {
            assert_eq!(length(text).ok().map(|length| length.as_secs()), seconds, "{text}");
        }
    }

    #[test]
    fn ends() {
        let now: Timestamp = "2026-11-30T01:00:00Z".parse().expect("a time");
        let rows = [
            ("8h", Some("2026-11-30T09:00:00Z")),
            ("2026-12-05T08:00:00Z", Some("2026-12-05T08:00:00Z")),
            ("2026-12-05T08:00:00+02:00", Some("2026-12-05T06:00:00Z")),
            ("2026-11-30T01:00:01Z", Some("2026-11-30T01:00:01Z")),
            ("2026-11-30T01:00:00Z", None),
            ("2026-11-29", None),
            ("2026-12-05T08:00:00", None),
            ("tomorrow", None),
        ];
        for (text, wanted) in rows {
            let got = text.parse::<Until>().and_then(|until| until.instant(now));
            assert_eq!(got.ok().map(|at| at.to_string()).as_deref(), wanted, "{text}");
        }
    }
}
