//! Operators that make budgets for their own pods and lift them when they have moved what the pod held. Such a budget is
//! waited for: that it allows nothing now does not mean that it never will.

use crate::facts::{OwnerReference, Pod, PodDisruptionBudget};

crate::api::names! {
    /// An operator that lifts its budgets by itself.
    Operator, "operator", {
        /// CloudNativePG: moves the primary when the node is cordoned.
        CloudNativePg = "CloudNativePG",
        /// Longhorn: lifts the budget of an instance manager when no volume needs it any more.
        Longhorn = "Longhorn",
        /// KubeVirt: moves a virtual machine, then its pod ends.
        KubeVirt = "KubeVirt",
        /// Rook: lets one failure domain of Ceph go at a time.
        Rook = "Rook",
        /// Strimzi: its drain cleaner moves Kafka's pods.
        Strimzi = "Strimzi",
    }
}

impl Operator {
    /// API groups of the kinds that own its objects, and the prefixes of its labels.
    const fn marks(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::CloudNativePg => (&["postgresql.cnpg.io"], &["cnpg.io/"]),
            Self::Longhorn => (&["longhorn.io"], &["longhorn.io/"]),
            Self::KubeVirt => (&["kubevirt.io"], &["kubevirt.io"]),
            Self::Rook => (&["ceph.rook.io"], &["rook.io/", "ceph_daemon_id", "rook_cluster"]),
            Self::Strimzi => (&["kafka.strimzi.io", "core.strimzi.io"], &["strimzi.io/"]),
        }
    }

    fn recognises<'k>(self, owners: &[&OwnerReference], mut keys: impl Iterator<Item = &'k String>) -> bool {
        let (groups, prefixes) = self.marks();
        owners.iter().any(|owner| groups.contains(&owner.group()))
            || keys.any(|key| prefixes.iter().any(|prefix| key.starts_with(prefix)))
    }

    /// Whose budget it is: by its owners, its labels, or the labels that it selects by (Longhorn's has no owner).
    #[must_use]
    pub fn of_budget(budget: &PodDisruptionBudget) -> Option<Self> {
        let owners: Vec<&OwnerReference> = budget.owners.iter().collect();
        let selected = budget.selector.iter().flat_map(|selector| {
            selector.match_labels.keys().chain(selector.expressions.iter().map(|(key, _, _)| key))
        });
        let keys: Vec<&String> = budget.metadata.labels.keys().chain(selected).collect();
        Self::ALL.iter().copied().find(|one| one.recognises(&owners, keys.iter().copied()))
    }

    /// Whose pod it is.
    #[must_use]
    pub fn of_pod(pod: &Pod) -> Option<Self> {
        let owners: Vec<&OwnerReference> = pod.controller.iter().collect();
        Self::ALL.iter().copied().find(|one| one.recognises(&owners, pod.metadata.labels.keys()))
    }

    /// What to do where it does not lift its budget.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::CloudNativePg => {
                "the operator moves the primary to another node once this one is cordoned; a cluster of one instance never \
                 goes: set nodeMaintenanceWindow inProgress with reusePVC, or enablePDB: false"
            }
            Self::Longhorn => {
                "Longhorn lifts it when no volume needs this node any more; see its setting node-drain-policy where a volume \
                 has its last copy here"
            }
            Self::KubeVirt => "KubeVirt moves the virtual machine first; one that cannot live-migrate must be stopped",
            Self::Rook => "Rook lets one failure domain go at a time: Ceph must be whole elsewhere",
            Self::Strimzi => {
                "Strimzi's drain cleaner restarts the pod by the operator; without it set maxUnavailable: 1"
            }
        }
    }
}

/// The CloudNativePG cluster of a pod.
pub(super) fn database_cluster(pod: &Pod) -> Option<String> {
    let name = pod.metadata.labels.get("cnpg.io/cluster")?;
    Some(format!("{}/{name}", pod.metadata.namespace))
}

/// It holds the primary of a CloudNativePG cluster (`role` before 1.19).
pub(super) fn is_primary(pod: &Pod) -> bool {
    let role = ["cnpg.io/instanceRole", "role"].iter().find_map(|key| pod.metadata.labels.get(*key));
    database_cluster(pod).is_some() && role.is_some_and(|role| role == "primary")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{budget, pod};
    use super::*;
    use serde_json::json;

    #[test]
    fn operators_are_known_by_owners_labels_and_selectors() {
        let owner = |version: &str, kind: &str| json!([{"apiVersion": version, "kind": kind, "name": "x", "uid": "u", "controller": true}]);
        let rows = [
            (
                "CloudNativePG by owner",
                json!({"ownerReferences": owner("postgresql.cnpg.io/v1", "Cluster")}),
                json!({"app": "db"}),
                Some(Operator::CloudNativePg),
            ),
            ("CloudNativePG by selector", json!({}), json!({"cnpg.io/cluster": "db"}), Some(Operator::CloudNativePg)),
            (
                "Longhorn has no owner",
                json!({}),
                json!({"longhorn.io/component": "instance-manager"}),
                Some(Operator::Longhorn),
            ),
            (
                "KubeVirt",
                json!({"ownerReferences": owner("kubevirt.io/v1", "VirtualMachineInstance")}),
                json!({"x": "y"}),
                Some(Operator::KubeVirt),
            ),
            (
                "Rook",
                json!({"ownerReferences": owner("ceph.rook.io/v1", "CephCluster")}),
                json!({"app": "rook-ceph-osd"}),
                Some(Operator::Rook),
            ),
            ("Strimzi", json!({"labels": {"strimzi.io/cluster": "k"}}), json!({"x": "y"}), Some(Operator::Strimzi)),
            ("nobody", json!({"labels": {"app.kubernetes.io/managed-by": "Helm"}}), json!({"app": "web"}), None),
        ];
        for (row, metadata, labels, wanted) in rows {
            let found = budget("web", json!({"metadata": metadata, "spec": {"selector": {"matchLabels": labels}}}));
            assert_eq!(Operator::of_budget(&found), wanted, "{row}");
        }
    }

    #[test]
    fn the_primary_of_a_database_is_known_by_its_label() {
        let labelled = |labels: serde_json::Value| pod("db-1", json!({"metadata": {"labels": labels}}));
        let rows = [
            ("primary", json!({"cnpg.io/cluster": "db", "cnpg.io/instanceRole": "primary"}), true),
            ("replica", json!({"cnpg.io/cluster": "db", "cnpg.io/instanceRole": "replica"}), false),
            ("old label", json!({"cnpg.io/cluster": "db", "role": "primary"}), true),
            ("another's primary", json!({"role": "primary"}), false),
        ];
        for (row, labels, wanted) in rows {
            assert_eq!(is_primary(&labelled(labels)), wanted, "{row}");
        }
    }
}
