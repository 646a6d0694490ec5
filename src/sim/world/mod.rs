//! The rest of the cluster in virtual time: kubelets, scheduler, controllers, reboots.
//!
//! Pure reducers say what follows from a change (`observe`) and what a due event writes
//! ([`Due`]); this file only keeps the queue and applies the writes to the store. Equal times fire in the order in
//! which they were put in, so a night has one order.

mod controllers;
pub mod fixture;
mod nodes;
mod observe;
mod operator;
mod pods;

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::random::Random;
use crate::store::http::{Cluster, Inner};
use crate::store::{Context, DeleteOptions, ObjectKey, Store};
use crate::trace::Step;

/// Namespace of action pods.
pub const ACTION_NAMESPACE: &str = "maint-actions";
/// Annotation of a pod that reboots its node.
pub const ACTION_ANNOTATION: &str = "maint.dev/reboot-action";
/// Environment variable with the boot ID that the action pod expects.
pub const ACTION_BOOT_ID: &str = "EXPECTED_BOOT_ID";
/// Annotation: seconds from binding to Ready.
pub const START_ANNOTATION: &str = "sim.maint.dev/start-seconds";
/// Annotation: seconds from deletion to the end of the containers.
pub const STOP_ANNOTATION: &str = "sim.maint.dev/stop-seconds";

/// Annotation: seconds from deletion until somebody takes a pod's finalizers off; without it nobody ever does.
pub const FINALIZER_ANNOTATION: &str = "sim.maint.dev/finalizer-seconds";
/// Annotation of a pod that its kubelet does not end before the next boot of its node.
pub const STUCK_ANNOTATION: &str = "sim.maint.dev/stuck";
/// Annotation of a node whose member of etcd does not vote.
pub const LEARNER_ANNOTATION: &str = "sim.maint.dev/learner";
/// Annotation of a StatefulSet whose operator moves the primary: seconds from the cordon of its node to the move.
pub const SWITCHOVER_ANNOTATION: &str = "sim.maint.dev/switchover-seconds";
/// Label of such a set's pods.
pub const ROLE_LABEL: &str = "role";

/// How long things take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Renewal of node leases (kubelet: 10 s).
    pub lease_period: Duration,
    /// Heartbeat of node conditions (kubelet: 5 min).
    pub status_period: Duration,
    /// Round of the node lifecycle controller (5 s).
    pub monitor_period: Duration,
    /// Silence after which a node is Unknown (`node-monitor-grace-period`; 40 s, 50 s since 1.32).
    pub node_grace: Duration,
    /// From a cordon to its taint, from a pod to its node, from a lost pod to its successor.
    pub reaction: Duration,
    /// From Ready to the end of the unreachable taint (measured: 0 to 2 s).
    pub untaint_lag: Duration,
    /// Lag of the disruption controller.
    pub budget_lag: Duration,
    /// Lag of the EndpointSlice controller.
    pub slice_lag: Duration,
    /// From binding to Ready, unless the pod says otherwise.
    pub start: Duration,
    /// From deletion to the end, unless the pod says otherwise.
    pub stop: Duration,
    /// From an action pod's start to its reboot.
    pub action: Duration,
    /// How long a reboot takes.
    pub reboot: Duration,
    /// From an orderly shutdown to the end of the API server's entry in `default/kubernetes` (measured: 0.14 s).
    pub server_leave: Duration,
    /// The same after a crash (measured: 14.5 s).
    pub server_crash: Duration,
    /// From the node's return to its API server's.
    pub server_lag: Duration,
    /// Heartbeat of EtcdIsVoter (k3s: at most every 5 min, on a 15 s tick).
    pub etcd_period: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease_period: Duration::from_secs(10),
            status_period: Duration::from_secs(300),
            monitor_period: Duration::from_secs(5),
            node_grace: Duration::from_secs(40),
            reaction: Duration::from_millis(100),
            untaint_lag: Duration::from_millis(1800),
            budget_lag: Duration::from_millis(500),
            slice_lag: Duration::from_millis(300),
            start: Duration::from_secs(2),
            stop: Duration::from_secs(1),
            action: Duration::from_secs(1),
            reboot: Duration::from_secs(60),
            server_leave: Duration::from_millis(140),
            server_crash: Duration::from_millis(14_500),
            server_lag: Duration::from_millis(2500),
            etcd_period: Duration::from_secs(300),
        }
    }
}

/// Something that will happen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// A kubelet renews its lease.
    Kubelet(String),
    /// The node lifecycle controller looks at all nodes.
    Monitor,
    /// The etcd leader looks at its members.
    Etcd,
    /// A node comes back from a reboot.
    Boot(String),
    /// The API server of a node comes back.
    ServerUp(String),
    /// The EndpointSlice `default/kubernetes` follows the API servers.
    ServerSlice,
    /// The taints of a node follow its cordon and its condition.
    Taints(String),
    /// The scheduler looks at all pods without a node.
    Schedule,
    /// A pod with this uid becomes Ready.
    Start(ObjectKey, String),
    /// A pod with this uid ends.
    Stop(ObjectKey, String),
    /// Somebody takes the finalizers off a pod with this uid.
    Free(ObjectKey, String),
    /// An operator looks at its StatefulSet.
    Operator(ObjectKey),
    /// An action pod with this uid does what it is there for.
    Act(ObjectKey, String),
    /// A controller looks at its Deployment, ReplicaSet, StatefulSet or DaemonSet.
    Workload(ObjectKey),
    /// The disruption controller looks at all budgets.
    Budgets,
    /// The EndpointSlice controller looks at all Services.
    Slices,
}

