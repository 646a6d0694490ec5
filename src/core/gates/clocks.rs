//! Whether our clock and those of the nodes agree.
//!
//! Whose clock is wrong cannot be seen, but that they differ can: a kubelet renews its Lease every 10 s
//! (`spec.renewTime`, by the node's clock; `nodeLeaseDurationSeconds` 40), so a Lease of a Ready node is never ahead of a
//! right clock, and seldom older than 40 s. More than half of them ahead by over 60 s: ours is behind. All of them older
//! than 60 s and those 40: ours is ahead. A single node's wrong clock is found by gate `nodes-ready`.

use std::collections::BTreeSet;

use super::reading::required;
use super::{Draft, GateInput, nodes};
use crate::api::{Evidence, Reason, SourceId};
use crate::facts::Lease;

/// Seconds by which clocks may differ.
const MOST_SKEW: i64 = 60;
/// Age in seconds that the Lease of a healthy node may reach.
const LEASE_SECONDS: i64 = 40;

/// Compares our clock with those of the Ready nodes.
pub(crate) fn compare<'a>(input: &GateInput<'a>, draft: &mut Draft<'a>) {
    let Some(all) = required(draft, SourceId::Nodes, &input.facts.nodes) else { return };
    let Some(leases) = required(draft, SourceId::Leases, &input.facts.leases) else { return };
    let ready: BTreeSet<&str> = all
        .into_iter()
        .filter(|node| nodes::not_ready(node).is_none())
        .map(|node| node.metadata.name.as_str())
        .collect();
    let mut ages: Vec<(i64, &Lease)> = leases
        .into_iter()
        .filter(|lease| lease.metadata.namespace == Lease::NODE_NAMESPACE)
        .filter(|lease| ready.contains(lease.metadata.name.as_str()))
        .filter_map(|lease| Some((input.now.duration_since(lease.renew_time?).as_secs(), lease)))
        .collect();
    ages.sort_by_key(|(age, lease)| (*age, lease.metadata.name.as_str()));
    let Some((newest, lease)) = ages.first().copied() else {
        let evidence =
            Evidence::new("Leases of Ready nodes", "spec.renewTime", "none", "one to compare our clock with");
        let message = "whether our clock is right cannot be told: no Ready node renews a Lease";
        return draft.unknown(Reason::ClockSkew, message, evidence);
    };
    let ahead = ages.iter().filter(|(age, _)| *age < -MOST_SKEW).count();
    let message = if ahead * 2 > ages.len() {
        let all = ages.len();
        format!(
            "our clock is behind: {ahead} of {all} Ready nodes renewed their Lease in the future, up to {} s",
            -newest
        )
    } else if newest > MOST_SKEW + LEASE_SECONDS {
        format!("our clock is ahead: the newest Lease of a Ready node is {newest} s old, and kubelets renew every 10 s")
    } else {
        return;
    };
    let object = format!("Lease {}/{}", Lease::NODE_NAMESPACE, lease.metadata.name);
    let seen = if newest < 0 { format!("{} s in the future", -newest) } else { format!("{newest} s ago") };
    let wanted = format!("within {MOST_SKEW} s of our clock");
    draft.unknown(Reason::ClockSkew, message, Evidence::new(object, "spec.renewTime", seen, wanted));
}
