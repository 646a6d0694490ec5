//! kured's own window, as kured reads it, mistakes and all.
//!
//! kured (pkg/timewindow) asks whether *today's* weekday is in its list, and only then looks at the time. With a start
//! after the end, `fri` and 22:00 to 04:00 are therefore open on Friday from 00:00 to 04:00 and from 22:00 to 24:00, and
//! not on Saturday morning. Both ends are inside; the end lasts to the end of its second. The window is looked at before
//! the lock is taken, never after.

use std::collections::BTreeSet;

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};

use super::flag::Flag;
use super::flags::{FlagProblem, Flags};

/// Days that are looked at for the next opening: a weekday comes back within a week.
const DAYS_AHEAD: usize = 8;

/// kured's window.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    days: BTreeSet<i8>,
    start: Time,
    end: Time,
    zone: TimeZone,
    told: String,
}

impl Window {
    /// Reads it from the flags.
    ///
    /// # Errors
    /// Which flag cannot be read; kured itself does not start with such a one.
    pub fn of(flags: &Flags) -> Result<Self, FlagProblem> {
        let wrong = |flag: Flag, value: &str, wanted: &str| FlagProblem {
            flag: flag.as_str().to_owned(),
            value: value.to_owned(),
            problem: format!("is `{value}`: wanted {wanted}; kured does not start with it"),
        };
        let mut days = BTreeSet::new();
        for text in flags.list(Flag::RebootDays)?.iter().filter(|text| !text.is_empty()) {
            let day = weekday(text)
                .ok_or_else(|| wrong(Flag::RebootDays, text, "days such as mon, or 0 to 6 from Sunday"))?;
            days.insert(day.to_sunday_zero_offset());
        }
        let at = |flag: Flag| -> Result<Time, FlagProblem> {
            let text = flags.text(flag)?;
            time(&text).ok_or_else(|| wrong(flag, &text, "a time such as 22:00"))
        };
        let (start, end) = (at(Flag::StartTime)?, at(Flag::EndTime)?);
        let name = flags.text(Flag::TimeZone)?;
        let zone = match name.as_str() {
            "" | "UTC" => Some(TimeZone::UTC),
            // Go's word for the zone of the machine, here of kured's container.
            "Local" => None,
            name => TimeZone::get(name).ok(),
        };
        let zone = zone.ok_or_else(|| wrong(Flag::TimeZone, &name, "a zone such as Europe/Berlin"))?;
        let days_told = flags.shown(Flag::RebootDays);
        let told = format!("{days_told} {} to {} {name}", flags.shown(Flag::StartTime), flags.shown(Flag::EndTime));
        Ok(Self { days, start, end, zone, told })
    }

    /// Its flags, for people.
    #[must_use]
    pub fn told(&self) -> &str {
        &self.told
    }

    /// Whether kured would act now, were it asked.
    #[must_use]
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.closes(now).is_some()
    }

    /// The first instant that is no longer in the present opening; none while it is closed. An opening that does not
    /// end within eight days ends there.
    #[must_use]
    pub fn closes(&self, now: Timestamp) -> Option<Timestamp> {
        let mut spans = self.spans(now).into_iter();
        let mut end = spans.by_ref().find(|(from, to)| *from <= now && now < *to)?.1;
        for (from, to) in spans {
            if from > end {
                break;
            }
            end = end.max(to);
        }
        Some(end)
    }

    /// When it opens next; now while it is open, none if it never does.
    #[must_use]
    pub fn next_opening(&self, now: Timestamp) -> Option<Timestamp> {
        self.spans(now).into_iter().find(|(_, to)| now < *to).map(|(from, _)| from.max(now))
    }

    /// What the days list means at midnight, where it is not what it looks like.
    #[must_use]
    pub fn midnight_mistake(&self) -> Option<String> {
        if self.start <= self.end || self.days.is_empty() || self.days.len() == 7 {
            return None;
        }
        let (start, end) = (self.start.strftime("%H:%M"), self.end.strftime("%H:%M"));
        Some(format!(
            "kured asks for today's weekday: {} opens on the named days from 00:00 to {end} and from {start} to 24:00, not on \
             the mornings after them",
            self.told
        ))
    }

    /// Openings from today on, in order; one of a day may end where that of the next begins.
    fn spans(&self, now: Timestamp) -> Vec<(Timestamp, Timestamp)> {
        let mut date = now.to_zoned(self.zone.clone()).date();
        let mut spans = Vec::new();
        for _ in 0..=DAYS_AHEAD {
            if self.days.contains(&date.weekday().to_sunday_zero_offset()) {
                self.spans_of(date, &mut spans);
            }
            let Ok(next) = date.tomorrow() else { break };
            date = next;
        }
        spans
    }

    fn spans_of(&self, date: Date, spans: &mut Vec<(Timestamp, Timestamp)>) {
        let at = |date: Date, time: Time| -> Option<Zoned> { date.to_datetime(time).to_zoned(self.zone.clone()).ok() };
        let start = at(date, self.start);
        // The last second counts as a whole.
        let end = at(date, self.end).and_then(|end| end.checked_add(1.second()).ok());
        let midnight = at(date, Time::midnight());
        let tomorrow = date.tomorrow().ok().and_then(|next| at(next, Time::midnight()));
        let mut push = |from: Option<Zoned>, to: Option<Zoned>| {
            if let (Some(from), Some(to)) = (from, to) {
                spans.push((from.timestamp(), to.timestamp()));
            }
        };
        if self.start <= self.end {
            push(start, end);
        } else {
            push(midnight, end);
            push(start, tomorrow);
        }
    }
}

