//! What is known of the cluster, in own lean types with just the fields that gates read.
//!
//! *Absent* (the API says that the kind is not there), *failed* (it could not be read) and *not asked* (this input
//! cannot answer) are told apart from the reader up, and one bad item neither hides a list nor counts as fine.
//! One file per kind: its type, how it is decoded, and its row of [`SOURCES`].

mod alert;
pub mod backup;
mod cilium_node;
pub mod cnpg;
mod common;
mod config_map;
mod daemon_set;
mod deployment;
mod endpoint_slice;
pub mod flux;
mod horizontal_pod_autoscaler;
mod job;
pub mod kubevirt;
mod kured_pod;
mod lease;
pub mod longhorn;
mod maintenance;
mod node;
mod observation;
mod overlay;
mod pod;
mod pod_disruption_budget;
mod pod_selector;
mod read;
mod replica_set;
mod service;
mod source;
mod stateful_set;
pub mod upgrade;
mod volume_attachment;

pub use alert::Alert;
pub use cilium_node::CiliumNode;
pub use common::{Condition, LabelSelector, Metadata, OwnerReference, TriState};
pub use config_map::ConfigMap;
pub use daemon_set::{Container, DaemonSet};
pub use deployment::Deployment;
pub use endpoint_slice::{Endpoint, EndpointSlice};
pub use horizontal_pod_autoscaler::HorizontalPodAutoscaler;
pub use job::Job;
pub use kured_pod::KuredPod;
pub use lease::Lease;
pub use maintenance::{Maintenance, MaintenanceReport};
pub use node::{Node, Taint};
pub use observation::{FailureKind, Item, Listed, Malformed, Observation};
pub use pod::{EmptyDir, Place, Pod};
pub use pod_disruption_budget::{PodDisruptionBudget, UnhealthyPolicy};
pub use pod_selector::PodSelector;
pub use read::Fields;
pub use replica_set::ReplicaSet;
pub use service::Service;
pub use source::{Namespaces, SOURCES, Source, SourceSpec, spec_of};
pub use stateful_set::StatefulSet;
pub use volume_attachment::VolumeAttachment;

use crate::matrix::{ApiServer, Matrix};

/// One view of the cluster: what each source said, and when.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Core Nodes.
    pub nodes: Listed<Node>,
    /// The kubelets' heartbeats and the leases of `kube-system`.
    pub leases: Listed<Lease>,
    /// DaemonSets.
    pub daemon_sets: Listed<DaemonSet>,
    /// Services.
    pub services: Listed<Service>,
    /// EndpointSlices.
    pub endpoint_slices: Listed<EndpointSlice>,
    /// Pods of the DNS namespace.
    pub dns_pods: Listed<Pod>,
    /// All pods of the target; asked by a run only.
    pub target_pods: Listed<Pod>,
    /// The pods that act on nodes; asked by a run only.
    pub action_pods: Listed<Pod>,
    /// Pods that no node was found for; asked by a drain only.
    pub unscheduled_pods: Listed<Pod>,
    /// maint's own pods; asked by a run only.
    pub own_pods: Listed<Pod>,
    /// The pods that run kured.
    pub kured_pods: Listed<KuredPod>,
    /// Deployments.
    pub deployments: Listed<Deployment>,
    /// StatefulSets.
    pub stateful_sets: Listed<StatefulSet>,
    /// ReplicaSets.
    pub replica_sets: Listed<ReplicaSet>,
    /// HorizontalPodAutoscalers.
    pub horizontal_pod_autoscalers: Listed<HorizontalPodAutoscaler>,
    /// PodDisruptionBudgets.
    pub pod_disruption_budgets: Listed<PodDisruptionBudget>,
    /// Longhorn's volumes.
    pub longhorn_volumes: Listed<longhorn::Volume>,
    /// Longhorn's replicas.
    pub longhorn_replicas: Listed<longhorn::Replica>,
    /// Longhorn's engines.
    pub longhorn_engines: Listed<longhorn::Engine>,
    /// Longhorn's settings.
    pub longhorn_settings: Listed<longhorn::Setting>,
    /// Longhorn's nodes.
    pub longhorn_nodes: Listed<longhorn::Node>,
    /// Longhorn's instance managers.
    pub longhorn_instance_managers: Listed<longhorn::InstanceManager>,
    /// Longhorn's own attachments.
    pub longhorn_attachments: Listed<longhorn::Attachment>,
    /// `clusters.postgresql.cnpg.io`.
    pub cnpg_clusters: Listed<cnpg::Cluster>,
    /// The pods of CloudNativePG, on all nodes. Read only where there is a cluster.
    pub cnpg_pods: Listed<Pod>,
    /// The pods that network agents run in, on all nodes.
    pub network_agent_pods: Listed<Pod>,
    /// `ciliumnodes.cilium.io`.
    pub cilium_nodes: Listed<CiliumNode>,
    /// `plans.upgrade.cattle.io`.
    pub upgrade_plans: Listed<upgrade::Plan>,
    /// Jobs.
    pub jobs: Listed<Job>,
    /// `kustomizations.kustomize.toolkit.fluxcd.io`.
    pub flux_kustomizations: Listed<flux::Kustomization>,
    /// `helmreleases.helm.toolkit.fluxcd.io`.
    pub flux_helm_releases: Listed<flux::HelmRelease>,
    /// `backups.velero.io`.
    pub velero_backups: Listed<backup::VeleroBackup>,
    /// `restores.velero.io`.
    pub velero_restores: Listed<backup::VeleroRestore>,
    /// `backups.longhorn.io`.
    pub longhorn_backups: Listed<backup::LonghornBackup>,
    /// `systembackups.longhorn.io`.
    pub longhorn_system_backups: Listed<backup::LonghornSystemBackup>,
    /// `systemrestores.longhorn.io`.
    pub longhorn_system_restores: Listed<backup::LonghornSystemRestore>,
    /// `backups.postgresql.cnpg.io`.
    pub cnpg_backups: Listed<backup::CnpgBackup>,
    /// `virtualmachineinstances.kubevirt.io`.
    pub virtual_machine_instances: Listed<kubevirt::Instance>,
    /// `virtualmachineinstancemigrations.kubevirt.io`.
    pub virtual_machine_migrations: Listed<kubevirt::Migration>,
    /// `kubevirts.kubevirt.io`: the configuration of KubeVirt.
    pub kubevirts: Listed<kubevirt::KubeVirt>,
    /// VolumeAttachments.
    pub volume_attachments: Listed<VolumeAttachment>,
    /// maint's ConfigMaps.
    pub config_maps: Listed<ConfigMap>,
    /// maint's records.
    pub maintenances: Listed<Maintenance>,
    /// maint's reports.
    pub maintenance_reports: Listed<MaintenanceReport>,
    /// The expected API servers and what each answered to `/readyz`.
    pub api_servers: Observation<Vec<ApiServer>>,
    /// The last sweep of the matrix.
    pub matrix: Observation<Matrix>,
    /// The alerts that fire, where the settings say whom to ask.
    pub alerts: Listed<Alert>,
}

