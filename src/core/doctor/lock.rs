//! Family `kured-lock`: where the locks are, who is in them, and what is not understood.

use std::collections::BTreeSet;

use super::{Answer, Family, FamilyId, Input, View, records};
use crate::api::{Evidence, Reason, SourceId, Status};
use crate::facts::{DaemonSet, Maintenance};
use crate::kured::lock::{Lock, MANUAL};
use crate::kured::{Flag, Holder, Place, Places, installations, kured_container, look, places_of};

/// The row of this family.
pub(super) const FAMILY: Family = Family {
    id: FamilyId::Lock,
    doc: "where kured's lock is and who is in it",
    reads: &[SourceId::Nodes, SourceId::DaemonSets, SourceId::KuredPods, SourceId::Maintenances],
    check,
};

fn check(input: &Input<'_>) -> Vec<Answer> {
    let mut answers = Vec::new();
    let View { daemon_sets, nodes, .. } = View::of(input, &mut answers);
    let (Some(daemon_sets), Some(nodes)) = (daemon_sets, nodes) else { return answers };
    let places = match places_of(&daemon_sets) {
        Places::NotInstalled => {
            if answers.is_empty() {
                answers.push(Answer::not_applicable("kured is not installed, and left no lock behind"));
            }
            return answers;
        }
        Places::Unreadable(why) => {
            answers.push(nowhere(&daemon_sets, &why));
            return answers;
        }
        Places::Found(places) => places,
    };
    shared(&daemon_sets, &places, &mut answers);
    let records = records(input, &mut answers);
    let names: BTreeSet<&str> = nodes.iter().map(|node| node.metadata.name.as_str()).collect();
    for place in &places {
        // Where there are several, a command must say which.
        let which = match places.as_slice() {
            [_] => String::new(),
            _ => format!(" --daemon-set {}/{}", place.namespace, place.name),
        };
        one(input, (place, &which), &names, &records, &mut answers);
    }
    answers
}

/// Where a lock has no place that is known: a flag that cannot be read, or kureds that disagree.
fn nowhere(daemon_sets: &[&DaemonSet], why: &str) -> Answer {
    let hidden = installations(daemon_sets).iter().any(|one| {
        let texts = [Flag::DsNamespace, Flag::DsName, Flag::LockAnnotation];
        texts.into_iter().any(|flag| one.template.text(flag).is_err()) || one.template.int(Flag::Concurrency).is_err()
    });
    let status = if hidden { Status::Unknown } else { Status::Block };
    let message = format!("where kured's lock is, and for how many nodes, is not known: {why}");
    Answer::new(status, Some(Reason::KuredSettingUnreadable), message)
        .with(Evidence::new("kured's DaemonSets", "their lock", "not known", "one place, one --concurrency"))
        .help(format!(
            "{}, {} and {} must agree for all kureds that share a lock, and stand in their pods",
            Flag::DsNamespace.told(),
            Flag::DsName.told(),
            Flag::Concurrency.told()
        ))
}

/// Several kureds: on one lock they take turns, on several they do not know of each other.
fn shared(daemon_sets: &[&DaemonSet], places: &[Place], answers: &mut Vec<Answer>) {
    let kureds = installations(daemon_sets).len();
    if kureds < 2 {
        return;
    }
    let objects: Vec<String> = places.iter().map(Place::object).collect();
    if let [only] = objects.as_slice() {
        answers.push(Answer::pass(format!("{kureds} kureds share the lock on {only}")));
        return;
    }
    let message = format!(
        "{kureds} kureds have {} locks ({}): they may reboot a node each at the same time where maint does not ask",
        objects.len(),
        objects.join(", ")
    );
    answers.push(
        Answer::new(Status::Warn, Some(Reason::KuredSettingRisky), message)
            .with(Evidence::new("kured's DaemonSets", "locks", objects.join(", "), "one"))
            .help(format!("set the same {} and {} for all", Flag::DsNamespace.told(), Flag::DsName.told())),
    );
}

