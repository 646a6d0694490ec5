//! Table of the answers.

use serde_json::{Value, json};

use super::*;
use crate::facts::FailureKind;
use crate::gates::testing::{ago, good, node, now};

/// Everything that an answer is made from, as it is while a go is given to `worker2`.
struct Case {
    node: Value,
    record: Value,
    others: Vec<Value>,
    lock: Option<String>,
    args: Vec<&'static str>,
    control: Value,
    mode: &'static str,
    facts: Option<fn(&mut Facts)>,
}

impl Default for Case {
    fn default() -> Self {
        let mut node = node("worker2");
        node["spec"]["unschedulable"] = json!(true);
        node["metadata"]["annotations"] = json!({"maint.dev/owner": r#"{"maintenance":"u-1","term":3}"#});
        let record = json!({
            "apiVersion": "maint.dev/v1alpha1", "kind": "Maintenance",
            "metadata": {"name": "worker2-a-1", "uid": "u-1", "annotations": {}},
            "spec": {"nodeName": "worker2", "scope": "reboot", "action": "kured", "trigger": "unattended"},
            "status": {
                "phase": "Acting",
                "node": {"uid": "uid-worker2", "bootIdBefore": "boot-worker2"},
                "intent": {"bootId": "boot-worker2", "at": ago(5), "validUntil": ago(-25)},
                "kured": {"askEpoch": 1},
            },
        });
        Self { node, record, others: vec![], lock: None, args: vec![], control: json!({}), mode: "auto", facts: None }
    }
}

impl Case {
    fn answer(&self) -> Answer {
        let mut annotations = json!({});
        if let Some(lock) = &self.lock {
            annotations["weave.works/kured-node-lock"] = json!(lock);
        }
        let daemon_set = json!({
            "metadata": {"name": "kured", "namespace": "kube-system", "annotations": annotations},
            "spec": {"template": {"spec": {"containers": [{"image": "kured:1.23.0", "args": self.args}]}}},
            "status": {"desiredNumberScheduled": 3, "numberReady": 3},
        });
        let control = json!({"metadata": {"name": "maint-control", "namespace": "maint"}, "data": self.control});
        let mut facts = Facts {
            nodes: good(std::slice::from_ref(&self.node)),
            daemon_sets: good(&[daemon_set]),
            config_maps: good(&[control]),
            ..Facts::default()
        };
        if let Some(change) = self.facts {
            change(&mut facts);
        }
        let records = std::iter::once(&self.record).chain(&self.others).filter(|record| !record.is_null());
        let records: Vec<Maintenance> =
            records.map(|record| serde_json::from_value(record.clone()).expect("a record")).collect();
        answer(&Question {
            node: "worker2",
            facts: &facts,
            records: &records,
            settings: &Settings::default(),
            mode: self.mode,
            now: now(),
        })
    }

    fn status(&mut self) -> &mut Value {
        &mut self.record["status"]
    }
}

fn failed<T>() -> Observation<T> {
    Observation::Failed { kind: FailureKind::Timeout, detail: "no answer within 15 s".into(), at: now() }
}

fn finding(status: &str) -> Value {
    json!({"gate": "longhorn-volumes", "status": status, "reason": "LonghornRebuilding", "message": "volume pvc-1"})
}

const ENTRY: &str =
    r#"{"nodeID":"worker1","metadata":{"unschedulable":true},"created":"2026-11-30T00:00:00Z","TTL":0}"#;

type Row = (&'static str, fn(&mut Case), &'static str);

/// Each row bends one thing of a go.
const REFUSED: &[Row] = &[
    (
        "a second active record",
        |c| {
            let mut other = c.record.clone();
            other["metadata"]["name"] = json!("worker2-b-1");
            c.others = vec![other];
        },
        "worker2 has two records, worker2-a-1 and worker2-b-1: one must be cancelled",
    ),
    ("no record", |c| c.record = Value::Null, "worker2 was heard; nothing is planned for it yet"),
    (
        "an ended record only",
        |c| c.status()["phase"] = json!("Failed"),
        "worker2 was heard; nothing is planned for it yet",
    ),
    ("another action", |c| c.record["spec"]["action"] = json!("pod"), "worker2 is being maintained by action pod"),
    (
        "an action that nobody knows",
        |c| c.record["spec"]["action"] = json!("x"),
        "worker2 is being maintained by action x",
    ),
    ("withdrawn", |c| c.status()["kured"]["closing"] = json!({"epoch": 2}), "worker2: its go was withdrawn"),
    (
        "no grant",
        |c| c.status()["intent"] = Value::Null,
        "worker2 is drained, waits for the first question after the cordon",
    ),
    (
        "no grant, asked already",
        |c| {
            c.status()["intent"] = Value::Null;
            let asked = json!({"at": ago(60), "answer": "maint: no", "epoch": 1, "source": "kured"}).to_string();
            c.record["metadata"]["annotations"]["maint.dev/asked"] = json!(asked);
        },
        "worker2 is drained, waits for its go",
    ),
    (
        "no grant, blocked",
        |c| {
            c.status()["intent"] = Value::Null;
            c.status()["findings"] = json!([finding("warn"), finding("block")]);
        },
        "worker2 is drained, waits: longhorn-volumes LonghornRebuilding (volume pvc-1)",
    ),
    ("over", |c| c.status()["intent"]["validUntil"] = json!(ago(0)), "worker2: its go ended at 2026-11-30T01:00:00Z"),
    (
        "over by the time it arrives",
        |c| c.status()["intent"]["validUntil"] = json!(ago(-2)),
        "worker2: its go ended at 2026-11-30T01:00:02Z",
    ),
    (
        "no time",
        |c| c.status()["intent"]["validUntil"] = json!("soon"),
        "worker2: status.intent.validUntil is `soon`, no time",
    ),
    (
        "too long",
        |c| c.status()["intent"]["validUntil"] = json!(ago(-36)),
        "worker2: its go lasts until 2026-11-30T01:00:36Z, and here it is 2026-11-30T01:00:00Z: clocks differ",
    ),
    ("another boot", |c| c.status()["intent"]["bootId"] = json!("boot-old"), "worker2 booted since its go was given"),
    (
        "no boot",
        |c| {
            c.status()["intent"]["bootId"] = json!("");
            c.node["status"]["nodeInfo"]["bootID"] = json!("");
        },
        "worker2 booted since its go was given",
    ),
    ("another node", |c| c.node["metadata"]["uid"] = json!("u-new"), "worker2 is another node than when its run began"),
    (
        "a record that lost its node",
        |c| c.status()["node"] = Value::Null,
        "worker2 is another node than when its run began",
    ),
    ("uncordoned", |c| c.node["spec"]["unschedulable"] = json!(false), "worker2 is not cordoned by its run any more"),
    ("not marked", |c| c.node["metadata"]["annotations"] = json!({}), "worker2 is not cordoned by its run any more"),
    (
        "marked for another",
        |c| c.node["metadata"]["annotations"]["maint.dev/owner"] = json!(r#"{"maintenance":"u-2","term":3}"#),
        "worker2 is not cordoned by its run any more",
    ),
    (
        "a mark that cannot be read",
        |c| c.node["metadata"]["annotations"]["maint.dev/owner"] = json!("u-1"),
        "worker2 is not cordoned by its run any more",
    ),
    (
        "committed by the lock",
        |c| c.lock = Some(ENTRY.replace("worker1", "worker2")),
        "worker2 holds kured's lock: it is committed",
    ),
    (
        "committed, expired",
        |c| c.lock = Some(ENTRY.replace("worker1", "worker2").replace(":0}", ":1}")),
        "worker2 holds kured's lock: it is committed",
    ),
    (
        "committed in the multi format",
        |c| {
            c.args = vec!["--concurrency=2"];
            c.lock = Some(format!(r#"{{"maxOwners":2,"locks":[{ENTRY},{}]}}"#, ENTRY.replace("worker1", "worker2")));
        },
        "worker2 holds kured's lock: it is committed",
    ),
    (
        "our lock",
        |c| {
            c.lock =
                Some(ENTRY.replace("worker1", "maint:worker2").replace(":0}", r#":0,"maint":{"maintenance":"u-1"}}"#));
        },
        "maint holds kured's lock (maint:worker2)",
    ),
    (
        "our lock for another run",
        |c| {
            c.lock =
                Some(ENTRY.replace("worker1", "maint:worker1").replace(":0}", r#":0,"maint":{"maintenance":"u-2"}}"#));
        },
        "maint holds kured's lock for another run (maint:worker1)",
    ),
    (
        "a garbage lock",
        |c| c.lock = Some("worker2".into()),
        "DaemonSet kube-system/kured lock is no JSON: expected value at line 1 column 1",
    ),
    (
        "an odd concurrency",
        |c| c.args = vec!["--concurrency=many"],
        "DaemonSet kube-system/kured: --concurrency is `many`: wanted a whole number",
    ),
    (
        "halted",
        |c| c.control = json!({"halt": r#"{"by":"anna","reason":"new switch","since":"2026-11-30T00:00:00Z"}"#}),
        "halted by anna: new switch",
    ),
    (
        "a halt that cannot be read",
        |c| c.control = json!({"halt": "yes"}),
        "ConfigMap maint-control: halt is no readable halt document: expected value at line 1 column 1; maint unhalt",
    ),
    (
        "on hold",
        |c| c.node["metadata"]["annotations"]["maint.dev/hold"] = json!(r#"{"by":"anna","reason":"disk"}"#),
        "anna holds worker2: disk",
    ),
    (
        "a hold that cannot be read",
        |c| c.node["metadata"]["annotations"]["maint.dev/hold"] = json!("yes"),
        "annotation maint.dev/hold of worker2 is no readable hold document: expected value at line 1 column 1; maint release worker2",
    ),
    ("cancelled", |c| c.record["spec"]["cancel"] = json!({"by": "anna", "at": ago(1)}), "worker2: cancelled by anna"),
    ("superseded", |c| c.record["spec"]["supersededBy"] = json!("worker2-x"), "worker2: worker2-x takes its place"),
    (
        "being deleted",
        |c| c.record["metadata"]["deletionTimestamp"] = json!(ago(1)),
        "worker2: its record is being deleted",
    ),
    ("observe", |c| c.mode = "observe", "observe mode: worker2 was heard, and nothing starts by itself"),
    ("an unknown mode", |c| c.mode = "", "observe mode: worker2 was heard, and nothing starts by itself"),
    ("approve", |c| c.mode = "approve", "approve mode: worker2 waits for `maint approve worker2-a-1`"),
    (
        "Pending",
        |c| {
            c.status()["phase"] = json!("Pending");
            c.status()["findings"] = json!([finding("unknown")]);
        },
        "worker2 waits: longhorn-volumes LonghornRebuilding (volume pvc-1)",
    ),
    (
        "Pending, by its message",
        |c| {
            c.status()["phase"] = json!("Pending");
            c.status()["message"] = json!("waits: worker1 goes first");
        },
        "worker2 waits: worker1 goes first",
    ),
    ("no status yet", |c| *c.status() = Value::Null, "worker2 waits for its turn"),
    (
        "Cordoning",
        |c| c.status()["phase"] = json!("Cordoning"),
        "worker2 is being cordoned; it is drained before it reboots",
    ),
    (
        "Draining",
        |c| {
            c.status()["phase"] = json!("Draining");
            c.status()["drain"] = json!({"left": 3});
        },
        "worker2 is being drained, 3 pods left",
    ),
    ("Returning", |c| c.status()["phase"] = json!("Returning"), "worker2 is committed: it reboots or comes back"),
    ("Verifying", |c| c.status()["phase"] = json!("Verifying"), "worker2 is back and is being proven (Verifying)"),
    ("Settling", |c| c.status()["phase"] = json!("Settling"), "worker2 is back and is being proven (Settling)"),
    ("Held", |c| c.status()["phase"] = json!("Held"), "worker2 is held, a person is needed: maint show worker2-a-1"),
    (
        "a phase that nobody knows",
        |c| c.status()["phase"] = json!("Later"),
        "worker2 is held, a person is needed: maint show worker2-a-1",
    ),
    (
        "BackingOut",
        |c| {
            c.status()["phase"] = json!("BackingOut");
            c.status()["message"] = json!("the drain took too long");
        },
        "worker2 is being put back: the drain took too long",
    ),
    (
        "no such node",
        |c| c.node["metadata"]["name"] = json!("worker3"),
        "there is no node worker2: is kured's --node-id the node's name?",
    ),
    (
        "the node is unread",
        |c| c.facts = Some(|facts| facts.nodes = failed()),
        "the node could not be read: no answer within 15 s",
    ),
    (
        "the halt is unread",
        |c| c.facts = Some(|facts| facts.config_maps = failed()),
        "ConfigMap maint-control could not be read: no answer within 15 s",
    ),
    (
        "the lock is unread",
        |c| c.facts = Some(|facts| facts.daemon_sets = failed()),
        "the DaemonSets could not be read: no answer within 15 s",
    ),
    (
        "no kured",
        |c| c.facts = Some(|facts| facts.daemon_sets = good(&[])),
        "no DaemonSet runs kured, so there is no lock to look at",
    ),
];

#[test]
fn each_thing_that_is_not_as_a_go_needs_it_is_a_no_with_its_reason() {
    for (row, change, wanted) in REFUSED {
        let mut case = Case::default();
        change(&mut case);
        let answer = case.answer();
        assert_eq!(answer.word(), Answer::no(wanted).word(), "{row}");
        assert_ne!(answer, Answer::Go, "{row}");
    }
}

#[test]
fn a_go_needs_all_of_it_and_nothing_more() {
    let rows: &[(&str, fn(&mut Case))] = &[
        ("as it is", |_| {}),
        ("ended records beside it", |c| {
            let mut ended = c.record.clone();
            ended["status"]["phase"] = json!("Succeeded");
            c.others = vec![ended];
        }),
        ("another node has the lock", |c| c.lock = Some(ENTRY.into())),
        ("an empty list of holders", |c| {
            c.args = vec!["--concurrency=2"];
            c.lock = Some(r#"{"maxOwners":2,"locks":[]}"#.into());
        }),
        ("a person's run in any mode", |c| {
            c.record["spec"]["trigger"] = json!("manual");
            c.mode = "observe";
        }),
        ("approved", |c| {
            c.mode = "approve";
            c.record["spec"]["approved"] = json!({"by": "anna", "at": ago(60)});
        }),
        ("a halt that is over", |c| {
            let halt = json!({"by": "a", "reason": "b", "since": ago(60), "until": ago(1)}).to_string();
            c.control = json!({"halt": halt});
        }),
        ("a moment before its end", |c| c.status()["intent"]["validUntil"] = json!(ago(-3))),
    ];
    for (row, change) in rows {
        let mut case = Case::default();
        change(&mut case);
        assert_eq!(case.answer(), Answer::Go, "{row}");
    }
}

#[test]
fn alerts_take_a_go_back_and_give_none() {
    let no = Answer::no("a");
    let known = |names: &[&str]| Alerts::Known(names.iter().map(|name| (*name).to_owned()).collect());
    let rows = [
        (Answer::Go, Alerts::NotConfigured, Answer::Go),
        (Answer::Go, known(&[]), Answer::Go),
        (Answer::Go, known(&["A", "B"]), Answer::no("alerts of Prometheus: A, B")),
        (Answer::Go, Alerts::Failed("down".into()), Answer::trouble("down")),
        (no.clone(), known(&[]), no.clone()),
        (no.clone(), Alerts::Failed("down".into()), no),
    ];
    for (answer, alerts, wanted) in rows {
        assert_eq!(after_alerts(answer, &alerts), wanted, "{alerts:?}");
    }
}
