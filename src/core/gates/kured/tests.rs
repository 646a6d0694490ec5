//! Table of gate `kured`.

use serde_json::{Value, json};

use super::GATE;
use crate::api::{Action, Evidence, Finding, GateId, Moment, Reason, SourceId, Status, Trigger};
use crate::config::Scope;
use crate::facts::{FailureKind, Observation};
use crate::gates::RunContext;
use crate::gates::testing::{Case, World, ago, kured_pod, mutations, now, survivors};

const LOCK: &str = "weave.works/kured-node-lock";

fn pod(world: &mut World) -> &mut Value {
    world.named(SourceId::KuredPods, "kured-worker2")
}

fn args(world: &mut World, words: &[&str]) {
    let container = &mut pod(world)["spec"]["containers"][0];
    container["args"].as_array_mut().expect("arguments").extend(words.iter().map(|word| json!(word)));
}

fn lock(world: &mut World, text: &str) {
    world.named(SourceId::DaemonSets, "kured")["metadata"]["annotations"][LOCK] = json!(text);
}

fn ours(uid: &str) -> String {
    json!({"nodeID": "maint:worker3", "metadata": {"unschedulable": true}, "created": ago(60), "TTL": 0,
        "maint": {"maintenance": uid}})
    .to_string()
}

fn record(uid: &str, node: &str, annotations: Value) -> Value {
    json!({
        "metadata": {"name": format!("{node}-1"), "uid": uid, "annotations": annotations},
        "spec": {"nodeName": node}, "status": {"phase": "BackingOut"},
    })
}

fn asked(source: &str) -> Value {
    let text = json!({"at": ago(60), "answer": "gates", "epoch": 0, "source": source}).to_string();
    json!({"maint.dev/asked": text})
}

type Bend = fn(&mut World);
type Row = (&'static str, Bend, Status, Reason, &'static str);

fn ask(bend: Bend, shape: impl FnOnce(&mut Case)) -> Finding {
    let mut world = World::healthy().with_kured();
    bend(&mut world);
    let mut case = world.case();
    shape(&mut case);
    case.ask(&GATE)
}

fn check(rows: &[Row], shape: impl Fn(&mut Case)) {
    for (row, bend, status, reason, message) in rows {
        let finding = ask(*bend, &shape);
        assert_eq!((finding.status, finding.reason), (*status, *reason), "{row}: {finding:?}");
        assert!(finding.message.contains(message), "{row}: {}", finding.message);
    }
}

