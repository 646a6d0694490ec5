//! The story of one record: the verdict, what a person has to do, then everything that is known of it.

use std::fmt::Write as _;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

use super::kured;
use super::paint::{Paint, tame};
use super::table::{length, table};
use super::text::since;
use crate::api::record::{FindingRecord, Maintenance, MaintenanceSpec, MaintenanceStatus, OutboxEntry};
use crate::api::{Action, Outcome, Phase, Reason, Status, names};
use crate::plan::{parse_time, phase_of};

/// A whole record as one document for programs: `kind: MaintenanceResult`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunDocument {
    /// [`names::OUTPUT_API_VERSION`]
    pub api_version: &'static str,
    /// `MaintenanceResult`
    pub kind: &'static str,
    /// When this document was made.
    pub generated_at: Timestamp,
    /// The verdict line, as people get it.
    pub verdict: String,
    /// The record's metadata, without `managedFields`.
    pub metadata: ObjectMeta,
    /// What was asked for.
    pub spec: MaintenanceSpec,
    /// What has been done; none as long as no leader took it.
    pub status: Option<MaintenanceStatus>,
}

impl RunDocument {
    /// The document of a record.
    #[must_use]
    pub fn new(record: &Maintenance, now: Timestamp) -> Self {
        let mut metadata = record.metadata.clone();
        metadata.managed_fields = None;
        Self {
            api_version: names::OUTPUT_API_VERSION,
            kind: "MaintenanceResult",
            generated_at: now,
            verdict: line(record, now),
            metadata,
            spec: record.spec.clone(),
            status: record.status.clone(),
        }
    }
}

/// The verdict in one line: mark, name, phase, why, since when.
#[must_use]
pub fn verdict(record: &Maintenance, paint: Paint, now: Timestamp) -> String {
    let status = worth(record);
    format!("{} {}", paint.mark(status), paint.status(status, &line(record, now)))
}

fn line(record: &Maintenance, now: Timestamp) -> String {
    let name = record.metadata.name.as_deref().unwrap_or_default();
    let Some(status) = &record.status else {
        return tame(&format!("{name} PENDING: no leader has taken it yet"));
    };
    let phase = phase_of(record);
    let mut line = format!("{name} {}", phase.as_str().to_uppercase());
    if !status.phase.is_empty() && status.phase.parse::<Phase>().is_err() {
        line = format!("{name} in phase `{}`, which this version does not know", status.phase);
    }
    if !status.outcome.is_empty() {
        let _ = write!(line, " ({})", status.outcome);
    }
    if let Some(began) = parse_time(status.step_started_at.as_ref()).filter(|_| !phase.is_terminal()) {
        let _ = write!(line, " since {}", since(began, now));
    }
    if !status.message.is_empty() {
        let _ = write!(line, ": {}", status.message);
    }
    tame(&line)
}

/// How the line is marked.
fn worth(record: &Maintenance) -> Status {
    let warned = record.status.as_ref().is_some_and(|status| !status.warnings.is_empty());
    match phase_of(record) {
        Phase::Succeeded if !warned => Status::Pass,
        Phase::Succeeded | Phase::Cancelled => Status::Warn,
        Phase::Held | Phase::Failed => Status::Block,
        _ => Status::NotApplicable,
    }
}

/// The whole story.
#[must_use]
pub fn story(record: &Maintenance, paint: Paint, now: Timestamp) -> String {
    let mut text = verdict(record, paint, now);
    let spec = &record.spec;
    let empty = MaintenanceStatus::default();
    let status = record.status.as_ref().unwrap_or(&empty);
    let strategy = if status.strategy.is_empty() { String::new() } else { format!(", strategy {}", status.strategy) };
    let by = if spec.requested_by.is_empty() { "nobody named" } else { &spec.requested_by };
    let why = if spec.reason.is_empty() { String::new() } else { format!(": {}", spec.reason) };
    let context = format!(
        "node {}, scope {}{strategy}, action {}, {}, asked by {by}{why}",
        spec.node_name, spec.scope, spec.action, spec.trigger
    );
    let _ = write!(text, "\n  {}\n", paint.dim(&tame(&context)));
    needs(&mut text, record, status);
    node(&mut text, status);
    section(&mut text, "kured", &kured::rows(record, now));
    timeline(&mut text, record, status);
    findings(&mut text, "findings", &status.findings, paint);
    numbers(&mut text, status);
    words(&mut text, spec);
    let warnings: Vec<_> = status.warnings.iter().map(|warning| vec![tame(warning)]).collect();
    section(&mut text, "warnings", &warnings);
    messages(&mut text, &status.outbox);
    text
}

