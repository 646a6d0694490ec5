//! kured's lock in other hands.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use super::super::kured_partner::{AUTO, NODES, Partners, acquired, lock_of, named};
use super::super::run::RUN;
use super::{NODE, SHORT, begin, installed, wishing};
use crate::harness::longhorn::Volume;
use crate::harness::maint::{Maint, RECORDS, story};
use crate::harness::service::Way;
use crate::harness::{Cluster, wait};

/// Values of the lock that are not this run's: maint says which, and starts nothing.
pub async fn of_others(cluster: Arc<Cluster>) -> Result<()> {
    let rows = [
        ("foreign holder", lock_of("worker3"), 3, "KuredLockHeld"),
        ("garbage", "{not a lock".to_string(), 4, "KuredLockUnreadable"),
        ("a list under concurrency 1", json!({ "maxOwners": 2, "locks": [] }).to_string(), 3, "KuredLockFormat"),
        ("ghost", lock_of("worker9"), 3, "worker9"),
    ];
    let mut partners = installed(&cluster, &[]).await?;
    partners.write_lock(Some(&rows[0].1)).await?;
    let name = begin(&mut partners, Way::Open).await?;
    for (row, lock, code, said) in &rows {
        partners.write_lock(Some(lock)).await?;
        let told = named(row, partners.maint.verb(1, &["check", NODE], *code).await)?;
        ensure!(told.contains(said), "{row}: {told}");
    }
    partners.wait_logged(NODE, "worker9", 1).await?;
    let record = partners.maint.record(&name).await?;
    ensure!(record["status"]["phase"] == "Pending", "{}", story(&record));
    ensure!(partners.log()?.cordons(NODE).is_empty(), "cordoned");
    partners.kureds.leave_alone(NODE, true)?;
    partners.maint.verb(1, &["cancel", &name, "--as", "a case"], 0).await?;
    partners.maint.wait_phase(&name, "Cancelled", RUN).await?;
    partners.maint.verb(1, &["lock", "release", "--holder", "worker9", "--yes"], 0).await?;
    partners.ensure_safe(&[]).await
}

/// After the cordon somebody holds kured's lock, then a node that is gone does: no go is given. Once it is free, the run
/// goes on.
pub async fn in_the_middle(cluster: Arc<Cluster>) -> Result<()> {
    let (partners, name) = wishing(&cluster, Way::Open).await?;
    partners.maint.wait_phase(&name, "Draining", RUN).await?;
    for (holder, said) in [("worker3", "KuredLockHeld"), ("worker9", "worker9")] {
        partners.write_lock(Some(&lock_of(holder))).await?;
        let blocks = move |record: &Value| record["status"]["findings"].to_string().contains(said);
        partners.maint.wait_record(&name, "the lock to be named", RUN, blocks).await?;
        let told = partners.told(NODE);
        wait::until(RUN, "kured to be told no", || async {
            ensure!(partners.told(NODE) > told, "{}", story(&partners.maint.record(&name).await?));
            Ok(Some(()))
        })
        .await?;
    }
    let goes = partners.service.told().iter().filter(|one| one.node == NODE && one.is_go()).count();
    ensure!(goes == 0 && acquired(&partners.log()?, NODE).is_empty(), "{goes} times go");
    partners.write_lock(None).await?;
    partners.wait_end(&name, "Succeeded", "Proven").await?;
    partners.ensure_once(NODE)?;
    partners.ensure_safe(&[NODE]).await
}

/// A gate fails while a go is on its way: maint takes the lock, and kured comes too late.
pub async fn withdrawn(cluster: Arc<Cluster>) -> Result<()> {
    let (partners, name) = wishing(&cluster, Way::KeepsGo).await?;
    withdraw(&partners, &name).await?;
    too_late(&partners).await?;
    partners.maint.verb(1, &["cancel", &name, "--as", "a case"], 0).await?;
    partners.wait_end(&name, "Cancelled", "Cancelled").await?;
    partners.ensure_safe(&[]).await
}

