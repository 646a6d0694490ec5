//! One replica, whatever its world is made of: a cluster, or one in memory.

use std::sync::Arc;
use std::time::Duration;

use maint_core::config::Settings;
use maint_core::election::{Lost, Term};
use tokio::sync::watch;

use super::Health;
use crate::deliver::{Post, deliver};
use crate::drive::{Controller, Courier, Ended, Ports, Records, Watches};
use crate::execute::Fenced;
use crate::lead::{Candidacy, LeadError, Leadership, LeaseGuard, LeaseStore, Release, stand};
use crate::ports::Observe;
use crate::runtime::Env;

/// How long giving the Lease up may take at the end.
const RESIGN_LIMIT: Duration = Duration::from_secs(10);

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
    R: Records + 'static,
    L: LeaseStore,
    P: Post,
{
    /// Runs until the lease is lost, or the tasks are asked to stop.
    ///
    /// # Errors
    /// If the election's settings make no sense.
    pub async fn run(self) -> Result<ReplicaEnd, LeadError> {
        let Self { env, settings, ports, lease, watches, receivers, pod, node, health } = self;
        let names = receivers.iter().map(|receiver| receiver.name().to_owned()).collect();
        let (delivery, results) = deliver(&env, receivers);
        let courier = Courier::start(&env, delivery, names, results);
        let candidacy = stand(&env, lease, &settings.election, &pod)?;
        tell_known_term(&ports, &candidacy).await;
        let stopping = env.tasks.stopping();
        let mut leadership = candidacy.leadership();
        loop {
            let now = leadership.borrow_and_update().clone();
            health.set_leadership(&now);
            match now {
                Leadership::Leading(guard) => {
                    tracing::info!(term = guard.term().0, identity = candidacy.identity(), "Leading");
                    let controller = Controller {
                        ports: Arc::clone(&ports),
                        watches: watches.clone(),
                        env: env.clone(),
                        guard: guard.clone(),
                        settings: Arc::clone(&settings),
                        courier: Arc::clone(&courier),
                        stuck_on: node.clone(),
                    };
                    return Ok(match controller.run().await {
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
            }
        }
    }
}

/// A deleted Lease would begin at a low term again; records know better. Where they cannot be read yet, the fence of
/// each record still holds: a leader with a lower term finds itself overtaken.
async fn tell_known_term<O, F, R: Records>(ports: &Ports<O, F, R>, candidacy: &Candidacy) {
    match ports.records.list(true).await {
        Ok(records) => {
            let highest = records.iter().filter_map(|record| record.status.as_ref()).map(|status| status.term).max();
            if let Some(term) = highest {
                let _ = candidacy.known_term(Term(term)).await;
            }
        }
        Err(error) => tracing::warn!(%error, "could not read the terms in records"),
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
