//! A small pure world: JSON documents, a clock that steps set, and what a cluster does to acts.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::kured::{Kured, Next};
use crate::api::record::{Maintenance, MaintenanceSpec};
use crate::api::{SourceId, names};
use crate::config::Settings;
use crate::drain::Answers;
use crate::facts::{Facts, FailureKind, Fill, Listed, Observation, Source, SourceSpec};
use crate::gates::testing::{self, World, api_servers, controller_manager_lease, green_matrix, node_lease};
use crate::matrix::{CellVerdict, Readiness};
use crate::plan::OwnSeat;

pub(super) const TARGET: &str = "worker2";
pub(super) const UID: &str = "uid-record";

/// How pods answer to their eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pods {
    GoAtOnce,
    GoAfter(i64),
    /// A budget refuses.
    Stay,
}

/// What the cluster is like.
#[derive(Debug, Clone)]
pub(super) struct Cluster {
    pub pods: Pods,
    /// Seconds from the act to the node's going down; none: it never does.
    pub reboots_after: Option<i64>,
    /// Seconds that it is away; none: it never comes back.
    pub away_for: Option<i64>,
    /// The action reports failure.
    pub action_fails: bool,
    pub unreadable: BTreeSet<SourceId>,
    /// A pair of the matrix that is red.
    pub broken_pair: bool,
    /// What writes to nodes answer.
    pub writes_fail: bool,
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            pods: Pods::GoAtOnce,
            reboots_after: Some(4),
            away_for: Some(20),
            action_fails: false,
            unreadable: BTreeSet::new(),
            broken_pair: false,
            writes_fail: false,
        }
    }
}

/// Something that the world does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coming {
    NodeDown,
    NodeBack,
    PodGone(usize),
    ActionEnds,
    Kured(Next, u64),
    Sentinel { remove: bool },
}

/// The world and the record.
#[derive(Clone)]
pub(super) struct Scene {
    pub world: World,
    pub cluster: Cluster,
    pub settings: Settings,
    pub record: Option<Maintenance>,
    pub now: Timestamp,
    pub term: i64,
    pub coming: Vec<(Timestamp, Coming)>,
    /// kured on the target, where there is one.
    pub kured: Option<Kured>,
    /// Boot IDs that action pods were created for.
    pub pods_created: Vec<String>,
    pub answers: Answers,
    /// Records of other nodes, as the API has them.
    pub others: Vec<Value>,
    /// Where our own pod runs, where that is known.
    pub seat: Option<OwnSeat>,
    version: u64,
    boots: u64,
}

struct Seen<'a>(&'a Scene);

impl Fill for Seen<'_> {
    fn list<S: Source>(&mut self, row: &SourceSpec) -> Listed<S> {
        let (scene, id) = (self.0, row.id);
        let at = scene.now;
        if scene.cluster.unreadable.contains(&id) {
            return Observation::Failed { kind: FailureKind::Timeout, detail: "5 s".to_owned(), at };
        }
        match scene.world.0.get(&id) {
            Some(documents) => Observation::Known { value: documents.iter().map(S::item).collect(), at },
            None if row.built_in => Observation::Known { value: vec![], at },
            None => Observation::Absent { at },
        }
    }
}

pub(super) fn later(at: Timestamp, seconds: i64) -> Timestamp {
    at + SignedDuration::from_secs(seconds)
}

impl Scene {
    pub(super) fn new(spec: MaintenanceSpec) -> Self {
        let mut settings = testing::unattended(Settings::default());
        settings.action.pod.enabled = true;
        settings.action.pod.image = "busybox@sha256:00".to_owned();
        let run = &mut settings.run;
        (run.start_timeout_seconds, run.handover_timeout_seconds) = (60, 60);
        (run.drain_timeout_seconds, run.return_timeout_seconds) = (100, 100);
        (run.verify_timeout_seconds, run.settle_timeout_seconds) = (100, 120);
        (run.sweeps, run.sweep_interval_seconds, run.settle_for_seconds) = (2, 5, 10);
        let mut record = Maintenance::new("worker2-1", spec);
        record.metadata.uid = Some(UID.to_owned());
        let mut world = World::healthy();
        for node in world.of(SourceId::Nodes) {
            node["metadata"]["resourceVersion"] = json!("1");
            node["metadata"]["annotations"] = json!({});
        }
        let pods = [("shop", "web-0"), ("shop", "web-1")];
        *world.of(SourceId::TargetPods) = pods.iter().map(|(namespace, name)| pod(namespace, name)).collect();
        world.of(SourceId::TargetPods).push(daemon_pod());
        world.of(SourceId::ActionPods);
        world.of(SourceId::ConfigMaps);
        Self {
            world,
            cluster: Cluster::default(),
            settings,
            record: Some(record),
            now: testing::now(),
            term: 1,
            coming: Vec::new(),
            kured: None,
            pods_created: Vec::new(),
            answers: Answers::default(),
            others: Vec::new(),
            seat: None,
            version: 1,
            boots: 0,
        }
    }

