//! S8 as far as kured acts: what it may do only because we let it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::views::{self, KURED_LOCK, boot_id, changes, holders};
use super::{History, Objects, Rules, Violation};
use crate::store::{Change, object};
use crate::trace::Step;

/// Clients whose name starts with this are kureds; what follows is their node.
const KURED: &str = "kured-";

/// The node whose kured took its lock in this step.
pub fn acquired_by(step: &Step) -> Option<&str> {
    let node = step.client.strip_prefix(KURED)?;
    let names = |set: &Option<std::sync::Arc<Value>>| {
        set.as_ref().is_some_and(|set| holders(set).iter().any(|holder| holder == node))
    };
    let took = changes(step, "apps", "daemonsets").any(|change| !names(&change.before) && names(&change.after));
    took.then_some(node)
}

/// Whether somebody who is neither kured nor maint changed the lock in this step.
fn meddles(rules: &Rules, step: &Step) -> bool {
    let text = |set: &Option<std::sync::Arc<Value>>| {
        set.as_ref().and_then(|set| object::annotation(set, KURED_LOCK).map(str::to_owned))
    };
    !rules.is_ours(step)
        && !step.client.starts_with(KURED)
        && changes(step, "apps", "daemonsets").any(|change| text(&change.before) != text(&change.after))
}

/// The longest that a grant may be valid for, ahead of when it was written.
const GRANTED: SignedDuration = SignedDuration::from_secs(30);

/// Why a grant must not have been given, or be renewed, like this. `cordoned`: since when the node is, by us.
fn misgranted(change: &Change, cordoned: Option<&Timestamp>, now: Timestamp) -> Option<String> {
    let record = change.after.as_ref().filter(|one| object::text(one, "/spec/action") == "kured")?;
    if !views::offers(change) {
        return None;
    }
    let until = object::time(record, "/status/intent/validUntil");
    if until.is_none_or(|until| until > now + GRANTED) {
        return Some(format!("a grant is valid until {until:?}, more than {} s ahead", GRANTED.as_secs()));
    }
    let renewed =
        change.before.as_ref().is_some_and(|before| !object::text(before, "/status/intent/validUntil").is_empty());
    if renewed {
        return None;
    }
    // kured reads the cordon before it asks: an older question says nothing of what it remembers.
    let asked: Option<Value> =
        object::annotation(record, "maint.dev/asked").and_then(|text| serde_json::from_str(text).ok());
    let at = asked.as_ref().and_then(|asked| object::time(asked, "/at"));
    let refused = asked.as_ref().is_some_and(|asked| object::text(asked, "/answer") != "go");
    let Some(cordoned) = cordoned else { return Some("it was granted without a cordon of ours".to_owned()) };
    let since = cordoned.as_second();
    let heard = refused && at.is_some_and(|at| at.as_second() >= since);
    (!heard).then(|| "it was granted, and no question was refused since the cordon".to_owned())
}

/// S8, where kured asks before it acts: it takes its lock only for a boot that a run granted, while that run still
/// stands for it, and no node boots anew that was granted to nobody. A grant comes after a question that was refused
/// since the cordon, and is valid for half a minute at most.
///
/// Where somebody else wrote the lock, a go that was taken back may be acted on after its run: nobody can prevent that.
/// That it was given once still holds.
pub fn only_what_was_granted(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    if !rules.kured_asks {
        return found;
    }
    let mut granted: BTreeSet<(String, String)> = BTreeSet::new();
    let mut meddled = false;
    let mut cordoned: BTreeMap<String, Timestamp> = BTreeMap::new();
    history.replay(|objects, step| {
        meddled |= meddles(rules, step);
        for change in changes(step, "", "nodes").filter(|_| rules.is_ours(step)) {
            let is = |node: &Option<std::sync::Arc<Value>>| node.as_ref().is_some_and(|node| views::is_cordoned(node));
            if is(&change.after) && !is(&change.before) {
                cordoned.insert(change.key.name.clone(), step.at);
            }
        }
        for change in changes(step, "maint.dev", "maintenances") {
            let Some(record) = &change.after else { continue };
            let since = cordoned.get(object::text(record, "/spec/nodeName"));
            if let Some(why) = misgranted(change, since, step.at).filter(|_| rules.is_ours(step)) {
                let what = format!("{}: {why}", change.key.name);
                found.push(Violation { invariant: "S8", step: step.number, what });
            }
            let boot = object::text(record, "/status/intent/bootId");
            if !boot.is_empty() {
                granted.insert((object::text(record, "/spec/nodeName").to_owned(), boot.to_owned()));
            }
        }
        let mut bad = |what: String| found.push(Violation { invariant: "S8", step: step.number, what });
        if let Some(node) = acquired_by(step) {
            let boot = views::node(objects, node).map_or("", boot_id);
            if !granted.contains(&(node.to_owned(), boot.to_owned())) {
                bad(format!("kured on {node} took its lock, and boot {boot} was never granted"));
            } else if let Some(why) = no_longer_granted(objects, node).filter(|_| !meddled) {
                bad(format!("kured on {node} took its lock although {why}"));
            }
        }
        for change in changes(step, "", "nodes") {
            let (Some(before), Some(after)) = (&change.before, &change.after) else { continue };
            let (old, name) = (boot_id(before), &change.key.name);
            if old != boot_id(after) && !granted.contains(&(name.clone(), old.to_owned())) {
                bad(format!("node {name} booted anew, and boot {old} was never granted"));
            }
        }
    });
    found
}

