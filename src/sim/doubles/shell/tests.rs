//! kured on the simulated cluster: who it is there, how it dies and comes back, and that a seed is one night.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use super::kured::{Kureds, Question};
use crate::clock::{Clock, sleep};
use crate::doubles::kured::answer::Answer;
use crate::doubles::kured::calls;
use crate::doubles::kured::objects::{Form, daemonset};
use crate::doubles::kured::settings::Settings;
use crate::faults::Fault;
use crate::store::http::{Cluster, Cut};
use crate::store::{ObjectKey, object};
use crate::world::{self, SharedWorld, World, drive, fixture};

/// Answers by node; everybody else hears no.
#[derive(Clone, Default)]
struct Gate(Arc<Mutex<BTreeMap<String, Answer>>>);

impl Gate {
    fn set(&self, node: &str, answer: Answer) {
        self.0.lock().expect("no poison").insert(node.to_owned(), answer);
    }
}

impl Question for Gate {
    async fn ask(&self, node: &str) -> Answer {
        let answers = self.0.lock().expect("no poison");
        answers.get(node).cloned().unwrap_or_else(|| Answer::no("maint: not now"))
    }
}

const NODES: [&str; 3] = ["n1", "n2", "n3"];

struct Night {
    cluster: Arc<Cluster>,
    world: SharedWorld,
    kureds: Arc<Kureds<Gate>>,
    gate: Gate,
}

impl Night {
    fn new(seed: u64) -> Self {
        let clock = Clock::starting_at("2026-11-30T02:00:00Z".parse().expect("a time"));
        let cluster = Cluster::new(seed, clock, 3);
        let world = {
            let mut inner = cluster.lock();
            fixture::three_servers(&mut inner, seed, clock.now());
            inner.store.seed(daemonset(Form::Manifest, "kube-system", "1.23.0", &[]), clock.now());
            World::new(seed, world::Settings::default(), &inner.store, clock.now())
        };
        let world = Arc::new(Mutex::new(world));
        let settings = Settings {
            period: Duration::from_secs(20),
            drain_timeout: Duration::from_secs(60),
            annotate_nodes: true,
            prometheus_url: Some("http://maint.maint.svc/kured/{node}".to_owned()),
            ..Settings::default()
        };
        let gate = Gate::default();
        let kureds = Kureds::new(Arc::clone(&cluster), Arc::clone(&world), &NODES, settings, gate.clone(), seed);
        for node in NODES {
            kureds.require(node, true);
        }
        Self { cluster, world, kureds, gate }
    }

