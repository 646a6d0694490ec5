//! A process dies at every turn of every run that goes well: before its write, after it, between its acts.

use super::happy::ROWS;
use super::play::{Crash, Play};
use super::table::Row;

fn end_of(play: &mut Play) -> (String, String, Vec<String>, String) {
    let status = play.status();
    let kinds = status.outbox.iter().map(|entry| entry.kind.clone()).collect();
    (status.phase, status.outcome, kinds, play.scene.node_line())
}

fn played(row: &Row, crash: Option<Crash>) -> Play {
    let mut play = Play::new((row.spec)());
    (row.setup)(&mut play.scene);
    play.crash = crash;
    play.run();
    play
}

#[test]
fn every_crash_ends_the_same() {
    let mut points = 0;
    for row in ROWS.iter().filter(|row| row.events.is_empty()) {
        let mut whole = played(row, None);
        let wanted = end_of(&mut whole);
        for turn in 0..whole.turns {
            let kinds = [(0, true), (0, false), (1, false), (usize::MAX, false)];
            for (acts_done, before_write) in kinds {
                let mut play = played(row, Some(Crash { turn, acts_done, before_write }));
                let name =
                    format!("{}: crash at turn {turn}, {acts_done} acts done, before write {before_write}", row.name);
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
