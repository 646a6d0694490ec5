//! What befalls a night with kured by chance, one thing at a time.

use std::time::Duration;

use maint_core::plan;
use maint_engine::execute::{Calls as _, Form};
use maint_engine::request::Requests;
use maint_engine::runtime::Clock;
use serde_json::{Value, json};

use super::{GITOPS, NODES, Scene, record_key};
use crate::clock::sleep;
use crate::doubles::kured::answer::Answer;
use crate::faults::Fault;
use crate::kinds::FaultKind;
use crate::night::REPLICAS;
use crate::night::doors::Trouble;
use crate::night::shell::ShellCalls;
use crate::random::Random;
use crate::store::ObjectKey;
use crate::store::http::Cut;
use crate::store::object::At as _;

/// A person with kubectl and maint.
const PERSON: &str = "person";
/// Who writes kured's lock and is neither kured nor maint.
const STRANGER: &str = "stranger";

/// What can befall a night.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mischief {
    /// A kured dies.
    KillKured,
    /// The kured that has the lock dies.
    KillHolder,
    /// The write of the lock after a `go` goes wrong, or kured dies on it.
    LockWrite,
    /// A pod that no budget lets go stands on a node.
    DrainFails,
    /// A reboot command fails, or works again.
    CommandFails,
    /// An API server is cut off for a while.
    CutServer,
    /// The lock is wiped.
    WipeLock,
    /// A node that does not exist holds the lock.
    Ghost,
    /// A node that does holds the lock, by somebody's hand.
    Foreign,
    /// The lock is no lock.
    Garbage,
    /// The lock has the format of another concurrency.
    Format,
    /// What answers kured is slow, hangs, or says 500.
    Answers,
    /// No replica lives for a while.
    Down,
    /// A replica dies.
    KillReplica,
    /// A replica stands still for longer than its lease.
    FreezeReplica,
    /// An API server ends all watches.
    DropWatches,
    /// Somebody cordons a node.
    Cordons,
    /// Somebody uncordons a node, whosever cordon it is.
    Uncordons,
    /// Somebody cancels a record.
    Cancels,
    /// Somebody halts everything for a while.
    Halts,
    /// Somebody holds a node for a while.
    Holds,
    /// Somebody asks as if he were kured.
    Strangers,
}

/// All of them.
pub const ALL: &[Mischief] = &[
    Mischief::KillKured,
    Mischief::KillHolder,
    Mischief::LockWrite,
    Mischief::DrainFails,
    Mischief::CommandFails,
    Mischief::CutServer,
    Mischief::WipeLock,
    Mischief::Ghost,
    Mischief::Foreign,
    Mischief::Garbage,
    Mischief::Format,
    Mischief::Answers,
    Mischief::Down,
    Mischief::KillReplica,
    Mischief::FreezeReplica,
    Mischief::DropWatches,
    Mischief::Cordons,
    Mischief::Uncordons,
    Mischief::Cancels,
    Mischief::Halts,
    Mischief::Holds,
    Mischief::Strangers,
];

impl Mischief {
    /// Which kind of trouble it is.
    #[must_use]
    pub const fn kind(self) -> FaultKind {
        match self {
            Self::KillKured => FaultKind::KillKured,
            Self::KillHolder => FaultKind::KillHolder,
            Self::LockWrite => FaultKind::LockWrite,
            Self::DrainFails => FaultKind::DrainFails,
            Self::CommandFails => FaultKind::CommandFails,
            Self::CutServer => FaultKind::CutServer,
            Self::WipeLock => FaultKind::WipeLock,
            Self::Ghost => FaultKind::Ghost,
            Self::Foreign => FaultKind::Foreign,
            Self::Garbage => FaultKind::Garbage,
            Self::Format => FaultKind::Format,
            Self::Answers => FaultKind::NoAnswer,
            Self::Down => FaultKind::Down,
            Self::KillReplica => FaultKind::KillReplica,
            Self::FreezeReplica => FaultKind::FreezeReplica,
            Self::DropWatches => FaultKind::DropWatches,
            Self::Cordons => FaultKind::Cordons,
            Self::Uncordons => FaultKind::Uncordons,
            Self::Cancels => FaultKind::Cancels,
            Self::Halts => FaultKind::Halts,
            Self::Holds => FaultKind::Holds,
            Self::Strangers => FaultKind::Stranger,
        }
    }
}

