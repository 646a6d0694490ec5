//! One raw request after the other, and what must be true of the answers.

use std::fmt::Debug;
use std::time::Duration;

use http::HeaderMap;
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};

use super::Capabilities;

/// Why a behaviour is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No answer.
    #[error("{0}: no answer: {1}")]
    Unanswered(String, String),
    /// Another answer.
    #[error("{what}: wanted {wanted}, found {found}")]
    Other {
        /// What was looked at.
        what: String,
        /// What it should be.
        wanted: String,
        /// What it is.
        found: String,
    },
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// What was asked.
    pub asked: String,
    /// HTTP code.
    pub code: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// The body as text.
    pub text: String,
    /// The body as JSON; null if it is none.
    pub json: Value,
}

impl Reply {
    /// A field; null if it is not there.
    #[must_use]
    pub fn at(&self, pointer: &str) -> Value {
        self.json.pointer(pointer).cloned().unwrap_or(Value::Null)
    }

    /// The field's text; "" if it has none.
    #[must_use]
    pub fn str(&self, pointer: &str) -> String {
        self.json.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// `metadata.resourceVersion`
    #[must_use]
    pub fn revision(&self) -> String {
        self.str("/metadata/resourceVersion")
    }

    /// Demands a code.
    ///
    /// # Errors
    /// If it is another.
    pub fn code(self, wanted: u16) -> Result<Self, Failure> {
        if self.code == wanted {
            return Ok(self);
        }
        let found = format!("{} {}", self.code, self.text.chars().take(400).collect::<String>());
        Err(Failure::Other { what: self.asked, wanted: wanted.to_string(), found })
    }

    /// Demands a field's value; null for absent.
    ///
    /// # Errors
    /// If it is another.
    #[expect(clippy::needless_pass_by_value, reason = "every caller makes it in place")]
    pub fn field(self, pointer: &str, wanted: Value) -> Result<Self, Failure> {
        equal(&format!("{} {pointer}", self.asked), &self.at(pointer), &wanted)?;
        Ok(self)
    }

    /// Demands code and reason of a `Status`.
    ///
    /// # Errors
    /// If one of them is another.
    pub fn status(self, code: u16, reason: &str) -> Result<Self, Failure> {
        self.code(code)?.field("/kind", json!("Status"))?.field("/reason", json!(reason))
    }
}

/// Demands that two things are equal.
///
/// # Errors
/// If they are not.
pub fn equal<T: PartialEq + Debug>(what: &str, found: &T, wanted: &T) -> Result<(), Failure> {
    if found == wanted {
        return Ok(());
    }
    Err(Failure::Other { what: what.to_owned(), wanted: format!("{wanted:?}"), found: format!("{found:?}") })
}

/// The client of one behaviour.
#[derive(Clone)]
pub struct Probe {
    client: kube::Client,
    /// What may be used.
    pub capabilities: Capabilities,
    /// A name that no other behaviour uses.
    pub name: String,
}

impl Probe {
    /// For a behaviour.
    #[must_use]
    pub fn new(client: kube::Client, capabilities: &Capabilities, behaviour: &str) -> Self {
        Self { client, capabilities: capabilities.clone(), name: behaviour.replace('_', "-") }
    }

    /// The path of ConfigMaps in the namespace.
    #[must_use]
    pub fn config_maps(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.capabilities.namespace)
    }

    /// The path of this behaviour's own ConfigMap.
    #[must_use]
    pub fn config_map(&self) -> String {
        format!("{}/{}", self.config_maps(), self.name)
    }

    /// The path of a resource in the namespace.
    #[must_use]
    pub fn path(&self, group_version: &str, rest: &str) -> String {
        let root = if group_version == "v1" { "/api" } else { "/apis" };
        format!("{root}/{group_version}/namespaces/{}/{rest}", self.capabilities.namespace)
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: Option<&Value>,
    ) -> Result<http::Response<Body>, Failure> {
        let asked = format!("{method} {path}");
        let unanswered = |error: &dyn std::fmt::Display| Failure::Unanswered(asked.clone(), error.to_string());
        let mut request = http::Request::builder().method(method).uri(path);
        if body.is_some() {
            request = request.header("Content-Type", kind);
        }
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = request.body(Body::from(bytes)).map_err(|error| unanswered(&error))?;
        self.client.send(request).await.map_err(|error| unanswered(&error))
    }

