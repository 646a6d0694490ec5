//! Watches: the events of a revision range, and the body that streams them.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame};
use serde_json::{Value, json};
use tokio::time::{Instant, Sleep};

use super::error::Refusal;
use super::http::Cluster;
use super::kinds::Kind;
use super::select::{Fields, Labels};
use super::{Change, ListOptions, Store, object};

/// Time between two bookmarks (the real server: about a minute).
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);

/// What a watch asks for.
#[derive(Debug, Clone)]
pub struct WatchRequest {
    /// Kind.
    pub kind: Kind,
    /// Namespace; empty for all.
    pub namespace: String,
    /// `labelSelector`
    pub labels: Labels,
    /// `fieldSelector`
    pub fields: Fields,
    /// Events after this revision; none starts with the objects that are there.
    pub from: Option<u64>,
    /// `allowWatchBookmarks`
    pub bookmarks: bool,
    /// `timeoutSeconds`
    pub timeout: Duration,
}

impl WatchRequest {
    fn selects(&self, object: &Value) -> bool {
        self.labels.matches(object) && self.fields.matches(object)
    }

    /// The event of a change, if the watch sees it: entering the selection is ADDED, leaving it DELETED.
    fn event(&self, change: &Change) -> Option<Value> {
        if change.key.resource != self.kind.stored_as()
            || !(self.namespace.is_empty() || change.key.namespace == self.namespace)
        {
            return None;
        }
        let before = change.before.as_ref().filter(|object| self.selects(object));
        let after = change.after.as_ref().filter(|object| self.selects(object));
        match (before, after) {
            (None, None) => None,
            (None, Some(object)) => Some(event("ADDED", object)),
            (Some(_), Some(object)) => Some(event("MODIFIED", object)),
            (Some(before), None) => {
                let mut last = change.last.as_ref().map_or_else(|| Value::clone(before), |last| Value::clone(last));
                object::set_revision(&mut last, change.revision);
                Some(event("DELETED", &last))
            }
        }
    }

    fn bookmark(&self, revision: u64) -> Value {
        event(
            "BOOKMARK",
            &json!({"kind": self.kind.kind, "apiVersion": self.kind.api_version(),
                "metadata": {"resourceVersion": revision.to_string(), "creationTimestamp": null}}),
        )
    }

    /// The events after `position` up to `limit`, and where that is; or the refusal that ends the watch.
    fn events(&self, store: &Store, position: Option<u64>, limit: u64) -> Result<(Vec<Value>, u64), Refusal> {
        let Some(position) = position else {
            let options = ListOptions {
                labels: self.labels.clone(),
                fields: self.fields.clone(),
                at: Some(limit),
                ..ListOptions::default()
            };
            let listing = store.list(&self.kind, &self.namespace, &options)?;
            return Ok((listing.items.iter().map(|object| event("ADDED", object)).collect(), limit));
        };
        let changes = store.changes_after(position).ok_or_else(|| Refusal::expired(position, store.oldest()))?;
        let seen = changes.iter().take_while(|change| change.revision <= limit);
        Ok((seen.filter_map(|change| self.event(change)).collect(), limit.max(position)))
    }
}

fn event(kind: &str, object: &Value) -> Value {
    json!({"type": kind, "object": object})
}

fn line(value: &Value) -> Bytes {
    let mut text = value.to_string();
    text.push('\n');
    Bytes::from(text)
}

/// The body of a watch. It reads the store itself, whenever it is polled.
pub struct WatchBody {
    cluster: Arc<Cluster>,
    server: usize,
    stream: u64,
    request: WatchRequest,
    position: Option<u64>,
    queue: VecDeque<Bytes>,
    end: Pin<Box<Sleep>>,
    bookmark: Pin<Box<Sleep>>,
    done: bool,
}

impl std::fmt::Debug for WatchBody {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("WatchBody").field("position", &self.position).finish_non_exhaustive()
    }
}

impl WatchBody {
    /// A watch at an API server; `stream` is the number after which a cut of that server ended it.
    #[must_use]
    pub fn new(cluster: Arc<Cluster>, server: usize, stream: u64, request: WatchRequest) -> Self {
        let end = Box::pin(crate::clock::sleep(request.timeout));
        let bookmark = Box::pin(crate::clock::sleep(BOOKMARK_PERIOD));
        let position = request.from;
        Self { cluster, server, stream, request, position, queue: VecDeque::new(), end, bookmark, done: false }
    }

    /// Takes what is new into the queue. Answers whether the stream was cut.
    fn fill(&mut self, context: &Context<'_>) -> bool {
        let mut inner = self.cluster.lock();
        let Some(server) = inner.servers.get(self.server) else { return true };
        if server.stream != self.stream || server.is_cut() {
            return true;
        }
        let limit = server.cached_at.unwrap_or_else(|| inner.store.revision());
        match self.request.events(&inner.store, self.position, limit) {
            Ok((events, position)) => {
                self.queue.extend(events.iter().map(line));
                self.position = Some(position);
            }
            Err(refusal) => {
                self.queue.push_back(line(&event("ERROR", &refusal.body().unwrap_or(Value::Null))));
                self.done = true;
            }
        }
        if self.queue.is_empty() {
            inner.store.wake_on_change(context.waker());
        }
        false
    }
}

impl Body for WatchBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        loop {
            if let Some(bytes) = this.queue.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if this.done {
                return Poll::Ready(None);
            }
            if this.fill(context) {
                this.done = true;
                return Poll::Ready(Some(Err(std::io::ErrorKind::ConnectionReset.into())));
            }
            if !this.queue.is_empty() || this.done {
                continue;
            }
            if this.end.as_mut().poll(context).is_ready() {
                this.done = true;
                continue;
            }
            if this.request.bookmarks && this.bookmark.as_mut().poll(context).is_ready() {
                this.queue.push_back(line(&this.request.bookmark(this.position.unwrap_or_default())));
                this.bookmark.as_mut().reset(Instant::now() + BOOKMARK_PERIOD);
                continue;
            }
            return Poll::Pending;
        }
    }
}
