//! Lists: selectors and pages.

use serde_json::{Value, json};

use super::probe::{Failure, Probe, equal};
use super::{Needs, behaviours};

behaviours!(
    Needs::Nothing,
    [
        list_of_a_missing_namespace_is_empty,
        list_by_label,
        list_by_name,
        list_by_an_unknown_field_is_400,
        list_in_pages_shows_each_once_at_one_revision,
        list_with_a_bad_token_is_400,
        list_shows_the_most_recent_write,
        items_of_a_built_in_list_have_no_kind,
    ]
);

async fn several(probe: &Probe, count: usize) -> Result<String, Failure> {
    for index in 0..count {
        let mut body = probe.body();
        body["metadata"]["name"] = json!(format!("{}-{index}", probe.name));
        probe.post(&probe.config_maps(), &body).await?.code(201)?;
    }
    Ok(format!("{}?labelSelector=behaviour%3D{}", probe.config_maps(), probe.name))
}

fn names(reply: &super::Reply) -> Vec<String> {
    let items = reply.json.get("items").and_then(Value::as_array);
    let name = |item: &Value| item.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned);
    items.into_iter().flatten().filter_map(name).collect()
}

async fn list_of_a_missing_namespace_is_empty(probe: &Probe) -> Result<(), Failure> {
    let list = probe.get("/api/v1/namespaces/conformance-missing/configmaps").await?.code(200)?;
    list.field("/items", json!([]))?.field("/kind", json!("ConfigMapList"))?;
    Ok(())
}

async fn list_by_label(probe: &Probe) -> Result<(), Failure> {
    let path = several(probe, 2).await?;
    let wanted = vec![format!("{}-0", probe.name), format!("{}-1", probe.name)];
    equal("names", &names(&probe.get(&path).await?.code(200)?), &wanted)?;
    let path = format!("{}?labelSelector=behaviour+in+%28nobody%29", probe.config_maps());
    equal("names", &names(&probe.get(&path).await?.code(200)?), &Vec::new())
}

async fn list_by_name(probe: &Probe) -> Result<(), Failure> {
    several(probe, 2).await?;
    let path = format!("{}?fieldSelector=metadata.name%3D{}-1", probe.config_maps(), probe.name);
    equal("names", &names(&probe.get(&path).await?.code(200)?), &vec![format!("{}-1", probe.name)])
}

async fn list_by_an_unknown_field_is_400(probe: &Probe) -> Result<(), Failure> {
    let path = format!("{}?fieldSelector=data.key%3Dx", probe.config_maps());
    probe.get(&path).await?.status(400, "BadRequest")?;
    Ok(())
}

async fn list_in_pages_shows_each_once_at_one_revision(probe: &Probe) -> Result<(), Failure> {
    let path = several(probe, 5).await?;
    let (mut found, mut token, mut revisions) = (Vec::new(), String::new(), Vec::new());
    for page in 0..3 {
        let next = if token.is_empty() { String::new() } else { format!("&continue={token}") };
        let reply = probe.get(&format!("{path}&limit=2{next}")).await?.code(200)?;
        if page == 0 {
            // What comes after the first page must not show up in the later ones.
            let mut late = probe.body();
            late["metadata"]["name"] = json!(format!("{}-9", probe.name));
            probe.post(&probe.config_maps(), &late).await?.code(201)?;
        }
        found.extend(names(&reply));
        revisions.push(reply.revision());
        token = reply.str("/metadata/continue");
    }
    let wanted: Vec<String> = (0..5).map(|index| format!("{}-{index}", probe.name)).collect();
    equal("names", &found, &wanted)?;
    equal("no further page", &token.as_str(), &"")?;
    equal("one revision", &revisions.iter().all(|revision| *revision == revisions[0]), &true)
}

async fn list_with_a_bad_token_is_400(probe: &Probe) -> Result<(), Failure> {
    let path = format!("{}?limit=2&continue=nonsense", probe.config_maps());
    probe.get(&path).await?.code(400)?;
    Ok(())
}

async fn list_shows_the_most_recent_write(probe: &Probe) -> Result<(), Failure> {
    for round in 0..5 {
        let mut body = probe.body();
        body["metadata"]["name"] = json!(format!("{}-{round}", probe.name));
        probe.post(&probe.config_maps(), &body).await?.code(201)?;
        let list = probe.get(&format!("{}?labelSelector=behaviour%3D{}", probe.config_maps(), probe.name)).await?;
        equal("items", &names(&list).len(), &(round + 1))?;
    }
    Ok(())
}

async fn items_of_a_built_in_list_have_no_kind(probe: &Probe) -> Result<(), Failure> {
    let path = several(probe, 1).await?;
    let list = probe.get(&path).await?.code(200)?;
    list.field("/items/0/kind", Value::Null)?.field("/items/0/apiVersion", Value::Null)?;
    Ok(())
}
