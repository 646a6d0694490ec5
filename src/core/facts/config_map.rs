//! maint's ConfigMaps: the halt, and what must be remembered between runs.

use std::collections::BTreeMap;

use super::source::{Namespaces, Source, SourceSpec};
use super::{Fields, Malformed, Metadata};
use crate::api::SourceId;

/// A ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigMap {
    /// Name and namespace.
    pub metadata: Metadata,
    /// `data`
    pub data: BTreeMap<String, String>,
}

impl Source for ConfigMap {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::ConfigMaps,
        group: "",
        version: "v1",
        kind: "ConfigMap",
        resource: "configmaps",
        namespaces: Namespaces::Own,
        label_selector: None,
        max_age_seconds: 30,
        built_in: true,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self { metadata: Metadata::of(root)?, data: root.string_map("data")? })
    }
}
