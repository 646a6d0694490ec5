//! What must be true of every night: pure checks over its history.
//!
//! A history is the objects at the start and every step since, with what it changed. Each check replays it and
//! answers with violations; the names are those of the list of invariants (S1 and so on).

mod acts;
mod handover;
mod kured;
mod leadership;
mod nodes;
mod pace;
mod people;
mod pods;
mod proof;
mod rest;
#[cfg(test)]
mod run;
#[cfg(test)]
mod testing;
mod told;
pub(crate) mod views;
mod window;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use maint_core::config::Settings;
use maint_core::windows;
use serde_json::Value;

use crate::store::ObjectKey;
use crate::trace::{Step, Trace};

/// Further than that from its begin no opening of a window matters to a night.
const A_NIGHT: SignedDuration = SignedDuration::from_hours(24);

/// All objects at one moment.
pub type Objects = BTreeMap<ObjectKey, Arc<Value>>;

/// An opening of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// Its id, which its report is called after.
    pub id: String,
    /// When it opens.
    pub starts: Timestamp,
    /// When it closes.
    pub ends: Timestamp,
}

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
    /// The openings of windows in the night.
    pub openings: Vec<Opening>,
    /// `expected_duration_seconds`
    pub expected: SignedDuration,
    /// Texts that must never be written anywhere.
    pub secrets: Vec<String>,
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
            openings: Vec::new(),
            expected: SignedDuration::ZERO,
            secrets: Vec::new(),
        }
    }
}

impl Rules {
    /// The rules of a night with these settings, which begins then.
    #[must_use]
    pub fn of(settings: &Settings, begun: Timestamp) -> Self {
        let until = begun.saturating_add(A_NIGHT).unwrap_or(Timestamp::MAX);
        let since = begun.saturating_sub(A_NIGHT).unwrap_or(Timestamp::MIN);
        let openings = windows::ended(&settings.windows, since, until).into_iter();
        Self {
            max_unavailable: usize::try_from(settings.limits.max_unavailable).unwrap_or(usize::MAX),
            ignored_nodes: settings.limits.ignore_nodes.clone(),
            allow_self: settings.run.allow_self,
            openings: openings.map(|one| Opening { id: one.id(), starts: one.starts_at, ends: one.ends_at }).collect(),
            expected: SignedDuration::from_secs(settings.expected_duration_seconds),
            ..Self::default()
        }
    }

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
    /// The messages that a receiver took, in order: their ids, with what he read.
    pub mail: Vec<(String, String)>,
}

impl History {
    /// The history that a trace tells; `initial` is the store's snapshot from before its first step.
    #[must_use]
    pub fn of(initial: Objects, trace: &Trace) -> Self {
        Self { initial, steps: trace.steps().to_vec(), mail: Vec::new() }
    }

    /// The objects after the last step.
    fn last(&self) -> Objects {
        let mut objects = self.initial.clone();
        for change in self.steps.iter().flat_map(|step| &step.changes) {
            match &change.after {
                Some(after) => objects.insert(change.key.clone(), Arc::clone(after)),
                None => objects.remove(&change.key),
            };
        }
        objects
    }

    fn at_end(&self, invariant: &'static str, what: String) -> Violation {
        Violation { invariant, step: self.steps.last().map_or(0, |step| step.number), what }
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

/// When an invariant holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// After every step.
    Always,
    /// At the end, some time after all trouble stopped.
    AtRest,
}

/// An invariant.
#[derive(Debug, Clone, Copy)]
pub struct Invariant {
    /// Its name.
    pub id: &'static str,
    /// When it holds.
    pub when: When,
    /// What it says, in one line.
    pub says: &'static str,
    /// Finds where it was broken.
    pub check: Check,
}

const fn always(id: &'static str, says: &'static str, check: Check) -> Invariant {
    Invariant { id, when: When::Always, says, check }
}

const fn at_rest(id: &'static str, says: &'static str, check: Check) -> Invariant {
    Invariant { id, when: When::AtRest, says, check }
}

/// All invariants. L7 spoke of silences, which maint has not.
pub const INVARIANTS: &[Invariant] = &[
    always("S1", "never one node too many away", nodes::never_one_too_many),
    always("S2", "unattended runs keep to their window", window::only_inside_a_window),
    always("S3", "a node is handed over only while all that its gates ask is so", handover::only_on_fresh_facts),
    always("S4", "unknown never passes", acts::unknown_never_passes),
    always("S5", "only the leader writes", leadership::only_the_leader_writes),
    always("S6", "only a cordon of ours is removed", nodes::only_our_own_cordon),
    always("S7", "only evictions that are ours, by uid and budget", pods::only_evictions_that_are_ours),
    always("S8", "kured's lock is respected, and it acts only on a grant", kureds_lock_and_acts),
    always("S9", "no second reboot", acts::no_second_reboot),
    always("S10", "cordon-only evicts nothing", pods::cordon_only_evicts_nothing),
    always("S11", "the other etcd voters keep quorum", handover::quorum_stays),
    always("S12", "the last healthy copy of a volume is never taken down", handover::a_copy_stays),
    always("S13", "nothing is repaired after the return", pods::nothing_is_repaired),
    always("S14", "under a halt nothing new begins", people::a_halt_is_heard),
    always("S15", "a leader never drains its own node", leadership::never_its_own_node),
    always("S16", "an intent and a message before the act", acts::intent_before_act),
    always("S17", "no override bypasses what guards against two nodes down", people::overrides_have_limits),
    always("S18", "secrets are written nowhere", told::no_secret_is_written),
    always("S19", "no time-out lets the next node begin", proof::only_what_is_proven_goes_on),
    always("S20", "what was written down stays", told::history_stays),
    always("S21", "few writes, and none in a hurry", pace::writes_are_few),
    at_rest("L1", "every run is over, or held and that was told", rest::every_run_is_over_or_says_why),
    at_rest("L2", "nothing healthy stays cordoned", rest::nothing_healthy_stays_cordoned),
    at_rest("L3", "no lock of ours stays", rest::no_lock_of_ours_stays),
    at_rest("L4", "every message was delivered", told::every_message_was_delivered),
    at_rest("L5", "every wish was heard", rest::every_wish_was_heard),
    at_rest("L6", "somebody leads", leadership::somebody_leads),
    at_rest("L8", "every window has its report", window::every_window_is_reported),
];

/// The evictions that were asked for and arrived, in order: the uid that each names, and when.
#[must_use]
pub fn evictions_of(history: &History) -> Vec<(String, jiff::Timestamp)> {
    let arrived = history.steps.iter().filter(|step| views::is_eviction(step) && step.code != 0);
    arrived.filter_map(|step| Some((views::evicted_uid(step)?, step.at))).collect()
}

/// S8: what is written into kured's lock, and what kured does with it.
fn kureds_lock_and_acts(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = acts::kured_lock_is_respected(rules, history);
    found.extend(kured::only_what_was_granted(rules, history));
    found
}

fn check(when: When, rules: &Rules, history: &History) -> Vec<Violation> {
    let meant = INVARIANTS.iter().filter(|one| one.when == when);
    meant.flat_map(|one| (one.check)(rules, history)).collect()
}

/// Runs the checks of a night at rest.
#[must_use]
pub fn check_rest(rules: &Rules, history: &History) -> Vec<Violation> {
    check(When::AtRest, rules, history)
}

/// Runs all checks that hold after every step.
#[must_use]
pub fn check_all(rules: &Rules, history: &History) -> Vec<Violation> {
    check(When::Always, rules, history)
}

#[cfg(test)]
mod tests {
    use super::testing::{Night, Row};
    use super::*;
    use serde_json::json;

