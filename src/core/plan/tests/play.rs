//! The loop of a driver without I/O, and what must hold at each of its turns.

use jiff::Timestamp;

use super::world::{Scene, TARGET, later};
use crate::api::record::{Maintenance, MaintenanceSpec, MaintenanceStatus, Word};
use crate::api::{Asked, Document, Phase, SourceId, names};
use crate::drain::Answers;
use crate::facts::Facts;
use crate::plan::{Act, FINALIZER, Step, StepInput, parse_time, phase_of, step};

/// A turn after which nothing changes for this many seconds is the end: more than every deadline of the play.
const QUIET_SECONDS: i64 = 200;
const MOST_TURNS: usize = 3000;

/// A process that dies in the next turn, and how many acts of it are done before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crash {
    pub acts_done: usize,
    /// It dies before the status is written, and so before any act.
    pub before_write: bool,
}

/// A run from its wish to its end.
#[derive(Clone)]
pub(super) struct Play {
    pub scene: Scene,
    pub acts: Vec<String>,
    pub phases: Vec<Phase>,
    pub done: bool,
    pub turns: usize,
    /// How many acts the last turn asked for; none if it wrote nothing either.
    pub last: Option<usize>,
    /// Keep what each turn was decided on.
    pub records: bool,
    pub statuses: Vec<(Maintenance, Facts, Timestamp)>,
    pub crash: Option<Crash>,
    quiet_since: Timestamp,
}

#[expect(clippy::unnecessary_wraps, reason = "it is put into optional fields only")]
pub(super) fn word(accept: bool) -> Option<Word> {
    // A clock that is hours behind: words count all the same.
    Some(Word { by: "anna".into(), at: "2026-11-29T20:00:00Z".into(), accept, failed: false })
}

pub(super) fn spec(scope: &str, action: &str) -> MaintenanceSpec {
    MaintenanceSpec {
        node_name: TARGET.into(),
        scope: scope.into(),
        action: action.into(),
        trigger: "unattended".into(),
        requested_by: "anna".into(),
        reason: "kernel".into(),
        command_waits: action == "external",
        ..MaintenanceSpec::default()
    }
}

