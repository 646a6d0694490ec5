//! The typed ports answer as the real client does, under every fault.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use maint_core::api::SourceId;
use maint_core::api::record::{Maintenance, MaintenanceSpec};
use maint_core::config::Settings;
use maint_core::facts::{Facts, Node, Source as _};
use maint_engine::client::{ClientError, Failover};
use maint_engine::drive::{KubeRecords, KubeWatches, Records as _, Watched, Watches, Wishes as _};
use maint_engine::execute::{Calls, Form, KubeCalls, RECORDS, REPORTS, WriteError};
use maint_engine::observe::{KubeReader, Observer};
use maint_engine::ports::{Observe as _, PageRequest, Reader as _, Servers, Wanted};
use maint_engine::runtime::Clock;
use serde_json::{Value, json};

use super::*;
use crate::faults::Fault;
use crate::store::proxy::Cell;
use crate::store::{ObjectKey, object};
use crate::trace::Step;
use crate::world::fixture;

/// A cluster with three servers, at the beginning of a night.
fn cluster() -> (Arc<Cluster>, Clock) {
    let start = "2026-11-30T02:00:00Z".parse().expect("a time");
    let clock = crate::clock::Clock::starting_at(start);
    let cluster = Cluster::new(1, clock, 3);
    fixture::three_servers(&mut cluster.lock(), 1, clock.now());
    (cluster, Clock::simulated(start))
}

fn ways(cluster: &Arc<Cluster>, clock: &Clock) -> Ways {
    Ways::new(Arc::clone(cluster), "maint-1", vec![0, 1, 2], clock.clone())
}

fn client(cluster: &Arc<Cluster>) -> kube::Client {
    Failover::client((0..3).map(|server| cluster.client(server, "maint-1")).collect())
}

struct KubeServers(Arc<Cluster>);

impl Servers for KubeServers {
    type Client = kube::Client;

    fn client(&self, address: &str, _: Option<&str>) -> Result<kube::Client, ClientError> {
        Ok(self.0.client(self.0.server_at(address).unwrap_or(usize::MAX), "maint-1"))
    }
}

/// Everything that can be observed, through the typed ports and through the real client.
async fn observed(cluster: &Arc<Cluster>, clock: &Clock) -> (Facts, Facts) {
    let settings = Arc::new(Settings::default());
    let wanted =
        Wanted { sources: SourceId::ALL.iter().copied().collect(), target: Some("n1".to_owned()), every_pair: false };
    let typed = Observer::new(
        TypedReader::new(ways(cluster, clock), Arc::default()),
        TypedServers::new(Arc::clone(cluster), "maint-1"),
        Arc::clone(&settings),
        clock.clone(),
    );
    let reader = KubeReader::new(client(cluster), clock.clone());
    let real = Observer::new(reader, KubeServers(Arc::clone(cluster)), settings, clock.clone());
    tokio::join!(typed.observe(&wanted), real.observe(&wanted))
}

/// What broke has other words in the real client.
fn text(facts: &Facts) -> String {
    format!("{facts:#?}").replace("ServiceError: ", "")
}

#[tokio::test(start_paused = true)]
async fn every_source_says_what_the_real_client_says() {
    type Change = fn(&mut Inner);
    let rows: [(&str, Change); 6] = [
        ("healthy", |_| {}),
        ("a server is down", |inner| inner.servers[1].cut = crate::store::http::Cut::Refuse),
        ("a server says nothing", |inner| inner.servers[2].cut = crate::store::http::Cut::Hang),
        ("a server is not ready", |inner| inner.servers[1].ready = false),
        ("a path is cut", |inner| {
            inner.cells.insert((1, "n3".to_owned()), Cell::Cut);
            inner.cells.insert((0, "n2".to_owned()), Cell::CutLiveKept);
        }),
        ("a bad object", |inner| {
            inner.store.edit(&ObjectKey::node("n2"), |node| node["spec"]["unschedulable"] = json!("maybe"));
        }),
    ];
    for (row, change) in rows {
        let (cluster, clock) = cluster();
        change(&mut cluster.lock());
        let (typed, real) = observed(&cluster, &clock).await;
        assert_eq!(text(&typed), text(&real), "{row}");
    }
}

