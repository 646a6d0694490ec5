//! `maint windows`.

use crate::support::{assert_run, folder, maint};

const TEXT: &str = r#"
mode = "auto"
max_nodes_per_window = 2

[[windows]]
name = "nightly"
days = ["mon", "tue", "wed", "thu"]
start = "23:30"
end = "04:30"
zone = "Europe/Berlin"

[[windows]]
name = "weekend"
days = ["sat"]
start = "22:00"
duration = "8h"
zone = "UTC"
"#;

#[test]
fn open_closed_and_never() {
    let (_folder, path) = folder(&[("maint.toml", TEXT)]);
    let config = format!("{path}/maint.toml");
    let at = |time: &str| maint(&["windows", "--config", &config, "--at", time]).without(&path);
    // The last Saturday of October 2026: its clocks go back at 01:00Z, and only Berlin's do.
    assert_run!("windows_closed", at("2026-10-24T12:00:00Z"));
    assert_run!("windows_open", at("2026-10-22T23:00:07Z"));
    assert_run!("windows_never", maint(&["windows", "--at", "2026-10-24T12:00:00Z"]));
}

#[test]
fn as_json() {
    let (_folder, path) = folder(&[("maint.toml", TEXT)]);
    let config = format!("{path}/maint.toml");
    assert_run!(
        "windows_json",
        maint(&["windows", "--config", &config, "--at", "2026-10-22T23:00:07Z", "-o", "json"]).without(&path)
    );
}

#[test]
fn now_is_now() {
    let run = maint(&["windows"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.contains("(clock of this machine)\n"), "{run}");
    let odd = maint(&["windows", "--at", "tomorrow"]);
    assert_eq!(odd.code, 2, "{odd}");
}
