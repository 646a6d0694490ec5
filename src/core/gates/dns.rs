//! Who answers DNS: found by the DNS Service and its EndpointSlices, else by its pods. Shared by the CoreDNS gates.
//!
//! An endpoint counts if it is ready, not terminating, and on a node that is Ready with a fresh Lease: the endpoint
//! of a dead node stays ready until the node is marked (up to 50 s).

use std::collections::{BTreeMap, BTreeSet};

use super::listing::{Listing, built_in};
use super::{Draft, GateInput, nodes};
use crate::api::names::{LABEL_DNS, LABEL_SERVICE_NAME};
use crate::api::{Evidence, Finding, GateId, Moment, Reason, SourceId, Status};
use crate::facts::{Deployment, EndpointSlice, Lease, Metadata, Node, Pod, Service, TriState};
use crate::planted::{self, Bug};

/// One ready endpoint, once for both address families.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DnsEndpoint {
    /// The pod's name, or its address where it is no pod.
    pub name: String,
    /// Where it is, and whether it counts there.
    pub place: Place,
}

/// Where an endpoint is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// On this node, which is Ready with a fresh Lease: it counts.
    On(String),
    /// It does not count, and why.
    Out(String),
    /// It cannot be told whether it counts, and why.
    Doubtful(String),
}

/// All that is known of who answers DNS.
#[derive(Debug)]
pub(super) struct Dns<'a> {
    /// For sentences: `Service kube-system/kube-dns`, or the pods where there is no Service.
    pub backend: String,
    /// Ready endpoints, and those that were left out with the reason why.
    pub endpoints: Vec<DnsEndpoint>,
    /// Nothing of Services, slices and pods was malformed: there are no further endpoints.
    pub complete: bool,
    /// The nodes.
    pub nodes: Listing<'a, Node>,
}

/// One endpoint as found, before the families are put together.
struct Found<'a> {
    uid: Option<&'a str>,
    name: Option<&'a str>,
    addresses: &'a [String],
    node: Option<&'a str>,
    /// Why it does not serve; none if it does.
    fault: Option<String>,
}

/// Reads who answers DNS. None if that cannot be told, or nobody does: the draft holds the unknown or the block.
pub(super) fn read<'a>(draft: &mut Draft<'a>, input: &'a GateInput<'a>) -> Option<Dns<'a>> {
    let services = services(draft, input);
    let nodes = built_in(draft, SourceId::Nodes, &input.facts.nodes);
    let leases = built_in(draft, SourceId::Leases, &input.facts.leases);
    let services = services?;
    let (found, complete, backend, two_families) = if services.items.is_empty() {
        let pods = pods(draft, input)?;
        let backend =
            format!("the pods labelled {}={} in {}", LABEL_DNS.0, LABEL_DNS.1, input.settings.coredns.namespace);
        (pods.items.iter().map(|pod| found_pod(pod)).collect(), pods.complete, backend, false)
    } else {
        let slices = slices(draft, input, &services)?;
        let families: BTreeSet<&str> = slices.items.iter().map(|slice| slice.address_type.as_str()).collect();
        let names: Vec<String> = services.items.iter().map(|service| service.metadata.full_name()).collect();
        let backend = format!("Service {}", names.join(" and "));
        (
            slices.items.iter().flat_map(|slice| found_endpoints(slice)).collect(),
            slices.complete,
            backend,
            families.len() > 1,
        )
    };
    let found: Vec<Found<'_>> = found;
    let complete = complete && services.complete;
    if found.is_empty() {
        if complete {
            draft.block(
                Reason::CoreDNSNotFound,
                format!("nothing answers DNS: {backend}: no endpoint"),
                Evidence::new(backend, "endpoints", "none", "ready endpoints"),
            );
        }
        return None;
    }
    let (nodes, leases) = (nodes?, leases?);
    let endpoints =
        distinct(&found).into_iter().map(|same| endpoint(input, &same, two_families, &nodes, &leases)).collect();
    Some(Dns { backend, endpoints, complete, nodes })
}

/// What [`ready_dns_endpoints`] needs to be read.
pub(crate) const READS: &[SourceId] =
    &[SourceId::Nodes, SourceId::Leases, SourceId::Services, SourceId::EndpointSlices, SourceId::DnsPods];

