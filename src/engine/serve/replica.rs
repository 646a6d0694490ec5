//! One replica, whatever its world is made of: a cluster, or one in memory.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use maint_core::api::SourceId;
use maint_core::config::Settings;
use maint_core::election::{Lost, Term};
use maint_core::plan::{self, OwnSeat};
use maint_core::state;
use tokio::sync::{Notify, watch};

use super::Health;
use crate::deliver::{Events, Post, Tell, deliver};
use crate::drive::{Aside, Controller, Courier, Ended, Keeper, Ports, Records, Reporter, Watches, Wishes};
use crate::execute::{Fenced, Reports};
use crate::lead::{Candidacy, LeadError, Leadership, LeaseGuard, LeaseStore, Release, stand};
use crate::ports::{Observe, Wanted};
use crate::runtime::Env;

/// How long giving the Lease up may take at the end.
const RESIGN_LIMIT: Duration = Duration::from_secs(10);
/// How often a follower looks whether a run on its own node is over.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// A leader that got the Lease back while it left it to others does not hand over again for so long, in seconds.
const HAND_OVER_PAUSE: i64 = 600;

/// A replica and its world.
pub struct Replica<O, F, R, L, P> {
    /// Time, tasks, randomness.
    pub env: Env,
    /// The settings.
    pub settings: Arc<Settings>,
    /// Facts, fenced writes, records.
    pub ports: Arc<Ports<O, F, R>>,
    /// The Lease.
    pub lease: L,
    /// The watches that wake; none where nothing can be watched.
    pub watches: Option<Arc<dyn Watches>>,
    /// Reports of windows; none where nobody makes them.
    pub reports: Option<Arc<dyn Reports>>,
    /// Posts Events while it leads; none where nobody takes them.
    pub events: Option<Arc<dyn Tell>>,
    /// Wakes the controller now and then; none where only its own clock does.
    pub ticks: Option<Arc<Notify>>,
    /// Receivers of messages.
    pub receivers: Vec<P>,
    /// Name of our own pod, or of this process.
    pub pod: String,
    /// The node that our own pod runs on, where known.
    pub node: Option<String>,
    /// What health checks are answered from.
    pub health: Arc<Health>,
}

/// How a replica ended. The process ends with it: what it still had on its way must not outlive its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplicaEnd {
    /// The lease was lost.
    Lost(Lost),
    /// A record carries a higher term than ours.
    Overtaken,
    /// It was asked to stop; the Lease was given up, or runs out by itself.
    Stopped(Option<Release>),
    /// The election's task is gone.
    ElectionBroke,
}

impl<O, F, R, L, P> Replica<O, F, R, L, P>
where
    O: Observe + 'static,
    F: Fenced + 'static,
    R: Records + Wishes + 'static,
    L: LeaseStore,
    P: Post,
{
    /// Runs until the lease is lost, or the tasks are asked to stop.
    ///
    /// # Errors
    /// If the election's settings make no sense.
    pub async fn run(self) -> Result<ReplicaEnd, LeadError> {
        let Self { env, settings, ports, lease, watches, reports, events, ticks, receivers, pod, node, health } = self;
        let names = receivers.iter().map(|receiver| receiver.name().to_owned()).collect();
        let (delivery, results) = deliver(&env, receivers);
        let courier = Courier::start(&env, delivery, names, results);
        let candidacy = stand(&env, lease, &settings.election, &pod)?;
        let office = Office { env: env.clone(), settings, ports, watches, reports, events, ticks, courier };
        tell_known_term(&office.ports, &office.settings, &candidacy).await;
        let stopping = env.tasks.stopping();
        let mut leadership = candidacy.leadership();
        let mut abstaining = false;
        let mut look_at = env.clock.instant();
        loop {
            let now = leadership.borrow_and_update().clone();
            health.set_leadership(&now);
            match now {
                Leadership::Leading(guard) => {
                    tracing::info!(term = guard.term().0, identity = candidacy.identity(), "Leading");
                    let seat = node.clone().map(|node| seat(node, abstaining, env.clock.now()));
                    return Ok(match office.lead(&guard, seat).await {
                        Ended::HandOver => {
                            abstaining = hand_over(&env, &candidacy).await;
                            continue;
                        }
                        Ended::Stopped => resign(&env, &candidacy).await,
                        Ended::Overtaken => ReplicaEnd::Overtaken,
                        Ended::LeaseLost => why_lost(&mut leadership, &guard).await,
                    });
                }
                Leadership::Lost(lost) => return Ok(ReplicaEnd::Lost(lost)),
                Leadership::Resigned => return Ok(ReplicaEnd::Stopped(None)),
                Leadership::Unknown | Leadership::Following { .. } => {}
            }
            tokio::select! {
                biased;
                () = stopping.cancelled() => return Ok(resign(&env, &candidacy).await),
                changed = leadership.changed() => if changed.is_err() {
                    return Ok(ReplicaEnd::ElectionBroke);
                },
                () = env.clock.sleep_until(look_at), if node.is_some() => {
                    look_at = env.clock.instant() + LOOK_EVERY;
                    abstaining = stay_away(&office.ports, &candidacy, node.as_deref(), abstaining).await;
                }
            }
        }
    }
}

