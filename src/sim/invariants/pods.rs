//! S7, S10 and S13: what is done to pods, and what is never done.

use serde_json::Value;

use super::views::{self, changes, is_cordoned, is_eviction};
use super::{History, Objects, Rules, Violation};
use crate::store::object::At as _;
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

/// S7: evictions name the uid, and hit only movable pods of a node that we own; nothing is deleted instead.
pub fn only_evictions_that_are_ours(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    history.replay(|objects, step| {
        if !rules.is_ours(step) || step.resource != "pods" {
            return;
        }
        let mut bad = |why: &str| {
            let what = format!("pod {}/{}: {why}", step.namespace, step.name);
            found.push(Violation { invariant: "S7", step: step.number, what });
        };
        if step.verb == "delete" && step.namespace != ACTION_NAMESPACE {
            return bad("deleted instead of evicted");
        }
        if !is_eviction(step) {
            return;
        }
        let uid = step
            .body
            .as_ref()
            .and_then(|body| body.at("/deleteOptions/preconditions/uid")?.as_str().map(str::to_owned));
        let Some(uid) = uid else { return bad("evicted without naming its uid") };
        // What was refused has hit nobody.
        let (Some(pod), false) = (pod(objects, step), step.changes.is_empty()) else { return };
        let taken = step.changes.iter().any(|change| change.key.resource.resource == "pods");
        if taken && uid != object::uid(pod) {
            bad("another pod of that name was evicted");
        }
        if !taken {
            return;
        }
        if is_daemon(pod) {
            bad("belongs to a DaemonSet");
        }
        if object::annotation(pod, "kubernetes.io/config.mirror").is_some() {
            bad("is a static pod");
        }
        let name = object::text(pod, "/spec/nodeName");
        let ours = views::node(objects, name).is_some_and(|node| is_cordoned(node) && views::owner(node).is_some());
        if !ours {
            bad(&format!("is on node {name}, which we do not own"));
        }
    });
    found
}

/// S10: strategy `cordon-only` evicts nothing.
pub fn cordon_only_evicts_nothing(rules: &Rules, history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    history.replay(|objects, step| {
        if !rules.is_ours(step) || !is_eviction(step) {
            return;
        }
        let Some(pod) = pod(objects, step) else { return };
        let node = object::text(pod, "/spec/nodeName");
        let strategy = views::record_of(objects, node).map_or("", |record| object::text(record, "/status/strategy"));
        if strategy == "cordon-only" {
            let what = format!("pod {}/{} of node {node} was evicted under cordon-only", step.namespace, step.name);
            found.push(Violation { invariant: "S10", step: step.number, what });
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
mod tests {
    use super::super::testing::Night;
    use serde_json::json;

    #[test]
    fn s7() {
        Night::rows(
            "S7",
            &[
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
            ],
        );
    }

    #[test]
    fn s10() {
        Night::rows(
            "S10",
            &[
                ("drain", false, |night| {
                    night.start("n1");
                    night.evict("web-n1", Some("uid-web-n1"));
                }),
                ("cordon-only", true, |night| {
                    night.start("n1");
                    night.record("n1", |status| status["strategy"] = json!("cordon-only"));
                    night.evict("web-n1", Some("uid-web-n1"));
                }),
            ],
        );
    }

    #[test]
    fn s13() {
        Night::rows(
            "S13",
            &[
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
            ],
        );
    }
}