/// The same, and somebody wipes maint's hold while the go is on its way: maint takes it anew. After that kured gets
/// another go, and its own lock is wiped while it drains.
pub async fn wiped(cluster: Arc<Cluster>) -> Result<()> {
    let (partners, name) = wishing(&cluster, Way::KeepsGo).await?;
    withdraw(&partners, &name).await?;
    partners.write_lock(None).await?;
    ours(&partners, &name).await?;
    too_late(&partners).await?;
    partners.cluster.set_volume("pvc-home", Volume::Healthy).await?;
    wait::until(RUN, "kured's own lock", || async {
        let lock = partners.lock_text().await?.unwrap_or_default();
        let story = story(&partners.maint.record(&name).await?);
        ensure!(lock.contains(&format!("\"nodeID\":\"{NODE}\"")), "{lock} {story}");
        Ok(Some(()))
    })
    .await?;
    partners.write_lock(None).await?;
    partners.wait_end(&name, "Succeeded", "Proven").await?;
    partners.ensure_safe(&[NODE]).await
}

/// A go is on its way, a volume of another node begins to rebuild, and maint takes the lock.
async fn withdraw(partners: &Partners, name: &str) -> Result<()> {
    partners.wait_kept(NODE, name).await?;
    partners.cluster.set_volume("pvc-home", Volume::Rebuilding(1)).await?;
    ours(partners, name).await
}

async fn ours(partners: &Partners, name: &str) -> Result<()> {
    wait::until(RUN, "maint to take the lock", || async {
        let lock = partners.lock_text().await?.unwrap_or_default();
        ensure!(lock.contains(&format!("maint:{NODE}")), "{lock} {}", story(&partners.maint.record(name).await?));
        Ok(Some(()))
    })
    .await
}

/// The go arrives at last.
async fn too_late(partners: &Partners) -> Result<()> {
    let late = partners.kureds.log(NODE)?.matches("Lock already held").count();
    partners.service.set(NODE, Way::Open)?;
    partners.wait_logged(NODE, "Lock already held", late + 1).await?;
    ensure!(acquired(&partners.log()?, NODE).is_empty() && partners.booted()?.is_empty(), "it went all the same");
    Ok(())
}

/// kured would let two nodes go; maint lets one, and the other one waits for the next window. A single value under
/// `--concurrency 2` stops everybody.
pub async fn two_slots(cluster: Arc<Cluster>) -> Result<()> {
    let one = AUTO.replace("max_nodes_per_window = 100", "max_nodes_per_window = 1");
    let maint = Maint::install_with(&cluster, &SHORT, &one).await?;
    let mut partners = Partners::install(&cluster, maint, &[("--concurrency=1", "--concurrency=2")]).await?;
    partners.write_lock(Some(&lock_of("worker1"))).await?;
    for node in [NODES[1], NODES[2]] {
        partners.kureds.require(node, true)?;
    }
    partners.kureds.start()?;
    partners.start_maint().await?;
    for node in [NODES[1], NODES[2]] {
        partners.wait_wish(node).await?;
    }
    let told = partners.maint.verb(1, &["check", NODE], 3).await?;
    ensure!(told.contains("KuredLockFormat"), "{told}");
    let foreign: Value = serde_json::from_str(&lock_of("worker1"))?;
    partners.write_lock(Some(&json!({ "maxOwners": 2, "locks": [foreign] }).to_string())).await?;
    let told = partners.maint.verb(1, &["check", NODE], 3).await?;
    ensure!(told.contains("KuredLockHeld"), "{told}");
    ensure!(partners.log()?.cordons(NODE).is_empty(), "cordoned");
    partners.write_lock(Some(&json!({ "maxOwners": 2, "locks": [] }).to_string())).await?;
    let (record, waits) = wait::until(RUN, "one of both to be done, and the other one to wait", || async {
        let records = partners.cluster.any_client().await?.list(RECORDS).await?;
        let stories: Vec<String> = records.iter().map(story).collect();
        let done = records.iter().find(|record| record["status"]["outcome"] == "Proven");
        let waits = records
            .iter()
            .find(|record| record["status"]["message"].as_str().is_some_and(|message| message.contains("WindowFull")));
        let (Some(done), Some(waits)) = (done, waits) else { bail!("{stories:#?}") };
        Ok(Some((done.clone(), waits.clone())))
    })
    .await?;
    let node = |record: &Value| record["spec"]["nodeName"].as_str().unwrap_or_default().to_string();
    ensure!(node(&record) != node(&waits), "{} {}", story(&record), story(&waits));
    let text = partners.lock_text().await?;
    ensure!(text.as_deref().is_some_and(|text| text.contains("\"locks\":[]")), "{text:?}");
    partners.ensure_safe(&[&node(&record)]).await
}
