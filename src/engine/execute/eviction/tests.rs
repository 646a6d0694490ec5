//! Every answer of the eviction API, and what is made of it.

use std::sync::Arc;

use super::*;

/// A Status as the API server writes it.
fn status(code: u16, reason: &str, message: &str, details: Value) -> Reply {
    let mut body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "code": code});
    if !reason.is_empty() {
        body["reason"] = json!(reason);
    }
    if !details.is_null() {
        body["details"] = details;
    }
    Reply { code, retry_after_seconds: None, document: Some(Arc::new(body)), text: String::new() }
}

fn plain(code: u16, retry_after_seconds: Option<i64>, text: &str) -> Reply {
    Reply { code, retry_after_seconds, document: None, text: text.to_owned() }
}

fn budget(cause: &str, retry: Option<i64>) -> Reply {
    let no = "Cannot evict pod as it would violate the pod's disruption budget.";
    let causes = json!([{"reason": "DisruptionBudget", "message": cause}]);
    let mut reply = status(429, "TooManyRequests", no, json!({"causes": causes, "retryAfterSeconds": retry}));
    reply.retry_after_seconds = retry;
    reply
}

fn refused(budget: Option<&str>, message: &str, retry_after_seconds: Option<i64>) -> Answer {
    Answer::RefusedByBudget { budget: budget.map(str::to_owned), message: message.to_owned(), retry_after_seconds }
}

#[test]
fn a_budget_is_told_from_a_server_that_sheds_load() {
    let needs = "The disruption budget web needs 2 healthy pods and has 2 currently";
    let sync = "The disruption budget web does not allow evicting pods currently because it failed sync: foos.example.com does not implement the scale subresource";
    let wait = "The disruption budget web is still being processed by the server.";
    let overload = "Too many requests, please try again later.";
    let big = "poddisruptionbudget.policy \"web\" is forbidden: DisruptedPods map too big";
    let rows = [
        ("spent", budget(needs, None), refused(Some("web"), needs, None)),
        ("failed sync", budget(sync, None), refused(Some("web"), sync, None)),
        ("not observed", budget(wait, Some(10)), refused(Some("web"), wait, Some(10))),
        ("other words", budget("no", None), refused(None, "no", None)),
        (
            "a cause without words",
            status(429, "TooManyRequests", "no", json!({"causes": [{"reason": "DisruptionBudget"}]})),
            refused(None, "no", None),
        ),
        (
            "too many disrupted pods",
            status(403, "Forbidden", big, json!({"kind": "poddisruptionbudget", "group": "policy", "name": "web"})),
            refused(Some("web"), big, None),
        ),
        ("load", plain(429, Some(1), overload), Answer::Throttled { retry_after_seconds: Some(1) }),
        ("load without a time", plain(429, None, overload), Answer::Throttled { retry_after_seconds: None }),
        (
            "load in a Status",
            status(429, "TooManyRequests", "storage is (re)initializing", json!({"retryAfterSeconds": 3})),
            Answer::Throttled { retry_after_seconds: Some(3) },
        ),
    ];
    for (row, reply, wanted) in rows {
        assert_eq!(answer_of(&reply), wanted, "{row}");
    }
}

