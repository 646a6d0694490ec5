//! Reading nodes, records and acts out of a history.

use std::sync::Arc;

use serde_json::Value;

use super::Objects;
use crate::store::object::At as _;
use crate::store::{Change, ObjectKey, object};
use crate::trace::Step;
use crate::world::{ACTION_ANNOTATION, ACTION_BOOT_ID, ACTION_NAMESPACE};

pub const OWNER: &str = "maint.dev/owner";
pub const HOLD: &str = "maint.dev/hold";
pub const KURED_LOCK: &str = "weave.works/kured-node-lock";

/// All objects of a resource.
pub fn all<'a>(
    objects: &'a Objects,
    group: &'a str,
    resource: &'a str,
) -> impl Iterator<Item = (&'a ObjectKey, &'a Value)> {
    // Keys are in the order of their resource first.
    objects
        .range(ObjectKey::new(group, resource, "", "")..)
        .take_while(move |(key, _)| key.resource.group == group && key.resource.resource == resource)
        .map(|(key, object)| (key, object.as_ref()))
}

pub fn node<'a>(objects: &'a Objects, name: &str) -> Option<&'a Value> {
    objects.get(&ObjectKey::node(name)).map(Arc::as_ref)
}

pub fn is_cordoned(node: &Value) -> bool {
    node.at("/spec/unschedulable").and_then(Value::as_bool) == Some(true)
}

pub fn boot_id(node: &Value) -> &str {
    object::text(node, "/status/nodeInfo/bootID")
}

pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.at("/metadata/labels")?.get(key)?.as_str()
}

/// The owner annotation {maintenance, term}.
pub fn owner(node: &Value) -> Option<(String, i64)> {
    let value: Value = serde_json::from_str(object::annotation(node, OWNER)?).ok()?;
    Some((value.get("maintenance")?.as_str()?.to_owned(), value.get("term")?.as_i64()?))
}

pub fn phase(record: &Value) -> &str {
    match object::text(record, "/status/phase") {
        "" => "Pending",
        phase => phase,
    }
}

pub fn in_flight(record: &Value) -> bool {
    !matches!(phase(record), "Pending" | "Succeeded" | "Failed" | "Cancelled")
}

pub fn records(objects: &Objects) -> impl Iterator<Item = &Value> {
    all(objects, "maint.dev", "maintenances").map(|(_, record)| record)
}

/// The record in flight of a node.
pub fn record_of<'a>(objects: &'a Objects, node: &str) -> Option<&'a Value> {
    records(objects).find(|record| in_flight(record) && object::text(record, "/spec/nodeName") == node)
}

/// The changes of a step to one resource.
pub fn changes<'a>(step: &'a Step, group: &'a str, resource: &'a str) -> impl Iterator<Item = &'a Change> {
    step.changes
        .iter()
        .map(AsRef::as_ref)
        .filter(move |change| change.key.resource.group == group && change.key.resource.resource == resource)
}

pub fn is_eviction(step: &Step) -> bool {
    step.resource == "pods" && step.subresource == "eviction" && step.verb == "create"
}

/// The uid that an eviction names.
pub fn evicted_uid(step: &Step) -> Option<String> {
    step.body.as_ref().and_then(|body| body.at("/deleteOptions/preconditions/uid")?.as_str().map(str::to_owned))
}

/// An act that cannot be taken back: the node, and the boot ID that it expects to replace if it says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    pub node: String,
    pub expected: Option<String>,
}

/// The acts of a step: an action pod that is created, or kured's lock that is given to a node.
pub fn acts(objects: &Objects, step: &Step) -> Vec<Act> {
    let mut found: Vec<Act> = changes(step, "", "pods")
        .filter(|change| change.before.is_none() && change.key.namespace == ACTION_NAMESPACE)
        .filter_map(|change| change.after.as_ref())
        .filter(|pod| object::annotation(pod, ACTION_ANNOTATION) == Some("true"))
        .map(|pod| Act { node: object::text(pod, "/spec/nodeName").to_owned(), expected: expected(pod) })
        .collect();
    for change in changes(step, "apps", "daemonsets") {
        let (Some(before), Some(after)) = (&change.before, &change.after) else { continue };
        let held = holders(before);
        for holder in holders(after).into_iter().filter(|holder| !held.contains(holder)) {
            if node(objects, &holder).is_some() {
                found.push(Act { node: holder, expected: None });
            }
        }
    }
    found
}

