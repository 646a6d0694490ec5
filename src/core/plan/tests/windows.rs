//! Windows and modes: they bind unattended runs, and only until commit.

use jiff::Timestamp;

use super::play::Play;
use super::table::*;
use super::world::{Pods, Scene, TARGET, later};
use crate::api::Phase::{Acting, Cordoning, Draining, Pending};
use crate::api::record::{MaintenanceSpec, Override};
use crate::config::{Mode, Settings};

const ALL: &str =
    "add-finalizer cordon evict create-action-pod uncordon mark-proven delete-action-pod remove-finalizer";
const BACK: &str = "add-finalizer cordon evict uncordon remove-finalizer";
const TOLD: &str = "started:info backed-out:warning";
const DONE: &str = "started:info finished:info";

/// A window of every day by UTC. All plays begin at 01:00.
fn window(scene: &mut Scene, start: &str, end: &str) {
    let all = r#"["mon", "tue", "wed", "thu", "fri", "sat", "sun"]"#;
    let text = format!(
        "expected_duration_seconds = 60\nwindows = [{{ name = \"night\", days = {all}, start = \"{start}\", \
         end = \"{end}\", zone = \"UTC\" }}]"
    );
    let parsed = Settings::parse(&text, "f").expect("settings");
    // Shorter than a file may say, since a play has deadlines of a minute.
    (scene.settings.windows, scene.settings.expected_duration_seconds) = (parsed.windows, 30);
}

/// It closes a minute after the play begins.
fn closes(scene: &mut Scene) {
    window(scene, "00:30", "01:01");
}

fn closes_and_pods_stay(scene: &mut Scene) {
    closes(scene);
    pods_stay(scene);
}

fn no_windows(play: &mut Play) {
    play.scene.settings.windows.clear();
}

fn observes(play: &mut Play) {
    play.scene.settings.mode = Mode::Observe;
}

fn a_day(play: &mut Play) {
    play.scene.now = later(play.scene.now, 86_400);
}

fn waived() -> MaintenanceSpec {
    let waived = Override { gate: "window".into(), reason: "agreed by phone".into(), by: "anna".into() };
    MaintenanceSpec { overrides: vec![waived], ..reboot() }
}

