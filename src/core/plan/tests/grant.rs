//! kured's grant: given, taken, withdrawn, closed; its failed drains; kured beside other actions.

use serde_json::json;

use super::kured::*;
use super::play::Play;
use super::table::*;
use super::world::{Scene, TARGET, later};
use crate::api::Phase::{
    Acting, BackingOut, Cancelled, Cordoning, Draining, Failed, Held, Pending, Returning, Settling, Verifying,
};
use crate::api::SourceId;
use crate::api::record::MaintenanceSpec;

const GONE_WELL: &str = "add-finalizer cordon evict uncordon mark-proven remove-finalizer";
const BACK: &str = "add-finalizer cordon evict uncordon remove-finalizer";
const CLOSED: &str = "add-finalizer cordon evict take-kured-lock uncordon release-kured-lock remove-finalizer";
const BESIDE: &str = "add-finalizer take-kured-lock cordon evict create-action-pod uncordon mark-proven delete-action-pod release-kured-lock remove-finalizer";
const FINE: &str = "started:info finished:info";
const WARNED: &str = "started:info finished:warning";
const HELD: &str = "started:info held:critical";
const TOLD: &str = "started:info backed-out:warning";

// --- clusters ---

/// From `go` to the lock passes a minute and a half.
fn slow(scene: &mut Scene) {
    scene.install(|kured| kured.slow = 90);
}

fn very_slow(scene: &mut Scene) {
    scene.install(|kured| kured.slow = 9000);
}

fn from_elsewhere(scene: &mut Scene) {
    scene.install(|kured| (kured.slow, kured.elsewhere) = (90, true));
}

fn no_wish(scene: &mut Scene) {
    scene.install(|kured| kured.wants = false);
}

fn not_gated(scene: &mut Scene) {
    scene.install(|kured| kured.gated = false);
    pods_stay(scene);
}

fn drain_fails(scene: &mut Scene) {
    scene.install(|kured| kured.drains_fail = 1);
}

fn other_is_down(scene: &mut Scene) {
    scene.install(|_| {});
    scene.set_ready("worker3", false);
}

// --- events ---

/// Until kured has heard `go` and is on its way to its lock.
fn to_the_go(play: &mut Play) {
    for _ in 0..200 {
        if play.scene.is_under_way() {
            return;
        }
        play.turn();
    }
    panic!("kured never heard go: {}", play.told());
}

fn to_the_grant(play: &mut Play) {
    play.until_granted();
}

fn acquires(play: &mut Play) {
    play.scene.acquires_now();
}

fn lock_says_false(play: &mut Play) {
    let mut lock = play.scene.lock_value();
    assert_eq!(lock["nodeID"], TARGET, "{}", play.told());
    lock["metadata"]["unschedulable"] = json!(false);
    play.scene.set_lock(Some(lock.to_string()));
}

fn ghost(play: &mut Play) {
    play.scene.set_lock(Some(json!({"nodeID": "worker9", "created": "2026-11-01T00:00:00Z", "TTL": 0}).to_string()));
}

fn names_target(play: &mut Play) {
    let entry =
        json!({"nodeID": TARGET, "metadata": {"unschedulable": false}, "created": "2026-11-30T00:59:00Z", "TTL": 0});
    play.scene.set_lock(Some(entry.to_string()));
}

/// A kured that nobody gates goes through with it.
fn acts_unasked(play: &mut Play) {
    play.scene.kured().gated = false;
    play.scene.kured().wants = true;
    play.scene.looks_now();
}

fn uninstall(play: &mut Play) {
    play.scene.world.of(SourceId::DaemonSets).clear();
}

fn in_progress(play: &mut Play) {
    play.scene.annotate(TARGET, "weave.works/kured-reboot-in-progress", Some("2026-11-30T01:00:00Z".into()));
}

