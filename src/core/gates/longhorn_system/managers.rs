//! Instance managers: running where they must, and none that keeps its budget for ever.

use super::super::longhorn_settings::Setting;
use super::system::{Problem, System};
use crate::api::{Evidence, Moment, Reason, Status, Strategy};
use crate::facts::longhorn::InstanceManager;

pub(super) fn judge(system: &System<'_>, problems: &mut Vec<Problem>) {
    for manager in &system.managers.items {
        problems.extend(of_gone_node(system, manager));
        problems.extend(not_running(system, manager));
        problems.extend(lists_foreign_engine(system, manager));
    }
    for name in system.members.keys() {
        problems.extend(none_runs(system, name));
    }
}

/// At settle the target's instance manager must run again; before, it goes down with the node.
fn is_asked(system: &System<'_>, node: &str) -> bool {
    system.is_asked(node) && (!system.is_target(node) || system.input.moment == Moment::Settle)
}

fn object(manager: &InstanceManager) -> String {
    format!("InstanceManager {}", manager.metadata.full_name())
}

fn runs(manager: &InstanceManager) -> bool {
    manager.state == "running" && manager.metadata.deletion_timestamp.is_none()
}

fn engine(manager: &InstanceManager) -> &str {
    if manager.data_engine.is_empty() { "v1" } else { &manager.data_engine }
}

/// It never ends by itself while it lists instances, and Longhorn counts on what it says (longhorn#10833).
fn of_gone_node(system: &System<'_>, manager: &InstanceManager) -> Option<Problem> {
    if manager.node.is_empty() || !system.nodes.is_gone(&manager.node) {
        return None;
    }
    let (name, node) = (&manager.metadata.name, &manager.node);
    let message = format!("instance manager {name} is of node {node}, which Kubernetes does not know");
    let evidence = Evidence::new(object(manager), "spec.nodeID", node, "a Node that exists");
    Some(Problem::new(Status::Block, Reason::LonghornInstanceManagerOrphaned, message, evidence))
}

/// One that does not run: of no weight where it is an empty leftover beside one that does (an upgrade of Longhorn).
fn not_running(system: &System<'_>, manager: &InstanceManager) -> Option<Problem> {
    let node = &manager.node;
    if manager.state == "running" || !is_asked(system, node) || system.nodes.is_gone(node) {
        return None;
    }
    let sibling = |other: &&&InstanceManager| {
        other.node == *node && runs(other) && engine(other) == engine(manager) && other.kind == manager.kind
    };
    if !manager.has_instances && system.managers.items.iter().any(|other| sibling(&other)) {
        return None;
    }
    let (name, state) = (&manager.metadata.name, &manager.state);
    let message = format!("instance manager {name} on {node} is {state}");
    let evidence = Evidence::new(object(manager), "status.currentState", state, "running");
    Some(Problem::new(Status::Block, Reason::LonghornInstanceManagerNotRunning, message, evidence))
}

/// Every Ready node has one, but where data engine v1 is off and v2 is kept away from the node.
fn none_runs(system: &System<'_>, node: &str) -> Option<Problem> {
    let here = || system.managers.items.iter().filter(|manager| manager.node == node);
    let ready = system.members.get(node).is_some_and(|member| member.is("Ready"));
    if !is_asked(system, node) || !ready || !system.managers.complete || here().any(|manager| runs(manager)) {
        return None;
    }
    let empty = !system.replicas().any(|replica| replica.node == node);
    if here().any(|manager| manager.state != "running")
        || (empty && system.settings.get("v1-data-engine", "v1") == Setting::Is("false".to_owned()))
    {
        // The first was told by itself.
        return None;
    }
    let message = format!("no instance manager runs on {node}: no volume can use its replicas");
    let evidence = Evidence::new(format!("Node {node}"), "running instance managers", "none", "at least one");
    Some(Problem::new(Status::Block, Reason::LonghornInstanceManagerNotRunning, message, evidence))
}

/// The budget stays while an engine is listed, and an engine that is not attached here never leaves by a drain.
fn lists_foreign_engine(system: &System<'_>, manager: &InstanceManager) -> Option<Problem> {
    let input = system.input;
    let asked = input.moment == Moment::Start && input.strategy == Strategy::Drain && system.is_target(&manager.node);
    if !asked {
        return None;
    }
    let foreign = |name: &str| match system.volume_of_engine(name) {
        // Between two states, or between two nodes, gate `longhorn-volumes` speaks.
        Some(volume) if !volume.migration_node.is_empty() => None,
        Some(volume) if volume.state == "attached" && volume.current_node != manager.node => {
            Some(format!("whose volume is attached to {}", volume.current_node))
        }
        Some(volume) if volume.state == "detached" => Some("whose volume is detached".to_owned()),
        Some(_) => None,
        None => system.engines_are_all.then(|| "which does not exist".to_owned()),
    };
    let (name, why) = manager.engines.iter().find_map(|name| Some((name, foreign(name)?)))?;
    let message = format!(
        "instance manager {} on {} still lists engine {name}, {why}: its budget would hold the drain for ever",
        manager.metadata.name, manager.node
    );
    let evidence = Evidence::new(object(manager), "status.instanceEngines", name, "engines of volumes attached here");
    Some(Problem::new(Status::Block, Reason::LonghornInstanceManagerOrphaned, message, evidence))
}
