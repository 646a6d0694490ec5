//! Gate ids, moments, policies: the words of the gate table.

/// A name that is none of ours, with the nearest one that is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} `{name}`{}; known: {}", nearest.as_ref().map(|n| format!(", did you mean `{n}`?")).unwrap_or_default(), known.join(", "))]
pub struct UnknownName {
    /// What kind of name was looked for: `gate`, `moment`, `reason` ...
    pub kind: &'static str,
    /// The name as given.
    pub name: String,
    /// The most similar known name, if one is near.
    pub nearest: Option<String>,
    /// All known names.
    pub known: Vec<String>,
}

impl UnknownName {
    /// Builds the error and looks for the nearest of `known`.
    pub fn new(kind: &'static str, name: &str, known: Vec<String>) -> Self {
        let nearest = known
            .iter()
            .map(|candidate| (strsim::jaro_winkler(&candidate.to_lowercase(), &name.to_lowercase()), candidate))
            .filter(|(similarity, _)| *similarity > 0.75)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, candidate)| candidate.clone());
        Self { kind, name: name.to_owned(), nearest, known }
    }
}

/// Declares a plain-string enum: variant, its name on the wire, its documentation.
macro_rules! names {
    ($(#[$meta:meta])* $type:ident, $kind:literal, { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type { $($(#[$doc])* $variant,)* }

        impl $type {
            /// All of them, in the order of every output.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::api::UnknownName;
            fn from_str(name: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|known| known.as_str() == name).ok_or_else(|| {
                    $crate::api::UnknownName::new($kind, name, Self::ALL.iter().map(|n| n.as_str().to_owned()).collect())
                })
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                name.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use names;

names! {
    /// The id of a gate: kebab-case, in configuration, JSON and metrics.
    GateId, "gate", {
        /// Not halted, node not on hold, mode allows, no running or red post-check.
        Control = "control",
        /// An unattended run starts inside a window with room left.
        Window = "window",
        /// Fewer unavailable nodes than the limit; nobody else holds kured's lock.
        Exclusive = "exclusive",
        /// The node itself.
        Target = "target",
        /// The other nodes.
        NodesReady = "nodes-ready",
        /// kured will come, and only when told.
        Kured = "kured",
        /// Enough ready DNS endpoints.
        CorednsReplicas = "coredns-replicas",
        /// DNS endpoints on enough nodes.
        CorednsSpread = "coredns-spread",
        /// The autoscaler that holds the floor really scales.
        CorednsHpa = "coredns-hpa",
        /// Longhorn's volumes are whole and stay reachable.
        LonghornVolumes = "longhorn-volumes",
        /// What Longhorn runs on is whole, and it will let the node be drained.
        LonghornSystem = "longhorn-system",
        /// No stale VolumeAttachment.
        Attachments = "attachments",
        /// No budget keeps a pod on the node for ever.
        DisruptionBudgets = "disruption-budgets",
        /// No pod is lost, none is left, and DaemonSets come back.
        Workloads = "workloads",
        /// PostgreSQL clusters of CloudNativePG are whole, and a primary on the node can move.
        Databases = "databases",
        /// Agents of the network plug-in are Ready.
        NetworkAgent = "network-agent",
        /// Nobody upgrades nodes or installs charts.
        Upgrades = "upgrades",
        /// What Flux applies is applied.
        Gitops = "gitops",
        /// No alert fires.
        Alerts = "alerts",
        /// No backup or restore runs on what the node holds.
        Backups = "backups",
        /// Virtual machines of KubeVirt on the node can move, or may stop.
        VirtualMachines = "virtual-machines",
        /// API servers and etcd quorum.
        ControlPlane = "control-plane",
        /// Every API server reaches every kubelet.
        KubeletReachability = "kubelet-reachability",
    }
}

names! {
    /// When a gate is asked.
    Moment, "moment", {
        /// Before the node is touched.
        Start = "start",
        /// While it is cordoned and drained, before each batch of evictions.
        Cordoned = "cordoned",
        /// Right before the irreversible act, on fresh reads.
        Handover = "handover",
        /// After the return, while the node is still cordoned.
        Verify = "verify",
        /// After the uncordon: the cluster is whole again.
        Settle = "settle",
    }
}

names! {
    /// What a gate's answer is worth.
    Policy, "policy", {
        /// Block and unknown stop the run.
        Require = "require",
        /// They are shown and do not stop it.
        Warn = "warn",
        /// The gate is not asked.
        Off = "off",
    }
}

names! {
    /// What follows from a scope for the node's pods.
    Strategy, "strategy", {
        /// No pod is evicted.
        CordonOnly = "cordon-only",
        /// Pods are evicted before the act.
        Drain = "drain",
    }
}

names! {
    /// Who asks: a person, or something unattended. Window and mode bind the latter only.
    Trigger, "trigger", {
        /// A person typed it.
        Manual = "manual",
        /// kured, an annotation, a condition or an uptime limit.
        Unattended = "unattended",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kebab_case_and_round_trip() {
        for gate in GateId::ALL {
            assert!(gate.as_str().chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{gate}");
            assert_eq!(gate.as_str().parse::<GateId>().as_ref(), Ok(gate));
        }
    }

    #[test]
    fn an_unknown_name_gets_the_nearest_one() {
        let error = "longhorn-volume".parse::<GateId>().expect_err("no such gate");
        assert_eq!(error.nearest.as_deref(), Some("longhorn-volumes"));
        assert!(error.to_string().starts_with("unknown gate `longhorn-volume`, did you mean `longhorn-volumes`?"));
    }
}
