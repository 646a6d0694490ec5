//! One pass over the chosen cells.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use maint_core::facts::Observation;
use maint_core::matrix::classify::{self, Answer};
use maint_core::matrix::{Cell, CellVerdict, Matrix, Readiness};
use tokio::sync::Notify;

use super::cells::chosen;
use crate::observe::{ServerClient, ask_again};
use crate::ports::{Probes, Question};
use crate::runtime::{Clock, Instant};

/// Probes in flight for each API server.
const CONCURRENT_PROBES: usize = 12;
/// How long an API server's row begins new probes, in seconds. Where every probe hangs, a long row would else take
/// longer than its answers may be old; what is left then is not known.
const ROW_SECONDS: u64 = 20;
/// How long a sweep waits for its turn at a cell that another sweep is asking, in seconds: every run and every wish sweeps
/// for itself, and what answers at all answers within that time.
const TURN_SECONDS: u64 = 5;
/// How long a cell is left alone after its first time-out, in seconds; doubled after each further one.
const FIRST_REST_SECONDS: u64 = 15;
/// The longest time that a cell is left alone, in seconds.
const LONGEST_REST_SECONDS: u64 = 240;

/// Sweeps, and remembers what hangs.
#[derive(Debug)]
pub struct Prober {
    clock: Clock,
    pairs: Mutex<BTreeMap<Pair, Memory>>,
    /// A probe has ended.
    landed: Notify,
}

/// API server and node.
type Pair = (String, String);

/// What is remembered of a pair that is being asked, or hung the last time.
#[derive(Debug, Clone)]
struct Memory {
    in_flight: bool,
    rest: Option<Rest>,
}

#[derive(Debug, Clone)]
struct Rest {
    until: Instant,
    length: Duration,
    /// What the time-out was judged to be.
    cell: Cell,
}

/// A cell before its server's final word: what was answered, and how long it took.
struct Asked {
    column: usize,
    milliseconds: u64,
    outcome: Outcome,
}

enum Outcome {
    /// The answers; health is asked only where the fresh dial is whole.
    Answers { dial: Answer, health: Option<Answer> },
    /// The cell rests after a time-out: its last verdict stands.
    Resting(Cell),
}

impl Prober {
    /// A prober that remembers nothing yet.
    #[must_use]
    pub const fn new(clock: Clock) -> Self {
        Self { clock, pairs: Mutex::new(BTreeMap::new()), landed: Notify::const_new() }
    }

    /// Asks the chosen cells: all of them, or around the target where the matrix is larger than `full_limit` cells.
    /// Rows are the API servers that were asked whether they are ready, columns the nodes.
    pub async fn sweep<C: Probes>(
        &self,
        servers: &[ServerClient<C>],
        nodes: &[String],
        target: Option<&str>,
        full_limit: usize,
    ) -> Observation<Matrix> {
        let swept_at = self.clock.now();
        let server_nodes: Vec<Option<&str>> = servers.iter().map(|server| server.server.node.as_deref()).collect();
        let columns: Vec<&str> = nodes.iter().map(String::as_str).collect();
        let pairs = chosen(&server_nodes, &columns, target, full_limit);
        let rows = servers.iter().enumerate().map(|(row, server)| {
            let of_row: Vec<usize> = pairs.iter().filter(|pair| pair.0 == row).map(|pair| pair.1).collect();
            self.row(server, nodes, of_row)
        });
        let mut cells = Vec::with_capacity(pairs.len());
        for row in join_all(rows).await {
            cells.extend(row);
        }
        let matrix = Matrix {
            servers: servers.iter().map(|server| server.server.name.clone()).collect(),
            nodes: nodes.to_vec(),
            around: target.filter(|_| cells.len() < servers.len() * nodes.len()).map(str::to_owned),
            cells,
            swept_at,
        };
        Observation::Known { value: matrix, at: swept_at }
    }

    /// All cells of one API server.
    async fn row<C: Probes>(&self, server: &ServerClient<C>, nodes: &[String], columns: Vec<usize>) -> Vec<Cell> {
        let until = self.clock.instant() + Duration::from_secs(ROW_SECONDS);
        let mut asked: Vec<Asked> = stream::iter(columns)
            .map(|column| self.ask(column, server, nodes.get(column).map_or("", String::as_str), until))
            .buffer_unordered(CONCURRENT_PROBES)
            .collect()
            .await;
        asked.sort_by_key(|asked| asked.column);
        // A server that went away during the sweep must not look like broken paths: where something got no answer at
        // all, its readiness after the sweep decides.
        let readiness = if asked.iter().any(Asked::got_no_answer) {
            ask_again(&self.clock, server).await
        } else {
            server.server.readiness.clone()
        };
        asked.into_iter().map(|asked| self.judge(asked, server, &readiness, nodes)).collect()
    }

    async fn ask<C: Probes>(&self, column: usize, server: &ServerClient<C>, node: &str, until: Instant) -> Asked {
        let mut begun = self.clock.instant();
        let outcome = self.outcome(server, node, until, &mut begun).await;
        let elapsed = self.clock.instant().duration_since(begun);
        let milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        Asked { column, milliseconds, outcome }
    }

