//! Gate `exclusive`: fewer other nodes unavailable than the limit; no foreign kured lock of an existing node.
//!
//! Unavailable is a node that is NotReady, cordoned by anyone, or in flight: each counts once, without the target and
//! without `ignore_nodes`. A control-plane target is refused as soon as one other control-plane node is unavailable,
//! whatever the limit says: a second server away can be etcd's quorum (k3s#10942, k3s#2281).
//!
//! kured's lock: an entry that names an existing node blocks, expired or not. kured itself takes an expired lock for
//! free, and just so clusters died one by one while a node was stuck (kube-hetzner#1182, m-lab/k8s-support#476). An
//! entry that names no node is a ghost of a deleted one (kured#478): it is named and blocks nobody.
//! An entry of ours is neither: of this run it is the run's own hold, of another it blocks. The annotation
//! `weave.works/kured-reboot-in-progress` alone is a wish and is not read here: kured writes it before it is let go.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::reading::{deletion_taint, in_flight, installed, node_exists, required};
use super::{Draft, GateInput, GateSpec, nodes};
use crate::api::{Evidence, Finding, GateId, Moment, Policy, Reason, SourceId, Status};
use crate::facts::{DaemonSet, Maintenance, Node};
use crate::kured::hold::{is_of, owner_of};
use crate::kured::lock::{Entry, Format, Lock, MANUAL};
use crate::kured::lock_annotations;
use crate::planted::{self, Bug};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::Exclusive,
    moments: &[Moment::Start, Moment::Cordoned, Moment::Handover],
    reads: &[SourceId::Nodes, SourceId::DaemonSets, SourceId::Maintenances],
    reasons: &[
        Reason::TooManyUnavailable,
        Reason::KuredLockHeld,
        Reason::KuredLockHeldByMaint,
        Reason::KuredLockUnreadable,
    ],
    default_policy: Policy::Require,
    doc: "fewer other nodes unavailable than the limit; no foreign kured lock of an existing node",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::Exclusive, input);
    let all = required(&mut draft, SourceId::Nodes, &input.facts.nodes);
    let maintenances = installed(input, &mut draft, SourceId::Maintenances, &input.facts.maintenances);
    let daemon_sets = required(&mut draft, SourceId::DaemonSets, &input.facts.daemon_sets);
    let mut count = 0;
    if let Some(all) = &all {
        // Where records could not be read the draft is unknown already; what is seen without them can still block.
        let runs = in_flight(&maintenances.unwrap_or_default());
        let unavailable = unavailable(input, all, &runs);
        count = unavailable.len();
        judge_count(input, &mut draft, all, &unavailable);
        let (locks, hidden) = lock_annotations(&daemon_sets.unwrap_or_default());
        for (daemon_set, problem) in hidden {
            let object = format!("DaemonSet {}", daemon_set.metadata.full_name());
            let message = format!("where kured keeps its lock is not known: {problem} ({object})");
            let evidence = Evidence::new(object, "--lock-annotation", "not known", "the key of an annotation");
            draft.unknown(Reason::KuredLockUnreadable, message, evidence);
        }
        for (daemon_set, key) in locks {
            judge_lock(input, &mut draft, daemon_set, &key, &runs);
        }
    }
    let limit = input.settings.limits.max_unavailable;
    draft.finish(format!("{}, fewer than {limit}; nobody else holds kured's lock", counted(count)))
}

fn counted(count: usize) -> String {
    if count == 1 { "1 other node is unavailable".to_owned() } else { format!("{count} other nodes are unavailable") }
}

/// Why one node is unavailable.
struct Unavailable {
    control_plane: bool,
    why: Vec<String>,
    since: Option<Timestamp>,
    evidence: Evidence,
}

/// The unavailable others, each once, by name.
fn unavailable<'a>(
    input: &GateInput<'_>,
    all: &[&'a Node],
    runs: &BTreeMap<&'a str, &'a Maintenance>,
) -> BTreeMap<&'a str, Unavailable> {
    let mut found = BTreeMap::new();
    for node in nodes::others(input, all) {
        let name = node.metadata.name.as_str();
        if let Some((_, since, evidence)) = nodes::not_ready(node) {
            note(&mut found, name, node.is_control_plane(), "NotReady".to_owned(), since, evidence);
        }
        let object = format!("Node {name}");
        if node.is_cordoned() && !planted::is(Bug::CountsNoCordons) {
            let by = node.unschedulable_manager.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
            let field = if node.unschedulable { "spec.unschedulable" } else { "spec.taints" };
            let seen = if node.unschedulable { format!("true{by}") } else { Node::UNSCHEDULABLE_TAINT.to_owned() };
            let evidence = Evidence::new(&object, field, seen, "not cordoned");
            note(&mut found, name, node.is_control_plane(), format!("cordoned{by}"), None, evidence);
        }
        if let Some(taint) = deletion_taint(node) {
            let evidence = Evidence::new(&object, "spec.taints", taint, "not about to be deleted");
            note(&mut found, name, node.is_control_plane(), "about to be deleted".to_owned(), None, evidence);
        }
    }
    for (&name, run) in runs {
        let node = all.iter().find(|node| node.metadata.name == name);
        let control_plane = node.is_some_and(|node| node.is_control_plane());
        let ignored = node.is_some() && !control_plane && input.settings.limits.ignore_nodes.iter().any(|n| n == name);
        if name == input.target || ignored {
            continue;
        }
        let record = format!("Maintenance {}", run.metadata.name);
        let evidence = Evidence::new(&record, "status.phase", &run.phase, "ended");
        let why = format!("in flight ({record}, {})", run.phase);
        note(&mut found, name, control_plane, why, None, evidence);
    }
    found
}

