//! Halt, hold, release, cancel, resume, deletion: said in every phase.

use super::play::Play;
use super::table::*;
use crate::api::Phase::{Acting, BackingOut, Cordoning, Draining, Held, Pending, Returning, Settling, Verifying};

const BACK: &str = "add-finalizer cordon evict uncordon remove-finalizer";
const KEPT: &str = "add-finalizer cordon evict drop-owner remove-finalizer";
const POD: &str =
    "add-finalizer cordon evict create-action-pod uncordon mark-proven delete-action-pod remove-finalizer";
const UP_TO_ACT: &str = "add-finalizer cordon evict create-action-pod";
const TOLD: &str = "started:info backed-out:warning";
const WARNED: &str = "started:info finished:warning";

#[rustfmt::skip]
const HALT: &[Row] = &[
    Row { name: "before it starts", spec: reboot, setup: healthy, events: &[(Pending, 0, halt)], end: "Pending ", acts: "", node: "schedulable", messages: "", says: "control (Halted): anna halted maint" },
    Row { name: "while draining: the node is left as it is, no deadline passes", spec: reboot, setup: pods_stay, events: &[(Draining, 1, halt)], end: "Draining ", acts: "add-finalizer cordon evict", node: "cordoned by maint, owned", messages: "started:info", says: "halted by anna: the node is left as it is until unhalt or cancel" },
    Row { name: "and goes on after it", spec: reboot, setup: pods_stay, events: &[(Draining, 1, halt), (Draining, 3, minutes), (Draining, 3, unhalt), (Draining, 1, |play| play.scene.cluster.pods = super::world::Pods::GoAtOnce)], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: "started:info finished:info", says: "is done" },
    Row { name: "and cancel", spec: reboot, setup: pods_stay, events: &[(Draining, 1, halt), (Draining, 3, cancel)], end: "Cancelled Cancelled", acts: BACK, node: "schedulable", messages: TOLD, says: "cancelled by anna" },
    Row { name: "a go is withdrawn", spec: nobody_waits, setup: healthy, events: &[(Acting, 1, halt)], end: "Acting ", acts: "add-finalizer cordon evict", node: "cordoned by maint, owned", messages: "started:info", says: "halted by anna" },
    Row { name: "putting back waits too", spec: reboot, setup: pods_stay, events: &[(Draining, 0, other_down), (BackingOut, 0, halt)], end: "BackingOut OtherNodeUnavailable", acts: "add-finalizer cordon", node: "cordoned by maint, owned", messages: "started:info", says: "waits for unhalt or cancel: " },
    Row { name: "putting back goes on after it", spec: reboot, setup: pods_stay, events: &[(Draining, 0, other_down), (BackingOut, 0, halt), (BackingOut, 5, unhalt)], end: "Failed OtherNodeUnavailable", acts: "add-finalizer cordon uncordon remove-finalizer", node: "schedulable", messages: TOLD, says: "was not maintained, failed (OtherNodeUnavailable): 1 other node is unavailable" },
    Row { name: "putting back goes on after a cancel", spec: reboot, setup: pods_stay, events: &[(Draining, 0, other_down), (BackingOut, 0, halt), (BackingOut, 5, cancel)], end: "Failed OtherNodeUnavailable", acts: "add-finalizer cordon uncordon remove-finalizer", node: "schedulable", messages: TOLD, says: "1 other node is unavailable" },
    Row { name: "a halt that cannot be read waits like a block, and nothing is put back on a guess", spec: reboot, setup: pods_stay, events: &[(Draining, 1, garble_halt)], end: "BackingOut HandoverTimeout", acts: "add-finalizer cordon evict", node: "cordoned by maint, owned", messages: "started:info", says: "waits for unhalt or cancel: gates did not agree within 60 s: control (ObservationMalformed)" },
    Row { name: "a new leader writes nothing under a halt that cannot be read", spec: reboot, setup: pods_stay, events: &[(Draining, 1, garble_halt), (Draining, 1, new_leader)], end: "BackingOut HandoverTimeout", acts: "add-finalizer cordon evict", node: "cordoned by maint, owned", messages: "started:info", says: "waits for unhalt or cancel: gates did not agree within 60 s: control (ObservationMalformed)" },
    Row { name: "the cordon is gone under a halt: judged after it", spec: reboot, setup: pods_stay, events: &[(Draining, 1, halt), (Draining, 1, uncordon), (Draining, 2, unhalt)], end: "Failed CordonRemoved", acts: KEPT, node: "schedulable", messages: TOLD, says: "somebody took our cordon off" },
    Row { name: "after commit: it observes, the uncordon waits", spec: reboot, setup: healthy, events: &[(Returning, 1, halt)], end: "Verifying ", acts: UP_TO_ACT, node: "cordoned by maint, owned", messages: "started:info", says: "proven; halted by anna: nothing moves until unhalt" },
    Row { name: "after commit, unreadable: the same", spec: reboot, setup: healthy, events: &[(Returning, 1, garble_halt)], end: "Verifying ", acts: UP_TO_ACT, node: "cordoned by maint, owned", messages: "started:info", says: "proven; nothing moves: the halt is no readable halt document" },
    Row { name: "after commit, and unhalt", spec: reboot, setup: healthy, events: &[(Returning, 1, halt), (Verifying, 9, unhalt)], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: "started:info finished:info", says: "is done" },
    Row { name: "after commit a new leader writes nothing under a halt", spec: reboot, setup: healthy, events: &[(Returning, 1, halt), (Verifying, 1, new_leader)], end: "Verifying ", acts: UP_TO_ACT, node: "cordoned by maint, owned", messages: "started:info", says: "proven; halted by anna" },
    Row { name: "while settling: nothing is written", spec: reboot, setup: healthy, events: &[(Settling, 0, halt)], end: "Settling ", acts: "add-finalizer cordon evict create-action-pod uncordon", node: "schedulable", messages: "started:info", says: "settled; halted by anna: nothing moves until unhalt" },
    Row { name: "while held: nothing moves", spec: reboot, setup: stays_down, events: &[(Held, 0, halt), (Held, 1, cancel_accept)], end: "Held NodeNotBack", acts: UP_TO_ACT, node: "cordoned by maint, owned", messages: "started:info held:critical", says: "held; halted by anna: nothing moves until unhalt" },
    Row { name: "while held, and unhalt", spec: reboot, setup: stays_down, events: &[(Held, 0, halt), (Held, 1, cancel_accept), (Held, 3, unhalt)], end: "Cancelled AcceptedUnproven", acts: "add-finalizer cordon evict create-action-pod uncordon delete-action-pod remove-finalizer", node: "schedulable", messages: "started:info held:critical backed-out:warning", says: "anna cancelled it and accepted the node unproven" },
];

