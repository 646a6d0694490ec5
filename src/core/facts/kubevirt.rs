//! KubeVirt's kinds (`kubevirt.io/v1`).

use jiff::Timestamp;

use super::source::{Namespaces, Source, SourceSpec};
use super::{Condition, Fields, Malformed, Metadata, TriState};
use crate::api::SourceId;

const fn spec(id: SourceId, kind: &'static str, resource: &'static str) -> SourceSpec {
    SourceSpec {
        id,
        group: "kubevirt.io",
        version: "v1",
        kind,
        resource,
        namespaces: Namespaces::All,
        label_selector: None,
        max_age_seconds: 30,
        built_in: false,
    }
}

/// A running virtual machine (`virtualmachineinstances`); a stopped one has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Name, namespace, deletion.
    pub metadata: Metadata,
    /// `spec.evictionStrategy`: None, LiveMigrate, LiveMigrateIfPossible or External; none means the cluster's.
    pub eviction_strategy: Option<String>,
    /// `status.phase`: Pending, Scheduling, Scheduled, Running, Succeeded, Failed ...; empty for a new one.
    pub phase: String,
    /// `status.nodeName`; empty while it has none.
    pub node: String,
    /// `status.conditions`: LiveMigratable, Ready and others.
    pub conditions: Vec<Condition>,
    /// `status.migrationState`: its last migration.
    pub migration: Option<MigrationState>,
}

/// The last migration of a virtual machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationState {
    /// `targetNode`; empty before it is known.
    pub target_node: String,
    /// `startTimestamp`
    pub started: Option<Timestamp>,
    /// `endTimestamp` is set, or `completed` or `failed` is true (unset means false).
    pub over: bool,
}

impl Instance {
    /// It has ended, and only its object is left.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.phase.as_str(), "Succeeded" | "Failed")
    }

    /// What condition LiveMigratable says; none where it is not there.
    #[must_use]
    pub fn live_migratable(&self) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == "LiveMigratable")
    }

    /// Whether it can be moved while it runs.
    #[must_use]
    pub fn can_migrate(&self) -> bool {
        self.live_migratable().is_some_and(|condition| condition.status == TriState::True)
    }
}

fn text(from: &Fields<'_>, key: &str) -> Result<String, Malformed> {
    Ok(from.optional_str(key)?.unwrap_or_default().to_owned())
}

fn namespaced(root: &Fields<'_>) -> Result<Metadata, Malformed> {
    let metadata = Metadata::of(root)?;
    if metadata.namespace.is_empty() {
        return Err(root.malformed("metadata.namespace", "is missing"));
    }
    Ok(metadata)
}

impl Source for Instance {
    const SPEC: SourceSpec =
        spec(SourceId::VirtualMachineInstances, "VirtualMachineInstance", "virtualmachineinstances");

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let (spec, status) = (root.object("spec")?, root.object("status")?);
        let migration = status.optional_object("migrationState")?.map(|state| {
            let over = state.optional_time("endTimestamp")?.is_some()
                || state.optional_bool("completed")?.unwrap_or(false)
                || state.optional_bool("failed")?.unwrap_or(false);
            let target_node = text(&state, "targetNode")?;
            Ok(MigrationState { target_node, started: state.optional_time("startTimestamp")?, over })
        });
        Ok(Self {
            metadata: namespaced(root)?,
            eviction_strategy: spec.optional_str("evictionStrategy")?.map(str::to_owned),
            phase: text(&status, "phase")?,
            node: text(&status, "nodeName")?,
            conditions: Condition::list(&status)?,
            migration: migration.transpose()?,
        })
    }
}

/// A wish to move a virtual machine (`virtualmachineinstancemigrations`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// Name, namespace, creation.
    pub metadata: Metadata,
    /// `spec.vmiName`
    pub instance: String,
    /// `status.phase`; empty before anybody looked at it.
    pub phase: String,
}

impl Migration {
    /// It is over, well or badly.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.phase.as_str(), "Succeeded" | "Failed")
    }
}

impl Source for Migration {
    const SPEC: SourceSpec =
        spec(SourceId::VirtualMachineMigrations, "VirtualMachineInstanceMigration", "virtualmachineinstancemigrations");

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let status = root.optional_object("status")?;
        Ok(Self {
            metadata: namespaced(root)?,
            instance: root.object("spec")?.str("vmiName")?.to_owned(),
            phase: status.map_or(Ok(String::new()), |status| text(&status, "phase"))?,
        })
    }
}

/// KubeVirt's own configuration (`kubevirts`): one object in a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeVirt {
    /// Name, namespace.
    pub metadata: Metadata,
    /// `spec.configuration.evictionStrategy`: what counts for virtual machines that do not say; unset means None.
    pub eviction_strategy: String,
}

impl Source for KubeVirt {
    const SPEC: SourceSpec = spec(SourceId::KubeVirts, "KubeVirt", "kubevirts");

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let configuration = root.object("spec")?.optional_object("configuration")?;
        let strategy = configuration.map_or(Ok(String::new()), |section| text(&section, "evictionStrategy"))?;
        let eviction_strategy = if strategy.is_empty() { "None".to_owned() } else { strategy };
        Ok(Self { metadata: namespaced(root)?, eviction_strategy })
    }
}
