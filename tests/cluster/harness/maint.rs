//! `maint serve` on the test cluster: replicas that are started, stopped, killed and frozen by name, each with a service
//! account of its own, so that the audit log tells them apart.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::audit::Log;
use super::net::{HUB, NODES};
use super::process::{Process, Spec};
use super::wait::{self, Limit};
use super::webhooks::Webhooks;
use super::{Cluster, maint_settings as settings, objects};

/// maint's own namespace.
pub const NAMESPACE: &str = "maint";
/// The records.
pub const RECORDS: &str = "/apis/maint.dev/v1alpha1/maintenances";
/// The reports.
pub const REPORTS: &str = "/apis/maint.dev/v1alpha1/maintenancereports";
/// The leader's Lease.
pub const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/maint/leases/maint";
/// Two replicas, as in a real installation.
pub const REPLICAS: [&str; 2] = ["maint-a", "maint-b"];
/// Where they listen, in the hub.
pub const ADDRESSES: [SocketAddr; 2] =
    [SocketAddr::new(IpAddr::V4(HUB), 18_080), SocketAddr::new(IpAddr::V4(HUB), 18_081)];

/// A verb that watches a run to its end.
const VERB: Limit = Limit::seconds("verb", 150);
/// A Lease runs out, and its next holder is seen.
const REPLICA: Limit = Limit::seconds("replica-leads", 45);

/// maint on the cluster: its CRDs, accounts, settings and replicas. The replicas are killed on drop.
pub struct Maint {
    cluster: Arc<Cluster>,
    pub webhooks: Webhooks,
    config: PathBuf,
    /// The settings but for their top.
    tables: String,
    kubeconfigs: BTreeMap<String, PathBuf>,
    replicas: BTreeMap<String, Process>,
    /// Flags of every replica.
    flags: Vec<String>,
}

impl Maint {
    /// Installs CRDs, namespace, accounts and settings. Each of `run` replaces a time of the settings' table `[run]`.
    pub async fn install(cluster: &Arc<Cluster>, run: &[(&str, u64)]) -> Result<Self> {
        Self::install_with(cluster, run, "").await
    }

    /// The same with further keys of the settings' top.
    pub async fn install_with(cluster: &Arc<Cluster>, run: &[(&str, u64)], top: &str) -> Result<Self> {
        let mut maint = Self::settings(cluster, run, top).await?;
        maint.objects().await?;
        Ok(maint)
    }

    /// Only the settings: the cluster has what the manifests of `deploy/` have made, and both replicas are the service
    /// account of those, with its rights and the probe's account.
    pub async fn of_manifests(cluster: &Arc<Cluster>) -> Result<Self> {
        Self::of_manifests_with(cluster, "").await
    }

    /// The same with further keys of the settings' top.
    pub async fn of_manifests_with(cluster: &Arc<Cluster>, top: &str) -> Result<Self> {
        let mut maint = Self::settings(cluster, &[], top).await?;
        for name in REPLICAS {
            maint.kubeconfigs.insert(name.to_string(), cluster.kubeconfig_for(NAMESPACE, "maint").await?);
        }
        maint.flags = ["--probe-account", "maint-probe"].map(String::from).to_vec();
        Ok(maint)
    }

    async fn settings(cluster: &Arc<Cluster>, run: &[(&str, u64)], top: &str) -> Result<Self> {
        let webhooks = Webhooks::start().await?;
        let folder = cluster.folder().join("maint");
        fs::create_dir_all(&folder)?;
        let text = settings::tables(&folder, &webhooks, run)?;
        let config = folder.join("maint.toml");
        let maint = Self {
            cluster: cluster.clone(),
            webhooks,
            config,
            tables: text,
            kubeconfigs: BTreeMap::new(),
            replicas: BTreeMap::new(),
            flags: Vec::new(),
        };
        maint.write_settings(top)?;
        Ok(maint)
    }

