//! One look at a node: every pod of it, with what becomes of it.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::answer::Lane;
use super::classify::{Class, DaemonSets, classify};
use super::operator::Operator;
use super::rules::Treatment;
use super::waves::Wave;
use crate::api::Action;
use crate::config::Settings;
use crate::facts::{
    Facts, Item, Listed, Node, Observation, Pod, PodDisruptionBudget, ReplicaSet, Source, StatefulSet, TriState,
};

/// What is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The node.
    pub node: &'a str,
    /// The settings.
    pub settings: &'a Settings,
    /// Who makes the node go down; none where that is not decided. kured drains by itself.
    pub action: Option<Action>,
    /// Now.
    pub now: Timestamp,
}

/// One look at a node.
#[derive(Debug, Clone)]
pub struct View<'a> {
    /// The node.
    pub node: &'a str,
    /// Its pods in the order in which they go.
    pub entries: Vec<Entry<'a>>,
    /// When the pods were asked for.
    pub pods_at: Timestamp,
    /// When the budgets were asked for; none where they are not known.
    pub budgets_at: Option<Timestamp>,
    /// Its kubelet is known to be silent: condition Ready is not True.
    pub kubelet_silent: bool,
    /// The node of another run whose drain began before: of a StatefulSet without a budget its pods go first, since the
    /// set's status does not show at once that one of them goes.
    pub sets_after: Option<String>,
    pub(super) workloads: Workloads<'a>,
    /// Pods that no node was found for, of any controller; none where that is not known.
    unscheduled: Vec<&'a Pod>,
}

/// One pod and what becomes of it.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// What becomes of it, its budgets apart.
    pub class: Class,
    /// What was said about it.
    pub treatment: Treatment,
    /// The budgets that cover it.
    pub budgets: Vec<&'a PodDisruptionBudget>,
    /// Why that is not all that is to be known of its budgets.
    pub budgets_unknown: Option<String>,
    /// What its eviction competes for.
    pub lane: Lane,
    /// Whose pod it is.
    pub operator: Option<Operator>,
}

impl Entry<'_> {
    /// The wave in which it goes; none where it does not go by itself.
    pub(super) const fn wave(&self) -> Option<Wave> {
        match self.class {
            Class::Goes(wave) => Some(wave),
            _ => None,
        }
    }
}

/// What is known of StatefulSets and ReplicaSets.
#[derive(Debug, Clone, Default)]
pub(super) struct Workloads<'a> {
    /// By uid; none where they are not known.
    stateful_sets: Option<BTreeMap<&'a str, &'a StatefulSet>>,
    replica_sets: Option<BTreeMap<&'a str, &'a ReplicaSet>>,
}

/// What is known of the StatefulSet of a pod.
pub(super) enum SetOf<'a> {
    /// They could not be read.
    Unknown,
    /// It is not there any more.
    Deleted,
    /// Here it is.
    There(&'a StatefulSet),
}

/// A list that was read and is not too old, and when it was asked for.
fn current<T>(listed: &Listed<T>, now: Timestamp, max_age_seconds: i64) -> Result<(&Vec<Item<T>>, Timestamp), String> {
    match listed {
        Observation::Known { value, at } => {
            let age = now.duration_since(*at).as_secs();
            if age <= max_age_seconds { Ok((value, *at)) } else { Err(format!("the last answer is {age} s old")) }
        }
        Observation::NotAsked => Err("nobody asked".to_owned()),
        Observation::Absent { .. } => Err("the API does not have them".to_owned()),
        Observation::Failed { detail, .. } => Err(detail.clone()),
    }
}

fn by_uid<'a, T>(
    listed: &'a Listed<T>,
    now: Timestamp,
    max_age_seconds: i64,
    uid: fn(&T) -> &str,
) -> Option<BTreeMap<&'a str, &'a T>> {
    let (items, _) = current(listed, now, max_age_seconds).ok()?;
    let good = |item: &'a Item<T>| match item {
        Item::Good(found) => Some((uid(found), found)),
        Item::Malformed(_) => None,
    };
    items.iter().map(good).collect()
}

