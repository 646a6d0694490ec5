//! Every scenario ends exactly as it must, and breaks no invariant on the way.

use super::*;

fn check(name: &str) -> KuredNight {
    let scenario = Scenario::named(name).expect("a scenario");
    let night = night(scenario, &Plan { seed: 1, ..Plan::default() });
    let found = scenario.differences(&night);
    assert!(found.is_empty(), "{name}: {found:#?}\n{:#?}\n{}", night.violations, night.story());
    night
}

#[test]
fn every_scenario_with_kured_ends_as_it_must() {
    let play = |half: usize| {
        let mut bad = Vec::new();
        for scenario in SCENARIOS.iter().skip(half).step_by(2) {
            let night = night(scenario, &Plan { seed: 1, ..Plan::default() });
            println!("{}: {} virtual seconds, {} steps", scenario.name, night.seconds, night.history.steps.len());
            let found = scenario.differences(&night);
            if !found.is_empty() {
                let violations = &night.violations;
                bad.push(format!("{}: {found:#?}\n{violations:#?}\n{}", scenario.name, night.story()));
            }
        }
        bad
    };
    let bad: Vec<String> = std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| scope.spawn(move || play(half)));
        halves.into_iter().flat_map(|half| half.join().expect("no panic")).collect()
    });
    println!("figure kured.scenarios {} count", SCENARIOS.len());
    assert!(bad.is_empty(), "{}", bad.join("\n\n"));
}

/// Nobody waits for the messages of the run before it, or until it looks again by itself.
#[test]
fn the_next_node_begins_as_soon_as_the_run_before_it_is_over() {
    for name in ["in-order", "nobody-hears"] {
        let night = check(name);
        let at = |phase: &str| {
            let entries = night.records.iter().flat_map(|record| record.status.iter().flat_map(|one| &one.timeline));
            let mut at: Vec<Timestamp> =
                entries.filter(|entry| entry.phase == phase).map(|entry| entry.at.parse().expect("a time")).collect();
            at.sort();
            at
        };
        let gaps: Vec<i64> = std::iter::zip(at("Succeeded"), at("Cordoning").into_iter().skip(1))
            .map(|(over, next)| next.duration_since(over).as_secs())
            .collect();
        assert!(gaps.len() == 2 && gaps.iter().all(|gap| (0..=5).contains(gap)), "{name}: {gaps:?}\n{}", night.story());
    }
}

/// Prints one night for people: `MAINT_SIM_KURED_NIGHT=withdrawn cargo test -p maint-sim one_kured_night -- --nocapture`.
#[test]
fn one_kured_night_can_be_read() {
    let name = std::env::var("MAINT_SIM_KURED_NIGHT").unwrap_or_else(|_| "in-order".to_owned());
    println!("{}", check(&name).story());
}
