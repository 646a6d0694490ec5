//! Nights for rules that no other scenario meets, and chance seldom.

use std::time::Duration;

use jiff::Timestamp;
use maint_core::api::record::{Maintenance, MaintenanceSpec, Override};
use maint_engine::request::Field;
use serde_json::json;

use crate::clock::sleep;
use crate::faults::Fault;
use crate::night::kured;
use crate::night::scenario::{WELL, relent, stubborn, window};
use crate::night::{Person, RECORD, Scenario, Stage, TARGET};
use crate::store::http::Inner;
use crate::store::proxy::Cell;
use crate::store::{ObjectKey, Resource, object};
use crate::world::{LEARNER_ANNOTATION, STUCK_ANNOTATION, fixture};

/// Long enough for everybody to have seen it, and short enough for a night.
const A_WHILE: Duration = Duration::from_secs(150);

/// A wish that never begins, and that its person calls off after a while.
const CALLED_OFF: Scenario =
    Scenario { ends: ("Cancelled", "Cancelled"), boots: 0, evicts: false, phases: &["Pending", "Cancelled"], ..WELL };

/// The scenarios.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "cordoned-elsewhere",
        prepare: |inner, _| cordon(inner, "n3"),
        script: |stage| Box::pin(called_off(stage)),
        ..CALLED_OFF
    },
    Scenario { name: "two-at-once", script: |stage| Box::pin(two_at_once(stage)), ..WELL },
    Scenario {
        name: "window-too-short",
        configure: |settings| {
            window(settings, "01:30", "02:05");
            settings.expected_duration_seconds = 600;
        },
        script: |stage| Box::pin(too_late(stage)),
        ..CALLED_OFF
    },
    Scenario {
        name: "relents-after-the-window",
        prepare: stubborn,
        configure: |settings| {
            window(settings, "01:30", "02:02");
            settings.expected_duration_seconds = 60;
            settings.run.drain_timeout_seconds = 600;
        },
        script: |stage| Box::pin(relents(stage)),
        ends: ("Failed", "WindowClosed"),
        boots: 0,
        ..WELL
    },
    Scenario {
        name: "learner-elsewhere",
        prepare: |inner, _| {
            inner.store.edit(&ObjectKey::node("n2"), |node| object::annotate(node, LEARNER_ANNOTATION, "true"));
        },
        script: |stage| Box::pin(called_off(stage)),
        ..CALLED_OFF
    },
    Scenario { name: "sole-copy", prepare: sole_copy, script: |stage| Box::pin(called_off(stage)), ..CALLED_OFF },
    Scenario {
        name: "sole-copy-unreadable",
        prepare: |inner, now| {
            sole_copy(inner, now);
            for resource in ["volumes", "engines", "replicas", "nodes", "instancemanagers", "settings"] {
                for server in 0..3 {
                    inner.initializing.insert((server, Resource::new("longhorn.io", resource)));
                }
            }
        },
        script: |stage| Box::pin(called_off(stage)),
        ..CALLED_OFF
    },
    Scenario {
        name: "waived",
        prepare: |inner, _| cordon(inner, "n3"),
        script: |stage| Box::pin(waived(stage)),
        ..CALLED_OFF
    },
    Scenario { name: "dns-ends", script: |stage| Box::pin(dns_ends(stage)), ..WELL },
    Scenario {
        name: "was-cordoned",
        prepare: stubborn,
        script: |stage| Box::pin(was_cordoned(stage)),
        ends: ("Failed", "DrainDeadline"),
        boots: 0,
        cordoned: true,
        ..WELL
    },
    Scenario { name: "halted-after-commit", script: |stage| Box::pin(halted(stage)), ..WELL },
    Scenario {
        name: "held-for-ever",
        script: |stage| Box::pin(held_for_ever(stage)),
        ends: ("Held", "KubeletUnreachable"),
        cordoned: true,
        ..WELL
    },
    Scenario { name: "held-twice", script: |stage| Box::pin(held_twice(stage)), ..WELL },
];

/// The scenarios with kured.
pub(super) const KURED: &[kured::Scenario] = &[kured::Scenario {
    name: "cancelled-under-way",
    wants: &["n1"],
    script: |scene| Box::pin(cancelled_under_way(scene)),
    ends: &[("n1", "Cancelled", "Cancelled"), ("n1", "Pending", "")],
    order: Some(&["n1"]),
    boots: [0, 0, 0],
    grants: (1, 1),
    verdict: "waiting",
    says: &[],
    ..kured::scenario::WELL
}];

/// kured heard go, and its lock comes 45 s later; a person cancels meanwhile.
async fn cancelled_under_way(scene: &kured::Scene) {
    let granted = |scene: &kured::Scene| {
        scene.record("n1").and_then(|record| record.status).is_some_and(|status| status.intent.is_some())
    };
    // Its first write is the annotation, the second one is the lock.
    scene.stage.cluster.lock().faults.on_write("kured-n1", 2, Fault::Delay(Duration::from_secs(45)));
    scene.until(granted).await;
    scene.until(|scene| scene.stage.cluster.lock().faults.writes("kured-n1") > 1).await;
    kured::cancel(scene, "n1").await;
}

