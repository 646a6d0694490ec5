//! Gate `coredns-spread`: DNS endpoints on two different Ready nodes, one of which stays.
//!
//! *Source of truth*: as `coredns-replicas`, and the records in flight: a node in maintenance is no node that stays.
//! *When unknown*: a list was not read, or an endpoint that would decide has no `nodeName`.

use std::collections::BTreeSet;

use super::dns::{self, Dns, Lack};
use super::{Draft, GateInput, GateSpec, flight};
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
    // After the return nothing is about to leave.
    let leaving = input.moment != Moment::Settle;
    let nodes = dns.as_ref().map(|dns| dns.nodes.items.clone()).unwrap_or_default();
    let away = if leaving { flight::nodes_in_flight(&mut draft, input, &nodes) } else { None };
    let mut pass = String::new();
    if let Some(dns) = dns {
        let nodes: BTreeSet<&str> = dns.places().collect();
        if input.moment != Moment::Handover {
            distinct(&mut draft, input, &dns, nodes.len());
        }
        if let Some(away) = away {
            stays(&mut draft, input, &dns, &away);
        }
        pass = format!("ready DNS endpoints on {}: {}", ready_nodes(nodes.len()), dns.told());
    }
    dns::no_worse_than_baseline(input, draft.finish(pass))
}

fn ready_nodes(count: usize) -> String {
    if count == 1 { "1 Ready node".to_owned() } else { format!("{count} Ready nodes") }
}

fn distinct(draft: &mut Draft<'_>, input: &GateInput<'_>, dns: &Dns<'_>, nodes: usize) {
    let wanted = usize::try_from(input.settings.coredns.min_nodes).unwrap_or(usize::MAX);
    if nodes < wanted {
        let message = format!("ready DNS endpoints on {}, wanted {wanted}", ready_nodes(nodes));
        let lack = Lack { reason: Reason::CoreDNSReplicasColocated, field: "Ready nodes with an endpoint", message };
        dns.lacking(draft, nodes, wanted, lack);
    }
}

