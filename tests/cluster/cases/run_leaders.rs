//! Leaders that die or freeze in the middle of a run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::run::{
    NODE, RUN, cordon_changes, ensure_rebooted, ensure_released, ensure_tidy, evicted, going, reboots, workload,
};
use super::{Case, case};
use crate::harness::audit::Entry;
use crate::harness::maint::{Maint, REPLICAS, story};
use crate::harness::net::NODES;
use crate::harness::wait::Limit;
use crate::harness::{Cluster, wait};

pub fn cases() -> Vec<Case> {
    vec![
        Case { limit: Limit::seconds("case", 420), ..case("run::leader_killed_in_every_phase", killed_in_every_phase) },
        case("run::leader_frozen_past_its_lease", frozen_past_its_lease),
    ]
}

/// Every phase before the end.
const PHASES: [&str; 8] =
    ["Pending", "Cordoning", "Draining", "Acting", "Returning", "Verifying", "Uncordoning", "Settling"];
/// Deadlines run on while nobody leads.
const PATIENT: [(&str, u64); 4] = [
    ("drain_timeout_seconds", 240),
    ("handover_timeout_seconds", 240),
    ("return_timeout_seconds", 240),
    ("verify_timeout_seconds", 240),
];

/// One run, and its leader is killed once in each phase: whoever is left goes on, and nothing is done twice.
async fn killed_in_every_phase(cluster: Arc<Cluster>) -> Result<()> {
    workload(&cluster, 2).await?;
    let mut maint = Maint::up(&cluster, &PATIENT, [1, 3]).await?;
    let (before, going) = (cluster.boot_id(NODE)?, going(&cluster, NODE).await?);
    let (mark, start) = (cluster.audit_mark(), Instant::now());
    maint.ask("killed-1", NODE, "reboot", "pod", json!({})).await?;
    let mut killed = Vec::new();
    for phase in PHASES {
        let record = maint.wait_phase("killed-1", phase, RUN).await?;
        let (leader, term) = maint.leader().await?.context("nobody leads")?;
        maint.kill(&leader);
        let now = maint.record("killed-1").await?;
        ensure!(now["status"]["phase"] == phase, "killed too late for {phase}: {}", story(&now));
        killed.push(format!(
            "{phase} (term {term}, {} entries)",
            record["status"]["timeline"].as_array().map_or(0, Vec::len)
        ));
        maint.start(&leader, if leader == REPLICAS[0] { 1 } else { 3 })?;
    }
    let record = maint.wait_phase("killed-1", "Succeeded", RUN).await?;
    println!("\nfigure run_with_8_kills {:.1} s", start.elapsed().as_secs_f64());
    ensure_rebooted(&record, &before, &cluster.boot_id(NODE)?, going.len())?;
    ensure_released(&cluster, NODE).await?;
    ensure_tidy(&cluster, &maint, "killed-1").await?;
    let log = cluster.audit_since(&mark)?;
    ensure!(cordon_changes(&log, NODE) == (1, 1), "cordons and uncordons: {:?} {killed:?}", cordon_changes(&log, NODE));
    ensure!(reboots(&log) == 1, "{} action pods, killed in {killed:?}", reboots(&log));
    ensure!(evicted(&log, &going)? == going, "not all were evicted");
    // Of two leaders the second says the same again, under the same ids.
    maint.wait_told("killed-1", &["started", "finished"]).await
}

/// A leader that is frozen past its Lease and goes on finds out before it does harm: while it evicts, and while it is
/// about to act.
async fn frozen_past_its_lease(cluster: Arc<Cluster>) -> Result<()> {
    workload(&cluster, 6).await?;
    let mut maint = Maint::up(&cluster, &PATIENT, [1, 3]).await?;
    let (going, mark) = (going(&cluster, NODE).await?, cluster.audit_mark());
    maint.ask("frozen-1", NODE, "reboot", "pod", json!({})).await?;
    for phase in ["Draining", "Acting"] {
        let late = freeze_the_leader(&cluster, &mut maint, phase).await?;
        println!("\nfigure late_writes_of_leader_frozen_in_{phase} {}", late.len());
        ensure!(late.len() <= 1, "{late:?}");
        for entry in &late {
            // An eviction carries the uid of a pod that was to go anyway, which is checked below.
            ensure!(entry.code >= 400 || entry.resource == "pods/eviction", "it went through: {entry:?}");
        }
    }
    let record = maint.wait_phase("frozen-1", "Succeeded", RUN).await?;
    ensure!(record["status"]["outcome"] == "Proven", "{}", story(&record));
    ensure_released(&cluster, NODE).await?;
    let log = cluster.audit_since(&mark)?;
    ensure!(evicted(&log, &going)? == going, "not all were evicted");
    let (cordons, pods) = (cordon_changes(&log, NODE), reboots(&log));
    ensure!(cordons == (1, 1) && pods == 1, "cordons and uncordons {cordons:?}, action pods {pods}");
    Ok(())
}

/// Freezes the leader in a phase until the other one has written its term, lets it go on, and starts it anew once it has
/// ended. Gives what it still sent after the first write of the new term.
async fn freeze_the_leader(cluster: &Cluster, maint: &mut Maint, phase: &str) -> Result<Vec<Entry>> {
    maint.wait_phase("frozen-1", phase, RUN).await?;
    let mark = cluster.audit_mark();
    let (old, old_term) = maint.leader().await?.context("nobody leads")?;
    maint.freeze(&old, true);
    let new = Maint::other(&old);
    let new_term = maint.wait_leader(new).await?;
    ensure!(new_term > old_term, "term {new_term} after {old_term}");
    let has_term = |record: &Value| record["status"]["term"].as_i64() == Some(new_term);
    maint.wait_record("frozen-1", "the new term", RUN, has_term).await?;
    maint.freeze(&old, false);
    wait::until(wait::CONTROLLERS, "the old leader to end", || {
        let ended = maint.ended(&old);
        async move { Ok(ended.then_some(())) }
    })
    .await?;
    written(cluster).await?;
    let log = cluster.audit_since(&mark)?;
    let first = log.by(&Maint::user(new)).0.into_iter().find(|entry| entry.resource == "maintenances/status");
    let since = first.context("the new leader wrote nothing")?.time;
    maint.start(&old, if old == REPLICAS[0] { 1 } else { 3 })?;
    let reads = |entry: &Entry| matches!(entry.verb.as_str(), "get" | "list" | "watch");
    let late = log.by(&Maint::user(&old)).0.into_iter();
    Ok(late.filter(|entry| entry.time >= since && !reads(entry) && entry.resource != "leases").collect())
}

/// Waits until the log has what was asked before: an API server writes a request down when it is over, and what was asked
/// of it last comes last.
async fn written(cluster: &Cluster) -> Result<()> {
    let mark = cluster.audit_mark();
    for i in 1..=NODES {
        cluster.admin(i, "case-marker").await?.get("/version").await?;
    }
    wait::until(wait::SHORT, "the marks of all API servers in the audit log", || async {
        let log = cluster.audit_since(&mark)?.by("case-marker");
        let servers: BTreeSet<usize> = log.0.iter().map(|entry| entry.server).collect();
        Ok((servers.len() == NODES).then_some(()))
    })
    .await
}
