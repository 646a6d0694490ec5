//! Leaders that die while kured is asked for.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};

use super::super::kured_partner::{acquired, lock_of};
use super::super::run::{RUN, cordon_changes};
use super::{NODE, wishing};
use crate::harness::Cluster;
use crate::harness::maint::story;
use crate::harness::service::Way;
use crate::harness::wait;

/// Every phase before the end.
const PHASES: [&str; 8] =
    ["Pending", "Cordoning", "Draining", "Acting", "Returning", "Verifying", "Uncordoning", "Settling"];

/// One run, and its leader is killed in each phase: nothing is done twice.
pub async fn killed_in_every_phase(cluster: Arc<Cluster>) -> Result<()> {
    let (mut partners, name) = held_up(&cluster).await?;
    let mut killed = Vec::new();
    for phase in PHASES {
        partners.maint.wait_phase(&name, phase, RUN).await?;
        let term = partners.leader_dies().await?;
        let record = partners.maint.record(&name).await?;
        ensure!(record["status"]["phase"] == phase, "killed too late for {phase}: {}", story(&record));
        killed.push(format!("{phase} in term {term}"));
        if phase == "Pending" {
            partners.write_lock(None).await?;
        }
    }
    partners.wait_end(&name, "Succeeded", "Proven").await?;
    partners.ensure_once(NODE).with_context(|| format!("{killed:?}"))?;
    partners.ensure_safe(&[NODE]).await
}

/// A wish that stays one: another node holds the lock.
async fn held_up(cluster: &Arc<Cluster>) -> Result<(super::Partners, String)> {
    super::workload(cluster, 2).await?;
    let mut partners = super::installed(cluster, &[]).await?;
    partners.write_lock(Some(&lock_of("worker3"))).await?;
    let name = super::begin(&mut partners, Way::Open).await?;
    Ok((partners, name))
}

/// kured has heard go and has not taken its lock yet, and another leader leads: it is that one's run from then on.
pub async fn changes(cluster: Arc<Cluster>) -> Result<()> {
    let (mut partners, name) = wishing(&cluster, Way::KeepsGo).await?;
    partners.wait_kept(NODE, &name).await?;
    let old = partners.leader_dies().await?;
    let newer = |record: &serde_json::Value| record["status"]["term"].as_i64().is_some_and(|term| term > old);
    partners.maint.wait_record(&name, "a newer term", RUN, newer).await?;
    ensure!(acquired(&partners.log()?, NODE).is_empty(), "it has the lock already");
    partners.service.set(NODE, Way::Open)?;
    partners.wait_end(&name, "Succeeded", "Proven").await?;
    partners.ensure_once(NODE)?;
    partners.ensure_safe(&[NODE]).await
}

/// A go is on its way when the run is cancelled, and somebody has made the lock unreadable, so that it cannot be taken:
/// the node stays cordoned until kured shows that the go is spent, whoever leads by then.
pub async fn killed_while_backing_out(cluster: Arc<Cluster>) -> Result<()> {
    let (mut partners, name) = wishing(&cluster, Way::KeepsGo).await?;
    partners.wait_kept(NODE, &name).await?;
    partners.write_lock(Some("{not a lock")).await?;
    partners.maint.verb(1, &["cancel", &name, "--as", "a case"], 0).await?;
    partners.maint.wait_phase(&name, "BackingOut", RUN).await?;
    let old = partners.leader_dies().await?;
    let newer = |record: &serde_json::Value| record["status"]["term"].as_i64().is_some_and(|term| term > old);
    let record = partners.maint.wait_record(&name, "a newer term", RUN, newer).await?;
    ensure!(record["status"]["phase"] == "BackingOut", "{}", story(&record));
    ensure!(partners.log()?.uncordons(NODE).is_empty(), "uncordoned while a go was on its way");
    // The go arrives, and kured cannot take such a lock; then it asks again and hears no.
    let told = partners.told(NODE);
    partners.service.set(NODE, Way::Open)?;
    wait::until(RUN, "another question", || async { Ok((partners.told(NODE) > told).then_some(())) }).await?;
    partners.write_lock(None).await?;
    partners.wait_end(&name, "Cancelled", "Cancelled").await?;
    let log = partners.log()?;
    ensure!(acquired(&log, NODE).is_empty(), "kured took its lock");
    ensure!(cordon_changes(&log, NODE) == (1, 1), "{:?}", cordon_changes(&log, NODE));
    partners.ensure_safe(&[]).await
}
