//! S4, S8, S9 and S16: what must be known and written down before an act, and kured's lock.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::views::{self, KURED_LOCK, acts, changes, holders, in_flight, locks};
use super::{History, Objects, Rules, Violation};
use crate::store::object;
use crate::store::object::At as _;
use crate::trace::Step;

/// Why what a record keeps of its findings does not let a run go on. Only what is not fine is kept: `status.baseline`
/// of the start, `status.findings` of the latest look; each {gate, status, ...}.
fn not_passed(record: &Value, kept: &str) -> Option<String> {
    let list = record.at(&format!("/status/{kept}")).and_then(Value::as_array)?;
    let bad = list.iter().find(|finding| object::text(finding, "/status") != "warn")?;
    Some(format!("gate {} was {}", object::text(bad, "/gate"), object::text(bad, "/status")))
}

/// S4: a run starts and acts only on findings that pass; unknown, or a status nobody knows, is none.
pub fn unknown_never_passes(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    history.replay(|objects, step| {
        if !rules.is_ours(step) {
            return;
        }
        let mut bad = |node: &str, why: String| {
            let what = format!("node {node}: went on although {why}");
            found.push(Violation { invariant: "S4", step: step.number, what });
        };
        for change in changes(step, "maint.dev", "maintenances") {
            let Some(after) = &change.after else { continue };
            let before = change.before.as_ref().map_or("Pending", |record| views::phase(record));
            let started = before == "Pending" && in_flight(after);
            if let Some(why) = not_passed(after, "baseline").filter(|_| started) {
                bad(object::text(after, "/spec/nodeName"), why);
            }
        }
        for act in acts(objects, step) {
            let why = match views::record_of(objects, &act.node) {
                Some(record) => not_passed(record, "findings"),
                None => Some("it has no record in flight".to_owned()),
            };
            if let Some(why) = why {
                bad(&act.node, why);
            }
        }
    });
    found
}

/// S16: before an act its record holds the intent with the boot ID to be replaced, and a queued message.
pub fn intent_before_act(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    history.replay(|objects, step| {
        if !rules.is_ours(step) {
            return;
        }
        for act in acts(objects, step) {
            if let Some(why) = unintended(objects, step, &act.node) {
                let what = format!("node {} was acted on although {why}", act.node);
                found.push(Violation { invariant: "S16", step: step.number, what });
            }
        }
    });
    found
}

fn unintended(objects: &Objects, step: &Step, node: &str) -> Option<String> {
    let Some(record) = views::record_of(objects, node) else { return Some("it has no record in flight".to_owned()) };
    let intent = object::text(record, "/status/intent/bootId");
    if intent.is_empty() {
        return Some("no intent was persisted".to_owned());
    }
    match object::time(record, "/status/intent/at") {
        Some(at) if at <= step.at => {}
        _ => return Some("the intent has no time, or a later one".to_owned()),
    }
    let queued = record.at("/status/outbox").and_then(Value::as_array).is_some_and(|outbox| !outbox.is_empty());
    (!queued).then(|| "no message was queued".to_owned())
}

/// S9: an act names the boot ID that the node has, which is the one of the intent.
pub fn no_second_reboot(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    history.replay(|objects, step| {
        if !rules.is_ours(step) {
            return;
        }
        for act in acts(objects, step) {
            let current = views::node(objects, &act.node).map_or("", views::boot_id);
            let intent =
                views::record_of(objects, &act.node).map_or("", |record| object::text(record, "/status/intent/bootId"));
            let mut bad = |why: String| {
                let what = format!("node {}: {why}", act.node);
                found.push(Violation { invariant: "S9", step: step.number, what });
            };
            if act.expected.as_ref().is_some_and(|expected| expected != current) {
                bad("the act expects another boot ID than the node has".to_owned());
            }
            if !intent.is_empty() && intent != current {
                bad(format!("rebooted since the intent ({intent}, now {current}), acted on again"));
            }
        }
    });
    found
}

/// Whether a lock is somebody else's and still valid; an unreadable one counts as that.
fn foreign_and_live(objects: &Objects, lock: &Value, now: Timestamp) -> bool {
    let node = object::text(lock, "/nodeID");
    if node.starts_with("maint") {
        return false;
    }
    let ghost = !node.is_empty() && views::node(objects, node).is_none() && node != "manual";
    let ttl = lock.get("TTL").and_then(Value::as_i64).unwrap_or(0);
    let expired = ttl > 0
        && object::time(lock, "/created")
            .and_then(|created| created.checked_add(SignedDuration::from_nanos(ttl)).ok())
            .is_some_and(|end| end <= now);
    !ghost && !expired
}

