//! Family `leftovers`: what a kured that crashed or lost its lock left on nodes.
//!
//! kured uncordons and removes its annotation only in a start-up that finds itself in the lock. Where its entry had
//! expired, was taken away, or the API was out for minutes at its start, both stay (kured#63, #955).

use jiff::Timestamp;

use super::{Answer, Family, FamilyId, Input, View, records};
use crate::api::names::ANNOTATION_KURED_IN_PROGRESS;
use crate::api::{Evidence, Reason, SourceId, Status};
use crate::facts::{KuredPod, Node};
use crate::kured::lock::Lock;
use crate::kured::{Flag, Places, Window, places_of};

/// The row of this family.
pub(super) const FAMILY: Family = Family {
    id: FamilyId::Leftovers,
    doc: "what kured left on nodes",
    reads: &[SourceId::Nodes, SourceId::DaemonSets, SourceId::KuredPods, SourceId::Maintenances],
    check,
};

/// Field manager of kured's writes: its client's default.
const KURED: &str = "kured";
/// The taint that kured's documentation suggests.
const SUGGESTED_TAINT: &str = "weave.works/kured-node-reboot";
const PREFER_NO_SCHEDULE: &str = "PreferNoSchedule";

fn check(input: &Input<'_>) -> Vec<Answer> {
    let mut answers = Vec::new();
    let View { daemon_sets, pods, nodes } = View::of(input, &mut answers);
    let (Some(daemon_sets), Some(nodes), Some(pods)) = (daemon_sets, nodes, pods) else { return answers };
    // Where a lock cannot be read nobody can say that a node does not hold it: the lock's own family tells.
    let held = match places_of(&daemon_sets) {
        Places::NotInstalled => Some(Vec::new()),
        Places::Unreadable(_) => None,
        Places::Found(places) => places
            .iter()
            .map(|place| {
                place.text.as_deref().map_or(Ok(Vec::new()), |text| Lock::parse(text).map(|lock| lock.entries))
            })
            .collect::<Result<Vec<_>, _>>()
            .ok()
            .map(|entries| entries.into_iter().flatten().map(|entry| entry.node_id).collect()),
    };
    let records = records(input, &mut answers);
    let unread = answers.len();
    for node in &nodes {
        let name = node.metadata.name.as_str();
        let holds = held.as_ref().map(|held: &Vec<String>| held.iter().any(|holder| holder == name));
        let in_flight = records.iter().any(|run| run.node_name == name && run.in_flight());
        let kured = pods.iter().copied().find(|pod| pod.node_name.as_deref() == Some(name) && !pod.is_finished());
        if holds == Some(false) && !in_flight {
            cordon(node, &mut answers);
            annotation(node, &mut answers);
        }
        taint(input, node, kured, &mut answers);
    }
    if held.is_none() {
        answers.push(Answer::new(
            Status::Unknown,
            Some(Reason::KuredLockUnreadable),
            "which cordons of kured are left over is not known while its lock cannot be read",
        ));
    }
    if answers.len() == unread {
        answers.push(Answer::pass(format!("nothing is left over on {} nodes", nodes.len())));
    }
    answers
}

fn cordon(node: &Node, answers: &mut Vec<Answer>) {
    let name = &node.metadata.name;
    if !node.unschedulable || node.unschedulable_manager.as_deref() != Some(KURED) {
        return;
    }
    let message = format!("kured cordoned {name} and holds no lock for it: it will not uncordon it any more");
    answers.push(
        Answer::new(Status::Warn, Some(Reason::TargetCordonedByOther), message)
            .with(Evidence::new(format!("Node {name}"), "spec.unschedulable", "true by kured", "not cordoned"))
            .help(format!("kubectl uncordon {name}   after a look at why it was left: kubectl describe node {name}")),
    );
}

fn annotation(node: &Node, answers: &mut Vec<Answer>) {
    let name = &node.metadata.name;
    let Some(text) = node.metadata.annotations.get(ANNOTATION_KURED_IN_PROGRESS) else { return };
    // It is a wish until the node has come back since; kured writes it once and never renews it.
    let written: Option<Timestamp> = text.parse().ok();
    let back = node.condition("Ready").and_then(|ready| ready.last_transition);
    let over = match (written, back) {
        (Some(written), Some(back)) => back > written,
        (None, _) => true,
        (_, None) => false,
    };
    if over {
        let message = format!("{name} has come back since kured marked it for a reboot, and the mark is still there");
        answers.push(
            Answer::new(Status::Warn, Some(Reason::KuredWishUnconfirmed), message)
                .with(Evidence::new(format!("Node {name}"), ANNOTATION_KURED_IN_PROGRESS, text, "not there"))
                .help(format!("kubectl annotate node {name} {ANNOTATION_KURED_IN_PROGRESS}-")),
        );
    }
}

/// kured takes its taint away at every tick outside its window or without a wish: where no kured runs, or its window is
/// closed, nobody will.
fn taint(input: &Input<'_>, node: &Node, kured: Option<&KuredPod>, answers: &mut Vec<Answer>) {
    let flags = kured.and_then(KuredPod::flags);
    let key = flags
        .as_ref()
        .and_then(|flags| flags.text(Flag::PreferNoScheduleTaint).ok())
        .filter(|key| !key.is_empty())
        .unwrap_or_else(|| SUGGESTED_TAINT.to_owned());
    if !node.taints.iter().any(|taint| taint.key == key && taint.effect == PREFER_NO_SCHEDULE) {
        return;
    }
    let closed =
        flags.as_ref().and_then(|flags| Window::of(flags).ok()).is_some_and(|window| !window.is_open(input.now));
    let why = match &flags {
        None => "no kured runs there",
        Some(_) if closed => "kured's window is closed",
        Some(flags) if flags.text(Flag::PreferNoScheduleTaint).as_deref() == Ok("") => {
            "kured does not use taints any more"
        }
        Some(_) => return,
    };
    let name = &node.metadata.name;
    let message = format!("{name} still has kured's taint {key}, and {why}");
    answers.push(
        Answer::new(Status::Warn, Some(Reason::KuredSettingRisky), message)
            .with(Evidence::new(format!("Node {name}"), "spec.taints", &key, "not there"))
            .help(format!("kubectl taint node {name} {key}:{PREFER_NO_SCHEDULE}-")),
    );
}
