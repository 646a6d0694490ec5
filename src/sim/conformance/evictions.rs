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
        evict_of_a_finished_pod_asks_no_budget,
        evict_of_a_pending_pod_asks_not_even_two_budgets,
        evict_of_a_pending_pod_with_another_uid_is_409_after_10_s,
        evict_with_another_uid_spends_the_budget_all_the_same,
        evict_of_an_unready_pod_is_free_where_the_budget_is_met,
        evict_of_an_unready_pod_below_the_budget_is_429,
        evict_of_an_unready_pod_is_always_free_where_that_is_said,
        evict_of_a_ready_pod_under_always_allow_asks_the_budget,
        evict_of_an_unready_pod_with_another_uid_is_429,
        evict_under_an_unobserved_budget_is_429_with_retry_after,
        evict_under_a_budget_that_failed_to_sync_is_429,
        evict_in_dry_run_counts_nothing,
        evict_under_two_budgets_in_dry_run_is_500_too,
        evict_under_a_budget_of_all_and_one_of_none_asks_one,
        evict_without_kind_is_201,
        evict_with_an_unknown_field_is_400_where_that_is_strict,
        evict_with_a_grace_in_its_metadata_keeps_the_pods_own,
    ]
);

/// The behaviours that need a namespace of their own.
pub(super) const IN_NAMESPACES: &[super::Behaviour] = &[super::Behaviour {
    name: "evict_in_a_namespace_that_ends_is_403_with_a_cause",
    needs: Needs::Namespaces,
    run: |probe| Box::pin(evict_in_a_namespace_that_ends_is_403_with_a_cause(probe)),
}];

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

/// A budget as [`budget`], with a specification and a status of its own. The disruption controller, where it runs, may
/// write another status: what is asked then comes right after the write.
async fn budget_of(probe: &Probe, spec: &Value, status: &Value) -> Result<(), Failure> {
    let mut spec = spec.clone();
    if let Some(map) = spec.as_object_mut() {
        map.entry("selector").or_insert_with(|| json!({"matchLabels": {"behaviour": probe.name}}));
    }
    let body = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": probe.name},
        "spec": spec});
    probe.post(&budgets(probe), &body).await?.code(201)?;
    let path = format!("{}/{}/status", budgets(probe), probe.name);
    probe.patch(&path, "merge-patch", &json!({"status": status})).await?.code(200)?;
    Ok(())
}

/// A running pod that is not Ready.
async fn unready(probe: &Probe, name: &str) -> Result<(), Failure> {
    make(probe, name).await?;
    let patch = json!({"status": {"phase": "Running"}});
    let status = format!("{}/{name}/status", all(probe));
    probe.patch(&status, "strategic-merge-patch", &patch).await?.code(200)?;
    Ok(())
}

async fn other_uid(probe: &Probe, name: &str) -> Result<super::Reply, Failure> {
    evict(probe, name, json!({"preconditions": {"uid": "6f8b7a1c-0000-4000-8000-000000000000"}})).await
}

async fn evict_of_a_finished_pod_asks_no_budget(probe: &Probe) -> Result<(), Failure> {
    make(probe, &probe.name).await?;
    ready(probe, &probe.name, "Failed").await?;
    let status = json!({"observedGeneration": 1, "currentHealthy": 0, "desiredHealthy": 1, "expectedPods": 1,
        "disruptionsAllowed": 0});
    budget_of(probe, &json!({"minAvailable": 1}), &status).await?;
    evict(probe, &probe.name, json!({})).await?.code(201)?;
    clean(probe, &[&probe.name], &[&probe.name]).await
}

async fn evict_of_a_pending_pod_asks_not_even_two_budgets(probe: &Probe) -> Result<(), Failure> {
    let second = format!("{}-2", probe.name);
    make(probe, &probe.name).await?;
    for name in [&probe.name, &second] {
        let body = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"behaviour": probe.name}}}});
        probe.post(&budgets(probe), &body).await?.code(201)?;
    }
    evict(probe, &probe.name, json!({})).await?.code(201)?;
    clean(probe, &[&probe.name], &[&probe.name, &second]).await
}

