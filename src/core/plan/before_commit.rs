//! Cordoning, Draining, Acting: whatever goes wrong here ends in BackingOut.

use super::drain::{self, Drained};
use super::run::{ActionPod, LOOK_SECONDS, Run, SOON_SECONDS, Target};
use super::time::{after, parse_time, stamp};
use super::words::Standing;
use super::{Act, closing, grant, owned, taken};
use crate::api::record::Intent;
use crate::api::{Action, Finding, GateId, MessageKind, Moment, Outcome, Owner, Phase, Reason, Status, Strategy};
use crate::facts::Node;
use crate::planted::{self, Bug};

/// Pods that are named of those that came back.
const SHOWN: usize = 20;

pub(super) fn cordoning(run: &mut Run<'_>) {
    if taken::is_taken(run) {
        return;
    }
    let Some((node, mut findings)) = still_ours_to_do(run, Moment::Cordoned, false) else { return };
    let (marked, was) = (run.is_marked_ours(node), run.was_unschedulable());
    if marked && !still_cordoned(run, node) {
        return cordon_lost(run, node);
    }
    if !marked && node.unschedulable != was {
        // Since the gates agreed somebody else cordoned it, or lifted the cordon that a person had let stay.
        let (outcome, why) = if was {
            (Outcome::CordonRemoved.as_str(), "somebody took off the cordon that was there")
        } else {
            (Reason::TargetCordonedByOther.as_str(), "somebody else cordoned the node first")
        };
        return run.back_out_for(outcome, Phase::Failed, why);
    }
    // Gate `target` asks for the cordon that this phase is about to write; it is judged above.
    findings.retain(|finding| finding.gate != GateId::Target);
    if !holds_up(run, &findings) {
        return;
    }
    if marked && owned::owner_of(node).is_some_and(|owner| owner == owner_now(run)) {
        // What kured asks from now on, it asks with the cordon seen.
        run.raise_epoch();
        return match run.strategy() {
            Strategy::Drain => run.enter(Phase::Draining, "cordoned; pods are evicted"),
            Strategy::CordonOnly if planted::is(Bug::CordonOnlyEvicts) => run.enter(Phase::Draining, "cordoned"),
            Strategy::CordonOnly => run.enter(Phase::Acting, "cordoned; no pod is evicted"),
        };
    }
    if run.is_late() {
        return run.back_out(Outcome::HandoverTimeout, Phase::Failed, "the cordon could not be written in time");
    }
    run.act(cordon(run, node));
    run.look_again_in(SOON_SECONDS);
}

pub(super) fn draining(run: &mut Run<'_>) {
    if taken::is_taken(run) {
        return;
    }
    let Some((node, findings)) = still_ours_to_do(run, Moment::Cordoned, true) else {
        if run.status.phase != Phase::Draining.as_str() {
            drain::count_at_last(run);
        }
        return;
    };
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
        Drained::Empty => run.enter(Phase::Acting, "drained"),
        Drained::Unknown => run.look_again_in(SOON_SECONDS),
        // When to look again is said already.
        Drained::Goes(next, awaits) => drain::go_on(run, next, awaits),
        Drained::Never(why) => run.back_out(Outcome::EvictionsRefused, Phase::Failed, why),
    }
}

pub(super) fn acting(run: &mut Run<'_>) {
    // Whether it is committed comes first: after commit nothing is put back.
    if taken::is_taken(run) {
        return;
    }
    match run.action() {
        Ok(Action::Pod) => match run.action_pod() {
            ActionPod::Unreadable => return run.look_again_in(SOON_SECONDS),
            ActionPod::There(_) if run.status.offered_at.is_some() => return commit(run, "the action pod was created"),
            ActionPod::There(pod) => {
                let why = format!("there is a pod {} that this run did not create", pod.metadata.full_name());
                return run.back_out(Outcome::ActionNotStarted, Phase::Failed, why);
            }
            ActionPod::Missing => {}
        },
        Ok(Action::External) if run.was_taken() => return commit(run, "the command was claimed"),
        Ok(Action::External | Action::Kured) => {}
        Err(error) => return run.back_out(Outcome::ActionNotStarted, Phase::Failed, error.to_string()),
    }
    let Some((node, findings)) = still_ours_to_do(run, Moment::Handover, true) else {
        if run.status.halted_since.is_some() && run.status.phase == Phase::Acting.as_str() {
            // Closing is no new act on the node: under a halt too nobody may act on what was granted.
            if let Target::Here(node) = run.target() {
                let why = run.status.message.clone();
                closing::is_closed(run, Some(node));
                run.status.message = why;
            }
        }
        return;
    };
    if restamp(run, node) {
        return;
    }
    if (!holds_up(run, &findings) && !planted::is(Bug::SkipsGatesAtHandover)) || !stays_drained(run) {
        // A go that was given and not taken is withdrawn: the same write makes the claim fail.
        run.withdraw();
        if run.status.phase == Phase::Acting.as_str() {
            closing::is_closed(run, Some(node));
        }
        return;
    }
    if run.is_late() {
        let limit = run.status.limits.as_ref().map_or(0, |limits| limits.handover_seconds);
        let why = match run.action() {
            Ok(Action::Kured) => grant::late(run, limit),
            Ok(Action::External) => format!("nobody claimed the command within {limit} s"),
            _ => format!("the action pod could not be created within {limit} s"),
        };
        return run.back_out(Outcome::ActionNotStarted, Phase::Failed, why);
    }
    if run.is_kureds() {
        return grant::hand_over(run, node);
    }
    hand_over(run, node);
}

