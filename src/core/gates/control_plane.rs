//! Gate `control-plane`: expected API servers ready; the other etcd voters keep quorum.
//!
//! *Source of truth*: `/readyz` of each expected API server at its own address; the nodes' role labels and condition
//! `EtcdIsVoter` (k3s, RKE2), which etcd's leader alone writes and which outlives the truth: it is paired with the
//! node's Ready, its Lease and its own heartbeat. *When unknown*: a server's answer proves nothing, one was not asked,
//! or a member tells nothing of itself.

use super::listing::{Listing, built_in};
use super::reading::may_be_a_dump;
use super::{Draft, GateInput, GateSpec, Read, etcd, nodes};
use crate::api::{Evidence, Finding, GateId, Moment, Policy, Reason, SourceId, Status};
use crate::facts::{Lease, Node};
use crate::matrix::{ApiServer, Readiness};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::ControlPlane,
    moments: &[Moment::Start, Moment::Cordoned, Moment::Handover, Moment::Verify, Moment::Settle],
    reads: &[SourceId::Nodes, SourceId::Leases, SourceId::Maintenances, SourceId::ApiServers],
    reasons: &[
        Reason::APIServerNotReady,
        Reason::EtcdQuorumAtRisk,
        Reason::EtcdMemberNotVoter,
        Reason::EtcdHeartbeatStale,
        Reason::EtcdVotersEven,
    ],
    default_policy: Policy::Require,
    doc: "expected API servers ready; the other etcd voters keep quorum",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::ControlPlane, input);
    let nodes = built_in(&mut draft, SourceId::Nodes, &input.facts.nodes);
    let leases = built_in(&mut draft, SourceId::Leases, &input.facts.leases);
    let servers = draft.observe(SourceId::ApiServers, &input.facts.api_servers);
    let (Some(nodes), Some(leases)) = (nodes, leases) else { return draft.finish("") };
    let servers = match servers {
        Read::Known(servers) => {
            expected_servers(&mut draft, input, &nodes, servers);
            Some(servers.as_slice())
        }
        Read::Absent | Read::NotAsked => {
            if !may_be_a_dump(input) {
                let evidence = Evidence::new(SourceId::ApiServers.as_str(), "/readyz", "not asked", "an answer");
                draft.unknown(Reason::NotAsked, "nothing asked the API servers for /readyz", evidence);
            }
            None
        }
        Read::Unreadable => None,
    };
    last_control_plane(&mut draft, input, &nodes, &leases);
    let voters = etcd::judge(&mut draft, input, &nodes, &leases);
    let told = told(servers, voters.as_deref());
    let server_expected = servers.is_none_or(|servers| !servers.is_empty());
    if !server_expected && voters.is_none() {
        return draft.not_applicable(Reason::NotInstalled, "neither API servers nor etcd members are among the nodes");
    }
    draft.finish(told)
}

fn told(servers: Option<&[ApiServer]>, etcd: Option<&str>) -> String {
    let servers = match servers {
        None => "API servers were not asked for /readyz".to_owned(),
        Some([]) => "no API server is expected".to_owned(),
        Some([one]) => format!("API server {} judged", one.name),
        Some(servers) => {
            let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
            format!("API servers {} judged", names.join(", "))
        }
    };
    format!("{servers}; {}", etcd.unwrap_or("no etcd member is labelled"))
}

fn is_on(server: &ApiServer, node: &str) -> bool {
    server.node.as_deref().unwrap_or(&server.name) == node
}

