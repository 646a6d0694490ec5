//! The table of what maint reads: rights, freshness and dumps follow from it.

use serde_json::Value;

use super::{
    CiliumNode, ConfigMap, DaemonSet, Deployment, EndpointSlice, Fields, HorizontalPodAutoscaler, Item, Job, KuredPod,
    Lease, Maintenance, MaintenanceReport, Malformed, Node, Pod, PodDisruptionBudget, ReplicaSet, Service, StatefulSet,
    VolumeAttachment, backup, cnpg, flux, kubevirt, longhorn, upgrade,
};
use crate::api::SourceId;

/// A kind that is listed: its row of the table and its decoder.
pub trait Source: Sized + Clone + Send + 'static {
    /// The row.
    const SPEC: SourceSpec;

    /// Decodes one object.
    ///
    /// # Errors
    /// If a field that a gate reads is missing or has the wrong type.
    fn decode(root: &Fields<'_>) -> Result<Self, Malformed>;

    /// Decodes one object of a list; what cannot be understood is kept by name.
    fn item(value: &Value) -> Item<Self> {
        let object = object_name(Self::SPEC.kind, value);
        match Fields::root(&object, value).and_then(|root| Self::decode(&root)) {
            Ok(fact) => Item::Good(fact),
            Err(malformed) => Item::Malformed(malformed),
        }
    }
}

/// `Kind namespace/name`, as far as the document tells.
fn object_name(kind: &str, value: &Value) -> String {
    let part = |key: &str| value.get("metadata").and_then(|metadata| metadata.get(key)).and_then(Value::as_str);
    match (part("namespace"), part("name")) {
        (Some(namespace), Some(name)) => format!("{kind} {namespace}/{name}"),
        (None, Some(name)) => format!("{kind} {name}"),
        _ => format!("{kind} without a name"),
    }
}

/// One row: where a fact comes from and how old it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceSpec {
    /// Its id.
    pub id: SourceId,
    /// API group; empty for core.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind, as in dumps.
    pub kind: &'static str,
    /// Plural name, as in paths and rights.
    pub resource: &'static str,
    /// Where to list.
    pub namespaces: Namespaces,
    /// A label selector for live lists; dumps are filtered by the gate anyway.
    pub label_selector: Option<&'static str>,
    /// Oldest answer that a decision may rest on, in seconds.
    pub max_age_seconds: i64,
    /// Whether the kind is built in (a dump without a file for it is unknown) or comes with a CRD.
    pub built_in: bool,
}

/// Where a kind is listed. The names are resolved from the settings, since namespaces can be configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespaces {
    /// Cluster-scoped, or across all namespaces.
    All,
    /// Exactly these.
    These(&'static [&'static str]),
    /// The namespace of the DNS Service (`[coredns] namespace`).
    Dns,
    /// The namespace of the DNS Service and `default`, where Service `kubernetes` lives.
    DnsAndDefault,
    /// Longhorn's (`[longhorn] namespace`).
    Longhorn,
    /// maint's own.
    Own,
    /// All, for one node: `spec.nodeName=<target>`; every pod of the cluster where none is named.
    OnTarget,
    /// All, for pods that no node was found for: `spec.nodeName=` and `status.phase=Pending`; every pod of a dump.
    Unscheduled,
    /// The namespaces of the pods that act on nodes (`[action.pod] namespace`, `[kured.sentinel] namespace`). Only a
    /// run asks.
    Actions,
    /// Those of the DaemonSets that run kured, with their own selectors.
    OfKured,
    /// Those of the DaemonSets that run network agents, with their own selectors.
    OfNetworkAgents,
}

/// Every source that is listed, in the order of every output.
pub const SOURCES: &[SourceSpec] = &[
    Node::SPEC,
    Lease::SPEC,
    DaemonSet::SPEC,
    Service::SPEC,
    EndpointSlice::SPEC,
    Pod::SPEC,
    Pod::ON_TARGET,
    Pod::ACTIONS,
    Pod::UNSCHEDULED,
    Pod::OWN,
    KuredPod::SPEC,
    Deployment::SPEC,
    StatefulSet::SPEC,
    ReplicaSet::SPEC,
    HorizontalPodAutoscaler::SPEC,
    PodDisruptionBudget::SPEC,
    longhorn::Volume::SPEC,
    longhorn::Replica::SPEC,
    longhorn::Engine::SPEC,
    longhorn::Setting::SPEC,
    longhorn::Node::SPEC,
    longhorn::InstanceManager::SPEC,
    longhorn::Attachment::SPEC,
    cnpg::Cluster::SPEC,
    Pod::CNPG,
    Pod::NETWORK_AGENTS,
    CiliumNode::SPEC,
    upgrade::Plan::SPEC,
    Job::SPEC,
    flux::Kustomization::SPEC,
    flux::HelmRelease::SPEC,
    backup::VeleroBackup::SPEC,
    backup::VeleroRestore::SPEC,
    backup::LonghornBackup::SPEC,
    backup::LonghornSystemBackup::SPEC,
    backup::LonghornSystemRestore::SPEC,
    backup::CnpgBackup::SPEC,
    kubevirt::Instance::SPEC,
    kubevirt::Migration::SPEC,
    kubevirt::KubeVirt::SPEC,
    VolumeAttachment::SPEC,
    ConfigMap::SPEC,
    Maintenance::SPEC,
    MaintenanceReport::SPEC,
];

/// The row of a listed source; none for what is probed (`api-servers`, `matrix`).
#[must_use]
pub fn spec_of(id: SourceId) -> Option<&'static SourceSpec> {
    SOURCES.iter().find(|spec| spec.id == id)
}
