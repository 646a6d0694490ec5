//! What budgets allow: for one pod now, and for all of a node's pods in the preview.

use std::collections::BTreeMap;

use serde::Serialize;

use super::operator::{self, Operator};
use super::view::{Entry, View};
use crate::facts::{PodDisruptionBudget, UnhealthyPolicy};

/// More entries in `status.disruptedPods` than this are refused (`MaxDisruptedPodSize`, Kubernetes).
const MAX_DISRUPTED_PODS: usize = 2000;

/// What the API server would say to an eviction now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leave {
    /// Yes, and no budget is asked: there is none, or the pod is pending or ending.
    Unasked,
    /// Yes, and its budget has no part in it: the pod is not Ready, and the budget's policy lets such go.
    Unhealthy,
    /// Yes, and it takes one of what the budget allows.
    Takes,
    /// No.
    No(Refusal),
}

/// Why it would say no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The budgets could not be read, or one of them not be understood.
    Unknown(String),
    /// More than one covers the pod.
    TwoBudgets(Vec<String>),
    /// Its status is older than its spec.
    BeingProcessed(String),
    /// Its controller cannot compute it.
    SyncFailed(String, String),
    /// Its controller could not compute it, and has not tried with the present spec yet.
    SyncFailedBefore(String, String),
    /// The pod is not Ready, and the budget says of such what this version does not know.
    UnknownPolicy(String, String),
    /// It allows none now.
    NoneAllowed {
        /// The budget.
        budget: String,
        /// `status.desiredHealthy`
        desired: i64,
        /// `status.currentHealthy`
        healthy: i64,
        /// Who lifts it by itself, where it wants all its pods healthy at any time.
        operator: Option<Operator>,
    },
    /// What it allowed was taken in this step, or just before.
    Spent(String),
    /// Too many evicted pods have not ended yet.
    TooManyDisrupted(String),
}

impl Refusal {
    /// The part that stays the same while the numbers change.
    #[must_use]
    pub fn lead(&self) -> String {
        match self {
            Self::Unknown(_) => "waits: its budgets are not known".to_owned(),
            Self::TwoBudgets(names) => format!("is blocked by more than one budget ({})", names.join(", ")),
            Self::BeingProcessed(name)
            | Self::SyncFailed(name, _)
            | Self::SyncFailedBefore(name, _)
            | Self::UnknownPolicy(name, _)
            | Self::NoneAllowed { budget: name, .. }
            | Self::TooManyDisrupted(name) => format!("is blocked by budget {name}"),
            Self::Spent(name) => format!("waits for its turn in budget {name}"),
        }
    }

    /// The rest.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            Self::Unknown(why) => why.clone(),
            Self::TwoBudgets(_) => "the API server refuses every eviction then".to_owned(),
            Self::BeingProcessed(_) => "which was changed and is not computed yet".to_owned(),
            Self::SyncFailed(_, message) => format!("which cannot be computed: {}", message.trim_end_matches('.')),
            Self::SyncFailedBefore(_, message) => format!(
                "which was changed and is not computed yet; before that it could not be computed: {}",
                message.trim_end_matches('.')
            ),
            Self::UnknownPolicy(_, policy) => {
                format!("which says `{policy}` of pods that are not Ready, and that is not known here")
            }
            Self::NoneAllowed { desired, healthy, operator, .. } => {
                let lifted = operator.map_or_else(String::new, |one| format!("; {one} lifts it by itself"));
                format!("which needs {desired} healthy pods and has {healthy}{lifted}")
            }
            Self::Spent(_) => String::new(),
            Self::TooManyDisrupted(_) => format!("which counts more than {MAX_DISRUPTED_PODS} evicted pods"),
        }
    }
}

