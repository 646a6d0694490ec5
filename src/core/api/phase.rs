//! Phases of a run, actions, and why a run ended or waits.

use super::gate::names;

names! {
    /// Where a run is.
    Phase, "phase", {
        /// Wants to run: a wish. Not in flight.
        Pending = "Pending",
        /// The cordon is being written.
        Cordoning = "Cordoning",
        /// Pods are being evicted.
        Draining = "Draining",
        /// The irreversible act is near.
        Acting = "Acting",
        /// Committed: the node is going down and coming back.
        Returning = "Returning",
        /// Proving the node while it is still cordoned.
        Verifying = "Verifying",
        /// The cordon is being taken off.
        Uncordoning = "Uncordoning",
        /// The cluster becomes whole again.
        Settling = "Settling",
        /// Before commit: everything of ours is put back.
        BackingOut = "BackingOut",
        /// After commit: our cordon stays on purpose and a person is told.
        Held = "Held",
        /// Proven.
        Succeeded = "Succeeded",
        /// Not done; nothing of ours is left.
        Failed = "Failed",
        /// Called off; nothing of ours is left.
        Cancelled = "Cancelled",
    }
}

impl Phase {
    /// No further step follows.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }

    /// Its node counts as unavailable through us.
    #[must_use]
    pub const fn is_in_flight(self) -> bool {
        !self.is_terminal() && !matches!(self, Self::Pending)
    }

    /// The reboot can no longer be prevented.
    #[must_use]
    pub const fn is_committed(self) -> bool {
        matches!(self, Self::Returning | Self::Verifying | Self::Uncordoning | Self::Settling | Self::Held)
    }
}

names! {
    /// Who makes the node go down.
    Action, "action", {
        /// kured, which asks maint before it takes its lock and reboots.
        Kured = "kured",
        /// A short-lived privileged pod runs the configured command.
        Pod = "pod",
        /// A person, or the program that `maint run` starts.
        External = "external",
    }
}

names! {
    /// Why a run ended or waits, beside the reasons of the gates.
    Outcome, "outcome", {
        /// Proven and settled.
        Proven = "Proven",
        /// The node was rebooted by somebody else before we acted; it was proven all the same.
        RebootedElsewhere = "RebootedElsewhere",
        /// Somebody took our cordon off.
        CordonRemoved = "CordonRemoved",
        /// The Node object is gone or another one.
        NodeReplaced = "NodeReplaced",
        /// Pods did not go in time.
        DrainDeadline = "DrainDeadline",
        /// Evictions that no try can change: a right is missing, or the API server does not understand us.
        EvictionsRefused = "EvictionsRefused",
        /// Gates did not agree in time after the cordon.
        HandoverTimeout = "HandoverTimeout",
        /// The window closed before the reboot was committed.
        WindowClosed = "WindowClosed",
        /// It could not start in time.
        StartTimeout = "StartTimeout",
        /// Somebody holds the node back.
        NodeOnHold = "NodeOnHold",
        /// Another node fails or was cordoned.
        OtherNodeUnavailable = "OtherNodeUnavailable",
        /// A person cancelled it.
        Cancelled = "Cancelled",
        /// A newer request took its place.
        Superseded = "Superseded",
        /// Whoever wished it no longer does: the node booted since, or kured no longer asks.
        WishWithdrawn = "WishWithdrawn",
        /// The record was deleted.
        RecordDeleted = "RecordDeleted",
        /// kured gave its lock up without a reboot: its drain or its reboot command failed.
        KuredDrainFailed = "KuredDrainFailed",
        /// The action could not be started.
        ActionNotStarted = "ActionNotStarted",
        /// The action reported failure.
        ActionFailed = "ActionFailed",
        /// The node did not come back in time.
        NodeNotBack = "NodeNotBack",
        /// It is Ready in time, with the boot ID it had.
        NodeDidNotReboot = "NodeDidNotReboot",
        /// A gate stays red after the return.
        NotVerified = "NotVerified",
        /// The cluster is not whole after the uncordon, without progress.
        NotSettled = "NotSettled",
        /// A person accepted it unproven.
        AcceptedUnproven = "AcceptedUnproven",
    }
}

names! {
    /// What an outbox message is about.
    MessageKind, "message", {
        /// The node is about to be cordoned.
        Started = "started",
        /// `go`: a person or program may act now.
        Go = "go",
        /// Put back.
        BackedOut = "backed-out",
        /// A person is needed.
        Held = "held",
        /// Over.
        Finished = "finished",
        /// A window's report.
        Report = "report",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_is_exactly_one_of_pending_in_flight_terminal() {
        for phase in Phase::ALL {
            let kinds = [*phase == Phase::Pending, phase.is_in_flight(), phase.is_terminal()];
            assert_eq!(kinds.iter().filter(|kind| **kind).count(), 1, "{phase}");
        }
    }
}