    // --- what is seen ---

    pub(super) fn facts(&mut self) -> Facts {
        self.refresh();
        let mut seen = Seen(self);
        let mut facts = Facts::default();
        facts.fill(&mut seen);
        let pods = |id| {
            if self.cluster.unreadable.contains(&id) {
                return Observation::Failed { kind: FailureKind::Server, detail: "500".into(), at: self.now };
            }
            let value = self.world.0.get(&id).into_iter().flatten().map(crate::facts::Pod::item).collect();
            Observation::Known { value, at: self.now }
        };
        facts.target_pods = pods(SourceId::TargetPods);
        facts.action_pods = pods(SourceId::ActionPods);
        facts.unscheduled_pods = pods(SourceId::UnscheduledPods);
        facts.own_pods = pods(SourceId::OwnPods);
        facts.api_servers = api_servers(&[Readiness::Ready, Readiness::Ready, Readiness::Ready]);
        if let Observation::Known { at, .. } = &mut facts.api_servers {
            *at = self.now;
        }
        let mut matrix = green_matrix();
        matrix.swept_at = self.now;
        if self.cluster.broken_pair {
            let cell = matrix.cells.iter_mut().find(|cell| cell.server == "worker1" && cell.node == TARGET);
            let cell = cell.expect("a cell");
            (cell.verdict, cell.detail) = (CellVerdict::Broken, "500 with Audit-Id".to_owned());
        }
        facts.matrix = Observation::Known { value: matrix, at: self.now };
        facts
    }

    /// Heartbeats of what is up.
    fn refresh(&mut self) {
        let now = self.now;
        let ago = |seconds: i64| json!(later(now, -seconds).to_string());
        let mut leases = vec![controller_manager_lease(5)];
        leases[0]["spec"]["renewTime"] = ago(5);
        for node in self.world.of(SourceId::Nodes).iter_mut() {
            let name = node["metadata"]["name"].as_str().expect("a name").to_owned();
            let conditions = node["status"]["conditions"].as_array_mut().expect("conditions");
            let ready = conditions[0]["status"] == "True";
            conditions.last_mut().expect("etcd")["lastHeartbeatTime"] = ago(1);
            let mut lease = node_lease(&name, 5);
            lease["spec"]["renewTime"] = if ready { ago(5) } else { ago(300) };
            leases.push(lease);
        }
        *self.world.of(SourceId::Leases) = leases;
        let own = self.record.iter().map(|record| serde_json::to_value(record).expect("JSON"));
        let records = own.chain(self.others.iter().cloned()).collect();
        *self.world.of(SourceId::Maintenances) = records;
    }

    // --- what happens by itself ---

    pub(super) fn tick(&mut self) {
        loop {
            // In the order of time, also what follows from one another.
            let due = self.coming.iter().enumerate().filter(|(_, (at, _))| *at <= self.now);
            let Some((index, _)) = due.min_by_key(|(_, (at, _))| *at) else { return };
            let (at, coming) = self.coming.remove(index);
            match coming {
                Coming::NodeDown => {
                    self.set_ready(TARGET, false);
                    self.kured_goes_down();
                    if let Some(away) = self.cluster.away_for {
                        self.coming.push((later(at, away), Coming::NodeBack));
                    }
                }
                Coming::NodeBack => self.boot_at(at),
                Coming::Kured(next, process) => self.kured_does(at, next, process),
                Coming::Sentinel { remove } => self.sentinel_pod_ends(remove),
                Coming::PodGone(number) => {
                    let uid = format!("uid-web-{number}");
                    self.world.of(SourceId::TargetPods).retain(|pod| pod["metadata"]["uid"] != json!(uid));
                }
                Coming::ActionEnds => self.end_action_pod(),
            }
        }
    }

