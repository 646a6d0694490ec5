//! Whole runs by the service: who did what is counted in the audit log of the API servers, never taken from maint.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use super::{Case, case};
use crate::harness::audit::{Entry, Log};
use crate::harness::control_plane::Stop;
use crate::harness::maint::{Maint, REPLICAS, story};
use crate::harness::objects::{ACTIONS_NAMESPACE, is_true};
use crate::harness::proxy::Tunnel;
use crate::harness::wait::Limit;
use crate::harness::{Cluster, wait};

pub fn cases() -> Vec<Case> {
    let mut all = vec![
        case("run::pod_reboots_a_node", pod_reboots),
        case("run::command_reboots_the_node_of_the_leaders_server", command_reboots),
        case("run::service_restart_evicts_nothing", service_restart),
        case("run::leaders_server_is_killed", leaders_server_killed),
        case("run::broken_pair_holds", broken_pair_holds),
    ];
    all.extend(super::run_people::cases());
    all.extend(super::run_leaders::cases());
    all.extend(super::run_words::cases());
    println!("figure cases.run {} cases", all.len());
    all
}

/// 35 s measured for a reboot of 8 s; more when the scheduler was at the node's API server and starts elsewhere.
pub const RUN: Limit = Limit::seconds("run", 150);
/// The node of most cases. The controller-manager is at another server; the scheduler moves when it reboots.
pub const NODE: &str = "worker2";
const PODS: &str = "/api/v1/namespaces/case-run/pods";

/// Pods that must go from a node, by uid: not those of DaemonSets, and not finished ones.
pub async fn going(cluster: &Cluster, node: &str) -> Result<BTreeSet<String>> {
    let pods = cluster.any_client().await?.list(&format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}")).await?;
    let daemon = |pod: &Value| pod["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet";
    let finished = |pod: &Value| matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let uids =
        pods.iter().filter(|pod| !daemon(pod) && !finished(pod)).filter_map(|pod| pod["metadata"]["uid"].as_str());
    Ok(uids.map(String::from).collect())
}

/// A Deployment that is spread over the nodes, a DaemonSet, and a finished pod on the node.
pub async fn workload(cluster: &Cluster, terminate_seconds: u64) -> Result<()> {
    cluster.namespace("case-run").await?;
    let client = cluster.any_client().await?;
    let labels = json!({ "app": "agent" });
    let agent = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "agent" },
        "spec": { "selector": { "matchLabels": labels }, "template": {
            "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "main", "image": "test" }] } } },
    });
    client.create("/apis/apps/v1/namespaces/case-run/daemonsets", &agent).await?;
    let once = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "once", "annotations": { "test/run-seconds": "0" } },
        "spec": { "nodeName": NODE, "restartPolicy": "Never", "containers": [{ "name": "main", "image": "test" }] },
    });
    client.create(PODS, &once).await?;
    let annotations = json!({ "test/terminate": terminate_seconds.to_string() });
    cluster.deployment("case-run", "app", 6, &annotations).await?;
    wait::until(wait::CONTROLLERS, "the agents and the finished pod", || async {
        let agent = client.get("/apis/apps/v1/namespaces/case-run/daemonsets/agent").await?;
        let once = client.get(&format!("{PODS}/once")).await?;
        Ok((agent["status"]["numberReady"] == 3 && once["status"]["phase"] == "Succeeded").then_some(()))
    })
    .await?;
    let app = client.list(&format!("{PODS}?labelSelector=app%3Dapp")).await?;
    ensure!(app.iter().any(|pod| pod["spec"]["nodeName"] == NODE), "no pod of the Deployment is on {NODE}");
    Ok(())
}

/// The uids that evictions named, each of which must be one of `going`; a refused one counts too.
pub fn evicted(log: &Log, going: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    let mut uids = BTreeSet::new();
    for entry in log.evictions() {
        let uid = entry.request["deleteOptions"]["preconditions"]["uid"].as_str();
        let uid = uid.with_context(|| format!("an eviction without uid: {entry:?}"))?;
        ensure!(going.contains(uid), "evicted a pod that was not to go: {entry:?}");
        uids.insert(uid.to_string());
    }
    Ok(uids)
}

