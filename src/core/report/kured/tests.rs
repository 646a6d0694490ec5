//! What is told of kured at each step of a run by it.

use super::*;
use crate::api::record::{Closing, FindingRecord, Intent, Sentinel};
use crate::report::testing::{at, record};
use crate::report::{Follow, Paint, story};

fn text(time: &str) -> String {
    format!("2026-11-30T{time}Z")
}

/// A run by kured in this phase since 01:20:00; kured looks every minute.
fn by_kured(phase: &str, with: impl FnOnce(&mut MaintenanceStatus, &mut KuredRecord)) -> Maintenance {
    let mut run = record(phase, |status| {
        let mut kured = KuredRecord { ask_epoch: 1, period_seconds: 60, ..KuredRecord::default() };
        with(status, &mut kured);
        status.kured = Some(kured);
    });
    run.spec.action = "kured".into();
    run
}

fn granted(status: &mut MaintenanceStatus, _: &mut KuredRecord) {
    let (at, valid_until) = (text("01:21:00"), text("01:21:30"));
    status.intent = Some(Intent { boot_id: "b1".into(), at, valid_until });
}

fn closing(taken: bool, used: bool) -> impl FnOnce(&mut MaintenanceStatus, &mut KuredRecord) {
    move |status, kured| {
        status.message = "closes what kured was granted".into();
        let taken_at = taken.then(|| text("01:21:40"));
        kured.closing = Some(Closing { taken_at, epoch: 2, pod: "p/0".into(), used });
    }
}

fn blocked(status: &mut MaintenanceStatus, _: &mut KuredRecord) {
    status.findings = vec![FindingRecord {
        gate: "attachments".into(),
        status: "block".into(),
        reason: "VolumeAttachmentStale".into(),
        message: "one is stale".into(),
        ..FindingRecord::default()
    }];
}

fn sentinel(_: &mut MaintenanceStatus, kured: &mut KuredRecord) {
    let (path, asked_at) = ("/var/run/reboot-required".to_owned(), text("01:20:40"));
    kured.sentinel = Some(Sentinel { path, asked_at, removed_at: String::new() });
}

#[test]
fn the_line_below_tells_what_kured_is_waited_for_and_how_long_at_most() {
    let follow = Follow::from_start(at("01:00:00"));
    let mut unknown = by_kured("Acting", |_, kured| kured.period_seconds = 0);
    let rows = vec![
        ("its question", by_kured("Acting", |_, _| {}), "Acting: waits for kured's question (00:00:15 at most)"),
        ("a period that is not known yet", unknown.clone(), "Acting: waits for kured's question"),
        ("with a sentinel", by_kured("Acting", sentinel), "Acting: waits for kured's question (00:00:55 at most)"),
        ("a grant", by_kured("Acting", granted), "Acting: granted, kured acts at its next look (00:01:15 at most)"),
        ("a gate", by_kured("Acting", blocked), "Acting: waits for attachments (VolumeAttachmentStale): one is stale"),
        ("taken back", by_kured("BackingOut", closing(true, false)), "BackingOut: closes what kured was granted"),
        ("for another grant", by_kured("Acting", closing(false, true)), "Acting: closes what kured was granted"),
        (
            "its lock",
            by_kured("Returning", |_, kured| kured.seen_lock = Some(text("01:21:20"))),
            "Returning: kured has its lock: it drains what is left and reboots",
        ),
        ("draining", by_kured("Draining", |_, _| {}), "Draining"),
    ];
    for (row, run, wanted) in rows {
        assert_eq!(follow.live(&run, at("01:20:45")), format!("+00:20:45 {wanted}"), "{row}");
    }
    assert_eq!(
        follow.live(&by_kured("Acting", granted), at("01:22:30")),
        "+00:22:30 Acting: granted, kured acts at its next look (00:00:30 overdue)"
    );
    unknown.spec.action = "pod".into();
    assert_eq!(follow.live(&unknown, at("01:20:45")), "+00:20:45 Acting", "another action waits for no kured");
}

