//! The arrows of a run that goes well, for each strategy, action and scope.

use super::table::*;
use super::world::Pods;

const POD: &str =
    "add-finalizer cordon evict create-action-pod uncordon mark-proven delete-action-pod remove-finalizer";
const OUTSIDE: &str = "add-finalizer cordon evict uncordon mark-proven remove-finalizer";
const RESTART: &str = "add-finalizer cordon create-action-pod uncordon mark-proven delete-action-pod remove-finalizer";
const FINE: &str = "started:info finished:info";

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row { name: "drain, action pod", spec: reboot, setup: healthy, events: &[], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: FINE, says: "worker2 is done: boot boot -> boot, matrix 9/9 -> 9/9, 2 pods moved, DNS never below 2" },
    Row { name: "drain that takes a while", spec: reboot, setup: |scene| scene.cluster.pods = Pods::GoAfter(30), events: &[], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: FINE, says: "2 pods moved" },
    Row { name: "drain, a program claims", spec: program, setup: healthy, events: &[], end: "Succeeded Proven", acts: OUTSIDE, node: "schedulable", messages: FINE, says: "worker2 is done" },
    Row { name: "drain, a person acts", spec: person, setup: healthy, events: &[], end: "Succeeded Proven", acts: OUTSIDE, node: "schedulable", messages: "started:info go:info finished:info", says: "GO: act on worker2 now, then: maint done worker2-1" },
    Row { name: "cordon-only, action pod, no reboot", spec: restart, setup: no_reboot_needed, events: &[], end: "Succeeded Proven", acts: RESTART, node: "schedulable", messages: FINE, says: "worker2 is done: matrix 9/9 -> 9/9, DNS never below 2" },
    Row { name: "cordon-only, a program claims, no reboot", spec: program_restart, setup: no_reboot_needed, events: &[], end: "Succeeded Proven", acts: "add-finalizer cordon uncordon mark-proven remove-finalizer", node: "schedulable", messages: FINE, says: "worker2 is done" },
    Row { name: "power-off by a person", spec: || { let mut spec = person(); spec.scope = "power-off".into(); spec }, setup: healthy, events: &[], end: "Succeeded Proven", acts: OUTSIDE, node: "schedulable", messages: "started:info go:info finished:info", says: "boot boot -> boot" },
    Row { name: "a person chose more than the scope", spec: || { let mut spec = restart(); spec.strategy = Some("drain".into()); spec }, setup: no_reboot_needed, events: &[], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: FINE, says: "2 pods moved" },
    Row { name: "nobody may choose less", spec: || { let mut spec = reboot(); spec.strategy = Some("cordon-only".into()); spec }, setup: healthy, events: &[], end: "Succeeded Proven", acts: POD, node: "schedulable", messages: FINE, says: "2 pods moved" },
    Row { name: "by hand on a node that somebody had cordoned", spec: by_hand, setup: theirs, events: &[], end: "Succeeded Proven", acts: "add-finalizer cordon evict create-action-pod mark-proven drop-owner delete-action-pod remove-finalizer", node: "cordoned by kubectl", messages: "started:info finished:warning", says: "storage heals only after it is taken off" },
    Row { name: "by hand on a node that we had left cordoned", spec: by_hand, setup: |scene| scene.cordon(super::world::TARGET, true, "maint"), events: &[], end: "Succeeded Proven", acts: "add-finalizer cordon evict create-action-pod mark-proven drop-owner delete-action-pod remove-finalizer", node: "cordoned by maint", messages: "started:info finished:warning", says: "that cordon stays" },
    Row { name: "kured's own wish", spec: by_kured, setup: with_kured, events: &[], end: "Succeeded Proven", acts: OUTSIDE, node: "schedulable", messages: FINE, says: "worker2 is done: boot boot -> boot, matrix 9/9 -> 9/9, 2 pods moved" },
    Row { name: "a person wants kured to reboot", spec: by_kured_by_hand, setup: quiet_kured, events: &[], end: "Succeeded Proven", acts: "add-finalizer cordon evict create-sentinel uncordon mark-proven delete-sentinel-pod remove-finalizer", node: "schedulable", messages: FINE, says: "worker2 is done" },
    Row { name: "action pod beside kured", spec: reboot, setup: with_kured, events: &[], end: "Succeeded Proven", acts: "add-finalizer take-kured-lock cordon evict create-action-pod uncordon mark-proven delete-action-pod release-kured-lock remove-finalizer", node: "schedulable", messages: FINE, says: "worker2 is done" },
    Row { name: "a new leader in every phase", spec: reboot, setup: healthy, events: &[
        (crate::api::Phase::Cordoning, 1, new_leader), (crate::api::Phase::Draining, 0, new_leader),
        (crate::api::Phase::Acting, 0, new_leader), (crate::api::Phase::Returning, 0, new_leader),
        (crate::api::Phase::Verifying, 0, new_leader), (crate::api::Phase::Settling, 0, new_leader),
    ], end: "Succeeded Proven", acts: "add-finalizer cordon evict cordon create-action-pod cordon uncordon mark-proven delete-action-pod remove-finalizer", node: "schedulable", messages: FINE, says: "worker2 is done" },
];

#[test]
fn it_goes_well() {
    check(ROWS);
}
