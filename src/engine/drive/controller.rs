//! The controller: finds the records that need something done, starts a driver for each, and wakes them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use maint_core::api::record::Maintenance;
use maint_core::config::Settings;
use maint_core::plan;
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::task::JoinHandle;

use super::outbox::{Courier, Outbox};
use super::records::Records;
use super::watch::{Changed, Watched, Watches, watch};
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
    /// The tasks were asked to stop; no driver is at work any more.
    Stopped,
}

/// Starts and wakes drivers while the lease holds.
pub struct Controller<O, F, R> {
    /// The world.
    pub ports: Arc<Ports<O, F, R>>,
    /// The watches that wake; none where nothing can be watched.
    pub watches: Option<Arc<dyn Watches>>,
    /// Time and tasks.
    pub env: Env,
    /// The lease.
    pub guard: LeaseGuard,
    /// The settings.
    pub settings: Arc<Settings>,
    /// Takes messages out.
    pub courier: Arc<Courier>,
    /// The node that our own pod runs on, where no other replica could take over.
    pub stuck_on: Option<String>,
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
    R: Records + 'static,
{
    /// Runs until the lease is lost, or the tasks are asked to stop. When it ends, none of its drivers is at work.
    pub async fn run(self) -> Ended {
        let lost = self.guard.child_token();
        let stopping = self.env.tasks.stopping();
        let start = Arc::new(Mutex::new(()));
        let mut running: BTreeMap<String, Running> = BTreeMap::new();
        let (changed, mut changes) = mpsc::channel::<String>(256);
        let watching = self.watch_records(changed);
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
                    self.start_drivers(&records, &mut running, &start);
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
                Some(name) = changes.recv() => {
                    if let Some(known) = running.get(&name) {
                        known.wake.notify_one();
                    }
                }
                () = self.env.clock.sleep(wait) => {}
            }
        };
        if let Some(watching) = watching {
            watching.abort();
        }
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

    fn start_drivers(&self, records: &[Maintenance], running: &mut BTreeMap<String, Running>, start: &Arc<Mutex<()>>) {
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
                outbox: Outbox::new(Arc::clone(&self.courier), name.clone(), Arc::clone(&wake)),
                stuck_on: self.stuck_on.clone(),
            };
            let handle = self.env.tasks.spawn(driver.run());
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

    fn watch_records(&self, changed: mpsc::Sender<String>) -> Option<JoinHandle<Option<()>>> {
        let watches = self.watches.clone()?;
        let clock = self.env.clock.clone();
        Some(self.env.tasks.spawn(async move {
            let mut known: BTreeMap<String, (i64, bool)> = BTreeMap::new();
            watch(&*watches, &clock, &Watched::Records, |record| {
                // What a driver itself wrote wakes nobody: it would look at the whole world once more after each write,
                // and where that look writes again, for ever.
                let Changed { name, asked } = record;
                // A full queue means that the controller is awake already; the name comes again with the next watch.
                if known.get(&name) != Some(&asked) && changed.try_send(name.clone()).is_ok() {
                    known.insert(name, asked);
                }
            })
            .await;
        }))
    }

    fn watch_node(&self, node: &str, wake: Arc<Notify>) -> Option<JoinHandle<Option<()>>> {
        let watches = self.watches.clone()?;
        let clock = self.env.clock.clone();
        let node = Watched::Node(node.to_owned());
        Some(self.env.tasks.spawn(async move {
            watch(&*watches, &clock, &node, |_| wake.notify_one()).await;
        }))
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
            Ok(Some(end)) => tracing::info!(record = name, ?end, "Finished"),
            // A panic ends that driver only; the next look starts it anew.
            Err(error) => tracing::error!(record = name, %error, "a driver broke"),
        }
    }
    None
}
