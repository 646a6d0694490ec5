//! A watch that only wakes: no cache hangs on it, so a missed event costs a look, never a wrong decision.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt as _, stream};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;

use crate::execute::RECORDS;
use crate::runtime::Clock;

/// Path of all DaemonSets.
const DAEMON_SETS: &str = "/apis/apps/v1/daemonsets";

/// Path of all PodDisruptionBudgets.
const BUDGETS: &str = "/apis/policy/v1/poddisruptionbudgets";

/// The server ends the watch after this long; then it begins anew, which also finds dead connections.
const SERVER_LIMIT: Duration = Duration::from_secs(40);
/// Silence after which the connection counts as dead.
const SILENCE_LIMIT: Duration = Duration::from_secs(45);
/// Wait before a watch that failed begins anew.
const PAUSE: Duration = Duration::from_secs(5);
/// A line longer than this is dropped: an event's name stands near its beginning anyway.
const LINE_LIMIT: usize = 8 * 1024 * 1024;

/// What a wake-up is told of an object that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// `namespace/name`, or the name alone.
    pub name: String,
    /// Its uid; "" where it has none.
    pub uid: String,
    /// Whether it is gone, or is no longer among what is watched.
    pub gone: bool,
    /// What somebody else than the writer of its status can have changed: the generation (spec), and whether it is
    /// being deleted.
    pub asked: (i64, bool),
    /// A budget that allows a disruption now (`status.disruptionsAllowed`).
    pub allows: bool,
    /// Its annotations, but for what kubectl keeps there of whole objects.
    pub annotations: BTreeMap<String, String>,
    /// Of a Node: what a run waits for. Of anything else: nothing that says something.
    pub node: NodeState,
}

/// What of a Node is worth a look at once. The rest, such as taints and when it was last heard, is seen at the next look.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeState {
    /// `spec.unschedulable`
    pub unschedulable: bool,
    /// The status of condition Ready; "" where it has none.
    pub ready: String,
    /// `status.nodeInfo.bootID`
    pub boot_id: String,
}

/// What is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watched {
    /// All records.
    Records,
    /// The node of this name.
    Node(String),
    /// The pods on the node of this name.
    PodsOn(String),
    /// All PodDisruptionBudgets.
    Budgets,
    /// All DaemonSets, kured's among them.
    DaemonSets,
}

/// What changed, one by one: first what is there, then each change. It ends when the server ends it.
pub type Changes = Pin<Box<dyn Stream<Item = Result<Changed, String>> + Send>>;

/// Opens watches. Nothing is opened anew by itself.
pub trait Watches: Send + Sync {
    /// Opens one, which the server ends after `limit`. The error is for people.
    fn open(&self, watched: &Watched, limit: Duration) -> BoxFuture<'static, Result<Changes, String>>;
}

/// Watches for ever and calls `changed` for each object that changed. Ends when dropped.
pub(super) async fn watch(
    watches: &dyn Watches,
    clock: &Clock,
    watched: &Watched,
    mut changed: impl FnMut(Changed) + Send,
) {
    let event = |event: Option<Changed>| {
        if let Some(change) = event {
            changed(change);
        }
    };
    watch_whole(watches, clock, watched, event).await;
}

/// The same; `event` gets none where the watch ended: what changes until it begins anew is not told.
pub(super) async fn watch_whole(
    watches: &dyn Watches,
    clock: &Clock,
    watched: &Watched,
    mut event: impl FnMut(Option<Changed>) + Send,
) {
    loop {
        let begun = clock.instant();
        let ended = once(watches, clock, watched, &mut |change| event(Some(change))).await;
        event(None);
        if let Err(why) = &ended {
            tracing::debug!(?watched, why, "the watch begins anew");
        }
        // A server that ends each watch at once must not be asked for the next one at once.
        if ended.is_err() || clock.instant().duration_since(begun) < PAUSE {
            clock.sleep(PAUSE).await;
        }
    }
}

