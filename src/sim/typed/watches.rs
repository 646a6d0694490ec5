//! Watches that wake.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use maint_engine::drive::{Changed, Changes, Watched, Watches};

use super::{Ways, note};
use crate::store::Refusal;
use crate::store::http::Inner;
use crate::store::passage::{Passage, Served};
use crate::store::select::{Fields, Labels, selectable};
use crate::store::watch::{WatchRequest, WatchStream};

/// Opens watches.
pub struct TypedWatches(Ways);

impl TypedWatches {
    /// Watches by these ways.
    #[must_use]
    pub const fn new(ways: Ways) -> Self {
        Self(ways)
    }
}

impl Watches for TypedWatches {
    fn open(&self, watched: &Watched, limit: Duration) -> BoxFuture<'static, Result<Changes, String>> {
        let (ways, opening) = (self.0.clone(), Opening { watched: watched.clone(), limit });
        Box::pin(async move {
            let opened = ways.pass_with(&opening, |server, answer| answer.map(|opened| (server, opened))).await?;
            let (server, (request, stream)) = opened.map_err(|refusal| format!("answer {}", refusal.code()))?;
            let changes: Changes =
                Box::pin(Typed(WatchStream::new(Arc::clone(&ways.cluster), server, stream, request)));
            Ok(changes)
        })
    }
}

/// The changes of a watch.
struct Typed(WatchStream);

impl Stream for Typed {
    type Item = Result<Changed, String>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match self.0.poll_event(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error.to_string()))),
                // What names no object, such as an error, tells nothing.
                Poll::Ready(Some(Ok((kind, object)))) => {
                    if let Some(changed) = Changed::of(&object, kind == "DELETED") {
                        return Poll::Ready(Some(Ok(changed)));
                    }
                }
            }
        }
    }
}

/// A watch to be opened.
struct Opening {
    watched: Watched,
    limit: Duration,
}

impl Opening {
    const fn resource(&self) -> (&'static str, &'static str, &'static str) {
        match self.watched {
            Watched::Records => ("maint.dev", "v1alpha1", "maintenances"),
            Watched::Node(_) => ("", "v1", "nodes"),
            Watched::PodsOn(_) => ("", "v1", "pods"),
            Watched::Budgets => ("policy", "v1", "poddisruptionbudgets"),
            Watched::DaemonSets => ("apps", "v1", "daemonsets"),
        }
    }

    fn answer(&self, inner: &Inner) -> Result<WatchRequest, Refusal> {
        let (group, version, resource) = self.resource();
        let kind = inner.store.kinds().find(group, version, resource).cloned().ok_or(Refusal::UnknownPath)?;
        let fields = match &self.watched {
            Watched::Records | Watched::DaemonSets | Watched::Budgets => String::new(),
            Watched::PodsOn(node) => format!("spec.nodeName={node}"),
            Watched::Node(name) => format!("metadata.name={name}"),
        };
        Ok(WatchRequest {
            kind,
            namespace: String::new(),
            labels: Labels::default(),
            fields: Fields::parse(&fields, selectable(group, resource))?,
            from: None,
            bookmarks: false,
            timeout: self.limit,
        })
    }
}

impl Served for Opening {
    /// What to watch, and the number of the server's streams.
    type Answer = Result<(WatchRequest, u64), Refusal>;

    fn is_mutating(&self) -> bool {
        false
    }

    fn without_effect(&self, inner: &mut Inner, way: &Passage<'_>, code: u16, at: Timestamp) {
        note(inner, way, self.resource().2, code, at);
    }

    fn serve(&self, inner: &mut Inner, way: &Passage<'_>, at: Timestamp) -> Self::Answer {
        let stream = inner.servers.get(way.server).map_or(0, |server| server.stream);
        let answer = self.answer(inner).map(|request| (request, stream));
        let code = answer.as_ref().map_or_else(Refusal::code, |_| 200);
        note(inner, way, self.resource().2, code, at);
        answer
    }

    fn refused(&self, refusal: Refusal) -> Self::Answer {
        Err(refusal)
    }
}
