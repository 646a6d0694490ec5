//! etcd, three API servers with their tunnels, controller-manager and scheduler, started, watched over and stopped.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::audit;
use super::binaries::Binaries;
use super::client::Client;
use super::net::{HUB, NODES, Network, Runtime, address};
use super::pki::Pki;
use super::process::{Process, Spec, describe};
use super::proxy::Proxy;
use super::run::RunFolder;
use super::{now_micros, wait};

/// How an API server is made to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// SIGKILL: refused at once, but listed in the EndpointSlice for 14.5 s more.
    Kill,
    /// SIGTERM: it takes itself out of the EndpointSlice first.
    Term,
}

/// All real processes of a run.
pub struct ControlPlane {
    binaries: Binaries,
    pki: Arc<Pki>,
    run: Arc<RunFolder>,
    hub: String,
    nodes: Vec<String>,
    proxies: Vec<Proxy>,
    processes: Mutex<Processes>,
    frozen: [AtomicBool; NODES],
    stopping: AtomicBool,
}

#[derive(Default)]
struct Processes {
    etcd: Option<Process>,
    servers: [Option<Process>; NODES],
    controllers: [Option<Process>; 2],
    homes: [Home; 2],
}

/// Where a controller was last started.
#[derive(Clone, Default)]
struct Home {
    server: usize,
    since: String,
}

/// The two that know one API server each.
const CONTROLLERS: [&str; 2] = ["kube-controller-manager", "kube-scheduler"];

impl ControlPlane {
    /// Starts all of it; ready is another question (`wait_ready`).
    pub fn start(
        binaries: Binaries,
        pki: Arc<Pki>,
        run: Arc<RunFolder>,
        network: &Network,
        runtimes: &[Runtime],
    ) -> Result<Self> {
        fs::write(run.path().join("audit.yaml"), audit::POLICY)?;
        let mut proxies = Vec::new();
        for (index, runtime) in runtimes.iter().enumerate() {
            let proxy = Proxy::start(runtime, &run.path().join(format!("proxy-{}.sock", index + 1)))?;
            fs::write(run.path().join(format!("egress{}.yaml", index + 1)), proxy.egress_configuration())?;
            proxies.push(proxy);
        }
        let nodes = (1..=NODES).map(|i| network.path(&format!("n{i}"))).collect();
        let plane = Self {
            binaries,
            pki,
            run,
            hub: network.path("hub"),
            nodes,
            proxies,
            processes: Mutex::default(),
            frozen: Default::default(),
            stopping: AtomicBool::new(false),
        };
        plane.lock().etcd = Some(plane.spawn("etcd", plane.binaries.etcd(), plane.etcd_arguments(), None)?);
        for i in 1..=NODES {
            plane.start_server(i)?;
        }
        for index in 0..CONTROLLERS.len() {
            plane.start_controller(index, index + 1)?;
        }
        Ok(plane)
    }

    pub fn proxy(&self, server: usize) -> &Proxy {
        &self.proxies[server - 1]
    }

    /// Starts API server `i` unless it runs.
    pub fn start_server(&self, i: usize) -> Result<()> {
        let mut processes = self.lock();
        if self.stopping.load(Ordering::Relaxed) {
            bail!("the cluster is being taken down");
        }
        let slot = &mut processes.servers[i - 1];
        if slot.as_mut().is_some_and(|process| process.exited().is_none()) {
            return Ok(());
        }
        *slot = Some(self.spawn(
            &format!("apiserver-{i}"),
            self.binaries.kubernetes("kube-apiserver"),
            self.server_arguments(i),
            Some(i),
        )?);
        Ok(())
    }

    /// Ends API server `i` and waits for its end.
    pub fn stop_server(&self, i: usize, how: Stop) {
        let process = self.lock().servers[i - 1].take();
        match (process, how) {
            (Some(mut process), Stop::Kill) => process.kill(),
            (Some(mut process), Stop::Term) => process.stop(),
            (None, _) => {}
        }
    }

    pub fn server_runs(&self, i: usize) -> bool {
        self.lock().servers[i - 1].as_mut().is_some_and(|process| process.exited().is_none())
    }

    /// Freezes API server `i` (connections are taken, nothing is answered) or lets it go on.
    pub fn freeze_server(&self, i: usize, frozen: bool) {
        self.frozen[i - 1].store(frozen, Ordering::Relaxed);
        if let Some(process) = &self.lock().servers[i - 1] {
            process.signal(if frozen { Signal::SIGSTOP } else { Signal::SIGCONT });
        }
    }