#[rustfmt::skip]
const HOLD: &[Row] = &[
    Row { name: "while draining: the cordon is left", spec: reboot, setup: pods_stay, events: &[(Draining, 1, hold)], end: "Cancelled NodeOnHold", acts: KEPT, node: "cordoned by maint", messages: TOLD, says: "anna holds the node; its cordon stays" },
    Row { name: "while cordoning", spec: reboot, setup: healthy, events: &[(Cordoning, 0, hold)], end: "Cancelled NodeOnHold", acts: "add-finalizer remove-finalizer", node: "schedulable", messages: TOLD, says: "anna holds the node" },
    Row { name: "at hand-over", spec: nobody_waits, setup: healthy, events: &[(Acting, 1, hold)], end: "Cancelled NodeOnHold", acts: KEPT, node: "cordoned by maint", messages: TOLD, says: "anna holds the node" },
    Row { name: "while it is put back: the cordon is left", spec: reboot, setup: pods_stay, events: &[(Draining, 1, cancel), (BackingOut, 0, hold)], end: "Cancelled Cancelled", acts: KEPT, node: "cordoned by maint", messages: TOLD, says: "cancelled by anna" },
    Row { name: "unreadable: waits, then the cordon is left", spec: reboot, setup: pods_stay, events: &[(Draining, 1, garble_hold)], end: "Failed HandoverTimeout", acts: KEPT, node: "cordoned by maint", messages: TOLD, says: "the cordon stays: the hold is no readable hold document" },
    Row { name: "after commit: proven, then held", spec: reboot, setup: healthy, events: &[(Returning, 1, hold)], end: "Held NodeOnHold", acts: UP_TO_ACT, node: "cordoned by maint, owned", messages: "started:info held:warning", says: "worker2 is HELD (NodeOnHold): proven, and anna holds the node until `maint release worker2`. It stays cordoned, and nothing else starts. Look: maint show worker2-1; go on: maint release worker2" },
    Row { name: "after commit, and release", spec: reboot, setup: healthy, events: &[(Returning, 1, hold), (Held, 3, release)], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: "started:info held:warning finished:info", says: "is done" },
    Row { name: "after commit, release where healed ones wait", spec: reboot, setup: |scene| scene.settings.run.when_healed = crate::config::WhenHealed::Wait, events: &[(Returning, 1, hold), (Held, 3, release)], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: "started:info held:warning finished:info", says: "is done" },
    Row { name: "after commit, unreadable", spec: reboot, setup: healthy, events: &[(Returning, 1, garble_hold)], end: "Held NodeOnHold", acts: UP_TO_ACT, node: "cordoned by maint, owned", messages: "started:info held:warning", says: "proven, and nobody can tell whether it is held: the hold is no readable hold document" },
    Row { name: "resume comes after release", spec: reboot, setup: healthy, events: &[(Returning, 1, hold), (Held, 1, resume_accept)], end: "Held NodeOnHold", acts: UP_TO_ACT, node: "cordoned by maint, owned", messages: "started:info held:warning", says: "anna resumed it while the node is on hold: `maint release worker2` comes first" },
    Row { name: "cancel --accept leaves the cordon of a node on hold", spec: reboot, setup: healthy, events: &[(Returning, 1, hold), (Held, 1, cancel_accept)], end: "Cancelled AcceptedUnproven", acts: "add-finalizer cordon evict create-action-pod drop-owner delete-action-pod remove-finalizer", node: "cordoned by maint", messages: "started:info held:warning backed-out:warning", says: "accepted the node unproven; the node stays cordoned" },
    Row { name: "while settling: no cordon is claimed", spec: reboot, setup: healthy, events: &[(Settling, 0, hold)], end: "Held NodeOnHold", acts: "add-finalizer cordon evict create-action-pod uncordon", node: "schedulable", messages: "started:info held:warning", says: "No cordon of ours is on it" },
];

