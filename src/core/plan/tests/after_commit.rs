//! After commit: nothing is undone; it is proven, or held.

use serde_json::json;

use super::play::Play;
use super::table::*;
use super::world::Scene;
use crate::api::Phase::{Held, Returning, Settling, Uncordoning, Verifying};
use crate::api::SourceId;

const POD: &str =
    "add-finalizer cordon evict create-action-pod uncordon mark-proven delete-action-pod remove-finalizer";
const UP_TO_ACT: &str = "add-finalizer cordon evict create-action-pod";
const UNCORDONED: &str = "add-finalizer cordon evict create-action-pod uncordon";
const HELD: &str = "started:info held:critical";
const WARNED: &str = "started:info finished:warning";

/// Longhorn's documents with `pvc-a` degraded and its copy on the target being rebuilt to this percentage.
fn longhorn(scene: &mut Scene, rebuilt: Option<i64>) {
    scene.world.install_longhorn();
    let Some(percent) = rebuilt else { return };
    scene.world.of(SourceId::LonghornVolumes)[0]["status"]["robustness"] = json!("degraded");
    let engine = &mut scene.world.of(SourceId::LonghornEngines)[0]["status"];
    engine["replicaModeMap"]["pvc-a-r-worker2"] = json!("WO");
    engine["rebuildStatus"] = json!({
        "tcp://worker2:10000": {"isRebuilding": true, "progress": percent, "state": "in_progress", "error": ""},
    });
}

fn whole(play: &mut Play) {
    longhorn(&mut play.scene, None);
}

fn rebuilt<const PERCENT: i64>(play: &mut Play) {
    longhorn(&mut play.scene, Some(PERCENT));
}

fn not_ready(play: &mut Play) {
    play.scene.set_ready(super::world::TARGET, false);
}

fn ready(play: &mut Play) {
    play.scene.set_ready(super::world::TARGET, true);
}

fn flap(play: &mut Play) {
    no_dns(play);
}

#[rustfmt::skip]
const RETURN: &[Row] = &[
    Row { name: "not back by its deadline", spec: reboot, setup: stays_down, events: &[], end: "Held NodeNotBack", acts: UP_TO_ACT, node: "cordoned by maint, owned", messages: HELD, says: "worker2 is HELD (NodeNotBack): not Ready 100 s after the act. It stays cordoned, and nothing else starts" },
    Row { name: "back after all", spec: reboot, setup: stays_down, events: &[(Held, 2, power_loss)], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: "started:info held:critical finished:info", says: "is done" },
    Row { name: "Ready with the boot ID it had", spec: reboot, setup: does_not_reboot, events: &[], end: "Held NodeDidNotReboot", acts: UP_TO_ACT, node: "cordoned by maint, owned", messages: HELD, says: "Ready after 100 s with the boot ID it had" },
    Row { name: "the action failed, and no reboot came", spec: reboot, setup: |scene| { does_not_reboot(scene); scene.cluster.action_fails = true; }, events: &[], end: "Held ActionFailed", acts: UP_TO_ACT, node: "cordoned by maint, owned", messages: HELD, says: "the action reported failure and the boot ID is the same" },
    Row { name: "the action failed, no reboot wanted: held at once", spec: restart, setup: |scene| { no_reboot_needed(scene); scene.cluster.action_fails = true; }, events: &[], end: "Held ActionFailed", acts: "add-finalizer cordon create-action-pod", node: "cordoned by maint, owned", messages: HELD, says: "the action reported failure" },
    Row { name: "a program's command failed", spec: program_restart, setup: |scene| { no_reboot_needed(scene); scene.cluster.action_fails = true; }, events: &[], end: "Held ActionFailed", acts: "add-finalizer cordon", node: "cordoned by maint, owned", messages: HELD, says: "the action reported failure" },
    Row { name: "a command that its own reboot cut off", spec: program, setup: |scene| scene.cluster.action_fails = true, events: &[], end: "Succeeded Proven", acts: "add-finalizer cordon evict uncordon mark-proven remove-finalizer", node: "schedulable", messages: "started:info finished:info", says: "is done" },
    Row { name: "nobody acts", spec: idle_person, setup: healthy, events: &[], end: "Held NodeDidNotReboot", acts: "add-finalizer cordon evict", node: "cordoned by maint, owned", messages: "started:info go:info held:critical", says: "Ready after 100 s with the boot ID it had" },
    Row { name: "an empty boot ID proves nothing", spec: reboot, setup: does_not_reboot, events: &[(Returning, 1, |play| play.scene.find(super::world::TARGET).expect("a node")["status"]["nodeInfo"]["bootID"] = json!(""))], end: "Held NodeDidNotReboot", acts: UP_TO_ACT, node: "cordoned by maint, owned", messages: HELD, says: "Ready after 100 s with the boot ID it had" },
    Row { name: "another Node object", spec: reboot, setup: stays_down, events: &[(Returning, 1, replace_node)], end: "Failed NodeReplaced", acts: "add-finalizer cordon evict create-action-pod delete-action-pod remove-finalizer", node: "schedulable", messages: "started:info backed-out:warning", says: "the Node object is gone or another one" },
    Row { name: "no Node object while held", spec: reboot, setup: stays_down, events: &[(Held, 1, remove_node)], end: "Failed NodeReplaced", acts: "add-finalizer cordon evict create-action-pod delete-action-pod remove-finalizer", node: "gone", messages: "started:info held:critical backed-out:warning", says: "the Node object is gone or another one" },
    Row { name: "all is unreadable for a while", spec: reboot, setup: healthy, events: &[(Returning, 1, blind), (Returning, 9, sees)], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: "started:info finished:info", says: "is done" },
    Row { name: "all is unreadable past the deadline, and the node is back: observed anew", spec: reboot, setup: healthy, events: &[(Returning, 1, blind), (Returning, 9, minutes), (Returning, 1, sees)], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: "started:info finished:info", says: "is done" },
];