    fn end_action_pod(&mut self) {
        let phase = if self.cluster.action_fails { "Failed" } else { "Succeeded" };
        for pod in self.world.of(SourceId::ActionPods) {
            pod["status"]["phase"] = json!(phase);
        }
    }

    /// The node is up with a new boot ID.
    pub(super) fn boot(&mut self) {
        self.boot_at(self.now);
    }

    fn boot_at(&mut self, at: Timestamp) {
        self.boots += 1;
        let boot = format!("boot-new-{}", self.boots);
        if let Some(node) = self.find(TARGET) {
            node["status"]["nodeInfo"]["bootID"] = json!(boot);
            self.set_ready(TARGET, true);
            self.kured_comes_back(at);
        }
    }

    pub(super) fn set_ready(&mut self, name: &str, ready: bool) {
        let Some(node) = self.find(name) else { return };
        node["status"]["conditions"][0]["status"] = json!(if ready { "True" } else { "Unknown" });
        self.touch(name);
    }

    /// The act reached the node.
    pub(super) fn acted(&mut self) {
        if let Some(after) = self.cluster.reboots_after {
            self.coming.push((later(self.now, after), Coming::NodeDown));
        }
        self.coming.push((later(self.now, 6), Coming::ActionEnds));
    }

    // --- nodes ---

    pub(super) fn find(&mut self, name: &str) -> Option<&mut Value> {
        self.world.of(SourceId::Nodes).iter_mut().find(|node| node["metadata"]["name"] == name)
    }

    pub(super) fn touch(&mut self, name: &str) {
        self.version += 1;
        let version = self.version.to_string();
        if let Some(node) = self.find(name) {
            node["metadata"]["resourceVersion"] = json!(version);
        }
    }

    /// Sets or lifts a cordon as a field manager does: the field changes hands only where its value changes.
    pub(super) fn cordon(&mut self, name: &str, wanted: bool, manager: &str) {
        let Some(node) = self.find(name) else { return };
        let is = node["spec"]["unschedulable"] == true;
        if is != wanted {
            if wanted {
                node["spec"]["unschedulable"] = json!(true);
                node["metadata"]["managedFields"] = json!([
                    {"manager": manager, "fieldsV1": {"f:spec": {"f:unschedulable": {}}}},
                ]);
            } else {
                node["spec"].as_object_mut().expect("a spec").remove("unschedulable");
                node["metadata"]["managedFields"] = json!([]);
            }
            self.touch(name);
        }
    }

    pub(super) fn annotate(&mut self, name: &str, key: &str, value: Option<String>) {
        let Some(node) = self.find(name) else { return };
        let annotations = node["metadata"]["annotations"].as_object_mut().expect("annotations");
        match value {
            Some(value) => drop(annotations.insert(key.to_owned(), json!(value))),
            None => drop(annotations.remove(key)),
        }
        self.touch(name);
    }

    pub(super) fn owner(&mut self) -> Option<Value> {
        let node = self.find(TARGET)?;
        let text = node["metadata"]["annotations"][names::ANNOTATION_OWNER].as_str()?;
        serde_json::from_str(text).ok()
    }

    /// `schedulable`, or `cordoned by` whom; `, owned` where our annotation is there.
    pub(super) fn node_line(&mut self) -> String {
        let owned = if self.owner().is_some() { ", owned" } else { "" };
        let Some(node) = self.find(TARGET) else { return "gone".to_owned() };
        if node["spec"]["unschedulable"] != true {
            return format!("schedulable{owned}");
        }
        let manager = node["metadata"]["managedFields"][0]["manager"].as_str().unwrap_or("?");
        format!("cordoned by {manager}{owned}")
    }
}

fn pod(namespace: &str, name: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": namespace, "uid": format!("uid-{name}"),
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "controller": true}],
        },
        "spec": {"nodeName": TARGET},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn daemon_pod() -> Value {
    let mut pod = pod("kube-system", "agent");
    pod["metadata"]["ownerReferences"][0]["kind"] = json!("DaemonSet");
    pod
}