    /// Writes the settings anew with other keys at their top; a replica reads them when it starts.
    pub fn write_settings(&self, top: &str) -> Result<()> {
        let text = format!("namespace = \"{NAMESPACE}\"\n{top}\n{}", self.tables);
        fs::write(&self.config, text).with_context(|| format!("cannot write {}", self.config.display()))
    }

    /// Changes a time of the table `[run]` and writes the settings anew.
    pub fn set_run(&mut self, key: &str, seconds: u64, top: &str) -> Result<()> {
        let of_key = |line: &&str| line.split(" = ").next() == Some(key);
        let line = self.tables.lines().find(of_key).with_context(|| format!("no {key} in {}", self.tables))?;
        self.tables = self.tables.replace(line, &format!("{key} = {seconds}"));
        self.write_settings(top)
    }

    /// Installs it and starts both replicas; the first leads. Each begins with the API server of its number.
    pub async fn up(cluster: &Arc<Cluster>, run: &[(&str, u64)], servers: [usize; 2]) -> Result<Self> {
        let mut maint = Self::install(cluster, run).await?;
        maint.start(REPLICAS[0], servers[0])?;
        maint.wait_leader(REPLICAS[0]).await?;
        maint.start(REPLICAS[1], servers[1])?;
        Ok(maint)
    }

    async fn objects(&mut self) -> Result<()> {
        let client = self.cluster.any_client().await?;
        for crd in maint_core::api::crds()? {
            objects::create_crd(&client, &crd).await?;
        }
        wait_served(&self.cluster).await?;
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
        client.ensure("/api/v1/namespaces", &namespace).await?;
        // A Lease that nobody holds is taken at once; one that the first leader creates only after its whole duration.
        let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "maint" },
            "spec": { "holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 0 } });
        client.ensure(LEASE.trim_end_matches("/maint"), &lease).await?;
        let mut subjects = Vec::new();
        for name in REPLICAS {
            let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name } });
            client.ensure(&format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts"), &account).await?;
            subjects.push(json!({ "kind": "ServiceAccount", "name": name, "namespace": NAMESPACE }));
            self.kubeconfigs.insert(name.to_string(), self.cluster.kubeconfig_for(NAMESPACE, name).await?);
        }
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "maint-replicas" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": subjects,
        });
        client.ensure("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await
    }
}

/// Replicas by name.
impl Maint {
    /// Starts a replica whose kubeconfig names API server `server`. Its log goes on in one file.
    pub fn start(&mut self, name: &str, server: usize) -> Result<()> {
        let index = REPLICAS.iter().position(|one| *one == name).context("no such replica")?;
        let kubeconfig = self.kubeconfigs.get(name).context("it has no kubeconfig")?;
        let mut arguments: Vec<String> = ["-v", "serve", "--listen"].map(String::from).to_vec();
        arguments.push(ADDRESSES[index].to_string());
        for (flag, value) in [
            ("--pod-name", name.to_string()),
            ("--kubeconfig", kubeconfig.display().to_string()),
            ("--context", format!("server-{server}")),
            ("--config", self.config.display().to_string()),
        ] {
            arguments.extend([flag.to_string(), value]);
        }
        arguments.extend(self.flags.iter().cloned());
        let spec = Spec {
            name: name.to_string(),
            namespace: self.cluster.hub_path(),
            hostname: None,
            program: self.cluster.maint_binary()?,
            arguments,
        };
        self.replicas.insert(name.to_string(), Process::spawn(&spec, &self.cluster.run)?);
        Ok(())
    }

    /// SIGTERM, and SIGKILL where that does not end it.
    pub fn stop(&mut self, name: &str) {
        if let Some(mut process) = self.replicas.remove(name) {
            process.stop();
        }
    }

    /// SIGKILL.
    pub fn kill(&mut self, name: &str) {
        if let Some(mut process) = self.replicas.remove(name) {
            process.kill();
        }
    }

