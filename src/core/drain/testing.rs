//! Pods, budgets and looks at a node for the tests of this folder.

use serde_json::{Value, json};

use super::view::{Question, View};
use crate::api::Action;
use crate::config::Settings;
use crate::facts::{
    DaemonSet, Facts, Fields, Listed, Node, Observation, Pod, PodDisruptionBudget, ReplicaSet, Source, StatefulSet,
};
use crate::jiff::Timestamp;

/// Now.
pub(super) const TIME: &str = "2026-11-30T01:00:00Z";
/// The node that is drained.
pub(super) const NODE: &str = "n1";

pub(super) fn now() -> Timestamp {
    TIME.parse().expect("a time")
}

pub(super) fn settings(text: &str) -> Settings {
    Settings::parse(text, "f").unwrap_or_else(|errors| panic!("{errors}"))
}

/// `over` laid on `document`, objects member by member.
pub(super) fn merge(document: &mut Value, over: Value) {
    match (document, over) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (slot, value) => *slot = value,
    }
}

pub(super) fn decode<S: Source>(document: &Value) -> S {
    let root = Fields::root("object", document).expect("an object");
    S::decode(&root).unwrap_or_else(|bad| panic!("{bad}"))
}

/// A Ready pod of ReplicaSet `web` in namespace `shop` on the node.
pub(super) fn pod_document(name: &str, over: Value) -> Value {
    let mut document = json!({
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "labels": {"app": "web"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-web", "controller": true}]},
        "spec": {"nodeName": NODE},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    });
    merge(&mut document, over);
    document
}

pub(super) fn pod(name: &str, over: Value) -> Pod {
    decode(&pod_document(name, over))
}

/// One of a StatefulSet.
pub(super) fn of_set(set: &str, ordinal: usize) -> Value {
    pod_document(
        &format!("{set}-{ordinal}"),
        json!({"metadata": {"labels": {"app": set}, "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet",
            "name": set, "uid": format!("uid-{set}"), "controller": true}]}}),
    )
}

/// One without a controller.
pub(super) fn bare(name: &str, over: Value) -> Pod {
    let mut document = pod_document(name, json!({"metadata": {"ownerReferences": []}}));
    merge(&mut document, over);
    decode(&document)
}

/// A budget of namespace `shop` for `app=web` that allows one of three.
pub(super) fn budget_document(name: &str, over: Value) -> Value {
    let mut document = json!({
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-budget-{name}"), "generation": 1, "resourceVersion": "1"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3, "observedGeneration": 1},
    });
    merge(&mut document, over);
    document
}

pub(super) fn budget(name: &str, over: Value) -> PodDisruptionBudget {
    decode(&budget_document(name, over))
}

/// A budget's status in short.
pub(super) fn status(allowed: i64, healthy: i64, desired: i64, expected: i64) -> Value {
    json!({"status": {"disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": expected}})
}

/// The documents of a cluster.
#[derive(Debug, Clone, Default)]
pub(super) struct Cluster {
    pub pods: Vec<Value>,
    pub budgets: Vec<Value>,
    pub stateful_sets: Vec<Value>,
    pub replica_sets: Vec<Value>,
    pub node_ready: Option<bool>,
    /// Pods without a node.
    pub unscheduled: Vec<Value>,
}

fn known<S: Source>(documents: &[Value], at: Timestamp) -> Listed<S> {
    Observation::Known { value: documents.iter().map(S::item).collect(), at }
}

impl Cluster {
    pub(super) fn facts(&self, at: Timestamp) -> Facts {
        let ready = if self.node_ready.unwrap_or(true) { "True" } else { "Unknown" };
        let node = json!({"metadata": {"name": NODE}, "spec": {}, "status": {"nodeInfo": {"bootID": "b", "kernelVersion": "6"},
            "conditions": [{"type": "Ready", "status": ready}]}});
        Facts {
            nodes: known::<Node>(&[node], at),
            target_pods: known(&self.pods, at),
            unscheduled_pods: known(&self.unscheduled, at),
            pod_disruption_budgets: known(&self.budgets, at),
            stateful_sets: known::<StatefulSet>(&self.stateful_sets, at),
            replica_sets: known::<ReplicaSet>(&self.replica_sets, at),
            daemon_sets: known::<DaemonSet>(&[], at),
            ..Facts::default()
        }
    }
}

/// A workload with its replicas.
pub(super) fn workload(name: &str, replicas: i64, ready: i64) -> Value {
    json!({"metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}")},
        "spec": {"replicas": replicas}, "status": {"readyReplicas": ready, "currentReplicas": replicas}})
}

/// Asks a question of a look at the node.
pub(super) fn look<T>(facts: &Facts, settings: &Settings, at: Timestamp, ask: impl FnOnce(&View<'_>) -> T) -> T {
    let question = Question { node: NODE, settings, action: Some(Action::Pod), now: at };
    let view = View::of(facts, &question, |_| false).unwrap_or_else(|why| panic!("{why}"));
    ask(&view)
}
