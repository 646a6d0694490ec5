//! Drains that wait for somebody else, and go on by themselves: an operator, a finalizer, a Job, a webhook.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::sync::oneshot;

use super::drain_run::{Drain, NAMESPACE, PODS, accepted, app_on_node, lone_pod, ready, uid_in};
use super::run::NODE;
use super::{Case, case};
use crate::harness::admission::{self, Admission, Verdict};
use crate::harness::cnpg::{Database, OPERATOR};
use crate::harness::{Cluster, wait};

pub fn cases() -> Vec<Case> {
    let mut all = vec![
        case("drain::a_primary_goes_when_its_operator_has_moved_it", operator_moves_the_primary),
        case("drain::a_finalizer_is_named_and_waited_for", finalizer_is_taken_off),
        case("drain::a_finalizer_that_stays_ends_it_at_the_deadline", finalizer_stays),
        case("drain::a_job_is_left_to_finish", job_finishes),
        case("drain::a_webhook_refuses_twice_and_holds_nobody_else", webhook_refuses_twice),
    ];
    all.extend(super::long(vec![case(
        "drain::a_pod_that_does_not_end_for_a_minute_is_called_stuck",
        finalizer_for_long,
    )]));
    all
}

/// The budget of a primary allows nothing until its operator has moved it, which it does when it sees the cordon.
async fn operator_moves_the_primary(cluster: Arc<Cluster>) -> Result<()> {
    cluster.namespace(NAMESPACE).await?;
    let database = Database::create(&cluster, NAMESPACE, [NODE, "worker3"]).await?;
    let drain = Drain::begin(&cluster, &[], "").await?;
    let (may, waits) = oneshot::channel();
    let operator = database.operator(waits);
    let words = ["is blocked by budget case-drain/db-primary", "CloudNativePG lifts it by itself"];
    drain.only_left("db-1", &words).await?;
    may.send(()).ok().context("the operator is gone")?;
    operator.await??;
    drain.ends_drained().await?;
    let moved = drain.written_by(OPERATOR)?;
    let moved = moved.iter().find(|entry| entry.name == "db-1").context("nobody moved the primary")?;
    let evictions = drain.evictions("db-1")?;
    // It was known that each of them would be refused; one may meet a budget that has just changed.
    let early: Vec<_> = evictions.iter().filter(|entry| entry.time < moved.time).collect();
    ensure!(early.len() <= 1 && early.iter().all(|entry| entry.code == 429), "before the switchover: {early:?}");
    ensure!(evictions.iter().filter(|entry| accepted(entry)).count() == 1, "{evictions:?}");
    ensure!(drain.evictions("db-2")?.is_empty(), "the new primary was to stay");
    ready(&drain.client, "db-2").await.map(drop)
}

/// A pod that has ended and that a finalizer keeps.
async fn held_pod(cluster: &Arc<Cluster>, run: &[(&str, u64)]) -> Result<Drain> {
    cluster.namespace(NAMESPACE).await?;
    let client = cluster.any_client().await?;
    lone_pod(&client, "held", &json!({ "finalizers": ["test/hold"] })).await?;
    ready(&client, "held").await?;
    let drain = Drain::begin(cluster, run, "").await?;
    drain.only_left("held", &["is ending", "it has the finalizers test/hold"]).await?;
    Ok(drain)
}

async fn finalizer_is_taken_off(cluster: Arc<Cluster>) -> Result<()> {
    let drain = held_pod(&cluster, &[]).await?;
    drain.client.merge(&format!("{PODS}/held"), &json!({ "metadata": { "finalizers": null } })).await?;
    drain.ends_drained().await?;
    let evictions = drain.evictions("held")?;
    ensure!(evictions.len() == 1 && accepted(&evictions[0]), "what ends is not asked again: {evictions:?}");
    Ok(())
}

/// A minute after its time.
async fn finalizer_for_long(cluster: Arc<Cluster>) -> Result<()> {
    let drain = held_pod(&cluster, &[("drain_timeout_seconds", 150)]).await?;
    drain.only_left("held", &["is stuck: it should have ended by", "it has the finalizers test/hold"]).await?;
    drain.client.merge(&format!("{PODS}/held"), &json!({ "metadata": { "finalizers": null } })).await?;
    drain.ends_drained().await
}

