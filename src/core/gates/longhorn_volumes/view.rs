//! One volume with its replicas and engine, and the words for it.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::super::GateInput;
use super::super::longhorn_settings::LonghornSettings;
use super::{List, NodeIndex};
use crate::api::{Evidence, Moment, Reason, Status};
use crate::facts::VolumeAttachment;
use crate::facts::longhorn::{Engine, Replica, Volume};

/// One thing that is wrong with a volume.
#[derive(Debug)]
pub(super) struct Problem {
    /// How bad.
    pub status: Status,
    /// Which.
    pub reason: Reason,
    /// The sentence.
    pub message: String,
    /// Since when, where Longhorn tells.
    pub since: Option<Timestamp>,
    /// What it was seen on; the first is also what the baseline of a run is compared by.
    pub evidence: Vec<Evidence>,
}

/// What is known of Longhorn, by volume: 5,000 volumes must not look at 15,000 replicas each.
pub(super) struct Cluster<'a> {
    /// What the gate is given.
    pub input: &'a GateInput<'a>,
    /// The nodes; none if they could not be read.
    pub nodes: Option<NodeIndex<'a>>,
    /// Longhorn's settings.
    pub settings: LonghornSettings<'a>,
    replicas: Option<Index<'a, Replica>>,
    engines: Option<Index<'a, Engine>>,
    attachments: BTreeMap<&'a str, &'a VolumeAttachment>,
}

struct Index<'a, T> {
    by_volume: BTreeMap<&'a str, Vec<&'a T>>,
    complete: bool,
}

impl<'a, T> Index<'a, T> {
    fn new(list: List<'a, T>, volume_of: impl Fn(&'a T) -> &'a str) -> Self {
        let mut by_volume: BTreeMap<&'a str, Vec<&'a T>> = BTreeMap::new();
        for item in list.items {
            by_volume.entry(volume_of(item)).or_default().push(item);
        }
        Self { by_volume, complete: list.complete }
    }

    fn of(&self, volume: &str) -> &[&'a T] {
        self.by_volume.get(volume).map_or(&[], Vec::as_slice)
    }
}

impl<'a> Cluster<'a> {
    pub fn new(
        input: &'a GateInput<'a>,
        nodes: Option<NodeIndex<'a>>,
        settings: LonghornSettings<'a>,
        replicas: Option<List<'a, Replica>>,
        engines: Option<List<'a, Engine>>,
    ) -> Self {
        // Only to say since when: a judgement on attachments is another gate's.
        let attachments = input.facts.volume_attachments.good();
        Self {
            input,
            nodes,
            settings,
            replicas: replicas.map(|list| Index::new(list, |replica| &replica.volume)),
            engines: engines.map(|list| Index::new(list, |engine| &engine.volume)),
            attachments: attachments.filter_map(|one| Some((one.persistent_volume.as_deref()?, one))).collect(),
        }
    }
}

/// A copy of a volume's data, that is a replica that is not being deleted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Copy<'a> {
    /// The replica.
    pub replica: &'a Replica,
    /// It has all data and can be read from.
    pub healthy: bool,
    /// It is on the node to be maintained.
    pub on_target: bool,
}

impl Copy<'_> {
    /// It never held data: made, perhaps placed, not used so far.
    pub const fn is_unused(&self) -> bool {
        self.replica.healthy_at.is_none() && self.replica.failed_at.is_none()
    }
}

/// One volume, seen with its replicas and engine.
pub(super) struct View<'a, 'c> {
    /// All that is known.
    pub cluster: &'c Cluster<'a>,
    /// The volume.
    pub volume: &'a Volume,
}

impl<'a, 'c> View<'a, 'c> {
    pub const fn new(cluster: &'c Cluster<'a>, volume: &'a Volume) -> Self {
        Self { cluster, volume }
    }

    pub const fn moment(&self) -> Moment {
        self.cluster.input.moment
    }

