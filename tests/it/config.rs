//! `maint config` and `--config`.

use crate::support::{DUMP, assert_run, folder, maint, maint_with};

#[test]
fn the_shipped_file_is_fine() {
    let run = maint(&["config", "check", "config/maint.toml"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "config/maint.toml is fine\n"), "{run}");
}

#[test]
fn what_is_in_force_is_shown_as_toml() {
    let defaults = maint(&["config", "show"]);
    assert_run!("config_show", defaults);
    // What is shown can be read again and means the same.
    let (_folder, path) = folder(&[("shown.toml", &defaults.stdout)]);
    let again = maint(&["config", "show", "--config", &format!("{path}/shown.toml")]);
    assert_eq!(again.stdout, defaults.stdout);
    let other = maint(&["config", "show", "-n", "elsewhere"]);
    assert!(other.stdout.starts_with("namespace = \"elsewhere\"\n"), "{other}");
}

#[test]
fn all_errors_are_shown_at_once() {
    let text = "\
namspace = \"maint\"

[limits]
max_unavailable = 0
max_unavailble = 2

[gates]
longhorn-volume = \"warn\"
control = \"off\"
attachments = \"of\"

[scopes.disk-swap]
strategy = \"drain\"
";
    let (_folder, path) = folder(&[("maint.toml", text)]);
    let file = format!("{path}/maint.toml");
    assert_run!("config_errors", maint(&["config", "check", &file]).without(&path));
    for run in [
        maint(&["check", "--from", DUMP, "--config", &file]),
        maint_with(&["config", "show"], &[("MAINT_CONFIG", &file)]),
    ] {
        assert_eq!(run.code, 1, "{run}");
        assert_eq!(run.stdout, "", "nothing is judged with a bad file: {run}");
    }
    let coloured = maint(&["config", "check", &file, "--color", "always"]);
    assert!(coloured.stderr.contains('\u{1b}'), "{coloured}");
}

#[test]
fn files_that_are_no_configuration() {
    let rows: &[(&str, &str, &str)] = &[
        ("syntax", "namespace = \n[limits\n", "error: "),
        ("YAML", "namespace: maint\n", "error: "),
        ("a wrong type", "[limits]\nmax_unavailable = \"1\"\n", "error: invalid type: string \"1\", expected u32\n"),
    ];
    for (name, text, wanted) in rows {
        let (_folder, path) = folder(&[("maint.toml", text)]);
        let run = maint(&["config", "check", &format!("{path}/maint.toml")]).without(&path);
        assert_eq!(run.code, 1, "{name}: {run}");
        assert!(run.stderr.starts_with(wanted) && run.stderr.contains("--> DUMP/maint.toml:"), "{name}: {run}");
    }
    let run = maint(&["config", "check", "no/such.toml"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stderr.starts_with("error: no/such.toml: cannot be read: No such file"), "{run}");
    let run = maint(&["config", "check"]);
    assert_eq!(run.code, 2, "{run}");
}

#[test]
fn a_configured_scope_and_policy_are_in_force() {
    let text = "[scopes.disk-swap]\nstrategy = \"drain\"\nreboots = false\n[gates]\nattachments = \"off\"\n";
    let (_folder, path) = folder(&[("maint.toml", text)]);
    let run =
        maint(&["check", "worker2", "--from", DUMP, "--scope", "disk-swap", "--config", &format!("{path}/maint.toml")]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.contains("scope disk-swap, strategy drain (the configuration says so)"), "{run}");
    assert!(!run.stdout.contains(" attachments "), "{run}");
}
