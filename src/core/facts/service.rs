//! Services: the DNS Service is found by its label.

use std::collections::BTreeMap;

use super::source::{Namespaces, Source, SourceSpec};
use super::{Fields, Malformed, Metadata};
use crate::api::SourceId;

/// A Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Name, namespace, labels.
    pub metadata: Metadata,
    /// `spec.selector`; empty for a Service without one.
    pub selector: BTreeMap<String, String>,
    /// `spec.clusterIP`; empty if not set.
    pub cluster_ip: String,
}

impl Source for Service {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::Services,
        group: "",
        version: "v1",
        kind: "Service",
        resource: "services",
        namespaces: Namespaces::Dns,
        label_selector: None,
        max_age_seconds: 30,
        built_in: true,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let spec = root.object("spec")?;
        Ok(Self {
            metadata: Metadata::of(root)?,
            selector: spec.string_map("selector")?,
            cluster_ip: spec.optional_str("clusterIP")?.unwrap_or_default().to_owned(),
        })
    }
}
