//! Tables of the screen.

use serde_json::{Value, json};

use super::*;
use crate::facts::{FailureKind, Source};
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
    lease: Observation<Lease>,
    records: Observation<Vec<Maintenance>>,
    odd_records: Vec<String>,
}

impl World {
    fn healthy() -> Self {
        Self {
            nodes: known(vec![node("worker1", json!({}), json!({}), None)]),
            config_maps: known(vec![]),
            lease: lease("maint-0", "01:29:50"),
            records: known(vec![]),
            odd_records: Vec::new(),
        }
    }

    fn report(&self) -> StatusReport {
        let input = StatusInput {
            source: "context k3s",
            namespace: "maint",
            lease_seconds: 30,
            nodes: &self.nodes,
            config_maps: &self.config_maps,
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
