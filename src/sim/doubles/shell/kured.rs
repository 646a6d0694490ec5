//! One kured per node of the simulated cluster: its requests reach the API server in memory as client `kured-NODE`,
//! its question reaches a port, its reboot command reboots the node.
//!
//! A process dies with its node and begins again one second after the return; one that exits, or is killed, begins
//! again after five seconds, as under a kubelet.

use std::collections::BTreeMap;
use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use http_body_util::BodyExt;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Notify;

use crate::clock::sleep;
use crate::doubles::kured::answer::Answer;
use crate::doubles::kured::calls::{Call, Reply, USER_AGENT};
use crate::doubles::kured::log;
use crate::doubles::kured::settings::Settings;
use crate::doubles::kured::{Effect, Event, Fractions, Kured};
use crate::random::{FNV_OFFSET, Random, fnv1a};
use crate::store::http::Cluster;
use crate::store::{ObjectKey, object};
use crate::trace::Step;
use crate::world::SharedWorld;

/// From a reboot command to the node's end.
const DYING: Duration = Duration::from_secs(1);
/// From the node's return to the first process.
const RETURN: Duration = Duration::from_secs(1);
/// From a process' end to the next one.
const RESTART: Duration = Duration::from_secs(5);
/// The client pings a connection that is silent for 30 s and gives it up 15 s later (client-go's defaults for HTTP/2).
const SILENCE: Duration = Duration::from_secs(45);
/// How long Go tries to resolve a name with a server that does not answer: two attempts of five seconds.
const RESOLVING: Duration = Duration::from_secs(10);
/// Go's limit of a dial.
const DIALLING: Duration = Duration::from_secs(30);
/// Between two looks of the metric.
const METRIC: Duration = Duration::from_secs(60);

/// Where the question goes.
pub trait Question: Send + Sync + 'static {
    /// What `--prometheus-url` answers to a node. [`Answer::Hang`] never comes back; the time that other failures
    /// take is the shell's.
    fn ask(&self, node: &str) -> impl Future<Output = Answer> + Send;
}

/// What is known of a node beside the cluster's objects.
#[derive(Debug, Default)]
struct Host {
    required: bool,
    reboot_fails: bool,
    life: u64,
    metric: Option<bool>,
    log: Vec<String>,
    kill: Arc<Notify>,
    reboot: Arc<Notify>,
}

/// The kureds of a cluster.
pub struct Kureds<Q> {
    cluster: Arc<Cluster>,
    world: SharedWorld,
    settings: Settings,
    question: Q,
    seed: u64,
    hosts: Mutex<BTreeMap<String, Host>>,
}

impl<Q: Question> Kureds<Q> {
    /// Kureds with the same flags on these nodes; [`Self::run`] lets them live. `{node}` in the URL of the settings
    /// stands for the node's name, as `$(KURED_NODE_ID)` does in a manifest.
    pub fn new(
        cluster: Arc<Cluster>,
        world: SharedWorld,
        nodes: &[&str],
        settings: Settings,
        question: Q,
        seed: u64,
    ) -> Arc<Self> {
        let hosts = nodes.iter().map(|node| ((*node).to_owned(), Host::default())).collect();
        Arc::new(Self { cluster, world, settings, question, seed, hosts: Mutex::new(hosts) })
    }

    fn host<T>(&self, node: &str, look: impl FnOnce(&mut Host) -> T) -> T {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        look(hosts.entry(node.to_owned()).or_default())
    }

    /// Creates or removes a node's sentinel. A boot removes it too.
    pub fn require(&self, node: &str, required: bool) {
        self.host(node, |host| host.required = required);
    }

    /// Whether a node's sentinel is there.
    pub fn is_required(&self, node: &str) -> bool {
        self.host(node, |host| host.required)
    }

    /// Lets a node's reboot command fail from now on, or succeed.
    pub fn break_reboot(&self, node: &str, fails: bool) {
        self.host(node, |host| host.reboot_fails = fails);
    }

    /// Kills a node's process; another one begins after five seconds.
    pub fn kill(&self, node: &str) {
        self.host(node, |host| host.kill.notify_one());
    }

    /// How many processes a node has had.
    pub fn lives(&self, node: &str) -> u64 {
        self.host(node, |host| host.life)
    }

    /// `kured_reboot_required` of a node; none while no process serves it.
    pub fn metric(&self, node: &str) -> Option<bool> {
        self.host(node, |host| host.metric)
    }

    /// A node's log so far.
    pub fn log(&self, node: &str) -> Vec<String> {
        self.host(node, |host| host.log.clone())
    }

    fn nodes(&self) -> Vec<String> {
        let hosts: MutexGuard<'_, _> = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.keys().cloned().collect()
    }

