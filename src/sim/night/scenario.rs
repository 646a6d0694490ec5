//! The scenarios: how a cluster is prepared, what people do, and what must come of it.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use jiff::Timestamp;
use maint_core::config::{Mode, Settings};
use maint_engine::request::Field;
use serde_json::json;

use super::{Person, Stage, TARGET};
use crate::clock::sleep;
use crate::store::http::Inner;
use crate::store::object;
use crate::store::object::At as _;
use crate::store::proxy::Cell;

pub(crate) type Script = for<'a> fn(&'a Stage) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A scenario.
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// Changes the cluster before the night begins.
    pub prepare: fn(&mut Inner, Timestamp),
    /// The nodes that the replicas' pods begin on; none where they run outside the cluster.
    pub seats: Option<[&'static str; 2]>,
    /// Changes the settings.
    pub configure: fn(&mut Settings),
    /// What people and the outside do.
    pub(crate) script: Script,
    /// Phase and outcome at the end.
    pub ends: (&'static str, &'static str),
    /// How often the target boots.
    pub boots: usize,
    /// Whether pods are evicted.
    pub evicts: bool,
    /// Whether the target is cordoned at the end.
    pub cordoned: bool,
    /// Phases that the record goes through, in order.
    pub phases: &'static [&'static str],
}

impl Scenario {
    /// Plays until the run is at rest.
    pub async fn play(&self, stage: &Stage) {
        (self.script)(stage).await;
        while !stage.is_at_rest() {
            sleep(Duration::from_millis(250)).await;
        }
    }

    /// The scenario of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        SCENARIOS.iter().chain(UNATTENDED).chain(super::DRAINS).find(|scenario| scenario.name == name)
    }
}

const fn nothing(_: &mut Inner, _: Timestamp) {}
const fn as_is(_: &mut Settings) {}

/// The phases of a run that goes well.
const ALL: &[&str] =
    &["Pending", "Cordoning", "Draining", "Acting", "Returning", "Verifying", "Uncordoning", "Settling", "Succeeded"];

pub(crate) const WELL: Scenario = Scenario {
    name: "",
    prepare: nothing,
    seats: None,
    configure: as_is,
    script: |_| Box::pin(async {}),
    ends: ("Succeeded", "Proven"),
    boots: 1,
    evicts: true,
    cordoned: false,
    phases: ALL,
};

/// All scenarios.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "cordon-only",
        script: |stage| Box::pin(cordon_only(stage)),
        boots: 0,
        evicts: false,
        phases: &["Pending", "Cordoning", "Acting", "Returning", "Verifying", "Uncordoning", "Settling", "Succeeded"],
        ..WELL
    },
    Scenario { name: "drain", script: |stage| Box::pin(drain(stage)), ..WELL },
    // The first replica leads, and its own pod is on the target.
    Scenario { name: "leader-on-target", seats: Some([TARGET, "n2"]), script: |stage| Box::pin(drain(stage)), ..WELL },
    // Nobody else could lead, and that is allowed: the pod goes last, and the run goes on where it runs again.
    Scenario {
        name: "alone-on-target",
        seats: Some([TARGET, TARGET]),
        configure: |settings| settings.run.allow_self = true,
        script: |stage| Box::pin(drain(stage)),
        ..WELL
    },
    Scenario { name: "command", script: |stage| Box::pin(command(stage)), ..WELL },
    Scenario {
        name: "back-out",
        prepare: stubborn,
        script: |stage| Box::pin(drain(stage)),
        ends: ("Failed", "DrainDeadline"),
        boots: 0,
        phases: &["Pending", "Cordoning", "Draining", "BackingOut", "Failed"],
        ..WELL
    },
    Scenario {
        name: "held",
        script: |stage| Box::pin(held(stage)),
        phases: &[
            "Pending",
            "Cordoning",
            "Draining",
            "Acting",
            "Returning",
            "Verifying",
            "Held",
            "Verifying",
            "Uncordoning",
            "Settling",
            "Succeeded",
        ],
        ..WELL
    },
    Scenario {
        name: "cancelled",
        prepare: stubborn,
        script: |stage| Box::pin(cancelled(stage)),
        ends: ("Cancelled", "Cancelled"),
        boots: 0,
        phases: &["Pending", "Cordoning", "Draining", "BackingOut", "Cancelled"],
        ..WELL
    },
    Scenario { name: "halted", prepare: stubborn, script: |stage| Box::pin(halted(stage)), ..WELL },
    Scenario {
        name: "on-hold",
        prepare: stubborn,
        script: |stage| Box::pin(on_hold(stage)),
        ends: ("Cancelled", "NodeOnHold"),
        boots: 0,
        cordoned: true,
        phases: &["Pending", "Cordoning", "Draining", "BackingOut", "Cancelled"],
        ..WELL
    },
    Scenario {
        name: "hold-after-commit",
        script: |stage| Box::pin(hold_after_commit(stage)),
        phases: &[
            "Pending",
            "Cordoning",
            "Draining",
            "Acting",
            "Returning",
            "Verifying",
            "Held",
            "Verifying",
            "Uncordoning",
            "Settling",
            "Succeeded",
        ],
        ..WELL
    },
];

