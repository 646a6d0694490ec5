//! Gate `coredns-replicas`: at least two ready, not terminating endpoints behind the DNS Service.
//!
//! *Source of truth*: `discovery.k8s.io` EndpointSlices of the Services labelled `k8s-app=kube-dns`
//! (`endpoints[].conditions`), the nodes and Leases of their endpoints, and at the start the Deployment behind them.
//! *When unknown*: a list was not read, or an endpoint that would decide cannot be placed on a node.

use super::dns::{self, Dns, Lack};
use super::{Draft, GateInput, GateSpec, nodes};
use crate::api::{Evidence, Finding, GateId, Moment, Policy, Reason, SourceId, Status, Strategy};
use crate::facts::Deployment;

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::CorednsReplicas,
    moments: &[Moment::Start, Moment::Handover, Moment::Settle],
    reads: &[
        SourceId::Nodes,
        SourceId::Leases,
        SourceId::Services,
        SourceId::EndpointSlices,
        SourceId::DnsPods,
        SourceId::Deployments,
    ],
    reasons: &[Reason::CoreDNSNotFound, Reason::CoreDNSReplicasInsufficient, Reason::CoreDNSRollingOut],
    default_policy: Policy::Require,
    doc: "at least two ready, not terminating endpoints behind the DNS Service",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::CorednsReplicas, input);
    let dns = dns::read(&mut draft, input);
    if input.moment != Moment::Handover {
        rollout(&mut draft, input);
    }
    let pass = dns.map(|dns| count(&mut draft, input, &dns)).unwrap_or_default();
    dns::no_worse_than_baseline(input, draft.finish(pass))
}

/// Counts, and says what a pass says.
fn count(draft: &mut Draft<'_>, input: &GateInput<'_>, dns: &Dns<'_>) -> String {
    let (wanted, without_target) = wanted(input, dns);
    let counted = dns.places().filter(|node| !without_target || *node != input.target).count();
    let place = if without_target { format!(" not on {}", input.target) } else { String::new() };
    let noun = if counted == 1 { "endpoint" } else { "endpoints" };
    let message = format!("{counted} ready DNS {noun}{place} behind {}, wanted {wanted}", dns.backend);
    if counted < wanted {
        let field = if without_target { "ready endpoints not on the target" } else { "ready endpoints" };
        let lack = Lack { reason: Reason::CoreDNSReplicasInsufficient, field, message };
        dns.lacking(draft, counted, wanted, lack);
        return String::new();
    }
    format!("{message}: {}", dns.told())
}

/// How many, and whether those on the target are left out.
///
/// After the cordon the evicted pod may have nowhere to go (k3s spreads strictly; an autoscaler that counts
/// schedulable nodes lowers its target), so the number falls to one unless two other nodes could take it. Others
/// count as schedulable while they are not cordoned: one that is not Ready stops the run by `nodes-ready`.
fn wanted(input: &GateInput<'_>, dns: &Dns<'_>) -> (usize, bool) {
    let full = usize::try_from(input.settings.coredns.min_replicas).unwrap_or(usize::MAX);
    if input.moment != Moment::Handover {
        return (full, false);
    }
    let schedulable = nodes::others(input, &dns.nodes.items).into_iter().filter(|node| !node.is_cordoned()).count();
    let reachable = if input.strategy == Strategy::Drain && schedulable >= 2 { 2 } else { 1 };
    (full.min(reachable), true)
}

/// A rollout in progress replaces the very pods that are counted; its end is waited for before a node is touched.
fn rollout<'a>(draft: &mut Draft<'a>, input: &'a GateInput<'a>) {
    let mut unheard = Draft::new(GateId::CorednsReplicas, input);
    // The Services were read, and reported, with the endpoints.
    let Some(services) = dns::services(&mut unheard, input) else { return };
    let Some((behind, _)) = dns::deployments(draft, input, &services) else { return };
    for deployment in behind {
        let Some((field, value, wanted)) = behind_its_spec(deployment) else { continue };
        let object = format!("Deployment {}", deployment.metadata.full_name());
        let message = format!("{object} is being rolled out: {field} is {value}, wanted {wanted}");
        let evidence = vec![Evidence::new(object, field, value, wanted)];
        draft.add(Status::Block, Reason::CoreDNSRollingOut, message, None, evidence);
    }
}

