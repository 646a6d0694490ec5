//! What `maint doctor` looks at: not whether a node may be touched now, but whether what maint depends on is set up so
//! that it works, and what was left behind.
//!
//! A list of check families, one file each; another one is a row more. Each answers finding by finding, with what to
//! change. Pure, like the gates.

mod installation;
mod leftovers;
mod lock;
mod rights;
mod settings;

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::api::{Evidence, Reason, SourceId, Status};
use crate::config::Settings;
use crate::facts::{DaemonSet, Facts, Item, KuredPod, Listed, Maintenance, Node, Observation};

/// What a family is given.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// What is known.
    pub facts: &'a Facts,
    /// The settings.
    pub settings: &'a Settings,
    /// Now.
    pub now: Timestamp,
}

crate::api::names! {
    /// A family of checks.
    FamilyId, "check", {
        /// What maint itself may read.
        Rights = "rights",
        /// Where kured runs.
        Installation = "kured-installation",
        /// What kured was told.
        Settings = "kured-settings",
        /// kured's lock.
        Lock = "kured-lock",
        /// What was left on nodes.
        Leftovers = "leftovers",
    }
}

/// A family of checks.
pub struct Family {
    /// Its id.
    pub id: FamilyId,
    /// What it looks at, for people.
    pub doc: &'static str,
    /// What it reads.
    pub reads: &'static [SourceId],
    /// The checks; at least one answer.
    pub check: fn(&Input<'_>) -> Vec<Answer>,
}

/// All families, in the order of every output.
pub const FAMILIES: &[Family] =
    &[rights::FAMILY, installation::FAMILY, settings::FAMILY, lock::FAMILY, leftovers::FAMILY];

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// How it is.
    pub status: Status,
    /// The reason, where it is not fine and there is a runbook.
    pub reason: Option<Reason>,
    /// A sentence, without a full stop.
    pub message: String,
    /// What it was seen on.
    pub evidence: Vec<Evidence>,
    /// What to do: a flag with its value, or a command.
    pub remedy: Vec<String>,
}

impl Answer {
    fn new(status: Status, reason: Option<Reason>, message: impl Into<String>) -> Self {
        Self { status, reason, message: message.into(), evidence: Vec::new(), remedy: Vec::new() }
    }

    fn pass(message: impl Into<String>) -> Self {
        Self::new(Status::Pass, None, message)
    }

    fn not_applicable(message: impl Into<String>) -> Self {
        Self::new(Status::NotApplicable, None, message)
    }

    fn with(mut self, evidence: Evidence) -> Self {
        self.evidence.push(evidence);
        self
    }

    fn help(mut self, remedy: impl Into<String>) -> Self {
        self.remedy.push(remedy.into());
        self
    }
}

/// Everything that any family reads.
#[must_use]
pub fn sources() -> BTreeSet<SourceId> {
    FAMILIES.iter().flat_map(|family| family.reads.iter().copied()).collect()
}

/// Asks all families.
#[must_use]
pub fn examine(input: &Input<'_>) -> Vec<(&'static Family, Vec<Answer>)> {
    FAMILIES.iter().map(|family| (family, (family.check)(input))).collect()
}

/// The good items of a list; what could not be read becomes answers.
fn read<'a, T>(source: SourceId, listed: &'a Listed<T>, answers: &mut Vec<Answer>) -> Option<Vec<&'a T>> {
    let failed = |why: String| {
        Answer::new(Status::Unknown, Some(Reason::ObservationFailed), format!("{source} could not be read: {why}"))
            .with(Evidence::new(source.as_str(), "read", "no answer", "a list"))
    };
    match listed {
        Observation::Known { value, .. } => {
            let mut good = Vec::with_capacity(value.len());
            for item in value {
                match item {
                    Item::Good(one) => good.push(one),
                    Item::Malformed(bad) => answers.push(
                        Answer::new(Status::Unknown, Some(Reason::ObservationMalformed), bad.to_string())
                            .with(Evidence::new(&bad.object, &bad.path, &bad.problem, "a readable field")),
                    ),
                }
            }
            Some(good)
        }
        Observation::Failed { kind, detail, .. } => {
            answers.push(failed(format!("{kind}: {detail}")));
            None
        }
        Observation::Absent { .. } => {
            answers.push(failed("the API says that the kind does not exist, and it is built in".to_owned()));
            None
        }
        Observation::NotAsked => {
            answers.push(failed("nothing asked for it".to_owned()));
            None
        }
    }
}

/// What several families read, as far as it could be read; what could not is told by each.
struct View<'a> {
    daemon_sets: Option<Vec<&'a DaemonSet>>,
    pods: Option<Vec<&'a KuredPod>>,
    nodes: Option<Vec<&'a Node>>,
}

impl<'a> View<'a> {
    fn of(input: &Input<'a>, answers: &mut Vec<Answer>) -> Self {
        let facts = input.facts;
        Self {
            daemon_sets: read(SourceId::DaemonSets, &facts.daemon_sets, answers),
            pods: read(SourceId::KuredPods, &facts.kured_pods, answers),
            nodes: read(SourceId::Nodes, &facts.nodes, answers),
        }
    }
}

/// The records of maint. Without their CRD there are none.
fn records<'a>(input: &Input<'a>, answers: &mut Vec<Answer>) -> Vec<&'a Maintenance> {
    match &input.facts.maintenances {
        Observation::Absent { .. } => Vec::new(),
        listed => read(SourceId::Maintenances, listed, answers).unwrap_or_default(),
    }
}

/// `worker1, worker2, worker3 and 4 more`
fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 5;
    let names: Vec<&str> = names.into_iter().collect();
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN { format!("{shown} and {} more", names.len() - SHOWN) } else { shown }
}

#[cfg(test)]
mod tests;
