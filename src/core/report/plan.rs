//! The answer of `maint plan`: what would be done with a node, or which node comes next.

mod text;

use jiff::Timestamp;
use serde::Serialize;

use super::check::{FindingReport, NotAsked, Origin};
use crate::api::{Finding, GateId, Moment, Reason, SourceId, Status, Strategy, Trigger, names};
use crate::drain::{self, count};
use crate::gates::Verdict;
use crate::preview::{Acts, Begins, Candidate, Candidates, Drain, InFlight, Preview, Step};

pub use text::{order, plan};

/// What both answers say of themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanHead {
    /// [`names::OUTPUT_API_VERSION`]
    pub api_version: &'static str,
    /// `PlanReport` or `PlanOrderReport`
    pub kind: &'static str,
    /// When this document was made.
    pub generated_at: Timestamp,
    /// The instant that the cluster was judged at.
    pub now: Timestamp,
    /// The instant that windows, halt and holds were judged at, if another one.
    pub at: Option<Timestamp>,
    /// Where the facts came from.
    pub source: Origin,
    /// What this input could not answer. It does not count for the verdict.
    pub not_asked: Vec<NotAsked>,
}

impl PlanHead {
    /// What both answers say of themselves.
    #[must_use]
    pub fn new(
        generated_at: Timestamp,
        now: Timestamp,
        at: Option<Timestamp>,
        source: Origin,
        not_asked: &[SourceId],
    ) -> Self {
        Self {
            api_version: names::OUTPUT_API_VERSION,
            kind: "",
            generated_at,
            now,
            at,
            source,
            not_asked: not_asked.iter().filter_map(|source| NotAsked::of(*source, Moment::Start)).collect(),
        }
    }
}

/// What would be done with one node: additive within `maint.dev/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanReport {
    /// When, where from.
    #[serde(flatten)]
    pub head: PlanHead,
    /// The node.
    pub node: String,
    /// May it begin, and would it end?
    pub verdict: Verdict,
    /// The verdict in words.
    pub message: String,
    /// Name of the scope.
    pub scope: String,
    /// What follows for pods.
    pub strategy: Strategy,
    /// Why this strategy, in a few words.
    pub strategy_reason: String,
    /// Who makes the node go down.
    pub acts: Acts,
    /// Who asks.
    pub trigger: Trigger,
    /// The record that waits.
    pub wish: Option<String>,
    /// A run of the node that is at work.
    pub in_flight: Option<InFlight>,
    /// What the gates say.
    pub gates: GatesReport,
    /// When it would begin.
    pub begins: Begins,
    /// The drain; none with strategy cordon-only.
    pub drain: Option<Drain>,
    /// What could not be read, and what is not said for want of it.
    pub unread: Vec<String>,
    /// What would be done, in this order.
    pub steps: Vec<Step>,
    /// Seconds that a whole run is expected to take, by the configuration.
    pub expected_duration_seconds: i64,
    #[serde(skip)]
    status: Status,
}

/// What the gates say, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GatesReport {
    /// Of the gates alone.
    pub verdict: Verdict,
    /// How many pass or do not apply.
    pub fine: usize,
    /// How many warn.
    pub warnings: usize,
    /// Those that block or could not be judged.
    pub stopping: Vec<FindingReport>,
    /// The command that shows all of them.
    pub command: String,
}

impl PlanReport {
    /// Builds the report. `command` shows what every gate says.
    #[must_use]
    pub fn new(head: PlanHead, preview: Preview, command: String, expected_duration_seconds: i64) -> Self {
        let (status, message) = headline(&preview);
        // Without `..`, so that a new field cannot be forgotten.
        let Preview {
            node,
            verdict,
            scope,
            strategy,
            strategy_reason,
            acts,
            trigger,
            wish,
            in_flight,
            findings,
            drain,
            unread,
            begins,
            steps,
        } = preview;
        let warnings = findings.iter().filter(|finding| finding.status == Status::Warn).count();
        let gates = GatesReport {
            verdict: Verdict::of(&findings),
            fine: findings.iter().filter(|finding| !finding.stops()).count() - warnings,
            warnings,
            stopping: findings.into_iter().filter(Finding::stops).map(FindingReport::from).collect(),
            command,
        };
        Self {
            head: PlanHead { kind: "PlanReport", ..head },
            node,
            verdict,
            message,
            scope: scope.name,
            strategy,
            strategy_reason,
            acts,
            trigger,
            wish,
            in_flight,
            gates,
            begins,
            drain,
            unread,
            steps,
            expected_duration_seconds,
            status,
        }
    }
}

/// Which node comes next: additive within `maint.dev/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanOrderReport {
    /// When, where from.
    #[serde(flatten)]
    pub head: PlanHead,
    /// The worst answer over all nodes.
    pub verdict: Verdict,
    /// Whether the nodes wish a reboot; else none does, and these are all that there are.
    pub wished: bool,
    /// Why it is not known who wishes a reboot.
    pub unknown: Option<String>,
    /// The node that the leader's pod runs on, which comes last; none where that is not known.
    pub leader: Option<String>,
    /// What is at work already.
    pub in_flight: Vec<InFlight>,
    /// The first one that nothing stops.
    pub next: Option<String>,
    /// In the order in which they would be taken.
    pub nodes: Vec<PlanOrderEntry>,
    /// How many nodes are begun with in one window.
    pub max_nodes_per_window: u32,
    /// The arguments that ask the same question of one node, each with a blank before it.
    pub arguments: String,
}

