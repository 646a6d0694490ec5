//! Nights whose drain is hard: each ends as it must, and chance breaks nothing.

use super::scenarios::check;
use super::*;
use crate::faults::EvictionChances;
use crate::night::troubles::Trouble;
use crate::sweep::{hot, wrongs};

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

/// A scenario whose drain only waits, for ten minutes.
const WAITS: fn() -> Scenario = || Scenario {
    name: "waits",
    configure: |settings| settings.run.drain_timeout_seconds = 600,
    ..*Scenario::named("back-out").expect("a scenario")
};

/// While nothing changes a drain looks at a pace and writes nothing: no request follows the last one at once.
#[test]
fn a_drain_that_waits_costs_few_requests_and_no_writes() {
    const MINUTES: i64 = 8;
    let night = night(&WAITS(), &Plan { seed: 1, ..Plan::default() });
    let turned = |phase: &str| {
        let status = night.record.as_ref().and_then(|record| record.status.clone()).expect("a status");
        let entry = status.timeline.iter().find(|entry| entry.phase == phase).expect("the phase");
        entry.at.parse::<Timestamp>().expect("a time")
    };
    // The pods that may go are gone by the second minute.
    let (from, to) = (turned("Draining") + jiff::SignedDuration::from_mins(1), turned("BackingOut"));
    let to = to.min(from + jiff::SignedDuration::from_mins(MINUTES));
    assert_eq!(to.duration_since(from).as_secs(), MINUTES * 60, "{}", story(&night));
    let of_service =
        |step: &&crate::trace::Step| step.at >= from && step.at < to && REPLICAS.contains(&step.client.as_str());
    let steps: Vec<&crate::trace::Step> = night.history.steps.iter().filter(of_service).collect();
    let leases = |step: &&&crate::trace::Step| step.resource == "leases" && step.name == "maint";
    let requests = steps.iter().filter(|step| !leases(step)).count();
    let evictions = steps.iter().filter(|step| step.subresource == "eviction").count();
    let writes = steps.iter().filter(|step| !leases(step) && step.body.is_some()).count();
    let a_minute = requests / usize::try_from(MINUTES).expect("few");
    println!("figure drain.waiting.requests_per_minute {a_minute} 1/min");
    println!("figure drain.waiting.writes {writes} writes");
    assert_eq!(evictions, 0, "what must be refused is not sent");
    assert!(writes <= 2, "{writes} writes: {:#?}", steps.iter().filter(|step| step.body.is_some()).collect::<Vec<_>>());
    assert!(a_minute <= 400, "{a_minute} requests a minute");
}

/// One node's drain fails and is put back; then a person asks for another node, and that one is drained and proven.
#[test]
fn after_a_drain_that_failed_another_node_can_be_drained() {
    const LATER: &str = "n2-later";
    let key = || ObjectKey::new("maint.dev", "maintenances", "", LATER);
    let scenario = Scenario {
        name: "another-node-later",
        script: |stage| {
            Box::pin(async move {
                let person = Person::new(stage, "person");
                person.asks("reboot", "pod", false).await;
                while !stage.is_at_rest() {
                    sleep(Duration::from_millis(250)).await;
                }
                person.asks_for(LATER, "n2").await;
                let ended = |stage: &Stage| {
                    let record = stage.object(&ObjectKey::new("maint.dev", "maintenances", "", LATER));
                    record.is_some_and(|record| record.at("/metadata/finalizers/0").is_none() && over(&record))
                };
                while !ended(stage) {
                    sleep(Duration::from_millis(250)).await;
                }
            })
        },
        ..*Scenario::named("back-out").expect("a scenario")
    };
    let night = night(&scenario, &Plan { seed: 1, ..Plan::default() });
    assert_eq!(
        (night.end.phase.as_str(), night.end.outcome.as_str()),
        ("Failed", "DrainDeadline"),
        "{}",
        story(&night)
    );
    assert!(!night.end.unschedulable, "put back");
    let changes = night.history.steps.iter().flat_map(|step| &step.changes);
    let mut later = changes.filter(|change| change.key == key()).filter_map(|change| change.after.clone());
    let later = later.next_back().expect("the second record");
    let (phase, outcome) = (object::text(&later, "/status/phase"), object::text(&later, "/status/outcome"));
    assert_eq!((phase, outcome), ("Succeeded", "Proven"), "{later:#}");
    assert_eq!(night.violations, Vec::new());
}

