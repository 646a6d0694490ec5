//! Gate `kubelet-reachability`: every API server reaches every kubelet by a fresh connection.
//!
//! Judged is every pair of an expected API server and a node, whether the sweep has it or not: a pair that nobody
//! asked is unknown. `start` asks all pairs, so that what is broken later was not broken before (k3s#13149);
//! `handover` all without the target; `verify` and `settle` all again. At `verify` a pair with an end on *another* node
//! that is not Ready only warns: that freezes the queue, and the target need not stay cordoned for it. The target's own
//! pairs are never excused. What was broken at the start already only warns at `verify` and `settle`.
//!
//! Where `max_unavailable` is above 1, the columns of fewer workers than that only warn; an API server that does not
//! answer, control-plane nodes and the target are judged strictly.

use std::collections::{BTreeMap, BTreeSet};

use super::reading::{may_be_a_dump, required, required_value, was_failing};
use super::{Draft, GateInput, GateSpec, nodes};
use crate::api::{Evidence, Finding, GateId, Moment, Policy, Reason, SourceId, Status};
use crate::facts::{Node, Observation};
use crate::matrix::diagnosis::{Context, Seen, Shape, diagnose};
use crate::matrix::{self, ApiServer, Cell, CellVerdict, Matrix};

/// The row of this gate.
pub(super) const GATE: GateSpec = GateSpec {
    id: GateId::KubeletReachability,
    moments: &[Moment::Start, Moment::Handover, Moment::Verify, Moment::Settle],
    reads: &[SourceId::Nodes, SourceId::ApiServers, SourceId::Matrix],
    reasons: &[
        Reason::KubeletUnreachable,
        Reason::KubeletUnhealthy,
        Reason::APIServerUnreachable,
        Reason::KubeletPathUnknown,
    ],
    default_policy: Policy::Require,
    doc: "every API server reaches every kubelet by a fresh connection",
    check,
};

/// Names shown in one sentence; all are in the evidence.
const SHOWN: usize = 5;

/// One expected pair and what is known of it.
struct Pair<'a> {
    server: &'a ApiServer,
    node: &'a Node,
    /// None if the sweep has no such cell.
    cell: Option<&'a Cell>,
    /// Why it only warns, if it is red.
    excused: Option<String>,
}

impl Pair<'_> {
    fn verdict(&self) -> CellVerdict {
        self.cell.map_or(CellVerdict::Unknown, |cell| cell.verdict)
    }

    fn diagonal(&self) -> bool {
        self.server.node.as_deref() == Some(self.node.metadata.name.as_str())
            || self.cell.is_some_and(|cell| cell.diagonal)
    }

    fn detail(&self) -> String {
        let Some(cell) = self.cell else { return "not in the sweep".to_owned() };
        let detail: String = cell.detail.chars().take(160).collect();
        if detail.is_empty() { cell.verdict.to_string() } else { format!("{}: {detail}", cell.verdict) }
    }

    fn seen(&self) -> Seen<'_> {
        let (server, node) = (&self.server.name, &self.node.metadata.name);
        let detail = self.cell.map_or("not in the sweep", |cell| cell.detail.as_str());
        Seen { server, node, diagonal: self.diagonal(), verdict: self.verdict(), detail }
    }

    fn evidence(&self) -> Evidence {
        let object = format!("Node {}", self.node.metadata.name);
        Evidence::new(object, format!("kubelet through API server {}", self.server.name), self.detail(), "green")
    }

    fn touches(&self, node: &str) -> bool {
        self.node.metadata.name == node || self.server.node.as_deref() == Some(node)
    }
}

