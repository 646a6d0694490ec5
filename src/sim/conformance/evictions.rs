//! `pods/eviction` and disruption budgets.

use serde_json::{Value, json};

use super::pods::{all, make, ready, remove};
use super::probe::{Failure, Probe, equal};
use super::{Needs, behaviours};

behaviours!(
    Needs::Pods,
    [
        evict_without_budget_is_201_and_marks_the_pod,
        evict_of_a_missing_pod_is_404,
        evict_of_another_name_is_400,
        evict_with_another_uid_is_409,
        evict_with_its_uid_is_201,
        evict_of_a_terminating_pod_is_201,
        evict_in_dry_run_leaves_the_pod,
        evict_beyond_the_budget_is_429_with_a_cause_and_no_retry_after,
        evict_within_the_budget_takes_from_it,
        evict_under_two_budgets_is_500_without_reason,
        evict_of_a_pending_pod_asks_no_budget,
        evict_honours_its_grace_period,
    ]
);

async fn evict(probe: &Probe, name: &str, options: Value) -> Result<super::Reply, Failure> {
    let body = json!({"apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": name, "namespace": probe.capabilities.namespace}, "deleteOptions": options});
    probe.post(&format!("{}/{name}/eviction", all(probe)), &body).await
}

fn budgets(probe: &Probe) -> String {
    probe.path("policy/v1", "poddisruptionbudgets")
}

/// A budget over this behaviour's pods with the status that the disruption controller arrives at; where it runs it
/// writes the same.
async fn budget(probe: &Probe, name: &str, healthy: i64, allowed: i64) -> Result<(), Failure> {
    let body = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"behaviour": probe.name}}}});
    probe.post(&budgets(probe), &body).await?.code(201)?;
    let status = json!({"status": {"observedGeneration": 1, "currentHealthy": healthy, "desiredHealthy": 1,
        "expectedPods": healthy, "disruptionsAllowed": allowed}});
    let path = format!("{}/{name}", budgets(probe));
    probe.patch(&format!("{path}/status"), "merge-patch", &status).await?.code(200)?;
    probe.wait_for(&path, "/status/currentHealthy", &json!(healthy)).await?;
    probe.wait_for(&path, "/status/disruptionsAllowed", &json!(allowed)).await?;
    Ok(())
}

async fn clean(probe: &Probe, pods: &[&str], names: &[&str]) -> Result<(), Failure> {
    for name in names {
        probe.delete(&format!("{}/{name}", budgets(probe)), &json!({})).await?.code(200)?;
    }
    for name in pods {
        remove(probe, name).await?;
    }
    Ok(())
}

async fn running(probe: &Probe) -> Result<super::Reply, Failure> {
    make(probe, &probe.name).await?;
    ready(probe, &probe.name, "Running").await
}

async fn evict_without_budget_is_201_and_marks_the_pod(probe: &Probe) -> Result<(), Failure> {
    running(probe).await?;
    evict(probe, &probe.name, json!({})).await?.code(201)?.field("/status", json!("Success"))?;
    let pod = probe.get(&format!("{}/{}", all(probe), probe.name)).await?.code(200)?;
    equal("deletionTimestamp", &pod.at("/metadata/deletionTimestamp").is_string(), &true)?;
    let conditions = pod.at("/status/conditions");
    let mark = conditions.as_array().and_then(|list| list.iter().find(|entry| entry["type"] == "DisruptionTarget"));
    equal("reason", &mark.map(|entry| entry["reason"].clone()), &Some(json!("EvictionByEvictionAPI")))?;
    clean(probe, &[&probe.name], &[]).await
}

async fn evict_of_a_missing_pod_is_404(probe: &Probe) -> Result<(), Failure> {
    evict(probe, &probe.name, json!({})).await?.status(404, "NotFound")?;
    Ok(())
}

async fn evict_of_another_name_is_400(probe: &Probe) -> Result<(), Failure> {
    running(probe).await?;
    let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "another"}});
    probe.post(&format!("{}/{}/eviction", all(probe), probe.name), &body).await?.status(400, "BadRequest")?;
    clean(probe, &[&probe.name], &[]).await
}

async fn evict_with_another_uid_is_409(probe: &Probe) -> Result<(), Failure> {
    running(probe).await?;
    let options = json!({"preconditions": {"uid": "6f8b7a1c-0000-4000-8000-000000000000"}});
    evict(probe, &probe.name, options).await?.status(409, "Conflict")?;
    let pod = probe.get(&format!("{}/{}", all(probe), probe.name)).await?.code(200)?;
    pod.field("/metadata/deletionTimestamp", Value::Null)?;
    clean(probe, &[&probe.name], &[]).await
}