/// kured on two nodes, a pod of ours, and a stranger in each of their namespaces.
fn seed_kured_and_our_pods(inner: &mut Inner) {
    let at = "2026-11-30T02:00:00Z".parse().expect("a time");
    let daemon_set = json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "kured", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": {"name": "kured"}}, "template": {"metadata": {"labels": {"name": "kured"}},
            "spec": {"containers": [{"name": "kured", "image": "kured:1.23.0"}]}}},
        "status": {"desiredNumberScheduled": 2, "numberReady": 2, "currentNumberScheduled": 2, "numberMisscheduled": 0}});
    inner.store.seed(daemon_set, at).expect("a known kind");
    // The other DaemonSet of the fixture has no status, as no controller runs here.
    inner.store.edit(&ObjectKey::new("apps", "daemonsets", "kube-system", "agent"), |agent| {
        agent["status"] = json!({"desiredNumberScheduled": 3, "numberReady": 3});
    });
    let (label, value) = maint_core::api::names::LABEL_OWN_PODS;
    for (namespace, name, node, label, value) in [
        ("kube-system", "kured-a", "n1", "name", "kured"),
        ("kube-system", "kured-b", "n2", "name", "kured"),
        ("kube-system", "stranger", "n2", "name", "other"),
        ("maint", "maint-a", "n3", label, value),
        ("maint", "stranger", "n3", "name", "other"),
    ] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": {label: value}},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "kured:1.23.0"}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        inner.store.seed(pod, at).expect("a known kind");
    }
}

#[tokio::test(start_paused = true)]
async fn pods_of_kured_and_our_own_are_found_by_their_labels() {
    let (cluster, clock) = cluster();
    seed_kured_and_our_pods(&mut cluster.lock());
    let (typed, real) = observed(&cluster, &clock).await;
    assert_eq!(text(&typed), text(&real));
    let kured: Vec<&str> = typed.kured_pods.good().map(|pod| pod.metadata.name.as_str()).collect();
    let own: Vec<&str> = typed.own_pods.good().map(|pod| pod.metadata.name.as_str()).collect();
    assert_eq!((kured, own), (vec!["kured-a", "kured-b"], vec!["maint-a"]), "{typed:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_read_says_what_the_real_client_is_told() {
    use crate::store::http::Cut;

    let (cluster, clock) = cluster();
    let calls = KubeCalls::new(client(&cluster), clock.clone());
    for (name, kind) in [("a", "Maintenance"), ("b", "Maintenance"), ("c", "MaintenanceReport")] {
        let path = if kind == "Maintenance" { RECORDS } else { REPORTS };
        let object = json!({"apiVersion": "maint.dev/v1alpha1", "kind": kind, "metadata": {"name": name},
            "spec": {"nodeName": "n1", "kind": "window"}});
        calls.call(Method::POST, path, Form::Json, object).await.expect("it is made");
    }
    let paths = [
        RECORDS.to_owned(),
        format!("{RECORDS}?limit=1"),
        format!("{RECORDS}?fieldSelector=spec.nodeName%3Dn2"),
        format!("{RECORDS}?fieldSelector=spec.nothing%3Dn2"),
        format!("{RECORDS}/a"),
        format!("{RECORDS}/z"),
        format!("{REPORTS}?limit=100"),
        "/api/v1/nodes?limit=2".to_owned(),
        "/apis/x.io/v1/things".to_owned(),
    ];
    let mut kinds = std::collections::BTreeSet::new();
    for (row, cut) in [("up", Cut::No), ("refused", Cut::Refuse), ("silent", Cut::Hang)] {
        (0..3).for_each(|server| cluster.cut(server, cut));
        for path in &paths {
            let found = [calls.read(path).await, TypedCalls::new(ways(&cluster, &clock)).read(path).await];
            let found = found.map(|read| match read {
                Ok(document) => Ok(Value::clone(&document)),
                // What broke has other words in the real client.
                Err(WriteError::NotRead(why)) => Err(WriteError::NotRead(why.replace("ServiceError: ", ""))),
                Err(error) => Err(error),
            });
            assert_eq!(found[1], found[0], "{row}, {path}");
            kinds.insert(found[0].as_ref().map_or_else(WriteError::category, |_| "read"));
        }
    }
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["invalid", "not-found", "read", "transport"]);
}

