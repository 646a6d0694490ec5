//! Lists, as facts.

use std::sync::Arc;

use jiff::Timestamp;
use maint_core::facts::{Source, SourceSpec};
use maint_engine::observe::PAGE_LIMIT;
use maint_engine::ports::{Page, PageRequest, ReadError, Reader};
use serde_json::Value;

use super::{Decoded, Ways, note};
use crate::store::http::Inner;
use crate::store::passage::{Passage, Served};
use crate::store::request::Request;
use crate::store::select::{Fields, Labels, selectable};
use crate::store::{ListOptions, Refusal};

/// Reads lists.
#[derive(Clone)]
pub struct TypedReader {
    ways: Ways,
    decoded: Arc<Decoded>,
}

impl TypedReader {
    /// A reader by these ways, with what was decoded already.
    #[must_use]
    pub const fn new(ways: Ways, decoded: Arc<Decoded>) -> Self {
        Self { ways, decoded }
    }
}

impl Reader for TypedReader {
    async fn list_page<S: Source>(&self, request: &PageRequest<'_>) -> Result<Page<S>, ReadError> {
        let list = List {
            spec: request.spec,
            namespace: request.namespace.unwrap_or_default(),
            label_selector: request.label_selector.or(request.spec.label_selector).unwrap_or_default(),
            field_selector: request.field_selector.unwrap_or_default(),
        };
        match self.ways.clock.timeout(PAGE_LIMIT, self.ways.pass(&list)).await {
            Ok(Ok(Ok(objects))) => {
                let items = self.decoded.items(&list, objects);
                Ok(Page { items, continue_token: None })
            }
            Ok(Ok(Err(refusal))) => Err(read_error(request.spec, &refusal)),
            Ok(Err(broken)) => Err(ReadError::Transport(broken)),
            Err(late) => Err(ReadError::Timeout(format!("no answer within {} s", late.limit.as_secs()))),
        }
    }
}

/// What the engine makes of a refusal: a kind that is not there is absent, unless it is built in.
fn read_error(spec: &SourceSpec, refusal: &Refusal) -> ReadError {
    let (code, text) = match refusal {
        Refusal::UnknownPath if !spec.built_in => return ReadError::Absent,
        Refusal::UnknownPath => (404, "404 page not found"),
        Refusal::Overloaded => (429, "Too many requests, please try again later."),
        Refusal::Status { reason: "NotFound", details, .. } if !spec.built_in && !details.contains_key("name") => {
            return ReadError::Absent;
        }
        Refusal::Status { code, message, .. } => (*code, message.as_str()),
    };
    let text = format!("HTTP {code}: {text}");
    match code {
        401 | 403 => ReadError::Forbidden(text),
        410 => ReadError::Expired(text),
        _ => ReadError::Server(text),
    }
}

/// A list of one kind.
pub(super) struct List<'a> {
    /// The kind.
    pub(super) spec: &'a SourceSpec,
    /// The namespace; empty for all.
    pub(super) namespace: &'a str,
    /// The label selector; empty for none.
    pub(super) label_selector: &'a str,
    /// The field selector; empty for none.
    pub(super) field_selector: &'a str,
}

impl List<'_> {
    /// The request that this stands for, for those who judge requests.
    fn request(&self) -> Request {
        let SourceSpec { group, version, resource, .. } = self.spec;
        let base = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        let within = if self.namespace.is_empty() { String::new() } else { format!("/namespaces/{}", self.namespace) };
        Request::new("GET", &format!("{base}{within}/{resource}"), "")
    }

    fn answer(&self, inner: &Inner, way: &Passage<'_>, at: Timestamp) -> Result<Vec<Arc<Value>>, Refusal> {
        if inner.allow.is_some() || !inner.initializing.is_empty() {
            inner.admit(way.server, way.user, &self.request())?;
        }
        let SourceSpec { group, version, resource, .. } = self.spec;
        let store = &inner.store;
        let Some(kind) = store.kinds().find(group, version, resource) else {
            let built_in = store.kinds().is_built_in(group, version);
            return Err(if built_in { Refusal::no_such_resource() } else { Refusal::UnknownPath });
        };
        let options = ListOptions {
            labels: Labels::parse(self.label_selector)?,
            fields: Fields::parse(self.field_selector, selectable(group, resource))?,
            at: inner.view(way.server, at).read_at,
            ..ListOptions::default()
        };
        store.list(kind, self.namespace, &options).map(|listing| listing.items)
    }
}

impl Served for List<'_> {
    type Answer = Result<Vec<Arc<Value>>, Refusal>;

    fn is_mutating(&self) -> bool {
        false
    }

    fn without_effect(&self, inner: &mut Inner, way: &Passage<'_>, code: u16, at: Timestamp) {
        note(inner, way, self.spec.resource, code, at);
    }

    fn serve(&self, inner: &mut Inner, way: &Passage<'_>, at: Timestamp) -> Self::Answer {
        let answer = self.answer(inner, way, at);
        let code = answer.as_ref().map_or_else(Refusal::code, |_| 200);
        note(inner, way, self.spec.resource, code, at);
        answer
    }

    fn refused(&self, refusal: Refusal) -> Self::Answer {
        Err(refusal)
    }
}
