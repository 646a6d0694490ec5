//! Nights whose drain is hard: each ends as it must, and chance breaks nothing.

use super::scenarios::check;
use super::*;
use crate::faults::EvictionChances;
use crate::invariants::evictions_of;
use crate::night::troubles::Trouble;

/// Nights by chance unless more are asked for: `MAINT_SIM_DRAIN_NIGHTS=2000 cargo test --release -p maint-sim
/// chance_over_drains -- --nocapture`.
const NIGHTS: u64 = 80;

#[test]
fn every_hard_drain_ends_as_it_must() {
    for scenario in DRAINS {
        let night = check(scenario);
        assert_eq!(hot(&night), Vec::<String>::new(), "{}", scenario.name);
    }
}

/// A lost answer holds a lane up only until the watch shows what came of it, and not for as long as a request may take.
#[test]
fn a_lost_answer_costs_seconds() {
    let night = check(Scenario::named("lost-answers").expect("a scenario"));
    let quick = check(Scenario::named("drain").expect("a scenario"));
    assert!(night.seconds < quick.seconds + 25, "{} {}", night.seconds, quick.seconds);
}

/// Pods that were asked for so often that somebody runs hot: more than a dozen evictions of one uid within ten seconds.
fn hot(night: &Night) -> Vec<String> {
    let mut by_uid: BTreeMap<String, Vec<Timestamp>> = BTreeMap::new();
    for (uid, at) in evictions_of(&night.history) {
        by_uid.entry(uid).or_default().push(at);
    }
    let crowded =
        |times: &Vec<Timestamp>| times.windows(13).any(|some| some[12].duration_since(some[0]).as_secs() < 10);
    by_uid.into_iter().filter(|(_, times)| crowded(times)).map(|(uid, _)| uid).collect()
}

/// The night of a seed: its troubles, and how likely each fault is.
fn by_seed(seed: u64) -> (&'static Scenario, Plan) {
    let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9) ^ 0x00dd_ab1e);
    let names = ["drain", "drain", "drain", "back-out", "cancelled", "halted", "command", "on-hold"];
    let name = names[usize::try_from(random.below(8)).unwrap_or(0)];
    let scenario = Scenario::named(name).expect("a scenario");
    let troubles = Trouble::draw(&mut random);
    let mut often = |most: usize| [0, 1, 5, 20, 60, 200][usize::try_from(random.below(6)).unwrap_or(0).min(most)];
    let evictions = EvictionChances {
        throttled: often(5),
        timeout: often(5),
        conflict: often(5),
        lose_answer: often(5),
        hang_after: often(5),
        hang_before: often(4),
        delay: often(5),
    };
    let chances = Chances { unavailable: often(2), lose_answer: often(2), delay: often(2), ..Chances::default() };
    let (chaos, havoc) = (Duration::from_secs(60 + random.below(240)), random.below(3) == 0);
    (scenario, Plan { seed, chances, evictions, troubles, chaos, havoc, ..Plan::default() })
}

fn asked_for(variable: &str, or: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(or)
}

#[test]
fn chance_over_drains_breaks_nothing() {
    let (first, nights) = (asked_for("MAINT_SIM_DRAIN_FIRST", 0), asked_for("MAINT_SIM_DRAIN_NIGHTS", NIGHTS));
    let (mut bad, mut evicted) = (Vec::new(), 0);
    let mut ends: BTreeMap<String, u64> = BTreeMap::new();
    let mut hits: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in first..first + nights {
        let (scenario, plan) = by_seed(seed);
        let night = night_in(Shell::Typed, scenario, &plan);
        let (wrongs, hot) = (super::seeds::wrongs(&night), hot(&night));
        if !wrongs.is_empty() || !hot.is_empty() {
            let what = format!("seed {seed}, {}, {:?}: {wrongs:?} {hot:?}", scenario.name, plan.troubles);
            bad.push(format!("{what}\n{:#?}\n{}", night.violations, story(&night)));
        }
        evicted += night.end.evicted.len();
        *ends.entry(format!("{} {}", night.end.phase, night.end.outcome)).or_default() += 1;
        for (kind, count) in &night.hits {
            *hits.entry(kind).or_default() += count;
        }
    }
    println!("{ends:#?}\n{hits:#?}\n{evicted} pods evicted");
    assert!(bad.is_empty(), "{} bad nights\n{}", bad.len(), bad.join("\n\n"));
    println!("figure drain.nights {nights} nights");
}

/// Prints the night of a seed for people: `MAINT_SIM_DRAIN_SEED=17 cargo test -p maint-sim the_drain_of_a_seed --
/// --nocapture`.
#[test]
fn the_drain_of_a_seed_can_be_read_and_is_the_same_again() {
    let (scenario, plan) = by_seed(asked_for("MAINT_SIM_DRAIN_SEED", 1));
    let (night, again) = (night_in(Shell::Typed, scenario, &plan), night_in(Shell::Typed, scenario, &plan));
    assert_eq!(night.hash, again.hash);
    println!("{} {:?}\n{}\n{}", scenario.name, plan, night.log().join("\n"), story(&night));
    println!("{:?} {:?}", super::seeds::wrongs(&night), hot(&night));
}
