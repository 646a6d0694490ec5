//! Answers over a world that is a function, in virtual time; and over real connections.

mod answers;
mod connections;
mod notes;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use maint_core::api::Asked;
use maint_core::api::record::Maintenance as Record;
use maint_core::config::{Mode, Settings};
use maint_core::facts::{Facts, Item, Listed, Observation, Pod, Source};
use serde_json::{Value, json};

use super::*;
use crate::execute::WriteError;
use crate::runtime::{Clock, TaskOwner};

/// kured's address on `worker2`, and somebody else's.
const KURED: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::new(10, 42, 1, 7)));
const OTHER: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::new(10, 42, 9, 9)));

/// What the cluster is like.
#[derive(Clone)]
struct World {
    node: Value,
    daemon_set: Value,
    records: Vec<Value>,
    pods: Vec<Value>,
    /// How long each read takes.
    delay: Duration,
    /// How each write ends.
    conflict: bool,
}

/// The port over it, and what was asked of it.
struct Fake {
    world: Mutex<World>,
    clock: Clock,
    looks: AtomicUsize,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
    writes: Mutex<Vec<String>>,
}

fn known<S: Source>(documents: &[Value], at: Timestamp) -> Listed<S> {
    let value: Vec<Item<S>> = documents.iter().map(S::item).collect();
    assert!(value.iter().all(|item| matches!(item, Item::Good(_))), "a typo in {documents:?}");
    Observation::Known { value, at }
}

impl Fake {
    fn world(&self) -> World {
        self.world.lock().expect("lock").clone()
    }

    fn writes(&self) -> Vec<String> {
        self.writes.lock().expect("lock").clone()
    }

    fn wrote(&self, what: String) -> Result<(), WriteError> {
        if self.world().conflict {
            return Err(WriteError::Conflict("changed".to_owned()));
        }
        self.writes.lock().expect("lock").push(what);
        Ok(())
    }
}

impl QuestionPort for Arc<Fake> {
    async fn view(&self, node: &str) -> View {
        self.looks.fetch_add(1, Ordering::SeqCst);
        let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(now, Ordering::SeqCst);
        let world = self.world();
        self.clock.sleep(world.delay).await;
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        let at = self.clock.now();
        let nodes: Vec<Value> = [world.node].into_iter().filter(|one| one["metadata"]["name"] == node).collect();
        let facts = Facts {
            nodes: known(&nodes, at),
            daemon_sets: known(&[world.daemon_set], at),
            config_maps: known(&[], at),
            ..Facts::default()
        };
        let records = world.records.iter().map(|one| serde_json::from_value(one.clone()).expect("a record")).collect();
        View { facts, records: Ok(records) }
    }

    async fn pods(&self, _: &str) -> Listed<Pod> {
        known(&self.world().pods, self.clock.now())
    }

    async fn wish(&self, record: &Record) -> Result<bool, WriteError> {
        let name = record.metadata.name.clone().expect("a name");
        self.wrote(format!("wish {name}")).map(|()| true)
    }

    async fn asked(&self, record: &Record, asked: &Asked) -> Result<(), WriteError> {
        let name = record.metadata.name.as_deref().expect("a name");
        self.wrote(format!("asked {name} {} {:?} {}", asked.epoch, asked.source, asked.answer))
    }
}

/// Answers to URLs; one without an answer hangs.
#[derive(Default)]
struct Pages {
    answers: Mutex<Vec<(String, Result<(u16, String), String>)>>,
    asked: Mutex<Vec<String>>,
}

impl Fetch for Arc<Pages> {
    async fn get(&self, url: &str) -> Result<(u16, Vec<u8>), String> {
        self.asked.lock().expect("lock").push(url.to_owned());
        let found = self.answers.lock().expect("lock").iter().find(|(known, _)| known == url).cloned();
        match found {
            Some((_, answer)) => answer.map(|(status, body)| (status, body.into_bytes())),
            None => std::future::pending().await,
        }
    }
}

