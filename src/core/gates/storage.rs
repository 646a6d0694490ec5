//! Readings that both storage gates share: sources that must be there, the nodes, and what was known at the start.

use std::collections::{BTreeMap, BTreeSet};

use super::{Draft, GateInput, Read};
use crate::api::{Evidence, GateId, Moment, Reason, SourceId};
use crate::facts::{Item, Listed, Node, TriState};

/// A list that must be there; `None` means that the draft holds the unknown.
pub(super) fn required<'a, T>(
    draft: &mut Draft<'a>,
    source: SourceId,
    listed: &'a Listed<T>,
    because: &str,
) -> Option<List<'a, T>> {
    match draft.read(source, listed) {
        Read::Known(items) => {
            let complete = listed.known().is_some_and(|all| all.len() == items.len());
            Some(List { items, complete })
        }
        Read::Unreadable => None,
        Read::Absent | Read::NotAsked => {
            draft.unknown(
                Reason::ObservationFailed,
                format!("nothing is known of {source}, although {because}"),
                Evidence::new(source.as_str(), "read", "no answer", "a list"),
            );
            None
        }
    }
}

/// What a source listed.
#[derive(Debug)]
pub(super) struct List<'a, T> {
    /// The items that could be decoded.
    pub items: Vec<&'a T>,
    /// Whether these are all: what follows from the *absence* of an object may only be told of a complete list.
    pub complete: bool,
}

/// The nodes by name.
#[derive(Debug)]
pub(super) struct NodeIndex<'a> {
    nodes: BTreeMap<&'a str, &'a Node>,
    unreadable: BTreeSet<&'a str>,
}

impl<'a> NodeIndex<'a> {
    /// Reads the nodes; `None` means that the draft holds the unknown.
    pub fn read(draft: &mut Draft<'a>, input: &'a GateInput<'a>) -> Option<Self> {
        let list = required(draft, SourceId::Nodes, &input.facts.nodes, "every cluster has nodes")?;
        let unreadable = input.facts.nodes.known().into_iter().flatten().filter_map(|item| match item {
            Item::Malformed(malformed) => malformed.object.strip_prefix("Node "),
            Item::Good(_) => None,
        });
        Some(Self {
            nodes: list.items.into_iter().map(|node| (node.metadata.name.as_str(), node)).collect(),
            unreadable: unreadable.collect(),
        })
    }

    /// Whether Kubernetes has no such node. One that could not be decoded is there all the same.
    pub fn is_gone(&self, name: &str) -> bool {
        !self.nodes.contains_key(name) && !self.unreadable.contains(name)
    }

    /// Whether it exists and could not be decoded: nothing may be told of it.
    pub fn is_unreadable(&self, name: &str) -> bool {
        self.unreadable.contains(name)
    }

    /// Whether it exists and says `Ready=True`.
    pub fn is_ready(&self, name: &str) -> bool {
        let ready = self.nodes.get(name).and_then(|node| node.condition("Ready"));
        ready.is_some_and(|condition| condition.status == TriState::True)
    }

    /// Whether new pods may be placed on it.
    pub fn is_schedulable(&self, name: &str) -> bool {
        self.nodes.get(name).is_some_and(|node| !node.is_cordoned())
    }
}

/// Whether the run's baseline has this very piece of evidence: it was so at the start, and was waived by a person or
/// by a policy. At settle only "no worse than then" is asked.
pub(super) fn known_at_start(input: &GateInput<'_>, gate: GateId, evidence: &Evidence) -> bool {
    input.moment == Moment::Settle
        && input.run.is_some_and(|run| {
            let mut findings = run.baseline.iter().filter(|finding| finding.gate == gate);
            findings.any(|finding| finding.evidence.contains(evidence))
        })
}

/// Spoils documents path by path, for the tables of the storage gates.
#[cfg(test)]
pub(super) mod spoiling {
    use serde_json::{Value, json};

    /// Every document that differs in one path: deleted, set to null, or of another type, and what was done.
    pub fn spoilt(document: &Value) -> Vec<(String, Value)> {
        let mut paths = Vec::new();
        collect(document, "", &mut paths);
        let mut found = Vec::new();
        for path in paths {
            let (parent, key) = path.rsplit_once('/').expect("a pointer");
            let mut deleted = document.clone();
            match deleted.pointer_mut(parent).expect("a parent") {
                Value::Object(map) => drop(map.remove(&key.replace("~1", "/"))),
                Value::Array(list) => drop(list.remove(key.parse().expect("an index"))),
                _ => unreachable!("only these have members"),
            }
            found.push((format!("{path} deleted"), deleted));
            for (deed, value) in [("nulled", Value::Null), ("retyped", other_type(document.pointer(&path)))] {
                let mut changed = document.clone();
                *changed.pointer_mut(&path).expect("a value") = value;
                found.push((format!("{path} {deed}"), changed));
            }
        }
        found
    }

    fn other_type(value: Option<&Value>) -> Value {
        if value.is_some_and(Value::is_string) { json!(7) } else { json!("odd") }
    }

    fn collect(value: &Value, at: &str, into: &mut Vec<String>) {
        let members: Vec<(String, &Value)> = match value {
            Value::Object(map) => map.iter().map(|(key, member)| (key.replace('/', "~1"), member)).collect(),
            Value::Array(list) => list.iter().enumerate().map(|(index, member)| (index.to_string(), member)).collect(),
            _ => Vec::new(),
        };
        for (key, member) in members {
            let path = format!("{at}/{key}");
            collect(member, &path, into);
            into.push(path);
        }
    }
}
