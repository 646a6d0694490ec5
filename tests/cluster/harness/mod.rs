//! The test cluster: a real control plane in network namespaces, with doubles for what a machine would be needed for.
//!
//! `Cluster::up` brings it up; `power`, `tunnels` and the like are its verbs (`verbs.rs`), `reset` (`reset.rs`) puts it back
//! to healthy. Everything ends with `shutdown`, also on Ctrl-C.

pub mod admission;
pub mod answerer;
pub mod audit;
pub mod binaries;
pub mod client;
pub mod cnpg;
pub mod control_plane;
pub mod etcd_voter;
pub mod garble;
pub mod kubelet;
pub mod kured;
pub mod longhorn;
pub mod maint;
mod maint_settings;
pub mod metrics;
pub mod net;
pub mod objects;
pub mod pki;
pub mod process;
pub mod proxy;
mod reset;
pub mod run;
pub mod service;
pub mod trials;
pub mod verbs;
pub mod wait;
pub mod webhooks;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use binaries::Binaries;
use control_plane::ControlPlane;
use etcd_voter::Voters;
use kubelet::{Kubelet, RebootRequest};
use longhorn::Longhorn;
use metrics::Metrics;
use net::{NODES, Network, Runtime};
use pki::Pki;
use run::RunFolder;

/// The name of node `i`, from 1.
pub fn node_name(i: usize) -> String {
    format!("worker{i}")
}

/// The number of a node by its name.
pub fn node_index(name: &str) -> Result<usize> {
    (1..=NODES)
        .find(|i| node_name(*i) == name)
        .with_context(|| format!("no node {name}; there are worker1 to worker{NODES}"))
}

/// The time in whole seconds, as records have it.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The time in microseconds, as leases and the audit log have it.
pub fn now_micros() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// A running cluster.
pub struct Cluster {
    pub(crate) plane: Arc<ControlPlane>,
    pub(crate) kubelets: Arc<[Kubelet]>,
    /// The `EtcdIsVoter` conditions.
    pub voters: Voters,
    /// The stand-in for the metrics server.
    pub metrics: Metrics,
    pub(crate) longhorn: Longhorn,
    pub(crate) servers_follow: Arc<AtomicBool>,
    pub(crate) pki: Arc<Pki>,
    pub(crate) binaries: Binaries,
    pub(crate) network: Network,
    pub(crate) hub: Runtime,
    // Their threads hold the namespaces of the nodes, where proxies and kubelets live.
    pub(crate) nodes: Vec<Runtime>,
    pub(crate) run: Arc<RunFolder>,
    down: AtomicBool,
}

impl Cluster {
    /// Builds what is missing, starts everything, and waits until it is healthy.
    pub fn up() -> Result<Arc<Self>> {
        check_machine()?;
        // The namespaces need no other provider; a choice by features alone would fail when a second one is compiled in.
        rustls::crypto::ring::default_provider().install_default().ok();
        let target = target_folder();
        let binaries = Binaries::prepare(&target)?;
        let start = Instant::now();
        let run = Arc::new(RunFolder::create(&target)?);
        let cluster = Self::start(binaries, run)?;
        let ready = cluster.clone();
        if let Err(error) = cluster.run_inside(async move { ready.populate().await }).flatten() {
            cluster.keep_logs();
            return Err(error);
        }
        println!("figure cluster_bring_up {:.1} s", start.elapsed().as_secs_f64());
        Ok(cluster)
    }

    fn start(binaries: Binaries, run: Arc<RunFolder>) -> Result<Arc<Self>> {
        let network = Network::create(run.prefix())?;
        let hub = Runtime::enter(&network.name("hub"), 2)?;
        let nodes =
            (1..=NODES).map(|i| Runtime::enter(&network.name(&format!("n{i}")), 1)).collect::<Result<Vec<_>>>()?;
        let pki = Arc::new(Pki::create(run.path())?);
        let plane = Arc::new(ControlPlane::start(binaries.clone(), pki.clone(), run.clone(), &network, &nodes)?);
        let (reboots, requests) = mpsc::unbounded_channel();
        let kubelets: Result<Vec<_>> =
            (1..=NODES).map(|i| Kubelet::start(i, &nodes[i - 1], &pki, reboots.clone())).collect();
        let cluster = Arc::new(Self {
            plane,
            kubelets: kubelets?.into(),
            voters: Voters::default(),
            metrics: Metrics::default(),
            longhorn: Longhorn::default(),
            servers_follow: Arc::new(AtomicBool::new(true)),
            pki,
            binaries,
            network,
            hub,
            nodes,
            run,
            down: AtomicBool::new(false),
        });
        let tasks = cluster.hub.handle();
        tasks.spawn(on_signal(Arc::downgrade(&cluster)));
        tasks.spawn(cluster.plane.clone().supervise());
        tasks.spawn(serve_reboots(Arc::downgrade(&cluster), requests));
        Ok(cluster)
    }

