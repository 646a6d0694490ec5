//! Refusals in the words of the real API server: a `Status` object, or the plain text of an unknown path.

use serde_json::{Map, Value, json};

use super::kinds::Kind;

/// A refusal.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// A `Status` object.
    #[error("{} {}: {message}", code, reason)]
    Status {
        /// HTTP code.
        code: u16,
        /// `reason`; empty where the real one writes none.
        reason: &'static str,
        /// `message`
        message: String,
        /// `details`
        details: Map<String, Value>,
    },
    /// `404 page not found` as text/plain: no such group, version or resource.
    #[error("404 page not found")]
    UnknownPath,
    /// 429 as text/plain, with Retry-After: the server sheds load (priority and fairness), before it looked at anything.
    #[error("Too many requests, please try again later.")]
    Overloaded,
}

impl Refusal {
    /// A refusal without details.
    #[must_use]
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self::Status { code, reason, message: message.into(), details: Map::new() }
    }

    fn of(kind: &Kind, name: &str, code: u16, reason: &'static str, message: String) -> Self {
        let mut details = Map::new();
        details.insert("name".to_owned(), json!(name));
        if !kind.group.is_empty() {
            details.insert("group".to_owned(), json!(kind.group));
        }
        details.insert("kind".to_owned(), json!(kind.resource));
        Self::Status { code, reason, message, details }
    }

    /// 404 of a missing object.
    #[must_use]
    pub fn not_found(kind: &Kind, name: &str) -> Self {
        Self::of(kind, name, 404, "NotFound", format!("{} \"{name}\" not found", kind.qualified()))
    }

    /// 409 of a create.
    #[must_use]
    pub fn already_exists(kind: &Kind, name: &str, deleting: bool) -> Self {
        let prefix = if deleting { "object is being deleted: " } else { "" };
        let message = format!("{prefix}{} \"{name}\" already exists", kind.qualified());
        Self::of(kind, name, 409, "AlreadyExists", message)
    }

    /// 409 of a lost race.
    #[must_use]
    pub fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.qualified());
        Self::of(kind, name, 409, "Conflict", message)
    }

    /// 409 of a stale resourceVersion.
    #[must_use]
    pub fn stale(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    /// 422 of one field.
    #[must_use]
    pub fn invalid(kind: &Kind, name: &str, field: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is invalid: {field}: {why}", kind.qualified_kind());
        let mut refusal = Self::of(kind, name, 422, "Invalid", message);
        if let Self::Status { details, .. } = &mut refusal {
            details.insert("kind".to_owned(), json!(kind.kind));
            details
                .insert("causes".to_owned(), json!([{"reason": "FieldValueInvalid", "message": why, "field": field}]));
        }
        refusal
    }

    /// 422 of a JSON patch that does not apply: one generic text for every cause (measured on 1.34.4).
    #[must_use]
    pub fn patch_failed() -> Self {
        Self::new(422, "Invalid", "the server rejected our request due to an error in our request")
    }

    /// 404 of a path that a built-in group does not have; an unknown group answers in plain text instead.
    #[must_use]
    pub fn no_such_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
    }

    /// 422 of an update without resourceVersion, where the kind demands one; it names the resource, not the kind.
    #[must_use]
    pub fn revision_required(kind: &Kind, name: &str) -> Self {
        let why = "Invalid value: 0: must be specified for an update";
        let message = format!("{} \"{name}\" is invalid: metadata.resourceVersion: {why}", kind.qualified());
        let mut refusal = Self::of(kind, name, 422, "Invalid", message);
        if let Self::Status { details, .. } = &mut refusal {
            let cause = json!({"reason": "FieldValueInvalid", "message": why, "field": "metadata.resourceVersion"});
            details.insert("causes".to_owned(), json!([cause]));
        }
        refusal
    }

    /// 400.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 410 of a revision that is no longer kept.
    #[must_use]
    pub fn expired(asked: u64, oldest: u64) -> Self {
        Self::new(410, "Expired", format!("too old resource version: {asked} ({oldest})"))
    }

    /// 403 of whatever is created in a namespace that ends (`NamespaceLifecycle`).
    #[must_use]
    pub fn namespace_terminating(kind: &Kind, name: &str, namespace: &str) -> Self {
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let message = format!("{} \"{name}\" is forbidden: {why}", kind.qualified());
        let mut refusal = Self::of(kind, name, 403, "Forbidden", message);
        if let Self::Status { details, .. } = &mut refusal {
            let cause = json!({"reason": "NamespaceTerminating", "field": "metadata.namespace",
                "message": format!("namespace {namespace} is being terminated")});
            details.insert("causes".to_owned(), json!([cause]));
        }
        refusal
    }

    /// 403 of a budget that is in no state to be spent; it names the resource in the singular.
    #[must_use]
    pub fn budget_unfit(name: &str, why: &str) -> Self {
        let message = format!("poddisruptionbudget.policy \"{name}\" is forbidden: {why}");
        let mut refusal = Self::new(403, "Forbidden", message);
        if let Self::Status { details, .. } = &mut refusal {
            details.insert("name".to_owned(), json!(name));
            details.insert("group".to_owned(), json!("policy"));
            details.insert("kind".to_owned(), json!("poddisruptionbudget"));
        }
        refusal
    }

    /// 429 of a budget; `retry_after` only while the controller has not caught up.
    #[must_use]
    pub fn budget(cause: &str, retry_after: u64) -> Self {
        let mut details = Map::new();
        details.insert("causes".to_owned(), json!([{"reason": "DisruptionBudget", "message": cause}]));
        if retry_after > 0 {
            details.insert("retryAfterSeconds".to_owned(), json!(retry_after));
        }
        Self::Status {
            code: 429,
            reason: "TooManyRequests",
            message: "Cannot evict pod as it would violate the pod's disruption budget.".to_owned(),
            details,
        }
    }

    /// 429 without a budget's cause, to be tried again after a second.
    #[must_use]
    pub fn throttled(message: &str) -> Self {
        let mut refusal = Self::new(429, "TooManyRequests", message);
        if let Self::Status { details, .. } = &mut refusal {
            details.insert("retryAfterSeconds".to_owned(), json!(1));
        }
        refusal
    }

    /// HTTP code.
    #[must_use]
    pub const fn code(&self) -> u16 {
        match self {
            Self::Status { code, .. } => *code,
            Self::UnknownPath => 404,
            Self::Overloaded => 429,
        }
    }

    /// The seconds of `details.retryAfterSeconds`, which the real server repeats as header `Retry-After`.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        match self {
            Self::Status { details, .. } => details.get("retryAfterSeconds").and_then(Value::as_u64),
            Self::UnknownPath => None,
            Self::Overloaded => Some(1),
        }
    }

    /// The body, or none for the plain text.
    #[must_use]
    pub fn body(&self) -> Option<Value> {
        let Self::Status { code, reason, message, details } = self else { return None };
        let mut body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "code": code});
        if let Some(map) = body.as_object_mut() {
            if !reason.is_empty() {
                map.insert("reason".to_owned(), json!(reason));
            }
            if !details.is_empty() || matches!(*code, 404 | 415 | 422) {
                map.insert("details".to_owned(), Value::Object(details.clone()));
            }
        }
        Some(body)
    }
}
