//! How fast a drain can be at best, from what a watch saw of it: pure arithmetic on instants.

use std::collections::BTreeMap;

use thiserror::Error;

/// One pod of a lane, as a watch showed it. All instants are seconds on one clock; `None` was not seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pod {
    /// The ReplicaSet that it belongs to; a budget has its name.
    pub lane: String,
    /// On the node that is drained, or a replacement on another one.
    pub on_target: bool,
    /// When it was first seen.
    pub created: f64,
    /// When its condition Ready became true.
    pub ready: Option<f64>,
    /// When it was first seen with a deletion timestamp.
    pub ending: Option<f64>,
    /// When it was deleted.
    pub gone: Option<f64>,
}

/// A change of a budget's `status.disruptionsAllowed`.
#[derive(Clone, Debug, PartialEq)]
pub struct Allowed {
    /// Its name, which is its lane's.
    pub lane: String,
    /// When it was seen, in seconds.
    pub at: f64,
    /// So many.
    pub disruptions: i64,
}

/// All that a watch saw of one drain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    pub pods: Vec<Pod>,
    pub allowed: Vec<Allowed>,
}

/// The best times of a drain, in seconds, each of its slowest lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// One step after the other: waves x (a pod's own time + its replacement's time to Ready + the controller's lag).
    /// Without a budget, or where one wave is enough, nobody waits for a replacement: the slowest pod's own time.
    pub steps: f64,
    /// The same where the pod ends while its replacement starts, as it does under a ReplicaSet: the last pod's own time
    /// after all replacements but the last. Nothing that keeps the budgets can be faster.
    pub overlapped: f64,
}

/// What is needed for a limit and was not seen.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Unseen {
    #[error("no pod of {0} was seen to end on the drained node")]
    Ending(String),
    #[error("no replacement of {0} was seen to become Ready")]
    Replacement(String),
    #[error("the budget of {0} was not seen to allow anything after a replacement")]
    Lag(String),
}

/// The limit of a drain. `at_once` has each lane, with the disruptions that its budget allows at a time.
pub fn limit(seen: &Seen, at_once: &BTreeMap<String, Option<usize>>) -> Result<Limit, Unseen> {
    let mut limit = Limit { steps: 0.0, overlapped: 0.0 };
    for (lane, allowed) in at_once {
        let times = own_times(seen, lane);
        let slowest = times.iter().copied().reduce(f64::max).ok_or_else(|| Unseen::Ending(lane.clone()))?;
        let waves = allowed.map_or(1, |allowed| times.len().div_ceil(allowed.max(1)));
        let (steps, overlapped) = if waves > 1 {
            let own = median(times).unwrap_or(slowest);
            let replaced = replacement_time(seen, lane).ok_or_else(|| Unseen::Replacement(lane.clone()))?;
            let lag = lag(seen, lane).ok_or_else(|| Unseen::Lag(lane.clone()))?;
            let waves = f64::from(u32::try_from(waves).unwrap_or(u32::MAX));
            (waves * (own + replaced + lag), (waves - 1.0) * (replaced + lag) + own)
        } else {
            (slowest, slowest)
        };
        limit = Limit { steps: limit.steps.max(steps), overlapped: limit.overlapped.max(overlapped) };
    }
    Ok(limit)
}

/// How long each pod on the drained node took from its deletion timestamp until it was gone.
pub fn own_times(seen: &Seen, lane: &str) -> Vec<f64> {
    let drained = seen.pods.iter().filter(|pod| pod.lane == lane && pod.on_target);
    drained.filter_map(|pod| Some(pod.gone? - pod.ending?)).collect()
}

/// The median time from a pod's end until its replacement was Ready. A ReplicaSet makes one pod for each that goes, so
/// the first to end is replaced by the first that is made.
pub fn replacement_time(seen: &Seen, lane: &str) -> Option<f64> {
    let mut endings: Vec<f64> =
        seen.pods.iter().filter(|pod| pod.lane == lane && pod.on_target).filter_map(|pod| pod.ending).collect();
    endings.sort_by(f64::total_cmp);
    let mut replacements: Vec<&Pod> = seen.pods.iter().filter(|pod| pod.lane == lane && !pod.on_target).collect();
    replacements.sort_by(|a, b| a.created.total_cmp(&b.created));
    let times = endings.iter().zip(replacements).filter_map(|(ending, pod)| Some(pod.ready? - ending));
    median(times.collect())
}

/// The median time from a replacement's Ready until the budget allowed a disruption again.
pub fn lag(seen: &Seen, lane: &str) -> Option<f64> {
    let ready = seen.pods.iter().filter(|pod| pod.lane == lane && !pod.on_target).filter_map(|pod| pod.ready);
    let allowed_after = |ready: f64| {
        let later = seen.allowed.iter().filter(|one| one.lane == lane && one.disruptions > 0 && one.at >= ready);
        later.map(|one| one.at).reduce(f64::min)
    };
    median(ready.filter_map(|ready| Some(allowed_after(ready)? - ready)).collect())
}

/// The middle value, or the mean of the two in the middle.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    values.get(values.len() / 2 - 1).map(|lower| f64::midpoint(*lower, upper))
}
