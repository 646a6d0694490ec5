//! Cilium's kind (`cilium.io/v2`).

use super::source::{Namespaces, Source, SourceSpec};
use super::{Fields, Malformed, Metadata};
use crate::api::SourceId;

/// What an agent of Cilium knows of its node; it has the node's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CiliumNode {
    /// Name, deletion.
    pub metadata: Metadata,
    /// `spec.ipam.podCIDRs`: what the agent gives its pods addresses from; empty where the IPAM mode has none (`crd`,
    /// those of clouds), or none was given yet.
    pub pod_cidrs: Vec<String>,
}

impl Source for CiliumNode {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::CiliumNodes,
        group: "cilium.io",
        version: "v2",
        kind: "CiliumNode",
        resource: "ciliumnodes",
        namespaces: Namespaces::All,
        label_selector: None,
        max_age_seconds: 30,
        built_in: false,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let ipam = root.object("spec")?.object("ipam")?;
        Ok(Self { metadata: Metadata::of(root)?, pod_cidrs: ipam.strings("podCIDRs")? })
    }
}
