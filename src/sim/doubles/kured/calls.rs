//! kured's requests to the API server, as the process sends them (measured), and what comes back.

use serde_json::{Value, json};

use super::settings::Settings;
use super::ticker::Group;

/// kured's user agent; up to the slash it is the field manager.
pub const USER_AGENT: &str = "kured/v0.0.0 (linux/amd64) kubernetes/$Format";

/// Annotation with the time since which a node is to be rebooted; gone after the reboot.
pub const IN_PROGRESS: &str = "weave.works/kured-reboot-in-progress";
/// Annotation with the time of the latest such wish; it stays.
pub const MOST_RECENT: &str = "weave.works/kured-most-recent-reboot-needed";

/// A request to the API server.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// HTTP method.
    pub method: &'static str,
    /// Path without query.
    pub path: String,
    /// Query, encoded; may be empty.
    pub query: String,
    /// Content type of the body.
    pub content_type: &'static str,
    /// Body.
    pub body: Option<Value>,
    /// The limiter that it went through.
    pub group: Group,
}

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// An answer.
    Answer {
        /// HTTP code.
        code: u16,
        /// Body; null where it was no JSON.
        body: Value,
    },
    /// No answer; the text is the end of what Go says, as `dial tcp 10.0.0.1:6443: connect: connection refused`.
    Failed(String),
}

/// A request that did not do what it was sent for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// HTTP code; 0 without an answer.
    pub code: u16,
    /// `reason` of the Status.
    pub reason: String,
    /// What kured logs.
    pub message: String,
}

impl Failure {
    /// Whether somebody else wrote in between.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.code == 409 && self.reason == "Conflict"
    }
}

impl Reply {
    /// The object, or why there is none.
    ///
    /// # Errors
    /// Any code but 2xx, and no answer at all.
    pub fn result(self) -> Result<Value, Failure> {
        match self {
            Self::Answer { code, body } if (200..300).contains(&code) => Ok(body),
            Self::Answer { code, body } => {
                let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
                let message = match text("message") {
                    empty if empty.is_empty() => format!("the server answered with code {code}"),
                    message => message,
                };
                Err(Failure { code, reason: text("reason"), message })
            }
            Self::Failed(message) => Err(Failure { code: 0, reason: String::new(), message }),
        }
    }
}

impl Call {
    fn get(path: String, group: Group) -> Self {
        Self { method: "GET", path, query: String::new(), content_type: "", body: None, group }
    }

    fn patch_node(node: &str, content_type: &'static str, body: Value) -> Self {
        let mut call = Self::get(node_path(node), Group::Core);
        (call.method, call.content_type, call.body) = ("PATCH", content_type, Some(body));
        call
    }

    /// The node.
    #[must_use]
    pub fn node(node: &str) -> Self {
        Self::get(node_path(node), Group::Core)
    }

    /// kured's DaemonSet.
    #[must_use]
    pub fn own_daemonset(settings: &Settings) -> Self {
        Self::daemonset(&settings.ds_namespace, &settings.ds_name)
    }

    /// A DaemonSet.
    #[must_use]
    pub fn daemonset(namespace: &str, name: &str) -> Self {
        Self::get(format!("/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}"), Group::Apps)
    }

    /// kured's DaemonSet as a whole, with its resourceVersion.
    #[must_use]
    pub fn put_daemonset(settings: &Settings, daemonset: Value) -> Self {
        let mut call = Self::own_daemonset(settings);
        (call.method, call.content_type, call.body) = ("PUT", "application/json", Some(daemonset));
        call
    }

    /// Cordons (true) or uncordons (null).
    #[must_use]
    pub fn unschedulable(node: &str, cordon: bool) -> Self {
        let value = if cordon { Value::Bool(true) } else { Value::Null };
        Self::patch_node(node, STRATEGIC, json!({"spec": {"unschedulable": value}}))
    }

