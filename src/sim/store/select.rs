//! Label and field selectors, as query parameters and as objects.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::Refusal;
use super::object::At as _;

/// One requirement on labels.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

/// A label selector.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels(Vec<Requirement>);

impl Labels {
    /// From the query parameter `labelSelector`: `a=b,c!=d,e,!f,g in (h,i),j notin (k)`.
    ///
    /// # Errors
    /// 400 for text that does not parse.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        split_outside_parentheses(text)
            .into_iter()
            .map(|part| requirement(part.trim()))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// From a `LabelSelector` object: `{}` selects everything, null or absent nothing (policy/v1).
    #[must_use]
    pub fn of_object(selector: Option<&Value>) -> Option<Self> {
        let selector = selector.filter(|value| !value.is_null())?;
        let mut found = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            found.push(Requirement::In(key.clone(), vec![value.as_str().unwrap_or_default().to_owned()]));
        }
        for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let key = expression.get("key")?.as_str()?.to_owned();
            let values = || {
                let values = expression.get("values").and_then(Value::as_array);
                values.into_iter().flatten().filter_map(|value| value.as_str().map(str::to_owned)).collect()
            };
            found.push(match expression.get("operator")?.as_str()? {
                "In" => Requirement::In(key, values()),
                "NotIn" => Requirement::NotIn(key, values()),
                "Exists" => Requirement::Exists(key),
                "DoesNotExist" => Requirement::Absent(key),
                _ => return None,
            });
        }
        Some(Self(found))
    }

    /// From a plain map, as `Service.spec.selector`; an empty or absent one selects nothing.
    #[must_use]
    pub fn of_map(map: Option<&Value>) -> Option<Self> {
        let map = map?.as_object().filter(|map| !map.is_empty())?;
        let pair = |(key, value): (&String, &Value)| {
            Requirement::In(key.clone(), vec![value.as_str().unwrap_or_default().to_owned()])
        };
        Some(Self(map.iter().map(pair).collect()))
    }

    /// Whether nothing is required.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object's labels satisfy it.
    #[must_use]
    pub fn matches(&self, object: &Value) -> bool {
        let labels = object.at("/metadata/labels");
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
        self.0.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => label(key).is_some_and(|found| values.iter().any(|value| value == found)),
            Requirement::NotIn(key, values) => label(key).is_none_or(|found| values.iter().all(|value| value != found)),
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::Absent(key) => label(key).is_none(),
        })
    }
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0usize, 0usize);
    for (index, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

fn requirement(part: &str) -> Result<Requirement, Refusal> {
    let bad = || Refusal::bad_request(format!("unable to parse requirement: {part}"));
    let values = |text: &str| -> Option<Vec<String>> {
        let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
        Some(inner.split(',').map(|value| value.trim().to_owned()).collect())
    };
    if let Some((key, rest)) = part.split_once(" notin ") {
        return Ok(Requirement::NotIn(key.trim().to_owned(), values(rest).ok_or_else(bad)?));
    }
    if let Some((key, rest)) = part.split_once(" in ") {
        return Ok(Requirement::In(key.trim().to_owned(), values(rest).ok_or_else(bad)?));
    }
    if let Some((key, value)) = part.split_once("!=") {
        return Ok(Requirement::NotIn(key.trim().to_owned(), vec![value.trim().to_owned()]));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Ok(Requirement::In(key.trim().to_owned(), vec![value.trim().to_owned()]));
    }
    if let Some(key) = part.strip_prefix('!') {
        return Ok(Requirement::Absent(key.trim().to_owned()));
    }
    if part.contains(char::is_whitespace) { Err(bad()) } else { Ok(Requirement::Exists(part.to_owned())) }
}

/// A field selector.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fields(Vec<(String, String, bool)>);

impl Fields {
    /// From the query parameter `fieldSelector`; `selectable` are the paths that the kind offers.
    ///
    /// # Errors
    /// 400 for a path that the kind does not offer, as the real server answers.
    pub fn parse(text: &str, selectable: &[&str]) -> Result<Self, Refusal> {
        let mut found = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (path, value, wanted) = if let Some((path, value)) = part.split_once("!=") {
                (path, value, false)
            } else if let Some((path, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
                (path, value, true)
            } else {
                return Err(Refusal::bad_request(format!("invalid selector: '{text}'; can't understand '{part}'")));
            };
            if !selectable.contains(&path) {
                let message = format!("Unable to find field selector: \"{path}\": field label not supported: {path}");
                return Err(Refusal::bad_request(message));
            }
            found.push((path.to_owned(), value.to_owned(), wanted));
        }
        Ok(Self(found))
    }

    /// Whether nothing is required.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object's fields satisfy it.
    #[must_use]
    pub fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|(path, value, wanted)| (field(object, path) == *value) == *wanted)
    }

    /// The name that is asked for, if it is fixed.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.0.iter().find(|(path, _, wanted)| path == "metadata.name" && *wanted).map(|(_, value, _)| value.as_str())
    }
}

