//! Previews of a cluster of three nodes, healthy but for what each row says.

use serde_json::{Value, json};

use super::*;
use crate::api::Reason;
use crate::config::Settings;
use crate::drain::Verdict as OfBudget;
use crate::facts::FailureKind;
use crate::gates::testing::{Case, World, now};

/// Open on Mondays from 00:30 to 02:30 UTC; `now` is a Monday, 01:00.
const NIGHT: &str = "mode = \"auto\"\nwindows = [{ name = \"night\", days = [\"mon\"], start = \"00:30\", \
                     duration = \"2h\", zone = \"UTC\" }]\n";

fn settings(text: &str) -> Settings {
    Settings::parse(text, "f").unwrap_or_else(|errors| panic!("{errors}"))
}

fn pod(name: &str, owner: Value) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "labels": {"app": "web"},
            "ownerReferences": owner},
        "spec": {"nodeName": "worker2", "terminationGracePeriodSeconds": 30},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn web() -> Value {
    pod(
        "web-1",
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-web", "controller": true}]),
    )
}

fn budget(desired: i64, healthy: i64, expected: i64) -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "uid-budget", "generation": 1},
        "spec": {"minAvailable": desired, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"observedGeneration": 1, "disruptionsAllowed": (healthy - desired).max(0),
            "currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": expected},
    })
}

fn record(node: &str, trigger: &str, phase: &str, created: &str) -> Value {
    json!({
        "metadata": {"name": format!("{node}-{}", created.replace(':', "")), "uid": format!("uid-{node}"),
            "creationTimestamp": format!("2026-11-30T{created}Z")},
        "spec": {"nodeName": node, "scope": "reboot", "action": "pod", "trigger": trigger},
        "status": {"phase": phase},
    })
}

/// The healthy world with one pod of a Deployment on `worker2`, bent.
fn world(bend: impl FnOnce(&mut World)) -> World {
    let mut world = World::healthy().with_kured();
    world.of(SourceId::TargetPods).push(web());
    bend(&mut world);
    world
}

fn input<'a>(case: &'a Case, settings: &'a Settings) -> Input<'a> {
    Input { facts: &case.facts, settings, leader: None, scope: None, manual: false, now: now(), at: None }
}

fn of(settings: &Settings, bend: impl FnOnce(&mut World)) -> Preview {
    let case = world(bend).case();
    node(&input(&case, settings), "worker2").expect("a scope that there is")
}

fn stopping(preview: &Preview) -> Vec<Reason> {
    preview.findings.iter().filter(|finding| finding.stops()).map(|finding| finding.reason).collect()
}

#[test]
fn a_free_node_begins_now_in_all_its_steps() {
    let preview = of(&settings(NIGHT), |_| {});
    assert_eq!((preview.verdict, stopping(&preview)), (Verdict::Clear, vec![]));
    assert_eq!((preview.begins.when, preview.begins.by_itself), (Begin::Now, true));
    assert_eq!(preview.begins.opening.as_deref(), Some("night-2026-11-30"));
    assert_eq!(preview.acts.action, Some(Action::Kured));
    let phases: Vec<Phase> = preview.steps.iter().map(|step| step.phase).collect();
    let wanted = [
        Phase::Cordoning,
        Phase::Draining,
        Phase::Acting,
        Phase::Returning,
        Phase::Verifying,
        Phase::Uncordoning,
        Phase::Settling,
    ];
    assert_eq!(phases, wanted);
}

#[test]
fn each_outcome_has_its_verdict_and_its_reason() {
    let settings = settings(NIGHT);
    let bare = |world: &mut World| world.of(SourceId::TargetPods).push(pod("bare", json!([])));
    let budgets = |budget: Value| move |world: &mut World| world.of(SourceId::PodDisruptionBudgets).push(budget);
    let rows: Vec<(&str, Preview, Verdict, Vec<Reason>)> = vec![
        (
            "held by a budget now: the drain waits for it",
            of(&settings, budgets(budget(2, 2, 3))),
            Verdict::Clear,
            vec![],
        ),
        (
            "never drains: a budget for ever",
            of(&settings, budgets(budget(1, 1, 1))),
            Verdict::Blocked,
            vec![Reason::DisruptionBudgetPermanent],
        ),
        ("never drains: a bare pod", of(&settings, bare), Verdict::Blocked, vec![Reason::PodWithoutController]),
        (
            "another node is away",
            of(&settings, |world| {
                world.named(SourceId::Nodes, "worker1")["spec"]["unschedulable"] = json!(true);
            }),
            Verdict::Blocked,
            vec![Reason::TooManyUnavailable],
        ),
        (
            "at work already",
            of(&settings, |world| {
                world.of(SourceId::Maintenances).push(record("worker2", "manual", "Draining", "01:00:00"));
            }),
            Verdict::Blocked,
            vec![],
        ),
    ];
    for (row, preview, verdict, reasons) in rows {
        assert_eq!(preview.verdict, verdict, "{row}: {:?}", stopping(&preview));
        assert_eq!(stopping(&preview), reasons, "{row}");
    }
}

