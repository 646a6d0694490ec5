//! Uncordoning and Settling: the cluster becomes whole again and stays so; only then the run is over.

use super::Act;
use super::before_commit::returned;
use super::held;
use super::owned::is_proven;
use super::run::{LOOK_SECONDS, Run, SOON_SECONDS, Target};
use super::time::{after, parse_time, stamp};
use super::verify::{booted_again, is_green, restamp};
use crate::api::{Finding, GateId, Moment, Outcome, Phase};
use crate::facts::Node;

pub(super) fn uncordoning(run: &mut Run<'_>) {
    let node = match run.target() {
        Target::Here(node) => node,
        Target::Gone => return held::node_is_gone(run),
        Target::Unknown => return run.look_again_in(SOON_SECONDS),
    };
    if booted_again(run, node) || restamp(run, node) {
        return;
    }
    if run.was_unschedulable() {
        if !held::hold_for_hold(run, node, "proven") && !run.waits_for_unhalt("proven") {
            leave_their_cordon(run, node);
        }
        return;
    }
    if !run.is_marked_ours(node) {
        // In the next step, with the facts that Settling asks for.
        run.status.cordon_off_at.get_or_insert_with(|| stamp(run.input.now));
        if node.unschedulable {
            run.warn("the node is cordoned by somebody else; that cordon stays");
        }
        return run.enter(Phase::Settling, "our cordon is off");
    }
    if held::hold_for_hold(run, node, "proven") {
        return;
    }
    if run.waits_for_unhalt("proven") {
        return run.look_again_in(LOOK_SECONDS);
    }
    // It may be long ago that it was proven: another leader, an API that was away.
    if run.status.accepted_by.is_empty() && !is_green(&run.findings(Moment::Verify)) {
        return run.enter(Phase::Verifying, "no longer green: proven anew");
    }
    held::let_go(run, node, false);
}

/// Says once that our cordon is off although we did not take it off. A cordon that was there before is its owner's
/// to take off.
pub(super) fn note_cordon(run: &mut Run<'_>, node: &Node) {
    if run.may_uncordon(node) || run.status.cordon_off_at.is_some() || (run.was_unschedulable() && node.unschedulable) {
        return;
    }
    run.status.cordon_off_at = Some(stamp(run.input.now));
    run.warn(match (run.was_unschedulable(), node.unschedulable) {
        (true, _) => "somebody took off the cordon that was there before",
        (false, true) => "somebody took our cordon over before the node was proven; that cordon stays",
        (false, false) => "somebody took our cordon off before the node was proven",
    });
}

pub(super) fn settling(run: &mut Run<'_>) {
    let node = match run.target() {
        Target::Here(node) => node,
        Target::Gone => return held::node_is_gone(run),
        Target::Unknown => return run.look_again_in(SOON_SECONDS),
    };
    if run.has_another_boot(node) {
        // Its gates ask all that Verifying asks: no need to go back, but it begins anew.
        run.warn("the node booted once more while the cluster settled");
        returned(run, node);
        run.status.green_since = None;
        run.status.accepted_by.clear();
    }
    let findings = run.findings(Moment::Settle);
    let progressed = note_progress(run, &findings);
    run.keep_findings(&findings);
    super::verify::note_matrix(run);
    if let Some(worst) = findings.iter().find(|finding| finding.stops() && finding.gate != GateId::Control) {
        run.status.green_since = None;
        if progressed {
            let limit = run.status.limits.as_ref().map_or(0, |limits| limits.settle_seconds);
            run.status.deadline = Some(stamp(after(run.input.now, limit)));
        }
        if run.is_late() {
            let why = format!("{} ({}): {}", worst.gate, worst.reason, worst.message);
            return run.hold(Outcome::NotSettled.as_str(), "critical", why);
        }
        return run.look_again_in(LOOK_SECONDS);
    }
    let since = parse_time(run.status.green_since.as_ref()).unwrap_or(run.input.now);
    run.status.green_since = Some(stamp(since));
    if run.input.now < after(since, run.settings().settle_for_seconds) {
        return run.look_again_in(LOOK_SECONDS.min(run.settings().settle_for_seconds.max(1)));
    }
    if held::hold_for_hold(run, node, "proven and settled") {
        return;
    }
    if run.waits_for_unhalt("settled") {
        return run.look_again_in(LOOK_SECONDS);
    }
    if mark_proven(run, node) {
        return;
    }
    if let Some(warning) = super::grant::left_over(node).filter(|_| run.is_kureds()) {
        run.warn(warning);
    }
    succeed(run);
}

