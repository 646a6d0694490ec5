//! Gate `virtual-machines`: virtual machines of KubeVirt on the node can move, or may stop.
//!
//! # Checks
//! | moment | what it asks of each virtual machine on the target |
//! |---|---|
//! | start | none is being moved, starting or ending; one that may only leave running (`evictionStrategy: LiveMigrate`) can be migrated, and another Ready, schedulable node takes virtual machines. One that the drain stops (`None`, or `LiveMigrateIfPossible` and it cannot) warns, and one that something else must move (`External`) too |
//! | handover | none is left there, and none is on its way there |
//!
//! With strategy cordon-only nothing is evicted, and it does not apply.
//!
//! # Why
//! KubeVirt refuses the eviction of a machine that it moves, and for ever that of one that it should move and cannot
//! (kubevirt PR#11286, PR#11532): the drain would hang until its deadline.
//!
//! # Source of truth
//! `kubevirt.io/v1` virtualmachineinstances, virtualmachineinstancemigrations, and kubevirts for the cluster's own
//! eviction strategy; core Nodes with their label `kubevirt.io/schedulable`. Not asked: node selectors and room.
//!
//! # Blocks which scopes
//! Those with strategy drain.
//!
//! # When unknown
//! A list that could not be read, an object that was not understood, an eviction strategy that this version does not
//! know, a machine without one of its own where KubeVirt's configuration is not known.
//!
//! # Runbook
//! `runbooks/VirtualMachine*.md`

#[cfg(test)]
mod tests;

use super::storage::{NodeIndex, required};
use super::{Draft, GateInput, GateSpec, Read};
use crate::api::{Evidence, Finding, GateId, Moment, Policy, Reason, SourceId, Status, Strategy};
use crate::facts::kubevirt::{Instance, Migration};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::VirtualMachines,
    moments: &[Moment::Start, Moment::Handover],
    reads: &[
        SourceId::Nodes,
        SourceId::VirtualMachineInstances,
        SourceId::VirtualMachineMigrations,
        SourceId::KubeVirts,
    ],
    reasons: &[
        Reason::VirtualMachineCannotMove,
        Reason::VirtualMachineMigrating,
        Reason::VirtualMachineInTransition,
        Reason::VirtualMachineOnTarget,
        Reason::VirtualMachineStops,
        Reason::VirtualMachineMovedByOthers,
    ],
    default_policy: Policy::Require,
    doc: "virtual machines (KubeVirt) on the node can move, or may stop",
    check,
};

/// Label by which KubeVirt says that a node takes virtual machines.
const TAKES_MACHINES: &str = "kubevirt.io/schedulable";

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::VirtualMachines, input);
    if input.strategy == Strategy::CordonOnly {
        return draft.not_applicable(Reason::Passed, "cordon-only evicts no pod, so every virtual machine stays");
    }
    let instances = match draft.read(SourceId::VirtualMachineInstances, &input.facts.virtual_machine_instances) {
        Read::Known(instances) => instances,
        Read::Unreadable => return draft.finish(""),
        Read::NotAsked => return draft.not_applicable(Reason::NotAsked, "this input holds no virtual machines"),
        Read::Absent => {
            let message = "KubeVirt is not installed (no virtualmachineinstances.kubevirt.io)";
            return draft.not_applicable(Reason::NotInstalled, message);
        }
    };
    let concerned: Vec<&Instance> =
        instances.into_iter().filter(|one| !one.is_over() && (is_here(input, one) || is_coming(input, one))).collect();
    let target = input.target;
    if concerned.is_empty() {
        return draft.finish(format!("no virtual machine is on {target}"));
    }
    let count = concerned.len();
    if input.moment == Moment::Handover {
        for instance in concerned {
            left(&mut draft, input, instance);
        }
    } else if let Some(view) = View::read(&mut draft, input, &concerned) {
        for instance in concerned {
            view.judge(&mut draft, instance);
        }
    }
    draft.finish(format!("all {count} virtual machines on {target} can move"))
}

/// On the target. One that runs, and does not tell where, may be there.
fn is_here(input: &GateInput<'_>, instance: &Instance) -> bool {
    let waits = matches!(instance.phase.as_str(), "" | "Pending" | "Scheduling");
    instance.node == input.target || (instance.node.is_empty() && !waits)
}

