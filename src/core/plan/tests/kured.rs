//! A kured on the target, and who answers it: what the rules of its grant are about, in a few lines.
//!
//! It looks every period; where its node wants a reboot it remembers the cordon, asks, takes its lock, drains, reboots,
//! and 30 s after its next start uncordons if its lock says so, and releases.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::play::Play;
use super::world::{Coming, Scene, TARGET, later};
use crate::api::record::KuredRecord;
use crate::api::{Asked, Document, GateId, Phase, Policy, QuestionSource, SourceId, names};
use crate::plan::{parse_time, phase_of};

pub(super) const LOCK: &str = names::ANNOTATION_KURED_LOCK;
const GARBAGE: &str = "worker2";
/// From the start of kured to its first look at its lock.
const START_SECONDS: i64 = 31;

/// What happens to kured next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Look,
    Acquire(bool),
    DrainEnds,
    Uncordon,
    Start,
}

/// What one process of kured is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Idle,
    Busy,
    Off,
}

/// kured on the target.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a double")]
pub(super) struct Kured {
    pub period: i64,
    /// The sentinel file is there.
    pub wants: bool,
    /// And it is the one that we made.
    pub made_by_us: bool,
    /// It asks before it acts.
    pub gated: bool,
    /// Its questions come from an address that is not its own.
    pub elsewhere: bool,
    /// Seconds from `go` to the lock.
    pub slow: i64,
    /// How long its drain takes, in seconds.
    pub drain_for: i64,
    /// How often its drain will fail, its process restart while draining, its reboot command fail.
    pub drains_fail: u32,
    pub restarts_draining: u32,
    pub commands_fail: u32,
    /// Somebody meddled with the node or the lock: between two looks of ours that cannot be prevented.
    pub meddled: bool,
    /// How often it took its lock.
    pub acquired: u32,
    at: At,
    /// A look that fell due meanwhile.
    due: bool,
    process: u64,
    restarts: u64,
}

impl Default for Kured {
    fn default() -> Self {
        Self {
            period: 20,
            wants: true,
            made_by_us: false,
            gated: true,
            elsewhere: false,
            slow: 0,
            drain_for: 3,
            drains_fail: 0,
            restarts_draining: 0,
            commands_fail: 0,
            meddled: false,
            acquired: 0,
            at: At::Idle,
            due: false,
            process: 1,
            restarts: 0,
        }
    }
}

