//! VolumeAttachments: which volume is attached to which node.

use super::source::{Namespaces, Source, SourceSpec};
use super::{Fields, Malformed, Metadata};
use crate::api::SourceId;

/// A VolumeAttachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeAttachment {
    /// Name and deletion.
    pub metadata: Metadata,
    /// `spec.attacher`: the CSI driver.
    pub attacher: String,
    /// `spec.nodeName`
    pub node_name: String,
    /// `spec.source.persistentVolumeName`; none for an inline volume.
    pub persistent_volume: Option<String>,
    /// `status.attached`
    pub attached: Option<bool>,
}

impl Source for VolumeAttachment {
    const SPEC: SourceSpec = SourceSpec {
        id: SourceId::VolumeAttachments,
        group: "storage.k8s.io",
        version: "v1",
        kind: "VolumeAttachment",
        resource: "volumeattachments",
        namespaces: Namespaces::All,
        label_selector: None,
        max_age_seconds: 30,
        built_in: true,
    };

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let spec = root.object("spec")?;
        let status = root.optional_object("status")?;
        Ok(Self {
            metadata: Metadata::of(root)?,
            attacher: spec.str("attacher")?.to_owned(),
            node_name: spec.str("nodeName")?.to_owned(),
            persistent_volume: spec.object("source")?.optional_str("persistentVolumeName")?.map(str::to_owned),
            attached: status.map_or(Ok(None), |status| status.optional_bool("attached"))?,
        })
    }
}