async fn once(
    watches: &dyn Watches,
    clock: &Clock,
    watched: &Watched,
    changed: &mut (impl FnMut(Changed) + Send),
) -> Result<(), String> {
    let opening = watches.open(watched, SERVER_LIMIT);
    let mut changes = clock.timeout(SILENCE_LIMIT, opening).await.map_err(|late| late.to_string())??;
    while let Some(change) = clock.timeout(SILENCE_LIMIT, changes.next()).await.map_err(|late| late.to_string())? {
        changed(change?);
    }
    Ok(())
}

/// Watches through a kube client.
pub struct KubeWatches(kube::Client);

impl KubeWatches {
    /// Watches through this client.
    #[must_use]
    pub const fn new(client: kube::Client) -> Self {
        Self(client)
    }
}

impl Watches for KubeWatches {
    fn open(&self, watched: &Watched, limit: Duration) -> BoxFuture<'static, Result<Changes, String>> {
        let (path, separator) = match watched {
            Watched::Records => (RECORDS.to_owned(), '?'),
            Watched::Node(name) => (format!("/api/v1/nodes?fieldSelector=metadata.name%3D{name}"), '&'),
            Watched::PodsOn(node) => (format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}"), '&'),
            Watched::Budgets => (BUDGETS.to_owned(), '?'),
            Watched::DaemonSets => (DAEMON_SETS.to_owned(), '?'),
        };
        let uri = format!("{path}{separator}watch=1&timeoutSeconds={}", limit.as_secs());
        let client = self.0.clone();
        Box::pin(async move {
            let request = http::Request::get(uri).body(Body::empty()).map_err(|error| error.to_string())?;
            let response = client.send(request).await.map_err(|error| error.to_string())?;
            if !response.status().is_success() {
                return Err(format!("answer {}", response.status()));
            }
            let lines = Lines { body: response.into_body(), read: Vec::new() };
            let changes: Changes = Box::pin(stream::try_unfold(lines, Lines::next));
            Ok(changes)
        })
    }
}

/// The lines of a watch's body.
struct Lines {
    body: Body,
    /// What was read and not told yet.
    read: Vec<u8>,
}

impl Lines {
    /// The next change, and what follows it; none at the end.
    async fn next(mut self) -> Result<Option<(Changed, Self)>, String> {
        loop {
            while let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                if let Some(changed) = tell(&line) {
                    return Ok(Some((changed, self)));
                }
            }
            if self.read.len() > LINE_LIMIT {
                return Err("a line of the watch is too long".to_owned());
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    let frame = frame.map_err(|error| error.to_string())?;
                    self.read.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
                }
            }
        }
    }
}

/// What a line tells; none for one that names no object, such as an error.
fn tell(line: &[u8]) -> Option<Changed> {
    let event: Value = serde_json::from_slice(line).ok()?;
    let gone = event.get("type").and_then(Value::as_str) == Some("DELETED");
    Changed::of(event.get("object")?, gone)
}

impl Changed {
    /// Of an object; none if it has no name.
    #[must_use]
    pub fn of(object: &Value, gone: bool) -> Option<Self> {
        let metadata = object.get("metadata")?;
        let name = metadata.get("name")?.as_str()?;
        let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
        let deleting = metadata.get("deletionTimestamp").is_some_and(|at| !at.is_null());
        let allowed = object.pointer("/status/disruptionsAllowed").and_then(Value::as_i64);
        let allows = allowed.is_some_and(|allowed| allowed > 0);
        let annotations = metadata.get("annotations").and_then(Value::as_object).into_iter().flatten();
        let annotations = annotations
            .filter(|(key, _)| !key.starts_with("kubectl.kubernetes.io/"))
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect();
        let name = match metadata.get("namespace").and_then(Value::as_str) {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.to_owned(),
        };
        let uid = metadata.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Self { name, uid, gone, asked: (generation, deleting), allows, annotations, node: NodeState::of(object) })
    }
}

