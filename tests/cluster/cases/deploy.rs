//! The manifests of `deploy/` on a real API server, and the service with exactly the rights that they give it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use http::Method;
use maint_core::api::rights::{Account, Place, Subject, grants};
use serde_json::{Value, json};

use super::run::{NODE, ensure_rebooted, ensure_released, ensure_tidy, going, workload};
use super::{Case, case};
use crate::harness::audit::{Entry, Log};
use crate::harness::client::Client;
use crate::harness::maint::{Maint, NAMESPACE, RECORDS, REPLICAS, wait_served};
use crate::harness::objects::{self, CASE_LABEL, is_true};
use crate::harness::wait::Limit;
use crate::harness::{Cluster, wait};

pub fn cases() -> Vec<Case> {
    let all = vec![
        case("deploy::manifests_are_accepted_without_a_warning", manifests_are_accepted),
        case("deploy::the_service_has_the_rights_that_it_uses", rights_are_those_that_are_used),
        case("deploy::people_have_their_verbs_and_nothing_else", people_have_their_verbs),
    ];
    println!("figure cases.deploy {} cases", all.len());
    all
}

const APPLY: Limit = Limit::seconds("kubectl-apply", 60);
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const KURED: &str = "/apis/apps/v1/namespaces/kube-system/daemonsets/kured";

/// `kubectl apply --server-side -k FOLDER`, with the flags; every warning is a failure.
async fn apply(cluster: &Cluster, folder: &str, flags: &[&str]) -> Result<()> {
    let mut command = Command::new(cluster.kubectl());
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("KUBECONFIG", cluster.kubeconfig_path())
        .env("HOME", cluster.folder())
        .args(["apply", "--server-side", "-k", folder])
        .args(flags);
    let output = cluster.run_in_hub(command, APPLY).await?;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success() && told.is_empty(), "{folder}: {} {told}", output.status);
    Ok(())
}

/// What an installation with action `pod` is.
pub async fn install(cluster: &Cluster) -> Result<()> {
    apply(cluster, "deploy/base", &[]).await?;
    apply(cluster, "deploy/actions", &[]).await?;
    wait_served(cluster).await
}

async fn manifests_are_accepted(cluster: Arc<Cluster>) -> Result<()> {
    install(&cluster).await?;
    apply(&cluster, "tests/fixtures/deploy-overlay", &["--dry-run=server"]).await?;
    apply(&cluster, "tests/fixtures/kured-raw", &[]).await?;
    apply(&cluster, "deploy/coredns-floor", &[]).await?;
    // Applied once more nothing changes and nobody complains.
    apply(&cluster, "deploy/base", &[]).await?;
    let client = cluster.any_client().await?;
    // The quota of critical pods, Pod Security and the scheduler agree: two replicas on two nodes.
    let pods = wait::until(wait::CONTROLLERS, "two ready replicas", || async {
        let pods = client.list(&format!("/api/v1/namespaces/{NAMESPACE}/pods")).await?;
        Ok((pods.len() == 2 && pods.iter().all(|pod| is_true(pod, "Ready"))).then_some(pods))
    })
    .await?;
    let nodes: BTreeSet<&str> = pods.iter().filter_map(|pod| pod["spec"]["nodeName"].as_str()).collect();
    ensure!(nodes.len() == 2, "both replicas are on {nodes:?}");
    for pod in &pods {
        ensure!(pod["spec"]["priority"] == 2_000_000_000, "not critical: {}", pod["spec"]["priority"]);
    }
    // A privileged pod has no place beside maint, and one where it belongs.
    let privileged = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "probe" }, "spec": {
        "containers": [{ "name": "main", "image": "test", "securityContext": { "privileged": true } }] } });
    for (namespace, code) in [(NAMESPACE, 403), (objects::ACTIONS_NAMESPACE, 201)] {
        let answer = client.post(&format!("/api/v1/namespaces/{namespace}/pods?dryRun=All"), &privileged).await?;
        ensure!(answer.status.as_u16() == code, "{namespace}: {} {}", answer.status, answer.message());
    }
    let kured = client.get(KURED).await?;
    let container = &kured["spec"]["template"]["spec"]["containers"][0];
    let flags = container["args"].as_array().context("kured has no args")?;
    ensure!(flags[0] == "--prometheus-url=http://maint.maint.svc/kured/$(KURED_NODE_ID)", "{flags:?}");
    ensure!(container["command"][1] == "--reboot-sentinel=/sentinel/reboot-required", "its own flags: {container}");
    let floor = client.get(objects::COREDNS_HPA).await?;
    ensure!(floor["spec"]["minReplicas"] == 2 && is_true(&floor, "ScalingActive"), "{floor}");
    Ok(())
}

