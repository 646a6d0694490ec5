//! Processes of the service: started, killed, stopped for a while, and started again as a Deployment would.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use maint_core::config::Settings;
use maint_core::report::delivery::Attempt;
use maint_engine::client::{ClientError, Failover};
use maint_engine::deliver::{EventPoster, Letter, Post};
use maint_engine::drive::{KubeRecords, Ports};
use maint_engine::execute::{KubeFenced, KubeReports};
use maint_engine::lead::{ClientSource, KubernetesLease};
use maint_engine::observe::{KubeReader, Observer};
use maint_engine::ports::Servers;
use maint_engine::request::Requests;
use maint_engine::runtime::{Env, TaskOwner};
use maint_engine::serve::{Health, Replica};

use super::{Stage, seats};
use crate::clock::sleep;
use crate::random::{FNV_OFFSET, fnv1a};
use crate::store::http::Cluster;

/// From the end of a process to the next one in its place.
const RESTART: Duration = Duration::from_secs(10);
/// How long a frozen process stays so: longer than its lease, and long enough for a successor to write.
const FROZEN: Duration = Duration::from_secs(75);

/// Clients for single API servers of the simulated cluster.
struct SimServers {
    cluster: Arc<Cluster>,
    client: &'static str,
}

impl Servers for SimServers {
    fn client(&self, address: &str, _: Option<&str>) -> Result<kube::Client, ClientError> {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let found = self.cluster.lock().servers.iter().position(|server| server.address == host);
        // Nobody listens at any other address.
        Ok(self.cluster.client(found.unwrap_or(usize::MAX), self.client))
    }
}

/// What was delivered, in order: the kinds of messages.
#[derive(Debug, Clone, Default)]
pub struct Mailbag(Arc<Mutex<Vec<(String, String)>>>);

impl Mailbag {
    /// The kinds, in the order in which their ids first came; a second delivery of one id counts once.
    #[must_use]
    pub fn kinds(&self) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = std::collections::BTreeSet::new();
        all.iter().filter(|(id, _)| seen.insert(id.clone())).map(|(_, kind)| kind.clone()).collect()
    }
}

impl Post for Mailbag {
    fn name(&self) -> &'static str {
        "mail"
    }

    async fn post(&self, letter: &Letter, _: Timestamp) -> Attempt {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((letter.entry.id.clone(), letter.entry.kind.clone()));
        Attempt::Delivered
    }
}

/// Starts a process; the owner is the process.
fn start(
    stage: &Stage,
    name: &'static str,
    node: Option<String>,
    life: u64,
) -> (TaskOwner, impl Future<Output = Option<maint_engine::serve::ReplicaEnd>> + use<>) {
    let cluster = &stage.cluster;
    let seed = fnv1a(fnv1a(FNV_OFFSET, name.as_bytes()), &(stage.plan.seed ^ (life << 32)).to_be_bytes());
    let (env, owner) = Env::simulated(cluster.clock().now(), seed);
    let (clock, settings) = (env.clock.clone(), Arc::clone(&stage.settings));
    // Each replica begins with another way.
    let count = cluster.lock().servers.len();
    let offset = usize::from(name != super::REPLICAS[0]);
    let order: Vec<usize> = (0..count).map(|index| (index + offset) % count).collect();
    let call = Failover::client(order.iter().map(|server| cluster.client(*server, name)).collect());
    let ways = order.iter().map(|server| way(Arc::clone(cluster), *server, name)).collect();
    let servers = SimServers { cluster: Arc::clone(cluster), client: name };
    let replica = Replica {
        env: env.clone(),
        settings: Arc::clone(&settings),
        ports: Arc::new(Ports {
            observe: Observer::new(
                KubeReader::new(call.clone(), clock.clone()),
                servers,
                Arc::clone(&settings),
                clock.clone(),
            ),
            fenced: KubeFenced::new(call.clone(), clock.clone(), Settings::clone(&settings)),
            records: KubeRecords::new(call.clone(), clock.clone()),
        }),
        lease: KubernetesLease::new(settings.namespace.clone(), ways),
        reports: Some(Arc::new(KubeReports::new(call.clone(), env.clock.clone()))),
        watches: Some(call.clone()),
        events: Some(EventPoster {
            requests: Requests::new(call, clock, settings.namespace.clone()),
            instance: name.to_owned(),
        }),
        ticks: None,
        receivers: vec![stage.mail.clone()],
        pod: name.to_owned(),
        node,
        health: Arc::new(Health::default()),
    };
    let running = env.tasks.spawn(replica.run());
    (owner, async move { running.await.ok().flatten().and_then(Result::ok) })
}

fn way(cluster: Arc<Cluster>, server: usize, name: &'static str) -> ClientSource {
    Box::new(move || Ok(cluster.client(server, name)))
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
        // A kill does not wait for anything; what a process that ended still had on its way ends with it.
        owner.crash().await;
        sleep(RESTART).await;
    }
}
