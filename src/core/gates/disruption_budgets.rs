//! Gate `disruption-budgets`: every eviction that the drain needs can succeed some time.
//!
//! # Checks
//! With strategy drain, the budgets that cover the target's pods: two on one pod, or one that allows no eviction until
//! somebody changes something, block. One that allows none just now warns, since the drain waits for it until its
//! deadline; so does one that its operator lifts by itself (CloudNativePG, Longhorn, KubeVirt, Rook, Strimzi).
//!
//! # Why
//! A node that can never be drained is cordoned, half emptied and put back every night: kubernetes#66811, #93476,
//! #75957; CloudNativePG#2570 kept nodes draining for days.
//!
//! # Source of truth
//! `policy/v1` PodDisruptionBudgets and the target's pods, see [`crate::drain`].
//!
//! # Blocks which scopes
//! Those whose strategy is drain, at the start.
//!
//! # When unknown
//! Pods or budgets could not be read.
//!
//! # Runbook
//! `runbooks/DisruptionBudget*.md`

#[cfg(test)]
mod tests;

use super::drain;
use super::listing::built_in;
use super::{Draft, GateInput, GateSpec};
use crate::api::{Evidence, Finding, GateId, Moment, Policy, Reason, SourceId, Strategy};
use crate::drain::{BudgetLook, DrainPlan, Verdict};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::DisruptionBudgets,
    moments: &[Moment::Start],
    reads: drain::READS,
    reasons: &[Reason::DisruptionBudgetsOverlap, Reason::DisruptionBudgetPermanent, Reason::DisruptionBudgetExhausted],
    default_policy: Policy::Require,
    doc: "no budget keeps a pod on the node for ever",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::DisruptionBudgets, input);
    if input.strategy == Strategy::CordonOnly {
        return draft.not_applicable(Reason::Passed, "cordon-only evicts no pod, so no budget is asked");
    }
    built_in(&mut draft, SourceId::PodDisruptionBudgets, &input.facts.pod_disruption_budgets);
    let Some(view) = drain::view(&mut draft, input) else { return draft.finish("") };
    let plan = DrainPlan::of(&view, input.settings.run.drain_timeout_seconds);
    for pod in plan.never.iter().filter(|pod| pod.reason == Reason::DisruptionBudgetsOverlap) {
        let name = format!("{}/{}", pod.namespace, pod.name);
        let evidence = Evidence::new(format!("Pod {name}"), "PodDisruptionBudgets that cover it", "2 or more", "1");
        draft.block(Reason::DisruptionBudgetsOverlap, format!("{name} {}; {}", pod.why, pod.remedy), evidence);
    }
    for budget in plan.budgets_that_are(Verdict::Permanent) {
        draft.block(Reason::DisruptionBudgetPermanent, told(budget), evidence(budget));
    }
    for budget in plan.budgets_that_are(Verdict::Now) {
        draft.warn(Reason::DisruptionBudgetExhausted, told(budget), evidence(budget));
    }
    draft.finish(plan.verdict_line())
}

fn told(budget: &BudgetLook) -> String {
    let BudgetLook { namespace, name, why, advice, .. } = budget;
    let advice = if advice.is_empty() { String::new() } else { format!("; {advice}") };
    format!("budget {namespace}/{name}: {why}{advice}")
}

fn evidence(budget: &BudgetLook) -> Evidence {
    let object = format!("PodDisruptionBudget {}/{}", budget.namespace, budget.name);
    Evidence::new(object, "status.disruptionsAllowed", budget.allowed.to_string(), ">= 1")
}
