//! The scenarios: who wants a reboot, what goes wrong, and what must come of it.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use jiff::Timestamp;
use maint_core::api::record::{Maintenance, MaintenanceSpec};
use maint_core::api::{Phase, Trigger};
use maint_core::config::{Mode, PodAction, Settings};
use maint_core::plan::phase_of;
use maint_engine::request::Requests;
use maint_engine::runtime::Clock;
use serde_json::json;

use super::cluster::hold_lock;
use super::{GITOPS, NODES, Scene, Setup, begin, with_world};
use crate::clock::sleep;
use crate::doubles::kured::settings::Settings as Flags;
use crate::faults::Fault;
use crate::store::ObjectKey;
use crate::store::http::Inner;
use crate::world::fixture;

pub(crate) type Script = for<'a> fn(&'a Scene) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A scenario.
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// Changes kured's flags.
    pub flags: fn(&mut Flags),
    /// Changes the cluster before the night begins.
    pub prepare: fn(&mut Inner, Timestamp),
    /// The nodes that the replicas' pods begin on; none where they run outside the cluster.
    pub seats: Option<[&'static str; 2]>,
    /// Changes the settings of the service.
    pub configure: fn(&mut Settings),
    /// The nodes whose sentinel is there from the beginning.
    pub wants: &'static [&'static str],
    /// What people and the outside do.
    pub(crate) script: Script,
    /// Node, phase and outcome of each record, by node and then by creation.
    pub ends: &'static [(&'static str, &'static str, &'static str)],
    /// The nodes that runs began with, in order; none where chance decides it.
    pub order: Option<&'static [&'static str]>,
    /// How often each node boots.
    pub boots: [usize; 3],
    /// Grants that were given, and those that were taken back.
    pub grants: (usize, usize),
    /// The report's verdict.
    pub verdict: &'static str,
    /// What the report's message says.
    pub says: &'static [&'static str],
    /// kured's lock at the end, as a part of its text; empty for none.
    pub lock: &'static str,
    /// Nodes that are cordoned at the end.
    pub cordoned: &'static [&'static str],
}

impl Scenario {
    /// What the night begins with.
    #[must_use]
    pub fn setup(&self) -> Setup<'_> {
        let (mut flags, mut settings) = (super::cluster::flags(), super::cluster::settings());
        (self.flags)(&mut flags);
        (self.configure)(&mut settings);
        let prepare = Box::new(self.prepare);
        Setup { flags, settings, begin: begin(), prepare, seats: self.seats, wants: self.wants }
    }

    /// Plays until the night is at rest.
    pub async fn play(&self, scene: &Scene) {
        (self.script)(scene).await;
        while !scene.is_at_rest() {
            sleep(super::LOOK).await;
        }
    }

    /// The scenario of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        SCENARIOS.iter().find(|scenario| scenario.name == name)
    }
}

const fn nothing(_: &mut Inner, _: Timestamp) {}
const fn as_is(_: &mut Settings) {}
const fn as_they_are(_: &mut Flags) {}

const PROVEN: &[(&str, &str, &str)] =
    &[("n1", "Succeeded", "Proven"), ("n2", "Succeeded", "Proven"), ("n3", "Succeeded", "Proven")];

/// A night in which all goes well.
pub(crate) const WELL: Scenario = Scenario {
    name: "",
    flags: as_they_are,
    prepare: nothing,
    seats: None,
    configure: as_is,
    wants: &NODES,
    script: |_| Box::pin(async {}),
    ends: PROVEN,
    order: None,
    boots: [1, 1, 1],
    grants: (3, 0),
    verdict: "done",
    says: &["3 nodes maintained and proven"],
    lock: "",
    cordoned: &[],
};

/// What is left of a night in which nobody may go.
pub(crate) const NOBODY: Scenario = Scenario {
    ends: &[("n1", "Pending", ""), ("n2", "Pending", ""), ("n3", "Pending", "")],
    order: Some(&[]),
    boots: [0, 0, 0],
    grants: (0, 0),
    verdict: "waiting",
    says: &["3 nodes waiting"],
    ..WELL
};

