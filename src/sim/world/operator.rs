//! The operator of a database, as small as it can be: it moves the primary away from a cordoned node.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Due, ROLE_LABEL, SWITCHOVER_ANNOTATION, Write};
use crate::store::object::At as _;
use crate::store::{ObjectKey, Store, object};

/// How often it looks where nothing is to be moved.
const LOOK: Duration = Duration::from_secs(2);

fn role(pod: &Value) -> &str {
    pod.at("/metadata/labels").and_then(|labels| labels.get(ROLE_LABEL)).and_then(Value::as_str).unwrap_or_default()
}

fn with_role(pod: &Value, role: &str) -> Write {
    let mut new = pod.clone();
    if let Some(labels) = new.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.insert(ROLE_LABEL.to_owned(), json!(role));
    }
    Write::Put(ObjectKey::pod(object::namespace(pod), object::name(pod)), new)
}

fn is_cordoned(store: &Store, pod: &Value) -> bool {
    let node = store.object(&ObjectKey::node(object::text(pod, "/spec/nodeName")));
    node.is_some_and(|node| node.at("/spec/unschedulable").and_then(Value::as_bool) == Some(true))
}

/// A look at a StatefulSet: without a primary the first Ready pod becomes it; one on a cordoned node is moved to a Ready
/// pod on another node, once the set's time since it was seen there has passed.
pub fn look(store: &Store, key: &ObjectKey) -> Vec<Write> {
    let Some(set) = store.object(key).filter(|set| !object::is_deleting(set)) else { return Vec::new() };
    let mut writes = vec![Write::Later(LOOK, Due::Operator(key.clone()))];
    let pods: Vec<&Value> = store
        .all("", "pods")
        .map(AsRef::as_ref)
        .filter(|pod| object::namespace(pod) == key.namespace && !object::is_deleting(pod))
        .filter(|pod| object::text(pod, "/metadata/ownerReferences/0/uid") == object::uid(set))
        .collect();
    let fit = |pod: &&&Value| object::is_true(pod, "Ready") && !is_cordoned(store, pod);
    let primary = pods.iter().find(|pod| role(pod) == "primary");
    let Some(primary) = primary else {
        writes.extend(pods.iter().find(fit).map(|pod| with_role(pod, "primary")));
        return writes;
    };
    if !is_cordoned(store, primary) {
        return writes;
    }
    // It takes its time: the mark of the pod that shall be the primary says since when.
    let wait = object::annotation(set, SWITCHOVER_ANNOTATION).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let looks = wait / LOOK.as_secs().max(1);
    let seen = object::annotation(primary, MOVES).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    if seen < looks {
        let mut new = Value::clone(primary);
        object::annotate(&mut new, MOVES, &(seen + 1).to_string());
        writes.push(Write::Put(ObjectKey::pod(object::namespace(primary), object::name(primary)), new));
        return writes;
    }
    if let Some(next) = pods.iter().find(fit) {
        writes.push(with_role(primary, "replica"));
        writes.push(with_role(next, "primary"));
    }
    writes
}

/// Annotation of a primary on a cordoned node: the looks that saw it there.
const MOVES: &str = "sim.maint.dev/looks-on-a-cordoned-node";
