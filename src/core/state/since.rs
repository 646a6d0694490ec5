//! Since when findings are so, across restarts and across leaders.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{Look, SinceEntry};
use crate::api::{Finding, Reason, names};
use crate::config::Settings;
use crate::facts::Facts;

/// Entries kept; of more the oldest stay, since age is what they are for.
const MAX_ENTRIES: usize = 100;

/// Reasons that speak of the node that was asked about, or of nothing.
const ABOUT_THE_TARGET: &[Reason] = &[
    Reason::Passed,
    Reason::NotInstalled,
    Reason::NotAsked,
    Reason::LeaderOnTarget,
    Reason::NodeOnHold,
    Reason::TargetNotFound,
    Reason::TargetNotReady,
    Reason::TargetCordonedByOther,
    Reason::CoreDNSOnlyOnTarget,
    Reason::LonghornLastReplicaOnTarget,
    Reason::LonghornDetachedReplicaOnTarget,
    Reason::LonghornDataEngineV2OnTarget,
    Reason::LonghornDrainRefused,
    Reason::LonghornManuallyAttached,
    Reason::LonghornCordonMovesReplicas,
    Reason::LonghornShareOnTarget,
    Reason::VolumeAttachmentRemaining,
    Reason::DisruptionBudgetsOverlap,
    Reason::DisruptionBudgetPermanent,
    Reason::DisruptionBudgetExhausted,
    Reason::PodWithoutController,
    Reason::PodSkippedWithKured,
    Reason::PodPinnedToNode,
    Reason::GraceTooLong,
    Reason::PodsRemaining,
    Reason::DaemonSetPodNotReady,
    Reason::DatabasePrimaryCannotMove,
    Reason::DatabasePrimaryOnTarget,
    Reason::DatabaseGoesDown,
    Reason::NetworkAgentJustReady,
    Reason::NetworkAgentPinnedToTarget,
    Reason::RestoreRunning,
    Reason::BackupRunning,
    Reason::BackupPodOnTarget,
    Reason::LonghornWorkOnTarget,
    Reason::VirtualMachineCannotMove,
    Reason::VirtualMachineMigrating,
    Reason::VirtualMachineInTransition,
    Reason::VirtualMachineOnTarget,
    Reason::VirtualMachineStops,
    Reason::VirtualMachineMovedByOthers,
];

/// Whether a finding is about the cluster: whichever node is asked about, it is the same.
pub(super) fn is_about_the_cluster(finding: &Finding) -> bool {
    finding.gate != crate::api::GateId::Target && !ABOUT_THE_TARGET.contains(&finding.reason)
}

/// The entries after a look. A gate that was asked has the entries that it gave now; one that could not judge keeps its
/// old ones too, since what cannot be read is not over.
pub(super) fn next(old: Vec<SinceEntry>, look: &Look, now: Timestamp) -> Vec<SinceEntry> {
    let mut found: BTreeMap<(String, String, String), Timestamp> = BTreeMap::new();
    let key = |entry: &SinceEntry| (entry.gate.clone(), entry.reason.clone(), entry.object.clone());
    let known: BTreeMap<_, _> = old.iter().map(|entry| (key(entry), entry.since)).collect();
    for entry in &old {
        let asked = look.gates.iter().find(|(gate, _)| gate.as_str() == entry.gate);
        if asked.is_none_or(|(_, gate)| !gate.judged) {
            found.insert(key(entry), entry.since);
        }
    }
    for (gate, seen) in &look.gates {
        for ((reason, object), first) in &seen.open {
            let key = (gate.as_str().to_owned(), reason.as_str().to_owned(), object.clone());
            // A time that is still to come was written by a clock that ran ahead.
            let since = known.get(&key).copied().filter(|since| *since <= now).unwrap_or(*first);
            found.insert(key, since);
        }
    }
    let mut entries: Vec<SinceEntry> =
        found.into_iter().map(|((gate, reason, object), since)| SinceEntry { gate, reason, object, since }).collect();
    if entries.len() > MAX_ENTRIES {
        entries.sort_by(|a, b| (a.since, a).cmp(&(b.since, b)));
        entries.truncate(MAX_ENTRIES);
        entries.sort();
    }
    entries
}

/// The remembered times, ready to be put into findings.
#[derive(Debug, Clone, Default)]
pub struct Since(BTreeMap<(String, String, String), Timestamp>);

impl Since {
    /// What ConfigMap `maint-state` says. Where it cannot be read nothing is remembered; gates say that it cannot.
    #[must_use]
    pub fn of(facts: &Facts, settings: &Settings) -> Self {
        let text = super::data_of(facts, settings).and_then(|data| data.get(names::STATE_SINCE_KEY));
        let entries = text.and_then(|text| SinceEntry::parse_list(text).ok()).unwrap_or_default();
        Self(entries.into_iter().map(|entry| ((entry.gate, entry.reason, entry.object), entry.since)).collect())
    }

    /// Fills in since when, where the finding's own source does not tell: the time of what it names first.
    pub fn fill(&self, findings: &mut [Finding]) {
        if self.0.is_empty() {
            return;
        }
        for finding in findings.iter_mut().filter(|finding| finding.since.is_none() && is_about_the_cluster(finding)) {
            let Some(object) = finding.evidence.first().map(|evidence| evidence.object.clone()) else { continue };
            let key = (finding.gate.as_str().to_owned(), finding.reason.as_str().to_owned(), object);
            finding.since = self.0.get(&key).copied();
        }
    }
}

/// The objects of a finding, each once.
pub(super) fn objects(finding: &Finding) -> BTreeSet<String> {
    finding.evidence.iter().map(|evidence| evidence.object.clone()).collect()
}
