//! What is known of Longhorn's own parts, indexed, and the words for it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::super::longhorn_settings::LonghornSettings;
use super::super::nodes::others;
use super::super::storage::{List, NodeIndex, required};
use super::super::{Draft, GateInput, Read};
use crate::api::{Evidence, Moment, Reason, SourceId, Status};
use crate::facts::longhorn::{Attachment, Engine, InstanceManager, Node, Replica, Volume};
use crate::facts::{Condition, Item, Listed, TriState};

/// One thing that is wrong.
#[derive(Debug)]
pub(super) struct Problem {
    pub status: Status,
    pub reason: Reason,
    pub message: String,
    /// Since when, where Longhorn tells.
    pub since: Option<Timestamp>,
    /// What it was seen on; the first is also what the baseline of a run is compared by.
    pub evidence: Vec<Evidence>,
}

impl Problem {
    pub fn new(status: Status, reason: Reason, message: impl Into<String>, evidence: Evidence) -> Self {
        Self { status, reason, message: message.into(), since: None, evidence: vec![evidence] }
    }
}

/// All that the gate reads. A list that could not be read is empty and incomplete here; the draft holds the unknown.
pub(super) struct System<'a> {
    pub input: &'a GateInput<'a>,
    pub nodes: NodeIndex<'a>,
    /// Longhorn's nodes by name.
    pub members: BTreeMap<&'a str, &'a Node>,
    pub managers: List<'a, InstanceManager>,
    pub settings: LonghornSettings<'a>,
    pub attachments: Vec<&'a Attachment>,
    volumes: BTreeMap<&'a str, &'a Volume>,
    replicas: BTreeMap<&'a str, Vec<&'a Replica>>,
    engines: BTreeMap<&'a str, &'a Engine>,
    /// Whether `engines` and `volumes` are all that there are.
    pub engines_are_all: bool,
    /// Names of Longhorn's nodes that could not be decoded: they are there all the same.
    unreadable: BTreeSet<&'a str>,
    /// Names of the budgets in Longhorn's namespace; none if they could not be read completely.
    budgets: Option<BTreeSet<&'a str>>,
    ignored: BTreeSet<&'a str>,
}

