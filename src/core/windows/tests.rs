//! Tables of days and zones.

mod properties;

use jiff::{SignedDuration, Timestamp};

use super::{Open, WindowState, next_openings, state, told};
use crate::config::{Weekday, Window, Zone};

const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// `name days start length zone`, where a length that begins with `-` is an end: `night fri 22:00 6h UTC`.
fn window(text: &str) -> Window {
    let mut words = text.split(' ');
    let mut word = || words.next().expect("five words");
    let name = word().to_owned();
    let days = match word() {
        "all" => Weekday::ALL.to_vec(),
        days => days.split(',').map(|day| day.parse().expect("a day")).collect(),
    };
    let start = word().parse().expect("a time");
    let (duration, end) = match word() {
        length if length.starts_with('-') => (None, Some(length[1..].parse().expect("a time"))),
        length => (Some(length.parse().expect("a length")), None),
    };
    Window { name, days, start, duration, end, zone: word().parse().expect("a zone") }
}

fn windows(text: &str) -> Vec<Window> {
    text.split("; ").filter(|text| !text.is_empty()).map(window).collect()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// What the state is, as one line in the zone of the opening.
fn line(windows: &[Window], now: Timestamp) -> String {
    match state(windows, HOUR, now) {
        WindowState::Open(Open { opening, since, ends_at, latest_start }) => {
            let clock = |at: Timestamp| at.to_zoned(opening.zone.rules().clone()).strftime("%d %H:%M").to_string();
            format!("open {} {} to {}, start by {}", opening.id(), clock(since), clock(ends_at), clock(latest_start))
        }
        WindowState::Closed(closed) => match closed.next {
            None => "closed for ever".to_owned(),
            Some(next) => {
                let opens = next.starts_at.to_zoned(next.zone.rules().clone()).strftime("%d %H:%M").to_string();
                format!("closed, next {} {opens}", next.id())
            }
        },
    }
}

#[test]
fn open_and_closed() {
    let friday = "night fri 22:00 6h UTC";
    let berlin = "night all 23:30 6h Europe/Berlin";
    let clock = "night all 23:30 -05:30 Europe/Berlin";
    let rows: &[(&str, &str, &str, &str)] = &[
        ("no window", "", "2026-11-30T01:00:00Z", "closed for ever"),
        // 2026-12-04 is a Friday.
        ("before it opens", friday, "2026-12-04T21:59:59Z", "closed, next night-2026-12-04 04 22:00"),
        ("it opens", friday, "2026-12-04T22:00:00Z", "open night-2026-12-04 04 22:00 to 05 04:00, start by 05 03:00"),
        (
            "Saturday belongs to Friday",
            friday,
            "2026-12-05T03:59:59Z",
            "open night-2026-12-04 04 22:00 to 05 04:00, start by 05 03:00",
        ),
        ("it closes", friday, "2026-12-05T04:00:00Z", "closed, next night-2026-12-11 11 22:00"),
        (
            "Friday's small hours are not Friday's",
            friday,
            "2026-12-04T01:00:00Z",
            "closed, next night-2026-12-04 04 22:00",
        ),
        (
            "across the turn of the year",
            "night thu 22:00 6h UTC",
            "2027-01-01T01:00:00Z",
            "open night-2026-12-31 31 22:00 to 01 04:00, start by 01 03:00",
        ),
        (
            "leap day",
            "night thu 22:00 6h UTC",
            "2024-02-29T23:00:00Z",
            "open night-2024-02-29 29 22:00 to 01 04:00, start by 01 03:00",
        ),
        (
            "into a leap day",
            "night wed 22:00 -02:00 UTC",
            "2024-02-29T01:59:00Z",
            "open night-2024-02-28 28 22:00 to 29 02:00, start by 29 01:00",
        ),
        (
            "two days long",
            "weekend sat 00:00 2d UTC",
            "2026-12-06T23:59:00Z",
            "open weekend-2026-12-05 05 00:00 to 07 00:00, start by 06 23:00",
        ),
        (
            "a week long never closes",
            "ever mon 00:00 7d UTC",
            "2026-12-06T23:59:00Z",
            "open ever-2026-11-30 23 00:00 to 21 00:00, start by 20 23:00",
        ),
        (
            "days that touch",
            "day all 00:00 24h UTC",
            "2026-12-02T12:00:00Z",
            "open day-2026-12-02 24 00:00 to 11 00:00, start by 10 23:00",
        ),
        // Clocks: 2026-03-29 02:00 -> 03:00, 2026-10-25 03:00 -> 02:00.
        (
            "spring: time that passes",
            berlin,
            "2026-03-29T04:29:00Z",
            "open night-2026-03-28 28 23:30 to 29 06:30, start by 29 05:30",
        ),
        (
            "spring: the clock",
            clock,
            "2026-03-29T03:29:00Z",
            "open night-2026-03-28 28 23:30 to 29 05:30, start by 29 04:30",
        ),
        ("spring: the clock has struck", clock, "2026-03-29T03:30:00Z", "closed, next night-2026-03-29 29 23:30"),
        (
            "autumn: time that passes",
            berlin,
            "2026-10-25T03:29:00Z",
            "open night-2026-10-24 24 23:30 to 25 04:30, start by 25 03:30",
        ),
        (
            "autumn: the clock",
            clock,
            "2026-10-25T04:29:00Z",
            "open night-2026-10-24 24 23:30 to 25 05:30, start by 25 04:30",
        ),
        (
            "a start in the gap is later",
            "early sun 02:30 1h Europe/Berlin",
            "2026-03-29T01:30:00Z",
            "open early-2026-03-29 29 03:30 to 29 04:30, start by 29 03:30",
        ),
        (
            "and not earlier",
            "early sun 02:30 1h Europe/Berlin",
            "2026-03-29T01:29:59Z",
            "closed, next early-2026-03-29 29 03:30",
        ),
        (
            "a start that comes twice is the first",
            "early sun 02:30 1h Europe/Berlin",
            "2026-10-25T00:30:00Z",
            "open early-2026-10-25 25 02:30 to 25 02:30, start by 25 02:30",
        ),
        (
            "and not the second",
            "early sun 02:30 1h Europe/Berlin",
            "2026-10-25T01:30:00Z",
            "closed, next early-2026-11-01 01 02:30",
        ),
        (
            "an end that comes twice is the first",
            "early sun 01:00 -02:30 Europe/Berlin",
            "2026-10-25T00:30:00Z",
            "closed, next early-2026-11-01 01 01:00",
        ),
        (
            "a window that the gap swallows",
            "early sun 02:30 -03:00 Europe/Berlin",
            "2026-03-29T01:15:00Z",
            "closed, next early-2026-04-05 05 02:30",
        ),
        // Clocks of half an hour, and a day that did not exist.
        (
            "half an hour",
            "night all 01:45 2h Australia/Lord_Howe",
            "2026-10-03T15:30:00Z",
            "open night-2026-10-04 04 01:45 to 04 04:15, start by 04 03:15",
        ),
        (
            "a day that Samoa left out",
            "day fri 10:00 1h Pacific/Apia",
            "2011-12-30T20:30:00Z",
            "open day-2011-12-30 31 10:00 to 31 11:00, start by 31 10:00",
        ),
        (
            "two zones, one instant",
            "east mon 08:00 1h Asia/Tokyo; west sun 18:00 1h America/New_York",
            "2026-11-29T23:30:00Z",
            "open east-2026-11-30 30 08:00 to 30 09:00, start by 30 08:00",
        ),
        // Unions.
        (
            "overlap: the first counts",
            "a mon 22:00 4h UTC; b tue 01:00 4h UTC",
            "2026-12-01T01:30:00Z",
            "open a-2026-11-30 30 22:00 to 01 05:00, start by 01 04:00",
        ),
        (
            "overlap: then the second",
            "a mon 22:00 4h UTC; b tue 01:00 4h UTC",
            "2026-12-01T02:00:00Z",
            "open b-2026-12-01 30 22:00 to 01 05:00, start by 01 04:00",
        ),
        (
            "touching",
            "b mon 23:00 1h UTC; a mon 22:00 1h UTC",
            "2026-11-30T22:30:00Z",
            "open a-2026-11-30 30 22:00 to 01 00:00, start by 30 23:00",
        ),
        (
            "one in the other",
            "a mon 20:00 8h UTC; b mon 22:00 1h UTC",
            "2026-11-30T23:30:00Z",
            "open a-2026-11-30 30 20:00 to 01 04:00, start by 01 03:00",
        ),
        (
            "a minute apart",
            "a mon 22:00 1h UTC; b mon 23:01 1h UTC",
            "2026-11-30T23:00:00Z",
            "closed, next b-2026-11-30 30 23:01",
        ),
        (
            "together: the order of the file",
            "b mon 22:00 1h UTC; a mon 22:00 2h UTC",
            "2026-11-30T22:30:00Z",
            "open b-2026-11-30 30 22:00 to 01 00:00, start by 30 23:00",
        ),
        (
            "too short to start",
            "a mon 22:00 30m UTC",
            "2026-11-30T22:10:00Z",
            "open a-2026-11-30 30 22:00 to 30 22:30, start by 30 21:30",
        ),
        (
            "at the end of time",
            "a all 21:00 1h UTC",
            "9999-12-30T21:59:59Z",
            "open a-9999-12-30 30 21:00 to 30 22:00, start by 30 21:00",
        ),
        ("beyond it", "a all 21:30 1h UTC", "9999-12-30T21:29:59Z", "closed for ever"),
    ];
    for (name, text, now, wanted) in rows {
        assert_eq!(line(&windows(text), at(now)), *wanted, "{name}");
    }
}

#[test]
fn the_next_openings_are_those_of_the_calendar() {
    let rows: &[(&str, &str, &str, &str)] = &[
        ("none", "", "2026-11-30T01:00:00Z", ""),
        ("weekly", "a fri 22:00 6h UTC", "2026-12-04T22:00:00Z", "a-2026-12-11 a-2026-12-18 a-2026-12-25"),
        (
            "two",
            "a fri 22:00 6h UTC; b sat,sun 01:00 1h UTC",
            "2026-12-04T00:00:00Z",
            "a-2026-12-04 b-2026-12-05 b-2026-12-06",
        ),
        ("that of today first", "a mon 22:00 6h UTC", "2026-11-30T21:59:59Z", "a-2026-11-30 a-2026-12-07 a-2026-12-14"),
        (
            "missed ones do not come again",
            "a mon 22:00 1h UTC",
            "2026-11-30T23:00:00Z",
            "a-2026-12-07 a-2026-12-14 a-2026-12-21",
        ),
        (
            "the swallowed one is left out",
            "early sun 02:30 -03:00 Europe/Berlin",
            "2026-03-23T00:00:00Z",
            "early-2026-04-05 early-2026-04-12 early-2026-04-19",
        ),
    ];
    for (name, text, now, wanted) in rows {
        let found: Vec<String> = next_openings(&windows(text), at(now), 3).iter().map(super::Opening::id).collect();
        assert_eq!(found.join(" "), *wanted, "{name}");
    }
}

#[test]
fn what_closed_last_is_told() {
    let rows: &[(&str, &str, &str, Option<&str>)] = &[
        ("a week ago", "a fri 22:00 6h UTC", "2026-12-04T21:00:00Z", Some("a-2026-11-27")),
        (
            "the one that closed last, not that opened last",
            "a mon 20:00 4h UTC; b mon 22:00 1h UTC",
            "2026-12-01T01:00:00Z",
            Some("a-2026-11-30"),
        ),
        ("none", "", "2026-12-01T01:00:00Z", None),
    ];
    for (name, text, now, wanted) in rows {
        let WindowState::Closed(closed) = state(&windows(text), HOUR, at(now)) else { panic!("{name}: open") };
        assert_eq!(closed.last.map(|last| last.id()).as_deref(), *wanted, "{name}");
    }
}

#[test]
fn instants_are_told_by_both_clocks() {
    let berlin: Zone = "Europe/Berlin".parse().expect("a zone");
    let rows = [
        ("winter", "2026-11-30T22:00:00Z", &berlin, "Mon 2026-11-30 23:00 CET (2026-11-30T22:00Z)"),
        ("another day", "2026-07-31T22:30:00Z", &berlin, "Sat 2026-08-01 00:30 CEST (2026-07-31T22:30Z)"),
        ("with seconds", "2026-11-30T22:00:07Z", &berlin, "Mon 2026-11-30 23:00:07 CET (2026-11-30T22:00:07Z)"),
        ("UTC", "2026-11-30T22:00:00Z", &Zone::UTC, "Mon 2026-11-30 22:00 UTC"),
    ];
    for (name, instant, zone, wanted) in rows {
        assert_eq!(told(at(instant), zone), wanted, "{name}");
    }
}
