//! The rows.

mod copies;
mod degraded;
mod fine;
mod moments;
mod work;

use super::*;

/// All of them.
pub(in super::super) fn all() -> Vec<Row> {
    [
        fine::FINE_ROWS,
        degraded::DEGRADED,
        work::WORK,
        copies::LAST_COPY,
        copies::DETACHED,
        moments::HANDOVER,
        moments::SETTLE,
        fine::READING,
    ]
    .concat()
}

const PASS: Status = Status::Pass;
const WARN: Status = Status::Warn;
const UNKNOWN: Status = Status::Unknown;
const BLOCK: Status = Status::Block;
const PASSED: Reason = Reason::Passed;

fn remove(map: &mut Value, key: &str) {
    map.as_object_mut().expect("an object").remove(key);
}
