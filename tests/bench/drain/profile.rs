//! Where the time of a drain went: one line for a person, from the audit log and the watch.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::cell::Cell;
use super::limit::{lag, median, own_times, replacement_time};
use super::sides::{Drained, Side};
use super::watch;
use crate::harness::audit::Entry;

/// How many kinds of requests are named.
const KINDS: usize = 8;

/// One drain in a few lines.
pub fn profile(cell: Cell, side: Side, drained: &Drained) -> String {
    let since = |at: f64| at - drained.first;
    let mut sent = Vec::new();
    let (mut refused, mut taken) = (0, Vec::new());
    for entry in drained.log.evictions() {
        let (Ok(from), Ok(until)) = (watch::at(&entry.time), watch::at(&entry.done)) else { continue };
        sent.push(since(from));
        taken.push(until - from);
        refused += usize::from(entry.code != 201);
    }
    let last = sent.iter().copied().reduce(f64::max).unwrap_or(0.0);
    let slowest = taken.iter().copied().reduce(f64::max).unwrap_or(0.0);
    let mut text = format!(
        "profile {} {side:?}: first eviction {:.2} s after the start; {} sent within {last:.2} s, {refused} refused, \
         answered in {:.3} s (median) to {slowest:.3} s; last pod gone at {:.2} s; node free {:.2} s later",
        cell.name(),
        drained.first - drained.started,
        sent.len(),
        median(taken).unwrap_or(0.0),
        drained.drain(),
        drained.free - drained.gone,
    );
    for lane in cell.lanes().iter().take(2) {
        let own = own_times(&drained.seen, &lane.name);
        let slowest = own.iter().copied().reduce(f64::max).unwrap_or(0.0);
        let times = [median(own), replacement_time(&drained.seen, &lane.name), lag(&drained.seen, &lane.name)];
        let [own, replaced, lag] = times.map(|time| time.unwrap_or(f64::NAN));
        write!(
            text,
            "\n  {}: own time {own:.2} s (slowest {slowest:.2}), replacement Ready after {replaced:.2} s",
            lane.name
        )
        .ok();
        if lane.budget {
            write!(text, ", budget allows again {lag:.2} s later").ok();
        }
    }
    let whole = drained.ended - drained.started;
    write!(text, "\n  processor time of the {whole:.2} s that it took in all: {}", drained.spent.text()).ok();
    let draining = kinds(drained.log.0.iter().filter(|entry| drained.drains_at(entry)));
    write!(text, "\n  requests while it drained: {draining}").ok();
    write!(text, "\n  requests until the node was free: {}", kinds(&drained.log.0)).ok();
    text
}

/// The most frequent kinds of requests.
fn kinds<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> String {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for entry in entries {
        *kinds.entry(format!("{} {}", entry.verb, entry.resource)).or_default() += 1;
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shown: Vec<_> = kinds.iter().take(KINDS).map(|(kind, count)| format!("{count} {kind}")).collect();
    shown.join(", ")
}