fn expected(pod: &Value) -> Option<String> {
    let containers = pod.at("/spec/containers").and_then(Value::as_array)?;
    let entries = containers.iter().filter_map(|container| container.get("env")?.as_array()).flatten();
    let entry = entries.into_iter().find(|entry| object::text(entry, "/name") == ACTION_BOOT_ID);
    let text = entry
        .map(|entry| object::text(entry, "/value"))
        .or_else(|| object::annotation(pod, "maint.dev/expected-boot-id"));
    text.map(str::to_owned)
}

/// The entries of kured's lock in both formats; an unreadable one is one null entry.
pub fn locks(daemon_set: &Value) -> Vec<Value> {
    let Some(text) = object::annotation(daemon_set, KURED_LOCK) else { return Vec::new() };
    let Ok(value) = serde_json::from_str::<Value>(text) else { return vec![Value::Null] };
    match value.get("locks") {
        Some(Value::Array(list)) => list.clone(),
        Some(_) => Vec::new(),
        None => vec![value],
    }
}

/// What a record says that is kept because of a lock that cannot be read.
pub const LOCK_NOT_KNOWN: &str = "whether kured's lock is ours is not known";

/// Whether a lock is nothing that a kured or maint could have written.
pub fn is_garbage(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_err()
}

pub fn holders(daemon_set: &Value) -> Vec<String> {
    locks(daemon_set).iter().map(|lock| object::text(lock, "/nodeID").to_owned()).collect()
}

/// Whether a change of a record begins its run.
pub fn begins(change: &Change) -> bool {
    let before = change.before.as_ref().map_or("Pending", |record| phase(record));
    before == "Pending" && change.after.as_ref().is_some_and(|record| in_flight(record))
}

/// Whether a change of a record offers its act, or offers it for longer than before.
pub fn offers(change: &Change) -> bool {
    let until = |record: &Option<Arc<Value>>| {
        record.as_ref().map(|record| object::text(record, "/status/intent/validUntil").to_owned()).unwrap_or_default()
    };
    let after = until(&change.after);
    !after.is_empty() && after != until(&change.before)
}

/// Whether a record's act is offered.
pub fn is_offered(record: &Value) -> bool {
    !object::text(record, "/status/intent/validUntil").is_empty()
}

/// Whether a record is that of a person's wish.
pub fn is_manual(record: &Value) -> bool {
    object::text(record, "/spec/trigger") == "manual"
}

/// Whether a person waived a gate.
pub fn waives(record: &Value, gate: &str) -> bool {
    let all = record.at("/spec/overrides").and_then(Value::as_array);
    all.into_iter().flatten().any(|one| object::text(one, "/gate") == gate)
}

/// The node that a change of pods acts on: an action pod that is created.
pub fn acted_on(change: &Change) -> Option<&str> {
    let pod = change.after.as_ref().filter(|_| change.before.is_none() && change.key.namespace == ACTION_NAMESPACE)?;
    (object::annotation(pod, ACTION_ANNOTATION) == Some("true")).then(|| object::text(pod, "/spec/nodeName"))
}

fn has_halt(map: &Value) -> bool {
    map.at("/data/halt").is_some_and(|halt| !halt.is_null())
}

/// Whether everything is halted.
pub fn is_halted(objects: &Objects) -> bool {
    objects.get(&ObjectKey::new("", "configmaps", "maint", "maint-control")).is_some_and(|map| has_halt(map))
}

/// Whether a change halts everything.
pub fn halts(change: &Change) -> bool {
    change.key.name == "maint-control" && change.after.as_ref().is_some_and(|map| has_halt(map))
}
