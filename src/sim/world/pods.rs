//! Pods: a trivial scheduler, start and end, and the pods that reboot their node.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{ACTION_ANNOTATION, ACTION_BOOT_ID, ACTION_NAMESPACE, Due, STUCK_ANNOTATION, State, Write, nodes, observe};
use crate::store::object::At as _;
use crate::store::{ObjectKey, Store, object};

fn schedulable(node: &Value) -> bool {
    let tainted = node.at("/spec/taints").and_then(Value::as_array).is_some_and(|taints| {
        taints.iter().any(|taint| matches!(object::text(taint, "/effect"), "NoSchedule" | "NoExecute"))
    });
    let cordoned = node.at("/spec/unschedulable").and_then(Value::as_bool) == Some(true);
    object::is_true(node, "Ready") && !cordoned && !tainted
}

fn selects(pod: &Value, node: &Value) -> bool {
    let wanted = pod.at("/spec/nodeSelector").and_then(Value::as_object);
    let labels = node.at("/metadata/labels");
    wanted.into_iter().flatten().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
}

/// Binds every pod that waits for a node: to the one with the fewest pods of the same owner, then the fewest pods,
/// then by name.
pub fn schedule(store: &Store, now: Timestamp) -> Vec<Write> {
    let owner = |pod: &Value| {
        let key = ObjectKey::pod(object::namespace(pod), object::name(pod));
        observe::owner(&key, Some(pod))
    };
    let mut total: BTreeMap<String, usize> = BTreeMap::new();
    let mut per_owner: BTreeMap<(String, ObjectKey), usize> = BTreeMap::new();
    let mut waiting = Vec::new();
    for pod in store.all("", "pods") {
        let node = object::text(pod, "/spec/nodeName");
        if node.is_empty() {
            if object::text(pod, "/status/phase") == "Pending" && !object::is_deleting(pod) {
                waiting.push(pod);
            }
        } else if !object::is_deleting(pod) {
            *total.entry(node.to_owned()).or_insert(0) += 1;
            if let Some(owner) = owner(pod) {
                *per_owner.entry((node.to_owned(), owner)).or_insert(0) += 1;
            }
        }
    }
    let nodes: Vec<&Value> = store.all("", "nodes").map(AsRef::as_ref).filter(|node| schedulable(node)).collect();
    let mut writes = Vec::new();
    for pod in waiting {
        let owner = owner(pod);
        let weight = |node: &&&Value| {
            let name = object::name(node).to_owned();
            let same = owner.clone().and_then(|owner| per_owner.get(&(name.clone(), owner)).copied()).unwrap_or(0);
            (same, total.get(&name).copied().unwrap_or(0), name)
        };
        let Some(node) = nodes.iter().filter(|node| selects(pod, node)).min_by_key(weight) else { continue };
        let name = object::name(node).to_owned();
        let mut new = Value::clone(pod);
        object::map(&mut new, "spec").insert("nodeName".to_owned(), json!(name));
        object::set_condition(&mut new, "PodScheduled", "True", "", "", now);
        writes.push(Write::Put(ObjectKey::pod(object::namespace(pod), object::name(pod)), new));
        *total.entry(name.clone()).or_insert(0) += 1;
        if let Some(owner) = owner {
            *per_owner.entry((name, owner)).or_insert(0) += 1;
        }
    }
    writes
}

fn same_pod<'a>(store: &'a Store, key: &ObjectKey, uid: &str) -> Option<&'a Value> {
    store.object(key).map(AsRef::as_ref).filter(|pod| object::uid(pod) == uid)
}

