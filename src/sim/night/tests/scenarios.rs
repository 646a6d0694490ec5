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

/// Plays a scenario and checks its end.
pub(super) fn check(scenario: &Scenario) -> Night {
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
    night
}

#[test]
fn every_scenario_ends_as_it_must() {
    for scenario in SCENARIOS {
        check(scenario);
    }
}

#[test]
fn unattended_nights_keep_to_their_window() {
    let turns = |night: &Night, phase: &str| {
        let status = night.record.as_ref().and_then(|record| record.status.clone()).expect("a status");
        let entry = status.timeline.iter().find(|entry| entry.phase == phase);
        entry.unwrap_or_else(|| panic!("never {phase}: {}", story(night))).at.clone()
    };
    // It wakes at the very second, without having looked every few seconds before.
    let opens = check(Scenario::named("window-opens").expect("a scenario"));
    assert_eq!(turns(&opens, "Cordoning"), "2026-11-30T02:03:00Z", "{}", story(&opens));
    let window = opens.record.as_ref().and_then(|record| record.status.as_ref()?.window.clone()).expect("a window");
    assert_eq!((window.opening.as_str(), window.ends_at.as_str()), ("night-2026-11-30", "2026-11-30T06:00:00Z"));
    let closes = check(Scenario::named("window-closes").expect("a scenario"));
    let backed_out = turns(&closes, "BackingOut");
    assert!(
        ("2026-11-30T02:02:00Z".."2026-11-30T02:02:05Z").contains(&backed_out.as_str()),
        "{backed_out}: {}",
        story(&closes)
    );
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
