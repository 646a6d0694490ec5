//! How maint holds kured's lock: entries of its own, so that no kured can take it.
//!
//! A hold is used to close a grant that kured may still act on, and while a run makes its node go down without kured.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::Place;
use super::lock::{Entry, Format, Lock, LockError};
use crate::planted::{self, Bug};

/// What the names of our entries begin with. No node is called so: `:` is not allowed in their names.
const PREFIX: &str = "maint:";
/// Field of an entry that says which record it belongs to. kured ignores what it does not know.
const OWNER: &str = "maint";
/// A hundred years in nanoseconds. A TTL of 0 would be read as the flag's value by a change that is under way in kured
/// (kured#1410), and then expire.
const TTL_NS: i64 = 100 * 365 * 86_400 * 1_000_000_000;

/// Whose an entry is, where it is one of maint's: the record's uid.
#[must_use]
pub fn owner_of(entry: &Entry) -> Option<&str> {
    entry.other.get(OWNER)?.get("maintenance")?.as_str()
}

/// The node of the run that an entry of maint's is for, by its name. kured drops fields that it does not know when it
/// writes a list anew, which it does at each of its own Acquires and Releases; the name stays.
#[must_use]
pub fn node_of(entry: &Entry) -> Option<&str> {
    entry.node_id.strip_prefix(PREFIX)?.split(':').next().filter(|node| !node.is_empty())
}

/// Whether an entry is one of maint's.
#[must_use]
pub fn is_ours(entry: &Entry) -> bool {
    owner_of(entry).is_some() || node_of(entry).is_some()
}

/// Whether an entry is that of a run: it names the record, or it has lost that and is called as those of the node are. A
/// node has one run in flight.
#[must_use]
pub fn is_of(entry: &Entry, node: &str, maintenance: &str) -> bool {
    owner_of(entry).map_or_else(|| node_of(entry) == Some(node), |owner| owner == maintenance)
}

/// Why the lock cannot be taken now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotNow {
    /// Its value cannot be understood; it is never written over.
    #[error("kured's lock {0}")]
    Unreadable(#[from] LockError),
    /// Somebody else holds the only slot.
    #[error("{0} holds kured's lock")]
    HeldBy(String),
    /// Its format is not the one that kured's `--concurrency` reads: whoever writes either would freeze or free it.
    #[error("kured's lock has the format of --concurrency {}, and kured runs with {concurrency}", match format { Format::Single => "1", Format::Multi => "2 and more" })]
    Format {
        /// What it has.
        format: Format,
        /// kured's flag.
        concurrency: usize,
    },
}

/// What the lock says, in kured's eyes: free where there is no annotation.
///
/// # Errors
/// If it cannot be understood.
pub fn read(place: &Place) -> Result<Option<Lock>, LockError> {
    place.text.as_deref().map(Lock::parse).transpose()
}

/// The value with which no kured can take the lock; none if it is so already.
///
/// # Errors
/// If it cannot be taken now.
pub fn take(place: &Place, node: &str, maintenance: &str, now: Timestamp) -> Result<Option<String>, NotNow> {
    let lock = read(place)?;
    let ours = |lock: &Lock| lock.entries.iter().filter(|entry| is_of(entry, node, maintenance)).count();
    if place.concurrency <= 1 {
        return match lock {
            Some(lock) if lock.format == Format::Multi => {
                Err(NotNow::Format { format: lock.format, concurrency: place.concurrency })
            }
            Some(lock) if ours(&lock) > 0 => Ok(None),
            Some(lock) if lock.entries.is_empty() || planted::is(Bug::OverwritesLock) => {
                Ok(Some(entry(node, maintenance, now, None).to_string()))
            }
            Some(lock) => Err(NotNow::HeldBy(lock.entries.first().map(|one| one.node_id.clone()).unwrap_or_default())),
            None => Ok(Some(entry(node, maintenance, now, None).to_string())),
        };
    }
    let lock = lock.unwrap_or(Lock {
        format: Format::Multi,
        max_owners: i64::try_from(place.concurrency).ok(),
        entries: Vec::new(),
        other: Map::new(),
    });
    if lock.format == Format::Single {
        return Err(NotNow::Format { format: lock.format, concurrency: place.concurrency });
    }
    // kured counts entries, expired ones too until the list is full: with as many of ours as there are slots none is
    // ever free, whoever of the others leaves.
    let missing = place.concurrency.saturating_sub(ours(&lock));
    if missing == 0 {
        return Ok(None);
    }
    let mut value: Value = serde_json::from_str(&lock.to_text()).map_err(|error| LockError::Json(error.to_string()))?;
    if let Some(list) = value.get_mut("locks").and_then(Value::as_array_mut) {
        let first = list.len();
        list.extend((0..missing).map(|index| entry(node, maintenance, now, Some(first + index))));
    }
    Ok(Some(value.to_string()))
}

