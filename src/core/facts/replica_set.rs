//! ReplicaSets: how many pods a workload has, and how many are left without those of a node.

use super::source::{Namespaces, Source, SourceSpec};
use super::{Fields, Malformed, Metadata};
use crate::api::SourceId;

/// A ReplicaSet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaSet {
    /// Name, namespace, uid.
    pub metadata: Metadata,
    /// `spec.replicas`; 1 where it is not set (apps/v1).
    pub replicas: i64,
    /// `status.readyReplicas`; left out when it is 0.
    pub ready_replicas: i64,
}

impl Source for ReplicaSet {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::ReplicaSets,
        group: "apps",
        version: "v1",
        kind: "ReplicaSet",
        resource: "replicasets",
        namespaces: Namespaces::All,
        label_selector: None,
        max_age_seconds: 30,
        built_in: true,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            metadata: Metadata::of(root)?,
            replicas: root.object("spec")?.optional_i64("replicas")?.unwrap_or(1),
            ready_replicas: root.object("status")?.optional_i64("readyReplicas")?.unwrap_or_default(),
        })
    }
}
