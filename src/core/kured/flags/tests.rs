//! Tables of kured's flags.

use super::*;

fn container(tag: &str, words: &[&str], env: &[(&str, Option<&str>)]) -> Container {
    Container {
        image: format!("ghcr.io/kubereboot/kured:{tag}"),
        command: [&["/usr/bin/kured"], words].concat().iter().map(|word| (*word).to_owned()).collect(),
        env: env.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned))).collect(),
        node_name_env: vec!["KURED_NODE_ID".to_owned()],
        ..Container::default()
    }
}

fn flags(tag: &str, words: &[&str], env: &[(&str, Option<&str>)]) -> Flags {
    Flags::of(&container(tag, words, env), Some("worker2"))
}

#[test]
fn without_a_word_all_defaults_are_known() {
    let flags = flags("1.23.0", &[], &[]);
    assert_eq!(flags.problems(), []);
    assert_eq!(flags.seconds(Flag::Period), Ok(3_600));
    assert_eq!(flags.int(Flag::Concurrency), Ok(1));
    assert_eq!(flags.bool(Flag::ForceReboot), Ok(false));
    assert_eq!(flags.list(Flag::RebootDays).map(|days| days.len()), Ok(7));
    assert_eq!(flags.list(Flag::BlockingPodSelector), Ok(vec![]));
    assert_eq!(flags.text(Flag::PrometheusUrl).as_deref(), Ok(""));
    assert!(Flag::ALL.iter().all(|flag| flags.origin(*flag) == Origin::Default));
}

#[test]
fn the_command_line_is_read_as_pflag_reads_it() {
    use Flag::{AnnotateNodes, BlockingPodSelector, Concurrency, Period, RebootDays, RebootSentinelCommand};
    let rows: [(&str, &[&str], Flag, &str); 14] = [
        ("with an equals sign", &["--period=1m"], Period, "1m"),
        ("with the next word", &["--period", "1m30s"], Period, "1m30s"),
        ("the last one counts", &["--period=1m", "--period=2m"], Period, "2m"),
        ("on", &["--annotate-nodes"], AnnotateNodes, "true"),
        ("off", &["--annotate-nodes=false"], AnnotateNodes, "false"),
        ("a boolean takes no next word", &["--annotate-nodes", "false"], AnnotateNodes, "true"),
        ("Go's truth", &["--annotate-nodes=T"], AnnotateNodes, "true"),
        ("an equals sign in the value", &["--blocking-pod-selector=a=b"], BlockingPodSelector, "a=b"),
        (
            "several",
            &["--blocking-pod-selector=a=b,c=d", "--blocking-pod-selector", "e"],
            BlockingPodSelector,
            "a=b,c=d,e",
        ),
        ("a list, and a list again", &["--reboot-days=mon,tue", "--reboot-days=fri"], RebootDays, "mon,tue,fri"),
        ("an empty list", &["--reboot-days="], RebootDays, ""),
        ("the end of the flags", &["--", "--period=1m"], Period, "1h"),
        ("other words", &["serve", "--concurrency=2"], Concurrency, "2"),
        ("a value that looks like a flag", &["--reboot-sentinel-command", "--x"], RebootSentinelCommand, "--x"),
    ];
    for (row, words, flag, wanted) in rows {
        let flags = flags("1.23.0", words, &[]);
        assert_eq!(flags.shown(flag), wanted, "{row}");
        assert_eq!(flags.problems(), [], "{row}");
    }
}

#[test]
fn the_environment_counts_as_the_version_says() {
    let line = &["--period=1m", "--reboot-days=mon"];
    let rows: [(&str, &str, (&str, Option<&str>), Flag, Result<&str, &str>); 15] = [
        ("wins", "1.16.2", ("KURED_PERIOD", Some("2m")), Flag::Period, Ok("2m")),
        ("only fills in before", "1.16.1", ("KURED_PERIOD", Some("2m")), Flag::Period, Ok("1m")),
        ("fills in", "1.16.1", ("KURED_LOCK_TTL", Some("30m")), Flag::LockTtl, Ok("30m")),
        ("adds to a list", "1.20.0", ("KURED_REBOOT_DAYS", Some("tue,wed")), Flag::RebootDays, Ok("mon,tue,wed")),
        ("not before", "1.15.0", ("KURED_REBOOT_DAYS", Some("tue")), Flag::RebootDays, Ok("mon")),
        ("an empty one was overlooked", "1.14.0", ("KURED_LOCK_TTL", Some("")), Flag::LockTtl, Ok("0s")),
        ("an empty one is wrong", "1.20.0", ("KURED_LOCK_TTL", Some("")), Flag::LockTtl, Err("is ``: it is empty")),
        ("an empty text is one", "1.20.0", ("KURED_SLACK_USERNAME", Some("")), Flag::SlackUsername, Ok("empty")),
        (
            "no form for this one",
            "1.20.0",
            ("KURED_BLOCKING_POD_SELECTOR", Some("a")),
            Flag::BlockingPodSelector,
            Ok(""),
        ),
        ("it had one", "1.14.0", ("KURED_BLOCKING_POD_SELECTOR", Some("a")), Flag::BlockingPodSelector, Ok("a")),
        ("unknown to the version", "1.12.0", ("KURED_CONCURRENCY", Some("2")), Flag::Concurrency, Ok("1")),
        ("from elsewhere", "1.20.0", ("KURED_PERIOD", None), Flag::Period, Err("comes from elsewhere (valueFrom)")),
        (
            "no version, a difference",
            "latest",
            ("KURED_PERIOD", Some("2m")),
            Flag::Period,
            Err("depends on kured's version"),
        ),
        ("no version, no difference", "latest", ("KURED_PERIOD", Some("60s")), Flag::Period, Ok("1m")),
        ("no version, only there", "latest", ("KURED_LOCK_TTL", Some("30m")), Flag::LockTtl, Ok("30m")),
    ];
    for (row, tag, variable, flag, wanted) in rows {
        let flags = flags(tag, line, &[variable]);
        match wanted {
            Ok(wanted) => assert_eq!(flags.shown(flag), wanted, "{row}"),
            Err(part) => {
                let problems = flags.problems();
                assert!(problems.iter().any(|one| one.to_string().contains(part)), "{row}: {problems:?}");
                assert_eq!(problems.len(), 1, "{row}: {problems:?}");
            }
        }
    }
}