/// How many DNS endpoints count, for the proof of a run: as gate `coredns-replicas` counts them. None where that
/// cannot be told for certain, so that a server that did not answer is never written down as a moment without DNS.
#[must_use]
pub fn ready_dns_endpoints(input: &GateInput<'_>) -> Option<usize> {
    let mut draft = Draft::new(GateId::CorednsReplicas, input);
    let counted = match read(&mut draft, input) {
        Some(dns) if dns.doubtful() > 0 => return None,
        Some(dns) => dns.places().count(),
        None => 0,
    };
    (draft.finish(String::new()).status != Status::Unknown).then_some(counted)
}

/// The DNS Services. More than one is common: NodeLocal DNSCache adds `kube-dns-upstream` over the same pods.
pub(super) fn services<'a>(draft: &mut Draft<'a>, input: &'a GateInput<'a>) -> Option<Listing<'a, Service>> {
    let mut services = built_in(draft, SourceId::Services, &input.facts.services)?.within(
        draft,
        "Service",
        &input.settings.coredns.namespace,
        |service| &service.metadata,
    );
    services.items.retain(|service| is_dns(&service.metadata.labels));
    Some(services)
}

/// The Deployments behind the DNS Services; behind the DNS label where there is no Service, or one without selector.
pub(super) fn deployments<'a>(
    draft: &mut Draft<'a>,
    input: &'a GateInput<'a>,
    services: &Listing<'a, Service>,
) -> Option<(Vec<&'a Deployment>, Vec<&'a Deployment>)> {
    let all = built_in(draft, SourceId::Deployments, &input.facts.deployments)?.within(
        draft,
        "Deployment",
        &input.settings.coredns.namespace,
        |deployment| &deployment.metadata,
    );
    for deployment in &all.items {
        // apps/v1 demands labels that match spec.selector: a template without any was not read completely.
        if deployment.pod_labels.is_empty() {
            let object = format!("Deployment {}", deployment.metadata.full_name());
            draft.unknown(
                Reason::ObservationMalformed,
                format!("{object}: spec.template.metadata.labels is missing"),
                Evidence::new(object, "spec.template.metadata.labels", "missing", "labels"),
            );
        }
    }
    let behind = |deployment: &&&Deployment| {
        let labels = &deployment.pod_labels;
        let selected = |service: &&Service| {
            !service.selector.is_empty() && service.selector.iter().all(|(key, value)| labels.get(key) == Some(value))
        };
        is_dns(labels) || services.items.iter().any(selected)
    };
    let dns = all.items.iter().filter(behind).copied().collect();
    Some((dns, all.items))
}

fn is_dns(labels: &BTreeMap<String, String>) -> bool {
    // The exact value: `node-local-dns` is only a cache, `kube-dns-autoscaler` no DNS at all.
    labels.get(LABEL_DNS.0).is_some_and(|value| value == LABEL_DNS.1)
}

fn slices<'a>(
    draft: &mut Draft<'a>,
    input: &'a GateInput<'a>,
    services: &Listing<'a, Service>,
) -> Option<Listing<'a, EndpointSlice>> {
    let mut slices = built_in(draft, SourceId::EndpointSlices, &input.facts.endpoint_slices)?.within(
        draft,
        "EndpointSlice",
        &input.settings.coredns.namespace,
        |slice| &slice.metadata,
    );
    slices.items.retain(|slice| {
        let owner = slice.metadata.labels.get(LABEL_SERVICE_NAME);
        services.items.iter().any(|service| owner == Some(&service.metadata.name))
    });
    Some(slices)
}

fn pods<'a>(draft: &mut Draft<'a>, input: &'a GateInput<'a>) -> Option<Listing<'a, Pod>> {
    let metadata: fn(&Pod) -> &Metadata = |pod| &pod.metadata;
    let mut pods = built_in(draft, SourceId::DnsPods, &input.facts.dns_pods)?.within(
        draft,
        "Pod",
        &input.settings.coredns.namespace,
        metadata,
    );
    pods.items.retain(|pod| is_dns(&pod.metadata.labels));
    Some(pods)
}

fn found_pod(pod: &Pod) -> Found<'_> {
    let ready = pod.conditions.iter().find(|condition| condition.kind == "Ready").map(|condition| condition.status);
    let fault = match ready {
        _ if pod.metadata.deletion_timestamp.is_some() => Some("terminating".to_owned()),
        Some(TriState::True) => None,
        other => Some(format!("not ready: {}", other.map_or("no condition Ready", TriState::as_str))),
    };
    Found {
        uid: Some(pod.metadata.uid.as_str()).filter(|uid| !uid.is_empty()),
        name: Some(&pod.metadata.name),
        addresses: &[],
        node: pod.node_name.as_deref(),
        fault,
    }
}

