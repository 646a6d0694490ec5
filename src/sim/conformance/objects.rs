//! Create, get, update, delete of plain objects and of Leases.

use serde_json::{Value, json};

use super::probe::{Failure, Probe, equal};
use super::{Needs, behaviours};

behaviours!(
    Needs::Nothing,
    [
        create_gives_uid_revision_and_time,
        create_of_a_taken_name_is_409_already_exists,
        create_with_generate_name,
        create_in_a_missing_namespace_is_404,
        create_in_another_namespace_than_the_url_is_400,
        dry_run_creates_nothing,
        get_of_a_missing_object_is_404_with_details,
        answers_carry_an_audit_id,
        unknown_group_is_404_as_plain_text,
        unknown_resource_of_a_built_in_group_is_404_as_json,
        create_with_a_revision_is_500,
        create_without_a_name_is_422,
        lease_put_creates,
        put_with_the_current_revision_is_200,
        put_with_a_stale_revision_is_409,
        put_without_revision_is_200,
        put_with_another_uid_is_409,
        put_of_another_name_is_400,
        put_of_a_missing_object_is_404,
        put_of_nothing_new_keeps_the_revision,
        delete_answers_success_with_the_uid,
        delete_of_a_missing_object_is_404,
        delete_with_another_uid_is_409,
        delete_with_a_stale_revision_is_409,
        a_finalizer_keeps_the_object_until_it_goes,
        a_deleted_name_is_taken_while_a_finalizer_keeps_it,
        lease_put_is_a_compare_and_swap,
        lease_put_without_revision_is_422,
        lease_keeps_microseconds,
    ]
);

async fn create_gives_uid_revision_and_time(probe: &Probe) -> Result<(), Failure> {
    let made = probe.make().await?;
    for field in ["/metadata/uid", "/metadata/resourceVersion", "/metadata/creationTimestamp"] {
        equal(field, &made.str(field).is_empty(), &false)?;
    }
    made.field("/metadata/namespace", json!(probe.capabilities.namespace))?;
    Ok(())
}

async fn create_of_a_taken_name_is_409_already_exists(probe: &Probe) -> Result<(), Failure> {
    probe.make().await?;
    let again = probe.post(&probe.config_maps(), &probe.body()).await?.status(409, "AlreadyExists")?;
    again.field("/message", json!(format!("configmaps \"{}\" already exists", probe.name)))?;
    Ok(())
}

async fn create_with_generate_name(probe: &Probe) -> Result<(), Failure> {
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "generated-"}});
    let made = probe.post(&probe.config_maps(), &body).await?.code(201)?;
    let name = made.str("/metadata/name");
    equal("length of the name", &(name.starts_with("generated-"), name.len()), &(true, "generated-".len() + 5))
}

async fn create_in_a_missing_namespace_is_404(probe: &Probe) -> Result<(), Failure> {
    let path = "/api/v1/namespaces/conformance-missing/configmaps";
    let reply = probe.post(path, &probe.body()).await?.status(404, "NotFound")?;
    reply.field("/message", json!("namespaces \"conformance-missing\" not found"))?;
    Ok(())
}

async fn create_in_another_namespace_than_the_url_is_400(probe: &Probe) -> Result<(), Failure> {
    let mut body = probe.body();
    body["metadata"]["namespace"] = json!("kube-system");
    probe.post(&probe.config_maps(), &body).await?.status(400, "BadRequest")?;
    Ok(())
}

async fn dry_run_creates_nothing(probe: &Probe) -> Result<(), Failure> {
    probe.post(&format!("{}?dryRun=All", probe.config_maps()), &probe.body()).await?.code(201)?;
    probe.get(&probe.config_map()).await?.code(404)?;
    Ok(())
}

async fn get_of_a_missing_object_is_404_with_details(probe: &Probe) -> Result<(), Failure> {
    let reply = probe.get(&probe.config_map()).await?.status(404, "NotFound")?;
    let reply = reply.field("/message", json!(format!("configmaps \"{}\" not found", probe.name)))?;
    reply.field("/details", json!({"name": probe.name, "kind": "configmaps"}))?.field("/code", json!(404))?;
    Ok(())
}

async fn answers_carry_an_audit_id(probe: &Probe) -> Result<(), Failure> {
    for path in [probe.config_map(), probe.config_maps()] {
        let reply = probe.get(&path).await?;
        equal("Audit-Id", &reply.headers.contains_key("audit-id"), &true)?;
    }
    Ok(())
}