/// How often the node became unschedulable, and schedulable again. A new leader says `true` once more when it writes
/// its term into the owner annotation; that is no second cordon.
pub fn cordon_changes(log: &Log, node: &str) -> (usize, usize) {
    let (mut cordoned, mut cordons, mut uncordons) = (false, 0, 0);
    let ours = |entry: &&Entry| entry.stage == "ResponseComplete" && entry.code == 200 && entry.name == node;
    for wanted in log.0.iter().filter(ours).filter_map(Entry::sets_unschedulable) {
        match (cordoned, wanted) {
            (false, true) => cordons += 1,
            (true, false) => uncordons += 1,
            _ => {}
        }
        cordoned = wanted;
    }
    (cordons, uncordons)
}

/// Successful creations of action pods.
pub fn reboots(log: &Log) -> usize {
    let created =
        |entry: &&&Entry| entry.resource == "pods" && entry.verb == "create" && entry.namespace == ACTIONS_NAMESPACE;
    log.writes().iter().filter(created).count()
}

/// The node as a run leaves it: schedulable, without owner, its boot proven.
pub async fn ensure_released(cluster: &Cluster, node: &str) -> Result<()> {
    let object = cluster.any_client().await?.get(&format!("/api/v1/nodes/{node}")).await?;
    let annotations = &object["metadata"]["annotations"];
    ensure!(object["spec"]["unschedulable"].is_null(), "still cordoned: {}", object["spec"]);
    ensure!(annotations["maint.dev/owner"].is_null(), "owner left: {annotations}");
    let proven: Value = serde_json::from_str(annotations["maint.dev/proven"].as_str().unwrap_or("{}"))?;
    ensure!(proven["bootID"] == cluster.boot_id(node)?.as_str(), "proven: {proven}");
    Ok(())
}

/// A whole reboot: proof in the record, one boot, one cordon, one uncordon, evictions of those that were to go.
pub fn ensure_rebooted(record: &Value, before: &str, after: &str, planned: usize) -> Result<()> {
    let status = &record["status"];
    let told = story(record);
    ensure!(status["outcome"] == "Proven", "{told}");
    ensure!(
        status["node"]["bootIdBefore"] == before && status["node"]["bootIdAfter"] == after,
        "{} {told}",
        status["node"]
    );
    ensure!(before != after, "the boot ID is the old one: {told}");
    ensure!(status["matrix"] == json!({ "before": "9/9", "after": "9/9" }), "matrix {}", status["matrix"]);
    ensure!(
        status["drain"]["planned"] == planned && status["drain"]["left"].as_i64().unwrap_or(0) == 0,
        "{}",
        status["drain"]
    );
    ensure!(status["dns"]["minReady"].as_i64().is_some_and(|ready| ready >= 1), "DNS {}", status["dns"]);
    let mut phases: Vec<&str> = Vec::new();
    for entry in status["timeline"].as_array().into_iter().flatten() {
        let phase = entry["phase"].as_str().unwrap_or("");
        if phases.last() != Some(&phase) {
            phases.push(phase);
        }
    }
    let wanted = [
        "Pending",
        "Cordoning",
        "Draining",
        "Acting",
        "Returning",
        "Verifying",
        "Uncordoning",
        "Settling",
        "Succeeded",
    ];
    ensure!(phases == wanted, "{told}");
    Ok(())
}

/// After its end a record has no finalizer, and its action pod is gone.
pub async fn ensure_tidy(cluster: &Cluster, maint: &Maint, name: &str) -> Result<()> {
    let client = cluster.any_client().await?;
    wait::until(wait::SHORT, format!("record {name} to be let go"), || async {
        let record = maint.record(name).await?;
        let pods = client.list(&format!("/api/v1/namespaces/{ACTIONS_NAMESPACE}/pods")).await?;
        let left = (record["metadata"]["finalizers"].clone(), pods.len());
        if left == (Value::Null, 0) { Ok(Some(())) } else { Err(anyhow!("finalizers and pods left: {left:?}")) }
    })
    .await
}

