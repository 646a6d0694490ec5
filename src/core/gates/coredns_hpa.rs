//! Gate `coredns-hpa`: the autoscaler that holds two DNS replicas really scales.

use super::{Draft, GateInput, GateSpec};
use crate::api::{Finding, GateId, Moment, Policy, Reason};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::CorednsHpa,
    moments: &[Moment::Start, Moment::Handover],
    reads: &[],
    reasons: &[
        Reason::HPAScalingInactive,
        Reason::HPAFloorTooLow,
        Reason::HPAStale,
        Reason::HPAConflict,
        Reason::CoreDNSFloorMissing,
    ],
    default_policy: Policy::Require,
    doc: "the autoscaler that holds two DNS replicas really scales",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    Draft::new(GateId::CorednsHpa, input).finish("")
}
