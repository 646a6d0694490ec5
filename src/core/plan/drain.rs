//! Which pods go next: a plain drain. Only evictions, each guarded by its uid, never around a budget.

use super::act::Eviction;
use super::run::Run;
use crate::api::record::DrainRecord;
use crate::facts::{Item, Pod};

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
    let Some(value) = run.current(&run.input.facts.target_pods, Pod::ON_TARGET.max_age_seconds) else {
        return Drained::Unknown;
    };
    let mut left: Vec<&Pod> = Vec::new();
    for item in value {
        match item {
            Item::Good(pod) if pod.node_name.as_deref() == Some(run.node_name()) && pod.must_go() => {
                if !run.is_short_pod(pod) {
                    left.push(pod);
                }
            }
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
    drain.waiting = left.iter().take(MAX_WAITING).map(|pod| waiting(run, pod, &drain.waiting)).collect();
    run.status.drain = Some(drain);
    if left.is_empty() {
        return Drained::Empty;
    }
    let limit = run.settings().parallel_evictions.saturating_sub(ending);
    // Our own pod goes last: with it goes whoever evicts, until it runs elsewhere.
    let own = |pod: &&&Pod| pod.is_own(&run.input.settings.namespace);
    let only_own = left.iter().all(|pod| own(&pod));
    let next: Vec<Eviction> = left
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none() && (only_own || !own(pod)))
        .take(limit)
        .map(|pod| Eviction {
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
        })
        .collect();
    if next.is_empty() { Drained::Waiting } else { Drained::Evict(next) }
}

/// Who is still there and why: the last answer that the API gave to its eviction is kept.
fn waiting(run: &Run<'_>, pod: &Pod, before: &[String]) -> String {
    let name = pod.metadata.full_name();
    if let Some(due) = pod.metadata.deletion_timestamp {
        return format!("{name} is ending, due {due}");
    }
    let answer = run.input.refusals.iter().find_map(|refusal| refusal.strip_prefix(&format!("{name}: ")));
    if let Some(why) = answer {
        return format!("{name} was refused: {}", why.trim_end_matches('.'));
    }
    let refused = format!("{name} was refused: ");
    let kept = before.iter().find(|line| line.starts_with(&refused));
    kept.cloned().unwrap_or_else(|| format!("{name} was not evicted"))
}

/// Who is still there, in one line.
pub(super) fn waiting_line(run: &Run<'_>) -> String {
    let Some(drain) = &run.status.drain else { return "the node's pods could not be read".to_owned() };
    if drain.left == 0 {
        return "they are gone now, and gates held it up".to_owned();
    }
    let shown = i64::try_from(drain.waiting.len()).unwrap_or(i64::MAX);
    let more = if drain.left > shown { format!(", and {} more", drain.left - shown) } else { String::new() };
    format!("{}{more}", drain.waiting.join(", "))
}
