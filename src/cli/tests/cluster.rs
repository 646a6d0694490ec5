//! A cluster in memory with nodes and records, and a leader that is scripted: it moves the record at each look.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use kube::client::Body;
use maint_core::config::Settings;
use maint_core::jiff::Timestamp;
use maint_engine::client::{Access, install_crypto_provider};
use maint_engine::runtime::{Clock, Rng};
use serde_json::{Value, json};

use crate::cli::cluster::Session;

const RECORDS: &str = "/apis/maint.dev/v1alpha1/maintenances";

/// Moves a record; the number counts the looks at it from 1.
type Leader = Box<dyn FnMut(&mut Value, usize) + Send>;

/// An answer that is given instead of the usual one, once.
pub struct Fault {
    /// Method and a part of path and body, such as `PATCH claimed`.
    pub method: &'static str,
    pub part: &'static str,
    /// Status code; 0 cuts the connection.
    pub code: u16,
    /// Whether the request takes effect all the same.
    pub done: bool,
}

#[derive(Default)]
struct State {
    records: BTreeMap<String, Value>,
    asked: Vec<String>,
    faults: Vec<Fault>,
    leader: Option<Leader>,
    looks: usize,
    version: u64,
    boot_id: String,
    without_crds: bool,
    kured: Option<Kured>,
    annotated: bool,
}

/// kured's DaemonSet.
struct Kured {
    lock: Option<String>,
    /// Somebody else writes this after the next look.
    then: Vec<Option<String>>,
    concurrency: usize,
    /// Further flags.
    flags: Vec<&'static str>,
}

/// The cluster.
#[derive(Clone)]
pub struct Cluster(Arc<Mutex<State>>);

impl Cluster {
    /// One with the nodes worker1 and worker2, and no record.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(State { boot_id: "b1".to_owned(), version: 100, ..State::default() })))
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().expect("not poisoned"))
    }

    /// Gives it a leader.
    pub fn leader(self, leader: impl FnMut(&mut Value, usize) + Send + 'static) -> Self {
        self.with(|state| state.leader = Some(Box::new(leader)));
        self
    }

    /// Lets one request go wrong.
    pub fn fault(self, fault: Fault) -> Self {
        self.with(|state| state.faults.push(fault));
        self
    }

    /// Takes the CRDs away.
    pub fn without_crds(self) -> Self {
        self.with(|state| state.without_crds = true);
        self
    }

    /// Puts a record of worker2 there.
    pub fn record(self, name: &str, phase: &str) -> Self {
        let record = json!({
            "apiVersion": "maint.dev/v1alpha1", "kind": "Maintenance",
            "metadata": {"name": name, "uid": name, "resourceVersion": "1", "creationTimestamp": "2026-11-30T00:50:00Z"},
            "spec": {"nodeName": "worker2", "scope": "reboot", "action": "pod", "trigger": "manual"},
            "status": status(phase, ""),
        });
        self.with(|state| state.records.insert(name.to_owned(), record));
        self
    }

    /// Installs kured, with this lock.
    pub fn kured(self, lock: Option<&str>, concurrency: usize) -> Self {
        let kured = Kured { lock: lock.map(str::to_owned), then: Vec::new(), concurrency, flags: Vec::new() };
        self.with(|state| state.kured = Some(kured));
        self
    }

    /// Installs kured, started with these flags.
    pub fn kured_with(self, flags: &[&'static str]) -> Self {
        let cluster = self.kured(None, 1);
        cluster.with(|state| state.kured.iter_mut().for_each(|kured| kured.flags = flags.to_vec()));
        cluster
    }

    /// The same, asking maint before it reboots.
    pub fn gated_kured(self, flags: &[&'static str]) -> Self {
        self.kured_with(&[&["--prometheus-url=http://maint.maint/kured/$(KURED_NODE_ID)"], flags].concat())
    }

    /// Every node bears kured's annotation that a reboot is wanted.
    pub fn annotated(self) -> Self {
        self.with(|state| state.annotated = true);
        self
    }

    /// A wish of kured for worker2 on boot b1, with this annotation of the last question.
    pub fn wish_of_kured(self, name: &str, asked: &str) -> Self {
        let cluster = self.record(name, "Pending");
        cluster.with(|state| {
            let record = state.records.get_mut(name).expect("just made");
            record["metadata"]["annotations"] = json!({"maint.dev/asked": asked});
            for (field, value) in [("action", "kured"), ("trigger", "unattended"), ("bootID", "b1")] {
                record["spec"][field] = json!(value);
            }
        });
        cluster
    }

    /// Somebody else changes kured's lock after the next look at it.
    pub fn lock_becomes(self, lock: Option<&str>) -> Self {
        self.with(|state| {
            if let Some(kured) = &mut state.kured {
                kured.then.push(lock.map(str::to_owned));
            }
        });
        self
    }

    /// kured's lock.
    pub fn lock(&self) -> Option<String> {
        self.with(|state| state.kured.as_ref().and_then(|kured| kured.lock.clone()))
    }

    /// The boot ID of every node.
    pub fn boot(&self, boot_id: &str) {
        self.with(|state| boot_id.clone_into(&mut state.boot_id));
    }

    /// The writes, as `METHOD name field`.
    pub fn writes(&self) -> Vec<String> {
        self.with(|state| state.asked.iter().filter(|asked| !asked.starts_with("GET")).cloned().collect())
    }

    /// The only record that is not among the given names.
    pub fn made(&self, but: &[&str]) -> Value {
        self.with(|state| {
            let mut records = state.records.iter().filter(|(name, _)| !but.contains(&name.as_str()));
            let record = records.next().expect("a record").1.clone();
            assert!(records.next().is_none(), "one record only");
            record
        })
    }

    /// A session, at 01:00:00.
    pub fn session(&self, settings: Settings) -> Session {
        install_crypto_provider();
        let start: Timestamp = "2026-11-30T01:00:00Z".parse().expect("a time");
        let cluster = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let cluster = cluster.clone();
            async move { cluster.answer(request).await }
        });
        let access = Access::of(kube::Config::new("http://127.0.0.1:1".parse().expect("a URL"))).expect("an access");
        let client = kube::Client::new(service, "default");
        Session::of(settings, Clock::simulated(start), Rng::seeded(7), access, client)
    }

    async fn answer(&self, request: http::Request<Body>) -> Result<http::Response<Body>, std::io::Error> {
        use http_body_util::BodyExt as _;
        let (head, body) = request.into_parts();
        let bytes = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
        let body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let (code, answer) = self.with(|state| state.answer(head.method.as_str(), head.uri.path(), &body));
        if code == 0 {
            return Err(std::io::ErrorKind::ConnectionReset.into());
        }
        let body = Body::from(serde_json::to_vec(&answer).expect("JSON"));
        Ok(http::Response::builder().status(code).body(body).expect("a response"))
    }
}

