//! The kubelet's HTTPS port: health, a log line, and the 404 that tells a fresh connection that the path is whole.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::super::pki::Pki;
use super::Shared;

const PORT: u16 = 10250;

/// Demands a client certificate of the cluster's authority, as a kubelet without anonymous access does.
pub(super) fn tls(index: usize, pki: &Pki) -> Result<Arc<rustls::ServerConfig>> {
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(pki.file("ca.crt"))?)?;
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build()?;
    let certificate = CertificateDer::from_pem_file(pki.file(&format!("kubelet-{index}.crt")))?;
    let key = PrivateKeyDer::from_pem_file(pki.file(&format!("kubelet-{index}.key")))?;
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate], key)?;
    Ok(Arc::new(config))
}

/// Serves until it is dropped, and its connections with it.
pub(super) async fn serve(shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        match TcpListener::bind((shared.address().as_str(), PORT)).await {
            Ok(listener) => accept(&listener, &shared, &mut connections).await,
            Err(error) => eprintln!("cluster: kubelet {} cannot listen: {error}", shared.index),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn accept(listener: &TcpListener, shared: &Arc<Shared>, connections: &mut JoinSet<()>) {
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(connection(stream, shared.clone()))),
                Err(_) => return,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let Ok(stream) = TlsAcceptor::from(shared.tls.clone()).accept(stream).await else { return };
    let service = service_fn(|request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(answer(&request, &shared)) }
    });
    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
}

fn answer(request: &Request<Incoming>, shared: &Shared) -> Response<Full<Bytes>> {
    shared.asked.fetch_add(1, Ordering::Relaxed);
    let path = request.uri().path();
    let (status, kind, body) = if path == "/healthz" {
        if shared.healthy.load(Ordering::Relaxed) {
            (StatusCode::OK, "text/plain; charset=utf-8", "ok")
        } else {
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                "text/plain; charset=utf-8",
                "[-]syncloop failed: reason withheld\nhealthz check failed\n",
            )
        }
    } else if path.starts_with("/containerLogs/") {
        (StatusCode::OK, "text/plain", "a line of the pod's log\n")
    } else {
        (StatusCode::NOT_FOUND, "text/plain", "404 page not found\n")
    };
    let mut response = Response::new(Full::new(Bytes::from_static(body.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, header::HeaderValue::from_static("nosniff"));
    response
}
