//! The shell with the real client: API servers that lag, are cut, refuse; faults; probes; watches.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::client::Body;
use serde_json::{Value, json};

use super::http::{Cluster, Cut, Inner};
use super::proxy::Cell;
use super::{Context, ObjectKey, object};
use crate::clock::Clock;
use crate::faults::{Chances, Fault, Faults};
use crate::world::fixture;

fn cluster() -> Arc<Cluster> {
    let clock = Clock::starting_at("2026-11-30T02:00:00Z".parse().expect("a time"));
    let cluster = Cluster::new(1, clock, 3);
    fixture::three_servers(&mut cluster.lock(), 1, clock.now());
    cluster
}

async fn send(client: &kube::Client, method: &str, path: &str, upgrade: bool) -> (u16, bool, String) {
    let mut request = Request::builder().method(method).uri(path);
    if upgrade {
        request = request.header("Connection", "Upgrade").header("Upgrade", "maint-probe");
    }
    let response = client.send(request.body(Body::empty()).expect("a request")).await.expect("an answer");
    let (parts, body) = response.into_parts();
    let text = body.collect_bytes().await.expect("a body");
    let audited = parts.headers.contains_key("audit-id");
    (parts.status.as_u16(), audited, String::from_utf8_lossy(&text).into_owned())
}

fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    }
}

#[tokio::test(start_paused = true)]
async fn typed_clients_work() {
    let cluster = cluster();
    let nodes: Api<Node> = Api::all(cluster.client(0, "test"));
    let list = nodes.list(&ListParams::default().labels("node-role.kubernetes.io/etcd")).await.expect("a list");
    assert_eq!(list.items.len(), 3);
    nodes.cordon("n1").await.expect("cordoned");
    let node = nodes.get("n1").await.expect("it");
    assert_eq!(node.spec.and_then(|spec| spec.unschedulable), Some(true));
    assert_eq!(code(&nodes.get("n9").await.expect_err("not there")), 404);
}

#[tokio::test(start_paused = true)]
async fn a_lagging_server_shows_the_past_to_caches_only() {
    let cluster = cluster();
    let revision = cluster.lock().store.revision();
    cluster.lock().servers[1].cached_at = Some(revision);
    let nodes = |server| -> Api<Node> { Api::all(cluster.client(server, "test")) };
    nodes(0).cordon("n1").await.expect("cordoned");
    let cordoned = async |server: usize, params: ListParams| {
        let list = nodes(server).list(&params).await.expect("a list");
        list.items[0].spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
    };
    assert!(cordoned(1, ListParams::default()).await, "a read of the most recent state is never stale");
    assert!(!cordoned(1, ListParams::default().match_any()).await, "resourceVersion=0 is answered from the cache");
    assert!(cordoned(0, ListParams::default().match_any()).await, "the other server's cache is fresh");
    cluster.lock().servers[1].read_at = Some(revision);
    assert!(!cordoned(1, ListParams::default()).await, "time travel, switched on");
}

