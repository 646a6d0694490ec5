//! BackingOut: puts back what is ours. Nothing is left of the run when it ends.

use super::Act;
use super::before_commit::commit;
use super::run::{Run, SOON_SECONDS, Target};
use crate::api::{Action, Outcome, Phase};

pub(super) fn step(run: &mut Run<'_>) {
    let gone = matches!(run.target(), Target::Gone);
    if !gone && acted_already(run) {
        return;
    }
    let node = match run.target() {
        Target::Here(node) => Some(node),
        Target::Gone => None,
        Target::Unknown => return run.look_again_in(SOON_SECONDS),
    };
    if gone && let Some(Some(pod)) = run.action_pod() {
        run.act(Act::DeleteActionPod { name: pod.metadata.name.clone(), uid: pod.metadata.uid.clone() });
        return run.look_again_in(SOON_SECONDS);
    }
    if let Some(node) = node
        && run.is_marked_ours(node)
    {
        let keep = run.was_unschedulable() || run.status.outcome == Outcome::NodeOnHold.as_str();
        let (node_name, version) = (node.metadata.name.clone(), node.metadata.resource_version.clone());
        run.act(if run.is_our_cordon(node) && !keep {
            Act::Uncordon { node: node_name, resource_version: version }
        } else {
            Act::DropOwner { node: node_name, resource_version: version }
        });
        return run.look_again_in(SOON_SECONDS);
    }
    let ends_as = run.status.ends_as.parse().unwrap_or(Phase::Failed);
    let (outcome, why) = (run.status.outcome.clone(), run.status.message.clone());
    run.end(ends_as, &outcome, why);
}

/// Closing the grant lost the race: the act was on its way before we took it back. Then nothing is undone.
fn acted_already(run: &mut Run<'_>) -> bool {
    match run.action() {
        Ok(Action::Pod) => match run.action_pod() {
            None => {
                run.look_again_in(SOON_SECONDS);
                true
            }
            Some(Some(_)) => {
                commit(run, "the action pod was there before it could be called off");
                true
            }
            Some(None) => false,
        },
        Ok(Action::External) if run.input.record.spec.claimed.is_some() => {
            commit(run, "the command was claimed before it could be called off");
            true
        }
        _ => false,
    }
}
