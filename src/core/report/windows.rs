//! The answer of `maint windows`: whether unattended runs may start now, and when next.

use std::fmt::Write as _;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::table::{length, table};
use super::{Clock, Paint};
use crate::api::{Status, names};
use crate::config::{Mode, Settings, Zone};
use crate::windows::{self, Opening, WindowState, local, local_time, next_openings, told, universal};

/// Openings that are told.
const NEXT: u8 = 5;

/// The answer of `maint windows`: additive within `maint.dev/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WindowsReport {
    /// [`names::OUTPUT_API_VERSION`]
    pub api_version: &'static str,
    /// `WindowsReport`
    pub kind: &'static str,
    /// The instant that was judged.
    pub now: Timestamp,
    /// Where it came from.
    pub clock: Clock,
    /// What maint does by itself.
    pub mode: Mode,
    /// How long a run is expected to take.
    pub expected_duration_seconds: i64,
    /// Nodes that unattended runs may begin in one opening.
    pub max_nodes_per_window: u32,
    /// Whether mode and windows let an unattended run start now; gates are not asked.
    pub may_start: bool,
    /// The stretch that is open; none while closed.
    pub open: Option<OpenReport>,
    /// What closed last; none while open.
    pub last: Option<OpeningReport>,
    /// What opens next, the earliest first.
    pub next: Vec<OpeningReport>,
}

/// A stretch that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenReport {
    /// The opening that counts.
    pub opening: OpeningReport,
    /// Since when some window is open without a gap.
    pub since: Timestamp,
    /// The last instant at which a run may start; it may be over.
    pub latest_start: Timestamp,
    /// The hard stop.
    pub ends_at: Timestamp,
}

/// One opening.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpeningReport {
    /// Window and day.
    pub id: String,
    /// Name of the window.
    pub window: String,
    /// The day on which it opens.
    pub day: Date,
    /// IANA name of its zone.
    pub zone: String,
    /// When it opens.
    pub starts_at: Timestamp,
    /// When it opens, by the clock of its zone.
    pub local_start: String,
    /// The last instant at which a run may start; none where a run takes longer than what is open.
    pub latest_start: Option<Timestamp>,
    /// When it closes.
    pub ends_at: Timestamp,
    /// When it closes, by the clock of its zone.
    pub local_end: String,
    #[serde(skip)]
    rules: Zone,
}

impl WindowsReport {
    /// What the settings say at an instant.
    #[must_use]
    pub fn new(settings: &Settings, now: Timestamp, clock: Clock) -> Self {
        let expected = SignedDuration::from_secs(settings.expected_duration_seconds);
        let all = &settings.windows;
        let told = |opening: Opening| {
            // Windows that touch are one: the opening's own end may not be the last word.
            let latest_start = match windows::state(all, expected, opening.starts_at) {
                WindowState::Open(open) if open.latest_start >= opening.starts_at => Some(open.latest_start),
                _ => None,
            };
            OpeningReport::new(opening, latest_start)
        };
        let (open, last) = match windows::state(all, expected, now) {
            WindowState::Closed(closed) => (None, closed.last.map(told)),
            WindowState::Open(open) => {
                let (since, latest_start, ends_at) = (open.since, open.latest_start, open.ends_at);
                (Some(OpenReport { opening: told(open.opening), since, latest_start, ends_at }), None)
            }
        };
        let in_time = open.as_ref().is_some_and(|open| now <= open.latest_start);
        Self {
            api_version: names::OUTPUT_API_VERSION,
            kind: "WindowsReport",
            now,
            clock,
            mode: settings.mode,
            expected_duration_seconds: settings.expected_duration_seconds,
            max_nodes_per_window: settings.max_nodes_per_window,
            may_start: in_time && settings.mode == Mode::Auto,
            open,
            last,
            next: next_openings(all, now, NEXT).into_iter().map(told).collect(),
        }
    }

    /// The first line, and its colour.
    pub(super) fn verdict(&self) -> (Status, String) {
        let Some(open) = &self.open else {
            return match self.next.first() {
                None => {
                    (Status::Warn, "NEVER: no window is configured, so that nothing ever starts unattended".to_owned())
                }
                Some(next) => {
                    let wait = length(next.starts_at.duration_since(self.now).as_secs());
                    let opens = told(next.starts_at, &next.rules);
                    (Status::NotApplicable, format!("CLOSED: {} opens in {wait}, {opens}", next.window))
                }
            };
        };
        let (window, zone) = (&open.opening.window, &open.opening.rules);
        let left = length(open.ends_at.duration_since(self.now).as_secs());
        let stop = format!("hard stop in {left}, {}", told(open.ends_at, zone));
        if self.now > open.latest_start {
            return (Status::Warn, format!("TOO LATE: {window} is open, and nothing starts in it any more; {stop}"));
        }
        let latest = told(open.latest_start, zone);
        let status = if self.may_start { Status::Pass } else { Status::Warn };
        (status, format!("OPEN: {window}, for starts until {latest}; {stop}"))
    }
}

