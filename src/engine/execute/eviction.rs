//! One eviction, and what its answer means: told apart by cause and status, never by the code alone.

use std::time::Duration;

use http::Method;
use maint_core::drain::{Answer, Eviction};
use maint_core::planted::{self, Bug};
use serde_json::{Value, json};

use super::call::{Calls, Form, Reply, WRITE_LIMIT};
use super::{KubeFenced, WriteError};
use crate::lead::LeaseGuard;

/// How long an eviction may take: a webhook has up to 30 s (`timeoutSeconds`), and the server itself tries for about
/// 10 s where others write the budget at the same time.
pub const EVICTION_LIMIT: Duration = Duration::from_secs(35);

/// What is known of a pod right before its eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// A watch shows it on its node, alive, with its uid.
    There,
    /// No watch shows it: it is read before it is evicted.
    Unknown,
}

impl<C: Calls> KubeFenced<C> {
    /// Sends one eviction. The lease must be valid for as long as any write takes, not for the whole limit: a Lease is
    /// shorter than that. The caller drops the request when the lease is lost; what the API server has of it by then is
    /// guarded by the pod's uid and by its budget.
    pub(super) async fn evict_one(
        &self,
        guard: &LeaseGuard,
        node: &str,
        eviction: &Eviction,
        seen: Seen,
    ) -> Result<Answer, WriteError> {
        if seen == Seen::Unknown
            && let Some(answer) = self.look(node, eviction).await
        {
            return Ok(answer);
        }
        guard.check(WRITE_LIMIT).map_err(|error| WriteError::NotLeading(error.to_string()))?;
        let Eviction { namespace, name, .. } = eviction;
        // A key that the server does not know would be dropped with what it guards: better refused.
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction?fieldValidation=Strict");
        let reply = self.calls.exchange(Method::POST, &path, Form::Json, Some(body(eviction)), EVICTION_LIMIT).await;
        let answer = match &reply {
            Ok(reply) => answer_of(reply),
            Err(error) => Answer::Transient { message: error.to_string() },
        };
        match &answer {
            Answer::Accepted | Answer::Gone => tracing::debug!(namespace, name, answer = answer.category(), "evicted"),
            other => tracing::info!(namespace, name, answer = other.category(), ?other, "did not evict"),
        }
        Ok(answer)
    }

    /// Reads the pod; an answer where there is nothing to evict, or where that is not known.
    async fn look(&self, node: &str, eviction: &Eviction) -> Option<Answer> {
        let Eviction { namespace, name, .. } = eviction;
        let path = format!("/api/v1/namespaces/{namespace}/pods?fieldSelector=metadata.name%3D{name}");
        match self.calls.read(&path).await {
            Ok(list) => match super::page_of(&list, "PodList") {
                Ok((pods, _)) => compared(pods.first(), node, eviction),
                Err(error) => Some(Answer::Transient { message: format!("not evicted: {error}") }),
            },
            Err(WriteError::NotFound(_)) => Some(Answer::Gone),
            Err(WriteError::Forbidden(message)) => Some(Answer::Forbidden { message }),
            Err(error) => Some(Answer::Transient { message: format!("not evicted: {error}") }),
        }
    }
}

/// What a fresh read says before anything is sent; none: it is as it was planned.
fn compared(pod: Option<&Value>, node: &str, eviction: &Eviction) -> Option<Answer> {
    let Some(pod) = pod else { return Some(Answer::Gone) };
    let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str);
    if text("/metadata/uid") != Some(&*eviction.uid) || text("/spec/nodeName") != Some(node) {
        return Some(Answer::UidConflict);
    }
    let ending = pod.pointer("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null());
    ending.then_some(Answer::Accepted)
}

/// The body of `policy/v1` Eviction. Its options are `deleteOptions`: grace and uid count nowhere else.
fn body(eviction: &Eviction) -> Value {
    let mut options = json!({"preconditions": {"uid": eviction.uid}});
    options = if planted::is(Bug::EvictsByName) { json!({}) } else { options };
    if let Some(seconds) = eviction.grace_seconds {
        options["gracePeriodSeconds"] = json!(seconds);
    }
    json!({
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": eviction.name, "namespace": eviction.namespace}, "deleteOptions": options,
    })
}

/// What an answer means.
#[must_use]
pub fn answer_of(reply: &Reply) -> Answer {
    let status = reply.document.as_deref();
    let text = |pointer: &str| status.and_then(|status| status.pointer(pointer)).and_then(Value::as_str);
    let message = || match text("/message").unwrap_or(&reply.text).trim() {
        "" => format!("HTTP {} without a word", reply.code),
        said => said.to_owned(),
    };
    if matches!(reply.code, 200 | 201) {
        // A failure is never told with these codes; should it be, it is none of success.
        return match text("/status") {
            Some("Failure") => Answer::Unknown { message: format!("HTTP {}: {}", reply.code, message()) },
            _ => Answer::Accepted,
        };
    }
    if reply.code >= 400 && denied(text("/message").unwrap_or_default()) {
        return Answer::WebhookDenied { message: message() };
    }
    let in_details = status.and_then(|status| status.pointer("/details/retryAfterSeconds")).and_then(Value::as_i64);
    let retry_after_seconds = reply.retry_after_seconds.or(in_details);
    match reply.code {
        404 if text("/reason") == Some("NotFound") && text("/details/name").is_some() => Answer::Gone,
        429 => match cause(status, "DisruptionBudget") {
            Some(said) => {
                let said = if said.is_empty() { message() } else { said.to_owned() };
                Answer::RefusedByBudget { budget: budget_in(&said), message: said, retry_after_seconds }
            }
            None => Answer::Throttled { retry_after_seconds },
        },
        409 => Answer::UidConflict,
        403 if cause(status, "NamespaceTerminating").is_some() => Answer::NamespaceTerminating,
        // The budget itself is in no state to be spent (`checkAndDecrement`): no right is missing.
        403 if text("/details/kind").is_some_and(|kind| kind.starts_with("poddisruptionbudget")) => {
            let budget = text("/details/name").map(str::to_owned);
            Answer::RefusedByBudget { budget, message: message(), retry_after_seconds }
        }
        403 => Answer::Forbidden { message: message() },
        500 if message().contains("more than one PodDisruptionBudget") => Answer::TwoBudgets { message: message() },
        400 | 405 | 406 | 413 | 415 | 422 => Answer::Invalid { message: message() },
        // 401: a token that is renewed, or an API server that cannot check it now.
        401 | 500..=599 => Answer::Transient { message: format!("HTTP {}: {}", reply.code, message()) },
        code => Answer::Unknown { message: format!("HTTP {code}: {}", message()) },
    }
}

/// The message of the first cause of a kind.
fn cause<'s>(status: Option<&'s Value>, kind: &str) -> Option<&'s str> {
    let causes = status?.pointer("/details/causes")?.as_array()?;
    let found = causes.iter().find(|cause| cause.get("reason").and_then(Value::as_str) == Some(kind))?;
    Some(found.get("message").and_then(Value::as_str).unwrap_or_default())
}

/// Whether admission refuses: a webhook, or a ValidatingAdmissionPolicy, which says it without the article.
fn denied(message: &str) -> bool {
    message.contains("denied the request")
        || (message.contains("ValidatingAdmissionPolicy") && message.contains("denied request"))
}

/// The budget that a cause names.
fn budget_in(cause: &str) -> Option<String> {
    let rest = cause.strip_prefix("The disruption budget ")?;
    rest.split(' ').next().filter(|name| !name.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests;