#[rustfmt::skip]
const CANCEL: &[Row] = &[
    Row { name: "while draining", spec: reboot, setup: pods_stay, events: &[(Draining, 1, cancel)], end: "Cancelled Cancelled", acts: BACK, node: "schedulable", messages: TOLD, says: "worker2 was not maintained, cancelled (Cancelled): cancelled by anna" },
    Row { name: "at hand-over, the go is taken back", spec: nobody_waits, setup: healthy, events: &[(Acting, 1, cancel)], end: "Cancelled Cancelled", acts: BACK, node: "schedulable", messages: TOLD, says: "cancelled by anna" },
    Row { name: "the command was claimed first", spec: program, setup: healthy, events: &[(Acting, 1, |play| { claim(play); cancel(play); play.scene.acted(); })], end: "Succeeded Proven", acts: "add-finalizer cordon evict uncordon mark-proven remove-finalizer", node: "schedulable", messages: WARNED, says: "anna cancelled it after it was committed: the node is proven all the same" },
    Row { name: "the claim came while it was put back", spec: nobody_waits, setup: healthy, events: &[(Acting, 1, cancel), (BackingOut, 0, |play| { claim(play); play.scene.acted(); })], end: "Succeeded Proven", acts: "add-finalizer cordon evict uncordon mark-proven remove-finalizer", node: "schedulable", messages: WARNED, says: "anna cancelled it after it was committed" },
    Row { name: "the pod came while it was put back", spec: reboot, setup: healthy, events: &[(Acting, 1, cancel), (BackingOut, 3, late_pod)], end: "Succeeded Proven", acts: "add-finalizer cordon evict uncordon mark-proven delete-action-pod remove-finalizer", node: "schedulable", messages: WARNED, says: "anna cancelled it after it was committed" },
    Row { name: "no pod came", spec: reboot, setup: healthy, events: &[(Acting, 1, cancel)], end: "Cancelled Cancelled", acts: BACK, node: "schedulable", messages: TOLD, says: "cancelled by anna" },
    Row { name: "after commit", spec: reboot, setup: healthy, events: &[(Returning, 1, cancel)], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: WARNED, says: "anna cancelled it after it was committed: the node is proven all the same" },
    Row { name: "after the go to a person: he is told", spec: idle_person, setup: healthy, events: &[(Returning, 1, cancel)], end: "Held NodeDidNotReboot", acts: "add-finalizer cordon evict", node: "cordoned by maint, owned", messages: "started:info go:info go:warning held:critical", says: "anna called it off after the go: do not act on worker2 if you have not yet; if you have: maint done worker2-1" },
    Row { name: "while verifying, --accept does not count", spec: reboot, setup: healthy, events: &[(Returning, 0, break_pair), (Verifying, 1, cancel_accept)], end: "Held KubeletUnreachable", acts: UP_TO_ACT, node: "cordoned by maint, owned", messages: "started:info held:critical", says: "cancelled it after it was committed" },
    Row { name: "while held", spec: reboot, setup: stays_down, events: &[(Held, 1, cancel)], end: "Held NodeNotBack", acts: UP_TO_ACT, node: "cordoned by maint, owned", messages: "started:info held:critical", says: "anna cancelled it while it was held: the node stays as it is until `maint cancel worker2-1 --accept`" },
    Row { name: "while held, with --accept", spec: reboot, setup: stays_down, events: &[(Held, 1, cancel_accept)], end: "Cancelled AcceptedUnproven", acts: "add-finalizer cordon evict create-action-pod uncordon delete-action-pod remove-finalizer", node: "schedulable", messages: "started:info held:critical backed-out:warning", says: "anna cancelled it and accepted the node unproven" },
    Row { name: "deleted while draining", spec: reboot, setup: pods_stay, events: &[(Draining, 1, delete)], end: "Cancelled deleted", acts: BACK, node: "schedulable", messages: "", says: "" },
    Row { name: "deleted after commit: kept until it is proven", spec: reboot, setup: healthy, events: &[(Returning, 1, delete)], end: "Succeeded deleted", acts: POD, node: "schedulable", messages: "", says: "" },
    Row { name: "deleted while held: kept", spec: reboot, setup: stays_down, events: &[(Held, 1, delete)], end: "Held NodeNotBack", acts: UP_TO_ACT, node: "cordoned by maint, owned", messages: "started:info held:critical", says: "the record was deleted after it was committed" },
];

