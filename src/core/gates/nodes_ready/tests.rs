//! Table of gate `nodes-ready`.

use serde_json::{Value, json};

use super::GATE;
use crate::api::{Evidence, Finding, GateId, Moment, Reason, Status};
use crate::facts::{FailureKind, Observation};
use crate::gates::RunContext;
use crate::gates::mutation;
use crate::gates::testing::{Case, ago, good, known, node, node_lease, now};

/// Bends `worker3` (or another) of three nodes; `workers` are no control-plane nodes.
fn bend(case: &mut Case, name: &str, workers: &[&str], change: impl Fn(&mut Value)) {
    let documents: Vec<Value> = ["worker1", "worker2", "worker3"]
        .into_iter()
        .map(|each| {
            let mut document = node(each);
            if workers.contains(&each) {
                document["metadata"]["labels"] = json!({"kubernetes.io/hostname": each});
            }
            if each == name {
                change(&mut document);
            }
            document
        })
        .collect();
    case.facts.nodes = known(&documents);
}

fn set(kind: &'static str, status: &'static str) -> impl Fn(&mut Value) {
    move |document| {
        let conditions = document["status"]["conditions"].as_array_mut().expect("a list");
        conditions.retain(|condition| condition["type"] != kind);
        conditions.push(json!({"type": kind, "status": status, "reason": "Why", "lastTransitionTime": ago(60)}));
    }
}

fn without(kind: &'static str) -> impl Fn(&mut Value) {
    move |document| {
        let conditions = document["status"]["conditions"].as_array_mut().expect("a list");
        conditions.retain(|condition| condition["type"] != kind);
    }
}

fn leases(case: &mut Case, name: &str, seconds: i64) {
    let all = ["worker1", "worker2", "worker3"];
    case.facts.leases = good(&all.map(|each| node_lease(each, if each == name { seconds } else { 5 })));
}

type Row = (&'static str, fn(&mut Case), Status, Reason, &'static str);

fn check(moments: &[Moment], rows: &[Row]) {
    for moment in moments {
        for (row, bend, status, reason, message) in rows {
            let mut case = Case { moment: *moment, run: Some(RunContext::default()), ..Case::default() };
            bend(&mut case);
            let finding = case.ask(&GATE);
            assert_eq!((finding.status, finding.reason), (*status, *reason), "{row} at {moment}: {finding:?}");
            assert!(finding.message.contains(message), "{row} at {moment}: {}", finding.message);
        }
    }
}

const BEFORE: [Moment; 3] = [Moment::Start, Moment::Cordoned, Moment::Handover];

#[test]
fn the_others_before_the_act() {
    use Reason::{NodeLeaseStale, NodeNetworkUnavailable, NodeNotReady, NodeUnderPressure};
    use Status::{Block, Pass, Unknown};
    let rows: [Row; 17] = [
        (
            "fine",
            |_| {},
            Pass,
            Reason::Passed,
            "all other 2 nodes are Ready, with fresh leases, no pressure and their network",
        ),
        (
            "B14: not Ready",
            |c| bend(c, "worker3", &[], set("Ready", "False")),
            Block,
            NodeNotReady,
            "node worker3 is not Ready: False (Why), since 2026-11-30T00:59:00Z",
        ),
        (
            "B13: Ready is Unknown, and with it all else: one problem",
            |c| {
                bend(c, "worker3", &[], |document| {
                    for condition in document["status"]["conditions"].as_array_mut().expect("a list") {
                        condition["status"] = json!("Unknown");
                    }
                });
            },
            Block,
            NodeNotReady,
            "node worker3 is not Ready: Unknown (KubeletReady), since 2026-11-29T01:00:00Z",
        ),
        (
            "no Ready at all",
            |c| bend(c, "worker3", &[], without("Ready")),
            Block,
            NodeNotReady,
            "is not Ready: missing",
        ),
        (
            "the target is asked by another gate",
            |c| bend(c, "worker2", &[], set("Ready", "False")),
            Pass,
            Reason::Passed,
            "2",
        ),
        ("a Lease at its limit", |c| leases(c, "worker1", 40), Pass, Reason::Passed, "2"),
        (
            "an old Lease",
            |c| leases(c, "worker1", 41),
            Block,
            NodeLeaseStale,
            "the Lease of node worker1 was renewed 41 s ago, wanted within 40 s",
        ),
        (
            "no Lease",
            |c| c.facts.leases = good(&[node_lease("worker1", 5)]),
            Block,
            NodeLeaseStale,
            "the Lease of node worker3 was renewed never",
        ),
        (
            "a Lease of the same name elsewhere",
            |c| {
                let mut other = node_lease("worker3", 5);
                other["metadata"]["namespace"] = json!("kube-system");
                c.facts.leases = good(&[node_lease("worker1", 5), other]);
            },
            Block,
            NodeLeaseStale,
            "the Lease of node worker3 was renewed never",
        ),
        (
            "a Lease of the future",
            |c| leases(c, "worker1", -41),
            Unknown,
            NodeLeaseStale,
            "renewed 41 s in the future: its clock or ours is wrong",
        ),
        (
            "memory",
            |c| bend(c, "worker3", &[], set("MemoryPressure", "True")),
            Block,
            NodeUnderPressure,
            "node worker3 has MemoryPressure (Why), since 2026-11-30T00:59:00Z",
        ),
        (
            "disk",
            |c| bend(c, "worker3", &[], set("DiskPressure", "True")),
            Block,
            NodeUnderPressure,
            "has DiskPressure",
        ),
        (
            "process ids, unknown",
            |c| bend(c, "worker3", &[], set("PIDPressure", "Unknown")),
            Unknown,
            NodeUnderPressure,
            "whether node worker3 has PIDPressure is not known (Why)",
        ),
        (
            "a pressure that nobody reports",
            |c| bend(c, "worker3", &[], without("DiskPressure")),
            Unknown,
            Reason::ObservationMalformed,
            "node worker3 has no condition DiskPressure, which every kubelet reports",
        ),
        (
            "no network",
            |c| bend(c, "worker3", &[], set("NetworkUnavailable", "True")),
            Block,
            NodeNetworkUnavailable,
            "node worker3 has NetworkUnavailable",
        ),
        ("a network", |c| bend(c, "worker3", &[], set("NetworkUnavailable", "False")), Pass, Reason::Passed, "2"),
        (
            "the network is unknown",
            |c| bend(c, "worker3", &[], set("NetworkUnavailable", "Unknown")),
            Unknown,
            NodeNetworkUnavailable,
            "whether node worker3 has NetworkUnavailable is not known",
        ),
    ];
    check(&BEFORE, &rows);
}

