//! An HTTP server in the hub that answers kured's question as a case tells it, and keeps what was asked.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use super::net::HUB;

/// A request.
#[derive(Clone, Debug)]
pub struct Asked {
    pub node: String,
    pub method: String,
    /// Path and query.
    pub uri: String,
    /// Names and values in the order in which they came.
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// Address and port of the other end: one per connection.
    pub from: SocketAddr,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Say {
    pub status: u16,
    pub body: String,
    /// `Location`
    pub location: Option<String>,
}

#[derive(Default)]
struct State {
    asked: Vec<Asked>,
    answers: BTreeMap<String, Say>,
}

/// The server; it ends on drop, with its connections.
pub struct Answerer {
    port: u16,
    state: Arc<Mutex<State>>,
    task: AbortHandle,
}

impl Answerer {
    /// Listens at a free port. To be called inside the hub.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind((HUB, 0)).await.context("the answerer cannot listen")?;
        let port = listener.local_addr()?.port();
        let state: Arc<Mutex<State>> = Arc::default();
        let task = tokio::spawn(accept(listener, Arc::clone(&state))).abort_handle();
        Ok(Self { port, state, task })
    }

    /// `--prometheus-url` for all nodes.
    pub fn url(&self) -> String {
        format!("http://{HUB}:{}/kured/{{node}}", self.port)
    }

    /// What a path below `/kured/` is answered from now on; everything else is 404.
    pub fn set(&self, node: &str, status: u16, body: &str) {
        let say = Say { status, body: body.to_string(), location: None };
        self.lock().answers.insert(node.to_string(), say);
    }

    /// Sends a node to another one's answers.
    pub fn redirect(&self, node: &str, to: &str) {
        let location = Some(format!("/kured/{to}/api/v1/query"));
        self.lock().answers.insert(node.to_string(), Say { status: 307, body: String::new(), location });
    }

    /// All requests of a node so far.
    pub fn asked(&self, node: &str) -> Vec<Asked> {
        self.lock().asked.iter().filter(|asked| asked.node == node).cloned().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Answerer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<Mutex<State>>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, from)) = listener.accept().await {
        let state = Arc::clone(&state);
        let service = service_fn(move |request| answer(request, from, Arc::clone(&state)));
        connections.spawn(async move {
            let serve = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            serve.await.ok();
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    from: SocketAddr,
    state: Arc<Mutex<State>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let node = parts.uri.path().split('/').nth(2).unwrap_or_default().to_string();
    let headers = parts
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let say = state.answers.get(&node).cloned();
    state.asked.push(Asked {
        node,
        method: parts.method.to_string(),
        uri: parts.uri.to_string(),
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
        from,
    });
    let say = say.unwrap_or(Say { status: 404, body: String::new(), location: None });
    // A server of which only GET is implemented.
    let status = if say.status == 405 && parts.method == http::Method::GET { 200 } else { say.status };
    let mut response = Response::builder().status(status);
    if let Some(location) = say.location {
        response = response.header(http::header::LOCATION, location);
    }
    let body = if status == 405 { String::new() } else { say.body };
    Ok(response.body(Full::new(Bytes::from(body))).unwrap_or_default())
}
