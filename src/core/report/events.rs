//! Kubernetes Events of a run: from what its record said before and says now. Pure.
//!
//! Each is told twice, once regarding the Maintenance and once regarding the Node: `kubectl describe` looks an Event up
//! by `involvedObject` alone, by name and uid, and never by `related`. Both kinds are cluster-scoped, whose Events live
//! in namespace `default` (`legacyValidateEvent` in pkg/apis/core/validation/events.go of Kubernetes).
//!
//! A name is made from what the Event tells and not from when it is sent: a step that is repeated, and the next leader,
//! make the same one, and the API server takes it once. One reason per gate, since whoever aggregates Events by reason
//! would keep the first note of two only.

use jiff::Timestamp;

use crate::api::record::{FindingRecord, Maintenance, MaintenanceStatus};
use crate::api::{Phase, Reason, Status, names};
use crate::plan::{parse_time, phase_of, stamp};
use crate::state::Unreadable;

/// A gate that still holds a run up is told again after this long, in seconds.
pub const AGAIN_SECONDS: i64 = 600;
/// `note` of an Event: at most this many bytes (NoteLengthLimit of Kubernetes).
pub const MAX_NOTE: usize = 1024;
/// What is kept of an object's name in the name of an Event: with a hash it stays below the 253 of any name.
const MAX_STEM: usize = 200;

crate::api::names! {
    /// Reasons of Events beside those of gates.
    EventReason, "event", {
        /// A record wants to run.
        Wished = "MaintenanceWished",
        /// The node is about to be cordoned.
        Started = "MaintenanceStarted",
        /// The node is cordoned and pods are being evicted.
        Draining = "NodeDraining",
        /// What had to go is gone; the act is near.
        Acting = "NodeReadyForAction",
        /// The reboot can no longer be prevented.
        Committed = "MaintenanceCommitted",
        /// The node is back, or is proven anew.
        Verifying = "NodeVerifying",
        /// Proven; the cordon is being taken off.
        Uncordoning = "NodeProven",
        /// The cluster becomes whole again.
        Settling = "ClusterSettling",
        /// Everything of ours is put back.
        BackingOut = "MaintenanceBackingOut",
        /// It was not done; nothing of ours is left.
        BackedOut = "MaintenanceBackedOut",
        /// A person is needed.
        Held = "MaintenanceHeld",
        /// Done.
        Finished = "MaintenanceFinished",
        /// A halt stops a run that is at work.
        Halted = "MaintenanceHalted",
        /// It goes on after a halt.
        Unhalted = "MaintenanceUnhalted",
        /// What the leader remembers cannot be read.
        StateUnreadable = "StateUnreadable",
    }
}

/// An object that an Event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// `apiVersion`
    pub api_version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Name.
    pub name: String,
    /// Namespace; empty for what has none.
    pub namespace: String,
    /// uid. For a node whose uid is not known its name, as the kubelet does; kubectl asks for both.
    pub uid: String,
}

/// One Event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventNote {
    /// `metadata.name`
    pub name: String,
    /// What it is about.
    pub regarding: Subject,
    /// What else it concerns.
    pub related: Option<Subject>,
    /// `reason`
    pub reason: String,
    /// `action`: what maint did or does.
    pub action: &'static str,
    /// `type` Warning instead of Normal.
    pub warning: bool,
    /// `note`, at most [`MAX_NOTE`] bytes.
    pub note: String,
    /// `eventTime`: when it became so.
    pub at: Timestamp,
    /// How often it has been told with this one; from 2 on it is a series.
    pub count: i64,
}

impl EventNote {
    /// Where it is kept.
    #[must_use]
    pub fn namespace(&self) -> &str {
        if self.regarding.namespace.is_empty() { "default" } else { &self.regarding.namespace }
    }
}

/// What is told, before it is known about whom.
struct Told {
    reason: String,
    action: &'static str,
    warning: bool,
    note: String,
    /// What makes it another Event than one of the same reason.
    key: String,
    at: Timestamp,
    count: i64,
}

