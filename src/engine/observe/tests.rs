//! Lists with their pages and namespaces, and a whole observation, against readers and servers in memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use maint_core::facts::{FailureKind, Item, Lease, Node, longhorn};
use maint_core::matrix::{CellVerdict, Readiness};
use serde_json::{Value, json};

use super::*;
use crate::ports::{Page, PageRequest, ReadError};
use crate::testing::{FakeServers, env, healthy, refused};

/// One scripted answer: objects and the next token, or an error; `None` is silence.
type Answer = Option<Result<(Vec<Value>, Option<&'static str>), ReadError>>;

/// Answers from a script by `resource namespace`, and notes what was asked.
#[derive(Default)]
struct Script {
    answers: Mutex<BTreeMap<String, VecDeque<Answer>>>,
    asked: Mutex<Vec<String>>,
}

impl Script {
    fn with(self, key: &str, answers: impl IntoIterator<Item = Answer>) -> Self {
        self.answers.lock().expect("not poisoned").insert(key.to_owned(), answers.into_iter().collect());
        self
    }

    fn asked(&self, part: &str) -> usize {
        self.asked.lock().expect("not poisoned").iter().filter(|asked| asked.contains(part)).count()
    }
}

impl Reader for Script {
    async fn list_page<S: Source>(&self, request: &PageRequest<'_>) -> Result<Page<S>, ReadError> {
        let key = format!("{} {}", request.spec.resource, request.namespace.unwrap_or("-"));
        let token = request.continue_token.unwrap_or("first");
        self.asked.lock().expect("not poisoned").push(format!("{key} {token}"));
        let answer = self.answers.lock().expect("not poisoned").get_mut(&key).map(|queue| match queue.len() {
            // The last answer is given again and again.
            1 => queue.front().cloned().expect("one"),
            _ => queue.pop_front().expect("some"),
        });
        match answer {
            None => Ok(Page { items: Vec::new(), continue_token: None }),
            Some(None) => std::future::pending().await,
            Some(Some(answer)) => answer.map(|(items, token)| Page {
                items: items.iter().map(S::item).collect(),
                continue_token: token.map(str::to_owned),
            }),
        }
    }
}

fn page(items: &[Value], token: Option<&'static str>) -> Answer {
    Some(Ok((items.to_vec(), token)))
}

fn fail(error: ReadError) -> Answer {
    Some(Err(error))
}

fn node(name: &str, server: Option<&str>) -> Value {
    let mut labels = serde_json::Map::new();
    if server.is_some() {
        labels.insert("node-role.kubernetes.io/control-plane".to_owned(), json!("true"));
    }
    json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "nodeInfo": {"bootID": "b"},
            "addresses": [{"type": "InternalIP", "address": server.unwrap_or("10.0.0.99")}],
        },
    })
}

fn setting(name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "longhorn-system"}, "value": "x"})
}

fn observer(script: Script, servers: FakeServers, clock: Clock) -> Observer<Script, FakeServers> {
    Observer::new(script, servers, Arc::new(Settings::default()), clock)
}

fn wanted(sources: &[SourceId]) -> Wanted {
    Wanted { sources: sources.iter().copied().collect(), target: None, every_pair: false }
}

async fn nodes_of(script: Script) -> (Listed<Node>, Script) {
    let (env, _owner) = env();
    let observer = observer(script, FakeServers::default(), env.clock.clone());
    let facts = observer.observe(&wanted(&[SourceId::Nodes])).await;
    (facts.nodes, observer.reader)
}

fn names(listed: &Listed<Node>) -> Vec<&str> {
    listed.good().map(|node| node.metadata.name.as_str()).collect()
}

