//! What holds for every gate of the registry, whatever it asks.
//!
//! Which sources a gate reads at a moment is found by experiment: the observation of one source is made a little
//! older than all others, and a gate whose finding then carries that time has read it.

use jiff::SignedDuration;
use proptest::prelude::*;

use super::testing::{Case, World, now};
use super::{GATES, GateSpec, sources_of};
use crate::api::{GateId, Moment, Policy, SourceId, Strategy, Trigger};
use crate::config::Settings;
use crate::facts::{Facts, FailureKind, Item, Listed, Malformed, Observation};

/// Applies one change to a listed source, or another to a probed one.
trait Change {
    fn list<T>(&self, listed: &mut Listed<T>);
    fn probe<T>(&self, observation: &mut Observation<T>);
}

fn change(facts: &mut Facts, source: SourceId, by: &impl Change) {
    match source {
        SourceId::Nodes => by.list(&mut facts.nodes),
        SourceId::Leases => by.list(&mut facts.leases),
        SourceId::DaemonSets => by.list(&mut facts.daemon_sets),
        SourceId::Services => by.list(&mut facts.services),
        SourceId::EndpointSlices => by.list(&mut facts.endpoint_slices),
        SourceId::DnsPods => by.list(&mut facts.dns_pods),
        SourceId::TargetPods => by.list(&mut facts.target_pods),
        SourceId::ActionPods => by.list(&mut facts.action_pods),
        SourceId::UnscheduledPods => by.list(&mut facts.unscheduled_pods),
        SourceId::OwnPods => by.list(&mut facts.own_pods),
        SourceId::KuredPods => by.list(&mut facts.kured_pods),
        SourceId::Deployments => by.list(&mut facts.deployments),
        SourceId::StatefulSets => by.list(&mut facts.stateful_sets),
        SourceId::ReplicaSets => by.list(&mut facts.replica_sets),
        SourceId::HorizontalPodAutoscalers => by.list(&mut facts.horizontal_pod_autoscalers),
        SourceId::PodDisruptionBudgets => by.list(&mut facts.pod_disruption_budgets),
        SourceId::LonghornVolumes => by.list(&mut facts.longhorn_volumes),
        SourceId::LonghornReplicas => by.list(&mut facts.longhorn_replicas),
        SourceId::LonghornEngines => by.list(&mut facts.longhorn_engines),
        SourceId::LonghornSettings => by.list(&mut facts.longhorn_settings),
        SourceId::LonghornNodes => by.list(&mut facts.longhorn_nodes),
        SourceId::LonghornInstanceManagers => by.list(&mut facts.longhorn_instance_managers),
        SourceId::LonghornAttachments => by.list(&mut facts.longhorn_attachments),
        SourceId::CnpgClusters => by.list(&mut facts.cnpg_clusters),
        SourceId::CnpgPods => by.list(&mut facts.cnpg_pods),
        SourceId::NetworkAgentPods => by.list(&mut facts.network_agent_pods),
        SourceId::CiliumNodes => by.list(&mut facts.cilium_nodes),
        SourceId::UpgradePlans => by.list(&mut facts.upgrade_plans),
        SourceId::Jobs => by.list(&mut facts.jobs),
        SourceId::FluxKustomizations => by.list(&mut facts.flux_kustomizations),
        SourceId::FluxHelmReleases => by.list(&mut facts.flux_helm_releases),
        SourceId::Alerts => by.list(&mut facts.alerts),
        SourceId::VeleroBackups => by.list(&mut facts.velero_backups),
        SourceId::VeleroRestores => by.list(&mut facts.velero_restores),
        SourceId::LonghornBackups => by.list(&mut facts.longhorn_backups),
        SourceId::LonghornSystemBackups => by.list(&mut facts.longhorn_system_backups),
        SourceId::LonghornSystemRestores => by.list(&mut facts.longhorn_system_restores),
        SourceId::CnpgBackups => by.list(&mut facts.cnpg_backups),
        SourceId::VirtualMachineInstances => by.list(&mut facts.virtual_machine_instances),
        SourceId::VirtualMachineMigrations => by.list(&mut facts.virtual_machine_migrations),
        SourceId::KubeVirts => by.list(&mut facts.kubevirts),
        SourceId::VolumeAttachments => by.list(&mut facts.volume_attachments),
        SourceId::ConfigMaps => by.list(&mut facts.config_maps),
        SourceId::Maintenances => by.list(&mut facts.maintenances),
        SourceId::MaintenanceReports => by.list(&mut facts.maintenance_reports),
        SourceId::ApiServers => by.probe(&mut facts.api_servers),
        SourceId::Matrix => by.probe(&mut facts.matrix),
    }
}

