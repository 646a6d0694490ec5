//! Table of gate `target`.

use serde_json::{Value, json};

use super::GATE;
use crate::api::{Moment, Reason, Status, Trigger};
use crate::config::Scope;
use crate::facts::{FailureKind, Observation};
use crate::gates::RunContext;
use crate::gates::mutation;
use crate::gates::testing::{Case, NODES, good, known, node, node_lease, now};

fn run() -> RunContext {
    RunContext {
        maintenance_uid: "u-1".into(),
        term: 3,
        boot_id_before: Some("boot-before".into()),
        ..RunContext::default()
    }
}

/// `worker2`, cordoned for run `u-1` by maint.
fn ours() -> Value {
    let mut document = node("worker2");
    document["spec"]["unschedulable"] = json!(true);
    document["metadata"]["annotations"] = json!({"maint.dev/owner": r#"{"maintenance":"u-1","term":3}"#});
    document["metadata"]["managedFields"] =
        json!([{"manager": "maint", "operation": "Update", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}]);
    document
}

fn set_by(manager: &str) -> Value {
    let mut document = ours();
    document["metadata"]["managedFields"][0]["manager"] = json!(manager);
    document
}

/// Puts this in the place of `worker2`.
fn target(case: &mut Case, document: Value) {
    case.facts.nodes = known(&[node("worker1"), document, node("worker3")]);
}

fn bent(mut document: Value, bend: impl FnOnce(&mut Value)) -> Value {
    bend(&mut document);
    document
}

type Row = (&'static str, fn(&mut Case), Status, Reason, &'static str);

fn check(moment: Moment, rows: &[Row]) {
    assert!(GATE.moments.contains(&moment));
    for (row, bend, status, reason, message) in rows {
        let mut case = Case { moment, run: (moment != Moment::Start).then(run), ..Case::default() };
        bend(&mut case);
        let finding = case.ask(&GATE);
        assert_eq!((finding.status, finding.reason), (*status, *reason), "{row}: {finding:?}");
        assert!(finding.message.contains(message), "{row}: {}", finding.message);
    }
}

#[test]
fn start() {
    use Reason::{TargetCordonedByOther, TargetNotFound, TargetNotReady};
    use Status::{Block, Pass, Unknown, Warn};
    let rows: [Row; 18] = [
        ("fine", |_| {}, Pass, Reason::Passed, "node worker2 is Ready, and nobody else has cordoned it"),
        (
            "no such node",
            |c| c.target = "worker4".into(),
            Block,
            TargetNotFound,
            "there is no node worker4; there are: worker1, worker2, worker3",
        ),
        (
            "no such node, many others",
            |c| {
                c.target = "worker4".into();
                let names: Vec<_> = (10..22).map(|number| node(&format!("n{number}"))).collect();
                c.facts.nodes = good(&names);
            },
            Block,
            TargetNotFound,
            "there are: n10, n11, n12, n13, n14, n15, n16, n17, n18, n19 and 2 more",
        ),
        (
            "not Ready",
            |c| target(c, bent(node("worker2"), |n| n["status"]["conditions"][0]["status"] = json!("False"))),
            Block,
            TargetNotReady,
            "node worker2 is not Ready: False (KubeletReady), since 2026-11-29T01:00:00Z",
        ),
        (
            "Ready is Unknown",
            |c| target(c, bent(node("worker2"), |n| n["status"]["conditions"][0]["status"] = json!("Unknown"))),
            Block,
            TargetNotReady,
            "node worker2 is not Ready: Unknown",
        ),
        (
            "cordoned by a person",
            |c| {
                target(
                    c,
                    bent(set_by("kubectl-cordon"), |n| {
                        n["metadata"].as_object_mut().expect("an object").remove("annotations");
                    }),
                );
            },
            Block,
            TargetCordonedByOther,
            "node worker2 is cordoned, and not by maint (set by kubectl-cordon)",
        ),
        (
            "the same for a manual run",
            |c| {
                c.trigger = Trigger::Manual;
                target(c, bent(node("worker2"), |n| n["spec"]["unschedulable"] = json!(true)));
            },
            Warn,
            TargetCordonedByOther,
            "(set by nobody that managedFields name); a manual run goes on, and leaves this cordon where it is",
        ),
        (
            "our annotation, another manager",
            |c| target(c, set_by("kubectl-cordon")),
            Block,
            TargetCordonedByOther,
            "it has our owner annotation, but the cordon was set by kubectl-cordon",
        ),
        (
            "our manager, no annotation",
            |c| target(c, bent(ours(), |n| n["metadata"]["annotations"] = json!({}))),
            Block,
            TargetCordonedByOther,
            "is cordoned, and not by maint (set by maint)",
        ),
        (
            "another run of ours",
            |c| target(c, ours()),
            Block,
            TargetCordonedByOther,
            "cordoned by another run of maint (uid u-1)",
        ),
        (
            "this very run",
            |c| {
                c.run = Some(run());
                target(c, ours());
            },
            Pass,
            Reason::Passed,
            "nobody else",
        ),
        (
            "cordoned by the taint only",
            |c| {
                let taint = json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]);
                target(c, bent(node("worker2"), |n| n["spec"]["taints"] = taint));
            },
            Block,
            TargetCordonedByOther,
            "by taint node.kubernetes.io/unschedulable only",
        ),
        (
            "about to be deleted",
            |c| {
                let taint = json!([{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]);
                target(c, bent(node("worker2"), |n| n["spec"]["taints"] = taint));
            },
            Block,
            TargetCordonedByOther,
            "node worker2 is about to be deleted (taint ToBeDeletedByClusterAutoscaler)",
        ),
        (
            "an unreadable owner, cordoned or not",
            |c| target(c, bent(node("worker2"), |n| n["metadata"]["annotations"] = json!({"maint.dev/owner": "me"}))),
            Unknown,
            Reason::ObservationMalformed,
            "Node worker2: metadata.annotations[maint.dev/owner] is no readable owner document",
        ),
        (
            "an owner that is left over",
            |c| target(c, bent(ours(), |n| n["spec"] = json!({}))),
            Pass,
            Reason::Passed,
            "nobody else",
        ),
        (
            "there, and cannot be read",
            |c| target(c, bent(node("worker2"), |n| n["status"]["nodeInfo"] = json!({}))),
            Unknown,
            Reason::ObservationMalformed,
            "Node worker2: status.nodeInfo.bootID is missing",
        ),
        (
            "nodes failed",
            |c| c.facts.nodes = Observation::Failed { kind: FailureKind::Partial, detail: "page 2".into(), at: now() },
            Unknown,
            Reason::ObservationFailed,
            "nodes could not be read (partial): page 2",
        ),
        (
            "stale",
            |c| c.now = now() + jiff::SignedDuration::from_secs(31),
            Unknown,
            Reason::ObservationStale,
            "31 s old",
        ),
    ];
    check(Moment::Start, &rows);
}

#[test]
fn cordoned_and_handover() {
    use {Reason::CordonRemoved, Status::Block, Status::Unknown};
    let rows: [Row; 9] = [
        ("ours", |c| target(c, ours()), Status::Pass, Reason::Passed, "node worker2 is still cordoned for this run"),
        (
            "B77: somebody uncordoned it",
            |c| target(c, bent(ours(), |n| n["spec"] = json!({}))),
            Block,
            CordonRemoved,
            "somebody uncordoned node worker2 while this run was at work",
        ),
        (
            "only the taint is left: the scheduler's field is what counts",
            |c| {
                let taint = json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]);
                target(c, bent(ours(), |n| n["spec"] = json!({"taints": taint})));
            },
            Block,
            CordonRemoved,
            "somebody uncordoned node worker2",
        ),
        (
            "the owner annotation is gone",
            |c| target(c, bent(ours(), |n| n["metadata"]["annotations"] = json!({}))),
            Block,
            CordonRemoved,
            "no longer for this run: the owner annotation is missing",
        ),
        (
            "uncordoned and cordoned anew by a person",
            |c| target(c, set_by("kubectl-cordon")),
            Block,
            CordonRemoved,
            "the cordon of node worker2 is no longer ours: it was set anew by kubectl-cordon",
        ),
        (
            "the person's cordon of a manual run",
            |c| {
                c.run = Some(RunContext { was_unschedulable: true, ..run() });
                target(c, set_by("kubectl-cordon"));
            },
            Status::Pass,
            Reason::Passed,
            "still cordoned",
        ),
        (
            "the person lifts it while a manual run is at work",
            |c| {
                c.run = Some(RunContext { was_unschedulable: true, ..run() });
                target(c, bent(set_by("kubectl-cordon"), |n| n["spec"] = json!({})));
            },
            Block,
            CordonRemoved,
            "somebody uncordoned node worker2",
        ),
        (
            "an unreadable owner",
            |c| target(c, bent(ours(), |n| n["metadata"]["annotations"]["maint.dev/owner"] = json!("{}"))),
            Unknown,
            Reason::ObservationMalformed,
            "is no readable owner document: missing field `maintenance`",
        ),
        (
            "no run",
            |c| c.run = None,
            Unknown,
            Reason::ObservationFailed,
            "was asked without the run that it belongs to",
        ),
    ];
    check(Moment::Cordoned, &rows);
    check(Moment::Handover, &rows);
}