#[rustfmt::skip]
const TAKEN: &[Row] = &[
    Row { name: "kured remembered no cordon: its lock is corrected", spec: by_kured, setup: with_kured, events: &[(Returning, 0, lock_says_false)], end: "Succeeded Proven", acts: "add-finalizer cordon evict keep-cordon-in-kured-lock uncordon mark-proven remove-finalizer", node: "schedulable", messages: FINE, says: "is done" },
    Row { name: "kured is slow to take its lock", spec: by_kured, setup: slow, events: &[], end: "Succeeded Proven", acts: GONE_WELL, node: "schedulable", messages: FINE, says: "is done" },
    Row { name: "kured asks from an address that is not its own", spec: by_kured, setup: |scene| scene.install(|kured| kured.elsewhere = true), events: &[], end: "Succeeded Proven", acts: GONE_WELL, node: "schedulable", messages: FINE, says: "is done" },
    Row { name: "kured does not ask", spec: by_kured, setup: no_wish, events: &[], end: "Failed ActionNotStarted", acts: BACK, node: "schedulable", messages: TOLD, says: "kured did not ask within 150 s after the cordon" },
    Row { name: "kured asks late", spec: by_kured, setup: no_wish, events: &[(Acting, 9, kured_wants)], end: "Succeeded Proven", acts: GONE_WELL, node: "schedulable", messages: FINE, says: "is done" },
    Row { name: "a new leader between go and lock", spec: by_kured, setup: slow, events: &[(Acting, 0, to_the_go), (Acting, 1, new_leader)], end: "Succeeded Proven", acts: "add-finalizer cordon evict cordon uncordon mark-proven remove-finalizer", node: "schedulable", messages: FINE, says: "is done" },
    Row { name: "nobody leads while kured reboots", spec: by_kured, setup: slow, events: &[(Acting, 0, to_the_go), (Acting, 0, minutes), (Acting, 0, new_leader)], end: "Succeeded Proven", acts: "add-finalizer cordon evict cordon uncordon mark-proven remove-finalizer", node: "schedulable", messages: FINE, says: "is done" },
    Row { name: "power loss while kured has the grant", spec: by_kured, setup: very_slow, events: &[(Acting, 0, to_the_go), (Acting, 0, power_loss)], end: "Succeeded Proven", acts: GONE_WELL, node: "schedulable", messages: FINE, says: "is done" },
    Row { name: "power loss before the grant", spec: by_kured, setup: |scene| { with_kured(scene); pods_stay(scene); }, events: &[(Draining, 1, power_loss)], end: "Succeeded RebootedElsewhere", acts: GONE_WELL, node: "schedulable", messages: WARNED, says: "the node booted anew before we acted" },
    Row { name: "kured's annotation is left", spec: by_kured, setup: with_kured, events: &[(Settling, 0, in_progress)], end: "Succeeded Proven", acts: GONE_WELL, node: "schedulable", messages: WARNED, says: "kubectl annotate node worker2 weave.works/kured-reboot-in-progress-" },
    Row { name: "by hand on a node that somebody had cordoned", spec: by_kured_by_hand, setup: |scene| { with_kured(scene); theirs(scene); scene.settings.kured.sentinel.image = "busybox@sha256:00".into(); }, events: &[], end: "Succeeded Proven", acts: "add-finalizer cordon evict mark-proven drop-owner remove-finalizer", node: "cordoned by kubectl", messages: WARNED, says: "that cordon stays" },
];

/// What takes long and goes wrong by itself, for a process that dies on the way.
#[rustfmt::skip]
pub(super) const ALONE: &[Row] = &[
    Row { name: "kured does not act on its grant", spec: by_kured, setup: |scene| scene.install(|kured| kured.slow = 220), events: &[], end: "Failed ActionNotStarted", acts: CLOSED, node: "schedulable", messages: TOLD, says: "kured was granted the reboot and did not take its lock within 150 s" },
    Row { name: "kured's reboot command fails once", spec: by_kured, setup: |scene| scene.install(|kured| kured.commands_fail = 1), events: &[], end: "Succeeded Proven", acts: GONE_WELL, node: "schedulable", messages: FINE, says: "is done" },
];

#[rustfmt::skip]
const UNASKED: &[Row] = &[
    Row { name: "kured acts while draining: committed, and said", spec: by_kured, setup: not_gated, events: &[], end: "Succeeded Proven", acts: GONE_WELL, node: "schedulable", messages: WARNED, says: "kured took its lock for the node unasked" },
    Row { name: "before the cordon is written: kured takes off what it set", spec: by_kured, setup: |scene| { no_wish(scene); scene.settings.run.settle_for_seconds = 40; }, events: &[(Cordoning, 0, acts_unasked)], end: "Succeeded Proven", acts: "add-finalizer mark-proven remove-finalizer", node: "schedulable", messages: WARNED, says: "kured took its lock for the node unasked" },
    Row { name: "at hand-over, before any grant", spec: by_kured, setup: no_wish, events: &[(Acting, 1, acts_unasked)], end: "Succeeded Proven", acts: GONE_WELL, node: "schedulable", messages: WARNED, says: "kured took its lock for the node unasked" },
    Row { name: "while it is put back", spec: by_kured, setup: no_wish, events: &[(Acting, 1, cancel), (BackingOut, 0, acts_unasked)], end: "Succeeded Proven", acts: GONE_WELL, node: "schedulable", messages: WARNED, says: "anna cancelled it after it was committed" },
    Row { name: "its lock was left behind: nothing begins", spec: by_kured, setup: no_wish, events: &[(Pending, 0, names_target)], end: "Pending ", acts: "", node: "schedulable", messages: "", says: "kured's lock names the node already: kured is at work on it, or left the lock behind (look: maint lock show)" },
    Row { name: "by hand it is not waited for ever", spec: by_hand, setup: no_wish, events: &[(Pending, 0, names_target)], end: "Cancelled StartTimeout", acts: "", node: "schedulable", messages: "backed-out:warning", says: "could not start within 60 s: kured's lock names the node already" },
    Row { name: "somebody writes the lock, and nothing reboots", spec: by_kured, setup: no_wish, events: &[(Acting, 1, names_target)], end: "Held NodeDidNotReboot", acts: "add-finalizer cordon evict keep-cordon-in-kured-lock", node: "cordoned by maint, owned", messages: "started:info held:critical", says: "kured took its lock for the node unasked" },
    Row { name: "and takes it off again", spec: by_kured, setup: no_wish, events: &[(Acting, 1, names_target), (Returning, 3, wipe_lock)], end: "Failed KuredDrainFailed", acts: "add-finalizer cordon evict keep-cordon-in-kured-lock uncordon remove-finalizer", node: "schedulable", messages: TOLD, says: "kured gave its lock up without a reboot" },
];

