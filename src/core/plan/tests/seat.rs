//! Our own pod on the target: hand over, stay away, put back, or go last.

use serde_json::{Value, json};

use super::play::{Play, spec};
use super::table::{Row, check, halt, healthy, new_leader, pods_stay, reboot};
use super::world::{Pods, Scene, TARGET, later};
use crate::api::Phase::{Acting, Draining, Returning, Verifying};
use crate::api::record::{Maintenance, MaintenanceStatus};
use crate::api::{Reason, SourceId, Trigger};
use crate::drain::Answers;
use crate::facts::{Facts, Maintenance as Record, Observation, Source as _};
use crate::plan::{Act, OwnSeat, Step, abstains};

/// One of maint's own pods.
pub(super) fn own(name: &str, node: &str, ready: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "maint", "uid": format!("uid-{name}"),
            "labels": {"app.kubernetes.io/name": "maint"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "maint", "controller": true}]},
        "spec": {"nodeName": node},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
    })
}

fn sit(scene: &mut Scene, node: &str) {
    scene.seat = Some(OwnSeat { node: node.to_owned(), hand_over_from: scene.now });
    *scene.world.of(SourceId::OwnPods) = vec![own("maint-1", node, "True")];
}

fn on_the_target(scene: &mut Scene) {
    sit(scene, TARGET);
    scene.world.of(SourceId::OwnPods).push(own("maint-2", "worker1", "True"));
}

fn alone(scene: &mut Scene) {
    sit(scene, TARGET);
    scene.settings.run.allow_self = true;
}

fn word_of(step: &Step) -> &'static str {
    let blocked = step.status.findings.iter().any(|finding| finding.reason == Reason::LeaderOnTarget.as_str());
    match (step.hand_over, step.acts.first(), blocked) {
        (true, None, false) => "hands over",
        (false, Some(Act::AddFinalizer), false) => "starts",
        (false, None, true) => "blocked",
        (false, None, false) => "waits",
        _ => "confused",
    }
}

#[test]
fn who_may_start_a_run() {
    type Setup = fn(&mut Scene);
    let rows: [(&str, Setup, &str); 12] = [
        ("nobody knows where we run", |_| {}, "starts"),
        ("we run elsewhere", |scene| sit(scene, "worker1"), "starts"),
        ("on the target, another is Ready elsewhere", on_the_target, "hands over"),
        ("on the target, alone", |scene| sit(scene, TARGET), "blocked"),
        ("on the target, alone, and that is allowed", alone, "starts"),
        (
            "allowed, but another could lead",
            |scene| {
                on_the_target(scene);
                scene.settings.run.allow_self = true;
            },
            "hands over",
        ),
        (
            "the other one is not Ready",
            |scene| {
                sit(scene, TARGET);
                scene.world.of(SourceId::OwnPods).push(own("maint-2", "worker1", "False"));
            },
            "blocked",
        ),
        (
            "the other one is on the target too",
            |scene| {
                sit(scene, TARGET);
                scene.world.of(SourceId::OwnPods).push(own("maint-2", TARGET, "True"));
            },
            "blocked",
        ),
        (
            "the other one is being deleted",
            |scene| {
                on_the_target(scene);
                scene.world.of(SourceId::OwnPods)[1]["metadata"]["deletionTimestamp"] = json!("2026-11-30T00:00:00Z");
            },
            "blocked",
        ),
        (
            "a pod of that name in another namespace",
            |scene| {
                on_the_target(scene);
                scene.world.of(SourceId::OwnPods)[1]["metadata"]["namespace"] = json!("elsewhere");
            },
            "blocked",
        ),
        (
            "the pods cannot be read, although it is allowed",
            |scene| {
                alone(scene);
                scene.cluster.unreadable.insert(SourceId::OwnPods);
            },
            "blocked",
        ),
        (
            "nobody took the Lease the last time",
            |scene| {
                on_the_target(scene);
                scene.seat = Some(OwnSeat { node: TARGET.into(), hand_over_from: later(scene.now, 1) });
            },
            "blocked",
        ),
    ];
    for (name, setup, wanted) in rows {
        let mut play = Play::new(reboot());
        setup(&mut play.scene);
        let (record, facts) = (play.scene.record.clone().expect("a record"), play.scene.facts());
        let step = play.decide(&record, &facts, &Answers::default());
        assert_eq!(word_of(&step), wanted, "{name}: {step:#?}");
    }
}