fn section(text: &mut String, title: &str, rows: &[Vec<String>]) {
    if !rows.is_empty() {
        let _ = write!(text, "\n{title}\n{}", table(rows));
    }
}

fn needs(text: &mut String, record: &Maintenance, status: &MaintenanceStatus) {
    let wanted = needs_of(record, status);
    if wanted.is_empty() {
        text.push_str("\nneeds you: no\n");
    } else {
        let rows: Vec<_> = wanted.into_iter().map(|(command, what)| vec![tame(&command), what.to_owned()]).collect();
        section(text, "needs you", &rows);
    }
}

/// The commands that help now, and what each does.
fn needs_of(record: &Maintenance, status: &MaintenanceStatus) -> Vec<(String, &'static str)> {
    let name = record.metadata.name.as_deref().unwrap_or_default();
    let node = &record.spec.node_name;
    let mut wanted: Vec<(String, &str)> = Vec::new();
    let phase = phase_of(record);
    if kured::left_behind(record) {
        wanted.push((
            "maint lock show".to_owned(),
            "kured's lock stays ours until kured has asked again and heard no; no other node starts",
        ));
    }
    if status.halted_since.is_some() {
        wanted.push(("maint unhalt".to_owned(), "everything is halted"));
    }
    match phase {
        Phase::Held if status.outcome == Outcome::NodeOnHold.as_str() => {
            wanted.push((format!("maint release {node}"), "end the hold: it is proven anew and goes on"));
        }
        Phase::Held => {
            wanted.extend(explain(status));
            if status.matrix.as_ref().is_some_and(|matrix| !matrix.broken.is_empty()) {
                wanted.push(("maint matrix".to_owned(), "ask every path again"));
            }
            wanted.push((format!("maint resume {name}"), "verify again now, go on when green"));
            wanted.push((format!("maint resume {name} --accept"), "go on as if green"));
            wanted.push((format!("maint cancel {name} --accept"), "uncordon unproven and end it"));
        }
        _ if waits_for_done(record) => {
            wanted.push((format!("maint done {name}"), "once you have acted on the node"));
        }
        Phase::Pending | Phase::Failed => wanted.extend(explain(status)),
        Phase::Succeeded if status.node.as_ref().is_some_and(|node| node.was_unschedulable) => {
            wanted.push((format!("kubectl uncordon {node}"), "it was cordoned before; storage heals only then"));
        }
        _ => {}
    }
    wanted
}

/// Somebody was told to act and has not said that it is done.
pub(super) fn waits_for_done(record: &Maintenance) -> bool {
    let spec = &record.spec;
    phase_of(record) == Phase::Returning
        && spec.action == Action::External.as_str()
        && !spec.command_waits
        && spec.action_done.is_none()
}

/// The runbook of what it ended or waits for.
fn explain(status: &MaintenanceStatus) -> Option<(String, &'static str)> {
    let of_findings = status.findings.iter().find(|finding| matches!(finding.status.as_str(), "block" | "unknown"));
    let reason = status.outcome.parse::<Reason>().ok().or_else(|| of_findings?.reason.parse().ok())?;
    Some((format!("maint explain {reason}"), "what it means and what helps"))
}

fn node(text: &mut String, status: &MaintenanceStatus) {
    let Some(node) = &status.node else { return };
    let change = |before: &str, after: &str| match (before == after, after.is_empty()) {
        (_, true) => tame(before),
        (true, _) => format!("{} (the same)", tame(before)),
        _ => format!("{} -> {}", tame(before), tame(after)),
    };
    let mut rows = vec![
        vec!["boot ID".to_owned(), change(&node.boot_id_before, &node.boot_id_after)],
        vec!["kernel".to_owned(), change(&node.kernel_before, &node.kernel_after)],
    ];
    if node.was_unschedulable {
        rows.push(vec!["cordon".to_owned(), "was there before; it stays".to_owned()]);
    }
    section(text, "node", &rows);
}

