//! Flux's kinds that apply manifests and charts (`kustomize.toolkit.fluxcd.io/v1`, `helm.toolkit.fluxcd.io/v2`).

use super::source::{Namespaces, Source, SourceSpec};
use super::{Condition, Fields, Malformed, Metadata, TriState};
use crate::api::SourceId;

/// What both kinds say of themselves (kstatus).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciled {
    /// Name, namespace, labels, generation, deletion.
    pub metadata: Metadata,
    /// `spec.suspend`: unset means false (KustomizationSpec, HelmReleaseSpec).
    pub suspended: bool,
    /// `status.observedGeneration`; none before the controller looked at it.
    pub observed_generation: Option<i64>,
    /// `status.conditions`
    pub conditions: Vec<Condition>,
}

/// How it stands with one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing<'a> {
    /// Ready, and of the present specification.
    Ready,
    /// Nobody reconciles it until a person says so.
    Suspended,
    /// It is at work, or a change was not looked at yet.
    Reconciling(Option<&'a Condition>),
    /// The last try failed, or it has given up.
    Failing(&'a Condition),
}

impl Reconciled {
    fn of(root: &Fields<'_>) -> Result<Self, Malformed> {
        let (spec, status) = (root.object("spec")?, root.optional_object("status")?);
        Ok(Self {
            metadata: Metadata::of(root)?,
            suspended: spec.optional_bool("suspend")?.unwrap_or(false),
            observed_generation: status
                .as_ref()
                .map_or(Ok(None), |status| status.optional_i64("observedGeneration"))?,
            conditions: status.as_ref().map_or_else(|| Ok(Vec::new()), Condition::list)?,
        })
    }

    fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|one| one.kind == kind)
    }

    /// How it stands. One that is suspended says nothing of now by its conditions; one whose generation is not the
    /// observed one says nothing of its present specification.
    #[must_use]
    pub fn standing(&self) -> Standing<'_> {
        let ready = self.condition("Ready");
        let stalled = self.condition("Stalled").filter(|one| one.status == TriState::True);
        if self.suspended {
            Standing::Suspended
        } else if let Some(stalled) = stalled {
            Standing::Failing(ready.filter(|one| one.status == TriState::False).unwrap_or(stalled))
        } else if self.observed_generation.is_none() || self.observed_generation != self.metadata.generation {
            Standing::Reconciling(ready)
        } else {
            match ready {
                Some(ready) if ready.status == TriState::True => Standing::Ready,
                Some(ready) if ready.status == TriState::False => Standing::Failing(ready),
                other => Standing::Reconciling(other),
            }
        }
    }
}

/// A Kustomization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kustomization(pub Reconciled);

impl Source for Kustomization {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::FluxKustomizations,
        group: "kustomize.toolkit.fluxcd.io",
        version: "v1",
        kind: "Kustomization",
        resource: "kustomizations",
        namespaces: Namespaces::All,
        label_selector: None,
        max_age_seconds: 30,
        built_in: false,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        Reconciled::of(root).map(Self)
    }
}

/// A HelmRelease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelmRelease(pub Reconciled);

impl Source for HelmRelease {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::FluxHelmReleases,
        group: "helm.toolkit.fluxcd.io",
        version: "v2",
        kind: "HelmRelease",
        resource: "helmreleases",
        namespaces: Namespaces::All,
        label_selector: None,
        max_age_seconds: 30,
        built_in: false,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        Reconciled::of(root).map(Self)
    }
}
