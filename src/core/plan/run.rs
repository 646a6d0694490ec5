//! One run while its next step is decided: the record, the facts, and the status that is being made.

use jiff::Timestamp;

use super::time::{after, parse_time, stamp};
use super::{Act, FINALIZER, Step, StepInput, owned};
use crate::api::record::{
    EvidenceRecord, FindingRecord, Maintenance, MaintenanceStatus, OutboxEntry, TimelineEntry, Word,
};
use crate::api::{
    Action, Evidence, Finding, GateId, MessageKind, Moment, Outcome, Phase, Reason, Status, Strategy, Trigger,
};
use crate::config::{RunSettings, Scope};
use crate::facts::{Item, Node, Observation, Pod};
use crate::gates::{self, GateInput, RunContext};

/// How often a run looks at the world when nothing wakes it, in seconds.
pub(super) const LOOK_SECONDS: i64 = 10;
/// The same while something is expected any moment.
pub(super) const SOON_SECONDS: i64 = 2;
/// Entries kept of a record's lists; what is older is dropped first.
const MAX_TIMELINE: usize = 60;
const MAX_FINDINGS: usize = 8;

/// The phase of a record: no status means Pending. A word that this version does not know is taken for Held, which
/// does nothing by itself.
#[must_use]
pub fn phase_of(record: &Maintenance) -> Phase {
    match record.status.as_ref().map(|status| status.phase.as_str()) {
        None | Some("") => Phase::Pending,
        Some(phase) => phase.parse().unwrap_or(Phase::Held),
    }
}

/// One run while its next step is decided.
pub(super) struct Run<'a> {
    pub(super) input: &'a StepInput<'a>,
    pub(super) status: MaintenanceStatus,
    acts: Vec<Act>,
    wake_at: Timestamp,
    done: bool,
}

/// What is known of the target.
pub(super) enum Target<'a> {
    /// Here it is.
    Here(&'a Node),
    /// The node of the record is gone, or another one has its name.
    Gone,
    /// The nodes could not be read: nothing is decided.
    Unknown,
}

impl<'a> Run<'a> {
    pub(super) fn new(input: &'a StepInput<'a>) -> Self {
        let status = input.record.status.clone().unwrap_or_default();
        Self { input, status, acts: Vec::new(), wake_at: after(input.now, LOOK_SECONDS), done: false }
    }

    pub(super) fn finish(mut self) -> Step {
        if self.status.phase.is_empty() {
            self.status.phase = Phase::Pending.as_str().to_owned();
        }
        super::super::report::conditions::update(&mut self.status, self.input.now);
        Step { status: self.status, acts: self.acts, wake_at: self.wake_at, done: self.done }
    }

    // --- the record ---

    pub(super) fn uid(&self) -> &str {
        self.input.record.metadata.uid.as_deref().unwrap_or_default()
    }

    pub(super) fn name(&self) -> &str {
        self.input.record.metadata.name.as_deref().unwrap_or_default()
    }

