//! S5: only the holder of a valid lease writes, and only under its own term.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::views::{self, KURED_LOCK, changes};
use super::{History, Objects, Rules, Violation};
use crate::store::object::At as _;
use crate::store::{ObjectKey, object};
use crate::trace::Step;
use crate::world::ACTION_NAMESPACE;

/// The leader's Lease, in whatever namespace it is.
fn lease(objects: &Objects) -> Option<&Value> {
    let mut all = views::all(objects, "coordination.k8s.io", "leases");
    all.find(|(key, _)| key.name == "maint" && key.namespace != "kube-node-lease").map(|(_, lease)| lease)
}

fn ends(lease: &Value) -> Option<Timestamp> {
    let seconds = lease.at("/spec/leaseDurationSeconds")?.as_i64()?;
    object::time(lease, "/spec/renewTime")?.checked_add(SignedDuration::from_secs(seconds)).ok()
}

fn status(object: Option<&Value>) -> Option<&Value> {
    object?.get("status")
}

fn lock(object: Option<&Value>) -> Option<&str> {
    object::annotation(object?, KURED_LOCK)
}

/// What needs the lease: node fields, evictions, the status of a record, kured's lock, action pods.
fn fenced(step: &Step) -> Option<String> {
    if views::is_eviction(step) && !step.changes.is_empty() {
        return Some(format!("eviction of pod {}/{}", step.namespace, step.name));
    }
    for change in &step.changes {
        let (key, resource) = (&change.key, change.key.resource.resource.as_str());
        let (before, after) = (change.before.as_deref(), change.after.as_deref());
        let needs = match resource {
            "nodes" => true,
            "maintenances" => status(before) != status(after),
            "daemonsets" => lock(before) != lock(after),
            "pods" => key.namespace == ACTION_NAMESPACE && change.before.is_none(),
            "configmaps" => key.name == "maint-state",
            _ => false,
        };
        if needs {
            return Some(format!("write of {resource} {}", key.name));
        }
    }
    None
}

/// S5.
pub fn only_the_leader_writes(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    history.replay(|objects, step| {
        if !rules.is_ours(step) {
            return;
        }
        let Some(act) = fenced(step) else { return };
        let mut bad = |why: String| {
            let what = format!("{} made a {act} {why}", step.client);
            found.push(Violation { invariant: "S5", step: step.number, what });
        };
        let Some(lease) = lease(objects) else { return bad("without a lease".to_owned()) };
        let holder = object::text(lease, "/spec/holderIdentity");
        // A process calls itself by its pod's name and a suffix of its own.
        if holder != step.client && !holder.starts_with(&format!("{}_", step.client)) {
            return bad(format!("while {holder} held the lease"));
        }
        if ends(lease).is_none_or(|end| step.at >= end) {
            return bad("after its lease had run out".to_owned());
        }
        let term = lease.at("/spec/leaseTransitions").and_then(Value::as_i64).unwrap_or(0);
        for written in terms(step) {
            if written != term {
                bad(format!("under term {written} in term {term}"));
            }
        }
    });
    found
}

/// L6, of a night at rest: somebody renews the Lease, or did less than two of its durations ago.
pub fn somebody_leads(_: &Rules, history: &History) -> Vec<Violation> {
    let Some(end) = history.steps.last() else { return Vec::new() };
    let objects = history.last();
    let Some(lease) = lease(&objects) else { return vec![history.at_end("L6", "there is no Lease".to_owned())] };
    let free = object::text(lease, "/spec/holderIdentity").is_empty();
    // A Lease that was given up has a renewal, too.
    let seconds = lease.at("/spec/leaseDurationSeconds").and_then(Value::as_i64).unwrap_or(0);
    let since = object::time(lease, "/spec/renewTime").unwrap_or(Timestamp::MIN);
    let silent = end.at.duration_since(since) > SignedDuration::from_secs(seconds.saturating_mul(3));
    let state = if free { "free" } else { "not renewed" };
    let what = || format!("the Lease is {state} since {since}");
    silent.then(|| history.at_end("L6", what())).into_iter().collect()
}

