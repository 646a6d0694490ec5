//! Which API servers are expected.

use jiff::Timestamp;
use maint_core::facts::{EndpointSlice, Listed, Source};
use serde_json::{Value, json};

use super::*;

fn known<S: Source>(items: &[Value]) -> Listed<S> {
    Observation::Known { value: items.iter().map(S::item).collect(), at: Timestamp::UNIX_EPOCH }
}

fn node(name: &str, server: bool, ips: &[&str]) -> Value {
    let labels = if server { json!({"node-role.kubernetes.io/control-plane": ""}) } else { json!({}) };
    let addresses: Vec<Value> = ips.iter().map(|ip| json!({"type": "InternalIP", "address": ip})).collect();
    json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {}, "status": {"nodeInfo": {"bootID": "b"}, "addresses": addresses},
    })
}

fn slice(namespace: &str, service: &str, ips: &[&str]) -> Value {
    json!({
        "metadata": {"name": "x", "namespace": namespace, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4", "endpoints": [{"addresses": ips}],
    })
}

fn state(servers: &str) -> Value {
    json!({"metadata": {"name": "maint-state", "namespace": "maint"}, "data": {"api-servers": servers}})
}

fn facts(nodes: &[Value], maps: &[Value], slices: &[Value]) -> Facts {
    Facts {
        nodes: known::<Node>(nodes),
        config_maps: known::<ConfigMap>(maps),
        endpoint_slices: known::<EndpointSlice>(slices),
        ..Facts::default()
    }
}

fn shown(facts: &Facts, settings: &Settings) -> Vec<String> {
    let servers = expected(facts, settings).expect("known");
    servers
        .iter()
        .map(|server| {
            let address = server.address.as_deref().unwrap_or("-");
            format!("{} {address} on {}", server.name, server.node.as_deref().unwrap_or("-"))
        })
        .collect()
}

#[test]
fn labels_settings_and_memory_name_them_and_the_slice_only_adds() {
    let plain = Settings::default();
    let mut named = Settings::default();
    named.control_plane.api_servers.insert("s1".to_owned(), "192.168.0.1:7443".to_owned());
    named.control_plane.api_servers.insert("vip".to_owned(), "10.0.0.3:6443".to_owned());
    let three =
        [node("s2", true, &["10.0.0.2"]), node("s1", true, &["10.0.0.1", "fd00::1"]), node("w1", false, &["10.0.0.3"])];
    let rows: Vec<(&str, Facts, &Settings, &[&str])> = vec![
        ("labels", facts(&three, &[], &[]), &plain, &["s1 10.0.0.1:6443 on s1", "s2 10.0.0.2:6443 on s2"]),
        (
            "settings win over labels",
            facts(&three, &[], &[]),
            &named,
            &["s1 192.168.0.1:7443 on s1", "s2 10.0.0.2:6443 on s2", "vip 10.0.0.3:6443 on w1"],
        ),
        (
            "a server that vanished is remembered",
            facts(&three, &[state(r#"{"s1": "10.0.0.1:6443", "s3": "10.0.0.4:6443"}"#)], &[]),
            &plain,
            &["s1 10.0.0.1:6443 on s1", "s2 10.0.0.2:6443 on s2", "s3 10.0.0.4:6443 on -"],
        ),
        (
            "the slice adds, by address or node",
            facts(&three, &[], &[slice("default", "kubernetes", &["10.0.0.9", "10.0.0.3", "10.0.0.1"])]),
            &plain,
            &[
                "10.0.0.9:6443 10.0.0.9:6443 on -",
                "s1 10.0.0.1:6443 on s1",
                "s2 10.0.0.2:6443 on s2",
                "w1 10.0.0.3:6443 on w1",
            ],
        ),
        (
            "the second family of a node is no further server",
            facts(&three, &[], &[slice("default", "kubernetes", &["fd00::1"])]),
            &plain,
            &["s1 10.0.0.1:6443 on s1", "s2 10.0.0.2:6443 on s2"],
        ),
        (
            "other slices do not count",
            facts(&three, &[], &[slice("default", "web", &["10.0.0.9"]), slice("x", "kubernetes", &["10.0.0.8"])]),
            &plain,
            &["s1 10.0.0.1:6443 on s1", "s2 10.0.0.2:6443 on s2"],
        ),
        ("IPv6 alone", facts(&[node("s1", true, &["fd00::1"])], &[], &[]), &plain, &["s1 [fd00::1]:6443 on s1"]),
        ("no address", facts(&[node("s1", true, &[])], &[], &[]), &plain, &["s1 - on s1"]),
        (
            "a malformed Node might be one",
            facts(&[node("s1", true, &["10.0.0.1"]), json!({"metadata": {"name": "s2"}})], &[], &[]),
            &plain,
            &["s1 10.0.0.1:6443 on s1", "s2 - on s2"],
        ),
    ];
    for (row, facts, settings, wanted) in rows {
        assert_eq!(shown(&facts, settings), wanted, "{row}");
    }
}

#[test]
fn what_is_not_known_is_an_error() {
    let server = [node("s1", true, &["10.0.0.1"])];
    let mut unread = facts(&server, &[], &[]);
    unread.config_maps =
        Observation::Failed { kind: FailureKind::Forbidden, detail: "HTTP 403".to_owned(), at: Timestamp::UNIX_EPOCH };
    let slice_only = facts(&[node("w1", false, &["10.0.0.3"])], &[], &[slice("default", "kubernetes", &["10.0.0.9"])]);
    let rows = [
        ("no nodes read", Facts::default(), FailureKind::Server, "nodes were not read"),
        ("only the slice", slice_only, FailureKind::Partial, "[control_plane] api_servers names none"),
        (
            "only a malformed Node",
            facts(&[json!({"metadata": {"name": "x"}})], &[], &[]),
            FailureKind::Partial,
            "is not known",
        ),
        (
            "memory is no JSON",
            facts(&server, &[state("s1=10.0.0.1")], &[]),
            FailureKind::Partial,
            "data.api-servers cannot be read",
        ),
        (
            "memory is no map",
            facts(&server, &[state(r#"["10.0.0.1:6443"]"#)], &[]),
            FailureKind::Partial,
            "cannot be read",
        ),
        ("memory unread", unread, FailureKind::Forbidden, "last known good API servers could not be read"),
    ];
    for (row, facts, kind, part) in rows {
        let (found, detail) = expected(&facts, &Settings::default()).expect_err(row);
        assert!(found == kind && detail.contains(part), "{row}: {found}: {detail}");
    }
}

#[test]
fn every_node_with_a_name_is_a_column() {
    let facts = facts(&[node("b", false, &[]), json!({"metadata": {"name": "a"}}), json!({})], &[], &[]);
    assert_eq!(node_names(&facts), ["a", "b"]);
}