#[test]
fn each_thing_that_is_waited_for_is_news_once() {
    let mut follow = Follow::from_start(at("01:00:00"));
    let steps = vec![
        (by_kured("Draining", |_, _| {}), vec![]),
        (by_kured("Acting", |_, _| {}), vec!["+00:20:45 Acting: waits for kured's question (00:00:15 at most)"]),
        (by_kured("Acting", |_, _| {}), vec![]),
        (
            by_kured("Acting", granted),
            vec!["+00:20:45 Acting: granted, kured acts at its next look (00:01:15 at most)"],
        ),
        (by_kured("Acting", granted), vec![]),
        (by_kured("BackingOut", closing(true, false)), vec!["+00:20:45 BackingOut: closes what kured was granted"]),
        (by_kured("BackingOut", closing(true, false)), vec![]),
    ];
    for (index, (run, wanted)) in steps.into_iter().enumerate() {
        assert_eq!(follow.news(&run, at("01:20:45")), wanted, "step {index}");
    }
}

/// The section of a story, and what it needs.
fn shown(run: &Maintenance) -> (String, String) {
    let story = story(run, Paint::PLAIN, at("01:22:00"));
    let part = |title: &str| {
        let from = story.split_once(&format!("\n{title}\n")).map_or("", |(_, rest)| rest);
        from.split("\n\n").next().unwrap_or_default().trim_end().to_owned()
    };
    (part("kured"), part("needs you"))
}

#[test]
fn the_story_tells_question_grant_lock_and_what_is_awaited() {
    let mut asked = by_kured("Acting", granted);
    let note = r#"{"at":"2026-11-30T01:20:58Z","answer":"no: granted to nobody yet","epoch":1,"source":"kured"}"#;
    asked.metadata.annotations = Some([("maint.dev/asked".to_owned(), note.to_owned())].into());
    let rows = [
        (
            "granted",
            asked,
            "  asked    2026-11-30T01:20:58Z, answered `no: granted to nobody yet`
  looks    every 60 s
  grant    since 2026-11-30T01:21:00Z for boot b1, valid until 2026-11-30T01:21:30Z
  awaited  granted, kured acts at its next look (00:00:00 at most)",
        ),
        (
            "committed",
            by_kured("Returning", |_, kured| (kured.seen_lock, kured.grants) = (Some(text("01:21:20")), 1)),
            "  looks    every 60 s
  grant    used once
  lock     taken by kured at 2026-11-30T01:21:20Z
  awaited  kured has its lock: it drains what is left and reboots",
        ),
        (
            "taken back",
            by_kured("BackingOut", closing(false, false)),
            "  looks    every 60 s
  grant    taken back, and not known to be over
  lock     not ours yet
  awaited  closes what kured was granted",
        ),
        (
            "a sentinel",
            by_kured("Failed", sentinel),
            "  looks     every 60 s
  sentinel  /var/run/reboot-required, put on the node at 2026-11-30T01:20:40Z; being taken away",
        ),
    ];
    for (row, run, wanted) in rows {
        assert_eq!(shown(&run).0, wanted, "{row}");
    }
    let (kured, needs) = shown(&by_kured("Failed", closing(true, false)));
    assert_eq!(
        kured,
        "  looks    every 60 s
  grant    taken back, and not known to be over
  lock     ours since 2026-11-30T01:21:40Z, for 00:00:20
  awaited  one of: kured on worker2 asks again and hears no; its pod is another one; the node boots. Then the lock is given back"
    );
    assert!(needs.starts_with("  maint lock show  kured's lock stays ours until kured has asked again"), "{needs}");
}

#[test]
fn a_hold_of_the_lock_is_told_as_given_back_only_when_the_record_let_go() {
    let held = |phase: &str, finalizers: Option<Vec<String>>| {
        let mut run = by_kured(phase, |_, kured| kured.held_since = Some(text("01:20:10")));
        run.spec.action = "pod".into();
        run.metadata.finalizers = finalizers;
        shown(&run).0
    };
    let mine = || Some(vec!["maint.dev/put-back".to_owned()]);
    assert!(held("Draining", mine()).contains("ours since 2026-11-30T01:20:10Z"));
    assert!(held("Succeeded", mine()).contains("ours since 2026-11-30T01:20:10Z"), "not let go yet");
    assert!(held("Succeeded", None).contains("was ours from 2026-11-30T01:20:10Z, given back"));
}