/// The facts of the scene, in which the run has another beside it.
fn beside(play: &mut Play, own: &Maintenance, other: &Maintenance) -> Facts {
    let item = |record: &Maintenance| Record::item(&serde_json::to_value(record).expect("JSON"));
    let maintenances = Observation::Known { value: vec![item(own), item(other)], at: play.scene.now };
    Facts { maintenances, ..play.scene.facts() }
}

/// A run of another node, in this phase.
fn other_run(node: &str, phase: &str, blocked: bool) -> Maintenance {
    let mut other = Maintenance::new("other-1", spec("reboot", "pod"));
    other.metadata.uid = Some("uid-other".into());
    node.clone_into(&mut other.spec.node_name);
    other.status = Some(MaintenanceStatus {
        phase: phase.into(),
        blocked_since: blocked.then(|| "2026-11-30T00:00:00Z".into()),
        ..Default::default()
    });
    other
}

#[test]
fn a_hand_over_waits_for_other_runs_and_for_the_gates() {
    let mut play = Play::new(reboot());
    on_the_target(&mut play.scene);
    play.scene.settings.limits.max_unavailable = 2;
    let record = play.scene.record.clone().expect("a record");
    let other = other_run("laptop", "Settling", false);
    let facts = beside(&mut play, &record, &other);
    let step = play.decide(&record, &facts, &Answers::default());
    assert_eq!(word_of(&step), "waits", "{step:#?}");
    assert!(step.status.message.contains("until another run is over"), "{}", step.status.message);
    // Once it was said it is no write again.
    let mut again = record.clone();
    again.status = Some(step.status.clone());
    assert_eq!(play.decide(&again, &facts, &Answers::default()).status, step.status);

    halt(&mut play);
    let facts = play.scene.facts();
    let step = play.decide(&record, &facts, &Answers::default());
    assert_eq!(word_of(&step), "waits", "halted: the leader stays where it is");
}

/// Two leaders in turn, each with a run on its own node, would leave the Lease to each other.
#[test]
fn who_would_not_lead_is_not_handed_over_to() {
    let rows = [
        ("no run on its node", "laptop", "Pending", false, "hands over"),
        ("a wish on its node that could start", "worker1", "Pending", false, "waits"),
        ("a wish on its node that gates stop", "worker1", "Pending", true, "hands over"),
        ("a run on its node that is over", "worker1", "Succeeded", false, "hands over"),
    ];
    for (name, node, phase, blocked, wanted) in rows {
        let mut play = Play::new(reboot());
        on_the_target(&mut play.scene);
        let mut record = play.scene.record.clone().expect("a record");
        // Persons' wishes have no turns.
        Trigger::Manual.as_str().clone_into(&mut record.spec.trigger);
        let other = other_run(node, phase, blocked);
        let facts = beside(&mut play, &record, &other);
        let step = play.decide(&record, &facts, &Answers::default());
        assert_eq!(word_of(&step), wanted, "{name}: {step:#?}");
        if wanted == "waits" {
            assert!(step.status.message.contains("the run on the node of the replica"), "{}", step.status.message);
        }
    }
}

fn moves_on(play: &mut Play) {
    play.scene.term += 1;
    play.scene.seat = Some(OwnSeat { node: "worker1".into(), hand_over_from: play.scene.now });
}

/// An expired Lease is taken by the replica on the target.
fn takes_over(play: &mut Play) {
    new_leader(play);
    on_the_target(&mut play.scene);
}

const BACK: &str = "add-finalizer cordon evict uncordon remove-finalizer";
const POD: &str =
    "add-finalizer cordon evict create-action-pod uncordon mark-proven delete-action-pod remove-finalizer";
