//! Leases: a kubelet renews its own every ten seconds; a component's tells whether it is alive.

use jiff::Timestamp;

use super::source::{Namespaces, Source, SourceSpec};
use super::{Fields, Malformed, Metadata};
use crate::api::SourceId;

/// A Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Name and namespace: in `kube-node-lease` the name is the node's.
    pub metadata: Metadata,
    /// `spec.holderIdentity`; empty when released.
    pub holder: String,
    /// `spec.renewTime`; none before the first renewal.
    pub renew_time: Option<Timestamp>,
    /// `spec.leaseDurationSeconds`.
    pub duration_seconds: Option<i64>,
}

impl Lease {
    /// Namespace of the kubelets' leases.
    pub const NODE_NAMESPACE: &'static str = "kube-node-lease";
}

impl Source for Lease {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::Leases,
        group: "coordination.k8s.io",
        version: "v1",
        kind: "Lease",
        resource: "leases",
        namespaces: Namespaces::These(&["kube-node-lease", "kube-system"]),
        label_selector: None,
        max_age_seconds: 30,
        built_in: true,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let spec = root.optional_object("spec")?;
        let spec = spec.as_ref();
        Ok(Self {
            metadata: Metadata::of(root)?,
            holder: spec.map_or(Ok(None), |spec| spec.optional_str("holderIdentity"))?.unwrap_or_default().to_owned(),
            renew_time: spec.map_or(Ok(None), |spec| spec.optional_time("renewTime"))?,
            duration_seconds: spec.map_or(Ok(None), |spec| spec.optional_i64("leaseDurationSeconds"))?,
        })
    }
}
