//! What is remembered, what is forgotten, and what is never overwritten.

use serde_json::{Value, json};

use super::*;
use crate::api::{Evidence, Finding, GateId, Moment, Reason, SourceId, Status};
use crate::facts::{Facts, Fill, Item, Listed, Malformed, Observation, Source, SourceSpec};
use crate::gates::testing::{World, api_servers, green_matrix, now};
use crate::matrix::{ApiServer, CellVerdict, Readiness};

type Data = BTreeMap<String, String>;

struct From<'a>(&'a World);

impl Fill for From<'_> {
    fn list<S: Source>(&mut self, row: &SourceSpec) -> Listed<S> {
        let documents = self.0.0.get(&row.id).cloned().unwrap_or_default();
        Observation::Known { value: documents.iter().map(S::item).collect(), at: now() }
    }
}

fn slice(addresses: &[String]) -> Value {
    json!({"metadata": {"name": "kubernetes", "namespace": "default",
        "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "endpoints": [{"addresses": addresses, "conditions": {"ready": true}}]})
}

/// Three servers that are ready, with all cells green.
fn healthy() -> (World, Facts) {
    let mut world = World::healthy();
    let ips = addresses(&facts(&world));
    world.of(SourceId::EndpointSlices).push(slice(&ips));
    let facts = facts(&world);
    (world, facts)
}

fn addresses(facts: &Facts) -> Vec<String> {
    facts.nodes.good().map(|node| node.internal_ips[0].clone()).collect()
}

fn facts(world: &World) -> Facts {
    let mut facts = Facts::default();
    facts.fill(&mut From(world));
    let servers = facts.nodes.good().map(|node| ApiServer {
        name: node.metadata.name.clone(),
        node: Some(node.metadata.name.clone()),
        address: format!("{}:6443", node.internal_ips[0]),
        readiness: Readiness::Ready,
    });
    facts.api_servers = Observation::Known { value: servers.collect(), at: now() };
    facts.matrix = Observation::Known { value: green_matrix(), at: now() };
    facts
}

fn look(facts: &Facts) -> Look {
    Look::of(facts, None, &crate::config::Settings::default(), now())
}

fn data(pairs: &[(&str, &str)]) -> Data {
    pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
}

fn servers_of(data: &BTreeMap<&'static str, String>) -> Option<Vec<String>> {
    let text = data.get(names::STATE_API_SERVERS_KEY)?;
    Some(parse_api_servers(text).expect("readable").into_keys().collect())
}

fn later(seconds: i64) -> Timestamp {
    now() + jiff::SignedDuration::from_secs(seconds)
}

#[test]
fn the_first_look_remembers_all_that_is_good_and_the_second_writes_nothing() {
    let (_, facts) = healthy();
    let first = decide(&Data::new(), &look(&facts), 3, now());
    assert_eq!(servers_of(&first.data).expect("servers"), ["worker1", "worker2", "worker3"]);
    assert_eq!(first.data["term"], "3");
    let green: Value = serde_json::from_str(&first.data["last-green-matrix"]).expect("JSON");
    assert_eq!((&green["servers"], &green["nodes"], &green["line"]), (&json!(3), &json!(3), &json!("9/9")));
    assert!(!first.data.contains_key("since") && first.unreadable.is_empty());

    let mut old: Data = first.data.iter().map(|(key, text)| ((*key).to_owned(), text.clone())).collect();
    old.insert("circuit-breaker".to_owned(), "{".to_owned());
    let again = decide(&old, &look(&facts), 3, later(60));
    assert_eq!(again, Decision::default(), "and a key that nobody here knows is none of our business");
}

#[test]
fn a_server_is_forgotten_only_with_its_node() {
    let known = r#"{"worker1":"10.0.0.1:6443","worker2":"10.0.0.2:6443","worker3":"10.0.0.3:6443"}"#;
    type Edit = fn(&mut World, &mut Facts);
    let rows: Vec<(&str, Edit, Option<&[&str]>)> = vec![
        ("all there", |_, _| {}, None),
        (
            "no longer asked: its label is gone, its Node is not",
            |_, facts| {
                if let Observation::Known { value, .. } = &mut facts.api_servers {
                    value.retain(|server| server.name != "worker2");
                }
            },
            None,
        ),
        ("not ready", |_, facts| facts.api_servers = api_servers(&[Readiness::Ready]), None),
        (
            "its Node is gone",
            |world, facts| {
                world.of(SourceId::Nodes).remove(1);
                *facts = self::facts(world);
            },
            Some(&["worker1", "worker3"]),
        ),
        (
            "its Node is gone, and another Node cannot be read",
            |world, facts| {
                world.of(SourceId::Nodes).remove(1);
                *facts = self::facts(world);
                if let Observation::Known { value, .. } = &mut facts.nodes {
                    value.push(Item::Malformed(Malformed {
                        object: "Node x".into(),
                        path: "spec".into(),
                        problem: "odd".into(),
                    }));
                }
            },
            None,
        ),
        (
            "no Node at all is no answer",
            |world, facts| {
                world.of(SourceId::Nodes).clear();
                *facts = self::facts(world);
            },
            None,
        ),
        (
            "the nodes could not be read",
            |_, facts| {
                facts.nodes =
                    Observation::Failed { kind: crate::facts::FailureKind::Timeout, detail: "5 s".into(), at: now() };
            },
            None,
        ),
    ];
    for (name, edit, wanted) in rows {
        let (mut world, mut facts) = healthy();
        // Addresses as in the fixture, so that nothing but the edit is a change.
        let known: Data = {
            let good: BTreeMap<String, String> = facts
                .nodes
                .good()
                .map(|node| (node.metadata.name.clone(), format!("{}:6443", node.internal_ips[0])))
                .collect();
            assert_eq!(good.len(), parse_api_servers(known).expect("readable").len());
            data(&[("api-servers", &serde_json::to_string(&good).expect("JSON")), ("term", "1")])
        };
        edit(&mut world, &mut facts);
        let decision = decide(&known, &Look { matrix: None, ..look(&facts) }, 1, now());
        let wanted = wanted.map(|all| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
        assert_eq!(servers_of(&decision.data), wanted, "{name}");
    }
}

#[test]
fn a_server_that_moved_has_its_new_address_once_it_is_ready_there() {
    let (_, facts) = healthy();
    let old = data(&[("api-servers", r#"{"worker1":"192.0.2.9:6443"}"#), ("term", "1")]);
    let decision = decide(&old, &look(&facts), 1, now());
    let known = parse_api_servers(&decision.data["api-servers"]).expect("readable");
    assert_eq!(known["worker1"], format!("{}:6443", addresses(&facts)[0]));
}

#[test]
fn what_cannot_be_read_is_replaced_by_proof_alone() {
    type Edit = fn(&mut Facts);
    let failed: Edit = |facts| {
        // What the observer makes of a key that it cannot read.
        facts.api_servers =
            Observation::Failed { kind: crate::facts::FailureKind::Partial, detail: "odd".into(), at: now() };
        facts.matrix = Observation::NotAsked;
    };
    let unlisted: Edit = |facts| {
        facts.endpoint_slices = Observation::Known { value: Vec::new(), at: now() };
    };
    let unlabelled: Edit = |facts| {
        if let Observation::Known { value, .. } = &mut facts.nodes
            && let Some(Item::Good(node)) = value.first_mut()
        {
            node.metadata.labels.clear();
        }
    };
    let rows: [(&str, Option<Edit>, bool); 3] = [
        ("labels and entries agree", None, true),
        ("a server has no entry: it may be down", Some(unlisted), false),
        ("an entry of a node without label", Some(unlabelled), false),
    ];
    for (name, edit, replaced) in rows {
        let (_, mut facts) = healthy();
        failed(&mut facts);
        if let Some(edit) = edit {
            edit(&mut facts);
        }
        let old =
            data(&[("api-servers", "worker1, worker2"), ("last-green-matrix", "9/9"), ("since", "{}"), ("term", "2")]);
        let decision = decide(&old, &look(&facts), 2, now());
        let told: Vec<(&str, bool)> = decision.unreadable.iter().map(|one| (one.key, one.replaced)).collect();
        assert_eq!(told, [("api-servers", replaced), ("last-green-matrix", false), ("since", false)], "{name}");
        assert_eq!(decision.unreadable[0].text, "worker1, worker2", "{name}: the log has the old text");
        let written: Vec<&str> = decision.data.keys().copied().collect();
        assert_eq!(written, if replaced { vec!["api-servers"] } else { vec![] }, "{name}");
    }
}

#[test]
fn only_a_full_sweep_with_nothing_but_green_cells_counts() {
    let rows: [(&str, fn(&mut crate::matrix::Matrix), bool); 4] = [
        ("full and green", |_| {}, true),
        ("one cell is red", |matrix| matrix.cells[0].verdict = CellVerdict::Broken, false),
        ("one was not asked", |matrix| drop(matrix.cells.pop()), false),
        (
            "no servers",
            |matrix| {
                matrix.servers.clear();
                matrix.cells.clear();
            },
            false,
        ),
    ];
    for (name, edit, wanted) in rows {
        let (_, mut facts) = healthy();
        if let Observation::Known { value, .. } = &mut facts.matrix {
            edit(value);
        }
        assert_eq!(look(&facts).matrix.is_some(), wanted, "{name}");
    }
}

#[test]
fn the_time_of_an_unchanged_matrix_is_written_now_and_then() {
    let green = |seconds: i64, line: &str| GreenMatrix { at: later(seconds), servers: 3, nodes: 3, line: line.into() };
    let old = data(&[("last-green-matrix", &document::text(&green(0, "9/9"))), ("term", "1")]);
    let rows = [(10, "9/9", false), (599, "9/9", false), (600, "9/9", true), (10, "12/12", true)];
    for (seconds, line, wanted) in rows {
        let look = Look { matrix: Some(green(seconds, line)), ..Look::default() };
        let written = decide(&old, &look, 1, later(seconds)).data.contains_key("last-green-matrix");
        assert_eq!(written, wanted, "{seconds} {line}");
    }
}

#[test]
fn an_old_leader_writes_nothing_and_a_new_one_its_term_first() {
    let rows = [
        (None, Some("3"), false),
        (Some("2"), Some("3"), false),
        (Some("3"), None, false),
        (Some("4"), None, true),
        (Some("x"), Some("3"), false),
        (Some("-1"), Some("3"), false),
    ];
    for (old, written, overtaken) in rows {
        let old: Data = old.map(|text| data(&[("term", text)])).unwrap_or_default();
        let (_, facts) = healthy();
        let empty = decide(&old, &Look::default(), 3, now());
        assert_eq!((empty.data.get("term").map(String::as_str), empty.overtaken), (written, overtaken), "{old:?}");
        let full = decide(&old, &look(&facts), 3, now());
        assert_eq!(full.data.is_empty(), overtaken, "{old:?}");
    }
}

// --- since when ---

fn finding(gate: GateId, status: Status, reason: Reason, objects: &[&str]) -> Finding {
    Finding {
        gate,
        status,
        reason,
        message: "it is so".into(),
        evidence: objects.iter().map(|object| Evidence::new(*object, "f", "v", "w")).collect(),
        evidence_left_out: 0,
        observed_at: Some(now()),
        since: None,
    }
}

fn degraded(objects: &[&str]) -> Finding {
    finding(GateId::LonghornVolumes, Status::Block, Reason::LonghornVolumeDegraded, objects)
}

fn fine(gate: GateId) -> Finding {
    finding(gate, Status::Pass, Reason::Passed, &[])
}

fn found(moment: Moment, findings: &[Finding], at: Timestamp) -> Look {
    Look::of(&Facts::default(), Some((moment, findings)), &crate::config::Settings::default(), at)
}

fn lines(text: &str) -> Vec<String> {
    let entries = SinceEntry::parse_list(text).expect("readable");
    entries
        .iter()
        .map(|one| format!("{} {} {} {}", one.gate, one.reason, one.object, one.since.duration_since(now()).as_secs()))
        .collect()
}

#[test]
fn since_when_survives_until_it_is_over() {
    let a = "longhorn-volumes LonghornVolumeDegraded a 0";
    let b = "longhorn-volumes LonghornVolumeDegraded b 0";
    let unknown =
        || finding(GateId::LonghornVolumes, Status::Unknown, Reason::ObservationFailed, &["longhorn-volumes"]);
    let rows: Vec<(&str, Moment, Vec<Finding>, Vec<&str>)> = vec![
        ("still so", Moment::Start, vec![degraded(&["a", "b"])], vec![a, b]),
        ("one is over", Moment::Start, vec![degraded(&["b"])], vec![b]),
        (
            "one more",
            Moment::Settle,
            vec![degraded(&["a", "b", "c"])],
            vec![a, b, "longhorn-volumes LonghornVolumeDegraded c 90"],
        ),
        ("all over", Moment::Start, vec![fine(GateId::LonghornVolumes)], vec![]),
        ("not asked", Moment::Start, vec![fine(GateId::Attachments)], vec![a, b]),
        ("asked in part only", Moment::Verify, vec![fine(GateId::LonghornVolumes)], vec![a, b]),
        (
            "could not be read",
            Moment::Start,
            vec![unknown()],
            vec![a, b, "longhorn-volumes ObservationFailed longhorn-volumes 90"],
        ),
        (
            "another reason",
            Moment::Start,
            vec![finding(GateId::LonghornVolumes, Status::Block, Reason::LonghornVolumeFaulted, &["a"])],
            vec!["longhorn-volumes LonghornVolumeFaulted a 90"],
        ),
        (
            "about the target alone",
            Moment::Start,
            vec![finding(GateId::Target, Status::Block, Reason::TargetNotReady, &["Node worker2"])],
            vec![a, b],
        ),
    ];
    let first = decide(&Data::new(), &found(Moment::Start, &[degraded(&["a", "b"])], now()), 1, now());
    for (name, moment, findings, wanted) in rows {
        let mut old = data(&[("term", "1")]);
        old.insert("since".to_owned(), first.data["since"].clone());
        let decision = decide(&old, &found(moment, &findings, later(90)), 1, later(90));
        let text = decision.data.get("since").unwrap_or(&old["since"]);
        let mut wanted: Vec<String> = wanted.into_iter().map(str::to_owned).collect();
        wanted.sort();
        assert_eq!(lines(text), wanted, "{name}");
    }
}

#[test]
fn looks_between_two_writes_add_up() {
    let mut look = found(Moment::Start, &[degraded(&["a"]), fine(GateId::Attachments)], now());
    look.then(found(Moment::Start, &[degraded(&["a", "b"])], later(10)));
    look.then(found(Moment::Cordoned, &[fine(GateId::LonghornVolumes)], later(20)));
    let decision = decide(&Data::new(), &look, 1, later(20));
    let wanted = ["longhorn-volumes LonghornVolumeDegraded a 0", "longhorn-volumes LonghornVolumeDegraded b 10"];
    assert_eq!(lines(&decision.data["since"]), wanted);
    let unreadable = finding(GateId::LonghornVolumes, Status::Unknown, Reason::ObservationFailed, &["x"]);
    look.then(found(Moment::Start, &[unreadable], later(30)));
    let decision = decide(&Data::new(), &look, 1, later(30));
    assert_eq!(lines(&decision.data["since"]).len(), 3, "what cannot be read is not over");
    look.then(found(Moment::Start, &[fine(GateId::LonghornVolumes)], later(40)));
    assert!(!decide(&Data::new(), &look, 1, later(40)).data.contains_key("since"));
}

#[test]
fn the_list_is_bounded_and_the_oldest_stay() {
    let objects: Vec<String> = (0..90).map(|number| format!("old-{number:03}")).collect();
    let names: Vec<&str> = objects.iter().map(String::as_str).collect();
    let first = decide(&Data::new(), &found(Moment::Start, &[degraded(&names)], now()), 1, now());
    let newer: Vec<String> = (0..90).map(|number| format!("new-{number:03}")).collect();
    let names: Vec<&str> = newer.iter().map(String::as_str).collect();
    let attachments = finding(GateId::Attachments, Status::Warn, Reason::VolumeAttachmentStale, &names);
    let old = data(&[("since", &first.data["since"])]);
    let text = decide(&old, &found(Moment::Start, &[attachments], later(60)), 1, later(60)).data["since"].clone();
    let lines = lines(&text);
    assert_eq!((lines.len(), lines.iter().filter(|line| line.contains("old-")).count()), (100, 90));
    println!("figure state_since_bytes {} bytes", text.len());
}

#[test]
fn findings_are_given_their_age_where_their_source_has_none() {
    let entry = r#"[{"gate":"longhorn-volumes","reason":"LonghornVolumeDegraded","object":"a","since":"2026-11-29T01:00:00Z"}]"#;
    let at: Timestamp = "2026-11-29T01:00:00Z".parse().expect("a time");
    let told = now();
    let with_own = Finding { since: Some(told), ..degraded(&["a"]) };
    let rows = [
        (entry, degraded(&["a", "b"]), Some(at)),
        (entry, degraded(&["b", "a"]), None),
        (entry, with_own, Some(told)),
        (entry, finding(GateId::LonghornVolumes, Status::Block, Reason::LonghornVolumeFaulted, &["a"]), None),
        (entry, fine(GateId::LonghornVolumes), None),
        ("{", degraded(&["a"]), None),
    ];
    for (text, finding, wanted) in rows {
        let mut world = World::healthy();
        *world.of(SourceId::ConfigMaps) =
            vec![json!({"metadata": {"name": "maint-state", "namespace": "maint"}, "data": {"since": text}})];
        let mut findings = [finding];
        Since::of(&facts(&world), &crate::config::Settings::default()).fill(&mut findings);
        assert_eq!(findings[0].since, wanted, "{text} {findings:?}");
    }
}