#[test]
fn what_cannot_be_read_is_named_and_never_a_default() {
    let rows: [(&str, &str, &[&str], &str); 13] = [
        (
            "a length without a unit",
            "1.23.0",
            &["--period=60"],
            "--period is `60`: a unit is missing, such as s, m or h",
        ),
        ("a number that is none", "1.23.0", &["--concurrency=two"], "--concurrency is `two`: wanted a whole number"),
        ("neither true nor false", "1.23.0", &["--force-reboot=yes"], "--force-reboot is `yes`: wanted true or false"),
        (
            "unknown",
            "1.23.0",
            &["--lock-tll=1h"],
            "--lock-tll is no flag of kured 1.23.0: kured of that version does not start with it",
        ),
        (
            "too new",
            "1.13.1",
            &["--concurrency=1"],
            "--concurrency is not known to kured 1.13.1 (since 1.14.0): it does not start with it",
        ),
        ("one dash", "1.23.0", &["-period=1m"], "--period=1m is no flag of kured (one dash): it does not start"),
        ("no value", "1.23.0", &["--period"], "--period has no value: kured does not start"),
        (
            "quotes",
            "1.23.0",
            &["--reboot-days=\"mon\""],
            "--reboot-days is `\"mon\"`: quotes in a list are not read here",
        ),
        (
            "from elsewhere",
            "1.23.0",
            &["--period=$(PERIOD)"],
            "--period cannot be known: its value comes from elsewhere (valueFrom)",
        ),
        (
            "all from elsewhere",
            "1.23.0",
            &["$(PERIOD)"],
            "any flag may be set by a word of the command line that comes from elsewhere (valueFrom)",
        ),
        ("a broken reference", "1.23.0", &["--period=$(NONE)"], "--period is `$(NONE)`: a number is missing"),
        ("an empty number", "1.23.0", &["--metrics-port="], "--metrics-port is ``: wanted a whole number"),
        (
            "a negative count is a number",
            "1.23.0",
            &["--drain-grace-period=x"],
            "--drain-grace-period is `x`: wanted a whole number",
        ),
    ];
    for (row, tag, words, wanted) in rows {
        let problems = flags(tag, words, &[("PERIOD", None)]).problems();
        assert_eq!(problems.iter().map(ToString::to_string).collect::<Vec<_>>(), [wanted], "{row}");
    }
}

#[test]
fn what_hides_the_command_line_hides_every_flag() {
    let mut shell = container("1.23.0", &[], &[]);
    shell.command = vec!["/bin/sh".into(), "-c".into(), "exec kured --period=1m".into()];
    let mut from_map = container("1.23.0", &["--period=1m"], &[]);
    from_map.env_from = vec!["ConfigMap kured".into()];
    for (row, container, part) in [
        ("a shell", shell, "--period cannot be known: the container runs another program"),
        ("envFrom", from_map, "--period may be set by ConfigMap kured (envFrom)"),
    ] {
        let flags = Flags::of(&container, Some("worker2"));
        let error = flags.seconds(Flag::Period).expect_err(row).to_string();
        assert!(error.starts_with(part), "{row}: {error}");
        assert!(flags.bool(Flag::ForceReboot).is_err(), "{row}");
    }
    // Without a command the image's own program runs, and the arguments are its words.
    let image = Container { image: "kured:1.23.0".into(), args: vec!["--period=1m".into()], ..Container::default() };
    assert_eq!(Flags::of(&image, None).seconds(Flag::Period), Ok(60));
}

#[test]
fn the_node_is_in_the_url_and_in_the_name() {
    let words = &["--prometheus-url=http://maint.maint/kured/$(KURED_NODE_ID)"];
    let container = container("1.23.0", words, &[("KURED_NODE_ID", None)]);
    let flags = Flags::of(&container, Some("worker2"));
    assert_eq!(flags.text(Flag::PrometheusUrl).as_deref(), Ok("http://maint.maint/kured/worker2"));
    assert_eq!(flags.text(Flag::NodeId).as_deref(), Ok("worker2"));
    let bare = Flags::of(&Container { env: vec![], ..container }, Some("worker2"));
    assert_eq!(bare.text(Flag::PrometheusUrl).as_deref(), Ok("http://maint.maint/kured/$(KURED_NODE_ID)"));
}
