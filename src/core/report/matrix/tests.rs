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

fn report(servers: Vec<ApiServer>, matrix: Matrix, suspects: Vec<Suspect>) -> MatrixReport {
    let servers = Observation::Known { value: servers, at: at() };
    let matrix = Observation::Known { value: matrix, at: at() };
    MatrixReport::new(&servers, &matrix, suspects, "context k3s (https://10.0.0.1:6443/)".to_owned(), at())
}

const THREE: [&str; 3] = ["n1", "n2", "n3"];

fn ready() -> Vec<ApiServer> {
    THREE.map(|name| server(name, Readiness::Ready)).to_vec()
}

#[test]
fn a_whole_matrix_says_so_first() {
    let text = text(&report(ready(), matrix(&THREE, &THREE, &[]), vec![]), Style::default());
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
    let suspect = Suspect { what: "n1 does not reach n3".to_owned(), advice: "restart k3s-agent on n3".to_owned() };
    let report = report(ready(), matrix(&THREE, &THREE, &bent), vec![suspect]);
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

n1 does not reach n3
  restart k3s-agent on n3
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
        let report = report(servers, matrix, vec![]);
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
    let report = MatrixReport::new(&failed, &matrix, vec![], "x".to_owned(), at());
    assert_eq!((report.verdict, report.verdict.exit_code()), (MatrixVerdict::Unknown, 4));
    assert_eq!(report.problems, ["forbidden: nodes could not be read"], "said once");
    let text = text(&report, Style::default());
    assert!(text.starts_with("UNKNOWN 0 of 0 paths whole\n"), "{text}");
    let report = MatrixReport::new(&Observation::NotAsked, &Observation::NotAsked, vec![], "x".to_owned(), at());
    assert_eq!(report.verdict, MatrixVerdict::Unknown);
}

#[test]
fn a_wide_matrix_lists_only_what_is_not_whole() {
    let names: Vec<String> = (0..1_000).map(|index| format!("node-{index:04}")).collect();
    let nodes: Vec<&str> = names.iter().map(String::as_str).collect();
    let bent = [("n1", "node-0007", CellVerdict::Broken, "no tunnel")];
    let text = text(&report(ready(), matrix(&THREE, &nodes, &bent), vec![]), Style::default());
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
    let report = report(ready(), matrix(&["n1"], &["n1"], &[]), vec![]);
    let json = serde_json::to_value(&report).expect("JSON");
    assert_eq!((json["apiVersion"].as_str(), json["kind"].as_str()), (Some("maint.dev/v1"), Some("MatrixReport")));
    assert_eq!(json["verdict"], "whole");
    assert_eq!(json["cells"][0]["verdict"], "green");
    assert_eq!(json["apiServers"][0]["readiness"]["state"], "ready");
    assert_eq!(json["counts"]["serverDown"], 0);
}
