//! Lists of built-in kinds that a gate cannot do without: not asked, absent and incomplete are never taken for empty.

use super::{Draft, Read};
use crate::api::{Evidence, Reason, SourceId};
use crate::facts::{Listed, Metadata};

/// What could be understood of a list, and whether that is all of it.
#[derive(Debug, Clone)]
pub(super) struct Listing<'a, T> {
    /// The objects that could be decoded.
    pub items: Vec<&'a T>,
    /// Nothing was malformed: what is not among the items does not exist.
    pub complete: bool,
}

/// Reads a list that every cluster can answer. None, with the unknown in the draft, where it was not answered: a
/// dump without a file for the kind, and a kind that the API denies although it is built in, prove nothing.
pub(super) fn built_in<'a, T>(
    draft: &mut Draft<'a>,
    source: SourceId,
    listed: &'a Listed<T>,
) -> Option<Listing<'a, T>> {
    match draft.read(source, listed) {
        Read::Known(items) => {
            let complete = listed.known().is_some_and(|all| all.len() == items.len());
            Some(Listing { items, complete })
        }
        Read::Unreadable => None,
        Read::Absent => {
            draft.unknown(
                Reason::ObservationFailed,
                format!("the API says that {source} do not exist, although the kind is built in"),
                Evidence::new(source.as_str(), "read", "absent", "a list"),
            );
            None
        }
        Read::NotAsked => not_asked(draft, source),
    }
}

/// The unknown of what nobody asked for: a dump without a file for the kind, or a reader that was not told.
pub(super) fn not_asked<T>(draft: &mut Draft<'_>, source: SourceId) -> Option<T> {
    let evidence = Evidence::new(source.as_str(), "read", "not asked", "an answer");
    draft.unknown(Reason::NotAsked, format!("nothing asked for {source}"), evidence);
    None
}

impl<T> Listing<'_, T> {
    /// Keeps the objects of one namespace. One that does not tell its namespace may belong to it: it is dropped, and
    /// becomes an unknown.
    pub(super) fn within(
        mut self,
        draft: &mut Draft<'_>,
        kind: &str,
        namespace: &str,
        metadata: fn(&T) -> &Metadata,
    ) -> Self {
        for item in &self.items {
            let of = metadata(item);
            if of.namespace.is_empty() {
                self.complete = false;
                draft.unknown(
                    Reason::ObservationMalformed,
                    format!("{kind} {}: metadata.namespace is missing", of.name),
                    Evidence::new(format!("{kind} {}", of.name), "metadata.namespace", "missing", "a namespace"),
                );
            }
        }
        self.items.retain(|item| metadata(item).namespace == namespace);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Case, known, now};
    use super::*;
    use crate::api::{GateId, Status};
    use crate::facts::{Observation, Service};
    use serde_json::json;

    /// Name, what the source said, how many items and whether that is all, and the finding.
    type Row = (&'static str, Listed<Service>, Option<(usize, bool)>, Status, Reason);

    #[test]
    fn a_list_that_was_not_answered_is_never_empty() {
        let good = json!({"metadata": {"name": "a", "namespace": "x"}, "spec": {}});
        let nowhere = json!({"metadata": {"name": "b"}, "spec": {}});
        let broken = json!({"metadata": {"name": "c", "namespace": "x"}});
        let rows: [Row; 6] = [
            ("known", known::<Service>(std::slice::from_ref(&good)), Some((1, true)), Status::Pass, Reason::Passed),
            ("empty", known::<Service>(&[]), Some((0, true)), Status::Pass, Reason::Passed),
            ("absent", Observation::Absent { at: now() }, None, Status::Unknown, Reason::ObservationFailed),
            ("not asked", Observation::NotAsked, None, Status::Unknown, Reason::NotAsked),
            (
                "without a namespace",
                known::<Service>(&[good.clone(), nowhere]),
                Some((1, false)),
                Status::Unknown,
                Reason::ObservationMalformed,
            ),
            (
                "malformed",
                known::<Service>(&[good, broken]),
                Some((1, false)),
                Status::Unknown,
                Reason::ObservationMalformed,
            ),
        ];
        let case = Case::default();
        let input = case.input();
        for (name, listed, expected, status, reason) in rows {
            let mut draft = Draft::new(GateId::CorednsReplicas, &input);
            let listing = built_in(&mut draft, SourceId::Services, &listed)
                .map(|listing| listing.within(&mut draft, "Service", "x", |service| &service.metadata));
            assert_eq!(listing.map(|listing| (listing.items.len(), listing.complete)), expected, "{name}");
            let finding = draft.finish("fine");
            assert_eq!((finding.status, finding.reason), (status, reason), "{name}: {}", finding.message);
        }
    }
}
