//! Custom resources with a status subresource: what maint's own records live by.

use serde_json::{Value, json};

use super::probe::{Failure, Probe, equal};
use super::{Needs, behaviours};

behaviours!(
    Needs::Definitions,
    [
        custom_create_drops_the_status,
        custom_status_put_ignores_spec_labels_and_annotations,
        custom_put_ignores_the_status,
        custom_generation_follows_the_spec_only,
        custom_status_put_after_a_change_of_the_spec_is_409,
        custom_status_merge_patch_with_a_stale_revision_is_409,
        custom_put_without_revision_is_422,
        custom_strategic_merge_patch_is_415,
        custom_list_items_keep_their_kind,
    ]
);

const ALL: &str = "/apis/conformance.maint.dev/v1/widgets";

/// Sees that the definition is there and served, then creates this behaviour's widget.
async fn make(probe: &Probe) -> Result<(String, super::Reply), Failure> {
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.conformance.maint.dev"},
        "spec": {"group": "conformance.maint.dev", "scope": "Cluster",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let made = probe.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await?;
    equal("definition is there", &matches!(made.code, 201 | 409), &true)?;
    // Just after its creation: 404 as text, then 429 while the storage starts (measured), then 200.
    probe.wait_for(ALL, "/kind", &json!("WidgetList")).await?;
    let one = format!("{ALL}/{}", probe.name);
    // Widgets have no namespace of their own: an earlier run may have left one.
    let left = probe.delete(&one, &json!({})).await?;
    equal("nothing is left", &matches!(left.code, 200 | 404), &true)?;
    let body = json!({"apiVersion": "conformance.maint.dev/v1", "kind": "Widget", "metadata": {"name": probe.name},
        "spec": {"size": 1}, "status": {"phase": "Given"}});
    let widget = probe.post(ALL, &body).await?.code(201)?;
    Ok((one, widget))
}

async fn custom_create_drops_the_status(probe: &Probe) -> Result<(), Failure> {
    let (one, made) = make(probe).await?;
    made.field("/status", Value::Null)?.field("/metadata/generation", json!(1))?;
    probe.get(&one).await?.code(200)?.field("/status", Value::Null)?;
    Ok(())
}

async fn custom_status_put_ignores_spec_labels_and_annotations(probe: &Probe) -> Result<(), Failure> {
    let (one, made) = make(probe).await?;
    let mut object = made.json;
    object["status"] = json!({"phase": "Cordoning"});
    object["spec"]["size"] = json!(2);
    object["metadata"]["labels"] = json!({"a": "b"});
    object["metadata"]["annotations"] = json!({"a": "b"});
    probe.put(&format!("{one}/status"), &object).await?.code(200)?;
    let after = probe.get(&one).await?.code(200)?.field("/status/phase", json!("Cordoning"))?;
    let after = after.field("/spec/size", json!(1))?.field("/metadata/labels", Value::Null)?;
    after.field("/metadata/annotations", Value::Null)?.field("/metadata/generation", json!(1))?;
    Ok(())
}

async fn custom_put_ignores_the_status(probe: &Probe) -> Result<(), Failure> {
    let (one, made) = make(probe).await?;
    let mut object = made.json;
    object["status"] = json!({"phase": "Sneaked"});
    let revision = object["metadata"]["resourceVersion"].clone();
    let put = probe.put(&one, &object).await?.code(200)?.field("/status", Value::Null)?;
    put.field("/metadata/resourceVersion", revision)?;
    Ok(())
}

async fn custom_generation_follows_the_spec_only(probe: &Probe) -> Result<(), Failure> {
    let (one, _) = make(probe).await?;
    for (path, patch, generation) in [
        (one.clone(), json!({"metadata": {"labels": {"a": "b"}}}), 1),
        (format!("{one}/status"), json!({"status": {"phase": "X"}}), 1),
        (one.clone(), json!({"spec": {"size": 2}}), 2),
        (one.clone(), json!({"spec": {"size": 2}}), 2),
    ] {
        let patched = probe.patch(&path, "merge-patch", &patch).await?.code(200)?;
        patched.field("/metadata/generation", json!(generation))?;
    }
    Ok(())
}

async fn custom_status_put_after_a_change_of_the_spec_is_409(probe: &Probe) -> Result<(), Failure> {
    let (one, made) = make(probe).await?;
    probe.patch(&one, "merge-patch", &json!({"spec": {"size": 2}})).await?.code(200)?;
    let mut object = made.json;
    object["status"] = json!({"phase": "Cordoning"});
    probe.put(&format!("{one}/status"), &object).await?.status(409, "Conflict")?;
    Ok(())
}

async fn custom_status_merge_patch_with_a_stale_revision_is_409(probe: &Probe) -> Result<(), Failure> {
    let (one, made) = make(probe).await?;
    let patch = json!({"metadata": {"resourceVersion": made.revision()}, "status": {"phase": "A"}});
    probe.patch(&format!("{one}/status"), "merge-patch", &patch).await?.code(200)?;
    let patch = json!({"metadata": {"resourceVersion": made.revision()}, "status": {"phase": "B"}});
    probe.patch(&format!("{one}/status"), "merge-patch", &patch).await?.status(409, "Conflict")?;
    Ok(())
}

async fn custom_put_without_revision_is_422(probe: &Probe) -> Result<(), Failure> {
    let (one, made) = make(probe).await?;
    let mut object = made.json;
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    object["spec"]["size"] = json!(2);
    probe.put(&one, &object).await?.status(422, "Invalid")?;
    Ok(())
}

async fn custom_strategic_merge_patch_is_415(probe: &Probe) -> Result<(), Failure> {
    let (one, _) = make(probe).await?;
    probe.patch(&one, "strategic-merge-patch", &json!({"spec": {"size": 2}})).await?.code(415)?;
    Ok(())
}

async fn custom_list_items_keep_their_kind(probe: &Probe) -> Result<(), Failure> {
    make(probe).await?;
    probe.get(ALL).await?.code(200)?.field("/items/0/kind", json!("Widget"))?;
    Ok(())
}
