//! A way into the night for people: each API server at an address of its own, with a certificate that names it.
//!
//! The addresses are loopback ones of this machine (127.0.0.0/8 is all loopback on Linux). The nodes of the cluster have
//! them as their InternalIP, so that `maint matrix` finds each API server where it says it is, and verifies it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use futures_util::future::try_join_all;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

use crate::store::http::Cluster;
use crate::store::serve;

/// Where API servers listen, as maint expects it without a configuration.
const PORT: u16 = 6443;
/// The second byte of the addresses that are tried.
const NETS: std::ops::RangeInclusive<u8> = 77..=86;
/// API servers.
const SERVERS: u8 = 3;

/// The door could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// No address.
    #[error(
        "no three loopback addresses from 127.77.0.1 to 127.86.0.3 are free: {0}\n  what helps: without --serve the demo \
         needs none; Linux has them, other systems may not"
    )]
    Listen(io::Error),
    /// No certificate.
    #[error("no certificate for the API servers can be made: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The certificate cannot be served.
    #[error("the certificate of the API servers cannot be served: {0}")]
    Tls(#[from] rustls::Error),
}

/// Listeners, and who is behind them.
pub struct Door {
    listeners: Vec<std::net::TcpListener>,
    addresses: Vec<SocketAddr>,
    acceptor: TlsAcceptor,
    authority: String,
}

impl Door {
    /// Takes the addresses and makes the certificates; nobody is answered yet.
    ///
    /// # Errors
    /// If there are no addresses to be had, or no certificates.
    pub fn new() -> Result<Self, DoorError> {
        let listeners = listen().map_err(DoorError::Listen)?;
        let addresses: Vec<SocketAddr> = listeners
            .iter()
            .map(std::net::TcpListener::local_addr)
            .collect::<io::Result<_>>()
            .map_err(DoorError::Listen)?;
        let names = addresses.iter().map(|address| address.ip().to_string()).collect();
        let (acceptor, authority) = certified(names)?;
        Ok(Self { listeners, addresses, acceptor, authority })
    }

    /// The addresses of the API servers, in their order.
    #[must_use]
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.addresses.iter().map(SocketAddr::ip).collect()
    }

    /// Their port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.addresses.first().map_or(PORT, SocketAddr::port)
    }

    /// The certificate of the authority that all their certificates are from, PEM.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// A kubeconfig that leads to the first of them; the authority's certificate is in a file beside it.
    #[must_use]
    pub fn kubeconfig(&self, authority_file: &str) -> String {
        // Nobody looks at the token; without one kubectl asks for a name and a password.
        let server = self.addresses.first().map(ToString::to_string).unwrap_or_default();
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: maint-demo\nclusters:\n- name: maint-demo\n  cluster:\n    \
             server: https://{server}\n    certificate-authority: {authority_file}\nusers:\n- name: person\n  user: {{token: person}}\n\
             contexts:\n- name: maint-demo\n  context:\n    cluster: maint-demo\n    user: person\n"
        )
    }

    /// Answers whoever comes, until the future is dropped.
    ///
    /// # Errors
    /// If a listener cannot accept any more.
    pub(super) async fn open(&self, cluster: &Arc<Cluster>) -> io::Result<()> {
        let mut servers = Vec::new();
        for (index, listener) in self.listeners.iter().enumerate() {
            let listener = listener.try_clone()?;
            listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(listener)?;
            servers.push(serve::serve_tls(listener, cluster.service(index, "person"), self.acceptor.clone()));
        }
        try_join_all(servers).await.map(drop)
    }
}

/// Three neighbouring addresses, with the usual port where that is free.
fn listen() -> io::Result<Vec<std::net::TcpListener>> {
    let at = |net: u8, port: u16| -> io::Result<Vec<std::net::TcpListener>> {
        let first = std::net::TcpListener::bind((Ipv4Addr::new(127, net, 0, 1), port))?;
        let port = first.local_addr()?.port();
        let rest = (2..=SERVERS).map(|host| std::net::TcpListener::bind((Ipv4Addr::new(127, net, 0, host), port)));
        std::iter::once(Ok(first)).chain(rest).collect()
    };
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for (net, port) in NETS.map(|net| (net, PORT)).chain(NETS.map(|net| (net, 0))) {
        match at(net, port) {
            Ok(found) => return Ok(found),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A certificate for these addresses, and its authority's.
fn certified(names: Vec<String>) -> Result<(TlsAcceptor, String), DoorError> {
    let authority_key = KeyPair::generate()?;
    let mut authority = CertificateParams::new(Vec::<String>::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = authority.self_signed(&authority_key)?;
    let issuer = Issuer::from_params(&authority, &authority_key);
    let key = KeyPair::generate()?;
    let leaf = CertificateParams::new(names)?.signed_by(&key, &issuer)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)?;
    Ok((Arc::new(config).into(), root.pem()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_door_has_addresses_of_its_own() {
        let (one, two) = (Door::new().expect("a door"), Door::new().expect("another"));
        assert_eq!(one.addresses().len(), usize::from(SERVERS));
        assert!(one.addresses().iter().all(|address| address.is_loopback() && !two.addresses().contains(address)));
        let kubeconfig = one.kubeconfig("/tmp/x/ca.crt");
        assert!(kubeconfig.contains(&format!("server: https://{}:{}\n", one.addresses()[0], one.port())));
        assert!(one.authority().starts_with("-----BEGIN CERTIFICATE-----"));
    }
}
