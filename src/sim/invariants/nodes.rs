//! S1 and S6: how many nodes are away, and whose cordon it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::views::{self, HOLD, changes, in_flight, is_cordoned};
use super::{History, Objects, Rules, Violation};
use crate::store::object;
use crate::store::object::At as _;
use crate::trace::Step;

/// Nodes that are NotReady or cordoned by anyone, each with when that was first so.
#[derive(Default)]
struct Away(BTreeMap<String, Timestamp>);

impl Away {
    fn look(&mut self, objects: &Objects, now: Timestamp) {
        let away = |node: &Value| is_cordoned(node) || !object::is_true(node, "Ready");
        for (key, node) in views::all(objects, "", "nodes") {
            if away(node) {
                self.0.entry(key.name.clone()).or_insert(now);
            } else {
                self.0.remove(&key.name);
            }
        }
    }

    /// Those that are away for so long that it must have been seen.
    fn seen(&self, rules: &Rules, now: Timestamp) -> impl Iterator<Item = String> {
        let known = self.0.iter().filter(move |(_, since)| now.duration_since(**since) >= rules.notice);
        known.map(|(name, _)| name.clone())
    }
}

/// Nodes that are in flight: away through us.
fn through_us(objects: &Objects) -> BTreeSet<String> {
    let flying = views::records(objects).filter(|record| in_flight(record));
    flying.map(|record| object::text(record, "/spec/nodeName").to_owned()).collect()
}

/// S1: a run begins, and a node is cordoned, granted or rebooted, only while fewer others than the limit are away. When its kured takes
/// the lock, which it does only where we let it, no other may be away through us; what somebody else did since kured
/// heard `go` nobody can prevent.
pub fn never_one_too_many(rules: &Rules, history: &History) -> Vec<Violation> {
    let (mut found, mut away, mut looked) = (Vec::new(), Away::default(), false);
    history.replay(|objects, step| {
        if !looked {
            away.look(objects, step.at);
        }
        looked = changes(step, "", "nodes").next().is_none();
        let let_go = super::kured::acquired_by(step);
        let ours = rules.is_ours(step);
        if !ours && let_go.is_none() {
            return;
        }
        let mut touched: Vec<(String, &str)> = Vec::new();
        if ours {
            touched.extend(begun(step).map(|node| (node, "begun")));
            touched.extend(cordoned(step).map(|node| (node, "cordoned")));
            touched.extend(granted(rules, step).map(|node| (node, "granted")));
        }
        touched.extend(let_go.map(|node| (node.to_owned(), "let go")));
        touched.extend(views::acts(objects, step).into_iter().filter(|_| ours).map(|act| (act.node, "rebooted")));
        for (node, verb) in touched {
            let mut others = through_us(objects);
            if verb != "let go" {
                others.extend(away.seen(rules, step.at));
            }
            others.retain(|name| *name != node && !rules.ignored_nodes.contains(name));
            if others.len() >= rules.max_unavailable {
                let what = format!("node {node} was {verb} while {others:?} were away");
                found.push(Violation { invariant: "S1", step: step.number, what });
            }
        }
    });
    found
}

/// Nodes whose run a step begins.
fn begun(step: &Step) -> impl Iterator<Item = String> {
    let begun = changes(step, "maint.dev", "maintenances").filter(|change| views::begins(change));
    begun.filter_map(|change| Some(object::text(change.after.as_ref()?, "/spec/nodeName").to_owned()))
}

/// Nodes that a step cordons.
fn cordoned(step: &Step) -> impl Iterator<Item = String> {
    let cordoned = changes(step, "", "nodes").filter(|change| {
        let before = change.before.as_ref().is_some_and(|node| is_cordoned(node));
        !before && change.after.as_ref().is_some_and(|node| is_cordoned(node))
    });
    cordoned.map(|change| change.key.name.clone())
}

/// Nodes whose kured is granted a reboot by a step, or for longer than before.
fn granted(rules: &Rules, step: &Step) -> impl Iterator<Item = String> {
    let until = |record: &Option<Arc<Value>>| {
        record.as_ref().map(|record| object::text(record, "/status/intent/validUntil").to_owned()).unwrap_or_default()
    };
    let records = changes(step, "maint.dev", "maintenances").filter(|_| rules.kured_asks);
    let granted =
        records.filter(move |change| !until(&change.after).is_empty() && until(&change.after) != until(&change.before));
    granted.filter_map(|change| Some(object::text(change.after.as_ref()?, "/spec/nodeName").to_owned()))
}

fn strings(node: &Value) -> serde_json::Map<String, Value> {
    node.at("/metadata/annotations").and_then(Value::as_object).cloned().unwrap_or_default()
}

