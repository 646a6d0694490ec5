//! Gate `attachments`: no stale VolumeAttachment.
//!
//! # Checks
//! A VolumeAttachment is stale when its node does not exist, when it has been in deletion for longer than
//! `[attachments] stuck_seconds`, or when it is one of two for a PersistentVolume that only one node may have. At
//! handover after a drain none may be left on the target at all; with strategy cordon-only, handover asks as the
//! start does. What was already stale at the start only warns at settle.
//!
//! Two attachments of one volume are right for a shared one: a Longhorn volume says so itself (`accessMode: rwx`);
//! of another driver's it is believed, with a warning, if both are attached and neither is in deletion, since the
//! attach-detach controller does not let a ReadWriteOnce volume get that far.
//!
//! # Why
//! A stale attachment keeps the volume's next pod from starting ("Multi-Attach error"): longhorn#1305, #5345,
//! #6804, #7313.
//!
//! # Source of truth
//! `storage.k8s.io/v1` VolumeAttachments, core Nodes; `longhorn.io` Volumes for the access mode and for the claim in
//! sentences.
//!
//! # Blocks which scopes
//! All.
//!
//! # When unknown
//! VolumeAttachments or Nodes could not be read.
//!
//! # Runbook
//! `runbooks/VolumeAttachment*.md`

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::storage::{NodeIndex, known_at_start};
use super::{Draft, GateInput, GateSpec, Read};
use crate::api::{Evidence, Finding, GateId, Moment, Policy, Reason, SourceId, Status, Strategy};
use crate::facts::{VolumeAttachment, longhorn};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::Attachments,
    moments: &[Moment::Start, Moment::Handover, Moment::Settle],
    reads: &[SourceId::Nodes, SourceId::VolumeAttachments, SourceId::LonghornVolumes],
    reasons: &[Reason::VolumeAttachmentStale, Reason::VolumeAttachmentRemaining],
    default_policy: Policy::Require,
    doc: "no stale VolumeAttachment",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::Attachments, input);
    let attachments = match draft.read(SourceId::VolumeAttachments, &input.facts.volume_attachments) {
        Read::Known(attachments) => attachments,
        Read::Unreadable => return draft.finish(""),
        Read::NotAsked => return draft.not_applicable(Reason::NotAsked, "this input holds no VolumeAttachments"),
        Read::Absent => {
            // The kind is built in: an API that says otherwise is not understood.
            let evidence = Evidence::new("volume-attachments", "read", "absent", "a list");
            draft.unknown(Reason::ObservationFailed, "the API says that it has no VolumeAttachments", evidence);
            return draft.finish("");
        }
    };
    let nodes = NodeIndex::read(&mut draft, input);
    let volumes = Volumes::new(input);
    // Each is told once, by the first that holds: where it remains, that it is stale too adds nothing.
    for attachment in &attachments {
        if let Some(problem) = one(input, nodes.as_ref(), &volumes, attachment) {
            add(&mut draft, input, problem);
        }
    }
    for problem in doubles(&attachments, &volumes) {
        add(&mut draft, input, problem);
    }
    let all = attachments.len();
    draft.finish(match nothing_left_on_target(input) {
        true => format!("none of {all} VolumeAttachments is stale or left on {}", input.target),
        false => format!("none of {all} VolumeAttachments is stale"),
    })
}

struct Problem {
    status: Status,
    reason: Reason,
    message: String,
    since: Option<Timestamp>,
    evidence: Vec<Evidence>,
}

fn add(draft: &mut Draft<'_>, input: &GateInput<'_>, problem: Problem) {
    let known = problem.evidence.first().is_some_and(|first| known_at_start(input, GateId::Attachments, first));
    let (status, message) = match problem.status {
        Status::Block if known => (Status::Warn, format!("{} (as at the start)", problem.message)),
        status => (status, problem.message),
    };
    draft.add(status, problem.reason, message, problem.since, problem.evidence);
}

fn nothing_left_on_target(input: &GateInput<'_>) -> bool {
    input.moment == Moment::Handover && input.strategy == Strategy::Drain
}

