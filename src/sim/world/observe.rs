//! What follows from a change: pure, one object at a time.

use std::time::Duration;

use serde_json::Value;

use super::{Due, FINALIZER_ANNOTATION, START_ANNOTATION, STOP_ANNOTATION, SWITCHOVER_ANNOTATION, Settings};
use crate::store::object::At as _;
use crate::store::{ObjectKey, object};

/// What will happen because an object became `after` (none: gone), and how soon.
pub fn follow(
    key: &ObjectKey,
    before: Option<&Value>,
    after: Option<&Value>,
    settings: &Settings,
) -> Vec<(Duration, Due)> {
    match (key.resource.group.as_str(), key.resource.resource.as_str()) {
        ("", "nodes") => node(key, before, after, settings),
        ("", "pods") => pod(key, before, after, settings),
        ("apps", "deployments" | "replicasets" | "statefulsets" | "daemonsets") => {
            let mut found = vec![(settings.reaction, Due::Workload(key.clone()))];
            found.extend(owner(key, after.or(before)).map(|owner| (settings.reaction, Due::Workload(owner))));
            // An operator that has nothing to move looks again, as it would after any change of a node.
            found
                .extend(after.and_then(|set| Some((seconds(set, SWITCHOVER_ANNOTATION)?, Due::Operator(key.clone())))));
            found
        }
        ("policy", "poddisruptionbudgets") => vec![(settings.budget_lag, Due::Budgets)],
        ("", "services") => vec![(settings.slice_lag, Due::Slices)],
        _ => Vec::new(),
    }
}

fn node(key: &ObjectKey, before: Option<&Value>, after: Option<&Value>, settings: &Settings) -> Vec<(Duration, Due)> {
    let mut found = vec![(settings.reaction, Due::Schedule)];
    let Some(after) = after else { return found };
    if before.is_none() {
        found.push((Duration::ZERO, Due::Kubelet(key.name.clone())));
    }
    let cordon = |node: &Value| node.at("/spec/unschedulable").cloned();
    if before.and_then(cordon) != cordon(after) {
        found.push((settings.reaction, Due::Taints(key.name.clone())));
    }
    if before.is_some_and(|before| !object::is_true(before, "Ready")) && object::is_true(after, "Ready") {
        found.push((settings.untaint_lag, Due::Taints(key.name.clone())));
    }
    found
}

fn pod(key: &ObjectKey, before: Option<&Value>, after: Option<&Value>, settings: &Settings) -> Vec<(Duration, Due)> {
    let mut found = vec![(settings.budget_lag, Due::Budgets), (settings.slice_lag, Due::Slices)];
    found.extend(owner(key, after.or(before)).map(|owner| (settings.reaction, Due::Workload(owner))));
    let Some(pod) = after else { return found };
    let uid = object::uid(pod).to_owned();
    if object::text(pod, "/spec/nodeName").is_empty() {
        found.push((settings.reaction, Due::Schedule));
    } else if object::is_deleting(pod) {
        let grace = pod.at("/metadata/deletionGracePeriodSeconds").and_then(Value::as_u64).unwrap_or(0);
        let stop = seconds(pod, STOP_ANNOTATION).unwrap_or(settings.stop).min(Duration::from_secs(grace));
        if let Some(free) = seconds(pod, FINALIZER_ANNOTATION).filter(|_| object::has_finalizers(pod)) {
            found.push((free, Due::Free(key.clone(), uid.clone())));
        }
        found.push((stop, Due::Stop(key.clone(), uid)));
    } else if object::text(pod, "/status/phase") == "Pending" {
        found.push((seconds(pod, START_ANNOTATION).unwrap_or(settings.start), Due::Start(key.clone(), uid)));
    }
    found
}

fn seconds(pod: &Value, annotation: &str) -> Option<Duration> {
    let seconds = object::annotation(pod, annotation)?.parse::<f64>().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The workload that controls an object.
pub fn owner(key: &ObjectKey, object: Option<&Value>) -> Option<ObjectKey> {
    let owners = object?.at("/metadata/ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))?;
    let resource = match object::text(owner, "/kind") {
        "Deployment" => "deployments",
        "ReplicaSet" => "replicasets",
        "StatefulSet" => "statefulsets",
        "DaemonSet" => "daemonsets",
        _ => return None,
    };
    Some(ObjectKey::new("apps", resource, &key.namespace, object::text(owner, "/name")))
}
