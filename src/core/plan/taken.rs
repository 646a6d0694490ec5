//! kured's lock names the node: that commits the run, whoever let it. And the lock goes again without a reboot: that
//! commit is void.

use super::before_commit::commit;
use super::lock::{LOOK_AT_LOCK, Named};
use super::run::Run;
use super::time::{after, parse_time, stamp};
use crate::api::{Outcome, Phase};
use crate::facts::Node;

/// Grants of one run that kured may use up.
const MAX_GRANTS: i64 = 2;
/// kured releases its lock about 0.2 s before it uncordons after a failed drain. Whole seconds are kept, so two of them
/// are at least one.
const GONE_SECONDS: i64 = 2;

/// Before commit: kured's lock names the node, whoever let it. Nothing can be undone then.
pub(super) fn is_taken(run: &mut Run<'_>) -> bool {
    let Named::Yes(created) = run.lock_names_target() else { return false };
    let granted = run.is_kureds() && (run.status.intent.is_some() || run.closing().is_some());
    run.kured_mut().seen_lock = Some(created);
    if granted {
        commit_grant(run, "kured took its lock");
        return true;
    }
    run.warn("kured took its lock for the node unasked: it does not ask us, or somebody wrote the lock");
    // Whatever the scope, a reboot is under way now.
    run.status.reboots = true;
    run.status.intent = None;
    commit(run, "kured acts unasked");
    true
}

/// The node booted anew while kured had a grant that was not closed: it may have used it while nobody looked.
pub(super) fn booted_on_it(run: &mut Run<'_>, node: &Node) -> bool {
    let open =
        run.status.intent.is_some() || run.closing().is_some_and(|closing| closing.used || closing.taken_at.is_none());
    // A node that goes down after kured lost the lock it had taken: somebody wiped it, and kured went on.
    let goes_down = run.closing().is_some_and(|closing| closing.used) && !Run::is_ready(node);
    if run.is_kureds() && goes_down {
        commit_grant(run, "the node goes down although kured's lock is gone");
        return true;
    }
    if !run.is_kureds() || !open || !run.has_new_boot(node) {
        return false;
    }
    commit_grant(run, "the node booted while kured had the grant");
    true
}

fn commit_grant(run: &mut Run<'_>, why: &str) {
    let kured = run.kured_mut();
    kured.grants = kured.grants.saturating_add(1);
    kured.closing = None;
    kured.lock_gone_since = None;
    run.status.intent = None;
    commit(run, why);
}

/// Returning, committed by kured's lock: the lock went although the boot is the same, so that nothing was rebooted.
/// True if that decided something.
pub(super) fn lock_gone(run: &mut Run<'_>, node: &Node) -> bool {
    let Some(kured) = run.status.kured.clone().filter(|kured| kured.seen_lock.is_some()) else { return false };
    if run.has_new_boot(node) {
        return false;
    }
    match run.lock_names_target() {
        Named::Yes(created) => {
            let kured = run.kured_mut();
            kured.lock_gone_since = None;
            if kured.seen_lock.as_ref() != Some(&created) {
                kured.seen_lock = Some(created);
                run.note("kured took its lock anew");
            }
            return false;
        }
        // Nobody knows, or kured is not there to say anything: the deadline decides.
        Named::Unknown(_) | Named::NoLock => return false,
        Named::No => {}
    }
    let Some(since) = parse_time(kured.lock_gone_since.as_ref()) else {
        run.kured_mut().lock_gone_since = Some(stamp(run.input.now));
        run.look_again_in(1);
        return false;
    };
    // A node that is going down says nothing: somebody may have wiped the lock.
    if run.input.now < after(since, GONE_SECONDS) || !Run::is_ready(node) {
        run.look_again_in(1);
        return false;
    }
    void(run, node, kured.grants);
    true
}

/// The commit is void: kured acquired its lock and gave it up without a reboot.
fn void(run: &mut Run<'_>, node: &Node, grants: i64) {
    run.status.committed_at = None;
    run.status.intent = None;
    let kured = run.kured_mut();
    kured.seen_lock = None;
    kured.lock_gone_since = None;
    if grants > 0 {
        run.begin_closing(true);
    }
    let logs = "kured's log on the node says why";
    if !node.unschedulable {
        let why = format!("kured's drain failed: it gave its lock up and uncordoned the node; {logs}");
        return run.back_out(Outcome::KuredDrainFailed, Phase::Failed, why);
    }
    if grants == 0 || grants >= MAX_GRANTS {
        let times = if grants > 1 { " for the second time" } else { "" };
        let why = format!("kured gave its lock up{times} without a reboot; {logs}");
        return run.back_out(Outcome::KuredDrainFailed, Phase::Failed, why);
    }
    run.enter(
        Phase::Acting,
        "kured gave its lock up without a reboot, and the node is still cordoned: it restarted, or its reboot command failed; one more grant",
    );
}

/// Before the start: kured's lock names the node already.
pub(super) fn at_work_already(run: &Run<'_>) -> Option<String> {
    match run.lock_names_target() {
        Named::Yes(_) => Some(format!(
            "kured's lock names the node already: kured is at work on it, or left the lock behind ({LOOK_AT_LOCK})"
        )),
        // Gates speak of what cannot be read.
        Named::No | Named::NoLock | Named::Unknown(_) => None,
    }
}
