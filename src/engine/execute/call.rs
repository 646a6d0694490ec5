//! One request and its answer, within a limit; and the port that carries it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use serde_json::Value;

use super::WriteError;
use crate::runtime::Clock;

/// How long a write may take. A guard must be valid for longer than this before it is sent.
pub const WRITE_LIMIT: Duration = Duration::from_secs(8);
/// Answers larger than this are not read: records are limited to 64 KiB, nodes to a few times that.
const BODY_LIMIT: usize = 4 * 1024 * 1024;

/// The media type of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A whole object.
    Json,
    /// A merge patch (RFC 7386).
    Merge,
    /// A JSON patch (RFC 6902).
    Patch,
}

impl Form {
    /// As `Content-Type` names it.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Merge => "application/merge-patch+json",
            Self::Patch => "application/json-patch+json",
        }
    }
}

/// An answer as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// HTTP code.
    pub code: u16,
    /// `Retry-After` in seconds; a date there is none.
    pub retry_after_seconds: Option<i64>,
    /// The body, if it is JSON.
    pub document: Option<Arc<Value>>,
    /// The body's first 200 characters, if it is no JSON: an API server that sheds load answers in plain text.
    pub text: String,
}

impl Reply {
    /// The document of a 2xx answer.
    ///
    /// # Errors
    /// Of any other answer; see [`WriteError::of_answer`].
    pub fn into_document(self) -> Result<Arc<Value>, WriteError> {
        let code = self.code;
        if (200..300).contains(&code) {
            return self.document.ok_or_else(|| WriteError::Server(format!("{code} without JSON")));
        }
        let said = self.document.as_deref().and_then(message_of);
        Err(WriteError::of_answer(code, said.unwrap_or(self.text)))
    }
}

/// One request to the API and its answer, both documents: what fenced writes and requests of people rest on. A kube
/// client carries them as text; a world in memory takes them as they are.
pub trait Calls: Send + Sync {
    /// Sends a request and waits for its answer, whatever it says, at most so long. Nothing is retried.
    ///
    /// # Errors
    /// Without an answer: [`WriteError::TimedOut`], [`WriteError::Transport`].
    fn exchange(
        &self,
        method: http::Method,
        path: &str,
        form: Form,
        body: Option<Value>,
        limit: Duration,
    ) -> impl Future<Output = Result<Reply, WriteError>> + Send;

    /// Sends a write and waits for its answer, at most [`WRITE_LIMIT`].
    ///
    /// # Errors
    /// Whatever is not a 2xx answer with a document; see [`WriteError::of_answer`].
    fn call(
        &self,
        method: http::Method,
        path: &str,
        form: Form,
        body: Value,
    ) -> impl Future<Output = Result<Arc<Value>, WriteError>> + Send {
        async move { self.exchange(method, path, form, Some(body), WRITE_LIMIT).await?.into_document() }
    }

    /// Reads one object, or one page of a list, in the same way.
    ///
    /// # Errors
    /// The same; without an answer nothing can have happened, see [`WriteError::of_read`].
    fn read(&self, path: &str) -> impl Future<Output = Result<Arc<Value>, WriteError>> + Send {
        async move {
            let read = self.exchange(http::Method::GET, path, Form::Json, None, WRITE_LIMIT).await;
            read.and_then(Reply::into_document).map_err(WriteError::of_read)
        }
    }
}

/// [`Calls`] through a kube client, which must not retry by itself.
#[derive(Clone)]
pub struct KubeCalls {
    client: kube::Client,
    clock: Clock,
}

impl KubeCalls {
    /// Calls through this client.
    #[must_use]
    pub const fn new(client: kube::Client, clock: Clock) -> Self {
        Self { client, clock }
    }
}

impl Calls for KubeCalls {
    async fn exchange(
        &self,
        method: http::Method,
        path: &str,
        form: Form,
        body: Option<Value>,
        limit: Duration,
    ) -> Result<Reply, WriteError> {
        exchange(&self.client, &self.clock, (method, path), form, body.as_ref(), limit).await
    }
}

/// Sends a request and reads its answer, at most [`WRITE_LIMIT`].
///
/// # Errors
/// Whatever is not a 2xx answer with JSON.
pub async fn send(
    client: &kube::Client,
    clock: &Clock,
    method: http::Method,
    path: &str,
    form: Form,
    body: Option<&Value>,
) -> Result<Value, WriteError> {
    let reply = exchange(client, clock, (method, path), form, body, WRITE_LIMIT).await?;
    Ok(Arc::unwrap_or_clone(reply.into_document()?))
}