    pub const fn target(&self) -> &'a str {
        self.cluster.input.target
    }

    /// The engines, and whether these are all; none if they could not be read.
    pub fn engines(&self) -> Option<(&[&'a Engine], bool)> {
        self.cluster.engines.as_ref().map(|index| (index.of(&self.volume.metadata.name), index.complete))
    }

    /// The engine, where there is exactly one.
    pub fn engine(&self) -> Option<&'a Engine> {
        match self.engines()?.0 {
            [engine] => Some(engine),
            _ => None,
        }
    }

    /// The copies; none unless replicas and nodes are known completely, since what follows from a missing copy
    /// must not follow from one that could not be read. Where the engine of an attached volume is not known, its
    /// modes are taken for the best, so that a block is sound all the same.
    pub fn copies(&self) -> Option<Vec<Copy<'a>>> {
        let nodes = self.cluster.nodes.as_ref()?;
        let index = self.cluster.replicas.as_ref().filter(|index| index.complete)?;
        let modes = self.engine().filter(|_| self.volume.state == "attached").map(|engine| &engine.replica_modes);
        let replicas = index.of(&self.volume.metadata.name).iter().copied();
        let live = || replicas.clone().filter(|replica| replica.metadata.deletion_timestamp.is_none());
        if live().any(|replica| nodes.is_unreadable(&replica.node)) {
            return None;
        }
        let copies = live().map(|replica| {
            let mode = modes.is_none_or(|modes| modes.get(&replica.metadata.name).is_some_and(|mode| mode == "RW"));
            let whole = replica.healthy_at.is_some() && replica.failed_at.is_none();
            let healthy = whole && mode && nodes.is_ready(&replica.node);
            Copy { replica, healthy, on_target: replica.node == self.target() }
        });
        Some(copies.collect())
    }

    /// When its attachment was made or asked to go, for how long a transition has lasted.
    pub fn attachment(&self) -> Option<&'a VolumeAttachment> {
        self.cluster.attachments.get(self.volume.persistent_volume.as_str()).copied()
    }

    /// `pvc-4f1c.. (media/jellyfin)`: generated names are cut where the claim tells more; evidence has them in full.
    pub fn label(&self) -> String {
        let name = &self.volume.metadata.name;
        match &self.volume.claim {
            None => name.clone(),
            Some(claim) if name.len() == GENERATED_NAME && name.starts_with("pvc-") && name.is_ascii() => {
                format!("{}.. ({claim})", &name[..8])
            }
            Some(claim) => format!("{name} ({claim})"),
        }
    }

    /// `r-9b2d11aa`: a replica's name without its volume's.
    pub fn short<'n>(&self, replica: &'n str) -> &'n str {
        let rest = replica.strip_prefix(self.volume.metadata.name.as_str());
        rest.and_then(|rest| rest.strip_prefix('-')).unwrap_or(replica)
    }

    /// Evidence on the volume.
    pub fn evidence(&self, field: impl Into<String>, value: impl Into<String>, wanted: &str) -> Evidence {
        Evidence::new(format!("Volume {}", self.volume.metadata.full_name()), field, value, wanted)
    }

    /// A block with one piece of evidence.
    pub fn block(&self, reason: Reason, what: &str, evidence: Evidence) -> Problem {
        self.problem(Status::Block, reason, what, vec![evidence])
    }

    /// Anything; `what` goes on after the volume's name.
    pub fn problem(&self, status: Status, reason: Reason, what: &str, evidence: Vec<Evidence>) -> Problem {
        Problem { status, reason, message: format!("volume {} {what}", self.label()), since: None, evidence }
    }
}

/// Length of `pvc-` and a UUID.
const GENERATED_NAME: usize = 40;

/// `r-1 on node1, r-2 on node2`
pub(super) fn places<'a>(view: &View<'_, '_>, copies: impl Iterator<Item = &'a Copy<'a>>) -> String {
    let one = |copy: &Copy<'_>| {
        let node = if copy.replica.node.is_empty() { "no node" } else { &copy.replica.node };
        format!("{} on {node}", view.short(&copy.replica.metadata.name))
    };
    copies.map(one).collect::<Vec<_>>().join(", ")
}
