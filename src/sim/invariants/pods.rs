//! S7, S10 and S13: what is done to pods, and what is never done.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::views::{self, changes, is_cordoned, is_eviction};
use super::{History, Objects, Rules, Violation};
use crate::store::object::At as _;
use crate::store::select::Labels;
use crate::store::{ObjectKey, object};
use crate::trace::Step;
use crate::world::ACTION_NAMESPACE;

fn pod<'a>(objects: &'a Objects, step: &Step) -> Option<&'a Value> {
    objects.get(&ObjectKey::pod(&step.namespace, &step.name)).map(AsRef::as_ref)
}

fn is_daemon(pod: &Value) -> bool {
    let owners = pod.at("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().any(|owner| object::text(owner, "/kind") == "DaemonSet")
}

/// The names of the budgets that guard a running pod, and whether each lets it go now. One that is ending, pending or
/// finished is guarded by none; an unready one is free where its budget is met or says so.
fn budgets<'a>(objects: &'a Objects, pod: &'a Value) -> impl Iterator<Item = (&'a str, bool)> {
    let phase = object::text(pod, "/status/phase");
    let free = object::is_deleting(pod) || matches!(phase, "Pending" | "Succeeded" | "Failed");
    let ready = object::is_true(pod, "Ready");
    views::all(objects, "policy", "poddisruptionbudgets")
        .map(|(_, budget)| budget)
        .filter(move |budget| !free && object::namespace(budget) == object::namespace(pod))
        .filter(|budget| Labels::of_object(budget.at("/spec/selector")).is_some_and(|labels| labels.matches(pod)))
        .map(move |budget| {
            let number = |pointer: &str| budget.at(pointer).and_then(Value::as_i64).unwrap_or(0);
            let (healthy, desired) = (number("/status/currentHealthy"), number("/status/desiredHealthy"));
            let always = object::text(budget, "/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow";
            let unready = !ready && (always || (healthy >= desired && desired > 0));
            let observed = number("/status/observedGeneration") >= number("/metadata/generation");
            (object::name(budget), unready || (observed && number("/status/disruptionsAllowed") > 0))
        })
}

/// How old the look may be that an eviction rests on: no request can name the node's state beside the pod's uid, so that
/// who takes our cordon off between look and eviction comes too late for that one.
const LOOK_AND_EVICT: SignedDuration = SignedDuration::from_secs(1);

/// The node is cordoned, and by us.
fn is_ours(node: &Value) -> bool {
    is_cordoned(node) && views::owner(node).is_some()
}

/// Nodes that this step makes somebody else's.
fn lost(step: &Step) -> impl Iterator<Item = &str> {
    changes(step, "", "nodes")
        .filter(|change| change.before.as_deref().is_some_and(is_ours) && !change.after.as_deref().is_some_and(is_ours))
        .map(|change| change.key.name.as_str())
}

/// Why a pod must not have been evicted in this state; the first reason is enough. `just_lost`: its node was ours a
/// moment ago.
fn unlawful(objects: &Objects, pod: &Value, uid: &str, just_lost: impl Fn(&str) -> bool) -> Option<String> {
    if uid != object::uid(pod) {
        return Some("another pod of that name was evicted".to_owned());
    }
    if is_daemon(pod) {
        return Some("belongs to a DaemonSet".to_owned());
    }
    if object::annotation(pod, "kubernetes.io/config.mirror").is_some() {
        return Some("is a static pod".to_owned());
    }
    let name = object::text(pod, "/spec/nodeName");
    if !views::node(objects, name).is_some_and(is_ours) && !just_lost(name) {
        return Some(format!("is on node {name}, which we do not own"));
    }
    let guards: Vec<_> = budgets(objects, pod).collect();
    if let Some((budget, _)) = guards.iter().find(|(_, allows)| !allows) {
        return Some(format!("was evicted against its budget {budget}"));
    }
    (guards.len() > 1).then(|| "was evicted under two budgets".to_owned())
}

/// What is done to pods and their budgets beside evictions: nothing, but for our own pods that act on nodes.
fn around(step: &Step) -> Option<String> {
    if step.resource == "pods" && step.verb == "delete" && step.namespace != ACTION_NAMESPACE {
        return Some("deleted instead of evicted".to_owned());
    }
    if let Some(change) = changes(step, "policy", "poddisruptionbudgets").next() {
        let spec = |object: Option<&Value>| {
            object.map(|object| (object.get("metadata").cloned(), object.get("spec").cloned()))
        };
        // An eviction itself takes from the status.
        let status_only = is_eviction(step)
            && without_revision(spec(change.before.as_deref())) == without_revision(spec(change.after.as_deref()));
        if !status_only {
            return Some(format!("budget {} was changed", change.key.name));
        }
    }
    let touched = changes(step, "", "pods").find(|change| {
        change.key.namespace != ACTION_NAMESPACE
            && change.before.is_some()
            && !is_eviction(step)
            && step.verb != "delete"
    });
    touched.map(|change| format!("pod {} was changed", change.key.name))
}

fn without_revision(parts: Option<(Option<Value>, Option<Value>)>) -> Option<(Option<Value>, Option<Value>)> {
    parts.map(|(mut metadata, spec)| {
        if let Some(map) = metadata.as_mut().and_then(Value::as_object_mut) {
            map.remove("resourceVersion");
        }
        (metadata, spec)
    })
}

/// S7: evictions name the uid, leave the pod its grace, and hit only movable pods of a node that we own, within their
/// budgets; nothing is deleted instead, and no budget, label or finalizer is changed to make a pod go.
pub fn only_evictions_that_are_ours(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut lost_at: BTreeMap<String, Timestamp> = BTreeMap::new();
    history.replay(|objects, step| {
        if !rules.is_ours(step) {
            lost_at.extend(lost(step).map(|name| (name.to_owned(), step.at)));
            return;
        }
        let mut bad = |why: String| {
            let what = format!("pod {}/{}: {why}", step.namespace, step.name);
            found.push(Violation { invariant: "S7", step: step.number, what });
        };
        if let Some(why) = around(step) {
            return bad(why);
        }
        if !is_eviction(step) {
            return;
        }
        let Some(uid) = views::evicted_uid(step) else { return bad("evicted without naming its uid".to_owned()) };
        let grace = step.body.as_ref().and_then(|body| body.at("/deleteOptions/gracePeriodSeconds")?.as_i64());
        if grace.is_some_and(|grace| grace <= 0) {
            return bad("evicted without any grace".to_owned());
        }
        // What was refused has hit nobody.
        let taken = step.changes.iter().any(|change| change.key.resource.resource == "pods");
        let just_lost = |name: &str| lost_at.get(name).is_some_and(|at| step.at.duration_since(*at) <= LOOK_AND_EVICT);
        if let Some(why) = pod(objects, step).filter(|_| taken).and_then(|pod| unlawful(objects, pod, &uid, just_lost))
        {
            bad(why);
        }
    });
    found
}

/// S10: where the strategy is not plainly `drain` nothing is evicted, and nothing is even asked for.
pub fn cordon_only_evicts_nothing(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    history.replay(|objects, step| {
        if !rules.is_ours(step) || !is_eviction(step) {
            return;
        }
        let mut bad = |node: &str, strategy: &str| {
            let what = format!("pod {}/{} of node {node} was evicted under `{strategy}`", step.namespace, step.name);
            found.push(Violation { invariant: "S10", step: step.number, what });
        };
        let strategy = |record: &Value| object::text(record, "/status/strategy").to_owned();
        match pod(objects, step) {
            Some(pod) => {
                let node = object::text(pod, "/spec/nodeName");
                // A successor on another node is hit by nothing: its uid is another.
                if views::evicted_uid(step).is_some_and(|uid| uid != object::uid(pod)) {
                    return;
                }
                let strategy = views::record_of(objects, node).map_or_else(String::new, strategy);
                if strategy != "drain" {
                    bad(node, &strategy);
                }
            }
            // It is gone: some run that drains must have asked for it.
            None => {
                if !views::records(objects).any(|record| strategy(record) == "drain") {
                    bad("", "no run that drains");
                }
            }
        }
    });
    found
}

fn spec(object: Option<&Value>) -> Option<&Value> {
    object?.get("spec")
}

/// S13: from Returning on nothing of the node is evicted, deleted, restarted or rebooted, and at no time a workload.
pub fn nothing_is_repaired(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    history.replay(|objects, step| {
        if !rules.is_ours(step) {
            return;
        }
        let mut bad = |what: String| found.push(Violation { invariant: "S13", step: step.number, what });
        for change in step.changes.iter().filter(|change| change.key.resource.group == "apps") {
            if spec(change.before.as_deref()) != spec(change.after.as_deref()) {
                bad(format!("{} {} was changed", change.key.resource.resource, change.key.name));
            }
        }
        let returned = |node: &str| {
            views::record_of(objects, node).is_some_and(|record| {
                matches!(views::phase(record), "Returning" | "Verifying" | "Uncordoning" | "Settling" | "Held")
            })
        };
        for change in changes(step, "", "pods").filter(|change| change.key.namespace != ACTION_NAMESPACE) {
            let node = change.before.as_ref().map_or("", |pod| object::text(pod, "/spec/nodeName"));
            if returned(node) {
                bad(format!("pod {} of node {node} was touched after its return", change.key.name));
            }
        }
        for act in views::acts(objects, step).into_iter().filter(|act| returned(&act.node)) {
            bad(format!("node {} was rebooted again after its return", act.node));
        }
    });
    found
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::Row;
    use serde_json::json;

    pub(crate) const S7: &[Row] = &[
        ("an owned node's pod by uid", false, |night| {
            night.start("n1");
            night.evict("web-n1", Some("uid-web-n1"));
        }),
        ("refused by its uid", false, |night| {
            night.start("n1");
            night.evict("web-n1", Some("uid-of-old"));
        }),
        ("without uid", true, |night| {
            night.start("n1");
            night.evict("web-n1", None);
        }),
        ("another node's pod", true, |night| {
            night.start("n1");
            night.evict("web-n2", Some("uid-web-n2"));
        }),
        ("a DaemonSet's pod", true, |night| {
            night.start("n1");
            night.evict("agent-n1", Some("uid-agent-n1"));
        }),
        ("a static pod", true, |night| {
            night.start("n1");
            night.evict("static-n1", Some("uid-static-n1"));
        }),
        ("deleted", true, |night| {
            night.start("n1");
            night.delete("web-n1");
        }),
        ("deleted after it was refused", true, |night| {
            night.start("n1");
            night.guard("web-n1", 0);
            night.evict("web-n1", Some("uid-web-n1"));
            night.delete("web-n1");
        }),
        ("refused by its budget", false, |night| {
            night.start("n1");
            night.guard("web-n1", 0);
            night.evict("web-n1", Some("uid-web-n1"));
        }),
        ("within its budget", false, |night| {
            night.start("n1");
            night.guard("web-n1", 1);
            night.evict("web-n1", Some("uid-web-n1"));
        }),
        ("a stale uid that takes from the budget and hits nobody", false, |night| {
            night.start("n1");
            night.guard("web-n1", 1);
            night.evict("web-n1", Some("uid-of-old"));
        }),
        ("against its budget", true, |night| {
            night.start("n1");
            night.guard("web-n1", 0);
            night.take("web-n1", "uid-web-n1", None);
        }),
        ("under two budgets", true, |night| {
            night.start("n1");
            night.guard("web-n1", 1);
            night.guard("web-n1", 1);
            night.take("web-n1", "uid-web-n1", None);
        }),
        ("another uid", true, |night| {
            night.start("n1");
            night.take("web-n1", "uid-of-old", None);
        }),
        ("without grace", true, |night| {
            night.start("n1");
            night.take("web-n1", "uid-web-n1", Some(0));
        }),
        ("with a grace of its own", false, |night| {
            night.start("n1");
            night.take("web-n1", "uid-web-n1", Some(5));
        }),
        ("the budget raised", true, |night| {
            night.start("n1");
            night.guard("web-n1", 0);
            night.change_budget("maint-1", |budget| budget["spec"]["minAvailable"] = json!(0));
        }),
        ("the budget's status written", true, |night| {
            night.start("n1");
            night.guard("web-n1", 0);
            night.change_budget("maint-1", |budget| budget["status"]["disruptionsAllowed"] = json!(1));
        }),
        ("the budget raised by somebody else", false, |night| {
            night.start("n1");
            night.guard("web-n1", 0);
            night.change_budget("person", |budget| budget["spec"]["minAvailable"] = json!(0));
        }),
        ("the pod taken out of its budget", true, |night| {
            night.start("n1");
            night.change_pod("maint-1", "web-n1", |pod| pod["metadata"]["labels"] = json!({}));
        }),
        ("its finalizer taken off by somebody else", false, |night| {
            night.start("n1");
            night.change_pod("operator", "web-n1", |pod| pod["metadata"]["labels"] = json!({"free": "yes"}));
        }),
        ("somebody took the cordon off a moment ago", false, |night| {
            night.start("n1");
            night.uncordon_by("person", "n1");
            night.evict("web-n1", Some("uid-web-n1"));
        }),
        ("somebody took the cordon off a while ago", true, |night| {
            night.start("n1");
            night.uncordon_by("person", "n1");
            night.wait(2);
            night.evict("web-n1", Some("uid-web-n1"));
        }),
        ("after the cordon is gone", true, |night| {
            night.start("n1");
            night.uncordon("n1");
            night.evict("web-n1", Some("uid-web-n1"));
        }),
    ];

    pub(crate) const S10: &[Row] = &[
        ("drain", false, |night| {
            night.start("n1");
            night.evict("web-n1", Some("uid-web-n1"));
        }),
        ("cordon-only", true, |night| {
            night.start("n1");
            night.record("n1", |status| status["strategy"] = json!("cordon-only"));
            night.evict("web-n1", Some("uid-web-n1"));
        }),
        ("cordon-only, and refused", true, |night| {
            night.start("n1");
            night.record("n1", |status| status["strategy"] = json!("cordon-only"));
            night.guard("web-n1", 0);
            night.evict("web-n1", Some("uid-web-n1"));
        }),
        ("the strategy was lost", true, |night| {
            night.start("n1");
            night.record("n1", |status| status["strategy"] = json!(null));
            night.evict("web-n1", Some("uid-web-n1"));
        }),
        ("a pod that is gone, while a run drains", false, |night| {
            night.start("n1");
            night.evict("web-n9", Some("uid-web-n9"));
        }),
        ("a pod that is gone, while none does", true, |night| {
            night.start("n1");
            night.record("n1", |status| status["strategy"] = json!("cordon-only"));
            night.evict("web-n9", Some("uid-web-n9"));
        }),
        ("the run of another node drains", true, |night| {
            night.start("n1");
            night.evict("web-n2", Some("uid-web-n2"));
        }),
    ];

    pub(crate) const S13: &[Row] = &[
        ("before the return", false, |night| {
            night.start("n1");
            night.evict("web-n1", Some("uid-web-n1"));
        }),
        ("evicted after the return", true, |night| {
            night.start("n1");
            night.record("n1", |status| status["phase"] = json!("Verifying"));
            night.evict("web-n1", Some("uid-web-n1"));
        }),
        ("rebooted again", true, |night| {
            night.start("n1");
            night.intend("n1");
            night.record("n1", |status| status["phase"] = json!("Held"));
            night.act("n1", "boot-n1");
        }),
        ("a workload restarted", true, |night| {
            night.daemon_set("maint-1", |set| set["spec"] = json!({"restarted": true}));
        }),
    ];
}
