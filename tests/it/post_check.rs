//! `maint post-check` on dumps, and where no API server answers.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::api::Api;
use crate::support::{DUMP, Run, assert_run, copied_dump, folder, maint, maint_with};

#[test]
fn a_whole_cluster() {
    let run = maint(&["post-check", "--from", DUMP]);
    assert_eq!(run.code, 0, "{run}");
    assert_run!("post_check_whole", run);
    assert_run!("post_check_whole_markdown", maint(&["post-check", "--from", DUMP, "-o", "markdown"]));
    assert_run!("post_check_nodes", maint(&["post-check", "--from", DUMP, "--nodes", "worker1,worker9"]));
}

#[test]
fn the_json_is_one_document() {
    let run = maint(&["post-check", "--from", DUMP, "-o", "json"]);
    let document: Value = serde_json::from_str(&run.stdout).expect("one document");
    assert_eq!((run.code, &document["kind"], &document["verdict"]), (0, &"PostCheckReport".into(), &"clear".into()));
    let ids: Vec<&str> =
        document["lines"].as_array().expect("lines").iter().filter_map(|line| line["id"].as_str()).collect();
    for id in ["nodes-ready", "control-plane", "kubelet-reachability", "daemon-sets", "cordons", "clocks", "boots"] {
        assert_eq!(ids.iter().filter(|known| **known == id).count(), 1, "{id}: {ids:?}");
    }
    let not_asked: Vec<&str> =
        document["notAsked"].as_array().expect("a list").iter().filter_map(|entry| entry["source"].as_str()).collect();
    assert_eq!(not_asked, ["api-servers", "matrix"]);
}

/// Changes a file of a copied dump.
fn bent(file: &str, change: impl FnOnce(String) -> String) -> (tempfile::TempDir, String) {
    let (folder, path) = copied_dump();
    let file = path.join(file);
    let text = std::fs::read_to_string(&file).expect("the file");
    let changed = change(text.clone());
    assert_ne!(text, changed, "nothing was changed");
    std::fs::write(&file, changed).expect("written");
    (folder, path.display().to_string())
}

#[test]
fn what_is_left_after_a_power_cut_is_named_with_its_owner_and_its_end() {
    let (_folder, path) = bent("nodes.json", |text| {
        let mut nodes: Value = serde_json::from_str(&text).expect("JSON");
        let node = &mut nodes["items"][1];
        node["spec"]["unschedulable"] = true.into();
        node["metadata"]["managedFields"] = serde_json::json!([
            {"manager": "kubectl-drain", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}},
        ]);
        nodes.to_string()
    });
    let run = maint(&["post-check", "--from", &path]).without(&path);
    assert_eq!(run.code, 3, "{run}");
    assert_run!("post_check_cordoned", run);
}

