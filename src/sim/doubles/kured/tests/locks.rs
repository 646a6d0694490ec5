//! The lock's two formats, expiry and the three operations, as Go's decoder and kured's code have them.

use std::time::Duration;

use jiff::Timestamp;

use crate::doubles::kured::lock::{Acquire, acquire, holding, metadata, release};
use crate::doubles::kured::settings::Settings;

const MINE: &str = r#"{"nodeID":"a","metadata":{"unschedulable":true},"created":"2026-11-30T01:59:00Z","TTL":0}"#;
const OTHER: &str = r#"{"nodeID":"b","metadata":{"unschedulable":false},"created":"2026-11-30T01:59:00Z","TTL":0}"#;
/// Expired: a minute old, with a TTL of 60 s.
const OLD: &str =
    r#"{"nodeID":"b","metadata":{"unschedulable":true},"created":"2026-11-30T01:59:00Z","TTL":60000000000}"#;
const NEW: &str = r#"{"nodeID":"a","metadata":{"unschedulable":false},"created":"2026-11-30T02:00:00Z","TTL":0}"#;

fn now() -> Timestamp {
    "2026-11-30T02:00:00Z".parse().expect("a time")
}

fn settings(concurrency: usize) -> Settings {
    Settings { concurrency, ..Settings::default() }
}

