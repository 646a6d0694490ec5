//! Longhorn's nodes and their disks.

use std::collections::BTreeMap;

use super::system::{Problem, System, not_true};
use crate::api::{Evidence, Moment, Reason, Status};
use crate::facts::longhorn::{Disk, Node};

pub(super) fn judge(system: &System<'_>, problems: &mut Vec<Problem>) {
    for (name, member) in &system.members {
        if system.is_asked(name) && member.metadata.deletion_timestamp.is_none() {
            one(system, member, problems);
        }
    }
    missing(system, problems);
}

fn one(system: &System<'_>, member: &Node, problems: &mut Vec<Problem>) {
    let moment = system.input.moment;
    let ready = not_ready(system, member);
    let is_ready = ready.is_none();
    problems.extend(ready);
    // A node that is not Ready says nothing of its disks any more.
    if moment == Moment::Verify || !is_ready {
        return;
    }
    let target = system.is_target(&member.metadata.name);
    if moment == Moment::Settle && target && member.allow_scheduling {
        problems.extend(not_schedulable(member));
    }
    for disk in &member.disks {
        problems.extend(judge_disk(system, member, disk));
    }
    problems.extend(evicting(system, member));
}

fn object(member: &Node) -> String {
    format!("Node {}", member.metadata.full_name())
}

fn not_ready(system: &System<'_>, member: &Node) -> Option<Problem> {
    let name = &member.metadata.name;
    let (value, since) = not_true(member.condition("Ready"))?;
    let message = if system.nodes.is_gone(name) {
        format!(
            "Longhorn has a node {name} that Kubernetes does not know: {value}; if it never comes back, delete it there"
        )
    } else {
        format!("Longhorn says that node {name} is not Ready: {value}")
    };
    let evidence = Evidence::new(object(member), "status.conditions[Ready]", value, "True");
    Some(Problem { since, ..Problem::new(Status::Block, Reason::LonghornNodeNotReady, message, evidence) })
}

/// What holds data and is no node of Longhorn: nobody there could lift a budget or take a replica back.
fn missing(system: &System<'_>, problems: &mut Vec<Problem>) {
    let mut holders: BTreeMap<&str, &str> = BTreeMap::new();
    let managers = system.managers.items.iter().map(|manager| (manager.node.as_str(), manager.metadata.name.as_str()));
    let replicas = system.replicas().map(|replica| (replica.node.as_str(), replica.metadata.name.as_str()));
    for (node, holder) in managers.chain(replicas) {
        holders.entry(node).or_insert(holder);
    }
    for (node, holder) in holders {
        // What is left of a node that is gone is told by its replicas and instance managers.
        let told = node.is_empty() || system.has_member(node) || system.nodes.is_gone(node);
        if told || !system.is_asked(node) {
            continue;
        }
        let message = format!("Longhorn has {holder} on {node}, and no node of that name");
        let evidence = Evidence::new(format!("Node {node}"), "nodes.longhorn.io", "missing", "a node of Longhorn");
        problems.push(Problem::new(Status::Block, Reason::LonghornNodeNotReady, message, evidence));
    }
}

/// Right after the uncordon Longhorn lags behind by its own resync (30 s).
fn not_schedulable(member: &Node) -> Option<Problem> {
    let name = &member.metadata.name;
    let (value, since) = not_true(member.condition("Schedulable"))?;
    let message = format!("Longhorn places no replica on {name} yet: Schedulable is {value}");
    let evidence = Evidence::new(object(member), "status.conditions[Schedulable]", value, "True");
    Some(Problem { since, ..Problem::new(Status::Block, Reason::LonghornNotSchedulable, message, evidence) })
}

/// A disk that is not Ready holds no good replica. One without room is a nuisance before the night, and what keeps the
/// target's replicas from coming back after it.
fn judge_disk(system: &System<'_>, member: &Node, disk: &Disk) -> Option<Problem> {
    let (name, moment) = (&member.metadata.name, system.input.moment);
    let target = system.is_target(name);
    let label = format!("disk {} of {name}", disk.name);
    let evidence = |condition: &str, value: &str| {
        Evidence::new(
            object(member),
            format!("status.diskStatus[{}].conditions[{condition}]", disk.name),
            value,
            "True",
        )
    };
    if disk.conditions.is_none() {
        let message = format!("Longhorn has not reported on {label}");
        let evidence = evidence("Ready", "missing");
        return Some(Problem::new(Status::Unknown, Reason::LonghornDiskNotReady, message, evidence));
    }
    if let Some((value, since)) = not_true(disk.condition("Ready")) {
        // The target's own sickness does not forbid its cure.
        let status = if target && moment == Moment::Start { Status::Warn } else { Status::Block };
        let message = format!("Longhorn's {label} is not Ready: {value}");
        let problem = Problem::new(status, Reason::LonghornDiskNotReady, message, evidence("Ready", &value));
        return Some(Problem { since, ..problem });
    }
    if !member.allow_scheduling || !disk.allow_scheduling || moment == Moment::Handover {
        return None;
    }
    let (value, since) = not_true(disk.condition("Schedulable"))?;
    let status = if target && moment == Moment::Settle { Status::Block } else { Status::Warn };
    let message = format!("Longhorn's {label} takes no new replica: Schedulable is {value}");
    let problem = Problem::new(status, Reason::LonghornNotSchedulable, message, evidence("Schedulable", &value));
    Some(Problem { since, ..problem })
}

/// Replicas that are to leave a node or a disk. A wish that has been granted, with nothing left there, moves nothing.
fn evicting(system: &System<'_>, member: &Node) -> Option<Problem> {
    let name = &member.metadata.name;
    let here = || system.replicas().filter(|replica| replica.node == *name);
    let from_disk = |disk: &&Disk| {
        // A disk without a report may hold any of them.
        disk.eviction_requested && here().any(|replica| disk.uuid.is_empty() || replica.disk == disk.uuid)
    };
    let (field, from, count) = if member.eviction_requested && here().next().is_some() {
        ("spec.evictionRequested".to_owned(), name.clone(), here().count())
    } else if member.auto_evicting {
        ("status.autoEvicting".to_owned(), name.clone(), here().count())
    } else {
        let disk = member.disks.iter().find(from_disk)?;
        let count = here().filter(|replica| disk.uuid.is_empty() || replica.disk == disk.uuid).count();
        (format!("spec.disks[{}].evictionRequested", disk.name), format!("disk {} of {name}", disk.name), count)
    };
    let message = format!("Longhorn is moving replicas away from {from}: {count} left there");
    let evidence = Evidence::new(object(member), field, "true", "false, or no replica left there");
    Some(Problem::new(Status::Block, Reason::LonghornEvicting, message, evidence))
}
