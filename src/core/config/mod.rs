//! maint's settings: what a configuration file may say, with the defaults and units of every key.
//!
//! `config/maint.toml` shows them all; a test keeps it equal to [`Settings::default`]. Unknown keys are errors.

mod action;
mod alerts;
mod drain;
mod election;
mod kured;
mod notify;
mod parse;
mod rules;
mod run;
mod scope;
mod window;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::api::{GateId, Moment, Policy};

pub use action::{ActionSettings, PodAction};
pub use alerts::Alerts;
pub use drain::{DrainRule, DrainSettings, PodSelection, Then};
pub use election::Election;
pub use kured::{KuredSettings, SentinelPod};
pub use notify::{Notify, NotifyError, SecretSource, SlackReceiver, WebhookReceiver};
pub use parse::{ConfigError, ConfigErrors};
pub use run::{RunSettings, WhenHealed};
pub use scope::{Scope, ScopeSettings};
pub use window::{Length, Mode, TimeOfDay, Weekday, Window, Zone};

/// All settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Namespace that maint runs in: its Lease and ConfigMaps live there.
    pub namespace: String,
    /// What maint does by itself.
    pub mode: Mode,
    /// Seconds that one node is expected to take: an unattended run starts only where so much is left of its window.
    pub expected_duration_seconds: i64,
    /// Nodes that unattended runs may begin in one opening of a window.
    pub max_nodes_per_window: u32,
    /// When unattended runs may start; without any they never do.
    pub windows: Vec<Window>,
    /// How much of the cluster may be away at a time.
    pub limits: Limits,
    /// Where DNS runs and how much of it must.
    pub coredns: CoreDns,
    /// Longhorn.
    pub longhorn: Longhorn,
    /// VolumeAttachments.
    pub attachments: Attachments,
    /// The network plug-in's agents.
    pub network_agent: NetworkAgent,
    /// Flux.
    pub gitops: GitOps,
    /// Which alerts stop a run.
    pub alerts: Alerts,
    /// API servers and etcd.
    pub control_plane: ControlPlane,
    /// Deadlines and paces of a run.
    pub run: RunSettings,
    /// How nodes are drained.
    pub drain: DrainSettings,
    /// How nodes are made to go down.
    pub action: ActionSettings,
    /// kured, the partner that reboots.
    pub kured: KuredSettings,
    /// The pace of the leader's Lease.
    pub election: Election,
    /// Who is told.
    pub notify: Notify,
    /// What a gate's answer is worth, where it differs from the default.
    pub gates: BTreeMap<GateId, Policy>,
    /// Scopes beside the built-in ones, or changes to those.
    pub scopes: BTreeMap<String, ScopeSettings>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: "maint".to_owned(),
            mode: Mode::Observe,
            expected_duration_seconds: 1800,
            max_nodes_per_window: 1,
            windows: Vec::new(),
            limits: Limits::default(),
            coredns: CoreDns::default(),
            longhorn: Longhorn::default(),
            attachments: Attachments::default(),
            network_agent: NetworkAgent::default(),
            gitops: GitOps::default(),
            alerts: Alerts::default(),
            control_plane: ControlPlane::default(),
            run: RunSettings::default(),
            drain: DrainSettings::default(),
            action: ActionSettings::default(),
            kured: KuredSettings::default(),
            election: Election::default(),
            notify: Notify::default(),
            gates: BTreeMap::new(),
            scopes: BTreeMap::new(),
        }
    }
}

/// How much of the cluster may be away at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// A run starts only while fewer other nodes than this are unavailable (NotReady, cordoned, in flight).
    pub max_unavailable: u32,
    /// Nodes that do not count. Control-plane nodes count all the same.
    pub ignore_nodes: Vec<String>,
    /// Age in seconds from which a kubelet's Lease counts as not renewed (its own duration is 40).
    pub node_lease_max_age_seconds: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_unavailable: 1, ignore_nodes: Vec::new(), node_lease_max_age_seconds: 40 }
    }
}

/// Where DNS runs and how much of it must.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CoreDns {
    /// Namespace of the DNS Service.
    pub namespace: String,
    /// Ready endpoints wanted before a node is touched.
    pub min_replicas: u32,
    /// Different Ready nodes that they must be on.
    pub min_nodes: u32,
}

impl Default for CoreDns {
    fn default() -> Self {
        Self { namespace: "kube-system".to_owned(), min_replicas: 2, min_nodes: 2 }
    }
}

/// Longhorn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Longhorn {
    /// Namespace of its objects.
    pub namespace: String,
    /// A detached volume whose only copy is on the target: block, warn or allow.
    pub single_replica: SingleReplica,
    /// Seconds after which a volume that attaches or detaches counts as stuck.
    pub transition_stuck_seconds: i64,
}

impl Default for Longhorn {
    fn default() -> Self {
        Self {
            namespace: "longhorn-system".to_owned(),
            single_replica: SingleReplica::Warn,
            transition_stuck_seconds: 300,
        }
    }
}

/// What to do where a detached volume's only copy is on the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SingleReplica {
    /// The run does not start.
    Block,
    /// It is shown.
    Warn,
    /// It is fine.
    Allow,
}

/// VolumeAttachments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Attachments {
    /// Seconds in deletion after which an attachment counts as stuck (the attach-detach controller forces after 360).
    pub stuck_seconds: i64,
}

impl Default for Attachments {
    fn default() -> Self {
        Self { stuck_seconds: 360 }
    }
}

/// The network plug-in's agents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkAgent {
    /// Each CiliumNode must have the pod CIDRs of its Node (IPAM mode `kubernetes`).
    pub pod_cidrs_must_agree: bool,
}

/// Flux.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GitOps {
    /// When gate `gitops` is asked.
    pub moments: Vec<Moment>,
}

impl Default for GitOps {
    fn default() -> Self {
        Self { moments: vec![Moment::Start] }
    }
}

/// API servers and etcd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ControlPlane {
    /// Let a run start although the remaining etcd voters have no quorum (one or two servers).
    pub allow_quorum_loss: bool,
    /// Age in seconds from which an EtcdIsVoter heartbeat proves nothing (k3s writes it at least every 300).
    pub etcd_heartbeat_max_age_seconds: i64,
    /// API servers that do not show in node labels, as `name = "host:port"`.
    pub api_servers: BTreeMap<String, String>,
    /// Port of the API servers that are found by node labels.
    pub api_server_port: u16,
}

impl Default for ControlPlane {
    fn default() -> Self {
        Self {
            allow_quorum_loss: false,
            etcd_heartbeat_max_age_seconds: 600,
            api_servers: BTreeMap::new(),
            api_server_port: 6443,
        }
    }
}
