//! Exit 4, never 0 or 3: something cannot be read, and maint says what.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use http::Method;
use maint_core::facts::SOURCES;
use serde_json::json;

use super::super::{Case, case};
use super::{Answer, check, row_done};
use crate::harness::client::Client;
use crate::harness::garble::{Garble, Garbler};
use crate::harness::net::NODES;
use crate::harness::objects::CASE_LABEL;
use crate::harness::{Cluster, wait};

/// What is not readable, and exactly which gates cannot be judged then.
struct Row {
    /// Of the case where the right is missing.
    name: &'static str,
    /// As in rights and paths.
    resource: &'static str,
    /// As in the evidence.
    source: &'static str,
    gates: &'static [&'static str],
}

/// These three are also spoiled in other ways.
const VOLUMES: Row = Row {
    name: "check::volumes_forbidden",
    resource: "volumes",
    source: "longhorn-volumes",
    gates: &["longhorn-volumes", "longhorn-system", "backups"],
};
const AUTOSCALERS: Row = Row {
    name: "check::autoscalers_forbidden",
    resource: "horizontalpodautoscalers",
    source: "horizontal-pod-autoscalers",
    gates: &["coredns-hpa"],
};
const SLICES: Row = Row {
    name: "check::endpoint_slices_forbidden",
    resource: "endpointslices",
    source: "endpoint-slices",
    gates: &["coredns-replicas", "coredns-spread"],
};

const ROWS: &[Row] = &[
    VOLUMES,
    AUTOSCALERS,
    SLICES,
    Row {
        name: "check::replicas_forbidden",
        resource: "replicas",
        source: "longhorn-replicas",
        gates: &["longhorn-volumes", "longhorn-system", "backups"],
    },
    Row {
        name: "check::engines_forbidden",
        resource: "engines",
        source: "longhorn-engines",
        gates: &["longhorn-volumes", "longhorn-system", "backups"],
    },
    Row {
        name: "check::longhorn_nodes_forbidden",
        resource: "nodes",
        source: "longhorn-nodes",
        gates: &["longhorn-system"],
    },
    Row {
        name: "check::instance_managers_forbidden",
        resource: "instancemanagers",
        source: "longhorn-instance-managers",
        gates: &["longhorn-system"],
    },
    Row {
        name: "check::longhorn_attachments_forbidden",
        resource: "volumeattachments",
        source: "longhorn-attachments",
        gates: &["longhorn-system", "backups"],
    },
    Row { name: "check::backups_forbidden", resource: "backups", source: "longhorn-backups", gates: &["backups"] },
    Row {
        name: "check::services_forbidden",
        resource: "services",
        source: "services",
        gates: &["coredns-replicas", "coredns-spread", "coredns-hpa"],
    },
    Row {
        name: "check::deployments_forbidden",
        resource: "deployments",
        source: "deployments",
        gates: &["coredns-replicas", "coredns-hpa"],
    },
    Row {
        name: "check::leases_forbidden",
        resource: "leases",
        source: "leases",
        gates: &["nodes-ready", "coredns-replicas", "coredns-spread", "coredns-hpa", "control-plane"],
    },
    Row {
        name: "check::daemon_sets_forbidden",
        resource: "daemonsets",
        source: "daemon-sets",
        gates: &["exclusive", "kured", "network-agent"],
    },
    // DNS needs none of them: its Service and slices name the endpoints.
    Row {
        name: "check::pods_forbidden",
        resource: "pods",
        source: "target-pods",
        gates: &["disruption-budgets", "workloads", "backups"],
    },
    Row {
        name: "check::budgets_forbidden",
        resource: "poddisruptionbudgets",
        source: "pod-disruption-budgets",
        gates: &["longhorn-system", "disruption-budgets"],
    },
    Row {
        name: "check::attachments_forbidden",
        resource: "volumeattachments",
        source: "volume-attachments",
        gates: &["attachments"],
    },
    Row { name: "check::jobs_forbidden", resource: "jobs", source: "jobs", gates: &["upgrades"] },
    // Without the right nobody can tell that the kind is not there.
    Row { name: "check::plans_forbidden", resource: "plans", source: "upgrade-plans", gates: &["upgrades"] },
    Row {
        name: "check::config_maps_forbidden",
        resource: "configmaps",
        source: "config-maps",
        gates: &["control", "control-plane", "kubelet-reachability"],
    },
    Row {
        name: "check::records_forbidden",
        resource: "maintenances",
        source: "maintenances",
        gates: &["control", "exclusive", "coredns-spread", "control-plane"],
    },
    Row {
        name: "check::reports_forbidden",
        resource: "maintenancereports",
        source: "maintenance-reports",
        gates: &["control"],
    },
    Row {
        name: "check::nodes_forbidden",
        resource: "nodes",
        source: "nodes",
        gates: &[
            "control",
            "exclusive",
            "target",
            "nodes-ready",
            "coredns-replicas",
            "coredns-spread",
            "longhorn-volumes",
            "longhorn-system",
            "attachments",
            "control-plane",
            "kubelet-reachability",
        ],
    },
];

