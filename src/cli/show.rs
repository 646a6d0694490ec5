//! `maint show NAME`: the whole story of a record.

use clap::Args;
use maint_core::report::{RunDocument, story};

use super::cluster::Session;
use super::{Common, Exit, Output, terminal};

/// Arguments of `show`.
#[derive(Debug, Args)]
pub struct Show {
    /// The record
    name: String,
}

impl Show {
    /// Runs it.
    ///
    /// # Errors
    /// If there is no such record, or it cannot be read.
    pub async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        let session = Session::open(common).await?;
        let record = session.record(&self.name).await?;
        match common.output {
            Output::Text => terminal::data(&story(&record, common.paint(), session.now()))?,
            Output::Json => terminal::json(&RunDocument::new(&record, session.now()))?,
        }
        Ok(Exit::Fine)
    }
}
