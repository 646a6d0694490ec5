//! Hand-made nights for the tests of the checks: small acts on a small cluster, each one step.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::views::{KURED_LOCK, OWNER};
use super::{History, Invariant, Opening, Rules};
use crate::store::{Context, ObjectKey, Store, object};
use crate::trace::{Step, Trace};
use crate::world::{ACTION_ANNOTATION, ACTION_BOOT_ID, ACTION_NAMESPACE, fixture};

/// A name, whether it violates, and how it goes.
pub type Row = (&'static str, bool, fn(&mut Night));

/// A night in the making.
pub struct Night {
    store: Store,
    trace: Trace,
    initial: super::Objects,
    now: Timestamp,
    /// Who acts for maint.
    pub client: String,
    term: i64,
    /// The status of the finding that is written; empty for none, as where all pass.
    pub finding: String,
    /// What was delivered.
    pub mail: Vec<(String, String)>,
}

/// The findings of a status as a record keeps them.
fn kept(status: &str) -> Value {
    if status.is_empty() { json!([]) } else { json!([{"gate": "target", "status": status}]) }
}

const START: &str = "2026-11-30T02:00:00Z";
/// The opening that every hand-made night is in, from ten minutes before to twenty minutes after its begin.
pub const OPENING: &str = "night-2026-11-30";
/// What must be written nowhere.
pub const SECRET: &str = "T0PSECRET";

impl Night {
    fn new() -> Self {
        let now: Timestamp = START.parse().expect("a time");
        let mut store = Store::new(1, now);
        fixture::register(&mut store);
        fixture::register_longhorn(&mut store, now);
        for namespace in ["maint", ACTION_NAMESPACE] {
            store.seed(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}), now);
        }
        for name in ["n1", "n2", "n3"] {
            store.seed(fixture::node(name, "10.0.0.1", true, &format!("boot-{name}"), now), now);
            store.seed(
                json!({"apiVersion": "maint.dev/v1alpha1", "kind": "Maintenance",
                    "metadata": {"name": format!("{name}-a"), "uid": format!("uid-{name}")}, "spec": {"nodeName": name}}),
                now,
            );
            for (app, kind) in [("web", "ReplicaSet"), ("agent", "DaemonSet"), ("static", "Node")] {
                let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("{app}-{name}"),
                    "namespace": "default", "uid": format!("uid-{app}-{name}"),
                    "ownerReferences": [{"kind": kind, "name": app, "uid": app, "controller": true}]},
                    "spec": {"nodeName": name}, "status": {"phase": "Running"}});
                if app == "static" {
                    object::annotate(&mut pod, "kubernetes.io/config.mirror", "x");
                }
                store.seed(pod, now);
            }
        }
        store.seed(
            json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "kured", "namespace": "kube-system"},
                "spec": {}}),
            now,
        );
        let mut night = Self {
            initial: store.snapshot(),
            store,
            trace: Trace::default(),
            now,
            client: "maint-1".to_owned(),
            term: 3,
            finding: String::new(),
            mail: Vec::new(),
        };
        night.leader("maint-1", 3);
        night
    }

    /// Runs rows against one check; each must violate it or not, as it says.
    pub fn rows(invariant: &Invariant, rows: &[Row]) {
        let rules = Rules {
            kured_asks: true,
            openings: vec![Opening { id: OPENING.to_owned(), starts: Self::at(-600), ends: Self::at(1200) }],
            expected: SignedDuration::from_secs(300),
            secrets: vec![SECRET.to_owned()],
            ..Rules::default()
        };
        for (row, violates, act) in rows {
            let found = (invariant.check)(&rules, &Self::played(*act));
            assert_eq!(!found.is_empty(), *violates, "{}, {row}: {found:#?}", invariant.id);
            assert!(found.iter().all(|violation| violation.invariant == invariant.id), "{row}");
        }
    }

    /// So many seconds after the begin.
    fn at(seconds: i64) -> Timestamp {
        START.parse::<Timestamp>().expect("a time") + SignedDuration::from_secs(seconds)
    }

    fn played(act: fn(&mut Self)) -> History {
        let mut night = Self::new();
        act(&mut night);
        History { initial: night.initial, steps: night.trace.steps().to_vec(), mail: night.mail }
    }

    /// Runs a night against all checks.
    pub fn run(act: fn(&mut Self)) -> Vec<super::Violation> {
        super::check_all(&Rules::default(), &Self::played(act))
    }

    fn step(&mut self, client: &str, mut step: Step, act: impl FnOnce(&mut Store, Timestamp)) {
        let before = self.store.revision();
        act(&mut self.store, self.now);
        client.clone_into(&mut step.client);
        step.changes = self.store.changes_after(before).expect("kept");
        self.trace.push(step);
    }

    /// Makes objects.
    pub fn seed(&mut self, client: &str, objects: Vec<Value>) {
        let step = Step::act(client, self.now);
        self.step(client, step, |store, now| {
            for object in objects {
                store.seed(object, now).expect("a known kind");
            }
        });
    }

    /// A request that writes and changes nothing.
    pub fn put(&mut self, resource: &str, subresource: &str, name: &str) {
        let mut step = Step::act(&self.client, self.now);
        step.verb = "update";
        step.code = 200;
        resource.clone_into(&mut step.resource);
        subresource.clone_into(&mut step.subresource);
        name.clone_into(&mut step.name);
        self.trace.push(step);
    }

    /// A request with a body.
    pub fn put_body(&mut self, body: &Value) {
        let mut step = Step::act(&self.client, self.now);
        step.body = Some(body.clone().into());
        self.trace.push(step);
    }

    /// Somebody halts everything.
    pub fn halt(&mut self) {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "maint-control", "namespace": "maint"},
            "data": {"halt": r#"{"by": "person"}"#}});
        self.seed("person", vec![map]);
    }

    /// Changes the spec of a node's record, as a person does.
    pub fn spec(&mut self, node: &str, change: impl FnOnce(&mut Value)) {
        let key = ObjectKey::new("maint.dev", "maintenances", "", &format!("{node}-a"));
        self.change("person", &key, |record| change(&mut record["spec"]));
    }

    /// Changes an object.
    pub fn change(&mut self, client: &str, key: &ObjectKey, change: impl FnOnce(&mut Value)) {
        let step = Step::act(client, self.now);
        self.step(client, step, |store, _| {
            assert!(store.edit(key, change), "{key:?} changed");
        });
    }

    /// Lets seconds pass.
    pub fn wait(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// Takes or renews the lease.
    pub fn leader(&mut self, client: &str, term: i64) {
        client.clone_into(&mut self.client);
        self.term = term;
        let renewed = object::micros(self.now);
        let spec = json!({"holderIdentity": client, "leaseDurationSeconds": 30, "leaseTransitions": term, "renewTime": renewed});
        let step = Step::act(client, self.now);
        self.step(client, step, |store, now| {
            let key = ObjectKey::new("coordination.k8s.io", "leases", "maint", "maint");
            if !store.edit(&key, |lease| lease["spec"] = spec.clone()) {
                store.seed(
                    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                        "metadata": {"name": "maint", "namespace": "maint"}, "spec": spec}),
                    now,
                );
            }
        });
    }

    /// Changes a node.
    pub fn edit(&mut self, client: &str, node: &str, change: impl FnOnce(&mut Value)) {
        self.change(client, &ObjectKey::node(node), change);
    }

    /// Makes a node NotReady.
    pub fn not_ready(&mut self, node: &str) {
        let now = self.now;
        self.edit("world", node, |node| {
            object::set_condition(node, "Ready", "False", "KubeletNotReady", "", now);
        });
    }

    /// Changes the status of a node's record.
    pub fn record(&mut self, node: &str, change: impl FnOnce(&mut Value)) {
        let client = self.client.clone();
        let key = ObjectKey::new("maint.dev", "maintenances", "", &format!("{node}-a"));
        self.change(&client, &key, |record| {
            object::map(record, "status");
            change(&mut record["status"]);
        });
    }

    /// Starts a run: record, then cordon with its owner.
    pub fn start(&mut self, node: &str) {
        let (term, finding, client) = (self.term, self.finding.clone(), self.client.clone());
        self.record(node, |status| {
            *status = json!({"phase": "Cordoning", "term": term, "strategy": "drain",
                "baseline": kept(&finding)});
        });
        let owner = json!({"maintenance": format!("uid-{node}"), "term": term}).to_string();
        self.edit(&client, node, |node| {
            node["spec"]["unschedulable"] = json!(true);
            object::annotate(node, OWNER, &owner);
        });
    }

    /// Uncordons a node and drops its owner annotation.
    pub fn uncordon(&mut self, node: &str) {
        let client = self.client.clone();
        self.uncordon_by(&client, node);
    }

    /// The cordon and its annotation go, by somebody.
    pub fn uncordon_by(&mut self, client: &str, node: &str) {
        self.edit(client, node, |node| {
            node["spec"]["unschedulable"] = json!(false);
            if let Some(annotations) = node.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
                annotations.remove(OWNER);
            }
        });
    }

    /// Persists intent, findings of the hand-over and a message.
    pub fn intend(&mut self, node: &str) {
        let (at, finding) = (object::seconds(self.now), self.finding.clone());
        let boot_id = format!("boot-{node}");
        self.record(node, |status| {
            status["phase"] = json!("Acting");
            status["intent"] = json!({"bootId": boot_id, "at": at});
            status["findings"] = kept(&finding);
            status["outbox"] = json!([{"kind": "rebooting"}]);
        });
    }

    /// Grants kured the reboot.
    pub fn grant(&mut self, node: &str) {
        self.intend(node);
        let until = object::seconds(self.now + SignedDuration::from_secs(30));
        self.record(node, |status| status["intent"]["validUntil"] = json!(until));
    }

    /// kured's question is written down, with what it heard.
    pub fn ask(&mut self, node: &str, answer: &str) {
        let asked =
            json!({"at": object::seconds(self.now), "answer": answer, "epoch": 1, "source": "kured"}).to_string();
        let key = ObjectKey::new("maint.dev", "maintenances", "", &format!("{node}-a"));
        self.change("maint-1", &key, |record| object::annotate(record, "maint.dev/asked", &asked));
    }

    /// Puts our finalizer on a node's record.
    pub fn finalize(&mut self, node: &str) {
        let client = self.client.clone();
        let key = ObjectKey::new("maint.dev", "maintenances", "", &format!("{node}-a"));
        self.change(&client, &key, |record| object::set_meta(record, "finalizers", json!(["maint.dev/in-flight"])));
    }

    /// Takes the records of the other nodes away, as if they had never been wished.
    pub fn alone(&mut self, node: &str) {
        for other in ["n1", "n2", "n3"].into_iter().filter(|other| *other != node) {
            let step = Step::act("somebody", self.now);
            let key = ObjectKey::new("maint.dev", "maintenances", "", &format!("{other}-a"));
            self.step("somebody", step, |store, _| {
                store.remove(&key);
            });
        }
    }

    /// Creates an action pod.
    pub fn act(&mut self, node: &str, expected: &str) {
        let client = self.client.clone();
        let name = format!("act-{node}-{}", self.store.revision());
        let step = Step::act(&client, self.now);
        self.step(&client, step, |store, now| {
            store.seed(
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": ACTION_NAMESPACE,
                    "annotations": {ACTION_ANNOTATION: "true"}}, "spec": {"nodeName": node, "containers": [
                    {"name": "main", "env": [{"name": ACTION_BOOT_ID, "value": expected}]}]}}),
                now,
            );
        });
    }

    /// Evicts a pod of the namespace default.
    pub fn evict(&mut self, pod: &str, uid: Option<&str>) {
        let client = self.client.clone();
        let options = uid.map_or_else(|| json!({}), |uid| json!({"preconditions": {"uid": uid}}));
        let body = json!({"metadata": {"name": pod}, "deleteOptions": options});
        let mut step = self.pod_step(pod, "create");
        step.subresource = "eviction".to_owned();
        step.code = 201;
        step.body = Some(body.clone().into());
        self.step(&client, step, |store, now| {
            // A refusal is a row's business.
            let _refused = store.evict("default", pod, &body, &Context::new(now, "maint"));
        });
    }

    /// Evicts a pod of the namespace default though the API server would refuse it, as a broken one might not.
    pub fn take(&mut self, pod: &str, uid: &str, grace: Option<i64>) {
        let client = self.client.clone();
        let mut step = self.pod_step(pod, "create");
        step.subresource = "eviction".to_owned();
        let mut options = json!({"preconditions": {"uid": uid}});
        if let Some(grace) = grace {
            options["gracePeriodSeconds"] = json!(grace);
        }
        step.body = Some(json!({"metadata": {"name": pod}, "deleteOptions": options}).into());
        self.step(&client, step, |store, now| {
            store.edit(&ObjectKey::pod("default", pod), |pod| {
                object::set_meta(pod, "deletionTimestamp", json!(object::seconds(now)));
            });
        });
    }

    /// Puts a budget over a pod that lets so many go.
    pub fn guard(&mut self, pod: &str, allowed: i64) {
        let name = format!("guard-{}", self.store.revision());
        self.change_pod("world", pod, |pod| {
            pod["metadata"]["labels"] = json!({"guarded": "yes"});
            pod["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
            pod["status"]["guards"] = json!(name);
        });
        let step = Step::act("world", self.now);
        self.step("world", step, |store, now| {
            store.seed(
                json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                    "metadata": {"name": name, "namespace": "default"},
                    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"guarded": "yes"}}},
                    "status": {"observedGeneration": 1, "currentHealthy": 1 + allowed, "desiredHealthy": 1,
                        "disruptionsAllowed": allowed}}),
                now,
            );
        });
    }

    /// Changes the first budget.
    pub fn change_budget(&mut self, client: &str, change: impl FnOnce(&mut Value)) {
        let budget = self.store.all("policy", "poddisruptionbudgets").next().expect("a budget").clone();
        let key = ObjectKey::new("policy", "poddisruptionbudgets", "default", object::name(&budget));
        self.change(client, &key, change);
    }

    /// Changes a pod of the namespace default.
    pub fn change_pod(&mut self, client: &str, pod: &str, change: impl FnOnce(&mut Value)) {
        self.change(client, &ObjectKey::pod("default", pod), change);
    }

    /// Makes the pod that a client runs in.
    pub fn seat(&mut self, client: &str, node: &str) {
        let step = Step::act("world", self.now);
        self.step("world", step, |store, now| {
            store.seed(
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": client, "namespace": "maint"},
                    "spec": {"nodeName": node}}),
                now,
            );
        });
    }

    /// Deletes a pod of the namespace default.
    pub fn delete(&mut self, pod: &str) {
        let client = self.client.clone();
        let step = self.pod_step(pod, "delete");
        self.step(&client, step, |store, _| {
            store.remove(&ObjectKey::pod("default", pod));
        });
    }

    fn pod_step(&self, pod: &str, verb: &'static str) -> Step {
        let mut step = Step::act(&self.client, self.now);
        step.verb = verb;
        step.resource = "pods".to_owned();
        step.namespace = "default".to_owned();
        pod.clone_into(&mut step.name);
        step
    }

    /// Changes kured's DaemonSet.
    pub fn daemon_set(&mut self, client: &str, change: impl FnOnce(&mut Value)) {
        self.change(client, &ObjectKey::new("apps", "daemonsets", "kube-system", "kured"), change);
    }

    /// A valid lock.
    pub fn lock_of(node: &str) -> Value {
        json!({"nodeID": node, "metadata": {"unschedulable": false}, "created": START, "TTL": 360_000_000_000_000_i64})
    }

    /// A hold of the run of a node.
    pub fn hold_of(node: &str) -> Value {
        let mut lock = Self::lock_of(&format!("maint:{node}"));
        lock["maint"] = json!({"maintenance": format!("uid-{node}")});
        lock
    }

    /// Writes or removes kured's lock.
    pub fn lock(&mut self, client: &str, lock: Option<&Value>) {
        let text = lock.map(Value::to_string);
        self.lock_text(client, text.as_deref());
    }

    /// Writes any text as kured's lock.
    pub fn lock_text(&mut self, client: &str, text: Option<&str>) {
        self.daemon_set(client, |set| match text {
            Some(text) => object::annotate(set, KURED_LOCK, text),
            None => {
                if let Some(annotations) = set.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
                    annotations.remove(KURED_LOCK);
                }
            }
        });
    }
}
