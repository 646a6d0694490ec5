//! The port of fenced writes: none of them can be expressed without a lease.

use std::future::Future;

use maint_core::api::record::{Maintenance, MaintenanceStatus};
use maint_core::drain::{Answer, Eviction};
use maint_core::plan::Act;

use super::{Seen, StateWrite, WriteError};
use crate::lead::LeaseGuard;

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

    /// Evicts one pod of a node, guarded by its uid, and says what the API answered. Nothing is retried.
    ///
    /// # Errors
    /// [`WriteError::NotLeading`]: nothing was sent.
    fn evict(
        &self,
        guard: &LeaseGuard,
        node: &str,
        eviction: &Eviction,
        seen: Seen,
    ) -> impl Future<Output = Result<Answer, WriteError>> + Send;

    /// Does one act, but for evictions, which have answers of their own.
    ///
    /// # Errors
    /// See [`WriteError`]; after each of them the caller looks at the world again.
    fn perform(
        &self,
        guard: &LeaseGuard,
        record: &Maintenance,
        act: &Act,
    ) -> impl Future<Output = Result<(), WriteError>> + Send;
}
