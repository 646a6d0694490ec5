//! The table of gate `attachments`.

use serde_json::{Value, json};

use super::super::RunContext;
use super::super::storage::spoiling::spoilt;
use super::super::testing::{
    Case, NODES, ago, good, known, longhorn_healthy, longhorn_volume, node, volume_attachment,
};
use super::GATE;
use crate::api::{Moment, Reason, Status, Strategy};
use crate::facts::{FailureKind, Observation};

struct World {
    case: Case,
    nodes: Vec<Value>,
    attachments: Vec<Value>,
}

impl World {
    /// Two volumes, attached to worker1 and worker3.
    fn new() -> Self {
        let mut case = Case::default();
        longhorn_healthy(&mut case);
        let attachments = vec![volume_attachment("pvc-a", "worker1"), volume_attachment("pvc-b", "worker3")];
        Self { case, nodes: NODES.map(node).to_vec(), attachments }
    }

    fn at(&mut self, moment: Moment, strategy: Strategy) {
        (self.case.moment, self.case.strategy) = (moment, strategy);
    }

    fn case(mut self) -> Case {
        self.case.facts.nodes = good(&self.nodes);
        self.case.facts.volume_attachments = known(&self.attachments);
        self.case
    }
}

type Row = (&'static str, fn(&mut World), Status, Reason, &'static str);

