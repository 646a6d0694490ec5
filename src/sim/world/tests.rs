//! Rows of the world: a drain, short and long reboots, an action pod that acts once.

use super::*;
use crate::clock::Clock;
use crate::store::object;
use serde_json::json;

struct Night {
    cluster: Arc<Cluster>,
    world: SharedWorld,
}

impl Night {
    fn new(seed: u64) -> Self {
        let clock = Clock::starting_at("2026-11-30T02:00:00Z".parse().expect("a time"));
        let cluster = Cluster::new(seed, clock, 3);
        let world = {
            let mut inner = cluster.lock();
            fixture::three_servers(&mut inner, seed, clock.now());
            World::new(seed, Settings::default(), &inner.store, clock.now())
        };
        Self { cluster, world: Arc::new(Mutex::new(world)) }
    }

    /// Lets the world live for some seconds.
    async fn pass(&self, seconds: u64) {
        let end = crate::clock::sleep(Duration::from_secs(seconds));
        tokio::select! {
            biased;
            () = drive(Arc::clone(&self.cluster), Arc::clone(&self.world)) => {}
            () = end => {}
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut World, &mut Inner, Timestamp) -> T) -> T {
        let mut world = self.world.lock().expect("no poison");
        act(&mut world, &mut self.cluster.lock(), self.cluster.clock().now())
    }

    fn node(&self, name: &str) -> Value {
        Value::clone(self.cluster.lock().store.object(&ObjectKey::node(name)).expect("the node"))
    }

    fn boot_id(&self, name: &str) -> String {
        object::text(&self.node(name), "/status/nodeInfo/bootID").to_owned()
    }

    fn pods(&self, app: &str) -> Vec<Value> {
        let inner = self.cluster.lock();
        let mine = |pod: &&Arc<Value>| object::name(pod).starts_with(app);
        inner.store.all("", "pods").filter(mine).map(|pod| Value::clone(pod)).collect()
    }

    fn cordon(&self, name: &str) {
        self.with(|_, inner, _| {
            inner.store.edit(&ObjectKey::node(name), |node| node["spec"]["unschedulable"] = json!(true));
        });
    }
}

fn ready(node: &Value) -> String {
    object::condition(node, "Ready").map_or(String::new(), |ready| object::text(ready, "/status").to_owned())
}

fn taints(node: &Value) -> usize {
    node.pointer("/spec/taints").and_then(Value::as_array).map_or(0, Vec::len)
}

#[tokio::test(start_paused = true)]
async fn a_cluster_comes_to_rest() {
    let night = Night::new(1);
    night.pass(30).await;
    for (app, count) in [("coredns", 2), ("web", 3), ("agent", 3)] {
        let pods = night.pods(app);
        assert_eq!(pods.len(), count, "{app}");
        assert!(pods.iter().all(|pod| object::is_true(pod, "Ready")), "{app}");
        let mut nodes: Vec<_> = pods.iter().map(|pod| object::text(pod, "/spec/nodeName")).collect();
        nodes.sort_unstable();
        nodes.dedup();
        assert_eq!(nodes.len(), count, "{app} is spread");
    }
    let inner = night.cluster.lock();
    let slice =
        inner.store.object(&ObjectKey::new("discovery.k8s.io", "endpointslices", "kube-system", "kube-dns-sim"));
    let endpoints = slice.and_then(|slice| slice.pointer("/endpoints")).and_then(Value::as_array).expect("endpoints");
    assert!(endpoints.len() == 2 && endpoints.iter().all(|entry| entry["conditions"]["ready"] == true));
    let budget = inner.store.object(&ObjectKey::new("policy", "poddisruptionbudgets", "default", "web")).expect("it");
    assert_eq!(budget.pointer("/status/disruptionsAllowed"), Some(&json!(1)));
    let set = inner.store.object(&ObjectKey::new("apps", "daemonsets", "kube-system", "agent")).expect("it");
    assert_eq!(set.pointer("/status/numberReady"), Some(&json!(3)));
    drop(inner);
    assert!(object::is_true(&night.node("n1"), "EtcdIsVoter"));
}