/// `maint reboot` by a kubeconfig that names the very API server that goes down with the node.
async fn pod_reboots(cluster: Arc<Cluster>) -> Result<()> {
    workload(&cluster, 1).await?;
    let maint = Maint::up(&cluster, &[], [1, 3]).await?;
    let (before, going) = (cluster.boot_id(NODE)?, going(&cluster, NODE).await?);
    let (mark, start) = (cluster.audit_mark(), Instant::now());
    let words = ["reboot", NODE, "--action", "pod", "--yes", "--as", "a case", "--reason", "a new kernel"];
    let told = maint.verb(2, &words, 0).await?;
    println!("\nfigure run_pod_reboot {:.1} s", start.elapsed().as_secs_f64());
    let name = maint.only_record().await?;
    ensure!(told.contains(&name), "{told}");
    let record = maint.record(&name).await?;
    ensure_rebooted(&record, &before, &cluster.boot_id(NODE)?, going.len())?;
    ensure!(record["status"]["warnings"].is_null(), "warnings: {}", record["status"]["warnings"]);
    ensure_released(&cluster, NODE).await?;
    ensure_tidy(&cluster, &maint, &name).await?;
    let log = cluster.audit_since(&mark)?;
    ensure_once(&log, 1)?;
    ensure!(evicted(&log, &going)? == going, "not all were evicted");
    ensure!(log.deletes("pods").iter().all(|entry| entry.namespace == ACTIONS_NAMESPACE), "{:?}", log.deletes("pods"));
    // A standby reads, and looks at the Lease.
    let standby = maint.log_since(&mark)?.by(&Maint::user(REPLICAS[1]));
    ensure!(standby.writes().is_empty(), "the standby wrote: {:?}", standby.writes());
    let client = cluster.any_client().await?;
    wait::until(wait::CONTROLLERS, "the moved pods", || async {
        let app = client.get("/apis/apps/v1/namespaces/case-run/deployments/app").await?;
        Ok((app["status"]["readyReplicas"] == 6).then_some(()))
    })
    .await?;
    for pod in client.list(PODS).await? {
        let uid = pod["metadata"]["uid"].as_str().unwrap_or("");
        ensure!(!going.contains(uid), "still there: {}", pod["metadata"]["name"]);
    }
    maint.wait_told(&name, &["started", "finished"]).await?;
    let texts = maint.webhooks.texts();
    ensure!(texts[0].contains(NODE) && texts[0].contains("a case: a new kernel"), "{texts:?}");
    ensure!(texts[1].contains("matrix 9/9 -&gt; 9/9"), "{texts:?}");
    let pending = maint.record(&name).await?["status"]["outbox"][0]["pending"].clone();
    ensure!(pending[0]["receiver"] == "dead", "the dead receiver is not named: {pending}");
    Ok(())
}

/// One cordon, one uncordon, and so many action pods, by whomever.
fn ensure_once(log: &Log, action_pods: usize) -> Result<()> {
    let counts = (log.cordons(NODE).len(), log.uncordons(NODE).len(), reboots(log));
    ensure!(counts == (1, 1, action_pods), "cordons, uncordons, action pods: {counts:?}");
    Ok(())
}

/// A command that `maint run` starts: it says that it was called, and ends when it may.
struct Called {
    asked: PathBuf,
    done: PathBuf,
}

impl Called {
    fn new(cluster: &Cluster, name: &str) -> Self {
        let file = |end: &str| cluster.folder().join(format!("{name}-{end}"));
        Self { asked: file("asked"), done: file("done") }
    }

    fn script(&self) -> String {
        let (asked, done) = (self.asked.display(), self.done.display());
        format!("echo called >> {asked}; while [ ! -e {done} ]; do sleep 0.1; done")
    }

    async fn wait(&self) -> Result<()> {
        wait::until(RUN, "the command to be called", || async { Ok(self.asked.exists().then_some(())) }).await
    }

    /// Lets it end; then it must have been called once.
    fn end(&self) -> Result<()> {
        fs::write(&self.done, "")?;
        let calls = fs::read_to_string(&self.asked)?;
        ensure!(calls == "called\n", "called more than once: {calls:?}");
        Ok(())
    }
}

