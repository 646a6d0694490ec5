//! The text of `maint matrix`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{CellCounts, MatrixReport, MatrixVerdict, PAIR_LINES};
use crate::api::Reason;
use crate::matrix::{ApiServer, Cell, CellVerdict, Readiness};

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
        let only = report.node.as_ref().map(|node| format!("only pairs of {}, ", tame(node))).unwrap_or_default();
        let only = if report.sweeps > 1 { format!("{only}{} sweeps, ", report.sweeps) } else { only };
        let swept = report.swept_at.map(|at| format!(", swept {}", at.strftime("%Y-%m-%dT%H:%M:%SZ")));
        line(
            text,
            &format!(
                "{rows} API servers x {columns} nodes{}, {only}fresh connections, {}",
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
        let mut reasons: Vec<Reason> = Vec::new();
        // What could not be judged is told pair by pair above.
        for suspect in report.suspects.iter().filter(|suspect| suspect.is_broken()) {
            line(text, &tame(&suspect.what));
            line(text, &format!("  {}", tame(&suspect.advice)));
            reasons.push(suspect.reason);
        }
        let down = |server: &ApiServer| !matches!(server.readiness, Readiness::Ready | Readiness::Unknown { .. });
        if report.api_servers.iter().any(down) {
            reasons.push(Reason::APIServerUnreachable);
        }
        if let Some(green) = &report.last_green {
            let at = green.at.strftime("%Y-%m-%dT%H:%M:%SZ");
            line(text, &format!("the service saw all of it green last at {at} ({})", tame(&green.line)));
        }
        line(text, "nothing is restarted: maint only reports, a person decides");
        let first = reasons.first().copied().unwrap_or(Reason::KubeletPathUnknown);
        line(text, &format!("next: maint explain {first}"));
    }
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Text of the cluster without anything that steers a terminal.
pub(super) fn tame(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}
