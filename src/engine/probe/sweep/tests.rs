//! Sweeps over API servers in memory, and one over a real socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use maint_core::matrix::ApiServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::ports::Servers;
use crate::testing::{FakeServers, Reply, Request, env, healthy, install_crypto, refused, reply, silence, status};

const CUT: &str =
    "error dialing backend: proxy error from 127.0.0.1:9999 while dialing 10.79.0.3:10250, code 502: 502 Bad Gateway";

fn server(fakes: &FakeServers, name: &str) -> ServerClient {
    let server = ApiServer {
        name: name.to_owned(),
        node: Some(name.to_owned()),
        address: name.to_owned(),
        readiness: Readiness::Ready,
    };
    ServerClient { server, client: fakes.client(name, None).ok() }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

async fn sweep(prober: &Prober, servers: &[ServerClient], nodes: &[&str]) -> Matrix {
    match prober.sweep(servers, &names(nodes), None, 0).await {
        Observation::Known { value, .. } => value,
        other => panic!("{other:?}"),
    }
}

fn verdicts(matrix: &Matrix) -> Vec<CellVerdict> {
    matrix.cells.iter().map(|cell| cell.verdict).collect()
}

fn is_for(request: &Request, node: &str) -> bool {
    request.uri().path().starts_with(&format!("/api/v1/nodes/{node}/"))
}

#[tokio::test(start_paused = true)]
async fn the_lie_of_an_old_connection_is_no_green() {
    // New connections to `c` fail while its healthz still answers over an old one.
    let lying = |request: &Request| {
        let dial = request.uri().path().ends_with("maint-probe");
        if is_for(request, "c") && dial { status(500, "", CUT) } else { healthy(request) }
    };
    let fakes = FakeServers::default().with("a", lying).with("b", healthy);
    let (env, _owner) = env();
    let prober = Prober::new(env.clock.clone());
    let matrix = sweep(&prober, &[server(&fakes, "a"), server(&fakes, "b")], &["a", "b", "c"]).await;
    use CellVerdict::{Broken, Green};
    assert_eq!(verdicts(&matrix), [Green, Green, Broken, Green, Green, Green]);
    assert_eq!(matrix.cells.iter().filter(|cell| cell.diagonal).count(), 2);
    let cell = matrix.cell("a", "c").expect("asked");
    assert!(
        cell.detail.starts_with("no tunnel from this API server to the node, or its kubelet is down (HTTP 500"),
        "{}",
        cell.detail
    );
    assert_eq!(
        (fakes.count("a /api/v1/nodes/c/proxy/maint-probe upgrade"), fakes.count("nodes/c/proxy/healthz")),
        (1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn each_fault_has_its_verdict() {
    type Fault = fn(&Request) -> Reply;
    let rows: [(&str, Fault, CellVerdict, &str); 6] = [
        (
            "forbidden",
            |_| status(403, "Forbidden", "cannot get resource \"nodes/proxy\""),
            CellVerdict::Unknown,
            "nodes/proxy",
        ),
        ("header lost", |_| reply(200, &[("audit-id", "x")], "ok"), CellVerdict::Unknown, "Upgrade header lost"),
        (
            "node unknown",
            |_| status(404, "NotFound", "nodes \"c\" not found"),
            CellVerdict::Unknown,
            "knows no such node",
        ),
        ("refused, server ready", |_| refused(), CellVerdict::Broken, "while the API server itself is ready"),
        (
            "sick kubelet",
            |request| {
                let sick = || reply(500, &[("content-type", "text/plain")], "[-]syncloop failed: reason withheld\n");
                if request.uri().path().ends_with("healthz") { sick() } else { healthy(request) }
            },
            CellVerdict::Unhealthy,
            "syncloop failing",
        ),
        (
            "a long answer is read in part",
            |_| reply(503, &[("audit-id", "x")], "x".repeat(100_000)),
            CellVerdict::Broken,
            "...",
        ),
    ];
    for (row, fault, verdict, part) in rows {
        let faulty =
            move |request: &Request| if request.uri().path() == "/readyz" { healthy(request) } else { fault(request) };
        let fakes = FakeServers::default().with("a", faulty);
        let (env, _owner) = env();
        let matrix = sweep(&Prober::new(env.clock.clone()), &[server(&fakes, "a")], &["c"]).await;
        let cell = matrix.cell("a", "c").expect("asked");
        assert!(cell.verdict == verdict && cell.detail.contains(part), "{row}: {cell:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hang_is_broken_and_the_pair_is_left_alone_ever_longer() {
    let hangs = Arc::new(AtomicBool::new(true));
    let fault = Arc::clone(&hangs);
    let fakes = FakeServers::default().with("a", move |request: &Request| {
        if is_for(request, "c") && fault.load(Ordering::Relaxed) { silence() } else { healthy(request) }
    });
    let (env, _owner) = env();
    let prober = Prober::new(env.clock.clone());
    let servers = [server(&fakes, "a")];
    let begun = env.clock.instant();
    let matrix = sweep(&prober, &servers, &["b", "c"]).await;
    assert_eq!(verdicts(&matrix), [CellVerdict::Green, CellVerdict::Broken]);
    let cell = matrix.cell("a", "c").expect("asked");
    assert_eq!(cell.detail, "no answer within 12 s, while the API server itself is ready");
    assert_eq!(cell.milliseconds, 12_000);
    assert_eq!(env.clock.instant().duration_since(begun), Duration::from_secs(12), "no healthz after a hang");

    // At once again: not asked, and still broken.
    let matrix = sweep(&prober, &servers, &["b", "c"]).await;
    let cell = matrix.cell("a", "c").expect("asked");
    assert_eq!((cell.verdict, fakes.count("nodes/c/")), (CellVerdict::Broken, 1));
    assert!(cell.detail.ends_with("; it is asked again in 15 s"), "{}", cell.detail);

    // After the rest it is asked, hangs, and rests twice as long.
    env.clock.sleep(Duration::from_secs(15)).await;
    let _ = sweep(&prober, &servers, &["c"]).await;
    env.clock.sleep(Duration::from_secs(29)).await;
    let _ = sweep(&prober, &servers, &["c"]).await;
    assert_eq!(fakes.count("nodes/c/"), 2);
    hangs.store(false, Ordering::Relaxed);
    env.clock.sleep(Duration::from_secs(1)).await;
    let matrix = sweep(&prober, &servers, &["c"]).await;
    assert_eq!(verdicts(&matrix), [CellVerdict::Green]);
    assert!(prober.pairs().is_empty(), "healed: nothing is remembered");
}

#[tokio::test(start_paused = true)]
async fn one_probe_a_cell_is_in_flight_and_a_cancelled_sweep_leaves_none() {
    let fakes = FakeServers::default().with(
        "a",
        |request: &Request| {
            if is_for(request, "c") { silence() } else { healthy(request) }
        },
    );
    let (env, _owner) = env();
    let prober = Prober::new(env.clock.clone());
    let servers = [server(&fakes, "a")];
    let nodes = names(&["c"]);
    let first = prober.sweep(&servers, &nodes, None, 0);
    let second = async {
        env.clock.sleep(Duration::from_secs(1)).await;
        sweep(&prober, &servers, &["c"]).await
    };
    let (_, matrix) = tokio::join!(biased; first, second);
    let cell = matrix.cell("a", "c").expect("a cell");
    assert_eq!(
        (cell.verdict, cell.detail.as_str()),
        (CellVerdict::Unknown, "not asked: an earlier probe of this pair is still in flight")
    );
    assert_eq!(fakes.count("nodes/c/"), 1);

    let other = names(&["d", "c"]);
    env.clock.sleep(Duration::from_secs(600)).await;
    let cancelled = env.clock.timeout(Duration::from_secs(3), prober.sweep(&servers, &other, None, 0)).await;
    assert!(cancelled.is_err());
    assert!(prober.pairs().values().all(|memory| !memory.in_flight));
}

#[tokio::test(start_paused = true)]
async fn sweeps_at_the_same_time_take_turns_and_each_has_its_own_answers() {
    use std::sync::atomic::AtomicUsize;
    let (env, _owner) = env();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, seen, clock) = (Arc::clone(&now), Arc::clone(&most), env.clock.clone());
    let fakes = FakeServers::default().with("a", move |request: &Request| {
        let (counted, seen, clock, reply) = (Arc::clone(&counted), Arc::clone(&seen), clock.clone(), healthy(request));
        Box::pin(async move {
            seen.fetch_max(counted.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            clock.sleep(Duration::from_millis(700)).await;
            counted.fetch_sub(1, Ordering::Relaxed);
            reply.await
        })
    });
    let prober = Prober::new(env.clock.clone());
    let (servers, nodes) = ([server(&fakes, "a")], names(&["c"]));
    let one = || prober.sweep(&servers, &nodes, None, 0);
    let (first, second, third) = tokio::join!(biased; one(), one(), one());
    for matrix in [first, second, third] {
        let cell = matrix.known().and_then(|matrix| matrix.cell("a", "c")).expect("a cell");
        assert_eq!((cell.verdict, cell.milliseconds), (CellVerdict::Green, 1_400), "{}", cell.detail);
    }
    assert_eq!(most.load(Ordering::Relaxed), 1, "one at a time");
    assert_eq!(fakes.count("nodes/c/proxy/maint-probe"), 3);
    assert!(prober.pairs().is_empty(), "nothing is remembered");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_away_during_the_sweep_is_down_and_not_full_of_broken_paths() {
    let fakes = FakeServers::default().with("a", |_: &Request| refused());
    let (env, _owner) = env();
    let matrix = sweep(&Prober::new(env.clock.clone()), &[server(&fakes, "a")], &["b", "c"]).await;
    assert_eq!(verdicts(&matrix), [CellVerdict::ServerDown, CellVerdict::ServerDown]);
    assert_eq!(fakes.count("/readyz"), 1, "asked once for the row");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_nodes_are_asked_twelve_at_a_time() {
    use std::sync::atomic::AtomicUsize;
    let (env, _owner) = env();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, seen, clock) = (Arc::clone(&now), Arc::clone(&most), env.clock.clone());
    let fakes = FakeServers::default().with("a", move |request: &Request| {
        let (counted, seen, clock, reply) = (Arc::clone(&counted), Arc::clone(&seen), clock.clone(), healthy(request));
        Box::pin(async move {
            seen.fetch_max(counted.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            clock.sleep(Duration::from_millis(5)).await;
            counted.fetch_sub(1, Ordering::Relaxed);
            reply.await
        })
    });
    let nodes: Vec<String> = (0..1_000).map(|index| format!("node-{index:04}")).collect();
    let columns: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let matrix = sweep(&Prober::new(env.clock.clone()), &[server(&fakes, "a")], &columns).await;
    assert_eq!((matrix.cells.len(), most.load(Ordering::Relaxed)), (1_000, CONCURRENT_PROBES));
    assert!(matrix.cells.iter().all(|cell| cell.verdict == CellVerdict::Green));
    assert!(matrix.cells.is_sorted_by_key(|cell| cell.node.clone()), "in the order of the columns");
    let around = Prober::new(env.clock.clone()).sweep(&[server(&fakes, "a")], &nodes, Some("node-0007"), 100).await;
    assert_eq!(around.known().map(|matrix| matrix.cells.len()), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_row_that_hangs_ends_before_its_answers_are_stale() {
    let fakes = FakeServers::default()
        .with("a", |request: &Request| if request.uri().path() == "/readyz" { healthy(request) } else { silence() });
    let (env, _owner) = env();
    let nodes: Vec<String> = (0..200).map(|index| format!("n{index:03}")).collect();
    let columns: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let begun = env.clock.instant();
    let matrix = sweep(&Prober::new(env.clock.clone()), &[server(&fakes, "a")], &columns).await;
    assert_eq!(env.clock.instant().duration_since(begun), Duration::from_secs(24));
    let broken = matrix.cells.iter().filter(|cell| cell.verdict == CellVerdict::Broken).count();
    assert_eq!((broken, matrix.cells.len()), (2 * CONCURRENT_PROBES, 200));
    let last = matrix.cell("a", "n199").expect("a cell");
    assert_eq!(
        (last.verdict, last.detail.as_str()),
        (CellVerdict::Unknown, "not asked: the probes of this API server already took 20 s")
    );
}

/// What a server on a real socket answers, head and body as they are, and what it was asked.
async fn over_a_socket(answer: &'static str) -> (Answer, String) {
    install_crypto();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serve = async {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.expect("a request"));
        }
        stream.write_all(answer.as_bytes()).await.expect("answered");
        String::from_utf8(request).expect("text")
    };
    let config = kube::Config::new(format!("http://{address}").parse().expect("a URL"));
    let client = crate::client::Access::of(config).expect("verifies").unpooled().expect("built");
    let clock = Clock::real();
    let (asked, request) = tokio::join!(client.ask(&clock, Question::FreshDial("node-3")), serve);
    (asked.answer, request)
}

#[tokio::test]
async fn the_headers_survive_the_real_client() {
    let whole = "HTTP/1.1 404 Not Found\r\nContent-Length: 19\r\nContent-Type: text/plain\r\n\
                 X-Content-Type-Options: nosniff\r\n\r\n404 page not found\n";
    let (answer, request) = over_a_socket(whole).await;
    let request = request.to_lowercase();
    for part in [
        "get /api/v1/nodes/node-3/proxy/maint-probe http/1.1\r\n",
        "connection: upgrade\r\n",
        "upgrade: maint-probe\r\n",
        "user-agent: maint/",
    ] {
        assert!(request.contains(part), "{part}: {request}");
    }
    let judge = |answer: &Answer| classify::fresh_dial(answer, &Readiness::Ready);
    assert_eq!(judge(&answer).0, CellVerdict::Green, "{answer:?}");

    let with_audit = "HTTP/1.1 404 Not Found\r\nAudit-Id: 1\r\nContent-Length: 19\r\nContent-Type: text/plain\r\n\r\n404 page not found\n";
    assert_eq!(judge(&over_a_socket(with_audit).await.0).0, CellVerdict::Unknown);
    let switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: maint-probe\r\n\r\n";
    let (answer, _) = over_a_socket(switched).await;
    assert!(judge(&answer).1.contains("Upgrade header lost"), "{answer:?}");
    let (answer, _) = over_a_socket("HTTP/1.1 404 Not Found\r\nContent-Le").await;
    assert!(matches!(answer, Answer::NoConnection { .. }), "{answer:?}");
    let (answer, _) =
        over_a_socket("HTTP/1.1 500 Internal Server Error\r\nAudit-Id: 1\r\nContent-Length: 40\r\n\r\nerror dial")
            .await;
    assert!(matches!(answer, Answer::NoConnection { .. }), "cut in its body: {answer:?}");
}
