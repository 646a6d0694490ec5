//! Files that are wrong, and where.

use super::*;

fn lines(text: &str) -> Vec<String> {
    Settings::parse(text, "maint.toml").expect_err("wrong").lines()
}

#[test]
fn nothing_written_means_the_defaults() {
    assert_eq!(Settings::parse("", "f"), Ok(Settings::default()));
    assert_eq!(Settings::parse("# only a comment\n[limits]\n", "f"), Ok(Settings::default()));
}

#[test]
fn the_shipped_file_has_every_key_at_its_default() {
    let text = include_str!("../../../../config/maint.toml");
    assert_eq!(Settings::parse(text, "config/maint.toml"), Ok(Settings::default()));
    let shipped: toml::Table = text.parse().expect("TOML");
    let defaults = toml::Table::try_from(Settings::default()).expect("settings are TOML");
    assert_eq!(shipped, defaults, "config/maint.toml lacks or adds a key");
    let shown = Settings::default().to_toml().expect("TOML");
    assert_eq!(Settings::parse(&shown, "shown"), Ok(Settings::default()));
}

#[test]
fn one_error_at_its_place() {
    let rows: &[(&str, &str, &str)] = &[
        ("unknown key at the top", "namspace = \"x\"\n", "1:1: unknown key `namspace`"),
        ("unknown key in a table", "[limits]\nmax_unavailble = 1\n", "2:1: unknown key `max_unavailble`"),
        ("unknown table", "[longhron]\nnamespace = \"x\"\n", "1:2: unknown key `longhron`"),
        ("dotted key", "limits.max_unavailble = 1\n", "1:8: unknown key `max_unavailble`"),
        ("inline table", "limits = { max = 1 }\n", "1:12: unknown key `max`"),
        ("wrong type", "[limits]\nmax_unavailable = \"1\"\n", "2:19: invalid type: string \"1\", expected u32"),
        ("negative", "[limits]\nmax_unavailable = -1\n", "2:19: invalid value: integer `-1`, expected u32"),
        ("unknown gate", "[gates]\nlonghorn-volume = \"warn\"\n", "2:1: unknown gate `longhorn-volume`"),
        ("unknown policy", "[gates]\nattachments = \"of\"\n", "2:15: unknown policy `of`"),
        ("scope lacks a field", "[scopes.disk]\nstrategy = \"drain\"\n", "1:1: missing field `reboots`"),
        ("syntax", "namespace = \n", "1:13: string values must be quoted, expected literal string"),
        (
            "columns count characters",
            "scopes = {\"é\" = { strategy = \"of\", reboots = true }}",
            "1:30: unknown strategy `of`",
        ),
    ];
    for (name, text, wanted) in rows {
        let got = lines(text);
        assert_eq!(got[0], format!("maint.toml:{wanted}"), "{name}");
    }
}

#[test]
fn all_errors_at_once_in_the_order_of_the_text() {
    let text = "\
namspace = \"a\"
[limits]
max_unavailable = 0
ignore = []
[gates]
control = \"off\"
nodes = \"warn\"
[scopes.Disk]
strategy = \"drian\"
reboots = true
[coredns]
min_replicas = \"2\"
";
    let wanted = [
        "maint.toml:1:1: unknown key `namspace`",
        "maint.toml:3:19: `limits.max_unavailable` is 0, wanted at least 1",
        "maint.toml:4:1: unknown key `ignore`",
        "maint.toml:6:11: `gates.control` is off, wanted require",
        "maint.toml:7:1: unknown gate `nodes`",
        "maint.toml:9:12: unknown strategy `drian`",
        "maint.toml:12:16: invalid type: string \"2\", expected u32",
    ];
    let got = lines(text);
    for line in wanted {
        assert!(got.iter().any(|got| got.starts_with(line)), "wanted {line}\nin {got:#?}");
    }
    assert_eq!(got.len(), wanted.len(), "{got:#?}");
}

#[test]
fn all_errors_in_lists_of_tables_at_once() {
    let text = "\
mode = \"approve\"
[[windows]]
name = \"night\"
days = [\"mon\", \"tus\"]
start = \"25:00\"
duration = \"6h\"
zone = \"Europe/Berln\"
[[windows]]
name = \"day\"
days = [\"mon\"]
start = \"09:00\"
[[windows]]
name = \"late\"
days = []
start = \"09:00\"
durtion = \"6h\"
duration = \"6h\"
zone = \"UTC\"
[[notify.slack]]
name = \"ops\"
url = \"https://x\"
";
    let wanted = [
        "maint.toml:1:8: unknown mode `approve`",
        "maint.toml:4:8: unknown weekday `tus`",
        "maint.toml:5:9: `25:00` is no time of the day, wanted HH:MM from 00:00 to 23:59",
        "maint.toml:7:8: unknown time zone `Europe/Berln`",
        "maint.toml:8:1: missing field `zone`",
        "maint.toml:14:8: `windows[2].days` is empty: it would never open",
        "maint.toml:16:1: unknown key `durtion`",
        "maint.toml:21:1: unknown key `url`",
    ];
    let got = lines(text);
    for line in wanted {
        assert!(got.iter().any(|got| got.starts_with(line)), "wanted {line}\nin {got:#?}");
    }
}

#[test]
fn what_was_taken_out_for_its_own_error_is_not_missed() {
    let text = "\
[[windows]]
name = \"night\"
days = [\"mon\"]
start = \"23:00\"
duration = \"99999999999999999999h\"
zone = \"UTC\"
";
    let got = lines(text);
    assert_eq!(got.len(), 1, "{got:#?}");
    assert!(got[0].starts_with("maint.toml:5:12: `99999999999999999999h` is no length"), "{got:#?}");
    let got = lines(&text.replace("duration = \"99999999999999999999h\"\n", ""));
    assert_eq!(got, ["maint.toml:1:1: `windows[0].end` is missing, and so is `duration`"]);
}

#[test]
fn the_excerpt_has_the_line_a_caret_and_help() {
    let errors = Settings::parse("[limits]\nmax_unavailble = 1\n", "config/maint.toml").expect_err("wrong");
    let wanted = "\
error: unknown key `max_unavailble`
 --> config/maint.toml:2:1
  |
2 | max_unavailble = 1
  | ^^^^^^^^^^^^^^
  |
  = help: did you mean `max_unavailable`?";
    assert_eq!(errors.render(false), wanted);
    assert!(errors.render(true).contains('\u{1b}'));
}
