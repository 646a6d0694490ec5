//! maint and kured together on the real control plane: how both are brought up, and what must be true whatever happened.
//! It is counted in the audit log of the API servers, from the boots of the nodes and from what kured was really told,
//! never taken from maint.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, ensure};
use serde_json::{Value, json};

use super::run::{RUN, cordon_changes, ensure_released};
use crate::harness::audit::{Entry, Log};
use crate::harness::kured::{self, DAEMONSET, Kureds, LOCK};
use crate::harness::maint::{ADDRESSES, Maint, RECORDS, REPLICAS, story};
use crate::harness::service::{Service, Told};
use crate::harness::wait::{self, Limit};
use crate::harness::{Cluster, now};

/// All nodes.
pub const NODES: [&str; 3] = ["worker1", "worker2", "worker3"];
/// kured's start-up phase, its first tick, the question.
pub const ASKED: Limit = Limit::seconds("kured-asked", 60);
/// A request of kubectl.
const KUBECTL: Limit = Limit::seconds("kubectl", 60);
/// `--period` of `deploy/kured` is a minute; here kured looks more often.
const PACE: [(&str, &str); 2] = [("--period=1m", "--period=3s"), ("--drain-timeout=15m", "--drain-timeout=12s")];
/// Flags of the double itself, and the way to maint, whose name no DNS knows here.
const TIME_FACTOR: &str = "--time-factor=0.03";
/// How long a node is away.
const DOWN_SECONDS: u64 = 5;

/// Unattended runs whenever kured asks.
pub const AUTO: &str = "mode = \"auto\"\nexpected_duration_seconds = 60\nmax_nodes_per_window = 100\n\
    [[windows]]\nname = \"always\"\ndays = [\"mon\", \"tue\", \"wed\", \"thu\", \"fri\", \"sat\", \"sun\"]\n\
    start = \"00:00\"\nduration = \"24h\"\nzone = \"UTC\"\n";

