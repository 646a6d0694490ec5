//! Ctrl-C and SIGTERM: they end the watching, never the run.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for both from its making on, so that none is lost between two looks.
pub struct Interrupts(Option<(Signal, Signal)>);

impl Interrupts {
    /// Begins to listen.
    ///
    /// # Errors
    /// If the system does not let us.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self(Some((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))))
    }

    /// Hears nothing.
    #[cfg(test)]
    pub const fn none() -> Self {
        Self(None)
    }

    /// Waits for one of them.
    pub async fn next(&mut self) {
        let Some((interrupt, terminate)) = &mut self.0 else { return std::future::pending().await };
        tokio::select! {
            biased;
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}
