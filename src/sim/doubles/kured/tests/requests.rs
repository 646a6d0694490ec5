//! What a tick costs: every request of it, in order.

use std::time::Duration;

use super::flags::{lock_of, measured, minute};
use super::world::World;
use crate::doubles::kured::settings::Settings;

/// Requests and questions of one node since a point of the log.
fn since(world: &World, node: &str, mark: usize) -> Vec<String> {
    world.calls[mark..].iter().filter(|did| did.node == node).map(|did| did.what.clone()).collect()
}

#[test]
fn a_blocked_tick_reads_the_node_and_asks() {
    let mut world = World::new(1, &["a"], &measured());
    world.run_until(130, |world| world.says("a", "Reboot blocked"));
    let first = ["GET daemonset", "GET node", "GET node", "GET node", "PATCH node", "ASK"];
    assert_eq!(since(&world, "a", 0), first, "start-up, then the first tick writes the annotations");
    let mark = world.calls.len();
    world.run(60);
    assert_eq!(since(&world, "a", mark), ["GET node", "ASK"].repeat(3));
}

#[test]
fn a_tick_that_loses_the_lock_reads_it_twice() {
    let settings = Settings { taint: measured().taint, ..minute() };
    let mut world = World::new(2, &["a"], &settings);
    world.set_lock(Some(&lock_of("maint", false)));
    world.run_until(200, |world| world.says("a", "Node taint added"));
    let first = ["GET daemonset", "GET node", "GET node", "GET daemonset", "GET daemonset", "GET node", "PATCH node"];
    assert_eq!(since(&world, "a", 0), first);
    let mark = world.calls.len();
    world.run(120);
    assert_eq!(since(&world, "a", mark), ["GET node", "GET daemonset", "GET daemonset"].repeat(2));
    world.host("a").required = false;
    world.run(61);
    assert!(!world.has_taint("a") && world.says("a", "Node taint removed"), "not required any more");
}

#[test]
fn a_tick_that_may_go_takes_the_lock_cordons_and_evicts() {
    let mut world = World::new(3, &["a"], &measured());
    world.pod("a", "web-1");
    world.pod("a", "kured-x");
    world.run_until(130, |world| world.says("a", "Reboot blocked"));
    let mark = world.calls.len();
    world.open.insert("a".to_owned());
    world.run_until(30, |world| !world.reboots.is_empty());
    let wanted = [
        "GET node",
        "ASK",
        "GET daemonset",
        "GET daemonset",
        "PUT daemonset",
        "PATCH node",
        "LIST pods",
        "GET daemonset",
        "GET /api/v1",
        "POST eviction",
        "GET pod",
        "GET pod",
        "GET pod",
    ];
    assert_eq!(since(&world, "a", mark), wanted);
    let mark = world.calls.len();
    world.run(125);
    let wanted =
        ["GET daemonset", "GET node", "PATCH node", "PATCH node", "GET daemonset", "PUT daemonset", "GET node"];
    assert_eq!(since(&world, "a", mark), wanted, "the start-up after the reboot");
    let times: Vec<_> = world.calls[mark..].iter().map(|did| did.at).collect();
    assert!(times[6].duration_since(times[0]) < jiff::SignedDuration::from_millis(80));
}

#[test]
fn a_drain_without_pods_asks_for_no_eviction() {
    let mut world = World::new(4, &["a"], &minute());
    world.run_until(250, |world| !world.reboots.is_empty());
    assert!(world.made("a", "LIST pods").next().is_some());
    assert!(world.made("a", "GET /api/v1").next().is_none());
}

#[test]
fn an_idle_process_asks_nothing() {
    let mut world = World::new(5, &["a"], &measured());
    world.host("a").required = false;
    world.run(150);
    let mark = world.calls.len();
    world.run(3600);
    assert_eq!(since(&world, "a", mark), [""; 0]);
    assert!(world.said("a", "Reboot not required").count() > 170);
}

#[test]
fn nothing_is_asked_before_the_first_tick_and_ticks_keep_their_grid() {
    for seed in 10..40 {
        let mut world = World::new(seed, &["a"], &measured());
        world.run(200);
        let first = world.clock(world.calls[0].at);
        assert!((30.0..90.0).contains(&first), "seed {seed}: {first}");
        let asked: Vec<f64> = world.made("a", "ASK").map(|did| world.clock(did.at)).collect();
        assert!(asked[0] - first > 10.0 && asked[0] - first < 30.1, "seed {seed}");
        // The first one also wrote the annotations.
        assert!(asked.windows(2).skip(1).all(|pair| (pair[1] - pair[0] - 20.0).abs() < 1e-6), "seed {seed}: {asked:?}");
    }
}

#[test]
fn ticks_that_fall_due_during_a_drain_are_kept_two_at_most() {
    for (row, drain, at_once) in [("shorter than a period", 15, 0), ("one period", 30, 1), ("many periods", 130, 2)] {
        let settings = Settings { drain_timeout: Duration::from_secs(drain), ..measured() };
        let mut world = World::new(6, &["a"], &settings);
        world.stuck_pod("a");
        world.run(150);
        world.open.insert("a".to_owned());
        world.when(|world| world.holds("a"), |world| world.open.clear());
        assert!(world.run_until(200, |world| world.says("a", "best-effort uncordon")), "{row}");
        let end = world.now;
        world.run(60);
        let asked = world.made("a", "ASK").filter(|did| did.at > end && did.at.duration_since(end).as_secs_f64() < 0.4);
        assert_eq!(asked.count(), at_once, "{row}");
    }
}
