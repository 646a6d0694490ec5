//! One lane for each receiver: messages of all records one after the other, none waiting for another receiver.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use maint_core::api::record::OutboxEntry;
use maint_core::report::delivery::{self, Attempt, Next};
use tokio::sync::{mpsc, watch};

use super::receiver::Letter;
use crate::runtime::Env;

/// Somebody who takes messages.
pub trait Post: Send + Sync + 'static {
    /// Its name in the configuration.
    fn name(&self) -> &str;

    /// Tries once, within a limit of its own.
    fn post(&self, letter: &Letter, now: Timestamp) -> impl Future<Output = Attempt> + Send;
}

/// How a try ended: for the writer of the record, who marks it with [`delivery::mark`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Name of the record.
    pub record: String,
    /// `OutboxEntry::id`
    pub entry: String,
    /// Name of the receiver.
    pub receiver: String,
    /// How it ended.
    pub attempt: Attempt,
    /// When.
    pub at: Timestamp,
}

/// Hands outboxes over. Dropping all handles ends the lanes.
#[derive(Debug, Clone)]
pub struct Delivery {
    board: Board,
    changed: Arc<watch::Sender<()>>,
}

/// Between two messages to one receiver: Slack takes about one a second.
const PACE: Duration = Duration::from_secs(1);

/// What is on the board of one record.
#[derive(Debug, Default)]
struct Records(BTreeMap<String, Posted>);

#[derive(Debug, Default)]
struct Posted {
    node: String,
    outbox: Vec<OutboxEntry>,
}

#[derive(Debug, Clone, Default)]
struct Board(Arc<Mutex<Records>>);

impl Board {
    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<String, Posted>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).0)
    }
}

/// Begins to deliver. Results come through the channel; they are few, as each receiver has one try at a time.
pub fn deliver<P: Post>(env: &Env, receivers: Vec<P>) -> (Delivery, mpsc::UnboundedReceiver<Outcome>) {
    let (changed, seen) = watch::channel(());
    let (outcomes, results) = mpsc::unbounded_channel();
    let board = Board::default();
    for receiver in receivers {
        let lane = Lane {
            env: env.clone(),
            board: board.clone(),
            receiver,
            outcomes: outcomes.clone(),
            not_before: Timestamp::MIN,
        };
        env.tasks.spawn(lane.run(seen.clone()));
    }
    (Delivery { board, changed: Arc::new(changed) }, results)
}

impl Delivery {
    /// The outbox of a record as it was just written or read. Never waits. Results that were given back and are not in
    /// it yet are not forgotten. To be called after every write, and once for each unfinished record by a new leader.
    pub fn offer(&self, record: &str, node: &str, mut outbox: Vec<OutboxEntry>) {
        self.board.with(|records| {
            if let Some(posted) = records.get(record) {
                delivery::merge(&mut outbox, &posted.outbox);
            }
            records.insert(record.to_owned(), Posted { node: node.to_owned(), outbox });
        });
        self.changed.send_replace(());
    }

    /// The record is gone, or has nothing more to tell.
    pub fn forget(&self, record: &str) {
        self.board.with(|records| records.remove(record));
    }
}

struct Lane<P> {
    env: Env,
    board: Board,
    receiver: P,
    outcomes: mpsc::UnboundedSender<Outcome>,
    /// The receiver itself asked to be left alone.
    not_before: Timestamp,
}

enum Turn {
    Try(Letter),
    TooOld { record: String, entry: String },
    Wait(Option<Timestamp>),
}

impl<P: Post> Lane<P> {
    async fn run(mut self, mut changed: watch::Receiver<()>) {
        let stopping = self.env.tasks.stopping();
        loop {
            changed.mark_unchanged();
            let now = self.env.clock.now();
            match self.turn(now) {
                Turn::Try(letter) => {
                    // A message on its way when all stops is sent again by the next leader: at least once.
                    let Some(attempt) = stopping.run_until_cancelled(self.receiver.post(&letter, now)).await else {
                        return;
                    };
                    self.note(&letter.record, &letter.entry.id, attempt);
                    if stopping.run_until_cancelled(self.env.clock.sleep(PACE)).await.is_none() {
                        return;
                    }
                }
                Turn::TooOld { record, entry } => self.note(&record, &entry, Attempt::TooOld),
                Turn::Wait(until) => {
                    let wait = until.map(|until| Duration::try_from(until.duration_since(now)).unwrap_or_default());
                    let clock = self.env.clock.clone();
                    let due = async move {
                        match wait {
                            Some(wait) => clock.sleep(wait).await,
                            None => std::future::pending().await,
                        }
                    };
                    tokio::select! {
                        biased;
                        () = stopping.cancelled() => return,
                        more = changed.changed() => if more.is_err() { return },
                        () = due => {}
                    }
                }
            }
        }
    }

    /// The most pressing message of all records: critical ones first, then the oldest.
    fn turn(&self, now: Timestamp) -> Turn {
        let name = self.receiver.name();
        self.board.with(|records| {
            let mut best: Option<((bool, &str), Letter)> = None;
            let mut wait: Option<Timestamp> = None;
            for (record, Posted { node, outbox }) in records.iter() {
                match delivery::next(outbox, name, now) {
                    Next::GiveUp(index) => {
                        let entry = outbox.get(index).map(|entry| entry.id.clone()).unwrap_or_default();
                        return Turn::TooOld { record: record.clone(), entry };
                    }
                    Next::Wait(at) => wait = Some(wait.map_or(at, |wait| wait.min(at))),
                    Next::Nothing => {}
                    Next::Send(index) => {
                        let Some(entry) = outbox.get(index) else { continue };
                        // What waits behind it in its record counts: the order there is kept.
                        let critical = outbox.iter().skip(index).any(|entry| entry.severity == "critical");
                        let key = (!critical, entry.created_at.as_str());
                        if best.as_ref().is_none_or(|(other, _)| key < *other) {
                            let letter = Letter { record: record.clone(), node: node.clone(), entry: entry.clone() };
                            best = Some((key, letter));
                        }
                    }
                }
            }
            match best {
                Some(_) if self.not_before > now => Turn::Wait(Some(self.not_before)),
                Some((_, letter)) => Turn::Try(letter),
                None => Turn::Wait(wait),
            }
        })
    }

    fn note(&mut self, record: &str, entry: &str, attempt: Attempt) {
        let (at, name) = (self.env.clock.now(), self.receiver.name().to_owned());
        if let Attempt::Later { retry_after_seconds: Some(seconds), .. } = attempt {
            let pause = jiff::SignedDuration::from_secs(seconds.min(delivery::RETRY_AFTER_MAX_SECONDS));
            self.not_before = at.saturating_add(pause).unwrap_or(at);
        }
        match &attempt {
            Attempt::Delivered => tracing::info!(receiver = name, record, "message delivered"),
            Attempt::Later { error, .. } => tracing::warn!(receiver = name, record, error, "message not delivered yet"),
            Attempt::Refused { error } => tracing::error!(receiver = name, record, error, "message refused"),
            Attempt::TooOld => tracing::error!(receiver = name, record, "message too old"),
        }
        self.board.with(|records| {
            let known =
                records.get_mut(record).and_then(|posted| posted.outbox.iter_mut().find(|known| known.id == entry));
            if let Some(known) = known {
                delivery::mark(known, &name, &attempt, at);
            }
        });
        let (record, entry) = (record.to_owned(), entry.to_owned());
        // Without a writer the record is not marked, and the next leader sends again: at least once.
        let _ = self.outcomes.send(Outcome { record, entry, receiver: name, attempt, at });
    }
}
