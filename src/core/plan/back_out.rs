//! BackingOut: puts back what is ours. Nothing is left of the run when it ends.
//!
//! A halt keeps it waiting, unless somebody cancelled this run: then his word is the later one to be obeyed. A hold,
//! also one that cannot be read, keeps the cordon. A request to create the action pod may still be on its way when it
//! is called off: an API server works on a request for up to 60 s, so the node stays cordoned that long, in case the
//! pod appears.

use super::before_commit::commit;
use super::held::let_go;
use super::run::{ActionPod, LOOK_SECONDS, Run, SOON_SECONDS, Target};
use super::time::{after, parse_time};
use super::words::Standing;
use super::{Act, closing, taken};
use crate::api::{Action, MessageKind, Outcome, Phase};
use crate::facts::Node;

/// `--request-timeout` of kube-apiserver: a create that was sent is done or refused by then. In seconds.
const LATE_CREATE_SECONDS: i64 = 60;
/// Stands before the message while it waits for unhalt.
const HALTED: &str = "waits for unhalt or cancel: ";

pub(super) fn step(run: &mut Run<'_>) {
    let node = match run.target() {
        Target::Here(node) => Some(node),
        Target::Gone => None,
        Target::Unknown => return run.look_again_in(SOON_SECONDS),
    };
    if let Some(node) = node
        && (taken::is_taken(run) || taken::booted_on_it(run, node) || acted_already(run))
    {
        return;
    }
    // Before anything else is put back, and under a halt too: it is no new act on the node.
    if !closing::is_closed(run, node) {
        let what = run.status.message.clone();
        run.tell_if_slow(MessageKind::Held, "critical", &what);
        return;
    }
    if waits(run) {
        return run.look_again_in(LOOK_SECONDS);
    }
    match node {
        Some(node) => {
            if may_come_late(run) {
                return run.look_again_in(SOON_SECONDS);
            }
            if put_back(run, node) {
                return;
            }
        }
        // What is left of a node that is gone: the pod that was to act on it.
        None => match run.action_pod() {
            ActionPod::Unreadable => return run.look_again_in(SOON_SECONDS),
            ActionPod::There(pod) => {
                run.act(Act::DeleteActionPod { name: pod.metadata.name.clone(), uid: pod.metadata.uid.clone() });
                return run.look_again_in(SOON_SECONDS);
            }
            ActionPod::Missing => {}
        },
    }
    // Whatever the record says, backing out is never a success.
    let ends_as = if run.status.ends_as == Phase::Cancelled.as_str() { Phase::Cancelled } else { Phase::Failed };
    let (outcome, why) = (run.status.outcome.clone(), why(run));
    if run.closing().is_some() {
        let until = run.until_spent();
        run.warn(format!("kured's lock stays ours {until}"));
    }
    run.end(ends_as, &outcome, why);
}

/// Why it is put back; the message may say what it waits for.
fn why(run: &Run<'_>) -> String {
    let status = &run.status;
    if status.ends_because.is_empty() { status.message.clone() } else { status.ends_because.clone() }
}

/// Whether a halt keeps it still.
fn waits(run: &mut Run<'_>) -> bool {
    let why = why(run);
    let waits = !run.halt().is_free() && run.input.record.spec.cancel.is_none();
    run.status.message = if waits { format!("{HALTED}{why}") } else { why };
    waits
}

fn put_back(run: &mut Run<'_>, node: &Node) -> bool {
    if node.boot_id != run.boot_id_before() && !node.boot_id.is_empty() {
        run.warn("the node booted anew while it was put back: run `maint post-check`");
    }
    let on_hold = run.hold_on(node);
    if let Standing::Unreadable(why) = &on_hold {
        run.warn(format!("the cordon stays: {why}"));
    }
    let keep = !on_hold.is_free() || run.status.outcome == Outcome::NodeOnHold.as_str();
    if let_go(run, node, keep) {
        return true;
    }
    let wanted = keep || run.was_unschedulable();
    if node.unschedulable && !on_hold.is_free() && !run.was_unschedulable() {
        run.warn(format!(
            "the node stays cordoned, since it is on hold; once it is free: kubectl uncordon {}",
            run.node_name()
        ));
    }
    if node.unschedulable && !wanted {
        run.warn("the node stays cordoned: that cordon is not ours");
    }
    false
}

/// Closing the grant lost the race: the act was on its way before we took it back. Then nothing is undone.
fn acted_already(run: &mut Run<'_>) -> bool {
    if run.status.offered_at.is_none() {
        return false;
    }
    match run.action() {
        Ok(Action::Pod) => match run.action_pod() {
            ActionPod::Unreadable => {
                run.look_again_in(SOON_SECONDS);
                true
            }
            ActionPod::There(_) => {
                commit(run, "the action pod was there before it could be called off");
                true
            }
            ActionPod::Missing => false,
        },
        Ok(Action::External) if run.was_taken() => {
            commit(run, "the command was taken before it could be called off");
            true
        }
        _ => false,
    }
}

fn may_come_late(run: &Run<'_>) -> bool {
    let asked = run.status.offered_at.is_some() && matches!(run.action(), Ok(Action::Pod));
    let since = parse_time(run.status.step_started_at.as_ref());
    asked && since.is_some_and(|since| run.input.now < after(since, LATE_CREATE_SECONDS))
}
