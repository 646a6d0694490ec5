//! From what was read just now to what kured hears.
//!
//! Go needs everything at once, read in the same request: one active record of the node, action kured, in Acting, with
//! a grant that is valid, for the boot that the node has, not being withdrawn; the node cordoned and marked as that
//! record's; a lock that can be read, names neither the node nor us. All else is a no that says what helps whoever
//! reads kured's log. What a person said (halt, hold, cancel) counts here too, before the leader has seen it.

use jiff::{SignedDuration, Timestamp};

use super::alerts::Alerts;
use super::answer::Answer;
use super::lock::Lock;
use super::{Places, hold, places};
use crate::api::names::{ANNOTATION_ASKED, ANNOTATION_HOLD, CONTROL_CONFIG_MAP, CONTROL_HALT_KEY};
use crate::api::record::{Maintenance, MaintenanceStatus};
use crate::api::{Action, Asked, Document as _, Halt, Hold, Phase, Status, Trigger, is_over};
use crate::config::Settings;
use crate::facts::{Facts, Item, Listed, Node, Observation};
use crate::plan::{owner_of, parse_time, phase_of};
use crate::planted::{self, Bug};

/// A grant must be valid for so long beyond now: the answer is on its way for a moment.
const MARGIN: SignedDuration = SignedDuration::from_secs(2);
/// No grant is valid for longer than this at a time, whatever the configuration says, in seconds.
const LONGEST_SECONDS: i64 = 30;
/// A grant that ends later than its length and so much beyond now was written by a clock ahead of ours: by ours it would
/// be valid for too long.
const SKEW: SignedDuration = SignedDuration::from_secs(5);

/// What an answer is made from. All of it was read after the question came in.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The node that was asked for.
    pub node: &'a str,
    /// `nodes` (at least the one, or none of that name), `daemon_sets`, `config_maps`.
    pub facts: &'a Facts,
    /// All records of the node, ended ones too.
    pub records: &'a [Maintenance],
    /// The settings.
    pub settings: &'a Settings,
    /// What maint may do by itself: `auto`, `approve`, or `observe`; any other word counts as `observe`.
    pub mode: &'a str,
    /// Now.
    pub now: Timestamp,
}

/// What kured hears, as far as the cluster goes. A go still depends on the alerts of a Prometheus behind us, see
/// [`after_alerts`].
#[must_use]
pub fn answer(question: &Question<'_>) -> Answer {
    match judge(question) {
        Ok(()) => Answer::Go,
        Err(_) if planted::is(Bug::GoWithoutGrant) => Answer::Go,
        Err(answer) => answer,
    }
}

/// A go, after the Prometheus behind us was asked in the same request; every other answer stays.
#[must_use]
pub fn after_alerts(answer: Answer, alerts: &Alerts) -> Answer {
    match (answer, alerts) {
        (Answer::Go, Alerts::Failed(why)) => Answer::trouble(why),
        (Answer::Go, Alerts::Known(names)) if !names.is_empty() => {
            Answer::no(format!("alerts of Prometheus: {}", Alerts::names(names)))
        }
        (answer, _) => answer,
    }
}