/// Somebody's cordon, as `kubectl cordon` leaves it.
fn cordon(inner: &mut Inner, node: &str) {
    inner.store.edit(&ObjectKey::node(node), |node| {
        node["spec"]["unschedulable"] = json!(true);
        node["metadata"]["managedFields"] = json!([{"manager": "kubectl-cordon", "operation": "Update", "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}]);
    });
}

fn sole_copy(inner: &mut Inner, now: Timestamp) {
    for object in fixture::volume("sole", &[TARGET], now) {
        inner.store.seed(object, now);
    }
}

async fn asks(stage: &Stage) {
    // What is wrong must be seen for so long that nobody can have overlooked it.
    sleep(Duration::from_secs(60)).await;
    Person::new(stage, "person").asks("reboot", "pod", false).await;
}

async fn was_cordoned(stage: &Stage) {
    stage.with(|_, inner, _| cordon(inner, TARGET));
    asks(stage).await;
}

async fn too_late(stage: &Stage) {
    Person::new(stage, "wish").wishes("reboot", "pod").await;
    sleep(A_WHILE).await;
    Person::new(stage, "person").says(Field::Cancel).await;
}

async fn relents(stage: &Stage) {
    Person::new(stage, "wish").wishes("reboot", "pod").await;
    sleep(A_WHILE).await;
    relent(stage);
}

async fn called_off(stage: &Stage) {
    asks(stage).await;
    sleep(A_WHILE).await;
    Person::new(stage, "person").says(Field::Cancel).await;
    uncordon(stage, "n3");
}

/// Whoever cordoned a node takes that back.
fn uncordon(stage: &Stage, node: &str) {
    stage.with(|_, inner, _| {
        inner.store.edit(&ObjectKey::node(node), |node| node["spec"]["unschedulable"] = json!(false))
    });
}

/// A person asks and waives whatever there is.
async fn waived(stage: &Stage) {
    sleep(Duration::from_secs(60)).await;
    let person = Person::new(stage, "person");
    let overrides = ["exclusive", "control", "control-plane", "nodes-ready"].map(|gate| Override {
        gate: gate.to_owned(),
        reason: "I know".to_owned(),
        by: "person".to_owned(),
    });
    let spec = MaintenanceSpec {
        node_name: TARGET.to_owned(),
        scope: "reboot".to_owned(),
        action: "pod".to_owned(),
        trigger: "manual".to_owned(),
        requested_by: "person".to_owned(),
        reason: "a new kernel".to_owned(),
        start_timeout_seconds: Some(3600),
        overrides: overrides.into(),
        ..MaintenanceSpec::default()
    };
    person.creates(&Maintenance::new(RECORD, spec)).await;
    sleep(A_WHILE).await;
    person.says(Field::Cancel).await;
    uncordon(stage, "n3");
}

/// Two nodes are asked for in one breath.
async fn two_at_once(stage: &Stage) {
    let person = Person::new(stage, "person");
    person.asks("reboot", "pod", false).await;
    person.asks_for("n2-night", "n2").await;
    let over = |stage: &Stage| {
        let record = stage.object(&ObjectKey::new("maint.dev", "maintenances", "", "n2-night"));
        record.is_some_and(|one| matches!(object::text(&one, "/status/phase"), "Succeeded" | "Failed" | "Cancelled"))
    };
    while !over(stage) {
        sleep(Duration::from_secs(1)).await;
    }
    sleep(Duration::from_secs(60)).await;
}

/// Whoever answers DNS away from the target ends and never gets there, and those who take their place are slow.
async fn dns_ends(stage: &Stage) {
    stage.with(|world, inner, now| {
        world.settings().start = Duration::from_secs(120);
        let pods: Vec<String> = inner
            .store
            .all("", "pods")
            .filter(|pod| object::name(pod).starts_with("coredns") && object::text(pod, "/spec/nodeName") != TARGET)
            .map(|pod| object::name(pod).to_owned())
            .collect();
        for name in pods {
            inner.store.edit(&ObjectKey::pod("kube-system", &name), |pod| {
                object::annotate(pod, STUCK_ANNOTATION, "true");
                object::set_meta(pod, "deletionTimestamp", json!(object::seconds(now)));
            });
        }
    });
    asks(stage).await;
}

async fn halted(stage: &Stage) {
    let person = Person::new(stage, "person");
    person.asks("reboot", "pod", false).await;
    stage.until_phase(&["Returning"]).await;
    person.halts(true).await;
    sleep(A_WHILE).await;
    person.halts(false).await;
}

async fn held_for_ever(stage: &Stage) {
    Person::new(stage, "person").asks("reboot", "pod", false).await;
    stage.until_phase(&["Returning"]).await;
    stage.with(|_, inner, _| inner.cells.insert((1, TARGET.to_owned()), Cell::Cut));
}

async fn held_twice(stage: &Stage) {
    let person = Person::new(stage, "person");
    person.asks("reboot", "pod", false).await;
    stage.until_phase(&["Returning"]).await;
    for _ in 0..2 {
        person.holds(true).await;
        stage.until_phase(&["Held"]).await;
        sleep(Duration::from_secs(15)).await;
        person.holds(false).await;
        stage.until_phase(&["Verifying"]).await;
    }
}
