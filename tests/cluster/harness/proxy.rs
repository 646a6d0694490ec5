//! The tunnels: one HTTP CONNECT proxy per API server behind its egress selector, with a state per node.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;

use super::net::{NODES, Runtime, address};

const REFUSED: &[u8] = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n";
const ACCEPTED: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
const DIAL: Duration = Duration::from_secs(5);

/// What happens between one API server and one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tunnel {
    /// All goes through.
    Pass,
    /// New connections are refused, live ones are dropped.
    Cut,
    /// New connections are refused, live ones stay: a plain request over one of them still says that all is well.
    CutKeepingLive,
    /// Connections are taken and never answered, live ones are dropped.
    Hang,
}

/// The proxy of one API server.
pub struct Proxy {
    socket: PathBuf,
    targets: Arc<[Target]>,
}

struct Target {
    state: watch::Sender<Tunnel>,
    connects: AtomicU64,
}

impl Proxy {
    /// Listens on a unix socket, which spares it TLS; dials from the node's namespace.
    pub fn start(runtime: &Runtime, socket: &Path) -> Result<Self> {
        let targets: Arc<[Target]> =
            (0..NODES).map(|_| Target { state: watch::channel(Tunnel::Pass).0, connects: AtomicU64::new(0) }).collect();
        let (path, shared) = (socket.to_path_buf(), targets.clone());
        let listener = runtime.run(async move { UnixListener::bind(&path) })?;
        let listener = listener.with_context(|| format!("cannot listen on {}", socket.display()))?;
        runtime.handle().spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let targets = shared.clone();
                tokio::spawn(async move {
                    // An API server that hangs up in the middle is no fault of the proxy.
                    serve(stream, &targets).await.ok();
                });
            }
        });
        Ok(Self { socket: socket.to_path_buf(), targets })
    }

    pub fn set(&self, node: usize, state: Tunnel) {
        self.targets[node - 1].state.send_replace(state);
    }

    pub fn state(&self, node: usize) -> Tunnel {
        *self.targets[node - 1].state.borrow()
    }

    /// How many CONNECTs for this node came in so far.
    pub fn connects(&self, node: usize) -> u64 {
        self.targets[node - 1].connects.load(Ordering::Relaxed)
    }

    /// The text of the egress selector's configuration file.
    pub fn egress_configuration(&self) -> String {
        format!(
            "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n- name: cluster\n  \
             connection:\n    proxyProtocol: HTTPConnect\n    transport: {{uds: {{udsName: {}}}}}\n",
            self.socket.display()
        )
    }
}

async fn serve(mut client: UnixStream, targets: &[Target]) -> Result<()> {
    let Some(destination) = read_connect(&mut client).await? else { return Ok(()) };
    let index = (1..=NODES).find(|i| destination.ip() == address(*i)).map(|i| i - 1);
    let Some(target) = index.and_then(|index| targets.get(index)) else {
        return Ok(client.write_all(REFUSED).await?);
    };
    target.connects.fetch_add(1, Ordering::Relaxed);
    let mut state = target.state.subscribe();
    let now = *state.borrow_and_update();
    match now {
        Tunnel::Cut | Tunnel::CutKeepingLive => return Ok(client.write_all(REFUSED).await?),
        Tunnel::Hang => {
            // Held until the state changes or the API server gives up, never answered.
            tokio::select! {
                _ = state.wait_for(|state| *state != Tunnel::Hang) => {}
                _ = client.read_u8() => {}
            }
            return Ok(());
        }
        Tunnel::Pass => {}
    }
    let Ok(Ok(mut kubelet)) = tokio::time::timeout(DIAL, TcpStream::connect(destination)).await else {
        return Ok(client.write_all(REFUSED).await?);
    };
    client.write_all(ACCEPTED).await?;
    tokio::select! {
        _ = state.wait_for(|state| matches!(state, Tunnel::Cut | Tunnel::Hang)) => {}
        _ = tokio::io::copy_bidirectional(&mut client, &mut kubelet) => {}
    }
    Ok(())
}

/// Reads `CONNECT 10.77.0.3:10250 HTTP/1.1` up to the blank line; nothing of the tunnel's content follows before our answer.
async fn read_connect(client: &mut UnixStream) -> Result<Option<SocketAddr>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > 8192 {
            return Ok(None);
        }
        head.push(client.read_u8().await?);
    }
    let text = String::from_utf8_lossy(&head);
    let destination = text.strip_prefix("CONNECT ").and_then(|rest| rest.split_whitespace().next());
    Ok(destination.and_then(|destination| destination.parse().ok()))
}