const ROWS: &[Row] = &[
    ("healthy", |_| {}, Status::Pass, Reason::Passed, "none of 2 VolumeAttachments is stale"),
    ("no attachments", |w| w.attachments.clear(), Status::Pass, Reason::Passed, "none of 0 VolumeAttachments is stale"),
    (
        "B46: node gone",
        |w| w.attachments.push(volume_attachment("pvc-d", "old1")),
        Status::Block,
        Reason::VolumeAttachmentStale,
        "PersistentVolume pvc-d is attached to node old1, which does not exist",
    ),
    (
        "B46: stuck in deletion, with the claim named",
        |w| w.attachments[0]["metadata"]["deletionTimestamp"] = json!(ago(361)),
        Status::Block,
        Reason::VolumeAttachmentStale,
        "PersistentVolume pvc-a (media/pvc-a) has been detaching from worker1 for 361 s, allowed are 360 s",
    ),
    (
        "in deletion at the limit",
        |w| w.attachments[0]["metadata"]["deletionTimestamp"] = json!(ago(360)),
        Status::Pass,
        Reason::Passed,
        "none of 2 VolumeAttachments is stale",
    ),
    (
        "B46: two for one ReadWriteOnce volume of Longhorn",
        |w| w.attachments.push(volume_attachment("pvc-a", "worker2")),
        Status::Block,
        Reason::VolumeAttachmentStale,
        "PersistentVolume pvc-a (media/pvc-a) is attached to 2 nodes: worker1, worker2",
    ),
    (
        "two for one shared volume of Longhorn",
        |w| {
            let mut volume = longhorn_volume("pvc-a", 3, "worker1");
            volume["spec"]["accessMode"] = json!("rwx");
            w.case.facts.longhorn_volumes = good(&[volume]);
            w.attachments.push(volume_attachment("pvc-a", "worker2"));
        },
        Status::Pass,
        Reason::Passed,
        "none of 3 VolumeAttachments is stale",
    ),
    (
        "two on the same node are one place",
        |w| {
            let mut again = volume_attachment("pvc-a", "worker1");
            again["metadata"]["name"] = json!("csi-again");
            w.attachments.push(again);
        },
        Status::Pass,
        Reason::Passed,
        "none of 3 VolumeAttachments is stale",
    ),
    (
        "two of another driver, both attached: shared, as far as can be seen",
        |w| {
            for node in ["worker1", "worker2"] {
                let mut one = volume_attachment("nfs-1", node);
                one["spec"]["attacher"] = json!("cephfs.csi.ceph.com");
                w.attachments.push(one);
            }
        },
        Status::Warn,
        Reason::VolumeAttachmentStale,
        "PersistentVolume nfs-1 is attached to 2 nodes: worker1, worker2",
    ),
    (
        "two of another driver, one of them waiting",
        |w| {
            for (node, attached) in [("worker1", true), ("worker2", false)] {
                let mut one = volume_attachment("rbd-1", node);
                one["spec"]["attacher"] = json!("rbd.csi.ceph.com");
                one["status"]["attached"] = json!(attached);
                w.attachments.push(one);
            }
        },
        Status::Block,
        Reason::VolumeAttachmentStale,
        "PersistentVolume rbd-1 is attached to 2 nodes: worker1, worker2",
    ),
    (
        "on the target at the start",
        |w| w.attachments.push(volume_attachment("pvc-c", "worker2")),
        Status::Pass,
        Reason::Passed,
        "none of 3 VolumeAttachments is stale",
    ),
    (
        "left on the target after the drain",
        |w| {
            w.at(Moment::Handover, Strategy::Drain);
            w.attachments.push(volume_attachment("pvc-c", "worker2"));
        },
        Status::Block,
        Reason::VolumeAttachmentRemaining,
        "PersistentVolume pvc-c (media/pvc-c) is still attached to worker2",
    ),
    (
        "still detaching from the target after the drain",
        |w| {
            w.at(Moment::Handover, Strategy::Drain);
            let mut one = volume_attachment("pvc-c", "worker2");
            one["metadata"]["deletionTimestamp"] = json!(ago(40));
            w.attachments.push(one);
        },
        Status::Block,
        Reason::VolumeAttachmentRemaining,
        "PersistentVolume pvc-c (media/pvc-c) is still attached to worker2 (detaching for 40 s)",
    ),
    (
        "nothing left on the target after the drain",
        |w| w.at(Moment::Handover, Strategy::Drain),
        Status::Pass,
        Reason::Passed,
        "none of 2 VolumeAttachments is stale or left on worker2",
    ),
    (
        "cordon-only: handover asks as the start does",
        |w| {
            w.at(Moment::Handover, Strategy::CordonOnly);
            w.attachments.push(volume_attachment("pvc-c", "worker2"));
        },
        Status::Pass,
        Reason::Passed,
        "none of 3 VolumeAttachments is stale",
    ),
    (
        "cordon-only: a stale one still blocks at handover",
        |w| {
            w.at(Moment::Handover, Strategy::CordonOnly);
            w.attachments.push(volume_attachment("pvc-c", "old1"));
        },
        Status::Block,
        Reason::VolumeAttachmentStale,
        "PersistentVolume pvc-c (media/pvc-c) is attached to node old1, which does not exist",
    ),
    (
        "stale at settle",
        |w| {
            w.at(Moment::Settle, Strategy::Drain);
            w.attachments.push(volume_attachment("pvc-c", "old1"));
        },
        Status::Block,
        Reason::VolumeAttachmentStale,
        "PersistentVolume pvc-c (media/pvc-c) is attached to node old1, which does not exist",
    ),
    (
        "a node that cannot be read is not a node that is gone",
        |w| w.nodes[0]["status"]["nodeInfo"]["bootID"] = json!(7),
        Status::Unknown,
        Reason::ObservationMalformed,
        "Node worker1: status.nodeInfo.bootID is a number, wanted text",
    ),
    (
        "malformed",
        |w| w.attachments[0]["spec"]["nodeName"] = json!(null),
        Status::Unknown,
        Reason::ObservationMalformed,
        "VolumeAttachment csi-pvc-a-worker1: spec.nodeName is null",
    ),
    (
        "a source without a volume",
        |w| w.attachments[0]["spec"]["source"] = json!({}),
        Status::Unknown,
        Reason::ObservationMalformed,
        "VolumeAttachment csi-pvc-a-worker1: spec.source.persistentVolumeName is missing, and inlineVolumeSpec too",
    ),
];

