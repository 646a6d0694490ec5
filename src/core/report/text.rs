//! The report as text: the verdict first, then why, then the command that helps.
//!
//! Columns are aligned by hand and no line is wrapped here: a terminal wraps a long sentence better than we would.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::check::{CheckReport, FindingReport, NodeReport, NotAsked};
use super::paint::{Paint, tame};
use crate::api::{Evidence, GateId, Status};
use crate::gates::Verdict;

/// Names that a summary line spells out; the rest is counted.
const NAMES_IN_A_LINE: usize = 5;
/// Pieces of evidence that text shows a finding; all of them are in the JSON.
const EVIDENCE_LINES: usize = 5;

/// The text of a check.
#[must_use]
pub fn check(report: &CheckReport, paint: Paint) -> String {
    let mut text = String::new();
    let view = View { report, paint };
    match report.nodes.as_slice() {
        [node] => view.one(&mut text, node),
        nodes => view.several(&mut text, nodes),
    }
    push_not_asked(&mut text, &report.not_asked);
    text
}

/// `00:07:12 (01:23:45Z)`: how long it has been so and since when; with the date where that is not today's.
#[must_use]
pub fn since(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs();
    let clock = since.strftime("%H:%M:%SZ");
    if seconds < 0 {
        return format!("in the future ({since})");
    }
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let time = format!("{:02}:{:02}:{:02}", rest / 3_600, rest % 3_600 / 60, rest % 60);
    if days > 0 {
        return format!("{days}d {time} ({}T{clock})", since.strftime("%Y-%m-%d"));
    }
    format!("{time} ({clock})")
}

struct View<'a> {
    report: &'a CheckReport,
    paint: Paint,
}

impl View<'_> {
    fn one(&self, text: &mut String, node: &NodeReport) {
        push(text, &self.headline(node));
        self.context(text);
        push(text, "");
        self.findings(text, node.findings.iter());
    }

    fn several(&self, text: &mut String, nodes: &[NodeReport]) {
        push(text, &self.summary(nodes));
        self.context(text);
        let common = common(nodes);
        for node in nodes {
            let mut own =
                node.findings.iter().filter(|finding| !is_fine(finding) && !common.contains(finding)).peekable();
            // A node that is fine of its own is in the summary already.
            if own.peek().is_some() {
                push(text, "");
                push(text, &self.headline(node));
                self.findings(text, own);
            }
        }
        push(text, "");
        push(text, "every node");
        for gate in GateId::ALL {
            let of = |node: &&NodeReport| node.findings.iter().any(|finding| finding.id == *gate && is_fine(finding));
            if let Some(shared) = common.iter().find(|finding| finding.id == *gate) {
                self.finding(text, shared);
            } else if nodes.iter().all(|node| of(&node)) {
                // Fine everywhere, in other words for each: the words are in the JSON and in the check of one node.
                let (mark, width) = (self.paint.mark(Status::Pass), gate_width());
                push(text, &format!("  {mark} {gate:width$}  holds for each node"));
            }
        }
    }

    /// `worker2 BLOCKED by longhorn-volumes (LonghornVolumeRebuilding)`
    fn headline(&self, node: &NodeReport) -> String {
        let of = |status: Status| node.findings.iter().filter(move |finding| finding.status == status);
        let mut more: Vec<String> = Vec::new();
        let (status, mut line) = match (node.verdict, of(Status::Block).next(), of(Status::Unknown).next()) {
            (Verdict::Blocked, Some(first), _) => {
                let others = of(Status::Block).count() - 1;
                if others > 0 {
                    more.push(format!("{others} more"));
                }
                if of(Status::Unknown).count() > 0 {
                    more.push(format!("{} unknown", of(Status::Unknown).count()));
                }
                (Status::Block, format!("BLOCKED by {} ({})", first.id, first.reason))
            }
            (Verdict::Unknown, _, Some(first)) => {
                let others = of(Status::Unknown).count() - 1;
                if others > 0 {
                    more.push(format!("{others} more"));
                }
                (Status::Unknown, format!("UNKNOWN because of {} ({})", first.id, first.reason))
            }
            _ => (Status::Pass, format!("CLEAR for {}", self.report.question.scope)),
        };
        match of(Status::Warn).count() {
            0 => {}
            1 => more.push("1 warning".to_owned()),
            warnings => more.push(format!("{warnings} warnings")),
        }
        if !more.is_empty() {
            let _ = write!(line, ", {}", more.join(", "));
        }
        format!("{} {}", tame(&node.name), self.paint.status(status, &line))
    }

    /// `BLOCKED worker1; clear worker2, worker3`
    fn summary(&self, nodes: &[NodeReport]) -> String {
        if nodes.is_empty() {
            return self.paint.status(Status::Unknown, "UNKNOWN no node was judged");
        }
        let parts: Vec<String> = [
            (Verdict::Blocked, Status::Block, "BLOCKED"),
            (Verdict::Unknown, Status::Unknown, "UNKNOWN"),
            (Verdict::Clear, Status::Pass, "CLEAR"),
        ]
        .into_iter()
        .filter_map(|(verdict, status, word)| {
            let named: Vec<String> =
                nodes.iter().filter(|node| node.verdict == verdict).map(|node| tame(&node.name)).collect();
            (!named.is_empty()).then(|| format!("{} {}", self.paint.status(status, word), some_of(&named)))
        })
        .collect();
        parts.join("; ")
    }

    fn context(&self, text: &mut String) {
        let report = self.report;
        let question = &report.question;
        let now = report.now.strftime("%Y-%m-%dT%H:%M:%SZ");
        for line in [
            format!(
                "scope {}, strategy {} ({}), moment {}, {}",
                question.scope, question.strategy, question.strategy_reason, question.moment, question.trigger
            ),
            format!(
                "{} {}, judged at {now} ({})",
                report.source.kind,
                report.source.name,
                report.source.clock.describe()
            ),
        ] {
            push(text, &format!("  {}", self.paint.dim(&tame(&line))));
        }
    }

    fn findings<'f>(&self, text: &mut String, findings: impl Iterator<Item = &'f FindingReport>) {
        for finding in findings {
            self.finding(text, finding);
        }
    }

    fn finding(&self, text: &mut String, finding: &FindingReport) {
        push_finding(text, finding, self.paint, self.report.now);
    }
}

