//! The next step against a server with chances: what holds whatever it answers, and that every pod is gone in the end.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::answer::{Answer, Answered, Eviction, Lane};
use super::answers::Answers;
use super::next::{Next, next};
use super::testing::{Cluster, NODE, budget_document, look, now, of_set, pod_document, settings, workload};
use super::view::View;
use super::wait::Wait;

/// Steps after which every pod must be gone.
const MOST_STEPS: usize = 2_000;

/// What the server does with an eviction that its budget allows.
#[derive(Debug, Clone, Copy)]
enum Chance {
    Accept,
    Transient,
    Throttle,
    Webhook,
    /// A budget that was taken by others in the meantime.
    Taken,
}

/// A server, its controllers and the pods of a node.
struct World {
    cluster: Cluster,
    at: Timestamp,
    /// When pods that end are gone, by uid.
    ends: BTreeMap<String, Timestamp>,
    chances: Vec<Chance>,
    used: usize,
    /// Pods that somebody replaced by others of the same name.
    replaced: Vec<String>,
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

impl World {
    fn chance(&mut self) -> Chance {
        let found = self.chances.get(self.used % self.chances.len()).copied().unwrap_or(Chance::Accept);
        self.used += 1;
        // A server that never accepts proves nothing.
        if self.used > 100 { Chance::Accept } else { found }
    }

    fn budget_of(&mut self, uid: &str) -> Option<&mut Value> {
        self.cluster.budgets.iter_mut().find(|budget| budget["metadata"]["uid"] == uid)
    }

    /// What the server says, checked against all that must hold of what is sent.
    fn evict(&mut self, eviction: &Eviction) -> Answer {
        let pod = self.cluster.pods.iter().find(|pod| pod["metadata"]["uid"] == eviction.uid.as_str()).cloned();
        assert!(!self.replaced.contains(&eviction.uid), "sent to a pod whose name another one has: {eviction:?}");
        let Some(pod) = pod else { return Answer::Gone };
        assert_eq!(text(&pod, "/spec/nodeName"), NODE, "sent to a pod of another node");
        assert!(pod["metadata"]["deletionTimestamp"].is_null(), "sent to a pod that is ending");
        match self.chance() {
            Chance::Transient => return Answer::Transient { message: "500".to_owned() },
            Chance::Throttle => return Answer::Throttled { retry_after_seconds: Some(1) },
            Chance::Webhook => return Answer::WebhookDenied { message: "denied the request".to_owned() },
            Chance::Taken => {
                return Answer::RefusedByBudget {
                    budget: None,
                    message: "taken".to_owned(),
                    retry_after_seconds: None,
                };
            }
            Chance::Accept => {}
        }
        if let Lane::Budget(uid) = &eviction.lane {
            let budget = self.budget_of(uid).expect("its budget");
            let allowed = budget["status"]["disruptionsAllowed"].as_i64().expect("a number");
            assert!(allowed > 0, "sent although it must be refused");
            budget["status"]["disruptionsAllowed"] = json!(allowed - 1);
            bump(budget);
        }
        let ends = self.at + SignedDuration::from_secs(3);
        self.ends.insert(eviction.uid.clone(), ends);
        for pod in &mut self.cluster.pods {
            if pod["metadata"]["uid"] == eviction.uid.as_str() {
                pod["metadata"]["deletionTimestamp"] = json!(ends.to_string());
            }
        }
        if let Lane::StatefulSet(_) = eviction.lane {
            self.ready(eviction.name.split('-').next().unwrap_or_default(), -1);
        }
        Answer::Accepted
    }

    fn ready(&mut self, set: &str, by: i64) {
        for one in self.cluster.stateful_sets.iter_mut().filter(|one| one["metadata"]["name"] == set) {
            one["status"]["readyReplicas"] = json!(one["status"]["readyReplicas"].as_i64().unwrap_or_default() + by);
            bump(one);
        }
    }