/// A drain that does not begin at once, so that something may come between the lock and its end.
const fn slow(flags: &mut Flags) {
    flags.drain_delay = Duration::from_secs(10);
}

/// All scenarios.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "in-order", ..WELL },
    Scenario { name: "nobody-hears", script: |scene| Box::pin(nobody_hears(scene)), ..WELL },
    Scenario {
        name: "observe",
        configure: |settings| settings.mode = Mode::Observe,
        verdict: "observed",
        says: &["mode observe keeps kured waiting since", "would have begun with n1, n3, n2"],
        ..NOBODY
    },
    // A volume whose only copy is on n2 stops that node alone; one that rebuilds stops everybody, see the next.
    Scenario {
        name: "last-copy-on-n2",
        prepare: |inner, now| seed(inner, fixture::volume("sole", &["n2"], now), now),
        ends: &[("n1", "Succeeded", "Proven"), ("n2", "Pending", ""), ("n3", "Succeeded", "Proven")],
        boots: [1, 0, 1],
        grants: (2, 0),
        verdict: "waiting",
        says: &["2 nodes maintained and proven", "1 node waiting (n2)", "sole"],
        ..WELL
    },
    Scenario {
        name: "volume-rebuilds",
        prepare: rebuilding,
        says: &["3 nodes waiting", "VolumeRebuilding", "data"],
        ..NOBODY
    },
    Scenario {
        name: "drain-fails",
        flags: slow,
        wants: &["n1", "n2"],
        script: |scene| Box::pin(drain_fails(scene)),
        ends: &[("n1", "Failed", "KuredDrainFailed"), ("n1", "Pending", ""), ("n2", "Pending", "")],
        order: Some(&["n1"]),
        boots: [0, 0, 0],
        grants: (1, 1),
        verdict: "attention",
        says: &["1 node not maintained (n1)", "KuredDrainFailed"],
        ..WELL
    },
    Scenario {
        name: "command-fails",
        wants: &["n1"],
        script: |scene| Box::pin(async { scene.kureds.break_reboot("n1", true) }),
        ends: &[("n1", "Failed", "KuredDrainFailed"), ("n1", "Pending", "")],
        order: Some(&["n1"]),
        boots: [0, 0, 0],
        grants: (2, 2),
        verdict: "attention",
        says: &["1 node not maintained (n1)"],
        ..WELL
    },
    Scenario {
        name: "command-fails-once",
        wants: &["n1"],
        script: |scene| Box::pin(command_fails_once(scene)),
        grants: (2, 1),
        ..ONE
    },
    Scenario { name: "withdrawn", wants: &["n1"], script: |scene| Box::pin(withdrawn(scene)), grants: (2, 1), ..ONE },
    // kured heard go, and its lock comes 45 s later: the gate that fails meanwhile has us take the lock first.
    Scenario {
        name: "withdrawn-under-way",
        wants: &["n1"],
        script: |scene| Box::pin(withdrawn_under_way(scene)),
        grants: (2, 1),
        ..ONE
    },
    Scenario {
        name: "wiped-while-down",
        script: |scene| Box::pin(wiped_while_down(scene)),
        // Its Node still says Ready then.
        grants: (3, 1),
        ..WELL
    },
    Scenario {
        name: "wiped-while-draining",
        flags: slow,
        script: |scene| Box::pin(wiped_while_draining(scene)),
        grants: (3, 1),
        ..WELL
    },
    Scenario {
        name: "ghost",
        prepare: |inner, _| hold_lock(inner, GHOST),
        says: &["3 nodes waiting", "KuredLockHeld", "n9"],
        lock: "n9",
        ..NOBODY
    },
    Scenario {
        name: "garbage",
        prepare: |inner, _| hold_lock(inner, "garbage"),
        says: &["3 nodes waiting", "KuredLockUnreadable"],
        lock: "garbage",
        ..NOBODY
    },
    Scenario {
        name: "foreign-holder",
        wants: &["n1", "n2"],
        script: |scene| Box::pin(foreign_holder(scene)),
        ends: &[("n1", "Pending", ""), ("n2", "Pending", "")],
        says: &["2 nodes waiting", "KuredLockHeld"],
        lock: "n3",
        ..NOBODY
    },
    Scenario { name: "concurrency-2", flags: |flags| flags.concurrency = 2, lock: r#""locks":[]"#, ..WELL },
    // The lock is written, then the process dies: the next one takes that for its return.
    Scenario {
        name: "kured-restarts",
        wants: &["n1"],
        script: |scene| Box::pin(async { kured_restarts(scene) }),
        grants: (2, 1),
        ..ONE
    },
    Scenario {
        name: "superseded",
        configure: |settings| {
            settings.action.pod =
                PodAction { enabled: true, image: "sim@sha256:00".to_owned(), ..PodAction::default() };
        },
        script: |scene| Box::pin(superseded(scene)),
        ends: &[
            ("n1", "Succeeded", "Proven"),
            ("n2", "Succeeded", "Proven"),
            ("n3", "Cancelled", "Superseded"),
            ("n3", "Succeeded", "Proven"),
        ],
        // His run began before the window did, and is none of it.
        says: &["2 nodes maintained and proven (n1, n2)"],
        ..WELL
    },
    Scenario { name: "leader-on-n1", seats: Some(["n1", "n2"]), ..WELL },
];

