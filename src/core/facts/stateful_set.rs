//! StatefulSets: their pods go one at a time.

use super::source::{Namespaces, Source, SourceSpec};
use super::{Fields, Malformed, Metadata};
use crate::api::SourceId;

/// A StatefulSet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatefulSet {
    /// Name, namespace, uid.
    pub metadata: Metadata,
    /// `spec.replicas`; 1 where it is not set (apps/v1).
    pub replicas: i64,
    /// `status.readyReplicas`; left out when it is 0. Pods that are ending count while they are Ready still.
    pub ready_replicas: i64,
    /// Pods that are not ending, Ready or not: `status.currentReplicas`, and `status.updatedReplicas` while they are of two
    /// revisions (`computeReplicaStatus` of the controller leaves ending pods out of these alone).
    pub staying_replicas: i64,
}

impl Source for StatefulSet {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::StatefulSets,
        group: "apps",
        version: "v1",
        kind: "StatefulSet",
        resource: "statefulsets",
        namespaces: Namespaces::All,
        label_selector: None,
        max_age_seconds: 30,
        built_in: true,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let status = root.object("status")?;
        let count = |field: &'static str| status.optional_i64(field).map(Option::unwrap_or_default);
        let revision = |field: &'static str| status.optional_str(field);
        let updated =
            if revision("currentRevision")? == revision("updateRevision")? { 0 } else { count("updatedReplicas")? };
        Ok(Self {
            metadata: Metadata::of(root)?,
            replicas: root.object("spec")?.optional_i64("replicas")?.unwrap_or(1),
            ready_replicas: count("readyReplicas")?,
            staying_replicas: count("currentReplicas")?.saturating_add(updated),
        })
    }
}
