//! `maint doctor`: is what maint depends on set up so that it works? Changes nothing.

use clap::Args;
use maint_core::doctor::{self, Input as Question};
use maint_core::report::{self, DoctorReport};

use super::input::{Input, machine_clock};
use super::{Common, Exit, Output, terminal};

/// Shown below `maint doctor --help`.
pub const HELP: &str = "\
Examples:
  maint doctor                          look at the present cluster
  maint doctor --from DUMP              look at a saved one (kubectl get daemonsets,pods,nodes,leases ... -A -o yaml)
  maint doctor -o json | jq '.checks[].findings[] | select(.status == \"block\")'

It ends with 0 if all is fine or only warns, 3 if something must be changed, 4 if something could not be judged.";

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct Doctor {
    #[command(flatten)]
    input: Input,
}

impl Doctor {
    /// Runs it.
    ///
    /// # Errors
    /// If there is nothing to look at.
    pub async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        let settings = common.settings()?;
        let gathered = self.input.gather(common, &settings, doctor::sources(), None).await?;
        let answers = doctor::examine(&Question { facts: &gathered.facts, settings: &settings, now: gathered.now });
        let report = DoctorReport::new(machine_clock(), gathered.now, gathered.origin, answers);
        match common.output {
            Output::Text => terminal::data(&report::doctor(&report, common.paint()))?,
            Output::Json => terminal::json(&report)?,
        }
        Ok(report.verdict.into())
    }
}
