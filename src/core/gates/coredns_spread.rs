//! Gate `coredns-spread`: DNS endpoints on two different Ready nodes, one of which stays.

use super::{Draft, GateInput, GateSpec};
use crate::api::{Finding, GateId, Moment, Policy, Reason};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::CorednsSpread,
    moments: &[Moment::Start, Moment::Handover],
    reads: &[],
    reasons: &[Reason::CoreDNSReplicasColocated, Reason::CoreDNSOnlyOnTarget],
    default_policy: Policy::Require,
    doc: "DNS endpoints on two different Ready nodes, one of which stays",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    Draft::new(GateId::CorednsSpread, input).finish("")
}
