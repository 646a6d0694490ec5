//! Which evictions next: pure, from one look at the node and what the API has said so far.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::answer::{Eviction, Lane, Origin};
use super::answers::Answers;
use super::awaits::Awaits;
use super::budgets::{Leave, Refusal, leave};
use super::classify::Class;
use super::operator::database_cluster;
use super::view::{Entry, SetOf, View};
use super::wait::{HeldBy, Wait, Waiting};
use super::waves::Wave;
use crate::config::Then;
use crate::facts::Pod;
use crate::planted::{self, Bug};

/// Seconds after the end of its time from which a pod is called stuck.
const STUCK_SECONDS: i64 = 60;

/// Evictions that one step asks for at most. Whoever sends them keeps far fewer on their way, and those of one lane one
/// after the other.
pub const MOST_IN_A_STEP: usize = 256;

/// What is done next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Next {
    /// Evictions to send now, those of a lane in this order, one after the other.
    pub send: Vec<Eviction>,
    /// Everybody who has to go and is not gone, in the order in which they go, those of `send` too.
    pub waiting: Vec<Waiting>,
    /// How many of them are ending.
    pub ending: usize,
    /// What is worth another look.
    pub awaits: Awaits,
    /// When to look again although nothing changed in the cluster; none: only a change helps.
    pub wake_at: Option<Timestamp>,
    /// No eviction will ever be accepted: a right is missing, or the API server does not understand us.
    pub fatal: Option<String>,
}

/// What one pod may do before its wave and its lane are asked.
enum Ready<'v, 'a> {
    Waits(Wait),
    Goes(&'v Entry<'a>, Leave),
}

/// Which evictions are sent now, who waits for what, and when to look again.
#[must_use]
pub fn next(view: &View<'_>, answers: &Answers, now: Timestamp) -> Next {
    let going: Vec<&Entry<'_>> = view.going().collect();
    let mut found = Next { fatal: going.iter().find_map(|entry| answers.fatal(uid(entry))), ..Next::default() };
    found.ending = going.iter().filter(|entry| entry.pod.is_ending()).count();
    let states: Vec<Ready<'_, '_>> = going.iter().map(|entry| ready(entry, view, answers, now)).collect();
    let turn = turn(&going, &states);
    let mut lanes = Lanes::new(view, answers, now);
    for (entry, state) in going.iter().zip(states) {
        let why = match state {
            Ready::Waits(why) => why,
            Ready::Goes(entry, leave) => {
                let behind = turn.filter(|turn| entry.wave().is_some_and(|wave| wave > *turn));
                match behind {
                    Some(first) => Wait::Wave { first },
                    None if found.fatal.is_some() => Wait::Turn,
                    None => match lanes.take(entry, &leave) {
                        Ok(eviction) => {
                            found.send.push(eviction);
                            Wait::Asked
                        }
                        Err(why) => why,
                    },
                }
            }
        };
        found.wake_at = earliest(found.wake_at, wake(&why));
        let metadata = &entry.pod.metadata;
        found.waiting.push(Waiting {
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            why,
        });
    }
    let reasons: Vec<_> = going.iter().copied().zip(found.waiting.iter().map(|one| &one.why)).collect();
    found.awaits = Awaits::of(&reasons);
    found
}

fn uid<'e>(entry: &'e Entry<'_>) -> &'e str {
    &entry.pod.metadata.uid
}

fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, None) | (None, one) => one,
    }
}

fn after(at: Timestamp, seconds: i64) -> Timestamp {
    at.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}

fn wake(why: &Wait) -> Option<Timestamp> {
    match why {
        // From then on it is called stuck.
        Wait::Ending { due, .. } => Some(after(*due, STUCK_SECONDS)),
        other => other.until(),
    }
}

