//! Several API servers over one store: what they share, how each of them is cut off or lags, and how it answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::dispatch::{self, View};
use super::error::Refusal;
use super::object::At as _;
use super::proxy::{self, Cell};
use super::request::{Answer, Request, Target};
use super::service::ApiService;
use super::{ObjectKey, Resource, Store, object};
use crate::clock::Clock;
use crate::faults::Faults;
use crate::kinds::FaultKind;
use crate::trace::{Step, Trace};

/// How an API server is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cut {
    /// It is not.
    #[default]
    No,
    /// Connections are refused.
    Refuse,
    /// Connections are accepted and nothing is answered.
    Hang,
}

/// One API server.
#[derive(Debug, Clone, Default)]
pub struct Server {
    /// Its own address, for the world's EndpointSlice.
    pub address: String,
    /// The node that it runs on; with that node down it is down too.
    pub node: Option<String>,
    /// How it is cut off.
    pub cut: Cut,
    /// Whether `/readyz` says ok.
    pub ready: bool,
    /// The revision at which its cache stands still.
    pub cached_at: Option<u64>,
    /// The revision that every read sees (see [`View::read_at`]).
    pub read_at: Option<u64>,
    /// Raised to end all watches.
    pub stream: u64,
    /// Whether its node is down.
    pub down: bool,
}

impl Server {
    /// Whether nothing gets through.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.down || self.cut != Cut::No
    }
}

/// Whether a caller may do something: user, request.
pub type Allow = Arc<dyn Fn(&str, &Request) -> bool + Send + Sync>;

/// All that the API servers share.
pub struct Inner {
    /// The store.
    pub store: Store,
    /// The API servers.
    pub servers: Vec<Server>,
    /// Paths from an API server to a node's kubelet that are not whole.
    pub cells: BTreeMap<(usize, String), Cell>,
    /// Resources whose storage a server has not started yet, as just after the creation of their definition.
    pub initializing: BTreeSet<(usize, Resource)>,
    /// Nodes whose kubelet is down.
    pub kubelets_down: BTreeSet<String>,
    /// Faults.
    pub faults: Faults,
    /// Trace.
    pub trace: Trace,
    /// Rights; none allows everything.
    pub allow: Option<Allow>,
    /// What each request costs the one machine that all API servers share; zero is a machine that is never busy.
    pub work: Duration,
    /// Until when that machine is busy.
    pub(super) busy_until: Timestamp,
}

impl Inner {
    /// Counts what befell the world, its people or the service's processes, if a record is not over.
    pub(crate) fn happened(&mut self, kind: FaultKind) {
        let over = |record: &serde_json::Value| {
            matches!(object::text(record, "/status/phase"), "Succeeded" | "Failed" | "Cancelled")
        };
        if self.store.all("maint.dev", "maintenances").any(|record| !over(record)) {
            self.faults.happened(kind);
        }
    }

    /// Takes the machine for one request: how long until it is served.
    pub(super) fn queue(&mut self, now: Timestamp) -> Duration {
        let done = self.busy_until.max(now) + SignedDuration::try_from(self.work).unwrap_or_default();
        self.busy_until = done;
        Duration::try_from(done.duration_since(now)).unwrap_or_default()
    }
}

/// A simulated cluster: shared state and its clock.
pub struct Cluster {
    inner: Mutex<Inner>,
    clock: Clock,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Cluster").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl Cluster {
    /// A cluster with `servers` API servers over an empty store.
    #[must_use]
    pub fn new(seed: u64, clock: Clock, servers: usize) -> Arc<Self> {
        let server =
            |index: usize| Server { address: format!("10.0.0.{}", index + 1), ready: true, ..Server::default() };
        let inner = Inner {
            store: Store::new(seed, clock.now()),
            servers: (0..servers).map(server).collect(),
            cells: BTreeMap::new(),
            initializing: BTreeSet::new(),
            kubelets_down: BTreeSet::new(),
            faults: Faults::default(),
            trace: Trace::default(),
            allow: None,
            work: Duration::ZERO,
            busy_until: Timestamp::MIN,
        };
        Arc::new(Self { inner: Mutex::new(inner), clock })
    }

    /// The shared state; never held across an await.
    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The clock.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// The API server that listens at `host:port` or a bare address.
    #[must_use]
    pub fn server_at(&self, address: &str) -> Option<usize> {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        self.lock().servers.iter().position(|server| server.address == host)
    }

    /// The service of one API server for a client that is known by `client` in trace and faults.
    #[must_use]
    pub fn service(self: &Arc<Self>, server: usize, client: &str) -> ApiService {
        ApiService::new(Arc::clone(self), server, client)
    }

    /// The real client over [`Self::service`].
    #[must_use]
    pub fn client(self: &Arc<Self>, server: usize, client: &str) -> kube::Client {
        kube::Client::new(self.service(server, client), "default")
    }

