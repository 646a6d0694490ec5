//! Nodes.

use super::source::{Namespaces, Source, SourceSpec};
use super::{Condition, Fields, Malformed, Metadata};
use crate::api::{SourceId, names};

/// A Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Name, uid, labels, and maint's and kured's annotations.
    pub metadata: Metadata,
    /// `spec.unschedulable`; the API leaves false out.
    pub unschedulable: bool,
    /// `spec.taints`
    pub taints: Vec<Taint>,
    /// `status.conditions`
    pub conditions: Vec<Condition>,
    /// `status.nodeInfo.bootID`
    pub boot_id: String,
    /// `status.nodeInfo.kernelVersion`
    pub kernel_version: String,
    /// `status.addresses` of type InternalIP.
    pub internal_ips: Vec<String>,
    /// `spec.podCIDRs`: what its pods may have addresses of, one a family; empty where nobody gives node CIDRs.
    pub pod_cidrs: Vec<String>,
    /// The manager that owns `spec.unschedulable` (`metadata.managedFields`), if the document shows it.
    pub unschedulable_manager: Option<String>,
}

/// A taint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taint {
    /// `key`
    pub key: String,
    /// `effect`
    pub effect: String,
}

impl Node {
    /// Taint that accompanies `spec.unschedulable` (node lifecycle controller).
    pub const UNSCHEDULABLE_TAINT: &'static str = "node.kubernetes.io/unschedulable";

    /// The condition of a type.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// Whether it is cordoned, by the field or by the taint that the controllers keep beside it.
    #[must_use]
    pub fn is_cordoned(&self) -> bool {
        self.unschedulable || self.taints.iter().any(|taint| taint.key == Self::UNSCHEDULABLE_TAINT)
    }

    /// Whether its role label makes it a control-plane node; its value does not matter.
    #[must_use]
    pub fn is_control_plane(&self) -> bool {
        self.metadata.labels.contains_key(names::LABEL_CONTROL_PLANE)
    }

    /// Whether it is labelled as an etcd member.
    #[must_use]
    pub fn is_etcd(&self) -> bool {
        self.metadata.labels.contains_key(names::LABEL_ETCD)
    }
}

impl Source for Node {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::Nodes,
        group: "",
        version: "v1",
        kind: "Node",
        resource: "nodes",
        namespaces: Namespaces::All,
        label_selector: None,
        max_age_seconds: 30,
        built_in: true,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let spec = root.object("spec")?;
        let status = root.object("status")?;
        let info = status.object("nodeInfo")?;
        Ok(Self {
            metadata: Metadata::of(root)?,
            unschedulable: spec.optional_bool("unschedulable")?.unwrap_or(false),
            taints: spec.objects("taints")?.iter().map(taint).collect::<Result<_, _>>()?,
            conditions: Condition::list(&status)?,
            boot_id: info.str("bootID")?.to_owned(),
            kernel_version: info.optional_str("kernelVersion")?.unwrap_or_default().to_owned(),
            internal_ips: internal_ips(&status)?,
            pod_cidrs: spec.strings("podCIDRs")?,
            unschedulable_manager: unschedulable_manager(&root.object("metadata")?)?,
        })
    }
}

fn taint(entry: &Fields<'_>) -> Result<Taint, Malformed> {
    Ok(Taint { key: entry.str("key")?.to_owned(), effect: entry.str("effect")?.to_owned() })
}

fn internal_ips(status: &Fields<'_>) -> Result<Vec<String>, Malformed> {
    let mut found = Vec::new();
    for address in status.objects("addresses")? {
        if address.str("type")? == "InternalIP" {
            found.push(address.str("address")?.to_owned());
        }
    }
    Ok(found)
}

/// Walks `metadata.managedFields` for the entry that owns `f:spec.f:unschedulable`.
fn unschedulable_manager(metadata: &Fields<'_>) -> Result<Option<String>, Malformed> {
    for entry in metadata.objects("managedFields")? {
        let Some(fields) = entry.optional_object("fieldsV1")? else { continue };
        let Some(spec) = fields.optional_object("f:spec")? else { continue };
        if spec.optional_object("f:unschedulable")?.is_some() {
            return Ok(entry.optional_str("manager")?.map(str::to_owned));
        }
    }
    Ok(None)
}
