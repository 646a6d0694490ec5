//! A whole run by hand through the real client on the living world: the checks must read its trace as they read a
//! hand-made one. It crashes at every write too, and its successor goes on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Request;
use kube::client::Body;
use serde_json::{Value, json};

use super::{History, Rules, check_all};
use crate::clock::Clock;
use crate::faults::Fault;
use crate::store::http::Cluster;
use crate::store::object;
use crate::world::{self, ACTION_ANNOTATION, ACTION_BOOT_ID, ACTION_NAMESPACE, Settings, World, fixture};

/// What a bad driver does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    EvictsWithoutUid,
    SkipsTheIntent,
    RepairsAfterTheReturn,
}

/// A driver of one run of node n1, as short as it can be: every step looks at the cluster first, so that it can be
/// repeated.
struct Driver {
    client: kube::Client,
    name: &'static str,
    term: i64,
    wrong: Wrong,
    clock: Clock,
}

const NODE: &str = "/api/v1/nodes/n1";
const RECORD: &str = "/apis/maint.dev/v1alpha1/maintenances/n1-a";

impl Driver {
    async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header("Content-Type", kind);
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let response = self.client.send(request.body(Body::from(bytes)).expect("a request")).await.expect("an answer");
        let code = response.status().as_u16();
        let bytes = response.into_body().collect_bytes().await.expect("a body");
        (code, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    async fn get(&self, path: &str) -> Value {
        self.ask("GET", path, None).await.1
    }

    async fn status(&self, status: Value) {
        let mut status = status;
        status["term"] = json!(self.term);
        self.ask("PATCH", &format!("{RECORD}/status"), Some(json!({"status": status}))).await;
    }

    /// Takes or renews the lease.
    async fn lead(&self) {
        let path = "/apis/coordination.k8s.io/v1/namespaces/maint/leases/maint";
        let revision = object::revision(&self.get(path).await).to_owned();
        let body = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "maint",
            "resourceVersion": revision}, "spec": {"holderIdentity": self.name, "leaseDurationSeconds": 30,
            "leaseTransitions": self.term, "renewTime": object::micros(self.clock.now())}});
        self.ask("PUT", path, Some(body)).await;
    }

    async fn cordon(&self) {
        self.status(json!({"phase": "Cordoning", "strategy": "drain", "baseline": []})).await;
        let owner = json!({"maintenance": object::uid(&self.get(RECORD).await), "term": self.term}).to_string();
        let patch = json!({"metadata": {"annotations": {"maint.dev/owner": owner}}, "spec": {"unschedulable": true}});
        self.ask("PATCH", &format!("{NODE}?fieldManager=maint"), Some(patch)).await;
    }

    async fn drain(&self) {
        loop {
            self.lead().await;
            let list = self.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1").await;
            let items = list["items"].as_array().cloned().unwrap_or_default();
            let left: Vec<_> = items
                .iter()
                .filter(|pod| object::text(pod, "/metadata/ownerReferences/0/kind") == "ReplicaSet")
                .collect();
            if left.is_empty() {
                return;
            }
            for pod in left.into_iter().filter(|pod| !object::is_deleting(pod)) {
                let options = if self.wrong == Wrong::EvictsWithoutUid {
                    json!({})
                } else {
                    json!({"preconditions": {"uid": object::uid(pod)}})
                };
                let (namespace, name) = (object::namespace(pod), object::name(pod));
                let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction");
                self.ask("POST", &path, Some(json!({"metadata": {"name": name}, "deleteOptions": options}))).await;
            }
            crate::clock::sleep(Duration::from_secs(2)).await;
        }
    }

    async fn act(&self) {
        let boot_id = object::text(&self.get(NODE).await, "/status/nodeInfo/bootID").to_owned();
        let mut status = json!({"phase": "Acting", "findings": []});
        if self.wrong != Wrong::SkipsTheIntent {
            status["intent"] = json!({"bootId": boot_id, "at": object::seconds(self.clock.now())});
            status["outbox"] = json!([{"kind": "rebooting"}]);
        }
        self.status(status).await;
    }

    async fn hand_over(&self, boot_id: &str) {
        let pod = json!({"metadata": {"name": "n1-a", "annotations": {ACTION_ANNOTATION: "true"}},
            "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "i",
                "env": [{"name": ACTION_BOOT_ID, "value": boot_id}]}]}});
        self.ask("POST", &format!("/api/v1/namespaces/{ACTION_NAMESPACE}/pods"), Some(pod)).await;
        self.status(json!({"phase": "Returning"})).await;
    }

    async fn wait_for_return(&self, boot_id: &str) {
        loop {
            self.lead().await;
            let node = self.get(NODE).await;
            if object::is_true(&node, "Ready") && object::text(&node, "/status/nodeInfo/bootID") != boot_id {
                return self.status(json!({"phase": "Uncordoning"})).await;
            }
            crate::clock::sleep(Duration::from_secs(5)).await;
        }
    }

    async fn uncordon(&self) {
        if self.wrong == Wrong::RepairsAfterTheReturn {
            let workload = "/apis/apps/v1/namespaces/kube-system/deployments/coredns";
            let patch = json!({"spec": {"template": {"metadata": {"annotations": {"restartedAt": "now"}}}}});
            self.ask("PATCH", workload, Some(patch)).await;
        }
        let patch = json!({"metadata": {"annotations": {"maint.dev/owner": null}}, "spec": {"unschedulable": null}});
        self.ask("PATCH", &format!("{NODE}?fieldManager=maint"), Some(patch)).await;
        self.status(json!({"phase": "Succeeded"})).await;
    }

    /// Goes on from wherever the record is. A new leader re-stamps the owner annotation with its term.
    async fn run(&self) {
        loop {
            self.lead().await;
            let (record, node) = (self.get(RECORD).await, self.get(NODE).await);
            let intent = object::text(&record, "/status/intent/bootId").to_owned();
            let current = object::text(&node, "/status/nodeInfo/bootID").to_owned();
            let cordoned = node.pointer("/spec/unschedulable") == Some(&json!(true));
            match object::text(&record, "/status/phase") {
                "" => self.cordon().await,
                "Cordoning" if !cordoned => self.cordon().await,
                "Cordoning" => {
                    self.drain().await;
                    self.lead().await;
                    self.act().await;
                }
                // The name of the action pod is fixed: a second creation is refused, an acted one is not repeated.
                "Acting" if intent.is_empty() => self.hand_over(&current).await,
                "Acting" if intent == current => self.hand_over(&intent).await,
                "Acting" | "Returning" => self.wait_for_return(&intent).await,
                "Uncordoning" => self.uncordon().await,
                _ => return,
            }
        }
    }
}

