//! A replica on a real cluster.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use maint_core::api::SourceId;
use maint_core::config::{NotifyError, Settings};
use tokio::sync::Notify;

use super::{ApiQuestions, Health, HttpFetch, Questions, Replica, ReplicaEnd, Ticks, health_routes, listen, routes};
use crate::client::{Access, AccessOptions, ClientError, Failover};
use crate::deliver::{EventPoster, receivers};
use crate::drive::{KubeRecords, KubeWatches, Ports};
use crate::execute::{KubeFenced, KubeReports, RECORDS};
use crate::lead::{ClientSource, KubernetesLease, LeadError};
use crate::observe::{KubeReader, Observer, expected};
use crate::ports::{Observe as _, Wanted};
use crate::probe::ProbeServers;
use crate::request::Requests;
use crate::runtime::{Env, TaskOwner};

/// How long a stop may take.
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// What the service is told.
#[derive(Debug, Clone)]
pub struct LiveOptions {
    /// Which cluster.
    pub access: AccessOptions,
    /// Where kured and health checks are answered.
    pub listen: SocketAddr,
    /// Name of our own pod.
    pub pod: String,
    /// Name of the node that it runs on, where known.
    pub node: Option<String>,
}

/// The service could not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The cluster cannot be asked.
    #[error("{cause}\n  what helps: {}", cause.remedy())]
    Client {
        /// Why.
        #[from]
        cause: ClientError,
    },
    /// A receiver is not configured in full.
    #[error(transparent)]
    Notify(#[from] NotifyError),
    /// The election's settings make no sense.
    #[error(transparent)]
    Election(#[from] LeadError),
    /// The address of the health checks is taken.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: std::io::Error,
    },
    /// The CRDs are not there.
    #[error("the resource {RECORDS} is not there\n  what helps: maint crds | kubectl apply -f -")]
    NoCrds,
}

/// Serves until the lease is lost or `stop` ends.
///
/// # Errors
/// If the service cannot start.
pub async fn serve(
    env: Env,
    owner: TaskOwner,
    settings: Settings,
    options: LiveOptions,
    stop: impl Future<Output = ()>,
) -> Result<ReplicaEnd, ServeError> {
    let settings = Arc::new(settings);
    let access = Access::load(&options.access).await?;
    let ways = ways(&env, &access, &settings).await?;
    let questions = {
        // A rotation of its own: a look that is given up in time must not move the driver's requests to another way.
        let call = Failover::client(ways.iter().filter_map(|way| client_of(&access, way).ok()).collect());
        let (clock, namespace) = (env.clock.clone(), settings.namespace.clone());
        let reader = KubeReader::new(call.clone(), clock.clone());
        let requests = Requests::new(call, clock.clone(), namespace.clone());
        let port = ApiQuestions::new(reader, requests, clock, namespace);
        Questions::new(port, HttpFetch::default(), Arc::clone(&settings), env.clone())
    };
    let call = Failover::client(ways.iter().filter_map(|way| client_of(&access, way).ok()).collect());
    let clock = env.clock.clone();
    let probes = ProbeServers::new(&access, &options.access.probe, call.clone(), clock.clone(), &settings.namespace);
    let sources = ways.into_iter().map(|way| source_of(access.clone(), way)).collect();
    let replica = Replica {
        env: env.clone(),
        settings: Arc::clone(&settings),
        ports: Arc::new(Ports {
            observe: Observer::new(
                KubeReader::new(call.clone(), clock.clone()),
                probes,
                Arc::clone(&settings),
                clock.clone(),
            ),
            fenced: KubeFenced::new(call.clone(), clock.clone(), Settings::clone(&settings)),
            records: KubeRecords::new(call.clone(), clock.clone()),
        }),
        lease: KubernetesLease::new(settings.namespace.clone(), sources),
        reports: Some(Arc::new(KubeReports::new(call.clone(), clock.clone()))),
        watches: Some(Arc::new(KubeWatches::new(call.clone()))),
        events: Some(Arc::new(EventPoster {
            requests: Requests::new(call, clock.clone(), settings.namespace.clone()),
            instance: options.pod.clone(),
        })),
        ticks: ticks(&env).await,
        receivers: receivers(&settings.notify)?,
        pod: options.pod.clone(),
        node: options.node.clone(),
        health: Arc::new(Health::default()),
    };
    let health = Arc::clone(&replica.health);
    let asked = Arc::clone(&questions);
    health.show_asked(Box::new(move || asked.shown()));
    let router = health_routes(health).merge(routes(questions));
    let listener = env.tasks.spawn(listen(env.clone(), options.listen, router));
    let running = env.tasks.spawn(replica.run());
    tokio::pin!(stop);
    let ended = tokio::select! {
        biased;
        listened = listener => {
            if let Ok(Some(Err(error))) = listened {
                return Err(ServeError::Listen { address: options.listen, error });
            }
            Ok(ReplicaEnd::ElectionBroke)
        }
        ended = running => ended.ok().flatten().unwrap_or(Ok(ReplicaEnd::ElectionBroke)),
        () = &mut stop => {
            if owner.stop(&clock, STOP_LIMIT).await.is_err() {
                tracing::warn!("tasks were still at work at the end");
            }
            return Ok(ReplicaEnd::Stopped(None));
        }
    };
    Ok(ended?)
}

/// Ticks until the tasks are asked to stop; none where they do not start, since nothing depends on them.
async fn ticks(env: &Env) -> Option<Arc<Notify>> {
    let wake = Arc::new(Notify::new());
    match Ticks::start(Arc::clone(&wake)).await {
        Ok(ticks) => {
            let stopping = env.tasks.stopping();
            drop(env.tasks.spawn(async move {
                stopping.cancelled().await;
                ticks.stop().await;
            }));
            Some(wake)
        }
        Err(error) => {
            tracing::warn!(category = error.category(), %error, "the controller looks by its own clock only");
            None
        }
    }
}

/// A way to the API: the configured server (none), or one API server's own address.
type Way = Option<String>;

/// The configured server first, then every API server at its own address.
async fn ways(env: &Env, access: &Access, settings: &Arc<Settings>) -> Result<Vec<Way>, ServeError> {
    let client = access.client()?;
    let observer = Observer::new(
        KubeReader::new(client, env.clock.clone()),
        access.clone(),
        Arc::clone(settings),
        env.clock.clone(),
    );
    let sources = [SourceId::Nodes, SourceId::ConfigMaps, SourceId::EndpointSlices, SourceId::Maintenances];
    let facts =
        observer.observe(&Wanted { sources: sources.into_iter().collect(), target: None, every_pair: false }).await;
    if matches!(facts.maintenances, maint_core::facts::Observation::Absent { .. }) {
        return Err(ServeError::NoCrds);
    }
    let mut ways: Vec<Way> = vec![None];
    match expected(&facts, settings) {
        Ok(servers) => ways.extend(servers.into_iter().filter_map(|server| server.address).map(Some)),
        // The configured server alone will do; it is the one that every tool uses.
        Err((kind, detail)) => tracing::warn!(%kind, detail, "only the configured server is known"),
    }
    Ok(ways)
}

fn client_of(access: &Access, way: &Way) -> Result<kube::Client, ClientError> {
    match way {
        None => access.client(),
        Some(address) => crate::ports::Servers::client(access, address, None),
    }
}

fn source_of(access: Access, way: Way) -> ClientSource {
    Box::new(move || client_of(&access, &way).map_err(|error| error.to_string()))
}
