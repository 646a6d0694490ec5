//! Rows: what happens, when, and the exact end.

use serde_json::json;

use super::play::{Play, spec, word};
use super::world::{Pods, Scene, TARGET, later};
use crate::api::record::MaintenanceSpec;
use crate::api::{Phase, SourceId, names};

/// Something that happens, when this phase has been seen for some turns.
pub(super) type Event = (Phase, usize, fn(&mut Play));

/// One row.
pub(super) struct Row {
    pub name: &'static str,
    pub spec: fn() -> MaintenanceSpec,
    pub setup: fn(&mut Scene),
    pub events: &'static [Event],
    /// Phase and outcome.
    pub end: &'static str,
    /// The acts in order, repeated ones once.
    pub acts: &'static str,
    pub node: &'static str,
    pub messages: &'static str,
    /// A part of the last message or warning.
    pub says: &'static str,
}

pub(super) fn check(rows: &[Row]) {
    for row in rows {
        let mut play = Play::new((row.spec)());
        (row.setup)(&mut play.scene);
        for (phase, turns, event) in row.events {
            play.run_until(*phase, *turns);
            event(&mut play);
        }
        play.run();
        let status = play.status();
        let end = if play.scene.record.is_none() {
            format!("{} deleted", play.phase())
        } else {
            format!("{} {}", status.phase, status.outcome)
        };
        let name = row.name;
        let seen = (end.as_str(), play.act_line(), play.scene.node_line(), play.messages());
        let wanted = (row.end, row.acts.to_owned(), row.node.to_owned(), row.messages.to_owned());
        assert_eq!(seen, wanted, "{name}\n{}", play.told());
        let texts: Vec<String> = status
            .outbox
            .iter()
            .map(|entry| entry.text.clone())
            .chain(status.warnings.iter().cloned())
            .chain([status.message.clone()])
            .collect();
        assert!(texts.iter().any(|text| text.contains(row.says)), "{name}: {texts:#?}");
        if play.phase().is_terminal() {
            assert!(play.done, "{name}: not done");
            play.assert_nothing_left(name);
        }
    }
}

// --- records ---

pub(super) fn reboot() -> MaintenanceSpec {
    spec("reboot", "pod")
}

pub(super) fn by_hand() -> MaintenanceSpec {
    MaintenanceSpec { trigger: "manual".into(), ..reboot() }
}

pub(super) fn restart() -> MaintenanceSpec {
    spec("service-restart", "pod")
}

/// kured's own wish.
pub(super) fn by_kured() -> MaintenanceSpec {
    spec("reboot", "kured")
}

/// A person wants kured to reboot.
pub(super) fn by_kured_by_hand() -> MaintenanceSpec {
    MaintenanceSpec { trigger: "manual".into(), ..by_kured() }
}

/// A program waits to claim.
pub(super) fn program() -> MaintenanceSpec {
    spec("reboot", "external")
}

/// A program's command restarts a service.
pub(super) fn program_restart() -> MaintenanceSpec {
    spec("service-restart", "external")
}

/// A person is told to act.
pub(super) fn person() -> MaintenanceSpec {
    MaintenanceSpec { command_waits: false, ..program() }
}

pub(super) fn idle_person() -> MaintenanceSpec {
    MaintenanceSpec { reason: "nobody acts".into(), ..person() }
}

pub(super) fn nobody_waits() -> MaintenanceSpec {
    MaintenanceSpec { reason: "nobody waits".into(), ..program() }
}

// --- clusters ---

pub(super) fn healthy(_: &mut Scene) {}

pub(super) fn with_kured(scene: &mut Scene) {
    scene.install(|_| {});
}

pub(super) fn quiet_kured(scene: &mut Scene) {
    scene.install(|kured| kured.wants = false);
    scene.settings.kured.sentinel.image = "busybox@sha256:00".to_owned();
}

pub(super) fn stays_down(scene: &mut Scene) {
    scene.cluster.away_for = None;
}

pub(super) fn does_not_reboot(scene: &mut Scene) {
    scene.cluster.reboots_after = None;
}

pub(super) fn no_reboot_needed(scene: &mut Scene) {
    scene.cluster.reboots_after = None;
}

pub(super) fn pods_stay(scene: &mut Scene) {
    scene.cluster.pods = Pods::Stay;
}

pub(super) fn theirs(scene: &mut Scene) {
    scene.cordon(TARGET, true, "kubectl");
}

// --- events ---

pub(super) fn halt(play: &mut Play) {
    let halt = json!({"by": "anna", "reason": "storm", "since": "2026-11-30T00:00:00Z"}).to_string();
    *play.scene.world.of(SourceId::ConfigMaps) =
        vec![json!({"metadata": {"name": "maint-control", "namespace": "maint"}, "data": {"halt": halt}})];
}

pub(super) fn garble_halt(play: &mut Play) {
    halt(play);
    play.scene.world.of(SourceId::ConfigMaps)[0]["data"]["halt"] = json!("{");
}

