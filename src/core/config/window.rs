//! When unattended runs may start: the mode, and windows as a configuration file writes them.
//!
//! Zones come from the time zone database that is compiled in and never from the machine's: a laptop, the service and
//! a replayed night judge alike, and a minimal image needs no files.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{self, Time};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Span, SpanRelativeTo};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::api::UnknownName;

crate::api::names! {
    /// What maint does by itself. It binds unattended runs; a person's is judged by the gates alone.
    Mode, "mode", {
        /// Nothing: it judges and reports what it would have done.
        Observe = "observe",
        /// It starts runs in windows when all gates agree.
        Auto = "auto",
    }
}

crate::api::names! {
    /// A day of the week on which a window opens.
    Weekday, "weekday", {
        /// Monday.
        Monday = "mon",
        /// Tuesday.
        Tuesday = "tue",
        /// Wednesday.
        Wednesday = "wed",
        /// Thursday.
        Thursday = "thu",
        /// Friday.
        Friday = "fri",
        /// Saturday.
        Saturday = "sat",
        /// Sunday.
        Sunday = "sun",
    }
}

impl Weekday {
    /// The day of the week of a date.
    #[must_use]
    pub fn of(date: civil::Date) -> Self {
        match date.weekday() {
            civil::Weekday::Monday => Self::Monday,
            civil::Weekday::Tuesday => Self::Tuesday,
            civil::Weekday::Wednesday => Self::Wednesday,
            civil::Weekday::Thursday => Self::Thursday,
            civil::Weekday::Friday => Self::Friday,
            civil::Weekday::Saturday => Self::Saturday,
            civil::Weekday::Sunday => Self::Sunday,
        }
    }
}

/// One `[[windows]]` of the configuration: days, a start, and a length or an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Its name, kebab-case: openings and reports are called after it.
    pub name: String,
    /// Days on which it opens. What reaches past midnight belongs to the day on which it opened.
    pub days: Vec<Weekday>,
    /// When it opens, by the clock of its zone.
    pub start: TimeOfDay,
    /// How long it stays open, as time that passes; exactly one of `duration` and `end` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Length>,
    /// When it closes, by the clock of its zone: on the next day where that is before `start`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<TimeOfDay>,
    /// Its time zone.
    pub zone: Zone,
}

impl Window {
    /// A window may be open for a week: after that the same day comes again.
    pub const LONGEST: Length = Length::from_minutes(7 * 24 * 60);

    /// How long it is open on a day without a change of the clocks; none where neither length nor end is set.
    #[must_use]
    pub fn usual_length(&self) -> Option<Length> {
        match (self.duration, self.end) {
            (Some(length), _) => Some(length),
            (None, Some(end)) => {
                let minutes = |time: TimeOfDay| i64::from(time.0.hour()) * 60 + i64::from(time.0.minute());
                let day = 24 * 60;
                Some(Length::from_minutes((minutes(end) - minutes(self.start)).rem_euclid(day)))
            }
            (None, None) => None,
        }
    }
}

/// A time of the day by the clock: `HH:MM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOfDay(pub Time);

impl FromStr for TimeOfDay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let odd = || format!("`{text}` is no time of the day, wanted HH:MM from 00:00 to 23:59");
        // jiff reads more than a person would take for a time of the day, such as a whole date.
        let plain = text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
        text.parse().ok().filter(|_| plain).map(Self).ok_or_else(odd)
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0.hour(), self.0.minute())
    }
}

/// A length of time in whole minutes: `6h`, `1h30m`, `2d`. Days have 24 hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Length(pub SignedDuration);

impl Length {
    /// Of so many minutes.
    #[must_use]
    pub const fn from_minutes(minutes: i64) -> Self {
        Self(SignedDuration::from_secs(minutes.saturating_mul(60)))
    }
}