/// Rights that a run without kured and without a window does not use: verb, resource, namespace (empty for any), and what
/// does use them. One that is used after all must go from here.
const UNUSED: &[(&str, &str, &str, &str)] = &[
    ("create", "maintenances", "", "wishes of kured: `kured::a_night_by_the_manifests`"),
    ("create", "maintenancereports", "", "windows that end: `kured::a_night_by_the_manifests`"),
    ("update", "maintenancereports/status", "", "windows that end: `kured::a_night_by_the_manifests`"),
    (
        "patch",
        "configmaps",
        "maint",
        "maint-state, once it is there: the next leader of `kured::a_night_by_the_manifests`",
    ),
    ("create", "events", "maint", "about maint-state, when what is remembered of the whole cluster changes"),
    ("patch", "events", "", "an Event that is told again, such as a second hold of the same run"),
    (
        "patch",
        "daemonsets",
        "kube-system",
        "kured's lock: a go that is withdrawn, in `kured::whatever_breaks_between_them`",
    ),
];

/// A whole reboot and a `maint check`, both with the token of the manifests' own account.
async fn rights_are_those_that_are_used(cluster: Arc<Cluster>) -> Result<()> {
    install(&cluster).await?;
    workload(&cluster, 1).await?;
    let mut maint = Maint::of_manifests(&cluster).await?;
    let mark = cluster.audit_mark();
    // No Lease is there, as after a fresh installation: the first leader makes it.
    maint.start(REPLICAS[0], 1)?;
    maint.wait_leader(REPLICAS[0]).await?;
    maint.start(REPLICAS[1], 3)?;
    let (before, going) = (cluster.boot_id(NODE)?, going(&cluster, NODE).await?);
    maint.verb(1, &["reboot", NODE, "--action", "pod", "--yes", "--as", "a case"], 0).await?;
    let name = maint.only_record().await?;
    ensure_rebooted(&maint.record(&name).await?, &before, &cluster.boot_id(NODE)?, going.len())?;
    ensure_released(&cluster, NODE).await?;
    ensure_tidy(&cluster, &maint, &name).await?;
    let token = cluster.kubeconfig_for(NAMESPACE, "maint").await?;
    // By itself the account is no judge of kubelets; with the probe's tokens it is.
    let told = maint.verb_of(&token, 1, &["check", "worker3", "--probe-account", "maint-probe"], 0).await?;
    ensure!(told.contains("kubelet-reachability") && !told.contains("orbidden"), "{told}");
    let log = cluster.audit_since(&mark)?;
    let service = log.by(&Maint::user("maint"));
    let probe = log.by(&Maint::user("maint-probe"));
    println!("\nfigure deploy_requests_of_a_run {} requests", service.0.len());
    for (who, log) in [("the service", &service), ("the probe", &probe)] {
        let refused = refused_for_good(log);
        ensure!(!log.0.is_empty() && refused.is_empty(), "{who} was refused of {}: {refused:?}", log.0.len());
    }
    let odd: Vec<_> =
        probe.0.iter().filter(|entry| entry.resource != "nodes/proxy" && entry.uri != "/readyz?verbose").collect();
    ensure!(odd.is_empty(), "the probe asked for more: {odd:?}");
    let tokens = service.0.iter().filter(|entry| entry.resource == "serviceaccounts/token").count();
    ensure!((1..=6).contains(&tokens), "{tokens} tokens were asked for");
    ensure_no_right_is_spare(&service)?;
    ensure_nothing_else(&token).await
}

/// What was refused and not granted by the same API server later on: one that has just started refuses everybody until
/// it knows the roles.
pub fn refused_for_good(log: &Log) -> Vec<&Entry> {
    let refused = |entry: &&Entry| matches!(entry.code, 401 | 403);
    let granted_later = |refused: &&Entry| {
        log.0.iter().any(|entry| {
            let same =
                (entry.server, &entry.verb, &entry.resource) == (refused.server, &refused.verb, &refused.resource);
            same && entry.time > refused.time && (200..300).contains(&entry.code)
        })
    };
    log.0.iter().filter(refused).filter(|entry| !granted_later(entry)).collect()
}

