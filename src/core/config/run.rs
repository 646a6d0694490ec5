//! Deadlines and paces of one run.

use serde::{Deserialize, Serialize};

/// Deadlines and paces of one run. All times in seconds; none of them ever means "go on".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunSettings {
    /// A manual record that cannot start in this time ends Cancelled.
    pub start_timeout_seconds: i64,
    /// From the first eviction to the last pod gone; then everything is put back.
    pub drain_timeout_seconds: i64,
    /// How long gates may hold a cordoned node up before it is put back.
    pub handover_timeout_seconds: i64,
    /// From commit to Ready with a new boot ID; then the run is held.
    pub return_timeout_seconds: i64,
    /// From the return to all green; then the run is held.
    pub verify_timeout_seconds: i64,
    /// Without progress after the uncordon; then the run is held.
    pub settle_timeout_seconds: i64,
    /// Green sweeps in a row before the cordon is taken off (tunnels of k3s come and go after a boot).
    pub sweeps: i64,
    /// Least time between two sweeps that count.
    pub sweep_interval_seconds: i64,
    /// How long the cluster must have been whole before the run is over.
    pub settle_for_seconds: i64,
    /// Evictions on their way to the API at a time, 1 to 32. A pod that ends or waits holds no place.
    pub parallel_evictions: usize,
    /// Validity of a `go` that a program may claim.
    pub go_seconds: i64,
    /// What a held run does when its node turns out whole: `finish` or `wait`.
    pub when_healed: WhenHealed,
    /// Let a run drain the node of the only replica: its pod is evicted last, and the run goes on where it runs again.
    pub allow_self: bool,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            start_timeout_seconds: 600,
            drain_timeout_seconds: 1800,
            handover_timeout_seconds: 600,
            return_timeout_seconds: 1200,
            verify_timeout_seconds: 900,
            settle_timeout_seconds: 1800,
            sweeps: 3,
            sweep_interval_seconds: 30,
            settle_for_seconds: 60,
            parallel_evictions: 16,
            go_seconds: 30,
            when_healed: WhenHealed::Finish,
            allow_self: false,
        }
    }
}

/// What a held run does when its node turns out whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenHealed {
    /// It verifies and goes on by itself.
    Finish,
    /// It waits for `maint resume`.
    Wait,
}
