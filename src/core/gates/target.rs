//! Gate `target`: the node itself: Ready, not cordoned by someone else, still ours at hand-over.

use super::{Draft, GateInput, GateSpec};
use crate::api::{Finding, GateId, Moment, Policy, Reason};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::Target,
    moments: &[Moment::Start, Moment::Handover],
    reads: &[],
    reasons: &[
        Reason::TargetNotFound,
        Reason::TargetNotReady,
        Reason::TargetCordonedByOther,
        Reason::CordonRemoved,
        Reason::NodeDidNotReboot,
    ],
    default_policy: Policy::Require,
    doc: "the node itself: Ready, not cordoned by someone else, still ours at hand-over",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    Draft::new(GateId::Target, input).finish("")
}
