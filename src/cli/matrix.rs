//! `maint matrix`: asks every API server for every kubelet, by a fresh connection, and says which path is broken.

use maint_core::api::SourceId;
use maint_core::report::Glyphs;
use maint_core::report::matrix::{MatrixReport, MatrixVerdict, Style, Suspect, text};
use maint_engine::ports::Wanted;

use super::live::Live;
use super::{Common, Exit, Output, terminal};

/// Runs the verb: 0 whole, 3 broken, 4 unknown.
///
/// # Errors
/// If the cluster cannot be asked at all.
pub async fn run(common: &Common) -> anyhow::Result<Exit> {
    let settings = common.settings()?;
    let live = Live::connect(&common.access(), &settings).await?;
    let sources = [SourceId::ApiServers, SourceId::Matrix].into_iter().collect();
    let facts = live.facts(&Wanted { sources, target: None, every_pair: false }).await;
    let suspects = facts.matrix.known().map(Suspect::of).unwrap_or_default();
    let report = MatrixReport::new(&facts.api_servers, &facts.matrix, suspects, live.source(), live.now());
    let paint = common.paint();
    match common.output {
        Output::Text => {
            terminal::data(&text(&report, Style { ascii: paint.glyphs == Glyphs::Ascii, colour: paint.colour }))?;
        }
        Output::Json => terminal::json(&report)?,
    }
    Ok(match report.verdict {
        MatrixVerdict::Whole => Exit::Fine,
        MatrixVerdict::Broken => Exit::Blocked,
        MatrixVerdict::Unknown => Exit::Unknown,
    })
}