impl NodeState {
    fn of(object: &Value) -> Self {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
        let mut ready = conditions.filter(|one| one.get("type").and_then(Value::as_str) == Some("Ready"));
        Self {
            unschedulable: object.pointer("/spec/unschedulable").and_then(Value::as_bool).unwrap_or_default(),
            ready: text(ready.next().and_then(|one| one.get("status"))),
            boot_id: text(object.pointer("/status/nodeInfo/bootID")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that ends each watch as soon as it has begun.
    struct Ends(std::sync::atomic::AtomicU32);

    impl Watches for Ends {
        fn open(&self, _: &Watched, _: Duration) -> BoxFuture<'static, Result<Changes, String>> {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Box::pin(async { Ok(Box::pin(stream::empty()) as Changes) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_ends_at_once_is_not_begun_at_once() {
        let clock = Clock::simulated("2026-11-30T02:00:00Z".parse().expect("a time"));
        let (server, mut blind) = (Ends(std::sync::atomic::AtomicU32::new(0)), 0);
        let minute = Duration::from_secs(60);
        let watching = watch_whole(&server, &clock, &Watched::Budgets, |_| blind += 1);
        assert!(clock.timeout(minute, watching).await.is_err(), "it never ends");
        let opened = server.0.into_inner();
        assert!((12..=13).contains(&opened) && (12..=13).contains(&blind), "{opened} watches, {blind} times blind");
    }

    #[test]
    fn a_node_tells_what_a_run_waits_for() {
        let base = serde_json::json!({"metadata": {"name": "n"}, "spec": {},
            "status": {"nodeInfo": {"bootID": "b"}, "conditions": [{"type": "Ready", "status": "True"}]}});
        let rows = [
            (
                "when it was last heard",
                "/status/conditions/0",
                serde_json::json!({"type": "Ready", "status": "True", "lastHeartbeatTime": "x"}),
                false,
            ),
            ("a taint", "/spec", serde_json::json!({"taints": [{"key": "k"}]}), false),
            ("cordoned", "/spec", serde_json::json!({"unschedulable": true}), true),
            ("not Ready", "/status/conditions/0/status", serde_json::json!("Unknown"), true),
            ("booted", "/status/nodeInfo/bootID", serde_json::json!("c"), true),
        ];
        for (row, pointer, value, wanted) in rows {
            let mut other = base.clone();
            *other.pointer_mut(pointer).expect("is there") = value;
            let states = [&base, &other].map(|node| Changed::of(node, false).expect("a name").node);
            assert_eq!(states[0] != states[1], wanted, "{row}");
        }
    }

    #[test]
    fn a_line_tells_what_was_asked() {
        let rows = [
            (r#"{"type":"MODIFIED","object":{"metadata":{"name":"a","generation":2}}}"#, Some(("a", (2, false)))),
            (
                r#"{"type":"MODIFIED","object":{"metadata":{"name":"a","generation":3,"deletionTimestamp":"x"}}}"#,
                Some(("a", (3, true))),
            ),
            (r#"{"type":"ADDED","object":{"metadata":{"name":"n"}}}"#, Some(("n", (0, false)))),
            (r#"{"type":"ADDED","object":{"metadata":{"name":"n","namespace":"s"}}}"#, Some(("s/n", (0, false)))),
            (r#"{"type":"ERROR","object":{"code":410}}"#, None),
            ("rubbish", None),
        ];
        for (line, wanted) in rows {
            let found = tell(line.as_bytes());
            let found = found.as_ref().map(|changed| (changed.name.as_str(), changed.asked));
            assert_eq!(found, wanted, "{line}");
        }
        for (line, wanted) in [
            (r#"{"type":"MODIFIED","object":{"metadata":{"name":"a","uid":"u"}}}"#, ("u", false)),
            (r#"{"type":"DELETED","object":{"metadata":{"name":"a","uid":"u"}}}"#, ("u", true)),
            (r#"{"type":"DELETED","object":{"metadata":{"name":"a"}}}"#, ("", true)),
        ] {
            let found = tell(line.as_bytes()).map(|changed| (changed.uid, changed.gone));
            assert_eq!(found, Some((wanted.0.to_owned(), wanted.1)), "{line}");
        }
        let line = r#"{"object":{"metadata":{"name":"a","annotations":{"k":"v","kubectl.kubernetes.io/last":"x"}}}}"#;
        let found = tell(line.as_bytes()).map(|changed| changed.annotations);
        assert_eq!(found, Some(BTreeMap::from([("k".to_owned(), "v".to_owned())])));
    }
}
