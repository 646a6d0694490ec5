//! Longhorn's kinds (`longhorn.io/v1beta2`, the only version served since 1.10).

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::source::{Namespaces, Source, SourceSpec};
use super::{Condition, Fields, Malformed, Metadata};
use crate::api::SourceId;

const fn spec(id: SourceId, kind: &'static str, resource: &'static str) -> SourceSpec {
    SourceSpec {
        id,
        group: "longhorn.io",
        version: "v1beta2",
        kind,
        resource,
        namespaces: Namespaces::Longhorn,
        label_selector: None,
        max_age_seconds: 30,
        built_in: false,
    }
}

/// A volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Name, deletion.
    pub metadata: Metadata,
    /// `spec.numberOfReplicas`
    pub number_of_replicas: i64,
    /// `spec.size`: bytes, as text in the API.
    pub size: String,
    /// `spec.Standby`: a disaster-recovery volume; absent means false.
    pub standby: bool,
    /// `spec.migrationNodeID`; empty when not migrating.
    pub migration_node: String,
    /// `status.state`
    pub state: String,
    /// `status.robustness`
    pub robustness: String,
    /// `status.currentNodeID`; empty when detached.
    pub current_node: String,
    /// `status.lastDegradedAt`
    pub last_degraded_at: Option<Timestamp>,
    /// `status.switchoverState` (1.12); empty when idle.
    pub switchover_state: String,
    /// `status.kubernetesStatus`: namespace and name of the claim, for sentences.
    pub claim: Option<String>,
    /// `status.conditions`; types changed case between releases.
    pub conditions: Vec<Condition>,
}

impl Source for Volume {
    const SPEC: SourceSpec = spec(SourceId::LonghornVolumes, "Volume", "volumes");

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let spec = root.object("spec")?;
        let status = root.object("status")?;
        let text = |from: &Fields<'_>, key: &str| -> Result<String, Malformed> {
            Ok(from.optional_str(key)?.unwrap_or_default().to_owned())
        };
        Ok(Self {
            metadata: Metadata::of(root)?,
            number_of_replicas: spec.i64("numberOfReplicas")?,
            size: text(&spec, "size")?,
            standby: spec.optional_bool("Standby")?.unwrap_or(false),
            migration_node: text(&spec, "migrationNodeID")?,
            state: status.str("state")?.to_owned(),
            robustness: status.str("robustness")?.to_owned(),
            current_node: text(&status, "currentNodeID")?,
            last_degraded_at: status.optional_time("lastDegradedAt")?,
            switchover_state: text(&status, "switchoverState")?,
            claim: claim(&status)?,
            conditions: Condition::list(&status)?,
        })
    }
}

fn claim(status: &Fields<'_>) -> Result<Option<String>, Malformed> {
    let Some(kubernetes) = status.optional_object("kubernetesStatus")? else { return Ok(None) };
    let namespace = kubernetes.optional_str("namespace")?.unwrap_or_default();
    let name = kubernetes.optional_str("pvcName")?.unwrap_or_default();
    Ok((!name.is_empty()).then(|| format!("{namespace}/{name}")))
}

/// A replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// Name, deletion.
    pub metadata: Metadata,
    /// `spec.volumeName`
    pub volume: String,
    /// `spec.nodeID`; empty while unscheduled.
    pub node: String,
    /// `spec.healthyAt`: set when it was first read-write, cleared before a rebuild.
    pub healthy_at: Option<Timestamp>,
    /// `spec.failedAt`: set on failure, cleared before a rebuild.
    pub failed_at: Option<Timestamp>,
}

impl Source for Replica {
    const SPEC: SourceSpec = spec(SourceId::LonghornReplicas, "Replica", "replicas");

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let spec = root.object("spec")?;
        Ok(Self {
            metadata: Metadata::of(root)?,
            volume: spec.str("volumeName")?.to_owned(),
            node: spec.optional_str("nodeID")?.unwrap_or_default().to_owned(),
            healthy_at: spec.optional_time("healthyAt")?,
            failed_at: spec.optional_time("failedAt")?,
        })
    }
}

/// An engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    /// Name, deletion.
    pub metadata: Metadata,
    /// `spec.volumeName`
    pub volume: String,
    /// `status.replicaModeMap`: RW, WO or ERR by replica name.
    pub replica_modes: BTreeMap<String, String>,
    /// `status.currentReplicaAddressMap`: address by replica name.
    pub replica_addresses: BTreeMap<String, String>,
    /// `status.currentSize`: bytes, as text in the API; empty while unknown.
    pub current_size: String,
    /// `status.isExpanding`; absent means false.
    pub is_expanding: bool,
    /// `status.rebuildStatus` by replica address: is it rebuilding, and its progress in percent.
    pub rebuilds: Vec<Rebuild>,
    /// `status.restoreStatus`: addresses that are restoring.
    pub restoring: Vec<String>,
}

/// One entry of `status.rebuildStatus`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuild {
    /// Address of the replica (`tcp://ip:port`).
    pub address: String,
    /// `isRebuilding`; absent means false.
    pub is_rebuilding: bool,
    /// `progress`, in percent.
    pub progress: i64,
}

impl Source for Engine {
    const SPEC: SourceSpec = spec(SourceId::LonghornEngines, "Engine", "engines");

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let status = root.object("status")?;
        let mut rebuilds = Vec::new();
        for (address, entry) in status.members("rebuildStatus")? {
            rebuilds.push(Rebuild {
                address: address.to_owned(),
                is_rebuilding: entry.optional_bool("isRebuilding")?.unwrap_or(false),
                progress: entry.optional_i64("progress")?.unwrap_or(0),
            });
        }
        let mut restoring = Vec::new();
        for (address, entry) in status.members("restoreStatus")? {
            if entry.optional_bool("isRestoring")?.unwrap_or(false) {
                restoring.push(address.to_owned());
            }
        }
        Ok(Self {
            metadata: Metadata::of(root)?,
            volume: root.object("spec")?.str("volumeName")?.to_owned(),
            replica_modes: status.string_map("replicaModeMap")?,
            replica_addresses: status.string_map("currentReplicaAddressMap")?,
            current_size: status.optional_str("currentSize")?.unwrap_or_default().to_owned(),
            is_expanding: status.optional_bool("isExpanding")?.unwrap_or(false),
            rebuilds,
            restoring,
        })
    }
}

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Name.
    pub metadata: Metadata,
    /// Top-level `value`; JSON per data engine for some since 1.10.
    pub value: String,
}

impl Source for Setting {
    const SPEC: SourceSpec = spec(SourceId::LonghornSettings, "Setting", "settings");

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self { metadata: Metadata::of(root)?, value: root.str("value")?.to_owned() })
    }
}
