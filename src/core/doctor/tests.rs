//! What the doctor says of bent clusters; whole installations are in the tests of the command line.

use serde_json::json;

use super::*;
use crate::facts::FailureKind;
use crate::gates::testing::{World, ago, now};

/// The answers of a family on a healthy cluster with kured, bent in one place.
fn ask(family: FamilyId, bend: impl FnOnce(&mut World, &mut Facts)) -> Vec<Answer> {
    let mut world = World::healthy().with_kured();
    let mut unused = Facts::default();
    bend(&mut world, &mut unused);
    let case = world.case();
    let mut facts = case.facts;
    if !matches!(unused.nodes, Observation::NotAsked) {
        facts.nodes = unused.nodes;
    }
    if !matches!(unused.daemon_sets, Observation::NotAsked) {
        facts.daemon_sets = unused.daemon_sets;
    }
    let input = Input { facts: &facts, settings: &case.settings, now: now() };
    let (_, answers) = examine(&input).into_iter().find(|(one, _)| one.id == family).expect("the family");
    answers
}

#[test]
fn every_family_has_one_row_and_is_fine_where_all_is_well() {
    assert_eq!(FAMILIES.iter().map(|family| family.id).collect::<Vec<_>>(), FamilyId::ALL);
    for family in FAMILIES {
        let answers = ask(family.id, |_, _| {});
        assert!(!answers.is_empty(), "{}: silence is no answer", family.id);
        assert!(answers.iter().all(|answer| answer.status == Status::Pass), "{}: {answers:?}", family.id);
    }
}

#[test]
fn what_could_not_be_read_is_never_fine() {
    for family in FAMILIES {
        let refused = |facts: &mut Facts| {
            facts.daemon_sets =
                Observation::Failed { kind: FailureKind::Forbidden, detail: "403".to_owned(), at: now() };
        };
        let answers = ask(family.id, |_, facts| refused(facts));
        assert!(answers.iter().any(|answer| answer.status == Status::Unknown), "{}: {answers:?}", family.id);
        let answers = ask(family.id, |_, facts| facts.daemon_sets = Observation::Absent { at: now() });
        let told = answers.iter().any(|answer| answer.status == Status::Unknown);
        assert!(told || family.id == FamilyId::Rights, "{}: {answers:?}", family.id);
    }
    let rights = ask(FamilyId::Rights, |_, facts| {
        facts.nodes = Observation::Failed { kind: FailureKind::Forbidden, detail: "403".to_owned(), at: now() };
    });
    assert!(rights[0].message.contains("the right to list nodes is missing: 403"), "{rights:?}");
    assert!(rights[0].remedy[0].starts_with("kubectl auth can-i list nodes -A"), "{rights:?}");
}

type Row = (&'static str, FamilyId, fn(&mut World), Status, &'static str);

