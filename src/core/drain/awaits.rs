//! What in the cluster makes another look at a drain worth its requests.

use std::collections::BTreeSet;

use super::answer::Lane;
use super::operator::database_cluster;
use super::view::Entry;
use super::wait::Wait;

/// What a drain waits for. Whatever else is expected on the node or of budgets changes nothing about who goes next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a question of its own, and any of them may be true together"
)]
pub struct Awaits {
    /// Budgets that hold a pod, by `namespace/name`.
    pub budgets: BTreeSet<String>,
    /// A pod waits for a budget of which the name is not known: any of them may be it.
    pub any_budget: bool,
    /// Pods on their way out, by uid.
    pub leaving: BTreeSet<String>,
    /// Some of them, by uid: when all of one group are gone, somebody else's turn may have come.
    pub groups: Vec<BTreeSet<String>>,
    /// Nobody waits but for those that are on their way out: when all of them are gone, the node is drained.
    pub nobody_else: bool,
    /// More evictions follow as soon as those of this step are answered.
    pub more: bool,
    /// A pod of a StatefulSet has to go: the set's status is asked before it does, as its budget may be taken away.
    pub sets: bool,
}

impl Awaits {
    /// Whether a pod waits for the replacement of another: for a budget to allow one more, or for its StatefulSet.
    #[must_use]
    pub fn replacements(&self) -> bool {
        self.any_budget || self.sets || !self.budgets.is_empty()
    }

    /// Of these pods, and why each is still there.
    pub(super) fn of(waiting: &[(&Entry<'_>, &Wait)]) -> Self {
        let mut awaits = Self { nobody_else: true, ..Self::default() };
        // The wave whose turn it is; once its pods are gone, the next one's may have come.
        let mut turn = None;
        for (entry, why) in waiting {
            let of_a_set = entry.pod.controller.as_ref().is_some_and(|owner| owner.kind == "StatefulSet");
            awaits.sets |= of_a_set || matches!(entry.lane, Lane::StatefulSet(_));
            if why.is_leaving() {
                awaits.leaving.insert(entry.pod.metadata.uid.clone());
                continue;
            }
            awaits.nobody_else = false;
            awaits.more |= matches!(why, Wait::Turn);
            if why.is_parked() {
                awaits.budgets.extend(entry.budgets.iter().map(|budget| budget.metadata.full_name()));
                awaits.any_budget |= entry.budgets.is_empty() || entry.budgets_unknown.is_some();
            }
            if let Wait::Wave { first } = why {
                turn = Some(*first);
            }
        }
        let leaving = || waiting.iter().filter(|(_, why)| why.is_leaving()).map(|(entry, _)| *entry);
        let uid = |entry: &Entry<'_>| entry.pod.metadata.uid.clone();
        let before = |entry: &&Entry<'_>| turn.is_some_and(|turn| entry.wave().is_none_or(|wave| wave <= turn));
        let one_by_one =
            |entry: &&Entry<'_>| matches!(entry.lane, Lane::StatefulSet(_)) || database_cluster(entry.pod).is_some();
        awaits.groups.push(leaving().filter(before).map(uid).collect());
        awaits.groups.extend(leaving().filter(one_by_one).map(|entry| BTreeSet::from([uid(entry)])));
        awaits.groups.retain(|group| !group.is_empty());
        awaits
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::drain::testing::{
        Cluster, budget_document, look, now, of_set, pod_document, settings, status, workload,
    };
    use crate::drain::{Answers, next};

    fn web(name: &str) -> Value {
        pod_document(name, json!({}))
    }

    fn ending(mut pod: Value) -> Value {
        pod["metadata"]["deletionTimestamp"] = json!("2026-11-30T01:00:20Z");
        pod
    }

    /// Budgets, then groups of pods, then the rest that is so, in words.
    fn told(awaits: &Awaits) -> String {
        let names =
            |uids: &BTreeSet<String>| uids.iter().map(|uid| uid.replace("uid-", "")).collect::<Vec<_>>().join("+");
        let mut told: Vec<String> = awaits.budgets.iter().cloned().collect();
        told.push(format!("of {}", names(&awaits.leaving)));
        told.extend(awaits.groups.iter().map(names));
        let flags = [
            (awaits.any_budget, "any budget"),
            (awaits.nobody_else, "nobody else"),
            (awaits.more, "more"),
            (awaits.sets, "sets"),
        ];
        told.extend(flags.iter().filter(|(is, _)| *is).map(|(_, word)| (*word).to_owned()));
        told.join("; ")
    }

    #[test]
    fn what_is_worth_a_look() {
        let critical = || {
            let over = json!({"metadata": {"labels": {"app": "dns"}}, "spec": {"priorityClassName": "system-cluster-critical"}});
            pod_document("dns", over)
        };
        let bare = || pod_document("bare", json!({"metadata": {"ownerReferences": []}}));
        let database =
            |name: &str, of: &str| pod_document(name, json!({"metadata": {"labels": {"cnpg.io/cluster": of}}}));
        let allows = || budget_document("web", json!({}));
        let none = || budget_document("web", status(0, 2, 2, 3));
        let sets = vec![workload("db", 2, 2)];
        let rows: Vec<(&str, Vec<Value>, Vec<Value>, &str)> = vec![
            ("all go: until all are gone", vec![web("a"), ending(web("b"))], vec![], "of a+b; nobody else"),
            ("the rest waits for its budget alone", vec![web("a"), web("b")], vec![allows()], "shop/web; of a"),
            ("all wait for it", vec![web("a"), web("b")], vec![none()], "shop/web; of "),
            ("two budgets", vec![web("a")], vec![allows(), budget_document("x", json!({}))], "shop/web; shop/x; of "),
            ("a later wave", vec![web("a"), web("b"), critical()], vec![], "of a+b; a+b"),
            ("held by a budget, the later wave goes", vec![web("a"), critical()], vec![none()], "shop/web; of dns"),
            ("one that never goes", vec![web("a"), bare()], vec![], "of a"),
            ("a StatefulSet", vec![of_set("db", 0), of_set("db", 1), web("a")], vec![], "of a+db-0; db-0; sets"),
            (
                "a StatefulSet under a budget",
                vec![of_set("db", 0)],
                vec![budget_document("db", json!({"spec": {"selector": {"matchLabels": {"app": "db"}}}}))],
                "of db-0; nobody else; sets",
            ),
            ("databases", vec![database("x", "x"), database("y", "y")], vec![], "of x; x"),
        ];
        for (row, pods, budgets, wanted) in rows {
            let cluster = Cluster { pods, budgets, stateful_sets: sets.clone(), ..Cluster::default() };
            let found =
                look(&cluster.facts(now()), &settings(""), now(), |view| next(view, &Answers::default(), now()));
            assert_eq!(told(&found.awaits), wanted, "{row}");
        }
        let pods = (0..300).map(|index| web(&format!("p{index}"))).collect();
        let cluster = Cluster { pods, ..Cluster::default() };
        let found = look(&cluster.facts(now()), &settings(""), now(), |view| next(view, &Answers::default(), now()));
        assert!(found.awaits.more && !found.awaits.nobody_else, "more than a step asks for");
    }
}
