//! A finding in the making: reads facts without forgetting what could not be read, collects problems, keeps the worst.

use jiff::Timestamp;

use super::GateInput;
use crate::api::{Evidence, Finding, GateId, Reason, SourceId, Status};
use crate::facts::{Item, Listed, Observation, spec_of};
use crate::planted::{self, Bug};

/// What a source says to a gate.
#[derive(Debug)]
pub enum Read<T> {
    /// It was read.
    Known(T),
    /// The kind does not exist here.
    Absent,
    /// It could not be read or is too old. The draft already holds the unknown.
    Unreadable,
    /// This input cannot answer.
    NotAsked,
}

/// One thing that is wrong.
#[derive(Debug, Clone)]
struct Problem {
    status: Status,
    reason: Reason,
    message: String,
    since: Option<Timestamp>,
    evidence: Vec<Evidence>,
}

/// A finding in the making.
#[derive(Debug)]
pub struct Draft<'a> {
    input: &'a GateInput<'a>,
    gate: GateId,
    problems: Vec<Problem>,
    observed_at: Option<Timestamp>,
}

impl<'a> Draft<'a> {
    /// An empty draft: nothing wrong so far.
    #[must_use]
    pub const fn new(gate: GateId, input: &'a GateInput<'a>) -> Self {
        Self { input, gate, problems: Vec::new(), observed_at: None }
    }

