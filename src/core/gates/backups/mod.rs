//! Gate `backups`: no backup or restore runs on what the node holds.
//!
//! # Checks
//! | who | start | handover |
//! |---|---|---|
//! | Velero | no backup or restore at work, wherever | only its pods on the target |
//! | Longhorn | none of a volume that has its engine or a replica on the target; no system backup or restore; nothing copied, merged or cleaned up there | none of a volume that is attached to the target; nothing at work there |
//! | CloudNativePG | none of a cluster with an instance on the target | the same |
//! | VolSync, k8up, Velero's data movers, Longhorn's recurring jobs | no pod of theirs at work on the target | the same |
//!
//! Whatever is not over counts as at work: a phase that this version does not know too.
//!
//! # Why
//! A backup that loses its node is lost, or hangs for ever (longhorn#9168, #7854, #7956: stuck at 17 %); a restore
//! leaves half a volume. Both end by themselves: the run waits.
//!
//! # Source of truth
//! `velero.io/v1` backups and restores; `longhorn.io/v1beta2` backups, systembackups, systemrestores, engines,
//! volumeattachments; `postgresql.cnpg.io/v1` backups; the pods on the target, by their labels.
//!
//! # Blocks which scopes
//! All.
//!
//! # When unknown
//! A list of something that is installed could not be read; an object was not understood.
//!
//! # Runbook
//! `runbooks/BackupRunning.md`, `runbooks/RestoreRunning.md`, `runbooks/BackupPodOnTarget.md`,
//! `runbooks/LonghornWorkOnTarget.md`

mod longhorn;
#[cfg(test)]
mod tests;

use jiff::Timestamp;

use super::reading::required;
use super::{Draft, GateInput, GateSpec, Read};
use crate::api::{Evidence, Finding, GateId, Moment, Policy, Reason, SourceId, Status};
use crate::facts::backup::Progress;
use crate::facts::{Listed, Metadata, Pod};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::Backups,
    moments: &[Moment::Start, Moment::Handover],
    reads: &[
        SourceId::TargetPods,
        SourceId::VeleroBackups,
        SourceId::VeleroRestores,
        SourceId::LonghornBackups,
        SourceId::LonghornSystemBackups,
        SourceId::LonghornSystemRestores,
        SourceId::LonghornVolumes,
        SourceId::LonghornReplicas,
        SourceId::LonghornEngines,
        SourceId::LonghornAttachments,
        SourceId::CnpgBackups,
        SourceId::CnpgClusters,
        SourceId::CnpgPods,
    ],
    reasons: &[Reason::RestoreRunning, Reason::BackupRunning, Reason::BackupPodOnTarget, Reason::LonghornWorkOnTarget],
    default_policy: Policy::Require,
    doc: "no backup or restore runs on what the node holds",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::Backups, input);
    let pods = required(&mut draft, SourceId::TargetPods, &input.facts.target_pods);
    let known = [velero(&mut draft, input), longhorn::judge(&mut draft, input), databases(&mut draft, input)];
    for pod in pods.unwrap_or_default() {
        mover(&mut draft, input, pod);
    }
    let target = input.target;
    if known == [false; 3] {
        let message = format!("nothing that makes backups is installed, and no pod of one runs on {target}");
        return draft.not_applicable(Reason::NotInstalled, message);
    }
    draft.finish(format!("no backup or restore runs on what {target} holds"))
}

/// The objects of a kind that may not be installed; none where it is not, or where this input cannot tell.
fn optional<'a, T>(draft: &mut Draft<'a>, source: SourceId, listed: &'a Listed<T>) -> Option<Vec<&'a T>> {
    match draft.read(source, listed) {
        Read::Known(items) => Some(items),
        Read::Unreadable => Some(Vec::new()),
        Read::Absent | Read::NotAsked => None,
    }
}

/// One backup or restore, whoever makes it.
struct Job<'a> {
    /// `Backup` or `Restore`, as in the API.
    kind: &'a str,
    maker: &'a str,
    metadata: &'a Metadata,
    progress: &'a Progress,
    /// Field of the phase.
    field: &'a str,
    /// What it is about, for the sentence: ` of volume ...`.
    about: String,
    reason: Reason,
}

impl Job<'_> {
    fn tell(&self, draft: &mut Draft<'_>) {
        let Self { kind, maker, metadata, progress, field, about, reason } = self;
        let phase = told(&progress.phase);
        let since = progress.since.map_or_else(String::new, |since| format!(", since {since}"));
        let verb = kind.to_lowercase();
        let message = format!("{maker}'s {verb} {}{about} is at work ({phase}{since})", metadata.full_name());
        let evidence = Evidence::new(format!("{kind} {}", metadata.full_name()), *field, phase, "over");
        add(draft, *reason, message, progress.since, evidence);
    }
}

fn add(draft: &mut Draft<'_>, reason: Reason, message: String, since: Option<Timestamp>, evidence: Evidence) {
    draft.add(Status::Block, reason, message, since, vec![evidence]);
}

const fn told(phase: &str) -> &str {
    if phase.is_empty() { "new" } else { phase }
}

/// Velero's phases in which nothing happens any more. `Deleting` takes data out of the store, and none of ours.
const VELERO_OVER: &[&str] = &["Completed", "PartiallyFailed", "Failed", "FailedValidation", "Deleting"];

