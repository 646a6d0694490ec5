//! The post-check: is the cluster whole after power-on, a power cut, an upgrade?
//!
//! It asks every gate of moment `settle`, about no node in particular, and what is no gate: the DaemonSets, cordons with
//! their owner, whether clocks agree, which boots nobody has proven yet. Pure; it changes nothing and repairs nothing.
//!
//! Two gates of that moment are left out: `control` (a halt is what a power-off begins with, and no fault) and `kured`
//! (whether kured is set up right is `maint doctor`'s question).

mod cordons;
mod own;
#[cfg(test)]
mod tests;
mod wait;

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::api::{Evidence, Finding, GateId, Moment, Reason, SourceId, Status, Strategy, Trigger};
use crate::config::{Scope, Settings};
use crate::facts::{Facts, FailureKind, Observation};
use crate::gates::{Draft, GATES, GateInput, GateSpec, Verdict, replenishment_ends};

pub use wait::{Next, Wait};

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// What is known.
    pub facts: &'a Facts,
    /// The settings.
    pub settings: &'a Settings,
    /// The nodes that must be there and are judged; all if there is none. Control-plane nodes are judged always.
    pub nodes: &'a [String],
    /// The facts are those of a dump: what only a live cluster can answer is not held against it.
    pub is_dump: bool,
    /// Now.
    pub now: Timestamp,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Id of the gate, or of what is no gate.
    pub id: &'static str,
    /// How it is.
    pub status: Status,
    /// The one reason.
    pub reason: Reason,
    /// A sentence, without full stop.
    pub message: String,
    /// What it was seen on.
    pub evidence: Vec<Evidence>,
    /// How many pieces of evidence were left out.
    pub evidence_left_out: usize,
    /// Since when it is so, where the API tells.
    pub since: Option<Timestamp>,
    /// Until when it waits for something that comes by itself, such as Longhorn for a replica to come back.
    pub until: Option<Timestamp>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostCheck {
    /// Blocks win over unknowns.
    pub verdict: Verdict,
    /// What was looked at, worst first; among equals in the order of the table.
    pub lines: Vec<Line>,
    /// What this input could not answer: it does not count for the verdict.
    pub not_asked: Vec<SourceId>,
}

impl PostCheck {
    /// The API did not answer this look, so that nothing was judged: nodes could not be read for want of a connection.
    #[must_use]
    pub fn nobody_answers(facts: &Facts) -> Option<String> {
        match &facts.nodes {
            Observation::Failed { kind: kind @ (FailureKind::Transport | FailureKind::Timeout), detail, .. } => {
                Some(format!("{kind}: {detail}"))
            }
            _ => None,
        }
    }

    /// What stops it, in a line: `2 block, 1 unknown: nodes-ready (NodeNotReady): ...`. None where nothing does.
    #[must_use]
    pub fn in_short(&self) -> Option<String> {
        let first = self.lines.iter().find(|line| matches!(line.status, Status::Block | Status::Unknown))?;
        let count = |status: Status| self.lines.iter().filter(|line| line.status == status).count();
        let counts: Vec<String> = [(count(Status::Block), "block"), (count(Status::Unknown), "unknown")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        Some(format!("{}: {} ({}): {}", counts.join(", "), first.id, first.reason, first.message))
    }
}

/// What is no gate: its id, what it reads, the question.
struct Part {
    id: &'static str,
    reads: &'static [SourceId],
    ask: for<'a> fn(&mut Draft<'a>, &Asked<'a>, &'a GateInput<'a>) -> Answer,
}

/// The sentence of what is fine, and evidence of it.
struct Answer {
    pass: String,
    proof: Vec<Evidence>,
}

impl From<String> for Answer {
    fn from(pass: String) -> Self {
        Self { pass, proof: Vec::new() }
    }
}

/// What is no gate, in the order of the output after the gates.
const PARTS: &[Part] = &[
    Part { id: "nodes", reads: &[SourceId::Nodes], ask: own::nodes },
    Part { id: "daemon-sets", reads: &[SourceId::DaemonSets, SourceId::Leases], ask: own::daemon_sets },
    Part { id: "cordons", reads: &[SourceId::Nodes, SourceId::Maintenances], ask: cordons::cordons },
    Part { id: "clocks", reads: &[SourceId::Nodes, SourceId::Leases], ask: own::clocks },
    Part { id: "boots", reads: &[SourceId::Nodes], ask: own::boots },
];

/// Gates of moment `settle` that say nothing of whether the cluster is whole.
const LEFT_OUT: &[GateId] = &[GateId::Control, GateId::Kured];

/// The target of gates that ask about no node in particular. No Node can have this name.
const NO_NODE: &str = "no node";

fn gates() -> impl Iterator<Item = &'static GateSpec> {
    GATES.iter().filter(|gate| gate.moments.contains(&Moment::Settle) && !LEFT_OUT.contains(&gate.id))
}

