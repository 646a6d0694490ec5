//! kured on the test cluster: its objects, and its double as one process per node, supervised as by a kubelet.
//!
//! Each process lives in its node's network namespace with what a pod would have: address of the node's own API server,
//! a token of the service account, a sentinel file. The reboot command leaves a file, and the supervisor plays the
//! rest: one second later the process is killed and the node goes down.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use maint_sim::doubles::kured::objects::{Form, NAME, access, daemonset};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

use super::client::Client;
use super::net::{NODES, address};
use super::process::{Process, Spec};
use super::wait::{self, Limit};
use super::{Cluster, node_index, node_name};

/// Where kured is installed.
pub const NAMESPACE: &str = "kube-system";
/// kured's user in the audit log.
pub const USER: &str = "system:serviceaccount:kube-system:kured";
/// kured's DaemonSet, which holds the lock.
pub const DAEMONSET: &str = "/apis/apps/v1/namespaces/kube-system/daemonsets/kured";
/// The annotation with the lock.
pub const LOCK: &str = "weave.works/kured-node-lock";

/// From a reboot command to the end of the process and of the node.
const DYING: Duration = Duration::from_secs(1);
/// From the answer of the kubelet's port to the first process.
const RETURN: Duration = Duration::from_secs(1);
/// From an exit to the next process.
const RESTART: Duration = Duration::from_secs(5);
/// How often a process and its reboot file are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Pods of the DaemonSet become ready.
const PODS: Limit = Limit::seconds("kured-pods", 60);

/// The kureds of a cluster; killed on drop.
pub struct Kureds {
    nodes: Vec<Arc<Node>>,
    tasks: Vec<AbortHandle>,
}

/// One node's.
struct Node {
    cluster: Arc<Cluster>,
    index: usize,
    folder: PathBuf,
    flags: Vec<String>,
    process: Mutex<Option<Process>>,
    lives: AtomicU64,
    pid: AtomicU32,
    /// Nobody starts it anew.
    alone: AtomicBool,
    down_seconds: u64,
}