#[test]
fn every_other_answer_is_told_by_its_cause() {
    let success = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    let accepted = |code| Reply {
        code,
        retry_after_seconds: None,
        document: Some(Arc::new(success.clone())),
        text: String::new(),
    };
    let gone = json!({"name": "a", "kind": "pods"});
    let denied = "admission webhook \"drain.example.com\" denied the request: the pod is being moved";
    let policy = "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
    let ends = json!({"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]});
    let two = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    let rows = [
        ("201", accepted(201), "accepted"),
        ("200", accepted(200), "accepted"),
        ("201 without a body", plain(201, None, ""), "accepted"),
        ("201 that says failure", status(201, "", "no", Value::Null), "unknown"),
        ("202", accepted(202), "unknown"),
        ("gone", status(404, "NotFound", "pods \"a\" not found", gone), "gone"),
        ("no such path", plain(404, None, "404 page not found\n"), "unknown"),
        ("no such resource", status(404, "NotFound", "could not find the requested resource", json!({})), "unknown"),
        ("another uid", status(409, "Conflict", "Precondition failed: UID", Value::Null), "uid-conflict"),
        ("the namespace ends", status(403, "Forbidden", "forbidden", ends), "namespace-terminating"),
        ("no right", status(403, "Forbidden", "pods \"a\" is forbidden: User", json!({"kind": "pods"})), "forbidden"),
        ("not known", status(401, "Unauthorized", "Unauthorized", Value::Null), "transient"),
        ("two budgets", status(500, "", two, Value::Null), "two-budgets"),
        ("a webhook", status(400, "", denied, Value::Null), "webhook-denied"),
        ("a webhook that says 429", status(429, "", denied, json!({"retryAfterSeconds": 5})), "webhook-denied"),
        ("a webhook that says 500", status(500, "", denied, Value::Null), "webhook-denied"),
        ("a policy", status(422, "Invalid", policy, Value::Null), "webhook-denied"),
        ("an unknown field", status(400, "BadRequest", "strict decoding error", Value::Null), "invalid"),
        ("invalid", status(422, "Invalid", "invalid", Value::Null), "invalid"),
        ("etcd", status(500, "InternalError", "etcdserver: request timed out", Value::Null), "transient"),
        ("conflicts", status(504, "Timeout", "couldn't update PodDisruptionBudget", Value::Null), "transient"),
        (
            "a webhook that does not answer",
            status(500, "InternalError", "failed calling webhook", json!({})),
            "transient",
        ),
        ("a gateway", plain(502, None, "Bad Gateway"), "transient"),
        ("a redirect", plain(302, None, ""), "unknown"),
        ("a teapot", plain(418, None, ""), "unknown"),
    ];
    for (row, reply, wanted) in rows {
        assert_eq!(answer_of(&reply).category(), wanted, "{row}");
    }
}

#[test]
fn a_pod_that_is_no_longer_what_was_planned_is_not_asked_for() {
    let eviction = Eviction {
        namespace: "default".to_owned(),
        name: "a".to_owned(),
        uid: "u".to_owned(),
        grace_seconds: None,
        lane: maint_core::drain::Lane::Pod("u".to_owned()),
        origin: None,
        basis: String::new(),
    };
    let pod = |uid: &str, node: &str| json!({"metadata": {"name": "a", "uid": uid}, "spec": {"nodeName": node}});
    let mut ending = pod("u", "n1");
    ending["metadata"]["deletionTimestamp"] = json!("2026-11-30T02:00:00Z");
    let rows = [
        ("the same", Some(pod("u", "n1")), None),
        ("gone", None, Some(Answer::Gone)),
        ("a successor", Some(pod("v", "n1")), Some(Answer::UidConflict)),
        ("on another node", Some(pod("u", "n2")), Some(Answer::UidConflict)),
        ("without a uid", Some(json!({"metadata": {}, "spec": {"nodeName": "n1"}})), Some(Answer::UidConflict)),
        ("ending", Some(ending), Some(Answer::Accepted)),
    ];
    for (row, pod, wanted) in rows {
        assert_eq!(compared(pod.as_ref(), "n1", &eviction), wanted, "{row}");
    }
    // The key that guards it is the API's own, not Rust's: a wrong one is dropped without an error by a lenient server.
    assert_eq!(body(&eviction)["deleteOptions"], json!({"preconditions": {"uid": "u"}}));
    let typed: k8s_openapi::api::policy::v1::Eviction = serde_json::from_value(body(&eviction)).expect("an Eviction");
    let uid = typed.delete_options.and_then(|options| options.preconditions?.uid);
    assert_eq!(uid.as_deref(), Some("u"));
}

#[test]
fn grace_stands_beside_the_uid_where_the_configuration_says_one() {
    let eviction = |grace_seconds| Eviction {
        namespace: "default".to_owned(),
        name: "a".to_owned(),
        uid: "u".to_owned(),
        grace_seconds,
        lane: maint_core::drain::Lane::Pod("u".to_owned()),
        origin: None,
        basis: String::new(),
    };
    assert_eq!(body(&eviction(None))["deleteOptions"], json!({"preconditions": {"uid": "u"}}));
    let wanted = json!({"preconditions": {"uid": "u"}, "gracePeriodSeconds": 5});
    assert_eq!(body(&eviction(Some(5)))["deleteOptions"], wanted);
}
