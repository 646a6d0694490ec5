//! kured's lock as a run sees it: whom it names, and our own entries in it.
//!
//! Where several DaemonSets run kured (pools of nodes), all their locks are meant: any of them may let a node go down.

use super::act::{LockChange, SetLock};
use super::run::{LOOK_SECONDS, Run, SOON_SECONDS};
use super::time::stamp;
use super::{Act, phase_of};
use crate::api::{MessageKind, Phase};
use crate::facts::{DaemonSet, Node, Observation};
use crate::kured::{Place, Places, hold, places};
use crate::planted::{self, Bug};

/// Command that shows who holds kured's lock.
pub(super) const LOOK_AT_LOCK: &str = "look: maint lock show";
/// Stands behind the message of a record that is over and still has something in the cluster.
const STILL: &str = "; still: ";

/// Whether kured's lock names the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Named {
    /// kured is not installed: there is no lock.
    NoLock,
    /// It does not.
    No,
    /// It does, expired or not; `created` of the entry, if it has one.
    Yes(String),
    /// It could not be read or understood.
    Unknown(String),
}

/// Our own entries in kured's lock.
pub(super) struct Ours {
    /// No kured can take the lock, thanks to us.
    pub(super) held: bool,
    /// What would make it so, as far as it can be done now.
    pub(super) take: Vec<Act>,
    /// Why it cannot be done now.
    pub(super) why_not: Option<String>,
}

impl Run<'_> {
    /// kured's locks, as fresh as a decision needs.
    pub(super) fn locks(&self) -> Places {
        let daemon_sets = &self.input.facts.daemon_sets;
        let known = matches!(daemon_sets, Observation::Known { .. });
        if known && self.current(daemon_sets, <DaemonSet as crate::facts::Source>::SPEC.max_age_seconds).is_none() {
            return Places::Unreadable("the DaemonSets were read too long ago".to_owned());
        }
        places(self.input.facts)
    }

    /// Whether kured's lock names the target.
    pub(super) fn lock_names_target(&self) -> Named {
        let found = match self.locks() {
            Places::NotInstalled => return Named::NoLock,
            Places::Unreadable(why) => return Named::Unknown(why),
            Places::Found(found) => found,
        };
        let mut unknown = None;
        for place in &found {
            match hold::read(place) {
                Ok(lock) => {
                    let mut entries = lock.iter().flat_map(|lock| &lock.entries);
                    if let Some(entry) = entries.find(|entry| entry.node_id == self.node_name()) {
                        return Named::Yes(entry.created.map(|at| at.to_string()).unwrap_or_default());
                    }
                }
                Err(error) => unknown = Some(format!("kured's lock on {} {error}", place.object())),
            }
        }
        unknown.map_or(Named::No, Named::Unknown)
    }

    /// Our entries in kured's lock.
    pub(super) fn our_hold(&self) -> Ours {
        let mut ours = Ours { held: true, take: Vec::new(), why_not: None };
        match self.locks() {
            // Nobody can take what is not there.
            Places::NotInstalled => {}
            Places::Unreadable(why) => {
                ours.held = false;
                ours.why_not = Some(why);
            }
            Places::Found(found) => {
                for place in &found {
                    match hold::take(place, self.node_name(), self.uid(), self.input.now) {
                        Ok(None) => {}
                        Ok(Some(text)) => {
                            ours.held = false;
                            ours.take.push(change(place, Some(text), LockChange::Take));
                        }
                        Err(why) => {
                            ours.held = false;
                            ours.why_not = Some(format!("{why} on {}", place.object()));
                        }
                    }
                }
            }
        }
        ours
    }

    /// With another action than kured: whether no kured can act meanwhile. What can be done about it is asked for.
    ///
    /// # Errors
    /// Why it is not so yet.
    pub(super) fn hold_lock(&mut self) -> Result<(), String> {
        if self.is_kureds() {
            return Ok(());
        }
        let ours = self.our_hold();
        self.note_hold(&ours);
        if ours.held {
            return Ok(());
        }
        let why = ours.why_not.map_or_else(
            || "kured's lock is being taken".to_owned(),
            |why| format!("kured's lock cannot be taken: {why} ({LOOK_AT_LOCK})"),
        );
        self.acts.extend(ours.take);
        Err(why)
    }

    /// Notes once that we hold the lock, and warns once if it went.
    fn note_hold(&mut self, ours: &Ours) {
        let installed = !matches!(self.locks(), Places::NotInstalled);
        let before = self.status.kured.as_ref().is_some_and(|kured| kured.held_since.is_some());
        if ours.held && installed && !before {
            let now = stamp(self.input.now);
            self.kured_mut().held_since = Some(now);
        } else if !ours.take.is_empty() && !before {
            // Written before it is taken, so that whoever comes after a crash looks for it.
            self.kured_mut();
        }
        if !ours.held && before {
            self.warn(match &ours.why_not {
                None => "our hold of kured's lock went while the run was in flight; it is taken again".to_owned(),
                Some(why) => {
                    format!(
                        "our hold of kured's lock went while the run was in flight, and cannot be taken again: {why}"
                    )
                }
            });
        }
    }

    /// After commit: our hold is taken again if it went, and kured's entry for the node says that it was cordoned
    /// before, so that kured leaves the uncordon to us. Neither holds the run up, and a halt holds up neither: both
    /// only keep things as they are.
    pub(super) fn keep_lock(&mut self, node: &Node) {
        let phase = phase_of(self.input.record);
        // In a new phase it is the next look's business, which comes at once.
        if !phase.is_committed() || self.status.phase != phase.as_str() {
            return;
        }
        if self.status.kured.as_ref().is_some_and(|kured| kured.seen_lock.is_some()) {
            self.keep_cordon(node, phase);
        } else if !self.is_kureds() {
            let ours = self.our_hold();
            self.note_hold(&ours);
            if !ours.take.is_empty() {
                self.acts.extend(ours.take);
                self.look_again_in(SOON_SECONDS);
            }
        }
    }

    fn keep_cordon(&mut self, node: &Node, phase: Phase) {
        let cordoned = self.is_our_cordon(node) || (self.was_unschedulable() && node.unschedulable);
        // A cordon that kured itself set is kured's to take off.
        if !cordoned || phase == Phase::Settling {
            return;
        }
        let Places::Found(found) = self.locks() else { return };
        for place in &found {
            if let Ok(Some(text)) = hold::keep_cordon(place, self.node_name()) {
                self.act(change(place, Some(text), LockChange::KeepCordon));
                self.look_again_in(SOON_SECONDS);
            }
        }
    }

    /// Asks for our entries to be taken out of kured's lock.
    ///
    /// # Errors
    /// Why it cannot be known whether some are in it.
    pub(super) fn release_lock(&mut self) -> Result<Released, String> {
        let found = match self.locks() {
            Places::NotInstalled => return Ok(Released::Nothing),
            Places::Unreadable(why) => return Err(why),
            Places::Found(found) => found,
        };
        let mut released = Released::Nothing;
        for place in &found {
            match hold::release(place, self.node_name(), self.uid()) {
                Ok((false, _)) => {}
                Ok((true, after)) => {
                    self.act(change(place, after, LockChange::Release));
                    released = Released::Asked;
                }
                Err(error) => return Err(format!("kured's lock on {} {error} ({LOOK_AT_LOCK})", place.object())),
            }
        }
        Ok(released)
    }

    /// The last act of a run: true once nothing of ours is in kured's lock.
    pub(super) fn gave_lock_back(&mut self) -> bool {
        // A record that never came near a lock has nothing in it.
        if self.status.kured.is_none() || planted::is(Bug::KeepsLock) {
            return true;
        }
        let acts = self.acts.len();
        let still = match self.release_lock() {
            Ok(Released::Nothing) => {
                self.kured_mut().closing = None;
                self.still("");
                return true;
            }
            Ok(Released::Asked) if self.halt().is_free() => {
                self.look_again_in(0);
                return false;
            }
            Ok(Released::Asked) => {
                self.acts.truncate(acts);
                "kured's lock stays ours until unhalt".to_owned()
            }
            Err(why) => format!("whether kured's lock is ours is not known: {why}"),
        };
        self.still(&still);
        self.look_again_in(LOOK_SECONDS);
        false
    }

    /// Says behind the message what is left; nothing once nothing is.
    pub(super) fn still(&mut self, what: &str) {
        let why = self.status.message.split(STILL).next().unwrap_or_default().to_owned();
        self.status.message = if what.is_empty() { why } else { format!("{why}{STILL}{what}") };
    }
}

