//! kured, the partner that reboots.

use serde::{Deserialize, Serialize};

/// kured, the partner that reboots. Its own configuration is read from its DaemonSet and pods.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KuredSettings {
    /// Host names beside `maint`, `maint.NAMESPACE` and `maint.NAMESPACE.svc...` under which kured's `--prometheus-url`
    /// may reach us.
    pub hosts: Vec<String>,
    /// A real Prometheus (`http://host:port`) whose alerts block as well, as they did when kured asked it itself;
    /// empty for none. Its failure blocks.
    pub prometheus: String,
    /// Names of alerts that do not block; alerts of maint itself never do.
    pub ignore_alerts: Vec<String>,
    /// The pod that puts kured's sentinel file on a node when a person asks for a reboot.
    pub sentinel: SentinelPod,
}

/// The pod that puts kured's sentinel file on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SentinelPod {
    /// Its namespace, which must admit pods with a host path.
    pub namespace: String,
    /// Image with `/bin/sh`, `touch` and `rm`, pinned by digest; without one `maint reboot` cannot ask kured.
    pub image: String,
}

impl Default for SentinelPod {
    fn default() -> Self {
        Self { namespace: "maint-actions".to_owned(), image: String::new() }
    }
}
