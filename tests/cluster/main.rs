//! The tests on a real control plane: one cluster for all cases, one case at a time.

#[path = "cases/mod.rs"]
mod cases;
#[allow(dead_code, reason = "shared with the example, and cases use what they need")]
#[path = "harness/mod.rs"]
mod harness;

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Arguments, Failed, Trial};

use cases::Case;
use harness::Cluster;

/// Brought up by the first case that runs, so that `--list` and an empty filter cost nothing.
static CLUSTER: OnceLock<Result<Arc<Cluster>, String>> = OnceLock::new();

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // All share one cluster, and most of them break it for a while.
    arguments.test_threads = Some(1);
    let trials = cases::all().into_iter().map(|case| Trial::test(case.name, move || run(&case))).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Some(Ok(cluster)) = CLUSTER.get() {
        if conclusion.has_failed() {
            cluster.keep_logs();
        }
        cluster.shutdown();
    }
    conclusion.exit_code()
}

fn run(case: &Case) -> Result<(), Failed> {
    let cluster = CLUSTER.get_or_init(|| Cluster::up().map_err(|error| format!("the cluster did not come up: {error:#}")));
    let cluster = cluster.as_ref().map_err(|text| Failed::from(text.as_str()))?;
    let (name, limit) = (case.name, case.limit);
    let future = (case.run)(cluster.clone());
    let answer = cluster.run_inside(async move {
        match tokio::time::timeout(limit.length, future).await {
            Ok(result) => result,
            Err(_) => Err(anyhow::anyhow!("limit `{}` of {} s reached by {name}", limit.name, limit.length.as_secs())),
        }
    });
    // Also after a failure or a panic: the next case finds a healthy cluster.
    let again = cluster.clone();
    let reset = cluster.run_inside(async move { again.reset().await });
    for (part, result) in [("", answer), ("reset: ", reset)] {
        result.and_then(|inner| inner).map_err(|error| Failed::from(format!("{part}{error:#}")))?;
    }
    Ok(())
}
