//! The runbooks, compiled in: a listed reason without its file does not compile, an unlisted one fails a test.

use maint_core::api::Reason;

/// Lists reasons by name; each has `runbooks/<Reason>.md`.
macro_rules! runbooks {
    ($($reason:ident,)*) => {
        /// The runbooks that are compiled in.
        pub const RUNBOOKS: &[(Reason, &str)] = &[
            $((Reason::$reason, include_str!(concat!("../../../runbooks/", stringify!($reason), ".md"))),)*
        ];
    };
}

runbooks! {
    Passed,
    NotInstalled,
    NotAsked,
    ObservationFailed,
    ObservationMalformed,
    ObservationStale,
    Halted,
    NodeOnHold,
    PostCheckRed,
    PostCheckRunning,
    PostCheckMissing,
    LeaderOnTarget,
    ObserveMode,
    OutsideWindow,
    NoWindowConfigured,
    WindowTooShort,
    WindowFull,
    WindowStopped,
    WindowTried,
    ClockSkew,
    TooManyUnavailable,
    KuredLockHeld,
    KuredLockUnreadable,
    TargetNotFound,
    TargetNotReady,
    TargetCordonedByOther,
    CordonRemoved,
    NodeDidNotReboot,
    NodeNotReady,
    NodeLeaseStale,
    NodeUnderPressure,
    NodeNetworkUnavailable,
    KuredPodNotReady,
    KuredRollingOut,
    KuredTwiceOnNode,
    KuredNotGated,
    KuredFilterHidesAnswer,
    KuredVersionUnsupported,
    KuredVersionUnknown,
    KuredSettingUnreadable,
    KuredSettingRisky,
    KuredPeriodTooLong,
    KuredWindowTooNarrow,
    KuredLockFormat,
    KuredLockHeldByMaint,
    KuredLockNotReleased,
    KuredLockStripped,
    KuredWishUnconfirmed,
    CoreDNSNotFound,
    CoreDNSReplicasInsufficient,
    CoreDNSRollingOut,
    CoreDNSReplicasColocated,
    CoreDNSOnlyOnTarget,
    CoreDNSFloorMissing,
    HPAScalingInactive,
    HPAFloorTooLow,
    HPAStale,
    HPAConflict,
    LonghornVolumeRebuilding,
    LonghornVolumeDegraded,
    LonghornVolumeFaulted,
    LonghornVolumeRobustnessUnknown,
    LonghornVolumeInTransition,
    LonghornVolumeExpanding,
    LonghornVolumeRestoring,
    LonghornVolumeMigrating,
    LonghornLastReplicaOnTarget,
    LonghornDetachedReplicaOnTarget,
    LonghornDetachedIncomplete,
    LonghornDataEngineV2OnTarget,
    LonghornNodeNotReady,
    LonghornInstanceManagerNotRunning,
    LonghornInstanceManagerOrphaned,
    LonghornDiskNotReady,
    LonghornNotSchedulable,
    LonghornEvicting,
    LonghornDrainRefused,
    LonghornManuallyAttached,
    LonghornCordonMovesReplicas,
    LonghornShareNotRunning,
    LonghornShareOnTarget,
    VolumeAttachmentStale,
    VolumeAttachmentRemaining,
    DisruptionBudgetsOverlap,
    DisruptionBudgetPermanent,
    DisruptionBudgetExhausted,
    PodWithoutController,
    PodSkippedWithKured,
    PodPinnedToNode,
    GraceTooLong,
    PodsRemaining,
    DaemonSetPodNotReady,
    DatabaseIncomplete,
    DatabaseInTransition,
    DatabasePrimaryCannotMove,
    DatabasePrimaryOnTarget,
    DatabaseGoesDown,
    NetworkAgentNotReady,
    NetworkAgentJustReady,
    NetworkAgentRollingOut,
    NetworkAgentTaint,
    NetworkAgentPinnedToTarget,
    NetworkPodCIDRMismatch,
    UpgradeApplying,
    UpgradePending,
    HelmJobRunning,
    GitOpsFailing,
    GitOpsReconciling,
    GitOpsSuspended,
    AlertFiring,
    RestoreRunning,
    BackupRunning,
    BackupPodOnTarget,
    LonghornWorkOnTarget,
    VirtualMachineCannotMove,
    VirtualMachineMigrating,
    VirtualMachineInTransition,
    VirtualMachineOnTarget,
    VirtualMachineStops,
    VirtualMachineMovedByOthers,
    APIServerNotReady,
    EtcdQuorumAtRisk,
    EtcdMemberNotVoter,
    EtcdHeartbeatStale,
    EtcdVotersEven,
    KubeletUnreachable,
    KubeletUnhealthy,
    APIServerUnreachable,
    KubeletPathUnknown,
}

/// The runbook of a reason.
pub fn of(reason: Reason) -> Option<&'static str> {
    RUNBOOKS.iter().find(|(known, _)| *known == reason).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_runbook() {
        let missing: Vec<&str> =
            Reason::ALL.iter().filter(|reason| of(**reason).is_none()).map(|reason| reason.as_str()).collect();
        assert!(missing.is_empty(), "write runbooks/<Reason>.md and list it in runbooks!: {}", missing.join(", "));
    }
}
