//! The verbs that read a cluster where there is none to ask: one error that says what is wrong and what helps.

use std::net::TcpListener;

use crate::support::{Run, folder, maint_with};

/// A kubeconfig with context `good` for this server, and one whose cluster is not there.
fn kubeconfig(server: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: good\n\
         clusters: [{{name: here, cluster: {{server: \"{server}\"}}}}]\n\
         users: [{{name: me, user: {{token: t}}}}]\n\
         contexts:\n- {{name: good, context: {{cluster: here, user: me}}}}\n- {{name: dangling, context: {{cluster: gone, user: me}}}}\n"
    )
}

/// Verbs that read a cluster, each by a way of its own.
const VERBS: &[&[&str]] = &[
    &["check", "worker2"],
    &["matrix"],
    &["doctor"],
    &["lock", "show"],
    &["lock", "release", "--garbage", "--yes"],
    &["report"],
    &["status"],
    &["reboot", "worker2", "--yes"],
];

/// Runs the verbs against a kubeconfig with this text, with nothing else in the environment.
fn ask(text: &str, flags: &[&str]) -> Vec<Run> {
    let (_folder, path) = folder(&[("config", text)]);
    let file = format!("{path}/config");
    VERBS
        .iter()
        .map(|verb| {
            let arguments = [verb, flags, &["--kubeconfig", &file]].concat();
            maint_with(&arguments, &[("LANG", "C.UTF-8"), ("HOME", &path)]).without(&path)
        })
        .collect()
}

/// Exit 1, nothing on stdout, and on stderr one error of two lines: what is wrong, what helps.
fn assert_error(row: &str, run: &Run, parts: &[&str]) {
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{row}: {run}");
    let lines: Vec<&str> = run.stderr.lines().collect();
    let [wrong, helps] = lines.as_slice() else { panic!("{row}: no two lines: {run}") };
    assert!(wrong.starts_with("error: ") && helps.starts_with("  what helps: "), "{row}: {run}");
    for part in parts {
        assert!(run.stderr.contains(part), "{row}: no `{part}`: {run}");
    }
}

#[test]
fn no_kubeconfig_at_all() {
    let (_folder, home) = folder(&[]);
    for verb in [&[&["check"][..], &["check", "worker2", "-o", "json"]][..], VERBS].concat() {
        let run = maint_with(verb, &[("LANG", "C.UTF-8"), ("HOME", &home)]).without(&home);
        assert_error("none", &run, &["no kubeconfig", "--kubeconfig"]);
    }
    let named = maint_with(&["matrix", "--kubeconfig", "/nowhere/config"], &[("HOME", &home)]);
    assert_error("a missing file", &named, &["/nowhere/config"]);
    let by_variable = maint_with(&["matrix"], &[("HOME", &home), ("KUBECONFIG", "/nowhere/config")]);
    assert_error("a missing file by KUBECONFIG", &by_variable, &["/nowhere/config"]);
}

#[test]
fn kubeconfigs_that_lead_nowhere() {
    // Bound and gone again: nobody listens there now.
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let good = kubeconfig(&format!("https://{closed}"));
    let rows: &[(&str, &str, &[&str], &[&str])] = &[
        ("an unknown context", &good, &["--context", "prod"], &["no context `prod`; it has: good, dangling"]),
        ("a context without its cluster", &good, &["--context", "dangling"], &["gone"]),
        ("a closed port", &good, &[], &[&closed.to_string(), "does not answer", "refused"]),
        ("rubbish", "{ clusters: [", &[], &["the kubeconfig cannot be used", "config"]),
        ("an empty file", "", &[], &["names no current context; it has: none"]),
        ("no URL", &kubeconfig("not a url"), &[], &["the kubeconfig cannot be used"]),
        (
            "a name that is none",
            &kubeconfig("https://nowhere.invalid:6443"),
            &[],
            &["nowhere.invalid", "does not answer"],
        ),
    ];
    for (row, text, flags, parts) in rows {
        for run in ask(text, flags) {
            assert_error(row, &run, parts);
        }
    }
}

#[test]
fn a_port_that_never_answers() {
    // The kernel takes the connection; nobody ever reads from it.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (_folder, path) = folder(&[("config", &kubeconfig(&format!("https://{address}")))]);
    let run = maint_with(&["matrix", "--kubeconfig", &format!("{path}/config")], &[("HOME", &path)]);
    assert_error("hangs", &run, &[&address, "does not answer"]);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a server beside the program under test; it ends with its one answer")]
fn a_server_that_speaks_no_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let answering = std::thread::spawn(move || {
        use std::io::Write as _;
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.write_all(b"HTTP/1.0 400 Bad Request\r\n\r\n").expect("written");
    });
    let (_folder, path) = folder(&[("config", &kubeconfig(&format!("https://{address}")))]);
    let run = maint_with(&["matrix", "--kubeconfig", &format!("{path}/config")], &[("HOME", &path)]);
    answering.join().expect("answered");
    assert_error("plain HTTP", &run, &[&address]);
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a server beside the program under test; it ends with the test's process"
)]
fn the_service_goes_on_where_its_log_cannot_be_written() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let (asked, calls) = std::sync::mpsc::channel();
    // Every question is cut off, which the service logs, and asks again.
    std::thread::spawn(move || listener.incoming().try_for_each(|stream| asked.send(stream.map(drop).is_ok())));
    let (_folder, path) = folder(&[("config", &kubeconfig(&format!("http://{address}")))]);
    let full = std::fs::File::options().write(true).open("/dev/full").expect("a file that is always full");
    let mut service = std::process::Command::new(env!("CARGO_BIN_EXE_maint"))
        .args(["-v", "serve", "--listen", "127.0.0.1:0", "--kubeconfig", &format!("{path}/config")])
        .env_clear()
        .stdout(std::process::Stdio::null())
        .stderr(full)
        .spawn()
        .expect("the binary runs");
    let limit = std::time::Duration::from_secs(30);
    let heard = (0..6).take_while(|_| calls.recv_timeout(limit).is_ok()).count();
    let ended = service.try_wait().expect("its state");
    service.kill().expect("it is there to be ended");
    service.wait().expect("it ended");
    assert_eq!((heard, ended), (6, None), "questions heard, and how the service ended");
}
