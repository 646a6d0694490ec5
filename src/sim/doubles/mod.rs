//! Doubles of other programs: pure reducers, each written once, and shells that let them live somewhere.
//!
//! A double plays its program from what was measured on the real one and read in its source. It shares no code with
//! the part of maint that talks to the program: two readings of one format find the mistakes of either.

pub mod kured;
pub mod shell;
