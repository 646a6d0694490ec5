//! What an election reads and writes, and how long it waits.

use std::time::Duration;

use jiff::Timestamp;

use crate::config::Election;

/// The fencing number of a tenure: `spec.leaseTransitions`, at least 1 for a leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Term(pub i64);

impl Term {
    /// The next higher one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl std::fmt::Display for Term {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The fields of a Lease that an election is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeaseRecord {
    /// `spec.holderIdentity`; empty: nobody.
    pub holder: String,
    /// `spec.leaseTransitions`; zero where there is none.
    pub term: Term,
    /// `spec.leaseDurationSeconds`; zero where there is none.
    pub duration: Duration,
    /// `spec.acquireTime`, for people.
    pub acquired: Option<Timestamp>,
    /// `spec.renewTime`, for people: it is never compared with a clock.
    pub renewed: Option<Timestamp>,
}

/// Which state of which object: what a write names as the one that it replaces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Version {
    /// `metadata.uid`. A PUT that names a uid cannot create a Lease anew that was deleted meanwhile (the API allows
    /// Leases to be created by PUT).
    pub uid: String,
    /// `metadata.resourceVersion`
    pub resource_version: String,
}

/// A Lease as the API showed it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// Its fields.
    pub record: LeaseRecord,
    /// Its version.
    pub version: Version,
}

/// The pace of an election, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For how long a Lease must be seen unchanged before it may be taken.
    pub lease: Duration,
    /// How long a tenure lasts after the last good renewal was sent.
    pub renew_deadline: Duration,
    /// Between two attempts.
    pub retry: Duration,
}

/// The pace does not make sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadElection {
    /// Clocks of different pace would make two leaders.
    #[error(
        "election.lease_seconds ({lease}) must be at least a quarter more than election.renew_deadline_seconds \
         ({deadline}): two leaders at a time otherwise"
    )]
    LeaseTooShort {
        /// `lease_seconds`
        lease: u32,
        /// `renew_deadline_seconds`
        deadline: u32,
    },
    /// One lost request would end the tenure.
    #[error(
        "election.renew_deadline_seconds ({deadline}) must be at least three times election.retry_seconds ({retry}), \
         which is at least 1: one lost request would end a run otherwise"
    )]
    DeadlineTooShort {
        /// `renew_deadline_seconds`
        deadline: u32,
        /// `retry_seconds`
        retry: u32,
    },
}

impl TryFrom<&Election> for Limits {
    type Error = BadElection;

    fn try_from(settings: &Election) -> Result<Self, BadElection> {
        let &Election { lease_seconds: lease, renew_deadline_seconds: deadline, retry_seconds: retry } = settings;
        if u64::from(lease) * 4 < u64::from(deadline) * 5 {
            return Err(BadElection::LeaseTooShort { lease, deadline });
        }
        if retry == 0 || u64::from(deadline) < u64::from(retry) * 3 {
            return Err(BadElection::DeadlineTooShort { deadline, retry });
        }
        let seconds = |count: u32| Duration::from_secs(u64::from(count));
        Ok(Self { lease: seconds(lease), renew_deadline: seconds(deadline), retry: seconds(retry) })
    }
}