async fn evict_of_a_pending_pod_with_another_uid_is_409_after_10_s(probe: &Probe) -> Result<(), Failure> {
    make(probe, &probe.name).await?;
    let begun = crate::clock::monotonic();
    other_uid(probe, &probe.name).await?.status(409, "Conflict")?;
    let took = crate::clock::monotonic().duration_since(begun).as_secs();
    equal("it took about 10 s", &(9..=14).contains(&took), &true)?;
    clean(probe, &[&probe.name], &[]).await
}

async fn evict_with_another_uid_spends_the_budget_all_the_same(probe: &Probe) -> Result<(), Failure> {
    let other = format!("{}-2", probe.name);
    running(probe).await?;
    make(probe, &other).await?;
    ready(probe, &other, "Running").await?;
    budget(probe, &probe.name, 2, 1).await?;
    other_uid(probe, &probe.name).await?.status(409, "Conflict")?;
    let path = format!("{}/{}", budgets(probe), probe.name);
    let found = probe.wait_for(&path, "/status/disruptionsAllowed", &json!(0)).await?;
    equal("named", &found.at(&format!("/status/disruptedPods/{}", probe.name)).is_string(), &true)?;
    // The name stays there for two minutes, and nobody else may go meanwhile.
    let reply = evict(probe, &other, json!({})).await?.status(429, "TooManyRequests")?;
    reply.field("/details/causes/0/reason", json!("DisruptionBudget"))?;
    clean(probe, &[&probe.name, &other], &[&probe.name]).await
}

async fn evict_of_an_unready_pod_is_free_where_the_budget_is_met(probe: &Probe) -> Result<(), Failure> {
    let other = format!("{}-2", probe.name);
    unready(probe, &probe.name).await?;
    make(probe, &other).await?;
    ready(probe, &other, "Running").await?;
    budget(probe, &probe.name, 1, 0).await?;
    evict(probe, &probe.name, json!({})).await?.code(201)?;
    let path = format!("{}/{}", budgets(probe), probe.name);
    probe.get(&path).await?.code(200)?.field("/status/disruptedPods", Value::Null)?;
    evict(probe, &other, json!({})).await?.status(429, "TooManyRequests")?;
    clean(probe, &[&probe.name, &other], &[&probe.name]).await
}

async fn evict_of_an_unready_pod_below_the_budget_is_429(probe: &Probe) -> Result<(), Failure> {
    unready(probe, &probe.name).await?;
    budget(probe, &probe.name, 0, 0).await?;
    let reply = evict(probe, &probe.name, json!({})).await?.status(429, "TooManyRequests")?;
    let wanted = format!("The disruption budget {} needs 1 healthy pods and has 0 currently", probe.name);
    reply.field("/details/causes/0/message", json!(wanted))?;
    clean(probe, &[&probe.name], &[&probe.name]).await
}

const ALWAYS: &str = "AlwaysAllow";

async fn evict_of_an_unready_pod_is_always_free_where_that_is_said(probe: &Probe) -> Result<(), Failure> {
    unready(probe, &probe.name).await?;
    let status = json!({"observedGeneration": 1, "currentHealthy": 0, "desiredHealthy": 1, "expectedPods": 1,
        "disruptionsAllowed": 0});
    budget_of(probe, &json!({"minAvailable": 1, "unhealthyPodEvictionPolicy": ALWAYS}), &status).await?;
    evict(probe, &probe.name, json!({})).await?.code(201)?;
    clean(probe, &[&probe.name], &[&probe.name]).await
}

async fn evict_of_a_ready_pod_under_always_allow_asks_the_budget(probe: &Probe) -> Result<(), Failure> {
    running(probe).await?;
    let status = json!({"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
        "disruptionsAllowed": 0});
    budget_of(probe, &json!({"minAvailable": 1, "unhealthyPodEvictionPolicy": ALWAYS}), &status).await?;
    evict(probe, &probe.name, json!({})).await?.status(429, "TooManyRequests")?;
    clean(probe, &[&probe.name], &[&probe.name]).await
}

