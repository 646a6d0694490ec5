//! What the API server says of itself: its version, its groups, and what is in them.

use serde_json::{Value, json};

use super::error::Refusal;
use super::kinds::{Kind, Kinds};
use super::request::Answer;

/// Answers a path that names no resource.
pub(super) fn answer(kinds: &Kinds, path: &str) -> Answer {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let groups = || {
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for kind in kinds.iter().filter(|kind| !kind.group.is_empty()) {
            match found.iter_mut().find(|(group, _)| *group == kind.group) {
                Some((_, versions)) if versions.contains(&kind.version) => {}
                Some((_, versions)) => versions.push(kind.version.clone()),
                None => found.push((kind.group.clone(), vec![kind.version.clone()])),
            }
        }
        found
    };
    let group = |(name, versions): &(String, Vec<String>)| {
        let versions: Vec<Value> = versions
            .iter()
            .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
            .collect();
        json!({"kind": "APIGroup", "apiVersion": "v1", "name": name, "preferredVersion": versions.last(), "versions": versions})
    };
    match parts.as_slice() {
        ["version"] => {
            Answer::json(200, &json!({"major": "1", "minor": "34", "gitVersion": "v1.34.4", "platform": "linux/amd64"}))
        }
        ["api"] => Answer::json(200, &json!({"kind": "APIVersions", "versions": ["v1"]})),
        ["apis"] => {
            let list: Vec<Value> = groups().iter().map(group).collect();
            Answer::json(200, &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": list}))
        }
        ["apis", name] => match groups().iter().find(|(group, _)| group == name) {
            Some(found) => Answer::json(200, &group(found)),
            None => Refusal::UnknownPath.into(),
        },
        ["api", version] => resources(kinds, "", version),
        ["apis", name, version] => resources(kinds, name, version),
        _ => Refusal::UnknownPath.into(),
    }
}

fn resources(kinds: &Kinds, group: &str, version: &str) -> Answer {
    const VERBS: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
    let mut list = Vec::new();
    for kind in kinds.iter().filter(|kind| kind.group == group && kind.version == version) {
        let entry = |name: String, verbs: &[&str]| json!({"name": name, "singularName": kind.kind.to_lowercase(), "namespaced": kind.namespaced, "kind": kind.kind, "verbs": verbs});
        list.push(entry(kind.resource.clone(), VERBS));
        if let (Some(entry), Some(short)) = (list.last_mut(), short_name(kind)) {
            entry["shortNames"] = json!([short]);
        }
        if kind.resource == "pods" && kind.group.is_empty() {
            // Without it `kubectl drain` deletes pods instead of evicting them.
            list.push(json!({"name": "pods/eviction", "singularName": "", "namespaced": true, "group": "policy",
                "version": "v1", "kind": "Eviction", "verbs": ["create"]}));
        }
        if kind.status {
            list.push(entry(format!("{}/status", kind.resource), &["get", "patch", "update"]));
        }
    }
    if list.is_empty() {
        return Refusal::UnknownPath.into();
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Answer::json(
        200,
        &json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": list}),
    )
}

/// The name that people type.
fn short_name(kind: &Kind) -> Option<&'static str> {
    let short = match (kind.group.as_str(), kind.resource.as_str()) {
        ("", "nodes") => "no",
        ("", "pods") => "po",
        ("", "namespaces") => "ns",
        ("", "services") => "svc",
        ("", "configmaps") => "cm",
        ("", "events") => "ev",
        ("apps", "deployments") => "deploy",
        ("apps", "daemonsets") => "ds",
        ("apps", "statefulsets") => "sts",
        ("apps", "replicasets") => "rs",
        ("policy", "poddisruptionbudgets") => "pdb",
        ("maint.dev", "maintenances") => "mnt",
        _ => return None,
    };
    Some(short)
}