const ONE: Scenario = Scenario {
    ends: &[("n1", "Succeeded", "Proven")],
    order: Some(&["n1"]),
    boots: [1, 0, 0],
    grants: (1, 0),
    says: &["1 node maintained and proven (n1)"],
    ..WELL
};

/// A lock whose holder is no node of the cluster.
pub(crate) const GHOST: &str =
    r#"{"nodeID":"n9","metadata":{"unschedulable":false},"created":"2026-11-29T02:00:00Z","TTL":0}"#;
const FOREIGN: &str = r#"{"nodeID":"n3","metadata":{"unschedulable":false},"created":"2026-11-30T01:00:00Z","TTL":0}"#;

pub(crate) fn seed(inner: &mut Inner, objects: Vec<serde_json::Value>, now: Timestamp) {
    for object in objects {
        inner.store.seed(object, now);
    }
}

pub(crate) fn longhorn(resource: &str, name: &str) -> ObjectKey {
    ObjectKey::new("longhorn.io", resource, fixture::LONGHORN_NAMESPACE, name)
}

/// The copy of a volume on n2 is being rebuilt, and stays so.
pub(crate) fn rebuilding(inner: &mut Inner, _: Timestamp) {
    inner.store.edit(&longhorn("volumes", "data"), |volume| volume["status"]["robustness"] = json!("degraded"));
    inner.store.edit(&longhorn("engines", "data-e-0"), |engine| {
        engine["status"]["replicaModeMap"]["data-r-n2"] = json!("WO");
        engine["status"]["rebuildStatus"] =
            json!({"data-r-n2": {"isRebuilding": true, "progress": 40, "state": "in_progress"}});
    });
}

/// A volume away from n1 is degraded, or whole again.
fn degrade(scene: &Scene, robustness: &str) {
    scene.stage.with(|_, inner, _| {
        inner.store.edit(&longhorn("volumes", "logs"), |volume| volume["status"]["robustness"] = json!(robustness));
    });
}

fn is_granted(scene: &Scene, node: &str) -> bool {
    scene.record(node).and_then(|record| record.status).is_some_and(|status| status.intent.is_some())
}

fn is_closing(scene: &Scene, node: &str) -> bool {
    let status = scene.record(node).and_then(|record| record.status);
    status.and_then(|status| status.kured).is_some_and(|kured| kured.closing.is_some())
}

/// A pod that no budget lets go appears on n1 once kured has its lock, when nothing can be undone any more.
async fn drain_fails(scene: &Scene) {
    scene.until(|scene| scene.names("n1")).await;
    scene.stage.with(|_, inner, now| {
        let labels = json!({"app": "stubborn"});
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "stubborn", "namespace": "default", "labels": labels},
            "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "i"}]}, "status": {"phase": "Pending"}});
        let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "stubborn", "namespace": "default"},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": labels}}});
        seed(inner, vec![budget, pod], now);
    });
    // It goes by itself later, so that only the drain was hit by it.
    scene.until(|scene| scene.record("n1").is_some_and(|record| super::end::Run::of(&record).phase == "Failed")).await;
    scene.stage.with(|_, inner, _| inner.store.remove(&ObjectKey::pod("default", "stubborn")));
}

