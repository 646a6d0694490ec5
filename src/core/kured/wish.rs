//! What comes of kured's question: a wish, where it is believed, and a line in the record that it was heard.
//!
//! A question is not authenticated: anybody in the cluster can send one. So it is a wish only where kured's pod runs on
//! the node and is Ready, and one thing more that the sender does not control says so.

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};

use super::answer::{Answer, GO};
use super::{Places, places, question};
use crate::api::names::{ANNOTATION_ASKED, ANNOTATION_KURED_IN_PROGRESS};
use crate::api::record::{Maintenance, MaintenanceSpec};
use crate::api::{Action, Asked, Document as _, QuestionSource, Trigger};
use crate::config::Scope;
use crate::facts::{Facts, Item, Node, Observation, Pod};
use crate::plan::parse_time;

/// Who asks, in records.
pub const REQUESTED_BY: &str = "kured";
/// Least time between two writes of the same news to a record's annotation.
const TELL_EVERY: SignedDuration = SignedDuration::from_mins(10);
/// After each try of a boot that ended, so much longer passes until the next wish is written down, up to the second
/// figure: a run that fails at once must not make a record at every tick of kured.
const PAUSE: (SignedDuration, i32) = (SignedDuration::from_mins(10), 12);
/// Characters of a node's name that go into a record's: with boot, number and the `maint-` of an action pod it stays
/// within the 253 of a DNS subdomain.
const NODE_IN_NAME: usize = 220;
/// Characters of a boot ID that go into a record's name.
const BOOT_IN_NAME: usize = 8;

/// kured's pods among those of the node: the ones that may take a lock of kured.
///
/// # Errors
/// In words, where it could not be read.
pub fn kured_pods(facts: &Facts) -> Result<Vec<&Pod>, String> {
    let places = match places(facts) {
        Places::Found(places) => places,
        Places::NotInstalled => return Ok(Vec::new()),
        Places::Unreadable(why) => return Err(why),
    };
    let pods = match &facts.target_pods {
        Observation::Known { value, .. } => value,
        Observation::Failed { detail, .. } => return Err(format!("the node's pods could not be read: {detail}")),
        Observation::Absent { .. } | Observation::NotAsked => return Err("the node's pods were not read".to_owned()),
    };
    let good = pods.iter().filter_map(|item| match item {
        Item::Good(pod) => Some(pod),
        // If it is kured's, its question is not believed this time.
        Item::Malformed(_) => None,
    });
    Ok(good.filter(|pod| places.iter().any(|place| place.is_taken_by(pod))).collect())
}

/// Where a question came from, by the address of the connection; what a header says of it is never looked at.
#[must_use]
pub fn source_of(address: Option<&str>, node: &Node, pods: &[&Pod]) -> QuestionSource {
    let known = |address: &str| {
        let of = |list: &[String]| list.iter().any(|one| one == address);
        of(&node.internal_ips) || pods.iter().any(|pod| of(&pod.ips))
    };
    // Without kured on the node its address says nothing: anything on the node's network has it.
    if !pods.is_empty() && address.is_some_and(known) { QuestionSource::Kured } else { QuestionSource::Elsewhere }
}

/// Whether a question is believed. `required` is kured's own metric, where it was asked.
#[must_use]
pub fn is_believed(node: &Node, pods: &[&Pod], source: QuestionSource, required: Option<bool>) -> bool {
    let annotated = node.metadata.annotations.contains_key(ANNOTATION_KURED_IN_PROGRESS);
    pods.iter().any(|pod| pod.is_ready()) && (required == Some(true) || annotated || source == QuestionSource::Kured)
}

/// The record of kured's wish; none where one of the node is active, its boot is not known, or a try of this boot ended
/// a moment ago.
#[must_use]
pub fn of_kured(node: &Node, records: &[Maintenance], now: Timestamp) -> Option<Maintenance> {
    let since = node.metadata.annotations.get(ANNOTATION_KURED_IN_PROGRESS);
    let since = since.and_then(|text| text.parse::<Timestamp>().ok());
    let mut reason = "kured asks for a reboot".to_owned();
    if let Some(since) = since {
        let _ = write!(reason, " since {since}");
    }
    record(node, records, Action::Kured, (REQUESTED_BY, &reason), now)
}

