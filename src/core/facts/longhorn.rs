//! Longhorn's kinds (`longhorn.io/v1beta2`, the only version served since 1.10).
//!
//! What its controllers always write (no `omitempty` in longhorn-manager's types) must be there; maps, lists and
//! what younger releases added may be null or missing.

mod system;

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::source::{Namespaces, Source, SourceSpec};
use super::{Condition, Fields, Malformed, Metadata};
use crate::api::SourceId;

pub use system::{Attachment, Disk, InstanceManager, Node, Ticket};

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
    /// `spec.size`: bytes, a number written as text in the API.
    pub size: i64,
    /// `spec.accessMode`: rwo, rwx or rwop; empty if not set.
    pub access_mode: String,
    /// `spec.dataEngine`: v1 or v2; empty before 1.5.
    pub data_engine: String,
    /// `spec.dataLayout.type` (1.13): replicated or sharded; empty means replicated.
    pub data_layout: String,
    /// `spec.Standby`: a disaster-recovery volume; absent means false.
    pub standby: bool,
    /// `spec.replicaSoftAntiAffinity`: enabled, disabled or ignored (the setting of that name counts); empty before 1.4.
    pub soft_anti_affinity: String,
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
    /// `status.shareState` of a shared (rwx) volume: running, starting, stopping, stopped, error or unknown; empty for others.
    pub share_state: String,
    /// `status.restoreRequired`: it is to be filled from a backup.
    pub restore_required: bool,
    /// `status.expansionRequired`: it grows when it is attached next.
    pub expansion_required: bool,
    /// `status.kubernetesStatus`: namespace and name of the claim, for sentences.
    pub claim: Option<String>,
    /// `status.kubernetesStatus.pvName`: its PersistentVolume; empty if it has none.
    pub persistent_volume: String,
    /// `metadata.creationTimestamp`
    pub created: Option<Timestamp>,
    /// `status.conditions`; types changed case between releases.
    pub conditions: Vec<Condition>,
}

impl Source for Volume {
    const SPEC: SourceSpec = spec(SourceId::LonghornVolumes, "Volume", "volumes");

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let spec = root.object("spec")?;
        let status = root.object("status")?;
        let layout = spec.optional_object("dataLayout")?;
        let data_layout = layout.map_or_else(|| Ok(String::new()), |layout| text(&layout, "type"))?;
        let kubernetes = status.optional_object("kubernetesStatus")?;
        let kubernetes = kubernetes.as_ref();
        Ok(Self {
            metadata: Metadata::of(root)?,
            number_of_replicas: number_of_replicas(&spec, &data_layout)?,
            size: bytes(&spec, "size")?.ok_or_else(|| spec.malformed("size", "is missing"))?,
            access_mode: text(&spec, "accessMode")?,
            data_engine: text(&spec, "dataEngine")?,
            data_layout,
            standby: spec.optional_bool("Standby")?.unwrap_or(false),
            soft_anti_affinity: text(&spec, "replicaSoftAntiAffinity")?,
            migration_node: spec.str("migrationNodeID")?.to_owned(),
            state: status.str("state")?.to_owned(),
            robustness: status.str("robustness")?.to_owned(),
            current_node: text(&status, "currentNodeID")?,
            last_degraded_at: status.optional_time("lastDegradedAt")?,
            switchover_state: text(&status, "switchoverState")?,
            share_state: text(&status, "shareState")?,
            restore_required: status.bool("restoreRequired")?,
            expansion_required: status.bool("expansionRequired")?,
            claim: kubernetes.map_or(Ok(None), claim)?,
            persistent_volume: kubernetes.map_or_else(|| Ok(String::new()), |status| text(status, "pvName"))?,
            created: root.object("metadata")?.optional_time("creationTimestamp")?,
            conditions: Condition::list(&status)?,
        })
    }
}

impl Volume {
    /// `spec.dataLayout.type` of an erasure-coded volume.
    pub const SHARDED: &'static str = "sharded";

    /// The condition of a type. 1.5 wrote `scheduled` and `restore`, 1.6 renamed them: case does not matter.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind.eq_ignore_ascii_case(kind))
    }
}

fn text(from: &Fields<'_>, key: &str) -> Result<String, Malformed> {
    Ok(from.optional_str(key)?.unwrap_or_default().to_owned())
}

/// A number of bytes, which Longhorn writes as text (`json:",string"`).
fn bytes(from: &Fields<'_>, key: &str) -> Result<Option<i64>, Malformed> {
    let Some(text) = from.optional_str(key)? else { return Ok(None) };
    let number = text.parse().map_err(|_| from.malformed(key, format!("is `{text}`, wanted a number of bytes")))?;
    Ok(Some(number))
}

/// At least one: Longhorn's webhook admits 1 to 20. A sharded volume has none and is not judged by replicas.
fn number_of_replicas(spec: &Fields<'_>, data_layout: &str) -> Result<i64, Malformed> {
    let wanted = spec.i64("numberOfReplicas")?;
    if wanted < 1 && data_layout != Volume::SHARDED {
        return Err(spec.malformed("numberOfReplicas", format!("is {wanted}, wanted at least 1")));
    }
    Ok(wanted)
}