/// kured's manifest under `deploy/kured`, with a faster pace and these changes of its flags; a warning is a failure.
pub async fn apply_kured(cluster: &Cluster, changes: &[(&str, &str)]) -> Result<()> {
    let folder = cluster.folder().join("kured-overlay");
    fs::create_dir_all(&folder)?;
    let raw = maint_sim::doubles::kured::objects::daemonset(
        maint_sim::doubles::kured::objects::Form::Manifest,
        kured::NAMESPACE,
        "1.23.0",
        &[],
    );
    fs::write(folder.join("kured-ds.yaml"), raw.to_string())?;
    let component =
        format!("{}{}", up_from(&folder.canonicalize()?), concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/kured"));
    let overlay = json!({ "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": ["kured-ds.yaml"], "components": [component] });
    fs::write(folder.join("kustomization.yaml"), overlay.to_string())?;
    let mut text = kubectl(cluster, &["kustomize", &folder.display().to_string()]).await?;
    for (from, to) in PACE.iter().chain(changes) {
        ensure!(text.matches(from).count() == 1, "{from} stands {} times in {text}", text.matches(from).count());
        text = text.replace(from, to);
    }
    let file = folder.join("applied.yaml");
    fs::write(&file, text)?;
    kubectl(cluster, &["apply", "--server-side", "-f", &file.display().to_string()]).await.map(drop)
}

/// The way from a folder to the root, for tools that take no absolute path.
fn up_from(folder: &Path) -> String {
    let depth = folder.components().count() - 1;
    vec![".."; depth].join("/")
}

/// The output of a kubectl that has nothing to complain of.
async fn kubectl(cluster: &Cluster, words: &[&str]) -> Result<String> {
    let mut command = Command::new(cluster.kubectl());
    command.env("KUBECONFIG", cluster.kubeconfig_path()).env("HOME", cluster.folder()).args(words);
    let output = cluster.run_in_hub(command, KUBECTL).await?;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success() && told.is_empty(), "{words:?}: {} {told}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Both partners, and the way between them.
pub struct Partners {
    pub cluster: Arc<Cluster>,
    pub maint: Maint,
    pub kureds: Kureds,
    pub service: Service,
    /// Boot IDs and instant from which is counted.
    boots: BTreeMap<String, String>,
    mark: String,
}

impl Partners {
    /// Installed both; nothing runs yet. `maint` is what the replicas are.
    pub async fn install(cluster: &Arc<Cluster>, maint: Maint, changes: &[(&str, &str)]) -> Result<Self> {
        Self::install_with(cluster, maint, changes, &[]).await
    }

    /// The same with flags that only the processes have, and that their pods do not show.
    pub async fn install_with(
        cluster: &Arc<Cluster>,
        maint: Maint,
        changes: &[(&str, &str)],
        hidden: &[&str],
    ) -> Result<Self> {
        apply_kured(cluster, changes).await?;
        let url = format!("--prometheus-url={}", Service::url());
        let flags = [&[TIME_FACTOR, url.as_str()], hidden].concat();
        let kureds = Kureds::of_daemonset(cluster, &flags, DOWN_SECONDS).await?;
        let service = Service::start(cluster, &ADDRESSES).await?;
        kureds.wait_pods(&cluster.any_client().await?).await?;
        let mut partners =
            Self { cluster: cluster.clone(), maint, kureds, service, boots: BTreeMap::new(), mark: String::new() };
        partners.count_from_now()?;
        Ok(partners)
    }

    /// Starts both replicas, the first of which leads.
    pub async fn start_maint(&mut self) -> Result<()> {
        self.maint.start(REPLICAS[0], 1)?;
        self.maint.wait_leader(REPLICAS[0]).await?;
        self.maint.start(REPLICAS[1], 3)
    }

    /// Everything that is counted is counted from now on.
    pub fn count_from_now(&mut self) -> Result<()> {
        self.mark = self.cluster.audit_mark();
        for node in NODES {
            self.boots.insert(node.to_string(), self.cluster.boot_id(node)?);
        }
        Ok(())
    }

    /// What everybody asked of the API servers since then.
    pub fn log(&self) -> Result<Log> {
        self.cluster.audit_since(&self.mark)
    }

    /// The nodes that booted since then.
    pub fn booted(&self) -> Result<BTreeSet<String>> {
        let mut booted = BTreeSet::new();
        for (node, before) in &self.boots {
            if self.cluster.boot_id(node)? != *before {
                booted.insert(node.clone());
            }
        }
        Ok(booted)
    }

    /// Waits until a node's kured has logged a text so many times.
    pub async fn wait_logged(&self, node: &str, text: &str, times: usize) -> Result<()> {
        wait::until(ASKED, format!("`{text}` {times} times in the log of kured on {node}"), || async {
            let log = self.kureds.log(node)?;
            let last: Vec<&str> = log.lines().rev().take(3).collect();
            ensure!(log.matches(text).count() >= times, "{last:#?}");
            Ok(Some(()))
        })
        .await
    }

    /// Waits until the node has a record that has not ended, and gives its name.
    pub async fn wait_wish(&self, node: &str) -> Result<String> {
        wait::until(ASKED, format!("a record of {node}"), || async {
            let records = self.cluster.any_client().await?.list(RECORDS).await?;
            let over = |record: &&Value| is_over(record);
            let mine = records.iter().filter(|record| record["spec"]["nodeName"] == node).find(|one| !over(one));
            Ok(mine.and_then(|record| record["metadata"]["name"].as_str()).map(String::from))
        })
        .await
    }

    /// Waits for the end of a record, which must be this one.
    pub async fn wait_end(&self, name: &str, phase: &str, outcome: &str) -> Result<Value> {
        let record = self.maint.wait_phase(name, phase, RUN).await?;
        ensure!(record["status"]["outcome"] == outcome, "wanted {outcome}: {}", story(&record));
        Ok(record)
    }

    /// Waits until a go for the node is on its way and kept back.
    pub async fn wait_kept(&self, node: &str, record: &str) -> Result<()> {
        wait::until(RUN, format!("a go that is kept back from {node}"), || async {
            ensure!(self.service.kept(node)? == 1, "{}", story(&self.maint.record(record).await?));
            Ok(Some(()))
        })
        .await
    }

    /// Waits until kured has taken its lock for the node so many times.
    pub async fn wait_locks(&self, node: &str, record: &str, times: usize) -> Result<()> {
        wait::until(RUN, format!("lock {times} of {node}"), || async {
            let count = acquired(&self.log()?, node).len();
            ensure!(count >= times, "{count}: {}", story(&self.maint.record(record).await?));
            Ok(Some(()))
        })
        .await
    }

    /// One lock of kured's and one cordon, taken off once.
    pub fn ensure_once(&self, node: &str) -> Result<()> {
        let log = self.log()?;
        let (locks, cordons) = (acquired(&log, node).len(), cordon_changes(&log, node));
        ensure!(locks == 1 && cordons == (1, 1), "{node}: {locks} locks, cordons on and off {cordons:?}");
        Ok(())
    }

    /// How often a node's kured was told something.
    pub fn told(&self, node: &str) -> usize {
        self.service.told().iter().filter(|told| told.node == node).count()
    }

    /// Kills the leader and starts it anew, as whoever is left may have its Lease at once; gives its term.
    pub async fn leader_dies(&mut self) -> Result<i64> {
        let (leader, term) = self.maint.kill_leader().await?;
        self.maint.start(&leader, if leader == REPLICAS[0] { 1 } else { 3 })?;
        Ok(term)
    }

    /// kured's lock as it stands.
    pub async fn lock_text(&self) -> Result<Option<String>> {
        let daemonset = self.cluster.any_client().await?.get(DAEMONSET).await?;
        Ok(daemonset["metadata"]["annotations"][LOCK].as_str().map(String::from))
    }

    /// Writes kured's lock, as somebody who has no business with it.
    pub async fn write_lock(&self, text: Option<&str>) -> Result<()> {
        let body = json!({ "metadata": { "annotations": { LOCK: text } } });
        self.cluster.any_client().await?.merge(&format!("{DAEMONSET}?fieldManager=somebody"), &body).await.map(drop)
    }

    /// What must be true after whatever happened: nothing is cordoned, no lock is held, no two nodes were away at a
    /// time, and the nodes that booted are these, each after a go.
    pub async fn ensure_safe(&self, booted: &[&str]) -> Result<()> {
        let wanted: BTreeSet<String> = booted.iter().map(ToString::to_string).collect();
        ensure!(self.booted()? == wanted, "booted {:?}, wanted {wanted:?}", self.booted()?);
        wait::until(wait::CONTROLLERS, "a free lock and no cordon", || async {
            let lock = self.lock_text().await?;
            let free = lock.as_deref().is_none_or(|text| text.contains("\"locks\":[]"));
            ensure!(free, "the lock is {lock:?}");
            for node in self.cluster.nodes().await? {
                ensure!(node["spec"]["unschedulable"].is_null(), "cordoned: {}", node["metadata"]["name"]);
            }
            Ok(Some(()))
        })
        .await?;
        for node in &wanted {
            ensure_released(&self.cluster, node).await?;
        }
        let log = self.log()?;
        one_at_a_time(&log)?;
        locks_after_go(&log, &self.service.told(), &wanted)
    }
}

/// Whether a record has ended.
pub fn is_over(record: &Value) -> bool {
    matches!(record["status"]["phase"].as_str(), Some("Succeeded" | "Failed" | "Cancelled"))
}

/// No two nodes were cordoned at a time, by whomever.
pub fn one_at_a_time(log: &Log) -> Result<()> {
    let mut cordoned = BTreeSet::new();
    for entry in &log.0 {
        if entry.code != 200 || entry.stage != "ResponseComplete" || entry.resource != "nodes" {
            continue;
        }
        match entry.sets_unschedulable() {
            Some(true) => drop(cordoned.insert(entry.name.clone())),
            Some(false) => drop(cordoned.remove(&entry.name)),
            None => {}
        }
        ensure!(cordoned.len() <= 1, "cordoned at a time: {cordoned:?} at {}", entry.time);
    }
    Ok(())
}

/// The times at which kured took its lock for a node.
pub fn acquired<'a>(log: &'a Log, node: &str) -> Vec<&'a Entry> {
    let names = |entry: &Entry| {
        let text = entry.request["metadata"]["annotations"][LOCK].as_str().unwrap_or_default();
        text.contains(&format!("\"nodeID\":\"{node}\""))
    };
    let kureds = log.0.iter().filter(|entry| entry.user == kured::USER && entry.resource == "daemonsets");
    kureds.filter(|entry| entry.verb == "update" && entry.code == 200 && names(entry)).collect()
}