#[tokio::test(start_paused = true)]
async fn a_reboot_within_the_grace_period_shows_in_the_boot_id_alone() {
    let night = Night::new(2);
    night.pass(30).await;
    let before = night.boot_id("n1");
    night.with(|world, inner, now| world.reboot(inner, "n1", Duration::from_secs(8), now));
    for _ in 0..20 {
        night.pass(1).await;
        assert_eq!((ready(&night.node("n1")).as_str(), taints(&night.node("n1"))), ("True", 0));
    }
    assert_ne!(night.boot_id("n1"), before);
    assert!(night.pods("agent").iter().all(|pod| object::is_true(pod, "Ready")));
}

#[tokio::test(start_paused = true)]
async fn a_longer_reboot_goes_unknown_and_comes_back() {
    let night = Night::new(3);
    night.pass(30).await;
    night.with(|world, inner, now| world.reboot(inner, "n1", Duration::from_secs(90), now));
    assert!(night.cluster.lock().servers[0].down);
    night.pass(70).await;
    let node = night.node("n1");
    assert_eq!((ready(&node).as_str(), taints(&node)), ("Unknown", 2));
    assert!(!object::is_true(&node, "EtcdIsVoter"));
    assert!(night.pods("agent").iter().filter(|pod| !object::is_true(pod, "Ready")).count() == 1);
    night.pass(21).await;
    let node = night.node("n1");
    assert_eq!((ready(&node).as_str(), taints(&node)), ("True", 2), "the taint outlives Ready by up to 2 s");
    night.pass(20).await;
    assert_eq!(taints(&night.node("n1")), 0);
    assert!(!night.cluster.lock().servers[0].down);
    assert!(object::is_true(&night.node("n1"), "EtcdIsVoter"));
}

#[tokio::test(start_paused = true)]
async fn a_crashed_server_stays_listed_for_a_while() {
    let listed = |night: &Night| {
        let inner = night.cluster.lock();
        let key = ObjectKey::new("discovery.k8s.io", "endpointslices", "default", "kubernetes");
        let slice = inner.store.object(&key).expect("the slice");
        slice.pointer("/endpoints").and_then(Value::as_array).map_or(0, Vec::len)
    };
    for (row, crash, after) in [("shut down", false, 2), ("crashed", true, 3)] {
        let night = Night::new(6);
        night.pass(5).await;
        assert_eq!(listed(&night), 3, "{row}");
        if crash {
            night.with(|world, inner, now| world.power_off(inner, "n3", now));
        } else {
            night.with(|world, inner, now| world.reboot(inner, "n3", Duration::from_secs(600), now));
        }
        night.pass(10).await;
        assert_eq!(listed(&night), after, "{row}, after 10 s");
        night.pass(5).await;
        assert_eq!(listed(&night), 2, "{row}, after 15 s");
        night.with(|world, _, now| world.power_on("n3", now));
        night.pass(4).await;
        let back = if crash { 3 } else { 2 };
        assert_eq!(listed(&night), back, "{row}, back");
    }
}

/// Every object of the world is one that maint can read.
#[tokio::test(start_paused = true)]
async fn maint_reads_what_the_world_writes() {
    use maint_core::facts::{self, Fields, Source, longhorn};
    fn decode<T: Source>(inner: &Inner) {
        let mut count = 0;
        for value in inner.store.all(T::SPEC.group, T::SPEC.resource) {
            let decoded = Fields::root(T::SPEC.kind, value).and_then(|fields| T::decode(&fields));
            assert!(decoded.is_ok(), "{}: {:?}", T::SPEC.resource, decoded.err());
            count += 1;
        }
        assert!(count > 0, "no {}", T::SPEC.resource);
    }
    let night = Night::new(9);
    night.with(|_, inner, now| {
        fixture::register_longhorn(&mut inner.store, now);
        for object in fixture::volume("data", &["n1", "n2"], now) {
            inner.store.seed(object, now).expect("a known kind");
        }
        for object in fixture::longhorn_node("n1", &["data-e-0"], now) {
            inner.store.seed(object, now).expect("a known kind");
        }
        inner.store.seed(fixture::longhorn_attachment("data", "n1"), now).expect("a known kind");
        inner.store.seed(fixture::autoscaler(now), now).expect("a known kind");
    });
    night.pass(30).await;
    night.with(|_, inner, _| {
        decode::<facts::Node>(inner);
        decode::<facts::Pod>(inner);
        decode::<facts::Deployment>(inner);
        decode::<facts::DaemonSet>(inner);
        decode::<facts::PodDisruptionBudget>(inner);
        decode::<facts::EndpointSlice>(inner);
        decode::<facts::Service>(inner);
        decode::<facts::Lease>(inner);
        decode::<facts::HorizontalPodAutoscaler>(inner);
        decode::<longhorn::Volume>(inner);
        decode::<longhorn::Replica>(inner);
        decode::<longhorn::Engine>(inner);
        decode::<longhorn::Node>(inner);
        decode::<longhorn::InstanceManager>(inner);
        decode::<longhorn::Attachment>(inner);
    });
}

