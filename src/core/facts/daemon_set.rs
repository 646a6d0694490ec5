//! DaemonSets: kured's carries its lock as an annotation.

use super::source::{Namespaces, Source, SourceSpec};
use super::{Fields, Malformed, Metadata};
use crate::api::SourceId;

/// A DaemonSet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonSet {
    /// Name, namespace and the annotations that maint reads, kured's lock among them.
    pub metadata: Metadata,
    /// `status.desiredNumberScheduled`
    pub desired: i64,
    /// `status.numberReady`
    pub ready: i64,
    /// Images of its containers.
    pub images: Vec<String>,
}

impl Source for DaemonSet {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::DaemonSets,
        group: "apps",
        version: "v1",
        kind: "DaemonSet",
        resource: "daemonsets",
        namespaces: Namespaces::All,
        label_selector: None,
        max_age_seconds: 30,
        built_in: true,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let status = root.object("status")?;
        let template = root.object("spec")?.object("template")?.object("spec")?;
        let containers = template.objects("containers")?;
        Ok(Self {
            metadata: Metadata::of(root)?,
            desired: status.i64("desiredNumberScheduled")?,
            ready: status.i64("numberReady")?,
            images: containers
                .iter()
                .map(|container| Ok(container.optional_str("image")?.unwrap_or_default().to_owned()))
                .collect::<Result<_, Malformed>>()?,
        })
    }
}
