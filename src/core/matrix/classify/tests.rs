//! Every answer that was measured or read in source, and its verdict.

use super::*;

/// Text of a refused CONNECT of the egress proxy.
const NO_TUNNEL: &str = "proxy error from 127.0.0.1:9999 while dialing 10.79.0.3:10250, code 502: 502 Bad Gateway";

fn status(code: u16, message: &str, reason: &str) -> Answer {
    let body = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    Answer::Response(Response {
        status: code,
        http_1_1: true,
        audit_id: true,
        content_type: "application/json".to_owned(),
        body: body.to_string(),
    })
}

fn raw(code: u16, audit_id: bool, content_type: &str, body: &str) -> Answer {
    Answer::Response(Response {
        status: code,
        http_1_1: true,
        audit_id,
        content_type: content_type.to_owned(),
        body: body.to_owned(),
    })
}

fn http_2(code: u16) -> Answer {
    Answer::Response(Response { status: code, http_1_1: false, ..Response::default() })
}

fn ready() -> Readiness {
    Readiness::Ready
}

/// Checks the rows and says how many there are.
fn check(rows: Vec<(&str, Judged, CellVerdict, &str)>) -> usize {
    let count = rows.len();
    for (row, (verdict, detail), wanted, part) in rows {
        assert_eq!(verdict, wanted, "{row}: {detail}");
        assert!(detail.contains(part), "{row}: `{detail}` lacks `{part}`");
        assert!(!detail.contains('\n') && !detail.ends_with('.'), "{row}: {detail}");
    }
    count
}

#[test]
fn every_answer_has_its_verdict() {
    let cases = fresh_dials() + without_response_cases() + healthz_cases() + both_reads() + readyz_cases();
    println!("figure matrix.cases {cases} cases");
}

