//! Uncordoning and Settling: the cluster becomes whole again and stays so; only then the run is over.

use super::Act;
use super::held;
use super::owned::is_proven;
use super::run::{LOOK_SECONDS, Run, SOON_SECONDS, Target};
use super::time::{after, parse_time, stamp};
use crate::api::{Finding, GateId, Moment, Outcome, Phase};
use crate::facts::Node;

pub(super) fn uncordoning(run: &mut Run<'_>) {
    let node = match run.target() {
        Target::Here(node) => node,
        Target::Gone => return held::node_is_gone(run),
        Target::Unknown => return run.look_again_in(SOON_SECONDS),
    };
    if !run.is_marked_ours(node) {
        if node.is_cordoned() {
            run.warn("the node is cordoned by somebody else; that cordon stays");
        }
        return run.enter(Phase::Settling, "our cordon is off");
    }
    if super::verify::restamp(run, node) {
        return;
    }
    let findings = run.findings(Moment::Verify);
    if Run::is_on_hold(&findings) {
        return run.hold(
            Outcome::NodeOnHold.as_str(),
            "warning",
            "proven; somebody holds the node until `maint release`",
        );
    }
    if Run::is_halted(&findings) {
        run.status.message = "proven; the cordon stays until unhalt".to_owned();
        return run.look_again_in(LOOK_SECONDS);
    }
    if run.is_our_cordon(node) {
        run.act(Act::Uncordon {
            node: node.metadata.name.clone(),
            resource_version: node.metadata.resource_version.clone(),
        });
    } else {
        // The annotation is ours and the field is not: somebody uncordoned, or cordoned it anew.
        run.act(Act::DropOwner {
            node: node.metadata.name.clone(),
            resource_version: node.metadata.resource_version.clone(),
        });
    }
    run.look_again_in(SOON_SECONDS);
}

pub(super) fn settling(run: &mut Run<'_>) {
    let node = match run.target() {
        Target::Here(node) => node,
        Target::Gone => return held::node_is_gone(run),
        Target::Unknown => return run.look_again_in(SOON_SECONDS),
    };
    let findings = run.findings(Moment::Settle);
    let progressed = note_progress(run, &findings);
    run.keep_findings(&findings);
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
    succeed(run, node);
}

/// Progress is a change of what is not whole: another set of findings, or other numbers at the storage gate.
fn note_progress(run: &mut Run<'_>, findings: &[Finding]) -> bool {
    let mark: Vec<String> = findings
        .iter()
        .filter(|finding| finding.stops())
        .map(|finding| match finding.gate {
            GateId::LonghornVolumes => format!("{} {}", finding.reason, finding.message),
            _ => format!("{} {}", finding.gate, finding.reason),
        })
        .collect();
    let mark = mark.join("|");
    let progressed = run.status.progress_mark != mark;
    run.status.progress_mark = mark;
    progressed
}

/// The node's present boot is written down as proven; then the run is over.
fn succeed(run: &mut Run<'_>, node: &Node) {
    if !is_proven(node) {
        run.act(Act::MarkProven {
            node: node.metadata.name.clone(),
            resource_version: node.metadata.resource_version.clone(),
            boot_id: node.boot_id.clone(),
            at: run.input.now,
        });
        return run.look_again_in(SOON_SECONDS);
    }
    let outcome = if run.status.outcome == Outcome::RebootedElsewhere.as_str() {
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
        parts.push(format!("{} pods moved", drain.planned));
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
    if !is_proven(node) {
        run.act(Act::MarkProven {
            node: node.metadata.name.clone(),
            resource_version: node.metadata.resource_version.clone(),
            boot_id: node.boot_id.clone(),
            at: run.input.now,
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
    run.warn("the node was cordoned before; that cordon stays, and storage heals only after it is taken off");
    let why = proof(run);
    run.end(Phase::Succeeded, Outcome::Proven.as_str(), why);
}