fn behind_its_spec(deployment: &Deployment) -> Option<(&'static str, String, String)> {
    let number = |value: Option<i64>| value.map_or_else(|| "missing".to_owned(), |value| value.to_string());
    if deployment.observed_generation != deployment.metadata.generation {
        let (seen, wanted) = (number(deployment.observed_generation), number(deployment.metadata.generation));
        return Some(("status.observedGeneration", seen, wanted));
    }
    if deployment.updated_replicas < deployment.replicas {
        let (seen, wanted) = (deployment.updated_replicas.to_string(), deployment.replicas.to_string());
        return Some(("status.updatedReplicas", seen, wanted));
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::*;
    use super::*;
    use crate::facts::{FailureKind, Observation};

    /// Bends the world of a row.
    type Bend = fn(&mut World);
    /// Bends the case of a row.
    type Shape = fn(&mut Case);

    type Row = (&'static str, Bend, Shape, Status, Reason, &'static str);

    fn slice(world: &mut World) -> &mut Value {
        world.named(SourceId::EndpointSlices, "kube-dns-x4k2p")
    }

    fn only_one(world: &mut World) {
        slice(world)["endpoints"] = json!([dns_endpoint("coredns-a", "worker1")]);
    }

    /// One pod with an address of each family.
    fn dual(world: &mut World) {
        only_one(world);
        world.of(SourceId::DnsPods).truncate(1);
        let mut second = dns_slice(&[dns_endpoint("coredns-a", "worker1")]);
        second["metadata"]["name"] = json!("kube-dns-v6");
        second["addressType"] = json!("IPv6");
        second["endpoints"][0]["addresses"] = json!(["fd00::1"]);
        world.of(SourceId::EndpointSlices).push(second);
    }

    fn second_family(world: &mut World) -> &mut Value {
        &mut world.named(SourceId::EndpointSlices, "kube-dns-v6")["endpoints"][0]
    }

    fn second_terminates(world: &mut World) {
        slice(world)["endpoints"][1]["conditions"] = json!({"ready": false, "serving": true, "terminating": true});
    }

    fn without_service(world: &mut World) {
        world.of(SourceId::Services).clear();
    }

    fn same(_: &mut World) {}
    fn start(_: &mut Case) {}
    fn settle(case: &mut Case) {
        case.moment = Moment::Settle;
    }
    fn handover(case: &mut Case) {
        case.moment = Moment::Handover;
    }
    fn cordon_only(case: &mut Case) {
        case.moment = Moment::Handover;
        case.strategy = Strategy::CordonOnly;
    }

    fn check_all(rows: Vec<Row>) {
        for (name, bend, shape, status, reason, message) in rows {
            let mut world = World::healthy();
            bend(&mut world);
            let mut case = world.case();
            shape(&mut case);
            let finding = case.ask(&GATE);
            assert_eq!((finding.status, finding.reason, finding.message.as_str()), (status, reason, message), "{name}");
        }
    }

    const BLOCK: Status = Status::Block;
    const PASS: Status = Status::Pass;
    const UNKNOWN: Status = Status::Unknown;
    const FEW: Reason = Reason::CoreDNSReplicasInsufficient;

    #[test]
    #[rustfmt::skip]
    fn counting() {
        check_all(vec![
            ("healthy, exactly two", same, start, PASS, Reason::Passed, "2 ready DNS endpoints behind Service kube-system/kube-dns, wanted 2: coredns-a on worker1, coredns-b on worker3"),
            ("k3s#1606: a single CoreDNS", only_one, start, BLOCK, FEW, "1 ready DNS endpoint behind Service kube-system/kube-dns, wanted 2: coredns-a on worker1"),
            ("k3s#1606, accepted by min_replicas = 1", only_one, |case| case.settings.coredns.min_replicas = 1, PASS, Reason::Passed, "1 ready DNS endpoint behind Service kube-system/kube-dns, wanted 1: coredns-a on worker1"),
            ("a terminating pod serves on and does not count", second_terminates, start, BLOCK, FEW, "1 ready DNS endpoint behind Service kube-system/kube-dns, wanted 2: coredns-a on worker1, coredns-b not counted (terminating)"),
            ("k3s#9274: stuck ContainerCreating after the restart", |world| { slice(world)["endpoints"][1]["conditions"] = json!({"ready": false, "serving": false, "terminating": false}) }, settle, BLOCK, FEW, "1 ready DNS endpoint behind Service kube-system/kube-dns, wanted 2: coredns-a on worker1, coredns-b not counted (not ready)"),
            ("absent conditions mean ready", |world| slice(world)["endpoints"][1]["conditions"] = json!({}), start, PASS, Reason::Passed, "2 ready DNS endpoints behind Service kube-system/kube-dns, wanted 2: coredns-a on worker1, coredns-b on worker3"),
            ("a dead node's endpoint stays ready: node not Ready", |world| world.named(SourceId::Nodes, "worker3")["status"]["conditions"][0]["status"] = json!("Unknown"), start, BLOCK, FEW, "1 ready DNS endpoint behind Service kube-system/kube-dns, wanted 2: coredns-a on worker1, coredns-b not counted (node worker3 is not Ready: Unknown (KubeletReady))"),
            ("a dead node's endpoint stays ready: Lease of 41 s", |world| world.of(SourceId::Leases)[2] = node_lease("worker3", 41), start, BLOCK, FEW, "1 ready DNS endpoint behind Service kube-system/kube-dns, wanted 2: coredns-a on worker1, coredns-b not counted (node worker3 last renewed its Lease 41 s ago)"),
            ("the boundary: Lease of 40 s", |world| world.of(SourceId::Leases)[2] = node_lease("worker3", 40), start, PASS, Reason::Passed, "2 ready DNS endpoints behind Service kube-system/kube-dns, wanted 2: coredns-a on worker1, coredns-b on worker3"),
            ("no Lease at all", |world| drop(world.of(SourceId::Leases).remove(2)), start, BLOCK, FEW, "1 ready DNS endpoint behind Service kube-system/kube-dns, wanted 2: coredns-a on worker1, coredns-b not counted (node worker3 has no Lease)"),
            ("the node is gone", |world| drop(world.of(SourceId::Nodes).remove(2)), start, BLOCK, FEW, "1 ready DNS endpoint behind Service kube-system/kube-dns, wanted 2: coredns-a on worker1, coredns-b not counted (node worker3 does not exist)"),
            ("no nodeName", |world| slice(world)["endpoints"][1]["nodeName"] = Value::Null, start, UNKNOWN, Reason::ObservationMalformed, "1 ready DNS endpoint behind Service kube-system/kube-dns, wanted 2, and 1 cannot be placed: coredns-a on worker1, coredns-b not counted (it has no nodeName, or two)"),
        ]);
    }

    #[test]
    #[rustfmt::skip]
    fn finding_who_answers() {
        check_all(vec![
            ("scaled to zero: endpoints null", |world| slice(world)["endpoints"] = Value::Null, start, BLOCK, Reason::CoreDNSNotFound, "nothing answers DNS: Service kube-system/kube-dns: no endpoint"),
            ("a Service without slices", |world| world.of(SourceId::EndpointSlices).clear(), start, BLOCK, Reason::CoreDNSNotFound, "nothing answers DNS: Service kube-system/kube-dns: no endpoint"),
            ("no Service: pods", without_service, start, PASS, Reason::Passed, "2 ready DNS endpoints behind the pods labelled k8s-app=kube-dns in kube-system, wanted 2: coredns-a on worker1, coredns-b on worker3"),
            ("no Service, one pod not Ready", |world| { without_service(world); world.named(SourceId::DnsPods, "coredns-b")["status"]["conditions"][0]["status"] = json!("False"); }, start, BLOCK, FEW, "1 ready DNS endpoint behind the pods labelled k8s-app=kube-dns in kube-system, wanted 2: coredns-a on worker1, coredns-b not counted (not ready: False)"),
            ("no Service: node-local-dns and the autoscaler are no DNS", |world| { without_service(world); for (pod, label) in world.of(SourceId::DnsPods).iter_mut().zip(["node-local-dns", "kube-dns-autoscaler"]) { pod["metadata"]["labels"]["k8s-app"] = json!(label); } }, start, BLOCK, Reason::CoreDNSNotFound, "nothing answers DNS: the pods labelled k8s-app=kube-dns in kube-system: no endpoint"),
            ("dual stack: a pod in two slices is one", dual, start, BLOCK, FEW, "1 ready DNS endpoint behind Service kube-system/kube-dns, wanted 2: coredns-a on worker1"),
            ("dual stack: a second address without targetRef is in doubt", |world| { dual(world); second_family(world).as_object_mut().map(|endpoint| endpoint.remove("targetRef")); }, start, UNKNOWN, Reason::ObservationMalformed, "1 ready DNS endpoint behind Service kube-system/kube-dns, wanted 2, and 1 cannot be placed: coredns-a on worker1, fd00::1 not counted (it has no targetRef, so it may be another address of one that counts)"),
            ("dual stack: half an answer is none", |world| { dual(world); second_family(world)["conditions"]["ready"] = json!(false); }, start, BLOCK, FEW, "0 ready DNS endpoints behind Service kube-system/kube-dns, wanted 2: coredns-a not counted (not ready)"),
            ("many endpoints: the union of all slices", |world| { only_one(world); let mut second = dns_slice(&[dns_endpoint("coredns-b", "worker3")]); second["metadata"]["name"] = json!("kube-dns-second"); world.of(SourceId::EndpointSlices).push(second); }, start, PASS, Reason::Passed, "2 ready DNS endpoints behind Service kube-system/kube-dns, wanted 2: coredns-a on worker1, coredns-b on worker3"),
            ("NodeLocal DNSCache: a second Service over the same pods", |world| { let mut service = dns_service(); service["metadata"]["name"] = json!("kube-dns-upstream"); world.of(SourceId::Services).push(service); only_one(world); let mut second = dns_slice(&[dns_endpoint("coredns-a", "worker1")]); second["metadata"]["name"] = json!("kube-dns-upstream-1"); second["metadata"]["labels"]["kubernetes.io/service-name"] = json!("kube-dns-upstream"); world.of(SourceId::EndpointSlices).push(second); }, start, BLOCK, FEW, "1 ready DNS endpoint behind Service kube-system/kube-dns and kube-system/kube-dns-upstream, wanted 2: coredns-a on worker1"),
            ("another Service's slice does not count", |world| { only_one(world); let mut other = dns_slice(&[dns_endpoint("web-b", "worker3")]); other["metadata"]["labels"]["kubernetes.io/service-name"] = json!("web"); world.of(SourceId::EndpointSlices).push(other); }, start, BLOCK, FEW, "1 ready DNS endpoint behind Service kube-system/kube-dns, wanted 2: coredns-a on worker1"),
        ]);
    }

    #[test]
    #[rustfmt::skip]
    fn rollouts() {
        check_all(vec![
            ("k8s-snap#2646: pods of the old template are left", |world| { world.named(SourceId::Deployments, "coredns")["status"]["updatedReplicas"] = json!(1); }, start, BLOCK, Reason::CoreDNSRollingOut, "Deployment kube-system/coredns is being rolled out: status.updatedReplicas is 1, wanted 2"),
            ("the controller has not seen the new spec", |world| { world.named(SourceId::Deployments, "coredns")["status"]["observedGeneration"] = json!(2); }, start, BLOCK, Reason::CoreDNSRollingOut, "Deployment kube-system/coredns is being rolled out: status.observedGeneration is 2, wanted 3"),
            ("a rollout does not hold the hand-over", |world| { world.named(SourceId::Deployments, "coredns")["status"]["updatedReplicas"] = json!(1); }, handover, PASS, Reason::Passed, "2 ready DNS endpoints not on worker2 behind Service kube-system/kube-dns, wanted 2: coredns-a on worker1, coredns-b on worker3"),
            ("k8s-snap#2811: the third pod is Pending, two are ready", |world| { *world.named(SourceId::Deployments, "coredns") = dns_deployment(3); }, start, PASS, Reason::Passed, "2 ready DNS endpoints behind Service kube-system/kube-dns, wanted 2: coredns-a on worker1, coredns-b on worker3"),
            ("CoreDNS as a DaemonSet has no Deployment", |world| world.of(SourceId::Deployments).clear(), start, PASS, Reason::Passed, "2 ready DNS endpoints behind Service kube-system/kube-dns, wanted 2: coredns-a on worker1, coredns-b on worker3"),
            ("a Deployment without pod labels", |world| { world.named(SourceId::Deployments, "coredns")["spec"]["template"]["metadata"]["labels"] = Value::Null; }, start, UNKNOWN, Reason::ObservationMalformed, "Deployment kube-system/coredns: spec.template.metadata.labels is missing"),
        ]);
    }

    #[test]
    #[rustfmt::skip]
    fn handing_over() {
        let on_target: Bend = |world| slice(world)["endpoints"][1]["nodeName"] = json!("worker2");
        check_all(vec![
            ("two others are schedulable, one endpoint is still on the target", on_target, handover, BLOCK, FEW, "1 ready DNS endpoint not on worker2 behind Service kube-system/kube-dns, wanted 2: coredns-a on worker1, coredns-b on worker2"),
            ("k8s-snap#2811: one other is cordoned, so one endpoint will do", |world| { only_one(world); world.named(SourceId::Nodes, "worker3")["spec"]["unschedulable"] = json!(true); }, handover, PASS, Reason::Passed, "1 ready DNS endpoint not on worker2 behind Service kube-system/kube-dns, wanted 1: coredns-a on worker1"),
            ("nothing remains", |world| { slice(world)["endpoints"] = json!([dns_endpoint("coredns-a", "worker2")]); world.named(SourceId::Nodes, "worker3")["spec"]["unschedulable"] = json!(true); }, handover, BLOCK, FEW, "0 ready DNS endpoints not on worker2 behind Service kube-system/kube-dns, wanted 1: coredns-a on worker2"),
            ("an ignored node takes none", |world| { only_one(world); world.named(SourceId::Nodes, "worker3")["metadata"]["labels"] = json!({}); }, |case| { handover(case); case.settings.limits.ignore_nodes = vec!["worker3".to_owned()]; }, PASS, Reason::Passed, "1 ready DNS endpoint not on worker2 behind Service kube-system/kube-dns, wanted 1: coredns-a on worker1"),
            ("cordon-only moves no pod: one not on the target", on_target, cordon_only, PASS, Reason::Passed, "1 ready DNS endpoint not on worker2 behind Service kube-system/kube-dns, wanted 1: coredns-a on worker1, coredns-b on worker2"),
            ("cordon-only, all on the target", |world| slice(world)["endpoints"] = json!([dns_endpoint("coredns-a", "worker2")]), cordon_only, BLOCK, FEW, "0 ready DNS endpoints not on worker2 behind Service kube-system/kube-dns, wanted 1: coredns-a on worker2"),
            ("min_replicas = 3 is a wish for the start only", same, |case| { handover(case); case.settings.coredns.min_replicas = 3; }, PASS, Reason::Passed, "2 ready DNS endpoints not on worker2 behind Service kube-system/kube-dns, wanted 2: coredns-a on worker1, coredns-b on worker3"),
        ]);
    }

    #[test]
    #[rustfmt::skip]
    fn what_cannot_be_read() {
        let failed = "services could not be read (forbidden): no";
        let old = "what is known of endpoint-slices is 31 s old, allowed are 30 s";
        check_all(vec![
            ("absent", same, |case| case.facts.services = Observation::Absent { at: now() }, UNKNOWN, Reason::ObservationFailed, "the API says that services do not exist, although the kind is built in"),
            ("not asked", same, |case| case.facts.services = Observation::NotAsked, UNKNOWN, Reason::NotAsked, "nothing asked for services"),
            ("failed", same, |case| { case.facts.services = Observation::Failed { kind: FailureKind::Forbidden, detail: "no".to_owned(), at: now() } }, UNKNOWN, Reason::ObservationFailed, failed),
            ("stale", same, |case| { if let Observation::Known { at, .. } = &mut case.facts.endpoint_slices { *at = now() - jiff::SignedDuration::from_secs(31) } }, UNKNOWN, Reason::ObservationStale, old),
            ("malformed slice: no verdict on what it may hold", |world| slice(world)["endpoints"][1]["conditions"]["ready"] = json!("yes"), start, UNKNOWN, Reason::ObservationMalformed, "EndpointSlice kube-system/kube-dns-x4k2p: endpoints[1].conditions.ready is text, wanted true or false"),
            ("malformed node: its endpoint is in doubt", |world| { drop( world.named(SourceId::Nodes, "worker3")["status"] .as_object_mut() .and_then(|status| status.remove("nodeInfo")), ) }, start, UNKNOWN, Reason::ObservationMalformed, "Node worker3: status.nodeInfo is missing; and 1 more"),
        ]);
    }

    #[test]
    fn settling_asks_for_no_worse_than_the_start() {
        let before = |endpoints: &[Value]| {
            let mut world = World::healthy();
            slice(&mut world)["endpoints"] = json!(endpoints);
            world.case()
        };
        let one = [dns_endpoint("coredns-a", "worker1")];
        let baseline = before(&one).ask(&GATE);
        let rows: [(&str, Vec<Value>, Status); 3] = [
            ("the same shortage", one.to_vec(), Status::Warn),
            ("healed", vec![dns_endpoint("coredns-a", "worker1"), dns_endpoint("coredns-b", "worker3")], Status::Pass),
            (
                "all endpoints unready now",
                {
                    let mut bad = dns_endpoint("coredns-a", "worker1");
                    bad["conditions"]["ready"] = json!(false);
                    vec![bad]
                },
                Status::Block,
            ),
        ];
        for (name, endpoints, status) in rows {
            let mut case = before(&endpoints).with_run();
            case.moment = Moment::Settle;
            case.run.as_mut().expect("a run").baseline = vec![baseline.clone()];
            let finding = case.ask(&GATE);
            assert_eq!(finding.status, status, "{name}: {}", finding.message);
        }
    }

    #[test]
    fn no_spoilt_path_turns_a_block_into_a_pass() {
        // By definition of the API: an endpoint's absent `ready` means true (EndpointConditions).
        let unready = [
            "endpoint-slices kube-dns-x4k2p: endpoints.1.conditions.ready deleted",
            "endpoint-slices kube-dns-x4k2p: endpoints.1.conditions.ready nulled",
            "endpoint-slices kube-dns-x4k2p: endpoints.1.conditions deleted",
            "endpoint-slices kube-dns-x4k2p: endpoints.1.conditions nulled",
        ];
        // By definition of the API: an absent `spec.replicas` means 1 (apps/v1).
        let one_replica = ["deployments coredns: spec.replicas deleted", "deployments coredns: spec.replicas nulled"];
        let rows: [(&str, Bend, Shape, &[&str]); 7] = [
            ("one pod with two addresses", dual, start, &[]),
            (
                "a single endpoint",
                |world| {
                    only_one(world);
                    world.of(SourceId::DnsPods).truncate(1);
                },
                start,
                &[],
            ),
            (
                "an unready endpoint",
                |world| {
                    slice(world)["endpoints"][1]["conditions"] =
                        json!({"ready": false, "serving": false, "terminating": false});
                    world.named(SourceId::DnsPods, "coredns-b")["status"]["conditions"][0]["status"] = json!("False");
                },
                start,
                &unready,
            ),
            (
                "a node that is not Ready",
                |world| {
                    world.named(SourceId::Nodes, "worker3")["status"]["conditions"][0]["status"] = json!("False");
                },
                start,
                &[],
            ),
            ("a Lease that is old", |world| world.of(SourceId::Leases)[2] = node_lease("worker3", 300), start, &[]),
            (
                "a rollout",
                |world| {
                    world.named(SourceId::Deployments, "coredns")["status"]["updatedReplicas"] = json!(1);
                },
                start,
                &one_replica,
            ),
            (
                "one left at hand-over",
                |world| {
                    only_one(world);
                    world.of(SourceId::DnsPods).truncate(1);
                },
                handover,
                &[],
            ),
        ];
        for (name, bend, shape, allowed) in rows {
            let mut world = World::healthy();
            bend(&mut world);
            let left = survivors(&GATE, &world, shape);
            assert_eq!(left, allowed, "{name}");
        }
    }
}
