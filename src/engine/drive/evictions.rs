//! Evictions on their way: sent lane by lane, and each answer handed on at once.
//!
//! A step says what is to be sent; here it is only put on the wire: at most [`Wire::at_a_time`], at most one of a lane,
//! and not longer than [`VALID`] after the gates were asked. The next step replaces what has not been sent. What the API
//! answered is remembered for the next step.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use maint_core::drain::{Answer, Answered, Answers, Eviction, Lane};
use tokio::sync::Notify;

use super::nudges::Nudges;
use super::pods::{Pods, Shown};
use crate::execute::{Fenced, Seen};
use crate::lead::LeaseGuard;
use crate::runtime::{Clock, Instant};

/// What a step asked for is sent within this time of its gates or not at all: as long as they may count as asked.
pub(super) const VALID: Duration = Duration::from_secs(10);
/// A pod whose eviction came to nothing is not asked for again within this time, whatever a step says: the least pause that
/// steps make themselves.
const AGAIN: Duration = Duration::from_millis(200);
/// How long an answer is waited for when the watch shows already what came of it.
const ANSWER_AFTER: Duration = Duration::from_secs(2);
/// How long nothing is sent after an API server that sheds load said no time, and at most whatever it says.
const THROTTLED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// The evictions of one run; a handle.
#[derive(Clone, Default)]
pub(super) struct Evictions(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Something is to be sent.
    asked: Notify,
    /// One fewer is on its way.
    landed: Notify,
}

#[derive(Default)]
struct State {
    /// Asked for and not sent yet.
    queue: VecDeque<Eviction>,
    /// Until when it may be sent.
    until: Option<Instant>,
    /// Before then nothing is sent at all: the API server sheds load.
    not_before: Option<Instant>,
    /// On their way, by uid.
    in_flight: BTreeMap<String, Lane>,
    /// When an eviction last came to nothing, by uid.
    refused: BTreeMap<String, Instant>,
    /// What the API answered, and what it did not answer yet.
    answers: Answers,
}

/// What sending needs.
pub(super) struct Wire<'a, F> {
    pub(super) fenced: &'a F,
    pub(super) guard: &'a LeaseGuard,
    pub(super) clock: &'a Clock,
    pub(super) pods: &'a Pods,
    /// At most so many evictions are on their way at the same time (`[run] parallel_evictions`).
    pub(super) at_a_time: usize,
    /// Told of each answer.
    pub(super) nudges: &'a Nudges,
}

impl Evictions {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be sent until then; it replaces what has not been sent yet.
    pub(super) fn ask(&self, evictions: &[Eviction], until: Instant, clock: &Clock) {
        let now = clock.instant();
        let mut state = self.lock();
        state.refused.retain(|_, at| now.duration_since(*at) < AGAIN);
        let wanted = |one: &&Eviction| !state.in_flight.contains_key(&one.uid) && !state.refused.contains_key(&one.uid);
        let paused = state.not_before.is_some_and(|until| now < until);
        state.queue = if paused { VecDeque::new() } else { evictions.iter().filter(wanted).cloned().collect() };
        state.until = Some(until);
        drop(state);
        self.0.asked.notify_one();
    }

    /// What the API answered, and what it did not answer yet.
    pub(super) fn answers(&self) -> Answers {
        self.lock().answers.clone()
    }

    /// Forgets all answers: the pods of another phase are other pods.
    pub(super) fn forget(&self) {
        let mut state = self.lock();
        if state.in_flight.is_empty() {
            state.answers = Answers::default();
        }
    }

    /// Waits until none is on its way: whatever else is done to the node comes after them.
    pub(super) async fn quiet(&self) {
        loop {
            let landed = self.0.landed.notified();
            if self.lock().in_flight.is_empty() {
                return;
            }
            landed.await;
        }
    }

    /// Sends what is asked for, for ever.
    pub(super) async fn send<F: Fenced>(&self, wire: &Wire<'_, F>) -> Infallible {
        let mut flying = Vec::new();
        loop {
            while let Some(eviction) = self.next(wire.clock.instant(), wire.at_a_time) {
                flying.push(Box::pin(self.fly(wire, eviction)));
            }
            tokio::select! {
                biased;
                () = one_landed(&mut flying) => {}
                () = self.0.asked.notified() => {}
            }
        }
    }