    /// Writes the whole node back with both annotations; its resourceVersion makes a conflict possible.
    #[must_use]
    pub fn annotate(node: &str, mut object: Value, now: &str) -> Self {
        let annotations = member(member(&mut object, "metadata"), "annotations");
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(IN_PROGRESS.to_owned(), json!(now));
            annotations.insert(MOST_RECENT.to_owned(), json!(now));
        }
        Self::patch_node(node, STRATEGIC, object)
    }

    /// Removes the annotation; without a test.
    #[must_use]
    pub fn forget_annotation(node: &str) -> Self {
        let path = format!("/metadata/annotations/{}", IN_PROGRESS.replace('/', "~1"));
        Self::patch_node(node, JSON, json!([{"op": "remove", "path": path}]))
    }

    /// Sets labels.
    #[must_use]
    pub fn labels(node: &str, labels: &[(String, String)]) -> Self {
        let labels: serde_json::Map<String, Value> =
            labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        Self::patch_node(node, STRATEGIC, json!({"metadata": {"labels": labels}}))
    }

    /// Adds or removes the taint; none where the node has it, or lacks it, already. The first taint of a node tests
    /// the whole specification, so any other writer makes it fail.
    #[must_use]
    pub fn taint(node: &str, object: &Value, key: &str, wanted: bool) -> Option<Self> {
        let taints = object.pointer("/spec/taints").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let found = taints.iter().position(|taint| taint.get("key").and_then(Value::as_str) == Some(key));
        let taint = json!({"key": key, "effect": "PreferNoSchedule"});
        let steps = match (found, wanted) {
            (Some(_), true) | (None, false) => return None,
            (None, true) if taints.is_empty() => json!([
                {"op": "test", "path": "/spec", "value": object.get("spec").cloned().unwrap_or_else(|| json!({}))},
                {"op": "add", "path": "/spec/taints", "value": []},
                {"op": "add", "path": "/spec/taints/-", "value": taint}]),
            (None, true) => json!([{"op": "add", "path": "/spec/taints/-", "value": taint}]),
            (Some(index), false) => {
                let path = format!("/spec/taints/{index}");
                json!([{"op": "test", "path": path, "value": taint}, {"op": "remove", "path": path}])
            }
        };
        Some(Self::patch_node(node, JSON, steps))
    }

    /// The node's pods that match a blocking selector and have not ended.
    #[must_use]
    pub fn blocking_pods(node: &str, selector: &str) -> Self {
        let phases = "status.phase!=Succeeded,status.phase!=Failed,status.phase!=Unknown";
        let fields = encode(&format!("spec.nodeName={node},{phases}"));
        let mut call = Self::get("/api/v1/pods".to_owned(), Group::Core);
        call.query = format!("fieldSelector={fields}&labelSelector={}&limit=10", encode(selector));
        call
    }

    /// The node's pods, for a drain.
    #[must_use]
    pub fn pods(node: &str, selector: &str) -> Self {
        let mut call = Self::get("/api/v1/pods".to_owned(), Group::Core);
        let labels = if selector.is_empty() { String::new() } else { format!("&labelSelector={}", encode(selector)) };
        call.query = format!("fieldSelector={}{labels}&limit=500", encode(&format!("spec.nodeName={node}")));
        call
    }

    /// Whether evictions are served.
    #[must_use]
    pub fn eviction_support() -> Self {
        Self::get("/api/v1".to_owned(), Group::Discovery)
    }

    /// Asks for an eviction; kured names no uid.
    #[must_use]
    pub fn evict(namespace: &str, name: &str, grace: i64) -> Self {
        let options = if grace < 0 { json!({}) } else { json!({"gracePeriodSeconds": grace}) };
        let body = json!({"kind": "Eviction", "apiVersion": "policy/v1",
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": null}, "deleteOptions": options});
        let mut call = Self::get(format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction"), Group::Policy);
        (call.method, call.content_type, call.body) = ("POST", "application/json", Some(body));
        call
    }

    /// A pod.
    #[must_use]
    pub fn pod(namespace: &str, name: &str) -> Self {
        Self::get(format!("/api/v1/namespaces/{namespace}/pods/{name}"), Group::Core)
    }
}

const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON: &str = "application/json-patch+json";

fn node_path(node: &str) -> String {
    format!("/api/v1/nodes/{node}")
}

/// A member of an object, made where it is not there. The real one panics on a node without annotations; kubelets and
/// controllers always set some.
pub fn member<'a>(object: &'a mut Value, name: &str) -> &'a mut Value {
    if object.get(name).is_none_or(|found| !found.is_object())
        && let Some(map) = object.as_object_mut()
    {
        map.insert(name.to_owned(), json!({}));
    }
    &mut object[name]
}

/// The value of an annotation.
#[must_use]
pub fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.pointer("/metadata/annotations")?.get(name)?.as_str()
}

/// Query escaping as Go's `url.Values` does it.
fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let escape = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
}
