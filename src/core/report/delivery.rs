//! Which message goes to which receiver next, and what a record says of it afterwards.
//!
//! Each receiver takes the messages of a record in their order, at least once, with a stable id; no receiver waits for
//! another. A try that failed is repeated after 5 s, 30 s, 2 min, 10 min, then every 30 min, and at once when there is
//! news behind it; after 24 h it is given up, and the record says so. A message that nobody has tried for 24 h is told
//! only if it is critical and nobody got it: a receiver that is new in the configuration does not get old nights.

use jiff::{SignedDuration, Timestamp};

use crate::api::record::{OutboxEntry, PendingDelivery};
use crate::plan::stamp;

/// Seconds from the first try of a message to giving it up, and the age at which one is too old to be begun.
pub const GIVE_UP_SECONDS: i64 = 24 * 3_600;
/// Seconds after the first, second ... failed try; the last one repeats.
pub const BACKOFF_SECONDS: [i64; 5] = [5, 30, 120, 600, 1_800];
/// Seconds that a receiver's own `Retry-After` may ask for at most.
pub const RETRY_AFTER_MAX_SECONDS: i64 = 3_600;
/// Characters of an error that a record keeps.
const ERROR_CHARACTERS: usize = 200;

/// What one receiver is to get from one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// This entry, now.
    Send(usize),
    /// This entry is too old: to be marked with [`Attempt::TooOld`].
    GiveUp(usize),
    /// Nothing before then.
    Wait(Timestamp),
    /// Nothing.
    Nothing,
}

/// How a try ended. Errors never contain secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    /// The receiver took it.
    Delivered,
    /// It may take it later.
    Later {
        /// Seconds that it asked to be left alone for.
        retry_after_seconds: Option<i64>,
        /// Why.
        error: String,
    },
    /// It will never take it.
    Refused {
        /// Why.
        error: String,
    },
    /// It was not tried: too old.
    TooOld,
}

/// What `receiver` is to get from a record with this outbox.
#[must_use]
pub fn next(outbox: &[OutboxEntry], receiver: &str, now: Timestamp) -> Next {
    for (index, entry) in outbox.iter().enumerate() {
        if entry.delivered_to.iter().any(|name| name == receiver) {
            continue;
        }
        let Some(pending) = entry.pending.iter().find(|pending| pending.receiver == receiver) else {
            match first_try(entry, now) {
                FirstTry::Yes => return Next::Send(index),
                FirstTry::TooOld => return Next::GiveUp(index),
                FirstTry::Settled => continue,
            }
        };
        if pending.given_up {
            continue;
        }
        let news =
            || outbox.iter().skip(index + 1).any(|later| is_between(&later.created_at, &pending.last_attempt_at, now));
        // A time that cannot be read is no reason to be silent.
        return match pending.next_attempt_at.parse::<Timestamp>() {
            Ok(at) if at > now && !news() => Next::Wait(at),
            _ => Next::Send(index),
        };
    }
    Next::Nothing
}

/// Whether a record has nothing more to tell anybody.
#[must_use]
pub fn is_settled(outbox: &[OutboxEntry], receivers: &[String], now: Timestamp) -> bool {
    receivers.iter().all(|receiver| next(outbox, receiver, now) == Next::Nothing)
}

enum FirstTry {
    Yes,
    TooOld,
    Settled,
}

fn first_try(entry: &OutboxEntry, now: Timestamp) -> FirstTry {
    let old = age_seconds(&entry.created_at, now) >= GIVE_UP_SECONDS;
    match (old, entry.delivered_to.is_empty(), entry.severity == "critical") {
        (false, ..) | (true, true, true) => FirstTry::Yes,
        (true, true, false) => FirstTry::TooOld,
        (true, false, _) => FirstTry::Settled,
    }
}

/// Seconds since a time in a record; zero if it is none, or ahead.
fn age_seconds(text: &str, now: Timestamp) -> i64 {
    text.parse::<Timestamp>().map_or(0, |at| now.duration_since(at).as_secs().max(0))
}

/// After `start`, and not ahead of now: another leader's clock must not make news out of every look.
fn is_between(text: &str, start: &str, now: Timestamp) -> bool {
    matches!((text.parse::<Timestamp>(), start.parse::<Timestamp>()), (Ok(at), Ok(start)) if start < at && at <= now)
}

