//! The listener: connections with limits, so that neither a slow sender nor a stop leaves one hanging.
//!
//! A connection that is accepted and never answered stops a kured for ever, a closed one costs it a tick. So whatever
//! cannot be served is closed at once, and everything is closed at the end.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower::ServiceExt as _;

use super::kured::Peer;
use crate::runtime::Env;

/// Connections at a time; kured keeps one open for each node that waits. What comes beyond them is closed at once.
const CONNECTIONS: usize = 4096;
/// From the end of one request to the head of the next, and for a head to arrive. Not a round figure: a kured whose
/// period it is would come just when its connection closes.
const HEAD_LIMIT: Duration = Duration::from_secs(47);
/// How long a connection may live.
const LIFE: Duration = Duration::from_secs(600);
/// What is under way at the end may take so long.
const STOP_LIMIT: Duration = Duration::from_secs(2);
/// Largest head of a request, in bytes.
const HEAD_BYTES: usize = 16 * 1024;
/// Wait after a connection that could not be accepted, such as for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers until the tasks are asked to stop.
///
/// # Errors
/// If the address cannot be listened on.
pub async fn listen(env: Env, address: SocketAddr, router: Router) -> std::io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    tracing::info!(address = %listener.local_addr()?, "Listening");
    accept(env, listener, router).await;
    Ok(())
}

/// Answers on a listener until the tasks are asked to stop.
pub async fn accept(env: Env, listener: TcpListener, router: Router) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let stopping = env.tasks.stopping();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stopping.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                env.clock.sleep(PAUSE).await;
                continue;
            }
        };
        // Without a permit the stream is dropped here, which closes it.
        let Ok(permit) = Arc::clone(&room).try_acquire_owned() else { continue };
        let serving = serve(env.clone(), stream, Peer(peer), router.clone());
        drop(env.tasks.spawn(async move {
            serving.await;
            drop(permit);
        }));
    }
}

async fn serve(env: Env, stream: TcpStream, peer: Peer, router: Router) {
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        request.extensions_mut().insert(peer);
        let router = router.clone();
        async move { Ok::<_, Infallible>(router.oneshot(request).await.unwrap_or_else(|never| match never {})) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let stopping = env.tasks.stopping();
    tokio::select! {
        biased;
        () = stopping.cancelled() => {}
        () = env.clock.sleep(LIFE) => {}
        _ = connection.as_mut() => return,
    }
    connection.as_mut().graceful_shutdown();
    // Cut off by whoever is at the other end, or by us: either way it is closed.
    let _ = env.clock.timeout(STOP_LIMIT, connection).await;
}
