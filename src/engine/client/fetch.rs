//! Plain GETs beside the API: a Prometheus behind us, an Alertmanager, kured's own metrics.

use std::future::Future;
use std::sync::OnceLock;

use reqwest::{Client, redirect};

/// Bytes of an answer that are read; one that is longer is none.
const BODY_LIMIT: usize = 4 * 1024 * 1024;

/// Fetches a URL. Nothing is retried, no redirect is followed, no proxy is used. How long it may take is the caller's.
pub trait Fetch: Send + Sync + 'static {
    /// Status and body.
    ///
    /// # Errors
    /// In words, where there was no whole answer.
    fn get(&self, url: &str) -> impl Future<Output = Result<(u16, Vec<u8>), String>> + Send;
}

/// Over HTTP.
#[derive(Debug, Default)]
pub struct HttpFetch(OnceLock<Client>);

impl HttpFetch {
    /// Built at the first use, so that what is missing for it costs that use and not the service.
    fn client(&self) -> Result<Client, String> {
        if let Some(client) = self.0.get() {
            return Ok(client.clone());
        }
        // Without a provider reqwest panics; a second one is refused, which is fine.
        crate::client::install_crypto_provider();
        let built = Client::builder()
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .user_agent(concat!("maint/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| format!("no HTTP client: {error}"))?;
        Ok(self.0.get_or_init(|| built).clone())
    }
}

impl Fetch for HttpFetch {
    async fn get(&self, url: &str) -> Result<(u16, Vec<u8>), String> {
        let mut response = self.client()?.get(url).send().await.map_err(|error| error.without_url().to_string())?;
        let status = response.status().as_u16();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| error.without_url().to_string())? {
            body.extend_from_slice(&chunk);
            if body.len() > BODY_LIMIT {
                return Err(format!("an answer of more than {} MiB", BODY_LIMIT / 1024 / 1024));
            }
        }
        Ok((status, body))
    }
}
