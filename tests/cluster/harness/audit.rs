//! The audit log of the three API servers, merged by time: who did what, in which order.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::net::NODES;

/// Whoever is tested is written down: changes with their body, reads without. The cluster's own parts and the harness
/// are left out, they would drown it.
pub const POLICY: &str = r#"apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: RequestResponse, users: ["system:serviceaccount:kube-system:kured"]}
- {level: None, users: ["system:apiserver", "system:kube-controller-manager", "system:kube-scheduler", "harness"]}
- {level: None, userGroups: ["system:nodes", "system:serviceaccounts:kube-system"]}
- {level: RequestResponse, verbs: [create, update, patch, delete, deletecollection]}
- {level: Metadata}
"#;

/// The file of server `i`.
pub fn path(run: &Path, i: usize) -> PathBuf {
    run.join("logs").join(format!("audit{i}.json"))
}

/// One finished request (or one that has begun and lasts, such as a watch: see `stage`).
#[derive(Clone, Debug)]
pub struct Entry {
    /// RFC 3339 with microseconds, as the server wrote it: sorts as text.
    pub time: String,
    /// Which API server took it, from 1.
    pub server: usize,
    /// `ResponseComplete`, `ResponseStarted` or `Panic`.
    pub stage: String,
    pub verb: String,
    pub uri: String,
    pub user: String,
    pub user_agent: String,
    /// 0 when there was no answer.
    pub code: u16,
    /// `nodes`, `pods/eviction`, ...; empty for paths that are no resource.
    pub resource: String,
    pub namespace: String,
    pub name: String,
    /// The body that was sent, null for reads.
    pub request: Value,
}

impl Entry {
    fn parse(server: usize, line: &str) -> Option<Self> {
        let event: Value = serde_json::from_str(line).ok()?;
        let text = |value: &Value| value.as_str().unwrap_or("").to_string();
        let object = &event["objectRef"];
        let resource = match (object["resource"].as_str(), object["subresource"].as_str()) {
            (Some(resource), Some(sub)) => format!("{resource}/{sub}"),
            (Some(resource), None) => resource.to_string(),
            _ => String::new(),
        };
        Some(Self {
            time: text(&event["requestReceivedTimestamp"]),
            server,
            stage: text(&event["stage"]),
            verb: text(&event["verb"]),
            uri: text(&event["requestURI"]),
            user: text(&event["user"]["username"]),
            user_agent: text(&event["userAgent"]),
            code: event["responseStatus"]["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0),
            resource,
            namespace: text(&object["namespace"]),
            name: text(&object["name"]),
            request: event["requestObject"].clone(),
        })
    }

    fn succeeded(&self) -> bool {
        self.stage == "ResponseComplete" && (200..300).contains(&self.code)
    }

    /// The value of `spec.unschedulable` that this request set, for a merge patch, a JSON patch or a whole node.
    pub fn sets_unschedulable(&self) -> Option<bool> {
        if self.resource != "nodes" || !matches!(self.verb.as_str(), "patch" | "update") {
            return None;
        }
        if let Some(steps) = self.request.as_array() {
            let step = steps.iter().rev().find(|step| step["path"] == "/spec/unschedulable" && step["op"] != "test")?;
            return Some(step["value"].as_bool().unwrap_or(false));
        }
        let spec = self.request.get("spec")?;
        match spec.get("unschedulable") {
            Some(value) => Some(value.as_bool().unwrap_or(false)),
            // A whole node without the field is schedulable; a patch without it says nothing.
            None => (self.verb == "update").then_some(false),
        }
    }
}

/// Whether a line tells at a glance that it is older: with most of a long run's log that spares the reading of it.
fn is_older(line: &str, since: &str) -> bool {
    const RECEIVED: &str = "\"requestReceivedTimestamp\":\"";
    line.rfind(RECEIVED).and_then(|at| line.get(at + RECEIVED.len()..)).is_some_and(|rest| rest < since)
}

/// The merged log of a span of time.
#[derive(Clone, Debug, Default)]
pub struct Log(pub Vec<Entry>);

impl Log {
    /// Everything received at or after the mark.
    pub fn read(run: &Path, since: &str) -> Result<Self> {
        let mut entries = Vec::new();
        for i in 1..=NODES {
            let path = path(run, i);
            // The last line may be half written: it does not parse, and the next read has it.
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            entries.extend(
                text.lines()
                    .filter(|line| !is_older(line, since))
                    .filter_map(|line| Entry::parse(i, line))
                    .filter(|entry| entry.time.as_str() >= since),
            );
        }
        entries.sort_by(|a, b| a.time.cmp(&b.time));
        Ok(Self(entries))
    }

    /// Only what one client did, by the start of its user agent or by its user's name.
    pub fn by(&self, who: &str) -> Self {
        Self(self.0.iter().filter(|entry| entry.user == who || entry.user_agent.starts_with(who)).cloned().collect())
    }

    /// Successful cordons of a node.
    pub fn cordons(&self, node: &str) -> Vec<&Entry> {
        self.unschedulable(node, true)
    }

    /// Successful uncordons of a node.
    pub fn uncordons(&self, node: &str) -> Vec<&Entry> {
        self.unschedulable(node, false)
    }

    fn unschedulable(&self, node: &str, wanted: bool) -> Vec<&Entry> {
        self.0
            .iter()
            .filter(|entry| entry.succeeded() && entry.name == node && entry.sets_unschedulable() == Some(wanted))
            .collect()
    }

    /// Eviction requests, refused ones too: see `code`.
    pub fn evictions(&self) -> Vec<&Entry> {
        self.0.iter().filter(|entry| entry.resource == "pods/eviction" && entry.verb == "create").collect()
    }

    /// Successful deletions of a resource, such as `pods`.
    pub fn deletes(&self, resource: &str) -> Vec<&Entry> {
        let deletes = |entry: &&Entry| matches!(entry.verb.as_str(), "delete" | "deletecollection");
        self.0.iter().filter(|entry| entry.succeeded() && entry.resource == resource).filter(deletes).collect()
    }

    /// Every change that went through.
    pub fn writes(&self) -> Vec<&Entry> {
        let writes = |entry: &&Entry| {
            matches!(entry.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
        };
        self.0.iter().filter(|entry| entry.succeeded()).filter(writes).collect()
    }
}