/// `maint run -- COMMAND`, where the leader, too, talks to the API server that goes down: it goes on over another one,
/// in its term.
async fn command_reboots(cluster: Arc<Cluster>) -> Result<()> {
    workload(&cluster, 1).await?;
    let maint = Maint::up(&cluster, &[], [2, 3]).await?;
    let leader = maint.leader().await?;
    let (before, going, mark) = (cluster.boot_id(NODE)?, going(&cluster, NODE).await?, cluster.audit_mark());
    let called = Called::new(&cluster, "command");
    let script = called.script();
    let words = ["run", NODE, "--scope", "reboot", "--yes", "--as", "a case", "--", "sh", "-c", &script];
    let running = maint.verb(1, &words, 0);
    let acting = async {
        called.wait().await?;
        let name = maint.only_record().await?;
        maint.wait_phase(&name, "Returning", wait::SHORT).await?;
        cluster.reboot(NODE, 6).await?;
        called.end()?;
        Ok(name)
    };
    let (_, name) = tokio::try_join!(running, acting)?;
    let record = maint.record(&name).await?;
    ensure_rebooted(&record, &before, &cluster.boot_id(NODE)?, going.len())?;
    ensure_released(&cluster, NODE).await?;
    called.end()?;
    let log = cluster.audit_since(&mark)?;
    ensure_once(&log, 0)?;
    ensure!(evicted(&log, &going)? == going, "not all were evicted");
    ensure!(maint.leader().await? == leader, "another leader or term: {:?}, was {leader:?}", maint.leader().await?);
    let elsewhere = |entry: &&Entry| entry.server != 2 && entry.resource == "maintenances/status";
    ensure!(maint.log_since(&mark)?.writes().into_iter().any(|entry| elsewhere(&entry)), "no write past server 2");
    maint.wait_told(&name, &["started", "finished"]).await
}

/// The service is restarted by a command: cordon only, nothing is evicted, the boot ID stays.
async fn service_restart(cluster: Arc<Cluster>) -> Result<()> {
    workload(&cluster, 1).await?;
    let maint = Maint::up(&cluster, &[], [1, 3]).await?;
    let (before, mark) = (cluster.boot_id(NODE)?, cluster.audit_mark());
    let called = Called::new(&cluster, "restart");
    let script = called.script();
    let words = ["run", NODE, "--scope", "service-restart", "--yes", "--as", "a case", "--", "sh", "-c", &script];
    let running = maint.verb(1, &words, 0);
    let acting = async {
        called.wait().await?;
        let node = cluster.any_client().await?.get(&format!("/api/v1/nodes/{NODE}")).await?;
        ensure!(node["spec"]["unschedulable"] == true && is_true(&node, "Ready"), "{}", node["spec"]);
        cluster.stop_apiserver(2, Stop::Term).await?;
        cluster.start_apiserver(2)?;
        called.end()
    };
    tokio::try_join!(running, acting)?;
    let name = maint.only_record().await?;
    let record = maint.record(&name).await?;
    ensure!(record["status"]["outcome"] == "Proven", "{}", story(&record));
    ensure!(cluster.boot_id(NODE)? == before, "it booted");
    ensure_released(&cluster, NODE).await?;
    let log = cluster.audit_since(&mark)?;
    ensure!(log.evictions().is_empty(), "evictions: {:?}", log.evictions());
    ensure!(log.deletes("pods").is_empty(), "{:?}", log.deletes("pods"));
    ensure_once(&log, 0)?;
    maint.wait_told(&name, &["started", "finished"]).await
}

/// The leader's own API server is killed in the middle of a run, and it is not the node's: the run goes on.
async fn leaders_server_killed(cluster: Arc<Cluster>) -> Result<()> {
    let maint = Maint::up(&cluster, &[], [3, 1]).await?;
    let leader = maint.leader().await?;
    maint.ask("restart-2", NODE, "service-restart", "external", json!({})).await?;
    maint.wait_phase("restart-2", "Returning", RUN).await?;
    cluster.stop_apiserver(3, Stop::Kill).await?;
    let mark = cluster.audit_mark();
    maint.verb(1, &["done", "restart-2", "--as", "a case"], 0).await?;
    maint.wait_phase("restart-2", "Verifying", wait::CONTROLLERS).await?;
    let log = maint.log_since(&mark)?.by(&Maint::user(REPLICAS[0]));
    ensure!(log.writes().iter().any(|entry| entry.resource == "maintenances/status" && entry.server != 3), "{log:?}");
    cluster.start_apiserver(3)?;
    let record = maint.wait_phase("restart-2", "Succeeded", RUN).await?;
    ensure!(record["status"]["outcome"] == "Proven", "{}", story(&record));
    ensure!(maint.leader().await? == leader, "another leader or term: {:?}, was {leader:?}", maint.leader().await?);
    ensure_released(&cluster, NODE).await?;
    maint.wait_told("restart-2", &["started", "go", "finished"]).await
}