fn found_endpoints(slice: &EndpointSlice) -> impl Iterator<Item = Found<'_>> {
    slice.endpoints.iter().map(|endpoint| {
        let fault = match (endpoint.terminating, endpoint.ready) {
            (true, _) if planted::is(Bug::CountsTerminating) => None,
            (true, _) => Some("terminating".to_owned()),
            (false, false) => Some("not ready".to_owned()),
            (false, true) => None,
        };
        Found {
            uid: endpoint.target_uid.as_deref(),
            name: endpoint.target_name.as_deref(),
            addresses: &endpoint.addresses,
            node: endpoint.node_name.as_deref(),
            fault,
        }
    })
}

/// Puts together what is one pod: the same uid, the same name, or a shared address. Dual-stack Services have a slice
/// for each address family, and two Services may share their pods.
fn distinct<'a, 'b>(found: &'b [Found<'a>]) -> Vec<Vec<&'b Found<'a>>> {
    let same = |one: &Found<'_>, other: &Found<'_>| {
        (one.uid.is_some() && one.uid == other.uid)
            || (one.name.is_some() && one.name == other.name)
            || ((one.uid.is_none() || other.uid.is_none())
                && one.addresses.iter().any(|address| other.addresses.contains(address)))
    };
    let mut groups: Vec<Vec<&Found<'_>>> = Vec::new();
    for next in found {
        // An entry can tie groups that nothing tied before, so all that match are joined.
        let (matching, mut rest): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|group| group.iter().any(|member| same(member, next)));
        let mut joined: Vec<&Found<'_>> = matching.into_iter().flatten().collect();
        joined.push(next);
        rest.push(joined);
        groups = rest;
    }
    groups
}

fn endpoint(
    input: &GateInput<'_>,
    same: &[&Found<'_>],
    two_families: bool,
    nodes: &Listing<'_, Node>,
    leases: &Listing<'_, Lease>,
) -> DnsEndpoint {
    let name = same
        .iter()
        .find_map(|found| found.name)
        .or_else(|| same.iter().flat_map(|found| found.addresses).next().map(String::as_str))
        .unwrap_or("an endpoint without a name")
        .to_owned();
    // One family that does not serve is a pod that does not serve: half an answer is none.
    let fault = same.iter().find_map(|found| found.fault.clone());
    let anonymous = same.iter().all(|found| found.uid.is_none() && found.name.is_none());
    let places: BTreeSet<Option<&str>> = same.iter().map(|found| found.node).collect();
    let place = match (fault, places.first().copied().flatten()) {
        (Some(fault), _) => Place::Out(fault),
        (None, _) if anonymous && two_families => {
            Place::Doubtful("it has no targetRef, so it may be another address of one that counts".to_owned())
        }
        (None, Some(node)) if places.len() == 1 => place_on(input, node, nodes, leases),
        (None, _) => Place::Doubtful("it has no nodeName, or two".to_owned()),
    };
    DnsEndpoint { name, place }
}

fn place_on(input: &GateInput<'_>, name: &str, nodes: &Listing<'_, Node>, leases: &Listing<'_, Lease>) -> Place {
    let Some(node) = nodes.items.iter().find(|node| node.metadata.name == name) else {
        let why = format!("node {name} does not exist");
        return if nodes.complete {
            Place::Out(why)
        } else {
            Place::Doubtful(format!("node {name} could not be read"))
        };
    };
    if let Some((why, _, _)) = nodes::not_ready(node) {
        return Place::Out(why);
    }
    match nodes::lease_age_seconds(input, &leases.items, name) {
        _ if nodes::lease_is_fresh(input, &leases.items, name) => Place::On(name.to_owned()),
        Some(age) => Place::Out(format!("node {name} last renewed its Lease {age} s ago")),
        None if leases.complete => Place::Out(format!("node {name} has no Lease")),
        None => Place::Doubtful(format!("the Lease of node {name} could not be read")),
    }
}

impl Dns<'_> {
    /// The nodes of the endpoints that count, one entry for each endpoint.
    pub(super) fn places(&self) -> impl Iterator<Item = &str> {
        self.endpoints.iter().filter_map(|endpoint| match &endpoint.place {
            Place::On(node) => Some(node.as_str()),
            Place::Out(_) | Place::Doubtful(_) => None,
        })
    }

    /// How many endpoints might count.
    pub(super) fn doubtful(&self) -> usize {
        self.endpoints.iter().filter(|endpoint| matches!(endpoint.place, Place::Doubtful(_))).count()
    }

    /// All endpoints in words: `coredns-a on worker1, coredns-b not counted (not ready)`.
    pub(super) fn told(&self) -> String {
        let one = |endpoint: &DnsEndpoint| match &endpoint.place {
            Place::On(node) => format!("{} on {node}", endpoint.name),
            Place::Out(why) | Place::Doubtful(why) => format!("{} not counted ({why})", endpoint.name),
        };
        // More names than this make no sentence; the evidence has the numbers.
        let shown = 6;
        let mut parts: Vec<String> = self.endpoints.iter().take(shown).map(one).collect();
        if self.endpoints.len() > shown {
            parts.push(format!("{} more", self.endpoints.len() - shown));
        }
        parts.join(", ")
    }

    /// Reports that there are fewer than wanted: a block where that is certain, else an unknown.
    pub(super) fn lacking(&self, draft: &mut Draft<'_>, counted: usize, wanted: usize, lack: Lack) {
        let evidence = Evidence::new(&self.backend, lack.field, counted.to_string(), format!(">= {wanted}"));
        if counted + self.doubtful() >= wanted {
            let message = format!("{}, and {} cannot be placed: {}", lack.message, self.doubtful(), self.told());
            draft.unknown(Reason::ObservationMalformed, message, evidence);
        } else if self.complete {
            draft.block(lack.reason, format!("{}: {}", lack.message, self.told()), evidence);
        }
        // What is incomplete is an unknown of the draft already.
    }
}

