//! The tables of gate `workloads`.

use serde_json::json;

use super::super::RunContext;
use super::super::drain::testing::{daemon, daemon_set, pod};
use super::super::testing::{Case, World, survivors};
use super::{GATE, daemon_sets_of};
use crate::api::{Action, Moment, Reason, SourceId, Status, Strategy};
use crate::facts::{FailureKind, Observation};

/// A Deployment's pod and an agent's on the node.
fn world() -> World {
    let mut world = World::healthy();
    *world.of(SourceId::TargetPods) = vec![pod("web-a"), daemon("agent-a", "agent")];
    *world.of(SourceId::DaemonSets) = vec![daemon_set("agent")];
    world
}

fn bare(world: &mut World) {
    drop(
        world.named(SourceId::TargetPods, "web-a")["metadata"]
            .as_object_mut()
            .expect("an object")
            .remove("ownerReferences"),
    );
}

fn skipped(world: &mut World) {
    world.named(SourceId::TargetPods, "web-a")["metadata"]["labels"]["cluster.x-k8s.io/drain"] = json!("skip");
}

fn at(case: &mut Case, moment: Moment) {
    case.moment = moment;
    case.run = Some(RunContext { daemon_sets: vec!["shop/agent".to_owned()], ..RunContext::default() });
}

fn by_kured(case: &mut Case) {
    case.run = Some(RunContext { action: Some(Action::Kured), ..RunContext::default() });
}

type Row = (&'static str, fn(&mut World), fn(&mut Case), Status, Reason, &'static str);

fn same(_: &mut World) {}
fn start(_: &mut Case) {}
fn handover(case: &mut Case) {
    at(case, Moment::Handover);
}
fn verify(case: &mut Case) {
    at(case, Moment::Verify);
}

fn check(rows: &[Row]) {
    for (name, bend, shape, status, reason, message) in rows {
        let mut world = world();
        bend(&mut world);
        let mut case = world.case();
        shape(&mut case);
        let finding = case.ask(&GATE);
        assert_eq!((finding.status, finding.reason), (*status, *reason), "{name}: {finding:?}");
        assert!(finding.message.contains(message), "{name}: {}", finding.message);
    }
}

#[test]
fn nothing_is_lost() {
    check(&[
        ("a Deployment's pod", same, start, Status::Pass, Reason::Passed, "no pod of worker2 would be lost"),
        (
            "bare",
            bare,
            start,
            Status::Block,
            Reason::PodWithoutController,
            "pod shop/web-a has no controller, so nothing would bring it back; delete it, or let it go: kubectl -n shop annotate pod web-a maint.dev/evict=true",
        ),
        (
            "bare, and let go",
            |w| {
                bare(w);
                w.named(SourceId::TargetPods, "web-a")["metadata"]["annotations"] = json!({"maint.dev/evict": "true"});
            },
            start,
            Status::Pass,
            Reason::Passed,
            "no pod of worker2 would be lost",
        ),
        (
            "bare and finished",
            |w| {
                bare(w);
                w.named(SourceId::TargetPods, "web-a")["status"]["phase"] = json!("Succeeded");
            },
            start,
            Status::Pass,
            Reason::Passed,
            "no pod of worker2 would be lost",
        ),
        (
            "bare, cordon-only",
            bare,
            |case| case.strategy = Strategy::CordonOnly,
            Status::NotApplicable,
            Reason::Passed,
            "cordon-only evicts no pod",
        ),
        (
            "a DaemonSet's that is gone",
            |w| w.of(SourceId::DaemonSets).clear(),
            start,
            Status::Block,
            Reason::PodWithoutController,
            "belongs to DaemonSet agent, which is gone",
        ),
        ("skipped", skipped, start, Status::Pass, Reason::Passed, "no pod of worker2 would be lost"),
        (
            "skipped, and kured drains",
            skipped,
            by_kured,
            Status::Block,
            Reason::PodSkippedWithKured,
            "kured would drain it all the same",
        ),
        (
            "pinned",
            |w| {
                w.named(SourceId::TargetPods, "web-a")["spec"]["nodeSelector"] =
                    json!({"kubernetes.io/hostname": "worker2"});
            },
            start,
            Status::Warn,
            Reason::PodPinnedToNode,
            "shop/web-a may run on this node only",
        ),
        (
            "longer than the drain",
            |w| w.named(SourceId::TargetPods, "web-a")["spec"]["terminationGracePeriodSeconds"] = json!(7200),
            start,
            Status::Warn,
            Reason::GraceTooLong,
            "has 7200 s to end",
        ),
    ]);
}

