//! Who leads: one candidate's part of the election over a Lease, as a pure step function.
//!
//! The semantics are client-go's (`tools/leaderelection`): a Lease may be taken when it was *seen* unchanged for its
//! whole duration on the local monotonic clock (no remote time stamp is ever compared), every write names the version
//! it replaces, a lost race means to look again, an empty holder is free at once. It is stricter where client-go
//! leaves a gap:
//!
//! - The leader's validity counts from before the request of its last good renewal was sent, so an answer slower than
//!   the Lease never makes two leaders (kubernetes#44887).
//! - Creating a Lease that is not there begins no tenure: somebody may have deleted it under a leader that still works.
//!   The new Lease is a claim, which its creator too may take only after it was seen unchanged for its duration. Seeing
//!   no Lease for so long would not do: one can be created and deleted between two looks.
//! - Each tenure has a higher term than any seen before, in the Lease or in records ([`EventKind::KnownTerm`]): a Lease
//!   that was deleted starts no second term 1.
//! - A leader that lost is over: its process must end.
//!
//! One request is in flight at a time. Times are durations of the candidate's monotonic clock since an origin of its
//! own; wall time is only written down for people.

mod answer;
mod lease;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;

pub use lease::{BadElection, LeaseRecord, Limits, Seen, Term, Version};

/// What happened.
#[derive(Debug, Clone)]
pub struct Event {
    /// When, on the candidate's monotonic clock.
    pub at: Duration,
    /// When, for people.
    pub wall: Timestamp,
    /// What.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// It is time to look again, or the leader's validity ended.
    Wake,
    /// The answer to the one request in flight.
    Answer(Answer),
    /// While true, the candidate takes only a Lease that nobody renewed for its whole duration, not a released one.
    Abstain(bool),
    /// A term seen elsewhere, as in records: the next tenure must have a higher one.
    KnownTerm(Term),
    /// All guarded work has stopped: the Lease is to be given up.
    Release,
}

/// An answer of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The Lease as it was read or written.
    Seen(Seen),
    /// There is none.
    NotFound,
    /// Another write came first (409).
    Conflict,
    /// Anything else. Whether a write took place is not known.
    Failed(String),
}

/// A request to the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A read of the most recent state.
    Get,
    /// Creates the Lease.
    Create(LeaseRecord),
    /// Replaces the Lease, if it is still that version.
    Update(LeaseRecord, Version),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send it; no answer within the limit is [`Answer::Failed`].
    Send {
        /// The request.
        request: Request,
        /// How long it may take.
        limit: Duration,
    },
    /// Send [`EventKind::Wake`] then, or later by up to so many percent of the time until then.
    WakeAt {
        /// When.
        at: Duration,
        /// The jitter.
        jitter_percent: u32,
    },
    /// We lead. Guarded work may begin.
    Lead {
        /// The fencing number.
        term: Term,
        /// The tenure ends by itself then.
        valid_until: Duration,
    },
    /// The tenure goes on.
    Renewed {
        /// The tenure ends by itself then.
        valid_until: Duration,
    },
    /// Another candidate leads, or nobody.
    Follow {
        /// Who leads; none if the Lease is free or absent.
        holder: Option<String>,
    },
    /// Nothing has been read for a whole duration of the Lease.
    Unknown,
    /// The tenure is over: guarded work must stop at once, and the process must end.
    Lost(Lost),
    /// Nothing of ours is held any more. If unconfirmed, the Lease runs out by itself.
    Released {
        /// The API said so.
        confirmed: bool,
    },
}

/// Why a tenure ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// It could not be renewed in time.
    #[error("the Lease could not be renewed for {} s", .0.as_secs())]
    NotRenewed(Duration),
    /// Another candidate has it, or somebody took our name out.
    #[error("the Lease is held by {}", if .0.is_empty() { "nobody" } else { .0 })]
    Taken(String),
    /// Our name is in it with another term.
    #[error("leaseTransitions of the Lease was changed from {ours} to {found}")]
    TermChanged {
        /// Ours.
        ours: Term,
        /// What is there.
        found: Term,
    },
    /// Somebody deleted it.
    #[error("the Lease was deleted")]
    Deleted,
}

/// How long one request may take at most: a server that hangs must leave time to ask another one.
pub const ATTEMPT_LIMIT: Duration = Duration::from_secs(5);
/// How much later than planned a waiting candidate may look, so that several do not come at once.
pub const JITTER_PERCENT: u32 = 20;
/// How often giving the Lease up is tried.
const RELEASE_ATTEMPTS: u32 = 2;

/// What one candidate knows.
#[derive(Debug, Clone)]
pub struct State {
    identity: String,
    limits: Limits,
    observed: Option<Observed>,
    in_flight: Option<InFlight>,
    tenure: Option<Tenure>,
    abstains: bool,
    /// The version in `observed` may be outdated by a write of ours whose answer was lost.
    must_observe: bool,
    /// Attempts to give the Lease up, while that is wanted.
    leaving: Option<u32>,
    known_term: Term,
    last_read: Duration,
    over: bool,
}

#[derive(Debug, Clone)]
struct Observed {
    /// None: seen absent.
    lease: Option<Seen>,
    /// When this version was seen first.
    since: Duration,
}

#[derive(Debug, Clone)]
struct InFlight {
    request: Request,
    sent: Duration,
    /// The term that it asks for, if it is to begin a tenure.
    takes: Option<Term>,
    releases: bool,
}

#[derive(Debug, Clone, Copy)]
struct Tenure {
    term: Term,
    valid_until: Duration,
    acquired: Option<Timestamp>,
}