/// S6: only a cordon of ours is removed, by its record, and nothing foreign is touched on the way.
pub fn only_our_own_cordon(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    history.replay(|objects, step| {
        if !rules.is_ours(step) {
            return;
        }
        for change in changes(step, "", "nodes") {
            let (Some(before), Some(after)) = (&change.before, &change.after) else { continue };
            let mut bad = |what: String| {
                let what = format!("node {}: {what}", change.key.name);
                found.push(Violation { invariant: "S6", step: step.number, what });
            };
            if is_cordoned(before)
                && !is_cordoned(after)
                && let Some(why) = foreign_cordon(objects, before)
            {
                bad(format!("uncordoned although {why}"));
            }
            let (old, new) = (strings(before), strings(after));
            for key in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
                let foreign = !key.starts_with("maint.dev/") || key == HOLD;
                if foreign && old.get(key) != new.get(key) {
                    bad(format!("annotation {key} is not ours and was changed"));
                }
            }
            if before.at("/spec/taints") != after.at("/spec/taints") {
                bad("its taints were changed".to_owned());
            }
        }
    });
    found
}

fn foreign_cordon(objects: &Objects, node: &Value) -> Option<String> {
    let Some((uid, _)) = views::owner(node) else { return Some("it has no owner annotation".to_owned()) };
    if object::annotation(node, HOLD).is_some() {
        return Some("somebody holds it".to_owned());
    }
    let Some(record) = views::records(objects).find(|record| object::uid(record) == uid) else {
        return Some(format!("its owner {uid} is no record"));
    };
    if record.at("/status/node/wasUnschedulable").and_then(Value::as_bool) == Some(true) {
        return Some("it was cordoned before".to_owned());
    }
    let entries = node.at("/metadata/managedFields").and_then(Value::as_array);
    let owns = |entry: &&Value| entry.at("/fieldsV1/f:spec/f:unschedulable").is_some();
    let manager = entries.into_iter().flatten().find(owns).map(|entry| object::text(entry, "/manager"));
    manager.filter(|manager| *manager != "maint").map(|manager| format!("{manager} cordoned it again"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Night, Row};
    use super::*;
    use serde_json::json;

    pub(crate) const S1: &[Row] = &[
        ("one at a time", false, |night| night.start("n1")),
        ("another is NotReady", true, |night| {
            night.not_ready("n2");
            night.start("n1");
        }),
        ("another is cordoned by somebody", true, |night| {
            night.edit("somebody", "n2", |node| node["spec"]["unschedulable"] = json!(true));
            night.start("n1");
        }),
        ("another is in flight", true, |night| {
            night.start("n2");
            night.start("n1");
        }),
        ("begun while another is in flight", true, |night| {
            night.record("n2", |status| status["phase"] = json!("Held"));
            night.record("n1", |status| status["phase"] = json!("Cordoning"));
        }),
        ("granted", false, |night| {
            night.start("n1");
            night.grant("n1");
        }),
        ("granted while another is cordoned by somebody", true, |night| {
            night.start("n1");
            night.edit("somebody", "n2", |node| node["spec"]["unschedulable"] = json!(true));
            night.grant("n1");
        }),
        ("cordoned by somebody after kured heard it", false, |night| {
            night.start("n1");
            night.grant("n1");
            night.edit("somebody", "n2", |node| node["spec"]["unschedulable"] = json!(true));
            night.lock("kured-n1", Some(&Night::lock_of("n1")));
        }),
        ("its kured takes the lock", false, |night| {
            night.start("n1");
            night.lock("kured-n1", Some(&Night::lock_of("n1")));
        }),
        ("its kured takes the lock while another is in flight", true, |night| {
            night.start("n2");
            night.lock("kured-n1", Some(&Night::lock_of("n1")));
        }),
        ("rebooted while another is NotReady", true, |night| {
            night.start("n1");
            night.not_ready("n2");
            night.intend("n1");
            night.act("n1", "boot-n1");
        }),
    ];

    pub(crate) const S6: &[Row] = &[
        ("ours", false, |night| {
            night.start("n1");
            night.uncordon("n1");
        }),
        ("without owner annotation", true, |night| {
            night.edit("somebody", "n1", |node| node["spec"]["unschedulable"] = json!(true));
            night.uncordon("n1");
        }),
        ("held", true, |night| {
            night.start("n1");
            night.edit("somebody", "n1", |node| object::annotate(node, HOLD, "{}"));
            night.uncordon("n1");
        }),
        ("cordoned again by somebody", true, |night| {
            night.start("n1");
            night.edit("somebody", "n1", |node| {
                node["metadata"]["managedFields"] =
                    json!([{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}]);
            });
            night.uncordon("n1");
        }),
        ("was cordoned before", true, |night| {
            night.start("n1");
            night.record("n1", |status| status["node"] = json!({"wasUnschedulable": true}));
            night.uncordon("n1");
        }),
        ("a foreign annotation", true, |night| {
            night.edit("maint-1", "n1", |node| object::annotate(node, "example.com/x", "y"));
        }),
        ("a taint", true, |night| {
            night.edit("maint-1", "n1", |node| {
                node["spec"]["taints"] = json!([{"key": "x", "effect": "NoSchedule"}]);
            });
        }),
    ];
}
