//! `/metrics` with the one metric that kured has.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::flags::Flags;

/// Between two looks at the sentinel.
const PERIOD: Duration = Duration::from_secs(60);

/// Takes the port; an empty host is every address.
pub async fn listen(host: &str, port: u16) -> Result<TcpListener> {
    let host = if host.is_empty() { "0.0.0.0" } else { host };
    TcpListener::bind((host, port)).await.with_context(|| format!("listen tcp {host}:{port}"))
}

/// Serves for ever.
pub async fn serve(listener: TcpListener, flags: Flags) {
    let required = Arc::new(AtomicBool::new(false));
    let (node, seen) = (flags.node_id.clone(), Arc::clone(&required));
    tokio::spawn(async move {
        loop {
            seen.store(flags.is_required().await, Ordering::Relaxed);
            tokio::time::sleep(PERIOD).await;
        }
    });
    while let Ok((stream, _)) = listener.accept().await {
        let (node, required) = (node.clone(), Arc::clone(&required));
        let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
            let value = u8::from(required.load(Ordering::Relaxed));
            let found = request.uri().path() == "/metrics";
            let body = if found { text(&node, value) } else { "404 page not found\n".to_string() };
            let mut response = Response::new(Full::new(Bytes::from(body)));
            *response.status_mut() = if found { StatusCode::OK } else { StatusCode::NOT_FOUND };
            std::future::ready(Ok::<_, Infallible>(response))
        });
        tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

fn text(node: &str, value: u8) -> String {
    format!(
        "# HELP kured_reboot_required OS requires reboot due to software updates.\n\
         # TYPE kured_reboot_required gauge\nkured_reboot_required{{node=\"{node}\"}} {value}\n"
    )
}
