//! `maint sim`: many nights of a cluster in memory, with all that can go wrong. Asks no cluster and changes nothing.
//!
//! A seed is a night, whoever plays it: how many workers there are shows in nothing but the time.

mod tell;
mod work;

use clap::Args;
use maint_engine::client::install_crypto_provider;
use maint_sim::night::Shell;
use maint_sim::sweep::{self, Drawn};

use super::{Common, Exit, Failure, Output, terminal};
use work::{Work, Worked};

/// What the exit codes mean here.
const EXITS: &str = "\
Exit codes of sim:
  0    no invariant was broken, and every night ended well
  1    it could not be played
  5    a night broke an invariant or ended badly; it is told with its seed
  130  interrupted; what was played so far is told";

/// Arguments of `sim`.
#[derive(Debug, Args)]
#[command(after_long_help = EXITS)]
pub struct Sim {
    /// Nights, each of the next seed; one alone is told
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    nights: u64,
    /// The first seed
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Nights at a time; as many as there are cores, unless said
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Reach the cluster through the real client, HTTP and JSON: slower, and nothing is left out
    #[arg(long)]
    api_shell: bool,
}

impl Sim {
    /// Plays them: 0 if no night is bad, 5 if one is.
    ///
    /// # Errors
    /// If a runtime cannot be had, or nothing can be written.
    pub async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        install_crypto_provider();
        let last = self.seed.checked_add(self.nights - 1);
        let Some(last) = last else {
            return Err(Failure::usage("there are not so many seeds from this one on; choose a smaller --seed").into());
        };
        let shell = if self.api_shell { Shell::Api } else { Shell::Typed };
        let jobs = self.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
        let work = Work { shell, first: self.seed, last, jobs, tells: self.nights == 1 };
        let mut worked = work.run().await?;
        if !worked.interrupted {
            worked.shrink(shell).await?;
        }
        match common.output {
            Output::Json => terminal::json(&tell::document(&work, &worked))?,
            Output::Text => terminal::data(&tell::text(&work, &worked))?,
        }
        Ok(exit(&worked))
    }
}

fn exit(worked: &Worked) -> Exit {
    if !worked.tally.bad.is_empty() {
        Exit::PersonNeeded
    } else if worked.interrupted {
        Exit::Interrupted
    } else {
        Exit::Fine
    }
}

/// Plays one night; how long that took the thread that did it.
fn play(shell: Shell, seed: u64, tell: bool) -> std::io::Result<(sweep::Outcome, std::time::Duration)> {
    let watch = work::Stopwatch::start();
    let outcome = sweep::play(shell, &Drawn::of(seed), tell)?;
    Ok((outcome, watch.read()))
}
