//! What the API said to the evictions of this process, and how long each answer counts.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::answer::{Answer, Answered, Eviction, Lane, Origin};
use super::wait::Wait;
use crate::facts::Pod;
use crate::planted::{self, Bug};

/// Milliseconds that the first answer of a kind holds its pod or lane, and the most after many.
type Pace = (i64, i64);

/// A budget that refused without having changed since.
const BUDGET: Pace = (5_000, 30_000);
/// A webhook that denied it.
const WEBHOOK: Pace = (10_000, 60_000);
/// What may pass at once: 5xx, time-outs, cut connections, whatever is not known.
const TRANSIENT: Pace = (200, 5_000);
/// A right is missing, or is not known yet to an API server that has just begun; after how many such answers in a row for
/// one pod it is missing.
const FORBIDDEN: Pace = (5_000, 5_000);
const FORBIDDEN_TIMES: u32 = 2;
/// Another pod has the name, or somebody wrote at the same time.
const CONFLICT: Pace = (1_000, 5_000);
/// Two budgets that are not seen here.
const TWO_BUDGETS: Pace = (30_000, 30_000);
/// Accepted or gone, and the list does not show it: it lags behind.
const LAG: Pace = (5_000, 5_000);
/// A pod took the place of one that was evicted: what puts it back will put the next one back too.
const BACK: Pace = (5_000, 60_000);
/// Load shedding without a `Retry-After`, and the longest that one is believed.
const THROTTLED: Pace = (1_000, 60_000);

/// Pods, and lanes, that are remembered at most; a node has a few hundred.
const LIMIT: usize = 2_000;

/// What the API said to the evictions of this process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answers {
    pods: BTreeMap<String, Told>,
    lanes: BTreeMap<Lane, Told>,
    /// What a lane's last accepted eviction was decided on.
    accepted: BTreeMap<Lane, String>,
    on_their_way: BTreeMap<String, Eviction>,
    throttled: Option<(Timestamp, u32)>,
    /// How many answers there were.
    count: u64,
}

/// The last answer, and how often it was the same in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    answered: Answered,
    times: u32,
    number: u64,
}

/// How long the `times`th answer in a row holds: doubled each time, up to a limit.
fn hold(pace: Pace, times: u32) -> SignedDuration {
    let factor = 1_i64.checked_shl(times.saturating_sub(1).min(20)).unwrap_or(1);
    SignedDuration::from_millis(pace.0.saturating_mul(factor).min(pace.1))
}

impl Answers {
    /// An eviction is on its way; it ends with [`Self::note`] or [`Self::not_sent`].
    pub fn sent(&mut self, eviction: &Eviction) {
        self.on_their_way.insert(eviction.uid.clone(), eviction.clone());
    }

    /// An eviction was not sent after all.
    pub fn not_sent(&mut self, eviction: &Eviction) {
        self.on_their_way.remove(&eviction.uid);
    }

    /// Whether an eviction of this pod has no answer yet.
    #[must_use]
    pub fn is_on_its_way(&self, uid: &str) -> bool {
        self.on_their_way.contains_key(uid)
    }

    /// Takes an answer.
    pub fn note(&mut self, answered: Answered) {
        let Answered { eviction: Eviction { uid, lane, basis, .. }, answer, at } = &answered;
        self.on_their_way.remove(uid);
        self.count += 1;
        self.throttled = match answer {
            Answer::Throttled { retry_after_seconds } => {
                let times = self.throttled.map_or(1, |(_, times)| times.saturating_add(1));
                let most = THROTTLED.1 / 1_000;
                let asked = retry_after_seconds.map(|seconds| SignedDuration::from_secs(seconds.clamp(1, most)));
                Some((*at + asked.unwrap_or_else(|| hold(THROTTLED, times)), times))
            }
            _ => None,
        };
        let told = |known: Option<&Told>| {
            let same = known.filter(|known| known.answered.answer.category() == answer.category());
            let times = same.map_or(1, |known| known.times.saturating_add(1));
            Told { answered: answered.clone(), times, number: self.count }
        };
        match answer {
            Answer::RefusedByBudget { .. } => {
                let told = told(self.lanes.get(lane));
                self.lanes.insert(lane.clone(), told);
            }
            Answer::Accepted => {
                self.lanes.remove(lane);
                self.accepted.insert(lane.clone(), basis.clone());
            }
            _ => {}
        }
        let told = told(self.pods.get(uid));
        self.pods.insert(uid.clone(), told);
        self.stay_bounded();
    }

    fn stay_bounded(&mut self) {
        while self.pods.len() > LIMIT {
            let oldest = self.pods.iter().min_by_key(|(_, told)| told.number).map(|(uid, _)| uid.clone());
            let Some(oldest) = oldest else { break };
            self.pods.remove(&oldest);
        }
        while self.lanes.len() > LIMIT {
            self.lanes.pop_first();
        }
        while self.accepted.len() > LIMIT {
            self.accepted.pop_first();
        }
    }

    /// The last answer for each pod, oldest first.
    #[must_use]
    pub fn last(&self) -> Vec<&Answered> {
        let mut all: Vec<&Told> = self.pods.values().collect();
        all.sort_by_key(|told| told.number);
        all.into_iter().map(|told| &told.answered).collect()
    }

    /// Whether what the lane's last accepted eviction was decided on is still as it was then: its outcome is not in it.
    pub(super) fn shows_no_change(&self, lane: &Lane, version: &str) -> bool {
        self.accepted.get(lane).is_some_and(|basis| basis == version && !version.is_empty())
    }

