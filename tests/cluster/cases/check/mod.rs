//! The real `maint check` and `maint matrix` on the real cluster: healthy, one thing broken at a time, and one thing that
//! cannot be read.

mod blocked;
mod clear;
mod dump;
mod post_check;
mod unknown;
mod usage;

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Case;
use crate::harness::Cluster;
use crate::harness::wait::Limit;

/// The longest is a hanging list beside a hanging path: 15 s and 12 s.
const MAINT: Limit = Limit::seconds("maint", 60);

/// Rows that held.
static ROWS: AtomicUsize = AtomicUsize::new(0);

/// How many rows of all tables here held so far.
pub fn rows() -> usize {
    ROWS.load(Ordering::Relaxed)
}

/// Counts a row that held.
fn row_done() {
    ROWS.fetch_add(1, Ordering::Relaxed);
}

pub fn cases() -> Vec<Case> {
    [clear::cases(), blocked::cases(), unknown::cases(), dump::cases(), post_check::cases(), usage::cases()]
        .into_iter()
        .flatten()
        .collect()
}

/// What a run of maint did.
#[derive(Debug)]
struct Run {
    exit: i32,
    stdout: String,
    stderr: String,
}

/// Runs maint in the hub, with nothing of this machine in its environment.
async fn maint(cluster: &Cluster, kubeconfig: &Path, arguments: &[&str]) -> Result<Run> {
    let mut command = Command::new(cluster.maint_binary()?);
    command.env_clear().env("LANG", "C.UTF-8").env("KUBECONFIG", kubeconfig).args(arguments);
    let output = cluster.run_in_hub(command, MAINT).await?;
    Ok(Run {
        exit: output.status.code().with_context(|| format!("{output:?}"))?,
        stdout: String::from_utf8(output.stdout)?,
        stderr: String::from_utf8(output.stderr)?,
    })
}

/// What `maint check` answered, for programs and for people.
#[derive(Debug)]
struct Answer {
    exit: i32,
    report: Value,
    text: String,
}

/// What a gate is expected to say.
#[derive(Clone, Copy)]
struct Wanted {
    gate: &'static str,
    reason: &'static str,
    object: &'static str,
    field: &'static str,
    /// The evidence's value; only its beginning where it ends with `...`.
    value: &'static str,
}

/// Runs `maint check` twice at once, with `-o json` and for people. Both must say the same.
async fn check(cluster: &Cluster, kubeconfig: &Path, arguments: &[&str]) -> Result<Answer> {
    let arguments = [&["check"], arguments].concat();
    let documented = [arguments.as_slice(), &["-o", "json"]].concat();
    let (text, json) =
        tokio::try_join!(maint(cluster, kubeconfig, &arguments), maint(cluster, kubeconfig, &documented))?;
    ensure!(text.exit == json.exit, "exit {} for people, {} for programs: {text:?}", text.exit, json.exit);
    ensure!(text.stderr.is_empty() && json.stderr.is_empty(), "talk: {} {}", text.stderr, json.stderr);
    let report = serde_json::from_str(&json.stdout).with_context(|| format!("no report: {json:?}"))?;
    Ok(Answer { exit: text.exit, report, text: text.stdout })
}

impl Answer {
    /// The findings of the first (or only) node.
    fn findings(&self) -> &[Value] {
        self.report["nodes"][0]["findings"].as_array().map_or(&[], Vec::as_slice)
    }

    fn finding(&self, gate: &str) -> Result<&Value> {
        self.findings()
            .iter()
            .find(|finding| finding["id"] == gate)
            .with_context(|| format!("no gate {gate}: {self:?}"))
    }

    /// The gates with this status.
    fn gates(&self, status: &str) -> Vec<&str> {
        let of = self.findings().iter().filter(|finding| finding["status"] == status);
        of.filter_map(|finding| finding["id"].as_str()).collect()
    }

    /// Exactly the wanted gates have this status, no gate has the other one that stops, and each says its reason and
    /// shows its evidence, to programs and to people.
    fn expect(&self, exit: i32, status: &str, other: &str, wanted: &[Wanted]) -> Result<()> {
        self.stops(exit, other)?;
        let mut gates: Vec<_> = wanted.iter().map(|wanted| wanted.gate).collect();
        gates.dedup();
        ensure!(self.gates(status) == gates, "{status}: {:?}, wanted {gates:?}:\n{}", self.gates(status), self.text);
        wanted.iter().try_for_each(|wanted| self.shows(wanted))
    }

    /// The exit code, and that no gate has this status.
    fn stops(&self, exit: i32, never: &str) -> Result<()> {
        ensure!(self.exit == exit, "exit {}, wanted {exit}:\n{}", self.exit, self.text);
        ensure!(self.gates(never).is_empty(), "{never}: {:?}:\n{}", self.gates(never), self.text);
        Ok(())
    }

    fn shows(&self, wanted: &Wanted) -> Result<()> {
        let Wanted { gate, reason, object, field, value } = *wanted;
        let finding = self.finding(gate)?;
        ensure!(finding["reason"] == reason, "{gate} says {}, wanted {reason}:\n{}", finding["reason"], self.text);
        let fits = |seen: &str| value.strip_suffix("...").map_or(seen == value, |start| seen.starts_with(start));
        let shown = finding["evidence"].as_array().into_iter().flatten().any(|evidence| {
            evidence["object"] == object && evidence["field"] == field && evidence["value"].as_str().is_some_and(fits)
        });
        ensure!(shown, "{gate} lacks {object}: {field} is {value}: {}", finding["evidence"]);
        ensure!(self.text.contains(&format!("{reason}: ")), "people are not told {reason}:\n{}", self.text);
        ensure!(self.text.contains(&format!("maint explain {reason}")), "no help for {reason}:\n{}", self.text);
        Ok(())
    }
}
