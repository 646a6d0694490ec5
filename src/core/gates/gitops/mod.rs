//! Gate `gitops`: Flux's objects are applied, and who owns what maint touches.
//!
//! # Checks
//! Each Kustomization and HelmRelease of Flux is Ready for its present specification. One that failed or has given up
//! blocks, one that is at work blocks, a suspended one only warns, since that may be on purpose. The answer says which of
//! them apply the node's own object and kured's DaemonSet: what maint writes there (cordon, annotations, kured's lock)
//! is next to what they write. By default it is asked at the start, and `[gitops] moments` may name others; what was no
//! better at the start then only warns at verify and settle.
//!
//! # Why
//! What failed in the evening is found in the morning beside the reboot and blamed on it; what is at work moves pods
//! that other gates have just judged.
//!
//! # Source of truth
//! `kustomize.toolkit.fluxcd.io/v1` Kustomizations and `helm.toolkit.fluxcd.io/v2` HelmReleases: `spec.suspend`,
//! `status.observedGeneration`, conditions Ready and Stalled (kstatus); the labels that they put on what they apply.
//!
//! # Blocks which scopes
//! None by default (policy `warn`); with `require` all.
//!
//! # When unknown
//! A list that could not be read, an object that was not understood.
//!
//! # Runbook
//! `runbooks/GitOps*.md`

#[cfg(test)]
mod tests;

use super::listing::not_asked;
use super::reading::{may_be_a_dump, was_failing};
use super::{Draft, GateInput, GateSpec, Read};
use crate::api::{Evidence, Finding, GateId, Moment, Policy, Reason, SourceId, Status};
use crate::facts::flux::{Reconciled, Standing};
use crate::facts::{Condition, Listed, Metadata};
use crate::kured::installations;

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::Gitops,
    moments: &[Moment::Start, Moment::Handover, Moment::Verify, Moment::Settle],
    reads: &[SourceId::Nodes, SourceId::DaemonSets, SourceId::FluxKustomizations, SourceId::FluxHelmReleases],
    reasons: &[Reason::GitOpsFailing, Reason::GitOpsReconciling, Reason::GitOpsSuspended],
    default_policy: Policy::Warn,
    doc: "Flux: failing, working and suspended objects named, and who owns what maint touches",
    check,
};

/// Characters of a condition's message that are shown: those of Helm fill pages.
const SHOWN: usize = 160;

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::Gitops, input);
    let kustomizations = read(&mut draft, input, SourceId::FluxKustomizations, &input.facts.flux_kustomizations);
    let releases = read(&mut draft, input, SourceId::FluxHelmReleases, &input.facts.flux_helm_releases);
    if kustomizations.is_none() && releases.is_none() && !draft.stops() {
        let message = "Flux is not installed (no kustomizations.kustomize.toolkit.fluxcd.io)";
        return draft.not_applicable(Reason::NotInstalled, message);
    }
    let kustomizations = kustomizations.unwrap_or_default().into_iter().map(|one| ("Kustomization", &one.0));
    let releases = releases.unwrap_or_default().into_iter().map(|one| ("HelmRelease", &one.0));
    let all: Vec<(&str, &Reconciled)> = kustomizations.chain(releases).collect();
    for (kind, one) in &all {
        if one.metadata.deletion_timestamp.is_none() {
            judge(input, &mut draft, kind, one);
        }
    }
    let count = all.len();
    draft.finish(format!("all {count} objects of Flux are applied{}", owners(input)))
}

/// The objects of one kind; none where the kind is not there.
fn read<'a, T>(
    draft: &mut Draft<'a>,
    input: &GateInput<'_>,
    source: SourceId,
    listed: &'a Listed<T>,
) -> Option<Vec<&'a T>> {
    match draft.read(source, listed) {
        Read::Known(items) => Some(items),
        Read::Absent | Read::Unreadable => None,
        Read::NotAsked if may_be_a_dump(input) => None,
        Read::NotAsked => not_asked(draft, source),
    }
}