async fn evict_with_its_uid_is_201(probe: &Probe) -> Result<(), Failure> {
    let uid = running(probe).await?.at("/metadata/uid");
    evict(probe, &probe.name, json!({"preconditions": {"uid": uid}})).await?.code(201)?;
    clean(probe, &[&probe.name], &[]).await
}

async fn evict_of_a_terminating_pod_is_201(probe: &Probe) -> Result<(), Failure> {
    running(probe).await?;
    budget(probe, &probe.name, 1, 0).await?;
    probe.delete(&format!("{}/{}", all(probe), probe.name), &json!({})).await?.code(200)?;
    evict(probe, &probe.name, json!({})).await?.code(201)?;
    clean(probe, &[&probe.name], &[&probe.name]).await
}

async fn evict_in_dry_run_leaves_the_pod(probe: &Probe) -> Result<(), Failure> {
    running(probe).await?;
    evict(probe, &probe.name, json!({"dryRun": ["All"]})).await?.code(201)?;
    let pod = probe.get(&format!("{}/{}", all(probe), probe.name)).await?.code(200)?;
    pod.field("/metadata/deletionTimestamp", Value::Null)?;
    clean(probe, &[&probe.name], &[]).await
}

async fn evict_beyond_the_budget_is_429_with_a_cause_and_no_retry_after(probe: &Probe) -> Result<(), Failure> {
    running(probe).await?;
    budget(probe, &probe.name, 1, 0).await?;
    let reply = evict(probe, &probe.name, json!({})).await?.status(429, "TooManyRequests")?;
    let reply = reply.field("/details/causes/0/reason", json!("DisruptionBudget"))?;
    equal("Retry-After", &reply.headers.contains_key("retry-after"), &false)?;
    let wanted = format!("The disruption budget {} needs 1 healthy pods and has 1 currently", probe.name);
    reply
        .field("/message", json!("Cannot evict pod as it would violate the pod's disruption budget."))?
        .field("/details/causes/0/message", json!(wanted))?
        .field("/details/retryAfterSeconds", Value::Null)?;
    clean(probe, &[&probe.name], &[&probe.name]).await
}

async fn evict_within_the_budget_takes_from_it(probe: &Probe) -> Result<(), Failure> {
    let other = format!("{}-2", probe.name);
    running(probe).await?;
    make(probe, &other).await?;
    ready(probe, &other, "Running").await?;
    budget(probe, &probe.name, 2, 1).await?;
    evict(probe, &probe.name, json!({})).await?.code(201)?;
    let path = format!("{}/{}", budgets(probe), probe.name);
    probe.wait_for(&path, "/status/disruptionsAllowed", &json!(0)).await?;
    evict(probe, &other, json!({})).await?.status(429, "TooManyRequests")?;
    clean(probe, &[&probe.name, &other], &[&probe.name]).await
}

async fn evict_under_two_budgets_is_500_without_reason(probe: &Probe) -> Result<(), Failure> {
    let second = format!("{}-2", probe.name);
    running(probe).await?;
    budget(probe, &probe.name, 1, 0).await?;
    budget(probe, &second, 1, 0).await?;
    let reply = evict(probe, &probe.name, json!({})).await?.code(500)?.field("/reason", Value::Null)?;
    equal("message", &reply.str("/message").contains("more than one PodDisruptionBudget"), &true)?;
    clean(probe, &[&probe.name], &[&probe.name, &second]).await
}

async fn evict_of_a_pending_pod_asks_no_budget(probe: &Probe) -> Result<(), Failure> {
    make(probe, &probe.name).await?;
    let body = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": probe.name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"behaviour": probe.name}}}});
    probe.post(&budgets(probe), &body).await?.code(201)?;
    evict(probe, &probe.name, json!({})).await?.code(201)?;
    clean(probe, &[&probe.name], &[&probe.name]).await
}

async fn evict_honours_its_grace_period(probe: &Probe) -> Result<(), Failure> {
    running(probe).await?;
    evict(probe, &probe.name, json!({"gracePeriodSeconds": 7})).await?.code(201)?;
    let pod = probe.get(&format!("{}/{}", all(probe), probe.name)).await?.code(200)?;
    pod.field("/metadata/deletionGracePeriodSeconds", json!(7))?;
    clean(probe, &[&probe.name], &[]).await
}
