//! Table of the advice on flags.

use serde_json::json;

use super::*;
use crate::gates::testing::good;

/// kured as it should be.
const GOOD: &[&str] =
    &["--prometheus-url=http://maint.maint/kured/$(KURED_NODE_ID)", "--period=1m", "--drain-timeout=15m"];

fn now() -> Timestamp {
    "2026-11-30T01:00:00Z".parse().expect("a time")
}

fn advice(tag: &str, words: &[&str]) -> Vec<Advice> {
    let container = Container {
        image: format!("ghcr.io/kubereboot/kured:{tag}"),
        args: [GOOD, words].concat().iter().map(|word| (*word).to_owned()).collect(),
        env: vec![("KURED_NODE_ID".into(), None), ("SECRET".into(), None)],
        node_name_env: vec!["KURED_NODE_ID".into()],
        ..Container::default()
    };
    judge(&Flags::of(&container, Some("worker2")), "worker2", &Settings::default(), now())
}

#[test]
fn a_rightly_configured_kured_gets_none() {
    for tag in ["1.10.0", "1.12.2", "1.14.0", "1.16.2", "1.20.0", "1.23.0", "1.23.1"] {
        assert_eq!(advice(tag, &[]), [], "{tag}");
    }
}

#[test]
fn each_wrong_flag_gets_one() {
    use {Reason::*, Status::*};
    let rows: [(&str, &[&str], Status, Reason, &str); 27] = [
        ("1.13.0", &[], Block, KuredVersionUnsupported, "is 1.13.0, which takes its lock before it asks"),
        ("1.13.2", &[], Block, KuredVersionUnsupported, "(kured#792)"),
        ("1.9.2", &[], Block, KuredVersionUnsupported, "is 1.9.2, whose ways are not known"),
        ("2.0.0", &[], Block, KuredVersionUnsupported, "is 2.0.0, whose ways are not known"),
        ("1.24.0", &[], Warn, KuredSettingRisky, "is 1.24.0, newer than 1.23.0"),
        ("latest", &[], Unknown, KuredVersionUnknown, "is of an unknown version: image"),
        ("1.16.1", &["--concurrency=2"], Warn, KuredSettingRisky, "is 1.16.1, which with --concurrency above 1"),
        ("1.23.0", &["--prometheus-url="], Block, KuredNotGated, "asks nobody before it reboots"),
        (
            "1.23.0",
            &["--prometheus-url=http://prometheus.monitoring:9090"],
            Block,
            KuredNotGated,
            "prometheus.monitoring is not maint",
        ),
        (
            "1.23.0",
            &["--prometheus-url=$(SECRET)"],
            Unknown,
            KuredSettingUnreadable,
            "--prometheus-url cannot be known",
        ),
        ("1.16.1", &["--node-id=other"], Block, KuredNotGated, "calls itself other in its lock"),
        (
            "1.23.0",
            &["--alert-filter-regexp=.*"],
            Block,
            KuredFilterHidesAnswer,
            "overlooks our no: --alert-filter-regexp `.*`",
        ),
        ("1.23.0", &["--alert-filter-regexp="], Block, KuredFilterHidesAnswer, "overlooks our no"),
        ("1.23.0", &["--alert-filter-regexp=("], Unknown, KuredFilterHidesAnswer, "cannot be judged"),
        (
            "1.23.0",
            &["--alert-filter-match-only", "--alert-filter-regexp=^Ceph"],
            Block,
            KuredFilterHidesAnswer,
            "counts only alerts that match `^Ceph`",
        ),
        ("1.23.0", &["--period=5m"], Block, KuredPeriodTooLong, "asks every 5m only: a run waits 600 s"),
        ("1.23.0", &["--period=201s"], Block, KuredPeriodTooLong, "asks every 3m21s only"),
        ("1.23.0", &["--period=60"], Unknown, KuredSettingUnreadable, "--period is `60`: a unit is missing"),
        ("1.23.0", &["--lock-ttl=30m"], Warn, KuredSettingRisky, "lets others take its lock after 30m"),
        ("1.23.0", &["--drain-timeout=0"], Warn, KuredSettingRisky, "never gives a drain up"),
        ("1.23.0", &["--force-reboot"], Warn, KuredSettingRisky, "reboots although its drain failed"),
        ("1.23.0", &["--lock-release-delay=30m"], Warn, KuredSettingRisky, "keeps its lock for 30m after the reboot"),
        ("1.23.0", &["--blocking-pod-selector=a=b"], Warn, KuredSettingRisky, "while pods with a=b are on its node"),
        (
            "1.23.0",
            &["--start-time=22:00", "--end-time=23:00"],
            Block,
            KuredWindowTooNarrow,
            "22:00 to 23:00 UTC, which opens at 2026-11-30T22:00:00Z",
        ),
        (
            "1.23.0",
            &["--end-time=01:30"],
            Warn,
            KuredWindowTooNarrow,
            "in 1801 s; a drain and the hand-over may take 2400 s",
        ),
        (
            "1.23.0",
            // 2026-11-30 is a Monday.
            &["--reboot-days=sun", "--start-time=22:00", "--end-time=04:00"],
            Block,
            KuredWindowTooNarrow,
            "which opens at 2026-12-06T00:00:00Z (kured asks for today's weekday",
        ),
        ("1.23.0", &["--new-flag=x"], Warn, KuredSettingUnreadable, "--new-flag is no flag of kured 1.23.0"),
    ];
    for (tag, words, status, reason, does) in rows {
        let found = advice(tag, words);
        let told: Vec<_> = found.iter().map(|one| (one.status, one.reason)).collect();
        assert_eq!(told, [(status, reason)], "{tag} {words:?}: {found:?}");
        assert!(found[0].does.contains(does), "{tag} {words:?}: {}", found[0].does);
    }
}