/// Whether it became more whole than it ever was in this phase: fewer gates that stop, or more of Longhorn's copies
/// rebuilt. What merely changes, gets worse, or comes and goes is no progress; else the deadline would never come.
fn note_progress(run: &mut Run<'_>, findings: &[Finding]) -> bool {
    let is_storage = |finding: &&Finding| finding.gate == GateId::LonghornVolumes;
    let stops = || findings.iter().filter(|finding| finding.stops() && finding.gate != GateId::Control);
    let gates = stops().filter(|finding| !is_storage(finding)).count();
    let broken: usize = stops().filter(is_storage).map(|one| one.evidence.len() + one.evidence_left_out).sum();
    let engines = run.input.facts.longhorn_engines.good();
    let rebuilt: i64 = engines
        .flat_map(|engine| &engine.rebuilds)
        .filter(|one| one.is_rebuilding)
        .filter_map(|one| one.progress)
        .sum();
    // In hundredths of a thing that is broken.
    let broken = i64::try_from(broken).unwrap_or(i64::MAX).saturating_mul(100).saturating_sub(rebuilt).max(0);
    let gates = i64::try_from(gates).unwrap_or(i64::MAX);
    let best = run
        .status
        .progress_mark
        .split_once(' ')
        .and_then(|(gates, broken)| Some((gates.parse::<i64>().ok()?, broken.parse::<i64>().ok()?)));
    let Some((least_gates, least_broken)) = best else {
        run.status.progress_mark = format!("{gates} {broken}");
        return false;
    };
    run.status.progress_mark = format!("{} {}", least_gates.min(gates), least_broken.min(broken));
    gates < least_gates || broken < least_broken
}

/// Writes down that the present boot is proven; true while that is still to be done. A boot that a person accepted
/// was not found good by anybody.
fn mark_proven(run: &mut Run<'_>, node: &Node) -> bool {
    if is_proven(node) || !run.status.accepted_by.is_empty() {
        return false;
    }
    run.act(Act::MarkProven {
        node: node.metadata.name.clone(),
        resource_version: node.metadata.resource_version.clone(),
        boot_id: node.boot_id.clone(),
        at: run.input.now,
    });
    run.look_again_in(SOON_SECONDS);
    true
}

fn succeed(run: &mut Run<'_>) {
    let outcome = if !run.status.accepted_by.is_empty() {
        Outcome::AcceptedUnproven
    } else if run.status.committed_at.is_none() {
        Outcome::RebootedElsewhere
    } else {
        Outcome::Proven
    };
    let why = proof(run);
    run.end(Phase::Succeeded, outcome.as_str(), why);
}

/// Success carries its proof.
fn proof(run: &Run<'_>) -> String {
    let mut parts = Vec::new();
    if let Some(node) = &run.status.node {
        if run.status.reboots {
            parts.push(format!("boot {} -> {}", short(&node.boot_id_before), short(&node.boot_id_after)));
        }
        if node.kernel_before != node.kernel_after && !node.kernel_after.is_empty() {
            parts.push(format!("kernel {} -> {}", node.kernel_before, node.kernel_after));
        }
    }
    if let Some(matrix) = &run.status.matrix {
        parts.push(format!("matrix {} -> {}", matrix.before, matrix.after));
    }
    if let Some(drain) = &run.status.drain {
        parts.push(format!("{} pods moved", drain.evicted));
    }
    if let Some(dns) = &run.status.dns {
        parts.push(format!("DNS never below {}", dns.min_ready));
    }
    parts.join(", ")
}

fn short(boot_id: &str) -> &str {
    boot_id.split('-').next().unwrap_or(boot_id)
}

/// A manual run on a node that somebody else had cordoned ends after Verifying; the cordon is theirs.
pub(super) fn leave_their_cordon(run: &mut Run<'_>, node: &Node) {
    if mark_proven(run, node) || held::let_go(run, node, true) {
        return;
    }
    if node.unschedulable {
        run.warn("the node was cordoned before; that cordon stays, and storage heals only after it is taken off");
    }
    succeed(run);
}