impl<'a> Workloads<'a> {
    fn of(facts: &'a Facts, now: Timestamp) -> Self {
        Self {
            stateful_sets: by_uid(&facts.stateful_sets, now, StatefulSet::SPEC.max_age_seconds, |one| {
                &one.metadata.uid
            }),
            replica_sets: by_uid(&facts.replica_sets, now, ReplicaSet::SPEC.max_age_seconds, |one| &one.metadata.uid),
        }
    }

    /// The StatefulSet of a pod.
    pub(super) fn stateful_set(&self, pod: &Pod) -> SetOf<'a> {
        let Some(sets) = &self.stateful_sets else { return SetOf::Unknown };
        // OpenKruise and others have StatefulSets of their own, which were not asked for.
        let ours = pod.controller.as_ref().filter(|owner| owner.group() == "apps");
        let Some(owner) = ours else { return SetOf::Unknown };
        let found = sets.get(owner.uid.as_str()).copied();
        found.map_or(SetOf::Deleted, SetOf::There)
    }

    /// How many pods its controller wants, where that is known.
    pub(super) fn replicas(&self, pod: &Pod) -> Option<i64> {
        let owner = pod.controller.as_ref().filter(|owner| owner.group() == "apps")?;
        match owner.kind.as_str() {
            "StatefulSet" => Some(self.stateful_sets.as_ref()?.get(owner.uid.as_str())?.replicas),
            "ReplicaSet" => Some(self.replica_sets.as_ref()?.get(owner.uid.as_str())?.replicas),
            _ => None,
        }
    }
}

/// The budgets of the cluster.
struct Budgets<'a> {
    good: Vec<&'a PodDisruptionBudget>,
    /// Namespaces with a budget that could not be understood, and what is wrong with it.
    odd: BTreeMap<String, String>,
    unknown: Option<String>,
    at: Option<Timestamp>,
}

impl<'a> Budgets<'a> {
    fn of(facts: &'a Facts, now: Timestamp) -> Self {
        let listed = &facts.pod_disruption_budgets;
        let mut budgets = Self { good: Vec::new(), odd: BTreeMap::new(), unknown: None, at: None };
        match current(listed, now, PodDisruptionBudget::SPEC.max_age_seconds) {
            Err(why) => budgets.unknown = Some(format!("PodDisruptionBudgets could not be read: {why}")),
            Ok((items, at)) => {
                budgets.at = Some(at);
                for item in items {
                    match item {
                        Item::Good(budget) => budgets.good.push(budget),
                        Item::Malformed(bad) => {
                            let place = bad.object.split_once(' ').and_then(|(_, name)| name.split_once('/'));
                            match place {
                                Some((namespace, _)) => drop(budgets.odd.insert(namespace.to_owned(), bad.to_string())),
                                None => budgets.unknown = Some(bad.to_string()),
                            }
                        }
                    }
                }
            }
        }
        budgets
    }

    fn covering(&self, pod: &Pod) -> (Vec<&'a PodDisruptionBudget>, Option<String>) {
        let found = self.good.iter().copied().filter(|budget| budget.covers(&pod.metadata)).collect();
        let unknown = self.unknown.clone().or_else(|| self.odd.get(&pod.metadata.namespace).cloned());
        (found, unknown)
    }
}

/// What an eviction competes for. Names stand in where a dump has no uids.
fn lane_of(pod: &Pod, budgets: &[&PodDisruptionBudget]) -> Lane {
    let or_name = |uid: &str, namespace: &str, name: &str| {
        if uid.is_empty() { format!("{namespace}/{name}") } else { uid.to_owned() }
    };
    let metadata = &pod.metadata;
    if let Some(budget) = budgets.first() {
        return Lane::Budget(or_name(&budget.metadata.uid, &budget.metadata.namespace, &budget.metadata.name));
    }
    match &pod.controller {
        Some(owner) if owner.kind == "StatefulSet" => {
            Lane::StatefulSet(or_name(&owner.uid, &metadata.namespace, &owner.name))
        }
        _ => Lane::Pod(or_name(&metadata.uid, &metadata.namespace, &metadata.name)),
    }
}