    /// SIGKILL, and its Lease is as if it had run out: it is dead, so that nobody's time is lost by waiting for that.
    pub async fn kill_leader(&mut self) -> Result<(String, i64)> {
        let (leader, term) = self.leader().await?.context("nobody leads")?;
        self.kill(&leader);
        let free = json!({ "spec": { "holderIdentity": null } });
        self.cluster.any_client().await?.merge(LEASE, &free).await?;
        Ok((leader, term))
    }

    /// Freezes it, or lets it go on.
    pub fn freeze(&self, name: &str, frozen: bool) {
        if let Some(process) = self.replicas.get(name) {
            process.signal(if frozen { Signal::SIGSTOP } else { Signal::SIGCONT });
        }
    }

    /// Whether it has ended by itself.
    pub fn ended(&mut self, name: &str) -> bool {
        self.replicas.get_mut(name).is_none_or(|process| process.exited().is_some())
    }

    /// The user of a replica in the audit log.
    pub fn user(name: &str) -> String {
        format!("system:serviceaccount:{NAMESPACE}:{name}")
    }

    /// The other replica.
    pub fn other(name: &str) -> &'static str {
        if name == REPLICAS[0] { REPLICAS[1] } else { REPLICAS[0] }
    }

    /// What both replicas asked of the API since a mark.
    pub fn log_since(&self, mark: &str) -> Result<Log> {
        let log = self.cluster.audit_since(mark)?;
        let users = REPLICAS.map(Self::user);
        Ok(Log(log.0.into_iter().filter(|entry| users.contains(&entry.user)).collect()))
    }

    /// Who holds the Lease, by name, and with which term.
    pub async fn leader(&self) -> Result<Option<(String, i64)>> {
        let Some(lease) = self.cluster.any_client().await?.find(LEASE).await? else { return Ok(None) };
        let holder = lease["spec"]["holderIdentity"].as_str().and_then(|holder| holder.split_once('_'));
        let term = lease["spec"]["leaseTransitions"].as_i64().unwrap_or(0);
        Ok(holder.map(|(name, _)| (name.to_string(), term)))
    }

    /// Waits until a replica leads.
    pub async fn wait_leader(&self, name: &str) -> Result<i64> {
        wait::until(REPLICA, format!("{name} to lead"), || async {
            match self.leader().await? {
                Some((holder, term)) if holder == name => Ok(Some(term)),
                other => Err(anyhow!("{other:?}")),
            }
        })
        .await
    }
}

/// The command line, as a person has it.
impl Maint {
    /// A verb, with a kubeconfig that names API server `server`.
    pub fn command(&self, server: usize, words: &[&str]) -> Result<Command> {
        self.command_of(&self.cluster.kubeconfig_path(), server, words)
    }

    /// A verb of somebody whose kubeconfig this is.
    pub fn command_of(&self, kubeconfig: &Path, server: usize, words: &[&str]) -> Result<Command> {
        let mut command = Command::new(self.cluster.maint_binary()?);
        command.arg("--kubeconfig").arg(kubeconfig).arg("--context").arg(format!("server-{server}"));
        command.arg("--config").arg(&self.config).args(words).stdin(Stdio::null());
        Ok(command)
    }

    /// Runs a verb to its end, which must come with this exit code; gives what it printed to stdout and stderr.
    pub async fn verb(&self, server: usize, words: &[&str], code: i32) -> Result<String> {
        self.verb_of(&self.cluster.kubeconfig_path(), server, words, code).await
    }

    /// The same as somebody whose kubeconfig this is.
    pub async fn verb_of(&self, kubeconfig: &Path, server: usize, words: &[&str], code: i32) -> Result<String> {
        let output = self.cluster.run_in_hub(self.command_of(kubeconfig, server, words)?, VERB).await?;
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).join("");
        ensure!(
            output.status.code() == Some(code),
            "maint {words:?} ended with {}, wanted {code}: {text}",
            output.status
        );
        Ok(text)
    }

    /// The name of the only record.
    pub async fn only_record(&self) -> Result<String> {
        wait::until(wait::SHORT, "a record", || async {
            let records = self.cluster.any_client().await?.list(RECORDS).await?;
            ensure!(records.len() == 1, "{} records", records.len());
            Ok(records[0]["metadata"]["name"].as_str().map(String::from))
        })
        .await
    }
}