/// What changed from one status of a record to the next.
#[must_use]
pub fn changes(record: &Maintenance, old: Option<&MaintenanceStatus>, new: &MaintenanceStatus) -> Vec<EventNote> {
    let old_phase = old.map_or("", |status| status.phase.as_str());
    let mut told = Vec::new();
    if old_phase != new.phase {
        told.extend(entered(record, new));
    }
    let (was, is) = (old.and_then(halted), halted(new));
    match (was, is) {
        (None, Some((since, note))) => told.push(halt(EventReason::Halted, since, note, new)),
        (Some((since, _)), None) if phase_of_status(new).is_some_and(Phase::is_in_flight) => {
            told.push(halt(EventReason::Unhalted, since, "it goes on after a halt".to_owned(), new));
        }
        _ => {}
    }
    both(record, new, told)
}

/// What holds a run up now, before commit: each gate that does, under its own reason.
#[must_use]
pub fn standing(record: &Maintenance, status: &MaintenanceStatus, now: Timestamp) -> Vec<EventNote> {
    let before_commit = matches!(phase_of(record), Phase::Pending | Phase::Cordoning | Phase::Draining | Phase::Acting);
    let Some(since) = parse_time(status.blocked_since.as_ref()).filter(|_| before_commit) else { return Vec::new() };
    let count = 1 + now.duration_since(since).as_secs().max(0) / AGAIN_SECONDS;
    let stops = |finding: &&FindingRecord| {
        [Status::Block, Status::Unknown].iter().any(|status| finding.status == status.as_str())
    };
    let told = status.findings.iter().filter(stops).map(|finding| Told {
        reason: finding.reason.clone(),
        action: if finding.status == Status::Block.as_str() { "GateBlocks" } else { "GateIsUnknown" },
        warning: true,
        note: format!("{} holds up the maintenance of {}: {}", finding.gate, record.spec.node_name, finding.message),
        key: format!("{} {} {}", finding.gate, status.phase, stamp(since)),
        at: since,
        count,
    });
    both(record, status, told.collect())
}

/// A key of what the leader remembers cannot be read.
#[must_use]
pub fn unreadable(problem: &Unreadable, namespace: &str, uid: &str, at: Timestamp) -> EventNote {
    let regarding = Subject {
        api_version: "v1",
        kind: "ConfigMap",
        name: names::STATE_CONFIG_MAP.to_owned(),
        namespace: namespace.to_owned(),
        uid: uid.to_owned(),
    };
    let end = if problem.replaced {
        "it was replaced by what is proven now; the old text is in the log"
    } else {
        "it stays as it is"
    };
    let told = Told {
        reason: EventReason::StateUnreadable.as_str().to_owned(),
        action: "ReadState",
        warning: true,
        note: format!("{problem}; {end}"),
        key: format!("{} {}", problem.key, problem.text),
        at,
        count: 1,
    };
    note(&told, regarding, None)
}

fn phase_of_status(status: &MaintenanceStatus) -> Option<Phase> {
    status.phase.parse().ok()
}

/// The Event of a phase that began.
fn entered(record: &Maintenance, status: &MaintenanceStatus) -> Option<Told> {
    let phase = phase_of_status(status)?;
    let (reason, warning) = match phase {
        Phase::Pending => (EventReason::Wished, false),
        Phase::Cordoning => (EventReason::Started, false),
        Phase::Draining => (EventReason::Draining, false),
        Phase::Acting => (EventReason::Acting, false),
        Phase::Returning => (EventReason::Committed, false),
        Phase::Verifying => (EventReason::Verifying, false),
        Phase::Uncordoning => (EventReason::Uncordoning, false),
        Phase::Settling => (EventReason::Settling, false),
        Phase::BackingOut => (EventReason::BackingOut, true),
        Phase::Held => (EventReason::Held, true),
        Phase::Succeeded => (EventReason::Finished, !status.warnings.is_empty()),
        Phase::Failed => (EventReason::BackedOut, true),
        Phase::Cancelled => (EventReason::BackedOut, false),
    };
    let spec = &record.spec;
    let why = match phase {
        Phase::Pending => format!("{} by action {}, asked by {}", spec.scope, spec.action, asker(record)),
        _ if status.outcome.is_empty() => status.message.clone(),
        _ => format!("{}: {}", status.outcome, status.message),
    };
    let at = parse_time(status.step_started_at.as_ref())?;
    Some(Told {
        reason: reason.as_str().to_owned(),
        action: phase.as_str(),
        warning,
        note: format!("{}: {why}", spec.node_name),
        key: stamp(at),
        at,
        count: 1,
    })
}

