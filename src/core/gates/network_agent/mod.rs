//! Gate `network-agent`: the agents of the network plug-in are at work.
//!
//! # Checks
//! | moment | what it asks of Cilium, Calico, flannel and the like |
//! |---|---|
//! | start | no rollout of the agents; on every Ready node a Ready agent and no taint that waits for one; where the settings say so, each CiliumNode has the pod CIDRs of its Node. Agents that reach the API through the target's address alone are told |
//! | handover | the same of the other nodes |
//! | verify | the target's agent has been Ready for 30 s since the return, and the taint is gone; after a control-plane node also a Ready agent on every other Ready node |
//! | settle | as at the start; what was no better then only warns |
//!
//! Nodes that are not Ready are gate `nodes-ready`'s. Where `max_unavailable` is above 1, fewer failing workers than that
//! only warn.
//!
//! # Why
//! A node can be Ready while its agent is not (cilium#37477), a taint that goes too early lets pods start without a
//! network (cilium#29405, #23394, terraform-hcloud-kube-hetzner#270), a restart of the agents ended Longhorn's instance
//! managers (cilium#16669), and agents lost their API with the server that went (cilium#34653, #38365, #31033).
//!
//! # Source of truth
//! `apps/v1` DaemonSets that select their pods as a known plug-in does, the pods that they control, core Nodes,
//! `cilium.io/v2` CiliumNodes. k3s' own flannel has no agent that can be seen. Left out: plug-ins' operators, which a
//! drain moves like any pod.
//!
//! # Blocks which scopes
//! All.
//!
//! # When unknown
//! A list that could not be read, an object that was not understood, an agent that does not say since when it is Ready.
//!
//! # Runbook
//! `runbooks/NetworkAgent*.md`, `runbooks/NetworkPodCIDRMismatch.md`

mod agents;
#[cfg(test)]
mod tests;

use super::reading::required;
use super::{Draft, GateInput, GateSpec, storage};
use crate::api::{Finding, GateId, Moment, Policy, Reason, SourceId};
use crate::facts::{DaemonSet, Node};
use crate::network::{Plugin, plugin_of};
use agents::Judge;

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::NetworkAgent,
    moments: &[Moment::Start, Moment::Handover, Moment::Verify, Moment::Settle],
    reads: &[SourceId::Nodes, SourceId::DaemonSets, SourceId::NetworkAgentPods, SourceId::CiliumNodes],
    reasons: &[
        Reason::NetworkAgentNotReady,
        Reason::NetworkAgentJustReady,
        Reason::NetworkAgentRollingOut,
        Reason::NetworkAgentTaint,
        Reason::NetworkAgentPinnedToTarget,
        Reason::NetworkPodCIDRMismatch,
    ],
    default_policy: Policy::Require,
    doc: "agents of the network plug-in (Cilium, Calico, flannel ...) Ready where they must be",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::NetworkAgent, input);
    let Some(daemon_sets) = required(&mut draft, SourceId::DaemonSets, &input.facts.daemon_sets) else {
        return draft.finish("");
    };
    let agents: Vec<(Plugin, &DaemonSet)> =
        daemon_sets.into_iter().filter_map(|one| Some((plugin_of(one)?, one))).collect();
    if agents.is_empty() {
        let message = "no DaemonSet runs the agent of a network plug-in (k3s' own flannel has none)";
        return draft.not_applicable(Reason::NotInstalled, message);
    }
    let pods = required(&mut draft, SourceId::NetworkAgentPods, &input.facts.network_agent_pods);
    let nodes: Option<Vec<&Node>> = required(&mut draft, SourceId::Nodes, &input.facts.nodes);
    if let (Some(pods), Some(nodes)) = (pods, nodes) {
        let judge = Judge::new(input, &nodes, &pods);
        let mut problems = Vec::new();
        for (plugin, daemon_set) in &agents {
            problems.extend(judge.agent(&mut draft, *plugin, daemon_set));
        }
        problems.extend(judge.taints());
        if input.settings.network_agent.pod_cidrs_must_agree && input.moment != Moment::Verify {
            let because = "[network_agent] pod_cidrs_must_agree is set";
            let listed = storage::required(&mut draft, SourceId::CiliumNodes, &input.facts.cilium_nodes, because);
            if let Some(listed) = listed {
                problems.extend(judge.pod_cidrs(&listed.items));
            }
        }
        judge.add(&mut draft, problems);
    }
    let mut names: Vec<&str> = agents.iter().map(|(plugin, _)| plugin.name).collect();
    names.dedup();
    let names = names.join(", ");
    draft.finish(match input.moment {
        Moment::Verify => format!("the agent of {names} on {} is Ready", input.target),
        Moment::Handover => format!("the agents of {names} are Ready on every other node"),
        _ => format!("the agents of {names} are Ready on every node"),
    })
}