fn failed<T: std::fmt::Debug>(observation: &Observation<T>) -> (FailureKind, &str) {
    match observation {
        Observation::Failed { kind, detail, .. } => (*kind, detail),
        other => panic!("not failed: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn pages_are_put_together_and_bad_objects_kept() {
    let script = Script::default().with(
        "nodes -",
        [page(&[node("a", None), json!({"metadata": {"name": "bad"}})], Some("t1")), page(&[node("c", None)], None)],
    );
    let (nodes, script) = nodes_of(script).await;
    assert_eq!(names(&nodes), ["a", "c"]);
    assert_eq!(nodes.known().map(Vec::len), Some(3), "the malformed one is there");
    assert_eq!((script.asked("nodes - first"), script.asked("nodes - t1")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_expired_list_is_begun_again_once() {
    let expired = || fail(ReadError::Expired("too old".to_owned()));
    let script = Script::default().with(
        "nodes -",
        [
            page(&[node("a", None)], Some("t1")),
            expired(),
            page(&[node("b", None)], Some("t2")),
            page(&[node("c", None)], None),
        ],
    );
    let (nodes, _) = nodes_of(script).await;
    assert_eq!(names(&nodes), ["b", "c"], "nothing of the first attempt stays");

    let twice = [page(&[], Some("t1")), expired(), page(&[], Some("t2")), expired()];
    let (nodes, script) = nodes_of(Script::default().with("nodes -", twice)).await;
    assert_eq!(failed(&nodes).0, FailureKind::Partial);
    assert_eq!(script.asked("nodes"), 4, "no third attempt");

    let (nodes, script) = nodes_of(Script::default().with("nodes -", [expired()])).await;
    assert_eq!(
        failed(&nodes),
        (FailureKind::Server, "listing nodes: the list changed too much while it was read: too old")
    );
    assert_eq!(script.asked("nodes"), 1, "without a token there is nothing to begin again");
}

#[tokio::test(start_paused = true)]
async fn failures_keep_their_kind() {
    let forbidden = || ReadError::Forbidden("HTTP 403: no".to_owned());
    let rows = [
        ("first page", vec![fail(forbidden())], FailureKind::Forbidden, "listing nodes: HTTP 403: no"),
        (
            "second page",
            vec![page(&[node("a", None)], Some("t1")), fail(forbidden())],
            FailureKind::Partial,
            "listing nodes: forbidden after 1 objects: HTTP 403: no",
        ),
        (
            "gone between pages",
            vec![page(&[], Some("t1")), fail(ReadError::Absent)],
            FailureKind::Partial,
            "listing nodes: absent after 0 objects: the API server does not know this kind",
        ),
        ("no end", vec![page(&[], Some("same"))], FailureKind::Partial, "the list does not end after 2 pages"),
        ("silence", vec![None], FailureKind::Timeout, "listing nodes: no answer within 60 s"),
        ("transport", vec![fail(ReadError::Transport("reset".into()))], FailureKind::Transport, "reset"),
    ];
    for (row, answers, kind, part) in rows {
        let (nodes, _) = nodes_of(Script::default().with("nodes -", answers)).await;
        let (found, detail) = failed(&nodes);
        assert!(found == kind && detail.contains(part), "{row}: {found}: {detail}");
    }
    let (nodes, _) = nodes_of(Script::default().with("nodes -", [fail(ReadError::Absent)])).await;
    assert!(matches!(nodes, Observation::Absent { .. }), "{nodes:?}");
}

#[tokio::test(start_paused = true)]
async fn one_failing_source_stops_no_other_and_what_is_not_wanted_is_not_asked() {
    let script = Script::default()
        .with(
            "leases kube-node-lease",
            [page(&[json!({"metadata": {"name": "a", "namespace": "kube-node-lease"}})], None)],
        )
        .with("leases kube-system", [fail(ReadError::Timeout("late".to_owned()))])
        .with("volumes longhorn-system", [None])
        .with("settings longhorn-system", [page(&[setting("node-drain-policy")], None)]);
    let (env, _owner) = env();
    let begun = env.clock.now();
    let observer = observer(script, FakeServers::default(), env.clock.clone());
    let sources = [SourceId::Leases, SourceId::LonghornVolumes, SourceId::LonghornSettings];
    let facts = observer.observe(&wanted(&sources)).await;
    let (kind, detail) = failed::<Vec<Item<Lease>>>(&facts.leases);
    assert_eq!((kind, detail), (FailureKind::Partial, "listing leases in kube-system: timeout after 1 objects: late"));
    assert_eq!(failed::<Vec<Item<longhorn::Volume>>>(&facts.longhorn_volumes).0, FailureKind::Timeout);
    assert_eq!(facts.longhorn_settings.known().map(Vec::len), Some(1));
    assert_eq!(facts.longhorn_settings.at(), Some(begun), "the instant before the first request");
    assert!(matches!(facts.nodes, Observation::NotAsked) && matches!(facts.matrix, Observation::NotAsked));
    assert_eq!(observer.reader.asked("nodes"), 0);
}

#[tokio::test(start_paused = true)]
async fn every_source_of_the_table_is_read() {
    let (env, _owner) = env();
    let observer = observer(Script::default(), FakeServers::default(), env.clock.clone());
    let sources: Vec<SourceId> = maint_core::facts::SOURCES.iter().map(|spec| spec.id).collect();
    let _ = observer.observe(&wanted(&sources)).await;
    for spec in maint_core::facts::SOURCES {
        assert!(observer.reader.asked(&format!("{} ", spec.resource)) >= 1, "{} is not read", spec.id);
    }
}

#[tokio::test(start_paused = true)]
async fn servers_and_matrix_are_asked_at_their_own_addresses() {
    let servers = [node("s1", Some("10.0.0.1")), node("s2", Some("10.0.0.2")), node("w1", None)];
    let script = Script::default().with("nodes -", [page(&servers, None)]);
    let fakes = FakeServers::default().with("10.0.0.1:6443", healthy).with("10.0.0.2:6443", |_| refused());
    let (env, _owner) = env();
    let observer = observer(script, fakes.clone(), env.clock.clone());
    let facts = observer.observe(&wanted(&[SourceId::Matrix])).await;

    let found = facts.api_servers.known().expect("known");
    assert_eq!(found.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["s1", "s2"]);
    assert_eq!(found[0].readiness, Readiness::Ready);
    assert!(matches!(&found[1].readiness, Readiness::Unreachable { detail } if detail.contains("refused")));

    let matrix = facts.matrix.known().expect("swept");
    assert_eq!((matrix.servers.len(), matrix.nodes.len(), matrix.cells.len()), (2, 3, 6));
    let verdict = |server, node| matrix.cell(server, node).map(|cell| cell.verdict);
    assert_eq!(verdict("s1", "w1"), Some(CellVerdict::Green));
    assert_eq!(verdict("s2", "w1"), Some(CellVerdict::ServerDown));
    assert!(matrix.cell("s1", "s1").is_some_and(|cell| cell.diagonal));
    assert_eq!(fakes.count("10.0.0.2:6443 /api"), 0, "a dead server is not asked for kubelets");
    assert_eq!(observer.reader.asked("nodes"), 1, "a quick sweep leaves the nodes fresh");
}

#[tokio::test(start_paused = true)]
async fn without_nodes_nothing_is_known_of_servers() {
    let script = Script::default().with("nodes -", [fail(ReadError::Forbidden("HTTP 403".to_owned()))]);
    let (env, _owner) = env();
    let observer = observer(script, FakeServers::default(), env.clock.clone());
    let facts = observer.observe(&wanted(&[SourceId::ApiServers, SourceId::Matrix])).await;
    for (kind, detail) in [failed(&facts.api_servers), failed(&facts.matrix)] {
        assert_eq!((kind, detail), (FailureKind::Forbidden, "nodes could not be read: listing nodes: HTTP 403"));
    }
}

fn kured(namespace: &str, name: &str, label: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {label: "kured"}},
            "template": {"spec": {"containers": [{"image": "ghcr.io/kubereboot/kured:1.23.0"}]}},
        },
        "status": {"desiredNumberScheduled": 1, "numberReady": 1},
    })
}

fn kured_pod(namespace: &str, name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": namespace}, "spec": {"containers": []}, "status": {}})
}

#[tokio::test(start_paused = true)]
async fn kureds_pods_are_listed_where_its_daemon_sets_are() {
    let agent = json!({
        "metadata": {"name": "agent", "namespace": "other"},
        "spec": {"template": {"spec": {"containers": [{"image": "agent"}]}}},
        "status": {"desiredNumberScheduled": 1, "numberReady": 1},
    });
    let daemon_sets = [
        kured("kube-system", "kured", "name"),
        kured("pools", "kured-gpu", "app.kubernetes.io/name"),
        kured("pools", "kured-cpu", "app"),
        agent,
    ];
    let script = Script::default()
        .with("daemonsets -", [page(&daemon_sets, None)])
        .with("pods kube-system", [page(&[kured_pod("kube-system", "a")], None)])
        .with("pods pools", [page(&[kured_pod("pools", "b"), json!({"metadata": {"name": "bad"}})], None)]);
    let (env, _owner) = env();
    let observer = observer(script, FakeServers::default(), env.clock.clone());
    let facts = observer.observe(&wanted(&[SourceId::KuredPods])).await;
    let names: Vec<&str> = facts.kured_pods.good().map(|pod| pod.metadata.name.as_str()).collect();
    assert_eq!(names, ["a", "b"], "one that two selectors find is one");
    assert!(facts.kured_pods.known().is_some_and(|all| all.len() > 2), "what cannot be understood is kept");
    assert_eq!(observer.reader.asked("pods other"), 0);
    assert_eq!(observer.reader.asked("pods -"), 0, "never all pods of the cluster");
}

#[tokio::test(start_paused = true)]
async fn without_its_daemon_sets_kureds_pods_are_not_known() {
    let odd = json!({"metadata": {"name": "odd", "namespace": "a"}});
    let rows: [(&str, Answer, Option<&str>); 3] = [
        ("no kured", page(&[], None), None),
        ("refused", fail(ReadError::Forbidden("403".into())), Some("could not be read: listing daemonsets: 403")),
        ("one that cannot be understood", page(&[odd], None), Some("it may be kured's")),
    ];
    for (row, answer, wanted_detail) in rows {
        let (env, _owner) = env();
        let script = Script::default().with("daemonsets -", [answer]);
        let observer = observer(script, FakeServers::default(), env.clock.clone());
        let facts = observer.observe(&wanted(&[SourceId::KuredPods])).await;
        match wanted_detail {
            None => assert_eq!(facts.kured_pods.known().map(Vec::len), Some(0), "{row}"),
            Some(part) => assert!(failed(&facts.kured_pods).1.contains(part), "{row}: {:?}", facts.kured_pods),
        }
        assert_eq!(observer.reader.asked("pods"), 0, "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn network_agents_are_listed_where_their_daemon_sets_are() {
    let agent = |namespace: &str, name: &str, labels: Value| {
        json!({
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"matchLabels": labels}, "template": {"spec": {"containers": []}}},
            "status": {"desiredNumberScheduled": 1, "numberReady": 1},
        })
    };
    let daemon_sets = [
        agent("kube-system", "cilium", json!({"k8s-app": "cilium"})),
        agent("kube-flannel", "kube-flannel-ds", json!({"app": "flannel", "k8s-app": "flannel"})),
        agent("logging", "shipper", json!({"app": "shipper"})),
    ];
    let rows: [(&str, Answer, Result<&[&str], &str>); 3] = [
        ("two plug-ins", page(&daemon_sets, None), Ok(&["a", "b"])),
        ("none", page(&daemon_sets[2..], None), Ok(&[])),
        (
            "refused",
            fail(ReadError::Forbidden("403".into())),
            Err("pods are could not be read: listing daemonsets: 403"),
        ),
    ];
    for (row, answer, wanted_pods) in rows {
        let script = Script::default()
            .with("daemonsets -", [answer])
            .with("pods kube-system", [page(&[kured_pod("kube-system", "a")], None)])
            .with("pods kube-flannel", [page(&[kured_pod("kube-flannel", "b")], None)]);
        let (env, _owner) = env();
        let observer = observer(script, FakeServers::default(), env.clock.clone());
        let facts = observer.observe(&wanted(&[SourceId::NetworkAgentPods])).await;
        match wanted_pods {
            Ok(names) => {
                let mut found: Vec<&str> =
                    facts.network_agent_pods.good().map(|pod| pod.metadata.name.as_str()).collect();
                found.sort_unstable();
                assert_eq!(found, names, "{row}");
            }
            Err(part) => {
                let (kind, detail) = failed(&facts.network_agent_pods);
                assert!(kind == FailureKind::Forbidden && detail.contains(part), "{row}: {detail}");
            }
        }
        assert_eq!(observer.reader.asked("pods logging") + observer.reader.asked("pods -"), 0, "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_databases_are_listed_only_where_there_is_one() {
    let cluster = json!({"metadata": {"name": "pg", "namespace": "db"}, "spec": {"instances": 1}, "status": {}});
    let rows: [(&str, Answer, usize); 4] = [
        ("a cluster", page(&[cluster], None), 1),
        ("one that cannot be understood", page(&[json!({"metadata": {"name": "odd"}})], None), 1),
        ("no cluster", page(&[], None), 0),
        ("not installed", fail(ReadError::Absent), 0),
    ];
    for (row, answer, lists) in rows {
        let (env, _owner) = env();
        let observer =
            observer(Script::default().with("clusters -", [answer]), FakeServers::default(), env.clock.clone());
        let _ = observer.observe(&wanted(&[SourceId::CnpgPods])).await;
        assert_eq!(observer.reader.asked("pods "), lists, "{row}");
    }
}