#[test]
fn a_budget_that_allows_none_now_is_told_and_has_no_estimate() {
    let preview = of(&settings(NIGHT), |world| world.of(SourceId::PodDisruptionBudgets).push(budget(2, 2, 3)));
    let Some(Drain::Planned(plan)) = preview.drain else { panic!("a drain is planned") };
    assert_eq!(plan.budgets_that_are(OfBudget::Now).count(), 1);
    assert_eq!(plan.estimate_seconds, None);
}

/// Makes a source fail.
type Fail = fn(&mut Facts);

#[test]
fn what_could_not_be_read_is_unknown_and_never_empty() {
    fn failed<T>() -> Observation<T> {
        Observation::Failed { kind: FailureKind::Partial, detail: "no file in the dump".to_owned(), at: now() }
    }
    let settings = settings(NIGHT);
    let rows: [(&str, Fail); 5] = [
        ("pods", |facts| facts.target_pods = failed()),
        ("budgets", |facts| facts.pod_disruption_budgets = failed()),
        ("daemon sets", |facts| facts.daemon_sets = failed()),
        ("records", |facts| facts.maintenances = failed()),
        ("nodes", |facts| facts.nodes = failed()),
    ];
    for (row, fail) in rows {
        let mut case = world(|_| {}).case();
        fail(&mut case.facts);
        let preview = node(&input(&case, &settings), "worker2").expect("a scope");
        assert_eq!(preview.verdict, Verdict::Unknown, "{row}: {:?}", stopping(&preview));
    }
    let mut case = world(|_| {}).case();
    case.facts.replica_sets = failed();
    let preview = node(&input(&case, &settings), "worker2").expect("a scope");
    assert_eq!(preview.verdict, Verdict::Clear, "a warning that cannot be given stops nothing");
    assert_eq!(preview.unread, ["which ReplicaSets have one replica, or all of them here: no file in the dump"]);
}

#[test]
fn a_switched_off_gate_does_not_make_a_drain_end() {
    let off = settings(&format!("{NIGHT}[gates]\nworkloads = \"off\"\n"));
    let preview = of(&off, |world| world.of(SourceId::TargetPods).push(pod("bare", json!([]))));
    assert_eq!((preview.verdict, stopping(&preview)), (Verdict::Blocked, vec![]));
}

#[test]
fn another_time_moves_what_goes_by_the_clock_and_nothing_else() {
    let settings = settings(NIGHT);
    let halt = |until: &str| {
        json!({"metadata": {"name": "maint-control", "namespace": "maint"},
            "data": {"halt": json!({"by": "anna", "reason": "x", "since": "2026-11-29T00:00:00Z", "until": until}).to_string()}})
    };
    let sick = |world: &mut World| {
        world.named(SourceId::Nodes, "worker1")["spec"]["unschedulable"] = json!(true);
    };
    let at = |bend: &dyn Fn(&mut World), time: &str| {
        let case = world(|world| bend(world)).case();
        let input = Input { at: Some(time.parse().expect("a time")), ..input(&case, &settings) };
        node(&input, "worker2").expect("a scope")
    };
    let halted = |world: &mut World| world.of(SourceId::ConfigMaps).push(halt("2026-12-07T00:45:00Z"));
    let rows: Vec<(&str, Preview, Verdict, Vec<Reason>, Begin)> = vec![
        ("the next window", at(&|_| {}, "2026-12-07T00:30:00Z"), Verdict::Clear, vec![], Begin::Now),
        (
            "between them",
            at(&|_| {}, "2026-12-02T12:00:00Z"),
            Verdict::Blocked,
            vec![Reason::OutsideWindow],
            Begin::Window,
        ),
        (
            "too late in it",
            at(&|_| {}, "2026-12-07T02:10:00Z"),
            Verdict::Blocked,
            vec![Reason::WindowTooShort],
            Begin::Window,
        ),
        (
            "the halt is not over",
            at(&halted, "2026-12-07T00:44:59Z"),
            Verdict::Blocked,
            vec![Reason::Halted],
            Begin::Now,
        ),
        ("the halt is over", at(&halted, "2026-12-07T00:45:00Z"), Verdict::Clear, vec![], Begin::Now),
        (
            "a sick node stays sick",
            at(&sick, "2026-12-07T00:30:00Z"),
            Verdict::Blocked,
            vec![Reason::TooManyUnavailable],
            Begin::Now,
        ),
    ];
    for (row, preview, verdict, reasons, begin) in rows {
        assert_eq!((preview.verdict, stopping(&preview)), (verdict, reasons), "{row}");
        assert_eq!(preview.begins.when, begin, "{row}: {}", preview.begins.message);
        let seen = preview.findings.iter().filter_map(|finding| finding.observed_at).max();
        assert!(seen.is_none_or(|seen| seen <= now()), "{row}: nothing was seen later than now");
    }
}