#[rustfmt::skip]
const VOID: &[Row] = &[
    Row { name: "its drain fails: it has uncordoned", spec: by_kured, setup: drain_fails, events: &[], end: "Failed KuredDrainFailed", acts: "add-finalizer cordon evict take-kured-lock drop-owner release-kured-lock remove-finalizer", node: "schedulable", messages: TOLD, says: "kured's drain failed: it gave its lock up and uncordoned the node" },
    Row { name: "it restarts while draining: one more grant", spec: by_kured, setup: |scene| scene.install(|kured| kured.restarts_draining = 1), events: &[], end: "Succeeded Proven", acts: GONE_WELL, node: "schedulable", messages: FINE, says: "is done" },
    Row { name: "its reboot command fails again: put back", spec: by_kured, setup: |scene| scene.install(|kured| kured.commands_fail = 9), events: &[], end: "Failed KuredDrainFailed", acts: BACK, node: "schedulable", messages: TOLD, says: "kured gave its lock up for the second time without a reboot" },
    Row { name: "it restarted, and its drain fails", spec: by_kured, setup: |scene| scene.install(|kured| (kured.restarts_draining, kured.drains_fail) = (1, 0)), events: &[(Returning, 0, |_| {}), (Acting, 0, |play| play.scene.kured().drains_fail = 1)], end: "Failed KuredDrainFailed", acts: "add-finalizer cordon evict take-kured-lock drop-owner release-kured-lock remove-finalizer", node: "schedulable", messages: TOLD, says: "uncordoned the node" },
    Row { name: "cancelled meanwhile: not granted again", spec: by_kured, setup: |scene| scene.install(|kured| kured.restarts_draining = 1), events: &[(Returning, 0, cancel)], end: "Cancelled Cancelled", acts: BACK, node: "schedulable", messages: TOLD, says: "cancelled by anna" },
    Row { name: "somebody wiped the lock, and kured goes on", spec: by_kured, setup: |scene| scene.install(|kured| kured.drain_for = 30), events: &[(Returning, 1, wipe_lock)], end: "Succeeded Proven", acts: "add-finalizer cordon evict take-kured-lock uncordon mark-proven release-kured-lock remove-finalizer", node: "schedulable", messages: FINE, says: "is done" },
    Row { name: "somebody wiped the lock, and the node does not come back", spec: by_kured, setup: |scene| { scene.install(|kured| kured.drain_for = 30); stays_down(scene); }, events: &[(Returning, 1, wipe_lock)], end: "Held NodeNotBack", acts: "add-finalizer cordon evict take-kured-lock", node: "cordoned by maint, owned", messages: HELD, says: "worker2 is HELD (NodeNotBack)" },
    Row { name: "the lock goes with the node down: nothing is judged", spec: by_kured, setup: with_kured, events: &[(Returning, 8, wipe_lock)], end: "Succeeded Proven", acts: GONE_WELL, node: "schedulable", messages: FINE, says: "is done" },
    Row { name: "kured is uninstalled while its node is away", spec: by_kured, setup: with_kured, events: &[(Returning, 8, uninstall)], end: "Succeeded Proven", acts: GONE_WELL, node: "schedulable", messages: FINE, says: "is done" },
    Row { name: "the lock cannot be read for a while", spec: by_kured, setup: with_kured, events: &[(Returning, 0, |play| { play.scene.cluster.unreadable.insert(SourceId::DaemonSets); }), (Returning, 4, sees)], end: "Succeeded Proven", acts: GONE_WELL, node: "schedulable", messages: FINE, says: "is done" },
];

