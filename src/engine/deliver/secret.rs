//! Secrets from files and the environment. They are read anew at each use, so that a rotated one counts at once, and no
//! error and no `Debug` ever shows one.

use maint_core::config::SecretSource;
use secrecy::{ExposeSecret, SecretString};

/// A secret that cannot be had. The text names where it should be, never what is there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error("file {path}: {why}")]
    File {
        /// Its path.
        path: String,
        /// The kind of the error.
        why: String,
    },
    /// The variable is not set, or is no text.
    #[error("environment variable {0} is not set")]
    Environment(String),
    /// Nothing but blanks.
    #[error("{0} is empty")]
    Empty(String),
}

/// Reads a secret; blanks and line ends around it do not count.
pub(super) async fn read(source: &SecretSource) -> Result<SecretString, SecretError> {
    let (place, text) = match source {
        SecretSource::File(path) => {
            let text = tokio::fs::read_to_string(path).await;
            let why = |error: std::io::Error| SecretError::File { path: path.clone(), why: error.kind().to_string() };
            (format!("file {path}"), SecretString::from(text.map_err(why)?))
        }
        SecretSource::Environment(name) => {
            let text = std::env::var(name).map_err(|_| SecretError::Environment(name.clone()))?;
            (format!("environment variable {name}"), SecretString::from(text))
        }
    };
    let trimmed = text.expose_secret().trim();
    if trimmed.is_empty() {
        return Err(SecretError::Empty(place));
    }
    Ok(SecretString::from(trimmed.to_owned()))
}
