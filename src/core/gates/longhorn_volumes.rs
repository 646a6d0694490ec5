//! Gate `longhorn-volumes`: no Longhorn volume degraded, rebuilding or in transition; no last copy on the node.

use super::{Draft, GateInput, GateSpec};
use crate::api::{Finding, GateId, Moment, Policy, Reason};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::LonghornVolumes,
    moments: &[Moment::Start, Moment::Handover],
    reads: &[],
    reasons: &[
        Reason::LonghornVolumeRebuilding,
        Reason::LonghornVolumeDegraded,
        Reason::LonghornVolumeFaulted,
        Reason::LonghornVolumeRobustnessUnknown,
        Reason::LonghornVolumeInTransition,
        Reason::LonghornVolumeExpanding,
        Reason::LonghornVolumeRestoring,
        Reason::LonghornVolumeMigrating,
        Reason::LonghornLastReplicaOnTarget,
        Reason::LonghornDetachedReplicaOnTarget,
        Reason::LonghornDetachedIncomplete,
    ],
    default_policy: Policy::Require,
    doc: "no Longhorn volume degraded, rebuilding or in transition; no last copy on the node",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    Draft::new(GateId::LonghornVolumes, input).finish("")
}