impl<'a> View<'a> {
    /// Looks at a node's pods. Those of `leave_out` are none of the drain's business.
    ///
    /// # Errors
    /// If the pods could not be read, or one of them could not be understood: then nothing is decided.
    pub fn of(facts: &'a Facts, question: &Question<'a>, leave_out: impl Fn(&Pod) -> bool) -> Result<Self, String> {
        let now = question.now;
        let (items, pods_at) = current(&facts.target_pods, now, Pod::ON_TARGET.max_age_seconds)
            .map_err(|why| format!("the node's pods could not be read: {why}"))?;
        let budgets = Budgets::of(facts, now);
        let daemon_sets = DaemonSets::of(&facts.daemon_sets);
        let by_kured = question.action == Some(Action::Kured);
        let mut entries = Vec::new();
        for item in items {
            let pod = match item {
                Item::Good(pod) => pod,
                Item::Malformed(bad) => return Err(bad.to_string()),
            };
            if pod.node_name.as_deref() != Some(question.node) || leave_out(pod) {
                continue;
            }
            let treatment = Treatment::of(pod, &question.settings.drain);
            let class = classify(pod, &treatment, &daemon_sets, &question.settings.namespace, by_kured);
            let (covering, budgets_unknown) = budgets.covering(pod);
            let (lane, operator) = (lane_of(pod, &covering), Operator::of_pod(pod));
            entries.push(Entry { pod, class, treatment, budgets: covering, budgets_unknown, lane, operator });
        }
        entries.sort_by(|a, b| place(a).cmp(&place(b)));
        let silent = |node: &Node| node.condition("Ready").is_none_or(|ready| ready.status != TriState::True);
        let kubelet_silent = facts.nodes.good().find(|node| node.metadata.name == question.node).is_some_and(silent);
        let workloads = Workloads::of(facts, now);
        let unscheduled = current(&facts.unscheduled_pods, now, Pod::UNSCHEDULED.max_age_seconds).map_or_else(
            // It explains and decides nothing: what is held is held without it too.
            |_| Vec::new(),
            |_| facts.unscheduled_pods.good().filter(|pod| pod.unschedulable().is_some()).collect(),
        );
        let budgets_at = budgets.at;
        Ok(Self {
            node: question.node,
            entries,
            pods_at,
            budgets_at,
            kubelet_silent,
            sets_after: None,
            workloads,
            unscheduled,
        })
    }

    /// A pod of the same controller that the scheduler finds no node for, and why, by name the first.
    pub(super) fn unschedulable_sibling(&self, pod: &Pod) -> Option<(&'a str, &'a str)> {
        let owner = pod.controller.as_ref().filter(|owner| !owner.uid.is_empty())?;
        let of_it = |one: &&&'a Pod| one.controller.as_ref().is_some_and(|other| other.uid == owner.uid);
        let first = self.unscheduled.iter().filter(of_it).min_by_key(|one| &one.metadata.name)?;
        Some((first.metadata.name.as_str(), first.unschedulable()?))
    }

    /// The pods that have to leave, also those that never will, in the order in which they go.
    pub fn going(&self) -> impl Iterator<Item = &Entry<'a>> {
        self.entries.iter().filter(|entry| !matches!(entry.class, Class::Stays(_)))
    }
}

/// The order in which pods go: by wave, within it by ascending priority, then by name.
fn place<'e>(entry: &'e Entry<'_>) -> (Option<Wave>, i64, &'e str, &'e str) {
    (entry.wave(), entry.pod.priority, &entry.pod.metadata.namespace, &entry.pod.metadata.name)
}
