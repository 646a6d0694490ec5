//! The text and the verdict of `maint matrix`.

use super::*;
use crate::api::Reason;
use crate::facts::FailureKind;

fn at() -> Timestamp {
    "2026-03-01T02:00:00Z".parse().expect("a time")
}

fn server(name: &str, readiness: Readiness) -> ApiServer {
    let address = format!("10.0.0.{}:6443", name.chars().last().unwrap_or('0'));
    ApiServer { name: name.to_owned(), node: Some(name.to_owned()), address, readiness }
}

fn matrix(servers: &[&str], nodes: &[&str], bent: &[(&str, &str, CellVerdict, &str)]) -> Matrix {
    let mut cells = Vec::new();
    for server in servers {
        for node in nodes {
            let bend = bent.iter().find(|bend| bend.0 == *server && bend.1 == *node);
            let (verdict, detail) = bend.map_or((CellVerdict::Green, "whole"), |bend| (bend.2, bend.3));
            cells.push(Cell {
                server: (*server).to_owned(),
                node: (*node).to_owned(),
                diagonal: server == node,
                verdict,
                detail: detail.to_owned(),
                milliseconds: 9,
            });
        }
    }
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    Matrix { servers: owned(servers), nodes: owned(nodes), cells, around: None, swept_at: at() }
}

fn sweeps<'a>(servers: &'a Observation<Vec<ApiServer>>, matrix: &'a Observation<Matrix>) -> Sweeps<'a> {
    let nodes = &Observation::NotAsked;
    Sweeps { api_servers: servers, matrix, earlier: &[], nodes, last_green: None, only: None }
}

fn known<T>(value: T) -> Observation<T> {
    Observation::Known { value, at: at() }
}

fn source() -> String {
    "context k3s (https://10.0.0.1:6443/)".to_owned()
}

fn report(servers: Vec<ApiServer>, matrix: Matrix) -> MatrixReport {
    MatrixReport::new(&sweeps(&known(servers), &known(matrix)), source(), at())
}

const THREE: [&str; 3] = ["n1", "n2", "n3"];

fn ready() -> Vec<ApiServer> {
    THREE.map(|name| server(name, Readiness::Ready)).to_vec()
}

