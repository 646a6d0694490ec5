//! The tests of the built binary and of the tree, in one binary. One module per topic.

mod check;
mod config;
mod explain;
mod support;
mod tidy;
