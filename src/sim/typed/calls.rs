//! Requests with documents: writes, reads of one object, and lists that are read seldom.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use maint_engine::execute::{Calls, Form, Reply, WriteError};
use serde_json::Value;

use super::{Ways, note};
use crate::store::dispatch::{self, Done};
use crate::store::http::Inner;
use crate::store::passage::{Passage, Served};
use crate::store::request::Request;
use crate::store::{EvictionRefused, Refusal};
use crate::trace::Step;

/// A request whose body is a document, answered with one.
pub(super) struct Asked<'a>(pub(super) &'a Request);

impl Asked<'_> {
    fn answer(&self, inner: &mut Inner, way: &Passage<'_>, at: Timestamp) -> (u16, <Self as Served>::Answer) {
        let done = match inner.admit(way.server, way.user, self.0) {
            Ok(()) => {
                let view = inner.view(way.server, at);
                dispatch::perform(&mut inner.store, self.0, &view)
            }
            Err(refusal) => Err(refusal.into()),
        };
        match done {
            Ok(Done::Object(code, object)) => (code, Ok((code, object))),
            // Nobody reads the details of a success.
            Ok(Done::Success(code, _)) => (code, Ok((code, Arc::new(Value::Null)))),
            Ok(Done::List(kind, listing)) => (200, Ok((200, Arc::new(dispatch::list_document(&kind, &listing))))),
            Ok(Done::Watch(_)) => {
                let refused = Refusal::new(405, "MethodNotAllowed", "watches have a port of their own");
                (405, Err(refused.into()))
            }
            Err(refused) => (refused.refusal.code(), Err(refused)),
        }
    }
}

impl Served for Asked<'_> {
    /// Code and document.
    type Answer = Result<(u16, Arc<Value>), EvictionRefused>;

    fn is_mutating(&self) -> bool {
        self.0.is_mutating()
    }

    fn is_eviction(&self) -> bool {
        self.0.is_eviction()
    }

    fn without_effect(&self, inner: &mut Inner, way: &Passage<'_>, code: u16, at: Timestamp) {
        if self.is_mutating() {
            let mut step = Step::of(self.0, way.client, at);
            step.code = code;
            inner.trace.push(step);
        } else {
            note(inner, way, &self.0.path, code, at);
        }
    }

    fn serve(&self, inner: &mut Inner, way: &Passage<'_>, at: Timestamp) -> Self::Answer {
        if self.is_mutating() {
            return inner.traced(self.0, way.client, at, |inner| self.answer(inner, way, at));
        }
        let (code, answer) = self.answer(inner, way, at);
        note(inner, way, &self.0.path, code, at);
        answer
    }

    fn refused(&self, refusal: Refusal) -> Self::Answer {
        Err(refusal.into())
    }

    fn delay(answer: &Self::Answer) -> Option<Duration> {
        Some(answer.as_ref().map_or_else(|refused| refused.delay, |_| Duration::ZERO))
    }
}

/// A refusal as the real client gets it.
fn refused(refusal: &Refusal) -> Reply {
    let document = refusal.body();
    Reply {
        code: refusal.code(),
        retry_after_seconds: refusal.retry_after().and_then(|seconds| seconds.try_into().ok()),
        // The plain text of an answer that is no document ends its line.
        text: if document.is_some() { String::new() } else { format!("{refusal}\n") },
        document: document.map(Arc::new),
    }
}

/// What the engine makes of a refusal.
pub(super) fn write_error(refusal: &Refusal) -> WriteError {
    match refused(refusal).into_document() {
        Err(error) => error,
        Ok(_) => WriteError::Server("a refusal with the code of a success".to_owned()),
    }
}

/// Fenced writes, requests of people, reports and Events.
#[derive(Clone)]
pub struct TypedCalls(Ways);

impl TypedCalls {
    /// Calls by these ways.
    #[must_use]
    pub const fn new(ways: Ways) -> Self {
        Self(ways)
    }

    async fn sent(&self, request: &Request, limit: Duration) -> Result<Reply, WriteError> {
        match self.0.clock.timeout(limit, self.0.pass_with(&Asked(request), |_, answer| answer)).await {
            Ok(Ok(Ok((code, document)))) => {
                Ok(Reply { code, retry_after_seconds: None, document: Some(document), text: String::new() })
            }
            Ok(Ok(Err(refusal))) => Ok(refused(&refusal.refusal)),
            Ok(Err(broken)) => Err(WriteError::Transport(broken)),
            Err(late) => Err(WriteError::TimedOut { limit: late.limit }),
        }
    }
}

impl Calls for TypedCalls {
    async fn exchange(
        &self,
        method: http::Method,
        path: &str,
        form: Form,
        body: Option<Value>,
        limit: Duration,
    ) -> Result<Reply, WriteError> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut request = Request::new(method.as_str(), path, query);
        if let Some(body) = body {
            form.media_type().clone_into(&mut request.content_type);
            request.document = Some(Arc::new(body));
        }
        self.sent(&request, limit).await
    }
}