    async fn ask(&self, method: &str, path: &str, kind: &str, body: Option<&Value>) -> Result<Reply, Failure> {
        let response = self.send(method, path, kind, body).await?;
        let asked = format!("{method} {path}");
        let (parts, body) = response.into_parts();
        let bytes =
            body.collect_bytes().await.map_err(|error| Failure::Unanswered(asked.clone(), error.to_string()))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let json = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(Reply { asked, code: parts.status.as_u16(), headers: parts.headers, text, json })
    }

    /// GET.
    ///
    /// # Errors
    /// If there is no answer; the same holds for all below.
    pub async fn get(&self, path: &str) -> Result<Reply, Failure> {
        self.ask("GET", path, "", None).await
    }

    /// POST.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Reply, Failure> {
        self.ask("POST", path, "application/json", Some(body)).await
    }

    /// PUT.
    pub async fn put(&self, path: &str, body: &Value) -> Result<Reply, Failure> {
        self.ask("PUT", path, "application/json", Some(body)).await
    }

    /// PATCH, as `merge-patch`, `json-patch` or `strategic-merge-patch`.
    pub async fn patch(&self, path: &str, form: &str, body: &Value) -> Result<Reply, Failure> {
        self.ask("PATCH", path, &format!("application/{form}+json"), Some(body)).await
    }

    /// DELETE.
    pub async fn delete(&self, path: &str, options: &Value) -> Result<Reply, Failure> {
        self.ask("DELETE", path, "application/json", Some(options)).await
    }

    /// The events of a watch until the server ends it; give it a short `timeoutSeconds`.
    pub async fn watch(&self, path: &str) -> Result<Vec<Value>, Failure> {
        let reply = self.get(path).await?.code(200)?;
        let lines = reply.text.lines().filter(|line| !line.is_empty());
        lines
            .map(|line| {
                serde_json::from_str(line).map_err(|error| Failure::Unanswered(reply.asked.clone(), error.to_string()))
            })
            .collect()
    }

    /// Watches until `wanted` events came, without waiting for the server's end.
    pub async fn watch_until(&self, path: &str, wanted: usize) -> Result<Vec<Value>, Failure> {
        let mut body = self.send("GET", path, "", None).await?.into_body();
        let (mut text, mut events) = (String::new(), Vec::new());
        while events.len() < wanted {
            let Some(frame) = body.frame().await else { break };
            let frame = frame.map_err(|error| Failure::Unanswered(path.to_owned(), error.to_string()))?;
            text.push_str(&String::from_utf8_lossy(frame.data_ref().map_or(&[][..], |bytes| bytes)));
            while let Some((line, rest)) = text.split_once('\n') {
                events.extend(serde_json::from_str::<Value>(line));
                text = rest.to_owned();
            }
        }
        Ok(events)
    }

    /// Creates this behaviour's ConfigMap with `data.key` = `value`.
    pub async fn make(&self) -> Result<Reply, Failure> {
        self.post(&self.config_maps(), &self.body()).await?.code(201)
    }

    /// The body of this behaviour's ConfigMap.
    #[must_use]
    pub fn body(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": self.name, "labels": {"behaviour": self.name}}, "data": {"key": "value"}})
    }

    /// Waits until a field has a value, up to 20 seconds: a controller may have to follow.
    pub async fn wait_for(&self, path: &str, pointer: &str, wanted: &Value) -> Result<Reply, Failure> {
        for _ in 0..200 {
            let reply = self.get(path).await?;
            if reply.code == 200 && reply.at(pointer) == *wanted {
                return Ok(reply);
            }
            crate::clock::sleep(Duration::from_millis(100)).await;
        }
        self.get(path).await?.code(200)?.field(pointer, wanted.clone())
    }
}