/// The terms that a step writes: into records, and into owner annotations that it changes.
fn terms(step: &Step) -> Vec<i64> {
    let records = changes(step, "maint.dev", "maintenances")
        .filter_map(|change| change.after.as_ref()?.at("/status/term")?.as_i64());
    let owners = changes(step, "", "nodes").filter_map(|change| {
        let after = views::owner(change.after.as_ref()?)?;
        let before = change.before.as_ref().and_then(|node| views::owner(node));
        (before.as_ref() != Some(&after)).then_some(after.1)
    });
    records.chain(owners).collect()
}

/// S15: whoever evicts from a node or acts on it does not run there. A pod of maint has the name of its client.
pub fn never_its_own_node(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    history.replay(|objects, step| {
        if !rules.is_ours(step) || rules.allow_self {
            return;
        }
        let seat = views::all(objects, "", "pods").find(|(key, _)| key.namespace == "maint" && key.name == step.client);
        let seat = seat.map_or("", |(_, pod)| object::text(pod, "/spec/nodeName"));
        let mut bad = |what: String| {
            if !seat.is_empty() {
                found.push(Violation { invariant: "S15", step: step.number, what });
            }
        };
        let evicted = objects.get(&ObjectKey::pod(&step.namespace, &step.name));
        let from = evicted.map_or("", |pod| object::text(pod, "/spec/nodeName"));
        if views::is_eviction(step) && !step.changes.is_empty() && from == seat {
            bad(format!("{} evicted {}/{} from its own node {seat}", step.client, step.namespace, step.name));
        }
        for act in views::acts(objects, step).into_iter().filter(|act| act.node == seat) {
            bad(format!("{} acted on its own node {}", step.client, act.node));
        }
    });
    found
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::Row;

    pub(crate) const L6: &[Row] = &[
        ("renewed", false, |night| {
            night.wait(600);
            night.leader("maint-1", 3);
            night.start("n1");
        }),
        ("lost a moment ago", false, |night| {
            night.wait(80);
            night.not_ready("n3");
        }),
        ("nobody took it", true, |night| {
            night.wait(120);
            night.not_ready("n3");
        }),
        ("given up, and nobody took it", true, |night| {
            night.leader("", 3);
            night.wait(120);
            night.not_ready("n3");
        }),
    ];

    pub(crate) const S15: &[Row] = &[
        ("it runs elsewhere", false, |night| {
            night.seat("maint-1", "n2");
            night.start("n1");
            night.evict("web-n1", Some("uid-web-n1"));
            night.intend("n1");
            night.act("n1", "boot-n1");
        }),
        ("another replica runs there", false, |night| {
            night.seat("maint-2", "n1");
            night.start("n1");
            night.evict("web-n1", Some("uid-web-n1"));
        }),
        ("it evicts from its own node", true, |night| {
            night.seat("maint-1", "n1");
            night.start("n1");
            night.evict("web-n1", Some("uid-web-n1"));
        }),
        ("it reboots its own node", true, |night| {
            night.seat("maint-1", "n1");
            night.start("n1");
            night.intend("n1");
            night.act("n1", "boot-n1");
        }),
        ("it puts its own node back", false, |night| {
            night.start("n1");
            night.seat("maint-1", "n1");
            night.uncordon("n1");
        }),
    ];

    pub(crate) const S5: &[Row] = &[
        ("the leader", false, |night| night.start("n1")),
        ("the new leader re-stamps first", false, |night| {
            night.start("n1");
            night.leader("maint-2", 4);
            night.record("n1", |status| status["term"] = 4.into());
            night.uncordon("n1");
        }),
        ("a lease that has run out", true, |night| {
            night.start("n1");
            night.wait(31);
            night.uncordon("n1");
        }),
        ("a renewed lease", false, |night| {
            night.start("n1");
            night.wait(25);
            night.leader("maint-1", 3);
            night.wait(25);
            night.uncordon("n1");
        }),
        ("the old leader", true, |night| {
            night.start("n1");
            night.leader("maint-2", 4);
            night.client = "maint-1".to_owned();
            night.uncordon("n1");
        }),
        ("an old term", true, |night| {
            night.start("n1");
            night.leader("maint-2", 4);
            night.record("n1", |status| status["phase"] = "Draining".into());
        }),
    ];
}
