//! Who comes next: the nodes that wish a reboot, in the order in which runs wait for each other.

use jiff::Timestamp;
use serde::Serialize;

use super::{Input, records};
use crate::api::names::ANNOTATION_KURED_IN_PROGRESS;
use crate::api::{Phase, Trigger};
use crate::facts::{Item, Maintenance};
use crate::plan::{Place, annotated_nodes, place_of};

/// A node that would be maintained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The node.
    pub node: String,
    /// Who or what wishes it, for people; none where nothing does.
    pub wish: Option<String>,
    /// The record, where one is written down.
    pub record: Option<String>,
    /// Since when it waits.
    pub since: Option<Timestamp>,
    /// A person's wish: it waits for nobody's turn.
    pub manual: bool,
}

/// A run that is at work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InFlight {
    /// The node.
    pub node: String,
    /// The record.
    pub record: String,
    /// Its phase.
    pub phase: String,
}

impl InFlight {
    pub(super) fn of(record: &Maintenance) -> Self {
        Self { node: record.node_name.clone(), record: record.metadata.name.clone(), phase: record.phase.clone() }
    }
}

/// Who comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidates {
    /// In order. Those that wish a reboot; all nodes where none does, or where that is not known.
    pub nodes: Vec<Candidate>,
    /// Whether they wish it.
    pub wished: bool,
    /// Why it is not known who wishes a reboot.
    pub unknown: Option<String>,
    /// What is at work already.
    pub in_flight: Vec<InFlight>,
}

/// The nodes in the order in which they would be taken. `all` are the nodes that there are.
#[must_use]
pub fn candidates(input: &Input<'_>, all: &[String]) -> Candidates {
    let (waiting, in_flight, unknown) = match records(&input.facts.maintenances, input.now) {
        Err(why) => (Vec::new(), Vec::new(), Some(why)),
        Ok(items) => {
            let good = || items.iter().filter_map(|item| if let Item::Good(one) = item { Some(one) } else { None });
            let bad = items.iter().find_map(|item| if let Item::Malformed(bad) = item { Some(bad) } else { None });
            let waiting = good().filter(|one| one.phase == Phase::Pending.as_str()).collect();
            let in_flight = good().filter(|one| one.in_flight()).map(InFlight::of).collect();
            (waiting, in_flight, bad.map(|bad| format!("{} could not be understood, and may come first", bad.object)))
        }
    };
    let mut nodes: Vec<Candidate> = waiting.into_iter().map(written_down).collect();
    nodes.extend(not_written_down(input, &nodes, &in_flight));
    let wished = !nodes.is_empty();
    if !wished {
        let free = |name: &&String| !in_flight.iter().any(|run| run.node == **name);
        nodes = all.iter().filter(free).map(|name| unwished(name)).collect();
    }
    nodes.sort_by(|a, b| place(input, a).cmp(&place(input, b)));
    Candidates { nodes, wished, unknown, in_flight }
}

fn written_down(record: &Maintenance) -> Candidate {
    Candidate {
        node: record.node_name.clone(),
        wish: Some(format!("{}, {}", record.metadata.name, record.trigger)),
        record: Some(record.metadata.name.clone()),
        since: record.created,
        manual: record.trigger == Trigger::Manual.as_str(),
    }
}

/// Wishes that are seen on nodes and have no record yet: it is written a moment later, and is the youngest then.
fn not_written_down(input: &Input<'_>, known: &[Candidate], in_flight: &[InFlight]) -> Vec<Candidate> {
    let annotated = annotated_nodes(input.facts);
    let known = |name: &str| known.iter().any(|one| one.node == name) || in_flight.iter().any(|run| run.node == name);
    let wish = |node: &crate::facts::Node| {
        let name = node.metadata.name.as_str();
        let by = if annotated.contains(name) {
            "annotated, no record yet"
        } else if node.metadata.annotations.contains_key(ANNOTATION_KURED_IN_PROGRESS) {
            "kured's annotation, no record yet"
        } else {
            return None;
        };
        (!known(name)).then(|| Candidate { wish: Some(by.to_owned()), ..unwished(name) })
    };
    input.facts.nodes.good().filter_map(wish).collect()
}

fn unwished(name: &str) -> Candidate {
    Candidate { node: name.to_owned(), wish: None, record: None, since: None, manual: false }
}

/// A person's wishes first, since they wait for nobody; the rest as runs wait for each other.
fn place<'a>(input: &Input<'_>, one: &'a Candidate) -> (bool, Place<'a>) {
    let name = one.record.as_ref().unwrap_or(&one.node);
    // Only a wish without a record is as young as now; a record without an age is the oldest, as for a run.
    let since = if one.record.is_some() { one.since } else { Some(input.now) };
    (!one.manual, place_of(&one.node, since, name, input.leader))
}
