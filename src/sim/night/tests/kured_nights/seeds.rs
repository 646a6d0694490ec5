//! Nights with kured by chance: three nodes that want a reboot, and a third of all that can go wrong. Nothing is violated,
//! and once it all heals each node was rebooted or there is a reason, and nothing of ours is left.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::super::rate::on_the_core;
use super::*;
use crate::sweep::kured_wrongs;

/// Nights that are played; another number, and the first seed, can be asked for:
/// `MAINT_SIM_KURED_NIGHTS=2000 cargo test --release -p maint-sim chance_over_kured -- --nocapture`.
const NIGHTS: u64 = 150;

fn night_by_chance(seed: u64) -> KuredNight {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(play_by_chance(Shell::Typed, &Chaos::of(seed)))
}

/// What is wrong with a night.
fn wrongs(night: &KuredNight) -> Vec<String> {
    let broken = night.violations.iter().map(|broken| format!("{broken:?}"));
    broken.chain(kured_wrongs(night)).collect()
}

/// What of all nights together is told.
#[derive(Default)]
struct Tally {
    bad: Vec<String>,
    ends: BTreeMap<String, u64>,
    befell: BTreeMap<String, u64>,
    steps: usize,
    time: Duration,
}

impl Tally {
    fn count(&mut self, seed: u64, night: &KuredNight) {
        let wrongs = wrongs(night);
        if !wrongs.is_empty() {
            self.bad.push(format!("seed {seed}: {wrongs:#?}"));
        }
        for run in night.runs() {
            *self.ends.entry(format!("{} {}", run.phase, run.outcome)).or_default() += 1;
        }
        for (_, what) in &night.befell {
            *self.befell.entry(format!("{what:?}")).or_default() += 1;
        }
        self.steps += night.history.steps.len();
    }
}

#[test]
fn chance_over_kured_breaks_nothing_and_leaves_nothing() {
    let (first, nights) = (asked_for("MAINT_SIM_KURED_FIRST", 0), asked_for("MAINT_SIM_KURED_NIGHTS", NIGHTS));
    let next = AtomicU64::new(first);
    let play = || {
        let (mut tally, begun) = (Tally::default(), on_the_core());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + nights {
                tally.time = on_the_core().saturating_sub(begun);
                return tally;
            }
            tally.count(seed, &night_by_chance(seed));
        }
    };
    let mut all = Tally::default();
    std::thread::scope(|scope| {
        for half in [scope.spawn(play), scope.spawn(play)] {
            let Tally { bad, ends, befell, steps, time } = half.join().expect("no panic");
            all.bad.extend(bad);
            all.steps += steps;
            all.time += time;
            for (key, count) in ends {
                *all.ends.entry(key).or_default() += count;
            }
            for (key, count) in befell {
                *all.befell.entry(key).or_default() += count;
            }
        }
    });
    println!("{:#?}\n{:#?}\n{} steps", all.ends, all.befell, all.steps);
    let rate = f64::from(u32::try_from(nights).expect("few")) / all.time.as_secs_f64();
    println!("figure kured.nights_per_second {rate:.1} 1/s");
    println!("figure kured.violations {} count", all.bad.len());
    assert!(all.bad.is_empty(), "{} bad nights\n{}", all.bad.len(), all.bad.join("\n\n"));
    println!("figure kured.nights {nights} nights");
}

/// Prints the night of a seed for people: `MAINT_SIM_KURED_SEED=17 cargo test --release -p maint-sim
/// a_night_of_kured_by_seed -- --nocapture`. Played twice it is the same night.
#[test]
fn a_night_of_kured_by_seed_is_one_night_and_can_be_read() {
    let seed = asked_for("MAINT_SIM_KURED_SEED", 1);
    let night = night_by_chance(seed);
    if std::env::var_os("MAINT_SIM_KURED_LOG").is_some() {
        night.history.steps.iter().for_each(|step| println!("{}", step.line()));
    }
    println!("{:#?}\n{}", wrongs(&night), night.story());
    assert_eq!(night.hash, night_by_chance(seed).hash);
}
