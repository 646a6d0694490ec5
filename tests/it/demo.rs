//! `maint demo`: the night that is told, and the cluster that is open to people.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::support::{Run, folder, maint, maint_with, root};

/// As fast as the machine can.
const FAST: &[&str] = &["demo", "--speed", "100000"];

#[test]
fn the_night_is_told_to_its_end() {
    let run = maint(FAST);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run}");
    let mut rest = run.stdout.as_str();
    for part in [
        "night: a volume that rebuilds",
        "It is ",
        "02:04:00  maint n1  Pending: waits for longhorn-volumes",
        "Longhorn is done",
        "Draining: cordoned; pods are evicted",
        "kured n1  Triggering reboot for node n1",
        "maint n1  Held: API server n2 has no session to n1's agent",
        "message   n1 is HELD (KubeletUnreachable)",
        "maint resume n1-",
        "restarts k3s on n1",
        "maint n1  Uncordoning: proven: matrix 9/9",
        "maint n1  Succeeded: boot",
        "kured n3  Triggering reboot for node n3",
        "maint n3  Succeeded: boot",
        "2 nodes maintained and proven (n1, n3); 1 node waiting (n2)",
    ] {
        rest = rest.split_once(part).unwrap_or_else(|| panic!("no `{part}` in its place: {run}")).1;
    }
    assert!(!run.stdout.contains('\u{1b}'), "no colour off a terminal");
}

#[test]
fn a_document_holds_what_came_of_it() {
    let run = maint(&[FAST, &["--scenario", "observe", "-o", "json"]].concat());
    assert_eq!(run.code, 0, "{run}");
    let document: serde_json::Value = serde_json::from_str(&run.stdout).expect("one document");
    assert_eq!(document["kind"], "Demo");
    assert_eq!(document["endedAsItShould"], true);
    assert_eq!(document["report"]["status"]["verdict"], "observed");
    let told = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("would have begun"), "the night is talk then: {run}");
}

#[test]
fn an_unknown_scenario_is_answered_with_the_known_ones() {
    let run = maint(&["demo", "--scenario", "nigth"]);
    assert_eq!(run.code, 2, "{run}");
    let help = maint(&["demo", "--help"]).stdout;
    for name in
        ["night", "smooth", "rebuild-all-night", "last-copy", "stuck-pod", "no-return", "leader-dies", "observe"]
    {
        assert!(run.stderr.contains(name) && help.contains(&format!("\n  {name} ")), "{name}: {run}\n{help}");
    }
}

/// A watch prints its first sweep, then nothing while nothing changes, and ends as its last sweep says.
fn watches_until_ctrl_c(kubeconfig: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maint"));
    command.args(["matrix", "--watch", "--every", "1s", "-o", "json", "--kubeconfig", kubeconfig]);
    let mut watching = Served(command.stdout(Stdio::piped()).spawn().expect("it runs"));
    let mut lines = BufReader::new(watching.0.stdout.take().expect("its output")).lines();
    let line = lines.next().expect("a line").expect("text");
    let document: serde_json::Value = serde_json::from_str(&line).expect("one document a line");
    assert_eq!((&document["kind"], &document["shape"]), (&"MatrixReport".into(), &"whole".into()));
    let id = i32::try_from(watching.0.id()).expect("a process id");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGINT).expect("Ctrl-C");
    assert_eq!(watching.0.wait().expect("it ends").code(), Some(0));
    assert_eq!(lines.count(), 0, "nothing changed");
}

