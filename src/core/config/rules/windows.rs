//! What `[[windows]]` must hold.

use super::super::{Length, Settings, Window};
use super::{Broken, is_dns_label, path};

/// Every window for which `problem` has something to say of its `key`.
fn of_windows<'s>(s: &'s Settings, key: &str, problem: impl Fn(usize, &'s Window) -> Option<String>) -> Broken {
    let windows = s.windows.iter().enumerate();
    windows
        .filter_map(|(index, window)| Some((path(&["windows", &index.to_string(), key]), problem(index, window)?)))
        .collect()
}

pub(super) fn names(s: &Settings) -> Broken {
    of_windows(s, "name", |index, window| {
        let name = &window.name;
        let taken = s.windows.iter().take(index).any(|other| other.name == *name);
        match (is_dns_label(name), taken) {
            (false, _) => Some(format!("is `{name}`, which is no kebab-case name of up to 63 characters")),
            (true, true) => Some(format!("is `{name}`, as another window is called")),
            (true, false) => None,
        }
    })
}

pub(super) fn days(s: &Settings) -> Broken {
    of_windows(s, "days", |_, window| window.days.is_empty().then(|| "is empty: it would never open".to_owned()))
}

pub(super) fn ends(s: &Settings) -> Broken {
    of_windows(s, "end", |_, window| match (&window.duration, &window.end) {
        (None, None) => Some("is missing, and so is `duration`".to_owned()),
        (Some(_), Some(_)) => Some("is set beside `duration`: one of them must go".to_owned()),
        (None, Some(end)) if *end == window.start => {
            Some(format!("is {end} like `start`: write `duration = \"24h\"` for a whole day"))
        }
        _ => None,
    })
}

pub(super) fn lengths(s: &Settings) -> Broken {
    of_windows(s, "duration", |_, window| {
        let length = window.duration?;
        let fits = length >= Length::from_minutes(1) && length <= Window::LONGEST;
        (!fits).then(|| format!("is {length}, wanted 1m to {}", Window::LONGEST))
    })
}

/// Windows that touch add up; where all of them together are too short, none ever has room.
pub(super) fn room(s: &Settings) -> Broken {
    let Some(lengths) = s.windows.iter().map(Window::usual_length).collect::<Option<Vec<_>>>() else {
        return Broken::new();
    };
    if lengths.iter().any(|length| *length < Length::from_minutes(1)) {
        return Broken::new();
    }
    let together: i64 = lengths.iter().map(|length| length.0.as_secs()).fold(0, i64::saturating_add);
    let expected = s.expected_duration_seconds;
    of_windows(s, "start", |index, _| {
        let short = index == 0 && together < expected;
        let all = Length::from_minutes(together / 60);
        short.then(|| format!("begins a window of {all}, and `expected_duration_seconds` is {expected}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_at_their_boundaries() {
        let night = r#"{ name = "night", days = ["fri"], start = "22:00", duration = "6h", zone = "UTC" }"#;
        let with = |from: &str, to: &str| {
            assert!(night.contains(from), "{from}");
            night.replace(from, to)
        };
        let rows: &[(String, Option<&str>)] = &[
            (night.to_owned(), None),
            (with("fri", "mon\", \"sun"), None),
            (with("\"fri\"", ""), Some("`windows[0].days` is empty: it would never open")),
            (with("\"night", "\"Night"), Some("`windows[0].name` is `Night`, which is no kebab-case name")),
            (with("\"night", "\""), Some("`windows[0].name` is ``, which is no kebab-case name")),
            (
                format!("{night}, {}", with("22:00", "23:00")),
                Some("`windows[1].name` is `night`, as another window is"),
            ),
            (with("6h", "30m"), None),
            (
                with("6h", "29m"),
                Some("`windows[0].start` begins a window of 29m, and `expected_duration_seconds` is 1800"),
            ),
            // Two that touch have room together.
            (
                format!(
                    "{}, {}",
                    with("6h", "20m"),
                    with("night", "late").replace("22:00", "22:20").replace("6h", "20m")
                ),
                None,
            ),
            (with("6h", "7d"), None),
            (with("6h", "7d1m"), Some("`windows[0].duration` is 168h1m, wanted 1m to 168h")),
            (with("6h", "0m"), Some("`windows[0].duration` is 0m, wanted 1m to 168h")),
            (with("6h", "-6h"), Some("`windows[0].duration` is ")),
            (with("duration = \"6h\"", "end = \"04:00\""), None),
            (with("duration = \"6h\"", "end = \"21:59\""), None),
            (with("duration = \"6h\"", "end = \"22:00\""), Some("`windows[0].end` is 22:00 like `start`")),
            (with("duration = \"6h\", ", ""), Some("`windows[0].end` is missing, and so is `duration`")),
            (with("duration", "end = \"04:00\", duration"), Some("`windows[0].end` is set beside `duration`")),
        ];
        for (text, wanted) in rows {
            let got = Settings::parse(&format!("windows = [{text}]"), "f");
            let got = got.map_err(|errors| errors.errors[0].message.clone());
            match wanted {
                None => assert!(got.is_ok(), "{text}: {got:?}"),
                Some(wanted) => assert!(got.as_ref().is_err_and(|got| got.starts_with(wanted)), "{text}: {got:?}"),
            }
        }
    }
}
