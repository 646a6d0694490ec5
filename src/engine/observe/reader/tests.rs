//! Every class of answer to a list.

use maint_core::facts::{Node, Source, longhorn};
use serde_json::json;

use super::*;
use crate::testing::{Reply, client, cut, env, json as answer, no_such_path, refused, reply, silence, status};

fn request(spec: &SourceSpec) -> PageRequest<'_> {
    PageRequest { spec, namespace: None, label_selector: None, field_selector: None, continue_token: None, limit: 500 }
}

async fn read(spec: &SourceSpec, reply: impl Fn() -> Reply + Send + Sync + 'static) -> Result<Page<Node>, ReadError> {
    let (env, _owner) = env();
    KubeReader::new(client(move |_| reply()), env.clock).list_page(&request(spec)).await
}

#[tokio::test(start_paused = true)]
async fn answers_are_told_apart() {
    type Row = (&'static str, fn() -> Reply, &'static str, &'static str);
    let rows: [Row; 20] = [
        ("CRD missing", no_such_path, "absent", "does not know this kind"),
        (
            "aggregated kind missing",
            || status(404, "NotFound", "the server could not find the requested resource"),
            "absent",
            "",
        ),
        (
            "404 that names an object",
            || {
                answer(
                    404,
                    &json!({"kind": "Status", "reason": "NotFound", "message": "namespaces \"x\" not found", "details": {"name": "x"}}),
                )
            },
            "server",
            "HTTP 404: namespaces \"x\" not found",
        ),
        (
            "404 of a web server",
            || reply(404, &[], "<html>not here</html>"),
            "server",
            "HTTP 404: `<html>not here</html>`",
        ),
        ("404 of a load balancer", || reply(404, &[], "default backend - 404"), "server", "default backend"),
        (
            "forbidden",
            || status(403, "Forbidden", "volumes.longhorn.io is forbidden"),
            "forbidden",
            "HTTP 403: volumes.longhorn.io is forbidden",
        ),
        ("token rejected", || status(401, "Unauthorized", "Unauthorized"), "forbidden", "HTTP 401: Unauthorized"),
        (
            "CRD just made",
            || status(429, "TooManyRequests", "storage is (re)initializing"),
            "server",
            "HTTP 429: storage is (re)initializing",
        ),
        (
            "expired",
            || status(410, "Expired", "The provided continue parameter is too old"),
            "server",
            "continue parameter is too old",
        ),
        ("500", || status(500, "", "etcdserver: request timed out"), "server", "HTTP 500: etcdserver"),
        ("503 in plain text", || reply(503, &[], "apiserver not ready"), "server", "HTTP 503: `apiserver not ready`"),
        ("redirect", || reply(302, &[("location", "/login")], ""), "server", "HTTP 302: ``"),
        ("no answer", silence, "timeout", "no answer within 15 s"),
        ("refused", refused, "transport", "refused"),
        ("cut off", || cut(200, "{\"kind\":\"VolumeList\",\"items\":["), "transport", "HTTP 200, then cut off"),
        (
            "rubbish",
            || reply(200, &[], "<html>\u{1b}[31mlogin</html>"),
            "server",
            "no list (expected value at line 1 column 1): `<html>\\u{1b}[31mlogin</html>`",
        ),
        (
            "half a list, complete by its length",
            || reply(200, &[], "{\"kind\":\"VolumeList\",\"items\":["),
            "server",
            "no list (EOF",
        ),
        (
            "a single object",
            || answer(200, &json!({"kind": "Volume", "metadata": {"name": "v"}})),
            "server",
            "a Volume instead of a VolumeList",
        ),
        (
            "another list",
            || answer(200, &json!({"kind": "NodeList", "items": []})),
            "server",
            "a NodeList instead of a VolumeList",
        ),
        ("items of another type", || answer(200, &json!({"kind": "VolumeList", "items": {}})), "server", "no list"),
    ];
    for (row, reply, category, part) in rows {
        let error = read(&longhorn::Volume::SPEC, reply).await.expect_err(row);
        assert_eq!(error.category(), category, "{row}: {error}");
        assert!(error.to_string().contains(part), "{row}: `{error}` lacks `{part}`");
    }
}

#[tokio::test(start_paused = true)]
async fn a_built_in_kind_is_never_absent() {
    let error = read(&Node::SPEC, no_such_path).await.expect_err("no API server");
    assert_eq!(error, ReadError::Server("HTTP 404: `404 page not found`".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn lists_without_objects_are_lists() {
    for (row, items) in [("empty", json!([])), ("null, as Go writes a nil slice", json!(null))] {
        let body = json!({"kind": "VolumeList", "metadata": {"continue": ""}, "items": items});
        let page = read(&longhorn::Volume::SPEC, move || answer(200, &body)).await.expect(row);
        assert_eq!((page.items.len(), page.continue_token), (0, None), "{row}");
    }
}

#[test]
fn the_request_asks_for_the_most_recent_state() {
    let pods = maint_core::facts::Pod::SPEC;
    let rows = [
        (request(&Node::SPEC), "/api/v1/nodes?limit=500"),
        (
            PageRequest { namespace: Some("kube-system"), continue_token: Some("a/b=="), ..request(&pods) },
            "/api/v1/namespaces/kube-system/pods?limit=500&labelSelector=k8s-app%3Dkube-dns&continue=a%2Fb%3D%3D",
        ),
        (
            PageRequest { namespace: Some("longhorn-system"), ..request(&longhorn::Volume::SPEC) },
            "/apis/longhorn.io/v1beta2/namespaces/longhorn-system/volumes?limit=500",
        ),
        (
            PageRequest { namespace: Some("../nodes?x"), ..request(&pods) },
            "/api/v1/namespaces/..%2Fnodes%3Fx/pods?limit=500&labelSelector=k8s-app%3Dkube-dns",
        ),
    ];
    for (request, wanted) in rows {
        assert_eq!(path(&request), wanted);
    }
}
