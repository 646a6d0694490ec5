//! The tables of gate `disruption-budgets`.

use serde_json::json;

use super::super::drain::testing::{budget, daemon, daemon_set, pod};
use super::super::testing::{Case, World, survivors};
use super::GATE;
use crate::api::{Moment, Reason, SourceId, Status, Strategy};
use crate::facts::{FailureKind, Observation};

/// Two pods of three on the node, and a budget that lets one go at a time.
fn world() -> World {
    let mut world = World::healthy();
    *world.of(SourceId::TargetPods) = vec![pod("web-a"), pod("web-b")];
    *world.of(SourceId::PodDisruptionBudgets) = vec![budget("web", 2, 3, 3)];
    world
}

type Row = (&'static str, fn(&mut World), fn(&mut Case), Status, Reason, &'static str);

fn same(_: &mut World) {}
fn start(_: &mut Case) {}

#[test]
fn what_can_never_be_evicted_blocks_and_what_waits_is_told() {
    let rows: [Row; 13] = [
        ("one at a time", same, start, Status::Pass, Reason::Passed, "worker2 has 2 pods to evict in 1 wave"),
        (
            "D07: all that there are are wanted",
            |w| w.of(SourceId::PodDisruptionBudgets)[0] = budget("web", 3, 3, 3),
            start,
            Status::Block,
            Reason::DisruptionBudgetPermanent,
            "budget shop/web: ",
        ),
        (
            "D06: two on one pod",
            |w| {
                let mut second = budget("all", 1, 3, 3);
                second["spec"]["selector"] = json!({});
                w.of(SourceId::PodDisruptionBudgets).push(second);
            },
            start,
            Status::Block,
            Reason::DisruptionBudgetsOverlap,
            "shop/web-a has more than one budget (shop/web, shop/all)",
        ),
        (
            "a pod elsewhere is not Ready: for now",
            |w| w.of(SourceId::PodDisruptionBudgets)[0] = budget("web", 2, 2, 3),
            start,
            Status::Warn,
            Reason::DisruptionBudgetExhausted,
            "budget shop/web: ",
        ),
        (
            "D10: without /scale",
            |w| {
                let one = &mut w.of(SourceId::PodDisruptionBudgets)[0];
                one["status"]["disruptionsAllowed"] = json!(0);
                one["status"]["conditions"] = json!([{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "foos.example.com does not implement the scale subresource"}]);
            },
            start,
            Status::Block,
            Reason::DisruptionBudgetPermanent,
            "scale subresource",
        ),
        (
            "a budget of another namespace",
            |w| {
                let mut other = budget("web", 3, 3, 3);
                other["metadata"]["namespace"] = json!("other");
                w.of(SourceId::PodDisruptionBudgets)[0] = other;
            },
            start,
            Status::Pass,
            Reason::Passed,
            "worker2 has 2 pods to evict",
        ),
        (
            "a permanent one over pods that stay",
            |w| {
                *w.of(SourceId::TargetPods) = vec![daemon("agent-a", "agent")];
                *w.of(SourceId::DaemonSets) = vec![daemon_set("agent")];
                w.of(SourceId::PodDisruptionBudgets)[0] = budget("web", 3, 3, 3);
            },
            start,
            Status::Pass,
            Reason::Passed,
            "worker2 has nothing to drain",
        ),
        (
            "a permanent one over pods of another node",
            |w| {
                for pod in w.of(SourceId::TargetPods) {
                    pod["spec"]["nodeName"] = json!("worker1");
                }
                w.of(SourceId::PodDisruptionBudgets)[0] = budget("web", 3, 3, 3);
            },
            start,
            Status::Pass,
            Reason::Passed,
            "worker2 has nothing to drain",
        ),
        (
            "cordon-only",
            |w| w.of(SourceId::PodDisruptionBudgets)[0] = budget("web", 3, 3, 3),
            |case| case.strategy = Strategy::CordonOnly,
            Status::NotApplicable,
            Reason::Passed,
            "cordon-only evicts no pod",
        ),
        (
            "budgets failed",
            same,
            |case| {
                case.facts.pod_disruption_budgets =
                    Observation::Failed { kind: FailureKind::Forbidden, detail: "no".to_owned(), at: case.now }
            },
            Status::Unknown,
            Reason::ObservationFailed,
            "pod-disruption-budgets could not be read",
        ),
        (
            "pods failed",
            same,
            |case| {
                case.facts.target_pods =
                    Observation::Failed { kind: FailureKind::Timeout, detail: "no".to_owned(), at: case.now }
            },
            Status::Unknown,
            Reason::ObservationFailed,
            "target-pods could not be read",
        ),
        (
            "pods not asked",
            same,
            |case| case.facts.target_pods = Observation::NotAsked,
            Status::Unknown,
            Reason::NotAsked,
            "nothing asked for target-pods",
        ),
        (
            "a pod without its phase",
            |w| w.of(SourceId::TargetPods)[0]["status"]["conditions"] = json!("odd"),
            start,
            Status::Unknown,
            Reason::ObservationMalformed,
            "Pod shop/web-a",
        ),
    ];
    for (name, bend, shape, status, reason, message) in rows {
        let mut world = world();
        bend(&mut world);
        let mut case = world.case();
        case.moment = Moment::Start;
        shape(&mut case);
        let finding = case.ask(&GATE);
        assert_eq!((finding.status, finding.reason), (status, reason), "{name}: {finding:?}");
        assert!(finding.message.contains(message), "{name}: {}", finding.message);
    }
}

#[test]
fn no_gap_makes_a_budget_that_never_allows_fine() {
    let mut world = world();
    *world.of(SourceId::TargetPods) = vec![pod("web-a")];
    world.of(SourceId::PodDisruptionBudgets)[0] = budget("web", 3, 3, 3);
    let left = survivors(&GATE, &world, |_| {});
    // Each of these makes it another pod, another budget, or one that goes by Kubernetes' own rules.
    let allowed = [
        "target-pods web-a: metadata.namespace",
        "target-pods web-a: metadata.labels",
        "target-pods web-a: metadata.ownerReferences",
        "target-pods web-a: spec.nodeName",
        "target-pods web-a: status.phase",
        "target-pods web-a: status.conditions",
        "pod-disruption-budgets web: metadata.namespace",
        "pod-disruption-budgets web: spec.selector",
        // Without it the budget counts as not computed yet: told as one that allows none now.
        "pod-disruption-budgets web: metadata.generation",
        "pod-disruption-budgets web: status.observedGeneration",
    ];
    let bad: Vec<_> = left.iter().filter(|path| !allowed.iter().any(|start| path.starts_with(start))).collect();
    assert!(bad.is_empty(), "{bad:#?}");
}