#[tokio::test(start_paused = true)]
async fn a_wish_is_written_once() {
    let (cluster, clock) = cluster();
    let typed = TypedRecords::new(ways(&cluster, &clock), Arc::default());
    let real = KubeRecords::new(client(&cluster), clock);
    let record = |name: &str| {
        let spec = MaintenanceSpec { node_name: "n1".to_owned(), ..MaintenanceSpec::default() };
        Maintenance::new(name, spec)
    };
    for (row, wishes, wanted) in [
        ("new", real.wish(&record("a")).await, true),
        ("the same, typed", typed.wish(&record("a")).await, false),
        ("new, typed", typed.wish(&record("b")).await, true),
        ("the same", real.wish(&record("b")).await, false),
    ] {
        assert_eq!(wishes, Ok(wanted), "{row}");
    }
    let (typed, real) = (typed.list(true).await, real.list(true).await);
    assert_eq!(typed.map(|all| format!("{all:?}")), real.map(|all| format!("{all:?}")));
}

#[tokio::test(start_paused = true)]
async fn an_object_is_decoded_once_a_change() {
    let (cluster, clock) = cluster();
    let decoded = Arc::new(Decoded::default());
    let reader = TypedReader::new(ways(&cluster, &clock), Arc::clone(&decoded));
    let request = PageRequest {
        spec: &Node::SPEC,
        namespace: None,
        label_selector: None,
        field_selector: None,
        continue_token: None,
        limit: 500,
    };
    type Change = fn(&mut Inner);
    let rows: [(&str, Change, u64, usize); 5] = [
        ("first", |_| {}, 3, 3),
        ("nothing changed", |_| {}, 3, 3),
        (
            "one changed",
            |inner| {
                inner.store.edit(&ObjectKey::node("n2"), |node| object::annotate(node, "a", "b"));
            },
            4,
            3,
        ),
        (
            "one is gone",
            |inner| {
                inner.store.remove(&ObjectKey::node("n1"));
            },
            4,
            2,
        ),
        (
            "one is new",
            |inner| {
                let at = "2026-11-30T02:00:00Z".parse().expect("a time");
                inner.store.seed(fixture::node("n0", "10.0.0.9", false, "boot", at), at);
            },
            5,
            3,
        ),
    ];
    for (row, change, count, length) in rows {
        change(&mut cluster.lock());
        let page = reader.list_page::<Node>(&request).await.expect(row);
        assert_eq!((decoded.count(), page.items.len()), (count, length), "{row}");
        let fresh = TypedReader::new(ways(&cluster, &clock), Arc::default());
        assert_eq!(page.items, fresh.list_page::<Node>(&request).await.expect(row).items, "{row}");
    }
}

/// What a write came to: its error without what the transport calls itself, the trace's last step, and the count.
type Outcome = (Result<Value, WriteError>, Option<String>, u64);

async fn outcome(calls: &impl Calls, cluster: &Arc<Cluster>, write: &Write) -> Outcome {
    let (method, path, form, body) = write;
    let answer = calls.call(method.clone(), path, *form, body.clone()).await;
    let answer = match answer {
        // The typed shell gives no details of a success.
        Ok(found) if object::text(&found, "/kind") == "Status" => Ok(Value::Null),
        Ok(found) => Ok(Value::clone(&found)),
        Err(WriteError::Transport(_)) => Err(WriteError::Transport(String::new())),
        Err(error) => Err(error),
    };
    let inner = cluster.lock();
    let step = |step: &Step| format!("{} {:?} {:?}", step.line(), step.body, step.changes);
    (answer, inner.trace.steps().last().map(step), inner.faults.writes("maint-1"))
}