async fn exchange(
    client: &kube::Client,
    clock: &Clock,
    (method, path): (http::Method, &str),
    form: Form,
    body: Option<&Value>,
    limit: Duration,
) -> Result<Reply, WriteError> {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, form.media_type())
        .header(http::header::ACCEPT, "application/json")
        .body(body.map_or_else(Body::empty, |body| Body::from(body.to_string().into_bytes())))
        .map_err(|error| WriteError::Invalid(error.to_string()))?;
    let exchange = async {
        let response = client.send(request).await.map_err(|error| WriteError::Transport(error.to_string()))?;
        let code = response.status().as_u16();
        let header = response.headers().get(http::header::RETRY_AFTER);
        let retry_after_seconds = header.and_then(|value| value.to_str().ok()?.parse().ok());
        let bytes = Limited::new(response.into_body(), BODY_LIMIT)
            .collect()
            .await
            .map_err(|error| WriteError::Transport(error.to_string()))?
            .to_bytes();
        Ok((code, retry_after_seconds, bytes))
    };
    let (code, retry_after_seconds, bytes) = match clock.timeout(limit, exchange).await {
        Ok(answer) => answer?,
        Err(late) => return Err(WriteError::TimedOut { limit: late.limit }),
    };
    let document: Option<Value> = serde_json::from_slice(&bytes).ok();
    let text = match &document {
        Some(document) if message_of(document).is_some() => String::new(),
        _ => String::from_utf8_lossy(&bytes).chars().take(200).collect(),
    };
    Ok(Reply { code, retry_after_seconds, document: document.map(Arc::new), text })
}

/// The items of a page of a list, and the token of the next page; empty where this one is the last.
///
/// # Errors
/// If it is no list of this kind: an answer without items is not one of no items.
pub(crate) fn page_of<'p>(page: &'p Value, kind: &str) -> Result<(&'p [Value], &'p str), WriteError> {
    let found = page.get("kind").and_then(Value::as_str).unwrap_or("something without a kind");
    if found != kind {
        return Err(WriteError::Server(format!("200, but {found} instead of a {kind}")));
    }
    let items = page.get("items").and_then(Value::as_array);
    let items = items.ok_or_else(|| WriteError::Server(format!("200, but a {kind} without items")))?;
    Ok((items, page.pointer("/metadata/continue").and_then(Value::as_str).unwrap_or_default()))
}

/// The name of an item that may be anything.
pub(crate) fn name_in(item: &Value) -> &str {
    item.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("without a name")
}

/// What a Status says. Which budget refuses an eviction stands in its causes only.
#[must_use]
pub fn message_of(status: &Value) -> Option<String> {
    let message = status.get("message").and_then(Value::as_str)?;
    let causes = status.pointer("/details/causes").and_then(Value::as_array).into_iter().flatten();
    let budgets: Vec<&str> = causes
        .filter(|cause| cause.get("reason").and_then(Value::as_str) == Some("DisruptionBudget"))
        .filter_map(|cause| cause.get("message").and_then(Value::as_str))
        .collect();
    Some(if budgets.is_empty() { message.to_owned() } else { format!("{message} {}", budgets.join("; ")) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_list_of_the_kind_is_a_list() {
        let rows = [
            ("empty", json!({"kind": "AList", "metadata": {}, "items": []}), Ok((0, ""))),
            ("a page", json!({"kind": "AList", "metadata": {"continue": "t"}, "items": [1]}), Ok((1, "t"))),
            ("null", Value::Null, Err("200, but something without a kind instead of a AList")),
            ("another", json!({"kind": "BList", "items": []}), Err("200, but BList instead of a AList")),
            ("no items", json!({"kind": "AList"}), Err("200, but a AList without items")),
            ("odd items", json!({"kind": "AList", "items": {}}), Err("200, but a AList without items")),
        ];
        for (row, page, wanted) in rows {
            let found = page_of(&page, "AList").map(|(items, next)| (items.len(), next.to_owned()));
            let wanted =
                wanted.map(|(count, next)| (count, next.to_owned())).map_err(|why| WriteError::Server(why.to_owned()));
            assert_eq!(found, wanted, "{row}");
        }
    }

    #[test]
    fn a_refused_eviction_names_its_budget() {
        let no = "Cannot evict pod as it would violate the pod's disruption budget.";
        let cause = json!({"reason": "DisruptionBudget", "message": "The disruption budget shop needs 5 healthy pods and has 5 currently"});
        let other = json!({"reason": "FieldValueInvalid", "message": "odd", "field": "spec"});
        let named = format!("{no} The disruption budget shop needs 5 healthy pods and has 5 currently");
        let rows = [
            ("named", json!({"message": no, "details": {"causes": [cause]}}), Some(named.as_str())),
            ("no causes", json!({"message": no, "details": {}}), Some(no)),
            ("other causes", json!({"message": no, "details": {"causes": [other]}}), Some(no)),
            ("no message", json!({"details": {"causes": []}}), None),
        ];
        for (row, status, wanted) in rows {
            assert_eq!(message_of(&status).as_deref(), wanted, "{row}");
        }
    }
}
