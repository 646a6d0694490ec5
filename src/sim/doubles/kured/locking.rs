//! The three operations on the lock: read, decide, write, and try again.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::calls::{self, Call, Failure};
use super::lock::{self, Acquire};
use super::log::duration;
use super::settings::Range;
use super::ticker::after;
use super::{At, Kured};

/// What is done with the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Holding,
    Acquire,
    Release,
}

/// Where it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    StartUp,
    Tick,
    FailedDrain,
}

/// Where an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// `--lock-release-delay`
    Delay,
    /// The DaemonSet.
    Read,
    /// The next attempt to read it.
    Pause,
    /// The write.
    Write,
    /// The second after a conflict.
    Conflict,
}

/// A step of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LockStep {
    operation: Operation,
    purpose: Purpose,
    stage: Stage,
    /// When reading the DaemonSet is given up.
    give_up: Timestamp,
}

/// Between two attempts to read the DaemonSet.
const RETRY: Duration = Duration::from_secs(5);
/// After so long it is not tried again.
const GIVE_UP: Duration = Duration::from_secs(300);
/// Between a conflict and the next attempt; there is no limit of attempts.
const CONFLICT: Duration = Duration::from_secs(1);

impl Kured {
    pub(super) fn lock_begin(&mut self, operation: Operation, purpose: Purpose) {
        let step = LockStep { operation, purpose, stage: Stage::Delay, give_up: self.now };
        let delay = self.settings.lock_release_delay;
        // Up to 1.16.1 only the start-up waited.
        let waits = self.settings.range() == Range::Current || purpose == Purpose::StartUp;
        if operation == Operation::Release && waits && !delay.is_zero() {
            self.info(match self.settings.range() {
                Range::Current => format!("Waiting {} before releasing lock", duration(delay)),
                _ => format!("Delaying lock release by {}", duration(delay)),
            });
            return self.sleep(At::Lock(step), after(self.now, delay));
        }
        self.lock_read(step);
    }

    fn lock_read(&mut self, step: LockStep) {
        let give_up = after(self.now, GIVE_UP);
        self.lock_attempt(LockStep { give_up, ..step });
    }

    fn lock_attempt(&mut self, step: LockStep) {
        let call = Call::own_daemonset(&self.settings);
        self.call(At::Lock(LockStep { stage: Stage::Read, ..step }), call);
    }

    pub(super) fn lock_woken(&mut self, step: LockStep) {
        match step.stage {
            Stage::Delay | Stage::Conflict => self.lock_read(step),
            Stage::Pause if self.now >= step.give_up => {
                let (name, namespace) = (&self.settings.ds_name, &self.settings.ds_namespace);
                let error = format!("timed out trying to get daemonset {name} in namespace {namespace}");
                self.lock_failed(step, error);
            }
            Stage::Pause => self.lock_attempt(step),
            Stage::Read | Stage::Write => {}
        }
    }

    pub(super) fn lock_reply(&mut self, step: LockStep, result: Result<Value, Failure>) {
        match (step.stage, result) {
            (Stage::Read, Ok(daemonset)) => self.lock_decide(step, daemonset),
            (Stage::Read, Err(_)) => {
                let at = after(self.now, RETRY).min(step.give_up).max(self.now);
                self.sleep(At::Lock(LockStep { stage: Stage::Pause, ..step }), at);
            }
            (Stage::Write, Ok(_)) => self.lock_written(step),
            (Stage::Write, Err(failure)) if failure.is_conflict() => {
                self.sleep(At::Lock(LockStep { stage: Stage::Conflict, ..step }), after(self.now, CONFLICT));
            }
            (Stage::Write, Err(failure)) => self.lock_failed(step, failure.message),
            _ => {}
        }
    }

    fn lock_decide(&mut self, step: LockStep, daemonset: Value) {
        let name = self.settings.lock_annotation.clone();
        let value = calls::annotation(&daemonset, &name).map(str::to_owned);
        let value = value.as_deref();
        match step.operation {
            Operation::Holding => {
                let result = lock::holding(&self.settings, &self.node, value, self.now);
                self.lock_held(step, value, result);
            }
            Operation::Acquire => {
                match lock::acquire(&self.settings, &self.node, value, self.unschedulable, self.now) {
                    Err(error) => self.lock_failed(step, error),
                    Ok(Acquire::Mine) => self.tick_acquired(Ok(None)),
                    Ok(Acquire::Refused(holder)) => self.tick_acquired(Ok(Some(holder))),
                    Ok(Acquire::Write(value)) => self.lock_write(step, daemonset, &name, Some(&value)),
                }
            }
            Operation::Release => match lock::release(&self.settings, &self.node, value) {
                Err(error) => self.lock_failed(step, error),
                Ok(value) => self.lock_write(step, daemonset, &name, value.as_deref()),
            },
        }
    }

    fn lock_held(&mut self, step: LockStep, value: Option<&str>, result: Result<Option<lock::Entry>, String>) {
        let old = self.settings.range() != Range::Current;
        if old && !self.settings.is_multi() && result.is_ok() {
            // The metadata of whatever lock is there lands in memory, also of a foreign or an expired one.
            self.unschedulable = lock::metadata(value).unwrap_or(self.unschedulable);
        }
        match step.purpose {
            Purpose::StartUp => self.startup_holding(result, old && self.settings.is_multi()),
            _ => self.tick_holding(result),
        }
    }

    fn lock_write(&mut self, step: LockStep, mut daemonset: Value, name: &str, value: Option<&str>) {
        let annotations = calls::member(calls::member(&mut daemonset, "metadata"), "annotations");
        if let Some(annotations) = annotations.as_object_mut() {
            match value {
                Some(value) => annotations.insert(name.to_owned(), Value::from(value)),
                None => annotations.remove(name),
            };
        }
        let call = Call::put_daemonset(&self.settings, daemonset);
        self.call(At::Lock(LockStep { stage: Stage::Write, ..step }), call);
    }

    fn lock_written(&mut self, step: LockStep) {
        match (step.operation, step.purpose) {
            (Operation::Release, Purpose::FailedDrain) => self.failed_drain_released(Ok(())),
            (Operation::Release, _) => self.startup_released(Ok(())),
            _ => self.tick_acquired(Ok(None)),
        }
    }

    fn lock_failed(&mut self, step: LockStep, error: String) {
        match (step.operation, step.purpose) {
            (Operation::Holding, Purpose::StartUp) => self.startup_holding(Err(error), false),
            (Operation::Holding, _) => self.tick_holding(Err(error)),
            (Operation::Acquire, _) => self.tick_acquired(Err(error)),
            (Operation::Release, _) if self.settings.range() != Range::Current => {
                self.fatal(format!("Error releasing lock: {error}"));
            }
            (Operation::Release, Purpose::FailedDrain) => self.failed_drain_released(Err(error)),
            (Operation::Release, _) => self.startup_released(Err(error)),
        }
    }
}
