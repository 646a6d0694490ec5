//! What is told of a night: read out of its trace and of kured's logs.
//!
//! What maint says is never made up here. Lines of runs are those that `maint reboot` shows, messages are those that were
//! sent, kured's are its log. The narrator's own sentences are what happens outside (a script says it in the trace), and
//! once for each phase why it is there.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use maint_core::api::Phase;
use maint_core::api::record::{Maintenance, MaintenanceReport, OutboxEntry};
use maint_core::plan::phase_of;
use maint_core::report::Follow;
use serde_json::Value;

use crate::trace::Step;

/// The client that a story's own sentences have in the trace.
pub const STORY: &str = "story";

/// Who says a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Voice {
    /// The narrator: what happens outside, and why.
    Story,
    /// A run of maint, as its record says it.
    Maint,
    /// kured's log.
    Kured,
    /// A message that maint sent.
    Message,
}

/// A line of the night.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// When it could be seen.
    pub at: Timestamp,
    /// Who says it.
    pub voice: Voice,
    /// The node that it is about; for a message how severe it is; else empty.
    pub about: String,
    /// What is said; messages may have several lines.
    pub text: String,
}

/// Why a phase is there, told when a run comes to it first.
const WHY: &[(Phase, &str)] = &[
    (
        Phase::Cordoning,
        "All gates agree for this node. It is cordoned first: kured then finds it unschedulable, and leaves the uncordon \
         to maint.",
    ),
    (Phase::Draining, "Its pods move to the other nodes, one eviction after the other, as far as their budgets allow."),
    (
        Phase::Acting,
        "The node is empty. maint waits for kured to ask once more and hear no after the cordon; only then it may hear go.",
    ),
    (
        Phase::Returning,
        "kured took its lock and reboots the node. Nothing can be undone now: from here on maint proves the return, or \
         holds.",
    ),
    (
        Phase::Verifying,
        "A new boot ID proves the reboot. While the node is still cordoned, every API server must reach every kubelet over \
         a fresh connection.",
    ),
    (
        Phase::Settling,
        "Proven, so the cordon is off. The next node starts only when the whole cluster was whole for a while.",
    ),
    (
        Phase::Held,
        "maint restarts and repairs nothing. It keeps the node as it is, lets nobody else start, goes on looking, and a \
         person is told.",
    ),
    (
        Phase::BackingOut,
        "Nothing irreversible has happened yet, so everything is put back: no node stays half drained for the morning.",
    ),
];

/// Beginnings of lines of kured's log that move nothing.
const NOT_TOLD: &[&str] = &[
    "Kubernetes Reboot Daemon",
    "Node ID",
    "Lock Annotation",
    "Lock TTL",
    "Adding node",
    "Deleting node",
    "Reboot not required",
    "Waiting for reboot",
];

/// Reasons of the window that are told once for all nodes.
const CLOSED: &[&str] = &["(OutsideWindow)", "(WindowTooShort)"];

#[derive(Debug)]
struct Run {
    follow: Follow,
    now: Maintenance,
    /// Sentences that were told, without what only differs in seconds.
    told: BTreeSet<String>,
}

/// Remembers what was told.
#[derive(Debug, Default)]
pub struct Narrator {
    runs: BTreeMap<String, Run>,
    sent: BTreeSet<String>,
    explained: Vec<Phase>,
    /// Whether it was told that the window is closed.
    closed: bool,
    logs: BTreeMap<String, Log>,
}

#[derive(Debug, Default)]
struct Log {
    read: usize,
    was_blocked: bool,
    last: String,
}

impl Narrator {
    /// What a step of the trace tells.
    pub fn step(&mut self, step: &Step) -> Vec<Line> {
        if step.client == STORY {
            return vec![line(step.at, Voice::Story, "", &step.path)];
        }
        let mut lines = Vec::new();
        for change in &step.changes {
            let Some(after) = &change.after else { continue };
            match change.key.resource.resource.as_str() {
                "maintenances" => lines.extend(self.record(after, step.at)),
                "maintenancereports" => lines.extend(self.report(after, step.at)),
                _ => {}
            }
        }
        lines
    }