fn timeline(text: &mut String, record: &Maintenance, status: &MaintenanceStatus) {
    let first = status.timeline.first().and_then(|entry| parse_time(Some(&entry.at)));
    let begun = record.metadata.creation_timestamp.as_ref().map(|time| time.0).or(first);
    let rows: Vec<_> = status
        .timeline
        .iter()
        .map(|entry| {
            let seconds = match (parse_time(Some(&entry.at)), begun) {
                (Some(at), Some(begun)) => at.duration_since(begun).as_secs(),
                _ => 0,
            };
            vec![tame(&entry.at), format!("+{}", length(seconds)), tame(&entry.phase), tame(&entry.message)]
        })
        .collect();
    section(text, "timeline", &rows);
}

fn findings(text: &mut String, title: &str, findings: &[FindingRecord], paint: Paint) {
    if findings.is_empty() {
        return;
    }
    let _ = write!(text, "\n{title}\n");
    for finding in findings {
        // A word that this version does not know is never fine.
        let mark = paint.mark(finding.status.parse().unwrap_or(Status::Unknown));
        let sentence = format!("{} ({}): {}", finding.gate, finding.reason, finding.message);
        let _ = writeln!(text, "  {mark} {}", tame(&sentence));
        for one in &finding.evidence {
            let seen = format!("{}: {} is {}, wanted {}", one.object, one.field, one.value, one.wanted);
            let _ = writeln!(text, "      {}", tame(&seen));
        }
    }
}

fn numbers(text: &mut String, status: &MaintenanceStatus) {
    if let Some(drain) = &status.drain {
        let line = format!("{} pods planned, {} evicted, {} left", drain.planned, drain.evicted, drain.left);
        let waiting = drain.waiting.iter().map(|pod| vec![tame(pod)]);
        section(text, "drain", &std::iter::once(vec![line]).chain(waiting).collect::<Vec<_>>());
    }
    if let Some(matrix) = &status.matrix {
        let after = if matrix.after.is_empty() { "not swept yet" } else { &matrix.after };
        let line = format!("{} before, {after} after", matrix.before);
        let broken = matrix.broken.iter().map(|pair| vec![tame(pair)]);
        section(text, "matrix", &std::iter::once(vec![tame(&line)]).chain(broken).collect::<Vec<_>>());
    }
    if let Some(dns) = &status.dns {
        let zero = match dns.zero_ready_observations {
            0 => String::new(),
            times => format!(", NONE {times} times"),
        };
        let line = format!("never below {} ready endpoints{zero}, {} changes", dns.min_ready, dns.changes);
        section(text, "dns", &[vec![line]]);
    }
}

/// What people said in the record.
fn words(text: &mut String, spec: &MaintenanceSpec) {
    let said =
        [("resume", &spec.resume), ("cancel", &spec.cancel), ("claimed", &spec.claimed), ("done", &spec.action_done)];
    let mut rows: Vec<Vec<String>> = said
        .into_iter()
        .filter_map(|(what, word)| {
            let word = word.as_ref()?;
            let how = match (word.accept, word.failed) {
                (true, _) => ", accepting it unproven",
                (_, true) => ", as failed",
                _ => "",
            };
            Some(vec![what.to_owned(), tame(&word.at), tame(&format!("by {}{how}", word.by))])
        })
        .collect();
    for waived in &spec.overrides {
        rows.push(vec![
            "override".to_owned(),
            tame(&waived.gate),
            tame(&format!("by {}: {}", waived.by, waived.reason)),
        ]);
    }
    if let Some(newer) = &spec.superseded_by {
        rows.push(vec!["superseded".to_owned(), String::new(), tame(&format!("by {newer}"))]);
    }
    section(text, "words", &rows);
}

