//! Cordoning, Draining, Acting: whatever goes wrong here ends in BackingOut.

use super::drain::{self, Drained};
use super::run::{LOOK_SECONDS, Run, SOON_SECONDS, Target};
use super::time::{after, parse_time, stamp};
use super::{Act, owned};
use crate::api::Owner;
use crate::api::record::Intent;
use crate::api::{Action, Finding, GateId, MessageKind, Moment, Outcome, Phase, Status, Strategy};
use crate::facts::Node;

pub(super) fn cordoning(run: &mut Run<'_>) {
    let Some((node, findings)) = still_ours_to_do(run, Moment::Cordoned, false) else { return };
    if !holds_up(run, &findings) {
        return;
    }
    if owned::owner_of(node).is_some_and(|owner| owner == owner_now(run)) && node.is_cordoned() {
        match run.strategy() {
            Strategy::Drain => run.enter(Phase::Draining, "cordoned; pods are evicted"),
            Strategy::CordonOnly => run.enter(Phase::Acting, "cordoned; no pod is evicted"),
        }
        return;
    }
    run.act(cordon(run, node));
    run.look_again_in(SOON_SECONDS);
}

pub(super) fn draining(run: &mut Run<'_>) {
    let Some((node, findings)) = still_ours_to_do(run, Moment::Cordoned, true) else { return };
    if restamp(run, node) {
        return;
    }
    let drained = drain::look(run);
    if run.is_late() {
        let why = format!("pods did not go in time: {}", drain::waiting_line(run));
        return run.back_out(Outcome::DrainDeadline, Phase::Failed, why);
    }
    if !holds_up(run, &findings) {
        return;
    }
    match drained {
        Drained::Unknown => run.look_again_in(SOON_SECONDS),
        Drained::Empty => run.enter(Phase::Acting, "drained"),
        Drained::Waiting => run.look_again_in(SOON_SECONDS),
        Drained::Evict(next) => {
            run.act(Act::Evict(next));
            run.look_again_in(SOON_SECONDS);
        }
    }
}

pub(super) fn acting(run: &mut Run<'_>) {
    // Whether it is committed comes first: after commit nothing is put back.
    match run.action() {
        Ok(Action::Pod) => match run.action_pod() {
            None => return run.look_again_in(SOON_SECONDS),
            Some(Some(_)) if run.status.intent.is_some() => return commit(run, "the action pod was created"),
            Some(_) => {}
        },
        Ok(Action::External) => {
            if run.input.record.spec.claimed.is_some() && run.status.intent.is_some() {
                return commit(run, "the command was claimed");
            }
        }
        Err(error) => return run.back_out(Outcome::ActionNotStarted, Phase::Failed, error.to_string()),
    }
    let Some((node, findings)) = still_ours_to_do(run, Moment::Handover, true) else { return };
    if restamp(run, node) {
        return;
    }
    if !holds_up(run, &findings) {
        // A go that was given and not taken is withdrawn: the same write makes the claim fail.
        run.status.intent = None;
        return;
    }
    hand_over(run, node);
}

/// The intent is written first; with it in the record, the act follows in the next step.
fn hand_over(run: &mut Run<'_>, node: &Node) {
    let now = run.input.now;
    let intended = run.status.intent.as_ref().is_some_and(|intent| intent.boot_id == node.boot_id);
    let external = matches!(run.action(), Ok(Action::External));
    if !intended || external {
        let first = !intended;
        let at = run.status.intent.as_ref().filter(|_| intended).map_or_else(|| stamp(now), |intent| intent.at.clone());
        run.status.intent = Some(Intent {
            boot_id: node.boot_id.clone(),
            at,
            valid_until: stamp(after(now, run.settings().go_seconds)),
        });
        if first {
            run.note(format!("gates agree: boot {} may be replaced", node.boot_id));
            if external && !run.input.record.spec.command_waits {
                // It is told to a person, and from then on he may have acted.
                let text = format!("GO: act on {} now, then: maint done {}", run.node_name(), run.name());
                run.tell(MessageKind::Go, "info", text);
                return commit(run, "a person was told to act");
            }
        }
        run.look_again_in(if external { LOOK_SECONDS.min(run.settings().go_seconds / 3) } else { 0 });
        return;
    }
    run.act(Act::CreateActionPod {
        name: run.action_pod_name(),
        node: run.node_name().to_owned(),
        boot_id: node.boot_id.clone(),
    });
    run.look_again_in(SOON_SECONDS);
}

pub(super) fn commit(run: &mut Run<'_>, why: &str) {
    run.status.committed_at = Some(stamp(run.input.now));
    run.enter(Phase::Returning, format!("committed: {why}"));
}

fn owner_now(run: &Run<'_>) -> Owner {
    Owner { maintenance: run.uid().to_owned(), term: run.input.term }
}

fn cordon(run: &Run<'_>, node: &Node) -> Act {
    Act::Cordon {
        node: node.metadata.name.clone(),
        resource_version: node.metadata.resource_version.clone(),
        owner: owner_now(run),
    }
}

