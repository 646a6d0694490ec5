//! The bench of maint's drain on a real control plane: one cluster for all cells, one cell at a time.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unused_self,
    clippy::unused_async,
    reason = "real processes need real time; a harness talks; its verbs read alike"
)]

#[allow(dead_code, reason = "shared with the cluster tests, which measure one cell")]
#[path = "drain/mod.rs"]
mod drain;
#[allow(dead_code, reason = "shared with the cluster tests, which use the rest")]
#[path = "../cluster/harness/mod.rs"]
mod harness;
#[allow(dead_code, reason = "kured's double belongs to the harness, and no bench needs it")]
#[path = "../cluster/kured/mod.rs"]
mod kured;

use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use libtest_mimic::{Arguments, Failed, Trial};

use drain::cell::Cell;
use drain::{measure, memory};
use harness::Cluster;
use harness::trials::{self, Shared};
use harness::wait::Limit;

type Run = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// Three rounds of both sides with 250 pods take some eight minutes.
const CELL: Limit = Limit::seconds("cell", 1800);

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let cluster = Shared::default();
    let mut trials: Vec<Trial> = Cell::table()
        .into_iter()
        .map(|cell| trial(&cluster, cell.name(), true, move |c| Box::pin(measure::cell(c, cell))))
        .collect();
    trials.push(trial(&cluster, "growth".to_string(), true, |c| Box::pin(memory::growth(c))));
    // Last, since nothing is left to be put back: a reset would take longer than the end of the cluster.
    trials.push(trial(&cluster, "large-cluster".to_string(), false, |c| Box::pin(memory::large_cluster(c))));
    trials::run(arguments, &cluster, trials, || {})
}

fn trial(cluster: &Shared, name: String, reset: bool, run: impl Fn(Arc<Cluster>) -> Run + Send + 'static) -> Trial {
    let cluster = cluster.clone();
    Trial::test(name, move || {
        let cluster = cluster.get().ok_or("there is no cluster")?;
        let future = run(cluster.clone());
        let answer = cluster.run_inside(async move {
            tokio::time::timeout(CELL.length, future)
                .await
                .unwrap_or_else(|_| Err(anyhow!("limit `{}` of {} s reached", CELL.name, CELL.length.as_secs())))
        });
        answer.flatten().map_err(|error| Failed::from(format!("{error:#}")))?;
        if reset {
            let again = cluster.clone();
            let reset = cluster.run_inside(async move { again.reset().await });
            reset.flatten().map_err(|error| Failed::from(format!("reset: {error:#}")))?;
        }
        Ok(())
    })
}
