//! A live cluster for the verbs that read one.

use std::sync::Arc;

use maint_core::config::Settings;
use maint_core::facts::Facts;
use maint_engine::client::{AccessOptions, ClientError, install_crypto_provider};
use maint_engine::observe::LiveObserver;
use maint_engine::ports::{Observe, Wanted};
use maint_engine::runtime::Clock;

/// A connected cluster, and the clock that its ages are counted to.
pub struct Live {
    observer: LiveObserver,
    clock: Clock,
}

impl Live {
    /// Connects. The first thing that a verb does with a cluster: what cannot be asked at all is one error here.
    ///
    /// # Errors
    /// If there is no usable kubeconfig, or the server does not answer, cannot be verified or refuses us. The text
    /// ends with what helps.
    pub async fn connect(options: &AccessOptions, settings: &Settings) -> anyhow::Result<Self> {
        install_crypto_provider();
        let clock = Clock::real();
        let connected = LiveObserver::connect(options, Arc::new(settings.clone()), clock.clone()).await;
        let observer = connected.map_err(|cause| CannotAsk { cause })?;
        Ok(Self { observer, clock })
    }

    /// Reads what is wanted. What could not be read is failed in the facts, never an error.
    pub async fn facts(&self, wanted: &Wanted) -> Facts {
        self.observer.observe(wanted).await
    }

    /// The present time.
    #[must_use]
    pub fn now(&self) -> maint_core::jiff::Timestamp {
        self.clock.now()
    }

    /// The clock that ages are counted to, and that waits.
    #[must_use]
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The cluster, for people: context and server.
    #[must_use]
    pub fn source(&self) -> String {
        self.observer.source()
    }
}

/// The error that a person sees: what is wrong, then what helps.
#[derive(Debug, thiserror::Error)]
#[error("{cause}\n  what helps: {}", cause.remedy())]
pub struct CannotAsk {
    /// What is wrong.
    pub cause: ClientError,
}