/// What the API server would say to an eviction of this pod, in the order of its own checks (policy/v1, 1.36).
pub(super) fn leave(entry: &Entry<'_>) -> Leave {
    let pod = entry.pod;
    if pod.is_ending() || pod.is_finished() || pod.phase == "Pending" {
        return Leave::Unasked;
    }
    if let Some(why) = &entry.budgets_unknown {
        return Leave::No(Refusal::Unknown(why.clone()));
    }
    let budget = match entry.budgets.as_slice() {
        [] => return Leave::Unasked,
        [budget] => *budget,
        several => {
            return Leave::No(Refusal::TwoBudgets(several.iter().map(|one| one.metadata.full_name()).collect()));
        }
    };
    let name = budget.metadata.full_name();
    if !pod.says_ready() {
        match &budget.unhealthy_policy {
            UnhealthyPolicy::AlwaysAllow => return Leave::Unhealthy,
            UnhealthyPolicy::IfHealthyBudget
                if budget.current_healthy >= budget.desired_healthy && budget.desired_healthy > 0 =>
            {
                return Leave::Unhealthy;
            }
            UnhealthyPolicy::IfHealthyBudget => {}
            UnhealthyPolicy::Unknown(policy) => return Leave::No(Refusal::UnknownPolicy(name, policy.clone())),
        }
    }
    match refusal(budget, &name, entry.operator) {
        Some(why) => Leave::No(why),
        None => Leave::Takes,
    }
}

/// Why a budget allows none; `operator` is that of its pods, for a budget that does not tell its own.
fn refusal(budget: &PodDisruptionBudget, name: &str, operator: Option<Operator>) -> Option<Refusal> {
    if !budget.is_observed() {
        return Some(match budget.sync_failure() {
            Some(message) if budget.fails_as_it_is() => Refusal::SyncFailed(name.to_owned(), message.to_owned()),
            Some(message) => Refusal::SyncFailedBefore(name.to_owned(), message.to_owned()),
            None => Refusal::BeingProcessed(name.to_owned()),
        });
    }
    if budget.disrupted_pods.len() > MAX_DISRUPTED_PODS {
        return Some(Refusal::TooManyDisrupted(name.to_owned()));
    }
    if budget.disruptions_allowed > 0 {
        return None;
    }
    if let Some(message) = budget.sync_failure() {
        return Some(Refusal::SyncFailed(name.to_owned(), message.to_owned()));
    }
    let (desired, healthy) = (budget.desired_healthy, budget.current_healthy);
    // One that lacks healthy pods waits for those, whoever made it.
    let all = budget.expected_pods > 0 && desired >= budget.expected_pods;
    let operator = Operator::of_budget(budget).or(operator).filter(|_| all);
    Some(Refusal::NoneAllowed { budget: name.to_owned(), desired, healthy, operator })
}

crate::api::names! {
    /// What a budget says of a drain.
    Verdict, "verdict", {
        /// It never allows an eviction until somebody changes something.
        Permanent = "permanent",
        /// It allows none now.
        Now = "now",
        /// It lets some go at a time.
        Waves = "waves",
        /// It has no part in it.
        Free = "free",
    }
}

/// What one budget says of a node's drain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetLook {
    /// Namespace of the budget.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What it says.
    pub verdict: Verdict,
    /// The operator that lifts it by itself, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<Operator>,
    /// Pods here that take one of what it allows.
    pub pods: usize,
    /// `status.disruptionsAllowed`
    pub allowed: i64,
    /// How many rounds the pods here need; none where it allows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<i64>,
    /// Why, in words.
    pub why: String,
    /// What helps, where something has to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub advice: String,
}

