//! L1 to L3 and L5, of a night that came to rest: every run is over or says why not, and nothing of ours is left.

use std::collections::BTreeSet;

use serde_json::Value;

use super::views::{self, HOLD, boot_id, changes, in_flight, locks, phase};
use super::{History, Objects, Rules, Violation};
use crate::store::object;
use crate::store::object::At as _;

/// kured's own mark of a node that it wants to reboot, and leaves alone while it may not (`--annotate-nodes`).
const WANTED: &str = "weave.works/kured-reboot-in-progress";

/// L2, of a night at rest: a node that is healthy is not cordoned, unless a run holds it, or a person does or did: what
/// he held is left to him without our mark.
pub fn nothing_healthy_stays_cordoned(_: &Rules, history: &History) -> Vec<Violation> {
    let objects = history.last();
    let left = views::all(&objects, "", "nodes").filter(|(key, node)| {
        let held = object::annotation(node, HOLD).is_some() || views::record_of(&objects, &key.name).is_some();
        views::is_cordoned(node)
            && object::is_true(node, "Ready")
            && !held
            && !is_left_to_a_person(&objects, &key.name, node)
    });
    left.map(|(key, _)| history.at_end("L2", format!("node {} is healthy and still cordoned", key.name))).collect()
}

fn is_left_to_a_person(objects: &Objects, name: &str, node: &Value) -> bool {
    let of_it = |record: &&Value| object::text(record, "/spec/nodeName") == name;
    let was = |record: &Value| record.at("/status/node/wasUnschedulable").and_then(Value::as_bool) == Some(true);
    let says = |record: &Value| {
        let warnings = record.at("/status/warnings").and_then(Value::as_array).into_iter().flatten();
        object::text(record, "/status/outcome") == "NodeOnHold"
            || was(record)
            || warnings.filter_map(Value::as_str).any(|one| one.contains("stays cordoned, since it is on hold"))
    };
    views::owner(node).is_none() && views::records(objects).filter(of_it).any(says)
}

/// L3, of a night at rest: no entry of ours is in kured's lock, unless its run is in flight.
pub fn no_lock_of_ours_stays(_: &Rules, history: &History) -> Vec<Violation> {
    let objects = history.last();
    let flies = |uid: &str| views::records(&objects).any(|record| object::uid(record) == uid && in_flight(record));
    let entries = views::all(&objects, "apps", "daemonsets").flat_map(|(_, set)| locks(set));
    let left = entries.filter(|entry| {
        let owner = object::text(entry, "/maint/maintenance");
        let ours = !owner.is_empty() || object::text(entry, "/nodeID").starts_with("maint");
        ours && !flies(owner)
    });
    left.map(|entry| history.at_end("L3", format!("kured's lock still has our entry {entry}"))).collect()
}

/// Whether a record that is over is kept, and says so, because nobody can tell whose a lock is that cannot be read: only
/// a person ends that.
fn is_kept_for_garbage(objects: &Objects, record: &Value) -> bool {
    let unreadable = |set: &Value| object::annotation(set, views::KURED_LOCK).is_some_and(views::is_garbage);
    object::text(record, "/status/message").contains(views::LOCK_NOT_KNOWN)
        && views::all(objects, "apps", "daemonsets").any(|(_, set)| unreadable(set))
}

/// Whether a message says that the run is held, and not one of an earlier time.
fn tells_that_it_is_held(record: &Value) -> bool {
    let held = object::time(record, "/status/heldAt");
    let outbox = record.at("/status/outbox").and_then(Value::as_array).into_iter().flatten();
    outbox.filter(|one| object::text(one, "/kind") == "held").any(|one| object::time(one, "/createdAt") >= held)
}