/// What this input could not answer.
pub(super) fn push_not_asked(text: &mut String, not_asked: &[NotAsked]) {
    if not_asked.is_empty() {
        return;
    }
    push(text, "");
    push(text, "not asked, since only a live cluster can answer (this does not count for the exit code)");
    for entry in not_asked {
        let gates: Vec<&str> = entry.gates.iter().map(|gate| gate.as_str()).collect();
        push(text, &format!("  {:12}  {} (gate {})", entry.source.as_str(), entry.what, gates.join(", ")));
    }
}

/// One finding: a line, and for what stops or warns what it was seen on and where to read on.
pub(super) fn push_finding(text: &mut String, finding: &FindingReport, paint: Paint, now: Timestamp) {
    let width = gate_width();
    let indent = " ".repeat(2 + paint.mark_width() + 1 + width + 2);
    let fine = is_fine(finding);
    let reason = if fine { String::new() } else { format!("{}: ", finding.reason) };
    let message = if finding.message.is_empty() { "holds" } else { &finding.message };
    let mut line = format!("  {} {:width$}  {reason}{}", paint.mark(finding.status), finding.id, tame(message));
    if let (Some(instant), false) = (finding.since, fine) {
        let _ = write!(line, ", since {}", since(instant, now));
    }
    push(text, &line);
    // Passes stay short; what stops or warns shows what it was seen on and where to read on.
    if fine {
        return;
    }
    for evidence in finding.evidence.iter().take(EVIDENCE_LINES) {
        push(text, &format!("{indent}{}", paint.dim(&seen(evidence))));
    }
    let left_out = finding.evidence.len().saturating_sub(EVIDENCE_LINES) + finding.evidence_left_out;
    if left_out > 0 {
        push(text, &format!("{indent}{}", paint.dim(&format!("and {left_out} more, see -o json"))));
    }
    if let Some(hint) = &finding.hint {
        push(text, &format!("{indent}{hint}"));
    }
}

/// What all nodes share, in table order. Findings that were not asked are told at the end only if all share them.
fn common(nodes: &[NodeReport]) -> Vec<&FindingReport> {
    let Some((first, rest)) = nodes.split_first() else { return Vec::new() };
    if rest.is_empty() {
        return Vec::new();
    }
    first.findings.iter().filter(|finding| rest.iter().all(|node| node.findings.contains(finding))).collect()
}

const fn is_fine(finding: &FindingReport) -> bool {
    matches!(finding.status, Status::Pass | Status::NotApplicable)
}

fn seen(evidence: &Evidence) -> String {
    let Evidence { object, field, value, wanted } = evidence;
    tame(&format!("{object}: {field} is {value}, wanted {wanted}"))
}

fn some_of(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_IN_A_LINE).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_IN_A_LINE) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn gate_width() -> usize {
    GateId::ALL.iter().map(|gate| gate.as_str().len()).max().unwrap_or(0)
}