    /// Reads a list. Items that could not be decoded become unknowns of the finding; the good ones are returned.
    pub fn read<T>(&mut self, source: SourceId, listed: &'a Listed<T>) -> Read<Vec<&'a T>> {
        match self.observe(source, listed) {
            Read::Known(items) => {
                let mut good = Vec::with_capacity(items.len());
                for item in items {
                    match item {
                        Item::Good(value) => good.push(value),
                        Item::Malformed(malformed) => self.unknown(
                            Reason::ObservationMalformed,
                            format!("{malformed}"),
                            Evidence::new(
                                &malformed.object,
                                &malformed.path,
                                malformed.problem.strip_prefix("is ").unwrap_or(&malformed.problem),
                                "a readable field",
                            ),
                        ),
                    }
                }
                Read::Known(good)
            }
            Read::Absent => Read::Absent,
            Read::Unreadable => Read::Unreadable,
            Read::NotAsked => Read::NotAsked,
        }
    }

    /// Reads anything observed. Failed and stale become unknowns of the finding.
    pub fn observe<T>(&mut self, source: SourceId, observation: &'a Observation<T>) -> Read<&'a T> {
        if let Some(at) = observation.at() {
            self.observed_at = Some(self.observed_at.map_or(at, |known| known.min(at)));
            let limit = spec_of(source).map_or(DEFAULT_MAX_AGE_SECONDS, |spec| spec.max_age_seconds);
            let age = self.input.now.duration_since(at).as_secs();
            if age > limit && !matches!(observation, Observation::Failed { .. }) {
                self.unknown(
                    Reason::ObservationStale,
                    format!("what is known of {source} is {age} s old, allowed are {limit} s"),
                    Evidence::new(source.as_str(), "age", format!("{age} s"), format!("<= {limit} s")),
                );
                return Read::Unreadable;
            }
        }
        match observation {
            Observation::NotAsked => Read::NotAsked,
            Observation::Absent { .. } => Read::Absent,
            Observation::Failed { .. } if planted::is(Bug::FailedIsAbsent) => Read::Absent,
            Observation::Known { value, .. } => Read::Known(value),
            Observation::Failed { kind, detail, .. } => {
                self.unknown(
                    Reason::ObservationFailed,
                    format!("{source} could not be read ({kind}): {detail}"),
                    Evidence::new(source.as_str(), "read", kind.as_str(), "an answer"),
                );
                Read::Unreadable
            }
        }
    }

    /// A block.
    pub fn block(&mut self, reason: Reason, message: impl Into<String>, evidence: Evidence) {
        self.add(Status::Block, reason, message.into(), None, vec![evidence]);
    }

    /// An unknown.
    pub fn unknown(&mut self, reason: Reason, message: impl Into<String>, evidence: Evidence) {
        self.add(Status::Unknown, reason, message.into(), None, vec![evidence]);
    }

    /// A warning.
    pub fn warn(&mut self, reason: Reason, message: impl Into<String>, evidence: Evidence) {
        self.add(Status::Warn, reason, message.into(), None, vec![evidence]);
    }

    /// Any of them, with several pieces of evidence and a time since when.
    pub fn add(
        &mut self,
        status: Status,
        reason: Reason,
        message: String,
        since: Option<Timestamp>,
        evidence: Vec<Evidence>,
    ) {
        self.problems.push(Problem { status, reason, message, since, evidence });
    }

    /// Whether something blocks or is unknown so far.
    #[must_use]
    pub fn stops(&self) -> bool {
        self.problems.iter().any(|problem| matches!(problem.status, Status::Block | Status::Unknown))
    }

    /// The answer: the worst problem (the first of equals) with all evidence, or a pass with this sentence.
    #[must_use]
    pub fn finish(self, pass: impl Into<String>) -> Finding {
        self.end(Status::Pass, Reason::Passed, pass.into())
    }

    /// The gate does not apply, unless a problem was found on the way.
    #[must_use]
    pub fn not_applicable(self, reason: Reason, message: impl Into<String>) -> Finding {
        self.end(Status::NotApplicable, reason, message.into())
    }

    fn end(mut self, status: Status, reason: Reason, message: String) -> Finding {
        // A stable sort: what was found first among equals stays first.
        self.problems.sort_by_key(|problem| std::cmp::Reverse(problem.status));
        let (status, reason, message, since) = match self.problems.split_first() {
            None => (status, reason, message, None),
            Some((worst, rest)) => {
                (worst.status, worst.reason, format!("{}{}", worst.message, more(worst.reason, rest)), worst.since)
            }
        };
        let mut evidence: Vec<Evidence> = self.problems.into_iter().flat_map(|problem| problem.evidence).collect();
        let evidence_left_out = evidence.len().saturating_sub(Finding::MAX_EVIDENCE);
        evidence.truncate(Finding::MAX_EVIDENCE);
        Finding {
            gate: self.gate,
            status,
            reason,
            message,
            evidence,
            evidence_left_out,
            observed_at: self.observed_at,
            since,
        }
    }
}

/// How many problems more there are, and the reasons among them that the sentence before does not have.
fn more(told: Reason, rest: &[Problem]) -> String {
    if rest.is_empty() {
        return String::new();
    }
    let mut others: Vec<(Reason, usize)> = Vec::new();
    for problem in rest.iter().filter(|problem| problem.reason != told) {
        match others.iter_mut().find(|(reason, _)| *reason == problem.reason) {
            Some((_, count)) => *count += 1,
            None => others.push((problem.reason, 1)),
        }
    }
    let named = |(reason, count): &(Reason, usize)| match count {
        1 => reason.to_string(),
        _ => format!("{count} {reason}"),
    };
    let names: Vec<String> = others.iter().map(named).collect();
    let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    format!("; and {} more{names}", rest.len())
}

/// What a finding says up to the count of what else is wrong; which reasons those have is shown at the draft.
#[cfg(test)]
pub(crate) fn sentence(finding: &Finding) -> &str {
    let counted = finding.message.rfind("; and ").map_or(0, |at| at + "; and ".len());
    let names = finding.message[counted..].find(" more (").map(|at| counted + at + " more".len());
    &finding.message[..names.unwrap_or(finding.message.len())]
}

/// For what is probed rather than listed, in seconds.
const DEFAULT_MAX_AGE_SECONDS: i64 = 60;

#[cfg(test)]
mod tests {
    use super::super::testing::Case;
    use super::*;
    use crate::facts::{FailureKind, Malformed};

    #[test]
    fn the_worst_problem_speaks_and_the_others_are_counted() {
        let case = Case::default();
        let input = case.input();
        let mut draft = Draft::new(GateId::Control, &input);
        let evidence = || Evidence::new("Node a", "f", "v", "w");
        draft.warn(Reason::PostCheckMissing, "a warning", evidence());
        draft.unknown(Reason::ObservationFailed, "an unknown", evidence());
        draft.block(Reason::Halted, "a block", evidence());
        let finding = draft.finish("fine");
        assert_eq!((finding.status, finding.reason), (Status::Block, Reason::Halted));
        assert_eq!(finding.message, "a block; and 2 more (ObservationFailed, PostCheckMissing)");
        assert_eq!(finding.evidence.len(), 3);
    }

    #[test]
    fn what_is_only_counted_is_named_by_its_reason() {
        let rows: [(&[Reason], &str); 4] = [
            (&[Reason::Halted], "0"),
            (&[Reason::Halted, Reason::Halted], "0; and 1 more"),
            (&[Reason::Halted, Reason::NodeOnHold, Reason::Halted], "0; and 2 more (NodeOnHold)"),
            (
                &[Reason::Halted, Reason::NodeOnHold, Reason::ObserveMode, Reason::NodeOnHold],
                "0; and 3 more (2 NodeOnHold, ObserveMode)",
            ),
        ];
        let case = Case::default();
        let input = case.input();
        for (reasons, wanted) in rows {
            let mut draft = Draft::new(GateId::Control, &input);
            for (index, reason) in reasons.iter().enumerate() {
                draft.block(*reason, index.to_string(), Evidence::new("Node a", "f", "v", "w"));
            }
            assert_eq!(draft.finish("fine").message, wanted, "{reasons:?}");
        }
    }

    #[test]
    fn a_bad_item_does_not_hide_the_good_ones_and_is_never_fine() {
        let case = Case::default();
        let input = case.input();
        let bad = Malformed { object: "Node b".into(), path: "spec".into(), problem: "is missing".into() };
        let listed: Listed<u8> = Observation::Known { value: vec![Item::Good(1), Item::Malformed(bad)], at: input.now };
        let mut draft = Draft::new(GateId::Control, &input);
        assert!(matches!(draft.read(SourceId::Nodes, &listed), Read::Known(items) if items == [&1]));
        assert_eq!(draft.finish("fine").status, Status::Unknown);
    }

    #[test]
    fn failed_and_stale_are_unknown_and_absent_is_not() {
        let case = Case::default();
        let input = case.input();
        let old = input.now - jiff::SignedDuration::from_secs(31);
        let rows: [(Listed<u8>, Status); 4] = [
            (Observation::Failed { kind: FailureKind::Forbidden, detail: "no".into(), at: input.now }, Status::Unknown),
            (Observation::Known { value: vec![], at: old }, Status::Unknown),
            (Observation::Absent { at: input.now }, Status::Pass),
            (Observation::NotAsked, Status::Pass),
        ];
        for (listed, status) in rows {
            let mut draft = Draft::new(GateId::Control, &input);
            let _ = draft.read(SourceId::Nodes, &listed);
            assert_eq!(draft.finish("fine").status, status, "{listed:?}");
        }
    }
}
