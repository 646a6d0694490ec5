//! The I/O of maint: the only part with a runtime, clients and a clock.
//!
//! `runtime` is the one place for time, tasks and randomness; `ports` are the traits towards the cluster; `client`
//! builds kube clients; `observe` turns answers into facts; `probe` asks every API server for every kubelet; `lead`
//! holds the Lease; `execute` does what the plan asks, fenced by it; `drive` runs one task for each run in flight;
//! `request` asks for things as a person may; `deliver` takes messages out; `serve` puts a replica together.

pub mod client;
pub mod deliver;
pub mod drive;
pub mod execute;
pub mod lead;
pub mod observe;
pub mod ports;
pub mod probe;
pub mod request;
pub mod runtime;
pub mod serve;
#[cfg(test)]
mod testing;
