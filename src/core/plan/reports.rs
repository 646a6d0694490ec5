//! Which reports are to be made: one for each opening of a window, whoever leads when it is over.

use jiff::{SignedDuration, Timestamp};

use super::{parse_time, stamp};
use crate::api::record::{MaintenanceReport, MaintenanceReportSpec, WindowSpan};
use crate::config::Settings;
use crate::planted::{self, Bug};
use crate::report::{WindowInput, is_ripe, name_of};
use crate::windows;

/// How far back a missing report is still made: after that nobody waits for it.
const BACK: SignedDuration = SignedDuration::from_hours(24);
/// How long a report waits for a run that is still at work: a person at breakfast wants to know that much.
const PATIENCE: SignedDuration = SignedDuration::from_hours(2);

/// The openings that ended within the last day, the oldest first.
#[must_use]
pub fn spans(settings: &Settings, now: Timestamp) -> Vec<WindowSpan> {
    let from = now.saturating_sub(BACK).unwrap_or(now);
    let ended = windows::ended(&settings.windows, from, now);
    ended
        .into_iter()
        .map(|opening| WindowSpan {
            opening: opening.id(),
            starts_at: stamp(opening.starts_at),
            ends_at: stamp(opening.ends_at),
        })
        .collect()
}

/// A report that nobody has begun yet.
#[must_use]
pub fn begun(span: &WindowSpan) -> MaintenanceReport {
    let spec = MaintenanceReportSpec { kind: "window".to_owned(), window: Some(span.clone()) };
    MaintenanceReport::new(&name_of(span), spec)
}

/// Whether the report of this opening is to be made now.
#[must_use]
pub fn is_due(input: &WindowInput<'_>) -> bool {
    let ended = parse_time(Some(&input.span.ends_at));
    let patient = ended.is_some_and(|ended| input.now.duration_since(ended) < PATIENCE);
    (is_ripe(input) || !patient) && !planted::is(Bug::NeverReports)
}
