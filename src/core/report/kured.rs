//! What passes between a run and kured, for people: what is waited for and how long at most, the grant, the lock.

use jiff::{SignedDuration, Timestamp};

use super::paint::tame;
use super::table::length;
use crate::api::record::{KuredRecord, Maintenance, MaintenanceStatus};
use crate::api::{Action, Asked, Document, Phase, QuestionSource, Status, names};
use crate::plan::{parse_time, phase_of};

/// What a run waits for from kured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wait {
    /// The same as long as it is the same thing that is waited for.
    pub key: &'static str,
    /// The sentence, without the time that is left.
    pub text: String,
    /// When it has happened at the latest, if kured is well.
    pub until: Option<Timestamp>,
}

impl Wait {
    /// The sentence with the time that is left.
    pub(super) fn shown(&self, now: Timestamp) -> String {
        let left = self.until.map(|until| until.duration_since(now).as_secs());
        let left = match left {
            Some(left) if left >= 0 => format!(" ({} at most)", length(left)),
            Some(late) => format!(" ({} overdue)", length(-late)),
            None => String::new(),
        };
        tame(&format!("{}{left}", self.text))
    }
}

fn is_kureds(record: &Maintenance) -> bool {
    record.spec.action == Action::Kured.as_str()
}

/// The last question that somebody heard.
fn asked(record: &Maintenance) -> Option<Asked> {
    Asked::parse(record.metadata.annotations.as_ref()?.get(names::ANNOTATION_ASKED)?).ok()
}

fn known(record: &Maintenance) -> Option<(&MaintenanceStatus, &KuredRecord)> {
    let status = record.status.as_ref()?;
    Some((status, status.kured.as_ref()?))
}

/// What it waits for from kured now, if it is kured that it waits for.
pub(super) fn waits_for(record: &Maintenance) -> Option<Wait> {
    let (status, kured) = known(record)?;
    let phase = phase_of(record);
    let period = SignedDuration::from_secs(kured.period_seconds);
    let within = |from: Option<Timestamp>| {
        from.filter(|_| kured.period_seconds > 0).and_then(|from| from.checked_add(period).ok())
    };
    let wait = |key, text: String, until| Some(Wait { key, text, until });
    let stopped = status
        .findings
        .iter()
        .any(|finding| finding.status == Status::Block.as_str() || finding.status == Status::Unknown.as_str());
    match phase {
        Phase::Acting if is_kureds(record) => {
            if kured.closing.is_some() {
                return wait("closing", status.message.clone(), None);
            }
            if let Some(intent) = &status.intent {
                let text = "granted, kured acts at its next look".to_owned();
                return wait("granted", text, within(parse_time(Some(&intent.at))));
            }
            if stopped {
                return None;
            }
            let put_on = kured.sentinel.as_ref().and_then(|sentinel| parse_time(Some(&sentinel.asked_at)));
            let from = put_on.or_else(|| parse_time(status.step_started_at.as_ref()));
            wait("question", "waits for kured's question".to_owned(), within(from))
        }
        Phase::Returning if kured.seen_lock.is_some() => {
            wait("acts", "kured has its lock: it drains what is left and reboots".to_owned(), None)
        }
        Phase::BackingOut if kured.closing.is_some() => wait("closing", status.message.clone(), None),
        _ => None,
    }
}

/// Whether a run that is over still holds kured's lock, since a withdrawn grant is not known to be spent.
pub(super) fn left_behind(record: &Maintenance) -> bool {
    phase_of(record).is_terminal() && known(record).is_some_and(|(_, kured)| kured.closing.is_some())
}

/// The rows of the section `kured` of a story: what, and what is known of it.
pub(super) fn rows(record: &Maintenance, now: Timestamp) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |what: &str, text: String| rows.push(vec![what.to_owned(), tame(&text)]);
    if let Some(asked) = asked(record) {
        let elsewhere = match asked.source {
            QuestionSource::Kured => "",
            QuestionSource::Elsewhere => ", from an address that is not kured's",
        };
        row("asked", format!("{}, answered `{}`{elsewhere}", asked.at, asked.answer));
    }
    let Some((status, kured)) = known(record) else { return rows };
    if kured.period_seconds > 0 {
        row("looks", format!("every {} s", kured.period_seconds));
    }
    if let Some(sentinel) = &kured.sentinel {
        let end = match (sentinel.removed_at.is_empty(), phase_of(record).is_terminal()) {
            (false, _) => format!("gone since {}", sentinel.removed_at),
            (true, true) => "being taken away".to_owned(),
            (true, false) => "taken away when the run is over".to_owned(),
        };
        row("sentinel", format!("{}, put on the node at {}; {end}", sentinel.path, sentinel.asked_at));
    }
    if let Some(grant) = grant(record, status, kured) {
        row("grant", grant);
    }
    if let Some(lock) = lock(record, kured, now) {
        row("lock", lock);
    }
    let waits = waits_for(record).map(|wait| wait.shown(now));
    if let Some(waits) = waits.or_else(|| awaited(record, kured)) {
        row("awaited", waits);
    }
    rows
}

fn grant(record: &Maintenance, status: &MaintenanceStatus, kured: &KuredRecord) -> Option<String> {
    if !is_kureds(record) {
        return None;
    }
    let times = match kured.grants {
        0 => String::new(),
        1 => "; used once".to_owned(),
        times => format!("; used {times} times"),
    };
    match (&kured.closing, &status.intent) {
        (Some(closing), _) if closing.used => Some(format!("used, and given up without a reboot{times}")),
        (Some(_), _) => Some(format!("taken back, and not known to be over{times}")),
        (None, Some(intent)) => {
            Some(format!("since {} for boot {}, valid until {}{times}", intent.at, intent.boot_id, intent.valid_until))
        }
        (None, None) if kured.grants > 0 => Some(times.trim_start_matches("; ").to_owned()),
        (None, None) => status.offered_at.as_ref().map(|at| format!("given at {at}, and over")),
    }
}

fn lock(record: &Maintenance, kured: &KuredRecord, now: Timestamp) -> Option<String> {
    let over = phase_of(record).is_terminal();
    let ours = |at: &str| match parse_time(Some(&at.to_owned())) {
        Some(from) => format!("ours since {at}, for {}", length(now.duration_since(from).as_secs())),
        None => format!("ours since {at}"),
    };
    if let Some(closing) = &kured.closing {
        return Some(closing.taken_at.as_deref().map_or_else(|| "not ours yet".to_owned(), ours));
    }
    if let Some(gone) = &kured.lock_gone_since {
        return Some(format!("gone since {gone} with the same boot"));
    }
    if let Some(created) = &kured.seen_lock {
        let when = if created.is_empty() { String::new() } else { format!(" at {created}") };
        return Some(format!("taken by kured{when}"));
    }
    let held = kured.held_since.as_deref()?;
    let finalizers = record.metadata.finalizers.as_ref().is_none_or(Vec::is_empty);
    Some(if over && finalizers { format!("was ours from {held}, given back") } else { ours(held) })
}

/// What ends what is left of a run that is over.
fn awaited(record: &Maintenance, kured: &KuredRecord) -> Option<String> {
    kured.closing.as_ref()?;
    let node = &record.spec.node_name;
    Some(format!(
        "one of: kured on {node} asks again and hears no; its pod is another one; the node boots. Then the lock is given back"
    ))
}

#[cfg(test)]
mod tests;
