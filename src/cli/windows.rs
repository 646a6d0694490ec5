//! `maint windows`: whether unattended runs may start now, and when next. The configuration is all that it reads.

use clap::Args;
use maint_core::jiff::Timestamp;
use maint_core::report::{self, Clock, WindowsReport};

use super::{Common, Exit, Output, terminal, time};

/// Arguments of `windows`.
#[derive(Debug, Args)]
pub struct Windows {
    /// Judge this instant instead of now, such as 2026-12-05T01:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time::instant)]
    at: Option<Timestamp>,
}

impl Windows {
    /// Runs it: 0, open or closed.
    ///
    /// # Errors
    /// If the configuration cannot be read.
    pub fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        let settings = common.settings()?;
        let (now, clock) = self.at.map_or_else(|| (machine_clock(), Clock::Machine), |at| (at, Clock::Given));
        let report = WindowsReport::new(&settings, now, clock);
        match common.output {
            Output::Text => terminal::data(&report::windows(&report, common.paint()))?,
            Output::Json => terminal::json(&report)?,
        }
        Ok(Exit::Fine)
    }
}

/// In whole seconds, as every time that maint tells.
#[expect(clippy::disallowed_methods, reason = "a person asks what holds now on his machine; nothing is done by it")]
fn machine_clock() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}
