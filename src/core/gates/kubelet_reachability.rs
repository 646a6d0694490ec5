//! Gate `kubelet-reachability`: every API server reaches every kubelet by a fresh connection.

use super::{Draft, GateInput, GateSpec};
use crate::api::{Finding, GateId, Moment, Policy, Reason};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::KubeletReachability,
    moments: &[Moment::Start, Moment::Handover],
    reads: &[],
    reasons: &[
        Reason::KubeletUnreachable,
        Reason::KubeletUnhealthy,
        Reason::APIServerUnreachable,
        Reason::KubeletPathUnknown,
    ],
    default_policy: Policy::Require,
    doc: "every API server reaches every kubelet by a fresh connection",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    Draft::new(GateId::KubeletReachability, input).finish("")
}