    pub(super) fn node_name(&self) -> &'a str {
        &self.input.record.spec.node_name
    }

    pub(super) fn settings(&self) -> &'a RunSettings {
        &self.input.settings.run
    }

    pub(super) fn action(&self) -> Result<Action, crate::api::UnknownName> {
        self.input.record.spec.action.parse()
    }

    pub(super) fn trigger(&self) -> Trigger {
        // Whatever is not plainly a person's word is bound by what binds the unattended.
        self.input.record.spec.trigger.parse().unwrap_or(Trigger::Unattended)
    }

    pub(super) fn deleted(&self) -> bool {
        self.input.record.metadata.deletion_timestamp.is_some()
    }

    pub(super) fn has_finalizer(&self) -> bool {
        self.input.record.metadata.finalizers.as_ref().is_some_and(|all| all.iter().any(|one| one == FINALIZER))
    }

    pub(super) fn strategy(&self) -> Strategy {
        // A record that lost its frozen strategy evicts nothing.
        self.status.strategy.parse().unwrap_or(Strategy::CordonOnly)
    }

    pub(super) fn scope(&self) -> Scope {
        Scope { name: self.input.record.spec.scope.clone(), strategy: self.strategy(), reboots: self.status.reboots }
    }

    pub(super) fn boot_id_before(&self) -> &str {
        self.status.node.as_ref().map(|node| node.boot_id_before.as_str()).unwrap_or_default()
    }

    pub(super) fn was_unschedulable(&self) -> bool {
        self.status.node.as_ref().is_some_and(|node| node.was_unschedulable)
    }

    /// A word that was given after the present phase began.
    pub(super) fn fresh<'w>(&self, word: Option<&'w Word>) -> Option<&'w Word> {
        let began = parse_time(self.status.step_started_at.as_ref());
        word.filter(|word| match (parse_time(Some(&word.at)), began) {
            (Some(at), Some(began)) => at >= began,
            _ => true,
        })
    }

    // --- the world ---

    pub(super) fn target(&self) -> Target<'a> {
        let Observation::Known { value, .. } = &self.input.facts.nodes else { return Target::Unknown };
        let wanted = self.status.node.as_ref().map(|node| node.uid.as_str()).filter(|uid| !uid.is_empty());
        for item in value {
            match item {
                Item::Good(node) if node.metadata.name == self.node_name() => {
                    return match wanted {
                        Some(uid) if uid != node.metadata.uid => Target::Gone,
                        _ => Target::Here(node),
                    };
                }
                // The node may be the one that could not be understood.
                Item::Malformed(bad) if bad.object == format!("Node {}", self.node_name()) => return Target::Unknown,
                _ => {}
            }
        }
        Target::Gone
    }

    pub(super) fn is_ready(node: &Node) -> bool {
        node.condition("Ready").is_some_and(|ready| ready.status == crate::facts::TriState::True)
    }

    /// The pod that acts for this record, if it exists; `None` inside `Some` means "could not be read".
    pub(super) fn action_pod(&self) -> Option<Option<&'a Pod>> {
        match &self.input.facts.action_pods {
            Observation::Known { value, .. } => {
                let name = self.action_pod_name();
                let found = value.iter().find_map(|item| match item {
                    Item::Good(pod) if pod.metadata.name == name => Some(Some(pod)),
                    Item::Malformed(bad) if bad.object.ends_with(&format!("/{name}")) => Some(None),
                    _ => None,
                });
                found.map_or(Some(None), |pod| pod.map(Some))
            }
            // No such namespace, or nothing was asked: there is no pod.
            Observation::Absent { .. } | Observation::NotAsked => Some(None),
            Observation::Failed { .. } => None,
        }
    }

    pub(super) fn action_pod_name(&self) -> String {
        format!("maint-{}", self.name())
    }

    /// The findings of a gate's moment, with what a person waived and what was no better at the start lowered to
    /// warnings.
    pub(super) fn findings(&self, moment: Moment) -> Vec<Finding> {
        let scope = self.scope();
        let run = self.context();
        let input = GateInput {
            facts: self.input.facts,
            settings: self.input.settings,
            target: self.node_name(),
            scope: &scope,
            strategy: self.strategy(),
            moment,
            trigger: self.trigger(),
            run: Some(&run),
            now: self.input.now,
        };
        let mut findings = gates::evaluate(&input);
        for finding in &mut findings {
            if finding.stops() && self.waived(moment, finding) {
                finding.status = Status::Warn;
            }
        }
        findings
    }

    fn context(&self) -> RunContext {
        RunContext {
            maintenance_uid: self.uid().to_owned(),
            term: self.input.term,
            boot_id_before: self.status.node.as_ref().map(|node| node.boot_id_before.clone()),
            was_unschedulable: self.was_unschedulable(),
            returned_at: parse_time(self.status.returned_at.as_ref()),
            baseline: self.status.baseline.iter().filter_map(finding_of).collect(),
            leader_on_target: self.input.leader_on_target,
        }
    }

    /// A person may waive gates before commit; not those that guard against two nodes down or a lost quorum.
    fn waived(&self, moment: Moment, finding: &Finding) -> bool {
        let may = matches!(moment, Moment::Start | Moment::Cordoned | Moment::Handover)
            && !matches!(finding.gate, GateId::Control | GateId::Exclusive | GateId::Target | GateId::ControlPlane);
        may && self.input.record.spec.overrides.iter().any(|waived| waived.gate == finding.gate.as_str())
    }

    /// Whether somebody halted everything, as far as gate `control` says; unreadable counts as halted.
    pub(super) fn is_halted(findings: &[Finding]) -> bool {
        findings.iter().any(|finding| {
            finding.gate == GateId::Control
                && finding.stops()
                && finding.reason != Reason::NodeOnHold
                && finding.reason != Reason::LeaderOnTarget
                && finding.reason != Reason::PostCheckRed
                && finding.reason != Reason::PostCheckRunning
        })
    }

    pub(super) fn is_on_hold(findings: &[Finding]) -> bool {
        findings
            .iter()
            .any(|finding| finding.gate == GateId::Control && finding.stops() && finding.reason == Reason::NodeOnHold)
    }

    /// The worst finding that stops.
    pub(super) fn worst(findings: &[Finding]) -> Option<&Finding> {
        // The first of the worst: the order of the table is the order of every output.
        findings.iter().filter(|finding| finding.stops()).rev().max_by_key(|finding| finding.status)
    }

    // --- what is decided ---

    pub(super) fn act(&mut self, act: Act) {
        self.acts.push(act);
    }

    pub(super) fn look_again_in(&mut self, seconds: i64) {
        self.wake_at = self.wake_at.min(after(self.input.now, seconds));
    }

    pub(super) fn keep_findings(&mut self, findings: &[Finding]) {
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
    }

    /// Moves to a phase: its clock starts, its deadline is set, and the timeline says why.
    pub(super) fn enter(&mut self, phase: Phase, why: impl Into<String>) {
        let why = why.into();
        let now = self.input.now;
        self.status.phase = phase.as_str().to_owned();
        self.status.step_started_at = Some(stamp(now));
        self.status.blocked_since = None;
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
            Phase::Draining => Some(limits.drain_seconds),
            Phase::Cordoning | Phase::Acting => Some(limits.handover_seconds),
            Phase::Returning => Some(limits.return_seconds),
            Phase::Verifying => Some(limits.verify_seconds),
            Phase::Settling => Some(limits.settle_seconds),
            _ => None,
        }
    }

    /// Whether the present deadline has passed. A deadline that cannot be read has.
    pub(super) fn is_late(&self) -> bool {
        match &self.status.deadline {
            None => false,
            Some(text) => parse_time(Some(text)).is_none_or(|deadline| self.input.now >= deadline),
        }
    }

    pub(super) fn note(&mut self, message: impl Into<String>) {
        let entry =
            TimelineEntry { at: stamp(self.input.now), phase: self.status.phase.clone(), message: message.into() };
        self.status.timeline.push(entry);
        let surplus = self.status.timeline.len().saturating_sub(MAX_TIMELINE);
        // The first entry says how it began and stays.
        if surplus > 0 {
            self.status.timeline.drain(1..=surplus);
        }
    }

    pub(super) fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        if !self.status.warnings.contains(&warning) {
            self.note(format!("warning: {warning}"));
            self.status.warnings.push(warning);
        }
    }

    /// Queues a message in the same write as what it tells.
    pub(super) fn tell(&mut self, kind: MessageKind, severity: &str, text: String) {
        let id = format!("{}/{}/{}", self.uid(), self.status.outbox.len(), kind);
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
        self.status.outcome = outcome.to_owned();
        self.status.ends_as = ends_as.as_str().to_owned();
        self.status.intent = None;
        self.acts.clear();
        self.enter(Phase::BackingOut, why);
        self.status.findings = findings;
    }

    /// Holds: our cordon stays on purpose, and a person is told.
    pub(super) fn hold(&mut self, outcome: &str, severity: &str, why: impl Into<String>) {
        let why = why.into();
        let findings = std::mem::take(&mut self.status.findings);
        self.status.outcome = outcome.to_owned();
        self.acts.clear();
        self.enter(Phase::Held, why.clone());
        self.status.findings = findings;
        let text = format!(
            "{} is HELD ({outcome}): {why}. Nothing else starts. Look: maint show {}; go on: maint resume {}",
            self.node_name(),
            self.name(),
            self.name()
        );
        self.tell(MessageKind::Held, severity, text);
    }

    /// Ends the record.
    pub(super) fn end(&mut self, phase: Phase, outcome: &str, why: impl Into<String>) {
        let why = why.into();
        let findings = std::mem::take(&mut self.status.findings);
        self.status.outcome = outcome.to_owned();
        self.enter(phase, why.clone());
        self.status.deadline = None;
        self.status.findings = findings;
        let (kind, severity) = match phase {
            Phase::Succeeded if self.status.warnings.is_empty() => (MessageKind::Finished, "info"),
            Phase::Succeeded => (MessageKind::Finished, "warning"),
            _ => (MessageKind::BackedOut, "warning"),
        };
        let text = format!("{} {}: {why}", self.node_name(), phase.as_str().to_lowercase());
        self.tell(kind, severity, text);
    }

    /// A terminal record takes its action pod away and lets go of its finalizer; then the run is done.
    pub(super) fn release_record(&mut self) {
        if let Some(Some(pod)) = self.action_pod()
            && pod.metadata.deletion_timestamp.is_none()
        {
            self.act(Act::DeleteActionPod { name: pod.metadata.name.clone(), uid: pod.metadata.uid.clone() });
        }
        if self.has_finalizer() {
            self.act(Act::RemoveFinalizer);
            self.look_again_in(0);
        } else {
            self.done = true;
        }
    }

    /// Counts DNS endpoints while the run is in flight: the lowest number is part of the proof.
    pub(super) fn watch_dns(&mut self) {
        if !phase_of(self.input.record).is_in_flight() {
            return;
        }
        let Some(ready) = gates::ready_dns_endpoints(self.input.facts, self.input.settings) else { return };
        let ready = i64::try_from(ready).unwrap_or(i64::MAX);
        match &mut self.status.dns {
            Some(dns) => {
                if dns.last_ready != ready {
                    dns.changes += 1;
                    dns.last_ready = ready;
                    if ready == 0 {
                        dns.zero_ready_observations += 1;
                    }
                }
                dns.min_ready = dns.min_ready.min(ready);
            }
            none => {
                *none = Some(crate::api::record::DnsRecord {
                    min_ready: ready,
                    last_ready: ready,
                    zero_ready_observations: i64::from(ready == 0),
                    changes: 0,
                });
            }
        }
    }

    /// `9/9`, and the pairs that are not green.
    pub(super) fn matrix_line(&self) -> Option<(String, Vec<String>)> {
        let matrix = self.input.facts.matrix.known()?;
        let green = matrix.cells.iter().filter(|cell| cell.verdict == crate::matrix::CellVerdict::Green).count();
        let broken = matrix
            .cells
            .iter()
            .filter(|cell| cell.verdict != crate::matrix::CellVerdict::Green)
            .take(MAX_FINDINGS)
            .map(|cell| format!("{} -> {}: {} ({})", cell.server, cell.node, cell.verdict, cell.detail))
            .collect();
        Some((format!("{green}/{}", matrix.cells.len()), broken))
    }

    pub(super) fn is_our_cordon(&self, node: &Node) -> bool {
        owned::is_our_cordon(node, self.uid())
    }

    pub(super) fn is_marked_ours(&self, node: &Node) -> bool {
        owned::is_marked_ours(node, self.uid())
    }
}

