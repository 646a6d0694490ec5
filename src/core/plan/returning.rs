//! Returning: the node goes down and comes back. Only a new boot ID proves a reboot.
//!
//! A scope without a reboot is held as soon as its action reports failure. With a reboot only the deadline tells: the
//! reboot itself ends the pod or cuts the connection of the command that ordered it, and both then report failure.

use super::before_commit::returned;
use super::run::{ActionPod, Run, SOON_SECONDS, Target};
use super::{held, taken};
use crate::api::{Action, Outcome, Phase};
use crate::facts::Node;
use crate::planted::{self, Bug};

pub(super) fn step(run: &mut Run<'_>) {
    let node = match run.target() {
        Target::Here(node) => node,
        Target::Gone => return held::node_is_gone(run),
        Target::Unknown => return run.look_again_in(SOON_SECONDS),
    };
    if super::verify::restamp(run, node) {
        return;
    }
    if taken::lock_gone(run, node) {
        return;
    }
    let action = action_state(run);
    if is_back(run, node, action) {
        returned(run, node);
        if run.status.reboots {
            let why = format!("back with boot {} (was {})", node.boot_id, run.boot_id_before());
            return run.enter(Phase::Verifying, why);
        }
        return run.enter(Phase::Verifying, "the action is over and the node is Ready");
    }
    if action == ActionState::Failed && !run.status.reboots {
        run.warn("the action reported failure");
        return run.hold(Outcome::ActionFailed.as_str(), "critical", "the action reported failure");
    }
    if run.is_late() {
        let (outcome, why) = late(run, node, action);
        return run.hold(outcome.as_str(), "critical", why);
    }
    run.look_again_in(SOON_SECONDS);
}

/// Whether the node did what the scope asks and is Ready.
pub(super) fn is_back(run: &Run<'_>, node: &Node, action: ActionState) -> bool {
    let acted = if run.status.reboots { run.has_new_boot(node) } else { action == ActionState::Succeeded };
    (acted || planted::is(Bug::TakesOldBoot)) && Run::is_ready(node)
}

fn late(run: &Run<'_>, node: &Node, action: ActionState) -> (Outcome, String) {
    let limit = run.status.limits.as_ref().map_or(0, |limits| limits.return_seconds);
    if !Run::is_ready(node) {
        return (Outcome::NodeNotBack, format!("not Ready {limit} s after the act"));
    }
    if action == ActionState::Failed {
        return (Outcome::ActionFailed, "the action reported failure and the boot ID is the same".to_owned());
    }
    if run.status.reboots {
        return (Outcome::NodeDidNotReboot, format!("Ready after {limit} s with the boot ID it had"));
    }
    (Outcome::ActionFailed, format!("the action did not end within {limit} s"))
}

/// How far the action is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ActionState {
    /// At work, or not to be seen.
    Running,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
}

pub(super) fn action_state(run: &Run<'_>) -> ActionState {
    match run.action() {
        Ok(Action::External) => match &run.input.record.spec.action_done {
            None => ActionState::Running,
            Some(word) if word.failed => ActionState::Failed,
            Some(_) => ActionState::Succeeded,
        },
        Ok(Action::Pod) => match run.action_pod() {
            ActionPod::There(pod) if pod.phase == "Succeeded" => ActionState::Succeeded,
            ActionPod::There(pod) if pod.phase == "Failed" => ActionState::Failed,
            _ => ActionState::Running,
        },
        Ok(Action::Kured) | Err(_) => ActionState::Running,
    }
}
