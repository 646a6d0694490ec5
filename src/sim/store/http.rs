//! The API shell: several API servers over one store, as tower services for the real `kube::Client`.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Response, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame};
use serde_json::json;
use tower::BoxError;

use super::dispatch::{self, View};
use super::error::Refusal;
use super::proxy::{self, Cell};
use super::request::{Answer, Payload, Request, Target};
use super::watch::WatchBody;
use super::{ObjectKey, Resource, Store, object};
use crate::clock::Clock;
use crate::faults::{Fault, Faults};
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

    /// The service of one API server for a client that is known by `client` in trace and faults.
    #[must_use]
    pub fn service(self: &Arc<Self>, server: usize, client: &str) -> ApiService {
        ApiService { cluster: Arc::clone(self), server, client: client.to_owned(), user: client.to_owned() }
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
    /// Answers a request at an API server and says so in the trace.
    fn serve(&mut self, server: usize, client: &str, user: &str, request: &Request, at: jiff::Timestamp) -> Answer {
        let before = self.store.revision();
        let answer = self.answer(server, user, request, at);
        let mut step = Step::of(request, client, at);
        step.code = answer.code;
        step.changes = self.store.changes_after(before).unwrap_or_default();
        self.trace.push(step);
        answer
    }

    fn answer(&mut self, index: usize, user: &str, request: &Request, now: jiff::Timestamp) -> Answer {
        if self.allow.as_ref().is_some_and(|allow| !allow(user, request)) {
            return forbidden(user, request).into();
        }
        let server = self.servers.get(index).cloned().unwrap_or_default();
        if let Target::Resource { group, resource, .. } = &request.target
            && self.initializing.contains(&(index, Resource::new(group, resource)))
        {
            return refused_429("storage is (re)initializing").into();
        }
        if let Target::Resource { group, resource, name, subresource, tail, .. } = &request.target
            && group.is_empty()
            && resource == "nodes"
            && subresource == "proxy"
        {
            return self.proxied(index, name, tail, request.upgrade);
        }
        match request.path.as_str() {
            "/readyz" | "/livez" | "/healthz" if server.ready => Answer::text(200, "ok"),
            "/readyz" | "/livez" | "/healthz" => {
                Answer::text(500, "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n")
            }
            _ => {
                let view = View { now, cached_at: server.cached_at, read_at: server.read_at };
                dispatch::answer(&mut self.store, request, &view)
            }
        }
    }

    fn proxied(&self, server: usize, node: &str, tail: &str, upgrade: bool) -> Answer {
        let Some(found) = self.store.object(&ObjectKey::node(node)) else {
            let kind = self.store.kinds().find("", "v1", "nodes");
            return kind.map_or(Refusal::UnknownPath, |kind| Refusal::not_found(kind, node)).into();
        };
        let addresses = found.pointer("/status/addresses").and_then(serde_json::Value::as_array);
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

/// One API server as a client sees it.
#[derive(Debug, Clone)]
pub struct ApiService {
    cluster: Arc<Cluster>,
    server: usize,
    client: String,
    user: String,
}

impl ApiService {
    /// The same for another user (rights are asked for the user, faults are counted by client).
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        user.clone_into(&mut self.user);
        self
    }

    /// The same, named after the user agent of each request.
    #[must_use]
    pub fn named(mut self, client: &str) -> Self {
        client.clone_into(&mut self.client);
        self.user(client)
    }

    /// Answers one request.
    ///
    /// # Errors
    /// As a connection fails: refused, or broken in the middle.
    pub async fn answer<B>(self, request: http::Request<B>) -> Result<Response<ApiBody>, BoxError>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let request = take_apart(request).await?;
        let fault = {
            let mut inner = self.cluster.lock();
            let Inner { faults, servers, .. } = &mut *inner;
            let server = servers.get(self.server).cloned().unwrap_or_default();
            if server.down || server.cut == Cut::Refuse {
                self.unanswered(&mut inner, &request);
                return Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into());
            }
            if server.cut == Cut::Hang {
                Some(Fault::HangBefore)
            } else {
                faults.next(&self.client, request.is_mutating())
            }
        };
        let answer = self.under(fault, &request).await?;
        match answer.delay {
            None => std::future::pending::<()>().await,
            Some(Duration::ZERO) => {}
            Some(delay) => tokio::time::sleep(delay).await,
        }
        self.response(answer)
    }

    fn unanswered(&self, inner: &mut Inner, request: &Request) {
        inner.trace.push(Step::of(request, &self.client, self.cluster.clock.now()));
    }

    fn serve(&self, request: &Request) -> Answer {
        let now = self.cluster.clock.now();
        self.cluster.lock().serve(self.server, &self.client, &self.user, request, now)
    }

    async fn under(&self, fault: Option<Fault>, request: &Request) -> Result<Answer, BoxError> {
        let broken = || Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset).into());
        match fault {
            None | Some(Fault::StopAnswered) => Ok(self.serve(request)),
            Some(Fault::Delay(delay)) => {
                tokio::time::sleep(delay).await;
                Ok(self.serve(request))
            }
            Some(Fault::Refuse(code)) => {
                let mut step = Step::of(request, &self.client, self.cluster.clock.now());
                step.code = code;
                self.cluster.lock().trace.push(step);
                Ok(refused(code).into())
            }
            Some(fault) => {
                let applied = matches!(fault, Fault::StopUnanswered | Fault::LoseAnswer | Fault::HangAfter);
                if applied {
                    self.serve(request);
                } else {
                    self.unanswered(&mut self.cluster.lock(), request);
                }
                match fault {
                    Fault::StopBefore | Fault::StopUnanswered => {
                        self.cluster.lock().faults.stop(&self.client);
                        std::future::pending().await
                    }
                    Fault::LoseRequest | Fault::LoseAnswer => broken(),
                    _ => std::future::pending().await,
                }
            }
        }
    }

    fn response(&self, answer: Answer) -> Result<Response<ApiBody>, BoxError> {
        let mut builder = Response::builder().status(answer.code);
        if answer.audit_id {
            let number = self.cluster.lock().trace.hash();
            builder =
                builder.header("Audit-Id", format!("{number:016x}")).header(header::CACHE_CONTROL, "no-cache, private");
        }
        if let Some(seconds) = answer.retry_after {
            builder = builder.header(header::RETRY_AFTER, seconds);
        }
        let (content_type, body) = match answer.payload {
            Payload::Json(bytes) => ("application/json", ApiBody::Once(Some(Bytes::from(bytes)))),
            Payload::Text(text) => {
                builder = builder.header("X-Content-Type-Options", "nosniff");
                let kind = if answer.audit_id { "text/plain; charset=utf-8" } else { "text/plain" };
                (kind, ApiBody::Once(Some(Bytes::from(text))))
            }
            Payload::Watch(request) => {
                let stream = self.cluster.lock().servers.get(self.server).map_or(0, |server| server.stream);
                let body = WatchBody::new(Arc::clone(&self.cluster), self.server, stream, *request);
                ("application/json", ApiBody::Watch(Box::new(body)))
            }
        };
        Ok(builder.header(header::CONTENT_TYPE, content_type).body(body)?)
    }
}

