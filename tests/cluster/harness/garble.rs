//! Stands between a client and API server 1 and spoils the answers of one list: everything else passes as it is.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use super::Cluster;
use super::client::Client;

/// What happens to the answers of the one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Garble {
    /// None comes.
    Hang,
    /// A page for people, with status 200.
    Html,
    /// JSON of some other kind, with status 200.
    OtherKind,
    /// The right answer, broken off in the middle.
    Cut,
    /// 500 with a Status.
    Error,
    /// The right list, and in its first object a field of the wrong type.
    OddObject(&'static str),
}

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// A proxy of plain HTTP. It ends when it is dropped.
pub struct Garbler {
    kubeconfig: PathBuf,
    shared: Arc<Shared>,
    task: AbortHandle,
}

struct Shared {
    client: Client,
    /// The last part of the lists' paths, such as `volumes`.
    resource: &'static str,
    how: Garble,
    spoiled: AtomicU64,
}

impl Garbler {
    /// Listens in the hub. Its kubeconfig leads here by plain HTTP; API servers that are asked at their own addresses get
    /// the identity of `admin` as ever.
    pub async fn start(cluster: &Cluster, resource: &'static str, how: Garble) -> Result<Self> {
        let client = cluster.admin(1, "garbler").await?;
        let shared = Arc::new(Shared { client, resource, how, spoiled: AtomicU64::new(0) });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let kubeconfig = write_kubeconfig(&cluster.kubeconfig_path(), port)?;
        let task = tokio::spawn(accept(listener, shared.clone())).abort_handle();
        Ok(Self { kubeconfig, shared, task })
    }

    /// The kubeconfig whose current context leads here.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// How many answers were spoiled.
    pub fn spoiled(&self) -> u64 {
        self.shared.spoiled.load(Ordering::Relaxed)
    }
}

impl Drop for Garbler {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The kubeconfig of `admin` with another address for its first server.
fn write_kubeconfig(admin: &Path, port: u16) -> Result<PathBuf> {
    let mut whole: Value = serde_json::from_str(&std::fs::read_to_string(admin)?)?;
    whole["clusters"][0]["cluster"]["server"] = format!("http://127.0.0.1:{port}").into();
    let path = admin.with_file_name(format!("garbled-{port}"));
    std::fs::write(&path, whole.to_string()).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(connection(stream, shared.clone()));
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(|request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(shared.answer(&request).await) }
    });
    // A client that hangs up, and a body that is broken off on purpose, are no faults of the proxy.
    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
}

impl Shared {
    async fn answer(&self, request: &Request<Incoming>) -> Response<Body> {
        let path = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let spoiled = request.uri().path().rsplit('/').next() == Some(self.resource);
        if spoiled {
            self.spoiled.fetch_add(1, Ordering::Relaxed);
            match self.how {
                Garble::Hang => return std::future::pending().await,
                Garble::Html => return response(200, "text/html", "<html><body>Please log in</body></html>"),
                Garble::OtherKind => {
                    return response(200, "application/json", r#"{"kind":"PodList","apiVersion":"v1","items":[]}"#);
                }
                Garble::Error => {
                    let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"etcdserver: no leader","code":500}"#;
                    return response(500, "application/json", status);
                }
                Garble::Cut | Garble::OddObject(_) => {}
            }
        }
        let answer = match self.client.call(request.method().clone(), path, &[], None).await {
            Ok(answer) => answer,
            Err(error) => return response(502, "text/plain", &format!("{error:#}")),
        };
        let mut body = answer.body.clone();
        match self.how {
            Garble::Cut if spoiled => return cut(&body),
            Garble::OddObject(field) if spoiled => {
                let mut list: Value = serde_json::from_str(&body).unwrap_or_default();
                if let Some(value) = list["items"][0].pointer_mut(field) {
                    *value = serde_json::json!({ "odd": true });
                }
                body = list.to_string();
            }
            _ => {}
        }
        response(answer.status.as_u16(), answer.content_type(), &body)
    }
}

fn response(status: u16, kind: &str, body: &str) -> Response<Body> {
    let body = Full::new(Bytes::from(body.to_owned())).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    if let Ok(kind) = header::HeaderValue::from_str(kind) {
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    response
}

/// Half of a body, then the end of the connection.
fn cut(body: &str) -> Response<Body> {
    let half = Bytes::from(body.as_bytes()[..body.len() / 2].to_vec());
    let frames = [Ok(Frame::data(half)), Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset))];
    let mut response = Response::new(StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync());
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
