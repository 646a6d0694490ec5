//! The answer of `maint lock show`.

use jiff::Timestamp;
use serde::Serialize;

use super::check::Origin;
use super::paint::{Paint, tame};
use super::text::{push, since};
use crate::api::{Status, names};
use crate::kured::lock::{Format, MANUAL};
use crate::kured::{Holder, Place, Seen};

/// All locks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LockReport {
    /// `maint.dev/v1`
    pub api_version: &'static str,
    /// `LockReport`
    pub kind: &'static str,
    /// When it was made.
    pub generated_at: Timestamp,
    /// The time that ages are counted to.
    pub now: Timestamp,
    /// Where the facts came from.
    pub source: Origin,
    /// The locks, in order of place; empty where kured is not installed.
    pub locks: Vec<LockEntryReport>,
}

/// One lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LockEntryReport {
    /// Namespace of the DaemonSet.
    pub namespace: String,
    /// Its name.
    pub daemon_set: String,
    /// The annotation.
    pub annotation: String,
    /// kured's `--concurrency`.
    pub concurrency: usize,
    /// `single` or `multi`; none where it is free or cannot be read.
    pub format: Option<&'static str>,
    /// Why it cannot be read.
    pub unreadable: Option<String>,
    /// Whether kured's concurrency reads this format.
    pub format_fits: bool,
    /// The value as it is.
    pub text: Option<String>,
    /// What kured does with it.
    pub consequence: String,
    /// Who is in it.
    pub holders: Vec<HolderReport>,
}

/// One holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_excessive_bools, reason = "a document for programs: each is a question of its own")]
pub struct HolderReport {
    /// `nodeID`
    pub name: String,
    /// Whether there is such a node.
    pub node_exists: bool,
    /// A node that is gone.
    pub ghost: bool,
    /// Whether kured takes it for expired.
    pub expired: bool,
    /// When it was taken.
    pub created: Option<Timestamp>,
    /// `TTL` in seconds; 0 for never.
    pub ttl_seconds: i64,
    /// What it says of the cordon before kured came.
    pub unschedulable: Option<bool>,
    /// It is one of maint's own.
    pub ours: bool,
    /// The record that it belongs to.
    pub record: Option<String>,
}

impl LockReport {
    /// Builds the report.
    #[must_use]
    pub fn new(generated_at: Timestamp, now: Timestamp, source: Origin, locks: Vec<(Place, Seen)>) -> Self {
        let locks = locks.into_iter().map(|(place, seen)| LockEntryReport::new(place, seen)).collect();
        Self { api_version: names::OUTPUT_API_VERSION, kind: "LockReport", generated_at, now, source, locks }
    }
}

impl LockEntryReport {
    pub(super) fn new(place: Place, seen: Seen) -> Self {
        let format_fits = place.format_fits();
        let Place { namespace, name, key, text, concurrency, .. } = place;
        let Seen { format, garbage, holders, consequence } = seen;
        Self {
            namespace,
            daemon_set: name,
            annotation: key,
            concurrency,
            format: format.map(|format| match format {
                Format::Single => "single",
                Format::Multi => "multi",
            }),
            unreadable: garbage.map(|error| error.to_string()),
            format_fits,
            text,
            consequence,
            holders: holders.into_iter().map(HolderReport::from).collect(),
        }
    }
}

impl From<Holder> for HolderReport {
    fn from(holder: Holder) -> Self {
        let ghost = holder.is_ghost();
        let Holder { name, node_exists, expired, created, ttl_seconds, unschedulable, ours, record } = holder;
        Self { name, node_exists, ghost, expired, created, ttl_seconds, unschedulable, ours, record }
    }
}

/// The text of the locks.
#[must_use]
pub fn lock(report: &LockReport, paint: Paint) -> String {
    if report.locks.is_empty() {
        return "kured is not installed, and left no lock behind\n".to_owned();
    }
    let mut text = String::new();
    for (index, lock) in report.locks.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        let (status, word) = match (&lock.unreadable, lock.format_fits, lock.holders.is_empty()) {
            (Some(_), _, _) => (Status::Block, "UNREADABLE"),
            (None, false, _) => (Status::Block, "WRONG FORMAT"),
            (None, true, true) => (Status::Pass, "FREE"),
            (None, true, false) => (Status::Warn, "HELD"),
        };
        let place = format!("DaemonSet {}/{}, {}", lock.namespace, lock.daemon_set, lock.annotation);
        let format = lock.format.map_or_else(String::new, |format| format!(", format {format}"));
        push(&mut text, &format!("{} {}", paint.status(status, word), tame(&place)));
        push(&mut text, &format!("  {}", paint.dim(&format!("--concurrency {}{format}", lock.concurrency))));
        for holder in &lock.holders {
            push(&mut text, &format!("  {}", tame(&one(holder, report.now))));
        }
        if let Some(why) = &lock.unreadable {
            push(&mut text, &format!("  it {}: {}", tame(why), tame(lock.text.as_deref().unwrap_or_default())));
        }
        push(&mut text, &format!("  {}", tame(&lock.consequence)));
        if let Some(command) = remedy(lock, report.locks.len() > 1) {
            push(&mut text, &format!("  {}", tame(&command)));
        }
    }
    text
}

fn one(holder: &HolderReport, now: Timestamp) -> String {
    let who = match holder {
        HolderReport { record: Some(record), .. } => format!("{}: the run {record} of maint", holder.name),
        HolderReport { ours: true, .. } => format!("{}: a run of maint that is gone", holder.name),
        HolderReport { ghost: true, .. } => format!("{}: a ghost, there is no such node", holder.name),
        _ if holder.name == MANUAL => format!("{}: a person, by hand", holder.name),
        _ => format!("{}: node", holder.name),
    };
    let age = holder.created.map_or_else(|| ", no time given".to_owned(), |at| format!(", since {}", since(at, now)));
    let expired = if holder.expired { ", expired" } else { "" };
    let cordoned = if holder.unschedulable == Some(true) { ", stays cordoned" } else { "" };
    format!("{who}{age}{expired}{cordoned}")
}

/// The command that frees it, where that is for a person to do.
fn remedy(lock: &LockEntryReport, several: bool) -> Option<String> {
    let which = if several { format!(" --daemon-set {}/{}", lock.namespace, lock.daemon_set) } else { String::new() };
    if lock.unreadable.is_some() || !lock.format_fits {
        return Some(format!("to free it: maint lock release --garbage --yes{which}"));
    }
    let stale = lock.holders.iter().find(|one| one.ghost || (one.ours && one.record.is_none()))?;
    let yes = if stale.ghost { "" } else { " --yes" };
    Some(format!("to free it: maint lock release --holder {}{yes}{which}", stale.name))
}
