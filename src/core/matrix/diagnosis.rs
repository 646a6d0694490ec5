//! What a sweep means for a person: what is broken, whom to suspect, what helped before, and that maint will not do it.
//!
//! A cell says that a dial failed; which of kubelet, tunnel, network and API server is to blame only the cells beside it
//! tell ([`super::pattern`]), and the sweeps before it ([`super::history`]). Everything here is a guess in the order of
//! what was seen in known cases (k3s#13149, k3s#14629, rke2#7899), and is told as one. maint restarts nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::history::Course;
use super::pattern::{self, Group, Judged, Pattern};
use super::{Cell, CellVerdict};
use crate::api::Reason;

crate::api::names! {
    /// What is wrong with a matrix, in one word.
    Shape, "matrix shape", {
        /// Every pair that was asked is whole.
        Whole = "whole",
        /// One API server does not reach one kubelet.
        Pair = "pair",
        /// No API server reaches one kubelet.
        Column = "column",
        /// One API server reaches no kubelet.
        Row = "row",
        /// No API server reaches any other node's kubelet.
        Everything = "everything",
        /// An API server does not answer.
        ServerDown = "server-down",
        /// A kubelet is reached and is not healthy.
        Unhealthy = "unhealthy",
        /// Pairs that come and go over sweeps, and are whole in the last one.
        Flapping = "flapping",
        /// Pairs that were not whole in an earlier sweep and are in the last one.
        Healed = "healed",
        /// More than one of these.
        Several = "several",
        /// Nothing is proven broken, and something could not be judged.
        Unknown = "unknown",
    }
}

/// A pair as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen<'a> {
    /// The API server.
    pub server: &'a str,
    /// The node.
    pub node: &'a str,
    /// The API server runs on this node.
    pub diagonal: bool,
    /// What the cell says.
    pub verdict: CellVerdict,
    /// What was answered.
    pub detail: &'a str,
}

impl<'a> From<&'a Cell> for Seen<'a> {
    fn from(cell: &'a Cell) -> Self {
        let Cell { server, node, diagonal, verdict, detail, milliseconds: _ } = cell;
        Self { server, node, diagonal: *diagonal, verdict: *verdict, detail }
    }
}

/// What is known besides the last sweep. The default knows nothing.
#[derive(Debug, Clone, Default)]
pub struct Context<'a> {
    /// Nodes whose `Ready` condition is known, and whether it is True.
    pub ready: BTreeMap<&'a str, bool>,
    /// What every pair did over several sweeps, the last one included; empty if there was only one.
    pub courses: BTreeMap<(&'a str, &'a str), Course>,
    /// Not every pair of the matrix was asked.
    pub partial: bool,
}

/// One API server and one node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pair {
    /// The API server.
    pub server: String,
    /// The node.
    pub node: String,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Its shape.
    pub shape: Shape,
    /// What is wrong: the beginning of a sentence.
    pub what: String,
    /// Whom to suspect and what helped in known cases: the rest of the sentence, without full stop.
    pub advice: String,
    /// Whose runbook tells more.
    pub reason: Reason,
    /// It comes and goes over the sweeps that were asked.
    pub flapping: bool,
    /// The pairs, rows first.
    pub pairs: Vec<Pair>,
}

impl Problem {
    /// The whole sentence, without full stop.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!("{}; {}", self.what, self.advice)
    }

    /// Whether something is proven to be or to have been broken.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.shape != Shape::Unknown
    }
}

/// What a sweep means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    /// All of it in one word.
    pub shape: Shape,
    /// What is wrong, worst first.
    pub problems: Vec<Problem>,
}

/// Names that a sentence spells out; the rest is counted.
const SHOWN: usize = 5;

/// What maint says of every advice that is an act.
const NOT_BY_MAINT: &str = "maint will not do it";