const GHOST: &str = r#"{"nodeID":"n9","metadata":{"unschedulable":false},"created":"2026-11-29T02:00:00Z","TTL":0}"#;
const MANUAL: &str =
    r#"{"nodeID":"manual","metadata":{"unschedulable":false},"created":"2026-11-29T02:00:00Z","TTL":0}"#;
const LIST: &str = r#"{"maxOwners":2,"locks":[]}"#;
const GHOSTS: &str = r#"{"maxOwners":2,"locks":[{"nodeID":"n9","metadata":{"unschedulable":false},"created":"2026-11-29T02:00:00Z","TTL":0}]}"#;

/// What the lock says before the night begins.
pub(super) const fn lock_before(drawn: usize) -> Option<&'static str> {
    match drawn {
        0 => Some(GHOST),
        1 => Some(MANUAL),
        2 => Some(LIST),
        3 => Some(GHOSTS),
        4 => Some("garbage"),
        _ => None,
    }
}

fn one_of<T: Copy>(random: &mut Random, list: &[T]) -> T {
    let index = usize::try_from(random.below(list.len() as u64)).unwrap_or(0);
    list[index % list.len()]
}

/// Whether something happens just by its being tried. What alters an answer counts where it does so.
fn happens_at_once(scene: &Scene, kind: Mischief, node: &str) -> bool {
    let is_cordoned = || {
        let node = scene.stage.object(&ObjectKey::node(node));
        node.is_some_and(|node| crate::invariants::views::is_cordoned(&node))
    };
    match kind {
        Mischief::LockWrite | Mischief::CutServer | Mischief::Answers => false,
        Mischief::KillHolder => NODES.into_iter().any(|node| scene.names(node)),
        Mischief::WipeLock => scene.lock().is_some(),
        Mischief::Ghost | Mischief::Foreign | Mischief::Garbage | Mischief::Format => may_write_lock(scene),
        Mischief::Cordons => !is_cordoned(),
        Mischief::Uncordons => is_cordoned(),
        Mischief::Cancels => scene.record(node).is_some_and(|record| !plan::phase_of(&record).is_terminal()),
        _ => true,
    }
}

/// A person sees who holds the lock: he does not write over what is at work.
fn may_write_lock(scene: &Scene) -> bool {
    scene.lock().is_none_or(|text| !text.contains("nodeID"))
}

/// Does it.
pub(super) async fn act(scene: &Scene, kind: Mischief, random: &mut Random) {
    let node = one_of(random, &NODES);
    scene.tally(kind);
    if happens_at_once(scene, kind, node) {
        scene.stage.cluster.lock().happened(kind.kind());
    }
    match kind {
        Mischief::KillKured => scene.kureds.kill(node),
        Mischief::KillHolder => {
            if let Some(holder) = NODES.into_iter().find(|node| scene.names(node)) {
                scene.kureds.kill(holder);
            }
        }
        Mischief::LockWrite => lock_write(scene, random),
        Mischief::DrainFails => stubborn(scene, NODES.into_iter().find(|node| scene.names(node)).unwrap_or(node)),
        Mischief::CommandFails => scene.kureds.break_reboot(node, random.below(3) > 0),
        Mischief::CutServer => cut(scene, random).await,
        Mischief::WipeLock | Mischief::Ghost | Mischief::Foreign | Mischief::Garbage | Mischief::Format => {
            write_lock(scene, kind, node);
        }
        Mischief::Answers => answers(scene, random).await,
        Mischief::Down => down(scene, 20 + random.below(100)).await,
        Mischief::KillReplica => scene.stage.cluster.lock().faults.stop(one_of(random, &REPLICAS)),
        Mischief::FreezeReplica => scene.stage.cluster.lock().faults.freeze(one_of(random, &REPLICAS)),
        Mischief::DropWatches => {
            let server = one_of(random, &[0, 1, 2]);
            scene.stage.cluster.drop_watches(server);
        }
        Mischief::Cordons => cordon(scene, node, true).await,
        Mischief::Uncordons => cordon(scene, node, false).await,
        Mischief::Cancels => cancel(scene, node).await,
        Mischief::Halts => {
            halt(scene, true).await;
            sleep(Duration::from_secs(10 + random.below(120))).await;
            halt(scene, false).await;
        }
        Mischief::Holds => {
            hold(scene, node, true).await;
            sleep(Duration::from_secs(10 + random.below(120))).await;
            hold(scene, node, false).await;
        }
        Mischief::Strangers => {
            let node = one_of(random, &["n1", "n2", "n3", "n9", "no name"]);
            if let Some(doors) = &scene.stage.doors {
                doors.stranger(node).await;
            }
        }
    }
}

