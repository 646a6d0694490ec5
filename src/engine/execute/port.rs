//! The port of fenced writes: none of them can be expressed without a lease.

use std::future::Future;

use maint_core::api::record::{Maintenance, MaintenanceStatus};
use maint_core::plan::Act;

use super::{StateWrite, WriteError};
use crate::lead::LeaseGuard;

/// What came of an act.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Performed {
    /// Parts that were refused for now, as (pod, why).
    pub refused: Vec<(String, String)>,
}

/// Writes that change nodes, pods, the status of records and what the leader remembers.
pub trait Fenced: Send + Sync {
    /// Writes a record's status, guarded by the record's resourceVersion.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] where somebody wrote the record since it was read: the caller reads again.
    fn write_status(
        &self,
        guard: &LeaseGuard,
        record: &Maintenance,
        status: &MaintenanceStatus,
    ) -> impl Future<Output = Result<Maintenance, WriteError>> + Send;

    /// Writes what the leader remembers, guarded by the ConfigMap's resourceVersion.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] where somebody wrote it, or created it, since it was read: the caller reads again.
    fn write_state(
        &self,
        guard: &LeaseGuard,
        write: &StateWrite,
    ) -> impl Future<Output = Result<(), WriteError>> + Send;

    /// Does one act.
    ///
    /// # Errors
    /// See [`WriteError`]; after each of them the caller looks at the world again.
    fn perform(
        &self,
        guard: &LeaseGuard,
        record: &Maintenance,
        act: &Act,
    ) -> impl Future<Output = Result<Performed, WriteError>> + Send;
}
