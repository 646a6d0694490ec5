//! Before commit: every line of the rules' table of events ends with everything put back.

use serde_json::json;

use super::play::Play;
use super::table::*;
use super::world::{Pods, Scene, TARGET};
use crate::api::Phase::{Acting, BackingOut, Cordoning, Draining, Pending, Returning};
use crate::api::SourceId;
use crate::api::record::{MaintenanceSpec, Override};

const BACK: &str = "add-finalizer cordon evict uncordon remove-finalizer";
const BACK_FROM_CORDON: &str = "add-finalizer cordon uncordon remove-finalizer";
const KEPT: &str = "add-finalizer cordon evict drop-owner remove-finalizer";
const TOLD: &str = "started:info backed-out:warning";

fn quick_pods(play: &mut Play) {
    play.scene.cluster.pods = Pods::GoAtOnce;
}

fn dns_back(play: &mut Play) {
    sees(play);
}

fn no_writes(play: &mut Play) {
    play.scene.cluster.writes_fail = true;
}

fn writes(play: &mut Play) {
    play.scene.cluster.writes_fail = false;
}

/// One of two DNS endpoints, and not on the target.
fn one_dns(scene: &mut Scene) {
    let slice = &mut scene.world.of(SourceId::EndpointSlices)[0];
    slice["endpoints"].as_array_mut().expect("endpoints").truncate(1);
    scene.world.of(SourceId::DnsPods).truncate(1);
}

fn waive(gate: &str) -> Vec<Override> {
    vec![Override { gate: gate.into(), reason: "no DNS here".into(), by: "anna".into() }]
}

fn waive_dns() -> MaintenanceSpec {
    MaintenanceSpec { overrides: [waive("coredns-replicas"), waive("coredns-spread")].concat(), ..reboot() }
}

fn odd_pod(play: &mut Play) {
    let pod = json!({
        "metadata": {"name": "maint-worker2-1", "namespace": "maint-actions", "uid": "uid-odd"},
        "spec": {"nodeName": TARGET}, "status": {"phase": "Running"},
    });
    play.scene.world.of(SourceId::ActionPods).push(pod);
}

fn pods_return(play: &mut Play) {
    let pod = json!({
        "metadata": {"name": "bare-7", "namespace": "shop", "uid": "uid-bare-7"},
        "spec": {"nodeName": TARGET}, "status": {"phase": "Running"},
    });
    play.scene.world.of(SourceId::TargetPods).push(pod);
}