/// One node of the order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanOrderEntry {
    /// The node.
    pub node: String,
    /// May it begin, and would it end?
    pub verdict: Verdict,
    /// The verdict in words.
    pub message: String,
    /// Who or what wishes it.
    pub wish: Option<String>,
    /// Since when.
    pub since: Option<Timestamp>,
    /// Why it is maintained.
    pub scope: String,
    /// What follows for pods.
    pub strategy: Strategy,
    /// Its drain in short; none with strategy cordon-only.
    pub drain: Option<DrainInShort>,
    #[serde(skip)]
    status: Status,
}

/// A drain in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainInShort {
    /// How many pods go.
    pub pods: usize,
    /// In how many waves.
    pub waves: usize,
    /// How many never go.
    pub never: usize,
    /// Seconds that it will take, where nothing blocks it.
    pub estimate_seconds: Option<i64>,
    /// In words.
    pub message: String,
}

impl PlanOrderReport {
    /// Builds the report from the candidates and what would be done with each of them, in the same order.
    #[must_use]
    pub fn new(
        head: PlanHead,
        candidates: Candidates,
        previews: Vec<Preview>,
        leader: Option<String>,
        max_nodes_per_window: u32,
        arguments: String,
    ) -> Self {
        let Candidates { nodes, wished, unknown, in_flight } = candidates;
        let nodes: Vec<PlanOrderEntry> =
            nodes.into_iter().zip(previews).map(|(candidate, preview)| entry(candidate, preview)).collect();
        // No node at all proves nothing, and who wishes a reboot may be somebody else.
        let known = if unknown.is_some() || nodes.is_empty() { Verdict::Unknown } else { Verdict::Clear };
        Self {
            head: PlanHead { kind: "PlanOrderReport", ..head },
            verdict: nodes.iter().map(|node| node.verdict).fold(known, Verdict::max),
            wished,
            leader,
            in_flight,
            next: nodes.iter().find(|node| node.verdict == Verdict::Clear).map(|node| node.node.clone()),
            unknown,
            nodes,
            max_nodes_per_window,
            arguments,
        }
    }
}

fn entry(candidate: Candidate, preview: Preview) -> PlanOrderEntry {
    let (status, message) = headline(&preview);
    let drain = preview.drain.as_ref().map(|drain| match drain {
        Drain::Planned(plan) => DrainInShort {
            pods: plan.planned(),
            waves: plan.waves.len(),
            never: plan.never.len(),
            estimate_seconds: plan.estimate_seconds,
            message: plan.verdict_line(),
        },
        Drain::Unknown { unknown } => {
            DrainInShort { pods: 0, waves: 0, never: 0, estimate_seconds: None, message: unknown.clone() }
        }
    });
    PlanOrderEntry {
        node: candidate.node,
        verdict: preview.verdict,
        message,
        wish: candidate.wish,
        since: candidate.since,
        scope: preview.scope.name,
        strategy: preview.strategy,
        drain,
        status,
    }
}

/// What comes of it, without the node's name, and its colour.
fn headline(preview: &Preview) -> (Status, String) {
    let of = |status: Status| preview.findings.iter().filter(move |finding| finding.status == status);
    // What the drain says of its pods is not said once more by its gates.
    let told = |gate: GateId| matches!(gate, GateId::DisruptionBudgets | GateId::Workloads);
    let planned = match &preview.drain {
        Some(Drain::Planned(plan)) => Some(plan),
        _ => None,
    };
    let never = planned.map_or(0, |plan| plan.never.len());
    let (status, mut line) = if let Some(run) = &preview.in_flight {
        (Status::Block, format!("IN FLIGHT: {} is {}", run.record, run.phase))
    } else if never > 0 {
        let verb = if never == 1 { "goes" } else { "go" };
        let others: Vec<String> = of(Status::Block)
            .filter(|finding| !told(finding.gate))
            .map(|finding| format!("{} ({})", finding.gate, finding.reason))
            .collect();
        let also = if others.is_empty() { String::new() } else { format!("; also blocked by {}", others.join(", ")) };
        (Status::Block, format!("BLOCKED: it cannot be drained, {} never {verb}{also}", count(never, "pod")))
    } else if let Some(first) = of(Status::Block).next() {
        let (others, unknown) = (of(Status::Block).count() - 1, of(Status::Unknown).count());
        let more = if others > 0 { format!(", {others} more") } else { String::new() };
        let unknown = if unknown > 0 { format!(", {unknown} unknown") } else { String::new() };
        (Status::Block, format!("BLOCKED by {} ({}){more}{unknown}", first.gate, first.reason))
    } else if let Some(first) = of(Status::Unknown).next() {
        let others = of(Status::Unknown).count() - 1;
        let more = if others > 0 { format!(", {others} more") } else { String::new() };
        (Status::Unknown, format!("UNKNOWN because of {} ({}){more}", first.gate, first.reason))
    } else if preview.verdict == Verdict::Unknown {
        (Status::Unknown, format!("UNKNOWN because of its pods ({})", Reason::ObservationFailed))
    } else {
        let held = planned.map_or(0, |plan| plan.budgets_that_are(drain::Verdict::Now).count());
        let waits = match held {
            0 => String::new(),
            1 => ", but 1 budget allows no eviction now".to_owned(),
            _ => format!(", but {held} budgets allow no eviction now"),
        };
        (if held > 0 { Status::Warn } else { Status::Pass }, format!("CLEAR for {}{waits}", preview.scope.name))
    };
    match of(Status::Warn).count() {
        0 => {}
        warnings => line = format!("{line}, {}", count(warnings, "warning")),
    }
    (status, line)
}