/// What holds one pod, whatever the others do.
fn ready<'v, 'a>(entry: &'v Entry<'a>, view: &View<'a>, answers: &Answers, now: Timestamp) -> Ready<'v, 'a> {
    let pod = entry.pod;
    if let Some(due) = pod.metadata.deletion_timestamp {
        return Ready::Waits(ending(pod, due, view.kubelet_silent, now));
    }
    if let Class::Never(why) = &entry.class {
        return Ready::Waits(Wait::Never(why.clone()));
    }
    if entry.treatment.then == Then::WaitForCompletion {
        return Ready::Waits(Wait::Completion);
    }
    if answers.is_on_its_way(uid(entry)) {
        return Ready::Waits(Wait::OnItsWay);
    }
    if let Some(why) = answers.pod_waits(uid(entry), view.pods_at, now) {
        return Ready::Waits(why);
    }
    if let Some((times, until)) = answers.is_back(pod, now) {
        let tolerates_cordon = pod.place.tolerates_cordon;
        return Ready::Waits(Wait::Back { times, tolerates_cordon, until });
    }
    let leave = leave(entry);
    if let Leave::No(why) = leave {
        if let Refusal::NoneAllowed { budget, .. } = &why
            && let Some((replacement, message)) = view.unschedulable_sibling(pod)
        {
            return Ready::Waits(unscheduled(HeldBy::Budget(budget.clone()), replacement, message));
        }
        return Ready::Waits(Wait::Budget(why));
    }
    let version = entry.budgets.first().map_or("", |budget| budget.metadata.resource_version.as_str());
    if let Some(why) = answers.lane_waits(&entry.lane, version, now) {
        return Ready::Waits(why);
    }
    Ready::Goes(entry, leave)
}

fn unscheduled(held_by: HeldBy, replacement: &str, message: &str) -> Wait {
    Wait::Unscheduled { held_by, replacement: replacement.to_owned(), message: message.to_owned() }
}

fn ending(pod: &Pod, due: Timestamp, kubelet_silent: bool, now: Timestamp) -> Wait {
    if now < after(due, STUCK_SECONDS) {
        let finalizers = if now < due { Vec::new() } else { pod.finalizers.clone() };
        return Wait::Ending { due, finalizers };
    }
    Wait::Stuck { due, finalizers: pod.finalizers.clone(), kubelet_silent }
}

