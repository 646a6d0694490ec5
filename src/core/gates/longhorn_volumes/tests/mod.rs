//! The tables of gate `longhorn-volumes`: each row bends a healthy cluster of three nodes and three volumes in one
//! place. Rows named `B..` are bugs that people met.

mod rows;
mod sources;
mod spoil;

use serde_json::{Value, json};

use super::super::testing::{
    Case, LonghornDocuments, NODES, ago, good, known, longhorn_engine, longhorn_replica, node, sentence,
    volume_attachment,
};
use super::GATE;
use crate::api::{Moment, Reason, Status};
use crate::config::Scope;

/// A cluster as documents, so that a row can bend any field.
pub(super) struct World {
    case: Case,
    docs: LonghornDocuments,
    nodes: Vec<Value>,
    attachments: Vec<Value>,
}

impl World {
    fn new() -> Self {
        Self {
            case: Case::default(),
            docs: LonghornDocuments::healthy(),
            nodes: NODES.map(node).to_vec(),
            attachments: vec![volume_attachment("pvc-a", "worker1")],
        }
    }

    fn bent(bend: fn(&mut Self)) -> Self {
        let mut world = Self::new();
        bend(&mut world);
        world
    }

    fn case(mut self) -> Case {
        self.docs.fill(&mut self.case);
        self.case.facts.nodes = known(&self.nodes);
        self.case.facts.volume_attachments = good(&self.attachments);
        self.case
    }

    fn find<'d>(documents: &'d mut [Value], name: &str) -> &'d mut Value {
        documents.iter_mut().find(|one| one["metadata"]["name"] == name).expect(name)
    }

    /// A volume's status.
    fn status(&mut self, volume: &str) -> &mut Value {
        &mut Self::find(&mut self.docs.volumes, volume)["status"]
    }

    /// A volume's spec.
    fn spec(&mut self, volume: &str) -> &mut Value {
        &mut Self::find(&mut self.docs.volumes, volume)["spec"]
    }

    /// The spec of a volume's replica on a node.
    fn replica(&mut self, volume: &str, node: &str) -> &mut Value {
        &mut Self::find(&mut self.docs.replicas, &format!("{volume}-r-{node}"))["spec"]
    }

    /// The status of a volume's engine.
    fn engine(&mut self, volume: &str) -> &mut Value {
        &mut Self::find(&mut self.docs.engines, &format!("{volume}-e-0"))["status"]
    }

    /// A volume's replica on a node failed this long ago; the volume is degraded since then if it is attached.
    fn fail(&mut self, volume: &str, node: &str, seconds: i64) {
        self.replica(volume, node)["failedAt"] = json!(ago(seconds));
        if self.status(volume)["state"] == "attached" {
            self.status(volume)["robustness"] = json!("degraded");
            self.status(volume)["lastDegradedAt"] = json!(ago(seconds));
            let name = format!("{volume}-r-{node}");
            for map in ["replicaModeMap", "currentReplicaAddressMap"] {
                self.engine(volume)[map].as_object_mut().expect("a map").remove(&name);
            }
        }
    }

    /// A volume's replica on a node is being filled.
    fn rebuild(&mut self, volume: &str, node: &str, percent: i64) {
        self.status(volume)["robustness"] = json!("degraded");
        self.status(volume)["lastDegradedAt"] = json!(ago(900));
        self.replica(volume, node)["healthyAt"] = json!("");
        let name = format!("{volume}-r-{node}");
        self.engine(volume)["replicaModeMap"][&name] = json!("WO");
        self.engine(volume)["rebuildStatus"] =
            json!({format!("tcp://{node}:10000"): {"isRebuilding": true, "progress": percent, "state": "in_progress"}});
    }

    fn set(&mut self, setting: &str, value: &str) {
        Self::find(&mut self.docs.settings, setting)["value"] = json!(value);
    }

    fn node_not_ready(&mut self, name: &str) {
        Self::find(&mut self.nodes, name)["status"]["conditions"][0]["status"] = json!("False");
    }

    fn cordon(&mut self, name: &str) {
        Self::find(&mut self.nodes, name)["spec"]["unschedulable"] = json!(true);
    }

    fn at(&mut self, moment: Moment) {
        self.case.moment = moment;
    }

    fn scope(&mut self, name: &str) {
        self.case.scope = Scope::find(&self.case.settings, name).expect(name);
        self.case.strategy = self.case.scope.strategy;
    }
}

/// One row: name, what is bent, and the answer.
pub(super) type Row = (&'static str, fn(&mut World), Status, Reason, &'static str);

/// The answer for a healthy cluster.
pub(super) const FINE: &str = "all 3 Longhorn volumes are whole (2 attached)";

