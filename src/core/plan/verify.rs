//! Verifying: what must hold while the node is still cordoned.

use super::before_commit::returned;
use super::held;
use super::run::{LOOK_SECONDS, Run, SOON_SECONDS, Target};
use super::time::{after, parse_time, stamp};
use super::{Act, owned};
use crate::api::Owner;
use crate::api::record::MatrixRecord;
use crate::api::{Finding, Moment, Outcome, Phase};
use crate::facts::Node;

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
    if let Some(word) = run.fresh(run.input.record.spec.cancel.as_ref()) {
        let by = word.by.clone();
        run.warn(format!("cancelled by {by} after it was committed: it is proven all the same"));
    }
    if !node.is_cordoned() {
        run.warn("somebody took our cordon off before the node was proven");
    }
    if !is_green(&findings) {
        run.status.green_sweeps = 0;
        run.status.last_sweep = None;
        if run.is_late() {
            hold_red(run, &findings);
        } else {
            run.look_again_in(SOON_SECONDS);
        }
        return;
    }
    green(run, node, &findings);
}

/// A second boot while it is being proven starts the proof anew.
fn booted_again(run: &mut Run<'_>, node: &Node) -> bool {
    let known = run.status.node.as_ref().map(|node| node.boot_id_after.clone()).unwrap_or_default();
    if known.is_empty() || known == node.boot_id {
        return false;
    }
    run.warn("the node booted once more while it was being proven");
    returned(run, node);
    run.enter(Phase::Verifying, "booted once more; proven anew");
    true
}

pub(super) fn restamp(run: &mut Run<'_>, node: &Node) -> bool {
    let ours = run.is_marked_ours(node) && node.is_cordoned();
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
    !findings.iter().any(|finding| finding.stops() && finding.gate != crate::api::GateId::Control)
}

fn hold_red(run: &mut Run<'_>, findings: &[Finding]) {
    let worst = findings.iter().filter(|finding| finding.stops() && finding.gate != crate::api::GateId::Control);
    // The first of the worst, in table order.
    match worst.rev().max_by_key(|finding| finding.status) {
        Some(finding) => {
            let (reason, why) = (finding.reason.as_str(), finding.message.clone());
            run.hold(reason, "critical", why);
        }
        None => run.hold(Outcome::NotVerified.as_str(), "critical", "it could not be proven in time"),
    }
}

/// All green: count this sweep, and go on once enough of them, far enough apart, were green in a row.
fn green(run: &mut Run<'_>, node: &Node, findings: &[Finding]) {
    let needed = run.settings().sweeps;
    if run.status.green_sweeps < needed {
        let swept = run.input.facts.matrix.known().map_or(run.input.now, |matrix| matrix.swept_at);
        let last = parse_time(run.status.last_sweep.as_ref());
        let counts = last.is_none_or(|last| swept >= after(last, run.settings().sweep_interval_seconds));
        if counts {
            run.status.green_sweeps += 1;
            run.status.last_sweep = Some(stamp(swept));
        }
    }
    if run.status.green_sweeps < needed {
        return run.look_again_in(run.settings().sweep_interval_seconds.clamp(1, LOOK_SECONDS));
    }
    if Run::is_on_hold(findings) {
        return run.hold(
            Outcome::NodeOnHold.as_str(),
            "warning",
            "proven; somebody holds the node until `maint release`",
        );
    }
    if Run::is_halted(findings) {
        run.status.message = "proven; the cordon stays until unhalt".to_owned();
        return run.look_again_in(LOOK_SECONDS);
    }
    proven(run, node);
}

pub(super) fn proven(run: &mut Run<'_>, node: &Node) {
    if run.was_unschedulable() {
        return super::settle::leave_their_cordon(run, node);
    }
    let matrix = run.status.matrix.as_ref().map(|matrix| matrix.after.clone()).unwrap_or_default();
    run.enter(Phase::Uncordoning, format!("proven: matrix {matrix}"));
}