/// L1, of a night at rest: a run is over and let go of, or held and that was told, or pending and says what it waits for.
pub fn every_run_is_over_or_says_why(_: &Rules, history: &History) -> Vec<Violation> {
    let objects = history.last();
    let left = views::records(&objects).filter_map(|record| {
        let outbox = record.at("/status/outbox").and_then(Value::as_array);
        let told =
            outbox.is_some_and(|all| !all.is_empty() && all.iter().all(|one| one.at("/deliveredTo/0").is_some()));
        let why = match phase(record) {
            "Succeeded" | "Failed" | "Cancelled" if is_kept_for_garbage(&objects, record) => return None,
            "Succeeded" | "Failed" | "Cancelled" if object::has_finalizers(record) => {
                "is over and still holds its finalizer"
            }
            "Succeeded" | "Failed" | "Cancelled" => return None,
            "Held" if told && tells_that_it_is_held(record) => return None,
            "Held" => "is held, and nobody was told",
            "Pending" if !object::text(record, "/status/message").is_empty() => return None,
            "Pending" => "waits and does not say for what",
            // Storage may heal for longer than a night lasts; what never ends is found by its deadline.
            "Settling" if object::time(record, "/status/deadline") > history.steps.last().map(|step| step.at) => {
                return None;
            }
            _ => "is still at work",
        };
        Some(format!("record {} ({}) {why}", object::name(record), phase(record)))
    });
    left.map(|what| history.at_end("L1", what)).collect()
}

/// Whether a record says why its node was not rebooted.
fn speaks(record: &Value) -> bool {
    phase(record) != "Succeeded" && (phase(record) != "Pending" || !object::text(record, "/status/message").is_empty())
}

