//! What many nights came to, for people and for programs.

use std::fmt::Write as _;

use maint_core::api::names;
use maint_sim::kinds::FaultKind;
use maint_sim::night::Shell;
use maint_sim::sweep::{Drawn, Outcome, Shrunk, Wrong};
use serde_json::{Value, json};

use super::work::{Work, Worked};

/// Seconds, for people.
fn seconds(time: std::time::Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

const fn shell(shell: Shell) -> &'static str {
    match shell {
        Shell::Api => "api",
        Shell::Typed => "typed",
    }
}

/// The command that plays a night again and tells it.
fn again(work: &Work, seed: u64) -> String {
    let flag = if work.shell == Shell::Api { " --api-shell" } else { "" };
    format!("maint sim --nights 1 --seed {seed}{flag}")
}

fn names_of(drawn: &Drawn) -> String {
    let names: Vec<&str> = drawn.kinds.iter().map(|kind| kind.name()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn line(wrong: &Wrong) -> String {
    let step = wrong.step.map(|step| format!(" at step {step}")).unwrap_or_default();
    format!("{}{step}: {}", wrong.rule, wrong.what)
}

/// The whole answer: verdict first.
pub fn text(work: &Work, worked: &Worked) -> String {
    let tally = &worked.tally;
    let mut text = String::new();
    let verdict = match (tally.bad.len(), worked.interrupted) {
        (0, false) => "fine: nothing was broken".to_owned(),
        (0, true) => "interrupted: nothing was broken so far".to_owned(),
        (bad, _) => format!("BAD: {bad} of the nights"),
    };
    let _ = writeln!(text, "{verdict} in {} nights, seeds {} to {}", tally.total(), work.first, work.last);
    for outcome in tally.bad.values() {
        bad(&mut text, work, worked, outcome);
    }
    for outcome in worked.told.iter().filter(|outcome| outcome.wrongs.is_empty()) {
        night(&mut text, outcome);
    }
    if !work.tells {
        kinds(&mut text, worked);
    }
    if let Some((seed, took)) = worked.slowest {
        let _ = writeln!(text, "slowest night: seed {seed}, {}", seconds(took));
    }
    let _ = writeln!(text, "figure sim.nights_per_second_core {:.1} 1/s", worked.rate());
    let _ = writeln!(text, "figure sim.fault_kinds {} count", tally.hits.len());
    let _ = writeln!(text, "figure sim.violations {} count", tally.violations());
    text
}

fn bad(text: &mut String, work: &Work, worked: &Worked, outcome: &Outcome) {
    let drawn = &outcome.drawn;
    let _ = writeln!(text, "\nseed {}: {} night, {}", drawn.seed, drawn.family.name(), drawn.scenario);
    for wrong in &outcome.wrongs {
        let _ = writeln!(text, "  {}", line(wrong));
    }
    let shrunk = worked.shrunk.iter().find(|one| one.outcome.drawn.seed == drawn.seed);
    if let Some(Shrunk { outcome, nights }) = shrunk {
        let _ = writeln!(text, "  it takes ({nights} nights tried): {}", names_of(&outcome.drawn));
        for wrong in &outcome.wrongs {
            let _ = writeln!(text, "  then {}", line(wrong));
        }
        indented(text, &outcome.story);
    } else {
        let _ = writeln!(text, "  it had: {}", names_of(drawn));
    }
    let _ = writeln!(text, "  again: {}", again(work, drawn.seed));
}

fn night(text: &mut String, outcome: &Outcome) {
    let drawn = &outcome.drawn;
    let _ = writeln!(text, "{} night, {}; troubles: {}", drawn.family.name(), drawn.scenario, names_of(drawn));
    indented(text, &outcome.story);
    let hits: Vec<String> = outcome.hits.iter().map(|(kind, count)| format!("{} {count}", kind.name())).collect();
    let _ = writeln!(text, "hit: {}", if hits.is_empty() { "nothing".to_owned() } else { hits.join(", ") });
    let _ =
        writeln!(text, "{} steps in {} simulated seconds, hash {:016x}", outcome.steps, outcome.seconds, outcome.hash);
}

fn indented(text: &mut String, story: &str) {
    for line in story.lines().filter(|line| !line.is_empty()) {
        let _ = writeln!(text, "    {}", maint_core::report::tame(line));
    }
}

fn kinds(text: &mut String, worked: &Worked) {
    let tally = &worked.tally;
    let families: Vec<String> =
        tally.nights.iter().map(|(family, count)| format!("{count} {}", family.name())).collect();
    let _ = writeln!(text, "\nnights: {}", families.join(", "));
    let _ = writeln!(text, "ends:");
    for (end, count) in &tally.ends {
        let _ = writeln!(text, "  {count:>8}  {end}");
    }
    let _ = writeln!(text, "hits and nights hit, by kind:");
    for kind in FaultKind::ALL {
        let count = |hits: &std::collections::BTreeMap<FaultKind, u64>| hits.get(kind).copied().unwrap_or(0);
        let (hits, nights) = (count(&tally.hits), count(&tally.nights_hit));
        let _ = writeln!(text, "  {hits:>8} {nights:>7}  {:20} {}", kind.name(), kind.about());
    }
}

/// The document for programs.
pub fn document(work: &Work, worked: &Worked) -> Value {
    let tally = &worked.tally;
    json!({
        "apiVersion": names::OUTPUT_API_VERSION,
        "kind": "Simulation",
        "shell": shell(work.shell),
        "firstSeed": work.first,
        "lastSeed": work.last,
        "interrupted": worked.interrupted,
        "nights": tally.total(),
        "families": tally.nights.iter().map(|(family, count)| (family.name(), *count)).collect::<std::collections::BTreeMap<_, _>>(),
        "ends": tally.ends,
        "faults": FaultKind::ALL.iter().map(|kind| json!({
            "kind": kind.name(),
            "about": kind.about(),
            "hits": tally.hits.get(kind).copied().unwrap_or(0),
            "nights": tally.nights_hit.get(kind).copied().unwrap_or(0),
        })).collect::<Vec<_>>(),
        "violations": tally.violations(),
        "bad": tally.bad.values().map(|outcome| outcome_of(work, worked, outcome)).collect::<Vec<_>>(),
        "stories": worked.told.iter().map(|outcome| json!({"seed": outcome.drawn.seed, "story": outcome.story.lines().collect::<Vec<_>>()})).collect::<Vec<_>>(),
        "simulatedSeconds": tally.seconds,
        "steps": tally.steps,
        "nightsPerSecondAndCore": worked.rate(),
        "slowest": worked.slowest.map(|(seed, took)| json!({"seed": seed, "seconds": took.as_secs_f64()})),
    })
}

fn outcome_of(work: &Work, worked: &Worked, outcome: &Outcome) -> Value {
    let drawn = &outcome.drawn;
    let wrongs = |wrongs: &[Wrong]| {
        let each = wrongs.iter().map(|wrong| json!({"rule": wrong.rule, "step": wrong.step, "what": wrong.what}));
        each.collect::<Vec<_>>()
    };
    let faults = |drawn: &Drawn| drawn.kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>();
    let shrunk = worked.shrunk.iter().find(|one| one.outcome.drawn.seed == drawn.seed).map(|one| {
        json!({"faults": faults(&one.outcome.drawn), "broken": wrongs(&one.outcome.wrongs),
            "story": one.outcome.story.lines().collect::<Vec<_>>(), "nights": one.nights})
    });
    json!({"seed": drawn.seed, "family": drawn.family.name(), "scenario": drawn.scenario, "faults": faults(drawn),
        "broken": wrongs(&outcome.wrongs), "shrunk": shrunk, "again": again(work, drawn.seed)})
}