fn multi(entries: &[&str]) -> String {
    format!(r#"{{"maxOwners":2,"locks":[{}]}}"#, entries.join(","))
}

#[test]
fn a_value_is_read_as_go_reads_it() {
    for (row, concurrency, value, wanted) in [
        ("absent", 1, None, Ok(false)),
        ("mine", 1, Some(MINE), Ok(true)),
        ("another's", 1, Some(OTHER), Ok(false)),
        ("bare", 1, Some(r#"{"nodeID":"a"}"#), Ok(true)),
        ("unknown fields and white space", 1, Some("  {\"nodeID\": \"a\", \"maint\": {\"x\": 1}} "), Ok(true)),
        ("letters of another case", 1, Some(r#"{"NodeId":"a"}"#), Ok(true)),
        ("null fields", 1, Some(r#"{"nodeID":"a","metadata":null,"created":null,"TTL":null}"#), Ok(true)),
        ("null", 1, Some("null"), Ok(false)),
        ("no JSON", 1, Some("manual"), Err(())),
        ("empty", 1, Some(""), Err(())),
        ("a list", 1, Some("[]"), Err(())),
        ("nodeID is a number", 1, Some(r#"{"nodeID":1}"#), Err(())),
        ("TTL is a text", 1, Some(r#"{"nodeID":"a","TTL":"0"}"#), Err(())),
        ("TTL is a fraction", 1, Some(r#"{"nodeID":"a","TTL":1.5}"#), Err(())),
        ("created is no time", 1, Some(r#"{"nodeID":"a","created":"yesterday"}"#), Err(())),
        ("created without T", 1, Some(r#"{"nodeID":"a","created":"2026-11-30 01:59:00Z"}"#), Err(())),
        ("unschedulable is a text", 1, Some(r#"{"nodeID":"a","metadata":{"unschedulable":"true"}}"#), Err(())),
        ("multi read as single", 1, Some(r#"{"maxOwners":2,"locks":[]}"#), Ok(false)),
        ("single read as multi", 2, Some(MINE), Ok(false)),
        ("locks null", 2, Some(r#"{"maxOwners":2,"locks":null}"#), Ok(false)),
        ("locks is an object", 2, Some(r#"{"locks":{}}"#), Err(())),
        ("maxOwners is a text", 2, Some(r#"{"maxOwners":"2","locks":[]}"#), Err(())),
    ] {
        let found = holding(&settings(concurrency), "a", value, now());
        assert_eq!(found.map(|entry| entry.is_some()).map_err(drop), wanted, "{row}");
    }
    assert_eq!(
        holding(&settings(2), "a", Some(&multi(&[OTHER, MINE])), now()).map(|e| e.map(|e| e.unschedulable)),
        Ok(Some(true))
    );
}

#[test]
fn expiry_goes_by_the_stored_value() {
    let entry = |created: &str, ttl: i64| format!(r#"{{"nodeID":"a",{created}"TTL":{ttl}}}"#);
    let minute = r#""created":"2026-11-30T01:59:00Z","#;
    let flag = Settings { lock_ttl: Duration::from_secs(1), ..Settings::default() };
    for (row, value, held) in [
        ("no TTL", entry(minute, 0), true),
        ("negative", entry(minute, -1), true),
        ("exactly over", entry(minute, 60_000_000_000), false),
        ("a nanosecond to go", entry(minute, 60_000_000_001), true),
        ("TTL without created", entry("", 1), false),
        ("the longest TTL without created", entry("", i64::MAX), false),
        ("the longest TTL", entry(minute, i64::MAX), true),
    ] {
        assert_eq!(holding(&flag, "a", Some(&value), now()).map(|e| e.is_some()), Ok(held), "{row}");
    }
}

#[test]
fn an_attempt_writes_refuses_or_finds_itself() {
    let write = |text: &str| Ok(Acquire::Write(text.to_owned()));
    let full = multi(&[OTHER, OTHER]);
    let strange = r#"{"maxOwners":7,"maint":1,"locks":[{"nodeID":"b","note":"x","TTL":0}]}"#;
    let zero = r#"{"nodeID":"b","metadata":{"unschedulable":false},"created":"0001-01-01T00:00:00Z","TTL":0}"#;
    let mine_old = OLD.replace(r#""b""#, r#""a""#);
    for (row, concurrency, value, wanted) in [
        ("single, free", 1, None, write(NEW)),
        ("single, expired", 1, Some(OLD), write(NEW)),
        ("single, mine already", 1, Some(MINE), Ok(Acquire::Mine)),
        ("single, held", 1, Some(OTHER), Ok(Acquire::Refused("b".to_owned()))),
        ("single, multi JSON", 1, Some(full.as_str()), Ok(Acquire::Refused(String::new()))),
        ("multi, free", 2, None, write(&multi(&[NEW]))),
        ("multi, a single value is lost", 2, Some(OTHER), write(&multi(&[NEW]))),
        ("multi, a slot is free", 2, Some(&multi(&[OTHER])), write(&multi(&[OTHER, NEW]))),
        ("multi, an expired one counts while there is room", 2, Some(&multi(&[OLD])), write(&multi(&[OLD, NEW]))),
        ("multi, an expired one makes room", 2, Some(&multi(&[OLD, OTHER])), write(&multi(&[OTHER, NEW]))),
        ("multi, full: the name is empty", 2, Some(&full), Ok(Acquire::Refused(String::new()))),
        ("multi, over-full", 2, Some(&multi(&[OTHER, OTHER, OTHER])), Ok(Acquire::Refused(String::new()))),
        ("multi, mine twice", 2, Some(&multi(&[MINE])), write(&multi(&[MINE, NEW]))),
        ("multi, mine expired twice", 2, Some(&multi(&[&mine_old])), write(&multi(&[&mine_old, NEW]))),
        ("multi, what kured does not know is lost", 2, Some(strange), write(&multi(&[zero, NEW]))),
    ] {
        assert_eq!(acquire(&settings(concurrency), "a", value, false, now()), wanted, "{row}");
    }
    assert!(acquire(&settings(1), "a", Some("x"), false, now()).is_err());
    assert!(
        acquire(&settings(2), "a", Some("x"), false, now()).is_err_and(|e| e.starts_with("error getting multi lock"))
    );
}

#[test]
fn a_release_removes_one_entry_or_complains() {
    for (row, concurrency, value, wanted) in [
        ("single", 1, Some(MINE), Ok(None)),
        ("single, expired", 1, Some(&*OLD.replace(r#""b""#, r#""a""#)), Ok(None)),
        ("single, another's", 1, Some(OTHER), Err("not lock holder: b")),
        ("single, absent", 1, None, Err("lock not held")),
        ("multi, the last one", 2, Some(&multi(&[MINE])), Ok(Some(multi(&[])))),
        ("multi, one of two", 2, Some(&multi(&[OTHER, MINE])), Ok(Some(multi(&[OTHER])))),
        ("multi, a duplicate stays", 2, Some(&multi(&[MINE, NEW])), Ok(Some(multi(&[NEW])))),
        ("multi, not in it", 2, Some(&multi(&[OTHER])), Err("Lock not held")),
        ("multi, absent", 2, None, Err("Lock not held")),
    ] {
        let wanted = wanted.map_err(str::to_owned);
        assert_eq!(release(&settings(concurrency), "a", value), wanted, "{row}");
    }
    assert!(release(&settings(1), "a", Some("x")).is_err());
}

#[test]
fn times_are_written_again_as_go_writes_them() {
    for (row, created, wanted) in [
        ("nanoseconds", "2026-11-30T01:59:00.123456789Z", "2026-11-30T01:59:00.123456789Z"),
        ("zeros at the end", "2026-11-30T01:59:00.120Z", "2026-11-30T01:59:00.12Z"),
        ("nothing but zeros", "2026-11-30T01:59:00.000Z", "2026-11-30T01:59:00Z"),
        ("an offset stays", "2026-11-30T03:59:00+02:00", "2026-11-30T03:59:00+02:00"),
    ] {
        let value = multi(&[&format!(r#"{{"nodeID":"b","created":"{created}"}}"#)]);
        let Ok(Acquire::Write(text)) = acquire(&settings(2), "a", Some(&value), false, now()) else { panic!("{row}") };
        assert!(text.contains(&format!(r#""created":"{wanted}""#)), "{row}: {text}");
    }
}

#[test]
fn older_releases_copy_whatever_metadata_is_there() {
    for (row, value, wanted) in [
        ("absent", None, None),
        ("foreign and expired", Some(OLD), Some(true)),
        ("says nothing", Some(r#"{"nodeID":"b"}"#), None),
        ("no JSON", Some("x"), None),
    ] {
        assert_eq!(metadata(value), wanted, "{row}");
    }
}
