//! One cluster under all trials of a program, which are run one at a time.

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Arguments, Trial};

use super::Cluster;

/// The cluster, as soon as it is up.
pub type Shared = Arc<OnceLock<Arc<Cluster>>>;

/// Brings the cluster up where a trial is to be run, runs them, calls `told` once their results are printed, and ends the
/// cluster; its logs are kept where a trial failed.
pub fn run(mut arguments: Arguments, cluster: &Shared, trials: Vec<Trial>, told: impl FnOnce()) -> ExitCode {
    // All share one cluster, and most of them break it for a while.
    arguments.test_threads = Some(1);
    // A list or a filter without a match needs no cluster.
    if !arguments.list && trials.iter().any(|trial| !arguments.is_filtered_out(trial)) {
        match Cluster::up() {
            Ok(up) => drop(cluster.set(up)),
            Err(error) => {
                eprintln!("error: the cluster did not come up: {error:#}");
                return ExitCode::from(101);
            }
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    told();
    if let Some(cluster) = cluster.get() {
        if conclusion.has_failed() {
            cluster.keep_logs();
        }
        cluster.shutdown();
    }
    conclusion.exit_code()
}