#[tokio::test(start_paused = true)]
async fn cut_servers_refuse_or_hang_and_end_their_watches() {
    let cluster = cluster();
    let nodes: Api<Node> = Api::all(cluster.client(0, "test"));
    cluster.cut(0, Cut::Refuse);
    assert_eq!(code(&nodes.list(&ListParams::default()).await.expect_err("refused")), 0);
    cluster.cut(0, Cut::Hang);
    let params = ListParams::default();
    let hung = tokio::time::timeout(Duration::from_secs(3600), nodes.list(&params)).await;
    assert!(hung.is_err());
    cluster.cut(0, Cut::No);
    nodes.list(&ListParams::default()).await.expect("back");
    let client = cluster.client(0, "test");
    let watch = Request::get("/api/v1/nodes?watch=1&timeoutSeconds=600").body(Body::empty()).expect("a request");
    let body = client.send(watch).await.expect("an answer").into_body();
    let start = tokio::time::Instant::now();
    let (ended, ()) = tokio::join!(biased; body.collect_bytes(), async {
        crate::clock::sleep(Duration::from_secs(5)).await;
        cluster.cut(0, Cut::Refuse);
    });
    assert!(ended.is_err() && start.elapsed() == Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn rights_are_refused_in_the_real_words() {
    let cluster = cluster();
    cluster.lock().allow = Some(Arc::new(|_, request| request.verb() == "get"));
    let client = cluster.client(0, "system:serviceaccount:maint:maint");
    for (method, path, wanted) in [
        ("GET", "/api/v1/nodes/n1", None),
        (
            "GET",
            "/api/v1/nodes",
            Some(
                "nodes is forbidden: User \"system:serviceaccount:maint:maint\" cannot list resource \"nodes\" in API group \"\" at the cluster scope",
            ),
        ),
        (
            "GET",
            "/apis/longhorn.io/v1beta2/namespaces/longhorn-system/volumes",
            Some(
                "volumes.longhorn.io is forbidden: User \"system:serviceaccount:maint:maint\" cannot list resource \"volumes\" in API group \"longhorn.io\" in the namespace \"longhorn-system\"",
            ),
        ),
    ] {
        let (code, _, text) = send(&client, method, path, false).await;
        let status: Value = serde_json::from_str(&text).expect("JSON");
        match wanted {
            None => assert_eq!(code, 200, "{path}"),
            Some(wanted) => assert_eq!((code, object::text(&status, "/message")), (403, wanted), "{path}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn probes_see_the_matrix() {
    let cluster = cluster();
    cluster.lock().cells.insert((0, "n2".to_owned()), Cell::CutLiveKept);
    let row = cluster.client(0, "test");
    for (row_name, node, path, upgrade, wanted) in [
        ("whole, fresh", "n1", "maint-probe", true, (404, false)),
        ("whole, plain", "n1", "healthz", false, (200, true)),
        ("cut, fresh", "n2", "maint-probe", true, (500, true)),
        ("cut, the lie", "n2", "healthz", false, (200, true)),
        ("no such node", "n9", "maint-probe", true, (404, true)),
    ] {
        let (code, audited, _) = send(&row, "GET", &format!("/api/v1/nodes/{node}/proxy/{path}"), upgrade).await;
        assert_eq!((code, audited), wanted, "{row_name}");
    }
    let (code, _, _) = send(&cluster.client(1, "test"), "GET", "/api/v1/nodes/n2/proxy/maint-probe", true).await;
    assert_eq!(code, 404, "another server's path is whole");
    cluster.lock().kubelets_down.insert("n1".to_owned());
    assert_eq!(send(&row, "GET", "/api/v1/nodes/n1/proxy/healthz", false).await.0, 503, "a dead kubelet looks cut");
    assert_eq!(send(&row, "GET", "/readyz", false).await.2, "ok");
    cluster.lock().servers[0].ready = false;
    assert_eq!(send(&row, "GET", "/readyz", false).await.0, 500);
    assert!(send(&row, "GET", "/version", false).await.2.contains("v1.34.4"));
}

async fn annotate(cluster: &Arc<Cluster>, client: &str, value: &str) -> Result<Node, kube::Error> {
    let nodes: Api<Node> = Api::all(cluster.client(0, client));
    let patch = json!({"metadata": {"annotations": {"maint.dev/x": value}}});
    nodes.patch("n1", &PatchParams::default(), &Patch::Merge(patch)).await
}

fn annotated(cluster: &Arc<Cluster>) -> Option<String> {
    let inner = cluster.lock();
    inner
        .store
        .object(&ObjectKey::node("n1"))
        .and_then(|node| object::annotation(node, "maint.dev/x").map(str::to_owned))
}

#[tokio::test(start_paused = true)]
async fn scripted_faults_apply_or_do_not() {
    for (row, fault, stops, applied, wanted) in [
        ("stopped before", Fault::StopBefore, true, false, None),
        ("stopped unanswered", Fault::StopUnanswered, true, true, None),
        ("refused", Fault::Refuse(503), false, false, Some(503)),
        ("request lost", Fault::LoseRequest, false, false, Some(0)),
        ("answer lost", Fault::LoseAnswer, false, true, Some(0)),
        ("hung before", Fault::HangBefore, false, false, None),
        ("hung after", Fault::HangAfter, false, true, None),
        ("late", Fault::Delay(Duration::from_secs(4)), false, true, Some(200)),
    ] {
        let cluster = cluster();
        cluster.lock().faults.on_write("maint-1", 2, fault);
        let stop = cluster.lock().faults.stop_signal("maint-1");
        annotate(&cluster, "maint-1", "first").await.expect("the first write");
        annotate(&cluster, "other", "first").await.expect("another client's write");
        let found = tokio::time::timeout(Duration::from_secs(60), annotate(&cluster, "maint-1", "second")).await.ok();
        let found = found.map(|result| result.map_or_else(|error| code(&error), |_| 200));
        assert_eq!(found, wanted, "{row}");
        let value = if applied { "second" } else { "first" };
        assert_eq!(annotated(&cluster).as_deref(), Some(value), "{row}");
        let stopped = tokio::time::timeout(Duration::from_secs(1), stop.notified()).await.is_ok();
        assert_eq!(stopped, stops, "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_after_its_answer_dies_at_its_next_request() {
    let cluster = cluster();
    cluster.lock().faults.on_write("maint-1", 1, Fault::StopAnswered);
    let stop = cluster.lock().faults.stop_signal("maint-1");
    annotate(&cluster, "maint-1", "done").await.expect("answered");
    let nodes: Api<Node> = Api::all(cluster.client(0, "maint-1"));
    tokio::select! {
        biased;
        found = nodes.get("n1") => panic!("answered: {found:?}"),
        () = stop.notified() => {}
    }
    nodes.get("n1").await.expect("its successor lives");
}

#[tokio::test(start_paused = true)]
async fn faults_of_a_seed_are_one_night() {
    let night = async |seed: u64| {
        let cluster = cluster();
        let chances = Chances { conflict: 200, unavailable: 100, lose_answer: 100, delay: 200, ..Chances::default() };
        cluster.lock().faults = Faults::seeded(seed, chances, &["maint-1"]);
        for index in 0..50 {
            // Whether it succeeds is up to the seed.
            let _outcome = annotate(&cluster, "maint-1", &index.to_string()).await;
        }
        let hits = cluster.lock().faults.hits().clone();
        (cluster.trace_hash(), hits)
    };
    let first = night(5).await;
    assert_eq!(first, night(5).await);
    assert_ne!(first, night(6).await);
    assert_eq!(first.1.len(), 4, "{:?}", first.1);
}

#[tokio::test(start_paused = true)]
async fn a_stale_uid_spends_the_budget_and_a_pending_pod_answers_late() {
    let cluster = cluster();
    let now = cluster.clock().now();
    let mut inner = cluster.lock();
    let inner = &mut *inner;
    for (name, phase) in [("running", "Running"), ("pending", "Pending")] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default",
            "labels": {"app": "x"}}, "spec": {"nodeName": "n1"},
            "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]}});
        inner.store.seed(pod, now);
    }
    let key = inner.store.seed(
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "x", "namespace": "default",
            "generation": 1}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
            "status": {"observedGeneration": 1, "currentHealthy": 2, "desiredHealthy": 1, "disruptionsAllowed": 1}}),
        now,
    );
    let key = key.expect("seeded");
    let context = Context::new(now, "test");
    let stale = json!({"deleteOptions": {"preconditions": {"uid": "old"}}});
    let allowed = |store: &super::Store| {
        store.object(&key).and_then(|budget| budget.pointer("/status/disruptionsAllowed").cloned())
    };
    let refused = inner.store.evict("default", "running", &stale, &context).expect_err("another uid");
    assert_eq!((refused.refusal.code(), refused.delay), (409, Duration::ZERO));
    assert_eq!(allowed(&inner.store), Some(json!(0)), "the budget was spent before the uid was looked at");
    let refused = inner.store.evict("default", "running", &json!({}), &context).expect_err("no budget left");
    assert_eq!(refused.refusal.code(), 429);
    let text = refused.refusal.body().expect("a status").to_string();
    assert!(text.contains("does not allow evicting pods currently"), "{text}");
    let refused = inner.store.evict("default", "pending", &stale, &context).expect_err("another uid");
    assert_eq!((refused.refusal.code(), refused.delay), (409, Duration::from_millis(9990)));
    inner.store.edit(&key, |budget| budget["metadata"]["generation"] = json!(2));
    let refused = inner.store.evict("default", "running", &json!({}), &context).expect_err("not observed yet");
    assert_eq!((refused.refusal.code(), refused.refusal.retry_after()), (429, Some(10)));
}

#[tokio::test(start_paused = true)]
async fn not_ready_pods_follow_their_policy() {
    for (policy, healthy, desired, wanted) in [
        (None, 1, 1, 201),
        (None, 0, 1, 429),
        (None, 0, 0, 429),
        (Some("IfHealthyBudget"), 1, 1, 201),
        (Some("AlwaysAllow"), 0, 1, 201),
        (Some("Unheard"), 1, 1, 429),
    ] {
        let cluster = cluster();
        let now = cluster.clock().now();
        let mut inner = cluster.lock();
        inner.store.seed(
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default", "labels": {"app": "x"}},
                "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}),
            now,
        );
        inner.store.seed(
            json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "x", "namespace": "default"},
                "spec": {"unhealthyPodEvictionPolicy": policy, "selector": {}},
                "status": {"observedGeneration": 1, "currentHealthy": healthy, "desiredHealthy": desired, "disruptionsAllowed": 0}}),
            now,
        );
        let found = inner.store.evict("default", "p", &json!({}), &Context::new(now, "test"));
        let code = found.map_or_else(|refused| refused.refusal.code(), |()| 201);
        assert_eq!(code, wanted, "{policy:?} {healthy} of {desired}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_causes_of_a_refused_eviction_are_told_apart() {
    type Change = fn(&mut Inner);
    fn budget(inner: &mut Inner, change: fn(&mut Value)) {
        inner.store.edit(&ObjectKey::new("policy", "poddisruptionbudgets", "default", "x"), change);
    }
    let rows: [(&str, Change, Value, (u16, Option<u64>, &str)); 10] = [
        ("as it is", |_| {}, json!({}), (201, None, "")),
        (
            "spent",
            |inner| budget(inner, |budget| budget["status"]["disruptionsAllowed"] = json!(0)),
            json!({}),
            (429, None, "does not allow evicting pods currently\""),
        ),
        (
            "sync failed",
            |inner| {
                budget(inner, |budget| {
                    budget["status"]["disruptionsAllowed"] = json!(0);
                    budget["status"]["conditions"] = json!([{"type": "DisruptionAllowed", "status": "False",
                        "reason": "SyncFailed", "message": "foos.example.com does not implement the scale subresource"}]);
                });
            },
            json!({}),
            (429, None, "because it failed sync: foos.example.com does not implement the scale subresource"),
        ),
        (
            "too many disrupted",
            |inner| {
                budget(inner, |budget| {
                    let names = (0..2001).map(|index| (format!("p{index}"), json!("2026-11-30T02:00:00Z")));
                    budget["status"]["disruptedPods"] = Value::Object(names.collect());
                });
            },
            json!({}),
            (403, None, "DisruptedPods map too big"),
        ),
        (
            "the namespace ends, and the pod is gone",
            |inner| {
                inner.store.remove(&ObjectKey::pod("default", "p"));
                inner.store.edit(&ObjectKey::new("", "namespaces", "", "default"), |namespace| {
                    object::set_meta(namespace, "deletionTimestamp", json!("2026-11-30T02:00:00Z"));
                });
            },
            json!({}),
            (403, None, "\"NamespaceTerminating\""),
        ),
        (
            "a webhook",
            |inner| inner.store.webhooks.set(webhook(None)),
            json!({}),
            (400, None, "admission webhook \\\"drain.example.com\\\" denied the request: moving"),
        ),
        ("a webhook that gave in", |inner| inner.store.webhooks.set(webhook(Some(0))), json!({}), (201, None, "")),
        (
            "another uid of an unready pod",
            |inner| {
                inner.store.edit(&ObjectKey::pod("default", "p"), |pod| pod["status"]["conditions"] = json!([]));
            },
            json!({"deleteOptions": {"preconditions": {"uid": "old"}}}),
            (429, Some(10), "still being processed by the server"),
        ),
        (
            "another uid and revision of an unready pod",
            |inner| {
                inner.store.edit(&ObjectKey::pod("default", "p"), |pod| pod["status"]["conditions"] = json!([]));
            },
            json!({"deleteOptions": {"preconditions": {"resourceVersion": "1"}}}),
            (409, None, "Precondition failed"),
        ),
        ("another name", |_| {}, json!({"metadata": {"name": "q"}}), (400, None, "does not match")),
    ];
    for (row, change, eviction, (code, retry_after, said)) in rows {
        let cluster = cluster();
        let now = cluster.clock().now();
        let mut inner = cluster.lock();
        for object in [
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default", "labels": {"app": "x"}},
                "spec": {"nodeName": "n1"}, "status": {"phase": "Running",
                    "conditions": [{"type": "Ready", "status": "True"}]}}),
            json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "x", "namespace": "default"},
                "spec": {"minAvailable": 1, "selector": {}},
                "status": {"observedGeneration": 1, "currentHealthy": 2, "desiredHealthy": 1, "disruptionsAllowed": 1}}),
        ] {
            inner.store.seed(object, now);
        }
        change(&mut inner);
        let found = inner.store.evict("default", "p", &eviction, &Context::new(now, "test"));
        let refusal = found.err().map(|refused| refused.refusal);
        let found = refusal.as_ref().map_or((201, None), |refusal| (refusal.code(), refusal.retry_after()));
        assert_eq!(found, (code, retry_after), "{row}");
        let text = refusal.and_then(|refusal| refusal.body()).unwrap_or_default().to_string();
        assert!(text.contains(said), "{row}: {text}");
    }
}

