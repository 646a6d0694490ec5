//! `maint plan`: what would be done with a node, or which node comes next. Changes nothing.

use std::fmt::Write as _;

use clap::Args;
use maint_core::api::Trigger;
use maint_core::config::Scope;
use maint_core::facts::{Facts, Observation};
use maint_core::jiff::Timestamp;
use maint_core::preview::{self, Input as Question};
use maint_core::report::{self, PlanHead, PlanOrderReport, PlanReport};

use super::check::{not_asked, targets};
use super::cluster::Session;
use super::input::{Gathered, Input, machine_clock, quoted};
use super::{Common, Exit, Failure, Output, terminal, time};

/// Shown below `maint plan --help`.
const HELP: &str = "\
Examples:
  maint plan worker2                                 the whole plan: who acts, when, the drain, every step
  maint plan worker2 --at 2026-12-05T01:00:00Z       as if it were that time for windows, halt and holds
  maint plan                                         which node comes next
  maint plan worker2 --from DUMP                     from a saved cluster

It ends as check does: 0 if a run could begin, 3 if something blocks it or its drain could never end, 4 if something
could not be judged; of several nodes the worst of that.";

/// Arguments of `plan`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct Plan {
    /// The node; without it, the order in which nodes would be taken
    node: Option<String>,
    /// Judge windows, halt and holds as if it were this time, such as 2026-01-31T23:59:59Z; the rest is as it is now
    #[arg(long, value_name = "TIME", value_parser = time::instant)]
    at: Option<Timestamp>,
    /// Why the node is to be maintained; else as the record says that waits, else reboot
    #[arg(long, value_name = "NAME")]
    scope: Option<String>,
    /// Plan as for a person who asks; else as for an unattended run, or as the record says that waits
    #[arg(long)]
    manual: bool,
    #[command(flatten)]
    input: Input,
}

impl Plan {
    /// Runs it.
    ///
    /// # Errors
    /// If there is nothing to look at, or no such node or scope.
    pub async fn run(&self, common: &Common) -> anyhow::Result<Exit> {
        let settings = common.settings()?;
        if let Some(scope) = &self.scope {
            Scope::find(&settings, scope).map_err(|unknown| Failure::usage(unknown.to_string()))?;
        }
        let gathered = self.input.gather(common, &settings, preview::sources(&settings), self.node.as_deref()).await?;
        let leader = if self.input.is_live() { leader(common, &gathered.facts).await } else { None };
        let question = Question {
            facts: &gathered.facts,
            settings: &settings,
            leader: leader.as_deref(),
            scope: self.scope.as_deref(),
            manual: self.manual,
            now: gathered.now,
            at: self.at,
        };
        match &self.node {
            Some(node) => self.one(common, &gathered, &question, node),
            None => self.all(common, &gathered, &question),
        }
    }

    fn one(&self, common: &Common, gathered: &Gathered, question: &Question<'_>, node: &str) -> anyhow::Result<Exit> {
        targets(question.facts, Some(node))?;
        let preview = preview::node(question, node).map_err(|unknown| scope_of_a_record(&unknown.to_string()))?;
        let mut command = format!("maint check {}", quoted(node));
        if preview.scope.name != Scope::DEFAULT {
            let _ = write!(command, " --scope {}", quoted(&preview.scope.name));
        }
        if preview.trigger == Trigger::Manual {
            command.push_str(" --manual");
        }
        command.push_str(&self.input.arguments());
        command.push_str(&common.arguments());
        let report =
            PlanReport::new(self.head(gathered), preview, command, question.settings.expected_duration_seconds);
        match common.output {
            Output::Text => terminal::data(&report::plan(&report, common.paint()))?,
            Output::Json => terminal::json(&report)?,
        }
        Ok(report.verdict.into())
    }

    fn all(&self, common: &Common, gathered: &Gathered, question: &Question<'_>) -> anyhow::Result<Exit> {
        let all = targets(question.facts, None)?;
        let candidates = preview::candidates(question, &all);
        let mut previews = Vec::with_capacity(candidates.nodes.len());
        for candidate in &candidates.nodes {
            let preview = preview::node(question, &candidate.node);
            previews.push(preview.map_err(|unknown| scope_of_a_record(&unknown.to_string()))?);
        }
        let leader = question.leader.map(str::to_owned);
        let limit = question.settings.max_nodes_per_window;
        let mut arguments = String::new();
        if let Some(scope) = &self.scope {
            let _ = write!(arguments, " --scope {}", quoted(scope));
        }
        if self.manual {
            arguments.push_str(" --manual");
        }
        if let Some(at) = self.at {
            let _ = write!(arguments, " --at {at}");
        }
        arguments.push_str(&self.input.arguments());
        arguments.push_str(&common.arguments());
        let report = PlanOrderReport::new(self.head(gathered), candidates, previews, leader, limit, arguments);
        match common.output {
            Output::Text => terminal::data(&report::order(&report, common.paint()))?,
            Output::Json => terminal::json(&report)?,
        }
        Ok(report.verdict.into())
    }

    fn head(&self, gathered: &Gathered) -> PlanHead {
        let Gathered { facts, now, origin } = gathered;
        PlanHead::new(machine_clock(), *now, self.at, origin.clone(), &not_asked(facts))
    }
}

/// A record that waits has a scope that these settings do not know: the leader's are other ones.
fn scope_of_a_record(unknown: &str) -> Failure {
    Failure::usage(format!(
        "a record that waits: {unknown}\n  what helps: --config with the leader's configuration, or --scope NAME"
    ))
}

/// The node of the leader's pod. Not knowing it changes the order of wishes only, so nothing of it is an error.
async fn leader(common: &Common, facts: &Facts) -> Option<String> {
    let session = Session::open(common).await.ok()?;
    let Observation::Known { value: lease, .. } = session.lease().await else { return None };
    // The identity is the pod's name, `_` and a random end.
    let (pod, _) = lease.holder.rsplit_once('_')?;
    facts.own_pods.good().find(|own| own.metadata.name == pod)?.node_name.clone()
}
