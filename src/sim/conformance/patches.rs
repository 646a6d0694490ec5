//! Patches of plain objects: what is a lost race, what is a mistake, what is nothing.

use serde_json::{Value, json};

use super::probe::{Failure, Probe, equal};
use super::{Needs, behaviours};

behaviours!(
    Needs::Nothing,
    [
        merge_patch_null_removes,
        merge_patch_with_the_current_revision_is_200,
        merge_patch_with_a_stale_revision_is_409,
        merge_patch_with_another_uid_is_422,
        patch_of_nothing_new_keeps_the_revision,
        patch_of_a_missing_object_is_404,
        patch_of_an_unknown_form_is_415,
        json_patch_test_and_replace_is_200,
        json_patch_test_that_fails_is_422_with_the_generic_text,
        json_patch_test_of_an_absent_path_is_422,
        json_patch_test_null_and_add_creates_what_is_absent,
        json_patch_test_null_fails_on_what_is_there,
        json_patch_add_below_nothing_is_422,
        json_patch_remove_of_an_absent_path_is_422,
        json_patch_test_and_remove_is_200,
    ]
);

async fn patch(probe: &Probe, form: &str, body: Value) -> Result<super::Reply, Failure> {
    probe.patch(&probe.config_map(), form, &body).await
}

async fn merge_patch_null_removes(probe: &Probe) -> Result<(), Failure> {
    probe.make().await?;
    let patched = patch(probe, "merge-patch", json!({"data": {"key": null, "other": "x"}})).await?.code(200)?;
    patched.field("/data", json!({"other": "x"}))?;
    Ok(())
}

async fn merge_patch_with_the_current_revision_is_200(probe: &Probe) -> Result<(), Failure> {
    let revision = probe.make().await?.revision();
    let body = json!({"metadata": {"resourceVersion": revision}, "data": {"key": "new"}});
    patch(probe, "merge-patch", body).await?.code(200)?.field("/data/key", json!("new"))?;
    Ok(())
}

async fn merge_patch_with_a_stale_revision_is_409(probe: &Probe) -> Result<(), Failure> {
    let revision = probe.make().await?.revision();
    patch(probe, "merge-patch", json!({"data": {"key": "new"}})).await?.code(200)?;
    let body = json!({"metadata": {"resourceVersion": revision}, "data": {"key": "newer"}});
    patch(probe, "merge-patch", body).await?.status(409, "Conflict")?;
    Ok(())
}

async fn merge_patch_with_another_uid_is_422(probe: &Probe) -> Result<(), Failure> {
    probe.make().await?;
    let body = json!({"metadata": {"uid": "6f8b7a1c-0000-4000-8000-000000000000"}});
    let reply = patch(probe, "merge-patch", body).await?.status(422, "Invalid")?;
    let why = "metadata.uid: Invalid value: \"6f8b7a1c-0000-4000-8000-000000000000\": field is immutable";
    reply.field("/message", json!(format!("ConfigMap \"{}\" is invalid: {why}", probe.name)))?;
    Ok(())
}

async fn patch_of_nothing_new_keeps_the_revision(probe: &Probe) -> Result<(), Failure> {
    let revision = probe.make().await?.revision();
    let again = patch(probe, "merge-patch", json!({"data": {"key": "value"}})).await?.code(200)?;
    equal("revision", &again.revision(), &revision)
}

async fn patch_of_a_missing_object_is_404(probe: &Probe) -> Result<(), Failure> {
    patch(probe, "merge-patch", json!({"data": {"key": "x"}})).await?.status(404, "NotFound")?;
    Ok(())
}

async fn patch_of_an_unknown_form_is_415(probe: &Probe) -> Result<(), Failure> {
    probe.make().await?;
    patch(probe, "odd-patch", json!({})).await?.code(415)?;
    Ok(())
}

async fn json_patch_test_and_replace_is_200(probe: &Probe) -> Result<(), Failure> {
    probe.make().await?;
    let body = json!([{"op": "test", "path": "/data/key", "value": "value"},
        {"op": "replace", "path": "/data/key", "value": "new"}]);
    patch(probe, "json-patch", body).await?.code(200)?.field("/data/key", json!("new"))?;
    Ok(())
}

async fn generic_422(probe: &Probe, body: Value) -> Result<(), Failure> {
    let reply = patch(probe, "json-patch", body).await?.status(422, "Invalid")?;
    reply.field("/message", json!("the server rejected our request due to an error in our request"))?;
    Ok(())
}

async fn json_patch_test_that_fails_is_422_with_the_generic_text(probe: &Probe) -> Result<(), Failure> {
    let revision = probe.make().await?.revision();
    let body = json!([{"op": "test", "path": "/data/key", "value": "other"},
        {"op": "replace", "path": "/data/key", "value": "new"}]);
    generic_422(probe, body).await?;
    let after = probe.get(&probe.config_map()).await?.code(200)?;
    equal("revision", &after.revision(), &revision)
}

async fn json_patch_test_of_an_absent_path_is_422(probe: &Probe) -> Result<(), Failure> {
    probe.make().await?;
    generic_422(probe, json!([{"op": "test", "path": "/data/none", "value": "x"}])).await
}

async fn json_patch_test_null_and_add_creates_what_is_absent(probe: &Probe) -> Result<(), Failure> {
    probe.make().await?;
    let body = json!([{"op": "test", "path": "/data/none", "value": null},
        {"op": "add", "path": "/data/none", "value": "x"}]);
    patch(probe, "json-patch", body).await?.code(200)?.field("/data/none", json!("x"))?;
    Ok(())
}

async fn json_patch_test_null_fails_on_what_is_there(probe: &Probe) -> Result<(), Failure> {
    probe.make().await?;
    generic_422(probe, json!([{"op": "test", "path": "/data/key", "value": null}])).await
}

async fn json_patch_add_below_nothing_is_422(probe: &Probe) -> Result<(), Failure> {
    probe.make().await?;
    generic_422(probe, json!([{"op": "add", "path": "/metadata/annotations/a", "value": "x"}])).await
}

async fn json_patch_remove_of_an_absent_path_is_422(probe: &Probe) -> Result<(), Failure> {
    probe.make().await?;
    generic_422(probe, json!([{"op": "remove", "path": "/data/none"}])).await
}

async fn json_patch_test_and_remove_is_200(probe: &Probe) -> Result<(), Failure> {
    probe.make().await?;
    let body = json!([{"op": "test", "path": "/data/key", "value": "value"}, {"op": "remove", "path": "/data/key"}]);
    patch(probe, "json-patch", body).await?.code(200)?.field("/data/key", Value::Null)?;
    Ok(())
}
