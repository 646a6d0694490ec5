//! Workload, disruption and EndpointSlice controllers, as small as they can be.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::{State, Write, observe};
use crate::store::object::At as _;
use crate::store::select::Labels;
use crate::store::{ObjectKey, Store, object};

/// After this long a name in `disruptedPods` is taken for a pod that was not evicted after all.
const DELETION_TIMEOUT: SignedDuration = SignedDuration::from_secs(120);

fn number(value: &Value, pointer: &str) -> i64 {
    value.at(pointer).and_then(Value::as_i64).unwrap_or(0)
}

fn owned<'a>(store: &'a Store, group: &str, resource: &str, owner: &ObjectKey, uid: &str) -> Vec<&'a Value> {
    let mine = |object: &&Value| {
        let owners = object.at("/metadata/ownerReferences").and_then(Value::as_array);
        object::namespace(object) == owner.namespace
            && owners.into_iter().flatten().any(|entry| object::text(entry, "/uid") == uid)
    };
    store.all(group, resource).map(AsRef::as_ref).filter(mine).collect()
}

fn lives(pod: &Value) -> bool {
    !object::is_deleting(pod) && !matches!(object::text(pod, "/status/phase"), "Succeeded" | "Failed")
}

/// A controller's look at its workload.
pub fn workload(state: &mut State, store: &Store, key: &ObjectKey) -> Vec<Write> {
    let Some(found) = store.object(key) else { return Vec::new() };
    if object::is_deleting(found) {
        return Vec::new();
    }
    let uid = object::uid(found).to_owned();
    match key.resource.resource.as_str() {
        "deployments" => deployment(store, key, found, &uid),
        "daemonsets" => daemon_set(state, store, key, found, &uid),
        "statefulsets" => replicas(state, store, key, found, &uid, true),
        _ => replicas(state, store, key, found, &uid, false),
    }
}

fn from_template(owner: &Value, name: &str) -> Value {
    let template = owner.at("/spec/template").cloned().unwrap_or(Value::Null);
    let mut metadata = template.get("metadata").and_then(Value::as_object).cloned().unwrap_or_else(Map::new);
    metadata.insert("name".to_owned(), json!(name));
    metadata.insert("namespace".to_owned(), json!(object::namespace(owner)));
    metadata.insert("ownerReferences".to_owned(), reference(owner));
    let spec = template.get("spec").cloned().unwrap_or_else(|| json!({}));
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

fn reference(owner: &Value) -> Value {
    json!([{"apiVersion": "apps/v1", "kind": object::text(owner, "/kind"), "name": object::name(owner),
        "uid": object::uid(owner), "controller": true, "blockOwnerDeletion": true}])
}

fn put_status(key: &ObjectKey, found: &Value, members: &[(&str, i64)]) -> Write {
    let mut new = found.clone();
    let generation = number(found, "/metadata/generation");
    let status = object::map(&mut new, "status");
    status.insert("observedGeneration".to_owned(), json!(generation));
    for (name, value) in members {
        status.insert((*name).to_owned(), json!(value));
    }
    Write::Put(key.clone(), new)
}

fn deployment(store: &Store, key: &ObjectKey, found: &Value, uid: &str) -> Vec<Write> {
    let sets = owned(store, "apps", "replicasets", key, uid);
    let wanted = found.at("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let Some(set) = sets.first() else {
        let mut spec = json!({"replicas": wanted, "selector": found.at("/spec/selector").cloned(),
            "template": found.at("/spec/template").cloned()});
        let spec = spec.take();
        return vec![Write::Create(json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": format!("{}-1", key.name), "namespace": key.namespace,
                "labels": found.at("/spec/template/metadata/labels").cloned(),
                "ownerReferences": reference(found)},
            "spec": spec}))];
    };
    let sum = |field: &str| sets.iter().map(|set| number(set, &format!("/status/{field}"))).sum::<i64>();
    let members = [
        ("replicas", sum("replicas")),
        ("updatedReplicas", sum("replicas")),
        ("readyReplicas", sum("readyReplicas")),
        ("availableReplicas", sum("readyReplicas")),
        ("unavailableReplicas", (wanted - sum("readyReplicas")).max(0)),
    ];
    let mut writes = vec![put_status(key, found, &members)];
    if number(set, "/spec/replicas") != wanted {
        let mut new = Value::clone(set);
        object::map(&mut new, "spec").insert("replicas".to_owned(), json!(wanted));
        writes.push(Write::Put(ObjectKey::new("apps", "replicasets", &key.namespace, object::name(set)), new));
    }
    writes
}

