//! Longhorn's own backups and restores, and what else it copies.

use std::collections::{BTreeMap, BTreeSet};

use super::super::storage::required;
use super::super::{Draft, GateInput};
use super::{Job, add, optional};
use crate::api::{Evidence, Moment, Reason, SourceId};
use crate::facts::Metadata;
use crate::facts::backup::Progress;
use crate::facts::longhorn::Volume;

/// States in which nothing happens any more.
const OVER: &[&str] = &["Completed", "Error", "Deleting"];
/// The same of system backups and restores.
const SYSTEM_OVER: &[&str] = &["Ready", "Completed", "Error", "Deleting"];
/// Types of tickets that are work in progress, and what it is.
const WORK: &[(&str, &str)] = &[
    ("snapshot-controller", "takes a snapshot of"),
    ("backup-controller", "backs up"),
    ("clone-controller", "copies"),
    ("volume-clone-controller", "copies"),
    ("restore-controller", "restores"),
    ("volume-restore-controller", "restores"),
    ("bim-ds-controller", "makes a backing image of"),
];

/// The volumes by name with the nodes of their replicas.
struct Places<'a> {
    volumes: BTreeMap<&'a str, &'a Volume>,
    replicas: BTreeMap<&'a str, BTreeSet<&'a str>>,
    complete: bool,
}

/// Whether Longhorn is installed.
pub(super) fn judge<'a>(draft: &mut Draft<'a>, input: &'a GateInput<'a>) -> bool {
    let facts = input.facts;
    // Before 1.5, 1.4 and 1.3 there are no such kinds; volumes there are in every release.
    let Some(volumes) = optional(draft, SourceId::LonghornVolumes, &facts.longhorn_volumes) else { return false };
    let because = "Longhorn is installed";
    let complete = facts.longhorn_volumes.known().is_some_and(|all| all.len() == volumes.len());
    let mut places = Places {
        volumes: volumes.into_iter().map(|volume| (volume.metadata.name.as_str(), volume)).collect(),
        replicas: BTreeMap::new(),
        complete,
    };
    if let Some(replicas) = required(draft, SourceId::LonghornReplicas, &facts.longhorn_replicas, because) {
        for replica in replicas.items {
            places.replicas.entry(&replica.volume).or_default().insert(&replica.node);
        }
    }
    engines(draft, input, &places);
    tickets(draft, input);
    for backup in optional(draft, SourceId::LonghornBackups, &facts.longhorn_backups).unwrap_or_default() {
        if !OVER.contains(&backup.progress.phase.as_str()) && places.touches(input, &backup.subject) {
            let about =
                if backup.subject.is_empty() { String::new() } else { format!(" of volume {}", backup.subject) };
            tell(draft, "Backup", &backup.metadata, &backup.progress, about, Reason::BackupRunning);
        }
    }
    let system_backups = optional(draft, SourceId::LonghornSystemBackups, &facts.longhorn_system_backups);
    let system_restores = optional(draft, SourceId::LonghornSystemRestores, &facts.longhorn_system_restores);
    if input.moment == Moment::Start {
        let works = |progress: &Progress| !SYSTEM_OVER.contains(&progress.phase.as_str());
        for one in system_restores.into_iter().flatten().filter(|one| works(&one.progress)) {
            tell(draft, "SystemRestore", &one.metadata, &one.progress, String::new(), Reason::RestoreRunning);
        }
        for one in system_backups.into_iter().flatten().filter(|one| works(&one.progress)) {
            tell(draft, "SystemBackup", &one.metadata, &one.progress, String::new(), Reason::BackupRunning);
        }
    }
    true
}

fn tell(draft: &mut Draft<'_>, kind: &str, metadata: &Metadata, progress: &Progress, about: String, reason: Reason) {
    Job { kind, maker: "Longhorn", metadata, progress, field: "status.state", about, reason }.tell(draft);
}

impl Places<'_> {
    /// Whether a volume has its engine on the target; at the start also whether it has a replica there. One that does
    /// not tell, or that could not be read, may.
    fn touches(&self, input: &GateInput<'_>, name: &str) -> bool {
        let target = input.target;
        let Some(volume) = self.volumes.get(name) else { return name.is_empty() || !self.complete };
        let replica = self.replicas.get(name).is_some_and(|nodes| nodes.contains(target));
        // Attached, or about to be, and not telling where: it may be here.
        let attached = volume.current_node == target || (volume.current_node.is_empty() && volume.state != "detached");
        attached || (input.moment == Moment::Start && replica)
    }
}

/// What engines are at: backups that no object tells of yet, and snapshots that are being merged.
fn engines<'a>(draft: &mut Draft<'a>, input: &'a GateInput<'a>, places: &Places<'a>) {
    let because = "Longhorn is installed";
    let Some(engines) = required(draft, SourceId::LonghornEngines, &input.facts.longhorn_engines, because) else {
        return;
    };
    for engine in engines.items {
        if !places.touches(input, &engine.volume) {
            continue;
        }
        let object = format!("Engine {}", engine.metadata.full_name());
        if let Some(backup) = engine.backing_up.first() {
            let message = format!("Longhorn's engine of volume {} makes backup {backup}", engine.volume);
            let evidence = Evidence::new(&object, "status.backupStatus", backup, "complete");
            add(draft, Reason::BackupRunning, message, None, evidence);
        }
        if let Some(address) = engine.purging.first() {
            let message = format!("Longhorn merges snapshots of volume {} at {address}", engine.volume);
            let evidence = Evidence::new(&object, "status.purgeStatus", address, "not purging");
            add(draft, Reason::LonghornWorkOnTarget, message, None, evidence);
        }
    }
}

/// Work for which Longhorn has attached a volume to the target.
fn tickets<'a>(draft: &mut Draft<'a>, input: &'a GateInput<'a>) {
    let attachments = optional(draft, SourceId::LonghornAttachments, &input.facts.longhorn_attachments);
    for attachment in attachments.unwrap_or_default() {
        for ticket in attachment.tickets.iter().filter(|ticket| ticket.node == input.target) {
            let Some((kind, work)) = WORK.iter().find(|(kind, _)| *kind == ticket.kind) else { continue };
            let message = format!("Longhorn {work} volume {} on {}", attachment.volume, input.target);
            let object = format!("VolumeAttachment {}", attachment.metadata.full_name());
            let evidence = Evidence::new(object, "spec.attachmentTickets", *kind, "no such ticket on the target");
            add(draft, Reason::LonghornWorkOnTarget, message, None, evidence);
        }
    }
}