/// The record of an unattended wish for a reboot, by (who asks, why). Every replica makes the same name from the same
/// records, so that of two that are made at once one exists already.
#[must_use]
pub fn record(
    node: &Node,
    records: &[Maintenance],
    action: Action,
    (by, why): (&str, &str),
    now: Timestamp,
) -> Option<Maintenance> {
    if question::active(records).next().is_some() {
        return None;
    }
    let boot = node.boot_id.as_str();
    let tried: Vec<&Maintenance> = records.iter().filter(|record| boot_of(record) == Some(boot)).collect();
    let last = tried.iter().filter_map(|record| record.metadata.creation_timestamp.as_ref()).map(|time| time.0).max();
    let times = i32::try_from(tried.len()).unwrap_or(i32::MAX).min(PAUSE.1);
    if last.is_some_and(|last| now.duration_since(last) < PAUSE.0.saturating_mul(times)) {
        return None;
    }
    let name = name(&node.metadata.name, boot, tried.len(), records)?;
    let spec = MaintenanceSpec {
        node_name: node.metadata.name.clone(),
        scope: Scope::DEFAULT.to_owned(),
        action: action.as_str().to_owned(),
        trigger: Trigger::Unattended.as_str().to_owned(),
        requested_by: by.to_owned(),
        reason: why.to_owned(),
        boot_id: Some(boot.to_owned()),
        ..MaintenanceSpec::default()
    };
    Some(Maintenance::new(&name, spec))
}

/// The boot that a record was about.
fn boot_of(record: &Maintenance) -> Option<&str> {
    let known = || record.status.as_ref()?.node.as_ref().map(|node| node.boot_id_before.as_str());
    record.spec.boot_id.as_deref().or_else(known)
}

/// `<node>-<8 of boot>-<n>`, a DNS subdomain. `n` is 1 after no try of this boot, and goes on where the name is taken.
fn name(node: &str, boot: &str, tried: usize, records: &[Maintenance]) -> Option<String> {
    let letters = boot.chars().filter(char::is_ascii_alphanumeric).take(BOOT_IN_NAME);
    let boot: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    if boot.is_empty() {
        return None;
    }
    let cut: String = node.chars().take(NODE_IN_NAME).collect();
    let node = cut.trim_end_matches(['-', '.']);
    let taken = |name: &String| records.iter().any(|record| record.metadata.name.as_ref() == Some(name));
    (tried + 1..=tried + 1 + records.len()).map(|n| format!("{node}-{boot}-{n}")).find(|name| !taken(name))
}

/// What is to be written to the record of the node: that it was asked, what it answered, in which epoch. None where
/// that is known well enough: the news is written at most every ten minutes, and at once for a newer epoch, for the
/// first question of kured itself in an epoch, and for a refusal after a go.
#[must_use]
pub fn asked(record: &Maintenance, answer: &Answer, source: QuestionSource, now: Timestamp) -> Option<Asked> {
    if !question::listens(record) || record.spec.action.parse() != Ok(Action::Kured) {
        return None;
    }
    let epoch = record.status.as_ref().and_then(|status| status.kured.as_ref()).map_or(0, |kured| kured.ask_epoch);
    let at = parse_time(Some(&crate::plan::stamp(now))).unwrap_or(now);
    let asked = Asked { at, answer: answer.word(), epoch, source };
    let written = record.metadata.annotations.as_ref().and_then(|all| all.get(ANNOTATION_ASKED));
    let Some(before) = written.and_then(|text| Asked::parse(text).ok()) else { return Some(asked) };
    let nearer = before.source == QuestionSource::Elsewhere && source == QuestionSource::Kured;
    let refused = before.answer == GO && asked.answer != GO && source == before.source;
    let old = now.duration_since(before.at) >= TELL_EVERY && (source == before.source || nearer);
    // What was read may be older than what another replica has written meanwhile.
    let due = epoch > before.epoch || (epoch == before.epoch && (nearer || refused || old));
    due.then_some(asked)
}

#[cfg(test)]
mod tests;