#[test]
fn what_counts_under_a_limit() {
    use Reason::{NodeNotReady, NodeUnderPressure};
    use Status::{Block, Warn};
    const WORKERS: [&str; 2] = ["worker1", "worker3"];
    let rows: [Row; 7] = [
        (
            "one worker of two",
            |c| {
                c.settings.limits.max_unavailable = 2;
                bend(c, "worker3", &WORKERS, set("Ready", "False"));
            },
            Warn,
            NodeNotReady,
            "fewer than 2 workers may fail (max_unavailable)",
        ),
        (
            "one worker, and something is unknown of it: it counts as failing",
            |c| {
                c.settings.limits.max_unavailable = 2;
                bend(c, "worker3", &WORKERS, set("DiskPressure", "Unknown"));
            },
            Warn,
            NodeUnderPressure,
            "fewer than 2 workers may fail",
        ),
        (
            "two workers of two",
            |c| {
                c.settings.limits.max_unavailable = 2;
                bend(c, "worker3", &WORKERS, set("Ready", "False"));
                leases(c, "worker1", 300);
            },
            Block,
            Reason::NodeLeaseStale,
            "the Lease of node worker1 was renewed 300 s ago, wanted within 40 s; and 1 more",
        ),
        (
            "a control-plane node, strictly",
            |c| {
                c.settings.limits.max_unavailable = 5;
                bend(c, "worker3", &["worker1"], set("Ready", "False"));
            },
            Block,
            NodeNotReady,
            "node worker3 is not Ready",
        ),
        (
            "a worker and a limit of 1",
            |c| bend(c, "worker3", &WORKERS, set("Ready", "False")),
            Block,
            NodeNotReady,
            "node worker3 is not Ready",
        ),
        (
            "an ignored worker",
            |c| {
                c.settings.limits.ignore_nodes = vec!["worker3".into()];
                bend(c, "worker3", &WORKERS, set("Ready", "False"));
            },
            Status::Pass,
            Reason::Passed,
            "all other 1 nodes",
        ),
        (
            "an ignored control-plane node",
            |c| {
                c.settings.limits.ignore_nodes = vec!["worker3".into()];
                bend(c, "worker3", &[], set("Ready", "False"));
            },
            Block,
            NodeNotReady,
            "node worker3 is not Ready",
        ),
    ];
    check(&BEFORE, &rows);
}

