//! `maint demo`: the night that is told, and the cluster that is open to people.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::support::{Run, maint, maint_with, root};

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
        "maint n1  Held: API server n2 does not reach the kubelet of node n1",
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
    let id = i32::try_from(served.0.id()).expect("a process id");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGINT).expect("Ctrl-C");
    assert!(served.0.wait().expect("it ends").success(), "the story ended as it should");
    assert!(!std::path::Path::new(&kubeconfig).exists(), "its files go with it");
}