    /// Moves controller-manager and scheduler when they have ended or when their API server is gone. In k3s they die with
    /// it; left alone, one that leads exits after 10 s, and one that waits for the lease would wait for ever.
    pub async fn supervise(self: Arc<Self>) {
        while !self.stopping.load(Ordering::Relaxed) {
            for (index, name) in CONTROLLERS.iter().enumerate() {
                let Some(why) = self.controller_lost(index) else { continue };
                // Without a server that answers it would only be lost again.
                let Some(server) = self.answering_server().await else { continue };
                if self.stopping.load(Ordering::Relaxed) {
                    return;
                }
                eprintln!("cluster: {name} {why}, started again at server {server}");
                if let Err(error) = self.start_controller(index, server) {
                    eprintln!("cluster: {error:#}");
                }
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    fn controller_lost(&self, index: usize) -> Option<String> {
        let (ended, home) = {
            let mut processes = self.lock();
            (processes.controllers[index].as_mut()?.exited(), processes.homes[index].server)
        };
        match ended {
            Some(status) => Some(format!("ended ({})", describe(status))),
            None if !self.server_answers(home) => Some(format!("lost server {home}")),
            None => None,
        }
    }

    /// Running and not frozen.
    fn server_answers(&self, i: usize) -> bool {
        self.server_runs(i) && !self.frozen[i - 1].load(Ordering::Relaxed)
    }

    /// Both controllers lead: a lease that was renewed since its controller was started is held by that one.
    pub async fn wait_leaders(&self, client: &Client) -> Result<()> {
        for (index, name) in CONTROLLERS.iter().enumerate() {
            let path = format!("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{name}");
            wait::until(wait::CONTROL_PLANE, format!("{name} to lead"), || async {
                let since = self.lock().homes[index].since.clone();
                let lease = client.find(&path).await?.unwrap_or(Value::Null);
                // Both are written in microseconds, and so they sort as text.
                Ok(lease["spec"]["renewTime"].as_str().is_some_and(|renewed| renewed > since.as_str()).then_some(()))
            })
            .await
            .with_context(|| self.ends())?;
        }
        Ok(())
    }

    /// /readyz of each server, and a holder in both leader leases. That all three are listed, which takes up to 16 s when
    /// they race for the first write, is waited for by the reset that ends the bring-up.
    pub async fn wait_ready(&self) -> Result<()> {
        for i in 1..=NODES {
            let client = self.client(i).await?;
            wait::until(wait::SERVER_READY, format!("/readyz of API server {i}"), || async {
                Ok(client.call(http::Method::GET, "/readyz", &[], None).await?.status.is_success().then_some(()))
            })
            .await
            .with_context(|| self.ends())?;
        }
        self.wait_leaders(&self.client(1).await?).await
    }

    /// SIGTERM to all but etcd, up to 5 s, SIGKILL; etcd last, since without it the others do not end.
    pub fn stop(&self) {
        if self.stopping.swap(true, Ordering::Relaxed) {
            return;
        }
        let (mut others, etcd) = {
            let mut processes = self.lock();
            let Processes { etcd, servers, controllers, .. } = &mut *processes;
            let others: Vec<_> = controllers.iter_mut().chain(servers.iter_mut()).filter_map(Option::take).collect();
            (others, etcd.take())
        };
        for process in &mut others {
            if process.exited().is_none() {
                process.signal(Signal::SIGTERM);
            }
        }
        for process in &mut others {
            process.finish();
        }
        if let Some(mut etcd) = etcd {
            etcd.stop();
        }
    }

    /// The harness's own client at server `i`; its requests are not in the audit log.
    pub async fn client(&self, i: usize) -> Result<Client> {
        Client::new(&self.pki.kubeconfig(&format!("harness-{i}")), "harness").await
    }

    async fn answering_server(&self) -> Option<usize> {
        for i in (1..=NODES).filter(|i| self.server_answers(*i)) {
            let Ok(client) = self.client(i).await else { continue };
            let answer = client.with_limit(Duration::from_secs(2)).call(http::Method::GET, "/readyz", &[], None).await;
            if answer.is_ok_and(|answer| answer.status.is_success()) {
                return Some(i);
            }
        }
        None
    }

    fn start_controller(&self, index: usize, server: usize) -> Result<()> {
        let name = CONTROLLERS[index];
        // The old one must be gone first: both would listen on the same port.
        drop(self.lock().controllers[index].take());
        let arguments = if index == 0 {
            self.kcm_arguments(server)
        } else {
            kubeconfigs(&self.file(&format!("kc/sched-{server}")))
        };
        let since = now_micros();
        let process = self.spawn(name, self.binaries.kubernetes(name), arguments, None)?;
        let mut processes = self.lock();
        if self.stopping.load(Ordering::Relaxed) {
            // `stop` has already taken what there was; this one ends here.
            return Ok(());
        }
        processes.controllers[index] = Some(process);
        processes.homes[index] = Home { server, since };
        Ok(())
    }

    fn spawn(&self, name: &str, program: PathBuf, arguments: Vec<String>, node: Option<usize>) -> Result<Process> {
        let namespace = node.map_or(&self.hub, |i| &self.nodes[i - 1]).clone();
        let hostname = node.map(|i| format!("cp-{i}"));
        Process::spawn(&Spec { name: name.to_string(), namespace, hostname, program, arguments }, &self.run)
    }

    /// Which processes have ended, for the error of a wait that failed.
    fn ends(&self) -> String {
        let mut processes = self.lock();
        let Processes { etcd, servers, controllers, .. } = &mut *processes;
        let names = ["etcd", "apiserver-1", "apiserver-2", "apiserver-3", CONTROLLERS[0], CONTROLLERS[1]];
        let all = std::iter::once(etcd).chain(servers).chain(controllers);
        let ended: Vec<_> = names
            .iter()
            .zip(all)
            .filter_map(|(name, slot)| Some(format!("{name} ended with {}", describe(slot.as_mut()?.exited()?))))
            .collect();
        let logs = self.run.path().join("logs");
        format!(
            "{}; logs in {}",
            if ended.is_empty() { "all processes run".to_string() } else { ended.join(", ") },
            logs.display()
        )
    }

    fn lock(&self) -> MutexGuard<'_, Processes> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, name: &str) -> String {
        self.run.path().join(name).display().to_string()
    }

    fn etcd_arguments(&self) -> Vec<String> {
        let client = format!("http://{HUB}:2379");
        vec![
            format!("--data-dir={}", self.file("etcd")),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            "--listen-peer-urls=http://127.0.0.1:2380".to_string(),
            "--unsafe-no-fsync".to_string(),
        ]
    }

    fn server_arguments(&self, i: usize) -> Vec<String> {
        let pki = |name: &str| self.file(&format!("pki/{name}"));
        vec![
            format!("--etcd-servers=http://{HUB}:2379"),
            format!("--advertise-address={}", address(i)),
            "--secure-port=6443".to_string(),
            "--service-cluster-ip-range=10.96.0.0/16".to_string(),
            "--allow-privileged=true".to_string(),
            format!("--tls-cert-file={}", pki("apiserver.crt")),
            format!("--tls-private-key-file={}", pki("apiserver.key")),
            format!("--client-ca-file={}", pki("ca.crt")),
            format!("--service-account-key-file={}", pki("sa.pub")),
            format!("--service-account-signing-key-file={}", pki("sa.key")),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_string(),
            format!("--kubelet-client-certificate={}", pki("apiserver-kubelet-client.crt")),
            format!("--kubelet-client-key={}", pki("apiserver-kubelet-client.key")),
            format!("--kubelet-certificate-authority={}", pki("kubelet-ca.crt")),
            "--kubelet-preferred-address-types=InternalIP".to_string(),
            "--authorization-mode=Node,RBAC".to_string(),
            "--enable-admission-plugins=NodeRestriction".to_string(),
            format!("--egress-selector-config-file={}", self.file(&format!("egress{i}.yaml"))),
            format!("--audit-policy-file={}", self.file("audit.yaml")),
            format!("--audit-log-path={}", audit::path(self.run.path(), i).display()),
        ]
    }

    fn kcm_arguments(&self, server: usize) -> Vec<String> {
        let ca = self.file("pki/ca.crt");
        let mut arguments = kubeconfigs(&self.file(&format!("kc/kcm-{server}")));
        arguments.extend([
            format!("--client-ca-file={ca}"),
            // Without it the first start dies: the default rights are not there yet.
            format!("--requestheader-client-ca-file={ca}"),
            format!("--root-ca-file={ca}"),
            format!("--service-account-private-key-file={}", self.file("pki/sa.key")),
            "--use-service-account-credentials".to_string(),
            "--node-monitor-period=2s".to_string(),
            "--node-monitor-grace-period=16s".to_string(),
            "--horizontal-pod-autoscaler-sync-period=5s".to_string(),
            "--horizontal-pod-autoscaler-initial-readiness-delay=5s".to_string(),
        ]);
        arguments
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.stop();
    }
}

fn kubeconfigs(file: &str) -> Vec<String> {
    ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"]
        .map(|flag| format!("--{flag}={file}"))
        .to_vec()
}

/// The addresses in EndpointSlice default/kubernetes.
pub async fn listed_servers(client: &Client) -> Result<Vec<String>> {
    let slice = client
        .find("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes")
        .await?
        .unwrap_or(Value::Null);
    let endpoints = slice["endpoints"].as_array().cloned().unwrap_or_default();
    Ok(endpoints.iter().filter_map(|endpoint| Some(endpoint["addresses"][0].as_str()?.to_string())).collect())
}
