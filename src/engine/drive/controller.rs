//! The controller: finds the records that need something done, starts a driver for each, and wakes them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use maint_core::api::names;
use maint_core::api::record::Maintenance;
use maint_core::config::Settings;
use maint_core::plan::{self, OwnSeat};
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::task::JoinHandle;

use super::aside::{Aside, Herald};
use super::evictions::Evictions;
use super::nudges::Nudges;
use super::outbox::{Courier, Outbox};
use super::pods::Pods;
use super::records::Records;
use super::watch::{Changed, Watched, Watches, watch};
use super::wishes::{Wishes, watch_annotations};
use super::{Driver, DriverEnd, Ports};
use crate::execute::Fenced;
use crate::lead::LeaseGuard;
use crate::ports::Observe;
use crate::runtime::Env;

/// How often the records are listed when no watch wakes the controller.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Pause after a list that failed.
const PAUSE: Duration = Duration::from_secs(5);

/// Why the controller ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The lease is lost: the process must end.
    LeaseLost,
    /// Another leader's term is in a record: ours is over.
    Overtaken,
    /// A run waits for another leader, since our own pod is on its node; no driver is at work any more.
    HandOver,
    /// The tasks were asked to stop; no driver is at work any more.
    Stopped,
}

/// Starts and wakes drivers while the lease holds.
pub struct Controller<O, F, R> {
    /// The world.
    pub ports: Arc<Ports<O, F, R>>,
    /// The watches that wake; none where nothing can be watched.
    pub watches: Option<Arc<dyn Watches>>,
    /// Wakes the controller now and then, beside its own clock; none in a simulated night. What it does when it is
    /// woken is the same as ever: no decision rests on a tick.
    pub ticks: Option<Arc<Notify>>,
    /// Time and tasks.
    pub env: Env,
    /// The lease.
    pub guard: LeaseGuard,
    /// The settings.
    pub settings: Arc<Settings>,
    /// Takes messages out.
    pub courier: Arc<Courier>,
    /// Where our own pod runs, where known.
    pub seat: Option<OwnSeat>,
    /// The leader's memory, and Events.
    pub aside: Aside,
}

/// Whom a watch wakes.
enum Woken {
    Record(String),
    All,
}

struct Running {
    wake: Arc<Notify>,
    handle: JoinHandle<Option<DriverEnd>>,
    watching: Option<JoinHandle<Option<()>>>,
}

