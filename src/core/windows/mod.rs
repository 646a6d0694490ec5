//! Windows: when unattended runs may start, as pure functions of windows and an instant.
//!
//! A window opens at its start on each of its days and stays open for its length. It is open at T if it opened at an S
//! not after T and T comes before its end. Midnight is nothing special: `days = ["fri"]`, `start = "22:00"`,
//! `duration = "6h"` is open on Saturday from 00:00 to 04:00 and belongs to Friday; a window that is judged by the
//! weekday of T instead would be open on Friday from 00:00 on. Windows that overlap or touch are one stretch. What was
//! missed is not caught up: the next opening is the next one of the calendar.
//!
//! When clocks change, a start or an end that does not exist is as much later as the clocks are set forward, and one
//! that exists twice is the earlier (RFC 5545, and jiff's "compatible"). `duration` is time that passes; `end` is read
//! off the clock, so that such a window is an hour shorter or longer in those nights.
//!
//! `opening` is the one place that knows how a rule makes openings. Rules in cron notation and blackouts
//! have their place there: they add and take away openings, and nothing else here has to know of them.

mod opening;
mod state;
#[cfg(test)]
mod tests;
mod words;

pub use opening::{Opening, ended, next_openings};
pub use state::{Closed, Open, WindowState, state};
pub use words::{local, local_time, told, universal};
