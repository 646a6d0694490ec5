//! The ids of what maint reads.

use super::gate::names;

names! {
    /// One row of the source table: a kind, or one part of a kind, that gates read.
    SourceId, "source", {
        /// Core Nodes.
        Nodes = "nodes",
        /// Leases in `kube-node-lease` (the kubelets' heartbeats) and `kube-system` (is the controller manager alive?).
        Leases = "leases",
        /// DaemonSets: kured and its lock annotation.
        DaemonSets = "daemon-sets",
        /// Services in the DNS namespace.
        Services = "services",
        /// EndpointSlices of the DNS namespace and of `default` (Service `kubernetes`).
        EndpointSlices = "endpoint-slices",
        /// Pods in the DNS namespace.
        DnsPods = "dns-pods",
        /// All pods of the node that is asked about; of all nodes where none is named.
        TargetPods = "target-pods",
        /// The pods that act on nodes. Only a run asks.
        ActionPods = "action-pods",
        /// Pods of all namespaces that no node was found for: why a replacement does not come. Only a drain asks.
        UnscheduledPods = "unscheduled-pods",
        /// maint's own pods. Only a run asks.
        OwnPods = "own-pods",
        /// The pods that run kured, on all nodes.
        KuredPods = "kured-pods",
        /// Deployments in the DNS namespace.
        Deployments = "deployments",
        /// StatefulSets of all namespaces: a drain takes their pods one at a time. Only a run asks.
        StatefulSets = "stateful-sets",
        /// ReplicaSets of all namespaces: how many pods a workload keeps without those of a node.
        ReplicaSets = "replica-sets",
        /// HorizontalPodAutoscalers in the DNS namespace.
        HorizontalPodAutoscalers = "horizontal-pod-autoscalers",
        /// PodDisruptionBudgets of all namespaces.
        PodDisruptionBudgets = "pod-disruption-budgets",
        /// `volumes.longhorn.io`.
        LonghornVolumes = "longhorn-volumes",
        /// `replicas.longhorn.io`.
        LonghornReplicas = "longhorn-replicas",
        /// `engines.longhorn.io`.
        LonghornEngines = "longhorn-engines",
        /// `settings.longhorn.io`.
        LonghornSettings = "longhorn-settings",
        /// `nodes.longhorn.io`.
        LonghornNodes = "longhorn-nodes",
        /// `instancemanagers.longhorn.io`.
        LonghornInstanceManagers = "longhorn-instance-managers",
        /// `volumeattachments.longhorn.io`, not those of `storage.k8s.io`.
        LonghornAttachments = "longhorn-attachments",
        /// `clusters.postgresql.cnpg.io`.
        CnpgClusters = "cnpg-clusters",
        /// The pods of CloudNativePG, on all nodes. Read only where there is a cluster.
        CnpgPods = "cnpg-pods",
        /// The pods that network agents (Cilium, Calico, flannel ...) run in, on all nodes.
        NetworkAgentPods = "network-agent-pods",
        /// `ciliumnodes.cilium.io`: pod CIDRs of Cilium's agents.
        CiliumNodes = "cilium-nodes",
        /// `plans.upgrade.cattle.io`: what system-upgrade-controller does to nodes.
        UpgradePlans = "upgrade-plans",
        /// Jobs of all namespaces: those that upgrade nodes and install charts.
        Jobs = "jobs",
        /// `kustomizations.kustomize.toolkit.fluxcd.io`.
        FluxKustomizations = "flux-kustomizations",
        /// `helmreleases.helm.toolkit.fluxcd.io`.
        FluxHelmReleases = "flux-helm-releases",
        /// `backups.velero.io`.
        VeleroBackups = "velero-backups",
        /// `restores.velero.io`.
        VeleroRestores = "velero-restores",
        /// `backups.longhorn.io`.
        LonghornBackups = "longhorn-backups",
        /// `systembackups.longhorn.io`.
        LonghornSystemBackups = "longhorn-system-backups",
        /// `systemrestores.longhorn.io`.
        LonghornSystemRestores = "longhorn-system-restores",
        /// `backups.postgresql.cnpg.io`.
        CnpgBackups = "cnpg-backups",
        /// `virtualmachineinstances.kubevirt.io`.
        VirtualMachineInstances = "virtual-machine-instances",
        /// `virtualmachineinstancemigrations.kubevirt.io`.
        VirtualMachineMigrations = "virtual-machine-migrations",
        /// `kubevirts.kubevirt.io`: the configuration of KubeVirt.
        KubeVirts = "kubevirts",
        /// VolumeAttachments of `storage.k8s.io`.
        VolumeAttachments = "volume-attachments",
        /// ConfigMaps in maint's namespace: halt and state.
        ConfigMaps = "config-maps",
        /// Our own records.
        Maintenances = "maintenances",
        /// Our own reports: post-checks among them.
        MaintenanceReports = "maintenance-reports",
        /// `/readyz` of each expected API server, asked at its own address. Live only.
        ApiServers = "api-servers",
        /// The matrix of API servers and kubelets. Live only.
        Matrix = "matrix",
        /// The alerts that fire, by the word of an Alertmanager or a Prometheus. Live only.
        Alerts = "alerts",
    }
}
