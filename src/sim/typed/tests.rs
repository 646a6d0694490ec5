//! The typed ports answer as the real client does, under every fault.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use maint_core::api::SourceId;
use maint_core::config::Settings;
use maint_core::facts::{Node, Source as _};
use maint_engine::client::{ClientError, Failover};
use maint_engine::drive::{KubeWatches, Watched, Watches};
use maint_engine::execute::{Calls, Form, KubeCalls, RECORDS, WriteError};
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

#[tokio::test(start_paused = true)]
async fn every_source_says_what_the_real_client_says() {
    let all: Vec<SourceId> = SourceId::ALL.to_vec();
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
        let settings = Arc::new(Settings::default());
        let wanted = Wanted { sources: all.iter().copied().collect(), target: Some("n1".to_owned()) };
        let typed = Observer::new(
            TypedReader::new(ways(&cluster, &clock), Arc::default()),
            TypedServers::new(Arc::clone(&cluster), "maint-1"),
            Arc::clone(&settings),
            clock.clone(),
        );
        let reader = KubeReader::new(client(&cluster), clock.clone());
        let real = Observer::new(reader, KubeServers(Arc::clone(&cluster)), settings, clock.clone());
        let (typed, real) = tokio::join!(typed.observe(&wanted), real.observe(&wanted));
        // What broke has other words in the real client.
        let text = |facts| format!("{facts:#?}").replace("ServiceError: ", "");
        assert_eq!(text(typed), text(real), "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_is_decoded_once_a_change() {
    let (cluster, clock) = cluster();
    let decoded = Arc::new(Decoded::default());
    let reader = TypedReader::new(ways(&cluster, &clock), Arc::clone(&decoded));
    let request =
        PageRequest { spec: &Node::SPEC, namespace: None, field_selector: None, continue_token: None, limit: 500 };
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
    let eviction = |name: &str| json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let evict = |name: &str| format!("/api/v1/namespaces/default/pods/{name}/eviction");
    vec![
        ("a cordon", (Method::PATCH, node("n1"), Form::Merge, cordon(None))),
        ("a stale cordon", (Method::PATCH, node("n1"), Form::Merge, cordon(Some("1")))),
        ("no such node", (Method::PATCH, node("n9"), Form::Merge, cordon(None))),
        ("a record", (Method::POST, RECORDS.to_owned(), Form::Json, record.clone())),
        ("without a name", (Method::POST, RECORDS.to_owned(), Form::Json, unnamed)),
        ("a status of nothing", (Method::PUT, format!("{RECORDS}/a/status"), Form::Json, record)),
        ("an eviction by a budget", (Method::POST, evict("guarded-0"), Form::Json, eviction("guarded-0"))),
        ("an eviction of nothing", (Method::POST, evict("x"), Form::Json, eviction("x"))),
        ("a deletion", (Method::DELETE, "/api/v1/namespaces/default/pods/guarded-0".to_owned(), Form::Json, json!({}))),
        ("no such kind", (Method::POST, "/apis/x.io/v1/things".to_owned(), Form::Json, json!({}))),
    ]
}

/// Adds a pod whose budget lets nobody go.
fn guard_a_pod(inner: &mut Inner) {
    let at = "2026-11-30T02:00:00Z".parse().expect("a time");
    for object in [
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
    assert_eq!(rows, 120);
    let wanted = ["conflict", "invalid", "not-found", "refused", "server", "timeout", "transport", "written"];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), wanted);
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_what_the_real_client_is_told() {
    use futures_util::StreamExt as _;

    let (cluster, clock) = cluster();
    let watches: [Box<dyn Watches>; 2] =
        [Box::new(KubeWatches::new(client(&cluster))), Box::new(TypedWatches::new(ways(&cluster, &clock)))];
    for watched in [Watched::Node("n2".to_owned()), Watched::Records] {
        let mut told = Vec::new();
        for watch in &watches {
            let changes = watch.open(&watched, Duration::from_secs(40)).await.expect("it opens");
            cluster.lock().store.edit(&ObjectKey::node("n2"), |node| {
                let count = node["metadata"]["labels"]["count"].as_i64().unwrap_or(0);
                node["metadata"]["labels"]["count"] = json!(count + 1);
            });
            cluster.lock().store.edit(&ObjectKey::node("n3"), |node| object::annotate(node, "not", "watched"));
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
