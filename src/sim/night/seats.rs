//! The pods that replicas run in, where they run in the cluster: a process lives as long as its pod, and a new pod takes
//! the place of one that is gone.

use std::time::Duration;

use maint_core::api::names;
use serde_json::{Value, json};

use super::Stage;
use crate::clock::sleep;
use crate::store::{Context, ObjectKey, object};

/// How often a pod is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// A pod of maint; without a node the scheduler finds one.
pub(super) fn pod(name: &str, node: Option<&str>) -> Value {
    let (label, value) = names::LABEL_OWN_PODS;
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "maint", "labels": {label: value}, "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "maint", "uid": "maint", "controller": true}]},
        "spec": {"terminationGracePeriodSeconds": 30, "containers": [{"name": "main", "image": "maint"}]},
        "status": {"phase": "Pending"}});
    if let Some(node) = node {
        pod["spec"]["nodeName"] = json!(node);
    }
    pod
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::pod("maint", name)
}

/// The node of a pod that runs.
fn seat(stage: &Stage, name: &str) -> Option<String> {
    let pod = stage.object(&key(name))?;
    let node = object::text(&pod, "/spec/nodeName").to_owned();
    let runs = object::text(&pod, "/status/phase") == "Running" && !object::is_deleting(&pod);
    (runs && !stage.with(|world, _, _| world.is_down(&node))).then_some(node)
}

/// Waits for a pod that runs, and makes one where there is none; answers its node. Nothing to wait for where replicas
/// run outside the cluster.
pub(super) async fn take(stage: &Stage, name: &str) -> Option<String> {
    if !stage.seated {
        return None;
    }
    loop {
        if let Some(node) = seat(stage, name) {
            return Some(node);
        }
        if stage.object(&key(name)).is_none() {
            stage.with(|_, inner, now| {
                let Some(kind) = inner.store.kinds().of_object(&pod(name, None)).cloned() else { return };
                let context = Context::new(now, "kube-controller-manager");
                // A name that is taken again meanwhile is looked at the next time.
                let _taken = inner.store.create(&kind, "maint", pod(name, None), &context);
            });
        }
        sleep(LOOK).await;
    }
}

/// Waits until the pod of a process does not run any more.
pub(super) async fn lost(stage: &Stage, name: &str) {
    if !stage.seated {
        return std::future::pending().await;
    }
    while seat(stage, name).is_some() {
        sleep(LOOK).await;
    }
}
