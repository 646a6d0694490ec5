//! `managedFields` of `Node.spec.unschedulable`: the one field whose owner maint asks for.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::object;
use super::object::At as _;

fn unschedulable(node: &Value) -> bool {
    node.at("/spec/unschedulable").and_then(Value::as_bool) == Some(true)
}

/// Moves the ownership when the value changed. An uncordon leaves no owner: `false` is not stored (omitempty).
/// An object without any entry is not tracked by updates at all (measured on 1.34.4: a Node that was created with
/// nothing but a name and a status never shows an owner).
pub fn track(old: Option<&Value>, new: &mut Value, manager: &str, now: Timestamp) {
    if let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut)
        && spec.get("unschedulable").is_some_and(|value| value == &json!(false) || value.is_null())
    {
        spec.remove("unschedulable");
    }
    let cordoned = unschedulable(new);
    if old.is_some_and(unschedulable) == cordoned {
        return;
    }
    let mut entries: Vec<Value> =
        new.at("/metadata/managedFields").and_then(Value::as_array).cloned().unwrap_or_default();
    if old.is_some() && entries.is_empty() {
        return;
    }
    for entry in &mut entries {
        disown(entry);
    }
    entries.retain(|entry| entry.get("fieldsV1").and_then(Value::as_object).is_some_and(|fields| !fields.is_empty()));
    if cordoned {
        own(&mut entries, manager, now);
    }
    let value = if entries.is_empty() { Value::Null } else { Value::Array(entries) };
    object::set_meta(new, "managedFields", value);
}

/// The first entry of a new Node: whoever made it owns its labels and annotations.
pub fn begin(node: &mut Value, manager: &str, now: Timestamp) {
    if node.at("/metadata/managedFields").is_some() {
        return;
    }
    let mut owned = json!({});
    for field in ["labels", "annotations"] {
        let keys = node.at("/metadata").and_then(|metadata| metadata.get(field)).and_then(Value::as_object);
        let Some(keys) = keys.filter(|keys| !keys.is_empty()) else { continue };
        let members = object::map(&mut owned, &format!("f:{field}"));
        members.insert(".".to_owned(), json!({}));
        members.extend(keys.keys().map(|key| (format!("f:{key}"), json!({}))));
    }
    if owned.as_object().is_some_and(|owned| !owned.is_empty()) {
        let entry = json!({"manager": manager, "operation": "Update", "apiVersion": "v1",
            "time": object::seconds(now), "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": owned}});
        object::set_meta(node, "managedFields", json!([entry]));
    }
}

fn disown(entry: &mut Value) {
    let Some(fields) = entry.get_mut("fieldsV1").and_then(Value::as_object_mut) else { return };
    let Some(spec) = fields.get_mut("f:spec").and_then(Value::as_object_mut) else { return };
    spec.remove("f:unschedulable");
    if spec.is_empty() {
        fields.remove("f:spec");
    }
}

fn own(entries: &mut Vec<Value>, manager: &str, now: Timestamp) {
    let mine = entries.iter_mut().find(|entry| {
        object::text(entry, "/manager") == manager
            && object::text(entry, "/operation") == "Update"
            && entry.get("subresource").is_none()
    });
    if let Some(entry) = mine {
        let fields = object::map(entry, "fieldsV1");
        let spec = fields.entry("f:spec").or_insert_with(|| json!({}));
        if let Some(spec) = spec.as_object_mut() {
            spec.insert("f:unschedulable".to_owned(), json!({}));
        }
        if let Some(entry) = entry.as_object_mut() {
            entry.insert("time".to_owned(), json!(object::seconds(now)));
        }
        return;
    }
    entries.push(json!({"manager": manager, "operation": "Update", "apiVersion": "v1",
        "time": object::seconds(now), "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}));
}