fn judge(input: &GateInput<'_>, draft: &mut Draft<'_>, kind: &str, one: &Reconciled) {
    let (name, object) = (one.metadata.full_name(), format!("{kind} {}", one.metadata.full_name()));
    let since = |condition: Option<&Condition>| condition.and_then(|condition| condition.last_transition);
    let (status, reason, message, since, evidence) = match one.standing() {
        Standing::Ready => return,
        Standing::Suspended => {
            let message = format!("{kind} {name} is suspended: nothing of it is applied until somebody resumes it");
            (
                Status::Warn,
                Reason::GitOpsSuspended,
                message,
                None,
                Evidence::new(object, "spec.suspend", "true", "false"),
            )
        }
        Standing::Reconciling(ready) => {
            let value = ready
                .map_or_else(|| "missing".to_owned(), |ready| format!("{} {}", ready.status.as_str(), ready.reason));
            let message = format!("{kind} {name} is being applied{}", told(ready));
            let evidence = Evidence::new(object, "status.conditions[Ready]", value, "True, of the present generation");
            (Status::Block, Reason::GitOpsReconciling, message, since(ready), evidence)
        }
        Standing::Failing(condition) => {
            let value = format!("{} {}", condition.status.as_str(), condition.reason);
            let message = format!("{kind} {name} is failing{}", told(Some(condition)));
            let field = format!("status.conditions[{}]", condition.kind);
            let evidence = Evidence::new(object, field, value, "Ready=True");
            (Status::Block, Reason::GitOpsFailing, message, since(Some(condition)), evidence)
        }
    };
    let after = matches!(input.moment, Moment::Verify | Moment::Settle);
    if status == Status::Block && after && was_failing(input, GateId::Gitops, &evidence) {
        draft.add(Status::Warn, reason, format!("{message}; it was so before the run"), since, vec![evidence]);
    } else {
        draft.add(status, reason, message, since, vec![evidence]);
    }
}

fn told(condition: Option<&Condition>) -> String {
    let Some(condition) = condition else { return String::new() };
    let line = condition.message.lines().next().unwrap_or_default();
    let mut shown: String = line.chars().take(SHOWN).collect();
    let cut = shown.len() < condition.message.len();
    shown.truncate(shown.trim_end_matches('.').len());
    if cut {
        shown.push_str(" ...");
    }
    match (condition.reason.as_str(), shown.as_str()) {
        ("", "") => String::new(),
        (reason, "") => format!(" ({reason})"),
        ("", message) => format!(" ({message})"),
        (reason, message) => format!(" ({reason}: {message})"),
    }
}

/// Who applies the node's object and kured's DaemonSet, for the sentence: no judgement rests on it.
fn owners(input: &GateInput<'_>) -> String {
    let mut told = vec![String::new()];
    let node = input.facts.nodes.good().find(|node| node.metadata.name == input.target);
    if let Some(owner) = node.and_then(|node| owner_of(&node.metadata)) {
        told.push(format!("{owner} applies Node {}", input.target));
    }
    let daemon_sets: Vec<_> = input.facts.daemon_sets.good().collect();
    for installation in installations(&daemon_sets) {
        if let Some(owner) = owner_of(&installation.daemon_set.metadata) {
            told.push(format!("{owner} applies {}", installation.object()));
        }
    }
    told.join("; ")
}

/// The labels that kustomize-controller and helm-controller put on what they apply.
const LABELS: [(&str, &str); 2] =
    [("Kustomization", "kustomize.toolkit.fluxcd.io"), ("HelmRelease", "helm.toolkit.fluxcd.io")];

fn owner_of(metadata: &Metadata) -> Option<String> {
    LABELS.iter().find_map(|(kind, group)| {
        let label = |key: &str| metadata.labels.get(&format!("{group}/{key}"));
        Some(format!("{kind} {}/{}", label("namespace")?, label("name")?))
    })
}