/// The wave whose turn it is: the first of which somebody is not merely held by a budget. Our own pod's turn comes when
/// nobody else is left at all.
fn turn(going: &[&Entry<'_>], states: &[Ready<'_, '_>]) -> Option<Wave> {
    let mut first: Option<Wave> = None;
    let mut last_but_own: Option<Wave> = None;
    for (entry, state) in going.iter().zip(states) {
        // Those that never go hold up what comes after everything: the wave of ordinary pods is theirs.
        let wave = entry.wave().unwrap_or_else(|| Wave::of(entry.pod, &entry.treatment, ""));
        let held = matches!(state, Ready::Waits(why) if why.is_budget());
        if !held {
            first = Some(first.map_or(wave, |first| first.min(wave)));
        }
        if !wave.own {
            last_but_own = Some(last_but_own.map_or(wave, |last| last.max(wave)));
        }
    }
    match (first, last_but_own) {
        (Some(first), Some(last)) if first.own => Some(last),
        (None, last) => last,
        (first, _) => first,
    }
}

/// What the lanes have left in this step.
struct Lanes<'v, 'a> {
    view: &'v View<'a>,
    answers: &'v Answers,
    throttled: Option<Timestamp>,
    /// Lanes with an eviction in this step.
    sent: BTreeSet<Lane>,
    count: usize,
    /// What each budget still allows.
    allowed: BTreeMap<Lane, i64>,
    /// StatefulSet lanes of which a pod is ending or was accepted.
    moving_sets: BTreeSet<Lane>,
    /// The database cluster of which a pod is ending, or goes in this step.
    moving_database: Option<String>,
}

impl<'v, 'a> Lanes<'v, 'a> {
    fn new(view: &'v View<'a>, answers: &'v Answers, now: Timestamp) -> Self {
        let moves = |entry: &&Entry<'_>| {
            let accepted = matches!(answers.pod_waits(uid(entry), view.pods_at, now), Some(Wait::Accepted));
            let uid = uid(entry);
            entry.pod.is_ending() || accepted || answers.is_on_its_way(uid) || answers.may_go(uid, view.pods_at)
        };
        let moving: Vec<&Entry<'_>> = view.going().filter(moves).collect();
        Self {
            view,
            answers,
            throttled: answers.throttled_until(now),
            sent: BTreeSet::new(),
            count: 0,
            allowed: BTreeMap::new(),
            moving_sets: moving.iter().map(|entry| entry.lane.clone()).collect(),
            moving_database: moving.iter().find_map(|entry| database_cluster(entry.pod)),
        }
    }

    /// An eviction of this pod, or why it waits.
    fn take(&mut self, entry: &Entry<'_>, leave: &Leave) -> Result<Eviction, Wait> {
        if let Some(until) = self.throttled {
            return Err(Wait::Throttled { until });
        }
        self.one_of_its_set(entry)?;
        let database = database_cluster(entry.pod);
        if let (Some(own), Some(first)) = (&database, &self.moving_database)
            && own != first
        {
            return Err(Wait::Database { first: first.clone() });
        }
        if self.count >= MOST_IN_A_STEP {
            return Err(Wait::Turn);
        }
        if *leave == Leave::Takes {
            self.spend(entry)?;
        }
        self.sent.insert(entry.lane.clone());
        self.count += 1;
        if database.is_some() {
            self.moving_database = database;
        }
        let metadata = &entry.pod.metadata;
        Ok(Eviction {
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            origin: self.origin(entry),
            grace_seconds: if planted::is(Bug::EvictsWithoutGrace) { Some(0) } else { entry.treatment.grace_seconds },
            lane: entry.lane.clone(),
            basis: self.basis(entry),
        })
    }

    /// What tells the pods that take this one's place on the node.
    fn origin(&self, entry: &Entry<'_>) -> Option<Origin> {
        let owner = entry.pod.controller.as_ref().filter(|owner| !owner.uid.is_empty())?;
        let of_it = |other: &&Entry<'_>| other.pod.controller.as_ref().is_some_and(|one| one.uid == owner.uid);
        let newest = self.view.entries.iter().filter(of_it).filter_map(|other| other.pod.metadata.created).max()?;
        Some(Origin { controller: owner.uid.clone(), newest })
    }

    /// What is to change before the lane's next eviction, where that has to wait: its budget, or its StatefulSet.
    fn basis(&self, entry: &Entry<'_>) -> String {
        let budget = entry.budgets.first().map(|budget| &budget.metadata);
        let set = || match (&entry.lane, self.view.workloads.stateful_set(entry.pod)) {
            (Lane::StatefulSet(_), SetOf::There(set)) => Some(&set.metadata),
            _ => None,
        };
        budget.or_else(set).map_or_else(String::new, |metadata| metadata.resource_version.clone())
    }

    /// Takes one of what the budget allows. What was accepted since it was read, or is on its way, may not be in that yet.
    fn spend(&mut self, entry: &Entry<'_>) -> Result<(), Wait> {
        let Some(budget) = entry.budgets.first() else { return Ok(()) };
        let since = self.view.budgets_at.unwrap_or(Timestamp::MIN);
        let taken = || self.answers.taken_since(&entry.lane, since);
        let left = self.allowed.entry(entry.lane.clone()).or_insert_with(|| budget.disruptions_allowed - taken());
        if *left < 1 {
            return Err(Wait::Budget(Refusal::Spent(budget.metadata.full_name())));
        }
        *left -= 1;
        Ok(())
    }

    /// Without a budget one pod of a StatefulSet goes at a time, and the next one once all that are not here are Ready.
    fn one_of_its_set(&self, entry: &Entry<'_>) -> Result<(), Wait> {
        if entry.treatment.force || !matches!(entry.lane, Lane::StatefulSet(_)) {
            return Ok(());
        }
        let name = entry.pod.controller.as_ref().map(|owner| owner.name.clone()).unwrap_or_default();
        let wait = |why: String| Err(Wait::StatefulSet { name: name.clone(), why });
        if self.moving_sets.contains(&entry.lane) || self.sent.contains(&entry.lane) {
            return wait("another pod of it goes first".to_owned());
        }
        match self.view.workloads.stateful_set(entry.pod) {
            SetOf::Unknown => wait("it could not be read".to_owned()),
            // Nothing of it will become Ready.
            SetOf::Deleted => Ok(()),
            // The status is that of before our last eviction: its pod counts there as Ready still.
            SetOf::There(set) if self.answers.shows_no_change(&entry.lane, &set.metadata.resource_version) => {
                wait("its status is older than the last eviction".to_owned())
            }
            SetOf::There(set) => {
                let here = self.view.going().filter(|other| other.lane == entry.lane);
                let (count, ready) =
                    here.fold((0, 0), |(count, ready), other| (count + 1, ready + i64::from(other.pod.is_ready())));
                let whole = set.ready_replicas.min(set.staying_replicas);
                let (wanted, found) = (set.replicas - count, whole - ready);
                if let Some(node) = self.view.sets_after.as_ref().filter(|_| wanted > 0) {
                    return wait(format!("{node} is drained too, and its pods go first"));
                }
                if found >= wanted {
                    return Ok(());
                }
                match self.view.unschedulable_sibling(entry.pod) {
                    Some((replacement, message)) => {
                        Err(unscheduled(HeldBy::StatefulSet(name.clone()), replacement, message))
                    }
                    None => wait(format!("{found} of {wanted} pods on other nodes are Ready")),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
