//! A night of maint and kured with nothing but the manifests: two windows in which maint only observes, and one in which
//! all three nodes are rebooted, one after the other.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, ensure};
use jiff::Timestamp;
use serde_json::Value;

use super::deploy::{ensure_used, install, refused_for_good};
use super::kured_partner::{ASKED, NODES, Partners, acquired, ensure_only_words, is_over, lock_of};
use super::{Case, case};
use crate::harness::Cluster;
use crate::harness::audit::Log;
use crate::harness::kured;
use crate::harness::maint::{Maint, NAMESPACE, RECORDS, REPLICAS, REPORTS, story};
use crate::harness::service::Way;
use crate::harness::wait::{self, Limit};

pub fn cases() -> Vec<Case> {
    vec![Case { limit: Limit::seconds("case", 600), ..case("kured::a_night_by_the_manifests", night) }]
}

/// Three nodes after each other, 30 s each on an idle machine.
const NIGHT: Limit = Limit::seconds("night", 240);
/// kured's annotation of a node that wishes, and its taint in `deploy/kured`.
const IN_PROGRESS: &str = "weave.works/kured-reboot-in-progress";
const TAINT: &str = "weave.works/kured-node-reboot";
/// The end of a window, which is at most two minutes ahead.
const WINDOW: Limit = Limit::seconds("window", 150);
/// A new leader looks for reports at once.
const REPORT: Limit = Limit::seconds("report", 60);

/// `[[windows]]` of a name, from a whole minute on. It opens on that day of the week only: else it would have been open a
/// day ago too, and that would be reported as well.
fn window(name: &str, from: Timestamp, minutes: i64) -> String {
    let (day, start) = (from.strftime("%a").to_string().to_lowercase(), from.strftime("%H:%M"));
    format!(
        "[[windows]]\nname = \"{name}\"\ndays = [\"{day}\"]\nstart = \"{start}\"\nduration = \"{minutes}m\"\nzone = \"UTC\"\n"
    )
}

/// The minute that has begun, so many later.
fn minute(later: i64) -> Result<Timestamp> {
    let now = Timestamp::now().as_second();
    Ok(Timestamp::from_second(now - now.rem_euclid(60) + later * 60)?)
}

fn settings(mode: &str, windows: &[String]) -> String {
    let head = format!("mode = \"{mode}\"\nexpected_duration_seconds = 60\nmax_nodes_per_window = 3\n");
    format!("{head}{}", windows.concat())
}

async fn night(cluster: Arc<Cluster>) -> Result<()> {
    install(&cluster).await?;
    let maint = Maint::of_manifests(&cluster).await?;
    let mut partners = Partners::install(&cluster, maint, &[]).await?;
    wish_all(&mut partners).await?;
    observe(&mut partners).await?;
    partners.count_from_now()?;
    reboot_all(&mut partners).await
}

/// All nodes wish, and look as kured leaves them where nothing blocks it and somebody else has its lock: with its
/// annotation and its taint. Both are wishes, and keep no other node from being rebooted.
async fn wish_all(partners: &mut Partners) -> Result<()> {
    partners.write_lock(Some(&lock_of("manual"))).await?;
    for node in NODES {
        partners.service.set(node, Way::Goes)?;
        partners.kureds.require(node, true)?;
    }
    partners.kureds.start()?;
    for node in NODES {
        wait::until(ASKED, format!("annotation and taint of {node}"), || async {
            let object = partners.cluster.any_client().await?.get(&format!("/api/v1/nodes/{node}")).await?;
            let wishes = !object["metadata"]["annotations"][IN_PROGRESS].is_null() && has_taint(&object);
            ensure!(wishes, "{} {}", object["metadata"]["annotations"], object["spec"]);
            Ok(Some(()))
        })
        .await?;
        // A go that is on its way is over when the next question has failed: nobody answers yet.
        partners.service.set(node, Way::Open)?;
        partners.wait_logged(node, "Reboot blocked: prometheus query error", 1).await?;
    }
    partners.write_lock(None).await
}

fn has_taint(node: &Value) -> bool {
    node["spec"]["taints"].as_array().into_iter().flatten().any(|taint| taint["key"] == TAINT)
}

