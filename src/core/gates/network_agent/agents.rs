//! The agents on the nodes at one moment.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::api::{Evidence, GateId, Moment, Reason, Status};
use crate::facts::{CiliumNode, Condition, DaemonSet, Node, Pod};
use crate::gates::reading::was_failing;
use crate::gates::{Draft, GateInput, nodes};
use crate::network::Plugin;

/// How long the agent of the node that came back must have been Ready, in seconds (cilium#29405).
const READY_SECONDS: i64 = 30;

/// Taints that wait for a node's network: Cilium's, and the one that goes with condition NetworkUnavailable.
const TAINTS: [&str; 2] = ["node.cilium.io/agent-not-ready", "node.kubernetes.io/network-unavailable"];

/// The nodes that the moment asks about, and the pods on all of them.
pub(super) struct Judge<'a> {
    input: &'a GateInput<'a>,
    /// By name. Of the target also where it is not Ready.
    judged: BTreeMap<&'a str, &'a Node>,
    pods: &'a [&'a Pod],
    target: Option<&'a Node>,
}

/// One thing that is wrong on one node.
pub(super) struct Problem<'a> {
    node: &'a str,
    status: Status,
    reason: Reason,
    message: String,
    since: Option<Timestamp>,
    evidence: Evidence,
}

impl<'a> Judge<'a> {
    pub(super) fn new(input: &'a GateInput<'a>, all: &'a [&'a Node], pods: &'a [&'a Pod]) -> Self {
        let target = all.iter().copied().find(|node| node.metadata.name == input.target);
        let with_others = match input.moment {
            Moment::Verify => target.is_none_or(Node::is_control_plane),
            _ => true,
        };
        let mut judged = Vec::new();
        if with_others {
            judged.extend(nodes::others(input, all).into_iter().filter(|node| nodes::not_ready(node).is_none()));
        }
        if input.moment != Moment::Handover {
            judged.extend(target);
        }
        let judged = judged.into_iter().map(|node| (node.metadata.name.as_str(), node)).collect();
        Self { input, judged, pods, target }
    }

    /// Asks one DaemonSet of agents; what is wrong on single nodes is returned.
    pub(super) fn agent(&self, draft: &mut Draft<'_>, plugin: Plugin, daemon_set: &DaemonSet) -> Vec<Problem<'a>> {
        if self.input.moment != Moment::Verify {
            rollout(draft, plugin, daemon_set);
        }
        if self.input.moment == Moment::Start {
            self.pinned(draft, plugin, daemon_set);
        }
        let here = |pod: &&&Pod| {
            let owner = pod.controller.as_ref();
            pod.metadata.namespace == daemon_set.metadata.namespace
                && owner.is_some_and(|owner| owner.kind == "DaemonSet" && owner.name == daemon_set.metadata.name)
                && !pod.is_finished()
        };
        let mut by_node: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
        for pod in self.pods.iter().filter(here) {
            if let Some(node) = pod.node_name.as_deref() {
                by_node.entry(node).or_default().push(pod);
            }
        }
        // Where there is an agent for every node that wants one, a node without one wants none.
        let lacking = usize::try_from(daemon_set.desired).unwrap_or(usize::MAX) > by_node.len();
        let mut problems = Vec::new();
        for name in self.judged.keys().copied() {
            match by_node.get(name) {
                Some(pods) => problems.extend(self.on_node(name, plugin, pods)),
                None if lacking => problems.push(missing(name, plugin, daemon_set)),
                None => {}
            }
        }
        problems
    }

    /// The agents of one node: one that is Ready, and at verify has been so for a while on the target.
    fn on_node(&self, node: &'a str, plugin: Plugin, pods: &[&Pod]) -> Option<Problem<'a>> {
        let ready = |pod: &&Pod| pod.conditions.iter().find(|one| one.kind == "Ready").cloned();
        let block = |reason, message, since, evidence| {
            Some(Problem { node, status: Status::Block, reason, message, since, evidence })
        };
        let Some(pod) = pods.iter().find(|pod| pod.is_ready()) else {
            let pod = pods.first()?;
            let (object, condition) = (format!("Pod {}", pod.metadata.full_name()), ready(pod));
            let value = match &condition {
                _ if pod.is_ending() => "being deleted",
                Some(condition) => condition.status.as_str(),
                None => "missing",
            };
            let message = format!("the {} agent of node {node} is not Ready ({object})", plugin.name);
            let since = condition.and_then(|condition| condition.last_transition);
            let evidence = Evidence::new(object, "status.conditions[Ready]", value, "True");
            return block(Reason::NetworkAgentNotReady, message, since, evidence);
        };
        if self.input.moment != Moment::Verify || node != self.input.target {
            return None;
        }
        let object = format!("Pod {}", pod.metadata.full_name());
        let returned = self.input.run.and_then(|run| run.returned_at);
        let since = ready(pod).and_then(|condition: Condition| condition.last_transition);
        // What was Ready before the return was another life of it: it counts from the return.
        let Some(since) = since.zip(returned).map(|(since, returned)| since.max(returned)) else {
            let message = format!("it is not known since when the {} agent of {node} is Ready", plugin.name);
            let evidence = Evidence::new(object, "status.conditions[Ready].lastTransitionTime", "missing", "a time");
            let (status, reason) = (Status::Unknown, Reason::ObservationMalformed);
            return Some(Problem { node, status, reason, message, since: None, evidence });
        };
        let age = self.input.now.duration_since(since).as_secs();
        if age >= READY_SECONDS {
            return None;
        }
        let message =
            format!("the {} agent of node {node} has been Ready for {age} s, wanted {READY_SECONDS} s", plugin.name);
        let field = "status.conditions[Ready].lastTransitionTime";
        let evidence = Evidence::new(object, field, since.to_string(), format!(">= {READY_SECONDS} s ago"));
        block(Reason::NetworkAgentJustReady, message, Some(since), evidence)
    }

    /// Agents that reach the API at the target's own address cannot start anywhere while it is away.
    fn pinned(&self, draft: &mut Draft<'_>, plugin: Plugin, daemon_set: &DaemonSet) {
        let Some(target) = self.target else { return };
        let hosts =
            daemon_set.containers.iter().flat_map(|container| &container.env).filter(|(key, _)| key == API_HOST);
        let Some(host) = hosts.filter_map(|(_, value)| value.as_ref()).find(|host| target.internal_ips.contains(host))
        else {
            return;
        };
        let message = format!(
            "the {} agents reach the API at {host} alone, which is {}: one that starts while it is away does not come up",
            plugin.name, self.input.target
        );
        let object = format!("DaemonSet {}", daemon_set.metadata.full_name());
        let evidence = Evidence::new(object, format!("env {API_HOST}"), host, "127.0.0.1, or an address that stays");
        draft.warn(Reason::NetworkAgentPinnedToTarget, message, evidence);
    }

    /// Taints that wait for the network.
    pub(super) fn taints(&self) -> Vec<Problem<'a>> {
        let mut problems = Vec::new();
        for (&name, &node) in &self.judged {
            for taint in node.taints.iter().filter(|taint| TAINTS.contains(&taint.key.as_str())) {
                let message = format!("node {name} has taint {}: its network is not ready", taint.key);
                let evidence = Evidence::new(format!("Node {name}"), "spec.taints", &taint.key, "gone");
                let (status, reason) = (Status::Block, Reason::NetworkAgentTaint);
                problems.push(Problem { node: name, status, reason, message, since: None, evidence });
            }
        }
        problems
    }

    /// Where the settings want it: what the agent gives addresses from is what Kubernetes gave the node.
    pub(super) fn pod_cidrs(&self, of_agents: &[&CiliumNode]) -> Vec<Problem<'a>> {
        let of_agents: BTreeMap<&str, &[String]> =
            of_agents.iter().map(|one| (one.metadata.name.as_str(), one.pod_cidrs.as_slice())).collect();
        let mut problems = Vec::new();
        for (&name, &node) in &self.judged {
            let mut given = node.pod_cidrs.clone();
            let mut used = of_agents.get(name).map_or_else(Vec::new, |used| used.to_vec());
            given.sort_unstable();
            used.sort_unstable();
            if !given.is_empty() && given == used {
                continue;
            }
            let (given, used) = (told(&given), told(&used));
            let message = format!("the agent of node {name} gives addresses of {used}, and the node was given {given}");
            let evidence = Evidence::new(format!("CiliumNode {name}"), "spec.ipam.podCIDRs", used, given);
            let (status, reason) = (Status::Block, Reason::NetworkPodCIDRMismatch);
            problems.push(Problem { node: name, status, reason, message, since: None, evidence });
        }
        problems
    }

    /// Adds all that is wrong on nodes: how many workers fail, in whatever way, decides what it is worth.
    pub(super) fn add(&self, draft: &mut Draft<'_>, problems: Vec<Problem<'_>>) {
        let strict =
            |name: &str| name == self.input.target || self.judged.get(name).is_none_or(|node| node.is_control_plane());
        let workers: BTreeSet<&str> = problems.iter().map(|one| one.node).filter(|name| !strict(name)).collect();
        let limit = self.input.settings.limits.max_unavailable;
        let few = u32::try_from(workers.len()).unwrap_or(u32::MAX) < limit;
        let after = matches!(self.input.moment, Moment::Verify | Moment::Settle);
        for Problem { node, mut status, reason, mut message, since, evidence } in problems {
            if few && !strict(node) {
                status = Status::Warn;
                message = format!("{message}; fewer than {limit} workers may fail (max_unavailable)");
            } else if after && was_failing(self.input, GateId::NetworkAgent, &evidence) {
                status = Status::Warn;
                message = format!("{message}; it was so before the run");
            }
            draft.add(status, reason, message, since, vec![evidence]);
        }
    }
}