#[rustfmt::skip]
const CLOSING: &[Row] = &[
    Row { name: "cancelled with the go under way", spec: by_kured, setup: slow, events: &[(Acting, 0, to_the_go), (Acting, 0, cancel)], end: "Cancelled Cancelled", acts: CLOSED, node: "schedulable", messages: TOLD, says: "kured's lock stays ours until kured on worker2 has asked again, or its pod is replaced: kubectl -n kube-system delete pod kured-x" },
    Row { name: "cancelled with a grant that nobody heard", spec: by_kured, setup: with_kured, events: &[(Acting, 0, to_the_grant), (Acting, 0, kured_wants_no_more), (Acting, 0, cancel), (Cancelled, 1, kured_wants)], end: "Cancelled Cancelled", acts: CLOSED, node: "schedulable", messages: TOLD, says: "cancelled by anna" },
    Row { name: "kured is faster than the cancel: committed", spec: by_kured, setup: slow, events: &[(Acting, 0, to_the_go), (Acting, 0, cancel), (BackingOut, 0, acquires)], end: "Succeeded Proven", acts: GONE_WELL, node: "schedulable", messages: WARNED, says: "anna cancelled it after it was committed: the node is proven all the same" },
    Row { name: "deleted with the go under way", spec: by_kured, setup: slow, events: &[(Acting, 0, to_the_go), (Acting, 0, delete)], end: "Cancelled deleted", acts: CLOSED, node: "schedulable", messages: "", says: "" },
    Row { name: "hold with the go under way: the cordon stays", spec: by_kured, setup: slow, events: &[(Acting, 0, to_the_go), (Acting, 0, hold)], end: "Cancelled NodeOnHold", acts: "add-finalizer cordon evict take-kured-lock drop-owner release-kured-lock remove-finalizer", node: "cordoned by maint", messages: TOLD, says: "anna holds the node" },
    Row { name: "another node fails with the go under way", spec: by_kured, setup: slow, events: &[(Acting, 0, to_the_go), (Acting, 0, other_down)], end: "Failed OtherNodeUnavailable", acts: CLOSED, node: "schedulable", messages: TOLD, says: "worker3" },
    Row { name: "somebody uncordons with the go under way", spec: by_kured, setup: slow, events: &[(Acting, 0, to_the_go), (Acting, 0, uncordon)], end: "Failed CordonRemoved", acts: "add-finalizer cordon evict take-kured-lock drop-owner release-kured-lock remove-finalizer", node: "schedulable", messages: TOLD, says: "somebody took our cordon off" },
    Row { name: "halt with the go under way: closed, and left as it is", spec: by_kured, setup: slow, events: &[(Acting, 0, to_the_go), (Acting, 0, halt)], end: "Acting ", acts: "add-finalizer cordon evict take-kured-lock", node: "cordoned by maint, owned", messages: "started:info", says: "halted by anna: the node is left as it is until unhalt or cancel" },
    Row { name: "and goes on after it with a new grant", spec: by_kured, setup: slow, events: &[(Acting, 0, to_the_go), (Acting, 0, halt), (Acting, 4, |play| { unhalt(play); play.scene.kured().slow = 0; })], end: "Succeeded Proven", acts: "add-finalizer cordon evict take-kured-lock release-kured-lock uncordon mark-proven remove-finalizer", node: "schedulable", messages: FINE, says: "is done" },
    Row { name: "halt while it is closed: closing goes on, putting back waits", spec: by_kured, setup: slow, events: &[(Acting, 0, to_the_go), (Acting, 0, other_down), (BackingOut, 0, halt)], end: "BackingOut OtherNodeUnavailable", acts: "add-finalizer cordon evict take-kured-lock", node: "cordoned by maint, owned", messages: "started:info", says: "waits for unhalt or cancel: " },
    Row { name: "halt when all is back but the lock", spec: by_kured, setup: slow, events: &[(Acting, 0, to_the_go), (Acting, 0, cancel), (Cancelled, 0, halt), (Cancelled, 30, unhalt)], end: "Cancelled Cancelled", acts: CLOSED, node: "schedulable", messages: TOLD, says: "cancelled by anna" },
    Row { name: "a gate blocks for a while: closed, then granted anew", spec: by_kured, setup: slow, events: &[(Acting, 0, to_the_go), (Acting, 0, no_dns), (Acting, 3, |play| { sees(play); play.scene.kured().slow = 0; })], end: "Succeeded Proven", acts: "add-finalizer cordon evict take-kured-lock release-kured-lock uncordon mark-proven remove-finalizer", node: "schedulable", messages: FINE, says: "is done" },
    Row { name: "a gate blocks: closed, then put back", spec: by_kured, setup: slow, events: &[(Acting, 0, to_the_go), (Acting, 0, no_dns)], end: "Failed HandoverTimeout", acts: CLOSED, node: "schedulable", messages: TOLD, says: "gates did not agree within 150 s" },
    Row { name: "another holder: it waits until the go is spent", spec: by_kured, setup: slow, events: &[(Acting, 0, to_the_go), (Acting, 0, foreign_lock), (Acting, 0, cancel)], end: "Cancelled Cancelled", acts: BACK, node: "schedulable", messages: TOLD, says: "cancelled by anna" },
    Row { name: "another holder, and kured says nothing", spec: by_kured, setup: very_slow, events: &[(Acting, 0, to_the_go), (Acting, 0, foreign_lock), (Acting, 0, cancel)], end: "BackingOut Cancelled", acts: "add-finalizer cordon evict", node: "cordoned by maint, owned", messages: "started:info held:critical", says: "closes what kured was granted; the node stays cordoned meanwhile: worker3 holds kured's lock on DaemonSet kube-system/kured (look: maint lock show)" },
    Row { name: "another holder lets go", spec: by_kured, setup: very_slow, events: &[(Acting, 0, to_the_go), (Acting, 0, foreign_lock), (Acting, 0, cancel), (BackingOut, 3, no_lock), (BackingOut, 0, |_| {}), (Cancelled, 3, kured_restarts)], end: "Cancelled Cancelled", acts: CLOSED, node: "schedulable", messages: TOLD, says: "cancelled by anna" },
    Row { name: "a lock that cannot be understood is left alone", spec: by_kured, setup: very_slow, events: &[(Acting, 0, to_the_go), (Acting, 0, garble_lock), (Acting, 0, cancel)], end: "BackingOut Cancelled", acts: "add-finalizer cordon evict", node: "cordoned by maint, owned", messages: "started:info held:critical", says: "kured's lock is no JSON" },
    Row { name: "the lock cannot be read: it waits", spec: by_kured, setup: very_slow, events: &[(Acting, 0, to_the_go), (Acting, 0, |play| { play.scene.cluster.unreadable.insert(SourceId::DaemonSets); }), (Acting, 0, cancel)], end: "BackingOut Cancelled", acts: "add-finalizer cordon evict", node: "cordoned by maint, owned", messages: "started:info held:critical", says: "the DaemonSets could not be read: 5 s" },
    Row { name: "kured is uninstalled: nothing is left to close", spec: by_kured, setup: very_slow, events: &[(Acting, 0, to_the_go), (Acting, 0, uninstall), (Acting, 0, cancel)], end: "Cancelled Cancelled", acts: BACK, node: "schedulable", messages: TOLD, says: "cancelled by anna" },
    Row { name: "its process is another one: spent", spec: by_kured, setup: very_slow, events: &[(Acting, 0, to_the_go), (Acting, 0, cancel), (Cancelled, 5, |play| { kured_restarts(play); kured_wants_no_more(play); })], end: "Cancelled Cancelled", acts: CLOSED, node: "schedulable", messages: TOLD, says: "cancelled by anna" },
    Row { name: "the node boots: spent", spec: by_kured, setup: very_slow, events: &[(Acting, 0, to_the_go), (Acting, 0, cancel), (Cancelled, 5, power_loss)], end: "Cancelled Cancelled", acts: CLOSED, node: "schedulable", messages: TOLD, says: "cancelled by anna" },
    Row { name: "the node boots before the lock is ours: it may have been kured", spec: by_kured, setup: very_slow, events: &[(Acting, 0, to_the_go), (Acting, 0, foreign_lock), (Acting, 0, cancel), (BackingOut, 2, power_loss), (Verifying, 1, no_lock)], end: "Succeeded Proven", acts: GONE_WELL, node: "schedulable", messages: WARNED, says: "anna cancelled it after it was committed" },
    Row { name: "another Node object: spent", spec: by_kured, setup: very_slow, events: &[(Acting, 0, to_the_go), (Acting, 0, cancel), (Cancelled, 5, replace_node)], end: "Cancelled Cancelled", acts: CLOSED, node: "schedulable", messages: TOLD, says: "cancelled by anna" },
    Row { name: "a question from elsewhere counts after a quarter of an hour", spec: by_kured, setup: from_elsewhere, events: &[(Acting, 0, to_the_go), (Acting, 0, cancel), (Cancelled, 20, minutes), (Cancelled, 2, minutes), (Cancelled, 2, minutes), (Cancelled, 2, minutes)], end: "Cancelled Cancelled", acts: CLOSED, node: "schedulable", messages: "started:info backed-out:warning backed-out:warning", says: "cancelled by anna" },
    Row { name: "our hold vanishes before the go is spent: taken again", spec: by_kured, setup: very_slow, events: &[(Acting, 0, to_the_go), (Acting, 0, cancel), (Cancelled, 2, wipe_lock), (Cancelled, 2, kured_restarts)], end: "Cancelled Cancelled", acts: "add-finalizer cordon evict take-kured-lock uncordon take-kured-lock release-kured-lock remove-finalizer", node: "schedulable", messages: TOLD, says: "cancelled by anna" },
];