/// How the three lists are spoiled, and how the gates tell it.
const GARBLES: &[(&str, Garble, &str)] = &[
    ("check::lists_time_out", Garble::Hang, "timeout"),
    ("check::lists_are_pages_for_people", Garble::Html, "server"),
    ("check::lists_are_of_another_kind", Garble::OtherKind, "server"),
    ("check::lists_are_cut_off", Garble::Cut, "transport"),
    ("check::lists_are_errors", Garble::Error, "server"),
];

pub fn cases() -> Vec<Case> {
    let forbidden = ROWS.iter().map(|row| case(row.name, |cluster| forbidden(cluster, row)));
    let garbled = GARBLES.iter().map(|(name, how, value)| case(name, |cluster| garbled(cluster, *how, value)));
    let others = [case("check::probes_forbidden", probes_forbidden), case("check::objects_are_odd", odd_objects)];
    forbidden.chain(garbled).chain(others).collect()
}

/// The source cannot be read in this way, and exactly these gates cannot be judged.
fn expect_unread(answer: &Answer, row: &Row, value: &str) -> Result<()> {
    answer.stops(4, "block")?;
    ensure!(answer.gates("unknown") == row.gates, "unknown: {:?}, wanted {:?}", answer.gates("unknown"), row.gates);
    for gate in row.gates {
        let finding = answer.finding(gate)?;
        // Which API servers there should be is itself told by lists.
        let told = [row.source, "api-servers", "matrix"].iter().any(|source| {
            let shown = json!({ "object": source, "field": "read", "value": value, "wanted": "an answer" });
            finding["evidence"].as_array().is_some_and(|evidence| evidence.contains(&shown))
        });
        ensure!(finding["reason"] == "ObservationFailed" && told, "{gate}: {finding}");
    }
    let told = format!("ObservationFailed: {} could not be read ({value}): ", row.source);
    ensure!(answer.text.contains(&told), "people are not told `{told}`:\n{}", answer.text);
    row_done();
    Ok(())
}