fn late_pod(play: &mut Play) {
    let act = crate::plan::Act::CreateActionPod {
        name: "maint-worker2-1".into(),
        node: "worker2".into(),
        boot_id: "boot-worker2".into(),
    };
    play.scene.perform(&act).expect("created");
}

#[rustfmt::skip]
const RESUME: &[Row] = &[
    Row { name: "said too early it does not come true later", spec: reboot, setup: does_not_reboot, events: &[(Draining, 0, resume_accept)], end: "Held NodeDidNotReboot", acts: UP_TO_ACT, node: "cordoned by maint, owned", messages: "started:info held:critical", says: "Ready after 100 s with the boot ID it had" },
    Row { name: "still broken: held again", spec: reboot, setup: does_not_reboot, events: &[(Held, 1, resume)], end: "Held NodeDidNotReboot", acts: UP_TO_ACT, node: "cordoned by maint, owned", messages: "started:info held:critical held:critical", says: "node worker2 did not reboot" },
    Row { name: "--accept: on as if green", spec: reboot, setup: does_not_reboot, events: &[(Held, 1, resume_accept)], end: "Succeeded AcceptedUnproven", acts: "add-finalizer cordon evict create-action-pod uncordon delete-action-pod remove-finalizer", node: "schedulable", messages: "started:info held:critical finished:warning", says: "anna accepted it unproven" },
    Row { name: "--accept while verifying", spec: reboot, setup: healthy, events: &[(Returning, 0, break_pair), (Verifying, 1, resume_accept), (Settling, 1, mend_pair)], end: "Succeeded AcceptedUnproven", acts: "add-finalizer cordon evict create-action-pod uncordon delete-action-pod remove-finalizer", node: "schedulable", messages: WARNED, says: "anna accepted it unproven" },
    Row { name: "--accept twice: unproven, then unsettled", spec: reboot, setup: healthy, events: &[(Returning, 0, break_pair), (Held, 1, resume_accept), (Held, 0, |_| {}), (Settling, 0, |_| {}), (Held, 1, |play| play.say(|spec| spec.resume = super::play::word(true).map(|word| crate::api::record::Word { by: "bert".into(), ..word })))], end: "Succeeded AcceptedUnproven", acts: "add-finalizer cordon evict create-action-pod uncordon delete-action-pod remove-finalizer", node: "schedulable", messages: "started:info held:critical held:critical finished:warning", says: "bert accepted it unsettled" },
    Row { name: "--accept of a node that somebody had cordoned leaves his cordon", spec: by_hand, setup: |scene| { theirs(scene); does_not_reboot(scene); }, events: &[(Held, 1, resume_accept)], end: "Succeeded AcceptedUnproven", acts: "add-finalizer cordon evict create-action-pod drop-owner delete-action-pod remove-finalizer", node: "cordoned by kubectl", messages: "started:info held:critical finished:warning", says: "that cordon stays" },
    Row { name: "a wait for a person is a wait", spec: reboot, setup: |scene| scene.settings.run.when_healed = crate::config::WhenHealed::Wait, events: &[(Returning, 0, break_pair), (Held, 2, mend_pair)], end: "Held KubeletUnreachable", acts: UP_TO_ACT, node: "cordoned by maint, owned", messages: "started:info held:critical", says: "maint resume worker2-1" },
    Row { name: "and ends by his word", spec: reboot, setup: |scene| scene.settings.run.when_healed = crate::config::WhenHealed::Wait, events: &[(Returning, 0, break_pair), (Held, 2, mend_pair), (Held, 2, resume)], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: "started:info held:critical finished:info", says: "is done" },
];

#[test]
fn halts() {
    check(HALT);
}

#[test]
fn holds() {
    check(HOLD);
}

#[test]
fn cancels_and_deletions() {
    check(CANCEL);
}

#[test]
fn resumes() {
    check(RESUME);
}
