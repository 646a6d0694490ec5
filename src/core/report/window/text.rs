//! A window's report on a terminal: the verdict, who was maintained, who waits and why, who was told.

use std::fmt::Write as _;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

use super::super::paint::{Paint, tame};
use super::super::story;
use super::super::table::{length, table};
use super::super::text::since;
use super::WindowVerdict;
use crate::api::record::{MaintenanceReport, MaintenanceReportSpec, MaintenanceReportStatus};
use crate::api::{Status, names};
use crate::plan::parse_time;

/// A report as one document for programs: `kind: MaintenanceReport`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportDocument {
    /// [`names::OUTPUT_API_VERSION`]
    pub api_version: &'static str,
    /// `MaintenanceReport`
    pub kind: &'static str,
    /// When this document was made.
    pub generated_at: Timestamp,
    /// The report's metadata, without `managedFields`.
    pub metadata: ObjectMeta,
    /// What it is about.
    pub spec: MaintenanceReportSpec,
    /// What it says; none while it is being made.
    pub status: Option<MaintenanceReportStatus>,
}

impl ReportDocument {
    /// The document of a report.
    #[must_use]
    pub fn new(report: &MaintenanceReport, now: Timestamp) -> Self {
        let mut metadata = report.metadata.clone();
        metadata.managed_fields = None;
        Self {
            api_version: names::OUTPUT_API_VERSION,
            kind: "MaintenanceReport",
            generated_at: now,
            metadata,
            spec: report.spec.clone(),
            status: report.status.clone(),
        }
    }
}

/// How a report is marked.
fn worth(verdict: &str) -> Status {
    match verdict.parse() {
        Ok(WindowVerdict::Quiet | WindowVerdict::Done | WindowVerdict::Observed) => Status::Pass,
        Ok(WindowVerdict::Waiting) => Status::Warn,
        Ok(WindowVerdict::Attention) => Status::Block,
        Err(_) => Status::Unknown,
    }
}

/// The report as text.
#[must_use]
pub fn report_text(report: &MaintenanceReport, paint: Paint, now: Timestamp) -> String {
    let name = report.metadata.name.as_deref().unwrap_or_default();
    let Some(status) = report.status.as_ref().filter(|status| !status.verdict.is_empty()) else {
        return format!("{} {}\n", paint.mark(Status::Unknown), tame(&format!("{name} is being made")));
    };
    let worth = worth(&status.verdict);
    let line = tame(&format!("{}: {}", status.verdict.to_uppercase(), status.message));
    let mut text = format!("{} {}\n", paint.mark(worth), paint.status(worth, &line));
    if let Some(window) = &report.spec.window {
        let made =
            parse_time(Some(&status.made_at)).map_or_else(String::new, |at| format!(", made {}", since(at, now)));
        let context = format!("{} to {}, mode {}{made}", window.starts_at, window.ends_at, status.mode);
        let _ = writeln!(text, "  {}", paint.dim(&tame(&context)));
    }
    runs(&mut text, status);
    skipped(&mut text, status, now);
    story::messages(&mut text, &status.outbox);
    text
}

fn runs(text: &mut String, status: &MaintenanceReportStatus) {
    let rows: Vec<Vec<String>> = status
        .runs
        .iter()
        .map(|run| {
            let result =
                if run.outcome.is_empty() { run.phase.clone() } else { format!("{} ({})", run.phase, run.outcome) };
            vec![tame(&run.node), tame(&result), length(run.seconds), tame(&run.record), tame(&run.message)]
        })
        .collect();
    section(text, "runs", &["NODE", "RESULT", "TOOK", "RECORD", "MESSAGE"], rows);
}

fn skipped(text: &mut String, status: &MaintenanceReportStatus, now: Timestamp) {
    let time = |at: &str| at.parse::<Timestamp>().map_or_else(|_| "-".to_owned(), |at| since(at, now));
    let rows: Vec<Vec<String>> = status
        .skipped
        .iter()
        .map(|one| {
            let reason = if one.would_have_started { "would have begun" } else { &one.reason };
            vec![
                tame(&one.node),
                time(&one.asked_at),
                time(&one.blocked_since),
                tame(if reason.is_empty() { "-" } else { reason }),
                tame(&one.message),
            ]
        })
        .collect();
    let shown = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    section(text, "waiting", &["NODE", "ASKED", "BLOCKED", "REASON", "MESSAGE"], rows);
    if status.backlog > shown {
        let _ = writeln!(text, "  and {} more: kubectl get maintenances", status.backlog - shown);
    }
}

fn section(text: &mut String, title: &str, head: &[&str], rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    let head = head.iter().map(|word| (*word).to_owned()).collect();
    let all: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let _ = write!(text, "\n{title}\n{}", table(&all));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::record::{ReportedRun, SkippedNode, WindowSpan};
    use crate::report::testing::at;

    fn report() -> MaintenanceReport {
        let window = WindowSpan {
            opening: "nightly-2026-11-30".into(),
            starts_at: "2026-11-30T01:00:00Z".into(),
            ends_at: "2026-11-30T05:00:00Z".into(),
        };
        let spec = MaintenanceReportSpec { kind: "window".into(), window: Some(window) };
        let mut report = MaintenanceReport::new("window-nightly-2026-11-30", spec);
        report.status = Some(MaintenanceReportStatus {
            verdict: "attention".into(),
            message: "nightly-2026-11-30: 1 node held (worker2); 1 node waiting (worker3)".into(),
            made_at: "2026-11-30T05:00:30Z".into(),
            mode: "auto".into(),
            runs: vec![ReportedRun {
                record: "worker2-1".into(),
                node: "worker2".into(),
                phase: "Held".into(),
                outcome: "KubeletUnreachable".into(),
                message: "worker1 -> worker2 is broken\u{1b}[31m".into(),
                seconds: 900,
            }],
            skipped: vec![SkippedNode {
                record: "worker3-1".into(),
                node: "worker3".into(),
                asked_at: "2026-11-30T00:30:00Z".into(),
                gate: "longhorn-volumes".into(),
                reason: "LonghornRebuilding".into(),
                message: "volume pvc-1 is rebuilding".into(),
                blocked_since: "2026-11-30T01:00:00Z".into(),
                would_have_started: false,
            }],
            backlog: 3,
            ..MaintenanceReportStatus::default()
        });
        report
    }

    #[test]
    fn the_verdict_comes_first_and_nothing_steers_the_terminal() {
        let text = report_text(&report(), Paint::PLAIN, at("06:00:00"));
        let wanted = "× ATTENTION: nightly-2026-11-30: 1 node held (worker2); 1 node waiting (worker3)\n";
        assert!(text.starts_with(wanted), "{text}");
        for part in ["worker1 -> worker2 is broken\\u{1b}[31m", "LonghornRebuilding", "00:15:00", "and 2 more"] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn one_that_is_being_made_says_so() {
        let mut report = report();
        report.status = None;
        assert_eq!(report_text(&report, Paint::PLAIN, at("06:00:00")), "? window-nightly-2026-11-30 is being made\n");
    }
}
