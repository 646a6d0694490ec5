//! Who is asked next and who waits for what, row by row.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::super::answer::{Answer, Answered};
use super::super::testing::{Cluster, budget_document, look, now, of_set, pod_document, settings, status, workload};
use super::*;
use crate::config::Settings;

mod back;

/// The names that are asked, then who waits for what.
fn told(found: &Next) -> String {
    let asked: Vec<&str> = found.send.iter().map(|one| one.name.as_str()).collect();
    let waits =
        found.waiting.iter().filter(|one| one.why != Wait::Asked).map(|one| format!("{} {}", one.name, one.why));
    format!("[{}] {}", asked.join(" "), waits.collect::<Vec<_>>().join("; "))
}

fn decide(cluster: &Cluster, answers: &Answers, seconds: i64) -> Next {
    decide_with(cluster, &settings(""), answers, seconds)
}

fn decide_with(cluster: &Cluster, settings: &Settings, answers: &Answers, seconds: i64) -> Next {
    let at = later(seconds);
    look(&cluster.facts(at), settings, at, |view| next(view, answers, at))
}

fn later(seconds: i64) -> Timestamp {
    now() + SignedDuration::from_secs(seconds)
}

fn cluster(pods: Vec<Value>, budgets: Vec<Value>) -> Cluster {
    Cluster { pods, budgets, ..Cluster::default() }
}

fn web(name: &str) -> Value {
    pod_document(name, json!({}))
}

fn labelled(name: &str, labels: Value) -> Value {
    pod_document(name, json!({"metadata": {"labels": labels}}))
}

fn ending(name: &str, seconds: i64) -> Value {
    pod_document(name, json!({"metadata": {"deletionTimestamp": later(seconds).to_string()}}))
}

fn answered(found: &Next, name: &str, answer: Answer, seconds: i64) -> Answered {
    let eviction = found.send.iter().find(|one| one.name == name).expect("it was asked").clone();
    Answered { eviction, answer, at: later(seconds) }
}

