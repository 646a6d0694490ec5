//! `maint history`: the last records, newest first.

use clap::Args;
use maint_core::report;

use super::cluster::{Session, tell_left_out};
use super::{Common, Exit, Output, terminal};

/// Arguments of `history`.
#[derive(Debug, Args)]
pub struct History {
    /// Records of this node only; it need not exist any more
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Records shown
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    limit: usize,
}

impl History {
    /// Runs it: 0, 4 if a record was left out.
    ///
    /// # Errors
    /// If the records cannot be read.
    pub async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        let session = Session::open(common).await?;
        let (records, odd) = session.all().await?;
        let history = report::History::new(&records, self.node.as_deref(), self.limit, session.now());
        match common.output {
            Output::Text => terminal::data(&report::history(&history))?,
            Output::Json => terminal::json(&history)?,
        }
        tell_left_out(&odd)?;
        Ok(if odd.is_empty() { Exit::Fine } else { Exit::Unknown })
    }
}
