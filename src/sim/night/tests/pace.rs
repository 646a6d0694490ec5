//! How fast a drain is and what it costs in requests, on a machine that is busy: each request takes its time of it.

use serde_json::json;

use super::*;
use crate::invariants::{evictions_of, views};
use crate::night::scenario::WELL;
use crate::world::{START_ANNOTATION, STOP_ANNOTATION};

/// What a request costs the machine.
const WORK: Duration = Duration::from_millis(5);
/// Lag of the disruption controller.
const LAG: Duration = Duration::from_millis(100);

/// One drain to be measured: pods of one ReplicaSet without a budget, and of one whose budget lets one go at a time.
struct Cell {
    name: &'static str,
    prepare: fn(&mut Inner, Timestamp),
    /// At most so many times the best time there could be.
    limit: f64,
    /// At most so many requests from the first eviction to the last pod gone.
    requests: usize,
}

const CELLS: &[Cell] = &[
    Cell { name: "110x2", prepare: |inner, now| crowd(inner, now, (110, 0), "2"), limit: 1.3, requests: 152 },
    Cell {
        name: "30x0.2.one_budget",
        prepare: |inner, now| crowd(inner, now, (10, 20), "0.2"),
        limit: 1.3,
        requests: 280,
    },
];

/// Pods on the target, Ready 0.2 s after they were bound, and so long until they have ended.
fn crowd(inner: &mut Inner, now: Timestamp, (free, kept): (usize, usize), stop: &str) {
    inner.work = WORK;
    for (name, count) in [("free", free), ("kept", kept)] {
        let annotations = json!({START_ANNOTATION: "0.2", STOP_ANNOTATION: stop});
        let labels = json!({"app": name});
        let spec = json!({"terminationGracePeriodSeconds": 30, "containers": [{"name": "main", "image": name}]});
        inner.store.seed(
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "namespace": "default", "uid": name},
                "spec": {"replicas": count, "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}}}),
            now,
        );
        for index in 0..count {
            let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("{name}-{index}"),
                "namespace": "default", "labels": labels, "annotations": annotations, "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": true}]},
                "spec": spec, "status": {"phase": "Pending"}});
            pod["spec"]["nodeName"] = json!(TARGET);
            inner.store.seed(pod, now);
        }
    }
    if kept > 0 {
        inner.store.seed(
            json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "kept", "namespace": "default"},
                "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "kept"}}}}),
            now,
        );
    }
}

fn became_ready(before: Option<&Value>, after: &Value) -> bool {
    object::is_true(after, "Ready") && before.is_none_or(|pod| !object::is_true(pod, "Ready"))
}

/// What the history says of one drain.
#[derive(Default)]
struct Seen {
    ending: BTreeMap<String, Timestamp>,
    gone: BTreeMap<String, Timestamp>,
    /// Replacements that are Ready, and budgets that allow again.
    ready: Vec<Timestamp>,
    allows: Vec<Timestamp>,
}

impl Seen {
    /// Of the pods that are called so.
    fn of(history: &History, called: &str) -> Self {
        let mut seen = Self::default();
        for step in &history.steps {
            for change in views::changes(step, "", "pods").filter(|change| change.key.name.starts_with(called)) {
                let (before, after) = (change.before.as_deref(), change.after.as_deref());
                let name = change.key.name.clone();
                let on_target = |pod: &Value| object::text(pod, "/spec/nodeName") == TARGET;
                match after {
                    Some(pod) if on_target(pod) && object::is_deleting(pod) => {
                        seen.ending.entry(name).or_insert(step.at);
                    }
                    None if before.is_some_and(on_target) => {
                        seen.gone.insert(name, step.at);
                    }
                    Some(pod) if !on_target(pod) && became_ready(before, pod) => seen.ready.push(step.at),
                    _ => {}
                }
            }
            let budgets = views::changes(step, "policy", "poddisruptionbudgets");
            for change in budgets.filter(|change| change.key.name == called) {
                let allowed =
                    change.after.as_ref().and_then(|budget| budget.at("/status/disruptionsAllowed")?.as_i64());
                if allowed.is_some_and(|allowed| allowed > 0) {
                    seen.allows.push(step.at);
                }
            }
        }
        seen
    }