    /// `begun` is moved to when the cell's turn came.
    async fn outcome<C: Probes>(
        &self,
        server: &ServerClient<C>,
        node: &str,
        until: Instant,
        begun: &mut Instant,
    ) -> Outcome {
        let not_sent =
            |detail: &str| Outcome::Answers { dial: Answer::NotSent { detail: detail.to_owned() }, health: None };
        // A server that does not even answer /readyz is not asked for a thousand kubelets.
        let client = match (&server.client, &server.server.readiness) {
            (_, Readiness::Unreachable { detail }) => {
                let dial = Answer::NoConnection { detail: detail.clone() };
                return Outcome::Answers { dial, health: None };
            }
            (None, Readiness::Unknown { detail }) => return not_sent(detail),
            (None, _) => return not_sent("there is no client for this API server"),
            (Some(client), _) => client,
        };
        if self.clock.instant() > until {
            return not_sent(&format!("the probes of this API server already took {ROW_SECONDS} s"));
        }
        let pair = (server.server.name.clone(), node.to_owned());
        let _flight = match self.turn(&pair, until).await {
            Ok(flight) => flight,
            Err(Some(cell)) => return Outcome::Resting(cell),
            Err(None) => return not_sent("an earlier probe of this pair is still in flight"),
        };
        *begun = self.clock.instant();
        let dial = client.ask(&self.clock, Question::FreshDial(node)).await.answer;
        // Whether the server is ready plays no part in a whole dial.
        let whole = classify::fresh_dial(&dial, &server.server.readiness).0 == CellVerdict::Green;
        let health = if whole { Some(client.ask(&self.clock, Question::Healthz(node)).await.answer) } else { None };
        Outcome::Answers { dial, health }
    }

    fn judge<C>(&self, asked: Asked, server: &ServerClient<C>, readiness: &Readiness, nodes: &[String]) -> Cell {
        let Asked { column, milliseconds, outcome } = asked;
        let (dial, health) = match outcome {
            Outcome::Resting(cell) => return cell,
            Outcome::Answers { dial, health } => (dial, health),
        };
        let timed_out = matches!(dial, Answer::TimedOut { .. }) || matches!(health, Some(Answer::TimedOut { .. }));
        let judged_health = health.map(|health| classify::health(&health, readiness));
        let (verdict, detail) = classify::cell(classify::fresh_dial(&dial, readiness), judged_health);
        let node = nodes.get(column).cloned().unwrap_or_default();
        let diagonal = server.server.node.as_ref() == Some(&node);
        let cell = Cell { server: server.server.name.clone(), node, diagonal, verdict, detail, milliseconds };
        self.remember(&cell, timed_out);
        cell
    }

    /// Takes off, as soon as the pair is in nobody else's flight; not for long, since what hangs hangs for both.
    async fn turn(&self, pair: &Pair, until: Instant) -> Result<Flight<'_>, Option<Cell>> {
        let last = until.min(self.clock.instant() + Duration::from_secs(TURN_SECONDS));
        loop {
            let mut landed = std::pin::pin!(self.landed.notified());
            // From here on no landing is missed.
            landed.as_mut().enable();
            let taken_off = self.take_off(pair);
            let now = self.clock.instant();
            if !matches!(taken_off, Err(None)) || now >= last {
                return taken_off;
            }
            // Late or not: the next look decides.
            let _ = self.clock.timeout(last.duration_since(now), landed).await;
        }
    }

    /// Marks a pair as in flight, unless it is, or rests.
    fn take_off(&self, pair: &Pair) -> Result<Flight<'_>, Option<Cell>> {
        let mut pairs = self.pairs();
        let memory = pairs.entry(pair.clone()).or_insert(Memory { in_flight: false, rest: None });
        if memory.in_flight {
            return Err(None);
        }
        let now = self.clock.instant();
        if let Some(rest) = memory.rest.as_ref().filter(|rest| rest.until > now) {
            let seconds = rest.until.duration_since(now).as_secs().max(1);
            let mut cell = rest.cell.clone();
            cell.detail = format!("{}; it is asked again in {seconds} s", cell.detail);
            return Err(Some(cell));
        }
        memory.in_flight = true;
        Ok(Flight { prober: self, pair: pair.clone() })
    }

    /// Notes a time-out, or forgets the earlier ones.
    fn remember(&self, cell: &Cell, timed_out: bool) {
        let pair = (cell.server.clone(), cell.node.clone());
        let mut pairs = self.pairs();
        let in_flight = pairs.get(&pair).is_some_and(|memory| memory.in_flight);
        let before = pairs.remove(&pair).and_then(|memory| memory.rest);
        let rest = timed_out.then(|| {
            let first = Duration::from_secs(FIRST_REST_SECONDS);
            let longest = Duration::from_secs(LONGEST_REST_SECONDS);
            let length = before.map_or(first, |before| before.length.saturating_mul(2).min(longest));
            Rest { until: self.clock.instant() + length, length, cell: cell.clone() }
        });
        if in_flight || rest.is_some() {
            pairs.insert(pair, Memory { in_flight, rest });
        }
    }

    fn pairs(&self) -> MutexGuard<'_, BTreeMap<Pair, Memory>> {
        // Nothing panics while it holds the lock; if it did, the map would still be whole.
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asked {
    fn got_no_answer(&self) -> bool {
        let none = |answer: &Answer| matches!(answer, Answer::TimedOut { .. } | Answer::NoConnection { .. });
        match &self.outcome {
            Outcome::Answers { dial, health } => none(dial) || health.as_ref().is_some_and(none),
            Outcome::Resting(_) => false,
        }
    }
}

/// A probe in flight; dropping it, also by cancelling the sweep, ends the flight.
struct Flight<'a> {
    prober: &'a Prober,
    pair: Pair,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if let Some(memory) = self.prober.pairs().get_mut(&self.pair) {
            memory.in_flight = false;
        }
        self.prober.landed.notify_waiters();
    }
}

#[cfg(test)]
mod connections;
#[cfg(test)]
mod tests;
