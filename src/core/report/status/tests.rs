//! Tables of the screen.

use serde_json::{Value, json};

use super::*;
use crate::facts::{ConfigMap, DaemonSet, FailureKind, Source};
use crate::report::testing::{at, record};

/// A node with this spec and these annotations; the manager owns `spec.unschedulable`.
#[allow(clippy::needless_pass_by_value, reason = "a table of tests reads better without references")]
fn node(name: &str, spec: Value, annotations: Value, cordoned_by: Option<&str>) -> Item<Node> {
    let fields: Vec<Value> = cordoned_by
        .iter()
        .map(|manager| json!({"manager": manager, "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}))
        .collect();
    Node::item(&json!({
        "metadata": {"name": name, "annotations": annotations, "managedFields": fields},
        "spec": spec,
        "status": {"nodeInfo": {"bootID": "b1"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }))
}

fn known<T>(value: T) -> Observation<T> {
    Observation::Known { value, at: at("01:30:00") }
}

fn failed<T>(detail: &str) -> Observation<T> {
    Observation::Failed { kind: FailureKind::Forbidden, detail: detail.into(), at: at("01:30:00") }
}

fn lease(holder: &str, renewed: &str) -> Observation<Lease> {
    let document = json!({
        "metadata": {"name": "maint", "namespace": "maint"},
        "spec": {"holderIdentity": holder, "renewTime": format!("2026-11-30T{renewed}.000000Z")},
    });
    match Lease::item(&document) {
        Item::Good(lease) => known(lease),
        Item::Malformed(bad) => panic!("{bad}"),
    }
}

fn control(halt: &str) -> Listed<ConfigMap> {
    known(vec![ConfigMap::item(&json!({
        "metadata": {"name": "maint-control", "namespace": "maint"}, "data": {"halt": halt},
    }))])
}

struct World {
    nodes: Listed<Node>,
    config_maps: Listed<ConfigMap>,
    daemon_sets: Listed<DaemonSet>,
    maintenances: Listed<crate::facts::Maintenance>,
    settings: Option<&'static str>,
    lease: Observation<Lease>,
    records: Observation<Vec<Maintenance>>,
    odd_records: Vec<String>,
}

impl World {
    fn healthy() -> Self {
        Self {
            nodes: known(vec![node("worker1", json!({}), json!({}), None)]),
            config_maps: known(vec![]),
            daemon_sets: known(vec![]),
            maintenances: known(vec![]),
            settings: None,
            lease: lease("maint-0", "01:29:50"),
            records: known(vec![]),
            odd_records: Vec::new(),
        }
    }

    fn report(&self) -> StatusReport {
        let facts = Facts {
            nodes: self.nodes.clone(),
            config_maps: self.config_maps.clone(),
            daemon_sets: self.daemon_sets.clone(),
            maintenances: self.maintenances.clone(),
            ..Facts::default()
        };
        let settings = Settings::parse(self.settings.unwrap_or_default(), "f").expect("settings");
        let input = StatusInput {
            source: "context k3s",
            settings: &settings,
            configured: self.settings.is_some(),
            facts: &facts,
            lease: &self.lease,
            records: &self.records,
            odd_records: &self.odd_records,
        };
        StatusReport::new(&input, at("01:30:00"))
    }
}

const HALT: &str = r#"{"by":"anna","reason":"disk","since":"2026-11-30T01:00:00Z"}"#;

#[test]
fn the_first_line_and_the_verdict() {
    let world = World::healthy;
    let with = |records: Vec<Maintenance>| World { records: known(records), ..world() };
    let over = r#"{"by":"a","reason":"r","since":"2026-11-30T01:00:00Z","until":"2026-11-30T01:30:00Z"}"#;
    let fine = StatusVerdict::Fine;
    let unknown = StatusVerdict::Unknown;
    let rows = [
        ("idle", world(), fine, "√ IDLE: no run, no wish"),
        ("a wish", with(vec![record("Pending", |_| {})]), fine, "√ WAITING: worker2 to be maintained"),
        ("at work", with(vec![record("Draining", |_| {})]), fine, "√ AT WORK on worker2"),
        (
            "held",
            with(vec![record("Held", |_| {})]),
            StatusVerdict::Held,
            "× HELD worker2: a person is needed, nothing else starts",
        ),
        (
            "held and unread: the person comes first",
            World { nodes: failed("no"), ..with(vec![record("Held", |_| {})]) },
            StatusVerdict::Held,
            "× HELD worker2: a person is needed, nothing else starts",
        ),
        ("halted", World { config_maps: control(HALT), ..world() }, fine, "‼ HALTED by anna: disk"),
        ("a halt that is over", World { config_maps: control(over), ..world() }, fine, "√ IDLE: no run, no wish"),
        (
            "an unreadable halt",
            World { config_maps: control("yes"), ..world() },
            unknown,
            "? UNKNOWN: parts could not be read",
        ),
        ("nodes forbidden", World { nodes: failed("n"), ..world() }, unknown, "? UNKNOWN: parts could not be read"),
        ("records forbidden", World { records: failed("n"), ..world() }, unknown, "? UNKNOWN: parts could not be read"),
        ("lease forbidden", World { lease: failed("n"), ..world() }, unknown, "? UNKNOWN: parts could not be read"),
        (
            "a malformed node",
            World { nodes: known(vec![Node::item(&json!({"metadata": {"name": "a"}}))]), ..world() },
            unknown,
            "? UNKNOWN: parts could not be read",
        ),
        (
            "a record that cannot be understood",
            World { odd_records: vec!["r".into()], ..world() },
            unknown,
            "? UNKNOWN: parts could not be read",
        ),
        (
            "no lease",
            World { lease: Observation::Absent { at: at("01:30:00") }, ..world() },
            fine,
            "‼ NO LEADER: nothing starts or goes on",
        ),
        ("released", World { lease: lease("", "01:29:50"), ..world() }, fine, "‼ NO LEADER: nothing starts or goes on"),
        ("just alive", World { lease: lease("m", "01:29:30"), ..world() }, fine, "√ IDLE: no run, no wish"),
        (
            "just dead",
            World { lease: lease("m", "01:29:29"), ..world() },
            fine,
            "‼ NO LEADER: nothing starts or goes on",
        ),
    ];
    for (row, world, verdict, line) in rows {
        let report = world.report();
        assert_eq!(report.verdict, verdict, "{row}");
        assert_eq!(status(&report, Paint::PLAIN).lines().next(), Some(line), "{row}");
    }
}

#[test]
fn who_cordoned_who_holds_what_is_proven() {
    let owner = r#"{"maintenance":"u-1","term":3}"#;
    let gone = r#"{"maintenance":"u-9","term":3}"#;
    let cordoned = json!({"unschedulable": true});
    let rows: Vec<(&str, Item<Node>, [&str; 3])> = vec![
        ("free", node("n", json!({}), json!({}), None), ["-", "-", "never"]),
        (
            "ours",
            node("n", cordoned.clone(), json!({"maint.dev/owner": owner}), Some("maint")),
            ["worker2-x7k2m", "-", "never"],
        ),
        (
            "of a run that is over",
            node("n", cordoned.clone(), json!({"maint.dev/owner": gone}), Some("maint")),
            ["maint, for a run that is over (u-9)", "-", "never"],
        ),
        (
            "taken over",
            node("n", cordoned.clone(), json!({"maint.dev/owner": owner}), Some("kubectl-cordon")),
            ["kubectl-cordon", "-", "never"],
        ),
        ("nobody to name", node("n", cordoned, json!({}), None), ["somebody", "-", "never"]),
        (
            "on hold",
            node("n", json!({}), json!({"maint.dev/hold": r#"{"by":"anna","reason":"disk"}"#}), None),
            ["-", "anna: disk", "never"],
        ),
        (
            "an odd hold",
            node("n", json!({}), json!({"maint.dev/hold": "true"}), None),
            ["-", "unreadable: it counts as on hold", "never"],
        ),
        (
            "proven",
            node("n", json!({}), json!({"maint.dev/proven": r#"{"bootID":"b1","at":"2026-11-30T01:00:00Z"}"#}), None),
            ["-", "-", "yes"],
        ),
        (
            "booted since",
            node("n", json!({}), json!({"maint.dev/proven": r#"{"bootID":"b0","at":"2026-11-30T01:00:00Z"}"#}), None),
            ["-", "-", "no"],
        ),
        ("odd", node("n", json!({}), json!({"maint.dev/proven": "b1"}), None), ["-", "-", "unreadable"]),
    ];
    for (row, node, wanted) in rows {
        let records = known(vec![record("Draining", |_| {})]);
        let report = World { nodes: known(vec![node]), records, ..World::healthy() }.report();
        let seen = &report.nodes[0];
        let shown = [seen.cordoned_by.as_deref().unwrap_or("-"), seen.hold.as_deref().unwrap_or("-"), seen.proven];
        assert_eq!(shown, wanted, "{row}");
    }
}

#[test]
fn a_busy_screen() {
    let held = record("Held", |status| status.message = "red".into());
    let mut wish = record("Pending", |status| {
        status.message = "waits: exclusive".into();
        status.deadline = Some("2026-11-30T01:40:00Z".into());
    });
    wish.metadata.name = Some("a-wish".into());
    wish.spec.node_name = "worker1".into();
    let world =
        World { records: known(vec![wish, held]), config_maps: control(HALT), lease: failed("no"), ..World::healthy() };
    let wanted = "\
× HELD worker2: a person is needed, nothing else starts
  context k3s, 2026-11-30T01:30:00Z

‼ halted by anna since 00:30:00 (01:00:00Z), until `maint unhalt`: disk

? leader: could not be read
– windows and mode: not known here, the leader has its own configuration: --config FILE, or kubectl -n maint exec deploy/maint -- /maint status

  NAME     READY  CORDONED-BY  HOLD  PROVEN
  worker1  yes    -            -     never

  RUN            NODE     PHASE    SINCE                 DEADLINE   MESSAGE
  worker2-x7k2m  worker2  Held     00:10:00 (01:20:00Z)  -          red
  a-wish         worker1  Pending  00:10:00 (01:20:00Z)  01:40:00Z  waits: exclusive

  maint show worker2-x7k2m

could not be read
  ? leader (forbidden): no
";
    assert_eq!(status(&world.report(), Paint::PLAIN), wanted);
}

/// kured with this lock.
fn kured(lock: Option<&str>) -> Listed<DaemonSet> {
    let annotations = lock.map_or(json!({}), |lock| json!({"weave.works/kured-node-lock": lock}));
    known(vec![DaemonSet::item(&json!({
        "metadata": {"name": "kured", "namespace": "kube-system", "annotations": annotations},
        "spec": {"template": {"spec": {"containers": [{"image": "ghcr.io/kubereboot/kured:1.23.0"}]}}},
        "status": {"desiredNumberScheduled": 1, "numberReady": 1},
    }))])
}

#[test]
fn the_screen_tells_who_holds_kureds_lock() {
    let entry = |name: &str| format!(r#"{{"nodeID":"{name}","created":"2026-11-30T01:00:00Z","TTL":0}}"#);
    let ours = r#"{"nodeID":"maint:worker2","created":"2026-11-30T01:20:00Z","maint":{"maintenance":"u-1"}}"#;
    let held = |lock: &str| kured(Some(lock));
    let rows = [
        ("not installed", known(vec![]), None),
        ("free", kured(None), Some("√ kured's lock: free (DaemonSet kube-system/kured)\n")),
        (
            "a node",
            held(&entry("worker1")),
            Some("– kured's lock: held by worker1 for 00:30:00 (01:00:00Z) (DaemonSet kube-system/kured)\n"),
        ),
        (
            "a ghost",
            held(&entry("old")),
            Some(
                "‼ kured's lock: held by old, a node that is gone for 00:30:00 (01:00:00Z) (DaemonSet kube-system/kured); look: maint lock show\n",
            ),
        ),
        ("a run", held(ours), Some("– kured's lock: held by maint, run worker2-x7k2m (Draining) for 00:10:00")),
        (
            "garbage",
            held("anna"),
            Some("× kured's lock: STUCK on DaemonSet kube-system/kured: kured cannot read it: no node gets the lock"),
        ),
    ];
    let lean = crate::facts::Maintenance::item(&json!({
        "metadata": {"name": "worker2-x7k2m", "uid": "u-1"}, "spec": {"nodeName": "worker2"}, "status": {"phase": "Draining"},
    }));
    for (row, daemon_sets, wanted) in rows {
        let world = World { daemon_sets, maintenances: known(vec![lean.clone()]), ..World::healthy() };
        let shown = status(&world.report(), Paint::PLAIN);
        assert_eq!(shown.contains("kured's lock"), wanted.is_some(), "{row}: {shown}");
        assert!(shown.contains(wanted.unwrap_or_default()), "{row}: {shown}");
    }
    let unread = World { daemon_sets: failed("no"), ..World::healthy() }.report();
    assert_eq!(unread.verdict, StatusVerdict::Unknown);
    assert_eq!(unread.unread, ["kured's lock: the DaemonSets could not be read: no"]);
}

#[test]
fn the_screen_tells_windows_and_mode_only_of_a_configuration_that_was_given() {
    const NIGHT: &str =
        "windows = [{ name = \"night\", days = [\"mon\"], start = \"01:00\", duration = \"2h\", zone = \"UTC\" }]";
    let auto: &str = "mode = \"auto\"\nwindows = [{ name = \"night\", days = [\"mon\"], start = \"01:00\", duration = \"2h\", zone = \"UTC\" }]";
    let rows = [
        (
            "none",
            None,
            "– windows and mode: not known here, the leader has its own configuration: --config FILE, or kubectl -n maint exec",
        ),
        ("observe", Some(NIGHT), "‼ mode observe: nothing starts unattended, and kured hears no; windows OPEN: night"),
        ("auto", Some(auto), "√ mode auto; windows OPEN: night, for starts until "),
        (
            "the defaults",
            Some(""),
            "‼ mode observe: nothing starts unattended, and kured hears no; windows NEVER: no window",
        ),
    ];
    for (row, settings, wanted) in rows {
        let report = World { settings, ..World::healthy() }.report();
        let shown = status(&report, Paint::PLAIN);
        assert!(shown.contains(wanted), "{row}: {shown}");
        assert_eq!(report.windows.is_some(), settings.is_some(), "{row}");
    }
}

#[test]
fn wishes_are_shown_in_their_line() {
    let wish = |name: &str, created: &str, trigger: &str, blocked: bool| {
        let mut record = record("Pending", |status| {
            status.blocked_since = blocked.then(|| "2026-11-30T01:00:00Z".to_owned());
        });
        record.metadata.name = Some(name.into());
        record.metadata.creation_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(created)));
        record.spec.trigger = trigger.into();
        record
    };
    let records = vec![
        wish("a", "01:10:00", "unattended", false),
        wish("b", "01:05:00", "unattended", true),
        wish("c", "01:00:00", "unattended", false),
        wish("m", "01:00:00", "manual", false),
    ];
    let report = World { records: known(records), ..World::healthy() }.report();
    let line: Vec<_> = report.runs.iter().map(|run| (run.name.as_str(), run.place, run.passed_over)).collect();
    // A person's wish stands in no line.
    assert_eq!(line, [("m", None, false), ("c", Some(1), false), ("a", Some(2), false), ("b", None, true)]);
    let shown = status(&report, Paint::PLAIN);
    for wanted in ["Pending, 1 of 2 in line", "Pending, 2 of 2 in line", "Pending, passed over"] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
}
