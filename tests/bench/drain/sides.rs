//! The two who drain, each as a person starts it.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};

use super::cpu::Spent;
use super::limit::Seen;
use super::watch::{self, Observer};
use super::workload::Workload;
use crate::harness::Cluster;
use crate::harness::audit::{Entry, Log};
use crate::harness::maint::{Maint, REPLICAS};
use crate::harness::wait::Limit;

/// kubectl needs 100 s for 250 pods that need 30 s each, and more under budgets.
const DRAIN: Limit = Limit::seconds("drain", 1500);
/// The side is done: whatever it evicted has gone, but for what the watch still has in hand.
const SEEN: Limit = Limit::seconds("seen-by-the-watch", 10);
/// Deadlines of maint's run: the drain may take as long as kubectl's, and what follows is kept short.
const RUN: [(&str, u64); 2] = [("drain_timeout_seconds", 1500), ("settle_for_seconds", 1)];
/// Seconds that the bench's watch may be behind that of whoever drains.
const WATCH_DELAY: f64 = 0.25;
/// A scope that drains and leaves the machine alone.
const SCOPE: &str = "node-work";

/// Who drains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Kubectl,
    Maint,
}

/// One drain, by whomever. Instants are seconds since the epoch.
pub struct Drained {
    /// The program was started.
    pub started: f64,
    /// The first eviction arrived at an API server.
    pub first: f64,
    /// The watch saw the last pod go.
    pub gone: f64,
    /// kubectl has ended, or maint has handed the free node over to the command.
    pub free: f64,
    /// The program has ended; with maint the node has been proven and is schedulable by then.
    pub ended: f64,
    pub seen: Seen,
    /// Processor time of everybody from the start of the program until it had ended and the last pod was seen to be gone.
    pub spent: Spent,
    /// What the side asked of the API servers from its start until the node was free.
    pub log: Log,
}

impl Drained {
    /// From the first eviction to the last pod gone.
    pub fn drain(&self) -> f64 {
        self.gone - self.first
    }

    /// Requests from the start until the node was free. Renewals of the Lease go on by the clock and are left out.
    pub fn requests(&self) -> f64 {
        self.count(f64::NEG_INFINITY, f64::INFINITY)
    }

    /// Requests from the first eviction until the last pod was gone.
    pub fn requests_while_draining(&self) -> f64 {
        self.count(self.first, self.gone)
    }

    /// Whether a request was sent between the first eviction and the last pod gone.
    pub fn drains_at(&self, entry: &Entry) -> bool {
        is_within(entry, self.first, self.gone)
    }

    fn count(&self, from: f64, until: f64) -> f64 {
        let within = |entry: &&Entry| is_within(entry, from, until);
        let count = self.log.0.iter().filter(within).filter(|entry| entry.resource != "leases").count();
        u32::try_from(count).unwrap_or(u32::MAX).into()
    }
}

fn is_within(entry: &Entry, from: f64, until: f64) -> bool {
    watch::at(&entry.time).is_ok_and(|at| at >= from && at <= until)
}

/// The service with two replicas. Both sides talk to API server 1.
pub async fn service(cluster: &Arc<Cluster>) -> Result<Maint> {
    let scope = format!("[scopes.{SCOPE}]\nstrategy = \"drain\"\nreboots = false\n");
    let mut maint = Maint::install_with(cluster, &RUN, &scope).await?;
    maint.start(REPLICAS[0], 1)?;
    maint.wait_leader(REPLICAS[0]).await?;
    maint.start(REPLICAS[1], 3)?;
    Ok(maint)
}

/// Drains the node of a workload, whose pods are placed anew before.
pub async fn drain(cluster: &Cluster, maint: &Maint, workload: &Workload, side: Side) -> Result<Drained> {
    workload.place().await?;
    let observer = Observer::start(&cluster.client(3).await?, workload).await?;
    let (mark, before, started) = (cluster.audit_mark(), Spent::now()?, watch::now());
    let free = match side {
        Side::Kubectl => by_kubectl(cluster, workload).await?,
        Side::Maint => by_maint(cluster, maint, workload).await?,
    };
    let ended = watch::now();
    observer.wait_drained(SEEN).await?;
    let spent = Spent::now()?.since(&before);
    observer.wait_replaced(workload.cell.pods).await?;
    if side == Side::Kubectl {
        workload.uncordon().await?;
    }
    let theirs = |entry: &Entry| entry.user_agent.starts_with("kubectl") == (side == Side::Kubectl);
    let until_free = |entry: &Entry| watch::at(&entry.time).is_ok_and(|at| at <= free);
    let log = cluster.audit_since(&mark)?.0;
    let log = Log(log.into_iter().filter(|entry| counts(entry) && theirs(entry) && until_free(entry)).collect());
    let seen = observer.seen();
    let first = log.evictions().first().map(|entry| watch::at(&entry.time)).context("no eviction was sent")??;
    let gone = seen.pods.iter().filter(|pod| pod.on_target).filter_map(|pod| pod.gone).reduce(f64::max);
    let drained =
        Drained { started, first, gone: gone.context("no pod was on the node")?, free, ended, seen, spent, log };
    check(workload, &drained)?;
    Ok(drained)
}

/// A watch is written down when it begins and when it ends; all else when it ends.
fn counts(entry: &Entry) -> bool {
    (entry.verb == "watch") == (entry.stage == "ResponseStarted")
}

/// Each pod was evicted once, and none was deleted around a budget.
fn check(workload: &Workload, drained: &Drained) -> Result<()> {
    let evicted = drained.log.evictions().iter().filter(|entry| entry.code == 201).count();
    ensure!(evicted == workload.cell.pods, "{evicted} evictions of {} pods", workload.cell.pods);
    ensure!(drained.log.deletes("pods").is_empty(), "deleted: {:?}", drained.log.deletes("pods"));
    let early = drained.gone - drained.free;
    ensure!(early < WATCH_DELAY, "the node was called free {early:.2} s before its last pod was gone");
    Ok(())
}

async fn by_kubectl(cluster: &Cluster, workload: &Workload) -> Result<f64> {
    let mut command = Command::new(cluster.kubectl());
    // What kubectl remembers of an API server lies in the home folder.
    command.env("HOME", cluster.folder()).arg("--kubeconfig").arg(cluster.kubeconfig_path());
    command.args(["--context", "server-1", "drain", &workload.node]);
    command.args(["--ignore-daemonsets", "--delete-emptydir-data", "--force"]);
    run(cluster, command).await?;
    Ok(watch::now())
}

/// The command that maint calls writes down when that was.
async fn by_maint(cluster: &Cluster, maint: &Maint, workload: &Workload) -> Result<f64> {
    let stamp = cluster.folder().join("node-is-free");
    let script = format!("date +%s.%N > {}", stamp.display());
    let words =
        ["run", &workload.node, "--scope", SCOPE, "--yes", "--as", "the bench", "--", "sh", "-c", script.as_str()];
    run(cluster, maint.command(1, &words)?).await?;
    let text = fs::read_to_string(&stamp).with_context(|| format!("cannot read {}", stamp.display()))?;
    fs::remove_file(&stamp)?;
    text.trim().parse().with_context(|| format!("no time: {text}"))
}

async fn run(cluster: &Cluster, command: Command) -> Result<()> {
    let what = format!("{command:?}");
    let output = cluster.run_in_hub(command, DRAIN).await?;
    let text = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).join("");
    ensure!(output.status.success(), "{what} ended with {}: {text}", output.status);
    Ok(())
}
