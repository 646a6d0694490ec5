//! Held: our cordon stays on purpose; the run goes on observing and waits for a person, or for the node to heal.

use super::before_commit::returned;
use super::returning;
use super::run::{LOOK_SECONDS, Run, SOON_SECONDS, Target};
use super::{Act, verify};
use crate::api::{Moment, Outcome, Phase};
use crate::config::WhenHealed;
use crate::facts::Node;

pub(super) fn step(run: &mut Run<'_>) {
    let node = match run.target() {
        Target::Here(node) => node,
        Target::Gone => return node_is_gone(run),
        Target::Unknown => return run.look_again_in(SOON_SECONDS),
    };
    if verify::restamp(run, node) {
        return;
    }
    let findings = run.findings(Moment::Verify);
    run.keep_findings(&findings);
    verify::note_matrix(run);
    if Run::is_halted(&findings) {
        run.status.message = "held, and halted: nothing moves until unhalt".to_owned();
        return run.look_again_in(LOOK_SECONDS);
    }
    if let Some(word) = run.fresh(run.input.record.spec.cancel.as_ref()).filter(|word| word.accept) {
        let by = word.by.clone();
        return accept_cancel(run, node, &by);
    }
    let on_hold = Run::is_on_hold(&findings);
    if let Some(word) = run.fresh(run.input.record.spec.resume.as_ref()) {
        let (by, accept) = (word.by.clone(), word.accept);
        if on_hold {
            run.warn(format!("{by} resumed while the node is on hold: `maint release` comes first"));
        } else if accept {
            run.warn(format!("accepted unproven by {by}"));
            return run.enter(Phase::Uncordoning, format!("{by} accepted it unproven"));
        } else {
            return run.enter(Phase::Verifying, format!("{by} resumed it: proven anew"));
        }
    }
    if run.status.outcome == Outcome::NodeOnHold.as_str() {
        if !on_hold {
            return run.enter(Phase::Verifying, "the hold was released: proven anew");
        }
        return run.look_again_in(LOOK_SECONDS);
    }
    let back = returning::is_back(run, node, returning::action_state(run));
    let was_back = run.status.returned_at.is_some();
    if run.settings().when_healed == WhenHealed::Finish && !on_hold && (back || was_back) {
        if !was_back {
            returned(run, node);
            return run.enter(Phase::Verifying, "the node is back after all");
        }
        if verify::is_green(&findings) && run.status.outcome != Outcome::NotSettled.as_str() {
            return run.enter(Phase::Verifying, "what was broken is whole: proven anew");
        }
        if run.status.outcome == Outcome::NotSettled.as_str() {
            let settled = run.findings(Moment::Settle);
            if Run::worst(&settled).is_none() {
                return run.enter(Phase::Settling, "the cluster is whole after all");
            }
        }
    }
    run.look_again_in(LOOK_SECONDS);
}

fn accept_cancel(run: &mut Run<'_>, node: &Node, by: &str) {
    if run.is_our_cordon(node) && !run.was_unschedulable() {
        run.act(Act::Uncordon {
            node: node.metadata.name.clone(),
            resource_version: node.metadata.resource_version.clone(),
        });
        return run.look_again_in(SOON_SECONDS);
    }
    if run.is_marked_ours(node) {
        run.act(Act::DropOwner {
            node: node.metadata.name.clone(),
            resource_version: node.metadata.resource_version.clone(),
        });
        return run.look_again_in(SOON_SECONDS);
    }
    let why = format!("{by} cancelled it and accepted the node unproven");
    run.end(Phase::Cancelled, Outcome::AcceptedUnproven.as_str(), why);
}

/// After commit the node is gone or another one: there is nothing left to prove.
pub(super) fn node_is_gone(run: &mut Run<'_>) {
    run.back_out(Outcome::NodeReplaced, Phase::Failed, "the Node object is gone or another one");
}
