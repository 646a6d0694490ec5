//! Nights of all families by seed.

use std::collections::BTreeSet;

use super::shrink::shrink_by;
use super::*;
use crate::night::tests::on_the_core;

/// Nights that are played with typed ports: enough for every kind.
const NIGHTS: u64 = 600;

/// Kinds that so few nights may lack: kured has to hear go while there is trouble, and few nodes do.
const SELDOM: [FaultKind; 1] = [FaultKind::LockWrite];

/// Every other kind is hit, nothing is violated; how many nights that are in a second is told.
#[test]
fn nights_of_all_families_break_nothing_and_meet_every_kind() {
    let (mut tally, begun) = (Tally::default(), on_the_core());
    for seed in 1..=NIGHTS {
        tally.add(play(Shell::Typed, &Drawn::of(seed), false).expect("a runtime"));
    }
    let time = on_the_core().checked_sub(begun).expect("it only grows");
    println!("{:#?}\n{:#?}", tally.ends, tally.hits);
    println!(
        "figure sim.nights_per_second_core {:.1} 1/s",
        f64::from(u32::try_from(NIGHTS).expect("few")) / time.as_secs_f64()
    );
    println!("figure sim.fault_kinds {} count", tally.hits.len());
    println!("figure sim.violations {} count", tally.violations());
    assert!(tally.bad.is_empty(), "{:#?}", tally.bad);
    let missed: Vec<_> = tally.missed().into_iter().filter(|kind| !SELDOM.contains(kind)).collect();
    assert_eq!(missed, Vec::new());
    assert_eq!(tally.nights.len(), Family::ALL.len());
    assert!(FaultKind::ALL.len() >= 40);
}

#[test]
fn a_seed_is_one_night_and_only_kinds_of_its_family() {
    for seed in 1..=6 {
        let drawn = Drawn::of(seed);
        let play = || play(Shell::Typed, &drawn, true).expect("a runtime");
        assert_eq!(play(), play(), "{seed}");
        assert!(drawn.kinds.iter().all(|kind| kind.families().contains(&drawn.family)), "{drawn:?}");
    }
}

/// An outcome that breaks a rule as long as some kinds are there.
fn judged(drawn: &Drawn, needed: &[FaultKind]) -> Outcome {
    let broken = needed.iter().all(|kind| drawn.kinds.contains(kind));
    let wrong = |rule: &str| Wrong { rule: rule.to_owned(), step: Some(7), what: "it was".to_owned() };
    // Another rule breaks where this one does not.
    let rule = if broken { "S7" } else { "S1" };
    Outcome {
        drawn: drawn.clone(),
        ends: Vec::new(),
        wrongs: vec![wrong(rule)],
        hits: BTreeMap::new(),
        hash: 0,
        steps: 0,
        seconds: 0,
        story: String::new(),
    }
}

#[test]
fn shrinking_keeps_what_the_rule_takes_and_nothing_else() {
    let all: BTreeSet<FaultKind> = FaultKind::ALL.iter().copied().collect();
    for needed in [&[][..], &[FaultKind::Delay], &[FaultKind::Conflict, FaultKind::KillReplica]] {
        let drawn = Drawn { kinds: all.clone(), ..Drawn::of(1) };
        let shrunk = shrink_by(&judged(&drawn, needed), |drawn| Ok(judged(drawn, needed))).expect("no runtime needed");
        assert_eq!(shrunk.outcome.drawn.kinds, needed.iter().copied().collect());
        assert_eq!(shrunk.outcome.wrongs[0].rule, "S7");
        assert!(shrunk.nights <= 3 * all.len() as u64);
    }
}

#[test]
fn the_order_of_nights_does_not_show_in_what_they_came_to() {
    let outcomes: Vec<Outcome> = (1..=3).map(|seed| judged(&Drawn::of(seed), &[])).collect();
    let sum = |order: &[usize]| {
        let mut tally = Tally::default();
        for index in order {
            tally.add(outcomes[*index].clone());
        }
        tally
    };
    assert_eq!(sum(&[0, 1, 2]), sum(&[2, 0, 1]));
    assert_eq!((sum(&[0, 1, 2]).total(), sum(&[0, 1]).violations()), (3, 2));
}