fn check(input: &GateInput<'_>) -> Finding {
    let mut draft = Draft::new(GateId::KubeletReachability, input);
    if matches!(input.facts.matrix, Observation::NotAsked) && may_be_a_dump(input) {
        return draft
            .not_applicable(Reason::NotAsked, "only a live cluster can say which API server reaches which kubelet");
    }
    let matrix = required_value(&mut draft, SourceId::Matrix, &input.facts.matrix);
    let servers = required_value(&mut draft, SourceId::ApiServers, &input.facts.api_servers);
    let all = required(&mut draft, SourceId::Nodes, &input.facts.nodes);
    let (Some(matrix), Some(servers), Some(all)) = (matrix, servers, all) else { return draft.finish("") };
    if servers.is_empty() {
        let evidence = Evidence::new(SourceId::ApiServers.as_str(), "expected API servers", "none", "at least one");
        draft.unknown(Reason::KubeletPathUnknown, "no API server is known, so no path can be judged", evidence);
    }
    let mut pairs = expected(input, matrix, servers, &all);
    excuse(input, &mut pairs);
    broken(&mut draft, matrix, &pairs);
    not_judged(&mut draft, &pairs);
    let green = pairs.iter().filter(|pair| pair.verdict() == CellVerdict::Green).count();
    let without = if input.moment == Moment::Handover { format!(" (without {})", input.target) } else { String::new() };
    if around_target(input, matrix) {
        let all = matrix.servers.len() * matrix.nodes.len();
        return draft.finish(format!(
            "all {green} paths with an end on {} are whole{without}; {all} are more than are asked in full",
            input.target
        ));
    }
    draft.finish(format!("all {green} paths from {} API servers to the kubelets are whole{without}", servers.len()))
}

/// The matrix is larger than what is asked in full: only what the target's maintenance can break is asked.
fn around_target(input: &GateInput<'_>, matrix: &Matrix) -> bool {
    matrix.around.as_deref() == Some(input.target)
}

/// Every pair that this moment asks for.
fn expected<'a>(
    input: &GateInput<'_>,
    matrix: &'a Matrix,
    servers: &'a [ApiServer],
    all: &[&'a Node],
) -> Vec<Pair<'a>> {
    let mut cells: BTreeMap<(&str, &str), &Cell> = BTreeMap::new();
    for cell in &matrix.cells {
        // If a pair was asked twice, the worse answer stays.
        let known = cells.entry((&cell.server, &cell.node)).or_insert(cell);
        if known.verdict == CellVerdict::Green {
            *known = cell;
        }
    }
    let mut nodes = nodes::others(input, all);
    nodes.extend(all.iter().copied().filter(|node| node.metadata.name == input.target));
    let mut pairs = Vec::with_capacity(servers.len() * nodes.len());
    for server in servers {
        for node in &nodes {
            let cell = cells.get(&(server.name.as_str(), node.metadata.name.as_str())).copied();
            pairs.push(Pair { server, node, cell, excused: None });
        }
    }
    if around_target(input, matrix) {
        pairs.retain(|pair| pair.touches(input.target));
    }
    if input.moment == Moment::Handover {
        pairs.retain(|pair| !pair.touches(input.target));
    }
    pairs
}

/// Notes which red pairs only warn, and why.
fn excuse(input: &GateInput<'_>, pairs: &mut [Pair<'_>]) {
    let away: BTreeSet<&str> = pairs
        .iter()
        .filter(|pair| nodes::not_ready(pair.node).is_some())
        .map(|pair| pair.node.metadata.name.as_str())
        .filter(|name| *name != input.target)
        .collect();
    let worker = |pair: &Pair<'_>| {
        let red = !matches!(pair.verdict(), CellVerdict::Green | CellVerdict::ServerDown);
        red && !pair.node.is_control_plane() && pair.node.metadata.name != input.target
    };
    let workers: BTreeSet<&str> =
        pairs.iter().filter(|pair| worker(pair)).map(|pair| pair.node.metadata.name.as_str()).collect();
    let limit = input.settings.limits.max_unavailable;
    let tolerated = u32::try_from(workers.len()).unwrap_or(u32::MAX) < limit;
    let back = matches!(input.moment, Moment::Verify | Moment::Settle);
    for pair in pairs.iter_mut().filter(|pair| pair.verdict() != CellVerdict::Green) {
        let other_end = away.iter().find(|name| pair.touches(name));
        pair.excused = match other_end {
            Some(name) if input.moment == Moment::Verify => Some(format!(
                "node {name} is not Ready, which does not keep {} cordoned; no other node starts",
                input.target
            )),
            _ if tolerated && worker(pair) => Some(format!("fewer than {limit} workers may fail (max_unavailable)")),
            _ if back && was_failing(input, GateId::KubeletReachability, &pair.evidence()) => {
                Some("it was so before the run".to_owned())
            }
            _ => None,
        };
    }
}