/// At least one endpoint must be on a node that stays. Where `min_nodes` is at most one the operator has accepted
/// that DNS moves with the node: before a drain that is told, and not held.
fn stays(draft: &mut Draft<'_>, input: &GateInput<'_>, dns: &Dns<'_>, away: &BTreeSet<&str>) {
    let leaving = |node: &str| node == input.target || away.contains(node);
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::*;
    use super::*;
    use crate::api::Status;
    use crate::facts::{FailureKind, Observation};

    type Row = (&'static str, fn(&mut World), fn(&mut Case), Status, Reason, &'static str);

    const BLOCK: Status = Status::Block;
    const PASS: Status = Status::Pass;
    const UNKNOWN: Status = Status::Unknown;
    const COLOCATED: Reason = Reason::CoreDNSReplicasColocated;
    const ONLY: Reason = Reason::CoreDNSOnlyOnTarget;

    fn endpoints(world: &mut World) -> &mut Value {
        &mut world.named(SourceId::EndpointSlices, "kube-dns-x4k2p")["endpoints"]
    }

    fn on(world: &mut World, nodes: [&str; 2]) {
        for (endpoint, node) in [0, 1].into_iter().zip(nodes) {
            endpoints(world)[endpoint]["nodeName"] = json!(node);
        }
        for (pod, node) in world.of(SourceId::DnsPods).iter_mut().zip(nodes) {
            pod["spec"]["nodeName"] = json!(node);
        }
    }

    /// Another run is at work on worker3: cordoned and owned, with its record.
    fn in_flight(world: &mut World) {
        let node = world.named(SourceId::Nodes, "worker3");
        node["spec"]["unschedulable"] = json!(true);
        node["metadata"]["annotations"] = json!({"maint.dev/owner": "{}"});
        world.of(SourceId::Maintenances).push(json!({
            "metadata": {"name": "worker3-1"}, "spec": {"nodeName": "worker3"}, "status": {"phase": "Draining"},
        }));
    }

    fn one_on_target(world: &mut World) {
        *endpoints(world) = json!([dns_endpoint("coredns-a", "worker2")]);
        *world.of(SourceId::DnsPods) = vec![dns_pod("coredns-a", "worker2")];
    }

    fn same(_: &mut World) {}
    fn start(_: &mut Case) {}
    fn handover(case: &mut Case) {
        case.moment = Moment::Handover;
        *case = std::mem::take(case).with_run();
    }
    fn settle(case: &mut Case) {
        handover(case);
        case.moment = Moment::Settle;
    }

    #[rustfmt::skip]
    const ROWS: &[Row] = &[
        ("healthy, exactly two nodes", same, start, PASS, Reason::Passed, "ready DNS endpoints on 2 Ready nodes: coredns-a on worker1, coredns-b on worker3"),
        ("one of the two is the target", |world| on(world, ["worker1", "worker2"]), start, PASS, Reason::Passed, "ready DNS endpoints on 2 Ready nodes: coredns-a on worker1, coredns-b on worker2"),
        ("kops#16982: both on one node", |world| on(world, ["worker1", "worker1"]), start, BLOCK, COLOCATED, "ready DNS endpoints on 1 Ready node, wanted 2: coredns-a on worker1, coredns-b on worker1"),
        ("homelab#431: both on the target", |world| on(world, ["worker2", "worker2"]), start, BLOCK, COLOCATED, "ready DNS endpoints on 1 Ready node, wanted 2: coredns-a on worker2, coredns-b on worker2; and 1 more"),
        ("the second node is not Ready", |world| world.named(SourceId::Nodes, "worker3")["status"]["conditions"][0]["status"] = json!("False"), start, BLOCK, COLOCATED, "ready DNS endpoints on 1 Ready node, wanted 2: coredns-a on worker1, coredns-b not counted (node worker3 is not Ready: False (KubeletReady))"),
        ("no nodeName: it cannot be placed", |world| endpoints(world)[1]["nodeName"] = Value::Null, start, UNKNOWN, Reason::ObservationMalformed, "ready DNS endpoints on 1 Ready node, wanted 2, and 1 cannot be placed: coredns-a on worker1, coredns-b not counted (it has no nodeName, or two)"),
        ("the other node is in maintenance", |world| { on(world, ["worker2", "worker3"]); in_flight(world); }, start, BLOCK, ONLY, "no ready DNS endpoint on a node that stays while worker2 is away: coredns-a on worker2, coredns-b on worker3"),
        ("a record that is done takes nothing away", |world| { on(world, ["worker2", "worker3"]); world.of(SourceId::Maintenances).push(json!({"metadata": {"name": "a"}, "spec": {"nodeName": "worker3"}, "status": {"phase": "Succeeded"}})); }, start, PASS, Reason::Passed, "ready DNS endpoints on 2 Ready nodes: coredns-a on worker2, coredns-b on worker3"),
        ("k3s#1606: one endpoint on the target, one node accepted", one_on_target, |case| case.settings.coredns.min_nodes = 1, Status::Warn, ONLY, "no ready DNS endpoint on a node that stays while worker2 is away: DNS fails until its pod has moved: coredns-a on worker2"),
        ("k3s#1606: the same without a drain, nothing moves", one_on_target, |case| { case.settings.coredns.min_nodes = 1; case.strategy = Strategy::CordonOnly; }, BLOCK, ONLY, "no ready DNS endpoint on a node that stays while worker2 is away: coredns-a on worker2"),
        ("k8s-snap#2811: one node will do at hand-over", |world| on(world, ["worker1", "worker1"]), handover, PASS, Reason::Passed, "ready DNS endpoints on 1 Ready node: coredns-a on worker1, coredns-b on worker1"),
        ("all still on the target at hand-over", |world| on(world, ["worker2", "worker2"]), handover, BLOCK, ONLY, "no ready DNS endpoint on a node that stays while worker2 is away: coredns-a on worker2, coredns-b on worker2"),
        ("all still on the target at hand-over, one node accepted", |world| on(world, ["worker2", "worker2"]), |case| { handover(case); case.settings.coredns.min_nodes = 1; }, BLOCK, ONLY, "no ready DNS endpoint on a node that stays while worker2 is away: coredns-a on worker2, coredns-b on worker2"),
        ("k3s#9274: one node after the return", |world| { endpoints(world)[1]["conditions"]["ready"] = json!(false); world.named(SourceId::DnsPods, "coredns-b")["status"]["conditions"][0]["status"] = json!("False"); }, settle, BLOCK, COLOCATED, "ready DNS endpoints on 1 Ready node, wanted 2: coredns-a on worker1, coredns-b not counted (not ready)"),
        ("settled with one of them on the target", |world| { on(world, ["worker2", "worker3"]); in_flight(world); }, settle, PASS, Reason::Passed, "ready DNS endpoints on 2 Ready nodes: coredns-a on worker2, coredns-b on worker3"),
        ("nothing answers", |world| { *endpoints(world) = Value::Null; world.of(SourceId::DnsPods).clear(); }, start, BLOCK, Reason::CoreDNSNotFound, "nothing answers DNS: Service kube-system/kube-dns: no endpoint"),
        ("maint's kinds are absent", |world| drop(world.0.remove(&SourceId::Maintenances)), start, PASS, Reason::Passed, "ready DNS endpoints on 2 Ready nodes: coredns-a on worker1, coredns-b on worker3"),
        ("a dump without records", same, |case| case.facts.maintenances = Observation::NotAsked, PASS, Reason::Passed, "ready DNS endpoints on 2 Ready nodes: coredns-a on worker1, coredns-b on worker3"),
        ("a run that did not ask for records", same, |case| { handover(case); case.facts.maintenances = Observation::NotAsked; }, UNKNOWN, Reason::NotAsked, "nothing asked for maintenances"),
        ("records failed", same, |case| case.facts.maintenances = Observation::Failed { kind: FailureKind::Timeout, detail: "5 s".to_owned(), at: now() }, UNKNOWN, Reason::ObservationFailed, "maintenances could not be read (timeout): 5 s"),
        ("records stale", same, |case| if let Observation::Known { at, .. } = &mut case.facts.maintenances { *at = now() - jiff::SignedDuration::from_secs(31) }, UNKNOWN, Reason::ObservationStale, "what is known of maintenances is 31 s old, allowed are 30 s"),
        ("a malformed record", |world| world.of(SourceId::Maintenances).push(json!({"metadata": {"name": "a"}, "spec": {}})), start, UNKNOWN, Reason::ObservationMalformed, "Maintenance a: spec.nodeName is missing"),
    ];

    #[test]
    fn spread() {
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
    fn no_spoilt_path_turns_a_block_into_a_pass() {
        for (name, bend, shape, status, ..) in ROWS {
            // An endpoint's absent `ready` means true (EndpointConditions): that path is allowed.
            let allowed = |left: &String| left.contains("endpoints.1.conditions");
            if *status != BLOCK {
                continue;
            }
            let mut world = World::healthy();
            bend(&mut world);
            let left = survivors(&GATE, &world, shape);
            let left: Vec<String> = left.into_iter().filter(|left| !allowed(left)).collect();
            assert_eq!(left, Vec::<String>::new(), "{name}");
        }
    }
}
