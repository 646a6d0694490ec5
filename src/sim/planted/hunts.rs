//! Where each bug is hunted: in the kind of night in which its rule matters, from a seed that is known to meet it.

use maint_core::planted::Bug;

use super::Hunt;
use super::Nights::{self, Crash, Kured, KuredChance, Plain, Slow, Sweep};
use crate::kinds::Family;

const fn hunt(bug: Bug, nights: Nights, first: u64) -> Hunt {
    Hunt { bug, nights, first }
}

/// All of them.
pub(super) const HUNTS: &[Hunt] = &[
    // Who may start, and when.
    hunt(Bug::StartsTwo, KuredChance, 1),
    hunt(Bug::CountsNoCordons, Plain("cordoned-elsewhere"), 1),
    hunt(Bug::StartsOnOneView, Slow("two-at-once"), 1),
    hunt(Bug::StartsAnytime, Plain("window-opens"), 1),
    hunt(Bug::IgnoresRoom, Plain("window-too-short"), 1),
    hunt(Bug::IgnoresHardStop, Plain("relents-after-the-window"), 1),
    hunt(Bug::IgnoresQuorum, Plain("learner-elsewhere"), 1),
    hunt(Bug::TakesTheLastCopy, Plain("sole-copy"), 1),
    hunt(Bug::UnknownPasses, Sweep(Family::Plain), 1),
    hunt(Bug::FailedIsAbsent, Plain("sole-copy-unreadable"), 1),
    hunt(Bug::OverridesAll, Plain("waived"), 1),
    hunt(Bug::CountsTerminating, Plain("dns-ends"), 1),
    hunt(Bug::DrainsItsOwnNode, Plain("leader-on-target"), 1),
    // Before commit.
    hunt(Bug::WritesTermZero, Plain("drain"), 1),
    hunt(Bug::SkipsGatesAtHandover, Sweep(Family::Plain), 1),
    hunt(Bug::ActsBeforeIntent, Plain("drain"), 1),
    hunt(Bug::ActsOnAnyBoot, Plain("drain"), 1),
    hunt(Bug::IgnoresDeadlines, Plain("back-out"), 1),
    hunt(Bug::IgnoresHold, Plain("on-hold"), 1),
    hunt(Bug::LeavesTheCordon, Plain("back-out"), 1),
    hunt(Bug::UncordonsForeign, Plain("was-cordoned"), 1),
    // Pods.
    hunt(Bug::CordonOnlyEvicts, Plain("cordon-only"), 1),
    hunt(Bug::EvictsByName, Plain("drain"), 1),
    hunt(Bug::EvictsDaemonSets, Plain("drain"), 1),
    hunt(Bug::EvictsWithoutGrace, Plain("drain"), 1),
    hunt(Bug::AsksAgainAtOnce, Plain("webhook-refuses-always"), 1),
    // After commit.
    hunt(Bug::RedTunnelPasses, Plain("held"), 1),
    hunt(Bug::TimeOutPasses, Plain("held"), 1),
    hunt(Bug::TakesOldBoot, Plain("drain"), 1),
    hunt(Bug::RebootsAgain, Plain("held"), 1),
    hunt(Bug::ForgetsHeldNodes, Plain("held"), 1),
    hunt(Bug::UncordonsUnderHalt, Plain("halted-after-commit"), 1),
    hunt(Bug::IgnoresHalt, Plain("halted"), 1),
    // kured and its lock.
    hunt(Bug::GrantsUnasked, Kured("in-order"), 1),
    hunt(Bug::GrantsForHours, Kured("in-order"), 1),
    hunt(Bug::GoWithoutGrant, Kured("in-order"), 1),
    hunt(Bug::NeverCloses, Kured("cancelled-under-way"), 1),
    hunt(Bug::OverwritesLock, KuredChance, 1),
    hunt(Bug::KeepsLock, Kured("drain-fails"), 1),
    hunt(Bug::ForgetsWishes, Kured("in-order"), 1),
    // Leadership.
    hunt(Bug::TakesAnyLease, Plain("drain"), 1),
    hunt(Bug::NeverTakesOver, Crash("drain"), 6),
    // What is told.
    hunt(Bug::SkipsOutbox, Plain("drain"), 1),
    hunt(Bug::TellsNobodyHeld, Plain("held-for-ever"), 1),
    hunt(Bug::LosesReceipts, Plain("drain"), 1),
    hunt(Bug::SendsNothing, Plain("drain"), 1),
    hunt(Bug::NumbersAnew, Plain("held-twice"), 1),
    hunt(Bug::ForgetsHistory, Plain("drain"), 1),
    hunt(Bug::ShowsSecrets, Kured("nobody-hears"), 1),
    hunt(Bug::NeverReports, Kured("in-order"), 1),
    hunt(Bug::WritesAllTheTime, Plain("drain"), 1),
];
