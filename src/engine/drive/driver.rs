//! One driver: the loop of one run.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use jiff::SignedDuration;
use maint_core::api::Phase;
use maint_core::api::record::{Maintenance, MaintenanceStatus};
use maint_core::config::Settings;
use maint_core::drain::{Awaits, Eviction, Lane};
use maint_core::facts::Facts;
use maint_core::plan::{self, Act, OwnSeat, Step, StepInput};
use maint_core::planted::{self, Bug};
use tokio::sync::{Mutex, Notify};

use super::aside::Herald;
use super::evictions::{Evictions, VALID, Wire};
use super::fresh::Fresh;
use super::nudges::{Look, Nudges};
use super::outbox::Outbox;
use super::pods::Pods;
use super::records::Records;
use crate::execute::Fenced;
use crate::lead::LeaseGuard;
use crate::ports::{Observe, Wanted};
use crate::runtime::{Clock, Instant};

/// Least time between two writes to a record.
const WRITE_EVERY: Duration = Duration::from_secs(1);
/// Least time between two looks for what budgets and pods tell: in a cluster that is rolled out they tell much.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How soon the world is looked at again after a write that failed, and at most after many.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// What a driver needs of the world.
pub struct Ports<O, F, R> {
    /// Facts.
    pub observe: O,
    /// Fenced writes.
    pub fenced: F,
    /// Records.
    pub records: R,
}

/// How a driver ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverEnd {
    /// The run is over and told.
    Done,
    /// The record is gone.
    Gone,
    /// The run may start under another leader: our own pod is on its node.
    HandOver,
    /// The lease is lost: the process must end.
    LeaseLost,
    /// Another leader has written the record with a higher term: ours is over, whatever the lease says.
    Overtaken,
}

/// The loop of one run.
pub struct Driver<O, F, R> {
    /// Name of the record.
    pub name: String,
    /// The world.
    pub ports: Arc<Ports<O, F, R>>,
    /// The lease.
    pub guard: LeaseGuard,
    /// Time.
    pub clock: Clock,
    /// The settings.
    pub settings: Arc<Settings>,
    /// Wakes the driver: the record, the node or a person's word changed.
    pub wake: Arc<Notify>,
    /// Held while a pending run asks its gates and starts, so that two never start on the same view.
    pub start: Arc<Mutex<()>>,
    /// Told when the run is over, which may be long before its messages are delivered: others may wait for that.
    pub over: Arc<Notify>,
    /// Messages on their way.
    pub outbox: Outbox,
    /// Where our own pod runs, where known.
    pub seat: Option<OwnSeat>,
    /// Tells and remembers beside the run.
    pub(super) herald: Herald,
    /// Evictions on their way.
    pub(super) evictions: Evictions,
    /// What a watch shows of the node's pods.
    pub(super) pods: Pods,
    /// What a drain waits for.
    pub(super) nudges: Nudges,
    /// The last whole look of a drain whose gates agreed.
    pub(super) fresh: Option<Fresh>,
    /// What a drain waited for at the last step.
    pub(super) awaits: Option<Awaits>,
}

/// Waits between tries that failed, longer each time. Without jitter: one driver writes a record, so nobody else comes
/// at the same time, and a night of one seed stays one night.
fn retries() -> impl Iterator<Item = Duration> {
    ExponentialBuilder::default()
        .with_min_delay(RETRY.0)
        .with_max_delay(RETRY.1)
        .with_factor(2.0)
        .without_max_times()
        .build()
}

/// Whether a step changes nothing of a drain but its numbers, and acts by evictions alone. Those need not be written first:
/// nothing else is ever done before it is written why, and none before it is written how many pods there were, since
/// whoever takes over could not tell.
fn only_numbers(record: &Maintenance, step: &Step) -> bool {
    let same = |old: &MaintenanceStatus| {
        (&old.phase, old.term) == (&step.status.phase, step.status.term)
            && old.phase == Phase::Draining.as_str()
            && old.drain.is_some()
    };
    let evicts = step.acts.iter().all(|act| matches!(act, Act::Evict(_)));
    step.awaits.is_some() && evicts && !step.hand_over && !step.done && record.status.as_ref().is_some_and(same)
}

/// Whether a step evicts a pod on what its StatefulSet's status says.
fn asks_a_set(step: &Step) -> bool {
    let of_set = |eviction: &Eviction| matches!(eviction.lane, Lane::StatefulSet(_));
    step.acts.iter().any(|act| matches!(act, Act::Evict(evictions) if evictions.iter().any(of_set)))
}

/// What the next turn of the loop does.
enum Turn {
    End(DriverEnd),
    WaitUntil(jiff::Timestamp),
    Retry,
}

