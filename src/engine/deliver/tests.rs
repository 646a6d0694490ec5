//! Receivers against a server on the loopback, lanes in virtual time.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use http::{HeaderMap, StatusCode, Uri};
use jiff::{SignedDuration, Timestamp};
use maint_core::api::record::OutboxEntry;
use maint_core::config::{Notify, SlackReceiver, WebhookReceiver};
use maint_core::report::delivery::{Attempt, mark};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::*;
use crate::runtime::{Clock, Env};

/// In every secret of these tests: it must show nowhere.
const TAINT: &str = "T41nt";
const KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

type Headers = &'static [(&'static str, &'static str)];
type Seen = Arc<Mutex<Vec<(Uri, HeaderMap, Bytes)>>>;

/// A server that answers all requests alike. Gives its address and what it saw.
async fn server(status: u16, headers: Headers, body: &'static str) -> (String, Seen) {
    let seen = Seen::default();
    let answer = move |State(seen): State<Seen>, uri: Uri, given: HeaderMap, sent: Bytes| async move {
        seen.lock().expect("lock").push((uri, given, sent));
        let mut answer = HeaderMap::new();
        for (name, value) in headers {
            answer.insert(*name, value.parse().expect("a value"));
        }
        (StatusCode::from_u16(status).expect("a status"), answer, body)
    };
    let router = Router::new().fallback(answer).with_state(Arc::clone(&seen));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (env, owner) = Env::production();
    env.tasks.spawn(async move { axum::serve(listener, router).await });
    // The server lives as long as the test's runtime.
    std::mem::forget(owner);
    (address, seen)
}

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a file");
    file.write_all(text.as_bytes()).expect("written");
    file
}

fn path(file: &NamedTempFile) -> Option<String> {
    Some(file.path().to_str().expect("text").to_owned())
}

fn slack(url: &NamedTempFile) -> Receiver {
    let slack =
        vec![SlackReceiver { name: "team".to_owned(), url_file: path(url), url_env: None, allow_insecure: true }];
    receivers(&Notify { slack, ..Notify::default() }).expect("good").remove(0)
}

fn webhook(url: &NamedTempFile, secret: Option<&NamedTempFile>) -> Receiver {
    let webhook = WebhookReceiver {
        name: "pager".to_owned(),
        url_file: path(url),
        secret_file: secret.and_then(path),
        allow_insecure: true,
        ..WebhookReceiver::default()
    };
    receivers(&Notify { webhook: vec![webhook], ..Notify::default() }).expect("good").remove(0)
}

fn now() -> Timestamp {
    Timestamp::from_second(1_796_000_400).expect("a time")
}

fn entry(id: &str, severity: &str, text: &str) -> OutboxEntry {
    OutboxEntry {
        id: id.to_owned(),
        kind: "backed-out".to_owned(),
        severity: severity.to_owned(),
        text: text.to_owned(),
        created_at: now().to_string(),
        ..OutboxEntry::default()
    }
}

fn letter() -> Letter {
    let text = "worker2 <!channel> & more";
    Letter { record: "worker2-a".to_owned(), node: "worker2".to_owned(), entry: entry("u.1/0/held", "critical", text) }
}

fn later(retry_after_seconds: Option<i64>, error: &str) -> Attempt {
    Attempt::Later { retry_after_seconds, error: error.to_owned() }
}

fn refused(error: &str) -> Attempt {
    Attempt::Refused { error: error.to_owned() }
}

