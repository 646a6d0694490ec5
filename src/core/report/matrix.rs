//! The answer of `maint matrix`: which API server reaches which kubelet, as text and JSON.
//!
//! The verdict comes first, then the table, then every pair that is not whole with what was answered, then whom to
//! suspect. Nothing is restarted by maint, and the text says so.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Serialize;

use crate::api::names;
use crate::facts::Observation;
use crate::matrix::pattern::{Judged, groups};
use crate::matrix::{ApiServer, Cell, CellVerdict, Matrix, Readiness};

crate::api::names! {
    /// What the matrix says as a whole.
    MatrixVerdict, "matrix verdict", {
        /// Every pair that was asked is whole, and every expected API server ready.
        Whole = "whole",
        /// A pair is broken, a kubelet unhealthy, or an API server not ready.
        Broken = "broken",
        /// Nothing is known to be broken, and something could not be judged.
        Unknown = "unknown",
    }
}

impl MatrixVerdict {
    /// Exit code of the command line: 0 whole, 3 broken, 4 unknown.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Whole => 0,
            Self::Broken => 3,
            Self::Unknown => 4,
        }
    }
}

/// What broken cells have in common, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Suspect {
    /// What is broken: a sentence without full stop.
    pub what: String,
    /// Whom to suspect, and what a person can do.
    pub advice: String,
}

impl Suspect {
    /// What the broken cells of a sweep have in common.
    #[must_use]
    pub fn of(matrix: &Matrix) -> Vec<Self> {
        let judged: Vec<Judged<'_>> = matrix
            .cells
            .iter()
            // A server that is down and an answer that proves nothing say nothing of a path.
            .filter(|cell| matches!(cell.verdict, CellVerdict::Green | CellVerdict::Unhealthy | CellVerdict::Broken))
            .map(|cell| Judged {
                server: &cell.server,
                node: &cell.node,
                diagonal: cell.diagonal,
                broken: cell.verdict == CellVerdict::Broken,
            })
            .collect();
        groups(&judged).iter().map(|group| Self { what: group.what(), advice: group.advice() }).collect()
    }
}

/// How many cells have each verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CellCounts {
    /// Whole.
    pub green: usize,
    /// Broken.
    pub broken: usize,
    /// The kubelet is not healthy, or refuses the API server.
    pub unhealthy: usize,
    /// The API server itself does not answer.
    pub server_down: usize,
    /// Not judged.
    pub unknown: usize,
    /// Pairs of the matrix that this sweep did not ask.
    pub not_asked: usize,
}

/// The answer of `maint matrix`: additive within `maint.dev/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MatrixReport {
    /// [`names::OUTPUT_API_VERSION`]
    pub api_version: &'static str,
    /// `MatrixReport`
    pub kind: &'static str,
    /// When this document was made.
    pub generated_at: Timestamp,
    /// The cluster that was asked: kubeconfig context and server.
    pub source: String,
    /// The worst of all.
    pub verdict: MatrixVerdict,
    /// Cells by verdict.
    pub counts: CellCounts,
    /// The expected API servers and what each said to `/readyz`.
    pub api_servers: Vec<ApiServer>,
    /// Columns: nodes by name.
    pub nodes: Vec<String>,
    /// The cells that were asked, rows first; none if there was no sweep.
    pub cells: Vec<Cell>,
    /// When the sweep began.
    pub swept_at: Option<Timestamp>,
    /// Why there are no API servers or no cells.
    pub problems: Vec<String>,
    /// What broken cells have in common.
    pub suspects: Vec<Suspect>,
}

/// How the text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// Only ASCII marks.
    pub ascii: bool,
    /// Colours.
    pub colour: bool,
}

/// Widest table that has nodes as columns, in characters; a wider one lists only the nodes that are not whole.
const TABLE_WIDTH: usize = 100;
/// Pairs that text spells out; all of them are in the JSON.
const PAIR_LINES: usize = 30;

