//! Whose turn it is among wishes that gates do not stop.

use serde_json::{Value, json};

use super::play::{Play, spec};
use super::seat::own;
use crate::api::{Phase, SourceId};
use crate::plan::OwnSeat;

/// A wish of another node, made at a time of the night.
fn other(node: &str, created: &str, with: &Value) -> Value {
    let mut record = json!({
        "metadata": {"name": format!("{node}-1"), "uid": format!("uid-{node}"), "creationTimestamp": format!("2026-11-30T{created}Z")},
        "spec": {"nodeName": node, "trigger": "unattended"},
        "status": {"phase": "Pending"},
    });
    for (key, value) in with.as_object().into_iter().flatten() {
        if key == "trigger" {
            record["spec"][key] = value.clone();
        } else {
            record["status"][key] = value.clone();
        }
    }
    record
}

/// A turn or two of worker2's wish of 00:30 beside these others; answers where it is and what it says.
fn beside(others: Vec<Value>, trigger: &str, leader_on: Option<&str>) -> (Phase, String) {
    let mut wish = spec("reboot", "pod");
    trigger.clone_into(&mut wish.trigger);
    let mut play = Play::new(wish);
    let created = "2026-11-30T00:30:00Z".parse().expect("a time");
    let record = play.scene.record.as_mut().expect("a record");
    record.metadata.creation_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(created));
    play.scene.others = others;
    play.scene.seat = leader_on.map(|node| OwnSeat { node: node.to_owned(), hand_over_from: jiff::Timestamp::MIN });
    // Another replica could take over.
    *play.scene.world.of(SourceId::OwnPods) =
        vec![own("maint-1", "worker2", "True"), own("maint-2", "worker3", "True")];
    for _ in 0..4 {
        play.turn();
    }
    (play.phase(), play.status().message)
}

#[test]
fn the_oldest_wish_that_can_start_goes_first() {
    let none = json!({});
    let rows = [
        ("alone", vec![], "unattended", None, None),
        (
            "an older one",
            vec![other("worker1", "00:10:00", &none)],
            "unattended",
            None,
            Some("worker1 comes first (worker1-1)"),
        ),
        ("a younger one", vec![other("worker1", "00:40:00", &none)], "unattended", None, None),
        (
            "of the same second, by name",
            vec![other("worker1", "00:30:00", &none)],
            "unattended",
            None,
            Some("worker1 comes first"),
        ),
        (
            "of the same second, by name the other way",
            vec![other("worker3", "00:30:00", &none)],
            "unattended",
            None,
            None,
        ),
        (
            "an older one that its gates stop",
            vec![other("worker1", "00:10:00", &json!({"blockedSince": "2026-11-30T00:20:00Z"}))],
            "unattended",
            None,
            None,
        ),
        (
            "an older one that is over",
            vec![other("worker1", "00:10:00", &json!({"phase": "Succeeded"}))],
            "unattended",
            None,
            None,
        ),
        (
            "an older one of a person starts by itself",
            vec![other("worker1", "00:10:00", &json!({"trigger": "manual"}))],
            "unattended",
            None,
            None,
        ),
        ("a person waits for nobody", vec![other("worker1", "00:10:00", &none)], "manual", None, None),
        (
            "two older ones: the oldest is named",
            vec![other("worker3", "00:20:00", &none), other("worker1", "00:10:00", &none)],
            "unattended",
            None,
            Some("worker1 comes first"),
        ),
        (
            "an older one on the leader's node comes last",
            vec![other("worker1", "00:10:00", &none)],
            "unattended",
            Some("worker1"),
            None,
        ),
        (
            "our node is the leader's: a younger one goes first",
            vec![other("worker1", "00:40:00", &none)],
            "unattended",
            Some("worker2"),
            Some("worker1 comes first"),
        ),
    ];
    for (row, others, trigger, leader_on, waits) in rows {
        let (phase, message) = beside(others, trigger, leader_on);
        match waits {
            Some(why) => {
                assert_eq!(phase, Phase::Pending, "{row}");
                assert!(message.starts_with(&format!("waits: {why}")), "{row}: {message}");
            }
            None => assert_ne!(phase, Phase::Pending, "{row}: {message}"),
        }
    }
}

#[test]
fn who_else_waits_must_be_known() {
    let (phase, message) = beside(vec![json!({"metadata": {"name": "odd"}, "spec": {}})], "unattended", None);
    // Gate `exclusive` says so first: a record that cannot be understood may be in flight.
    assert_eq!(phase, Phase::Pending);
    assert!(message.contains("odd"), "{message}");
}

#[test]
fn a_wish_starts_once_the_first_is_over() {
    let mut play = Play::new(spec("reboot", "pod"));
    play.scene.others = vec![other("worker1", "00:10:00", &json!({}))];
    let created = "2026-11-30T00:30:00Z".parse().expect("a time");
    let record = play.scene.record.as_mut().expect("a record");
    record.metadata.creation_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(created));
    play.turn();
    play.turn();
    assert_eq!(play.phase(), Phase::Pending);
    play.scene.others[0]["status"]["phase"] = json!("Settling");
    play.turn();
    // In flight it is unavailable, and gate `exclusive` holds the second up.
    assert!(play.status().message.contains("exclusive"), "{}", play.status().message);
    play.scene.others[0]["status"]["phase"] = json!("Succeeded");
    play.run();
    assert_eq!(play.phase(), Phase::Succeeded, "{}", play.told());
    assert!(play.scene.world.of(SourceId::ActionPods).is_empty());
}
