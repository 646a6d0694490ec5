//! The drivers: one task for each run in flight, under a lease.
//!
//! A driver loops: read the record, read facts, decide ([`maint_core::plan::step`]), write the record, act, wait. It
//! remembers nothing that matters: the next leader starts it anew and goes on with the same outcome. The controller
//! only starts drivers and wakes them. While a node is drained, who goes next is chosen more often than the rest of
//! the world is looked at (`runbooks/decisions/0016-light-looks.md`).

mod aside;
mod controller;
mod driver;
mod evictions;
mod fresh;
mod keeper;
mod nudges;
mod outbox;
mod pods;
mod records;
mod reporter;
mod watch;
mod wishes;

pub use aside::Aside;
pub use controller::{Controller, Ended};
pub use driver::{Driver, DriverEnd, Ports};
pub use keeper::{Keeper, Notes};
pub use outbox::Courier;
pub use records::{KubeRecords, Records};
pub use reporter::Reporter;
pub use watch::{Changed, Changes, KubeWatches, Watched, Watches};
pub use wishes::Wishes;