impl MatrixReport {
    /// Makes the report of one observation.
    #[must_use]
    pub fn new(
        api_servers: &Observation<Vec<ApiServer>>,
        matrix: &Observation<Matrix>,
        suspects: Vec<Suspect>,
        source: String,
        generated_at: Timestamp,
    ) -> Self {
        let mut problems = Vec::new();
        let servers = known(api_servers, "the expected API servers", &mut problems);
        let matrix = known(matrix, "the matrix", &mut problems);
        let api_servers = servers.cloned().unwrap_or_default();
        let cells = matrix.map(|matrix| matrix.cells.clone()).unwrap_or_default();
        let nodes = matrix.map(|matrix| matrix.nodes.clone()).unwrap_or_default();
        let rows = matrix.map_or(0, |matrix| matrix.servers.len());
        if problems.is_empty() && cells.is_empty() {
            problems.push("no pair was asked".to_owned());
        }
        let counts = count(&cells, rows * nodes.len());
        let verdict = verdict(&counts, &api_servers, &problems);
        problems.dedup();
        Self {
            api_version: names::OUTPUT_API_VERSION,
            kind: "MatrixReport",
            generated_at,
            source,
            verdict,
            counts,
            api_servers,
            nodes,
            cells,
            swept_at: matrix.map(|matrix| matrix.swept_at),
            problems,
            suspects,
        }
    }
}

/// The value, or why there is none among the problems.
fn known<'a, T>(observation: &'a Observation<T>, what: &str, problems: &mut Vec<String>) -> Option<&'a T> {
    match observation {
        Observation::Known { value, .. } => return Some(value),
        Observation::Failed { kind, detail, .. } => problems.push(format!("{kind}: {detail}")),
        Observation::Absent { .. } => problems.push(format!("{what}: absent")),
        Observation::NotAsked => problems.push(format!("{what}: not asked")),
    }
    None
}

fn count(cells: &[Cell], pairs: usize) -> CellCounts {
    let mut counts = CellCounts { not_asked: pairs.saturating_sub(cells.len()), ..CellCounts::default() };
    for cell in cells {
        let counter = match cell.verdict {
            CellVerdict::Green => &mut counts.green,
            CellVerdict::Broken => &mut counts.broken,
            CellVerdict::Unhealthy => &mut counts.unhealthy,
            CellVerdict::ServerDown => &mut counts.server_down,
            CellVerdict::Unknown => &mut counts.unknown,
        };
        *counter += 1;
    }
    counts
}

fn verdict(counts: &CellCounts, servers: &[ApiServer], problems: &[String]) -> MatrixVerdict {
    let CellCounts { green: _, broken, unhealthy, server_down, unknown, not_asked: _ } = *counts;
    let down = servers
        .iter()
        .any(|server| matches!(server.readiness, Readiness::NotReady { .. } | Readiness::Unreachable { .. }));
    let unsure = servers.iter().any(|server| matches!(server.readiness, Readiness::Unknown { .. }));
    if broken + unhealthy + server_down > 0 || down {
        MatrixVerdict::Broken
    } else if unknown > 0 || unsure || !problems.is_empty() {
        MatrixVerdict::Unknown
    } else {
        MatrixVerdict::Whole
    }
}

/// The text of the report.
#[must_use]
pub fn text(report: &MatrixReport, style: Style) -> String {
    let view = View { report, style };
    let mut text = String::new();
    view.headline(&mut text);
    view.table(&mut text);
    view.servers(&mut text);
    view.pairs(&mut text);
    view.advice(&mut text);
    text
}

struct View<'a> {
    report: &'a MatrixReport,
    style: Style,
}

