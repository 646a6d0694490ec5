//! Cordons with their owner. A cordon that we did not set is never removed, so a person must know whose it is.
//!
//! A node that stays cordoned takes no pods, and Longhorn neither rebuilds nor starts instance managers on it. So a
//! cordon that nobody says is wanted is a fault; `maint hold` says that it is.

use super::own::{judged, some_of};
use super::{Answer, Asked};
use crate::api::names::{ANNOTATION_HOLD, ANNOTATION_OWNER, FIELD_MANAGER};
use crate::api::{Evidence, Hold, Owner, Reason, SourceId, is_over};
use crate::facts::{Maintenance, Node, Observation};
use crate::gates::reading::document;
use crate::gates::{Draft, GateInput, Read};

/// Whose a cordon is.
enum Whose<'a> {
    /// Of a run of ours that is at work.
    Run(&'a Maintenance),
    /// Of a run of ours that is over.
    Over(&'a Maintenance),
    /// Ours, and there is no such record any more.
    NoRecord(String),
    /// Ours, and whose run it was is not known.
    Unknown,
    /// Of this field manager; none where `managedFields` name nobody.
    Other(Option<&'a str>),
}

/// Who has cordoned what.
pub(super) fn cordons<'a>(draft: &mut Draft<'a>, asked: &Asked<'a>, input: &'a GateInput<'a>) -> Answer {
    let Some(judged) = judged(draft, input) else { return String::new().into() };
    let cordoned: Vec<&Node> = judged.iter().copied().filter(|node| node.is_cordoned()).collect();
    if cordoned.is_empty() {
        return format!("none of {} nodes is cordoned", judged.len()).into();
    }
    let records = records(draft, asked);
    for node in &cordoned {
        one(draft, asked, node, records.as_deref());
    }
    let names: Vec<&str> = cordoned.iter().map(|node| node.metadata.name.as_str()).collect();
    format!("cordoned: {}", some_of(&names)).into()
}

/// The records, where they were read; without their CRD there are none.
fn records<'a>(draft: &mut Draft<'a>, asked: &Asked<'a>) -> Option<Vec<&'a Maintenance>> {
    if asked.is_dump && matches!(asked.facts.maintenances, Observation::NotAsked) {
        return None;
    }
    match draft.read(SourceId::Maintenances, &asked.facts.maintenances) {
        Read::Known(records) => Some(records),
        Read::Absent => Some(Vec::new()),
        Read::Unreadable | Read::NotAsked => None,
    }
}

fn one(draft: &mut Draft<'_>, asked: &Asked<'_>, node: &Node, records: Option<&[&Maintenance]>) {
    let name = &node.metadata.name;
    let whose = whose(draft, node, records);
    let by = match &whose {
        Whose::Other(Some(manager)) => format!("cordoned by {manager}"),
        Whose::Other(None) if node.unschedulable => "cordoned by somebody whom managedFields do not name".to_owned(),
        Whose::Other(None) => format!("cordoned by taint {} only", Node::UNSCHEDULABLE_TAINT),
        Whose::Run(run) => format!("cordoned by our run {} ({})", run.metadata.name, run.phase),
        Whose::Over(run) => format!("still cordoned by our run {}, which is over ({})", run.metadata.name, run.phase),
        Whose::NoRecord(uid) => format!("cordoned by a run of ours whose record is gone (uid {uid})"),
        Whose::Unknown => "cordoned by a run of ours that cannot be told".to_owned(),
    };
    let evidence = Evidence::new(format!("Node {name}"), "spec.unschedulable", &by, "not cordoned, or on hold");
    if let Some(hold) = held(draft, asked, node) {
        let message = format!("node {name} is {by}, and {} holds it: {}", hold.by, hold.reason);
        return draft.warn(Reason::NodeOnHold, message, evidence);
    }
    match whose {
        Whose::Run(run) => {
            let message = format!("node {name} is {by}: maint show {} tells how far it is", run.metadata.name);
            draft.warn(Reason::TargetCordonedByOther, message, evidence);
        }
        Whose::Unknown => draft.unknown(Reason::TargetCordonedByOther, format!("node {name} is {by}"), evidence),
        _ => {
            let message = format!(
                "node {name} is {by}: it takes no pods and no storage heals on it; a person says kubectl uncordon {name}, or maint hold {name} to keep it so"
            );
            draft.block(Reason::TargetCordonedByOther, message, evidence);
        }
    }
}

/// A cordon is ours if the owner annotation is there and `managedFields` name our field manager.
fn whose<'a>(draft: &mut Draft<'_>, node: &'a Node, records: Option<&[&'a Maintenance]>) -> Whose<'a> {
    let manager = node.unschedulable_manager.as_deref();
    let text = node.metadata.annotations.get(ANNOTATION_OWNER);
    let (Some(text), true) = (text, manager == Some(FIELD_MANAGER)) else { return Whose::Other(manager) };
    let field = format!("metadata.annotations[{ANNOTATION_OWNER}]");
    let owner = document::<Owner>(draft, &format!("Node {}", node.metadata.name), &field, text);
    let (Some(owner), Some(records)) = (owner, records) else { return Whose::Unknown };
    match records.iter().find(|record| record.metadata.uid == owner.maintenance) {
        Some(record) if record.in_flight() => Whose::Run(record),
        Some(record) => Whose::Over(record),
        None => Whose::NoRecord(owner.maintenance),
    }
}

/// The hold of a node that is not over.
fn held(draft: &mut Draft<'_>, asked: &Asked<'_>, node: &Node) -> Option<Hold> {
    let text = node.metadata.annotations.get(ANNOTATION_HOLD)?;
    let field = format!("metadata.annotations[{ANNOTATION_HOLD}]");
    let hold = document::<Hold>(draft, &format!("Node {}", node.metadata.name), &field, text)?;
    (!is_over(hold.until, asked.now)).then_some(hold)
}