impl<O: Observe, F: Fenced, R: Records> Driver<O, F, R> {
    /// Runs until the run is over, the record is gone, or the lease is. Evictions are on their way beside the loop; none
    /// of them outlives it.
    pub async fn run(mut self) -> DriverEnd {
        let lost = self.guard.child_token();
        let (ports, guard, clock) = (Arc::clone(&self.ports), self.guard.clone(), self.clock.clone());
        let (evictions, pods, nudges) = (self.evictions.clone(), self.pods.clone(), self.nudges.clone());
        let at_a_time = self.settings.run.parallel_evictions;
        let wire =
            Wire { fenced: &ports.fenced, guard: &guard, clock: &clock, pods: &pods, at_a_time, nudges: &nudges };
        tokio::select! {
            biased;
            () = lost.cancelled() => DriverEnd::LeaseLost,
            end = self.drive() => end,
            never = evictions.send(&wire) => match never {},
            never = pods.keep(&clock, &nudges) => match never {},
        }
    }

    async fn drive(&mut self) -> DriverEnd {
        let mut last_write: Option<Instant> = None;
        let mut retry = retries();
        let mut look = Look::Whole;
        loop {
            let wait = match self.turn(look, &mut last_write).await {
                Turn::End(end) => return end,
                Turn::WaitUntil(at) => {
                    retry = retries();
                    let wait = at.duration_since(self.clock.now());
                    Duration::try_from(wait).unwrap_or(Duration::ZERO)
                }
                Turn::Retry => {
                    self.fresh = None;
                    retry.next().unwrap_or(RETRY.1)
                }
            };
            let looked = self.clock.instant();
            let nudged = async {
                self.clock.sleep_until(looked + LOOK_EVERY).await;
                self.nudges.nudged().await
            };
            look = tokio::select! {
                biased;
                () = self.wake.notified() => Look::Whole,
                look = nudged => look,
                () = self.clock.sleep(wait) => Look::Again,
            };
        }
    }

    async fn turn(&mut self, look: Look, last_write: &mut Option<Instant>) -> Turn {
        self.nudges.begin();
        let record = match self.ports.records.get(&self.name).await {
            Ok(Some(record)) => record,
            Ok(None) => return Turn::End(DriverEnd::Gone),
            Err(error) => {
                tracing::warn!(record = self.name, %error, "could not read the record");
                return Turn::Retry;
            }
        };
        let term = self.guard.term().0;
        if record.status.as_ref().is_some_and(|status| status.term > term) {
            return Turn::End(DriverEnd::Overtaken);
        }
        let pending = plan::phase_of(&record) == Phase::Pending;
        let start = Arc::clone(&self.start);
        let _starting = if pending && !planted::is(Bug::StartsOnOneView) { Some(start.lock().await) } else { None };
        if !self.fresh.as_ref().is_some_and(|fresh| fresh.knows(&record)) {
            // Somebody said something since the gates were asked, or they did not agree: what was asked for is not sent.
            self.evictions.ask(&[], self.clock.instant(), &self.clock);
        }
        let step = self.decide(look, &record, term).await;
        if step.awaits.is_none() {
            // The record is written first, and that takes its time.
            self.evictions.ask(&[], self.clock.instant(), &self.clock);
        }
        let only_numbers = only_numbers(&record, &step);
        if only_numbers {
            self.act(&record, &step).await;
            if let Some(at) = self.write_later(&record, &step, *last_write) {
                return Turn::WaitUntil(at.min(step.wake_at));
            }
        }
        let old = record.status.clone();
        let record = match self.write(record, step.status.clone(), last_write).await {
            Ok(record) => record,
            Err(turn) => return turn,
        };
        self.herald.wrote(old.as_ref(), &record, self.clock.now());
        if step.hand_over {
            return Turn::End(DriverEnd::HandOver);
        }
        if !only_numbers && let Some(turn) = self.act(&record, &step).await {
            return turn;
        }
        if step.done && self.outbox.is_settled(record.status.as_ref(), self.clock.now()) {
            return Turn::End(DriverEnd::Done);
        }
        let hot = SignedDuration::from_millis(if planted::is(Bug::WritesAllTheTime) { 100 } else { i64::MAX });
        Turn::WaitUntil(step.wake_at.min(self.clock.now().saturating_add(hot).unwrap_or(jiff::Timestamp::MAX)))
    }

    /// When the numbers of a drain are to be written that do not have to be written yet: a second after the last write.
    fn write_later(&self, record: &Maintenance, step: &Step, last_write: Option<Instant>) -> Option<jiff::Timestamp> {
        let ago = self.clock.instant().duration_since(last_write?);
        let left = WRITE_EVERY.checked_sub(ago).filter(|left| !left.is_zero())?;
        let left = SignedDuration::try_from(left).ok()?;
        let other = record.status.as_ref() != Some(&step.status);
        other.then(|| self.clock.now().saturating_add(left).unwrap_or(jiff::Timestamp::MAX))
    }

