//! What must be true of every night: pure checks over its history.
//!
//! A history is the objects at the start and every step since, with what it changed. Each check replays it and
//! answers with violations; the names are those of the list of invariants (S1 and so on).

mod acts;
mod kured;
mod leadership;
mod nodes;
mod pods;
mod rest;
#[cfg(test)]
mod run;
#[cfg(test)]
mod testing;
pub(crate) mod views;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::Value;

use crate::store::ObjectKey;
use crate::trace::{Step, Trace};

/// All objects at one moment.
pub type Objects = BTreeMap<ObjectKey, Arc<Value>>;

/// What the checks have to know about the configuration of the night.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// `max_unavailable`
    pub max_unavailable: usize,
    /// Nodes that `ignore_nodes` leaves out of the count.
    pub ignored_nodes: Vec<String>,
    /// The only replica may drain its own node.
    pub allow_self: bool,
    /// Every kured asks us before it reboots, and nobody else reboots a node.
    pub kured_asks: bool,
    /// How long after somebody else took a node away the service may still not have seen it: the age of what it decides
    /// on, and the way of its write.
    pub notice: SignedDuration,
    /// Clients whose name starts with this are maint's service.
    pub service_prefix: String,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            max_unavailable: 1,
            ignored_nodes: Vec::new(),
            allow_self: false,
            kured_asks: false,
            notice: SignedDuration::ZERO,
            service_prefix: "maint".to_owned(),
        }
    }
}

impl Rules {
    /// Whether a step is the service's.
    #[must_use]
    pub fn is_ours(&self, step: &Step) -> bool {
        step.client.starts_with(&self.service_prefix)
    }
}

/// A night.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The objects before the first step.
    pub initial: Objects,
    /// The steps.
    pub steps: Vec<Step>,
}

impl History {
    /// The history that a trace tells; `initial` is the store's snapshot from before its first step.
    #[must_use]
    pub fn of(initial: Objects, trace: &Trace) -> Self {
        Self { initial, steps: trace.steps().to_vec() }
    }

    /// Calls `look` before each step with the objects as they are then.
    fn replay(&self, mut look: impl FnMut(&Objects, &Step)) {
        let mut objects = self.initial.clone();
        for step in &self.steps {
            look(&objects, step);
            for change in &step.changes {
                match (&change.after, objects.get_mut(&change.key)) {
                    (Some(after), Some(known)) => *known = Arc::clone(after),
                    (Some(after), None) => {
                        objects.insert(change.key.clone(), Arc::clone(after));
                    }
                    (None, _) => {
                        objects.remove(&change.key);
                    }
                }
            }
        }
    }
}

/// A broken invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: &'static str,
    /// At which step.
    pub step: u64,
    /// What was done, with names.
    pub what: String,
}

/// A check.
pub type Check = fn(&Rules, &History) -> Vec<Violation>;

/// All checks, by name.
pub const INVARIANTS: &[(&str, Check)] = &[
    ("S1", nodes::never_one_too_many),
    ("S4", acts::unknown_never_passes),
    ("S5", leadership::only_the_leader_writes),
    ("S6", nodes::only_our_own_cordon),
    ("S7", pods::only_evictions_that_are_ours),
    ("S8", kureds_lock_and_acts),
    ("S9", acts::no_second_reboot),
    ("S10", pods::cordon_only_evicts_nothing),
    ("S13", pods::nothing_is_repaired),
    ("S15", leadership::never_its_own_node),
    ("S16", acts::intent_before_act),
];

/// The evictions that were asked for and arrived, in order: the uid that each names, and when.
#[must_use]
pub fn evictions_of(history: &History) -> Vec<(String, jiff::Timestamp)> {
    let arrived = history.steps.iter().filter(|step| views::is_eviction(step) && step.code != 0);
    arrived.filter_map(|step| Some((views::evicted_uid(step)?, step.at))).collect()
}

/// What holds of a night that came to rest.
pub const AT_REST: &[(&str, Check)] = &[
    ("L1", rest::every_run_is_over_or_says_why),
    ("L2", rest::nothing_healthy_stays_cordoned),
    ("L3", rest::no_lock_of_ours_stays),
    ("L5", rest::every_wish_was_heard),
];

/// S8: what is written into kured's lock, and what kured does with it.
fn kureds_lock_and_acts(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = acts::kured_lock_is_respected(rules, history);
    found.extend(kured::only_what_was_granted(rules, history));
    found
}

/// Runs the checks of a night at rest.
#[must_use]
pub fn check_rest(rules: &Rules, history: &History) -> Vec<Violation> {
    AT_REST.iter().flat_map(|(_, check)| check(rules, history)).collect()
}

/// Runs all checks.
#[must_use]
pub fn check_all(rules: &Rules, history: &History) -> Vec<Violation> {
    INVARIANTS.iter().flat_map(|(_, check)| check(rules, history)).collect()
}

#[cfg(test)]
mod tests {
    use super::testing::Night;
    use serde_json::json;

    #[test]
    fn a_good_night_breaks_nothing_and_a_bad_one_is_named() {
        let good = Night::run(|night| {
            night.start("n1");
            night.evict("web-n1", Some("uid-web-n1"));
            night.intend("n1");
            night.act("n1", "boot-n1");
            night.edit("world", "n1", |node| node["status"]["nodeInfo"]["bootID"] = json!("second"));
            night.record("n1", |status| status["phase"] = json!("Verifying"));
            night.uncordon("n1");
            night.record("n1", |status| status["phase"] = json!("Succeeded"));
            night.start("n2");
        });
        assert_eq!(good, Vec::new());
        let bad = Night::run(|night| {
            night.start("n1");
            night.wait(31);
            night.act("n2", "boot-n1");
        });
        let mut names: Vec<_> = bad.iter().map(|violation| violation.invariant).collect();
        names.dedup();
        assert_eq!(names, ["S1", "S4", "S5", "S9", "S16"]);
    }
}
