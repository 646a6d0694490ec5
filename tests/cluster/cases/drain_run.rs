//! What the cases of the drain share: a run that drains and then waits for a command that nobody claims, and what it did.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use super::run::{NODE, RUN, cordon_changes};
use crate::harness::audit::{Entry, Log};
use crate::harness::client::Client;
use crate::harness::maint::{Maint, REPLICAS, story};
use crate::harness::{Cluster, wait};

/// The namespace of these cases.
pub const NAMESPACE: &str = "case-drain";
/// Its pods.
pub const PODS: &str = "/api/v1/namespaces/case-drain/pods";
/// The run.
const RECORD: &str = "drain-1";

/// A run that drains the node.
pub struct Drain {
    pub cluster: Arc<Cluster>,
    pub maint: Maint,
    pub client: Client,
    /// Where it began in the audit log.
    mark: String,
}

impl Drain {
    /// Starts maint and asks it to drain the node. Each of `run` replaces a time of the table `[run]`; `top` are more
    /// settings.
    pub async fn begin(cluster: &Arc<Cluster>, run: &[(&str, u64)], top: &str) -> Result<Self> {
        let mut maint = Maint::install_with(cluster, run, top).await?;
        maint.start(REPLICAS[0], 1)?;
        maint.wait_leader(REPLICAS[0]).await?;
        let (client, mark) = (cluster.any_client().await?, cluster.audit_mark());
        maint.ask(RECORD, NODE, "reboot", "external", json!({ "commandWaits": true })).await?;
        Ok(Self { cluster: cluster.clone(), maint, client, mark })
    }

    /// Waits until nobody is left but this pod, of which the record says these words.
    pub async fn only_left(&self, pod: &str, words: &[&str]) -> Result<Value> {
        let begins = format!("{NAMESPACE}/{pod} ");
        self.record(&format!("only {pod} left"), |record| {
            let told = |line: &str| line.starts_with(&begins) && words.iter().all(|word| line.contains(word));
            record["status"]["drain"]["left"] == 1 && waiting(record).all(told)
        })
        .await
    }

    /// Waits for something of the record while it drains. What it says at the limit is in the error.
    pub async fn record(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        let over = |record: &Value| {
            !matches!(record["status"]["phase"].as_str(), None | Some("" | "Pending" | "Cordoning" | "Draining"))
        };
        wait::until(RUN, what, || async {
            let record = self.maint.record(RECORD).await?;
            if wanted(&record) || over(&record) {
                return Ok(Some((wanted(&record), record)));
            }
            Err(anyhow!("{} {}", record["status"]["drain"], story(&record)))
        })
        .await
        .and_then(|(found, record)| {
            ensure!(found, "the drain was over before {what}: {}", story(&record));
            Ok(record)
        })
    }

    /// The drain goes on by itself to its end: nothing that has to go is left. Then it is cancelled, and the node is as
    /// it was, cordoned once.
    pub async fn ends_drained(&self) -> Result<()> {
        let record = self.maint.wait_phase(RECORD, "Acting", RUN).await?;
        ensure!(record["status"]["drain"]["left"].as_i64().unwrap_or(0) == 0, "{}", record["status"]["drain"]);
        self.maint.verb(1, &["cancel", RECORD, "--as", "a case"], 0).await?;
        let record = self.maint.wait_phase(RECORD, "Cancelled", RUN).await?;
        self.is_put_back(&record).await
    }

    /// The drain ends at its deadline, with these words, and the node is as it was.
    pub async fn fails_at_its_deadline(&self, words: &[&str]) -> Result<()> {
        let record = self.maint.wait_phase(RECORD, "Failed", RUN).await?;
        let (status, told) = (&record["status"], story(&record));
        ensure!(status["outcome"] == "DrainDeadline", "{told}");
        let message = status["message"].as_str().unwrap_or("");
        ensure!(words.iter().all(|word| message.contains(word)), "{words:?} not named: {told}");
        self.is_put_back(&record).await
    }

