//! Flags and locks that many rows have.

use std::time::Duration;

use crate::doubles::kured::settings::Settings;

/// Period one minute, as in the scenarios.
pub fn minute() -> Settings {
    Settings { period: Duration::from_secs(60), ..Settings::default() }
}

/// The flags of the measured runs.
pub fn measured() -> Settings {
    Settings {
        period: Duration::from_secs(20),
        drain_timeout: Duration::from_secs(60),
        annotate_nodes: true,
        taint: "weave.works/kured-node-reboot".to_owned(),
        prometheus_url: Some("http://maint.maint.svc/kured/node".to_owned()),
        ..Settings::default()
    }
}

/// The same, with maint at the other end.
pub fn gated(settings: Settings) -> Settings {
    Settings { prometheus_url: measured().prometheus_url, ..settings }
}

pub fn lock_of(holder: &str, unschedulable: bool) -> String {
    format!(
        r#"{{"nodeID":"{holder}","metadata":{{"unschedulable":{unschedulable}}},"created":"2026-11-30T01:00:00Z","TTL":0}}"#
    )
}
