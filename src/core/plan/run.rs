//! One run while its next step is decided: the record, the facts, and the status that is being made.

use jiff::Timestamp;

use super::kept::{finding_of, record_of};
use super::seat::Seat;
use super::time::{after, parse_time};
use super::{Act, FINALIZER, Step, StepInput, owned};
use crate::api::record::{FindingRecord, Maintenance, MaintenanceStatus};
use crate::api::{Action, Finding, GateId, Moment, Phase, Reason, Status, Strategy, Trigger};
use crate::config::{RunSettings, Scope};
use crate::drain::Awaits;
use crate::facts::{Item, Listed, Node, Observation, Pod, Source};
use crate::gates::{self, GateInput, HardStop, RunContext};
use crate::planted::{self, Bug};
use crate::state::Since;

/// How often a run looks at the world when nothing wakes it, in seconds.
pub(super) const LOOK_SECONDS: i64 = 10;
/// The same while something is expected any moment.
pub(super) const SOON_SECONDS: i64 = 2;

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
    pub(super) acts: Vec<Act>,
    pub(super) wake_at: Timestamp,
    pub(super) awaits: Option<Awaits>,
    pub(super) done: bool,
    pub(super) hand_over: bool,
    asked: Option<(Moment, Vec<Finding>)>,
    /// What a person waived of the findings that were asked last, as it was.
    waived: Vec<FindingRecord>,
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

/// What is known of the action pod.
#[derive(Clone, Copy)]
pub(super) enum ActionPod<'a> {
    /// It could not be read, or not be understood.
    Unreadable,
    /// There is none.
    Missing,
    /// Here it is.
    There(&'a Pod),
}

impl<'a> Run<'a> {
    pub(super) fn new(input: &'a StepInput<'a>) -> Self {
        let status = input.record.status.clone().unwrap_or_default();
        Self {
            input,
            status,
            acts: Vec::new(),
            wake_at: after(input.now, LOOK_SECONDS),
            awaits: None,
            done: false,
            hand_over: false,
            asked: None,
            waived: Vec::new(),
        }
    }

