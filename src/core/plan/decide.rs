//! What a step decides: phases, deadlines, texts for people, messages.

use super::Act;
use super::kept::record_of;
use super::phase_of;
use super::run::{ActionPod, Run, SOON_SECONDS, Target};
use super::time::{after, parse_time, stamp};
use super::{lock, sentinel};
use crate::api::record::{FindingRecord, OutboxEntry, TimelineEntry};
use crate::api::{Finding, MessageKind, Outcome, Phase, Status};
use crate::planted::{self, Bug};

/// Entries kept of a record's lists; what is older is dropped first.
const MAX_TIMELINE: usize = 60;
const MAX_FINDINGS: usize = 8;
const MAX_WARNINGS: usize = 20;
const MAX_OUTBOX: usize = 40;

impl Run<'_> {
    pub(super) fn act(&mut self, act: Act) {
        self.acts.push(act);
    }

    pub(super) fn look_again_in(&mut self, seconds: i64) {
        self.wake_at = self.wake_at.min(after(self.input.now, seconds));
    }

    /// Keeps the findings that are not fine; answers whether they are others than at the last look.
    pub(super) fn keep_findings(&mut self, findings: &[Finding]) -> bool {
        let mut stops: Vec<&Finding> =
            findings.iter().filter(|finding| !matches!(finding.status, Status::Pass | Status::NotApplicable)).collect();
        stops.sort_by_key(|finding| std::cmp::Reverse(finding.status));
        let fresh: Vec<FindingRecord> = stops.into_iter().take(MAX_FINDINGS).map(record_of).collect();
        // Ages in sentences change with every look; only a change of what is found is worth a write.
        let same = fresh.len() == self.status.findings.len()
            && fresh.iter().zip(&self.status.findings).all(|(new, old)| {
                (&new.gate, &new.status, &new.reason) == (&old.gate, &old.status, &old.reason)
                    && new.evidence.iter().map(|one| &one.object).eq(old.evidence.iter().map(|one| &one.object))
            });
        if !same {
            self.status.findings = fresh;
        }
        !same
    }

    /// Moves to a phase: its clock starts, its deadline is set, and the timeline says why.
    pub(super) fn enter(&mut self, phase: Phase, why: impl Into<String>) {
        let why = why.into();
        let now = self.input.now;
        phase.as_str().clone_into(&mut self.status.phase);
        self.status.step_started_at = Some(stamp(now));
        self.status.blocked_since = None;
        self.status.halted_since = None;
        self.status.progress_mark.clear();
        if matches!(phase, Phase::Returning | Phase::Verifying | Phase::Uncordoning | Phase::Settling)
            && self.status.outcome != Outcome::RebootedElsewhere.as_str()
        {
            // Why it was held is in the timeline; now it goes on.
            self.status.outcome.clear();
        }
        self.status.green_since = None;
        self.status.green_sweeps = 0;
        self.status.last_sweep = None;
        self.status.findings.clear();
        self.status.message.clone_from(&why);
        self.status.deadline = self.limit_of(phase).map(|seconds| stamp(after(now, seconds)));
        self.note(why);
        self.look_again_in(0);
    }

    fn limit_of(&self, phase: Phase) -> Option<i64> {
        let limits = self.status.limits.clone().unwrap_or_default();
        match phase {
            _ if planted::is(Bug::IgnoresDeadlines) => None,
            Phase::Draining => Some(limits.drain_seconds),
            Phase::Cordoning | Phase::Acting => Some(limits.handover_seconds),
            Phase::Returning => Some(limits.return_seconds),
            Phase::Verifying => Some(limits.verify_seconds),
            Phase::Settling => Some(limits.settle_seconds),
            _ => None,
        }
    }

    /// Whether the present deadline has passed. A deadline that cannot be read, or that got lost, has.
    pub(super) fn is_late(&self) -> bool {
        match &self.status.deadline {
            None => self.limit_of(phase_of(self.input.record)).is_some(),
            Some(text) => parse_time(Some(text)).is_none_or(|deadline| self.input.now >= deadline),
        }
    }

    pub(super) fn note(&mut self, message: impl Into<String>) {
        let entry =
            TimelineEntry { at: stamp(self.input.now), phase: self.status.phase.clone(), message: message.into() };
        self.status.timeline.push(entry);
        let most = if planted::is(Bug::ForgetsHistory) { 3 } else { MAX_TIMELINE };
        let surplus = self.status.timeline.len().saturating_sub(most);
        // The first entry says how it began and stays.
        if surplus > 0 {
            self.status.timeline.drain(1..=surplus);
        }
    }

    pub(super) fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        if !self.status.warnings.contains(&warning) && self.status.warnings.len() < MAX_WARNINGS {
            self.note(format!("warning: {warning}"));
            self.status.warnings.push(warning);
        }
    }

    /// Queues a message in the same write as what it tells.
    pub(super) fn tell(&mut self, kind: MessageKind, severity: &str, text: String) {
        // Numbered after the last one, whatever was dropped: a receiver drops what has the id of an earlier message.
        let number = |entry: &OutboxEntry| entry.id.split('/').nth(1).and_then(|number| number.parse::<u64>().ok());
        let next = self.status.outbox.iter().filter_map(number).max().map_or(0, |last| last.saturating_add(1));
        let next = if planted::is(Bug::NumbersAnew) { 0 } else { next };
        let id = format!("{}/{next}/{kind}", self.uid());
        let surplus = (self.status.outbox.len() + 1).saturating_sub(MAX_OUTBOX);
        self.status.outbox.drain(..surplus);
        if planted::is(Bug::SkipsOutbox) || (planted::is(Bug::TellsNobodyHeld) && kind == MessageKind::Held) {
            return;
        }
        self.status.outbox.push(OutboxEntry {
            id,
            kind: kind.as_str().to_owned(),
            severity: severity.to_owned(),
            text,
            created_at: stamp(self.input.now),
            ..OutboxEntry::default()
        });
    }

    /// Starts putting everything back; `ends_as` is how the record will end.
    pub(super) fn back_out(&mut self, outcome: Outcome, ends_as: Phase, why: impl Into<String>) {
        self.back_out_for(outcome.as_str(), ends_as, why);
    }

    pub(super) fn back_out_for(&mut self, outcome: &str, ends_as: Phase, why: impl Into<String>) {
        let findings = std::mem::take(&mut self.status.findings);
        outcome.clone_into(&mut self.status.outcome);
        ends_as.as_str().clone_into(&mut self.status.ends_as);
        let why = why.into();
        self.status.ends_because.clone_from(&why);
        self.withdraw();
        self.acts.clear();
        self.enter(Phase::BackingOut, why);
        self.status.findings = findings;
    }

    /// Holds: our cordon stays on purpose, and a person is told.
    pub(super) fn hold(&mut self, outcome: &str, severity: &str, why: impl Into<String>) {
        let why = why.into();
        if planted::is(Bug::ForgetsHeldNodes) {
            return self.end(Phase::Failed, outcome, why);
        }
        let findings = std::mem::take(&mut self.status.findings);
        outcome.clone_into(&mut self.status.outcome);
        self.status.accepted_by.clear();
        self.acts.clear();
        self.status.held_at = Some(stamp(self.input.now));
        self.enter(Phase::Held, why.clone());
        self.status.findings = findings;
        let (node, name) = (self.node_name(), self.name());
        let cordon =
            if self.status.cordon_off_at.is_some() { "No cordon of ours is on it" } else { "It stays cordoned" };
        let go_on = if outcome == Outcome::NodeOnHold.as_str() {
            format!("maint release {node}")
        } else {
            format!("maint resume {name}")
        };
        let text = format!(
            "{node} is HELD ({outcome}): {why}. {cordon}, and nothing else starts. Look: maint show {name}; go on: {go_on}"
        );
        self.tell(MessageKind::Held, severity, text);
    }

    /// Ends the record.
    pub(super) fn end(&mut self, phase: Phase, outcome: &str, why: impl Into<String>) {
        let why = why.into();
        let findings = std::mem::take(&mut self.status.findings);
        outcome.clone_into(&mut self.status.outcome);
        self.enter(phase, why.clone());
        self.status.findings = findings;
        let (kind, severity) = match phase {
            Phase::Succeeded if self.status.warnings.is_empty() => (MessageKind::Finished, "info"),
            Phase::Succeeded => (MessageKind::Finished, "warning"),
            _ => (MessageKind::BackedOut, "warning"),
        };
        let warnings = match self.status.warnings.as_slice() {
            [] => String::new(),
            all => format!("; warning: {}", all.join("; ")),
        };
        let verdict = match phase {
            Phase::Succeeded => "is done".to_owned(),
            _ => format!("was not maintained, {} ({outcome})", phase.as_str().to_lowercase()),
        };
        let text = format!("{} {verdict}: {why}{warnings}", self.node_name());
        self.tell(kind, severity, text);
    }

    /// A terminal record takes away what is left of it (action pod, sentinel, hold of kured's lock) and lets go of its
    /// finalizer; then the run is done.
    pub(super) fn release_record(&mut self) {
        if !self.has_finalizer() {
            // It never started, or all is taken away: the finalizer goes last.
            self.done = true;
            return;
        }
        match self.action_pod() {
            // Whether something is left cannot be told.
            ActionPod::Unreadable => return self.look_again_in(SOON_SECONDS),
            ActionPod::There(pod) if pod.metadata.deletion_timestamp.is_none() => {
                self.act(Act::DeleteActionPod { name: pod.metadata.name.clone(), uid: pod.metadata.uid.clone() });
            }
            ActionPod::There(_) | ActionPod::Missing => {}
        }
        let node = match self.target() {
            Target::Here(node) => Some(node),
            Target::Gone => None,
            Target::Unknown if self.status.kured.is_some() => return self.look_again_in(SOON_SECONDS),
            Target::Unknown => None,
        };
        // As long as kured asks for the sentinel's sake it shows that an old grant is spent; so the lock is the last
        // to be given back, and the file goes only when there is nothing to be shown any more.
        if !lock::may_end(self, node) || !sentinel::is_gone(self, node) || !self.gave_lock_back() {
            return;
        }
        self.act(Act::RemoveFinalizer);
        self.look_again_in(0);
    }
}