    fn record(&mut self, object: &Value, at: Timestamp) -> Vec<Line> {
        let Ok(record) = serde_json::from_value::<Maintenance>(object.clone()) else { return Vec::new() };
        let name = record.metadata.name.clone().unwrap_or_default();
        let node = record.spec.node_name.clone();
        let phase = phase_of(&record);
        let run = self.runs.entry(name).or_insert_with(|| Run {
            follow: Follow::from_start(at),
            now: record.clone(),
            told: BTreeSet::new(),
        });
        let mut news: Vec<String> = run.follow.told(&record, at).into_iter().map(|(_, text)| text).collect();
        // That the window is not open yet, or not any more, is the same for all of them.
        news.retain(|text| {
            let closed = CLOSED.iter().any(|reason| text.contains(reason));
            (!closed || !std::mem::replace(&mut self.closed, true)) && run.told.insert(sentence(text))
        });
        let mut lines: Vec<Line> = news.iter().map(|text| line(at, Voice::Maint, &node, text)).collect();
        run.now = record;
        let outbox = run.now.status.as_ref().map(|status| status.outbox.clone()).unwrap_or_default();
        if !self.explained.contains(&phase)
            && let Some((_, why)) = WHY.iter().find(|(of, _)| *of == phase)
        {
            self.explained.push(phase);
            lines.push(line(at, Voice::Story, "", why));
        }
        lines.extend(self.messages(&outbox, at));
        lines
    }

    fn report(&mut self, object: &Value, at: Timestamp) -> Vec<Line> {
        let Ok(report) = serde_json::from_value::<MaintenanceReport>(object.clone()) else { return Vec::new() };
        let outbox = report.status.map(|status| status.outbox).unwrap_or_default();
        self.messages(&outbox, at)
    }

    /// Messages that were sent since the last time.
    fn messages(&mut self, outbox: &[OutboxEntry], at: Timestamp) -> Vec<Line> {
        let sent = outbox.iter().filter(|entry| !entry.delivered_to.is_empty());
        let new: Vec<&OutboxEntry> = sent.filter(|entry| self.sent.insert(entry.id.clone())).collect();
        new.into_iter().map(|entry| line(at, Voice::Message, &entry.severity, &entry.text)).collect()
    }

    /// What a node's kured logged since the last time.
    pub fn log(&mut self, node: &str, log: &[String], at: Timestamp) -> Vec<Line> {
        let seen = self.logs.entry(node.to_owned()).or_default();
        let new = log.get(seen.read..).unwrap_or_default();
        seen.read = log.len();
        let mut lines = Vec::new();
        for text in new.iter().map(|entry| message(entry)) {
            if NOT_TOLD.iter().any(|start| text.starts_with(start)) || seen.last == text {
                continue;
            }
            // kured repeats every minute what maint's own lines say when it changes.
            let waits = text.starts_with("Reboot blocked") && text.contains(" waits: ");
            if !(waits && seen.was_blocked) {
                lines.push(line(at, Voice::Kured, node, &text));
            }
            seen.was_blocked |= text.starts_with("Reboot blocked");
            seen.last = text;
        }
        lines
    }

    /// Where every run is now, in the order of the nodes: `n1 Draining, 3 of 5 pods left; n2 Pending`.
    #[must_use]
    pub fn live(&self) -> String {
        let mut nodes: BTreeMap<&str, String> = BTreeMap::new();
        for run in self.runs.values() {
            let (node, phase) = (run.now.spec.node_name.as_str(), phase_of(&run.now));
            let drain = run.now.status.as_ref().and_then(|status| status.drain.as_ref());
            let left = drain.filter(|_| phase == Phase::Draining);
            let left =
                left.map_or_else(String::new, |drain| format!(", {} of {} pods left", drain.left, drain.planned));
            let shown = format!("{node} {phase}{left}");
            // The run that is at work is the one that counts, where a node has several.
            if !phase.is_terminal() || !nodes.contains_key(node) {
                nodes.insert(node, shown);
            }
        }
        nodes.into_values().collect::<Vec<_>>().join("; ")
    }
}