/// A new leader writes its term into the owner annotation before it goes on.
fn restamp(run: &mut Run<'_>, node: &Node) -> bool {
    if owned::owner_of(node).is_some_and(|owner| owner.term != run.input.term) {
        run.act(cordon(run, node));
        run.look_again_in(SOON_SECONDS);
        return true;
    }
    false
}

/// What ends a run before commit, in the order of precedence of run.md section 4. `None`: it was decided here.
fn still_ours_to_do<'a>(run: &mut Run<'a>, moment: Moment, cordoned: bool) -> Option<(&'a Node, Vec<Finding>)> {
    if run.deleted() {
        run.back_out(Outcome::RecordDeleted, Phase::Cancelled, "the record was deleted");
        return None;
    }
    if let Some(word) = &run.input.record.spec.cancel {
        let why = format!("cancelled by {}", word.by);
        run.back_out(Outcome::Cancelled, Phase::Cancelled, why);
        return None;
    }
    let node = match run.target() {
        Target::Here(node) => node,
        Target::Gone => {
            run.back_out(Outcome::NodeReplaced, Phase::Failed, "the Node object is gone or another one");
            return None;
        }
        Target::Unknown => {
            // Nothing is written on what is not known; deadlines run on.
            run.look_again_in(SOON_SECONDS);
            return None;
        }
    };
    if node.boot_id != run.boot_id_before() {
        run.status.intent = None;
        run.warn("the node booted anew before we acted (power loss, or a person)");
        run.status.outcome = Outcome::RebootedElsewhere.as_str().to_owned();
        returned(run, node);
        run.enter(Phase::Verifying, "rebooted elsewhere; it is proven all the same");
        return None;
    }
    let findings = run.findings(moment);
    run.keep_findings(&findings);
    if Run::is_on_hold(&findings) {
        run.back_out(Outcome::NodeOnHold, Phase::Cancelled, "somebody holds the node; its cordon stays");
        return None;
    }
    if cordoned && !(run.is_our_cordon(node) || (run.was_unschedulable() && run.is_marked_ours(node))) {
        let why = if node.is_cordoned() { "somebody took the cordon over" } else { "somebody took our cordon off" };
        run.back_out(Outcome::CordonRemoved, Phase::Failed, why);
        return None;
    }
    if halted(run, &findings) {
        return None;
    }
    let lost = findings.iter().find(|finding| {
        matches!(finding.gate, GateId::NodesReady | GateId::Exclusive) && finding.status == Status::Block
    });
    if let Some(finding) = lost {
        let why = finding.message.clone();
        run.back_out(Outcome::OtherNodeUnavailable, Phase::Failed, why);
        return None;
    }
    Some((node, findings))
}

/// Under a halt nothing of ours happens, and no deadline passes: they are moved by the length of the halt.
fn halted(run: &mut Run<'_>, findings: &[Finding]) -> bool {
    let now = run.input.now;
    if Run::is_halted(findings) {
        if run.status.halted_since.is_none() {
            run.status.halted_since = Some(stamp(now));
            run.status.intent = None;
            run.note("halted: the node is left as it is until unhalt or cancel");
            run.status.message = "halted: the node is left as it is until unhalt or cancel".to_owned();
        }
        run.look_again_in(LOOK_SECONDS);
        return true;
    }
    if let Some(since) = parse_time(run.status.halted_since.take().as_ref()) {
        let pause = now.duration_since(since).as_secs().max(0);
        for text in [&mut run.status.deadline, &mut run.status.blocked_since] {
            if let Some(at) = parse_time(text.as_ref()) {
                *text = Some(stamp(after(at, pause)));
            }
        }
        run.note(format!("goes on after a halt of {pause} s"));
    }
    false
}

/// Whether the gates agree. While they do not: no eviction, no act; after the limit everything is put back.
fn holds_up(run: &mut Run<'_>, findings: &[Finding]) -> bool {
    let Some(worst) = Run::worst(findings) else {
        run.status.blocked_since = None;
        return true;
    };
    let now = run.input.now;
    let why = format!("{} ({}): {}", worst.gate, worst.reason, worst.message);
    let limit = run.status.limits.as_ref().map_or(0, |limits| limits.handover_seconds);
    let since = parse_time(run.status.blocked_since.as_ref()).unwrap_or(now);
    run.status.blocked_since = Some(stamp(since));
    if now >= after(since, limit) {
        let text = format!("gates did not agree within {limit} s: {why}");
        run.back_out(Outcome::HandoverTimeout, Phase::Failed, text);
    } else {
        run.look_again_in(LOOK_SECONDS);
    }
    false
}

/// Records the node's return.
pub(super) fn returned(run: &mut Run<'_>, node: &Node) {
    run.status.returned_at = Some(stamp(run.input.now));
    if let Some(record) = &mut run.status.node {
        record.boot_id_after.clone_from(&node.boot_id);
        record.kernel_after.clone_from(&node.kernel_version);
    }
}
