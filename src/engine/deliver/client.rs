//! The HTTP client of messages: built when the first one is sent, so that a missing CA bundle costs messages and not the
//! service.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::{Client, redirect};

/// How long one try may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

static CLIENT: OnceLock<Client> = OnceLock::new();

/// The one client of all receivers, with connections of its own. A failure is not kept: the next try builds anew.
pub(super) fn client() -> Result<Client, String> {
    if let Some(client) = CLIENT.get() {
        return Ok(client.clone());
    }
    // Without a provider reqwest panics. The program installs one at its start; a second one is refused, which is fine.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let built = Client::builder()
        .timeout(TIMEOUT)
        .redirect(redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .user_agent(concat!("maint/", env!("CARGO_PKG_VERSION")))
        .build();
    match built {
        Ok(client) => Ok(CLIENT.get_or_init(|| client).clone()),
        Err(error) => Err(format!("no HTTPS client: {}", causes(&error))),
    }
}

/// An error and its causes. It may name the URL or a part of it: callers redact it.
pub(super) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}
