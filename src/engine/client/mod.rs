//! Clients of the Kubernetes API: one for calls, and one for each API server's own address, which makes a connection
//! of its own for each request.
//!
//! Neither retries by itself (kube's default would wait minutes on a 429 or 503), both have short limits, and both
//! verify certificates always.

mod access;
mod error;
mod exchange;
mod failover;
mod fetch;
mod transport;
mod unpooled;

pub use access::{Access, AccessOptions, FALLBACK_SERVER_NAME, connect, connect_at};
pub use error::ClientError;
pub use exchange::{Exchange, get};
pub use failover::{Failover, Rotation, Turn};
pub use fetch::{Fetch, HttpFetch};
pub use transport::{Failure, FailureClass, NoToken, classify};

/// Installs the one TLS provider of the workspace. Clients cannot be built before; more than once does no harm.
pub fn install_crypto_provider() {
    // The only error is that one is installed already, and it is this one: no other is compiled in.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
