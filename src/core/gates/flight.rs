//! Nodes that other runs are about to take away, or have.

use std::collections::BTreeSet;

use super::listing::not_asked;
use super::reading::may_be_a_dump;
use super::{Draft, GateInput, Read};
use crate::api::SourceId;
use crate::api::names::ANNOTATION_OWNER;
use crate::facts::Node;

/// Names of the nodes that a run has or is about to take away: with a record in flight, or with our owner annotation,
/// which is written in the same request as the cordon. None, with the unknown in the draft, where records cannot be
/// read. A cluster without maint's kinds has none; a dump may not answer, and there the annotations must do.
pub(super) fn nodes_in_flight<'a>(
    draft: &mut Draft<'a>,
    input: &'a GateInput<'a>,
    nodes: &[&'a Node],
) -> Option<BTreeSet<&'a str>> {
    let records = match draft.read(SourceId::Maintenances, &input.facts.maintenances) {
        Read::Known(records) => records,
        Read::Absent => vec![],
        Read::NotAsked if may_be_a_dump(input) => vec![],
        Read::NotAsked => return not_asked(draft, SourceId::Maintenances),
        Read::Unreadable => return None,
    };
    let recorded = records.into_iter().filter(|record| record.in_flight()).map(|record| record.node_name.as_str());
    let owned = nodes.iter().filter(|node| node.metadata.annotations.contains_key(ANNOTATION_OWNER));
    Some(recorded.chain(owned.map(|node| node.metadata.name.as_str())).collect())
}
