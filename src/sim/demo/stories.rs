//! The stories: what the outside does in a night, and how each must end.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use maint_core::api::Trigger;
use maint_core::api::record::{Maintenance, MaintenanceSpec};
use maint_core::config::{Mode, Settings, Window};
use maint_core::plan::stamp;
use maint_engine::execute::WriteError;
use maint_engine::request::Requests;
use maint_engine::runtime::Clock;
use serde_json::json;

use super::narrator::Line;
use super::{BEFORE_THE_WINDOW, windows};
use crate::clock::sleep;
use crate::night::kured::Scene;
use crate::night::kured::scenario::{GHOST, NOBODY, Scenario, WELL, longhorn, rebuilding, seed};
use crate::night::troubles::Trouble;
use crate::store::proxy::Cell;
use crate::store::{ObjectKey, object};
use crate::world::fixture;

/// A night that can be told.
pub struct Story {
    /// Its name.
    pub name: &'static str,
    /// What happens, in half a line.
    pub about: &'static str,
    /// What somebody who never saw maint should know before it begins.
    pub opening: &'static str,
    /// Length of the window, in minutes.
    minutes: i64,
    /// The night, and how it must end.
    pub(super) scenario: Scenario,
    /// What must be told, in this order.
    tells: &'static [&'static str],
}

impl Story {
    /// The story of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        STORIES.iter().find(|story| story.name == name)
    }

    /// Length of its window.
    pub(super) fn length(&self) -> SignedDuration {
        SignedDuration::from_mins(self.minutes)
    }

    /// When it is over at the latest, counted from its beginning, if it goes as it should.
    #[must_use]
    pub fn lasts(&self) -> SignedDuration {
        BEFORE_THE_WINDOW + self.length() + SignedDuration::from_mins(2)
    }

    /// The window of a night that begins then.
    pub(super) fn windows(&self, begin: Timestamp) -> Vec<Window> {
        windows(begin + BEFORE_THE_WINDOW, self.length())
    }

    /// What it should have told and did not.
    pub(super) fn untold(&self, told: &[Line]) -> Vec<String> {
        let mut lines = told.iter();
        let missing = self.tells.iter().filter(|part| !lines.any(|line| line.text.contains(**part)));
        missing.map(|part| format!("the story never told, or not in its place: `{part}`")).collect()
    }
}

const OPENING: &str = "Three servers of k3s: n1, n2 and n3. Each has a new kernel and wants a reboot. kured would \
    reboot one after the other, whatever state the cluster is in; here it asks maint first.";

const QUIET: Story = Story {
    name: "",
    about: "",
    opening: OPENING,
    minutes: 20,
    scenario: Scenario { seats: Some(["n2", "n3"]), ..WELL },
    tells: &[],
};

/// Nobody starts in these.
const IDLE: Scenario = Scenario { seats: Some(["n2", "n3"]), ..NOBODY };

