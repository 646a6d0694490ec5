//! The kinds of trouble that a night can bring: one list for all families of nights.

use crate::faults::Fault;

/// Which nights a seed can draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// A person or a program asks for one node.
    Plain,
    /// The same, and the drain is hard.
    Drains,
    /// kured reboots three nodes in a window.
    Kured,
}

impl Family {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Plain, Self::Drains, Self::Kured];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Drains => "drains",
            Self::Kured => "kured",
        }
    }
}

use Family::{Drains, Kured, Plain};

macro_rules! kinds {
    ($($variant:ident, $name:literal, $about:literal, [$($family:ident),*];)*) => {
        /// A kind of trouble.
        ///
        /// Altered answers count as hit when the service got them; what befalls the world, the service's processes or
        /// the people around it counts when it happened while a record was not over.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum FaultKind {
            $(#[doc = $about] $variant,)*
        }

        impl FaultKind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What it is, in one line.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }

            /// The families whose nights can have it.
            #[must_use]
            pub const fn families(self) -> &'static [Family] {
                match self { $(Self::$variant => &[$($family),*],)* }
            }
        }
    };
}

kinds! {
    // Requests of the service.
    Conflict, "conflict", "a write is answered with 409 and not done", [Plain, Drains, Kured];
    Throttled, "throttled", "429 with Retry-After", [Plain, Drains, Kured];
    Internal, "internal-error", "500: etcd did not answer in time", [Plain, Drains, Kured];
    Unavailable, "unavailable", "503", [Plain, Drains, Kured];
    GatewayTimeout, "gateway-timeout", "504", [Plain, Drains, Kured];
    LostRequest, "lost-request", "the connection breaks before the request arrives", [Plain, Drains, Kured];
    LostAnswer, "lost-answer", "the connection breaks after the request took effect", [Plain, Drains, Kured];
    HangBefore, "hang-before", "never answered and never done", [Plain, Drains, Kured];
    HangAfter, "hang-after", "done and never answered", [Plain, Drains, Kured];
    Delay, "delay", "answered up to five seconds late", [Plain, Drains, Kured];
    // Evictions of the service.
    EvictionThrottled, "eviction-throttled", "an eviction is answered with 429 that no budget caused", [Drains];
    EvictionTimeout, "eviction-timeout", "an eviction is answered with 504", [Drains];
    EvictionConflict, "eviction-conflict", "an eviction is answered with 409", [Drains];
    EvictionLostAnswer, "eviction-lost-answer", "an eviction is done, its answer is lost", [Drains];
    EvictionHangAfter, "eviction-hang-after", "an eviction is done and never answered", [Drains];
    EvictionHangBefore, "eviction-hang-before", "an eviction is never done and never answered", [Drains];
    EvictionDelay, "eviction-delay", "an eviction is answered up to five seconds late", [Drains];
    // What makes a drain hard.
    SlowBudgets, "slow-budgets", "the disruption controller looks seconds late", [Drains];
    SlowStart, "slow-start", "every new pod is Ready seconds late", [Drains];
    Crowd, "crowd", "a budget over many pods of the target lets one go at a time", [Drains];
    Finalizer, "finalizer", "a pod's finalizer is taken off late", [Drains];
    FinalizerStays, "finalizer-stays", "a pod's finalizer is never taken off", [Drains];
    StuckPod, "stuck-pod", "the kubelet does not end a pod", [Drains];
    Switchover, "switchover", "a database's operator moves its primary late", [Drains];
    SameName, "same-name", "pods come back by the same name on another node", [Drains];
    Webhook, "webhook", "a webhook refuses evictions of a pod for a while", [Drains];
    WebhookStays, "webhook-stays", "a webhook refuses evictions of a pod for ever", [Drains];
    EndingNamespace, "ending-namespace", "a namespace ends while it has a pod on the target", [Drains];
    // The service's processes, API servers and paths.
    KillReplica, "kill-replica", "a process of the service dies", [Plain, Drains, Kured];
    FreezeReplica, "freeze-replica", "a process of the service stands still for longer than its lease", [Plain, Drains, Kured];
    CutServer, "cut-server", "an API server refuses connections, or accepts them and says nothing", [Plain, Drains, Kured];
    DropWatches, "drop-watches", "an API server ends all watches", [Plain, Drains, Kured];
    UnreadyServer, "unready-server", "an API server says of itself that it is not ready", [Plain, Drains];
    StaleCache, "stale-cache", "the cache of an API server, and its watches, stand still", [Plain, Drains];
    Compacted, "compacted", "the history is compacted: watches from before are answered with 410", [Plain, Drains];
    TunnelCut, "tunnel-cut", "an API server does not reach a node's kubelet", [Plain, Drains];
    TunnelKept, "tunnel-kept", "an API server reaches a kubelet by an old connection alone", [Plain, Drains];
    KubeletHangs, "kubelet-hangs", "a kubelet accepts what an API server asks and says nothing", [Plain, Drains];
    KubeletSick, "kubelet-sick", "a kubelet says that it is not healthy", [Plain, Drains];
    // Nodes and workloads.
    OtherNodeDown, "other-node-down", "another node loses its power for a minute or two", [Plain, Drains];
    RebootsUnasked, "reboots-unasked", "the node reboots by itself", [Plain, Drains];
    BudgetZero, "budget-zero", "a budget lets nothing go for a while", [Plain, Drains];
    VolumeDegraded, "volume-degraded", "a volume is degraded for a while", [Plain, Drains];
    AutoscalerInert, "autoscaler-inert", "the autoscaler of CoreDNS cannot act for a while", [Plain, Drains];
    // kured and its lock.
    KillKured, "kill-kured", "a kured dies", [Kured];
    KillHolder, "kill-holder", "the kured that holds the lock dies", [Kured];
    LockWrite, "lock-write", "kured's write of its lock after a go goes wrong", [Kured];
    DrainFails, "drain-fails", "kured's drain meets a pod that no budget lets go", [Kured];
    CommandFails, "command-fails", "kured's reboot command does nothing", [Kured];
    WipeLock, "wipe-lock", "somebody wipes kured's lock", [Kured];
    Ghost, "ghost-lock", "a node that does not exist holds kured's lock", [Kured];
    Foreign, "foreign-lock", "somebody's hand writes a node into kured's lock", [Kured];
    Garbage, "garbage-lock", "kured's lock cannot be read", [Kured];
    Format, "lock-format", "kured's lock has the format of another concurrency", [Kured];
    LockBefore, "lock-before", "kured's lock is taken or strange before the night begins", [Kured];
    NoAnswer, "no-answer", "kured's question is slow, hangs, or is answered by somebody else", [Kured];
    Down, "down", "no process of the service lives for a while", [Kured];
    Stranger, "stranger", "somebody asks as if he were kured", [Kured];
    // People.
    Cordons, "cordons", "somebody cordons a node", [Kured];
    Uncordons, "uncordons", "somebody uncordons a node, whosever cordon it is", [Kured];
    Cancels, "cancels", "somebody cancels a record", [Kured];
    Halts, "halts", "somebody halts everything for a while", [Plain, Drains, Kured];
    Holds, "holds", "somebody holds a node for a while", [Plain, Drains, Kured];
}

