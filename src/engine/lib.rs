//! The I/O of maint: the only part with a runtime, clients and a clock.

pub mod deliver;
pub mod lead;
pub mod runtime;