/// Whether two entries differ in nothing but whether the node was cordoned before.
fn same_but_cordon(before: &Value, after: &Value) -> bool {
    let bare = |lock: &Value| {
        let mut lock = lock.clone();
        lock.as_object_mut().map(|lock| lock.remove("metadata"));
        lock
    };
    bare(before) == bare(after)
}

/// Whether a run that is over still closes what kured was granted.
fn is_closing(record: &Value) -> bool {
    object::has_finalizers(record) && record.at("/status/kured/closing").is_some_and(|closing| !closing.is_null())
}

/// Why a lock that maint wrote is none that kured and the rules accept.
fn unfit(objects: &Objects, lock: &Value) -> Option<String> {
    let node = object::text(lock, "/nodeID");
    if node.is_empty() || object::time(lock, "/created").is_none() {
        return Some("kured cannot read it".to_owned());
    }
    if lock.get("TTL").and_then(Value::as_i64).is_none_or(|ttl| ttl == 0) {
        return Some("its TTL is missing or zero".to_owned());
    }
    let lives = if node.starts_with("maint") {
        let owner = object::text(lock, "/maint/maintenance");
        let is_its = |record: &Value| owner.is_empty() || object::uid(record) == owner;
        views::records(objects).any(|record| is_its(record) && (in_flight(record) || is_closing(record)))
    } else {
        views::record_of(objects, node).is_some()
    };
    (!lives).then(|| format!("no run in flight is behind {node}"))
}

