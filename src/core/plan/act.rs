//! What a step asks to be done. Each act carries what it needs to be refused when the world has moved on.

use jiff::Timestamp;

use crate::api::Owner;

/// One write to the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Puts our finalizer on the record.
    AddFinalizer,
    /// Takes it off.
    RemoveFinalizer,
    /// Cordons the node and writes our owner annotation, in one request guarded by `resource_version`. With the node
    /// cordoned already it only writes the annotation: a new term, or somebody else's cordon that a person allowed.
    Cordon {
        /// The node.
        node: String,
        /// Its resourceVersion as read.
        resource_version: String,
        /// Who we are.
        owner: Owner,
    },
    /// Uncordons the node and drops our annotations, in one request guarded by `resource_version`.
    Uncordon {
        /// The node.
        node: String,
        /// Its resourceVersion as read.
        resource_version: String,
    },
    /// Drops our owner annotation and leaves the cordon.
    DropOwner {
        /// The node.
        node: String,
        /// Its resourceVersion as read.
        resource_version: String,
    },
    /// Evicts pods, each guarded by its uid.
    Evict(Vec<Eviction>),
    /// Creates the pod that makes the node go down; its name is the record's, so that a second one cannot exist.
    CreateActionPod {
        /// Name of the pod.
        name: String,
        /// The node.
        node: String,
        /// The pod acts on this boot ID only.
        boot_id: String,
    },
    /// Deletes it.
    DeleteActionPod {
        /// Name of the pod.
        name: String,
        /// Its uid.
        uid: String,
    },
    /// Creates a pod that puts kured's sentinel file on the node, or takes it away; its name is the record's.
    CreateSentinelPod {
        /// Name of the pod.
        name: String,
        /// The node.
        node: String,
        /// The file on the node.
        path: String,
        /// What the file says, so that nobody else's is taken for ours.
        mark: String,
        /// The boot on which the file is wanted; none: it is taken away.
        wanted_on: Option<String>,
    },
    /// Deletes it.
    DeleteSentinelPod {
        /// Name of the pod.
        name: String,
        /// Its uid.
        uid: String,
    },
    /// Changes kured's lock from what was read to something else, by compare-and-swap of the value.
    SetLock(SetLock),
    /// Writes that the node was found good after its present boot.
    MarkProven {
        /// The node.
        node: String,
        /// Its resourceVersion as read.
        resource_version: String,
        /// Its boot ID.
        boot_id: String,
        /// When it was found good.
        at: Timestamp,
    },
}

impl Act {
    /// A stable word for logs and metrics.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::AddFinalizer => "add-finalizer",
            Self::RemoveFinalizer => "remove-finalizer",
            Self::Cordon { .. } => "cordon",
            Self::Uncordon { .. } => "uncordon",
            Self::DropOwner { .. } => "drop-owner",
            Self::Evict(_) => "evict",
            Self::CreateActionPod { .. } => "create-action-pod",
            Self::DeleteActionPod { .. } => "delete-action-pod",
            Self::CreateSentinelPod { wanted_on: Some(_), .. } => "create-sentinel",
            Self::CreateSentinelPod { wanted_on: None, .. } => "remove-sentinel",
            Self::DeleteSentinelPod { .. } => "delete-sentinel-pod",
            Self::SetLock(set) => set.why.as_str(),
            Self::MarkProven { .. } => "mark-proven",
        }
    }
}

/// A change of kured's lock annotation. It is void where the value is no longer what was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetLock {
    /// Namespace of kured's DaemonSet.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The annotation's key.
    pub key: String,
    /// The value as read; none where there was no annotation.
    pub before: Option<String>,
    /// The value to be; none takes the annotation away.
    pub after: Option<String>,
    /// What for.
    pub why: LockChange,
}

/// Why kured's lock is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockChange {
    /// It becomes ours, so that no kured can take it.
    Take,
    /// Ours is given back.
    Release,
    /// kured's entry for the node is made to say that the node was cordoned before, so that kured leaves the uncordon
    /// to us.
    KeepCordon,
}

impl LockChange {
    /// A stable word for logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Take => "take-kured-lock",
            Self::Release => "release-kured-lock",
            Self::KeepCordon => "keep-cordon-in-kured-lock",
        }
    }
}

/// One eviction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eviction {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// Its uid: a successor of the same name is never hit.
    pub uid: String,
}
