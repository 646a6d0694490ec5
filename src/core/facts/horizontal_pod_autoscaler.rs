//! HorizontalPodAutoscalers of the DNS namespace.

use super::source::{Namespaces, Source, SourceSpec};
use super::{Condition, Fields, Malformed, Metadata};
use crate::api::SourceId;

/// A HorizontalPodAutoscaler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HorizontalPodAutoscaler {
    /// Name, namespace, generation.
    pub metadata: Metadata,
    /// `spec.scaleTargetRef`: kind and name.
    pub target: (String, String),
    /// `spec.minReplicas`; absent means 1 (autoscaling/v2).
    pub min_replicas: i64,
    /// `spec.maxReplicas`
    pub max_replicas: i64,
    /// `status.observedGeneration`
    pub observed_generation: Option<i64>,
    /// `status.currentReplicas`; the API leaves zero out.
    pub current_replicas: i64,
    /// `status.conditions`
    pub conditions: Vec<Condition>,
}

impl Source for HorizontalPodAutoscaler {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::HorizontalPodAutoscalers,
        group: "autoscaling",
        version: "v2",
        kind: "HorizontalPodAutoscaler",
        resource: "horizontalpodautoscalers",
        namespaces: Namespaces::Dns,
        label_selector: None,
        max_age_seconds: 30,
        built_in: true,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let spec = root.object("spec")?;
        let target = spec.object("scaleTargetRef")?;
        let status = root.optional_object("status")?;
        let status = status.as_ref();
        Ok(Self {
            metadata: Metadata::of(root)?,
            target: (target.str("kind")?.to_owned(), target.str("name")?.to_owned()),
            min_replicas: spec.optional_i64("minReplicas")?.unwrap_or(1),
            max_replicas: spec.i64("maxReplicas")?,
            observed_generation: status.map_or(Ok(None), |status| status.optional_i64("observedGeneration"))?,
            current_replicas: status.map_or(Ok(None), |status| status.optional_i64("currentReplicas"))?.unwrap_or(0),
            conditions: status.map_or_else(|| Ok(Vec::new()), Condition::list)?,
        })
    }
}
