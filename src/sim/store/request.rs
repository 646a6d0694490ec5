//! A request taken apart, and an answer before it is HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::error::Refusal;
use super::select;
use super::watch::WatchRequest;

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Objects: one if the name is there, else a collection.
    Resource {
        /// API group; empty for core.
        group: String,
        /// Version.
        version: String,
        /// Plural resource.
        resource: String,
        /// Namespace; empty for cluster scope or all.
        namespace: String,
        /// Name; empty for a collection.
        name: String,
        /// Subresource; empty for the object itself.
        subresource: String,
        /// What follows the subresource, as `healthz` after `proxy`.
        tail: String,
    },
    /// Anything else, as `/version`.
    Path,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// HTTP method.
    pub method: String,
    /// Path without query.
    pub path: String,
    /// Decoded query.
    pub query: BTreeMap<String, String>,
    /// `Content-Type`
    pub content_type: String,
    /// `User-Agent`
    pub user_agent: String,
    /// Whether the connection is to be upgraded.
    pub upgrade: bool,
    /// Body.
    pub body: Vec<u8>,
    /// The body of a request that never was text.
    pub document: Option<Arc<Value>>,
    /// What the path names.
    pub target: Target,
}

impl Request {
    /// Takes method and URI apart.
    #[must_use]
    pub fn new(method: &str, path: &str, query: &str) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: select::query(query),
            content_type: String::new(),
            user_agent: String::new(),
            upgrade: false,
            body: Vec::new(),
            document: None,
            target: target(path),
        }
    }

    /// The verb of authorization: get, list, watch, create, update, patch, delete, deletecollection.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        let collection = matches!(&self.target, Target::Resource { name, .. } if name.is_empty());
        match self.method.as_str() {
            "GET" | "HEAD" if collection && self.is_watch() => "watch",
            "GET" | "HEAD" if collection => "list",
            "GET" | "HEAD" => "get",
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" if collection => "deletecollection",
            "DELETE" => "delete",
            _ => "unknown",
        }
    }

    fn is_watch(&self) -> bool {
        matches!(self.parameter("watch"), "1" | "true")
    }

    /// Whether it may change something.
    #[must_use]
    pub fn is_mutating(&self) -> bool {
        !matches!(self.verb(), "get" | "list" | "watch")
    }

    /// Whether it is an eviction.
    #[must_use]
    pub fn is_eviction(&self) -> bool {
        self.path.ends_with("/eviction")
    }

    /// A query parameter; "" if it is not there.
    #[must_use]
    pub fn parameter(&self, key: &str) -> &str {
        self.query.get(key).map_or("", String::as_str)
    }

    /// The field manager: what the query says, or the user agent up to its slash.
    #[must_use]
    pub fn manager(&self) -> String {
        match self.parameter("fieldManager") {
            "" => self.user_agent.split('/').next().unwrap_or_default().to_owned(),
            said => said.to_owned(),
        }
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// 400 if it is none.
    pub fn json(&self) -> Result<Value, Refusal> {
        if let Some(document) = &self.document {
            return Ok(Value::clone(document));
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| Refusal::bad_request(format!("the object provided is unrecognized: {error}")))
    }

    /// The body as JSON to look at; none if it is none.
    #[must_use]
    pub fn shared_json(&self) -> Option<Arc<Value>> {
        self.document.clone().or_else(|| self.json().ok().map(Arc::new))
    }

    /// Whether there is no body.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.body.is_empty() && self.document.is_none()
    }
}

fn target(path: &str) -> Target {
    let mut parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(select::decode).collect();
    let (group, version) = match parts.first().map(String::as_str) {
        Some("api") if parts.len() > 2 => {
            let version = parts.remove(1);
            parts.remove(0);
            (String::new(), version)
        }
        Some("apis") if parts.len() > 3 => {
            let version = parts.remove(2);
            let group = parts.remove(1);
            parts.remove(0);
            (group, version)
        }
        _ => return Target::Path,
    };
    let in_namespace =
        parts.len() > 2 && parts[0] == "namespaces" && !matches!(parts[2].as_str(), "status" | "finalize");
    let namespace = if in_namespace {
        parts.remove(0);
        parts.remove(0)
    } else {
        String::new()
    };
    let mut parts = parts.into_iter();
    let mut next = || parts.next().unwrap_or_default();
    let (resource, name, subresource) = (next(), next(), next());
    let tail = parts.collect::<Vec<_>>().join("/");
    Target::Resource { group, version, resource, namespace, name, subresource, tail }
}

/// The body of an answer.
#[derive(Debug)]
pub enum Payload {
    /// `application/json`
    Json(Vec<u8>),
    /// `text/plain`
    Text(String),
    /// A stream of events.
    Watch(Box<WatchRequest>),
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// HTTP code.
    pub code: u16,
    /// Body.
    pub payload: Payload,
    /// `Audit-Id`: on every answer that an API server makes, not on a kubelet's raw one.
    pub audit_id: bool,
    /// `Retry-After` in seconds.
    pub retry_after: Option<u64>,
    /// How long it takes; none is never.
    pub delay: Option<Duration>,
}

impl Answer {
    /// JSON.
    #[must_use]
    pub fn json(code: u16, value: &Value) -> Self {
        Self::bytes(code, value.to_string().into_bytes())
    }

    /// JSON that is written already.
    #[must_use]
    pub const fn bytes(code: u16, bytes: Vec<u8>) -> Self {
        Self { code, payload: Payload::Json(bytes), audit_id: true, retry_after: None, delay: Some(Duration::ZERO) }
    }

    /// Plain text.
    #[must_use]
    pub fn text(code: u16, text: &str) -> Self {
        let payload = Payload::Text(text.to_owned());
        Self { code, payload, audit_id: true, retry_after: None, delay: Some(Duration::ZERO) }
    }

    /// A `Status` of success.
    #[must_use]
    pub fn success(code: u16, details: Value) -> Self {
        let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
        if let Some(map) = status.as_object_mut() {
            if details.is_null() {
                map.insert("code".to_owned(), json!(code));
            } else {
                map.insert("details".to_owned(), details);
            }
        }
        Self::json(code, &status)
    }

    /// After some time.
    #[must_use]
    pub const fn after(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        let mut answer = match refusal.body() {
            Some(body) => Self::json(refusal.code(), &body),
            // The plain text ends its line, as Go's `http.Error` has it.
            None => Self::text(refusal.code(), &format!("{refusal}\n")),
        };
        answer.retry_after = refusal.retry_after();
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for (path, wanted) in [
            ("/api/v1/nodes", Some(("", "nodes", "", "", "", ""))),
            ("/api/v1/nodes/a/proxy/healthz", Some(("", "nodes", "", "a", "proxy", "healthz"))),
            ("/api/v1/namespaces/x", Some(("", "namespaces", "", "x", "", ""))),
            ("/api/v1/namespaces/x/status", Some(("", "namespaces", "", "x", "status", ""))),
            ("/api/v1/namespaces/x/pods/p/eviction", Some(("", "pods", "x", "p", "eviction", ""))),
            ("/apis/apps/v1/namespaces/x/daemonsets", Some(("apps", "daemonsets", "x", "", "", ""))),
            ("/apis/apps/v1", None),
            ("/version", None),
        ] {
            let found = match target(path) {
                Target::Path => None,
                Target::Resource { group, resource, namespace, name, subresource, tail, .. } => {
                    Some([group, resource, namespace, name, subresource, tail])
                }
            };
            let wanted = wanted.map(|(a, b, c, d, e, f)| [a, b, c, d, e, f].map(str::to_owned));
            assert_eq!(found, wanted, "{path}");
        }
    }
}
