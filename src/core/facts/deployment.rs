//! Deployments of the DNS namespace: CoreDNS and what scales it.

use std::collections::BTreeMap;

use super::source::{Namespaces, Source, SourceSpec};
use super::{Fields, Malformed, Metadata};
use crate::api::SourceId;

/// A Deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// Name, namespace, labels, generation.
    pub metadata: Metadata,
    /// `spec.replicas`; absent means 1 (apps/v1).
    pub replicas: i64,
    /// `spec.template.metadata.labels`
    pub pod_labels: BTreeMap<String, String>,
    /// Images of its containers.
    pub images: Vec<String>,
    /// `status.observedGeneration`
    pub observed_generation: Option<i64>,
    /// `status.updatedReplicas`; the API leaves zero out.
    pub updated_replicas: i64,
    /// `status.readyReplicas`; the API leaves zero out.
    pub ready_replicas: i64,
}

impl Source for Deployment {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::Deployments,
        group: "apps",
        version: "v1",
        kind: "Deployment",
        resource: "deployments",
        namespaces: Namespaces::Dns,
        label_selector: None,
        max_age_seconds: 30,
        built_in: true,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let spec = root.object("spec")?;
        let template = spec.object("template")?;
        let labels = template.optional_object("metadata")?;
        let status = root.object("status")?;
        let containers = template.object("spec")?.objects("containers")?;
        Ok(Self {
            metadata: Metadata::of(root)?,
            replicas: spec.optional_i64("replicas")?.unwrap_or(1),
            pod_labels: labels.map_or_else(|| Ok(BTreeMap::new()), |metadata| metadata.string_map("labels"))?,
            images: containers
                .iter()
                .map(|container| Ok(container.optional_str("image")?.unwrap_or_default().to_owned()))
                .collect::<Result<_, Malformed>>()?,
            observed_generation: status.optional_i64("observedGeneration")?,
            updated_replicas: status.optional_i64("updatedReplicas")?.unwrap_or(0),
            ready_replicas: status.optional_i64("readyReplicas")?.unwrap_or(0),
        })
    }
}