struct Outcome {
    violations: Vec<&'static str>,
    writes: u64,
    hash: u64,
    phase: String,
    cordoned: bool,
}

/// A night with one run; with a fault on the k-th write a second replica takes over when the first is dead and its
/// lease has run out.
async fn night(wrong: Wrong, fault: Option<(u64, Fault)>) -> Outcome {
    let clock = Clock::starting_at("2026-11-30T02:00:00Z".parse().expect("a time"));
    let cluster = Cluster::new(1, clock, 3);
    let (world, initial, stop) = {
        let mut inner = cluster.lock();
        fixture::three_servers(&mut inner, 1, clock.now());
        let record = json!({"apiVersion": "maint.dev/v1alpha1", "kind": "Maintenance", "metadata": {"name": "n1-a"},
            "spec": {"nodeName": "n1", "trigger": "manual"}});
        inner.store.seed(record, clock.now()).expect("a known kind");
        if let Some((k, fault)) = fault {
            inner.faults.on_write("maint-1", k, fault);
        }
        let world = World::new(1, Settings::default(), &inner.store, clock.now());
        (Arc::new(Mutex::new(world)), inner.store.snapshot(), inner.faults.stop_signal("maint-1"))
    };
    let driver = |name: &'static str, term| Driver { client: cluster.client(1, name), name, term, wrong, clock };
    let script = async {
        crate::clock::sleep(Duration::from_secs(30)).await;
        let first = driver("maint-1", 0);
        let died = tokio::select! {
            biased;
            () = stop.notified() => true,
            () = first.run() => false,
        };
        if died {
            crate::clock::sleep(Duration::from_secs(31)).await;
            driver("maint-2", 1).run().await;
        }
    };
    tokio::select! {
        biased;
        () = world::drive(Arc::clone(&cluster), world) => {}
        outcome = tokio::time::timeout(Duration::from_secs(3600), script) => outcome.expect("the run ends"),
    }
    let inner = cluster.lock();
    let found = check_all(&Rules::default(), &History::of(initial, &inner.trace));
    let object = |group: &str, resource: &str, name: &str| {
        inner.store.object(&crate::store::ObjectKey::new(group, resource, "", name)).cloned().expect("it")
    };
    let mut violations: Vec<_> = found.iter().map(|violation| violation.invariant).collect();
    violations.dedup();
    Outcome {
        violations,
        writes: inner.faults.writes("maint-1"),
        hash: inner.trace.hash(),
        phase: object::text(&object("maint.dev", "maintenances", "n1-a"), "/status/phase").to_owned(),
        cordoned: object("", "nodes", "n1").pointer("/spec/unschedulable").is_some(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_through_the_client_is_judged_by_its_trace() {
    for (wrong, violations) in [
        (Wrong::Nothing, vec![]),
        (Wrong::EvictsWithoutUid, vec!["S7"]),
        (Wrong::SkipsTheIntent, vec!["S16"]),
        (Wrong::RepairsAfterTheReturn, vec!["S13"]),
    ] {
        let outcome = night(wrong, None).await;
        assert_eq!(outcome.violations, violations, "{wrong:?}");
        assert_eq!((outcome.phase.as_str(), outcome.cordoned), ("Succeeded", false), "{wrong:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_every_write_is_survived_and_repeatable() {
    let whole = night(Wrong::Nothing, None).await;
    assert_eq!(whole.hash, night(Wrong::Nothing, None).await.hash);
    assert!(whole.writes > 10, "{}", whole.writes);
    for k in 1..=whole.writes {
        for fault in [Fault::StopBefore, Fault::StopUnanswered, Fault::StopAnswered] {
            let outcome = night(Wrong::Nothing, Some((k, fault))).await;
            assert_eq!((outcome.phase.as_str(), outcome.cordoned), ("Succeeded", false), "{fault:?} at write {k}");
            assert_eq!(outcome.violations, Vec::<&str>::new(), "{fault:?} at write {k}");
        }
    }
    println!("figure sim.crash_points {} count", whole.writes * 3);
}
