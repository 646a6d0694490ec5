//! The answer of `maint doctor`.

use jiff::Timestamp;
use serde::Serialize;

use super::check::Origin;
use super::paint::{Paint, tame};
use super::text::push;
use crate::api::{Evidence, Reason, Status, names};
use crate::doctor::{Answer, Family, FamilyId};
use crate::gates::Verdict;

/// Pieces of evidence that text shows an answer; all of them are in the JSON.
const EVIDENCE_LINES: usize = 5;

/// The whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DoctorReport {
    /// `maint.dev/v1`
    pub api_version: &'static str,
    /// `DoctorReport`
    pub kind: &'static str,
    /// When it was made.
    pub generated_at: Timestamp,
    /// The time that everything was judged at.
    pub now: Timestamp,
    /// Where the facts came from.
    pub source: Origin,
    /// The worst answer.
    pub verdict: Verdict,
    /// The families in order.
    pub checks: Vec<CheckReport>,
}

/// One family.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    /// Its id.
    pub id: FamilyId,
    /// What it looks at.
    pub doc: &'static str,
    /// What it found.
    pub findings: Vec<FindingReport>,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FindingReport {
    /// How it is.
    pub status: Status,
    /// The reason, where there is a runbook.
    pub reason: Option<Reason>,
    /// A sentence.
    pub message: String,
    /// What it was seen on.
    pub evidence: Vec<Evidence>,
    /// What to do.
    pub remedy: Vec<String>,
    /// The command that explains the reason.
    pub hint: Option<String>,
}

impl From<Answer> for FindingReport {
    fn from(answer: Answer) -> Self {
        // Without `..`, so that a new field cannot be forgotten.
        let Answer { status, reason, message, evidence, remedy } = answer;
        Self { status, reason, message, evidence, remedy, hint: reason.map(|reason| format!("maint explain {reason}")) }
    }
}

impl DoctorReport {
    /// Builds the report from what the families answered.
    #[must_use]
    pub fn new(
        generated_at: Timestamp,
        now: Timestamp,
        source: Origin,
        answers: Vec<(&'static Family, Vec<Answer>)>,
    ) -> Self {
        let checks: Vec<CheckReport> = answers
            .into_iter()
            .map(|(family, answers)| CheckReport {
                id: family.id,
                doc: family.doc,
                findings: answers.into_iter().map(FindingReport::from).collect(),
            })
            .collect();
        let worst = checks.iter().flat_map(|check| &check.findings).map(|finding| finding.status).max();
        let verdict = match worst {
            Some(Status::Block) => Verdict::Blocked,
            Some(Status::Unknown) | None => Verdict::Unknown,
            Some(_) => Verdict::Clear,
        };
        Self {
            api_version: names::OUTPUT_API_VERSION,
            kind: "DoctorReport",
            generated_at,
            now,
            source,
            verdict,
            checks,
        }
    }

    fn count(&self, status: Status) -> usize {
        self.checks.iter().flat_map(|check| &check.findings).filter(|finding| finding.status == status).count()
    }
}

/// The text of a visit.
#[must_use]
pub fn doctor(report: &DoctorReport, paint: Paint) -> String {
    let mut text = format!("{}\n", headline(report, paint));
    let now = report.now.strftime("%Y-%m-%dT%H:%M:%SZ");
    let source = &report.source;
    let context = format!("{} {}, judged at {now} ({})", source.kind, source.name, source.clock.describe());
    push(&mut text, &format!("  {}", paint.dim(&tame(&context))));
    for check in &report.checks {
        push(&mut text, "");
        push(&mut text, &format!("{}: {}", check.id, check.doc));
        for finding in &check.findings {
            one(&mut text, finding, paint);
        }
    }
    text
}

fn headline(report: &DoctorReport, paint: Paint) -> String {
    let (blocks, unknowns, warnings) =
        (report.count(Status::Block), report.count(Status::Unknown), report.count(Status::Warn));
    let some = |count: usize, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {many}")),
    };
    let (status, word) = match report.verdict {
        Verdict::Blocked => (Status::Block, "NOT READY"),
        Verdict::Unknown => (Status::Unknown, "UNKNOWN"),
        Verdict::Clear => (Status::Pass, "READY"),
    };
    let parts: Vec<String> = [
        some(blocks, "thing to change", "things to change"),
        some(unknowns, "not known", "not known"),
        some(warnings, "warning", "warnings"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let told = if parts.is_empty() { "nothing to change".to_owned() } else { parts.join(", ") };
    format!("{}: {told}", paint.status(status, word))
}

fn one(text: &mut String, finding: &FindingReport, paint: Paint) {
    let indent = " ".repeat(2 + paint.mark_width() + 1);
    let reason = finding.reason.map_or_else(String::new, |reason| format!("{reason}: "));
    push(text, &format!("  {} {reason}{}", paint.mark(finding.status), tame(&finding.message)));
    if matches!(finding.status, Status::Pass | Status::NotApplicable) {
        return;
    }
    for evidence in finding.evidence.iter().take(EVIDENCE_LINES) {
        let Evidence { object, field, value, wanted } = evidence;
        let seen = tame(&format!("{object}: {field} is {value}, wanted {wanted}"));
        push(text, &format!("{indent}{}", paint.dim(&seen)));
    }
    for remedy in &finding.remedy {
        push(text, &format!("{indent}{}", tame(remedy)));
    }
    if let Some(hint) = &finding.hint {
        push(text, &format!("{indent}{hint}"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Clock;
    use super::*;
    use crate::doctor::FAMILIES;

    fn answer(status: Status) -> Answer {
        Answer { status, reason: None, message: "m".into(), evidence: vec![], remedy: vec![] }
    }

    #[test]
    fn the_worst_answer_is_the_verdict() {
        let rows: [(&[Status], Verdict, &str); 6] = [
            (&[Status::Pass, Status::NotApplicable], Verdict::Clear, "READY: nothing to change"),
            (&[Status::Warn, Status::Warn], Verdict::Clear, "READY: 2 warnings"),
            (&[Status::Unknown], Verdict::Unknown, "UNKNOWN: 1 not known"),
            (
                &[Status::Unknown, Status::Block, Status::Warn],
                Verdict::Blocked,
                "NOT READY: 1 thing to change, 1 not known, 1 warning",
            ),
            (&[Status::Block, Status::Block], Verdict::Blocked, "NOT READY: 2 things to change"),
            (&[], Verdict::Unknown, "UNKNOWN: nothing to change"),
        ];
        for (statuses, verdict, headline) in rows {
            let origin = Origin { kind: "dump", name: "d".into(), clock: Clock::Given };
            let now: Timestamp = "2026-11-30T01:00:00Z".parse().expect("a time");
            let answers = statuses.iter().copied().map(answer).collect();
            let report = DoctorReport::new(now, now, origin, vec![(&FAMILIES[0], answers)]);
            assert_eq!(report.verdict, verdict, "{statuses:?}");
            assert!(doctor(&report, Paint::PLAIN).starts_with(&format!("{headline}\n")), "{statuses:?}");
        }
    }
}
