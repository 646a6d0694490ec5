//! Backups and restores of those that make them: what is at work, and on what.

use jiff::Timestamp;

use super::source::{Namespaces, Source, SourceSpec};
use super::{Fields, Malformed, Metadata};
use crate::api::SourceId;

/// How far one of them is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The phase or state, as the API has it; empty where nobody has begun yet.
    pub phase: String,
    /// When it was begun, or asked for where it was not begun yet.
    pub since: Option<Timestamp>,
}

impl Progress {
    fn of(root: &Fields<'_>, phase: &str, begun: &str) -> Result<Self, Malformed> {
        let status = root.optional_object("status")?;
        let created = root.object("metadata")?.optional_time("creationTimestamp")?;
        let begun = status.as_ref().map_or(Ok(None), |status| status.optional_time(begun))?;
        let phase = status.as_ref().map_or(Ok(None), |status| status.optional_str(phase))?;
        Ok(Self { phase: phase.unwrap_or_default().to_owned(), since: begun.or(created) })
    }
}

/// One row of the table below: a kind with its progress and what it is about.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident: $id:ident, $group:literal, $version:literal, $kind:literal, $resource:literal,
        $namespaces:expr, $phase:literal, $begun:literal, $subject:path;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Eq)]
            pub struct $name {
                /// Name, namespace, deletion.
                pub metadata: Metadata,
                /// How far it is.
                pub progress: Progress,
                /// What it is about: a volume of Longhorn, a cluster of CloudNativePG; empty where it does not say.
                pub subject: String,
            }

            impl Source for $name {
                const SPEC: SourceSpec = SourceSpec {
                    id: SourceId::$id,
                    group: $group,
                    version: $version,
                    kind: $kind,
                    resource: $resource,
                    namespaces: $namespaces,
                    label_selector: None,
                    max_age_seconds: 30,
                    built_in: false,
                };

                fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
                    let metadata = Metadata::of(root)?;
                    let subject = $subject(root, &metadata)?;
                    Ok(Self { progress: Progress::of(root, $phase, $begun)?, metadata, subject })
                }
            }
        )*
    };
}

kinds! {
    /// `backups.velero.io`; phases by its API reference (v1.17).
    VeleroBackup: VeleroBackups, "velero.io", "v1", "Backup", "backups",
        Namespaces::All, "phase", "startTimestamp", nothing;
    /// `restores.velero.io`
    VeleroRestore: VeleroRestores, "velero.io", "v1", "Restore", "restores",
        Namespaces::All, "phase", "startTimestamp", nothing;
    /// `backups.longhorn.io`
    LonghornBackup: LonghornBackups, "longhorn.io", "v1beta2", "Backup", "backups",
        Namespaces::Longhorn, "state", "snapshotCreatedAt", volume;
    /// `systembackups.longhorn.io` (1.4)
    LonghornSystemBackup: LonghornSystemBackups, "longhorn.io", "v1beta2", "SystemBackup", "systembackups",
        Namespaces::Longhorn, "state", "createdAt", nothing;
    /// `systemrestores.longhorn.io` (1.4)
    LonghornSystemRestore: LonghornSystemRestores, "longhorn.io", "v1beta2", "SystemRestore", "systemrestores",
        Namespaces::Longhorn, "state", "createdAt", nothing;
    /// `backups.postgresql.cnpg.io`
    CnpgBackup: CnpgBackups, "postgresql.cnpg.io", "v1", "Backup", "backups",
        Namespaces::All, "phase", "startedAt", cluster;
}

#[expect(clippy::unnecessary_wraps, reason = "one of three readers with the same form")]
const fn nothing(_: &Fields<'_>, _: &Metadata) -> Result<String, Malformed> {
    Ok(String::new())
}

/// `status.volumeName`, written once it runs; before that only the label `backup-volume` tells.
fn volume(root: &Fields<'_>, metadata: &Metadata) -> Result<String, Malformed> {
    let status = root.optional_object("status")?;
    let told = status.as_ref().map_or(Ok(None), |status| status.optional_str("volumeName"))?.unwrap_or_default();
    let label = metadata.labels.get("backup-volume").map_or("", String::as_str);
    Ok(if told.is_empty() { label } else { told }.to_owned())
}

fn cluster(root: &Fields<'_>, metadata: &Metadata) -> Result<String, Malformed> {
    if metadata.namespace.is_empty() {
        return Err(root.malformed("metadata.namespace", "is missing"));
    }
    Ok(root.object("spec")?.object("cluster")?.str("name")?.to_owned())
}