/// What is wrong with one attachment by itself.
fn one(
    input: &GateInput<'_>,
    nodes: Option<&NodeIndex<'_>>,
    volumes: &Volumes<'_>,
    attachment: &VolumeAttachment,
) -> Option<Problem> {
    let (name, node) = (&attachment.metadata.name, &attachment.node_name);
    let label = volumes.label(attachment);
    let object = format!("VolumeAttachment {name}");
    let block = |reason, message, since, evidence| {
        Some(Problem { status: Status::Block, reason, message, since, evidence: vec![evidence] })
    };
    if nodes.is_some_and(|nodes| nodes.is_gone(node)) {
        let message = format!("{label} is attached to node {node}, which does not exist");
        let evidence = Evidence::new(object, "spec.nodeName", node, "a Node that exists");
        return block(Reason::VolumeAttachmentStale, message, None, evidence);
    }
    let deleted = attachment.metadata.deletion_timestamp;
    let age = deleted.map(|at| input.now.duration_since(at).as_secs());
    let limit = input.settings.attachments.stuck_seconds;
    if age.is_some_and(|age| age > limit) {
        let age = age.unwrap_or_default();
        let message = format!("{label} has been detaching from {node} for {age} s, allowed are {limit} s");
        let value = deleted.map(|at| at.to_string()).unwrap_or_default();
        let evidence = Evidence::new(object, "metadata.deletionTimestamp", value, format!("<= {limit} s ago"));
        return block(Reason::VolumeAttachmentStale, message, deleted, evidence);
    }
    if nothing_left_on_target(input) && node == input.target {
        let detaching = age.map(|age| format!(" (detaching for {age} s)")).unwrap_or_default();
        let message = format!("{label} is still attached to {node}{detaching}");
        let evidence = Evidence::new(object, "spec.nodeName", node, "another node, or none");
        return block(Reason::VolumeAttachmentRemaining, message, deleted, evidence);
    }
    None
}

/// PersistentVolumes that are attached to several nodes and may not be.
fn doubles(attachments: &[&VolumeAttachment], volumes: &Volumes<'_>) -> Vec<Problem> {
    let mut by_volume: BTreeMap<&str, Vec<&VolumeAttachment>> = BTreeMap::new();
    for attachment in attachments {
        if let Some(volume) = attachment.persistent_volume.as_deref() {
            by_volume.entry(volume).or_default().push(attachment);
        }
    }
    by_volume.into_values().filter_map(|same| several_nodes(&same, volumes)).collect()
}

fn several_nodes(same: &[&VolumeAttachment], volumes: &Volumes<'_>) -> Option<Problem> {
    let first = same.first()?;
    if same.iter().all(|other| other.node_name == first.node_name) {
        return None;
    }
    let settled = same.iter().all(|one| one.attached == Some(true) && one.metadata.deletion_timestamp.is_none());
    let status = match volumes.access_mode(first) {
        Some("rwx") => return None,
        None if settled && first.attacher != LONGHORN_DRIVER => Status::Warn,
        _ => Status::Block,
    };
    let names: Vec<&str> = same.iter().map(|one| one.node_name.as_str()).collect();
    let message = format!("{} is attached to {} nodes: {}", volumes.label(first), names.len(), names.join(", "));
    let evidence = same.iter().map(|one| {
        let attached = one.attached.map_or("not set", |yes| if yes { "true" } else { "false" });
        let value = format!("{} (attached: {attached})", one.node_name);
        Evidence::new(format!("VolumeAttachment {}", one.metadata.name), "spec.nodeName", value, "one node a volume")
    });
    let reason = Reason::VolumeAttachmentStale;
    Some(Problem { status, reason, message, since: None, evidence: evidence.collect() })
}

/// CSI driver of Longhorn (`spec.attacher`).
const LONGHORN_DRIVER: &str = "driver.longhorn.io";

/// Longhorn's volumes by PersistentVolume, for the access mode and for names: no judgement rests on their absence.
struct Volumes<'a>(BTreeMap<&'a str, &'a longhorn::Volume>);

impl<'a> Volumes<'a> {
    fn new(input: &'a GateInput<'_>) -> Self {
        let volumes = input.facts.longhorn_volumes.good().filter(|volume| !volume.persistent_volume.is_empty());
        Self(volumes.map(|volume| (volume.persistent_volume.as_str(), volume)).collect())
    }

    fn of(&self, attachment: &VolumeAttachment) -> Option<&'a longhorn::Volume> {
        self.0.get(attachment.persistent_volume.as_deref()?).copied()
    }

    fn access_mode(&self, attachment: &VolumeAttachment) -> Option<&'a str> {
        self.of(attachment).map(|volume| volume.access_mode.as_str())
    }

    /// `PersistentVolume pvc-a (media/jellyfin)`
    fn label(&self, attachment: &VolumeAttachment) -> String {
        let Some(volume) = attachment.persistent_volume.as_deref() else {
            return format!("an inline volume of {}", attachment.attacher);
        };
        match self.of(attachment).and_then(|volume| volume.claim.as_deref()) {
            Some(claim) => format!("PersistentVolume {volume} ({claim})"),
            None => format!("PersistentVolume {volume}"),
        }
    }
}
