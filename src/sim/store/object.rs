//! Reading and writing the metadata of an object that is JSON.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Looks into an object. As [`Value::pointer`], which makes two texts for each step of the way; nights look some
/// hundred thousand times.
pub trait At {
    /// The value at a JSON pointer (RFC 6901).
    fn at(&self, pointer: &str) -> Option<&Value>;
}

impl At for Value {
    fn at(&self, pointer: &str) -> Option<&Value> {
        if pointer.contains('~') {
            return self.pointer(pointer);
        }
        let mut rest = pointer;
        let mut value = self;
        while !rest.is_empty() {
            let step = rest.strip_prefix('/')?;
            let end = step.find('/').unwrap_or(step.len());
            let (name, after) = step.split_at(end);
            value = match value {
                Self::Object(members) => members.get(name)?,
                Self::Array(entries) => entries.get(name.parse::<usize>().ok()?)?,
                _ => return None,
            };
            rest = after;
        }
        Some(value)
    }
}

/// RFC 3339 in whole seconds, as `metav1.Time`.
#[must_use]
pub fn seconds(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second()).unwrap_or(at).to_string()
}

/// RFC 3339 in microseconds, as `metav1.MicroTime`.
#[must_use]
pub fn micros(at: Timestamp) -> String {
    format!("{at:.6}")
}

/// The time of a field, if it is there and is one.
#[must_use]
pub fn time(object: &Value, pointer: &str) -> Option<Timestamp> {
    object.at(pointer)?.as_str()?.parse().ok()
}

/// The text of a field; "" if there is none.
#[must_use]
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.at(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// `metadata.name`
#[must_use]
pub fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// `metadata.namespace`
#[must_use]
pub fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

/// `metadata.uid`
#[must_use]
pub fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

/// `metadata.resourceVersion`
#[must_use]
pub fn revision(object: &Value) -> &str {
    text(object, "/metadata/resourceVersion")
}

/// The value of an annotation.
#[must_use]
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.at("/metadata/annotations")?.get(key)?.as_str()
}

/// Whether it is being deleted.
#[must_use]
pub fn is_deleting(object: &Value) -> bool {
    object.at("/metadata/deletionTimestamp").is_some_and(|value| !value.is_null())
}

/// Whether a finalizer keeps it.
#[must_use]
pub fn has_finalizers(object: &Value) -> bool {
    object.at("/metadata/finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty())
}

/// The condition of a type in `status.conditions`.
#[must_use]
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.at("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
}

/// Whether the condition of a type is True.
#[must_use]
pub fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| text(condition, "/status") == "True")
}

/// The member `key` as a map, made if it is none.
pub fn map<'a>(object: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Value::Object(members) = object else { unreachable_map() };
    let member = members.entry(key.to_owned()).or_insert(Value::Null);
    if !member.is_object() {
        *member = Value::Object(Map::new());
    }
    match member {
        Value::Object(found) => found,
        _ => unreachable_map(),
    }
}

/// Both callers have just put a map there; the compiler cannot see it.
fn unreachable_map() -> ! {
    unreachable!("the value was made a map in the line above")
}

/// Sets a member of the metadata; null removes it.
pub fn set_meta(object: &mut Value, key: &str, value: Value) {
    let metadata = map(object, "metadata");
    if value.is_null() {
        metadata.remove(key);
    } else {
        metadata.insert(key.to_owned(), value);
    }
}

/// Sets an annotation.
pub fn annotate(object: &mut Value, key: &str, value: &str) {
    let metadata = map(object, "metadata");
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(key.to_owned(), json!(value));
    }
}

/// Sets `metadata.resourceVersion`.
pub fn set_revision(object: &mut Value, revision: u64) {
    set_meta(object, "resourceVersion", json!(revision.to_string()));
}

/// Sets `status` members of a condition, keeps `lastTransitionTime` while the status stays the same. Returns
/// whether the status changed.
pub fn set_condition(
    object: &mut Value,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> bool {
    let changed = condition(object, kind).map(|condition| text(condition, "/status")) != Some(status);
    let conditions = map(object, "status").entry("conditions").or_insert_with(|| json!([]));
    let Some(list) = conditions.as_array_mut() else { return false };
    let index = list.iter().position(|entry| entry.get("type").and_then(Value::as_str) == Some(kind));
    let since = index
        .filter(|_| !changed)
        .and_then(|index| list.get(index))
        .and_then(|entry| entry.get("lastTransitionTime").cloned())
        .unwrap_or_else(|| json!(seconds(now)));
    let mut entry = json!({"type": kind, "status": status, "lastTransitionTime": since});
    if let Some(map) = entry.as_object_mut() {
        if !reason.is_empty() {
            map.insert("reason".to_owned(), json!(reason));
        }
        if !message.is_empty() {
            map.insert("message".to_owned(), json!(message));
        }
    }
    match index.and_then(|index| list.get_mut(index)) {
        // A heartbeat that the entry had stays until somebody writes a new one.
        Some(old) => {
            if let (Some(beat), Some(map)) = (old.get("lastHeartbeatTime").cloned(), entry.as_object_mut()) {
                map.insert("lastHeartbeatTime".to_owned(), beat);
            }
            *old = entry;
        }
        None => list.push(entry),
    }
    changed
}

/// Sets the heartbeat of a condition.
pub fn beat(object: &mut Value, kind: &str, now: Timestamp) {
    let conditions = map(object, "status").get_mut("conditions").and_then(Value::as_array_mut);
    for entry in conditions.into_iter().flatten() {
        if entry.get("type").and_then(Value::as_str) == Some(kind)
            && let Some(map) = entry.as_object_mut()
        {
            map.insert("lastHeartbeatTime".to_owned(), json!(seconds(now)));
        }
    }
}

/// Fills uid, creation time and generation of a new object; what a fixture gives is kept.
pub fn fill_new(object: &mut Value, uid: &str, now: Timestamp, generation: bool) {
    let metadata = map(object, "metadata");
    metadata.entry("uid").or_insert_with(|| json!(uid));
    metadata.entry("creationTimestamp").or_insert_with(|| json!(seconds(now)));
    if generation {
        metadata.entry("generation").or_insert_with(|| json!(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_what_a_json_pointer_says() {
        let object = json!({"a": {"b": [1, {"c": null}], "": 2, "x/y": 3, "m~n": 4}});
        for pointer in
            ["", "/", "/a", "/a/", "/a/b/0", "/a/b/1/c", "/a/b/2", "/a/b/x", "/a/x~1y", "/a/m~0n", "/a/b/0/z", "a"]
        {
            assert_eq!(object.at(pointer), object.pointer(pointer), "{pointer}");
        }
    }
}