#[test]
fn when_it_begins_is_said_of_every_trigger_and_mode() {
    let observe = NIGHT.replace("auto", "observe");
    // A file that says so is refused; what is taken on later need not be.
    let short = Settings { expected_duration_seconds: 7201, ..settings(NIGHT) };
    let rows: Vec<(&str, Settings, bool, &str, Begin, bool, &str)> = vec![
        (
            "open",
            settings(NIGHT),
            false,
            "2026-11-30T02:00:00Z",
            Begin::Now,
            true,
            "when the gates agree: window night",
        ),
        (
            "no room left",
            settings(NIGHT),
            false,
            "2026-11-30T02:00:01Z",
            Begin::Window,
            true,
            "not before Mon 2026-12-07 00:30 UTC",
        ),
        ("observe", settings(&observe), false, "2026-11-30T02:00:00Z", Begin::Now, false, "when the gates agree"),
        ("a person", settings(NIGHT), true, "2026-12-01T00:00:00Z", Begin::Now, false, "at once when the gates agree"),
        (
            "no window",
            settings("mode = \"auto\"\n"),
            false,
            "2026-12-01T00:00:00Z",
            Begin::Never,
            false,
            "never by itself: no window",
        ),
        (
            "windows too short",
            short,
            false,
            "2026-11-30T02:00:00Z",
            Begin::Never,
            false,
            "never by itself: no window is as long",
        ),
    ];
    for (row, settings, manual, time, when, by_itself, message) in rows {
        let case = world(|_| {}).case();
        let input = Input { manual, at: Some(time.parse().expect("a time")), ..input(&case, &settings) };
        let begins = node(&input, "worker2").expect("a scope").begins;
        assert_eq!((begins.when, begins.by_itself), (when, by_itself), "{row}: {}", begins.message);
        assert!(begins.message.starts_with(message), "{row}: {}", begins.message);
    }
}

#[test]
fn a_record_that_waits_says_who_acts_and_how() {
    let settings = settings(NIGHT);
    let mut wish = record("worker2", "manual", "Pending", "01:00:00");
    wish["spec"]["scope"] = json!("service-restart");
    wish["spec"]["strategy"] = json!("drain");
    let case = world(|world| world.of(SourceId::Maintenances).push(wish)).case();
    let preview = node(&input(&case, &settings), "worker2").expect("a scope");
    assert_eq!(preview.scope.name, "service-restart");
    assert_eq!((preview.strategy, preview.trigger), (Strategy::Drain, Trigger::Manual));
    assert_eq!(preview.acts.action, Some(Action::Pod));
    assert_eq!(preview.wish.as_deref(), Some("worker2-010000"));
    let other = Input { scope: Some("power-off"), ..input(&case, &settings) };
    let preview = node(&other, "worker2").expect("a scope");
    assert_eq!((preview.wish, preview.trigger), (None, Trigger::Unattended), "another scope is another wish");
}

