//! Rows of one candidate's steps.

use super::*;
use crate::config::Election;

/// Name, events with their seconds, and what the last one leads to.
type Row = (&'static str, Vec<(u64, EventKind)>, &'static str);

const ME: &str = "maint-a_x1";
const OTHER: &str = "maint-b_y2";

fn limits() -> Limits {
    Limits::try_from(&Election::default()).expect("the defaults are good")
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn wall() -> Timestamp {
    Timestamp::from_second(1_796_000_400).expect("a time")
}

fn lease(holder: &str, term: i64, version: &str) -> Seen {
    let record = LeaseRecord {
        holder: holder.to_owned(),
        term: Term(term),
        duration: seconds(30),
        acquired: Some(wall()),
        renewed: Some(wall()),
    };
    Seen { record, version: Version { uid: "u".to_owned(), resource_version: version.to_owned() } }
}

fn seen(holder: &str, term: i64, version: &str) -> EventKind {
    EventKind::Answer(Answer::Seen(lease(holder, term, version)))
}

fn failed() -> EventKind {
    EventKind::Answer(Answer::Failed("no answer within 5 s".to_owned()))
}

/// What the actions are, in short.
fn short(actions: &[Action]) -> String {
    let one = |action: &Action| match action {
        Action::Send { request: Request::Get, limit } => format!("get<{}", limit.as_secs()),
        Action::Send { request: Request::Create(record), .. } => format!("create {}", record.term),
        Action::Send { request: Request::Update(record, version), limit } => {
            let holder = if record.holder == ME { "me" } else { &record.holder };
            format!("put {holder}/{} on {}<{}", record.term, version.resource_version, limit.as_secs())
        }
        Action::WakeAt { at, jitter_percent: 0 } => format!("wake {}", at.as_secs()),
        Action::WakeAt { at, .. } => format!("wake ~{}", at.as_secs()),
        Action::Lead { term, valid_until } => format!("lead {term} until {}", valid_until.as_secs()),
        Action::Renewed { valid_until } => format!("renewed until {}", valid_until.as_secs()),
        Action::Follow { holder } => format!("follow {}", holder.as_deref().unwrap_or("nobody")),
        Action::Unknown => "unknown".to_owned(),
        Action::Lost(why) => format!("lost: {why}"),
        Action::Released { confirmed } => format!("released {confirmed}"),
    };
    actions.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Plays events at their seconds, and gives what the last one led to.
fn play(events: &[(u64, EventKind)]) -> String {
    let mut state = State::new(ME, limits());
    let mut last = Vec::new();
    for (at, kind) in events {
        (state, last) = step(state, Event { at: seconds(*at), wall: wall(), kind: kind.clone() });
    }
    short(&last)
}

/// Looked at 0, took the free Lease at 1 (sent) with the answer at 2: valid until 21.
fn leading() -> Vec<(u64, EventKind)> {
    vec![(0, EventKind::Wake), (1, seen("", 7, "1")), (2, seen(ME, 8, "2"))]
}

fn after_leading(more: &[(u64, EventKind)]) -> Vec<(u64, EventKind)> {
    leading().into_iter().chain(more.iter().cloned()).collect()
}

#[test]
fn a_candidate_waits_and_takes() {
    use EventKind::{Abstain, Answer as A, KnownTerm, Wake};
    let rows: Vec<Row> = vec![
        ("it looks first", vec![(0, Wake)], "get<5"),
        ("one request at a time", vec![(0, Wake), (1, Wake)], ""),
        ("an empty holder is free at once", vec![(0, Wake), (1, seen("", 7, "1"))], "put me/8 on 1<5"),
        ("taken: the tenure counts from before the request", leading(), "lead 8 until 21, wake 5"),
        ("held by another", vec![(0, Wake), (1, seen(OTHER, 7, "1"))], "follow maint-b_y2, wake ~4"),
        (
            "unchanged for less than its duration",
            vec![(0, Wake), (1, seen(OTHER, 7, "1")), (30, Wake), (30, seen(OTHER, 7, "1"))],
            "follow maint-b_y2, wake ~34",
        ),
        (
            "unchanged for its duration, as seen here",
            vec![(0, Wake), (1, seen(OTHER, 7, "1")), (31, Wake), (31, seen(OTHER, 7, "1"))],
            "put me/8 on 1<5",
        ),
        (
            "renewed meanwhile: counted anew",
            vec![
                (0, Wake),
                (1, seen(OTHER, 7, "1")),
                (20, Wake),
                (20, seen(OTHER, 7, "2")),
                (49, Wake),
                (49, seen(OTHER, 7, "2")),
            ],
            "follow maint-b_y2, wake ~53",
        ),
        (
            "a stale read counts as a change, never as time gone by",
            vec![
                (0, Wake),
                (1, seen(OTHER, 7, "2")),
                (20, Wake),
                (20, seen(OTHER, 7, "1")),
                (40, Wake),
                (40, seen(OTHER, 7, "2")),
            ],
            "follow maint-b_y2, wake ~44",
        ),
        (
            "a race lost is no reason to hurry",
            vec![(0, Wake), (1, seen("", 7, "1")), (2, A(Answer::Conflict))],
            "wake ~5",
        ),
        ("absent: it is claimed", vec![(0, Wake), (1, A(Answer::NotFound))], "create 0"),
        (
            "claimed: somebody may have deleted it under a leader",
            vec![(0, Wake), (1, A(Answer::NotFound)), (2, seen(ME, 0, "1"))],
            "wake ~5",
        ),
        (
            "claimed, and not yet long enough",
            vec![(0, Wake), (1, A(Answer::NotFound)), (2, seen(ME, 0, "1")), (31, Wake), (31, seen(ME, 0, "1"))],
            "follow nobody, wake ~35",
        ),
        (
            "claimed long enough",
            vec![(0, Wake), (1, A(Answer::NotFound)), (2, seen(ME, 0, "1")), (32, Wake), (32, seen(ME, 0, "1"))],
            "put me/1 on 1<5",
        ),
        ("another claimed it first", vec![(0, Wake), (1, A(Answer::NotFound)), (2, A(Answer::Conflict))], "wake ~5"),
        (
            "claimed anew: the term goes on",
            vec![(0, Wake), (1, seen(OTHER, 7, "1")), (2, Wake), (2, A(Answer::NotFound))],
            "create 7",
        ),
        (
            "a term from the records counts too",
            vec![(0, KnownTerm(Term(40))), (0, Wake), (1, seen("", 7, "1"))],
            "put me/41 on 1<5",
        ),
        (
            "the answer to its write was lost, but it was done: only time tells",
            vec![(0, Wake), (1, seen("", 7, "1")), (6, failed()), (6, Wake), (7, seen(ME, 8, "2"))],
            "follow nobody, wake ~10",
        ),
        (
            "its own name, unchanged for the duration",
            vec![
                (0, Wake),
                (1, seen("", 7, "1")),
                (6, failed()),
                (6, Wake),
                (7, seen(ME, 8, "2")),
                (37, Wake),
                (37, seen(ME, 8, "2")),
            ],
            "put me/9 on 2<5",
        ),
        (
            "an answer slower than the tenure begins none (kubernetes#44887)",
            vec![(0, Wake), (1, seen("", 7, "1")), (21, seen(ME, 8, "2"))],
            "wake ~21",
        ),
        (
            "abstaining: a released Lease is left to others",
            vec![(0, Abstain(true)), (0, Wake), (1, seen("", 7, "1"))],
            "follow nobody, wake ~4",
        ),
        (
            "abstaining: but not for ever",
            vec![(0, Abstain(true)), (0, Wake), (1, seen("", 7, "1")), (31, Wake), (31, seen("", 7, "1"))],
            "put me/8 on 1<5",
        ),
        ("nothing readable", vec![(0, Wake), (5, failed())], "wake ~5"),
        ("nothing readable for a whole duration", vec![(26, Wake), (31, failed())], "unknown, wake ~31"),
        ("nothing held, nothing to release", vec![(0, EventKind::Release)], "released true, wake ~4"),
    ];
    for (name, events, wanted) in rows {
        assert_eq!(play(&events), wanted, "{name}");
    }
}

#[test]
fn a_leader_renews_and_loses() {
    use EventKind::{Answer as A, Release, Wake};
    let rows: Vec<Row> = vec![
        ("it renews without looking", vec![(5, Wake)], "put me/8 on 2<5"),
        ("renewed", vec![(5, Wake), (6, seen(ME, 8, "3"))], "renewed until 25, wake 9"),
        ("a lost answer: it looks before it writes again", vec![(5, Wake), (10, failed()), (10, Wake)], "get<5"),
        (
            "a lost answer, but it was done",
            vec![(5, Wake), (10, failed()), (10, Wake), (11, seen(ME, 8, "3"))],
            "put me/8 on 3<5",
        ),
        ("the last attempt ends with the tenure", vec![(18, Wake)], "put me/8 on 2<3"),
        ("not renewed", vec![(5, Wake), (10, failed()), (21, Wake)], "lost: the Lease could not be renewed for 20 s"),
        (
            "paused, and woken by a good answer that comes too late",
            vec![(5, Wake), (21, seen(ME, 8, "3"))],
            "lost: the Lease could not be renewed for 20 s",
        ),
        ("a conflict: whose write was it", vec![(5, Wake), (6, A(Answer::Conflict))], "get<5"),
        (
            "another's",
            vec![(5, Wake), (6, A(Answer::Conflict)), (6, seen(OTHER, 9, "4"))],
            "lost: the Lease is held by maint-b_y2",
        ),
        (
            "somebody took the holder out",
            vec![(5, Wake), (6, A(Answer::Conflict)), (6, seen("", 8, "4"))],
            "lost: the Lease is held by nobody",
        ),
        ("somebody labelled it", vec![(5, Wake), (6, A(Answer::Conflict)), (6, seen(ME, 8, "4"))], "put me/8 on 4<5"),
        (
            "somebody changed the term",
            vec![(5, Wake), (6, A(Answer::Conflict)), (6, seen(ME, 3, "4"))],
            "lost: leaseTransitions of the Lease was changed from 8 to 3",
        ),
        ("deleted, seen by the write", vec![(5, Wake), (6, A(Answer::NotFound))], "lost: the Lease was deleted"),
        (
            "deleted, seen by the look",
            vec![(5, Wake), (6, A(Answer::Conflict)), (6, A(Answer::NotFound))],
            "lost: the Lease was deleted",
        ),
        ("released", vec![(3, Release)], "put /8 on 2<5"),
        ("released, confirmed", vec![(3, Release), (4, seen("", 8, "3"))], "released true, wake ~8"),
        ("released while a renewal is on its way", vec![(5, Wake), (6, Release)], ""),
        ("then the renewal comes back", vec![(5, Wake), (6, Release), (7, seen(ME, 8, "3"))], "put /8 on 3<5"),
        ("giving it up fails", vec![(3, Release), (8, failed())], "get<5"),
        (
            "giving it up fails twice",
            vec![(3, Release), (8, failed()), (9, seen(ME, 8, "2")), (14, failed())],
            "released false, wake ~18",
        ),
        ("giving it up took too long", vec![(3, Release), (21, failed())], "released false, wake ~25"),
    ];
    for (name, events, wanted) in rows {
        assert_eq!(play(&after_leading(&events)), wanted, "{name}");
    }
}

#[test]
fn nothing_follows_a_loss() {
    let mut events = after_leading(&[(21, EventKind::Wake)]);
    for more in [EventKind::Wake, EventKind::Release, seen("", 8, "9")] {
        events.push((22, more.clone()));
        assert_eq!(play(&events), "", "{more:?}");
    }
}

#[test]
fn the_pace_is_checked() {
    let rows = [
        ("the defaults", 30, 20, 4, ""),
        ("client-go's", 15, 10, 2, ""),
        (
            "no room between lease and deadline",
            24,
            20,
            4,
            "election.lease_seconds (24) must be at least a quarter more than election.renew_deadline_seconds (20): two \
             leaders at a time otherwise",
        ),
        (
            "too few attempts",
            30,
            20,
            7,
            "election.renew_deadline_seconds (20) must be at least three times election.retry_seconds (7), which is at \
             least 1: one lost request would end a run otherwise",
        ),
        (
            "no pause",
            30,
            20,
            0,
            "election.renew_deadline_seconds (20) must be at least three times election.retry_seconds (0), which is at \
             least 1: one lost request would end a run otherwise",
        ),
    ];
    for (name, lease_seconds, renew_deadline_seconds, retry_seconds, wanted) in rows {
        let settings = Election { lease_seconds, renew_deadline_seconds, retry_seconds };
        let found = Limits::try_from(&settings).map_or_else(|error| error.to_string(), |_| String::new());
        assert_eq!(found, wanted, "{name}");
    }
}
