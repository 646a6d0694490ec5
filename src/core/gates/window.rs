//! Gate `window`: unattended runs start only inside a window, with room left, and are put back at its hard stop.
//!
//! A person's run is bound by no window. Without windows there is never a start: an installation that nobody told when
//! must not choose an hour by itself. A look before any run says so by a warning in mode `observe`, where nothing
//! starts anyway.
//!
//! The hard stop is frozen when the run begins, like its other deadlines: a configuration that changes in the night
//! moves it no more than a leader that was away for a day does.
//!
//! An hour says nothing where clocks differ, see [`super::clocks`].

use std::collections::BTreeSet;

use jiff::SignedDuration;

use super::reading::installed;
use super::{Draft, GateInput, GateSpec, HardStop, clocks};
use crate::api::{Evidence, Finding, GateId, Moment, Policy, Reason, SourceId, Status, Trigger};
use crate::config::{Mode, Zone};
use crate::facts::Maintenance;
use crate::planted::{self, Bug};
use crate::windows::{self, Closed, Open, Opening, WindowState, told};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::Window,
    moments: &[Moment::Start, Moment::Cordoned, Moment::Handover],
    reads: &[SourceId::Nodes, SourceId::Leases, SourceId::Maintenances],
    reasons: &[
        Reason::OutsideWindow,
        Reason::NoWindowConfigured,
        Reason::WindowTooShort,
        Reason::WindowFull,
        Reason::WindowStopped,
        Reason::WindowTried,
        Reason::ClockSkew,
    ],
    default_policy: Policy::Require,
    doc: "unattended runs only: inside a window with room left; the hard stop has not passed; clocks agree",
    check,
};

/// What evidence of this gate is about.
const SETTINGS: &str = "the configuration";

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::Window, input);
    if input.trigger == Trigger::Manual {
        return draft.not_applicable(Reason::Passed, "a person asks: windows bind unattended runs only");
    }
    let stop = input.run.and_then(|run| run.hard_stop.as_ref());
    let pass = match (input.moment, stop) {
        (Moment::Cordoned | Moment::Handover, Some(stop)) => hard_stop(input, &mut draft, stop),
        _ if input.settings.windows.is_empty() => no_window(input, &mut draft),
        _ => in_window(input, &mut draft),
    };
    if stop.is_some() || !input.settings.windows.is_empty() {
        clocks::compare(input, &mut draft);
    }
    draft.finish(pass)
}

fn no_window(input: &GateInput<'_>, draft: &mut Draft<'_>) -> String {
    // In mode observe nothing starts, and a look asks for everything else.
    let only_looks = input.settings.mode == Mode::Observe && input.run.is_none();
    let status = if only_looks { Status::Warn } else { Status::Block };
    let message = "no window is configured, so that nothing ever starts unattended".to_owned();
    let evidence = Evidence::new(SETTINGS, "windows", "none", "at least one [[windows]]");
    draft.add(status, Reason::NoWindowConfigured, message, None, vec![evidence]);
    String::new()
}

fn in_window<'a>(input: &GateInput<'a>, draft: &mut Draft<'a>) -> String {
    let expected = SignedDuration::from_secs(input.settings.expected_duration_seconds);
    match windows::state(&input.settings.windows, expected, input.now) {
        WindowState::Closed(_) if planted::is(Bug::StartsAnytime) => String::new(),
        WindowState::Closed(closed) => {
            outside(draft, &closed);
            String::new()
        }
        WindowState::Open(open) => {
            if input.moment == Moment::Start {
                room(input, draft, &open);
                nodes_begun(input, draft, &open.opening);
            }
            let (opening, zone) = (&open.opening, &open.opening.zone);
            format!(
                "window {} is open since {}, for starts until {}, hard stop {}",
                opening.window,
                told(open.since, zone),
                told(open.latest_start, zone),
                told(open.ends_at, zone)
            )
        }
    }
}

fn outside(draft: &mut Draft<'_>, closed: &Closed) {
    let opens = closed.next.as_ref().map_or_else(
        || "none opens again".to_owned(),
        |next| format!("{} opens {}", next.window, told(next.starts_at, &next.zone)),
    );
    let last = closed
        .last
        .as_ref()
        .map_or_else(String::new, |last| format!(" since {} closed {}", last.window, told(last.ends_at, &last.zone)));
    let message = format!("no window is open{last}; {opens}");
    let since = closed.last.as_ref().map(|last| last.ends_at);
    let evidence = Evidence::new(SETTINGS, "windows", "closed", "open");
    draft.add(Status::Block, Reason::OutsideWindow, message, since, vec![evidence]);
}

