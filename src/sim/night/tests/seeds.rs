//! Nights by chance: faults of requests, killed leaders, API servers that are cut off. Nothing is violated, and once
//! the faults stop every run comes to rest. One seed is one night, in every process.

use std::process::{Command, Stdio};

use super::*;
use crate::sweep::wrongs;

/// Seeds that are played.
const SEEDS: u64 = 200;
/// The word that makes a process the second one.
const SECOND: &str = "MAINT_SIM_SECOND_PROCESS";

/// The night of a seed: which scenario, and how likely each fault is; some kinds are off.
fn by_seed(seed: u64) -> (&'static Scenario, Plan) {
    let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9) ^ 0x00c0_ffee);
    let scenario = &SCENARIOS[usize::try_from(seed).unwrap_or(0) % SCENARIOS.len()];
    let chances = Chances::drawn(8, || [0, 1, 3, 8, 20][usize::try_from(random.below(5)).unwrap_or(0)]);
    let chaos = Duration::from_secs(60 + random.below(120));
    (scenario, Plan { seed, chances, chaos, havoc: true, ..Plan::default() })
}

fn play_seed(shell: Shell, seed: u64) -> Night {
    let (scenario, plan) = by_seed(seed);
    night_in(shell, scenario, &plan)
}

#[test]
fn chance_breaks_nothing_and_a_seed_is_a_night_in_every_process() {
    by_chance(Shell::Api, "chance_breaks_nothing_and_a_seed_is_a_night_in_every_process");
    println!("figure sim.seeds {SEEDS} seeds");
}

#[test]
fn chance_breaks_nothing_in_the_typed_shell_either() {
    by_chance(Shell::Typed, "chance_breaks_nothing_in_the_typed_shell_either");
    println!("figure sim.typed_seeds {SEEDS} seeds");
}

/// Plays all seeds here and in a second process, which runs the test of this name alone.
fn by_chance(shell: Shell, test: &str) {
    if std::env::var_os(SECOND).is_some() {
        return tell_hashes(shell);
    }
    let program = std::env::current_exe().expect("our own program");
    let second = Command::new(program)
        .args([&format!("night::tests::seeds::{test}"), "--exact", "--nocapture", "--test-threads=1"])
        .env(SECOND, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("a second process");
    let (mut hashes, mut bad) = (Vec::new(), Vec::new());
    let mut ends: BTreeMap<String, u64> = BTreeMap::new();
    let mut hits: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..SEEDS {
        let night = play_seed(shell, seed);
        let wrongs = wrongs(&night);
        if !wrongs.is_empty() {
            let name = by_seed(seed).0.name;
            bad.push(format!("seed {seed}, {name}: {wrongs:?}\n{:#?}\n{}", night.violations, story(&night)));
        }
        hashes.push(format!("hash {seed} {:016x}", night.hash));
        *ends.entry(format!("{} {}", night.end.phase, night.end.outcome)).or_default() += 1;
        for (kind, count) in &night.hits {
            *hits.entry(kind).or_default() += count;
        }
    }
    let output = second.wait_with_output().expect("its output");
    let text = String::from_utf8_lossy(&output.stdout);
    let theirs: Vec<&str> = text.lines().filter_map(|line| line.find("hash ").map(|at| &line[at..])).collect();
    assert!(bad.is_empty(), "{} bad nights\n{}", bad.len(), bad.join("\n\n"));
    assert_eq!(theirs, hashes);
    println!("{ends:#?}\n{hits:#?}");
    let kinds = hits.keys().filter(|kind| !kind.starts_with("stop") && **kind != "freeze");
    assert_eq!(kinds.count(), 10, "every kind of fault by chance must befall somebody: {hits:?}");
}

/// What the second process is for.
fn tell_hashes(shell: Shell) {
    println!();
    for seed in 0..SEEDS {
        println!("hash {seed} {:016x}", play_seed(shell, seed).hash);
    }
}
