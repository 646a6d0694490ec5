//! A process dies at every turn of every run that goes well, and of some that kured lets down: before its write, after it, between its acts.
//!
//! The other order, an act whose status is lost, cannot be: a status is written before the acts that follow from it.

use super::grant::ALONE;
use super::happy::ROWS;
use super::play::{Crash, Play};

fn end_of(play: &mut Play) -> (String, String, Vec<String>, String) {
    let status = play.status();
    let kinds = status.outbox.iter().map(|entry| entry.kind.clone()).collect();
    (status.phase, status.outcome, kinds, play.scene.node_line())
}

/// The ways to die in a turn that asks for so many acts.
fn ways(acts: usize) -> Vec<Crash> {
    let mut ways = vec![Crash { acts_done: 0, before_write: true }];
    ways.extend((0..=acts).map(|acts_done| Crash { acts_done, before_write: false }));
    ways
}

#[test]
fn every_crash_ends_the_same() {
    let mut points = 0;
    for row in ROWS.iter().filter(|row| row.events.is_empty()).chain(ALONE) {
        let mut whole = Play::new((row.spec)());
        (row.setup)(&mut whole.scene);
        let mut before = Vec::new();
        loop {
            let at = whole.clone();
            let goes_on = whole.turn();
            // A turn that neither writes nor acts is the same as the one after it.
            if let Some(acts) = whole.last {
                before.push((at, acts));
            }
            if !goes_on {
                break;
            }
        }
        let wanted = end_of(&mut whole);
        for (at, acts) in before {
            for way in ways(acts) {
                let mut play = at.clone();
                play.crash = Some(way);
                play.run();
                let name = format!("{}: {way:?} at turn {}", row.name, at.turns);
                assert_eq!(end_of(&mut play), wanted, "{name}\n{}", play.told());
                assert!(play.done, "{name}");
                play.assert_nothing_left(&name);
                assert!(play.scene.pods_created.len() <= 1, "{name}: {:?}", play.scene.pods_created);
                points += 1;
            }
        }
    }
    println!("figure plan.crash_points {points} points");
}