    async fn is_put_back(&self, record: &Value) -> Result<()> {
        let timeline = record["status"]["timeline"].as_array().context("no timeline")?;
        ensure!(timeline.iter().any(|entry| entry["phase"] == "BackingOut"), "{}", story(record));
        let node = self.client.get(&format!("/api/v1/nodes/{NODE}")).await?;
        ensure!(node["spec"]["unschedulable"].is_null(), "still cordoned: {}", node["spec"]);
        let annotations = &node["metadata"]["annotations"];
        ensure!(annotations["maint.dev/owner"].is_null(), "owner left: {annotations}");
        let log = self.log()?;
        ensure!(cordon_changes(&log, NODE) == (1, 1), "cordons, uncordons: {:?}", cordon_changes(&log, NODE));
        ensure!(log.deletes("pods").is_empty(), "deleted, not evicted: {:?}", log.deletes("pods"));
        Ok(())
    }

    /// What maint asked of the API since the run began.
    fn log(&self) -> Result<Log> {
        self.maint.log_since(&self.mark)
    }

    /// The evictions of a pod, in order, refused ones too. Each must name a uid: without one it could hit another pod.
    pub fn evictions(&self, pod: &str) -> Result<Vec<Entry>> {
        let log = self.log()?;
        let all = log.evictions().into_iter().filter(|entry| entry.namespace == NAMESPACE && entry.name == pod);
        let all: Vec<_> = all.cloned().collect();
        for entry in &all {
            uid_in(entry).with_context(|| format!("an eviction without uid: {entry:?}"))?;
        }
        Ok(all)
    }

    /// The evictions of all other pods, in order.
    pub fn evictions_but(&self, pod: &str) -> Result<Vec<Entry>> {
        let log = self.log()?;
        Ok(log.evictions().into_iter().filter(|entry| entry.name != pod).cloned().collect())
    }

    /// What somebody else than maint wrote, by his user agent.
    pub fn written_by(&self, agent: &str) -> Result<Vec<Entry>> {
        Ok(self.cluster.audit_since(&self.mark)?.by(agent).writes().into_iter().cloned().collect())
    }
}

/// Who is still there, as the record says it.
fn waiting(record: &Value) -> impl Iterator<Item = &str> {
    record["status"]["drain"]["waiting"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The uid that an eviction names.
pub fn uid_in(eviction: &Entry) -> Option<&str> {
    eviction.request["deleteOptions"]["preconditions"]["uid"].as_str()
}

/// Whether the API server took it.
pub fn accepted(eviction: &Entry) -> bool {
    (200..300).contains(&eviction.code)
}

/// A pod on the node without a controller that may be evicted all the same; ends within a second. `over` is laid on its
/// metadata.
pub async fn lone_pod(client: &Client, name: &str, over: &Value) -> Result<Value> {
    let mut metadata = json!({ "name": name, "annotations": { "maint.dev/evict": "true" } });
    for (key, value) in over.as_object().into_iter().flatten() {
        metadata[key] = value.clone();
    }
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": { "nodeName": NODE, "terminationGracePeriodSeconds": 1, "containers": [{ "name": "main", "image": "test" }] },
    });
    client.create(PODS, &pod).await
}

/// Waits until a pod runs and is ready; gives its uid.
pub async fn ready(client: &Client, name: &str) -> Result<String> {
    wait::until(wait::CONTROLLERS, format!("pod {name} to be ready"), || async {
        let pod = client.get(&format!("{PODS}/{name}")).await?;
        let uid = pod["metadata"]["uid"].as_str().map(String::from);
        Ok(uid.filter(|_| crate::harness::objects::is_true(&pod, "Ready")))
    })
    .await
}

/// Pods of Deployment `app`, some of them on the node: their names.
pub async fn app_on_node(cluster: &Cluster) -> Result<Vec<String>> {
    cluster.deployment(NAMESPACE, "app", 6, &json!({})).await?;
    let pods = cluster.any_client().await?.list(&format!("{PODS}?labelSelector=app%3Dapp")).await?;
    let here = pods.iter().filter(|pod| pod["spec"]["nodeName"] == NODE);
    let names: Vec<_> = here.filter_map(|pod| Some(pod["metadata"]["name"].as_str()?.to_string())).collect();
    ensure!(names.len() > 1, "{} pods of the Deployment are on {NODE}", names.len());
    Ok(names)
}
