//! The races R1 to R17: of each, what kured does in it.

use std::time::Duration;

use super::flags::{gated, lock_of, measured, minute};
use super::world::World;
use crate::doubles::kured::answer::Answer;
use crate::doubles::kured::settings::Settings;

const HOLD: &str = r#"{"nodeID":"maint","metadata":{"unschedulable":false},"created":"2026-11-30T01:00:00Z","TTL":0}"#;

type Row = (&'static str, fn(&str));

fn begun(seed: u64, nodes: &[&str], settings: &Settings, lock: Option<&str>) -> World {
    let mut world = World::new(seed, nodes, settings);
    world.set_lock(lock);
    world.run(200);
    world
}

const ROWS: &[Row] = &[
    ("R1 a grant meets a start-up: consumed, and the lock is free", |row| {
        let mut world = begun(1, &["a", "b"], &minute(), Some(HOLD));
        world.set_lock(Some(&lock_of("a", false)));
        world.restart("a");
        world.run_until(100, |world| world.lock().is_none());
        assert_eq!((world.rebooted().as_str(), world.lock()), ("", None), "{row}");
        world.run(70);
        assert!(world.lock().is_some(), "{row}: the next one takes it");
    }),
    ("R2 after a release the next of the waiting goes within a period", |row| {
        let mut world = begun(2, &["a", "b", "c"], &minute(), Some(HOLD));
        world.set_lock(Some(&lock_of("a", false)));
        world.run(1200);
        let released =
            world.locks.iter().find(|(at, lock)| lock.is_none() && *at > world.reboots[0].at).expect("free").0;
        let next = world.reboots[1].at.duration_since(released).as_secs_f64();
        assert!(next < 61.0, "{row}: {next}");
    }),
    ("R3 maint dies between grant and take-back: as R2", |row| {
        let mut world = begun(3, &["a", "b"], &minute(), Some(HOLD));
        world.set_lock(Some(&lock_of("a", true)));
        world.run(1200);
        assert_eq!((world.rebooted().as_str(), world.cordoned().as_str()), ("a b", "a"), "{row}: b is not gated");
    }),
    ("R4 a revoked lock within the drain delay stops nothing", |row| {
        let settings = Settings { drain_delay: Duration::from_secs(30), ..minute() };
        let mut world = begun(4, &["a"], &settings, Some(HOLD));
        world.set_lock(Some(&lock_of("a", false)));
        assert!(world.run_until(61, |world| world.says("a", "Delaying drain for 30s")), "{row}");
        assert!(!world.is_cordoned("a"), "{row}: nothing is seen yet");
        world.set_lock(Some(HOLD));
        world.run(35);
        assert_eq!((world.rebooted(), world.lock()), ("a".to_owned(), Some(HOLD.to_owned())), "{row}");
    }),
    ("R5 a drain without a limit holds; with a TTL another starts, and the first stays cordoned", |row| {
        let settings = Settings { lock_ttl: Duration::from_secs(200), ..minute() };
        let mut world = World::new(5, &["a", "b"], &settings);
        world.stuck_pod("a");
        world.stuck_pod("b");
        world.run_until(300, |world| world.lock().is_some());
        let first = if world.holds("a") { "a" } else { "b" };
        world.run(160);
        assert!(world.holds(first) && world.rebooted().is_empty(), "{row}");
        world.run(120);
        let second = if first == "a" { "b" } else { "a" };
        assert!(world.holds(second), "{row}: expired");
        world.free_stuck_pod(first);
        world.run(300);
        assert_eq!(world.rebooted(), first, "{row}: half drained all the while");
        assert!(world.is_cordoned(first) && world.holds(second), "{row}: it came back not holding");
    }),
    ("R6 a holder without a node blocks for ever", |row| {
        let ghost = lock_of("gone", false);
        let mut world = begun(6, &["a"], &minute(), Some(&ghost));
        world.run(7200);
        assert_eq!((world.rebooted(), world.lock()), (String::new(), Some(ghost)), "{row}");
        world.set_lock(None);
        world.run(61);
        assert_eq!(world.rebooted(), "a", "{row}: cleared");
    }),
    ("R7 cordoned when it acquires: never uncordoned again", |row| {
        let mut world = begun(7, &["a"], &gated(minute()), None);
        world.cordon("a");
        world.open.insert("a".to_owned());
        world.run(400);
        world.host("a").required = true;
        world.run(400);
        assert_eq!((world.rebooted().as_str(), world.cordoned().as_str(), world.lock()), ("a a", "a", None), "{row}");
    }),
    ("R8 concurrency 1 and 2 on one annotation freeze the first kind", |row| {
        let mut world = World::new(8, &["a", "b"], &minute());
        world.set_lock(Some(r#"{"maxOwners":2,"locks":[]}"#));
        world.host("b").settings.concurrency = 2;
        world.restart("b");
        world.run(1200);
        assert_eq!(world.rebooted(), "b", "{row}: only the second kind");
        assert!(world.says("a", "Lock already held: "), "{row}");
    }),
    ("R9 a lock that is wiped is free for all", |row| {
        let mut world = begun(9, &["a"], &minute(), Some(HOLD));
        world.set_lock(None);
        world.run(62);
        assert_eq!(world.rebooted(), "a", "{row}");
    }),
    ("R10 replaced during its drain: uncordons and releases; cordoned before: only releases", |row| {
        for cordoned in [false, true] {
            let mut world = begun(10, &["a"], &gated(minute()), None);
            world.stuck_pod("a");
            if cordoned {
                world.cordon("a");
            }
            world.open.insert("a".to_owned());
            world.run_until(120, |world| world.made("a", "POST eviction").next().is_some());
            world.open.clear();
            world.restart("a");
            world.run(100);
            assert_eq!((world.lock(), world.is_cordoned("a")), (None, cordoned), "{row}: {cordoned}");
            assert_eq!(world.rebooted(), "", "{row}");
        }
    }),
    ("R11 it goes on by itself when nobody answers after the lock", |row| {
        let mut world = begun(11, &["a"], &gated(minute()), None);
        world.open.insert("a".to_owned());
        world.when(|world| world.holds("a"), |world| drop(world.answers.insert("a".to_owned(), Answer::Refused)));
        world.run(400);
        assert_eq!((world.rebooted().as_str(), world.lock(), world.cordoned().as_str()), ("a", None, ""), "{row}");
    }),
    ("R12 the annotation stays if it does not hold at its start", |row| {
        let mut world = begun(12, &["a"], &measured(), None);
        world.open.insert("a".to_owned());
        world.when(|world| !world.reboots.is_empty(), |world| world.set_lock(Some(HOLD)));
        world.run(300);
        assert_eq!(world.rebooted(), "a", "{row}");
        assert!(world.is_in_progress("a") && world.is_cordoned("a"), "{row}");
    }),
    ("R13 a taint that meets another writer ends the process", |row| {
        let settings = Settings { taint: measured().taint, ..minute() };
        let mut world = World::new(13, &["a"], &settings);
        world.set_lock(Some(HOLD));
        world.run_until(200, |world| world.says("a", "Lock already held"));
        // Between its read of the node and its patch.
        let reads = world.made("a", "GET node").count();
        world.when(move |world| world.made("a", "GET node").count() > reads, |world| world.cordon("a"));
        world.run(3);
        assert!(world.says("a", "FATAL Error patching taint for node a"), "{row}");
        world.run(10);
        assert_eq!(world.starts.len(), 2, "{row}");
    }),
    ("R14 no ticks while it waits to release", |row| {
        let settings = Settings { lock_release_delay: Duration::from_secs(900), ..measured() };
        let mut world = begun(14, &["a"], &settings, None);
        world.open.insert("a".to_owned());
        assert!(world.run_until(300, |world| world.says("a", "Waiting 15m0s before releasing lock")), "{row}");
        let (calls, logs) = (world.calls.len(), world.logs.len());
        world.run(890);
        assert_eq!((world.calls.len(), world.logs.len()), (calls, logs), "{row}");
        assert!(world.holds("a") && !world.is_cordoned("a"), "{row}");
        world.run(15);
        assert_eq!(world.lock(), None, "{row}");
    }),
    ("R15 an open gate when a drain fails: taken again at once", |row| {
        let settings = Settings { drain_timeout: Duration::from_secs(70), ..gated(minute()) };
        let mut world = begun(15, &["a"], &settings, None);
        world.stuck_pod("a");
        world.open.insert("a".to_owned());
        world.run_until(200, |world| world.says("a", "Uncordoning node a"));
        let failed = world.now;
        world.run(2);
        let again = world.locks.iter().find(|(at, lock)| lock.is_some() && *at > failed).expect("taken again").0;
        assert!(again.duration_since(failed).as_secs_f64() < 0.3, "{row}");
    }),
    ("R16 its API server goes away: it exits and is deaf for a while", |row| {
        let mut world = begun(16, &["a"], &measured(), None);
        world.host("a").api_down = true;
        world.run(30);
        world.host("a").api_down = false;
        assert!(world.says("a", "FATAL"), "{row}");
        let died = world.starts.last().expect("a start").at;
        world.run(130);
        let heard = world.calls.iter().find(|did| did.what == "ASK" && did.at > died).expect("a question").at;
        assert!(heard.duration_since(died).as_secs_f64() > 40.0, "{row}");
    }),
    ("R17 an answer that never comes freezes it without a word", |row| {
        let mut world = begun(17, &["a"], &measured(), None);
        world.answers.insert("a".to_owned(), Answer::Hang);
        world.run(25);
        let (calls, logs) = (world.calls.len(), world.logs.len());
        world.run(7200);
        assert_eq!((world.calls.len(), world.logs.len()), (calls, logs), "{row}");
    }),
];

#[test]
fn kured_does_its_part_in_every_race() {
    for (row, play) in ROWS {
        play(row);
    }
    println!("figure kured.races {} rows", ROWS.len());
}

#[test]
fn an_api_that_is_away_is_waited_for_and_leaves_a_lock_behind_when_it_returns_between_two_requests() {
    // Away for less than five minutes at the start: the lock is read again every 5 s, and the phase is whole.
    let mut world = World::new(20, &["a"], &minute());
    world.set_lock(Some(&lock_of("a", false)));
    world.host("a").api_down = true;
    world.run(200);
    world.host("a").api_down = false;
    world.run_until(10, |world| world.lock().is_none());
    assert_eq!((world.lock(), world.starts.len()), (None, 1));
    // Away for longer: given up after 5 min; the taint helper then ends the process, and the phase repeats.
    let mut world = World::new(21, &["a"], &minute());
    world.set_lock(Some(&lock_of("a", false)));
    world.host("a").api_down = true;
    world.run(420);
    assert!(
        world.says("a", "timed out trying to get daemonset kured") && world.says("a", "FATAL Error reading node a")
    );
    world.host("a").api_down = false;
    world.run_until(200, |world| world.lock().is_none());
    assert_eq!((world.lock().is_none(), world.rebooted()), (true, String::new()));
    // Back exactly between the two: the phase is skipped, and the lock stays until the loop finds itself holding.
    let mut world = World::new(22, &["a"], &minute());
    world.set_lock(Some(&lock_of("a", false)));
    world.host("a").required = false;
    world.host("a").api_down = true;
    world.when(|world| world.says("a", "timed out"), |world| world.host("a").api_down = false);
    world.run(1000);
    assert!(world.holds("a") && world.starts.len() == 1);
}

#[test]
fn a_conflict_is_tried_again_every_second_without_a_limit() {
    let mut world = begun(23, &["a"], &minute(), Some(HOLD));
    world.set_lock(None);
    // Somebody writes the DaemonSet just before each of twenty attempts.
    for round in 0..20 {
        world.when(
            move |world| {
                world.made("a", "GET daemonset").filter(|did| world.clock(did.at) > 200.0).count() == round + 2
            },
            |world| {
                let key = crate::store::ObjectKey::new("apps", "daemonsets", "kube-system", "kured");
                let now = world.now.to_string();
                world.store.edit(&key, |daemonset| daemonset["metadata"]["labels"]["touched"] = now.into());
            },
        );
    }
    world.run(61 + 25);
    let puts: Vec<f64> = world.made("a", "PUT daemonset").map(|did| world.clock(did.at)).collect();
    assert_eq!(puts.len(), 21, "{puts:?}");
    assert!(puts.windows(2).all(|pair| (1.0..1.2).contains(&(pair[1] - pair[0]))), "{puts:?}");
    assert_eq!(world.rebooted(), "a");
}

#[test]
fn pods_that_match_a_selector_block() {
    let settings = Settings { pod_selectors: vec!["app=none".to_owned(), "app=batch".to_owned()], ..minute() };
    let mut world = World::new(24, &["a"], &settings);
    world.pod("a", "batch-1");
    world.run(300);
    assert!(world.says("a", "Reboot blocked: matching pods: [batch-1]"));
    assert_eq!((world.rebooted(), world.lock()), (String::new(), None));
    world.store.remove(&crate::store::ObjectKey::pod("default", "batch-1"));
    world.run(61);
    assert_eq!(world.rebooted(), "a");
}

#[test]
fn force_reboot_goes_on_after_a_failed_drain_and_labels_frame_it() {
    let label = |value: &str| vec![("stage".to_owned(), value.to_owned())];
    let settings = Settings {
        force_reboot: true,
        drain_timeout: Duration::from_secs(20),
        reboot_delay: Duration::from_secs(90),
        pre_labels: label("down"),
        post_labels: label("up"),
        ..minute()
    };
    let mut world = World::new(25, &["a"], &settings);
    world.stuck_pod("a");
    assert!(world.run_until(200, |world| world.says("a", "Delaying reboot for 1m30s")));
    assert_eq!(world.node("a")["metadata"]["labels"]["stage"], "down");
    world.run(400);
    assert_eq!((world.rebooted().as_str(), world.cordoned().as_str()), ("a", ""));
    assert_eq!(world.node("a")["metadata"]["labels"]["stage"], "up");
}

#[test]
fn outside_its_window_it_is_silent_and_takes_its_taint_away() {
    use crate::doubles::kured::window::Window;
    let days = ["mon".to_owned()];
    let window = Window::parse(&days, "2:00", "2:10", "UTC").expect("a window");
    let mut world = World::new(26, &["a"], &Settings { window, taint: measured().taint, ..minute() });
    world.set_lock(Some(HOLD));
    world.run(590);
    assert!(world.has_taint("a"));
    world.run(200);
    let (calls, logs) = (world.calls.len(), world.logs.len());
    assert!(!world.has_taint("a"));
    world.set_lock(None);
    world.run(7200);
    assert_eq!((world.calls.len(), world.logs.len(), world.rebooted()), (calls, logs, String::new()));
}
