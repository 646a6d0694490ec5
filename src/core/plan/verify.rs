//! Verifying: what must hold while the node is still cordoned.

use super::before_commit::returned;
use super::held;
use super::run::{LOOK_SECONDS, Run, SOON_SECONDS, Target};
use super::time::{after, parse_time, stamp};
use super::{Act, owned, settle};
use crate::api::record::MatrixRecord;
use crate::api::{Finding, GateId, Moment, Outcome, Owner, Phase};
use crate::facts::{Item, Node, Observation};
use crate::planted::{self, Bug};

pub(super) fn step(run: &mut Run<'_>) {
    let node = match run.target() {
        Target::Here(node) => node,
        Target::Gone => return held::node_is_gone(run),
        Target::Unknown => return run.look_again_in(SOON_SECONDS),
    };
    if booted_again(run, node) || restamp(run, node) {
        return;
    }
    let findings = run.findings(Moment::Verify);
    run.keep_findings(&findings);
    note_matrix(run);
    settle::note_cordon(run, node);
    if let Some(word) = run.new_resume() {
        run.heard_resume();
        if word.accept && run.hold_on(node).is_free() {
            return held::accept_unproven(run, &word.by);
        }
        if word.accept {
            let release = format!("`maint release {}` comes first", run.node_name());
            run.warn(format!("{} accepted it while the node is on hold: {release}", word.by));
        }
    }
    let passes = run.is_late() && planted::is(Bug::TimeOutPasses);
    if !(is_green(&findings) || passes) {
        run.status.green_sweeps = 0;
        run.status.last_sweep = None;
        if run.is_late() {
            hold_red(run, &findings);
        } else {
            run.look_again_in(SOON_SECONDS);
        }
        return;
    }
    green(run, node);
}

/// A second boot while it is being proven starts the proof anew.
pub(super) fn booted_again(run: &mut Run<'_>, node: &Node) -> bool {
    if !run.has_another_boot(node) {
        return false;
    }
    run.warn("the node booted once more while it was being proven");
    returned(run, node);
    // What was accepted was the boot before.
    run.status.accepted_by.clear();
    run.enter(Phase::Verifying, "booted once more; proven anew");
    true
}

/// A new leader writes its term into the owner annotation before it goes on; under a halt that waits too. Only where
/// the field still says cordoned: the same write would otherwise cordon anew what a person uncordoned.
pub(super) fn restamp(run: &mut Run<'_>, node: &Node) -> bool {
    let ours = run.is_marked_ours(node) && node.unschedulable && run.halt().is_free();
    if ours && owned::owner_of(node).is_some_and(|owner| owner.term != run.input.term) {
        run.act(Act::Cordon {
            node: node.metadata.name.clone(),
            resource_version: node.metadata.resource_version.clone(),
            owner: Owner { maintenance: run.uid().to_owned(), term: run.input.term },
        });
        run.look_again_in(SOON_SECONDS);
        return true;
    }
    false
}

pub(super) fn note_matrix(run: &mut Run<'_>) {
    if let Some((after, broken)) = run.matrix_line() {
        let before = run.status.matrix.as_ref().map(|matrix| matrix.before.clone()).unwrap_or_default();
        run.status.matrix = Some(MatrixRecord { before, after, broken });
    }
}

/// Hold and halt do not make it red; they only keep the cordon.
pub(super) fn is_green(findings: &[Finding]) -> bool {
    let heeded = |gate| gate != GateId::KubeletReachability || !planted::is(Bug::RedTunnelPasses);
    !findings.iter().any(|finding| finding.stops() && finding.gate != GateId::Control && heeded(finding.gate))
}

fn hold_red(run: &mut Run<'_>, findings: &[Finding]) {
    let worst = findings.iter().filter(|finding| finding.stops() && finding.gate != GateId::Control);
    // The first of the worst, in table order.
    match worst.rev().max_by_key(|finding| finding.status) {
        Some(finding) => {
            let meanwhile = if finding.gate == GateId::KubeletReachability { meanwhile(run) } else { String::new() };
            let (reason, why) = (finding.reason.as_str(), format!("{}{meanwhile}", finding.message));
            run.hold(reason, "critical", why);
        }
        None => run.hold(Outcome::NotVerified.as_str(), "critical", "it could not be proven in time"),
    }
}

/// What waits while the node stays cordoned: Longhorn does not rebuild on such a node.
fn meanwhile(run: &Run<'_>) -> String {
    match &run.input.facts.longhorn_volumes {
        Observation::Absent { .. } | Observation::NotAsked => String::new(),
        Observation::Failed { .. } => "; how many volumes cannot rebuild meanwhile is not known".to_owned(),
        Observation::Known { value, .. } => {
            let waits = value.iter().filter(|item| match item {
                Item::Good(volume) => matches!(volume.robustness.as_str(), "degraded" | "faulted"),
                Item::Malformed(_) => true,
            });
            match waits.count() {
                0 => String::new(),
                1 => "; 1 volume cannot rebuild meanwhile".to_owned(),
                count => format!("; {count} volumes cannot rebuild meanwhile"),
            }
        }
    }
}

/// All green: count this sweep, and go on once enough of them, far enough apart, were green in a row.
fn green(run: &mut Run<'_>, node: &Node) {
    let needed = run.settings().sweeps;
    if run.status.green_sweeps < needed {
        let swept = run.input.facts.matrix.known().map_or(run.input.now, |matrix| matrix.swept_at);
        let last = parse_time(run.status.last_sweep.as_ref());
        // What was swept before the node came back proves nothing.
        let since = parse_time(run.status.returned_at.as_ref()).is_none_or(|returned| swept >= returned);
        let counts = last.is_none_or(|last| swept >= after(last, run.settings().sweep_interval_seconds));
        if since && counts {
            run.status.green_sweeps += 1;
            run.status.last_sweep = Some(stamp(swept));
        }
    }
    if run.status.green_sweeps < needed {
        return run.look_again_in(run.settings().sweep_interval_seconds.clamp(1, LOOK_SECONDS));
    }
    if held::hold_for_hold(run, node, "proven") {
        return;
    }
    if run.waits_for_unhalt("proven") {
        return run.look_again_in(LOOK_SECONDS);
    }
    if run.was_unschedulable() {
        return settle::leave_their_cordon(run, node);
    }
    let matrix = run.status.matrix.as_ref().map(|matrix| matrix.after.clone()).unwrap_or_default();
    run.enter(Phase::Uncordoning, format!("proven: matrix {matrix}"));
}