#[rustfmt::skip]
const BESIDE_KURED: &[Row] = &[
    Row { name: "our hold vanishes while draining: taken again before anything else", spec: reboot, setup: |scene| { with_kured(scene); scene.cluster.pods = super::world::Pods::GoAfter(20); }, events: &[(Draining, 1, wipe_lock)], end: "Succeeded Proven", acts: "add-finalizer take-kured-lock cordon evict take-kured-lock create-action-pod uncordon mark-proven delete-action-pod release-kured-lock remove-finalizer", node: "schedulable", messages: WARNED, says: "our hold of kured's lock went while the run was in flight; it is taken again" },
    Row { name: "our hold vanishes after commit", spec: reboot, setup: no_wish, events: &[(Returning, 1, wipe_lock)], end: "Succeeded Proven", acts: "add-finalizer take-kured-lock cordon evict create-action-pod take-kured-lock uncordon mark-proven delete-action-pod release-kured-lock remove-finalizer", node: "schedulable", messages: WARNED, says: "our hold of kured's lock went" },
    Row { name: "another takes it after commit: warned, and finished", spec: reboot, setup: no_wish, events: &[(Returning, 1, |play| { wipe_lock(play); foreign_lock(play); }), (Settling, 1, no_lock)], end: "Succeeded Proven", acts: "add-finalizer take-kured-lock cordon evict create-action-pod uncordon mark-proven take-kured-lock delete-action-pod release-kured-lock remove-finalizer", node: "schedulable", messages: WARNED, says: "and cannot be taken again: worker3 holds kured's lock on DaemonSet kube-system/kured" },
    Row { name: "a deleted node's lock cannot be taken", spec: reboot, setup: no_wish, events: &[(Pending, 0, ghost)], end: "Failed HandoverTimeout", acts: "add-finalizer remove-finalizer", node: "schedulable", messages: TOLD, says: "kured's lock cannot be taken: worker9 holds kured's lock on DaemonSet kube-system/kured (look: maint lock show)" },
    Row { name: "cancelled: given back", spec: reboot, setup: |scene| { no_wish(scene); pods_stay(scene); }, events: &[(Draining, 1, cancel)], end: "Cancelled Cancelled", acts: "add-finalizer take-kured-lock cordon evict uncordon release-kured-lock remove-finalizer", node: "schedulable", messages: TOLD, says: "cancelled by anna" },
    Row { name: "given back after unhalt", spec: reboot, setup: |scene| { no_wish(scene); pods_stay(scene); }, events: &[(Draining, 1, cancel), (Cancelled, 0, halt), (Cancelled, 3, unhalt)], end: "Cancelled Cancelled", acts: "add-finalizer take-kured-lock cordon evict uncordon release-kured-lock remove-finalizer", node: "schedulable", messages: TOLD, says: "cancelled by anna" },
    Row { name: "held: it stays ours", spec: reboot, setup: |scene| { no_wish(scene); stays_down(scene); }, events: &[(Held, 1, wipe_lock)], end: "Held NodeNotBack", acts: "add-finalizer take-kured-lock cordon evict create-action-pod take-kured-lock", node: "cordoned by maint, owned", messages: "started:info held:critical", says: "our hold of kured's lock went" },
    Row { name: "held and accepted: given back", spec: reboot, setup: |scene| { no_wish(scene); stays_down(scene); }, events: &[(Held, 1, cancel_accept)], end: "Cancelled AcceptedUnproven", acts: "add-finalizer take-kured-lock cordon evict create-action-pod uncordon delete-action-pod release-kured-lock remove-finalizer", node: "schedulable", messages: "started:info held:critical backed-out:warning", says: "accepted the node unproven" },
    Row { name: "kured with two slots: both are ours", spec: reboot, setup: two_slots, events: &[], end: "Succeeded Proven", acts: BESIDE, node: "schedulable", messages: FINE, says: "is done" },
    Row { name: "a person acts", spec: person, setup: no_wish, events: &[], end: "Succeeded Proven", acts: "add-finalizer take-kured-lock cordon evict uncordon mark-proven release-kured-lock remove-finalizer", node: "schedulable", messages: "started:info go:info finished:info", says: "is done" },
    Row { name: "kured wants a reboot meanwhile, and cannot", spec: reboot, setup: |scene| scene.install(|kured| kured.gated = false), events: &[(Pending, 0, kured_wants_no_more), (Draining, 0, kured_wants)], end: "Succeeded Proven", acts: BESIDE, node: "schedulable", messages: FINE, says: "is done" },
];

