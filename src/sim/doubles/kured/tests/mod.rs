//! What the double must do: the runs of the real process, its answers, requests, races and versions.

mod answers;
mod deaths;
mod locks;
mod races;
mod requests;
mod runs;
mod scenarios;
mod versions;
mod windows;
mod world;
