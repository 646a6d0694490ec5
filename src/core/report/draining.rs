//! How far a drain is, from what its record says: for who watches it.

use super::paint::tame;
use crate::api::Phase;
use crate::api::record::Maintenance;
use crate::plan::phase_of;

/// Waits for its turn behind an earlier wave, whose name follows: see [`crate::drain::Wait`].
const BEHIND: &str = " waits for the pods before it (";
/// Pods on their way, which hold nobody up as long as their time is not over.
const ON_THEIR_WAY: [&str; 3] = [" is ending, due ", " is asked to go", " was asked to go"];

/// How far a drain is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Progress {
    gone: i64,
    planned: i64,
    /// The wave whose turn it is, where a later one waits.
    wave: Option<String>,
    /// The first pod that is held up, why, and since when.
    held: Option<String>,
    /// How many more are.
    more: usize,
}

/// What makes a line worth telling: numbers alone change too often.
pub(super) type Key = (i64, Option<String>, Option<String>);

impl Progress {
    /// The progress of a record that drains.
    pub(super) fn of(record: &Maintenance) -> Option<Self> {
        let drain = record.status.as_ref()?.drain.as_ref().filter(|_| phase_of(record) == Phase::Draining)?;
        let behind = |line: &&String| line.contains(BEHIND);
        let wave = drain.waiting.iter().find(behind).and_then(|line| wave_of(line));
        let held = |line: &&String| !behind(line) && !ON_THEIR_WAY.iter().any(|on| line.contains(on));
        let mut held = drain.waiting.iter().filter(held);
        Some(Self {
            // Pods that came later are among those that are left.
            gone: (drain.planned - drain.left).max(0),
            planned: drain.planned,
            wave,
            held: held.next().map(|line| tame(line)),
            more: held.count(),
        })
    }

    /// Another quarter of the pods is gone, another wave has its turn, or another pod or reason holds it up.
    pub(super) fn key(&self) -> Key {
        let quarter = if self.planned > 0 { self.gone.saturating_mul(4) / self.planned } else { 0 };
        let lead = self.held.as_ref().map(|line| line.split(", since ").next().unwrap_or(line).to_owned());
        (quarter, self.wave.clone(), lead)
    }

    /// `9 of 12 pods gone, wave ordinary`
    pub(super) fn count(&self) -> String {
        let wave = self.wave.as_ref().map_or_else(String::new, |wave| format!(", wave {}", tame(wave)));
        format!("{} of {} pods gone{wave}", self.gone, self.planned)
    }

    /// What holds it up; empty where nothing does.
    pub(super) fn held(&self) -> String {
        let Some(held) = &self.held else { return String::new() };
        let more = if self.more > 0 { format!("; and {} more", self.more) } else { String::new() };
        format!("{held}{more}")
    }
}

fn wave_of(line: &str) -> Option<String> {
    let (_, rest) = line.split_once(BEHIND)?;
    // The wave may have an order, in brackets of its own.
    let (wave, _) = rest.split_once("), since ").or_else(|| rest.rsplit_once(')'))?;
    Some(wave.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::record::DrainRecord;
    use crate::drain::{Wait, Wave, WaveKind};
    use crate::report::testing::{at, record};

    fn progress(planned: i64, left: i64, waiting: &[&str]) -> Progress {
        let waiting = waiting.iter().map(|line| (*line).to_owned()).collect();
        let run =
            record("Draining", |s| s.drain = Some(DrainRecord { planned, left, waiting, ..DrainRecord::default() }));
        Progress::of(&run).expect("it drains")
    }

    /// The record has sentences, and these are read in them.
    #[test]
    fn its_words_are_those_of_the_drain() {
        let (due, wave) = (at("01:00:50"), Wave { order: 0, kind: WaveKind::Ordinary, own: false });
        let rows = [
            (Wait::Ending { due, finalizers: Vec::new() }, true, None),
            (Wait::Asked, true, None),
            (Wait::OnItsWay, true, None),
            (Wait::Accepted, true, None),
            (Wait::Stuck { due, finalizers: Vec::new(), kubelet_silent: false }, false, None),
            (Wait::Completion, false, None),
            (Wait::Turn, false, None),
            (Wait::Wave { first: wave }, false, Some("ordinary")),
        ];
        for (wait, on_its_way, behind) in rows {
            let line = format!("shop/web-1 {}, since 2026-11-30T01:00:00Z", wait.lead());
            let found = progress(2, 1, &[&line]);
            assert_eq!(found.wave.as_deref(), behind, "{line}");
            assert_eq!(found.held.is_none(), on_its_way || behind.is_some(), "{line}");
        }
    }

    #[test]
    fn it_says_who_is_gone_whose_turn_it_is_and_what_holds_it_up() {
        let blocked =
            "shop/db-0 is blocked by budget shop/db, since 2026-11-30T01:00:20Z: which needs 2 healthy pods and has 2";
        let ending = "shop/web-1 is ending, due 2026-11-30T01:00:50Z";
        let behind =
            |wave: &str| format!("kube-system/dns waits for the pods before it ({wave}), since 2026-11-30T01:00:00Z");
        let (ordinary, ordered) = (behind("ordinary"), behind("ordinary (order 3)"));
        let stuck = "shop/web-1 is stuck: it should have ended by 2026-11-30T01:00:50Z: it has the finalizers x";
        let rows: [(&str, Progress, &str, &str); 7] = [
            ("on the way", progress(12, 3, &[ending]), "9 of 12 pods gone", ""),
            ("a wave", progress(12, 3, &[ending, &ordinary]), "9 of 12 pods gone, wave ordinary", ""),
            ("a wave of a rule", progress(12, 3, &[&ordered]), "9 of 12 pods gone, wave ordinary (order 3)", ""),
            ("held", progress(12, 3, &[ending, blocked, &ordinary]), "9 of 12 pods gone, wave ordinary", blocked),
            ("stuck", progress(2, 1, &[stuck]), "1 of 2 pods gone", stuck),
            ("more came", progress(2, 3, &[]), "0 of 2 pods gone", ""),
            ("done", progress(2, 0, &[]), "2 of 2 pods gone", ""),
        ];
        for (row, progress, count, held) in rows {
            assert_eq!((progress.count().as_str(), progress.held().as_str()), (count, held), "{row}");
        }
        let two = progress(3, 2, &[blocked, stuck]);
        assert!(two.held().ends_with("and has 2; and 1 more"), "{}", two.held());
    }

    #[test]
    fn only_what_a_person_would_tell_is_news() {
        let blocked = |since: &str, has: &str| {
            format!("shop/db-0 is blocked by budget shop/db, since 2026-11-30T{since}Z: which needs 2 and has {has}")
        };
        let first = progress(100, 60, &[&blocked("01:00:20", "1")]).key();
        assert_eq!(first, progress(100, 51, &[&blocked("01:00:20", "2")]).key(), "numbers");
        assert_ne!(first, progress(100, 50, &[&blocked("01:00:20", "1")]).key(), "half of them");
        assert_ne!(first, progress(100, 60, &[]).key(), "nothing holds it up");
    }

    #[test]
    fn other_phases_have_no_progress() {
        let run = record("Acting", |s| s.drain = Some(DrainRecord { planned: 2, ..DrainRecord::default() }));
        assert_eq!(Progress::of(&run), None);
        assert_eq!(Progress::of(&record("Draining", |_| {})), None);
    }
}