/// Records, and what people say in them.
impl Maint {
    /// Creates a record; `spec` is put over a manual one.
    pub async fn ask(&self, name: &str, node: &str, scope: &str, action: &str, spec: Value) -> Result<()> {
        let mut body = json!({
            "apiVersion": "maint.dev/v1alpha1", "kind": "Maintenance", "metadata": { "name": name },
            "spec": { "nodeName": node, "scope": scope, "action": action, "trigger": "manual",
                "requestedBy": "a case", "reason": "to see what happens" },
        });
        for (key, value) in spec.as_object().into_iter().flatten() {
            body["spec"][key] = value.clone();
        }
        self.cluster.any_client().await?.create(RECORDS, &body).await.map(drop)
    }

    /// A record as it is now.
    pub async fn record(&self, name: &str) -> Result<Value> {
        self.cluster.any_client().await?.get(&format!("{RECORDS}/{name}")).await
    }

    /// Waits until a record is in a phase. One that ended otherwise ends the wait.
    pub async fn wait_phase(&self, name: &str, phase: &str, limit: Limit) -> Result<Value> {
        let over =
            |record: &Value| matches!(record["status"]["phase"].as_str(), Some("Succeeded" | "Failed" | "Cancelled"));
        let reached = |record: &Value| record["status"]["phase"] == phase;
        let record = self.wait_record(name, phase, limit, |record| reached(record) || over(record)).await?;
        ensure!(reached(&record), "wanted phase {phase}: {}", story(&record));
        Ok(record)
    }

    /// Waits until something is true of a record; what it says at the limit is in the error.
    pub async fn wait_record(
        &self,
        name: &str,
        what: &str,
        limit: Limit,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        wait::until(limit, format!("{what} of record {name}"), || async {
            let record = self.record(name).await?;
            if wanted(&record) { Ok(Some(record)) } else { Err(anyhow!("{}", story(&record))) }
        })
        .await
    }

    /// Waits until both receivers have the messages of a record, and checks their kinds in order.
    pub async fn wait_told(&self, name: &str, kinds: &[&str]) -> Result<()> {
        wait::until(wait::SHORT, format!("the messages {kinds:?} of {name}"), || async {
            let (json, texts) = (self.webhooks.kinds(name), self.webhooks.texts());
            ensure!(json == kinds && texts.len() >= kinds.len(), "JSON {json:?}, Slack {texts:?}");
            Ok(Some(()))
        })
        .await
    }
}

/// Waits until each API server serves the records: each starts their storage for itself.
pub async fn wait_served(cluster: &Cluster) -> Result<()> {
    for i in 1..=NODES {
        let server = cluster.client(i).await?;
        for path in [RECORDS, REPORTS] {
            wait::until(wait::CONTROLLERS, format!("{path} at API server {i}"), || async {
                server.get(path).await.map(Some)
            })
            .await?;
        }
    }
    Ok(())
}

/// Phase, message, warnings and timeline of a record, for people.
pub fn story(record: &Value) -> String {
    let status = &record["status"];
    let text = |value: &Value| value.as_str().unwrap_or("").to_string();
    let mut lines = vec![format!(
        "{} {} {}: {}",
        text(&record["metadata"]["name"]),
        text(&status["phase"]),
        text(&status["outcome"]),
        text(&status["message"])
    )];
    for entry in status["timeline"].as_array().into_iter().flatten() {
        lines.push(format!("  {} {:<12} {}", text(&entry["at"]), text(&entry["phase"]), text(&entry["message"])));
    }
    for finding in status["findings"].as_array().into_iter().flatten() {
        lines.push(format!(
            "  finding {} {} {}: {}",
            text(&finding["gate"]),
            text(&finding["status"]),
            text(&finding["reason"]),
            text(&finding["message"])
        ));
    }
    lines.join("\n")
}
