//! Pods of the DNS namespace: who serves DNS where no EndpointSlice tells.

use super::source::{Namespaces, Source, SourceSpec};
use super::{Condition, Fields, Malformed, Metadata};
use crate::api::SourceId;

/// A Pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Name, namespace, labels, deletion.
    pub metadata: Metadata,
    /// `spec.nodeName`; none while it is not scheduled.
    pub node_name: Option<String>,
    /// `status.phase`
    pub phase: String,
    /// `status.conditions`
    pub conditions: Vec<Condition>,
}

impl Source for Pod {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::DnsPods,
        group: "",
        version: "v1",
        kind: "Pod",
        resource: "pods",
        namespaces: Namespaces::Dns,
        label_selector: Some("k8s-app=kube-dns"),
        max_age_seconds: 30,
        built_in: true,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let status = root.object("status")?;
        Ok(Self {
            metadata: Metadata::of(root)?,
            node_name: root.object("spec")?.optional_str("nodeName")?.map(str::to_owned),
            phase: status.optional_str("phase")?.unwrap_or_default().to_owned(),
            conditions: Condition::list(&status)?,
        })
    }
}