/// L5, of a night at rest: a node that kured wanted to reboot has booted since, or a record of it says why it has not.
pub fn every_wish_was_heard(rules: &Rules, history: &History) -> Vec<Violation> {
    if !rules.kured_asks {
        return Vec::new();
    }
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    for step in &history.steps {
        for change in changes(step, "", "nodes") {
            let (Some(before), Some(after)) = (&change.before, &change.after) else { continue };
            if boot_id(before) != boot_id(after) {
                wanted.remove(&change.key.name);
            } else if object::annotation(after, WANTED).is_some() && object::annotation(before, WANTED).is_none() {
                wanted.insert(change.key.name.clone());
            }
        }
    }
    let objects = history.last();
    let says = |node: &String| {
        views::records(&objects).any(|record| object::text(record, "/spec/nodeName") == node && speaks(record))
    };
    let unheard = wanted.into_iter().filter(|node| !says(node));
    unheard
        .map(|node| history.at_end("L5", format!("kured wants node {node}, and no record of it says why not")))
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Night, Row};
    use super::*;
    use serde_json::json;

    pub(crate) const L1: &[Row] = &[
        ("over", false, |night| {
            night.alone("n1");
            night.start("n1");
            night.record("n1", |status| status["phase"] = json!("Failed"));
        }),
        ("held and told", false, |night| {
            night.alone("n1");
            night.start("n1");
            night.record("n1", |status| {
                *status = json!({"phase": "Held", "heldAt": "2026-11-30T02:00:00Z", "outbox": [
                    {"id": "a", "kind": "held", "createdAt": "2026-11-30T02:00:00Z", "deliveredTo": ["mail"]}]});
            });
        }),
        ("pending with a reason", false, |night| {
            night.alone("n1");
            night.start("n1");
            night.record("n1", |status| *status = json!({"phase": "Pending", "message": "waits: a volume"}));
        }),
        ("held, and only told before that", true, |night| {
            night.alone("n1");
            night.start("n1");
            night.record("n1", |status| {
                *status = json!({"phase": "Held", "heldAt": "2026-11-30T02:00:00Z", "outbox": [
                    {"id": "a", "kind": "held", "createdAt": "2026-11-30T01:00:00Z", "deliveredTo": ["mail"]},
                    {"id": "b", "kind": "started", "createdAt": "2026-11-30T02:00:00Z", "deliveredTo": ["mail"]}]});
            });
        }),
        ("settling, and it may", false, |night| {
            night.alone("n1");
            night.start("n1");
            night.record("n1", |status| *status = json!({"phase": "Settling", "deadline": "2026-11-30T03:00:00Z"}));
        }),
        ("settling for ever", true, |night| {
            night.alone("n1");
            night.start("n1");
            night.record("n1", |status| *status = json!({"phase": "Settling", "deadline": "2026-11-30T01:00:00Z"}));
        }),
        ("held and told to nobody", true, |night| {
            night.alone("n1");
            night.start("n1");
            night.record("n1", |status| {
                *status = json!({"phase": "Held", "outbox": [{"id": "a", "deliveredTo": []}]});
            });
        }),
        ("pending for no reason", true, |night| {
            night.alone("n1");
            night.start("n1");
            night.record("n1", |status| *status = json!({"phase": "Pending"}));
        }),
        ("at work for ever", true, |night| {
            night.alone("n1");
            night.start("n1");
            night.record("n1", |status| status["phase"] = json!("BackingOut"));
        }),
    ];

    fn wants(night: &mut Night, node: &str) {
        night.edit("kured-n1", node, |node| object::annotate(node, WANTED, "2026-11-30T02:00:00Z"));
    }

    pub(crate) const L5: &[Row] = &[
        ("booted", false, |night| {
            wants(night, "n2");
            night.edit("world", "n2", |node| node["status"]["nodeInfo"]["bootID"] = json!("second"));
        }),
        ("a record says why not", false, |night| {
            night.start("n1");
            wants(night, "n1");
            night.record("n1", |status| status["phase"] = json!("Failed"));
        }),
        ("nobody heard it", true, |night| wants(night, "n2")),
        ("it says that it was done", true, |night| {
            night.start("n1");
            wants(night, "n1");
            night.record("n1", |status| status["phase"] = json!("Succeeded"));
        }),
        ("a record that says nothing", true, |night| {
            night.start("n1");
            wants(night, "n1");
            night.record("n1", |status| *status = json!({"phase": "Pending"}));
        }),
        ("another node booted", true, |night| {
            wants(night, "n2");
            night.edit("world", "n3", |node| node["status"]["nodeInfo"]["bootID"] = json!("second"));
        }),
    ];

    pub(crate) const L2: &[Row] = &[
        ("uncordoned", false, |night| {
            night.start("n1");
            night.uncordon("n1");
            night.record("n1", |status| status["phase"] = json!("Succeeded"));
        }),
        ("held by its run", false, |night| {
            night.start("n1");
            night.record("n1", |status| status["phase"] = json!("Held"));
        }),
        ("held by a person", false, |night| {
            night.start("n1");
            night.edit("somebody", "n1", |node| object::annotate(node, HOLD, "{}"));
            night.record("n1", |status| status["phase"] = json!("Cancelled"));
        }),
        ("left to the person who held it", false, |night| {
            night.start("n1");
            night.uncordon("n1");
            night.edit("maint-1", "n1", |node| node["spec"]["unschedulable"] = json!(true));
            night.record("n1", |status| *status = json!({"phase": "Cancelled", "outcome": "NodeOnHold"}));
        }),
        ("left to him, and still marked as ours", true, |night| {
            night.start("n1");
            night.record("n1", |status| *status = json!({"phase": "Cancelled", "outcome": "NodeOnHold"}));
        }),
        ("cordoned before its run", false, |night| {
            night.edit("person", "n1", |node| node["spec"]["unschedulable"] = json!(true));
            night.record("n1", |status| *status = json!({"phase": "Succeeded", "node": {"wasUnschedulable": true}}));
        }),
        ("NotReady", false, |night| {
            night.start("n1");
            night.not_ready("n1");
            night.record("n1", |status| status["phase"] = json!("Failed"));
        }),
        ("left cordoned", true, |night| {
            night.start("n1");
            night.record("n1", |status| status["phase"] = json!("Failed"));
        }),
        ("left cordoned by kured", true, |night| {
            night.edit("kured-n1", "n1", |node| node["spec"]["unschedulable"] = json!(true));
        }),
    ];

    pub(crate) const L3: &[Row] = &[
        ("released", false, |night| {
            night.start("n1");
            night.lock("maint-1", Some(&Night::hold_of("n1")));
            night.lock("maint-1", None);
            night.record("n1", |status| status["phase"] = json!("Succeeded"));
        }),
        ("of a run that is held", false, |night| {
            night.start("n1");
            night.lock("maint-1", Some(&Night::hold_of("n1")));
            night.record("n1", |status| status["phase"] = json!("Held"));
        }),
        ("kured's own", false, |night| night.lock("kured-n1", Some(&Night::lock_of("n1")))),
        ("of a run that is over", true, |night| {
            night.start("n1");
            night.lock("maint-1", Some(&Night::hold_of("n1")));
            night.record("n1", |status| status["phase"] = json!("Failed"));
        }),
        ("in a list, of another run than the one in flight", true, |night| {
            night.start("n1");
            night.start("n2");
            night.lock("maint-1", Some(&json!({"maxOwners": 2, "locks": [Night::hold_of("n1")]})));
            night.record("n1", |status| status["phase"] = json!("Failed"));
        }),
    ];
}
