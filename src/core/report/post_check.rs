//! The answer of `maint post-check`, as text, Markdown and JSON.
//!
//! The verdict comes first, then what is worst with the command that helps, what is fine in a line each, and what this
//! input could not answer.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Serialize;

use super::check::{NotAsked, Origin};
use super::paint::{Paint, tame};
use super::table::length;
use super::text::{push, push_not_asked, since};
use crate::api::{Evidence, Moment, Reason, Status, names};
use crate::gates::Verdict;
use crate::post_check::{Line, PostCheck, ids};

/// Pieces of evidence that text shows a line; all of them are in the JSON.
const EVIDENCE_LINES: usize = 5;

/// How the waiting went.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waited {
    /// How long it was looked, in seconds.
    pub seconds: u64,
    /// How long it had to be well without a break, in seconds.
    pub settle_seconds: u64,
    /// How long it has been well without a break, in seconds; none if it is not well.
    pub clear_seconds: Option<u64>,
    /// It was well for long enough; true also where it was asked once.
    pub settled: bool,
}

/// The whole answer: additive within `maint.dev/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PostCheckReport {
    /// [`names::OUTPUT_API_VERSION`]
    pub api_version: &'static str,
    /// `PostCheckReport`
    pub kind: &'static str,
    /// When this document was made.
    pub generated_at: Timestamp,
    /// The instant of the last look.
    pub now: Timestamp,
    /// Where the facts came from.
    pub source: Origin,
    /// Blocks win over unknowns. Clear, but not for long enough, is told by `waited`.
    pub verdict: Verdict,
    /// The nodes that were asked for; all if there is none.
    pub nodes: Vec<String>,
    /// How the waiting went.
    pub waited: Waited,
    /// What was looked at, worst first.
    pub lines: Vec<LineReport>,
    /// What this input could not answer. It does not count for the verdict.
    pub not_asked: Vec<NotAsked>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LineReport {
    /// Id of the gate, or of what is no gate.
    pub id: &'static str,
    /// How it is.
    pub status: Status,
    /// The one reason.
    pub reason: Reason,
    /// A sentence.
    pub message: String,
    /// What it was seen on.
    pub evidence: Vec<Evidence>,
    /// How many pieces of evidence were left out.
    pub evidence_left_out: usize,
    /// Since when it is so, where the API tells.
    pub since: Option<Timestamp>,
    /// Until when it waits for something that comes by itself.
    pub until: Option<Timestamp>,
    /// The command that explains the reason; none for what is fine.
    pub hint: Option<String>,
}

impl From<Line> for LineReport {
    fn from(line: Line) -> Self {
        // Without `..`, so that a new field cannot be forgotten.
        let Line { id, status, reason, message, evidence, evidence_left_out, since, until } = line;
        let hint = (!is_fine(status)).then(|| format!("maint explain {reason}"));
        Self { id, status, reason, message, evidence, evidence_left_out, since, until, hint }
    }
}

const fn is_fine(status: Status) -> bool {
    matches!(status, Status::Pass | Status::NotApplicable)
}

impl PostCheckReport {
    /// Makes the report of the last look.
    #[must_use]
    pub fn new(
        check: PostCheck,
        source: Origin,
        nodes: Vec<String>,
        waited: Waited,
        now: Timestamp,
        generated_at: Timestamp,
    ) -> Self {
        let PostCheck { verdict, lines, not_asked } = check;
        Self {
            api_version: names::OUTPUT_API_VERSION,
            kind: "PostCheckReport",
            generated_at,
            now,
            source,
            verdict,
            nodes,
            waited,
            lines: lines.into_iter().map(LineReport::from).collect(),
            not_asked: not_asked.into_iter().filter_map(|source| NotAsked::of(source, Moment::Settle)).collect(),
        }
    }

    fn count(&self, status: Status) -> usize {
        self.lines.iter().filter(|line| line.status == status).count()
    }

    /// `BLOCKED`, and the rest of the first line.
    fn headline(&self) -> (Status, &'static str, String) {
        let first = |status: Status| {
            let line = self.lines.iter().find(|line| line.status == status);
            line.map_or_else(String::new, |line| format!("{} ({})", line.id, line.reason))
        };
        let (blocks, unknowns) = (self.count(Status::Block), self.count(Status::Unknown));
        let mut more = Vec::new();
        let (status, word, told) = match self.verdict {
            Verdict::Blocked => {
                if blocks > 1 {
                    more.push(format!("{} more", blocks - 1));
                }
                if unknowns > 0 {
                    more.push(format!("{unknowns} unknown"));
                }
                (Status::Block, "BLOCKED", format!("by {}", first(Status::Block)))
            }
            Verdict::Unknown => {
                if unknowns > 1 {
                    more.push(format!("{} more", unknowns - 1));
                }
                (Status::Unknown, "UNKNOWN", format!("because of {}", first(Status::Unknown)))
            }
            Verdict::Clear if !self.waited.settled => {
                let so_far = self.waited.clear_seconds.unwrap_or_default();
                let told = format!("but only for {so_far} s, wanted {} s", self.waited.settle_seconds);
                (Status::Warn, "CLEAR", told)
            }
            Verdict::Clear => {
                let fine = self.count(Status::Pass) + self.count(Status::Warn);
                let held = match self.waited.clear_seconds {
                    Some(seconds) if seconds > 0 => format!(", and they held for {seconds} s"),
                    _ => String::new(),
                };
                (Status::Pass, "CLEAR", format!("{fine} things that were looked at hold{held}"))
            }
        };
        match self.count(Status::Warn) {
            0 => {}
            1 => more.push("1 warning".to_owned()),
            warnings => more.push(format!("{warnings} warnings")),
        }
        let more = if more.is_empty() { String::new() } else { format!(", {}", more.join(", ")) };
        (status, word, format!("{told}{more}"))
    }

