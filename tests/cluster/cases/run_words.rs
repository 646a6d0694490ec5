//! What people say while a run is at work: resume, halt and unhalt, hold and release. And what is told of it: Events as
//! kubectl shows them, and the leader's memory.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::run::{
    NODE, RUN, cordon_changes, ensure_only_own_writes, ensure_released, ensure_tidy, evicted, going, reboots, workload,
};
use super::{Case, case};
use crate::harness::audit::Log;
use crate::harness::maint::{Maint, story};
use crate::harness::proxy::Tunnel;
use crate::harness::{Cluster, wait};

pub fn cases() -> Vec<Case> {
    vec![
        case("run::resume_proves_a_held_run_anew", resume_held),
        case("run::halt_while_draining", halt_draining),
        case("run::halt_while_held", halt_held),
        case("run::hold_before_commit", hold_before_commit),
        case("run::hold_after_commit", hold_after_commit),
    ]
}

/// Long enough for another look, which is due every 10 s.
const ANOTHER_LOOK: Duration = Duration::from_secs(13);

/// Nothing shall happen: the record stays in its phase while it is looked at again.
async fn stays(maint: &Maint, name: &str, phase: &str) -> Result<()> {
    wait::holds(ANOTHER_LOOK, || async {
        let record = maint.record(name).await?;
        ensure!(record["status"]["phase"] == phase, "it moved: {}", story(&record));
        Ok(())
    })
    .await
}

/// A run whose node one API server cannot reach after its reboot, up to Held.
async fn broken_run(cluster: &Cluster, maint: &Maint) -> Result<String> {
    maint.verb(1, &["reboot", NODE, "--action", "pod", "--yes", "--as", "a case", "--detach"], 0).await?;
    let name = maint.only_record().await?;
    maint.wait_phase(&name, "Returning", RUN).await?;
    cluster.cut(1, NODE, Tunnel::Cut)?;
    maint.wait_phase(&name, "Held", RUN).await?;
    Ok(name)
}

/// Cordons, uncordons and action pods.
fn counts(log: &Log) -> (usize, usize, usize) {
    let (cordons, uncordons) = cordon_changes(log, NODE);
    (cordons, uncordons, reboots(log))
}

/// `maint resume` while the pair is still broken: proven anew, not uncordoned, held again. Mended and resumed, it ends.
async fn resume_held(cluster: Arc<Cluster>) -> Result<()> {
    let maint = Maint::up(&cluster, &[("verify_timeout_seconds", 15)], [1, 3]).await?;
    let mark = cluster.audit_mark();
    let name = broken_run(&cluster, &maint).await?;
    let held = cluster.audit_mark();
    maint.verb(1, &["resume", &name, "--as", "a case"], 0).await?;
    let record = maint.wait_phase(&name, "Verifying", wait::SHORT).await?;
    ensure!(story(&record).contains("resumed it: proven anew"), "{}", story(&record));
    maint.wait_phase(&name, "Held", RUN).await?;
    ensure_only_own_writes(&maint.log_since(&held)?)?;
    maint.verb(1, &["resume", &name, "--as", "a case"], 0).await?;
    maint.wait_phase(&name, "Verifying", wait::SHORT).await?;
    cluster.mend(1, NODE)?;
    let record = maint.wait_phase(&name, "Succeeded", RUN).await?;
    ensure!(record["status"]["outcome"] == "Proven", "{}", story(&record));
    ensure_released(&cluster, NODE).await?;
    ensure!(counts(&cluster.audit_since(&mark)?) == (1, 1, 1), "{:?}", counts(&cluster.audit_since(&mark)?));
    maint.wait_told(&name, &["started", "held", "held", "finished"]).await?;
    told_by_events(&cluster, &maint, &name).await?;
    remembered(&cluster, &maint, &mark).await
}

/// Pods that end slowly, one at a time.
async fn slow_drain(cluster: &Cluster) -> Result<()> {
    workload(cluster, 4).await?;
    let budget = json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "app-budget" },
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": "app" } } } });
    let budgets = "/apis/policy/v1/namespaces/case-run/poddisruptionbudgets";
    let client = cluster.any_client().await?;
    client.create(budgets, &budget).await?;
    wait::until(wait::CONTROLLERS, "the budget to be counted", || async {
        Ok((client.get(&format!("{budgets}/app-budget")).await?["status"]["disruptionsAllowed"] == 1).then_some(()))
    })
    .await
}

