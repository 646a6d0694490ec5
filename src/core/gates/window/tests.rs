//! The table of gate `window`.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::super::HardStop;
use super::super::testing::{Case, NODES, World, known, node, node_lease, now};
use super::*;
use crate::api::{Status, Trigger};
use crate::config::{Settings, Window};

/// 2026-11-30T01:00Z is a Monday, 02:00 in Berlin.
const OPEN: &str = r#"{ name = "nightly", days = ["sun"], start = "23:30", duration = "4h", zone = "Europe/Berlin" }"#;
const OVER: &str = r#"{ name = "nightly", days = ["sun"], start = "23:30", duration = "2h", zone = "Europe/Berlin" }"#;
const SHORT: &str = r#"{ name = "nightly", days = ["mon"], start = "00:30", end = "01:29", zone = "UTC" }"#;
const JUST: &str = r#"{ name = "nightly", days = ["mon"], start = "00:30", end = "01:30", zone = "UTC" }"#;
const NONE: &str = "";

fn windows(text: &str) -> Vec<Window> {
    Settings::parse(&format!("windows = [{text}]"), "f").expect("settings").windows
}

fn case(text: &str) -> Case {
    let mut case = Case::healthy();
    case.settings.windows = windows(text);
    case
}

/// A run that began in an opening whose hard stop is so many seconds away.
fn run(case: Case, stop: Option<i64>) -> Case {
    let mut case = Case { moment: Moment::Cordoned, ..case.with_run() };
    if let (Some(run), Some(stop)) = (&mut case.run, stop) {
        let at = Some(now() + SignedDuration::from_secs(stop));
        run.hard_stop = Some(HardStop { opening: "nightly-2026-11-29".to_owned(), at });
    }
    case
}

fn manual(case: Case) -> Case {
    Case { trigger: Trigger::Manual, ..case }
}

fn observe(mut case: Case) -> Case {
    case.settings.mode = Mode::Observe;
    case
}

/// The nodes whose runs began in these openings.
fn begun(mut case: Case, runs: &[(&str, &str)]) -> Case {
    let record = |(index, (node, opening)): (usize, &(&str, &str))| {
        json!({
            "metadata": {"name": format!("r{index}")},
            "spec": {"nodeName": node},
            "status": {"phase": "Succeeded", "window": {"opening": opening, "endsAt": "2026-11-30T02:30:00Z"}},
        })
    };
    let records: Vec<Value> = runs.iter().enumerate().map(record).collect();
    case.facts.maintenances = known(&records);
    case
}

/// The same, and one of them says this besides.
fn told_of(mut case: Case, node: &str, opening: &str, status: &Value) -> Case {
    let mut record = json!({
        "metadata": {"name": "told"},
        "spec": {"nodeName": node},
        "status": {"phase": "Succeeded", "window": {"opening": opening, "endsAt": "2026-11-30T02:30:00Z"}},
    });
    for (key, value) in status.as_object().into_iter().flatten() {
        record["status"][key] = value.clone();
    }
    case.facts.maintenances = known(&[record]);
    limit(case, 3)
}

/// Leases of the three nodes, renewed so many seconds ago.
fn renewed(mut case: Case, ages: [i64; 3]) -> Case {
    let leases: Vec<Value> = NODES.iter().zip(ages).map(|(name, age)| node_lease(name, age)).collect();
    case.facts.leases = known(&leases);
    case
}

fn not_ready(mut case: Case, names: &[&str]) -> Case {
    let nodes = NODES.map(|name| {
        let mut node = node(name);
        if names.contains(&name) {
            node["status"]["conditions"][0]["status"] = json!("Unknown");
        }
        node
    });
    case.facts.nodes = known(&nodes);
    case
}

fn limit(mut case: Case, nodes: u32) -> Case {
    case.settings.max_nodes_per_window = nodes;
    case
}

