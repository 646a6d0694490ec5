//! Nights in which kured reboots: one kured a node, a Service before the replicas, a window, and a report in the end.
//!
//! The replicas, their answers and their drivers are those of every night; kured is its double. Several nodes want a
//! reboot, and the night is over when nothing is at work any more and the report of the window is delivered.

pub mod chaos;
mod cluster;
mod end;
mod mischief;
pub mod scenario;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use maint_core::api::record::{Maintenance, MaintenanceReport};
use maint_core::config::Settings;
use serde_json::Value;

pub use chaos::Chaos;
pub(crate) use cluster::hold_lock;
pub use end::{Run, has_lock_of_ours};
pub use mischief::Mischief;
#[cfg(all(test, feature = "planted"))]
pub(crate) use mischief::cancel;
pub use scenario::{SCENARIOS, Scenario};

use super::doors::Doors;
use super::{Mailbag, Plan, REPLICAS, Shell, Stage, WARM_UP, begin, replica, seats};
use crate::clock::{Clock, sleep};
use crate::doubles::kured::settings::Settings as Flags;
use crate::doubles::shell::kured::Kureds;
use crate::faults::{Chances, Faults};
use crate::invariants::views::KURED_LOCK;
use crate::invariants::{self, History, Rules, Violation};
use crate::kinds::FaultKind;
use crate::store::http::{Cluster, Inner};
use crate::store::{ObjectKey, object};
use crate::trace::Step;
use crate::world::{self, World};

/// The nodes, each with a kured.
pub const NODES: [&str; 3] = ["n1", "n2", "n3"];
/// The clients that kureds are.
pub const KUREDS: [&str; 3] = ["kured-n1", "kured-n2", "kured-n3"];
/// A night that is not at rest by then has failed.
const LIMIT: Duration = Duration::from_secs(2 * 3600);
/// The oldest that facts may be when something is decided on them, and as much again for the write.
const NOTICE: SignedDuration = SignedDuration::from_secs(30);
/// How often it is looked whether the night is over.
const LOOK: Duration = Duration::from_secs(1);

/// What came of a night.
#[derive(Debug)]
pub struct KuredNight {
    /// Whether it came to rest.
    pub at_rest: bool,
    /// The records, in the order in which they were created.
    pub records: Vec<Maintenance>,
    /// The reports.
    pub reports: Vec<MaintenanceReport>,
    /// Kinds of messages that were delivered; each id once.
    pub delivered: Vec<String>,
    /// The invariants that were broken, those of a night at rest among them.
    pub violations: Vec<Violation>,
    /// How often each node booted.
    pub boots: BTreeMap<String, usize>,
    /// Nodes that are cordoned at the end.
    pub cordoned: Vec<String>,
    /// kured's lock at the end.
    pub lock: Option<String>,
    /// Grants that were given.
    pub grants: usize,
    /// Grants that were taken back.
    pub closings: usize,
    /// How often a kured took its lock.
    pub acquired: usize,
    /// What the kureds logged, by node.
    pub logs: BTreeMap<String, Vec<String>>,
    /// How the Service answered.
    pub met: BTreeMap<&'static str, u64>,
    /// What befell it by chance.
    pub befell: Vec<(Timestamp, Mischief)>,
    /// Nodes whose sentinel is still there.
    pub wanted: Vec<&'static str>,
    /// How often each kind of fault was hit.
    pub hits: BTreeMap<&'static str, u64>,
    /// How often each kind of trouble was hit.
    pub kinds: BTreeMap<FaultKind, u64>,
    /// Hash over the whole trace.
    pub hash: u64,
    /// Virtual seconds.
    pub seconds: i64,
    /// The history, for further checks.
    pub history: History,
}

/// Somebody who wipes the lock.
const GITOPS: &str = "gitops";

/// Changes a cluster before its night begins.
pub type Prepare<'a> = Box<dyn Fn(&mut Inner, Timestamp) + 'a>;

/// What a night begins with.
pub struct Setup<'a> {
    /// kured's flags.
    pub flags: Flags,
    /// The settings of the service.
    pub settings: Settings,
    /// When the night begins.
    pub begin: Timestamp,
    /// Changes the cluster before the night begins.
    pub prepare: Prepare<'a>,
    /// The nodes that the replicas' pods begin on; none where they run outside the cluster.
    pub seats: Option<[&'static str; 2]>,
    /// The nodes whose sentinel is there from the beginning.
    pub wants: &'a [&'static str],
}

/// The parts of a night while it runs.
pub struct Scene {
    /// What every night has.
    pub stage: Arc<Stage>,
    /// The kureds.
    pub kureds: Arc<Kureds<Doors>>,
    /// kured's `--concurrency`.
    concurrency: usize,
    /// What befell the night by chance.
    befell: Mutex<Vec<(Timestamp, Mischief)>>,
}

