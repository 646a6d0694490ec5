//! The tests of the built binary and of the tree, in one binary. One module per topic.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::format_push_string,
    reason = "tests end by panicking, and their tables say what their tuples are"
)]

mod api;
mod check;
mod config;
mod demo;
mod deploy;
mod doctor;
mod drain_limit;
mod explain;
mod live;
mod plan;
mod post_check;
mod sick;
mod support;
mod tidy;
mod verbs;
mod windows;