/// Whoever took the lock had heard go just before, and that go had been granted in a record; and who booted had the lock.
fn locks_after_go(log: &Log, told: &[Told], booted: &BTreeSet<String>) -> Result<()> {
    for node in NODES {
        let locks = acquired(log, node);
        ensure!(!booted.contains(node) || !locks.is_empty(), "{node} booted without kured's lock");
        for lock in locks {
            let last = told.iter().rfind(|one| one.node == node && one.at < lock.time);
            let last = last.with_context(|| format!("{node} took the lock and was never told anything"))?;
            ensure!(last.is_go(), "{node} took the lock at {} after {last:?}", lock.time);
            let granted = |entry: &&Entry| {
                entry.resource == "maintenances/status"
                    && entry.code == 200
                    && entry.time < last.at
                    && entry.request["spec"]["nodeName"] == node
                    && !entry.request["status"]["intent"].is_null()
            };
            ensure!(log.0.iter().any(|entry| granted(&entry)), "{node} was told go without a grant: {last:?}");
        }
    }
    Ok(())
}

/// Nothing but what says something: records, reports, Events, the Lease, `maint-state`, and tokens for the matrix.
pub fn ensure_only_words(log: &Log) -> Result<()> {
    for entry in log.writes() {
        let ours = matches!(
            entry.resource.as_str(),
            "maintenances"
                | "maintenances/status"
                | "maintenancereports"
                | "maintenancereports/status"
                | "events"
                | "leases"
                | "serviceaccounts/token"
        ) || (entry.resource == "configmaps" && matches!(entry.name.as_str(), "maint-state" | ""));
        ensure!(ours, "written: {} {} {}", entry.verb, entry.resource, entry.uri);
    }
    ensure!(log.evictions().is_empty(), "{:?}", log.evictions());
    Ok(())
}

/// A lock as kured writes it.
pub fn lock_of(node: &str) -> String {
    json!({ "nodeID": node, "metadata": { "unschedulable": false }, "created": now(), "TTL": 0 }).to_string()
}

/// An error that says which of several things went wrong.
pub fn named<T>(row: &str, result: Result<T>) -> Result<T> {
    result.map_err(|error| anyhow!("{row}: {error:#}"))
}
