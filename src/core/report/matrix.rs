//! The answer of `maint matrix`: which API server reaches which kubelet, as text and JSON.
//!
//! The verdict comes first, then the table, then every pair that is not whole with what was answered, then whom to
//! suspect. Nothing is restarted by maint, and the text says so.

mod text;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::api::names;
use crate::facts::{Listed, Node, Observation, TriState};
use crate::matrix::diagnosis::{Context, Diagnosis, Problem, Seen, Shape, diagnose};
use crate::matrix::history::courses;
use crate::matrix::{ApiServer, Cell, CellVerdict, Matrix, Readiness};
use crate::state::GreenMatrix;

pub use text::{Style, text};

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

/// What is asked of a report: the sweeps, and what else is known.
#[derive(Debug, Clone, Copy)]
pub struct Sweeps<'a> {
    /// The expected API servers, as they answered in the last sweep.
    pub api_servers: &'a Observation<Vec<ApiServer>>,
    /// The last sweep.
    pub matrix: &'a Observation<Matrix>,
    /// The sweeps before it, oldest first.
    pub earlier: &'a [Matrix],
    /// Nodes, where they were read: whether they are Ready tells a dead kubelet from a tunnel.
    pub nodes: &'a Listed<Node>,
    /// The last full green sweep that the service remembers, in ConfigMap `maint-state`.
    pub last_green: Option<&'a GreenMatrix>,
    /// Only this node's column, and its row if it runs an API server, are shown and judged.
    pub only: Option<&'a str>,
}

/// What an earlier sweep said by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    verdict: MatrixVerdict,
    what: String,
}

impl From<&MatrixReport> for Past {
    fn from(report: &MatrixReport) -> Self {
        let not_ready = |server: &&ApiServer| server.readiness != Readiness::Ready;
        let server = || {
            let found = report.api_servers.iter().find(not_ready);
            found.map_or_else(String::new, |server| format!("API server {} was not ready", server.name))
        };
        let suspect = || report.suspects.first().map(|suspect| suspect.what.clone());
        let what = report.problems.first().cloned().or_else(suspect).unwrap_or_else(server);
        Self { verdict: report.verdict, what }
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
    /// What is wrong in one word.
    pub shape: Shape,
    /// What is wrong, worst first, and whom to suspect.
    pub suspects: Vec<Problem>,
    /// Sweeps that this answer rests on. Every one of them counts for the verdict.
    pub sweeps: usize,
    /// Only this node's pairs were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The last full green sweep that the service remembers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_green: Option<GreenMatrix>,
}

/// Pairs that text spells out; all of them are in the JSON.
const PAIR_LINES: usize = 30;

impl MatrixReport {
    /// Makes the report.
    #[must_use]
    pub fn new(sweeps: &Sweeps<'_>, source: String, generated_at: Timestamp) -> Self {
        let mut problems = Vec::new();
        let servers = known(sweeps.api_servers, "the expected API servers", &mut problems);
        let matrix =
            known(sweeps.matrix, "the matrix", &mut problems).map(|matrix| about(matrix, sweeps.only, servers));
        let earlier: Vec<Matrix> = sweeps.earlier.iter().map(|matrix| about(matrix, sweeps.only, servers)).collect();
        let api_servers = servers.cloned().unwrap_or_default();
        let diagnosis = matrix.as_ref().map(|matrix| diagnosis(matrix, &earlier, sweeps));
        let (shape, suspects) = diagnosis.map_or((Shape::Unknown, Vec::new()), |found| (found.shape, found.problems));
        let matrix = matrix.unwrap_or_else(|| Matrix {
            servers: Vec::new(),
            nodes: Vec::new(),
            cells: Vec::new(),
            around: None,
            swept_at: generated_at,
        });
        let swept_at = sweeps.matrix.known().map(|matrix| matrix.swept_at);
        if problems.is_empty() && matrix.cells.is_empty() {
            problems.push("no pair was asked".to_owned());
        }
        let counts = count(&matrix.cells, pairs_of(&matrix, sweeps.only, &api_servers));
        let was_broken = suspects.iter().any(Problem::is_broken);
        let verdict = verdict(&counts, &api_servers, &problems, was_broken);
        problems.dedup();
        Self {
            api_version: names::OUTPUT_API_VERSION,
            kind: "MatrixReport",
            generated_at,
            source,
            verdict,
            counts,
            api_servers,
            nodes: matrix.nodes,
            cells: matrix.cells,
            swept_at,
            problems,
            shape,
            suspects,
            sweeps: earlier.len() + usize::from(swept_at.is_some()),
            node: sweeps.only.map(str::to_owned),
            last_green: sweeps.last_green.cloned(),
        }
    }

