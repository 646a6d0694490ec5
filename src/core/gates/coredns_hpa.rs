//! Gate `coredns-hpa`: the autoscaler that holds two DNS replicas really scales.
//!
//! *Source of truth*: `autoscaling/v2` HorizontalPodAutoscalers whose `scaleTargetRef` is the Deployment behind the
//! DNS Service (`status.conditions[ScalingActive]`), and Lease `kube-system/kube-controller-manager`: a dead
//! controller manager leaves `True` behind for ever. *When unknown*: a list was not read, or that Lease is absent.

use jiff::SignedDuration;

use super::dns;
use super::listing::{Listing, built_in};
use super::{Draft, GateInput, GateSpec};
use crate::api::{Evidence, Finding, GateId, Moment, Policy, Reason, SourceId, Status};
use crate::facts::{Deployment, HorizontalPodAutoscaler, Lease, TriState};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::CorednsHpa,
    moments: &[Moment::Start, Moment::Settle],
    reads: &[
        SourceId::Services,
        SourceId::Deployments,
        SourceId::HorizontalPodAutoscalers,
        SourceId::PodDisruptionBudgets,
        SourceId::Leases,
    ],
    reasons: &[
        Reason::HPAScalingInactive,
        Reason::HPAFloorTooLow,
        Reason::HPAStale,
        Reason::HPAConflict,
        Reason::CoreDNSFloorMissing,
    ],
    default_policy: Policy::Require,
    doc: "the autoscaler that holds two DNS replicas really scales",
    check,
};

/// The controller manager's Lease: namespace and name, on every distribution that elects a leader.
const CONTROLLER_MANAGER: (&str, &str) = ("kube-system", "kube-controller-manager");
/// Least age in seconds from which that Lease counts as not renewed. Twice its own duration (15 s by default) is less
/// than an observation may be old (30 s) and a change of leader takes.
const CONTROLLER_MANAGER_MAX_AGE_SECONDS: i64 = 60;

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::CorednsHpa, input);
    let services = dns::services(&mut draft, input);
    let autoscalers = built_in(&mut draft, SourceId::HorizontalPodAutoscalers, &input.facts.horizontal_pod_autoscalers)
        .map(|listing| {
            let namespace = &input.settings.coredns.namespace;
            listing.within(&mut draft, "HorizontalPodAutoscaler", namespace, |autoscaler| &autoscaler.metadata)
        });
    let deployments = services.and_then(|services| dns::deployments(&mut draft, input, &services));
    let (Some((behind, all)), Some(autoscalers)) = (deployments, autoscalers) else { return draft.finish("") };
    if behind.is_empty() {
        return draft.not_applicable(Reason::NotInstalled, "no Deployment is behind the DNS Service");
    }
    let mut judged = Vec::new();
    let mut unscaled = Vec::new();
    for deployment in behind {
        let mine: Vec<_> = autoscalers.items.iter().copied().filter(|each| targets(each, deployment)).collect();
        conflict(&mut draft, deployment, &mine, &all);
        if mine.is_empty() {
            unscaled.push(deployment);
        }
        judged.extend(mine);
    }
    if judged.is_empty() {
        let told = without_autoscaler(&mut draft, input, &unscaled, &all, autoscalers.complete);
        return dns::no_worse_than_baseline(input, draft.not_applicable(Reason::NotInstalled, told));
    }
    if let Some(leases) = built_in(&mut draft, SourceId::Leases, &input.facts.leases) {
        controller_manager(&mut draft, input, &leases);
    }
    for autoscaler in &judged {
        scaling(&mut draft, autoscaler);
        floor(&mut draft, input, autoscaler);
        fresh(&mut draft, autoscaler);
    }
    dns::no_worse_than_baseline(input, draft.finish(passed(&judged)))
}