fn room(input: &GateInput<'_>, draft: &mut Draft<'_>, open: &Open) {
    if input.now <= open.latest_start || planted::is(Bug::IgnoresRoom) {
        return;
    }
    let zone = &open.opening.zone;
    let (left, expected) = (open.ends_at.duration_since(input.now).as_secs(), input.settings.expected_duration_seconds);
    let message = format!(
        "window {} closes {}, in {left} s, and a run is expected to take {expected} s: the latest start was {}",
        open.opening.window,
        told(open.ends_at, zone),
        told(open.latest_start, zone)
    );
    let evidence = Evidence::new(
        SETTINGS,
        "expected_duration_seconds",
        expected.to_string(),
        format!("at most the {left} s that are left"),
    );
    draft.add(Status::Block, Reason::WindowTooShort, message, Some(open.latest_start), vec![evidence]);
}

/// What runs of this opening came to: how many nodes were begun with, whether one went wrong, whether this one did.
fn nodes_begun<'a>(input: &GateInput<'a>, draft: &mut Draft<'a>, opening: &Opening) {
    let Some(records) = installed(input, draft, SourceId::Maintenances, &input.facts.maintenances) else { return };
    let id = opening.id();
    let of_opening: Vec<&Maintenance> =
        records.into_iter().filter(|record| record.opening.as_deref() == Some(id.as_str())).collect();
    went_wrong(input, draft, &id, &of_opening);
    let begun: BTreeSet<&str> = of_opening.iter().map(|record| record.node_name.as_str()).collect();
    let limit = input.settings.max_nodes_per_window;
    if u32::try_from(begun.len()).unwrap_or(u32::MAX) < limit {
        return;
    }
    let names: Vec<&str> = begun.into_iter().collect();
    let count = names.len();
    let message = format!("{count} of {limit} nodes were begun in {id}: {}", names.join(", "));
    let evidence = Evidence::new(SETTINGS, "max_nodes_per_window", limit.to_string(), format!("more than {count}"));
    draft.add(Status::Block, Reason::WindowFull, message, None, vec![evidence]);
}

/// A night in which something went wrong is over: whatever it was may hit the next node as well, and a person looks
/// first. A run that was held and went on by itself counts too.
fn went_wrong(input: &GateInput<'_>, draft: &mut Draft<'_>, id: &str, of_opening: &[&Maintenance]) {
    for record in of_opening {
        let object = format!("Maintenance {}", record.metadata.name);
        let outcome = if record.outcome.is_empty() { String::new() } else { format!(" ({})", record.outcome) };
        let stopped = match record.phase.as_str() {
            "Failed" | "Held" => Some(format!("{}{outcome}", record.phase)),
            _ if record.held_at.is_some() => Some("held for a while".to_owned()),
            _ => None,
        };
        if let Some(what) = stopped {
            let message = format!(
                "{} of {id} on {} is or was {what}: nobody else starts in this window",
                object, record.node_name
            );
            let evidence = Evidence::new(&object, "status.phase", what, "no run of this window that went wrong");
            draft.add(Status::Block, Reason::WindowStopped, message, record.held_at, vec![evidence]);
        } else if record.node_name == input.target && record.phase == "Cancelled" {
            let message = format!("{object} of {id} ended without success{outcome}: the next try is the next window");
            let evidence = Evidence::new(&object, "status.phase", &record.phase, "no earlier try in this window");
            draft.add(Status::Block, Reason::WindowTried, message, None, vec![evidence]);
        }
    }
}

fn hard_stop(input: &GateInput<'_>, draft: &mut Draft<'_>, stop: &HardStop) -> String {
    // An opening is called after its window and its day; a window that is no longer configured is told in UTC.
    let named = |name: &str| stop.opening.strip_prefix(name).is_some_and(|rest| rest.len() == "-2026-11-30".len());
    let window = input.settings.windows.iter().find(|window| named(&window.name));
    let zone = window.map_or(Zone::UTC, |window| window.zone.clone());
    let opening = &stop.opening;
    match stop.at {
        Some(at) if input.now < at || planted::is(Bug::IgnoresHardStop) => {
            format!("the hard stop of {opening} is {}", told(at, &zone))
        }
        Some(at) => {
            let message = format!("the window {opening} closed {}", told(at, &zone));
            let evidence = Evidence::new(opening, "hard stop", at.to_string(), "not passed");
            draft.add(Status::Block, Reason::OutsideWindow, message, Some(at), vec![evidence]);
            String::new()
        }
        None => {
            let message = format!("when the window {opening} closes cannot be read from the record");
            draft.block(Reason::OutsideWindow, message, Evidence::new(opening, "hard stop", "unreadable", "a time"));
            String::new()
        }
    }
}

#[cfg(test)]
mod tests;
