//! The service: one replica that stands for the Lease, drives runs while it leads, and answers health checks always.

mod health;
mod live;
mod replica;
mod ticks;

pub use health::{Health, listen};
pub use live::{LiveOptions, ServeError, serve};
pub use replica::{Replica, ReplicaEnd};
pub use ticks::{TickError, Ticks};