impl OpeningReport {
    fn new(opening: Opening, latest_start: Option<Timestamp>) -> Self {
        let Opening { window, day, starts_at, ends_at, zone } = &opening;
        Self {
            id: opening.id(),
            window: window.clone(),
            day: *day,
            zone: zone.to_string(),
            starts_at: *starts_at,
            local_start: local(*starts_at, zone),
            latest_start,
            ends_at: *ends_at,
            local_end: local(*ends_at, zone),
            rules: zone.clone(),
        }
    }

    fn row(&self) -> Vec<String> {
        let latest = self.latest_start.map_or_else(|| "never".to_owned(), |at| local_time(at, &self.rules));
        let closes = local_time(self.ends_at, &self.rules);
        let both = format!("{} to {}", universal(self.starts_at), universal(self.ends_at));
        vec![self.id.clone(), self.local_start.clone(), latest, closes, both]
    }
}

/// The windows as text.
#[must_use]
pub fn windows(report: &WindowsReport, paint: Paint) -> String {
    let (status, verdict) = report.verdict();
    let mut text = format!("{} {}\n", paint.mark(status), paint.status(status, &verdict));
    if let Some(open) = &report.open {
        let since = told(open.since, &open.opening.rules);
        let _ = writeln!(text, "  opening {}, open since {since}", open.opening.id);
    } else if let Some(last) = &report.last {
        let _ = writeln!(text, "  {} closed {}", last.id, told(last.ends_at, &last.rules));
    }
    let mode = match report.mode {
        Mode::Observe => {
            "mode observe: nothing starts unattended, whatever is open; mode = \"auto\" in the configuration"
        }
        Mode::Auto => "mode auto: unattended runs start when all gates agree",
    };
    let nodes = if report.max_nodes_per_window == 1 { "node" } else { "nodes" };
    let _ = writeln!(
        text,
        "  {mode}\n  a run is expected to take {}; at most {} {nodes} an opening\n  judged at {} ({})",
        length(report.expected_duration_seconds),
        report.max_nodes_per_window,
        report.now,
        if report.clock == Clock::Given { "as given by --at" } else { report.clock.describe() }
    );
    if !report.next.is_empty() {
        let head = ["NEXT", "OPENS", "LATEST START", "CLOSES", "UTC"].map(str::to_owned).to_vec();
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(report.next.iter().map(OpeningReport::row)).collect();
        text.push('\n');
        text.push_str(&table(&rows));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::at;

    fn report(text: &str, time: &str) -> WindowsReport {
        WindowsReport::new(&Settings::parse(text, "f").expect("settings"), at(time), Clock::Given)
    }

    /// 2026-11-30 is a Monday, and 01:00Z is 02:00 in Berlin.
    const NIGHT: &str =
        r#"windows = [{ name = "night", days = ["mon"], start = "01:30", duration = "2h", zone = "Europe/Berlin" }]"#;

    #[test]
    fn the_first_line_says_whether_and_when() {
        let auto = |text: &str| format!("mode = \"auto\"\n{text}");
        let rows: [(&str, String, &str, bool, &str); 6] = [
            (
                "open",
                auto(NIGHT),
                "01:00:00",
                true,
                "√ OPEN: night, for starts until Mon 2026-11-30 03:00 CET (2026-11-30T02:00Z); hard stop in 01:30:00, Mon 2026-11-30 03:30 CET (2026-11-30T02:30Z)\n  opening night-2026-11-30, open since Mon 2026-11-30 01:30 CET (2026-11-30T00:30Z)\n  mode auto",
            ),
            ("open, and observe", NIGHT.to_owned(), "01:00:00", false, "‼ OPEN: night, for starts until "),
            ("the last second to start", auto(NIGHT), "02:00:00", true, "√ OPEN: night"),
            (
                "too late",
                auto(NIGHT),
                "02:00:01",
                false,
                "‼ TOO LATE: night is open, and nothing starts in it any more; hard stop in 00:29:59, Mon",
            ),
            (
                "closed",
                auto(NIGHT),
                "02:30:00",
                false,
                "– CLOSED: night opens in 6d 22:00:00, Mon 2026-12-07 01:30 CET (2026-12-07T00:30Z)\n  night-2026-11-30 closed Mon 2026-11-30 03:30 CET (2026-11-30T02:30Z)\n",
            ),
            (
                "none",
                auto(""),
                "01:00:00",
                false,
                "‼ NEVER: no window is configured, so that nothing ever starts unattended\n  mode auto",
            ),
        ];
        for (name, text, time, may_start, wanted) in rows {
            let report = report(&text, time);
            assert_eq!(report.may_start, may_start, "{name}");
            let shown = windows(&report, Paint::PLAIN);
            assert!(shown.starts_with(wanted), "{name}: {shown}");
        }
    }

    #[test]
    fn windows_that_touch_have_room_together() {
        let two = r#"windows = [
            { name = "a", days = ["mon"], start = "02:00", duration = "20m", zone = "UTC" },
            { name = "b", days = ["mon"], start = "02:20", duration = "20m", zone = "UTC" },
        ]"#;
        let report = report(two, "01:00:00");
        let latest: Vec<Option<Timestamp>> = report.next.iter().take(2).map(|next| next.latest_start).collect();
        assert_eq!(latest, [Some(at("02:10:00")), None]);
        let shown = windows(&report, Paint::PLAIN);
        assert!(shown.contains("b-2026-11-30  Mon 2026-11-30 02:20 UTC  never "), "{shown}");
    }
}
