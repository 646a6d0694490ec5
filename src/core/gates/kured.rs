//! Gate `kured`: kured will really come, and only when told.
//!
//! It judges the pod that runs kured on the target by what that process was started with: during a rollout, and after a
//! change that restarted nothing, the template says something else. It applies where kured is installed and acts: in a run
//! by its action, in a look without a run as if it did. What the pod's metric `kured_reboot_required` says is not asked
//! here.
//!
//! A foreign holder of the lock is gate `exclusive`'s, unless it is no node and leaves no free slot. Here an entry of
//! ours that belongs to another record blocks: until kured has asked again on that node, it may still act on a go that
//! it heard. At `settle` nothing of the run may be left in any lock but its own hold, whoever acted.

use std::collections::BTreeSet;

use super::reading::{document, installed, node_exists, required, was_failing};
use super::{Draft, GateInput, GateSpec};
use crate::api::names::{ANNOTATION_ASKED, ANNOTATION_KURED_IN_PROGRESS};
use crate::api::{
    Action, Asked, Evidence, Finding, GateId, Moment, Policy, QuestionSource, Reason, SourceId, Status, Trigger,
};
use crate::facts::{DaemonSet, KuredPod, Maintenance, Observation};
use crate::kured::hold::{is_of, is_ours, owner_of};
use crate::kured::lock::{Entry, Lock, MANUAL};
use crate::kured::{
    Advice, Installation, Place, Places, container_of, installations, judge, lock_annotations, places_of, pods_of,
    strips_the_lock,
};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::Kured,
    moments: &[Moment::Start, Moment::Handover, Moment::Settle],
    reads: &[SourceId::Nodes, SourceId::DaemonSets, SourceId::KuredPods, SourceId::Maintenances],
    reasons: &[
        Reason::KuredPodNotReady,
        Reason::KuredRollingOut,
        Reason::KuredTwiceOnNode,
        Reason::KuredNotGated,
        Reason::KuredFilterHidesAnswer,
        Reason::KuredVersionUnsupported,
        Reason::KuredVersionUnknown,
        Reason::KuredSettingUnreadable,
        Reason::KuredSettingRisky,
        Reason::KuredPeriodTooLong,
        Reason::KuredWindowTooNarrow,
        Reason::KuredLockFormat,
        Reason::KuredLockHeld,
        Reason::KuredLockHeldByMaint,
        Reason::KuredLockNotReleased,
        Reason::KuredLockStripped,
        Reason::KuredLockUnreadable,
        Reason::KuredWishUnconfirmed,
    ],
    default_policy: Policy::Require,
    doc: "kured will really come, and only when told",
    check,
};

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::Kured, input);
    let Some(daemon_sets) = required(&mut draft, SourceId::DaemonSets, &input.facts.daemon_sets) else {
        return draft.finish("");
    };
    if input.moment == Moment::Settle {
        return settle(input, draft, &daemon_sets);
    }
    let installations = installations(&daemon_sets);
    if installations.is_empty() {
        return draft.not_applicable(Reason::NotInstalled, "no DaemonSet runs kured");
    }
    let acts = input.run.and_then(|run| run.action).is_none_or(|action| action == Action::Kured);
    if !acts || !input.scope.reboots {
        return draft.not_applicable(Reason::Passed, "kured does not act here");
    }
    let maintenances = installed(input, &mut draft, SourceId::Maintenances, &input.facts.maintenances);
    locks(input, &mut draft, &daemon_sets, maintenances.as_deref().unwrap_or_default());
    let mut told = String::new();
    if let Some(pods) = required(&mut draft, SourceId::KuredPods, &input.facts.kured_pods) {
        for installation in &installations {
            rollout(&mut draft, installation, &pods);
        }
        told = on_target(input, &mut draft, &pods);
    }
    if input.moment == Moment::Start && input.trigger == Trigger::Unattended && input.run.is_some() {
        wish(input, &mut draft, maintenances.as_deref());
    }
    draft.finish(told)
}