#[tokio::test]
async fn slack_answers_are_told_apart() {
    let after: &[(&str, &str)] = &[("retry-after", "30")];
    let rows: [(&str, u16, Headers, &str, Attempt); 10] = [
        ("taken", 200, &[], "ok", Attempt::Delivered),
        ("a proxy's page", 200, &[], "<html>log in</html>", later(None, "status 200, but the answer is not `ok`")),
        ("bad payload", 400, &[], "invalid_payload", refused("status 400, invalid_payload")),
        ("no such webhook", 404, &[], "no_service", refused("status 404, no_service")),
        ("archived", 410, &[], "channel_is_archived", refused("status 410, channel_is_archived")),
        ("not in Slack's words", 403, &[], "https://secret/T41nt", refused("status 403")),
        ("too many", 429, after, "", later(Some(30), "status 429")),
        ("too many, and no time", 429, &[], "rate_limited", later(None, "status 429, rate_limited")),
        ("down", 503, &[], "", later(None, "status 503")),
        (
            "redirect",
            302,
            &[("location", "http://127.0.0.1:1/T41nt")],
            "",
            later(None, "status 302: redirects are not followed"),
        ),
    ];
    for (name, status, headers, body, wanted) in rows {
        let (address, seen) = server(status, headers, body).await;
        let url = file(&format!("http://{address}/services/{TAINT}\n"));
        assert_eq!(slack(&url).post(&letter(), now()).await, wanted, "{name}");
        assert_eq!(seen.lock().expect("lock").len(), 1, "{name}: sent once");
    }
}

#[tokio::test]
async fn slack_gets_a_text_that_calls_nobody() {
    let (address, seen) = server(200, &[], "ok\n").await;
    let url = file(&format!("http://{address}/services/{TAINT}"));
    assert_eq!(slack(&url).post(&letter(), now()).await, Attempt::Delivered);
    let long = Letter { entry: entry("1", "info", &"ä".repeat(20_000)), ..letter() };
    assert_eq!(slack(&url).post(&long, now()).await, Attempt::Delivered);
    let seen = seen.lock().expect("lock");
    let (uri, headers, body) = &seen[0];
    assert_eq!(uri.path(), "/services/T41nt");
    assert_eq!(headers["content-type"], "application/json");
    let body: Value = serde_json::from_slice(body).expect("JSON");
    assert_eq!(body, json!({"text": "CRITICAL: worker2 &lt;!channel&gt; &amp; more"}));
    assert!(seen[1].2.len() < 12_100, "{}", seen[1].2.len());
}

#[tokio::test]
async fn a_webhook_is_signed_after_the_standard() {
    let (address, seen) = server(204, &[], "").await;
    let (url, secret) = (file(&format!("http://{address}/hook?key={TAINT}")), file(KEY));
    let receiver = webhook(&url, Some(&secret));
    assert_eq!(receiver.post(&letter(), now()).await, Attempt::Delivered);
    let two_later = now() + SignedDuration::from_secs(2);
    assert_eq!(webhook(&url, None).post(&letter(), two_later).await, Attempt::Delivered);
    let seen = seen.lock().expect("lock");
    let (_, headers, body) = &seen[0];
    assert_eq!(headers["webhook-id"], "u-1/0/held");
    assert_eq!(headers["webhook-timestamp"], "1796000400");
    let signature = super::signature::sign(&KEY.to_owned().into(), "u-1/0/held", 1_796_000_400, body).expect("good");
    assert_eq!(headers["webhook-signature"], signature.as_str());
    let wanted = json!({
        "type": "maint.run.backed_out",
        "timestamp": "2026-11-30T01:00:00Z",
        "data": {
            "id": "u.1/0/held", "record": "worker2-a", "node": "worker2", "kind": "backed-out", "severity": "critical",
            "text": "worker2 <!channel> & more",
        },
    });
    assert_eq!(serde_json::from_slice::<Value>(body).expect("JSON"), wanted);
    assert_eq!(seen[1].1["webhook-id"], headers["webhook-id"], "the same at every try");
    assert_eq!(seen[1].1["webhook-timestamp"], "1796000402", "that of the try");
    assert!(!seen[1].1.contains_key("webhook-signature"));
}

#[tokio::test]
async fn webhook_answers_are_told_apart() {
    let rows = [
        (200, Attempt::Delivered),
        (202, Attempt::Delivered),
        (301, later(None, "status 301: redirects are not followed")),
        (400, refused("status 400")),
        (408, later(None, "status 408")),
        (410, refused("status 410")),
        (500, later(None, "status 500")),
    ];
    for (status, wanted) in rows {
        let (address, _) = server(status, &[], "").await;
        let url = file(&format!("http://{address}/hook"));
        assert_eq!(webhook(&url, None).post(&letter(), now()).await, wanted, "{status}");
    }
}

