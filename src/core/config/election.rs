//! Who of several replicas acts: the pace of the leader's Lease.

use serde::{Deserialize, Serialize};

/// The pace of the leader's Lease. A control-plane node that reboots makes the API blip, therefore the defaults are
/// slower than client-go's 15, 10 and 2 seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Election {
    /// Seconds for which a Lease must be seen unchanged before another replica may take it.
    pub lease_seconds: u32,
    /// Seconds after the last good renewal (from before it was sent) at which the leader stops by itself. The distance
    /// to `lease_seconds` is what clocks of different pace may differ by.
    pub renew_deadline_seconds: u32,
    /// Seconds between two renewals, or two looks of a waiting replica.
    pub retry_seconds: u32,
}

impl Default for Election {
    fn default() -> Self {
        Self { lease_seconds: 30, renew_deadline_seconds: 20, retry_seconds: 4 }
    }
}
