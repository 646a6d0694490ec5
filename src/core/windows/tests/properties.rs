//! What holds for every window at every instant.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::super::{Opening, WindowState, next_openings, state};
use super::{HOUR, at};
use crate::config::{Length, TimeOfDay, Weekday, Window};

/// Zones whose clocks change in different ways: never, by an hour in both hemispheres, by half an hour, around
/// midnight, by a whole day.
const ZONES: [&str; 8] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Nuuk",
    "Africa/Cairo",
    "Asia/Kathmandu",
    "Pacific/Apia",
];

/// Changes of clocks: Berlin's two, the day that Samoa left out, Cairo's midnight.
const CHANGES: [&str; 4] =
    ["2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "2011-12-30T10:00:00Z", "2024-04-25T22:00:00Z"];

fn any_time() -> impl Strategy<Value = TimeOfDay> {
    (0..24_i8, 0..60_i8).prop_map(|(hour, minute)| TimeOfDay(jiff::civil::time(hour, minute, 0, 0)))
}

fn any_window() -> impl Strategy<Value = Window> {
    let days = prop::sample::subsequence(Weekday::ALL.to_vec(), 1..=7);
    let length = prop_oneof![(1_i64..=24 * 60).boxed(), (1_i64..=7 * 24 * 60).boxed()];
    let close = prop_oneof![
        length.prop_map(|minutes| (Some(Length::from_minutes(minutes)), None)),
        any_time().prop_map(|end| (None, Some(end))),
    ];
    (days, any_time(), close, prop::sample::select(&ZONES[..])).prop_filter_map(
        "an end that is the start",
        |(days, start, (duration, end), zone)| {
            let zone = zone.parse().expect("a zone");
            (end != Some(start)).then(|| Window { name: "w".to_owned(), days, start, duration, end, zone })
        },
    )
}

/// Seconds from 2011 to 2037, often near a change of the clocks.
fn any_now() -> impl Strategy<Value = Timestamp> {
    let near = (prop::sample::select(&CHANGES[..]), -700_000_i64..700_000)
        .prop_map(|(change, seconds)| at(change) + SignedDuration::from_secs(seconds));
    let anywhere =
        (1_293_840_000_i64..2_114_380_800).prop_map(|second| Timestamp::from_second(second).expect("a time"));
    prop_oneof![near.boxed(), anywhere.boxed()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// By the definition, from the days alone: open at T if some day's opening began not after T and ends after it.
    #[test]
    fn it_is_open_exactly_when_the_definition_says_so(
        windows in prop::collection::vec(any_window(), 0..4),
        now in any_now(),
    ) {
        let defined = windows.iter().any(|window| {
            let zone = window.zone.rules();
            let today = zone.to_datetime(now).date();
            (-10..=2).any(|shift| {
                let day = today.checked_add(jiff::Span::new().days(shift)).expect("a day");
                let instant = |day: jiff::civil::Date, time: TimeOfDay| {
                    zone.to_ambiguous_zoned(day.to_datetime(time.0)).compatible().expect("a time").timestamp()
                };
                let starts_at = instant(day, window.start);
                let ends_at = match (window.duration, window.end) {
                    (Some(length), _) => starts_at + length.0,
                    (None, Some(end)) if end > window.start => instant(day, end),
                    (None, Some(end)) => instant(day.tomorrow().expect("a day"), end),
                    (None, None) => unreachable!("a window has an end"),
                };
                window.days.contains(&Weekday::of(day)) && starts_at <= now && now < ends_at
            })
        });
        prop_assert_eq!(matches!(state(&windows, HOUR, now), WindowState::Open(_)), defined);
    }

    /// A stretch has one beginning and one end, whenever it is asked; outside it the next opening is where it is open
    /// again, and not a second earlier.
    #[test]
    fn states_and_openings_agree(windows in prop::collection::vec(any_window(), 1..4), now in any_now()) {
        let second = SignedDuration::from_secs(1);
        let is_open = |at: Timestamp| matches!(state(&windows, HOUR, at), WindowState::Open(_));
        match state(&windows, HOUR, now) {
            WindowState::Open(open) => {
                prop_assert!(open.opening.contains(now));
                prop_assert!(open.since <= open.opening.starts_at && open.opening.ends_at <= open.ends_at);
                prop_assert!(open.since <= now && now < open.ends_at && open.latest_start < open.ends_at);
                prop_assert!(is_open(open.since) && is_open(open.ends_at - second));
                // Further than a week the stretch may go on.
                let days = SignedDuration::from_hours(7 * 24);
                if open.ends_at.duration_since(now) < days {
                    prop_assert!(!is_open(open.ends_at));
                    let WindowState::Open(last) = state(&windows, HOUR, open.ends_at - second) else { unreachable!() };
                    prop_assert_eq!(last.ends_at, open.ends_at);
                }
                if now.duration_since(open.since) < days {
                    prop_assert!(!is_open(open.since - second));
                    let WindowState::Open(first) = state(&windows, HOUR, open.since) else { unreachable!() };
                    prop_assert_eq!(first.since, open.since);
                }
            }
            WindowState::Closed(closed) => {
                let next = closed.next.expect("a window opens again");
                let listed = next_openings(&windows, now, 1);
                prop_assert_eq!(Some(&next), listed.first());
                prop_assert!(next.starts_at > now && is_open(next.starts_at) && !is_open(next.starts_at - second));
                if let Some(last) = closed.last {
                    prop_assert!(last.ends_at <= now && !is_open(last.ends_at));
                }
            }
        }
    }

    /// Later is never earlier: openings are sorted, all lie ahead, have ids of their own, and follow each other the
    /// same way whichever instant is asked.
    #[test]
    fn openings_are_monotone(
        window in any_window(),
        now in any_now(),
        wait in 1_i64..2_000_000,
    ) {
        let windows = [window];
        let found = next_openings(&windows, now, 5);
        prop_assert_eq!(found.len(), 5);
        prop_assert!(found.iter().all(|opening| opening.starts_at > now && opening.ends_at > opening.starts_at));
        prop_assert!(found.is_sorted_by_key(|opening| opening.starts_at));
        let ids: std::collections::BTreeSet<String> = found.iter().map(Opening::id).collect();
        prop_assert_eq!(ids.len(), 5);
        let later = now + SignedDuration::from_secs(wait);
        let after = next_openings(&windows, later, 5);
        prop_assert!(after[0].starts_at >= found[0].starts_at);
        for opening in found.iter().filter(|opening| opening.starts_at > later) {
            prop_assert!(after.contains(opening), "{} is forgotten", opening.id());
        }
    }
}