/// Where the kubeconfig's server is gone, a post-check asks another one that it knows.
fn another_api_server_answers(kubeconfig: &str, config: &str, matrix: &Run) {
    let matrix: serde_json::Value = serde_json::from_str(&matrix.stdout).expect("one document");
    let address = matrix["apiServers"][1]["address"].as_str().expect("an address");
    let mut settings: toml::Table = std::fs::read_to_string(config).expect("its settings").parse().expect("TOML");
    let plane = settings.entry("control_plane").or_insert_with(|| toml::Table::new().into());
    plane["api_servers"] = toml::Table::from_iter([("n2".to_owned(), address.into())]).into();
    let text = std::fs::read_to_string(kubeconfig).expect("a kubeconfig");
    let server = text.lines().find(|line| line.contains("server: https://")).expect("its server");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let indent: String = server.chars().take_while(|letter| *letter == ' ' || *letter == '-').collect();
    let gone = format!("{indent}server: https://{closed}");
    let (_folder, path) =
        folder(&[("kubeconfig", &text.replace(server, &gone)), ("maint.toml", &settings.to_string())]);
    let (kubeconfig, config) = (format!("{path}/kubeconfig"), format!("{path}/maint.toml"));
    let verb = ["post-check", "--timeout", "0s", "--kubeconfig", &kubeconfig, "--config", &config];
    let run = maint_with(&verb, &[("LANG", "C.UTF-8")]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.contains(&format!("live API server {address}, since the server of ")), "{run}");
}

/// The demo while it serves; it ends with this value, whatever a test does.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn verbs_work_on_the_cluster_that_is_served() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maint"));
    command.args([FAST, &["--scenario", "smooth", "--serve"]].concat()).current_dir(root());
    let mut served = Served(command.stdout(Stdio::piped()).spawn().expect("the demo runs"));
    let mut lines = BufReader::new(served.0.stdout.take().expect("its output")).lines().map(|line| line.expect("text"));
    let export = lines.find(|line| line.contains("export KUBECONFIG=")).expect("it says where the kubeconfig is");
    let of = |name: &str| {
        let (_, rest) = export.split_once(name).expect("a path");
        rest.split(' ').next().unwrap_or_default().to_owned()
    };
    let (kubeconfig, config) = (of("KUBECONFIG="), of("MAINT_CONFIG="));
    lines.find(|line| line.contains("Ctrl-C ends it")).expect("it stays when the story is over");
    let environment = [("LANG", "C.UTF-8"), ("MAINT_CONFIG", config.as_str())];
    let ask = |verb: &[&str]| -> Run { maint_with(&[verb, &["--kubeconfig", &kubeconfig]].concat(), &environment) };
    let rows: &[(&[&str], i32, &str)] = &[
        (&["status"], 0, "n3    yes"),
        (&["matrix"], 0, "WHOLE 9 of 9"),
        (&["matrix", "--sweeps", "2", "--every", "1s"], 0, ", 2 sweeps, fresh connections, "),
        (&["matrix", "--node", "n2"], 0, "WHOLE 5 of 5 paths whole\n3 API servers x 3 nodes"),
        (&["matrix", "--node", "n22"], 2, "unknown node `n22`, did you mean `n2`?"),
        (&["post-check", "--settle", "1s", "--timeout", "1m"], 0, "CLEAR "),
        (&["check", "n2"], 3, "n2 BLOCKED by window (OutsideWindow)"),
        (&["doctor"], 0, "READY"),
        (&["history"], 0, "Succeeded"),
        (&["report"], 0, "3 nodes maintained and proven"),
        (&["lock", "show"], 0, "FREE"),
        (&["hold", "n1", "--reason", "mine"], 0, "n1"),
        (&["release", "n1"], 0, "n1"),
        (&["halt", "--reason", "wait"], 0, ""),
        (&["unhalt"], 0, ""),
    ];
    for (verb, code, part) in rows {
        let run = ask(verb);
        assert!(run.code == *code && format!("{}{}", run.stdout, run.stderr).contains(part), "{run}");
    }
    watches_until_ctrl_c(&kubeconfig);
    another_api_server_answers(&kubeconfig, &config, &ask(&["matrix", "-o", "json"]));
    let id = i32::try_from(served.0.id()).expect("a process id");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGINT).expect("Ctrl-C");
    assert!(served.0.wait().expect("it ends").success(), "the story ended as it should");
    assert!(!std::path::Path::new(&kubeconfig).exists(), "its files go with it");
}