/// In `spec` since 1.6, in `status` before 1.10: always written in one of them.
fn eviction_requested(spec: &Fields<'_>, status: Option<&Fields<'_>>) -> Result<bool, Malformed> {
    let wanted = spec.optional_bool("evictionRequested")?;
    let old = status.map_or(Ok(None), |status| status.optional_bool("evictionRequested"))?;
    match (wanted, old) {
        (None, None) => Err(spec.malformed("evictionRequested", "is missing, in status too")),
        (wanted, old) => Ok(wanted == Some(true) || old == Some(true)),
    }
}

/// A time that Longhorn always writes, with `""` for "not set": a replica without the key is not understood, since
/// "never failed" must not be read out of a gap.
fn written_time(from: &Fields<'_>, key: &str) -> Result<Option<Timestamp>, Malformed> {
    from.str(key)?;
    from.optional_time(key)
}

fn claim(kubernetes: &Fields<'_>) -> Result<Option<String>, Malformed> {
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
    /// `spec.lastHealthyAt` or `spec.lastFailedAt` (1.7) is set: it was in use once. Never cleared, so no health.
    pub was_used: bool,
    /// `spec.diskID`; empty while unscheduled.
    pub disk: String,
    /// `spec.evictionRequested` (1.6), or the same in `status` (before 1.10): it is to be moved elsewhere.
    pub eviction_requested: bool,
}

impl Source for Replica {
    const SPEC: SourceSpec = spec(SourceId::LonghornReplicas, "Replica", "replicas");

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let spec = root.object("spec")?;
        let status = root.optional_object("status")?;
        Ok(Self {
            metadata: Metadata::of(root)?,
            volume: spec.str("volumeName")?.to_owned(),
            node: spec.str("nodeID")?.to_owned(),
            healthy_at: written_time(&spec, "healthyAt")?,
            failed_at: written_time(&spec, "failedAt")?,
            was_used: spec.optional_time("lastHealthyAt")?.is_some() || spec.optional_time("lastFailedAt")?.is_some(),
            disk: text(&spec, "diskID")?,
            eviction_requested: eviction_requested(&spec, status.as_ref())?,
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
    /// `status.currentReplicaAddressMap`: `ip:port` by replica name.
    pub replica_addresses: BTreeMap<String, String>,
    /// `status.currentState`: running, stopped, error ...; empty before the first report.
    pub current_state: String,
    /// `status.currentSize`: bytes, a number written as text in the API; none before the first report.
    pub current_size: Option<i64>,
    /// `status.isExpanding`; none before the first report (it is always written afterwards).
    pub is_expanding: Option<bool>,
    /// `status.rebuildStatus` by replica address: is it rebuilding, and its progress in percent.
    pub rebuilds: Vec<Rebuild>,
    /// `status.restoreStatus`: addresses that are restoring.
    pub restoring: Vec<String>,
    /// `status.purgeStatus`: addresses that merge and remove snapshots.
    pub purging: Vec<String>,
    /// `status.backupStatus`: names of the backups that are neither complete nor failed.
    pub backing_up: Vec<String>,
}

/// One entry of `status.rebuildStatus`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuild {
    /// Address of the replica: `ip:port`.
    pub address: String,
    /// `isRebuilding`
    pub is_rebuilding: bool,
    /// `progress`, in percent; none if not told.
    pub progress: Option<i64>,
}

impl Source for Engine {
    const SPEC: SourceSpec = spec(SourceId::LonghornEngines, "Engine", "engines");

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let status = root.object("status")?;
        let mut rebuilds = Vec::new();
        for (address, entry) in status.members("rebuildStatus")? {
            rebuilds.push(Rebuild {
                address: bare_address(address).to_owned(),
                is_rebuilding: entry.bool("isRebuilding")?,
                progress: entry.optional_i64("progress")?,
            });
        }
        let mut restoring = Vec::new();
        for (address, entry) in status.members("restoreStatus")? {
            if entry.bool("isRestoring")? {
                restoring.push(address.to_owned());
            }
        }
        let mut purging = Vec::new();
        for (address, entry) in status.members("purgeStatus")? {
            if entry.bool("isPurging")? {
                purging.push(address.to_owned());
            }
        }
        let mut backing_up = Vec::new();
        for (name, entry) in status.members("backupStatus")? {
            if !matches!(entry.optional_str("state")?, Some("complete" | "error")) {
                backing_up.push(name.to_owned());
            }
        }
        Ok(Self {
            metadata: Metadata::of(root)?,
            volume: root.object("spec")?.str("volumeName")?.to_owned(),
            replica_modes: status.string_map("replicaModeMap")?,
            replica_addresses: addresses(&status)?,
            current_state: text(&status, "currentState")?,
            current_size: bytes(&status, "currentSize")?,
            is_expanding: status.optional_bool("isExpanding")?,
            rebuilds,
            restoring,
            purging,
            backing_up,
        })
    }
}

fn addresses(status: &Fields<'_>) -> Result<BTreeMap<String, String>, Malformed> {
    let mut addresses = status.string_map("currentReplicaAddressMap")?;
    for address in addresses.values_mut() {
        *address = bare_address(address).to_owned();
    }
    Ok(addresses)
}

/// `rebuildStatus` is keyed by `tcp://ip:port`, `currentReplicaAddressMap` has `ip:port`.
fn bare_address(address: &str) -> &str {
    address.strip_prefix("tcp://").unwrap_or(address)
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