/// Ids of everything that is looked at, in the order of the table.
#[must_use]
pub fn ids() -> Vec<&'static str> {
    gates().map(|gate| gate.id.as_str()).chain(PARTS.iter().map(|part| part.id)).collect()
}

/// What must be read.
#[must_use]
pub fn sources(settings: &Settings) -> BTreeSet<SourceId> {
    let asked = gates().filter(|gate| gate.policy(settings) != crate::api::Policy::Off);
    // Which API servers there should be is read from the ConfigMaps too.
    let of_gates = asked.flat_map(|gate| gate.reads.iter().copied()).chain([SourceId::ConfigMaps]);
    of_gates.chain(PARTS.iter().flat_map(|part| part.reads.iter().copied())).collect()
}

/// Looks at everything.
#[must_use]
pub fn examine(asked: &Asked<'_>) -> PostCheck {
    let settings = about(asked);
    let scope = Scope::BUILT_IN.iter().find(|(name, ..)| *name == "power-off").map_or_else(
        || Scope { name: "power-off".to_owned(), strategy: Strategy::Drain, reboots: true },
        |(name, strategy, reboots)| Scope { name: (*name).to_owned(), strategy: *strategy, reboots: *reboots },
    );
    let input = GateInput {
        facts: asked.facts,
        settings: &settings,
        target: NO_NODE,
        scope: &scope,
        strategy: scope.strategy,
        moment: Moment::Settle,
        trigger: Trigger::Manual,
        run: None,
        now: asked.now,
    };
    let mut lines: Vec<Line> = gates().filter_map(|gate| of_gate(gate, asked, &input)).collect();
    lines.extend(PARTS.iter().map(|part| of_part(part, asked, &input)));
    let verdict = worst(&lines);
    // A stable sort: among equals the order of the table.
    lines.sort_by_key(|line| std::cmp::Reverse(line.status));
    PostCheck { verdict, lines, not_asked: not_asked(asked) }
}

/// The settings, with the workers that nobody asked for left out like those that are always left out.
fn about(asked: &Asked<'_>) -> Settings {
    let mut settings = asked.settings.clone();
    if !asked.nodes.is_empty() {
        let names = asked.facts.nodes.good().map(|node| &node.metadata.name);
        let others = names.filter(|name| !asked.nodes.contains(name)).cloned();
        settings.limits.ignore_nodes.extend(others.collect::<Vec<_>>());
    }
    settings
}

fn worst(lines: &[Line]) -> Verdict {
    let has = |status: Status| lines.iter().any(|line| line.status == status);
    match (has(Status::Block), has(Status::Unknown)) {
        (true, _) => Verdict::Blocked,
        (false, true) => Verdict::Unknown,
        (false, false) => Verdict::Clear,
    }
}

/// What this input could not answer.
fn not_asked(asked: &Asked<'_>) -> Vec<SourceId> {
    let facts = asked.facts;
    let live = [
        (SourceId::ApiServers, matches!(facts.api_servers, Observation::NotAsked)),
        (SourceId::Matrix, matches!(facts.matrix, Observation::NotAsked)),
    ];
    live.into_iter().filter(|(_, missing)| asked.is_dump && *missing).map(|(source, _)| source).collect()
}

/// The answer of one gate; none where the configuration switched it off. A dump is asked as before any run, where what
/// only a live cluster can answer is nobody's fault.
fn of_gate(gate: &GateSpec, asked: &Asked<'_>, input: &GateInput<'_>) -> Option<Line> {
    let live_only = |source: &SourceId| matches!(source, SourceId::ApiServers | SourceId::Matrix);
    let as_before_a_run = asked.is_dump && gate.reads.iter().any(live_only) && gate.moments.contains(&Moment::Start);
    let moment = if as_before_a_run { Moment::Start } else { Moment::Settle };
    let finding = gate.ask(&GateInput { moment, ..*input })?;
    let until = (gate.id == GateId::LonghornVolumes && finding.stops()).then(|| replenishment_ends(input)).flatten();
    Some(Line { until, ..line(gate.id.as_str(), finding) })
}

fn of_part(part: &Part, asked: &Asked<'_>, input: &GateInput<'_>) -> Line {
    // The gate only names the draft: what is no gate has no id of its own there.
    let mut draft = Draft::new(GateId::NodesReady, input);
    let Answer { pass, proof } = (part.ask)(&mut draft, asked, input);
    let mut found = line(part.id, draft.finish(pass));
    if found.status == Status::Pass {
        found.evidence_left_out = proof.len().saturating_sub(Finding::MAX_EVIDENCE);
        found.evidence = proof.into_iter().take(Finding::MAX_EVIDENCE).collect();
    }
    found
}

fn line(id: &'static str, finding: Finding) -> Line {
    // Without `..`, so that a new field cannot be forgotten.
    let Finding { gate: _, status, reason, message, evidence, evidence_left_out, observed_at: _, since } = finding;
    Line { id, status, reason, message, evidence, evidence_left_out, since, until: None }
}