#[test]
fn what_lets_our_no_through_is_fine() {
    let rows: [&[&str]; 5] = [
        &["--alert-filter-regexp=^RebootRequired$"],
        &["--alert-filter-match-only"],
        &["--alert-filter-match-only", "--alert-filter-regexp=^maint: "],
        &["--alert-firing-only"],
        &["--reboot-days=mon", "--time-zone=Europe/Berlin"],
    ];
    for words in rows {
        assert_eq!(advice("1.23.0", words), [], "{words:?}");
    }
}

#[test]
fn the_url_must_be_ours_and_name_the_node() {
    let mut settings = Settings::default();
    settings.kured.hosts = vec!["maint.example.com".to_owned()];
    let rows = [
        ("http://maint.maint/kured/worker2", None),
        ("http://maint.maint.svc:8080/kured/worker2/", None),
        ("http://maint.maint.svc.cluster.local/kured/worker2", None),
        ("http://maint/kured/worker2", None),
        ("https://maint.example.com/kured/worker2", None),
        ("https://maint.maint/kured/worker2", Some("does not speak https")),
        ("http://maint.other/kured/worker2", Some("maint.other is not maint")),
        ("http://maint.maint.svcx/kured/worker2", Some("is not maint")),
        ("http://maint.maint/kured/worker1", Some("it names worker1")),
        ("http://maint.maint/kured/$(KURED_NODE_ID)", Some("was not expanded")),
        ("http://maint.maint/kured/", Some("its path is not /kured/$(KURED_NODE_ID)")),
        ("http://maint.maint/", Some("its path is not")),
        ("http://maint.maint", Some("its path is not")),
        ("maint.maint/kured/worker2", Some("it is no URL")),
        ("ftp://maint.maint/kured/worker2", Some("it is no http URL")),
    ];
    for (url, why) in rows {
        match (gated_by_us(url, "worker2", &settings), why) {
            (Ok(()), None) => {}
            (Err(found), Some(part)) => assert!(found.contains(part), "{url}: {found}"),
            (found, _) => panic!("{url}: {found:?}"),
        }
    }
}

#[test]
fn what_hides_every_flag_is_told_once() {
    let container =
        Container { image: "kured:1.23.0".into(), env_from: vec!["ConfigMap kured".into()], ..Container::default() };
    let found = judge(&Flags::of(&container, Some("worker2")), "worker2", &Settings::default(), now());
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].status, found[0].reason), (Status::Unknown, Reason::KuredSettingUnreadable));
    assert!(found[0].does.contains("may be set by ConfigMap kured (envFrom)"), "{}", found[0].does);
}

fn installed(args: &[&str]) -> Facts {
    let daemon_set = json!({
        "metadata": {"name": "kured", "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": [{
            "name": "kured", "image": "ghcr.io/kubereboot/kured:1.23.0", "command": ["/usr/bin/kured"], "args": args,
            "env": [{"name": "KURED_NODE_ID", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        }]}}},
        "status": {"desiredNumberScheduled": 3, "numberReady": 3},
    });
    Facts { daemon_sets: good(&[daemon_set]), ..Facts::default() }
}

#[test]
fn a_kured_is_gated_where_its_url_leads_to_us() {
    let mut settings = Settings::default();
    settings.kured.hosts = vec!["gate.example".to_owned()];
    let rows = [
        ("http://maint/kured/$(KURED_NODE_ID)", true),
        ("http://maint.maint:8080/kured/$(KURED_NODE_ID)", true),
        ("http://maint.maint.svc.cluster.local/kured/$(KURED_NODE_ID)/", true),
        ("http://gate.example:80/kured/$(KURED_NODE_ID)", true),
        ("http://maint.maint/kured/worker2", false),
        ("http://maint.other/kured/$(KURED_NODE_ID)", false),
        ("http://maint.maint.svcx/kured/$(KURED_NODE_ID)", false),
        ("http://maint.maint/kured/", false),
        ("http://maint.maint/", false),
        ("http://prometheus.monitoring:9090", false),
        ("https://maint.maint/kured/$(KURED_NODE_ID)", false),
    ];
    for (url, wanted) in rows {
        assert_eq!(is_gated(&installed(&[&format!("--prometheus-url={url}")]), &settings), wanted, "{url}");
    }
    assert!(!is_gated(&installed(&[]), &settings), "asks nobody");
    assert!(!is_gated(&Facts::default(), &settings), "not read");
}

#[test]
fn alerts_are_filtered_where_a_flag_says_so_or_nobody_knows() {
    let rows = [
        (installed(&[]), false),
        (installed(&["--alert-filter-regexp=^maint"]), true),
        (installed(&["--alert-filter-match-only"]), true),
        (installed(&["--alert-filter-match-only=false"]), false),
        (Facts::default(), true),
    ];
    for (facts, wanted) in rows {
        assert_eq!(filters_alerts(&facts), wanted, "{:?}", facts.daemon_sets);
    }
}
