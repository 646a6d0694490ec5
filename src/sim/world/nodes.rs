//! Kubelets, reboots, the node lifecycle controller, and etcd's own report.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Due, LEARNER_ANNOTATION, STUCK_ANNOTATION, State, Write};
use crate::store::object::At as _;
use crate::store::{ObjectKey, Store, object};

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
const ETCD_LABEL: &str = "node-role.kubernetes.io/etcd";
const SERVER_LABEL: &str = "node-role.kubernetes.io/control-plane";
/// Tick of the etcd leader (k3s).
const ETCD_TICK: Duration = Duration::from_secs(15);

fn older(at: Option<Timestamp>, age: Duration, now: Timestamp) -> bool {
    let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
    at.is_none_or(|at| now.duration_since(at) >= age)
}

fn lease_key(node: &str) -> ObjectKey {
    ObjectKey::new("coordination.k8s.io", "leases", "kube-node-lease", node)
}

fn renew(store: &Store, node: &str, now: Timestamp) -> Write {
    let key = lease_key(node);
    match store.object(&key) {
        Some(lease) => {
            let mut lease = Value::clone(lease);
            object::map(&mut lease, "spec").insert("renewTime".to_owned(), json!(object::micros(now)));
            Write::Put(key, lease)
        }
        None => Write::Create(json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": node, "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": object::micros(now)}})),
    }
}

/// A kubelet's round: lease always, status when it is old or wrong.
pub fn kubelet(state: &State, store: &Store, node: &str, now: Timestamp) -> Vec<Write> {
    let Some(found) = store.object(&ObjectKey::node(node)) else { return Vec::new() };
    let mut writes = vec![Write::Later(state.settings.lease_period, Due::Kubelet(node.to_owned()))];
    if state.down.contains(node) {
        return writes;
    }
    writes.push(renew(store, node, now));
    let beat = object::condition(found, "Ready").and_then(|ready| object::time(ready, "/lastHeartbeatTime"));
    if !object::is_true(found, "Ready") || older(beat, state.settings.status_period, now) {
        let mut new = Value::clone(found);
        object::set_condition(&mut new, "Ready", "True", "KubeletReady", "kubelet is posting ready status", now);
        object::beat(&mut new, "Ready", now);
        writes.push(Write::Put(ObjectKey::node(node), new));
    }
    writes
}

/// A node goes down: kubelet and API server with it; the slice of API servers shows it after `seen`.
pub fn power_off(state: &mut State, node: &str, seen: Duration) -> Vec<Write> {
    state.down.insert(node.to_owned());
    state.servers_down.insert(node.to_owned());
    vec![
        Write::Kubelet(node.to_owned(), false),
        Write::Servers(node.to_owned(), false),
        Write::Later(seen, Due::ServerSlice),
    ]
}

/// The API server of a node is back, unless the node went down again.
pub fn server_up(state: &mut State, node: &str) -> Vec<Write> {
    if state.down.contains(node) {
        return Vec::new();
    }
    state.servers_down.remove(node);
    vec![Write::Servers(node.to_owned(), true), Write::Later(Duration::ZERO, Due::ServerSlice)]
}

/// `default/kubernetes`: the addresses of the API servers that are up.
pub fn server_slice(state: &State, store: &Store) -> Vec<Write> {
    let endpoints: Vec<Value> = store
        .all("", "nodes")
        .filter(|node| node.at("/metadata/labels").and_then(|labels| labels.get(SERVER_LABEL)).is_some())
        .filter(|node| !state.servers_down.contains(object::name(node)))
        .map(|node| json!({"addresses": [object::text(node, "/status/addresses/0/address")], "conditions": {"ready": true}}))
        .collect();
    let key = ObjectKey::new("discovery.k8s.io", "endpointslices", "default", "kubernetes");
    match store.object(&key) {
        Some(slice) => {
            let mut new = Value::clone(slice);
            if let Some(map) = new.as_object_mut() {
                map.insert("endpoints".to_owned(), Value::Array(endpoints));
            }
            vec![Write::Put(key, new)]
        }
        None => vec![Write::Create(json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "kubernetes", "namespace": "default",
                "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "addressType": "IPv4", "endpoints": endpoints,
            "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}]}))],
    }
}

/// A node is back: new boot ID and Ready in one status, its pods start again, its terminating ones end.
pub fn boot(state: &mut State, store: &Store, node: &str, now: Timestamp) -> Vec<Write> {
    if !state.down.remove(node) {
        return Vec::new();
    }
    let mut writes = vec![
        Write::Kubelet(node.to_owned(), true),
        Write::Later(state.settings.server_lag, Due::ServerUp(node.to_owned())),
        renew(store, node, now),
    ];
    let key = ObjectKey::node(node);
    if let Some(found) = store.object(&key) {
        let mut new = Value::clone(found);
        let boot_id = state.random.uuid();
        let info = object::map(&mut new, "status").entry("nodeInfo").or_insert_with(|| json!({}));
        if let Some(info) = info.as_object_mut() {
            info.insert("bootID".to_owned(), json!(boot_id));
        }
        object::set_condition(&mut new, "Ready", "True", "KubeletReady", "kubelet is posting ready status", now);
        object::beat(&mut new, "Ready", now);
        writes.push(Write::Put(key, new));
    }
    let acted = state.acting.remove(node);
    for pod in pods_on(store, node) {
        let key = ObjectKey::pod(object::namespace(pod), object::name(pod));
        let uid = object::uid(pod).to_owned();
        if acted.as_ref() == Some(&key) {
            let mut new = Value::clone(pod);
            object::map(&mut new, "status").insert("phase".to_owned(), json!("Succeeded"));
            object::set_condition(&mut new, "Ready", "False", "PodCompleted", "", now);
            writes.push(Write::Put(key, new));
        } else if object::is_deleting(pod) {
            if object::annotation(pod, STUCK_ANNOTATION).is_some() {
                let mut new = pod.clone();
                let annotations = new.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
                annotations.map(|annotations| annotations.remove(STUCK_ANNOTATION));
                writes.push(Write::Put(key.clone(), new));
            }
            writes.push(Write::Later(state.settings.stop, Due::Stop(key, uid)));
        } else if object::text(pod, "/status/phase") == "Running" {
            writes.push(Write::Put(key.clone(), restarted(pod, now)));
            writes.push(Write::Later(state.settings.start, Due::Start(key, uid)));
        } else {
            writes.push(Write::Later(state.settings.start, Due::Start(key, uid)));
        }
    }
    writes
}

fn pods_on<'a>(store: &'a Store, node: &str) -> impl Iterator<Item = &'a Value> {
    let node = node.to_owned();
    store.all("", "pods").map(AsRef::as_ref).filter(move |pod| object::text(pod, "/spec/nodeName") == node)
}

fn restarted(pod: &Value, now: Timestamp) -> Value {
    let mut new = pod.clone();
    for kind in ["Ready", "ContainersReady"] {
        object::set_condition(&mut new, kind, "False", "ContainersNotReady", "", now);
    }
    let statuses = object::map(&mut new, "status").get_mut("containerStatuses").and_then(Value::as_array_mut);
    for status in statuses.into_iter().flatten() {
        let count = status.get("restartCount").and_then(Value::as_i64).unwrap_or(0);
        if let Some(status) = status.as_object_mut() {
            status.insert("restartCount".to_owned(), json!(count + 1));
            status.insert("ready".to_owned(), json!(false));
        }
    }
    new
}

/// The node lifecycle controller: a node whose lease is older than the grace period is Unknown, and so are its pods.
pub fn monitor(state: &State, store: &Store, now: Timestamp) -> Vec<Write> {
    let mut writes = vec![Write::Later(state.settings.monitor_period, Due::Monitor)];
    // The lease of the controller manager that it is a part of, where the cluster has one.
    let own = ObjectKey::new("coordination.k8s.io", "leases", "kube-system", "kube-controller-manager");
    if let Some(lease) = store.object(&own) {
        let mut lease = Value::clone(lease);
        object::map(&mut lease, "spec").insert("renewTime".to_owned(), json!(object::micros(now)));
        writes.push(Write::Put(own, lease));
    }
    for node in store.all("", "nodes") {
        let name = object::name(node);
        let renewed = store.object(&lease_key(name)).and_then(|lease| object::time(lease, "/spec/renewTime"));
        let ready = object::condition(node, "Ready").map_or("", |ready| object::text(ready, "/status"));
        if renewed.is_none() || !older(renewed, state.settings.node_grace, now) || ready == "Unknown" {
            continue;
        }
        let mut new = Value::clone(node);
        let message = "Kubelet stopped posting node status.";
        object::set_condition(&mut new, "Ready", "Unknown", "NodeStatusUnknown", message, now);
        for effect in ["NoSchedule", "NoExecute"] {
            set_taint(&mut new, UNREACHABLE, effect, true, now);
        }
        writes.push(Write::Put(ObjectKey::node(name), new));
        for pod in pods_on(store, name).filter(|pod| object::is_true(pod, "Ready")) {
            let mut new = pod.clone();
            object::set_condition(&mut new, "Ready", "False", "", "", now);
            writes.push(Write::Put(ObjectKey::pod(object::namespace(pod), object::name(pod)), new));
        }
    }
    writes
}

/// The taints that follow `spec.unschedulable` and the end of unreachability.
pub fn taints(store: &Store, node: &str, now: Timestamp) -> Vec<Write> {
    let key = ObjectKey::node(node);
    let Some(found) = store.object(&key) else { return Vec::new() };
    let mut new = Value::clone(found);
    let cordoned = found.at("/spec/unschedulable").and_then(Value::as_bool) == Some(true);
    set_taint(&mut new, UNSCHEDULABLE, "NoSchedule", cordoned, now);
    if object::is_true(found, "Ready") {
        for effect in ["NoSchedule", "NoExecute"] {
            set_taint(&mut new, UNREACHABLE, effect, false, now);
        }
    }
    vec![Write::Put(key, new)]
}

fn set_taint(node: &mut Value, key: &str, effect: &str, wanted: bool, now: Timestamp) {
    let spec = object::map(node, "spec");
    let mut taints = spec.get("taints").and_then(Value::as_array).cloned().unwrap_or_default();
    let same = |taint: &Value| object::text(taint, "/key") == key && object::text(taint, "/effect") == effect;
    match (taints.iter().any(same), wanted) {
        (false, true) => taints.push(json!({"key": key, "effect": effect, "timeAdded": object::seconds(now)})),
        (true, false) => taints.retain(|taint| !same(taint)),
        _ => return,
    }
    if taints.is_empty() {
        spec.remove("taints");
    } else {
        spec.insert("taints".to_owned(), Value::Array(taints));
    }
}

/// The etcd leader's report about every member; without quorum nobody writes it.
pub fn etcd(state: &State, store: &Store, now: Timestamp) -> Vec<Write> {
    let mut writes = vec![Write::Later(ETCD_TICK, Due::Etcd)];
    let labelled = |node: &&Value| node.at("/metadata/labels").and_then(|labels| labels.get(ETCD_LABEL)).is_some();
    let members: Vec<&Value> = store.all("", "nodes").map(AsRef::as_ref).filter(labelled).collect();
    let up = members.iter().filter(|node| !state.down.contains(object::name(node))).count();
    if members.is_empty() || up * 2 <= members.len() {
        return writes;
    }
    for node in members {
        let name = object::name(node);
        let (status, reason) = match object::annotation(node, LEARNER_ANNOTATION) {
            _ if state.down.contains(name) => ("False", "Unhealthy"),
            Some(_) => ("False", "MemberIsLearner"),
            None => ("True", "MemberNotLearner"),
        };
        let condition = object::condition(node, "EtcdIsVoter");
        let beat = condition.and_then(|condition| object::time(condition, "/lastHeartbeatTime"));
        let same = condition.is_some_and(|condition| object::text(condition, "/status") == status);
        if same && !older(beat, state.settings.etcd_period, now) {
            continue;
        }
        let mut new = node.clone();
        object::set_condition(&mut new, "EtcdIsVoter", status, reason, "", now);
        object::beat(&mut new, "EtcdIsVoter", now);
        writes.push(Write::Put(ObjectKey::node(name), new));
    }
    writes
}