/// The kured of the target; says what passes.
fn on_target(input: &GateInput<'_>, draft: &mut Draft<'_>, pods: &[&KuredPod]) -> String {
    let here = |pod: &&&KuredPod| {
        pod.node_name.as_deref() == Some(input.target) && !pod.is_finished() && container_of(&pod.containers).is_some()
    };
    let found: Vec<&KuredPod> = pods.iter().filter(here).copied().collect();
    let staying = found.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).count();
    if found.is_empty() {
        let message = format!("no pod of kured runs on {}: it will never come for this node", input.target);
        let evidence = Evidence::new(format!("Node {}", input.target), "pods of kured", "none", "one, Ready");
        draft.block(Reason::KuredPodNotReady, message, evidence);
    }
    if staying > 1 {
        let names: Vec<String> = found.iter().map(|pod| pod.metadata.full_name()).collect();
        let message = format!("{} kureds run on {}: {}", found.len(), input.target, names.join(", "));
        let evidence = Evidence::new(format!("Node {}", input.target), "pods of kured", names.join(", "), "one");
        draft.block(Reason::KuredTwiceOnNode, message, evidence);
    }
    let mut told = String::new();
    for pod in found {
        let object = format!("Pod {}", pod.metadata.full_name());
        if !pod.is_ready() {
            let seen = if pod.metadata.deletion_timestamp.is_some() { "being deleted" } else { "not Ready" };
            let message = format!("{object}, the kured of {}, is {seen}", input.target);
            draft.block(
                Reason::KuredPodNotReady,
                message,
                Evidence::new(&object, "status.conditions[Ready]", seen, "True"),
            );
        }
        let Some(flags) = pod.flags() else { continue };
        for advice in judge(&flags, input.target, input.settings, input.now) {
            add(input, draft, &object, advice);
        }
        let version = flags.version.as_ref().map_or_else(|_| "?".to_owned(), ToString::to_string);
        let period = flags.shown(crate::kured::Flag::Period);
        told = format!("kured {version} on {} asks maint every {period}, and only then takes its lock", input.target);
    }
    told
}

fn add(input: &GateInput<'_>, draft: &mut Draft<'_>, object: &str, advice: Advice) {
    let Advice { status, reason, does, flag, value, wanted } = advice;
    let field = flag.map_or_else(|| "image".to_owned(), |flag| format!("--{flag}"));
    let evidence = Evidence::new(object, field, value, wanted);
    draft.add(status, reason, format!("kured on {} {does}", input.target), None, vec![evidence]);
}

fn rollout(draft: &mut Draft<'_>, installation: &Installation<'_>, pods: &[&KuredPod]) {
    let daemon_set = installation.daemon_set;
    let object = installation.object();
    if !daemon_set.is_rolled_out() {
        let (updated, desired) = (daemon_set.updated, daemon_set.desired);
        let (generation, observed) = (daemon_set.metadata.generation, daemon_set.observed_generation);
        let seen = format!("{updated} of {desired} pods updated, generation {} of {}", observed, shown(generation));
        let message = format!("{object} is being rolled out ({seen}): a kured that starts gives its lock back");
        draft.block(Reason::KuredRollingOut, message, Evidence::new(&object, "status", seen, "all pods updated"));
        return;
    }
    // A set: with thousands of pods there is one revision as a rule.
    let revisions: BTreeSet<Option<&str>> = pods_of(daemon_set, pods).map(|pod| pod.revision.as_deref()).collect();
    if revisions.len() > 1 {
        let seen = revisions.iter().map(|one| one.unwrap_or("none")).collect::<Vec<_>>().join(", ");
        let message = format!("pods of {object} have {} different templates (revisions {seen})", revisions.len());
        let evidence = Evidence::new(&object, "controller-revision-hash of its pods", seen, "one");
        draft.block(Reason::KuredRollingOut, message, evidence);
    }
}

fn shown(generation: Option<i64>) -> String {
    generation.map_or_else(|| "unknown".to_owned(), |generation| generation.to_string())
}

