//! `maint matrix`: asks every API server for every kubelet, by a fresh connection, and says which path is broken.

use std::time::Duration;

use clap::Args;
use maint_core::api::{SourceId, names};
use maint_core::config::Settings;
use maint_core::facts::Facts;
use maint_core::jiff::SignedDuration;
use maint_core::matrix::Matrix as Sweep;
use maint_core::report::Glyphs;
use maint_core::report::matrix::{MatrixReport, MatrixVerdict, Past, Style, Sweeps, changes, text};
use maint_core::state::{self, GreenMatrix};
use maint_engine::ports::Wanted;

use super::check::targets;
use super::interrupt::Interrupts;
use super::live::Live;
use super::{Common, Exit, Output, terminal, time};

/// Shown below `maint matrix --help`.
pub const HELP: &str = "\
Examples:
  maint matrix                          one sweep over every pair
  maint matrix --sweeps 3               three in a row: right after a boot tunnels come and go
  maint matrix --node worker2           only what has an end on worker2: its column, and its row if it is a server
  maint matrix --watch                  until Ctrl-C; prints when something changed
  maint matrix -o json | jq '.cells[] | select(.verdict != \"green\")'

It ends with 0 if every pair is whole, 3 if one is broken or an API server is not ready (also if it was so in one sweep
of several), 4 if something could not be judged and nothing is broken. --watch ends as its last sweep says; with -o json
it prints one document a line.";

/// Sweeps at most: with more, watch.
const MOST_SWEEPS: u64 = 100;

/// Arguments of `matrix`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct Matrix {
    /// Sweep so many times; a pair that was broken in one of them counts as broken
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=MOST_SWEEPS))]
    sweeps: u64,
    /// Sweep again and again until Ctrl-C, and print when something changed
    #[arg(long, conflicts_with = "sweeps")]
    watch: bool,
    /// Time between two sweeps, such as 30s; else run.sweep_interval_seconds
    #[arg(long, value_name = "DURATION", value_parser = time::length)]
    every: Option<SignedDuration>,
    /// Only the pairs that have an end on this node: its column, and its row if an API server runs there
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
}

impl Matrix {
    /// Runs the verb.
    ///
    /// # Errors
    /// If the cluster cannot be asked at all, or there is no such node.
    pub async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        let settings = common.settings()?;
        let live = Live::connect(&common.access(), &settings).await?;
        let every = match self.every {
            Some(every) => every.unsigned_abs(),
            None => Duration::from_secs(settings.run.sweep_interval_seconds.max(1).unsigned_abs()),
        };
        let asked = Asked { verb: self, live: &live, settings: &settings, common, every };
        if self.watch {
            asked.watch(Interrupts::listen()?).await
        } else {
            asked.some_sweeps(Interrupts::listen()?).await
        }
    }
}

struct Asked<'a> {
    verb: &'a Matrix,
    live: &'a Live,
    settings: &'a Settings,
    common: &'a Common,
    every: Duration,
}