/// What a reducer wants written.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// An object as it shall be.
    Put(ObjectKey, Value),
    /// A new object.
    Create(Value),
    /// The end of a pod: deletion with grace 0.
    End(ObjectKey),
    /// A graceful deletion.
    Delete(ObjectKey),
    /// A node's kubelet goes down or comes up.
    Kubelet(String, bool),
    /// The API servers of a node go down or come up.
    Servers(String, bool),
    /// Something more will happen after some time.
    Later(Duration, Due),
}

/// What the world knows beside the store.
#[derive(Debug, Clone)]
pub struct State {
    /// How long things take.
    pub settings: Settings,
    /// Nodes that are down.
    pub down: BTreeSet<String>,
    /// Nodes whose API server is down.
    pub servers_down: BTreeSet<String>,
    /// Action pods (by node) whose reboot is under way.
    pub acting: BTreeMap<String, ObjectKey>,
    /// Chance, for names and boot IDs.
    pub random: Random,
}

/// The world.
#[derive(Debug)]
pub struct World {
    state: State,
    queue: BTreeMap<(Timestamp, u64), Due>,
    waiting: BTreeSet<Due>,
    sequence: u64,
    cursor: u64,
}

impl World {
    /// A world over the objects that are in the store; everything in it is looked at first.
    #[must_use]
    pub fn new(seed: u64, settings: Settings, store: &Store, now: Timestamp) -> Self {
        let state = State {
            settings,
            down: BTreeSet::new(),
            servers_down: BTreeSet::new(),
            acting: BTreeMap::new(),
            random: Random::new(seed),
        };
        let mut world =
            Self { state, queue: BTreeMap::new(), waiting: BTreeSet::new(), sequence: 0, cursor: store.revision() };
        for due in [Due::Monitor, Due::Etcd, Due::ServerSlice] {
            world.later(now, Duration::ZERO, due);
        }
        for (key, object) in store.snapshot() {
            for (delay, due) in observe::follow(&key, None, Some(&object), &world.state.settings) {
                world.later(now, delay, due);
            }
        }
        world
    }

    /// How long things take; may be changed at any time.
    pub const fn settings(&mut self) -> &mut Settings {
        &mut self.state.settings
    }

    /// Whether a node is down.
    #[must_use]
    pub fn is_down(&self, node: &str) -> bool {
        self.state.down.contains(node)
    }

    /// When the next thing is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        self.queue.keys().next().map(|(at, _)| *at)
    }

    fn later(&mut self, now: Timestamp, delay: Duration, due: Due) {
        // One of a kind is enough: all reducers look at the state as it is when they fire.
        if self.waiting.insert(due.clone()) {
            let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
            let at = now.checked_add(delay).unwrap_or(Timestamp::MAX);
            self.sequence += 1;
            self.queue.insert((at, self.sequence), due);
        }
    }

    /// Takes note of what changed since the last time. A forgotten stretch of history makes it look at everything.
    fn observe(&mut self, store: &Store, now: Timestamp) {
        let changes = store.changes_after(self.cursor);
        self.cursor = store.revision();
        let follow: Vec<(Duration, Due)> = match changes {
            Some(changes) => changes
                .iter()
                .flat_map(|change| {
                    let (before, after) = (change.before.as_deref(), change.after.as_deref());
                    observe::follow(&change.key, before, after, &self.state.settings)
                })
                .collect(),
            None => store
                .snapshot()
                .iter()
                .flat_map(|(key, object)| observe::follow(key, None, Some(object), &self.state.settings))
                .collect(),
        };
        for (delay, due) in follow {
            self.later(now, delay, due);
        }
    }

    /// Observes, then lets the one next thing happen that is due by `now`. Answers whether there was one.
    pub fn step(&mut self, inner: &mut Inner, now: Timestamp) -> bool {
        self.observe(&inner.store, now);
        let Some(entry) = self.queue.first_entry() else { return false };
        if entry.key().0 > now {
            return false;
        }
        let due = entry.remove();
        self.waiting.remove(&due);
        let writes = fire(&mut self.state, &inner.store, &due, now);
        self.apply(inner, &due, writes, now);
        true
    }

    /// Reboots a node: down now, back with a new boot ID after `down`. Nothing happens to one that is down already.
    pub fn reboot(&mut self, inner: &mut Inner, node: &str, down: Duration, now: Timestamp) {
        if self.is_down(node) {
            return;
        }
        let due = Due::Boot(node.to_owned());
        let leave = self.state.settings.server_leave;
        let mut writes = nodes::power_off(&mut self.state, node, leave);
        writes.push(Write::Later(down, due.clone()));
        self.apply(inner, &due, writes, now);
    }

    /// Cuts a node's power for good, until [`Self::power_on`].
    pub fn power_off(&mut self, inner: &mut Inner, node: &str, now: Timestamp) {
        let crash = self.state.settings.server_crash;
        let writes = nodes::power_off(&mut self.state, node, crash);
        self.apply(inner, &Due::Boot(node.to_owned()), writes, now);
    }

    /// Brings a node back with a new boot ID.
    pub fn power_on(&mut self, node: &str, now: Timestamp) {
        self.later(now, Duration::ZERO, Due::Boot(node.to_owned()));
    }

    fn apply(&mut self, inner: &mut Inner, due: &Due, writes: Vec<Write>, now: Timestamp) {
        let before = inner.store.revision();
        for write in writes {
            match write {
                Write::Put(key, object) => {
                    inner.store.replace(&key, object);
                }
                Write::Create(object) => create(&mut inner.store, object, now),
                Write::End(key) => delete(&mut inner.store, &key, Some(0), now),
                Write::Delete(key) => delete(&mut inner.store, &key, None, now),
                Write::Kubelet(node, up) => {
                    if up {
                        inner.kubelets_down.remove(&node);
                    } else {
                        inner.kubelets_down.insert(node);
                    }
                }
                Write::Servers(node, up) => {
                    for server in inner.servers.iter_mut().filter(|server| server.node.as_deref() == Some(&*node)) {
                        server.down = !up;
                        server.stream += 1;
                    }
                    inner.store.wake_all();
                }
                Write::Later(delay, due) => self.later(now, delay, due),
            }
        }
        let changes = inner.store.changes_after(before).unwrap_or_default();
        if !changes.is_empty() {
            let mut step = Step::act("world", now);
            step.path = format!("{due:?}");
            step.changes = changes;
            inner.trace.push(step);
        }
    }
}

