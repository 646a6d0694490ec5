//! What a run would do, step by step.

use serde::Serialize;

use super::Drain;
use crate::api::{Action, Phase, Strategy};
use crate::config::Settings;
use crate::drain::{count, length};
use crate::gates::GateInput;

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The phase.
    pub phase: Phase,
    /// What is done in it.
    pub what: String,
    /// Seconds that it may take.
    pub limit_seconds: Option<i64>,
    /// What follows if it takes longer.
    pub late: Option<&'static str>,
}

/// Before commit.
const PUT_BACK: &str = "else everything is put back";
/// After commit.
const HELD: &str = "else the node is held, cordoned, and a person is told";

pub(super) fn steps(
    settings: &Settings,
    question: &GateInput<'_>,
    action: Option<Action>,
    drain: Option<&Drain>,
) -> Vec<Step> {
    let run = &settings.run;
    let (node, reboots) = (question.target, question.scope.reboots);
    let step = |phase, what: String, limit: Option<i64>, late| Step {
        phase,
        what,
        limit_seconds: limit,
        late: limit.map(|_| late),
    };
    let comes_back = if reboots { "Ready with a new boot ID" } else { "Ready, and the end of what was done" };
    vec![
        step(Phase::Cordoning, cordon(question, action), Some(run.handover_timeout_seconds), PUT_BACK),
        match question.strategy {
            Strategy::Drain => step(Phase::Draining, drained(drain), Some(run.drain_timeout_seconds), PUT_BACK),
            Strategy::CordonOnly => step(Phase::Draining, "evict no pod".to_owned(), None, PUT_BACK),
        },
        step(
            Phase::Acting,
            format!("ask all gates anew, then {}; once that has begun nothing is undone", act(settings, node, action)),
            Some(run.handover_timeout_seconds),
            "if it has not begun by then everything is put back",
        ),
        step(Phase::Returning, format!("wait for {node} to be {comes_back}"), Some(run.return_timeout_seconds), HELD),
        step(
            Phase::Verifying,
            format!(
                "prove it: every API server reaches its kubelet, {} sweeps in a row; its DaemonSets are back",
                run.sweeps
            ),
            Some(run.verify_timeout_seconds),
            HELD,
        ),
        step(Phase::Uncordoning, uncordon(question), None, HELD),
        step(
            Phase::Settling,
            format!(
                "wait until the cluster is whole, for {} s on end; only then the next node",
                run.settle_for_seconds
            ),
            Some(run.settle_timeout_seconds),
            "without progress it is held, and a person is told",
        ),
    ]
}

/// It is unschedulable already, by whomever.
fn is_cordoned(question: &GateInput<'_>) -> bool {
    question.facts.nodes.good().any(|node| node.metadata.name == question.target && node.unschedulable)
}

fn cordon(question: &GateInput<'_>, action: Option<Action>) -> String {
    let node = question.target;
    let already = if is_cordoned(question) { " (it is cordoned already)" } else { "" };
    let lock = match action {
        Some(Action::Pod | Action::External) => "; where kured is installed, hold its lock meanwhile",
        Some(Action::Kured) | None => "",
    };
    format!("cordon {node}{already}{lock}")
}

fn drained(drain: Option<&Drain>) -> String {
    let Some(Drain::Planned(plan)) = drain else { return "evict its pods: which ones is not known".to_owned() };
    let pods = count(plan.planned(), "pod");
    if !plan.never.is_empty() {
        let all = plan.planned() + plan.never.len();
        return format!("evict its pods, in vain: {} of {all} can never go", plan.never.len());
    }
    match (plan.planned(), plan.estimate_seconds) {
        (0, _) => "evict no pod: none has to go".to_owned(),
        (_, Some(seconds)) => {
            format!("evict {pods} in {}, about {}", count(plan.waves.len(), "wave"), length(seconds))
        }
        (_, None) if !plan.unknown.is_empty() => format!("evict {pods}: whether they may go is not known"),
        (_, None) => format!("evict {pods}, and wait for the budgets that allow none now"),
    }
}

fn act(settings: &Settings, node: &str, action: Option<Action>) -> String {
    match action {
        Some(Action::Kured) => format!("let kured reboot {node}, once, when it asks after the cordon"),
        Some(Action::Pod) => format!("run `{}` on {node} by a pod", settings.action.pod.command.join(" ")),
        Some(Action::External) => {
            format!("let the command of `maint run` begin, or you: then say `maint done`; nobody else touches {node}")
        }
        None => format!("nobody could make {node} go down"),
    }
}

fn uncordon(question: &GateInput<'_>) -> String {
    if is_cordoned(question) {
        format!("leave the cordon of {} to who set it", question.target)
    } else {
        format!("uncordon {}", question.target)
    }
}