impl Kureds {
    /// Creates kured's objects in one of their forms, and the credentials of the processes. `{node}` in a flag is the
    /// node's name. Nothing runs yet.
    pub async fn install(cluster: &Arc<Cluster>, form: Form, flags: &[&str], down_seconds: u64) -> Result<Self> {
        let client = cluster.any_client().await?;
        for (path, object) in access(form, NAMESPACE) {
            client.ensure(&path, &object).await?;
        }
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_string()).collect();
        let shown: Vec<String> = flags.iter().map(|flag| flag.replace("{node}", "$(KURED_NODE_ID)")).collect();
        let body = daemonset(form, NAMESPACE, "1.23.0", &shown);
        client.ensure(DAEMONSET.trim_end_matches("/kured"), &body).await?;
        Self::processes(cluster, &flags, down_seconds).await
    }

    /// The same where the DaemonSet is there already: the processes have its flags, and these behind them. Only account
    /// and rights are made.
    pub async fn of_daemonset(cluster: &Arc<Cluster>, flags: &[&str], down_seconds: u64) -> Result<Self> {
        let client = cluster.any_client().await?;
        for (path, object) in access(Form::Manifest, NAMESPACE) {
            client.ensure(&path, &object).await?;
        }
        let object = client.get(DAEMONSET).await?;
        let container = &object["spec"]["template"]["spec"]["containers"][0];
        let words = |key: &str| container[key].as_array().cloned().unwrap_or_default();
        let mut all: Vec<String> = words("command").into_iter().skip(1).chain(words("args")).map(flag_of).collect();
        all.extend(flags.iter().map(|flag| (*flag).to_string()));
        Self::processes(cluster, &all, down_seconds).await
    }

    async fn processes(cluster: &Arc<Cluster>, flags: &[String], down_seconds: u64) -> Result<Self> {
        let client = cluster.any_client().await?;
        let mut nodes = Vec::new();
        for index in 1..=NODES {
            let folder = cluster.folder().join(format!("kured-{index}"));
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("token"), token(&client).await?)?;
            fs::copy(cluster.pki.file("ca.crt"), folder.join("ca.crt"))?;
            let mut node = Node {
                cluster: cluster.clone(),
                index,
                flags: flags.iter().map(|flag| flag.replace("{node}", &node_name(index))).collect(),
                folder,
                process: Mutex::default(),
                lives: AtomicU64::new(0),
                pid: AtomicU32::new(0),
                alone: AtomicBool::new(false),
                down_seconds,
            };
            node.forget();
            node.write_reboot_command()?;
            nodes.push(Arc::new(node));
        }
        Ok(Self { nodes, tasks: Vec::new() })
    }

    /// Starts one process per node and supervises it. To be called inside the hub.
    pub fn start(&mut self) -> Result<()> {
        for node in &self.nodes {
            // What the kureds of an earlier case said is not theirs.
            let log = node.cluster.run.log(&node.name());
            if log.exists() {
                fs::remove_file(&log).with_context(|| format!("cannot remove {}", log.display()))?;
            }
            node.start()?;
            let node = Arc::clone(node);
            let task = tokio::spawn(async move {
                if let Err(error) = node.supervise().await {
                    eprintln!("cluster: kured of {} is no longer supervised: {error:#}", node_name(node.index));
                }
            });
            self.tasks.push(task.abort_handle());
        }
        Ok(())
    }

    /// Waits until all pods of the DaemonSet are ready.
    pub async fn wait_pods(&self, client: &Client) -> Result<()> {
        wait::until(PODS, "kured's pods", || async {
            Ok((client.get(DAEMONSET).await?["status"]["numberReady"] == NODES).then_some(()))
        })
        .await
    }

    fn node(&self, name: &str) -> Result<&Arc<Node>> {
        Ok(&self.nodes[node_index(name)? - 1])
    }

    /// Makes a node want a reboot, or not.
    pub fn require(&self, name: &str, required: bool) -> Result<()> {
        let path = self.node(name)?.sentinel();
        let done = if required { fs::write(&path, "") } else { fs::remove_file(&path) };
        done.with_context(|| format!("cannot change {}", path.display()))
    }

    /// Lets a node's reboot command fail from now on.
    pub fn break_reboot(&self, name: &str) -> Result<()> {
        fs::write(self.node(name)?.folder.join("reboot"), "#!/bin/sh\nexit 1\n")?;
        Ok(())
    }

    /// Lets it end well from now on, and do nothing.
    pub fn lose_reboot(&self, name: &str) -> Result<()> {
        fs::write(self.node(name)?.folder.join("reboot"), "#!/bin/sh\nexit 0\n")?;
        Ok(())
    }

    /// Lets it work again.
    pub fn mend_reboot(&self, name: &str) -> Result<()> {
        self.node(name)?.write_reboot_command()
    }

    /// SIGKILL, and nobody starts the next process until the node is looked after again.
    pub fn leave_alone(&self, name: &str, alone: bool) -> Result<()> {
        let node = self.node(name)?;
        node.alone.store(alone, Ordering::Relaxed);
        if alone {
            node.kill();
        }
        Ok(())
    }

    /// SIGKILL; the next process begins 5 s later.
    pub fn kill(&self, name: &str) -> Result<()> {
        self.node(name)?.kill();
        Ok(())
    }

    /// How many processes a node has had.
    pub fn lives(&self, name: &str) -> Result<u64> {
        Ok(self.node(name)?.lives.load(Ordering::Relaxed))
    }

    /// The id of a node's process.
    pub fn pid(&self, name: &str) -> Result<u32> {
        Ok(self.node(name)?.pid.load(Ordering::Relaxed))
    }

    /// A node's log, of all its processes.
    pub fn log(&self, name: &str) -> Result<String> {
        let node = self.node(name)?;
        Ok(fs::read_to_string(node.cluster.run.log(&node.name())).unwrap_or_default())
    }
}

impl Drop for Kureds {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        for node in &self.nodes {
            node.kill();
        }
    }
}

/// A flag of the manifest; only a kubelet puts the node's name in.
fn flag_of(word: Value) -> String {
    word.as_str().unwrap_or_default().replace("$(KURED_NODE_ID)", "{node}")
}

async fn token(client: &Client) -> Result<String> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{NAME}/token");
    let request = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": { "expirationSeconds": 86400 } });
    let answer = client.create(&path, &request).await?;
    answer["status"]["token"].as_str().map(str::to_string).context("no token in the answer")
}