const TOLD: &str = "started:info backed-out:warning";
const FINE: &str = "started:info finished:info";

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { name: "handed over: the other one goes on", spec: reboot, setup: on_the_target, events: &[(crate::api::Phase::Pending, 3, moves_on)], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: FINE, says: "is done" },
    Row { name: "it took over while draining: it only puts back", spec: reboot, setup: pods_stay, events: &[(Draining, 1, takes_over)], end: "Failed LeaderOnTarget", acts: BACK, node: "schedulable", messages: TOLD, says: "the pod of the leader that took over runs on the node" },
    Row { name: "at the hand-over of the node", spec: super::table::nobody_waits, setup: healthy, events: &[(Acting, 1, takes_over)], end: "Failed LeaderOnTarget", acts: BACK, node: "schedulable", messages: TOLD, says: "the pod of the leader that took over runs on the node" },
    Row { name: "after commit it goes on", spec: reboot, setup: healthy, events: &[(Returning, 1, takes_over)], end: "Succeeded Proven", acts: "add-finalizer cordon evict create-action-pod cordon uncordon mark-proven delete-action-pod remove-finalizer", node: "schedulable", messages: FINE, says: "is done" },
    Row { name: "and proves the node", spec: reboot, setup: healthy, events: &[(Verifying, 1, takes_over)], end: "Succeeded Proven", acts: "add-finalizer cordon evict create-action-pod cordon uncordon mark-proven delete-action-pod remove-finalizer", node: "schedulable", messages: FINE, says: "is done" },
    Row { name: "alone and allowed: it goes on elsewhere", spec: reboot, setup: alone, events: &[(Draining, 0, moves_on)], end: "Succeeded Proven", acts: "add-finalizer cordon evict create-action-pod uncordon mark-proven delete-action-pod remove-finalizer", node: "schedulable", messages: FINE, says: "is done" },
];

#[test]
fn who_finishes_a_run() {
    check(ROWS);
}

#[test]
fn our_own_pod_is_evicted_last() {
    let mut play = Play::new(reboot());
    alone(&mut play.scene);
    play.scene.cluster.pods = Pods::Stay;
    play.run_until(Draining, 0);
    let record = play.scene.record.clone().expect("a record");
    let rows: [(&str, &[(&str, bool)], &[&str]); 4] = [
        ("others first", &[("maint-1", false), ("web-0", false), ("web-1", false)], &["web-0", "web-1"]),
        ("they are ending", &[("maint-1", false), ("web-0", true)], &[]),
        ("they are gone", &[("maint-1", false)], &["maint-1"]),
        ("it is ending", &[("maint-1", true)], &[]),
    ];
    for (name, pods, wanted) in rows {
        let documents = pods.iter().map(|(name, ending)| {
            let mut pod = own(name, TARGET, "True");
            if name.starts_with("web") {
                pod["metadata"]["namespace"] = json!("shop");
            }
            if *ending {
                pod["metadata"]["deletionTimestamp"] = json!(later(play.scene.now, 30).to_string());
            }
            pod
        });
        *play.scene.world.of(SourceId::TargetPods) = documents.collect();
        let facts = play.scene.facts();
        let acts = play.decide(&record, &facts, &Answers::default()).acts;
        let evicted: Vec<String> = acts
            .into_iter()
            .flat_map(|act| if let Act::Evict(batch) = act { batch } else { Vec::new() })
            .map(|eviction| eviction.name)
            .collect();
        assert_eq!(evicted, wanted, "{name}");
    }
}

#[test]
fn a_replica_leaves_the_lease_to_others_while_a_run_on_its_node_is_not_over() {
    let record = |node: &str, phase: &str| {
        let mut record = Maintenance::new(
            "a",
            crate::api::record::MaintenanceSpec { node_name: node.into(), ..spec("reboot", "pod") },
        );
        if !phase.is_empty() {
            record.status = Some(MaintenanceStatus { phase: phase.into(), ..Default::default() });
        }
        record
    };
    let blocked = |mut record: Maintenance| {
        if let Some(status) = &mut record.status {
            status.blocked_since = Some("2026-11-30T00:00:00Z".into());
        }
        record
    };
    let rows = [
        (vec![], false),
        (vec![record(TARGET, "")], true),
        (vec![record(TARGET, "Pending")], true),
        (vec![record(TARGET, "Held")], true),
        (vec![record(TARGET, "Succeeded"), record(TARGET, "Failed"), record(TARGET, "Cancelled")], false),
        (vec![record("worker1", "Draining")], false),
        (vec![record("worker1", "Draining"), record(TARGET, "Pending")], true),
        (vec![blocked(record(TARGET, "Pending"))], false),
        (vec![blocked(record(TARGET, "Draining"))], true),
    ];
    for (records, wanted) in rows {
        assert_eq!(abstains(&records, TARGET), wanted, "{records:#?}");
    }
}