/// `mon`, `Monday`, `mo`, or a number from Sunday.
fn weekday(text: &str) -> Option<Weekday> {
    if let Ok(number) = text.parse::<i8>() {
        return Weekday::from_sunday_zero_offset(number).ok();
    }
    let days = [
        ("sunday", Weekday::Sunday),
        ("monday", Weekday::Monday),
        ("tuesday", Weekday::Tuesday),
        ("wednesday", Weekday::Wednesday),
        ("thursday", Weekday::Thursday),
        ("friday", Weekday::Friday),
        ("saturday", Weekday::Saturday),
    ];
    let text = text.to_ascii_lowercase();
    let known = |name: &str| text == name || name.get(..2) == Some(&text) || name.get(..3) == Some(&text);
    days.into_iter().find(|(name, _)| known(name)).map(|(_, day)| day)
}

/// Go's formats `15:04`, `15:04:05`, `03:04pm`, `15`, `03pm`: two digits but for the hour of 24.
fn time(text: &str) -> Option<Time> {
    let (clock, noon) = match (text.strip_suffix("am"), text.strip_suffix("pm")) {
        (Some(clock), _) => (clock, Some(false)),
        (_, Some(clock)) => (clock, Some(true)),
        _ => (text, None),
    };
    let mut parts = clock.split(':');
    let hour = parts.next()?;
    let hour_fits = if noon.is_some() { hour.len() == 2 } else { (1..=2).contains(&hour.len()) };
    let rest: Vec<&str> = parts.collect();
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let two = rest.iter().all(|part| part.len() == 2 && digits(part));
    if !hour_fits || !digits(hour) || !two || rest.len() > if noon.is_some() { 1 } else { 2 } {
        return None;
    }
    let hour: i8 = hour.parse().ok()?;
    let hour = match noon {
        None => hour,
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(false) => hour % 12,
        Some(true) => hour % 12 + 12,
    };
    let part = |index: usize| rest.get(index).map_or(Some(0), |part| part.parse::<i8>().ok());
    Time::new(hour, part(0)?, part(1)?, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Container;

    fn window(words: &[&str]) -> Result<Window, FlagProblem> {
        let args = words.iter().map(|word| (*word).to_owned()).collect();
        let container = Container { image: "kured:1.23.0".into(), args, ..Container::default() };
        Window::of(&Flags::of(&container, None))
    }

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    const FRIDAY_NIGHT: &[&str] = &["--reboot-days=fri", "--start-time=22:00", "--end-time=04:00"];

    #[test]
    fn kured_reads_its_window_so() {
        // 2026-11-27 is a Friday.
        let rows: [(&str, &[&str], &str, bool); 16] = [
            ("no window", &[], "2026-11-27T12:00:00Z", true),
            ("the last second counts", &["--end-time=04:00"], "2026-11-27T04:00:00.9Z", true),
            ("and then no more", &["--end-time=04:00"], "2026-11-27T04:00:01Z", false),
            ("the first one too", &["--start-time=22:00"], "2026-11-27T22:00:00Z", true),
            ("before", &["--start-time=22:00"], "2026-11-27T21:59:59Z", false),
            ("over midnight, late", FRIDAY_NIGHT, "2026-11-27T23:00:00Z", true),
            ("over midnight, early on the same day", FRIDAY_NIGHT, "2026-11-27T03:00:00Z", true),
            ("the morning after is Saturday", FRIDAY_NIGHT, "2026-11-28T03:00:00Z", false),
            ("between", FRIDAY_NIGHT, "2026-11-27T12:00:00Z", false),
            ("another day", FRIDAY_NIGHT, "2026-11-26T23:00:00Z", false),
            ("a number is a day", &["--reboot-days=5"], "2026-11-27T12:00:00Z", true),
            ("Sunday is 0", &["--reboot-days=0"], "2026-11-29T12:00:00Z", true),
            ("the zone's day", &["--reboot-days=sat", "--time-zone=Europe/Berlin"], "2026-11-27T23:30:00Z", true),
            ("not ours", &["--reboot-days=fri", "--time-zone=Europe/Berlin"], "2026-11-27T23:30:00Z", false),
            ("no day is never", &["--reboot-days="], "2026-11-27T12:00:00Z", false),
            ("half a day", &["--start-time=03:00pm", "--end-time=11pm"], "2026-11-27T16:00:00Z", true),
        ];
        for (row, words, now, wanted) in rows {
            assert_eq!(window(words).expect(row).is_open(at(now)), wanted, "{row}");
        }
    }

    #[test]
    fn the_next_opening_and_the_end_of_this_one() {
        // Name, flags, now, next opening, end of the present one.
        let rows: [(&str, &[&str], &str, Option<&str>, Option<&str>); 7] = [
            ("before", &["--start-time=22:00"], "2026-11-27T12:00:00Z", Some("2026-11-27T22:00:00Z"), None),
            ("after", &["--end-time=04:00"], "2026-11-27T12:00:00Z", Some("2026-11-28T00:00:00Z"), None),
            (
                "the part before noon counts first",
                FRIDAY_NIGHT,
                "2026-11-26T12:00:00Z",
                Some("2026-11-27T00:00:00Z"),
                None,
            ),
            (
                "it ends at midnight",
                FRIDAY_NIGHT,
                "2026-11-27T23:00:00Z",
                Some("2026-11-27T23:00:00Z"),
                Some("2026-11-28T00:00:00Z"),
            ),
            (
                "two days in a row have one night",
                &["--reboot-days=fri,sat", "--start-time=22:00", "--end-time=04:00"],
                "2026-11-27T23:00:00Z",
                Some("2026-11-27T23:00:00Z"),
                Some("2026-11-28T04:00:01Z"),
            ),
            ("never", &["--reboot-days="], "2026-11-27T12:00:00Z", None, None),
            (
                "the same day next week",
                &["--reboot-days=fri", "--end-time=01:00"],
                "2026-11-27T12:00:00Z",
                Some("2026-12-04T00:00:00Z"),
                None,
            ),
        ];
        for (row, words, now, opening, end) in rows {
            let window = window(words).expect(row);
            assert_eq!(window.next_opening(at(now)), opening.map(at), "{row}");
            assert_eq!(window.closes(at(now)), end.map(at), "{row}");
        }
        // The default never closes for good: each day's last second ends where the next day begins.
        let always = window(&[]).expect("a window");
        assert!(always.closes(at("2026-11-27T12:00:00Z")).expect("open") > at("2026-12-04T00:00:00Z"));
    }

    #[test]
    fn the_mistake_at_midnight_is_named_where_it_matters() {
        assert!(
            window(FRIDAY_NIGHT).expect("a window").midnight_mistake().expect("one").contains("fri 22:00 to 04:00 UTC")
        );
        for words in
            [&["--start-time=22:00", "--end-time=04:00"] as &[&str], &["--reboot-days=fri"], &["--reboot-days="]]
        {
            assert_eq!(window(words).expect("a window").midnight_mistake(), None, "{words:?}");
        }
    }

    #[test]
    fn what_kured_cannot_read_is_named() {
        let rows: [(&str, &str); 9] = [
            ("--reboot-days=weekend", "--reboot-days is `weekend`: wanted days such as mon"),
            ("--reboot-days=7", "--reboot-days is `7`"),
            ("--start-time=25:00", "--start-time is `25:00`: wanted a time such as 22:00"),
            ("--start-time=10:5", "--start-time is `10:5`"),
            ("--end-time=3pm", "--end-time is `3pm`"),
            ("--end-time=", "--end-time is ``"),
            ("--end-time=13:00pm", "--end-time is `13:00pm`"),
            ("--time-zone=Local", "--time-zone is `Local`"),
            ("--time-zone=Europe/Nowhere", "--time-zone is `Europe/Nowhere`: wanted a zone"),
        ];
        for (word, wanted) in rows {
            let error = window(&[word]).expect_err(word).to_string();
            assert!(error.starts_with(wanted), "{word}: {error}");
        }
    }
}
