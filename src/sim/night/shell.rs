//! How a night's replicas and people reach the cluster: through the real client, or through typed ports.

use std::sync::Arc;
use std::time::Duration;

use maint_core::config::Settings;
use maint_core::facts::Source;
use maint_engine::client::{ClientError, Failover};
use maint_engine::deliver::{EventPoster, Tell};
use maint_engine::drive::{KubeRecords, KubeWatches, Ports, Watches};
use maint_engine::execute::{Calls, Form, KubeCalls, KubeFenced, KubeReports, Reply, Reports, WriteError};
use maint_engine::lead::{ClientSource, KubernetesLease};
use maint_engine::observe::{KubeReader, Observer};
use maint_engine::ports::{Page, PageRequest, ReadError, Reader, Servers};
use maint_engine::request::Requests;
use maint_engine::runtime::Clock;
use serde_json::Value;

use super::Stage;
use crate::store::http::Cluster;
use crate::typed::{TypedCalls, TypedLease, TypedReader, TypedRecords, TypedServers, TypedWatches, Ways};

/// What lies between the service and the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// The real `kube::Client`, HTTP and JSON.
    Api,
    /// The engine's ports on the store itself: for the mass of nights.
    Typed,
}

/// All that a replica reaches the cluster by.
pub(super) struct Connection<O, F, R, L> {
    pub(super) ports: Ports<O, F, R>,
    pub(super) lease: L,
    pub(super) watches: Arc<dyn Watches>,
    pub(super) reports: Arc<dyn Reports>,
    pub(super) events: Arc<dyn Tell>,
}

/// Clients for single API servers of the simulated cluster.
pub(super) struct SimServers {
    cluster: Arc<Cluster>,
    client: &'static str,
}

impl Servers for SimServers {
    type Client = kube::Client;

    fn client(&self, address: &str, _: Option<&str>) -> Result<kube::Client, ClientError> {
        // Nobody listens at any other address.
        let server = self.cluster.server_at(address).unwrap_or(usize::MAX);
        Ok(self.cluster.client(server, self.client))
    }
}

/// A connection of the real client.
pub(super) fn api(
    stage: &Stage,
    name: &'static str,
    order: Vec<usize>,
    clock: &Clock,
) -> Connection<Observer<KubeReader, SimServers>, KubeFenced, KubeRecords, KubernetesLease> {
    let (cluster, settings) = (&stage.cluster, &stage.settings);
    let call = stage.failover(name, &order);
    let servers = SimServers { cluster: Arc::clone(cluster), client: name };
    let reader = KubeReader::new(call.clone(), clock.clone());
    let ways = order.into_iter().map(|server| way(Arc::clone(cluster), server, name)).collect();
    Connection {
        ports: Ports {
            observe: Observer::new(reader, servers, Arc::clone(settings), clock.clone()),
            fenced: KubeFenced::new(call.clone(), clock.clone(), Settings::clone(settings)),
            records: KubeRecords::new(call.clone(), clock.clone()),
        },
        lease: KubernetesLease::new(settings.namespace.clone(), ways),
        watches: Arc::new(KubeWatches::new(call.clone())),
        reports: Arc::new(KubeReports::new(call.clone(), clock.clone())),
        events: events(KubeCalls::new(call, clock.clone()), stage, name, clock),
    }
}

fn way(cluster: Arc<Cluster>, server: usize, name: &'static str) -> ClientSource {
    Box::new(move || Ok(cluster.client(server, name)))
}

/// Posts Events in the name of a replica.
fn events(calls: impl Calls + 'static, stage: &Stage, name: &str, clock: &Clock) -> Arc<dyn Tell> {
    let requests = Requests::through(calls, clock.clone(), stage.settings.namespace.clone());
    Arc::new(EventPoster { requests, instance: name.to_owned() })
}

/// A typed connection.
pub(super) fn typed(
    stage: &Stage,
    name: &'static str,
    order: Vec<usize>,
    clock: &Clock,
) -> Connection<Observer<TypedReader, TypedServers>, KubeFenced<TypedCalls>, TypedRecords, TypedLease> {
    let (cluster, settings, decoded) = (&stage.cluster, &stage.settings, &stage.decoded);
    let ways = Ways::new(Arc::clone(cluster), name, order.clone(), clock.clone());
    let servers = TypedServers::new(Arc::clone(cluster), name);
    let reader = TypedReader::new(ways.clone(), Arc::clone(decoded));
    Connection {
        ports: Ports {
            observe: Observer::new(reader, servers, Arc::clone(settings), clock.clone()),
            fenced: KubeFenced::through(TypedCalls::new(ways.clone()), Settings::clone(settings)),
            records: TypedRecords::new(ways.clone(), Arc::clone(decoded)),
        },
        lease: TypedLease::new(Arc::clone(cluster), name, order, &settings.namespace),
        watches: Arc::new(TypedWatches::new(ways.clone())),
        reports: Arc::new(KubeReports::through(TypedCalls::new(ways.clone()))),
        events: events(TypedCalls::new(ways), stage, name, clock),
    }
}

/// Calls of either shell.
#[derive(Clone)]
pub(super) enum ShellCalls {
    Api(KubeCalls),
    Typed(TypedCalls),
}

impl Calls for ShellCalls {
    async fn exchange(
        &self,
        method: http::Method,
        path: &str,
        form: Form,
        body: Option<Value>,
        limit: Duration,
    ) -> Result<Reply, WriteError> {
        match self {
            Self::Api(calls) => calls.exchange(method, path, form, body, limit).await,
            Self::Typed(calls) => calls.exchange(method, path, form, body, limit).await,
        }
    }
}

/// Lists of either shell.
pub(super) enum ShellReader {
    Api(KubeReader),
    Typed(TypedReader),
}

impl Reader for ShellReader {
    async fn list_page<S: Source>(&self, request: &PageRequest<'_>) -> Result<Page<S>, ReadError> {
        match self {
            Self::Api(reader) => reader.list_page(request).await,
            Self::Typed(reader) => reader.list_page(request).await,
        }
    }
}

impl Stage {
    fn failover(&self, name: &'static str, order: &[usize]) -> kube::Client {
        Failover::client(order.iter().map(|server| self.cluster.client(*server, name)).collect())
    }

    /// Calls of somebody by this name, through these API servers in turn.
    pub(super) fn calls(&self, name: &'static str, order: Vec<usize>, clock: &Clock) -> ShellCalls {
        match self.shell {
            Shell::Api => ShellCalls::Api(KubeCalls::new(self.failover(name, &order), clock.clone())),
            Shell::Typed => {
                ShellCalls::Typed(TypedCalls::new(Ways::new(Arc::clone(&self.cluster), name, order, clock.clone())))
            }
        }
    }
    /// Lists for somebody by this name, through these API servers in turn.
    pub(super) fn reader(&self, name: &'static str, order: Vec<usize>, clock: &Clock) -> ShellReader {
        match self.shell {
            Shell::Api => ShellReader::Api(KubeReader::new(self.failover(name, &order), clock.clone())),
            Shell::Typed => {
                let ways = Ways::new(Arc::clone(&self.cluster), name, order, clock.clone());
                ShellReader::Typed(TypedReader::new(ways, Arc::clone(&self.decoded)))
            }
        }
    }
}
