//! The gates: named preconditions, each a pure function from facts to one finding.
//!
//! One file per gate; [`GATES`] is the only registry, and its order is the order of every output. All gates of a
//! moment are always evaluated, so that a person sees everything at once. A new gate is its file, its runbooks and
//! one line here.

mod alerts;
mod attachments;
mod backups;
pub(crate) mod clocks;
mod control;
mod control_plane;
mod coredns_hpa;
mod coredns_replicas;
mod coredns_spread;
mod databases;
mod disruption_budgets;
mod dns;
mod draft;
mod drain;
mod etcd;
mod exclusive;
mod flight;
mod gitops;
mod kubelet_reachability;
mod kured;
mod listing;
mod longhorn_settings;
mod longhorn_system;
mod longhorn_volumes;
#[cfg(test)]
mod mutation;
mod network_agent;
pub(crate) mod nodes;
mod nodes_ready;
#[cfg(test)]
mod properties;
pub(crate) mod reading;
mod storage;
mod target;
#[cfg(test)]
pub(crate) mod testing;
mod upgrades;
mod verdict;
mod virtual_machines;
mod window;
mod workloads;

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::api::{Action, Finding, GateId, Moment, Policy, Reason, SourceId, Status, Strategy, Trigger};
use crate::config::{Scope, Settings};
use crate::facts::Facts;

pub(crate) use dns::READS as DNS_READS;
pub use dns::ready_dns_endpoints;
pub use draft::{Draft, Read};
pub(crate) use drain::acts_on_nodes;
pub(crate) use longhorn_volumes::replenishment_ends;
pub use verdict::Verdict;
pub use workloads::daemon_sets_of;

/// One row of the gate table.
pub struct GateSpec {
    /// Its id.
    pub id: GateId,
    /// When it is asked.
    pub moments: &'static [Moment],
    /// What it reads: rights and reads follow from it.
    pub reads: &'static [SourceId],
    /// The reasons that it can give besides the common ones (see [`COMMON_REASONS`]).
    pub reasons: &'static [Reason],
    /// What its answer is worth where the configuration says nothing.
    pub default_policy: Policy,
    /// One line for people: what it asks.
    pub doc: &'static str,
    /// The check.
    pub check: fn(&GateInput<'_>) -> Finding,
}

/// All gates, in the order of every output.
pub const GATES: &[GateSpec] = &[
    control::GATE,
    window::GATE,
    exclusive::GATE,
    target::GATE,
    nodes_ready::GATE,
    kured::GATE,
    coredns_replicas::GATE,
    coredns_spread::GATE,
    coredns_hpa::GATE,
    longhorn_volumes::GATE,
    longhorn_system::GATE,
    attachments::GATE,
    disruption_budgets::GATE,
    workloads::GATE,
    databases::GATE,
    network_agent::GATE,
    upgrades::GATE,
    gitops::GATE,
    alerts::GATE,
    backups::GATE,
    virtual_machines::GATE,
    control_plane::GATE,
    kubelet_reachability::GATE,
];

/// Reasons that any gate can give.
pub const COMMON_REASONS: &[Reason] = &[
    Reason::Passed,
    Reason::NotInstalled,
    Reason::NotAsked,
    Reason::ObservationFailed,
    Reason::ObservationMalformed,
    Reason::ObservationStale,
];

/// What a gate is given. It sees nothing else: no clock, no cluster.
#[derive(Debug, Clone, Copy)]
pub struct GateInput<'a> {
    /// What is known.
    pub facts: &'a Facts,
    /// The settings.
    pub settings: &'a Settings,
    /// The node to be maintained.
    pub target: &'a str,
    /// Why.
    pub scope: &'a Scope,
    /// What follows for pods: the scope's strategy, or a stronger one that a person chose.
    pub strategy: Strategy,
    /// When in the run.
    pub moment: Moment,
    /// Who asks.
    pub trigger: Trigger,
    /// The run, where there is one.
    pub run: Option<&'a RunContext>,
    /// Now.
    pub now: Timestamp,
}