/// The text of a field as selectors compare it: unset is "", a boolean that is unset is "false".
fn field(object: &Value, path: &str) -> String {
    let mut value = object;
    for part in path.split('.') {
        match value.get(part) {
            Some(next) => value = next,
            None if path == "spec.unschedulable" => return "false".to_owned(),
            None => return String::new(),
        }
    }
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The fields that a built-in resource offers to selectors.
#[must_use]
pub fn selectable(group: &str, resource: &str) -> &'static [&'static str] {
    match (group, resource) {
        ("", "pods") => &[
            "metadata.name",
            "metadata.namespace",
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        ("", "nodes") => &["metadata.name", "spec.unschedulable"],
        ("", "namespaces") => &["metadata.name", "status.phase"],
        ("maint.dev", "maintenances") => &["metadata.name", "spec.nodeName", "status.phase"],
        ("" | "events.k8s.io", "events") => {
            &["metadata.name", "metadata.namespace", "reason", "type", "involvedObject.name", "involvedObject.kind"]
        }
        _ => &["metadata.name", "metadata.namespace"],
    }
}

/// The query of a URL, decoded.
#[must_use]
pub fn query(text: &str) -> BTreeMap<String, String> {
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key), decode(value))
        })
        .collect()
}

/// Percent-decoding, with `+` for a space.
#[must_use]
pub fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut index) = (Vec::with_capacity(bytes.len()), 0);
    while index < bytes.len() {
        let hex = || text.get(index + 1..index + 3).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        match (bytes[index], hex()) {
            (b'%', Some(byte)) => {
                out.push(byte);
                index += 2;
            }
            (b'+', _) => out.push(b' '),
            (byte, _) => out.push(byte),
        }
        index += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn label_selectors() {
        let object = json!({"metadata": {"labels": {"app": "dns", "tier": "a"}}});
        for (selector, wanted) in [
            ("app=dns", true),
            ("app==dns,tier=a", true),
            ("app=web", false),
            ("app!=web", true),
            ("none!=x", true),
            ("app", true),
            ("!app", false),
            ("!none", true),
            ("app in (dns, web),tier", true),
            ("app notin (dns)", false),
            ("", true),
        ] {
            assert_eq!(Labels::parse(selector).map(|labels| labels.matches(&object)), Ok(wanted), "{selector}");
        }
        assert_eq!(Labels::parse("a b").map_err(|refusal| refusal.code()), Err(400));
        assert!(Labels::of_object(Some(&json!({}))).is_some_and(|labels| labels.matches(&object)));
        assert_eq!(Labels::of_object(Some(&Value::Null)), None);
        assert_eq!(Labels::of_map(Some(&json!({}))), None);
    }

    #[test]
    fn field_selectors() {
        let node = json!({"metadata": {"name": "a"}, "spec": {}});
        for (selector, wanted) in [
            ("metadata.name=a", Ok(true)),
            ("metadata.name!=a", Ok(false)),
            ("spec.unschedulable=false", Ok(true)),
            ("spec.unschedulable=true", Ok(false)),
            ("spec.podCIDR=x", Err(400)),
            ("metadata.name", Err(400)),
        ] {
            let found = Fields::parse(selector, selectable("", "nodes"));
            let found = found.map(|fields| fields.matches(&node)).map_err(|refusal| refusal.code());
            assert_eq!(found, wanted, "{selector}");
        }
    }

    #[test]
    fn queries_are_decoded() {
        let found = query("fieldSelector=spec.nodeName%3Dn-1&limit=5&x");
        assert_eq!(found.get("fieldSelector").map(String::as_str), Some("spec.nodeName=n-1"));
        assert_eq!(decode("a+b%2fc%zz"), "a b/c%zz");
    }
}