/// All stories; the first is told where none is named.
pub const STORIES: &[Story] = &[
    Story {
        name: "night",
        about: "a volume that rebuilds, a tunnel that stays broken after the reboot, a person, the next node",
        minutes: 18,
        scenario: Scenario {
            prepare: rebuilding,
            script: |scene| Box::pin(night(scene)),
            ends: &[
                ("n1", "Succeeded", "Proven"),
                ("n2", "Pending", ""),
                ("n3", "Cancelled", "Superseded"),
                ("n3", "Succeeded", "Proven"),
            ],
            boots: [1, 0, 1],
            grants: (2, 0),
            verdict: "waiting",
            says: &["maintained and proven (n1", "1 node waiting (n2)"],
            ..QUIET.scenario
        },
        tells: &[
            "waits for longhorn-volumes",
            "whole again",
            "Draining: cordoned; pods are evicted",
            "granted: kured may replace boot",
            "Draining node n1",
            "Triggering reboot for node n1",
            "does not come up",
            "Held: API server n2 has no session to n1's agent",
            "n1 is HELD (KubeletUnreachable)",
            "builds its tunnel anew",
            "Uncordoning: proven: matrix 9/9",
            "Succeeded: boot",
            "maint reboot n3",
            "Draining node n3",
            "Succeeded: boot",
            "1 node waiting (n2)",
        ],
        ..QUIET
    },
    Story { name: "smooth", about: "all goes well", tells: &["3 nodes maintained and proven"], ..QUIET },
    Story {
        name: "rebuild-all-night",
        about: "a Longhorn volume never gets whole: nobody starts, and the report says why",
        minutes: 10,
        scenario: Scenario { prepare: rebuilding, says: &["3 nodes waiting", "VolumeRebuilding", "data"], ..IDLE },
        tells: &["waits for longhorn-volumes", "3 nodes waiting"],
        ..QUIET
    },
    Story {
        name: "last-copy",
        about: "the only copy of a volume is on n2: n1 and n3 are maintained, n2 is left alone",
        scenario: Scenario {
            prepare: |inner, now| seed(inner, fixture::volume("photos", &["n2"], now), now),
            ends: &[("n1", "Succeeded", "Proven"), ("n2", "Pending", ""), ("n3", "Succeeded", "Proven")],
            boots: [1, 0, 1],
            grants: (2, 0),
            verdict: "waiting",
            says: &["2 nodes maintained and proven", "1 node waiting (n2)", "photos"],
            ..QUIET.scenario
        },
        tells: &["LonghornLastReplicaOnTarget", "1 node waiting (n2)"],
        ..QUIET
    },
    Story {
        name: "stuck-pod",
        about: "a pod on n1 does not end: the drain is given up, everything is put back, nobody else starts",
        minutes: 14,
        scenario: Scenario {
            prepare: |inner, now| Trouble::Stuck.prepare(inner, now),
            ends: &[
                ("n1", "Failed", "DrainDeadline"),
                ("n1", "Pending", ""),
                ("n2", "Pending", ""),
                ("n3", "Pending", ""),
            ],
            order: Some(&["n1"]),
            boots: [0, 0, 0],
            grants: (0, 0),
            verdict: "attention",
            says: &["1 node not maintained (n1)", "stuck-0"],
            ..QUIET.scenario
        },
        tells: &["BackingOut:", "Failed:", "1 node not maintained (n1)"],
        ..QUIET
    },
    Story {
        name: "no-return",
        about: "n1 does not come back from its reboot: held, a page, a person at the power switch",
        minutes: 16,
        scenario: Scenario {
            script: |scene| Box::pin(no_return(scene)),
            ends: &[("n1", "Succeeded", "Proven"), ("n2", "Pending", ""), ("n3", "Pending", "")],
            boots: [1, 0, 0],
            grants: (1, 0),
            verdict: "waiting",
            says: &["1 node maintained and proven (n1)", "2 nodes waiting"],
            ..QUIET.scenario
        },
        tells: &["NodeNotBack", "Verifying: the node is back after all", "power switch", "Succeeded: boot"],
        ..QUIET
    },
    Story {
        name: "leader-dies",
        about: "the leading replica is killed in the middle of a run, and the other one finishes it",
        scenario: Scenario { script: |scene| Box::pin(leader_dies(scene)), ..QUIET.scenario },
        tells: &["is killed", "3 nodes maintained and proven"],
        ..QUIET
    },
    Story {
        name: "orphaned-lock",
        about: "kured's lock names a node that is long gone: nobody starts, and the report names it",
        minutes: 10,
        scenario: Scenario {
            prepare: |inner, _| crate::night::kured::hold_lock(inner, GHOST),
            says: &["3 nodes waiting", "KuredLockHeld", "n9"],
            lock: "n9",
            ..IDLE
        },
        tells: &["KuredLockHeld", "3 nodes waiting"],
        ..QUIET
    },
    Story {
        name: "halt",
        about: "a person halts everything when a node was just drained, and lets it go on later",
        scenario: Scenario { script: |scene| Box::pin(halt(scene)), ..QUIET.scenario },
        tells: &["maint halt", "maint unhalt", "3 nodes maintained and proven"],
        ..QUIET
    },
    Story {
        name: "observe",
        about: "the first nights with maint: it answers kured no, and reports what it would have done",
        minutes: 10,
        scenario: Scenario {
            configure: |settings: &mut Settings| settings.mode = Mode::Observe,
            verdict: "observed",
            says: &["mode observe keeps kured waiting since", "would have begun with"],
            ..IDLE
        },
        tells: &["would have begun with"],
        ..QUIET
    },
];

/// How often a script looks.
const LOOK: Duration = Duration::from_millis(500);
/// How long a person takes to read a message and to act.
const PERSON: Duration = Duration::from_secs(150);

/// The phase of a node's run; empty without one.
fn phase(scene: &Scene, node: &str) -> String {
    let inner = scene.stage.cluster.lock();
    let mut records = inner.store.all("maint.dev", "maintenances");
    let found = records.find(|record| object::text(record, "/spec/nodeName") == node);
    found.map_or_else(String::new, |record| object::text(record, "/status/phase").to_owned())
}

async fn until(scene: &Scene, holds: impl Fn(&Scene) -> bool) {
    while !holds(scene) {
        sleep(LOOK).await;
    }
}

async fn until_phase(scene: &Scene, node: &str, wanted: &str) {
    until(scene, |scene| phase(scene, node) == wanted).await;
}

fn down(scene: &Scene, node: &str) -> bool {
    scene.stage.with(|world, _, _| world.is_down(node))
}

/// How far the copy on n2 is.
fn rebuilt(scene: &Scene, percent: i64) {
    scene.stage.with(|_, inner, _| {
        inner.store.edit(&longhorn("engines", "data-e-0"), |engine| {
            engine["status"]["rebuildStatus"]["data-r-n2"]["progress"] = json!(percent);
        });
    });
}

/// The copy on n2 is whole.
fn whole(scene: &Scene) {
    scene.stage.with(|_, inner, _| {
        inner.store.edit(&longhorn("engines", "data-e-0"), |engine| {
            engine["status"]["replicaModeMap"]["data-r-n2"] = json!("RW");
            engine["status"]["rebuildStatus"] = json!({});
        });
        inner.store.edit(&longhorn("volumes", "data"), |volume| volume["status"]["robustness"] = json!("healthy"));
    });
}

