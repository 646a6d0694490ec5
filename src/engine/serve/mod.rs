//! The service: one replica that stands for the Lease, drives runs while it leads, and always answers kured and health
//! checks.

mod health;
mod kured;
mod listen;
mod live;
mod replica;
mod ticks;

pub use health::{Health, Shown, health_routes};
pub use kured::{ApiQuestions, BUDGET, Fetch, HttpFetch, Peer, QuestionPort, Questions, Records, View, routes};
pub use listen::{accept, listen};
pub use live::{LiveOptions, ServeError, serve};
pub use replica::{Replica, ReplicaEnd};
pub use ticks::{TickError, Ticks};
