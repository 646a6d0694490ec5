//! Leadership: one of several replicas acts, and everything that it does to the cluster is guarded by its Lease.
//!
//! `maint_core::election` decides; this module sends its requests and keeps its promises in time. The guard
//! ([`LeaseGuard`]) is asked before each guarded call. When the Lease is lost, its token is cancelled at once and
//! [`Leadership::Lost`] is shown: guarded work stops, and the process ends. A replica that wants others to lead (its
//! own node is to be rebooted) abstains, stops its guarded work and releases.

mod elector;
mod guard;
mod kubernetes;
mod store;
#[cfg(test)]
mod tests;

pub use elector::{Candidacy, Ended, LeadError, Leadership, Release, stand};
pub use guard::{LeaseGuard, NotLeading};
pub use kubernetes::{ClientSource, KubernetesLease, lease_of, seen_of};
pub use store::LeaseStore;
