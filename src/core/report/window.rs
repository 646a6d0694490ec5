//! The report of a window: what was done in it, who waits and why, also where nothing was done.
//!
//! A run belongs to the window in which its node was cordoned. A run that is held is in every report until it is not,
//! so that nobody has to remember it.

mod text;

use std::fmt::Write as _;

use jiff::Timestamp;

use super::paint::tame;
use super::table::length;
use crate::api::record::{
    FindingRecord, Maintenance, MaintenanceReport, MaintenanceReportStatus, MaintenanceStatus, OutboxEntry,
    ReportedRun, SkippedNode, WindowSpan,
};
use crate::api::{GateId, MessageKind, Phase, Reason, Status, Trigger};
use crate::config::Mode;
use crate::drain::count;
use crate::plan::{parse_time, phase_of, stamp};

pub use text::{ReportDocument, report_text};

/// Runs and waiting nodes that a report names.
const MAX_LISTED: usize = 50;
/// The same in a message: who reads it on a phone wants the worst first and a count.
const MAX_TOLD: usize = 8;

crate::api::names! {
    /// A window in one word.
    WindowVerdict, "verdict", {
        /// Nobody wanted anything.
        Quiet = "quiet",
        /// Whoever wanted to be maintained was, and is proven.
        Done = "done",
        /// Some were not maintained, or a run is still at work.
        Waiting = "waiting",
        /// Mode `observe`: nothing was to be done.
        Observed = "observed",
        /// A run is held, or one failed: a person is needed.
        Attention = "attention",
    }
}

/// What a report is made of.
#[derive(Debug, Clone, Copy)]
pub struct WindowInput<'a> {
    /// The opening.
    pub span: &'a WindowSpan,
    /// The mode, as the configuration names it.
    pub mode: &'a str,
    /// All records, in any order.
    pub records: &'a [Maintenance],
    /// The leader's term.
    pub term: i64,
    /// Now.
    pub now: Timestamp,
}

/// Whether a report can be made: nothing that began in the window is still at work. What is held may be so for days.
#[must_use]
pub fn is_ripe(input: &WindowInput<'_>) -> bool {
    let at_work = |record: &&Maintenance| {
        let phase = phase_of(record);
        phase.is_in_flight() && phase != Phase::Held && began_in(input.span, record).is_some()
    };
    !input.records.iter().any(|record| at_work(&record))
}

/// The report, with its message queued in the same write.
#[must_use]
pub fn window_report(input: &WindowInput<'_>, report: &MaintenanceReport) -> MaintenanceReportStatus {
    let runs = runs(input);
    let skipped = skipped(input);
    let verdict = verdict(input, &runs, &skipped);
    let message = line(input, verdict, &runs, &skipped);
    let text = told(input, &message, &runs, &skipped);
    let uid = report.metadata.uid.as_deref().unwrap_or_default();
    let severity = if verdict == WindowVerdict::Attention { "warning" } else { "info" };
    let entry = OutboxEntry {
        id: format!("{uid}/0/{}", MessageKind::Report),
        kind: MessageKind::Report.as_str().to_owned(),
        severity: severity.to_owned(),
        text,
        created_at: stamp(input.now),
        ..OutboxEntry::default()
    };
    MaintenanceReportStatus {
        verdict: verdict.as_str().to_owned(),
        message,
        term: input.term,
        made_at: stamp(input.now),
        mode: input.mode.to_owned(),
        backlog: i64::try_from(skipped.len()).unwrap_or(i64::MAX),
        runs: runs.into_iter().take(MAX_LISTED).collect(),
        skipped: skipped.into_iter().take(MAX_LISTED).collect(),
        outbox: vec![entry],
    }
}

fn status_of(record: &Maintenance) -> MaintenanceStatus {
    record.status.clone().unwrap_or_default()
}

/// When the node was cordoned, if that was in the window.
fn began_in(span: &WindowSpan, record: &Maintenance) -> Option<Timestamp> {
    let began = began(record)?;
    let (from, to) = (parse_time(Some(&span.starts_at))?, parse_time(Some(&span.ends_at))?);
    (from <= began && began < to).then_some(began)
}

fn began(record: &Maintenance) -> Option<Timestamp> {
    let timeline = &record.status.as_ref()?.timeline;
    let entry = timeline.iter().find(|entry| entry.phase == Phase::Cordoning.as_str())?;
    parse_time(Some(&entry.at))
}

fn runs(input: &WindowInput<'_>) -> Vec<ReportedRun> {
    let mut found: Vec<(Option<Timestamp>, ReportedRun)> = input
        .records
        .iter()
        .filter(|record| phase_of(record) == Phase::Held || began_in(input.span, record).is_some())
        .map(|record| (began(record), run(input, record)))
        .collect();
    found.sort_by(|a, b| (a.0, &a.1.record).cmp(&(b.0, &b.1.record)));
    found.into_iter().map(|(_, run)| run).collect()
}