#[rustfmt::skip]
const WISHES: &[Row] = &[
    Row { name: "the node booted since", spec: || MaintenanceSpec { boot_id: Some("boot-old".into()), ..by_kured() }, setup: with_kured, events: &[], end: "Cancelled WishWithdrawn", acts: "", node: "schedulable", messages: "backed-out:warning", says: "the node booted since it was wished (boot boot-old then, boot-worker2 now)" },
    Row { name: "the same boot", spec: || MaintenanceSpec { boot_id: Some("boot-worker2".into()), ..by_kured() }, setup: with_kured, events: &[], end: "Succeeded Proven", acts: GONE_WELL, node: "schedulable", messages: FINE, says: "is done" },
    Row { name: "kured no longer asks", spec: by_kured, setup: other_is_down, events: &[(Pending, 9, kured_wants_no_more), (Pending, 1, minutes), (Pending, 1, minutes), (Pending, 1, minutes), (Pending, 1, minutes), (Pending, 1, minutes), (Pending, 1, minutes)], end: "Cancelled WishWithdrawn", acts: "", node: "schedulable", messages: "backed-out:warning", says: "kured has not asked since 2026-11-30T01:00:07Z, and looks every 20 s" },
    Row { name: "a new leader listens anew", spec: by_kured, setup: other_is_down, events: &[(Pending, 9, kured_wants_no_more), (Pending, 1, minutes), (Pending, 1, minutes), (Pending, 1, minutes), (Pending, 1, minutes), (Pending, 1, minutes), (Pending, 0, new_leader), (Pending, 1, minutes)], end: "Pending ", acts: "", node: "schedulable", messages: "", says: "waits: exclusive" },
    Row { name: "kured asks on", spec: by_kured, setup: other_is_down, events: &[(Pending, 9, minutes), (Pending, 1, minutes), (Pending, 1, minutes), (Pending, 1, minutes), (Pending, 1, minutes), (Pending, 1, minutes), (Pending, 1, minutes), (Pending, 1, minutes), (Pending, 1, minutes)], end: "Pending ", acts: "", node: "schedulable", messages: "", says: "waits: exclusive" },
    Row { name: "kured is not installed", spec: by_kured, setup: healthy, events: &[], end: "Failed ActionNotStarted", acts: "", node: "schedulable", messages: "backed-out:warning", says: "kured is not installed: no DaemonSet runs it" },
    Row { name: "kured only reboots", spec: || MaintenanceSpec { scope: "service-restart".into(), ..by_kured() }, setup: with_kured, events: &[], end: "Failed ActionNotStarted", acts: "", node: "schedulable", messages: "backed-out:warning", says: "kured does nothing but reboot, and scope service-restart wants no reboot" },
];

