//! Gate `attachments`: no stale VolumeAttachment.

use super::{Draft, GateInput, GateSpec};
use crate::api::{Finding, GateId, Moment, Policy, Reason};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::Attachments,
    moments: &[Moment::Start, Moment::Handover],
    reads: &[],
    reasons: &[Reason::VolumeAttachmentStale, Reason::VolumeAttachmentRemaining],
    default_policy: Policy::Require,
    doc: "no stale VolumeAttachment",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    Draft::new(GateId::Attachments, input).finish("")
}