    fn now(&self) -> Timestamp {
        self.cluster.clock().now()
    }

    /// Lets all of them live, for ever. They are polled in the order of their names.
    pub async fn run(self: Arc<Self>) {
        let mut all: Pending<()> = Vec::new();
        for node in self.nodes() {
            let kureds = Arc::clone(&self);
            all.push(Box::pin(async move {
                tokio::join!(kureds.machine(&node), kureds.boots(&node), kureds.supervise(&node));
            }));
        }
        next(&mut all).await;
    }

    /// The node's part of a reboot, which outlives the process that asked for it.
    async fn machine(&self, node: &str) {
        let asked = self.host(node, |host| Arc::clone(&host.reboot));
        loop {
            asked.notified().await;
            sleep(DYING).await;
            let now = self.now();
            let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
            let down = world.settings().reboot;
            world.reboot(&mut self.cluster.lock(), node, down, now);
        }
    }

    /// The sentinel's folder does not outlive a boot, whoever asked for it.
    async fn boots(&self, node: &str) {
        loop {
            self.power(node, false).await;
            self.require(node, false);
            self.power(node, true).await;
        }
    }

    async fn supervise(&self, node: &str) {
        let client = format!("kured-{node}");
        let kill = self.host(node, |host| Arc::clone(&host.kill));
        let stop = self.cluster.lock().faults.stop_signal(&client);
        loop {
            self.power(node, true).await;
            let life = self.host(node, |host| {
                host.life += 1;
                host.life
            });
            let is_down = tokio::select! {
                biased;
                () = self.power(node, false) => true,
                () = kill.notified() => false,
                () = stop.notified() => false,
                () = self.live(node, life) => false,
                () = self.measure(node) => false,
            };
            self.host(node, |host| host.metric = None);
            if is_down {
                self.power(node, true).await;
                sleep(RETURN).await;
            } else {
                self.kubelet_says(node, false);
                sleep(RESTART).await;
                self.kubelet_says(node, true);
            }
        }
    }

    /// What the kubelet reports of a container that ended, or began again. A reboot is the world's to report.
    fn kubelet_says(&self, node: &str, runs: bool) {
        let now = self.now();
        let mut inner = self.cluster.lock();
        let is_it = |pod: &&Arc<Value>| {
            let owner = pod.pointer("/metadata/ownerReferences/0/name").and_then(Value::as_str);
            object::text(pod, "/spec/nodeName") == node
                && object::namespace(pod) == self.settings.ds_namespace
                && owner == Some(self.settings.ds_name.as_str())
        };
        let Some(pod) = inner.store.all("", "pods").find(is_it) else { return };
        let (key, before) = (ObjectKey::pod(object::namespace(pod), object::name(pod)), inner.store.revision());
        inner.store.edit(&key, |pod| {
            for kind in ["Ready", "ContainersReady"] {
                object::set_condition(pod, kind, if runs { "True" } else { "False" }, "", "", now);
            }
            let statuses = pod.pointer_mut("/status/containerStatuses").and_then(Value::as_array_mut);
            for status in statuses.into_iter().flatten().filter(|_| runs) {
                let count = status.get("restartCount").and_then(Value::as_i64).unwrap_or(0);
                status["restartCount"] = Value::from(count + 1);
            }
        });
        let mut step = Step::act("world", now);
        step.path = format!("kubelet of {node}");
        step.changes = inner.store.changes_after(before).unwrap_or_default();
        inner.trace.push(step);
    }

    /// Waits until a node is up or down.
    async fn power(&self, node: &str, up: bool) {
        poll_fn(|context| {
            let world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
            if world.is_down(node) != up {
                return Poll::Ready(());
            }
            self.cluster.lock().store.wake_on_change(context.waker());
            Poll::Pending
        })
        .await;
    }

    async fn measure(&self, node: &str) {
        loop {
            self.host(node, |host| host.metric = Some(host.required));
            sleep(METRIC).await;
        }
    }

    /// One process, until it exits.
    async fn live(&self, node: &str, life: u64) {
        let seed = fnv1a(fnv1a(FNV_OFFSET, node.as_bytes()), &(self.seed ^ (life << 32)).to_be_bytes());
        let mut random = Random::new(seed);
        let mut settings = self.settings.clone();
        settings.prometheus_url = settings.prometheus_url.map(|url| url.replace("{node}", node));
        let mut kured = Kured::new(settings, node, Fractions::millionths(random.next(), random.next()));
        let server = self.server(node);
        let mut events: Pending<'_, Event> = Vec::new();
        let mut effects = kured.step(self.now(), Event::Start);
        loop {
            for effect in effects {
                match effect {
                    Effect::Log(level, text) => {
                        let line = log::line(self.now(), level, &text);
                        self.host(node, |host| host.log.push(line));
                    }
                    Effect::Exit(_) => return,
                    effect => events.push(Box::pin(self.perform(node, server, effect))),
                }
            }
            let event = next(&mut events).await;
            effects = kured.step(self.now(), event);
        }
    }