#[test]
fn handover_of_another_run() {
    let mut case = Case { moment: Moment::Handover, run: Some(run()), ..Case::default() };
    case.run = Some(RunContext { maintenance_uid: "u-2".into(), ..run() });
    target(&mut case, ours());
    let finding = case.ask(&GATE);
    assert_eq!((finding.status, finding.reason), (Status::Block, Reason::CordonRemoved));
    assert_eq!(
        finding.message,
        "node worker2 is cordoned, but no longer for this run: the owner annotation is uid u-1"
    );
}

#[test]
fn verify() {
    use Reason::{NodeDidNotReboot, TargetNotFound, TargetNotReady};
    use Status::{Block, Pass, Unknown};
    fn lease_of_target(case: &mut Case, seconds: i64) {
        case.facts.leases = good(&NODES.map(|name| node_lease(name, if name == "worker2" { seconds } else { 5 })));
    }
    let rows: [Row; 15] = [
        ("back", |_| {}, Pass, Reason::Passed, "node worker2 is Ready and its kubelet reports, with a new boot ID"),
        (
            "uncordoned by someone: it is verified all the same",
            |c| target(c, node("worker2")),
            Pass,
            Reason::Passed,
            "Ready",
        ),
        ("gone", |c| c.target = "worker4".into(), Block, TargetNotFound, "there is no node worker4"),
        (
            "B78: not Ready",
            |c| target(c, bent(ours(), |n| n["status"]["conditions"][0]["status"] = json!("False"))),
            Block,
            TargetNotReady,
            "node worker2 is not Ready: False",
        ),
        (
            "the same boot",
            |c| target(c, bent(ours(), |n| n["status"]["nodeInfo"]["bootID"] = json!("boot-before"))),
            Block,
            NodeDidNotReboot,
            "node worker2 did not reboot: its boot ID is still boot-before",
        ),
        (
            "the same boot, and none was wanted",
            |c| {
                c.scope = Scope::find(&c.settings, "service-restart").expect("built in");
                target(c, bent(ours(), |n| n["status"]["nodeInfo"]["bootID"] = json!("boot-before")));
            },
            Pass,
            Reason::Passed,
            "node worker2 is Ready and its kubelet reports",
        ),
        (
            "no boot ID was recorded",
            |c| c.run = Some(RunContext { boot_id_before: None, ..run() }),
            Unknown,
            NodeDidNotReboot,
            "the boot ID before the act was not recorded",
        ),
        (
            "an empty one was",
            |c| c.run = Some(RunContext { boot_id_before: Some(String::new()), ..run() }),
            Unknown,
            NodeDidNotReboot,
            "was not recorded",
        ),
        (
            "an empty boot ID",
            |c| target(c, bent(ours(), |n| n["status"]["nodeInfo"]["bootID"] = json!(""))),
            Unknown,
            NodeDidNotReboot,
            "its boot ID is empty",
        ),
        ("no run", |c| c.run = None, Unknown, Reason::ObservationFailed, "moment verify was asked without the run"),
        ("a Lease at its limit", |c| lease_of_target(c, 40), Pass, Reason::Passed, "Ready"),
        (
            "an old Lease: Ready is a word of before",
            |c| lease_of_target(c, 41),
            Block,
            TargetNotReady,
            "its Lease was renewed 41 s ago, wanted within 40 s",
        ),
        (
            "no Lease",
            |c| c.facts.leases = good(&[node_lease("worker1", 5)]),
            Block,
            TargetNotReady,
            "its Lease was renewed never",
        ),
        (
            "a Lease of the future",
            |c| lease_of_target(c, -41),
            Unknown,
            TargetNotReady,
            "the Lease of node worker2 is renewed 41 s in the future: its clock or ours is wrong",
        ),
        (
            "leases failed",
            |c| c.facts.leases = Observation::Failed { kind: FailureKind::Timeout, detail: "5 s".into(), at: now() },
            Unknown,
            Reason::ObservationFailed,
            "leases could not be read (timeout): 5 s",
        ),
    ];
    check(Moment::Verify, &rows);
}