    fn context(&self) -> String {
        let source = &self.source;
        let now = self.now.strftime("%Y-%m-%dT%H:%M:%SZ");
        let waited = match self.waited.seconds {
            0 => String::new(),
            seconds => format!(", looked for {seconds} s"),
        };
        let nodes = if self.nodes.is_empty() { String::new() } else { format!(", nodes {}", self.nodes.join(", ")) };
        format!("{} {}, judged at {now} ({}){waited}{nodes}", source.kind, source.name, source.clock.describe())
    }

    /// Since when, or until when.
    fn when(&self, line: &LineReport) -> String {
        let mut told = String::new();
        if let (Some(instant), false) = (line.since, is_fine(line.status)) {
            let _ = write!(told, ", since {}", since(instant, self.now));
        }
        if let Some(until) = line.until {
            let left = until.duration_since(self.now).as_secs();
            let _ = write!(told, "; it waits until {} (in {})", until.strftime("%H:%M:%SZ"), length(left));
        }
        told
    }
}

/// What maint does about it, at the end of what is not well.
const NOTHING_DONE: &str = "nothing was restarted, uncordoned or written: maint only reports, a person decides";

/// The text.
#[must_use]
pub fn post_check(report: &PostCheckReport, paint: Paint) -> String {
    let (status, word, told) = report.headline();
    let mut text = String::new();
    push(&mut text, &format!("{} {}", paint.status(status, word), tame(&told)));
    push(&mut text, &format!("  {}", paint.dim(&tame(&report.context()))));
    push(&mut text, "");
    let width = ids().into_iter().map(str::len).max().unwrap_or_default();
    let indent = " ".repeat(2 + paint.mark_width() + 1 + width + 2);
    for line in &report.lines {
        let reason = if is_fine(line.status) { String::new() } else { format!("{}: ", line.reason) };
        let message = tame(&format!("{reason}{}{}", line.message, report.when(line)));
        push(&mut text, &format!("  {} {:width$}  {message}", paint.mark(line.status), line.id));
        if is_fine(line.status) {
            continue;
        }
        for Evidence { object, field, value, wanted } in line.evidence.iter().take(EVIDENCE_LINES) {
            let seen = tame(&format!("{object}: {field} is {value}, wanted {wanted}"));
            push(&mut text, &format!("{indent}{}", paint.dim(&seen)));
        }
        let left_out = line.evidence.len().saturating_sub(EVIDENCE_LINES) + line.evidence_left_out;
        if left_out > 0 {
            push(&mut text, &format!("{indent}{}", paint.dim(&format!("and {left_out} more, see -o json"))));
        }
        if let Some(hint) = &line.hint {
            push(&mut text, &format!("{indent}{hint}"));
        }
    }
    push_not_asked(&mut text, &report.not_asked);
    if report.verdict != Verdict::Clear {
        push(&mut text, "");
        push(&mut text, NOTHING_DONE);
    }
    text
}

/// The same as Markdown, for a ticket or a chat.
#[must_use]
pub fn post_check_markdown(report: &PostCheckReport) -> String {
    let (_, word, told) = report.headline();
    let mut text = String::new();
    push(&mut text, &format!("## Post-check: {word} {}", escaped(&told)));
    push(&mut text, "");
    push(&mut text, &escaped(&report.context()));
    push(&mut text, "");
    push(&mut text, "| | what | answer |");
    push(&mut text, "|---|---|---|");
    for line in &report.lines {
        let reason = if is_fine(line.status) { String::new() } else { format!("**{}**: ", line.reason) };
        let message = escaped(&format!("{}{}", line.message, report.when(line)));
        let hint = line.hint.as_ref().map(|hint| format!("<br>`{hint}`")).unwrap_or_default();
        let mark = Paint::PLAIN.mark(line.status);
        push(&mut text, &format!("| {mark} | {} | {reason}{message}{hint} |", line.id));
    }
    for entry in &report.not_asked {
        push(&mut text, &format!("| – | {} | not asked: {} |", entry.source, entry.what));
    }
    if report.verdict != Verdict::Clear {
        push(&mut text, "");
        push(&mut text, NOTHING_DONE);
    }
    text
}

/// Text of the cluster that makes no table, link, tag or heading of its own.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in tame(text).chars() {
        match letter {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' => {
                safe.push('\\');
                safe.push(letter);
            }
            _ => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests;
