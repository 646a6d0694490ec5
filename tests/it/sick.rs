//! An API server that refuses, fails, or answers with something else: one error with what helps, and nothing is written.

use serde_json::{Value, json};

use crate::api::{Api, DAEMON_SETS, LEASE, RECORDS, REPORTS};
use crate::support::{Run, folder, maint_with};

const NODES: &str = "/api/v1/nodes";
const GARBAGE: &[&str] = &["lock", "release", "--garbage", "--yes"];
const REBOOT: &[&str] = &["reboot", "worker1", "--yes"];

/// An API in which every list of this verb goes wrong in one way.
fn sick(code: u16, body: &Value) -> Api {
    [NODES, DAEMON_SETS, RECORDS, REPORTS, LEASE]
        .iter()
        .fold(Api::new(), |api, path| api.answer(&format!("GET {path}"), code, body.clone()))
}

fn status(message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message})
}

#[test]
fn what_cannot_be_read_is_one_error_with_what_helps_and_nothing_is_written() {
    // How it answers; then the exit codes of report, history, lock show, lock release, doctor, status, reboot.
    let rows: [(&str, Api, [i32; 7]); 5] = [
        ("refuses", sick(403, &status("no")), [1, 1, 4, 4, 4, 4, 1]),
        ("does not know us", sick(401, &status("Unauthorized")), [1, 1, 4, 4, 4, 4, 1]),
        ("fails", sick(500, &status("etcdserver: leader changed")), [1, 1, 4, 4, 4, 4, 4]),
        ("answers with nothing", sick(200, &Value::Null), [1, 1, 4, 4, 4, 4, 4]),
        ("answers with something else", sick(200, &json!({"kind": "Pod", "items": []})), [1, 1, 4, 4, 4, 4, 4]),
    ];
    for (row, api, wanted) in rows {
        let verbs: [&[&str]; 7] =
            [&["report"], &["history"], &["lock", "show"], GARBAGE, &["doctor"], &["status"], REBOOT];
        for (verb, code) in verbs.into_iter().zip(wanted) {
            let run = api.maint(verb);
            assert_eq!(run.code, code, "{row}: {run}");
            if matches!(verb[0], "doctor" | "status") {
                assert!(run.stdout.contains("UNKNOWN") && run.stderr.is_empty(), "{row}: {run}");
                continue;
            }
            assert_error(row, &run);
        }
        assert!(api.writes().is_empty(), "{row}: {:?}", api.writes());
    }
}

/// Nothing on stdout, and two lines on stderr: what is wrong, what helps.
fn assert_error(row: &str, run: &Run) {
    let lines: Vec<&str> = run.stderr.lines().collect();
    let [wrong, helps] = lines.as_slice() else { panic!("{row}: no two lines: {run}") };
    assert!(run.stdout.is_empty(), "{row}: {run}");
    assert!(wrong.starts_with("error: ") && helps.starts_with("  what helps: "), "{row}: {run}");
}

#[test]
fn words_of_the_server_cannot_steer_the_terminal() {
    let api = Api::new().refuse(&format!("GET {RECORDS}"), 500, "gone\u{1b}[2J\u{1b}[1;1Hall is well");
    let run = api.maint(&["history"]);
    assert!(run.stderr.contains("gone\\u{1b}[2J") && !run.stderr.contains('\u{1b}'), "{run}");
}

#[test]
fn an_object_that_cannot_be_understood_is_not_one_that_is_not_there() {
    let odd = |kind: &str| json!({"kind": kind, "metadata": {"name": "odd"}, "spec": 7});
    let api = Api::new().list(RECORDS, vec![odd("Maintenance")]).list(REPORTS, vec![odd("MaintenanceReport")]);
    let left_out = "left out, since it cannot be understood: Maintenance";
    for (verb, part) in [(&["history"][..], "Maintenance odd: "), (&["report"], "MaintenanceReport odd: ")] {
        let run = api.maint(verb);
        assert_eq!(run.code, 4, "{run}");
        assert!(run.stderr.starts_with(left_out) && run.stderr.contains(part), "{run}");
    }
}

fn report(name: &str, verdict: Option<&str>) -> Value {
    let status = verdict.map(|verdict| {
        json!({
            "verdict": verdict, "message": "nightly-2026-11-30: nobody asked for anything", "term": 1,
            "madeAt": "2026-11-30T05:00:00Z", "mode": "auto", "backlog": 0,
        })
    });
    json!({
        "apiVersion": "maint.dev/v1alpha1", "kind": "MaintenanceReport",
        "metadata": {"name": name, "creationTimestamp": "2026-11-30T04:30:00Z"},
        "spec": {"kind": "window", "window": {
            "opening": "nightly-2026-11-30", "startsAt": "2026-11-29T23:30:00Z", "endsAt": "2026-11-30T04:30:00Z",
        }},
        "status": status,
    })
}

