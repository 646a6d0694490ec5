//! The hunt for planted bugs: for each of them nights are played, on which the true code is clean, until a check
//! complains. So the checks of the simulated cluster are checked.
//!
//! `cargo test --release -p maint-sim --features planted planted -- --nocapture`. A hunt begins at a seed that is known
//! to meet the bug; `MAINT_SIM_PLANTED_FIRST=1` begins at the first one, `MAINT_SIM_PLANTED=evicts-by-name` hunts for one
//! bug alone, and `MAINT_SIM_PLANTED_IN` looks for it in other nights: `plain drain`, `crash drain`, `slow drain`,
//! `kured in-order`, `kured-by-chance`, `sweep plain`.

mod hunts;
mod scenarios;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use maint_core::planted::{Bug, plant};

use crate::faults::{Chances, Fault};
use crate::invariants::{INVARIANTS, Violation};
use crate::kinds::Family;
use crate::night::kured::{self, Chaos};
use crate::night::{self, Plan, REPLICAS, Scenario, Shell};
use crate::sweep::{self, Drawn};

use hunts::HUNTS;

/// Nights by chance that are played for one bug at most.
const NIGHTS: u64 = 2_000;
/// The same of a scenario, whose nights differ by little.
const OF_A_SCENARIO: u64 = 10;
/// A leader has no more writes than that.
const WRITES: u64 = 60;