fn run(input: &WindowInput<'_>, record: &Maintenance) -> ReportedRun {
    let status = status_of(record);
    let phase = phase_of(record);
    // A terminal phase is entered once, so its beginning is the end.
    let until = parse_time(status.step_started_at.as_ref()).filter(|_| phase.is_terminal()).unwrap_or(input.now);
    ReportedRun {
        record: record.metadata.name.clone().unwrap_or_default(),
        node: record.spec.node_name.clone(),
        phase: phase.as_str().to_owned(),
        outcome: status.outcome,
        message: status.message,
        seconds: began(record).map_or(0, |began| until.duration_since(began).as_secs().max(0)),
    }
}

/// The unattended wishes that are still wishes, the oldest first.
fn skipped(input: &WindowInput<'_>) -> Vec<SkippedNode> {
    let ends = parse_time(Some(&input.span.ends_at)).unwrap_or(input.now);
    let mut found: Vec<SkippedNode> = input
        .records
        .iter()
        .filter(|record| phase_of(record) == Phase::Pending && record.spec.trigger == Trigger::Unattended.as_str())
        // Who asked after the window had closed could not have been served in it.
        .filter(|record| asked_at(record).is_none_or(|at| at < ends))
        .map(|record| skip(input, record))
        .collect();
    found.sort_by(|a, b| (&a.asked_at, &a.record).cmp(&(&b.asked_at, &b.record)));
    found
}

fn asked_at(record: &Maintenance) -> Option<Timestamp> {
    record.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

fn stops(finding: &FindingRecord) -> bool {
    finding.status == Status::Block.as_str() || finding.status == Status::Unknown.as_str()
}

/// Why gate `window` let nobody else start in this opening; none if no run of it went wrong. Once the window is closed,
/// the findings of a wish say no more than that.
fn stopped_by(input: &WindowInput<'_>) -> Option<String> {
    let of_opening = |record: &&Maintenance| {
        let window = record.status.as_ref().and_then(|status| status.window.as_ref());
        window.is_some_and(|window| window.opening == input.span.opening)
    };
    input.records.iter().filter(of_opening).find_map(|record| {
        let status = record.status.as_ref()?;
        let was_held = status.timeline.iter().any(|entry| entry.phase == Phase::Held.as_str());
        let what = match phase_of(record) {
            phase @ (Phase::Failed | Phase::Held) => format!("{phase} ({})", status.outcome),
            _ if was_held => "held for a while".to_owned(),
            _ => return None,
        };
        let (name, node) = (record.metadata.name.as_deref().unwrap_or_default(), &record.spec.node_name);
        Some(format!("{name} on {node} is or was {what}: nobody else started in this window"))
    })
}

fn skip(input: &WindowInput<'_>, record: &Maintenance) -> SkippedNode {
    let status = status_of(record);
    // The mode and the closed window stop everybody; what else stops this node is what a person can do something about.
    let is_mode = |finding: &FindingRecord| finding.reason == Reason::ObserveMode.as_str();
    let general = |finding: &&FindingRecord| is_mode(finding) || finding.gate == GateId::Window.as_str();
    let own = status.findings.iter().filter(|one| stops(one)).find(|finding| !general(finding));
    let shown = own.or_else(|| status.findings.iter().find(|one| stops(one)));
    let observed = status.findings.iter().any(is_mode);
    let closed = shown.is_some_and(|finding| finding.reason == Reason::OutsideWindow.as_str());
    let (reason, message) = match (shown, stopped_by(input).filter(|_| closed)) {
        (_, Some(why)) => (Reason::WindowStopped.as_str().to_owned(), why),
        (Some(finding), None) => (finding.reason.clone(), finding.message.clone()),
        (None, None) if status.message.is_empty() => (String::new(), "was never judged".to_owned()),
        (None, None) => (String::new(), status.message.clone()),
    };
    SkippedNode {
        record: record.metadata.name.clone().unwrap_or_default(),
        node: record.spec.node_name.clone(),
        asked_at: asked_at(record).map(stamp).unwrap_or_default(),
        gate: shown.map(|finding| finding.gate.clone()).unwrap_or_default(),
        reason,
        message,
        blocked_since: status.blocked_since.unwrap_or_default(),
        would_have_started: observed && own.is_none(),
    }
}

fn has_phase(runs: &[ReportedRun], wanted: Phase) -> impl Iterator<Item = &ReportedRun> {
    runs.iter().filter(move |run| run.phase == wanted.as_str())
}

fn verdict(input: &WindowInput<'_>, runs: &[ReportedRun], skipped: &[SkippedNode]) -> WindowVerdict {
    let at_work = runs.iter().any(|run| run.phase.parse().is_ok_and(Phase::is_in_flight));
    if has_phase(runs, Phase::Held).chain(has_phase(runs, Phase::Failed)).next().is_some() {
        WindowVerdict::Attention
    } else if input.mode == Mode::Observe.as_str() {
        WindowVerdict::Observed
    } else if !skipped.is_empty() || at_work {
        WindowVerdict::Waiting
    } else if runs.is_empty() {
        WindowVerdict::Quiet
    } else {
        WindowVerdict::Done
    }
}

fn nodes<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown = names.iter().take(MAX_TOLD).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_TOLD) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The verdict line.
fn line(input: &WindowInput<'_>, verdict: WindowVerdict, runs: &[ReportedRun], skipped: &[SkippedNode]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let by_phase = [
        (Phase::Held, "held"),
        (Phase::Failed, "not maintained"),
        (Phase::Succeeded, "maintained and proven"),
        (Phase::Cancelled, "called off"),
    ];
    for (phase, words) in by_phase {
        let of: Vec<&ReportedRun> = has_phase(runs, phase).collect();
        if !of.is_empty() {
            parts.push(format!(
                "{} {words} ({})",
                count(of.len(), "node"),
                nodes(of.iter().map(|run| run.node.as_str()))
            ));
        }
    }
    let at_work: Vec<&ReportedRun> = runs
        .iter()
        .filter(|run| run.phase != Phase::Held.as_str() && run.phase.parse().is_ok_and(Phase::is_in_flight))
        .collect();
    if !at_work.is_empty() {
        parts.push(format!("still at work on {}", nodes(at_work.iter().map(|run| run.node.as_str()))));
    }
    let (would, rest): (Vec<&SkippedNode>, Vec<&SkippedNode>) =
        skipped.iter().partition(|skipped| skipped.would_have_started);
    if !would.is_empty() {
        parts.push(format!("would have begun with {}", nodes(would.iter().map(|skipped| skipped.node.as_str()))));
    }
    if !rest.is_empty() {
        parts.push(format!(
            "{} waiting ({})",
            count(rest.len(), "node"),
            nodes(rest.iter().map(|one| one.node.as_str()))
        ));
    }
    if parts.is_empty() {
        parts.push("nobody asked for anything".to_owned());
    }
    let mode = match (verdict, skipped.first()) {
        (WindowVerdict::Observed, None) => "mode observe, nothing is touched: ".to_owned(),
        (WindowVerdict::Observed, Some(oldest)) => {
            format!("mode observe keeps kured waiting since {}: ", oldest.asked_at)
        }
        _ => String::new(),
    };
    tame(&format!("{}: {mode}{}", input.span.opening, parts.join("; ")))
}

