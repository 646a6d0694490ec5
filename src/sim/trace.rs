//! The trace of a night: every request, what it changed, and one hash over all of it.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::random::{FNV_OFFSET, fnv1a};
use crate::store::Change;
use crate::store::request::{Request, Target};

/// One request, or one act of the world.
#[derive(Debug, Clone)]
pub struct Step {
    /// Position in the night, from 1.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// Who; acts of the cluster's own parts are `world`.
    pub client: String,
    /// Verb as authorization has it; `act` for the world.
    pub verb: &'static str,
    /// Path.
    pub path: String,
    /// API group.
    pub group: String,
    /// Resource; empty where the path names none.
    pub resource: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Subresource.
    pub subresource: String,
    /// Body of a write, if it was JSON.
    pub body: Option<Arc<Value>>,
    /// HTTP code; 0 if the request never arrived.
    pub code: u16,
    /// What it changed, in order.
    pub changes: Vec<Arc<Change>>,
}

impl Step {
    /// A step of a request that has no answer yet.
    #[must_use]
    pub fn of(request: &Request, client: &str, at: Timestamp) -> Self {
        let mut step = Self::act(client, at);
        step.verb = request.verb();
        step.path.clone_from(&request.path);
        if let Target::Resource { group, resource, namespace, name, subresource, .. } = &request.target {
            step.group.clone_from(group);
            step.resource.clone_from(resource);
            step.namespace.clone_from(namespace);
            step.name.clone_from(name);
            step.subresource.clone_from(subresource);
        }
        if request.is_mutating() {
            step.body = request.shared_json();
        }
        step
    }

    /// A step without a request.
    #[must_use]
    pub fn act(client: &str, at: Timestamp) -> Self {
        Self {
            number: 0,
            at,
            client: client.to_owned(),
            verb: "act",
            path: String::new(),
            group: String::new(),
            resource: String::new(),
            namespace: String::new(),
            name: String::new(),
            subresource: String::new(),
            body: None,
            code: 0,
            changes: Vec::new(),
        }
    }

    /// The line of the log: step, time, client, verb, path, code, revisions.
    #[must_use]
    pub fn line(&self) -> String {
        let revisions = match (self.changes.first(), self.changes.last()) {
            (Some(first), Some(last)) => format!(" {}..{}", first.revision, last.revision),
            _ => String::new(),
        };
        format!("{} {} {} {} {} {}{revisions}", self.number, self.at, self.client, self.verb, self.path, self.code)
    }
}

/// The log of a night.
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    number: u64,
    keep: bool,
    steps: Vec<Step>,
}

impl Default for Trace {
    fn default() -> Self {
        Self { hash: FNV_OFFSET, number: 0, keep: true, steps: Vec::new() }
    }
}

impl Trace {
    /// Whether steps are kept; without, only the hash grows.
    pub const fn keep(&mut self, keep: bool) {
        self.keep = keep;
    }

    /// Adds a step and numbers it.
    pub fn push(&mut self, mut step: Step) {
        self.number += 1;
        step.number = self.number;
        self.hash = fnv1a(self.hash, step.line().as_bytes());
        if let Some(body) = &step.body {
            self.hash = hashed(self.hash, body);
        }
        if self.keep {
            self.steps.push(step);
        }
    }

    /// Lets the hash grow by a read that leaves no step.
    pub fn note(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.hash = fnv1a(self.hash, part);
        }
    }

    /// The steps that were kept.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Takes the steps that were kept; numbers and hash go on.
    #[must_use]
    pub fn take(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.steps)
    }

    /// The hash over every line and every body.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }
}

/// The hash goes on over a document, without making a text of it: each value with a mark of its kind before it, and of
/// its end where it has parts.
fn hashed(hash: u64, value: &Value) -> u64 {
    match value {
        Value::Null => fnv1a(hash, b"0"),
        Value::Bool(yes) => fnv1a(hash, if *yes { b"t" } else { b"f" }),
        Value::Number(number) => fnv1a(fnv1a(hash, b"#"), number.to_string().as_bytes()),
        Value::String(text) => fnv1a(fnv1a(fnv1a(hash, b"\""), text.as_bytes()), b"\""),
        Value::Array(values) => fnv1a(values.iter().fold(fnv1a(hash, b"["), hashed), b"]"),
        Value::Object(members) => {
            let member =
                |hash, (key, value): (&String, &Value)| hashed(fnv1a(fnv1a(hash, key.as_bytes()), b":"), value);
            fnv1a(members.iter().fold(fnv1a(hash, b"{"), member), b"}")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_part_of_a_document_shows_in_the_hash() {
        let documents = [
            json!(null),
            json!(true),
            json!(false),
            json!(1),
            json!(1.5),
            json!("1"),
            json!([]),
            json!([[], 1]),
            json!([[1]]),
            json!({}),
            json!({"a": null}),
            json!({"a": {"b": 1}}),
            json!({"a": {}, "b": 1}),
            json!({"a": "b"}),
        ];
        let mut hashes: Vec<u64> = documents.iter().map(|document| hashed(FNV_OFFSET, document)).collect();
        assert_eq!(hashes, documents.iter().map(|document| hashed(FNV_OFFSET, document)).collect::<Vec<_>>());
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), documents.len());
    }
}