/// Format, our own holds, and what would take the annotation away.
fn locks(input: &GateInput<'_>, draft: &mut Draft<'_>, daemon_sets: &[&DaemonSet], records: &[&Maintenance]) {
    let places = match places_of(daemon_sets) {
        Places::Found(places) => places,
        Places::NotInstalled => return,
        Places::Unreadable(why) => {
            let evidence = Evidence::new("kured's DaemonSets", "its lock", &why, "one place and one format");
            let message = format!("where kured's lock is, and of which format, is not known: {why}");
            return draft.unknown(Reason::KuredSettingUnreadable, message, evidence);
        }
    };
    for place in &places {
        let (object, field) = (place.object(), format!("metadata.annotations[{}]", place.key));
        if !place.format_fits() {
            let seen = place.text.clone().unwrap_or_default();
            let message = format!(
                "kured's lock on {object} has not the format of --concurrency {}: kured {}",
                place.concurrency,
                if place.concurrency > 1 { "writes it over at once" } else { "never takes it" }
            );
            let wanted = if place.concurrency > 1 { "a list of locks" } else { "one lock" };
            draft.block(Reason::KuredLockFormat, message, Evidence::new(&object, &field, seen, wanted));
        }
        for entry in entries(place.text.as_deref()) {
            if let Some(uid) = owner_of(&entry).filter(|uid| !is_own(input, uid)) {
                let message = of_another_record(&object, &entry, uid, records);
                let evidence = Evidence::new(&object, &field, &entry.node_id, "free, or this run's own");
                draft.add(Status::Block, Reason::KuredLockHeldByMaint, message, entry.created, vec![evidence]);
            }
        }
        full_of_ghosts(input, draft, place, &field);
        stripped(draft, daemon_sets, place);
    }
}

/// Whoever no longer exists never gives his slot back, so that kured would never take the lock: the node would be
/// drained for nothing. Holders that exist are gate `exclusive`'s.
fn full_of_ghosts(input: &GateInput<'_>, draft: &mut Draft<'_>, place: &Place, field: &str) {
    if !matches!(input.facts.nodes, Observation::Known { .. }) || !place.format_fits() {
        return;
    }
    let taken: Vec<Entry> = entries(place.text.as_deref())
        .into_iter()
        .filter(|entry| entry.node_id != input.target && !entry.expired(input.now))
        .filter(|entry| !input.run.is_some_and(|run| is_of(entry, input.target, &run.maintenance_uid)))
        .collect();
    let ghost = |entry: &&Entry| !is_ours(entry) && entry.node_id != MANUAL && !node_exists(input, &entry.node_id);
    let Some(entry) = taken.iter().find(ghost).filter(|_| taken.len() >= place.concurrency.max(1)) else { return };
    let (object, holder) = (place.object(), &entry.node_id);
    let message = format!(
        "kured's lock on {object} names {holder}, which is no node, and has no free slot: kured on {} would never take \
         it; `maint lock release --holder {holder}` frees it",
        input.target
    );
    let evidence = Evidence::new(&object, field, holder, "free, or a node");
    draft.add(Status::Block, Reason::KuredLockHeld, message, entry.created, vec![evidence]);
}

fn stripped(draft: &mut Draft<'_>, daemon_sets: &[&DaemonSet], place: &Place) {
    let of = |one: &&&DaemonSet| one.metadata.namespace == place.namespace && one.metadata.name == place.name;
    let Some(daemon_set) = daemon_sets.iter().find(of) else { return };
    if let Some((label, manager)) = strips_the_lock(daemon_set, &place.key) {
        let object = place.object();
        let message = format!(
            "Flux will take kured's lock off {object} at its next reconciliation: `{manager}` set it, and the object is Flux's \
             ({label})"
        );
        let field = format!("metadata.managedFields of {}", place.key);
        draft.warn(Reason::KuredLockStripped, message, Evidence::new(object, field, manager, "maint or kured"));
    }
}

/// The entries of a lock; none of one that cannot be read, which gate `exclusive` tells.
fn entries(text: Option<&str>) -> Vec<Entry> {
    text.and_then(|text| Lock::parse(text).ok()).map(|lock| lock.entries).unwrap_or_default()
}

fn is_own(input: &GateInput<'_>, uid: &str) -> bool {
    input.run.is_some_and(|run| run.maintenance_uid == uid)
}

/// What an entry of another record means.
pub(super) fn of_another_record(object: &str, entry: &Entry, uid: &str, records: &[&Maintenance]) -> String {
    match records.iter().find(|record| record.metadata.uid == uid) {
        Some(record) => format!(
            "the run {} of node {} ({}) holds kured's lock on {object}, until it is over and kured on {} has asked again",
            record.metadata.name, record.node_name, record.phase, record.node_name
        ),
        None => format!(
            "a run of ours that is gone holds kured's lock on {object} ({}): `maint lock release --holder {}` frees it",
            entry.node_id, entry.node_id
        ),
    }
}

