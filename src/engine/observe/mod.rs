//! Reads the cluster into facts: lists page by page, API servers at their own addresses, the matrix.
//!
//! One failing source never stops the others, nothing is retried here, and every fact carries the instant before its
//! first request, so that no answer looks fresher than it is.

mod agents;
mod alerts;
mod api_servers;
mod expected;
mod list;
mod reader;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use maint_core::api::SourceId;
use maint_core::config::Settings;
use maint_core::facts::{Facts, KuredPod, Listed, Observation, Pod, Source, SourceSpec};
use maint_core::{kured, network};
use tokio::sync::Semaphore;

use crate::client::{Access, AccessOptions, ClientError, Fetch, HttpFetch, connect, connect_at};
use crate::ports::{Observe, Reader, Servers, Wanted};
use crate::probe::{ProbeServers, Prober};
use crate::runtime::Clock;
use list::About;

pub(crate) use api_servers::{READYZ_LIMIT, ask_again, readyz};
pub use api_servers::{ServerClient, ask_all};
pub use expected::{Expected, Origin, expected};
pub use reader::{KubeReader, PAGE_LIMIT};

/// Sources that are read at a time.
const CONCURRENT_SOURCES: usize = 8;
/// What the probes rest on is read again afterwards if it is older than this, in seconds: a large sweep must not
/// leave stale lists behind.
const REUSE_SECONDS: u64 = 5;

/// Reads a live cluster (or anything that answers like one).
#[derive(Debug)]
pub struct Observer<R, S, F = HttpFetch> {
    reader: R,
    servers: S,
    settings: Arc<Settings>,
    clock: Clock,
    prober: Prober,
    fetch: F,
    full_matrix_limit: usize,
}

/// Cells up to which a matrix is swept in full although the question is about one node.
pub const DEFAULT_FULL_MATRIX_LIMIT: usize = 100;

impl<R: Reader, S: Servers> Observer<R, S> {
    /// An observer. Its prober remembers which paths hung, so keep one observer for as long as possible.
    pub fn new(reader: R, servers: S, settings: Arc<Settings>, clock: Clock) -> Self {
        let prober = Prober::new(clock.clone());
        let (fetch, full_matrix_limit) = (HttpFetch::default(), DEFAULT_FULL_MATRIX_LIMIT);
        Self { reader, servers, settings, clock, prober, fetch, full_matrix_limit }
    }
}

impl<R: Reader, S: Servers, F: Fetch> Observer<R, S, F> {
    /// Sets the number of cells up to which the matrix is swept in full although the question is about one node.
    #[must_use]
    pub const fn with_full_matrix_limit(mut self, cells: usize) -> Self {
        self.full_matrix_limit = cells;
        self
    }

    /// Reads the listed sources into the facts; all others are left as they are.
    async fn lists(&self, sources: &BTreeSet<SourceId>, about: About<'_>, facts: &mut Facts) {
        let lists = Lists { observer: self, sources, about, permits: Semaphore::new(CONCURRENT_SOURCES) };
        // Boxed, since the future of so many lists at once is large.
        Box::pin(lists.fill(facts)).await;
    }

    /// Asks the expected API servers, and sweeps the matrix if it is wanted.
    async fn probe(&self, wanted: &Wanted, facts: &mut Facts) {
        let at = self.clock.now();
        let expected = match expected(facts, &self.settings) {
            Ok(expected) => expected,
            Err((kind, detail)) => {
                facts.api_servers = Observation::Failed { kind, detail: detail.clone(), at };
                if wanted.sources.contains(&SourceId::Matrix) {
                    facts.matrix = Observation::Failed { kind, detail, at };
                }
                return;
            }
        };
        let asked = ask_all(&self.servers, &self.clock, expected).await;
        if wanted.sources.contains(&SourceId::Matrix) {
            let nodes = expected::node_names(facts);
            let target = wanted.target.as_deref().filter(|_| !wanted.every_pair);
            facts.matrix = self.prober.sweep(&asked, &nodes, target, self.full_matrix_limit).await;
        }
        let value = asked.into_iter().map(|server| server.server).collect();
        facts.api_servers = Observation::Known { value, at };
    }
}