/// 429 with Retry-After: 1 and without a budget's cause.
fn refused_429(message: &str) -> Refusal {
    let mut refusal = Refusal::new(429, "TooManyRequests", message);
    if let Refusal::Status { details, .. } = &mut refusal {
        details.insert("retryAfterSeconds".to_owned(), json!(1));
    }
    refusal
}

/// The answers of a server in trouble.
fn refused(code: u16) -> Refusal {
    match code {
        409 => {
            let why = "the object has been modified; please apply your changes to the latest version and try again";
            Refusal::new(409, "Conflict", format!("Operation cannot be fulfilled: {why}"))
        }
        429 => refused_429("Too many requests, please try again later."),
        503 => Refusal::new(503, "ServiceUnavailable", "the server is currently unable to handle the request"),
        504 => Refusal::new(504, "Timeout", "Timeout: request did not complete within the allotted timeout"),
        code => Refusal::new(code, "InternalError", "Internal error occurred: etcdserver: request timed out"),
    }
}

async fn take_apart<B>(request: http::Request<B>) -> Result<Request, BoxError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(Into::into)?.to_bytes().to_vec();
    let text = |name: header::HeaderName| {
        parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let mut taken = Request::new(parts.method.as_str(), parts.uri.path(), parts.uri.query().unwrap_or_default());
    taken.content_type = text(header::CONTENT_TYPE);
    taken.user_agent = text(header::USER_AGENT);
    taken.upgrade = text(header::CONNECTION).to_ascii_lowercase().contains("upgrade");
    taken.body = body;
    Ok(taken)
}

impl<B> tower::Service<http::Request<B>> for ApiService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ApiBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}

/// The body of an answer.
#[derive(Debug)]
pub enum ApiBody {
    /// Known already.
    Once(Option<Bytes>),
    /// A stream of events.
    Watch(Box<WatchBody>),
}

impl Body for ApiBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Once(bytes) => {
                Poll::Ready(bytes.take().filter(|bytes| !bytes.is_empty()).map(|bytes| Ok(Frame::data(bytes))))
            }
            Self::Watch(body) => Pin::new(body.as_mut()).poll_frame(context),
        }
    }
}
