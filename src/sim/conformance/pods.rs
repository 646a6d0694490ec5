//! Pods: their grace, and the status that a kubelet would write.

use serde_json::{Value, json};

use super::probe::{Failure, Probe, equal};
use super::{Needs, behaviours};

behaviours!(
    Needs::Pods,
    [
        pod_create_drops_the_status,
        pod_delete_waits_for_its_grace,
        pod_delete_with_grace_zero_is_at_once,
        pod_delete_with_another_uid_is_409,
        pod_that_ended_goes_at_once,
        pods_are_selected_by_node,
        pod_status_becomes_ready_by_a_patch,
    ]
);

/// A node that does not exist: no kubelet minds its pods.
pub(super) const NOWHERE: &str = "maint-conformance-nowhere";

pub(super) fn all(probe: &Probe) -> String {
    probe.path("v1", "pods")
}

/// Creates a pod bound to nowhere; `label` ties it to the behaviour's budgets.
pub(super) async fn make(probe: &Probe, name: &str) -> Result<super::Reply, Failure> {
    let body = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"behaviour": probe.name}},
        "spec": {"nodeName": NOWHERE, "terminationGracePeriodSeconds": 30, "automountServiceAccountToken": false,
            "tolerations": [{"operator": "Exists"}], "containers": [{"name": "c", "image": "registry.invalid/c:1"}]},
        "status": {"phase": "Running"}});
    probe.post(&all(probe), &body).await?.code(201)
}

/// Makes a pod Running and Ready as a kubelet would.
pub(super) async fn ready(probe: &Probe, name: &str, phase: &str) -> Result<super::Reply, Failure> {
    let value = if phase == "Running" { "True" } else { "False" };
    let since = "2026-11-30T02:00:00Z";
    let patch = json!({"status": {"phase": phase, "conditions": [
        {"type": "Ready", "status": value, "lastTransitionTime": since},
        {"type": "ContainersReady", "status": value, "lastTransitionTime": since}]}});
    let status = format!("{}/{name}/status", all(probe));
    probe.patch(&status, "strategic-merge-patch", &patch).await?.code(200)
}

pub(super) async fn remove(probe: &Probe, name: &str) -> Result<(), Failure> {
    let path = format!("{}/{name}", all(probe));
    let reply = probe.delete(&path, &json!({"gracePeriodSeconds": 0})).await?;
    equal("deleted or gone", &matches!(reply.code, 200 | 404), &true)
}

async fn pod_create_drops_the_status(probe: &Probe) -> Result<(), Failure> {
    make(probe, &probe.name).await?.field("/status/phase", json!("Pending"))?;
    remove(probe, &probe.name).await
}

async fn pod_delete_waits_for_its_grace(probe: &Probe) -> Result<(), Failure> {
    make(probe, &probe.name).await?;
    let path = format!("{}/{}", all(probe), probe.name);
    let reply = probe.delete(&path, &json!({})).await?.code(200)?;
    reply.field("/metadata/deletionGracePeriodSeconds", json!(30))?;
    let pod = probe.get(&path).await?.code(200)?;
    equal("deletionTimestamp", &pod.at("/metadata/deletionTimestamp").is_string(), &true)?;
    // A second deletion shortens the grace, never lengthens it.
    probe.delete(&path, &json!({"gracePeriodSeconds": 60})).await?.code(200)?;
    probe.get(&path).await?.code(200)?.field("/metadata/deletionGracePeriodSeconds", json!(30))?;
    probe.delete(&path, &json!({"gracePeriodSeconds": 5})).await?.code(200)?;
    probe.get(&path).await?.code(200)?.field("/metadata/deletionGracePeriodSeconds", json!(5))?;
    remove(probe, &probe.name).await?;
    probe.get(&path).await?.code(404)?;
    Ok(())
}

async fn pod_delete_with_grace_zero_is_at_once(probe: &Probe) -> Result<(), Failure> {
    make(probe, &probe.name).await?;
    remove(probe, &probe.name).await?;
    probe.get(&format!("{}/{}", all(probe), probe.name)).await?.code(404)?;
    Ok(())
}

async fn pod_delete_with_another_uid_is_409(probe: &Probe) -> Result<(), Failure> {
    make(probe, &probe.name).await?;
    let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": "6f8b7a1c-0000-4000-8000-000000000000"}});
    probe.delete(&format!("{}/{}", all(probe), probe.name), &options).await?.status(409, "Conflict")?;
    remove(probe, &probe.name).await
}

async fn pod_that_ended_goes_at_once(probe: &Probe) -> Result<(), Failure> {
    make(probe, &probe.name).await?;
    ready(probe, &probe.name, "Succeeded").await?;
    let path = format!("{}/{}", all(probe), probe.name);
    probe.delete(&path, &json!({})).await?.code(200)?;
    probe.get(&path).await?.code(404)?;
    Ok(())
}

async fn pods_are_selected_by_node(probe: &Probe) -> Result<(), Failure> {
    make(probe, &probe.name).await?;
    for (node, wanted) in [(NOWHERE, true), ("maint-conformance-elsewhere", false)] {
        let list = probe.get(&format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}")).await?.code(200)?;
        let items = list.json.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        let there = items.iter().any(|item| item.pointer("/metadata/name") == Some(&json!(probe.name)));
        equal(node, &there, &wanted)?;
    }
    remove(probe, &probe.name).await
}

async fn pod_status_becomes_ready_by_a_patch(probe: &Probe) -> Result<(), Failure> {
    make(probe, &probe.name).await?;
    ready(probe, &probe.name, "Running").await?.field("/status/phase", json!("Running"))?;
    remove(probe, &probe.name).await
}