    /// The API server of the node, or the next one that is there: a Service leads a new process to any of them, and
    /// k3s each server's to its own.
    fn server(&self, node: &str) -> usize {
        let inner = self.cluster.lock();
        let count = inner.servers.len().max(1);
        let own = inner.servers.iter().position(|server| server.node.as_deref() == Some(node));
        let first = own.unwrap_or_else(|| node.bytes().map(usize::from).sum::<usize>() % count);
        let order = (0..count).map(|step| (first + step) % count);
        order.clone().find(|index| inner.servers.get(*index).is_some_and(|server| !server.is_cut())).unwrap_or(first)
    }

    async fn perform(&self, node: &str, server: usize, effect: Effect) -> Event {
        match effect {
            Effect::Api { id, not_before, call } => {
                tokio::time::sleep_until(self.cluster.clock().instant(not_before)).await;
                Event::Api(id, self.call(node, server, &call).await)
            }
            Effect::Ask(id) => {
                let answer = self.question.ask(node).await;
                match answer {
                    Answer::Hang => pending().await,
                    Answer::Unresolved => sleep(RESOLVING).await,
                    Answer::Dropped => sleep(DIALLING).await,
                    _ => {}
                }
                Event::Asked(id, answer)
            }
            Effect::Sentinel(id) => Event::Sentinel(id, self.is_required(node)),
            Effect::Sleep(id, until) => {
                tokio::time::sleep_until(self.cluster.clock().instant(until)).await;
                Event::Woken(id)
            }
            Effect::Reboot(id) => {
                let result = self.host(node, |host| match host.reboot_fails {
                    true => Err("exit status 1".to_owned()),
                    false => {
                        host.reboot.notify_one();
                        Ok(())
                    }
                });
                Event::Rebooted(id, result)
            }
            Effect::Log(..) | Effect::Exit(_) => pending().await,
        }
    }

    async fn call(&self, node: &str, server: usize, call: &Call) -> Reply {
        let address = self.cluster.lock().servers.get(server).map_or_else(String::new, |server| server.address.clone());
        let failed = |why: &str| Reply::Failed(format!("{} {}: {why}", call.method, call.path));
        match tokio::time::timeout(SILENCE, self.send(node, server, call)).await {
            Err(_) => failed("http2: client connection lost"),
            Ok(Err(error)) if is_refused(error.as_ref()) => {
                failed(&format!("dial tcp {address}:6443: connect: connection refused"))
            }
            Ok(Err(error)) => failed(&error.to_string()),
            Ok(Ok(reply)) => reply,
        }
    }

    async fn send(&self, node: &str, server: usize, call: &Call) -> Result<Reply, tower::BoxError> {
        let uri = if call.query.is_empty() { call.path.clone() } else { format!("{}?{}", call.path, call.query) };
        let mut request = http::Request::builder().method(call.method).uri(uri);
        request = request.header(http::header::USER_AGENT, USER_AGENT);
        if !call.content_type.is_empty() {
            request = request.header(http::header::CONTENT_TYPE, call.content_type);
        }
        let body = call.body.as_ref().map(Value::to_string).unwrap_or_default();
        let request = request.body(http_body_util::Full::new(hyper::body::Bytes::from(body)))?;
        let service = self.cluster.service(server, &format!("kured-{node}"));
        let user = format!("system:serviceaccount:{}:kured", self.settings.ds_namespace);
        let response = service.user(&user).answer(request).await?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await?.to_bytes();
        Ok(Reply::Answer { code, body: serde_json::from_slice(&bytes).unwrap_or_default() })
    }
}

fn is_refused(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
}

type Pending<'a, T> = Vec<Pin<Box<dyn Future<Output = T> + Send + 'a>>>;

/// The first of them that is ready, in their order: a seed is one order. There are never more than a drain's pods.
async fn next<T>(futures: &mut Pending<'_, T>) -> T {
    let mut first = pin!(poll_fn(|context| {
        for index in 0..futures.len() {
            let Some(future) = futures.get_mut(index) else { break };
            if let Poll::Ready(value) = future.as_mut().poll(context) {
                drop(futures.remove(index));
                return Poll::Ready(value);
            }
        }
        Poll::Pending
    }));
    first.as_mut().await
}