async fn evict_of_an_unready_pod_with_another_uid_is_429(probe: &Probe) -> Result<(), Failure> {
    unready(probe, &probe.name).await?;
    let status = json!({"observedGeneration": 1, "currentHealthy": 0, "desiredHealthy": 1, "expectedPods": 1,
        "disruptionsAllowed": 0});
    budget_of(probe, &json!({"minAvailable": 1, "unhealthyPodEvictionPolicy": ALWAYS}), &status).await?;
    let reply = other_uid(probe, &probe.name).await?.status(429, "TooManyRequests")?;
    let wanted = format!("The disruption budget {} is still being processed by the server.", probe.name);
    reply
        .field("/details/causes/0/reason", json!("DisruptionBudget"))?
        .field("/details/causes/0/message", json!(wanted))?
        .field("/details/retryAfterSeconds", json!(10))?;
    clean(probe, &[&probe.name], &[&probe.name]).await
}

/// A running pod that belongs to what cannot be scaled. The controller of budgets cannot judge one that covers it: it writes
/// what failed, and not which generation it saw. So such a budget stays as it is, whether the controller runs or not.
async fn beyond_scaling(probe: &Probe) -> Result<(), Failure> {
    running(probe).await?;
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": probe.name}});
    let owner = probe.post(&config_maps(probe), &body).await?.code(201)?.str("/metadata/uid");
    let reference =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": probe.name, "uid": owner, "controller": true});
    let patch = json!({"metadata": {"ownerReferences": [reference]}});
    probe.patch(&format!("{}/{}", all(probe), probe.name), "merge-patch", &patch).await?.code(200)?;
    Ok(())
}

fn config_maps(probe: &Probe) -> String {
    all(probe).replace("/pods", "/configmaps")
}

async fn evict_under_an_unobserved_budget_is_429_with_retry_after(probe: &Probe) -> Result<(), Failure> {
    beyond_scaling(probe).await?;
    let status = json!({"observedGeneration": 0, "currentHealthy": 1, "desiredHealthy": 0, "expectedPods": 1,
        "disruptionsAllowed": 0});
    budget_of(probe, &json!({"maxUnavailable": 1}), &status).await?;
    let reply = evict(probe, &probe.name, json!({})).await?.status(429, "TooManyRequests")?;
    let wanted = format!("The disruption budget {} is still being processed by the server.", probe.name);
    equal("Retry-After", &header(&reply), &Some("10".to_owned()))?;
    reply
        .field("/details/causes/0/reason", json!("DisruptionBudget"))?
        .field("/details/causes/0/message", json!(wanted))?
        .field("/details/retryAfterSeconds", json!(10))?;
    clean(probe, &[&probe.name], &[&probe.name]).await?;
    probe.delete(&format!("{}/{}", config_maps(probe), probe.name), &json!({})).await?.code(200)?;
    Ok(())
}

fn header(reply: &super::Reply) -> Option<String> {
    reply.headers.get("retry-after").and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// The words "failed sync" are in the cause from 1.35 on.
async fn evict_under_a_budget_that_failed_to_sync_is_429(probe: &Probe) -> Result<(), Failure> {
    beyond_scaling(probe).await?;
    let why = "pods does not implement the scale subresource";
    let status = json!({"observedGeneration": 1, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0,
        "disruptionsAllowed": 0, "conditions": [{"type": "DisruptionAllowed", "status": "False",
            "reason": "SyncFailed", "message": why, "lastTransitionTime": "2026-11-30T02:00:00Z"}]});
    budget_of(probe, &json!({"maxUnavailable": 1}), &status).await?;
    let reply = evict(probe, &probe.name, json!({})).await?.status(429, "TooManyRequests")?;
    let cause = reply.str("/details/causes/0/message");
    equal("reason", &reply.at("/details/causes/0/reason"), &json!("DisruptionBudget"))?;
    equal("names it", &cause.starts_with(&format!("The disruption budget {} ", probe.name)), &true)?;
    equal("Retry-After", &header(&reply), &None)?;
    clean(probe, &[&probe.name], &[&probe.name]).await?;
    probe.delete(&format!("{}/{}", config_maps(probe), probe.name), &json!({})).await?.code(200)?;
    Ok(())
}

async fn evict_in_dry_run_counts_nothing(probe: &Probe) -> Result<(), Failure> {
    let other = format!("{}-2", probe.name);
    running(probe).await?;
    make(probe, &other).await?;
    ready(probe, &other, "Running").await?;
    budget(probe, &probe.name, 2, 1).await?;
    for name in [&probe.name, &other] {
        evict(probe, name, json!({"dryRun": ["All"]})).await?.code(201)?;
    }
    let path = format!("{}/{}", budgets(probe), probe.name);
    probe.get(&path).await?.code(200)?.field("/status/disruptionsAllowed", json!(1))?;
    clean(probe, &[&probe.name, &other], &[&probe.name]).await
}

async fn evict_under_two_budgets_in_dry_run_is_500_too(probe: &Probe) -> Result<(), Failure> {
    let second = format!("{}-2", probe.name);
    running(probe).await?;
    budget(probe, &probe.name, 1, 0).await?;
    budget(probe, &second, 1, 0).await?;
    evict(probe, &probe.name, json!({"dryRun": ["All"]})).await?.code(500)?;
    clean(probe, &[&probe.name], &[&probe.name, &second]).await
}

/// `{}` selects every pod of the namespace, null none. The one of all pods is there for a moment only.
async fn evict_under_a_budget_of_all_and_one_of_none_asks_one(probe: &Probe) -> Result<(), Failure> {
    let none = format!("{}-2", probe.name);
    running(probe).await?;
    let body = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": none},
        "spec": {"minAvailable": 1, "selector": null}});
    probe.post(&budgets(probe), &body).await?.code(201)?;
    let status = json!({"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 5, "expectedPods": 1,
        "disruptionsAllowed": 0});
    budget_of(probe, &json!({"minAvailable": 1000, "selector": {}}), &status).await?;
    let reply = evict(probe, &probe.name, json!({"dryRun": ["All"]})).await?.status(429, "TooManyRequests")?;
    let cause = reply.str("/details/causes/0/message");
    equal("names the one of all", &cause.starts_with(&format!("The disruption budget {} ", probe.name)), &true)?;
    clean(probe, &[&probe.name], &[&probe.name, &none]).await
}

