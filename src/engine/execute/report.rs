//! Reports of windows: made and written by the leader, read by anybody.

use futures_util::future::BoxFuture;
use http::Method;
use maint_core::api::record::{MaintenanceReport, MaintenanceReportStatus};
use serde_json::Value;

use super::{Form, WRITE_LIMIT, WriteError, send};
use crate::lead::LeaseGuard;
use crate::runtime::Clock;

/// Path of the reports.
pub const REPORTS: &str = "/apis/maint.dev/v1alpha1/maintenancereports";
/// Reports in a page of a list.
const PAGE: u32 = 100;
/// Pages read at most.
const MAX_PAGES: usize = 50;

/// Reads and writes reports. As an object, so that who has no reports needs no type for them.
pub trait Reports: Send + Sync {
    /// All reports. One that cannot be understood is named in the log and left out.
    ///
    /// # Errors
    /// If they could not be read.
    fn list(&self) -> BoxFuture<'_, Result<Vec<MaintenanceReport>, WriteError>>;

    /// Creates a report without its status, which the API would drop.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] where one of that name exists.
    fn create<'a>(
        &'a self,
        guard: &'a LeaseGuard,
        report: &'a MaintenanceReport,
    ) -> BoxFuture<'a, Result<MaintenanceReport, WriteError>>;

    /// Writes a report's status, guarded by its resourceVersion.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] where somebody wrote it since it was read.
    fn write_status<'a>(
        &'a self,
        guard: &'a LeaseGuard,
        report: &'a MaintenanceReport,
        status: &'a MaintenanceReportStatus,
    ) -> BoxFuture<'a, Result<MaintenanceReport, WriteError>>;
}

/// Reports through a kube client.
#[derive(Clone)]
pub struct KubeReports {
    client: kube::Client,
    clock: Clock,
}

impl KubeReports {
    /// A port. The client must not retry by itself.
    #[must_use]
    pub const fn new(client: kube::Client, clock: Clock) -> Self {
        Self { client, clock }
    }

    async fn write(
        &self,
        guard: &LeaseGuard,
        method: Method,
        path: &str,
        report: &MaintenanceReport,
    ) -> Result<MaintenanceReport, WriteError> {
        guard.check(WRITE_LIMIT).map_err(|error| WriteError::NotLeading(error.to_string()))?;
        let body = serde_json::to_value(report).map_err(|error| WriteError::Invalid(error.to_string()))?;
        let answer = send(&self.client, &self.clock, method, path, Form::Json, Some(&body)).await?;
        serde_json::from_value(answer).map_err(|error| WriteError::Server(format!("odd answer: {error}")))
    }

    async fn pages(&self) -> Result<Vec<MaintenanceReport>, WriteError> {
        let mut reports = Vec::new();
        let mut next = String::new();
        for _ in 0..MAX_PAGES {
            let path = format!("{REPORTS}?limit={PAGE}{next}");
            let read = send(&self.client, &self.clock, Method::GET, &path, Form::Json, None).await;
            let page = read.map_err(WriteError::of_read)?;
            for item in page.get("items").and_then(Value::as_array).into_iter().flatten() {
                match serde_json::from_value::<MaintenanceReport>(item.clone()) {
                    Ok(report) => reports.push(report),
                    Err(error) => {
                        let name = item.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("without a name");
                        tracing::error!(report = name, %error, "left out a report that cannot be understood");
                    }
                }
            }
            match page.pointer("/metadata/continue").and_then(Value::as_str) {
                Some(token) if !token.is_empty() => next = format!("&continue={token}"),
                _ => break,
            }
        }
        Ok(reports)
    }
}

impl Reports for KubeReports {
    fn list(&self) -> BoxFuture<'_, Result<Vec<MaintenanceReport>, WriteError>> {
        Box::pin(self.pages())
    }

    fn create<'a>(
        &'a self,
        guard: &'a LeaseGuard,
        report: &'a MaintenanceReport,
    ) -> BoxFuture<'a, Result<MaintenanceReport, WriteError>> {
        Box::pin(async move {
            let path = format!("{REPORTS}?fieldManager=maint");
            self.write(guard, Method::POST, &path, report).await
        })
    }

    fn write_status<'a>(
        &'a self,
        guard: &'a LeaseGuard,
        report: &'a MaintenanceReport,
        status: &'a MaintenanceReportStatus,
    ) -> BoxFuture<'a, Result<MaintenanceReport, WriteError>> {
        Box::pin(async move {
            let name = report.metadata.name.as_deref().unwrap_or_default();
            let path = format!("{REPORTS}/{name}/status?fieldManager=maint");
            let mut next = report.clone();
            next.status = Some(status.clone());
            self.write(guard, Method::PUT, &path, &next).await
        })
    }
}
