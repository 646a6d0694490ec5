//! `pods/eviction`: the arithmetic of disruption budgets, in the order of the real server (1.34.4; a cause of 429 in
//! the words of 1.36, which also names a failed sync and a budget that is spent).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::delete::DeleteOptions;
use super::error::Refusal;
use super::kinds::Kind;
use super::object::At as _;
use super::select::Labels;
use super::webhook::Guarded;
use super::{Context, ObjectKey, Store, object};

/// The answer of an eviction that was refused, and how long the real server takes to give it.
#[derive(Debug, Clone, PartialEq)]
pub struct EvictionRefused {
    /// The answer.
    pub refusal: Refusal,
    /// 20 tries of 500 ms before the 409 of a pod whose budgets are not asked (measured: 9.99 s), else zero.
    pub delay: Duration,
}

impl From<Refusal> for EvictionRefused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, delay: Duration::ZERO }
    }
}

/// More entries in `status.disruptedPods` than this are refused with 403 (`MaxDisruptedPodSize`).
const MAX_DISRUPTED_PODS: usize = 2000;

impl Store {
    /// Evicts a pod. Admission comes first: a namespace that ends refuses also for a pod that is gone.
    ///
    /// # Errors
    /// 400, 403, 404, 409, 429 or 500 as in the table of the eviction API, and whatever a webhook says.
    pub fn evict(
        &mut self,
        namespace: &str,
        name: &str,
        eviction: &Value,
        context: &Context,
    ) -> Result<(), EvictionRefused> {
        let kind = self.kinds.find("", "v1", "pods").cloned().ok_or(Refusal::UnknownPath)?;
        let ends =
            self.object(&ObjectKey::new("", "namespaces", "", namespace)).is_some_and(|it| object::is_deleting(it));
        if ends {
            return Err(Refusal::namespace_terminating(&kind, name, namespace).into());
        }
        let said = object::name(eviction);
        if !said.is_empty() && said != name {
            return Err(Refusal::bad_request("name in URL does not match name in Eviction object").into());
        }
        let options = DeleteOptions::of(eviction.get("deleteOptions"));
        let dry_run = options.dry_run || context.dry_run;
        let asked = Guarded { namespace, name, dry_run };
        let pod = self.object(&ObjectKey::pod(namespace, name)).cloned();
        self.webhooks.ask(&asked, pod.as_deref())?;
        let pod = self.get(&kind, namespace, name, None)?;
        if ignores_budgets(&pod) {
            let checked = options.check(&kind, &pod);
            if let Err(refusal) = checked {
                let delay = if options.revision.is_none() { Duration::from_millis(9990) } else { Duration::ZERO };
                return Err(EvictionRefused { refusal, delay });
            }
        } else {
            self.ask_budgets(&kind, &pod, &options, dry_run, context)?;
        }
        if dry_run {
            return Ok(());
        }
        let key = ObjectKey::pod(namespace, name);
        if !object::is_deleting(&pod) {
            self.edit(&key, |pod| {
                let message = "Eviction API: evicting";
                object::set_condition(pod, "DisruptionTarget", "True", "EvictionByEvictionAPI", message, context.now);
            });
        }
        let graceful = DeleteOptions { grace_seconds: options.grace_seconds, ..DeleteOptions::default() };
        self.delete(&kind, namespace, name, &graceful, context)?;
        Ok(())
    }

    /// Budgets first, preconditions after them: a stale uid gets its 409 when the budget is spent already (measured).
    fn ask_budgets(
        &mut self,
        kind: &Kind,
        pod: &Value,
        options: &DeleteOptions,
        dry_run: bool,
        context: &Context,
    ) -> Result<(), Refusal> {
        match self.budgets(object::namespace(pod), pod).as_slice() {
            [] => options.check(kind, pod),
            [budget] => {
                if !is_free(budget, pod) {
                    self.spend(budget, pod, dry_run, context)?;
                    return options.check(kind, pod);
                }
                // The pod must still be what it was when it was found free; a client that named no resourceVersion is
                // told to come again, whatever precondition failed.
                options.check(kind, pod).map_err(|refusal| match options.revision {
                    None => Refusal::budget(&processed(object::name(budget)), 10),
                    Some(_) => refusal,
                })
            }
            _ => {
                let message =
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
                Err(Refusal::new(500, "", message))
            }
        }
    }

    fn budgets(&self, namespace: &str, pod: &Value) -> Vec<Arc<Value>> {
        self.all("policy", "poddisruptionbudgets")
            .filter(|budget| object::namespace(budget) == namespace)
            .filter(|budget| {
                Labels::of_object(budget.at("/spec/selector")).is_some_and(|selector| selector.matches(pod))
            })
            .cloned()
            .collect()
    }

