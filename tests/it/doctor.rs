//! `maint doctor` and `maint lock` on saved installations of kured.

use std::fs;

use serde_json::Value;

use crate::support::{DUMP, assert_run, maint, root};

/// The folder of the installations, one file each.
const INSTALLATIONS: &str = "tests/fixtures/kured";

fn installations() -> Vec<String> {
    let mut found: Vec<String> = fs::read_dir(root().join(INSTALLATIONS))
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    found.sort();
    found
}

#[test]
fn every_saved_installation_gets_its_answer() {
    let all = installations();
    for name in &all {
        let run = maint(&["doctor", "--from", &format!("{INSTALLATIONS}/{name}")]);
        let snapshot = format!("doctor_{}", name.trim_end_matches(".yaml").replace(['.', '-'], "_"));
        insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
            insta::assert_snapshot!(snapshot, run.to_string());
        });
    }
    assert!(all.len() >= 12, "{all:?}");
    println!("figure doctor.installations {} files", all.len());
}

#[test]
fn the_exit_code_is_the_worst_answer() {
    let rows = [
        ("manifest-1.20.0", 0),
        ("chart-6.1.0", 0),
        ("manifest-1.14.0", 0),
        ("lock-ghost-and-leftovers", 0),
        ("manifest-1.13.1", 3),
        ("manifest-1.16.1-environment", 3),
        ("manifest-1.23.0-window", 3),
        ("chart-old-sentinel-command", 3),
        ("environment-1.23.0", 4),
        ("pools-disagree", 3),
        ("filter-hides", 3),
        ("lock-garbage", 3),
    ];
    assert_eq!(rows.len(), installations().len(), "a row each");
    for (name, code) in rows {
        let run = maint(&["doctor", "--from", &format!("{INSTALLATIONS}/{name}.yaml")]);
        assert_eq!(run.code, code, "{name}: {run}");
    }
}

#[test]
fn the_shipped_dump_is_ready() {
    assert_run!("doctor_shipped", maint(&["doctor", "--from", DUMP]));
}

#[test]
fn a_visit_in_json_is_one_document() {
    let run = maint(&["doctor", "--from", &format!("{INSTALLATIONS}/filter-hides.yaml"), "-o", "json"]);
    let document: Value = serde_json::from_str(&run.stdout).expect("one document");
    assert_eq!((run.code, run.stderr.as_str()), (3, ""));
    for (pointer, wanted) in [
        ("/apiVersion", "maint.dev/v1"),
        ("/kind", "DoctorReport"),
        ("/verdict", "blocked"),
        ("/checks/0/id", "rights"),
    ] {
        assert_eq!(document.pointer(pointer).and_then(Value::as_str), Some(wanted), "{pointer}");
    }
    let findings: Vec<&Value> = document["checks"]
        .as_array()
        .expect("checks")
        .iter()
        .flat_map(|check| check["findings"].as_array().expect("findings"))
        .collect();
    let filter = findings.iter().find(|finding| finding["reason"] == "KuredFilterHidesAnswer").expect("found");
    assert_eq!(filter["status"], "block");
    assert!(
        filter["remedy"][0].as_str().is_some_and(|remedy| remedy.contains("configuration.alertFilterRegexp")),
        "{filter}"
    );
}

#[test]
fn the_lock_is_shown_with_what_kured_does_with_it() {
    let of = |name: &str| maint(&["lock", "show", "--from", &format!("{INSTALLATIONS}/{name}.yaml")]);
    assert_run!("lock_show_ghost", of("lock-ghost-and-leftovers"));
    assert_run!("lock_show_garbage", of("lock-garbage"));
    assert_run!("lock_show_free", of("manifest-1.14.0"));
    assert_run!("lock_show_unknown", of("pools-disagree"));
    let run =
        maint(&["lock", "show", "--from", &format!("{INSTALLATIONS}/lock-ghost-and-leftovers.yaml"), "-o", "json"]);
    let document: Value = serde_json::from_str(&run.stdout).expect("one document");
    let holder = &document["locks"][0]["holders"][0];
    assert_eq!(
        (&holder["name"], &holder["ghost"], &holder["nodeExists"]),
        (&Value::from("worker9"), &Value::from(true), &Value::from(false))
    );
    assert_eq!(document["locks"][0]["format"], "single");
}

#[test]
fn the_helps_have_examples() {
    for verb in [&["doctor", "--help"][..], &["lock", "show", "--help"], &["lock", "release", "--help"]] {
        let run = maint(verb);
        assert_eq!(run.code, 0, "{run}");
        assert!(run.stdout.contains("Examples:\n  maint "), "{run}");
    }
    let run = maint(&["lock", "release"]);
    assert_eq!(run.code, 2, "{run}");
}