/// The source could not be read.
struct Fail(FailureKind);

impl Change for Fail {
    fn list<T>(&self, listed: &mut Listed<T>) {
        self.probe(listed);
    }
    fn probe<T>(&self, observation: &mut Observation<T>) {
        *observation = Observation::Failed { kind: self.0, detail: "no answer".to_owned(), at: now() };
    }
}

/// The observation is this many seconds old.
struct Age(i64);

impl Change for Age {
    fn list<T>(&self, listed: &mut Listed<T>) {
        self.probe(listed);
    }
    fn probe<T>(&self, observation: &mut Observation<T>) {
        if let Observation::Known { at, .. } | Observation::Absent { at } = observation {
            *at = now() - SignedDuration::from_secs(self.0);
        }
    }
}

/// One more object that could not be understood. What is not there has none.
struct Spoil;

impl Change for Spoil {
    fn list<T>(&self, listed: &mut Listed<T>) {
        if let Observation::Known { value, .. } = listed {
            let object = "Object without a name".to_owned();
            value.push(Item::Malformed(Malformed {
                object,
                path: "metadata".to_owned(),
                problem: "is missing".to_owned(),
            }));
        }
    }
    fn probe<T>(&self, _: &mut Observation<T>) {}
}

/// Every gate at each of its moments, on the whole healthy cluster.
fn cases() -> Vec<(String, &'static GateSpec, Case)> {
    let mut all = Vec::new();
    for gate in GATES {
        for moment in gate.moments {
            for strategy in [Strategy::Drain, Strategy::CordonOnly] {
                all.push((format!("{} at {moment}, {strategy}", gate.id), gate, case(*moment, strategy)));
                let row = format!("{} at {moment}, {strategy}, with kured", gate.id);
                all.push((row, gate, with_kured(*moment, strategy)));
            }
        }
    }
    all
}

fn case(moment: Moment, strategy: Strategy) -> Case {
    let case = Case { strategy, moment, ..Case::healthy() };
    if moment == Moment::Start { case } else { case.with_run() }
}

fn with_kured(moment: Moment, strategy: Strategy) -> Case {
    let case = Case { strategy, moment, ..World::healthy().with_kured().case() };
    if moment == Moment::Start { case } else { case.with_run() }
}

/// The sources that the gate read to come to its answer.
fn read_by(gate: &GateSpec, case: &mut Case) -> Vec<SourceId> {
    let mut found = Vec::new();
    for source in SourceId::ALL {
        let before = case.facts.clone();
        change(&mut case.facts, *source, &Age(1));
        if case.ask(gate).observed_at == Some(now() - SignedDuration::from_secs(1)) {
            found.push(*source);
        }
        case.facts = before;
    }
    found
}

#[test]
fn the_healthy_cluster_stops_no_gate_at_the_start() {
    for (row, gate, case) in cases() {
        if case.moment == Moment::Start {
            let finding = case.ask(gate);
            assert!(!finding.stops(), "{row}: {} {}: {}", finding.status, finding.reason, finding.message);
        }
    }
}