/// Where two nodes may be away, two workers are drained at the same time, under budgets that both have pods of.
#[test]
fn two_workers_are_drained_at_once_where_two_may_be_away() {
    const OTHER: &str = "w2-too";
    let scenario = Scenario {
        name: "two-at-once",
        prepare: |inner, now| {
            for (index, name) in ["w1", "w2"].into_iter().enumerate() {
                let address = format!("10.0.0.{}", 4 + index);
                let node = crate::world::fixture::node(name, &address, false, &format!("boot-of-{name}"), now);
                inner.store.seed(node, now);
            }
            Trouble::Crowd { replicas: 12, start: 8 }.prepare(inner, now);
        },
        configure: |settings| {
            settings.limits.max_unavailable = 2;
            settings.run.drain_timeout_seconds = 600;
        },
        script: |stage| {
            Box::pin(async move {
                let person = Person::new(stage, "person");
                person.asks_for(RECORD, "w1").await;
                person.asks_for(OTHER, "w2").await;
                let ended = |stage: &Stage| {
                    let other = stage.object(&ObjectKey::new("maint.dev", "maintenances", "", OTHER));
                    other.is_some_and(|record| record.at("/metadata/finalizers/0").is_none() && over(&record))
                };
                while !ended(stage) {
                    sleep(Duration::from_millis(250)).await;
                }
            })
        },
        ..*Scenario::named("drain").expect("a scenario")
    };
    for seed in 1..=5 {
        let night = night(&scenario, &Plan { seed, ..Plan::default() });
        let (one, other) = (drained(&night, RECORD), drained(&night, OTHER));
        assert!(one.0 < other.1 && other.0 < one.1, "seed {seed}: {one:?} {other:?}\n{}", story(&night));
        assert_eq!((night.violations.clone(), hot(&night)), (Vec::new(), Vec::new()), "seed {seed}");
        assert!(night.end.evicted.len() >= 4, "seed {seed}: {:?}", night.end.evicted);
    }
}

fn over(record: &serde_json::Value) -> bool {
    matches!(object::text(record, "/status/phase"), "Succeeded" | "Failed" | "Cancelled")
}

/// From when to when a node was drained by a run that proved it in the end.
fn drained(night: &Night, record: &str) -> (Timestamp, Timestamp) {
    let key = ObjectKey::new("maint.dev", "maintenances", "", record);
    let changes = night.history.steps.iter().flat_map(|step| &step.changes);
    let last = changes.filter(|change| change.key == key).filter_map(|change| change.after.clone()).next_back();
    let last: maint_core::api::record::Maintenance =
        serde_json::from_value(serde_json::Value::clone(&last.expect("a record"))).expect("it is one");
    let status = last.status.expect("a status");
    assert_eq!((status.phase.as_str(), status.outcome.as_str()), ("Succeeded", "Proven"), "{record}: {status:#?}");
    let at = |phase: &str| {
        let entry = status.timeline.iter().find(|entry| entry.phase == phase).expect("the phase");
        entry.at.parse::<Timestamp>().expect("a time")
    };
    (at("Draining"), at("Acting"))
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

#[test]
fn chance_over_drains_breaks_nothing() {
    let (first, nights) = (asked_for("MAINT_SIM_DRAIN_FIRST", 0), asked_for("MAINT_SIM_DRAIN_NIGHTS", NIGHTS));
    let (mut bad, mut evicted) = (Vec::new(), 0);
    let mut ends: BTreeMap<String, u64> = BTreeMap::new();
    let mut hits: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in first..first + nights {
        let (scenario, plan) = by_seed(seed);
        let night = night_in(Shell::Typed, scenario, &plan);
        let (wrongs, hot) = (wrongs(&night), hot(&night));
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
    if nights >= NIGHTS {
        // Else nothing was tried.
        assert!(evicted > 0 && ends.contains_key("Succeeded Proven"), "{ends:?}");
        for kind in
            ["hang-after", "lose-answer", "on-an-eviction", "refuse-409", "refuse-429", "refuse-503", "refuse-504"]
        {
            assert!(hits.contains_key(kind), "{kind} hit nobody: {hits:?}");
        }
    }
}

/// Prints the night of a seed for people: `MAINT_SIM_DRAIN_SEED=17 cargo test -p maint-sim the_drain_of_a_seed --
/// --nocapture`.
#[test]
fn the_drain_of_a_seed_can_be_read_and_is_the_same_again() {
    let (scenario, plan) = by_seed(asked_for("MAINT_SIM_DRAIN_SEED", 1));
    let (night, again) = (night_in(Shell::Typed, scenario, &plan), night_in(Shell::Typed, scenario, &plan));
    assert_eq!(night.hash, again.hash);
    println!("{} {:?}\n{}\n{}", scenario.name, plan, night.log().join("\n"), story(&night));
    println!("{:?} {:?}", wrongs(&night), hot(&night));
}