/// Which nights are played for a bug; what a seed is in them.
#[derive(Debug, Clone, Copy)]
enum Nights {
    /// A scenario with nothing by chance but its identities.
    Plain(&'static str),
    /// A scenario in which the first leader dies at its write of that number.
    Crash(&'static str),
    /// A scenario whose requests are often answered late, by chance.
    Slow(&'static str),
    /// A scenario with kured.
    Kured(&'static str),
    /// kured by chance: the night of a seed.
    KuredChance,
    /// The nights of a seed that `maint sim` plays, those of one family.
    Sweep(Family),
}

/// A hunt for one bug.
struct Hunt {
    bug: Bug,
    nights: Nights,
    /// A seed that is known to meet it.
    first: u64,
}

/// What broke: the invariants, and the first sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Broken {
    ids: BTreeSet<&'static str>,
    what: String,
}

/// Takes the bug out again, whatever happens to the night.
struct Planted;

impl Drop for Planted {
    fn drop(&mut self) {
        plant(None);
    }
}

impl Nights {
    /// The nights of a text, as a person asks for them.
    fn parse(text: &'static str) -> Option<Self> {
        let (kind, name) = text.split_once(' ').unwrap_or((text, ""));
        Some(match kind {
            "plain" => Self::Plain(name),
            "crash" => Self::Crash(name),
            "slow" => Self::Slow(name),
            "kured" => Self::Kured(name),
            "kured-by-chance" => Self::KuredChance,
            "sweep" => Self::Sweep(*Family::ALL.iter().find(|family| family.name() == name)?),
            _ => return None,
        })
    }

    /// How many are played for one bug at most.
    const fn most(self) -> u64 {
        match self {
            Self::Plain(_) | Self::Kured(_) => OF_A_SCENARIO,
            Self::Crash(_) => WRITES,
            Self::Slow(_) | Self::KuredChance | Self::Sweep(_) => NIGHTS,
        }
    }

    /// Plays the night of a seed; none where these nights have none of it.
    fn play(self, bug: Option<Bug>, seed: u64) -> Option<Broken> {
        plant(bug);
        let _planted = Planted;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime");
        let plain = Plan { seed, ..Plan::default() };
        let violations: Vec<Violation> = match self {
            Self::Plain(name) => runtime.block_on(night::play(Shell::Typed, named(name), &plain)).violations,
            Self::Crash(name) => {
                let plan = Plan { seed: 1, script: vec![(REPLICAS[0], seed, Fault::StopUnanswered)], ..plain };
                runtime.block_on(night::play(Shell::Typed, named(name), &plan)).violations
            }
            Self::Slow(name) => {
                let chances = Chances { delay: 300, ..Chances::default() };
                let plan = Plan { chances, chaos: Duration::from_secs(900), ..plain };
                runtime.block_on(night::play(Shell::Typed, named(name), &plan)).violations
            }
            Self::Kured(name) => {
                let own = scenarios::KURED.iter().find(|scenario| scenario.name == name);
                let scenario =
                    own.or_else(|| kured::Scenario::named(name)).unwrap_or_else(|| panic!("no scenario {name}"));
                runtime.block_on(kured::play(Shell::Typed, scenario, &plain)).violations
            }
            Self::KuredChance => runtime.block_on(kured::play_by_chance(Shell::Typed, &Chaos::of(seed))).violations,
            Self::Sweep(family) => {
                let drawn = Drawn::of(seed);
                if drawn.family != family {
                    return None;
                }
                let outcome = sweep::play(Shell::Typed, &drawn, false).expect("a runtime");
                let wrongs = outcome.wrongs.into_iter();
                wrongs.filter_map(|wrong| Some((known(&wrong.rule)?, wrong.what))).map(of_sweep).collect()
            }
        };
        let ids = violations.iter().map(|violation| violation.invariant).collect();
        let what = violations.first().map(|violation| violation.what.clone()).unwrap_or_default();
        Some(Broken { ids, what })
    }
}

fn of_sweep((invariant, what): (&'static str, String)) -> Violation {
    Violation { invariant, step: 0, what }
}

/// The name of an invariant; none for what else can be wrong with an end.
fn known(rule: &str) -> Option<&'static str> {
    INVARIANTS.iter().map(|one| one.id).find(|id| *id == rule)
}

fn named(name: &str) -> &'static Scenario {
    let own = scenarios::SCENARIOS.iter().find(|scenario| scenario.name == name);
    own.or_else(|| Scenario::named(name)).unwrap_or_else(|| panic!("no scenario {name}"))
}

/// How a hunt ended.
struct Caught {
    seed: u64,
    nights: u64,
    broken: Broken,
}

/// Plays nights until a check complains of one on which the true code is clean.
fn hunt(bug: Bug, place: Nights, first: u64, dirty: &mut Vec<String>) -> Option<Caught> {
    let mut nights = 0;
    for seed in first..first + place.most() {
        let Some(broken) = place.play(Some(bug), seed) else { continue };
        nights += 1;
        if broken.ids.is_empty() {
            continue;
        }
        match place.play(None, seed) {
            Some(clean) if clean.ids.is_empty() => return Some(Caught { seed, nights, broken }),
            other => dirty.push(format!("{place:?}, seed {seed}: {other:?}")),
        }
    }
    None
}

#[test]
fn planted_bugs_are_found_and_every_invariant_finds_one() {
    let only = std::env::var("MAINT_SIM_PLANTED").ok();
    let first = std::env::var("MAINT_SIM_PLANTED_FIRST").ok().map(|text| text.parse::<u64>().expect("a number"));
    let mut by_id: BTreeMap<&str, usize> = INVARIANTS.iter().map(|one| (one.id, 0)).collect();
    let place: Option<Nights> = std::env::var("MAINT_SIM_PLANTED_IN").ok().map(|text| {
        let text: &'static str = text.leak();
        Nights::parse(text).unwrap_or_else(|| panic!("no such nights: {text}"))
    });
    let (mut caught, mut missed, mut dirty) = (0, Vec::new(), Vec::new());
    let hunts: Vec<&Hunt> =
        HUNTS.iter().filter(|one| only.as_deref().is_none_or(|only| only == one.bug.name())).collect();
    assert!(!hunts.is_empty(), "there is no bug {only:?}");
    for one in &hunts {
        let (name, about) = (one.bug.name(), one.bug.about());
        let place = place.unwrap_or(one.nights);
        let Some(found) = hunt(one.bug, place, first.unwrap_or(one.first), &mut dirty) else {
            println!("planted {name}: NOT FOUND in {place:?} ({about})");
            missed.push(name);
            continue;
        };
        caught += 1;
        let Caught { seed, nights, broken } = found;
        let ids = broken.ids.iter().copied().collect::<Vec<_>>().join(" ");
        println!(
            "planted {name}: {ids} at seed {seed} of {:?}, night {nights} of this hunt ({about}): {}",
            place, broken.what
        );
        for id in &broken.ids {
            *by_id.entry(id).or_default() += 1;
        }
    }
    println!("figure planted.total {} bugs", hunts.len());
    println!("figure planted.caught {caught} bugs");
    let silent: Vec<&str> = by_id.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
    println!("figure planted.invariants {} count", by_id.len() - silent.len());
    println!("each invariant was broken by so many bugs: {by_id:?}");
    assert_eq!(dirty, Vec::<String>::new(), "the true code is not clean on these nights");
    assert_eq!(missed, Vec::<&str>::new());
    if only.is_none() {
        assert_eq!(silent, Vec::<&str>::new(), "no planted bug breaks these");
    }
}

/// A bug that nobody hunts proves nothing, and a name is one bug's.
#[test]
fn every_planted_bug_is_hunted_once() {
    let mut hunted: Vec<Bug> = HUNTS.iter().map(|hunt| hunt.bug).collect();
    hunted.sort_unstable();
    assert_eq!(hunted, Bug::ALL);
    let names: BTreeSet<&str> = Bug::ALL.iter().map(|bug| bug.name()).collect();
    assert_eq!(names.len(), Bug::ALL.len());
    assert!(Bug::ALL.len() >= 30);
}

/// The scenarios of the hunt end as they must with the true code, and break nothing.
#[test]
fn planted_nothing_the_scenarios_of_the_hunt_end_as_they_must() {
    plant(None);
    for scenario in scenarios::SCENARIOS {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let night = runtime.expect("a runtime").block_on(night::play(
            Shell::Typed,
            scenario,
            &Plan { seed: 1, ..Plan::default() },
        ));
        let (name, end) = (scenario.name, &night.end);
        println!("{name}: {} virtual seconds", night.seconds);
        assert_eq!((end.phase.as_str(), end.outcome.as_str()), scenario.ends, "{name}: {}", night.story());
        assert_eq!((end.boots, end.unschedulable), (scenario.boots, scenario.cordoned), "{name}");
        assert_eq!(night.violations, Vec::new(), "{name}: {}", night.story());
    }
    for scenario in scenarios::KURED {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let plan = Plan { seed: 1, ..Plan::default() };
        let night = runtime.expect("a runtime").block_on(kured::play(Shell::Typed, scenario, &plan));
        let found = scenario.differences(&night);
        assert!(found.is_empty(), "{}: {found:#?}\n{}", scenario.name, night.story());
    }
}