impl State {
    fn answer(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let name = path.strip_prefix(RECORDS).map(|rest| rest.trim_start_matches('/').to_owned());
        let fields = body["spec"].as_object().map(|spec| spec.keys().cloned().collect::<Vec<_>>().join(","));
        let mut line = format!("{method} {}", name.as_deref().unwrap_or(path));
        if method == "PATCH" {
            line = format!("{line} {}", fields.unwrap_or_default());
        }
        self.asked.push(line.clone());
        let fault = self.faults.iter().position(|fault| fault.method == method && line.contains(fault.part));
        let fault = fault.map(|index| self.faults.remove(index));
        if let Some(Fault { code, done: false, .. }) = fault {
            return (code, failure("it went wrong"));
        }
        let answer = match name {
            Some(_) if self.without_crds => (404, json!("404 page not found")),
            Some(name) => self.on_records(method, &name, body),
            None if path == "/apis/apps/v1/daemonsets" => (200, self.daemon_sets()),
            None if path == "/apis/apps/v1/namespaces/kube-system/daemonsets/kured" => self.on_lock(body),
            None if path == "/api/v1/nodes" => (200, self.nodes()),
            None => (404, failure("nothing here")),
        };
        fault.map_or(answer, |fault| (fault.code, failure("it went wrong")))
    }

