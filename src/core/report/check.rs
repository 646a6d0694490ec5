//! The answer of `maint check`.

use jiff::Timestamp;
use serde::Serialize;

use crate::api::{Evidence, Finding, GateId, Moment, Reason, SourceId, Status, Strategy, Trigger, names};
use crate::gates::{GATES, Verdict};

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// Name of the scope.
    pub scope: String,
    /// What follows for pods.
    pub strategy: Strategy,
    /// Why this strategy, in a few words.
    pub strategy_reason: String,
    /// When in a run.
    pub moment: Moment,
    /// Who asks.
    pub trigger: Trigger,
}

/// Where the facts came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// `dump` or `live`.
    pub kind: &'static str,
    /// Path of the dump, or the kubeconfig context.
    pub name: String,
    /// Where the time came from that ages are counted to.
    pub clock: Clock,
}

crate::api::names! {
    /// Where `now` comes from.
    Clock, "clock", {
        /// This machine's clock.
        Machine = "machine",
        /// `--now`, or `--at`.
        Given = "given",
        /// The newest `renewTime` of the Leases in the dump.
        NewestLease = "newest-lease",
    }
}

impl Clock {
    /// For people.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Machine => "clock of this machine",
            Self::Given => "as given by --now",
            Self::NewestLease => "newest lease renewal in the dump",
        }
    }
}

/// The answer of `maint check`: additive within `maint.dev/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    /// [`names::OUTPUT_API_VERSION`]
    pub api_version: &'static str,
    /// `CheckReport`
    pub kind: &'static str,
    /// When this document was made.
    pub generated_at: Timestamp,
    /// The instant that was judged: ages are counted to it.
    pub now: Timestamp,
    /// Where the facts came from.
    pub source: Origin,
    /// What was asked.
    #[serde(flatten)]
    pub question: Question,
    /// The worst answer over all nodes.
    pub verdict: Verdict,
    /// The nodes, in the order of the API's list.
    pub nodes: Vec<NodeReport>,
    /// What this input could not answer. It does not count for the verdict.
    pub not_asked: Vec<NotAsked>,
}

/// The answer for one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    /// Its name.
    pub name: String,
    /// Blocks win over unknowns.
    pub verdict: Verdict,
    /// What each gate answered, in table order.
    pub findings: Vec<FindingReport>,
}

/// One finding as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FindingReport {
    /// The gate.
    pub id: GateId,
    /// How it answered.
    pub status: Status,
    /// The one reason.
    pub reason: Reason,
    /// A sentence.
    pub message: String,
    /// What it was seen on.
    pub evidence: Vec<Evidence>,
    /// How many pieces of evidence were left out.
    pub evidence_left_out: usize,
    /// Since when it is so, where the API tells.
    pub since: Option<Timestamp>,
    /// Oldest observation it rests on.
    pub observed_at: Option<Timestamp>,
    /// The command that explains the reason; none for what is fine.
    pub hint: Option<String>,
}

/// One source that this input could not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotAsked {
    /// The source.
    pub source: SourceId,
    /// What it would have told.
    pub what: &'static str,
    /// The gates that read it.
    pub gates: Vec<GateId>,
}

impl From<Finding> for FindingReport {
    fn from(finding: Finding) -> Self {
        // Without `..`, so that a new field cannot be forgotten.
        let Finding { gate, status, reason, message, evidence, evidence_left_out, observed_at, since } = finding;
        let explained = matches!(status, Status::Block | Status::Unknown | Status::Warn);
        Self {
            id: gate,
            status,
            reason,
            message,
            evidence,
            evidence_left_out,
            since,
            observed_at,
            hint: explained.then(|| format!("maint explain {reason}")),
        }
    }
}

impl CheckReport {
    /// Builds the report from what the gates answered for each node.
    #[must_use]
    pub fn new(
        generated_at: Timestamp,
        now: Timestamp,
        source: Origin,
        question: Question,
        answers: Vec<(String, Vec<Finding>)>,
        not_asked: &[SourceId],
    ) -> Self {
        let nodes: Vec<NodeReport> = answers
            .into_iter()
            .map(|(name, findings)| NodeReport {
                name,
                verdict: Verdict::of(&findings),
                findings: findings.into_iter().map(FindingReport::from).collect(),
            })
            .collect();
        // No node at all proves nothing.
        let verdict = nodes.iter().map(|node| node.verdict).max().unwrap_or(Verdict::Unknown);
        let moment = question.moment;
        Self {
            api_version: names::OUTPUT_API_VERSION,
            kind: "CheckReport",
            generated_at,
            now,
            source,
            question,
            verdict,
            nodes,
            not_asked: not_asked.iter().filter_map(|source| NotAsked::of(*source, moment)).collect(),
        }
    }
}

impl NotAsked {
    /// The entry of a source, unless no gate of the moment reads it.
    pub(super) fn of(source: SourceId, moment: Moment) -> Option<Self> {
        let what = match source {
            SourceId::ApiServers => "/readyz of each API server, at its own address",
            SourceId::Alerts => "the alerts that fire, by Alertmanager or Prometheus",
            SourceId::Matrix => "does every API server reach every kubelet by a fresh connection",
            _ => "a list of the API",
        };
        let gates: Vec<GateId> = GATES
            .iter()
            .filter(|gate| gate.moments.contains(&moment) && gate.reads.contains(&source))
            .map(|gate| gate.id)
            .collect();
        (!gates.is_empty()).then_some(Self { source, what, gates })
    }
}