    /// Cuts an API server off or lets it back; its watches end either way.
    pub fn cut(&self, server: usize, cut: Cut) {
        let mut inner = self.lock();
        if let Some(server) = inner.servers.get_mut(server) {
            server.cut = cut;
            server.stream += 1;
        }
        inner.store.wake_all();
    }

    /// Ends all watches at an API server.
    pub fn drop_watches(&self, server: usize) {
        let mut inner = self.lock();
        if let Some(server) = inner.servers.get_mut(server) {
            server.stream += 1;
        }
        inner.store.wake_all();
    }

    /// The hash over the trace so far.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.lock().trace.hash()
    }
}

impl Inner {
    /// Does something that a request asked for and says so in the trace: with its code, and with what it changed.
    pub(crate) fn traced<T>(
        &mut self,
        request: &Request,
        client: &str,
        at: jiff::Timestamp,
        act: impl FnOnce(&mut Self) -> (u16, T),
    ) -> T {
        let before = self.store.revision();
        let (code, answer) = act(self);
        let mut step = Step::of(request, client, at);
        step.code = code;
        step.changes = self.store.changes_after(before).unwrap_or_default();
        self.trace.push(step);
        answer
    }

    /// What stands before the store: rights, and storage that has not started yet.
    pub(crate) fn admit(&self, index: usize, user: &str, request: &Request) -> Result<(), Refusal> {
        if self.allow.as_ref().is_some_and(|allow| !allow(user, request)) {
            return Err(forbidden(user, request));
        }
        match &request.target {
            Target::Resource { group, resource, .. }
                if !self.initializing.is_empty()
                    && self.initializing.contains(&(index, Resource::new(group, resource))) =>
            {
                Err(Refusal::throttled("storage is (re)initializing"))
            }
            _ => Ok(()),
        }
    }

    /// What an API server sees.
    pub(crate) fn view(&self, index: usize, now: jiff::Timestamp) -> View {
        let server = self.servers.get(index);
        View {
            now,
            cached_at: server.and_then(|server| server.cached_at),
            read_at: server.and_then(|server| server.read_at),
        }
    }

    pub(super) fn answer(&mut self, index: usize, user: &str, request: &Request, now: jiff::Timestamp) -> Answer {
        if let Err(refusal) = self.admit(index, user, request) {
            return refusal.into();
        }
        if let Target::Resource { group, resource, name, subresource, tail, .. } = &request.target
            && group.is_empty()
            && resource == "nodes"
            && subresource == "proxy"
        {
            return self.proxied(index, name, tail, request.upgrade);
        }
        match request.path.as_str() {
            "/readyz" | "/livez" | "/healthz" => self.readyz(index),
            _ => {
                let view = self.view(index, now);
                dispatch::answer(&mut self.store, request, &view)
            }
        }
    }

    /// What an API server says of itself.
    pub(crate) fn readyz(&self, index: usize) -> Answer {
        if self.servers.get(index).is_some_and(|server| server.ready) {
            return Answer::text(200, "ok");
        }
        Answer::text(500, "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n")
    }

    /// What an API server answers for a path of a node's kubelet.
    pub(crate) fn proxied(&self, server: usize, node: &str, tail: &str, upgrade: bool) -> Answer {
        let Some(found) = self.store.object(&ObjectKey::node(node)) else {
            let kind = self.store.kinds().find("", "v1", "nodes");
            return kind.map_or(Refusal::UnknownPath, |kind| Refusal::not_found(kind, node)).into();
        };
        let addresses = found.at("/status/addresses").and_then(serde_json::Value::as_array);
        let internal = addresses
            .and_then(|list| list.iter().find(|entry| object::text(entry, "/type") == "InternalIP"))
            .map_or("", |entry| object::text(entry, "/address"));
        let cell = if self.kubelets_down.contains(node) {
            Cell::Cut
        } else {
            self.cells.get(&(server, node.to_owned())).copied().unwrap_or_default()
        };
        proxy::answer(cell, tail, upgrade, internal)
    }
}

fn forbidden(user: &str, request: &Request) -> Refusal {
    let Target::Resource { group, resource, namespace, name, subresource, .. } = &request.target else {
        let message = format!("forbidden: User \"{user}\" cannot {} path \"{}\"", request.verb(), request.path);
        return Refusal::new(403, "Forbidden", message);
    };
    let qualified = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
    let subject = if name.is_empty() { qualified } else { format!("{qualified} \"{name}\"") };
    let what = if subresource.is_empty() { resource.clone() } else { format!("{resource}/{subresource}") };
    let place = if namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace \"{namespace}\"")
    };
    let message = format!(
        "{subject} is forbidden: User \"{user}\" cannot {} resource \"{what}\" in API group \"{group}\" {place}",
        request.verb()
    );
    let mut refusal = Refusal::new(403, "Forbidden", message);
    if let Refusal::Status { details, .. } = &mut refusal {
        if !name.is_empty() {
            details.insert("name".to_owned(), json!(name));
        }
        if !group.is_empty() {
            details.insert("group".to_owned(), json!(group));
        }
        details.insert("kind".to_owned(), json!(resource));
    }
    refusal
}
