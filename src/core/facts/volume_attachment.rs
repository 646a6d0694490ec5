//! VolumeAttachments: which volume is attached to which node.

use jiff::Timestamp;

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
    /// `metadata.creationTimestamp`: since when the volume is wanted on the node.
    pub created: Option<Timestamp>,
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
        let source = spec.object("source")?;
        let persistent_volume = source.optional_str("persistentVolumeName")?.map(str::to_owned);
        // The API wants exactly one of the two; a source without either would hide a second attachment of a volume.
        if persistent_volume.is_none() && source.optional_object("inlineVolumeSpec")?.is_none() {
            return Err(source.malformed("persistentVolumeName", "is missing, and inlineVolumeSpec too"));
        }
        Ok(Self {
            metadata: Metadata::of(root)?,
            attacher: spec.str("attacher")?.to_owned(),
            node_name: spec.str("nodeName")?.to_owned(),
            persistent_volume,
            attached: status.map_or(Ok(None), |status| status.optional_bool("attached"))?,
            created: root.object("metadata")?.optional_time("creationTimestamp")?,
        })
    }
}