#[rustfmt::skip]
const VERIFY: &[Row] = &[
    Row { name: "a pair stays broken", spec: reboot, setup: healthy, events: &[(Returning, 0, break_pair)], end: "Held KubeletUnreachable", acts: UP_TO_ACT, node: "cordoned by maint, owned", messages: HELD, says: "worker2 is HELD (KubeletUnreachable): " },
    Row { name: "a pair stays broken, and volumes wait", spec: reboot, setup: healthy, events: &[(Returning, 0, break_pair), (Returning, 0, rebuilt::<1>)], end: "Held KubeletUnreachable", acts: UP_TO_ACT, node: "cordoned by maint, owned", messages: HELD, says: "; 1 volume cannot rebuild meanwhile" },
    Row { name: "a pair that is mended in time", spec: reboot, setup: healthy, events: &[(Returning, 0, break_pair), (Verifying, 5, mend_pair)], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: "started:info finished:info", says: "is done" },
    Row { name: "a pair that is mended while held", spec: reboot, setup: healthy, events: &[(Returning, 0, break_pair), (Held, 3, mend_pair)], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: "started:info held:critical finished:info", says: "is done" },
    Row { name: "somebody uncordons: proven with a warning", spec: reboot, setup: healthy, events: &[(Returning, 1, uncordon)], end: "Succeeded Proven", acts: "add-finalizer cordon evict create-action-pod drop-owner mark-proven delete-action-pod remove-finalizer", node: "schedulable", messages: WARNED, says: "somebody took our cordon off before the node was proven" },
    Row { name: "somebody uncordons and a new leader comes: it is not cordoned anew", spec: reboot, setup: healthy, events: &[(Verifying, 0, uncordon), (Verifying, 0, new_leader)], end: "Succeeded Proven", acts: "add-finalizer cordon evict create-action-pod drop-owner mark-proven delete-action-pod remove-finalizer", node: "schedulable", messages: WARNED, says: "somebody took our cordon off" },
    Row { name: "somebody uncordons and it is red", spec: reboot, setup: healthy, events: &[(Returning, 0, break_pair), (Returning, 1, uncordon)], end: "Held KubeletUnreachable", acts: UP_TO_ACT, node: "schedulable, owned", messages: HELD, says: "No cordon of ours is on it" },
    Row { name: "somebody takes the cordon over", spec: reboot, setup: healthy, events: &[(Verifying, 0, recordon)], end: "Succeeded Proven", acts: "add-finalizer cordon evict create-action-pod drop-owner mark-proven delete-action-pod remove-finalizer", node: "cordoned by kubectl", messages: WARNED, says: "the node is cordoned by somebody else; that cordon stays" },
    Row { name: "by hand: the person takes his cordon off", spec: by_hand, setup: theirs, events: &[(Returning, 1, uncordon)], end: "Succeeded Proven", acts: "add-finalizer cordon evict create-action-pod mark-proven drop-owner delete-action-pod remove-finalizer", node: "schedulable", messages: WARNED, says: "somebody took off the cordon that was there before" },
    Row { name: "another node fails: the target is finished all the same", spec: reboot, setup: healthy, events: &[(Returning, 1, other_down), (Settling, 1, other_up)], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: "started:info finished:info", says: "is done" },
    Row { name: "it boots once more while it is proven", spec: reboot, setup: healthy, events: &[(Verifying, 1, power_loss)], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: WARNED, says: "the node booted once more while it was being proven" },
    Row { name: "it boots once more before the uncordon", spec: reboot, setup: healthy, events: &[(Uncordoning, 0, power_loss)], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: WARNED, says: "the node booted once more while it was being proven" },
    Row { name: "it fails before the uncordon: proven anew", spec: reboot, setup: healthy, events: &[(Uncordoning, 0, not_ready), (Verifying, 3, ready)], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: "started:info finished:info", says: "is done" },
    Row { name: "it goes away while it is proven", spec: reboot, setup: healthy, events: &[(Verifying, 0, not_ready)], end: "Held TargetNotReady", acts: UP_TO_ACT, node: "cordoned by maint, owned", messages: HELD, says: "worker2 is HELD (TargetNotReady)" },
];