/// The node, where it was read. None: the API says that there is no such node.
///
/// # Errors
/// What kured hears where it could not be read.
pub fn node_of<'a>(facts: &'a Facts, name: &str) -> Result<Option<&'a Node>, Answer> {
    let items = read(&facts.nodes, "the node")?;
    for item in items {
        match item {
            Item::Good(node) if node.metadata.name == name => return Ok(Some(node)),
            Item::Malformed(bad) if bad.object == format!("Node {name}") => {
                return Err(Answer::trouble(bad.to_string()));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// The records of the node that have not ended.
pub fn active(records: &[Maintenance]) -> impl Iterator<Item = &Maintenance> {
    records.iter().filter(|record| !phase_of(record).is_terminal())
}

/// The records of the node that a question of kured says something to: those that have not ended, and those that ended
/// while a go that was taken back may still be acted on. Only kured's next question ends that wait.
pub fn listening(records: &[Maintenance]) -> impl Iterator<Item = &Maintenance> {
    records.iter().filter(|record| listens(record))
}

/// Whether a question of kured says something to a record, see [`listening`].
#[must_use]
pub fn listens(record: &Maintenance) -> bool {
    let kured = record.status.as_ref().and_then(|status| status.kured.as_ref());
    !phase_of(record).is_terminal() || kured.is_some_and(|kured| kured.closing.is_some())
}

fn judge(question: &Question<'_>) -> Result<(), Answer> {
    let name = question.node;
    let Some(node) = node_of(question.facts, name)? else {
        return Err(Answer::trouble(format!("there is no node {name}: is kured's --node-id the node's name?")));
    };
    halted(question)?;
    held_back(question, node)?;
    let mut active = active(question.records);
    let record = match (active.next(), active.next()) {
        (None, _) => {
            mode(question, None)?;
            return Err(Answer::no(format!("{name} was heard; nothing is planned for it yet")));
        }
        (Some(one), None) => one,
        (Some(one), Some(other)) => {
            let names = [one, other].map(|record| record.metadata.name.as_deref().unwrap_or_default());
            return Err(Answer::no(format!(
                "{name} has two records, {} and {}: one must be cancelled",
                names[0], names[1]
            )));
        }
    };
    mode(question, Some(record))?;
    said(record)?;
    if record.spec.action.parse() != Ok(Action::Kured) {
        return Err(Answer::no(format!("{name} is being maintained by action {}", record.spec.action)));
    }
    let status = record.status.clone().unwrap_or_default();
    if phase_of(record) != Phase::Acting {
        return Err(waits(name, record, &status));
    }
    granted(question, record, &status, node)?;
    free(question, record)
}

fn read<'a, T>(listed: &'a Listed<T>, what: &str) -> Result<&'a [Item<T>], Answer> {
    match listed {
        Observation::Known { value, .. } => Ok(value),
        Observation::Failed { detail, .. } => Err(Answer::trouble(format!("{what} could not be read: {detail}"))),
        Observation::Absent { .. } | Observation::NotAsked => {
            Err(Answer::trouble(format!("{what} could not be read: the API does not know the kind")))
        }
    }
}

fn halted(question: &Question<'_>) -> Result<(), Answer> {
    let maps = read(&question.facts.config_maps, &format!("ConfigMap {CONTROL_CONFIG_MAP}"))?;
    for item in maps {
        let map = match item {
            Item::Good(map) => map,
            Item::Malformed(bad) => return Err(Answer::trouble(bad.to_string())),
        };
        let text = map.data.get(CONTROL_HALT_KEY).filter(|_| map.metadata.name == CONTROL_CONFIG_MAP);
        let Some(text) = text else { continue };
        let halt = Halt::parse(text)
            .map_err(|error| Answer::trouble(format!("ConfigMap {CONTROL_CONFIG_MAP}: halt {error}; maint unhalt")))?;
        if !is_over(halt.until, question.now) {
            return Err(Answer::no(format!("halted by {}: {}", halt.by, halt.reason)));
        }
    }
    Ok(())
}

fn held_back(question: &Question<'_>, node: &Node) -> Result<(), Answer> {
    let name = question.node;
    let Some(text) = node.metadata.annotations.get(ANNOTATION_HOLD) else { return Ok(()) };
    let hold = Hold::parse(text).map_err(|error| {
        Answer::trouble(format!("annotation {ANNOTATION_HOLD} of {name} {error}; maint release {name}"))
    })?;
    if is_over(hold.until, question.now) {
        return Ok(());
    }
    Err(Answer::no(format!("{} holds {name}: {}", hold.by, hold.reason)))
}

/// Modes bind what nobody asked for; a person's run goes on in any.
fn mode(question: &Question<'_>, record: Option<&Maintenance>) -> Result<(), Answer> {
    if record.is_some_and(|record| record.spec.trigger.parse() == Ok(Trigger::Manual)) {
        return Ok(());
    }
    match (question.mode, record) {
        ("auto", _) | ("approve", None) => Ok(()),
        ("approve", Some(record)) if record.spec.approved.is_some() => Ok(()),
        ("approve", Some(record)) => {
            let name = record.metadata.name.as_deref().unwrap_or_default();
            Err(Answer::no(format!("approve mode: {} waits for `maint approve {name}`", question.node)))
        }
        _ => Err(Answer::no(format!("observe mode: {} was heard, and nothing starts by itself", question.node))),
    }
}

/// What somebody said in the record, whether the leader has heard it or not.
fn said(record: &Maintenance) -> Result<(), Answer> {
    let node = &record.spec.node_name;
    if phase_of(record).is_committed() {
        return Ok(());
    }
    if let Some(word) = &record.spec.cancel {
        return Err(Answer::no(format!("{node}: cancelled by {}", word.by)));
    }
    if let Some(newer) = &record.spec.superseded_by {
        return Err(Answer::no(format!("{node}: {newer} takes its place")));
    }
    if record.metadata.deletion_timestamp.is_some() {
        return Err(Answer::no(format!("{node}: its record is being deleted")));
    }
    Ok(())
}

/// Why a run that is not about to act says no.
fn waits(node: &str, record: &Maintenance, status: &MaintenanceStatus) -> Answer {
    let name = record.metadata.name.as_deref().unwrap_or_default();
    let phase = phase_of(record);
    let by = finding(status).or_else(|| Some(status.message.clone()).filter(|message| !message.is_empty()));
    match phase {
        Phase::Pending => {
            let why = by.map(|why| why.strip_prefix("waits: ").map(str::to_owned).unwrap_or(why));
            Answer::no(why.map_or_else(|| format!("{node} waits for its turn"), |why| format!("{node} waits: {why}")))
        }
        Phase::Cordoning => Answer::no(format!("{node} is being cordoned; it is drained before it reboots")),
        Phase::Draining => {
            let left = status.drain.as_ref().map_or(0, |drain| drain.left);
            let why = finding(status).map_or_else(String::new, |why| format!("; waits: {why}"));
            Answer::no(format!("{node} is being drained, {left} pods left{why}"))
        }
        Phase::Returning => Answer::no(format!("{node} is committed: it reboots or comes back")),
        Phase::Verifying | Phase::Uncordoning | Phase::Settling => {
            Answer::no(format!("{node} is back and is being proven ({phase})"))
        }
        Phase::Held => Answer::no(format!("{node} is held, a person is needed: maint show {name}")),
        _ => {
            let why = by.map_or_else(String::new, |why| format!(": {why}"));
            Answer::no(format!("{node} is being put back{why}"))
        }
    }
}

/// The worst finding that stops, as `gate Reason (message)`; the list has the worst first.
fn finding(status: &MaintenanceStatus) -> Option<String> {
    let stops = |status: &str| status == Status::Block.as_str() || status == Status::Unknown.as_str();
    let found = status.findings.iter().find(|finding| stops(&finding.status))?;
    Some(format!("{} {} ({})", found.gate, found.reason, found.message))
}

fn granted(
    question: &Question<'_>,
    record: &Maintenance,
    status: &MaintenanceStatus,
    node: &Node,
) -> Result<(), Answer> {
    let (name, now) = (question.node, question.now);
    let kured = status.kured.clone().unwrap_or_default();
    if kured.closing.is_some() {
        return Err(Answer::no(format!("{name}: its go was withdrawn")));
    }
    let Some(intent) = &status.intent else {
        let asked = record.metadata.annotations.as_ref().and_then(|all| all.get(ANNOTATION_ASKED));
        let heard = asked.and_then(|text| Asked::parse(text).ok()).map_or(0, |asked| asked.epoch);
        return Err(Answer::no(match finding(status) {
            Some(why) => format!("{name} is drained, waits: {why}"),
            None if heard < kured.ask_epoch => {
                format!("{name} is drained, waits for the first question after the cordon")
            }
            None => format!("{name} is drained, waits for its go"),
        }));
    };
    let Some(until) = parse_time(Some(&intent.valid_until)) else {
        return Err(Answer::trouble(format!("{name}: status.intent.validUntil is `{}`, no time", intent.valid_until)));
    };
    if until.duration_since(now) <= MARGIN {
        let why = finding(status).map_or_else(String::new, |why| format!(": {why}"));
        return Err(Answer::no(format!("{name}: its go ended at {until}{why}")));
    }
    let length = question.settings.run.go_seconds.clamp(1, LONGEST_SECONDS);
    let longest = SignedDuration::from_secs(length).saturating_add(SKEW);
    if until.duration_since(now) > longest {
        return Err(Answer::trouble(format!(
            "{name}: its go lasts until {until}, and here it is {now}: clocks differ"
        )));
    }
    if intent.boot_id.is_empty() || intent.boot_id != node.boot_id {
        return Err(Answer::no(format!("{name} booted since its go was given")));
    }
    let uid = record.metadata.uid.as_deref().unwrap_or_default();
    if status.node.as_ref().is_none_or(|known| known.uid != node.metadata.uid) {
        return Err(Answer::no(format!("{name} is another node than when its run began")));
    }
    let marked = !uid.is_empty() && owner_of(node).is_some_and(|owner| owner.maintenance == uid);
    if !(node.unschedulable && marked) {
        return Err(Answer::no(format!("{name} is not cordoned by its run any more")));
    }
    Ok(())
}

/// The lock names neither the node nor us, wherever a lock of kured is.
fn free(question: &Question<'_>, record: &Maintenance) -> Result<(), Answer> {
    let name = question.node;
    let found = match places(question.facts) {
        Places::Found(found) => found,
        Places::NotInstalled => return Err(Answer::trouble("no DaemonSet runs kured, so there is no lock to look at")),
        Places::Unreadable(why) => return Err(Answer::trouble(why)),
    };
    for place in found {
        let lock: Option<Lock> =
            hold::read(&place).map_err(|error| Answer::trouble(format!("{} lock {error}", place.object())))?;
        for entry in lock.iter().flat_map(|lock| &lock.entries) {
            // Expired or not: kured's own clock decides that, and the node may be half-way through.
            if entry.node_id == name {
                return Err(Answer::no(format!("{name} holds kured's lock: it is committed")));
            }
            if hold::is_ours(entry) {
                let uid = record.metadata.uid.as_deref().unwrap_or_default();
                let of = if hold::is_of(entry, name, uid) { "" } else { " for another run" };
                return Err(Answer::no(format!("maint holds kured's lock{of} ({})", entry.node_id)));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
