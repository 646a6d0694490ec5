//! kured's questions on an API server: fresh reads, one record of two replicas, and what a slow or absent API makes of
//! an answer.

use std::net::IpAddr;

use maint_core::config::Mode;
use maint_engine::execute::KubeCalls;
use maint_engine::observe::KubeReader;
use maint_engine::request::Requests;
use maint_engine::runtime::{Env, TaskOwner};
use maint_engine::serve::{ApiQuestions, BUDGET, Fetch, Questions};
use serde_json::json;

use super::super::shell::{ShellCalls, ShellReader};
use super::*;
use crate::typed::{TypedCalls, TypedReader, Ways};
use crate::world::fixture;

/// kured's address on the node.
const KURED: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::new(10, 42, 0, 1)));
const STRANGER: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::new(10, 42, 7, 7)));
/// Answers are the same in both.
const SHELLS: [Shell; 2] = [Shell::Api, Shell::Typed];
/// Longer than memory serves.
const NEXT: Duration = Duration::from_secs(3);

/// Nobody answers.
struct Nowhere;

impl Fetch for Nowhere {
    async fn get(&self, _: &str) -> Result<(u16, Vec<u8>), String> {
        Err("connection refused".to_owned())
    }
}

/// A process that answers.
struct Process {
    questions: Arc<Questions<ApiQuestions<ShellReader, ShellCalls>, Nowhere>>,
    env: Env,
    _owner: TaskOwner,
}

impl Process {
    fn new(shell: Shell, cluster: &Arc<Cluster>, server: usize, name: &'static str) -> Self {
        let (env, owner) = Env::simulated(cluster.clock().now(), 1);
        let clock = env.clock.clone();
        let (reader, calls) = match shell {
            Shell::Api => {
                let client = cluster.client(server, name);
                let calls = KubeCalls::new(client.clone(), clock.clone());
                (ShellReader::Api(KubeReader::new(client, clock.clone())), ShellCalls::Api(calls))
            }
            Shell::Typed => {
                let ways = Ways::new(Arc::clone(cluster), name, vec![server], clock.clone());
                let reader = TypedReader::new(ways.clone(), Arc::default());
                (ShellReader::Typed(reader), ShellCalls::Typed(TypedCalls::new(ways)))
            }
        };
        let requests = Requests::through(calls, clock.clone(), "maint".to_owned());
        let port = ApiQuestions::new(reader, requests, clock, "maint".to_owned());
        let settings = Settings { mode: Mode::Auto, ..Settings::default() };
        let questions = Questions::new(port, Nowhere, Arc::new(settings), env.clone());
        Self { questions, env, _owner: owner }
    }

    async fn ask(&self, node: &str, from: Option<IpAddr>) -> String {
        let reply = self.questions.answer(node, from).await;
        let body: Value = serde_json::from_str(&reply.body).expect("JSON");
        match (reply.status, body.pointer("/data/result").and_then(Value::as_array).map(Vec::len)) {
            (200, Some(0)) => "go".to_owned(),
            (200, Some(_)) => object::text(&body, "/data/result/0/metric/alertname").to_owned(),
            _ => object::text(&body, "/error").to_owned(),
        }
    }

    /// Until nothing is written any more.
    async fn settle(&self) {
        while self.env.tasks.count() > 0 {
            sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Three nodes and kured; `n1` is annotated by kured, as it does before it asks.
fn cluster() -> Arc<Cluster> {
    let clock = Clock::starting_at(BEGIN.parse().expect("a time"));
    let cluster = Cluster::new(1, clock, 3);
    let now = clock.now();
    let mut inner = cluster.lock();
    fixture::three_servers(&mut inner, 1, now);
    let daemon_set = json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "kured", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": {"name": "kured"}}, "template": {"metadata": {"labels": {"name": "kured"}},
            "spec": {"containers": [{"name": "kured", "image": "kured:1.23.0"}]}}},
        "status": {"desiredNumberScheduled": 3, "numberReady": 3, "currentNumberScheduled": 3, "numberMisscheduled": 0}});
    inner.store.seed(daemon_set, now);
    // The other DaemonSet of the fixture has no status, as no controller runs here.
    inner.store.edit(&ObjectKey::new("apps", "daemonsets", "kube-system", "agent"), |agent| {
        agent["status"] = json!({"desiredNumberScheduled": 3, "numberReady": 3});
    });
    for node in ["n1", "n2"] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("kured-{node}"), "namespace": "kube-system", "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "kured", "uid": "u", "controller": true}]},
            "spec": {"nodeName": node, "containers": [{"name": "kured", "image": "kured:1.23.0"}]},
            "status": {"phase": "Running", "podIP": "10.42.0.1", "conditions": [{"type": "Ready", "status": "True"}]}});
        inner.store.seed(pod, now);
    }
    drop(inner);
    cluster
}