/// Adds one problem for pairs that belong together: it stops the run if one of them is not excused.
fn add(draft: &mut Draft<'_>, stops: Status, reason: Reason, message: &str, pairs: &[&Pair<'_>]) {
    let hard: Vec<&&Pair<'_>> = pairs.iter().filter(|pair| pair.excused.is_none()).collect();
    let (status, message, shown) = match (hard.is_empty(), pairs.iter().find_map(|pair| pair.excused.as_deref())) {
        (true, Some(excuse)) => (Status::Warn, format!("{message}; {excuse}"), pairs.iter().collect()),
        _ => (stops, message.to_owned(), hard),
    };
    let evidence = shown.into_iter().map(|pair| pair.evidence()).collect();
    draft.add(status, reason, message, None, evidence);
}

/// What is proven to be broken, in the words of the diagnosis.
fn broken(draft: &mut Draft<'_>, matrix: &Matrix, pairs: &[Pair<'_>]) {
    let seen: Vec<Seen<'_>> = pairs.iter().map(Pair::seen).collect();
    let ready = pairs.iter().map(|pair| (pair.node.metadata.name.as_str(), nodes::not_ready(pair.node).is_none()));
    let context = Context { ready: ready.collect(), partial: matrix.around.is_some(), ..Context::default() };
    let by_name: BTreeMap<(&str, &str), &Pair<'_>> =
        pairs.iter().map(|pair| ((pair.server.name.as_str(), pair.node.metadata.name.as_str()), pair)).collect();
    for problem in diagnose(&seen, &context).problems.iter().filter(|problem| problem.is_broken()) {
        let named = |pair: &matrix::diagnosis::Pair| by_name.get(&(pair.server.as_str(), pair.node.as_str())).copied();
        let members: Vec<&Pair<'_>> = problem.pairs.iter().filter_map(named).collect();
        let first = members.first();
        let detail = first.map(|pair| pair.detail()).unwrap_or_default();
        let at = match (problem.shape, first) {
            (Shape::ServerDown, Some(pair)) => format!("{}, ", pair.server.address),
            _ => String::new(),
        };
        let message = format!("{} ({at}{detail}){}; {}", problem.what, misrouted(&members), problem.advice);
        add(draft, Status::Block, problem.reason, &message, &members);
    }
}

/// The text of a certificate that names other addresses is a sign of a half-dead tunnel that ends at the API server's
/// own kubelet, or of a changed address (k3s#5852); it is no expired certificate.
fn misrouted(pairs: &[&Pair<'_>]) -> &'static str {
    let texts = pairs.iter().filter_map(|pair| pair.cell).map(|cell| cell.detail.as_str());
    if texts.into_iter().any(|text| text.contains("x509") && text.contains("valid for")) {
        ", where another kubelet than this one answered (half-dead tunnel, or a changed address; no expired certificate)"
    } else {
        ""
    }
}

fn not_judged(draft: &mut Draft<'_>, pairs: &[Pair<'_>]) {
    let open = || pairs.iter().filter(|pair| pair.verdict() == CellVerdict::Unknown);
    // What is excused is told apart, so that one excused pair does not hide in a sentence about others.
    for excused in [false, true] {
        let part: Vec<&Pair<'_>> = open().filter(|pair| pair.excused.is_some() == excused).collect();
        if part.is_empty() {
            continue;
        }
        let shown = part.iter().take(SHOWN);
        let names: Vec<String> = shown
            .map(|pair| {
                format!("API server {} to node {} ({})", pair.server.name, pair.node.metadata.name, pair.detail())
            })
            .collect();
        let more = if part.len() > SHOWN { format!(" and {} more", part.len() - SHOWN) } else { String::new() };
        let message =
            format!("{} of {} paths could not be judged: {}{more}", part.len(), pairs.len(), names.join(", "));
        add(draft, Status::Unknown, Reason::KubeletPathUnknown, &message, &part);
    }
}

#[cfg(test)]
mod tests;
