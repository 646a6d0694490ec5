//! Keeps ConfigMap `maint-state` while this replica leads: what drivers saw, and a look of its own now and then.
//!
//! It writes its term at once, so that an old leader's write that is still on its way conflicts; after that at most
//! once a minute, and only what changed. What could not be written is kept and tried with the next turn.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use maint_core::api::{SourceId, names};
use maint_core::config::Settings;
use maint_core::facts::{ConfigMap, Facts, Item, Observation};
use maint_core::report::events;
use maint_core::state::{self, Decision, Look, Unreadable};
use tokio::sync::Notify;

use super::{Aside, Ports, Records};
use crate::execute::{Fenced, StateWrite, WriteError};
use crate::lead::LeaseGuard;
use crate::ports::{Observe, Wanted};
use crate::runtime::Clock;

/// Least time between two writes.
const WRITE_EVERY: Duration = Duration::from_secs(60);
/// How often the keeper looks for itself: without wishes nobody else does, and the API servers that were good must be
/// known when all of them are away.
const LOOK_EVERY: Duration = Duration::from_secs(3600);

/// Looks that nobody has written down yet.
#[derive(Debug, Default)]
pub struct Notes {
    look: Mutex<Look>,
    added: Notify,
}

impl Notes {
    fn with<T>(&self, act: impl FnOnce(&mut Look) -> T) -> T {
        act(&mut self.look.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds what was seen.
    pub fn add(&self, look: Look) {
        if !look.is_empty() {
            self.with(|known| known.then(look));
            self.added.notify_one();
        }
    }

    fn take(&self) -> Look {
        self.with(std::mem::take)
    }

    /// Puts back what could not be written; what came meanwhile is newer.
    fn put_back(&self, mut look: Look) {
        self.with(|known| {
            look.then(std::mem::take(known));
            *known = look;
        });
    }

    async fn added(&self) {
        while self.with(|known| known.is_empty()) {
            self.added.notified().await;
        }
    }
}

/// What the ConfigMap holds.
#[derive(Debug, Clone, Default)]
struct Known {
    resource_version: Option<String>,
    uid: String,
    data: BTreeMap<String, String>,
}

/// Keeps the ConfigMap.
pub struct Keeper<O, F, R> {
    /// The world.
    pub ports: Arc<Ports<O, F, R>>,
    /// Time.
    pub clock: Clock,
    /// The lease.
    pub guard: LeaseGuard,
    /// The settings.
    pub settings: Arc<Settings>,
    /// What drivers leave.
    pub aside: Aside,
}

/// Whether the keeper goes on.
#[derive(PartialEq, Eq)]
enum Turn {
    GoOn,
    Over,
}

impl<O: Observe, F: Fenced, R: Records> Keeper<O, F, R> {
    /// Runs until the lease is lost, or another leader has written the ConfigMap.
    pub async fn run(self) {
        let lost = self.guard.child_token();
        tokio::select! {
            biased;
            () = lost.cancelled() => {}
            () = self.keep() => {}
        }
    }

    async fn keep(&self) {
        let mut memory: Option<BTreeMap<String, String>> = None;
        let mut told = BTreeSet::new();
        let mut own_look = self.clock.instant() + WRITE_EVERY;
        while self.turn(&mut memory, &mut told).await == Turn::GoOn {
            self.clock.sleep(WRITE_EVERY).await;
            tokio::select! {
                biased;
                () = self.clock.sleep_until(own_look) => {
                    own_look = self.clock.instant() + LOOK_EVERY;
                    // What a person did to the ConfigMap meanwhile is seen, too.
                    memory = None;
                    self.look().await;
                }
                () = self.aside.notes.added() => {}
            }
        }
    }

    /// Reads what is remembered without any run: which API servers are good.
    async fn look(&self) {
        let sources = BTreeSet::from([SourceId::Nodes, SourceId::EndpointSlices, SourceId::ApiServers]);
        let facts = self.ports.observe.observe(&Wanted { sources, target: None, every_pair: false }).await;
        self.aside.notes.add(Look::of(&facts, None, &self.settings, self.clock.now()));
    }

    async fn turn(&self, memory: &mut Option<BTreeMap<String, String>>, told: &mut BTreeSet<(String, String)>) -> Turn {
        let look = self.aside.notes.take();
        if memory.as_ref().is_some_and(|data| self.decide(data, &look) == Decision::default()) {
            return Turn::GoOn;
        }
        let Some(known) = self.read().await else {
            self.aside.notes.put_back(look);
            return Turn::GoOn;
        };
        let decision = self.decide(&known.data, &look);
        if decision.overtaken {
            tracing::warn!(term = self.guard.term().0, "another leader has written {}", names::STATE_CONFIG_MAP);
            return Turn::Over;
        }
        for problem in &decision.unreadable {
            if told.insert((problem.key.to_owned(), problem.text.clone())) {
                self.report(problem, &known.uid);
            }
        }
        let mut data = known.data;
        data.extend(decision.data.iter().map(|(key, text)| ((*key).to_owned(), text.clone())));
        if decision.data.is_empty() {
            *memory = Some(data);
            return Turn::GoOn;
        }
        let write = StateWrite { resource_version: known.resource_version, data: decision.data };
        match self.ports.fenced.write_state(&self.guard, &write).await {
            Ok(()) => *memory = Some(data),
            // Somebody wrote first, or nothing is known of it: read again, decide anew.
            Err(error) => {
                if !matches!(error, WriteError::Conflict(_)) {
                    tracing::warn!(category = error.category(), %error, "did not write {}", names::STATE_CONFIG_MAP);
                }
                *memory = None;
                self.aside.notes.put_back(look);
            }
        }
        Turn::GoOn
    }

    fn decide(&self, data: &BTreeMap<String, String>, look: &Look) -> Decision {
        state::decide(data, look, self.guard.term().0, self.clock.now())
    }

    fn report(&self, problem: &Unreadable, uid: &str) {
        tracing::warn!(key = problem.key, text = problem.text, replaced = problem.replaced, "{problem}");
        let note = events::unreadable(problem, &self.settings.namespace, uid, self.clock.now());
        self.aside.events.offer(note);
    }

    /// The ConfigMap as it is; none where that could not be read.
    async fn read(&self) -> Option<Known> {
        let wanted = Wanted { sources: BTreeSet::from([SourceId::ConfigMaps]), target: None, every_pair: false };
        let facts: Facts = self.ports.observe.observe(&wanted).await;
        let maps = match facts.config_maps {
            Observation::Known { value, .. } => value,
            other => {
                tracing::warn!(?other, "could not read {}", names::STATE_CONFIG_MAP);
                return None;
            }
        };
        let own = format!("ConfigMap {}/{}", self.settings.namespace, names::STATE_CONFIG_MAP);
        for item in maps {
            match item {
                Item::Good(ConfigMap { metadata, data }) if metadata.name == names::STATE_CONFIG_MAP => {
                    let resource_version = Some(metadata.resource_version);
                    return Some(Known { resource_version, uid: metadata.uid, data });
                }
                Item::Malformed(malformed) if malformed.object == own => {
                    tracing::warn!(%malformed, "could not understand {}", names::STATE_CONFIG_MAP);
                    return None;
                }
                _ => {}
            }
        }
        Some(Known::default())
    }
}
