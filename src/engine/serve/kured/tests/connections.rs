//! The same over real connections on the loopback.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::serve::{accept, routes};

/// The question as kured was seen to send it.
const QUESTION: &str = "POST /kured/worker2/api/v1/query HTTP/1.1\r\nHost: maint.maint.svc\r\n\
    User-Agent: Go-http-client/1.1\r\nContent-Length: 36\r\nContent-Type: application/x-www-form-urlencoded\r\n\
    Accept-Encoding: gzip\r\n\r\nquery=ALERTS&time=1796026226.5580864";
/// Longer than any answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// An answer within a second, and a machine that is busy with other tests; the exact figure is asked in virtual time.
const LATE: Duration = Duration::from_millis(2_500);

async fn listening(scene: &Scene) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(scene.env.tasks.spawn(accept(scene.env.clone(), listener, routes(Arc::clone(&scene.questions)))));
    address
}

async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.expect("a connection")
}

/// One answer: status and body. None where the connection was closed.
async fn answer(scene: &Scene, stream: &mut TcpStream) -> Option<(u16, String)> {
    let mut seen = Vec::new();
    let read = async {
        loop {
            let text = String::from_utf8_lossy(&seen).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
                if body.len() >= length.parse().expect("a number") {
                    let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
                    return Some((status, body.to_owned()));
                }
            }
            let mut piece = [0; 4096];
            match stream.read(&mut piece).await {
                Ok(0) | Err(_) => return None,
                Ok(count) => seen.extend_from_slice(&piece[..count]),
            }
        }
    };
    scene.env.clock.timeout(PATIENCE, read).await.expect("no answer, and no end")
}

async fn ask(scene: &Scene, stream: &mut TcpStream, question: &str) -> (u16, String) {
    stream.write_all(question.as_bytes()).await.expect("sent");
    let (status, body) = answer(scene, stream).await.expect("an answer");
    (status, word(&Reply { status, body }))
}

fn real() -> Scene {
    Scene::new(Env::production(), |_| {})
}

#[tokio::test]
async fn one_connection_carries_every_tick_and_every_method() {
    let scene = real();
    let mut stream = connect(listening(&scene).await).await;
    assert_eq!(ask(&scene, &mut stream, QUESTION).await, (200, "go".to_owned()));
    scene.change(|world| world.records.clear());
    for _ in 0..2 {
        let (status, word) = ask(&scene, &mut stream, QUESTION).await;
        assert!(status == 200 && word.starts_with("maint: worker2 was asked for a moment ago"), "{status} {word}");
    }
    let get = "GET /kured/worker2/api/v1/query?query=ALERTS&time=1796026226.558 HTTP/1.1\r\nHost: m\r\n\r\n";
    assert_eq!(ask(&scene, &mut stream, get).await.0, 200);
    let put = QUESTION.replace("POST", "PUT");
    assert_eq!(ask(&scene, &mut stream, &put).await.0, 200, "never 405");
    // A header says nothing of who asks.
    let forwarded = QUESTION.replace("Host:", "X-Forwarded-For: 10.42.1.7\r\nHost:");
    assert_eq!(ask(&scene, &mut stream, &forwarded).await.0, 200);
    assert!(scene.fake.writes().iter().all(|write| !write.contains("Kured")), "{:?}", scene.fake.writes());
}

#[tokio::test]
async fn what_is_no_question_of_kured_is_refused_in_words() {
    let rows = [
        (
            "another query",
            QUESTION.replace("query=ALERTS&time=1796026226.5580864", "query=up&time=1796026226.55808640000"),
            "only the query",
        ),
        ("no query", "GET /kured/worker2/api/v1/query HTTP/1.1\r\nHost: m\r\n\r\n".to_owned(), "only the query"),
        (
            "too long",
            QUESTION.replace("Content-Length: 36", "Content-Length: 5000") + &"x".repeat(5000 - 36),
            "the question is longer",
        ),
        ("never whole", QUESTION.replace("Content-Length: 36", "Content-Length: 37"), "the question did not arrive"),
    ];
    for (row, question, wanted) in rows {
        let scene = real();
        let mut stream = connect(listening(&scene).await).await;
        let begun = scene.env.clock.instant();
        let (status, word) = ask(&scene, &mut stream, &question).await;
        assert!(scene.env.clock.instant().duration_since(begun) < LATE, "{row}");
        assert!(status == 422 && word.starts_with(&format!("maint: {wanted}")), "{row}: {status} {word}");
        assert_eq!(scene.fake.looks.load(Ordering::SeqCst), 0, "{row}");
    }
}

#[tokio::test]
async fn slow_senders_hold_nobody_up_and_a_stop_closes_all() {
    let scene = real();
    let address = listening(&scene).await;
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut stream = connect(address).await;
        stream.write_all(b"POST /kured/worker2/api/v1/query HTTP/1.1\r\nHo").await.expect("sent");
        slow.push(stream);
    }
    let mut kured = connect(address).await;
    assert_eq!(ask(&scene, &mut kured, QUESTION).await.1, "go");
    let (clock, begun) = (scene.env.clock.clone(), scene.env.clock.instant());
    scene.owner.stop(&clock, Duration::from_secs(5)).await.expect("all ended");
    assert!(clock.instant().duration_since(begun) < Duration::from_secs(5));
    let mut rest = Vec::new();
    assert_eq!(kured.read_to_end(&mut rest).await.expect("closed"), 0);
    assert!(TcpStream::connect(address).await.is_err(), "the port is closed");
}

#[tokio::test]
async fn a_world_that_never_answers_is_answered_within_a_second() {
    let scene = real();
    scene.change(|world| world.delay = Duration::from_secs(86_400));
    let mut stream = connect(listening(&scene).await).await;
    let begun = scene.env.clock.instant();
    let (_, word) = ask(&scene, &mut stream, QUESTION).await;
    let took = scene.env.clock.instant().duration_since(begun);
    assert!(took < LATE, "{took:?}");
    assert_eq!(word, "maint: the API server did not answer in time for worker2");
    println!("figure kured.answer_while_api_hangs {} ms", took.as_millis());
}

#[tokio::test]
async fn what_is_fetched_follows_nothing_and_is_limited() {
    let scene = real();
    let page = axum::Router::new()
        .route("/alerts", axum::routing::get(|| async { "{}" }))
        .route("/away", axum::routing::get(|| async { axum::response::Redirect::temporary("/alerts") }))
        .route("/large", axum::routing::get(|| async { "x".repeat(5 * 1024 * 1024) }));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(scene.env.tasks.spawn(accept(scene.env.clone(), listener, page)));
    let fetch = HttpFetch::default();
    let get = async |path: &str| fetch.get(&format!("http://{address}{path}")).await;
    assert_eq!(get("/alerts").await, Ok((200, b"{}".to_vec())));
    assert_eq!(get("/away").await.map(|(status, _)| status), Ok(307));
    assert_eq!(get("/large").await, Err("an answer of more than 4 MiB".to_owned()));
    let clock = scene.env.clock.clone();
    scene.owner.stop(&clock, Duration::from_secs(5)).await.expect("all ended");
    let refused = get("/alerts").await.expect_err("nobody listens");
    assert!(!refused.contains("alerts"), "no part of the URL: {refused}");
}