impl Scene {
    /// Puts kured into the cluster.
    pub(super) fn install(&mut self, change: impl FnOnce(&mut Kured)) {
        let mut kured = Kured::default();
        change(&mut kured);
        let period = format!("--period={}s", kured.period);
        *self.world.of(SourceId::DaemonSets) = vec![json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": "kured", "namespace": "kube-system", "generation": 1, "annotations": {}},
            "spec": {"template": {"metadata": {}, "spec": {"containers": [
                {"name": "kured", "image": "ghcr.io/kubereboot/kured:1.23.0", "command": ["/usr/bin/kured"], "args": [period]},
            ]}}},
            "status": {"observedGeneration": 1, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberReady": 3},
        })];
        self.world.of(SourceId::TargetPods).push(json!({
            "metadata": {
                "name": "kured-x", "namespace": "kube-system", "uid": "uid-kured-x",
                "ownerReferences": [{"kind": "DaemonSet", "name": "kured", "controller": true}],
            },
            "spec": {"nodeName": TARGET},
            "status": {
                "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [{"name": "kured", "restartCount": 0}],
            },
        }));
        self.settings.run.handover_timeout_seconds = 150;
        // What it asks of kured's flags and pods is told in its own tables.
        self.settings.gates.insert(GateId::Kured, Policy::Off);
        let first = later(self.now, 7);
        self.kured = Some(kured);
        self.expect(first, Next::Look);
    }

    pub(super) fn kured(&mut self) -> &mut Kured {
        self.kured.as_mut().expect("kured")
    }

    fn expect(&mut self, at: Timestamp, next: Next) {
        let process = self.kured().process;
        self.coming.push((at, Coming::Kured(next, process)));
    }

    // --- its lock ---

    pub(super) fn lock(&mut self) -> Option<String> {
        let found = self.world.of(SourceId::DaemonSets).first()?;
        found["metadata"]["annotations"][LOCK].as_str().map(str::to_owned)
    }

    pub(super) fn set_lock(&mut self, value: Option<String>) {
        let Some(found) = self.world.of(SourceId::DaemonSets).first_mut() else { return };
        let annotations = found["metadata"]["annotations"].as_object_mut().expect("annotations");
        match value {
            Some(value) => drop(annotations.insert(LOCK.to_owned(), json!(value))),
            None => drop(annotations.remove(LOCK)),
        }
    }

    pub(super) fn lock_value(&mut self) -> Value {
        self.lock().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    fn holds(&mut self) -> bool {
        self.lock_value()["nodeID"] == TARGET
    }

    // --- what it does ---

    pub(super) fn kured_does(&mut self, at: Timestamp, next: Next, process: u64) {
        if self.kured.as_ref().is_none_or(|kured| kured.process != process || kured.at == At::Off) {
            return;
        }
        match next {
            Next::Look => {
                let period = self.kured().period;
                self.expect(later(at, period), Next::Look);
                if self.kured().at == At::Idle { self.look(at) } else { self.kured().due = true }
            }
            Next::Acquire(unschedulable) => self.acquire(at, unschedulable),
            Next::DrainEnds => self.drain_ends(at),
            Next::Uncordon => {
                self.cordon(TARGET, false, "kured");
                self.idle(at);
            }
            Next::Start => {
                if self.holds() {
                    if self.lock_value()["metadata"]["unschedulable"] != true {
                        self.cordon(TARGET, false, "kured");
                    }
                    self.set_lock(None);
                }
                self.idle(at);
                let period = self.kured().period;
                self.expect(later(at, period), Next::Look);
            }
        }
    }

    /// A look that fell due while it was at work comes at once.
    fn idle(&mut self, at: Timestamp) {
        self.kured().at = At::Idle;
        if std::mem::take(&mut self.kured().due) {
            self.look(at);
        }
    }

    fn look(&mut self, at: Timestamp) {
        if !self.kured().wants {
            return;
        }
        let unschedulable = self.find(TARGET).is_some_and(|node| node["spec"]["unschedulable"] == true);
        if self.kured().gated && !self.answer(at) {
            return;
        }
        self.kured().at = At::Busy;
        let slow = self.kured().slow;
        self.expect(later(at, slow), Next::Acquire(unschedulable));
        if slow == 0 {
            self.coming.pop();
            self.acquire(at, unschedulable);
        }
    }

    fn acquire(&mut self, at: Timestamp, unschedulable: bool) {
        if self.world.of(SourceId::DaemonSets).is_empty() || (self.lock().is_some() && !self.holds()) {
            // It could not be read, or is already held.
            return self.idle(at);
        }
        if self.kured().gated && !self.kured().meddled {
            self.assert_may_go();
        }
        let entry = json!({
            "nodeID": TARGET, "metadata": {"unschedulable": unschedulable}, "created": at.to_string(), "TTL": 0,
        });
        self.set_lock(Some(entry.to_string()));
        self.kured().acquired += 1;
        self.cordon(TARGET, true, "kured");
        let drain_for = self.kured().drain_for;
        self.expect(later(at, drain_for), Next::DrainEnds);
    }

    /// What must hold when a kured that asks us takes its lock: all that its grant stood for.
    fn assert_may_go(&mut self) {
        let line = self.node_line();
        let theirs = self.record.as_ref().and_then(|record| record.status.as_ref()).and_then(|one| one.node.as_ref());
        if theirs.is_none_or(|node| !node.was_unschedulable) {
            let left_by_kured = self.kured().acquired > 0;
            assert!(line == "cordoned by maint, owned" || left_by_kured, "kured goes, and the node is {line}");
        }
        let record = self.record.as_ref().expect("kured goes without a record");
        let phase = phase_of(record);
        assert!(
            matches!(phase, Phase::Acting | Phase::BackingOut | Phase::Returning),
            "kured goes while the run is {phase}"
        );
    }

    fn drain_ends(&mut self, at: Timestamp) {
        let kured = self.kured();
        let once = |left: &mut u32| {
            let fails = *left > 0;
            *left = left.saturating_sub(1);
            fails
        };
        if once(&mut kured.drains_fail) {
            // kured forgets the lock first, then uncordons whatever the lock said; the next look is due.
            kured.due = true;
            self.set_lock(None);
            self.expect(later(at, 1), Next::Uncordon);
        } else if once(&mut kured.restarts_draining) || once(&mut kured.commands_fail) {
            self.restart(at);
        } else {
            self.coming.push((later(at, 1), Coming::NodeDown));
        }
    }

    /// Its container restarts.
    pub(super) fn restart(&mut self, at: Timestamp) {
        let kured = self.kured();
        kured.process += 1;
        kured.restarts += 1;
        kured.due = false;
        kured.at = At::Busy;
        let restarts = kured.restarts;
        for pod in self.world.of(SourceId::TargetPods) {
            if pod["metadata"]["name"] == "kured-x" {
                pod["status"]["containerStatuses"][0]["restartCount"] = json!(restarts);
            }
        }
        self.expect(later(at, START_SECONDS), Next::Start);
    }

    pub(super) fn kured_goes_down(&mut self) {
        if let Some(kured) = &mut self.kured {
            kured.at = At::Off;
        }
    }

    pub(super) fn kured_comes_back(&mut self, at: Timestamp) {
        if self.kured.is_some() {
            // The file is in a folder that a boot empties.
            self.kured().wants = false;
            self.kured().made_by_us = false;
            self.restart(at);
        }
    }

    // --- who answers it ---

    /// Whether it hears `go`; what it asked is written down as any replica does.
    fn answer(&mut self, at: Timestamp) -> bool {
        let names_target = self.holds();
        let boot = self.find(TARGET).map(|node| node["status"]["nodeInfo"]["bootID"].clone()).unwrap_or_default();
        let elsewhere = self.kured().elsewhere;
        let Some(record) = &mut self.record else { return false };
        let status = record.status.clone().unwrap_or_default();
        let kured = status.kured.clone().unwrap_or_else(KuredRecord::default);
        let valid = status.intent.as_ref().is_some_and(|intent| {
            json!(intent.boot_id) == boot && parse_time(Some(&intent.valid_until)).is_some_and(|until| at < until)
        });
        let go = phase_of(record) == Phase::Acting
            && record.spec.action == "kured"
            && valid
            && kured.closing.is_none()
            && !names_target;
        let annotations = record.metadata.annotations.get_or_insert_default();
        let known = annotations.get(names::ANNOTATION_ASKED).and_then(|text| Asked::parse(text).ok());
        if known.is_none_or(|known| known.epoch != kured.ask_epoch || at >= later(known.at, 600)) {
            let asked = Asked {
                at,
                answer: if go { "go".to_owned() } else { "wait".to_owned() },
                epoch: kured.ask_epoch,
                source: if elsewhere { QuestionSource::Elsewhere } else { QuestionSource::Kured },
            };
            annotations.insert(names::ANNOTATION_ASKED.to_owned(), serde_json::to_string(&asked).expect("JSON"));
        }
        go
    }

    /// kured heard `go` and has not got its lock yet.
    pub(super) fn is_under_way(&self) -> bool {
        let Some(kured) = &self.kured else { return false };
        let takes =
            |coming: &Coming| matches!(coming, Coming::Kured(Next::Acquire(_), process) if *process == kured.process);
        kured.at != At::Off && self.coming.iter().any(|(_, coming)| takes(coming))
    }

    /// When kured will next do something to its lock.
    pub(super) fn next_change_of_lock(&self) -> Option<Timestamp> {
        let granted = self.record.as_ref().and_then(|record| record.status.as_ref()?.intent.as_ref()).is_some();
        let changes = |coming: &Coming| matches!(coming, Coming::Kured(next, _) if granted || *next != Next::Look);
        self.coming.iter().filter(|(at, coming)| *at > self.now && changes(coming)).map(|(at, _)| *at).min()
    }

    /// What is on its way arrives.
    pub(super) fn acquires_now(&mut self) {
        let now = self.now;
        for (at, coming) in &mut self.coming {
            if matches!(coming, Coming::Kured(Next::Acquire(_), _)) {
                *at = now;
            }
        }
        self.tick();
    }

    pub(super) fn looks_now(&mut self) {
        let now = self.now;
        self.look(now);
    }

    /// Somebody asks in kured's name.
    pub(super) fn forge_question(&mut self) {
        let now = self.now;
        self.kured().elsewhere = true;
        assert!(!self.answer(now));
    }

    /// What is put back while kured may still take its lock on an old `go` would be rebooted uncordoned.
    pub(super) fn assert_nothing_is_under_way(&mut self) {
        let under_way = self.is_under_way();
        let ours = !self.lock_value()["maint"].is_null();
        let installed = !self.world.of(SourceId::DaemonSets).is_empty();
        assert!(!under_way || ours || !installed, "put back while kured may still act");
    }

    // --- the sentinel ---

    pub(super) fn create_sentinel_pod(&mut self, name: &str, path: &str, wanted_on: Option<&str>) {
        if self.world.of(SourceId::ActionPods).iter().any(|pod| pod["metadata"]["name"] == name) {
            return;
        }
        assert_eq!(path, "/var/run/reboot-required");
        let boot = self.find(TARGET).map(|node| node["status"]["nodeInfo"]["bootID"].clone());
        let same = wanted_on.is_none_or(|wanted| boot == Some(json!(wanted)));
        let pod = json!({
            "metadata": {"name": name, "namespace": "maint-actions", "uid": format!("uid-{name}")},
            "spec": {"nodeName": TARGET}, "status": {"phase": "Pending"},
        });
        self.world.of(SourceId::ActionPods).push(pod.clone());
        self.world.of(SourceId::TargetPods).push(pod);
        let remove = wanted_on.is_none();
        if same || remove {
            self.coming.push((later(self.now, 3), Coming::Sentinel { remove }));
        }
    }

    pub(super) fn sentinel_pod_ends(&mut self, remove: bool) {
        let fails = self.cluster.action_fails;
        for source in [SourceId::ActionPods, SourceId::TargetPods] {
            for pod in self.world.of(source) {
                let name = pod["metadata"]["name"].as_str().unwrap_or_default();
                if name.ends_with(if remove { "-sentinel-off" } else { "-sentinel" }) {
                    pod["status"]["phase"] = json!(if fails { "Failed" } else { "Succeeded" });
                }
            }
        }
        if fails {
            return;
        }
        let kured = self.kured();
        if remove {
            kured.wants &= !kured.made_by_us;
            kured.made_by_us = false;
        } else if !kured.wants {
            kured.wants = true;
            kured.made_by_us = true;
        }
    }
}

