//! PodDisruptionBudgets of the DNS namespace: one can hold the floor of CoreDNS.

use super::source::{Namespaces, Source, SourceSpec};
use super::{Fields, LabelSelector, Malformed, Metadata};
use crate::api::SourceId;

/// A PodDisruptionBudget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodDisruptionBudget {
    /// Name, namespace, generation.
    pub metadata: Metadata,
    /// `spec.selector`; none selects nothing (policy/v1).
    pub selector: Option<LabelSelector>,
    /// `status.disruptionsAllowed`
    pub disruptions_allowed: i64,
    /// `status.desiredHealthy`
    pub desired_healthy: i64,
    /// `status.expectedPods`
    pub expected_pods: i64,
    /// `status.observedGeneration`
    pub observed_generation: Option<i64>,
}

impl Source for PodDisruptionBudget {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::PodDisruptionBudgets,
        group: "policy",
        version: "v1",
        kind: "PodDisruptionBudget",
        resource: "poddisruptionbudgets",
        namespaces: Namespaces::Dns,
        label_selector: None,
        max_age_seconds: 30,
        built_in: true,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let status = root.object("status")?;
        let selector = root.object("spec")?.optional_object("selector")?;
        Ok(Self {
            metadata: Metadata::of(root)?,
            selector: selector.as_ref().map(LabelSelector::of).transpose()?,
            disruptions_allowed: status.i64("disruptionsAllowed")?,
            desired_healthy: status.i64("desiredHealthy")?,
            expected_pods: status.i64("expectedPods")?,
            observed_generation: status.optional_i64("observedGeneration")?,
        })
    }
}