#[test]
fn answers() {
    use Reason::{
        ClockSkew, NoWindowConfigured, OutsideWindow, Passed, WindowFull, WindowStopped, WindowTooShort, WindowTried,
    };
    use Status::{Block, NotApplicable, Pass, Unknown, Warn};
    let here = "nightly-2026-11-29";
    let rows: Vec<(&str, Case, Status, Reason, &str)> = vec![
        (
            "open",
            case(OPEN),
            Pass,
            Passed,
            "window nightly is open since Sun 2026-11-29 23:30 CET (2026-11-29T22:30Z), for starts until Mon 2026-11-30 03:00 CET (2026-11-30T02:00Z), hard stop Mon 2026-11-30 03:30 CET (2026-11-30T02:30Z)",
        ),
        (
            "closed",
            case(OVER),
            Block,
            OutsideWindow,
            "no window is open since nightly closed Mon 2026-11-30 01:30 CET (2026-11-30T00:30Z); nightly opens Sun 2026-12-06 23:30 CET (2026-12-06T22:30Z)",
        ),
        ("closed in observe", observe(case(OVER)), Block, OutsideWindow, "no window is open"),
        (
            "closed, by hand",
            manual(case(OVER)),
            NotApplicable,
            Passed,
            "a person asks: windows bind unattended runs only",
        ),
        (
            "room to the second",
            case(JUST),
            Pass,
            Passed,
            "window nightly is open since Mon 2026-11-30 00:30 UTC, for starts until Mon 2026-11-30 01:00 UTC",
        ),
        (
            "too short",
            case(SHORT),
            Block,
            WindowTooShort,
            "window nightly closes Mon 2026-11-30 01:29 UTC, in 1740 s, and a run is expected to take 1800 s: the latest start was Mon 2026-11-30 00:59 UTC",
        ),
        ("no window", case(NONE), Block, NoWindowConfigured, "no window is configured"),
        (
            "no window in a run, observe",
            observe(case(NONE).with_run()),
            Block,
            NoWindowConfigured,
            "no window is configured",
        ),
        ("no window, a look in observe", observe(case(NONE)), Warn, NoWindowConfigured, "no window is configured"),
        ("no window, by hand", manual(case(NONE)), NotApplicable, Passed, "a person asks"),
        // How many were begun.
        (
            "one was begun",
            begun(case(OPEN), &[("worker1", here)]),
            Block,
            WindowFull,
            "1 of 1 nodes were begun in nightly-2026-11-29: worker1",
        ),
        (
            "in another opening",
            begun(case(OPEN), &[("worker1", "nightly-2026-11-22")]),
            Pass,
            Passed,
            "window nightly is open",
        ),
        ("two may", limit(begun(case(OPEN), &[("worker1", here)]), 2), Pass, Passed, "window nightly is open"),
        ("one twice", limit(begun(case(OPEN), &[("worker1", here), ("worker1", here)]), 2), Pass, Passed, "window"),
        (
            "two did",
            limit(begun(case(OPEN), &[("worker3", here), ("worker1", here)]), 2),
            Block,
            WindowFull,
            "2 of 2 nodes were begun in nightly-2026-11-29: worker1, worker3",
        ),
        // What came of them.
        (
            "one failed",
            told_of(case(OPEN), "worker1", here, &json!({"phase": "Failed", "outcome": "DrainDeadline"})),
            Block,
            WindowStopped,
            "Maintenance told of nightly-2026-11-29 on worker1 is or was Failed (DrainDeadline): nobody else starts in this window",
        ),
        (
            "one is held",
            told_of(
                case(OPEN),
                "worker1",
                here,
                &json!({"phase": "Held", "outcome": "NodeNotBack", "heldAt": "2026-11-30T00:50:00Z"}),
            ),
            Block,
            WindowStopped,
            "Maintenance told of nightly-2026-11-29 on worker1 is or was Held (NodeNotBack)",
        ),
        (
            "one was held and went on by itself",
            told_of(case(OPEN), "worker1", here, &json!({"heldAt": "2026-11-30T00:50:00Z"})),
            Block,
            WindowStopped,
            "Maintenance told of nightly-2026-11-29 on worker1 is or was held for a while",
        ),
        (
            "one failed in another window",
            told_of(case(OPEN), "worker1", "nightly-2026-11-22", &json!({"phase": "Failed"})),
            Pass,
            Passed,
            "window nightly is open",
        ),
        (
            "this node was tried and called off",
            told_of(case(OPEN), "worker2", here, &json!({"phase": "Cancelled", "outcome": "Cancelled"})),
            Block,
            WindowTried,
            "Maintenance told of nightly-2026-11-29 ended without success (Cancelled): the next try is the next window",
        ),
        (
            "another node was called off",
            told_of(case(OPEN), "worker1", here, &json!({"phase": "Cancelled", "outcome": "Cancelled"})),
            Pass,
            Passed,
            "window nightly is open",
        ),
        // The hard stop.
        (
            "before the hard stop",
            run(case(OPEN), Some(1)),
            Pass,
            Passed,
            "the hard stop of nightly-2026-11-29 is Mon 2026-11-30 02:00:01 CET",
        ),
        (
            "at the hard stop",
            run(case(OPEN), Some(0)),
            Block,
            OutsideWindow,
            "the window nightly-2026-11-29 closed Mon 2026-11-30 02:00 CET (2026-11-30T01:00Z)",
        ),
        (
            "the frozen one counts, not another opening",
            run(case(OPEN), Some(-86_400)),
            Block,
            OutsideWindow,
            "the window nightly-2026-11-29 closed Sun",
        ),
        (
            "nor a configuration without windows",
            run(case(NONE), Some(60)),
            Pass,
            Passed,
            "the hard stop of nightly-2026-11-29 is Mon 2026-11-30 01:01 UTC",
        ),
        (
            "no room is asked, nor others",
            run(begun(case(SHORT), &[("worker1", "nightly-2026-11-30")]), Some(60)),
            Pass,
            Passed,
            "the hard stop",
        ),
        ("lost, and open", run(case(SHORT), None), Pass, Passed, "window nightly is open"),
        ("lost, and closed", run(case(OVER), None), Block, OutsideWindow, "no window is open"),
        ("a person's run", manual(run(case(OVER), None)), NotApplicable, Passed, "a person asks"),
        // Clocks.
        ("healthy Leases", renewed(case(OPEN), [0, 40, 100]), Pass, Passed, "window"),
        ("some ahead, within a minute", renewed(case(OPEN), [-60, -60, -60]), Pass, Passed, "window"),
        ("one ahead is that node's", renewed(case(OPEN), [-61, 0, 0]), Pass, Passed, "window"),
        (
            "most ahead",
            renewed(case(OPEN), [-61, -300, 0]),
            Unknown,
            ClockSkew,
            "our clock is behind: 2 of 3 Ready nodes renewed their Lease in the future, up to 300 s",
        ),
        (
            "all old, and the nodes are Ready",
            renewed(case(OPEN), [101, 200, 300]),
            Unknown,
            ClockSkew,
            "our clock is ahead: the newest Lease of a Ready node is 101 s old",
        ),
        ("one fresh clears it", renewed(case(OPEN), [100, 200, 300]), Pass, Passed, "window"),
        (
            "a node that is down says nothing",
            not_ready(renewed(case(OPEN), [0, 400, 400]), &["worker2", "worker3"]),
            Pass,
            Passed,
            "window",
        ),
        (
            "nobody to compare with",
            not_ready(case(OPEN), &NODES),
            Unknown,
            ClockSkew,
            "whether our clock is right cannot be told: no Ready node renews a Lease",
        ),
        (
            "outside wins, and the clock is told",
            renewed(case(OVER), [200, 200, 200]),
            Block,
            OutsideWindow,
            "no window is open",
        ),
        (
            "at hand-over too",
            Case { moment: Moment::Handover, ..run(renewed(case(OPEN), [200, 200, 200]), Some(60)) },
            Unknown,
            ClockSkew,
            "our clock is ahead",
        ),
        ("a person's clock", manual(renewed(case(OPEN), [200, 200, 200])), NotApplicable, Passed, "a person asks"),
    ];
    for (name, case, status, reason, says) in rows {
        let finding = case.ask(&GATE);
        assert_eq!((finding.status, finding.reason), (status, reason), "{name}: {}", finding.message);
        assert!(finding.message.starts_with(says), "{name}: {}", finding.message);
    }
}

