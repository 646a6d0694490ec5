//! The plan on a small pure world: every line of the rules as a row, properties over random events, crash points.

mod after_commit;
mod api;
mod before_commit;
mod crash;
mod grant;
mod happy;
mod kured;
mod people;
mod play;
mod properties;
mod seat;
mod table;
mod turn;
mod windows;
mod world;
