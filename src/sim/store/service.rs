//! One API server as a tower service, so that the real `kube::Client` runs on it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Response, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame};
use jiff::Timestamp;
use tower::BoxError;

use super::error::Refusal;
use super::http::{Cluster, Inner};
use super::passage::{Passage, Served};
use super::request::{Answer, Payload, Request};
use super::watch::{WatchBody, WatchStream};
use crate::trace::Step;

/// One API server as a client sees it.
#[derive(Debug, Clone)]
pub struct ApiService {
    cluster: Arc<Cluster>,
    server: usize,
    client: String,
    user: String,
}

impl ApiService {
    /// An API server of a cluster for a client that trace and faults know by this name.
    #[must_use]
    pub fn new(cluster: Arc<Cluster>, server: usize, client: &str) -> Self {
        Self { cluster, server, client: client.to_owned(), user: client.to_owned() }
    }

    /// The same for another user (rights are asked for the user, faults are counted by client).
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        user.clone_into(&mut self.user);
        self
    }

    /// The same, named after the user agent of each request.
    #[must_use]
    pub fn named(mut self, client: &str) -> Self {
        client.clone_into(&mut self.client);
        self.user(client)
    }

    /// Answers one request.
    ///
    /// # Errors
    /// As a connection fails: refused, or broken in the middle.
    pub async fn answer<B>(self, request: http::Request<B>) -> Result<Response<ApiBody>, BoxError>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let request = take_apart(request).await?;
        let way = Passage { cluster: &self.cluster, server: self.server, client: &self.client, user: &self.user };
        let answer = way.pass(&request).await.map_err(std::io::Error::from)?;
        self.response(answer)
    }

    fn response(&self, answer: Answer) -> Result<Response<ApiBody>, BoxError> {
        let mut builder = Response::builder().status(answer.code);
        if answer.audit_id {
            let number = self.cluster.lock().trace.hash();
            builder =
                builder.header("Audit-Id", format!("{number:016x}")).header(header::CACHE_CONTROL, "no-cache, private");
        }
        if let Some(seconds) = answer.retry_after {
            builder = builder.header(header::RETRY_AFTER, seconds);
        }
        let (content_type, body) = match answer.payload {
            Payload::Json(bytes) => ("application/json", ApiBody::Once(Some(Bytes::from(bytes)))),
            Payload::Text(text) => {
                builder = builder.header("X-Content-Type-Options", "nosniff");
                let kind = if answer.audit_id { "text/plain; charset=utf-8" } else { "text/plain" };
                (kind, ApiBody::Once(Some(Bytes::from(text))))
            }
            Payload::Watch(request) => {
                let stream = self.cluster.lock().servers.get(self.server).map_or(0, |server| server.stream);
                let events = WatchStream::new(Arc::clone(&self.cluster), self.server, stream, *request);
                ("application/json", ApiBody::Watch(Box::new(events.into())))
            }
        };
        Ok(builder.header(header::CONTENT_TYPE, content_type).body(body)?)
    }
}

impl Served for Request {
    type Answer = Answer;

    fn is_mutating(&self) -> bool {
        Self::is_mutating(self)
    }

    fn is_eviction(&self) -> bool {
        Self::is_eviction(self)
    }

    fn without_effect(&self, inner: &mut Inner, way: &Passage<'_>, code: u16, at: Timestamp) {
        let mut step = Step::of(self, way.client, at);
        step.code = code;
        inner.trace.push(step);
    }

    fn serve(&self, inner: &mut Inner, way: &Passage<'_>, at: Timestamp) -> Answer {
        inner.traced(self, way.client, at, |inner| {
            let answer = inner.answer(way.server, way.user, self, at);
            (answer.code, answer)
        })
    }

    fn refused(&self, refusal: Refusal) -> Answer {
        refusal.into()
    }

    fn delay(answer: &Answer) -> Option<Duration> {
        answer.delay
    }
}

async fn take_apart<B>(request: http::Request<B>) -> Result<Request, BoxError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(Into::into)?.to_bytes().to_vec();
    let text = |name: header::HeaderName| {
        parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let mut taken = Request::new(parts.method.as_str(), parts.uri.path(), parts.uri.query().unwrap_or_default());
    taken.content_type = text(header::CONTENT_TYPE);
    taken.user_agent = text(header::USER_AGENT);
    taken.upgrade = text(header::CONNECTION).to_ascii_lowercase().contains("upgrade");
    taken.body = body;
    Ok(taken)
}

impl<B> tower::Service<http::Request<B>> for ApiService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ApiBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}

/// The body of an answer.
#[derive(Debug)]
pub enum ApiBody {
    /// Known already.
    Once(Option<Bytes>),
    /// A stream of events.
    Watch(Box<WatchBody>),
}

impl Body for ApiBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Once(bytes) => {
                Poll::Ready(bytes.take().filter(|bytes| !bytes.is_empty()).map(|bytes| Ok(Frame::data(bytes))))
            }
            Self::Watch(body) => Pin::new(body.as_mut()).poll_frame(context),
        }
    }
}
