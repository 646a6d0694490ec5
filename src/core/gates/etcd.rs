//! etcd members as their nodes show them (k3s, RKE2): who votes, and whether the others keep quorum.

use std::collections::BTreeSet;

use super::listing::Listing;
use super::{Draft, GateInput, flight, nodes};
use crate::api::{Evidence, Moment, Reason, Status};
use crate::facts::{Lease, Node, TriState};
use crate::planted::{self, Bug};

/// Condition that etcd's leader writes on the members' nodes, at least every 300 s (k3s since 1.26.11).
const CONDITION: &str = "EtcdIsVoter";
const FIELD: &str = "status.conditions[EtcdIsVoter]";

/// How one member looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Healthy,
    Doubtful,
    Sick,
}

/// Judges what the moment asks of etcd, and says it for a pass. None where no node is a member: kubeadm labels none,
/// and a cluster on another datastore has none.
pub(super) fn judge<'a>(
    draft: &mut Draft<'a>,
    input: &'a GateInput<'a>,
    nodes: &Listing<'a, Node>,
    leases: &Listing<'a, Lease>,
) -> Option<String> {
    let members: Vec<&Node> = nodes.items.iter().copied().filter(|node| is_member(node)).collect();
    if members.is_empty() || planted::is(Bug::IgnoresQuorum) {
        return None;
    }
    let target = members.iter().copied().find(|node| node.metadata.name == input.target);
    match input.moment {
        Moment::Verify => Some(verify(draft, input, target, leases)),
        Moment::Settle => {
            for member in &members {
                health(draft, input, member, leases);
            }
            even(draft, &members);
            Some(format!("{} etcd voters are healthy", members.len()))
        }
        Moment::Start | Moment::Cordoned | Moment::Handover => {
            Some(quorum(draft, input, &members, leases, nodes.complete))
        }
    }
}

/// A member is what the label says, or what the condition speaks of: a lost label makes no member vanish.
fn is_member(node: &Node) -> bool {
    node.is_etcd() || node.condition(CONDITION).is_some()
}

fn quorum<'a>(
    draft: &mut Draft<'a>,
    input: &'a GateInput<'a>,
    members: &[&'a Node],
    leases: &Listing<'a, Lease>,
    complete: bool,
) -> String {
    let target = members.iter().copied().find(|node| node.metadata.name == input.target);
    let away = flight::nodes_in_flight(draft, input, members).unwrap_or_default();
    let others: Vec<&Node> = members.iter().copied().filter(|node| node.metadata.name != input.target).collect();
    let states: Vec<Health> = others
        .iter()
        .map(|member| {
            if target.is_some() && in_flight(draft, member, &away) {
                Health::Sick
            } else {
                health(draft, input, member, leases)
            }
        })
        .collect();
    if let Some(target) = target {
        own(draft, target);
    }
    if !complete {
        // How many vote is not known, which the draft tells already.
        return String::new();
    }
    even(draft, members);
    if target.is_none() {
        return format!("{} etcd voters are healthy", others.len());
    }
    let healthy = states.iter().filter(|state| **state == Health::Healthy).count();
    let doubtful = states.iter().filter(|state| **state == Health::Doubtful).count();
    let (all, wanted) = (members.len(), members.len() / 2 + 1);
    let told = format!("{healthy} of {all} etcd voters are healthy without {}, quorum is {wanted}", input.target);
    // What is only doubtful is an unknown of the draft already.
    if healthy + doubtful < wanted {
        let evidence =
            Evidence::new("etcd", "healthy voters without the target", healthy.to_string(), format!(">= {wanted}"));
        if input.settings.control_plane.allow_quorum_loss {
            let message = format!("{told}: the API is away while it is down, as allow_quorum_loss permits");
            draft.warn(Reason::EtcdQuorumAtRisk, message, evidence);
        } else {
            draft.block(Reason::EtcdQuorumAtRisk, told.clone(), evidence);
        }
    }
    told
}

/// Members are taken one at a time, whatever the limits say (k3s#2281): one in flight may be gone any moment.
fn in_flight(draft: &mut Draft<'_>, member: &Node, away: &BTreeSet<&str>) -> bool {
    let name = member.metadata.name.as_str();
    let found = away.contains(name) && !planted::is(Bug::StartsTwo);
    if found {
        let evidence = Evidence::new(format!("Node {name}"), "maintenance", "in flight", "none on an etcd member");
        draft.block(Reason::EtcdQuorumAtRisk, format!("etcd member {name} is in maintenance by another run"), evidence);
    }
    found
}

