//! What a person should know before a node is drained, though nothing of it stops the drain.

use std::collections::BTreeMap;

use serde::Serialize;

use super::answer::Lane;
use super::classify::{Class, Stay};
use super::operator::{database_cluster, is_primary};
use super::rules::{SaidBy, Treatment};
use super::view::{Entry, View};
use crate::config::Then;
use crate::facts::Pod;

crate::api::names! {
    /// What a warning is about.
    WarningKind, "drain warning", {
        /// A workload with one replica: it is away until that runs elsewhere.
        SingleReplica = "single-replica",
        /// All replicas of a workload are on this node.
        AllReplicasHere = "all-replicas-here",
        /// It may run on this node only, and comes back with it.
        Pinned = "pinned",
        /// What is in an `emptyDir` volume is lost.
        EmptyDir = "empty-dir",
        /// It may take longer to end than the drain may take.
        LongGrace = "long-grace",
        /// Something else must take its finalizer away before it is gone.
        Finalizers = "finalizers",
        /// It tolerates the cordon and may come back to this node.
        ToleratesCordon = "tolerates-cordon",
        /// The drain waits for it to finish by itself.
        WaitsForCompletion = "waits-for-completion",
        /// The primary of a database, which its operator moves to another node once this one is cordoned.
        PrimaryMoves = "primary-moves",
        /// The node's kubelet is silent: nothing ends its pods, whatever time they have.
        KubeletSilent = "kubelet-silent",
        /// A rule names a pod of a DaemonSet, which stays all the same.
        DaemonSetStays = "daemon-set-stays",
    }
}

/// The taint of a node of which nothing is heard (well-known, Kubernetes).
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// A warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    /// The pod or workload, as `namespace/name` or `Kind namespace/name`.
    pub object: String,
    /// In words.
    pub message: String,
    /// What helps, where something does.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

impl Warning {
    const fn new(kind: WarningKind, object: String, message: String) -> Self {
        Self { kind, object, message, remedy: String::new() }
    }
}

/// All warnings about a node, by kind, then by object.
pub(super) fn warnings(view: &View<'_>, deadline_seconds: i64) -> Vec<Warning> {
    let mut found: Vec<Warning> = view.going().flat_map(|entry| of_pod(entry, view, deadline_seconds)).collect();
    found.extend(of_workloads(view));
    found.extend(of_the_kubelet(view));
    found.extend(of_daemon_sets(view));
    found.sort_by(|a, b| (a.kind, &a.object).cmp(&(b.kind, &b.object)));
    found
}

/// How long a pod may take to end.
pub(super) fn grace_of(entry: &Entry<'_>) -> i64 {
    let pod = entry.pod;
    pod.deletion_grace_seconds.or(entry.treatment.grace_seconds).unwrap_or(pod.grace_seconds)
}

fn of_pod(entry: &Entry<'_>, view: &View<'_>, deadline_seconds: i64) -> Vec<Warning> {
    let node = view.node;
    let one_by_one = matches!(entry.lane, Lane::StatefulSet(_)) && !entry.treatment.force;
    let others_of_its_set =
        view.going().filter(|other| one_by_one && other.lane == entry.lane).count().saturating_sub(1);
    let pod = entry.pod;
    let mut found = Vec::new();
    let mut warn = |kind, message: String| {
        found.push(Warning::new(kind, pod.metadata.full_name(), message));
    };
    if !pod.place.pinned_to.is_empty() && pod.place.pinned_to.iter().all(|name| name == node) {
        let waits = if others_of_its_set > 0 {
            format!(
                "; until then no other pod of its StatefulSet is let go, so that the drain reaches its limit with {} more of it here",
                others_of_its_set
            )
        } else {
            String::new()
        };
        warn(WarningKind::Pinned, format!("may run on this node only: it comes back with the node{waits}"));
    }
    if !pod.place.empty_dirs.is_empty() {
        let names: Vec<String> = pod
            .place
            .empty_dirs
            .iter()
            .map(|dir| if dir.in_memory { format!("{} (in memory)", dir.name) } else { dir.name.clone() })
            .collect();
        warn(WarningKind::EmptyDir, format!("what is in its emptyDir is lost: {}", names.join(", ")));
    }
    let grace = grace_of(entry);
    if grace > deadline_seconds {
        warn(
            WarningKind::LongGrace,
            format!(
                "has {grace} s to end, and the whole drain {deadline_seconds} s: give it a rule with grace_seconds, or the drain more time"
            ),
        );
    }
    if !pod.finalizers.is_empty() {
        warn(WarningKind::Finalizers, format!("is gone only once its finalizers are: {}", pod.finalizers.join(", ")));
    }
    if pod.place.tolerates_cordon {
        warn(WarningKind::ToleratesCordon, "tolerates the cordon and may be put on this node again".to_owned());
    }
    if is_primary(pod)
        && let Some(cluster) = database_cluster(pod)
    {
        // Its operator moves it when the node is cordoned; the budget of the primary allows none until then.
        let until = if entry.budgets.is_empty() {
            "no budget keeps it until then, so that its eviction is a failover"
        } else {
            "it goes only then"
        };
        let what =
            format!("holds the primary of database {cluster}: its operator moves that once the node is cordoned");
        warn(WarningKind::PrimaryMoves, format!("{what}; {until}"));
    }
    if entry.treatment.then == Then::WaitForCompletion {
        let by = &entry.treatment.said_by;
        warn(WarningKind::WaitsForCompletion, format!("is left to finish ({by}), for {deadline_seconds} s at most"));
    }
    found
}

