//! What a lock says to a person: who is in it, and what kured does with it as it is.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::Place;
use super::hold::{is_ours, node_of, owner_of};
use super::lock::{Entry, Format, Lock, LockError, MANUAL};
use crate::facts::Maintenance;

/// A lock as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its format; none where there is no annotation, or it cannot be read.
    pub format: Option<Format>,
    /// Why it cannot be read.
    pub garbage: Option<LockError>,
    /// Who is in it, in order.
    pub holders: Vec<Holder>,
    /// What kured does with it, a sentence without a full stop.
    pub consequence: String,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// `nodeID`
    pub name: String,
    /// Whether there is such a node.
    pub node_exists: bool,
    /// Whether kured takes it for expired.
    pub expired: bool,
    /// When it was taken, where that is told.
    pub created: Option<Timestamp>,
    /// `TTL` in seconds; 0 for never.
    pub ttl_seconds: i64,
    /// What it says of the node's cordon before kured came.
    pub unschedulable: Option<bool>,
    /// It is one of maint's own.
    pub ours: bool,
    /// The record that it belongs to, where it is one of ours and the record is there.
    pub record: Option<String>,
}

impl Holder {
    /// Neither a node's, nor ours, nor a person's: of a node that is gone.
    #[must_use]
    pub fn is_ghost(&self) -> bool {
        !self.node_exists && !self.ours && self.name != MANUAL
    }

    fn of(entry: &Entry, nodes: &BTreeSet<&str>, records: &[&Maintenance], now: Timestamp) -> Self {
        let its = |record: &&&Maintenance| match owner_of(entry) {
            Some(owner) => record.metadata.uid == owner,
            None => record.in_flight() && node_of(entry) == Some(record.node_name.as_str()),
        };
        let record = records.iter().find(its);
        Self {
            name: entry.node_id.clone(),
            node_exists: nodes.contains(entry.node_id.as_str()),
            expired: entry.expired(now),
            created: entry.created,
            ttl_seconds: entry.ttl_ns.unwrap_or_default().max(0) / 1_000_000_000,
            unschedulable: entry.unschedulable,
            ours: is_ours(entry),
            record: record.map(|record| format!("{} ({})", record.metadata.name, record.phase)),
        }
    }
}

/// Looks at a lock.
#[must_use]
pub fn look(place: &Place, nodes: &BTreeSet<&str>, records: &[&Maintenance], now: Timestamp) -> Seen {
    let lock = match place.text.as_deref().map(Lock::parse) {
        None => None,
        Some(Ok(lock)) => Some(lock),
        Some(Err(error)) => {
            let consequence = "kured cannot read it: no node gets the lock, and no node reboots".to_owned();
            return Seen { format: None, garbage: Some(error), holders: Vec::new(), consequence };
        }
    };
    let holders: Vec<Holder> =
        lock.iter().flat_map(|lock| &lock.entries).map(|entry| Holder::of(entry, nodes, records, now)).collect();
    let consequence = consequence(place, lock.as_ref(), &holders);
    Seen { format: lock.map(|lock| lock.format), garbage: None, holders, consequence }
}

fn consequence(place: &Place, lock: Option<&Lock>, holders: &[Holder]) -> String {
    let slots = place.concurrency;
    let Some(lock) = lock else {
        return "it is free: the next kured that asks and hears go takes it".to_owned();
    };
    match (lock.format, slots > 1) {
        (Format::Multi, false) => {
            return "it is a list and kured runs with --concurrency 1: no kured ever takes it, without a word"
                .to_owned();
        }
        (Format::Single, true) => {
            return format!(
                "it is a single lock and kured runs with --concurrency {slots}: the next kured writes it over"
            );
        }
        (Format::Single, false) => {}
        (Format::Multi, true) => return of_list(slots, holders),
    }
    match holders.first() {
        None => "it is free: the next kured that asks and hears go takes it".to_owned(),
        Some(one) if one.expired => {
            format!("it has expired: the next kured that hears go takes it, and kured on {} finds it gone", one.name)
        }
        Some(one) if one.ours => match &one.record {
            Some(record) => {
                let name = record.split(' ').next().unwrap_or(record);
                format!("maint gives it back when that run is over, and all others wait: maint show {name}")
            }
            None => format!("nobody gives it back, and all wait: maint lock release --holder {} --yes", one.name),
        },
        Some(one) if one.node_exists => {
            format!("kured on {} goes on with its reboot, or gives it back when it starts; all others wait", one.name)
        }
        Some(one) if one.ttl_seconds > 0 => {
            format!("nobody goes on with it; all wait until it expires ({} s)", one.ttl_seconds)
        }
        Some(_) => "nobody goes on with it, and all wait until it is taken away".to_owned(),
    }
}