#[test]
fn only_declared_sources_are_read() {
    for (row, gate, mut case) in cases() {
        for source in read_by(gate, &mut case) {
            assert!(gate.reads.contains(&source), "{row}: reads {source} and does not declare it");
        }
    }
}

#[test]
fn what_was_not_read_never_passes() {
    for (row, gate, mut case) in cases() {
        for source in read_by(gate, &mut case) {
            let before = case.facts.clone();
            for kind in FailureKind::ALL {
                change(&mut case.facts, source, &Fail(*kind));
                let finding = case.ask(gate);
                assert!(finding.stops(), "{row}: {source} {kind}: {} {}", finding.status, finding.message);
            }
            case.facts = before;
        }
    }
}

#[test]
fn what_is_old_or_malformed_never_passes() {
    for (row, gate, mut case) in cases() {
        for source in read_by(gate, &mut case) {
            let before = case.facts.clone();
            change(&mut case.facts, source, &Age(3_600));
            let finding = case.ask(gate);
            assert!(finding.stops(), "{row}: {source} of an hour ago: {} {}", finding.status, finding.message);
            case.facts = before.clone();
            change(&mut case.facts, source, &Spoil);
            if case.facts.spoilt(source, &before) {
                let finding = case.ask(gate);
                assert!(finding.stops(), "{row}: {source} malformed: {} {}", finding.status, finding.message);
            }
            case.facts = before;
        }
    }
}

impl Facts {
    /// Whether a change to a source left a trace: lists that are absent have no items to spoil.
    fn spoilt(&self, source: SourceId, before: &Self) -> bool {
        struct Count(std::cell::Cell<usize>);
        impl Change for Count {
            fn list<T>(&self, listed: &mut Listed<T>) {
                self.0.set(listed.known().map_or(0, Vec::len));
            }
            fn probe<T>(&self, _: &mut Observation<T>) {}
        }
        let count = |facts: &Self| {
            let count = Count(std::cell::Cell::new(0));
            change(&mut facts.clone(), source, &count);
            count.0.get()
        };
        count(self) > count(before)
    }
}

#[test]
fn what_a_moment_needs_is_what_its_gates_declare() {
    let settings = Settings::default();
    for (row, gate, case) in cases() {
        if !gate.asks_at(case.moment, &settings) || gate.policy(&settings) == Policy::Off {
            // The configuration says when, or whether: its own table shows what is read then.
            continue;
        }
        let needed = sources_of(case.moment, &settings);
        assert!(gate.reads.iter().all(|source| needed.contains(source)), "{row}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any sources failing, any target, moment and trigger: nothing that was read and failed passes, the answer is
    /// the same twice, and its reason is declared (`ask` checks that).
    #[test]
    fn no_failure_passes_in_any_combination(
        gate in prop::sample::select(GATES.iter().map(|gate| gate.id).collect::<Vec<GateId>>()),
        moment in prop::sample::select(Moment::ALL),
        strategy in prop::sample::select(vec![Strategy::Drain, Strategy::CordonOnly]),
        trigger in prop::sample::select(Trigger::ALL),
        target in prop::sample::select(vec!["worker1", "worker2", "worker3", "worker9"]),
        failing in prop::sample::subsequence(SourceId::ALL.to_vec(), 0..SourceId::ALL.len()),
        kind in prop::sample::select(FailureKind::ALL),
    ) {
        let gate = super::spec_of(gate).expect("a row");
        prop_assume!(gate.moments.contains(&moment));
        let mut case = Case { trigger, target: target.to_owned(), ..case(moment, strategy) };
        let read = read_by(gate, &mut case);
        for source in &failing {
            change(&mut case.facts, *source, &Fail(kind));
        }
        let finding = case.ask(gate);
        prop_assert_eq!(&finding, &case.ask(gate));
        if failing.iter().any(|source| read.contains(source)) {
            prop_assert!(finding.stops(), "{} {}: {}", gate.id, finding.status, finding.message);
        }
    }
}
