//! What stands around the runs of the screen: windows and mode, kured's lock, and the line of those who wait.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::super::lock::LockEntryReport;
use super::super::{Clock, WindowsReport, since};
use super::StatusInput;
use crate::api::record::Maintenance;
use crate::api::{Phase, Status, Trigger};
use crate::config::Mode;
use crate::facts::{Item, Observation};
use crate::kured::{Places, look, places};
use crate::plan::phase_of;

/// The locks of kured; what could not be read is told.
pub(super) fn locks(input: &StatusInput<'_>, now: Timestamp, unread: &mut Vec<String>) -> Vec<LockEntryReport> {
    let found = match places(input.facts) {
        Places::Found(found) => found,
        Places::NotInstalled => return Vec::new(),
        Places::Unreadable(why) => {
            unread.push(format!("kured's lock: {why}"));
            return Vec::new();
        }
    };
    let nodes: BTreeSet<&str> = match &input.facts.nodes {
        Observation::Known { value, .. } => value
            .iter()
            .filter_map(|item| match item {
                Item::Good(node) => Some(node.metadata.name.as_str()),
                Item::Malformed(bad) => bad.object.strip_prefix("Node "),
            })
            .collect(),
        // Told already; without the nodes every holder would look like a ghost.
        _ => return Vec::new(),
    };
    let records: Vec<_> = input.facts.maintenances.good().collect();
    found
        .into_iter()
        .map(|place| {
            let seen = look(&place, &nodes, &records, now);
            LockEntryReport::new(place, seen)
        })
        .collect()
}

/// The line of a lock.
pub(super) fn lock_line(lock: &LockEntryReport, now: Timestamp) -> (Status, String) {
    let place = format!("DaemonSet {}/{}", lock.namespace, lock.daemon_set);
    if lock.unreadable.is_some() || !lock.format_fits {
        let line = format!("kured's lock: STUCK on {place}: {}; look: maint lock show", lock.consequence);
        return (Status::Block, line);
    }
    if lock.holders.is_empty() {
        return (Status::Pass, format!("kured's lock: free ({place})"));
    }
    let who = lock.holders.iter().map(|holder| {
        let when = holder.created.map(|at| format!(" for {}", since(at, now))).unwrap_or_default();
        match &holder.record {
            Some(record) => format!("maint, run {record}{when}"),
            None if holder.ours => format!("maint, for a run that is not in the list{when}"),
            None if holder.ghost => format!("{}, a node that is gone{when}", holder.name),
            None => format!("{}{when}", holder.name),
        }
    });
    let who = who.collect::<Vec<_>>().join("; ");
    let ghost = lock.holders.iter().any(|holder| holder.ghost);
    let worth = if ghost { Status::Warn } else { Status::NotApplicable };
    let look = if ghost { "; look: maint lock show" } else { "" };
    (worth, format!("kured's lock: held by {who} ({place}){look}"))
}

/// The windows; none where the configuration that counts is not at hand.
pub(super) fn schedule(input: &StatusInput<'_>, now: Timestamp) -> Option<WindowsReport> {
    input.configured.then(|| WindowsReport::new(input.settings, now, Clock::Machine))
}

/// The line of the windows.
pub(super) fn schedule_line(schedule: Option<&WindowsReport>, namespace: &str) -> (Status, String) {
    let Some(schedule) = schedule else {
        let line = format!(
            "windows and mode: not known here, the leader has its own configuration: --config FILE, or kubectl -n {namespace} \
             exec deploy/maint -- /maint status"
        );
        return (Status::NotApplicable, line);
    };
    let (worth, windows) = schedule.verdict();
    match schedule.mode {
        Mode::Observe => {
            (Status::Warn, format!("mode observe: nothing starts unattended, and kured hears no; windows {windows}"))
        }
        Mode::Auto => (worth, format!("mode auto; windows {windows}")),
    }
}

/// The place in line of each unattended wish that gates do not stop, from 1: the oldest first, as they are begun.
/// The node of the leader's own pod goes last whatever its age; the message of its record says so.
pub(super) fn places_in_line(records: &[Maintenance]) -> Vec<(&str, usize)> {
    let mut waiting: Vec<_> = records
        .iter()
        .filter(|record| is_wish(record) && !is_passed_over(record))
        .map(|record| {
            let created = record.metadata.creation_timestamp.as_ref().map(|time| time.0);
            (created, record.metadata.name.as_deref().unwrap_or_default())
        })
        .collect();
    waiting.sort_unstable();
    waiting.into_iter().enumerate().map(|(index, (_, name))| (name, index + 1)).collect()
}

/// An unattended wish.
pub(super) fn is_wish(record: &Maintenance) -> bool {
    phase_of(record) == Phase::Pending && record.spec.trigger == Trigger::Unattended.as_str()
}

/// Whether gates stop a wish, so that those behind it go first.
pub(super) fn is_passed_over(record: &Maintenance) -> bool {
    is_wish(record) && record.status.as_ref().is_some_and(|status| status.blocked_since.is_some())
}