// --- events; where there is no kured nothing happens ---

pub(super) fn wipe_lock(play: &mut Play) {
    if play.scene.kured.is_some() {
        play.scene.set_lock(None);
    }
}

pub(super) fn garble_lock(play: &mut Play) {
    if play.scene.kured.is_some() {
        play.scene.set_lock(Some(GARBAGE.to_owned()));
    }
}

pub(super) fn clear_garbage(play: &mut Play) {
    if play.scene.lock().as_deref() == Some(GARBAGE) {
        play.scene.set_lock(None);
    }
}

pub(super) fn kured_restarts(play: &mut Play) {
    let now = play.scene.now;
    if play.scene.kured.as_ref().is_some_and(|kured| kured.at != At::Off) {
        play.scene.restart(now);
    }
}

fn change(play: &mut Play, change: fn(&mut Kured)) {
    play.scene.kured.iter_mut().for_each(change);
}

pub(super) fn kured_wants(play: &mut Play) {
    change(play, |kured| kured.wants = true);
}

pub(super) fn kured_wants_no_more(play: &mut Play) {
    change(play, |kured| kured.wants = false);
}

pub(super) fn kured_is_slow(play: &mut Play) {
    change(play, |kured| kured.slow = 70);
}

pub(super) fn kured_is_quick(play: &mut Play) {
    change(play, |kured| kured.slow = 0);
}

pub(super) fn kured_fails(play: &mut Play) {
    change(play, |kured| kured.drains_fail += 1);
}

pub(super) fn command_fails(play: &mut Play) {
    change(play, |kured| kured.commands_fail += 1);
}