/// What a leader works with.
struct Office<O, F, R> {
    env: Env,
    settings: Arc<Settings>,
    ports: Arc<Ports<O, F, R>>,
    watches: Option<Arc<dyn Watches>>,
    reports: Option<Arc<dyn Reports>>,
    events: Option<Arc<dyn Tell>>,
    ticks: Option<Arc<Notify>>,
    courier: Arc<Courier>,
}

impl<O, F, R> Office<O, F, R>
where
    O: Observe + 'static,
    F: Fenced + 'static,
    R: Records + Wishes + 'static,
{
    /// Leads; when it ends, nothing that rests on the lease is at work any more.
    async fn lead(&self, guard: &LeaseGuard, seat: Option<OwnSeat>) -> Ended {
        let (events, telling) = match self.events.clone() {
            Some(poster) => {
                let (events, task) = Events::start(&self.env, poster);
                (events, Some(task))
            }
            None => (Events::nowhere(), None),
        };
        let aside = Aside { events, notes: Arc::default() };
        let keeper = Keeper {
            ports: Arc::clone(&self.ports),
            clock: self.env.clock.clone(),
            guard: guard.clone(),
            settings: Arc::clone(&self.settings),
            aside: aside.clone(),
        };
        let keeping = self.env.tasks.spawn(keeper.run());
        let reporting = self.reports.clone().map(|reports| {
            let reporter = Reporter {
                ports: Arc::clone(&self.ports),
                reports,
                guard: guard.clone(),
                clock: self.env.clock.clone(),
                settings: Arc::clone(&self.settings),
                courier: Arc::clone(&self.courier),
            };
            self.env.tasks.spawn(reporter.run())
        });
        let controller = Controller {
            ports: Arc::clone(&self.ports),
            watches: self.watches.clone(),
            ticks: self.ticks.clone(),
            env: self.env.clone(),
            guard: guard.clone(),
            settings: Arc::clone(&self.settings),
            courier: Arc::clone(&self.courier),
            seat,
            aside,
        };
        let ended = controller.run().await;
        for task in telling.into_iter().chain(reporting).chain([keeping]) {
            task.abort();
            let _ = task.await;
        }
        ended
    }
}

/// Our own seat. Who got the Lease back because nobody else took it tries again only after a while.
fn seat(node: String, abstained: bool, now: Timestamp) -> OwnSeat {
    let pause = SignedDuration::from_secs(if abstained { HAND_OVER_PAUSE } else { 0 });
    OwnSeat { node, hand_over_from: now.checked_add(pause).unwrap_or(Timestamp::MAX) }
}

/// Gives the Lease up and leaves it to others; one that nobody renews is taken all the same.
async fn hand_over(env: &Env, candidacy: &Candidacy) -> bool {
    let abstaining = candidacy.abstain(true).await.is_ok();
    let released = env.clock.timeout(RESIGN_LIMIT, candidacy.release()).await;
    tracing::info!(?released, "handed over: a run on our own node needs another leader");
    abstaining
}

/// Leaves a released Lease to others while a run on our own node is not over. Where the records cannot be read it stays
/// as it is.
async fn stay_away<O, F, R: Records>(
    ports: &Ports<O, F, R>,
    candidacy: &Candidacy,
    node: Option<&str>,
    before: bool,
) -> bool {
    let (Some(node), Ok(records)) = (node, ports.records.list(false).await) else { return before };
    let now = plan::abstains(&records, node);
    if now != before && candidacy.abstain(now).await.is_err() {
        return before;
    }
    now
}

/// A deleted Lease would begin at a low term again; records and the leader's memory know better. Where they cannot be
/// read yet, the fence of each record still holds: a leader with a lower term finds itself overtaken.
async fn tell_known_term<O: Observe, F, R: Records>(
    ports: &Ports<O, F, R>,
    settings: &Settings,
    candidacy: &Candidacy,
) {
    let wanted = Wanted { sources: BTreeSet::from([SourceId::ConfigMaps]), target: None, every_pair: false };
    let remembered = state::term_of(&ports.observe.observe(&wanted).await, settings);
    let in_records = match ports.records.list(true).await {
        Ok(records) => records.iter().filter_map(|record| record.status.as_ref()).map(|status| status.term).max(),
        Err(error) => {
            tracing::warn!(%error, "could not read the terms in records");
            None
        }
    };
    if let Some(highest) = remembered.max(in_records) {
        let _ = candidacy.known_term(Term(highest)).await;
    }
}

async fn resign(env: &Env, candidacy: &Candidacy) -> ReplicaEnd {
    let released = env.clock.timeout(RESIGN_LIMIT, candidacy.resign()).await;
    ReplicaEnd::Stopped(released.ok().and_then(Result::ok))
}

async fn why_lost(leadership: &mut watch::Receiver<Leadership>, guard: &LeaseGuard) -> ReplicaEnd {
    guard.ended().await;
    loop {
        match &*leadership.borrow_and_update() {
            Leadership::Lost(lost) => return ReplicaEnd::Lost(lost.clone()),
            Leadership::Resigned => return ReplicaEnd::Stopped(None),
            _ => {}
        }
        if leadership.changed().await.is_err() {
            return ReplicaEnd::ElectionBroke;
        }
    }
}
