//! How nodes are made to go down.

use serde::{Deserialize, Serialize};

/// How nodes are made to go down.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ActionSettings {
    /// Action `pod`.
    pub pod: PodAction,
}

/// A short-lived privileged pod runs a command on the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PodAction {
    /// Off by default: it needs a namespace that admits privileged pods.
    pub enabled: bool,
    /// That namespace.
    pub namespace: String,
    /// Image with a shell and `nsenter`, pinned by digest; it must be on the node already.
    pub image: String,
    /// The command, run in the host's namespaces after the boot ID was compared.
    pub command: Vec<String>,
}

impl Default for PodAction {
    fn default() -> Self {
        Self {
            enabled: false,
            namespace: "maint-actions".to_owned(),
            image: String::new(),
            command: ["systemctl", "reboot"].map(str::to_owned).to_vec(),
        }
    }
}