    /// Does what a step asks for. Evictions are only handed over; every other act waits until none is on its way.
    async fn act(&self, record: &Maintenance, step: &Step) -> Option<Turn> {
        let drains = matches!(plan::phase_of(record), Phase::Cordoning | Phase::Draining | Phase::Acting);
        self.pods.want(drains);
        if !drains {
            self.evictions.forget();
        }
        let evictions = step.acts.iter().find_map(|act| match act {
            Act::Evict(evictions) => Some(evictions.as_slice()),
            _ => None,
        });
        let until = self.fresh.as_ref().map_or_else(|| self.clock.instant(), |fresh| fresh.at + VALID);
        self.evictions.ask(evictions.unwrap_or_default(), until, &self.clock);
        self.nudges.wait_for(step.awaits.as_ref());
        for act in &step.acts {
            tracing::info!(record = self.name, node = record.spec.node_name, act = act.as_str(), "Acting");
            if matches!(act, Act::Evict(_)) {
                continue;
            }
            self.evictions.quiet().await;
            if let Err(error) = self.ports.fenced.perform(&self.guard, record, act).await {
                tracing::info!(record = self.name, act = act.as_str(), category = error.category(), %error, "did not act");
                return Some(Turn::Retry);
            }
        }
        None
    }

    /// Decides the next step, on as much of the world as is needed.
    async fn decide(&mut self, look: Look, record: &Maintenance, term: i64) -> Step {
        if look == Look::Again
            && let Some(step) = self.decide_again(record, term).await
        {
            return step;
        }
        let wanted = plan::wanted(record, &self.settings, self.awaits.as_ref());
        let wanted = Wanted { sources: wanted.sources, target: Some(wanted.node), every_pair: false };
        let facts = self.ports.observe.observe(&wanted).await;
        let step = self.step(record, &facts, term);
        self.herald.looked(&facts, &step, &self.settings, self.clock.now());
        self.fresh = Fresh::of(facts, record, &step, &self.clock);
        step
    }

    /// Chooses anew who goes next, shortly after a whole look whose gates agreed. Whatever else would follow is decided on
    /// a whole look; until then nothing more is sent.
    async fn decide_again(&mut self, record: &Maintenance, term: i64) -> Option<Step> {
        let mut fresh = self.fresh.take().filter(|fresh| fresh.serves(record, self.clock.instant()))?;
        let wanted = plan::wanted_again(record, &fresh.awaits);
        let wanted = Wanted { sources: wanted.sources, target: Some(wanted.node), every_pair: false };
        fresh.facts.overlay(self.ports.observe.observe_around(&wanted).await, &record.spec.node_name);
        let mut step = self.step(record, &fresh.facts, term);
        match &step.awaits {
            Some(awaits) if only_numbers(record, &step) && (fresh.awaits.sets || !asks_a_set(&step)) => {
                step.wake_at = step.wake_at.min(fresh.look_at);
                fresh.awaits = awaits.clone();
                self.fresh = Some(fresh);
                Some(step)
            }
            _ => {
                self.evictions.ask(&[], self.clock.instant(), &self.clock);
                None
            }
        }
    }

    fn step(&mut self, record: &Maintenance, facts: &Facts, term: i64) -> Step {
        let answers = self.evictions.answers();
        let mut step = plan::step(&StepInput {
            record,
            facts,
            settings: &self.settings,
            term,
            answers: &answers,
            seat: self.seat.as_ref(),
            watched: self.pods.is_watching(),
            now: self.clock.now(),
        });
        self.outbox.mark(&mut step.status.outbox);
        self.awaits.clone_from(&step.awaits);
        step
    }

    fn offer(&self, record: &Maintenance) {
        if let Some(status) = &record.status {
            self.outbox.offer(&record.spec.node_name, &status.outbox);
        }
    }

    /// Writes the status where it changed, at most once a second, and hands new messages to delivery.
    async fn write(
        &mut self,
        record: Maintenance,
        status: MaintenanceStatus,
        last_write: &mut Option<Instant>,
    ) -> Result<Maintenance, Turn> {
        if record.status.as_ref() == Some(&status) && !planted::is(Bug::WritesAllTheTime) {
            self.offer(&record);
            return Ok(record);
        }
        if let Some(last) = last_write.filter(|_| !planted::is(Bug::WritesAllTheTime)) {
            self.clock.sleep_until(last + WRITE_EVERY).await;
        }
        let before = plan::phase_of(&record);
        match self.ports.fenced.write_status(&self.guard, &record, &status).await {
            Ok(written) => {
                *last_write = Some(self.clock.instant());
                let after = plan::phase_of(&written);
                if before != after {
                    tracing::info!(record = self.name, node = record.spec.node_name, %before, %after, why = status.message, "Entering");
                    if after.is_terminal() {
                        self.over.notify_one();
                    }
                }
                self.outbox.written();
                self.offer(&written);
                Ok(written)
            }
            // Somebody wrote first: read again and decide anew, never write blindly.
            Err(error) => {
                tracing::info!(record = self.name, category = error.category(), %error, "did not write the record");
                Err(Turn::Retry)
            }
        }
    }
}
