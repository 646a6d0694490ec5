//! One cell: both sides in turn, medians, ratios, figures.

use std::sync::Arc;

use anyhow::{Context, Result};

use super::cell::Cell;
use super::limit::{limit, median};
use super::profile::profile;
use super::sides::{Drained, Side, drain, service};
use super::workload::Workload;
use crate::harness::Cluster;

/// Drains the cell's pods by kubectl and by maint in turn and prints what it took.
pub async fn cell(cluster: Arc<Cluster>, cell: Cell) -> Result<()> {
    let maint = service(&cluster).await?;
    let workload = Workload::create(&cluster, cell).await?;
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..cell.rounds {
        for (side, all) in [(Side::Kubectl, &mut theirs), (Side::Maint, &mut ours)] {
            let drained = drain(&cluster, &maint, &workload, side)
                .await
                .with_context(|| format!("{} by {side:?}", cell.name()))?;
            println!("\n{}", profile(cell, side, &drained));
            all.push(drained);
        }
    }
    figures(cell, &theirs, &ours)
}

fn figures(cell: Cell, theirs: &[Drained], ours: &[Drained]) -> Result<()> {
    let middle = |all: &[Drained], value: fn(&Drained) -> f64| middle_of(all.iter().map(value).collect());
    let (kubectl, maint) = (middle(theirs, Drained::drain)?, middle(ours, Drained::drain)?);
    // Each drain against the limit of its own watch times.
    let (mut limits, mut steps, mut overlapped) = (Vec::new(), Vec::new(), Vec::new());
    for drained in ours {
        let limit = limit(&drained.seen, &cell.at_once())?;
        limits.push(limit.steps);
        steps.push(drained.drain() / limit.steps);
        overlapped.push(drained.drain() / limit.overlapped);
    }
    let (steps, overlapped) = (middle_of(steps)?, middle_of(overlapped)?);
    let name = format!("drain.{}", cell.name());
    let figure = |what: &str, value: f64, unit: &str| println!("figure {name}.{what} {value:.2} {unit}");
    figure("kubectl", kubectl, "s");
    figure("maint", maint, "s");
    figure("limit", middle_of(limits)?, "s");
    figure("ratio_kubectl", kubectl / maint, "times faster");
    figure("ratio_limit", steps, "times the limit");
    figure("ratio_overlapped_limit", overlapped, "times the limit");
    figure("whole_kubectl", middle(theirs, |one| one.free - one.started)?, "s");
    figure("whole_maint", middle(ours, |one| one.free - one.started)?, "s");
    figure("run_maint", middle(ours, |one| one.ended - one.started)?, "s");
    for (what, all) in [("requests_kubectl", theirs), ("requests", ours)] {
        println!("figure {name}.{what} {:.0} requests", middle(all, Drained::requests_while_draining)?);
    }
    for (what, all) in [("requests_whole_kubectl", theirs), ("requests_whole", ours)] {
        println!("figure {name}.{what} {:.0} requests", middle(all, Drained::requests)?);
    }
    let sent = middle(ours, Drained::requests_while_draining)?;
    for missed in cell.targets().missed(kubectl / maint, steps, sent) {
        println!("target of {name} not reached: {missed}");
    }
    Ok(())
}

fn middle_of(values: Vec<f64>) -> Result<f64> {
    median(values).context("no drain was measured")
}