#[tokio::test]
async fn no_secret_shows_anywhere() {
    let (refuses, _) = server(403, &[], "https://h/T41nt").await;
    let nobody = "127.0.0.1:1";
    let key = file(&format!("whsec_{TAINT}"));
    let rows = [
        ("refused", format!("http://{refuses}/{TAINT}?k={TAINT}"), None, "status 403"),
        ("nobody listens", format!("http://u:{TAINT}@{nobody}/{TAINT}"), None, "error sending request"),
        ("no such host", format!("https://{TAINT}.invalid/{TAINT}"), None, "error sending request"),
        ("no URL", format!("{TAINT} and more"), None, "what should be the URL is none"),
        ("another scheme", format!("ftp://h/{TAINT}"), None, "the URL is neither https nor http"),
        ("no TLS there", format!("https://{refuses}/{TAINT}"), None, "error sending request"),
        ("empty", " \n".to_owned(), None, "is empty"),
        ("a bad key", format!("http://{refuses}/{TAINT}"), Some(&key), "the signing secret is not `whsec_`"),
    ];
    for (name, url, secret, wanted) in rows {
        let url = file(&url);
        for receiver in [slack(&url), webhook(&url, secret)] {
            if secret.is_some() && receiver.name() == "team" {
                continue;
            }
            let attempt = receiver.post(&letter(), now()).await;
            let mut entry = entry("1", "info", "");
            mark(&mut entry, receiver.name(), &attempt, now());
            let all = format!("{receiver:?} {attempt:?} {entry:?}");
            assert!(all.contains(wanted), "{name}: {all}");
            assert!(!all.to_lowercase().contains(&TAINT.to_lowercase()), "{name}: {all}");
        }
    }
    let gone =
        SlackReceiver { name: "x".to_owned(), url_file: Some("/nowhere/url".to_owned()), ..SlackReceiver::default() };
    let unset =
        SlackReceiver { name: "y".to_owned(), url_env: Some("MAINT_NO_SUCH".to_owned()), ..SlackReceiver::default() };
    let settings = Notify { slack: vec![gone, unset], ..Notify::default() };
    let wanted = ["URL: file /nowhere/url: entity not found", "URL: environment variable MAINT_NO_SUCH is not set"];
    for (receiver, wanted) in receivers(&settings).expect("good").iter().zip(wanted) {
        assert_eq!(receiver.post(&letter(), now()).await, later(None, wanted));
    }
}

#[tokio::test]
async fn http_needs_to_be_allowed() {
    let url = file("http://127.0.0.1:1/x");
    let slack = vec![SlackReceiver { name: "team".to_owned(), url_file: path(&url), ..SlackReceiver::default() }];
    let receiver = receivers(&Notify { slack, ..Notify::default() }).expect("good").remove(0);
    let wanted = later(None, "the URL is http, which allow_insecure does not allow");
    assert_eq!(receiver.post(&letter(), now()).await, wanted);
}

/// A receiver that answers from a list, then takes all; notes when it got what.
#[derive(Clone)]
struct Fake {
    name: &'static str,
    clock: Clock,
    answers: Arc<Mutex<VecDeque<Attempt>>>,
    /// Seconds that each answer takes.
    slow: u64,
    got: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    fn new(env: &Env, name: &'static str, slow: u64, answers: &[Attempt]) -> Self {
        let answers = Arc::new(Mutex::new(answers.iter().cloned().collect()));
        Self { name, clock: env.clock.clone(), answers, slow, got: Arc::default() }
    }

    fn got(&self) -> Vec<String> {
        self.got.lock().expect("lock").clone()
    }
}

impl Post for Fake {
    fn name(&self) -> &str {
        self.name
    }

