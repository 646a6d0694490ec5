//! The whole preview of one node's drain: what goes when, what stays, what never goes, and what else to know.

mod text;

pub(crate) use text::{count, length};

use std::collections::BTreeMap;

use serde::Serialize;

use super::answer::Lane;
use super::budgets::{self, BudgetLook, Leave, Refusal, Verdict, leave};
use super::classify::{Class, Never};
use super::view::{Entry, View};
use super::warnings::{self, Warning, grace_of};
use super::waves::Wave;
use crate::api::Reason;

/// Seconds that a pod is taken to need until it is Ready elsewhere: pulling and starting is not known before.
const STARTUP_SECONDS: i64 = 30;

/// The preview of one node's drain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainPlan {
    /// The node.
    pub node: String,
    /// What goes, in the order of the waves.
    pub waves: Vec<PlannedWave>,
    /// What stays.
    pub stays: Vec<StayingPod>,
    /// What would have to go and never does: with one of them the drain cannot end.
    pub never: Vec<NeverPod>,
    /// The budgets that cover pods here, worst first.
    pub budgets: Vec<BudgetLook>,
    /// Why the budgets of some pods are not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// What else to know.
    pub warnings: Vec<Warning>,
    /// Seconds that it will take, where nothing blocks it; none where a budget allows none now, or something never goes.
    pub estimate_seconds: Option<i64>,
    /// Seconds after which it is given up.
    pub deadline_seconds: i64,
}

/// One wave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedWave {
    /// Which.
    pub wave: Wave,
    /// Its pods in the order in which they are asked.
    pub pods: Vec<PlannedPod>,
    /// Seconds that it will take.
    pub estimate_seconds: i64,
}

/// A pod that goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedPod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Seconds that it has to end.
    pub grace_seconds: i64,
    /// The budget that has a say in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// Why it could not go right now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
}

/// A pod that stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StayingPod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
}

/// A pod that never goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NeverPod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Why, as a gate names it.
    pub reason: Reason,
    /// Why, as a sentence about it.
    pub why: String,
    /// What helps.
    pub remedy: String,
}

impl DrainPlan {
    /// The preview, from one look at the node.
    #[must_use]
    pub fn of(view: &View<'_>, deadline_seconds: i64) -> Self {
        let budgets = budgets::looks(view);
        let never: Vec<NeverPod> = view.going().filter_map(|entry| never_of(entry, &budgets)).collect();
        let stays = view.entries.iter().filter_map(|entry| match &entry.class {
            Class::Stays(why) => Some(StayingPod {
                namespace: entry.pod.metadata.namespace.clone(),
                name: entry.pod.metadata.name.clone(),
                why: why.to_string(),
            }),
            _ => None,
        });
        let stays = stays.collect();
        let waves = waves_of(view, &budgets);
        let mut unknown: Vec<String> = view.going().filter_map(|entry| entry.budgets_unknown.clone()).collect();
        unknown.sort();
        unknown.dedup();
        let blocked = budgets.iter().any(|one| matches!(one.verdict, Verdict::Permanent | Verdict::Now));
        let open = !(blocked || !never.is_empty() || !unknown.is_empty());
        Self {
            node: view.node.to_owned(),
            estimate_seconds: open.then(|| waves.iter().map(|wave: &PlannedWave| wave.estimate_seconds).sum()),
            waves,
            stays,
            never,
            budgets,
            unknown,
            warnings: warnings::warnings(view, deadline_seconds),
            deadline_seconds,
        }
    }

    /// How many pods go.
    #[must_use]
    pub fn planned(&self) -> usize {
        self.waves.iter().map(|wave| wave.pods.len()).sum()
    }

    /// Budgets with this verdict.
    pub fn budgets_that_are(&self, verdict: Verdict) -> impl Iterator<Item = &BudgetLook> {
        self.budgets.iter().filter(move |one| one.verdict == verdict)
    }
}

