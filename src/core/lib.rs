//! The pure part of maint: what is known, what the gates say of it, what is done next, and how it is told.
//!
//! Nothing here reads a clock, a file or the network: time is an argument, and facts come in as values. The
//! dependency list of this package is the wall: it has neither a runtime nor a client.
//!
//! Data flows `facts -> gates -> plan -> report`; `api` holds every name that is a contract with the outside;
//! `state` is what the leader remembers in the cluster.

pub mod api;
pub mod config;
pub mod doctor;
pub mod drain;
pub mod election;
pub mod facts;
pub mod gates;
pub mod kured;
pub mod matrix;
pub mod network;
pub mod plan;
pub mod planted;
pub mod post_check;
pub mod preview;
pub mod report;
pub mod state;
pub mod windows;

/// The one time library of the workspace; Kubernetes times decode into it too.
pub use jiff;