#[rustfmt::skip]
const GATES: &[Row] = &[
    Row { name: "a gate is unknown at hand-over: it waits, then everything is put back", spec: reboot, setup: healthy, events: &[(Draining, 0, no_dns)], end: "Failed HandoverTimeout", acts: BACK, node: "schedulable", messages: TOLD, says: "was not maintained, failed (HandoverTimeout): gates did not agree within 60 s: coredns-replicas (ObservationFailed): endpoint-slices could not be read (timeout): 5 s" },
    Row { name: "a gate agrees again in time", spec: reboot, setup: healthy, events: &[(Draining, 0, no_dns), (Acting, 3, dns_back)], end: "Succeeded Proven", acts: "add-finalizer cordon evict create-action-pod uncordon mark-proven delete-action-pod remove-finalizer", node: "schedulable", messages: "started:info finished:info", says: "is done" },
    Row { name: "a foreign lock is no failing node: it waits", spec: reboot, setup: pods_stay, events: &[(Draining, 1, foreign_lock)], end: "Failed HandoverTimeout", acts: BACK, node: "schedulable", messages: TOLD, says: "exclusive (KuredLockHeld): node worker3 holds kured's lock" },
    Row { name: "a foreign lock that goes in time", spec: reboot, setup: healthy, events: &[(Cordoning, 1, foreign_lock), (Cordoning, 3, no_lock)], end: "Succeeded Proven", acts: "add-finalizer cordon evict create-action-pod uncordon mark-proven delete-action-pod remove-finalizer", node: "schedulable", messages: "started:info finished:info", says: "is done" },
    Row { name: "another node fails while draining", spec: reboot, setup: pods_stay, events: &[(Draining, 1, other_down)], end: "Failed OtherNodeUnavailable", acts: BACK, node: "schedulable", messages: TOLD, says: "worker3" },
    Row { name: "another node is cordoned while draining", spec: reboot, setup: pods_stay, events: &[(Draining, 1, other_cordoned)], end: "Failed OtherNodeUnavailable", acts: BACK, node: "schedulable", messages: TOLD, says: "worker3 is cordoned by kubectl" },
    Row { name: "another node fails while cordoning", spec: reboot, setup: healthy, events: &[(Cordoning, 1, other_down)], end: "Failed OtherNodeUnavailable", acts: BACK_FROM_CORDON, node: "schedulable", messages: TOLD, says: "worker3" },
    Row { name: "another node fails at hand-over", spec: nobody_waits, setup: healthy, events: &[(Acting, 1, other_down)], end: "Failed OtherNodeUnavailable", acts: BACK, node: "schedulable", messages: TOLD, says: "worker3" },
    Row { name: "pods that do not go", spec: reboot, setup: pods_stay, events: &[], end: "Failed DrainDeadline", acts: BACK, node: "schedulable", messages: TOLD, says: "pods did not go in time: shop/web-0 was refused by its budget, since 2026-11-30T01:00:" },
    Row { name: "pods that end slowly", spec: reboot, setup: |scene| scene.cluster.pods = Pods::GoAfter(500), events: &[], end: "Failed DrainDeadline", acts: BACK, node: "schedulable", messages: TOLD, says: "shop/web-0 is ending, due " },
    Row { name: "pods come back before hand-over", spec: nobody_waits, setup: healthy, events: &[(Acting, 1, pods_return)], end: "Failed HandoverTimeout", acts: BACK, node: "schedulable", messages: TOLD, says: "workloads (PodsRemaining): pod shop/bare-7 is still on worker2" },
    Row { name: "nobody claims", spec: nobody_waits, setup: healthy, events: &[], end: "Failed ActionNotStarted", acts: BACK, node: "schedulable", messages: TOLD, says: "nobody claimed the command within 60 s" },
    Row { name: "the cordon cannot be written", spec: reboot, setup: |scene| scene.cluster.writes_fail = true, events: &[(BackingOut, 0, writes)], end: "Failed HandoverTimeout", acts: "add-finalizer remove-finalizer", node: "schedulable", messages: TOLD, says: "the cordon could not be written in time" },
    Row { name: "putting back is tried until it is done", spec: reboot, setup: pods_stay, events: &[(Draining, 1, no_writes), (Draining, 1, cancel), (BackingOut, 6, writes)], end: "Cancelled Cancelled", acts: BACK, node: "schedulable", messages: TOLD, says: "cancelled by anna" },
    Row { name: "a pod that is not ours has our name", spec: reboot, setup: healthy, events: &[(Cordoning, 0, odd_pod)], end: "Failed ActionNotStarted", acts: "add-finalizer cordon evict uncordon delete-action-pod remove-finalizer", node: "schedulable", messages: TOLD, says: "there is a pod maint-actions/maint-worker2-1 that this run did not create" },
    Row { name: "waived gates do not hold it up", spec: waive_dns, setup: one_dns, events: &[], end: "Succeeded Proven", acts: "add-finalizer cordon evict create-action-pod uncordon mark-proven delete-action-pod remove-finalizer", node: "schedulable", messages: "started:info finished:warning", says: "gate coredns-replicas waived by anna: no DNS here" },
    Row { name: "waived after the start", spec: reboot, setup: healthy, events: &[(Draining, 0, no_dns), (Acting, 2, |play| play.say(|spec| spec.overrides = waive_dns().overrides)), (Returning, 1, sees)], end: "Succeeded Proven", acts: "add-finalizer cordon evict create-action-pod uncordon mark-proven delete-action-pod remove-finalizer", node: "schedulable", messages: "started:info finished:info", says: "is done" },
    Row { name: "one of two is waived", spec: || MaintenanceSpec { overrides: waive_dns().overrides.split_off(1), ..reboot() }, setup: healthy, events: &[(Draining, 0, no_dns)], end: "Failed HandoverTimeout", acts: BACK, node: "schedulable", messages: TOLD, says: "coredns-replicas (ObservationFailed)" },
    Row { name: "exclusive cannot be waived", spec: || MaintenanceSpec { overrides: waive("exclusive"), ..reboot() }, setup: pods_stay, events: &[(Draining, 1, other_cordoned)], end: "Failed OtherNodeUnavailable", acts: BACK, node: "schedulable", messages: TOLD, says: "worker3 is cordoned by kubectl" },
    Row { name: "control cannot be waived", spec: || MaintenanceSpec { overrides: waive("control"), ..reboot() }, setup: pods_stay, events: &[(Draining, 1, hold)], end: "Cancelled NodeOnHold", acts: KEPT, node: "cordoned by maint", messages: TOLD, says: "anna holds the node" },
    Row { name: "that the target is not Ready can be waived: a reboot may be its cure", spec: || MaintenanceSpec { overrides: waive("target"), ..by_hand() }, setup: |scene| scene.set_ready(TARGET, false), events: &[], end: "Succeeded Proven", acts: "add-finalizer cordon evict create-action-pod uncordon mark-proven delete-action-pod remove-finalizer", node: "schedulable", messages: "started:info finished:warning", says: "gate target waived by anna" },
    Row { name: "that it is another's cannot", spec: || MaintenanceSpec { overrides: waive("target"), ..reboot() }, setup: theirs, events: &[], end: "Pending ", acts: "", node: "cordoned by kubectl", messages: "", says: "waits: target (TargetCordonedByOther)" },
    Row { name: "all is unreadable for a while", spec: reboot, setup: |scene| scene.cluster.pods = Pods::GoAfter(20), events: &[(Draining, 1, blind), (Draining, 5, sees)], end: "Succeeded Proven", acts: "add-finalizer cordon evict create-action-pod uncordon mark-proven delete-action-pod remove-finalizer", node: "schedulable", messages: "started:info finished:info", says: "is done" },
    Row { name: "all is unreadable past the deadline: observed anew, then put back", spec: reboot, setup: pods_stay, events: &[(Draining, 1, blind), (Draining, 5, minutes), (Draining, 1, sees)], end: "Failed DrainDeadline", acts: BACK, node: "schedulable", messages: TOLD, says: "pods did not go in time" },
];