#[test]
fn kured_is_not_asked_where_another_acts() {
    let not_gated = |world: &mut World| {
        for source in [SourceId::DaemonSets, SourceId::KuredPods] {
            for document in world.of(source) {
                let text = document.to_string().replace("http://maint.maint/kured", "http://elsewhere");
                *document = serde_json::from_str(&text).expect("JSON");
            }
        }
    };
    let rows = [
        ("kured alone", NIGHT.to_owned(), None, Verdict::Blocked),
        (
            "a pod acts",
            format!("{NIGHT}[action.pod]\nenabled = true\nimage = \"i@sha256:0\"\n"),
            Some(Action::Pod),
            Verdict::Clear,
        ),
    ];
    for (row, text, action, verdict) in rows {
        let preview = of(&settings(&text), not_gated);
        assert_eq!((preview.acts.action, preview.verdict), (action, verdict), "{row}: {:?}", stopping(&preview));
    }
}

#[test]
fn wishes_are_taken_in_the_order_in_which_runs_wait() {
    let settings = settings(NIGHT);
    let all: Vec<String> = ["worker1", "worker2", "worker3"].map(str::to_owned).to_vec();
    let names = |records: Vec<Value>, leader: Option<&str>| {
        let case = world(|world| world.of(SourceId::Maintenances).extend(records)).case();
        let found = candidates(&Input { leader, ..input(&case, &settings) }, &all);
        let names: Vec<String> = found.nodes.iter().map(|one| one.node.clone()).collect();
        (found.wished, names.join(" "), found.in_flight.len())
    };
    let wish = |node: &str, trigger: &str, created: &str| record(node, trigger, "Pending", created);
    let three = || {
        vec![
            wish("worker1", "unattended", "01:02:00"),
            wish("worker2", "unattended", "01:01:00"),
            wish("worker3", "unattended", "01:03:00"),
        ]
    };
    let rows = [
        ("none", vec![], None, (false, "worker1 worker2 worker3", 0)),
        ("none, and a leader", vec![], Some("worker1"), (false, "worker2 worker3 worker1", 0)),
        ("the oldest first", three(), None, (true, "worker2 worker1 worker3", 0)),
        ("the leader's node last", three(), Some("worker2"), (true, "worker1 worker3 worker2", 0)),
        (
            "a person waits for nobody",
            [three(), vec![wish("worker4", "manual", "01:09:00")]].concat(),
            None,
            (true, "worker4 worker2 worker1 worker3", 0),
        ),
        (
            "what is at work or over wishes nothing",
            vec![
                record("worker1", "unattended", "Draining", "01:00:00"),
                record("worker2", "unattended", "Succeeded", "01:00:00"),
                wish("worker3", "unattended", "01:03:00"),
            ],
            None,
            (true, "worker3", 1),
        ),
    ];
    for (row, records, leader, (wished, wanted, in_flight)) in rows {
        assert_eq!(names(records, leader), (wished, wanted.to_owned(), in_flight), "{row}");
    }
}

#[test]
fn a_wish_that_is_not_written_down_yet_is_the_youngest() {
    let settings = settings(NIGHT);
    let case = world(|world| {
        world.named(SourceId::Nodes, "worker1")["metadata"]["annotations"] = json!({"maint.dev/reboot-requested": "x"});
        world.of(SourceId::Maintenances).push(record("worker3", "unattended", "Pending", "00:59:00"));
    })
    .case();
    let found = candidates(&input(&case, &settings), &[]);
    let told: Vec<String> = found.nodes.iter().map(|one| one.wish.clone().unwrap_or_default()).collect();
    assert_eq!(told, ["worker3-005900, unattended", "annotated, no record yet"]);
}

#[test]
fn records_that_could_not_be_read_leave_open_who_wishes() {
    let settings = settings(NIGHT);
    let all = ["worker1".to_owned()];
    let mut odd = record("worker2", "unattended", "Pending", "01:00:00");
    odd["spec"]["nodeName"] = json!(7);
    let case = world(|world| world.of(SourceId::Maintenances).push(odd)).case();
    let found = candidates(&input(&case, &settings), &all);
    assert!(found.unknown.is_some_and(|why| why.contains("could not be understood")));
    let mut case = world(|_| {}).case();
    case.facts.maintenances = Observation::NotAsked;
    let found = candidates(&input(&case, &settings), &all);
    assert_eq!(found.unknown.as_deref(), Some("the records were not asked for"));
    case.facts.maintenances = Observation::Absent { at: now() };
    assert_eq!(candidates(&input(&case, &settings), &all).unknown, None, "no such kind: no records");
}
