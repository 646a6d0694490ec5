//! The reasons: one fact each, named after the fact. Each has `runbooks/<Reason>.md`.

use super::gate::names;

names! {
    /// Why a gate answered as it did, why a run ended or waits. PascalCase, a sentence each.
    Reason, "reason", {
        // Any gate
        /// All that the gate asks holds.
        Passed = "Passed",
        /// The component that the gate watches is not installed.
        NotInstalled = "NotInstalled",
        /// This input (a dump) cannot answer; a live cluster can.
        NotAsked = "NotAsked",
        /// A source could not be read: forbidden, timed out, transport or server error.
        ObservationFailed = "ObservationFailed",
        /// An object could not be understood.
        ObservationMalformed = "ObservationMalformed",
        /// A fact is older than its source allows.
        ObservationStale = "ObservationStale",

        // control
        /// Somebody halted maint.
        Halted = "Halted",
        /// Somebody holds this node back.
        NodeOnHold = "NodeOnHold",
        /// The last post-check found something broken.
        PostCheckRed = "PostCheckRed",
        /// A post-check is at work.
        PostCheckRunning = "PostCheckRunning",
        /// A node booted since it was last proven good.
        PostCheckMissing = "PostCheckMissing",
        /// The leader's own pod runs on the target and cannot move away.
        LeaderOnTarget = "LeaderOnTarget",
        /// maint is in mode observe and starts nothing by itself.
        ObserveMode = "ObserveMode",

        // window
        /// No window is open.
        OutsideWindow = "OutsideWindow",
        /// There is no window in the configuration.
        NoWindowConfigured = "NoWindowConfigured",
        /// What is left of the window is less than a run takes.
        WindowTooShort = "WindowTooShort",
        /// As many nodes were begun in this opening as the limit allows.
        WindowFull = "WindowFull",
        /// A run of this window failed or was held: nobody else starts in it.
        WindowStopped = "WindowStopped",
        /// A run of this node ended in this window without success: the next try is the next window.
        WindowTried = "WindowTried",
        /// Our clock and those of the nodes differ.
        ClockSkew = "ClockSkew",

        // exclusive
        /// As many nodes are unavailable as the limit allows.
        TooManyUnavailable = "TooManyUnavailable",
        /// Another existing node holds kured's lock.
        KuredLockHeld = "KuredLockHeld",
        /// kured's lock annotation cannot be read.
        KuredLockUnreadable = "KuredLockUnreadable",

        // target
        /// No such node.
        TargetNotFound = "TargetNotFound",
        /// The target is not Ready.
        TargetNotReady = "TargetNotReady",
        /// The target is cordoned, and not by us.
        TargetCordonedByOther = "TargetCordonedByOther",
        /// Our cordon on the target is gone.
        CordonRemoved = "CordonRemoved",
        /// The node came back with the boot ID it had.
        NodeDidNotReboot = "NodeDidNotReboot",

        // nodes-ready
        /// Another node is not Ready.
        NodeNotReady = "NodeNotReady",
        /// Another node's Lease is not renewed.
        NodeLeaseStale = "NodeLeaseStale",
        /// Another node is short of memory, disk or process ids.
        NodeUnderPressure = "NodeUnderPressure",
        /// Another node's network is not set up.
        NodeNetworkUnavailable = "NodeNetworkUnavailable",

        // kured
        /// kured does not run Ready on the target.
        KuredPodNotReady = "KuredPodNotReady",
        /// kured's DaemonSet is being rolled out.
        KuredRollingOut = "KuredRollingOut",
        /// Two kureds run on one node.
        KuredTwiceOnNode = "KuredTwiceOnNode",
        /// kured does not ask maint before it reboots the node.
        KuredNotGated = "KuredNotGated",
        /// kured's alert filters would overlook our answer.
        KuredFilterHidesAnswer = "KuredFilterHidesAnswer",
        /// This version of kured cannot be held back.
        KuredVersionUnsupported = "KuredVersionUnsupported",
        /// kured's image does not tell its version.
        KuredVersionUnknown = "KuredVersionUnknown",
        /// A flag of kured cannot be read.
        KuredSettingUnreadable = "KuredSettingUnreadable",
        /// A setting of kured makes a run less safe, and stops none.
        KuredSettingRisky = "KuredSettingRisky",
        /// kured asks too seldom for a run to wait for it.
        KuredPeriodTooLong = "KuredPeriodTooLong",
        /// kured's own window is closed now, or for too much of ours.
        KuredWindowTooNarrow = "KuredWindowTooNarrow",
        /// The lock has another format than kured's concurrency reads.
        KuredLockFormat = "KuredLockFormat",
        /// Another record of maint holds kured's lock.
        KuredLockHeldByMaint = "KuredLockHeldByMaint",
        /// kured has not given its lock back after the reboot.
        KuredLockNotReleased = "KuredLockNotReleased",
        /// GitOps would take kured's lock away.
        KuredLockStripped = "KuredLockStripped",
        /// Nothing confirms that kured wants this node rebooted.
        KuredWishUnconfirmed = "KuredWishUnconfirmed",

        // coredns-*
        /// No DNS Service, or nothing behind it.
        CoreDNSNotFound = "CoreDNSNotFound",
        /// Fewer ready DNS endpoints than wanted.
        CoreDNSReplicasInsufficient = "CoreDNSReplicasInsufficient",
        /// The DNS Deployment is being rolled out.
        CoreDNSRollingOut = "CoreDNSRollingOut",
        /// Ready DNS endpoints share too few nodes.
        CoreDNSReplicasColocated = "CoreDNSReplicasColocated",
        /// No ready DNS endpoint would remain without the target.
        CoreDNSOnlyOnTarget = "CoreDNSOnlyOnTarget",
        /// Nothing holds two DNS replicas: no autoscaler, no budget.
        CoreDNSFloorMissing = "CoreDNSFloorMissing",
        /// The DNS autoscaler is not scaling.
        HPAScalingInactive = "HPAScalingInactive",
        /// The DNS autoscaler would go below two replicas.
        HPAFloorTooLow = "HPAFloorTooLow",
        /// The DNS autoscaler's status is not kept up to date.
        HPAStale = "HPAStale",
        /// Two autoscalers fight over the DNS Deployment.
        HPAConflict = "HPAConflict",

        // longhorn-volumes
        /// A volume is rebuilding a replica.
        LonghornVolumeRebuilding = "LonghornVolumeRebuilding",
        /// A volume lacks replicas and is not rebuilding.
        LonghornVolumeDegraded = "LonghornVolumeDegraded",
        /// A volume lost all its replicas.
        LonghornVolumeFaulted = "LonghornVolumeFaulted",
        /// An attached volume's robustness is unknown.
        LonghornVolumeRobustnessUnknown = "LonghornVolumeRobustnessUnknown",
        /// A volume is attaching, detaching or being created.
        LonghornVolumeInTransition = "LonghornVolumeInTransition",
        /// A volume is being expanded.
        LonghornVolumeExpanding = "LonghornVolumeExpanding",
        /// A volume is being restored from a backup.
        LonghornVolumeRestoring = "LonghornVolumeRestoring",
        /// A volume is being migrated or its engine switched over.
        LonghornVolumeMigrating = "LonghornVolumeMigrating",
        /// The only healthy copy of an attached volume is on the target.
        LonghornLastReplicaOnTarget = "LonghornLastReplicaOnTarget",
        /// The only healthy copy of a detached volume is on the target.
        LonghornDetachedReplicaOnTarget = "LonghornDetachedReplicaOnTarget",
        /// A detached volume lacks replicas and cannot rebuild while detached.
        LonghornDetachedIncomplete = "LonghornDetachedIncomplete",
        /// A volume of Longhorn's data engine v2 has its engine or a replica on the target.
        LonghornDataEngineV2OnTarget = "LonghornDataEngineV2OnTarget",

        // longhorn-system
        /// Longhorn says that one of its nodes is not Ready, or lacks one that holds data.
        LonghornNodeNotReady = "LonghornNodeNotReady",
        /// A node has no running instance manager, or one that does not run holds instances.
        LonghornInstanceManagerNotRunning = "LonghornInstanceManagerNotRunning",
        /// An instance manager of a node that is gone, or one that lists an engine that is not attached there.
        LonghornInstanceManagerOrphaned = "LonghornInstanceManagerOrphaned",
        /// A disk of Longhorn is not Ready.
        LonghornDiskNotReady = "LonghornDiskNotReady",
        /// A node or disk takes no new replica although it may.
        LonghornNotSchedulable = "LonghornNotSchedulable",
        /// Replicas are being moved away from a node or disk.
        LonghornEvicting = "LonghornEvicting",
        /// Longhorn would keep the node from being drained.
        LonghornDrainRefused = "LonghornDrainRefused",
        /// A volume is attached to the target by hand, which nothing moves.
        LonghornManuallyAttached = "LonghornManuallyAttached",
        /// The cordon alone makes Longhorn move replicas away.
        LonghornCordonMovesReplicas = "LonghornCordonMovesReplicas",
        /// What serves a shared volume is not running.
        LonghornShareNotRunning = "LonghornShareNotRunning",
        /// What serves a shared volume runs on the target.
        LonghornShareOnTarget = "LonghornShareOnTarget",

        // attachments
        /// A VolumeAttachment names a node that is gone, is stuck in deletion, or is one of two for a volume.
        VolumeAttachmentStale = "VolumeAttachmentStale",
        /// A volume is still attached to the drained node.
        VolumeAttachmentRemaining = "VolumeAttachmentRemaining",

        // disruption-budgets
        /// Two budgets cover one pod: the API server refuses every eviction of it.
        DisruptionBudgetsOverlap = "DisruptionBudgetsOverlap",
        /// A budget allows no eviction until somebody changes something.
        DisruptionBudgetPermanent = "DisruptionBudgetPermanent",
        /// A budget allows no eviction just now.
        DisruptionBudgetExhausted = "DisruptionBudgetExhausted",

        // workloads
        /// A running pod that nothing would bring back.
        PodWithoutController = "PodWithoutController",
        /// A pod that is to be skipped while kured drains, which skips nothing.
        PodSkippedWithKured = "PodSkippedWithKured",
        /// A pod that may run on this node only.
        PodPinnedToNode = "PodPinnedToNode",
        /// A pod that may take longer to end than the drain may take.
        GraceTooLong = "GraceTooLong",
        /// A pod is still on the drained node.
        PodsRemaining = "PodsRemaining",
        /// A DaemonSet that had a Ready pod here at the start has none.
        DaemonSetPodNotReady = "DaemonSetPodNotReady",

        // databases
        /// A PostgreSQL cluster lacks ready instances, or its operator says that it is not Ready.
        DatabaseIncomplete = "DatabaseIncomplete",
        /// A PostgreSQL cluster is switching over, fenced, or being hibernated.
        DatabaseInTransition = "DatabaseInTransition",
        /// The primary of a PostgreSQL cluster on the target has nowhere to go, and a budget keeps it there.
        DatabasePrimaryCannotMove = "DatabasePrimaryCannotMove",
        /// The primary of a PostgreSQL cluster is still on the drained node.
        DatabasePrimaryOnTarget = "DatabasePrimaryOnTarget",
        /// A PostgreSQL cluster is down while the node is away.
        DatabaseGoesDown = "DatabaseGoesDown",

        // network-agent
        /// A node's network agent is not Ready, or missing.
        NetworkAgentNotReady = "NetworkAgentNotReady",
        /// The agent of the node that came back is not Ready for long enough.
        NetworkAgentJustReady = "NetworkAgentJustReady",
        /// The network agents are being rolled out.
        NetworkAgentRollingOut = "NetworkAgentRollingOut",
        /// A node has a taint that waits for its network.
        NetworkAgentTaint = "NetworkAgentTaint",
        /// The agents reach the API at the target's address alone.
        NetworkAgentPinnedToTarget = "NetworkAgentPinnedToTarget",
        /// An agent gives addresses of pod CIDRs that its Node was not given.
        NetworkPodCIDRMismatch = "NetworkPodCIDRMismatch",

        // upgrades
        /// system-upgrade-controller is at work on a node.
        UpgradeApplying = "UpgradeApplying",
        /// An upgrade plan is not complete and may begin with a node at any time.
        UpgradePending = "UpgradePending",
        /// A Job of helm-controller is installing, upgrading or deleting a chart.
        HelmJobRunning = "HelmJobRunning",

        // gitops
        /// Flux could not apply an object.
        GitOpsFailing = "GitOpsFailing",
        /// Flux is applying an object.
        GitOpsReconciling = "GitOpsReconciling",
        /// An object of Flux is suspended.
        GitOpsSuspended = "GitOpsSuspended",

        // alerts
        /// An alert fires.
        AlertFiring = "AlertFiring",

        // backups
        /// A restore is at work on what the target holds.
        RestoreRunning = "RestoreRunning",
        /// A backup is at work on what the target holds.
        BackupRunning = "BackupRunning",
        /// A pod that moves data for a backup or restore runs on the target.
        BackupPodOnTarget = "BackupPodOnTarget",
        /// Longhorn copies or cleans up data of a volume on the target.
        LonghornWorkOnTarget = "LonghornWorkOnTarget",

        // virtual-machines
        /// A virtual machine on the target may only leave it running, and cannot.
        VirtualMachineCannotMove = "VirtualMachineCannotMove",
        /// A virtual machine is being moved from or to the target.
        VirtualMachineMigrating = "VirtualMachineMigrating",
        /// A virtual machine on the target is starting or ending.
        VirtualMachineInTransition = "VirtualMachineInTransition",
        /// A virtual machine is still on the drained node.
        VirtualMachineOnTarget = "VirtualMachineOnTarget",
        /// A virtual machine on the target is stopped by the drain.
        VirtualMachineStops = "VirtualMachineStops",
        /// A virtual machine on the target waits for something outside of KubeVirt to move it.
        VirtualMachineMovedByOthers = "VirtualMachineMovedByOthers",

        // control-plane
        /// An expected API server does not answer that it is ready.
        APIServerNotReady = "APIServerNotReady",
        /// The remaining etcd voters would have no quorum.
        EtcdQuorumAtRisk = "EtcdQuorumAtRisk",
        /// An etcd member is no voter.
        EtcdMemberNotVoter = "EtcdMemberNotVoter",
        /// An etcd member's heartbeat is old.
        EtcdHeartbeatStale = "EtcdHeartbeatStale",
        /// An even number of etcd voters.
        EtcdVotersEven = "EtcdVotersEven",

        // kubelet-reachability
        /// An API server cannot reach a kubelet.
        KubeletUnreachable = "KubeletUnreachable",
        /// A kubelet answers that it is not healthy.
        KubeletUnhealthy = "KubeletUnhealthy",
        /// An API server reaches no kubelet at all, or does not answer.
        APIServerUnreachable = "APIServerUnreachable",
        /// A path from an API server to a kubelet could not be judged.
        KubeletPathUnknown = "KubeletPathUnknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_fit_an_event() {
        // Events accept a reason of up to 128 characters in PascalCase.
        for reason in Reason::ALL {
            let name = reason.as_str();
            assert!(name.len() <= 128 && name.starts_with(char::is_uppercase), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "{name}");
        }
    }
}
