//! What holds for whatever happens: random events at random times, and records that somebody spoilt.

use proptest::prelude::*;

use super::kured::*;
use super::play::Play;
use super::table::*;
use crate::api::Phase;
use crate::api::record::{Maintenance, MaintenanceSpec};
use crate::gates::testing::mutations;
use crate::plan::Act;

#[rustfmt::skip]
const EVENTS: &[(&str, fn(&mut Play))] = &[
    ("halt", halt), ("garble halt", garble_halt), ("unhalt", unhalt), ("hold", hold), ("garble hold", garble_hold),
    ("release", release), ("cancel", cancel), ("cancel --accept", cancel_accept), ("resume", resume),
    ("resume --accept", resume_accept), ("delete", delete), ("replace node", replace_node),
    ("remove node", remove_node), ("uncordon", uncordon), ("recordon", recordon), ("power loss", power_loss),
    ("other down", other_down), ("other up", other_up), ("other cordoned", other_cordoned), ("lock", foreign_lock),
    ("no lock", no_lock), ("break pair", break_pair), ("mend pair", mend_pair), ("blind", blind), ("sees", sees),
    ("no DNS", no_dns), ("new leader", new_leader), ("claim", claim), ("done", say_done), ("a minute", a_minute),
    ("wipe lock", wipe_lock), ("garble lock", garble_lock), ("kured restarts", kured_restarts),
    ("kured wants", kured_wants), ("kured wants no more", kured_wants_no_more), ("kured is slow", kured_is_slow),
    ("kured's drain fails", kured_fails), ("its command fails", command_fails),
];

/// What may come between our last look and kured's lock.
const MEDDLING: &[&str] = &["uncordon", "recordon", "replace node", "remove node", "wipe lock", "garble lock"];

const SPECS: &[fn() -> MaintenanceSpec] = &[
    reboot,
    by_hand,
    restart,
    program,
    program_restart,
    person,
    idle_person,
    nobody_waits,
    by_kured,
    by_kured_by_hand,
];

/// Everything is well again, and a person ends what is held.
fn end_well(play: &mut Play) {
    for heal in [unhalt, release, sees, other_up, no_lock, clear_garbage, mend_pair, kured_is_quick, kured_wants] {
        heal(play);
    }
    play.scene.cordon("worker3", false, "kubectl");
    play.scene.cluster.away_for = Some(20);
    play.run();
    if play.phase() == Phase::Held {
        // Another word than before, if there was one.
        play.say(|spec| {
            spec.cancel = super::play::word(true).map(|word| crate::api::record::Word { by: "zoe".into(), ..word });
        });
        play.run();
    }
    if play.phase() == Phase::Pending {
        cancel(play);
        play.run();
    }
    if !play.done && play.phase().is_terminal() {
        // It waits until an old go is spent: kured wants something once more, or somebody replaces its pod.
        kured_restarts(play);
        play.run();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_it_ends_and_leaves_nothing(
        which in 0..SPECS.len(),
        cordoned in any::<bool>(),
        slow in any::<bool>(),
        kured in any::<bool>(),
        stays_away in any::<bool>(),
        events in proptest::collection::vec((0..25_usize, 0..EVENTS.len()), 0..9),
    ) {
        let mut play = Play::new(SPECS[which]());
        if cordoned && which == 1 {
            theirs(&mut play.scene);
        }
        if slow {
            play.scene.cluster.pods = super::world::Pods::GoAfter(15);
        }
        if stays_away {
            stays_down(&mut play.scene);
        }
        // With kured in the cluster, whoever acts.
        if kured || which >= 8 {
            quiet_kured(&mut play.scene);
            play.scene.kured().wants = which == 8;
        }
        let mut held = false;
        for (turns, event) in events {
            for _ in 0..turns {
                play.turn();
            }
            EVENTS[event].1(&mut play);
            if let Some(kured) = &mut play.scene.kured {
                kured.meddled |= MEDDLING.contains(&EVENTS[event].0);
            }
            held |= EVENTS[event].0.contains("hold");
        }
        end_well(&mut play);
        let phase = play.phase();
        // A wish without our finalizer can be deleted before anybody looks.
        let gone = play.scene.record.is_none() && phase == Phase::Pending;
        prop_assert!(phase.is_terminal() || gone, "ended {phase}: {}", play.told());
        play.assert_nothing_left("random");
        let line = play.scene.node_line();
        prop_assert!(held || line != "cordoned by maint", "our cordon is left: {}", play.told());
        let boots: std::collections::BTreeSet<&String> = play.scene.pods_created.iter().collect();
        prop_assert_eq!(boots.len(), play.scene.pods_created.len(), "two acts on one boot");
    }
}

/// Acts that nothing takes back.
fn irreversible(acts: &[Act]) -> Vec<&Act> {
    acts.iter()
        .filter(|act| matches!(act, Act::Evict(_) | Act::CreateActionPod { .. } | Act::Uncordon { .. }))
        .collect()
}

#[test]
fn a_spoilt_record_never_makes_it_act() {
    let mut tried = 0;
    for spec in [reboot, restart, program, by_kured, by_kured_by_hand] {
        let mut play = Play::new(spec());
        play.records = true;
        if spec().action == "kured" {
            quiet_kured(&mut play.scene);
            play.scene.kured().wants = spec().trigger == "unattended";
            // Withdrawn once, so that what is kept of that is spoilt too.
            play.run_until(Phase::Acting, 0);
            play.until_granted();
            no_dns(&mut play);
            play.turn();
            play.turn();
            sees(&mut play);
        }
        if spec().scope == "service-restart" {
            no_reboot_needed(&mut play.scene);
        }
        play.run();
        assert!(play.done);
        let mut seen = std::collections::BTreeSet::new();
        for (record, facts, now) in play.statuses.clone() {
            let Some(status) = &record.status else { continue };
            let whole = play.decide_at(&record, &facts, now);
            let (acts, granted) = (whole.acts, whole.status.intent);
            // One of a kind is enough: a phase with its acts.
            let kinds: Vec<&str> = acts.iter().map(Act::as_str).collect();
            if !seen.insert(format!("{} {kinds:?}", status.phase)) {
                continue;
            }
            let document = serde_json::to_value(status).expect("JSON");
            for (told, spoilt) in mutations(&document) {
                let Ok(status) = serde_json::from_value(spoilt) else { continue };
                let spoilt = Maintenance { status: Some(status), ..record.clone() };
                let decided = play.decide_at(&spoilt, &facts, now);
                let given = decided.status.intent.as_ref();
                let before = spoilt.status.as_ref().and_then(|status| status.intent.as_ref());
                if record.spec.action == "kured" && granted.is_none() && given != before {
                    assert_eq!(given, None, "{told}: granted, and not by the whole record");
                }
                for act in irreversible(&decided.acts) {
                    assert!(acts.contains(act), "{told}: {act:?} was not asked for by the whole record");
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 500, "{tried}");
}