    /// The best time there could be: without a budget the slowest pod's own time; with one, for each pod its own time,
    /// its replacement's to Ready, and the controller's lag.
    fn limit(&self) -> f64 {
        let own = self.ending.iter().filter_map(|(name, at)| Some(seconds(*at, *self.gone.get(name)?)));
        let own: Vec<f64> = own.collect();
        let slowest = own.iter().copied().fold(0.0, f64::max);
        if self.allows.is_empty() {
            return slowest;
        }
        let mut endings: Vec<Timestamp> = self.ending.values().copied().collect();
        endings.sort();
        let replaced = endings.iter().zip(&self.ready).map(|(ending, ready)| seconds(*ending, *ready)).collect();
        let lag = self.ready.iter().filter_map(|ready| {
            let next = self.allows.iter().find(|at| *at >= ready)?;
            Some(seconds(*ready, *next))
        });
        let waves = f64::from(u32::try_from(own.len()).expect("few"));
        waves * (median(own) + median(replaced) + median(lag.collect()))
    }
}

fn seconds(from: Timestamp, until: Timestamp) -> f64 {
    until.duration_since(from).as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().expect("some")
}

/// When the record left Draining.
fn drained(history: &History) -> Timestamp {
    let left = |step: &&crate::trace::Step| {
        views::changes(step, "maint.dev", "maintenances").any(|change| {
            let phase = |record: &Option<Arc<Value>>| record.as_deref().map(|record| views::phase(record).to_owned());
            phase(&change.before).as_deref() == Some("Draining") && phase(&change.after).as_deref() != Some("Draining")
        })
    };
    history.steps.iter().find(left).expect("it was drained").at
}

/// Requests of the service in that time, renewals of the Lease apart, by what they ask.
fn requests(history: &History, from: Timestamp, until: Timestamp) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for step in &history.steps {
        let lease = step.resource == "leases" && step.namespace == "maint";
        if !step.client.starts_with("maint") || lease || step.at < from || step.at > until {
            continue;
        }
        let what = if step.resource.is_empty() { &step.path } else { &step.resource };
        *kinds.entry(format!("{} {what}/{}", step.verb, step.subresource)).or_default() += 1;
    }
    kinds
}

#[test]
fn a_drain_is_nearly_as_fast_as_its_pods_and_asks_little_more_than_evictions() {
    let mut wrong = Vec::new();
    for Cell { name, prepare, limit, requests: most } in CELLS {
        let scenario = Scenario {
            name: "pace",
            prepare: *prepare,
            configure: |settings| settings.run.drain_timeout_seconds = 600,
            script: |stage| {
                Box::pin(async move {
                    stage.with(|world, _, _| world.settings().budget_lag = LAG);
                    Person::new(stage, "person").asks("reboot", "pod", false).await;
                })
            },
            ..WELL
        };
        let night = night(&scenario, &Plan { seed: 1, ..Plan::default() });
        assert_eq!(night.violations, Vec::new(), "{name}");
        assert_eq!(night.end.phase, "Succeeded", "{name}: {}", story(&night));
        let seen = ["free", "kept"].map(|called| Seen::of(&night.history, called));
        let first = evictions_of(&night.history).iter().map(|(_, at)| *at).min().expect("evictions");
        let last = seen.iter().flat_map(|seen| seen.gone.values()).max().copied().expect("pods that went");
        let (took, best) = (seconds(first, last), seen.iter().map(Seen::limit).fold(0.0, f64::max));
        let kinds = requests(&night.history, first, last);
        let count: usize = kinds.values().sum();
        println!("figure drain.sim.{name}.seconds {took:.2} s");
        println!("figure drain.sim.{name}.limit {best:.2} s");
        println!("figure drain.sim.{name}.ratio_limit {:.2} x", took / best);
        println!("figure drain.sim.{name}.requests {count} requests");
        let noticed = seconds(last, drained(&night.history));
        println!("figure drain.sim.{name}.noticed {noticed:.2} s");
        println!("{kinds:#?}");
        assert!(noticed < 1.0, "{name}: that all were gone was seen {noticed:.2} s later");
        if took > best * limit || count > *most {
            wrong.push(format!("{name}: {took:.2} s, at best {best:.2} s; {count} requests"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
