//! A gate's answer.

use jiff::Timestamp;
use serde::Serialize;

use super::gate::names;
use super::{GateId, Reason};
use crate::planted::{self, Bug};

names! {
    /// How a gate answered, from best to worst.
    Status, "status", {
        /// It does not apply here, or this kind of input cannot answer it.
        NotApplicable = "not-applicable",
        /// Fine.
        Pass = "pass",
        /// Worth a look; does not stop a run.
        Warn = "warn",
        /// Could not be judged: stops a run like a block.
        Unknown = "unknown",
        /// The run must not go on.
        Block = "block",
    }
}

/// One object's field that led to an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// `Kind namespace/name`, or `Kind name`.
    pub object: String,
    /// Path of the field as in the API, or a short phrase where it is computed from several.
    pub field: String,
    /// What was seen.
    pub value: String,
    /// What would have passed.
    pub wanted: String,
}

impl Evidence {
    /// Shorthand for the four texts.
    pub fn new(
        object: impl Into<String>,
        field: impl Into<String>,
        value: impl Into<String>,
        wanted: impl Into<String>,
    ) -> Self {
        Self { object: object.into(), field: field.into(), value: value.into(), wanted: wanted.into() }
    }
}

/// A gate's answer for one node at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Which gate answered.
    pub gate: GateId,
    /// How.
    pub status: Status,
    /// The one reason: the worst of what was found.
    pub reason: Reason,
    /// A sentence with names and numbers, no full stop at its end.
    pub message: String,
    /// What it was seen on, worst first, at most [`Finding::MAX_EVIDENCE`].
    pub evidence: Vec<Evidence>,
    /// How many pieces of evidence were left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub evidence_left_out: usize,
    /// Oldest observation that the answer rests on; none where nothing was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Timestamp>,
    /// Since when it is so, where the API tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl Finding {
    /// Evidence kept per finding; the rest is counted.
    pub const MAX_EVIDENCE: usize = 20;

    /// Whether this answer stops a run (a gate of policy `warn` never does: its status is lowered before).
    #[must_use]
    pub fn stops(&self) -> bool {
        matches!(self.status, Status::Block | Status::Unknown)
            && !(self.status == Status::Unknown && planted::is(Bug::UnknownPasses))
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
