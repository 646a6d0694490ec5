//! Gate `control-plane`: expected API servers ready; the other etcd voters keep quorum.

use super::{Draft, GateInput, GateSpec};
use crate::api::{Finding, GateId, Moment, Policy, Reason};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::ControlPlane,
    moments: &[Moment::Start, Moment::Handover],
    reads: &[],
    reasons: &[
        Reason::APIServerNotReady,
        Reason::EtcdQuorumAtRisk,
        Reason::EtcdMemberNotVoter,
        Reason::EtcdHeartbeatStale,
        Reason::EtcdVotersEven,
    ],
    default_policy: Policy::Require,
    doc: "expected API servers ready; the other etcd voters keep quorum",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    Draft::new(GateId::ControlPlane, input).finish("")
}