/// No pod is forced or left out for it: whether its containers have ended is what nobody knows.
fn of_the_kubelet(view: &View<'_>) -> Option<Warning> {
    let going = view.going().count();
    let message = || {
        format!(
            "is not Ready: its kubelet ends none of the {going} to evict, so that the drain reaches its limit and is put back; \
             budgets protect nobody meanwhile, since the taint of such a node ({UNREACHABLE}, NoExecute) lets its pods be \
             deleted without asking them"
        )
    };
    let object = format!("Node {}", view.node);
    (view.kubelet_silent && going > 0).then(|| Warning::new(WarningKind::KubeletSilent, object, message()))
}

/// A rule that would move a DaemonSet's pod is told to be without effect: the controller lets its pods tolerate every cordon
/// (`AddOrUpdateDaemonPodTolerations`, Kubernetes), so that a wave of them would never be empty.
fn of_daemon_sets(view: &View<'_>) -> Vec<Warning> {
    let told = |entry: &Entry<'_>| {
        let Treatment { then, said_by, order, grace_seconds, force } = &entry.treatment;
        let moves = *then == Then::WaitForCompletion || *order != 0 || grace_seconds.is_some() || *force;
        let SaidBy::Rule(rule) = said_by else { return None };
        if entry.class != Class::Stays(Stay::DaemonSet) || *then == Then::Skip || !moves {
            return None;
        }
        let object = entry.pod.metadata.full_name();
        let message = format!(
            "stays, whatever rule {rule} says: its DaemonSet puts it back at once, since it tolerates the cordon"
        );
        let remedy = "such pods are stopped in order by the kubelet itself as the node goes down: \
                      shutdownGracePeriodByPodPriority in its configuration";
        Some(Warning { remedy: remedy.to_owned(), ..Warning::new(WarningKind::DaemonSetStays, object, message) })
    };
    view.entries.iter().filter_map(told).collect()
}

/// What keeps a workload of one replica up meanwhile. maint scales nothing by itself. A StatefulSet's second pod is another
/// member and no replacement, so that there is nothing to say of one.
fn second_replica(pod: &Pod) -> Option<String> {
    let owner = pod.controller.as_ref().filter(|owner| owner.kind == "ReplicaSet")?;
    let hash = pod.metadata.labels.get("pod-template-hash");
    let of_deployment = hash.and_then(|hash| owner.name.strip_suffix(hash.as_str())?.strip_suffix('-'));
    let (kind, name) = of_deployment.map_or(("replicaset", owner.name.as_str()), |name| ("deployment", name));
    let namespace = &pod.metadata.namespace;
    Some(format!("to keep it up, start a second one first: kubectl -n {namespace} scale {kind} {name} --replicas=2"))
}

