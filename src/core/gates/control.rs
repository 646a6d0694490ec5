//! Gate `control`: not halted, node not on hold, mode allows, no running or red post-check, leader not on the target.
//!
//! A halt and a hold bind at every moment. After the act they undo nothing: the run goes on to observe, and only the
//! uncordon and what follows it wait, so this gate blocks at `verify` and `settle` as well and the plan waits for it.
//! The rest is asked at `start` only. In mode `observe` no unattended run starts; a look before any run is told so by a
//! warning, since what it asks for is what would be done in mode `auto`.
//!
//! A post-check that was begun and never ended blocks until a newer one ends: the latest by creation time counts, and
//! where two were created in the same second the worse.

use super::reading::{document, in_flight, installed, required};
use super::{Draft, GateInput, GateSpec, Verdict};
use crate::api::names::{ANNOTATION_HOLD, ANNOTATION_PROVEN, CONTROL_CONFIG_MAP, CONTROL_HALT_KEY};
use crate::api::{
    Evidence, Finding, GateId, Halt, Hold, Moment, Policy, Proven, Reason, SourceId, Status, Trigger, is_over,
};
use crate::config::Mode;
use crate::facts::{Maintenance, MaintenanceReport, Node};
use crate::planted::{self, Bug};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::Control,
    moments: &[Moment::Start, Moment::Cordoned, Moment::Handover, Moment::Verify, Moment::Settle],
    reads: &[SourceId::Nodes, SourceId::ConfigMaps, SourceId::Maintenances, SourceId::MaintenanceReports],
    reasons: &[
        Reason::Halted,
        Reason::NodeOnHold,
        Reason::PostCheckRed,
        Reason::PostCheckRunning,
        Reason::PostCheckMissing,
        Reason::LeaderOnTarget,
        Reason::ObserveMode,
    ],
    default_policy: Policy::Require,
    doc: "not halted, node not on hold, mode allows, no running or red post-check",
    check,
};

/// `spec.kind` of the reports that are post-checks.
const POST_CHECK: &str = "post-check";

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::Control, input);
    halted(input, &mut draft);
    let nodes = required(&mut draft, SourceId::Nodes, &input.facts.nodes);
    if let Some(nodes) = &nodes {
        on_hold(input, &mut draft, nodes);
    }
    if input.moment == Moment::Start {
        leader_on_target(input, &mut draft);
        if let Some(reports) =
            installed(input, &mut draft, SourceId::MaintenanceReports, &input.facts.maintenance_reports)
        {
            post_check(&mut draft, &reports);
        }
        let maintenances = installed(input, &mut draft, SourceId::Maintenances, &input.facts.maintenances);
        if let (Some(nodes), Some(maintenances)) = (&nodes, maintenances) {
            proven(&mut draft, nodes, &maintenances);
        }
        mode(input, &mut draft);
    }
    let checked = if input.moment == Moment::Start { "; no post-check is red or running" } else { "" };
    draft.finish(format!("not halted, and node {} is not on hold{checked}", input.target))
}

/// What waits at this moment, for the end of a sentence.
const fn waits(moment: Moment) -> &'static str {
    match moment {
        Moment::Start => "nothing starts",
        Moment::Cordoned | Moment::Handover => "no pod is evicted and no reboot is released",
        Moment::Verify | Moment::Settle => "the run only observes, and what it would write waits",
    }
}

fn halted<'a>(input: &GateInput<'a>, draft: &mut Draft<'a>) {
    let Some(maps) = required(draft, SourceId::ConfigMaps, &input.facts.config_maps) else { return };
    let namespace = &input.settings.namespace;
    // The list is that of our namespace; only a dump can show others, and one that lost the field is taken for ours.
    let own = |name: &str, at: &str| name == CONTROL_CONFIG_MAP && (at == namespace || at.is_empty());
    let map = maps.iter().find(|map| own(&map.metadata.name, &map.metadata.namespace));
    let Some(text) = map.and_then(|map| map.data.get(CONTROL_HALT_KEY)) else { return };
    let object = format!("ConfigMap {namespace}/{CONTROL_CONFIG_MAP}");
    let field = format!("data.{CONTROL_HALT_KEY}");
    let Some(halt) = document::<Halt>(draft, &object, &field, text) else { return };
    if is_over(halt.until, input.now) || planted::is(Bug::IgnoresHalt) {
        return;
    }
    let end = halt.until.map_or_else(|| "until `maint unhalt`".to_owned(), |until| format!("until {until}"));
    let message = format!("{} halted maint at {} {end}: {}; {}", halt.by, halt.since, halt.reason, waits(input.moment));
    let evidence = Evidence::new(object, field, format!("halted by {}", halt.by), "not there, or over");
    draft.add(Status::Block, Reason::Halted, message, Some(halt.since), vec![evidence]);
}