/// A service account with every right of the source table but those on one resource of a group; its kubeconfig.
async fn account_without(cluster: &Cluster, group: &str, resource: &str) -> Result<std::path::PathBuf> {
    let namespace = "default";
    let client = cluster.client(1).await?;
    let group_name = if group.is_empty() { "core" } else { group };
    let account = format!("without-{}-{}", resource.replace('/', "-"), group_name.replace('.', "-"));
    let labels = json!({ CASE_LABEL: "true" });
    let mut rules: Vec<_> = SOURCES
        .iter()
        .filter(|spec| (spec.group, spec.resource) != (group, resource))
        .map(|spec| json!({ "apiGroups": [spec.group], "resources": [spec.resource], "verbs": ["get", "list", "watch"] }))
        .collect();
    if resource != "nodes/proxy" {
        rules.push(json!({ "apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"] }));
    }
    // One right that no role of the cluster gives: it shows when a server has taken notice of this one.
    rules.push(json!({ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }));
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": account, "labels": labels }, "rules": rules });
    let binding = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": account, "labels": labels },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": account },
        "subjects": [{ "kind": "ServiceAccount", "namespace": namespace, "name": account }] });
    let object =
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": account, "labels": labels } });
    client.create(&format!("/api/v1/namespaces/{namespace}/serviceaccounts"), &object).await?;
    client.create(&format!("{rbac}/clusterroles"), &role).await?;
    client.create(&format!("{rbac}/clusterrolebindings"), &binding).await?;
    let kubeconfig = cluster.kubeconfig_for(namespace, &account).await?;
    for i in 1..=NODES {
        let client = Client::for_context(&kubeconfig, Some(&format!("server-{i}")), "case").await?;
        wait::until(wait::SHORT, format!("API server {i} to know the rights of {account}"), || async {
            Ok((client.call(Method::GET, "/metrics", &[], None).await?.status == 200).then_some(()))
        })
        .await?;
    }
    Ok(kubeconfig)
}

async fn forbidden(cluster: Arc<Cluster>, row: &'static Row) -> Result<()> {
    let spec = SOURCES.iter().find(|spec| spec.id.as_str() == row.source).context("a source")?;
    let kubeconfig = account_without(&cluster, spec.group, row.resource).await?;
    expect_unread(&check(&cluster, &kubeconfig, &["worker2"]).await?, row, "forbidden")
}

async fn probes_forbidden(cluster: Arc<Cluster>) -> Result<()> {
    let kubeconfig = account_without(&cluster, "", "nodes/proxy").await?;
    let answer = check(&cluster, &kubeconfig, &["worker2"]).await?;
    answer.stops(4, "block")?;
    ensure!(answer.gates("unknown") == ["kubelet-reachability"], "{}", answer.text);
    let finding = answer.finding("kubelet-reachability")?;
    ensure!(finding["reason"] == "KubeletPathUnknown", "{finding}");
    ensure!(answer.text.contains("nodes/proxy"), "the right is not named:\n{}", answer.text);
    row_done();
    Ok(())
}

/// All three at once, each through a proxy of its own: waiting for nothing takes as long as it takes.
async fn garbled(cluster: Arc<Cluster>, how: Garble, value: &'static str) -> Result<()> {
    let cluster = &cluster;
    try_join_all([&VOLUMES, &AUTOSCALERS, &SLICES].map(|row| async move {
        let proxy = Garbler::start(cluster, row.resource, how).await?;
        let answer = check(cluster, proxy.kubeconfig(), &["worker2"]).await?;
        ensure!(proxy.spoiled() > 0, "nobody asked for {}", row.resource);
        expect_unread(&answer, row, value).with_context(|| row.resource)
    }))
    .await
    .map(drop)
}

/// One field of the first object has another type than it should: that object is named.
async fn odd_objects(cluster: Arc<Cluster>) -> Result<()> {
    for (row, field, object) in [
        (&VOLUMES, "/status/robustness", "Volume longhorn-system/pvc-archive: status.robustness"),
        (&AUTOSCALERS, "/status/conditions", "HorizontalPodAutoscaler kube-system/coredns: status.conditions"),
        (&SLICES, "/endpoints", "EndpointSlice kube-system/kube-dns-"),
    ] {
        let proxy = Garbler::start(&cluster, row.resource, Garble::OddObject(field)).await?;
        let answer = check(&cluster, proxy.kubeconfig(), &["worker2"]).await?;
        answer.stops(4, "block")?;
        ensure!(answer.text.contains(object), "{object} is not named:\n{}", answer.text);
        row_done();
    }
    Ok(())
}
