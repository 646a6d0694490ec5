//! Reports of windows: made and written by the leader, read by anybody.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::Method;
use maint_core::api::record::{MaintenanceReport, MaintenanceReportStatus};
use serde::Deserialize as _;
use serde_json::Value;

use super::{Calls, Form, KubeCalls, WRITE_LIMIT, WriteError, name_in, page_of};
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

/// Reports through calls to the API: those of a kube client, or of whatever answers alike.
#[derive(Clone)]
pub struct KubeReports<C = KubeCalls> {
    calls: C,
}

impl KubeReports {
    /// A port. The client must not retry by itself.
    #[must_use]
    pub const fn new(client: kube::Client, clock: Clock) -> Self {
        Self::through(KubeCalls::new(client, clock))
    }
}

impl<C> KubeReports<C> {
    /// A port through these calls.
    #[must_use]
    pub const fn through(calls: C) -> Self {
        Self { calls }
    }
}

impl<C: Calls> KubeReports<C> {
    async fn write(
        &self,
        guard: &LeaseGuard,
        method: Method,
        path: &str,
        report: &MaintenanceReport,
    ) -> Result<MaintenanceReport, WriteError> {
        guard.check(WRITE_LIMIT).map_err(|error| WriteError::NotLeading(error.to_string()))?;
        let body = serde_json::to_value(report).map_err(|error| WriteError::Invalid(error.to_string()))?;
        let answer: Arc<Value> = self.calls.call(method, path, Form::Json, body).await?;
        MaintenanceReport::deserialize(&*answer).map_err(|error| WriteError::Server(format!("odd answer: {error}")))
    }

    /// All reports, and why others cannot be understood.
    ///
    /// # Errors
    /// If they could not be read.
    pub async fn all(&self) -> Result<(Vec<MaintenanceReport>, Vec<String>), WriteError> {
        let (mut reports, mut odd) = (Vec::new(), Vec::new());
        let mut next = String::new();
        for _ in 0..MAX_PAGES {
            let path = format!("{REPORTS}?limit={PAGE}{next}");
            let page = self.calls.read(&path).await?;
            let (items, token) = page_of(&page, "MaintenanceReportList")?;
            for item in items {
                match MaintenanceReport::deserialize(item) {
                    Ok(report) => reports.push(report),
                    Err(error) => odd.push(format!("MaintenanceReport {}: {error}", name_in(item))),
                }
            }
            if token.is_empty() {
                break;
            }
            next = format!("&continue={token}");
        }
        Ok((reports, odd))
    }

    async fn pages(&self) -> Result<Vec<MaintenanceReport>, WriteError> {
        let (reports, odd) = self.all().await?;
        for why in odd {
            tracing::error!(why, "left out a report that cannot be understood");
        }
        Ok(reports)
    }
}

impl<C: Calls> Reports for KubeReports<C> {
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
