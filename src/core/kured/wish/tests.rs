//! Tables of what is believed, what it is called, and what is written down.

use serde_json::{Value, json};

use super::*;
use crate::facts::FailureKind;
use crate::gates::testing::{ago, good, node, now};

fn daemon_set() -> Value {
    json!({
        "metadata": {"name": "kured", "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": [{"image": "kured:1.23.0"}]}}},
        "status": {"desiredNumberScheduled": 3, "numberReady": 3},
    })
}

fn pod() -> Value {
    json!({
        "metadata": {"name": "kured-x", "namespace": "kube-system", "uid": "u",
            "ownerReferences": [{"kind": "DaemonSet", "name": "kured", "controller": true}]},
        "spec": {"nodeName": "worker2"},
        "status": {"phase": "Running", "podIP": "10.42.1.7", "podIPs": [{"ip": "10.42.1.7"}, {"ip": "fd00::7"}],
            "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn decoded(document: &Value) -> Node {
    good::<Node>(std::slice::from_ref(document)).good().next().expect("a node").clone()
}

fn facts(pods: &[Value]) -> Facts {
    Facts { daemon_sets: good(&[daemon_set()]), target_pods: good(pods), ..Facts::default() }
}

#[test]
fn a_question_is_believed_where_kured_runs_and_one_thing_more_says_so() {
    let bent = |change: fn(&mut Value)| {
        let mut pod = pod();
        change(&mut pod);
        pod
    };
    let not_ready = bent(|pod| pod["status"]["conditions"][0]["status"] = json!("False"));
    let ending = bent(|pod| pod["metadata"]["deletionTimestamp"] = json!("2026-11-30T01:00:00Z"));
    let stranger = bent(|pod| pod["metadata"]["ownerReferences"][0]["name"] = json!("agent"));
    let elsewhere = bent(|pod| pod["metadata"]["namespace"] = json!("default"));
    let bare = bent(|pod| pod["metadata"]["ownerReferences"] = json!([]));
    let (kured, other) = (Some("10.42.1.7"), Some("10.42.1.8"));
    // Pods, address, annotated, metric, source is kured, believed.
    let rows: [(&str, &[Value], Option<&str>, bool, Option<bool>, bool, bool); 15] = [
        ("its own address", &[pod()], kured, false, None, true, true),
        ("its second address", &[pod()], Some("fd00::7"), false, None, true, true),
        ("the node's address", &[pod()], Some("10.0.0.1"), false, None, true, true),
        ("another address", &[pod()], other, false, None, false, false),
        ("no address", &[pod()], None, false, None, false, false),
        ("annotated", &[pod()], other, true, None, false, true),
        ("the metric says so", &[pod()], other, false, Some(true), false, true),
        ("the metric says no", &[pod()], other, false, Some(false), false, false),
        ("its own address, the metric says no", &[pod()], kured, false, Some(false), true, true),
        ("not Ready", &[not_ready], kured, true, Some(true), true, false),
        ("being deleted", &[ending], kured, true, Some(true), true, false),
        ("another DaemonSet's", &[stranger], kured, true, None, false, false),
        ("another namespace's", &[elsewhere], kured, true, None, false, false),
        ("nobody's", &[bare], kured, true, None, false, false),
        ("no pod, the node's address", &[], Some("10.0.0.1"), true, Some(true), false, false),
    ];
    for (row, pods, address, annotated, metric, from_kured, believed) in rows {
        let mut document = node("worker2");
        if annotated {
            document["metadata"]["annotations"] = json!({"weave.works/kured-reboot-in-progress": ago(600)});
        }
        let (node, facts) = (decoded(&document), facts(pods));
        let pods = kured_pods(&facts).expect(row);
        let source = source_of(address, &node, &pods);
        assert_eq!(source == QuestionSource::Kured, from_kured, "{row}");
        assert_eq!(is_believed(&node, &pods, source, metric), believed, "{row}");
    }
}

#[test]
fn pods_that_could_not_be_read_are_no_answer() {
    let failed = || Observation::Failed { kind: FailureKind::Server, detail: "500".into(), at: now() };
    let rows = [
        (Facts { target_pods: failed(), ..facts(&[]) }, "the node's pods could not be read: 500"),
        (Facts { daemon_sets: Observation::NotAsked, ..facts(&[]) }, "the DaemonSets were not asked for"),
    ];
    for (facts, wanted) in rows {
        assert_eq!(kured_pods(&facts), Err(wanted.to_owned()));
    }
    let none = Facts { daemon_sets: good(&[]), ..facts(&[pod()]) };
    assert_eq!(kured_pods(&none), Ok(vec![]));
}

/// A record of `worker2` that ended, or not.
fn tried(name: &str, boot: Option<&str>, phase: &str, seconds: i64) -> Maintenance {
    let record = json!({
        "apiVersion": "maint.dev/v1alpha1", "kind": "Maintenance",
        "metadata": {"name": name, "creationTimestamp": ago(seconds)},
        "spec": {"nodeName": "worker2", "scope": "reboot", "action": "kured", "trigger": "unattended", "bootID": boot},
        "status": {"phase": phase, "node": {"bootIdBefore": "0F3C-9a1bcd"}},
    });
    serde_json::from_value(record).expect("a record")
}

#[test]
fn a_wish_has_one_name_for_a_node_a_boot_and_a_try() {
    let (day, boot) = (86_400, Some("0F3C-9a1bcd"));
    let rows: Vec<(&str, Vec<Maintenance>, &str, Option<&str>)> = vec![
        ("the first", vec![], "0F3C-9a1bcd", Some("worker2-0f3c9a1b-1")),
        ("no boot", vec![], "", None),
        ("nothing of a boot", vec![], "---", None),
        ("active", vec![tried("x", boot, "Pending", day)], "0F3C-9a1bcd", None),
        ("held", vec![tried("x", boot, "Held", day)], "0F3C-9a1bcd", None),
        ("one ended", vec![tried("x", boot, "Failed", day)], "0F3C-9a1bcd", Some("worker2-0f3c9a1b-2")),
        (
            "one ended, boot by its status",
            vec![tried("x", None, "Failed", day)],
            "0F3C-9a1bcd",
            Some("worker2-0f3c9a1b-2"),
        ),
        (
            "ended in another boot",
            vec![tried("x", Some("old"), "Failed", 1)],
            "0F3C-9a1bcd",
            Some("worker2-0f3c9a1b-1"),
        ),
        (
            "the first was cleaned away",
            vec![tried("worker2-0f3c9a1b-2", boot, "Failed", day)],
            "0F3C-9a1bcd",
            Some("worker2-0f3c9a1b-3"),
        ),
        ("a moment ago", vec![tried("x", boot, "Failed", 599)], "0F3C-9a1bcd", None),
        ("ten minutes ago", vec![tried("x", boot, "Failed", 600)], "0F3C-9a1bcd", Some("worker2-0f3c9a1b-2")),
        (
            "longer after each",
            vec![tried("x", boot, "Failed", day), tried("y", boot, "Cancelled", 1_199)],
            "0F3C-9a1bcd",
            None,
        ),
        (
            "never longer than two hours",
            (0..40).map(|n| tried(&format!("x{n}"), boot, "Failed", 7_200)).collect(),
            "0F3C-9a1bcd",
            Some("worker2-0f3c9a1b-41"),
        ),
    ];
    for (row, records, boot, wanted) in rows {
        let mut document = node("worker2");
        document["status"]["nodeInfo"]["bootID"] = json!(boot);
        let found = of_kured(&decoded(&document), &records, now());
        assert_eq!(found.and_then(|record| record.metadata.name).as_deref(), wanted, "{row}");
    }
    let mut document = node(&format!("{}.example", "n".repeat(245)));
    document["metadata"]["annotations"] = json!({"weave.works/kured-reboot-in-progress": "2026-11-30T00:00:00Z"});
    let record = of_kured(&decoded(&document), &[], now()).expect("a wish");
    assert!(record.metadata.name.is_some_and(|name| name.len() < 247));
    let spec = record.spec;
    assert_eq!((spec.action.as_str(), spec.trigger.as_str(), spec.scope.as_str()), ("kured", "unattended", "reboot"));
    assert_eq!(
        (spec.requested_by.as_str(), spec.reason.as_str()),
        ("kured", "kured asks for a reboot since 2026-11-30T00:00:00Z")
    );
    assert_eq!(spec.boot_id, Some(format!("boot-{}", document["metadata"]["name"].as_str().expect("a name"))));
}

#[test]
fn what_kured_heard_is_written_when_it_is_news() {
    use QuestionSource::{Elsewhere, Kured};
    let (no, go) = (Answer::no("a"), Answer::Go);
    let written = |answer: &str, epoch: i64, source: &str, seconds: i64| {
        Some(json!({"at": ago(seconds), "answer": answer, "epoch": epoch, "source": source}).to_string())
    };
    // Written before, epoch of the record, answer, source, due.
    let rows = [
        ("the first", None, 0, &no, Kured, true),
        ("again", written("maint: a", 1, "kured", 599), 1, &no, Kured, false),
        ("after ten minutes", written("maint: a", 1, "kured", 600), 1, &no, Kured, true),
        ("a new epoch", written("maint: a", 1, "kured", 1), 2, &no, Kured, true),
        ("a new epoch from elsewhere", written("maint: a", 1, "kured", 1), 2, &no, Elsewhere, true),
        ("kured after another", written("maint: a", 2, "elsewhere", 1), 2, &no, Kured, true),
        ("another after kured", written("maint: a", 2, "kured", 1), 2, &no, Elsewhere, false),
        ("another long after kured", written("maint: a", 2, "kured", 6_000), 2, &no, Elsewhere, false),
        ("elsewhere, after ten minutes", written("maint: a", 2, "elsewhere", 600), 2, &no, Elsewhere, true),
        ("a refusal after a go", written("go", 2, "kured", 1), 2, &no, Kured, true),
        ("a refusal of another after a go", written("go", 2, "kured", 1), 2, &no, Elsewhere, false),
        ("a go after a refusal", written("maint: a", 2, "kured", 1), 2, &go, Kured, false),
        ("an older view", written("maint: a", 3, "kured", 6_000), 2, &no, Kured, false),
        ("garbage", Some("yes".to_owned()), 2, &no, Kured, true),
    ];
    for (row, before, epoch, answer, source, due) in rows {
        let mut record = tried("x", None, "Acting", 60);
        if let Some(status) = &mut record.status {
            status.kured = Some(crate::api::record::KuredRecord { ask_epoch: epoch, ..Default::default() });
        }
        record.metadata.annotations = before.map(|text| [(ANNOTATION_ASKED.to_owned(), text)].into());
        let wanted = due.then(|| Asked { at: now(), answer: answer.word(), epoch, source });
        assert_eq!(asked(&record, answer, source, now()), wanted, "{row}");
    }
    // Over, while kured may still act on what it heard.
    let mut record = tried("x", None, "Failed", 60);
    let closing = crate::api::record::Closing { taken_at: None, epoch: 2, pod: String::new(), used: false };
    record.status.as_mut().expect("one").kured =
        Some(crate::api::record::KuredRecord { ask_epoch: 2, closing: Some(closing), ..Default::default() });
    let heard = asked(&record, &no, Kured, now()).map(|asked| (asked.epoch, asked.source));
    assert_eq!(heard, Some((2, Kured)));
    assert_eq!(question::active(std::slice::from_ref(&record)).count(), 0);
    for (row, change) in [
        ("ended", (|record| record.status.as_mut().expect("one").phase = "Failed".into()) as fn(&mut Maintenance)),
        ("another action", |record| record.spec.action = "pod".into()),
    ] {
        let mut record = tried("x", None, "Acting", 60);
        change(&mut record);
        assert_eq!(asked(&record, &no, Kured, now()), None, "{row}");
    }
}
