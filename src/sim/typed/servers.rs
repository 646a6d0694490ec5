//! Single API servers: readiness, and the cells of the matrix.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use maint_core::matrix::classify::{Answer, Response};
use maint_engine::client::ClientError;
use maint_engine::ports::{Asked, Probes, Question, Servers};
use maint_engine::runtime::Clock;

use super::{note, pass};
use crate::store::Refusal;
use crate::store::http::{Cluster, Inner};
use crate::store::passage::{Passage, Served};
use crate::store::request::{self, Payload};

/// The path that the prober dials.
const UNSERVED_PATH: &str = "maint-probe";

/// Finds API servers by their address.
pub struct TypedServers {
    cluster: Arc<Cluster>,
    client: &'static str,
}

impl TypedServers {
    /// The API servers of a cluster, for a client of this name.
    #[must_use]
    pub const fn new(cluster: Arc<Cluster>, client: &'static str) -> Self {
        Self { cluster, client }
    }
}

impl Servers for TypedServers {
    type Client = TypedServer;

    fn client(&self, address: &str, _: Option<&str>) -> Result<TypedServer, ClientError> {
        // Nobody listens at any other address.
        let server = self.cluster.server_at(address).unwrap_or(usize::MAX);
        Ok(TypedServer { cluster: Arc::clone(&self.cluster), client: self.client, server })
    }
}

/// One API server.
#[derive(Clone)]
pub struct TypedServer {
    cluster: Arc<Cluster>,
    client: &'static str,
    server: usize,
}

impl Probes for TypedServer {
    async fn ask(&self, clock: &Clock, question: Question<'_>) -> Asked {
        let limit = question.limit();
        let passed = pass(&self.cluster, self.server, self.client, &question);
        let answer = match clock.timeout(limit, passed).await {
            Ok(Ok(answer)) => Answer::Response(response(answer)),
            Ok(Err(broken)) => Answer::NoConnection { detail: broken },
            Err(_) => Answer::TimedOut { seconds: limit.as_secs() },
        };
        Asked { answer, wrong_name: false }
    }
}

fn response(answer: request::Answer) -> Response {
    let (content_type, body) = match answer.payload {
        Payload::Json(bytes) => ("application/json", String::from_utf8_lossy(&bytes).into_owned()),
        Payload::Text(text) if answer.audit_id => ("text/plain; charset=utf-8", text),
        Payload::Text(text) => ("text/plain", text),
        Payload::Watch(_) => ("application/json", String::new()),
    };
    let (status, audit_id, content_type) = (answer.code, answer.audit_id, content_type.to_owned());
    Response { status, http_1_1: true, audit_id, content_type, body }
}

const fn word(question: &Question<'_>) -> &'static str {
    match question {
        Question::Readyz => "readyz",
        Question::FreshDial(_) => "dial",
        Question::Healthz(_) => "healthz",
    }
}

impl Served for Question<'_> {
    type Answer = request::Answer;

    fn is_mutating(&self) -> bool {
        false
    }

    fn without_effect(&self, inner: &mut Inner, way: &Passage<'_>, code: u16, at: Timestamp) {
        note(inner, way, word(self), code, at);
    }

    fn serve(&self, inner: &mut Inner, way: &Passage<'_>, at: Timestamp) -> request::Answer {
        let answer = match self {
            Self::Readyz => inner.readyz(way.server),
            Self::FreshDial(node) => inner.proxied(way.server, node, UNSERVED_PATH, true),
            Self::Healthz(node) => inner.proxied(way.server, node, "healthz", false),
        };
        note(inner, way, word(self), answer.code, at);
        answer
    }

    fn refused(&self, refusal: Refusal) -> request::Answer {
        refusal.into()
    }

    fn delay(answer: &request::Answer) -> Option<Duration> {
        answer.delay
    }
}
