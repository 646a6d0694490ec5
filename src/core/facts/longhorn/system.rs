//! What Longhorn runs on: its nodes with their disks, its instance managers, and who attached what where.

use super::{Condition, Fields, Malformed, Metadata, Source, SourceSpec, spec, text};
use crate::api::SourceId;
use crate::facts::TriState;

/// A node as Longhorn sees it (`nodes.longhorn.io`); its name is that of the Kubernetes Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Name, deletion.
    pub metadata: Metadata,
    /// `spec.allowScheduling`: new replicas may be placed on it.
    pub allow_scheduling: bool,
    /// `spec.evictionRequested`: its replicas are to be moved elsewhere.
    pub eviction_requested: bool,
    /// `status.autoEvicting` (1.6): Longhorn moves its replicas away because of the drain policy; absent means false.
    pub auto_evicting: bool,
    /// `status.conditions`: Ready, Schedulable and others.
    pub conditions: Vec<Condition>,
    /// `spec.disks` with `status.diskStatus`, by name.
    pub disks: Vec<Disk>,
}

/// A disk of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Its name: the key in both maps.
    pub name: String,
    /// `spec.disks.allowScheduling`
    pub allow_scheduling: bool,
    /// `spec.disks.evictionRequested`
    pub eviction_requested: bool,
    /// `status.diskStatus.diskUUID`: what a replica's `spec.diskID` names; empty before the first report.
    pub uuid: String,
    /// `status.diskStatus.conditions`: Ready, Schedulable; none before the first report.
    pub conditions: Option<Vec<Condition>>,
}

/// What a condition of a list says; none where it is not there.
fn condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.kind == kind)
}

impl Node {
    /// The condition of a type.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        condition(&self.conditions, kind)
    }

    /// Whether a condition is True.
    #[must_use]
    pub fn is(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.status == TriState::True)
    }
}

impl Disk {
    /// The condition of a type.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        condition(self.conditions.as_deref()?, kind)
    }

    /// Whether a condition is True.
    #[must_use]
    pub fn is(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.status == TriState::True)
    }
}

impl Source for Node {
    const SPEC: SourceSpec = spec(SourceId::LonghornNodes, "Node", "nodes");

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let (spec, status) = (root.object("spec")?, root.object("status")?);
        let reported = status.members("diskStatus")?;
        let mut disks = Vec::new();
        for (name, disk) in spec.members("disks")? {
            let report = reported.iter().find(|(reported, _)| *reported == name).map(|(_, report)| report);
            disks.push(Disk {
                name: name.to_owned(),
                allow_scheduling: disk.bool("allowScheduling")?,
                eviction_requested: disk.bool("evictionRequested")?,
                uuid: report.map_or(Ok(String::new()), |report| text(report, "diskUUID"))?,
                conditions: report.map(Condition::list).transpose()?,
            });
        }
        Ok(Self {
            metadata: Metadata::of(root)?,
            allow_scheduling: spec.bool("allowScheduling")?,
            eviction_requested: spec.bool("evictionRequested")?,
            auto_evicting: status.optional_bool("autoEvicting")?.unwrap_or(false),
            conditions: Condition::list(&status)?,
            disks,
        })
    }
}

/// An instance manager: the pod that runs the engines and replicas of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceManager {
    /// Name (its pod's and its budget's too), deletion.
    pub metadata: Metadata,
    /// `spec.nodeID`
    pub node: String,
    /// `spec.type`: aio; engine or replica before 1.5.
    pub kind: String,
    /// `spec.dataEngine`: v1 or v2; empty before 1.6 means v1.
    pub data_engine: String,
    /// `status.currentState`: running, stopped, starting, error or unknown.
    pub state: String,
    /// `status.instanceEngines` (and `status.instances`, gone in 1.11, where the entry is an engine): names of the
    /// engines that it lists, running or not. Its budget stays while there is one.
    pub engines: Vec<String>,
    /// Whether it lists any instance at all.
    pub has_instances: bool,
}

impl Source for InstanceManager {
    const SPEC: SourceSpec = spec(SourceId::LonghornInstanceManagers, "InstanceManager", "instancemanagers");

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let (spec, status) = (root.object("spec")?, root.object("status")?);
        let kind = spec.str("type")?.to_owned();
        let names = |key: &str| -> Result<Vec<String>, Malformed> {
            Ok(status.members(key)?.into_iter().map(|(name, _)| name.to_owned()).collect())
        };
        // Before 1.5 one map held whatever the manager's type says; later it holds leftovers, engines as a rule.
        let old = names("instances")?;
        let mut engines = names("instanceEngines")?;
        let others = [names("instanceReplicas")?, names("instanceEngineFrontends")?];
        let has_instances = !old.is_empty() || !engines.is_empty() || others.iter().any(|map| !map.is_empty());
        if kind != "replica" {
            engines.extend(old);
        }
        engines.sort();
        engines.dedup();
        Ok(Self {
            metadata: Metadata::of(root)?,
            node: spec.str("nodeID")?.to_owned(),
            kind,
            data_engine: text(&spec, "dataEngine")?,
            state: status.str("currentState")?.to_owned(),
            engines,
            has_instances,
        })
    }
}

/// Who wants a volume attached, and where (`volumeattachments.longhorn.io`, since 1.5); not the kind of that name in
/// `storage.k8s.io`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Name, deletion.
    pub metadata: Metadata,
    /// `spec.volume`
    pub volume: String,
    /// `spec.attachmentTickets`
    pub tickets: Vec<Ticket>,
}

/// One wish to have a volume attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    /// `type`: `csi-attacher`, `longhorn-api` (a person), `share-manager-controller`, `backup-controller` ...
    pub kind: String,
    /// `nodeID`
    pub node: String,
}

impl Source for Attachment {
    const SPEC: SourceSpec = spec(SourceId::LonghornAttachments, "VolumeAttachment", "volumeattachments");

    fn decode(root: &Fields<'_>) -> Result<Self, Malformed> {
        let spec = root.object("spec")?;
        let mut tickets = Vec::new();
        for (_, ticket) in spec.members("attachmentTickets")? {
            tickets.push(Ticket { kind: ticket.str("type")?.to_owned(), node: ticket.str("nodeID")?.to_owned() });
        }
        Ok(Self { metadata: Metadata::of(root)?, volume: spec.str("volume")?.to_owned(), tickets })
    }
}
