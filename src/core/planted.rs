//! Planted bugs: wrong versions of our own rules, so that the checks of the simulated cluster can be checked.
//!
//! Each stands at the one place where its rule lives, as a call of [`is`]. Without the cargo feature `planted`, which no
//! default and no image build has, that is a constant `false`, and the compiler leaves nothing of it. With the feature
//! a thread has at most one of them, and none until somebody plants it.

macro_rules! bugs {
    ($($variant:ident, $name:literal, $about:literal;)*) => {
        /// A wrong version of a rule.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Bug {
            $(#[doc = $about] $variant,)*
        }

        #[cfg(feature = "planted")]
        impl Bug {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What is wrong, in one line.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }
        }
    };
}

bugs! {
    // Who may start, and when.
    StartsTwo, "starts-two", "nodes in flight, NotReady or cordoned are not counted";
    CountsNoCordons, "counts-no-cordons", "another node that somebody cordoned is not counted";
    StartsOnOneView, "starts-on-one-view", "two wishes may start on the same look at the cluster";
    StartsAnytime, "starts-anytime", "an unattended run starts while no window is open";
    IgnoresRoom, "ignores-room", "an unattended run starts although the window closes before it can be over";
    IgnoresHardStop, "ignores-hard-stop", "the hard stop of the window stops nothing";
    IgnoresQuorum, "ignores-quorum", "a server goes although the other voters are no quorum";
    TakesTheLastCopy, "takes-the-last-copy", "the last healthy copy of a volume on the target is none of our business";
    UnknownPasses, "unknown-passes", "what could not be judged stops nothing";
    FailedIsAbsent, "failed-is-absent", "what could not be read counts as not installed";
    OverridesAll, "overrides-all", "a person may waive every gate";
    CountsTerminating, "counts-terminating", "an endpoint that is terminating answers DNS";
    DrainsItsOwnNode, "drains-its-own-node", "the leader does not ask where its own pod runs";
    // Before commit.
    WritesTermZero, "writes-term-zero", "the owner annotation does not carry the leader's term";
    SkipsGatesAtHandover, "skips-gates-at-handover", "the gates of the hand-over are asked, and their answer is not heard";
    ActsBeforeIntent, "acts-before-intent", "the act comes before the intent is written";
    ActsOnAnyBoot, "acts-on-any-boot", "the act does not name the boot that it is to replace";
    IgnoresDeadlines, "ignores-deadlines", "no deadline ever passes";
    IgnoresHold, "ignores-hold", "a hold on the node is not heard";
    LeavesTheCordon, "leaves-the-cordon", "what is put back is our mark alone, and the cordon stays";
    UncordonsForeign, "uncordons-foreign", "a cordon is taken off whoever set it";
    // Pods.
    CordonOnlyEvicts, "cordon-only-evicts", "pods are evicted whatever the strategy";
    EvictsByName, "evicts-by-name", "an eviction does not name the pod's uid";
    EvictsDaemonSets, "evicts-daemon-sets", "the pods of DaemonSets are evicted too";
    EvictsWithoutGrace, "evicts-without-grace", "pods are evicted without any time to end";
    AsksAgainAtOnce, "asks-again-at-once", "an eviction that was refused is sent again at once";
    // After commit.
    RedTunnelPasses, "red-tunnel-passes", "a broken pair does not keep the node cordoned";
    TimeOutPasses, "time-out-passes", "a node that is not proven in time goes on as if it were";
    TakesOldBoot, "takes-old-boot", "a node that is Ready is back, whatever its boot ID";
    RebootsAgain, "reboots-again", "a node that is held is rebooted once more";
    ForgetsHeldNodes, "forgets-held-nodes", "a run that cannot be proven ends, and the next node begins";
    UncordonsUnderHalt, "uncordons-under-halt", "the uncordon does not wait for unhalt";
    IgnoresHalt, "ignores-halt", "a halt stops nothing before commit";
    // kured and its lock.
    GrantsUnasked, "grants-unasked", "kured is granted the reboot without a question that was refused since the cordon";
    GrantsForHours, "grants-for-hours", "a grant is valid for hours";
    GoWithoutGrant, "go-without-grant", "kured hears go whether it was granted anything or not";
    NeverCloses, "never-closes", "a grant that was taken back is not closed";
    OverwritesLock, "overwrites-lock", "kured's lock is taken whoever holds it";
    KeepsLock, "keeps-lock", "our hold of kured's lock is never given back";
    ForgetsWishes, "forgets-wishes", "kured's question makes no record";
    // Leadership.
    TakesAnyLease, "takes-any-lease", "a candidate takes a Lease that another one renews";
    NeverTakesOver, "never-takes-over", "a Lease that nobody renews is never taken";
    // What is told.
    SkipsOutbox, "skips-outbox", "messages are not queued";
    TellsNobodyHeld, "tells-nobody-held", "nobody is told that a node is held";
    LosesReceipts, "loses-receipts", "what was delivered is not written down";
    SendsNothing, "sends-nothing", "messages are queued and never offered to a receiver";
    NumbersAnew, "numbers-anew", "every message of a record has the same number";
    ForgetsHistory, "forgets-history", "the timeline keeps its last entries alone";
    ShowsSecrets, "shows-secrets", "the address of a receiver stands in the errors of its messages";
    NeverReports, "never-reports", "no window has a report";
    WritesAllTheTime, "writes-all-the-time", "a record is written whenever it is looked at, and looked at all the time";
}

/// Whether this bug is planted here.
#[cfg(not(feature = "planted"))]
#[must_use]
pub const fn is(_: Bug) -> bool {
    false
}

#[cfg(feature = "planted")]
pub use planting::{is, plant};

#[cfg(feature = "planted")]
mod planting {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Plants a bug in this thread, or takes it out.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.set(bug);
    }

    /// Whether this bug is planted in this thread.
    #[must_use]
    pub fn is(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }
}
