//! Drives one candidate: sends what the pure step wants, wakes it, and shows what came of it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use maint_core::config::Election;
use maint_core::election::{Action, Answer, BadElection, Event, EventKind, Limits, Lost, Request, State, Term, step};
use tokio::sync::{mpsc, oneshot, watch};

use super::guard::{LeaseGuard, Validity};
use super::store::LeaseStore;
use crate::runtime::{Env, Instant};

/// Who leads, as this replica knows it.
#[derive(Debug, Clone, PartialEq)]
pub enum Leadership {
    /// Nothing is known yet, or nothing could be read for a whole duration of the Lease.
    Unknown,
    /// Another replica leads, or nobody.
    Following {
        /// Its identity: pod name, `_`, a random suffix.
        holder: Option<String>,
    },
    /// This replica leads.
    Leading(LeaseGuard),
    /// This replica led and lost the Lease. It will not stand again: the process must end.
    Lost(Lost),
    /// The candidacy ended without a loss: resigned, or its task is gone.
    Resigned,
}

/// How giving the Lease up went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Another replica can take it at once, or we held none.
    Confirmed,
    /// The API did not confirm it: it runs out by itself.
    RunsOut,
}

/// The candidate cannot stand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeadError {
    /// The settings make no sense.
    #[error(transparent)]
    Settings(#[from] BadElection),
}

impl LeadError {
    /// Label of metrics and Events.
    #[must_use]
    pub const fn category(&self) -> &'static str {
        match self {
            Self::Settings(_) => "settings",
        }
    }
}

/// The candidacy is over: its task has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the candidacy is over")]
pub struct Ended;

/// A candidate at work. Dropping all of its handles ends it and its tenure, without releasing the Lease.
#[derive(Debug, Clone)]
pub struct Candidacy {
    identity: Arc<str>,
    leadership: watch::Receiver<Leadership>,
    wishes: mpsc::Sender<Wish>,
}

#[derive(Debug)]
enum Wish {
    Abstain(bool),
    KnownTerm(Term),
    Release { resign: bool, done: oneshot::Sender<Release> },
}

impl Candidacy {
    /// Pod name, `_`, a random suffix of this process.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Who leads, and every change of it.
    #[must_use]
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.leadership.clone()
    }

    /// While true, a Lease that somebody released is left to others; one that nobody renews is taken all the same. A
    /// leader goes on until it releases.
    ///
    /// # Errors
    /// If the candidacy is over.
    pub async fn abstain(&self, abstains: bool) -> Result<(), Ended> {
        self.wishes.send(Wish::Abstain(abstains)).await.map_err(|_| Ended)
    }

    /// Tells the highest term found in records. The next tenure has a higher one, even if somebody deleted the Lease.
    ///
    /// # Errors
    /// If the candidacy is over.
    pub async fn known_term(&self, term: Term) -> Result<(), Ended> {
        self.wishes.send(Wish::KnownTerm(term)).await.map_err(|_| Ended)
    }

    /// Gives the Lease up and waits like any other candidate. **Only after all guarded work has stopped**: the guard
    /// ends with the call, and another replica may act before it returns.
    ///
    /// # Errors
    /// If the candidacy is over.
    pub async fn release(&self) -> Result<Release, Ended> {
        self.leave(false).await
    }

    /// Gives the Lease up and ends the candidacy. **Only after all guarded work has stopped.**
    ///
    /// # Errors
    /// If the candidacy is over already.
    pub async fn resign(&self) -> Result<Release, Ended> {
        self.leave(true).await
    }

    async fn leave(&self, resign: bool) -> Result<Release, Ended> {
        let (done, released) = oneshot::channel();
        self.wishes.send(Wish::Release { resign, done }).await.map_err(|_| Ended)?;
        released.await.map_err(|_| Ended)
    }
}

/// Stands as a candidate for the Lease of `store`.
///
/// # Errors
/// If the settings make no sense.
pub fn stand<S: LeaseStore>(env: &Env, store: S, settings: &Election, pod: &str) -> Result<Candidacy, LeadError> {
    let (candidacy, work) = candidate(env, store, settings, pod)?;
    env.tasks.spawn(work);
    Ok(candidacy)
}

/// A candidate and the work of its task.
pub(super) fn candidate<S: LeaseStore>(
    env: &Env,
    store: S,
    settings: &Election,
    pod: &str,
) -> Result<(Candidacy, impl Future<Output = ()> + Send + 'static), LeadError> {
    let limits = Limits::try_from(settings)?;
    // A restarted process is another candidate: what its predecessor left on its way may still arrive.
    let identity = format!("{pod}_{}", env.rng.suffix(10));
    let (shown, leadership) = watch::channel(Leadership::Unknown);
    let (wishes, wished) = mpsc::channel(8);
    let elector = Elector {
        env: env.clone(),
        store: Arc::new(store),
        origin: env.clock.instant(),
        state: State::new(identity.clone(), limits),
        shown: Shown(shown),
        in_flight: None,
        wake: None,
        leaving: Vec::new(),
        resigns: false,
    };
    Ok((Candidacy { identity: identity.into(), leadership, wishes }, elector.run(wished)))
}

struct Elector<S> {
    env: Env,
    store: Arc<S>,
    origin: Instant,
    state: State,
    shown: Shown,
    in_flight: Option<Pin<Box<dyn Future<Output = Answer> + Send>>>,
    wake: Option<Instant>,
    leaving: Vec<oneshot::Sender<Release>>,
    resigns: bool,
}

