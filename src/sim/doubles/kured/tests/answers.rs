//! The table of answers: go, blocked with its log text, stuck for ever; and what the client does before it judges.

use crate::doubles::kured::answer::{Answer, Next, Verdict, judge, next};
use crate::doubles::kured::log;
use crate::doubles::kured::settings::AlertFilter;

const URL: &str = "http://maint.maint.svc:8090/kured/node-1";
const ERROR: &str = "Reboot blocked: prometheus query error: ";

enum Wanted {
    Go,
    /// The whole text.
    Says(&'static str),
    /// The beginning; what follows is a decoder's.
    Error(&'static str),
    Stuck,
}

use Wanted::{Error, Go, Says, Stuck};

fn vector(result: &str) -> String {
    format!(r#"{{"status":"success","data":{{"resultType":"vector","result":{result}}}}}"#)
}

fn sample(name: &str, state: &str, value: &str) -> String {
    let name = serde_json::Value::from(name);
    format!(
        r#"{{"metric":{{"__name__":"ALERTS","alertname":{name},"alertstate":"{state}","pod":"x"}},"value":[1.5,{value}]}}"#
    )
}

fn samples(list: &[String]) -> Answer {
    Answer::http(200, &vector(&format!("[{}]", list.join(","))))
}

fn one(name: &str, state: &str, value: &str) -> Answer {
    samples(&[sample(name, state, value)])
}

fn rows() -> Vec<(&'static str, Answer, Wanted)> {
    let ok = |body: &str| Answer::http(200, body);
    let of = |kind: &str, result: &str| {
        ok(&format!(r#"{{"status":"success","data":{{"resultType":"{kind}","result":{result}}}}}"#))
    };
    let said_no = r#"{"status":"error","errorType":"execution","error":"maint says no"}"#;
    let many: Vec<String> = (0..12).map(|index| sample(&format!("n{index:02}"), "firing", "\"1\"")).collect();
    vec![
        ("empty vector", Answer::go(), Go),
        (
            "empty vector with warnings",
            ok(r#"{"status":"success","warnings":["w"],"data":{"resultType":"vector","result":[]}}"#),
            Go,
        ),
        ("no alertname", ok(&vector(r#"[{"metric":{"__name__":"ALERTS"},"value":[1,"1"]}]"#)), Go),
        ("no value", ok(&vector(r#"[{"metric":{"alertname":"a"}}]"#)), Go),
        ("value 0", one("maint: no", "firing", "\"0\""), Go),
        (
            "firing",
            one("maint: longhorn volume pvc-1 degraded", "firing", "\"1\""),
            Says("Reboot blocked: 1 active alerts: [maint: longhorn volume pvc-1 degraded]"),
        ),
        ("pending", one("maint: no", "pending", "\"1\""), Says("Reboot blocked: 1 active alerts: [maint: no]")),
        ("what Answer::no makes", Answer::no("maint: no"), Says("Reboot blocked: 1 active alerts: [maint: no]")),
        (
            "two names and one of them twice",
            samples(&["second", "first", "second"].map(|n| sample(&format!("maint: {n} reason"), "firing", "\"1\""))),
            Says("Reboot blocked: 2 active alerts: [maint: first reason maint: second reason]"),
        ),
        (
            "twelve names",
            samples(&many),
            Says("Reboot blocked: 12 active alerts: [n00 n01 n02 n03 n04 n05 n06 n07 n08 n09 ...]"),
        ),
        (
            "newline, quotes, emoji",
            one("a\n\"b\" 🦀", "firing", "\"1\""),
            Says("Reboot blocked: 1 active alerts: [a\n\"b\" 🦀]"),
        ),
        ("value that is no string", one("maint: no", "firing", "1"), Error("")),
        ("value that is no number", one("maint: no", "firing", "\"x\""), Error("strconv.ParseFloat")),
        ("result null", ok(&vector("null")), Error("")),
        ("no result", ok(r#"{"status":"success","data":{"resultType":"vector"}}"#), Error("")),
        ("no data", ok(r#"{"status":"success"}"#), Error("")),
        ("{}", ok("{}"), Error("")),
        ("empty body", ok(""), Error("bad_response: ")),
        ("204", Answer::http(204, ""), Error("")),
        ("plain text", ok("no"), Error("bad_response: ")),
        ("matrix", of("matrix", "[]"), Error("unexpected value type ")),
        ("scalar", of("scalar", r#"[1,"1"]"#), Error("unexpected value type ")),
        ("string", of("string", r#"[1,"x"]"#), Error("unexpected value type ")),
        ("status error, 200", ok(said_no), Says("Reboot blocked: prometheus query error: execution: maint says no")),
        (
            "status error, 400",
            Answer::http(400, said_no),
            Says("Reboot blocked: prometheus query error: execution: maint says no"),
        ),
        (
            "status error, 422",
            Answer::http(422, said_no),
            Says("Reboot blocked: prometheus query error: execution: maint says no"),
        ),
        ("422 that says success", Answer::http(422, &vector("[]")), Error("bad_response: inconsistent body")),
        (
            "403",
            Answer::http(403, said_no),
            Says("Reboot blocked: prometheus query error: client_error: client error: 403"),
        ),
        ("404", Answer::http(404, ""), Says("Reboot blocked: prometheus query error: client_error: client error: 404")),
        ("500", Answer::http(500, ""), Says("Reboot blocked: prometheus query error: server_error: server error: 500")),
        (
            "503",
            Answer::http(503, said_no),
            Says("Reboot blocked: prometheus query error: server_error: server error: 503"),
        ),
        (
            "refused",
            Answer::Refused,
            Says(
                "Reboot blocked: prometheus query error: Post \"http://maint.maint.svc:8090/kured/node-1/api/v1/query\": dial tcp maint.maint.svc:8090: connect: connection refused",
            ),
        ),
        (
            "closed",
            Answer::Closed,
            Says(
                "Reboot blocked: prometheus query error: Post \"http://maint.maint.svc:8090/kured/node-1/api/v1/query\": EOF",
            ),
        ),
        ("reset", Answer::Reset, Error("Post ")),
        (
            "no DNS",
            Answer::Unresolved,
            Says(
                "Reboot blocked: prometheus query error: Post \"http://maint.maint.svc:8090/kured/node-1/api/v1/query\": dial tcp: lookup maint.maint.svc: i/o timeout",
            ),
        ),
        (
            "SYN dropped",
            Answer::Dropped,
            Says(
                "Reboot blocked: prometheus query error: Post \"http://maint.maint.svc:8090/kured/node-1/api/v1/query\": dial tcp maint.maint.svc:8090: i/o timeout",
            ),
        ),
        ("accepted, never answered", Answer::Hang, Stuck),
    ]
}

fn check(row: &str, found: &Verdict, wanted: &Wanted) {
    match (found, wanted) {
        (Verdict::Go, Go) | (Verdict::Stuck, Stuck) => {}
        (Verdict::Blocked(text), Says(wanted)) => assert_eq!(text, wanted, "{row}"),
        (Verdict::Blocked(text), Error(rest)) => assert!(text.starts_with(&format!("{ERROR}{rest}")), "{row}: {text}"),
        _ => panic!("{row}: {found:?}"),
    }
}

#[test]
fn every_answer_means_what_it_meant_to_the_process() {
    let rows = rows();
    for (row, answer, wanted) in &rows {
        check(row, &judge(answer, URL, &AlertFilter::default()), wanted);
    }
    println!("figure kured.answers {} rows", rows.len());
}

#[test]
fn filters_let_a_no_through() {
    let regexp = |text: &str| Some(regex::Regex::new(text).expect("a pattern"));
    for (row, filter, state, go) in [
        ("pending under firing-only", AlertFilter { firing_only: true, ..AlertFilter::default() }, "pending", true),
        ("firing under firing-only", AlertFilter { firing_only: true, ..AlertFilter::default() }, "firing", false),
        ("excluded", AlertFilter { regexp: regexp("^maint"), ..AlertFilter::default() }, "firing", true),
        (
            "another is excluded",
            AlertFilter { regexp: regexp("^RebootRequired$"), ..AlertFilter::default() },
            "firing",
            false,
        ),
        (
            "not matched under match-only",
            AlertFilter { regexp: regexp("^Node"), match_only: true, firing_only: false },
            "firing",
            true,
        ),
        (
            "matched under match-only",
            AlertFilter { regexp: regexp("^maint"), match_only: true, firing_only: false },
            "firing",
            false,
        ),
        ("match-only without a pattern", AlertFilter { match_only: true, ..AlertFilter::default() }, "firing", false),
    ] {
        let verdict = judge(&one("maint: no", state, "\"1\""), URL, &filter);
        assert_eq!(verdict == Verdict::Go, go, "{row}: {verdict:?}");
    }
}

#[test]
fn the_client_falls_back_and_follows() {
    for (row, status, by_post, wanted) in [
        ("405 to a POST", 405, true, Next::AskByGet),
        ("501 to a POST", 501, true, Next::AskByGet),
        ("405 to a GET", 405, false, Next::Judge),
        ("403 is final", 403, true, Next::Judge),
        ("404 is final", 404, true, Next::Judge),
        ("307", 307, true, Next::Follow),
        ("302 loses the form", 302, true, Next::FollowByGet),
        ("200", 200, true, Next::Judge),
    ] {
        assert_eq!(next(status, by_post), wanted, "{row}");
    }
}

#[test]
fn log_lines_have_the_form_of_the_process() {
    let at = "2026-11-30T02:00:00.25Z".parse().expect("a time");
    for (row, level, text, wanted) in [
        (
            "a sentence",
            log::Level::Info,
            "Reboot required",
            r#"time="2026-11-30T02:00:00Z" level=info msg="Reboot required""#,
        ),
        ("a word", log::Level::Warning, "word", r#"time="2026-11-30T02:00:00Z" level=warning msg=word"#),
        ("escaped", log::Level::Fatal, "a\n\"b\"", r#"time="2026-11-30T02:00:00Z" level=fatal msg="a\n\"b\"""#),
    ] {
        assert_eq!(log::line(at, level, text), wanted, "{row}");
    }
    let durations =
        [(20_000, "20s"), (1_800_000, "30m0s"), (3_600_000, "1h0m0s"), (1_500, "1.5s"), (200, "200ms"), (0, "0s")];
    for (millis, wanted) in durations {
        assert_eq!(log::duration(std::time::Duration::from_millis(millis)), wanted);
    }
}
