//! Windows as kured takes them, the mistake after midnight among them.

use crate::doubles::kured::window::{Window, WindowError};

#[test]
fn a_window_is_open_on_its_weekdays_and_wrong_after_midnight() {
    // 2026-12-04 is a Friday.
    for (row, days, start, end, zone, rows) in [
        (
            "the day of now counts",
            "fri",
            "22:00",
            "04:00",
            "UTC",
            &[
                ("2026-12-04T00:00:00Z", true),
                ("2026-12-04T03:59:59Z", true),
                ("2026-12-04T04:00:00Z", true),
                ("2026-12-04T04:00:01Z", false),
                ("2026-12-04T21:59:59Z", false),
                ("2026-12-04T22:00:00Z", true),
                ("2026-12-04T23:59:59Z", true),
                ("2026-12-05T00:00:00Z", false),
                ("2026-12-05T03:00:00Z", false),
            ][..],
        ),
        (
            "all days wrap well",
            "sun,mon,tue,wed,thu,fri,sat",
            "22:00",
            "04:00",
            "UTC",
            &[("2026-12-05T03:00:00Z", true), ("2026-12-05T12:00:00Z", false)],
        ),
        (
            "within a day",
            "sat,su",
            "2am",
            "3pm",
            "UTC",
            &[
                ("2026-12-05T01:59:59Z", false),
                ("2026-12-05T02:00:00Z", true),
                ("2026-12-05T15:00:00Z", true),
                ("2026-12-05T15:00:01Z", false),
                ("2026-12-07T10:00:00Z", false),
            ],
        ),
        (
            "in a zone",
            "fri",
            "0:00",
            "23:59:59",
            "Europe/Berlin",
            &[
                ("2026-12-03T22:59:59Z", false),
                ("2026-12-03T23:00:00Z", true),
                ("2026-12-04T22:59:59.5Z", true),
                ("2026-12-04T23:00:00Z", false),
            ],
        ),
        ("no days are never", "", "0:00", "23:59:59", "UTC", &[("2026-12-04T12:00:00Z", false)]),
    ] {
        let days: Vec<String> = days.split(',').map(str::to_owned).collect();
        let window = Window::parse(&days, start, end, zone).expect(row);
        for (at, open) in rows {
            assert_eq!(window.contains(at.parse().expect("a time")), *open, "{row}: {at}");
        }
    }
    assert!(Window::default().contains("2026-12-04T23:59:59.9Z".parse().expect("a time")));
}

#[test]
fn bad_flags_of_a_window_are_refused() {
    let day = |text: &str| vec![text.to_owned()];
    for (row, days, start, zone, wanted) in [
        ("day", day("someday"), "1:00", "UTC", WindowError::Day("someday".to_owned())),
        ("time", day("mon"), "25:00", "UTC", WindowError::Time("25:00".to_owned())),
        ("no time", day("mon"), "noon", "UTC", WindowError::Time("noon".to_owned())),
        ("zone", day("mon"), "1:00", "Mars/Base", WindowError::Zone("Mars/Base".to_owned())),
    ] {
        assert_eq!(Window::parse(&days, start, "2:00", zone).map(drop), Err(wanted), "{row}");
    }
}