fn record_key(name: &str) -> ObjectKey {
    ObjectKey::new("maint.dev", "maintenances", "", name)
}

/// Gives `n1` a go, as a leader does.
fn grant(cluster: &Cluster) {
    let now = cluster.clock().now();
    let mut inner = cluster.lock();
    let boot =
        object::text(inner.store.object(&ObjectKey::node("n1")).expect("a node"), "/status/nodeInfo/bootID").to_owned();
    let node_uid = object::uid(inner.store.object(&ObjectKey::node("n1")).expect("a node")).to_owned();
    let until = (now + jiff::SignedDuration::from_secs(30)).to_string();
    inner.store.seed(
        json!({"apiVersion": "maint.dev/v1alpha1", "kind": "Maintenance", "metadata": {"name": "n1-run"},
            "spec": {"nodeName": "n1", "scope": "reboot", "action": "kured", "trigger": "unattended"},
            "status": {"phase": "Acting", "node": {"uid": node_uid, "bootIdBefore": boot}, "kured": {"askEpoch": 1},
                "intent": {"bootId": boot, "at": now.to_string(), "validUntil": until}}}),
        now,
    );
    let uid = object::uid(inner.store.object(&record_key("n1-run")).expect("a record")).to_owned();
    inner.store.edit(&ObjectKey::node("n1"), |node| {
        node["spec"]["unschedulable"] = json!(true);
        let owner = json!({"maintenance": uid, "term": 1}).to_string();
        node["metadata"]["annotations"] = json!({"maint.dev/owner": owner});
    });
}

fn records(cluster: &Cluster) -> Vec<Value> {
    let all = cluster.lock().store.snapshot();
    let ours = all.iter().filter(|(key, _)| key.resource.resource == "maintenances");
    ours.map(|(_, record)| Value::clone(record)).collect()
}

/// Requests of a client: (reads, writes).
fn requests(cluster: &Cluster, client: &str) -> (usize, usize) {
    let inner = cluster.lock();
    let of = || inner.trace.steps().iter().filter(|step| step.client == client);
    let reads = of().filter(|step| matches!(step.verb, "get" | "list" | "watch")).count();
    (reads, of().count() - reads)
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(test);
}

/// The test in each shell, in a cluster of its own.
fn both<T: Future<Output = ()>>(test: impl Fn(Shell) -> T) {
    for shell in SHELLS {
        run(test(shell));
    }
}

#[test]
fn two_replicas_that_are_asked_at_once_create_one_record() {
    both(|shell| async move {
        let cluster = cluster();
        let (one, two) = (Process::new(shell, &cluster, 0, "one"), Process::new(shell, &cluster, 1, "two"));
        let (first, second) = tokio::join!(one.ask("n1", KURED), two.ask("n1", KURED));
        assert_eq!(first, "maint: n1 was heard; nothing is planned for it yet");
        assert_eq!(second, first);
        tokio::join!(one.settle(), two.settle());
        let made = records(&cluster);
        assert_eq!(made.len(), 1, "{made:#?}");
        let node = cluster.lock().store.object(&ObjectKey::node("n1")).cloned().expect("a node");
        assert_eq!(made[0]["spec"]["bootID"], node["status"]["nodeInfo"]["bootID"]);
        assert_eq!((&made[0]["spec"]["requestedBy"], &made[0]["spec"]["action"]), (&json!("kured"), &json!("kured")));
        // The next question finds the wish, and says in it that kured asked.
        sleep(NEXT).await;
        assert_eq!(two.ask("n1", KURED).await, "maint: n1 waits for its turn");
        two.settle().await;
        let asked: Value =
            serde_json::from_str(object::text(&records(&cluster)[0], "/metadata/annotations/maint.dev~1asked"))
                .expect("JSON");
        assert_eq!((&asked["source"], &asked["epoch"]), (&json!("kured"), &json!(0)));
        assert_eq!(asked["answer"], "maint: n1 waits for its turn");
    });
}

#[test]
fn a_question_that_nobody_believes_changes_nothing() {
    both(|shell| async move {
        let cluster = cluster();
        let process = Process::new(shell, &cluster, 0, "one");
        for _ in 0..3 {
            process.ask("n1", STRANGER).await;
            process.settle().await;
            // kured does not run on n3, and n9 is not there.
            process.ask("n3", KURED).await;
            process.ask("n9", KURED).await;
            process.settle().await;
            sleep(NEXT).await;
        }
        assert_eq!(records(&cluster), Vec::<Value>::new());
        assert_eq!(requests(&cluster, "one").1, 0, "nothing was written at all");
    });
}