/// The upgrade request.
fn fresh_dials() -> usize {
    use CellVerdict::{Broken, Green, Unhealthy, Unknown};
    let dial = |answer: Answer| fresh_dial(&answer, &ready());
    let cut = |text: &str| format!("error dialing backend: {text}");
    check(vec![
        ("whole", dial(raw(404, false, "text/plain", "404 page not found\n")), Green, "fresh connection"),
        ("whole, charset", dial(raw(404, false, "text/plain; charset=utf-8", "404 page not found\n")), Green, "fresh"),
        ("cut, tunnel refused", dial(status(500, &cut(NO_TUNNEL), "")), Broken, "no tunnel from this API server"),
        (
            "cut, packets dropped",
            dial(status(500, &cut("dial tcp 10.79.0.3:10250: i/o timeout"), "")),
            Broken,
            "the node does not answer",
        ),
        (
            "kubelet stopped, direct",
            dial(status(500, &cut("dial tcp 10.79.0.3:10250: connect: connection refused"), "")),
            Broken,
            "the kubelet does not listen",
        ),
        (
            "egress proxy dead",
            dial(status(500, &cut("dial tcp 127.0.0.1:9999: connect: connection refused"), "")),
            Broken,
            "own tunnel endpoint",
        ),
        (
            "a path that the kubelet serves",
            dial(status(500, "invalid upgrade response: status code 200", "")),
            Green,
            "fresh",
        ),
        (
            "no address",
            dial(status(500, "no preferred addresses found; known addresses: []", "")),
            Broken,
            "Node has no address",
        ),
        ("500 without any text", dial(raw(500, true, "", "")), Broken, "could not reach the kubelet (HTTP 500)"),
        ("503 of the API server", dial(status(503, &cut(NO_TUNNEL), "ServiceUnavailable")), Broken, "no tunnel"),
        ("504 of the API server", dial(status(504, "timed out", "Timeout")), Broken, "HTTP 504: timed out"),
        (
            "old k3s",
            dial(raw(502, true, "text/plain", "failed to find Session for client w2")),
            Broken,
            "failed to find Session for client w2",
        ),
        (
            "kubelet refuses 401",
            dial(raw(401, false, "text/plain", "Unauthorized")),
            Unhealthy,
            "kubelet refuses this API server",
        ),
        (
            "kubelet refuses 403",
            dial(raw(403, false, "text/plain", "Forbidden (user=k, verb=get)")),
            Unhealthy,
            "path is whole",
        ),
        ("load balancer 502", dial(raw(502, false, "text/html", "<html>bad gateway</html>")), Unknown, "neither"),
        (
            "load balancer 503",
            dial(raw(503, false, "text/plain", "no healthy upstream")),
            Unknown,
            "no healthy upstream",
        ),
        ("404 that is no text", dial(raw(404, false, "text/html", "<html>")), Unknown, "neither"),
        ("404 without content type", dial(raw(404, false, "", "")), Unknown, "neither"),
        (
            "text 404 of the API server",
            dial(raw(404, true, "text/plain", "404 page not found\n")),
            Unknown,
            "proves nothing",
        ),
        ("node unknown", dial(status(404, "nodes \"node-9\" not found", "NotFound")), Unknown, "knows no such node"),
        (
            "forbidden",
            dial(status(403, "nodes \"node-3\" is forbidden: cannot get resource \"nodes/proxy\"", "Forbidden")),
            Unknown,
            "`get` `nodes/proxy`",
        ),
        ("token rejected", dial(status(401, "Unauthorized", "Unauthorized")), Unknown, "rejects our credentials"),
        ("throttled", dial(status(429, "too many requests", "TooManyRequests")), Unknown, "throttled"),
        ("bad request", dial(status(400, "Upgrade request required", "BadRequest")), Unknown, "proves nothing"),
        ("200: the header was lost", dial(raw(200, true, "text/plain", "ok")), Unknown, "Upgrade header lost"),
        ("204", dial(raw(204, true, "", "")), Unknown, "Upgrade header lost"),
        ("101", dial(raw(101, false, "", "")), Unknown, "Upgrade header lost"),
        ("HTTP/2, 404", dial(http_2(404)), Unknown, "HTTP/2"),
        ("HTTP/2, 200", dial(http_2(200)), Unknown, "Upgrade header lost"),
        ("a redirect", dial(raw(302, true, "", "")), Unknown, "proves nothing"),
        ("HTTP/2, the header refused", dial(http_2(400)), Unknown, "HTTP/2"),
        (
            "without credentials",
            dial(status(403, "nodes \"node-3\" is forbidden: User \"system:anonymous\" cannot get", "Forbidden")),
            Unknown,
            "system:anonymous",
        ),
        (
            "handshake hangs",
            dial(status(500, &cut("net/http: TLS handshake timeout"), "")),
            Broken,
            "TLS handshake timeout",
        ),
        ("handshake cut", dial(status(500, &cut("EOF"), "")), Broken, "could not reach the kubelet"),
        (
            "no route",
            dial(status(500, &cut("dial tcp 10.79.0.3:10250: connect: no route to host"), "")),
            Broken,
            "no route from this API server",
        ),
    ])
}

/// No response is the path's fault only if the server works.
fn without_response_cases() -> usize {
    use CellVerdict::{Broken, ServerDown, Unknown};
    let late = Answer::TimedOut { seconds: 12 };
    let refused = Answer::NoConnection { detail: "Connection refused (os error 111)".to_owned() };
    let tls = Answer::Tls { detail: "certificate expired".to_owned() };
    let skipped = Answer::NotSent { detail: "still in flight".to_owned() };
    let not_ready = Readiness::NotReady { failing: vec!["etcd".to_owned()] };
    let mute = Readiness::NotReady { failing: Vec::new() };
    let away = Readiness::Unreachable { detail: "connection refused".to_owned() };
    let unsure = Readiness::Unknown { detail: "HTTP 403".to_owned() };
    let rows = |judge: fn(&Answer, &Readiness) -> Judged| {
        check(vec![
            (
                "late, server ready",
                judge(&late, &ready()),
                Broken,
                "no answer within 12 s, while the API server itself is ready",
            ),
            ("late, server not ready", judge(&late, &not_ready), ServerDown, "not ready (etcd)"),
            ("late, server not ready and mute", judge(&late, &mute), ServerDown, "says that it is not ready"),
            ("late, server away", judge(&late, &away), ServerDown, "does not answer: connection refused"),
            ("late, server not known", judge(&late, &unsure), Unknown, "not known (HTTP 403)"),
            ("refused, server ready", judge(&refused, &ready()), Broken, "Connection refused"),
            ("refused, server away", judge(&refused, &away), ServerDown, "does not answer"),
            ("certificate", judge(&tls, &ready()), ServerDown, "certificate fails: certificate expired"),
            ("never sent", judge(&skipped, &ready()), Unknown, "not asked: still in flight"),
        ])
    };
    rows(fresh_dial) + rows(health)
}

