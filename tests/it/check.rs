//! `maint check` on dumps: the shipped one, bent ones, and everything that is no dump.

use std::fs;

use serde_json::Value;

use crate::support::{DUMP, assert_run, copied_dump, folder, maint, maint_with};

#[test]
fn a_free_node() {
    assert_run!("check_worker2", maint(&["check", "worker2", "--from", DUMP]));
}

#[test]
fn its_blocked_neighbour() {
    assert_run!("check_worker1", maint(&["check", "worker1", "--from", DUMP]));
}

#[test]
fn all_nodes() {
    assert_run!("check_all", maint(&["check", "--from", DUMP]));
}

#[test]
fn a_service_restart() {
    assert_run!("check_service_restart", maint(&["check", "worker1", "--scope", "service-restart", "--from", DUMP]));
}

#[test]
fn without_unicode_and_with_colours() {
    let rows: &[(&str, &[&str], &[(&str, &str)], &str)] = &[
        ("--ascii", &["--ascii"], &[("LANG", "C.UTF-8")], "\n  OK    exclusive "),
        ("no locale", &[], &[], "\n  OK    exclusive "),
        ("the C locale", &[], &[("LC_ALL", "C"), ("LANG", "C.UTF-8")], "\n  OK    exclusive "),
        ("UTF-8", &[], &[("LC_CTYPE", "en_US.utf8")], "\n  √ exclusive "),
        ("colours if asked", &["--color", "always"], &[("LANG", "C.UTF-8")], "\n  \u{1b}[32m√\u{1b}[0m exclusive "),
        ("no colours in a pipe", &["--color", "auto"], &[("LANG", "C.UTF-8")], "\n  √ exclusive "),
    ];
    for (name, flags, environment, wanted) in rows {
        let arguments = [&["check", "worker2", "--from", DUMP], *flags].concat();
        let run = maint_with(&arguments, environment);
        assert!(run.stdout.contains(wanted), "{name}: {run}");
        assert_eq!(run.code, 0, "{name}: {run}");
    }
}

#[test]
fn json_is_one_document_and_keeps_its_names() {
    let run = maint(&["check", "worker1", "--from", DUMP, "-o", "json"]);
    let mut document: Value = serde_json::from_str(&run.stdout).expect("one document");
    assert!(document["generatedAt"].take().is_string());
    assert_eq!(run.stderr, "");
    for (pointer, wanted) in [
        ("/apiVersion", "maint.dev/v1"),
        ("/kind", "CheckReport"),
        ("/now", "2026-11-30T01:00:00Z"),
        ("/source/kind", "dump"),
        ("/source/clock", "newest-lease"),
        ("/scope", "reboot"),
        ("/strategy", "drain"),
        ("/moment", "start"),
        ("/trigger", "unattended"),
        ("/nodes/0/name", "worker1"),
    ] {
        assert_eq!(document.pointer(pointer).and_then(Value::as_str), Some(wanted), "{pointer}");
    }
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!("check_worker1_json", serde_json::to_string_pretty(&document).expect("JSON"));
    });
}

#[test]
fn all_nodes_in_json_have_all_their_findings() {
    let run = maint(&["check", "--from", DUMP, "-o", "json"]);
    let document: Value = serde_json::from_str(&run.stdout).expect("one document");
    let nodes = document["nodes"].as_array().expect("nodes");
    assert_eq!(nodes.len(), 3);
    let counts: Vec<usize> = nodes.iter().map(|node| node["findings"].as_array().expect("findings").len()).collect();
    assert!(counts.iter().all(|count| *count == counts[0] && *count > 5), "{counts:?}");
}

/// What a row changes in a copy of the dump: file, text to replace, by what. An empty text replaces the whole file.
type Bend = (&'static str, &'static str, &'static str);

#[test]
fn a_dump_that_lacks_or_refuses_something_is_never_clear() {
    let status =
        r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"Forbidden","code":403}"#;
    let empty = "apiVersion: v1\nitems: []\nkind: List\nmetadata:\n  resourceVersion: \"\"\n";
    let rows: &[(&str, &[Bend], i32, &str)] = &[
        ("volumes refused", &[("volumes.longhorn.io.yaml", "", status)], 4, "could not be read (forbidden): "),
        ("an empty List of attachments", &[("volumeattachments.yaml", "", empty)], 4, "--complete"),
        ("volumes cut to an empty List", &[("volumes.longhorn.io.yaml", "", empty)], 4, "--complete"),
        ("a node's spec gone", &[("nodes.json", "\"spec\"", "\"spek\"")], 4, "Node worker1: spec is missing"),
        (
            "DNS forgotten",
            &[("endpointslices.yaml", "apiVersion: discovery.k8s.io/v1\n", "apiVersion: discovery.k8s.io/v1beta1\n")],
            4,
            "apiVersion is discovery.k8s.io/v1beta1, wanted discovery.k8s.io/v1",
        ),
    ];
    for (name, bends, code, wanted) in rows {
        let (_folder, path) = copied_dump();
        for (file, text, by) in *bends {
            let file = path.join(file);
            let old = fs::read_to_string(&file).expect("read");
            let new = if text.is_empty() { (*by).to_owned() } else { old.replace(text, by) };
            assert_ne!(old, new, "{name} changes nothing");
            fs::write(file, new).expect("written");
        }
        let run = maint(&["check", "worker2", "--from", &path.display().to_string()]);
        assert_eq!(run.code, *code, "{name}: {run}");
        assert!(run.stdout.contains(wanted), "{name}: {run}");
    }
}