fn on_hold(input: &GateInput<'_>, draft: &mut Draft<'_>, nodes: &[&Node]) {
    let Some(node) = nodes.iter().find(|node| node.metadata.name == input.target) else { return };
    let Some(text) = node.metadata.annotations.get(ANNOTATION_HOLD) else { return };
    let object = format!("Node {}", input.target);
    let field = format!("metadata.annotations[{ANNOTATION_HOLD}]");
    let Some(hold) = document::<Hold>(draft, &object, &field, text) else { return };
    if is_over(hold.until, input.now) {
        return;
    }
    let release = format!("until `maint release {}`", input.target);
    let end = hold.until.map_or(release, |until| format!("until {until}"));
    let message = format!("{} holds node {} {end}: {}; {}", hold.by, input.target, hold.reason, waits(input.moment));
    draft.block(
        Reason::NodeOnHold,
        message,
        Evidence::new(object, field, format!("held by {}", hold.by), "not there, or over"),
    );
}

fn leader_on_target(input: &GateInput<'_>, draft: &mut Draft<'_>) {
    if input.run.and_then(|run| run.leader_on_target) == Some(true) {
        let message = format!(
            "the pod of maint's leader runs on node {}, and no replica on another node is Ready, or none took the Lease when it was free",
            input.target
        );
        let evidence =
            Evidence::new("the leader's pod", "spec.nodeName", input.target, "another node, or a Ready standby");
        draft.block(Reason::LeaderOnTarget, message, evidence);
    }
}

fn mode(input: &GateInput<'_>, draft: &mut Draft<'_>) {
    if input.trigger != Trigger::Unattended || input.settings.mode != Mode::Observe {
        return;
    }
    let status = if input.run.is_none() { Status::Warn } else { Status::Block };
    let message = "mode is observe: maint starts nothing by itself, a person may (`maint reboot`)".to_owned();
    let evidence = Evidence::new("the configuration", "mode", Mode::Observe.as_str(), Mode::Auto.as_str());
    draft.add(status, Reason::ObserveMode, message, None, vec![evidence]);
}

fn post_check(draft: &mut Draft<'_>, reports: &[&MaintenanceReport]) {
    let checks = || reports.iter().filter(|report| report.kind == POST_CHECK);
    let Some(latest) = checks().map(|report| report.created).max() else { return };
    for report in checks().filter(|report| report.created == latest) {
        let name = &report.metadata.name;
        let evidence = |seen: &str| {
            Evidence::new(format!("MaintenanceReport {name}"), "status.verdict", seen, Verdict::Clear.as_str())
        };
        let (reason, message, evidence) = match report.verdict.as_deref() {
            Some(verdict) if verdict == Verdict::Clear.as_str() => continue,
            Some(verdict) => (
                Reason::PostCheckRed,
                format!(
                    "the post-check {name} of {latest} ended {verdict}: repair what it names, then run `maint post-check`"
                ),
                evidence(verdict),
            ),
            None => (
                Reason::PostCheckRunning,
                format!(
                    "the post-check {name} has been running since {latest}; if nobody runs it any more, run `maint post-check`"
                ),
                evidence("none yet"),
            ),
        };
        draft.add(Status::Block, reason, message, Some(latest), vec![evidence]);
    }
}

/// Warns of nodes that booted since they were found good; those in flight are about to be proven and are left out.
fn proven(draft: &mut Draft<'_>, nodes: &[&Node], maintenances: &[&Maintenance]) {
    let in_flight = in_flight(maintenances);
    let field = format!("metadata.annotations[{ANNOTATION_PROVEN}]");
    let mut never = Vec::new();
    for node in nodes.iter().filter(|node| !in_flight.contains_key(node.metadata.name.as_str())) {
        let name = &node.metadata.name;
        let object = format!("Node {name}");
        let Some(text) = node.metadata.annotations.get(ANNOTATION_PROVEN) else {
            never.push(Evidence::new(object, field.clone(), "missing", &node.boot_id));
            continue;
        };
        let Some(proven) = document::<Proven>(draft, &object, &field, text) else { continue };
        if proven.boot_id != node.boot_id {
            let message = format!("node {name} booted since it was last found good ({})", proven.at);
            let evidence = Evidence::new(object, field.clone(), &proven.boot_id, &node.boot_id);
            draft.add(Status::Warn, Reason::PostCheckMissing, message, None, vec![evidence]);
        }
    }
    if !never.is_empty() {
        let message = match never.as_slice() {
            [only] => format!("{} was never found good by a run or a post-check", only.object),
            _ => {
                format!("{} nodes were never found good by a run or a post-check", never.len())
            }
        };
        draft.add(Status::Warn, Reason::PostCheckMissing, message, None, never);
    }
}

#[cfg(test)]
mod tests;
