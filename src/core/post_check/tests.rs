//! Table of what is looked at after power-on: a healthy cluster that each row bends in one place.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::api::Policy;
use crate::facts::FailureKind;
use crate::gates::testing::{Case, NODES, World, ago, now};
use crate::matrix::{CellVerdict, Readiness};

fn daemon_set(name: &str, ready: i64, desired: i64, generations: (i64, i64)) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "kube-system", "generation": generations.0},
        "spec": {"selector": {"matchLabels": {"name": name}}, "template": {"spec": {"containers": []}}},
        "status": {
            "desiredNumberScheduled": desired, "numberReady": ready, "updatedNumberScheduled": desired,
            "observedGeneration": generations.1,
        },
    })
}

fn world() -> World {
    let mut world = World::healthy();
    *world.of(SourceId::DaemonSets) = vec![daemon_set("cilium", 3, 3, (2, 2))];
    world
}

fn cordoned(world: &mut World, manager: Option<&str>, annotations: Value) {
    let node = world.named(SourceId::Nodes, "worker2");
    node["spec"] = json!({"unschedulable": true});
    node["metadata"]["annotations"] = annotations;
    if let Some(manager) = manager {
        node["metadata"]["managedFields"] =
            json!([{"manager": manager, "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}]);
    }
}

fn record(world: &mut World, phase: &str) {
    world.of(SourceId::Maintenances).push(json!({
        "metadata": {"name": "worker2-abcde", "uid": "uid-run", "creationTimestamp": ago(600)},
        "spec": {"nodeName": "worker2", "scope": "reboot"}, "status": {"phase": phase},
    }));
}

fn ours(world: &mut World) {
    cordoned(world, Some("maint"), json!({"maint.dev/owner": r#"{"maintenance":"uid-run","term":3}"#}));
}

fn check(case: &Case, nodes: &[String], is_dump: bool) -> PostCheck {
    examine(&Asked { facts: &case.facts, settings: &case.settings, nodes, is_dump, now: case.now })
}

fn line<'a>(found: &'a PostCheck, id: &str) -> &'a Line {
    found.lines.iter().find(|line| line.id == id).unwrap_or_else(|| panic!("no line {id}: {found:?}"))
}

#[test]
fn a_healthy_cluster_is_clear_and_says_why() {
    let case = world().case();
    let found = check(&case, &[], false);
    assert_eq!(found.verdict, Verdict::Clear, "{found:?}");
    let is_off = |id: &&str| GATES.iter().any(|gate| gate.id.as_str() == *id && gate.default_policy == Policy::Off);
    let told: BTreeSet<&str> = found.lines.iter().map(|line| line.id).collect();
    let wanted: BTreeSet<&str> = ids().into_iter().filter(|id| !is_off(id)).collect();
    assert_eq!(told, wanted, "a line for each that is asked");
    assert!(found.in_short().is_none() && found.not_asked.is_empty());
    for (id, part) in [
        ("nodes-ready", "all 3 nodes are Ready"),
        ("control-plane", "3 etcd voters are healthy"),
        ("kubelet-reachability", "all 9 paths from 3 API servers to the kubelets are whole"),
        ("nodes", "3 nodes: worker1, worker2, worker3"),
        ("daemon-sets", "all 1 DaemonSets have a Ready pod on each of their nodes (3 pods)"),
        ("cordons", "none of 3 nodes is cordoned"),
        ("clocks", "our clock and those of the nodes agree"),
        ("boots", "3 of 3 nodes booted since they were last found good: worker1, worker2, worker3"),
    ] {
        assert!(line(&found, id).message.contains(part), "{id}: {}", line(&found, id).message);
    }
    let boots: Vec<&str> = line(&found, "boots").evidence.iter().map(|seen| seen.value.as_str()).collect();
    assert_eq!(boots, NODES.map(|name| format!("boot-{name}")));
}

#[test]
fn one_fault_of_each_kind_comes_first_and_alone() {
    type Row = (&'static str, fn(&mut World), fn(&mut Case), &'static str, Status, Reason, &'static str);
    const AS_IT_IS: fn(&mut Case) = |_| {};
    const NOTHING: fn(&mut World) = |_| {};
    use Status::{Block, Unknown, Warn};
    let rows: [Row; 19] = [
        (
            "a node is not Ready",
            |w| w.named(SourceId::Nodes, "worker3")["status"]["conditions"][0]["status"] = json!("Unknown"),
            AS_IT_IS,
            "nodes-ready",
            Block,
            Reason::NodeNotReady,
            "node worker3 is not Ready",
        ),
        (
            "an API server is not ready",
            NOTHING,
            |c| {
                let Observation::Known { value, .. } = &mut c.facts.api_servers else { panic!("known") };
                value[1].readiness = Readiness::NotReady { failing: vec!["etcd".to_owned()] };
            },
            "control-plane",
            Block,
            Reason::APIServerNotReady,
            "API server worker2 (10.0.0.2:6443) is not ready: etcd failed",
        ),
        (
            "an etcd member is no voter",
            |w| w.named(SourceId::Nodes, "worker3")["status"]["conditions"][4]["status"] = json!("False"),
            AS_IT_IS,
            "control-plane",
            Block,
            Reason::EtcdMemberNotVoter,
            "etcd member worker3 is no voter",
        ),
        (
            "a tunnel is cut",
            NOTHING,
            |c| {
                let Observation::Known { value, .. } = &mut c.facts.matrix else { panic!("known") };
                let cell = value.cells.iter_mut().find(|cell| cell.server == "worker1" && cell.node == "worker2");
                let cell = cell.expect("a cell");
                (cell.verdict, cell.detail) = (CellVerdict::Broken, "no tunnel (code 502: 502 Bad Gateway)".to_owned());
            },
            "kubelet-reachability",
            Block,
            Reason::KubeletUnreachable,
            "API server worker1 has no session to worker2's agent",
        ),
        (
            "one DNS endpoint is left",
            |w| {
                let slice = w.named(SourceId::EndpointSlices, "kube-dns-x4k2p");
                slice["endpoints"].as_array_mut().expect("a list").truncate(1);
            },
            AS_IT_IS,
            "coredns-replicas",
            Block,
            Reason::CoreDNSReplicasInsufficient,
            "1 ",
        ),
        (
            "a VolumeAttachment of a node that is gone",
            |w| {
                w.of(SourceId::VolumeAttachments).push(json!({
                    "metadata": {"name": "csi-1"},
                    "spec": {"nodeName": "worker9", "attacher": "x", "source": {"persistentVolumeName": "pvc-1"}},
                    "status": {"attached": true},
                }));
            },
            AS_IT_IS,
            "attachments",
            Block,
            Reason::VolumeAttachmentStale,
            "attached to node worker9, which does not exist",
        ),
        (
            "a DaemonSet lacks a pod",
            |w| w.of(SourceId::DaemonSets).push(daemon_set("agent", 2, 3, (1, 1))),
            AS_IT_IS,
            "daemon-sets",
            Block,
            Reason::DaemonSetPodNotReady,
            "DaemonSet kube-system/agent has 2 of 3 pods Ready",
        ),
        (
            "the same where workloads only warn",
            |w| w.of(SourceId::DaemonSets).push(daemon_set("agent", 2, 3, (1, 1))),
            |c| c.settings.gates = [(GateId::Workloads, crate::api::Policy::Warn)].into(),
            "daemon-sets",
            Warn,
            Reason::DaemonSetPodNotReady,
            "has 2 of 3 pods Ready",
        ),
        (
            "nobody has counted since the last change",
            |w| w.of(SourceId::DaemonSets).push(daemon_set("agent", 3, 3, (4, 3))),
            AS_IT_IS,
            "daemon-sets",
            Unknown,
            Reason::ObservationStale,
            "older than its last change",
        ),
        (
            "whoever counts is away",
            |w| w.named(SourceId::Leases, "kube-controller-manager")["spec"]["renewTime"] = json!(ago(400)),
            AS_IT_IS,
            "daemon-sets",
            Unknown,
            Reason::ObservationStale,
            "the controller manager renewed its Lease 400 s ago",
        ),
        (
            "cordoned by somebody with kubectl",
            |w| cordoned(w, Some("kubectl-cordon"), json!({})),
            AS_IT_IS,
            "cordons",
            Block,
            Reason::TargetCordonedByOther,
            "node worker2 is cordoned by kubectl-cordon: it takes no pods and no storage heals on it; a person says kubectl uncordon worker2, or maint hold worker2",
        ),
        (
            "cordoned by nobody that is named",
            |w| cordoned(w, None, json!({})),
            AS_IT_IS,
            "cordons",
            Block,
            Reason::TargetCordonedByOther,
            "node worker2 is cordoned by somebody whom managedFields do not name",
        ),
        (
            "cordoned and on hold",
            |w| cordoned(w, Some("kubectl-cordon"), json!({"maint.dev/hold": r#"{"by":"anna","reason":"disk swap"}"#})),
            AS_IT_IS,
            "cordons",
            Warn,
            Reason::NodeOnHold,
            "node worker2 is cordoned by kubectl-cordon, and anna holds it: disk swap",
        ),
        (
            "our annotation on a cordon of somebody else",
            |w| {
                ours(w);
                w.named(SourceId::Nodes, "worker2")["metadata"]["managedFields"][0]["manager"] =
                    json!("kubectl-cordon");
            },
            AS_IT_IS,
            "cordons",
            Block,
            Reason::TargetCordonedByOther,
            "cordoned by kubectl-cordon",
        ),
        (
            "our cordon, its run at work",
            |w| {
                ours(w);
                record(w, "Verifying");
            },
            AS_IT_IS,
            "cordons",
            Warn,
            Reason::TargetCordonedByOther,
            "node worker2 is cordoned by our run worker2-abcde (Verifying): maint show worker2-abcde",
        ),
        (
            "our cordon, its run over",
            |w| {
                ours(w);
                record(w, "Failed");
            },
            AS_IT_IS,
            "cordons",
            Block,
            Reason::TargetCordonedByOther,
            "node worker2 is still cordoned by our run worker2-abcde, which is over (Failed)",
        ),
        (
            "our cordon, its record gone",
            ours,
            AS_IT_IS,
            "cordons",
            Block,
            Reason::TargetCordonedByOther,
            "node worker2 is cordoned by a run of ours whose record is gone (uid uid-run)",
        ),
        (
            "our clock is behind",
            |w| {
                for name in NODES {
                    w.named(SourceId::Leases, name)["spec"]["renewTime"] = json!(ago(-90));
                }
            },
            AS_IT_IS,
            "clocks",
            Unknown,
            Reason::ClockSkew,
            "our clock is behind: 3 of 3 Ready nodes renewed their Lease in the future, up to 90 s",
        ),
        (
            "the DaemonSets cannot be read",
            NOTHING,
            |c| {
                let (kind, detail) = (FailureKind::Forbidden, "no".to_owned());
                c.facts.daemon_sets = Observation::Failed { kind, detail, at: now() };
            },
            "daemon-sets",
            Unknown,
            Reason::ObservationFailed,
            "daemon-sets could not be read (forbidden): no",
        ),
    ];
    for (row, bend, bend_case, id, status, reason, message) in rows {
        let mut world = world();
        bend(&mut world);
        let mut case = world.case();
        bend_case(&mut case);
        let found = check(&case, &[], false);
        let line = line(&found, id);
        assert_eq!((line.status, line.reason), (status, reason), "{row}: {line:?}");
        assert!(line.message.contains(message), "{row}: {}", line.message);
        assert!(!line.evidence.is_empty(), "{row}: without evidence");
        let wanted = match status {
            Block => Verdict::Blocked,
            Unknown => found.verdict.max(Verdict::Unknown),
            _ => Verdict::Clear,
        };
        assert_eq!(found.verdict, wanted, "{row}: {found:?}");
        assert!(found.lines.is_sorted_by_key(|line| std::cmp::Reverse(line.status)), "{row}: worst first");
        assert_eq!(found.in_short().is_some(), wanted != Verdict::Clear, "{row}");
    }
}

#[test]
fn of_named_nodes_workers_that_were_not_named_are_left_out() {
    let mut world = world();
    let worker = world.named(SourceId::Nodes, "worker3");
    worker["metadata"]["labels"] = json!({});
    worker["status"]["conditions"].as_array_mut().expect("a list").truncate(4);
    worker["status"]["conditions"][0]["status"] = json!("False");
    worker["spec"] = json!({"unschedulable": true});
    let mut case = world.case();
    let Observation::Known { value, .. } = &mut case.facts.api_servers else { panic!("known") };
    value.pop();
    let Observation::Known { value, .. } = &mut case.facts.matrix else { panic!("known") };
    value.servers.pop();
    value.cells.retain(|cell| cell.server != "worker3");
    let named = |names: &[&str]| -> Vec<String> { names.iter().map(|&name| name.to_owned()).collect() };
    let all = check(&case, &[], false);
    assert_eq!((line(&all, "nodes-ready").status, line(&all, "cordons").status), (Status::Block, Status::Block));
    // worker1 is a control-plane node, and judged although nobody named it.
    let some = check(&case, &named(&["worker2"]), false);
    assert_eq!((line(&some, "nodes-ready").status, line(&some, "cordons").status), (Status::Pass, Status::Pass));
    assert_eq!(line(&some, "nodes").message, "2 of 3 nodes are judged: worker1, worker2");
    let missing = check(&case, &named(&["worker2", "worker9"]), false);
    assert_eq!((missing.verdict, line(&missing, "nodes").reason), (Verdict::Blocked, Reason::TargetNotFound));
    assert!(line(&missing, "nodes").message.contains("there is no node worker9; there are: worker1, worker2, worker3"));
}

#[test]
fn a_dump_is_not_blamed_for_what_only_a_live_cluster_can_answer() {
    let mut case = world().case();
    (case.facts.api_servers, case.facts.matrix) = (Observation::NotAsked, Observation::NotAsked);
    let dump = check(&case, &[], true);
    assert_eq!(dump.verdict, Verdict::Clear, "{dump:?}");
    assert_eq!(dump.not_asked, [SourceId::ApiServers, SourceId::Matrix]);
    assert_eq!(line(&dump, "kubelet-reachability").reason, Reason::NotAsked);
    assert!(line(&dump, "control-plane").message.contains("3 etcd voters are healthy"), "{dump:?}");
    let live = check(&case, &[], false);
    assert_eq!((live.verdict, live.not_asked.len()), (Verdict::Unknown, 0), "{live:?}");
}

#[test]
fn no_node_at_all_proves_nothing() {
    let mut world = world();
    world.of(SourceId::Nodes).clear();
    let found = check(&world.case(), &[], false);
    assert_ne!(found.verdict, Verdict::Clear);
    assert_eq!(line(&found, "nodes").status, Status::Unknown);
}

#[test]
fn nobody_answers_only_where_there_was_no_connection() {
    let mut case = world().case();
    assert!(PostCheck::nobody_answers(&case.facts).is_none());
    for (kind, silent) in [
        (FailureKind::Transport, true),
        (FailureKind::Timeout, true),
        (FailureKind::Forbidden, false),
        (FailureKind::Server, false),
    ] {
        case.facts.nodes = Observation::Failed { kind, detail: "x".to_owned(), at: now() };
        assert_eq!(PostCheck::nobody_answers(&case.facts).is_some(), silent, "{kind}");
    }
}

#[test]
fn everything_that_is_read_is_asked_for() {
    let sources = sources(&Settings::default());
    for source in [SourceId::Matrix, SourceId::DaemonSets, SourceId::Maintenances, SourceId::LonghornVolumes] {
        assert!(sources.contains(&source), "{source}");
    }
    assert!(!sources.contains(&SourceId::TargetPods), "no list of all pods");
}
