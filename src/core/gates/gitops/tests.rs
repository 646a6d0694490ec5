//! The table of gate `gitops`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::RunContext;
use super::super::testing::{Case, World, ago, kured_daemon_set, now, survivors};
use super::GATE;
use crate::api::{Moment, Policy, Reason, SourceId, Status};
use crate::facts::{FailureKind, Listed, Observation};

/// An object that is applied.
fn applied(kind: &str, name: &str) -> Value {
    json!({
        "kind": kind,
        "metadata": {"name": name, "namespace": "flux-system", "generation": 5},
        "spec": {"interval": "10m", "suspend": false},
        "status": {
            "observedGeneration": 5,
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "ReconciliationSucceeded",
                "message": "Applied revision: main@sha1:6f5d", "lastTransitionTime": ago(600),
            }],
        },
    })
}

/// Flux with two Kustomizations and a HelmRelease, all applied.
fn flux() -> World {
    let mut world = World::healthy();
    *world.of(SourceId::FluxKustomizations) =
        vec![applied("Kustomization", "flux-system"), applied("Kustomization", "apps")];
    *world.of(SourceId::FluxHelmReleases) = vec![applied("HelmRelease", "longhorn")];
    world
}

fn apps(world: &mut World) -> &mut Value {
    world.named(SourceId::FluxKustomizations, "apps")
}

fn longhorn(world: &mut World) -> &mut Value {
    world.named(SourceId::FluxHelmReleases, "longhorn")
}

fn ready(object: &mut Value, status: &str, reason: &str, message: &str) {
    object["status"]["conditions"][0] = json!({
        "type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": ago(300),
    });
}

fn start(_: &mut Case) {}
fn handover(case: &mut Case) {
    case.moment = Moment::Handover;
    case.run = Some(RunContext::default());
}

type Row = (&'static str, fn(&mut World), fn(&mut Case), Status, Reason, &'static str);

const HEALTHY: &[Row] = &[
    ("all applied", |_| {}, start, Status::Pass, Reason::Passed, "all 3 objects of Flux are applied"),
    ("at handover, where the settings want it", |_| {}, handover, Status::Pass, Reason::Passed, "all 3"),
    (
        "not installed",
        |w| {
            w.0.remove(&SourceId::FluxKustomizations);
            w.0.remove(&SourceId::FluxHelmReleases);
        },
        start,
        Status::NotApplicable,
        Reason::NotInstalled,
        "Flux is not installed",
    ),
    (
        "without helm-controller",
        |w| drop(w.0.remove(&SourceId::FluxHelmReleases)),
        start,
        Status::Pass,
        Reason::Passed,
        "all 2 objects of Flux are applied",
    ),
    (
        "nothing to apply",
        |w| {
            w.of(SourceId::FluxKustomizations).clear();
            w.of(SourceId::FluxHelmReleases).clear();
        },
        start,
        Status::Pass,
        Reason::Passed,
        "all 0 objects",
    ),
    (
        "at work without a change (Reconciling beside Ready)",
        |w| {
            let conditions = apps(w)["status"]["conditions"].as_array_mut().expect("a list");
            conditions.push(json!({"type": "Reconciling", "status": "True", "reason": "Progressing"}));
        },
        start,
        Status::Pass,
        Reason::Passed,
        "all 3",
    ),
    (
        "being deleted",
        |w| {
            apps(w)["metadata"]["deletionTimestamp"] = json!(ago(5));
            ready(apps(w), "False", "PruneFailed", "");
        },
        start,
        Status::Pass,
        Reason::Passed,
        "all 3",
    ),
    (
        "who applies the node and kured",
        |w| {
            w.named(SourceId::Nodes, "worker2")["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/name"] =
                json!("nodes");
            w.named(SourceId::Nodes, "worker2")["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/namespace"] =
                json!("flux-system");
            let mut kured = kured_daemon_set();
            kured["metadata"]["labels"] = json!({
                "helm.toolkit.fluxcd.io/name": "kured", "helm.toolkit.fluxcd.io/namespace": "kube-system",
            });
            *w.of(SourceId::DaemonSets) = vec![kured];
        },
        start,
        Status::Pass,
        Reason::Passed,
        "; Kustomization flux-system/nodes applies Node worker2; HelmRelease kube-system/kured applies DaemonSet \
         kube-system/kured",
    ),
    (
        "suspended on purpose",
        |w| {
            apps(w)["spec"]["suspend"] = json!(true);
            ready(apps(w), "False", "BuildFailed", "of before");
        },
        start,
        Status::Warn,
        Reason::GitOpsSuspended,
        "Kustomization flux-system/apps is suspended: nothing of it is applied until somebody resumes it",
    ),
];