/// Judges one member and reports what is wrong with it.
fn health(draft: &mut Draft<'_>, input: &GateInput<'_>, member: &Node, leases: &Listing<'_, Lease>) -> Health {
    let name = &member.metadata.name;
    let object = format!("Node {name}");
    if let Some((why, since, evidence)) = nodes::not_ready(member) {
        draft.add(Status::Block, Reason::EtcdQuorumAtRisk, format!("etcd member: {why}"), since, vec![evidence]);
        return Health::Sick;
    }
    if !nodes::lease_is_fresh(input, &leases.items, name) {
        let age = nodes::lease_age_seconds(input, &leases.items, name);
        let value = age.map_or_else(|| "no renewal".to_owned(), |age| format!("{age} s ago"));
        let message = format!("etcd member {name} does not renew its Lease: {value}");
        let limit = input.settings.limits.node_lease_max_age_seconds;
        draft.block(
            Reason::EtcdQuorumAtRisk,
            message,
            Evidence::new(object, "Lease renewTime", value, format!("<= {limit} s")),
        );
        return Health::Sick;
    }
    let Some(voter) = member.condition(CONDITION) else {
        draft.unknown(
            Reason::EtcdMemberNotVoter,
            format!(
                "etcd member {name} has no condition EtcdIsVoter (k3s and RKE2 write it since 1.26.11, 1.27.8, 1.28.4)"
            ),
            Evidence::new(object, FIELD, "missing", "True"),
        );
        return Health::Doubtful;
    };
    if voter.status != TriState::True {
        let sick = voter.status == TriState::False;
        let value = format!("{} ({})", voter.status.as_str(), voter.reason);
        let message = format!("etcd member {name} is no voter: EtcdIsVoter is {value}");
        let status = if sick { Status::Block } else { Status::Unknown };
        let evidence = vec![Evidence::new(object, FIELD, value, "True")];
        draft.add(status, Reason::EtcdMemberNotVoter, message, voter.last_transition, evidence);
        return if sick { Health::Sick } else { Health::Doubtful };
    }
    let limit = input.settings.control_plane.etcd_heartbeat_max_age_seconds;
    let age = voter.last_heartbeat.map(|heartbeat| input.now.duration_since(heartbeat).as_secs());
    let (status, value) = match age {
        Some(age) if age <= limit => return Health::Healthy,
        Some(age) => (Status::Block, format!("{age} s ago")),
        None => (Status::Unknown, "missing".to_owned()),
    };
    let message = format!("the last EtcdIsVoter heartbeat of {name} proves nothing: {value}, limit {limit} s");
    let evidence =
        Evidence::new(object, "status.conditions[EtcdIsVoter].lastHeartbeatTime", value, format!("<= {limit} s"));
    draft.add(status, Reason::EtcdHeartbeatStale, message, voter.last_heartbeat, vec![evidence]);
    if status == Status::Block { Health::Sick } else { Health::Doubtful }
}

/// The target's own state is told and does not hold its cure.
fn own(draft: &mut Draft<'_>, target: &Node) {
    let Some(voter) = target.condition(CONDITION).filter(|voter| voter.status != TriState::True) else { return };
    let (name, value) = (&target.metadata.name, format!("{} ({})", voter.status.as_str(), voter.reason));
    let message = format!("the node itself, {name}, is no etcd voter: EtcdIsVoter is {value}");
    draft.warn(Reason::EtcdMemberNotVoter, message, Evidence::new(format!("Node {name}"), FIELD, value, "True"));
}

fn even(draft: &mut Draft<'_>, members: &[&Node]) {
    let count = members.len();
    if count.is_multiple_of(2) {
        let message = format!("{count} etcd voters bear no more losses than {}", count - 1);
        draft.warn(
            Reason::EtcdVotersEven,
            message,
            Evidence::new("etcd", "voters", count.to_string(), "an odd number"),
        );
    }
}

/// After the return: the member votes, and that was said after it came back. The heartbeat takes up to six minutes.
fn verify(draft: &mut Draft<'_>, input: &GateInput<'_>, target: Option<&Node>, leases: &Listing<'_, Lease>) -> String {
    let Some(target) = target else { return format!("{} is no etcd member", input.target) };
    let name = &target.metadata.name;
    if health(draft, input, target, leases) != Health::Healthy {
        return String::new();
    }
    let field = "status.conditions[EtcdIsVoter].lastHeartbeatTime";
    let heartbeat = target.condition(CONDITION).and_then(|voter| voter.last_heartbeat);
    let returned = input.run.and_then(|run| run.returned_at);
    let (Some(heartbeat), Some(returned)) = (heartbeat, returned) else {
        draft.unknown(
            Reason::EtcdHeartbeatStale,
            format!("it is not known when {name} came back, so its EtcdIsVoter heartbeat proves nothing"),
            Evidence::new(format!("Node {name}"), field, "not comparable", "later than the return"),
        );
        return String::new();
    };
    if heartbeat > returned {
        return format!("etcd member {name} votes since its return");
    }
    draft.add(
        Status::Block,
        Reason::EtcdHeartbeatStale,
        format!("etcd has not confirmed {name} as a voter since it came back at {returned} (up to 6 min)"),
        Some(heartbeat),
        vec![Evidence::new(format!("Node {name}"), field, heartbeat.to_string(), format!("> {returned}"))],
    );
    String::new()
}