    /// Lets earlier sweeps count: the worst verdict of all is the answer. What the last sweep does not show is told.
    #[must_use]
    pub fn counting(mut self, past: &[Past]) -> Self {
        let badness = |verdict: MatrixVerdict| match verdict {
            MatrixVerdict::Whole => 0,
            MatrixVerdict::Unknown => 1,
            MatrixVerdict::Broken => 2,
        };
        let Some(worst) = past.iter().max_by_key(|past| badness(past.verdict)) else { return self };
        if badness(worst.verdict) > badness(self.verdict) {
            self.verdict = worst.verdict;
            self.problems.push(format!("an earlier sweep was {}: {}", worst.verdict, worst.what));
        }
        self
    }
}

/// A sweep without the pairs that have no end on the node.
fn about(matrix: &Matrix, node: Option<&str>, servers: Option<&Vec<ApiServer>>) -> Matrix {
    let mut matrix = matrix.clone();
    if let Some(node) = node {
        matrix.cells.retain(|cell| cell.node == node || runs_on(servers, &cell.server, node));
    }
    matrix
}

/// Whether an API server runs on a node.
fn runs_on(servers: Option<&Vec<ApiServer>>, server: &str, node: &str) -> bool {
    let found = servers.into_iter().flatten().find(|known| known.name == server);
    found.is_some_and(|known| known.node.as_deref() == Some(node))
}

/// How many pairs there are to ask.
fn pairs_of(matrix: &Matrix, only: Option<&str>, servers: &Vec<ApiServer>) -> usize {
    let Some(node) = only else { return matrix.servers.len() * matrix.nodes.len() };
    let rows = matrix.servers.iter().filter(|server| runs_on(Some(servers), server, node)).count();
    let column = usize::from(matrix.nodes.iter().any(|name| name == node));
    rows * matrix.nodes.len() + column * (matrix.servers.len() - rows)
}

fn diagnosis(matrix: &Matrix, earlier: &[Matrix], sweeps: &Sweeps<'_>) -> Diagnosis {
    let cells: Vec<Seen<'_>> = matrix.cells.iter().map(Seen::from).collect();
    let known = |node: &'_ Node| node.condition("Ready").map(|ready| ready.status == TriState::True);
    let ready = sweeps.nodes.good().filter_map(|node| Some((node.metadata.name.as_str(), known(node)?))).collect();
    let courses = if earlier.is_empty() { BTreeMap::new() } else { courses(earlier.iter().chain([matrix])) };
    let partial = matrix.cells.len() < matrix.servers.len() * matrix.nodes.len();
    diagnose(&cells, &Context { ready, courses, partial })
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

/// `was_broken`: something is broken, or was in one of the sweeps.
fn verdict(counts: &CellCounts, servers: &[ApiServer], problems: &[String], was_broken: bool) -> MatrixVerdict {
    let CellCounts { green: _, broken, unhealthy, server_down, unknown, not_asked: _ } = *counts;
    let down = servers
        .iter()
        .any(|server| matches!(server.readiness, Readiness::NotReady { .. } | Readiness::Unreachable { .. }));
    let unsure = servers.iter().any(|server| matches!(server.readiness, Readiness::Unknown { .. }));
    if broken + unhealthy + server_down > 0 || down || was_broken {
        MatrixVerdict::Broken
    } else if unknown > 0 || unsure || !problems.is_empty() {
        MatrixVerdict::Unknown
    } else {
        MatrixVerdict::Whole
    }
}

/// What changed from one sweep to the next, a line each: `s1 -> s2 was green, is broken: detail`. At most
/// `PAIR_LINES` of them.
#[must_use]
pub fn changes(before: &MatrixReport, after: &MatrixReport) -> Vec<String> {
    let old: BTreeMap<(&str, &str), CellVerdict> =
        before.cells.iter().map(|cell| ((cell.server.as_str(), cell.node.as_str()), cell.verdict)).collect();
    let mut lines = Vec::new();
    for cell in &after.cells {
        let was = old.get(&(cell.server.as_str(), cell.node.as_str()));
        if was != Some(&cell.verdict) {
            let was = was.map_or("not asked", |verdict| verdict.as_str());
            let line = format!("{} -> {} was {was}, is {}: {}", cell.server, cell.node, cell.verdict, cell.detail);
            lines.push(text::tame(&line));
        }
    }
    for server in &after.api_servers {
        let was = before.api_servers.iter().find(|known| known.name == server.name).map(|known| &known.readiness);
        let state = |readiness: &Readiness| match readiness {
            Readiness::Ready => "ready",
            Readiness::NotReady { .. } => "not ready",
            Readiness::Unreachable { .. } => "not answering",
            Readiness::Unknown { .. } => "not known",
        };
        let (was, is) = (was.map_or("not expected", state), state(&server.readiness));
        if was != is {
            lines.push(text::tame(&format!("API server {} was {was}, is {is}", server.name)));
        }
    }
    if before.problems != after.problems {
        lines.extend(after.problems.iter().map(|problem| text::tame(problem)));
    }
    let more = lines.len().saturating_sub(PAIR_LINES);
    lines.truncate(PAIR_LINES);
    if more > 0 {
        lines.push(format!("and {more} more changes"));
    }
    lines
}

#[cfg(test)]
mod tests;