#[test]
fn the_kured_of_the_target() {
    use {Reason::*, Status::*};
    let rows: [Row; 22] = [
        ("healthy", |_| {}, Pass, Passed, "kured 1.23.0 on worker2 asks maint every 1m"),
        (
            "not installed",
            |w| w.of(SourceId::DaemonSets).clear(),
            NotApplicable,
            NotInstalled,
            "no DaemonSet runs kured",
        ),
        (
            "no pod on the target",
            |w| w.of(SourceId::KuredPods).retain(|pod| pod["spec"]["nodeName"] != "worker2"),
            Block,
            KuredPodNotReady,
            "no pod of kured runs on worker2: it will never come for this node",
        ),
        (
            "its pod is not Ready",
            |w| pod(w)["status"]["conditions"][0]["status"] = json!("False"),
            Block,
            KuredPodNotReady,
            "Pod kube-system/kured-worker2, the kured of worker2, is not Ready",
        ),
        (
            "its pod is on its way out",
            |w| pod(w)["metadata"]["deletionTimestamp"] = json!(ago(5)),
            Block,
            KuredPodNotReady,
            "is being deleted",
        ),
        (
            "V12: a second kured on the node",
            |w| {
                let mut second = kured_pod("worker2");
                second["metadata"]["name"] = json!("left-over");
                second["metadata"]["ownerReferences"] = json!([]);
                w.of(SourceId::KuredPods).push(second);
            },
            Block,
            KuredTwiceOnNode,
            "2 kureds run on worker2: kube-system/kured-worker2, kube-system/left-over",
        ),
        (
            "R10: a rollout: not every pod is new",
            |w| w.named(SourceId::DaemonSets, "kured")["status"]["updatedNumberScheduled"] = json!(2),
            Block,
            KuredRollingOut,
            "DaemonSet kube-system/kured is being rolled out (2 of 3 pods updated, generation 2 of 2)",
        ),
        (
            "R10: a rollout that has not begun",
            |w| w.named(SourceId::DaemonSets, "kured")["metadata"]["generation"] = json!(3),
            Block,
            KuredRollingOut,
            "generation 2 of 3",
        ),
        (
            "pods of two templates",
            |w| pod(w)["metadata"]["labels"]["controller-revision-hash"] = json!("7a7a"),
            Block,
            KuredRollingOut,
            "2 different templates (revisions 6f5d, 7a7a)",
        ),
        (
            "not gated",
            |w| args(w, &["--prometheus-url="]),
            Block,
            KuredNotGated,
            "kured on worker2 asks nobody before it reboots",
        ),
        (
            "the template is right and the process is older",
            |w| pod(w)["spec"]["containers"][0]["args"] = json!(["--period=1m"]),
            Block,
            KuredNotGated,
            "asks nobody",
        ),
        (
            "the process is right, whatever the template says",
            |w| w.named(SourceId::DaemonSets, "kured")["spec"]["template"]["spec"]["containers"][0]["args"] = json!([]),
            Pass,
            Passed,
            "",
        ),
        (
            "another node's kured is its own affair",
            |w| w.named(SourceId::KuredPods, "kured-worker1")["spec"]["containers"][0]["args"] = json!([]),
            Pass,
            Passed,
            "",
        ),
        ("a filter", |w| args(w, &["--alert-filter-regexp=maint"]), Block, KuredFilterHidesAnswer, "overlooks our no"),
        (
            "I: the lock before the question",
            |w| pod(w)["spec"]["containers"][0]["image"] = json!("ghcr.io/kubereboot/kured:1.13.1"),
            Block,
            KuredVersionUnsupported,
            "kured on worker2 is 1.13.1",
        ),
        ("too slow", |w| args(w, &["--period=1h"]), Block, KuredPeriodTooLong, "asks every 1h only"),
        (
            "outside its own window",
            |w| args(w, &["--start-time=02:00"]),
            Block,
            KuredWindowTooNarrow,
            "which opens at 2026-11-30T02:00:00Z",
        ),
        ("R5: a TTL", |w| args(w, &["--lock-ttl=30m"]), Warn, KuredSettingRisky, "lets others take its lock after 30m"),
        (
            "a block and two warnings",
            |w| args(w, &["--lock-ttl=30m", "--force-reboot", "--prometheus-url="]),
            Block,
            KuredNotGated,
            "; and 2 more",
        ),
        (
            "a flag from elsewhere",
            |w| pod(w)["spec"]["containers"][0]["envFrom"] = json!([{"secretRef": {"name": "s"}}]),
            Unknown,
            KuredSettingUnreadable,
            "Secret s (envFrom)",
        ),
        (
            "another program in its pods",
            |w| pod(w)["spec"]["containers"][0]["command"] = json!(["/bin/sh", "-c", "kured"]),
            Unknown,
            KuredSettingUnreadable,
            "the container runs another program",
        ),
        (
            "a pod that has ended is none",
            |w| pod(w)["status"]["phase"] = json!("Failed"),
            Block,
            KuredPodNotReady,
            "no pod of kured runs on worker2",
        ),
    ];
    check(&rows, |_| {});
}

