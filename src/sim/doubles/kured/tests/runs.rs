//! The runs V1 to V12 of the real process: three nodes that want a reboot, closed gate, period 20 s.

use std::time::Duration;

use jiff::Timestamp;

use super::flags::{lock_of, measured};
use super::world::World;
use crate::doubles::kured::settings::Settings;

const NODES: [&str; 3] = ["node-1", "node-2", "node-3"];

fn begun(seed: u64, settings: &Settings) -> World {
    let mut world = World::new(seed, &NODES, settings);
    world.run(180);
    world
}

fn short_drain() -> Settings {
    Settings { drain_timeout: Duration::from_secs(20), ..measured() }
}

fn open(world: &mut World, node: &str) {
    world.open.insert(node.to_owned());
}

/// The gate closes that much after the lock named the node.
fn close_after_lock(world: &mut World, node: &'static str, seconds: f64) {
    world.when(move |world| world.holds(node), move |world| world.later(seconds, |world| world.open.clear()));
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

fn locked_at(world: &World) -> Timestamp {
    world.locks.iter().find(|(_, lock)| lock.is_some()).expect("a lock").0
}

fn released_at(world: &World) -> Timestamp {
    let locked = locked_at(world);
    world.locks.iter().find(|(at, lock)| lock.is_none() && *at > locked).expect("a release").0
}

/// The last start of a process on a node.
fn started_at(world: &World, node: &str) -> Timestamp {
    world.starts.iter().rfind(|did| did.node == node).expect("a start").at
}

pub type Row = (&'static str, fn(&str));

pub const ROWS: &[Row] = &[
    ("V1 closed, then node-2 goes", |row| {
        let mut world = begun(101, &measured());
        for node in NODES {
            let blocked = world.said(node, "Reboot blocked: 1 active alerts: [maint: not now]").count();
            assert_eq!(blocked, world.made(node, "ASK").count(), "{row}: {node}");
            assert!(blocked >= 3 && world.is_in_progress(node) && !world.has_taint(node), "{row}: {node}");
            let first = world.clock(world.made(node, "ASK").next().expect("a question").at);
            assert!((40.0..120.0).contains(&first), "{row}: first question after {first} s");
        }
        assert_eq!(world.lock(), None, "{row}");
        world.pod("node-2", "web-1");
        open(&mut world, "node-2");
        let opened = world.now;
        close_after_lock(&mut world, "node-2", 0.1);
        world.run(300);
        assert_eq!((world.rebooted().as_str(), world.cordoned().as_str(), world.lock()), ("node-2", "", None), "{row}");
        assert!(seconds(opened, locked_at(&world)) <= 20.1, "{row}: one period at most");
        let cordon = world.made("node-2", "PATCH node").find(|did| did.at >= locked_at(&world)).expect("a cordon");
        assert!(seconds(locked_at(&world), cordon.at) < 0.05, "{row}");
        let back = seconds(started_at(&world, "node-2"), released_at(&world));
        assert!((30.0..90.5).contains(&back), "{row}: released {back} s after the start");
        assert!(!world.is_in_progress("node-2") && world.is_in_progress("node-1"), "{row}");
    }),
    ("V2 cordoned before, then go", |row| {
        let mut world = begun(102, &measured());
        world.cordon("node-1");
        world.run(25);
        open(&mut world, "node-1");
        close_after_lock(&mut world, "node-1", 0.1);
        world.run(300);
        assert_eq!((world.rebooted().as_str(), world.cordoned().as_str()), ("node-1", "node-1"), "{row}");
        assert!(world.locks.iter().flat_map(|(_, lock)| lock).all(|lock| lock.contains(":true}")), "{row}");
        assert!(!world.is_in_progress("node-1") && !world.says("node-1", "Uncordoning"), "{row}");
    }),
    ("V3 edited 34 ms after the lock", |row| {
        let mut world = begun(103, &measured());
        world.pod("node-1", "web-1");
        open(&mut world, "node-1");
        close_after_lock(&mut world, "node-1", 0.1);
        world.when(|world| world.holds("node-1"), |world| world.later(0.034, World::edit_lock));
        world.run(300);
        assert_eq!((world.rebooted().as_str(), world.cordoned().as_str()), ("node-1", "node-1"), "{row}");
        assert_eq!(world.lock(), None, "{row}");
    }),
    ("V4 two at once, both edited", |row| {
        let mut world = begun(104, &Settings { concurrency: 2, ..measured() });
        for node in ["node-1", "node-2"] {
            open(&mut world, node);
            world.when(
                move |world| world.holds(node),
                move |world| {
                    world.open.remove(node);
                    let more = world.lock().expect("a lock").replacen('{', r#"{"maint":"here","#, 1);
                    world.set_lock(Some(&more));
                    world.edit_lock();
                },
            );
        }
        world.run(400);
        assert_eq!(world.reboots.len(), 2, "{row}");
        assert_eq!(world.cordoned(), "node-1 node-2", "{row}");
        assert_eq!(world.lock().as_deref(), Some(r#"{"maxOwners":2,"locks":[]}"#), "{row}");
        // The second one dropped what it does not know and kept the edit of the first.
        let both = world.locks.iter().flat_map(|(_, lock)| lock).find(|lock| lock.matches("nodeID").count() == 2);
        let both = both.expect("both in the lock");
        assert!(!both.contains("here") && both.contains(r#""unschedulable":true"#), "{row}: {both}");
    }),
    ("V5 a budget of 0 and the gate left open", |row| {
        let mut world = begun(105, &short_drain());
        world.stuck_pod("node-1");
        world.cordon("node-1");
        world.run(25);
        open(&mut world, "node-1");
        world.run(110);
        assert_eq!(world.rebooted(), "", "{row}");
        let released = released_at(&world);
        let held = seconds(locked_at(&world), released);
        assert!((19.9..20.7).contains(&held), "{row}: held for {held} s");
        let again = world.locks.iter().find(|(at, lock)| lock.is_some() && *at > released).expect("taken again");
        assert!(seconds(released, again.0) < 0.5, "{row}");
        assert!(again.1.as_deref().is_some_and(|lock| lock.contains(":false}")), "{row}: the cordon is forgotten");
        assert!(world.said("node-1", "best-effort uncordon").count() >= 3, "{row}: it loops");
        world.open.clear();
        world.run(120);
        assert_eq!((world.lock(), world.cordoned().as_str()), (None, ""), "{row}");
    }),
    ("V6 edited, closed, and a budget of 0", |row| {
        let mut world = begun(106, &short_drain());
        world.stuck_pod("node-1");
        open(&mut world, "node-1");
        close_after_lock(&mut world, "node-1", 0.8);
        world.when(|world| world.holds("node-1"), World::edit_lock);
        world.run(120);
        assert_eq!((world.rebooted().as_str(), world.cordoned().as_str(), world.lock()), ("", "", None), "{row}");
        assert_eq!(world.said("node-1", "Draining node").count(), 1, "{row}: no second try");
        // The limiter lets ten leave at once and five a second: 101 were measured in 20 s.
        let asked = world.made("node-1", "POST eviction").count();
        assert!((95..=111).contains(&asked), "{row}: {asked} evictions");
        println!("figure kured.refused_evictions_20_s {asked} requests");
        assert!(world.says("node-1", "will retry after 0s"), "{row}");
        let after = world.said("node-1", "Reboot blocked").filter(|did| did.at > released_at(&world)).count();
        assert!(after >= 3, "{row}: blocked {after} times");
    }),
    ("V7 closed during a drain that works", |row| {
        let mut world = begun(107, &measured());
        for index in 0..110 {
            world.pod("node-1", &format!("web-{index}"));
        }
        open(&mut world, "node-1");
        close_after_lock(&mut world, "node-1", 0.8);
        world.run(300);
        assert_eq!(world.rebooted(), "node-1", "{row}");
        let took = seconds(locked_at(&world), world.reboots[0].at);
        assert!((22.0..29.0).contains(&took), "{row}: {took} s, 25 s measured");
        println!("figure kured.drain_110_pods {took:.1} s");
    }),
    ("V8 its API server stops while it is blocked", |row| {
        let mut world = begun(108, &measured());
        world.host("node-3").api_down = true;
        assert!(world.run_until(25, |world| world.says("node-3", "FATAL")), "{row}");
        let text =
            "FATAL Error retrieving node object via k8s API: dial tcp 10.0.0.1:6443: connect: connection refused";
        assert!(world.says("node-3", text), "{row}");
        world.host("node-3").api_down = false;
        let died = world.now;
        world.run(180);
        let start = started_at(&world, "node-3");
        assert!((4.9..5.1).contains(&seconds(died, start)), "{row}");
        let first = |what| world.calls.iter().find(|did| did.node == "node-3" && did.at > start && did.what == what);
        let silent = seconds(start, first("GET daemonset").expect("a request").at);
        let deaf = seconds(start, first("ASK").expect("a question").at);
        assert!((30.0..90.0).contains(&silent) && (40.0..120.0).contains(&deaf), "{row}: {silent}, {deaf}");
    }),
    ("V9 multi JSON is left over", |row| {
        let mut world = World::new(109, &NODES, &measured());
        world.set_lock(Some(r#"{"maxOwners":2,"locks":[]}"#));
        for node in NODES {
            open(&mut world, node);
        }
        world.run(540);
        let lines = world.logs.iter().filter(|did| did.what == "Lock already held: ").count();
        assert!(lines > 50 && world.has_taint("node-1") && world.rebooted().is_empty(), "{row}: {lines}");
        world.set_lock(None);
        assert!(world.run_until(21, |world| world.lock().is_some()), "{row}: cured at the next tick");
    }),
    ("V10 the reboot command fails", |row| {
        let mut world = begun(110, &measured());
        world.host("node-1").reboot_fails = true;
        let boot = world.node("node-1")["status"]["nodeInfo"]["bootID"].clone();
        open(&mut world, "node-1");
        close_after_lock(&mut world, "node-1", 0.1);
        world.run(150);
        assert!(world.says("node-1", "FATAL Unable to reboot node"), "{row}");
        assert_eq!((world.cordoned().as_str(), world.lock()), ("", None), "{row}");
        assert_eq!(world.node("node-1")["status"]["nodeInfo"]["bootID"], boot, "{row}");
        let after = seconds(started_at(&world, "node-1"), released_at(&world));
        assert!((30.0..90.1).contains(&after), "{row}: {after} s");
        assert!(world.is_in_progress("node-1"), "{row}: the sentinel is still there");
    }),
    ("V11 a stranger cordons just before the lock", |row| {
        let mut world = begun(111, &measured());
        // After a tick of node-1, so that the next one sees the cordon when it reads the node.
        let asked = world.made("node-1", "ASK").count();
        world.run_until(25, |world| world.made("node-1", "ASK").count() > asked);
        open(&mut world, "node-1");
        close_after_lock(&mut world, "node-1", 0.1);
        world.later(18.8, |world| world.cordon("node-1"));
        world.run(300);
        assert_eq!((world.rebooted().as_str(), world.cordoned().as_str()), ("node-1", "node-1"), "{row}");
    }),
    ("V12 a process is left over on the node", |row| {
        let mut world = begun(112, &measured());
        world.set_lock(Some(&lock_of("manual", false)));
        let old = Settings { prometheus_url: None, ..measured() };
        let life = world.start_with("node-1", old);
        world.run(180);
        assert_eq!(world.rebooted(), "", "{row}");
        world.set_lock(None);
        world.run_until(30, |world| !world.reboots.is_empty());
        let who: Vec<(String, u64)> = world.reboots.iter().map(|did| (did.node.clone(), did.life)).collect();
        assert_eq!(who, [("node-1".to_owned(), life)], "{row}");
    }),
];

#[test]
fn the_double_does_what_the_process_did_in_every_run() {
    for (row, play) in ROWS {
        play(row);
    }
}