fn nothing<T>(list: Option<List<'_, T>>) -> List<'_, T> {
    list.unwrap_or(List { items: Vec::new(), complete: false })
}

impl<'a> System<'a> {
    /// Reads what the moment needs. None without the nodes.
    pub fn read(draft: &mut Draft<'a>, input: &'a GateInput<'a>, members: Vec<&'a Node>) -> Option<Self> {
        let (facts, because) = (input.facts, "Longhorn is installed");
        let nodes = NodeIndex::read(draft, input);
        let verify = input.moment == Moment::Verify;
        let mut system = Self {
            input,
            nodes: nodes?,
            members: members.into_iter().map(|member| (member.metadata.name.as_str(), member)).collect(),
            managers: nothing(None),
            settings: if verify { LonghornSettings::unread() } else { LonghornSettings::read(draft, input) },
            attachments: Vec::new(),
            volumes: BTreeMap::new(),
            replicas: BTreeMap::new(),
            engines: BTreeMap::new(),
            engines_are_all: false,
            unreadable: unreadable(&facts.longhorn_nodes),
            budgets: None,
            ignored: ignored(input),
        };
        if verify {
            return Some(system);
        }
        let managers = &facts.longhorn_instance_managers;
        system.managers = nothing(required(draft, SourceId::LonghornInstanceManagers, managers, because));
        let volumes = nothing(required(draft, SourceId::LonghornVolumes, &facts.longhorn_volumes, because));
        let engines = nothing(required(draft, SourceId::LonghornEngines, &facts.longhorn_engines, because));
        system.engines_are_all = volumes.complete && engines.complete;
        system.volumes = volumes.items.into_iter().map(|one| (one.metadata.name.as_str(), one)).collect();
        system.engines = engines.items.into_iter().map(|one| (one.metadata.name.as_str(), one)).collect();
        for replica in nothing(required(draft, SourceId::LonghornReplicas, &facts.longhorn_replicas, because)).items {
            if replica.metadata.deletion_timestamp.is_none() {
                system.replicas.entry(&replica.volume).or_default().push(replica);
            }
        }
        // Before 1.5 there is no such kind.
        if let Read::Known(attachments) = draft.read(SourceId::LonghornAttachments, &facts.longhorn_attachments) {
            system.attachments = attachments;
        }
        if input.moment == Moment::Start {
            system.budgets = budgets(draft, input);
        }
        Some(system)
    }

    /// The volumes with their replicas that are not being deleted; replicas of an unknown volume are left out.
    pub fn volumes(&self) -> impl Iterator<Item = (&'a Volume, &[&'a Replica])> {
        let replicas = |name: &str| self.replicas.get(name).map_or(&[][..], Vec::as_slice);
        self.volumes.iter().map(move |(name, volume)| (*volume, replicas(name)))
    }

    /// Every replica that is not being deleted.
    pub fn replicas(&self) -> impl Iterator<Item = &'a Replica> {
        self.replicas.values().flatten().copied()
    }

    /// The volume of an engine; none where there is no such engine or volume.
    pub fn volume_of_engine(&self, engine: &str) -> Option<&'a Volume> {
        self.volumes.get(self.engines.get(engine)?.volume.as_str()).copied()
    }

    /// The volume of a name.
    pub fn volume(&self, name: &str) -> Option<&'a Volume> {
        self.volumes.get(name).copied()
    }

    /// Whether Longhorn has a node of this name, readable or not.
    pub fn has_member(&self, name: &str) -> bool {
        self.members.contains_key(name) || self.unreadable.contains(name)
    }

    /// A node that the settings say to ignore; control-plane nodes and the target never are.
    pub fn is_ignored(&self, name: &str) -> bool {
        name != self.input.target && self.ignored.contains(name)
    }

    /// Whether the moment asks about this node: at handover the target is away anyway.
    pub fn is_asked(&self, name: &str) -> bool {
        match self.input.moment {
            Moment::Verify => name == self.input.target,
            Moment::Handover => name != self.input.target && !self.is_ignored(name),
            _ => !self.is_ignored(name),
        }
    }

    pub fn is_target(&self, name: &str) -> bool {
        name == self.input.target
    }

    /// Whether an instance manager has its budget. Where the budgets could not be read the draft is unknown already.
    pub fn is_protected(&self, manager: &InstanceManager) -> bool {
        self.budgets.as_ref().is_none_or(|budgets| budgets.contains(manager.metadata.name.as_str()))
    }
}

fn unreadable<T>(listed: &Listed<T>) -> BTreeSet<&str> {
    let items = listed.known().into_iter().flatten();
    let bad = items.filter_map(|item| match item {
        Item::Malformed(malformed) => malformed.object.rsplit(['/', ' ']).next(),
        Item::Good(_) => None,
    });
    bad.collect()
}

fn ignored<'a>(input: &'a GateInput<'a>) -> BTreeSet<&'a str> {
    let all: Vec<&crate::facts::Node> = input.facts.nodes.good().collect();
    let counted: BTreeSet<&str> = others(input, &all).iter().map(|node| node.metadata.name.as_str()).collect();
    all.iter().map(|node| node.metadata.name.as_str()).filter(|name| !counted.contains(name)).collect()
}

/// The names of the budgets in Longhorn's namespace. None where they are not all known; the draft says so.
fn budgets<'a>(draft: &mut Draft<'a>, input: &'a GateInput<'a>) -> Option<BTreeSet<&'a str>> {
    let because = "Longhorn protects its instance managers by them";
    let list = required(draft, SourceId::PodDisruptionBudgets, &input.facts.pod_disruption_budgets, because)?;
    let namespace = input.settings.longhorn.namespace.as_str();
    let here = list.items.iter().filter(|budget| budget.metadata.namespace == namespace);
    list.complete.then(|| here.map(|budget| budget.metadata.name.as_str()).collect())
}

/// What a condition says that should be True: `False (KubernetesNodeNotReady)`, `missing`; none where it is True.
pub(super) fn not_true(condition: Option<&Condition>) -> Option<(String, Option<Timestamp>)> {
    match condition {
        Some(one) if one.status == TriState::True => None,
        Some(one) if one.reason.is_empty() => Some((one.status.as_str().to_owned(), one.last_transition)),
        Some(one) => Some((format!("{} ({})", one.status.as_str(), one.reason), one.last_transition)),
        None => Some(("missing".to_owned(), None)),
    }
}