/// Whether a server is this node's, by name or by address.
fn serves(server: &ApiServer, node: &Node) -> bool {
    let host = server.address.rsplit_once(':').map_or(server.address.as_str(), |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    is_on(server, &node.metadata.name) || (server.node.is_none() && node.internal_ips.iter().any(|ip| ip == host))
}

fn expected_servers(draft: &mut Draft<'_>, input: &GateInput<'_>, nodes: &Listing<'_, Node>, servers: &[ApiServer]) {
    let on_target = |server: &ApiServer| {
        is_on(server, input.target)
            || nodes.items.iter().any(|node| node.metadata.name == input.target && serves(server, node))
    };
    for node in nodes.items.iter().filter(|node| node.is_control_plane()) {
        let name = &node.metadata.name;
        let asked = match input.moment {
            Moment::Verify => name == input.target,
            Moment::Settle => true,
            Moment::Start | Moment::Cordoned | Moment::Handover => name != input.target || servers.is_empty(),
        };
        if asked && !servers.iter().any(|server| serves(server, node)) {
            draft.unknown(
                Reason::APIServerNotReady,
                format!("node {name} is labelled as control plane, and no API server on it was asked"),
                Evidence::new(format!("Node {name}"), "/readyz", "not asked", "ready"),
            );
        }
    }
    for server in servers {
        match (input.moment, on_target(server)) {
            // A failing other is a matter of the queue; it does not keep the target cordoned.
            (Moment::Verify, false) => {}
            // The target's own sickness does not hold its cure.
            (Moment::Start | Moment::Cordoned | Moment::Handover, true) => readiness(draft, server, true),
            _ => readiness(draft, server, false),
        }
    }
}

fn readiness(draft: &mut Draft<'_>, server: &ApiServer, on_target: bool) {
    let (status, value) = match &server.readiness {
        Readiness::Ready => return,
        Readiness::NotReady { failing } if failing.is_empty() => (Status::Block, "not ready".to_owned()),
        Readiness::NotReady { failing } => (Status::Block, format!("not ready: {} failed", failing.join(", "))),
        Readiness::Unreachable { detail } => (Status::Block, format!("not reachable: {detail}")),
        Readiness::Unknown { detail } => (Status::Unknown, format!("not known to be ready: {detail}")),
    };
    let status = if on_target { Status::Warn } else { status };
    let note = if on_target { "; it is the node to be maintained, so that does not hold it" } else { "" };
    let (name, address) = (&server.name, &server.address);
    let message = format!("API server {name} ({address}) is {value}{note}");
    let evidence = Evidence::new(format!("API server {name}"), "/readyz", value, "ready");
    draft.add(status, Reason::APIServerNotReady, message, None, vec![evidence]);
}

/// kubereboot/kured#841: the last working control-plane node is not touched, whatever etcd says (kubeadm labels no
/// etcd members). Where there is only one it is told: the API is away as long as the node. The others are looked at
/// whatever the target is: a lost label makes it no worker.
fn last_control_plane(
    draft: &mut Draft<'_>,
    input: &GateInput<'_>,
    nodes: &Listing<'_, Node>,
    leases: &Listing<'_, Lease>,
) {
    if matches!(input.moment, Moment::Verify | Moment::Settle) {
        return;
    }
    let (own, others): (Vec<&Node>, Vec<&Node>) =
        nodes.items.iter().filter(|node| node.is_control_plane()).partition(|node| node.metadata.name == input.target);
    let working = |node: &&Node| {
        nodes::not_ready(node).is_none() && nodes::lease_is_fresh(input, &leases.items, &node.metadata.name)
    };
    let target = input.target;
    let field = "other Ready control-plane nodes";
    if others.is_empty() {
        if !own.is_empty() && nodes.complete {
            let message = format!("{target} is the only control-plane node: the API is away while it is down");
            let evidence = Evidence::new(format!("Node {target}"), field, "there are none", ">= 1");
            draft.warn(Reason::APIServerNotReady, message, evidence);
        }
    } else if !others.iter().any(working) {
        let message = format!("none of the {} control-plane nodes beside {target} is Ready", others.len());
        let evidence = Evidence::new(format!("Node {target}"), field, "0", ">= 1");
        draft.block(Reason::APIServerNotReady, message, evidence);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::*;
    use super::*;
    use crate::api::names::{LABEL_CONTROL_PLANE, LABEL_ETCD};
    use crate::facts::{FailureKind, Observation};

    type Row = (&'static str, fn(&mut World), fn(&mut Case), Status, Reason, &'static str);

    const BLOCK: Status = Status::Block;
    const PASS: Status = Status::Pass;
    const WARN: Status = Status::Warn;
    const UNKNOWN: Status = Status::Unknown;
    const SERVER: Reason = Reason::APIServerNotReady;
    const QUORUM: Reason = Reason::EtcdQuorumAtRisk;
    const VOTER: Reason = Reason::EtcdMemberNotVoter;
    const STALE: Reason = Reason::EtcdHeartbeatStale;
    const FINE: &str =
        "API servers worker1, worker2, worker3 judged; 2 of 3 etcd voters are healthy without worker2, quorum is 2";

    fn node<'a>(world: &'a mut World, name: &str) -> &'a mut Value {
        world.named(SourceId::Nodes, name)
    }

    fn ready(world: &mut World, name: &str, status: &str) {
        node(world, name)["status"]["conditions"][0]["status"] = json!(status);
    }

    fn voter<'a>(world: &'a mut World, name: &str) -> &'a mut Value {
        &mut node(world, name)["status"]["conditions"][4]
    }

    fn learner(world: &mut World, name: &str) {
        *voter(world, name) = json!({"type": "EtcdIsVoter", "status": "False", "reason": "MemberIsLearner", "lastHeartbeatTime": ago(20)});
    }

    fn without_voter_condition(world: &mut World, name: &str) {
        node(world, name)["status"]["conditions"].as_array_mut().expect("a list").truncate(4);
    }

    /// A control plane as kubeadm labels it: no etcd label, no EtcdIsVoter.
    fn kubeadm(world: &mut World) {
        for name in NODES {
            without_voter_condition(world, name);
            node(world, name)["metadata"]["labels"] = json!({LABEL_CONTROL_PLANE: ""});
        }
    }

    fn workers(world: &mut World, names: &[&str]) {
        for name in names {
            without_voter_condition(world, name);
            node(world, name)["metadata"]["labels"] = json!({});
        }
    }

    /// Two more servers, `worker4` and `worker5`, that only vote.
    fn five(world: &mut World) {
        for name in ["worker4", "worker5"] {
            let mut more = super::super::testing::node(name);
            more["metadata"]["labels"] = json!({LABEL_ETCD: "true"});
            world.of(SourceId::Nodes).push(more);
            world.of(SourceId::Leases).push(node_lease(name, 5));
        }
    }

    fn in_flight(world: &mut World, name: &str) {
        node(world, name)["metadata"]["annotations"] = json!({"maint.dev/owner": "{}"});
        world.of(SourceId::Maintenances).push(json!({
            "metadata": {"name": "a"}, "spec": {"nodeName": name}, "status": {"phase": "Settling"},
        }));
    }

    fn answer(case: &mut Case, server: usize, readiness: Readiness) {
        if let Observation::Known { value, .. } = &mut case.facts.api_servers {
            value[server].readiness = readiness;
        }
    }

    fn etcd_failed() -> Readiness {
        Readiness::NotReady { failing: vec!["etcd".to_owned()] }
    }

    fn at(case: &mut Case, moment: Moment) {
        *case = std::mem::take(case).with_run();
        case.moment = moment;
    }

    fn same(_: &mut World) {}
    fn start(_: &mut Case) {}
    fn verify(case: &mut Case) {
        at(case, Moment::Verify);
    }
    fn settle(case: &mut Case) {
        at(case, Moment::Settle);
    }

    fn check_all(rows: &[Row]) {
        for (name, bend, shape, status, reason, message) in rows {
            let mut world = World::healthy();
            bend(&mut world);
            let mut case = world.case();
            shape(&mut case);
            let finding = case.ask(&GATE);
            assert_eq!((finding.status, finding.reason, sentence(&finding)), (*status, *reason, *message), "{name}");
        }
    }

    #[rustfmt::skip]
    const SERVERS: &[Row] = &[
        ("healthy", same, start, PASS, Reason::Passed, FINE),
        ("k3s#14629: a server that no tunnel reaches is ready all the same; the matrix shows it", same, |case| at(case, Moment::Handover), PASS, Reason::Passed, FINE),
        ("a server's etcd check fails", same, |case| answer(case, 0, etcd_failed()), BLOCK, SERVER, "API server worker1 (10.0.0.1:6443) is not ready: etcd failed"),
        ("a server withholds why", same, |case| answer(case, 0, Readiness::NotReady { failing: vec![] }), BLOCK, SERVER, "API server worker1 (10.0.0.1:6443) is not ready"),
        ("a server does not answer", same, |case| answer(case, 2, Readiness::Unreachable { detail: "connection refused".to_owned() }), BLOCK, SERVER, "API server worker3 (10.0.0.3:6443) is not reachable: connection refused"),
        ("an answer that proves nothing", same, |case| answer(case, 2, Readiness::Unknown { detail: "401".to_owned() }), UNKNOWN, SERVER, "API server worker3 (10.0.0.3:6443) is not known to be ready: 401"),
        ("the target's own sickness does not hold its cure", same, |case| answer(case, 1, etcd_failed()), WARN, SERVER, "API server worker2 (10.0.0.2:6443) is not ready: etcd failed; it is the node to be maintained, so that does not hold it"),
        ("a dead server dropped out of the list", same, |case| case.facts.api_servers = api_servers(&[Readiness::Ready, Readiness::Ready]), UNKNOWN, SERVER, "node worker3 is labelled as control plane, and no API server on it was asked"),
        ("a server known by its address only", same, |case| if let Observation::Known { value, .. } = &mut case.facts.api_servers { value[0].node = None; value[0].name = "10.0.0.1".to_owned(); }, PASS, Reason::Passed, "API servers 10.0.0.1, worker2, worker3 judged; 2 of 3 etcd voters are healthy without worker2, quorum is 2"),
        ("labels and no server at all", kubeadm, |case| case.facts.api_servers = api_servers(&[]), UNKNOWN, SERVER, "node worker1 is labelled as control plane, and no API server on it was asked; and 2 more"),
        ("a managed control plane", |world| workers(world, &NODES), |case| case.facts.api_servers = api_servers(&[]), Status::NotApplicable, Reason::NotInstalled, "neither API servers nor etcd members are among the nodes"),
        ("a dump: etcd alone is judged", same, |case| case.facts.api_servers = Observation::NotAsked, PASS, Reason::Passed, "API servers were not asked for /readyz; 2 of 3 etcd voters are healthy without worker2, quorum is 2"),
        ("a run always asks", same, |case| { at(case, Moment::Handover); case.facts.api_servers = Observation::NotAsked; }, UNKNOWN, Reason::NotAsked, "nothing asked the API servers for /readyz"),
        ("servers failed", same, |case| case.facts.api_servers = Observation::Failed { kind: FailureKind::Timeout, detail: "10 s".to_owned(), at: now() }, UNKNOWN, Reason::ObservationFailed, "api-servers could not be read (timeout): 10 s"),
        ("servers stale", same, |case| if let Observation::Known { at, .. } = &mut case.facts.api_servers { *at = now() - jiff::SignedDuration::from_secs(61) }, UNKNOWN, Reason::ObservationStale, "what is known of api-servers is 61 s old, allowed are 60 s"),
        ("kured#841: the last working control plane", |world| { kubeadm(world); ready(world, "worker1", "Unknown"); ready(world, "worker3", "False"); }, |case| case.facts.api_servers = Observation::NotAsked, BLOCK, SERVER, "none of the 2 control-plane nodes beside worker2 is Ready"),
        ("the only control plane", |world| { kubeadm(world); workers(world, &["worker1", "worker3"]); }, |case| case.facts.api_servers = Observation::NotAsked, WARN, SERVER, "worker2 is the only control-plane node: the API is away while it is down"),
        ("kubeadm: healthy", kubeadm, start, PASS, Reason::Passed, "API servers worker1, worker2, worker3 judged; no etcd member is labelled"),
    ];

    #[rustfmt::skip]
    const ETCD: &[Row] = &[
        ("k3s#10942: another member is not Ready", |world| ready(world, "worker1", "Unknown"), start, BLOCK, QUORUM, "etcd member: node worker1 is not Ready: Unknown (KubeletReady); and 1 more"),
        ("k3s#11349: it fails while the target is drained", |world| ready(world, "worker1", "Unknown"), |case| at(case, Moment::Cordoned), BLOCK, QUORUM, "etcd member: node worker1 is not Ready: Unknown (KubeletReady); and 1 more"),
        ("a member's Lease is old: its condition outlives the truth", |world| world.of(SourceId::Leases)[0] = node_lease("worker1", 41), start, BLOCK, QUORUM, "etcd member worker1 does not renew its Lease: 41 s ago; and 1 more"),
        ("k3s#2281: one member at a time", |world| in_flight(world, "worker3"), start, BLOCK, QUORUM, "etcd member worker3 is in maintenance by another run; and 1 more"),
        ("k3s#8496: a learner that is stuck", |world| learner(world, "worker3"), start, BLOCK, VOTER, "etcd member worker3 is no voter: EtcdIsVoter is False (MemberIsLearner); and 1 more"),
        ("k3s#8496: a worker waits for it too", |world| { workers(world, &["worker2"]); learner(world, "worker3"); }, start, BLOCK, VOTER, "etcd member worker3 is no voter: EtcdIsVoter is False (MemberIsLearner); and 1 more"),
        ("the target itself is a learner", |world| learner(world, "worker2"), start, WARN, VOTER, "the node itself, worker2, is no etcd voter: EtcdIsVoter is False (MemberIsLearner)"),
        ("Unknown", |world| voter(world, "worker3")["status"] = json!("Unknown"), start, UNKNOWN, VOTER, "etcd member worker3 is no voter: EtcdIsVoter is Unknown (MemberNotLearner)"),
        ("no condition", |world| without_voter_condition(world, "worker3"), start, UNKNOWN, VOTER, "etcd member worker3 has no condition EtcdIsVoter (k3s and RKE2 write it since 1.26.11, 1.27.8, 1.28.4)"),
        ("the boundary: a heartbeat of 600 s", |world| voter(world, "worker3")["lastHeartbeatTime"] = json!(ago(600)), start, PASS, Reason::Passed, FINE),
        ("a heartbeat of 601 s", |world| voter(world, "worker3")["lastHeartbeatTime"] = json!(ago(601)), start, BLOCK, STALE, "the last EtcdIsVoter heartbeat of worker3 proves nothing: 601 s ago, limit 600 s; and 1 more"),
        ("no heartbeat", |world| voter(world, "worker3")["lastHeartbeatTime"] = Value::Null, start, UNKNOWN, STALE, "the last EtcdIsVoter heartbeat of worker3 proves nothing: missing, limit 600 s"),
        ("two voters", |world| workers(world, &["worker1"]), start, BLOCK, QUORUM, "1 of 2 etcd voters are healthy without worker2, quorum is 2; and 1 more"),
        ("one voter", |world| workers(world, &["worker1", "worker3"]), start, BLOCK, QUORUM, "0 of 1 etcd voters are healthy without worker2, quorum is 1; and 1 more"),
        ("one voter, loss allowed", |world| workers(world, &["worker1", "worker3"]), |case| case.settings.control_plane.allow_quorum_loss = true, WARN, SERVER, "worker2 is the only control-plane node: the API is away while it is down; and 1 more"),
        ("two voters, loss allowed", |world| workers(world, &["worker1"]), |case| case.settings.control_plane.allow_quorum_loss = true, WARN, Reason::EtcdVotersEven, "2 etcd voters bear no more losses than 1; and 1 more"),
        ("an allowed loss allows no sick member", |world| learner(world, "worker3"), |case| case.settings.control_plane.allow_quorum_loss = true, BLOCK, VOTER, "etcd member worker3 is no voter: EtcdIsVoter is False (MemberIsLearner); and 1 more"),
        ("two voters, the target is a worker", |world| workers(world, &["worker2"]), start, WARN, Reason::EtcdVotersEven, "2 etcd voters bear no more losses than 1"),
        ("five voters, one more not Ready: quorum holds, and it blocks", |world| { five(world); ready(world, "worker5", "False"); }, start, BLOCK, QUORUM, "etcd member: node worker5 is not Ready: False (KubeletReady)"),
        ("five voters", five, start, PASS, Reason::Passed, "API servers worker1, worker2, worker3 judged; 4 of 5 etcd voters are healthy without worker2, quorum is 3"),
        ("a lost label makes no member vanish", |world| { node(world, "worker3")["metadata"]["labels"] = json!({}); learner(world, "worker3"); }, start, BLOCK, VOTER, "etcd member worker3 is no voter: EtcdIsVoter is False (MemberIsLearner); and 1 more"),
        ("a malformed node: how many vote is not known", |world| drop(node(world, "worker3")["status"].as_object_mut().and_then(|status| status.remove("nodeInfo"))), start, UNKNOWN, Reason::ObservationMalformed, "Node worker3: status.nodeInfo is missing"),
    ];

    #[rustfmt::skip]
    const AFTER: &[Row] = &[
        ("verify: confirmed since the return", same, verify, PASS, Reason::Passed, "API servers worker1, worker2, worker3 judged; etcd member worker2 votes since its return"),
        ("verify: the heartbeat is from before", |world| voter(world, "worker2")["lastHeartbeatTime"] = json!(ago(90)), verify, BLOCK, STALE, "etcd has not confirmed worker2 as a voter since it came back at 2026-11-30T00:58:30Z (up to 6 min)"),
        ("verify: it is a learner", |world| learner(world, "worker2"), verify, BLOCK, VOTER, "etcd member worker2 is no voter: EtcdIsVoter is False (MemberIsLearner)"),
        ("verify: the return is not known", same, |case| { verify(case); case.run.as_mut().expect("a run").returned_at = None; }, UNKNOWN, STALE, "it is not known when worker2 came back, so its EtcdIsVoter heartbeat proves nothing"),
        ("verify: its server is not ready", same, |case| { verify(case); answer(case, 1, etcd_failed()); }, BLOCK, SERVER, "API server worker2 (10.0.0.2:6443) is not ready: etcd failed"),
        ("verify: its server was not asked", same, |case| { verify(case); if let Observation::Known { value, .. } = &mut case.facts.api_servers { value.remove(1); } }, UNKNOWN, SERVER, "node worker2 is labelled as control plane, and no API server on it was asked"),
        ("verify: a failing other does not keep it cordoned", |world| learner(world, "worker3"), |case| { verify(case); answer(case, 0, etcd_failed()); }, PASS, Reason::Passed, "API servers worker1, worker2, worker3 judged; etcd member worker2 votes since its return"),
        ("verify: a worker has neither", |world| workers(world, &["worker2"]), verify, PASS, Reason::Passed, "API servers worker1, worker2, worker3 judged; worker2 is no etcd member"),
        ("settle: whole", same, settle, PASS, Reason::Passed, "API servers worker1, worker2, worker3 judged; 3 etcd voters are healthy"),
        ("settle: its own record is no other's", |world| in_flight(world, "worker2"), settle, PASS, Reason::Passed, "API servers worker1, worker2, worker3 judged; 3 etcd voters are healthy"),
        ("settle: its server", same, |case| { settle(case); answer(case, 1, etcd_failed()); }, BLOCK, SERVER, "API server worker2 (10.0.0.2:6443) is not ready: etcd failed"),
        ("settle: its member", |world| learner(world, "worker2"), settle, BLOCK, VOTER, "etcd member worker2 is no voter: EtcdIsVoter is False (MemberIsLearner)"),
        ("settle: another's server", same, |case| { settle(case); answer(case, 0, etcd_failed()); }, BLOCK, SERVER, "API server worker1 (10.0.0.1:6443) is not ready: etcd failed"),
    ];

    #[test]
    fn servers() {
        check_all(SERVERS);
    }

    #[test]
    fn members() {
        check_all(ETCD);
    }

    #[test]
    fn after_the_return() {
        check_all(AFTER);
    }

    #[test]
    fn no_spoilt_path_turns_a_block_into_a_pass() {
        for (name, bend, shape, status, ..) in [SERVERS, ETCD, AFTER].into_iter().flatten() {
            if *status != BLOCK {
                continue;
            }
            let mut world = World::healthy();
            bend(&mut world);
            let left = survivors(&GATE, &world, shape);
            assert_eq!(left, Vec::<String>::new(), "{name}");
        }
    }
}