/// S8: a foreign live lock stays, ours has a run behind it and is readable for kured.
pub fn kured_lock_is_respected(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    history.replay(|objects, step| {
        if !rules.is_ours(step) {
            return;
        }
        for change in changes(step, "apps", "daemonsets") {
            let (Some(before), Some(after)) = (&change.before, &change.after) else { continue };
            if object::annotation(before, KURED_LOCK) == object::annotation(after, KURED_LOCK) {
                continue;
            }
            let mut bad = |what: String| found.push(Violation { invariant: "S8", step: step.number, what });
            let (old, new) = (locks(before), locks(after));
            let kept = holders(after);
            for lock in old.iter().filter(|lock| foreign_and_live(objects, lock, step.at)) {
                let node = object::text(lock, "/nodeID");
                // To correct the metadata of a lock is allowed; to take it away is not.
                if !kept.iter().any(|holder| holder == node) || node.is_empty() {
                    bad(format!("the live lock of `{node}` was overwritten"));
                }
            }
            for lock in new.iter().filter(|lock| !old.contains(lock)) {
                let node = object::text(lock, "/nodeID");
                // Its metadata may be corrected; all else of it is kured's.
                let theirs =
                    old.iter().any(|before| object::text(before, "/nodeID") == node && same_but_cordon(before, lock));
                if let Some(why) = unfit(objects, lock).filter(|_| !theirs) {
                    bad(format!("lock {lock}: {why}"));
                }
            }
        }
    });
    found
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Night, Row};
    use serde_json::json;

    pub(crate) const S4: &[Row] = &[
        ("all pass", false, |night| {
            night.start("n1");
            night.intend("n1");
            night.act("n1", "boot-n1");
        }),
        ("unknown at start", true, |night| {
            night.finding = "unknown".to_owned();
            night.start("n1");
        }),
        ("a status nobody knows", true, |night| {
            night.finding = "fine".to_owned();
            night.start("n1");
        }),
        ("unknown at hand-over", true, |night| {
            night.start("n1");
            night.finding = "unknown".to_owned();
            night.intend("n1");
            night.act("n1", "boot-n1");
        }),
        ("warned at start and at hand-over", false, |night| {
            night.finding = "warn".to_owned();
            night.start("n1");
            night.intend("n1");
            night.act("n1", "boot-n1");
        }),
        ("without a record", true, |night| night.act("n1", "boot-n1")),
    ];

    pub(crate) const S9: &[Row] = &[
        ("the boot ID of the intent", false, |night| {
            night.start("n1");
            night.intend("n1");
            night.act("n1", "boot-n1");
        }),
        ("twice", true, |night| {
            night.start("n1");
            night.intend("n1");
            night.act("n1", "boot-n1");
            night.edit("world", "n1", |node| node["status"]["nodeInfo"]["bootID"] = json!("second"));
            night.act("n1", "boot-n1");
        }),
        ("twice with the new boot ID", true, |night| {
            night.start("n1");
            night.intend("n1");
            night.edit("world", "n1", |node| node["status"]["nodeInfo"]["bootID"] = json!("second"));
            night.act("n1", "second");
        }),
    ];

    pub(crate) const S16: &[Row] = &[
        ("intent and message first", false, |night| {
            night.start("n1");
            night.intend("n1");
            night.act("n1", "boot-n1");
        }),
        ("no intent", true, |night| {
            night.start("n1");
            night.act("n1", "boot-n1");
        }),
        ("no message", true, |night| {
            night.start("n1");
            night.intend("n1");
            night.record("n1", |status| status["outbox"] = json!([]));
            night.act("n1", "boot-n1");
        }),
        ("kured's lock given without intent", true, |night| {
            night.start("n1");
            night.lock("maint-1", Some(&Night::lock_of("n1")));
        }),
    ];

    pub(crate) const S8: &[Row] = &[
        ("a hold for a run, released", false, |night| {
            night.start("n1");
            night.lock("maint-1", Some(&Night::lock_of("maint")));
            night.lock("maint-1", None);
        }),
        ("the metadata of kured's lock", false, |night| {
            night.start("n1");
            night.lock("kured", Some(&Night::lock_of("n1")));
            let mut lock = Night::lock_of("n1");
            lock["metadata"]["unschedulable"] = json!(true);
            night.lock("maint-1", Some(&lock));
        }),
        ("the metadata of kured's lock, which never expires", false, |night| {
            night.start("n1");
            let mut lock = Night::lock_of("n1");
            lock["TTL"] = json!(0);
            night.lock("kured", Some(&lock));
            lock["metadata"]["unschedulable"] = json!(true);
            night.lock("maint-1", Some(&lock));
        }),
        ("kured's lock made to expire never", true, |night| {
            night.start("n1");
            night.lock("kured", Some(&Night::lock_of("n1")));
            let mut lock = Night::lock_of("n1");
            lock["TTL"] = json!(0);
            night.lock("maint-1", Some(&lock));
        }),
        ("a hold of a run that is over and waits for kured's question", false, |night| {
            night.start("n1");
            night.record("n1", |status| {
                *status = json!({"phase": "Failed", "kured": {"closing": {"epoch": 2}}});
            });
            night.finalize("n1");
            night.lock("maint-1", Some(&Night::hold_of("n1")));
        }),
        ("a hold of a run that is over and let go of", true, |night| {
            night.start("n1");
            night.record("n1", |status| {
                *status = json!({"phase": "Failed", "kured": {"closing": {"epoch": 2}}});
            });
            night.lock("maint-1", Some(&Night::hold_of("n1")));
        }),
        ("a hold of a run that is over while another one is in flight", true, |night| {
            night.start("n1");
            night.start("n2");
            night.record("n1", |status| *status = json!({"phase": "Failed"}));
            night.lock("maint-1", Some(&Night::hold_of("n1")));
        }),
        ("a ghost's lock", false, |night| {
            night.lock("kured", Some(&Night::lock_of("n9")));
            night.lock("maint-1", None);
        }),
        ("an expired lock", false, |night| {
            let mut lock = Night::lock_of("n2");
            lock["TTL"] = json!(1);
            night.lock("kured", Some(&lock));
            night.wait(5);
            night.leader("maint-1", 3);
            night.lock("maint-1", None);
        }),
        ("a foreign live lock removed", true, |night| {
            night.lock("kured", Some(&Night::lock_of("n2")));
            night.lock("maint-1", None);
        }),
        ("a person's hold overwritten", true, |night| {
            night.start("n1");
            night.lock("somebody", Some(&Night::lock_of("manual")));
            night.lock("maint-1", Some(&Night::lock_of("maint")));
        }),
        ("an unreadable lock overwritten", true, |night| {
            night.start("n1");
            night.lock_text("somebody", Some("garbage"));
            night.lock("maint-1", Some(&Night::lock_of("maint")));
        }),
        ("held without a run", true, |night| night.lock("maint-1", Some(&Night::lock_of("maint")))),
        ("TTL zero", true, |night| {
            night.start("n1");
            let mut lock = Night::lock_of("maint");
            lock["TTL"] = json!(0);
            night.lock("maint-1", Some(&lock));
        }),
        ("no time", true, |night| {
            night.start("n1");
            night.lock("maint-1", Some(&json!({"nodeID": "maint", "TTL": 9})));
        }),
    ];
}
