//! A person takes somebody out of kured's lock.

use std::collections::BTreeSet;

use super::Place;
use super::hold::{is_of, is_ours};
use super::lock::{Format, Lock, MANUAL};
use crate::facts::Maintenance;

/// What a person asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish<'a> {
    /// Take this holder out.
    Holder(&'a str),
    /// Take the whole value away, whatever it is; only of one that kured or its concurrency cannot read.
    Garbage,
}

/// A change that may be written: the value is replaced only if it is still `before`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The value as read.
    pub before: String,
    /// The value to be; none takes the annotation away.
    pub after: Option<String>,
    /// Entries that go.
    pub removed: usize,
    /// A person must say so: it is not just a ghost.
    pub needs_yes: bool,
}

/// Why nothing is written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is nobody in it.
    #[error("the lock is free")]
    Free,
    /// Not this one.
    #[error("{0} is not in the lock; in it: {1}")]
    NotIn(String, String),
    /// It cannot be read, and nobody said so.
    #[error("the lock {0}; if that value is to go: --garbage --yes")]
    Garbage(String),
    /// It can be read and fits: there is no garbage.
    #[error("the lock is no garbage: name the holder with --holder, one of {0}")]
    NoGarbage(String),
    /// A run at work needs it.
    #[error("the run {0} needs it: `maint cancel {1}` ends it, and it gives the lock back by itself")]
    InFlight(String, String),
}