/// Whether no kured can take the lock, thanks to our entries.
#[must_use]
pub fn is_taken(place: &Place, node: &str, maintenance: &str) -> bool {
    let Ok(Some(lock)) = read(place) else { return false };
    let ours = lock.entries.iter().filter(|entry| is_of(entry, node, maintenance)).count();
    match lock.format {
        Format::Single => ours > 0 && place.concurrency <= 1,
        Format::Multi => ours >= place.concurrency,
    }
}

/// The lock without our entries, as (changed, value): the value is none where the annotation is to go, as kured itself
/// does in the single format.
///
/// # Errors
/// If it cannot be understood.
pub fn release(place: &Place, node: &str, maintenance: &str) -> Result<(bool, Option<String>), LockError> {
    let Some(mut lock) = read(place)? else { return Ok((false, None)) };
    let before = lock.entries.len();
    lock.entries.retain(|entry| !is_of(entry, node, maintenance));
    let text = lock.to_text();
    Ok((lock.entries.len() != before, (!text.is_empty()).then_some(text)))
}

/// The value in which every entry of the node says that it was cordoned before; none where they all do.
///
/// # Errors
/// If it cannot be understood.
pub fn keep_cordon(place: &Place, node: &str) -> Result<Option<String>, LockError> {
    let Some(mut lock) = read(place)? else { return Ok(None) };
    let mut changed = false;
    for entry in lock.entries.iter_mut().filter(|entry| entry.node_id == node) {
        changed |= entry.unschedulable != Some(true);
        entry.unschedulable = Some(true);
    }
    Ok(changed.then(|| lock.to_text()))
}

