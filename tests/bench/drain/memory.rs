//! What a drain costs the service: memory and processor time in a large cluster, and growth over many drains.

use std::fs;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};

use super::cell::{Budgets, Cell};
use super::cpu;
use super::crowd::Crowd;
use super::limit::median;
use super::profile::profile;
use super::sides::{Side, drain, service};
use super::workload::Workload;
use crate::harness::Cluster;
use crate::harness::maint::Maint;

/// Drains over which the service must not grow, and those before, in which it takes what it needs.
const DRAINS: usize = 50;
const WARM_UP: usize = 5;
/// Drains whose median is compared.
const SAMPLE: usize = 5;
/// What the allocator may keep without being said to grow, in MiB.
const GROWTH_LIMIT: f64 = 8.0;

/// 250 pods go from a node of a cluster of 10,000 pods.
pub async fn large_cluster(cluster: Arc<Cluster>) -> Result<()> {
    let cell = Cell { pods: 250, seconds: "2", budgets: Budgets::None, rounds: 1 };
    let _crowd = Crowd::create(&cluster, 10_000 - cell.pods).await?;
    let maint = service(&cluster).await?;
    let workload = Workload::create(&cluster, cell).await?;
    // A first run, so that what is read once at the start is not counted.
    workload.place().await?;
    let id = leader_id(&maint).await?;
    reset_peak(id)?;
    let (before, cpu) = (resident(id, "VmRSS")?, cpu::of_process(id)?);
    let drained = drain(&cluster, &maint, &workload, Side::Maint).await?;
    let cpu = cpu::of_process(id)? - cpu;
    println!("\n{}", profile(cell, Side::Maint, &drained));
    println!("figure drain.250of10000.maint {:.2} s", drained.drain());
    println!("figure drain.250of10000.rss_mib {:.1} MiB", resident(id, "VmHWM")?);
    println!("figure drain.250of10000.rss_before_mib {before:.1} MiB");
    println!("figure drain.250of10000.cpu_s {cpu:.2} s");
    Ok(())
}

/// The same small drain again and again.
pub async fn growth(cluster: Arc<Cluster>) -> Result<()> {
    let cell = Cell { pods: 30, seconds: "0.2", budgets: Budgets::None, rounds: DRAINS };
    let maint = service(&cluster).await?;
    let workload = Workload::create(&cluster, cell).await?;
    let id = leader_id(&maint).await?;
    let mut sizes = Vec::new();
    for _ in 0..WARM_UP + DRAINS {
        drain(&cluster, &maint, &workload, Side::Maint).await?;
        sizes.push(resident(id, "VmRSS")?);
    }
    ensure!(leader_id(&maint).await? == id, "another replica leads now");
    let middle = |from: usize| median(sizes[from..from + SAMPLE].to_vec()).context("no sizes");
    let (early, late) = (middle(WARM_UP)?, middle(sizes.len() - SAMPLE)?);
    println!("\nsizes after each drain, MiB: {sizes:.1?}");
    println!("figure drain.growth_over_50 {:.2} MiB", late - early);
    ensure!(late - early < GROWTH_LIMIT, "from {early:.1} to {late:.1} MiB over {DRAINS} drains");
    Ok(())
}

async fn leader_id(maint: &Maint) -> Result<u32> {
    let (leader, _) = maint.leader().await?.context("nobody leads")?;
    maint.id(&leader).context("the leader is no replica of ours")
}

/// From here on `VmHWM` is the most memory since now (proc(5), clear_refs).
fn reset_peak(id: u32) -> Result<()> {
    fs::write(format!("/proc/{id}/clear_refs"), "5").context("cannot reset the peak")
}

/// A line of /proc/ID/status in MiB.
fn resident(id: u32, line: &str) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let value = status.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':')).context("no such line")?;
    let kib: f64 = value.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1024.0)
}
