//! `maint config`: check a file, show what is in force.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Subcommand;
use maint_core::api::names;
use maint_core::config::Settings;
use serde_json::json;

use super::{Common, Exit, Failure, Output, terminal};

/// Verbs of `config`.
#[derive(Debug, Subcommand)]
pub enum Config {
    /// Check a configuration file and show all that is wrong with it
    Check {
        /// The file; else the one of --config
        file: Option<PathBuf>,
    },
    /// Show the settings in force, as TOML
    Show,
}

impl Config {
    /// Runs one of them.
    pub fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        match self {
            Self::Check { file } => {
                let Some(path) = file.as_ref().or(common.config.as_ref()) else {
                    return Err(Failure::usage("no file to check: name one, or set --config or MAINT_CONFIG").into());
                };
                read(path, common)?;
                match common.output {
                    Output::Text => terminal::data(&format!("{} is fine\n", path.display()))?,
                    Output::Json => {
                        let (api_version, file) = (names::OUTPUT_API_VERSION, path.display().to_string());
                        terminal::json(
                            &json!({"apiVersion": api_version, "kind": "ConfigCheck", "file": file, "valid": true}),
                        )?;
                    }
                }
            }
            Self::Show => {
                let settings = common.settings()?;
                match common.output {
                    Output::Text => terminal::data(&settings.to_toml()?)?,
                    Output::Json => {
                        let api_version = names::OUTPUT_API_VERSION;
                        terminal::json(&json!({"apiVersion": api_version, "kind": "Settings", "settings": settings}))?;
                    }
                }
            }
        }
        Ok(Exit::Fine)
    }
}

/// Reads a configuration file.
pub fn read(path: &Path, common: &Common) -> anyhow::Result<Settings> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    Settings::parse(&text, &path.display().to_string())
        .map_err(|errors| anyhow::anyhow!("{}", errors.render(common.colours_talk())))
}