fn create(store: &mut Store, object: Value, now: Timestamp) {
    let Some(kind) = store.kinds().of_object(&object).cloned() else { return };
    let namespace = crate::store::object::namespace(&object).to_owned();
    // A refusal (a namespace that ends, a name that is taken) is found again by the next look of the controller.
    let _refused = store.create(&kind, &namespace, object, &Context::new(now, "kube-controller-manager"));
}

fn delete(store: &mut Store, key: &ObjectKey, grace_seconds: Option<i64>, now: Timestamp) {
    let Some(kind) = store.kinds().any_version(&key.resource).cloned() else { return };
    let options = DeleteOptions { grace_seconds, ..DeleteOptions::default() };
    // It may be gone already: then there is nothing to do.
    let _gone = store.delete(&kind, &key.namespace, &key.name, &options, &Context::new(now, "kubelet"));
}

fn fire(state: &mut State, store: &Store, due: &Due, now: Timestamp) -> Vec<Write> {
    match due {
        Due::Kubelet(node) => nodes::kubelet(state, store, node, now),
        Due::Monitor => nodes::monitor(state, store, now),
        Due::Etcd => nodes::etcd(state, store, now),
        Due::Boot(node) => nodes::boot(state, store, node, now),
        Due::ServerUp(node) => nodes::server_up(state, node),
        Due::ServerSlice => nodes::server_slice(state, store),
        Due::Taints(node) => nodes::taints(store, node, now),
        Due::Schedule => pods::schedule(store, now),
        Due::Start(key, uid) => pods::start(state, store, key, uid, now),
        Due::Stop(key, uid) => pods::stop(state, store, key, uid),
        Due::Free(key, uid) => pods::free(store, key, uid),
        Due::Operator(key) => operator::look(store, key),
        Due::Act(key, uid) => pods::act(state, store, key, uid),
        Due::Workload(key) => controllers::workload(state, store, key),
        Due::Budgets => controllers::budgets(store, now),
        Due::Slices => controllers::slices(store),
    }
}

/// A world that a driver and a test share.
pub type SharedWorld = Arc<Mutex<World>>;

/// Lets the world live beside the clients, for ever. It wakes at the next due thing and at every change.
pub async fn drive(cluster: Arc<Cluster>, world: SharedWorld) {
    let lock = || world.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let now = cluster.clock().now();
        let next = {
            let (mut world, mut inner) = (lock(), cluster.lock());
            while world.step(&mut inner, now) {}
            world.next_due()
        };
        let changed = poll_fn(|context| {
            let (world, mut inner) = (lock(), cluster.lock());
            if inner.store.revision() > world.cursor {
                return Poll::Ready(());
            }
            inner.store.wake_on_change(context.waker());
            Poll::Pending
        });
        match next {
            Some(next) => {
                tokio::select! {
                    biased;
                    () = changed => {}
                    () = tokio::time::sleep_until(cluster.clock().instant(next)) => {}
                }
            }
            None => changed.await,
        }
    }
}

#[cfg(test)]
mod tests;
