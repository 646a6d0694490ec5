//! Patches: JSON (RFC 6902), merge (RFC 7386), and the little of strategic merge that clusters' own parts use.

use serde_json::{Map, Value};

use super::error::Refusal;

/// The form of a patch, from its content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `application/json-patch+json`
    Json,
    /// `application/merge-patch+json`
    Merge,
    /// `application/strategic-merge-patch+json`
    Strategic,
}

impl Form {
    /// From a content type.
    ///
    /// # Errors
    /// 415 for any other, server-side apply among them: nothing here needs it.
    pub fn of(content_type: &str, custom: bool) -> Result<Self, Refusal> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" if !custom => Ok(Self::Strategic),
            other => Err(Refusal::new(
                415,
                "UnsupportedMediaType",
                format!(
                    "the body of the request was in an unknown format ({other}) - accepted media types include: \
                     application/json-patch+json, application/merge-patch+json"
                ),
            )),
        }
    }

    /// Applies a patch to an object.
    ///
    /// # Errors
    /// 422 if a JSON patch does not apply, 400 if the patch itself is none.
    pub fn apply(self, object: &Value, patch: &Value) -> Result<Value, Refusal> {
        match self {
            Self::Json => json(object, patch),
            Self::Merge => {
                let mut object = object.clone();
                merge(&mut object, patch);
                Ok(object)
            }
            Self::Strategic => {
                let mut object = object.clone();
                strategic(&mut object, patch, "");
                Ok(object)
            }
        }
    }
}

