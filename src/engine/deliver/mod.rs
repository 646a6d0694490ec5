//! Messages to people and programs: from the outboxes of records to receivers, at least once.
//!
//! Delivering never blocks or fails a run: outboxes are handed over without waiting, and results come back through a
//! channel to the records' only writer. What is sent when is decided in `maint_core::report::delivery`.

mod client;
mod events;
mod lanes;
mod receiver;
mod secret;
mod signature;
#[cfg(test)]
mod tests;

pub use events::{EventCounts, EventPoster, Events, Tell};
pub use lanes::{Delivery, Outcome, Post, deliver};
pub use receiver::{Letter, Receiver, receivers, redacted};
pub use secret::SecretError;
pub use signature::SigningKeyError;