/// The lock as it is; none when nobody holds it.
pub async fn lock(client: &Client) -> Result<Option<Value>> {
    let daemonset = client.get(DAEMONSET).await?;
    let text = daemonset["metadata"]["annotations"][LOCK].as_str();
    text.map(|text| serde_json::from_str(text).context("the lock is no JSON")).transpose()
}

/// Deletes what `install` created.
pub async fn remove(client: &Client) -> Result<()> {
    client.delete(DAEMONSET, Some(&json!({ "propagationPolicy": "Background" }))).await?;
    for (path, _) in access(Form::Manifest, NAMESPACE) {
        client.delete(&format!("{path}/{NAME}"), None).await?;
    }
    Ok(())
}

impl Node {
    fn name(&self) -> String {
        format!("kured-{}", self.index)
    }

    fn sentinel(&self) -> PathBuf {
        self.folder.join("reboot-required")
    }

    fn asked(&self) -> PathBuf {
        self.folder.join("reboot-asked")
    }

    /// No sentinel and no wish of an earlier case.
    fn forget(&mut self) {
        for path in [self.sentinel(), self.asked()] {
            fs::remove_file(path).ok();
        }
    }

    fn write_reboot_command(&self) -> Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.folder.join("reboot");
        fs::write(&path, format!("#!/bin/sh\n: > {}\n", self.asked().display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(())
    }

    /// Nothing of this program's environment reaches the process.
    fn start(&self) -> Result<()> {
        let own = std::env::current_exe()?;
        let path = std::env::var("PATH").unwrap_or_default();
        let mut arguments = vec!["-i".to_string(), format!("PATH={path}")];
        arguments.push(format!("KUBERNETES_SERVICE_HOST={}", address(self.index)));
        arguments.push("KUBERNETES_SERVICE_PORT=6443".to_string());
        arguments.push(format!("KURED_NODE_ID={}", node_name(self.index)));
        arguments.extend([own.display().to_string(), crate::kured::WORD.to_string()]);
        // Of two flags of a name the last one counts: nothing may lead out of here.
        arguments.extend(self.flags.iter().cloned());
        arguments.push(format!("--credentials={}", self.folder.display()));
        arguments.push(format!("--reboot-sentinel={}", self.sentinel().display()));
        arguments.push(format!("--reboot-command={}", self.folder.join("reboot").display()));
        let spec = Spec {
            name: self.name(),
            namespace: self.cluster.network.path(&format!("n{}", self.index)),
            hostname: None,
            program: "env".into(),
            arguments,
        };
        let process = Process::spawn(&spec, &self.cluster.run)?;
        self.pid.store(process.id(), Ordering::Relaxed);
        self.lives.fetch_add(1, Ordering::Relaxed);
        *self.lock() = Some(process);
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kill(&self) {
        if let Some(mut process) = self.lock().take() {
            process.kill();
        }
    }

    fn has_ended(&self) -> bool {
        self.lock().as_mut().is_none_or(|process| process.exited().is_some())
    }

    fn is_up(&self) -> bool {
        self.cluster.kubelets[self.index - 1].is_up()
    }

    async fn supervise(&self) -> Result<()> {
        loop {
            tokio::time::sleep(LOOK).await;
            if !self.is_up() {
                // Somebody else took the node down.
                self.kill();
                fs::remove_file(self.sentinel()).ok();
                self.come_back().await?;
            } else if self.asked().exists() {
                tokio::time::sleep(DYING).await;
                self.kill();
                fs::remove_file(self.asked())?;
                // The folder of the real one does not outlive a boot.
                fs::remove_file(self.sentinel()).ok();
                self.cluster.reboot(&node_name(self.index), self.down_seconds).await?;
                self.come_back().await?;
            } else if self.has_ended() && !self.alone.load(Ordering::Relaxed) {
                tokio::time::sleep(RESTART).await;
                if self.is_up() {
                    self.start()?;
                }
            }
        }
    }

    /// Waits for the kubelet's port, then starts the next process.
    async fn come_back(&self) -> Result<()> {
        while TcpStream::connect((address(self.index), 10250)).await.is_err() {
            tokio::time::sleep(LOOK).await;
        }
        tokio::time::sleep(RETURN).await;
        self.start()
    }
}
