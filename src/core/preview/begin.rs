//! When a run would begin.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::Input;
use crate::api::{Finding, GateId, Trigger};
use crate::config::{Mode, Settings};
use crate::windows::{self, Opening, WindowState, next_openings, told};

/// Openings that are looked through for one with room for a run.
const LOOKED_THROUGH: u8 = 14;

crate::api::names! {
    /// When a run would begin.
    Begin, "begin", {
        /// Now, as far as windows say.
        Now = "now",
        /// In a window that is not open yet.
        Window = "window",
        /// Never: no window lets it.
        Never = "never",
    }
}

/// When a run would begin, as far as windows and mode say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Begins {
    /// In short.
    pub when: Begin,
    /// It begins without a person: false in mode `observe`.
    pub by_itself: bool,
    /// The opening that it begins in: window and day.
    pub opening: Option<String>,
    /// The earliest instant.
    pub at: Option<Timestamp>,
    /// The last instant at which it may begin in that opening.
    pub latest_start: Option<Timestamp>,
    /// A sentence.
    pub message: String,
}

impl Begins {
    fn of(when: Begin, message: String) -> Self {
        Self { when, by_itself: true, opening: None, at: None, latest_start: None, message }
    }
}

pub(super) fn begins(input: &Input<'_>, trigger: Trigger, findings: &[Finding]) -> Begins {
    let at = input.at.unwrap_or(input.now);
    if trigger == Trigger::Manual {
        let message = "at once when the gates agree: a person's run is bound by no window".to_owned();
        return Begins { at: Some(at), by_itself: false, ..Begins::of(Begin::Now, message) };
    }
    let settings = input.settings;
    if settings.windows.is_empty() {
        let message = "never by itself: no window is configured".to_owned();
        return Begins { by_itself: false, ..Begins::of(Begin::Never, message) };
    }
    let mut begins = in_windows(settings, at, stopped(findings));
    if settings.mode == Mode::Observe {
        begins.by_itself = false;
        begins.message = format!("{}; but mode is observe, in which nothing starts by itself", begins.message);
    }
    begins
}

/// Whether the present opening is closed to this node: full, over for tonight, or with no room left.
fn stopped(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.gate == GateId::Window && finding.stops())
}

fn in_windows(settings: &Settings, at: Timestamp, stopped: bool) -> Begins {
    let expected = SignedDuration::from_secs(settings.expected_duration_seconds);
    let open = match windows::state(&settings.windows, expected, at) {
        WindowState::Open(open) => Some(open),
        WindowState::Closed(_) => None,
    };
    if let Some(open) = open.as_ref().filter(|open| !stopped && at <= open.latest_start) {
        let zone = &open.opening.zone;
        let message = format!(
            "when the gates agree: window {} is open, for starts until {}",
            open.opening.window,
            told(open.latest_start, zone)
        );
        return Begins {
            opening: Some(open.opening.id()),
            at: Some(at),
            latest_start: Some(open.latest_start),
            ..Begins::of(Begin::Now, message)
        };
    }
    // Windows that touch are one stretch: what counts is the room at the start of the opening.
    let with_room = |opening: Opening| match windows::state(&settings.windows, expected, opening.starts_at) {
        WindowState::Open(open) if open.latest_start >= opening.starts_at => Some((opening, open.latest_start)),
        _ => None,
    };
    match next_openings(&settings.windows, at, LOOKED_THROUGH).into_iter().find_map(with_room) {
        Some((opening, latest)) => {
            let message = format!(
                "not before {}, when window {} opens, for starts until {}",
                told(opening.starts_at, &opening.zone),
                opening.window,
                told(latest, &opening.zone)
            );
            Begins {
                opening: Some(opening.id()),
                at: Some(opening.starts_at),
                latest_start: Some(latest),
                ..Begins::of(Begin::Window, message)
            }
        }
        None => {
            let seconds = settings.expected_duration_seconds;
            let message =
                format!("never by itself: no window is as long as the {seconds} s that a run is expected to take");
            Begins { by_itself: false, ..Begins::of(Begin::Never, message) }
        }
    }
}