#[test]
fn who_is_asked_and_who_waits_for_what() {
    let critical = |name: &str| {
        pod_document(
            name,
            json!({"metadata": {"labels": {"app": "dns"}}, "spec": {"priorityClassName": "system-cluster-critical"}}),
        )
    };
    let own = || {
        pod_document(
            "maint-0",
            json!({"metadata": {"namespace": "maint", "labels": {"app.kubernetes.io/name": "maint"}}}),
        )
    };
    let bare = || pod_document("bare", json!({"metadata": {"ownerReferences": []}}));
    let storage = || labelled("im", json!({"longhorn.io/component": "instance-manager"}));
    let none = || vec![budget_document("web", status(0, 2, 2, 3))];
    let other = |name: &str| labelled(name, json!({"app": "other"}));
    let job = || labelled("job", json!({"cluster.x-k8s.io/drain": "wait-completed"}));
    let skip = || labelled("skip", json!({"cluster.x-k8s.io/drain": "skip"}));
    let daemon = || {
        pod_document(
            "agent",
            json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "controller": true}]}}),
        )
    };
    let database = |name: &str, cluster: &str| labelled(name, json!({"cnpg.io/cluster": cluster}));
    let blocked = "is blocked by budget shop/web: which needs 2 healthy pods and has 2";
    let rows: Vec<(&str, Cluster, String)> = vec![
        ("nobody", cluster(vec![daemon(), skip()], vec![]), "[] ".into()),
        ("all at once without a budget", cluster(vec![web("a"), web("b"), web("c")], vec![]), "[a b c] ".into()),
        ("as many as the budget allows", cluster(vec![web("a"), web("b")], vec![budget_document("web", json!({}))]), "[a] b waits for its turn in budget shop/web".into()),
        ("none that must be refused", cluster(vec![web("a"), other("b")], none()), format!("[b] a {blocked}")),
        ("not while the budget is being processed", cluster(vec![web("a")], vec![budget_document("web", json!({"metadata": {"generation": 2}}))]), "[] a is blocked by budget shop/web: which was changed and is not computed yet".into()),
        ("one that ends", cluster(vec![ending("a", 20), web("b")], vec![]), "[b] a is ending, due 2026-11-30T01:00:20Z".into()),
        ("one on another node is none of ours", cluster(vec![pod_document("a", json!({"spec": {"nodeName": "n2"}})), web("b")], vec![]), "[b] ".into()),
        ("critical ones wait for the others", cluster(vec![critical("dns"), web("a")], vec![]), "[a] dns waits for the pods before it (ordinary)".into()),
        ("also while those are ending", cluster(vec![critical("dns"), ending("a", 20)], vec![]), "[] a is ending, due 2026-11-30T01:00:20Z; dns waits for the pods before it (ordinary)".into()),
        ("but not while only a budget holds them", cluster(vec![critical("dns"), web("a")], none()), "[dns] a ".to_owned() + blocked),
        ("storage comes after that", cluster(vec![storage(), critical("dns")], vec![]), "[dns] im waits for the pods before it (critical)".into()),
        ("our own pod comes last, whatever holds the others", cluster(vec![own(), web("a")], none()), format!("[] a {blocked}; maint-0 waits for the pods before it (ordinary)")),
        ("our own pod, alone", cluster(vec![own(), daemon()], vec![]), "[maint-0] ".into()),
        ("one that never goes does not hold the others of its wave", cluster(vec![bare(), web("a")], vec![]), "[a] bare is not evicted: it has no controller, so nothing would bring it back".into()),
        ("but those after it", cluster(vec![bare(), critical("dns")], vec![]), "[] bare is not evicted: it has no controller, so nothing would bring it back; dns waits for the pods before it (ordinary)".into()),
        ("a job that is left to finish", cluster(vec![job(), web("a")], vec![]), "[a] job is left to finish by itself".into()),
        ("lower priorities first", cluster(vec![pod_document("a", json!({"spec": {"priority": 10}})), web("b")], vec![budget_document("web", json!({}))]), "[b] a waits for its turn in budget shop/web".into()),
        ("one database cluster at a time", cluster(vec![database("x-1", "x"), database("x-2", "x"), database("y-1", "y")], vec![]), "[x-1 x-2] y-1 waits for database cluster shop/x".into()),
        ("two budgets", cluster(vec![web("a")], vec![budget_document("web", json!({})), budget_document("web2", json!({}))]), "[] a is blocked by more than one budget (shop/web, shop/web2): the API server refuses every eviction then".into()),
    ];
    for (row, cluster, wanted) in rows {
        assert_eq!(told(&decide(&cluster, &Answers::default(), 0)), wanted, "{row}");
    }
}

#[test]
fn a_pod_whose_time_is_over_is_told_with_what_keeps_it() {
    let finalizer = pod_document(
        "a",
        json!({"metadata": {"deletionTimestamp": "2026-11-30T01:00:00Z", "finalizers": ["example.com/x"]}}),
    );
    let rows: Vec<(&str, Value, bool, i64, &str)> = vec![
        ("not yet", ending("a", 0), true, 59, "a is ending, due 2026-11-30T01:00:00Z"),
        ("a finalizer, in its time", finalizer.clone(), true, -1, "a is ending, due 2026-11-30T01:00:00Z"),
        (
            "a finalizer, past its time",
            finalizer.clone(),
            true,
            0,
            "a is ending, due 2026-11-30T01:00:00Z: it has the finalizers example.com/x",
        ),
        (
            "a minute",
            ending("a", 0),
            true,
            60,
            "a is stuck: it should have ended by 2026-11-30T01:00:00Z: its containers do not end, or their volumes are not unmounted",
        ),
        (
            "a finalizer",
            finalizer.clone(),
            true,
            60,
            "a is stuck: it should have ended by 2026-11-30T01:00:00Z: it has the finalizers example.com/x",
        ),
        (
            "a silent kubelet",
            ending("a", 0),
            false,
            60,
            "a is stuck: it should have ended by 2026-11-30T01:00:00Z: the node's kubelet is silent: nothing ends it, and whether it still runs is not known",
        ),
        (
            "both",
            finalizer,
            false,
            60,
            "a is stuck: it should have ended by 2026-11-30T01:00:00Z: it has the finalizers example.com/x, and the node's kubelet is silent: nothing ends it, and whether it still runs is not known",
        ),
    ];
    for (row, pod, ready, seconds, wanted) in rows {
        let cluster = Cluster { pods: vec![pod], node_ready: Some(ready), ..Cluster::default() };
        let found = decide(&cluster, &Answers::default(), seconds);
        assert_eq!(told(&found), format!("[] {wanted}"), "{row}");
    }
    let found = decide(&cluster(vec![ending("a", 20)], vec![]), &Answers::default(), 0);
    assert_eq!(found.wake_at, Some(later(80)), "it is looked at when it would be stuck");
}

