//! `maint plan` on dumps: each outcome, as text and as JSON.

use std::fs;

use serde_json::Value;

use crate::support::{DUMP, assert_run, copied_dump, folder, maint};

/// Mode auto, and a window that is open on Mondays from 00:30 to 02:30 UTC; the dump is of a Monday, 01:00 UTC.
const NIGHT: &str = "mode = \"auto\"\nwindows = [{ name = \"night\", days = [\"mon\"], start = \"00:30\", \
                     duration = \"2h\", zone = \"UTC\" }]\n";

/// A copy of the dump with some text replaced in one of its files, and the configuration of a night.
fn bent(file: &str, text: &str, by: &str) -> (tempfile::TempDir, String) {
    let (folder, path) = copied_dump();
    let file = path.join(file);
    let old = fs::read_to_string(&file).expect("read");
    let new = if text.is_empty() { format!("{old}{by}") } else { old.replacen(text, by, 1) };
    assert_ne!(old, new, "the dump is bent");
    fs::write(file, new).expect("written");
    (folder, path.display().to_string())
}

fn night() -> (tempfile::TempDir, String) {
    let (folder, path) = folder(&[("maint.toml", NIGHT)]);
    (folder, format!("{path}/maint.toml"))
}

#[test]
fn a_free_node() {
    assert_run!("plan_worker2", maint(&["plan", "worker2", "--from", DUMP]));
}

#[test]
fn its_blocked_neighbour() {
    assert_run!("plan_worker1", maint(&["plan", "worker1", "--from", DUMP]));
}

#[test]
fn a_service_restart_at_another_time() {
    let (_folder, config) = night();
    let run = maint(&[
        "plan",
        "worker2",
        "--scope",
        "service-restart",
        "--at",
        "2026-12-05T01:00:00Z",
        "--from",
        DUMP,
        "--config",
        &config,
    ]);
    assert_run!("plan_service_restart_at", run.without(config.trim_end_matches("/maint.toml")));
}

#[test]
fn a_drain_that_never_ends() {
    // Both replicas are wanted, and two is all that there are.
    let (_folder, path) = bent(
        "poddisruptionbudgets.yaml",
        "desiredHealthy: 1\n    disruptionsAllowed: 1",
        "desiredHealthy: 2\n    disruptionsAllowed: 0",
    );
    assert_run!("plan_never_drains", maint(&["plan", "worker2", "--from", &path]).without(&path));
}

#[test]
fn a_drain_that_a_budget_holds_now() {
    let (_folder, path) = bent(
        "poddisruptionbudgets.yaml",
        "currentHealthy: 2\n    desiredHealthy: 1\n    disruptionsAllowed: 1\n    expectedPods: 2",
        "currentHealthy: 2\n    desiredHealthy: 2\n    disruptionsAllowed: 0\n    expectedPods: 3",
    );
    assert_run!("plan_held_now", maint(&["plan", "worker2", "--from", &path]).without(&path));
}

#[test]
fn a_kind_that_the_dump_lacks_is_unknown() {
    let (_folder, path) = copied_dump();
    fs::remove_file(path.join("poddisruptionbudgets.yaml")).expect("removed");
    let path = path.display().to_string();
    assert_run!("plan_unknown", maint(&["plan", "worker2", "--from", &path]).without(&path));
    for file in ["pods.yaml", "daemonsets.yaml"] {
        let (_folder, path) = copied_dump();
        fs::remove_file(path.join(file)).expect("removed");
        let run = maint(&["plan", "worker2", "--from", &path.display().to_string()]);
        assert_eq!(run.code, 4, "without {file}: {run}");
    }
}

#[test]
fn which_node_comes_next() {
    assert_run!("plan_order", maint(&["plan", "--from", DUMP]));
}

#[test]
fn which_node_comes_next_of_those_that_wish_it() {
    let wish = |name: &str, node: &str, time: &str, status: &str| {
        format!(
            "---\napiVersion: maint.dev/v1alpha1\nkind: Maintenance\nmetadata:\n  name: {name}\n  uid: u-{name}\n  \
             creationTimestamp: \"2026-11-30T{time}Z\"\nspec:\n  nodeName: {node}\n  scope: reboot\n  action: kured\n  \
             trigger: unattended\n{status}"
        )
    };
    let (_folder, path) = copied_dump();
    let all = [
        wish("worker2-b-1", "worker2", "00:45:00", ""),
        wish(
            "worker1-b-1",
            "worker1",
            "00:15:00",
            "status:\n  phase: Pending\n  blockedSince: \"2026-11-30T00:16:00Z\"\n",
        ),
    ];
    fs::write(path.join("maintenances.yaml"), all.concat()).expect("written");
    let path = path.display().to_string();
    assert_run!("plan_order_of_wishes", maint(&["plan", "--from", &path, "--complete"]).without(&path));
}

#[test]
fn json_is_one_document_and_keeps_its_names() {
    for (arguments, snapshot) in [
        (vec!["plan", "worker2", "--from", DUMP, "-o", "json"], "plan_worker2_json"),
        (vec!["plan", "--from", DUMP, "-o", "json"], "plan_order_json"),
    ] {
        let run = maint(&arguments);
        assert_eq!(run.stderr, "", "{run}");
        let mut document: Value = serde_json::from_str(&run.stdout).expect("one document");
        assert!(document["generatedAt"].take().is_string());
        assert_eq!(document["apiVersion"], "maint.dev/v1");
        insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
            insta::assert_snapshot!(snapshot, serde_json::to_string_pretty(&document).expect("JSON"));
        });
    }
}

#[test]
fn plan_and_check_end_alike_where_no_drain_is_in_the_way() {
    for node in ["worker1", "worker2", "worker3"] {
        for scope in ["reboot", "service-restart", "power-off"] {
            let arguments = |verb| [verb, node, "--scope", scope, "--from", DUMP];
            let (plan, check) = (maint(&arguments("plan")), maint(&arguments("check")));
            assert_eq!(plan.code, check.code, "{node} {scope}: {plan}\n{check}");
        }
    }
}

#[test]
fn usage_errors() {
    let rows: &[(&str, &[&str], &str)] = &[
        (
            "no such node",
            &["plan", "workr2", "--from", DUMP],
            "error: unknown node `workr2`, did you mean `worker2`?; known: worker1, worker2, worker3\n",
        ),
        (
            "no such scope",
            &["plan", "--scope", "rebot", "--from", DUMP],
            "error: unknown scope `rebot`, did you mean `reboot`?; known: service-restart, reboot, power-off\n",
        ),
        (
            "a time without a zone",
            &["plan", "worker2", "--from", DUMP, "--at", "01:00"],
            "error: invalid value '01:00' for '--at <TIME>': wanted a time with its zone, such as 2026-12-05T01:00:00Z",
        ),
        (
            "--now without a dump",
            &["plan", "--now", "2026-11-30T01:00:00Z"],
            "error: the following required arguments were not provided:\n  --from <PATH>",
        ),
    ];
    for (name, arguments, wanted) in rows {
        let run = maint(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{name}: {run}");
        assert!(run.stderr.starts_with(wanted), "{name}: {run}");
    }
}