pub(super) fn messages(text: &mut String, outbox: &[OutboxEntry]) {
    let rows: Vec<_> = outbox
        .iter()
        .map(|entry| {
            let waiting: Vec<String> = entry
                .pending
                .iter()
                .map(|pending| {
                    if pending.given_up {
                        format!("{} given up", pending.receiver)
                    } else {
                        format!("{} waits after {} tries", pending.receiver, pending.attempts)
                    }
                })
                .collect();
            let mut parts = Vec::new();
            if !entry.delivered_to.is_empty() {
                parts.push(format!("delivered to {}", entry.delivered_to.join(", ")));
            }
            parts.extend(waiting);
            if parts.is_empty() {
                parts.push("not delivered to anybody".to_owned());
            }
            if !entry.last_error.is_empty() {
                parts.push(entry.last_error.clone());
            }
            vec![tame(&entry.created_at), tame(&entry.severity), tame(&entry.kind), tame(&parts.join("; "))]
        })
        .collect();
    section(text, "messages", &rows);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::record::{
        DnsRecord, DrainRecord, EvidenceRecord, MatrixRecord, NodeRecord, PendingDelivery, TimelineEntry, Word,
    };
    use crate::report::testing::{at, record};

    #[test]
    fn the_verdict_of_each_kind_of_end() {
        let mut no_leader = record("Pending", |_| {});
        no_leader.status = None;
        let message = |text: &str| {
            let text = text.to_owned();
            move |status: &mut MaintenanceStatus| status.message = text
        };
        let rows = vec![
            ("no leader", no_leader, "– worker2-x7k2m PENDING: no leader has taken it yet"),
            ("in flight", record("Draining", message("m")), "– worker2-x7k2m DRAINING since 00:10:00 (01:20:00Z): m"),
            ("over", record("Succeeded", message("9/9")), "√ worker2-x7k2m SUCCEEDED: 9/9"),
            (
                "with a warning",
                record("Succeeded", |status| status.warnings = vec!["w".into()]),
                "‼ worker2-x7k2m SUCCEEDED",
            ),
            (
                "held",
                record("Held", |status| status.outcome = "NodeNotBack".into()),
                "× worker2-x7k2m HELD (NodeNotBack) since 00:10:00 (01:20:00Z)",
            ),
            (
                "failed",
                record("Failed", |status| status.outcome = "DrainDeadline".into()),
                "× worker2-x7k2m FAILED (DrainDeadline)",
            ),
            ("cancelled", record("Cancelled", |_| {}), "‼ worker2-x7k2m CANCELLED"),
            (
                "a phase of a later version",
                record("Resting", |_| {}),
                "× worker2-x7k2m in phase `Resting`, which this version does not know since 00:10:00 (01:20:00Z)",
            ),
        ];
        for (row, run, wanted) in rows {
            assert_eq!(verdict(&run, Paint::PLAIN, at("01:30:00")), wanted, "{row}");
        }
    }

    #[test]
    fn the_commands_that_help() {
        let commands = |run: &Maintenance| -> Vec<String> {
            let empty = MaintenanceStatus::default();
            needs_of(run, run.status.as_ref().unwrap_or(&empty)).into_iter().map(|(command, _)| command).collect()
        };
        let mut external = record("Returning", |_| {});
        external.spec.action = "external".into();
        let mut done = external.clone();
        done.spec.action_done = Some(Word::default());
        let mut program = external.clone();
        program.spec.command_waits = true;
        let resume = [
            "maint resume worker2-x7k2m",
            "maint resume worker2-x7k2m --accept",
            "maint cancel worker2-x7k2m --accept",
        ];
        let red = |status: &mut MaintenanceStatus| {
            status.outcome = "KubeletUnreachable".into();
            status.matrix = Some(MatrixRecord { broken: vec!["a -> b".into()], ..MatrixRecord::default() });
        };
        let mut all_red = vec!["maint explain KubeletUnreachable", "maint matrix"];
        all_red.extend(resume);
        let rows: Vec<(&str, Maintenance, Vec<&str>)> = vec![
            ("held by a red path", record("Held", red), all_red),
            ("held, no runbook", record("Held", |s| s.outcome = "NodeNotBack".into()), resume.to_vec()),
            ("on hold", record("Held", |s| s.outcome = "NodeOnHold".into()), vec!["maint release worker2"]),
            ("a person acts", external, vec!["maint done worker2-x7k2m"]),
            ("he said so", done, vec![]),
            ("a program acts", program, vec![]),
            ("halted", record("Draining", |s| s.halted_since = Some("t".into())), vec!["maint unhalt"]),
            (
                "their cordon",
                record("Succeeded", |s| s.node = Some(NodeRecord { was_unschedulable: true, ..Default::default() })),
                vec!["kubectl uncordon worker2"],
            ),
            ("fine", record("Succeeded", |_| {}), vec![]),
            ("on its way", record("Draining", |_| {}), vec![]),
        ];
        for (row, run, wanted) in rows {
            assert_eq!(commands(&run), wanted, "{row}");
        }
    }

    #[test]
    fn a_held_run_tells_everything() {
        let mut run = record("Held", |status| {
            status.outcome = "KubeletUnreachable".into();
            status.message = "worker1 cannot reach the kubelet of worker2".into();
            status.node = Some(NodeRecord {
                boot_id_before: "b1".into(),
                boot_id_after: "b2".into(),
                kernel_before: "6.8".into(),
                kernel_after: "6.8".into(),
                ..NodeRecord::default()
            });
            status.timeline =
                vec![TimelineEntry { at: "2026-11-30T01:20:00Z".into(), phase: "Held".into(), message: "red".into() }];
            status.findings = vec![FindingRecord {
                gate: "kubelet-reachability".into(),
                status: "block".into(),
                reason: "KubeletUnreachable".into(),
                message: "1 of 9".into(),
                since: None,
                evidence: vec![EvidenceRecord {
                    object: "worker1 -> worker2".into(),
                    field: "dial".into(),
                    value: "502".into(),
                    wanted: "whole".into(),
                }],
            }];
            status.drain = Some(DrainRecord { planned: 12, evicted: 12, ..DrainRecord::default() });
            status.matrix = Some(MatrixRecord { before: "9/9".into(), after: "8/9".into(), broken: vec!["a".into()] });
            status.dns = Some(DnsRecord { min_ready: 1, changes: 2, ..DnsRecord::default() });
            status.warnings = vec!["odd".into()];
            status.outbox = vec![OutboxEntry {
                kind: "held".into(),
                severity: "critical".into(),
                created_at: "2026-11-30T01:20:00Z".into(),
                delivered_to: vec!["slack".into()],
                pending: vec![PendingDelivery { receiver: "hook".into(), attempts: 2, ..PendingDelivery::default() }],
                ..OutboxEntry::default()
            }];
        });
        run.spec.cancel = Some(Word { by: "ben".into(), at: "2026-11-30T01:21:00Z".into(), ..Word::default() });
        let wanted = "\
× worker2-x7k2m HELD (KubeletUnreachable) since 00:10:00 (01:20:00Z): worker1 cannot reach the kubelet of worker2
  node worker2, scope reboot, strategy drain, action pod, manual, asked by anna@desk: kernel update

needs you
  maint explain KubeletUnreachable     what it means and what helps
  maint matrix                         ask every path again
  maint resume worker2-x7k2m           verify again now, go on when green
  maint resume worker2-x7k2m --accept  go on as if green
  maint cancel worker2-x7k2m --accept  uncordon unproven and end it

node
  boot ID  b1 -> b2
  kernel   6.8 (the same)

timeline
  2026-11-30T01:20:00Z  +00:20:00  Held  red

findings
  × kubelet-reachability (KubeletUnreachable): 1 of 9
      worker1 -> worker2: dial is 502, wanted whole

drain
  12 pods planned, 12 evicted, 0 left

matrix
  9/9 before, 8/9 after
  a

dns
  never below 1 ready endpoints, 2 changes

words
  cancel  2026-11-30T01:21:00Z  by ben

warnings
  odd

messages
  2026-11-30T01:20:00Z  critical  held  delivered to slack; hook waits after 2 tries
";
        assert_eq!(story(&run, Paint::PLAIN, at("01:30:00")), wanted);
    }

    #[test]
    fn a_new_record_tells_what_it_can() {
        let mut run = record("Pending", |_| {});
        run.status = None;
        let text = story(&run, Paint::PLAIN, at("01:30:00"));
        assert!(text.ends_with("asked by anna@desk: kernel update\n\nneeds you: no\n"), "{text}");
        let document = serde_json::to_value(RunDocument::new(&run, at("01:30:00"))).expect("JSON");
        assert_eq!(document["kind"], "MaintenanceResult");
        assert_eq!(document["metadata"]["name"], "worker2-x7k2m");
        assert_eq!(document["spec"]["nodeName"], "worker2");
        assert!(document["status"].is_null());
    }
}
