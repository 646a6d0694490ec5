//! What an answer of the API means for a candidate.

use std::time::Duration;

use jiff::Timestamp;

use super::{Action, Answer, InFlight, JITTER_PERCENT, Lost, Observed, Request, Seen, State, Tenure};
use crate::planted::{self, Bug};

impl State {
    pub(super) fn on_answer(
        &mut self,
        at: Duration,
        wall: Timestamp,
        request: &InFlight,
        answer: Answer,
    ) -> Vec<Action> {
        match (&request.request, answer) {
            (Request::Get, Answer::Seen(seen)) => {
                self.observe(at, Some(seen));
                self.decide(at, wall, request)
            }
            (Request::Get, Answer::NotFound) => {
                self.observe(at, None);
                self.decide(at, wall, request)
            }
            (_, Answer::Seen(seen)) => self.on_written(at, wall, request, seen),
            (Request::Update(..), Answer::NotFound) if self.tenure.is_some() => self.lose(Lost::Deleted),
            // Another write came first. A leader must know at once whose; a candidate has lost this race.
            (Request::Create(_) | Request::Update(..), Answer::Conflict) if self.tenure.is_some() => {
                self.must_observe = true;
                self.attempt(at, wall)
            }
            (_, Answer::Failed(_) | Answer::Conflict | Answer::NotFound) => self.on_nothing(at, wall, request),
        }
    }

    /// No usable answer: a write may have been done or not.
    fn on_nothing(&mut self, at: Duration, wall: Timestamp, request: &InFlight) -> Vec<Action> {
        self.must_observe = true;
        if self.tenure.is_none() && self.leaving.is_some() {
            return self.left(at, false);
        }
        if self.leaving.is_some() {
            return self.leave(at, wall);
        }
        let mut actions = Vec::new();
        if self.tenure.is_none() && at.saturating_sub(self.last_read) >= self.limits.lease {
            actions.push(Action::Unknown);
        }
        actions.push(self.wake(at, request));
        actions
    }

    /// What a fresh read means.
    fn decide(&mut self, at: Duration, wall: Timestamp, request: &InFlight) -> Vec<Action> {
        let seen = self.seen_lease();
        if let Some(tenure) = self.tenure {
            return match seen {
                None => self.lose(Lost::Deleted),
                Some(seen) if seen.record.holder != self.identity => self.lose(Lost::Taken(seen.record.holder)),
                Some(seen) if seen.record.term != tenure.term => {
                    self.lose(Lost::TermChanged { ours: tenure.term, found: seen.record.term })
                }
                Some(seen) => self.write_ours(at, wall, tenure, seen),
            };
        }
        if self.leaving.is_some() {
            return self.left(at, true);
        }
        if self.may_take(at) {
            return self.take(at, wall, seen);
        }
        let somebody = |holder: &String| !holder.is_empty() && *holder != self.identity;
        let holder = seen.map(|seen| seen.record.holder).filter(somebody);
        vec![Action::Follow { holder }, self.wake(at, request)]
    }

    fn may_take(&self, at: Duration) -> bool {
        let Some(observed) = &self.observed else { return false };
        let unchanged = at.saturating_sub(observed.since);
        match &observed.lease {
            // Claiming it is not yet leading.
            None => true,
            // Our own name without a tenure (a claim, a lost answer, a release that was not confirmed) is like any
            // other name: only time tells that nobody works under it.
            Some(seen) => {
                let released = seen.record.holder.is_empty() && !self.abstains;
                let (any, never) = (planted::is(Bug::TakesAnyLease), planted::is(Bug::NeverTakesOver));
                released || any || (!never && unchanged >= self.limits.lease.max(seen.record.duration))
            }
        }
    }

    /// A write was done.
    fn on_written(&mut self, at: Duration, wall: Timestamp, request: &InFlight, seen: Seen) -> Vec<Action> {
        self.observe(at, Some(seen));
        if request.releases {
            return self.left(at, true);
        }
        let valid_until = request.sent.saturating_add(self.limits.renew_deadline);
        let begins = match (request.takes, self.tenure.as_mut()) {
            (None, Some(tenure)) => {
                tenure.valid_until = valid_until;
                None
            }
            // So slow that the tenure is over before it began: the next look finds our name in it.
            (Some(_), _) if at >= valid_until => return vec![self.wake(at, request)],
            (Some(term), _) => {
                let acquired = self.seen_lease().and_then(|seen| seen.record.acquired);
                self.tenure = Some(Tenure { term, valid_until, acquired });
                Some(term)
            }
            // A claim.
            (None, None) => return vec![self.wake(at, request)],
        };
        if self.leaving.is_some() {
            return self.leave(at, wall);
        }
        let told = match begins {
            Some(term) => Action::Lead { term, valid_until },
            None => Action::Renewed { valid_until },
        };
        vec![told, self.wake(at, request)]
    }

    /// Notes what was seen. The same version keeps the instant at which it was seen first.
    fn observe(&mut self, at: Duration, lease: Option<Seen>) {
        self.last_read = at;
        self.must_observe = false;
        if let Some(seen) = &lease {
            self.known_term = self.known_term.max(seen.record.term);
        }
        let version = |lease: &Option<Seen>| lease.as_ref().map(|seen| seen.version.clone());
        match &mut self.observed {
            Some(observed) if version(&observed.lease) == version(&lease) => observed.lease = lease,
            observed => *observed = Some(Observed { lease, since: at }),
        }
    }

    fn wake(&self, at: Duration, request: &InFlight) -> Action {
        let jitter_percent = if self.tenure.is_some() { 0 } else { JITTER_PERCENT };
        Action::WakeAt { at: request.sent.saturating_add(self.limits.retry).max(at), jitter_percent }
    }
}
