//! Makes the reports of windows while leading, and has them delivered.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use maint_core::api::record::{Maintenance, MaintenanceReport, WindowSpan};
use maint_core::config::Settings;
use maint_core::plan::reports;
use maint_core::report::{WindowInput, name_of, window_report};
use tokio::sync::Notify;

use super::Ports;
use super::outbox::{Courier, Outbox};
use super::records::Records;
use crate::execute::{Reports, WriteError};
use crate::lead::LeaseGuard;
use crate::runtime::Clock;

/// How often openings that ended are looked for: nobody waits for a report to the second.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// The same while a message is on its way.
const DELIVERY: Duration = Duration::from_secs(5);

/// Makes reports.
pub struct Reporter<O, F, R> {
    /// The world; records are read.
    pub ports: Arc<Ports<O, F, R>>,
    /// Reads and writes reports.
    pub reports: Arc<dyn Reports>,
    /// The lease.
    pub guard: LeaseGuard,
    /// Time.
    pub clock: Clock,
    /// The settings.
    pub settings: Arc<Settings>,
    /// Takes messages out.
    pub courier: Arc<Courier>,
}

impl<O, F, R: Records> Reporter<O, F, R> {
    /// Looks again and again; it never ends by itself.
    pub async fn run(self) {
        let wake = Arc::new(Notify::new());
        let mut boxes: BTreeMap<String, Outbox> = BTreeMap::new();
        loop {
            let wait = match self.look(&mut boxes, &wake).await {
                Ok(()) if boxes.is_empty() => LOOK_EVERY,
                Ok(()) => DELIVERY,
                Err(error) => {
                    tracing::warn!(category = error.category(), %error, "could not make the reports of windows");
                    LOOK_EVERY
                }
            };
            tokio::select! {
                biased;
                () = wake.notified() => {}
                () = self.clock.sleep(wait) => {}
            }
        }
    }

    async fn look(&self, boxes: &mut BTreeMap<String, Outbox>, wake: &Arc<Notify>) -> Result<(), WriteError> {
        let spans = reports::spans(&self.settings, self.clock.now());
        if spans.is_empty() && boxes.is_empty() {
            return Ok(());
        }
        let known = self.reports.list().await?;
        let told = |report: &MaintenanceReport| report.status.as_ref().is_some_and(|status| !status.verdict.is_empty());
        let find = |span: &WindowSpan| known.iter().find(|one| one.metadata.name.as_deref() == Some(&name_of(span)));
        let missing: Vec<&WindowSpan> = spans.iter().filter(|span| !find(span).is_some_and(told)).collect();
        if !missing.is_empty() {
            let records = self.ports.records.list(true).await?;
            for span in missing {
                self.make(span, find(span), &records, boxes, wake).await?;
            }
        }
        for report in known.iter().filter(|report| told(report)) {
            self.deliver(report, boxes, wake).await?;
        }
        Ok(())
    }

    /// Makes one report; what another leader has begun is gone on with.
    async fn make(
        &self,
        span: &WindowSpan,
        begun: Option<&MaintenanceReport>,
        records: &[Maintenance],
        boxes: &mut BTreeMap<String, Outbox>,
        wake: &Arc<Notify>,
    ) -> Result<(), WriteError> {
        let mode = self.settings.mode.as_str();
        let input = WindowInput { span, mode, records, term: self.guard.term().0, now: self.clock.now() };
        if !reports::is_due(&input) {
            return Ok(());
        }
        let report = match begun {
            Some(report) => report.clone(),
            None => self.reports.create(&self.guard, &reports::begun(span)).await?,
        };
        let status = window_report(&input, &report);
        tracing::info!(report = name_of(span), verdict = status.verdict, message = status.message, "Reporting");
        let written = self.reports.write_status(&self.guard, &report, &status).await?;
        self.deliver(&written, boxes, wake).await
    }

    /// Offers what is not delivered yet, and writes down what was.
    async fn deliver(
        &self,
        report: &MaintenanceReport,
        boxes: &mut BTreeMap<String, Outbox>,
        wake: &Arc<Notify>,
    ) -> Result<(), WriteError> {
        let (Some(name), Some(status)) = (report.metadata.name.clone(), report.status.as_ref()) else { return Ok(()) };
        let mut status = status.clone();
        if !boxes.contains_key(&name) && self.courier.are_settled(&status.outbox, self.clock.now()) {
            return Ok(());
        }
        let outbox = boxes
            .entry(name.clone())
            .or_insert_with(|| Outbox::new(Arc::clone(&self.courier), name.clone(), Arc::clone(wake)));
        outbox.mark(&mut status.outbox);
        if report.status.as_ref() != Some(&status) {
            self.reports.write_status(&self.guard, report, &status).await?;
            outbox.written();
        }
        outbox.offer("", &status.outbox);
        if outbox.are_settled(&status.outbox, self.clock.now()) {
            boxes.remove(&name);
        }
        Ok(())
    }
}
