//! Gate `upgrades`: nobody upgrades nodes or installs charts meanwhile.
//!
//! # Checks
//! Start and handover, the same: no plan of system-upgrade-controller has a node at work (`status.applying`), no Job of
//! it runs, whatever the plan says, and no Job of helm-controller (k3s, RKE2) installs, upgrades or deletes a chart. A
//! plan that is not complete and has no node at work only warns: it may begin when its window opens.
//!
//! # Why
//! The upgrade controller cordons, drains and restarts nodes by its own order and takes the cordon off at its end, ours
//! included (rancher#26076, terraform-hcloud-kube-hetzner#741); a chart that is being installed moves what other gates
//! have just judged.
//!
//! # Source of truth
//! `upgrade.cattle.io/v1` Plans; `batch/v1` Jobs: the labels `upgrade.cattle.io/plan`, `/node` and `/controller`, and
//! `helmcharts.helm.cattle.io/chart` or a name that begins with `helm-install-` or `helm-delete-`.
//!
//! # Blocks which scopes
//! All.
//!
//! # When unknown
//! A list that could not be read, an object that was not understood, a plan that its controller has not looked at yet.
//!
//! # Runbook
//! `runbooks/Upgrade*.md`, `runbooks/HelmJobRunning.md`

#[cfg(test)]
mod tests;

use super::listing::{built_in, not_asked};
use super::reading::may_be_a_dump;
use super::{Draft, GateInput, GateSpec, Read};
use crate::api::{Evidence, Finding, GateId, Moment, Policy, Reason, SourceId, Status};
use crate::facts::upgrade::Plan;
use crate::facts::{Condition, Job};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::Upgrades,
    moments: &[Moment::Start, Moment::Handover],
    reads: &[SourceId::UpgradePlans, SourceId::Jobs],
    reasons: &[Reason::UpgradeApplying, Reason::UpgradePending, Reason::HelmJobRunning],
    default_policy: Policy::Require,
    doc: "no plan of system-upgrade-controller at work on a node, no chart being installed",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::Upgrades, input);
    let mut installed = false;
    let plans = match draft.read(SourceId::UpgradePlans, &input.facts.upgrade_plans) {
        Read::Known(plans) => {
            installed = true;
            plans
        }
        // Where they could not be read the draft holds the unknown, and the Jobs are told all the same.
        Read::Unreadable | Read::Absent => Vec::new(),
        Read::NotAsked if may_be_a_dump(input) => {
            return draft.not_applicable(Reason::NotAsked, "this input holds no upgrade plans");
        }
        Read::NotAsked => not_asked(&mut draft, SourceId::UpgradePlans).unwrap_or_default(),
    };
    for plan in &plans {
        judge_plan(&mut draft, plan);
    }
    let jobs = built_in(&mut draft, SourceId::Jobs, &input.facts.jobs);
    let jobs = jobs.map(|listing| listing.items).unwrap_or_default();
    for job in &jobs {
        if is_upgrade(job) || is_helm(job) {
            installed = true;
            judge_job(&mut draft, job, &plans);
        }
    }
    if !installed {
        let message = "neither system-upgrade-controller nor helm-controller is at home here";
        return draft.not_applicable(Reason::NotInstalled, message);
    }
    let plans = match plans.len() {
        0 => "no upgrade plan".to_owned(),
        count => format!("none of {count} upgrade plans"),
    };
    draft.finish(format!("{plans} is at work, no chart is being installed"))
}

fn judge_plan(draft: &mut Draft<'_>, plan: &Plan) {
    let (name, complete) = (plan.metadata.full_name(), plan.complete());
    let object = format!("Plan {name}");
    let since = complete.and_then(|complete| complete.last_transition);
    if !plan.applying.is_empty() {
        let nodes = plan.applying.join(", ");
        let message = format!("upgrade plan {name} is at work on {nodes}{}", told(complete));
        let evidence = Evidence::new(object, "status.applying", nodes, "no node");
        draft.add(Status::Block, Reason::UpgradeApplying, message, since, vec![evidence]);
    } else if plan.is_pending() {
        let message = format!("upgrade plan {name} is not complete and may cordon nodes at any time{}", told(complete));
        let value = complete.map_or("missing", |complete| complete.status.as_str());
        let evidence = Evidence::new(object, "status.conditions[Complete]", value, "True");
        draft.add(Status::Warn, Reason::UpgradePending, message, since, vec![evidence]);
    }
}

/// Why it is not complete: a Job that failed, a window that is closed.
fn told(complete: Option<&Condition>) -> String {
    match complete {
        Some(complete) if !complete.message.is_empty() => format!(" ({})", complete.message),
        Some(complete) if !complete.reason.is_empty() => format!(" ({})", complete.reason),
        _ => String::new(),
    }
}

fn judge_job(draft: &mut Draft<'_>, job: &Job, plans: &[&Plan]) {
    if !job.is_at_work() {
        return;
    }
    let name = job.metadata.full_name();
    let evidence = Evidence::new(
        format!("Job {name}"),
        "status.conditions",
        format!("neither Complete nor Failed, {} active", job.active),
        "Complete or Failed",
    );
    let label = |key: &str| job.metadata.labels.get(key).map(String::as_str);
    let (reason, message) = if is_upgrade(job) {
        let plan = label(LABEL_PLAN).unwrap_or("an unknown plan");
        let node = label(LABEL_NODE).unwrap_or("an unknown node");
        let is_it = |one: &&&Plan| one.metadata.name == plan && one.metadata.namespace == job.metadata.namespace;
        let says = plans.iter().find(is_it);
        if says.is_some_and(|plan| plan.applying.iter().any(|applying| applying == node)) {
            // The plan has said it.
            return;
        }
        (Reason::UpgradeApplying, format!("Job {name} of upgrade plan {plan} is at work on {node}"))
    } else {
        let chart = label(LABEL_CHART).unwrap_or_else(|| chart_of(&job.metadata.name));
        (Reason::HelmJobRunning, format!("Job {name} is at work on chart {chart}"))
    };
    draft.add(Status::Block, reason, message, job.started, vec![evidence]);
}

/// Group of the labels that system-upgrade-controller gives its Jobs.
const UPGRADE_LABELS: &str = "upgrade.cattle.io/";
const LABEL_PLAN: &str = "upgrade.cattle.io/plan";
const LABEL_NODE: &str = "upgrade.cattle.io/node";
/// The label that helm-controller gives its Jobs.
const LABEL_CHART: &str = "helmcharts.helm.cattle.io/chart";
/// How helm-controller names its Jobs (k3s-io/helm-controller, `pkg/controllers/chart`).
const HELM_NAMES: [&str; 2] = ["helm-install-", "helm-delete-"];

fn is_upgrade(job: &Job) -> bool {
    job.metadata.labels.keys().any(|key| key.starts_with(UPGRADE_LABELS))
}

fn is_helm(job: &Job) -> bool {
    job.metadata.labels.contains_key(LABEL_CHART) || HELM_NAMES.iter().any(|name| job.metadata.name.starts_with(name))
}

fn chart_of(job: &str) -> &str {
    HELM_NAMES.iter().find_map(|name| job.strip_prefix(name)).unwrap_or(job)
}
