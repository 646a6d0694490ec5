//! Table of what sweeps mean.

use super::super::history::courses;
use super::super::testing::matrix;
use super::super::{Matrix, testing};
use super::*;

fn of(sweeps: &[Matrix], ready: &[(&'static str, bool)]) -> Diagnosis {
    let last = sweeps.last().expect("a sweep");
    let cells: Vec<Seen<'_>> = last.cells.iter().map(Seen::from).collect();
    let courses = if sweeps.len() > 1 { courses(sweeps) } else { BTreeMap::new() };
    let partial = last.cells.len() < last.servers.len() * last.nodes.len();
    diagnose(&cells, &Context { ready: ready.iter().copied().collect(), courses, partial })
}

#[test]
fn shapes_and_sentences() {
    // Name, sweeps, nodes whose readiness is known, the word for all, the sentence of the first problem (or its beginning).
    type Row = (&'static str, &'static [&'static [&'static str]], &'static [(&'static str, bool)], Shape, &'static str);
    let rows: [Row; 25] = [
        ("whole", &[&["...", "...", "..."]], &[], Shape::Whole, ""),
        (
            "B02: one pair of which the tunnel is gone",
            &[&[".x.", "...", "..."]],
            &[],
            Shape::Pair,
            "API server s1 has no session to s2's agent; every other pair works; making s2's agent connect again (on k3s: restart k3s-agent there, on a server k3s) is what helped in known cases; maint will not do it",
        ),
        (
            "one pair without a tunnel's text",
            &[&["...r.", ".....", "....."]],
            &[],
            Shape::Pair,
            "API server s1 does not reach the kubelet of node a4 by a fresh connection; every other pair works; making a4's agent connect again",
        ),
        (
            "the text of a tunnel, and nobody who reaches that kubelet",
            &[&["...x.", "...? ", "...? "]],
            &[],
            Shape::Pair,
            "API server s1 does not reach the kubelet of node a4 by a fresh connection; every other pair that could be asked works",
        ),
        (
            "the diagonal alone",
            &[&["x..", "...", "..."]],
            &[],
            Shape::Pair,
            "API server s1 does not reach the kubelet of node s1 by a fresh connection; every other pair works; both are on one node, where k3s uses no tunnel, so the kubelet of s1 is the suspect",
        ),
        (
            "a column, its own API server excepted",
            &[&["..x", "..x", "..."]],
            &[],
            Shape::Column,
            "no other API server than its own reaches the kubelet of node s3 by a fresh connection; every other pair works; its own API server needs no tunnel to it, so the tunnels of s3 are the suspect and not its kubelet",
        ),
        (
            "a dead agent",
            &[&["...x.", "...x.", "...x."]],
            &[],
            Shape::Column,
            "no API server reaches the kubelet of node a4 by a fresh connection; every other pair works; the kubelet or agent of a4 is down, or its network is: starting it again is what is left; maint will not do it",
        ),
        (
            "the same, and the node is not Ready",
            &[&["...x.", "...x.", "...x."]],
            &[("a4", false), ("a5", true)],
            Shape::Column,
            "no API server reaches the kubelet of node a4 by a fresh connection; every other pair works; node a4 is not Ready, so its kubelet is down or its network is",
        ),
        (
            "the same, and the node is Ready: its kubelet reports, so nothing of ours reaches it",
            &[&["...x.", "...x.", "...x."]],
            &[("a4", true)],
            Shape::Column,
            "no API server reaches the kubelet of node a4 by a fresh connection; every other pair works; node a4 is Ready all the same, so its tunnels or its port 10250 are the suspect",
        ),
        (
            "a dead kubelet of a server: the diagonal too",
            &[&["..x", "..x", "..x"]],
            &[],
            Shape::Column,
            "no API server reaches the kubelet of node s3",
        ),
        (
            "B01: a late server",
            &[&[".xx", "...", "..."]],
            &[],
            Shape::Row,
            "API server s1 reaches no other node's kubelet by a fresh connection; every other pair works; s1 came late and its peers never dialled it: restarting k3s on s1, else k3s or k3s-agent on its peers, one at a time, is what helped in known cases; maint will not do it",
        ),
        (
            "everything",
            &[&[".xx", "x.x", "xx."]],
            &[],
            Shape::Everything,
            "no API server reaches any other node's kubelet by a fresh connection; everything at once: the network, TLS or rights",
        ),
        (
            "two pairs: no word on the others",
            &[&[".x.", "..x", "..."]],
            &[],
            Shape::Several,
            "API server s1 has no session to s2's agent; making s2's agent connect again",
        ),
        (
            "two dead agents",
            &[&["...xx", "...xx", "...xx"]],
            &[],
            Shape::Several,
            "no API server reaches the kubelet of node a4",
        ),
        (
            "a server that does not answer, its kubelet too",
            &[&["ddd", "...", "..."]],
            &[],
            Shape::ServerDown,
            "API server s1 does not answer, so no kubelet is reached through it; bringing it back is for a person, maint will not do it",
        ),
        (
            "a node that is off: its API server and its column",
            &[&["ddd", "x..", "x.."]],
            &[("s1", false)],
            Shape::Several,
            "API server s1 does not answer",
        ),
        (
            "an unhealthy kubelet",
            &[&["..u", "..u", "..u"]],
            &[],
            Shape::Unhealthy,
            "the kubelet of node s3 is reached through API server s1, s2, s3, and does not answer that it is healthy",
        ),
        (
            "nothing proven, and a pair not judged",
            &[&["...", ".?.", "..."]],
            &[],
            Shape::Unknown,
            "1 of 9 pairs could not be judged: API server s2 to node s2 (forbidden: the probe needs the right to `get` `nodes/proxy`); what could not be asked is not fine",
        ),
        (
            "a broken pair wins over one that was not judged",
            &[&[".x.", "..?", "..."]],
            &[],
            Shape::Pair,
            "API server s1 has no session to s2's agent; every other pair that could be asked works",
        ),
        (
            "a row and a column of one node's part only",
            &[&["   .", "   x", "   ."]],
            &[],
            Shape::Pair,
            "API server s2 has no session to a4's agent; every other pair that could be asked works",
        ),
        (
            "it broke while it was asked",
            &[&["...", "...", "..."], &[".x.", "...", "..."]],
            &[],
            Shape::Pair,
            "API server s1 has no session to s2's agent; every other pair works",
        ),
        (
            "it comes and goes, and is broken in the last sweep",
            &[&[".x.", "...", "..."], &["...", "...", "..."], &[".x.", "...", "..."]],
            &[],
            Shape::Pair,
            "API server s1 has no session to s2's agent; it comes and goes (not whole in 2 of 3 sweeps); every other pair works",
        ),
        (
            "it comes and goes, and is whole in the last sweep",
            &[&["...", "...", "..."], &[".x.", "...", "..."], &["...", "...", "..."]],
            &[],
            Shape::Flapping,
            "pairs come and go: s1 to s2 (API server to node), whole in the last sweep; a tunnel that comes and goes is not proven by one green sweep",
        ),
        (
            "it healed",
            &[&[".x.", "x..", "..."], &["...", "...", "..."]],
            &[],
            Shape::Healed,
            "pairs healed while they were asked: s1 to s2, s2 to s1 (API server to node); after a boot tunnels come and go",
        ),
        (
            "not judged in between changes nothing",
            &[&["...", "...", "..."], &[".?.", "...", "..."], &["...", "...", "..."]],
            &[],
            Shape::Whole,
            "",
        ),
    ];
    for (row, sweeps, ready, shape, sentence) in rows {
        let sweeps: Vec<Matrix> = sweeps.iter().map(|rows| matrix(rows)).collect();
        let diagnosis = of(&sweeps, ready);
        assert_eq!(diagnosis.shape, shape, "{row}: {diagnosis:?}");
        let first = diagnosis.problems.first().map(Problem::sentence).unwrap_or_default();
        assert!(first.starts_with(sentence), "{row}: {first}");
        assert_eq!(sentence.is_empty(), diagnosis.problems.is_empty(), "{row}: {diagnosis:?}");
    }
}

