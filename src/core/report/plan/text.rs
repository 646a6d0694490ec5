//! The plan as text: the verdict first, then why and when, then what would be done.

use std::fmt::Write as _;

use super::super::paint::{Paint, tame};
use super::super::table::{length, table};
use super::super::text::{push, push_finding, push_not_asked, since};
use super::{PlanHead, PlanOrderReport, PlanReport};
use crate::api::Status;
use crate::drain::length as in_words;
use crate::preview::{BY_THE_CLOCK, Begin, Drain};

/// The last line of both.
const NOTHING_CHANGED: &str = "Nothing was changed.";

/// What would be done with one node.
#[must_use]
pub fn plan(report: &PlanReport, paint: Paint) -> String {
    let mut text = String::new();
    push(&mut text, &format!("{} {}", tame(&report.node), paint.status(report.status, &tame(&report.message))));
    let what = format!(
        "scope {}, strategy {} ({}), {}",
        report.scope, report.strategy, report.strategy_reason, report.trigger
    );
    push(&mut text, &format!("  {}", paint.dim(&tame(&what))));
    context(&mut text, &report.head, paint);
    push(&mut text, "");
    facts(&mut text, report);
    push(&mut text, "");
    gates(&mut text, report, paint);
    if let Some(drain) = &report.drain {
        push(&mut text, "");
        push(&mut text, "drain");
        match drain {
            Drain::Planned(plan) => indented(&mut text, &plan.to_string()),
            Drain::Unknown { unknown } => indented(&mut text, &format!("not known: {unknown}")),
        }
        for why in &report.unread {
            indented(&mut text, &format!("not known: {why}"));
        }
    }
    push(&mut text, "");
    push(&mut text, "what a run would do");
    text.push_str(&table(&steps(report)));
    push_not_asked(&mut text, &report.head.not_asked);
    push(&mut text, "");
    push(&mut text, NOTHING_CHANGED);
    text
}

/// Which node comes next.
#[must_use]
pub fn order(report: &PlanOrderReport, paint: Paint) -> String {
    let mut text = String::new();
    let (status, line) = match (&report.unknown, &report.next, report.nodes.len()) {
        (Some(why), ..) => (Status::Unknown, format!("UNKNOWN who wishes a reboot: {why}")),
        (None, None, 0) => (Status::Unknown, "UNKNOWN: there is no node to be judged".to_owned()),
        (None, Some(next), _) if report.wished => (Status::Pass, format!("NEXT {next}")),
        (None, None, _) if report.wished => (Status::Block, "NONE can begin now".to_owned()),
        (None, Some(next), _) => (Status::Pass, format!("NO NODE wishes a reboot; of all nodes {next} would be first")),
        (None, None, _) => (Status::Block, "NO NODE wishes a reboot, and none could begin now".to_owned()),
    };
    push(&mut text, &paint.status(status, &tame(&line)));
    context(&mut text, &report.head, paint);
    let leader = report.leader.as_ref().map_or_else(
        || "the node of maint's leader comes last; it is not known here".to_owned(),
        |node| format!("{node}, where maint's leader runs, comes last"),
    );
    let per_window = count_of(report.max_nodes_per_window);
    let order = format!(
        "the oldest wish first, {leader}; whoever is stopped by a gate is passed over; {per_window} begun in a window"
    );
    push(&mut text, &format!("  {}", paint.dim(&tame(&order))));
    let judged = "each node is judged as if it were the only one: once one has gone down, all others are judged anew";
    push(&mut text, &format!("  {}", paint.dim(judged)));
    push(&mut text, "");
    for run in &report.in_flight {
        push(&mut text, &tame(&format!("  in flight: {} is {} (maint show {})", run.node, run.phase, run.record)));
    }
    let width = report.nodes.iter().map(|node| node.node.chars().count()).max().unwrap_or_default();
    for node in &report.nodes {
        let mut line = format!("  {} {:width$}  {}", paint.mark(node.status), tame(&node.node), tame(&node.message));
        if let Some(drain) = &node.drain {
            let drained = drain.message.strip_prefix(&format!("{} ", node.node)).unwrap_or(&drain.message);
            let _ = write!(line, "; {}", tame(drained));
        } else {
            line.push_str("; evicts no pod");
        }
        push(&mut text, &line);
        if let Some(wish) = &node.wish {
            let waits = node.since.map_or_else(String::new, |at| format!(", since {}", since(at, report.head.now)));
            let indent = " ".repeat(2 + paint.mark_width() + 1 + width + 2);
            push(&mut text, &format!("{indent}{}", paint.dim(&tame(&format!("wish: {wish}{waits}")))));
        }
    }
    if let Some(first) = report.nodes.first() {
        push(&mut text, "");
        let whole = report.next.as_ref().unwrap_or(&first.node);
        push(&mut text, &tame(&format!("the whole plan of one: maint plan {whole}{}", report.arguments)));
    }
    push_not_asked(&mut text, &report.head.not_asked);
    push(&mut text, "");
    push(&mut text, NOTHING_CHANGED);
    text
}