/// Nothing goes wrong any more. People take back what they said and did; one of them may tidy kured's lock.
pub(super) async fn heal(scene: &Scene, tidies: bool) {
    scene.stage.cluster.lock().faults.heal();
    for server in 0..NODES.len() {
        scene.stage.cluster.cut(server, Cut::No);
    }
    if let Some(doors) = &scene.stage.doors {
        doors.heal();
    }
    for node in NODES {
        scene.kureds.break_reboot(node, false);
        scene.stage.with(|_, inner, _| inner.store.remove(&ObjectKey::pod("default", &format!("stubborn-{node}"))));
        hold(scene, node, false).await;
        if scene.is_cordoned_by_person(node) {
            cordon(scene, node, false).await;
        }
    }
    halt(scene, false).await;
    if tidies && scene.lock().is_some_and(|text| is_strange(scene, &text)) {
        scene.write_lock(PERSON, None);
    }
}

/// Whether somebody's hand is in the lock, and neither kured nor maint holds it.
fn is_strange(scene: &Scene, text: &str) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return true };
    let entries = value.get("locks").and_then(Value::as_array).cloned().unwrap_or_else(|| vec![value.clone()]);
    let live = entries.iter().any(|entry| entry.get("maint").is_some() || entry.get("by").is_none() && is_node(entry));
    let format = value.get("locks").is_some() != (scene.concurrency > 1);
    !live && (format || !entries.is_empty())
}

fn is_node(entry: &Value) -> bool {
    entry.get("nodeID").and_then(Value::as_str).is_some_and(|name| NODES.contains(&name))
}

/// A write of the lock that meets a fault; that of the node which is granted next.
fn lock_write(scene: &Scene, random: &mut Random) {
    let faults = [
        Fault::StopBefore,
        Fault::StopUnanswered,
        Fault::StopAnswered,
        Fault::LoseRequest,
        Fault::LoseAnswer,
        Fault::Refuse(409),
        Fault::Refuse(500),
        Fault::HangAfter,
        Fault::Delay(Duration::from_secs(40)),
    ];
    let fault = one_of(random, &faults);
    if let Some(doors) = &scene.stage.doors {
        // Few nodes hear go in the time that is left for trouble: whoever does.
        for node in NODES {
            doors.on_go(node, fault);
        }
    }
}

/// A pod on a node that no budget lets go, until everything heals.
fn stubborn(scene: &Scene, node: &str) {
    scene.stage.with(|_, inner, now| {
        let labels = json!({"app": "stubborn"});
        let name = format!("stubborn-{node}");
        if inner.store.object(&ObjectKey::pod("default", &name)).is_some() {
            return;
        }
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": labels},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "i"}]}, "status": {"phase": "Pending"}});
        let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "stubborn", "namespace": "default"},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": labels}}});
        if inner.store.object(&ObjectKey::new("policy", "poddisruptionbudgets", "default", "stubborn")).is_none() {
            inner.store.seed(budget, now);
        }
        inner.store.seed(pod, now);
    });
}

async fn cut(scene: &Scene, random: &mut Random) {
    let (server, how) = (one_of(random, &[0, 1, 2]), one_of(random, &[Cut::Refuse, Cut::Hang]));
    scene.stage.cluster.cut(server, how);
    sleep(Duration::from_secs(1 + random.below(60))).await;
    scene.stage.cluster.cut(server, Cut::No);
}

fn write_lock(scene: &Scene, kind: Mischief, node: &str) {
    let now = scene.stage.cluster.clock().now();
    let entry = |name: &str| json!({"nodeID": name, "metadata": {"unschedulable": false}, "created": now.to_string(), "TTL": 0, "by": "hand"});
    let list = |name: &str| json!({"maxOwners": 2, "locks": [entry(name), entry("manual")]});
    let fits = |name: &str| if scene.concurrency > 1 { list(name) } else { entry(name) };
    let text = match kind {
        Mischief::WipeLock => return scene.write_lock(GITOPS, None),
        Mischief::Ghost => fits("n9").to_string(),
        Mischief::Foreign => fits(node).to_string(),
        Mischief::Garbage => "garbage".to_owned(),
        _ if scene.concurrency > 1 => entry("manual").to_string(),
        _ => LIST.to_owned(),
    };
    if may_write_lock(scene) {
        scene.write_lock(STRANGER, Some(&text));
    }
}