#[test]
fn a_report_without_a_verdict_that_is_known_is_unknown() {
    let rows = [
        (Some("quiet"), 0, "√ QUIET: "),
        (Some("attention"), 5, "× ATTENTION: "),
        (Some("of-a-later-version"), 4, "? OF-A-LATER-VERSION: "),
        (None, 4, "? window-nightly-2026-11-30 is being made"),
    ];
    for (verdict, code, wanted) in rows {
        let run = Api::new().list(REPORTS, vec![report("window-nightly-2026-11-30", verdict)]).maint(&["report"]);
        assert_eq!(run.code, code, "{run}");
        assert!(run.stdout.starts_with(wanted), "{run}");
    }
    let run = Api::new().maint(&["report"]);
    assert_eq!((run.code, run.stderr.lines().count()), (2, 2), "there is none yet: {run}");
}

#[test]
fn the_screen_shows_kured_windows_and_who_waits() {
    let kured = json!({
        "metadata": {"name": "kured", "namespace": "kube-system", "annotations": {
            "weave.works/kured-node-lock": r#"{"nodeID":"worker1","created":"2026-11-30T00:00:00Z","TTL":0}"#,
        }},
        "spec": {"template": {"spec": {"containers": [{"image": "ghcr.io/kubereboot/kured:1.23.0"}]}}},
        "status": {"desiredNumberScheduled": 1, "numberReady": 1},
    });
    let wish = json!({
        "apiVersion": "maint.dev/v1alpha1", "kind": "Maintenance",
        "metadata": {"name": "worker1-b1-1", "uid": "u-1", "resourceVersion": "7", "creationTimestamp": "2026-11-30T01:00:00Z"},
        "spec": {"nodeName": "worker1", "scope": "reboot", "action": "kured", "trigger": "unattended"},
    });
    let (_folder, path) = folder(&[(
        "maint.toml",
        "mode = \"auto\"\nwindows = [{ name = \"all\", days = [\"mon\", \"tue\", \"wed\", \"thu\", \"fri\", \"sat\", \"sun\"], start = \"00:00\", duration = \"24h\", zone = \"UTC\" }]",
    )]);
    let config = format!("{path}/maint.toml");
    let api = Api::new().list(DAEMON_SETS, vec![kured]).record(&wish);
    let run = api.maint(&["status", "--config", &config]);
    for part in [
        "√ mode auto; windows OPEN: all, for starts until ",
        "– kured's lock: held by worker1 for ",
        "Pending, 1 of 1 in line",
    ] {
        assert!(run.stdout.contains(part), "no `{part}`: {run}");
    }
    let document: Value =
        serde_json::from_str(&api.maint(&["status", "-o", "json", "--config", &config]).stdout).expect("one document");
    assert_eq!(
        (&document["windows"]["mode"], &document["locks"][0]["holders"][0]["name"], &document["runs"][0]["place"]),
        (&json!("auto"), &json!("worker1"), &json!(1))
    );
    let bare: Value = serde_json::from_str(&api.maint(&["status", "-o", "json"]).stdout).expect("one document");
    assert!(bare["windows"].is_null(), "nobody gave a configuration: {bare}");
}

#[test]
fn an_answer_that_is_cut_off_is_no_answer() {
    let (code, stderr) = cut_off(&["report"]);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.starts_with("error: could not be read: ") && stderr.contains("\n  what helps: "), "{stderr}");
    let (code, stderr) = cut_off(&["lock", "show"]);
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("then cut off") && stderr.contains("\n  what helps: "), "{stderr}");
}

/// Runs a verb against a server that promises more than it sends, on every path but `/version`.
#[expect(
    clippy::disallowed_methods,
    reason = "a server beside the program under test; it ends with the test's process"
)]
fn cut_off(verb: &[&str]) -> (i32, String) {
    use std::io::{BufRead as _, BufReader, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut lines = BufReader::new(stream.try_clone().expect("the same")).lines();
            let asked = lines.next().and_then(Result::ok).unwrap_or_default();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let version = r#"{"gitVersion":"v1.33.0"}"#;
            let length = if asked.starts_with("GET /version") { version.len() } else { 100_000 };
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
            let _ = write!(stream, "{head}content-length: {length}\r\n\r\n{version}");
        }
    });
    let config = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: f\nclusters: [{{name: f, cluster: {{server: \"http://{address}\"}}}}]\n\
         users: [{{name: f, user: {{}}}}]\ncontexts: [{{name: f, context: {{cluster: f, user: f}}}}]\n"
    );
    let (_folder, path) = folder(&[("config", &config)]);
    let run = maint_with(&[verb, &["--kubeconfig", &format!("{path}/config")]].concat(), &[("HOME", &path)]);
    (run.code, run.stderr)
}
