//! Watches: from a revision, with selectors, and their end.

use serde_json::{Value, json};

use super::probe::{Failure, Probe, equal};
use super::{Needs, behaviours};

behaviours!(
    Needs::Nothing,
    [
        watch_from_a_revision_shows_what_came_after_it,
        watch_without_revision_starts_with_what_is_there,
        watch_sees_an_object_leave_its_selection_as_deleted,
        watch_ends_after_its_timeout,
        watch_sees_later_changes,
        watch_from_a_later_revision_waits,
        watch_event_of_a_deletion_has_a_newer_revision,
    ]
);

/// What needs a forgotten revision.
pub(super) const OF_FORGOTTEN: &[super::Behaviour] = &[super::Behaviour {
    name: "watch_from_a_forgotten_revision_is_410",
    needs: Needs::Forgotten,
    run: |probe| Box::pin(watch_from_a_forgotten_revision_is_410(probe)),
}];

fn watch(probe: &Probe, revision: &str) -> String {
    let from = if revision.is_empty() { String::new() } else { format!("&resourceVersion={revision}") };
    format!("{}?watch=1&timeoutSeconds=1&labelSelector=behaviour%3D{}{from}", probe.config_maps(), probe.name)
}

fn types(events: &[Value]) -> Vec<String> {
    events.iter().filter_map(|event| event["type"].as_str().map(str::to_owned)).collect()
}

async fn start(probe: &Probe) -> Result<String, Failure> {
    Ok(probe.get(&probe.config_maps()).await?.code(200)?.revision())
}

async fn watch_from_a_revision_shows_what_came_after_it(probe: &Probe) -> Result<(), Failure> {
    let from = start(probe).await?;
    probe.make().await?;
    probe.patch(&probe.config_map(), "merge-patch", &json!({"data": {"key": "new"}})).await?.code(200)?;
    probe.delete(&probe.config_map(), &json!({})).await?.code(200)?;
    let events = probe.watch(&watch(probe, &from)).await?;
    equal("events", &types(&events), &["ADDED", "MODIFIED", "DELETED"].map(str::to_owned).to_vec())
}

async fn watch_without_revision_starts_with_what_is_there(probe: &Probe) -> Result<(), Failure> {
    probe.make().await?;
    let events = probe.watch(&watch(probe, "")).await?;
    equal("events", &types(&events), &vec!["ADDED".to_owned()])?;
    equal("kind", &events[0].pointer("/object/kind"), &Some(&json!("ConfigMap")))
}

async fn watch_sees_an_object_leave_its_selection_as_deleted(probe: &Probe) -> Result<(), Failure> {
    let from = start(probe).await?;
    probe.make().await?;
    let patch = json!({"metadata": {"labels": {"behaviour": "another"}}});
    probe.patch(&probe.config_map(), "merge-patch", &patch).await?.code(200)?;
    let events = probe.watch(&watch(probe, &from)).await?;
    equal("events", &types(&events), &["ADDED", "DELETED"].map(str::to_owned).to_vec())
}

async fn watch_ends_after_its_timeout(probe: &Probe) -> Result<(), Failure> {
    let from = start(probe).await?;
    equal("events", &types(&probe.watch(&watch(probe, &from)).await?), &Vec::new())
}

async fn watch_sees_later_changes(probe: &Probe) -> Result<(), Failure> {
    let from = start(probe).await?;
    let path = watch(probe, &from).replace("timeoutSeconds=1", "timeoutSeconds=20");
    let (events, made) = tokio::join!(biased; probe.watch_until(&path, 1), probe.make());
    made?;
    equal("events", &types(&events?), &vec!["ADDED".to_owned()])
}

async fn watch_from_a_forgotten_revision_is_410(probe: &Probe) -> Result<(), Failure> {
    let forgotten = probe.capabilities.forgotten.unwrap_or(1).to_string();
    let reply = probe.get(&watch(probe, &forgotten)).await?;
    if reply.code == 410 {
        return Ok(());
    }
    let reply = reply.code(200)?;
    let first: Value = serde_json::from_str(reply.text.lines().next().unwrap_or_default()).unwrap_or(Value::Null);
    equal("type", &first["type"], &json!("ERROR"))?;
    equal("code", &first["object"]["code"], &json!(410))?;
    equal("reason", &first["object"]["reason"], &json!("Expired"))
}

async fn watch_event_of_a_deletion_has_a_newer_revision(probe: &Probe) -> Result<(), Failure> {
    let made = probe.make().await?.revision();
    probe.delete(&probe.config_map(), &json!({})).await?.code(200)?;
    let events = probe.watch(&watch(probe, &made)).await?;
    equal("events", &types(&events), &vec!["DELETED".to_owned()])?;
    let revision = events[0].pointer("/object/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
    equal("newer", &(revision.parse::<u64>().ok() > made.parse::<u64>().ok()), &true)
}

async fn watch_from_a_later_revision_waits(probe: &Probe) -> Result<(), Failure> {
    equal("events", &types(&probe.watch(&watch(probe, "99999999999")).await?), &Vec::new())
}