    /// Whether a pod may have been evicted by an eviction whose answer says nothing, and the list of the pods is too old to
    /// show it.
    pub(super) fn may_go(&self, uid: &str, listed_at: Timestamp) -> bool {
        self.pods.get(uid).is_some_and(|told| {
            let Answered { answer, at, .. } = &told.answered;
            matches!(answer, Answer::Transient { .. } | Answer::Unknown { .. }) && listed_at <= *at
        })
    }

    /// How many evictions of a lane were accepted since its budget was asked for, or have no answer yet: it may not show
    /// them.
    pub(super) fn taken_since(&self, lane: &Lane, at: Timestamp) -> i64 {
        let newer = |told: &&Told| {
            let Answered { eviction, answer, at: answered_at } = &told.answered;
            *answer == Answer::Accepted && eviction.lane == *lane && *answered_at >= at
        };
        let flying = self.on_their_way.values().filter(|eviction| eviction.lane == *lane).count();
        i64::try_from(self.pods.values().filter(newer).count().saturating_add(flying)).unwrap_or(i64::MAX)
    }

    /// An answer after which nothing is tried again: a right is missing, or we are wrong. An API server that has just begun
    /// may not know its rights yet, so that only its second no counts.
    pub(super) fn fatal(&self, uid: &str) -> Option<String> {
        let told = self.pods.get(uid)?;
        match &told.answered.answer {
            Answer::Forbidden { message } if told.times >= FORBIDDEN_TIMES => {
                Some(format!("maint may not evict: {message}"))
            }
            Answer::Invalid { message } => Some(format!("the API server does not accept the eviction: {message}")),
            _ => None,
        }
    }

    /// Whether this pod took the place of others that were evicted, and it is too early to evict it: how many those were,
    /// and until when. It has the name of one of them, or their controller made it after they were asked to go. Its
    /// predecessors count for nothing else.
    pub(super) fn is_back(&self, pod: &Pod, now: Timestamp) -> Option<(u32, Timestamp)> {
        let metadata = &pod.metadata;
        let controller = pod.controller.as_ref().map(|owner| owner.uid.as_str()).filter(|uid| !uid.is_empty());
        let before = |told: &&Told| {
            let Answered { eviction, answer, .. } = &told.answered;
            let named = (&eviction.namespace, &eviction.name) == (&metadata.namespace, &metadata.name);
            let replaces = |origin: &Origin| {
                controller == Some(origin.controller.as_str()) && metadata.created.is_some_and(|at| at > origin.newest)
            };
            let in_its_place = named || eviction.origin.as_ref().is_some_and(replaces);
            in_its_place && eviction.uid != metadata.uid && *answer == Answer::Accepted
        };
        let (times, last) = self
            .pods
            .values()
            .filter(before)
            .fold((0, None), |(times, last), told| (times + 1, last.max(Some(told.answered.at))));
        let until = last? + hold(BACK, times);
        (now < until).then_some((times, until))
    }

    /// Until when nothing is asked at all.
    pub(super) fn throttled_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.throttled.map(|(until, _)| until).filter(|until| now < *until)
    }

    /// Whether the lane still waits after a refusal by its budget, of which this is the present `resourceVersion`.
    pub(super) fn lane_waits(&self, lane: &Lane, version: &str, now: Timestamp) -> Option<Wait> {
        let told = self.lanes.get(lane)?;
        let Answered { eviction, answer, at } = &told.answered;
        let Answer::RefusedByBudget { budget, message, retry_after_seconds } = answer else { return None };
        // Without a budget of ours the basis is another object's.
        let changed = !eviction.basis.is_empty() && !version.is_empty() && eviction.basis != version;
        let asked = retry_after_seconds.map(|seconds| SignedDuration::from_secs(seconds.clamp(1, BUDGET.1 / 1_000)));
        let until = *at + asked.unwrap_or_else(|| hold(BUDGET, told.times));
        let wait = Wait::Refused { budget: budget.clone(), message: message.clone(), until };
        (!changed && now < until).then_some(wait)
    }

    /// Whether the pod still waits after its own last answer; `listed_at` is when the pods were asked for.
    pub(super) fn pod_waits(&self, uid: &str, listed_at: Timestamp, now: Timestamp) -> Option<Wait> {
        let told = self.pods.get(uid)?;
        let Answered { answer, at, .. } = &told.answered;
        let failed = |lead: &str, message: &str, pace: Pace| {
            let until = *at + hold(pace, told.times);
            let wait = Wait::Failed { lead: lead.to_owned(), message: message.to_owned(), until };
            (now < until && !planted::is(Bug::AsksAgainAtOnce)).then_some(wait)
        };
        match answer {
            Answer::Accepted | Answer::Gone => {
                let lags = listed_at <= *at || now < *at + hold(LAG, 1);
                lags.then_some(Wait::Accepted)
            }
            Answer::NamespaceTerminating => Some(Wait::NamespaceTerminating),
            Answer::TwoBudgets { message } => failed("is blocked by more than one budget", message, TWO_BUDGETS),
            Answer::WebhookDenied { message } => failed("was denied by a webhook", message, WEBHOOK),
            Answer::UidConflict => failed("was not evicted", "somebody wrote it at the same time", CONFLICT),
            Answer::Transient { message } | Answer::Unknown { message } => {
                failed("was not evicted", message, TRANSIENT)
            }
            Answer::Forbidden { message } => failed("was not evicted", message, FORBIDDEN),
            Answer::RefusedByBudget { .. } | Answer::Throttled { .. } | Answer::Invalid { .. } => None,
        }
    }
}
