//! Reads that several gates share, and that leave no way to forget what was not read.

use std::collections::BTreeMap;

use super::listing::{built_in, not_asked};
use super::{Draft, GateInput, Read};
use crate::api::{Document, Evidence, GateId, Moment, Reason, SourceId};
use crate::facts::{Item, Listed, Maintenance, Node, Observation};

/// The objects of a list that every cluster can answer, see [`built_in`].
pub(crate) fn required<'a, T>(draft: &mut Draft<'a>, source: SourceId, listed: &'a Listed<T>) -> Option<Vec<&'a T>> {
    built_in(draft, source, listed).map(|listing| listing.items)
}

/// The same for what is no list: the answers of the API servers, the matrix.
pub(super) fn required_value<'a, T>(
    draft: &mut Draft<'a>,
    source: SourceId,
    observation: &'a Observation<T>,
) -> Option<&'a T> {
    match draft.observe(source, observation) {
        Read::Known(value) => Some(value),
        Read::Unreadable => None,
        Read::Absent | Read::NotAsked => not_asked(draft, source),
    }
}

/// A list whose kind comes with a CRD: where the CRD is not installed there are none, and a dump may not tell.
pub(crate) fn installed<'a, T>(
    input: &GateInput<'_>,
    draft: &mut Draft<'a>,
    source: SourceId,
    listed: &'a Listed<T>,
) -> Option<Vec<&'a T>> {
    match draft.read(source, listed) {
        Read::Known(items) => Some(items),
        Read::Absent => Some(Vec::new()),
        Read::Unreadable => None,
        Read::NotAsked if may_be_a_dump(input) => Some(Vec::new()),
        Read::NotAsked => not_asked(draft, source),
    }
}

/// Whether something may be not asked at all: a look before any run, perhaps at a dump. A run always asks.
pub(super) const fn may_be_a_dump(input: &GateInput<'_>) -> bool {
    matches!(input.moment, Moment::Start) && input.run.is_none()
}

/// A document in an annotation or a ConfigMap. One that cannot be read becomes an unknown of the finding.
pub(crate) fn document<T: Document>(draft: &mut Draft<'_>, object: &str, field: &str, text: &str) -> Option<T> {
    match T::parse(text) {
        Ok(document) => Some(document),
        Err(error) => {
            let shown: String = text.chars().take(80).collect();
            draft.unknown(
                Reason::ObservationMalformed,
                format!("{object}: {field} {error}"),
                Evidence::new(object, field, shown, format!("a readable {} document", T::KIND)),
            );
            None
        }
    }
}

/// Whether the API has a Node of this name, readable or not.
pub(super) fn node_exists(input: &GateInput<'_>, name: &str) -> bool {
    input.facts.nodes.known().into_iter().flatten().any(|item| match item {
        Item::Good(node) => node.metadata.name == name,
        Item::Malformed(malformed) => malformed.object.strip_prefix("Node ") == Some(name),
    })
}

/// The nodes whose run is between its cordon and its end, by name.
pub(super) fn in_flight<'a>(maintenances: &[&'a Maintenance]) -> BTreeMap<&'a str, &'a Maintenance> {
    maintenances.iter().filter(|run| run.in_flight()).map(|run| (run.node_name.as_str(), *run)).collect()
}

/// The key of a cluster autoscaler's or an operator's taint that says that the node is about to be deleted.
pub(super) fn deletion_taint(node: &Node) -> Option<&str> {
    node.taints.iter().map(|taint| taint.key.as_str()).find(|key| key.starts_with("ToBeDeleted"))
}

/// Whether this very field of this object was failing in the same way when the run began, or was waived then: verify
/// and settle only ask that it is no worse. "In the same way" is the first word of the value: what was unknown then and
/// is broken now is worse, another age or error text is not.
pub(super) fn was_failing(input: &GateInput<'_>, gate: GateId, evidence: &Evidence) -> bool {
    let same = |old: &Evidence| {
        old.object == evidence.object
            && old.field == evidence.field
            && first_word(&old.value) == first_word(&evidence.value)
    };
    let Some(run) = input.run else { return false };
    run.baseline.iter().filter(|finding| finding.gate == gate).flat_map(|finding| &finding.evidence).any(same)
}

fn first_word(value: &str) -> Option<&str> {
    value.split([' ', ':']).find(|word| word.starts_with(|first: char| first.is_alphabetic()))
}
