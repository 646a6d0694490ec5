//! The verdict over all findings: what the exit code and the first line say.

use crate::api::{Finding, Status};

crate::api::names! {
    /// May the node be touched?
    Verdict, "verdict", {
        /// Yes.
        Clear = "clear",
        /// Some gate could not be judged; nothing blocks.
        Unknown = "unknown",
        /// Some gate blocks.
        Blocked = "blocked",
    }
}

impl Verdict {
    /// Blocks win over unknowns; both are shown.
    #[must_use]
    pub fn of(findings: &[Finding]) -> Self {
        if findings.iter().any(|finding| finding.status == Status::Block) {
            Self::Blocked
        } else if findings.iter().any(|finding| finding.status == Status::Unknown) {
            Self::Unknown
        } else {
            Self::Clear
        }
    }

    /// The process exit code: 0 fine, 3 blocked, 4 unknown.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Clear => 0,
            Self::Blocked => 3,
            Self::Unknown => 4,
        }
    }
}