/// Whether nobody can act any more on a grant that was withdrawn; until then the lock stays ours.
pub(super) fn may_end(run: &mut Run<'_>, node: Option<&Node>) -> bool {
    let Some(closing) = run.closing().cloned() else { return true };
    if planted::is(Bug::NeverCloses) || matches!(run.locks(), Places::NotInstalled) || run.is_spent(&closing, node) {
        return true;
    }
    let ours = run.our_hold();
    if ours.held {
        run.note_taken();
    }
    run.acts.extend(ours.take);
    let until = run.until_spent();
    let what = match ours.why_not {
        None => format!("kured's lock stays ours {until}"),
        Some(why) => {
            format!("kured's lock cannot be taken to close the grant: {why} ({LOOK_AT_LOCK}); it waits {until}")
        }
    };
    run.still(&what);
    run.tell_if_slow(MessageKind::BackedOut, "warning", &format!("no other node can start, {what}"));
    run.look_again_in(LOOK_SECONDS);
    false
}

/// What came of giving the lock back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Released {
    /// None of its entries is ours.
    Nothing,
    /// The change is asked for.
    Asked,
}

fn change(place: &Place, after: Option<String>, why: LockChange) -> Act {
    Act::SetLock(SetLock {
        namespace: place.namespace.clone(),
        name: place.name.clone(),
        key: place.key.clone(),
        before: place.text.clone(),
        after,
        why,
    })
}