/// What is shown. However the task ends, its guard ends with it.
struct Shown(watch::Sender<Leadership>);

impl Shown {
    fn show(&self, now: Leadership) {
        self.0.send_if_modified(|shown| {
            if *shown == now {
                return false;
            }
            if let Leadership::Leading(guard) = shown {
                guard.end();
            }
            *shown = now;
            true
        });
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let lost = matches!(&*self.0.borrow(), Leadership::Lost(_));
        if !lost {
            self.show(Leadership::Resigned);
        }
    }
}

impl<S: LeaseStore> Elector<S> {
    async fn run(mut self, mut wished: mpsc::Receiver<Wish>) {
        let mut kind = EventKind::Wake;
        loop {
            let event = Event { at: self.local(), wall: self.env.clock.now(), kind };
            let (state, actions) = step(self.state.clone(), event);
            self.state = state;
            for action in actions {
                self.act(action);
            }
            if self.state.is_over() || (self.resigns && self.leaving.is_empty()) {
                return;
            }
            let Some(next) = self.next(&mut wished).await else { return };
            kind = next;
        }
    }

    /// Waits for the next event; none when nobody holds a handle any more.
    async fn next(&mut self, wished: &mut mpsc::Receiver<Wish>) -> Option<EventKind> {
        let clock = self.env.clock.clone();
        let valid_until = self.state.valid_until().map(|until| self.origin + until);
        let at = |instant: Option<Instant>| {
            let clock = clock.clone();
            async move {
                match instant {
                    Some(instant) => clock.sleep_until(instant).await,
                    None => std::future::pending().await,
                }
            }
        };
        tokio::select! {
            biased;
            () = at(valid_until) => Some(EventKind::Wake),
            answer = answered(&mut self.in_flight) => {
                self.in_flight = None;
                Some(EventKind::Answer(answer))
            }
            wish = wished.recv() => wish.map(|wish| self.wish(wish)),
            () = at(self.wake), if self.in_flight.is_none() => {
                self.wake = None;
                Some(EventKind::Wake)
            }
        }
    }

    fn wish(&mut self, wish: Wish) -> EventKind {
        match wish {
            Wish::Abstain(abstains) => EventKind::Abstain(abstains),
            Wish::KnownTerm(term) => EventKind::KnownTerm(term),
            Wish::Release { resign, done } => {
                // The guard ends before the request that lets others act is sent.
                if matches!(&*self.shown.0.borrow(), Leadership::Leading(_)) {
                    self.shown_following();
                }
                self.resigns |= resign;
                self.leaving.push(done);
                EventKind::Release
            }
        }
    }

    fn shown_following(&self) {
        self.shown.show(Leadership::Following { holder: None });
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Send { request, limit } => self.send(request, limit),
            Action::WakeAt { at, jitter_percent } => {
                let wait = at.saturating_sub(self.local());
                self.wake = Some(self.env.clock.instant() + self.env.rng.jitter(wait, jitter_percent));
            }
            Action::Lead { term, valid_until } => {
                let guard = LeaseGuard::new(term, self.env.clock.clone(), self.validity(valid_until));
                tracing::info!(%term, "leading");
                self.shown.show(Leadership::Leading(guard));
            }
            Action::Renewed { valid_until } => {
                if let Leadership::Leading(guard) = &*self.shown.0.borrow() {
                    guard.renew(self.validity(valid_until));
                }
            }
            Action::Follow { holder } => self.shown.show(Leadership::Following { holder }),
            Action::Unknown => self.shown.show(Leadership::Unknown),
            Action::Lost(why) => {
                tracing::error!(%why, "leadership lost");
                self.shown.show(Leadership::Lost(why));
            }
            Action::Released { confirmed } => {
                let release = if confirmed { Release::Confirmed } else { Release::RunsOut };
                for done in self.leaving.drain(..) {
                    // Who asked may be gone; the Lease is released all the same.
                    let _ = done.send(release);
                }
            }
        }
    }

    fn send(&mut self, request: Request, limit: Duration) {
        let (store, clock) = (Arc::clone(&self.store), self.env.clock.clone());
        self.in_flight = Some(Box::pin(async move {
            let attempt = async {
                match request {
                    Request::Get => store.get().await,
                    Request::Create(record) => store.create(record).await,
                    Request::Update(record, version) => store.update(record, version).await,
                }
            };
            let answer = clock.timeout(limit, attempt).await.unwrap_or_else(|late| Answer::Failed(late.to_string()));
            if let Answer::Failed(why) = &answer {
                tracing::warn!(%why, "the Lease could not be read or written");
                store.move_on();
            }
            answer
        }));
    }

    fn local(&self) -> Duration {
        self.env.clock.instant().duration_since(self.origin)
    }

    fn validity(&self, valid_until: Duration) -> Validity {
        let left = valid_until.saturating_sub(self.local());
        let wall_until = self.env.clock.now().saturating_add(left).unwrap_or(jiff::Timestamp::MIN);
        Validity { until: self.origin + valid_until, wall_until }
    }
}

async fn answered(in_flight: &mut Option<Pin<Box<dyn Future<Output = Answer> + Send>>>) -> Answer {
    match in_flight {
        Some(request) => request.await,
        None => std::future::pending().await,
    }
}
