//! What must be read before the next step of a run.

use std::collections::BTreeSet;

use super::phase_of;
use crate::api::record::Maintenance;
use crate::api::{Action, Moment, Outcome, Phase, SourceId};
use crate::config::Settings;
use crate::drain::Awaits;
use crate::gates;

/// What the next step needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Sources.
    pub sources: BTreeSet<SourceId>,
    /// The node whose pods are listed, and whose row and column of the matrix matter.
    pub node: String,
}

/// The moment whose gates a phase asks, if any.
pub(super) const fn moment_of(phase: Phase) -> Option<Moment> {
    match phase {
        Phase::Pending => Some(Moment::Start),
        Phase::Cordoning | Phase::Draining => Some(Moment::Cordoned),
        Phase::Acting => Some(Moment::Handover),
        Phase::Returning | Phase::Verifying | Phase::Uncordoning | Phase::Held => Some(Moment::Verify),
        Phase::Settling => Some(Moment::Settle),
        Phase::BackingOut | Phase::Succeeded | Phase::Failed | Phase::Cancelled => None,
    }
}

/// What must be read anew before who goes next is chosen once more, on facts that are a few seconds old for the rest:
/// the pods, their budgets, the StatefulSets whose pods go one at a time, whether somebody said halt, and of the nodes
/// this one alone, where a person may have taken the cordon off.
#[must_use]
pub fn wanted_again(record: &Maintenance, awaits: &Awaits) -> Wanted {
    let mut sources =
        BTreeSet::from([SourceId::Nodes, SourceId::TargetPods, SourceId::PodDisruptionBudgets, SourceId::ConfigMaps]);
    if awaits.sets {
        sources.insert(SourceId::StatefulSets);
    }
    Wanted { sources, node: record.spec.node_name.clone() }
}

/// What must be read before [`super::step`] is called for this record, whose drain waits for what the last step said.
#[must_use]
pub fn wanted(record: &Maintenance, settings: &Settings, awaits: Option<&Awaits>) -> Wanted {
    let phase = phase_of(record);
    let mut sources = moment_of(phase).map_or_else(BTreeSet::new, |moment| gates::sources_of(moment, settings));
    // Who is cordoned, who booted anew, who said halt: asked in every phase.
    sources.extend([SourceId::Nodes, SourceId::ConfigMaps]);
    if phase == Phase::Pending {
        // Whether another replica could lead, should our own pod be on the node.
        sources.insert(SourceId::OwnPods);
    }
    let kured = record.status.as_ref().and_then(|status| status.kured.as_ref());
    if phase.is_terminal() {
        sources.insert(SourceId::ActionPods);
        if kured.is_some() {
            // Whether its lock is still ours.
            sources.insert(SourceId::DaemonSets);
        }
    }
    if phase.is_in_flight() {
        // Whom kured's lock names is asked in every phase.
        sources.extend([SourceId::ActionPods, SourceId::DaemonSets]);
        // How many answer DNS is counted in every phase.
        sources.extend(gates::DNS_READS);
    }
    if matches!(phase, Phase::Cordoning | Phase::Draining | Phase::Acting) {
        sources.extend([SourceId::TargetPods, SourceId::VolumeAttachments]);
    }
    if phase == Phase::Draining {
        // Budgets are asked before a pod is; the pods of a StatefulSet go one at a time.
        sources.extend([SourceId::PodDisruptionBudgets, SourceId::StatefulSets]);
        if awaits.is_none_or(Awaits::replacements) {
            // What has no node says why the next one does not go.
            sources.insert(SourceId::UnscheduledPods);
        }
        if record.status.as_ref().is_none_or(|status| status.drain.is_none()) {
            // What is without a replica meanwhile is said once.
            sources.insert(SourceId::ReplicaSets);
        }
    }
    let by_kured = record.spec.action == Action::Kured.as_str();
    let closing = kured.is_some_and(|kured| kured.closing.is_some());
    if closing || (by_kured && matches!(phase, Phase::Pending | Phase::Returning | Phase::BackingOut)) {
        // kured's own pod there: a new process has forgotten what it was granted.
        sources.insert(SourceId::TargetPods);
    }
    let unsettled = record.status.as_ref().is_some_and(|status| status.outcome == Outcome::NotSettled.as_str());
    if phase == Phase::Held && unsettled {
        sources.extend(gates::sources_of(Moment::Settle, settings));
    }
    if matches!(phase, Phase::Verifying | Phase::Held) {
        // Who is told of a broken pair is told how many volumes cannot rebuild meanwhile.
        sources.insert(SourceId::LonghornVolumes);
    }
    if matches!(phase, Phase::Returning) {
        // The node is away: the matrix has nothing to say yet, and probing it would only wait.
        sources.remove(&SourceId::Matrix);
        sources.remove(&SourceId::ApiServers);
    }
    Wanted { sources, node: record.spec.node_name.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::record::{MaintenanceSpec, MaintenanceStatus};

    #[test]
    fn replacements_are_read_where_somebody_waits_for_one() {
        let settings = Settings::default();
        let budget = Awaits { budgets: BTreeSet::from(["shop/web".to_owned()]), ..Awaits::default() };
        let rows: [(&str, Phase, Option<Awaits>, bool); 7] = [
            ("the first look of whoever leads now", Phase::Draining, None, true),
            ("nobody waits for one", Phase::Draining, Some(Awaits { more: true, ..Awaits::default() }), false),
            ("a budget", Phase::Draining, Some(budget), true),
            ("one of unknown budgets", Phase::Draining, Some(Awaits { any_budget: true, ..Awaits::default() }), true),
            ("a StatefulSet", Phase::Draining, Some(Awaits { sets: true, ..Awaits::default() }), true),
            ("before the drain", Phase::Cordoning, None, false),
            ("after it", Phase::Acting, None, false),
        ];
        for (row, phase, awaits, read) in rows {
            let mut record = Maintenance::new("a", MaintenanceSpec::default());
            record.status =
                Some(MaintenanceStatus { phase: phase.as_str().to_owned(), ..MaintenanceStatus::default() });
            let wanted = wanted(&record, &settings, awaits.as_ref());
            assert_eq!(wanted.sources.contains(&SourceId::UnscheduledPods), read, "{row}");
        }
    }
}