const SICK: &[Row] = &[
    (
        "a Kustomization fails",
        |w| ready(apps(w), "False", "HealthCheckFailed", "timeout waiting for: [Deployment/web status: 'InProgress']."),
        start,
        Status::Block,
        Reason::GitOpsFailing,
        "Kustomization flux-system/apps is failing (HealthCheckFailed: timeout waiting for: [Deployment/web",
    ),
    (
        "a HelmRelease has given up",
        |w| {
            ready(longhorn(w), "False", "UpgradeFailed", "Helm upgrade failed\nwith a page of text");
            let conditions = longhorn(w)["status"]["conditions"].as_array_mut().expect("a list");
            conditions.push(json!({"type": "Stalled", "status": "True", "reason": "RetriesExceeded"}));
        },
        handover,
        Status::Block,
        Reason::GitOpsFailing,
        "HelmRelease flux-system/longhorn is failing (UpgradeFailed: Helm upgrade failed ...)",
    ),
    (
        "stalled, whatever Ready says",
        |w| {
            let conditions = apps(w)["status"]["conditions"].as_array_mut().expect("a list");
            conditions.push(json!({"type": "Stalled", "status": "True", "reason": "InvalidPath"}));
        },
        start,
        Status::Block,
        Reason::GitOpsFailing,
        "is failing (InvalidPath)",
    ),
    (
        "a chart is being upgraded",
        |w| ready(longhorn(w), "Unknown", "Progressing", "Running 'upgrade' action with timeout of 5m0s"),
        start,
        Status::Block,
        Reason::GitOpsReconciling,
        "HelmRelease flux-system/longhorn is being applied (Progressing: Running 'upgrade' action",
    ),
    (
        "a change that was not looked at yet",
        |w| apps(w)["metadata"]["generation"] = json!(6),
        start,
        Status::Block,
        Reason::GitOpsReconciling,
        "Kustomization flux-system/apps is being applied (ReconciliationSucceeded: Applied revision",
    ),
    (
        "just created",
        |w| apps(w)["status"] = json!({"observedGeneration": -1}),
        start,
        Status::Block,
        Reason::GitOpsReconciling,
        "Kustomization flux-system/apps is being applied",
    ),
];

fn case_of(row: &Row) -> Case {
    let mut world = flux();
    (row.1)(&mut world);
    let mut case = world.case();
    (row.2)(&mut case);
    case
}

#[test]
fn objects_are_judged_by_how_they_stand() {
    for row in HEALTHY.iter().chain(SICK) {
        let (name, .., status, reason, message) = row;
        let finding = case_of(row).ask(&GATE);
        assert_eq!((finding.status, finding.reason), (*status, *reason), "{name}: {finding:?}");
        assert!(finding.message.contains(message), "{name}: {}", finding.message);
        let by_default = GATE.ask(&case_of(row).input()).expect("asked");
        assert!(!by_default.stops(), "{name}: by default it stops nobody");
    }
}

/// What may go without a stop: the end of what was done, and why that is right.
const ALLOWED: &[(&str, &str)] = &[("status.conditions.1 deleted", "it is not stalled any more")];

#[test]
fn no_gap_makes_a_failing_object_fine() {
    let (mut fine, mut used) = (Vec::new(), BTreeSet::new());
    for row in SICK {
        let mut world = flux();
        (row.1)(&mut world);
        for left in survivors(&GATE, &world, row.2) {
            match ALLOWED.iter().position(|(end, _)| left.ends_with(end)) {
                Some(index) => drop(used.insert(index)),
                None => fine.push(format!("{}: {left}", row.0)),
            }
        }
    }
    assert!(fine.is_empty(), "{}", fine.join("\n"));
    let unused = ALLOWED.iter().enumerate().filter(|(index, _)| !used.contains(index)).map(|(_, (end, _))| *end);
    assert_eq!(unused.collect::<Vec<_>>(), Vec::<&str>::new(), "allowed in vain");
}

#[test]
fn what_was_so_at_the_start_only_warns_afterwards() {
    for moment in [Moment::Verify, Moment::Settle] {
        let row = &SICK[0];
        let then = case_of(row).ask(&GATE);
        let mut case = case_of(row);
        case.moment = moment;
        case.run = Some(RunContext { baseline: vec![then], ..RunContext::default() });
        assert_eq!(case.ask(&GATE).status, Status::Warn, "{moment}");
        case.run = Some(RunContext::default());
        assert_eq!(case.ask(&GATE).status, Status::Block, "{moment}");
    }
}

#[test]
fn it_is_asked_when_the_settings_say_so() {
    let asked = |case: &Case| super::super::evaluate(&case.input()).iter().any(|finding| finding.gate == GATE.id);
    let mut case = flux().case();
    assert!(asked(&case), "at the start by default");
    handover(&mut case);
    assert!(!asked(&case), "and not later");
    case.settings.gitops.moments = vec![Moment::Handover];
    assert!(asked(&case));
    assert!(super::super::sources_of(Moment::Handover, &case.settings).contains(&SourceId::FluxKustomizations));
    assert!(!super::super::sources_of(Moment::Settle, &case.settings).contains(&SourceId::FluxKustomizations));
    case.settings.gates.insert(GATE.id, Policy::Off);
    assert!(!asked(&case));
}

#[test]
fn what_was_not_read_is_unknown() {
    fn failed<T>(kind: FailureKind) -> Listed<T> {
        Observation::Failed { kind, detail: "storage is (re)initializing".to_owned(), at: now() }
    }
    for kind in FailureKind::ALL {
        let mut case = flux().case();
        case.facts.flux_kustomizations = failed(*kind);
        assert_eq!(case.ask(&GATE).status, Status::Unknown, "Kustomizations {kind}");
        let mut case = flux().case();
        case.facts.flux_helm_releases = failed(*kind);
        assert_eq!(case.ask(&GATE).status, Status::Unknown, "HelmReleases {kind}");
        let mut case = World::healthy().case();
        case.facts.flux_helm_releases = failed(*kind);
        assert_eq!(case.ask(&GATE).status, Status::Unknown, "HelmReleases alone {kind}");
    }
    let mut case = flux().case();
    handover(&mut case);
    case.facts.flux_kustomizations = Observation::NotAsked;
    assert_eq!(case.ask(&GATE).status, Status::Unknown, "a run always asks");
}
