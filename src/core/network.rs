//! Network plug-ins whose agents run as DaemonSets: which of a cluster's DaemonSets they are.
//!
//! k3s' own flannel runs inside the k3s process and has none.

use crate::facts::{DaemonSet, FailureKind, Listed, PodSelector};

/// A network plug-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plugin {
    /// Its name, for people.
    pub name: &'static str,
    /// The label by which its DaemonSet selects its pods, in its own manifests and charts.
    pub label: (&'static str, &'static str),
}

/// Those that are known.
pub const PLUGINS: &[Plugin] = &[
    Plugin { name: "Cilium", label: ("k8s-app", "cilium") },
    Plugin { name: "Calico", label: ("k8s-app", "calico-node") },
    Plugin { name: "Canal", label: ("k8s-app", "canal") },
    Plugin { name: "flannel", label: ("k8s-app", "flannel") },
    Plugin { name: "flannel", label: ("app", "flannel") },
    Plugin { name: "Antrea", label: ("component", "antrea-agent") },
    Plugin { name: "kube-router", label: ("k8s-app", "kube-router") },
    Plugin { name: "Kube-OVN", label: ("app", "kube-ovn-cni") },
    Plugin { name: "OVN-Kubernetes", label: ("app", "ovnkube-node") },
    Plugin { name: "Weave Net", label: ("name", "weave-net") },
    Plugin { name: "Amazon VPC CNI", label: ("k8s-app", "aws-node") },
];

/// The plug-in whose agents a DaemonSet runs: by its selector, or by its own labels where it selects by expressions.
#[must_use]
pub fn plugin_of(daemon_set: &DaemonSet) -> Option<Plugin> {
    let labels = if daemon_set.selector.is_empty() { &daemon_set.metadata.labels } else { &daemon_set.selector };
    let has = |plugin: &&Plugin| labels.get(plugin.label.0).is_some_and(|value| value == plugin.label.1);
    PLUGINS.iter().find(has).copied()
}

/// The selectors of the agents' pods, each once.
///
/// # Errors
/// If the DaemonSets are not known, or one of them cannot be understood: it may be an agent's.
pub fn pod_selectors(daemon_sets: &Listed<DaemonSet>) -> Result<Vec<PodSelector>, (FailureKind, String)> {
    PodSelector::of_daemon_sets(daemon_sets, "the network agents'", |one| plugin_of(one).is_some())
}
