//! A night: real replicas of the service on the simulated cluster, people, faults, and what came of it.
//!
//! Nothing of the service is replaced but the connection: election, observer, drivers, writer and delivery are the
//! ones that run on a real cluster. What the connection is, the [`Shell`] says: the real client, or typed ports. A
//! seed and a plan are the whole night in a shell: the same pair gives the same trace.

pub mod acts;
pub mod cluster;
pub mod doors;
mod drains;
mod end;
pub mod kured;
mod people;
mod replica;
pub mod scenario;
mod seats;
mod shell;
#[cfg(test)]
pub(crate) mod tests;
pub mod troubles;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use maint_core::api::record::Maintenance;
use maint_core::config::Settings;
use serde_json::Value;

pub use drains::DRAINS;
pub use end::End;
pub use people::Person;
pub use replica::Mailbag;
pub use scenario::{SCENARIOS, Scenario, UNATTENDED};
pub use shell::Shell;

use crate::clock::{Clock, sleep};
use crate::faults::{Chances, EvictionChances, Fault, Faults};
use crate::invariants::{self, History, Rules, Violation};
use crate::kinds::FaultKind;
use crate::random::Random;
use crate::store::http::{Cluster, Cut, Inner};
use crate::store::object::At as _;
use crate::store::{ObjectKey, object};
use crate::typed::Decoded;
use crate::world::{self, SharedWorld, World};

/// The node that is maintained. Its API server is the one that the first replica talks to.
pub const TARGET: &str = "n1";
/// The record.
pub const RECORD: &str = "n1-night";
/// The replicas.
pub const REPLICAS: [&str; 2] = ["maint-1", "maint-2"];
/// When every night begins.
const BEGIN: &str = "2026-11-30T02:00:00Z";
/// When every night begins, as a time.
fn begin() -> Timestamp {
    BEGIN.parse().unwrap_or(Timestamp::UNIX_EPOCH)
}

/// A night that is not at rest by then has failed.
const LIMIT: Duration = Duration::from_secs(1800);
/// The oldest that facts may be when something is decided on them, and as much again for the write: what befalls other
/// nodes is not seen before.
const NOTICE: jiff::SignedDuration = jiff::SignedDuration::from_secs(30);
/// Until then the world has come to rest.
const WARM_UP: Duration = Duration::from_secs(20);

/// What a night is made of.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Seed of everything that is left to chance.
    pub seed: u64,
    /// A fault on the k-th write of a replica, and what happens to the process.
    pub script: Vec<(&'static str, u64, Fault)>,
    /// Faults by chance, until [`Plan::chaos`] is over.
    pub chances: Chances,
    /// Faults of evictions alone, until then too.
    pub evictions: EvictionChances,
    /// What makes the drain hard.
    pub troubles: Vec<troubles::Trouble>,
    /// How long chance reigns after the record was made; zero is not at all.
    pub chaos: Duration,
    /// Crashes of whoever leads, and cuts of API servers, in a night under chance.
    pub havoc: bool,
    /// What befalls the service, the world and its people instead, one at a time.
    pub acts: Vec<FaultKind>,
}

/// What came of a night.
#[derive(Debug)]
pub struct Night {
    /// The end that the cluster and the record show.
    pub end: End,
    /// The invariants that were broken.
    pub violations: Vec<Violation>,
    /// Writes of each replica, those that never arrived among them.
    pub writes: BTreeMap<String, u64>,
    /// Hash over the whole trace.
    pub hash: u64,
    /// How often each kind of fault was hit.
    pub hits: BTreeMap<&'static str, u64>,
    /// How often each kind of trouble was hit.
    pub kinds: BTreeMap<FaultKind, u64>,
    /// Virtual seconds.
    pub seconds: i64,
    /// The record as it is at the end.
    pub record: Option<Maintenance>,
    /// The history, for further checks.
    pub history: History,
    /// Objects that the typed shell decoded.
    pub decoded: u64,
    /// What befell it, in order.
    pub befell: Vec<(Timestamp, FaultKind)>,
}

impl Night {
    /// The log, for those who look for a cause.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        self.history.steps.iter().map(crate::trace::Step::line).collect()
    }

    /// What a person would read of the record.
    #[must_use]
    pub fn story(&self) -> String {
        let status = self.record.as_ref().and_then(|record| record.status.clone()).unwrap_or_default();
        let mut lines: Vec<String> =
            status.timeline.iter().map(|entry| format!("{} {}: {}", entry.at, entry.phase, entry.message)).collect();
        lines.push(format!("{} {} {}", status.phase, status.outcome, status.message));
        lines.extend(
            status.findings.iter().map(|one| format!("{} {} {}: {}", one.gate, one.status, one.reason, one.message)),
        );
        lines.extend(status.warnings.iter().map(|warning| format!("warning: {warning}")));
        lines.extend(self.befell.iter().map(|(at, kind)| format!("{at} befell: {}", kind.name())));
        lines.join("\n")
    }
}