#[test]
fn the_table() {
    for (name, bend, status, reason, message) in ROWS {
        let mut world = World::new();
        bend(&mut world);
        let nodes = world.nodes.clone();
        let mut case = World { nodes: NODES.map(node).to_vec(), ..world }.case();
        case.facts.nodes = known(&nodes);
        let finding = case.ask(&GATE);
        assert_eq!((finding.status, finding.reason), (*status, *reason), "{name}: {}", finding.message);
        assert_eq!(finding.message, *message, "{name}");
    }
}

#[test]
fn what_could_not_be_read_is_unknown_and_blocks_still_win() {
    type Change = fn(&mut Case);
    const ROWS: &[(&str, bool, Change, Status, Reason)] = &[
        ("forbidden", false, |c| c.facts.volume_attachments = failed(c), Status::Unknown, Reason::ObservationFailed),
        (
            "nodes not asked",
            false,
            |c| c.facts.nodes = Observation::NotAsked,
            Status::Unknown,
            Reason::ObservationFailed,
        ),
        ("nodes failed, one stuck", true, |c| c.facts.nodes = failed(c), Status::Block, Reason::VolumeAttachmentStale),
        (
            "a built-in kind that is absent",
            false,
            |c| c.facts.volume_attachments = Observation::Absent { at: c.now },
            Status::Unknown,
            Reason::ObservationFailed,
        ),
        (
            "not asked",
            true,
            |c| c.facts.volume_attachments = Observation::NotAsked,
            Status::NotApplicable,
            Reason::NotAsked,
        ),
        ("too old", true, |c| c.now += jiff::SignedDuration::from_secs(31), Status::Unknown, Reason::ObservationStale),
    ];
    for (name, stuck, change, status, reason) in ROWS {
        let mut world = World::new();
        if *stuck {
            world.attachments[0]["metadata"]["deletionTimestamp"] = json!(ago(900));
        }
        let mut case = world.case();
        change(&mut case);
        let finding = case.ask(&GATE);
        assert_eq!((finding.status, finding.reason), (*status, *reason), "{name}: {}", finding.message);
    }
}

fn failed<T>(case: &Case) -> Observation<T> {
    Observation::Failed { kind: FailureKind::Forbidden, detail: "no".into(), at: case.now }
}

#[test]
fn since_is_when_the_deletion_began_and_what_was_so_at_the_start_only_warns_at_settle() {
    let mut world = World::new();
    world.attachments[0]["metadata"]["deletionTimestamp"] = json!(ago(900));
    let mut case = world.case();
    let start = case.ask(&GATE);
    assert_eq!(start.since.map(|since| since.to_string()), Some(ago(900)));
    case.moment = Moment::Settle;
    case.run =
        Some(RunContext { maintenance_uid: "u".into(), term: 1, baseline: vec![start], ..RunContext::default() });
    let settle = case.ask(&GATE);
    assert_eq!(settle.status, Status::Warn);
    assert!(settle.message.ends_with("(as at the start)"), "{}", settle.message);
}

/// What may go without making the attachment fine: each with its reason.
const ALLOWED: &[(&str, &str)] = &[
    // No deletionTimestamp is how the API says that an object is not being deleted.
    ("B46: stuck in deletion, with the claim named", "/metadata/deletionTimestamp deleted"),
    ("B46: stuck in deletion, with the claim named", "/metadata/deletionTimestamp nulled"),
];

#[test]
fn no_gap_in_a_blocking_document_makes_it_fine() {
    for (name, bend, status, ..) in ROWS.iter().filter(|row| row.2 == Status::Block) {
        assert_eq!(*status, Status::Block);
        let count = {
            let mut world = World::new();
            bend(&mut world);
            world.attachments.len()
        };
        for index in 0..count {
            let mut world = World::new();
            bend(&mut world);
            for (deed, document) in spoilt(&world.attachments[index]) {
                let mut world = World::new();
                bend(&mut world);
                world.attachments[index] = document;
                let finding = world.case().ask(&GATE);
                let allowed = ALLOWED.iter().any(|(row, what)| row == name && *what == deed);
                assert!(finding.stops() || allowed, "{name}: attachment {index} {deed}: {}", finding.message);
            }
        }
    }
}