/// What is to be written. Nodes and records must be all that there are.
///
/// # Errors
/// Why nothing is.
pub fn release(
    place: &Place,
    wish: Wish<'_>,
    nodes: &BTreeSet<&str>,
    records: &[&Maintenance],
) -> Result<Change, Refusal> {
    let Some(before) = place.text.clone() else { return Err(Refusal::Free) };
    let lock = match (Lock::parse(&before), wish) {
        (Ok(lock), _) => lock,
        (Err(_), Wish::Garbage) => return Ok(Change { before, after: None, removed: 0, needs_yes: true }),
        (Err(error), Wish::Holder(_)) => return Err(Refusal::Garbage(error.to_string())),
    };
    let holders = lock.entries.iter().map(|entry| entry.node_id.clone()).collect::<Vec<_>>().join(", ");
    let goes = |name: &str| match wish {
        Wish::Holder(holder) => name == holder,
        Wish::Garbage => true,
    };
    for entry in lock.entries.iter().filter(|entry| goes(&entry.node_id)) {
        let needs = |record: &&&Maintenance| {
            let its_own = is_of(entry, &record.node_name, &record.metadata.uid);
            // kured's own entry for a node that a run of ours has in hand: taking it away would let another kured in.
            record.in_flight() && (its_own || record.node_name == entry.node_id)
        };
        if let Some(record) = records.iter().find(needs) {
            let name = record.metadata.name.clone();
            return Err(Refusal::InFlight(format!("{name} ({})", record.phase), name));
        }
    }
    match wish {
        Wish::Garbage if place.format_fits() => return Err(Refusal::NoGarbage(holders)),
        Wish::Garbage => return Ok(Change { before, after: None, removed: lock.entries.len(), needs_yes: true }),
        Wish::Holder(_) if lock.entries.is_empty() => return Err(Refusal::Free),
        Wish::Holder(holder) if !lock.entries.iter().any(|entry| entry.node_id == holder) => {
            return Err(Refusal::NotIn(holder.to_owned(), holders));
        }
        Wish::Holder(_) => {}
    }
    let ghost = |entry: &super::lock::Entry| {
        entry.node_id != MANUAL && !is_ours(entry) && !nodes.contains(entry.node_id.as_str())
    };
    let needs_yes = !lock.entries.iter().filter(|entry| goes(&entry.node_id)).all(ghost);
    let mut rest = lock.clone();
    rest.entries.retain(|entry| !goes(&entry.node_id));
    let removed = lock.entries.len() - rest.entries.len();
    // A single lock is released by deleting it, as kured does.
    let after = (rest.format == Format::Multi).then(|| rest.to_text());
    Ok(Change { before, after, removed, needs_yes })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::facts::{Item, Source as _};
    use crate::kured::place::testing::place;

    fn record(phase: &str) -> Maintenance {
        let document = json!({"metadata": {"name": "worker2-1", "uid": "u-2"}, "spec": {"nodeName": "worker2"}, "status": {"phase": phase}});
        let Item::Good(record) = Maintenance::item(&document) else { panic!("a record") };
        record
    }

    const GHOST: &str = r#"{"nodeID":"old","TTL":0}"#;
    const OURS: &str = r#"{"nodeID":"maint:worker2","maint":{"maintenance":"u-2"}}"#;

    #[test]
    fn who_may_be_taken_out_and_what_is_left() {
        let list = format!(r#"{{"locks":[{GHOST},{{"nodeID":"worker1"}},{GHOST}],"maxOwners":2}}"#);
        let left = r#"{"locks":[{"nodeID":"worker1"}],"maxOwners":2}"#;
        let rows: [(&str, Option<&str>, usize, Wish<'_>, Option<&str>, usize, bool); 8] = [
            ("a ghost", Some(GHOST), 1, Wish::Holder("old"), None, 1, false),
            ("a ghost, twice in a list", Some(&list), 2, Wish::Holder("old"), Some(left), 2, false),
            ("a node", Some(r#"{"nodeID":"worker1"}"#), 1, Wish::Holder("worker1"), None, 1, true),
            ("by hand", Some(r#"{"nodeID":"manual"}"#), 1, Wish::Holder("manual"), None, 1, true),
            ("ours, its record gone", Some(OURS), 1, Wish::Holder("maint:worker2"), None, 1, true),
            ("garbage", Some("held by anna"), 1, Wish::Garbage, None, 0, true),
            ("a list under 1", Some(r#"{"maxOwners":2,"locks":[]}"#), 1, Wish::Garbage, None, 0, true),
            ("single under 2", Some(GHOST), 2, Wish::Garbage, None, 1, true),
        ];
        let nodes = BTreeSet::from(["worker1", "worker2"]);
        for (row, text, concurrency, wish, after, removed, needs_yes) in rows {
            let change = release(&place(text, concurrency), wish, &nodes, &[]).expect(row);
            assert_eq!(Some(change.before.as_str()), text, "{row}: the exact old value is tested");
            assert_eq!(
                (change.after.as_deref(), change.removed, change.needs_yes),
                (after, removed, needs_yes),
                "{row}"
            );
        }
    }

    #[test]
    fn what_is_refused() {
        let nodes = BTreeSet::from(["worker1", "worker2"]);
        let (draining, done) = (record("Draining"), record("Succeeded"));
        let rows: [(&str, Option<&str>, Wish<'_>, &Maintenance, &str); 8] = [
            ("free", None, Wish::Holder("a"), &done, "the lock is free"),
            ("an empty list", Some(r#"{"locks":[]}"#), Wish::Holder("a"), &done, "the lock is free"),
            ("not in it", Some(GHOST), Wish::Holder("a"), &done, "a is not in the lock; in it: old"),
            ("garbage by a holder's name", Some("x"), Wish::Holder("x"), &done, "the lock is no JSON"),
            (
                "no garbage",
                Some(GHOST),
                Wish::Garbage,
                &done,
                "the lock is no garbage: name the holder with --holder, one of old",
            ),
            (
                "a hold in use",
                Some(OURS),
                Wish::Holder("maint:worker2"),
                &draining,
                "the run worker2-1 (Draining) needs it",
            ),
            (
                "kured's entry of a node in hand",
                Some(r#"{"nodeID":"worker2"}"#),
                Wish::Holder("worker2"),
                &draining,
                "the run worker2-1",
            ),
            (
                "not even as garbage",
                Some(r#"{"locks":[{"nodeID":"worker2"}]}"#),
                Wish::Garbage,
                &draining,
                "the run worker2-1",
            ),
        ];
        for (row, text, wish, record, wanted) in rows {
            let error = release(&place(text, 1), wish, &nodes, &[record]).expect_err(row).to_string();
            assert!(error.starts_with(wanted), "{row}: {error}");
        }
        assert!(release(&place(Some(OURS), 1), Wish::Holder("maint:worker2"), &nodes, &[&done]).is_ok());
    }
}
