//! Processes of the service: started, killed, stopped for a while, and started again as a Deployment would.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use maint_core::api::record::OutboxEntry;
use maint_core::report::delivery::Attempt;
use maint_engine::deliver::{Letter, Post, redacted};
use maint_engine::drive::{Records, Wishes};
use maint_engine::execute::Fenced;
use maint_engine::lead::{LeadError, LeaseStore};
use maint_engine::ports::Observe;
use maint_engine::runtime::{Env, TaskOwner};
use maint_engine::serve::{Health, Replica, ReplicaEnd};
use secrecy::SecretString;
use tokio::task::JoinHandle;

use super::shell::{self, Connection};
use super::{Shell, Stage, seats};
use crate::clock::sleep;
use crate::random::{FNV_OFFSET, fnv1a};

/// From the end of a process to the next one in its place.
const RESTART: Duration = Duration::from_secs(10);
/// How long a frozen process stays so: longer than its lease, and long enough for a successor to write.
const FROZEN: Duration = Duration::from_secs(75);

/// The address of the receiver, which is a secret. Nobody listens there.
const ADDRESS: &str = "https://hooks.example/services/T0/B0/w9QmXy2LkP";
/// The part of it that must be written nowhere.
pub(super) const SECRET: &str = "w9QmXy2LkP";

/// What was delivered, in order: ids and kinds of messages.
#[derive(Debug, Clone, Default)]
pub struct Mailbag(Arc<Mutex<Mail>>);

#[derive(Debug, Default)]
struct Mail {
    delivered: Vec<OutboxEntry>,
    away: bool,
}

impl Mailbag {
    /// The kinds, in the order in which their ids first came; a second delivery of one id counts once.
    #[must_use]
    pub fn kinds(&self) -> Vec<String> {
        let mail = self.lock();
        let mut seen = std::collections::BTreeSet::new();
        mail.delivered.iter().filter(|one| seen.insert(one.id.clone())).map(|one| one.kind.clone()).collect()
    }

    /// All that was delivered, also what came twice: ids and texts.
    #[must_use]
    pub fn letters(&self) -> Vec<(String, String)> {
        self.lock().delivered.iter().map(|one| (one.id.clone(), one.text.clone())).collect()
    }

    /// The receiver goes away, or comes back.
    pub fn set_away(&self, away: bool) {
        self.lock().away = away;
    }

    fn lock(&self) -> MutexGuard<'_, Mail> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Post for Mailbag {
    fn name(&self) -> &'static str {
        "mail"
    }

    async fn post(&self, letter: &Letter, _: Timestamp) -> Attempt {
        let mut mail = self.lock();
        if mail.away {
            // As the real one tells of a connection that failed.
            let error = redacted(format!("{ADDRESS}: connection refused"), &SecretString::from(ADDRESS), None);
            return Attempt::Later { retry_after_seconds: None, error };
        }
        mail.delivered.push(letter.entry.clone());
        Attempt::Delivered
    }
}

/// Starts a process; the owner is the process.
fn start(
    stage: &Stage,
    name: &'static str,
    node: Option<String>,
    life: u64,
) -> (TaskOwner, impl Future<Output = Option<ReplicaEnd>> + use<>) {
    let cluster = &stage.cluster;
    let seed = fnv1a(fnv1a(FNV_OFFSET, name.as_bytes()), &(stage.plan.seed ^ (life << 32)).to_be_bytes());
    let (env, owner) = Env::simulated(cluster.clock().now(), seed);
    // Each replica begins with another way.
    let count = cluster.lock().servers.len();
    let offset = usize::from(name != super::REPLICAS[0]);
    let order: Vec<usize> = (0..count).map(|index| (index + offset) % count).collect();
    if let Some(doors) = &stage.doors {
        doors.open(stage, name, order.clone(), &env);
    }
    let running = match stage.shell {
        Shell::Api => run(stage, &env, (name, node), shell::api(stage, name, order, &env.clock)),
        Shell::Typed => run(stage, &env, (name, node), shell::typed(stage, name, order, &env.clock)),
    };
    (owner, async move { running.await.ok().flatten().and_then(Result::ok) })
}

fn run<O, F, R, L>(
    stage: &Stage,
    env: &Env,
    (name, node): (&'static str, Option<String>),
    connection: Connection<O, F, R, L>,
) -> JoinHandle<Option<Result<ReplicaEnd, LeadError>>>
where
    O: Observe + 'static,
    F: Fenced + 'static,
    R: Records + Wishes + 'static,
    L: LeaseStore,
{
    let replica = Replica {
        env: env.clone(),
        settings: Arc::clone(&stage.settings),
        ports: Arc::new(connection.ports),
        lease: connection.lease,
        reports: Some(connection.reports),
        watches: Some(connection.watches),
        events: Some(connection.events),
        ticks: None,
        receivers: vec![stage.mail.clone()],
        pod: name.to_owned(),
        node,
        health: Arc::new(Health::default()),
    };
    env.tasks.spawn(replica.run())
}

/// Keeps a replica running for ever: when its process is killed or ends, another takes its place; one that a script
/// stops goes on after a while.
pub(super) async fn supervise(stage: Arc<Stage>, name: &'static str) {
    let stop = stage.cluster.lock().faults.stop_signal(name);
    for life in 0.. {
        let node = seats::take(&stage, name).await;
        let (owner, running) = start(&stage, name, node, life);
        let pause = owner.pause();
        let paused = stage.cluster.lock().faults.freezes(name, pause.clone());
        tokio::pin!(running);
        loop {
            tokio::select! {
                biased;
                () = stop.notified() => {
                    tracing::info!(name, "killed");
                    break;
                }
                () = seats::lost(&stage, name) => {
                    tracing::info!(name, "its pod is gone");
                    break;
                }
                () = paused.notified() => {
                    tracing::info!(name, "frozen");
                    sleep(FROZEN).await;
                    tracing::info!(name, "thawed");
                    pause.resume();
                }
                end = &mut running => {
                    tracing::info!(name, ?end, "ended");
                    break;
                }
            }
        }
        if let Some(doors) = &stage.doors {
            doors.close(name);
        }
        // A kill does not wait for anything; what a process that ended still had on its way ends with it.
        owner.crash().await;
        sleep(RESTART).await;
    }
}