fn of_list(slots: usize, holders: &[Holder]) -> String {
    let expired = holders.iter().filter(|one| one.expired).count();
    let on: BTreeSet<&str> =
        holders.iter().filter(|one| one.node_exists && !one.expired).map(|one| one.name.as_str()).collect();
    let going = match on.len() {
        0 => String::new(),
        _ => format!(
            "kured on {} goes on, or gives its slot back when it starts; ",
            on.into_iter().collect::<Vec<_>>().join(", ")
        ),
    };
    // Expired entries count until the list is full, and are dropped then.
    let free = slots.saturating_sub(holders.len());
    let room = match (free, expired) {
        (0, 0) => "no slot is free, and all others wait".to_owned(),
        (0, _) => format!(
            "the list is full, and the next kured that hears go drops {expired} expired entries and takes a slot"
        ),
        (1, _) => "the next kured that hears go takes the last slot".to_owned(),
        (free, _) => format!("the next {free} kureds that hear go take a slot each"),
    };
    format!("{going}{room}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kured::place::testing::place;

    #[test]
    fn what_kured_does_with_a_lock() {
        let entry = |node: &str, ttl: i64| {
            format!(
                r#"{{"nodeID":"{node}","metadata":{{"unschedulable":false}},"created":"2026-11-30T00:00:00Z","TTL":{ttl}}}"#
            )
        };
        let (held, ghost, old, manual) =
            (entry("worker1", 0), entry("old", 0), entry("worker1", 1), r#"{"nodeID":"manual"}"#);
        let list = |entries: &[&str]| format!(r#"{{"maxOwners":2,"locks":[{}]}}"#, entries.join(","));
        let rows: [(&str, Option<String>, usize, &str); 14] = [
            ("free", None, 1, "it is free: the next kured"),
            ("held", Some(held.clone()), 1, "kured on worker1 goes on with its reboot"),
            ("a ghost", Some(ghost.clone()), 1, "nobody goes on with it, and all wait until it is taken away"),
            ("a ghost that expires", Some(entry("old", 86_400_000_000_000)), 1, "all wait until it expires (86400 s)"),
            ("expired", Some(old.clone()), 1, "it has expired: the next kured that hears go takes it"),
            ("manual", Some(manual.to_owned()), 1, "nobody goes on with it"),
            ("S9: a list under 1", Some(list(&[])), 1, "no kured ever takes it, without a word"),
            ("S8: single under 2", Some(manual.to_owned()), 2, "the next kured writes it over"),
            ("S12: garbage", Some("held by anna".to_owned()), 1, "kured cannot read it"),
            ("an empty list", Some(list(&[])), 2, "the next 2 kureds that hear go take a slot each"),
            (
                "one slot",
                Some(list(&[&held])),
                2,
                "kured on worker1 goes on, or gives its slot back when it starts; the next kured that hears go takes the last slot",
            ),
            ("full", Some(list(&[&held, &ghost])), 2, "no slot is free, and all others wait"),
            ("full of what expired", Some(list(&[&old, &ghost])), 2, "drops 1 expired entries"),
            ("a node twice", Some(list(&[&held, &held])), 2, "kured on worker1 goes on, or"),
        ];
        let nodes = BTreeSet::from(["worker1", "worker2"]);
        for (row, text, concurrency, wanted) in rows {
            let seen = look(
                &place(text.as_deref(), concurrency),
                &nodes,
                &[],
                "2026-11-30T01:00:00Z".parse().expect("a time"),
            );
            assert!(seen.consequence.contains(wanted), "{row}: {}", seen.consequence);
        }
    }

    #[test]
    fn whose_an_entry_is() {
        let now = "2026-11-30T01:00:00Z".parse().expect("a time");
        let nodes = BTreeSet::from(["worker1"]);
        let ours = r#"{"nodeID":"maint:worker1","maint":{"maintenance":"u-1"}}"#;
        let rows = [
            (r#"{"nodeID":"worker1"}"#, (true, false, false)),
            (r#"{"nodeID":"old"}"#, (false, false, true)),
            (r#"{"nodeID":"manual"}"#, (false, false, false)),
            (ours, (false, true, false)),
        ];
        for (text, wanted) in rows {
            let seen = look(&place(Some(text), 1), &nodes, &[], now);
            let one = seen.holders.first().expect("one");
            assert_eq!((one.node_exists, one.ours, one.is_ghost()), wanted, "{text}");
        }
    }
}
