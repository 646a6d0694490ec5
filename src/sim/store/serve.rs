//! The same API servers over HTTP on the loopback interface, for `kubectl` and the demo.

use std::io;
use std::net::SocketAddr;

use http::header;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::service::ApiService;

/// Connections to one API server at a time; a further one waits.
const CONNECTIONS: usize = 200;

/// Serves one API server on a listener until the future is dropped; each connection's client is the user agent's
/// first word.
///
/// # Errors
/// If the listener cannot accept any more.
pub async fn serve(listener: TcpListener, service: ApiService) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        connections.spawn(converse(stream, service.clone()));
        make_room(&mut connections).await;
    }
}

/// The same with TLS.
///
/// # Errors
/// If the listener cannot accept any more.
pub async fn serve_tls(listener: TcpListener, service: ApiService, acceptor: TlsAcceptor) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        let (service, acceptor) = (service.clone(), acceptor.clone());
        connections.spawn(async move {
            // Whoever does not like the certificate goes away.
            if let Ok(stream) = acceptor.accept(stream).await {
                converse(stream, service).await;
            }
        });
        make_room(&mut connections).await;
    }
}

async fn make_room(connections: &mut JoinSet<()>) {
    while connections.try_join_next().is_some() {}
    while connections.len() >= CONNECTIONS {
        connections.join_next().await;
    }
}

async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin, service: ApiService) {
    let answer = service_fn(move |request: http::Request<hyper::body::Incoming>| {
        let agent = request.headers().get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        let client = agent.and_then(|agent| agent.split('/').next()).unwrap_or("unknown").to_owned();
        service.clone().named(&client).answer(request)
    });
    // A broken connection is the client's business.
    let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
}

/// Listens on a free port of the loopback interface.
///
/// # Errors
/// If no port can be had.
pub async fn listen() -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}