impl Scene {
    /// Everything stands ready, and nothing moves yet.
    pub(crate) fn new(shell: Shell, setup: Setup<'_>, plan: &Plan) -> Self {
        let Setup { flags, settings, begin, prepare, seats, wants } = setup;
        let clock = Clock::starting_at(begin);
        let cluster = Cluster::new(plan.seed, clock, NODES.len());
        let world = {
            let mut inner = cluster.lock();
            super::cluster::healthy(&mut inner, plan.seed, clock.now());
            inner.store.seed(cluster::daemon_set(&flags), clock.now());
            prepare(&mut inner, clock.now());
            for (name, node) in REPLICAS.iter().zip(seats.into_iter().flatten()) {
                inner.store.seed(seats::pod(name, Some(node)), clock.now());
            }
            World::new(plan.seed, super::cluster::pace(), &inner.store, clock.now())
        };
        let (world, doors) = (Arc::new(Mutex::new(world)), Doors::new(Arc::clone(&cluster), plan.seed));
        let concurrency = flags.concurrency;
        let kureds = Kureds::new(Arc::clone(&cluster), Arc::clone(&world), &NODES, flags, doors.clone(), plan.seed);
        for node in wants {
            kureds.require(node, true);
        }
        let stage = Stage {
            cluster,
            world,
            shell,
            decoded: Arc::default(),
            settings: Arc::new(settings),
            mail: Mailbag::default(),
            seated: seats.is_some(),
            plan: plan.clone(),
            doors: Some(doors),
            befell: Mutex::default(),
        };
        Self { stage: Arc::new(stage), kureds, concurrency, befell: Mutex::default() }
    }

    fn tally(&self, kind: Mischief) {
        let now = self.stage.cluster.clock().now();
        self.befell.lock().unwrap_or_else(PoisonError::into_inner).push((now, kind));
    }

    /// All records, in the order in which they were created.
    #[must_use]
    pub fn records(&self) -> Vec<Maintenance> {
        let inner = self.stage.cluster.lock();
        let all = inner.store.all("maint.dev", "maintenances");
        let mut found: Vec<Maintenance> =
            all.filter_map(|one| serde_json::from_value(Value::clone(one)).ok()).collect();
        drop(inner);
        let place = |one: &Maintenance| (one.metadata.creation_timestamp.clone(), one.metadata.name.clone());
        found.sort_by_key(place);
        found
    }

    /// The record of a node that was created last.
    #[must_use]
    pub fn record(&self, node: &str) -> Option<Maintenance> {
        self.records().into_iter().rfind(|record| record.spec.node_name == node)
    }

    /// kured's lock.
    #[must_use]
    pub fn lock(&self) -> Option<String> {
        let found = self.stage.object(&cluster::daemon_set_key())?;
        object::annotation(&found, KURED_LOCK).map(str::to_owned)
    }

    /// Whether kured's lock names a node.
    #[must_use]
    pub fn names(&self, node: &str) -> bool {
        self.lock().is_some_and(|text| text.contains(&format!("\"nodeID\":\"{node}\"")))
    }

    /// Somebody writes kured's lock, or takes it away.
    pub fn write_lock(&self, by: &str, text: Option<&str>) {
        let now = self.stage.cluster.clock().now();
        let mut inner = self.stage.cluster.lock();
        let before = inner.store.revision();
        inner.store.edit(&cluster::daemon_set_key(), |set| match text {
            Some(text) => object::annotate(set, KURED_LOCK, text),
            None => {
                if let Some(all) = set.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
                    all.remove(KURED_LOCK);
                }
            }
        });
        let mut step = Step::act(by, now);
        "kured's lock".clone_into(&mut step.path);
        step.changes = inner.store.changes_after(before).unwrap_or_default();
        inner.trace.push(step);
    }

    /// Waits until something is so. A night that never gets there ends at its limit, and is not at rest.
    pub async fn until(&self, mut holds: impl FnMut(&Self) -> bool) {
        while !holds(self) {
            sleep(Duration::from_millis(100)).await;
        }
    }

    fn reports(&self) -> Vec<MaintenanceReport> {
        let inner = self.stage.cluster.lock();
        let all = inner.store.all("maint.dev", "maintenancereports");
        all.filter_map(|one| serde_json::from_value(Value::clone(one)).ok()).collect()
    }
}

/// Plays one night of a scenario. Needs a tokio runtime of one thread whose time is paused.
pub async fn play(shell: Shell, scenario: &Scenario, plan: &Plan) -> KuredNight {
    let scene = Scene::new(shell, scenario.setup(), plan);
    night(&scene, plan, scenario.play(&scene)).await
}