#[test]
fn a_whole_matrix_says_so_first() {
    let text = text(&report(ready(), matrix(&THREE, &THREE, &[])), Style::default());
    let wanted = "\
WHOLE 9 of 9 paths whole
3 API servers x 3 nodes, swept 2026-03-01T02:00:00Z, fresh connections, context k3s (https://10.0.0.1:6443/)

API server     n1        n2        n3
n1            (√)        √         √
n2             √        (√)        √
n3             √         √        (√)
√ whole  × broken  ! kubelet unhealthy  ↓ API server does not answer  ? unknown  · not asked  ( ) its own node
";
    assert_eq!(text, wanted);
}

#[test]
fn a_broken_pair_is_named_with_its_answer_and_nothing_is_restarted() {
    let bent = [
        ("n1", "n2", CellVerdict::Unknown, "forbidden"),
        ("n1", "n3", CellVerdict::Broken, "no tunnel\u{1b}[2J from this API server"),
    ];
    let report = report(ready(), matrix(&THREE, &THREE, &bent));
    assert_eq!((report.verdict, report.verdict.exit_code()), (MatrixVerdict::Broken, 3));
    let wanted = "\
BROKEN 7 of 9 paths whole, 1 broken, 1 unknown
3 API servers x 3 nodes, swept 2026-03-01T02:00:00Z, fresh connections, context k3s (https://10.0.0.1:6443/)

API server     n1        n2        n3
n1            (ok)       ?       BROKEN
n2             ok       (ok)       ok
n3             ok        ok       (ok)
ok whole, BROKEN, SICK kubelet unhealthy, DOWN API server does not answer, ? unknown, - not asked, () its own node

BROKEN n1 -> n3: no tunnel\\u{1b}[2J from this API server [9 ms]
? n1 -> n2: forbidden [9 ms]

API server n1 does not reach the kubelet of node n3 by a fresh connection
  every other pair that could be asked works; making n3's agent connect again (on k3s: restart k3s-agent there, on a server k3s) is what helped in known cases; maint will not do it
nothing is restarted: maint only reports, a person decides
next: maint explain KubeletUnreachable
";
    assert_eq!(text(&report, Style { ascii: true, colour: false }), wanted);
}

#[test]
fn the_worst_is_the_verdict() {
    use CellVerdict::{Broken, ServerDown, Unhealthy, Unknown};
    let cell = |verdict| matrix(&["n1"], &THREE, &[("n1", "n3", verdict, "x")]);
    let one = |readiness| vec![server("n1", readiness)];
    let whole = || matrix(&["n1"], &THREE, &[]);
    let unsure = Readiness::Unknown { detail: "HTTP 403".to_owned() };
    let away = Readiness::Unreachable { detail: "refused".to_owned() };
    let sick = Readiness::NotReady { failing: vec!["etcd".to_owned()] };
    let rows = [
        ("whole", one(Readiness::Ready), whole(), MatrixVerdict::Whole, "WHOLE"),
        ("broken", one(Readiness::Ready), cell(Broken), MatrixVerdict::Broken, "explain KubeletUnreachable"),
        ("unhealthy", one(Readiness::Ready), cell(Unhealthy), MatrixVerdict::Broken, "explain KubeletUnhealthy"),
        (
            "server down",
            one(away),
            cell(ServerDown),
            MatrixVerdict::Broken,
            "× API server n1 (10.0.0.1:6443) does not answer: refused",
        ),
        ("not ready", one(sick), whole(), MatrixVerdict::Broken, "is not ready: etcd"),
        ("unknown cell", one(Readiness::Ready), cell(Unknown), MatrixVerdict::Unknown, "explain KubeletPathUnknown"),
        (
            "unknown server",
            one(unsure),
            whole(),
            MatrixVerdict::Unknown,
            "? API server n1 (10.0.0.1:6443) not known: HTTP 403",
        ),
        (
            "nothing asked",
            one(Readiness::Ready),
            matrix(&["n1"], &[], &[]),
            MatrixVerdict::Unknown,
            "? no pair was asked",
        ),
    ];
    for (row, servers, matrix, verdict, part) in rows {
        let report = report(servers, matrix);
        assert_eq!(report.verdict, verdict, "{row}");
        let text = text(&report, Style::default());
        assert!(text.contains(part), "{row}: {text}");
        if let Some((_, reason)) = text.split_once("maint explain ") {
            assert!(reason.trim().parse::<Reason>().is_ok(), "{row}: no such reason: {reason}");
        }
    }
}

#[test]
fn what_could_not_be_read_is_unknown() {
    let failed =
        Observation::Failed { kind: FailureKind::Forbidden, detail: "nodes could not be read".to_owned(), at: at() };
    let matrix =
        Observation::Failed { kind: FailureKind::Forbidden, detail: "nodes could not be read".to_owned(), at: at() };
    let report = MatrixReport::new(&sweeps(&failed, &matrix), source(), at());
    assert_eq!((report.verdict, report.verdict.exit_code()), (MatrixVerdict::Unknown, 4));
    assert_eq!(report.problems, ["forbidden: nodes could not be read"], "said once");
    let text = text(&report, Style::default());
    assert!(text.starts_with("UNKNOWN 0 of 0 paths whole\n"), "{text}");
    let report = MatrixReport::new(&sweeps(&Observation::NotAsked, &Observation::NotAsked), source(), at());
    assert_eq!(report.verdict, MatrixVerdict::Unknown);
}

#[test]
fn a_wide_matrix_lists_only_what_is_not_whole() {
    let names: Vec<String> = (0..1_000).map(|index| format!("node-{index:04}")).collect();
    let nodes: Vec<&str> = names.iter().map(String::as_str).collect();
    let bent = [("n1", "node-0007", CellVerdict::Broken, "no tunnel")];
    let text = text(&report(ready(), matrix(&THREE, &nodes, &bent)), Style::default());
    let part = "\
node          n1        n2        n3
node-0007     ×         √         √
999 other nodes not shown
";
    assert!(text.contains(part), "{text}");
    assert!(text.starts_with("BROKEN 2999 of 3000 paths whole, 1 broken\n"), "{text}");
}

#[test]
fn the_json_has_kind_and_names() {
    let report = report(ready(), matrix(&["n1"], &["n1"], &[]));
    let json = serde_json::to_value(&report).expect("JSON");
    assert_eq!((json["apiVersion"].as_str(), json["kind"].as_str()), (Some("maint.dev/v1"), Some("MatrixReport")));
    assert_eq!(json["verdict"], "whole");
    assert_eq!(json["cells"][0]["verdict"], "green");
    assert_eq!(json["apiServers"][0]["readiness"]["state"], "ready");
    assert_eq!(json["counts"]["serverDown"], 0);
}

#[test]
fn every_sweep_counts() {
    let bent = [("n1", "n3", CellVerdict::Broken, "code 502: 502 Bad Gateway")];
    let (whole, cut) = (|| matrix(&THREE, &THREE, &[]), || matrix(&THREE, &THREE, &bent));
    let rows = [
        ("all whole", vec![whole(), whole()], whole(), MatrixVerdict::Whole, Shape::Whole, false),
        ("it broke", vec![whole(), whole()], cut(), MatrixVerdict::Broken, Shape::Pair, false),
        ("it healed", vec![cut(), whole()], whole(), MatrixVerdict::Broken, Shape::Healed, false),
        ("it comes and goes", vec![whole(), cut()], whole(), MatrixVerdict::Broken, Shape::Flapping, true),
        ("it comes and goes, red now", vec![cut(), whole()], cut(), MatrixVerdict::Broken, Shape::Pair, true),
    ];
    for (row, earlier, last, verdict, shape, flapping) in rows {
        let (servers, last) = (known(ready()), known(last));
        let report = MatrixReport::new(&Sweeps { earlier: &earlier, ..sweeps(&servers, &last) }, source(), at());
        assert_eq!((report.verdict, report.shape, report.sweeps), (verdict, shape, 3), "{row}: {report:?}");
        assert_eq!(report.suspects.iter().any(|suspect| suspect.flapping), flapping, "{row}");
        let text = text(&report, Style::default());
        assert!(text.contains(", 3 sweeps, fresh connections, "), "{row}: {text}");
        assert_eq!(
            text.contains("maint explain KubeletUnreachable"),
            verdict == MatrixVerdict::Broken,
            "{row}: {text}"
        );
    }
}

#[test]
fn an_earlier_sweep_that_proved_nothing_counts_too() {
    let whole = || report(ready(), matrix(&THREE, &THREE, &[]));
    let unknown = report(ready(), matrix(&THREE, &THREE, &[("n1", "n3", CellVerdict::Unknown, "throttled")]));
    let unread = Observation::Failed { kind: FailureKind::Timeout, detail: "no answer".to_owned(), at: at() };
    let unread = MatrixReport::new(&sweeps(&known(ready()), &unread), source(), at());
    let mut servers = ready();
    servers[1].readiness = Readiness::NotReady { failing: vec!["etcd".to_owned()] };
    let not_ready = report(servers, matrix(&THREE, &THREE, &[]));
    let rows = [
        ("whole", vec![Past::from(&whole())], MatrixVerdict::Whole, ""),
        ("none", vec![], MatrixVerdict::Whole, ""),
        ("unknown", vec![Past::from(&unknown)], MatrixVerdict::Unknown, "unknown: 1 of 9 pairs could not be judged"),
        ("not swept", vec![Past::from(&unread)], MatrixVerdict::Unknown, "unknown: timeout: no answer"),
        (
            "a server was not ready, and broken wins",
            vec![Past::from(&unknown), Past::from(&not_ready), Past::from(&whole())],
            MatrixVerdict::Broken,
            "broken: API server n2 was not ready",
        ),
    ];
    for (row, past, verdict, part) in rows {
        let report = whole().counting(&past);
        assert_eq!(report.verdict, verdict, "{row}");
        let text = text(&report, Style::default());
        assert_eq!(text.contains("? an earlier sweep was "), verdict != MatrixVerdict::Whole, "{row}: {text}");
        assert!(text.contains(part), "{row}: {text}");
    }
}

#[test]
fn of_one_node_its_row_and_its_column_are_judged() {
    let rows = [
        ("its own pair", "n3", ("n1", "n3"), MatrixVerdict::Broken),
        ("its own server", "n1", ("n1", "n3"), MatrixVerdict::Broken),
        ("another pair", "n2", ("n1", "n3"), MatrixVerdict::Whole),
    ];
    for (row, node, (server, to), verdict) in rows {
        let bent = [(server, to, CellVerdict::Broken, "x")];
        let (servers, matrix) = (known(ready()), known(matrix(&THREE, &THREE, &bent)));
        let asked = Sweeps { only: Some(node), ..sweeps(&servers, &matrix) };
        let report = MatrixReport::new(&asked, source(), at());
        assert_eq!((report.verdict, report.cells.len(), report.counts.not_asked), (verdict, 5, 0), "{row}: {report:?}");
        assert!(text(&report, Style::default()).contains(&format!("only pairs of {node}, ")), "{row}");
    }
}

#[test]
fn the_last_green_sweep_and_readiness_are_told() {
    let bent = THREE.map(|server| (server, "n3", CellVerdict::Broken, "code 502"));
    let (servers, matrix) = (known(ready()), known(matrix(&THREE, &THREE, &bent)));
    let green = GreenMatrix {
        at: "2026-02-28T23:00:00Z".parse().expect("a time"),
        servers: 3,
        nodes: 3,
        line: "9/9".to_owned(),
    };
    let asked = Sweeps { last_green: Some(&green), ..sweeps(&servers, &matrix) };
    let report = MatrixReport::new(&asked, source(), at());
    let text = text(&report, Style::default());
    assert!(text.contains("\nthe service saw all of it green last at 2026-02-28T23:00:00Z (9/9)\n"), "{text}");
    let json = serde_json::to_value(&report).expect("JSON");
    assert_eq!((json["shape"].as_str(), json["suspects"][0]["shape"].as_str()), (Some("column"), Some("column")));
    assert_eq!(json["suspects"][0]["pairs"][2], serde_json::json!({"server": "n3", "node": "n3"}));
    assert_eq!(
        (json["suspects"][0]["reason"].as_str(), json["sweeps"].as_u64()),
        (Some("KubeletUnreachable"), Some(1))
    );
}

#[test]
fn what_changed_between_two_sweeps() {
    let bent = [("n1", "n3", CellVerdict::Broken, "cut")];
    let whole = report(ready(), matrix(&THREE, &THREE, &[]));
    let mut servers = ready();
    servers[1].readiness = Readiness::Unreachable { detail: "refused".to_owned() };
    let broken = report(servers, matrix(&THREE, &THREE, &bent));
    assert_eq!(
        changes(&whole, &broken),
        ["n1 -> n3 was green, is broken: cut", "API server n2 was ready, is not answering"]
    );
    assert!(changes(&whole, &whole).is_empty());
}