impl FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let odd = || format!("`{text}` is no length in whole minutes, wanted such as 6h, 1h30m or 2d");
        let span: Span = text.parse().map_err(|_| odd())?;
        let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| odd())?;
        let whole = length.as_secs() % 60 == 0 && length.subsec_nanos() == 0;
        if whole { Ok(Self(length)) } else { Err(odd()) }
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = self.0.as_mins();
        match (minutes / 60, minutes % 60) {
            (0, minutes) => write!(f, "{minutes}m"),
            (hours, 0) => write!(f, "{hours}h"),
            (hours, minutes) => write!(f, "{hours}h{minutes}m"),
        }
    }
}

/// A time zone by its IANA name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// UTC.
    pub const UTC: Self = Self(TimeZone::UTC);

    /// Its rules.
    #[must_use]
    pub const fn rules(&self) -> &TimeZone {
        &self.0
    }
}

impl FromStr for Zone {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let database = TimeZoneDatabase::bundled();
        match database.get(name) {
            Ok(zone) if zone.iana_name().is_some() && !zone.is_unknown() => Ok(Self(zone)),
            _ => {
                // The list of all would fill a screen; the nearest one is enough.
                let known = database.available().map(|known| known.as_str().to_owned()).collect();
                Err(match UnknownName::new("time zone", name, known).nearest {
                    Some(nearest) => format!("unknown time zone `{name}`, did you mean `{nearest}`?"),
                    None => format!("unknown time zone `{name}`; known: IANA names such as Europe/Berlin, and UTC"),
                })
            }
        }
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.iana_name().unwrap_or("UTC"))
    }
}

/// Written as text: what `Display` shows is what `FromStr` reads.
macro_rules! as_text {
    ($($type:ty),*) => { $(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str> as Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    )* };
}
as_text!(TimeOfDay, Length, Zone);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_lengths_and_zones_are_written_as_they_are_read() {
        fn shown<T: FromStr<Err = String> + fmt::Display>(text: &str) -> Result<String, String> {
            text.parse::<T>().map(|value| value.to_string())
        }
        let rows = [
            ("a time", shown::<TimeOfDay>("22:30"), Ok("22:30")),
            ("midnight", shown::<TimeOfDay>("00:00"), Ok("00:00")),
            ("no 24:00", shown::<TimeOfDay>("24:00"), Err("`24:00` is no time of the day")),
            ("no seconds", shown::<TimeOfDay>("22:30:15"), Err("`22:30:15` is no time of the day")),
            ("not short", shown::<TimeOfDay>("7:00"), Err("`7:00` is no time of the day")),
            ("no dots", shown::<TimeOfDay>("22.30"), Err("`22.30` is no time of the day")),
            ("hours", shown::<Length>("6h"), Ok("6h")),
            ("hours and minutes", shown::<Length>("1h 30m"), Ok("1h30m")),
            ("minutes", shown::<Length>("45m"), Ok("45m")),
            ("days", shown::<Length>("2d"), Ok("48h")),
            ("no seconds", shown::<Length>("90s"), Err("`90s` is no length in whole minutes")),
            ("no months", shown::<Length>("1mo"), Err("`1mo` is no length")),
            ("no bare number", shown::<Length>("6"), Err("`6` is no length")),
            ("a zone", shown::<Zone>("Europe/Berlin"), Ok("Europe/Berlin")),
            ("in small letters", shown::<Zone>("europe/berlin"), Ok("Europe/Berlin")),
            ("UTC", shown::<Zone>("UTC"), Ok("UTC")),
            (
                "misspelt",
                shown::<Zone>("Europe/Berln"),
                Err("unknown time zone `Europe/Berln`, did you mean `Europe/Berlin`?"),
            ),
            ("no abbreviation", shown::<Zone>("CEST-7"), Err("unknown time zone `CEST-7`")),
            ("jiff's own word for none", shown::<Zone>("Etc/Unknown"), Err("unknown time zone `Etc/Unknown`")),
        ];
        for (name, got, wanted) in rows {
            match wanted {
                Ok(wanted) => assert_eq!(got.as_deref(), Ok(wanted), "{name}"),
                Err(wanted) => assert!(got.as_ref().is_err_and(|got| got.starts_with(wanted)), "{name}: {got:?}"),
            }
        }
    }
}
