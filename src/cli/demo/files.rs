//! What somebody needs who looks at the demo's cluster from another terminal.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use maint_core::config::Settings;
use maint_sim::demo::door::Door;
use tempfile::TempDir;

/// A folder that is gone with this value: a kubeconfig, the certificate it names, and the service's configuration.
pub struct Files {
    folder: TempDir,
}

impl Files {
    /// Writes them.
    ///
    /// # Errors
    /// If there is no place for them.
    pub fn write(door: &Door, settings: &Settings) -> anyhow::Result<Self> {
        let folder =
            tempfile::Builder::new().prefix("maint-demo-").tempdir().context("no folder for the kubeconfig")?;
        let files = Self { folder };
        let authority = files.path("ca.crt");
        put(&authority, door.authority())?;
        put(&files.kubeconfig(), &door.kubeconfig(&authority.display().to_string()))?;
        put(&files.config(), &settings.to_toml()?)?;
        Ok(files)
    }

    /// The kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.path("kubeconfig")
    }

    /// The configuration of the service: its windows, its limits.
    pub fn config(&self) -> PathBuf {
        self.path("maint.toml")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn put(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}