/// The plain GET.
fn healthz_cases() -> usize {
    use CellVerdict::{Broken, Green, Unhealthy, Unknown};
    let judge = |answer: Answer| health(&answer, &ready());
    let unreachable = |text: &str| status(503, &format!("error trying to reach service: {text}"), "ServiceUnavailable");
    let checks = "[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n";
    check(vec![
        ("ok", judge(raw(200, true, "text/plain", "ok")), Green, "healthz says ok"),
        ("ok with a line end", judge(raw(200, true, "text/plain", "ok\n")), Green, "ok"),
        ("200 without ok", judge(raw(200, true, "text/html", "<html>welcome</html>")), Unknown, "without saying ok"),
        ("200 and empty", judge(raw(200, true, "", "")), Unknown, "without saying ok"),
        ("unhealthy", judge(raw(500, true, "text/plain", checks)), Unhealthy, "not healthy: syncloop failing"),
        ("500 of something else", judge(raw(500, false, "text/plain", "oops")), Unknown, "neither"),
        ("500 Status", judge(status(500, "Get \"https://10.79.0.3:10250/healthz\": EOF", "")), Broken, "EOF"),
        ("tunnel missing", judge(unreachable(NO_TUNNEL)), Broken, "no tunnel from this API server"),
        (
            "proxy intercepts",
            judge(unreachable(
                "proxy error from 127.0.0.1:6443 while dialing 10.0.0.3:10250, code 503: 503 Service Unavailable",
            )),
            Broken,
            "HTTP proxy or load balancer",
        ),
        (
            "misrouted",
            judge(unreachable("x509: certificate is valid for 10.0.0.1, 127.0.0.1, not 10.0.0.3")),
            Broken,
            "another kubelet answered",
        ),
        (
            "kubelet down",
            judge(unreachable("dial tcp 10.79.0.3:10250: connect: connection refused")),
            Broken,
            "does not listen",
        ),
        ("no route", judge(unreachable("dial tcp 10.79.0.3:10250: connect: no route to host")), Broken, "no route"),
        ("dial timed out", judge(unreachable("dial tcp 10.79.0.3:10250: i/o timeout")), Broken, "node does not answer"),
        ("supervisor", judge(unreachable("dialing proxy 127.0.0.1:6443 failed: EOF")), Broken, "own tunnel endpoint"),
        (
            "egress proxy dead",
            judge(unreachable("dial tcp 127.0.0.1:9999: connect: connection refused")),
            Broken,
            "own tunnel",
        ),
        ("frozen kubelet", judge(unreachable("http2: client connection lost")), Broken, "went dead"),
        ("old k3s", judge(raw(502, true, "text/plain", "failed to find Session for client w2")), Broken, "no tunnel"),
        ("load balancer", judge(raw(503, false, "text/html", "<html>")), Unknown, "neither"),
        ("token rejected", judge(status(401, "Unauthorized", "Unauthorized")), Unknown, "rejects our credentials"),
        ("kubelet refuses 401", judge(raw(401, true, "text/plain", "Unauthorized")), Unhealthy, "kubelet refuses"),
        ("forbidden", judge(status(403, "cannot get resource \"nodes/proxy\"", "Forbidden")), Unknown, "nodes/proxy"),
        (
            "kubelet refuses 403",
            judge(raw(
                403,
                true,
                "text/plain",
                "Forbidden (user=kube-apiserver, verb=get, resource=nodes, subresource(s)=[proxy])",
            )),
            Unhealthy,
            "the kubelet refuses this API server",
        ),
        ("node gone", judge(status(404, "nodes \"node-9\" not found", "NotFound")), Unknown, "knows no such node"),
        ("healthz not served", judge(raw(404, true, "text/plain", "404 page not found\n")), Unknown, "proves nothing"),
        ("throttled", judge(status(429, "slow down", "TooManyRequests")), Unknown, "throttled"),
    ])
}