impl Asked<'_> {
    async fn sweep(&self) -> anyhow::Result<Facts> {
        let sources = [SourceId::ApiServers, SourceId::Matrix].into_iter().collect();
        let target = self.verb.node.clone();
        let facts = self.live.facts(&Wanted { sources, target, every_pair: false }).await;
        // A name that no node has is a mistake, and not a matrix without a broken pair.
        targets(&facts, self.verb.node.as_deref())?;
        Ok(facts)
    }

    fn report(&self, facts: &Facts, earlier: &[Sweep]) -> MatrixReport {
        let remembered = state::data_of(facts, self.settings).and_then(|data| data.get(names::STATE_MATRIX_KEY));
        let last_green = remembered.and_then(|text| GreenMatrix::parse(text).ok());
        let sweeps = Sweeps {
            api_servers: &facts.api_servers,
            matrix: &facts.matrix,
            earlier,
            nodes: &facts.nodes,
            last_green: last_green.as_ref(),
            only: self.verb.node.as_deref(),
        };
        MatrixReport::new(&sweeps, self.live.source(), self.live.now())
    }

    /// A sweep; none if somebody interrupts it.
    async fn sweep_unless(&self, interrupts: &mut Interrupts) -> anyhow::Result<Option<Facts>> {
        tokio::select! {
            biased;
            () = interrupts.next() => Ok(None),
            facts = self.sweep() => facts.map(Some),
        }
    }

    /// So many sweeps, and one answer over all of them. An interrupt ends the sweeping, and what was asked is told.
    async fn some_sweeps(&self, mut interrupts: Interrupts) -> anyhow::Result<Exit> {
        let (mut earlier, mut past): (Vec<Sweep>, Vec<Past>) = (Vec::new(), Vec::new());
        let Some(mut facts) = self.sweep_unless(&mut interrupts).await? else { return Ok(Exit::Interrupted) };
        let mut interrupted = false;
        for number in 1..self.verb.sweeps {
            terminal::talk(&format!("sweep {number} of {}: {}\n", self.verb.sweeps, in_short(&facts)))?;
            let next =
                if self.pause(&mut interrupts).await { None } else { self.sweep_unless(&mut interrupts).await? };
            let Some(next) = next else {
                terminal::talk(&format!("interrupted after {number} of {} sweeps\n", self.verb.sweeps))?;
                interrupted = true;
                break;
            };
            past.push(Past::from(&self.report(&facts, &[])));
            earlier.extend(facts.matrix.known().cloned());
            facts = next;
        }
        let report = self.report(&facts, &earlier).counting(&past);
        self.print(&report)?;
        let exit = exit_of(&report);
        // Fewer sweeps than were asked for prove less: what is broken is broken all the same.
        Ok(if interrupted && exit != Exit::Blocked { Exit::Interrupted } else { exit })
    }

    /// Sweeps until somebody interrupts, and ends as the last sweep says.
    async fn watch(&self, mut interrupts: Interrupts) -> anyhow::Result<Exit> {
        let mut before: Option<MatrixReport> = None;
        while let Some(facts) = self.sweep_unless(&mut interrupts).await? {
            let report = self.report(&facts, &[]);
            let changed = before.as_ref().map(|before| changes(before, &report));
            if changed.as_ref().is_none_or(|changed| !changed.is_empty()) {
                self.tell(&report, changed.unwrap_or_default())?;
            }
            before = Some(report);
            if self.pause(&mut interrupts).await {
                break;
            }
        }
        Ok(before.as_ref().map_or(Exit::Interrupted, exit_of))
    }

    /// Waits until the next sweep is due; true if somebody interrupts.
    async fn pause(&self, interrupts: &mut Interrupts) -> bool {
        tokio::select! {
            biased;
            () = interrupts.next() => true,
            () = self.live.clock().sleep(self.every) => false,
        }
    }

    /// One sweep of a watch.
    fn tell(&self, report: &MatrixReport, changed: Vec<String>) -> anyhow::Result<()> {
        if self.common.output == Output::Json {
            return Ok(terminal::data(&format!("{}\n", serde_json::to_string(report)?))?);
        }
        if !changed.is_empty() {
            let at = report.generated_at.strftime("%Y-%m-%dT%H:%M:%SZ");
            let lines: Vec<String> = changed.into_iter().map(|line| format!("{at} {line}")).collect();
            terminal::data(&format!("\n{}\n", lines.join("\n")))?;
        }
        self.print(report)
    }

    fn print(&self, report: &MatrixReport) -> anyhow::Result<()> {
        let paint = self.common.paint();
        match self.common.output {
            Output::Text => {
                let style = Style { ascii: paint.glyphs == Glyphs::Ascii, colour: paint.colour };
                Ok(terminal::data(&text(report, style))?)
            }
            Output::Json => terminal::json(report),
        }
    }
}

fn exit_of(report: &MatrixReport) -> Exit {
    match report.verdict {
        MatrixVerdict::Whole => Exit::Fine,
        MatrixVerdict::Broken => Exit::Blocked,
        MatrixVerdict::Unknown => Exit::Unknown,
    }
}

/// What a sweep said, for the talk between two.
fn in_short(facts: &Facts) -> String {
    use maint_core::matrix::CellVerdict;
    let Some(sweep) = facts.matrix.known() else { return "not known".to_owned() };
    let green = sweep.cells.iter().filter(|cell| cell.verdict == CellVerdict::Green).count();
    format!("{green} of {} pairs whole", sweep.cells.len())
}