#[test]
fn every_cell_that_is_not_whole_is_in_a_problem_and_every_act_is_left_to_a_person() {
    // All 4^6 ways of two API servers and three nodes.
    const SIGNS: [char; 4] = ['.', 'x', 'u', '?'];
    let mut count = 0;
    for number in 0..4_usize.pow(6) {
        let sign = |cell: u32| SIGNS[number / 4_usize.pow(cell) % 4];
        let row = |first: u32| (first..first + 3).map(sign).collect::<String>();
        let sweep = matrix(&[&row(0), &row(3)]);
        let diagnosis = of(std::slice::from_ref(&sweep), &[]);
        let red: BTreeSet<Pair> = sweep
            .cells
            .iter()
            .filter(|cell| cell.verdict != CellVerdict::Green)
            .map(|cell| Pair { server: cell.server.clone(), node: cell.node.clone() })
            .collect();
        let told: BTreeSet<Pair> = diagnosis.problems.iter().flat_map(|problem| problem.pairs.clone()).collect();
        assert_eq!(told, red, "{number}");
        for problem in diagnosis.problems.iter().filter(|problem| problem.is_broken()) {
            assert!(problem.advice.ends_with("maint will not do it"), "{number}: {}", problem.advice);
        }
        let broken = diagnosis.problems.iter().any(Problem::is_broken);
        let wanted = (red.is_empty(), broken);
        assert_eq!((diagnosis.shape == Shape::Whole, diagnosis.shape != Shape::Unknown && !red.is_empty()), wanted);
        count += 1;
    }
    assert_eq!(count, 4_096);
    assert_eq!(testing::SERVERS.len(), 3);
}

#[test]
fn many_names_are_counted() {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    assert_eq!(some_of(&names), "a, b, c, d, e and 2 more");
    assert_eq!(some_of(&names[..2]), "a, b");
}