/// A pod becomes Ready, if its node is up.
pub fn start(state: &State, store: &Store, key: &ObjectKey, uid: &str, now: Timestamp) -> Vec<Write> {
    let Some(pod) = same_pod(store, key, uid) else { return Vec::new() };
    let node = object::text(pod, "/spec/nodeName");
    let ended = matches!(object::text(pod, "/status/phase"), "Succeeded" | "Failed");
    let there = store.object(&ObjectKey::node(node)).is_some();
    if !there || state.down.contains(node) || object::is_deleting(pod) || ended || object::is_true(pod, "Ready") {
        return Vec::new();
    }
    let mut new = pod.clone();
    for kind in ["Initialized", "PodReadyToStartContainers", "ContainersReady", "Ready"] {
        object::set_condition(&mut new, kind, "True", "", "", now);
    }
    let restarts = pod.at("/status/containerStatuses/0/restartCount").and_then(Value::as_i64).unwrap_or(0);
    let status = object::map(&mut new, "status");
    status.insert("phase".to_owned(), json!("Running"));
    status.entry("startTime").or_insert_with(|| json!(object::seconds(now)));
    let ip = address(uid);
    status.entry("podIP").or_insert_with(|| json!(ip));
    status.entry("podIPs").or_insert_with(|| json!([{"ip": ip}]));
    status.insert(
        "containerStatuses".to_owned(),
        json!([{"name": "main", "ready": true, "started": true, "restartCount": restarts,
            "state": {"running": {"startedAt": object::seconds(now)}}}]),
    );
    let mut writes = vec![Write::Put(key.clone(), new)];
    if key.namespace == ACTION_NAMESPACE && object::annotation(pod, ACTION_ANNOTATION) == Some("true") {
        writes.push(Write::Later(state.settings.action, Due::Act(key.clone(), uid.to_owned())));
    }
    writes
}

/// An address that is the pod's own as far as its uid is.
fn address(uid: &str) -> String {
    let hash = crate::random::fnv1a(crate::random::FNV_OFFSET, uid.as_bytes());
    format!("10.42.{}.{}", (hash >> 8) & 0xFF, hash & 0xFF)
}

/// A terminating pod ends, if its node is up; a finalizer keeps the object. The kubelet of a node that is down
/// does this after its return.
pub fn stop(state: &State, store: &Store, key: &ObjectKey, uid: &str) -> Vec<Write> {
    match same_pod(store, key, uid) {
        Some(pod)
            if object::is_deleting(pod)
                && !state.down.contains(object::text(pod, "/spec/nodeName"))
                && object::annotation(pod, STUCK_ANNOTATION).is_none() =>
        {
            vec![Write::End(key.clone())]
        }
        _ => Vec::new(),
    }
}

/// The finalizers of a terminating pod go; with them the pod, where its containers have ended.
pub fn free(store: &Store, key: &ObjectKey, uid: &str) -> Vec<Write> {
    let Some(pod) = same_pod(store, key, uid).filter(|pod| object::has_finalizers(pod)) else { return Vec::new() };
    let mut new = pod.clone();
    object::set_meta(&mut new, "finalizers", Value::Null);
    let ended = pod.at("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64) == Some(0);
    let mut writes = vec![Write::Put(key.clone(), new)];
    writes.extend(ended.then(|| Write::End(key.clone())));
    writes
}

/// An action pod compares the boot ID and reboots its node; with another boot ID it has acted already.
pub fn act(state: &mut State, store: &Store, key: &ObjectKey, uid: &str) -> Vec<Write> {
    let Some(pod) = same_pod(store, key, uid) else { return Vec::new() };
    let node = object::text(pod, "/spec/nodeName");
    if state.down.contains(node) || object::is_deleting(pod) || object::text(pod, "/status/phase") != "Running" {
        return Vec::new();
    }
    let found = store.object(&ObjectKey::node(node)).map_or("", |node| object::text(node, "/status/nodeInfo/bootID"));
    if expected(pod) != Some(found) {
        let mut new = pod.clone();
        object::map(&mut new, "status").insert("phase".to_owned(), json!("Succeeded"));
        return vec![Write::Put(key.clone(), new)];
    }
    state.acting.insert(node.to_owned(), key.clone());
    let leave = state.settings.server_leave;
    let mut writes = nodes::power_off(state, node, leave);
    writes.push(Write::Later(state.settings.reboot, Due::Boot(node.to_owned())));
    writes
}

/// The boot ID that an action pod expects: its environment, or an annotation of the same name in lower case.
fn expected(pod: &Value) -> Option<&str> {
    let containers = pod.at("/spec/containers").and_then(Value::as_array);
    let in_environment = containers
        .into_iter()
        .flatten()
        .filter_map(|container| container.get("env")?.as_array())
        .flatten()
        .find(|entry| object::text(entry, "/name") == ACTION_BOOT_ID)
        .and_then(|entry| entry.get("value")?.as_str());
    in_environment.or_else(|| object::annotation(pod, "maint.dev/expected-boot-id"))
}
