//! Successors: a pod that has the name of one that was to go, on the same node. It is another pod.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::task::AbortHandle;

use super::drain_run::{Drain, NAMESPACE, PODS, accepted, lone_pod, ready, uid_in};
use super::run::NODE;
use super::{Case, case, long};
use crate::harness::admission::{Admission, Verdict};
use crate::harness::client::Client;
use crate::harness::{Cluster, wait};

pub fn cases() -> Vec<Case> {
    let mut all = vec![case("drain::a_successor_outlives_the_eviction_of_its_predecessor", successor_outlives)];
    // Where the controller puts a pod back later than the drain looks, the node was drained before that: this asks for a
    // controller that is quick.
    all.extend(long(vec![case("drain::successors_go_in_their_own_names", successors_go_in_their_own_names)]));
    all
}

/// While the eviction of a pod is on its way, that pod is replaced by another of its name, which is to stay.
async fn successor_outlives(cluster: Arc<Cluster>) -> Result<()> {
    cluster.namespace(NAMESPACE).await?;
    let client = cluster.any_client().await?;
    lone_pod(&client, "fixed", &json!({})).await?;
    let first = ready(&client, "fixed").await?;
    let admission = Admission::start(&cluster, NAMESPACE, "fixed", Verdict::Hold).await?;
    let drain = Drain::begin(&cluster, &[], "").await?;
    drain.record("the eviction to be at the webhook", |_| admission.asked() > 0).await?;
    client.delete(&format!("{PODS}/fixed"), Some(&json!({ "gracePeriodSeconds": 0 }))).await?;
    lone_pod(&client, "fixed", &json!({ "labels": { "cluster.x-k8s.io/drain": "skip" } })).await?;
    admission.release();
    let second = ready(&client, "fixed").await?;
    ensure!(first != second, "the pod was not replaced");
    drain.ends_drained().await?;
    let evictions = wait::until(wait::SHORT, "the end of the eviction", || async {
        Ok(Some(drain.evictions("fixed")?).filter(|evictions| !evictions.is_empty()))
    })
    .await?;
    ensure!(evictions.len() == 1 && !accepted(&evictions[0]), "one, of a pod that was gone: {evictions:?}");
    ensure!(uid_in(&evictions[0]) == Some(&first), "it named another: {evictions:?}");
    let pod = client.get(&format!("{PODS}/fixed")).await?;
    let (uid, ends) = (&pod["metadata"]["uid"], &pod["metadata"]["deletionTimestamp"]);
    ensure!(*uid == second.as_str() && ends.is_null(), "the successor was hit: {}", pod["metadata"]);
    Ok(())
}

/// What a watch of one pod's name has seen: each uid in its order, and whether it is gone.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(String, bool)>>>);

impl Seen {
    /// Watches; the watch ends with the handle's abort.
    async fn start(client: &Client, name: &str) -> Result<(Self, AbortHandle)> {
        let path = format!("{PODS}?watch=true&fieldSelector=metadata.name%3D{name}&timeoutSeconds=300");
        let mut events = client.watch(&path).await?;
        let seen = Self::default();
        let into = seen.clone();
        let task = tokio::spawn(async move {
            while let Ok(Some(event)) = events.next().await {
                let uid = event["object"]["metadata"]["uid"].as_str().unwrap_or("").to_string();
                let mut all = into.0.lock().unwrap_or_else(PoisonError::into_inner);
                match all.iter_mut().find(|(one, _)| *one == uid) {
                    Some((_, gone)) => *gone |= event["type"] == "DELETED",
                    None => all.push((uid, event["type"] == "DELETED")),
                }
            }
        });
        Ok((seen, task.abort_handle()))
    }

    fn all(&self) -> Vec<(String, bool)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A StatefulSet that tolerates the cordon puts its pod back on the node, again and again: each of them has to go, by an
/// eviction of its own, and later each time.
async fn successors_go_in_their_own_names(cluster: Arc<Cluster>) -> Result<()> {
    cluster.namespace(NAMESPACE).await?;
    let client = cluster.any_client().await?;
    let sets = format!("/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets");
    let labels = json!({ "app": "seat" });
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "seat" },
        "spec": { "replicas": 1, "serviceName": "seat", "selector": { "matchLabels": labels }, "template": {
            "metadata": { "labels": labels }, "spec": {
                "nodeSelector": { "kubernetes.io/hostname": NODE }, "terminationGracePeriodSeconds": 1,
                "tolerations": [{ "key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule" }],
                "containers": [{ "name": "main", "image": "test" }] } } },
    });
    client.create(&sets, &set).await?;
    ready(&client, "seat-0").await?;
    let (seen, watching) = Seen::start(&client, "seat-0").await?;
    let drain = Drain::begin(&cluster, &[], "").await?;
    let words = ["is on the node again after its eviction", "it tolerates the cordon"];
    drain.only_left("seat-0", &words).await?;
    drain.record("a second successor", |_| seen.all().len() > 2).await?;
    let replaced: Vec<_> = seen.all().into_iter().filter(|(_, gone)| *gone).map(|(uid, _)| uid).collect();
    client.merge(&format!("{sets}/seat"), &json!({ "spec": { "replicas": 0 } })).await?;
    drain.ends_drained().await?;
    watching.abort();
    let evictions = drain.evictions("seat-0")?;
    // Nobody else ends these pods before the StatefulSet is told to.
    for uid in &replaced {
        let of_it = evictions.iter().filter(|entry| uid_in(entry) == Some(uid) && accepted(entry)).count();
        ensure!(of_it == 1, "{uid} was evicted {of_it} times: {evictions:?}");
    }
    let times: Vec<jiff::Timestamp> = evictions.iter().map(|entry| entry.time.parse()).collect::<Result<_, _>>()?;
    ensure!(times.windows(2).all(|pair| pair[1].duration_since(pair[0]).as_secs() >= 4), "too often: {times:?}");
    let mut named: Vec<_> = evictions.iter().filter_map(uid_in).collect();
    named.dedup();
    let order: Vec<_> = seen.all().into_iter().map(|(uid, _)| uid).collect();
    // Once a successor was named, none before it is.
    ensure!(
        order.starts_with(&named.iter().map(|uid| (*uid).to_string()).collect::<Vec<_>>()),
        "{named:?} of {order:?}"
    );
    Ok(())
}