/// Why the run behind a grant does not stand for it any more: it is over, or its cordon is not there.
fn no_longer_granted(objects: &Objects, node: &str) -> Option<String> {
    let Some(record) = views::record_of(objects, node) else { return Some("no run of it is in flight".to_owned()) };
    let phase = views::phase(record);
    if !matches!(phase, "Acting" | "BackingOut" | "Returning") {
        return Some(format!("its run is {phase}"));
    }
    let node = views::node(objects, node)?;
    // kured itself takes the cordon off after a drain that failed, and tries again.
    let ours = views::owner(node).is_some_and(|(uid, _)| uid == object::uid(record));
    (!ours).then(|| "the node does not bear the mark of its run".to_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Night, Row};
    use serde_json::json;

    fn asked_for(night: &mut Night) {
        night.spec("n1", |spec| spec["action"] = json!("kured"));
    }

    fn boots(night: &mut Night, node: &str) {
        night.edit("world", node, |node| node["status"]["nodeInfo"]["bootID"] = json!("second"));
    }

    pub(crate) const S8_OF_KURED: &[Row] = &[
        ("granted, taken, rebooted", false, |night| {
            night.start("n1");
            night.intend("n1");
            night.lock("kured-n1", Some(&Night::lock_of("n1")));
            boots(night, "n1");
        }),
        ("the grant was taken back, and the run is still there", false, |night| {
            night.start("n1");
            night.intend("n1");
            night.record("n1", |status| {
                status["intent"] = json!(null);
                status["phase"] = json!("BackingOut");
            });
            night.lock("kured-n1", Some(&Night::lock_of("n1")));
        }),
        ("the hold that closed it was wiped by somebody", false, |night| {
            night.start("n1");
            night.intend("n1");
            night.lock("maint-1", Some(&Night::lock_of("maint")));
            night.lock("gitops", None);
            night.uncordon("n1");
            night.record("n1", |status| status["phase"] = json!("Failed"));
            night.lock("kured-n1", Some(&Night::lock_of("n1")));
            boots(night, "n1");
        }),
        ("granted after a question that was refused", false, |night| {
            asked_for(night);
            night.start("n1");
            night.wait(5);
            night.ask("n1", "maint: n1 waits");
            night.grant("n1");
            night.wait(10);
            night.grant("n1");
        }),
        ("granted after a question from before the cordon", true, |night| {
            asked_for(night);
            night.ask("n1", "maint: n1 waits");
            night.wait(5);
            night.start("n1");
            night.grant("n1");
        }),
        ("granted unasked", true, |night| {
            asked_for(night);
            night.start("n1");
            night.grant("n1");
        }),
        ("granted for an hour", true, |night| {
            asked_for(night);
            night.start("n1");
            night.ask("n1", "maint: n1 waits");
            night.intend("n1");
            night.record("n1", |status| status["intent"]["validUntil"] = json!("2026-11-30T03:00:00Z"));
        }),
        ("taken without a grant", true, |night| {
            night.start("n1");
            night.lock("kured-n1", Some(&Night::lock_of("n1")));
        }),
        ("taken without a grant after the lock was wiped", true, |night| {
            night.start("n1");
            night.lock("gitops", Some(&Night::lock_of("n9")));
            night.lock("gitops", None);
            night.lock("kured-n1", Some(&Night::lock_of("n1")));
        }),
        ("granted to another node", true, |night| {
            night.start("n1");
            night.intend("n1");
            night.lock("kured-n2", Some(&Night::lock_of("n2")));
        }),
        ("granted for the boot before", true, |night| {
            night.start("n1");
            night.intend("n1");
            boots(night, "n1");
            night.lock("kured-n1", Some(&Night::lock_of("n1")));
        }),
        ("taken when its run was over", true, |night| {
            night.start("n1");
            night.intend("n1");
            night.uncordon("n1");
            night.record("n1", |status| status["phase"] = json!("Failed"));
            night.lock("kured-n1", Some(&Night::lock_of("n1")));
        }),
        ("taken on a node without our mark", true, |night| {
            night.start("n1");
            night.intend("n1");
            night.uncordon("n1");
            night.lock("kured-n1", Some(&Night::lock_of("n1")));
        }),
        ("rebooted without a grant", true, |night| {
            night.start("n1");
            boots(night, "n1");
        }),
    ];
}
