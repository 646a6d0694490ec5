//! The simulated cluster of maint: an API server in memory, a world in virtual time, faults, invariants.
//!
//! Everything is deterministic: one seed and paused time give the same night, byte for byte. So there is no clock
//! but [`clock::Clock`], no chance but [`random::Random`], and no unordered map.

pub mod clock;
pub mod conformance;
pub mod demo;
pub mod doubles;
pub mod faults;
pub mod invariants;
pub mod kinds;
pub mod night;
#[cfg(test)]
#[cfg(feature = "planted")]
mod planted;
pub mod random;
pub mod store;
pub mod sweep;
pub mod trace;
pub mod typed;
pub mod world;