type Write = (Method, String, Form, Value);

/// Writes of every kind, and how a real API server refuses them.
fn all_writes() -> Vec<(&'static str, Write)> {
    let node = |name: &str| format!("/api/v1/nodes/{name}?fieldManager=maint");
    let cordon = |version: Option<&str>| {
        json!({"metadata": {"resourceVersion": version, "annotations": {"maint.dev/owner": "{}"}},
            "spec": {"unschedulable": true}})
    };
    let record = json!({"apiVersion": "maint.dev/v1alpha1", "kind": "Maintenance", "metadata": {"name": "a"},
        "spec": {"nodeName": "n1"}});
    let mut unnamed = record.clone();
    unnamed["metadata"] = json!({});
    let lock = |name: &str| format!("/apis/apps/v1/namespaces/kube-system/daemonsets/{name}?fieldManager=maint");
    let set = |before: Option<&str>, change: Value| {
        let path = "/metadata/annotations/weave.works~1kured-node-lock";
        let mut change = change;
        change["path"] = json!(path);
        json!([{"op": "test", "path": path, "value": before}, change])
    };
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": "n1.0", "namespace": "default"}, "reason": "NodeDraining", "note": "a sentence"});
    let events = "/apis/events.k8s.io/v1/namespaces/default/events";
    let eviction = |name: &str| json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let evict = |name: &str| format!("/api/v1/namespaces/default/pods/{name}/eviction");
    vec![
        ("a cordon", (Method::PATCH, node("n1"), Form::Merge, cordon(None))),
        ("a stale cordon", (Method::PATCH, node("n1"), Form::Merge, cordon(Some("1")))),
        ("no such node", (Method::PATCH, node("n9"), Form::Merge, cordon(None))),
        ("a record", (Method::POST, RECORDS.to_owned(), Form::Json, record.clone())),
        ("without a name", (Method::POST, RECORDS.to_owned(), Form::Json, unnamed)),
        ("a status of nothing", (Method::PUT, format!("{RECORDS}/a/status"), Form::Json, record)),
        ("a lock", (Method::PATCH, lock("agent"), Form::Patch, set(Some("a"), json!({"op": "add", "value": "b"})))),
        ("a free lock", (Method::PATCH, lock("open"), Form::Patch, set(None, json!({"op": "add", "value": "b"})))),
        ("a lock given back", (Method::PATCH, lock("agent"), Form::Patch, set(Some("a"), json!({"op": "remove"})))),
        ("another's lock", (Method::PATCH, lock("agent"), Form::Patch, set(None, json!({"op": "add", "value": "b"})))),
        ("no such lock", (Method::PATCH, lock("x"), Form::Patch, set(None, json!({"op": "add", "value": "b"})))),
        ("an Event", (Method::POST, format!("{events}?fieldManager=maint"), Form::Json, event)),
        ("an Event that is gone", (Method::PATCH, format!("{events}/x"), Form::Merge, json!({"series": {"count": 2}}))),
        ("an eviction by a budget", (Method::POST, evict("guarded-0"), Form::Json, eviction("guarded-0"))),
        ("an eviction of nothing", (Method::POST, evict("x"), Form::Json, eviction("x"))),
        ("a deletion", (Method::DELETE, "/api/v1/namespaces/default/pods/guarded-0".to_owned(), Form::Json, json!({}))),
        ("no such kind", (Method::POST, "/apis/x.io/v1/things".to_owned(), Form::Json, json!({}))),
    ]
}