impl Play {
    pub(super) fn new(spec: MaintenanceSpec) -> Self {
        let scene = Scene::new(spec);
        let quiet_since = scene.now;
        Self {
            scene,
            acts: Vec::new(),
            phases: vec![Phase::Pending],
            done: false,
            turns: 0,
            last: None,
            records: false,
            statuses: Vec::new(),
            crash: None,
            quiet_since,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        *self.phases.last().expect("a phase")
    }

    pub(super) fn status(&self) -> MaintenanceStatus {
        self.scene.record.as_ref().and_then(|record| record.status.clone()).unwrap_or_default()
    }

    pub(super) fn say(&mut self, change: impl FnOnce(&mut MaintenanceSpec)) {
        if let Some(record) = &mut self.scene.record {
            change(&mut record.spec);
        }
    }

    /// `finished:info ...`
    pub(super) fn messages(&self) -> String {
        let outbox = self.status().outbox;
        outbox.iter().map(|entry| format!("{}:{}", entry.kind, entry.severity)).collect::<Vec<_>>().join(" ")
    }

    /// The acts that were done, evictions and repeated ones once.
    pub(super) fn act_line(&self) -> String {
        let mut line: Vec<&str> = self.acts.iter().map(String::as_str).collect();
        line.dedup();
        line.join(" ")
    }

    /// Whether something says that nothing irreversible may be done now.
    fn stopped(&mut self) -> bool {
        let halted = self.scene.world.of(SourceId::ConfigMaps).iter().any(|map| !map["data"]["halt"].is_null());
        let target = self.scene.find(TARGET).map(|node| node.clone());
        let held = target.is_some_and(|node| !node["metadata"]["annotations"][names::ANNOTATION_HOLD].is_null());
        let other = ["worker1", "worker3"].iter().any(|name| {
            self.scene.find(name).is_none_or(|node| {
                node["spec"]["unschedulable"] == true || node["status"]["conditions"][0]["status"] != "True"
            })
        });
        let read = [SourceId::Nodes, SourceId::ConfigMaps, SourceId::TargetPods, SourceId::Leases];
        halted || held || other || read.iter().any(|id| self.scene.cluster.unreadable.contains(id))
    }

    pub(super) fn decide(&self, record: &Maintenance, facts: &Facts, answers: &Answers) -> Step {
        let input = StepInput {
            record,
            facts,
            settings: &self.scene.settings,
            term: self.scene.term,
            answers,
            seat: self.scene.seat.as_ref(),
            watched: false,
            now: self.scene.now,
        };
        let decided = step(&input);
        assert_eq!(decided, step(&input), "the same input gives the same step");
        decided
    }

    /// What would have been decided then.
    pub(super) fn decide_at(&mut self, record: &Maintenance, facts: &Facts, now: Timestamp) -> Step {
        self.scene.now = now;
        self.decide(record, facts, &Answers::default())
    }

    /// One turn of the driver; false once it is over.
    pub(super) fn turn(&mut self) -> bool {
        self.scene.tick();
        self.programs();
        let Some(record) = self.scene.record.clone() else {
            self.done = true;
            return false;
        };
        let facts = self.scene.facts();
        let answers = self.scene.answers.clone();
        let decided = self.decide(&record, &facts, &answers);
        self.check(&record, &facts, &decided);
        if self.records {
            self.statuses.push((record.clone(), facts, self.scene.now));
        }
        self.turns += 1;
        let crash = self.crash.take();
        let changed = record.status.as_ref() != Some(&decided.status);
        self.last = (changed || !decided.acts.is_empty()).then_some(decided.acts.len());
        if self.last.is_some() {
            self.quiet_since = self.scene.now;
        }
        if crash.is_some_and(|crash| crash.before_write) {
            self.next_leader();
            return true;
        }
        self.write(&decided.status);
        let acts_done = crash.map_or(usize::MAX, |crash| crash.acts_done);
        for act in decided.acts.iter().take(acts_done) {
            match self.scene.perform(act) {
                Ok(()) => self.acts.push(act.as_str().to_owned()),
                Err(_) => break,
            }
        }
        if crash.is_some() {
            self.next_leader();
            return true;
        }
        self.done = decided.done;
        // At most one write a second; a change of kured's lock wakes.
        let next = self.scene.next_change_of_lock().map_or(decided.wake_at, |at| decided.wake_at.min(at));
        self.scene.now = next.max(later(self.scene.now, 1));
        !self.done
    }

    fn next_leader(&mut self) {
        self.scene.term += 1;
        self.scene.answers = Answers::default();
        self.scene.now = later(self.scene.now, 35);
    }

    /// The API keeps JSON.
    fn write(&mut self, status: &MaintenanceStatus) {
        let value = serde_json::to_value(status).expect("JSON");
        let record = self.scene.record.as_mut().expect("a record");
        record.status = Some(serde_json::from_value(value).expect("the same again"));
        let phase = phase_of(record);
        if phase != self.phase() {
            self.phases.push(phase);
        }
    }

    /// Who waits to act outside: a program claims what is offered, a person does what he is told.
    fn programs(&mut self) {
        let Some(record) = &self.scene.record else { return };
        let status = self.status();
        if record.spec.action != "external" {
            return;
        }
        let now = self.scene.now;
        let valid = status.intent.as_ref().is_some_and(|intent| parse_time(Some(&intent.valid_until)) > Some(now));
        let told = status.outbox.iter().any(|entry| entry.kind == "go" && entry.severity == "info");
        let (waits, claimed, done) =
            (record.spec.command_waits, record.spec.claimed.is_some(), record.spec.action_done.is_some());
        let fails = self.scene.cluster.action_fails;
        if waits && valid && !claimed && record.spec.reason != "nobody waits" {
            self.say(|spec| spec.claimed = word(false));
            self.scene.acted();
        } else if !waits && told && !done && status.committed_at.is_some() && record.spec.reason != "nobody acts" {
            self.say(|spec| spec.action_done = word(false));
            self.scene.acted();
        } else if claimed && !done && status.committed_at.is_some() {
            self.say(|spec| spec.action_done = word(false).map(|word| Word { failed: fails, ..word }));
        }
    }

    /// What holds at every turn.
    fn check(&mut self, record: &Maintenance, facts: &Facts, decided: &Step) {
        let before = phase_of(record);
        assert!(decided.wake_at >= self.scene.now, "it wakes in the past");
        let (was, is) = (record.status.clone().unwrap_or_default(), &decided.status);
        if before.is_in_flight() && was.term < self.scene.term {
            assert_eq!(
                (is.phase.as_str(), decided.acts.len()),
                (was.phase.as_str(), 0),
                "first the term, only the term"
            );
        }
        let stopped = self.stopped();
        let late = parse_time(is.deadline.as_ref()).is_some_and(|deadline| self.scene.now >= deadline);
        for act in &decided.acts {
            let acts = matches!(act, Act::Evict(_) | Act::CreateActionPod { .. });
            assert!(!(acts && stopped), "{act:?} while something says no");
            assert!(!(acts && late), "{act:?} after the deadline");
            if let Act::CreateActionPod { boot_id, .. } = act {
                let intended = was.intent.as_ref().map(|intent| intent.boot_id.as_str());
                assert_eq!(intended, Some(boot_id.as_str()), "an act without an earlier intent");
                assert!(!self.scene.pods_created.contains(boot_id), "a second act on one boot");
            }
            if matches!(act, Act::Evict(_)) {
                assert_eq!(was.strategy, "drain", "an eviction without a drain");
            }
        }
        self.check_grant(record, &was, is);
        let ends = is.phase.parse::<Phase>().expect("a phase");
        if was.committed_at.is_some() && matches!(ends, Phase::Failed | Phase::Cancelled) && !before.is_terminal() {
            let may = ["NodeReplaced", "AcceptedUnproven"];
            assert!(may.contains(&is.outcome.as_str()), "after commit it ended {ends} {}", is.outcome);
        }
        if ends == Phase::Held && before != Phase::Held {
            assert!(before.is_committed(), "held before commit, from {before}");
        }
        if ends.is_terminal() && !before.is_terminal() {
            let through =
                matches!(ends, Phase::Succeeded) || matches!(before, Phase::Pending | Phase::BackingOut | Phase::Held);
            assert!(through, "{before} -> {ends}");
        }
        let ids: std::collections::BTreeSet<&str> = is.outbox.iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!(ids.len(), is.outbox.len(), "messages with one id");
        for text in is.outbox.iter().map(|entry| &entry.text).chain([&is.message]).chain(&is.warnings) {
            assert!(!text.ends_with(['.', ':', ' ', ',']) && !text.contains("  ") && !text.contains("..."), "`{text}`");
        }
        if !decided.acts.is_empty() {
            // It stopped between the write and the act: the next look asks for the same.
            let mut next = record.clone();
            next.status = Some(decided.status.clone());
            let again = self.decide(&next, facts, &self.scene.answers);
            assert_eq!(again.acts, decided.acts, "asked again after a crash between write and act, in {before}");
        }
    }

    /// Never a grant without a cordon of ours, a question after it, and a lock that is not ours; at most two are used.
    fn check_grant(&mut self, record: &Maintenance, was: &MaintenanceStatus, is: &MaintenanceStatus) {
        let kured = was.kured.clone().unwrap_or_default();
        assert!(is.kured.as_ref().is_none_or(|kured| kured.grants <= 2), "a third grant");
        let given = |status: &MaintenanceStatus| status.intent.as_ref().map(|intent| intent.valid_until.clone());
        if record.spec.action != "kured" || given(is).is_none() || given(is) == given(was) {
            return;
        }
        let line = self.scene.node_line();
        let theirs = was.node.as_ref().is_some_and(|node| node.was_unschedulable) && line.starts_with("cordoned");
        assert!(line == "cordoned by maint, owned" || theirs, "granted, and the node is {line}");
        assert!(!self.stopped(), "granted while something says no");
        assert!(is.kured.as_ref().is_some_and(|kured| kured.closing.is_none()), "granted while another is closed");
        let until = parse_time(given(is).as_ref()).expect("a time");
        assert!(until <= later(self.scene.now, 30), "granted for too long");
        if given(was).is_none() {
            let annotations = record.metadata.annotations.clone().unwrap_or_default();
            let asked = Asked::parse(annotations.get(names::ANNOTATION_ASKED).expect("a question")).expect("asked");
            assert!(
                kured.ask_epoch > 0 && asked.epoch >= kured.ask_epoch,
                "granted before a question after the cordon"
            );
            assert!(self.scene.lock_value()["maint"].is_null(), "granted while the lock is ours");
        }
    }

    /// Turns until it is over or nothing changes any more.
    pub(super) fn run(&mut self) {
        while self.turn() && self.scene.now < later(self.quiet_since, QUIET_SECONDS) {
            assert!(self.turns < MOST_TURNS, "it never comes to rest: {:?}", self.phases);
        }
    }

    /// Turns until the phase begins, and a few more within it.
    pub(super) fn run_until(&mut self, phase: Phase, turns: usize) {
        let from = self.turns;
        while self.phase() != phase {
            assert!(self.turn() || self.phase() == phase, "never came to {phase}: {}", self.told());
            assert!(self.turns < from + 600, "never came to {phase}: {}", self.told());
        }
        for _ in 0..turns {
            self.turn();
        }
    }

    /// Turns until kured is granted the reboot.
    pub(super) fn until_granted(&mut self) {
        for _ in 0..200 {
            if self.status().intent.is_some() {
                return;
            }
            self.turn();
        }
        panic!("never granted: {}", self.told());
    }

    pub(super) fn told(&self) -> String {
        let status = self.status();
        let lines: Vec<String> =
            status.timeline.iter().map(|entry| format!("{} {}: {}", entry.at, entry.phase, entry.message)).collect();
        format!("{:?} {} {}\n{}", self.phases, status.outcome, status.message, lines.join("\n"))
    }

    /// Nothing of ours is left on the node, on the record, in the action namespace.
    pub(super) fn assert_nothing_left(&mut self, row: &str) {
        assert_eq!(self.scene.owner(), None, "{row}: our annotation is left\n{}", self.told());
        if let Some(record) = &self.scene.record {
            let left = record.metadata.finalizers.iter().flatten().any(|one| one == FINALIZER);
            assert!(!left, "{row}: our finalizer is left\n{}", self.told());
        }
        let pods = self.scene.world.of(SourceId::ActionPods).len();
        assert_eq!(pods, 0, "{row}: an action pod is left\n{}", self.told());
        if self.scene.kured.is_some() {
            let lock = self.scene.lock_value();
            assert!(lock["maint"].is_null(), "{row}: our hold is left: {lock}\n{}", self.told());
            let there = self.scene.find(TARGET).is_some();
            assert!(!(there && self.scene.kured().made_by_us), "{row}: our sentinel is left\n{}", self.told());
        }
    }
}