impl State {
    /// A candidate that knows nothing yet. The identity must be this process's alone: its own earlier Lease, seen by a
    /// restarted process, is somebody else's.
    #[must_use]
    pub fn new(identity: impl Into<String>, limits: Limits) -> Self {
        Self {
            identity: identity.into(),
            limits,
            observed: None,
            in_flight: None,
            tenure: None,
            abstains: false,
            must_observe: false,
            leaving: None,
            known_term: Term::default(),
            last_read: Duration::ZERO,
            over: false,
        }
    }

    /// The instant at which a tenure ends by itself; a wake-up is due then.
    #[must_use]
    pub fn valid_until(&self) -> Option<Duration> {
        self.tenure.map(|tenure| tenure.valid_until)
    }

    /// The tenure was lost: nothing more will be done.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.over
    }
}

/// One step: what is known afterwards, and what is to be done, in this order.
#[must_use]
pub fn step(mut state: State, event: Event) -> (State, Vec<Action>) {
    let Event { at, wall, kind } = event;
    let actions = if state.over { Vec::new() } else { state.on(at, wall, kind) };
    (state, actions)
}

impl State {
    fn on(&mut self, at: Duration, wall: Timestamp, kind: EventKind) -> Vec<Action> {
        // Before anything else, also before a late good answer: work that was guarded has been told to stop by now.
        if self.valid_until().is_some_and(|until| at >= until) {
            return self.expire(at);
        }
        match kind {
            EventKind::Abstain(abstains) => {
                self.abstains = abstains;
                Vec::new()
            }
            EventKind::KnownTerm(term) => {
                self.known_term = self.known_term.max(term);
                Vec::new()
            }
            EventKind::Release => {
                self.leaving = Some(self.leaving.unwrap_or(0));
                if self.in_flight.is_some() { Vec::new() } else { self.leave(at, wall) }
            }
            EventKind::Wake if self.in_flight.is_some() => Vec::new(),
            EventKind::Wake => self.attempt(at, wall),
            EventKind::Answer(answer) => match self.in_flight.take() {
                Some(request) => self.on_answer(at, wall, &request, answer),
                None => Vec::new(),
            },
        }
    }

    fn expire(&mut self, at: Duration) -> Vec<Action> {
        self.in_flight = None;
        if self.leaving.is_some() {
            return self.left(at, false);
        }
        self.lose(Lost::NotRenewed(self.limits.renew_deadline))
    }

    fn lose(&mut self, why: Lost) -> Vec<Action> {
        self.tenure = None;
        self.over = true;
        // A wanted release has nothing left to give up; its work has stopped before.
        if self.leaving.take().is_some() {
            return vec![Action::Released { confirmed: false }, Action::Lost(why)];
        }
        vec![Action::Lost(why)]
    }

    /// The next request of a candidate that waits or renews.
    fn attempt(&mut self, at: Duration, wall: Timestamp) -> Vec<Action> {
        match (self.tenure, self.seen_lease()) {
            (Some(tenure), Some(seen)) if !self.must_observe => self.write_ours(at, wall, tenure, seen),
            _ => vec![self.send(at, InFlight { request: Request::Get, sent: at, takes: None, releases: false })],
        }
    }

    /// Renews, or gives up if that is wanted.
    fn write_ours(&mut self, at: Duration, wall: Timestamp, tenure: Tenure, seen: Seen) -> Vec<Action> {
        let releases = self.leaving.is_some();
        if let Some(attempts) = &mut self.leaving {
            *attempts += 1;
        }
        let record = LeaseRecord {
            holder: if releases { String::new() } else { self.identity.clone() },
            term: tenure.term,
            duration: self.limits.lease,
            acquired: tenure.acquired,
            renewed: Some(wall),
        };
        let request = Request::Update(record, seen.version);
        vec![self.send(at, InFlight { request, sent: at, takes: None, releases })]
    }

    /// Begins a tenure with a Lease that may be taken, or claims one that is not there.
    fn take(&mut self, at: Duration, wall: Timestamp, seen: Option<Seen>) -> Vec<Action> {
        let record = LeaseRecord {
            holder: self.identity.clone(),
            term: self.known_term,
            duration: self.limits.lease,
            acquired: Some(wall),
            renewed: Some(wall),
        };
        let term = self.known_term.next();
        let (request, takes) = match seen {
            Some(seen) => (Request::Update(LeaseRecord { term, ..record }, seen.version), Some(term)),
            None => (Request::Create(record), None),
        };
        vec![self.send(at, InFlight { request, sent: at, takes, releases: false })]
    }

    /// Gives the Lease up, or says that there is nothing to give up.
    fn leave(&mut self, at: Duration, wall: Timestamp) -> Vec<Action> {
        match self.tenure {
            None => self.left(at, true),
            Some(_) if self.leaving.is_some_and(|attempts| attempts >= RELEASE_ATTEMPTS) => self.left(at, false),
            Some(_) => self.attempt(at, wall),
        }
    }

    /// After giving up: the candidate waits like any other.
    fn left(&mut self, at: Duration, confirmed: bool) -> Vec<Action> {
        self.tenure = None;
        self.leaving = None;
        let next = at.saturating_add(self.limits.retry);
        vec![Action::Released { confirmed }, Action::WakeAt { at: next, jitter_percent: JITTER_PERCENT }]
    }

    fn send(&mut self, at: Duration, in_flight: InFlight) -> Action {
        let left = self.valid_until().map_or(ATTEMPT_LIMIT, |until| until.saturating_sub(at));
        let request = in_flight.request.clone();
        self.in_flight = Some(in_flight);
        Action::Send { request, limit: left.min(ATTEMPT_LIMIT) }
    }

    fn seen_lease(&self) -> Option<Seen> {
        self.observed.as_ref().and_then(|observed| observed.lease.clone())
    }
}