#[test]
fn nothing_is_left_at_the_handover() {
    check(&[
        ("one is left", same, handover, Status::Block, Reason::PodsRemaining, "pod shop/web-a is still on worker2"),
        (
            "DaemonSets stay",
            |w| drop(w.of(SourceId::TargetPods).remove(0)),
            handover,
            Status::Pass,
            Reason::Passed,
            "only pods that stay are left on worker2",
        ),
        ("skipped ones stay", skipped, handover, Status::Pass, Reason::Passed, "only pods that stay"),
        (
            "ending is not gone",
            |w| w.named(SourceId::TargetPods, "web-a")["metadata"]["deletionTimestamp"] = json!("2026-11-30T00:59:59Z"),
            handover,
            Status::Block,
            Reason::PodsRemaining,
            "still on worker2",
        ),
        (
            "cordon-only leaves them",
            same,
            |case| {
                handover(case);
                case.strategy = Strategy::CordonOnly;
            },
            Status::NotApplicable,
            Reason::Passed,
            "cordon-only",
        ),
        (
            "what acts on the node is maint's own",
            |w| w.named(SourceId::TargetPods, "web-a")["metadata"]["namespace"] = json!("maint-actions"),
            handover,
            Status::Pass,
            Reason::Passed,
            "only pods that stay",
        ),
    ]);
}

#[test]
fn daemon_sets_come_back() {
    check(&[
        (
            "Ready again",
            same,
            verify,
            Status::Pass,
            Reason::Passed,
            "the DaemonSet that had a Ready pod here at the start has one again",
        ),
        (
            "not Ready",
            |w| w.named(SourceId::TargetPods, "agent-a")["status"]["conditions"][0]["status"] = json!("False"),
            verify,
            Status::Block,
            Reason::DaemonSetPodNotReady,
            "DaemonSet shop/agent had a Ready pod on worker2 at the start and has none now",
        ),
        (
            "no pod",
            |w| drop(w.of(SourceId::TargetPods).remove(1)),
            verify,
            Status::Block,
            Reason::DaemonSetPodNotReady,
            "has none now",
        ),
        (
            "cordon-only asks, too",
            |w| drop(w.of(SourceId::TargetPods).remove(1)),
            |case| {
                verify(case);
                case.strategy = Strategy::CordonOnly;
            },
            Status::Block,
            Reason::DaemonSetPodNotReady,
            "has none now",
        ),
        (
            "deleted meanwhile",
            |w| {
                w.of(SourceId::DaemonSets).clear();
                w.of(SourceId::TargetPods).remove(1);
            },
            verify,
            Status::Pass,
            Reason::Passed,
            "has one again",
        ),
        (
            "it was not Ready at the start",
            |w| drop(w.of(SourceId::TargetPods).remove(1)),
            |case| {
                verify(case);
                case.run = Some(RunContext::default());
            },
            Status::Pass,
            Reason::Passed,
            "no DaemonSet had a Ready pod",
        ),
        (
            "pods failed",
            same,
            |case| {
                verify(case);
                case.facts.target_pods =
                    Observation::Failed { kind: FailureKind::Server, detail: "500".to_owned(), at: case.now };
            },
            Status::Unknown,
            Reason::ObservationFailed,
            "target-pods could not be read",
        ),
        (
            "DaemonSets not asked",
            same,
            |case| {
                verify(case);
                case.facts.daemon_sets = Observation::NotAsked;
            },
            Status::Unknown,
            Reason::NotAsked,
            "nothing asked for daemon-sets",
        ),
    ]);
}

#[test]
fn what_is_kept_of_the_start_is_what_was_ready_there() {
    let mut world = world();
    let mut sick = daemon("csi-a", "csi");
    sick["status"]["conditions"][0]["status"] = json!("False");
    let mut elsewhere = daemon("log-a", "log");
    elsewhere["spec"]["nodeName"] = json!("worker1");
    world.of(SourceId::TargetPods).extend([sick, elsewhere]);
    let case = world.case();
    assert_eq!(daemon_sets_of(&case.facts.target_pods, "worker2"), ["shop/agent"]);
    assert!(daemon_sets_of(&Observation::NotAsked, "worker2").is_empty());
}

#[test]
fn no_gap_makes_a_pod_that_would_be_lost_fine() {
    let mut world = world();
    bare(&mut world);
    let left = survivors(&GATE, &world, |_| {});
    // Each of these makes it a pod that runs elsewhere, has ended, or is not in the list.
    let allowed = [
        "target-pods web-a: metadata.namespace",
        "target-pods web-a: spec.nodeName",
        "target-pods web-a: status.phase",
    ];
    let bad: Vec<_> = left.iter().filter(|path| !allowed.iter().any(|start| path.starts_with(start))).collect();
    assert!(bad.is_empty(), "{bad:#?}");
}