fn two_slots(scene: &mut Scene) {
    no_wish(scene);
    let args = &mut scene.world.of(SourceId::DaemonSets)[0]["spec"]["template"]["spec"]["containers"][0]["args"];
    args.as_array_mut().expect("args").push(json!("--concurrency=2"));
}

fn with_command(scene: &mut Scene) {
    quiet_kured(scene);
    let args = &mut scene.world.of(SourceId::DaemonSets)[0]["spec"]["template"]["spec"]["containers"][0]["args"];
    args.as_array_mut().expect("args").push(json!("--reboot-sentinel-command=needs-restart"));
}

/// Its node bears kured's mark, and nobody has heard a question yet.
fn marked_and_silent(scene: &mut Scene) {
    no_wish(scene);
    scene.annotate(TARGET, "weave.works/kured-reboot-in-progress", Some("2026-11-30T00:50:00Z".into()));
}

#[rustfmt::skip]
const BY_HAND: &[Row] = &[
    Row { name: "kured wants one itself, and asks only after the drain: no image is needed", spec: by_kured_by_hand, setup: marked_and_silent, events: &[(Acting, 3, kured_wants)], end: "Succeeded Proven", acts: GONE_WELL, node: "schedulable", messages: WARNED, says: "weave.works/kured-reboot-in-progress is still on the node" },
    Row { name: "its mark is an old one: put back in time", spec: by_kured_by_hand, setup: marked_and_silent, events: &[], end: "Failed ActionNotStarted", acts: BACK, node: "schedulable", messages: TOLD, says: "kured did not ask within 150 s after the cordon" },
    Row { name: "no image for the sentinel", spec: by_kured_by_hand, setup: no_wish, events: &[], end: "Failed ActionNotStarted", acts: "", node: "schedulable", messages: "backed-out:warning", says: "set [kured.sentinel] image, or choose another action" },
    Row { name: "kured asks a command", spec: by_kured_by_hand, setup: with_command, events: &[], end: "Failed ActionNotStarted", acts: "", node: "schedulable", messages: "backed-out:warning", says: "kured asks the command `needs-restart` (--reboot-sentinel-command of DaemonSet kube-system/kured) and looks at no file" },
    Row { name: "kured wants it itself: no file of ours", spec: by_kured_by_hand, setup: |scene| { quiet_kured(scene); scene.kured().wants = true; }, events: &[], end: "Succeeded Proven", acts: GONE_WELL, node: "schedulable", messages: FINE, says: "is done" },
    Row { name: "the pod cannot make it, and another cannot take it away", spec: by_kured_by_hand, setup: |scene| { quiet_kured(scene); scene.cluster.action_fails = true; }, events: &[], end: "Failed ActionNotStarted", acts: "add-finalizer cordon evict create-sentinel uncordon delete-sentinel-pod remove-sentinel delete-sentinel-pod remove-finalizer", node: "schedulable", messages: "started:info backed-out:warning backed-out:warning", says: "kured's sentinel could not be made: kubectl -n maint-actions logs maint-worker2-1-sentinel" },
    Row { name: "cancelled before the grant: the file goes", spec: by_kured_by_hand, setup: quiet_kured, events: &[(Acting, 5, cancel)], end: "Cancelled Cancelled", acts: "add-finalizer cordon evict create-sentinel uncordon delete-sentinel-pod remove-sentinel delete-sentinel-pod remove-finalizer", node: "schedulable", messages: TOLD, says: "cancelled by anna" },
    Row { name: "cancelled with the go under way: it asks until it has heard no, then the file goes, then the lock", spec: by_kured_by_hand, setup: |scene| { quiet_kured(scene); scene.kured().slow = 90; }, events: &[(Acting, 0, to_the_go), (Acting, 0, cancel)], end: "Cancelled Cancelled", acts: "add-finalizer cordon evict create-sentinel take-kured-lock uncordon delete-sentinel-pod remove-sentinel delete-sentinel-pod release-kured-lock remove-finalizer", node: "schedulable", messages: TOLD, says: "cancelled by anna" },
    Row { name: "the reboot fails: the file goes", spec: by_kured_by_hand, setup: |scene| { quiet_kured(scene); scene.kured().drains_fail = 1; }, events: &[], end: "Failed KuredDrainFailed", acts: "add-finalizer cordon evict create-sentinel take-kured-lock drop-owner delete-sentinel-pod remove-sentinel delete-sentinel-pod release-kured-lock remove-finalizer", node: "schedulable", messages: TOLD, says: "kured's drain failed" },
    Row { name: "power loss before kured asks: nothing is left of the file", spec: by_kured_by_hand, setup: quiet_kured, events: &[(Acting, 4, power_loss)], end: "Succeeded RebootedElsewhere", acts: "add-finalizer cordon evict create-sentinel uncordon mark-proven delete-sentinel-pod remove-finalizer", node: "schedulable", messages: WARNED, says: "booted anew before we acted" },
    Row { name: "halted: no sentinel", spec: by_kured_by_hand, setup: |scene| { quiet_kured(scene); pods_stay(scene); }, events: &[(Draining, 1, halt)], end: "Draining ", acts: "add-finalizer cordon evict", node: "cordoned by maint, owned", messages: "started:info", says: "halted by anna" },
];