fn record_of(finding: &Finding) -> FindingRecord {
    FindingRecord {
        gate: finding.gate.as_str().to_owned(),
        status: finding.status.as_str().to_owned(),
        reason: finding.reason.as_str().to_owned(),
        message: finding.message.clone(),
        evidence: finding
            .evidence
            .iter()
            .map(|evidence| EvidenceRecord {
                object: evidence.object.clone(),
                field: evidence.field.clone(),
                value: evidence.value.clone(),
                wanted: evidence.wanted.clone(),
            })
            .collect(),
    }
}

/// A kept finding, as the gates compare it; one with a word that this version does not know compares with nothing.
fn finding_of(record: &FindingRecord) -> Option<Finding> {
    Some(Finding {
        gate: record.gate.parse().ok()?,
        status: record.status.parse().ok()?,
        reason: record.reason.parse().ok()?,
        message: record.message.clone(),
        evidence: record
            .evidence
            .iter()
            .map(|one| Evidence::new(&one.object, &one.field, &one.value, &one.wanted))
            .collect(),
        evidence_left_out: 0,
        observed_at: None,
        since: None,
    })
}

/// The findings that are not fine, as a record keeps them.
pub(super) fn records_of(findings: &[Finding]) -> Vec<FindingRecord> {
    findings
        .iter()
        .filter(|finding| !matches!(finding.status, Status::Pass | Status::NotApplicable))
        .map(record_of)
        .collect()
}
