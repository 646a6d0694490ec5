//! `maint matrix`: asks every API server for every kubelet, by a fresh connection, and says which path is broken.

use std::process::ExitCode;

use maint_core::api::SourceId;
use maint_core::config::Settings;
use maint_core::matrix::Matrix;
use maint_core::report::matrix::{MatrixReport, Style, Suspect, text};
use maint_engine::client::AccessOptions;
use maint_engine::ports::Wanted;

use super::live::Live;

/// What the command line said.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which cluster.
    pub access: AccessOptions,
    /// The settings: expected API servers, their port.
    pub settings: Settings,
    /// JSON instead of text.
    pub json: bool,
    /// Marks and colours of the text.
    pub style: Style,
}

/// Runs the verb: 0 whole, 3 broken, 4 unknown. `suspects` names what the broken cells have in common.
///
/// # Errors
/// If the cluster cannot be asked at all.
pub async fn run(options: &Options, suspects: impl Fn(&Matrix) -> Vec<Suspect>) -> anyhow::Result<ExitCode> {
    let live = Live::connect(&options.access, &options.settings).await?;
    let sources = [SourceId::ApiServers, SourceId::Matrix].into_iter().collect();
    let facts = live.facts(&Wanted { sources, target: None }).await;
    let suspects = facts.matrix.known().map(suspects).unwrap_or_default();
    let report = MatrixReport::new(&facts.api_servers, &facts.matrix, suspects, live.source(), live.now());
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", text(&report, options.style));
    }
    Ok(ExitCode::from(report.verdict.exit_code()))
}