/// What is lacking, in words.
pub(super) struct Lack {
    /// The reason if it is certain.
    pub reason: Reason,
    /// The field of the evidence.
    pub field: &'static str,
    /// The sentence, without the endpoints.
    pub message: String,
}

/// Settling asks for no worse than what was failing, or waived, at the start: an old shortage holds nobody. Only a
/// finding with the same reason is comparable, and counts must not have fallen.
pub(super) fn no_worse_than_baseline(input: &GateInput<'_>, finding: Finding) -> Finding {
    let settling = matches!(input.moment, Moment::Verify | Moment::Settle);
    let (Some(run), true, true) = (input.run, settling, finding.stops()) else { return finding };
    let covered = run.baseline.iter().any(|then| {
        then.gate == finding.gate
            && then.reason == finding.reason
            && then.status >= finding.status
            && finding.evidence.iter().all(|now| then.evidence.iter().any(|then| is_no_worse(then, now)))
    });
    if !covered {
        return finding;
    }
    let message = format!("no worse than at the start: {}", finding.message);
    Finding { status: Status::Warn, message, ..finding }
}

fn is_no_worse(then: &Evidence, now: &Evidence) -> bool {
    let risen = || match (then.value.parse::<u64>(), now.value.parse::<u64>()) {
        (Ok(then), Ok(now)) => now >= then,
        _ => false,
    };
    then.object == now.object && then.field == now.field && (then.value == now.value || risen())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Case, NODES, World, node_lease, now};
    use super::*;
    use crate::facts::{FailureKind, Observation};
    use serde_json::json;

    /// Name, what happens to the facts, the number for the record.
    type Row = (&'static str, fn(&mut World), fn(&mut Case), Option<usize>);

    #[test]
    fn a_server_that_does_not_answer_is_no_moment_without_dns() {
        let failed = |case: &mut Case| {
            case.facts.services =
                Observation::Failed { kind: FailureKind::Transport, detail: "no".to_owned(), at: now() };
        };
        let rows: [Row; 8] = [
            ("both", |_| {}, |_| {}, Some(2)),
            ("Services not read", |_| {}, failed, None),
            ("slices not read", |_| {}, |case| case.facts.endpoint_slices = Observation::NotAsked, None),
            ("nodes not read", |_| {}, |case| case.facts.nodes = Observation::NotAsked, None),
            ("no endpoint at all", |world| world.of(SourceId::EndpointSlices).clear(), |_| {}, Some(0)),
            (
                "one on a dead node, whose endpoint stays ready",
                |world| world.of(SourceId::Leases)[2] = node_lease(NODES[2], 41),
                |_| {},
                Some(1),
            ),
            ("no Service, and the pods answer", |world| world.of(SourceId::Services).clear(), |_| {}, Some(2)),
            (
                "one that cannot be placed",
                |world| world.of(SourceId::EndpointSlices)[0]["endpoints"][1]["nodeName"] = json!(null),
                |_| {},
                None,
            ),
        ];
        for (name, bend, shape, wanted) in rows {
            let mut world = World::healthy();
            bend(&mut world);
            let mut case = world.case();
            shape(&mut case);
            assert_eq!(ready_dns_endpoints(&case.input()), wanted, "{name}");
        }
    }
}
