//! Action `kured`: the grant, what passes between it and its end, and how a withdrawn one is closed.
//!
//! The grant is `status.intent`: whoever answers kured says `go` only while it is valid, on its boot, in Acting, with
//! nothing to close and with a lock that does not name the node. It is given after a question that was refused since
//! the cordon was seen (kured reads the node before it asks, so what it remembers of the node's cordon is then right),
//! and renewed only by a step whose gates agree.
//!
//! kured may act minutes after a `go`: what is withdrawn is therefore closed by taking kured's lock. It is over (spent)
//! once kured has asked again since and heard no, since its looks come one after the other, or its process is another
//! one, or the node booted.

use super::before_commit::commit;
use super::lock::{LOOK_AT_LOCK, Named, Released};
use super::run::{LOOK_SECONDS, Run, SOON_SECONDS};
use super::sentinel;
use super::time::{after, parse_time, stamp};
use crate::api::record::{Closing, Intent, KuredRecord};
use crate::api::{Action, Asked, Document, Outcome, Phase, QuestionSource, Trigger, names};
use crate::facts::{Item, Node, Pod};
use crate::kured::{Place, Places};

/// A grant that nobody renews is over after this long at most, in seconds: nobody's `go` outlives its leader by more.
const GRANT_SECONDS: i64 = 30;
/// Grants of one run that kured may use up.
const MAX_GRANTS: i64 = 2;
/// How long our hold of the lock must have lasted before a question from an address that is not kured's counts.
const ELSEWHERE_SECONDS: i64 = 15 * 60;
/// kured releases its lock about 0.2 s before it uncordons after a failed drain. Whole seconds are kept, so two of them
/// are at least one.
const GONE_SECONDS: i64 = 2;
/// Silence after which a wish of kured is over: at least so long, and so many of its periods.
const SILENCE_SECONDS: i64 = 30 * 60;
const SILENCE_PERIODS: i64 = 3;

impl<'a> Run<'a> {
    pub(super) fn is_kureds(&self) -> bool {
        matches!(self.action(), Ok(Action::Kured))
    }

    pub(super) fn kured_mut(&mut self) -> &mut KuredRecord {
        self.status.kured.get_or_insert_default()
    }

    pub(super) fn closing(&self) -> Option<&Closing> {
        self.status.kured.as_ref()?.closing.as_ref()
    }

    /// The last question that somebody heard. One that cannot be read proves nothing.
    pub(super) fn asked(&self) -> Option<Asked> {
        let annotations = self.input.record.metadata.annotations.as_ref()?;
        Asked::parse(annotations.get(names::ANNOTATION_ASKED)?).ok()
    }

    /// A question must be heard from now on.
    pub(super) fn raise_epoch(&mut self) {
        if self.is_kureds() {
            let kured = self.kured_mut();
            kured.ask_epoch = kured.ask_epoch.saturating_add(1);
        }
    }