/// A right of [`UNUSED`] that is used where its reason says.
pub fn ensure_used(verb: &str, resource: &str, log: &Log) -> Result<()> {
    ensure!(UNUSED.iter().any(|(known, of, ..)| *known == verb && *of == resource), "{verb} {resource} is not listed");
    let used = log.0.iter().any(|entry| entry.verb == verb && entry.resource == resource && entry.code < 300);
    ensure!(used, "{verb} {resource} was never used");
    Ok(())
}

/// Each pair of verb and resource of the service's rights was used, or is known not to be.
fn ensure_no_right_is_spare(log: &Log) -> Result<()> {
    let mut wrong = Vec::new();
    for grant in grants().into_iter().filter(|grant| grant.account == Account::Service) {
        let Subject::Resource { resource, names, .. } = grant.subject else { continue };
        for verb in grant.verbs {
            let used = log.0.iter().any(|entry| {
                let place = match grant.place {
                    Place::Cluster => true,
                    Place::Namespace(namespace) => entry.namespace == namespace,
                };
                // The log has no name for what is created.
                let named = names.is_empty() || entry.name.is_empty() || names.contains(&entry.name.as_str());
                entry.verb == *verb && entry.resource == resource && place && named
            });
            let known = UNUSED.iter().any(|(known, of, namespace, _)| {
                let here = match grant.place {
                    Place::Namespace(place) => namespace.is_empty() || *namespace == place,
                    Place::Cluster => namespace.is_empty(),
                };
                known == verb && *of == resource && here
            });
            match (used, known) {
                (false, false) => wrong.push(format!("{verb} {resource} in {:?} was never used", grant.place)),
                (true, true) => wrong.push(format!("{verb} {resource} is used: take it off the list")),
                _ => {}
            }
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// One thing that somebody tries.
type Try = (Method, &'static str, Option<Value>);

/// What the service may not do, although it lies near what it may.
async fn ensure_nothing_else(kubeconfig: &Path) -> Result<()> {
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "x" },
        "spec": { "containers": [{ "name": "main", "image": "test" }] } });
    let token = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
    let tries: Vec<Try> = vec![
        (Method::GET, "/api/v1/nodes/worker1/proxy/healthz", None),
        (Method::GET, "/api/v1/secrets", None),
        (Method::GET, "/api/v1/namespaces/maint/secrets", None),
        (Method::GET, "/api/v1/configmaps", None),
        (Method::POST, "/api/v1/namespaces/kube-system/serviceaccounts/default/token", Some(token.clone())),
        (Method::POST, "/api/v1/namespaces/maint/serviceaccounts/default/token", Some(token)),
        (Method::POST, "/api/v1/namespaces/default/pods?dryRun=All", Some(pod.clone())),
        (Method::POST, "/api/v1/namespaces/maint/pods?dryRun=All", Some(pod)),
        (Method::DELETE, "/api/v1/nodes/worker1?dryRun=All", None),
        (Method::DELETE, "/api/v1/namespaces/case-run/pods/once?dryRun=All", None),
        (Method::PUT, "/apis/coordination.k8s.io/v1/namespaces/maint/leases/other?dryRun=All", Some(json!({}))),
        (Method::PATCH, "/api/v1/namespaces/maint/configmaps/maint-control?dryRun=All", Some(json!({}))),
        (Method::PATCH, "/api/v1/nodes/worker1/status?dryRun=All", Some(json!({}))),
        (Method::PATCH, "/apis/apps/v1/namespaces/kube-system/deployments/coredns?dryRun=All", Some(json!({}))),
    ];
    ensure_refused(&Client::new(kubeconfig, "the-service").await?, &tries).await
}

async fn ensure_refused(client: &Client, tries: &[Try]) -> Result<()> {
    for (method, path, body) in tries {
        let kind = if *method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let answer = client.call(method.clone(), path, &[("content-type", kind)], body.as_ref()).await?;
        ensure!(answer.status.as_u16() == 403, "{method} {path}: {} {}", answer.status, answer.message());
    }
    Ok(())
}

/// Somebody who is bound to the role of that name, as the README says.
async fn person(cluster: &Cluster, role: &str) -> Result<PathBuf> {
    let client = cluster.any_client().await?;
    let metadata = json!({ "name": role, "labels": { CASE_LABEL: "true" } });
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata });
    client.ensure("/api/v1/namespaces/default/serviceaccounts", &account).await?;
    for (kind, place) in [("ClusterRole", String::new()), ("Role", format!("namespaces/{NAMESPACE}/"))] {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"),
            "metadata": { "name": format!("case-{role}"), "labels": { CASE_LABEL: "true" } },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role },
            "subjects": [{ "kind": "ServiceAccount", "name": role, "namespace": "default" }],
        });
        client.ensure(&format!("{RBAC}/{place}{}bindings", kind.to_lowercase()), &binding).await?;
    }
    cluster.kubeconfig_for("default", role).await
}

