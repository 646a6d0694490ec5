//! S14 and S17: what people say. A halt is heard, and no override goes further than it may.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::handover::{Looked, control, exclusive, overlooked, quorum};
use super::views::{self, acted_on, begins, changes, is_eviction, offers};
use super::{History, Objects, Rules, Violation};
use crate::store::object::At as _;
use crate::store::{Change, object};
use crate::trace::Step;

/// How long after a halt what was under way may still arrive: the age of the look, and the way of the write.
const HEARD: SignedDuration = SignedDuration::from_secs(20);

/// S14: once a halt can be known, nothing begins, no pod is evicted, no act is offered or done, and nothing is written to
/// a node. A run that was cancelled is put back all the same.
pub fn a_halt_is_heard(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut since: Option<Timestamp> = None;
    history.replay(|objects, step| {
        since = if views::is_halted(objects) { since.or(Some(step.at)) } else { None };
        // It counts from the step that wrote it.
        since = since.or_else(|| changes(step, "", "configmaps").any(views::halts).then_some(step.at));
        let Some(since) = since.filter(|_| rules.is_ours(step)) else { return };
        if step.at.duration_since(since) < rules.notice.max(HEARD) {
            return;
        }
        for what in effects(objects, step) {
            let what = format!("{what}, and everything is halted since {since}");
            found.push(Violation { invariant: "S14", step: step.number, what });
        }
    });
    found
}

fn effects(objects: &Objects, step: &Step) -> Vec<String> {
    let mut found = Vec::new();
    for change in changes(step, "maint.dev", "maintenances") {
        let node = change.after.as_ref().map_or("", |record| object::text(record, "/spec/nodeName"));
        if begins(change) {
            found.push(format!("a run of {node} began"));
        }
        if offers(change) {
            found.push(format!("the act on {node} was offered"));
        }
    }
    found.extend(changes(step, "", "pods").filter_map(acted_on).map(|node| format!("{node} was acted on")));
    if is_eviction(step) && step.code != 0 {
        found.push(format!("pod {}/{} was evicted", step.namespace, step.name));
    }
    let cancelled = |node: &str| {
        let of_it = |record: &&Value| object::text(record, "/spec/nodeName") == node;
        views::records(objects)
            .filter(of_it)
            .any(|record| record.at("/spec/cancel").is_some_and(|word| !word.is_null()))
    };
    let nodes = changes(step, "", "nodes").map(|change| change.key.name.as_str()).filter(|node| !cancelled(node));
    found.extend(nodes.map(|node| format!("node {node} was written")));
    found
}

/// S17: a run with overrides begins and is handed over only while nothing is halted or held, no other node is away, and
/// the other voters are a quorum, whatever the overrides say.
pub fn overrides_have_limits(rules: &Rules, history: &History) -> Vec<Violation> {
    let waived = |change: &&Arc<Change>| {
        let overrides = change.after.as_ref().and_then(|record| record.at("/spec/overrides")?.as_array());
        change.key.resource.resource == "maintenances" && overrides.is_some_and(|all| !all.is_empty())
    };
    // Seldom does a person waive anything.
    if !history.steps.iter().flat_map(|step| &step.changes).any(|change| waived(&change)) {
        return Vec::new();
    }
    overlooked(rules, history, Looked::AtStartToo, ("S17", false), |rules, objects, record, node| {
        let overrides = record.at("/spec/overrides").and_then(Value::as_array);
        if overrides.is_none_or(Vec::is_empty) {
            return Vec::new();
        }
        let mut found = control(rules, objects, record, node);
        found.extend(exclusive(rules, objects, record, node));
        found.extend(quorum(rules, objects, record, node));
        found
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Night, Row};
    use crate::store::{ObjectKey, object};
    use serde_json::json;

    pub(crate) const S14: &[Row] = &[
        ("nobody halted", false, |night| {
            night.wait(60);
            night.start("n1");
        }),
        ("on its way", false, |night| {
            night.halt();
            night.wait(5);
            night.start("n1");
        }),
        ("ended before", false, |night| {
            night.halt();
            night.wait(60);
            let key = ObjectKey::new("", "configmaps", "maint", "maint-control");
            night.change("person", &key, |map| map["data"] = json!({}));
            night.start("n1");
        }),
        ("the record says so", false, |night| {
            night.start("n1");
            night.halt();
            night.wait(60);
            night.record("n1", |status| status["message"] = json!("halted"));
        }),
        ("cancelled, and put back", false, |night| {
            night.start("n1");
            night.halt();
            night.wait(60);
            night.spec("n1", |spec| spec["cancel"] = json!({"by": "person"}));
            night.uncordon("n1");
        }),
        ("begun", true, |night| {
            night.halt();
            night.wait(60);
            night.start("n1");
        }),
        ("a pod", true, |night| {
            night.start("n1");
            night.halt();
            night.wait(60);
            night.evict("web-n1", Some("uid-web-n1"));
        }),
        ("offered", true, |night| {
            night.start("n1");
            night.halt();
            night.wait(60);
            night.grant("n1");
        }),
        ("acted on", true, |night| {
            night.start("n1");
            night.intend("n1");
            night.halt();
            night.wait(60);
            night.act("n1", "boot-n1");
        }),
        ("uncordoned", true, |night| {
            night.start("n1");
            night.halt();
            night.wait(60);
            night.uncordon("n1");
        }),
        ("proven", true, |night| {
            night.halt();
            night.wait(60);
            night.edit("maint-1", "n1", |node| object::annotate(node, "maint.dev/proven", "{}"));
        }),
    ];

    /// A run that begins after a while, with everything waived that there is.
    fn waived(night: &mut Night, trouble: fn(&mut Night)) {
        night.spec("n1", |spec| {
            spec["overrides"] = json!([{"gate": "exclusive"}, {"gate": "control"}, {"gate": "control-plane"}]);
        });
        trouble(night);
        night.wait(60);
        night.start("n1");
    }

    pub(crate) const S17: &[Row] = &[
        ("nothing is wrong", false, |night| waived(night, |_| {})),
        ("without overrides it is S1's", false, |night| {
            night.not_ready("n2");
            night.wait(60);
            night.start("n1");
        }),
        ("another node is NotReady", true, |night| waived(night, |night| night.not_ready("n2"))),
        ("another node is in flight", true, |night| waived(night, |night| night.start("n2"))),
        ("halted", true, |night| waived(night, Night::halt)),
        ("on hold", true, |night| {
            waived(night, |night| night.edit("person", "n1", |node| object::annotate(node, "maint.dev/hold", "{}")));
        }),
    ];
}
