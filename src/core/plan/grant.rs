//! Action `kured`: its question, the grant, and the end of a wish.
//!
//! The grant is `status.intent`: whoever answers kured says `go` only while it is valid, on its boot, in Acting, with
//! nothing to close and with a lock that does not name the node. It is given after a question that was refused since
//! the cordon was seen (kured reads the node before it asks, so what it remembers of the node's cordon is then right),
//! and renewed only by a step whose gates agree.

use super::closing::{is_without_us, reopened};
use super::run::{LOOK_SECONDS, Run, SOON_SECONDS};
use super::sentinel;
use super::time::{after, parse_time, stamp};
use crate::api::record::{Closing, Intent, KuredRecord};
use crate::api::{Action, Asked, Document, QuestionSource, Trigger, names};
use crate::facts::{Item, Node, Pod};
use crate::kured::{Place, Places};
use crate::planted::{self, Bug};

/// A grant that nobody renews is over after this long at most, in seconds: nobody's `go` outlives its leader by more.
const GRANT_SECONDS: i64 = 30;
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
    pub(super) fn kured_pods(&self) -> Option<Vec<&'a Pod>> {
        let Places::Found(places) = self.locks() else { return None };
        let items = self.current(&self.input.facts.target_pods, Pod::ON_TARGET.max_age_seconds)?;
        let mut found = Vec::new();
        for item in items {
            match item {
                Item::Good(pod) if places.iter().any(|place| place.is_taken_by(pod)) => found.push(pod),
                Item::Good(_) => {}
                // It may be kured's.
                Item::Malformed(_) => return None,
            }
        }
        Some(found)
    }

    pub(super) fn kured_pods_line(&self) -> String {
        let mut ids: Vec<String> = self.kured_pods().unwrap_or_default().into_iter().map(id_of).collect();
        ids.sort_unstable();
        ids.join(",")
    }

    /// The kured that looks after the node: by its pod there, else the first.
    pub(super) fn kured_place(&self) -> Option<Place> {
        let Places::Found(places) = self.locks() else { return None };
        let pods = self.kured_pods().unwrap_or_default();
        let here = places.iter().find(|place| pods.iter().any(|pod| place.is_taken_by(pod)));
        here.or_else(|| places.first()).cloned()
    }
}

pub(super) fn id_of(pod: &Pod) -> String {
    format!("{}/{}", pod.metadata.uid, pod.restarts)
}

/// Acting, all gates agree: asks for the sentinel, waits for kured's question, grants, renews.
pub(super) fn hand_over(run: &mut Run<'_>, node: &Node) {
    let Some(place) = run.kured_place() else {
        // Gates asked it a moment ago; without it there is nobody to grant anything to.
        run.status.message = "waits: where kured runs could not be read".to_owned();
        run.withdraw();
        return run.look_again_in(SOON_SECONDS);
    };
    run.kured_mut().period_seconds = place.period_seconds;
    if !reopened(run, node) {
        return;
    }
    let epoch = run.status.kured.as_ref().map_or(0, |kured| kured.ask_epoch);
    let heard = run.asked().is_some_and(|asked| asked.epoch >= epoch);
    // An epoch of 0 was never raised: then nothing was done that a question could have come after.
    if (epoch == 0 || (!heard && run.status.intent.is_none())) && !planted::is(Bug::GrantsUnasked) {
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
    if is_without_us(run) {
        grant(run, node, &place);
    }
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
        valid_until: stamp(after(now, if planted::is(Bug::GrantsForHours) { 7200 } else { seconds })),
    });
    run.status.message = format!("granted: kured acts at its next look, at most {} s away", place.period_seconds);
    run.look_again_in((seconds / 3).clamp(1, LOOK_SECONDS));
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