#[rustfmt::skip]
const SETTLE: &[Row] = &[
    Row { name: "no progress", spec: reboot, setup: healthy, events: &[(Settling, 0, rebuilt::<10>)], end: "Held NotSettled", acts: UNCORDONED, node: "schedulable", messages: HELD, says: "No cordon of ours is on it, and nothing else starts" },
    Row { name: "it settles while held: proven anew, without a word of a cordon taken off", spec: reboot, setup: healthy, events: &[(Settling, 0, rebuilt::<10>), (Held, 3, whole)], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: "started:info held:critical finished:info", says: "is done" },
    Row { name: "progress moves the deadline", spec: reboot, setup: healthy, events: &[(Settling, 0, rebuilt::<10>), (Settling, 9, rebuilt::<40>), (Settling, 9, rebuilt::<70>), (Settling, 9, rebuilt::<90>), (Settling, 9, whole)], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: "started:info finished:info", says: "is done" },
    Row { name: "a rebuild that begins anew is no progress", spec: reboot, setup: healthy, events: &[(Settling, 0, rebuilt::<40>), (Settling, 5, rebuilt::<10>), (Settling, 4, rebuilt::<30>)], end: "Held NotSettled", acts: UNCORDONED, node: "schedulable", messages: HELD, says: "longhorn-volumes (LonghornVolumeRebuilding)" },
    Row { name: "what comes and goes is no progress", spec: reboot, setup: healthy, events: &[(Settling, 0, rebuilt::<10>), (Settling, 3, flap), (Settling, 3, sees), (Settling, 3, flap), (Settling, 1, sees)], end: "Held NotSettled", acts: UNCORDONED, node: "schedulable", messages: HELD, says: "longhorn-volumes (LonghornVolumeRebuilding)" },
    Row { name: "accepted unsettled", spec: reboot, setup: healthy, events: &[(Settling, 0, rebuilt::<10>), (Held, 1, resume_accept)], end: "Succeeded AcceptedUnproven", acts: "add-finalizer cordon evict create-action-pod uncordon delete-action-pod remove-finalizer", node: "schedulable", messages: "started:info held:critical finished:warning", says: "anna accepted it unsettled" },
    Row { name: "resumed unsettled: held again", spec: reboot, setup: healthy, events: &[(Settling, 0, rebuilt::<10>), (Held, 1, resume)], end: "Held NotSettled", acts: UNCORDONED, node: "schedulable", messages: "started:info held:critical held:critical", says: "longhorn-volumes" },
    Row { name: "another node fails while settling", spec: reboot, setup: healthy, events: &[(Settling, 0, other_down)], end: "Held NotSettled", acts: UNCORDONED, node: "schedulable", messages: HELD, says: "nodes-ready (NodeNotReady)" },
    Row { name: "it boots once more while settling", spec: reboot, setup: healthy, events: &[(Settling, 1, power_loss)], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: WARNED, says: "the node booted once more while the cluster settled" },
    Row { name: "unreadable for a while", spec: reboot, setup: healthy, events: &[(Settling, 0, blind), (Settling, 4, sees)], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: "started:info finished:info", says: "is done" },
];

#[test]
fn the_return() {
    check(RETURN);
}

#[test]
fn the_proof() {
    check(VERIFY);
}

#[test]
fn settling() {
    check(SETTLE);
}
