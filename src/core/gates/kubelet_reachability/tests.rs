//! Table of gate `kubelet-reachability`.

use serde_json::{Value, json};

use super::GATE;
use crate::api::{Evidence, Finding, GateId, Moment, Reason, Status};
use crate::facts::{FailureKind, Observation};
use crate::gates::RunContext;
use crate::gates::testing::{Case, NODES, good, node, now};
use crate::matrix::{ApiServer, Cell, CellVerdict, Matrix, Readiness};

const SERVERS: [&str; 3] = NODES;

/// The text of a tunnel that is not there, as kube-apiserver 1.34 gives it.
const CUT: &str =
    "error dialing backend: proxy error from 127.0.0.1:6443 while dialing 10.0.0.3:10250, code 502: 502 Bad Gateway";

fn api_server(name: &str) -> ApiServer {
    ApiServer {
        name: name.to_owned(),
        node: Some(name.to_owned()),
        address: format!("{name}:6443"),
        readiness: Readiness::Ready,
    }
}

/// Rows of servers, columns of nodes: `.` green, `x` broken, `u` unhealthy, `d` server down, `?` unknown, a blank for
/// a cell that was not asked.
fn matrix(case: &mut Case, nodes: &[&str], rows: &[&str]) {
    let mut cells = Vec::new();
    for (server, row) in SERVERS.into_iter().zip(rows) {
        for (node, sign) in nodes.iter().zip(row.chars()) {
            let (verdict, detail) = match sign {
                '.' => (CellVerdict::Green, "404 by the kubelet, healthz ok"),
                'x' => (CellVerdict::Broken, CUT),
                'u' => (CellVerdict::Unhealthy, "500 [-]syncloop failed"),
                'd' => (CellVerdict::ServerDown, "connection refused"),
                '?' => (CellVerdict::Unknown, "403"),
                _ => continue,
            };
            cells.push(Cell {
                server: server.to_owned(),
                node: (*node).to_owned(),
                diagonal: server == *node,
                verdict,
                detail: detail.to_owned(),
                milliseconds: 8,
            });
        }
    }
    let (servers, nodes) = (SERVERS.map(str::to_owned).to_vec(), nodes.iter().map(|name| (*name).to_owned()).collect());
    case.facts.matrix =
        Observation::Known { value: Matrix { servers, nodes, cells, around: None, swept_at: now() }, at: now() };
}

fn case(moment: Moment, rows: &[&str]) -> Case {
    let run = (moment != Moment::Start).then(RunContext::default);
    let mut case = Case { moment, run, ..Case::default() };
    case.facts.api_servers = Observation::Known { value: SERVERS.map(api_server).to_vec(), at: now() };
    matrix(&mut case, &NODES, rows);
    case
}

fn not_ready(case: &mut Case, name: &str) {
    let documents = NODES.map(|each| {
        let mut document = node(each);
        if each == name {
            document["status"]["conditions"][0]["status"] = json!("Unknown");
        }
        document
    });
    case.facts.nodes = good(&documents);
}