fn note<'a>(
    found: &mut BTreeMap<&'a str, Unavailable>,
    name: &'a str,
    control_plane: bool,
    why: String,
    since: Option<Timestamp>,
    evidence: Evidence,
) {
    let entry = found.entry(name).or_insert_with(|| Unavailable { control_plane, why: Vec::new(), since, evidence });
    entry.why.push(why);
    entry.evidence.value = entry.why.join(", ");
}

fn judge_count(input: &GateInput<'_>, draft: &mut Draft<'_>, all: &[&Node], unavailable: &BTreeMap<&str, Unavailable>) {
    let limit = input.settings.limits.max_unavailable;
    let count = u32::try_from(unavailable.len()).unwrap_or(u32::MAX);
    let limit = if planted::is(Bug::StartsTwo) { u32::MAX } else { limit };
    // A target that is not in the list is judged as strictly as a control-plane node.
    let target = all.iter().find(|node| node.metadata.name == input.target);
    let strict = target.is_none_or(|node| node.is_control_plane()) && !planted::is(Bug::StartsTwo);
    let servers: Vec<&&str> = unavailable.iter().filter(|(_, one)| one.control_plane).map(|(name, _)| name).collect();
    let named = |names: &mut dyn Iterator<Item = String>| names.take(5).collect::<Vec<_>>().join("; ");
    let mut described = unavailable.iter().map(|(name, one)| format!("{name} is {}", one.why.join(" and ")));
    let message = if count >= limit {
        let listed = named(&mut described);
        let colon = if listed.is_empty() { "" } else { ": " };
        let counted = counted(unavailable.len());
        format!("{counted}, allowed are fewer than {limit} (max_unavailable){colon}{listed}")
    } else if strict && !servers.is_empty() {
        let listed = named(&mut described);
        format!("{} is a control-plane node, and so must no other one be unavailable: {listed}", input.target)
    } else {
        return;
    };
    let since = unavailable.values().filter_map(|one| one.since).min();
    let mut evidence: Vec<Evidence> = unavailable.values().map(|one| one.evidence.clone()).collect();
    if evidence.is_empty() {
        evidence.push(Evidence::new("Settings limits", "max_unavailable", limit.to_string(), "at least 1"));
    }
    draft.add(Status::Block, Reason::TooManyUnavailable, message, since, evidence);
}

fn judge_lock(
    input: &GateInput<'_>,
    draft: &mut Draft<'_>,
    daemon_set: &DaemonSet,
    key: &str,
    runs: &BTreeMap<&str, &Maintenance>,
) {
    let Some(text) = daemon_set.metadata.annotations.get(key) else { return };
    let object = format!("DaemonSet {}", daemon_set.metadata.full_name());
    let field = format!("metadata.annotations[{key}]");
    let lock = match Lock::parse(text) {
        Ok(lock) => lock,
        Err(error) => {
            let shown: String = text.chars().take(80).collect();
            draft.unknown(
                Reason::KuredLockUnreadable,
                format!("kured's lock on {object} {error}; with this value no node gets the lock"),
                Evidence::new(&object, &field, shown, "a lock that kured wrote"),
            );
            return;
        }
    };
    for entry in lock.entries.iter().filter(|entry| entry.node_id != input.target) {
        let holder = &entry.node_id;
        if input.run.is_some_and(|run| is_of(entry, input.target, &run.maintenance_uid)) {
            continue;
        }
        if let Some(uid) = owner_of(entry) {
            // A list has room for the hold of a run of ours beside this one; its node is counted above.
            let beside = lock.format == Format::Multi && runs.values().any(|run| run.metadata.uid == uid);
            if !beside {
                let records: Vec<&Maintenance> = input.facts.maintenances.good().collect();
                let message = super::kured::of_another_record(&object, entry, uid, &records);
                let evidence = Evidence::new(&object, &field, holder, "free, or this run's own");
                draft.add(Status::Block, Reason::KuredLockHeldByMaint, message, entry.created, vec![evidence]);
            }
            continue;
        }
        // A slot of a run of ours beside this one: it is not foreign, and its node is counted above. A single lock has
        // no second slot for the target.
        if lock.format == Format::Multi && runs.contains_key(holder.as_str()) {
            continue;
        }
        let age = age(input, entry);
        let evidence = Evidence::new(&object, &field, format!("{holder}{age}"), format!("free, or {}", input.target));
        if holder == MANUAL {
            let message = format!("a person holds kured's lock on {object} by hand (nodeID `{MANUAL}`){age}");
            draft.add(Status::Block, Reason::KuredLockHeld, message, entry.created, vec![evidence]);
        } else if node_exists(input, holder) {
            let message = format!("node {holder} holds kured's lock on {object}{age}");
            draft.add(Status::Block, Reason::KuredLockHeld, message, entry.created, vec![evidence]);
        } else {
            let message = format!("kured's lock on {object} names {holder}{age}, and there is no such node");
            draft.add(Status::Warn, Reason::KuredLockHeld, message, entry.created, vec![evidence]);
        }
    }
}

/// `, since ...`, and whether the entry has expired: that does not free it, and it explains what kured does.
fn age(input: &GateInput<'_>, entry: &Entry) -> String {
    let since = entry.created.map_or_else(|| ", no time given".to_owned(), |created| format!(", since {created}"));
    let expired =
        if entry.expired(input.now) { " (expired by its TTL, which proves nothing about the node)" } else { "" };
    format!("{since}{expired}")
}

#[cfg(test)]
mod tests;