    fn on_records(&mut self, method: &str, name: &str, body: &Value) -> (u16, Value) {
        self.version += 1;
        let version = json!(self.version.to_string());
        match (method, name) {
            ("GET", "") => (
                200,
                json!({"kind": "MaintenanceList", "metadata": {}, "items": self.records.values().collect::<Vec<_>>()}),
            ),
            ("POST", _) => {
                let mut record = body.clone();
                record.as_object_mut().expect("an object").remove("status");
                record["metadata"]["resourceVersion"] = version;
                record["metadata"]["uid"] = json!("u-1");
                record["metadata"]["creationTimestamp"] = json!("2026-11-30T01:00:00Z");
                let name = record["metadata"]["name"].as_str().expect("a name").to_owned();
                self.records.insert(name, record.clone());
                (201, record)
            }
            ("GET", _) => {
                let Some(record) = self.records.get_mut(name) else { return (404, failure("not found")) };
                self.looks += 1;
                if let Some(leader) = &mut self.leader {
                    let before = record.clone();
                    leader(record, self.looks);
                    if *record != before {
                        record["metadata"]["resourceVersion"] = version;
                    }
                }
                (200, record.clone())
            }
            ("PATCH", _) => {
                let Some(record) = self.records.get_mut(name) else { return (404, failure("not found")) };
                let wanted = &body["metadata"]["resourceVersion"];
                if !wanted.is_null() && *wanted != record["metadata"]["resourceVersion"] {
                    return (409, failure("the object has been modified"));
                }
                for (field, value) in body["spec"].as_object().into_iter().flatten() {
                    record["spec"][field] = value.clone();
                }
                record["metadata"]["resourceVersion"] = version;
                (200, record.clone())
            }
            _ => (405, failure("not here")),
        }
    }

    fn daemon_sets(&mut self) -> Value {
        let items = self.kured.as_mut().map(|kured| {
            let annotations =
                kured.lock.as_ref().map_or(json!({}), |lock| json!({"weave.works/kured-node-lock": lock}));
            if let Some(then) = kured.then.pop() {
                kured.lock = then;
            }
            let mut args = vec![format!("--concurrency={}", kured.concurrency)];
            args.extend(kured.flags.iter().map(|flag| (*flag).to_owned()));
            json!({
                "metadata": {"name": "kured", "namespace": "kube-system", "annotations": annotations},
                "spec": {"template": {"spec": {"containers": [{
                    "image": "ghcr.io/kubereboot/kured:1.23.0", "args": args,
                    "env": [{"name": "KURED_NODE_ID", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                }]}}},
                "status": {"desiredNumberScheduled": 2, "numberReady": 2},
            })
        });
        json!({"kind": "DaemonSetList", "metadata": {}, "items": items.into_iter().collect::<Vec<_>>()})
    }

    /// A JSON patch of the lock, as the API server takes it: the old value is tested.
    fn on_lock(&mut self, patch: &Value) -> (u16, Value) {
        let path = "/metadata/annotations/weave.works~1kured-node-lock";
        let Some(kured) = &mut self.kured else { return (404, failure("not found")) };
        let operations = patch.as_array().expect("a JSON patch");
        assert!(operations.iter().all(|one| one["path"] == path) && operations.len() == 2, "{patch}");
        assert_eq!(operations[0]["op"], "test", "{patch}");
        if operations[0]["value"] != json!(kured.lock) {
            return (422, failure("the server rejected our request due to an error in our request"));
        }
        kured.lock = match operations[1]["op"].as_str() {
            Some("remove") => None,
            Some("add") => operations[1]["value"].as_str().map(str::to_owned),
            other => panic!("{other:?}"),
        };
        (200, json!({"kind": "DaemonSet"}))
    }

    fn nodes(&self) -> Value {
        let node = |name: &str| {
            let key = "weave.works/kured-reboot-in-progress";
            let annotations = if self.annotated { json!({key: "2026-11-30T00:30:00Z"}) } else { json!({}) };
            json!({
                "metadata": {"name": name, "annotations": annotations}, "spec": {},
                "status": {"nodeInfo": {"bootID": self.boot_id}, "conditions": [{"type": "Ready", "status": "True"}]},
            })
        };
        json!({"kind": "NodeList", "metadata": {}, "items": [node("worker1"), node("worker2")]})
    }
}

fn failure(message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message})
}

/// A status in this phase.
pub fn status(phase: &str, outcome: &str) -> Value {
    json!({
        "phase": phase, "outcome": outcome, "observedGeneration": 1, "term": 1, "reboots": true, "greenSweeps": 0,
        "stepStartedAt": "2026-11-30T00:55:00Z",
    })
}

/// A status in Acting, with a go for boot b1 that is valid until then.
pub fn go(until: &str) -> Value {
    let mut go = status("Acting", "");
    go["intent"] = json!({"bootId": "b1", "at": "2026-11-30T01:00:00Z", "validUntil": until});
    go
}