/// Pods that came back after the drain are as good as a gate that blocks.
fn stays_drained(run: &mut Run<'_>) -> bool {
    if run.strategy() != Strategy::Drain {
        return true;
    }
    let why = match drain::back_again(run) {
        None => "whether the node is still drained could not be read".to_owned(),
        Some(names) if names.is_empty() => return true,
        Some(names) => format!("pods are on the node again: {}", few(&names)),
    };
    held_up_by(run, &why);
    false
}

/// The first of them, and how many more.
fn few(names: &[String]) -> String {
    let more = names.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("{}{more}", names[..names.len().min(SHOWN)].join(", "))
}

/// The intent is written first; with it in the record, the act follows in the next step.
fn hand_over(run: &mut Run<'_>, node: &Node) {
    let now = run.input.now;
    let intended = run.status.intent.as_ref().is_some_and(|intent| intent.boot_id == node.boot_id);
    let external = matches!(run.action(), Ok(Action::External));
    if (!intended && !planted::is(Bug::ActsBeforeIntent)) || external {
        let first = !intended;
        let at = run.status.intent.as_ref().filter(|_| intended).map_or_else(|| stamp(now), |intent| intent.at.clone());
        run.status.intent = Some(Intent {
            boot_id: node.boot_id.clone(),
            at,
            valid_until: stamp(after(now, run.settings().go_seconds)),
        });
        if first {
            run.status.offered_at = Some(stamp(now));
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
        boot_id: if planted::is(Bug::ActsOnAnyBoot) { String::new() } else { node.boot_id.clone() },
    });
    run.look_again_in(SOON_SECONDS);
}

pub(super) fn commit(run: &mut Run<'_>, why: &str) {
    // It may have been about to end otherwise.
    run.status.outcome.clear();
    run.status.ends_as.clear();
    run.status.ends_because.clear();
    run.status.committed_at = Some(stamp(run.input.now));
    run.enter(Phase::Returning, format!("committed: {why}"));
}

fn owner_now(run: &Run<'_>) -> Owner {
    Owner { maintenance: run.uid().to_owned(), term: if planted::is(Bug::WritesTermZero) { 0 } else { run.input.term } }
}

fn cordon(run: &Run<'_>, node: &Node) -> Act {
    Act::Cordon {
        node: node.metadata.name.clone(),
        resource_version: node.metadata.resource_version.clone(),
        owner: owner_now(run),
    }
}

/// A new leader writes its term into the owner annotation before it goes on. Under a halt that waits, and under one that
/// cannot be read too: then nothing else is done either, and deadlines run on.
fn restamp(run: &mut Run<'_>, node: &Node) -> bool {
    if owned::owner_of(node).is_some_and(|owner| owner.term != run.input.term) && run.halt().is_free() {
        run.act(cordon(run, node));
        run.look_again_in(SOON_SECONDS);
        return true;
    }
    false
}

/// What ends a run before commit, in order of precedence. `None`: it was decided here.
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
    if run.boot_id_before().is_empty() {
        run.back_out(Outcome::ActionNotStarted, Phase::Failed, "the record has lost what it knew of the node");
        return None;
    }
    if let Some(why) = run.said_too_early() {
        run.back_out(Outcome::ActionNotStarted, Phase::Failed, why);
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
    if taken::booted_on_it(run, node) {
        return None;
    }
    if run.has_new_boot(node) {
        rebooted_elsewhere(run, node);
        return None;
    }
    let findings = run.findings(moment);
    run.keep_findings(&findings);
    run.keep_waived();
    if halted(run) {
        return None;
    }
    if run.must_give_up_its_own_node() {
        let why = "the pod of the leader that took over runs on the node: it only puts back";
        run.back_out_for(Reason::LeaderOnTarget.as_str(), Phase::Failed, why);
        return None;
    }
    if let Standing::Said(by) = run.hold_on(node) {
        let cordon = if node.unschedulable { "its cordon stays" } else { "it is not cordoned" };
        let why = format!("{by} holds the node; {cordon}");
        run.back_out(Outcome::NodeOnHold, Phase::Cancelled, why);
        return None;
    }
    if cordoned && !still_cordoned(run, node) {
        cordon_lost(run, node);
        return None;
    }
    if let Some(finding) = findings.iter().find(|finding| another_fails(finding)) {
        let why = finding.message.clone();
        run.back_out(Outcome::OtherNodeUnavailable, Phase::Failed, why);
        return None;
    }
    if let Some(finding) = findings.iter().find(|finding| window_is_over(finding)) {
        let why = format!("{}; the next try is the next window", finding.message);
        run.back_out(Outcome::WindowClosed, Phase::Failed, why);
        return None;
    }
    Some((node, findings))
}