#[rustfmt::skip]
const NODE: &[Row] = &[
    Row { name: "somebody uncordons", spec: reboot, setup: pods_stay, events: &[(Draining, 1, uncordon)], end: "Failed CordonRemoved", acts: KEPT, node: "schedulable", messages: TOLD, says: "somebody took our cordon off" },
    Row { name: "somebody uncordons while cordoning", spec: reboot, setup: healthy, events: &[(Cordoning, 1, uncordon)], end: "Failed CordonRemoved", acts: "add-finalizer cordon drop-owner remove-finalizer", node: "schedulable", messages: TOLD, says: "somebody took our cordon off" },
    Row { name: "somebody takes the cordon over", spec: reboot, setup: pods_stay, events: &[(Draining, 1, recordon)], end: "Failed CordonRemoved", acts: KEPT, node: "cordoned by kubectl", messages: TOLD, says: "somebody took the cordon over" },
    Row { name: "somebody takes it over at hand-over", spec: nobody_waits, setup: healthy, events: &[(Acting, 1, recordon)], end: "Failed CordonRemoved", acts: KEPT, node: "cordoned by kubectl", messages: TOLD, says: "somebody took the cordon over" },
    Row { name: "somebody takes it over while it is put back", spec: reboot, setup: pods_stay, events: &[(Draining, 1, cancel), (BackingOut, 0, recordon)], end: "Cancelled Cancelled", acts: KEPT, node: "cordoned by kubectl", messages: TOLD, says: "the node stays cordoned: that cordon is not ours" },
    Row { name: "somebody cordons first", spec: reboot, setup: healthy, events: &[(Cordoning, 0, theirs_now)], end: "Failed TargetCordonedByOther", acts: "add-finalizer remove-finalizer", node: "cordoned by kubectl", messages: TOLD, says: "somebody else cordoned the node first" },
    Row { name: "by hand: the person takes his cordon off", spec: by_hand, setup: |scene| { theirs(scene); pods_stay(scene); }, events: &[(Draining, 1, uncordon)], end: "Failed CordonRemoved", acts: KEPT, node: "schedulable", messages: TOLD, says: "somebody took our cordon off" },
    Row { name: "by hand: cancelled, his cordon stays", spec: by_hand, setup: |scene| { theirs(scene); pods_stay(scene); }, events: &[(Draining, 1, cancel)], end: "Cancelled Cancelled", acts: KEPT, node: "cordoned by kubectl", messages: TOLD, says: "cancelled by anna" },
    Row { name: "another Node object", spec: reboot, setup: pods_stay, events: &[(Draining, 1, replace_node)], end: "Failed NodeReplaced", acts: "add-finalizer cordon evict remove-finalizer", node: "schedulable", messages: TOLD, says: "the Node object is gone or another one" },
    Row { name: "no Node object", spec: reboot, setup: pods_stay, events: &[(Draining, 1, remove_node)], end: "Failed NodeReplaced", acts: "add-finalizer cordon evict remove-finalizer", node: "gone", messages: TOLD, says: "the Node object is gone or another one" },
    Row { name: "power loss while draining", spec: reboot, setup: pods_stay, events: &[(Draining, 1, power_loss)], end: "Succeeded RebootedElsewhere", acts: "add-finalizer cordon evict uncordon mark-proven remove-finalizer", node: "schedulable", messages: "started:info finished:warning", says: "the node booted anew before we acted (power loss, or a person)" },
    Row { name: "power loss before the cordon", spec: reboot, setup: healthy, events: &[(Cordoning, 0, power_loss)], end: "Succeeded RebootedElsewhere", acts: "add-finalizer mark-proven remove-finalizer", node: "schedulable", messages: "started:info finished:warning", says: "the node booted anew before we acted" },
    Row { name: "power loss at hand-over", spec: nobody_waits, setup: healthy, events: &[(Acting, 1, power_loss)], end: "Succeeded RebootedElsewhere", acts: "add-finalizer cordon evict uncordon mark-proven remove-finalizer", node: "schedulable", messages: "started:info finished:warning", says: "the node booted anew before we acted" },
    Row { name: "power loss while it is put back", spec: reboot, setup: pods_stay, events: &[(Draining, 1, cancel), (BackingOut, 0, power_loss)], end: "Cancelled Cancelled", acts: BACK, node: "schedulable", messages: TOLD, says: "the node booted anew while it was put back: run `maint post-check`" },
];