/// Nobody takes it off: never forced, all put back.
async fn finalizer_stays(cluster: Arc<Cluster>) -> Result<()> {
    let drain = held_pod(&cluster, &[("drain_timeout_seconds", 15)]).await?;
    drain.fails_at_its_deadline(&["case-drain/held is ending", "it has the finalizers test/hold"]).await?;
    let evictions = drain.evictions("held")?;
    ensure!(evictions.len() == 1 && accepted(&evictions[0]), "what ends is not asked again: {evictions:?}");
    let pod = drain.client.get(&format!("{PODS}/held")).await?;
    ensure!(pod["metadata"]["finalizers"] == json!(["test/hold"]), "forced: {}", pod["metadata"]);
    Ok(())
}

const BUILDS: &str = "[[drain.rules]]\nname = \"builds\"\npods = \"app=build\"\nthen = \"wait-for-completion\"\n";

/// A Job's pod that a rule lets finish is never evicted; the others go meanwhile.
async fn job_finishes(cluster: Arc<Cluster>) -> Result<()> {
    cluster.namespace(NAMESPACE).await?;
    let others = app_on_node(&cluster).await?;
    let client = cluster.any_client().await?;
    let jobs = format!("/apis/batch/v1/namespaces/{NAMESPACE}/jobs");
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "build" },
        "spec": { "template": { "metadata": { "labels": { "app": "build" } }, "spec": {
            "nodeName": NODE, "restartPolicy": "Never", "containers": [{ "name": "main", "image": "test" }] } } },
    });
    client.create(&jobs, &job).await?;
    let name = wait::until(wait::CONTROLLERS, "the Job's pod", || async {
        let pods = client.list(&format!("{PODS}?labelSelector=app%3Dbuild")).await?;
        Ok(pods.first().and_then(|pod| pod["metadata"]["name"].as_str().map(String::from)))
    })
    .await?;
    let uid = ready(&client, &name).await?;
    let drain = Drain::begin(&cluster, &[], BUILDS).await?;
    drain.only_left(&name, &["is left to finish by itself"]).await?;
    let gone: Vec<_> = drain.evictions_but(&name)?.into_iter().filter(accepted).map(|entry| entry.name).collect();
    ensure!(others.iter().all(|other| gone.contains(other)), "{others:?} were to go meanwhile: {gone:?}");
    client
        .merge(&format!("{PODS}/{name}"), &json!({ "metadata": { "annotations": { "test/finish": "true" } } }))
        .await?;
    drain.ends_drained().await?;
    ensure!(drain.evictions(&name)?.is_empty(), "it was evicted: {:?}", drain.evictions(&name)?);
    let pod = client.get(&format!("{PODS}/{name}")).await?;
    ensure!(pod["metadata"]["uid"] == uid.as_str() && pod["status"]["phase"] == "Succeeded", "{pod}");
    wait::until(wait::CONTROLLERS, "the Job to be complete", || async {
        Ok((client.get(&format!("{jobs}/build")).await?["status"]["succeeded"] == 1).then_some(()))
    })
    .await
}

const REFUSAL: &str = "its volume is being moved";

/// What is refused is asked again later, three times in all, and nobody waits for it.
async fn webhook_refuses_twice(cluster: Arc<Cluster>) -> Result<()> {
    cluster.namespace(NAMESPACE).await?;
    let here = app_on_node(&cluster).await?;
    let pod = here[0].as_str();
    let uid = ready(&cluster.any_client().await?, pod).await?;
    let admission = Admission::start(&cluster, NAMESPACE, pod, Verdict::Refuse(2, REFUSAL)).await?;
    let drain = Drain::begin(&cluster, &[], "").await?;
    drain.only_left(pod, &["was denied by a webhook", admission::NAME, REFUSAL]).await?;
    drain.ends_drained().await?;
    let evictions = drain.evictions(pod)?;
    let codes: Vec<u16> = evictions.iter().map(|entry| entry.code).collect();
    ensure!(codes == [403, 403, 201] && admission.asked() == 3, "asked {} times: {codes:?}", admission.asked());
    ensure!(evictions.iter().all(|entry| uid_in(entry) == Some(&uid)), "{evictions:?}");
    // Each refusal is a reason to wait longer.
    let times: Vec<jiff::Timestamp> = evictions.iter().map(|entry| entry.time.parse()).collect::<Result<_, _>>()?;
    let pauses = [times[1].duration_since(times[0]).as_secs(), times[2].duration_since(times[1]).as_secs()];
    ensure!(pauses[0] >= 9 && pauses[1] >= 19, "pauses of {pauses:?} s");
    let others = drain.evictions_but(pod)?;
    for other in &here[1..] {
        let gone = others.iter().any(|entry| entry.name == *other && accepted(entry) && entry.done < evictions[1].time);
        ensure!(gone, "{other} was held up: {others:?}");
    }
    Ok(())
}