fn one(
    input: &Input<'_>,
    (place, which): (&Place, &str),
    nodes: &BTreeSet<&str>,
    records: &[&Maintenance],
    answers: &mut Vec<Answer>,
) {
    let field = format!("metadata.annotations[{}]", place.key);
    let text = place.text.clone().unwrap_or_default();
    let free =
        format!("maint lock release --garbage --yes{which}   after `kubectl get nodes` shows that none is rebooting");
    if let Some(Err(error)) = place.text.as_deref().map(Lock::parse) {
        answers.push(
            Answer::new(
                Status::Block,
                Some(Reason::KuredLockUnreadable),
                format!("the lock on {} {error}: no kured takes it, and none reboots", place.object()),
            )
            .with(Evidence::new(
                place.object(),
                &field,
                text.chars().take(80).collect::<String>(),
                "a lock that kured wrote",
            ))
            .help(free),
        );
        return;
    }
    if !place.format_fits() {
        answers.push(
            Answer::new(
                Status::Block,
                Some(Reason::KuredLockFormat),
                format!("the lock on {} has not the format of --concurrency {}", place.object(), place.concurrency),
            )
            .with(Evidence::new(
                place.object(),
                &field,
                text.chars().take(80).collect::<String>(),
                if place.concurrency > 1 { "a list" } else { "one lock" },
            ))
            .help(free),
        );
        return;
    }
    let seen = look(place, nodes, records, input.now);
    if seen.holders.is_empty() {
        answers.push(Answer::pass(format!(
            "the lock on {} is free, for {} at a time",
            place.object(),
            place.concurrency
        )));
    }
    answers.extend(seen.holders.iter().map(|holder| of_holder(place, which, &field, holder)));
    left_behind(input, place, answers);
}

fn of_holder(place: &Place, which: &str, field: &str, holder: &Holder) -> Answer {
    let object = place.object();
    let free = format!("maint lock release --holder {} --yes{which}", holder.name);
    let since = holder.created.map_or_else(String::new, |created| format!(", since {created}"));
    let evidence = Evidence::new(&object, field, &holder.name, "free");
    let name = &holder.name;
    let (status, reason, message, help) = if let Some(record) = &holder.record {
        let message = format!("the run {record} of maint holds the lock on {object}{since}");
        (Status::Pass, None, message, None)
    } else if holder.ours {
        let message = format!("a run of maint that is gone holds the lock on {object} ({name}){since}");
        (Status::Block, Some(Reason::KuredLockHeldByMaint), message, Some(free))
    } else if name == MANUAL {
        let message = format!("a person holds the lock on {object} by hand{since}: no kured reboots anything");
        (Status::Block, Some(Reason::KuredLockHeld), message, Some(free))
    } else if !holder.node_exists {
        let message = format!("the lock on {object} names {name}, and there is no such node: a ghost{since}");
        (Status::Warn, Some(Reason::KuredLockHeld), message, Some(format!("maint lock release --holder {name}{which}")))
    } else if holder.expired {
        let message = format!(
            "the lock of {name} on {object} has expired{since}: kured there never gives it back, and others take it"
        );
        (Status::Warn, Some(Reason::KuredLockHeld), message, Some(free))
    } else {
        let message =
            format!("node {name} holds the lock on {object}{since}: its kured drains, reboots or has just come back");
        (Status::Warn, Some(Reason::KuredLockHeld), message, Some("maint lock show".to_owned()))
    };
    let answer = Answer::new(status, reason, message).with(evidence);
    match help {
        Some(help) => answer.help(help),
        None => answer,
    }
}

fn left_behind(input: &Input<'_>, place: &Place, answers: &mut Vec<Answer>) {
    let of = |one: &&DaemonSet| one.metadata.namespace == place.namespace && one.metadata.name == place.name;
    let carrier = input.facts.daemon_sets.good().find(of);
    if carrier.is_some_and(|carrier| kured_container(carrier).is_none()) && place.text.is_some() {
        answers.push(
            Answer::new(
                Status::Warn,
                Some(Reason::KuredSettingRisky),
                format!("{} carries a lock and runs no kured", place.object()),
            )
            .with(Evidence::new(place.object(), "containers", "none runs kured", "kured, or no lock"))
            .help("maint lock release --holder HOLDER --yes"),
        );
    }
}
