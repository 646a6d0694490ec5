//! The verbs that ask for runs, steer and look at them: usage errors, and conversations with an API server.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use maint_core::api::crds;
use serde_json::{Value, json};

use crate::api::{Api, CONFIG_MAPS, LEASE, RECORDS};
use crate::support::{assert_run, maint};

fn record(phase: &str) -> Value {
    json!({
        "apiVersion": "maint.dev/v1alpha1", "kind": "Maintenance",
        "metadata": {
            "name": "worker2-x7k2m", "uid": "u-1", "resourceVersion": "7", "creationTimestamp": "2026-11-30T01:00:00Z",
        },
        "spec": {
            "nodeName": "worker2", "scope": "reboot", "action": "pod", "trigger": "manual", "requestedBy": "anna@desk",
            "reason": "kernel update",
        },
        "status": {
            "phase": phase, "observedGeneration": 1, "term": 3, "reboots": true, "greenSweeps": 0, "strategy": "drain",
            "outcome": "Proven", "message": "boot b1 -> b2, matrix 9/9 -> 9/9", "stepStartedAt": "2026-11-30T01:20:00Z",
            "node": {"bootIdBefore": "b1", "bootIdAfter": "b2", "kernelBefore": "6.8", "kernelAfter": "6.9"},
            "timeline": [
                {"at": "2026-11-30T01:00:01Z", "phase": "Pending", "message": "wished"},
                {"at": "2026-11-30T01:20:00Z", "phase": phase, "message": "boot b1 -> b2"},
            ],
        },
    })
}