/// Says what a sweep means.
#[must_use]
pub fn diagnose<'a>(cells: &[Seen<'a>], context: &Context<'a>) -> Diagnosis {
    let view = View { cells, context };
    let mut problems = view.servers_down();
    problems.extend(view.broken());
    problems.extend(view.unhealthy());
    problems.extend(view.over_sweeps());
    problems.extend(view.unknown());
    let mut proven = problems.iter().filter(|problem| problem.is_broken());
    let shape = match (proven.next(), proven.next()) {
        (None, _) if problems.is_empty() => Shape::Whole,
        (None, _) => Shape::Unknown,
        (Some(only), None) => only.shape,
        (Some(_), Some(_)) => Shape::Several,
    };
    Diagnosis { shape, problems }
}

struct View<'a, 'c> {
    cells: &'c [Seen<'a>],
    context: &'c Context<'a>,
}

impl<'a> View<'a, '_> {
    fn problem(&self, shape: Shape, reason: Reason, words: (String, String), pairs: &[(&str, &str)]) -> Problem {
        let courses = pairs.iter().map(|(server, node)| self.context.courses.get(&(*server, *node)).copied());
        let flapping = courses.flatten().find(Course::flaps);
        let (what, mut advice) = words;
        if let (Some(course), false) = (flapping, shape == Shape::Flapping) {
            advice = format!("it comes and goes (not whole in {} of {} sweeps); {advice}", course.red, course.judged);
        }
        let named = |(server, node): &(&str, &str)| Pair { server: (*server).to_owned(), node: (*node).to_owned() };
        let pairs = pairs.iter().map(named).collect();
        Problem { shape, what, advice, reason, flapping: flapping.is_some(), pairs }
    }

    fn servers_down(&self) -> Vec<Problem> {
        let mut down: BTreeMap<&str, Vec<&Seen<'_>>> = BTreeMap::new();
        for cell in self.cells.iter().filter(|cell| cell.verdict == CellVerdict::ServerDown) {
            down.entry(cell.server).or_default().push(cell);
        }
        let of = |(server, row): (&str, Vec<&Seen<'_>>)| {
            let what = format!("API server {server} does not answer, so no kubelet is reached through it");
            let advice = format!("bringing it back is for a person, {NOT_BY_MAINT}");
            let pairs: Vec<(&str, &str)> = row.iter().map(|cell| (cell.server, cell.node)).collect();
            self.problem(Shape::ServerDown, Reason::APIServerUnreachable, (what, advice), &pairs)
        };
        down.into_iter().map(of).collect()
    }

    fn broken(&self) -> Vec<Problem> {
        let judged: Vec<Judged<'a>> = self.cells.iter().filter_map(judged).collect();
        let of = |group: &Group<'_>| {
            let words = (self.what(group), format!("{}{}; {NOT_BY_MAINT}", self.others(group), self.suspect(group)));
            let shape = match group.pattern {
                Pattern::Pair => Shape::Pair,
                Pattern::Column => Shape::Column,
                Pattern::Row => Shape::Row,
                Pattern::Everything => Shape::Everything,
            };
            self.problem(shape, Reason::KubeletUnreachable, words, &group.cells)
        };
        pattern::groups(&judged).iter().map(of).collect()
    }

    /// What is broken, as the beginning of a sentence.
    fn what(&self, group: &Group<'_>) -> String {
        match (group.pattern, group.server, group.node) {
            (Pattern::Pair, Some(server), Some(node)) if group.diagonal_broken.is_none() && self.no_session(group) => {
                format!("API server {server} has no session to {node}'s agent")
            }
            (Pattern::Pair, Some(server), Some(node)) => {
                format!("API server {server} does not reach the kubelet of node {node} by a fresh connection")
            }
            (Pattern::Column, _, Some(node)) if group.diagonal_broken == Some(false) => {
                format!("no other API server than its own reaches the kubelet of node {node} by a fresh connection")
            }
            (Pattern::Column, _, Some(node)) => {
                format!("no API server reaches the kubelet of node {node} by a fresh connection")
            }
            (Pattern::Row, Some(server), _) => {
                format!("API server {server} reaches no other node's kubelet by a fresh connection")
            }
            _ => "no API server reaches any other node's kubelet by a fresh connection".to_owned(),
        }
    }

    /// Every answer is the one of a tunnel that has no session for the node. A dead kubelet behind a working tunnel gives
    /// the same text, but where others reach that kubelet it is not dead.
    fn no_session(&self, group: &Group<'_>) -> bool {
        let tunnel =
            |cell: &Seen<'_>| cell.detail.contains("code 502") || cell.detail.contains("failed to find Session");
        let mut members = self.cells.iter().filter(|cell| group.cells.contains(&(cell.server, cell.node))).peekable();
        let reached = |cell: &Seen<'_>| {
            Some(cell.node) == group.node && matches!(cell.verdict, CellVerdict::Green | CellVerdict::Unhealthy)
        };
        members.peek().is_some() && members.all(tunnel) && self.cells.iter().any(reached)
    }

    /// What the pairs beside a group say, where they all say the same.
    fn others(&self, group: &Group<'_>) -> &'static str {
        let mut others = self.cells.iter().filter(|cell| !group.cells.contains(&(cell.server, cell.node))).peekable();
        if others.peek().is_none() || group.pattern == Pattern::Everything {
            return "";
        }
        let (mut green, mut unknown) = (true, false);
        for cell in others {
            green &= matches!(cell.verdict, CellVerdict::Green | CellVerdict::Unknown);
            unknown |= cell.verdict == CellVerdict::Unknown;
        }
        match (green, unknown || self.context.partial) {
            (false, _) => "",
            (true, false) => "every other pair works; ",
            (true, true) => "every other pair that could be asked works; ",
        }
    }

    /// Whom to suspect, and what helped in known cases.
    fn suspect(&self, group: &Group<'_>) -> String {
        match (group.pattern, group.server, group.node) {
            (Pattern::Pair, Some(_), Some(node)) if group.diagonal_broken.is_some() => format!(
                "both are on one node, where k3s uses no tunnel, so the kubelet of {node} is the suspect: starting it anew is what is left"
            ),
            (Pattern::Pair, Some(_), Some(node)) => {
                format!("{} is what helped in known cases", connect_again(node))
            }
            (Pattern::Column, _, Some(node)) if group.diagonal_broken == Some(false) => format!(
                "its own API server needs no tunnel to it, so the tunnels of {node} are the suspect and not its kubelet: on k3s restarting k3s there is what helped in known cases"
            ),
            (Pattern::Column, _, Some(node)) => match self.context.ready.get(node) {
                Some(false) => format!(
                    "node {node} is not Ready, so its kubelet is down or its network is: starting {node} again is what is left"
                ),
                Some(true) => format!(
                    "node {node} is Ready all the same, so its tunnels or its port 10250 are the suspect, unless its kubelet went down this minute: {} is what helped in known cases",
                    connect_again(node)
                ),
                None => format!(
                    "the kubelet or agent of {node} is down, or its network is: starting it again is what is left"
                ),
            },
            (Pattern::Row, Some(server), _) => format!(
                "{server} came late and its peers never dialled it: restarting k3s on {server}, else k3s or k3s-agent on its peers, one at a time, is what helped in known cases"
            ),
            _ => "everything at once: the network, TLS or rights between API servers and kubelets are the suspect, not one node; setting them right is for a person"
                .to_owned(),
        }
    }

    fn unhealthy(&self) -> Vec<Problem> {
        let mut sick: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        for cell in self.cells.iter().filter(|cell| cell.verdict == CellVerdict::Unhealthy) {
            sick.entry(cell.node).or_default().push((cell.server, cell.node));
        }
        let of = |(node, pairs): (&str, Vec<(&str, &str)>)| {
            let through: Vec<&str> = pairs.iter().map(|pair| pair.0).collect();
            let what = format!(
                "the kubelet of node {node} is reached through API server {}, and does not answer that it is healthy",
                some_of(&through)
            );
            let advice = format!("looking at the kubelet of {node} is for a person, {NOT_BY_MAINT}");
            self.problem(Shape::Unhealthy, Reason::KubeletUnhealthy, (what, advice), &pairs)
        };
        sick.into_iter().map(of).collect()
    }

    /// Pairs that are whole now and were not in an earlier sweep.
    fn over_sweeps(&self) -> Vec<Problem> {
        let whole: BTreeSet<(&str, &str)> = self
            .cells
            .iter()
            .filter(|cell| cell.verdict == CellVerdict::Green)
            .map(|cell| (cell.server, cell.node))
            .collect();
        let of = |wanted: fn(&Course) -> bool| -> Vec<(&str, &str)> {
            let courses = self.context.courses.iter().filter(|(pair, course)| whole.contains(*pair) && wanted(course));
            courses.map(|(pair, _)| *pair).collect()
        };
        let told = |pairs: &[(&str, &str)]| {
            let names: Vec<String> = pairs.iter().map(|(server, node)| format!("{server} to {node}")).collect();
            some_of(&names.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let mut found = Vec::new();
        let flapping = of(Course::flaps);
        if !flapping.is_empty() {
            let what = format!("pairs come and go: {} (API server to node), whole in the last sweep", told(&flapping));
            let advice = format!(
                "a tunnel that comes and goes is not proven by one green sweep, and some clusters have it for months; watching it with `maint matrix --watch` tells which node it follows; making that node's agent connect again is for a person, {NOT_BY_MAINT}"
            );
            found.push(self.problem(Shape::Flapping, Reason::KubeletUnreachable, (what, advice), &flapping));
        }
        let healed = of(Course::healed);
        if !healed.is_empty() {
            let what = format!("pairs healed while they were asked: {} (API server to node)", told(&healed));
            let advice =
                "after a boot tunnels come and go for some minutes; sweeping again proves that they stay".to_owned();
            found.push(self.problem(Shape::Healed, Reason::KubeletUnreachable, (what, advice), &healed));
        }
        found
    }

    fn unknown(&self) -> Option<Problem> {
        let open: Vec<&Seen<'_>> = self.cells.iter().filter(|cell| cell.verdict == CellVerdict::Unknown).collect();
        if open.is_empty() {
            return None;
        }
        let names: Vec<String> = open
            .iter()
            .map(|cell| format!("API server {} to node {} ({})", cell.server, cell.node, cell.detail))
            .collect();
        let shown = some_of(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let what = format!("{} of {} pairs could not be judged: {shown}", open.len(), self.cells.len());
        let advice = "what could not be asked is not fine".to_owned();
        let pairs: Vec<(&str, &str)> = open.iter().map(|cell| (cell.server, cell.node)).collect();
        Some(self.problem(Shape::Unknown, Reason::KubeletPathUnknown, (what, advice), &pairs))
    }
}

/// A cell of which is known whether the fresh dial gets through. A server that is down and an answer that proves nothing
/// say nothing of a path; an unhealthy kubelet answered, so the path to it is whole.
fn judged<'a>(cell: &Seen<'a>) -> Option<Judged<'a>> {
    let broken = match cell.verdict {
        CellVerdict::Green | CellVerdict::Unhealthy => false,
        CellVerdict::Broken => true,
        CellVerdict::ServerDown | CellVerdict::Unknown => return None,
    };
    Some(Judged { server: cell.server, node: cell.node, diagonal: cell.diagonal, broken })
}

fn connect_again(node: &str) -> String {
    format!("making {node}'s agent connect again (on k3s: restart k3s-agent there, on a server k3s)")
}

fn some_of(names: &[&str]) -> String {
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