/// Whether Velero is installed. What a backup of it touches is known to Velero alone, so that any counts at the start.
fn velero<'a>(draft: &mut Draft<'a>, input: &'a GateInput<'a>) -> bool {
    let facts = input.facts;
    let backups = optional(draft, SourceId::VeleroBackups, &facts.velero_backups);
    let restores = optional(draft, SourceId::VeleroRestores, &facts.velero_restores);
    let installed = backups.is_some() || restores.is_some();
    if input.moment != Moment::Start {
        return installed;
    }
    let mut one = |kind, metadata, progress: &Progress, reason| {
        if !VELERO_OVER.contains(&progress.phase.as_str()) {
            let job =
                Job { kind, maker: "Velero", metadata, progress, field: "status.phase", about: String::new(), reason };
            job.tell(draft);
        }
    };
    for restore in restores.unwrap_or_default() {
        one("Restore", &restore.metadata, &restore.progress, Reason::RestoreRunning);
    }
    for backup in backups.unwrap_or_default() {
        one("Backup", &backup.metadata, &backup.progress, Reason::BackupRunning);
    }
    installed
}

/// Phases of CloudNativePG's backups in which nothing happens any more.
const CNPG_OVER: &[&str] = &["completed", "failed", "walArchivingFailing"];

/// Whether CloudNativePG is installed.
fn databases<'a>(draft: &mut Draft<'a>, input: &'a GateInput<'a>) -> bool {
    let facts = input.facts;
    let Some(backups) = optional(draft, SourceId::CnpgBackups, &facts.cnpg_backups) else { return false };
    let running: Vec<_> =
        backups.into_iter().filter(|backup| !CNPG_OVER.contains(&backup.progress.phase.as_str())).collect();
    if running.is_empty() {
        return true;
    }
    let clusters = optional(draft, SourceId::CnpgClusters, &facts.cnpg_clusters).unwrap_or_default();
    let complete = facts.cnpg_clusters.known().is_some_and(|all| all.len() == clusters.len());
    let exists = |namespace: &str, name: &str| {
        clusters.iter().any(|cluster| cluster.metadata.namespace == namespace && cluster.metadata.name == name)
    };
    // What is left of a cluster that is gone makes nothing any more.
    let running: Vec<_> =
        running.into_iter().filter(|backup| !complete || exists(&backup.metadata.namespace, &backup.subject)).collect();
    if running.is_empty() {
        return true;
    }
    let Some(pods) = required(draft, SourceId::CnpgPods, &facts.cnpg_pods) else { return true };
    for backup in running {
        let here = |pod: &&Pod| {
            let of = pod.metadata.labels.get("cnpg.io/cluster").is_none_or(|name| *name == backup.subject);
            let namespace = [backup.metadata.namespace.as_str(), ""].contains(&pod.metadata.namespace.as_str());
            let place = pod.node_name.as_deref().is_none_or(|node| node == input.target);
            of && namespace && place && !pod.is_finished()
        };
        if pods.iter().any(here) {
            let about = format!(" of PostgreSQL cluster {}/{}", backup.metadata.namespace, backup.subject);
            let (metadata, progress) = (&backup.metadata, &backup.progress);
            let (kind, maker, field, reason) = ("Backup", "CloudNativePG", "status.phase", Reason::BackupRunning);
            Job { kind, maker, metadata, progress, field, about, reason }.tell(draft);
        }
    }
    true
}

/// Labels of pods that move data, by key and value (none: any), and whose they are. Those of Longhorn's recurring jobs
/// are inferred from its source.
const MOVERS: &[(&str, Option<&str>, &str)] = &[
    ("app.kubernetes.io/created-by", Some("volsync"), "VolSync"),
    ("k8upjob", Some("true"), "k8up"),
    ("k8up.io/type", None, "k8up"),
    ("velero.io/data-upload", None, "Velero"),
    ("velero.io/data-download", None, "Velero"),
    ("velero.io/pod-volume-backup", None, "Velero"),
    ("velero.io/pod-volume-restore", None, "Velero"),
    ("recurring-job.longhorn.io", None, "a recurring job of Longhorn"),
    ("longhorn.io/job-task", None, "a recurring job of Longhorn"),
];

/// A pod on the target that moves data for a backup or a restore.
fn mover(draft: &mut Draft<'_>, input: &GateInput<'_>, pod: &Pod) {
    // One that runs, and does not tell where, may be here.
    let here = pod.node_name.as_deref().map_or(pod.phase == "Running", |node| node == input.target);
    let fits = |(key, value, _): &&(&str, Option<&str>, &str)| {
        pod.metadata.labels.get(*key).is_some_and(|found| value.is_none_or(|value| found == value))
    };
    let Some((key, _, maker)) = MOVERS.iter().find(fits).filter(|_| here && !pod.is_finished()) else { return };
    let (name, target) = (pod.metadata.full_name(), input.target);
    let message = format!("pod {name} on {target} moves data for {maker}");
    let value = pod.metadata.labels.get(*key).map_or("", String::as_str);
    let evidence =
        Evidence::new(format!("Pod {name}"), format!("metadata.labels[{key}]"), value, "finished, or elsewhere");
    add(draft, Reason::BackupPodOnTarget, message, pod.metadata.created, evidence);
}