    /// kured's pods on the node; none where that could not be read.
    fn kured_pods(&self) -> Option<Vec<&'a Pod>> {
        let Places::Found(places) = self.locks() else { return None };
        let items = self.current(&self.input.facts.target_pods, Pod::ON_TARGET.max_age_seconds)?;
        let mut found = Vec::new();
        for item in items {
            match item {
                Item::Good(pod) if places.iter().any(|place| runs_it(place, pod)) => found.push(pod),
                Item::Good(_) => {}
                // It may be kured's.
                Item::Malformed(_) => return None,
            }
        }
        Some(found)
    }

    fn kured_pods_line(&self) -> String {
        let mut ids: Vec<String> = self.kured_pods().unwrap_or_default().into_iter().map(id_of).collect();
        ids.sort_unstable();
        ids.join(",")
    }

    /// The kured that looks after the node: by its pod there, else the first.
    pub(super) fn kured_place(&self) -> Option<Place> {
        let Places::Found(places) = self.locks() else { return None };
        let pods = self.kured_pods().unwrap_or_default();
        let here = places.iter().find(|place| pods.iter().any(|pod| runs_it(place, pod)));
        here.or_else(|| places.first()).cloned()
    }

    /// Whether nobody can act on a withdrawn grant any more.
    pub(super) fn is_spent(&self, closing: &Closing, node: Option<&Node>) -> bool {
        let Some(node) = node else { return true };
        if self.has_new_boot(node) {
            return true;
        }
        let asked = self.asked().filter(|asked| asked.epoch >= closing.epoch);
        let heard = asked.is_some_and(|asked| match asked.source {
            QuestionSource::Kured => true,
            // It may be forged, or its sender's address was rewritten on the way.
            QuestionSource::Elsewhere => parse_time(closing.taken_at.as_ref())
                .is_some_and(|taken| self.input.now >= after(taken, ELSEWHERE_SECONDS)),
        });
        heard || self.is_another_process(closing)
    }

    /// None of the processes that may have heard the `go` is left, and a kubelet that works runs another one.
    fn is_another_process(&self, closing: &Closing) -> bool {
        let Some(pods) = self.kured_pods() else { return false };
        let left = closing.pod.split(',').any(|id| pods.iter().any(|pod| id_of(pod) == id));
        !closing.pod.is_empty() && !left && pods.iter().any(|pod| pod.is_ready())
    }

    /// What ends the wait for a spent grant, for people.
    pub(super) fn until_spent(&self) -> String {
        let node = self.node_name();
        let pods = self.kured_pods().unwrap_or_default();
        let faster = pods.first().map_or_else(String::new, |pod| {
            let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
            format!(", or its pod is replaced: kubectl -n {namespace} delete pod {name}")
        });
        format!("until kured on {node} has asked again{faster}")
    }

    /// Takes back what was offered. With action kured it is closed from then on.
    pub(super) fn withdraw(&mut self) {
        if self.status.intent.take().is_some() && self.is_kureds() {
            self.begin_closing(false);
        }
    }

    fn begin_closing(&mut self, used: bool) {
        self.raise_epoch();
        let kured = self.kured_mut();
        let (epoch, pod) = (kured.ask_epoch, kured.pod.clone());
        kured.closing = Some(Closing { taken_at: None, epoch, pod, used });
        self.note("what kured was granted is taken back");
    }

    pub(super) fn note_taken(&mut self) {
        let (now, pods) = (stamp(self.input.now), self.kured_pods_line());
        if let Some(closing) = self.status.kured.as_mut().and_then(|kured| kured.closing.as_mut()) {
            closing.taken_at.get_or_insert(now);
            if closing.pod.is_empty() {
                // Known late: if this one goes, an older one went before it.
                closing.pod = pods;
            }
        }
    }
}

fn runs_it(place: &Place, pod: &Pod) -> bool {
    let controller = pod.controller.as_ref().map(|(kind, name)| (kind.as_str(), name.as_str()));
    pod.metadata.namespace == place.namespace && controller == Some(("DaemonSet", place.name.as_str()))
}

fn id_of(pod: &Pod) -> String {
    format!("{}/{}", pod.metadata.uid, pod.restarts)
}

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
    let open = run.status.intent.is_some() || run.closing().is_some_and(|closing| closing.taken_at.is_none());
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

/// Takes kured's lock while a withdrawn grant may still be acted on. True once that cannot be any more, so that
/// what is ours may be put back.
pub(super) fn is_closed(run: &mut Run<'_>, node: Option<&Node>) -> bool {
    let Some(closing) = run.closing().cloned() else { return true };
    if matches!(run.locks(), Places::NotInstalled) || run.is_spent(&closing, node) {
        return true;
    }
    let ours = run.our_hold();
    if ours.held {
        run.note_taken();
        if !closing.used {
            return true;
        }
        run.status.message = format!("waits {}: it gave its lock up and may still be at work", run.until_spent());
    } else {
        let why =
            ours.why_not.map_or_else(|| "its lock is being taken".to_owned(), |why| format!("{why} ({LOOK_AT_LOCK})"));
        run.status.message = format!("closes what kured was granted; the node stays cordoned meanwhile: {why}");
        run.acts.extend(ours.take);
    }
    run.look_again_in(SOON_SECONDS);
    false
}

/// Acting, all gates agree: asks for the sentinel, waits for kured's question, grants, renews.
pub(super) fn hand_over(run: &mut Run<'_>, node: &Node) {
    let Some(place) = run.kured_place() else {
        // Gates asked it a moment ago; without it there is nobody to grant anything to.
        run.status.message = "waits: where kured runs could not be read".to_owned();
        run.withdraw();
        return run.look_again_in(SOON_SECONDS);
    };
    if !reopened(run, node) {
        return;
    }
    let epoch = run.status.kured.as_ref().map_or(0, |kured| kured.ask_epoch);
    let heard = run.asked().is_some_and(|asked| asked.epoch >= epoch);
    // An epoch of 0 was never raised: then nothing was done that a question could have come after.
    if epoch == 0 || (!heard && run.status.intent.is_none()) {
        if epoch == 0 {
            run.raise_epoch();
        }
        if sentinel::is_there(run, node, &place) {
            run.status.message = format!(
                "waits for kured's question; it looks every {} s while its node wants a reboot",
                place.period_seconds
            );
            run.look_again_in(LOOK_SECONDS);
        }
        return;
    }
    grant(run, node, &place);
}