    /// Lets everything live while a script runs.
    async fn play(&self, script: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = drive(Arc::clone(&self.cluster), Arc::clone(&self.world)) => {}
            () = Arc::clone(&self.kureds).run() => {}
            () = script => {}
        }
    }

    fn lock(&self) -> Option<String> {
        let key = ObjectKey::new("apps", "daemonsets", "kube-system", "kured");
        let inner = self.cluster.lock();
        calls::annotation(inner.store.object(&key).expect("kured"), "weave.works/kured-node-lock").map(str::to_owned)
    }

    fn node(&self, name: &str) -> Value {
        Value::clone(self.cluster.lock().store.object(&ObjectKey::node(name)).expect("the node"))
    }

    fn is_cordoned(&self, name: &str) -> bool {
        self.node(name)["spec"]["unschedulable"] == true
    }

    async fn until(&self, what: &str, seconds: u64, wanted: impl Fn() -> bool) {
        for _ in 0..seconds * 10 {
            if wanted() {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
        panic!("{what} did not come within {seconds} s; n2 says {:#?}", self.kureds.log("n2"));
    }

    fn says(&self, node: &str, text: &str) -> bool {
        self.kureds.log(node).iter().any(|line| line.contains(text))
    }

    /// Boot IDs that a node has had.
    fn boots(&self, node: &str) -> usize {
        let inner = self.cluster.lock();
        let mut ids: Vec<String> = inner
            .trace
            .steps()
            .iter()
            .flat_map(|step| &step.changes)
            .filter(|change| change.key == ObjectKey::node(node))
            .filter_map(|change| change.after.as_deref())
            .map(|node| object::text(node, "/status/nodeInfo/bootID").to_owned())
            .collect();
        ids.dedup();
        ids.len()
    }
}

/// Blocked until `n2` hears go once; then the whole course of its reboot.
async fn one_node_goes(night: &Night) {
    night.until("no", 130, || NODES.iter().all(|node| night.says(node, "Reboot blocked"))).await;
    night.gate.set("n2", Answer::go());
    night.until("the lock", 21, || night.lock().is_some()).await;
    night.gate.set("n2", Answer::no("maint: not again"));
    night.until("the cordon", 5, || night.is_cordoned("n2")).await;
    night.until("the end of the node", 70, || night.world.lock().expect("no poison").is_down("n2")).await;
    night.until("the second life", 90, || night.kureds.lives("n2") == 2).await;
    night.until("the release", 91, || night.lock().is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn one_node_hears_go_and_reboots_alone() {
    let night = Night::new(1);
    night
        .play(async {
            one_node_goes(&night).await;
            sleep(Duration::from_secs(120)).await;
        })
        .await;
    assert_eq!(NODES.map(|node| night.boots(node)), [1, 2, 1]);
    assert!(NODES.iter().all(|node| !night.is_cordoned(node)));
    assert_eq!(NODES.map(|node| night.kureds.metric(node)), [Some(true), Some(false), Some(true)]);
    let inner = night.cluster.lock();
    let writes = |client: &str| {
        let steps = inner.trace.steps().iter().filter(|step| step.client == client);
        steps.filter(|step| ["patch", "update", "create"].contains(&step.verb)).count()
    };
    assert_eq!((writes("kured-n1"), writes("kured-n3")), (1, 1), "their annotations");
    assert!(writes("kured-n2") > 5);
    // Who cordoned is told by the field manager.
    let cordon = inner.trace.steps().iter().find(|step| {
        step.client == "kured-n2" && step.body.as_deref().is_some_and(|body| body["spec"]["unschedulable"] == true)
    });
    let after = cordon.and_then(|step| step.changes.first()).and_then(|change| change.after.clone()).expect("a cordon");
    let fields = after["metadata"]["managedFields"].as_array().expect("managed fields");
    let owner = fields.iter().find(|entry| !entry["fieldsV1"]["f:spec"]["f:unschedulable"].is_null());
    assert_eq!(owner.map(|entry| entry["manager"].clone()), Some("kured".into()));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_hangs_freezes_one_process_until_it_is_killed() {
    let night = Night::new(2);
    night.gate.set("n2", Answer::Hang);
    night
        .play(async {
            sleep(Duration::from_secs(600)).await;
            assert!(!night.says("n2", "Reboot blocked") && night.says("n1", "Reboot blocked"));
            night.gate.set("n2", Answer::Refused);
            sleep(Duration::from_secs(600)).await;
            assert!(!night.says("n2", "Reboot blocked"));
            night.kureds.kill("n2");
            sleep(Duration::from_secs(150)).await;
            assert_eq!(night.kureds.lives("n2"), 2);
            assert!(night.says("n2", "connect: connection refused"));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_with_its_lock_written_releases_it_without_a_reboot() {
    let night = Night::new(3);
    // Its first write are the annotations, the second one is the lock.
    night.cluster.lock().faults.on_write("kured-n2", 2, Fault::StopUnanswered);
    night
        .play(async {
            night.until("no", 130, || night.says("n2", "Reboot blocked")).await;
            night.gate.set("n2", Answer::go());
            night.until("the lock", 21, || night.lock().is_some()).await;
            night.gate.set("n2", Answer::no("maint: not again"));
            night.until("the release", 100, || night.lock().is_none()).await;
            assert_eq!(night.kureds.lives("n2"), 2);
            sleep(Duration::from_secs(100)).await;
        })
        .await;
    assert_eq!(NODES.map(|node| night.boots(node)), [1, 1, 1]);
    assert!(!night.is_cordoned("n2"));
}

#[tokio::test(start_paused = true)]
async fn a_process_whose_server_is_away_exits_and_goes_on_at_another() {
    let night = Night::new(4);
    night
        .play(async {
            night.until("no", 130, || night.says("n2", "Reboot blocked")).await;
            night.cluster.cut(1, Cut::Refuse);
            night.until("the exit", 21, || night.says("n2", "level=fatal")).await;
            assert!(night.says("n2", "dial tcp 10.0.0.2:6443: connect: connection refused"));
            sleep(Duration::from_secs(150)).await;
            assert_eq!(night.kureds.lives("n2"), 2);
        })
        .await;
    let last = night.kureds.log("n2").pop().expect("a line");
    assert!(last.contains("Reboot blocked"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn a_reboot_command_that_fails_ends_in_an_uncordon() {
    let night = Night::new(5);
    night.kureds.break_reboot("n2", true);
    night
        .play(async {
            night.until("no", 130, || night.says("n2", "Reboot blocked")).await;
            night.gate.set("n2", Answer::go());
            night.until("the failure", 100, || night.says("n2", "Unable to reboot node")).await;
            night.gate.set("n2", Answer::no("maint: not again"));
            night.until("the release", 100, || night.lock().is_none()).await;
        })
        .await;
    assert!(!night.is_cordoned("n2") && night.boots("n2") == 1);
}

#[tokio::test(start_paused = true)]
async fn one_seed_is_one_night_of_kureds() {
    let hash = async |seed: u64| {
        let night = Night::new(seed);
        night.play(one_node_goes(&night)).await;
        let logs: Vec<String> = NODES.iter().flat_map(|node| night.kureds.log(node)).collect();
        (night.cluster.trace_hash(), logs)
    };
    let (first, second, other) = (hash(7).await, hash(7).await, hash(8).await);
    assert_eq!(first, second);
    assert_ne!(first.0, other.0);
}