#[test]
fn the_lock_of_kured() {
    use {Reason::*, Status::*};
    let rows: [Row; 14] = [
        (
            "free, multi",
            |w| {
                concurrency(w, 2);
                lock(w, r#"{"maxOwners":2,"locks":[]}"#);
            },
            Pass,
            Passed,
            "",
        ),
        (
            "S9, V9: multi under concurrency 1",
            |w| lock(w, r#"{"maxOwners":2,"locks":[]}"#),
            Block,
            KuredLockFormat,
            "has not the format of --concurrency 1: kured never takes it",
        ),
        (
            "S8: single under concurrency 2",
            |w| {
                concurrency(w, 2);
                lock(w, r#"{"nodeID":"manual"}"#);
            },
            Block,
            KuredLockFormat,
            "has not the format of --concurrency 2: kured writes it over at once",
        ),
        (
            "R8: two pools freeze each other",
            |w| {
                let mut second = w.named(SourceId::DaemonSets, "kured").clone();
                second["metadata"]["name"] = json!("kured-gpu");
                second["spec"]["template"]["spec"]["containers"][0]["args"] = json!(["--concurrency=2"]);
                w.of(SourceId::DaemonSets).push(second);
            },
            Unknown,
            KuredSettingUnreadable,
            "run with --concurrency 1 and 2",
        ),
        (
            "our hold of another record",
            |w| {
                lock(w, &ours("u-3"));
                *w.of(SourceId::Maintenances) = vec![record("u-3", "worker3", json!({}))];
            },
            Block,
            KuredLockHeldByMaint,
            "the run worker3-1 of node worker3 (BackingOut) holds kured's lock on DaemonSet kube-system/kured, until it is over \
             and kured on worker3 has asked again",
        ),
        (
            "our hold of a record that is gone",
            |w| lock(w, &ours("u-9")),
            Block,
            KuredLockHeldByMaint,
            "`maint lock release --holder maint:worker3` frees it",
        ),
        ("our own hold", |w| lock(w, &ours("uid-run")), Pass, Passed, ""),
        ("a foreign holder is told elsewhere", |w| lock(w, r#"{"nodeID":"worker1"}"#), Pass, Passed, ""),
        (
            "R6: a ghost in the only slot",
            |w| lock(w, r#"{"nodeID":"gone","TTL":0}"#),
            Block,
            KuredLockHeld,
            "names gone, which is no node, and has no free slot: kured on worker2 would never take it; `maint lock release \
             --holder gone` frees it",
        ),
        (
            "R6: a ghost that kured itself takes for expired",
            |w| lock(w, r#"{"nodeID":"gone","created":"2020-01-01T00:00:00Z","TTL":1000}"#),
            Pass,
            Passed,
            "",
        ),
        (
            "R6: a ghost beside a free slot",
            |w| {
                concurrency(w, 2);
                lock(w, r#"{"maxOwners":2,"locks":[{"nodeID":"gone","TTL":0}]}"#);
            },
            Pass,
            Passed,
            "",
        ),
        (
            "R6: a ghost and a node in both slots",
            |w| {
                concurrency(w, 2);
                lock(w, r#"{"maxOwners":2,"locks":[{"nodeID":"worker1","TTL":0},{"nodeID":"gone","TTL":0}]}"#);
            },
            Block,
            KuredLockHeld,
            "names gone, which is no node",
        ),
        ("garbage is told elsewhere", |w| lock(w, "held by anna"), Pass, Passed, ""),
        (
            "R9: Flux strips what kubectl set",
            |w| {
                let kured = w.named(SourceId::DaemonSets, "kured");
                kured["metadata"]["labels"] = json!({"kustomize.toolkit.fluxcd.io/name": "apps"});
                kured["metadata"]["managedFields"] = json!([{"manager": "kubectl-annotate", "fieldsV1": {"f:metadata": {"f:annotations": {format!("f:{LOCK}"): {}}}}}]);
            },
            Warn,
            KuredLockStripped,
            "Flux will take kured's lock off DaemonSet kube-system/kured at its next reconciliation: `kubectl-annotate` set it",
        ),
    ];
    check(&rows, |case| {
        case.moment = Moment::Handover;
        case.run = Some(RunContext {
            maintenance_uid: "uid-run".into(),
            action: Some(Action::Kured),
            ..RunContext::default()
        });
    });
}

fn concurrency(world: &mut World, count: usize) {
    let word = json!(format!("--concurrency={count}"));
    let template = &mut world.named(SourceId::DaemonSets, "kured")["spec"]["template"]["spec"]["containers"][0]["args"];
    template.as_array_mut().expect("arguments").push(word);
    args(world, &[&format!("--concurrency={count}")]);
}

#[test]
fn who_acts_and_why_decides_whether_it_is_asked() {
    type Shape = fn(&mut Case);
    let run = |action| Some(RunContext { maintenance_uid: "uid-run".into(), action, ..RunContext::default() });
    let rows: [(&str, Option<RunContext>, Shape, Status); 6] = [
        ("a look without a run", None, |_| {}, Status::Block),
        (
            "a scope that reboots nothing",
            None,
            |case| case.scope = Scope::find(&case.settings, "service-restart").expect("built in"),
            Status::NotApplicable,
        ),
        ("kured acts", run(Some(Action::Kured)), |case| case.trigger = Trigger::Manual, Status::Block),
        ("a pod acts", run(Some(Action::Pod)), |_| {}, Status::NotApplicable),
        ("a person acts", run(Some(Action::External)), |_| {}, Status::NotApplicable),
        ("an unreadable action", run(None), |_| {}, Status::Block),
    ];
    for (row, context, shape, status) in rows {
        let finding = ask(
            |w| args(w, &["--prometheus-url="]),
            |case| {
                case.run = context;
                shape(case);
            },
        );
        assert_eq!(finding.status, status, "{row}: {finding:?}");
    }
}

#[test]
fn an_unattended_wish_needs_kureds_word() {
    use {Reason::*, Status::*};
    let start = |case: &mut Case| {
        case.run =
            Some(RunContext { maintenance_uid: "u-2".into(), action: Some(Action::Kured), ..RunContext::default() });
    };
    let rows: [Row; 6] = [
        (
            "no word",
            |w| *w.of(SourceId::Maintenances) = vec![record("u-2", "worker2", json!({}))],
            Block,
            KuredWishUnconfirmed,
            "nothing confirms that kured wants worker2 rebooted: no question of kured",
        ),
        ("no record", |_| {}, Block, KuredWishUnconfirmed, "no question of kured"),
        (
            "its question",
            |w| *w.of(SourceId::Maintenances) = vec![record("u-2", "worker2", asked("kured"))],
            Pass,
            Passed,
            "",
        ),
        (
            "a question from elsewhere",
            |w| *w.of(SourceId::Maintenances) = vec![record("u-2", "worker2", asked("elsewhere"))],
            Block,
            KuredWishUnconfirmed,
            "that did not come from kured's pod or node",
        ),
        (
            "its annotation",
            |w| {
                w.named(SourceId::Nodes, "worker2")["metadata"]["annotations"] =
                    json!({"weave.works/kured-reboot-in-progress": ago(60)});
            },
            Pass,
            Passed,
            "",
        ),
        (
            "an unreadable question",
            |w| *w.of(SourceId::Maintenances) = vec![record("u-2", "worker2", json!({"maint.dev/asked": "{}"}))],
            Block,
            KuredWishUnconfirmed,
            "; and 1 more",
        ),
    ];
    check(&rows, start);
    // A person needs no wish of kured, and neither does the hand-over: there the plan waits for a question.
    for shape in
        [(|case: &mut Case| case.trigger = Trigger::Manual) as fn(&mut Case), |case| case.moment = Moment::Handover]
    {
        let finding = ask(
            |_| {},
            |case| {
                start(case);
                shape(case);
            },
        );
        assert_eq!(finding.status, Pass, "{finding:?}");
    }
}

#[test]
fn nothing_of_the_run_is_left_in_the_lock() {
    use {Reason::*, Status::*};
    let rows: [Row; 9] = [
        ("no lock at all", |_| {}, NotApplicable, NotInstalled, "there is no lock of kured"),
        ("released, multi", |w| lock(w, r#"{"maxOwners":2,"locks":[]}"#), Pass, Passed, "no longer names worker2"),
        ("our own hold", |w| lock(w, &ours("uid-run")), Pass, Passed, ""),
        ("another node's", |w| lock(w, r#"{"nodeID":"worker1"}"#), Pass, Passed, ""),
        (
            "kured has not given it back",
            |w| lock(w, &format!(r#"{{"nodeID":"worker2","created":"{}","TTL":0}}"#, ago(600))),
            Block,
            KuredLockNotReleased,
            "kured on worker2 has not given its lock on DaemonSet kube-system/kured back",
        ),
        (
            "I12: expired while it was away",
            |w| lock(w, &format!(r#"{{"nodeID":"worker2","created":"{}","TTL":1000000000}}"#, ago(600))),
            Block,
            KuredLockNotReleased,
            "it has expired, and kured will not give it back",
        ),
        ("another record's hold", |w| lock(w, &ours("u-9")), Block, KuredLockHeldByMaint, "a run of ours that is gone"),
        ("garbage", |w| lock(w, "held by anna"), Unknown, KuredLockUnreadable, "is no JSON"),
        (
            "under another key",
            |w| {
                concurrency(w, 1);
                let kured = w.named(SourceId::DaemonSets, "kured");
                kured["spec"]["template"]["spec"]["containers"][0]["args"] =
                    json!(["--lock-annotation=example.com/lock"]);
                kured["metadata"]["annotations"] = json!({"example.com/lock": r#"{"nodeID":"worker2"}"#});
            },
            Block,
            KuredLockNotReleased,
            "has not given its lock",
        ),
    ];
    check(&rows, |case| {
        case.moment = Moment::Settle;
        case.run =
            Some(RunContext { maintenance_uid: "uid-run".into(), action: Some(Action::Pod), ..RunContext::default() });
    });
    // What was so at the start only warns.
    let evidence =
        Evidence::new("DaemonSet kube-system/kured", format!("metadata.annotations[{LOCK}]"), "maint:worker3", "");
    let old = Finding {
        gate: GateId::Kured,
        status: Block,
        reason: KuredLockHeldByMaint,
        message: String::new(),
        evidence: vec![evidence],
        evidence_left_out: 0,
        observed_at: None,
        since: None,
    };
    let finding = ask(
        |w| lock(w, &ours("u-9")),
        |case| {
            case.moment = Moment::Settle;
            case.run =
                Some(RunContext { maintenance_uid: "uid-run".into(), baseline: vec![old], ..RunContext::default() });
        },
    );
    assert_eq!(finding.status, Warn, "{finding:?}");
}

#[test]
fn what_could_not_be_read_is_unknown() {
    type Shape = fn(&mut Case);
    let failed = |case: &mut Case| {
        case.facts.kured_pods = Observation::Failed { kind: FailureKind::Forbidden, detail: "403".into(), at: now() }
    };
    let rows: [(&str, Shape, &str); 4] = [
        ("pods failed", failed, "kured-pods could not be read (forbidden): 403"),
        ("pods not asked", |case| case.facts.kured_pods = Observation::NotAsked, "nothing asked for kured-pods"),
        (
            "pods absent",
            |case| case.facts.kured_pods = Observation::Absent { at: now() },
            "the API says that kured-pods do not exist",
        ),
        (
            "DaemonSets not asked",
            |case| case.facts.daemon_sets = Observation::NotAsked,
            "nothing asked for daemon-sets",
        ),
    ];
    for (row, shape, message) in rows {
        let finding = ask(|_| {}, shape);
        assert_eq!(finding.status, Status::Unknown, "{row}: {finding:?}");
        assert!(finding.message.contains(message), "{row}: {}", finding.message);
    }
}

#[test]
fn no_gap_makes_a_kured_that_is_not_gated_fine() {
    let mut world = World::healthy().with_kured();
    // With the URL of another node: each part of it, of its pod and of its DaemonSet is spoilt in turn.
    pod(&mut world)["spec"]["containers"][0]["args"][3] = json!("--prometheus-url=http://maint.maint/kured/worker1");
    let left = survivors(&GATE, &world, |_| {});
    // Without a container there is no kured; without its DaemonSet's, none is installed.
    let allowed = [
        "daemon-sets kured: spec.template.spec.containers",
        "daemon-sets kured: spec.template.spec",
        "daemon-sets kured: spec.template",
    ];
    let bad: Vec<_> = left.iter().filter(|path| !allowed.iter().any(|start| path.starts_with(start))).collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn a_healthy_kured_that_loses_a_part_is_never_a_surprise() {
    // Spoilt parts of the target's pod may stop the run or not matter; a changed flag must not turn into its default
    // unseen. Deleting a word is the one way to unset a flag.
    let whole = World::healthy().with_kured();
    let document = kured_pod("worker2");
    let mut passing = Vec::new();
    for (told, spoilt) in mutations(&document) {
        let mut world = whole.clone();
        *pod(&mut world) = spoilt;
        if !world.case().ask(&GATE).stops() {
            passing.push(told);
        }
    }
    let harmless = [
        "apiVersion",
        "kind",
        "metadata.uid",
        "metadata.namespace",
        "metadata.name",
        "metadata.labels.name",
        "metadata.ownerReferences",
        "status.podIP",
        "status.containerStatuses",
        "spec.containers.0.name",
        "spec.containers.0.command.1",
        // Without a command the image's own program runs, which is kured.
        "spec.containers.0.command deleted",
        "spec.containers.0.command nulled",
        "spec.containers.0.args.1 deleted",
        "spec.containers.0.args.2 deleted",
    ];
    let bad: Vec<_> = passing.iter().filter(|told| !harmless.iter().any(|start| told.starts_with(start))).collect();
    assert!(bad.is_empty(), "{bad:#?}");
}