fn webhook(left: Option<u32>) -> super::Webhook {
    super::Webhook {
        name: "drain.example.com".to_owned(),
        namespace: "default".to_owned(),
        label: ("app".to_owned(), "x".to_owned()),
        message: "moving".to_owned(),
        code: 0,
        left,
    }
}

#[tokio::test(start_paused = true)]
async fn forgotten_history_is_410_for_watches_and_pages() {
    let cluster = cluster();
    let client = cluster.client(0, "test");
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    for index in 0..4 {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{index}")}});
        maps.create(&kube::api::PostParams::default(), &serde_json::from_value(body).expect("one"))
            .await
            .expect("created");
    }
    let page = maps.list(&ListParams::default().limit(2)).await.expect("a page");
    maps.delete("c0", &kube::api::DeleteParams::default()).await.expect("deleted");
    cluster.lock().store.compact();
    let token = page.metadata.continue_.expect("a token");
    let error = maps.list(&ListParams::default().limit(2).continue_token(&token)).await.expect_err("forgotten");
    assert_eq!(code(&error), 410);
    let path = "/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=1001";
    let (status, _, text) = send(&client, "GET", path, false).await;
    assert_eq!(status, 200);
    assert!(text.contains("\"ERROR\"") && text.contains("\"code\":410"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_every_minute() {
    let cluster = cluster();
    let client = cluster.client(0, "test");
    let path = "/api/v1/nodes?watch=1&allowWatchBookmarks=true&timeoutSeconds=150&resourceVersion=";
    let revision = cluster.lock().store.revision();
    let (_, _, text) = send(&client, "GET", &format!("{path}{revision}"), false).await;
    assert_eq!(text.matches("BOOKMARK").count(), 2);
    assert!(text.contains(&format!("\"resourceVersion\":\"{revision}\"")));
}

#[tokio::test]
async fn the_same_answers_over_a_socket() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let cluster = cluster();
    let (listener, address) = super::serve::listen().await.expect("a port");
    let client = async {
        let mut stream = tokio::net::TcpStream::connect(address).await.expect("a connection");
        let request = "GET /api/v1/nodes HTTP/1.1\r\nHost: x\r\nUser-Agent: kubectl/v1.34\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).await.expect("an answer");
        text
    };
    let text = tokio::select! {
        biased;
        ended = super::serve::serve(listener, cluster.service(0, "socket")) => panic!("{ended:?}"),
        text = client => text,
    };
    assert!(text.starts_with("HTTP/1.1 200 OK") && text.contains("\"kind\":\"NodeList\""), "{text}");
    assert_eq!(cluster.lock().trace.steps().last().map(|step| step.client.clone()).as_deref(), Some("kubectl"));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a measurement of real time")]
fn writes_per_second() {
    const WRITES: u32 = 20_000;
    let now = "2026-11-30T02:00:00Z".parse().expect("a time");
    let mut store = super::Store::new(1, now);
    let kind = store.kinds().find("", "v1", "configmaps").cloned().expect("built in");
    let context = Context::new(now, "test");
    let start = std::time::Instant::now();
    let body = json!({"metadata": {"name": "a"}, "data": {}});
    store.create(&kind, "default", body, &context).expect("created");
    for index in 0..WRITES {
        let patch = json!({"data": {"key": index.to_string()}});
        let form = super::patch::Form::Merge;
        store.patch(&kind, "default", "a", form, &patch, super::Part::Main, &context).expect("patched");
    }
    println!("figure store.patches_per_second {:.0} 1/s", f64::from(WRITES) / start.elapsed().as_secs_f64());
}

#[tokio::test(start_paused = true)]
async fn a_fresh_definition_answers_429_until_its_storage_is_there() {
    let cluster = cluster();
    let records = super::Resource::new("maint.dev", "maintenances");
    cluster.lock().initializing.insert((0, records.clone()));
    let path = "/apis/maint.dev/v1alpha1/maintenances";
    let (code, _, text) = send(&cluster.client(0, "test"), "GET", path, false).await;
    assert!(
        code == 429 && text.contains("storage is (re)initializing") && text.contains("\"retryAfterSeconds\":1"),
        "{text}"
    );
    assert_eq!(send(&cluster.client(1, "test"), "GET", path, false).await.0, 200, "each server for itself");
    cluster.lock().initializing.clear();
    assert_eq!(send(&cluster.client(0, "test"), "GET", path, false).await.0, 200);
}

/// kube's own watcher goes on after a cut and after a forgotten revision.
#[tokio::test(start_paused = true)]
async fn the_real_watcher_recovers() {
    use std::pin::pin;
    let cluster = cluster();
    let nodes: Api<Node> = Api::all(cluster.client(0, "watcher"));
    let mut stream = pin!(kube::runtime::watcher(nodes, kube::runtime::watcher::Config::default().timeout(30)));
    let seen = std::cell::RefCell::new(Vec::new());
    let watch = async {
        while let Some(event) = next(&mut stream).await {
            match event {
                Ok(kube::runtime::watcher::Event::Apply(node) | kube::runtime::watcher::Event::InitApply(node)) => {
                    let value = node.metadata.annotations.and_then(|notes| notes.get("maint.dev/x").cloned());
                    seen.borrow_mut().extend(value);
                }
                Ok(_) => {}
                Err(_) => crate::clock::sleep(Duration::from_secs(1)).await,
            }
        }
    };
    let script = async {
        let pause = || crate::clock::sleep(Duration::from_secs(100));
        pause().await;
        annotate(&cluster, "other", "watched").await.expect("written");
        pause().await;
        cluster.cut(0, Cut::Refuse);
        pause().await;
        cluster.lock().store.edit(&ObjectKey::node("n1"), |node| object::annotate(node, "maint.dev/x", "cut"));
        cluster.lock().store.compact();
        cluster.cut(0, Cut::No);
        pause().await;
        annotate(&cluster, "other", "last").await.expect("written");
        pause().await;
    };
    tokio::select! {
        biased;
        () = watch => panic!("the watcher ended"),
        () = script => {}
    }
    assert_eq!(*seen.borrow(), ["watched", "cut", "last"]);
}

async fn next<S: kube::runtime::WatchStreamExt + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|context| std::pin::Pin::new(&mut *stream).poll_next(context)).await
}
