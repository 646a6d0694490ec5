//! The tests on a real control plane: one cluster for all cases, one case at a time.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unused_self,
    clippy::unused_async,
    reason = "real processes need real time; a harness talks; its verbs read alike"
)]

#[path = "cases/mod.rs"]
mod cases;
#[allow(dead_code, reason = "shared with the bench, which measures the rest of the table")]
#[path = "../bench/drain/mod.rs"]
mod drain;
#[allow(dead_code, reason = "shared with the example, and cases use what they need")]
#[path = "harness/mod.rs"]
mod harness;
#[path = "kured/mod.rs"]
mod kured;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use libtest_mimic::{Arguments, Failed, Trial};

use cases::Case;
use harness::Cluster;
use harness::trials::{self, Shared};

/// How long each case took, in the order in which they ran, and how long its reset.
static TIMES: Mutex<Vec<(&str, Duration, Duration)>> = Mutex::new(Vec::new());

fn main() -> ExitCode {
    if let Some(code) = kured::hidden_mode() {
        return code;
    }
    let arguments = Arguments::from_args();
    let cluster = Shared::default();
    let trials: Vec<_> = cases::all()
        .into_iter()
        .map(|case| {
            let cluster = cluster.clone();
            Trial::test(case.name, move || run(&case, cluster.get().ok_or("there is no cluster")?))
        })
        .collect();
    trials::run(arguments, &cluster, trials, || {
        print_times();
        if cases::check::rows() > 0 {
            println!("figure cases.check {} cases", cases::check::rows());
        }
    })
}

/// Where a run's time went. libtest-mimic prints results itself and has no place for it there.
fn print_times() {
    let times = TIMES.lock().unwrap_or_else(PoisonError::into_inner);
    for (name, length, _) in times.iter() {
        println!("figure case.seconds.{name} {:.1} s", length.as_secs_f64());
    }
    let resets: Duration = times.iter().map(|(.., reset)| *reset).sum();
    if !times.is_empty() {
        println!("figure case.seconds.resets {:.1} s", resets.as_secs_f64());
    }
}

fn run(case: &Case, cluster: &Arc<Cluster>) -> Result<(), Failed> {
    let (name, limit) = (case.name, case.limit);
    let (future, start) = ((case.run)(cluster.clone()), Instant::now());
    let answer = cluster.run_inside(async move {
        match tokio::time::timeout(limit.length, future).await {
            Ok(result) => result,
            Err(_) => Err(anyhow!("limit `{}` of {} s reached by {name}", limit.name, limit.length.as_secs())),
        }
    });
    // Also after a failure or a panic: the next case finds a healthy cluster.
    let (again, length) = (cluster.clone(), start.elapsed());
    let reset = cluster.run_inside(async move { again.reset().await });
    let times = (name, length, start.elapsed().saturating_sub(length));
    TIMES.lock().unwrap_or_else(PoisonError::into_inner).push(times);
    for (part, result) in [("", answer), ("reset: ", reset)] {
        result.flatten().map_err(|error| Failed::from(format!("{part}{error:#}")))?;
    }
    Ok(())
}