impl View<'_> {
    fn paint(&self, verdict: Option<CellVerdict>, text: &str) -> String {
        let code = match verdict {
            Some(CellVerdict::Green) => "32",
            Some(CellVerdict::Broken | CellVerdict::ServerDown) => "1;31",
            Some(CellVerdict::Unhealthy) => "33",
            Some(CellVerdict::Unknown) => "1;35",
            None => "2",
        };
        if self.style.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// The mark of a cell; the diagonal is in brackets, since k3s reaches its own kubelet without a tunnel.
    fn mark(&self, cell: Option<&Cell>) -> String {
        let verdict = cell.map(|cell| cell.verdict);
        let (unicode, ascii) = match verdict {
            Some(CellVerdict::Green) => ("√", "ok"),
            Some(CellVerdict::Broken) => ("×", "BROKEN"),
            Some(CellVerdict::Unhealthy) => ("!", "SICK"),
            Some(CellVerdict::ServerDown) => ("↓", "DOWN"),
            Some(CellVerdict::Unknown) => ("?", "?"),
            None => ("·", "-"),
        };
        let mark = if self.style.ascii { ascii } else { unicode };
        if cell.is_some_and(|cell| cell.diagonal) { format!("({mark})") } else { mark.to_owned() }
    }

    fn headline(&self, text: &mut String) {
        let report = self.report;
        let CellCounts { green, broken, unhealthy, server_down, unknown, not_asked } = report.counts;
        let (painted, word) = match report.verdict {
            MatrixVerdict::Whole => (CellVerdict::Green, "WHOLE"),
            MatrixVerdict::Broken => (CellVerdict::Broken, "BROKEN"),
            MatrixVerdict::Unknown => (CellVerdict::Unknown, "UNKNOWN"),
        };
        let mut parts = vec![format!("{green} of {} paths whole", report.cells.len())];
        for (number, what) in [
            (broken, "broken"),
            (unhealthy, "with an unhealthy kubelet"),
            (server_down, "from an API server that does not answer"),
            (unknown, "unknown"),
            (not_asked, "not asked"),
        ] {
            if number > 0 {
                parts.push(format!("{number} {what}"));
            }
        }
        line(text, &format!("{} {}", self.paint(Some(painted), word), parts.join(", ")));
        let (rows, columns) = (report.api_servers.len(), report.nodes.len());
        let swept = report.swept_at.map(|at| format!(", swept {}", at.strftime("%Y-%m-%dT%H:%M:%SZ")));
        line(
            text,
            &format!(
                "{rows} API servers x {columns} nodes{}, fresh connections, {}",
                swept.unwrap_or_default(),
                tame(&report.source)
            ),
        );
        for problem in &report.problems {
            line(text, &self.paint(Some(CellVerdict::Unknown), &format!("? {}", tame(problem))));
        }
    }

    fn cell(&self, server: &str, node: &str) -> Option<&Cell> {
        self.report.cells.iter().find(|cell| cell.server == server && cell.node == node)
    }

    /// Rows API servers, columns nodes; a wide matrix the other way round, with the nodes that are not whole.
    fn table(&self, text: &mut String) {
        let report = self.report;
        if report.cells.is_empty() {
            return;
        }
        let servers: Vec<&str> = report.api_servers.iter().map(|server| server.name.as_str()).collect();
        let nodes: Vec<&str> = report.nodes.iter().map(String::as_str).collect();
        let width = nodes.iter().map(|node| node.chars().count().max(8) + 2).sum::<usize>();
        line(text, "");
        if width <= TABLE_WIDTH {
            self.grid(text, "API server", &servers, &nodes, |server, node| self.cell(server, node));
        } else {
            let red: BTreeSet<&str> = report
                .cells
                .iter()
                .filter(|cell| cell.verdict != CellVerdict::Green)
                .map(|cell| cell.node.as_str())
                .collect();
            let shown: Vec<&str> = nodes.iter().copied().filter(|node| red.contains(node)).take(PAIR_LINES).collect();
            if !shown.is_empty() {
                self.grid(text, "node", &shown, &servers, |node, server| self.cell(server, node));
            }
            let rest = nodes.len() - shown.len();
            let more = red.len() - shown.len();
            let more =
                if more > 0 { format!(", {more} of them not whole (all are in -o json)") } else { String::new() };
            line(text, &format!("{rest} other nodes not shown{more}"));
        }
        let marks = if self.style.ascii {
            "ok whole, BROKEN, SICK kubelet unhealthy, DOWN API server does not answer, ? unknown, - not asked, () its own node"
        } else {
            "√ whole  × broken  ! kubelet unhealthy  ↓ API server does not answer  ? unknown  · not asked  ( ) its own node"
        };
        line(text, &self.paint(None, marks));
    }

    fn grid<'c>(
        &self,
        text: &mut String,
        corner: &str,
        rows: &[&str],
        columns: &[&str],
        cell: impl Fn(&str, &str) -> Option<&'c Cell>,
    ) {
        let first = rows.iter().map(|row| row.chars().count()).max().unwrap_or(0).max(corner.chars().count());
        let mut head = format!("{corner:first$}");
        for column in columns {
            let _ = write!(head, "  {:^width$}", tame(column), width = column.chars().count().max(8));
        }
        line(text, head.trim_end());
        for row in rows {
            let mut cells = format!("{:first$}", tame(row));
            for column in columns {
                let width = column.chars().count().max(8);
                let found = cell(row, column);
                let mark = self.mark(found);
                let left = width.saturating_sub(mark.chars().count()) / 2;
                let right = width.saturating_sub(mark.chars().count()) - left;
                let painted = self.paint(found.map(|cell| cell.verdict), &mark);
                let _ = write!(cells, "  {}{painted}{}", " ".repeat(left), " ".repeat(right));
            }
            line(text, cells.trim_end());
        }
    }

    /// The API servers that are not ready.
    fn servers(&self, text: &mut String) {
        let mut first = true;
        for server in &self.report.api_servers {
            let (verdict, detail) = match &server.readiness {
                Readiness::Ready => continue,
                Readiness::NotReady { failing } => {
                    (CellVerdict::ServerDown, format!("is not ready: {}", failing.join(", ")))
                }
                Readiness::Unreachable { detail } => (CellVerdict::ServerDown, format!("does not answer: {detail}")),
                Readiness::Unknown { detail } => (CellVerdict::Unknown, format!("not known: {detail}")),
            };
            if first {
                line(text, "");
                first = false;
            }
            let at = if server.address.is_empty() { String::new() } else { format!(" ({})", server.address) };
            let mark = if verdict == CellVerdict::Unknown { "?" } else { "×" };
            let mark = if self.style.ascii && verdict != CellVerdict::Unknown { "DOWN" } else { mark };
            let words = tame(&format!("API server {}{at} {detail}", server.name));
            line(text, &format!("{} {words}", self.paint(Some(verdict), mark)));
        }
    }

    /// Every pair that is not whole, the proven bad ones first. Rows of a server that is down are said once, above.
    fn pairs(&self, text: &mut String) {
        let mut bad: Vec<&Cell> = self
            .report
            .cells
            .iter()
            .filter(|cell| !matches!(cell.verdict, CellVerdict::Green | CellVerdict::ServerDown))
            .collect();
        bad.sort_by_key(|cell| match cell.verdict {
            CellVerdict::Broken => 0,
            CellVerdict::Unhealthy => 1,
            _ => 2,
        });
        if !bad.is_empty() {
            line(text, "");
        }
        for cell in bad.iter().take(PAIR_LINES) {
            let mark = self.paint(Some(cell.verdict), &self.mark(Some(cell)));
            let words = tame(&format!("{} -> {}: {} [{} ms]", cell.server, cell.node, cell.detail, cell.milliseconds));
            line(text, &format!("{mark} {words}"));
        }
        if bad.len() > PAIR_LINES {
            line(text, &format!("and {} more pairs; all are in -o json", bad.len() - PAIR_LINES));
        }
    }

    fn advice(&self, text: &mut String) {
        let report = self.report;
        if report.verdict == MatrixVerdict::Whole {
            return;
        }
        line(text, "");
        for suspect in &report.suspects {
            line(text, &tame(&suspect.what));
            line(text, &format!("  {}", tame(&suspect.advice)));
        }
        line(text, "nothing is restarted: maint only reports, a person decides");
        let CellCounts { broken, unhealthy, .. } = report.counts;
        let down = report
            .api_servers
            .iter()
            .any(|server| matches!(server.readiness, Readiness::NotReady { .. } | Readiness::Unreachable { .. }));
        let reason = match report.verdict {
            MatrixVerdict::Broken if broken > 0 => "KubeletUnreachable",
            MatrixVerdict::Broken if down => "APIServerUnreachable",
            MatrixVerdict::Broken if unhealthy > 0 => "KubeletUnhealthy",
            MatrixVerdict::Broken => "APIServerUnreachable",
            _ => "KubeletPathUnknown",
        };
        line(text, &format!("next: maint explain {reason}"));
    }
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Text of the cluster without anything that steers a terminal.
fn tame(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests;
