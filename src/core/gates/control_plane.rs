//! Gate `control-plane`: expected API servers ready; the other etcd voters keep quorum.
//!
//! *Source of truth*: `/readyz` of each expected API server at its own address; the nodes' role labels and condition
//! `EtcdIsVoter` (k3s, RKE2), which etcd's leader alone writes and which outlives the truth: it is paired with the
//! node's Ready, its Lease and its own heartbeat. *When unknown*: a server's answer proves nothing, one was not asked,
//! or a member tells nothing of itself.

use super::listing::{Listing, built_in};
use super::{Draft, GateInput, GateSpec, Read, etcd, flight, nodes};
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
            if !flight::from_a_dump(input) {
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
/// etcd members). Where there is only one it is told: the API is away as long as the node.
fn last_control_plane(
    draft: &mut Draft<'_>,
    input: &GateInput<'_>,
    nodes: &Listing<'_, Node>,
    leases: &Listing<'_, Lease>,
) {
    let target = nodes.items.iter().find(|node| node.metadata.name == input.target);
    if !target.is_some_and(|node| node.is_control_plane()) || matches!(input.moment, Moment::Verify | Moment::Settle) {
        return;
    }
    let others: Vec<&&Node> =
        nodes.items.iter().filter(|node| node.is_control_plane() && node.metadata.name != input.target).collect();
    let working = others
        .iter()
        .filter(|node| nodes::not_ready(node).is_none())
        .filter(|node| nodes::lease_is_fresh(input, &leases.items, &node.metadata.name))
        .count();
    if working > 0 {
        return;
    }
    let target = input.target;
    let evidence =
        |value: String| Evidence::new(format!("Node {target}"), "other Ready control-plane nodes", value, ">= 1");
    if others.is_empty() && nodes.complete {
        let message = format!("{target} is the only control-plane node: the API is away while it is down");
        draft.warn(Reason::APIServerNotReady, message, evidence("there are none".to_owned()));
    } else {
        let message = format!("{target} is the last Ready one of {} control-plane nodes", others.len() + 1);
        draft.block(Reason::APIServerNotReady, message, evidence("0".to_owned()));
    }
}
