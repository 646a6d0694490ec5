//! `pods/eviction`: the arithmetic of disruption budgets, in the order of the real server (1.34.4).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::delete::DeleteOptions;
use super::error::Refusal;
use super::object::At as _;
use super::select::Labels;
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
    /// Evicts a pod.
    ///
    /// # Errors
    /// 400, 404, 409, 429, 403 or 500 as in the table of the eviction API.
    pub fn evict(
        &mut self,
        namespace: &str,
        name: &str,
        eviction: &Value,
        context: &Context,
    ) -> Result<(), EvictionRefused> {
        let kind = self.kinds.find("", "v1", "pods").cloned().ok_or(Refusal::UnknownPath)?;
        let said = object::name(eviction);
        if !said.is_empty() && said != name {
            return Err(Refusal::bad_request("name in URL does not match name in Eviction object").into());
        }
        let options = DeleteOptions::of(eviction.get("deleteOptions"));
        let dry_run = options.dry_run || context.dry_run;
        let pod = self.get(&kind, namespace, name, None)?;
        if ignores_budgets(&pod) {
            let checked = options.check(&kind, &pod);
            if let Err(refusal) = checked {
                let delay = if options.revision.is_none() { Duration::from_millis(9990) } else { Duration::ZERO };
                return Err(EvictionRefused { refusal, delay });
            }
        } else {
            match self.budgets(namespace, &pod).as_slice() {
                [] => {}
                [budget] => self.spend(budget, &pod, dry_run, context)?,
                _ => {
                    let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
                    return Err(Refusal::new(500, "", message).into());
                }
            }
            // Only now: a stale uid gets its 409 after the budget was spent (measured).
            options.check(&kind, &pod)?;
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
        if !object::is_true(pod, "Ready") {
            let free = match object::text(budget, "/spec/unhealthyPodEvictionPolicy") {
                "AlwaysAllow" => true,
                "" | "IfHealthyBudget" => healthy >= desired && desired > 0,
                // A policy that this version does not know refuses, as the API's text says.
                _ => false,
            };
            if free {
                return Ok(());
            }
        }
        if number("/status/observedGeneration") < number("/metadata/generation") {
            return Err(Refusal::budget(
                &format!("The disruption budget {name} is still being processed by the server."),
                10,
            ));
        }
        let allowed = number("/status/disruptionsAllowed");
        let disrupted = budget.at("/status/disruptedPods").and_then(Value::as_object).map_or(0, serde_json::Map::len);
        if allowed < 0 || disrupted > MAX_DISRUPTED_PODS {
            let message = format!(
                "poddisruptionbudgets.policy \"{name}\" is forbidden: pdb disruptions allowed is negative or its map of disrupted pods is too big"
            );
            return Err(Refusal::new(403, "Forbidden", message));
        }
        if allowed == 0 {
            let cause = if healthy <= desired {
                format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
            } else {
                format!("The disruption budget {name} does not allow evicting pods currently")
            };
            return Err(Refusal::budget(&cause, 0));
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

/// Ended, pending and terminating pods are no disruption (`canIgnorePDB`).
fn ignores_budgets(pod: &Value) -> bool {
    object::is_deleting(pod) || matches!(object::text(pod, "/status/phase"), "Pending" | "Succeeded" | "Failed")
}
