//! Every scenario ends as it must, and breaks no invariant on the way.

use super::*;

/// The phases that the record went through.
fn phases(night: &Night) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for change in night.history.steps.iter().flat_map(|step| &step.changes) {
        if change.key.resource.resource != "maintenances" {
            continue;
        }
        let Some(record) = &change.after else { continue };
        let phase = object::text(record, "/status/phase");
        if !phase.is_empty() && found.last().is_none_or(|last| last != phase) {
            found.push(phase.to_owned());
        }
    }
    found
}

#[test]
fn every_scenario_ends_as_it_must() {
    for scenario in SCENARIOS {
        let night = night(scenario, &Plan { seed: 1, ..Plan::default() });
        let (name, end) = (scenario.name, &night.end);
        println!("{name}: {} virtual seconds, writes {:?}", night.seconds, night.writes);
        assert_eq!((end.phase.as_str(), end.outcome.as_str()), scenario.ends, "{name}: {}", story(&night));
        assert_eq!(phases(&night), scenario.phases, "{name}: {}", story(&night));
        assert_eq!(end.boots, scenario.boots, "{name}");
        assert_eq!(!end.evicted.is_empty(), scenario.evicts, "{name}");
        assert_eq!(end.unschedulable, scenario.cordoned, "{name}");
        assert_eq!(end.proven, end.phase == "Succeeded", "{name}");
        assert!(!end.annotations.contains("maint.dev/owner"), "{name}: {end:#?}");
        assert!(end.others_untouched && end.action_pods == 0 && !end.finalizer, "{name}: {end:#?}");
        assert_eq!(night.violations, Vec::new(), "{name}");
    }
}

/// Prints one night for people: `MAINT_SIM_NIGHT=drain cargo test -p maint-sim one_night -- --nocapture`; with
/// `MAINT_SIM_SHELL=typed` in the typed shell.
#[test]
fn one_night_can_be_read() {
    let name = std::env::var("MAINT_SIM_NIGHT").unwrap_or_else(|_| "drain".to_owned());
    let scenario = Scenario::named(&name).expect("a scenario");
    let typed = std::env::var("MAINT_SIM_SHELL").is_ok_and(|shell| shell == "typed");
    let shell = if typed { Shell::Typed } else { Shell::Api };
    let night = night_in(shell, scenario, &Plan { seed: 1, ..Plan::default() });
    println!("{}\n{}", night.log().join("\n"), story(&night));
    assert!(night.violations.is_empty(), "{:#?}", night.violations);
}