/// RFC 7386.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(map) = target.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            map.remove(key);
        } else {
            merge(map.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// The merge key of a list, by the name of its field (`patchMergeKey` in the types of `k8s.io/api`).
fn merge_key(field: &str) -> Option<&'static str> {
    match field {
        "conditions" | "addresses" => Some("type"),
        "podIPs" | "hostIPs" => Some("ip"),
        "containers" | "initContainers" | "env" | "volumes" => Some("name"),
        "ownerReferences" => Some("uid"),
        _ => None,
    }
}

fn strategic(target: &mut Value, patch: &Value, field: &str) {
    match (&mut *target, patch) {
        (Value::Object(map), Value::Object(changes)) => {
            if changes.get("$patch").and_then(Value::as_str) == Some("replace") {
                let mut whole = changes.clone();
                whole.remove("$patch");
                *target = Value::Object(whole);
                return;
            }
            for (key, value) in changes {
                if value.is_null() {
                    map.remove(key);
                } else if !key.starts_with('$') {
                    strategic(map.entry(key.clone()).or_insert(Value::Null), value, key);
                }
            }
        }
        (_, Value::Object(_)) => {
            *target = Value::Object(Map::new());
            strategic(target, patch, field);
        }
        (Value::Array(list), Value::Array(changes)) if merge_key(field).is_some() => {
            let Some(key) = merge_key(field) else { return };
            for change in changes {
                let same = |item: &Value| item.get(key).is_some() && item.get(key) == change.get(key);
                let found = list.iter().position(same);
                if change.get("$patch").and_then(Value::as_str) == Some("delete") {
                    found.map(|index| list.remove(index));
                } else if let Some(item) = found.and_then(|index| list.get_mut(index)) {
                    strategic(item, change, "");
                } else {
                    list.push(change.clone());
                }
            }
        }
        // The finalizers are the one list of plain values with the merge strategy that matters here.
        (Value::Array(list), Value::Array(changes)) if field == "finalizers" => {
            for change in changes {
                if !list.contains(change) {
                    list.push(change.clone());
                }
            }
        }
        _ => *target = patch.clone(),
    }
}

fn json(object: &Value, patch: &Value) -> Result<Value, Refusal> {
    let Value::Array(operations) = patch else {
        return Err(Refusal::bad_request("error decoding patch: json: cannot unmarshal object into Go value"));
    };
    let mut object = object.clone();
    for operation in operations {
        step(&mut object, operation).ok_or_else(Refusal::patch_failed)?;
    }
    Ok(object)
}

fn step(object: &mut Value, operation: &Value) -> Option<()> {
    let path = operation.get("path")?.as_str()?;
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match operation.get("op")?.as_str()? {
        "add" => add(object, path, value()),
        "replace" => {
            *object.pointer_mut(path)? = value();
            Some(())
        }
        "remove" => remove(object, path).map(drop),
        "test" => test(object, path, &value()),
        "copy" => {
            let from = object.pointer(operation.get("from")?.as_str()?)?.clone();
            add(object, path, from)
        }
        "move" => {
            let from = remove(object, operation.get("from")?.as_str()?)?;
            add(object, path, from)
        }
        _ => None,
    }
}

/// A test for null passes on an absent member whose parent is there: that makes "create if absent" possible.
fn test(object: &Value, path: &str, value: &Value) -> Option<()> {
    if let Some(found) = object.pointer(path) {
        return (found == value).then_some(());
    }
    let (parent, _) = split(path)?;
    object.pointer(parent)?;
    value.is_null().then_some(())
}

fn split(path: &str) -> Option<(&str, String)> {
    let (parent, last) = path.rsplit_once('/')?;
    Some((parent, last.replace("~1", "/").replace("~0", "~")))
}

fn add(object: &mut Value, path: &str, value: Value) -> Option<()> {
    if path.is_empty() {
        *object = value;
        return Some(());
    }
    let (parent, last) = split(path)?;
    match object.pointer_mut(parent)? {
        Value::Object(map) => {
            map.insert(last, value);
        }
        Value::Array(items) => {
            let index = if last == "-" { items.len() } else { last.parse().ok()? };
            if index > items.len() {
                return None;
            }
            items.insert(index, value);
        }
        _ => return None,
    }
    Some(())
}

fn remove(object: &mut Value, path: &str) -> Option<Value> {
    let (parent, last) = split(path)?;
    match object.pointer_mut(parent)? {
        Value::Object(map) => map.remove(&last),
        Value::Array(items) => {
            let index = last.parse::<usize>().ok()?;
            (index < items.len()).then(|| items.remove(index))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_patches() {
        let object = json!({"metadata": {"annotations": {"a/b": "x"}}, "list": [1, 2]});
        let k = "/metadata/annotations/a~1b";
        let n = "/metadata/annotations/new";
        for (row, patch, wanted) in [
            (
                "test and replace",
                json!([{"op": "test", "path": k, "value": "x"}, {"op": "replace", "path": k, "value": "y"}]),
                200,
            ),
            ("test fails", json!([{"op": "test", "path": k, "value": "z"}]), 422),
            ("test of an absent member", json!([{"op": "test", "path": n, "value": "z"}]), 422),
            (
                "test null, add",
                json!([{"op": "test", "path": n, "value": null}, {"op": "add", "path": n, "value": "z"}]),
                200,
            ),
            ("test null below nothing", json!([{"op": "test", "path": "/metadata/labels/x", "value": null}]), 422),
            ("test null, present", json!([{"op": "test", "path": k, "value": null}]), 422),
            ("remove absent", json!([{"op": "remove", "path": n}]), 422),
            ("replace absent", json!([{"op": "replace", "path": n, "value": 1}]), 422),
            ("add below nothing", json!([{"op": "add", "path": "/metadata/labels/x", "value": "y"}]), 422),
            ("append", json!([{"op": "add", "path": "/list/-", "value": 3}]), 200),
            ("beyond the end", json!([{"op": "add", "path": "/list/9", "value": 3}]), 422),
            ("no patch", json!({"a": 1}), 400),
        ] {
            let code = Form::Json.apply(&object, &patch).map_or_else(|refusal| refusal.code(), |_| 200);
            assert_eq!(code, wanted, "{row}");
        }
    }

    #[test]
    fn merge_and_strategic() {
        let node =
            json!({"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "X", "status": "True"}]}});
        let patch = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
        let merged = Form::Merge.apply(&node, &patch).expect("a patch");
        assert_eq!(merged, patch);
        let strategic = Form::Strategic.apply(&node, &patch).expect("a patch");
        assert_eq!(strategic.pointer("/status/conditions/0/status"), Some(&json!("False")));
        assert_eq!(strategic.pointer("/status/conditions/1/type"), Some(&json!("X")));
        let removed = Form::Merge.apply(&json!({"a": {"b": 1, "c": 2}}), &json!({"a": {"b": null}}));
        assert_eq!(removed, Ok(json!({"a": {"c": 2}})));
        assert_eq!(Form::of("application/apply-patch+yaml", false).map_err(|refusal| refusal.code()), Err(415));
        assert_eq!(
            Form::of("application/strategic-merge-patch+json", true).map_err(|refusal| refusal.code()),
            Err(415)
        );
    }
}
