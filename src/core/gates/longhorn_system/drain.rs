//! Longhorn's verdict on the drain of the target, foretold before the cordon.
//!
//! It lifts the budget of an instance manager when the node is cordoned, no engine is left there, and its
//! `node-drain-policy` is content with the replicas there (longhorn-manager, `canDeleteInstanceManagerPDB`).

use super::super::longhorn_settings::{DrainPolicy, Setting};
use super::system::{Problem, System};
use crate::api::{Evidence, Moment, Reason, Status, Strategy};
use crate::facts::longhorn::{Node, Replica, Volume};

/// The type of a ticket that a person or a script made through Longhorn's API or page.
const BY_HAND: &str = "longhorn-api";

pub(super) fn judge(system: &System<'_>, problems: &mut Vec<Problem>) {
    let drains = system.input.moment == Moment::Start && system.input.strategy == Strategy::Drain;
    if drains {
        problems.extend(attached_by_hand(system));
    }
    let here = |replica: &&&Replica| system.is_target(&replica.node);
    let held: Vec<(&Volume, &Replica, &[&Replica])> = system
        .volumes()
        .filter(|(volume, _)| volume.metadata.deletion_timestamp.is_none())
        .filter_map(|(volume, replicas)| Some((volume, *replicas.iter().find(here)?, replicas)))
        // Never used, it holds nothing (longhorn#2673); an erasure-coded volume is not judged by replicas.
        .filter(|(_, replica, _)| replica.healthy_at.is_some() || replica.failed_at.is_some())
        .collect();
    if held.is_empty() {
        return;
    }
    let (policy, word) = match system.settings.drain_policy() {
        Ok(policy) => policy,
        Err(why) if drains => {
            let message = format!("whether Longhorn lets {} be drained cannot be told: {why}", system.input.target);
            let evidence = Evidence::new("Setting node-drain-policy", "value", why, "a known policy");
            return problems.push(Problem::new(Status::Unknown, Reason::LonghornDrainRefused, message, evidence));
        }
        Err(_) => return,
    };
    match policy {
        DrainPolicy::Always => {}
        DrainPolicy::BlockIfLast | DrainPolicy::AllowIfStopped if drains => {
            let stopped = |volume: &Volume| policy == DrainPolicy::AllowIfStopped && volume.state == "detached";
            let unprotected = held.iter().filter(|(volume, ..)| !stopped(volume));
            problems.extend(unprotected.filter_map(|(_, replica, all)| refused(system, replica, all, &word)));
        }
        DrainPolicy::Evicts => evictions(system, &held, &word, drains, problems),
        _ => {}
    }
}

/// A volume that a person attached stays where it is (harvester#6264), but where Longhorn is told to let go of it.
fn attached_by_hand(system: &System<'_>) -> Vec<Problem> {
    let setting = "detach-manually-attached-volumes-when-cordoned";
    let says = system.settings.get(setting, "v1");
    if says == Setting::Is("true".to_owned()) {
        return Vec::new();
    }
    let target = system.input.target;
    let here = |one: &&&crate::facts::longhorn::Attachment| {
        one.tickets.iter().any(|ticket| ticket.kind == BY_HAND && ticket.node == target)
    };
    let problem = |volume: &String| {
        let claim = system.volume(volume).and_then(|volume| volume.claim.as_deref());
        let label = claim.map_or_else(|| volume.clone(), |claim| format!("{volume} ({claim})"));
        let message = format!(
            "volume {label} is attached to {target} by hand, which no drain ends: detach it there, or set {setting}"
        );
        let object = format!("VolumeAttachment {}/{volume}", system.input.settings.longhorn.namespace);
        let evidence = Evidence::new(object, "spec.attachmentTickets", BY_HAND, "csi-attacher, or another node");
        Problem::new(Status::Block, Reason::LonghornManuallyAttached, message, evidence)
    };
    system.attachments.iter().filter(here).map(|one| problem(&one.volume)).collect()
}

fn is_good(replica: &Replica) -> bool {
    replica.healthy_at.is_some() && replica.failed_at.is_none()
}