/// Unattended nights. Their end hangs on the hour, so that no chance may delay them.
pub const UNATTENDED: &[Scenario] = &[
    Scenario {
        name: "window-opens",
        configure: |settings| window(settings, "02:03", "06:00"),
        script: |stage| Box::pin(wish(stage)),
        ..WELL
    },
    Scenario {
        name: "window-closes",
        prepare: stubborn,
        configure: |settings| {
            window(settings, "01:30", "02:02");
            settings.expected_duration_seconds = 60;
            settings.run.drain_timeout_seconds = 600;
        },
        script: |stage| Box::pin(wish(stage)),
        ends: ("Failed", "WindowClosed"),
        boots: 0,
        phases: &["Pending", "Cordoning", "Draining", "BackingOut", "Failed"],
        ..WELL
    },
];

/// Mode auto and a window of Mondays, as the day of every night is.
pub(crate) fn window(settings: &mut Settings, start: &str, end: &str) {
    let text = format!(
        "windows = [{{ name = \"night\", days = [\"mon\"], start = \"{start}\", end = \"{end}\", zone = \"UTC\" }}]"
    );
    settings.mode = Mode::Auto;
    // A window that cannot be read is none, and the scenario does not end as it must.
    settings.windows = Settings::parse(&text, "scenario").map(|parsed| parsed.windows).unwrap_or_default();
}

async fn wish(stage: &Stage) {
    Person::new(stage, "wish").wishes("reboot", "pod").await;
}

/// A pod on the target whose budget lets nothing go: its operator would lift it, and does not.
pub(crate) fn stubborn(inner: &mut Inner, now: Timestamp) {
    let labels = json!({"app": "stubborn", "cnpg.io/cluster": "stubborn"});
    inner.store.seed(
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "stubborn", "namespace": "default"},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"nodeSelector": {"kubernetes.io/hostname": TARGET},
                    "containers": [{"name": "main", "image": "i"}]}}}}),
        now,
    );
    inner.store.seed(
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "stubborn", "namespace": "default"},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": labels}}}),
        now,
    );
}

/// The budget of the stubborn pod lets it go.
pub(crate) fn relent(stage: &Stage) {
    stage.with(|_, inner, _| {
        let key = crate::store::ObjectKey::new("policy", "poddisruptionbudgets", "default", "stubborn");
        inner.store.edit(&key, |budget| {
            budget["spec"]["maxUnavailable"] = json!(1);
            budget["metadata"]["generation"] = json!(2);
        });
    });
}

/// Whether of all pods that must go only the stubborn one is left on the target.
fn only_the_stubborn_is_left(stage: &Stage) -> bool {
    let inner = stage.cluster.lock();
    let movable = inner.store.all("", "pods").filter(|pod| {
        object::text(pod, "/spec/nodeName") == TARGET
            && object::text(pod, "/metadata/ownerReferences/0/kind") != "DaemonSet"
    });
    movable.map(|pod| object::name(pod).to_owned()).eq(["stubborn-0".to_owned()])
}

/// Whether the record says that a person shall act.
fn told_to_go(stage: &Stage) -> bool {
    let key = crate::store::ObjectKey::new("maint.dev", "maintenances", "", super::RECORD);
    stage.object(&key).is_some_and(|record| record.at("/status/committedAt").is_some())
}

async fn cordon_only(stage: &Stage) {
    let person = Person::new(stage, "person");
    person.asks("service-restart", "external", false).await;
    stage.until(told_to_go).await;
    sleep(Duration::from_secs(5)).await;
    person.says(Field::ActionDone).await;
}

async fn drain(stage: &Stage) {
    Person::new(stage, "person").asks("reboot", "pod", false).await;
}

async fn command(stage: &Stage) {
    let program = Person::new(stage, "program");
    program.asks("reboot", "external", true).await;
    if program.claims().await {
        program.reboots();
        sleep(Duration::from_secs(30)).await;
        program.says(Field::ActionDone).await;
    }
}

async fn held(stage: &Stage) {
    let pair = (1, TARGET.to_owned());
    drain(stage).await;
    stage.until_phase(&["Returning"]).await;
    stage.with(|_, inner, _| inner.cells.insert(pair.clone(), Cell::CutLiveKept));
    stage.until_phase(&["Held"]).await;
    sleep(Duration::from_secs(15)).await;
    stage.with(|_, inner, _| inner.cells.remove(&pair));
}

async fn cancelled(stage: &Stage) {
    drain(stage).await;
    stage.until(only_the_stubborn_is_left).await;
    Person::new(stage, "person").says(Field::Cancel).await;
}

async fn halted(stage: &Stage) {
    let person = Person::new(stage, "person");
    drain(stage).await;
    stage.until(only_the_stubborn_is_left).await;
    person.halts(true).await;
    // Longer than the drain's deadline: it waits too.
    sleep(Duration::from_secs(120)).await;
    relent(stage);
    sleep(Duration::from_secs(15)).await;
    person.halts(false).await;
}

async fn on_hold(stage: &Stage) {
    drain(stage).await;
    stage.until(only_the_stubborn_is_left).await;
    Person::new(stage, "person").holds(true).await;
}

async fn hold_after_commit(stage: &Stage) {
    let person = Person::new(stage, "person");
    drain(stage).await;
    stage.until_phase(&["Returning"]).await;
    person.holds(true).await;
    stage.until_phase(&["Held"]).await;
    sleep(Duration::from_secs(15)).await;
    person.holds(false).await;
}
