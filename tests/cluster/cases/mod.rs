//! All cases of the cluster tests. Each proves something and restores what it broke; `reset` comes between them anyway.

pub mod check;
mod conformance;
mod deploy;
mod drain;
mod drain_names;
mod drain_run;
mod drain_waits;
mod kured;
mod kured_faults;
mod kured_night;
mod kured_partner;
mod plane;
mod reboots;
mod run;
mod run_leaders;
mod run_people;
mod run_words;
mod tunnels;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use anyhow::Result;

use crate::harness::Cluster;
use crate::harness::wait::Limit;

/// What a case's function gives.
type Run = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// One test.
pub struct Case {
    pub name: &'static str,
    pub limit: Limit,
    pub run: Box<dyn Fn(Arc<Cluster>) -> Run + Send + Sync>,
}

/// Makes a case of an async function.
pub fn case<F, R>(name: &'static str, run: F) -> Case
where
    F: Fn(Arc<Cluster>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<()>> + Send + 'static,
{
    Case { name, limit: Limit::seconds("case", 240), run: Box::new(move |cluster| Box::pin(run(cluster))) }
}

/// What takes minutes of its own: only where `MAINT_CLUSTER_LONG` is set, as `.ci/run --full` does.
fn long(cases: Vec<Case>) -> Vec<Case> {
    if std::env::var_os("MAINT_CLUSTER_LONG").is_some() { cases } else { Vec::new() }
}

/// Every case, in the order in which they run.
pub fn all() -> Vec<Case> {
    let all: Vec<Case> = [
        plane::cases(),
        conformance::cases(),
        tunnels::cases(),
        check::cases(),
        reboots::cases(),
        kured::cases(),
        run::cases(),
        drain::cases(),
        deploy::cases(),
        kured_night::cases(),
        kured_faults::cases(),
    ]
    .into_iter()
    .flatten()
    .collect();
    println!("figure cases.kured {} cases", all.iter().filter(|case| case.name.starts_with("kured::")).count());
    all
}
