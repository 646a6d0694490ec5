//! What the double must do: the runs of the real process, its answers, requests, races and versions.

mod answers;
mod deaths;
mod flags;
mod locks;
mod races;
mod requests;
mod runs;
mod scenarios;
mod versions;
mod views;
mod windows;
mod words;
mod world;