#[test]
fn what_it_finds() {
    use FamilyId::{Installation, Leftovers, Lock};
    const LOCK: &str = "weave.works/kured-node-lock";
    fn lock(world: &mut World, text: &str) {
        world.named(SourceId::DaemonSets, "kured")["metadata"]["annotations"][LOCK] = json!(text);
    }
    fn node(world: &mut World) -> &mut serde_json::Value {
        world.named(SourceId::Nodes, "worker2")
    }
    let rows: [Row; 18] = [
        (
            "a node without",
            Installation,
            |w| w.of(SourceId::KuredPods).truncate(2),
            Status::Warn,
            "no kured runs on worker3",
        ),
        (
            "not Ready",
            Installation,
            |w| w.named(SourceId::KuredPods, "kured-worker1")["status"]["conditions"] = json!([]),
            Status::Block,
            "on worker1 is not Ready",
        ),
        (
            "a rollout",
            Installation,
            |w| w.named(SourceId::DaemonSets, "kured")["status"]["updatedNumberScheduled"] = json!(1),
            Status::Block,
            "1 of 3 pods updated",
        ),
        (
            "not installed",
            Installation,
            |w| w.of(SourceId::DaemonSets).clear(),
            Status::NotApplicable,
            "kured is not installed: nodes are rebooted by action pod",
        ),
        (
            "kured#478: a ghost",
            Lock,
            |w| lock(w, r#"{"nodeID":"old"}"#),
            Status::Warn,
            "names old, and there is no such node: a ghost",
        ),
        (
            "garbage",
            Lock,
            |w| lock(w, "x"),
            Status::Block,
            "is no JSON: expected value at line 1 column 1: no kured takes it",
        ),
        (
            "the wrong format",
            Lock,
            |w| lock(w, r#"{"locks":[]}"#),
            Status::Block,
            "has not the format of --concurrency 1",
        ),
        ("by hand", Lock, |w| lock(w, r#"{"nodeID":"manual"}"#), Status::Block, "a person holds the lock"),
        ("a node at work", Lock, |w| lock(w, r#"{"nodeID":"worker1"}"#), Status::Warn, "node worker1 holds the lock"),
        (
            "expired",
            Lock,
            |w| lock(w, &format!(r#"{{"nodeID":"worker1","created":"{}","TTL":1}}"#, ago(60))),
            Status::Warn,
            "has expired",
        ),
        (
            "ours, gone",
            Lock,
            |w| lock(w, r#"{"nodeID":"maint:a","maint":{"maintenance":"u"}}"#),
            Status::Block,
            "a run of maint that is gone holds the lock",
        ),
        (
            "ours, there",
            Lock,
            |w| {
                lock(w, r#"{"nodeID":"maint:a","maint":{"maintenance":"u"}}"#);
                *w.of(SourceId::Maintenances) = vec![
                    json!({"metadata": {"name": "a-1", "uid": "u"}, "spec": {"nodeName": "a"}, "status": {"phase": "Draining"}}),
                ];
            },
            Status::Pass,
            "the run a-1 (Draining) of maint holds the lock",
        ),
        (
            "kured#63: a cordon that nobody takes off",
            Leftovers,
            |w| {
                node(w)["spec"]["unschedulable"] = json!(true);
                node(w)["metadata"]["managedFields"] =
                    json!([{"manager": "kured", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}]);
            },
            Status::Warn,
            "kured cordoned worker2 and holds no lock for it",
        ),
        (
            "its own cordon while it holds the lock",
            Leftovers,
            |w| {
                lock(w, r#"{"nodeID":"worker2"}"#);
                node(w)["spec"]["unschedulable"] = json!(true);
                node(w)["metadata"]["managedFields"] =
                    json!([{"manager": "kured", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}]);
            },
            Status::Pass,
            "nothing is left over on 3 nodes",
        ),
        (
            "R12: a mark that is over",
            Leftovers,
            |w| node(w)["metadata"]["annotations"] = json!({"weave.works/kured-reboot-in-progress": ago(90_000)}),
            Status::Warn,
            "the mark is still there",
        ),
        (
            "a mark that is a wish",
            Leftovers,
            |w| node(w)["metadata"]["annotations"] = json!({"weave.works/kured-reboot-in-progress": ago(60)}),
            Status::Pass,
            "nothing is left over",
        ),
        (
            "a taint of a kured that is gone",
            Leftovers,
            |w| {
                node(w)["spec"]["taints"] =
                    json!([{"key": "weave.works/kured-node-reboot", "effect": "PreferNoSchedule"}]);
                w.of(SourceId::KuredPods).clear();
            },
            Status::Warn,
            "still has kured's taint weave.works/kured-node-reboot, and no kured runs there",
        ),
        ("garbage hides who holds", Leftovers, |w| lock(w, "x"), Status::Unknown, "while its lock cannot be read"),
    ];
    for (row, family, bend, status, message) in rows {
        let answers = ask(family, |world, _| bend(world));
        let found = answers.iter().find(|answer| answer.message.contains(message));
        assert_eq!(found.map(|answer| answer.status), Some(status), "{row}: {answers:?}");
        let told = found.expect("there");
        assert!(!matches!(status, Status::Warn | Status::Block) || !told.remedy.is_empty(), "{row}: nothing to do");
    }
}

#[test]
fn the_same_fault_on_several_nodes_is_one_answer() {
    let answers = ask(FamilyId::Settings, |world, _| {
        for name in ["kured-worker1", "kured-worker3"] {
            world.named(SourceId::KuredPods, name)["spec"]["containers"][0]["args"] = json!(["--period=1h"]);
        }
    });
    let blocks: Vec<_> =
        answers.iter().filter(|answer| answer.status == Status::Block).map(|answer| answer.message.as_str()).collect();
    assert_eq!(blocks.len(), 2, "{answers:?}");
    assert!(blocks[0].starts_with("kured on worker1, worker3 asks nobody"), "{blocks:?}");
    assert!(answers[0].message.starts_with("kured on worker2 asks maint every 1m"), "{answers:?}");
    assert_eq!(
        answers[1].remedy,
        ["set --prometheus-url (chart: configuration.prometheusUrl): http://maint.maint/kured/$(KURED_NODE_ID)"]
    );
}