/// Halted in the middle of a drain: nothing of ours happens any more, the node stays as it is; unhalted it goes on.
async fn halt_draining(cluster: Arc<Cluster>) -> Result<()> {
    slow_drain(&cluster).await?;
    let maint = Maint::up(&cluster, &[], [1, 3]).await?;
    let (going, mark) = (going(&cluster, NODE).await?, cluster.audit_mark());
    maint.ask("halted-1", NODE, "reboot", "pod", json!({})).await?;
    maint.wait_phase("halted-1", "Draining", RUN).await?;
    maint.verb(1, &["halt", "--reason", "a storm", "--as", "a case"], 0).await?;
    let halted = |record: &Value| record["status"]["haltedSince"].is_string();
    let record = maint.wait_record("halted-1", "the halt", RUN, halted).await?;
    ensure!(record["status"]["phase"] == "Draining", "halted too late: {}", story(&record));
    let quiet = cluster.audit_mark();
    stays(&maint, "halted-1", "Draining").await?;
    ensure_only_own_writes(&maint.log_since(&quiet)?)?;
    let node = cluster.any_client().await?.get(&format!("/api/v1/nodes/{NODE}")).await?;
    ensure!(node["spec"]["unschedulable"] == true, "put back under a halt");
    maint.verb(1, &["unhalt"], 0).await?;
    let record = maint.wait_phase("halted-1", "Succeeded", RUN).await?;
    ensure!(story(&record).contains("goes on after a halt of"), "{}", story(&record));
    ensure_released(&cluster, NODE).await?;
    ensure_tidy(&cluster, &maint, "halted-1").await?;
    let log = cluster.audit_since(&mark)?;
    ensure!(evicted(&log, &going)? == going, "not all were evicted");
    ensure!(counts(&log) == (1, 1, 1), "{:?}", counts(&log));
    let reasons = event_reasons(&cluster, &record).await?;
    for wanted in ["MaintenanceHalted", "MaintenanceUnhalted"] {
        ensure!(reasons.iter().any(|reason| reason == wanted), "no {wanted} in {reasons:?}");
    }
    maint.wait_told("halted-1", &["started", "finished"]).await
}

/// Halted while held: although it heals, nothing moves until unhalt.
async fn halt_held(cluster: Arc<Cluster>) -> Result<()> {
    let maint = Maint::up(&cluster, &[("verify_timeout_seconds", 15)], [1, 3]).await?;
    let mark = cluster.audit_mark();
    let name = broken_run(&cluster, &maint).await?;
    maint.verb(1, &["halt", "--reason", "a storm", "--as", "a case"], 0).await?;
    let halted = |record: &Value| record["status"]["message"].as_str().is_some_and(|text| text.contains("halted by"));
    maint.wait_record(&name, "the halt", RUN, halted).await?;
    let quiet = cluster.audit_mark();
    cluster.mend(1, NODE)?;
    stays(&maint, &name, "Held").await?;
    ensure_only_own_writes(&maint.log_since(&quiet)?)?;
    maint.verb(1, &["unhalt"], 0).await?;
    let record = maint.wait_phase(&name, "Succeeded", RUN).await?;
    ensure!(record["status"]["outcome"] == "Proven", "{}", story(&record));
    ensure_released(&cluster, NODE).await?;
    ensure!(counts(&cluster.audit_since(&mark)?) == (1, 1, 1), "{:?}", counts(&cluster.audit_since(&mark)?));
    maint.wait_told(&name, &["started", "held", "finished"]).await
}

/// On hold in the middle of a drain: called off, and the cordon stays for whoever holds the node.
async fn hold_before_commit(cluster: Arc<Cluster>) -> Result<()> {
    slow_drain(&cluster).await?;
    let maint = Maint::up(&cluster, &[], [1, 3]).await?;
    let (going, mark) = (going(&cluster, NODE).await?, cluster.audit_mark());
    maint.ask("hold-1", NODE, "reboot", "pod", json!({})).await?;
    maint.wait_phase("hold-1", "Draining", RUN).await?;
    maint.verb(1, &["hold", NODE, "--reason", "mine", "--as", "a case"], 0).await?;
    let record = maint.wait_phase("hold-1", "Cancelled", RUN).await?;
    ensure!(record["status"]["outcome"] == "NodeOnHold", "{}", story(&record));
    ensure_tidy(&cluster, &maint, "hold-1").await?;
    let client = cluster.any_client().await?;
    let node = client.get(&format!("/api/v1/nodes/{NODE}")).await?;
    ensure!(node["spec"]["unschedulable"] == true, "the cordon of a node on hold was taken off");
    ensure!(node["metadata"]["annotations"]["maint.dev/owner"].is_null(), "owner left");
    let log = cluster.audit_since(&mark)?;
    ensure!(counts(&log) == (1, 0, 0), "{:?}", counts(&log));
    evicted(&log, &going)?;
    maint.verb(1, &["release", NODE], 0).await?;
    let node = client.get(&format!("/api/v1/nodes/{NODE}")).await?;
    ensure!(node["metadata"]["annotations"]["maint.dev/hold"].is_null(), "still on hold");
    ensure!(node["spec"]["unschedulable"] == true, "a release is no uncordon");
    maint.wait_told("hold-1", &["started", "backed-out"]).await
}

