//! The node's pods: they get an address and become ready, end when deleted, finish, or make the node reboot.
//!
//! Annotations steer a pod: `test/start-seconds` until it runs (0.2), `test/terminate` seconds that it needs to end (0.3),
//! `test/run-seconds` after which it has succeeded, `test/finish: "true"` makes a running one succeed,
//! `test/ready: "false"` keeps it unready, `test/reboot-seconds` (8) for how long a pod that reboots its node keeps it down.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::super::client::Patch;
use super::super::now;
use super::{RebootRequest, Shared, condition};

/// Pods in here reboot their node, also without the annotation.
const ACTIONS_NAMESPACE: &str = "maint-actions";
const ACTION_ANNOTATION: &str = "maint.dev/reboot-action";

/// A server ends a watch after 55 s; one that does not is frozen.
const SILENCE: Duration = Duration::from_secs(60);

/// What this session has in hand, by uid.
#[derive(Default)]
struct Known {
    started: HashSet<String>,
    ending: HashSet<String>,
}

/// Follows the node's pods until the session ends.
pub(super) async fn run(shared: Arc<Shared>, restarted: bool) {
    let mut known = Known::default();
    let mut tasks = JoinSet::new();
    let mut turn = 0;
    loop {
        // Only the pods that were there before the boot are restarted; later lists find them started.
        match follow(&shared, turn, restarted, &mut known, &mut tasks).await {
            // After each watch its own server gets another chance.
            Ok(()) => turn = 0,
            Err(_) => turn += 1,
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn follow(
    shared: &Arc<Shared>,
    turn: usize,
    restarted: bool,
    known: &mut Known,
    tasks: &mut JoinSet<()>,
) -> Result<()> {
    let server = &shared.servers[turn % shared.servers.len()];
    let path = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{}", shared.name);
    let mut list = server.get(&path).await?;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap_or("0").to_string();
    for pod in list["items"].as_array_mut().map(std::mem::take).unwrap_or_default() {
        handle(shared, pod, restarted, known, tasks);
    }
    let mut events = server.watch(&format!("{path}&watch=true&timeoutSeconds=55&resourceVersion={version}")).await?;
    loop {
        tokio::select! {
            event = tokio::time::timeout(SILENCE, events.next()) => match event.context("the watch did not end in time")?? {
                None => return Ok(()),
                Some(mut event) => match event["type"].as_str() {
                    Some("ADDED" | "MODIFIED") => handle(shared, event["object"].take(), false, known, tasks),
                    Some("DELETED") => {
                        let uid = text(&event["object"]["metadata"]["uid"]).to_string();
                        known.started.remove(&uid);
                        known.ending.remove(&uid);
                    }
                    _ => bail!("the watch ended with {event}"),
                },
            },
            Some(_) = tasks.join_next() => {}
        }
    }
}

fn handle(shared: &Arc<Shared>, pod: Value, restarted: bool, known: &mut Known, tasks: &mut JoinSet<()>) {
    let uid = text(&pod["metadata"]["uid"]).to_string();
    let shared = shared.clone();
    let phase = text(&pod["status"]["phase"]);
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        if known.ending.insert(uid) {
            tasks.spawn(async move { end(&shared, &pod).await });
        }
    } else if matches!(phase, "Succeeded" | "Failed") {
    } else if known.started.insert(uid) {
        tasks.spawn(async move { start(&shared, pod, restarted).await });
    } else if phase == "Running" && annotation(&pod, "test/finish") == Some("true") {
        tasks.spawn(async move { succeed(&shared, &pod).await });
    } else if phase == "Running" && is_ready(&pod) != wanted_ready(&pod) {
        // The node was declared unreachable and its pods unready, or the annotation changed.
        tasks.spawn(async move { write_running(&shared, &pod, 0).await });
    }
}

async fn start(shared: &Shared, pod: Value, restarted: bool) {
    let uid = text(&pod["metadata"]["uid"]);
    if shared.has_acted(uid) {
        return succeed(shared, &pod).await;
    }
    let running = text(&pod["status"]["phase"]) == "Running";
    if !running {
        tokio::time::sleep(seconds(&pod, "test/start-seconds", 0.2)).await;
    }
    write_running(shared, &pod, u64::from(running && restarted)).await;
    if is_action(&pod) {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if shared.acts(uid) {
            let seconds = seconds(&pod, "test/reboot-seconds", 8.0).as_secs();
            shared.reboots.send(RebootRequest { node: shared.index, seconds }).ok();
        }
    } else if annotation(&pod, "test/run-seconds").is_some() {
        tokio::time::sleep(seconds(&pod, "test/run-seconds", 1.0)).await;
        succeed(shared, &pod).await;
    }
}

async fn write_running(shared: &Shared, pod: &Value, restarts: u64) {
    let now = now();
    let status = &pod["status"];
    let host_network = pod["spec"]["hostNetwork"] == true;
    // A second address would be merged into podIPs and be refused.
    let ip = match status["podIP"].as_str() {
        Some(ip) => ip.to_string(),
        None if host_network => shared.address(),
        None => shared.new_pod_ip(),
    };
    let ready = wanted_ready(pod);
    let containers: Vec<_> = entries(&pod["spec"]["containers"])
        .map(|container| {
            let before = entries(&status["containerStatuses"]).find(|old| old["name"] == container["name"]);
            let count = before.and_then(|old| old["restartCount"].as_u64()).unwrap_or(0) + restarts;
            let began = before.filter(|_| restarts == 0).and_then(|old| old["state"]["running"]["startedAt"].as_str()).unwrap_or(&now);
            json!({ "name": container["name"], "image": container["image"], "imageID": "", "ready": ready, "started": true,
                "restartCount": count, "state": { "running": { "startedAt": began } } })
        })
        .collect();
    let conditions: Vec<_> = ["Initialized", "PodReadyToStartContainers", "PodScheduled", "ContainersReady", "Ready"]
        .iter()
        .map(|kind| {
            let wanted = ready || !matches!(*kind, "ContainersReady" | "Ready");
            let since = entries(&status["conditions"])
                .find(|old| old["type"] == *kind && (old["status"] == "True") == wanted)
                .and_then(|old| old["lastTransitionTime"].as_str());
            condition(kind, wanted, since.unwrap_or(&now))
        })
        .collect();
    let body = json!({ "status": {
        "phase": "Running", "podIP": ip, "podIPs": [{ "ip": ip }], "hostIP": shared.address(), "hostIPs": [{ "ip": shared.address() }],
        "startTime": status["startTime"].as_str().unwrap_or(&now), "containerStatuses": containers, "conditions": conditions,
    }});
    write(shared, pod, &body).await;
}

async fn succeed(shared: &Shared, pod: &Value) {
    write(shared, pod, &finished(pod, Some("Succeeded"), "PodCompleted")).await;
}

/// A status whose containers have ended; `phase` stays when the pod is being deleted.
fn finished(pod: &Value, phase: Option<&str>, reason: &str) -> Value {
    let now = now();
    let containers: Vec<_> = entries(&pod["spec"]["containers"])
        .map(|container| {
            // Null takes the running state away, else the merge would leave two states.
            let state = json!({ "running": null, "terminated": { "exitCode": 0, "reason": "Completed", "finishedAt": now, "startedAt": now } });
            json!({ "name": container["name"], "image": container["image"], "imageID": "", "ready": false, "started": false,
                "restartCount": 0, "state": state })
        })
        .collect();
    let conditions: Vec<_> = ["Ready", "ContainersReady"]
        .iter()
        .map(|kind| {
            let mut entry = condition(kind, false, &now);
            entry["reason"] = reason.into();
            entry
        })
        .collect();
    let mut status = json!({ "containerStatuses": containers, "conditions": conditions });
    if let Some(phase) = phase {
        status["phase"] = phase.into();
    }
    json!({ "status": status })
}

async fn end(shared: &Shared, pod: &Value) {
    let over = matches!(text(&pod["status"]["phase"]), "Succeeded" | "Failed" | "Pending");
    let grace = Duration::from_secs(pod["metadata"]["deletionGracePeriodSeconds"].as_u64().unwrap_or(30));
    if !over {
        tokio::time::sleep(seconds(pod, "test/terminate", 0.3).min(grace)).await;
        write(shared, pod, &finished(pod, None, "PodCompleted")).await;
    }
    let options = json!({ "gracePeriodSeconds": 0, "preconditions": { "uid": pod["metadata"]["uid"] } });
    loop {
        // 404 and 409 (another pod by now) are as good as 200.
        match shared.request(Method::DELETE, &path(pod), "application/json", Some(&options)).await {
            Ok(answer) if answer.status.is_success() || matches!(answer.status.as_u16(), 404 | 409) => return,
            _ => tokio::time::sleep(Duration::from_millis(500)).await,
        }
    }
}

/// Writes a pod's status, again until an API server took it or says that the pod is gone.
async fn write(shared: &Shared, pod: &Value, body: &Value) {
    let path = format!("{}/status", path(pod));
    loop {
        match shared.patch(Patch::Strategic, &path, body).await {
            Ok(answer) if answer.status.is_success() || answer.status.as_u16() == 404 => return,
            Ok(answer) if answer.status.as_u16() == 422 => {
                eprintln!("cluster: kubelet {}: {path}: {}", shared.index, answer.message());
                return;
            }
            _ => tokio::time::sleep(Duration::from_millis(500)).await,
        }
    }
}

fn path(pod: &Value) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", text(&pod["metadata"]["namespace"]), text(&pod["metadata"]["name"]))
}

fn is_action(pod: &Value) -> bool {
    pod["metadata"]["namespace"] == ACTIONS_NAMESPACE || annotation(pod, ACTION_ANNOTATION) == Some("true")
}

fn is_ready(pod: &Value) -> bool {
    entries(&pod["status"]["conditions"]).any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn wanted_ready(pod: &Value) -> bool {
    annotation(pod, "test/ready") != Some("false")
}

fn annotation<'a>(pod: &'a Value, name: &str) -> Option<&'a str> {
    pod["metadata"]["annotations"][name].as_str()
}

fn seconds(pod: &Value, name: &str, otherwise: f64) -> Duration {
    let given = annotation(pod, name).and_then(|value| value.trim_end_matches('s').parse::<f64>().ok());
    Duration::try_from_secs_f64(given.unwrap_or(otherwise)).unwrap_or(Duration::ZERO)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn entries(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
