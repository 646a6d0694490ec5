//! A leader that stands still for longer than its lease, with a request on the wire, and goes on.

use super::*;
use crate::trace::Step;

/// Whether a step is a write of a client that arrived, other than of the Lease and of Events, which need none.
fn wrote(step: &Step, client: &str) -> bool {
    let write = matches!(step.verb, "create" | "update" | "patch" | "delete");
    step.client == client && write && step.code != 0 && !matches!(step.resource.as_str(), "leases" | "events")
}

/// The old leader's writes that arrive although the new one has written already.
fn late(night: &Night) -> Vec<&Step> {
    let steps = &night.history.steps;
    let Some(first) = steps.iter().position(|step| wrote(step, REPLICAS[1])) else { return Vec::new() };
    steps.iter().skip(first).filter(|step| wrote(step, REPLICAS[0])).collect()
}

fn is_eviction(step: &Step) -> bool {
    step.subresource == "eviction"
}

#[test]
fn an_old_leader_that_goes_on_changes_nothing() {
    let (mut points, mut arrived) = (0, 0);
    for name in ["drain", "back-out"] {
        let scenario = Scenario::named(name).expect("a scenario");
        let whole = night(scenario, &Plan { seed: 1, ..Plan::default() });
        for k in 1..=whole.writes[REPLICAS[0]] {
            let plan = Plan { seed: 1, script: vec![(REPLICAS[0], k, Fault::Freeze)], ..Plan::default() };
            let night = night(scenario, &plan);
            let late = late(&night);
            let lines: Vec<String> = late.iter().map(|step| step.line()).collect();
            let row = || format!("{name}, frozen at write {k}: late {lines:#?}\n{}", story(&night));
            // Evictions of one batch are on the wire together; of anything else there is one.
            assert!(late.len() <= 1 || late.iter().all(|step| is_eviction(step)), "{}", row());
            for step in &late {
                assert!(step.code >= 400 || is_eviction(step), "{}", row());
            }
            // An eviction that arrives late hits a pod that was to go anyway, and nothing else is done.
            let other = night.violations.iter().filter(|found| !late.iter().any(|step| step.number == found.step));
            assert_eq!(other.collect::<Vec<_>>(), Vec::<&Violation>::new(), "{}", row());
            assert_eq!(night.end, whole.end, "{}", row());
            points += 1;
            arrived += late.len();
        }
    }
    assert!(arrived > 20, "requests must arrive late for this to say anything: {arrived}");
    println!("{arrived} requests of the old leader arrived after the new one had written");
    println!("figure sim.frozen_points {points} points");
}
