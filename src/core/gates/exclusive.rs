//! Gate `exclusive`: fewer other nodes unavailable than the limit; no foreign kured lock of an existing node.

use super::{Draft, GateInput, GateSpec};
use crate::api::{Finding, GateId, Moment, Policy, Reason};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::Exclusive,
    moments: &[Moment::Start, Moment::Handover],
    reads: &[],
    reasons: &[Reason::TooManyUnavailable, Reason::KuredLockHeld, Reason::KuredLockUnreadable],
    default_policy: Policy::Require,
    doc: "fewer other nodes unavailable than the limit; no foreign kured lock of an existing node",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    Draft::new(GateId::Exclusive, input).finish("")
}