/// Plays the night of a seed, as [`play`] does.
pub async fn play_by_chance(shell: Shell, chaos: &Chaos) -> KuredNight {
    let scene = Scene::new(shell, chaos.setup(), &chaos.plan);
    night(&scene, &chaos.plan, chaos.play(&scene)).await
}

async fn night(scene: &Scene, plan: &Plan, script: impl Future<Output = ()>) -> KuredNight {
    let opening = scene.open(plan);
    let at_rest = tokio::select! {
        biased;
        () = scene.live(script) => true,
        () = sleep(LIMIT) => false,
    };
    // What answers belongs to processes that are gone now.
    for name in REPLICAS {
        scene.stage.doors.iter().for_each(|doors| doors.close(name));
    }
    scene.conclude(opening, at_rest)
}

/// What a night began with.
pub(crate) struct Opening {
    initial: invariants::Objects,
    begun: Timestamp,
}

impl Scene {
    /// Sets the faults of the plan, and takes down what the night begins with.
    pub(crate) fn open(&self, plan: &Plan) -> Opening {
        let begun = self.stage.cluster.clock().now();
        let mut inner = self.stage.cluster.lock();
        let chances = if plan.chaos.is_zero() { Chances::default() } else { plan.chances };
        let clients: Vec<&str> = REPLICAS.into_iter().chain(KUREDS).collect();
        inner.faults = Faults::seeded(plan.seed, chances, &clients);
        for (client, k, fault) in &plan.script {
            inner.faults.on_write(client, *k, *fault);
        }
        Opening { initial: inner.store.snapshot(), begun }
    }

    /// Lets the world, the kureds and, when the world has come to rest, the replicas live until the script ends.
    pub(crate) async fn live(&self, script: impl Future<Output = ()>) {
        let replicas = async {
            sleep(WARM_UP).await;
            let [first, second] = REPLICAS.map(|name| replica::supervise(Arc::clone(&self.stage), name));
            tokio::select! {
                biased;
                () = first => {}
                () = second => {}
                () = script => {}
            }
        };
        // Only the script ever ends.
        tokio::select! {
            biased;
            () = world::drive(Arc::clone(&self.stage.cluster), Arc::clone(&self.stage.world)) => {}
            () = Arc::clone(&self.kureds).run() => {}
            () = replicas => {}
        }
    }

    /// What came of it so far; the steps of the trace are taken.
    pub(crate) fn conclude(&self, opening: Opening, at_rest: bool) -> KuredNight {
        let Opening { initial, begun } = opening;
        let stage = &self.stage;
        let (records, reports, lock) = (self.records(), self.reports(), self.lock());
        let logs = NODES.map(|node| (node.to_owned(), self.kureds.log(node))).into();
        let met = stage.doors.as_ref().map(Doors::met).unwrap_or_default();
        let mut inner = stage.cluster.lock();
        let history = History { initial, steps: inner.trace.take(), mail: stage.mail.letters() };
        let rules = Rules {
            kured_asks: true,
            notice: NOTICE,
            secrets: vec![replica::SECRET.to_owned()],
            ..Rules::of(&stage.settings, begun)
        };
        let mut violations = invariants::check_all(&rules, &history);
        violations.extend(invariants::check_rest(&rules, &history));
        let cordoned = inner.store.all("", "nodes").filter(|node| invariants::views::is_cordoned(node));
        KuredNight {
            at_rest,
            records,
            reports,
            delivered: stage.mail.kinds(),
            violations,
            boots: NODES.map(|node| (node.to_owned(), end::boots(&history, node))).into(),
            cordoned: cordoned.map(|node| object::name(node).to_owned()).collect(),
            lock,
            grants: end::begun(&history, "/status/intent"),
            closings: end::begun(&history, "/status/kured/closing"),
            acquired: end::acquired(&history),
            logs,
            met,
            befell: self.befell.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            wanted: NODES.into_iter().filter(|node| self.kureds.is_required(node)).collect(),
            hits: inner.faults.hits().clone(),
            kinds: inner.faults.kinds().clone(),
            hash: inner.trace.hash(),
            seconds: stage.cluster.clock().now().duration_since(begun).as_secs(),
            history,
        }
    }
}

/// The key of a record.
#[must_use]
pub fn record_key(name: &str) -> ObjectKey {
    ObjectKey::new("maint.dev", "maintenances", "", name)
}

/// Whoever shares the world with a panic goes on.
fn with_world<T>(scene: &Scene, act: impl FnOnce(&mut World) -> T) -> T {
    act(&mut scene.stage.world.lock().unwrap_or_else(PoisonError::into_inner))
}
