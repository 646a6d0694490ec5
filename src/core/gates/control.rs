//! Gate `control`: not halted, node not on hold, mode allows, no running or red post-check.

use super::{Draft, GateInput, GateSpec};
use crate::api::{Finding, GateId, Moment, Policy, Reason};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::Control,
    moments: &[Moment::Start, Moment::Handover],
    reads: &[],
    reasons: &[
        Reason::Halted,
        Reason::NodeOnHold,
        Reason::PostCheckRed,
        Reason::PostCheckRunning,
        Reason::PostCheckMissing,
        Reason::LeaderOnTarget,
    ],
    default_policy: Policy::Require,
    doc: "not halted, node not on hold, mode allows, no running or red post-check",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    Draft::new(GateId::Control, input).finish("")
}