impl<R: Reader, S: Servers, F: Fetch> Observe for Observer<R, S, F> {
    async fn observe(&self, wanted: &Wanted) -> Facts {
        let mut facts = Facts::default();
        let mut sources = wanted.with_dependencies();
        if wanted.probes() {
            let begun = self.clock.instant();
            let first = Wanted::PROBE_SOURCES.iter().copied().collect();
            self.lists(&first, About::default(), &mut facts).await;
            self.probe(wanted, &mut facts).await;
            if self.clock.instant().duration_since(begun) <= Duration::from_secs(REUSE_SECONDS) {
                sources.retain(|source| !first.contains(source));
            }
        }
        if sources.remove(&SourceId::Alerts) {
            facts.alerts = alerts::read(&self.fetch, &self.clock, &self.settings).await;
        }
        let of_kured = sources.remove(&SourceId::KuredPods);
        let of_network = sources.remove(&SourceId::NetworkAgentPods);
        let cnpg = sources.remove(&SourceId::CnpgPods);
        let about = About { target: wanted.target.as_deref(), this_node_only: false };
        self.lists(&sources, about, &mut facts).await;
        if of_kured {
            let selectors = kured::pod_selectors(&facts.daemon_sets);
            let spec = &KuredPod::SPEC;
            facts.kured_pods =
                agents::read(&self.reader, &self.clock, spec, selectors, |pod: &KuredPod| &pod.metadata).await;
        }
        if of_network {
            let selectors = network::pod_selectors(&facts.daemon_sets);
            let spec = &Pod::NETWORK_AGENTS;
            facts.network_agent_pods =
                agents::read(&self.reader, &self.clock, spec, selectors, |pod: &Pod| &pod.metadata).await;
        }
        // Where there is no cluster of CloudNativePG nobody asks for its pods, and nobody lists them.
        if cnpg && facts.cnpg_clusters.known().is_some_and(|clusters| !clusters.is_empty()) {
            let row = list::Row { spec: &Pod::CNPG, about };
            facts.cnpg_pods = list::read(&self.reader, &self.clock, &self.settings, row).await;
        }
        facts
    }

    async fn observe_around(&self, wanted: &Wanted) -> Facts {
        let rests = [SourceId::KuredPods, SourceId::CnpgPods, SourceId::NetworkAgentPods, SourceId::Alerts];
        if wanted.probes() || rests.iter().any(|source| wanted.sources.contains(source)) {
            // Those rest on all nodes, on other lists, or on nothing of the API.
            return self.observe(wanted).await;
        }
        let mut facts = Facts::default();
        let about = About { target: wanted.target.as_deref(), this_node_only: true };
        self.lists(&wanted.sources, about, &mut facts).await;
        facts
    }
}

/// Reads a live cluster by a kubeconfig or a pod's service account.
pub type LiveObserver = Observer<KubeReader, ProbeServers>;

impl LiveObserver {
    /// Connects, and asks one cheap question, so that a cluster that cannot be asked at all is one clear error.
    ///
    /// # Errors
    /// As [`connect`].
    pub async fn connect(options: &AccessOptions, settings: Arc<Settings>, clock: Clock) -> Result<Self, ClientError> {
        let (access, client) = connect(options, &clock).await?;
        Ok(Self::through(client, &access, options, settings, clock))
    }

    /// The same through one API server at its own address, `host:port`.
    ///
    /// # Errors
    /// As [`connect_at`].
    pub async fn connect_at(
        options: &AccessOptions,
        address: &str,
        settings: Arc<Settings>,
        clock: Clock,
    ) -> Result<Self, ClientError> {
        let (access, client) = connect_at(options, address, &clock).await?;
        Ok(Self::through(client, &access, options, settings, clock))
    }