#[test]
fn a_hard_stop_that_cannot_be_read_has_passed() {
    let mut case = run(case(OPEN), Some(60));
    case.run.as_mut().and_then(|run| run.hard_stop.as_mut()).expect("a stop").at = None;
    let finding = case.ask(&GATE);
    assert_eq!((finding.status, finding.reason), (Status::Block, Reason::OutsideWindow));
    assert_eq!(finding.message, "when the window nightly-2026-11-29 closes cannot be read from the record");
}

#[test]
fn since_is_when_the_window_closed() {
    let finding = case(OVER).ask(&GATE);
    assert_eq!(finding.since, "2026-11-30T00:30:00Z".parse::<Timestamp>().ok());
}

#[test]
fn a_window_that_is_full_does_not_empty_itself_because_a_record_is_odd() {
    let record = json!({
        "metadata": {"name": "r"}, "spec": {"nodeName": "worker1"},
        "status": {"phase": "Failed", "window": {"opening": "nightly-2026-11-29"}},
    });
    let ask = |record: &Value| {
        let mut case = case(OPEN);
        case.facts.maintenances = known(std::slice::from_ref(record));
        case.ask(&GATE)
    };
    // Without the word the run began in no window: that is what a person's record looks like.
    let allowed = [
        "/status deleted",
        "/status nulled",
        "/status/window deleted",
        "/status/window nulled",
        "/status/window/opening deleted",
        "/status/window/opening nulled",
    ];
    super::super::mutation::check(&record, &allowed, ask);
}

#[test]
fn the_fixture_of_a_world_is_open() {
    assert_eq!(World::healthy().case().ask(&GATE).status, Status::Pass);
}
