//! The way from a node to maint's Service, as kube-proxy would make it: a listener in each node's namespace that passes
//! every question on to one of the replicas, from the node's own address. A case can spoil the way of one node, and reads
//! here what kured was really told.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::net::NODES;
use super::{Cluster, node_index, node_name, now_micros};

/// The listener's port in each node's namespace.
const PORT: u16 = 9180;
/// How long a replica may take to be reached.
const DIAL: Duration = Duration::from_secs(2);

/// What becomes of a node's questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// They reach a replica.
    Open,
    /// The answer comes so much later.
    Late(Duration),
    /// They are taken, and not answered until the way is another one; then the connection is closed.
    Hangs,
    /// They are answered with this status, and reach nobody.
    Fails(u16),
    /// They are answered with a go that nobody granted: only for a lock that kured cannot take.
    Goes,
    /// A go is kept back until the way is another one; everything else passes.
    KeepsGo,
}

/// What a node's kured was told.
#[derive(Clone, Debug)]
pub struct Told {
    /// When the answer was made, as the audit log writes times.
    pub at: String,
    pub node: String,
    /// Which replica made it; none where nobody did.
    pub replica: Option<usize>,
    pub status: u16,
    pub body: String,
}

impl Told {
    /// Whether kured takes it as leave to reboot.
    pub fn is_go(&self) -> bool {
        self.status == 200 && self.body.contains("\"result\":[]")
    }
}

struct Node {
    name: String,
    way: watch::Sender<Way>,
    told: Arc<Mutex<Vec<Told>>>,
    kept: AtomicUsize,
    replicas: Vec<SocketAddr>,
    turn: AtomicUsize,
}

/// The ways of all nodes; they end on drop.
pub struct Service {
    nodes: Vec<Arc<Node>>,
    told: Arc<Mutex<Vec<Told>>>,
    tasks: Vec<AbortHandle>,
}

impl Service {
    /// Listens on every node, for replicas at these addresses of the hub.
    pub async fn start(cluster: &Cluster, replicas: &[SocketAddr]) -> Result<Self> {
        let told: Arc<Mutex<Vec<Told>>> = Arc::default();
        let (mut nodes, mut tasks) = (Vec::new(), Vec::new());
        for i in 1..=NODES {
            let node = Arc::new(Node {
                name: node_name(i),
                way: watch::channel(Way::Open).0,
                told: Arc::clone(&told),
                kept: AtomicUsize::new(0),
                replicas: replicas.to_vec(),
                turn: AtomicUsize::new(i),
            });
            let runtime = cluster.nodes[i - 1].handle();
            let listener = runtime.spawn(TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))).await?;
            let listener = listener.with_context(|| format!("no way to maint on {}", node.name))?;
            tasks.push(runtime.spawn(accept(listener, Arc::clone(&node))).abort_handle());
            nodes.push(node);
        }
        Ok(Self { nodes, told, tasks })
    }

    /// `--prometheus-url` of the processes; the name that is in the manifests has no DNS here.
    pub fn url() -> String {
        format!("http://127.0.0.1:{PORT}/kured/{{node}}")
    }

    /// Changes a node's way.
    pub fn set(&self, node: &str, way: Way) -> Result<()> {
        self.nodes[node_index(node)? - 1].way.send_replace(way);
        Ok(())
    }

    /// How many goes are being kept back on a node.
    pub fn kept(&self, node: &str) -> Result<usize> {
        Ok(self.nodes[node_index(node)? - 1].kept.load(Ordering::Relaxed))
    }

    /// All that was answered so far, in the order in which it was made.
    pub fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn accept(listener: TcpListener, node: Arc<Node>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let node = Arc::clone(&node);
        let service = service_fn(move |request| pass(request, Arc::clone(&node)));
        connections.spawn(async move {
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
        });
    }
}

/// One question. An error closes the connection.
async fn pass(request: Request<Incoming>, node: Arc<Node>) -> Result<Response<Full<Bytes>>> {
    let mut changes = node.way.subscribe();
    let way = *changes.borrow_and_update();
    match way {
        Way::Hangs => {
            changes.changed().await.ok();
            bail!("hung up");
        }
        Way::Fails(status) => {
            let (replica, body) = (None, String::new());
            node.note(Told { at: now_micros(), node: node.name.clone(), replica, status, body });
            return Ok(Response::builder().status(status).body(Full::default())?);
        }
        Way::Goes => {
            let body = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;
            let (replica, text) = (None, body.to_string());
            node.note(Told { at: now_micros(), node: node.name.clone(), replica, status: 200, body: text });
            return Ok(Response::builder().status(200).body(Full::from(body))?);
        }
        Way::Open | Way::Late(_) | Way::KeepsGo => {}
    }
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let (replica, status, text) = node.ask(parts, body).await?;
    let told = Told {
        at: now_micros(),
        node: node.name.clone(),
        replica: Some(replica),
        status,
        body: String::from_utf8_lossy(&text).into_owned(),
    };
    let is_go = told.is_go();
    node.note(told);
    match way {
        Way::Late(by) => tokio::time::sleep(by).await,
        Way::KeepsGo if is_go => {
            node.kept.fetch_add(1, Ordering::Relaxed);
            changes.changed().await.ok();
            node.kept.fetch_sub(1, Ordering::Relaxed);
        }
        _ => {}
    }
    let mut response = Response::new(Full::new(text));
    *response.status_mut() = http::StatusCode::from_u16(status)?;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

impl Node {
    fn note(&self, told: Told) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).push(told);
    }

    /// Asks the replicas in turn until one answers; nobody's answer closes the connection.
    async fn ask(&self, parts: http::request::Parts, body: Bytes) -> Result<(usize, u16, Bytes)> {
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut last = anyhow::anyhow!("there is no replica");
        for step in 0..self.replicas.len() {
            let index = (first + step) % self.replicas.len();
            match ask(self.replicas[index], &parts, body.clone()).await {
                Ok((status, text)) => return Ok((index, status, text)),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

async fn ask(replica: SocketAddr, parts: &http::request::Parts, body: Bytes) -> Result<(u16, Bytes)> {
    let stream = tokio::time::timeout(DIAL, TcpStream::connect(replica)).await??;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let mut request = Request::builder().method(parts.method.clone()).uri(parts.uri.clone());
    if let Some(headers) = request.headers_mut() {
        headers.clone_from(&parts.headers);
    }
    let response = sender.send_request(request.body(Full::new(body))?).await?;
    let status = response.status().as_u16();
    Ok((status, response.into_body().collect().await?.to_bytes()))
}