/// Writes down how a try ended. The only caller that counts is the record's writer.
pub fn mark(entry: &mut OutboxEntry, receiver: &str, attempt: &Attempt, now: Timestamp) {
    let known = entry.pending.iter().position(|pending| pending.receiver == receiver);
    let mut pending = known.map_or_else(
        || PendingDelivery {
            receiver: receiver.to_owned(),
            first_attempt_at: stamp(now),
            ..PendingDelivery::default()
        },
        |index| entry.pending.remove(index),
    );
    if *attempt != Attempt::TooOld {
        entry.attempts += 1;
        pending.attempts += 1;
        pending.last_attempt_at = stamp(now);
    }
    pending.next_attempt_at = String::new();
    let error = match attempt {
        Attempt::Delivered => {
            if !entry.delivered_to.iter().any(|name| name == receiver) {
                entry.delivered_to.push(receiver.to_owned());
            }
            if entry.pending.is_empty() {
                entry.last_error = String::new();
            }
            return;
        }
        Attempt::Later { retry_after_seconds, error } => {
            if age_seconds(&pending.first_attempt_at, now) >= GIVE_UP_SECONDS {
                pending.given_up = true;
                format!("{receiver}: given up after 24 h: {error}")
            } else {
                let wait = backoff_seconds(pending.attempts).max(retry_after_seconds.unwrap_or(0));
                let wait = SignedDuration::from_secs(wait.min(RETRY_AFTER_MAX_SECONDS));
                pending.next_attempt_at = stamp(now.saturating_add(wait).unwrap_or(Timestamp::MAX));
                format!("{receiver}: {error}")
            }
        }
        Attempt::Refused { error } => {
            pending.given_up = true;
            format!("{receiver}: given up, it will never take it: {error}")
        }
        Attempt::TooOld => {
            pending.given_up = true;
            format!("{receiver}: given up, not tried within 24 h")
        }
    };
    entry.last_error = error.chars().take(ERROR_CHARACTERS).collect();
    entry.pending.push(pending);
}

/// Adds to an outbox as read what `known` says of the same entries: tries whose result is not written yet.
pub fn merge(outbox: &mut [OutboxEntry], known: &[OutboxEntry]) {
    for entry in outbox {
        let Some(known) = known.iter().find(|other| other.id == entry.id) else { continue };
        for receiver in &known.delivered_to {
            if !entry.delivered_to.contains(receiver) {
                entry.delivered_to.push(receiver.clone());
            }
        }
        for theirs in &known.pending {
            match entry.pending.iter_mut().find(|ours| ours.receiver == theirs.receiver) {
                Some(ours) if ours.attempts < theirs.attempts || theirs.given_up => ours.clone_from(theirs),
                Some(_) => {}
                None => entry.pending.push(theirs.clone()),
            }
        }
        entry.pending.retain(|pending| !entry.delivered_to.contains(&pending.receiver));
    }
}