/// Something that can list a source without waiting: a dump, a world in memory.
pub trait Fill {
    /// The items of one row, or why there are none. One kind may have several rows, see [`SourceSpec`].
    fn list<S: Source>(&mut self, row: &SourceSpec) -> Listed<S>;
}

impl Facts {
    /// Fills every list that `check` reads; `target_pods` with those of all nodes. What only a run asks (`action_pods`,
    /// `unscheduled_pods`, `own_pods`) and what only a live cluster answers (`api_servers`, `matrix`, `alerts`) is left as it is.
    pub fn fill(&mut self, from: &mut impl Fill) {
        self.nodes = from.list(&Node::SPEC);
        self.leases = from.list(&Lease::SPEC);
        self.daemon_sets = from.list(&DaemonSet::SPEC);
        self.services = from.list(&Service::SPEC);
        self.endpoint_slices = from.list(&EndpointSlice::SPEC);
        self.dns_pods = from.list(&Pod::SPEC);
        self.target_pods = from.list(&Pod::ON_TARGET);
        self.kured_pods = from.list(&KuredPod::SPEC);
        self.deployments = from.list(&Deployment::SPEC);
        self.stateful_sets = from.list(&StatefulSet::SPEC);
        self.replica_sets = from.list(&ReplicaSet::SPEC);
        self.horizontal_pod_autoscalers = from.list(&HorizontalPodAutoscaler::SPEC);
        self.pod_disruption_budgets = from.list(&PodDisruptionBudget::SPEC);
        self.longhorn_volumes = from.list(&longhorn::Volume::SPEC);
        self.longhorn_replicas = from.list(&longhorn::Replica::SPEC);
        self.longhorn_engines = from.list(&longhorn::Engine::SPEC);
        self.longhorn_settings = from.list(&longhorn::Setting::SPEC);
        self.longhorn_nodes = from.list(&longhorn::Node::SPEC);
        self.longhorn_instance_managers = from.list(&longhorn::InstanceManager::SPEC);
        self.longhorn_attachments = from.list(&longhorn::Attachment::SPEC);
        self.cnpg_clusters = from.list(&cnpg::Cluster::SPEC);
        self.cnpg_pods = from.list(&Pod::CNPG);
        self.network_agent_pods = from.list(&Pod::NETWORK_AGENTS);
        self.cilium_nodes = from.list(&CiliumNode::SPEC);
        self.upgrade_plans = from.list(&upgrade::Plan::SPEC);
        self.jobs = from.list(&Job::SPEC);
        self.flux_kustomizations = from.list(&flux::Kustomization::SPEC);
        self.flux_helm_releases = from.list(&flux::HelmRelease::SPEC);
        self.velero_backups = from.list(&backup::VeleroBackup::SPEC);
        self.velero_restores = from.list(&backup::VeleroRestore::SPEC);
        self.longhorn_backups = from.list(&backup::LonghornBackup::SPEC);
        self.longhorn_system_backups = from.list(&backup::LonghornSystemBackup::SPEC);
        self.longhorn_system_restores = from.list(&backup::LonghornSystemRestore::SPEC);
        self.cnpg_backups = from.list(&backup::CnpgBackup::SPEC);
        self.virtual_machine_instances = from.list(&kubevirt::Instance::SPEC);
        self.virtual_machine_migrations = from.list(&kubevirt::Migration::SPEC);
        self.kubevirts = from.list(&kubevirt::KubeVirt::SPEC);
        self.volume_attachments = from.list(&VolumeAttachment::SPEC);
        self.config_maps = from.list(&ConfigMap::SPEC);
        self.maintenances = from.list(&Maintenance::SPEC);
        self.maintenance_reports = from.list(&MaintenanceReport::SPEC);
    }
}
