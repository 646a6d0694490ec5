//! The preview of a maintenance: what would be done with a node, when, and what stops it now. Changes nothing.
//!
//! Nothing is decided here in a way of its own: the gates are those of a start, the drain is [`DrainPlan`], the windows
//! are asked as a run asks them, and the order of wishes is the one that runs wait by. Gates are asked as before any
//! run, exactly as `maint check` asks them, so that both verbs say the same.

mod begin;
mod clock;
mod order;
mod steps;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;

use crate::api::{Action, Finding, GateId, Moment, Phase, SourceId, Status, Strategy, Trigger, UnknownName};
use crate::config::{Scope, Settings};
use crate::drain::{self, DrainPlan, View};
use crate::facts::{Facts, Item, Listed, Maintenance, Observation, Source};
use crate::gates::{self, GateInput, RunContext, Verdict, acts_on_nodes, evaluate, sources_of};
use crate::plan::unattended_action;
use crate::state::Since;

pub use begin::{Begin, Begins};
pub use clock::BY_THE_CLOCK;
pub use order::{Candidate, Candidates, InFlight, candidates};
pub use steps::Step;

/// What a preview is made from.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// What is known.
    pub facts: &'a Facts,
    /// The settings.
    pub settings: &'a Settings,
    /// The node that the pod of maint's leader runs on, where that is known.
    pub leader: Option<&'a str>,
    /// The scope, where one was named; else that of a waiting record, else [`Scope::DEFAULT`].
    pub scope: Option<&'a str>,
    /// A person asks; else as a waiting record says, else as for an unattended run.
    pub manual: bool,
    /// Now: ages of facts are counted to it.
    pub now: Timestamp,
    /// The instant that windows, halt and holds are judged at, if another one.
    pub at: Option<Timestamp>,
}

/// What a preview needs to read.
#[must_use]
pub fn sources(settings: &Settings) -> BTreeSet<SourceId> {
    let mut sources = sources_of(Moment::Start, settings);
    sources.extend([
        SourceId::Nodes,
        SourceId::Maintenances,
        SourceId::TargetPods,
        SourceId::OwnPods,
        SourceId::PodDisruptionBudgets,
        SourceId::DaemonSets,
        SourceId::StatefulSets,
        SourceId::ReplicaSets,
    ]);
    sources
}

/// What would be done with one node.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// The node.
    pub node: String,
    /// The worst of the gates, of the drain, and of a run that is at work on it.
    pub verdict: Verdict,
    /// Why it is maintained.
    pub scope: Scope,
    /// What follows for its pods.
    pub strategy: Strategy,
    /// Why that, in a few words.
    pub strategy_reason: String,
    /// Who makes it go down.
    pub acts: Acts,
    /// Who asks.
    pub trigger: Trigger,
    /// The record that waits to be carried out.
    pub wish: Option<String>,
    /// A run of it that is at work already.
    pub in_flight: Option<InFlight>,
    /// What every gate said.
    pub findings: Vec<Finding>,
    /// Its drain; none with strategy cordon-only.
    pub drain: Option<Drain>,
    /// What could not be read, and what is not said for want of it. The gates do not ask for it.
    pub unread: Vec<String>,
    /// When it would begin.
    pub begins: Begins,
    /// What would be done, in this order.
    pub steps: Vec<Step>,
}

/// Who makes the node go down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Acts {
    /// Who; none where nobody could.
    pub action: Option<Action>,
    /// Why that, or why nobody.
    pub reason: String,
}

/// The drain, or why it is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", untagged)]
pub enum Drain {
    /// What would go, and when.
    Planned(Box<DrainPlan>),
    /// The node's pods could not be read or understood.
    Unknown {
        /// Why.
        unknown: String,
    },
}

impl Drain {
    /// What it alone would make of the verdict.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Planned(plan) if !plan.never.is_empty() => Verdict::Blocked,
            Self::Planned(plan) if plan.unknown.is_empty() => Verdict::Clear,
            Self::Planned(_) | Self::Unknown { .. } => Verdict::Unknown,
        }
    }
}

/// The preview of one node.
///
/// # Errors
/// If the scope, or that of the node's waiting record, is none of the configuration.
pub fn node(input: &Input<'_>, name: &str) -> Result<Preview, UnknownName> {
    let records = of_node(input, name);
    // One active record a node is the rule; should there be two, the one that is at work counts.
    let waiting = records.iter().find(|record| record.phase == Phase::Pending.as_str()).copied();
    let in_flight = records.iter().find(|record| record.in_flight()).map(|record| InFlight::of(record));
    let named = input.scope.or(waiting.map(|record| record.scope.as_str())).filter(|scope| !scope.is_empty());
    let scope = Scope::find(input.settings, named.unwrap_or(Scope::DEFAULT))?;
    // A record of another scope is another wish than the one that is asked about.
    let wish = waiting.filter(|record| record.scope == scope.name);
    let (strategy, strategy_reason) = strategy_of(&scope, wish);
    let acts = acts(input, &scope, wish);
    let trigger = match wish {
        Some(record) if record.trigger == Trigger::Manual.as_str() => Trigger::Manual,
        _ if input.manual => Trigger::Manual,
        _ => Trigger::Unattended,
    };
    let question = GateInput {
        facts: input.facts,
        settings: input.settings,
        target: name,
        scope: &scope,
        strategy,
        moment: Moment::Start,
        trigger,
        run: None,
        now: input.now,
    };
    let findings = ask(input, &question, acts.action);
    let drain = (strategy == Strategy::Drain).then(|| drain_of(input, name, acts.action));
    let busy = if in_flight.is_some() { Verdict::Blocked } else { Verdict::Clear };
    let drains = drain.as_ref().map_or(Verdict::Clear, Drain::verdict);
    let steps = steps::steps(input.settings, &question, acts.action, drain.as_ref());
    Ok(Preview {
        node: name.to_owned(),
        verdict: Verdict::of(&findings).max(drains).max(busy),
        unread: if drain.is_some() { unread(input.facts) } else { Vec::new() },
        begins: begin::begins(input, trigger, &findings),
        strategy,
        strategy_reason,
        acts,
        trigger,
        wish: wish.map(|record| record.metadata.name.clone()),
        in_flight,
        findings,
        drain,
        steps,
        scope,
    })
}

