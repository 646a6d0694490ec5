//! What is wrong with a night: a broken invariant, or an end that is none.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::invariants::{Violation, evictions_of};
use crate::kinds::FaultKind;
use crate::night::Night;
use crate::night::kured::{KuredNight, NODES, Run};

/// Something that is wrong with a night.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The name of an invariant, or what of the end is not as it must be.
    pub rule: String,
    /// The step of the night, for an invariant.
    pub step: Option<u64>,
    /// What was done, with names.
    pub what: String,
}

impl Wrong {
    fn broken(violation: &Violation) -> Self {
        Self { rule: violation.invariant.to_owned(), step: Some(violation.step), what: violation.what.clone() }
    }

    fn end(rule: &str, what: String) -> Self {
        Self { rule: rule.to_owned(), step: None, what }
    }
}

/// What is wrong with the end of a night: the run is over or held, what it has to tell was told, and nothing of ours is
/// left elsewhere.
#[must_use]
pub fn wrongs(night: &Night) -> Vec<&'static str> {
    let end = &night.end;
    let over = matches!(end.phase.as_str(), "Succeeded" | "Failed" | "Cancelled");
    let told = night.record.as_ref().and_then(|record| record.status.as_ref()).is_some_and(|status| {
        !status.outbox.is_empty() && status.outbox.iter().all(|entry| !entry.delivered_to.is_empty())
    });
    // Storage may heal for longer than a night lasts; what never ends is found by its deadline.
    let heals = end.phase == "Settling" && deadline(night) > night.history.steps.last().map(|step| step.at);
    let left = end.annotations.contains("maint.dev/owner") || end.finalizer || end.action_pods > 0;
    let rules = [
        ("an invariant was broken", night.violations.is_empty()),
        ("neither over nor held", over || heals || end.phase == "Held"),
        ("not told", told),
        ("booted twice", end.boots <= 1),
        ("other nodes were touched", end.others_untouched),
        ("something of ours is left", !over || !left),
        ("the cordon is not as it should be", !over || end.unschedulable == (end.outcome == "NodeOnHold")),
        ("proven, and did not succeed, or the other way round", !over || end.proven == (end.phase == "Succeeded")),
    ];
    rules.into_iter().filter(|(_, holds)| !holds).map(|(wrong, _)| wrong).collect()
}

fn deadline(night: &Night) -> Option<Timestamp> {
    night.record.as_ref()?.status.as_ref()?.deadline.as_ref()?.parse().ok()
}

/// Pods that were asked for so often that somebody runs hot: more than a dozen evictions of one uid within ten seconds.
#[must_use]
pub fn hot(night: &Night) -> Vec<String> {
    let mut by_uid: BTreeMap<String, Vec<Timestamp>> = BTreeMap::new();
    for (uid, at) in evictions_of(&night.history) {
        by_uid.entry(uid).or_default().push(at);
    }
    let crowded =
        |times: &Vec<Timestamp>| times.windows(13).any(|some| some[12].duration_since(some[0]).as_secs() < 10);
    by_uid.into_iter().filter(|(_, times)| crowded(times)).map(|(uid, _)| uid).collect()
}

/// What is wrong with the end of a night with kured.
#[must_use]
pub fn kured_wrongs(night: &KuredNight) -> Vec<String> {
    let mut found = Vec::new();
    if !night.at_rest {
        found.push("it did not come to rest".to_owned());
    }
    for node in NODES {
        let rebooted = night.boots.get(node).is_some_and(|boots| *boots > 0);
        let why = night.records.iter().rfind(|record| record.spec.node_name == node).map(Run::of);
        let reason = why.as_ref().is_some_and(|run| match run.phase.as_str() {
            "Succeeded" => rebooted,
            "Pending" => !run.message.is_empty(),
            _ => !run.outcome.is_empty(),
        });
        if !rebooted && !reason {
            found.push(format!("{node} was not rebooted, and there is no reason: {why:?}"));
        }
    }
    found
}

/// All that is wrong with a night.
pub(super) fn plain(night: &Night) -> Vec<Wrong> {
    let mut found: Vec<Wrong> = night.violations.iter().map(Wrong::broken).collect();
    let ends = wrongs(night).into_iter().filter(|wrong| *wrong != "an invariant was broken" && !excused(wrong, night));
    found.extend(ends.map(|wrong| {
        let end = &night.end;
        Wrong::end(wrong, format!("the record is {} {}, after {} boots", end.phase, end.outcome, end.boots))
    }));
    found.extend(hot(night).into_iter().map(|uid| Wrong::end("evicted again and again", uid)));
    found
}

/// Whether what is odd about an end was somebody else's doing. What befell the night counts, also where no replica had a
/// part in it: a node may boot after its run is over.
fn excused(wrong: &str, night: &Night) -> bool {
    let befell = |kind| night.befell.iter().any(|(_, what)| *what == kind);
    // A boot that nobody asked for is not the run's, and the mark of a proof is of the boot before it.
    let boots = wrong == "booted twice" || wrong.starts_with("proven");
    // A hold can come between the decision to cordon and the cordon, which then is not made, and that is said.
    let uncordoned = || night.story().contains("it is not cordoned");
    let cordon = wrong.starts_with("the cordon") && befell(FaultKind::Holds) && uncordoned();
    boots && befell(FaultKind::RebootsUnasked) || cordon
}

/// All that is wrong with a night with kured.
pub(super) fn kured(night: &KuredNight) -> Vec<Wrong> {
    let mut found: Vec<Wrong> = night.violations.iter().map(Wrong::broken).collect();
    found.extend(kured_wrongs(night).into_iter().map(|what| Wrong::end("no good end", what)));
    found
}
