//! The matrix: every API server is asked for every kubelet, by a fresh dial.
//!
//! `dial` makes the two requests of one cell, `cells` chooses which cells are asked, `sweep` asks them: a bounded
//! number at a time for each API server, at most one in flight a cell, and a cell that hung is left alone for a while,
//! since every hanging probe holds a connection in the API server. `account` has the credentials.

mod account;
mod cells;
mod dial;
mod sweep;

pub use account::{ProbeIdentity, ProbeServers};
pub use cells::chosen;
pub use sweep::Prober;
