//! Gate `databases`: PostgreSQL clusters are whole, and a primary on the node can move.
//!
//! # Checks
//! | moment | what it asks of each cluster of CloudNativePG |
//! |---|---|
//! | start | with an instance on the target: all instances ready, condition Ready, no switchover, nothing fenced, a primary on the target has a Ready instance on another Ready, schedulable node. Without one there: an incomplete cluster only warns |
//! | handover | no primary on the target, all instances but one ready, no switchover; not of single instances without a budget. With strategy cordon-only only whether a switchover is at work |
//! | settle | all instances ready, no switchover; what was no better at the start only warns |
//!
//! Hibernated clusters without pods are asked nothing.
//!
//! # Why
//! The primary's budget always stands at 0: only the operator's switchover, which the cordon sets off, frees it, and
//! it needs a Ready instance elsewhere (cloudnative-pg#2570, #7416, #8882, #10103; two nodes lost their window to a
//! drain that hung for two hours because another node was cordoned already).
//!
//! # Source of truth
//! `postgresql.cnpg.io/v1` Clusters, and the pods that they label `cnpg.io/cluster`; core Nodes. Not readable through
//! the API and left out: whether a replica's WAL receiver is active. Volumes that are bound to the node are told by
//! gate `workloads`, backups by gate `backups`.
//!
//! # Blocks which scopes
//! All: the cordon alone moves primaries.
//!
//! # When unknown
//! A list that could not be read, an object that was not understood, fewer pods than ready instances.
//!
//! # Runbook
//! `runbooks/Database*.md`

mod cluster;
#[cfg(test)]
mod tests;

use super::storage::{NodeIndex, required};
use super::{Draft, GateInput, GateSpec, Read};
use crate::api::{Finding, GateId, Moment, Policy, Reason, SourceId};
use cluster::Judge;

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::Databases,
    moments: &[Moment::Start, Moment::Handover, Moment::Settle],
    reads: &[SourceId::Nodes, SourceId::CnpgClusters, SourceId::CnpgPods],
    reasons: &[
        Reason::DatabasePrimaryCannotMove,
        Reason::DatabasePrimaryOnTarget,
        Reason::DatabaseIncomplete,
        Reason::DatabaseInTransition,
        Reason::DatabaseGoesDown,
    ],
    default_policy: Policy::Require,
    doc: "PostgreSQL clusters (CloudNativePG) whole; a primary on the node can move",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::Databases, input);
    let clusters = match draft.read(SourceId::CnpgClusters, &input.facts.cnpg_clusters) {
        Read::Known(clusters) => clusters,
        Read::Unreadable => return draft.finish(""),
        Read::NotAsked => return draft.not_applicable(Reason::NotAsked, "this input holds no PostgreSQL clusters"),
        Read::Absent => {
            let message = "CloudNativePG is not installed (no clusters.postgresql.cnpg.io)";
            return draft.not_applicable(Reason::NotInstalled, message);
        }
    };
    if clusters.is_empty() {
        return draft.finish("there are no PostgreSQL clusters");
    }
    let nodes = NodeIndex::read(&mut draft, input);
    let pods = required(&mut draft, SourceId::CnpgPods, &input.facts.cnpg_pods, "there are PostgreSQL clusters");
    if let (Some(nodes), Some(pods)) = (nodes, pods) {
        for cluster in &clusters {
            if cluster.metadata.deletion_timestamp.is_none() {
                Judge::new(input, &nodes, &pods.items, cluster).judge(&mut draft);
            }
        }
    }
    let all = clusters.len();
    draft.finish(match input.moment {
        Moment::Start => format!("{all} PostgreSQL clusters can do without {}", input.target),
        Moment::Handover => format!("no primary of {all} PostgreSQL clusters is on {}", input.target),
        _ => format!("all {all} PostgreSQL clusters are whole"),
    })
}