async fn plain_text_404(probe: &Probe, path: &str) -> Result<(), Failure> {
    let reply = probe.get(path).await?.code(404)?;
    let kind = reply.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    equal("content type", &kind.starts_with("text/plain"), &true)?;
    equal("body", &reply.text.trim_end(), &"404 page not found")
}

async fn unknown_group_is_404_as_plain_text(probe: &Probe) -> Result<(), Failure> {
    plain_text_404(probe, "/apis/nothing.maint.dev/v1/things").await?;
    plain_text_404(probe, "/apis/nothing.maint.dev").await
}

async fn unknown_resource_of_a_built_in_group_is_404_as_json(probe: &Probe) -> Result<(), Failure> {
    for path in ["/api/v1/things", "/apis/apps/v1/things"] {
        let reply = probe.get(path).await?.status(404, "NotFound")?;
        reply
            .field("/message", json!("the server could not find the requested resource"))?
            .field("/details", json!({}))?;
    }
    plain_text_404(probe, "/apis/nothing.maint.dev/v1/namespaces/default/things/a").await
}

async fn create_with_a_revision_is_500(probe: &Probe) -> Result<(), Failure> {
    let mut body = probe.body();
    body["metadata"]["resourceVersion"] = json!("5");
    let reply = probe.post(&probe.config_maps(), &body).await?.code(500)?.field("/reason", Value::Null)?;
    reply.field("/message", json!("resourceVersion should not be set on objects to be created"))?;
    Ok(())
}

async fn create_without_a_name_is_422(probe: &Probe) -> Result<(), Failure> {
    probe.post(&probe.config_maps(), &json!({"metadata": {}})).await?.status(422, "Invalid")?;
    Ok(())
}

async fn lease_put_creates(probe: &Probe) -> Result<(), Failure> {
    let (_, one, body) = lease(probe);
    probe.put(&one, &body).await?.code(201)?;
    Ok(())
}

async fn put_with_the_current_revision_is_200(probe: &Probe) -> Result<(), Failure> {
    let mut object = probe.make().await?.json;
    let before = object["metadata"]["resourceVersion"].clone();
    object["data"]["key"] = json!("new");
    let put = probe.put(&probe.config_map(), &object).await?.code(200)?;
    equal("revision changed", &(put.at("/metadata/resourceVersion") != before), &true)
}

async fn put_with_a_stale_revision_is_409(probe: &Probe) -> Result<(), Failure> {
    let mut object = probe.make().await?.json;
    object["data"]["key"] = json!("new");
    probe.put(&probe.config_map(), &object).await?.code(200)?;
    object["data"]["key"] = json!("newer");
    let reply = probe.put(&probe.config_map(), &object).await?.status(409, "Conflict")?;
    let wanted = format!(
        "Operation cannot be fulfilled on configmaps \"{}\": the object has been modified; please apply your \
         changes to the latest version and try again",
        probe.name
    );
    reply.field("/message", json!(wanted))?;
    Ok(())
}

async fn put_without_revision_is_200(probe: &Probe) -> Result<(), Failure> {
    probe.make().await?;
    let mut body = probe.body();
    body["data"]["key"] = json!("new");
    probe.put(&probe.config_map(), &body).await?.code(200)?.field("/data/key", json!("new"))?;
    Ok(())
}

async fn put_with_another_uid_is_409(probe: &Probe) -> Result<(), Failure> {
    let mut object = probe.make().await?.json;
    object["metadata"]["uid"] = json!("6f8b7a1c-0000-4000-8000-000000000000");
    probe.put(&probe.config_map(), &object).await?.status(409, "Conflict")?;
    Ok(())
}

async fn put_of_another_name_is_400(probe: &Probe) -> Result<(), Failure> {
    let mut object = probe.make().await?.json;
    object["metadata"]["name"] = json!("another");
    probe.put(&probe.config_map(), &object).await?.status(400, "BadRequest")?;
    Ok(())
}

async fn put_of_a_missing_object_is_404(probe: &Probe) -> Result<(), Failure> {
    probe.put(&probe.config_map(), &probe.body()).await?.status(404, "NotFound")?;
    Ok(())
}

async fn put_of_nothing_new_keeps_the_revision(probe: &Probe) -> Result<(), Failure> {
    let object = probe.make().await?;
    let again = probe.put(&probe.config_map(), &object.json).await?.code(200)?;
    equal("revision", &again.revision(), &object.revision())
}