fn theirs_now(play: &mut Play) {
    theirs(&mut play.scene);
}

fn supersede(play: &mut Play) {
    play.say(|spec| spec.superseded_by = Some("worker2-2".into()));
}

#[rustfmt::skip]
const PENDING: &[Row] = &[
    Row { name: "by hand: cannot start in time", spec: by_hand, setup: |scene| scene.set_ready("worker3", false), events: &[], end: "Cancelled StartTimeout", acts: "", node: "schedulable", messages: "backed-out:warning", says: "could not start within 60 s: exclusive (TooManyUnavailable)" },
    Row { name: "unattended: waits for ever", spec: reboot, setup: |scene| scene.set_ready("worker3", false), events: &[], end: "Pending ", acts: "", node: "schedulable", messages: "", says: "waits: exclusive (TooManyUnavailable)" },
    Row { name: "by hand: unreadable", spec: by_hand, setup: |scene| scene.cluster.unreadable.extend([SourceId::Nodes]), events: &[], end: "Cancelled StartTimeout", acts: "", node: "schedulable", messages: "backed-out:warning", says: "the nodes could not be read" },
    Row { name: "superseded", spec: reboot, setup: |scene| scene.set_ready("worker3", false), events: &[(Pending, 2, supersede)], end: "Cancelled Superseded", acts: "", node: "schedulable", messages: "backed-out:warning", says: "worker2-2 takes its place" },
    Row { name: "cancelled", spec: reboot, setup: |scene| scene.set_ready("worker3", false), events: &[(Pending, 2, cancel)], end: "Cancelled Cancelled", acts: "", node: "schedulable", messages: "backed-out:warning", says: "cancelled by anna before it started" },
    Row { name: "cancelled with the finalizer on", spec: reboot, setup: healthy, events: &[(Pending, 1, cancel)], end: "Cancelled Cancelled", acts: "add-finalizer remove-finalizer", node: "schedulable", messages: "backed-out:warning", says: "cancelled by anna before it started" },
    Row { name: "deleted", spec: reboot, setup: healthy, events: &[(Pending, 1, delete)], end: "Cancelled deleted", acts: "add-finalizer remove-finalizer", node: "schedulable", messages: "", says: "" },
    Row { name: "no such node", spec: || MaintenanceSpec { node_name: "worker9".into(), ..reboot() }, setup: healthy, events: &[], end: "Failed NodeReplaced", acts: "", node: "schedulable", messages: "backed-out:warning", says: "there is no node worker9" },
    Row { name: "no such scope", spec: || MaintenanceSpec { scope: "rebot".into(), ..reboot() }, setup: healthy, events: &[], end: "Failed ActionNotStarted", acts: "", node: "schedulable", messages: "backed-out:warning", says: "rebot" },
    Row { name: "no such action", spec: || MaintenanceSpec { action: "kured".into(), ..reboot() }, setup: healthy, events: &[], end: "Failed ActionNotStarted", acts: "", node: "schedulable", messages: "backed-out:warning", says: "kured" },
    Row { name: "no such strategy is not the scope's", spec: || MaintenanceSpec { strategy: Some("drian".into()), ..restart() }, setup: healthy, events: &[], end: "Failed ActionNotStarted", acts: "", node: "schedulable", messages: "backed-out:warning", says: "drian" },
    Row { name: "the action is not enabled", spec: reboot, setup: |scene| scene.settings.action.pod.enabled = false, events: &[], end: "Failed ActionNotStarted", acts: "", node: "schedulable", messages: "backed-out:warning", says: "action `pod` is not enabled" },
    Row { name: "no boot ID, no reboot", spec: by_hand, setup: |scene| scene.find(TARGET).expect("a node")["status"]["nodeInfo"]["bootID"] = json!(""), events: &[], end: "Cancelled StartTimeout", acts: "", node: "schedulable", messages: "backed-out:warning", says: "the node reports no boot ID" },
    Row { name: "unattended: somebody had cordoned it", spec: reboot, setup: theirs, events: &[], end: "Pending ", acts: "", node: "cordoned by kubectl", messages: "", says: "waits: target (TargetCordonedByOther)" },
    Row { name: "claimed before it was offered", spec: || { let mut spec = nobody_waits(); spec.claimed = super::play::word(false); spec }, setup: healthy, events: &[], end: "Failed ActionNotStarted", acts: "", node: "schedulable", messages: "backed-out:warning", says: "anna claimed the command before it was offered: look at the node, and ask anew" },
    Row { name: "claimed while draining", spec: nobody_waits, setup: pods_stay, events: &[(Draining, 1, claim)], end: "Failed ActionNotStarted", acts: BACK, node: "schedulable", messages: TOLD, says: "anna claimed the command before it was offered" },
    Row { name: "done before the go", spec: idle_person, setup: pods_stay, events: &[(Draining, 1, say_done)], end: "Failed ActionNotStarted", acts: BACK, node: "schedulable", messages: TOLD, says: "anna said done before it was offered" },
];

#[test]
fn gates_and_deadlines() {
    check(GATES);
}

#[test]
fn the_node() {
    check(NODE);
}

#[test]
fn a_wish() {
    check(PENDING);
}

#[test]
fn an_interrupted_drain_can_go_on() {
    let mut play = Play::new(reboot());
    pods_stay(&mut play.scene);
    play.run_until(Draining, 3);
    quick_pods(&mut play);
    play.run();
    assert_eq!(play.status().outcome, "Proven", "{}", play.told());
    assert_eq!(play.status().drain.map(|drain| (drain.planned, drain.evicted, drain.left)), Some((2, 2, 0)));
}