    /// Hand-made nights, good and bad ones, for each invariant.
    const HAND_MADE: &[(&str, &[Row])] = &[
        ("S1", nodes::tests::S1),
        ("S2", window::tests::S2),
        ("S3", handover::tests::S3),
        ("S4", acts::tests::S4),
        ("S5", leadership::tests::S5),
        ("S6", nodes::tests::S6),
        ("S7", pods::tests::S7),
        ("S8", acts::tests::S8),
        ("S8", kured::tests::S8_OF_KURED),
        ("S9", acts::tests::S9),
        ("S10", pods::tests::S10),
        ("S11", handover::tests::S11),
        ("S12", handover::tests::S12),
        ("S13", pods::tests::S13),
        ("S14", people::tests::S14),
        ("S15", leadership::tests::S15),
        ("S16", acts::tests::S16),
        ("S17", people::tests::S17),
        ("S18", told::tests::S18),
        ("S19", proof::tests::S19),
        ("S20", told::tests::S20),
        ("S21", pace::tests::S21),
        ("L1", rest::tests::L1),
        ("L2", rest::tests::L2),
        ("L3", rest::tests::L3),
        ("L4", told::tests::L4),
        ("L5", rest::tests::L5),
        ("L6", leadership::tests::L6),
        ("L8", window::tests::L8),
    ];

    /// The list of invariants is whole, and each check tells a bad night from a good one.
    #[test]
    fn every_invariant_rejects_a_bad_history_and_accepts_a_good_one() {
        let safety = (1..=21).map(|number| format!("S{number}"));
        let liveness = (1..=8).filter(|number| *number != 7).map(|number| format!("L{number}"));
        let wanted: Vec<String> = safety.chain(liveness).collect();
        assert_eq!(INVARIANTS.iter().map(|one| one.id).collect::<Vec<_>>(), wanted);
        let (mut bad, mut good) = (0, 0);
        for invariant in INVARIANTS {
            let sets = HAND_MADE.iter().filter(|(id, _)| *id == invariant.id);
            let rows: Vec<Row> = sets.flat_map(|(_, rows)| rows.iter().copied()).collect();
            Night::rows(invariant, &rows);
            let rejected = rows.iter().filter(|row| row.1).count();
            assert!(rejected > 0 && rejected < rows.len(), "{} needs a bad night and a good one", invariant.id);
            bad += rejected;
            good += rows.len() - rejected;
        }
        println!("figure invariants {} count", INVARIANTS.len());
        println!("figure invariants.bad_histories {bad} count");
        println!("figure invariants.good_histories {good} count");
    }

    #[test]
    fn a_good_night_breaks_nothing_and_a_bad_one_is_named() {
        let good = Night::run(|night| {
            for node in ["n1", "n2"] {
                night.spec(node, |spec| spec["trigger"] = json!("manual"));
            }
            night.start("n1");
            night.evict("web-n1", Some("uid-web-n1"));
            night.change_pod("world", "web-n1", |pod| pod["status"]["phase"] = json!("Succeeded"));
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
            night.spec("n1", |spec| spec["trigger"] = json!("manual"));
            night.start("n1");
            night.wait(31);
            night.act("n2", "boot-n1");
        });
        let mut names: Vec<_> = bad.iter().map(|violation| violation.invariant).collect();
        names.dedup();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names, ["S1", "S16", "S4", "S5", "S9"]);
    }
}
