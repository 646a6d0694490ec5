//! The I/O of maint: the only part with a runtime, clients and a clock.
//!
//! `runtime` is the one place for time, tasks and randomness; `ports` are the traits towards the cluster; `client`
//! builds kube clients; `observe` turns answers into facts; `probe` asks every API server for every kubelet.

pub mod client;
pub mod observe;
pub mod ports;
pub mod probe;
pub mod runtime;
#[cfg(test)]
mod testing;