/// The message: the verdict line, then one line for each run and each node that waits, worst first.
fn told(input: &WindowInput<'_>, message: &str, runs: &[ReportedRun], skipped: &[SkippedNode]) -> String {
    let mut lines = Vec::new();
    let rank = |run: &&ReportedRun| match run.phase.parse() {
        Ok(Phase::Held) => 0,
        Ok(Phase::Failed) => 1,
        Ok(Phase::Succeeded) => 3,
        _ => 2,
    };
    let mut worst: Vec<&ReportedRun> = runs.iter().collect();
    worst.sort_by_key(rank);
    for run in worst {
        let help = if run.phase == Phase::Succeeded.as_str() {
            String::new()
        } else {
            format!(" (maint show {})", run.record)
        };
        let took = length(run.seconds);
        lines.push(format!("{} {} {} in {took}: {}{help}", run.node, run.phase, run.outcome, run.message));
    }
    for skipped in skipped {
        let since = match skipped.blocked_since.parse::<Timestamp>() {
            Ok(since) => format!(", for {}", length(input.now.duration_since(since).as_secs())),
            Err(_) => String::new(),
        };
        let reason = if skipped.reason.is_empty() { String::new() } else { format!("{}: ", skipped.reason) };
        lines.push(format!("{} waits{since}: {reason}{}", skipped.node, skipped.message));
    }
    let mut text = message.to_owned();
    let more = lines.len().saturating_sub(MAX_TOLD);
    for line in lines.iter().take(MAX_TOLD) {
        let _ = write!(text, "\n- {}", tame(line));
    }
    if more > 0 {
        let _ = write!(text, "\n- and {more} more: maint report {}", name_of(input.span));
    }
    text
}

/// Name of the report of an opening: the same whoever makes it, so that there is one.
#[must_use]
pub fn name_of(span: &WindowSpan) -> String {
    format!("window-{}", span.opening)
}

#[cfg(test)]
mod tests;