/// The parts of a night while it runs.
pub struct Stage {
    /// The cluster.
    pub cluster: Arc<Cluster>,
    /// The world.
    pub world: SharedWorld,
    /// How the service and people reach it.
    pub shell: Shell,
    /// What the typed shell has decoded.
    decoded: Arc<Decoded>,
    /// The settings of the service.
    pub settings: Arc<Settings>,
    /// What was delivered.
    pub mail: Mailbag,
    /// Whether the replicas run in pods of the cluster.
    pub seated: bool,
    /// The plan.
    pub plan: Plan,
    /// Where kured asks; none where nobody asks.
    pub doors: Option<doors::Doors>,
    /// What befell the night, in order.
    befell: Mutex<Vec<(Timestamp, FaultKind)>>,
}

impl Stage {
    fn new(shell: Shell, scenario: &Scenario, plan: &Plan) -> Self {
        let clock = Clock::starting_at(begin());
        let cluster = Cluster::new(plan.seed, clock, 3);
        let world = {
            let mut inner = cluster.lock();
            cluster::healthy(&mut inner, plan.seed, clock.now());
            (scenario.prepare)(&mut inner, clock.now());
            for trouble in &plan.troubles {
                trouble.prepare(&mut inner, clock.now());
            }
            for (name, node) in REPLICAS.iter().zip(scenario.seats.into_iter().flatten()) {
                inner.store.seed(seats::pod(name, Some(node)), clock.now());
            }
            let mut pace = cluster::pace();
            for trouble in &plan.troubles {
                trouble.pace(&mut pace);
            }
            World::new(plan.seed, pace, &inner.store, clock.now())
        };
        Self {
            cluster,
            world: Arc::new(Mutex::new(world)),
            shell,
            decoded: Arc::default(),
            settings: Arc::new(cluster::settings(scenario)),
            mail: Mailbag::default(),
            seated: scenario.seats.is_some(),
            plan: plan.clone(),
            doors: None,
            befell: Mutex::default(),
        }
    }

    /// Changes the world from outside.
    pub fn with<T>(&self, act: impl FnOnce(&mut World, &mut Inner, Timestamp) -> T) -> T {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut world, &mut self.cluster.lock(), self.cluster.clock().now())
    }

    /// An object as it is now.
    #[must_use]
    pub fn object(&self, key: &ObjectKey) -> Option<Arc<Value>> {
        self.cluster.lock().store.object(key).cloned()
    }

    /// The record; none if it is gone.
    #[must_use]
    pub fn record(&self) -> Option<Maintenance> {
        let found = self.object(&ObjectKey::new("maint.dev", "maintenances", "", RECORD))?;
        serde_json::from_value(Value::clone(&found)).ok()
    }

    /// The phase of the record; Pending without a status, empty without a record.
    #[must_use]
    pub fn phase(&self) -> String {
        let found = self.object(&ObjectKey::new("maint.dev", "maintenances", "", RECORD));
        found.map_or_else(String::new, |record| match object::text(&record, "/status/phase") {
            "" => "Pending".to_owned(),
            phase => phase.to_owned(),
        })
    }

    fn is_over(&self) -> bool {
        matches!(self.phase().as_str(), "Succeeded" | "Failed" | "Cancelled")
    }

    /// Waits until something is so, or the run is over. It looks often, so that what follows comes at the same point
    /// of a run.
    pub async fn until(&self, mut holds: impl FnMut(&Self) -> bool) {
        while !holds(self) && !self.is_over() {
            sleep(Duration::from_millis(250)).await;
        }
    }

    /// Waits for one of some phases.
    pub async fn until_phase(&self, phases: &[&str]) {
        self.until(|stage| phases.contains(&stage.phase().as_str())).await;
    }

    /// The run is over, told, and let go of.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        let Some(record) = self.object(&ObjectKey::new("maint.dev", "maintenances", "", RECORD)) else { return false };
        let list = |pointer: &str| record.at(pointer).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let outbox = list("/status/outbox");
        let told = !outbox.is_empty() && outbox.iter().all(|entry| entry.at("/deliveredTo/0").is_some());
        told && list("/metadata/finalizers").is_empty() && self.is_over()
    }
}