/// What gates know of the run that asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunContext {
    /// uid of the record.
    pub maintenance_uid: String,
    /// The leader's term.
    pub term: i64,
    /// Who makes the node go down; none where the record says something that is no action.
    pub action: Option<Action>,
    /// Boot ID that the act is to replace.
    pub boot_id_before: Option<String>,
    /// The node was cordoned by somebody else when a manual run began.
    pub was_unschedulable: bool,
    /// When the node came back, once it has.
    pub returned_at: Option<Timestamp>,
    /// Whether the pod of the leader that drives the run is on the target and no other replica can take over; none
    /// where nothing asked. The driver supplies it: it knows its own pod and the standbys, no fact does.
    pub leader_on_target: Option<bool>,
    /// The hard stop of the window that an unattended run began in; none for a person's run.
    pub hard_stop: Option<HardStop>,
    /// `namespace/name` of the DaemonSets that had a Ready pod on the target at the start.
    pub daemon_sets: Vec<String>,
    /// What was already failing at the start or waived by a person, so that verify and settle only ask for no worse.
    pub baseline: Vec<Finding>,
}

/// Until when an unattended run may take its node away, frozen when it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HardStop {
    /// Id of the opening that the run began in.
    pub opening: String,
    /// The instant; none where the record has one that cannot be read: then it has passed.
    pub at: Option<Timestamp>,
}

impl GateSpec {
    /// What its answer is worth under these settings.
    #[must_use]
    pub fn policy(&self, settings: &Settings) -> Policy {
        settings.gates.get(&self.id).copied().unwrap_or(self.default_policy)
    }

    /// Whether it is asked at a moment under these settings: at those of its row, and of the gates whose moments are
    /// configured at those of the configuration.
    #[must_use]
    pub fn asks_at(&self, moment: Moment, settings: &Settings) -> bool {
        let configured = match self.id {
            GateId::Gitops => settings.gitops.moments.contains(&moment),
            GateId::Alerts => settings.alerts.moments.contains(&moment),
            _ => true,
        };
        configured && self.moments.contains(&moment)
    }

    /// Asks it, for what its policy makes of the answer: none with policy `off`; with policy `warn` a block or unknown
    /// becomes a warning that says so.
    #[must_use]
    pub fn ask(&self, input: &GateInput<'_>) -> Option<Finding> {
        let policy = self.policy(input.settings);
        if policy == Policy::Off {
            return None;
        }
        let finding = (self.check)(input);
        if policy == Policy::Warn && finding.stops() {
            return Some(Finding { status: Status::Warn, ..finding });
        }
        Some(finding)
    }
}

/// The row of a gate.
///
/// Every [`GateId`] has one; a test proves it.
#[must_use]
pub fn spec_of(id: GateId) -> Option<&'static GateSpec> {
    GATES.iter().find(|gate| gate.id == id)
}

/// Asks every gate of the moment, in table order (see [`GateSpec::ask`]).
#[must_use]
pub fn evaluate(input: &GateInput<'_>) -> Vec<Finding> {
    GATES.iter().filter(|gate| gate.asks_at(input.moment, input.settings)).filter_map(|gate| gate.ask(input)).collect()
}

/// What must be read to ask every gate of a moment that is not switched off.
#[must_use]
pub fn sources_of(moment: Moment, settings: &Settings) -> BTreeSet<SourceId> {
    GATES
        .iter()
        .filter(|gate| gate.asks_at(moment, settings) && gate.policy(settings) != Policy::Off)
        .flat_map(|gate| gate.reads.iter().copied())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gate_has_one_row_and_every_reason_a_gate() {
        assert_eq!(GATES.iter().map(|gate| gate.id).collect::<Vec<_>>(), GateId::ALL.to_vec());
        for reason in Reason::ALL {
            let owners = GATES.iter().filter(|gate| gate.reasons.contains(reason)).count();
            let common = usize::from(COMMON_REASONS.contains(reason));
            assert!(owners + common >= 1, "{reason} belongs to no gate");
        }
    }
}