/// Adds a pod whose budget lets nobody go, a DaemonSet with an annotation that is a lock, and one that has others only.
fn guard_a_pod(inner: &mut Inner) {
    let at = "2026-11-30T02:00:00Z".parse().expect("a time");
    inner.store.edit(&ObjectKey::new("apps", "daemonsets", "kube-system", "agent"), |agent| {
        object::annotate(agent, "weave.works/kured-node-lock", "a");
    });
    for object in [
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "open", "namespace": "kube-system",
            "annotations": {"a": "b"}}, "spec": {}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "guarded-0", "namespace": "default",
            "labels": {"app": "guarded"}}, "spec": {"nodeName": "n1"},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "guard",
            "namespace": "default"}, "spec": {"selector": {"matchLabels": {"app": "guarded"}}, "minAvailable": 1},
            "status": {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1}}),
    ] {
        inner.store.seed(object, at).expect("known kinds");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_comes_to_the_same_as_with_the_real_client() {
    let faults = [
        None,
        Some(Fault::Refuse(409)),
        Some(Fault::Refuse(429)),
        Some(Fault::Refuse(500)),
        Some(Fault::Refuse(503)),
        Some(Fault::Refuse(504)),
        Some(Fault::LoseRequest),
        Some(Fault::LoseAnswer),
        Some(Fault::HangBefore),
        Some(Fault::HangAfter),
        Some(Fault::Delay(Duration::from_secs(3))),
        Some(Fault::Delay(Duration::from_secs(30))),
    ];
    let (mut rows, mut kinds) = (0, std::collections::BTreeSet::new());
    for (name, write) in all_writes() {
        for fault in faults {
            let mut found = Vec::new();
            for typed in [false, true] {
                let (cluster, clock) = cluster();
                guard_a_pod(&mut cluster.lock());
                if let Some(fault) = fault {
                    cluster.lock().faults.on_write("maint-1", 1, fault);
                }
                found.push(if typed {
                    outcome(&TypedCalls::new(ways(&cluster, &clock)), &cluster, &write).await
                } else {
                    outcome(&KubeCalls::new(client(&cluster), clock), &cluster, &write).await
                });
            }
            assert_eq!(found[1], found[0], "{name}, {fault:?}");
            kinds.insert(found[0].0.as_ref().map_or_else(WriteError::category, |_| "written"));
            rows += 1;
        }
    }
    assert_eq!(rows, 204);
    let wanted = ["conflict", "invalid", "not-found", "refused", "server", "timeout", "transport", "written"];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), wanted);
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_what_the_real_client_is_told() {
    use futures_util::StreamExt as _;

    let (cluster, clock) = cluster();
    let watches: [Box<dyn Watches>; 2] =
        [Box::new(KubeWatches::new(client(&cluster))), Box::new(TypedWatches::new(ways(&cluster, &clock)))];
    let agent = ObjectKey::new("apps", "daemonsets", "kube-system", "agent");
    for watched in [Watched::Node("n2".to_owned()), Watched::Records, Watched::DaemonSets] {
        let mut told = Vec::new();
        for watch in &watches {
            let changes = watch.open(&watched, Duration::from_secs(40)).await.expect("it opens");
            cluster.lock().store.edit(&ObjectKey::node("n2"), |node| {
                let count = node["metadata"]["labels"]["count"].as_i64().unwrap_or(0);
                node["metadata"]["labels"]["count"] = json!(count + 1);
            });
            cluster.lock().store.edit(&ObjectKey::node("n3"), |node| object::annotate(node, "not", "watched"));
            cluster.lock().store.edit(&agent, |agent| object::annotate(agent, "lock", "n1"));
            let begun = clock.now();
            let all: Vec<_> = changes.map(|change| change.expect("whole")).collect().await;
            assert_eq!(clock.now().duration_since(begun).as_secs(), 40, "the server ends it");
            told.push(all);
        }
        assert_eq!(told[1], told[0], "{watched:?}");
        assert_eq!(told[0].is_empty(), watched == Watched::Records, "{watched:?}");
    }
    let cut = watches[1].open(&Watched::Records, Duration::from_secs(40)).await.expect("it opens");
    cluster.drop_watches(0);
    let all: Vec<_> = cut.collect().await;
    assert!(matches!(all.as_slice(), [Err(_)]), "{all:?}");
}
