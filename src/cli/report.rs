//! `maint report [NAME]`: what came of a window.

use clap::Args;
use maint_core::api::record::MaintenanceReport;
use maint_core::report::{ReportDocument, WindowVerdict, report_text};

use super::cluster::{Session, tell_left_out};
use super::{Common, Exit, Failure, Output, terminal};

/// Names that an error spells out.
const NAMES_IN_AN_ERROR: usize = 10;

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct Report {
    /// The report; without a name the latest one of a window
    name: Option<String>,
}

impl Report {
    /// Runs it: 0, 5 if a person is needed, 4 if there is no verdict that can be understood.
    ///
    /// # Errors
    /// If there is no such report, or they cannot be read.
    pub async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        let session = Session::open(common).await?;
        let (reports, odd) = session.reports().await?;
        tell_left_out(&odd)?;
        let report = match self.choose(reports) {
            // The one that is meant may be among those.
            Err(failure) if !odd.is_empty() => return Err(Failure { exit: Exit::Unknown, ..failure }.into()),
            chosen => chosen?,
        };
        match common.output {
            Output::Text => terminal::data(&report_text(&report, common.paint(), session.now()))?,
            Output::Json => terminal::json(&ReportDocument::new(&report, session.now()))?,
        }
        Ok(match report.status.as_ref().map(|status| status.verdict.parse()) {
            Some(Ok(WindowVerdict::Attention)) => Exit::PersonNeeded,
            // A newer one may be among those that cannot be understood.
            Some(Ok(_)) if odd.is_empty() || self.name.is_some() => Exit::Fine,
            // Not made yet, or a verdict that this version does not know.
            Some(_) | None => Exit::Unknown,
        })
    }

    fn choose(&self, mut reports: Vec<MaintenanceReport>) -> Result<MaintenanceReport, Failure> {
        reports.sort_by_key(|report| report.metadata.creation_timestamp.as_ref().map(|time| time.0));
        let name = |report: &MaintenanceReport| report.metadata.name.clone().unwrap_or_default();
        let newest: Vec<String> = reports.iter().rev().take(NAMES_IN_AN_ERROR).map(name).collect();
        let wanted = |report: &MaintenanceReport| match &self.name {
            Some(wanted) => name(report) == *wanted,
            None => report.spec.window.is_some(),
        };
        reports.into_iter().rfind(wanted).ok_or_else(|| match &self.name {
            Some(wanted) if newest.is_empty() => Failure::usage(format!("there is no report {wanted}, nor any other")),
            Some(wanted) => {
                Failure::usage(format!("there is no report {wanted}; the newest are {}", newest.join(", ")))
            }
            None => Failure::usage(
                "there is no report yet\n  what helps: one is made at the end of each window; maint windows shows when",
            ),
        })
    }
}