#[test]
fn usage_errors_need_no_cluster() {
    let rows: &[(&str, &[&str], &str)] = &[
        ("no node", &["reboot"], "error: the following required arguments were not provided:\n  <NODE>"),
        (
            "an unknown scope",
            &["reboot", "w", "--scope", "rebot", "--yes"],
            "error: unknown scope `rebot`, did you mean `reboot`?",
        ),
        (
            "a scope without a reboot",
            &["reboot", "w", "--scope", "service-restart", "--yes"],
            "error: scope `service-restart` does not reboot\n  what helps: maint run NODE --scope service-restart -- COMMAND\n",
        ),
        (
            "an unknown action",
            &["reboot", "w", "--action", "pot", "--yes"],
            "error: invalid value 'pot' for '--action <NAME>': unknown action `pot`, did you mean `pod`?",
        ),
        (
            "an unknown gate",
            &["reboot", "w", "--action", "pod", "--yes", "--override", "longhorn-volume=x"],
            "error: unknown gate `longhorn-volume`, did you mean `longhorn-volumes`?",
        ),
        (
            "a gate that nobody may waive",
            &["reboot", "w", "--action", "pod", "--yes", "--override", "control-plane=x"],
            "error: gate control-plane cannot be waived: ",
        ),
        (
            "no reason",
            &["reboot", "w", "--action", "pod", "--yes", "--override", "attachments"],
            "error: --override attachments needs a reason: --override 'attachments=WHY'\n",
        ),
        (
            "less than the scope asks",
            &["reboot", "w", "--action", "pod", "--yes", "--strategy", "cordon-only"],
            "error: scope `reboot` drains: --strategy may ask for more than the scope, never for less\n",
        ),
        (
            "an odd wait",
            &["reboot", "w", "--wait", "soon"],
            "error: invalid value 'soon' for '--wait <DURATION>': wanted a",
        ),
        (
            "no terminal and no --yes",
            &["reboot", "w", "--action", "pod"],
            "error: nobody can be asked, since this is no terminal: say --yes to mean it\n",
        ),
        ("nobody", &["reboot", "w", "--action", "pod", "--yes", "--as", " "], "error: --as needs a name"),
        (
            "no command",
            &["run", "w", "--scope", "reboot", "--yes"],
            "error: the following required arguments were not provided:\n  <COMMAND>...",
        ),
        (
            "no such command",
            &["run", "w", "--scope", "reboot", "--yes", "--", "no-such-command"],
            "error: there is no command `no-such-command` on this machine\n",
        ),
        (
            "no reason to hold",
            &["hold", "w"],
            "error: the following required arguments were not provided:\n  --reason <TEXT>",
        ),
        (
            "an odd end",
            &["halt", "--until", "tomorrow"],
            "error: invalid value 'tomorrow' for '--until <WHEN>': wanted a time with its zone",
        ),
        (
            "an odd instant",
            &["windows", "--at", "yesterday"],
            "error: invalid value 'yesterday' for '--at <TIME>': wanted a time with its zone, such as 2026-12-05T01:00:00Z",
        ),
        (
            "an odd clock of a dump",
            &["doctor", "--from", "x", "--now", "12:00"],
            "error: invalid value '12:00' for '--now <TIME>': wanted a time with its zone",
        ),
    ];
    for (name, arguments, wanted) in rows {
        let run = maint(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{name}: {run}");
        assert!(run.stderr.starts_with(wanted), "{name}: {run}");
    }
}

#[test]
fn what_needs_a_cluster_says_so_without_one() {
    for arguments in [&["status"][..], &["history"], &["show", "r"], &["halt"], &["unhalt"], &["cancel", "r"]] {
        let run = maint(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{run}");
        assert!(run.stderr.starts_with("error: no kubeconfig, and not in a pod"), "{run}");
    }
}

#[test]
fn the_crds_are_yaml_for_kubectl() {
    let run = maint(&["crds"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run}");
    let wanted = crds().expect("schemas");
    let documents: Vec<Value> =
        run.stdout.split("---\n").skip(1).map(|text| serde_saphyr::from_str(text).expect("YAML")).collect();
    assert_eq!(documents, wanted, "what is read is what was meant");
    let run = maint(&["crds", "-o", "json"]);
    let list: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((&list["kind"], list["items"].as_array()), (&json!("List"), Some(&wanted)));
}

#[test]
fn missing_crds_and_rights_are_told_with_what_helps() {
    let missing = || Api::new().answer(&format!("GET {RECORDS}"), 404, json!("404 page not found"));
    let refused = |asked: &str| Api::new().record(&record("Held")).refuse(asked, 403, "User \"anna\" cannot");
    let crds = "error: the cluster does not know maint's records: their CRDs are not installed\n  what helps: maint crds | kubectl apply -f -\n";
    let reboot = &["reboot", "worker1", "--action", "pod", "--yes"][..];
    let rows: Vec<(&str, Api, &[&str], &str)> = vec![
        ("status", missing(), &["status"], crds),
        ("history", missing(), &["history"], crds),
        ("show", missing(), &["show", "r"], crds),
        ("cancel", missing(), &["cancel", "r"], crds),
        ("reboot", missing(), reboot, crds),
        (
            "create",
            refused(&format!("POST {RECORDS}")),
            reboot,
            "error: you lack the right to create maintenances.maint.dev: ",
        ),
        (
            "list",
            refused(&format!("GET {RECORDS}")),
            &["history"],
            "error: you lack the right to list maintenances.maint.dev: ",
        ),
        (
            "say",
            refused(&format!("PATCH {RECORDS}/worker2-x7k2m")),
            &["resume", "worker2-x7k2m"],
            "error: you lack the right to patch maintenances.maint.dev: ",
        ),
        (
            "hold",
            refused("PATCH /api/v1/nodes/worker1"),
            &["hold", "worker1", "--reason", "r"],
            "error: you lack the right to patch nodes: ",
        ),
        (
            "halt",
            refused(&format!("PATCH {CONFIG_MAPS}/maint-control")),
            &["halt"],
            "error: you lack the right to patch configmaps: ",
        ),
    ];
    for (name, api, arguments, wanted) in rows {
        let run = api.maint(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{name}: {run}");
        assert!(run.stderr.starts_with(wanted), "{name}: {run}");
        assert!(run.stderr.contains("\n  what helps: "), "{name}: {run}");
    }
}

#[test]
fn the_story_of_a_record() {
    let api = Api::new().record(&record("Succeeded"));
    assert_run!("show", api.maint(&["show", "worker2-x7k2m"]));
    let run = api.maint(&["show", "worker2-x7k2m", "-o", "json"]);
    let document: Value = serde_json::from_str(&run.stdout).expect("one document");
    assert_eq!(document["kind"], "MaintenanceResult");
    assert_eq!(document["status"]["node"]["bootIdAfter"], "b2");
    let run = api.maint(&["show", "worker2-x7k2"]);
    let wanted = "error: unknown record `worker2-x7k2`, did you mean `worker2-x7k2m`?; known: worker2-x7k2m\n";
    assert_eq!((run.code, run.stderr.as_str()), (2, wanted), "{run}");
}

#[test]
fn the_history() {
    let api = Api::new().record(&record("Succeeded"));
    let run = api.maint(&["history"]);
    let wanted = "  CREATED               NAME           NODE     SCOPE   RESULT              TOOK      MESSAGE
  2026-11-30T01:00:00Z  worker2-x7k2m  worker2  reboot  Succeeded (Proven)  00:20:00  boot b1 -> b2, matrix 9/9 -> 9/9
";
    assert_eq!((run.code, run.stdout.as_str()), (0, wanted), "{run}");
    assert_eq!(api.maint(&["history", "--node", "worker1"]).stdout, "no records\n");
}

#[test]
fn the_screen_and_its_exit_codes() {
    let forbidden = |api: Api| api.refuse(&format!("GET {LEASE}"), 403, "no");
    let halt = json!({"metadata": {"name": "maint-control", "namespace": "maint"},
        "data": {"halt": r#"{"by":"ben","reason":"storm","since":"2026-11-30T01:00:00Z"}"#}});
    let rows: Vec<(&str, Api, i32, &str)> = vec![
        ("nobody leads", Api::new(), 0, "‼ NO LEADER: nothing starts or goes on\n  context fake (http://127.0.0.1:"),
        ("held", Api::new().record(&record("Held")), 5, "× HELD worker2: a person is needed, nothing else starts\n"),
        ("held and unread", forbidden(Api::new().record(&record("Held"))), 5, "× HELD worker2: "),
        ("unread", forbidden(Api::new()), 4, "? UNKNOWN: parts could not be read\n"),
        (
            "a record that cannot be understood",
            Api::new().record(&{
                let mut odd = record("Held");
                odd["status"]["term"] = json!("three");
                odd
            }),
            4,
            "? UNKNOWN: parts could not be read\n",
        ),
        ("halted", Api::new().list(CONFIG_MAPS, vec![halt]), 0, "‼ HALTED by ben: storm\n"),
    ];
    for (name, api, code, wanted) in rows {
        let run = api.maint(&["status"]);
        assert_eq!(run.code, code, "{name}: {run}");
        assert!(run.stdout.starts_with(wanted), "{name}: {run}");
        assert!(run.stdout.contains("\n  worker2  yes    -            ben: disk swap  never\n"), "{name}: {run}");
        let json = api.maint(&["status", "-o", "json"]);
        let document: Value = serde_json::from_str(&json.stdout).expect("one document");
        assert_eq!((json.code, &document["kind"]), (code, &json!("StatusReport")), "{name}");
    }
}

#[test]
fn halt_and_hold_write_their_documents() {
    let api = Api::new().record(&record("Draining"));
    let run = api.maint(&["halt", "--reason", "storm", "--until", "2999-01-01T00:00:00Z"]);
    let wanted = "\
halted until 2999-01-01T00:00:00Z: nothing starts, no pod is evicted, no reboot is released
  worker2-x7k2m (Draining): its node stays as it is, cordoned; `maint cancel` puts it back after unhalt
";
    assert_eq!((run.code, run.stdout.as_str()), (0, wanted), "{run}");
    let writes = api.writes();
    assert_eq!(writes[0].0, format!("PATCH {CONFIG_MAPS}/maint-control"));
    let halt: Value = serde_json::from_str(writes[0].1["data"]["halt"].as_str().expect("a text")).expect("JSON");
    assert_eq!(
        (&halt["by"], &halt["reason"], &halt["until"]),
        (&json!("anna@desk"), &json!("storm"), &json!("2999-01-01T00:00:00Z"))
    );

    let run = api.maint(&["unhalt"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "nothing was halted\n"), "{run}");
    assert!(api.writes()[1].1["data"]["halt"].is_null());

    let api = Api::new().record(&record("Draining"));
    let run = api.maint(&["hold", "worker2", "--reason", "disk", "--as", "carl"]);
    let wanted = "\
worker2 is on hold until `maint release worker2`: no run of it starts, and its cordon is left alone
  worker2-x7k2m (Draining): backs out and ends Cancelled; the cordon is left to you
";
    assert_eq!((run.code, run.stdout.as_str()), (0, wanted), "{run}");
    assert_eq!(run.stderr, "it replaces the hold of ben: disk swap\n", "{run}");
    let hold = api.writes()[0].1["metadata"]["annotations"]["maint.dev/hold"].clone();
    assert_eq!(hold, r#"{"by":"carl","reason":"disk"}"#);

    let run = api.maint(&["release", "worker2"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "worker2 is released; it was held by ben: disk swap\n"), "{run}");
    let run = api.maint(&["release", "worker1"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "worker1 was not on hold\n"), "{run}");
    let run = api.maint(&["hold", "workr1", "--reason", "r"]);
    assert_eq!(run.code, 2, "{run}");
    let run = api.maint(&["halt", "--until", "2020-01-01T00:00:00Z"]);
    assert_eq!(run.code, 2, "an end that is over: {run}");
}

#[test]
fn words_are_said_where_they_make_sense() {
    let rows: &[(&str, &[&str], i32, &str)] = &[
        ("Held", &["resume", "worker2-x7k2m", "--accept"], 0, "worker2-x7k2m: heard; it goes on as if green"),
        ("Draining", &["resume", "worker2-x7k2m"], 6, "error: the run is Draining: only a held one can be resumed\n"),
        ("Held", &["cancel", "worker2-x7k2m", "--accept"], 0, "worker2-x7k2m: heard; the node is uncordoned unproven"),
        (
            "Held",
            &["cancel", "worker2-x7k2m"],
            6,
            "error: the run is Held: to call it off is to uncordon the node unproven",
        ),
        ("Succeeded", &["cancel", "worker2-x7k2m"], 6, "error: the run is over: Succeeded\n"),
        ("Returning", &["done", "worker2-x7k2m"], 6, "error: action `pod` says itself when it is over"),
    ];
    for (phase, arguments, code, wanted) in rows {
        let api = Api::new().record(&record(phase));
        let run = api.maint(arguments);
        assert_eq!(run.code, *code, "{phase}: {run}");
        let text = if *code == 0 { &run.stdout } else { &run.stderr };
        assert!(text.starts_with(wanted), "{phase}: {run}");
        assert_eq!(api.writes().len(), usize::from(*code == 0), "{phase}: {run}");
        if let Some((_, body)) = api.writes().first() {
            assert_eq!(body["spec"][arguments[0]]["by"], "anna@desk", "{phase}");
            assert_eq!(body["spec"][arguments[0]]["accept"], true, "{phase}");
        }
    }
    let mut external = record("Returning");
    external["spec"]["action"] = json!("external");
    let api = Api::new().record(&external);
    let run = api.maint(&["done", "worker2-x7k2m", "--failed", "-o", "json"]);
    let document: Value = serde_json::from_str(&run.stdout).expect("one document");
    assert_eq!(
        (run.code, &document["field"], &document["word"]["failed"]),
        (0, &json!("actionDone"), &json!(true)),
        "{run}"
    );
}

#[test]
fn a_detached_reboot_prints_its_name() {
    let api = Api::new();
    let run = api.maint(&[
        "reboot",
        "worker1",
        "--action",
        "external",
        "--yes",
        "--detach",
        "--wait",
        "1h",
        "--reason",
        "kernel",
        "--override",
        "longhorn-volumes=backed up",
    ]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.starts_with("worker1-") && run.stdout.len() == "worker1-x7k2m\n".len(), "{run}");
    let (asked, body) = api.writes().remove(0);
    assert_eq!(asked, format!("POST {RECORDS}"));
    let spec = &body["spec"];
    let wanted = json!({
        "nodeName": "worker1", "scope": "reboot", "action": "external", "trigger": "manual", "requestedBy": "anna@desk",
        "reason": "kernel", "commandWaits": false, "startTimeoutSeconds": 3600,
        "overrides": [{"gate": "longhorn-volumes", "reason": "backed up", "by": "anna@desk"}],
    });
    assert_eq!(spec, &wanted);
    let run = Api::new().record(&record("Draining")).maint(&["reboot", "worker2", "--action", "pod", "--yes"]);
    let wanted =
        "error: a run of worker2 is in flight: worker2-x7k2m (Draining)\n  what helps: maint show worker2-x7k2m\n";
    assert_eq!((run.code, run.stderr.as_str()), (6, wanted), "{run}");
}

#[test]
fn an_interrupt_ends_the_watching_only() {
    let api = Api::new().record(&record("Held"));
    let (code, stderr) = api.with(|kubeconfig| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_maint"))
            .args(["--kubeconfig", kubeconfig, "resume", "worker2-x7k2m", "--wait"])
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut text = String::new();
        stderr.read_line(&mut text).expect("a line");
        assert!(text.starts_with("heard; "), "{text}");
        let id = nix::unistd::Pid::from_raw(child.id().try_into().expect("an id"));
        nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGINT).expect("sent");
        let code = child.wait().expect("ended").code();
        stderr.read_to_string(&mut text).expect("text");
        (code, text)
    });
    assert_eq!(code, Some(130), "{stderr}");
    assert!(
        stderr.contains("interrupted: only the watching ends, the run goes on\n  look: maint show worker2-x7k2m\n"),
        "{stderr}"
    );
    assert_eq!(api.writes().len(), 1, "the word, and no cancel");
}
