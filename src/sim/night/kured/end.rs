//! What a night with kured came to, read out of its history and its last state.

use maint_core::api::record::Maintenance;
use maint_core::plan::phase_of;
use serde_json::Value;

use super::{KuredNight, Scenario, Scene};
use crate::invariants::History;
use crate::invariants::views::{KURED_LOCK, LOCK_NOT_KNOWN, boot_id, holders, in_flight, is_garbage, locks};
use crate::store::{ObjectKey, object};

/// The end of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its node.
    pub node: String,
    /// Its phase.
    pub phase: String,
    /// Its outcome.
    pub outcome: String,
    /// What it says last.
    pub message: String,
    /// How often it was granted and taken.
    pub grants: i64,
}

impl Run {
    /// What a record says.
    #[must_use]
    pub fn of(record: &Maintenance) -> Self {
        let status = record.status.clone().unwrap_or_default();
        Self {
            node: record.spec.node_name.clone(),
            phase: phase_of(record).as_str().to_owned(),
            outcome: status.outcome,
            message: status.message,
            grants: status.kured.map_or(0, |kured| kured.grants),
        }
    }
}

impl KuredNight {
    /// The runs, in the order in which their records were created.
    #[must_use]
    pub fn runs(&self) -> Vec<Run> {
        self.records.iter().map(Run::of).collect()
    }

    /// Nodes in the order in which runs cordoned them.
    #[must_use]
    pub fn order(&self) -> Vec<&str> {
        let began = |record: &Maintenance| {
            let timeline = &record.status.as_ref()?.timeline;
            timeline.iter().find(|entry| entry.phase == "Cordoning").map(|entry| entry.at.clone())
        };
        let mut found: Vec<(String, &str)> =
            self.records.iter().filter_map(|one| Some((began(one)?, one.spec.node_name.as_str()))).collect();
        found.sort();
        found.into_iter().map(|(_, node)| node).collect()
    }

    /// What stopped runs that were in flight, each time that it changed: the record keeps the last look alone.
    fn held_up(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for step in &self.history.steps {
            let records = step.changes.iter().filter(|change| change.key.resource.resource == "maintenances");
            for record in records.filter_map(|change| change.after.as_ref()).filter(|one| in_flight(one)) {
                let findings = record.pointer("/status/findings").and_then(Value::as_array);
                for one in findings.into_iter().flatten().filter(|one| object::text(one, "/status") != "warn") {
                    let (name, gate) = (object::name(record), object::text(one, "/gate"));
                    let (reason, message) = (object::text(one, "/reason"), object::text(one, "/message"));
                    lines.push(format!("{} {name} held up: {gate} {reason}: {message}", step.at));
                }
            }
        }
        lines
    }

    /// What a person would read of the records, the reports, and kured's logs.
    #[must_use]
    pub fn story(&self) -> String {
        let mut lines = Vec::new();
        for record in &self.records {
            let status = record.status.clone().unwrap_or_default();
            let name = record.metadata.name.clone().unwrap_or_default();
            lines.push(format!("--- {name}: {} {} {}", status.phase, status.outcome, status.message));
            lines
                .extend(status.timeline.iter().map(|entry| format!("{} {}: {}", entry.at, entry.phase, entry.message)));
            lines.extend(
                status
                    .findings
                    .iter()
                    .map(|one| format!("{} {} {}: {}", one.gate, one.status, one.reason, one.message)),
            );
            lines.extend(status.warnings.iter().map(|warning| format!("warning: {warning}")));
            let waits = status.outbox.iter().filter(|entry| entry.delivered_to.is_empty());
            lines.extend(waits.map(|entry| format!("not delivered: {}", entry.kind)));
            lines.push(format!("kured {:?} asked {:?}", status.kured, record.metadata.annotations));
        }
        lines.extend(self.held_up());
        for report in &self.reports {
            lines.push(format!("=== {:?} {:?}", report.metadata.name, report.status));
        }
        lines.extend(self.befell.iter().map(|(at, what)| format!("{at} befell: {what:?}")));
        for (node, log) in &self.logs {
            lines.extend(log.iter().map(|line| format!("kured {node}: {line}")));
        }
        lines.push(format!("lock {:?}, cordoned {:?}, boots {:?}", self.lock, self.cordoned, self.boots));
        lines.join("\n")
    }
}