async fn people_have_their_verbs(cluster: Arc<Cluster>) -> Result<()> {
    install(&cluster).await?;
    let maint = Maint::of_manifests(&cluster).await?;
    maint.ask("wish", NODE, "reboot", "external", json!({})).await?;
    let viewer = person(&cluster, "maint-viewer").await?;
    let checker = person(&cluster, "maint-checker").await?;
    let operator = person(&cluster, "maint-operator").await?;
    // A new binding takes a moment to be known to each server.
    wait::until(wait::SHORT, "the bindings", || async {
        let client = Client::new(&operator, "an-operator").await?;
        client.list("/api/v1/namespaces/maint/configmaps").await?;
        client.list(RECORDS).await.map(Some)
    })
    .await?;
    // Who, words, exit code, what is said. Nobody leads: what is asked for stays as it is.
    let rows: [(&PathBuf, &[&str], i32, &str); 13] = [
        (&viewer, &["status"], 0, "wish"),
        (&viewer, &["show", "wish"], 0, "PENDING"),
        (&viewer, &["history"], 0, "wish"),
        (&viewer, &["halt"], 1, "lack the right to patch configmaps"),
        (&viewer, &["hold", NODE, "--reason", "a case"], 1, "lack the right to patch nodes"),
        (&viewer, &["cancel", "wish"], 1, "lack the right to patch maintenances.maint.dev"),
        (&viewer, &["reboot", "worker3", "--action", "pod", "--yes", "--detach"], 1, "lack the right to create"),
        // Everything but the matrix, which is the probe's.
        (&checker, &["check", "worker3"], 4, "nodes/proxy"),
        (&operator, &["halt", "--reason", "a case"], 0, "halted"),
        (&operator, &["unhalt"], 0, "goes on"),
        (&operator, &["hold", NODE, "--reason", "a case"], 0, NODE),
        (&operator, &["release", NODE], 0, NODE),
        (&operator, &["cancel", "wish", "--as", "a case"], 0, "heard"),
    ];
    for (who, words, code, said) in rows {
        let told = maint.verb_of(who, 1, words, code).await.map_err(|error| anyhow!("{}: {error}", who.display()))?;
        ensure!(told.contains(said), "{} {words:?}: {told}", who.display());
        ensure!(code != 1 || told.contains("maint-operator has it"), "no remedy: {told}");
    }
    let tries: Vec<Try> = vec![
        (Method::GET, "/api/v1/nodes/worker1/proxy/healthz", None),
        (Method::GET, "/api/v1/namespaces/maint/secrets", None),
        (Method::GET, "/api/v1/configmaps", None),
        (Method::GET, "/api/v1/pods", None),
        (Method::PATCH, "/apis/maint.dev/v1alpha1/maintenances/wish/status?dryRun=All", Some(json!({}))),
        (Method::DELETE, "/apis/maint.dev/v1alpha1/maintenances/wish?dryRun=All", None),
        (Method::PATCH, "/api/v1/namespaces/maint/configmaps/maint-state?dryRun=All", Some(json!({}))),
        (Method::PATCH, "/apis/coordination.k8s.io/v1/namespaces/maint/leases/maint?dryRun=All", Some(json!({}))),
    ];
    for who in [&viewer, &operator] {
        ensure_refused(&Client::new(who, "a-person").await?, &tries).await?;
    }
    Ok(())
}
