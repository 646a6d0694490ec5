//! Gate `nodes-ready`: other nodes Ready with a fresh Lease, no pressure, network up.

use super::{Draft, GateInput, GateSpec};
use crate::api::{Finding, GateId, Moment, Policy, Reason};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::NodesReady,
    moments: &[Moment::Start, Moment::Handover],
    reads: &[],
    reasons: &[Reason::NodeNotReady, Reason::NodeLeaseStale, Reason::NodeUnderPressure, Reason::NodeNetworkUnavailable],
    default_policy: Policy::Require,
    doc: "other nodes Ready with a fresh Lease, no pressure, network up",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    Draft::new(GateId::NodesReady, input).finish("")
}
