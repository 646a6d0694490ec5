//! The messages of one record: offered to delivery after each write, marked in the next one.
//!
//! The driver stays the only writer of its record. Delivering never holds a run up: what could not be delivered is
//! tried again by delivery itself and only ever shows up here as a mark.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use maint_core::api::record::{MaintenanceStatus, OutboxEntry};
use maint_core::planted::{self, Bug};
use maint_core::report::delivery;
use tokio::sync::{Notify, mpsc};

use crate::deliver::{Delivery, Outcome};
use crate::runtime::Env;

/// Takes messages out for all records, and brings what came of them back to the driver that waits for it.
pub struct Courier {
    delivery: Delivery,
    receivers: Vec<String>,
    boxes: Mutex<BTreeMap<String, Mailbox>>,
}

/// What came back for one record.
struct Mailbox {
    outcomes: Vec<Outcome>,
    wake: Arc<Notify>,
}

impl Courier {
    /// Starts to sort what comes back.
    pub fn start(
        env: &Env,
        delivery: Delivery,
        receivers: Vec<String>,
        mut results: mpsc::UnboundedReceiver<Outcome>,
    ) -> Arc<Self> {
        let courier = Arc::new(Self { delivery, receivers, boxes: Mutex::default() });
        let sorter = Arc::clone(&courier);
        env.tasks.spawn(async move {
            while let Some(outcome) = results.recv().await {
                sorter.put(outcome);
            }
        });
        courier
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<String, Mailbox>) -> T) -> T {
        act(&mut self.boxes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn put(&self, outcome: Outcome) {
        self.with(|boxes| {
            // Without a driver nobody writes it down: the next one offers the message again, at least once is kept.
            if let Some(known) = boxes.get_mut(&outcome.record) {
                known.outcomes.push(outcome);
                known.wake.notify_one();
            }
        });
    }

    /// Whether every receiver has got, or will never get, all that a record tells.
    #[must_use]
    pub fn is_settled(&self, status: Option<&MaintenanceStatus>, now: Timestamp) -> bool {
        status.is_none_or(|status| self.are_settled(&status.outbox, now))
    }

    /// The same of an outbox.
    #[must_use]
    pub fn are_settled(&self, outbox: &[OutboxEntry], now: Timestamp) -> bool {
        delivery::is_settled(outbox, &self.receivers, now)
    }
}

/// The messages of one record, in its driver's hands.
pub struct Outbox {
    courier: Arc<Courier>,
    record: String,
    /// Results that the record does not show yet.
    unwritten: Vec<Outcome>,
}

impl Outbox {
    /// The box of a record; `wake` is called when something came back.
    #[must_use]
    pub fn new(courier: Arc<Courier>, record: String, wake: Arc<Notify>) -> Self {
        courier.with(|boxes| boxes.insert(record.clone(), Mailbox { outcomes: Vec::new(), wake }));
        Self { courier, record, unwritten: Vec::new() }
    }

    /// Marks in an outbox what came back.
    pub fn mark(&mut self, outbox: &mut [OutboxEntry]) {
        let came = self
            .courier
            .with(|boxes| boxes.get_mut(&self.record).map(|known| std::mem::take(&mut known.outcomes)))
            .unwrap_or_default();
        self.unwritten.extend(came);
        for outcome in &self.unwritten {
            if let Some(entry) = outbox.iter_mut().find(|entry| entry.id == outcome.entry) {
                let lost = planted::is(Bug::LosesReceipts) && outcome.attempt == delivery::Attempt::Delivered;
                if !lost {
                    delivery::mark(entry, &outcome.receiver, &outcome.attempt, outcome.at);
                }
            }
        }
    }

    /// What [`Self::mark`] made was written.
    pub fn written(&mut self) {
        self.unwritten.clear();
    }

    /// Offers what is not delivered yet.
    pub fn offer(&self, node: &str, outbox: &[OutboxEntry]) {
        if !outbox.is_empty() && !planted::is(Bug::SendsNothing) {
            self.courier.delivery.offer(&self.record, node, outbox.to_vec());
        }
    }

    /// Nothing is left to tell.
    #[must_use]
    pub fn is_settled(&self, status: Option<&MaintenanceStatus>, now: Timestamp) -> bool {
        self.unwritten.is_empty() && self.courier.is_settled(status, now)
    }

    /// The same of an outbox.
    #[must_use]
    pub fn are_settled(&self, outbox: &[OutboxEntry], now: Timestamp) -> bool {
        self.unwritten.is_empty() && self.courier.are_settled(outbox, now)
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.courier.with(|boxes| boxes.remove(&self.record));
        self.courier.delivery.forget(&self.record);
    }
}