impl<O, F, R> Controller<O, F, R>
where
    O: Observe + 'static,
    F: Fenced + 'static,
    R: Records + Wishes + 'static,
{
    /// Runs until the lease is lost, or the tasks are asked to stop. When it ends, none of its drivers is at work.
    pub async fn run(self) -> Ended {
        let lost = self.guard.child_token();
        let stopping = self.env.tasks.stopping();
        let (start, over) = (Arc::new(Mutex::new(())), Arc::new(Notify::new()));
        let mut running: BTreeMap<String, Running> = BTreeMap::new();
        let (changed, mut changes) = mpsc::channel::<Woken>(256);
        let watching = [self.watch_records(changed.clone()), self.watch_locks(changed.clone())];
        let wishing = self.watch_annotations();
        let mut finished_too = true;
        let ended = loop {
            let listed = tokio::select! {
                biased;
                () = lost.cancelled() => break Ended::LeaseLost,
                () = stopping.cancelled() => break Ended::Stopped,
                listed = self.ports.records.list(finished_too) => listed,
            };
            let wait = match listed {
                Ok(records) => {
                    finished_too = false;
                    self.start_drivers(&records, &mut running, &start, &over);
                    LOOK_EVERY
                }
                Err(error) => {
                    tracing::warn!(%error, "could not list the records");
                    PAUSE
                }
            };
            if let Some(ended) = reap(&mut running).await {
                break ended;
            }
            tokio::select! {
                biased;
                () = lost.cancelled() => break Ended::LeaseLost,
                () = stopping.cancelled() => break Ended::Stopped,
                Some(woken) = changes.recv() => {
                    let all = running.iter().filter(|(name, _)| match &woken {
                        Woken::Record(changed) => *name == changed,
                        Woken::All => true,
                    });
                    all.for_each(|(_, known)| known.wake.notify_one());
                }
                // Whoever waited for that run looks now, not at its next time.
                () = over.notified() => running.values().for_each(|known| known.wake.notify_one()),
                () = tick(self.ticks.as_deref()) => {}
                () = self.env.clock.sleep(wait) => {}
            }
        };
        for watching in watching.into_iter().flatten() {
            watching.abort();
        }
        wishing.abort();
        for driver in running.into_values() {
            if let Some(watching) = &driver.watching {
                watching.abort();
            }
            driver.handle.abort();
            // Giving the Lease up comes after the last guarded request, so the end is waited for.
            let _ = driver.handle.await;
        }
        ended
    }

    fn start_drivers(
        &self,
        records: &[Maintenance],
        running: &mut BTreeMap<String, Running>,
        start: &Arc<Mutex<()>>,
        over: &Arc<Notify>,
    ) {
        for record in records {
            let Some(name) = record.metadata.name.clone() else { continue };
            if running.contains_key(&name) || self.is_over(record) {
                continue;
            }
            let wake = Arc::new(Notify::new());
            let driver = Driver {
                name: name.clone(),
                ports: Arc::clone(&self.ports),
                guard: self.guard.clone(),
                clock: self.env.clock.clone(),
                settings: Arc::clone(&self.settings),
                wake: Arc::clone(&wake),
                start: Arc::clone(start),
                over: Arc::clone(over),
                outbox: Outbox::new(Arc::clone(&self.courier), name.clone(), Arc::clone(&wake)),
                seat: self.seat.clone(),
                herald: Herald::new(self.aside.clone()),
                evictions: Evictions::default(),
                pods: Pods::new(self.watches.clone(), record.spec.node_name.clone()),
                nudges: Nudges::default(),
                fresh: None,
                awaits: None,
            };
            let over = Arc::clone(over);
            let handle = self.env.tasks.spawn(async move {
                let end = driver.run().await;
                // Its record may be gone, or it may be to be taken out and started anew.
                over.notify_one();
                end
            });
            let watching = self.watch_node(&record.spec.node_name, Arc::clone(&wake));
            running.insert(name, Running { wake, handle, watching });
        }
    }

    /// Nothing is left to do or to tell.
    fn is_over(&self, record: &Maintenance) -> bool {
        let held_back =
            record.metadata.finalizers.as_ref().is_some_and(|all| all.iter().any(|one| one == plan::FINALIZER));
        plan::phase_of(record).is_terminal()
            && !held_back
            && self.courier.is_settled(record.status.as_ref(), self.env.clock.now())
    }

    fn watch_records(&self, changed: mpsc::Sender<Woken>) -> Option<JoinHandle<Option<()>>> {
        let watches = self.watches.clone()?;
        let clock = self.env.clock.clone();
        Some(self.env.tasks.spawn(async move {
            let mut known = BTreeMap::new();
            watch(&*watches, &clock, &Watched::Records, |record| {
                // What a driver itself wrote wakes nobody: it would look at the whole world once more after each write,
                // and where that look writes again, for ever.
                // kured's question is another replica's to write down.
                let Changed { name, asked, mut annotations, .. } = record;
                let seen = (asked, annotations.remove(names::ANNOTATION_ASKED));
                // A full queue means that the controller is awake already; the name comes again with the next watch.
                if known.get(&name) != Some(&seen) && changed.try_send(Woken::Record(name.clone())).is_ok() {
                    known.insert(name, seen);
                }
            })
            .await;
        }))
    }

    /// kured's lock is an annotation of its DaemonSet, under a key that its flags name: any annotation wakes. How soon a
    /// lock is seen is how soon `go` turns into no.
    fn watch_locks(&self, changed: mpsc::Sender<Woken>) -> Option<JoinHandle<Option<()>>> {
        let watches = self.watches.clone()?;
        let clock = self.env.clock.clone();
        Some(self.env.tasks.spawn(async move {
            let mut known = BTreeMap::new();
            watch(&*watches, &clock, &Watched::DaemonSets, |set| {
                let Changed { name, annotations, .. } = set;
                // What is seen for the first time is no change; the drivers look by themselves then.
                let same = known.get(&name).is_none_or(|before| *before == annotations);
                if same || changed.try_send(Woken::All).is_ok() {
                    known.insert(name, annotations);
                }
            })
            .await;
        }))
    }

    fn watch_annotations(&self) -> JoinHandle<Option<()>> {
        let (ports, settings, clock) = (Arc::clone(&self.ports), Arc::clone(&self.settings), self.env.clock.clone());
        self.env.tasks.spawn(async move {
            watch_annotations(&ports.observe, &ports.records, &settings, &clock).await;
        })
    }

    fn watch_node(&self, node: &str, wake: Arc<Notify>) -> Option<JoinHandle<Option<()>>> {
        let watches = self.watches.clone()?;
        let clock = self.env.clock.clone();
        let node = Watched::Node(node.to_owned());
        Some(self.env.tasks.spawn(async move {
            let mut known = None;
            watch(&*watches, &clock, &node, |changed| {
                let Changed { uid, gone, asked, annotations, node, .. } = changed;
                let seen = Some((uid, gone, asked, annotations, node));
                if known != seen {
                    known = seen;
                    wake.notify_one();
                }
            })
            .await;
        }))
    }
}

/// The next tick; never, where there are none.
async fn tick(ticks: Option<&Notify>) {
    match ticks {
        Some(ticks) => ticks.notified().await,
        None => std::future::pending().await,
    }
}

/// Takes finished drivers out; says so if one of them found that we no longer lead.
async fn reap(running: &mut BTreeMap<String, Running>) -> Option<Ended> {
    let finished: Vec<String> =
        running.iter().filter(|(_, driver)| driver.handle.is_finished()).map(|(name, _)| name.clone()).collect();
    for name in finished {
        let Some(driver) = running.remove(&name) else { continue };
        if let Some(watching) = driver.watching {
            watching.abort();
        }
        match driver.handle.await {
            Ok(Some(DriverEnd::Overtaken)) => return Some(Ended::Overtaken),
            Ok(Some(DriverEnd::LeaseLost) | None) => return Some(Ended::LeaseLost),
            Ok(Some(DriverEnd::HandOver)) => return Some(Ended::HandOver),
            Ok(Some(end)) => tracing::info!(record = name, ?end, "Finished"),
            // A panic ends that driver only; the next look starts it anew.
            Err(error) => tracing::error!(record = name, %error, "a driver broke"),
        }
    }
    None
}