fn backoff_seconds(attempts: i64) -> i64 {
    let index = usize::try_from(attempts - 1).unwrap_or(0).min(BACKOFF_SECONDS.len() - 1);
    BACKOFF_SECONDS[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_796_000_400).expect("a time")
    }

    fn later(seconds: i64) -> Timestamp {
        now() + SignedDuration::from_secs(seconds)
    }

    fn entry(id: &str, created: i64) -> OutboxEntry {
        OutboxEntry {
            id: id.to_owned(),
            kind: "started".to_owned(),
            severity: "info".to_owned(),
            created_at: stamp(later(created)),
            ..OutboxEntry::default()
        }
    }

    fn marked(mut entry: OutboxEntry, tries: &[(&str, Attempt, i64)]) -> OutboxEntry {
        for (receiver, attempt, at) in tries {
            mark(&mut entry, receiver, attempt, later(*at));
        }
        entry
    }

    fn failed() -> Attempt {
        Attempt::Later { retry_after_seconds: None, error: "status 503".to_owned() }
    }

    fn refused() -> Attempt {
        Attempt::Refused { error: "status 404, no_service".to_owned() }
    }

    #[test]
    fn messages_go_out_in_order_and_are_tried_again() {
        use Attempt::Delivered;
        const DAY: i64 = 86_400;
        let critical = |created| OutboxEntry { severity: "critical".to_owned(), ..entry("1", created) };
        let rows = [
            ("nothing", vec![], Next::Nothing),
            ("new", vec![entry("1", 0)], Next::Send(0)),
            ("delivered", vec![marked(entry("1", -5), &[("team", Delivered, 0)])], Next::Nothing),
            ("another got it", vec![marked(entry("1", -5), &[("other", Delivered, 0)])], Next::Send(0)),
            ("another failed", vec![marked(entry("1", -5), &[("other", failed(), 0)])], Next::Send(0)),
            ("failed just now", vec![marked(entry("1", -5), &[("team", failed(), 0)])], Next::Wait(later(5))),
            ("failed 5 s ago", vec![marked(entry("1", -9), &[("team", failed(), -5)])], Next::Send(0)),
            (
                "failed twice",
                vec![marked(entry("1", -9), &[("team", failed(), -6), ("team", failed(), 0)])],
                Next::Wait(later(30)),
            ),
            (
                "it asked for more",
                vec![marked(
                    entry("1", -9),
                    &[("team", Attempt::Later { retry_after_seconds: Some(90), error: "429".to_owned() }, 0)],
                )],
                Next::Wait(later(90)),
            ),
            (
                "it asked for a week",
                vec![marked(
                    entry("1", -9),
                    &[("team", Attempt::Later { retry_after_seconds: Some(7 * DAY), error: "429".to_owned() }, 0)],
                )],
                Next::Wait(later(3_600)),
            ),
            (
                "the first waits, the second waits behind it",
                vec![marked(entry("1", -9), &[("team", failed(), 0)]), entry("2", -1)],
                Next::Wait(later(5)),
            ),
            (
                "news is a reason to try again, in order",
                vec![marked(entry("1", -9), &[("team", failed(), -2)]), entry("2", -1)],
                Next::Send(0),
            ),
            (
                "refused: the next one",
                vec![marked(entry("1", -9), &[("team", refused(), 0)]), entry("2", -1)],
                Next::Send(1),
            ),
            ("never tried for a day, nobody got it", vec![entry("1", -DAY), entry("2", 0)], Next::GiveUp(0)),
            ("one second less", vec![entry("1", 1 - DAY)], Next::Send(0)),
            ("critical: late is better than never", vec![critical(-7 * DAY)], Next::Send(0)),
            (
                "critical, but another got it: this receiver is new",
                vec![marked(critical(-7 * DAY), &[("other", Delivered, -7 * DAY)])],
                Next::Nothing,
            ),
            ("queued by a clock ahead of ours", vec![entry("1", 500)], Next::Send(0)),
            (
                "a time that is none",
                vec![OutboxEntry { created_at: "soon".to_owned(), ..entry("1", 0) }],
                Next::Send(0),
            ),
        ];
        for (name, outbox, wanted) in rows {
            assert_eq!(next(&outbox, "team", now()), wanted, "{name}");
            let settled = is_settled(&outbox, &["team".to_owned()], now());
            assert_eq!(settled, wanted == Next::Nothing, "{name}");
        }
    }

    #[test]
    fn a_day_of_failures_ends_and_the_record_says_so() {
        let mut outbox = [entry("1", 0), OutboxEntry { severity: "critical".to_owned(), ..entry("2", 0) }];
        let (mut at, mut waits) = (now(), Vec::new());
        while next(&outbox, "team", at) != Next::Send(1) {
            match next(&outbox, "team", at) {
                Next::Send(0) => mark(&mut outbox[0], "team", &failed(), at),
                Next::Wait(until) => {
                    waits.push(until.duration_since(at).as_secs());
                    at = until;
                }
                other => panic!("{other:?}"),
            }
            assert!(waits.len() < 100);
        }
        assert_eq!(waits[..6], [5, 30, 120, 600, 1_800, 1_800]);
        assert!((GIVE_UP_SECONDS..GIVE_UP_SECONDS + 1_800).contains(&waits.iter().sum()), "{waits:?}");
        assert_eq!(outbox[0].last_error, "team: given up after 24 h: status 503");
        assert!(outbox[0].pending[0].given_up);
        assert_eq!(usize::try_from(outbox[0].attempts), Ok(waits.len() + 1));
    }

    #[test]
    fn what_the_record_says() {
        let rows = [
            ("delivered", vec![("team", Attempt::Delivered, 0)], "", 1, 0),
            ("failed", vec![("team", failed(), 0)], "team: status 503", 1, 1),
            ("failed, then delivered", vec![("team", failed(), 0), ("team", Attempt::Delivered, 5)], "", 2, 0),
            (
                "one receiver fails",
                vec![("team", failed(), 0), ("other", Attempt::Delivered, 5)],
                "team: status 503",
                2,
                1,
            ),
            (
                "refused",
                vec![("team", refused(), 0)],
                "team: given up, it will never take it: status 404, no_service",
                1,
                1,
            ),
            ("too old", vec![("team", Attempt::TooOld, 0)], "team: given up, not tried within 24 h", 0, 1),
        ];
        for (name, tries, error, attempts, pending) in rows {
            let found = marked(entry("1", 0), &tries);
            assert_eq!(
                (found.last_error.as_str(), found.attempts, found.pending.len()),
                (error, attempts, pending),
                "{name}"
            );
        }
        let long = Attempt::Refused { error: "x".repeat(5_000) };
        assert_eq!(marked(entry("1", 0), &[("team", long, 0)]).last_error.chars().count(), 200);
    }

    #[test]
    fn what_is_known_is_added_to_what_was_read() {
        let read = marked(entry("1", 0), &[("team", failed(), 0)]);
        let twice = marked(read.clone(), &[("team", failed(), 6)]);
        let done = marked(read.clone(), &[("team", Attempt::Delivered, 6)]);
        let rows = [
            ("a newer try", read.clone(), twice.clone(), 2),
            ("an older one", twice, read.clone(), 2),
            ("delivered meanwhile", read.clone(), done.clone(), 0),
            ("delivered already", done, read.clone(), 0),
            ("another message", read, marked(entry("2", 0), &[("team", Attempt::Delivered, 0)]), 1),
        ];
        for (name, read, known, attempts) in rows {
            let mut outbox = [read];
            merge(&mut outbox, &[known]);
            assert_eq!(outbox[0].pending.first().map_or(0, |pending| pending.attempts), attempts, "{name}");
        }
    }
}