/// Plays one night of a scenario. Needs a tokio runtime of one thread whose time is paused.
pub async fn play(shell: Shell, scenario: &Scenario, plan: &Plan) -> Night {
    let stage = Arc::new(Stage::new(shell, scenario, plan));
    let initial = stage.cluster.lock().store.snapshot();
    {
        let mut inner = stage.cluster.lock();
        let chances = if plan.chaos.is_zero() { Chances::default() } else { plan.chances };
        inner.faults = Faults::seeded(plan.seed, chances, &REPLICAS);
        if !plan.chaos.is_zero() {
            inner.faults.on_evictions(plan.evictions);
        }
        for (client, k, fault) in &plan.script {
            inner.faults.on_write(client, *k, *fault);
        }
    }
    let begun = stage.cluster.clock().now();
    let script = async {
        sleep(WARM_UP).await;
        let replicas = REPLICAS.map(|name| replica::supervise(Arc::clone(&stage), name));
        let [first, second] = replicas;
        tokio::select! {
            biased;
            () = first => {}
            () = second => {}
            () = chaos(&stage) => {}
            () = scenario.play(&stage) => {}
        }
    };
    tokio::select! {
        biased;
        () = world::drive(Arc::clone(&stage.cluster), Arc::clone(&stage.world)) => {}
        () = script => {}
        () = sleep(LIMIT) => {}
    }
    conclude(&stage, initial, begun)
}

/// Crashes whoever leads and cuts servers off, then everything heals. Never ends.
async fn chaos(stage: &Stage) {
    if stage.plan.chaos.is_zero() {
        return std::future::pending().await;
    }
    let mut random = Random::new(stage.plan.seed ^ 0x5eed_cafe);
    let clock = stage.cluster.clock();
    let end = clock.now() + jiff::SignedDuration::try_from(stage.plan.chaos).unwrap_or_default();
    acts::reign(stage, &mut random, end).await;
    while stage.plan.havoc && clock.now() < end {
        sleep(Duration::from_secs(5 + random.below(60))).await;
        match random.below(4) {
            0 => {
                let client = REPLICAS[usize::try_from(random.below(2)).unwrap_or(0)];
                stage.cluster.lock().faults.stop(client);
            }
            1 | 2 => {
                let server = usize::try_from(random.below(3)).unwrap_or(0);
                let how = if random.below(2) == 0 { Cut::Refuse } else { Cut::Hang };
                stage.cluster.cut(server, how);
                sleep(Duration::from_secs(1 + random.below(25))).await;
                stage.cluster.cut(server, Cut::No);
            }
            _ => {
                let server = usize::try_from(random.below(3)).unwrap_or(0);
                stage.cluster.drop_watches(server);
            }
        }
    }
    let left = end.duration_since(clock.now());
    sleep(Duration::try_from(left).unwrap_or_default()).await;
    stage.cluster.lock().faults.heal();
    std::future::pending::<()>().await;
}

fn conclude(stage: &Stage, initial: invariants::Objects, begun: Timestamp) -> Night {
    let record = stage.record();
    let mut inner = stage.cluster.lock();
    let history = History { initial, steps: inner.trace.take() };
    let max_unavailable = usize::try_from(stage.settings.limits.max_unavailable).unwrap_or(usize::MAX);
    let mut rules = Rules { allow_self: stage.settings.run.allow_self, max_unavailable, ..Rules::default() };
    if !stage.plan.acts.is_empty() {
        rules.notice = NOTICE;
    }
    let violations = invariants::check_all(&rules, &history);
    Night {
        end: End::of(&inner, &history, stage.mail.kinds()),
        violations,
        writes: REPLICAS.iter().map(|name| ((*name).to_owned(), inner.faults.writes(name))).collect(),
        hash: inner.trace.hash(),
        hits: inner.faults.hits().clone(),
        kinds: troubles::met(&stage.plan.troubles, &history, inner.faults.kinds()),
        seconds: stage.cluster.clock().now().duration_since(begun).as_secs(),
        record,
        history,
        decoded: stage.decoded.count(),
        befell: stage.befell.lock().unwrap_or_else(PoisonError::into_inner).clone(),
    }
}

/// The uids of pods that were evicted by somebody's request.
fn evicted(history: &History) -> BTreeSet<String> {
    let evictions = history.steps.iter().filter(|step| step.subresource == "eviction");
    let taken = evictions.flat_map(|step| &step.changes).filter(|change| change.key.resource.resource == "pods");
    taken.filter_map(|change| change.before.as_ref()).map(|pod| object::uid(pod).to_owned()).collect()
}