/// An answer, and whether the same is asked again so many seconds later.
type Held = (Answer, &'static [(i64, bool)]);

#[test]
fn each_answer_holds_its_pod_for_as_long_as_it_should() {
    let message = || "no".to_owned();
    let rows: Vec<(&str, Held)> = vec![
        ("accepted, and the list lags", (Answer::Accepted, &[(0, false), (4, false), (5, true)])),
        ("gone, and the list lags", (Answer::Gone, &[(4, false), (5, true)])),
        ("throttled", (Answer::Throttled { retry_after_seconds: None }, &[(0, false), (1, true)])),
        ("throttled for a time", (Answer::Throttled { retry_after_seconds: Some(7) }, &[(6, false), (7, true)])),
        (
            "throttled for far too long a time",
            (Answer::Throttled { retry_after_seconds: Some(9_999) }, &[(59, false), (60, true)]),
        ),
        ("conflict", (Answer::UidConflict, &[(0, false), (1, true)])),
        ("its namespace ends", (Answer::NamespaceTerminating, &[(0, false), (3_600, false)])),
        ("two budgets that are not seen here", (Answer::TwoBudgets { message: message() }, &[(29, false), (30, true)])),
        ("a webhook", (Answer::WebhookDenied { message: message() }, &[(9, false), (10, true)])),
        ("transient", (Answer::Transient { message: message() }, &[(0, false), (1, true)])),
        ("unknown is no success", (Answer::Unknown { message: message() }, &[(0, false), (1, true)])),
        (
            "a budget that is not seen here",
            (
                Answer::RefusedByBudget { budget: None, message: message(), retry_after_seconds: None },
                &[(4, false), (5, true)],
            ),
        ),
    ];
    let cluster = cluster(vec![web("a")], vec![]);
    for (row, (answer, later_on)) in rows {
        let mut answers = Answers::default();
        answers.note(answered(&decide(&cluster, &answers, 0), "a", answer, 0));
        for (seconds, again) in later_on {
            let found = decide(&cluster, &answers, *seconds);
            assert_eq!(!found.send.is_empty(), *again, "{row} after {seconds} s: {}", told(&found));
        }
    }
}

#[test]
fn waits_grow_while_the_answer_stays_the_same() {
    let rows: Vec<(&str, Answer, &[i64])> = vec![
        ("webhook", Answer::WebhookDenied { message: "no".to_owned() }, &[10, 20, 40, 60, 60]),
        ("transient", Answer::Transient { message: "no".to_owned() }, &[1, 1, 1, 2, 4, 5, 5]),
        (
            "budget",
            Answer::RefusedByBudget { budget: None, message: "no".to_owned(), retry_after_seconds: None },
            &[5, 10, 20, 30, 30],
        ),
    ];
    let cluster = cluster(vec![web("a")], vec![]);
    for (row, answer, waits) in rows {
        let (mut answers, mut at) = (Answers::default(), 0);
        let mut found = decide(&cluster, &answers, at);
        for wait in waits {
            answers.note(answered(&found, "a", answer.clone(), at));
            let early = decide(&cluster, &answers, at + wait - 1);
            assert!(early.send.is_empty() || *wait == 1, "{row}: {wait} s are not over");
            at += wait;
            found = decide(&cluster, &answers, at);
            assert_eq!(told(&found), "[a] ", "{row}: after {wait} s");
        }
        // Another answer begins anew.
        answers.note(answered(&found, "a", Answer::UidConflict, at));
        assert_eq!(told(&decide(&cluster, &answers, at + 1)), "[a] ", "{row}: another answer");
    }
}

#[test]
fn after_a_refusal_the_lane_waits_until_its_budget_changes() {
    let refused = Answer::RefusedByBudget {
        budget: Some("web".to_owned()),
        message: "The disruption budget web needs 2 healthy pods and has 2 currently".to_owned(),
        retry_after_seconds: None,
    };
    let mut cluster = cluster(vec![web("a"), web("b")], vec![budget_document("web", status(2, 4, 2, 4))]);
    let mut answers = Answers::default();
    let first = decide(&cluster, &answers, 0);
    assert_eq!(told(&first), "[a b] ");
    answers.note(answered(&first, "a", refused.clone(), 0));
    let held = decide(&cluster, &answers, 1);
    let why = "was refused by budget web: The disruption budget web needs 2 healthy pods and has 2 currently";
    assert_eq!(told(&held), format!("[] a {why}; b {why}"), "the whole lane");
    assert_eq!(held.wake_at, Some(later(5)), "and is looked at again in any case");
    cluster.budgets[0]["metadata"]["resourceVersion"] = json!("2");
    assert_eq!(told(&decide(&cluster, &answers, 1)), "[a b] ", "the budget changed");
    cluster.budgets[0]["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(told(&decide(&cluster, &answers, 5)), "[a b] ", "it did not, and the time is over");
    let processed =
        Answer::RefusedByBudget { budget: None, message: "processed".to_owned(), retry_after_seconds: Some(10) };
    let mut answers = Answers::default();
    answers.note(answered(&first, "a", processed, 0));
    assert!(decide(&cluster, &answers, 9).send.is_empty(), "the server said 10 s");
    assert_eq!(told(&decide(&cluster, &answers, 10)), "[a b] ");
    // Another lane does not wait.
    let mut both = cluster.clone();
    both.pods.push(labelled("c", json!({"app": "other"})));
    let mut answers = Answers::default();
    answers.note(answered(&first, "a", refused, 0));
    assert!(told(&decide(&both, &answers, 1)).starts_with("[c] "));
}

#[test]
fn what_was_accepted_or_is_on_its_way_is_not_allowed_twice() {
    let cluster = cluster(vec![web("a"), web("b"), web("c")], vec![budget_document("web", status(2, 4, 2, 4))]);
    let mut answers = Answers::default();
    let first = decide(&cluster, &answers, 0);
    assert_eq!(told(&first), "[a b] c waits for its turn in budget shop/web");
    answers.sent(&first.send[0]);
    let flying = decide(&cluster, &answers, 1);
    assert_eq!(told(&flying), "[b] a is asked to go; c waits for its turn in budget shop/web");
    // Accepted after the budget was read: it does not show it.
    answers.note(answered(&first, "a", Answer::Accepted, 1));
    assert_eq!(told(&decide(&cluster, &answers, 1)), "[b] a was asked to go; c waits for its turn in budget shop/web");
    // Read since: what it allows now is what is left.
    assert_eq!(told(&decide(&cluster, &answers, 2)), "[b c] a was asked to go");
    answers.sent(&first.send[1]);
    answers.not_sent(&first.send[1]);
    assert_eq!(told(&decide(&cluster, &answers, 2)), "[b c] a was asked to go", "it was not sent after all");
}

#[test]
fn a_stateful_set_gives_one_pod_at_a_time() {
    let set = |replicas: i64, ready: i64, version: &str| {
        let mut set = workload("db", replicas, ready);
        set["metadata"]["resourceVersion"] = json!(version);
        vec![set]
    };
    let with = |pods: Vec<Value>, stateful_sets: Vec<Value>| Cluster { pods, stateful_sets, ..Cluster::default() };
    let both = || vec![of_set("db", 0), of_set("db", 1)];
    let with_status = |status: Value| {
        let mut sets = set(3, 3, "1");
        for (key, value) in status.as_object().expect("a map") {
            sets[0]["status"][key] = value.clone();
        }
        sets
    };
    let leaving_elsewhere = || with_status(json!({"currentReplicas": 2}));
    let rolled_out = || {
        with_status(json!({"currentReplicas": 1, "updatedReplicas": 2, "currentRevision": "a", "updateRevision": "b"}))
    };
    let of_kruise = |set: &str, ordinal: usize| {
        let mut pod = of_set(set, ordinal);
        pod["metadata"]["ownerReferences"][0]["apiVersion"] = json!("apps.kruise.io/v1beta1");
        pod
    };
    let mut first_ends = both();
    first_ends[0]["metadata"]["deletionTimestamp"] = json!("2026-11-30T01:00:30Z");
    let rows: Vec<(&str, Cluster, &str)> = vec![
        (
            "all Ready",
            with(both(), set(3, 3, "1")),
            "[db-0] db-1 waits for StatefulSet db: another pod of it goes first",
        ),
        (
            "one ends",
            with(first_ends, set(3, 2, "1")),
            "[] db-0 is ending, due 2026-11-30T01:00:30Z; db-1 waits for StatefulSet db: another pod of it goes first",
        ),
        (
            "the first is not Ready elsewhere yet",
            with(vec![of_set("db", 1)], set(3, 2, "2")),
            "[] db-1 waits for StatefulSet db: 1 of 2 pods on other nodes are Ready",
        ),
        ("it is", with(vec![of_set("db", 1)], set(3, 3, "3")), "[db-1] "),
        (
            "one ends on another node, and is Ready still",
            with(vec![of_set("db", 0)], leaving_elsewhere()),
            "[] db-0 waits for StatefulSet db: 1 of 2 pods on other nodes are Ready",
        ),
        ("it is rolled out", with(vec![of_set("db", 0)], rolled_out()), "[db-0] "),
        (
            "of another API group",
            with(vec![of_kruise("db", 1)], vec![]),
            "[] db-1 waits for StatefulSet db: it could not be read",
        ),
        ("it was deleted", with(both(), vec![]), "[db-0] db-1 waits for StatefulSet db: another pod of it goes first"),
    ];
    for (row, cluster, wanted) in rows {
        assert_eq!(told(&decide(&cluster, &Answers::default(), 0)), wanted, "{row}");
    }
    // The status is that of before the eviction: the pod that is gone counts as Ready still.
    let mut answers = Answers::default();
    let first = decide(&with(both(), set(3, 3, "1")), &answers, 0);
    answers.note(answered(&first, "db-0", Answer::Accepted, 0));
    let gone = with(vec![of_set("db", 1)], set(3, 3, "1"));
    assert_eq!(
        told(&decide(&gone, &answers, 9)),
        "[] db-1 waits for StatefulSet db: its status is older than the last eviction"
    );
    assert_eq!(told(&decide(&with(vec![of_set("db", 1)], set(3, 3, "4")), &answers, 9)), "[db-1] ");
    // An answer that says nothing: it may have gone, until a newer list says otherwise.
    let mut answers = Answers::default();
    answers.note(answered(&first, "db-0", Answer::Transient { message: "reset".to_owned() }, 1));
    assert_eq!(
        told(&decide(&with(both(), set(3, 3, "1")), &answers, 1)),
        "[] db-0 was not evicted: reset; db-1 waits for StatefulSet db: another pod of it goes first"
    );
    // A rule lets them go together.
    let force = settings("[[drain.rules]]\nname = \"db\"\npods = \"app=db\"\nforce = true\n");
    assert_eq!(told(&decide_with(&with(both(), set(3, 2, "1")), &force, &Answers::default(), 0)), "[db-0 db-1] ");
    // With a budget it is the budget that says how many.
    let mut budgeted = with(both(), set(3, 3, "1"));
    budgeted.budgets = vec![budget_document(
        "db",
        json!({"spec": {"selector": {"matchLabels": {"app": "db"}}}, "status": {"disruptionsAllowed": 2}}),
    )];
    assert_eq!(told(&decide(&budgeted, &Answers::default(), 0)), "[db-0 db-1] ");
}

/// Of two nodes that are drained at the same time one gives its pods of a StatefulSet after the other.
#[test]
fn while_another_node_is_drained_first_its_pods_of_a_stateful_set_go_first() {
    let of = |replicas: i64, budgets: Vec<Value>| Cluster {
        pods: vec![of_set("db", 0), web("web-0")],
        stateful_sets: vec![workload("db", replicas, replicas)],
        budgets,
        ..Cluster::default()
    };
    let selects = json!({"spec": {"selector": {"matchLabels": {"app": "db"}}}});
    let force = "[[drain.rules]]\nname = \"db\"\npods = \"app=db\"\nforce = true\n";
    let rows = [
        ("nobody else", None, "", of(2, vec![]), "[db-0 web-0] "),
        (
            "another one",
            Some("n2"),
            "",
            of(2, vec![]),
            "[web-0] db-0 waits for StatefulSet db: n2 is drained too, and its pods go first",
        ),
        ("all of it are here", Some("n2"), "", of(1, vec![]), "[db-0 web-0] "),
        ("a budget counts for both", Some("n2"), "", of(2, vec![budget_document("db", selects)]), "[db-0 web-0] "),
        ("a rule lets them go together", Some("n2"), force, of(2, vec![]), "[db-0 web-0] "),
    ];
    for (row, first, rule, cluster, wanted) in rows {
        let found = look(&cluster.facts(now()), &settings(rule), now(), |view| {
            let mut view = view.clone();
            view.sets_after = first.map(str::to_owned);
            next(&view, &Answers::default(), now())
        });
        assert_eq!(told(&found), wanted, "{row}");
    }
}

/// A replacement without a node is the reason that is told, whether a budget or the StatefulSet itself holds the next pod.
#[test]
fn a_replacement_that_cannot_be_scheduled_is_the_reason_that_is_told() {
    let says = "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) had volume node affinity conflict.";
    let pending = |name: &str, set: &str, over: Value| {
        let mut pod = of_set(set, 0);
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["uid"] = json!("uid-of-its-own");
        pod["spec"] = json!({});
        pod["status"] = json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": says}]});
        super::super::testing::merge(&mut pod, over);
        pod
    };
    let of = |unscheduled: Vec<Value>, budgets: Vec<Value>| Cluster {
        pods: vec![of_set("db", 1)],
        stateful_sets: vec![workload("db", 2, 1)],
        budgets,
        unscheduled,
        ..Cluster::default()
    };
    let budget = || {
        let selects = json!({"spec": {"selector": {"matchLabels": {"app": "db"}}}});
        let mut over = status(0, 1, 1, 2);
        super::super::testing::merge(&mut over, selects);
        vec![budget_document("db", over)]
    };
    let why = "its replacement db-0 cannot be scheduled: 0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) had \
               volume node affinity conflict";
    let plain = "[] db-1 waits for StatefulSet db: 0 of 1 pods on other nodes are Ready";
    let rows: Vec<(&str, Cluster, String)> = vec![
        (
            "its StatefulSet",
            of(vec![pending("db-0", "db", json!({}))], vec![]),
            format!("[] db-1 is blocked by StatefulSet db: {why}"),
        ),
        (
            "its budget",
            of(vec![pending("db-0", "db", json!({}))], budget()),
            format!("[] db-1 is blocked by budget shop/db: {why}"),
        ),
        ("another's", of(vec![pending("api-0", "api", json!({}))], vec![]), plain.to_owned()),
        (
            "not tried yet",
            of(vec![pending("db-0", "db", json!({"status": {"conditions": []}}))], vec![]),
            plain.to_owned(),
        ),
        (
            "it is ending",
            of(vec![pending("db-0", "db", json!({"metadata": {"deletionTimestamp": "2026-11-30T01:00:00Z"}}))], vec![]),
            plain.to_owned(),
        ),
        (
            "it has a node",
            of(vec![pending("db-0", "db", json!({"spec": {"nodeName": "n2"}}))], vec![]),
            plain.to_owned(),
        ),
    ];
    for (row, cluster, wanted) in rows {
        assert_eq!(told(&decide(&cluster, &Answers::default(), 0)), wanted, "{row}");
    }
    // What could not be read explains nothing, and lets nobody go.
    let mut facts = of(vec![], vec![]).facts(now());
    facts.unscheduled_pods = crate::facts::Observation::NotAsked;
    assert_eq!(told(&look(&facts, &settings(""), now(), |view| next(view, &Answers::default(), now()))), plain);
}

#[test]
fn stateful_sets_that_could_not_be_read_give_no_pod() {
    let mut facts = Cluster { pods: vec![of_set("db", 0)], ..Cluster::default() }.facts(now());
    facts.stateful_sets = crate::facts::Observation::NotAsked;
    let found = look(&facts, &settings(""), now(), |view| next(view, &Answers::default(), now()));
    assert_eq!(told(&found), "[] db-0 waits for StatefulSet db: it could not be read");
}

#[test]
fn what_no_try_can_change_ends_the_drain() {
    let cluster = cluster(vec![web("a"), web("b")], vec![]);
    for (answer, wanted) in [
        (Answer::Forbidden { message: "no right".to_owned() }, "maint may not evict: no right"),
        (Answer::Invalid { message: "odd".to_owned() }, "the API server does not accept the eviction: odd"),
    ] {
        let mut answers = Answers::default();
        let first = decide(&cluster, &answers, 0);
        answers.note(answered(&first, "a", answer.clone(), 0));
        let found = decide(&cluster, &answers, 60);
        if matches!(answer, Answer::Forbidden { .. }) {
            // An API server that has just begun may not know its rights yet.
            assert_eq!((&found.fatal, told(&found).as_str()), (&None, "[a b] "));
        }
        answers.note(answered(&first, "a", answer, 61));
        let found = decide(&cluster, &answers, 120);
        assert_eq!((found.fatal.as_deref(), found.send.len()), (Some(wanted), 0));
    }
}

#[test]
fn grace_and_basis_are_handed_on() {
    let rule = settings("[[drain.rules]]\nname = \"quick\"\npods = \"app=web\"\ngrace_seconds = 5\n");
    let cluster = cluster(vec![web("a")], vec![budget_document("web", json!({"metadata": {"resourceVersion": "42"}}))]);
    let found = decide_with(&cluster, &rule, &Answers::default(), 0);
    let one = &found.send[0];
    assert_eq!((one.grace_seconds, one.basis.as_str(), one.uid.as_str()), (Some(5), "42", "uid-a"));
    assert_eq!(one.lane, Lane::Budget("uid-budget-web".to_owned()));
}

#[test]
fn one_answer_a_pod_is_kept_and_not_more_than_the_limit() {
    let mut answers = Answers::default();
    let eviction = |uid: &str| Eviction {
        namespace: "shop".to_owned(),
        name: uid.to_owned(),
        uid: uid.to_owned(),
        origin: None,
        grace_seconds: None,
        lane: Lane::Pod(uid.to_owned()),
        basis: String::new(),
    };
    let mut note = |uid: &str, answer| answers.note(Answered { eviction: eviction(uid), answer, at: now() });
    note("a", Answer::UidConflict);
    note("b", Answer::Gone);
    note("a", Answer::Accepted);
    for index in 0..1_999 {
        note(&index.to_string(), Answer::Accepted);
    }
    let last = answers.last();
    assert_eq!((last.len(), last[0].eviction.uid.as_str(), &last[0].answer), (2_000, "a", &Answer::Accepted));
}
