//! Both shells play the same night.

use super::*;
use crate::trace::Step;

/// Takes every resourceVersion and uid out: at one instant, two clients may come in another order.
fn without_versions(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "resourceVersion" | "uid"))
            .map(|(key, value)| (key.clone(), without_versions(value)))
            .collect(),
        Value::Array(values) => values.iter().map(without_versions).collect(),
        other => other.clone(),
    }
}

/// The name of an Event ends with a dot and a hash of 16 digits, over the record's uid too.
fn without_hashes(line: &str) -> String {
    let mut pieces = line.split('.');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |line, piece| {
        let digits = piece.chars().take_while(char::is_ascii_hexdigit).count();
        line + "." + if digits == 16 { &piece[16..] } else { piece }
    })
}

/// What each client, the world among them, wrote: when, what, with what answer and what effect.
fn writes(night: &Night) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let uid = night.record.as_ref().and_then(|record| record.metadata.uid.clone()).expect("the record is there");
    for step in night.history.steps.iter().filter(|step| !matches!(step.verb, "get" | "list" | "watch")) {
        let Step { at, verb, path, code, .. } = step;
        let body = step.body.as_ref().map_or(Value::Null, |body| without_versions(body));
        let changed: Vec<&str> = step.changes.iter().map(|change| change.key.name.as_str()).collect();
        let line = format!("{at} {verb} {path} {code} {body} {changed:?}").replace(&uid, "UID");
        found.entry(step.client.clone()).or_default().push(without_hashes(&line));
    }
    // A replica's own tasks, too, may come in another order at one instant; lines begin with it.
    for lines in found.values_mut() {
        lines.sort();
    }
    found
}

/// Where a person's word comes at the very instant of a look: whether the look still misses it is a matter of order. So
/// it is whether the replica on the target sees the new record before it leads, and abstains, or only then.
const AT_ONE_INSTANT: &[&str] = &["cancelled", "halted", "on-hold", "leader-on-target"];

#[test]
fn every_scenario_is_the_same_night_in_both_shells() {
    let (mut compared, mut ends) = (0, 0);
    for scenario in SCENARIOS {
        let plan = Plan { seed: 1, ..Plan::default() };
        let (api, typed) = (night_in(Shell::Api, scenario, &plan), night_in(Shell::Typed, scenario, &plan));
        let name = scenario.name;
        assert_eq!(typed.end, api.end, "{name}");
        assert_eq!(typed.violations, Vec::new(), "{name}");
        ends += 1;
        if AT_ONE_INSTANT.contains(&name) {
            continue;
        }
        let (left, right) = (writes(&api), writes(&typed));
        for (client, left) in &left {
            let right = right.get(client).map_or(&[][..], Vec::as_slice);
            let first = left.iter().zip(right).find(|(left, right)| left != right);
            assert_eq!(first, None, "{name}, {client}");
            assert_eq!(left.len(), right.len(), "{name}, {client}");
            compared += left.len();
        }
    }
    println!("{compared} writes compared");
    assert!(ends == SCENARIOS.len() && compared > 500, "{ends} {compared}");
}