#[test]
fn the_table() {
    for (name, bend, status, reason, message) in rows::all() {
        let finding = World::bent(bend).case().ask(&GATE);
        assert_eq!((finding.status, finding.reason), (status, reason), "{name}: {}", finding.message);
        assert_eq!(sentence(&finding), message, "{name}");
    }
}

#[test]
fn every_reason_of_the_gate_has_a_row() {
    for reason in GATE.reasons {
        assert!(rows::all().iter().any(|row| row.3 == *reason), "{reason}");
    }
}

#[test]
fn since_is_when_it_was_degraded_and_evidence_names_the_volume_in_full() {
    let finding = World::bent(|w| w.fail("pvc-a", "worker3", 180)).case().ask(&GATE);
    assert_eq!(finding.since.map(|since| since.to_string()), Some(ago(180)));
    let first = &finding.evidence[0];
    assert_eq!(first.object, "Volume longhorn-system/pvc-a");
    assert_eq!((first.field.as_str(), first.value.as_str()), ("status.robustness", "degraded"));
}

#[test]
fn generated_names_are_cut_where_the_claim_tells_more() {
    let name = "pvc-4f1c2b6e-8f6d-4f63-9d3e-0a1b2c3d4e5f";
    let mut world = World::new();
    world.docs.attach(name, "worker1", &["worker2"]);
    world.status(name)["kubernetesStatus"]["pvcName"] = json!("jellyfin");
    let finding = world.case().ask(&GATE);
    let wanted = "volume pvc-4f1c.. (media/jellyfin) is attached to worker1, and its only healthy copy is r-worker2";
    assert!(finding.message.starts_with(wanted), "{}", finding.message);
    assert_eq!(finding.evidence[0].object, format!("Volume longhorn-system/{name}"));
}

#[test]
fn what_was_so_at_the_start_only_warns_at_settle_and_what_is_worse_blocks() {
    let start = World::bent(|w| w.fail("pvc-a", "worker3", 900)).case().ask(&GATE);
    let settle = |bend: fn(&mut World)| {
        let mut case = World::bent(bend).case();
        case.moment = Moment::Settle;
        case.run = Some(super::super::RunContext {
            maintenance_uid: "u".into(),
            term: 1,
            baseline: vec![start.clone()],
            ..super::super::RunContext::default()
        });
        case.ask(&GATE)
    };
    let same = settle(|w| w.fail("pvc-a", "worker3", 900));
    assert_eq!((same.status, same.reason), (Status::Warn, Reason::LonghornVolumeDegraded), "{}", same.message);
    assert!(same.message.ends_with("(as at the start)"), "{}", same.message);
    let faulted = settle(|w| w.status("pvc-a")["robustness"] = json!("faulted"));
    assert_eq!((faulted.status, faulted.reason), (Status::Block, Reason::LonghornVolumeFaulted));
    let another = settle(|w| w.fail("pvc-b", "worker3", 900));
    assert_eq!((another.status, another.reason), (Status::Block, Reason::LonghornVolumeDegraded));
}

#[test]
fn settings_per_data_engine_are_parsed_and_odd_ones_are_not_guessed() {
    use super::super::longhorn_settings::{DrainPolicy, LonghornSettings};
    let rows: [(&str, Result<i64, ()>); 7] = [
        ("300", Ok(300)),
        (" 300 ", Ok(300)),
        (r#"{"v1":"300","v2":"60"}"#, Ok(300)),
        (r#"{"v1":300}"#, Ok(300)),
        (r#"{"v2":"60"}"#, Err(())),
        (r#"{"v1":["#, Err(())),
        ("", Err(())),
    ];
    for (value, wanted) in rows {
        let mut world = World::new();
        world.set("replica-replenishment-wait-interval", value);
        let case = world.case();
        let input = case.input();
        let mut draft = super::super::Draft::new(GATE.id, &input);
        let settings = LonghornSettings::read(&mut draft, &input);
        let found = settings.number("replica-replenishment-wait-interval", "v1", 600).map_err(|_| ());
        assert_eq!(found, wanted, "{value}");
        assert_eq!(settings.number("no-such-setting", "v1", 600), Ok(600));
        assert_eq!(settings.drain_policy().map(|(policy, _)| policy), Ok(DrainPolicy::BlockIfLast));
    }
}

/// Quadratic look-ups would make this take minutes.
#[test]
fn five_thousand_volumes_are_judged() {
    let mut world = World::new();
    world.docs.volumes.clear();
    world.docs.replicas.clear();
    world.docs.engines.clear();
    for number in 0..5_000 {
        world.docs.attach(&format!("pvc-{number}"), "worker1", &NODES);
    }
    let finding = world.case().ask(&GATE);
    assert_eq!(finding.message, "all 5000 Longhorn volumes are whole (5000 attached)");
}