pub(super) fn push(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::super::{Clock, Origin, Paint, Question};
    use super::*;
    use crate::api::{Finding, Moment, Reason, Strategy, Trigger};
    use crate::report::Glyphs;

    fn now() -> Timestamp {
        "2026-11-30T01:30:57Z".parse().expect("a time")
    }

    fn finding(gate: GateId, status: Status, reason: Reason, message: &str) -> Finding {
        let evidence = match status {
            Status::Pass | Status::NotApplicable => Vec::new(),
            _ => vec![Evidence::new("Node a", "status.x", "1", "2")],
        };
        Finding {
            gate,
            status,
            reason,
            message: message.to_owned(),
            evidence,
            evidence_left_out: 0,
            observed_at: Some(now()),
            since: (status == Status::Block).then(|| "2026-11-30T01:23:45Z".parse().expect("a time")),
        }
    }

    fn report(answers: Vec<(&str, Vec<Finding>)>) -> CheckReport {
        let question = Question {
            scope: "reboot".to_owned(),
            strategy: Strategy::Drain,
            strategy_reason: "the scope's own".to_owned(),
            moment: Moment::Start,
            trigger: Trigger::Unattended,
        };
        let source = Origin { kind: "dump", name: "d".to_owned(), clock: Clock::Given };
        let answers = answers.into_iter().map(|(node, findings)| (node.to_owned(), findings)).collect();
        CheckReport::new(now(), now(), source, question, answers, &[])
    }

    fn blocked() -> Finding {
        finding(GateId::LonghornVolumes, Status::Block, Reason::LonghornVolumeRebuilding, "volume v rebuilds")
    }

    fn pass() -> Finding {
        finding(GateId::Control, Status::Pass, Reason::Passed, "no halt")
    }

    #[test]
    fn the_verdict_comes_first_then_why_then_the_command() {
        let text = check(&report(vec![("worker2", vec![pass(), blocked()])]), Paint::PLAIN);
        let wanted = "\
worker2 BLOCKED by longhorn-volumes (LonghornVolumeRebuilding)
  scope reboot, strategy drain (the scope's own), moment start, unattended
  dump d, judged at 2026-11-30T01:30:57Z (as given by --now)

  √ control               no halt
  × longhorn-volumes      LonghornVolumeRebuilding: volume v rebuilds, since 00:07:12 (01:23:45Z)
                          Node a: status.x is 1, wanted 2
                          maint explain LonghornVolumeRebuilding
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn headlines() {
        let unknown = || finding(GateId::Target, Status::Unknown, Reason::ObservationFailed, "u");
        let warn = || finding(GateId::Control, Status::Warn, Reason::PostCheckMissing, "w");
        let rows: [(&str, Vec<Finding>, &str); 5] = [
            ("clear", vec![pass()], "n CLEAR for reboot"),
            ("clear with a warning", vec![pass(), warn()], "n CLEAR for reboot, 1 warning"),
            ("unknown", vec![unknown(), warn()], "n UNKNOWN because of target (ObservationFailed), 1 warning"),
            (
                "a block wins over an unknown, both are told",
                vec![unknown(), blocked()],
                "n BLOCKED by longhorn-volumes (LonghornVolumeRebuilding), 1 unknown",
            ),
            (
                "two blocks and two warnings",
                vec![blocked(), blocked(), warn(), warn()],
                "n BLOCKED by longhorn-volumes (LonghornVolumeRebuilding), 1 more, 2 warnings",
            ),
        ];
        for (name, findings, wanted) in rows {
            let text = check(&report(vec![("n", findings)]), Paint::PLAIN);
            assert_eq!(text.lines().next(), Some(wanted), "{name}");
        }
    }

    #[test]
    fn what_all_nodes_share_is_told_once() {
        let report = report(vec![("a", vec![pass(), blocked()]), ("b", vec![pass()])]);
        let text = check(&report, Paint { glyphs: Glyphs::Ascii, colour: false });
        assert_eq!(text.lines().next(), Some("BLOCKED a; CLEAR b"));
        assert_eq!(text.matches("no halt").count(), 1, "{text}");
        assert!(text.contains("every node\n  OK    control               no halt\n"), "{text}");
        assert_eq!(report.verdict, Verdict::Blocked);
    }

    #[test]
    fn what_is_fine_in_other_words_is_told_once_too() {
        let pass = |message: &str| finding(GateId::Target, Status::Pass, Reason::Passed, message);
        let text =
            check(&report(vec![("a", vec![pass("a is fine"), blocked()]), ("b", vec![pass("b is")])]), Paint::PLAIN);
        assert!(text.contains("every node\n  √ target                holds for each node\n"), "{text}");
        assert!(!text.contains("b is") && !text.contains("a is fine"), "{text}");
    }

    #[test]
    fn no_node_is_unknown() {
        let report = report(vec![]);
        assert_eq!(report.verdict, Verdict::Unknown);
        assert!(check(&report, Paint::PLAIN).starts_with("UNKNOWN"));
    }

    #[test]
    fn durations() {
        let rows = [
            ("2026-11-30T01:30:57Z", "00:00:00 (01:30:57Z)"),
            ("2026-11-29T01:30:58Z", "23:59:59 (01:30:58Z)"),
            ("2026-11-27T20:00:00Z", "2d 05:30:57 (2026-11-27T20:00:00Z)"),
            ("2026-11-30T01:31:00Z", "in the future (2026-11-30T01:31:00Z)"),
        ];
        for (instant, wanted) in rows {
            assert_eq!(since(instant.parse().expect("a time"), now()), wanted, "{instant}");
        }
    }

    #[test]
    fn names_from_the_cluster_are_tamed() {
        let text = check(&report(vec![("a\u{1b}[31m", vec![pass()])]), Paint::PLAIN);
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