/// Green needs both.
fn both_reads() -> usize {
    use CellVerdict::{Broken, Green, ServerDown, Unhealthy, Unknown};
    let judged = |verdict: CellVerdict| (verdict, format!("it is {verdict}"));
    check(vec![
        ("both", cell(judged(Green), Some(judged(Green))), Green, "fresh dial whole, healthz ok"),
        ("the lie", cell(judged(Broken), Some(judged(Green))), Broken, "healthz still says ok, over an old connection"),
        ("dial alone", cell(judged(Green), None), Unknown, "healthz was not asked"),
        (
            "sick kubelet",
            cell(judged(Green), Some(judged(Unhealthy))),
            Unhealthy,
            "the fresh dial is whole, but healthz: it is unhealthy",
        ),
        ("old connection dead", cell(judged(Green), Some(judged(Broken))), Broken, "but healthz"),
        ("health unknown", cell(judged(Green), Some(judged(Unknown))), Unknown, "but healthz"),
        ("dial failed, health not asked", cell(judged(Broken), None), Broken, "it is broken"),
        ("unknown and broken", cell(judged(Unknown), Some(judged(Broken))), Broken, "it is broken"),
        ("broken and unhealthy", cell(judged(Broken), Some(judged(Unhealthy))), Broken, "it is broken"),
        ("broken and server down", cell(judged(Broken), Some(judged(ServerDown))), ServerDown, "it is server-down"),
        ("header lost, healthz ok", cell(judged(Unknown), Some(judged(Green))), Unknown, "old connection"),
    ])
}

/// An API server's own answer.
fn readyz_cases() -> usize {
    let body = "[+]ping ok\n[-]etcd failed: reason withheld\n[-]poststarthook/rbac failed: reason withheld\nreadyz check failed\n";
    let not_ready =
        |names: &[&str]| Readiness::NotReady { failing: names.iter().map(|&name| name.to_owned()).collect() };
    let rows = [
        ("ready", raw(200, true, "text/plain", "[+]ping ok\nreadyz check passed\n"), Readiness::Ready),
        ("checks", raw(500, true, "text/plain", body), not_ready(&["etcd", "poststarthook/rbac"])),
        (
            "starting",
            raw(503, false, "text/plain", "runtime core not ready"),
            not_ready(&["HTTP 503: runtime core not ready"]),
        ),
        ("500 without text", raw(500, true, "", ""), not_ready(&["HTTP 500"])),
        ("late", Answer::TimedOut { seconds: 5 }, Readiness::Unreachable { detail: "no answer within 5 s".to_owned() }),
        (
            "refused",
            Answer::NoConnection { detail: "connection\nrefused".to_owned() },
            Readiness::Unreachable { detail: "connection refused".to_owned() },
        ),
        (
            "certificate",
            Answer::Tls { detail: "expired".to_owned() },
            Readiness::Unreachable { detail: "certificate: expired".to_owned() },
        ),
    ];
    let count = rows.len();
    for (row, answer, wanted) in rows {
        assert_eq!(readiness(&answer), wanted, "{row}");
    }
    let proving_nothing = [204, 302, 400, 401, 403, 404, 429];
    for code in proving_nothing {
        let answer = status(code, "no", "");
        assert!(matches!(readiness(&answer), Readiness::Unknown { .. }), "{code}");
    }
    count + proving_nothing.len()
}

#[test]
fn text_of_the_cluster_is_made_fit_for_a_line() {
    assert_eq!(one_line("a\r\n\tb\u{1b}[31m c"), "a b[31m c");
    let long = one_line(&"x".repeat(1_000));
    assert_eq!((long.chars().count(), long.ends_with("...")), (303, true));
    assert_eq!(failing_checks("[-]\n[-] \n[-]a: x"), ["a"]);
}