/// A world in which `worker2` may reboot, and everything around it.
struct Scene {
    questions: Arc<Questions<Arc<Fake>, Arc<Pages>>>,
    fake: Arc<Fake>,
    pages: Arc<Pages>,
    env: Env,
    owner: TaskOwner,
}

impl Scene {
    fn new((env, owner): (Env, TaskOwner), configure: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings { mode: Mode::Auto, ..Settings::default() };
        configure(&mut settings);
        let fake = Arc::new(Fake {
            world: Mutex::new(granted(env.clock.now())),
            clock: env.clock.clone(),
            looks: AtomicUsize::new(0),
            at_once: AtomicUsize::new(0),
            most_at_once: AtomicUsize::new(0),
            writes: Mutex::default(),
        });
        let pages = Arc::new(Pages::default());
        let questions = Questions::new(Arc::clone(&fake), Arc::clone(&pages), Arc::new(settings), env.clone());
        Self { questions, fake, pages, env, owner }
    }

    /// In virtual time.
    fn simulated() -> Self {
        Self::new(crate::testing::env(), |_| {})
    }

    fn change(&self, change: impl FnOnce(&mut World)) {
        change(&mut self.fake.world.lock().expect("lock"));
    }

    /// Asks, and lets what is written beside the answer come to its end.
    async fn ask(&self, from: Option<IpAddr>) -> String {
        let reply = self.questions.answer("worker2", from).await;
        while self.env.tasks.count() > 0 {
            self.env.clock.sleep(Duration::from_millis(1)).await;
        }
        word(&reply)
    }

    /// As time after which the next question costs a look.
    async fn later(&self) {
        self.env.clock.sleep(memory::LOOK_EVERY).await;
    }
}

/// What kured makes of it: `go`, or the text.
fn word(reply: &Reply) -> String {
    let body: Value = serde_json::from_str(&reply.body).expect("JSON");
    if reply.status == 422 {
        return body["error"].as_str().expect("a text").to_owned();
    }
    match body["data"]["result"].as_array().expect("an array").first() {
        None => "go".to_owned(),
        Some(sample) => sample["metric"]["alertname"].as_str().expect("a name").to_owned(),
    }
}

fn later(at: Timestamp, seconds: i64) -> String {
    (at + SignedDuration::from_secs(seconds)).to_string()
}

fn granted(now: Timestamp) -> World {
    let node = json!({
        "metadata": {"name": "worker2", "uid": "u-n",
            "annotations": {"maint.dev/owner": r#"{"maintenance":"u-1","term":3}"#}},
        "spec": {"unschedulable": true},
        "status": {"nodeInfo": {"bootID": "0f3c9a1b-7"}, "addresses": [{"type": "InternalIP", "address": "10.0.0.2"}]},
    });
    let daemon_set = json!({
        "metadata": {"name": "kured", "namespace": "kube-system", "annotations": {}},
        "spec": {"template": {"spec": {"containers": [{"image": "kured:1.23.0"}]}}},
        "status": {"desiredNumberScheduled": 3, "numberReady": 3},
    });
    let record = json!({
        "apiVersion": "maint.dev/v1alpha1", "kind": "Maintenance", "metadata": {"name": "worker2-1", "uid": "u-1"},
        "spec": {"nodeName": "worker2", "scope": "reboot", "action": "kured", "trigger": "unattended"},
        "status": {"phase": "Acting", "node": {"uid": "u-n", "bootIdBefore": "0f3c9a1b-7"},
            "intent": {"bootId": "0f3c9a1b-7", "at": now.to_string(), "validUntil": later(now, 30)},
            "kured": {"askEpoch": 1}},
    });
    let pod = json!({
        "metadata": {"name": "kured-x", "namespace": "kube-system",
            "ownerReferences": [{"kind": "DaemonSet", "name": "kured", "controller": true}]},
        "spec": {"nodeName": "worker2"},
        "status": {"phase": "Running", "podIP": "10.42.1.7", "conditions": [{"type": "Ready", "status": "True"}]},
    });
    World { node, daemon_set, records: vec![record], pods: vec![pod], delay: Duration::ZERO, conflict: false }
}
