//! `maint serve` on the test cluster: replicas that are started, stopped, killed and frozen by name, each with a service
//! account of its own, so that the audit log tells them apart.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::audit::Log;
use super::net::NODES;
use super::process::{Process, Spec};
use super::wait::{self, Limit};
use super::webhooks::Webhooks;
use super::{Cluster, objects};

/// maint's own namespace.
pub const NAMESPACE: &str = "maint";
/// The records.
pub const RECORDS: &str = "/apis/maint.dev/v1alpha1/maintenances";
/// The reports.
const REPORTS: &str = "/apis/maint.dev/v1alpha1/maintenancereports";
/// The leader's Lease.
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/maint/leases/maint";
/// Two replicas, as in a real installation.
pub const REPLICAS: [&str; 2] = ["maint-a", "maint-b"];

/// Seconds for which a Lease must be seen unchanged. The leader must know its Lease to last longer than the 8 s that
/// a write may take: 11 s are left just before a renewal.
const ELECTION: &str = "[election]\nlease_seconds = 15\nrenew_deadline_seconds = 12\nretry_seconds = 1\n";

/// Short times, so that a run is over in half a minute.
const RUN: [(&str, u64); 9] = [
    ("start_timeout_seconds", 90),
    ("drain_timeout_seconds", 90),
    ("handover_timeout_seconds", 60),
    ("return_timeout_seconds", 120),
    ("verify_timeout_seconds", 90),
    ("settle_timeout_seconds", 120),
    ("sweeps", 2),
    ("sweep_interval_seconds", 2),
    ("settle_for_seconds", 3),
];

/// A verb that watches a run to its end.
const VERB: Limit = Limit::seconds("verb", 150);
/// A Lease runs out, and its next holder is seen.
const REPLICA: Limit = Limit::seconds("replica-leads", 45);

/// maint on the cluster: its CRDs, accounts, settings and replicas. The replicas are killed on drop.
pub struct Maint {
    cluster: Arc<Cluster>,
    pub webhooks: Webhooks,
    config: PathBuf,
    kubeconfigs: BTreeMap<String, PathBuf>,
    replicas: BTreeMap<String, Process>,
    /// Flags of every replica.
    flags: Vec<String>,
}

impl Maint {
    /// Installs CRDs, namespace, accounts and settings. Each of `run` replaces a time of the settings' table `[run]`.
    pub async fn install(cluster: &Arc<Cluster>, run: &[(&str, u64)]) -> Result<Self> {
        let mut maint = Self::settings(cluster, run).await?;
        maint.objects().await?;
        Ok(maint)
    }

    /// Only the settings: the cluster has what the manifests of `deploy/` have made, and both replicas are the service
    /// account of those, with its rights and the probe's account.
    pub async fn of_manifests(cluster: &Arc<Cluster>) -> Result<Self> {
        let mut maint = Self::settings(cluster, &[]).await?;
        for name in REPLICAS {
            maint.kubeconfigs.insert(name.to_string(), cluster.kubeconfig_for(NAMESPACE, "maint").await?);
        }
        maint.flags = ["--probe-account", "maint-probe"].map(String::from).to_vec();
        Ok(maint)
    }

    async fn settings(cluster: &Arc<Cluster>, run: &[(&str, u64)]) -> Result<Self> {
        let webhooks = Webhooks::start().await?;
        let folder = cluster.folder().join("maint");
        fs::create_dir_all(&folder)?;
        let mut times: BTreeMap<&str, u64> = RUN.into_iter().collect();
        times.extend(run.iter().copied());
        let mut text = format!("namespace = \"{NAMESPACE}\"\n[run]\n");
        for (key, value) in times {
            writeln!(text, "{key} = {value}")?;
        }
        text.push_str(ELECTION);
        text.push_str("[action.pod]\nenabled = true\nimage = \"test\"\n");
        let receivers = [
            ("slack", "chat", webhooks.slack_url()),
            ("webhook", "pager", webhooks.json_url()),
            ("webhook", "dead", Webhooks::dead_url()),
        ];
        for (kind, name, url) in receivers {
            let file = folder.join(format!("{name}-url"));
            fs::write(&file, url)?;
            let file = file.display();
            writeln!(text, "[[notify.{kind}]]\nname = \"{name}\"\nurl_file = \"{file}\"\nallow_insecure = true")?;
        }
        let config = folder.join("maint.toml");
        fs::write(&config, text)?;
        Ok(Self {
            cluster: cluster.clone(),
            webhooks,
            config,
            kubeconfigs: BTreeMap::new(),
            replicas: BTreeMap::new(),
            flags: Vec::new(),
        })
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
        arguments.push(format!("127.0.0.1:{}", 18080 + index));
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
