//! Which pods go next: a plain drain. Only evictions, each guarded by its uid, never around a budget.

use std::collections::BTreeSet;

use super::act::Eviction;
use super::run::Run;
use crate::api::record::DrainRecord;
use crate::facts::{Item, Observation, Pod};

/// Names kept of who is still there.
const MAX_WAITING: usize = 20;

/// What the node's pods say.
pub(super) enum Drained {
    /// The pods could not be read, or one of them could not be understood.
    Unknown,
    /// Nothing that must go is left.
    Empty,
    /// All that remain are ending.
    Waiting,
    /// These are evicted now.
    Evict(Vec<Eviction>),
}

/// Looks at the node's pods and keeps the numbers in the record.
pub(super) fn look(run: &mut Run<'_>) -> Drained {
    let Observation::Known { value, .. } = &run.input.facts.target_pods else { return Drained::Unknown };
    let mut left: Vec<&Pod> = Vec::new();
    for item in value {
        match item {
            Item::Good(pod) if pod.node_name.as_deref() == Some(run.node_name()) && pod.must_go() => left.push(pod),
            Item::Good(_) => {}
            Item::Malformed(_) => return Drained::Unknown,
        }
    }
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let mut drain =
        run.status.drain.take().unwrap_or_else(|| DrainRecord { planned: count(left.len()), ..DrainRecord::default() });
    let ending = left.iter().filter(|pod| pod.metadata.deletion_timestamp.is_some()).count();
    drain.left = count(left.len());
    drain.evicted = drain.evicted.max(drain.planned - count(left.len()) + count(ending));
    drain.waiting = left.iter().take(MAX_WAITING).map(|pod| waiting(pod)).collect();
    run.status.drain = Some(drain);
    if left.is_empty() {
        return Drained::Empty;
    }
    let limit = run.settings().parallel_evictions.saturating_sub(ending);
    let next: Vec<Eviction> = left
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        .take(limit)
        .map(|pod| Eviction {
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
        })
        .collect();
    if next.is_empty() { Drained::Waiting } else { Drained::Evict(next) }
}

fn waiting(pod: &Pod) -> String {
    let name = pod.metadata.full_name();
    match pod.metadata.deletion_timestamp {
        Some(due) => format!("{name} is ending, due {due}"),
        None => format!("{name} was not evicted"),
    }
}

/// Who is still there, in one line.
pub(super) fn waiting_line(run: &Run<'_>) -> String {
    let Some(drain) = &run.status.drain else { return "the node's pods could not be read".to_owned() };
    let names: BTreeSet<&str> = drain.waiting.iter().map(String::as_str).collect();
    let refused: Vec<&str> = run.input.refusals.iter().map(String::as_str).collect();
    let mut line = names.into_iter().collect::<Vec<_>>().join(", ");
    if !refused.is_empty() {
        line = format!("{line}; refused: {}", refused.join(", "));
    }
    line
}