impl FaultKind {
    /// The kind that a fault of a request is; a stop is the death of a process.
    #[must_use]
    pub const fn of_request(fault: Fault) -> Option<Self> {
        match fault {
            Fault::StopBefore | Fault::StopUnanswered | Fault::StopAnswered => Some(Self::KillReplica),
            Fault::Freeze => Some(Self::FreezeReplica),
            Fault::Refuse(409) => Some(Self::Conflict),
            Fault::Refuse(429) => Some(Self::Throttled),
            Fault::Refuse(500) => Some(Self::Internal),
            Fault::Refuse(503) => Some(Self::Unavailable),
            Fault::Refuse(504) => Some(Self::GatewayTimeout),
            Fault::Refuse(_) => None,
            Fault::LoseRequest => Some(Self::LostRequest),
            Fault::LoseAnswer => Some(Self::LostAnswer),
            Fault::HangBefore => Some(Self::HangBefore),
            Fault::HangAfter => Some(Self::HangAfter),
            Fault::Delay(_) => Some(Self::Delay),
        }
    }

    /// The kind that a fault of an eviction is.
    #[must_use]
    pub const fn of_eviction(fault: Fault) -> Option<Self> {
        match fault {
            Fault::Refuse(429) => Some(Self::EvictionThrottled),
            Fault::Refuse(504) => Some(Self::EvictionTimeout),
            Fault::Refuse(409) => Some(Self::EvictionConflict),
            Fault::LoseAnswer => Some(Self::EvictionLostAnswer),
            Fault::HangAfter => Some(Self::EvictionHangAfter),
            Fault::HangBefore => Some(Self::EvictionHangBefore),
            Fault::Delay(_) => Some(Self::EvictionDelay),
            _ => None,
        }
    }

    /// Whether it ends a run at its deadline.
    #[must_use]
    pub const fn is_endless(self) -> bool {
        matches!(self, Self::FinalizerStays | Self::StuckPod | Self::WebhookStays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own_and_a_family() {
        let mut names: Vec<&str> = FaultKind::ALL.iter().map(|kind| kind.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FaultKind::ALL.len());
        for kind in FaultKind::ALL {
            assert!(!kind.families().is_empty() && !kind.about().is_empty(), "{}", kind.name());
        }
    }
}
