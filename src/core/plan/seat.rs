//! Our own pod on the target: a leader never drains the node that it runs on. It hands over, or the run does not start.
//!
//! Before commit a leader that took an expired Lease and finds itself on the target only puts back. After commit the
//! node goes down under it anyway: whoever leads goes on to prove it. With `[run] allow_self` the only replica may
//! start; its pod is evicted last, and the run goes on where it runs again.

use jiff::Timestamp;

use super::phase_of;
use super::run::Run;
use crate::api::Phase;
use crate::api::record::Maintenance;
use crate::facts::{Item, Maintenance as Record, Pod, Source};
use crate::planted::{self, Bug};

/// Where our own pod runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnSeat {
    /// The node.
    pub node: String,
    /// Until then this leader does not hand over: it got the Lease back because nobody took it.
    pub hand_over_from: Timestamp,
}

/// How our own pod stands to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seat {
    /// On another node, or nobody knows where.
    Elsewhere,
    /// On the target, and another replica is Ready on another node.
    HandsOver,
    /// On the target, and whoever else is Ready leaves the Lease to others, for a run on its own node.
    Waits,
    /// On the target, nobody else is there, and that is allowed.
    Alone,
    /// On the target, and nothing can be done about it.
    Stuck,
}

impl Run<'_> {
    /// How our own pod stands to this run. Which pods there are is known while it is Pending only.
    pub(super) fn seat(&self) -> Seat {
        let Some(seat) =
            self.input.seat.filter(|seat| seat.node == self.node_name() && !planted::is(Bug::DrainsItsOwnNode))
        else {
            return Seat::Elsewhere;
        };
        let Some(pods) = self.current(&self.input.facts.own_pods, Pod::OWN.max_age_seconds) else {
            // Whether somebody could take over is not known.
            return Seat::Stuck;
        };
        let namespace = &self.input.settings.namespace;
        let elsewhere = |pod: &Pod| pod.node_name.as_ref().is_some_and(|node| *node != seat.node);
        let mut others = pods.iter().filter_map(|item| match item {
            Item::Good(pod) if pod.is_own(namespace) && pod.is_ready() && elsewhere(pod) => pod.node_name.as_deref(),
            Item::Good(_) | Item::Malformed(_) => None,
        });
        match others.next() {
            Some(_) if self.input.now < seat.hand_over_from => Seat::Stuck,
            Some(first) if self.would_lead(first) || others.any(|node| self.would_lead(node)) => Seat::HandsOver,
            Some(_) => Seat::Waits,
            None if self.settings().allow_self => Seat::Alone,
            None => Seat::Stuck,
        }
    }

    /// Whether a replica on that node takes a Lease that is given up, as far as is known.
    fn would_lead(&self, node: &str) -> bool {
        let records = self.current(&self.input.facts.maintenances, Record::SPEC.max_age_seconds);
        records.is_some_and(|records| {
            records.iter().all(|item| match item {
                Item::Good(record) => {
                    // A phase that this version does not know is taken for one that is at work.
                    let phase = record.phase.parse().unwrap_or(Phase::Held);
                    record.node_name != node || !keeps_away(phase, record.blocked)
                }
                Item::Malformed(_) => false,
            })
        })
    }

    /// Before commit: we lead a run on the node that we run on, and nobody allowed that.
    pub(super) fn must_give_up_its_own_node(&self) -> bool {
        !self.settings().allow_self
            && !planted::is(Bug::DrainsItsOwnNode)
            && self.input.seat.is_some_and(|seat| seat.node == self.node_name())
    }
}

/// Whether another run is in flight, or may be.
pub(super) fn others_in_flight(run: &Run<'_>) -> bool {
    let records = run.current(&run.input.facts.maintenances, Record::SPEC.max_age_seconds);
    records.is_none_or(|records| {
        records.iter().any(|item| match item {
            Item::Good(record) => record.in_flight() && record.metadata.uid != run.uid(),
            Item::Malformed(_) => true,
        })
    })
}

/// Whether a replica on this node leaves a released Lease to others: a run on its own node could start, or is at work.
/// Not for one that gates stop: two such would leave the Lease to each other, and none of their nodes would be done.
#[must_use]
pub fn abstains(records: &[Maintenance], node: &str) -> bool {
    records.iter().any(|record| {
        let blocked = record.status.as_ref().is_some_and(|status| status.blocked_since.is_some());
        record.spec.node_name == node && keeps_away(phase_of(record), blocked)
    })
}

const fn keeps_away(phase: Phase, blocked: bool) -> bool {
    match phase {
        Phase::Pending => !blocked,
        _ => !phase.is_terminal(),
    }
}
