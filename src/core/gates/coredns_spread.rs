//! Gate `coredns-spread`: DNS endpoints on two different Ready nodes, one of which stays.
//!
//! *Source of truth*: as `coredns-replicas`, and the records in flight: a node in maintenance is no node that stays.
//! *When unknown*: a list was not read, or an endpoint that would decide has no `nodeName`.

use std::collections::BTreeSet;

use super::dns::{self, Dns, Lack};
use super::{Draft, GateInput, GateSpec, flight};
use crate::api::names::ANNOTATION_OWNER;
use crate::api::{Evidence, Finding, GateId, Moment, Policy, Reason, SourceId, Strategy};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::CorednsSpread,
    moments: &[Moment::Start, Moment::Handover, Moment::Settle],
    reads: &[
        SourceId::Nodes,
        SourceId::Leases,
        SourceId::Services,
        SourceId::EndpointSlices,
        SourceId::DnsPods,
        SourceId::Maintenances,
    ],
    reasons: &[Reason::CoreDNSNotFound, Reason::CoreDNSReplicasColocated, Reason::CoreDNSOnlyOnTarget],
    default_policy: Policy::Require,
    doc: "DNS endpoints on two different Ready nodes, one of which stays",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::CorednsSpread, input);
    let dns = dns::read(&mut draft, input);
    let away =
        if input.moment == Moment::Settle { Some(BTreeSet::new()) } else { flight::nodes_in_flight(&mut draft, input) };
    let mut pass = String::new();
    if let Some(dns) = dns {
        let nodes: BTreeSet<&str> = dns.places().collect();
        if input.moment != Moment::Handover {
            distinct(&mut draft, input, &dns, nodes.len());
        }
        if let (Some(away), true) = (away, input.moment != Moment::Settle) {
            stays(&mut draft, input, &dns, &away);
        }
        pass = format!("ready DNS endpoints on {} Ready nodes: {}", nodes.len(), dns.told());
    }
    dns::no_worse_than_baseline(input, draft.finish(pass))
}

fn distinct(draft: &mut Draft<'_>, input: &GateInput<'_>, dns: &Dns<'_>, nodes: usize) {
    let wanted = usize::try_from(input.settings.coredns.min_nodes).unwrap_or(usize::MAX);
    if nodes < wanted {
        let noun = if nodes == 1 { "node" } else { "nodes" };
        let message = format!("ready DNS endpoints on {nodes} Ready {noun}, wanted {wanted}");
        let lack = Lack { reason: Reason::CoreDNSReplicasColocated, field: "Ready nodes with an endpoint", message };
        dns.lacking(draft, nodes, wanted, lack);
    }
}

/// At least one endpoint must be on a node that stays. Where `min_nodes` is at most one the operator has accepted
/// that DNS moves with the node: before a drain that is told, and not held.
fn stays(draft: &mut Draft<'_>, input: &GateInput<'_>, dns: &Dns<'_>, away: &BTreeSet<&str>) {
    let owned = |name: &str| {
        dns.nodes
            .items
            .iter()
            .any(|node| node.metadata.name == name && node.metadata.annotations.contains_key(ANNOTATION_OWNER))
    };
    let leaving = |node: &str| node == input.target || away.contains(node) || owned(node);
    let staying = dns.places().filter(|node| !leaving(node)).count();
    let wanted = usize::try_from(input.settings.coredns.min_nodes).unwrap_or(usize::MAX).min(1);
    if staying >= wanted {
        return;
    }
    let message = format!("no ready DNS endpoint on a node that stays while {} is away", input.target);
    let field = "ready endpoints on nodes that stay";
    let moves = input.moment == Moment::Start
        && input.strategy == Strategy::Drain
        && input.settings.coredns.min_nodes <= 1
        && dns.places().any(|node| node == input.target);
    if moves {
        let evidence = Evidence::new(&dns.backend, field, "0", ">= 1");
        let message = format!("{message}: DNS fails until its pod has moved: {}", dns.told());
        draft.warn(Reason::CoreDNSOnlyOnTarget, message, evidence);
    } else {
        dns.lacking(draft, staying, wanted, Lack { reason: Reason::CoreDNSOnlyOnTarget, field, message });
    }
}