type Row = (&'static str, &'static [&'static str], fn(&mut Case), Status, Reason, &'static str);

fn check(moment: Moment, rows: &[Row]) {
    assert!(GATE.moments.contains(&moment));
    for (row, signs, bend, status, reason, message) in rows {
        let mut case = case(moment, signs);
        bend(&mut case);
        let finding = case.ask(&GATE);
        assert_eq!((finding.status, finding.reason), (*status, *reason), "{row} at {moment}: {finding:?}");
        assert!(finding.message.contains(message), "{row} at {moment}: {}", finding.message);
        assert!(finding.message.len() < 1_000, "{row}: too long for an Event");
    }
}

const GREEN: &[&str] = &["...", "...", "..."];
const AS_IT_IS: fn(&mut Case) = |_| {};

use Reason::{APIServerUnreachable, KubeletPathUnknown, KubeletUnhealthy, KubeletUnreachable};
use Status::{Block, NotApplicable, Pass, Unknown, Warn};

fn detail(case: &mut Case, server: &str, node: &str, text: &str) {
    let Observation::Known { value, .. } = &mut case.facts.matrix else { panic!("a matrix") };
    let cell = value.cells.iter_mut().find(|cell| cell.server == server && cell.node == node).expect("a cell");
    text.clone_into(&mut cell.detail);
}

#[test]
fn start() {
    let rows: [Row; 16] = [
        (
            "all green",
            GREEN,
            AS_IT_IS,
            Pass,
            Reason::Passed,
            "all 9 paths from 3 API servers to the kubelets are whole",
        ),
        (
            "B02: one pair, before anything is touched",
            &["..x", "...", "..."],
            AS_IT_IS,
            Block,
            KubeletUnreachable,
            "API server worker1 has no session to worker3's agent (broken: error dialing",
        ),
        (
            "B02: and whom to suspect",
            &["..x", "...", "..."],
            AS_IT_IS,
            Block,
            KubeletUnreachable,
            "; every other pair works; making worker3's agent connect again (on k3s: restart k3s-agent there, on a server k3s) is what helped in known cases; maint will not do it",
        ),
        (
            "B02: a long text is cut where it is shown, and not where it is judged",
            &["..x", "...", "..."],
            |c| {
                detail(
                    c,
                    "worker1",
                    "worker3",
                    &format!("no tunnel (HTTP 500: {} code 502: 502 Bad Gateway)", "x".repeat(200)),
                );
            },
            Block,
            KubeletUnreachable,
            "API server worker1 has no session to worker3's agent (broken: no tunnel (HTTP 500: xxx",
        ),
        (
            "B01: a server that came late",
            &[".xx", "...", "..."],
            AS_IT_IS,
            Block,
            KubeletUnreachable,
            "API server worker1 reaches no other node's kubelet by a fresh connection",
        ),
        (
            "B03: cells that flap, red in this sweep",
            &[".x.", "..x", "..."],
            AS_IT_IS,
            Block,
            KubeletUnreachable,
            "API server worker1 has no session to worker2's agent",
        ),
        (
            "B06: a column partly red, by the supervisor's own port",
            &["..x", "..x", "..."],
            |c| {
                detail(
                    c,
                    "worker1",
                    "worker3",
                    "proxy error from 127.0.0.1:9345 while dialing 10.0.0.3:10250, code 502: 502 Bad Gateway",
                );
            },
            Block,
            KubeletUnreachable,
            "no other API server than its own reaches the kubelet of node worker3 by a fresh connection (broken: proxy error from 127.0.0.1:9345",
        ),
        (
            "B10: the old text of a session that is not there",
            &["..x", "...", "..."],
            |c| detail(c, "worker1", "worker3", "failed to find Session for client worker3"),
            Block,
            KubeletUnreachable,
            "(broken: failed to find Session for client worker3)",
        ),
        (
            "B11: a certificate of another node is no expired one",
            &["..x", "...", "..."],
            |c| detail(c, "worker1", "worker3", "x509: certificate is valid for 127.0.0.1, 10.0.0.1, not 10.0.0.3"),
            Block,
            KubeletUnreachable,
            "another kubelet than this one answered (half-dead tunnel, or a changed address; no expired certificate)",
        ),
        (
            "a dead kubelet",
            &["..x", "..x", "..x"],
            AS_IT_IS,
            Block,
            KubeletUnreachable,
            "no API server reaches the kubelet of node worker3 by a fresh connection",
        ),
        (
            "everything",
            &[".xx", "x.x", "xx."],
            AS_IT_IS,
            Block,
            KubeletUnreachable,
            "everything at once: the network, TLS or rights between API servers and kubelets are the suspect",
        ),
        (
            "an API server that does not answer: one problem, not three",
            &["ddd", "...", "..."],
            AS_IT_IS,
            Block,
            APIServerUnreachable,
            "API server worker1 does not answer, so no kubelet is reached through it (worker1:6443, server-down: connection refused); bringing it back is for a person, maint will not do it",
        ),
        (
            "an unhealthy kubelet",
            &["..u", "..u", "..u"],
            AS_IT_IS,
            Block,
            KubeletUnhealthy,
            "the kubelet of node worker3 is reached through API server worker1, worker2, worker3, and does not answer that it is healthy (unhealthy: 500 [-]syncloop failed)",
        ),
        (
            "an answer that proves nothing",
            &["...", ".?.", "..."],
            AS_IT_IS,
            Unknown,
            KubeletPathUnknown,
            "1 of 9 paths could not be judged: API server worker2 to node worker2 (unknown: 403)",
        ),
        (
            "the target's own cells count",
            &[".x.", ".x.", ".x."],
            AS_IT_IS,
            Block,
            KubeletUnreachable,
            "no API server reaches the kubelet of node worker2",
        ),
        (
            "a block wins over an unknown, and both are counted",
            &["..x", ".?.", "..."],
            AS_IT_IS,
            Block,
            KubeletUnreachable,
            "maint will not do it; and 1 more",
        ),
    ];
    check(Moment::Start, &rows);
}

#[test]
fn what_the_sweep_lacks() {
    let rows: [Row; 8] = [
        (
            "a cell",
            &["...", ".. ", "..."],
            AS_IT_IS,
            Unknown,
            KubeletPathUnknown,
            "API server worker2 to node worker3 (not in the sweep)",
        ),
        ("a column", &[".. ", ".. ", ".. "], AS_IT_IS, Unknown, KubeletPathUnknown, "3 of 9 paths could not be judged"),
        ("a row", &["...", "...", "   "], AS_IT_IS, Unknown, KubeletPathUnknown, "3 of 9 paths could not be judged"),
        ("all of it", &["", "", ""], AS_IT_IS, Unknown, KubeletPathUnknown, "9 of 9 paths could not be judged"),
        (
            "B01: a server that stopped is still expected, whatever the sweep has",
            &["...", "...", "   "],
            |c| {
                let Observation::Known { value, .. } = &mut c.facts.matrix else { panic!("a matrix") };
                value.servers.truncate(2);
            },
            Unknown,
            KubeletPathUnknown,
            "API server worker3 to node worker1 (not in the sweep)",
        ),
        (
            "no API server is known",
            GREEN,
            |c| c.facts.api_servers = Observation::Known { value: vec![], at: now() },
            Unknown,
            KubeletPathUnknown,
            "no API server is known, so no path can be judged",
        ),
        (
            "the API servers were not asked",
            GREEN,
            |c| c.facts.api_servers = Observation::NotAsked,
            Unknown,
            Reason::NotAsked,
            "nothing asked for api-servers",
        ),
        (
            "the sweep failed",
            GREEN,
            |c| {
                c.facts.matrix =
                    Observation::Failed { kind: FailureKind::Forbidden, detail: "nodes/proxy".into(), at: now() }
            },
            Unknown,
            Reason::ObservationFailed,
            "matrix could not be read (forbidden): nodes/proxy",
        ),
    ];
    check(Moment::Start, &rows);
    check(Moment::Settle, &rows);
    let not_asked = |c: &mut Case| c.facts.matrix = Observation::NotAsked;
    check(
        Moment::Start,
        &[("a dump", GREEN, not_asked, NotApplicable, Reason::NotAsked, "only a live cluster can say")],
    );
    let message = "nothing asked for matrix";
    check(Moment::Verify, &[("a run always asks", GREEN, not_asked, Unknown, Reason::NotAsked, message)]);

    let mut old = case(Moment::Start, GREEN);
    let Observation::Known { at, .. } = &mut old.facts.matrix else { panic!("a matrix") };
    *at = now() - jiff::SignedDuration::from_secs(61);
    let finding = old.ask(&GATE);
    assert_eq!((finding.status, finding.reason), (Unknown, Reason::ObservationStale));
    assert_eq!(finding.message, "what is known of matrix is 61 s old, allowed are 60 s");
}

#[test]
fn of_two_answers_for_a_pair_the_worse_counts() {
    for order in [[0, 1], [1, 0]] {
        let mut case = case(Moment::Start, GREEN);
        let Observation::Known { value, .. } = &mut case.facts.matrix else { panic!("a matrix") };
        let mut twice = [value.cells[1].clone(), value.cells[1].clone()];
        twice[1].verdict = CellVerdict::Broken;
        value.cells.remove(1);
        value.cells.extend(order.map(|index| twice[index].clone()));
        assert_eq!(case.ask(&GATE).status, Block, "{order:?}");
    }
}

#[test]
fn handover_leaves_the_target_out() {
    let rows: [Row; 4] = [
        (
            "all green",
            GREEN,
            AS_IT_IS,
            Pass,
            Reason::Passed,
            "all 4 paths from 3 API servers to the kubelets are whole (without worker2)",
        ),
        ("only the target's are red", &[".x.", "xxx", ".x."], AS_IT_IS, Pass, Reason::Passed, "all 4 paths"),
        (
            "another pair",
            &["..x", "...", "..."],
            AS_IT_IS,
            Block,
            KubeletUnreachable,
            "API server worker1 has no session to worker3's agent",
        ),
        ("another pair is unknown", &["..?", "...", "..."], AS_IT_IS, Unknown, KubeletPathUnknown, "1 of 4 paths"),
    ];
    check(Moment::Handover, &rows);
}

#[test]
fn verify() {
    let rows: [Row; 13] = [
        ("all green", GREEN, AS_IT_IS, Pass, Reason::Passed, "all 9 paths"),
        (
            "unknown before the run is no excuse for a red one",
            &["..x", "...", "..."],
            |c| {
                let mut old = waived("worker1", "worker3");
                old.evidence[0].value = "unknown: 403".into();
                c.run = Some(RunContext { baseline: vec![old], ..RunContext::default() });
            },
            Block,
            KubeletUnreachable,
            "maint will not do it",
        ),
        (
            "B01: the target came late",
            &["...", "x.x", "..."],
            AS_IT_IS,
            Block,
            KubeletUnreachable,
            "every other pair works; worker2 came late and its peers never dialled it: restarting k3s on worker2, else k3s or k3s-agent on its peers, one at a time, is what helped in known cases",
        ),
        (
            "B05, B09: the target's tunnels",
            &[".x.", "...", "..."],
            AS_IT_IS,
            Block,
            KubeletUnreachable,
            "API server worker1 has no session to worker2's agent",
        ),
        (
            "any other pair while both its ends are Ready",
            &["..x", "...", "..."],
            AS_IT_IS,
            Block,
            KubeletUnreachable,
            "API server worker1 has no session to worker3's agent",
        ),
        (
            "another node is not Ready: its column and its row are left out",
            &["..x", "..x", "dd."],
            |c| not_ready(c, "worker3"),
            Warn,
            APIServerUnreachable,
            "node worker3 is not Ready, which does not keep worker2 cordoned; no other node starts",
        ),
        (
            "that excuses no other pair",
            &["..x", "x.x", "dd."],
            |c| not_ready(c, "worker3"),
            Block,
            KubeletUnreachable,
            "API server worker2 reaches no other node's kubelet",
        ),
        (
            "what the sweep lacks of a node that is not Ready",
            &[".. ", ".. ", "   "],
            |c| not_ready(c, "worker3"),
            Warn,
            KubeletPathUnknown,
            "5 of 9 paths could not be judged",
        ),
        (
            "the target's own pairs are never left out",
            &[".x.", ".x.", ".x."],
            |c| not_ready(c, "worker2"),
            Block,
            KubeletUnreachable,
            "no API server reaches the kubelet of node worker2",
        ),
        (
            "a pair of the target is unknown",
            &[".?.", "...", "..."],
            AS_IT_IS,
            Unknown,
            KubeletPathUnknown,
            "1 of 9 paths",
        ),
        (
            "the target's API server does not answer",
            &["...", "ddd", "..."],
            AS_IT_IS,
            Block,
            APIServerUnreachable,
            "API server worker2 does not answer, so no kubelet is reached through it (worker2:6443, ",
        ),
        (
            "B03: red before the run, and waived",
            &["..x", "...", "..."],
            |c| c.run = Some(RunContext { baseline: vec![waived("worker1", "worker3")], ..RunContext::default() }),
            Warn,
            KubeletUnreachable,
            "it was so before the run",
        ),
        (
            "another pair was red before the run",
            &["..x", "...", "..."],
            |c| c.run = Some(RunContext { baseline: vec![waived("worker2", "worker3")], ..RunContext::default() }),
            Block,
            KubeletUnreachable,
            "maint will not do it",
        ),
    ];
    check(Moment::Verify, &rows);
}

fn waived(server: &str, node: &str) -> Finding {
    Finding {
        gate: GateId::KubeletReachability,
        status: Warn,
        reason: KubeletUnreachable,
        message: "waived".into(),
        evidence: vec![Evidence::new(
            format!("Node {node}"),
            format!("kubelet through API server {server}"),
            "broken",
            "green",
        )],
        evidence_left_out: 0,
        observed_at: None,
        since: None,
    }
}

#[test]
fn settle_asks_everything() {
    let rows: [Row; 3] = [
        ("all green", GREEN, AS_IT_IS, Pass, Reason::Passed, "all 9 paths"),
        (
            "a node that is not Ready is no excuse any more",
            &["..x", "..x", "..x"],
            |c| not_ready(c, "worker3"),
            Block,
            KubeletUnreachable,
            "no API server reaches the kubelet of node worker3",
        ),
        (
            "red before the run",
            &["..x", "...", "..."],
            |c| c.run = Some(RunContext { baseline: vec![waived("worker1", "worker3")], ..RunContext::default() }),
            Warn,
            KubeletUnreachable,
            "it was so before the run",
        ),
    ];
    check(Moment::Settle, &rows);
}

/// Two workers beside the three servers; `a4` and `a5` have no API server.
fn with_workers(case: &mut Case, rows: &[&str]) {
    let names = ["worker1", "worker2", "worker3", "a4", "a5"];
    let documents: Vec<Value> = names
        .into_iter()
        .map(|name| {
            let mut document = node(name);
            if name.starts_with('a') {
                document["metadata"]["labels"] = json!({"kubernetes.io/hostname": name});
            }
            document
        })
        .collect();
    case.facts.nodes = good(&documents);
    matrix(case, &names, rows);
}

#[test]
fn what_counts_under_a_limit() {
    let rows: [Row; 11] = [
        ("all green", GREEN, |c| with_workers(c, &[".....", ".....", "....."]), Pass, Reason::Passed, "all 15 paths"),
        (
            "one worker and a limit of 1",
            GREEN,
            |c| with_workers(c, &["...x.", "...x.", "...x."]),
            Block,
            KubeletUnreachable,
            "no API server reaches the kubelet of node a4",
        ),
        (
            "one worker of two",
            GREEN,
            |c| {
                c.settings.limits.max_unavailable = 2;
                with_workers(c, &["...x.", "...x.", "...x."]);
            },
            Warn,
            KubeletUnreachable,
            "fewer than 2 workers may fail (max_unavailable)",
        ),
        (
            "two workers of two",
            GREEN,
            |c| {
                c.settings.limits.max_unavailable = 2;
                with_workers(c, &["...x.", "...x.", "....?"]);
            },
            Block,
            KubeletUnreachable,
            "maint will not do it; and 2 more",
        ),
        (
            "a control-plane node, strictly",
            GREEN,
            |c| {
                c.settings.limits.max_unavailable = 9;
                with_workers(c, &["..x..", ".....", "....."]);
            },
            Block,
            KubeletUnreachable,
            "API server worker1 has no session to worker3's agent",
        ),
        (
            "an API server that does not answer, strictly",
            GREEN,
            |c| {
                c.settings.limits.max_unavailable = 9;
                with_workers(c, &["ddddd", ".....", "....."]);
            },
            Block,
            APIServerUnreachable,
            "API server worker1 does not answer, so no kubelet is reached through it (worker1:6443, ",
        ),
        (
            "the target is a worker, strictly",
            GREEN,
            |c| {
                c.settings.limits.max_unavailable = 9;
                c.target = "a4".into();
                with_workers(c, &["...x.", ".....", "....."]);
            },
            Block,
            KubeletUnreachable,
            "API server worker1 has no session to a4's agent",
        ),
        (
            "an ignored worker is not asked",
            GREEN,
            |c| {
                c.settings.limits.ignore_nodes = vec!["a4".into(), "worker3".into()];
                with_workers(c, &["...x.", "...x.", "...  "]);
            },
            Unknown,
            KubeletPathUnknown,
            "1 of 12 paths could not be judged: API server worker3 to node a5 (not in the sweep)",
        ),
        (
            "too large to be asked in full: the column of the target",
            GREEN,
            |c| {
                with_workers(c, &["...  ", ".....", "...  "]);
                only_around(c, "worker2");
            },
            Pass,
            Reason::Passed,
            "all 7 paths with an end on worker2 are whole; 15 are more than are asked in full",
        ),
        (
            "too large, and one of the target's is red",
            &[".x.", "...", "..."],
            |c| only_around(c, "worker2"),
            Block,
            KubeletUnreachable,
            "API server worker1 has no session to worker2's agent",
        ),
        (
            "around another node",
            GREEN,
            |c| only_around(c, "worker3"),
            Unknown,
            KubeletPathUnknown,
            "4 of 9 paths could not be judged: API server worker1 to node worker1 (not in the sweep)",
        ),
    ];
    check(Moment::Start, &rows);
}

/// Leaves what the sweep of a large matrix asks: the pairs with an end on this node.
fn only_around(case: &mut Case, node: &str) {
    let Observation::Known { value, .. } = &mut case.facts.matrix else { panic!("a matrix") };
    value.cells.retain(|cell| cell.node == node || cell.server == node);
    value.around = Some(node.to_owned());
}

#[test]
fn a_server_outside_the_cluster_has_no_diagonal() {
    let mut case = case(Moment::Start, &["xxx", "...", "..."]);
    let Observation::Known { value, .. } = &mut case.facts.api_servers else { panic!("servers") };
    value[0].node = None;
    let Observation::Known { value, .. } = &mut case.facts.matrix else { panic!("a matrix") };
    value.cells[0].diagonal = false;
    let finding = case.ask(&GATE);
    assert!(finding.message.starts_with("API server worker1 reaches no other node's kubelet"), "{}", finding.message);
    assert_eq!(finding.evidence.len(), 3);
}

#[test]
fn no_verdict_but_green_lets_a_pair_pass() {
    // Every cell in turn takes every verdict, or is gone: only green goes on, at every moment that asks for the pair.
    for moment in [Moment::Start, Moment::Verify, Moment::Settle] {
        for index in 0..9 {
            for verdict in CellVerdict::ALL.iter().copied().map(Some).chain([None]) {
                let mut case = case(moment, GREEN);
                let Observation::Known { value, .. } = &mut case.facts.matrix else { panic!("a matrix") };
                match verdict {
                    Some(verdict) => value.cells[index].verdict = verdict,
                    None => drop(value.cells.remove(index)),
                }
                let finding = case.ask(&GATE);
                assert_eq!(
                    finding.stops(),
                    verdict != Some(CellVerdict::Green),
                    "{moment} {index} {verdict:?}: {finding:?}"
                );
            }
        }
    }
}