async fn night(scene: &Scene) {
    scene.says(
        "Longhorn is rebuilding the copy of volume data on n2. Until it is done, the other copy is the only one.",
    );
    for percent in [55, 70, 85] {
        sleep(Duration::from_secs(90)).await;
        rebuilt(scene, percent);
    }
    sleep(Duration::from_secs(60)).await;
    whole(scene);
    scene.says("Longhorn is done: volume data is whole again, with two copies.");
    until_phase(scene, "n1", "Returning").await;
    let pair = (1, "n1".to_owned());
    scene.stage.with(|_, inner, _| inner.cells.insert(pair.clone(), Cell::CutLiveKept));
    until(scene, |scene| !down(scene, "n1")).await;
    scene.says(
        "n1 boots, and its tunnel to the API server of n2 does not come up: from there neither logs nor exec reach its \
         pods. The node says Ready all the same.",
    );
    until_phase(scene, "n1", "Held").await;
    sleep(PERSON).await;
    scene.stage.with(|_, inner, _| inner.cells.remove(&pair));
    scene.says(
        "A person has read the message and restarts k3s on n1, which builds its tunnel anew. maint goes on by itself.",
    );
    until_phase(scene, "n1", "Succeeded").await;
    sleep(Duration::from_secs(30)).await;
    scene.says(
        "After a hold nobody else starts by itself in this window. But the person is awake, and asks for the next node: \
         maint reboot n3",
    );
    reboot(scene, "n3").await;
}

/// Somebody with the operator's rights.
fn person(scene: &Scene) -> Requests {
    let clock = Clock::simulated(scene.stage.cluster.clock().now());
    Requests::new(scene.stage.cluster.client(1, "person"), clock, scene.stage.settings.namespace.clone())
}

/// A person asks for a reboot, as `maint reboot` does: his record takes the place of the node's wish.
async fn reboot(scene: &Scene, node: &str) {
    let wish = scene.record(node).and_then(|record| record.metadata.name);
    let spec = MaintenanceSpec {
        node_name: node.to_owned(),
        scope: "reboot".to_owned(),
        action: "kured".to_owned(),
        trigger: Trigger::Manual.as_str().to_owned(),
        requested_by: "person".to_owned(),
        reason: "while I am awake".to_owned(),
        start_timeout_seconds: Some(600),
        ..MaintenanceSpec::default()
    };
    let name = format!("{node}-person");
    let record = Maintenance::new(&name, spec);
    let requests = person(scene);
    // An answer may be lost: a record that is there already was made by the request before.
    while !matches!(requests.create(&record).await, Ok(_) | Err(WriteError::Conflict(_))) {
        sleep(LOOK).await;
    }
    while let Some(wish) = &wish
        && requests.supersede(wish, &name).await.is_err()
    {
        sleep(LOOK).await;
    }
}

async fn no_return(scene: &Scene) {
    until(scene, |scene| scene.names("n1")).await;
    let usual = scene.stage.with(|world, _, _| {
        let reboot = world.settings().reboot;
        world.settings().reboot = Duration::from_secs(440);
        reboot
    });
    until(scene, |scene| down(scene, "n1")).await;
    scene.stage.with(|world, _, _| world.settings().reboot = usual);
    sleep(Duration::from_secs(45)).await;
    scene.says("n1 hangs on its way down. Nobody sees that from outside; it is only gone.");
    until_phase(scene, "n1", "Held").await;
    until(scene, |scene| !down(scene, "n1")).await;
    scene.says("A person was paged, and has turned n1 off and on at its power switch.");
}

async fn leader_dies(scene: &Scene) {
    until_phase(scene, "n1", "Returning").await;
    let key = ObjectKey::new("coordination.k8s.io", "leases", "maint", "maint");
    let holder = scene.stage.object(&key);
    let holder = holder.map(|lease| object::text(&lease, "/spec/holderIdentity").to_owned()).unwrap_or_default();
    let Some(leader) = crate::night::REPLICAS.into_iter().find(|name| holder.starts_with(name)) else { return };
    scene.says(&format!(
        "The process of {leader}, which leads, is killed. All that it knew is in the cluster: the other replica waits \
         until the lease has run out, and goes on."
    ));
    scene.stage.cluster.lock().faults.stop(leader);
}

async fn halt(scene: &Scene) {
    until_phase(scene, "n1", "Acting").await;
    let requests = person(scene);
    let since = stamp(scene.stage.cluster.clock().now());
    let word = json!({"by": "person", "reason": "a backup is still running", "since": since});
    scene.says(
        "A person says: maint halt --reason \"a backup is still running\". No new act from now on, and no grant.",
    );
    while requests.halt(Some(&word)).await.is_err() {
        sleep(LOOK).await;
    }
    sleep(Duration::from_secs(180)).await;
    scene.says("The backup is done. The person says: maint unhalt.");
    while requests.halt(None).await.is_err() {
        sleep(LOOK).await;
    }
}
