//! A client that makes a connection of its own for each request.
//!
//! The raw answer of a kubelet to a fresh dial ends the connection to the API server without saying so beforehand
//! (`Connection: close` is missing), so the next request over a pooled one fails now and then: a race that looks like a
//! broken path. kube's own stack always pools.
//!
//! What costs (files, keys, trust) is read once for the client, not for each request; later handshakes with the same
//! server resume the first one's TLS session.

use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::{Body, ConfigExt as _};
use tower::{BoxError, ServiceBuilder};

/// The client of a configuration, with kube's own layers and the configuration's limits. Proxy and retries of the
/// configuration are not taken over: both would stand between us and the one server.
///
/// # Errors
/// If certificates, keys or credentials cannot be used. Nothing is sent.
pub(super) fn unpooled(config: &Config) -> kube::Result<kube::Client> {
    let mut connector = TimeoutConnector::new(config.rustls_https_connector()?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let http = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build::<_, Body>(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}
