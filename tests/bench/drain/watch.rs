//! What happens to the pods and budgets of a cell, by watches of the bench's own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::task::JoinSet;

use super::limit::{Allowed, Pod, Seen};
use super::workload::{LANE, Workload};
use crate::harness::client::{Client, Lines};
use crate::harness::objects;
use crate::harness::wait::{self, Limit};

/// Seconds since the epoch, as the audit log's times are.
pub fn now() -> f64 {
    seconds(jiff::Timestamp::now())
}

/// A time of the audit log.
pub fn at(time: &str) -> Result<f64> {
    Ok(seconds(time.parse().with_context(|| format!("no time: {time}"))?))
}

#[allow(clippy::cast_precision_loss, reason = "microseconds since the epoch are exact in an f64")]
fn seconds(time: jiff::Timestamp) -> f64 {
    time.as_microsecond() as f64 / 1e6
}

#[derive(Default)]
struct State {
    pods: BTreeMap<String, Pod>,
    allowed: Vec<Allowed>,
    failed: Option<String>,
}

/// Watches until it is dropped.
pub struct Observer {
    state: Arc<Mutex<State>>,
    _tasks: JoinSet<()>,
}

impl Observer {
    /// Begins with what is there now. To be called inside the hub.
    pub async fn start(client: &Client, workload: &Workload) -> Result<Self> {
        let state = Arc::<Mutex<State>>::default();
        let mut tasks = JoinSet::new();
        let (list, events) = open(client, &workload.pods_path()).await?;
        for pod in list {
            note_pod(&mut lock(&state), &pod, &workload.node, false);
        }
        let (shared, node) = (state.clone(), workload.node.clone());
        tasks.spawn(follow(events, shared, move |state, object, deleted| note_pod(state, object, &node, deleted)));
        let (list, events) = open(client, &workload.budgets_path()).await?;
        for budget in list {
            note_budget(&mut lock(&state), &budget);
        }
        tasks.spawn(follow(events, state.clone(), |state, object, _| note_budget(state, object)));
        Ok(Self { state, _tasks: tasks })
    }

    /// Waits until no pod that was on the node is left.
    pub async fn wait_drained(&self, limit: Limit) -> Result<()> {
        wait::until(limit, "the node to be empty by the watch", || async {
            let state = lock(&self.state);
            if let Some(why) = &state.failed {
                bail!("the watch ended: {why}");
            }
            Ok(state.pods.values().all(|pod| !pod.on_target || pod.gone.is_some()).then_some(()))
        })
        .await
    }

    /// Waits until there are so many Ready replacements, and each budget allows a disruption again.
    pub async fn wait_replaced(&self, pods: usize) -> Result<()> {
        wait::until(wait::CONTROLLERS, format!("{pods} Ready replacements"), || async {
            let state = lock(&self.state);
            let mut last: BTreeMap<&str, i64> = BTreeMap::new();
            last.extend(state.allowed.iter().map(|one| (one.lane.as_str(), one.disruptions)));
            let ready = state.pods.values().filter(|pod| !pod.on_target && pod.ready.is_some()).count();
            Ok((ready >= pods && last.values().all(|allowed| *allowed > 0)).then_some(()))
        })
        .await
    }

    /// All that was seen so far.
    pub fn seen(&self) -> Seen {
        let state = lock(&self.state);
        Seen { pods: state.pods.values().cloned().collect(), allowed: state.allowed.clone() }
    }
}

async fn open(client: &Client, path: &str) -> Result<(Vec<Value>, Lines)> {
    let mut list = client.get(path).await?;
    let version = list["metadata"]["resourceVersion"].as_str().context("a list without version")?.to_string();
    let items = serde_json::from_value(list["items"].take()).unwrap_or_default();
    let events = client.watch(&format!("{path}?watch=true&timeoutSeconds=3000&resourceVersion={version}")).await?;
    Ok((items, events))
}

async fn follow(mut events: Lines, state: Arc<Mutex<State>>, note: impl Fn(&mut State, &Value, bool)) {
    let why = loop {
        match events.next().await {
            Ok(Some(event)) => match event["type"].as_str() {
                Some("ADDED" | "MODIFIED") => note(&mut lock(&state), &event["object"], false),
                Some("DELETED") => note(&mut lock(&state), &event["object"], true),
                _ => break event.to_string(),
            },
            Ok(None) => break "the server ended it".to_string(),
            Err(error) => break format!("{error:#}"),
        }
    };
    lock(&state).failed = Some(why);
}

fn note_pod(state: &mut State, object: &Value, node: &str, deleted: bool) {
    let metadata = &object["metadata"];
    let (Some(uid), Some(lane)) = (metadata["uid"].as_str(), metadata["labels"][LANE].as_str()) else { return };
    let now = now();
    let pod = state.pods.entry(uid.to_string()).or_insert_with(|| Pod {
        lane: lane.to_string(),
        created: now,
        ..Pod::default()
    });
    pod.on_target |= object["spec"]["nodeName"] == node;
    if objects::is_true(object, "Ready") {
        pod.ready.get_or_insert(now);
    }
    if deleted || !metadata["deletionTimestamp"].is_null() {
        pod.ending.get_or_insert(now);
    }
    if deleted {
        pod.gone.get_or_insert(now);
    }
}

fn note_budget(state: &mut State, object: &Value) {
    let (Some(lane), Some(disruptions)) =
        (object["metadata"]["name"].as_str(), object["status"]["disruptionsAllowed"].as_i64())
    else {
        return;
    };
    state.allowed.push(Allowed { lane: lane.to_string(), at: now(), disruptions });
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
