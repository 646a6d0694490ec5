//! Whose cordon is it?

use crate::api::{Document, Owner, Proven, names};
use crate::facts::Node;

/// The owner annotation of a node, if there is one that can be read.
#[must_use]
pub fn owner_of(node: &Node) -> Option<Owner> {
    node.metadata.annotations.get(names::ANNOTATION_OWNER).and_then(|text| Owner::parse(text).ok())
}

/// The cordon is ours: the annotation names the record *and* our field manager owns `spec.unschedulable`. Somebody
/// who uncordons and cordons again takes the field over; the annotation alone would not show it.
pub(super) fn is_our_cordon(node: &Node, maintenance_uid: &str) -> bool {
    node.unschedulable
        && owner_of(node).is_some_and(|owner| owner.maintenance == maintenance_uid)
        && node.unschedulable_manager.as_deref() == Some(names::FIELD_MANAGER)
}

/// The annotation names the record, whoever set the cordon.
pub(super) fn is_marked_ours(node: &Node, maintenance_uid: &str) -> bool {
    owner_of(node).is_some_and(|owner| owner.maintenance == maintenance_uid)
}

/// The present boot was found good.
pub(super) fn is_proven(node: &Node) -> bool {
    node.metadata
        .annotations
        .get(names::ANNOTATION_PROVEN)
        .and_then(|text| Proven::parse(text).ok())
        .is_some_and(|proven| proven.boot_id == node.boot_id)
}