async fn delete_answers_success_with_the_uid(probe: &Probe) -> Result<(), Failure> {
    let uid = probe.make().await?.at("/metadata/uid");
    let reply = probe.delete(&probe.config_map(), &json!({})).await?.code(200)?;
    reply
        .field("/status", json!("Success"))?
        .field("/details/uid", uid)?
        .field("/details/kind", json!("configmaps"))?;
    probe.get(&probe.config_map()).await?.code(404)?;
    Ok(())
}

async fn delete_of_a_missing_object_is_404(probe: &Probe) -> Result<(), Failure> {
    probe.delete(&probe.config_map(), &json!({})).await?.status(404, "NotFound")?;
    Ok(())
}

async fn delete_with_another_uid_is_409(probe: &Probe) -> Result<(), Failure> {
    probe.make().await?;
    let options = json!({"preconditions": {"uid": "6f8b7a1c-0000-4000-8000-000000000000"}});
    probe.delete(&probe.config_map(), &options).await?.status(409, "Conflict")?;
    probe.get(&probe.config_map()).await?.code(200)?;
    Ok(())
}

async fn delete_with_a_stale_revision_is_409(probe: &Probe) -> Result<(), Failure> {
    let made = probe.make().await?;
    probe.patch(&probe.config_map(), "merge-patch", &json!({"data": {"key": "new"}})).await?.code(200)?;
    let options = json!({"preconditions": {"resourceVersion": made.revision()}});
    probe.delete(&probe.config_map(), &options).await?.status(409, "Conflict")?;
    Ok(())
}

async fn kept(probe: &Probe) -> Result<(), Failure> {
    let mut body = probe.body();
    body["metadata"]["finalizers"] = json!(["maint.dev/conformance"]);
    probe.post(&probe.config_maps(), &body).await?.code(201)?;
    probe.delete(&probe.config_map(), &json!({})).await?.code(200)?;
    Ok(())
}

async fn release(probe: &Probe) -> Result<(), Failure> {
    let patch = json!({"metadata": {"finalizers": null}});
    probe.patch(&probe.config_map(), "merge-patch", &patch).await?.code(200)?;
    probe.get(&probe.config_map()).await?.code(404)?;
    Ok(())
}

async fn a_finalizer_keeps_the_object_until_it_goes(probe: &Probe) -> Result<(), Failure> {
    kept(probe).await?;
    let object = probe.get(&probe.config_map()).await?.code(200)?;
    equal("deletionTimestamp", &object.at("/metadata/deletionTimestamp").is_string(), &true)?;
    release(probe).await
}

async fn a_deleted_name_is_taken_while_a_finalizer_keeps_it(probe: &Probe) -> Result<(), Failure> {
    kept(probe).await?;
    let again = probe.post(&probe.config_maps(), &probe.body()).await?.status(409, "AlreadyExists")?;
    equal("message", &again.str("/message").starts_with("object is being deleted"), &true)?;
    release(probe).await
}

fn lease(probe: &Probe) -> (String, String, Value) {
    let all = probe.path("coordination.k8s.io/v1", "leases");
    let body = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": probe.name},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 30, "leaseTransitions": 0,
            "renewTime": "2026-11-30T02:00:00.123456Z"}});
    (all.clone(), format!("{all}/{}", probe.name), body)
}

async fn lease_put_is_a_compare_and_swap(probe: &Probe) -> Result<(), Failure> {
    let (all, one, body) = lease(probe);
    let made = probe.post(&all, &body).await?.code(201)?.json;
    let mut first = made.clone();
    first["spec"]["holderIdentity"] = json!("b");
    let mut second = made;
    second["spec"]["holderIdentity"] = json!("c");
    probe.put(&one, &first).await?.code(200)?;
    probe.put(&one, &second).await?.status(409, "Conflict")?;
    probe.get(&one).await?.code(200)?.field("/spec/holderIdentity", json!("b"))?;
    Ok(())
}

async fn lease_put_without_revision_is_422(probe: &Probe) -> Result<(), Failure> {
    let (all, one, body) = lease(probe);
    probe.post(&all, &body).await?.code(201)?;
    let reply = probe.put(&one, &body).await?.status(422, "Invalid")?;
    let why = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    let wanted = format!("leases.coordination.k8s.io \"{}\" is invalid: {why}", probe.name);
    reply.field("/message", json!(wanted))?;
    Ok(())
}

async fn lease_keeps_microseconds(probe: &Probe) -> Result<(), Failure> {
    let (all, _, body) = lease(probe);
    let made = probe.post(&all, &body).await?.code(201)?;
    made.field("/spec/renewTime", json!("2026-11-30T02:00:00.123456Z"))?;
    Ok(())
}