async fn evict_without_kind_is_201(probe: &Probe) -> Result<(), Failure> {
    running(probe).await?;
    let body = json!({"metadata": {"name": probe.name}});
    probe.post(&format!("{}/{}/eviction", all(probe), probe.name), &body).await?.code(201)?;
    clean(probe, &[&probe.name], &[]).await
}

async fn evict_with_an_unknown_field_is_400_where_that_is_strict(probe: &Probe) -> Result<(), Failure> {
    running(probe).await?;
    let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": probe.name},
        "delete_options": {"preconditions": {"uid": "6f8b7a1c-0000-4000-8000-000000000000"}}});
    let path = format!("{}/{}/eviction", all(probe), probe.name);
    let reply = probe.post(&format!("{path}?fieldValidation=Strict"), &body).await?.status(400, "BadRequest")?;
    equal("names it", &reply.str("/message").contains("unknown field \"delete_options\""), &true)?;
    // Without that it is dropped, and with it what it was to guard.
    probe.post(&path, &body).await?.code(201)?;
    clean(probe, &[&probe.name], &[]).await
}

async fn evict_with_a_grace_in_its_metadata_keeps_the_pods_own(probe: &Probe) -> Result<(), Failure> {
    running(probe).await?;
    let body = json!({"apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": probe.name, "deletionGracePeriodSeconds": 7}});
    probe.post(&format!("{}/{}/eviction", all(probe), probe.name), &body).await?.code(201)?;
    let pod = probe.get(&format!("{}/{}", all(probe), probe.name)).await?.code(200)?;
    pod.field("/metadata/deletionGracePeriodSeconds", json!(30))?;
    clean(probe, &[&probe.name], &[]).await
}

/// Also for a pod that is gone: what ends it is on its way.
async fn evict_in_a_namespace_that_ends_is_403_with_a_cause(probe: &Probe) -> Result<(), Failure> {
    let name = format!("{}-ends", probe.capabilities.namespace);
    let body = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "finalizers": ["maint.dev/conformance"]}});
    probe.post("/api/v1/namespaces", &body).await?.code(201)?;
    let path = format!("/api/v1/namespaces/{name}");
    probe.delete(&path, &json!({})).await?.code(200)?;
    let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "x", "namespace": name}});
    let reply = probe.post(&format!("{path}/pods/x/eviction"), &body).await?.status(403, "Forbidden")?;
    reply.field("/details/causes/0/reason", json!("NamespaceTerminating"))?;
    probe.patch(&path, "merge-patch", &json!({"metadata": {"finalizers": null}})).await?.code(200)?;
    Ok(())
}
