//! Nodes that other runs are about to take away, or have.

use std::collections::BTreeSet;

use super::{Draft, GateInput, Read};
use crate::api::{Evidence, Moment, Reason, SourceId};

/// Names of the nodes with a record in flight; none, with the unknown in the draft, where that cannot be told.
///
/// A cluster without maint's kinds has no records. A dump may not answer either: there the owner annotations on the
/// nodes, written in the same request as the cordon, must do.
pub(super) fn nodes_in_flight<'a>(draft: &mut Draft<'a>, input: &'a GateInput<'a>) -> Option<BTreeSet<&'a str>> {
    match draft.read(SourceId::Maintenances, &input.facts.maintenances) {
        Read::Known(records) => {
            Some(records.iter().filter(|record| record.in_flight()).map(|record| record.node_name.as_str()).collect())
        }
        Read::Absent => Some(BTreeSet::new()),
        Read::NotAsked if from_a_dump(input) => Some(BTreeSet::new()),
        Read::NotAsked => {
            let evidence = Evidence::new(SourceId::Maintenances.as_str(), "read", "not asked", "a list");
            draft.unknown(Reason::NotAsked, "nothing asked for maintenances", evidence);
            None
        }
        Read::Unreadable => None,
    }
}

/// Whether something that only a live cluster answers may be missing: a look before any run. A run always asks.
pub(super) const fn from_a_dump(input: &GateInput<'_>) -> bool {
    matches!(input.moment, Moment::Start) && input.run.is_none()
}