    /// The next one that may be sent, which is on its way from now on.
    fn next(&self, now: Instant, at_a_time: usize) -> Option<Eviction> {
        let mut state = self.lock();
        if state.until.is_none_or(|until| until <= now) {
            state.queue.clear();
        }
        if state.in_flight.len() >= at_a_time {
            return None;
        }
        let free = |one: &Eviction| {
            !state.in_flight.contains_key(&one.uid) && !state.in_flight.values().any(|lane| *lane == one.lane)
        };
        let place = state.queue.iter().position(free)?;
        let eviction = state.queue.remove(place)?;
        state.in_flight.insert(eviction.uid.clone(), eviction.lane.clone());
        state.answers.sent(&eviction);
        Some(eviction)
    }

    /// One eviction, from the last look at its pod to its answer.
    async fn fly<F: Fenced>(&self, wire: &Wire<'_, F>, eviction: Eviction) {
        let answer = match wire.pods.look(&eviction.uid) {
            Shown::Gone => Some(Answer::Gone),
            Shown::Ending => Some(Answer::Accepted),
            Shown::There => self.sent(wire, &eviction, Seen::There).await,
            Shown::Nothing => self.sent(wire, &eviction, Seen::Unknown).await,
        };
        self.landed(wire, eviction, answer);
    }

    /// Sends it. An answer that was lost is no reason to wait where the watch shows what came of it.
    async fn sent<F: Fenced>(&self, wire: &Wire<'_, F>, eviction: &Eviction, seen: Seen) -> Option<Answer> {
        let Wire { fenced, guard, clock, pods, .. } = wire;
        let shown = async {
            pods.leaves(&eviction.uid).await;
            clock.sleep(ANSWER_AFTER).await;
        };
        tokio::select! {
            biased;
            // Without the lease nothing was sent, and nothing is to be remembered of it.
            answer = fenced.evict(guard, pods.node(), eviction, seen) => answer.ok(),
            () = shown => Some(if pods.look(&eviction.uid) == Shown::Gone { Answer::Gone } else { Answer::Accepted }),
        }
    }

    fn landed<F>(&self, wire: &Wire<'_, F>, eviction: Eviction, answer: Option<Answer>) {
        let mut state = self.lock();
        state.in_flight.remove(&eviction.uid);
        let (uid, told) = (eviction.uid.clone(), answer.clone());
        match answer {
            None => {
                state.answers.not_sent(&eviction);
                state.queue.clear();
            }
            Some(answer) => {
                if answer.ends_lane() {
                    state.queue.retain(|one| one.lane != eviction.lane);
                    state.refused.insert(eviction.uid.clone(), wire.clock.instant());
                }
                if stops_all(&answer) {
                    state.queue.clear();
                }
                if let Answer::Throttled { retry_after_seconds } = &answer {
                    let asked = retry_after_seconds.and_then(|seconds| u64::try_from(seconds).ok());
                    let pause = asked.map_or(THROTTLED.0, Duration::from_secs).clamp(THROTTLED.0, THROTTLED.1);
                    state.not_before = Some(wire.clock.instant() + pause);
                }
                state.answers.note(Answered { eviction, answer, at: wire.clock.now() });
            }
        }
        let idle = state.queue.is_empty() && state.in_flight.is_empty();
        drop(state);
        self.0.landed.notify_waiters();
        wire.nudges.answered(&uid, told.as_ref(), idle);
    }
}

/// Waits until at least one of them is there, which is taken out. They are polled in the order in which they were sent,
/// few as they are: a simulated night is the same night whatever carries them.
async fn one_landed<F: Future<Output = ()>>(flying: &mut Vec<Pin<Box<F>>>) {
    poll_fn(|context| {
        let before = flying.len();
        flying.retain_mut(|one| one.as_mut().poll(context).is_pending());
        if flying.len() < before { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Answers that are about us or the API server and not about the pod: the next one would be answered alike.
const fn stops_all(answer: &Answer) -> bool {
    matches!(answer, Answer::Throttled { .. } | Answer::Forbidden { .. } | Answer::Invalid { .. })
}

#[cfg(test)]
mod tests;