fn replicas(state: &mut State, store: &Store, key: &ObjectKey, found: &Value, uid: &str, ordinal: bool) -> Vec<Write> {
    let wanted = usize::try_from(found.at("/spec/replicas").and_then(Value::as_i64).unwrap_or(1)).unwrap_or(0);
    let all = owned(store, "", "pods", key, uid);
    let living: Vec<&Value> = all.iter().copied().filter(|pod| lives(pod)).collect();
    let count = |ready: bool| living.iter().filter(|pod| !ready || object::is_true(pod, "Ready")).count();
    // As in `computeReplicaStatus`: pods of a StatefulSet that are ending count as ready, and are in none of its revisions.
    let ready = all.iter().filter(|pod| object::is_true(pod, "Ready")).count();
    let ready = if ordinal { ready } else { count(true) };
    let mut members = vec![
        ("replicas", i64::try_from(count(false)).unwrap_or(0)),
        ("readyReplicas", i64::try_from(ready).unwrap_or(0)),
        ("availableReplicas", i64::try_from(ready).unwrap_or(0)),
    ];
    if ordinal {
        members.push(("currentReplicas", i64::try_from(count(false)).unwrap_or(0)));
    }
    let mut writes = vec![put_status(key, found, &members)];
    if ordinal {
        for index in 0..wanted {
            let name = format!("{}-{index}", key.name);
            if !all.iter().any(|pod| object::name(pod) == name) {
                writes.push(Write::Create(from_template(found, &name)));
            }
        }
        return writes;
    }
    for _ in living.len()..wanted {
        let name = format!("{}-{}", key.name, state.random.suffix(5));
        writes.push(Write::Create(from_template(found, &name)));
    }
    for pod in living.iter().skip(wanted) {
        writes.push(Write::Delete(ObjectKey::pod(object::namespace(pod), object::name(pod))));
    }
    writes
}

/// One pod on each node that the template selects, cordoned or not.
fn daemon_set(state: &mut State, store: &Store, key: &ObjectKey, found: &Value, uid: &str) -> Vec<Write> {
    let pods = owned(store, "", "pods", key, uid);
    let (mut desired, mut ready) = (0, 0);
    let mut creates = Vec::new();
    for node in store.all("", "nodes") {
        let selector = found.at("/spec/template/spec/nodeSelector").and_then(Value::as_object);
        let labels = node.at("/metadata/labels");
        if !selector.into_iter().flatten().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
        {
            continue;
        }
        desired += 1;
        let name = object::name(node);
        let here: Vec<_> = pods.iter().filter(|pod| object::text(pod, "/spec/nodeName") == name).collect();
        if here.is_empty() {
            let mut pod = from_template(found, &format!("{}-{}", key.name, state.random.suffix(5)));
            object::map(&mut pod, "spec").insert("nodeName".to_owned(), json!(name));
            creates.push(Write::Create(pod));
        }
        ready += i64::from(here.iter().any(|pod| lives(pod) && object::is_true(pod, "Ready")));
    }
    let members = [
        ("desiredNumberScheduled", desired),
        ("currentNumberScheduled", desired),
        ("updatedNumberScheduled", desired),
        ("numberReady", ready),
        ("numberAvailable", ready),
        ("numberUnavailable", desired - ready),
        ("numberMisscheduled", 0),
    ];
    let mut writes = vec![put_status(key, found, &members)];
    writes.extend(creates);
    writes
}

/// The disruption controller.
pub fn budgets(store: &Store, now: Timestamp) -> Vec<Write> {
    store.all("policy", "poddisruptionbudgets").map(|budget| self::budget(store, budget, now)).collect()
}

fn budget(store: &Store, budget: &Value, now: Timestamp) -> Write {
    let namespace = object::namespace(budget);
    let selector = Labels::of_object(budget.at("/spec/selector"));
    let selected = |pod: &&Value| {
        object::namespace(pod) == namespace && selector.as_ref().is_some_and(|selector| selector.matches(pod))
    };
    let pods: Vec<&Value> = store
        .all("", "pods")
        .map(AsRef::as_ref)
        .filter(selected)
        .filter(|pod| !matches!(object::text(pod, "/status/phase"), "Succeeded" | "Failed"))
        .collect();
    let mut disrupted = budget.at("/status/disruptedPods").and_then(Value::as_object).cloned().unwrap_or_default();
    disrupted.retain(|name, at| {
        let since = at.as_str().and_then(|text| text.parse::<Timestamp>().ok());
        let fresh = since.is_some_and(|since| now.duration_since(since) < DELETION_TIMEOUT);
        fresh && pods.iter().any(|pod| object::name(pod) == name && !object::is_deleting(pod))
    });
    let healthy = pods.iter().filter(|pod| {
        object::is_true(pod, "Ready") && !object::is_deleting(pod) && !disrupted.contains_key(object::name(pod))
    });
    let healthy = i64::try_from(healthy.count()).unwrap_or(0);
    let (expected, desired) = wanted(store, budget, &pods);
    let failed = sync_failure(budget, &pods);
    let allowed = if expected > 0 && failed.is_none() { (healthy - desired).max(0) } else { 0 };
    let mut new = budget.clone();
    let status = object::map(&mut new, "status");
    // What the controller cannot judge stays unobserved (`failSafe`).
    if failed.is_none() {
        status.insert("observedGeneration".to_owned(), json!(number(budget, "/metadata/generation")));
    }
    for (name, value) in [
        ("expectedPods", expected),
        ("desiredHealthy", desired),
        ("currentHealthy", healthy),
        ("disruptionsAllowed", allowed),
    ] {
        status.insert(name.to_owned(), json!(value));
    }
    if disrupted.is_empty() {
        status.remove("disruptedPods");
    } else {
        status.insert("disruptedPods".to_owned(), Value::Object(disrupted));
    }
    let (value, reason) = match (&failed, allowed) {
        (Some(_), _) => ("False", "SyncFailed"),
        (None, 0) => ("False", "InsufficientPods"),
        (None, _) => ("True", "SufficientPods"),
    };
    object::set_condition(&mut new, "DisruptionAllowed", value, reason, failed.as_deref().unwrap_or_default(), now);
    Write::Put(ObjectKey::new("policy", "poddisruptionbudgets", namespace, object::name(budget)), new)
}

