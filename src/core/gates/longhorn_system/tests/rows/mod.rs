//! The rows.

mod drain;
mod healthy;
mod moments;
mod parts;

use super::*;

/// All of them.
pub(super) fn all() -> Vec<Row> {
    [healthy::HEALTHY, parts::MEMBERS, parts::MANAGERS, drain::SHARES, drain::DRAIN, moments::MOMENTS].concat()
}

const PASS: Status = Status::Pass;
const WARN: Status = Status::Warn;
const BLOCK: Status = Status::Block;
const UNKNOWN: Status = Status::Unknown;
const PASSED: Reason = Reason::Passed;
