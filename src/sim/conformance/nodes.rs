//! Nodes: the cordon, who owns it, and conditions.

use serde_json::{Value, json};

use super::probe::{Failure, Probe, equal};
use super::{Needs, behaviours};

behaviours!(
    Needs::Node,
    [
        node_cordon_is_owned_by_its_field_manager,
        node_cordon_by_another_keeps_the_first_owner,
        node_uncordon_leaves_no_owner,
        node_cordon_with_a_stale_revision_is_409,
        node_cordon_and_annotation_are_one_write,
        nodes_are_selected_by_unschedulable,
        node_status_merges_conditions_by_type,
        node_status_patch_takes_annotations_along_but_no_spec,
    ]
);

fn path(probe: &Probe) -> String {
    format!("/api/v1/nodes/{}", probe.capabilities.node.as_deref().unwrap_or_default())
}

async fn set(probe: &Probe, manager: &str, cordoned: bool) -> Result<super::Reply, Failure> {
    let value = if cordoned { json!(true) } else { Value::Null };
    let patch = json!({"spec": {"unschedulable": value}});
    probe.patch(&format!("{}?fieldManager={manager}", path(probe)), "merge-patch", &patch).await?.code(200)
}

/// The managers that own `spec.unschedulable`.
fn owners(node: &super::Reply) -> Vec<String> {
    let entries = node.json.pointer("/metadata/managedFields").and_then(Value::as_array);
    let owns = |entry: &&Value| entry.pointer("/fieldsV1/f:spec/f:unschedulable").is_some();
    let name = |entry: &Value| entry.get("manager").and_then(Value::as_str).map(str::to_owned);
    entries.into_iter().flatten().filter(owns).filter_map(name).collect()
}

async fn node_cordon_is_owned_by_its_field_manager(probe: &Probe) -> Result<(), Failure> {
    set(probe, "reset", false).await?;
    let node = set(probe, "maint", true).await?.field("/spec/unschedulable", json!(true))?;
    equal("owners", &owners(&node), &vec!["maint".to_owned()])?;
    set(probe, "reset", false).await.map(drop)
}

async fn node_cordon_by_another_keeps_the_first_owner(probe: &Probe) -> Result<(), Failure> {
    set(probe, "reset", false).await?;
    set(probe, "maint", true).await?;
    let node = set(probe, "somebody", true).await?;
    equal("owners", &owners(&node), &vec!["maint".to_owned()])?;
    set(probe, "reset", false).await.map(drop)
}

async fn node_uncordon_leaves_no_owner(probe: &Probe) -> Result<(), Failure> {
    set(probe, "maint", true).await?;
    let node = set(probe, "somebody", false).await?.field("/spec/unschedulable", Value::Null)?;
    equal("owners", &owners(&node), &Vec::new())
}

async fn node_cordon_with_a_stale_revision_is_409(probe: &Probe) -> Result<(), Failure> {
    let stale = set(probe, "reset", false).await?.revision();
    let note = json!({"metadata": {"annotations": {"maint.dev/conformance": probe.name}}});
    probe.patch(&path(probe), "merge-patch", &note).await?.code(200)?;
    let patch = json!({"metadata": {"resourceVersion": stale}, "spec": {"unschedulable": true}});
    probe.patch(&path(probe), "merge-patch", &patch).await?.status(409, "Conflict")?;
    probe.get(&path(probe)).await?.code(200)?.field("/spec/unschedulable", Value::Null)?;
    Ok(())
}

async fn node_cordon_and_annotation_are_one_write(probe: &Probe) -> Result<(), Failure> {
    set(probe, "reset", false).await?;
    let patch = json!({"metadata": {"annotations": {"maint.dev/conformance-owner": "x"}},
        "spec": {"unschedulable": true}});
    let node = probe.patch(&path(probe), "merge-patch", &patch).await?.code(200)?;
    node.field("/spec/unschedulable", json!(true))?
        .field("/metadata/annotations/maint.dev~1conformance-owner", json!("x"))?;
    let patch = json!({"metadata": {"annotations": {"maint.dev/conformance-owner": null}},
        "spec": {"unschedulable": null}});
    let node = probe.patch(&path(probe), "merge-patch", &patch).await?.code(200)?;
    node.field("/spec/unschedulable", Value::Null)?
        .field("/metadata/annotations/maint.dev~1conformance-owner", Value::Null)?;
    Ok(())
}

async fn nodes_are_selected_by_unschedulable(probe: &Probe) -> Result<(), Failure> {
    let name = probe.capabilities.node.clone().unwrap_or_default();
    for cordoned in [true, false] {
        set(probe, "maint", cordoned).await?;
        let list = probe.get("/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue").await?.code(200)?;
        let items = list.json.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        let there = items.iter().any(|item| item.pointer("/metadata/name") == Some(&json!(name)));
        equal("selected", &there, &cordoned)?;
    }
    Ok(())
}

async fn node_status_merges_conditions_by_type(probe: &Probe) -> Result<(), Failure> {
    let status = format!("{}/status", path(probe));
    for value in ["True", "False"] {
        let condition = json!({"type": "MaintConformance", "status": value, "reason": "Test", "message": "",
            "lastHeartbeatTime": "2026-11-30T02:00:00Z", "lastTransitionTime": "2026-11-30T02:00:00Z"});
        let patch = json!({"status": {"conditions": [condition]}});
        let node = probe.patch(&status, "strategic-merge-patch", &patch).await?.code(200)?;
        let conditions = node.json.pointer("/status/conditions").and_then(Value::as_array).cloned();
        let conditions = conditions.unwrap_or_default();
        let ours: Vec<_> = conditions.iter().filter(|entry| entry["type"] == "MaintConformance").collect();
        equal("entries of the type", &ours.len(), &1)?;
        equal("status", &ours[0]["status"], &json!(value))?;
        equal("Ready is still there", &conditions.iter().any(|entry| entry["type"] == "Ready"), &true)?;
    }
    let gone = json!({"status": {"conditions": [{"type": "MaintConformance", "$patch": "delete"}]}});
    probe.patch(&status, "strategic-merge-patch", &gone).await?.code(200)?;
    Ok(())
}

async fn node_status_patch_takes_annotations_along_but_no_spec(probe: &Probe) -> Result<(), Failure> {
    set(probe, "reset", false).await?;
    let status = format!("{}/status", path(probe));
    let patch = json!({"metadata": {"annotations": {"maint.dev/via": "status"}}, "spec": {"unschedulable": true}});
    let node = probe.patch(&status, "merge-patch", &patch).await?.code(200)?;
    node.field("/metadata/annotations/maint.dev~1via", json!("status"))?.field("/spec/unschedulable", Value::Null)?;
    let patch = json!({"metadata": {"annotations": {"maint.dev/via": null}}});
    probe.patch(&path(probe), "merge-patch", &patch).await?.code(200)?;
    Ok(())
}