    pub(super) fn finish(mut self) -> Step {
        if self.status.phase.is_empty() {
            Phase::Pending.as_str().clone_into(&mut self.status.phase);
        }
        super::super::report::conditions::update(&mut self.status, self.input.now);
        Step {
            status: self.status,
            acts: self.acts,
            wake_at: self.wake_at,
            awaits: self.awaits,
            done: self.done,
            hand_over: self.hand_over,
            asked: self.asked,
        }
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

    // --- the world ---

    /// A list that was read and is not older than its source allows.
    pub(super) fn current<T>(&self, listed: &'a Listed<T>, max_age_seconds: i64) -> Option<&'a Vec<Item<T>>> {
        match listed {
            Observation::Known { value, at } if self.input.now.duration_since(*at).as_secs() <= max_age_seconds => {
                Some(value)
            }
            _ => None,
        }
    }

    pub(super) fn target(&self) -> Target<'a> {
        let Some(value) = self.current(&self.input.facts.nodes, Node::SPEC.max_age_seconds) else {
            return Target::Unknown;
        };
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

    /// The pod that acts for this record.
    pub(super) fn action_pod(&self) -> ActionPod<'a> {
        let never = !matches!(self.action(), Ok(Action::Pod));
        if never || matches!(self.input.facts.action_pods, Observation::Absent { .. }) {
            // Another action, or no such namespace: there is no pod.
            return ActionPod::Missing;
        }
        let pods = self.current(&self.input.facts.action_pods, Pod::ACTIONS.max_age_seconds);
        let Some(pods) = pods else { return ActionPod::Unreadable };
        let name = self.action_pod_name();
        let found = pods.iter().find_map(|item| match item {
            Item::Good(pod) if pod.metadata.name == name => Some(ActionPod::There(pod)),
            Item::Malformed(bad) if bad.object.ends_with(&format!("/{name}")) => Some(ActionPod::Unreadable),
            _ => None,
        });
        found.unwrap_or(ActionPod::Missing)
    }

    pub(super) fn action_pod_name(&self) -> String {
        format!("maint-{}", self.name())
    }

    /// The findings of a gate's moment, with what a person waived and what was no better at the start lowered to
    /// warnings.
    pub(super) fn findings(&mut self, moment: Moment) -> Vec<Finding> {
        let mut findings = self.ask(moment, gates::evaluate);
        Since::of(self.input.facts, self.input.settings).fill(&mut findings);
        self.asked = Some((moment, findings.clone()));
        self.waived.clear();
        for finding in &mut findings {
            if finding.stops() && self.is_waived(moment, finding) {
                self.waived.push(record_of(finding));
                finding.status = Status::Warn;
            }
        }
        findings
    }

    /// Asks gates, or what they share, with all that this run knows.
    pub(super) fn ask<T>(&self, moment: Moment, question: impl FnOnce(&GateInput<'_>) -> T) -> T {
        let (scope, run) = (self.scope(), self.context());
        question(&GateInput {
            facts: self.input.facts,
            settings: self.input.settings,
            target: self.node_name(),
            scope: &scope,
            strategy: self.strategy(),
            moment,
            trigger: self.trigger(),
            run: Some(&run),
            now: self.input.now,
        })
    }

    fn context(&self) -> RunContext {
        RunContext {
            maintenance_uid: self.uid().to_owned(),
            term: self.input.term,
            action: self.action().ok(),
            boot_id_before: self.status.node.as_ref().map(|node| node.boot_id_before.clone()),
            was_unschedulable: self.was_unschedulable(),
            returned_at: parse_time(self.status.returned_at.as_ref()),
            daemon_sets: self.status.node.as_ref().map(|node| node.daemon_sets.clone()).unwrap_or_default(),
            baseline: self.status.baseline.iter().filter_map(finding_of).collect(),
            hard_stop: self
                .status
                .window
                .as_ref()
                .map(|window| HardStop { opening: window.opening.clone(), at: parse_time(Some(&window.ends_at)) }),
            leader_on_target: self.input.seat.map(|_| self.seat() == Seat::Stuck),
        }
    }

    /// A person may waive gates before commit; not those that guard against two nodes down or a lost quorum, and of
    /// gate `target` only that the node is not Ready: a reboot may be its cure.
    fn is_waived(&self, moment: Moment, finding: &Finding) -> bool {
        let may = matches!(moment, Moment::Start | Moment::Cordoned | Moment::Handover)
            && match finding.gate {
                // Its worst reason may hide the quorum behind another server's sickness.
                GateId::Control | GateId::Exclusive | GateId::ControlPlane => false,
                GateId::Target => finding.reason == Reason::TargetNotReady,
                _ => true,
            };
        (may || planted::is(Bug::OverridesAll))
            && self.input.record.spec.overrides.iter().any(|waived| waived.gate == finding.gate.as_str())
    }

    /// What a person waived counts at verify and settle like what was failing at the start: with the status that it
    /// had, since a warning would excuse no block.
    pub(super) fn keep_waived(&mut self) {
        for waived in std::mem::take(&mut self.waived) {
            let same = |known: &FindingRecord| (&known.gate, &known.reason) == (&waived.gate, &waived.reason);
            self.status.baseline.retain(|known| !(same(known) && known.status == Status::Warn.as_str()));
            if !self.status.baseline.iter().any(same) {
                self.status.baseline.push(waived);
            }
        }
    }

    /// The worst finding that stops.
    pub(super) fn worst(findings: &[Finding]) -> Option<&Finding> {
        // The first of the worst: the order of the table is the order of every output.
        findings.iter().filter(|finding| finding.stops()).rev().max_by_key(|finding| finding.status)
    }

    /// The boot ID of the record was replaced; an empty one on either side proves nothing.
    pub(super) fn has_new_boot(&self, node: &Node) -> bool {
        let before = self.boot_id_before();
        !before.is_empty() && !node.boot_id.is_empty() && node.boot_id != before
    }

    /// It booted once more since it was seen back.
    pub(super) fn has_another_boot(&self, node: &Node) -> bool {
        let known = self.status.node.as_ref().map(|node| node.boot_id_after.as_str()).unwrap_or_default();
        !known.is_empty() && !node.boot_id.is_empty() && known != node.boot_id
    }

    /// The cordon is ours, and no person wanted it before us.
    pub(super) fn may_uncordon(&self, node: &Node) -> bool {
        (self.is_our_cordon(node) && !self.was_unschedulable()) || planted::is(Bug::UncordonsForeign)
    }

    pub(super) fn is_our_cordon(&self, node: &Node) -> bool {
        owned::is_our_cordon(node, self.uid())
    }

    pub(super) fn is_marked_ours(&self, node: &Node) -> bool {
        owned::is_marked_ours(node, self.uid())
    }
}