/// Why a pod never goes, its budgets included.
fn never_of(entry: &Entry<'_>, budgets: &[BudgetLook]) -> Option<NeverPod> {
    let metadata = &entry.pod.metadata;
    let (why, advice) = match (&entry.class, leave(entry)) {
        (Class::Never(_), _) if entry.pod.is_ending() => return None,
        (Class::Never(why), _) => (why.clone(), None),
        (_, Leave::No(Refusal::TwoBudgets(names))) => (Never::TwoBudgets(names), None),
        (_, Leave::No(_)) => {
            let budget = entry.budgets.first()?;
            let look = budgets.iter().find(|one| {
                one.verdict == Verdict::Permanent
                    && (one.namespace.as_str(), one.name.as_str())
                        == (budget.metadata.namespace.as_str(), budget.metadata.name.as_str())
            })?;
            let why = format!("is kept by budget {}: {}", budget.metadata.full_name(), look.why);
            (Never::Budget(why), Some(look.advice.clone()))
        }
        _ => return None,
    };
    Some(NeverPod {
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        reason: why.reason(),
        remedy: advice.unwrap_or_else(|| why.remedy(&metadata.namespace, &metadata.name)),
        why: why.to_string(),
    })
}

fn waves_of(view: &View<'_>, budgets: &[BudgetLook]) -> Vec<PlannedWave> {
    let mut by_wave: BTreeMap<Wave, Vec<&Entry<'_>>> = BTreeMap::new();
    for entry in view.going() {
        if let Class::Goes(wave) = &entry.class
            && never_of(entry, budgets).is_none()
        {
            by_wave.entry(*wave).or_default().push(entry);
        }
    }
    let planned = by_wave.into_iter().map(|(wave, entries)| PlannedWave {
        wave,
        estimate_seconds: estimate(&entries),
        pods: entries.iter().map(|entry| planned(entry)).collect(),
    });
    planned.collect()
}

fn planned(entry: &Entry<'_>) -> PlannedPod {
    let metadata = &entry.pod.metadata;
    let (asked, held) = match leave(entry) {
        Leave::Unasked | Leave::Unhealthy => (false, None),
        Leave::Takes => (true, None),
        Leave::No(why) => (true, Some(format!("{}: {}", why.lead(), why.detail()))),
    };
    PlannedPod {
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        grace_seconds: grace_of(entry),
        budget: entry.budgets.first().filter(|_| asked).map(|budget| budget.metadata.full_name()),
        held,
    }
}

/// A wave takes as long as its slowest lane: each round of one waits for its pods to end and to be Ready elsewhere,
/// the last one only for their end.
fn estimate(entries: &[&Entry<'_>]) -> i64 {
    let mut lanes: BTreeMap<&Lane, (i64, i64, i64)> = BTreeMap::new();
    for entry in entries {
        let takes = leave(entry) == Leave::Takes;
        let at_once = match (&entry.lane, entry.budgets.first()) {
            (Lane::Budget(_), Some(budget)) if takes => budget.disruptions_allowed.max(1),
            (Lane::StatefulSet(_), _) if !entry.treatment.force => 1,
            _ => i64::MAX,
        };
        let lane = lanes.entry(&entry.lane).or_insert((0, i64::MAX, 0));
        lane.0 += i64::from(at_once != i64::MAX);
        lane.1 = lane.1.min(at_once);
        lane.2 = lane.2.max(grace_of(entry));
    }
    let of_lane = |&(counted, at_once, grace): &(i64, i64, i64)| {
        let rounds = if at_once == i64::MAX { 1 } else { ((counted - 1) / at_once + 1).max(1) };
        (rounds - 1).saturating_mul(grace.saturating_add(STARTUP_SECONDS)).saturating_add(grace)
    };
    lanes.values().map(of_lane).max().unwrap_or_default()
}

#[cfg(test)]
mod tests;