    /// Pods end, their successors become Ready elsewhere, budgets have room again.
    fn pass(&mut self, to: Timestamp) {
        self.at = to;
        let over: Vec<String> = self.ends.iter().filter(|(_, at)| **at <= to).map(|(uid, _)| uid.clone()).collect();
        for uid in over {
            self.ends.remove(&uid);
            let Some(index) = self.cluster.pods.iter().position(|pod| pod["metadata"]["uid"] == uid.as_str()) else {
                continue;
            };
            let pod = self.cluster.pods.remove(index);
            let app = text(&pod, "/metadata/labels/app").to_owned();
            self.ready(&app, 1);
            for budget in &mut self.cluster.budgets {
                if budget["spec"]["selector"]["matchLabels"]["app"] == app.as_str() {
                    let allowed = budget["status"]["disruptionsAllowed"].as_i64().unwrap_or_default();
                    budget["status"]["disruptionsAllowed"] = json!(allowed + 1);
                    bump(budget);
                }
            }
        }
    }
}

fn bump(object: &mut Value) {
    let version: i64 = text(object, "/metadata/resourceVersion").parse().unwrap_or_default();
    object["metadata"]["resourceVersion"] = json!((version + 1).to_string());
}

/// One pod: its application (those of `budgeted` have a budget), how it is.
fn pods() -> impl Strategy<Value = Vec<(usize, bool, bool)>> {
    prop::collection::vec((0..5_usize, any::<bool>(), prop::bool::weighted(0.2)), 1..30)
}

fn chance() -> impl Strategy<Value = Chance> {
    prop_oneof![
        5 => Just(Chance::Accept),
        1 => Just(Chance::Transient),
        1 => Just(Chance::Throttle),
        1 => Just(Chance::Webhook),
        1 => Just(Chance::Taken),
    ]
}

fn world(pods: &[(usize, bool, bool)], allowed: [i64; 2], chances: Vec<Chance>) -> World {
    let mut documents = Vec::new();
    for (index, (app, critical, replaced)) in pods.iter().enumerate() {
        let mut pod = match app {
            // One application is a StatefulSet without a budget.
            4 => of_set("db", index),
            app => pod_document(
                &format!("app{app}-{index}"),
                json!({"metadata": {"labels": {"app": format!("app{app}")}}}),
            ),
        };
        if *critical {
            pod["spec"]["priorityClassName"] = json!("system-cluster-critical");
        }
        if *replaced {
            // It runs elsewhere under the same name already.
            pod["spec"]["nodeName"] = json!("n2");
        }
        documents.push(pod);
    }
    let budgets = allowed.iter().enumerate().map(|(app, allowed)| {
        budget_document(
            &format!("app{app}"),
            json!({"spec": {"selector": {"matchLabels": {"app": format!("app{app}")}}},
                "status": {"disruptionsAllowed": allowed, "currentHealthy": 40, "desiredHealthy": 20, "expectedPods": 40}}),
        )
    });
    let replaced = documents.iter().filter(|pod| pod["spec"]["nodeName"] != NODE);
    let replaced = replaced.map(|pod| text(pod, "/metadata/uid").to_owned()).collect();
    let mut set = workload("db", 40, 40);
    set["metadata"]["resourceVersion"] = json!("1");
    let cluster =
        Cluster { budgets: budgets.collect(), pods: documents, stateful_sets: vec![set], ..Cluster::default() };
    World { cluster, at: now(), ends: BTreeMap::new(), chances, used: 0, replaced }
}

/// What must hold of what is asked, whatever is answered.
fn check(view: &View<'_>, answers: &Answers, found: &Next) {
    let mut taken: BTreeMap<&Lane, i64> = BTreeMap::new();
    for eviction in &found.send {
        *taken.entry(&eviction.lane).or_default() += 1;
        let entry = view.entries.iter().find(|entry| entry.pod.metadata.uid == eviction.uid);
        let entry = entry.expect("a pod that was seen on the node");
        assert_eq!(entry.pod.node_name.as_deref(), Some(NODE));
        assert!(!entry.pod.is_ending() && !answers.is_on_its_way(&eviction.uid));
    }
    for (lane, count) in taken {
        match lane {
            Lane::Budget(uid) => {
                let mut budgets = view.entries.iter().flat_map(|entry| &entry.budgets);
                let budget = budgets.find(|budget| budget.metadata.uid == *uid).expect("its budget");
                assert!(count <= budget.disruptions_allowed, "more than {} allows", budget.metadata.name);
            }
            Lane::StatefulSet(_) | Lane::Pod(_) => assert_eq!(count, 1, "{lane:?}"),
        }
    }
    let ending = found.waiting.iter().filter(|one| matches!(one.why, Wait::Ending { .. } | Wait::Stuck { .. })).count();
    assert_eq!(ending, found.ending);
}

/// Sends as whoever executes it does: lanes beside each other, each one after the other until an answer ends it.
fn send(world: &mut World, answers: &mut Answers, found: &Next) {
    let mut lanes: BTreeMap<&Lane, Vec<&Eviction>> = BTreeMap::new();
    for eviction in &found.send {
        lanes.entry(&eviction.lane).or_default().push(eviction);
    }
    for evictions in lanes.into_values() {
        for eviction in evictions {
            answers.sent(eviction);
            let answer = world.evict(eviction);
            let ends = answer.ends_lane();
            answers.note(Answered { eviction: eviction.clone(), answer, at: world.at });
            if ends {
                break;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn whatever_is_answered_nothing_is_sent_in_vain_and_every_pod_goes_in_the_end(
        pods in pods(), first in 0..3_i64, second in 1..4_i64, chances in prop::collection::vec(chance(), 1..20),
    ) {
        let mut world = world(&pods, [first.max(1), second], chances);
        let (mut answers, settings) = (Answers::default(), settings(""));
        for step in 0.. {
            prop_assert!(step < MOST_STEPS, "{} pods never went", world.cluster.pods.len());
            let (facts, at) = (world.cluster.facts(world.at), world.at);
            let found = look(&facts, &settings, at, |view| {
                let found = next(view, &answers, at);
                assert_eq!(found, next(view, &answers, at), "the same look gives the same step");
                check(view, &answers, &found);
                found
            });
            if found.waiting.is_empty() {
                break;
            }
            send(&mut world, &mut answers, &found);
            let soon = at + SignedDuration::from_secs(1);
            let least = at + SignedDuration::from_millis(100);
            // While pods end the cluster changes by itself; else nothing does before it is worth a look.
            let most = if found.ending > 0 || !found.send.is_empty() { soon } else { Timestamp::MAX };
            let to = found.wake_at.map_or(soon, |wake| wake.clamp(least, most));
            world.pass(to);
        }
        let left = world.cluster.pods.iter().filter(|pod| pod["spec"]["nodeName"] == NODE).count();
        prop_assert_eq!(left, 0);
    }
}
