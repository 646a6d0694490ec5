//! Every scenario ends exactly as it must, and breaks no invariant on the way.

use super::*;

/// What differs from what the scenario says.
fn differences(scenario: &Scenario, night: &KuredNight) -> Vec<String> {
    let mut found = Vec::new();
    let mut differ = |what: &str, seen: String, wanted: String| {
        if seen != wanted {
            found.push(format!("{what}: {seen}, wanted {wanted}"));
        }
    };
    let mut ends: Vec<(String, String, String)> =
        night.runs().into_iter().map(|run| (run.node, run.phase, run.outcome)).collect();
    // By node, and of one node by creation.
    ends.sort_by(|a, b| a.0.cmp(&b.0));
    let wanted: Vec<(String, String, String)> =
        scenario.ends.iter().map(|(a, b, c)| ((*a).to_owned(), (*b).to_owned(), (*c).to_owned())).collect();
    differ("records", format!("{ends:?}"), format!("{wanted:?}"));
    if let Some(order) = scenario.order {
        differ("order", format!("{:?}", night.order()), format!("{order:?}"));
    }
    differ("boots", format!("{:?}", night.boots.values().collect::<Vec<_>>()), format!("{:?}", scenario.boots));
    differ("grants and closings", format!("{:?}", (night.grants, night.closings)), format!("{:?}", scenario.grants));
    let status = night.reports.first().and_then(|report| report.status.clone()).unwrap_or_default();
    differ("verdict", status.verdict.clone(), scenario.verdict.to_owned());
    let text = status.outbox.first().map(|entry| entry.text.clone()).unwrap_or_default();
    for part in scenario.says {
        differ(&format!("the report says `{part}`"), text.contains(part).to_string(), "true".to_owned());
    }
    let lock = night.lock.clone().unwrap_or_default();
    let as_wanted = if scenario.lock.is_empty() { lock.is_empty() } else { lock.contains(scenario.lock) };
    if !as_wanted {
        found.push(format!("the lock is `{lock}`, wanted `{}`", scenario.lock));
    }
    for (what, holds) in [
        ("it came to rest", night.at_rest),
        ("one report, delivered", night.reports.len() == 1 && night.delivered.iter().any(|kind| kind == "report")),
        ("nothing is cordoned", night.cordoned.is_empty()),
        ("no invariant was broken", night.violations.is_empty()),
    ] {
        if !holds {
            found.push(format!("not so: {what}"));
        }
    }
    found
}

fn check(name: &str) -> KuredNight {
    let scenario = Scenario::named(name).expect("a scenario");
    let night = night(scenario, &Plan { seed: 1, ..Plan::default() });
    let found = differences(scenario, &night);
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
            let found = differences(scenario, &night);
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

/// Prints one night for people: `MAINT_SIM_KURED_NIGHT=withdrawn cargo test -p maint-sim one_kured_night -- --nocapture`.
#[test]
fn one_kured_night_can_be_read() {
    let name = std::env::var("MAINT_SIM_KURED_NIGHT").unwrap_or_else(|_| "in-order".to_owned());
    println!("{}", check(&name).story());
}