    fn through(
        client: kube::Client,
        access: &Access,
        options: &AccessOptions,
        settings: Arc<Settings>,
        clock: Clock,
    ) -> Self {
        let servers = ProbeServers::new(access, &options.probe, client.clone(), clock.clone(), &settings.namespace);
        let reader = KubeReader::new(client, clock.clone());
        Self::new(reader, servers, settings, clock)
    }

    /// Where it reads from, for people: the context and the server.
    #[must_use]
    pub fn source(&self) -> String {
        self.servers.source()
    }
}

/// One reading of several lists.
struct Lists<'a, R, S, F> {
    observer: &'a Observer<R, S, F>,
    sources: &'a BTreeSet<SourceId>,
    about: About<'a>,
    permits: Semaphore,
}

impl<R: Reader, S: Servers, F: Fetch> Lists<'_, R, S, F> {
    async fn fill(&self, facts: &mut Facts) {
        tokio::join!(
            biased;
            self.list(&mut facts.nodes),
            self.list(&mut facts.leases),
            self.list(&mut facts.daemon_sets),
            self.list(&mut facts.services),
            self.list(&mut facts.endpoint_slices),
            self.list(&mut facts.dns_pods),
            self.list_row(&mut facts.target_pods, &Pod::ON_TARGET),
            self.list_row(&mut facts.action_pods, &Pod::ACTIONS),
            self.list_row(&mut facts.unscheduled_pods, &Pod::UNSCHEDULED),
            self.list_row(&mut facts.own_pods, &Pod::OWN),
            self.list(&mut facts.deployments),
            self.list(&mut facts.stateful_sets),
            self.list(&mut facts.replica_sets),
            self.list(&mut facts.horizontal_pod_autoscalers),
            self.list(&mut facts.pod_disruption_budgets),
            self.list(&mut facts.longhorn_volumes),
            self.list(&mut facts.longhorn_replicas),
            self.list(&mut facts.longhorn_engines),
            self.list(&mut facts.longhorn_settings),
            self.list(&mut facts.longhorn_nodes),
            self.list(&mut facts.longhorn_instance_managers),
            self.list(&mut facts.longhorn_attachments),
            self.list(&mut facts.cnpg_clusters),
            self.list(&mut facts.cilium_nodes),
            self.list(&mut facts.upgrade_plans),
            self.list(&mut facts.jobs),
            self.list(&mut facts.flux_kustomizations),
            self.list(&mut facts.flux_helm_releases),
            self.list(&mut facts.velero_backups),
            self.list(&mut facts.velero_restores),
            self.list(&mut facts.longhorn_backups),
            self.list(&mut facts.longhorn_system_backups),
            self.list(&mut facts.longhorn_system_restores),
            self.list(&mut facts.cnpg_backups),
            self.list(&mut facts.virtual_machine_instances),
            self.list(&mut facts.virtual_machine_migrations),
            self.list(&mut facts.kubevirts),
            self.list(&mut facts.volume_attachments),
            self.list(&mut facts.config_maps),
            self.list(&mut facts.maintenances),
            self.list(&mut facts.maintenance_reports),
        );
    }

    async fn list<T: Source + Send>(&self, into: &mut Listed<T>) {
        self.list_row(into, &T::SPEC).await;
    }

    async fn list_row<T: Source + Send>(&self, into: &mut Listed<T>, spec: &SourceSpec) {
        if !self.sources.contains(&spec.id) {
            return;
        }
        // The semaphore is never closed; without a permit the source is read all the same.
        let _permit = self.permits.acquire().await.ok();
        let observer = self.observer;
        let row = list::Row { spec, about: self.about };
        *into = list::read(&observer.reader, &observer.clock, &observer.settings, row).await;
    }
}

#[cfg(test)]
mod tests;