fn of_workloads(view: &View<'_>) -> Vec<Warning> {
    let mut here: BTreeMap<(String, String), (&Pod, i64)> = BTreeMap::new();
    for entry in view.going() {
        let Some(owner) = &entry.pod.controller else { continue };
        let name = format!("{} {}/{}", owner.kind, entry.pod.metadata.namespace, owner.name);
        here.entry((name, owner.uid.clone())).or_insert((entry.pod, 0)).1 += 1;
    }
    let mut found = Vec::new();
    for ((object, _), (pod, count)) in here {
        let Some(replicas) = view.workloads.replicas(pod) else { continue };
        if replicas == 1 {
            let message = "has one replica: it is away until that runs elsewhere".to_owned();
            let remedy = second_replica(pod).unwrap_or_default();
            found.push(Warning { remedy, ..Warning::new(WarningKind::SingleReplica, object, message) });
        } else if count >= replicas && replicas > 1 {
            let message = format!("has all {replicas} replicas on this node");
            found.push(Warning::new(WarningKind::AllReplicasHere, object, message));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::DrainPlan;
    use super::super::testing::{Cluster, budget_document, look, now, of_set, pod_document, settings, workload};
    use super::*;

    fn told(pods: Vec<Value>, stateful_sets: Vec<Value>, replica_sets: Vec<Value>) -> Vec<String> {
        told_of(&Cluster { pods, stateful_sets, replica_sets, ..Cluster::default() })
    }

    fn told_of(cluster: &Cluster) -> Vec<String> {
        let settings =
            settings("[[drain.rules]]\nname = \"builds\"\npods = \"app=build\"\nthen = \"wait-for-completion\"\n");
        look(&cluster.facts(now()), &settings, now(), |view| {
            let told = |one: Warning| format!("{} {} {} {}", one.kind, one.object, one.message, one.remedy);
            warnings(view, 1800).into_iter().map(|one| told(one).trim_end().to_owned()).collect()
        })
    }

    #[test]
    fn a_silent_kubelet_is_said_once_where_something_has_to_go() {
        let silent = |pods: Vec<Value>| Cluster { pods, node_ready: Some(false), ..Cluster::default() };
        let wanted = "kubelet-silent Node n1 is not Ready: its kubelet ends none of the 2 to evict, so that the drain reaches \
                      its limit and is put back; budgets protect nobody meanwhile, since the taint of such a node \
                      (node.kubernetes.io/unreachable, NoExecute) lets its pods be deleted without asking them";
        let web = |name: &str| pod_document(name, json!({}));
        assert_eq!(told_of(&silent(vec![web("web-0"), web("web-1")])), [wanted]);
        assert_eq!(told_of(&silent(vec![])), Vec::<String>::new());
    }

    /// Nothing is scaled by maint: what is away is told before, with what helps.
    #[test]
    fn a_deployment_of_one_replica_is_told_how_to_stay_up() {
        let pod = pod_document(
            "web-7d9c-x",
            json!({"metadata": {"labels": {"pod-template-hash": "7d9c"}, "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d9c", "uid": "uid-web", "controller": true}]}}),
        );
        let cluster = Cluster { pods: vec![pod], replica_sets: vec![workload("web", 1, 1)], ..Cluster::default() };
        let wanted = "single-replica ReplicaSet shop/web-7d9c has one replica: it is away until that runs elsewhere to keep it \
                      up, start a second one first: kubectl -n shop scale deployment web --replicas=2";
        assert_eq!(told_of(&cluster), [wanted]);
        let plan = look(&cluster.facts(now()), &settings(""), now(), |view| DrainPlan::of(view, 1800).to_string());
        let lines = "warning: ReplicaSet shop/web-7d9c has one replica: it is away until that runs elsewhere\n  to keep it up, \
                     start a second one first: kubectl -n shop scale deployment web --replicas=2\n";
        assert!(plan.ends_with(lines), "{plan}");
    }

    #[test]
    fn a_rule_that_names_a_daemon_set_is_told_to_move_nothing() {
        let agent = || {
            pod_document(
                "agent",
                json!({"metadata": {"labels": {"app": "agent"}, "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "", "controller": true}]}}),
            )
        };
        let wanted = "daemon-set-stays shop/agent stays, whatever rule r says: its DaemonSet puts it back at once, since it \
                      tolerates the cordon such pods are stopped in order by the kubelet itself as the node goes down: \
                      shutdownGracePeriodByPodPriority in its configuration";
        let rows = [
            ("last", "order = 9", vec![wanted]),
            ("sooner", "grace_seconds = 5", vec![wanted]),
            ("whatever comes", "force = true", vec![wanted]),
            ("left, as it is", "then = \"skip\"", vec![]),
            ("nothing of its own", "", vec![]),
        ];
        for (row, says, wanted) in rows {
            let settings = settings(&format!("[[drain.rules]]\nname = \"r\"\npods = \"app=agent\"\n{says}\n"));
            let cluster = Cluster { pods: vec![agent()], ..Cluster::default() };
            let found = look(&cluster.facts(now()), &settings, now(), |view| {
                let told = |one: Warning| format!("{} {} {} {}", one.kind, one.object, one.message, one.remedy);
                assert_eq!(view.going().count(), 0, "{row}: nobody goes");
                warnings(view, 1800).into_iter().map(told).collect::<Vec<_>>()
            });
            assert_eq!(found, wanted, "{row}");
        }
    }

    #[test]
    fn the_primary_of_a_database_is_told_to_move() {
        let primary = || {
            pod_document(
                "db-1",
                json!({"metadata": {"labels": {"app": "web", "cnpg.io/cluster": "db", "cnpg.io/instanceRole": "primary"}}}),
            )
        };
        let budget = budget_document("db-primary", json!({}));
        let begins = "primary-moves shop/db-1 holds the primary of database shop/db: its operator moves that once the node is \
                      cordoned; ";
        let rows = [
            ("with its budget", vec![budget], "it goes only then"),
            ("without one", vec![], "no budget keeps it until then, so that its eviction is a failover"),
        ];
        for (row, budgets, ends) in rows {
            let cluster = Cluster { pods: vec![primary()], budgets, ..Cluster::default() };
            assert_eq!(told_of(&cluster), [format!("{begins}{ends}")], "{row}");
        }
    }

    #[test]
    fn what_a_person_should_know() {
        let spec = |spec: Value| vec![pod_document("web-0", json!({"spec": spec}))];
        let rows: Vec<(&str, Vec<String>, &[&str])> = vec![
            ("nothing", told(spec(json!({})), vec![], vec![]), &[]),
            (
                "emptyDir",
                told(
                    spec(
                        json!({"volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "shm", "emptyDir": {"medium": "Memory"}}]}),
                    ),
                    vec![],
                    vec![],
                ),
                &["empty-dir shop/web-0 what is in its emptyDir is lost: tmp, shm (in memory)"],
            ),
            (
                "one replica",
                told(spec(json!({})), vec![], vec![workload("web", 1, 1)]),
                &[
                    "single-replica ReplicaSet shop/web has one replica: it is away until that runs elsewhere to keep it up, start a second one first: kubectl -n shop scale replicaset web --replicas=2",
                ],
            ),
            (
                "one replica of a StatefulSet",
                told(vec![of_set("db", 0)], vec![workload("db", 1, 1)], vec![]),
                &["single-replica StatefulSet shop/db has one replica: it is away until that runs elsewhere"],
            ),
            (
                "all replicas here",
                told(vec![of_set("db", 0), of_set("db", 1)], vec![workload("db", 2, 2)], vec![]),
                &["all-replicas-here StatefulSet shop/db has all 2 replicas on this node"],
            ),
            ("one of two here", told(vec![of_set("db", 0)], vec![workload("db", 2, 2)], vec![]), &[]),
            (
                "pinned",
                told(spec(json!({"nodeSelector": {"kubernetes.io/hostname": "n1"}})), vec![], vec![]),
                &["pinned shop/web-0 may run on this node only: it comes back with the node"],
            ),
            (
                "pinned, with another of its StatefulSet",
                told(
                    vec![
                        {
                            let mut pinned = of_set("db", 0);
                            pinned["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "n1"});
                            pinned
                        },
                        of_set("db", 1),
                    ],
                    vec![workload("db", 3, 3)],
                    vec![],
                ),
                &[
                    "pinned shop/db-0 may run on this node only: it comes back with the node; until then no other pod of its StatefulSet is let go, so that the drain reaches its limit with 1 more of it here",
                ],
            ),
            ("grace at the deadline", told(spec(json!({"terminationGracePeriodSeconds": 1800})), vec![], vec![]), &[]),
            (
                "grace above it",
                told(spec(json!({"terminationGracePeriodSeconds": 1801})), vec![], vec![]),
                &[
                    "long-grace shop/web-0 has 1801 s to end, and the whole drain 1800 s: give it a rule with grace_seconds, or the drain more time",
                ],
            ),
            (
                "finalizers",
                told(
                    vec![pod_document("web-0", json!({"metadata": {"finalizers": ["example.com/x"]}}))],
                    vec![],
                    vec![],
                ),
                &["finalizers shop/web-0 is gone only once its finalizers are: example.com/x"],
            ),
            (
                "tolerates",
                told(spec(json!({"tolerations": [{"operator": "Exists"}]})), vec![], vec![]),
                &["tolerates-cordon shop/web-0 tolerates the cordon and may be put on this node again"],
            ),
            (
                "waits",
                told(vec![pod_document("build-0", json!({"metadata": {"labels": {"app": "build"}}}))], vec![], vec![]),
                &["waits-for-completion shop/build-0 is left to finish (rule builds), for 1800 s at most"],
            ),
        ];
        for (row, found, wanted) in rows {
            assert_eq!(found, wanted, "{row}");
        }
    }
}
