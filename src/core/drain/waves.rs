//! The order in which pods go.

use serde::Serialize;

use super::Operator;
use super::rules::Treatment;
use crate::facts::Pod;

crate::api::names! {
    /// A wave of a drain. The next one begins when the one before is empty, or only budgets hold it.
    WaveKind, "wave", {
        /// Whatever is none of the others; lower priorities are asked first.
        Ordinary = "ordinary",
        /// Databases: their operator moves the primary first.
        Database = "database",
        /// Priority class `system-cluster-critical` or `system-node-critical`: DNS, network helpers.
        Critical = "critical",
        /// Storage on the node itself: Longhorn's instance managers, Ceph's OSDs. Pods above still write to it.
        Storage = "storage",
        /// maint's own pod: with it goes whoever evicts.
        Own = "own",
    }
}

/// From this priority on a pod is critical to the system (`SystemCriticalPriority`, Kubernetes).
const SYSTEM_CRITICAL: i64 = 2_000_000_000;

/// A place in the order: our own pod last, then what the configuration says, then what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Wave {
    /// Our own pod: after everything, whatever the configuration says.
    #[serde(skip)]
    pub(crate) own: bool,
    /// `order` of the rule that selects it.
    pub order: i32,
    /// What it is.
    pub kind: WaveKind,
}

impl Wave {
    /// The wave of a pod.
    #[must_use]
    pub fn of(pod: &Pod, treatment: &Treatment, own_namespace: &str) -> Self {
        let own = pod.is_own(own_namespace);
        let kind = if own { WaveKind::Own } else { kind_of(pod) };
        Self { own, order: treatment.order, kind }
    }
}

impl std::fmt::Display for Wave {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.order {
            0 => write!(f, "{}", self.kind),
            order => write!(f, "{} (order {order})", self.kind),
        }
    }
}

fn kind_of(pod: &Pod) -> WaveKind {
    let label = |key: &str| pod.metadata.labels.get(key).map(String::as_str);
    let storage = label("longhorn.io/component") == Some("instance-manager")
        || pod.is_of("InstanceManager")
        || label("app") == Some("rook-ceph-osd");
    if storage {
        return WaveKind::Storage;
    }
    if matches!(Operator::of_pod(pod), Some(Operator::CloudNativePg | Operator::Strimzi)) {
        return WaveKind::Database;
    }
    let class = pod.priority_class.as_deref().is_some_and(|class| class.starts_with("system-"));
    if class || pod.priority >= SYSTEM_CRITICAL { WaveKind::Critical } else { WaveKind::Ordinary }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{pod, settings};
    use super::*;

    #[test]
    fn pods_go_in_the_order_of_their_waves() {
        let settings = settings(
            "[[drain.rules]]\nname = \"last\"\npods = \"app=portworx\"\norder = 100\n[[drain.rules]]\nname = \"first\"\npods = \"app=batch\"\norder = -1\n[[drain.rules]]\nname = \"own\"\nnamespaces = [\"maint\"]\norder = -9\n",
        );
        let labelled = |name: &str, labels: serde_json::Value| pod(name, json!({"metadata": {"labels": labels}}));
        let pods = [
            pod("maint-0", json!({"metadata": {"namespace": "maint", "labels": {"app.kubernetes.io/name": "maint"}}})),
            labelled("portworx", json!({"app": "portworx"})),
            labelled("instance-manager", json!({"longhorn.io/component": "instance-manager"})),
            labelled("osd", json!({"app": "rook-ceph-osd", "ceph_daemon_id": "1"})),
            pod(
                "coredns",
                json!({"spec": {"priorityClassName": "system-cluster-critical", "priority": 2_000_000_000}}),
            ),
            labelled("db", json!({"cnpg.io/cluster": "db"})),
            labelled("kafka", json!({"strimzi.io/cluster": "k"})),
            pod("web", json!({"spec": {"priority": 1000}})),
            labelled("batch", json!({"app": "batch"})),
        ];
        let mut waves: Vec<(Wave, &str)> = pods
            .iter()
            .map(|pod| (Wave::of(pod, &Treatment::of(pod, &settings.drain), "maint"), pod.metadata.name.as_str()))
            .collect();
        waves.sort();
        let told: Vec<String> = waves.iter().map(|(wave, name)| format!("{name}: {wave}")).collect();
        let wanted = [
            "batch: ordinary (order -1)",
            "web: ordinary",
            "db: database",
            "kafka: database",
            "coredns: critical",
            "instance-manager: storage",
            "osd: storage",
            "portworx: ordinary (order 100)",
            "maint-0: own (order -9)",
        ];
        assert_eq!(told, wanted);
    }
}