/// One of our entries.
fn entry(node: &str, maintenance: &str, now: Timestamp, slot: Option<usize>) -> Value {
    let name = slot.map_or_else(|| format!("{PREFIX}{node}"), |slot| format!("{PREFIX}{node}:{slot}"));
    serde_json::json!({
        "nodeID": name,
        "metadata": {"unschedulable": true},
        "created": now.to_string(),
        "TTL": TTL_NS,
        OWNER: {"maintenance": maintenance},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kured::place::testing::place;

    const NODE: &str =
        r#"{"nodeID":"worker1","metadata":{"unschedulable":false},"created":"2026-11-30T00:00:00Z","TTL":0}"#;

    fn now() -> Timestamp {
        "2026-11-30T01:00:00Z".parse().expect("a time")
    }

    #[test]
    fn a_free_lock_is_taken_in_the_format_that_kured_reads_and_given_back() {
        for (concurrency, free, released) in [
            (1, None, None),
            (2, None, Some(r#"{"locks":[],"maxOwners":2}"#)),
            (2, Some(r#"{"maxOwners":2,"locks":[]}"#), Some(r#"{"locks":[],"maxOwners":2}"#)),
        ] {
            let taken = take(&place(free, concurrency), "worker2", "u-1", now()).expect("free").expect("a change");
            let held = place(Some(&taken), concurrency);
            let lock = Lock::parse(&taken).expect("a lock");
            assert_eq!(lock.entries.len(), concurrency);
            assert_eq!(lock.format == Format::Multi, concurrency > 1);
            assert!(lock.entries.iter().all(|entry| owner_of(entry) == Some("u-1") && !entry.expired(now())));
            assert!(is_taken(&held, "worker2", "u-1") && !is_taken(&held, "worker2", "u-2"));
            assert_eq!(take(&held, "worker2", "u-1", now()), Ok(None));
            assert_eq!(release(&held, "worker2", "u-1"), Ok((true, released.map(str::to_owned))));
            assert_eq!(release(&held, "worker2", "u-2").map(|(changed, _)| changed), Ok(false));
        }
    }

    #[test]
    fn what_is_not_ours_is_left_alone() {
        let multi = format!(r#"{{"maxOwners":2,"locks":[{NODE}]}}"#);
        let rows = [
            ("held", place(Some(NODE), 1), "worker1 holds kured's lock"),
            ("garbage", place(Some("worker1"), 1), "kured's lock is no JSON: expected value at line 1 column 1"),
            (
                "multi under 1",
                place(Some(&multi), 1),
                "kured's lock has the format of --concurrency 2 and more, and kured runs with 1",
            ),
            (
                "single under 2",
                place(Some(NODE), 2),
                "kured's lock has the format of --concurrency 1, and kured runs with 2",
            ),
        ];
        for (row, place, wanted) in rows {
            assert_eq!(take(&place, "worker2", "u-1", now()).expect_err(row).to_string(), wanted, "{row}");
            assert!(!is_taken(&place, "worker2", "u-1"), "{row}");
        }
        // A node that holds one of two slots keeps it; no slot is left, and none is when it leaves.
        let taken = take(&place(Some(&multi), 2), "worker2", "u-1", now()).expect("a slot").expect("a change");
        let lock = Lock::parse(&taken).expect("a lock");
        assert_eq!(lock.entries.iter().filter(|entry| owner_of(entry).is_some()).count(), 2);
        assert_eq!(lock.entries[0].node_id, "worker1");
    }

    #[test]
    fn what_a_kured_wrote_anew_is_ours_by_its_name() {
        let stripped = r#"{"maxOwners":2,"locks":[
            {"nodeID":"maint:worker2:0","metadata":{"unschedulable":true},"created":"2026-11-30T00:00:00Z","TTL":0},
            {"nodeID":"maint:worker2:1","metadata":{"unschedulable":true},"created":"2026-11-30T00:00:00Z","TTL":0}]}"#;
        let held = place(Some(stripped), 2);
        assert!(is_taken(&held, "worker2", "u-1") && !is_taken(&held, "worker3", "u-1"));
        assert_eq!(take(&held, "worker2", "u-1", now()), Ok(None));
        assert_eq!(release(&held, "worker2", "u-1"), Ok((true, Some(r#"{"locks":[],"maxOwners":2}"#.to_owned()))));
        assert_eq!(release(&held, "worker3", "u-1").map(|(changed, _)| changed), Ok(false));
        let entries = Lock::parse(stripped).expect("a lock").entries;
        assert!(entries.iter().all(|entry| is_ours(entry) && node_of(entry) == Some("worker2")));
        for name in ["worker2", "manual", "maint:", "maintenance"] {
            let other = Entry { node_id: name.to_owned(), ..entries[0].clone() };
            assert!(!is_ours(&other), "{name}");
        }
    }

    #[test]
    fn the_cordon_is_kept_in_every_entry_of_the_node() {
        let multi = format!(r#"{{"locks":[{NODE},{NODE}],"maxOwners":2}}"#);
        let text = keep_cordon(&place(Some(&multi), 2), "worker1").expect("a lock").expect("a change");
        assert_eq!(text.matches(r#""unschedulable":true"#).count(), 2);
        assert_eq!(keep_cordon(&place(Some(&text), 2), "worker1"), Ok(None));
        assert_eq!(keep_cordon(&place(Some(NODE), 1), "worker3"), Ok(None));
        assert_eq!(keep_cordon(&place(None, 1), "worker1"), Ok(None));
    }
}
