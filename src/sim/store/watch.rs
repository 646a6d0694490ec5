//! Watches: the events of a revision range, the stream of them, and its body.

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
    fn event(&self, change: &Change) -> Option<Event> {
        if change.key.resource != self.kind.stored_as()
            || !(self.namespace.is_empty() || change.key.namespace == self.namespace)
        {
            return None;
        }
        let before = change.before.as_ref().filter(|object| self.selects(object));
        let after = change.after.as_ref().filter(|object| self.selects(object));
        match (before, after) {
            (None, None) => None,
            (None, Some(object)) => Some(("ADDED", Arc::clone(object))),
            (Some(_), Some(object)) => Some(("MODIFIED", Arc::clone(object))),
            (Some(before), None) => {
                let mut last = change.last.as_ref().map_or_else(|| Value::clone(before), |last| Value::clone(last));
                object::set_revision(&mut last, change.revision);
                Some(("DELETED", Arc::new(last)))
            }
        }
    }

    fn bookmark(&self, revision: u64) -> Event {
        let object = json!({"kind": self.kind.kind, "apiVersion": self.kind.api_version(),
            "metadata": {"resourceVersion": revision.to_string(), "creationTimestamp": null}});
        ("BOOKMARK", Arc::new(object))
    }

    /// The events after `position` up to `limit`, and where that is; or the refusal that ends the watch.
    fn events(&self, store: &Store, position: Option<u64>, limit: u64) -> Result<(Vec<Event>, u64), Refusal> {
        let Some(position) = position else {
            let options = ListOptions {
                labels: self.labels.clone(),
                fields: self.fields.clone(),
                at: Some(limit),
                ..ListOptions::default()
            };
            let listing = store.list(&self.kind, &self.namespace, &options)?;
            return Ok((listing.items.into_iter().map(|object| ("ADDED", object)).collect(), limit));
        };
        let changes = store.changes_after(position).ok_or_else(|| Refusal::expired(position, store.oldest()))?;
        let seen = changes.iter().take_while(|change| change.revision <= limit);
        Ok((seen.filter_map(|change| self.event(change)).collect(), limit.max(position)))
    }
}

/// Type and object of one event.
pub type Event = (&'static str, Arc<Value>);

fn line(event: &Event) -> Bytes {
    let mut text = json!({"type": event.0, "object": &*event.1}).to_string();
    text.push('\n');
    Bytes::from(text)
}

/// A watch at work. It reads the store itself, whenever it is polled.
pub struct WatchStream {
    cluster: Arc<Cluster>,
    server: usize,
    stream: u64,
    request: WatchRequest,
    position: Option<u64>,
    queue: VecDeque<Event>,
    end: Pin<Box<Sleep>>,
    bookmark: Pin<Box<Sleep>>,
    done: bool,
}

impl std::fmt::Debug for WatchStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("WatchStream").field("position", &self.position).finish_non_exhaustive()
    }
}

impl WatchStream {
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
                self.queue.extend(events);
                self.position = Some(position);
            }
            Err(refusal) => {
                self.queue.push_back(("ERROR", Arc::new(refusal.body().unwrap_or(Value::Null))));
                self.done = true;
            }
        }
        if self.queue.is_empty() {
            inner.store.wake_on_change(context.waker());
        }
        false
    }

    /// The next event; none at the end, an error where it was cut off.
    pub fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Event, std::io::Error>>> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            if self.done {
                return Poll::Ready(None);
            }
            if self.fill(context) {
                self.done = true;
                return Poll::Ready(Some(Err(std::io::ErrorKind::ConnectionReset.into())));
            }
            if !self.queue.is_empty() || self.done {
                continue;
            }
            if self.end.as_mut().poll(context).is_ready() {
                self.done = true;
                continue;
            }
            if self.request.bookmarks && self.bookmark.as_mut().poll(context).is_ready() {
                self.queue.push_back(self.request.bookmark(self.position.unwrap_or_default()));
                self.bookmark.as_mut().reset(Instant::now() + BOOKMARK_PERIOD);
                continue;
            }
            return Poll::Pending;
        }
    }
}

/// The body of a watch: its events as lines.
#[derive(Debug)]
pub struct WatchBody(WatchStream);

impl From<WatchStream> for WatchBody {
    fn from(stream: WatchStream) -> Self {
        Self(stream)
    }
}

impl Body for WatchBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = self.get_mut().0.poll_event(context);
        polled.map(|event| event.map(|event| event.map(|event| Frame::data(line(&event)))))
    }
}