    async fn post(&self, letter: &Letter, at: Timestamp) -> Attempt {
        self.clock.sleep(Duration::from_secs(self.slow)).await;
        let seconds = at.duration_since(now()).as_secs();
        self.got.lock().expect("lock").push(format!("{seconds} {}/{}", letter.record, letter.entry.id));
        self.answers.lock().expect("lock").pop_front().unwrap_or(Attempt::Delivered)
    }
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_fails_or_hangs_delays_no_other() {
    let (env, _owner) = Env::simulated(now(), 1);
    let down = later(None, "status 503");
    let good = Fake::new(&env, "good", 0, &[]);
    let failing = Fake::new(&env, "failing", 0, &[down.clone(), down.clone(), refused("status 410")]);
    let hanging = Fake::new(&env, "hanging", 10, &[down]);
    let (delivery, mut results) = deliver(&env, vec![failing.clone(), hanging.clone(), good.clone()]);
    delivery.offer("r", "worker2", vec![entry("1", "info", "one"), entry("2", "info", "two")]);
    env.clock.sleep(Duration::from_secs(60)).await;
    assert_eq!(good.got(), ["0 r/1", "1 r/2"]);
    assert_eq!(failing.got(), ["0 r/1", "5 r/1", "35 r/1", "36 r/2"], "in order, after 5 and 30 s, then given up");
    assert_eq!(hanging.got(), ["0 r/1", "15 r/1", "26 r/2"]);

    // The record's writer marks what it hears; then nothing is left.
    let mut outbox = vec![entry("1", "info", "one"), entry("2", "info", "two")];
    while let Ok(outcome) = results.try_recv() {
        let marked = outbox.iter_mut().find(|entry| entry.id == outcome.entry).expect("known");
        mark(marked, &outcome.receiver, &outcome.attempt, outcome.at);
    }
    assert_eq!(outbox[0].delivered_to, ["good", "hanging"]);
    assert_eq!(outbox[0].last_error, "failing: given up, it will never take it: status 410");
    assert_eq!(outbox[1].delivered_to.len(), 3);
    let names = ["failing", "hanging", "good"].map(str::to_owned);
    assert!(maint_core::report::delivery::is_settled(&outbox, &names, env.clock.now()));
}

#[tokio::test(start_paused = true)]
async fn a_late_record_does_not_send_twice() {
    let (env, _owner) = Env::simulated(now(), 1);
    let good = Fake::new(&env, "good", 0, &[]);
    let (delivery, _results) = deliver(&env, vec![good.clone()]);
    let outbox = vec![entry("1", "info", "one")];
    delivery.offer("r", "worker2", outbox.clone());
    env.clock.sleep(Duration::from_secs(2)).await;
    // Read again before the result was written, with one message more.
    delivery.offer("r", "worker2", [outbox.clone(), vec![entry("2", "info", "two")]].concat());
    env.clock.sleep(Duration::from_secs(2)).await;
    assert_eq!(good.got(), ["0 r/1", "2 r/2"]);
    // The next leader knows only what was written: once more rather than never.
    delivery.forget("r");
    delivery.offer("r", "worker2", outbox);
    env.clock.sleep(Duration::from_secs(2)).await;
    assert_eq!(good.got().last().map(String::as_str), Some("4 r/1"));
}

#[tokio::test(start_paused = true)]
async fn critical_messages_go_first_and_a_busy_receiver_is_left_alone() {
    let (env, _owner) = Env::simulated(now(), 1);
    let busy = Fake::new(&env, "busy", 0, &[later(Some(40), "status 429")]);
    let (delivery, _results) = deliver(&env, vec![busy.clone()]);
    delivery.offer("a", "worker1", vec![entry("1", "info", "one")]);
    delivery.offer("b", "worker2", vec![entry("2", "critical", "two")]);
    env.clock.sleep(Duration::from_secs(100)).await;
    assert_eq!(busy.got(), ["0 b/2", "40 b/2", "41 a/1"]);
}

#[tokio::test(start_paused = true)]
async fn lanes_end_when_all_stops() {
    let (env, owner) = Env::simulated(now(), 1);
    let hanging = Fake::new(&env, "hanging", 1_000, &[]);
    let (delivery, _results) = deliver(&env, vec![hanging]);
    delivery.offer("a", "worker1", vec![entry("1", "info", "one")]);
    env.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(owner.stop(&env.clock, Duration::from_secs(1)).await, Ok(()));

    let (env, owner) = Env::simulated(now(), 1);
    let (delivery, _results) = deliver(&env, vec![Fake::new(&env, "idle", 0, &[])]);
    env.clock.sleep(Duration::from_secs(1)).await;
    drop(delivery);
    env.clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(env.tasks.count(), 0, "nobody can offer anything any more");
    drop(owner);
}
