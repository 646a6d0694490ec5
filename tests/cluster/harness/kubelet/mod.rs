//! The kubelet double: a node with its own identity whose pods run, end and restart, and which can go down for a while.
//!
//! While the node is up one *session* is alive: the HTTPS server, the heartbeat and the pod loop. Going down drops the
//! session with all of its tasks and connections; coming back starts a new one, with a new boot ID unless it is kept.

mod node;
mod pods;
mod server;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use http::Method;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::client::{Answer, Client, Patch};
use super::net::{NODES, Runtime, address};
use super::node_name;
use super::pki::Pki;

/// Within the grace period two servers can be tried.
const ANSWER: Duration = Duration::from_secs(4);
/// How long the own API server is not asked first after it gave no answer.
const AVOIDED: Duration = Duration::from_secs(15);

/// A pod asked its node to go down, as the `pod` action of maint does.
#[derive(Clone, Copy, Debug)]
pub struct RebootRequest {
    pub node: usize,
    pub seconds: u64,
}

/// The double of one node.
pub struct Kubelet {
    shared: Arc<Shared>,
}

#[derive(Clone, Debug)]
struct Power {
    up: bool,
    boot_id: String,
    /// The containers were started again since the last session.
    restarted: bool,
}

struct Shared {
    index: usize,
    name: String,
    /// Own API server first, as requests go.
    servers: Vec<Client>,
    /// Since when the own API server gives no answers: the others are asked first for a while.
    own_failed: Mutex<Option<Instant>>,
    power: watch::Sender<Power>,
    healthy: AtomicBool,
    next_pod: AtomicU32,
    /// Requests to our own HTTPS server.
    asked: AtomicU64,
    /// Pods (by uid) that already made the node reboot.
    acted: Mutex<HashSet<String>>,
    reboots: mpsc::UnboundedSender<RebootRequest>,
    tls: Arc<rustls::ServerConfig>,
}

impl Kubelet {
    /// Starts it in the node's namespace, powered on.
    pub fn start(
        index: usize,
        runtime: &Runtime,
        pki: &Pki,
        reboots: mpsc::UnboundedSender<RebootRequest>,
    ) -> Result<Self> {
        let tls = server::tls(index, pki).with_context(|| format!("cannot set up TLS of kubelet {index}"))?;
        let order: Vec<_> = (0..NODES).map(|step| (index - 1 + step) % NODES + 1).collect();
        let files: Vec<_> = order.iter().map(|server| pki.kubeconfig(&format!("node-{index}-{server}"))).collect();
        let servers = runtime.run(async move {
            let mut servers = Vec::new();
            for file in files {
                servers.push(Client::new(&file, "kubelet-double").await?.with_limit(ANSWER));
            }
            Ok::<_, anyhow::Error>(servers)
        })??;
        let power = Power { up: true, boot_id: new_boot_id(index), restarted: false };
        let shared = Arc::new(Shared {
            index,
            name: node_name(index),
            servers,
            own_failed: Mutex::default(),
            power: watch::channel(power).0,
            healthy: AtomicBool::new(true),
            next_pod: AtomicU32::new(0),
            asked: AtomicU64::new(0),
            acted: Mutex::default(),
            reboots,
            tls,
        });
        runtime.handle().spawn(live(shared.clone()));
        Ok(Self { shared })
    }

    /// The node is gone at once: no lease, no listener, no open connections, pod events unheard.
    pub fn down(&self) {
        self.shared.power.send_if_modified(|power| std::mem::replace(&mut power.up, false));
    }

    /// The node is back, after a boot or (`keep_boot_id`) after having been cut off only.
    pub fn up(&self, keep_boot_id: bool) {
        let index = self.shared.index;
        self.shared.power.send_if_modified(|power| {
            if power.up {
                return false;
            }
            let boot_id = if keep_boot_id { power.boot_id.clone() } else { new_boot_id(index) };
            *power = Power { up: true, boot_id, restarted: !keep_boot_id };
            true
        });
    }

    pub fn is_up(&self) -> bool {
        self.shared.power.borrow().up
    }

    /// The boot ID that the node has or will report.
    pub fn boot_id(&self) -> String {
        self.shared.power.borrow().boot_id.clone()
    }

    /// What /healthz answers: `ok`, or 500.
    pub fn set_healthy(&self, healthy: bool) {
        self.shared.healthy.store(healthy, Ordering::Relaxed);
    }

    /// How many requests its HTTPS server has answered.
    pub fn asked(&self) -> u64 {
        self.shared.asked.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// One request with the node's identity: at its own API server, and at the others when that does not answer.
    async fn request(&self, method: Method, path: &str, content_type: &str, body: Option<&Value>) -> Result<Answer> {
        let mut last = anyhow!("no API server is known");
        let first = self.first_server();
        for step in 0..self.servers.len() {
            let index = (first + step) % self.servers.len();
            match self.servers[index].call(method.clone(), path, &[("content-type", content_type)], body).await {
                Ok(answer) => return Ok(answer),
                Err(error) => last = error,
            }
            if index == 0 {
                *self.own_failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            }
        }
        Err(last)
    }

    /// A frozen server would else delay each lease renewal by the time of an answer, and the node would be declared dead.
    fn first_server(&self) -> usize {
        let failed = *self.own_failed.lock().unwrap_or_else(PoisonError::into_inner);
        usize::from(failed.is_some_and(|at| at.elapsed() < AVOIDED))
    }

    async fn patch(&self, kind: Patch, path: &str, body: &Value) -> Result<Answer> {
        let content_type = match kind {
            Patch::Merge => "application/merge-patch+json",
            Patch::Strategic => "application/strategic-merge-patch+json",
            Patch::Json => "application/json-patch+json",
        };
        self.request(Method::PATCH, path, content_type, Some(body)).await
    }

    fn address(&self) -> String {
        address(self.index).to_string()
    }

    /// A pod address that no other pod of this run has or had.
    fn new_pod_ip(&self) -> String {
        let number = self.next_pod.fetch_add(1, Ordering::Relaxed);
        format!("10.42.{}.{}", self.index + 4 * (number as usize / 240 % 60), number % 240 + 10)
    }

    fn has_acted(&self, uid: &str) -> bool {
        self.acted.lock().unwrap_or_else(PoisonError::into_inner).contains(uid)
    }

    /// Remembers that this pod made the node reboot; false when it already had.
    fn acts(&self, uid: &str) -> bool {
        self.acted.lock().unwrap_or_else(PoisonError::into_inner).insert(uid.to_string())
    }
}

async fn live(shared: Arc<Shared>) {
    let mut power = shared.power.subscribe();
    loop {
        let now = power.borrow_and_update().clone();
        let mut session = JoinSet::new();
        if now.up {
            session.spawn(server::serve(shared.clone()));
            session.spawn(node::heartbeat(shared.clone(), now.boot_id.clone()));
            session.spawn(pods::run(shared.clone(), now.restarted));
        }
        if power.changed().await.is_err() {
            return;
        }
        session.shutdown().await;
    }
}

/// Looks like the kernel's: a random UUID. The kernel itself makes them.
fn new_boot_id(index: usize) -> String {
    let random = std::fs::read_to_string("/proc/sys/kernel/random/uuid");
    random.map_or_else(|_| format!("boot-{index}-{}", super::now_micros()), |text| text.trim().to_string())
}

/// Strategic merge keeps one entry per type.
fn condition(kind: &str, status: bool, since: &str) -> Value {
    serde_json::json!({ "type": kind, "status": if status { "True" } else { "False" }, "lastTransitionTime": since })
}