#[test]
fn a_grant_that_is_taken() {
    check(TAKEN);
    check(ALONE);
}

#[test]
fn kured_that_acts_unasked() {
    check(UNASKED);
}

#[test]
fn a_lock_that_goes_without_a_reboot() {
    check(VOID);
}

#[test]
fn a_grant_that_is_withdrawn() {
    check(CLOSING);
}

#[test]
fn other_actions_beside_kured() {
    check(BESIDE_KURED);
}

#[test]
fn wishes() {
    check(WISHES);
}

#[test]
fn the_sentinel() {
    check(BY_HAND);
}

#[test]
fn a_second_grant_is_said_and_is_the_last() {
    let mut play = Play::new(by_kured());
    play.scene.install(|kured| kured.commands_fail = 9);
    play.run();
    let status = play.status();
    assert_eq!(status.kured.map(|kured| kured.grants), Some(2), "{}", play.told());
    assert!(status.timeline.iter().any(|entry| entry.message.ends_with("one more grant")), "{}", play.told());
    assert_eq!(play.scene.kured().acquired, 2);
}

#[test]
fn a_forged_question_opens_nothing() {
    let mut play = Play::new(by_kured());
    very_slow(&mut play.scene);
    play.run_until(Acting, 0);
    to_the_go(&mut play);
    cancel(&mut play);
    play.run_until(Cancelled, 4);
    play.scene.forge_question();
    for _ in 0..40 {
        play.turn();
    }
    assert!(!play.done && !play.scene.lock_value()["maint"].is_null(), "{}", play.told());
    let message = play.status().message;
    assert!(message.ends_with("; still: kured's lock stays ours until kured on worker2 has asked again, or its pod is replaced: kubectl -n kube-system delete pod kured-x"), "{message}");
    play.scene.now = later(play.scene.now, 900);
    play.run();
    assert!(play.done, "{}", play.told());
    assert_eq!(play.status().message, "cancelled by anna");
    play.assert_nothing_left("forged");
}

#[test]
fn a_sentinel_that_was_there_stays() {
    let mut play = Play::new(by_kured_by_hand());
    quiet_kured(&mut play.scene);
    play.run_until(Acting, 0);
    while !play.acts.iter().any(|act| act == "create-sentinel") {
        play.turn();
    }
    // Before the pod is there the node wants a reboot by itself.
    play.scene.kured().wants = true;
    play.turn();
    cancel(&mut play);
    play.run();
    assert_eq!(play.phase(), Cancelled, "{}", play.told());
    assert!(play.done && play.scene.kured().wants && !play.scene.kured().made_by_us, "{}", play.told());
    assert_ne!(play.phase(), Failed);
}