/// On hold after commit: proven, then held until it is released.
async fn hold_after_commit(cluster: Arc<Cluster>) -> Result<()> {
    let maint = Maint::up(&cluster, &[], [1, 3]).await?;
    let mark = cluster.audit_mark();
    maint.ask("hold-2", NODE, "service-restart", "external", json!({})).await?;
    maint.wait_phase("hold-2", "Returning", RUN).await?;
    maint.verb(1, &["hold", NODE, "--reason", "mine", "--as", "a case"], 0).await?;
    maint.verb(1, &["done", "hold-2", "--as", "a case"], 0).await?;
    let record = maint.wait_phase("hold-2", "Held", RUN).await?;
    ensure!(record["status"]["outcome"] == "NodeOnHold", "{}", story(&record));
    let quiet = cluster.audit_mark();
    stays(&maint, "hold-2", "Held").await?;
    ensure_only_own_writes(&maint.log_since(&quiet)?)?;
    ensure!(counts(&cluster.audit_since(&mark)?) == (1, 0, 0), "{:?}", counts(&cluster.audit_since(&mark)?));
    maint.verb(1, &["release", NODE], 0).await?;
    let record = maint.wait_phase("hold-2", "Succeeded", RUN).await?;
    ensure!(record["status"]["outcome"] == "Proven", "{}", story(&record));
    ensure_released(&cluster, NODE).await?;
    ensure!(counts(&cluster.audit_since(&mark)?) == (1, 1, 0), "{:?}", counts(&cluster.audit_since(&mark)?));
    maint.wait_told("hold-2", &["started", "go", "held", "finished"]).await
}

/// Reasons of the Events that name a record as kubectl asks for them.
async fn event_reasons(cluster: &Cluster, record: &Value) -> Result<Vec<String>> {
    let uid = record["metadata"]["uid"].as_str().context("a record without uid")?;
    let path = format!("/api/v1/namespaces/default/events?fieldSelector=involvedObject.uid%3D{uid}");
    let events = cluster.any_client().await?.list(&path).await?;
    Ok(events.iter().filter_map(|event| event["reason"].as_str()).map(String::from).collect())
}

/// What `kubectl describe` shows.
async fn describe(cluster: &Cluster, kind: &str, name: &str) -> Result<String> {
    let mut command = Command::new(cluster.kubectl());
    command.arg("--kubeconfig").arg(cluster.kubeconfig_path()).args(["describe", kind, name]);
    let output = cluster.run_in_hub(command, RUN).await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "kubectl describe: {}", String::from_utf8_lossy(&output.stderr));
    Ok(text)
}

/// Each phase is told once, of the run and of the node, and kubectl shows both.
async fn told_by_events(cluster: &Cluster, maint: &Maint, name: &str) -> Result<()> {
    let record = maint.record(name).await?;
    let wanted =
        ["MaintenanceWished", "MaintenanceStarted", "MaintenanceCommitted", "MaintenanceHeld", "MaintenanceFinished"];
    wait::until(wait::SHORT, "the Events of the run", || async {
        let reasons = event_reasons(cluster, &record).await?;
        let missing: Vec<_> = wanted.iter().filter(|one| !reasons.iter().any(|reason| reason == *one)).collect();
        ensure!(missing.is_empty(), "no {missing:?} in {reasons:?}");
        Ok(Some(()))
    })
    .await?;
    let reasons = event_reasons(cluster, &record).await?;
    let count = |wanted: &str| reasons.iter().filter(|reason| *reason == wanted).count();
    ensure!((count("MaintenanceHeld"), count("MaintenanceFinished")) == (2, 1), "{reasons:?}");
    println!("\nfigure events_of_a_held_run {} Events", reasons.len() * 2);
    for (kind, what) in [("node", NODE), ("maintenances.maint.dev", name)] {
        let text = describe(cluster, kind, what).await?;
        let shown = wanted.iter().all(|reason| text.contains(reason)) && text.contains("maint.dev/maint");
        ensure!(shown, "kubectl describe {kind} {what} does not show them: {text}");
    }
    Ok(())
}

/// The leader remembers the servers and the green matrix, and wrote at most once a minute.
async fn remembered(cluster: &Cluster, maint: &Maint, mark: &str) -> Result<()> {
    let path = "/api/v1/namespaces/maint/configmaps/maint-state";
    let client = cluster.any_client().await?;
    // The first writes are a minute apart.
    let state = wait::until(RUN, "the leader's memory", || async {
        let state = client.find(path).await?.context("no ConfigMap maint-state")?;
        Ok(state["data"]["last-green-matrix"].is_string().then_some(state))
    })
    .await?;
    let servers: Value = serde_json::from_str(state["data"]["api-servers"].as_str().unwrap_or("null"))?;
    let names: Vec<&String> = servers.as_object().context("no servers")?.keys().collect();
    ensure!(names == ["worker1", "worker2", "worker3"], "{servers}");
    let matrix: Value = serde_json::from_str(state["data"]["last-green-matrix"].as_str().unwrap_or("null"))?;
    ensure!(matrix["line"] == "9/9", "{matrix}");
    let log = maint.log_since(mark)?;
    let writes = log.writes();
    let times: Vec<&str> =
        writes.iter().filter(|entry| entry.resource == "configmaps").map(|entry| entry.time.as_str()).collect();
    for pair in times.windows(2) {
        let [first, second] = pair else { continue };
        let (first, second): (jiff::Timestamp, jiff::Timestamp) = (first.parse()?, second.parse()?);
        ensure!(second.duration_since(first).as_secs() >= 59, "written twice in a minute: {times:?}");
    }
    Ok(())
}