fn asker(record: &Maintenance) -> &str {
    if record.spec.requested_by.is_empty() { &record.spec.trigger } else { &record.spec.requested_by }
}

/// Since when a run at work is halted, and what is said of it. Before commit the record keeps the instant; after it the
/// gate goes on to say so. A wish that a halt holds up is told like any other gate.
fn halted(status: &MaintenanceStatus) -> Option<(Timestamp, String)> {
    let phase = phase_of_status(status).filter(|phase| phase.is_in_flight())?;
    if let Some(since) = parse_time(status.halted_since.as_ref()) {
        return Some((since, status.message.clone()));
    }
    let finding = status.findings.iter().find(|finding| finding.reason == Reason::Halted.as_str())?;
    let since = parse_time(finding.since.as_ref()).filter(|_| phase.is_committed())?;
    Some((since, finding.message.clone()))
}

fn halt(reason: EventReason, since: Timestamp, note: String, status: &MaintenanceStatus) -> Told {
    let action = phase_of_status(status).map_or("Halt", Phase::as_str);
    Told {
        reason: reason.as_str().to_owned(),
        action,
        warning: reason == EventReason::Halted,
        note,
        key: stamp(since),
        at: since,
        count: 1,
    }
}

fn both(record: &Maintenance, status: &MaintenanceStatus, told: Vec<Told>) -> Vec<EventNote> {
    let uid = status.node.as_ref().map(|node| node.uid.clone()).filter(|uid| !uid.is_empty());
    let node = Subject {
        api_version: "v1",
        kind: "Node",
        name: record.spec.node_name.clone(),
        namespace: String::new(),
        uid: uid.unwrap_or_else(|| record.spec.node_name.clone()),
    };
    let run = Subject {
        api_version: "maint.dev/v1alpha1",
        kind: "Maintenance",
        name: record.metadata.name.clone().unwrap_or_default(),
        namespace: String::new(),
        uid: record.metadata.uid.clone().unwrap_or_default(),
    };
    told.iter()
        .flat_map(|told| {
            let about_run = note(told, run.clone(), Some(node.clone()));
            [about_run, note(told, node.clone(), Some(run.clone()))]
        })
        .collect()
}

fn note(told: &Told, regarding: Subject, related: Option<Subject>) -> EventNote {
    let other = related.as_ref().map_or("", |other| other.uid.as_str());
    // The uid of the run tells two runs of one node apart, whichever side it is on.
    let text = [regarding.kind, &regarding.uid, other, &told.reason, &told.key].join("\n");
    let stem: String = regarding.name.chars().take(MAX_STEM).collect();
    EventNote {
        name: format!("{}.{:016x}", stem.trim_end_matches(['.', '-']), hash(&text)),
        regarding,
        related,
        reason: told.reason.clone(),
        action: told.action,
        warning: told.warning,
        note: cut(&told.note),
        at: told.at,
        count: told.count,
    }
}

/// The beginning of a text that fits into a note.
fn cut(text: &str) -> String {
    if text.len() <= MAX_NOTE {
        return text.to_owned();
    }
    let end = (0..=MAX_NOTE - 3).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}...", &text[..end])
}

/// FNV-1a, 64 bits: the same in every process and version.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests;
