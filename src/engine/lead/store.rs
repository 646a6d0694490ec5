//! Where the Lease is.

use std::future::Future;

use maint_core::election::{Answer, LeaseRecord, Version};

/// One Lease that candidates read and write. No method retries or waits on its own account, and each future may be
/// dropped at any point: then it is not known whether a write took place.
pub trait LeaseStore: Send + Sync + 'static {
    /// Reads the most recent state.
    fn get(&self) -> impl Future<Output = Answer> + Send;

    /// Creates the Lease; [`Answer::Conflict`] if there is one.
    fn create(&self, record: LeaseRecord) -> impl Future<Output = Answer> + Send;

    /// Replaces the Lease; [`Answer::Conflict`] unless it is still that version of that object.
    fn update(&self, record: LeaseRecord, version: Version) -> impl Future<Output = Answer> + Send;

    /// The last attempt brought no usable answer: the next one goes over a new connection, to another server if one is
    /// known.
    fn move_on(&self);
}