/// On its way to the target.
fn is_coming(input: &GateInput<'_>, instance: &Instance) -> bool {
    instance.migration.as_ref().is_some_and(|migration| !migration.over && migration.target_node == input.target)
}

fn object(instance: &Instance) -> String {
    format!("VirtualMachineInstance {}", instance.metadata.full_name())
}

fn left(draft: &mut Draft<'_>, input: &GateInput<'_>, instance: &Instance) {
    let (name, target) = (instance.metadata.full_name(), input.target);
    if is_here(input, instance) {
        let message = format!("virtual machine {name} is still on {target}");
        let evidence = Evidence::new(object(instance), "status.nodeName", target, "another node, or none");
        draft.block(Reason::VirtualMachineOnTarget, message, evidence);
    } else {
        let message = format!("virtual machine {name} is being moved to {target}");
        let evidence = Evidence::new(object(instance), "status.migrationState.targetNode", target, "another node");
        draft.block(Reason::VirtualMachineMigrating, message, evidence);
    }
}

/// What the machines on the target are judged by.
struct View<'a> {
    input: &'a GateInput<'a>,
    migrations: Vec<&'a Migration>,
    /// The cluster's own eviction strategy; none where it is not known: the draft holds the unknown, if one asks.
    default_strategy: Option<&'a str>,
    /// Whether another node could take a machine.
    has_place: bool,
}

impl<'a> View<'a> {
    fn read(draft: &mut Draft<'a>, input: &'a GateInput<'a>, instances: &[&Instance]) -> Option<Self> {
        let facts = input.facts;
        let because = "there are virtual machines";
        let nodes = NodeIndex::read(draft, input);
        let list = &facts.virtual_machine_migrations;
        let migrations = required(draft, SourceId::VirtualMachineMigrations, list, because);
        let asked = instances.iter().any(|instance| instance.eviction_strategy.is_none());
        let default_strategy = if asked { default_strategy(draft, input) } else { None };
        let (nodes, migrations) = (nodes?, migrations?);
        let takes = |node: &crate::facts::Node| {
            let name = node.metadata.name.as_str();
            let labelled = node.metadata.labels.get(TAKES_MACHINES).is_some_and(|value| value == "true");
            name != input.target && labelled && nodes.is_ready(name) && nodes.is_schedulable(name)
        };
        let has_place = facts.nodes.good().any(takes);
        Some(Self { input, migrations: migrations.items, default_strategy, has_place })
    }

    fn judge(&self, draft: &mut Draft<'_>, instance: &Instance) {
        if !self.moves(draft, instance) && is_here(self.input, instance) && !changes(draft, self.input, instance) {
            self.leaves(draft, instance);
        }
    }

    /// Whether it is being moved, or is to be.
    fn moves(&self, draft: &mut Draft<'_>, instance: &Instance) -> bool {
        let (name, metadata) = (instance.metadata.full_name(), &instance.metadata);
        let wish = self.migrations.iter().find(|one| {
            !one.is_over() && one.instance == metadata.name && one.metadata.namespace == metadata.namespace
        });
        let running = instance.migration.as_ref().filter(|state| !state.over);
        let (object, field, value, since) = match (wish, running) {
            (Some(wish), _) => {
                let object = format!("VirtualMachineInstanceMigration {}", wish.metadata.full_name());
                let phase = if wish.phase.is_empty() { "new" } else { &wish.phase };
                (object, "status.phase", phase, wish.metadata.created)
            }
            (None, Some(state)) => {
                let to = if state.target_node.is_empty() { "no node yet" } else { &state.target_node };
                (object(instance), "status.migrationState.targetNode", to, state.started)
            }
            (None, None) => return false,
        };
        let message =
            format!("virtual machine {name} is being moved ({value}): KubeVirt refuses its eviction meanwhile");
        let evidence = vec![Evidence::new(object, field, value, "over")];
        draft.add(Status::Block, Reason::VirtualMachineMigrating, message, since, evidence);
        true
    }