#[test]
fn a_wait_for_replenishment_is_told_with_its_end() {
    let (_folder, path) = copied_dump();
    let bend = |file: &str, rows: &[(usize, &str, &str)]| {
        let file = path.join(file);
        let text = std::fs::read_to_string(&file).expect("the file");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (number, before, after) in rows {
            let line = &mut lines[number - 1];
            assert!(line.contains(before), "line {number} of {}: {line}", file.display());
            *line = line.replace(before, after);
        }
        std::fs::write(&file, lines.join("\n")).expect("written");
    };
    let degraded = r#"lastDegradedAt: "2026-11-30T00:55:00Z""#;
    bend("volumes.longhorn.io.yaml", &[(89, r#"lastDegradedAt: """#, degraded), (94, "healthy", "degraded")]);
    let failed = r#"failedAt: "2026-11-30T00:55:00Z""#;
    let healthy = r#"healthyAt: "2026-11-12T04:05:12Z""#;
    bend("replicas.longhorn.io.yaml", &[(158, r#"failedAt: """#, failed), (160, healthy, r#"healthyAt: """#)]);
    let path = path.display().to_string();
    let run = maint(&["post-check", "--from", &path]);
    assert_eq!(run.code, 3, "{run}");
    assert!(run.stdout.starts_with("BLOCKED by longhorn-volumes (LonghornVolumeDegraded)"), "{run}");
    assert!(run.stdout.contains("; it waits until 01:05:01Z (in 00:05:01)"), "{run}");
    let run = maint(&["post-check", "--from", &path, "-o", "json"]);
    let document: Value = serde_json::from_str(&run.stdout).expect("one document");
    assert_eq!(document["lines"][0]["until"], "2026-11-30T01:05:01Z", "{document}");
}

#[test]
fn what_a_dump_lacks_is_unknown_and_no_verb_but_this_has_markdown() {
    let (_folder, path) = copied_dump();
    std::fs::remove_file(path.join("daemonsets.yaml")).expect("it was there");
    let run = maint(&["post-check", "--from", &path.display().to_string()]);
    assert_eq!(run.code, 4, "{run}");
    assert!(run.stdout.starts_with("UNKNOWN because of network-agent (ObservationFailed), 1 more"), "{run}");
    assert!(run.stdout.contains("\n  ? daemon-sets           ObservationFailed"), "{run}");
    for arguments in [
        &["check", "--from", DUMP, "-o", "markdown"][..],
        &["post-check", "--from", DUMP, "--settle", "9s"],
        &["post-check", "--timeout", "soon"],
        &["matrix", "--sweeps", "0"],
        &["matrix", "--sweeps", "3", "--watch"],
    ] {
        let run = maint(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run}");
    }
}

#[test]
fn a_cluster_in_which_nothing_can_be_proven_is_no_whole_one_and_nothing_is_written() {
    let api = Api::new();
    let run = api.maint(&["post-check", "--timeout", "0s"]);
    assert!(run.code == 3 || run.code == 4, "{run}");
    assert!(run.stderr.is_empty() && run.stdout.contains("maint only reports, a person decides"), "{run}");
    assert!(api.writes().is_empty(), "{:?}", api.writes());
}

fn kubeconfig(server: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: good\n\
         clusters: [{{name: here, cluster: {{server: \"{server}\"}}}}]\n\
         users: [{{name: me, user: {{token: t}}}}]\ncontexts: [{{name: good, context: {{cluster: here, user: me}}}}]\n"
    )
}

fn ask(kubeconfig: &str, settings: &str, flags: &[&str]) -> Run {
    let (_folder, path) = folder(&[("config", kubeconfig), ("maint.toml", settings)]);
    let (file, settings) = (format!("{path}/config"), format!("{path}/maint.toml"));
    let arguments = [&["post-check"], flags, &["--kubeconfig", &file, "--config", &settings]].concat();
    maint_with(&arguments, &[("LANG", "C.UTF-8"), ("HOME", &path)]).without(&path)
}

#[test]
fn every_api_server_that_is_known_is_tried_and_each_reason_told() {
    // Bound and gone again: nobody listens there now.
    let closed = || TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").to_string();
    let (first, second) = (closed(), closed());
    let settings = format!("control_plane.api_servers = {{ worker2 = \"{second}\" }}\n");
    let server = kubeconfig(&format!("https://{first}"));
    let run = ask(&server, &settings, &["--timeout", "0s"]);
    assert_eq!((run.code, run.stdout.as_str()), (7, ""), "{run}");
    let lines: Vec<&str> = run.stderr.lines().collect();
    let [wrong, helps] = lines.as_slice() else { panic!("no two lines: {run}") };
    assert!(wrong.starts_with("error: no API server answers (") && helps.starts_with("  what helps: "), "{run}");
    for address in [&first, &second] {
        assert!(wrong.contains(address.as_str()), "{address}: {run}");
    }
    // It goes on trying as long as it was told to, and says so.
    let run = ask(&server, &settings, &["--timeout", "1s"]);
    assert_eq!(run.code, 7, "{run}");
    assert!(run.stderr.starts_with("00:00:00 waits for an API server that answers: "), "{run}");
}

#[test]
fn it_waits_for_an_api_server_and_an_interrupt_prints_the_last_look() {
    let address = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").to_string();
    let (_folder, path) = folder(&[("config", &kubeconfig(&format!("http://{address}")))]);
    let mut waiting = Command::new(env!("CARGO_BIN_EXE_maint"))
        .args(["post-check", "--timeout", "10m", "--kubeconfig", &format!("{path}/config")])
        .env_clear()
        .envs([("LANG", "C.UTF-8"), ("HOME", path.as_str())])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut talk = BufReader::new(waiting.stderr.take().expect("its talk")).lines().map(|line| line.expect("text"));
    let first = talk.next().expect("a line");
    assert!(first.starts_with("00:00:00 waits for an API server that answers: "), "{first}");
    let api = Api::new();
    let output = api.with_at(&address, |_| {
        let second = talk.next().expect("a line");
        let id = i32::try_from(waiting.id()).expect("a process id");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGINT).expect("Ctrl-C");
        (second, waiting.wait_with_output().expect("it ends"))
    });
    let (second, output) = output;
    assert!(second.contains(" waits for ") && second.contains("unknown: "), "an answer came: {second}");
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(130), "{stdout}");
    assert!(stdout.starts_with("UNKNOWN ") || stdout.starts_with("BLOCKED "), "{stdout}");
    assert!(api.writes().is_empty(), "{:?}", api.writes());
}

#[test]
fn what_waiting_does_not_help_is_an_error_at_once() {
    let rows = [("no URL", kubeconfig("not a url")), ("rubbish", "{ clusters: [".to_owned())];
    for (row, text) in rows {
        let run = ask(&text, "", &["--timeout", "10m"]);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{row}: {run}");
        assert!(run.stderr.contains("\n  what helps: "), "{row}: {run}");
    }
}