#[test]
fn no_missing_or_odd_field_makes_a_block_fine() {
    let ask = |moment: Moment| {
        move |document: &Value| {
            let mut case = Case { moment, run: (moment != Moment::Start).then(run), ..Case::default() };
            target(&mut case, document.clone());
            case.ask(&GATE)
        }
    };
    let unready = bent(node("worker2"), |n| n["status"]["conditions"][0]["status"] = json!("False"));
    mutation::check(&unready, &[], ask(Moment::Start));
    mutation::check(&unready, &[], ask(Moment::Verify));
    // A field that is not there or null means false to Kubernetes: not cordoned.
    mutation::check(
        &set_by("kubectl-cordon"),
        &["/spec/unschedulable deleted", "/spec/unschedulable nulled"],
        ask(Moment::Start),
    );
    mutation::check(&set_by("kubectl-cordon"), &[], ask(Moment::Handover));
    let same_boot = bent(ours(), |n| n["status"]["nodeInfo"]["bootID"] = json!("boot-before"));
    mutation::check(&same_boot, &[], ask(Moment::Verify));
}

#[test]
fn of_what_proves_our_cordon_nothing_can_be_missing() {
    // Here the fixture is fine, and every bend at the marks of the cordon must stop the hand-over.
    for (what, document) in mutation::mutations(&ours()) {
        let mark = ["/spec", "/metadata/annotations", "/metadata/managedFields"].iter().any(|at| what.starts_with(at));
        if !mark || what.contains("/operation") {
            continue;
        }
        let mut case = Case { moment: Moment::Handover, run: Some(run()), ..Case::default() };
        target(&mut case, document);
        let finding = case.ask(&GATE);
        assert!(
            finding.stops() || what.starts_with("/metadata/managedFields/0/fieldsV1/f:spec/f:unschedulable/"),
            "{what}"
        );
    }
}
