//! Gate `coredns-replicas`: at least two ready, not terminating endpoints behind the DNS Service.

use super::{Draft, GateInput, GateSpec};
use crate::api::{Finding, GateId, Moment, Policy, Reason};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::CorednsReplicas,
    moments: &[Moment::Start, Moment::Handover],
    reads: &[],
    reasons: &[Reason::CoreDNSNotFound, Reason::CoreDNSReplicasInsufficient, Reason::CoreDNSRollingOut],
    default_policy: Policy::Require,
    doc: "at least two ready, not terminating endpoints behind the DNS Service",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    Draft::new(GateId::CorednsReplicas, input).finish("")
}
