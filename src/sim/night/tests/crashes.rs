//! Crash points: a replica that dies at any of its writes changes nothing about the end.

use super::*;

/// The three ways to die at a write.
const MODES: [Fault; 3] = [Fault::StopBefore, Fault::StopUnanswered, Fault::StopAnswered];

/// Every write of the leader of a scenario, times three modes; answers how many points there were.
fn sweep(name: &str) -> u64 {
    let scenario = Scenario::named(name).expect("a scenario");
    let whole = night(scenario, &Plan { seed: 1, ..Plan::default() });
    let writes = whole.writes[REPLICAS[0]];
    assert!(writes > 20 && whole.violations.is_empty(), "{name}: {writes}");
    let mut points = 0;
    for k in 1..=writes {
        for mode in MODES {
            let plan = Plan { seed: 1, script: vec![(REPLICAS[0], k, mode)], ..Plan::default() };
            let night = night(scenario, &plan);
            let row =
                || format!("{name}, {mode:?} at write {k} ({})\n{}", point(&night, REPLICAS[0], k), story(&night));
            assert_eq!(night.hits.values().sum::<u64>(), 1 + u64::from(mode == Fault::StopAnswered), "{}", row());
            assert_eq!(night.end, whole.end, "{}", row());
            assert_eq!(night.violations, Vec::new(), "{}", row());
            points += 1;
        }
    }
    points
}

/// The k-th write of a replica.
fn point(night: &Night, client: &str, k: u64) -> String {
    let verbs = ["create", "update", "patch", "delete"];
    let mut writes = night.history.steps.iter().filter(|step| step.client == client && verbs.contains(&step.verb));
    let at = usize::try_from(k - 1).unwrap_or(usize::MAX);
    writes.nth(at).map_or_else(String::new, crate::trace::Step::line)
}

#[test]
fn a_crash_at_any_write_changes_nothing_about_the_end() {
    let points: u64 = std::thread::scope(|scope| {
        let sweeps = ["held", "back-out", "drain", "cordon-only", "cancelled"];
        let running = sweeps.map(|name| scope.spawn(move || sweep(name)));
        running.into_iter().map(|sweep| sweep.join().expect("no row failed")).sum()
    });
    println!("figure crash_points {points} points");
}

/// The replica on the target takes an expired Lease before commit: then it puts back, and nothing is left of the run.
fn was_put_back(night: &Night) -> bool {
    let end = &night.end;
    let left = end.unschedulable || end.finalizer || end.action_pods > 0 || end.boots > 0;
    (end.phase.as_str(), end.outcome.as_str()) == ("Failed", "LeaderOnTarget") && !left
}

#[test]
fn a_crash_at_any_write_of_a_hand_over_ends_well() {
    let scenario = Scenario::named("leader-on-target").expect("a scenario");
    let whole = night(scenario, &Plan { seed: 1, ..Plan::default() });
    for name in REPLICAS {
        println!("{name}: {} writes", whole.writes[name]);
        (1..=whole.writes[name].min(6)).for_each(|k| println!("  {}", point(&whole, name, k)));
        assert!(whole.writes[name] > 4, "both lead: {:?}", whole.writes);
    }
    let (mut points, mut put_back) = (0, 0);
    for client in REPLICAS {
        for k in 1..=whole.writes[client] {
            for mode in MODES {
                let plan = Plan { seed: 1, script: vec![(client, k, mode)], ..Plan::default() };
                let night = night(scenario, &plan);
                let row =
                    || format!("{client}, {mode:?} at write {k} ({})\n{}", point(&night, client, k), story(&night));
                assert_eq!(night.violations, Vec::new(), "{}", row());
                let gone_on = night.end.phase == "Succeeded" && night.end.boots == 1 && !night.end.unschedulable;
                assert!(gone_on || was_put_back(&night), "{}", row());
                points += 1;
                put_back += u64::from(!gone_on);
            }
        }
    }
    println!("figure sim.hand_over_crash_points {points} points");
    println!("figure sim.hand_over_put_back {put_back} points");
}
