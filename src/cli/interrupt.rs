//! Ctrl-C and SIGTERM: they end the watching, never the run.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for both from its making on, so that none is lost between two looks.
pub struct Interrupts {
    signals: Option<(Signal, Signal)>,
    /// One that has come already.
    #[cfg(test)]
    heard: bool,
}

impl Interrupts {
    /// Begins to listen.
    ///
    /// # Errors
    /// If the system does not let us.
    pub fn listen() -> std::io::Result<Self> {
        let signals = Some((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?));
        Ok(Self {
            signals,
            #[cfg(test)]
            heard: false,
        })
    }

    /// Hears nothing.
    #[cfg(test)]
    pub const fn none() -> Self {
        Self { signals: None, heard: false }
    }

    /// Hears one at once, and no other.
    #[cfg(test)]
    pub const fn one() -> Self {
        Self { signals: None, heard: true }
    }

    /// Waits for one of them.
    pub async fn next(&mut self) {
        #[cfg(test)]
        if std::mem::take(&mut self.heard) {
            return;
        }
        let Some((interrupt, terminate)) = &mut self.signals else { return std::future::pending().await };
        tokio::select! {
            biased;
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}