fn missing<'a>(node: &'a str, plugin: Plugin, daemon_set: &DaemonSet) -> Problem<'a> {
    let object = format!("DaemonSet {}", daemon_set.metadata.full_name());
    let message = format!("node {node} has no {} agent ({object})", plugin.name);
    let evidence = Evidence::new(format!("Node {node}"), format!("pods of {object}"), "none", "one, Ready");
    let reason = Reason::NetworkAgentNotReady;
    Problem { node, status: Status::Block, reason, message, since: None, evidence }
}

fn rollout(draft: &mut Draft<'_>, plugin: Plugin, daemon_set: &DaemonSet) {
    let generation = daemon_set.metadata.generation;
    let unseen = generation != Some(daemon_set.observed_generation);
    // With OnDelete pods of an older template stay until somebody deletes them: that is no rollout.
    let behind = !daemon_set.on_delete && daemon_set.updated < daemon_set.desired;
    if !unseen && !behind {
        return;
    }
    let object = format!("DaemonSet {}", daemon_set.metadata.full_name());
    let (name, updated, desired) = (plugin.name, daemon_set.updated, daemon_set.desired);
    let (message, evidence) = if unseen {
        let seen = daemon_set.observed_generation;
        let wanted = generation.map_or_else(|| "a generation".to_owned(), |wanted| wanted.to_string());
        let message = format!("a change of the {name} agents is about to be rolled out ({object})");
        (message, Evidence::new(object, "status.observedGeneration", seen.to_string(), wanted))
    } else {
        let message = format!("{updated} of {desired} {name} agents are of the present template ({object})");
        let field = "status.updatedNumberScheduled";
        (message, Evidence::new(object, field, updated.to_string(), desired.to_string()))
    };
    draft.block(Reason::NetworkAgentRollingOut, message, evidence);
}

/// Where an agent that does without the Service looks for the API (`k8sServiceHost` of Cilium's chart).
const API_HOST: &str = "KUBERNETES_SERVICE_HOST";

fn told(cidrs: &[String]) -> String {
    if cidrs.is_empty() { "none".to_owned() } else { cidrs.join(", ") }
}