fn rebooted_elsewhere(run: &mut Run<'_>, node: &Node) {
    run.status.intent = None;
    run.warn("the node booted anew before we acted (power loss, or a person)");
    returned(run, node);
    // In Cordoning there may be no cordon of ours yet: nobody took it off.
    if !run.is_marked_ours(node) {
        run.status.cordon_off_at = Some(stamp(run.input.now));
    }
    run.enter(Phase::Verifying, "rebooted elsewhere; it is proven all the same");
    Outcome::RebootedElsewhere.as_str().clone_into(&mut run.status.outcome);
}

/// Our cordon, or the one that was there before and that a person had let stay.
fn still_cordoned(run: &Run<'_>, node: &Node) -> bool {
    run.is_our_cordon(node) || (run.was_unschedulable() && node.unschedulable && run.is_marked_ours(node))
}

fn cordon_lost(run: &mut Run<'_>, node: &Node) {
    let why = if node.unschedulable { "somebody took the cordon over" } else { "somebody took our cordon off" };
    run.back_out(Outcome::CordonRemoved, Phase::Failed, why);
}

/// Another node is away or going: only this puts everything back at once. A foreign or unreadable lock, pressure, and
/// whatever is unknown wait until the handover timeout like any other block.
fn another_fails(finding: &Finding) -> bool {
    finding.status == Status::Block
        && matches!(
            finding.reason,
            Reason::TooManyUnavailable | Reason::NodeNotReady | Reason::NodeLeaseStale | Reason::NodeNetworkUnavailable
        )
        && matches!(finding.gate, GateId::Exclusive | GateId::NodesReady)
}

/// The window's hard stop has passed. Whether it has while clocks differ is not known, and waits like any unknown.
fn window_is_over(finding: &Finding) -> bool {
    finding.status == Status::Block && finding.gate == GateId::Window
}

/// Under a halt nothing of ours happens, and no deadline passes: they are moved by the length of the halt.
fn halted(run: &mut Run<'_>) -> bool {
    let now = run.input.now;
    if let Standing::Said(by) = run.halt() {
        run.withdraw();
        if run.status.halted_since.is_none() {
            run.status.halted_since = Some(stamp(now));
            run.status.message = format!("halted by {by}: the node is left as it is until unhalt or cancel");
            run.note(run.status.message.clone());
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
    if let Some(worst) = Run::worst(findings) {
        let why = format!("{} ({}): {}", worst.gate, worst.reason, worst.message);
        held_up_by(run, &why);
        return false;
    }
    // The gate reads the same documents; should the two ever differ, the careful one counts.
    if let Standing::Unreadable(why) = run.halt() {
        held_up_by(run, &why);
        return false;
    }
    if let Err(why) = run.hold_lock() {
        held_up_by(run, &why);
        run.look_again_in(SOON_SECONDS);
        return false;
    }
    run.status.blocked_since = None;
    true
}

fn held_up_by(run: &mut Run<'_>, why: &str) {
    let now = run.input.now;
    let limit = run.status.limits.as_ref().map_or(0, |limits| limits.handover_seconds);
    let since = parse_time(run.status.blocked_since.as_ref()).unwrap_or(now);
    run.status.blocked_since = Some(stamp(since));
    if now >= after(since, limit) || run.is_late() {
        let text = format!("gates did not agree within {limit} s: {why}");
        run.back_out(Outcome::HandoverTimeout, Phase::Failed, text);
    } else {
        run.look_again_in(LOOK_SECONDS);
    }
}

/// Records the node's return.
pub(super) fn returned(run: &mut Run<'_>, node: &Node) {
    run.status.returned_at = Some(stamp(run.input.now));
    if let Some(record) = &mut run.status.node {
        record.boot_id_after.clone_from(&node.boot_id);
        record.kernel_after.clone_from(&node.kernel_version);
    }
}