impl Scenario {
    /// What differs from what the scenario says.
    #[must_use]
    pub fn differences(&self, night: &KuredNight) -> Vec<String> {
        let mut found = Vec::new();
        let mut differ = |what: &str, seen: String, wanted: String| {
            if seen != wanted {
                found.push(format!("{what}: {seen}, wanted {wanted}"));
            }
        };
        let mut ends: Vec<(String, String, String)> =
            night.runs().into_iter().map(|run| (run.node, run.phase, run.outcome)).collect();
        // By node, and of one node by creation.
        ends.sort_by(|a, b| a.0.cmp(&b.0));
        let wanted: Vec<(String, String, String)> =
            self.ends.iter().map(|(a, b, c)| ((*a).to_owned(), (*b).to_owned(), (*c).to_owned())).collect();
        differ("records", format!("{ends:?}"), format!("{wanted:?}"));
        if let Some(order) = self.order {
            differ("order", format!("{:?}", night.order()), format!("{order:?}"));
        }
        differ("boots", format!("{:?}", night.boots.values().collect::<Vec<_>>()), format!("{:?}", self.boots));
        differ("grants and closings", format!("{:?}", (night.grants, night.closings)), format!("{:?}", self.grants));
        let status = night.reports.first().and_then(|report| report.status.clone()).unwrap_or_default();
        differ("verdict", status.verdict.clone(), self.verdict.to_owned());
        let text = status.outbox.first().map(|entry| entry.text.clone()).unwrap_or_default();
        for part in self.says {
            differ(&format!("the report says `{part}`"), text.contains(part).to_string(), "true".to_owned());
        }
        let lock = night.lock.clone().unwrap_or_default();
        let as_wanted = if self.lock.is_empty() { lock.is_empty() } else { lock.contains(self.lock) };
        if !as_wanted {
            found.push(format!("the lock is `{lock}`, wanted `{}`", self.lock));
        }
        for (what, holds) in [
            ("it came to rest", night.at_rest),
            ("one report, delivered", night.reports.len() == 1 && night.delivered.iter().any(|kind| kind == "report")),
            ("only what is held is cordoned", night.cordoned == self.cordoned),
            ("no invariant was broken", night.violations.is_empty()),
        ] {
            if !holds {
                found.push(format!("not so: {what}"));
            }
        }
        found
    }
}

impl Scene {
    /// Nothing is at work, all is told, and the report of the window is delivered.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        let delivered =
            |outbox: &[maint_core::api::record::OutboxEntry]| outbox.iter().all(|entry| !entry.delivered_to.is_empty());
        let reported = self.reports().iter().any(|report| {
            report.status.as_ref().is_some_and(|status| !status.verdict.is_empty() && delivered(&status.outbox))
        });
        reported
            && !self.lock().is_some_and(|text| has_lock_of_ours(&text))
            && self.records().iter().all(|record| {
                let phase = phase_of(record);
                let told = record.status.as_ref().is_none_or(|status| delivered(&status.outbox));
                let let_go =
                    record.metadata.finalizers.as_ref().is_none_or(Vec::is_empty) || self.keeps_for_garbage(record);
                match phase.as_str() {
                    "Pending" => true,
                    "Held" => told,
                    _ => phase.is_terminal() && told && let_go,
                }
            })
    }
}

impl Scene {
    /// Whether a record that is over is kept because a lock cannot be read.
    fn keeps_for_garbage(&self, record: &Maintenance) -> bool {
        let says = record.status.as_ref().is_some_and(|status| status.message.contains(LOCK_NOT_KNOWN));
        says && self.lock().is_some_and(|text| is_garbage(&text))
    }
}

/// Whether maint has an entry in a lock.
#[must_use]
pub fn has_lock_of_ours(text: &str) -> bool {
    let daemon_set = serde_json::json!({"metadata": {"annotations": {KURED_LOCK: text}}});
    locks(&daemon_set).iter().any(|entry| entry.get("maint").is_some())
}

/// How often a node booted.
pub(super) fn boots(history: &History, node: &str) -> usize {
    let key = ObjectKey::node(node);
    let changes = history.steps.iter().flat_map(|step| &step.changes).filter(|change| change.key == key);
    let booted = |before: &Value, after: &Value| boot_id(before) != boot_id(after);
    changes
        .filter(|one| matches!((&one.before, &one.after), (Some(before), Some(after)) if booted(before, after)))
        .count()
}

/// How often something appeared in the status of a record.
pub(super) fn begun(history: &History, pointer: &str) -> usize {
    let there = |record: &Value| record.pointer(pointer).is_some_and(|value| !value.is_null());
    let changes = history.steps.iter().flat_map(|step| &step.changes);
    let ours = changes.filter(|change| change.key.resource.resource == "maintenances");
    ours.filter(|change| {
        change.after.as_ref().is_some_and(|after| there(after))
            && !change.before.as_ref().is_some_and(|before| there(before))
    })
    .count()
}

/// How often a kured took its lock.
pub(super) fn acquired(history: &History) -> usize {
    let steps = history.steps.iter().filter(|step| step.client.starts_with("kured-"));
    let changes = steps.flat_map(|step| &step.changes).filter(|change| change.key.resource.resource == "daemonsets");
    let count = |set: &Option<std::sync::Arc<Value>>| set.as_ref().map_or(0, |set| holders(set).len());
    changes.filter(|change| count(&change.after) > count(&change.before)).count()
}