/// Why the controller cannot tell how many pods there should be: all but a number as `minAvailable` asks each pod's
/// owner for its scale.
fn sync_failure(budget: &Value, pods: &[&Value]) -> Option<String> {
    let least = budget.at("/spec/minAvailable").filter(|value| !value.is_null());
    if least.is_some_and(|least| !least.is_string()) {
        return None;
    }
    pods.iter().find_map(|pod| {
        let owners = pod.at("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
        let owner = owners.into_iter().find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))?;
        let kind = object::text(owner, "/kind");
        let scales = matches!(kind, "Deployment" | "ReplicaSet" | "StatefulSet" | "ReplicationController");
        (!scales).then(|| format!("{}s does not implement the scale subresource", kind.to_lowercase()))
    })
}

/// Expected pods and desired healthy ones. A number as `minAvailable` counts the pods themselves; the other forms
/// ask the owners for their replicas. Percentages round up.
fn wanted(store: &Store, budget: &Value, pods: &[&Value]) -> (i64, i64) {
    let mut owners: BTreeMap<ObjectKey, i64> = BTreeMap::new();
    for pod in pods {
        let key = ObjectKey::pod(object::namespace(pod), object::name(pod));
        if let Some(owner) = observe::owner(&key, Some(pod)) {
            let replicas = store.object(&owner).map_or(0, |owner| number(owner, "/spec/replicas"));
            owners.insert(owner, replicas);
        }
    }
    let scaled: i64 = owners.values().sum();
    let part = |value: &Value, whole: i64| match value {
        Value::String(text) => {
            let percent = text.trim_end_matches('%').parse::<i64>().unwrap_or(100);
            (whole * percent + 99) / 100
        }
        other => other.as_i64().unwrap_or(0),
    };
    let spec = |field: &str| budget.at(&format!("/spec/{field}")).filter(|value| !value.is_null());
    match (spec("maxUnavailable"), spec("minAvailable")) {
        (Some(most), _) => (scaled, (scaled - part(most, scaled)).max(0)),
        (None, Some(least @ Value::String(_))) => (scaled, part(least, scaled)),
        (None, Some(least)) => (i64::try_from(pods.len()).unwrap_or(0), part(least, 0)),
        (None, None) => (i64::try_from(pods.len()).unwrap_or(0), 1),
    }
}

/// One EndpointSlice for each Service with a selector.
pub fn slices(store: &Store) -> Vec<Write> {
    let mut writes = Vec::new();
    for service in store.all("", "services") {
        let Some(selector) = Labels::of_map(service.at("/spec/selector")) else { continue };
        let (namespace, name) = (object::namespace(service), object::name(service));
        let endpoints: Vec<Value> = store
            .all("", "pods")
            .filter(|pod| object::namespace(pod) == namespace && selector.matches(pod))
            .filter(|pod| !object::text(pod, "/status/podIP").is_empty())
            .filter(|pod| !matches!(object::text(pod, "/status/phase"), "Succeeded" | "Failed"))
            .map(|pod| endpoint(pod))
            .collect();
        let key = ObjectKey::new("discovery.k8s.io", "endpointslices", namespace, &format!("{name}-sim"));
        if let Some(slice) = store.object(&key) {
            let mut new = Value::clone(slice);
            if let Some(map) = new.as_object_mut() {
                map.insert("endpoints".to_owned(), Value::Array(endpoints));
            }
            writes.push(Write::Put(key, new));
        } else {
            let mut labels = service.at("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default();
            labels.insert("kubernetes.io/service-name".to_owned(), json!(name));
            writes.push(Write::Create(json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                    "metadata": {"name": format!("{name}-sim"), "namespace": namespace, "labels": labels},
                    "addressType": "IPv4", "endpoints": endpoints,
                    "ports": service.at("/spec/ports").cloned().unwrap_or_else(|| json!([]))})));
        }
    }
    writes
}

fn endpoint(pod: &Value) -> Value {
    let (serving, terminating) = (object::is_true(pod, "Ready"), object::is_deleting(pod));
    json!({"addresses": [object::text(pod, "/status/podIP")], "nodeName": object::text(pod, "/spec/nodeName"),
        "conditions": {"ready": serving && !terminating, "serving": serving, "terminating": terminating},
        "targetRef": {"kind": "Pod", "namespace": object::namespace(pod), "name": object::name(pod),
            "uid": object::uid(pod)}})
}
