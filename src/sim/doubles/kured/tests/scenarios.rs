//! The scenarios S1 to S18: locks that others write, period one minute, nodes a and b want a reboot.

use std::time::Duration;

use super::flags::{gated, lock_of, minute};
use super::world::World;
use crate::doubles::kured::settings::Settings;

const HOLD: &str = r#"{"nodeID":"maint","metadata":{"unschedulable":false},"created":"2026-11-30T01:00:00Z","TTL":0}"#;

/// Two nodes, past their start-up phases, with this lock.
fn begun(seed: u64, settings: &Settings, lock: Option<&str>) -> World {
    let mut world = World::new(seed, &["a", "b"], settings);
    world.set_lock(lock);
    world.run(200);
    world
}

fn multi(entries: &[&str]) -> String {
    let entries: Vec<String> = entries
        .iter()
        .map(|entry| match entry.strip_prefix('!') {
            Some(node) => lock_of(node, true),
            None => lock_of(entry, false),
        })
        .collect();
    format!(r#"{{"maxOwners":2,"locks":[{}]}}"#, entries.join(","))
}

fn two() -> Settings {
    Settings { concurrency: 2, ..minute() }
}

fn failing(settings: Settings) -> Settings {
    Settings { drain_timeout: Duration::from_secs(20), ..settings }
}

/// What is left at the end: reboots in order, cordoned nodes, the lock.
fn ends(row: &str, world: &World, reboots: &str, cordoned: &str, lock: Option<&str>) {
    let found = (world.rebooted(), world.cordoned(), world.lock());
    assert_eq!(found, (reboots.to_owned(), cordoned.to_owned(), lock.map(str::to_owned)), "{row}");
}

fn grant_single(world: &mut World, unschedulable: bool) {
    world.set_lock(Some(&lock_of("a", unschedulable)));
}

/// maint opens the gate for a and closes it when the lock names it.
fn open_once(world: &mut World) {
    world.open.insert("a".to_owned());
    world.when(|world| world.holds("a"), |world| world.open.clear());
}

type Row = (&'static str, fn(&str));

const ROWS: &[Row] = &[
    ("S1 maint holds the single lock", |row| {
        let mut world = begun(1, &minute(), Some(HOLD));
        world.run(1800);
        ends(row, &world, "", "", Some(HOLD));
        assert!(world.says("a", "Lock already held: maint"), "{row}");
    }),
    ("S2 switched to a and left alone", |row| {
        let mut world = begun(2, &minute(), Some(HOLD));
        grant_single(&mut world, false);
        world.run(1200);
        ends(row, &world, "a b", "", None);
        let released = world.locks.iter().find(|(at, lock)| lock.is_none() && *at > world.reboots[0].at);
        let released = released.expect("a release").0;
        let next = world.reboots[1].at.duration_since(released).as_secs_f64();
        assert!((0.0..61.0).contains(&next), "{row}: {next} s after the release");
    }),
    ("S3 the lock names a when it starts", |row| {
        let mut world = World::new(3, &["a", "b"], &minute());
        world.cordon("a");
        world.set_lock(Some(&lock_of("a", false)));
        assert!(world.run_until(95, |world| world.lock().is_none()), "{row}");
        let seconds = world.clock(world.now);
        assert!((30.0..91.0).contains(&seconds), "{row}: {seconds} s");
        ends(row, &world, "", "", None);
        assert!(world.says("a", "Uncordoning node a"), "{row}");
    }),
    ("S4 taken back when a becomes unschedulable", |row| {
        for seed in 40..46 {
            let mut world = begun(seed, &minute(), Some(HOLD));
            grant_single(&mut world, false);
            world.when(|world| world.is_cordoned("a"), |world| world.set_lock(Some(HOLD)));
            world.run(1800);
            ends(row, &world, "a", "a", Some(HOLD));
        }
    }),
    ("S5 as S4, with a drain error", |row| {
        let mut world = begun(5, &failing(minute()), Some(HOLD));
        world.stuck_pod("a");
        grant_single(&mut world, false);
        world.when(|world| world.is_cordoned("a"), |world| world.set_lock(Some(HOLD)));
        world.run(600);
        ends(row, &world, "", "", Some(HOLD));
        assert!(world.says("a", "Error releasing lock: not lock holder: maint"), "{row}");
    }),
    ("S6 granted as unschedulable", |row| {
        let mut world = begun(6, &minute(), Some(HOLD));
        world.host("b").required = false;
        grant_single(&mut world, true);
        world.run(1200);
        ends(row, &world, "a", "a", None);
        assert!(!world.says("a", "Uncordoning"), "{row}");
    }),
    ("S7 appended behind placeholders", |row| {
        let holds = multi(&["maint-0", "maint-1"]);
        let mut world = begun(7, &two(), Some(&holds));
        world.set_lock(Some(&multi(&["maint-0", "maint-1", "a"])));
        world.run(1800);
        ends(row, &world, "a", "", Some(&holds));
    }),
    ("S8 a manual lock under concurrency 2", |row| {
        let mut world = begun(8, &two(), Some(r#"{"nodeID":"manual"}"#));
        world.run(600);
        assert!(world.rebooted().contains('a'), "{row}");
        assert!(!world.says("a", "Lock already held"), "{row}");
    }),
    ("S9 multi JSON under concurrency 1", |row| {
        let left = r#"{"maxOwners":2,"locks":[]}"#;
        let mut world = begun(9, &minute(), Some(left));
        world.run(1800);
        ends(row, &world, "", "", Some(left));
        assert!(world.logs.iter().any(|did| did.what == "Lock already held: "), "{row}");
    }),
    ("S12 a value that is no JSON", |row| {
        let mut world = begun(12, &minute(), Some("held by ops"));
        world.run(1800);
        ends(row, &world, "", "", Some("held by ops"));
        assert!(world.says("a", "Error acquiring lock"), "{row}");
    }),
    ("S13 cordoned before the gate opens", |row| {
        let mut world = begun(13, &gated(minute()), None);
        world.cordon("a");
        world.run(90);
        open_once(&mut world);
        world.run(1200);
        ends(row, &world, "a", "a", None);
        assert!(world.locks.iter().flat_map(|(_, lock)| lock).all(|lock| lock.contains(":true}")), "{row}");
    }),
    ("S14 as S13, with a drain error", |row| {
        let mut world = begun(14, &failing(gated(minute())), None);
        world.stuck_pod("a");
        world.cordon("a");
        world.run(90);
        open_once(&mut world);
        world.run(600);
        ends(row, &world, "", "", None);
    }),
    ("S15 as S7, granted as unschedulable", |row| {
        let holds = multi(&["maint-0", "maint-1"]);
        let mut world = begun(15, &two(), Some(&holds));
        world.set_lock(Some(&multi(&["maint-0", "maint-1", "!a"])));
        world.run(1800);
        ends(row, &world, "a", "a", Some(&holds));
    }),
    ("S16 as S7, a restarts before its tick", |row| {
        let holds = multi(&["maint-0", "maint-1"]);
        let mut world = begun(16, &two(), Some(&holds));
        world.set_lock(Some(&multi(&["maint-0", "maint-1", "a"])));
        world.restart("a");
        world.run(1800);
        ends(row, &world, "", "", Some(&holds));
    }),
    ("S17 the lock is edited after a took it", |row| {
        let mut world = begun(17, &gated(minute()), None);
        open_once(&mut world);
        world.when(|world| world.holds("a"), World::edit_lock);
        world.run(1200);
        ends(row, &world, "a", "a", None);
    }),
    ("S18 as S17, with a drain error", |row| {
        let mut world = begun(18, &failing(gated(minute())), None);
        world.stuck_pod("a");
        open_once(&mut world);
        world.when(|world| world.holds("a"), World::edit_lock);
        world.run(600);
        ends(row, &world, "", "", None);
        assert!(world.says("a", "Performing a best-effort uncordon"), "{row}");
    }),
];

#[test]
fn the_double_does_what_the_loop_did_in_every_scenario() {
    for (row, play) in ROWS {
        play(row);
    }
    println!("figure kured.scenarios {} rows", ROWS.len() + super::runs::ROWS.len());
}
