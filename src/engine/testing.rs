//! Clients that answer from a function instead of a network, and the clock of tests.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::client::ClientError;
pub(crate) use crate::client::install_crypto_provider as install_crypto;
use crate::ports::Servers;
use crate::runtime::{Env, TaskOwner};

pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Response = http::Response<UnsyncBoxBody<Bytes, Error>>;
pub(crate) type Reply = Pin<Box<dyn Future<Output = Result<Response, Error>> + Send>>;
pub(crate) type Request = http::Request<Body>;

/// A simulated environment of seed 1.
pub(crate) fn env() -> (Env, TaskOwner) {
    Env::simulated("2026-03-01T02:00:00Z".parse().expect("a time"), 1)
}

/// A client over a function.
pub(crate) fn client(answer: impl Fn(Request) -> Reply + Send + Sync + 'static) -> kube::Client {
    kube::Client::new(tower::service_fn(answer), "default")
}

/// An answer.
pub(crate) fn reply(status: u16, headers: &[(&str, &str)], body: impl Into<String>) -> Reply {
    let mut response = http::Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    let body = Full::new(Bytes::from(body.into())).map_err(|never| match never {}).boxed_unsync();
    let response = response.body(body).map_err(Error::from);
    Box::pin(async move { response })
}

/// An answer of the API server: JSON with `Audit-Id`.
pub(crate) fn json(status: u16, body: &serde_json::Value) -> Reply {
    reply(status, &[("content-type", "application/json"), ("audit-id", "a-1")], body.to_string())
}

/// A `Status` of the API server.
pub(crate) fn status(code: u16, reason: &str, message: &str) -> Reply {
    let body = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    json(code, &body)
}

/// What an API server answers for a path that it does not know.
pub(crate) fn no_such_path() -> Reply {
    reply(404, &[("content-type", "text/plain; charset=utf-8"), ("audit-id", "a-1")], "404 page not found\n")
}

/// A body that breaks off after its first part.
pub(crate) fn cut(status: u16, part: &'static str) -> Reply {
    let frames: Vec<Result<Frame<Bytes>, Error>> =
        vec![Ok(Frame::data(Bytes::from(part))), Err("connection reset".into())];
    let body = StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync();
    let response = http::Response::builder().status(status).body(body).map_err(Error::from);
    Box::pin(async move { response })
}

/// No answer, ever.
pub(crate) fn silence() -> Reply {
    Box::pin(std::future::pending())
}

/// No connection.
pub(crate) fn refused() -> Reply {
    Box::pin(async { Err(Error::from(std::io::Error::from(std::io::ErrorKind::ConnectionRefused))) })
}

type Answer = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

/// API servers by address, each a function; what was asked is kept.
#[derive(Clone, Default)]
pub(crate) struct FakeServers {
    answers: BTreeMap<String, Answer>,
    /// `address path`, with ` upgrade` behind it where the request asks for one.
    pub asked: Arc<Mutex<Vec<String>>>,
}

impl FakeServers {
    /// Adds a server.
    pub fn with(mut self, address: &str, answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        self.answers.insert(address.to_owned(), Arc::new(answer));
        self
    }

    /// How many requests had this in them.
    pub fn count(&self, part: &str) -> usize {
        self.asked.lock().expect("not poisoned").iter().filter(|asked| asked.contains(part)).count()
    }
}

impl Servers for FakeServers {
    type Client = kube::Client;

    fn client(&self, address: &str, _: Option<&str>) -> Result<kube::Client, ClientError> {
        let answer = self.answers.get(address).cloned().ok_or_else(|| ClientError::BadAddress {
            address: address.to_owned(),
            detail: "no such server in this test".to_owned(),
        })?;
        let (asked, address) = (Arc::clone(&self.asked), address.to_owned());
        Ok(client(move |request| {
            let upgrade = if is_upgrade(&request) { " upgrade" } else { "" };
            asked.lock().expect("not poisoned").push(format!("{address} {}{upgrade}", request.uri()));
            answer(&request)
        }))
    }
}

/// A certificate authority of a test, and a listener whose certificate it signed.
pub(crate) struct TlsListener {
    /// The authority's certificate, DER.
    pub root: Vec<u8>,
    /// `127.0.0.1:port`
    pub address: String,
    listener: tokio::net::TcpListener,
    acceptor: tokio_rustls::TlsAcceptor,
}

impl TlsListener {
    /// Listens with a certificate for these names.
    pub async fn bind(names: &[&str]) -> Self {
        install_crypto();
        let authority_key = KeyPair::generate().expect("a key");
        let mut authority = CertificateParams::new(Vec::<String>::new()).expect("parameters");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = authority.self_signed(&authority_key).expect("signed");
        let issuer = Issuer::from_params(&authority, &authority_key);
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let leaf = CertificateParams::new(names).expect("parameters").signed_by(&key, &issuer).expect("signed");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key)
            .expect("a server");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        Self { root: root.der().to_vec(), address, listener, acceptor: Arc::new(config).into() }
    }

    /// The next connection; none where the client ended the handshake, as it does with a certificate that it rejects.
    pub async fn accept(&self) -> Option<tokio_rustls::server::TlsStream<tokio::net::TcpStream>> {
        let (stream, _) = self.listener.accept().await.expect("a connection");
        self.acceptor.accept(stream).await.ok()
    }
}

/// Whether a request asks for an upgrade as the probe does.
pub(crate) fn is_upgrade(request: &Request) -> bool {
    let has = |name: &str, value: &str| request.headers().get(name).is_some_and(|found| found == value);
    has("connection", "Upgrade") && has("upgrade", "maint-probe")
}

/// A healthy API server with a healthy kubelet behind every path.
pub(crate) fn healthy(request: &Request) -> Reply {
    let path = request.uri().path();
    if path == "/readyz" {
        reply(200, &[("audit-id", "a-1")], "[+]ping ok\nreadyz check passed\n")
    } else if is_upgrade(request) && path.ends_with("/proxy/maint-probe") {
        reply(404, &[("content-type", "text/plain")], "404 page not found\n")
    } else if path.ends_with("/proxy/healthz") {
        reply(200, &[("content-type", "text/plain"), ("audit-id", "a-1")], "ok")
    } else {
        no_such_path()
    }
}
