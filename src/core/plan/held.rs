//! Held: our cordon stays on purpose; the run goes on observing and waits for a person, or for the node to heal.
//!
//! A run that is `NotSettled` holds no cordon: it only keeps its place in the queue, and every text says so.

use super::Act;
use super::before_commit::returned;
use super::run::{LOOK_SECONDS, Run, SOON_SECONDS, Target};
use super::{returning, settle, verify};
use crate::api::{Moment, Outcome, Phase};
use crate::config::WhenHealed;
use crate::facts::Node;
use crate::planted::{self, Bug};

pub(super) fn step(run: &mut Run<'_>) {
    let node = match run.target() {
        Target::Here(node) => node,
        Target::Gone => return node_is_gone(run),
        Target::Unknown => return run.look_again_in(SOON_SECONDS),
    };
    if verify::restamp(run, node) {
        return;
    }
    if planted::is(Bug::RebootsAgain) {
        let name = format!("{}-again", run.action_pod_name());
        run.act(Act::CreateActionPod { name, node: node.metadata.name.clone(), boot_id: node.boot_id.clone() });
    }
    let unsettled = run.status.outcome == Outcome::NotSettled.as_str();
    let findings = run.findings(if unsettled { Moment::Settle } else { Moment::Verify });
    run.keep_findings(&findings);
    verify::note_matrix(run);
    if run.waits_for_unhalt("held") {
        return run.look_again_in(LOOK_SECONDS);
    }
    let on_hold = !run.hold_on(node).is_free();
    if let Some(word) = run.new_cancel().filter(|word| word.accept) {
        return accept_cancel(run, node, &word.by);
    }
    if let Some(word) = run.new_resume() {
        if !on_hold {
            return resume(run, node, &word.by, word.accept, unsettled);
        }
        run.heard_resume();
        let node = run.node_name();
        run.warn(format!("{} resumed it while the node is on hold: `maint release {node}` comes first", word.by));
    }
    if on_hold {
        return run.look_again_in(LOOK_SECONDS);
    }
    if run.status.outcome == Outcome::NodeOnHold.as_str() {
        return run.enter(Phase::Verifying, "the hold was released: proven anew");
    }
    if run.settings().when_healed == WhenHealed::Finish {
        let was_back = run.status.returned_at.is_some();
        if !was_back && returning::is_back(run, node, returning::action_state(run)) {
            returned(run, node);
            return run.enter(Phase::Verifying, "the node is back after all");
        }
        if was_back && verify::is_green(&findings) {
            return run.enter(Phase::Verifying, "what was broken is whole: proven anew");
        }
    }
    run.look_again_in(LOOK_SECONDS);
}

/// `maint resume`: proven anew; with `--accept` it goes on as if it were green, and the record says so for ever.
fn resume(run: &mut Run<'_>, node: &Node, by: &str, accept: bool, unsettled: bool) {
    if !accept {
        run.heard_resume();
        if run.status.returned_at.is_none() {
            returned(run, node);
        }
        return run.enter(Phase::Verifying, format!("{by} resumed it: proven anew"));
    }
    if unsettled {
        // The cordon is off already: nothing is left to do but to believe it.
        if let_go(run, node, false) {
            return;
        }
        run.heard_resume();
        run.warn(format!("{by} accepted it unsettled"));
        return run.end(Phase::Succeeded, Outcome::AcceptedUnproven.as_str(), format!("{by} accepted it unsettled"));
    }
    run.heard_resume();
    accept_unproven(run, by);
}

/// Goes on as if it were green.
pub(super) fn accept_unproven(run: &mut Run<'_>, by: &str) {
    run.warn(format!("{by} accepted it unproven"));
    by.clone_into(&mut run.status.accepted_by);
    run.enter(Phase::Uncordoning, format!("{by} accepted it unproven"));
}

fn accept_cancel(run: &mut Run<'_>, node: &Node, by: &str) {
    // A hold beats everything: then the cordon stays, as it does before commit.
    let keep = !run.hold_on(node).is_free();
    if let_go(run, node, keep) {
        return;
    }
    run.heard_cancel();
    // The taint follows the field later, by a controller.
    let cordon = if node.unschedulable { "; the node stays cordoned" } else { "" };
    let why = format!("{by} cancelled it and accepted the node unproven{cordon}");
    run.end(Phase::Cancelled, Outcome::AcceptedUnproven.as_str(), why);
}

/// Takes our cordon and our mark off the node; true while there is something to take.
pub(super) fn let_go(run: &mut Run<'_>, node: &Node, keep_cordon: bool) -> bool {
    if !run.is_marked_ours(node) {
        return false;
    }
    let (node_name, resource_version) = (node.metadata.name.clone(), node.metadata.resource_version.clone());
    run.act(if run.may_uncordon(node) && !keep_cordon && !planted::is(Bug::LeavesTheCordon) {
        Act::Uncordon { node: node_name, resource_version }
    } else {
        // The annotation is ours and the cordon is not, or it is to stay.
        Act::DropOwner { node: node_name, resource_version }
    });
    run.look_again_in(SOON_SECONDS);
    true
}

/// After commit the node is gone or another one: there is nothing left to prove.
pub(super) fn node_is_gone(run: &mut Run<'_>) {
    run.back_out(Outcome::NodeReplaced, Phase::Failed, "the Node object is gone or another one");
}

/// The node is on hold although it is proven.
pub(super) fn hold_for_hold(run: &mut Run<'_>, node: &Node, what: &str) -> bool {
    let why = match run.hold_on(node) {
        super::words::Standing::Free => return false,
        super::words::Standing::Said(by) => {
            format!("{what}, and {by} holds the node until `maint release {}`", run.node_name())
        }
        super::words::Standing::Unreadable(why) => format!("{what}, and nobody can tell whether it is held: {why}"),
    };
    settle::note_cordon(run, node);
    run.hold(Outcome::NodeOnHold.as_str(), "warning", why);
    true
}
