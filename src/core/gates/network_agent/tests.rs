//! The table of gate `network-agent`.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::super::RunContext;
use super::super::testing::{Case, NODES, World, ago, now, survivors};
use super::GATE;
use crate::api::{Moment, Reason, SourceId, Status};
use crate::facts::{FailureKind, Listed, Observation};

/// A DaemonSet of agents on every node, rolled out.
fn daemon_set(name: &str, label: (&str, &str)) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system", "generation": 3},
        "spec": {
            "selector": {"matchLabels": {label.0: label.1}},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"spec": {"containers": [{
                "name": "agent", "image": "quay.io/cilium/cilium:v1.18.2",
                "env": [{"name": "KUBERNETES_SERVICE_HOST", "value": "127.0.0.1"}],
            }]}},
        },
        "status": {
            "desiredNumberScheduled": 3, "numberReady": 3, "updatedNumberScheduled": 3, "observedGeneration": 3,
        },
    })
}

/// A Ready agent.
fn agent(of: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("{of}-{node}"), "namespace": "kube-system", "uid": format!("uid-{of}-{node}"),
            "labels": {"k8s-app": of},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": of, "controller": true}],
        },
        "spec": {"nodeName": node},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": ago(86_400)}],
        },
    })
}

fn cilium_node(name: &str, number: usize) -> Value {
    json!({
        "apiVersion": "cilium.io/v2", "kind": "CiliumNode",
        "metadata": {"name": name},
        "spec": {"ipam": {"podCIDRs": [format!("10.42.{number}.0/24")]}},
    })
}

/// Cilium in IPAM mode kubernetes, Ready everywhere.
fn cilium() -> World {
    let mut world = World::healthy();
    *world.of(SourceId::DaemonSets) = vec![daemon_set("cilium", ("k8s-app", "cilium"))];
    *world.of(SourceId::NetworkAgentPods) = NODES.map(|node| agent("cilium", node)).to_vec();
    *world.of(SourceId::CiliumNodes) =
        NODES.iter().enumerate().map(|(number, node)| cilium_node(node, number)).collect();
    for (number, node) in NODES.iter().enumerate() {
        let spec = &mut world.named(SourceId::Nodes, node)["spec"];
        spec["podCIDR"] = json!(format!("10.42.{number}.0/24"));
        spec["podCIDRs"] = json!([format!("10.42.{number}.0/24")]);
    }
    world
}

/// The same, and no node but `worker1` is a control-plane node.
fn with_workers() -> World {
    let mut world = cilium();
    for node in ["worker2", "worker3"] {
        let labels = &mut world.named(SourceId::Nodes, node)["metadata"]["labels"];
        *labels = json!({"kubernetes.io/hostname": node});
    }
    world
}

fn pod<'a>(world: &'a mut World, node: &str) -> &'a mut Value {
    world.named(SourceId::NetworkAgentPods, &format!("cilium-{node}"))
}

fn set(world: &mut World) -> &mut Value {
    world.named(SourceId::DaemonSets, "cilium")
}

fn not_ready(world: &mut World, node: &str) {
    pod(world, node)["status"]["conditions"][0] =
        json!({"type": "Ready", "status": "False", "lastTransitionTime": ago(120)});
}

fn without(world: &mut World, node: &str) {
    world.of(SourceId::NetworkAgentPods).retain(|pod| pod["spec"]["nodeName"] != node);
}

fn taint(world: &mut World, node: &str) {
    world.named(SourceId::Nodes, node)["spec"]["taints"] =
        json!([{"key": "node.cilium.io/agent-not-ready", "effect": "NoSchedule"}]);
}

fn ready_for(world: &mut World, node: &str, seconds: i64) {
    pod(world, node)["status"]["conditions"][0]["lastTransitionTime"] = json!(ago(seconds));
}

fn start(_: &mut Case) {}
fn same(_: &mut World) {}
fn at(case: &mut Case, moment: Moment) {
    case.moment = moment;
    let returned_at = Some(now() - SignedDuration::from_secs(90));
    case.run = Some(RunContext { returned_at, ..RunContext::default() });
}
fn handover(case: &mut Case) {
    at(case, Moment::Handover);
}
fn verify(case: &mut Case) {
    at(case, Moment::Verify);
}
fn settle(case: &mut Case) {
    at(case, Moment::Settle);
}
fn agree(case: &mut Case) {
    case.settings.network_agent.pod_cidrs_must_agree = true;
}
fn two_may_fail(case: &mut Case) {
    case.settings.limits.max_unavailable = 2;
}

