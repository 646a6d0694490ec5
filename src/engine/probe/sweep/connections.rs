//! Sweeps through the real client over TLS: which connection carries what.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::server::TlsStream;

use super::*;
use crate::client::Access;
use crate::observe::{Expected, Origin, ask_all};
use crate::testing::{TlsListener, env};

const NODES: usize = 150;
const SWEEPS: usize = 2;

/// What the server saw.
#[derive(Default)]
struct Seen {
    requests: AtomicUsize,
    /// Requests on a connection that had carried one before.
    on_used: AtomicUsize,
}

/// The head of a request; none at the end of the connection.
async fn head(stream: &mut TlsStream<tokio::net::TcpStream>) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

/// Answers one request as an API server does, the raw 404 of a kubelet without `Connection: close`. Whatever comes on the
/// same connection then is taken and never answered: the worst case of a close that is on its way.
async fn serve(mut stream: TlsStream<tokio::net::TcpStream>, seen: Arc<Seen>) {
    let Some(request) = head(&mut stream).await else { return };
    seen.requests.fetch_add(1, Ordering::Relaxed);
    let answer = if request.contains("/proxy/maint-probe ") {
        "HTTP/1.1 404 Not Found\r\nContent-Length: 19\r\nContent-Type: text/plain\r\n\r\n404 page not found\n"
    } else {
        "HTTP/1.1 200 OK\r\nAudit-Id: 1\r\nContent-Length: 2\r\nContent-Type: text/plain\r\n\r\nok"
    };
    if stream.write_all(answer.as_bytes()).await.is_ok() && head(&mut stream).await.is_some() {
        seen.on_used.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn no_probe_is_judged_on_a_connection_that_was_used_before() {
    let tls = TlsListener::bind(&["127.0.0.1"]).await;
    let mut config = kube::Config::new("https://elsewhere.example:6443".parse().expect("a URL"));
    config.root_cert = Some(vec![tls.root.clone()]);
    let expected =
        Expected { name: "s1".into(), node: None, address: Some(tls.address.clone()), origin: Origin::Label };
    let seen = Arc::new(Seen::default());
    let (env, _owner) = env();
    let (tasks, into) = (env.tasks.clone(), Arc::clone(&seen));
    env.tasks.spawn(async move {
        loop {
            if let Some(stream) = tls.accept().await {
                tasks.spawn(serve(stream, Arc::clone(&into)));
            }
        }
    });
    let access = Access::of(config).expect("verifies");
    let clock = Clock::real();
    let servers = ask_all(&access, &clock, vec![expected]).await;
    let nodes: Vec<String> = (0..NODES).map(|index| format!("node-{index}")).collect();
    let prober = Prober::new(clock);
    for sweep in 0..SWEEPS {
        let observed = prober.sweep(&servers, &nodes, None, 0).await;
        let matrix = observed.known().expect("swept");
        let odd: Vec<&Cell> = matrix.cells.iter().filter(|cell| cell.verdict != CellVerdict::Green).collect();
        assert!(odd.is_empty(), "sweep {sweep}: {} of {NODES} are not green, such as {:?}", odd.len(), odd[0]);
    }
    let on_used = seen.on_used.load(Ordering::Relaxed);
    // One question whether the server is ready; of each cell a dial and the kubelet's health.
    assert_eq!((seen.requests.load(Ordering::Relaxed), on_used), (1 + SWEEPS * NODES * 2, 0));
}