/// Whether Longhorn counts this copy: on a schedulable node, with an instance manager that runs and has its budget.
fn is_counted(system: &System<'_>, replica: &Replica) -> bool {
    let manager = |one: &&&crate::facts::longhorn::InstanceManager| {
        one.node == replica.node && one.kind != "engine" && one.state == "running" && system.is_protected(one)
    };
    system.nodes.is_schedulable(&replica.node) && system.managers.items.iter().any(|one| manager(&one))
}

/// The good copies of a volume that are not on the target.
fn others<'r>(system: &System<'_>, all: &'r [&'r Replica]) -> impl Iterator<Item = &'r Replica> {
    let target = system.input.target.to_owned();
    all.iter().copied().filter(move |replica| replica.node != target && is_good(replica))
}

/// A replica whose other copies are good and schedulable (else `longhorn-volumes` speaks) and not counted by Longhorn.
fn refused(system: &System<'_>, replica: &Replica, all: &[&Replica], word: &str) -> Option<Problem> {
    let elsewhere: Vec<&Replica> =
        others(system, all).filter(|other| system.nodes.is_schedulable(&other.node)).collect();
    if elsewhere.is_empty() || elsewhere.iter().any(|other| is_counted(system, other)) || !system.managers.complete {
        return None;
    }
    let nodes: Vec<&str> = elsewhere.iter().map(|other| other.node.as_str()).collect();
    let (name, target) = (&replica.metadata.name, system.input.target);
    let message = format!(
        "Longhorn would hold the drain of {target}: replica {name} has no pdb on another node ({}: no instance manager \
         that runs and has its budget), and node-drain-policy is {word}",
        nodes.join(", ")
    );
    let object = format!("Replica {}", replica.metadata.full_name());
    let evidence = Evidence::new(object, "protected copies on other nodes", "none", "at least one");
    Some(Problem::new(Status::Block, Reason::LonghornDrainRefused, message, evidence))
}

/// The policies that move replicas away once the node is cordoned, and end the drain only then.
fn evictions(
    system: &System<'_>,
    held: &[(&Volume, &Replica, &[&Replica])],
    word: &str,
    drains: bool,
    problems: &mut Vec<Problem>,
) {
    let all_go = word == "block-for-eviction";
    let moving: Vec<_> =
        held.iter().filter(|(_, _, all)| all_go || !others(system, all).any(|one| is_counted(system, one))).collect();
    let Some((_, first, _)) = moving.first() else { return };
    let target = system.input.target;
    let stuck = moving.iter().find(|(volume, _, all)| !has_place(system, volume, all));
    if let Some((_, replica, _)) = stuck.filter(|_| drains) {
        let name = &replica.metadata.name;
        let message = format!(
            "Longhorn would hold the drain of {target}: replica {name} has no other node to move to, and \
             node-drain-policy is {word}"
        );
        let object = format!("Replica {}", replica.metadata.full_name());
        let evidence = Evidence::new(object, "nodes that could take it", "none", "at least one");
        problems.push(Problem::new(Status::Block, Reason::LonghornDrainRefused, message, evidence));
    }
    let count = moving.len();
    let message =
        format!("the cordon of {target} makes Longhorn move {count} replicas away (node-drain-policy is {word})");
    let object = format!("Replica {}", first.metadata.full_name());
    let evidence = Evidence::new(object, "spec.nodeID", target, "stays, with another policy");
    problems.push(Problem::new(Status::Warn, Reason::LonghornCordonMovesReplicas, message, evidence));
}

/// Whether a node could take another replica of a volume.
fn has_place(system: &System<'_>, volume: &Volume, all: &[&Replica]) -> bool {
    let soft = match volume.soft_anti_affinity.as_str() {
        "enabled" => true,
        "disabled" => false,
        _ => system.settings.get("replica-soft-anti-affinity", "v1") == Setting::Is("true".to_owned()),
    };
    let free = |name: &str| soft || !all.iter().any(|replica| replica.node == name);
    let takes = |member: &Node| {
        let disk = member.disks.iter().any(|disk| {
            disk.allow_scheduling && !disk.eviction_requested && disk.is("Ready") && disk.is("Schedulable")
        });
        member.allow_scheduling && !member.eviction_requested && member.is("Ready") && member.is("Schedulable") && disk
    };
    system.members.iter().any(|(name, member)| !system.is_target(name) && free(name) && takes(member))
}