    /// Asks the one budget of a pod; takes one disruption from it where it counts.
    fn spend(&mut self, budget: &Arc<Value>, pod: &Value, dry_run: bool, context: &Context) -> Result<(), Refusal> {
        let number = |pointer: &str| budget.at(pointer).and_then(Value::as_i64).unwrap_or(0);
        let (healthy, desired) = (number("/status/currentHealthy"), number("/status/desiredHealthy"));
        let name = object::name(budget);
        if number("/status/observedGeneration") < number("/metadata/generation") {
            return Err(Refusal::budget(&processed(name), 10));
        }
        let allowed = number("/status/disruptionsAllowed");
        let disrupted = budget.at("/status/disruptedPods").and_then(Value::as_object).map_or(0, serde_json::Map::len);
        if allowed < 0 || disrupted > MAX_DISRUPTED_PODS {
            let why = if allowed < 0 {
                "pdb disruptions allowed is negative"
            } else {
                "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
            };
            return Err(Refusal::budget_unfit(name, why));
        }
        if allowed == 0 {
            return Err(Refusal::budget(&spent(budget, healthy, desired), 0));
        }
        if !dry_run {
            let key = ObjectKey::new("policy", "poddisruptionbudgets", object::namespace(budget), name);
            self.edit(&key, |budget| {
                let status = object::map(budget, "status");
                status.insert("disruptionsAllowed".to_owned(), json!(allowed - 1));
                let disrupted = status.entry("disruptedPods").or_insert_with(|| json!({}));
                if let Some(disrupted) = disrupted.as_object_mut() {
                    disrupted.insert(object::name(pod).to_owned(), json!(object::seconds(context.now)));
                }
                if allowed == 1 {
                    object::set_condition(budget, "DisruptionAllowed", "False", "InsufficientPods", "", context.now);
                }
            });
        }
        Ok(())
    }
}

/// Whether an unready pod goes without its budget: it counts towards nothing that the budget keeps.
fn is_free(budget: &Value, pod: &Value) -> bool {
    let number = |pointer: &str| budget.at(pointer).and_then(Value::as_i64).unwrap_or(0);
    let (healthy, desired) = (number("/status/currentHealthy"), number("/status/desiredHealthy"));
    if object::is_true(pod, "Ready") {
        return false;
    }
    match object::text(budget, "/spec/unhealthyPodEvictionPolicy") {
        "AlwaysAllow" => true,
        "" | "IfHealthyBudget" => healthy >= desired && desired > 0,
        // A policy that this version does not know refuses, as the API's text says.
        _ => false,
    }
}

fn processed(budget: &str) -> String {
    format!("The disruption budget {budget} is still being processed by the server.")
}

/// Why a budget lets nobody go.
fn spent(budget: &Value, healthy: i64, desired: i64) -> String {
    let name = object::name(budget);
    let no = format!("The disruption budget {name} does not allow evicting pods currently");
    let condition = object::condition(budget, "DisruptionAllowed");
    if let Some(failed) = condition.filter(|condition| object::text(condition, "/reason") == "SyncFailed") {
        return format!("{no} because it failed sync: {}", object::text(failed, "/message"));
    }
    if healthy <= desired {
        return format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently");
    }
    no
}

/// Ended, pending and terminating pods are no disruption (`canIgnorePDB`).
fn ignores_budgets(pod: &Value) -> bool {
    object::is_deleting(pod) || matches!(object::text(pod, "/status/phase"), "Pending" | "Succeeded" | "Failed")
}

/// The first field of an Eviction that the API does not know, as strict validation of fields finds it; without that, it
/// is dropped with a warning.
pub(super) fn unknown_field(eviction: &Value) -> Option<String> {
    const EVICTION: &[&str] = &["apiVersion", "kind", "metadata", "deleteOptions"];
    const OPTIONS: &[&str] = &[
        "apiVersion",
        "kind",
        "gracePeriodSeconds",
        "preconditions",
        "orphanDependents",
        "propagationPolicy",
        "dryRun",
        "ignoreStoreReadErrorWithClusterBreakingPotential",
    ];
    const PRECONDITIONS: &[&str] = &["uid", "resourceVersion"];
    let levels = [
        ("", Some(eviction), EVICTION),
        ("deleteOptions.", eviction.get("deleteOptions"), OPTIONS),
        ("deleteOptions.preconditions.", eviction.at("/deleteOptions/preconditions"), PRECONDITIONS),
    ];
    levels.into_iter().find_map(|(prefix, level, known)| {
        let mut keys = level?.as_object()?.keys();
        keys.find(|key| !known.contains(&key.as_str())).map(|key| format!("{prefix}{key}"))
    })
}