#[tokio::test(start_paused = true)]
async fn an_eviction_moves_the_pod_and_the_budget_follows() {
    let night = Night::new(4);
    night.pass(30).await;
    night.cordon("n1");
    night.pass(1).await;
    assert_eq!(taints(&night.node("n1")), 1, "the cordon's taint");
    let on_target = |pod: &&Value| object::text(pod, "/spec/nodeName") == "n1";
    let pod = night.pods("web").iter().find(on_target).cloned().expect("a pod");
    night.with(|_, inner, now| {
        let context = Context::new(now, "test");
        inner.store.evict("default", object::name(&pod), &json!({}), &context).expect("the budget allows one");
        let mut others = inner.store.all("", "pods").filter(|other| {
            object::text(other, "/metadata/labels/app") == "web" && object::uid(other) != object::uid(&pod)
        });
        let other = others.next().map(|other| object::name(other).to_owned()).expect("another pod");
        drop(others);
        let refused = inner.store.evict("default", &other, &json!({}), &context).expect_err("no second one");
        assert_eq!(refused.refusal.code(), 429);
    });
    night.pass(20).await;
    let pods = night.pods("web");
    assert_eq!((pods.len(), pods.iter().filter(on_target).count()), (3, 0));
    assert!(pods.iter().all(|pod| object::is_true(pod, "Ready")));
    assert_eq!(night.pods("agent").len(), 3, "daemon pods ignore the cordon");
}

#[tokio::test(start_paused = true)]
async fn an_action_pod_reboots_its_node_once() {
    for (row, same, reboots) in [("expected boot ID", true, true), ("another boot ID", false, false)] {
        let night = Night::new(5);
        night.pass(30).await;
        let before = night.boot_id("n2");
        let expected = if same { before.clone() } else { "another".to_owned() };
        night.with(|_, inner, now| {
            inner.store.seed(
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "act", "namespace": ACTION_NAMESPACE,
                    "annotations": {ACTION_ANNOTATION: "true"}},
                    "spec": {"nodeName": "n2", "restartPolicy": "Never", "containers": [{"name": "main", "image": "i",
                        "env": [{"name": ACTION_BOOT_ID, "value": expected}]}]},
                    "status": {"phase": "Pending"}}),
                now,
            );
        });
        night.pass(10).await;
        assert_eq!(night.with(|world, _, _| world.is_down("n2")), reboots, "{row}");
        night.pass(300).await;
        assert_eq!(night.boot_id("n2") != before, reboots, "{row}");
        assert_eq!(night.pods("act")[0]["status"]["phase"], "Succeeded", "{row}");
        let after = night.boot_id("n2");
        night.pass(600).await;
        assert_eq!(night.boot_id("n2"), after, "{row}: not twice");
    }
}

#[tokio::test(start_paused = true)]
async fn one_seed_is_one_night() {
    let hash = async |seed: u64| {
        let night = Night::new(seed);
        let client = night.cluster.client(1, "client");
        night.pass(30).await;
        let calls = async {
            for index in 0..20 {
                let uri = "/api/v1/nodes/n3?fieldManager=test";
                let body = json!({"metadata": {"annotations": {"round": index.to_string()}}}).to_string();
                let request = http::Request::patch(uri).header("Content-Type", "application/merge-patch+json");
                let request = request.body(body.into_bytes()).expect("a request");
                client.request::<Value>(request).await.expect("an answer");
                crate::clock::sleep(Duration::from_secs(7)).await;
            }
        };
        night.with(|world, inner, now| world.reboot(inner, "n1", Duration::from_secs(70), now));
        tokio::select! {
            biased;
            () = drive(Arc::clone(&night.cluster), Arc::clone(&night.world)) => {}
            () = calls => {}
        }
        assert!(night.cluster.lock().trace.steps().len() > 100);
        night.cluster.trace_hash()
    };
    let (first, second, other) = (hash(7).await, hash(7).await, hash(8).await);
    assert_eq!(first, second);
    assert_ne!(first, other);
    // For a comparison with another process.
    println!("trace hash of seed 7: {first:016x}");
}
