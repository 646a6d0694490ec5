//! The preview as people and programs get it.

use serde_json::{Value, json};

use super::super::testing::{Cluster, budget_document, look, now, of_set, pod_document, settings, status, workload};
use super::DrainPlan;

fn plan(cluster: &Cluster) -> DrainPlan {
    look(&cluster.facts(now()), &settings(""), now(), |view| DrainPlan::of(view, 1800))
}

fn grace(name: &str, labels: Value, seconds: i64) -> Value {
    pod_document(name, json!({"metadata": {"labels": labels}, "spec": {"terminationGracePeriodSeconds": seconds}}))
}

#[test]
fn the_verdict_comes_first_then_why() {
    let cluster = Cluster {
        pods: vec![
            grace("web-1", json!({"app": "web"}), 10),
            grace("web-2", json!({"app": "web"}), 10),
            grace("api-1", json!({"app": "api"}), 20),
            pod_document(
                "dns-1",
                json!({"metadata": {"namespace": "kube-system"}, "spec": {"priorityClassName": "system-cluster-critical"}}),
            ),
            pod_document(
                "static",
                json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}, "ownerReferences": []}}),
            ),
            pod_document("done", json!({"status": {"phase": "Succeeded"}})),
        ],
        budgets: vec![budget_document("web", json!({}))],
        replica_sets: vec![workload("web", 1, 1)],
        ..Cluster::default()
    };
    let wanted = "\
n1 has 4 pods to evict in 2 waves, about 80 s
budget shop/web (waves): 2 here, 1 may go at a time
wave 1 (ordinary): 3 pods, about 50 s
  shop/api-1 (20 s)
  shop/web-1 (10 s, budget shop/web)
  shop/web-2 (10 s, budget shop/web)
wave 2 (critical): 1 pod, about 30 s
  kube-system/dns-1 (30 s)
stays: 2 pods
  shop/done (finished)
  shop/static (static pod)
warning: ReplicaSet kube-system/web has one replica: it is away until that runs elsewhere
  to keep it up, start a second one first: kubectl -n kube-system scale replicaset web --replicas=2
warning: ReplicaSet shop/web has one replica: it is away until that runs elsewhere
  to keep it up, start a second one first: kubectl -n shop scale replicaset web --replicas=2
";
    assert_eq!(plan(&cluster).to_string(), wanted);
}

#[test]
fn what_never_goes_is_said_first_with_what_helps() {
    let web = || pod_document("web-1", json!({}));
    let bare = || pod_document("bare", json!({"metadata": {"labels": {"app": "x"}, "ownerReferences": []}}));
    let rows: Vec<(&str, Vec<Value>, Vec<Value>, &str)> = vec![
        (
            "bare",
            vec![bare()],
            vec![],
            "n1 cannot be drained: 1 pod never goes\nnever goes: shop/bare has no controller, so nothing would bring it back\n  delete it, or let it go: kubectl -n shop annotate pod bare maint.dev/evict=true\n",
        ),
        (
            "two budgets",
            vec![web()],
            vec![budget_document("a", json!({})), budget_document("b", json!({}))],
            "n1 cannot be drained: 1 pod never goes\nnever goes: shop/web-1 has more than one budget (shop/a, shop/b), so every eviction is refused\n  change the selectors so that one budget covers it\n",
        ),
        (
            "a permanent budget",
            vec![web()],
            vec![budget_document("a", super::super::testing::status(0, 2, 2, 2))],
            "n1 cannot be drained: 1 pod never goes\nnever goes: shop/web-1 is kept by budget shop/a: it wants all 2 pods healthy at any time\n  it says minAvailable ? of 2: say maxUnavailable: 1, or scale its workload up\n",
        ),
        (
            "two of them",
            vec![bare(), web()],
            vec![budget_document("a", status(0, 2, 2, 2))],
            "n1 cannot be drained: 2 pods never go\n",
        ),
        (
            "held for now",
            vec![web()],
            vec![budget_document("a", status(0, 2, 2, 3))],
            "n1 has 1 pod to evict, and 1 budget allows none now\nbudget shop/a (now): 1 of its 3 pods are not healthy, and it needs 2\n  it lets go again once they are\nwave 1 (ordinary): 1 pod, about 30 s\n  shop/web-1 is blocked by budget shop/a: which needs 2 healthy pods and has 2\n",
        ),
        ("nothing", vec![], vec![], "n1 has nothing to drain\n"),
        (
            "budgets that are not understood",
            vec![web()],
            vec![budget_document("a", json!({"status": {"expectedPods": null}}))],
            "whether n1 can be drained is not known: PodDisruptionBudget shop/a: status.expectedPods is null\nnot known: PodDisruptionBudget shop/a: status.expectedPods is null\n",
        ),
    ];
    for (row, pods, budgets, wanted) in rows {
        let found = plan(&Cluster { pods, budgets, ..Cluster::default() });
        assert!(found.to_string().starts_with(wanted), "{row}:\n{found}");
        assert_eq!(found.estimate_seconds.is_none(), row != "nothing", "{row}: an estimate only where nothing blocks");
    }
}

#[test]
fn an_estimate_counts_the_rounds_of_the_slowest_lane() {
    let web = |count: usize| -> Vec<Value> {
        (0..count).map(|n| grace(&format!("web-{n}"), json!({"app": "web"}), 30)).collect()
    };
    let sets = |count: usize| -> Vec<Value> { (0..count).map(|n| of_set("db", n)).collect() };
    let unready = pod_document(
        "web-9",
        json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}, "spec": {"terminationGracePeriodSeconds": 5}}),
    );
    let rows: Vec<(&str, Vec<Value>, i64, i64)> = vec![
        ("one", web(1), 1, 30),
        ("two, one at a time", web(2), 1, 90),
        ("five, two at a time", web(5), 2, 150),
        ("five, five at a time", web(5), 5, 30),
        ("a StatefulSet's, one at a time", sets(3), 1, 150),
        ("one that the budget lets go beside", [web(1), vec![unready]].concat(), 1, 30),
    ];
    for (row, pods, allowed, wanted) in rows {
        let budgets = vec![budget_document("web", status(allowed, 9, 4, 9))];
        let found = plan(&Cluster { pods, budgets, ..Cluster::default() });
        assert_eq!(found.estimate_seconds, Some(wanted), "{row}:\n{found}");
    }
    let long = plan(&Cluster { pods: vec![grace("web-0", json!({}), 7200)], ..Cluster::default() });
    assert!(
        long.verdict_line().ends_with("about 2 h, more than the 30 min that it may take"),
        "{}",
        long.verdict_line()
    );
}

#[test]
fn programs_get_it_as_json() {
    let cluster = Cluster {
        pods: vec![pod_document("web-1", json!({}))],
        budgets: vec![budget_document("web", json!({}))],
        ..Cluster::default()
    };
    let wanted = json!({
        "node": "n1",
        "waves": [{"wave": {"order": 0, "kind": "ordinary"}, "estimateSeconds": 30,
            "pods": [{"namespace": "shop", "name": "web-1", "graceSeconds": 30, "budget": "shop/web"}]}],
        "stays": [], "never": [],
        "budgets": [{"namespace": "shop", "name": "web", "verdict": "waves", "pods": 1, "allowed": 1, "rounds": 1,
            "why": "1 here, 1 may go at a time"}],
        "warnings": [], "estimateSeconds": 30, "deadlineSeconds": 1800,
    });
    assert_eq!(serde_json::to_value(plan(&cluster)).expect("JSON"), wanted);
}