/// What every budget that covers a pod of the node says of it, worst first.
pub(super) fn looks(view: &View<'_>) -> Vec<BudgetLook> {
    let mut covered: BTreeMap<(&str, &str), (&PodDisruptionBudget, Vec<&Entry<'_>>)> = BTreeMap::new();
    for entry in view.going() {
        for budget in &entry.budgets {
            let key = (budget.metadata.namespace.as_str(), budget.metadata.name.as_str());
            covered.entry(key).or_insert((budget, Vec::new())).1.push(entry);
        }
    }
    let mut found: Vec<BudgetLook> = covered.values().map(|(budget, entries)| look(budget, entries)).collect();
    found.sort_by_key(|one| one.verdict);
    found
}

/// Pods that take one of what the budget allows, whether it allows one now or not.
fn takers(entries: &[&Entry<'_>]) -> usize {
    entries.iter().filter(|entry| !matches!(leave(entry), Leave::Unasked | Leave::Unhealthy)).count()
}

fn look(budget: &PodDisruptionBudget, entries: &[&Entry<'_>]) -> BudgetLook {
    let pods = takers(entries);
    let operator = Operator::of_budget(budget).or_else(|| entries.iter().find_map(|entry| entry.operator));
    let allowed = budget.disruptions_allowed;
    let name = budget.metadata.full_name();
    let (verdict, why, advice) = if pods == 0 {
        (Verdict::Free, "no pod here takes one of what it allows".to_owned(), String::new())
    } else {
        judge(budget, entries, operator)
    };
    let rounds = match verdict {
        Verdict::Waves => i64::try_from(pods).ok().map(|pods| (pods + allowed - 1) / allowed.max(1)),
        Verdict::Free => Some(0),
        Verdict::Permanent | Verdict::Now => None,
    };
    debug_assert!(!name.is_empty(), "a budget has a name");
    BudgetLook {
        namespace: budget.metadata.namespace.clone(),
        name: budget.metadata.name.clone(),
        verdict,
        operator,
        pods,
        allowed,
        rounds,
        why,
        advice,
    }
}

fn judge(
    budget: &PodDisruptionBudget,
    entries: &[&Entry<'_>],
    operator: Option<Operator>,
) -> (Verdict, String, String) {
    let (expected, desired, healthy) = (budget.expected_pods, budget.desired_healthy, budget.current_healthy);
    let name = budget.metadata.full_name();
    match refusal(budget, &name, operator) {
        None => {
            let pods = takers(entries);
            (Verdict::Waves, format!("{pods} here, {} may go at a time", budget.disruptions_allowed), String::new())
        }
        Some(why @ Refusal::SyncFailedBefore(..)) => {
            let advice = "it is looked at again; whether it can be computed now is known once its controller has tried";
            (Verdict::Now, why.detail().trim_start_matches("which ").to_owned(), advice.to_owned())
        }
        Some(why @ Refusal::SyncFailed(..)) => {
            let advice = "its pods' owner has no scale subresource: use minAvailable with a whole number";
            (Verdict::Permanent, why.detail().trim_start_matches("which ").to_owned(), advice.to_owned())
        }
        Some(Refusal::NoneAllowed { .. }) if expected > 0 && desired >= expected => match operator {
            Some(one) => {
                let primary = entries.iter().any(|entry| operator::is_primary(entry.pod));
                let held =
                    if primary { "it keeps the primary until that has moved" } else { "it keeps all of them for now" };
                (Verdict::Now, format!("{held}; {one} lifts it by itself"), one.advice().to_owned())
            }
            None => (Verdict::Permanent, format!("it wants all {expected} pods healthy at any time"), lift(budget)),
        },
        Some(Refusal::NoneAllowed { .. }) if expected == 0 => {
            (Verdict::Now, "it counts no pods yet".to_owned(), String::new())
        }
        Some(Refusal::NoneAllowed { .. }) => {
            let sick: Vec<String> = entries
                .iter()
                .filter(|entry| !entry.pod.says_ready())
                .map(|entry| entry.pod.metadata.full_name())
                .collect();
            let here = if sick.is_empty() { String::new() } else { format!("; not Ready here: {}", sick.join(", ")) };
            let away = (expected - healthy).max(0);
            let why = format!("{away} of its {expected} pods are not healthy, and it needs {desired}{here}");
            (Verdict::Now, why, "it lets go again once they are".to_owned())
        }
        Some(other) => (Verdict::Now, other.detail().trim_start_matches("which ").to_owned(), String::new()),
    }
}

/// What would let a pod go.
fn lift(budget: &PodDisruptionBudget) -> String {
    let (expected, metadata) = (budget.expected_pods, &budget.metadata);
    if let Some(most) = &budget.max_unavailable {
        return format!("it says maxUnavailable {most}: say 1, or take the budget away for the night");
    }
    let least = budget.min_available.as_deref().unwrap_or("?");
    if expected == 1 {
        return format!(
            "scale its workload to 2, say maxUnavailable: 1 (a short time without), or restart it elsewhere: kubectl -n {} \
             rollout restart, once the node is cordoned",
            metadata.namespace
        );
    }
    format!("it says minAvailable {least} of {expected}: say maxUnavailable: 1, or scale its workload up")
}

#[cfg(test)]
mod tests;
