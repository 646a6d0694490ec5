//! Bends documents in one place at a time: what blocks must not become fine because a field is gone or odd.

use serde_json::{Value, json};

/// Every variant of a document with one value deleted, nulled or of another type, and what was done to it.
pub(crate) fn mutations(document: &Value) -> Vec<(String, Value)> {
    let mut paths = Vec::new();
    collect(document, String::new(), &mut paths);
    let mut variants = Vec::new();
    for path in paths {
        let mut deleted = document.clone();
        delete(&mut deleted, &path);
        variants.push((format!("{path} deleted"), deleted));
        for (how, replace) in [("nulled", (|_| Value::Null) as fn(&Value) -> Value), ("retyped", retyped)] {
            let mut changed = document.clone();
            if let Some(value) = changed.pointer_mut(&path) {
                *value = replace(value);
            }
            variants.push((format!("{path} {how}"), changed));
        }
    }
    variants
}

fn collect(value: &Value, path: String, paths: &mut Vec<String>) {
    if !path.is_empty() {
        paths.push(path.clone());
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                collect(value, format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), paths);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                collect(value, format!("{path}/{index}"), paths);
            }
        }
        _ => {}
    }
}

fn delete(document: &mut Value, path: &str) {
    let Some((parent, key)) = path.rsplit_once('/') else { return };
    match document.pointer_mut(parent) {
        Some(Value::Object(map)) => {
            map.remove(&key.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(list)) => {
            if let Ok(index) = key.parse::<usize>() {
                list.remove(index);
            }
        }
        _ => {}
    }
}

fn retyped(value: &Value) -> Value {
    match value {
        Value::String(_) | Value::Null => json!(7),
        Value::Number(_) => json!("seven"),
        Value::Bool(flag) => json!(flag.to_string()),
        Value::Array(_) => json!({}),
        Value::Object(_) => json!([]),
    }
}

/// Asks with every variant. What does not stop the run must be on the list of paths whose absence says something by
/// Kubernetes' own definition; every entry of that list must be needed.
pub(crate) fn check(document: &Value, allowed: &[&str], ask: impl Fn(&Value) -> crate::api::Finding) {
    assert!(ask(document).stops(), "the fixture itself does not stop: {:?}", ask(document));
    let mut passing = Vec::new();
    for (what, variant) in mutations(document) {
        let finding = ask(&variant);
        if !finding.stops() {
            assert!(allowed.contains(&what.as_str()), "{what}: {finding:?}");
            passing.push(what);
        }
    }
    for what in allowed {
        assert!(passing.iter().any(|passed| passed == what), "{what} is allowed and stops all the same");
    }
}