/// After the start-up of n3's kured, which would take it for its own return, and before the window opens.
/// The receiver of the messages is away until all nodes are proven.
async fn nobody_hears(scene: &Scene) {
    scene.stage.mail.set_away(true);
    let proven = |scene: &Scene, node: &&str| scene.record(node).is_some_and(|one| phase_of(&one) == Phase::Succeeded);
    scene.until(|scene| NODES.iter().all(|node| proven(scene, node))).await;
    scene.stage.mail.set_away(false);
}

async fn foreign_holder(scene: &Scene) {
    sleep(Duration::from_secs(100)).await;
    scene.write_lock("somebody", Some(FOREIGN));
}

async fn command_fails_once(scene: &Scene) {
    scene.kureds.break_reboot("n1", true);
    scene.until(|scene| scene.names("n1")).await;
    scene.until(|scene| scene.kureds.lives("n1") > 1).await;
    scene.kureds.break_reboot("n1", false);
}

async fn withdrawn(scene: &Scene) {
    scene.until(|scene| is_granted(scene, "n1")).await;
    degrade(scene, "degraded");
    scene.until(|scene| is_closing(scene, "n1") && scene.lock().is_some()).await;
    degrade(scene, "healthy");
}

async fn withdrawn_under_way(scene: &Scene) {
    // Its first write is the annotation, the second one is the lock.
    scene.stage.cluster.lock().faults.on_write("kured-n1", 2, Fault::Delay(Duration::from_secs(45)));
    scene.until(|scene| is_granted(scene, "n1")).await;
    scene.until(|scene| scene.stage.cluster.lock().faults.writes("kured-n1") > 1).await;
    degrade(scene, "degraded");
    scene.until(|scene| is_closing(scene, "n1") && scene.lock().is_some()).await;
    degrade(scene, "healthy");
}

async fn wiped_while_down(scene: &Scene) {
    scene.until(|scene| with_world(scene, |world| world.is_down("n1"))).await;
    scene.write_lock(GITOPS, None);
}

async fn wiped_while_draining(scene: &Scene) {
    scene.until(|scene| scene.names("n1")).await;
    sleep(Duration::from_secs(3)).await;
    scene.write_lock(GITOPS, None);
}

fn kured_restarts(scene: &Scene) {
    scene.stage.cluster.lock().faults.on_write("kured-n1", 2, Fault::StopUnanswered);
}

/// A person asks for n3 while its wish waits for the window, as `maint reboot` does it.
async fn superseded(scene: &Scene) {
    scene.until(|scene| scene.record("n3").is_some()).await;
    let Some(wish) = scene.record("n3") else { return };
    let clock = Clock::simulated(scene.stage.cluster.clock().now());
    let calls = scene.stage.calls("person", vec![0, 1, 2], &clock);
    let requests = Requests::through(calls, clock, scene.stage.settings.namespace.clone());
    let spec = MaintenanceSpec {
        node_name: "n3".to_owned(),
        scope: "reboot".to_owned(),
        action: "kured".to_owned(),
        trigger: Trigger::Manual.as_str().to_owned(),
        requested_by: "person".to_owned(),
        reason: "now, please".to_owned(),
        start_timeout_seconds: Some(600),
        ..MaintenanceSpec::default()
    };
    let name = "n3-person";
    let record = Maintenance::new(name, spec);
    while requests.create(&record).await.is_err() && scene.stage.object(&super::record_key(name)).is_none() {
        sleep(Duration::from_secs(1)).await;
    }
    let old = wish.metadata.name.unwrap_or_default();
    while requests.supersede(&old, name).await.is_err() {
        sleep(Duration::from_secs(1)).await;
    }
}
