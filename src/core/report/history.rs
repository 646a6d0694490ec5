//! Past and present records, newest first.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Serialize;

use super::paint::tame;
use super::table::{length, table};
use crate::api::names;
use crate::api::record::Maintenance;
use crate::plan::{parse_time, phase_of};

/// The answer of `maint history`: additive within `maint.dev/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// [`names::OUTPUT_API_VERSION`]
    pub api_version: &'static str,
    /// `History`
    pub kind: &'static str,
    /// When this document was made.
    pub generated_at: Timestamp,
    /// The records, newest first.
    pub items: Vec<HistoryEntry>,
    /// How many older ones there are.
    pub left_out: usize,
}

/// One record in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// Name of the record.
    pub name: String,
    /// The node.
    pub node: String,
    /// The scope.
    pub scope: String,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// The phase.
    pub phase: String,
    /// Why it ended or waits.
    pub outcome: String,
    /// Seconds from creation to the end; none while it is not over.
    pub seconds: Option<i64>,
    /// Who asked.
    pub requested_by: String,
    /// One sentence.
    pub message: String,
}

impl History {
    /// The newest `limit` records, of one node if it is named.
    #[must_use]
    pub fn new(records: &[Maintenance], node: Option<&str>, limit: usize, now: Timestamp) -> Self {
        let mut wanted: Vec<&Maintenance> =
            records.iter().filter(|record| node.is_none_or(|node| record.spec.node_name == node)).collect();
        wanted.sort_by_key(|record| (std::cmp::Reverse(created(record)), record.metadata.name.clone()));
        let left_out = wanted.len().saturating_sub(limit);
        Self {
            api_version: names::OUTPUT_API_VERSION,
            kind: "History",
            generated_at: now,
            items: wanted.into_iter().take(limit).map(HistoryEntry::of).collect(),
            left_out,
        }
    }
}

fn created(record: &Maintenance) -> Option<Timestamp> {
    record.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

impl HistoryEntry {
    fn of(record: &Maintenance) -> Self {
        let phase = phase_of(record);
        let status = record.status.as_ref();
        // A terminal phase is entered once, so its beginning is the end.
        let ended = parse_time(status.and_then(|status| status.step_started_at.as_ref()));
        let seconds = match (ended.filter(|_| phase.is_terminal()), created(record)) {
            (Some(ended), Some(created)) => Some(ended.duration_since(created).as_secs().max(0)),
            _ => None,
        };
        Self {
            name: record.metadata.name.clone().unwrap_or_default(),
            node: record.spec.node_name.clone(),
            scope: record.spec.scope.clone(),
            created: created(record),
            phase: phase.as_str().to_owned(),
            outcome: status.map(|status| status.outcome.clone()).unwrap_or_default(),
            seconds,
            requested_by: record.spec.requested_by.clone(),
            message: status.map(|status| status.message.clone()).unwrap_or_default(),
        }
    }
}

/// The history as text.
#[must_use]
pub fn history(report: &History) -> String {
    if report.items.is_empty() {
        return "no records\n".to_owned();
    }
    let mut rows = vec![["CREATED", "NAME", "NODE", "SCOPE", "RESULT", "TOOK", "MESSAGE"].map(str::to_owned).to_vec()];
    for item in &report.items {
        let result =
            if item.outcome.is_empty() { item.phase.clone() } else { format!("{} ({})", item.phase, item.outcome) };
        rows.push(vec![
            item.created.map_or_else(|| "-".to_owned(), |at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
            tame(&item.name),
            tame(&item.node),
            tame(&item.scope),
            tame(&result),
            item.seconds.map_or_else(|| "-".to_owned(), length),
            tame(&item.message),
        ]);
    }
    let mut text = table(&rows);
    if report.left_out > 0 {
        let _ = writeln!(text, "  and {} older ones: --limit shows more", report.left_out);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::{at, record};

    fn named(name: &str, node: &str, phase: &str, time: &str) -> Maintenance {
        let mut run = record(phase, |status| status.message = "m".into());
        run.metadata.name = Some(name.into());
        run.spec.node_name = node.into();
        run.metadata.creation_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(time)));
        run
    }

    #[test]
    fn newest_first_and_as_many_as_wanted() {
        let records = [
            named("a", "worker1", "Succeeded", "01:00:00"),
            named("c", "worker2", "Draining", "01:10:00"),
            named("b", "worker1", "Failed", "01:05:00"),
        ];
        let names = |node, limit| -> Vec<String> {
            History::new(&records, node, limit, at("02:00:00")).items.into_iter().map(|item| item.name).collect()
        };
        let rows: [(&str, Option<&str>, usize, &[&str]); 4] = [
            ("all", None, 10, &["c", "b", "a"]),
            ("two", None, 2, &["c", "b"]),
            ("of a node", Some("worker1"), 10, &["b", "a"]),
            ("of no node", Some("worker9"), 10, &[]),
        ];
        for (row, node, limit, wanted) in rows {
            assert_eq!(names(node, limit), wanted, "{row}");
        }
    }

    #[test]
    fn as_text() {
        let records = [
            named("a", "worker1", "Succeeded", "01:00:00"),
            named("c", "worker2", "Draining", "01:10:00"),
            named("d", "worker2", "Failed", "00:10:00"),
        ];
        let wanted = "  CREATED               NAME  NODE     SCOPE   RESULT     TOOK      MESSAGE
  2026-11-30T01:10:00Z  c     worker2  reboot  Draining   -         m
  2026-11-30T01:00:00Z  a     worker1  reboot  Succeeded  00:20:00  m
  and 1 older ones: --limit shows more
";
        assert_eq!(history(&History::new(&records, None, 2, at("02:00:00"))), wanted);
        assert_eq!(history(&History::new(&[], None, 2, at("02:00:00"))), "no records\n");
    }
}