pub(super) fn unhalt(play: &mut Play) {
    play.scene.world.of(SourceId::ConfigMaps).clear();
}

pub(super) fn hold(play: &mut Play) {
    let hold = json!({"by": "anna", "reason": "disk"}).to_string();
    play.scene.annotate(TARGET, names::ANNOTATION_HOLD, Some(hold));
}

pub(super) fn garble_hold(play: &mut Play) {
    play.scene.annotate(TARGET, names::ANNOTATION_HOLD, Some("yes please".into()));
}

pub(super) fn release(play: &mut Play) {
    play.scene.annotate(TARGET, names::ANNOTATION_HOLD, None);
}

pub(super) fn cancel(play: &mut Play) {
    play.say(|spec| spec.cancel = word(false));
}

pub(super) fn cancel_accept(play: &mut Play) {
    play.say(|spec| spec.cancel = word(true));
}

pub(super) fn resume(play: &mut Play) {
    play.say(|spec| spec.resume = word(false));
}

pub(super) fn resume_accept(play: &mut Play) {
    play.say(|spec| spec.resume = word(true));
}

pub(super) fn delete(play: &mut Play) {
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(play.scene.now);
    if let Some(record) = &mut play.scene.record {
        record.metadata.deletion_timestamp = Some(now);
        if record.metadata.finalizers.is_none() {
            play.scene.record = None;
        }
    }
}

pub(super) fn replace_node(play: &mut Play) {
    if let Some(node) = play.scene.find(TARGET) {
        node["metadata"]["uid"] = json!("uid-other");
        node["metadata"]["annotations"] = json!({});
        node["metadata"]["managedFields"] = json!([]);
        node["spec"] = json!({});
    }
    play.scene.touch(TARGET);
}

pub(super) fn remove_node(play: &mut Play) {
    play.scene.world.of(SourceId::Nodes).retain(|node| node["metadata"]["name"] != TARGET);
}

pub(super) fn uncordon(play: &mut Play) {
    play.scene.cordon(TARGET, false, "kubectl");
}

pub(super) fn recordon(play: &mut Play) {
    uncordon(play);
    play.scene.cordon(TARGET, true, "kubectl");
}

pub(super) fn power_loss(play: &mut Play) {
    play.scene.boot();
}

pub(super) fn other_down(play: &mut Play) {
    play.scene.set_ready("worker3", false);
}

pub(super) fn other_up(play: &mut Play) {
    play.scene.set_ready("worker3", true);
}

pub(super) fn other_cordoned(play: &mut Play) {
    play.scene.cordon("worker3", true, "kubectl");
}

pub(super) fn foreign_lock(play: &mut Play) {
    let lock = json!({"nodeID": "worker3", "created": "2026-11-30T00:59:00Z", "TTL": 0}).to_string();
    if play.scene.kured.is_some() {
        // A kured takes what is free, and nothing else.
        if play.scene.lock().is_none() {
            play.scene.set_lock(Some(lock));
        }
        return;
    }
    *play.scene.world.of(SourceId::DaemonSets) = vec![json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {
            "name": "kured", "namespace": "kube-system", "generation": 1,
            "annotations": {"weave.works/kured-node-lock": lock},
        },
        "spec": {"template": {"metadata": {}, "spec": {"containers": []}}},
        "status": {"observedGeneration": 1, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberReady": 3},
    })];
}

pub(super) fn no_lock(play: &mut Play) {
    if play.scene.kured.is_some() {
        if play.scene.lock_value()["nodeID"] == "worker3" {
            play.scene.set_lock(None);
        }
        return;
    }
    play.scene.world.of(SourceId::DaemonSets).clear();
}

pub(super) fn break_pair(play: &mut Play) {
    play.scene.cluster.broken_pair = true;
}

pub(super) fn mend_pair(play: &mut Play) {
    play.scene.cluster.broken_pair = false;
}

pub(super) fn blind(play: &mut Play) {
    let all = [SourceId::Nodes, SourceId::ConfigMaps, SourceId::TargetPods, SourceId::ActionPods, SourceId::Leases];
    play.scene.cluster.unreadable.extend(all);
}

pub(super) fn sees(play: &mut Play) {
    play.scene.cluster.unreadable.clear();
}

pub(super) fn no_dns(play: &mut Play) {
    play.scene.cluster.unreadable.insert(SourceId::EndpointSlices);
}

pub(super) fn new_leader(play: &mut Play) {
    play.scene.term += 1;
}

pub(super) fn claim(play: &mut Play) {
    play.say(|spec| spec.claimed = word(false));
}

pub(super) fn say_done(play: &mut Play) {
    play.say(|spec| spec.action_done = word(false));
}

/// Time in which nobody leads.
pub(super) fn a_minute(play: &mut Play) {
    play.scene.now = later(play.scene.now, 60);
}

pub(super) fn minutes(play: &mut Play) {
    play.scene.now = later(play.scene.now, 240);
}