/// One server cannot reach the node after its reboot: held, cordoned, nothing is touched. Mended, it ends by itself,
/// although another node has died meanwhile.
async fn broken_pair_holds(cluster: Arc<Cluster>) -> Result<()> {
    let maint = Maint::up(&cluster, &[("verify_timeout_seconds", 20)], [1, 3]).await?;
    let start_mark = cluster.audit_mark();
    maint.verb(1, &["reboot", NODE, "--action", "pod", "--yes", "--as", "a case", "--detach"], 0).await?;
    let name = maint.only_record().await?;
    maint.wait_phase(&name, "Returning", RUN).await?;
    cluster.cut(1, NODE, Tunnel::Cut)?;
    let record = maint.wait_phase(&name, "Held", RUN).await?;
    ensure!(record["status"]["outcome"] == "KubeletUnreachable", "{}", story(&record));
    let message = record["status"]["message"].as_str().unwrap_or("");
    ensure!(message.contains("worker1") && message.contains(NODE), "the pair is not named: {message}");
    maint.wait_told(&name, &["started", "held"]).await?;
    ensure!(maint.webhooks.texts()[1].contains("HELD"), "{:?}", maint.webhooks.texts());
    // Another node dies. Its absence takes some 16 s to be seen, in which nothing but our own objects is written.
    let mark = cluster.audit_mark();
    cluster.power_off("worker3").await?;
    let client = cluster.client(1).await?;
    let shown = maint.verb(1, &["show", &name], 0).await?;
    ensure!(shown.contains("KubeletUnreachable") && shown.contains("maint resume"), "{shown}");
    let status = maint.verb(1, &["status"], 5).await?;
    ensure!(status.contains(&name) && status.contains("HELD"), "{status}");
    wait::until(wait::NODE_STATE, "worker3 to be gone", || async {
        Ok((!is_true(&client.get("/api/v1/nodes/worker3").await?, "Ready")).then_some(()))
    })
    .await?;
    let record = maint.record(&name).await?;
    ensure!(record["status"]["phase"] == "Held", "{}", story(&record));
    let node = client.get(&format!("/api/v1/nodes/{NODE}")).await?;
    ensure!(node["spec"]["unschedulable"] == true, "uncordoned while held");
    ensure_only_own_writes(&maint.log_since(&mark)?)?;
    cluster.mend(1, NODE)?;
    wait::until(wait::CONTROLLERS, "the uncordon although worker3 is gone", || async {
        let node = client.get(&format!("/api/v1/nodes/{NODE}")).await?;
        if node["spec"]["unschedulable"].is_null() {
            return Ok(Some(()));
        }
        Err(anyhow!("{}", story(&maint.record(&name).await?)))
    })
    .await?;
    cluster.power_on("worker3").await?;
    let record = maint.wait_phase(&name, "Succeeded", RUN).await?;
    ensure!(record["status"]["outcome"] == "Proven", "{}", story(&record));
    ensure_released(&cluster, NODE).await?;
    ensure_once(&cluster.audit_since(&start_mark)?, 1)?;
    maint.wait_told(&name, &["started", "held", "finished"]).await
}

/// Nothing but records, Events, the Lease and `maint-state`.
pub fn ensure_only_own_writes(log: &Log) -> Result<()> {
    for entry in log.writes() {
        let own = matches!(entry.resource.as_str(), "maintenances" | "maintenances/status" | "events" | "leases")
            || (entry.resource == "configmaps" && entry.name == "maint-state");
        ensure!(own, "written while held: {entry:?}");
    }
    ensure!(log.evictions().is_empty(), "evictions while held");
    Ok(())
}