    /// What an eviction would do to it.
    fn leaves(&self, draft: &mut Draft<'_>, instance: &Instance) {
        let (name, target) = (instance.metadata.full_name(), self.input.target);
        let Some(strategy) = instance.eviction_strategy.as_deref().or(self.default_strategy) else { return };
        let field = "spec.evictionStrategy";
        match strategy {
            "None" => self.stops(draft, instance, strategy),
            "LiveMigrateIfPossible" if !instance.can_migrate() => self.stops(draft, instance, strategy),
            "LiveMigrate" if !instance.can_migrate() => {
                let says = says(instance);
                let message = format!(
                    "virtual machine {name} cannot leave {target}: it may only leave running (evictionStrategy is \
                     {strategy}), and LiveMigratable is {says}"
                );
                let evidence = Evidence::new(object(instance), "status.conditions[LiveMigratable]", says, "True");
                draft.block(Reason::VirtualMachineCannotMove, message, evidence);
            }
            "LiveMigrate" | "LiveMigrateIfPossible" if !self.has_place => {
                let message = format!(
                    "virtual machine {name} cannot leave {target}: no other Ready, schedulable node takes virtual machines"
                );
                let wanted = format!("another Ready, schedulable node labelled {TAKES_MACHINES}=true");
                let evidence = Evidence::new(object(instance), "status.nodeName", target, wanted);
                draft.block(Reason::VirtualMachineCannotMove, message, evidence);
            }
            "LiveMigrate" | "LiveMigrateIfPossible" => {}
            "External" => {
                let message =
                    format!("virtual machine {name} leaves {target} only when something else moves it (External)");
                let evidence = Evidence::new(object(instance), field, strategy, "LiveMigrate");
                draft.warn(Reason::VirtualMachineMovedByOthers, message, evidence);
            }
            other => {
                let message =
                    format!("virtual machine {name} has evictionStrategy `{other}`, which this version does not know");
                let evidence = Evidence::new(object(instance), field, other, "a known strategy");
                draft.unknown(Reason::ObservationMalformed, message, evidence);
            }
        }
    }

    fn stops(&self, draft: &mut Draft<'_>, instance: &Instance, strategy: &str) {
        let (name, target) = (instance.metadata.full_name(), self.input.target);
        let message =
            format!("virtual machine {name} is stopped when {target} is drained (evictionStrategy is {strategy})");
        let evidence = Evidence::new(object(instance), "spec.evictionStrategy", strategy, "LiveMigrate, and able to");
        draft.warn(Reason::VirtualMachineStops, message, evidence);
    }
}

/// Whether it is starting or ending: what its eviction would do cannot be told yet.
fn changes(draft: &mut Draft<'_>, input: &GateInput<'_>, instance: &Instance) -> bool {
    let (name, target) = (instance.metadata.full_name(), input.target);
    let (word, field, value, since) = match instance.metadata.deletion_timestamp {
        Some(at) => ("ending", "metadata.deletionTimestamp", at.to_string(), Some(at)),
        None if instance.phase == "Running" => return false,
        None => {
            let phase = if instance.phase.is_empty() { "not set" } else { &instance.phase };
            ("starting", "status.phase", phase.to_owned(), instance.metadata.created)
        }
    };
    let message = format!("virtual machine {name} is {word} on {target}");
    let evidence = vec![Evidence::new(object(instance), field, value, "Running")];
    draft.add(Status::Block, Reason::VirtualMachineInTransition, message, since, evidence);
    true
}

fn says(instance: &Instance) -> String {
    match instance.live_migratable() {
        None => "missing".to_owned(),
        Some(condition) if condition.reason.is_empty() => condition.status.as_str().to_owned(),
        Some(condition) => format!("{} ({})", condition.status.as_str(), condition.reason),
    }
}

/// What counts for machines that do not say. There is one KubeVirt in a cluster.
fn default_strategy<'a>(draft: &mut Draft<'a>, input: &'a GateInput<'a>) -> Option<&'a str> {
    let because = "there are virtual machines";
    let list = required(draft, SourceId::KubeVirts, &input.facts.kubevirts, because)?;
    match list.items.as_slice() {
        [one] => Some(&one.eviction_strategy),
        [] if !list.complete => None,
        all => {
            let found = all.len().to_string();
            let message =
                format!("there are virtual machines, and {found} KubeVirts that say what an eviction does to them");
            let evidence = Evidence::new(SourceId::KubeVirts.as_str(), "objects", found, "1");
            draft.unknown(Reason::ObservationMalformed, message, evidence);
            None
        }
    }
}