#[test]
fn every_file_of_the_dump_counts() {
    // What no gate of moment `start` reads for a healthy cluster, or what an absent kind answers for.
    let not_needed = ["deployments.yaml"];
    for entry in fs::read_dir(crate::support::root().join(DUMP)).expect("the dump") {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        if not_needed.contains(&name.as_str()) {
            continue;
        }
        let (_folder, path) = copied_dump();
        fs::remove_file(path.join(&name)).expect("removed");
        let run = maint(&["check", "worker2", "--from", &path.display().to_string(), "--now", "2026-11-30T01:00:00Z"]);
        assert_eq!(run.code, 4, "without {name}: {run}");
        let all = maint(&["check", "--from", &path.display().to_string(), "--now", "2026-11-30T01:00:00Z"]);
        assert!(all.code == 4 || all.code == 3, "without {name}: {all}");
        if name == "nodes.json" {
            let wanted = "error: cannot tell which nodes there are (partial): no file in the dump has kind Node";
            assert!(all.stderr.starts_with(wanted), "{all}");
        }
    }
}

#[test]
fn what_is_no_dump_is_an_error_that_says_what_to_do() {
    let node = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"a","resourceVersion":"1"}}"#;
    let newer = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"a","resourceVersion":"2"}}"#;
    let rows: &[(&str, &[(&str, &str)], &str)] = &[
        ("an empty folder", &[], "error: DUMP: the folder has no files"),
        ("only dot files", &[(".hidden", node)], "error: DUMP: the folder has no files"),
        ("an empty file", &[("nodes.yaml", "")], "error: DUMP/nodes.yaml: is empty"),
        ("cut JSON", &[("n.json", "{\"apiVersion\": \"v1\",\n")], "error: DUMP/n.json:2: ends in the middle"),
        ("cut YAML", &[("n.yaml", "apiVersion: v1\nitems:\n- a: 1\n")], "error: DUMP/n.yaml:1: has items and no kind"),
        ("broken YAML", &[("n.yaml", "a: [1\n")], "error: DUMP/n.yaml:1: is no YAML"),
        (
            "a table",
            &[("n.txt", "NAME   STATUS\na      Ready\n")],
            "error: DUMP/n.txt:1: is kubectl's table for people",
        ),
        ("a message", &[("n.yaml", "No resources found\n")], "error: DUMP/n.yaml:1: is a message of kubectl"),
        ("foreign YAML", &[("values.yaml", "replicas: 3\n")], "error: DUMP/values.yaml:1: is no Kubernetes object"),
        ("a binary", &[("core", "\u{0}\u{1}")], "error: DUMP/core: is no text"),
        ("two moments", &[("a", node), ("b", newer)], "error: DUMP/b:1: Node a differs from the one in DUMP/a:1"),
        ("no clock", &[("a", node)], "error: DUMP: no Lease tells when the dump was taken"),
    ];
    for (name, files, wanted) in rows {
        let (_folder, path) = folder(files);
        let run = maint(&["check", "--from", &path]).without(&path);
        assert_eq!(run.code, 1, "{name}: {run}");
        assert_eq!(run.stdout, "", "{name}: nothing is judged: {run}");
        assert!(run.stderr.starts_with(wanted), "{name}: {run}");
        assert!(run.stderr.contains("\n  help: "), "{name}: {run}");
    }
    let run = maint(&["check", "--from", "no/such/path"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stderr.starts_with("error: no/such/path: No such file"), "{run}");
}

#[test]
fn a_file_beyond_the_limit_is_refused_unread() {
    let (folder, path) = folder(&[]);
    let file = fs::File::create(folder.path().join("big.json")).expect("made");
    file.set_len(512 * 1024 * 1024 + 1).expect("sparse");
    let run = maint(&["check", "--from", &path]).without(&path);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stderr.starts_with("error: DUMP/big.json: has 536870913 bytes, the limit is 536870912"), "{run}");
}

#[test]
fn usage_errors() {
    let rows: &[(&str, &[&str], &str)] = &[
        (
            "an unknown node",
            &["check", "workr2", "--from", DUMP],
            "error: unknown node `workr2`, did you mean `worker2`?; known: worker1, worker2, worker3\n",
        ),
        (
            "an unknown scope",
            &["check", "--scope", "rebot", "--from", DUMP],
            "error: unknown scope `rebot`, did you mean `reboot`?; known: service-restart, reboot, power-off\n",
        ),
        (
            "an unknown moment",
            &["check", "--moment", "begin", "--from", DUMP],
            "error: invalid value 'begin' for '--moment <MOMENT>': unknown moment `begin`; known: start, cordoned, handover, verify, settle\n",
        ),
        (
            "a time without a zone",
            &["check", "--from", DUMP, "--now", "01:00"],
            "error: invalid value '01:00' for '--now <TIME>'",
        ),
        (
            "--now without a dump",
            &["check", "--now", "2026-11-30T01:00:00Z"],
            "error: the following required arguments were not provided:\n  --from <PATH>",
        ),
        ("an unknown verb", &["chek"], "error: unrecognized subcommand 'chek'"),
        ("an unknown format", &["check", "-o", "yaml"], "error: invalid value 'yaml' for '--output <OUTPUT>'"),
    ];
    for (name, arguments, wanted) in rows {
        let run = maint(arguments);
        assert_eq!(run.code, 2, "{name}: {run}");
        assert_eq!(run.stdout, "", "{name}: {run}");
        assert!(run.stderr.starts_with(wanted), "{name}: {run}");
    }
    let nothing: [&str; 0] = [];
    let run = maint(&nothing);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "no verb: {run}");
    let run = maint(&["--help"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run}");
}

#[test]
fn the_clock_can_be_given() {
    let run = maint(&["check", "worker2", "--from", DUMP, "--now", "2026-11-30T03:00:00+02:00"]);
    assert!(run.stdout.contains("judged at 2026-11-30T01:00:00Z (as given by --now)"), "{run}");
}