async fn answers(scene: &Scene, random: &mut Random) {
    let Some(doors) = &scene.stage.doors else { return };
    let trouble = match random.below(7) {
        0 => Trouble::Slow(Duration::from_secs(1 + random.below(20))),
        1 => Trouble::Hang,
        2 => Trouble::Is(Answer::http(500, "")),
        3 => Trouble::Is(Answer::Dropped),
        4 => Trouble::Is(Answer::Unresolved),
        5 => Trouble::Is(Answer::Reset),
        _ => Trouble::Is(Answer::http(404, "404 page not found")),
    };
    doors.trouble(Some(trouble));
    sleep(Duration::from_secs(10 + random.below(120))).await;
    doors.trouble(None);
}

async fn down(scene: &Scene, seconds: u64) {
    for _ in 0..seconds {
        for name in REPLICAS {
            scene.stage.cluster.lock().faults.stop(name);
        }
        sleep(Duration::from_secs(1)).await;
    }
}

fn requests(scene: &Scene) -> (Requests<ShellCalls>, Clock) {
    let clock = Clock::simulated(scene.stage.cluster.clock().now());
    let calls = scene.stage.calls(PERSON, vec![2, 1, 0], &clock);
    (Requests::through(calls, clock.clone(), scene.stage.settings.namespace.clone()), clock)
}

/// As `kubectl cordon` does it: nothing is written where it is so already.
async fn cordon(scene: &Scene, node: &'static str, on: bool) {
    let (_, clock) = requests(scene);
    let calls = scene.stage.calls(PERSON, vec![2, 1, 0], &clock);
    let path = format!("/api/v1/nodes/{node}?fieldManager=kubectl-cordon");
    let body = json!({"spec": {"unschedulable": on.then_some(true)}});
    while calls.call(http::Method::PATCH, &path, Form::Merge, body.clone()).await.is_err() {
        sleep(Duration::from_secs(1)).await;
    }
}

async fn halt(scene: &Scene, on: bool) {
    let (requests, _) = requests(scene);
    let since = plan::stamp(scene.stage.cluster.clock().now());
    let halt = json!({"by": PERSON, "reason": "wait", "since": since});
    while requests.halt(on.then_some(&halt)).await.is_err() {
        sleep(Duration::from_secs(1)).await;
    }
}

async fn hold(scene: &Scene, node: &str, on: bool) {
    let (requests, _) = requests(scene);
    let since = plan::stamp(scene.stage.cluster.clock().now());
    let hold = json!({"by": PERSON, "reason": "mine", "since": since});
    while requests.hold(node, on.then_some(&hold)).await.is_err() {
        sleep(Duration::from_secs(1)).await;
    }
}

pub(crate) async fn cancel(scene: &Scene, node: &str) {
    let Some(name) = scene.record(node).and_then(|record| record.metadata.name) else { return };
    let (requests, _) = requests(scene);
    let word = maint_core::api::record::Word {
        by: PERSON.to_owned(),
        at: plan::stamp(scene.stage.cluster.clock().now()),
        ..Default::default()
    };
    while requests.say(&name, maint_engine::request::Field::Cancel, &word, None).await.is_err()
        && scene.stage.object(&record_key(&name)).is_some()
    {
        sleep(Duration::from_secs(1)).await;
    }
}

impl Scene {
    /// Somebody else than maint owns the node's cordon.
    fn is_cordoned_by_person(&self, node: &str) -> bool {
        let Some(node) = self.stage.object(&ObjectKey::node(node)) else { return false };
        let entries = node.at("/metadata/managedFields").and_then(Value::as_array);
        entries.into_iter().flatten().any(|entry| {
            entry.at("/manager").and_then(Value::as_str) == Some("kubectl-cordon")
                && entry.at("/fieldsV1/f:spec/f:unschedulable").is_some()
        })
    }
}