    async fn populate(&self) -> Result<()> {
        self.plane.wait_ready().await?;
        let client = self.client(1).await?;
        objects::label_nodes(&client).await?;
        objects::create(&client).await?;
        let tasks = self.hub.handle();
        let mut clients = Vec::new();
        for i in 1..=NODES {
            clients.push(self.client(i).await?.with_agent("metrics-double"));
        }
        tasks.spawn(self.metrics.clone().run(clients));
        tasks.spawn(self.voters.clone().run(self.plane.clone(), self.kubelets.clone()));
        self.longhorn.create(&client).await?;
        self.reset().await
    }

    /// Runs a future inside the hub's namespace and waits for it. Not to be called from a task of the cluster.
    pub fn run_inside<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Result<T> {
        self.hub.run(future)
    }

    /// Ends everything and removes the namespaces and the folder. Does nothing the second time.
    pub fn shutdown(&self) {
        if self.down.swap(true, Ordering::Relaxed) {
            return;
        }
        let start = Instant::now();
        // A server that is told to end waits for its watches to end first, and these are ours.
        for kubelet in self.kubelets.iter() {
            kubelet.down();
        }
        self.plane.stop();
        Network::delete_all(self.run.prefix());
        self.run.remove();
        println!("figure cluster_shutdown {:.1} s", start.elapsed().as_secs_f64());
    }

    /// Keeps logs and certificates after the end.
    pub fn keep_logs(&self) {
        self.run.keep();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.shutdown();
    }
}

/// Ctrl-C and SIGTERM end the cluster and then this program.
async fn on_signal(cluster: Weak<Cluster>) {
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    eprintln!("cluster: interrupted, ending everything");
    let ended = tokio::task::spawn_blocking(move || cluster.upgrade().map(|cluster| cluster.shutdown()));
    ended.await.ok();
    std::process::exit(130);
}

/// Lets pods reboot their node.
async fn serve_reboots(cluster: Weak<Cluster>, mut requests: mpsc::UnboundedReceiver<RebootRequest>) {
    while let Some(RebootRequest { node, seconds }) = requests.recv().await {
        let Some(cluster) = cluster.upgrade() else { return };
        tokio::spawn(async move {
            if let Err(error) = cluster.reboot(&node_name(node), seconds).await {
                eprintln!("cluster: the reboot of {} failed: {error:#}", node_name(node));
            }
        });
    }
}

/// Says what is missing before anything is made.
fn check_machine() -> Result<()> {
    if !cfg!(target_os = "linux") {
        bail!("the cluster tests need Linux: they use its network namespaces");
    }
    if !nix::unistd::geteuid().is_root() {
        bail!("the cluster tests need root: they make network namespaces");
    }
    for (program, package) in [
        ("ip", "iproute2"),
        ("nsenter", "util-linux"),
        ("unshare", "util-linux"),
        ("setsid", "util-linux"),
        ("setpriv", "util-linux"),
    ] {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&paths).any(|folder| folder.join(program).is_file()) {
            bail!("the cluster tests need the program `{program}` (package {package}), which is not in PATH");
        }
    }
    Ok(())
}

/// The build folder that this program lies in: `target` of `target/release/deps/cluster-...`.
pub fn target_folder() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let profile =
        own.ancestors().find(|folder| folder.ends_with("deps") || folder.ends_with("examples")).and_then(Path::parent);
    profile
        .and_then(Path::parent)
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target"), Path::to_path_buf)
}
