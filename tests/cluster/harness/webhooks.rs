//! Receivers of messages in the hub: one that answers as Slack does, and one for JSON. Whatever arrives is kept.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use super::net::HUB;

/// A port in the hub's namespace at which nobody listens.
const DEAD_PORT: u16 = 9;

/// One message.
#[derive(Clone, Debug)]
pub struct Message {
    /// `/slack` or `/json`.
    pub path: String,
    /// The header `webhook-id`; empty for Slack.
    pub id: String,
    pub body: Value,
}

/// The receivers; they end on drop.
pub struct Webhooks {
    port: u16,
    received: Arc<Mutex<Vec<Message>>>,
    task: AbortHandle,
}

impl Webhooks {
    /// Listens at a free port. To be called inside the hub.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind((HUB, 0)).await.context("the webhooks cannot listen")?;
        let port = listener.local_addr()?.port();
        let received = Arc::default();
        let task = tokio::spawn(accept(listener, Arc::clone(&received))).abort_handle();
        Ok(Self { port, received, task })
    }

    /// The URL that answers as Slack does.
    pub fn slack_url(&self) -> String {
        format!("http://{HUB}:{}/slack", self.port)
    }

    /// The URL for JSON.
    pub fn json_url(&self) -> String {
        format!("http://{HUB}:{}/json", self.port)
    }

    /// A URL at which nobody answers.
    pub fn dead_url() -> String {
        format!("http://{HUB}:{DEAD_PORT}/json")
    }

    /// All that came so far, in order.
    pub fn received(&self) -> Vec<Message> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The kinds of the JSON messages of one record in their order; a message that came twice counts once.
    pub fn kinds(&self, record: &str) -> Vec<String> {
        let mut seen = Vec::new();
        let mut kinds = Vec::new();
        for message in self.received() {
            if message.path == "/json" && message.body["data"]["record"] == record && !seen.contains(&message.id) {
                seen.push(message.id);
                kinds.push(message.body["data"]["kind"].as_str().unwrap_or("").to_string());
            }
        }
        kinds
    }

    /// The texts that the Slack-like receiver got.
    pub fn texts(&self) -> Vec<String> {
        let text = |message: &Message| message.body["text"].as_str().unwrap_or("").to_string();
        self.received().iter().filter(|message| message.path == "/slack").map(text).collect()
    }
}

impl Drop for Webhooks {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, received: Arc<Mutex<Vec<Message>>>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(connection(stream, received.clone()));
    }
}

async fn connection(stream: TcpStream, received: Arc<Mutex<Vec<Message>>>) {
    let service = service_fn(|request| {
        let received = received.clone();
        async move { Ok::<_, Infallible>(answer(request, &received).await) }
    });
    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
}

async fn answer(request: Request<Incoming>, received: &Mutex<Vec<Message>>) -> Response<Full<Bytes>> {
    let path = request.uri().path().to_string();
    let id = request.headers().get("webhook-id").and_then(|id| id.to_str().ok()).unwrap_or("").to_string();
    let body = request.into_body().collect().await.ok().and_then(|body| serde_json::from_slice(&body.to_bytes()).ok());
    let mut response = Response::new(Full::new(Bytes::from_static(b"ok")));
    match body {
        Some(body) => received.lock().unwrap_or_else(PoisonError::into_inner).push(Message { path, id, body }),
        None => *response.status_mut() = StatusCode::BAD_REQUEST,
    }
    response
}