/// kured's own word, as far as the cluster shows it: its question, or its annotation on the node.
fn wish<'a>(input: &'a GateInput<'a>, draft: &mut Draft<'a>, records: Option<&[&Maintenance]>) {
    let Some(nodes) = required(draft, SourceId::Nodes, &input.facts.nodes) else { return };
    let node = nodes.iter().find(|node| node.metadata.name == input.target);
    if node.is_some_and(|node| node.metadata.annotations.contains_key(ANNOTATION_KURED_IN_PROGRESS)) {
        return;
    }
    let record = records.unwrap_or_default().iter().find(|record| is_own(input, &record.metadata.uid));
    let asked = record.and_then(|record| {
        let text = record.metadata.annotations.get(ANNOTATION_ASKED)?;
        let object = format!("Maintenance {}", record.metadata.name);
        document::<Asked>(draft, &object, &format!("metadata.annotations[{ANNOTATION_ASKED}]"), text)
    });
    let seen = match asked {
        Some(asked) if asked.source == QuestionSource::Kured => return,
        Some(asked) => format!("a question at {} that did not come from kured's pod or node", asked.at),
        None => "no question of kured".to_owned(),
    };
    let message = format!(
        "nothing confirms that kured wants {} rebooted: {seen}, and no annotation {ANNOTATION_KURED_IN_PROGRESS}",
        input.target
    );
    let evidence = Evidence::new(format!("Node {}", input.target), ANNOTATION_ASKED, seen, "a question of kured");
    draft.block(Reason::KuredWishUnconfirmed, message, evidence);
}

fn settle<'a>(input: &'a GateInput<'a>, mut draft: Draft<'a>, daemon_sets: &[&'a DaemonSet]) -> Finding {
    let (locks, hidden) = lock_annotations(daemon_sets);
    for (daemon_set, problem) in hidden {
        let object = format!("DaemonSet {}", daemon_set.metadata.full_name());
        let message = format!("where kured's lock is, is not known: {problem} ({object})");
        draft.unknown(
            Reason::KuredSettingUnreadable,
            message,
            Evidence::new(object, "--lock-annotation", "not known", "a key"),
        );
    }
    if locks.is_empty() {
        return draft.not_applicable(Reason::NotInstalled, "there is no lock of kured");
    }
    for (daemon_set, key) in locks {
        let object = format!("DaemonSet {}", daemon_set.metadata.full_name());
        let field = format!("metadata.annotations[{key}]");
        let text = daemon_set.metadata.annotations.get(&key).map(String::as_str).unwrap_or_default();
        let lock = match Lock::parse(text) {
            Ok(lock) => lock,
            Err(error) => {
                let shown: String = text.chars().take(80).collect();
                let message = format!("kured's lock on {object} {error}");
                draft.unknown(Reason::KuredLockUnreadable, message, Evidence::new(object, field, shown, "a lock"));
                continue;
            }
        };
        for entry in &lock.entries {
            left(input, &mut draft, &object, &field, entry);
        }
    }
    draft.finish(format!("kured's lock no longer names {}, and no run of ours but this one holds it", input.target))
}

fn left(input: &GateInput<'_>, draft: &mut Draft<'_>, object: &str, field: &str, entry: &Entry) {
    let evidence = Evidence::new(object, field, &entry.node_id, "free, or this run's own");
    let (reason, message) = match owner_of(entry) {
        Some(uid) if is_own(input, uid) => return,
        Some(uid) => (Reason::KuredLockHeldByMaint, of_another_record(object, entry, uid, &[])),
        None if entry.node_id == input.target => {
            let expired =
                if entry.expired(input.now) { "; it has expired, and kured will not give it back" } else { "" };
            (
                Reason::KuredLockNotReleased,
                format!("kured on {} has not given its lock on {object} back{expired}", input.target),
            )
        }
        None => return,
    };
    let (status, message) = if was_failing(input, GateId::Kured, &evidence) {
        (Status::Warn, format!("{message}; it was so before the run"))
    } else {
        (Status::Block, message)
    };
    draft.add(status, reason, message, entry.created, vec![evidence]);
}

#[cfg(test)]
mod tests;