/// Two windows of which one is over when the first leader begins. Nothing happens but words.
async fn observe(partners: &mut Partners) -> Result<()> {
    let over = window("early", minute(-2)?, 1);
    // Long enough for everybody to be heard and judged in it.
    let minutes = if Timestamp::now().as_second().rem_euclid(60) < 40 { 1 } else { 2 };
    let (late, ends) = (window("late", minute(0)?, minutes), minute(minutes)?);
    partners.maint.write_settings(&settings("observe", &[over, late]))?;
    partners.start_maint().await?;
    for node in NODES {
        partners.wait_logged(node, "Reboot blocked: 1 active alerts: [maint: observe mode", 2).await?;
    }
    until(ends).await?;
    let reports = reports(partners, 2).await?;
    let of =
        |name: &str| reports.iter().find(|report| opening(report).starts_with(name)).context("a report is missing");
    let (early, late) = (of("early-")?, of("late-")?);
    for report in [early, late] {
        ensure!(
            report["status"]["verdict"] == "observed" && report["status"]["runs"].is_null(),
            "{}",
            report["status"]
        );
    }
    let skipped = late["status"]["skipped"].as_array().cloned().unwrap_or_default();
    let all: BTreeSet<&str> = skipped.iter().filter_map(|one| one["node"].as_str()).collect();
    ensure!(all == BTreeSet::from(NODES), "{}", late["status"]);
    ensure!(skipped.iter().all(|one| one["wouldHaveStarted"] == true), "{}", late["status"]);
    let service = partners.log()?.by(&Maint::user(NAMESPACE));
    ensure_only_words(&service)?;
    partners.ensure_safe(&[]).await?;
    Ok(())
}

/// One node after the other; a fourth wish is one too many for this window.
async fn reboot_all(partners: &mut Partners) -> Result<()> {
    let (begins, start) = (minute(0)?, Instant::now());
    restart(partners, &settings("auto", &[window("night", begins, 10)])).await?;
    wait::until(NIGHT, "three boots that are proven", || async {
        let records = partners.cluster.any_client().await?.list(RECORDS).await?;
        let stories: Vec<String> = records.iter().map(story).collect();
        ensure!(records.iter().filter(|record| is_over(record)).count() == 3, "{stories:#?}");
        ensure!(records.iter().all(|record| record["status"]["outcome"] == "Proven"), "{stories:#?}");
        println!("\n{}", stories.join("\n"));
        Ok(Some(()))
    })
    .await?;
    println!("\nfigure kured.cluster_night {:.1} s", start.elapsed().as_secs_f64());
    partners.kureds.require(NODES[0], true)?;
    partners.wait_logged(NODES[0], "waits: window WindowFull", 1).await?;
    // Its end is brought nearer, since nothing more is to be seen in it.
    let ends = minute(1)?;
    let minutes = ends.duration_since(begins).as_mins();
    restart(partners, &settings("auto", &[window("night", begins, minutes)])).await?;
    until(ends).await?;
    let reports = reports(partners, 3).await?;
    let report =
        reports.iter().find(|report| opening(report).starts_with("night-")).context("no report of the night")?;
    let status = &report["status"];
    ensure!(status["verdict"] == "waiting" && status["backlog"] == 1, "{status}");
    let runs = status["runs"].as_array().cloned().unwrap_or_default();
    let nodes: BTreeSet<&str> = runs.iter().filter_map(|run| run["node"].as_str()).collect();
    ensure!(nodes == BTreeSet::from(NODES) && runs.iter().all(|run| run["outcome"] == "Proven"), "{status}");
    partners.ensure_safe(&NODES).await?;
    counted(partners).await?;
    Ok(())
}