/// The records of a node that are not over. What cannot be read is an unknown of the gates.
fn of_node<'a>(input: &Input<'a>, node: &str) -> Vec<&'a Maintenance> {
    let active = |record: &&Maintenance| {
        record.node_name == node && (record.in_flight() || record.phase == Phase::Pending.as_str())
    };
    input.facts.maintenances.good().filter(active).collect()
}

fn strategy_of(scope: &Scope, wish: Option<&Maintenance>) -> (Strategy, String) {
    // A person may choose more than the scope, never less.
    let more = wish.and_then(|record| record.strategy.as_deref()) == Some(Strategy::Drain.as_str());
    if more && scope.strategy != Strategy::Drain {
        return (Strategy::Drain, "whoever asked chose more than the scope".to_owned());
    }
    (scope.strategy, scope.strategy_reason().to_owned())
}

fn acts(input: &Input<'_>, scope: &Scope, wish: Option<&Maintenance>) -> Acts {
    if let Some(record) = wish
        && let Ok(action) = record.action.parse::<Action>()
    {
        return Acts { action: Some(action), reason: format!("as {} says", record.metadata.name) };
    }
    if !scope.reboots {
        let reason = format!("nothing is rebooted: maint run NODE --scope {} -- COMMAND", scope.name);
        return Acts { action: Some(Action::External), reason };
    }
    match unattended_action(input.facts, input.settings) {
        Ok(Action::Kured) => {
            Acts { action: Some(Action::Kured), reason: "it asks maint before it reboots a node".to_owned() }
        }
        Ok(action) => Acts { action: Some(action), reason: "it is enabled, and kured does not ask maint".to_owned() },
        Err(reason) => Acts { action: None, reason },
    }
}

/// What the gates say: those that go by the clock at the wanted time, all others now.
fn ask(input: &Input<'_>, question: &GateInput<'_>, action: Option<Action>) -> Vec<Finding> {
    let mut findings = evaluate(question);
    if let Some(at) = input.at {
        clock::ask_anew(&mut findings, question, at);
    }
    if action.is_some_and(|action| action != Action::Kured) {
        // As before any run the gate takes kured for the one that acts.
        let run = RunContext { action, ..RunContext::default() };
        let without = GateInput { run: Some(&run), ..*question };
        let answer = gates::spec_of(GateId::Kured).and_then(|gate| gate.ask(&without));
        if let (Some(finding), Some(answer)) =
            (findings.iter_mut().find(|finding| finding.gate == GateId::Kured), answer)
            && answer.status == Status::NotApplicable
        {
            *finding = answer;
        }
    }
    Since::of(input.facts, input.settings).fill(&mut findings);
    findings
}

fn drain_of(input: &Input<'_>, node: &str, action: Option<Action>) -> Drain {
    let question = drain::Question { node, settings: input.settings, action, now: input.now };
    match View::of(input.facts, &question, |pod| acts_on_nodes(input.settings, pod)) {
        Ok(view) => Drain::Planned(Box::new(DrainPlan::of(&view, input.settings.run.drain_timeout_seconds))),
        Err(unknown) => Drain::Unknown { unknown },
    }
}

/// What is read for the warnings of a drain alone.
fn unread(facts: &Facts) -> Vec<String> {
    let of = |listed: Option<&str>, kind: &str| {
        listed.map(|why| format!("which {kind} have one replica, or all of them here: {why}"))
    };
    [of(failed(&facts.replica_sets), "ReplicaSets"), of(failed(&facts.stateful_sets), "StatefulSets")]
        .into_iter()
        .flatten()
        .collect()
}

fn failed<T>(listed: &Listed<T>) -> Option<&str> {
    match listed {
        Observation::Known { .. } => None,
        Observation::Failed { detail, .. } => Some(detail),
        Observation::Absent { .. } => Some("the API does not have them"),
        Observation::NotAsked => Some("nobody asked"),
    }
}

/// The records, or why they are not known. That the API has no such kind means that there are none.
fn records(listed: &Listed<Maintenance>, now: Timestamp) -> Result<&[Item<Maintenance>], String> {
    match listed {
        Observation::Known { value, at } => {
            let age = now.duration_since(*at).as_secs();
            if age <= Maintenance::SPEC.max_age_seconds {
                Ok(value)
            } else {
                Err(format!("they were read {age} s ago"))
            }
        }
        Observation::Absent { .. } => Ok(&[]),
        Observation::Failed { detail, .. } => Err(format!("the records could not be read: {detail}")),
        Observation::NotAsked => Err("the records were not asked for".to_owned()),
    }
}
