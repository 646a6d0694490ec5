//! `maint check`: gather facts, ask all gates, render. Changes nothing.

use clap::Args;
use maint_core::api::{Finding, Moment, SourceId, Trigger, UnknownName};
use maint_core::config::{Scope, Settings};
use maint_core::facts::{Facts, Item, Observation};
use maint_core::gates::{GateInput, evaluate, sources_of};
use maint_core::report::{self, CheckReport, Question};
use maint_core::state::Since;

use super::input::{Gathered, Input, machine_clock};
use super::{Common, Exit, Failure, Output, terminal};

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Node to judge; without it all nodes are judged, and the worst answer is the exit code
    node: Option<String>,
    /// Why the node is to be maintained: service-restart, reboot, power-off, or one of the configuration
    #[arg(long, value_name = "NAME", default_value = Scope::DEFAULT)]
    scope: String,
    #[command(flatten)]
    input: Input,
    /// Which moment of a run to judge: start, cordoned, handover, verify or settle
    #[arg(long, default_value = "start")]
    moment: Moment,
    /// Judge as for a person who asks; else as for an unattended run at night
    #[arg(long)]
    manual: bool,
}

impl Check {
    /// Runs it.
    pub async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        let settings = common.settings()?;
        let scope = Scope::find(&settings, &self.scope).map_err(|unknown| Failure::usage(unknown.to_string()))?;
        let sources = sources_of(self.moment, &settings);
        let gathered = self.input.gather(common, &settings, sources, self.node.as_deref()).await?;
        let report = self.judge(&gathered, &settings, &scope)?;
        match common.output {
            Output::Text => terminal::data(&report::check(&report, common.paint()))?,
            Output::Json => terminal::json(&report)?,
        }
        Ok(report.verdict.into())
    }

    fn judge(&self, gathered: &Gathered, settings: &Settings, scope: &Scope) -> anyhow::Result<CheckReport> {
        let Gathered { facts, now, origin } = gathered;
        let trigger = if self.manual { Trigger::Manual } else { Trigger::Unattended };
        let since = Since::of(facts, settings);
        let ask = |target: &str| -> Vec<Finding> {
            let mut findings = evaluate(&GateInput {
                facts,
                settings,
                target,
                scope,
                strategy: scope.strategy,
                moment: self.moment,
                trigger,
                run: None,
                now: *now,
            });
            since.fill(&mut findings);
            findings
        };
        let answers =
            targets(facts, self.node.as_deref())?.into_iter().map(|node| (node.clone(), ask(&node))).collect();
        let question = Question {
            scope: scope.name.clone(),
            strategy: scope.strategy,
            strategy_reason: scope.strategy_reason().to_owned(),
            moment: self.moment,
            trigger,
        };
        Ok(CheckReport::new(machine_clock(), *now, origin.clone(), question, answers, &not_asked(facts)))
    }
}

/// The nodes to judge. A node that cannot be decoded is one of them: its gates say what is wrong with it.
pub(super) fn targets(facts: &Facts, node: Option<&str>) -> anyhow::Result<Vec<String>> {
    let known = match (&facts.nodes, node) {
        (Observation::Known { value, .. }, _) => value.iter().filter_map(node_name).collect::<Vec<_>>(),
        // Without a list nobody can say that there is no such node: the gates answer, unknown as they are.
        (_, Some(node)) => return Ok(vec![node.to_owned()]),
        (Observation::Failed { kind, detail, .. }, None) => {
            let text = format!("cannot tell which nodes there are ({kind}): {detail}");
            return Err(Failure { exit: Exit::Unknown, text }.into());
        }
        (_, None) => {
            let text = "cannot tell which nodes there are".to_owned();
            return Err(Failure { exit: Exit::Unknown, text }.into());
        }
    };
    match node {
        None => Ok(known),
        Some(node) if known.iter().any(|one| one == node) => Ok(vec![node.to_owned()]),
        Some(node) => Err(Failure::usage(UnknownName::new("node", node, known).to_string()).into()),
    }
}

fn node_name(item: &Item<maint_core::facts::Node>) -> Option<String> {
    match item {
        Item::Good(node) => Some(node.metadata.name.clone()),
        Item::Malformed(malformed) => malformed.object.strip_prefix("Node ").map(str::to_owned),
    }
}

/// What this input cannot answer.
pub(super) fn not_asked(facts: &Facts) -> Vec<SourceId> {
    let mut sources = Vec::new();
    if matches!(facts.api_servers, Observation::NotAsked) {
        sources.push(SourceId::ApiServers);
    }
    if matches!(facts.matrix, Observation::NotAsked) {
        sources.push(SourceId::Matrix);
    }
    sources
}