fn count_of(nodes: u32) -> String {
    if nodes == 1 { "at most 1 node".to_owned() } else { format!("at most {nodes} nodes") }
}

fn context(text: &mut String, head: &PlanHead, paint: Paint) {
    let clock = head.source.clock.describe();
    let line = format!(
        "{} {}, judged at {} ({clock})",
        head.source.kind,
        head.source.name,
        head.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    );
    push(text, &format!("  {}", paint.dim(&tame(&line))));
    if let Some(at) = head.at {
        let line = format!(
            "windows, halt and holds as if it were {} (--at); all else is as it is at {now}, and may be otherwise then",
            at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            now = head.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        );
        push(text, &paint.status(Status::Warn, &format!("  {line}")));
    }
}

/// When, by whom, how long.
fn facts(text: &mut String, report: &PlanReport) {
    let judged = report.head.at.unwrap_or(report.head.now);
    let wait = match (report.begins.when, report.begins.at) {
        (Begin::Window, Some(at)) => format!(" (in {})", length(at.duration_since(judged).as_secs())),
        _ => String::new(),
    };
    let acts = report.acts.action.map_or_else(|| "nobody".to_owned(), |action| action.to_string());
    let drain = match &report.drain {
        Some(Drain::Planned(plan)) if plan.planned() + plan.never.len() == 0 => "nothing to drain; ".to_owned(),
        Some(Drain::Planned(plan)) => match plan.estimate_seconds {
            Some(seconds) => format!("the drain about {}; ", in_words(seconds)),
            None => "how long the drain takes cannot be said; ".to_owned(),
        },
        Some(Drain::Unknown { .. }) => "how long the drain takes is not known; ".to_owned(),
        None => String::new(),
    };
    let takes = format!("{drain}a whole run {} by the configuration", in_words(report.expected_duration_seconds));
    let wish = report.wish.as_ref().map_or_else(
        || format!("no record waits; to ask for it: {}", ask(report)),
        |name| format!("{name} (maint show {name})"),
    );
    let mut rows = vec![
        ["begins".to_owned(), format!("{}{wait}", report.begins.message)],
        ["acts".to_owned(), format!("{acts}: {}", report.acts.reason)],
        ["takes".to_owned(), takes],
        ["wish".to_owned(), wish],
    ];
    if let Some(run) = &report.in_flight {
        rows.push(["at work".to_owned(), format!("{} is {} (maint show {})", run.record, run.phase, run.record)]);
    }
    let rows: Vec<Vec<String>> = rows.into_iter().map(|row| row.map(|cell| tame(&cell)).to_vec()).collect();
    text.push_str(&table(&rows));
}

/// How a person asks for it.
fn ask(report: &PlanReport) -> String {
    let node = &report.node;
    match report.scope.as_str() {
        "reboot" => format!("maint reboot {node}"),
        scope if report.steps.iter().any(|step| step.what.contains("new boot ID")) => {
            format!("maint reboot {node} --scope {scope}")
        }
        scope => format!("maint run {node} --scope {scope} -- COMMAND"),
    }
}

fn gates(text: &mut String, report: &PlanReport, paint: Paint) {
    let gates = &report.gates;
    let warn = if gates.warnings == 1 { "1 warns".to_owned() } else { format!("{} warn", gates.warnings) };
    let stop = match gates.stopping.len() {
        0 => "none stops it".to_owned(),
        1 => "1 stops it".to_owned(),
        more => format!("{more} stop it"),
    };
    push(text, &format!("gates: {stop}, {warn}, {} fine; all of them: {}", gates.fine, tame(&gates.command)));
    for finding in &gates.stopping {
        let judged = report.head.at.filter(|_| BY_THE_CLOCK.contains(&finding.id)).unwrap_or(report.head.now);
        push_finding(text, finding, paint, judged);
    }
}

fn steps(report: &PlanReport) -> Vec<Vec<String>> {
    let row = |(step, number): (&crate::preview::Step, usize)| {
        let limit =
            step.limit_seconds.map_or_else(|| "-".to_owned(), |seconds| format!("at most {}", in_words(seconds)));
        let then = step.late.map_or_else(String::new, |then| format!("; {then}"));
        vec![number.to_string(), step.phase.to_string(), limit, tame(&format!("{}{then}", step.what))]
    };
    report.steps.iter().zip(1..).map(row).collect()
}

fn indented(text: &mut String, lines: &str) {
    for line in lines.lines() {
        push(text, &format!("  {}", tame(line)));
    }
}