#[rustfmt::skip]
const WINDOWS: &[Row] = &[
    Row { name: "the hard stop while pods are evicted", spec: reboot, setup: closes_and_pods_stay, events: &[], end: "Failed WindowClosed", acts: BACK, node: "schedulable", messages: TOLD, says: "worker2 was not maintained, failed (WindowClosed): the window night-2026-11-30 closed Mon 2026-11-30 01:01 UTC; the next try is the next window" },
    Row { name: "the hard stop while a program is waited for", spec: nobody_waits, setup: closes, events: &[], end: "Failed WindowClosed", acts: BACK, node: "schedulable", messages: TOLD, says: "the window night-2026-11-30 closed" },
    Row { name: "the hard stop while the cordon cannot be written", spec: reboot, setup: |scene| { closes(scene); scene.cluster.writes_fail = true; }, events: &[], end: "Failed WindowClosed", acts: "add-finalizer remove-finalizer", node: "schedulable", messages: TOLD, says: "the window night-2026-11-30 closed" },
    Row { name: "a halt does not move it", spec: reboot, setup: closes_and_pods_stay, events: &[(Draining, 1, halt), (Draining, 8, unhalt)], end: "Failed WindowClosed", acts: BACK, node: "schedulable", messages: TOLD, says: "the window night-2026-11-30 closed" },
    Row { name: "the next night is another one", spec: reboot, setup: closes_and_pods_stay, events: &[(Draining, 1, a_day)], end: "Failed WindowClosed", acts: BACK, node: "schedulable", messages: TOLD, says: "the window night-2026-11-30 closed" },
    Row { name: "after commit it goes on", spec: reboot, setup: |scene| { closes(scene); scene.cluster.away_for = Some(70); }, events: &[], end: "Succeeded Proven", acts: ALL, node: "schedulable", messages: DONE, says: "is done" },
    Row { name: "by hand it means nothing", spec: by_hand, setup: |scene| { closes(scene); scene.cluster.pods = Pods::GoAfter(70); }, events: &[], end: "Succeeded Proven", acts: ALL, node: "schedulable", messages: DONE, says: "is done" },
    Row { name: "by hand without a window", spec: by_hand, setup: |scene| { scene.settings.windows.clear(); scene.settings.mode = Mode::Observe; }, events: &[], end: "Succeeded Proven", acts: ALL, node: "schedulable", messages: DONE, says: "is done" },
    Row { name: "outside it waits", spec: reboot, setup: |scene| window(scene, "22:00", "00:30"), events: &[], end: "Pending ", acts: "", node: "schedulable", messages: "", says: "waits: window (OutsideWindow): no window is open since night closed Mon 2026-11-30 00:30 UTC" },
    Row { name: "it opens", spec: reboot, setup: |scene| window(scene, "01:02", "02:00"), events: &[], end: "Succeeded Proven", acts: ALL, node: "schedulable", messages: DONE, says: "is done" },
    Row { name: "no room left", spec: reboot, setup: |scene| { closes(scene); scene.settings.expected_duration_seconds = 61; }, events: &[(Pending, 3, |_| {})], end: "Pending ", acts: "", node: "schedulable", messages: "", says: "waits: window (OutsideWindow)" },
    Row { name: "no window", spec: reboot, setup: |scene| scene.settings.windows.clear(), events: &[], end: "Pending ", acts: "", node: "schedulable", messages: "", says: "waits: window (NoWindowConfigured)" },
    Row { name: "observe", spec: reboot, setup: |scene| scene.settings.mode = Mode::Observe, events: &[], end: "Pending ", acts: "", node: "schedulable", messages: "", says: "waits: control (ObserveMode): mode is observe" },
    Row { name: "a person waives it", spec: waived, setup: |scene| window(scene, "22:00", "00:30"), events: &[], end: "Succeeded Proven", acts: ALL, node: "schedulable", messages: "started:info finished:warning", says: "gate window waived by anna: agreed by phone" },
    Row { name: "the hard stop is frozen", spec: reboot, setup: |scene| scene.cluster.pods = Pods::GoAfter(20), events: &[(Draining, 1, no_windows)], end: "Succeeded Proven", acts: ALL, node: "schedulable", messages: DONE, says: "is done" },
    Row { name: "the mode is asked at the start", spec: reboot, setup: healthy, events: &[(Cordoning, 1, observes)], end: "Succeeded Proven", acts: ALL, node: "schedulable", messages: DONE, says: "is done" },
    Row { name: "a person's word comes first", spec: nobody_waits, setup: closes, events: &[(Acting, 1, |play| { a_minute(play); cancel(play); })], end: "Cancelled Cancelled", acts: BACK, node: "schedulable", messages: TOLD, says: "cancelled by anna" },
    Row { name: "what was claimed in time counts", spec: nobody_waits, setup: closes, events: &[(Acting, 2, |play| { claim(play); say_done(play); play.scene.acted(); a_minute(play); })], end: "Succeeded Proven", acts: "add-finalizer cordon evict uncordon mark-proven remove-finalizer", node: "schedulable", messages: DONE, says: "is done" },
];

#[test]
fn windows_and_modes() {
    check(WINDOWS);
}

#[test]
fn an_unattended_run_freezes_its_window_and_a_manual_one_has_none() {
    let frozen = |spec: MaintenanceSpec| {
        let mut play = Play::new(spec);
        closes(&mut play.scene);
        play.run_until(Draining, 1);
        play.status().window
    };
    let window = frozen(reboot()).expect("a window");
    assert_eq!((window.opening.as_str(), window.ends_at.as_str()), ("night-2026-11-30", "2026-11-30T01:01:00Z"));
    assert_eq!(frozen(by_hand()), None);
}

#[test]
fn a_wish_outside_the_windows_is_judged_every_ten_minutes_and_when_one_opens() {
    let at = |time: &str| format!("2026-11-30T{time}Z").parse::<Timestamp>().expect("a time");
    let mut play = Play::new(reboot());
    window(&mut play.scene, "01:25", "02:00");
    play.scene.cordon(TARGET, false, "nobody");
    let mut seen = Vec::new();
    while play.phase() == Pending && seen.len() < 10 {
        seen.push(play.scene.now);
        play.turn();
    }
    let wanted = ["01:00:00", "01:10:00", "01:20:00", "01:25:00"].map(at);
    assert_eq!(seen[..4], wanted, "{seen:?}");
}

#[test]
fn a_wish_that_gates_stop_is_judged_every_half_minute_and_a_persons_every_ten_seconds() {
    for (row, spec, wanted) in [("unattended", reboot(), 30), ("by hand", by_hand(), 10)] {
        let mut play = Play::new(spec);
        window(&mut play.scene, "00:30", "02:00");
        play.scene.cordon("worker3", true, "kubectl");
        let seen: Vec<Timestamp> = (0..4)
            .map(|_| {
                let now = play.scene.now;
                play.turn();
                now
            })
            .collect();
        assert_eq!(play.phase(), Pending, "{row}");
        assert!(play.status().message.starts_with("waits: "), "{row}: {}", play.status().message);
        for pair in seen.windows(2) {
            assert_eq!(pair[1].duration_since(pair[0]).as_secs(), wanted, "{row}: {seen:?}");
        }
    }
}
