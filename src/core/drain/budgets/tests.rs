//! What budgets allow, row by row in the order of the API server.

use serde_json::{Value, json};

use super::super::testing::{Cluster, budget_document, look, merge, now, pod_document, settings, status};
use super::*;
use crate::facts::{FailureKind, Observation};

fn unready() -> Value {
    json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
}

fn with(mut over: Value, more: Value) -> Value {
    merge(&mut over, more);
    over
}

fn told(pod: Value, budgets: Vec<Value>) -> String {
    let cluster = Cluster { pods: vec![pod_document("web-0", pod)], budgets, ..Cluster::default() };
    look(&cluster.facts(now()), &settings(""), now(), |view| match leave(&view.entries[0]) {
        Leave::Unasked => "unasked".to_owned(),
        Leave::Unhealthy => "unhealthy".to_owned(),
        Leave::Takes => "takes".to_owned(),
        Leave::No(why) => format!("no: {}: {}", why.lead(), why.detail()),
    })
}

#[test]
fn every_budget_is_asked_in_the_order_of_the_server() {
    let one = |over: Value| vec![budget_document("web", over)];
    let none = || status(0, 2, 2, 3);
    let policy = |word: &str| json!({"spec": {"unhealthyPodEvictionPolicy": word}});
    let stale = json!({"metadata": {"generation": 2}});
    let sync = json!({"status": {"conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "foos.example.com does not implement the scale subresource."}]}});
    let many: serde_json::Map<String, Value> =
        (0..2001).map(|n| (format!("p{n}"), json!("2026-11-30T00:00:00Z"))).collect();
    let two = || {
        vec![
            budget_document("web", none()),
            budget_document("all", json!({"spec": {"selector": {"matchLabels": null}}})),
        ]
    };
    let blocked = "no: is blocked by budget shop/web: which needs 2 healthy pods and has 2";
    let phase = |phase: &str| json!({"status": {"phase": phase}});
    let rows: Vec<(&str, Value, Vec<Value>, &str)> = vec![
        ("no budget", json!({}), vec![], "unasked"),
        ("another's budget", json!({}), one(json!({"spec": {"selector": {"matchLabels": {"app": "db"}}}})), "unasked"),
        ("another namespace's", json!({}), one(json!({"metadata": {"namespace": "other"}})), "unasked"),
        ("allows one", json!({}), one(json!({})), "takes"),
        ("allows none", json!({}), one(none()), blocked),
        (
            "wants all of them, by its operator",
            json!({}),
            one(with(status(0, 1, 1, 1), json!({"metadata": {"labels": {"cnpg.io/cluster": "db"}}}))),
            "no: is blocked by budget shop/web: which needs 1 healthy pods and has 1; CloudNativePG lifts it by itself",
        ),
        (
            "wants all of them, by the operator of its pods",
            json!({"metadata": {"labels": {"strimzi.io/cluster": "k"}}}),
            one(status(0, 3, 3, 3)),
            "no: is blocked by budget shop/web: which needs 3 healthy pods and has 3; Strimzi lifts it by itself",
        ),
        (
            "lacks a healthy one, whoever made it",
            json!({}),
            one(with(none(), json!({"metadata": {"labels": {"cnpg.io/cluster": "db"}}}))),
            blocked,
        ),
        ("pending", phase("Pending"), one(none()), "unasked"),
        ("finished", phase("Succeeded"), one(none()), "unasked"),
        ("failed", phase("Failed"), one(none()), "unasked"),
        ("phase unknown is asked", phase("Unknown"), one(none()), blocked),
        ("ending", json!({"metadata": {"deletionTimestamp": "2026-11-30T01:00:30Z"}}), one(none()), "unasked"),
        (
            "two budgets",
            json!({}),
            two(),
            "no: is blocked by more than one budget (shop/web, shop/all): the API server refuses every eviction then",
        ),
        ("two budgets, pending", phase("Pending"), two(), "unasked"),
        (
            "not observed",
            json!({}),
            one(stale.clone()),
            "no: is blocked by budget shop/web: which was changed and is not computed yet",
        ),
        (
            "cannot be computed",
            json!({}),
            one(with(none(), sync.clone())),
            "no: is blocked by budget shop/web: which cannot be computed: foos.example.com does not implement the scale subresource",
        ),
        (
            "never computed, and never changed",
            json!({}),
            one(with(with(none(), sync.clone()), json!({"status": {"observedGeneration": 0}}))),
            "no: is blocked by budget shop/web: which cannot be computed: foos.example.com does not implement the scale subresource",
        ),
        (
            "could not be computed before it was changed",
            json!({}),
            one(with(with(none(), sync), stale.clone())),
            "no: is blocked by budget shop/web: which was changed and is not computed yet; before that it could not be computed: foos.example.com does not implement the scale subresource",
        ),
        (
            "too many disrupted",
            json!({}),
            one(json!({"status": {"disruptedPods": many}})),
            "no: is blocked by budget shop/web: which counts more than 2000 evicted pods",
        ),
        (
            "2000 are not too many",
            json!({}),
            one(json!({"status": {"disruptedPods": {"p": "2026-11-30T00:00:00Z"}}})),
            "takes",
        ),
        ("not Ready, enough are healthy", unready(), one(none()), "unhealthy"),
        ("not Ready, and the status is old", unready(), one(with(none(), stale)), "unhealthy"),
        (
            "not Ready, too few are healthy",
            unready(),
            one(status(0, 1, 2, 3)),
            "no: is blocked by budget shop/web: which needs 2 healthy pods and has 1",
        ),
        (
            "not Ready, none is wanted",
            unready(),
            one(status(0, 0, 0, 3)),
            "no: is blocked by budget shop/web: which needs 0 healthy pods and has 0",
        ),
        ("not Ready, always", unready(), one(with(status(0, 0, 2, 3), policy("AlwaysAllow"))), "unhealthy"),
        ("Ready, always", json!({}), one(with(none(), policy("AlwaysAllow"))), blocked),
        (
            "not Ready, unknown policy, though it allows one",
            unready(),
            one(policy("Sometimes")),
            "no: is blocked by budget shop/web: which says `Sometimes` of pods that are not Ready, and that is not known here",
        ),
        ("Ready, unknown policy", json!({}), one(policy("Sometimes")), "takes"),
        (
            "a budget that is not understood",
            json!({}),
            one(json!({"status": {"disruptionsAllowed": "1"}})),
            "no: waits: its budgets are not known: PodDisruptionBudget shop/web: status.disruptionsAllowed is text, wanted a whole number",
        ),
        (
            "one of another namespace that is not understood",
            json!({}),
            one(json!({"metadata": {"namespace": "other"}, "status": {"disruptionsAllowed": "1"}})),
            "unasked",
        ),
        ("not understood, pending", phase("Pending"), one(json!({"status": {"disruptionsAllowed": "1"}})), "unasked"),
    ];
    for (row, pod, budgets, wanted) in rows {
        assert_eq!(told(pod, budgets), wanted, "{row}");
    }
}

#[test]
fn budgets_that_could_not_be_read_let_nobody_go() {
    let cluster = Cluster { pods: vec![pod_document("web-0", json!({}))], ..Cluster::default() };
    let later = now() + jiff::SignedDuration::from_secs(31);
    let failed = Observation::Failed { kind: FailureKind::Forbidden, detail: "403".to_owned(), at: now() };
    let rows = [
        ("failed", failed, "403"),
        ("absent", Observation::Absent { at: now() }, "the API does not have them"),
        ("not asked", Observation::NotAsked, "nobody asked"),
        ("old", cluster.facts(now()).pod_disruption_budgets, "the last answer is 31 s old"),
    ];
    for (row, budgets, wanted) in rows {
        let mut facts = cluster.facts(later);
        facts.pod_disruption_budgets = budgets;
        let found = look(&facts, &settings(""), later, |view| leave(&view.entries[0]));
        let wanted = Refusal::Unknown(format!("PodDisruptionBudgets could not be read: {wanted}"));
        assert_eq!(found, Leave::No(wanted), "{row}");
    }
}

/// `verdict (rounds): why | advice`
fn verdict(pods: Vec<Value>, budgets: Vec<Value>) -> String {
    let cluster = Cluster { pods, budgets, ..Cluster::default() };
    look(&cluster.facts(now()), &settings(""), now(), |view| {
        let told = looks(view).into_iter().map(|one| {
            let rounds = one.rounds.map_or_else(|| "-".to_owned(), |rounds| rounds.to_string());
            format!("{} ({rounds}): {} | {}", one.verdict, one.why, one.advice)
        });
        told.collect::<Vec<_>>().join("\n")
    })
}

#[test]
fn each_budget_has_a_verdict_and_what_helps() {
    let web =
        |count: usize| -> Vec<Value> { (0..count).map(|n| pod_document(&format!("web-{n}"), json!({}))).collect() };
    let sick = || vec![pod_document("web-0", json!({})), pod_document("web-1", unready())];
    let one = |over: Value| vec![budget_document("web", over)];
    let says = |spec: Value, over: Value| one(with(over, json!({"spec": spec})));
    let labelled = |labels: Value| vec![pod_document("db-1", json!({"metadata": {"labels": labels}}))];
    let cnpg = || labelled(json!({"cnpg.io/cluster": "db", "cnpg.io/instanceRole": "primary"}));
    let longhorn = || labelled(json!({"longhorn.io/component": "instance-manager"}));
    let selects = |labels: Value, over: Value| one(with(over, json!({"spec": {"selector": {"matchLabels": labels}}})));
    let sync = json!({"status": {"disruptionsAllowed": 0, "conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "no scale"}]}});
    let rows: Vec<(&str, Vec<Value>, Vec<Value>, &str)> = vec![
        ("one at a time", web(3), one(json!({})), "waves (3): 3 here, 1 may go at a time | "),
        ("two at a time", web(3), one(status(2, 5, 3, 5)), "waves (2): 3 here, 2 may go at a time | "),
        ("enough", web(2), one(status(2, 5, 3, 5)), "waves (1): 2 here, 2 may go at a time | "),
        (
            "one replica, minAvailable 1",
            web(1),
            says(json!({"minAvailable": 1}), status(0, 1, 1, 1)),
            "permanent (-): it wants all 1 pods healthy at any time | scale its workload to 2, say maxUnavailable: 1 (a short time without), or restart it elsewhere: kubectl -n shop rollout restart, once the node is cordoned",
        ),
        (
            "minAvailable 100%",
            web(1),
            says(json!({"minAvailable": "100%"}), status(0, 3, 3, 3)),
            "permanent (-): it wants all 3 pods healthy at any time | it says minAvailable 100% of 3: say maxUnavailable: 1, or scale its workload up",
        ),
        (
            "maxUnavailable 0",
            web(1),
            says(json!({"maxUnavailable": 0}), status(0, 3, 3, 3)),
            "permanent (-): it wants all 3 pods healthy at any time | it says maxUnavailable 0: say 1, or take the budget away for the night",
        ),
        (
            "cannot be computed",
            web(1),
            one(sync.clone()),
            "permanent (-): cannot be computed: no scale | its pods' owner has no scale subresource: use minAvailable with a whole number",
        ),
        (
            "never computed, and never changed",
            web(1),
            one(with(sync.clone(), json!({"status": {"observedGeneration": null}}))),
            "permanent (-): cannot be computed: no scale | its pods' owner has no scale subresource: use minAvailable with a whole number",
        ),
        (
            "changed since it could not be computed",
            web(1),
            one(with(sync, json!({"metadata": {"generation": 2}}))),
            "now (-): was changed and is not computed yet; before that it could not be computed: no scale | it is looked at again; whether it can be computed now is known once its controller has tried",
        ),
        (
            "sick elsewhere",
            web(1),
            one(status(0, 2, 2, 3)),
            "now (-): 1 of its 3 pods are not healthy, and it needs 2 | it lets go again once they are",
        ),
        (
            "sick here",
            sick(),
            one(status(0, 1, 2, 3)),
            "now (-): 2 of its 3 pods are not healthy, and it needs 2; not Ready here: shop/web-1 | it lets go again once they are",
        ),
        ("counts none yet", web(1), one(status(0, 0, 0, 0)), "now (-): it counts no pods yet | "),
        (
            "not observed",
            web(1),
            one(json!({"metadata": {"generation": 2}})),
            "now (-): was changed and is not computed yet | ",
        ),
        (
            "only unready ones",
            vec![pod_document("web-1", unready())],
            one(status(0, 2, 2, 3)),
            "free (0): no pod here takes one of what it allows | ",
        ),
        (
            "a database's primary is waited for",
            cnpg(),
            selects(json!({"cnpg.io/cluster": "db", "cnpg.io/instanceRole": "primary"}), status(0, 1, 1, 1)),
            "now (-): it keeps the primary until that has moved; CloudNativePG lifts it by itself | the operator moves the primary to another node once this one is cordoned; a cluster of one instance never goes: set nodeMaintenanceWindow inProgress with reusePVC, or enablePDB: false",
        ),
        (
            "an instance manager is waited for",
            longhorn(),
            selects(json!({"longhorn.io/component": "instance-manager"}), status(0, 1, 1, 1)),
            "now (-): it keeps all of them for now; Longhorn lifts it by itself | Longhorn lifts it when no volume needs this node any more; see its setting node-drain-policy where a volume has its last copy here",
        ),
        ("no pod of it here", web(1), selects(json!({"app": "db"}), json!({})), ""),
    ];
    for (row, pods, budgets, wanted) in rows {
        assert_eq!(verdict(pods, budgets), wanted, "{row}");
    }
}