fn grant(run: &mut Run<'_>, node: &Node, place: &Place) {
    let now = run.input.now;
    let seconds = run.settings().go_seconds.clamp(1, GRANT_SECONDS);
    let before = run.status.intent.take().filter(|intent| intent.boot_id == node.boot_id);
    if before.is_none() {
        run.kured_mut().pod = run.kured_pods_line();
        run.note(format!("granted: kured may replace boot {}", node.boot_id));
    }
    run.status.offered_at.get_or_insert_with(|| stamp(now));
    run.status.intent = Some(Intent {
        boot_id: node.boot_id.clone(),
        at: before.map_or_else(|| stamp(now), |intent| intent.at),
        valid_until: stamp(after(now, seconds)),
    });
    run.status.message = format!("granted: kured acts at its next look, at most {} s away", place.period_seconds);
    run.look_again_in((seconds / 3).clamp(1, LOOK_SECONDS));
}

/// A grant that was withdrawn earlier: spent, and our hold given back, before there is another one.
fn reopened(run: &mut Run<'_>, node: &Node) -> bool {
    let Some(closing) = run.closing().cloned() else { return true };
    if !run.is_spent(&closing, Some(node)) {
        if is_closed(run, Some(node)) {
            run.status.message = format!("kured's lock is ours {}", run.until_spent());
        }
        run.look_again_in(SOON_SECONDS);
        return false;
    }
    match run.release_lock() {
        Ok(Released::Nothing) => {
            run.kured_mut().closing = None;
            true
        }
        Ok(Released::Asked) => {
            run.look_again_in(0);
            false
        }
        Err(why) => {
            run.status.message = format!("waits: {why}");
            run.look_again_in(SOON_SECONDS);
            false
        }
    }
}

/// Why nobody took what Acting offered, at its deadline.
pub(super) fn late(run: &Run<'_>, limit: i64) -> String {
    if run.status.intent.is_some() {
        return format!("kured was granted the reboot and did not take its lock within {limit} s");
    }
    if run.closing().is_some() {
        return format!("within {limit} s kured did not show that it heard no after a grant was taken back");
    }
    format!("kured did not ask within {limit} s after the cordon: is it on the node, in its window, and pointed at us")
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

/// Pending: why whoever wished it no longer does.
pub(super) fn no_longer_wished(run: &mut Run<'_>, node: &Node) -> Option<String> {
    let wished_on = run.input.record.spec.boot_id.as_ref();
    if let Some(boot) = wished_on.filter(|boot| !boot.is_empty() && **boot != node.boot_id) {
        return Some(format!("the node booted since it was wished (boot {boot} then, {} now)", node.boot_id));
    }
    if !run.is_kureds() || run.trigger() == Trigger::Manual {
        return None;
    }
    let now = run.input.now;
    let new_leader = run.input.record.status.as_ref().is_none_or(|status| status.term != run.input.term);
    let kured = run.kured_mut();
    if new_leader || kured.listening_since.is_none() {
        // Nobody may have listened before.
        kured.listening_since = Some(stamp(now));
    }
    let listening = parse_time(kured.listening_since.as_ref())?;
    let asked = run.asked()?;
    let place = run.kured_place()?;
    let ready = run.kured_pods()?.iter().any(|pod| pod.is_ready());
    let limit = SILENCE_SECONDS.max(place.period_seconds.saturating_mul(SILENCE_PERIODS));
    let silent = now >= after(asked.at.max(listening), limit);
    // Outside its own window kured asks nothing, and a window that is not known is not judged.
    (ready && place.always_open && silent)
        .then(|| format!("kured has not asked since {}, and looks every {} s", stamp(asked.at), place.period_seconds))
}

/// Whether kured itself wants the reboot, as far as can be seen before it was asked for.
pub(super) fn wishes_itself(run: &Run<'_>, node: Option<&Node>) -> bool {
    let annotated =
        node.is_some_and(|node| node.metadata.annotations.contains_key(names::ANNOTATION_KURED_IN_PROGRESS));
    annotated || run.asked().is_some_and(|asked| asked.source == QuestionSource::Kured)
}

/// What kured left on the node, for a warning at the end.
pub(super) fn left_over(node: &Node) -> Option<String> {
    node.metadata.annotations.contains_key(names::ANNOTATION_KURED_IN_PROGRESS).then(|| {
        let (key, name) = (names::ANNOTATION_KURED_IN_PROGRESS, &node.metadata.name);
        format!("annotation {key} is still on the node: kubectl annotate node {name} {key}-")
    })
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