#[test]
fn verify_warns_and_settle_asks_all() {
    use Reason::{NodeNotReady, NodeUnderPressure};
    let verify: [Row; 3] = [
        ("fine", |_| {}, Status::Pass, Reason::Passed, "all other 2 nodes"),
        (
            "another one fails: the target is not kept cordoned for it",
            |c| bend(c, "worker3", &[], set("Ready", "False")),
            Status::Warn,
            NodeNotReady,
            "it does not keep worker2 cordoned, and no other node starts",
        ),
        (
            "the target is asked by another gate",
            |c| bend(c, "worker2", &[], set("Ready", "False")),
            Status::Pass,
            Reason::Passed,
            "2",
        ),
    ];
    check(&[Moment::Verify], &verify);
    let settle: [Row; 5] = [
        ("fine", |_| {}, Status::Pass, Reason::Passed, "all 3 nodes are Ready"),
        (
            "another one",
            |c| bend(c, "worker3", &[], set("Ready", "False")),
            Status::Block,
            NodeNotReady,
            "node worker3 is not Ready",
        ),
        (
            "the target, whatever the limit",
            |c| {
                c.settings.limits.max_unavailable = 5;
                bend(c, "worker2", &["worker2"], set("MemoryPressure", "True"));
            },
            Status::Block,
            NodeUnderPressure,
            "node worker2 has MemoryPressure",
        ),
        (
            "it was so at the start",
            |c| {
                bend(c, "worker3", &[], set("DiskPressure", "True"));
                c.run = Some(RunContext {
                    baseline: vec![baseline("status.conditions[DiskPressure]")],
                    ..RunContext::default()
                });
            },
            Status::Warn,
            NodeUnderPressure,
            "it was so before the run",
        ),
        (
            "something else was so at the start",
            |c| {
                bend(c, "worker3", &[], set("DiskPressure", "True"));
                c.run = Some(RunContext {
                    baseline: vec![baseline("status.conditions[PIDPressure]")],
                    ..RunContext::default()
                });
            },
            Status::Block,
            NodeUnderPressure,
            "node worker3 has DiskPressure",
        ),
    ];
    check(&[Moment::Settle], &settle);
}

fn baseline(field: &str) -> Finding {
    Finding {
        gate: GateId::NodesReady,
        status: Status::Warn,
        reason: Reason::NodeUnderPressure,
        message: "waived".into(),
        evidence: vec![Evidence::new("Node worker3", field, "True", "False")],
        evidence_left_out: 0,
        observed_at: None,
        since: None,
    }
}

#[test]
fn what_could_not_be_read() {
    use {Reason::ObservationFailed, Status::Unknown};
    let rows: [Row; 5] = [
        (
            "nodes failed",
            |c| c.facts.nodes = Observation::Failed { kind: FailureKind::Transport, detail: "reset".into(), at: now() },
            Unknown,
            ObservationFailed,
            "nodes could not be read (transport): reset",
        ),
        (
            "nodes absent",
            |c| c.facts.nodes = Observation::Absent { at: now() },
            Unknown,
            ObservationFailed,
            "although the kind is built in",
        ),
        (
            "leases not asked",
            |c| c.facts.leases = Observation::NotAsked,
            Unknown,
            Reason::NotAsked,
            "nothing asked for leases",
        ),
        (
            "an odd condition",
            |c| bend(c, "worker3", &[], |document| document["status"]["conditions"][0]["status"] = json!("true")),
            Unknown,
            Reason::ObservationMalformed,
            "Node worker3: status.conditions[0].status is `true`, wanted True, False or Unknown",
        ),
        (
            "stale",
            |c| c.now = now() + jiff::SignedDuration::from_secs(31),
            Unknown,
            Reason::ObservationStale,
            "31 s old",
        ),
    ];
    check(&BEFORE, &rows);
    check(&[Moment::Verify, Moment::Settle], &rows);
}

#[test]
fn no_missing_or_odd_field_makes_a_block_fine() {
    let with_node = |document: &Value| {
        let mut case = Case::default();
        case.facts.nodes = known(&[node("worker1"), node("worker2"), document.clone()]);
        case.ask(&GATE)
    };
    let bent = |change: &dyn Fn(&mut Value)| {
        let mut document = node("worker3");
        change(&mut document);
        document
    };
    mutation::check(&bent(&set("Ready", "False")), &[], with_node);
    mutation::check(&bent(&set("MemoryPressure", "True")), &[], with_node);
    // Where no cloud provider and no plug-in reports the network there is no such condition; `last` in the list.
    mutation::check(&bent(&set("NetworkUnavailable", "True")), &["/status/conditions/5 deleted"], with_node);

    let with_lease = |document: &Value| {
        let mut case = Case::default();
        case.facts.leases = known(&[node_lease("worker1", 5), node_lease("worker2", 5), document.clone()]);
        case.ask(&GATE)
    };
    mutation::check(&node_lease("worker3", 41), &[], with_lease);
}