fn passed(judged: &[&HorizontalPodAutoscaler]) -> String {
    let one = |each: &&HorizontalPodAutoscaler| {
        format!("{} scales: {} replicas, at least {}", object(each), each.current_replicas, each.min_replicas)
    };
    judged.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn object(autoscaler: &HorizontalPodAutoscaler) -> String {
    format!("HorizontalPodAutoscaler {}", autoscaler.metadata.full_name())
}

fn targets(autoscaler: &HorizontalPodAutoscaler, deployment: &Deployment) -> bool {
    autoscaler.target.0 == "Deployment" && autoscaler.target.1 == deployment.metadata.name
}

/// Whether a Deployment is a cluster-proportional autoscaler: by its image, or by the labels that the Kubernetes
/// addon, RKE2 and AKS give it. Its target is an argument that is not read: in the DNS namespace it scales DNS.
fn is_proportional_autoscaler(deployment: &Deployment) -> bool {
    let label = deployment.pod_labels.get(crate::api::names::LABEL_DNS.0).map(String::as_str);
    matches!(label, Some("kube-dns-autoscaler" | "coredns-autoscaler"))
        || deployment.images.iter().any(|image| image.contains("cluster-proportional-autoscaler"))
}

fn conflict(
    draft: &mut Draft<'_>,
    deployment: &Deployment,
    autoscalers: &[&HorizontalPodAutoscaler],
    all: &[&Deployment],
) {
    let mut names: Vec<String> = autoscalers.iter().map(|each| object(each)).collect();
    if names.is_empty() {
        return;
    }
    let proportional = all.iter().filter(|each| is_proportional_autoscaler(each) && each.replicas > 0);
    names.extend(proportional.map(|each| format!("Deployment {}", each.metadata.full_name())));
    if names.len() > 1 {
        let target = format!("Deployment {}", deployment.metadata.full_name());
        draft.warn(
            Reason::HPAConflict,
            format!("{} autoscalers set the replicas of {target}: {}", names.len(), names.join(", ")),
            Evidence::new(target, "autoscalers", names.join(", "), "one"),
        );
    }
}

/// Missing is not scaling: right after its creation an autoscaler has no conditions, and it has done nothing yet.
/// Unknown condition types, and `ScalingLimited` (`True` is the rest state of a quiet autoscaler), say nothing here.
fn scaling(draft: &mut Draft<'_>, autoscaler: &HorizontalPodAutoscaler) {
    let object = object(autoscaler);
    let condition = |kind: &str| autoscaler.conditions.iter().find(|condition| condition.kind == kind);
    let Some(active) = condition("ScalingActive") else {
        draft.block(
            Reason::HPAScalingInactive,
            format!("{object} does not scale: condition ScalingActive is missing"),
            Evidence::new(object, "status.conditions[ScalingActive]", "missing", "True"),
        );
        return;
    };
    // AbleToScale is written in every sync; where it is False, ScalingActive is left from a better time.
    let able = condition("AbleToScale");
    for failing in [Some(active), able].into_iter().flatten().filter(|each| each.status != TriState::True) {
        let value = format!("{} ({})", failing.status.as_str(), failing.reason);
        let detail = if failing.message.is_empty() {
            String::new()
        } else {
            format!(": {}", failing.message.trim_end_matches('.'))
        };
        draft.add(
            Status::Block,
            Reason::HPAScalingInactive,
            format!("{object} does not scale: {} is {value}{detail}", failing.kind),
            failing.last_transition,
            vec![Evidence::new(&object, format!("status.conditions[{}]", failing.kind), value, "True")],
        );
    }
}

fn floor(draft: &mut Draft<'_>, input: &GateInput<'_>, autoscaler: &HorizontalPodAutoscaler) {
    let wanted = i64::from(input.settings.coredns.min_replicas);
    if autoscaler.min_replicas < wanted {
        let (object, value) = (object(autoscaler), autoscaler.min_replicas);
        draft.block(
            Reason::HPAFloorTooLow,
            format!("{object} may go down to {value} DNS replicas, wanted at least {wanted}"),
            Evidence::new(object, "spec.minReplicas", value.to_string(), format!(">= {wanted}")),
        );
    }
}

/// Conditions outlive the truth: with fewer replicas than the minimum the controller scales without touching them.
fn fresh(draft: &mut Draft<'_>, autoscaler: &HorizontalPodAutoscaler) {
    let object = object(autoscaler);
    let (current, least) = (autoscaler.current_replicas, autoscaler.min_replicas);
    if current < least {
        draft.block(
            Reason::HPAStale,
            format!("{object} has not reached its minimum: {current} of {least} replicas"),
            Evidence::new(&object, "status.currentReplicas", current.to_string(), format!(">= {least}")),
        );
    }
    // Autoscalers got generations in 2026 only (kubernetes#138228): where neither is set there is nothing to compare.
    let (seen, wanted) = (autoscaler.observed_generation.unwrap_or(0), autoscaler.metadata.generation.unwrap_or(0));
    if seen != wanted {
        draft.block(
            Reason::HPAStale,
            format!("the status of {object} is of generation {seen}, the spec of {wanted}"),
            Evidence::new(&object, "status.observedGeneration", seen.to_string(), wanted.to_string()),
        );
    }
}

/// A cluster that shows no such Lease (one server without leader election, some managed control planes) cannot prove
/// that its autoscalers are alive: unknown, and the policy of this gate is the way out.
fn controller_manager(draft: &mut Draft<'_>, input: &GateInput<'_>, leases: &Listing<'_, Lease>) {
    let (namespace, name) = CONTROLLER_MANAGER;
    let object = format!("Lease {namespace}/{name}");
    let is_it = |lease: &&&Lease| lease.metadata.namespace == namespace && lease.metadata.name == name;
    let Some(lease) = leases.items.iter().find(is_it) else {
        draft.unknown(
            Reason::HPAStale,
            format!("{object} is absent: nothing proves that autoscalers are kept up to date"),
            Evidence::new(object, "spec.renewTime", "absent", "a fresh renewal"),
        );
        return;
    };
    let limit = lease.duration_seconds.unwrap_or(0).saturating_mul(2).max(CONTROLLER_MANAGER_MAX_AGE_SECONDS);
    let age = lease.renew_time.map(|renewed| input.now.duration_since(renewed));
    let value = match age {
        _ if lease.holder.is_empty() => "held by nobody".to_owned(),
        Some(age) if age <= SignedDuration::from_secs(limit) => return,
        Some(age) => format!("renewed {} s ago", age.as_secs()),
        None => "never renewed".to_owned(),
    };
    let message = format!("no controller manager keeps autoscalers up to date: {object} is {value}, limit {limit} s");
    let evidence = Evidence::new(object, "spec.renewTime", value, format!("<= {limit} s"));
    draft.add(Status::Block, Reason::HPAStale, message, lease.renew_time, vec![evidence]);
}

/// Without an autoscaler this gate has nothing to judge; it warns where nothing else holds the replicas.
fn without_autoscaler<'a>(
    draft: &mut Draft<'a>,
    input: &'a GateInput<'a>,
    behind: &[&Deployment],
    all: &[&Deployment],
    complete: bool,
) -> String {
    if let Some(holder) = all.iter().find(|each| is_proportional_autoscaler(each) && each.ready_replicas > 0) {
        return format!("no HorizontalPodAutoscaler; Deployment {} holds the replicas", holder.metadata.full_name());
    }
    let budgets = built_in(draft, SourceId::PodDisruptionBudgets, &input.facts.pod_disruption_budgets);
    let Some(budgets) = budgets else { return String::new() };
    let namespace = &input.settings.coredns.namespace;
    let budgets = budgets.within(draft, "PodDisruptionBudget", namespace, |budget| &budget.metadata);
    let mut told = Vec::new();
    for deployment in behind {
        let object = format!("Deployment {}", deployment.metadata.full_name());
        // A budget that demands no healthy pod, or has counted none, holds nothing.
        let holds = budgets.items.iter().find(|budget| {
            budget.desired_healthy >= 1
                && budget.expected_pods >= 1
                && budget.selector.as_ref().is_some_and(|selector| selector.matches(&deployment.pod_labels))
        });
        if let Some(budget) = holds {
            let (name, least) = (budget.metadata.full_name(), budget.desired_healthy);
            told.push(format!("PodDisruptionBudget {name} keeps {least} replicas of {object}"));
        } else if complete && budgets.complete {
            let replicas = deployment.replicas;
            draft.warn(
                Reason::CoreDNSFloorMissing,
                format!(
                    "nothing holds the replicas of {object} (it has {replicas}): no autoscaler, no PodDisruptionBudget"
                ),
                Evidence::new(object, "autoscalers and budgets", "none", "one"),
            );
        }
    }
    format!("no HorizontalPodAutoscaler; {}", told.join("; "))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::*;
    use super::*;
    use crate::facts::{FailureKind, Observation};

    type Row = (&'static str, fn(&mut World), fn(&mut Case), Status, Reason, &'static str);

    const BLOCK: Status = Status::Block;
    const PASS: Status = Status::Pass;
    const UNKNOWN: Status = Status::Unknown;
    const INACTIVE: Reason = Reason::HPAScalingInactive;
    const SCALES: &str = "HorizontalPodAutoscaler kube-system/coredns scales: 2 replicas, at least 2";

    fn hpa(world: &mut World) -> &mut Value {
        world.named(SourceId::HorizontalPodAutoscalers, "coredns")
    }

    fn active(world: &mut World) -> &mut Value {
        &mut hpa(world)["status"]["conditions"][1]
    }

    fn no_hpa(world: &mut World) {
        world.of(SourceId::HorizontalPodAutoscalers).clear();
    }

    fn proportional(world: &mut World, label: &str, image: &str, ready: i64) {
        let mut deployment = dns_deployment(1);
        deployment["metadata"]["name"] = json!("kube-dns-autoscaler");
        deployment["spec"]["template"]["metadata"]["labels"] = json!({"k8s-app": label});
        deployment["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        deployment["status"]["readyReplicas"] = json!(ready);
        world.of(SourceId::Deployments).push(deployment);
    }

    fn budget(world: &mut World, label: &str, desired: i64) {
        world.of(SourceId::PodDisruptionBudgets).push(json!({
            "metadata": {"name": "dns", "namespace": "kube-system"},
            "spec": {"selector": {"matchLabels": {"k8s-app": label}}},
            "status": {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": desired, "expectedPods": 2, "observedGeneration": 1},
        }));
    }

    fn lease(world: &mut World) -> &mut Value {
        world.named(SourceId::Leases, "kube-controller-manager")
    }

    fn same(_: &mut World) {}
    fn start(_: &mut Case) {}
    fn settle(case: &mut Case) {
        *case = std::mem::take(case).with_run();
        case.moment = Moment::Settle;
    }

    #[rustfmt::skip]
    const ROWS: &[Row] = &[
        ("quiet: ScalingLimited True/TooFewReplicas at the minimum", same, start, PASS, Reason::Passed, SCALES),
        ("kubernetes#55418: conditions missing after a restart", |world| hpa(world)["status"]["conditions"] = Value::Null, start, BLOCK, INACTIVE, "HorizontalPodAutoscaler kube-system/coredns does not scale: condition ScalingActive is missing"),
        ("just created: no status", |world| drop(hpa(world).as_object_mut().and_then(|hpa| hpa.remove("status"))), start, BLOCK, INACTIVE, "HorizontalPodAutoscaler kube-system/coredns does not scale: condition ScalingActive is missing; and 1 more"),
        ("metrics-server#906: no metrics", |world| *active(world) = json!({"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric", "message": "no metrics returned from resource metrics API", "lastTransitionTime": ago(180)}), start, BLOCK, INACTIVE, "HorizontalPodAutoscaler kube-system/coredns does not scale: ScalingActive is False (FailedGetResourceMetric): no metrics returned from resource metrics API"),
        ("kubernetes#102017: the same after the return", |world| *active(world) = json!({"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric"}), settle, BLOCK, INACTIVE, "HorizontalPodAutoscaler kube-system/coredns does not scale: ScalingActive is False (FailedGetResourceMetric)"),
        ("Unknown is not scaling", |world| active(world)["status"] = json!("Unknown"), start, BLOCK, INACTIVE, "HorizontalPodAutoscaler kube-system/coredns does not scale: ScalingActive is Unknown (ValidMetricFound)"),
        ("the Deployment was scaled to zero", |world| { active(world)["status"] = json!("False"); active(world)["reason"] = json!("ScalingDisabled"); hpa(world)["status"]["currentReplicas"] = json!(0); }, start, BLOCK, INACTIVE, "HorizontalPodAutoscaler kube-system/coredns does not scale: ScalingActive is False (ScalingDisabled); and 1 more"),
        ("it computes and cannot write", |world| hpa(world)["status"]["conditions"][0] = json!({"type": "AbleToScale", "status": "False", "reason": "FailedUpdateScale"}), start, BLOCK, INACTIVE, "HorizontalPodAutoscaler kube-system/coredns does not scale: AbleToScale is False (FailedUpdateScale)"),
        ("an unknown condition type says nothing", |world| hpa(world)["status"]["conditions"][2] = json!({"type": "ScaledToZero", "status": "False"}), start, PASS, Reason::Passed, SCALES),
        ("minReplicas is 1 by default", |world| hpa(world)["spec"]["minReplicas"] = Value::Null, start, BLOCK, Reason::HPAFloorTooLow, "HorizontalPodAutoscaler kube-system/coredns may go down to 1 DNS replicas, wanted at least 2"),
        ("one replica is accepted", |world| hpa(world)["spec"]["minReplicas"] = json!(1), |case| case.settings.coredns.min_replicas = 1, PASS, Reason::Passed, "HorizontalPodAutoscaler kube-system/coredns scales: 2 replicas, at least 1"),
        ("below its minimum the conditions are old", |world| hpa(world)["status"]["currentReplicas"] = json!(1), start, BLOCK, Reason::HPAStale, "HorizontalPodAutoscaler kube-system/coredns has not reached its minimum: 1 of 2 replicas"),
        ("an older generation", |world| { hpa(world)["metadata"]["generation"] = json!(3); hpa(world)["status"]["observedGeneration"] = json!(2); }, start, BLOCK, Reason::HPAStale, "the status of HorizontalPodAutoscaler kube-system/coredns is of generation 2, the spec of 3"),
        ("the boundary: controller manager 60 s ago", |world| *lease(world) = controller_manager_lease(60), start, PASS, Reason::Passed, SCALES),
        ("the controller manager is dead", |world| *lease(world) = controller_manager_lease(61), start, BLOCK, Reason::HPAStale, "no controller manager keeps autoscalers up to date: Lease kube-system/kube-controller-manager is renewed 61 s ago, limit 60 s"),
        ("the controller manager let go", |world| lease(world)["spec"]["holderIdentity"] = json!(""), start, BLOCK, Reason::HPAStale, "no controller manager keeps autoscalers up to date: Lease kube-system/kube-controller-manager is held by nobody, limit 60 s"),
        ("a long Lease is given twice its duration", |world| { *lease(world) = controller_manager_lease(110); lease(world)["spec"]["leaseDurationSeconds"] = json!(60); }, start, PASS, Reason::Passed, SCALES),
        ("no Lease: a managed control plane, or one without election", |world| drop(world.of(SourceId::Leases).pop()), start, UNKNOWN, Reason::HPAStale, "Lease kube-system/kube-controller-manager is absent: nothing proves that autoscalers are kept up to date"),
        ("two autoscalers on one Deployment", |world| { let mut second = dns_autoscaler(); second["metadata"]["name"] = json!("dns-two"); world.of(SourceId::HorizontalPodAutoscalers).push(second); }, start, Status::Warn, Reason::HPAConflict, "2 autoscalers set the replicas of Deployment kube-system/coredns: HorizontalPodAutoscaler kube-system/coredns, HorizontalPodAutoscaler kube-system/dns-two"),
        ("beside a proportional autoscaler (RKE2)", |world| proportional(world, "kube-dns-autoscaler", "rancher/hardened-cluster-autoscaler:v1.9.0", 1), start, Status::Warn, Reason::HPAConflict, "2 autoscalers set the replicas of Deployment kube-system/coredns: HorizontalPodAutoscaler kube-system/coredns, Deployment kube-system/kube-dns-autoscaler"),
        ("another Deployment's autoscaler is none of ours", |world| hpa(world)["spec"]["scaleTargetRef"]["name"] = json!("metrics-server"), start, Status::Warn, Reason::CoreDNSFloorMissing, "nothing holds the replicas of Deployment kube-system/coredns (it has 2): no autoscaler, no PodDisruptionBudget"),
        ("another namespace's autoscaler is none of ours", |world| hpa(world)["metadata"]["namespace"] = json!("web"), start, Status::Warn, Reason::CoreDNSFloorMissing, "nothing holds the replicas of Deployment kube-system/coredns (it has 2): no autoscaler, no PodDisruptionBudget"),
        ("none, and nothing holds the floor (k3s as shipped)", no_hpa, start, Status::Warn, Reason::CoreDNSFloorMissing, "nothing holds the replicas of Deployment kube-system/coredns (it has 2): no autoscaler, no PodDisruptionBudget"),
        ("none, a budget holds", |world| { no_hpa(world); budget(world, "kube-dns", 1); }, start, Status::NotApplicable, Reason::NotInstalled, "no HorizontalPodAutoscaler; PodDisruptionBudget kube-system/dns keeps 1 replicas of Deployment kube-system/coredns"),
        ("none, a budget of other pods", |world| { no_hpa(world); budget(world, "web", 1); }, start, Status::Warn, Reason::CoreDNSFloorMissing, "nothing holds the replicas of Deployment kube-system/coredns (it has 2): no autoscaler, no PodDisruptionBudget"),
        ("none, a budget that demands nothing", |world| { no_hpa(world); budget(world, "kube-dns", 0); }, start, Status::Warn, Reason::CoreDNSFloorMissing, "nothing holds the replicas of Deployment kube-system/coredns (it has 2): no autoscaler, no PodDisruptionBudget"),
        ("none, a proportional autoscaler holds", |world| { no_hpa(world); proportional(world, "dns-scaler", "registry.k8s.io/cpa/cluster-proportional-autoscaler:v1.9.0", 1); }, start, Status::NotApplicable, Reason::NotInstalled, "no HorizontalPodAutoscaler; Deployment kube-system/kube-dns-autoscaler holds the replicas"),
        ("none, a proportional autoscaler that is not ready", |world| { no_hpa(world); proportional(world, "kube-dns-autoscaler", "x", 0); }, start, Status::Warn, Reason::CoreDNSFloorMissing, "nothing holds the replicas of Deployment kube-system/coredns (it has 2): no autoscaler, no PodDisruptionBudget"),
        ("CoreDNS as a DaemonSet", |world| { no_hpa(world); world.of(SourceId::Deployments).clear(); }, start, Status::NotApplicable, Reason::NotInstalled, "no Deployment is behind the DNS Service"),
        ("failed", same, |case| case.facts.horizontal_pod_autoscalers = Observation::Failed { kind: FailureKind::Server, detail: "500".to_owned(), at: now() }, UNKNOWN, Reason::ObservationFailed, "horizontal-pod-autoscalers could not be read (server): 500"),
        ("absent, though built in", same, |case| case.facts.horizontal_pod_autoscalers = Observation::Absent { at: now() }, UNKNOWN, Reason::ObservationFailed, "the API says that horizontal-pod-autoscalers do not exist, although the kind is built in"),
        ("stale", same, |case| if let Observation::Known { at, .. } = &mut case.facts.horizontal_pod_autoscalers { *at = now() - SignedDuration::from_secs(31) }, UNKNOWN, Reason::ObservationStale, "what is known of horizontal-pod-autoscalers is 31 s old, allowed are 30 s"),
        ("malformed", |world| active(world)["status"] = json!(true), start, UNKNOWN, Reason::ObservationMalformed, "HorizontalPodAutoscaler kube-system/coredns: status.conditions[1].status is a boolean, wanted text"),
        ("budgets failed where one would have to hold", no_hpa, |case| case.facts.pod_disruption_budgets = Observation::Failed { kind: FailureKind::Forbidden, detail: "403".to_owned(), at: now() }, UNKNOWN, Reason::ObservationFailed, "pod-disruption-budgets could not be read (forbidden): 403"),
    ];

    #[test]
    fn autoscaler() {
        for (name, bend, shape, status, reason, message) in ROWS {
            let mut world = World::healthy();
            bend(&mut world);
            let mut case = world.case();
            shape(&mut case);
            let finding = case.ask(&GATE);
            assert_eq!((finding.status, finding.reason, sentence(&finding)), (*status, *reason, *message), "{name}");
        }
    }

    #[test]
    fn a_missing_condition_is_named_and_an_inactive_one_has_its_time() {
        let mut world = World::healthy();
        hpa(&mut world)["status"]["conditions"] = json!([]);
        let missing = world.case().ask(&GATE);
        assert_eq!(missing.evidence[0].value, "missing");
        let mut world = World::healthy();
        active(&mut world)["status"] = json!("False");
        active(&mut world)["lastTransitionTime"] = json!(ago(180));
        assert_eq!(world.case().ask(&GATE).since, Some(now() - SignedDuration::from_secs(180)));
    }

    #[test]
    fn no_spoilt_path_turns_a_block_into_a_pass() {
        for (name, bend, shape, status, ..) in ROWS.iter().filter(|row| row.3 == BLOCK) {
            let mut world = World::healthy();
            bend(&mut world);
            let left = survivors(&GATE, &world, shape);
            // The controller writes AbleToScale in every sync, before all else: where it is absent there was no sync,
            // and ScalingActive is absent too, which blocks. Alone it cannot vanish.
            let able = |left: &&String| !(name.starts_with("it computes") && left.contains("conditions.0"));
            let left: Vec<&String> = left.iter().filter(able).collect();
            assert_eq!(left, Vec::<&String>::new(), "{name} ({status})");
        }
    }
}