/// What the audit log and the processes say of the night.
async fn counted(partners: &Partners) -> Result<()> {
    let log = partners.log()?;
    let service = Maint::user(NAMESPACE);
    for node in NODES {
        ensure!(partners.kureds.lives(node)? == 2, "{} kureds on {node}", partners.kureds.lives(node)?);
        ensure!(acquired(&log, node).len() == 1, "{node} took the lock {} times", acquired(&log, node).len());
        let uncordons = log.uncordons(node);
        ensure!(uncordons.len() == 1 && uncordons[0].user == service, "{node}: {uncordons:?}");
        let away = acquired(&log, node)[0].time.clone();
        let cells = green_cells(&log, &away, &uncordons[0].time);
        ensure!(cells.len() == 9, "{node} was uncordoned after {} of 9 cells: {cells:?}", cells.len());
        let first = log.cordons(node).first().map(|entry| entry.user.clone());
        ensure!(first.as_ref() == Some(&service), "{node} was first cordoned by {first:?}");
        ensure!(
            partners.kureds.log(node)?.contains("Reboot blocked: 1 active alerts: [maint: "),
            "{node} heard no reason"
        );
    }
    for node in partners.cluster.nodes().await? {
        ensure!(!has_taint(&node), "tainted: {} {}", node["metadata"]["name"], node["spec"]);
    }
    for who in [service.clone(), Maint::user("maint-probe"), kured::USER.to_string()] {
        let asked = log.by(&who);
        let refused = refused_for_good(&asked);
        ensure!(!asked.0.is_empty() && refused.is_empty(), "{who} was refused: {refused:?}");
    }
    let all = log.by(&service);
    for (verb, resource) in [
        ("create", "maintenances"),
        ("create", "maintenancereports"),
        ("update", "maintenancereports/status"),
        ("patch", "configmaps"),
    ] {
        ensure_used(verb, resource, &partners.cluster.audit_since("")?.by(&service))?;
    }
    println!("figure kured.cluster_night_requests {} requests", all.0.len());
    Ok(())
}

/// The pairs of API server and node whose kubelet answered `ok` between two instants.
fn green_cells(log: &Log, from: &str, to: &str) -> BTreeSet<(usize, String)> {
    let user = Maint::user("maint-probe");
    let healthy = log.0.iter().filter(|entry| {
        entry.user == user
            && entry.uri.ends_with("/proxy/healthz")
            && entry.code == 200
            && entry.time.as_str() > from
            && entry.time.as_str() < to
    });
    healthy.map(|entry| (entry.server, entry.name.clone())).collect()
}

/// Both replicas anew, with these settings.
async fn restart(partners: &mut Partners, settings: &str) -> Result<()> {
    for name in REPLICAS {
        partners.maint.stop(name);
    }
    partners.maint.write_settings(settings)?;
    partners.start_maint().await
}

fn opening(report: &Value) -> &str {
    report["spec"]["window"]["opening"].as_str().unwrap_or("")
}

/// Waits for the end of a window, of whole minutes; there is nothing else to see it by.
async fn until(instant: Timestamp) -> Result<()> {
    let over = || async { Ok((Timestamp::now() > instant).then_some(())) };
    wait::until(WINDOW, format!("{instant}, when the window ends"), over).await
}

/// Waits for so many reports that were delivered. The leader is stopped first: the next one looks for windows that are
/// over at once, and not a minute later.
async fn reports(partners: &mut Partners, count: usize) -> Result<Vec<Value>> {
    let (leader, _) = partners.maint.leader().await?.context("nobody leads")?;
    partners.maint.stop(&leader);
    let reports = wait::until(REPORT, format!("{count} reports"), || async {
        let mut reports = partners.cluster.any_client().await?.list(REPORTS).await?;
        reports.retain(|report| report["status"]["verdict"].as_str().is_some_and(|verdict| !verdict.is_empty()));
        let verdicts: Vec<_> = reports.iter().map(|one| (opening(one), &one["status"]["verdict"])).collect();
        ensure!(reports.len() == count, "{verdicts:?}");
        Ok(Some(reports))
    })
    .await?;
    for report in &reports {
        let name = report["metadata"]["name"].as_str().context("a report without a name")?;
        wait::until(wait::SHORT, format!("the message of {name}"), || async {
            let kinds = partners.maint.webhooks.kinds(name);
            if kinds == ["report"] { Ok(Some(())) } else { Err(anyhow!("{kinds:?}")) }
        })
        .await?;
    }
    partners.maint.start(&leader, if leader == REPLICAS[0] { 1 } else { 3 })?;
    Ok(reports)
}