#[test]
fn a_go_is_what_the_cluster_says_at_that_moment() {
    both(|shell| async move {
        let cluster = cluster();
        grant(&cluster);
        let lock = ObjectKey::new("apps", "daemonsets", "kube-system", "kured");
        let set = |text: &str| {
            cluster.lock().store.edit(&lock, |kured| {
                kured["metadata"]["annotations"] = json!({"weave.works/kured-node-lock": text});
            });
        };
        let (one, two) = (Process::new(shell, &cluster, 0, "one"), Process::new(shell, &cluster, 1, "two"));
        assert_eq!(one.ask("n1", KURED).await, "go");
        assert_eq!(two.ask("n1", STRANGER).await, "go", "whoever asks");
        // kured took its lock: from then on it is a no on every replica, and garbage is one too.
        set(r#"{"nodeID":"n1","metadata":{"unschedulable":true},"created":"2026-11-30T02:00:00Z","TTL":0}"#);
        sleep(NEXT).await;
        for process in [&one, &two] {
            assert_eq!(process.ask("n1", KURED).await, "maint: n1 holds kured's lock: it is committed");
        }
        set("garbage");
        sleep(NEXT).await;
        let word = one.ask("n1", KURED).await;
        assert!(word.starts_with("maint: DaemonSet kube-system/kured lock is no JSON"), "{word}");
        set(r#"{"nodeID":"n2","metadata":{},"created":"2026-11-30T02:00:00Z","TTL":0}"#);
        sleep(NEXT).await;
        assert_eq!(one.ask("n1", KURED).await, "go", "kured itself waits for n2");
        // The leader that granted it is lost: nobody renews it.
        sleep(Duration::from_secs(30)).await;
        for process in [&one, &two] {
            let word = process.ask("n1", KURED).await;
            assert!(word.starts_with("maint: n1: its go ended at "), "{word}");
        }
    });
}

#[test]
fn an_api_that_is_away_slow_or_silent_is_a_no_within_the_budget() {
    both(|shell| async move {
        for (row, fault) in [
            ("refused", Err(Cut::Refuse)),
            ("hangs", Err(Cut::Hang)),
            ("slow", Ok(Fault::Delay(Duration::from_secs(2)))),
            ("overloaded", Ok(Fault::Refuse(503))),
        ] {
            let cluster = cluster();
            grant(&cluster);
            let process = Process::new(shell, &cluster, 0, "one");
            assert_eq!(process.ask("n1", KURED).await, "go", "{row}");
            process.settle().await;
            match fault {
                Err(cut) => cluster.cut(0, cut),
                Ok(Fault::Refuse(_)) => {
                    let chances = Chances { unavailable: 1000, ..Chances::default() };
                    cluster.lock().faults = Faults::seeded(1, chances, &["one"]);
                }
                Ok(_) => {
                    let chances = Chances { delay: 1000, ..Chances::default() };
                    cluster.lock().faults = Faults::seeded(1, chances, &["one"]);
                }
            }
            for _ in 0..3 {
                sleep(NEXT).await;
                let begun = cluster.clock().now();
                let word = process.ask("n1", KURED).await;
                let took = cluster.clock().now().duration_since(begun);
                assert!(word.starts_with("maint: "), "{row}: {word}");
                assert!(took <= BUDGET.try_into().expect("short"), "{row}: {took}");
            }
        }
    });
}

#[test]
fn five_hundred_questions_at_once_cost_few_requests() {
    run(async {
        let cluster = cluster();
        grant(&cluster);
        let process = Arc::new(Process::new(Shell::Api, &cluster, 0, "one"));
        process.ask("n1", KURED).await;
        process.settle().await;
        sleep(NEXT).await;
        let before = requests(&cluster, "one");
        let mut set = tokio::task::JoinSet::new();
        for number in 0..500 {
            let process = Arc::clone(&process);
            let node = ["n1", "n2", "n3", "n9"][number % 4];
            set.spawn(async move { process.ask(node, STRANGER).await });
        }
        let words = set.join_all().await;
        process.settle().await;
        let after = requests(&cluster, "one");
        assert_eq!(words.iter().filter(|word| *word == "go").count(), 1);
        let (reads, writes) = (after.0 - before.0, after.1 - before.1);
        // Four lists a look: one look for n1, and at most twenty for names that were not known before.
        assert!(reads <= 4 * 21 + 3 && writes == 0, "{reads} reads, {writes} writes");
        println!("figure kured.reads_for_500_questions {reads} requests");
    });
}