type Row = (&'static str, fn() -> World, fn(&mut World), fn(&mut Case), Status, Reason, &'static str);

const PASS: Status = Status::Pass;
const WARN: Status = Status::Warn;
const BLOCK: Status = Status::Block;
const PASSED: Reason = Reason::Passed;

const HEALTHY: &[Row] = &[
    ("Cilium", cilium, same, start, PASS, PASSED, "the agents of Cilium are Ready on every node"),
    ("Cilium at handover", cilium, same, handover, PASS, PASSED, "the agents of Cilium are Ready on every other node"),
    ("Cilium at verify", cilium, same, verify, PASS, PASSED, "the agent of Cilium on worker2 is Ready"),
    ("Cilium at settle", cilium, same, settle, PASS, PASSED, "on every node"),
    (
        "k3s' own flannel",
        World::healthy,
        same,
        start,
        Status::NotApplicable,
        Reason::NotInstalled,
        "k3s' own flannel has none",
    ),
    (
        "RKE2's Canal, which selects otherwise",
        cilium,
        |w| {
            *w.of(SourceId::DaemonSets) = vec![daemon_set("rke2-canal", ("k8s-app", "canal"))];
            *w.of(SourceId::NetworkAgentPods) = NODES.map(|node| agent("rke2-canal", node)).to_vec();
        },
        start,
        PASS,
        PASSED,
        "the agents of Canal",
    ),
    (
        "Cilium's Envoy, a DaemonSet beside it, restarts",
        cilium,
        |w| {
            let mut envoy = daemon_set("cilium-envoy", ("k8s-app", "cilium-envoy"));
            envoy["status"]["updatedNumberScheduled"] = json!(1);
            w.of(SourceId::DaemonSets).push(envoy);
        },
        start,
        PASS,
        PASSED,
        "the agents of Cilium",
    ),
    (
        "a node that wants no agent (selector of the DaemonSet)",
        cilium,
        |w| {
            without(w, "worker3");
            set(w)["status"]["desiredNumberScheduled"] = json!(2);
            set(w)["status"]["updatedNumberScheduled"] = json!(2);
        },
        start,
        PASS,
        PASSED,
        "on every node",
    ),
    (
        "another node is not Ready: told by nodes-ready",
        cilium,
        |w| {
            not_ready(w, "worker3");
            w.named(SourceId::Nodes, "worker3")["status"]["conditions"][0]["status"] = json!("Unknown");
        },
        start,
        PASS,
        PASSED,
        "on every node",
    ),
    (
        "updated by hand (OnDelete), one is of an older template",
        cilium,
        |w| {
            set(w)["spec"]["updateStrategy"]["type"] = json!("OnDelete");
            set(w)["status"]["updatedNumberScheduled"] = json!(2);
        },
        start,
        PASS,
        PASSED,
        "on every node",
    ),
    (
        "a finished pod of an earlier boot beside the Ready one",
        cilium,
        |w| {
            let mut old = agent("cilium", "worker2");
            old["metadata"]["name"] = json!("cilium-old");
            old["status"] = json!({"phase": "Failed", "conditions": [{"type": "Ready", "status": "False"}]});
            w.of(SourceId::NetworkAgentPods).insert(0, old);
        },
        start,
        PASS,
        PASSED,
        "on every node",
    ),
    (
        "the target's agent is not there at handover",
        cilium,
        |w| not_ready(w, "worker2"),
        handover,
        PASS,
        PASSED,
        "on every other node",
    ),
    (
        "verify of a worker: another node's agent is not Ready",
        with_workers,
        |w| not_ready(w, "worker3"),
        verify,
        PASS,
        PASSED,
        "on worker2 is Ready",
    ),
    ("B62: Ready for exactly 30 s", cilium, |w| ready_for(w, "worker2", 30), verify, PASS, PASSED, "is Ready"),
    (
        "cluster-pool: other pod CIDRs than the Node's are right",
        cilium,
        |w| w.named(SourceId::CiliumNodes, "worker2")["spec"]["ipam"]["podCIDRs"] = json!(["10.0.7.0/24"]),
        start,
        PASS,
        PASSED,
        "on every node",
    ),
    ("IPAM mode kubernetes", cilium, same, agree, PASS, PASSED, "on every node"),
    (
        "dual stack, in another order",
        cilium,
        |w| {
            w.named(SourceId::Nodes, "worker1")["spec"]["podCIDRs"] = json!(["10.42.0.0/24", "fd00::/120"]);
            w.named(SourceId::CiliumNodes, "worker1")["spec"]["ipam"]["podCIDRs"] =
                json!(["fd00::/120", "10.42.0.0/24"]);
        },
        agree,
        PASS,
        PASSED,
        "on every node",
    ),
    (
        "a taint of somebody else",
        cilium,
        |w| {
            w.named(SourceId::Nodes, "worker1")["spec"]["taints"] =
                json!([{"key": "dedicated", "effect": "NoSchedule"}]);
        },
        start,
        PASS,
        PASSED,
        "on every node",
    ),
    (
        "one of two workers may fail",
        with_workers,
        |w| not_ready(w, "worker3"),
        two_may_fail,
        WARN,
        Reason::NetworkAgentNotReady,
        "fewer than 2 workers may fail (max_unavailable)",
    ),
    (
        "B65: agents reach the API at the target's address",
        cilium,
        |w| set(w)["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] = json!("10.0.0.2"),
        start,
        WARN,
        Reason::NetworkAgentPinnedToTarget,
        "the Cilium agents reach the API at 10.0.0.2 alone, which is worker2",
    ),
    (
        "B65: at another server's",
        cilium,
        |w| set(w)["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] = json!("10.0.0.1"),
        start,
        PASS,
        PASSED,
        "on every node",
    ),
];

const SICK: &[Row] = &[
    (
        "B47: the agents are being rolled out",
        cilium,
        |w| set(w)["status"]["updatedNumberScheduled"] = json!(1),
        start,
        BLOCK,
        Reason::NetworkAgentRollingOut,
        "1 of 3 Cilium agents are of the present template (DaemonSet kube-system/cilium)",
    ),
    (
        "B47: a rollout that begins before the handover",
        cilium,
        |w| set(w)["metadata"]["generation"] = json!(4),
        handover,
        BLOCK,
        Reason::NetworkAgentRollingOut,
        "a change of the Cilium agents is about to be rolled out",
    ),
    (
        "an agent is not Ready",
        cilium,
        |w| not_ready(w, "worker3"),
        start,
        BLOCK,
        Reason::NetworkAgentNotReady,
        "the Cilium agent of node worker3 is not Ready (Pod kube-system/cilium-worker3)",
    ),
    (
        "the target's own is not Ready",
        cilium,
        |w| not_ready(w, "worker2"),
        start,
        BLOCK,
        Reason::NetworkAgentNotReady,
        "of node worker2 is not Ready",
    ),
    (
        "a node has none",
        cilium,
        |w| without(w, "worker1"),
        handover,
        BLOCK,
        Reason::NetworkAgentNotReady,
        "node worker1 has no Cilium agent (DaemonSet kube-system/cilium)",
    ),
    (
        "an agent is being deleted",
        cilium,
        |w| pod(w, "worker1")["metadata"]["deletionTimestamp"] = json!(ago(5)),
        start,
        BLOCK,
        Reason::NetworkAgentNotReady,
        "of node worker1 is not Ready",
    ),
    (
        "two workers fail where one may",
        with_workers,
        |w| {
            not_ready(w, "worker3");
            let mut other = w.named(SourceId::Nodes, "worker3").clone();
            other["metadata"]["name"] = json!("worker4");
            w.of(SourceId::Nodes).push(other);
            set(w)["status"]["desiredNumberScheduled"] = json!(4);
            set(w)["status"]["updatedNumberScheduled"] = json!(4);
        },
        two_may_fail,
        BLOCK,
        Reason::NetworkAgentNotReady,
        "of node worker3 is not Ready",
    ),
    (
        "two workers fail in different ways where one may",
        with_workers,
        |w| {
            not_ready(w, "worker3");
            let mut other = w.named(SourceId::Nodes, "worker3").clone();
            other["metadata"]["name"] = json!("worker4");
            w.of(SourceId::Nodes).push(other);
            w.of(SourceId::NetworkAgentPods).push(agent("cilium", "worker4"));
            taint(w, "worker4");
            set(w)["status"]["desiredNumberScheduled"] = json!(4);
            set(w)["status"]["updatedNumberScheduled"] = json!(4);
        },
        two_may_fail,
        BLOCK,
        Reason::NetworkAgentNotReady,
        "of node worker3 is not Ready",
    ),
    (
        "B61, B63: the node is Ready again, its agent is not",
        cilium,
        |w| not_ready(w, "worker2"),
        verify,
        BLOCK,
        Reason::NetworkAgentNotReady,
        "of node worker2 is not Ready",
    ),
    (
        "B62: Ready for 10 s only",
        cilium,
        |w| ready_for(w, "worker2", 10),
        verify,
        BLOCK,
        Reason::NetworkAgentJustReady,
        "the Cilium agent of node worker2 has been Ready for 10 s, wanted 30 s",
    ),
    (
        "B62: Ready since before the boot counts from the return",
        cilium,
        same,
        |case| {
            verify(case);
            case.run.as_mut().expect("a run").returned_at = Some(now() - SignedDuration::from_secs(4));
        },
        BLOCK,
        Reason::NetworkAgentJustReady,
        "has been Ready for 4 s",
    ),
    (
        "B62: the taint is still there",
        cilium,
        |w| taint(w, "worker2"),
        verify,
        BLOCK,
        Reason::NetworkAgentTaint,
        "node worker2 has taint node.cilium.io/agent-not-ready: its network is not ready",
    ),
    (
        "a taint on another node",
        cilium,
        |w| taint(w, "worker1"),
        start,
        BLOCK,
        Reason::NetworkAgentTaint,
        "node worker1 has taint",
    ),
    (
        "B66: after a server another node's agent is not Ready",
        cilium,
        |w| not_ready(w, "worker3"),
        verify,
        BLOCK,
        Reason::NetworkAgentNotReady,
        "of node worker3 is not Ready",
    ),
    (
        "B66: at settle another node's agent is not Ready",
        with_workers,
        |w| not_ready(w, "worker3"),
        settle,
        BLOCK,
        Reason::NetworkAgentNotReady,
        "of node worker3 is not Ready",
    ),
    (
        "the agent gives addresses that the node was not given",
        cilium,
        |w| w.named(SourceId::CiliumNodes, "worker3")["spec"]["ipam"]["podCIDRs"] = json!(["10.0.7.0/24"]),
        agree,
        BLOCK,
        Reason::NetworkPodCIDRMismatch,
        "the agent of node worker3 gives addresses of 10.0.7.0/24, and the node was given 10.42.2.0/24",
    ),
    (
        "neither has any",
        cilium,
        |w| {
            w.named(SourceId::CiliumNodes, "worker3")["spec"]["ipam"] = json!({});
            let spec = w.named(SourceId::Nodes, "worker3")["spec"].as_object_mut().expect("an object");
            spec.clear();
        },
        agree,
        BLOCK,
        Reason::NetworkPodCIDRMismatch,
        "gives addresses of none, and the node was given none",
    ),
];

const UNKNOWN: &[Row] = &[
    (
        "verify: an agent that does not say since when",
        cilium,
        |w| {
            drop(
                pod(w, "worker2")["status"]["conditions"][0]
                    .as_object_mut()
                    .expect("an object")
                    .remove("lastTransitionTime"),
            );
        },
        verify,
        Status::Unknown,
        Reason::ObservationMalformed,
        "it is not known since when the Cilium agent of worker2 is Ready",
    ),
    (
        "verify: the return is not known",
        cilium,
        same,
        |case| {
            verify(case);
            case.run.as_mut().expect("a run").returned_at = None;
        },
        Status::Unknown,
        Reason::ObservationMalformed,
        "it is not known since when",
    ),
    (
        "CIDRs must agree and Cilium's kind is not there",
        cilium,
        |w| drop(w.0.remove(&SourceId::CiliumNodes)),
        agree,
        Status::Unknown,
        Reason::ObservationFailed,
        "cilium-nodes",
    ),
];

fn case_of(row: &Row) -> Case {
    let mut world = row.1();
    (row.2)(&mut world);
    let mut case = world.case();
    (row.3)(&mut case);
    case
}

#[test]
fn agents_are_judged_by_what_the_moment_needs() {
    for row in HEALTHY.iter().chain(SICK).chain(UNKNOWN) {
        let (name, .., status, reason, message) = row;
        let finding = case_of(row).ask(&GATE);
        assert_eq!((finding.status, finding.reason), (*status, *reason), "{name}: {finding:?}");
        assert!(finding.message.contains(message), "{name}: {}", finding.message);
    }
}

/// What may go without a stop: the end of what was done, and why that is right.
const ALLOWED: &[(&str, &str)] = &[
    ("spec.taints deleted", "the API leaves the empty list out: no taint"),
    ("spec.taints nulled", "the same"),
    ("spec.taints.0 deleted", "no taint"),
    ("metadata.deletionTimestamp deleted", "then it is not being deleted"),
    ("metadata.deletionTimestamp nulled", "the same"),
    ("worker2: metadata.labels deleted", "a worker: only a control-plane node's agents are asked for everywhere"),
    ("worker2: metadata.labels nulled", "the same"),
    ("worker2: metadata.labels.node-role.kubernetes.io/control-plane deleted", "the same"),
];

/// Paths whose loss makes the node NotReady, which is gate `nodes-ready`'s, or the DaemonSet one of no plug-in, which is
/// none of this gate's.
fn is_another_gates(left: &str) -> bool {
    let node = left.starts_with("nodes ") && left.contains(": status.conditions");
    let daemon_set = left.starts_with("daemon-sets ") && left.contains(": spec.selector");
    node || daemon_set
}

#[test]
fn no_gap_makes_a_missing_agent_fine() {
    let (mut fine, mut used) = (Vec::new(), BTreeSet::new());
    for row in SICK {
        let mut world = row.1();
        (row.2)(&mut world);
        for left in survivors(&GATE, &world, row.3) {
            if is_another_gates(&left) {
                continue;
            }
            match ALLOWED.iter().position(|(end, _)| left.ends_with(end)) {
                Some(index) => drop(used.insert(index)),
                None => fine.push(format!("{}: {left}", row.0)),
            }
        }
    }
    assert!(fine.is_empty(), "{}", fine.join("\n"));
    let unused = ALLOWED.iter().enumerate().filter(|(index, _)| !used.contains(index)).map(|(_, (end, _))| *end);
    assert_eq!(unused.collect::<Vec<_>>(), Vec::<&str>::new(), "allowed in vain");
}

#[test]
fn what_was_so_at_the_start_holds_nobody() {
    for moment in [Moment::Verify, Moment::Settle] {
        let sick = || {
            let mut world = cilium();
            not_ready(&mut world, "worker3");
            world
        };
        let then = sick().case().ask(&GATE);
        assert_eq!(then.status, Status::Block);
        let mut case = sick().case();
        at(&mut case, moment);
        case.run.as_mut().expect("a run").baseline = vec![then.clone()];
        let finding = case.ask(&GATE);
        assert_eq!(finding.status, Status::Warn, "{moment}: {finding:?}");
        assert!(finding.message.contains("it was so before the run"), "{}", finding.message);
        // Another one is worse.
        let mut world = sick();
        not_ready(&mut world, "worker2");
        let mut case = world.case();
        at(&mut case, moment);
        case.run.as_mut().expect("a run").baseline = vec![then];
        assert_eq!(case.ask(&GATE).status, Status::Block, "{moment}");
    }
}

#[test]
fn what_was_not_read_is_unknown() {
    fn failed<T>(kind: FailureKind) -> Listed<T> {
        Observation::Failed { kind, detail: "storage is (re)initializing".to_owned(), at: now() }
    }
    for kind in FailureKind::ALL {
        let mut case = cilium().case();
        case.facts.network_agent_pods = failed(*kind);
        assert_eq!(case.ask(&GATE).status, Status::Unknown, "pods {kind}");
        let mut case = cilium().case();
        case.facts.daemon_sets = failed(*kind);
        assert_eq!(case.ask(&GATE).status, Status::Unknown, "DaemonSets {kind}");
        let mut case = cilium().case();
        case.facts.cilium_nodes = failed(*kind);
        assert_eq!(case.ask(&GATE).status, Status::Pass, "nobody asks");
        agree(&mut case);
        assert_eq!(case.ask(&GATE).status, Status::Unknown, "CiliumNodes {kind}");
    }
    let mut case = cilium().case();
    case.facts.network_agent_pods = Observation::NotAsked;
    assert_eq!(case.ask(&GATE).status, Status::Unknown, "agents and no pods");
}