fn line(at: Timestamp, voice: Voice, about: &str, text: &str) -> Line {
    Line { at, voice, about: about.to_owned(), text: text.to_owned() }
}

/// A sentence without what follows its first bracket; of what a wish waits for the reason stays.
fn sentence(text: &str) -> String {
    let end = if text.starts_with("Pending") { "):" } else { " (" };
    text.split_once(end).map_or(text, |(start, _)| start).to_owned()
}

/// The text of `time="..." level=info msg="..."` (logrus), without its escapes.
fn message(entry: &str) -> String {
    let text = entry.split_once("msg=").map_or(entry, |(_, text)| text);
    serde_json::from_str(text).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use maint_core::api::record::{MaintenanceSpec, MaintenanceStatus, TimelineEntry};

    use super::*;
    use crate::store::{Change, ObjectKey};

    fn at() -> Timestamp {
        "2026-11-30T02:00:00Z".parse().expect("a time")
    }

    fn told(narrator: &mut Narrator, resource: &str, object: Value) -> Vec<(Voice, String)> {
        let mut step = Step::act("maint-1", at());
        let key = ObjectKey::new("maint.dev", resource, "", "n1-1");
        step.changes =
            vec![Arc::new(Change { revision: 1, key, before: None, after: Some(Arc::new(object)), last: None })];
        narrator.step(&step).into_iter().map(|line| (line.voice, line.text)).collect()
    }

    fn run(phase: &str, delivered: &[&str]) -> Value {
        let spec = MaintenanceSpec { node_name: "n1".into(), ..MaintenanceSpec::default() };
        let mut record = Maintenance::new("n1-1", spec);
        let entry = TimelineEntry { at: at().to_string(), phase: phase.into(), message: "so it is".into() };
        let letter = OutboxEntry {
            id: "1".into(),
            severity: "critical".into(),
            text: "n1 is held".into(),
            delivered_to: delivered.iter().map(|name| (*name).to_owned()).collect(),
            ..OutboxEntry::default()
        };
        let (timeline, outbox) = (vec![entry], vec![letter]);
        record.status =
            Some(MaintenanceStatus { phase: phase.into(), timeline, outbox, ..MaintenanceStatus::default() });
        serde_json::to_value(record).expect("JSON")
    }

    #[test]
    fn a_record_a_message_and_a_reason_are_told_once() {
        let mut narrator = Narrator::default();
        let first = told(&mut narrator, "maintenances", run("Held", &[]));
        let why = WHY.iter().find(|(phase, _)| *phase == Phase::Held).expect("Held is explained").1;
        assert_eq!(first, [(Voice::Maint, "Held: so it is".to_owned()), (Voice::Story, why.to_owned())]);
        assert_eq!(
            told(&mut narrator, "maintenances", run("Held", &["mail"])),
            [(Voice::Message, "n1 is held".to_owned())],
            "only what was sent is told"
        );
        assert!(told(&mut narrator, "maintenances", run("Held", &["mail"])).is_empty());
        assert_eq!(narrator.live(), "n1 Held");
    }

    #[test]
    fn of_kureds_log_only_what_moves_the_night_is_told() {
        let entry = |text: &str| format!("time=\"2026-11-30T02:00:00Z\" level=info msg=\"{text}\"");
        let waits = "Reboot blocked: 1 active alerts: [maint: n1 waits: window OutsideWindow]";
        let log: Vec<String> =
            ["Node ID: n1", waits, waits, "Reboot blocked: 1 active alerts: [maint: n1 waits: x]", "Reboot required"]
                .map(entry)
                .into();
        let mut narrator = Narrator::default();
        let text: Vec<String> = narrator.log("n1", &log, at()).into_iter().map(|line| line.text).collect();
        assert_eq!(text, [waits, "Reboot required"]);
        assert!(narrator.log("n1", &log, at()).is_empty(), "told already");
        assert_eq!(message(&entry(r#"a \"quoted\" word"#)), r#"a "quoted" word"#);
    }
}
